// SPDX-License-Identifier: Apache-2.0
// Tensor maps and copies of boxes: 1 to 5 dimensions, edges, element strides, swizzles, elements of 4 and 6 bits, reductions, fields replaced, errors.
// arch: sm_90a sm_100a
// options: -lcuda
#include "check.h"
#include <vector>
#include <cooperative_groups.h>
#include <cstdint>
#include <cuda.h>
#include <cuda_fp16.h>
namespace cg = cooperative_groups;

static __device__ uint32_t at(const void *p)
{
    return (uint32_t)__cvta_generic_to_shared(p);
}
static __device__ void begin(uint64_t *bar, uint32_t bytes)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(at(bar)) : "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(at(bar)), "r"(bytes) : "memory");
}
static __device__ void await(uint64_t *bar)
{
    asm volatile("{.reg .pred p; W: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0; @!p bra W;}" ::"r"(at(bar)) : "memory");
}
#define LOAD(n, coordinates, ...)                                                                                          \
    asm volatile("cp.async.bulk.tensor." n ".shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, " coordinates "], [%2];" ::"r"(at(tile)), \
                 "l"(map), "r"(at(&bar)), __VA_ARGS__ : "memory")
#define STORE(n, coordinates, ...)                                                                                         \
    asm volatile("cp.async.bulk.tensor." n ".global.shared::cta.tile.bulk_group [%1, " coordinates "], [%0];" ::"r"(at(tile)), "l"(map), __VA_ARGS__ : "memory")

struct Where { int c[5]; };

// A box to `out` as it lies in shared memory; then, changed, back to another tensor.
__global__ void box(const __grid_constant__ CUtensorMap in, const __grid_constant__ CUtensorMap back, int rank, Where w, uint32_t bytes, uint8_t *out, bool store)
{
    extern __shared__ __align__(1024) uint8_t tile[];
    __shared__ uint64_t bar;
    if (threadIdx.x == 0) {
        const CUtensorMap *map = &in;
        begin(&bar, bytes);
        switch (rank) {
        case 1: LOAD("1d", "{%3}", "r"(w.c[0])); break;
        case 2: LOAD("2d", "{%3, %4}", "r"(w.c[0]), "r"(w.c[1])); break;
        case 3: LOAD("3d", "{%3, %4, %5}", "r"(w.c[0]), "r"(w.c[1]), "r"(w.c[2])); break;
        case 4: LOAD("4d", "{%3, %4, %5, %6}", "r"(w.c[0]), "r"(w.c[1]), "r"(w.c[2]), "r"(w.c[3])); break;
        default: LOAD("5d", "{%3, %4, %5, %6, %7}", "r"(w.c[0]), "r"(w.c[1]), "r"(w.c[2]), "r"(w.c[3]), "r"(w.c[4])); break;
        }
    }
    __syncthreads();
    await(&bar);
    for (uint32_t i = threadIdx.x; i < bytes; i += blockDim.x)
        out[i] = tile[i];
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0 && store) {
        const CUtensorMap *map = &back;
        switch (rank) {
        case 1: STORE("1d", "{%2}", "r"(w.c[0])); break;
        case 2: STORE("2d", "{%2, %3}", "r"(w.c[0]), "r"(w.c[1])); break;
        case 3: STORE("3d", "{%2, %3, %4}", "r"(w.c[0]), "r"(w.c[1]), "r"(w.c[2])); break;
        case 4: STORE("4d", "{%2, %3, %4, %5}", "r"(w.c[0]), "r"(w.c[1]), "r"(w.c[2]), "r"(w.c[3])); break;
        default: STORE("5d", "{%2, %3, %4, %5, %6}", "r"(w.c[0]), "r"(w.c[1]), "r"(w.c[2]), "r"(w.c[3]), "r"(w.c[4])); break;
        }
        asm volatile("cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;" ::: "memory");
    }
}

