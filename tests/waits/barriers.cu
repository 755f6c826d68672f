// SPDX-License-Identifier: Apache-2.0
// Barriers that the lanes of a warp come to by different ways, at different times, or in part: what devices
// with independent thread scheduling make of them. Each kernel's result is computed on the host as well.
#include "check.h"

// Even and odd lanes meet at one barrier in two places of the code.
__global__ void two_places(int *out, const int *in)
{
    __shared__ int s[96];
    int t = threadIdx.x;
    if (in[t] & 1) {
        s[t] = t;
        asm volatile("barrier.sync 0;" ::: "memory");
        out[t] = s[(t + 1) % 96];
    } else {
        s[t] = 1000 + t;
        asm volatile("barrier.sync 0;" ::: "memory");
        out[t] = 2 * s[(t + 95) % 96];
    }
}

// The same with the block-wide barrier of CUDA C++, which devices of today take per thread too.
__global__ void two_syncthreads(int *out, const int *in)
{
    __shared__ int s[96];
    int t = threadIdx.x;
    if (in[t] & 1) {
        s[t] = t;
        __syncthreads();
        out[t] = s[(t + 1) % 96];
    } else {
        s[t] = 1000 + t;
        __syncthreads();
        out[t] = 2 * s[(t + 95) % 96];
    }
}

// Lanes take part in as many rounds as their number says and then end; the others go on.
__global__ void leaving(int *out, const int *rounds, int most)
{
    __shared__ int sum;
    int t = threadIdx.x, seen = 0;
    if (t == 0)
        sum = 0;
    __syncthreads();
    for (int i = 0; i < most; i++) {
        if (i == rounds[t]) {
            out[t] = seen;
            return;
        }
        atomicAdd(&sum, 1);
        __syncthreads();
        seen = sum;
        asm volatile("barrier.sync 0;" ::: "memory");
    }
    out[t] = seen;
}

// Reductions over the block, come to by two ways, in a loop that threads leave one after the other.
__global__ void reductions(int *out, const int *in, int n)
{
    int t = threadIdx.x, sum = 0;
    for (int i = 0; i < n; i++) {
        int mine = in[(t + i) % blockDim.x], count;
        if (mine % 3 == 0)
            count = __syncthreads_count(mine & 1);
        else
            count = __syncthreads_count(mine & 2);
        sum += count;
        int all = mine & 1 ? __syncthreads_and(mine < 100) : __syncthreads_and(mine != i);
        int any = mine & 4 ? __syncthreads_or(mine == i) : __syncthreads_or(0);
        sum += 1000 * all + 100000 * any;
        if (in[t] % n == i)
            break;
    }
    out[t] = sum;
}
static void expect_reductions(int *out, const int *in, int threads, int n)
{
    bool *gone = new bool[threads]();
    for (int t = 0; t < threads; t++)
        out[t] = 0;
    for (int i = 0; i < n; i++) {
        int count = 0, all = 1, any = 0;
        for (int t = 0; t < threads; t++) {
            if (gone[t])
                continue;
            int mine = in[(t + i) % threads];
            count += mine % 3 == 0 ? (mine & 1) != 0 : (mine & 2) != 0;
            all &= mine & 1 ? mine < 100 : mine != i;
            any |= mine & 4 ? mine == i : 0;
        }
        for (int t = 0; t < threads; t++) {
            if (gone[t])
                continue;
            out[t] += count + 1000 * all + 100000 * any;
            gone[t] = in[t] % n == i;
        }
    }
    delete[] gone;
}

// Named barriers with counts: two warps make, two take, through two buffers (as pipelines do).
__global__ void pipeline(int *out, int rounds)
{
    __shared__ int buffer[2][64];
    int t = threadIdx.x;
    if (t < 64) {
        for (int i = 0; i < rounds; i++) {
            int which = i & 1;
            if (i >= 2)
                asm volatile("bar.sync %0, 128;" ::"r"(3 + which) : "memory"); // it is empty
            buffer[which][t] = i * 64 + t;
            asm volatile("bar.arrive %0, 128;" ::"r"(1 + which) : "memory"); // it is full
        }
    } else {
        int sum = 0;
        for (int i = 0; i < rounds; i++) {
            int which = i & 1;
            asm volatile("bar.sync %0, 128;" ::"r"(1 + which) : "memory");
            sum += buffer[which][(t - 64) ^ 1] * (i + 1);
            if (i + 2 < rounds)
                asm volatile("bar.arrive %0, 128;" ::"r"(3 + which) : "memory");
        }
        out[t - 64] = sum;
    }
}

