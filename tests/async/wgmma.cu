// SPDX-License-Identifier: Apache-2.0
// Products of a warpgroup: every type, factors in each layout of shared memory, written by hand and by tensor copies, and in registers; what a wait means.
// arch: sm_90a
// options: -lcuda
#include "check.h"
#include "gmma.h"
#include "lists.h"
#include "matrices.h"
#include <cuda.h>

#define PRODUCT(form, registers, factor, rest)                                                                                                   \
    "{.reg .b32 d<128>; .reg .pred p; setp.ne.b32 p,%1,0;" TO_##registers(GET, GET)                                                         \
    "wgmma.fence.sync.aligned; wgmma.mma_async.sync.aligned." form " {" TO_##registers(FIRST, MORE) "}," factor ",%3,p" rest ";"                   \
    "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;" TO_##registers(PUT, PUT) "}"
enum { REGISTERS = 128 };

struct Job {
    uint32_t *d;       // of each thread, REGISTERS
    const uint32_t *a; // of each thread, four for each step
    uint8_t *image;    // what stands in shared memory
    uint32_t bytes, b_at, steps, step_a, step_b;
    uint64_t desc_a, desc_b; // without where they start
    int add;
};

struct Kernel {
    void (*run)(Job);
    unsigned n;
    char a, b, d; // types: h b t f s u i 4 5 1
    bool a_registers, mn_a, mn_b;
    double sign;
    bool saturates;
    const char *name;
};
static std::vector<Kernel> kernels;

static __device__ void take_image(uint8_t *tile, const Job &j)
{
    for (uint32_t i = threadIdx.x; i < j.bytes; i += blockDim.x)
        tile[i] = j.image[i];
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
}

#define KERNEL(id, form, registers, factor, operands, columns, types, a_regs, mn_a, mn_b, sign, saturates)                                              \
    static __global__ void id(Job j)                                                                                                        \
    {                                                                                                                                       \
        extern __shared__ __align__(1024) uint8_t tile[];                                                                                   \
        take_image(tile, j);                                                                                                                \
        uint32_t *d = j.d + threadIdx.x * REGISTERS;                                                                                        \
        for (uint32_t s = 0; s < j.steps; s++) {                                                                                            \
            uint64_t da = j.desc_a | (at(tile) + s * j.step_a) >> 4, db = j.desc_b | (at(tile) + j.b_at + s * j.step_b) >> 4;                \
            const uint32_t *r = j.a + (s * blockDim.x + threadIdx.x) * 4;                                                                    \
            asm volatile(PRODUCT(form, registers, factor, operands) ::"l"(d), "r"((int)(s || j.add)), "l"(da), "l"(db), "r"(r[0]), "r"(r[1]), "r"(r[2]),  \
                         "r"(r[3])                                                                                                          \
                         : "memory");                                                                                                       \
        }                                                                                                                                   \
    }                                                                                                                                       \
    static const bool known_##id = (kernels.push_back({ id, columns, types[0], types[1], types[2], a_regs, mn_a, mn_b, sign, saturates, #id }), true);
#define SHARED_A "%2"
#define LISTED_A "{%4,%5,%6,%7}"

