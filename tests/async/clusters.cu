// SPDX-License-Identifier: Apache-2.0
// Clusters: indices, distributed shared memory, barriers, multicast, launch attributes and their errors.
// arch: sm_90 sm_100 sm_120
#include "check.h"
#include <cooperative_groups.h>
#include <cstdint>
namespace cg = cooperative_groups;

static __device__ uint32_t at(const void *p)
{
    return (uint32_t)__cvta_generic_to_shared(p);
}

__global__ void __cluster_dims__(2, 1, 2) indices(uint32_t *out)
{
    auto c = cg::this_cluster();
    uint32_t v[12];
    asm("mov.u32 %0, %%clusterid.x; mov.u32 %1, %%clusterid.y; mov.u32 %2, %%clusterid.z;" : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]));
    asm("mov.u32 %0, %%nclusterid.x; mov.u32 %1, %%nclusterid.y; mov.u32 %2, %%nclusterid.z;" : "=r"(v[3]), "=r"(v[4]), "=r"(v[5]));
    v[6] = c.block_index().x, v[7] = c.block_index().y, v[8] = c.block_index().z;
    v[9] = c.block_rank(), v[10] = c.num_blocks();
    asm("{.reg .pred p; mov.pred p, %%is_explicit_cluster; selp.u32 %0, 1, 0, p;}" : "=r"(v[11]));
    uint32_t b = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    for (int i = 0; i < 12 && threadIdx.x == 0; i++)
        out[b * 12 + i] = v[i];
}

// Each block reads its neighbour's array through a generic address, a 32-bit one, and adds to the next but one's.
__global__ void neighbours(int *out, int *sums)
{
    __shared__ int mine[64], sum[64];
    auto c = cg::this_cluster();
    unsigned rank = c.block_rank(), n = c.num_blocks(), t = threadIdx.x;
    mine[t] = (int)(blockIdx.x * 1000 + t);
    sum[t] = 0;
    c.sync();
    int *theirs = c.map_shared_rank(mine, (rank + 1) % n);
    uint32_t far_away, value, asked, in;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(far_away) : "r"(at(&mine[t])), "r"((rank + 2) % n));
    asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(value) : "r"(far_away) : "memory");
    asm("getctarank.shared::cluster.u32 %0, %1;" : "=r"(asked) : "r"(far_away));
    asm("{.reg .pred p; isspacep.shared::cluster p, %1; selp.u32 %0, 1, 0, p;}" : "=r"(in) : "l"(theirs));
    out[blockIdx.x * 64 + t] = theirs[63 - t] + (int)value;
    if (asked != (rank + 2) % n || !in || c.query_shared_rank(theirs) != (rank + 1) % n)
        out[blockIdx.x * 64 + t] = -1;
    for (unsigned r = 0; r < n; r++)
        atomicAdd(c.map_shared_rank(&sum[t], r), (int)rank + 1);
    asm volatile("{.reg .u32 a; mapa.shared::cluster.u32 a, %0, 0; red.shared::cluster.add.u32 [a], 100;}" ::"r"(at(&sum[t])) : "memory");
    c.sync();
    sums[blockIdx.x * 64 + t] = sum[t];
}

// Arrive, work, wait; many phases; the value of each phase is everyone's.
__global__ void phases(int *out, int rounds)
{
    __shared__ int box[2];
    auto c = cg::this_cluster();
    unsigned n = c.num_blocks(), next = (c.block_rank() + 1) % n;
    int total = 0;
    if (threadIdx.x == 0)
        box[0] = box[1] = 0;
    c.sync();
    for (int r = 0; r < rounds; r++) {
        if (threadIdx.x == 40)
            *c.map_shared_rank(&box[r & 1], next) = r * 10 + (int)c.block_rank();
        auto token = c.barrier_arrive();
        total += r & 1;
        c.barrier_wait(std::move(token));
        total += box[r & 1];
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = total;
    c.sync();
}

// One block's copy goes to all; each waits at its own barrier. Then a reply by a remote arrival.
__global__ void multicast(const int *in, int *out)
{
    __shared__ alignas(128) int tile[256];
    __shared__ uint64_t full, replies;
    auto c = cg::this_cluster();
    unsigned rank = c.block_rank(), n = c.num_blocks();
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(at(&full)) : "memory");
        asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(at(&replies)), "r"(n) : "memory");
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 1024;" ::"r"(at(&full)) : "memory");
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    c.sync();
    if (rank == 0 && threadIdx.x == 0)
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], 1024, [%2], %3;" ::"r"(at(tile)),
                     "l"(in + blockIdx.x / n * 256), "r"(at(&full)), "h"((uint16_t)((1u << n) - 1)) : "memory");
    asm volatile("{.reg .pred p; W: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0; @!p bra W;}" ::"r"(at(&full)) : "memory");
    out[blockIdx.x * 256 + threadIdx.x] = tile[threadIdx.x] + (int)rank;
    __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile("{.reg .u32 a; mapa.shared::cluster.u32 a, %0, 0; mbarrier.arrive.release.cluster.shared::cluster.b64 _, [a];}" ::"r"(at(&replies)) : "memory");
        if (rank == 0) {
            asm volatile("{.reg .pred p; V: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%0], 0; @!p bra V;}" ::"r"(at(&replies)) : "memory");
            out[blockIdx.x * 256] += 7;
        }
    }
    c.sync();
}