// The same within divergent warps: half of each warp comes by one way, half by another.
__global__ void split_pipeline(int *out, const int *in, int rounds)
{
    __shared__ int buffer[64];
    int t = threadIdx.x, sum = 0;
    bool odd = in[t] & 1;
    for (int i = 0; i < rounds; i++) {
        if (t < 64) {
            buffer[t] = i * 64 + t;
            if (odd)
                asm volatile("barrier.arrive 1, 128;" ::: "memory");
            else
                asm volatile("barrier.arrive 1, 128;" ::: "memory");
            if (odd)
                asm volatile("barrier.sync 2, 128;" ::: "memory");
            else
                asm volatile("barrier.sync 2, 128;" ::: "memory");
        } else {
            if (odd)
                asm volatile("barrier.sync 1, 128;" ::: "memory");
            else
                asm volatile("barrier.sync 1, 128;" ::: "memory");
            sum += buffer[(t - 64) ^ 33] * (i + 1);
            asm volatile("barrier.arrive 2, 128;" ::: "memory");
        }
    }
    if (t >= 64)
        out[t - 64] = sum;
}

// A barrier whose number each warp works out for itself.
__global__ void own_number(int *out, const int *in)
{
    __shared__ int s[128];
    int t = threadIdx.x, pair = in[t / 32] & 7;
    s[t] = t * 3;
    asm volatile("barrier.sync %0, 64;" ::"r"(pair) : "memory");
    out[t] = s[t ^ 32];
}

// Some lanes spin for what lanes write that wait at the barrier's other place until then.
__global__ void spin_then_meet(int *out, const int *in)
{
    __shared__ volatile int flag;
    int t = threadIdx.x;
    if (t == 0)
        flag = 0;
    __syncthreads();
    if (in[t] & 1) {
        while (flag == 0) {
        }
        out[t] = flag + t;
        __syncthreads();
    } else {
        if (t == 2)
            flag = 7;
        __syncthreads();
        out[t] = 100 * flag + t;
    }
}

int main()
{
    enum { N = 128 };
    int *out, *in, want[N];
    cudaMallocManaged(&out, N * sizeof *out);
    cudaMallocManaged(&in, N * sizeof *in);
    bool ok;

    for (int t = 0; t < N; t++)
        in[t] = t * 7 + t / 5;
    for (int k = 0; k < 2; k++) {
        if (k == 0)
            RUN(two_places<<<1, 96>>>(out, in));
        else
            RUN(two_syncthreads<<<1, 96>>>(out, in));
        ok = true;
        for (int t = 0; t < 96; t++) {
            int from = in[t] & 1 ? (t + 1) % 96 : (t + 95) % 96, s = in[from] & 1 ? from : 1000 + from;
            ok &= out[t] == (in[t] & 1 ? s : 2 * s);
        }
        check(k == 0 ? "two places" : "two __syncthreads", ok);
    }

    for (int threads : { 40, 64, 100 }) {
        for (int t = 0; t < N; t++)
            in[t] = (t * 5 + 3) % 11;
        RUN(leaving<<<1, threads>>>(out, in, 9));
        ok = true;
        for (int t = 0; t < threads; t++) {
            int sum = 0, seen = 0;
            for (int i = 0; i < 9 && i < in[t]; i++) {
                for (int u = 0; u < threads; u++)
                    sum += in[u] > i;
                seen = sum;
            }
            ok &= out[t] == seen;
        }
        check("leaving", ok);
    }

    for (int threads : { 32, 50, 128 }) {
        for (int t = 0; t < N; t++)
            in[t] = (t * 37 + 11) % 53;
        RUN(reductions<<<1, threads>>>(out, in, 9));
        expect_reductions(want, in, threads, 9);
        ok = true;
        for (int t = 0; t < threads; t++)
            ok &= out[t] == want[t];
        check("reductions", ok);
    }

    for (int k = 0; k < 2; k++) {
        int rounds = 7;
        if (k == 0)
            RUN(pipeline<<<1, 128>>>(out, rounds));
        else
            RUN(split_pipeline<<<1, 128>>>(out, in, rounds));
        ok = true;
        for (int t = 0; t < 64; t++) {
            int sum = 0;
            for (int i = 0; i < rounds; i++)
                sum += (i * 64 + (t ^ (k == 0 ? 1 : 33))) * (i + 1);
            ok &= out[t] == sum;
        }
        check(k == 0 ? "pipeline" : "split pipeline", ok);
    }

    int pairs[4] = { 5, 5, 2, 2 };
    for (int w = 0; w < 4; w++)
        in[w] = pairs[w];
    RUN(own_number<<<1, 128>>>(out, in));
    ok = true;
    for (int t = 0; t < 128; t++)
        ok &= out[t] == (t ^ 32) * 3;
    check("own number", ok);

    for (int t = 0; t < N; t++)
        in[t] = t;
    RUN(spin_then_meet<<<1, 64>>>(out, in));
    ok = true;
    for (int t = 0; t < 64; t++)
        ok &= out[t] == (t & 1 ? 7 + t : 700 + t);
    check("spin, then meet", ok);
    printf("barriers: %s\n", failures ? "FAILED" : "PASSED");
    return failures != 0;
}