KERNEL(half_8, "m64n8k16.f32.f16.f16", 4, SHARED_A, ",1,1,0,0", 8, "hhf", false, false, false, 1, false)
KERNEL(half_64, "m64n64k16.f32.f16.f16", 32, SHARED_A, ",1,-1,0,0", 64, "hhf", false, false, false, -1, false)
KERNEL(half_64_both_mn, "m64n64k16.f32.f16.f16", 32, SHARED_A, ",-1,-1,1,1", 64, "hhf", false, true, true, 1, false)
KERNEL(half_64_listed, "m64n64k16.f32.f16.f16", 32, LISTED_A, ",-1,1,0", 64, "hhf", true, false, false, -1, false)
KERNEL(half_64_listed_mn, "m64n64k16.f32.f16.f16", 32, LISTED_A, ",1,1,1", 64, "hhf", true, false, true, 1, false)
KERNEL(half_128_a_mn, "m64n128k16.f32.f16.f16", 64, SHARED_A, ",1,1,1,0", 128, "hhf", false, true, false, 1, false)
KERNEL(half_256_b_mn, "m64n256k16.f32.f16.f16", 128, SHARED_A, ",1,1,0,1", 256, "hhf", false, false, true, 1, false)
KERNEL(half_8_half, "m64n8k16.f16.f16.f16", 2, SHARED_A, ",1,1,0,0", 8, "hhh", false, false, false, 1, false)
KERNEL(half_256_half, "m64n256k16.f16.f16.f16", 64, SHARED_A, ",1,-1,0,0", 256, "hhh", false, false, false, -1, false)
KERNEL(bfloat_64, "m64n64k16.f32.bf16.bf16", 32, SHARED_A, ",1,1,1,0", 64, "bbf", false, true, false, 1, false)
KERNEL(bfloat_256_listed, "m64n256k16.f32.bf16.bf16", 128, LISTED_A, ",1,1,1", 256, "bbf", true, false, true, 1, false)
KERNEL(tf_8, "m64n8k8.f32.tf32.tf32", 4, SHARED_A, ",1,1", 8, "ttf", false, false, false, 1, false)
KERNEL(tf_128_listed, "m64n128k8.f32.tf32.tf32", 64, LISTED_A, ",1,-1", 128, "ttf", true, false, false, -1, false)
KERNEL(byte_float_16, "m64n16k32.f32.e5m2.e5m2", 8, LISTED_A, ",1,1", 16, "55f", true, false, false, 1, false)
KERNEL(byte_float_64, "m64n64k32.f16.e4m3.e5m2", 16, SHARED_A, ",1,1", 64, "45h", false, false, false, 1, false)
KERNEL(byte_float_128, "m64n128k32.f32.e4m3.e4m3", 64, SHARED_A, ",-1,1", 128, "44f", false, false, false, -1, false)
KERNEL(int_8, "m64n8k32.s32.u8.s8", 4, LISTED_A, "", 8, "usi", true, false, false, 1, false)
KERNEL(int_64, "m64n64k32.s32.s8.s8", 32, SHARED_A, "", 64, "ssi", false, false, false, 1, false)
KERNEL(int_256_saturated, "m64n256k32.satfinite.s32.u8.u8", 128, SHARED_A, "", 256, "uui", false, false, false, 1, true)
KERNEL(bits_16, "m64n16k256.s32.b1.b1.and.popc", 8, SHARED_A, "", 16, "11i", false, false, false, 1, false)
KERNEL(bits_128_listed, "m64n128k256.s32.b1.b1.and.popc", 64, LISTED_A, "", 128, "11i", true, false, false, 1, false)

// ---- the host's side ----

// Where thread t's element e of D stands (the manual's figures of D).
static unsigned row_of(unsigned t, unsigned e) { return t / 32 * 16 + t % 32 / 4 + e / 2 % 2 * 8; }
static unsigned col_of(unsigned t, unsigned e) { return e / 4 * 8 + t % 4 * 2 + e % 2; }

// Strides of a matrix, dense but for a gap where there may be one, and the bytes to the next step of 32 bytes of k, all in one matrix.
static gmma_layout layout_of(char type, int mode, bool mn, unsigned rows, unsigned steps, uint32_t *step, uint32_t *bytes)
{
    gmma_layout g = { bits_of(type) == 1 ? 8 : bits_of(type), mode, mn, 16, 0 };
    unsigned wide = gmma_width(&g);
    size_t atom = 128 * wide;
    if (!mn && mode) { // rows of an atom hold `wide` / 2 steps; further ones lie behind all rows
        g.stride = atom;
        *step = 32;
        *bytes = (uint32_t)(atom * rows / 8);
    } else if (!mn) {
        g.stride = 128 + 16;
        g.leading = g.stride * rows / 8;
        *step = (uint32_t)(2 * g.leading);
        *bytes = *step * steps;
    } else if (mode) {
        g.stride = atom;
        g.leading = atom * 2 * steps + (rows > 8 * wide ? 1024 : 0);
        *step = (uint32_t)(2 * atom);
        *bytes = (uint32_t)(g.leading * ((rows + 8 * wide - 1) / (8 * wide)));
    } else {
        g.stride = 128;
        g.leading = 128 * rows / 8 + 32;
        *step = (uint32_t)(2 * g.leading);
        *bytes = *step * steps;
    }
    *bytes = (*bytes + 1023) / 1024 * 1024;
    return g;
}