// A copy from one block's memory into another's, and a reduction there.
__global__ void __cluster_dims__(2) block_to_block(int *out)
{
    __shared__ alignas(16) int from[32], to[32];
    __shared__ uint64_t bar;
    auto c = cg::this_cluster();
    unsigned rank = c.block_rank(), t = threadIdx.x;
    from[t] = (int)(rank * 100 + t);
    to[t] = 1;
    if (t == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(at(&bar)) : "memory");
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 256;" ::"r"(at(&bar)) : "memory");
    }
    c.sync();
    if (t == 0) {
        uint32_t b, d;
        asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(b) : "r"(at(&bar)), "r"(rank ^ 1));
        asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(d) : "r"(at(to)), "r"(rank ^ 1));
        asm volatile("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], 128, [%2];" ::"r"(d), "r"(at(from)), "r"(b) : "memory");
        asm volatile("cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.s32 [%0], [%1], 128, [%2];" ::"r"(d), "r"(at(from)), "r"(b) : "memory");
    }
    asm volatile("{.reg .pred p; W: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0; @!p bra W;}" ::"r"(at(&bar)) : "memory");
    out[blockIdx.x * 32 + t] = to[t];
    c.sync();
}

template <typename... Formal, typename... Actual>
cudaError_t launch(unsigned cluster, unsigned blocks, unsigned threads, void (*kernel)(Formal...), Actual... a)
{
    cudaLaunchConfig_t config = {};
    config.gridDim = blocks;
    config.blockDim = threads;
    cudaLaunchAttribute attribute = {};
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim.x = cluster;
    attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
    config.attrs = &attribute;
    config.numAttrs = 1;
    return cudaLaunchKernelEx(&config, kernel, a...);
}

static void check_indices()
{
    const dim3 grid(4, 3, 2);
    uint32_t *out = allocate<uint32_t>(24 * 12);
    indices<<<grid, 32>>>(out);
    finish("indices");
    for (uint32_t z = 0; z < 2; z++)
        for (uint32_t y = 0; y < 3; y++)
            for (uint32_t x = 0; x < 4; x++) {
                const uint32_t want[12] = { x / 2, y, 0, 2, 3, 1, x % 2, 0, z, x % 2 + 2 * z, 4, 1 };
                for (int i = 0; i < 12; i++)
                    expect(out[(x + 4 * (y + 3 * z)) * 12 + i], want[i], "indices");
            }
}

static void check_neighbours(unsigned n)
{
    const unsigned blocks = 4 * n;
    int *out = allocate<int>(blocks * 64), *sums = allocate<int>(blocks * 64);
    expect(launch(n, blocks, 64, neighbours, out, sums), cudaSuccess, "launch");
    finish("neighbours");
    for (unsigned b = 0; b < blocks; b++)
        for (unsigned t = 0; t < 64; t++) {
            unsigned base = b / n * n, r = b % n;
            expect(out[b * 64 + t], (base + (r + 1) % n) * 1000 + 63 - t + (base + (r + 2) % n) * 1000 + t, "neighbours");
            expect(sums[b * 64 + t], n * (n + 1) / 2 + (r == 0 ? 100 * n : 0), "sums");
        }
}

