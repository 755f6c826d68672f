// SPDX-License-Identifier: Apache-2.0
// cuda::barrier, cuda::pipeline and memcpy_async as libcu++ and cooperative groups write them.
// arch: sm_80 sm_90 sm_100 sm_120
#include "check.h"
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cuda/barrier>
#include <cuda/pipeline>
#include <utility>
namespace cg = cooperative_groups;
using block_barrier = cuda::barrier<cuda::thread_scope_block>;

__global__ void phases(int *out, int rounds)
{
    __shared__ block_barrier bar;
    __shared__ int sum[2];
    if (threadIdx.x == 0) {
        init(&bar, blockDim.x);
        sum[0] = sum[1] = 0;
    }
    __syncthreads();
    for (int r = 0; r < rounds; r++) {
        atomicAdd(&sum[r & 1], (int)threadIdx.x + r);
        auto token = bar.arrive();
        bar.wait(std::move(token));
        if (threadIdx.x == 0)
            out[blockIdx.x * rounds + r] = sum[r & 1];
        bar.arrive_and_wait();
        if (threadIdx.x == 0)
            sum[r & 1] = 0;
    }
}

// Warp 0 fills slots, the others drain them: full and empty barriers, waits from both sides.
constexpr int SLOTS = 2, WIDTH = 32;
__global__ void producer_consumer(const int *in, int *out, int steps)
{
    __shared__ block_barrier full[SLOTS], empty[SLOTS];
    __shared__ int slot[SLOTS][WIDTH];
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32, consumers = blockDim.x - 32;
    if (threadIdx.x == 0)
        for (int s = 0; s < SLOTS; s++) {
            init(&full[s], blockDim.x);
            init(&empty[s], blockDim.x);
        }
    __syncthreads();
    if (warp == 0) {
        for (int k = 0; k < steps; k++) {
            empty[k % SLOTS].arrive_and_wait();
            slot[k % SLOTS][lane] = in[(blockIdx.x * steps + k) * WIDTH + lane];
            (void)full[k % SLOTS].arrive();
        }
    } else {
        int total = 0;
        for (int s = 0; s < SLOTS; s++)
            (void)empty[s].arrive();
        for (int k = 0; k < steps; k++) {
            full[k % SLOTS].arrive_and_wait();
            total += slot[k % SLOTS][(lane + k) % WIDTH];
            (void)empty[k % SLOTS].arrive();
        }
        out[blockIdx.x * consumers + threadIdx.x - 32] = total;
    }
}

// One lane waits for what the others of its warp bring later in the program.
__global__ void lanes_apart(int *out)
{
    __shared__ block_barrier bar;
    __shared__ int value;
    if (threadIdx.x == 0) {
        init(&bar, 32);
        value = 0;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        bar.arrive_and_wait();
        *out = value;
    } else {
        atomicAdd(&value, 3);
        (void)bar.arrive();
    }
}

__global__ void dropped(int *out)
{
    __shared__ block_barrier bar;
    if (threadIdx.x == 0)
        init(&bar, blockDim.x);
    __syncthreads();
    if (threadIdx.x >= 64) {
        bar.arrive_and_drop();
        return;
    }
    for (int k = 0; k < 4; k++)
        bar.arrive_and_wait();
    out[threadIdx.x] = (int)threadIdx.x + 1;
}

constexpr int STAGES = 3, TILE = 128;
__global__ void pipelined(const float *in, float *out, int tiles)
{
    __shared__ float buffer[STAGES][TILE];
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, STAGES> state;
    auto block = cg::this_thread_block();
    auto pipe = cuda::make_pipeline(block, &state);
    const float *mine = in + (size_t)blockIdx.x * tiles * TILE;
    float total = 0;
    for (int compute = 0, fetch = 0; compute < tiles; compute++) {
        for (; fetch < tiles && fetch < compute + STAGES; fetch++) {
            pipe.producer_acquire();
            cuda::memcpy_async(block, buffer[fetch % STAGES], mine + fetch * TILE,
                               cuda::aligned_size_t<16>(sizeof buffer[0]), pipe);
            pipe.producer_commit();
        }
        pipe.consumer_wait();
        total += buffer[compute % STAGES][(threadIdx.x + compute) % TILE];
        pipe.consumer_release();
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = total;
}

__global__ void with_barrier(const int *in, int *out)
{
    __shared__ alignas(16) int tile[512];
    __shared__ block_barrier bar;
    auto block = cg::this_thread_block();
    if (block.thread_rank() == 0)
        init(&bar, block.size());
    block.sync();
    cuda::memcpy_async(block, tile, in + blockIdx.x * 512, cuda::aligned_size_t<16>(sizeof tile), bar);
    bar.arrive_and_wait();
    out[blockIdx.x * blockDim.x + threadIdx.x] = tile[511 - threadIdx.x];
}

__global__ void with_group(const int *in, int *out)
{
    __shared__ int tile[512];
    auto block = cg::this_thread_block();
    cg::memcpy_async(block, tile, in + blockIdx.x * 512, sizeof tile);
    cg::wait(block);
    out[blockIdx.x * blockDim.x + threadIdx.x] = tile[511 - threadIdx.x];
}

int main()
{
    const int rounds = 9, threads = 256, blocks = 5;
    int *out = allocate<int>(4096);
    phases<<<blocks, threads>>>(out, rounds);
    finish("phases");
    for (int b = 0; b < blocks; b++)
        for (int r = 0; r < rounds; r++)
            expect(out[b * rounds + r], threads * (threads - 1) / 2 + threads * r, "phases");

    const int steps = 300;
    int *in = allocate<int>(blocks * steps * WIDTH);
    for (int i = 0; i < blocks * steps * WIDTH; i++)
        in[i] = i * 7 % 1000;
    producer_consumer<<<blocks, 160>>>(in, out, steps);
    finish("producer and consumers");
    for (int b = 0; b < blocks; b++)
        for (int t = 0; t < 128; t++) {
            int want = 0;
            for (int k = 0; k < steps; k++)
                want += in[(b * steps + k) * WIDTH + (t % 32 + k) % WIDTH];
            expect(out[b * 128 + t], want, "producer and consumers");
        }

    lanes_apart<<<1, 32>>>(out);
    finish("lanes apart");
    expect(out[0], 93, "lanes apart");

    dropped<<<1, 128>>>(out);
    finish("dropped");
    for (int t = 0; t < 64; t++)
        expect(out[t], t + 1, "dropped");

    const int tiles = 10;
    float *fin = allocate<float>(blocks * tiles * TILE), *fout = allocate<float>(blocks * 128);
    for (int i = 0; i < blocks * tiles * TILE; i++)
        fin[i] = (float)(i % 97);
    pipelined<<<blocks, 128>>>(fin, fout, tiles);
    finish("pipeline");
    for (int b = 0; b < blocks; b++)
        for (int t = 0; t < 128; t++) {
            float want = 0;
            for (int k = 0; k < tiles; k++)
                want += fin[(b * tiles + k) * TILE + (t + k) % TILE];
            expect(fout[b * 128 + t], want, "pipeline");
        }

    for (int variant = 0; variant < 2; variant++) {
        if (variant)
            with_group<<<4, 512>>>(in, out);
        else
            with_barrier<<<4, 512>>>(in, out);
        finish("memcpy_async");
        for (int i = 0; i < 2048; i++)
            expect(out[i], in[i / 512 * 512 + 511 - i % 512], "memcpy_async");
    }
    return report("barriers");
}
