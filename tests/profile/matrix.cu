// SPDX-License-Identifier: Apache-2.0
// Matrix instructions in all shapes, types and orders; the products are checked, the profiler counts the accesses.
#include <cstdint>
#include <cstdio>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>
using namespace nvcuda;

static int bad;

template <int M, int N, int K, class T, class S, class LA, class LB, bool row>
__global__ void product(const S *a, const S *b, const float *, void *out)
{
    wmma::fragment<wmma::matrix_a, M, N, K, T, LA> fa;
    wmma::fragment<wmma::matrix_b, M, N, K, T, LB> fb;
    using C = typename std::conditional<sizeof(S) == 1, int, typename std::conditional<sizeof(S) == 8, double, float>::type>::type;
    wmma::fragment<wmma::accumulator, M, N, K, C> fc;
    C *c = static_cast<C *>(out);
    constexpr bool ar = std::is_same<LA, wmma::row_major>::value, br = std::is_same<LB, wmma::row_major>::value;
    wmma::load_matrix_sync(fa, a, ar ? K : M);
    wmma::load_matrix_sync(fb, b, br ? N : K);
    wmma::load_matrix_sync(fc, c, row ? N : M, row ? wmma::mem_row_major : wmma::mem_col_major);
    wmma::mma_sync(fc, fa, fb, fc);
    wmma::store_matrix_sync(c, fc, row ? N : M, row ? wmma::mem_row_major : wmma::mem_col_major);
}

template <class S> S small(int x)
{
    return static_cast<S>(static_cast<float>(x));
}

template <int M, int N, int K, class T, class S, class LA, class LB, bool row = true> void run(const char *name)
{
    using C = typename std::conditional<sizeof(S) == 1, int, typename std::conditional<sizeof(S) == 8, double, float>::type>::type;
    S *a, *b;
    C *c;
    cudaMallocManaged(&a, M * K * sizeof(S));
    cudaMallocManaged(&b, K * N * sizeof(S));
    cudaMallocManaged(&c, M * N * sizeof(C));
    constexpr bool ar = std::is_same<LA, wmma::row_major>::value, br = std::is_same<LB, wmma::row_major>::value;
    auto x = [](int i, int k) { return (i * 7 + k * 3) % 11 - 5; };
    auto y = [](int k, int j) { return (k * 5 + j * 2) % 13 - 6; };
    auto z = [](int i, int j) { return (i * 3 + j) % 17; };
    for (int i = 0; i < M; i++)
        for (int k = 0; k < K; k++)
            a[ar ? i * K + k : k * M + i] = small<S>(x(i, k));
    for (int k = 0; k < K; k++)
        for (int j = 0; j < N; j++)
            b[br ? k * N + j : j * K + k] = small<S>(y(k, j));
    for (int i = 0; i < M; i++)
        for (int j = 0; j < N; j++)
            c[row ? i * N + j : j * M + i] = C(z(i, j));
    product<M, N, K, T, S, LA, LB, row><<<1, 32>>>(a, b, nullptr, c);
    cudaDeviceSynchronize();
    for (int i = 0; i < M; i++)
        for (int j = 0; j < N; j++) {
            int sum = z(i, j);
            for (int k = 0; k < K; k++)
                sum += x(i, k) * y(k, j);
            if (c[row ? i * N + j : j * M + i] != C(sum) && bad++ < 10)
                printf("%s: (%d, %d) is %g, not %d\n", name, i, j, double(c[row ? i * N + j : j * M + i]), sum);
        }
}

template <int M, int N, int K, class T, class S> void orders(const char *name)
{
    run<M, N, K, T, S, wmma::row_major, wmma::row_major>(name);
    run<M, N, K, T, S, wmma::row_major, wmma::col_major>(name);
    run<M, N, K, T, S, wmma::col_major, wmma::row_major, false>(name);
    run<M, N, K, T, S, wmma::col_major, wmma::col_major, false>(name);
}