// Elements of 4 and 6 bits: a box over a known pattern to `out`; then another pattern stored.
__global__ void packed_box(const __grid_constant__ CUtensorMap in, const __grid_constant__ CUtensorMap back, Where w, uint32_t arriving, uint32_t bytes, uint8_t *out,
                           bool store)
{
    extern __shared__ __align__(1024) uint8_t tile[];
    __shared__ uint64_t bar;
    for (uint32_t i = threadIdx.x; i < bytes; i += blockDim.x)
        tile[i] = 0x5a;
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0) {
        const CUtensorMap *map = &in;
        begin(&bar, arriving);
        LOAD("2d", "{%3, %4}", "r"(w.c[0]), "r"(w.c[1]));
    }
    __syncthreads();
    await(&bar);
    for (uint32_t i = threadIdx.x; i < bytes; i += blockDim.x) {
        out[i] = tile[i];
        tile[i] = (uint8_t)(i * 29 + i / 64);
    }
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0 && store) {
        const CUtensorMap *map = &back;
        STORE("2d", "{%2, %3}", "r"(w.c[0]), "r"(w.c[1]));
        asm volatile("cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;" ::: "memory");
    }
}

__global__ void add_box(const __grid_constant__ CUtensorMap to, int x, int y)
{
    __shared__ alignas(128) int tile[16 * 8];
    tile[threadIdx.x] = (int)threadIdx.x + 1;
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile("cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [%0, {%1, %2}], [%3];" ::"l"(&to), "r"(x), "r"(y), "r"(at(tile)) : "memory");
        asm volatile("cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;" ::: "memory");
    }
}

// A map made on the device: copied to shared memory, changed, copied out, fenced and used by another block size.
__global__ void replaced(const __grid_constant__ CUtensorMap original, CUtensorMap *made, const int *other, int *out)
{
    __shared__ alignas(128) CUtensorMap map;
    __shared__ alignas(128) int tile[16 * 8];
    __shared__ uint64_t bar;
    if (threadIdx.x == 0) {
        map = original;
        asm volatile("tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%0], %1;" ::"r"(at(&map)), "l"(other) : "memory");
        asm volatile("tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%0], 1, %1;" ::"r"(at(&map)), "r"(5) : "memory");
        asm volatile("tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [%0], 0, %1;" ::"r"(at(&map)), "l"(256ull) : "memory");
    }
    __syncwarp();
    asm volatile("tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%0], [%1], 128;" ::"l"(made), "r"(at(&map)) : "memory");
    asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" ::"l"(made) : "memory");
    if (threadIdx.x == 0) {
        begin(&bar, sizeof tile);
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(at(tile)), "l"(made), "r"(0), "r"(0), "r"(at(&bar)) : "memory");
    }
    __syncwarp();
    await(&bar);
    for (int i = threadIdx.x; i < 128; i += 32)
        out[i] = tile[i];
}

__global__ void __cluster_dims__(4) everywhere(const __grid_constant__ CUtensorMap in, int *out)
{
    __shared__ alignas(128) int tile[16 * 8];
    __shared__ uint64_t bar;
    auto c = cg::this_cluster();
    if (threadIdx.x == 0)
        begin(&bar, c.block_rank() == 3 ? 0 : sizeof tile);
    c.sync();
    if (c.block_rank() == 1 && threadIdx.x == 0)
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;" ::"r"(at(tile)),
                     "l"(&in), "r"(16), "r"(8), "r"(at(&bar)), "h"((uint16_t)7) : "memory");
    await(&bar);
    if (c.block_rank() != 3)
        out[c.block_rank() * 128 + threadIdx.x] = tile[threadIdx.x];
    c.sync();
}

struct Tensor {
    int rank, type, swizzle, fill;
    unsigned bytes; // of an element
    cuuint64_t size[5], stride[4];
    cuuint32_t box[5], step[5];
};

static CUresult encode(CUtensorMap *map, const Tensor &t, void *p)
{
    return cuTensorMapEncodeTiled(map, (CUtensorMapDataType)t.type, t.rank, p, t.size, t.stride, t.box, t.step, CU_TENSOR_MAP_INTERLEAVE_NONE,
                                  (CUtensorMapSwizzle)t.swizzle, CU_TENSOR_MAP_L2_PROMOTION_NONE, (CUtensorMapFloatOOBfill)t.fill);
}