static void check_errors()
{
    int *out = allocate<int>(4096);
    expect(launch(3, 8, 32, phases, out, 1), cudaErrorInvalidClusterSize, "not divisible");
    expect(cudaGetLastError(), cudaErrorInvalidClusterSize, "last error");
    expect(launch(16, 32, 32, phases, out, 1), cudaErrorInvalidClusterSize, "16 blocks, not allowed");
    cudaGetLastError();
    cudaLaunchConfig_t config = {};
    config.gridDim = 32;
    config.blockDim = 128;
    int n = 0;
    expect(cudaOccupancyMaxPotentialClusterSize(&n, phases, &config), cudaSuccess, "potential size");
    expect(n, 8, "potential size");
    cudaLaunchAttribute attribute = {};
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim.x = 4;
    attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
    config.attrs = &attribute;
    config.numAttrs = 1;
    expect(cudaOccupancyMaxActiveClusters(&n, phases, &config), cudaSuccess, "active clusters");
    expect(n >= 33 && n <= 132 * 32 / 4, true, "active clusters");
    expect(cudaFuncSetAttribute(phases, cudaFuncAttributeNonPortableClusterSizeAllowed, 1), cudaSuccess, "non-portable");
    attribute.val.clusterDim.x = 16;
    expect(cudaOccupancyMaxPotentialClusterSize(&n, phases, &config), cudaSuccess, "potential size");
    expect(n, 16, "potential size, non-portable");
    expect(launch(16, 32, 96, phases, out, 20), cudaSuccess, "16 blocks");
    finish("16 blocks");
    expect(launch(4, 8, 32, block_to_block, out), cudaErrorInvalidClusterSize, "other than compiled");
    cudaGetLastError();
    cudaFuncAttributes a;
    expect(cudaFuncGetAttributes(&a, block_to_block), cudaSuccess, "attributes");
    expect(a.requiredClusterWidth, 2, "required width");
}

// Captured launches keep their cluster, also with other arguments; and a node is given another.
static void check_graph()
{
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    cudaGraphNode_t node;
    size_t one = 1;
    int *out = allocate<int>(256), *sums = allocate<int>(256), *others = allocate<int>(256);
    cudaStreamCreate(&stream);
    cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
    cudaLaunchConfig_t config = {};
    config.gridDim = 4;
    config.blockDim = 64;
    config.stream = stream;
    cudaLaunchAttribute attribute = {};
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim.x = 2;
    attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
    config.attrs = &attribute;
    config.numAttrs = 1;
    expect(cudaLaunchKernelEx(&config, neighbours, out, sums), cudaSuccess, "captured launch");
    expect(cudaStreamEndCapture(stream, &graph), cudaSuccess, "capture");
    expect(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess, "instantiate");
    expect(cudaGraphGetNodes(graph, &node, &one), cudaSuccess, "nodes");
    cudaKernelNodeParams params = {};
    expect(cudaGraphKernelNodeGetParams(node, &params), cudaSuccess, "params");
    void *arguments[] = { &others, &sums };
    params.kernelParams = arguments;
    expect(cudaGraphExecKernelNodeSetParams(exec, node, &params), cudaSuccess, "other arguments");
    expect(cudaGraphLaunch(exec, stream), cudaSuccess, "graph launch");
    finish("graph");
    for (int i = 0; i < 256; i++)
        expect(others[i], (i / 128 * 2 + (i / 64 + 1) % 2) * 1000 + 63 - i % 64 + i / 64 * 1000 + i % 64, "graph");
    attribute.val.clusterDim.x = 4;
    expect(cudaGraphKernelNodeSetAttribute(node, cudaLaunchAttributeClusterDimension, &attribute.val), cudaSuccess, "another cluster");
    attribute.val.clusterDim.x = 3;
    expect(cudaGraphKernelNodeSetAttribute(node, cudaLaunchAttributeClusterDimension, &attribute.val), cudaErrorInvalidClusterSize, "not divisible");
    cudaGetLastError();
    cudaGraphExec_t again;
    expect(cudaGraphInstantiate(&again, graph, 0), cudaSuccess, "instantiate");
    expect(cudaGraphLaunch(again, stream), cudaSuccess, "graph launch");
    finish("graph");
    for (int i = 0; i < 256; i++)
        expect(sums[i], 10 + (i < 64 ? 400 : 0), "graph of four");
}

int main()
{
    check_graph();
    check_indices();
    for (unsigned n = 2; n <= 8; n += n < 4 ? 1 : 4)
        check_neighbours(n);

    const int rounds = 50;
    int *out = allocate<int>(4096), *in = allocate<int>(4096);
    for (int i = 0; i < 4096; i++)
        in[i] = i * 3;
    expect(launch(4, 12, 96, phases, out, rounds), cudaSuccess, "launch");
    finish("phases");
    for (int i = 0; i < 12 * 96; i++)
        expect(out[i], rounds / 2 + 10 * rounds * (rounds - 1) / 2 + rounds * (i / 96 % 4 + 3) % (4 * rounds), "phases");

    expect(launch(4, 8, 256, multicast, in, out), cudaSuccess, "launch");
    finish("multicast");
    for (int i = 0; i < 8 * 256; i++)
        expect(out[i], in[i / 1024 * 256 + i % 256] + i / 256 % 4 + (i % 1024 == 0 ? 7 : 0), "multicast");

    block_to_block<<<6, 32>>>(out);
    finish("block to block");
    for (int i = 0; i < 6 * 32; i++)
        expect(out[i], 2 * ((i / 32 % 2 ^ 1) * 100 + i % 32), "block to block");

    check_errors();
    return report("clusters");
}