// Halves in accumulators; all through shared memory.
__global__ void in_shared(const __half *a, __half *c)
{
    __shared__ __align__(32) __half sa[256], sc[256];
    for (int i = threadIdx.x; i < 256; i += 32)
        sa[i] = a[i];
    __syncwarp();
    wmma::fragment<wmma::accumulator, 16, 16, 16, __half> f;
    wmma::load_matrix_sync(f, sa, 16, wmma::mem_row_major);
    wmma::store_matrix_sync(sc, f, 16, wmma::mem_col_major);
    wmma::load_matrix_sync(f, sc, 16, wmma::mem_col_major);
    wmma::store_matrix_sync(sc, f, 16, wmma::mem_row_major);
    __syncwarp();
    for (int i = threadIdx.x; i < 256; i += 32)
        c[i] = sc[i];
}

// Rows of 32 bytes: the rows of a matrix meet two by two in the banks. Rows of 48 bytes: they do not.
template <int row_bytes, bool trans> __global__ void ldmatrix(unsigned *out)
{
    __shared__ __align__(16) unsigned short tile[32 * row_bytes / 2];
    for (int i = threadIdx.x; i < 32 * row_bytes / 2; i += 32)
        tile[i] = i;
    __syncwarp();
    unsigned v[4], at = static_cast<unsigned>(__cvta_generic_to_shared(tile)) + threadIdx.x * row_bytes;
    if (trans)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3]) : "r"(at));
    else
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3]) : "r"(at));
    for (int k = 0; k < 4; k++)
        out[k * 32 + threadIdx.x] = v[k];
}

template <int row_bytes, bool trans> void check_ldmatrix()
{
    unsigned *out;
    cudaMallocManaged(&out, 128 * sizeof *out);
    ldmatrix<row_bytes, trans><<<1, 32>>>(out);
    cudaDeviceSynchronize();
    for (int k = 0; k < 4; k++)
        for (int lane = 0; lane < 32; lane++) {
            int g = lane / 4, p = lane % 4 * 2;
            unsigned low = trans ? (8 * k + p) * (row_bytes / 2) + g : (8 * k + g) * (row_bytes / 2) + p;
            unsigned high = trans ? (8 * k + p + 1) * (row_bytes / 2) + g : low + 1;
            if (out[k * 32 + lane] != ((high & 0xffff) << 16 | (low & 0xffff)) && bad++ < 10)
                printf("ldmatrix: lane %d of matrix %d is %08x\n", lane, k, out[k * 32 + lane]);
        }
}

int main()
{
    orders<16, 16, 16, __half, __half>("f16 16x16x16");
    orders<32, 8, 16, __half, __half>("f16 32x8x16");
    orders<8, 32, 16, __half, __half>("f16 8x32x16");
    orders<16, 16, 16, __nv_bfloat16, __nv_bfloat16>("bf16 16x16x16");
    orders<16, 16, 8, wmma::precision::tf32, float>("tf32 16x16x8");
    orders<16, 16, 16, signed char, signed char>("s8 16x16x16");
    orders<32, 8, 16, signed char, signed char>("s8 32x8x16");
    orders<8, 32, 16, signed char, signed char>("s8 8x32x16");
    orders<8, 8, 4, double, double>("f64 8x8x4");
    __half *a, *c;
    cudaMallocManaged(&a, 512);
    cudaMallocManaged(&c, 512);
    for (int i = 0; i < 256; i++)
        a[i] = __half(float(i));
    in_shared<<<1, 32>>>(a, c);
    cudaDeviceSynchronize();
    for (int i = 0; i < 256; i++)
        if (float(c[i]) != float(i) && bad++ < 10)
            printf("shared: %d is %g\n", i, float(c[i]));
    check_ldmatrix<32, false>();
    check_ldmatrix<48, false>();
    check_ldmatrix<32, true>();
    check_ldmatrix<48, true>();
    printf("%d differ\n", bad);
    return bad != 0;
}