// The programming guide's pattern: pieces of 16 (or 32) bytes of a line exchanged by the number of the 128-byte line.
static uint32_t swizzled(int mode, uint32_t at)
{
    uint32_t line = at / 128, piece = at % 128 / 16;
    switch (mode) {
    case CU_TENSOR_MAP_SWIZZLE_32B: piece ^= line % 2; break;
    case CU_TENSOR_MAP_SWIZZLE_64B: piece ^= line % 4; break;
    case CU_TENSOR_MAP_SWIZZLE_128B: piece ^= line % 8; break;
    case CU_TENSOR_MAP_SWIZZLE_128B_ATOM_32B: piece ^= line % 4 * 2; break;
    default: break;
    }
    return line * 128 + piece * 16 + at % 16;
}

static void check_box(const Tensor &t, const Where &w, const char *name)
{
    size_t whole = t.bytes * t.size[0];
    if (t.rank > 1)
        whole = t.stride[t.rank - 2] * t.size[t.rank - 1];
    uint32_t n[5] = { 1, 1, 1, 1, 1 }, bytes = t.bytes;
    for (int d = 0; d < t.rank; d++)
        bytes *= n[d] = d ? (t.box[d] + t.step[d] - 1) / t.step[d] : t.box[d];
    uint8_t *in = allocate<uint8_t>(whole), *back = allocate<uint8_t>(whole), *out = allocate<uint8_t>(bytes);
    for (size_t i = 0; i < whole; i++)
        in[i] = (uint8_t)(i * 7 + i / 251), back[i] = 0xee;
    alignas(64) CUtensorMap map, other;
    expect(encode(&map, t, in), CUDA_SUCCESS, name);
    expect(encode(&other, t, back), CUDA_SUCCESS, name);
    cudaFuncSetAttribute(box, cudaFuncAttributeMaxDynamicSharedMemorySize, 200 * 1024);
    box<<<1, 128, bytes>>>(map, other, t.rank, w, bytes, out, true);
    finish(name);
    uint8_t *expected_back = (uint8_t *)malloc(whole);
    memset(expected_back, 0xee, whole);
    for (uint32_t i = 0; i < bytes / t.bytes; i++) {
        uint32_t rest = i;
        bool inside = true;
        size_t from = 0;
        for (int d = 0; d < t.rank; d++) {
            long long c = w.c[d] + (long long)(rest % n[d]) * (d ? t.step[d] : 1);
            rest /= n[d];
            inside &= c >= 0 && c < (long long)t.size[d];
            from += (size_t)c * (d ? t.stride[d - 1] : t.bytes);
        }
        for (uint32_t k = 0; k < t.bytes; k++) {
            uint8_t outside = t.fill ? (k + 1 == t.bytes ? 0x7e : 0xff) : 0; // of halves: the NaN that fma.oob knows
            expect((int)out[swizzled(t.swizzle, i * t.bytes + k)], (int)(inside ? in[from + k] : outside), name);
            if (inside)
                expected_back[from + k] = in[from + k];
        }
    }
    for (size_t i = 0; i < whole; i++)
        expect((int)back[i], (int)expected_back[i], "stored back");
    free(expected_back);
    cudaFree(in), cudaFree(back), cudaFree(out);
}

// ---- elements of 4 and 6 bits ----

static uint32_t bits_at(const uint8_t *p, size_t bit, int n)
{
    uint32_t v = 0;
    for (int k = 0; k < n; k++)
        v |= (uint32_t)(p[(bit + k) / 8] >> (bit + k) % 8 & 1) << k;
    return v;
}
static void set_bits(uint8_t *p, size_t bit, int n, uint32_t v)
{
    for (int k = 0; k < n; k++)
        p[(bit + k) / 8] = (uint8_t)((p[(bit + k) / 8] & ~(1 << (bit + k) % 8)) | (v >> k & 1) << (bit + k) % 8);
}

