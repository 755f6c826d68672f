// SPDX-License-Identifier: Apache-2.0
// Lanes of one warp that wait for one another where their ways have parted: warp barriers with masks, flags in
// memory, locks of their own, elections. Only devices with independent thread scheduling promise an end.
#include "check.h"

// The halves of a warp go different ways and meet at warp barriers in both: each reads what the other wrote.
__global__ void halves(int *out, const int *in)
{
    __shared__ volatile int s[64];
    int t = threadIdx.x;
    if (in[t] % 2) {
        s[t] = 10 * t;
        __syncwarp();
        int a = s[t ^ 1];
        __syncwarp();
        s[t] = a + 1;
        __syncwarp();
        out[t] = s[t ^ 1];
    } else {
        s[t] = 1000 * t;
        __syncwarp();
        int a = s[t ^ 1];
        __syncwarp();
        s[t] = a + 2;
        __syncwarp();
        out[t] = -s[t ^ 1];
    }
}

// Groups of four lanes, each with a mask of its own, as often as the group's number says.
__global__ void groups(int *out)
{
    __shared__ volatile int s[64];
    int t = threadIdx.x, lane = t % 32, group = lane / 4, sum = 0;
    unsigned mask = 15u << (4 * group);
    for (int i = 0; i <= group; i++) {
        s[t] = t * (i + 1);
        __syncwarp(mask);
        sum += s[t ^ (1 + i % 3)];
        __syncwarp(mask);
    }
    out[t] = sum;
}

// Lane 0 spins for lane 1's store, which stands on the other side of the branch; then the other way round.
__global__ void ping_pong(int *out, int rounds)
{
    __shared__ volatile int turn[2];
    int t = threadIdx.x, w = t / 32, seen = 0;
    if (t % 32 == 0)
        turn[w] = 0;
    __syncthreads();
    if (t % 32 == 0) {
        for (int i = 0; i < rounds; i++) {
            while (turn[w] != 2 * i)
                ;
            seen += turn[w];
            turn[w] = 2 * i + 1;
        }
    } else if (t % 32 == 1) {
        for (int i = 0; i < rounds; i++) {
            while (turn[w] != 2 * i + 1)
                __nanosleep(20);
            seen += turn[w];
            turn[w] = 2 * i + 2;
        }
    }
    out[t] = seen;
}

// A chain through all lanes of all warps: each waits for the one after it, which stands later in the loop.
__global__ void chain(volatile int *flags, int *out, int n)
{
    int t = threadIdx.x;
    if (t == n - 1)
        flags[t] = 1;
    else {
        while (flags[t + 1] == 0)
            ;
        flags[t] = flags[t + 1] + 1;
    }
    out[t] = flags[t];
}

// Locks inside a lock, every lane for itself; the inner ones are of different lanes.
__global__ void nested_locks(int *locks, volatile int *counts)
{
    int t = threadIdx.x, inner = 1 + t % 3;
    for (int i = 0; i < 3; i++) {
        while (atomicCAS(&locks[0], 0, 1) != 0)
            ;
        while (atomicCAS(&locks[inner], 0, 1) != 0)
            ;
        counts[0] = counts[0] + 1;
        counts[inner] = counts[inner] + t;
        __threadfence();
        atomicExch(&locks[inner], 0);
        atomicExch(&locks[0], 0);
    }
}

// One lane makes for the rest of its warp, which waits at a warp barrier meanwhile and then reads.
__global__ void maker(int *out, int *work, int rounds)
{
    __shared__ volatile int box[4];
    int t = threadIdx.x, w = t / 32, sum = 0;
    for (int i = 0; i < rounds; i++) {
        if (t % 32 == 0) {
            int v = 0;
            while (v % 7 != i % 7)
                v = atomicAdd(work, 1);
            box[w] = v;
            __syncwarp();
        } else {
            __syncwarp();
        }
        sum += box[w] % 7;
        __syncwarp();
    }
    out[t] = sum;
}

// Votes, matches and elections among those whose mask says so, in both arms of a branch.
__global__ void votes(unsigned *out, const int *in)
{
#if __CUDA_ARCH__ >= 800
    int t = threadIdx.x, lane = t % 32;
    unsigned odd = __ballot_sync(0xffffffffu, in[t] % 2), r = 0;
    if (in[t] % 2) {
        r = __match_any_sync(odd, in[t] % 5);
        r ^= (unsigned)__all_sync(odd, in[t] > 0) << 31;
        r += __reduce_add_sync(odd, (unsigned)in[t]) * 7u;
    } else {
        r = __activemask() == ~odd ? 1u : 0u;
        r += __ballot_sync(~odd, in[t] % 3 == 0) * 3u;
        r ^= (unsigned)__shfl_sync(~odd, in[t], __ffs((int)~odd) - 1) << 4;
    }
    out[t] = r + (unsigned)lane;
#endif
}

__global__ void elections(int *out, const int *in)
{
#if __CUDA_ARCH__ >= 900
    int t = threadIdx.x, leader, won = 0;
    if (in[t] % 2) {
        unsigned mask = __activemask();
        asm volatile("{ .reg .pred p; elect.sync %0|p, %2; selp.b32 %1, 1, 0, p; }" : "=r"(leader), "=r"(won) : "r"(mask));
        out[t] = leader * 2 + won;
    } else {
        out[t] = -1;
    }
#endif
}