static unsigned steps_of(bool mn_a, bool mn_b, bool a_registers, int mode_a, int mode_b)
{
    unsigned most = 4; // of an atom of 128 bytes
    gmma_layout a = { 8, mode_a, 0, 0, 0 }, b = { 8, mode_b, 0, 0, 0 };
    if (!mn_a && !a_registers && mode_a && gmma_width(&a) / 2 < most)
        most = gmma_width(&a) / 2;
    if (!mn_b && mode_b && gmma_width(&b) / 2 < most)
        most = gmma_width(&b) / 2;
    return most;
}

static void fill(uint8_t *image, const gmma_layout &g, char type, const Matrix &m, uint32_t bytes)
{
    unsigned each = type == '1' ? 8 : 1;
    for (unsigned r = 0; r < m.rows; r++)
        for (unsigned k = 0; k < m.k; k++) {
            size_t place = gmma_place(&g, r, k / each);
            if (place >= bytes)
                exit(4);
            put(image + place, type, k % each, m(r, k));
        }
}

static void check_kernel(const Kernel &c, int mode_a, int mode_b, bool add)
{
    mode_a = c.a_registers ? 0 : mode_a;
    unsigned steps = steps_of(c.mn_a, c.mn_b, c.a_registers, mode_a, mode_b), each = 256 / bits_of(c.a), k = steps * each;
    Matrix a(64, k, c.a), b(c.n, k, c.b), d(64, c.n, 'f');
    uint32_t bytes_a, bytes_b;
    Job j = {};
    gmma_layout ga = layout_of(c.a, mode_a, c.mn_a, 64, steps, &j.step_a, &bytes_a), gb = layout_of(c.b, mode_b, c.mn_b, c.n, steps, &j.step_b, &bytes_b);
    j.bytes = bytes_a + bytes_b, j.b_at = bytes_a, j.steps = steps, j.add = add;
    j.desc_a = gmma_descriptor(&ga, 0), j.desc_b = gmma_descriptor(&gb, 0);
    j.image = allocate<uint8_t>(j.bytes), j.d = allocate<uint32_t>(128 * REGISTERS);
    uint32_t *list = allocate<uint32_t>(steps * 128 * 4);
    j.a = list;
    fill(j.image, ga, c.a, a, bytes_a);
    fill(j.image + bytes_a, gb, c.b, b, bytes_b);
    if (c.saturates)
        for (double &x : d.v)
            x += INT32_MAX - 1000000;
    for (unsigned s = 0; s < steps; s++)
        for (unsigned t = 0; t < 128; t++)
            for (unsigned r = 0; r < 4; r++)
                for (unsigned e = 0; e < each / 8; e++)
                    put((uint8_t *)&list[(s * 128 + t) * 4 + r], c.a, e, a(t / 32 * 16 + t % 32 / 4 + r % 2 * 8, s * each + t % 4 * (each / 8) + e + r / 2 * each / 2));
    unsigned per = c.d == 'h' ? 2 : 1;
    for (unsigned t = 0; t < 128; t++)
        for (unsigned e = 0; e < c.n / 2; e++)
            j.d[t * REGISTERS + e / per] |= encoded(c.d, d(row_of(t, e), col_of(t, e))) << e % per * 16;
    cudaFuncSetAttribute(c.run, cudaFuncAttributeMaxDynamicSharedMemorySize, 200 * 1024);
    c.run<<<1, 128, j.bytes>>>(j);
    finish(c.name);
    for (unsigned t = 0; t < 128; t++)
        for (unsigned e = 0; e < c.n / 2; e++) {
            unsigned row = row_of(t, e), col = col_of(t, e);
            double sum = add ? d(row, col) : 0;
            for (unsigned i = 0; i < k; i++)
                sum += c.sign * a(row, i) * b(col, i);
            if (c.saturates && sum > INT32_MAX)
                sum = INT32_MAX;
            expect(decoded(c.d, j.d[t * REGISTERS + e / per] >> e % per * 16), sum, c.name);
        }
    cudaFree(j.image), cudaFree(j.d), cudaFree(list);
}