// apart: 16 elements in 16 bytes of shared memory. Stored: 6 of the bits of each byte; what is apart and has 4 is only loaded.
static void check_packed(const Tensor &t, int width, bool apart, const Where &w, const char *name)
{
    bool store = !apart || width == 6;
    uint32_t row = apart ? t.box[0] : t.box[0] / 2, bytes = row * t.box[1];
    size_t whole = t.stride[0] * t.size[1];
    uint8_t *in = allocate<uint8_t>(whole), *back = allocate<uint8_t>(whole), *out = allocate<uint8_t>(bytes);
    uint8_t *tile = (uint8_t *)malloc(bytes), *stored = (uint8_t *)malloc(bytes), *expected_back = (uint8_t *)malloc(whole);
    for (size_t i = 0; i < whole; i++)
        in[i] = (uint8_t)(i * 7 + i / 251), back[i] = expected_back[i] = 0xee;
    for (uint32_t i = 0; i < bytes; i++)
        tile[i] = 0x5a, stored[i] = (uint8_t)(i * 29 + i / 64);
    alignas(64) CUtensorMap map, other;
    expect(encode(&map, t, in), CUDA_SUCCESS, name);
    expect(encode(&other, t, back), CUDA_SUCCESS, name);
    packed_box<<<1, 128, bytes>>>(map, other, w, t.box[0] * t.box[1] * width / 8, bytes, out, store);
    finish(name);
    for (uint32_t y = 0; y < t.box[1]; y++)
        for (uint32_t x = 0; x < t.box[0]; x++) {
            long long cx = w.c[0] + (long long)x, cy = w.c[1] + (long long)y;
            bool inside = cx >= 0 && cx < (long long)t.size[0] && cy >= 0 && cy < (long long)t.size[1];
            size_t global = inside ? (size_t)cy * t.stride[0] * 8 + (size_t)cx * width : 0;
            uint32_t group = swizzled(t.swizzle, y * row + (apart ? x / 16 * 16 : x / 2));
            set_bits(tile, group * 8u + (apart ? x % 16 * width : x % 2 * 4), width, inside ? bits_at(in, global, width) : 0);
            if (inside && store)
                set_bits(expected_back, global, width, bits_at(stored, group * 8u + (apart ? x % 16 * 8 : x % 2 * 4), width));
        }
    for (uint32_t i = 0; i < bytes; i++)
        expect((int)out[i], (int)tile[i], name);
    for (size_t i = 0; i < whole; i++)
        expect((int)back[i], (int)expected_back[i], "packed elements stored back");
    free(tile), free(stored), free(expected_back);
    cudaFree(in), cudaFree(back), cudaFree(out);
}

static void check_narrow()
{
    const int U4 = CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B, U4_APART = CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN16B, U6 = CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B;
    check_packed({ 2, U4, 0, 0, 0, { 200, 20 }, { 112 }, { 64, 12 }, { 1, 1 } }, 4, false, { 30, 3 }, "4 bits");
    check_packed({ 2, U4, 3, 0, 0, { 400, 20 }, { 208 }, { 256, 9 }, { 1, 1 } }, 4, false, { 254, 15 }, "4 bits, 128B, edge");
    check_packed({ 2, U4, 2, 0, 0, { 200, 20 }, { 112 }, { 128, 9 }, { 1, 1 } }, 4, false, { -6, -2 }, "4 bits, 64B, start");
    check_packed({ 2, U4_APART, 0, 0, 0, { 256, 10 }, { 128 }, { 128, 7 }, { 1, 1 } }, 4, true, { 128, 2 }, "4 bits apart");
    check_packed({ 2, U4_APART, 3, 0, 0, { 384, 10 }, { 192 }, { 128, 12 }, { 1, 1 } }, 4, true, { 256, 3 }, "4 bits apart, 128B, edge");
    check_packed({ 2, U6, 0, 0, 0, { 256, 10 }, { 192 }, { 128, 7 }, { 1, 1 } }, 6, true, { 0, 2 }, "6 bits");
    check_packed({ 2, U6, 3, 0, 0, { 256, 10 }, { 224 }, { 128, 9 }, { 1, 1 } }, 6, true, { 128, -3 }, "6 bits, 128B");
    check_packed({ 2, U6, 4, 0, 0, { 256, 10 }, { 224 }, { 128, 9 }, { 1, 1 } }, 6, true, { 256, 0 }, "6 bits, outside");
    alignas(64) CUtensorMap map;
    uint8_t *p = allocate<uint8_t>(1 << 14);
    const Tensor six = { 2, U6, 3, 0, 0, { 256, 10 }, { 224 }, { 128, 9 }, { 1, 1 } };
    Tensor t = six;
    t.size[0] = 192;
    expect(encode(&map, t, p), CUDA_ERROR_INVALID_VALUE, "size no multiple of 128");
    t = six, t.stride[0] = 208;
    expect(encode(&map, t, p), CUDA_ERROR_INVALID_VALUE, "stride no multiple of 32");
    t = six, t.box[0] = 64;
    expect(encode(&map, t, p), CUDA_ERROR_INVALID_VALUE, "box other than 128");
    t = six, t.swizzle = CU_TENSOR_MAP_SWIZZLE_64B;
    expect(encode(&map, t, p), CUDA_ERROR_INVALID_VALUE, "a swizzle that 6 bits have not");
    t = six, t.fill = 1;
    expect(encode(&map, t, p), CUDA_ERROR_INVALID_VALUE, "NaN of 6 bits");
    expect(encode(&map, six, p + 16), CUDA_ERROR_INVALID_VALUE, "address no multiple of 32");
    t = six, t.type = U4, t.size[0] = 255;
    expect(encode(&map, t, p), CUDA_ERROR_INVALID_VALUE, "half a byte");
    cudaFree(p);
}