// Threads that end while others wait: at a warp barrier, at a barrier, in a loop.
__global__ void endings(int *out, const int *in)
{
    __shared__ int s;
    int t = threadIdx.x;
    if (t == 0)
        s = 0;
    __syncthreads();
    out[t] = -1;
    if (in[t] % 4 == 1)
        return;
    if (in[t] % 4 == 2) {
        __syncwarp();
        atomicAdd(&s, 1);
        __syncthreads();
        out[t] = s;
    } else if (in[t] % 4 == 3) {
        volatile int spins = 0;
        while (spins < in[t])
            spins = spins + 1;
        atomicAdd(&s, 100);
    } else {
        __syncwarp();
        __syncthreads();
        out[t] = s + 5;
    }
}

int main()
{
    enum { N = 64 };
    int *out, *in, *more;
    cudaMallocManaged(&out, N * sizeof *out);
    cudaMallocManaged(&in, N * sizeof *in);
    cudaMallocManaged(&more, N * sizeof *more);
    bool ok = true;
#define EACH(...)                   \
    ok = true;                      \
    for (int t = 0; t < N; t++)     \
        __VA_ARGS__;

    for (int t = 0; t < N; t++)
        in[t] = t * 13 % 29 + 1;
    RUN(halves<<<1, N>>>(out, in));
    EACH({
        int u = t ^ 1, mine = in[t] % 2, theirs = in[u] % 2;
        int first = (mine ? 10 : 1000) * t + (theirs ? 1 : 2);
        ok &= out[t] == (mine ? first : -first);
    })
    check("halves", ok);

    RUN(groups<<<1, N>>>(out));
    EACH({
        int sum = 0;
        for (int i = 0; i <= t % 32 / 4; i++)
            sum += (t ^ (1 + i % 3)) * (i + 1);
        ok &= out[t] == sum;
    })
    check("groups", ok);

    RUN(ping_pong<<<1, N>>>(out, 50));
    EACH(ok &= out[t] == (t % 32 == 0 ? 50 * 49 : t % 32 == 1 ? 50 * 49 + 50 : 0))
    check("ping pong", ok);

    for (int t = 0; t < N; t++)
        more[t] = 0;
    RUN(chain<<<1, N>>>(more, out, N));
    EACH(ok &= out[t] == N - t)
    check("chain", ok);

    for (int t = 0; t < N; t++)
        more[t] = out[t] = 0;
    RUN(nested_locks<<<3, N>>>(more, out));
    int sums[3] = {};
    for (int t = 0; t < N; t++)
        sums[t % 3] += 9 * t;
    check("nested locks", out[0] == 9 * N && out[1] == sums[0] && out[2] == sums[1] && out[3] == sums[2]);

    more[0] = 0;
    RUN(maker<<<1, N>>>(out, more, 9));
    EACH(ok &= out[t] == 0 + 1 + 2 + 3 + 4 + 5 + 6 + 0 + 1)
    check("maker", ok);

#ifdef SM80
    RUN(votes<<<1, N>>>((unsigned *)out, in));
    EACH({
        unsigned odd = 0, same = 0, third = 0, sum = 0;
        int base = t / 32 * 32, all = 1, first = -1;
        for (int l = 0; l < 32; l++) {
            int v = in[base + l];
            odd |= (unsigned)(v % 2) << l;
            if (v % 2) {
                same |= (unsigned)(v % 5 == in[t] % 5) << l;
                sum += (unsigned)v;
                all &= v > 0;
            } else {
                third |= (unsigned)(v % 3 == 0) << l;
                first = first < 0 ? v : first;
            }
        }
        unsigned r = in[t] % 2 ? (same ^ (unsigned)all << 31) + sum * 7u : (1u + third * 3u) ^ (unsigned)first << 4;
        ok &= (unsigned)out[t] == r + (unsigned)(t % 32);
    })
    check("votes", ok);
#endif
#ifdef SM90
    RUN(elections<<<1, N>>>(out, in));
    EACH({
        int first = t / 32 * 32;
        while (in[first] % 2 == 0)
            first++;
        ok &= out[t] == (in[t] % 2 ? first % 32 * 2 + (t == first) : -1);
    })
    check("elections", ok);
#endif

    RUN(endings<<<1, N>>>(out, in));
    int twos = 0, threes = 0;
    for (int t = 0; t < N; t++)
        twos += in[t] % 4 == 2, threes += in[t] % 4 == 3;
    // Those that end after a loop may add to the sum before or after the barrier lets the others read it.
    EACH({
        int r = out[t] - (in[t] % 4 == 0 ? 5 : 0);
        bool waited = in[t] % 4 == 2 || in[t] % 4 == 0;
        ok &= waited ? r % 100 == twos && r / 100 >= 0 && r / 100 <= threes : out[t] == -1;
    })
    check("endings", ok);
    printf("lanes: %s\n", failures ? "FAILED" : "PASSED");
    return failures != 0;
}
