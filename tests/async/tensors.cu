// SPDX-License-Identifier: Apache-2.0
// Tensor maps and copies of boxes: 1 to 5 dimensions, edges, element strides, swizzles, reductions, fields replaced, errors.
// arch: sm_90a sm_100a
// options: -lcuda
#include "check.h"
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

int main()
{
    cudaFree(0);
    check_errors();
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