static void check_errors()
{
    alignas(64) CUtensorMap map[2];
    int *p = allocate<int>(4096);
    const Tensor good = { 2, CU_TENSOR_MAP_DATA_TYPE_INT32, 0, 0, 4, { 64, 64 }, { 256 }, { 16, 8 }, { 1, 1 } };
    expect(encode(map, good, p), CUDA_SUCCESS, "a good map");
    expect(encode(map, good, p + 1), CUDA_ERROR_INVALID_VALUE, "address");
    expect(encode((CUtensorMap *)((char *)map + 16), good, p), CUDA_ERROR_INVALID_VALUE, "map's address");
    Tensor t = good;
    t.rank = 6;
    expect(encode(map, t, p), CUDA_ERROR_INVALID_VALUE, "rank");
    t = good, t.stride[0] = 264;
    expect(encode(map, t, p), CUDA_ERROR_INVALID_VALUE, "stride");
    t = good, t.box[0] = 3;
    expect(encode(map, t, p), CUDA_ERROR_INVALID_VALUE, "row of 12 bytes");
    t = good, t.box[1] = 257;
    expect(encode(map, t, p), CUDA_ERROR_INVALID_VALUE, "box");
    t = good, t.swizzle = CU_TENSOR_MAP_SWIZZLE_32B;
    expect(encode(map, t, p), CUDA_ERROR_INVALID_VALUE, "row longer than the swizzle");
    t = good, t.step[1] = 9;
    expect(encode(map, t, p), CUDA_ERROR_INVALID_VALUE, "step");
    t = good, t.fill = 1;
    expect(encode(map, t, p), CUDA_ERROR_INVALID_VALUE, "NaN of integers");
    t = good, t.size[0] = 0;
    expect(encode(map, t, p), CUDA_ERROR_INVALID_VALUE, "size");
}

// ---- im2col: the filter's base goes through the images, between corners; every pixel is one base, moved by the offsets ----

#define LOAD_PIXELS(n, coordinates, offsets, ...)                                                                                              \
    asm volatile("cp.async.bulk.tensor." n ".shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%0], [%1, " coordinates "], [%2], " offsets ";" ::"r"( \
                     at(tile)),                                                                                                                \
                 "l"(&in), "r"(at(&bar)), __VA_ARGS__ : "memory")
#define STORE_PIXELS(n, coordinates, ...) \
    asm volatile("cp.async.bulk.tensor." n ".global.shared::cta.im2col_no_offs.bulk_group [%1, " coordinates "], [%0];" ::"r"(at(tile)), "l"(&back), __VA_ARGS__ : "memory")