// ---- factors that tensor copies bring ----

struct Boxes {
    uint32_t bytes_a, bytes_b, steps, step_a, step_b;
    uint64_t desc_a, desc_b;
};

template <bool MN> __global__ void copied(const __grid_constant__ CUtensorMap map_a, const __grid_constant__ CUtensorMap map_b, Boxes x, uint32_t *out)
{
    extern __shared__ __align__(1024) uint8_t tile[];
    __shared__ uint64_t bar;
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(at(&bar)) : "memory");
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(at(&bar)), "r"(x.bytes_a + x.bytes_b) : "memory");
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %2}], [%3];" ::"r"(at(tile)), "l"(&map_a), "r"(0), "r"(at(&bar)) : "memory");
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %2}], [%3];" ::"r"(at(tile) + x.bytes_a), "l"(&map_b), "r"(0), "r"(at(&bar)) : "memory");
    }
    __syncthreads();
    asm volatile("{.reg .pred p; W: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0; @!p bra W;}" ::"r"(at(&bar)) : "memory");
    uint32_t *d = out + threadIdx.x * REGISTERS;
    for (uint32_t s = 0; s < x.steps; s++) {
        uint64_t da = x.desc_a | (at(tile) + s * x.step_a) >> 4, db = x.desc_b | (at(tile) + x.bytes_a + s * x.step_b) >> 4;
        if (MN)
            asm volatile(PRODUCT("m64n64k16.f32.f16.f16", 32, SHARED_A, ",1,1,1,1") ::"l"(d), "r"((int)s), "l"(da), "l"(db) : "memory");
        else
            asm volatile(PRODUCT("m64n64k16.f32.f16.f16", 32, SHARED_A, ",1,1,0,0") ::"l"(d), "r"((int)s), "l"(da), "l"(db) : "memory");
    }
}

// Boxes of 64 x `across` halves, the latter side by side in memory: k, or the rows of A and the columns of B.
static void check_copied(int mode, bool mn)
{
    static const int swizzles[] = { 0, CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_SWIZZLE_64B, CU_TENSOR_MAP_SWIZZLE_32B };
    gmma_layout g = { 16, mode, mn, 16, 0 };
    unsigned across = gmma_width(&g) * 8, k = mn ? 64 : across;
    if (mn && across < 64) // one box is 64 k of `across` rows: as much as fits a descriptor's matrix only if those are all
        return;
    g.stride = gmma_width(&g) * 128;
    CUtensorMap maps[2];
    __half *memory[2];
    Matrix a(64, 64, 'h'), b(64, 64, 'h');
    const Matrix *m[2] = { &a, &b };
    for (int i = 0; i < 2; i++) {
        memory[i] = allocate<__half>(64 * 64);
        for (unsigned r = 0; r < 64; r++)
            for (unsigned c = 0; c < 64; c++)
                memory[i][mn ? c * 64 + r : r * 64 + c] = __float2half((float)(*m[i])(r, c));
        cuuint64_t size[] = { 64, 64 }, stride[] = { 128 };
        cuuint32_t box[] = { across, 64 }, step[] = { 1, 1 };
        expect(cuTensorMapEncodeTiled(&maps[i], CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2, memory[i], size, stride, box, step, CU_TENSOR_MAP_INTERLEAVE_NONE,
                                      (CUtensorMapSwizzle)swizzles[mode], CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE),
               CUDA_SUCCESS, "tensor map");
    }
    uint32_t bytes = across * 64 * 2, step = mn ? 2 * (uint32_t)g.stride : 32;
    Boxes x = { bytes, bytes, k / 16, step, step, gmma_descriptor(&g, 0), gmma_descriptor(&g, 0) };
    uint32_t *out = allocate<uint32_t>(128 * REGISTERS);
    auto kernel = mn ? copied<true> : copied<false>;
    kernel<<<1, 128, 2 * bytes>>>(maps[0], maps[1], x, out);
    finish("copied");
    for (unsigned t = 0; t < 128; t++)
        for (unsigned e = 0; e < 32; e++) {
            double sum = 0;
            for (unsigned i = 0; i < k; i++)
                sum += a(row_of(t, e), i) * b(col_of(t, e), i);
            expect(decoded('f', out[t * REGISTERS + e]), sum, mn ? "copied, MN-major" : "copied, K-major");
        }
    cudaFree(memory[0]), cudaFree(memory[1]), cudaFree(out);
}

