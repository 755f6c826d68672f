// SPDX-License-Identifier: Apache-2.0
// Transaction barriers and bulk copies, instruction by instruction.
// arch: sm_90 sm_100 sm_120
#include "check.h"
#include <cstdint>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

static __device__ uint32_t at(const void *p)
{
    return (uint32_t)__cvta_generic_to_shared(p);
}
static __device__ void init(uint64_t *b, uint32_t n)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(at(b)), "r"(n) : "memory");
}
static __device__ uint64_t arrive(uint64_t *b, uint32_t n)
{
    uint64_t s;
    asm volatile("mbarrier.arrive.release.cta.shared::cta.b64 %0, [%1], %2;" : "=l"(s) : "r"(at(b)), "r"(n) : "memory");
    return s;
}
static __device__ uint64_t arrive_tx(uint64_t *b, uint32_t n)
{
    uint64_t s;
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 %0, [%1], %2;" : "=l"(s) : "r"(at(b)), "r"(n) : "memory");
    return s;
}
static __device__ bool done(uint64_t *b, uint64_t s)
{
    uint32_t d;
    asm volatile("{.reg .pred p; mbarrier.test_wait.shared.b64 p, [%1], %2; selp.b32 %0, 1, 0, p;}" : "=r"(d) : "r"(at(b)), "l"(s) : "memory");
    return d;
}
static __device__ bool parity_done(uint64_t *b, uint32_t parity)
{
    uint32_t d;
    asm volatile("{.reg .pred p; mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 p, [%1], %2, 1000; selp.b32 %0, 1, 0, p;}"
                 : "=r"(d) : "r"(at(b)), "r"(parity) : "memory");
    return d;
}
static __device__ uint32_t pending(uint64_t s)
{
    uint32_t n;
    asm("mbarrier.pending_count.b64 %0, %1;" : "=r"(n) : "l"(s));
    return n;
}

// One thread: counts, phases and bytes as the manual counts them.
__global__ void counts(int *out)
{
    __shared__ uint64_t b[2];
    int n = 0;
    init(&b[0], 3);
    out[n++] = !parity_done(&b[0], 0) && parity_done(&b[0], 1);
    uint64_t s = arrive(&b[0], 1);
    out[n++] = pending(s) == 3 && !done(&b[0], s);
    uint64_t t = arrive(&b[0], 1);
    out[n++] = pending(t) == 2;
    t = arrive(&b[0], 1);
    out[n++] = pending(t) == 1 && done(&b[0], s) && done(&b[0], t);
    out[n++] = parity_done(&b[0], 0) && !parity_done(&b[0], 1);
    // arrive_drop: this phase gets the arrival, the next expects one less
    asm volatile("mbarrier.arrive_drop.shared.b64 %0, [%1];" : "=l"(s) : "r"(at(&b[0])) : "memory");
    arrive(&b[0], 2);
    out[n++] = done(&b[0], s);
    t = arrive(&b[0], 1);
    out[n++] = pending(t) == 2 && !done(&b[0], t);
    arrive(&b[0], 1);
    out[n++] = done(&b[0], t);
    init(&b[1], 5);
    asm volatile("mbarrier.arrive.noComplete.shared.b64 %0, [%1], 2;" : "=l"(s) : "r"(at(&b[1])) : "memory");
    t = arrive(&b[1], 3);
    out[n++] = pending(s) == 5 && pending(t) == 3 && done(&b[1], s);
    // bytes: the phase ends when arrivals and bytes both are there, in any order
    init(&b[1], 1);
    s = arrive_tx(&b[1], 48);
    out[n++] = !done(&b[1], s);
    asm volatile("mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%0], 32;" ::"r"(at(&b[1])) : "memory");
    out[n++] = !done(&b[1], s);
    asm volatile("mbarrier.complete_tx.relaxed.cluster.shared::cluster.b64 [%0], 16;" ::"r"(at(&b[1])) : "memory");
    out[n++] = done(&b[1], s);
    asm volatile("mbarrier.complete_tx.shared::cta.b64 [%0], 64;" ::"r"(at(&b[1])) : "memory");
    asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], 32;" ::"r"(at(&b[1])) : "memory");
    out[n++] = !parity_done(&b[1], 1);
    s = arrive_tx(&b[1], 32);
    out[n++] = done(&b[1], s);
    // cp.async.mbarrier.arrive: net nothing, or an arrival with .noinc
    init(&b[0], 1);
    asm volatile("cp.async.mbarrier.arrive.shared.b64 [%0];" ::"r"(at(&b[0])) : "memory");
    out[n++] = !parity_done(&b[0], 0);
    asm volatile("cp.async.mbarrier.arrive.noinc.b64 [%0];" ::"l"(&b[0]) : "memory");
    out[n++] = parity_done(&b[0], 0);
    asm volatile("mbarrier.inval.shared.b64 [%0];" ::"r"(at(&b[0])) : "memory");
    out[n] = -1;
}

// Tiles through shared memory: in with complete_tx, out with a bulk group. Waits from all warps.
constexpr int TILE = 1024;
__global__ void through(const int *in, int *out, int tiles)
{
    __shared__ alignas(128) int tile[2][TILE];
    __shared__ uint64_t full[2];
    const int *from = in + (size_t)blockIdx.x * tiles * TILE;
    int *to = out + (size_t)blockIdx.x * tiles * TILE;
    if (threadIdx.x == 0) {
        init(&full[0], 1);
        init(&full[1], 1);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    for (int k = 0; k < tiles; k++) {
        int s = k & 1;
        if (threadIdx.x == 0) {
            asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
            arrive_tx(&full[s], sizeof tile[s]);
            asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(at(tile[s])),
                         "l"(from + k * TILE), "r"((int)sizeof tile[s]), "r"(at(&full[s])) : "memory");
        }
        while (!parity_done(&full[s], k / 2 & 1)) {}
        for (int i = threadIdx.x; i < TILE; i += blockDim.x)
            tile[s][i] = tile[s][i] * 2 + 1;
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        __syncthreads();
        if (threadIdx.x == 0) {
            asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to + k * TILE), "r"(at(tile[s])),
                         "r"((int)sizeof tile[s]) : "memory");
            asm volatile("cp.async.bulk.commit_group;" ::: "memory");
        }
        __syncthreads();
    }
    if (threadIdx.x == 0)
        asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