__global__ void pixels(const __grid_constant__ CUtensorMap in, const __grid_constant__ CUtensorMap back, int rank, Where w, Where o, uint32_t bytes, uint8_t *out)
{
    extern __shared__ __align__(1024) uint8_t tile[];
    __shared__ uint64_t bar;
    uint16_t x = (uint16_t)o.c[0], y = (uint16_t)o.c[1], z = (uint16_t)o.c[2];
    if (threadIdx.x == 0) {
        begin(&bar, bytes);
        switch (rank) {
        case 3: LOAD_PIXELS("3d", "{%3, %4, %5}", "{%6}", "r"(w.c[0]), "r"(w.c[1]), "r"(w.c[2]), "h"(x)); break;
        case 4: LOAD_PIXELS("4d", "{%3, %4, %5, %6}", "{%7, %8}", "r"(w.c[0]), "r"(w.c[1]), "r"(w.c[2]), "r"(w.c[3]), "h"(x), "h"(y)); break;
        default:
            LOAD_PIXELS("5d", "{%3, %4, %5, %6, %7}", "{%8, %9, %10}", "r"(w.c[0]), "r"(w.c[1]), "r"(w.c[2]), "r"(w.c[3]), "r"(w.c[4]), "h"(x), "h"(y), "h"(z));
        }
    }
    __syncthreads();
    await(&bar);
    for (uint32_t i = threadIdx.x; i < bytes; i += blockDim.x)
        out[i] = tile[i];
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0) {
        switch (rank) {
        case 3: STORE_PIXELS("3d", "{%2, %3, %4}", "r"(w.c[0]), "r"(w.c[1]), "r"(w.c[2])); break;
        case 4: STORE_PIXELS("4d", "{%2, %3, %4, %5}", "r"(w.c[0]), "r"(w.c[1]), "r"(w.c[2]), "r"(w.c[3])); break;
        default: STORE_PIXELS("5d", "{%2, %3, %4, %5, %6}", "r"(w.c[0]), "r"(w.c[1]), "r"(w.c[2]), "r"(w.c[3]), "r"(w.c[4]));
        }
        asm volatile("cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;" ::: "memory");
    }
}

struct Image {
    int rank;
    int size[5]; // channels, width, height, depth, images: those there are, images last
    int lower[3], upper[3], step[3];
    int channels, pixels, swizzle;
};

