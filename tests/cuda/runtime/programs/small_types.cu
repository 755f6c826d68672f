// SPDX-License-Identifier: Apache-2.0
// wmma on four bits and on one, from memory to memory, against the host.
#include "expect.h"

#include <cstdint>
#include <mma.h>

using namespace nvcuda;
namespace small = nvcuda::wmma::experimental;

__global__ void nibbles(const uint32_t *a, const uint32_t *b, int *c)
{
    wmma::fragment<wmma::matrix_a, 8, 8, 32, small::precision::s4, wmma::row_major> fa;
    wmma::fragment<wmma::matrix_b, 8, 8, 32, small::precision::s4, wmma::col_major> fb;
    wmma::fragment<wmma::accumulator, 8, 8, 32, int> fc;
    wmma::load_matrix_sync(fa, a, 64);
    wmma::load_matrix_sync(fb, b, 32);
    wmma::load_matrix_sync(fc, c, 8, wmma::mem_row_major);
    wmma::mma_sync(fc, fa, fb, fc);
    wmma::store_matrix_sync(c, fc, 8, wmma::mem_row_major);
}

__global__ void bits(const uint32_t *a, const uint32_t *b, int *c)
{
    wmma::fragment<wmma::matrix_a, 8, 8, 128, small::precision::b1, wmma::row_major> fa;
    wmma::fragment<wmma::matrix_b, 8, 8, 128, small::precision::b1, wmma::col_major> fb;
    wmma::fragment<wmma::accumulator, 8, 8, 128, int> fc;
    wmma::load_matrix_sync(fa, a, 256);
    wmma::load_matrix_sync(fb, b, 128);
    wmma::fill_fragment(fc, 100);
    wmma::bmma_sync(fc, fa, fb, fc, small::bmmaBitOpXOR, small::bmmaAccumulateOpPOPC);
    wmma::store_matrix_sync(c, fc, 8, wmma::mem_col_major);
}

static int nibble(const uint32_t *m, int i)
{
    int v = m[i / 8] >> (i % 8 * 4) & 15;
    return v >= 8 ? v - 16 : v;
}

static int bit(const uint32_t *m, int i)
{
    return m[i / 32] >> (i % 32) & 1;
}

int main()
{
    uint32_t *a, *b;
    int *c;
    OK(cudaMallocManaged(&a, 8 * 64 * 4));
    OK(cudaMallocManaged(&b, 8 * 64 * 4));
    OK(cudaMallocManaged(&c, 64 * 4));
    uint32_t seed = 3;
    for (int i = 0; i < 8 * 64; i++) {
        seed = seed * 1664525 + 1013904223;
        a[i] = seed ^ seed >> 15;
        b[i] = seed * 2654435761u;
    }
    for (int i = 0; i < 64; i++)
        c[i] = i - 30;
    nibbles<<<1, 32>>>(a, b, c);
    OK(cudaDeviceSynchronize());
    for (int i = 0; i < 8; i++)
        for (int j = 0; j < 8; j++) {
            int want = i * 8 + j - 30;
            for (int k = 0; k < 32; k++)
                want += nibble(a, i * 64 + k) * nibble(b, j * 32 + k);
            EXPECT(c[i * 8 + j], want);
        }
    bits<<<1, 32>>>(a, b, c);
    OK(cudaDeviceSynchronize());
    for (int i = 0; i < 8; i++)
        for (int j = 0; j < 8; j++) {
            int want = 100;
            for (int k = 0; k < 128; k++)
                want += bit(a, i * 256 + k) != bit(b, j * 128 + k);
            EXPECT(c[j * 8 + i], want);
        }
    return expect_status();
}