// ---- a sparse A: two of four elements of a row, which two the indices of lanes 2 and 3 of each four say ----

__global__ void __launch_bounds__(128) sparse(const uint32_t *a, const uint32_t *indices, const __half *columns, float *out)
{
    __shared__ alignas(1024) __half b[32 * 8];
    for (unsigned i = threadIdx.x; i < 32 * 8; i += blockDim.x) // eight k of a column are a piece, eight columns of pieces 128 bytes
        b[i % 32 / 8 * 64 + i / 32 * 8 + i % 8] = columns[i];
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    const uint32_t *r = a + threadIdx.x * 4;
    float *d = out + threadIdx.x * 4;
    asm volatile("{.reg .pred p; setp.ne.b32 p, %10, 0; wgmma.fence.sync.aligned;"
                 "wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16 {%0,%1,%2,%3}, {%4,%5,%6,%7}, %8, %9, 1, p, 1, -1, 0;"
                 "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;}"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]), "l"((uint64_t)(at(b) >> 4 | 8ull << 16 | 8ull << 32)), "r"(indices[threadIdx.x]), "r"(1));
}

static void check_sparse()
{
    static double dense[64][32];
    uint32_t *a = allocate<uint32_t>(128 * 4), *indices = allocate<uint32_t>(128);
    __half *columns = allocate<__half>(8 * 32);
    float *out = allocate<float>(128 * 4);
    for (unsigned i = 0; i < 8 * 32; i++)
        columns[i] = __float2half((float)(rand() % 9 - 4));
    for (unsigned t = 0; t < 128; t++) {
        indices[t] = (uint32_t)rand(); // lanes 0 and 1 of four do not count
        for (unsigned e = 0; e < 4; e++)
            out[t * 4 + e] = (float)(int)e;
    }
    for (unsigned row = 0; row < 64; row++)
        for (unsigned chunk = 0; chunk < 8; chunk++) {
            unsigned first = (unsigned)rand() % 3, second = first + 1 + (unsigned)rand() % (3 - first), lower = row % 16 / 8;
            unsigned warp = row / 16 * 32, lane = warp + row % 8 * 4 + 2 + chunk / 4, shift = chunk % 4 * 4 + 16 * lower;
            indices[lane] = (indices[lane] & ~(15u << shift)) | (first | second << 2) << shift;
            uint16_t halves[2];
            for (unsigned k = 0; k < 2; k++) {
                double v = dense[row][chunk * 4 + (k ? second : first)] = rand() % 9 - 4;
                __half h = __float2half((float)v);
                memcpy(&halves[k], &h, 2);
            }
            a[(warp + row % 8 * 4 + chunk % 4) * 4 + lower + chunk / 4 * 2] = halves[0] | (uint32_t)halves[1] << 16;
        }
    sparse<<<1, 128>>>(a, indices, columns, out);
    finish("sparse");
    for (unsigned t = 0; t < 128; t++)
        for (unsigned e = 0; e < 4; e++) {
            double sum = 0;
            for (unsigned k = 0; k < 32; k++)
                sum -= dense[row_of(t, e)][k] * __half2float(columns[col_of(t, e) * 32 + k]);
            expect(out[t * 4 + e], e + sum, "sparse");
        }
    cudaFree(a), cudaFree(indices), cudaFree(columns), cudaFree(out);
}