static CUresult encode_image(CUtensorMap *map, const Image &m, void *p)
{
    cuuint64_t size[5], stride[4], bytes = 2;
    cuuint32_t step[5] = { 1, 1, 1, 1, 1 };
    for (int d = 0; d < m.rank; d++) {
        size[d] = (cuuint64_t)m.size[d];
        bytes *= size[d];
        if (d < m.rank - 1)
            stride[d] = bytes;
        if (d > 0 && d < m.rank - 1)
            step[d] = (cuuint32_t)m.step[d - 1];
    }
    return cuTensorMapEncodeIm2col(map, CU_TENSOR_MAP_DATA_TYPE_UINT16, (cuuint32_t)m.rank, p, size, stride, m.lower, m.upper, (cuuint32_t)m.channels,
                                   (cuuint32_t)m.pixels, step, CU_TENSOR_MAP_INTERLEAVE_NONE, (CUtensorMapSwizzle)m.swizzle,
                                   CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
}

// All bases in the order in which a convolution's outputs come: images, depth, height, width.
static std::vector<Where> bases_of(const Image &m)
{
    std::vector<Where> all;
    int low[3] = { 0, 0, 0 }, high[3] = { 0, 0, 0 }, step[3] = { 1, 1, 1 };
    for (int d = 0; d < m.rank - 2; d++)
        low[d] = m.lower[d], high[d] = m.size[d + 1] - 1 + m.upper[d], step[d] = m.step[d];
    for (int n = 0; n < m.size[m.rank - 1] + 2; n++) // beyond the last image is nothing
        for (int z = low[2]; z <= high[2]; z += step[2])
            for (int y = low[1]; y <= high[1]; y += step[1])
                for (int x = low[0]; x <= high[0]; x += step[0])
                    all.push_back({ { x, y, z, n } });
    return all;
}

static void check_pixels(const Image &m, int first, int channel, const Where &offset, const char *name)
{
    std::vector<Where> bases = bases_of(m);
    size_t count = 1;
    for (int d = 0; d < m.rank; d++)
        count *= (size_t)m.size[d];
    uint16_t *in = allocate<uint16_t>(count), *back = allocate<uint16_t>(count), *out = allocate<uint16_t>(m.channels * m.pixels);
    std::vector<uint16_t> expected_back(count, 0xeeee);
    for (size_t i = 0; i < count; i++)
        in[i] = (uint16_t)(i * 7 + i / 251 + 1), back[i] = 0xeeee;
    alignas(64) CUtensorMap map, other;
    expect(encode_image(&map, m, in), CUDA_SUCCESS, name);
    expect(encode_image(&other, m, back), CUDA_SUCCESS, name);
    Where w = { { channel } };
    for (int d = 1; d < m.rank - 1; d++)
        w.c[d] = bases[first].c[d - 1];
    w.c[m.rank - 1] = bases[first].c[3];
    uint32_t bytes = (uint32_t)(m.channels * m.pixels * 2);
    pixels<<<1, 64, bytes>>>(map, other, m.rank, w, offset, bytes, (uint8_t *)out);
    finish(name);
    for (int p = 0; p < m.pixels; p++)
        for (int c = 0; c < m.channels; c++)
            for (int stored = 0; stored < 2; stored++) {
                const Where &b = bases[first + p];
                size_t from = 0;
                bool inside = channel + c < m.size[0] && b.c[3] < m.size[m.rank - 1];
                from = (size_t)b.c[3];
                for (int d = m.rank - 2; d > 0; d--) {
                    int x = b.c[d - 1] + (stored ? 0 : offset.c[d - 1]);
                    inside &= x >= 0 && x < m.size[d];
                    from = from * m.size[d] + x;
                }
                from = from * m.size[0] + channel + c;
                uint32_t place = swizzled(m.swizzle, (uint32_t)(p * m.channels + c) * 2) / 2;
                if (!stored)
                    expect((int)out[place], inside ? in[from] : 0, name);
                else if (inside)
                    expected_back[from] = out[place];
            }
    for (size_t i = 0; i < count; i++)
        expect((int)back[i], (int)expected_back[i], "pixels stored back");
    cudaFree(in), cudaFree(back), cudaFree(out);
}

static void check_images()
{
    const Image rows = { 3, { 16, 20, 3 }, { -1 }, { -1 }, { 1 }, 8, 32, 0 };
    check_pixels(rows, 0, 0, { { 0 } }, "3d");
    check_pixels(rows, 13, 8, { { 2 } }, "3d, the filter's last tap");
    const Image planes = { 4, { 64, 9, 7, 3 }, { -1, -1 }, { -1, -1 }, { 1, 1 }, 64, 48, CU_TENSOR_MAP_SWIZZLE_128B };
    for (int y = 0; y < 3; y++)
        for (int x = 0; x < 3; x++)
            check_pixels(planes, 40 + x, 0, { { x, y } }, "4d, three by three, padded");
    const Image strided = { 4, { 32, 14, 9, 2 }, { 0, 0 }, { -2, -2 }, { 2, 3 }, 16, 24, 0 };
    check_pixels(strided, 5, 16, { { 1, 2 } }, "4d, strides");
    check_pixels(strided, 20, 24, { { 2, 0 } }, "4d, strides, channels and images beyond");
    const Image wide = { 4, { 16, 6, 5, 2 }, { -3, 2 }, { 2, -1 }, { 1, 1 }, 16, 16, CU_TENSOR_MAP_SWIZZLE_32B };
    check_pixels(wide, 7, 0, { { 0, 0 } }, "4d, uneven corners");
    const Image solids = { 5, { 32, 5, 4, 3, 2 }, { -1, 0, -1 }, { -1, -1, 0 }, { 1, 2, 1 }, 32, 40, CU_TENSOR_MAP_SWIZZLE_64B };
    check_pixels(solids, 11, 0, { { 1, 1, 2 } }, "5d");
    alignas(64) CUtensorMap map;
    void *p = allocate<uint8_t>(1 << 16);
    Image m = planes;
    m.lower[0] = 128;
    expect(encode_image(&map, m, p), CUDA_ERROR_INVALID_VALUE, "a corner of nine bits");
    m = planes, m.upper[1] = -9;
    expect(encode_image(&map, m, p), CUDA_ERROR_INVALID_VALUE, "nothing between the corners");
    m = planes, m.pixels = 1025;
    expect(encode_image(&map, m, p), CUDA_ERROR_INVALID_VALUE, "pixels");
    m = planes, m.channels = 128;
    expect(encode_image(&map, m, p), CUDA_ERROR_INVALID_VALUE, "channels beyond the swizzle");
    cudaFree(p);
}

int main()
{
    cudaFree(0);
    check_errors();
    check_images();
    check_narrow();
    const int INT = CU_TENSOR_MAP_DATA_TYPE_INT32, BYTE = CU_TENSOR_MAP_DATA_TYPE_UINT8, HALF = CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
    check_box({ 1, INT, 0, 0, 4, { 1000 }, {}, { 256 }, { 1 } }, { 100 }, "1d");
    check_box({ 1, INT, 0, 0, 4, { 1000 }, {}, { 256 }, { 1 } }, { 900 }, "1d, end");
    check_box({ 1, INT, 0, 0, 4, { 1000 }, {}, { 256 }, { 1 } }, { -7 }, "1d, start");
    check_box({ 2, HALF, 0, 0, 2, { 100, 70 }, { 208 }, { 64, 64 }, { 1, 1 } }, { 10, 3 }, "2d");
    check_box({ 2, HALF, 3, 0, 2, { 100, 70 }, { 208 }, { 64, 64 }, { 1, 1 } }, { 61, 30 }, "2d, 128B, edge");
    check_box({ 2, HALF, 3, 1, 2, { 100, 70 }, { 208 }, { 64, 32 }, { 1, 1 } }, { -3, -5 }, "2d, NaN outside");
    check_box({ 2, HALF, 2, 0, 2, { 96, 70 }, { 192 }, { 32, 48 }, { 1, 1 } }, { 32, 8 }, "2d, 64B");
    check_box({ 2, INT, 1, 0, 4, { 96, 70 }, { 384 }, { 8, 40 }, { 1, 1 } }, { 9, 8 }, "2d, 32B");
    check_box({ 2, INT, 4, 0, 4, { 96, 70 }, { 384 }, { 32, 40 }, { 1, 1 } }, { 9, 8 }, "2d, 128B of 32B");
    check_box({ 2, BYTE, 3, 0, 1, { 300, 70 }, { 304 }, { 112, 9 }, { 1, 1 } }, { 205, 64 }, "2d, bytes");
    check_box({ 3, INT, 0, 0, 4, { 20, 9, 7 }, { 96, 1024 }, { 12, 5, 3 }, { 1, 1, 1 } }, { 5, 6, 5 }, "3d");
    check_box({ 3, INT, 0, 0, 4, { 20, 12, 9 }, { 96, 1536 }, { 12, 5, 4 }, { 1, 2, 3 } }, { 0, 1, 2 }, "3d, steps");
    check_box({ 4, INT, 2, 0, 4, { 16, 5, 4, 3 }, { 64, 320, 1280 }, { 16, 3, 2, 2 }, { 1, 1, 1, 1 } }, { 0, 3, -1, 1 }, "4d");
    check_box({ 5, HALF, 0, 0, 2, { 24, 5, 4, 3, 3 }, { 48, 240, 960, 2880 }, { 8, 3, 2, 2, 3 }, { 1, 1, 1, 1, 1 } }, { 20, 3, -1, 1, 1 }, "5d");

    alignas(64) CUtensorMap map;
    int *p = allocate<int>(64 * 20), *other = allocate<int>(64 * 8), *out = allocate<int>(512);
    expect(encode(&map, { 2, INT, 0, 0, 4, { 40, 20 }, { 256 }, { 16, 8 }, { 1, 1 } }, p), CUDA_SUCCESS, "map");
    for (int k = 0; k < 3; k++)
        add_box<<<1, 128>>>(map, 30, 15);
    finish("reduction");
    for (int i = 0; i < 64 * 20; i++) {
        int x = i % 64 - 30, y = i / 64 - 15;
        expect(p[i], x >= 0 && x < 10 && y >= 0 && y < 5 ? 3 * (y * 16 + x + 1) : 0, "reduction");
    }

    for (int i = 0; i < 64 * 20; i++)
        p[i] = i;
    everywhere<<<4, 128>>>(map, out);
    finish("multicast");
    for (int i = 0; i < 3 * 128; i++)
        expect(out[i], (8 + i % 128 / 16) * 64 + 16 + i % 16, "multicast");

    for (int i = 0; i < 64 * 8; i++)
        other[i] = 5000 + i;
    CUtensorMap *made;
    cudaMalloc(&made, sizeof *made);
    replaced<<<1, 32>>>(map, made, other, out);
    finish("replaced");
    for (int i = 0; i < 128; i++)
        expect(out[i], i / 16 < 5 ? 5000 + i / 16 * 64 + i % 16 : 0, "replaced");
    return report("tensors");
}