#define REDUCE(name, type, words)                                                                                       \
    __global__ void name(type *out, const type *in)                                                                     \
    {                                                                                                                   \
        __shared__ alignas(16) type v[32];                                                                              \
        v[threadIdx.x] = in[blockIdx.x * 32 + threadIdx.x];                                                             \
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");                                                    \
        __syncthreads();                                                                                                \
        if (threadIdx.x == 0) {                                                                                         \
            asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group." words " [%0], [%1], %2;" ::"l"(out),      \
                         "r"(at(v)), "r"((int)sizeof v) : "memory");                                                    \
            asm volatile("cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;" ::: "memory");                       \
        }                                                                                                               \
    }
REDUCE(add_u32, uint32_t, "add.u32")
REDUCE(min_s32, int, "min.s32")
REDUCE(max_s64, long long, "max.s64")
REDUCE(xor_b64, unsigned long long, "xor.b64")
REDUCE(inc_u32, uint32_t, "inc.u32")
REDUCE(add_f32, float, "add.f32")
REDUCE(add_f64, double, "add.f64")
REDUCE(add_f16, __half, "add.noftz.f16")
REDUCE(min_bf16, __nv_bfloat16, "min.bf16")

__global__ void async_stores(uint32_t *out)
{
    __shared__ uint64_t bar;
    __shared__ alignas(16) uint32_t box[8];
    if (threadIdx.x == 0) {
        init(&bar, 1);
        for (int i = 0; i < 8; i++)
            box[i] = 100;
        uint64_t s = arrive_tx(&bar, 16 + 8 + 4);
        asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%0], {1, 2, 3, 4}, [%1];" ::"r"(at(box)), "r"(at(&bar)) : "memory");
        asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b64 [%0], %2, [%1];" ::"r"(at(box + 4)), "r"(at(&bar)), "l"(0x600000005ull) : "memory");
        asm volatile("red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%0], 7, [%1];" ::"r"(at(box + 6)), "r"(at(&bar)) : "memory");
        for (int i = 0; i < 8; i++)
            out[i] = box[i];
        out[8] = done(&bar, s);
    }
}

template <typename T, typename Kernel, typename Op> void reduce(Kernel kernel, Op op, const char *name)
{
    T *out = allocate<T>(32), *in = allocate<T>(32 * 7), want[32];
    for (int i = 0; i < 32; i++)
        want[i] = out[i] = (T)(float)(i * 5 % 11);
    for (int i = 0; i < 32 * 7; i++)
        in[i] = (T)(float)(i * 13 % 29 - 4);
    for (int b = 0; b < 7; b++)
        for (int i = 0; i < 32; i++)
            want[i] = op(want[i], in[b * 32 + i]);
    kernel<<<7, 32>>>(out, in);
    finish(name);
    for (int i = 0; i < 32; i++)
        expect((double)out[i], (double)want[i], name);
}

int main()
{
    int *flags = allocate<int>(64), n = 0;
    counts<<<1, 1>>>(flags);
    finish("counts");
    for (; flags[n] >= 0; n++)
        if (!flags[n]) {
            printf("counts: step %d\n", n);
            failures++;
        }
    expect(n, 16, "counts: steps");

    const int blocks = 6, tiles = 5;
    int *in = allocate<int>(blocks * tiles * TILE), *out = allocate<int>(blocks * tiles * TILE);
    for (int i = 0; i < blocks * tiles * TILE; i++)
        in[i] = i;
    through<<<blocks, 192>>>(in, out, tiles);
    finish("bulk copies");
    for (int i = 0; i < blocks * tiles * TILE; i++)
        expect(out[i], 2 * i + 1, "bulk copies");

    reduce<uint32_t>(add_u32, [](uint32_t a, uint32_t b) { return a + b; }, "add.u32");
    reduce<int>(min_s32, [](int a, int b) { return a < b ? a : b; }, "min.s32");
    reduce<long long>(max_s64, [](long long a, long long b) { return a > b ? a : b; }, "max.s64");
    reduce<unsigned long long>(xor_b64, [](unsigned long long a, unsigned long long b) { return a ^ b; }, "xor.b64");
    reduce<uint32_t>(inc_u32, [](uint32_t a, uint32_t b) { return a >= b ? 0 : a + 1; }, "inc.u32");
    reduce<float>(add_f32, [](float a, float b) { return a + b; }, "add.f32");
    reduce<double>(add_f64, [](double a, double b) { return a + b; }, "add.f64");
    reduce<__half>(add_f16, [](__half a, __half b) { return __half((float)a + (float)b); }, "add.noftz.f16");
    reduce<__nv_bfloat16>(min_bf16, [](__nv_bfloat16 a, __nv_bfloat16 b) { return (float)a < (float)b ? a : b; }, "min.bf16");

    uint32_t *words = allocate<uint32_t>(16);
    async_stores<<<1, 32>>>(words);
    finish("st.async");
    const uint32_t want[9] = { 1, 2, 3, 4, 5, 6, 107, 100, 1 };
    for (int i = 0; i < 9; i++)
        expect(words[i], want[i], "st.async");
    return report("bulk");
}