// ---- one thread's wait tells that all four warps have read ----

// A producer warp overwrites B once one thread of the consumers says that it may; A is all ones, B of each round all `round`.
__global__ void __launch_bounds__(160) pipeline(uint32_t *out, int rounds, unsigned speaker)
{
    __shared__ alignas(1024) __half a[64 * 16], b[8 * 16];
    __shared__ uint64_t full, empty;
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 32;" ::"r"(at(&full)) : "memory");
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(at(&empty)) : "memory");
    }
    for (unsigned i = threadIdx.x; i < 64 * 16; i += blockDim.x)
        a[i] = __float2half(1);
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (threadIdx.x >= 128) {
        for (int r = 0; r < rounds; r++) {
            if (r)
                asm volatile("{.reg .pred p; W: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; @!p bra W;}" ::"r"(at(&empty)), "r"((r - 1) & 1) : "memory");
            for (unsigned i = threadIdx.x - 128; i < 8 * 16; i += 32)
                b[i] = __float2half((float)(r + 1));
            asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
            asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(at(&full)) : "memory");
        }
        return;
    }
    // no swizzle: B's halves of k stand 128 bytes apart, A's eights of rows 256
    uint64_t da = at(a) >> 4 | 8ull << 16 | 16ull << 32, db = at(b) >> 4 | 8ull << 16 | 16ull << 32;
    for (int r = 0; r < rounds; r++) {
        asm volatile("{.reg .pred p; W: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; @!p bra W;}" ::"r"(at(&full)), "r"(r & 1) : "memory");
        for (int late = threadIdx.x / 32 == (speaker / 32 + 1) % 4 ? 4 : 0; late; late--)
            __nanosleep(20);
        asm volatile(PRODUCT("m64n8k16.f32.f16.f16", 4, SHARED_A, ",1,1,0,0") ::"l"(out + threadIdx.x * REGISTERS), "r"(r), "l"(da), "l"(db) : "memory");
        if (threadIdx.x == speaker)
            asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(at(&empty)) : "memory");
    }
}

// ---- what is said of programs that are wrong ----

__global__ void wrong(uint64_t desc)
{
    float d[4] = {};
    asm volatile("wgmma.fence.sync.aligned; wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0,%1,%2,%3}, %4, %4, 1, 1, 1, 0, 0;"
                 "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "l"(desc));
}

static void expect_error(uint64_t desc, int threads, cudaError_t error, const char *what)
{
    wrong<<<1, threads>>>(desc);
    expect(cudaDeviceSynchronize(), error, what);
    cudaDeviceReset();
}

int main()
{
    for (const Kernel &c : kernels)
        for (int mode = 0; mode < 4; mode++) {
            check_kernel(c, mode, mode, true);
            check_kernel(c, mode, (mode + 1) % 4, false);
        }
    for (int mode = 1; mode < 4; mode++) {
        check_copied(mode, false);
        check_copied(mode, true);
    }
    check_sparse();
    uint32_t *out = allocate<uint32_t>(128 * REGISTERS);
    for (unsigned speaker = 0; speaker < 128; speaker += 32) {
        pipeline<<<1, 160>>>(out, 10, speaker);
        finish("pipeline");
        for (unsigned i = 0; i < 128 * 4; i++)
            expect(decoded('f', out[i / 4 * REGISTERS + i % 4]), 16 * 55, "pipeline");
    }
    expect_error(0, 32, cudaErrorIllegalInstruction, "a warp alone");
    expect_error(0x3fff | 0x3fffull << 32, 128, cudaErrorIllegalAddress, "beyond shared memory");
    return report("wgmma");
}
