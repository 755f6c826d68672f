// SPDX-License-Identifier: Apache-2.0
// Functions that call themselves, are called through pointers and tables, and wait, end threads or take stack
// memory in there. Each kernel's result is computed on the host as well.
#include "check.h"

#include <cstring>
#define BOTH __host__ __device__ __noinline__

enum { N = 128 };

// ---- recursion that does not wait ----

BOTH int fib(int n)
{
    return n < 2 ? n : fib(n - 1) + fib(n - 2);
}

BOTH unsigned ackermann(unsigned m, unsigned n)
{
    if (m == 0)
        return n + 1;
    return ackermann(m - 1, n == 0 ? 1 : ackermann(m, n - 1));
}

BOTH bool odd(unsigned n);
BOTH bool even(unsigned n)
{
    return n == 0 || odd(n - 1);
}
BOTH bool odd(unsigned n)
{
    return n != 0 && even(n - 1);
}

BOTH void quicksort(int *a, int lo, int hi)
{
    if (lo >= hi)
        return;
    int pivot = a[(lo + hi) / 2], i = lo, j = hi;
    while (i <= j) {
        while (a[i] < pivot)
            i++;
        while (a[j] > pivot)
            j--;
        if (i <= j) {
            int t = a[i];
            a[i++] = a[j];
            a[j--] = t;
        }
    }
    quicksort(a, lo, j);
    quicksort(a, i, hi);
}

// Every kind of register is wanted after the call: predicates, bytes, 64 bits, floats.
BOTH double mixed(int n, float f, double d, long long l, unsigned char c, bool flag)
{
    if (n == 0)
        return f + d + (double)l + c + flag;
    double r = mixed(n - 1, f * 0.5f, d + 1, l - n, (unsigned char)(c + n), !flag);
    return r * 0.5 + (flag ? f : d) + (double)(l % 7) + c;
}

struct big {
    int a[6];
};
BOTH big build(int n)
{
    big b;
    if (n == 0) {
        for (int i = 0; i < 6; i++)
            b.a[i] = i;
        return b;
    }
    b = build(n - 1);
    for (int i = 0; i < 6; i++)
        b.a[i] = b.a[(i + 1) % 6] + n;
    return b;
}

__global__ void recursions(int *out, double *dout, const int *in)
{
    int t = threadIdx.x, a[24];
    int r = fib(in[t] % 14) + (int)ackermann(2, in[t] % 5) * 1000 + even(in[t]) * 100000;
    for (int i = 0; i < 24; i++)
        a[i] = (in[t] * (i + 3)) % 101;
    quicksort(a, 0, 23);
    for (int i = 0; i < 24; i++)
        r = r * 3 + a[i];
    big b = build(in[t] % 9);
    out[t] = r + b.a[in[t] % 6];
    dout[t] = mixed(in[t] % 7, 1.5f * t, 2.25, 1234567890123LL + t, (unsigned char)t, t & 1);
}
static void expect_recursions(int *out, double *dout, const int *in)
{
    for (int t = 0; t < N; t++) {
        int a[24];
        unsigned r = (unsigned)(fib(in[t] % 14) + (int)ackermann(2, in[t] % 5) * 1000 + even(in[t]) * 100000);
        for (int i = 0; i < 24; i++)
            a[i] = (in[t] * (i + 3)) % 101;
        quicksort(a, 0, 23);
        for (int i = 0; i < 24; i++)
            r = r * 3 + (unsigned)a[i];
        big b = build(in[t] % 9);
        out[t] = (int)r + b.a[in[t] % 6];
        dout[t] = mixed(in[t] % 7, 1.5f * t, 2.25, 1234567890123LL + t, (unsigned char)t, t & 1);
    }
}

__device__ __noinline__ int depth_of(int n)
{
    volatile int here = n;
    return n == 0 ? 0 : depth_of(n - 1) + (here == n);
}
__global__ void deep(int *out, int n)
{
    out[threadIdx.x] = depth_of(n + (int)threadIdx.x);
}

// ptxas gives this one frames of 16 bytes
__device__ __noinline__ unsigned sum_down(int n)
{
    return n > 0 ? (unsigned)n + sum_down(n - 1) * 3 : 0;
}
__global__ void sum_to(int *out, int n)
{
    out[threadIdx.x] = (int)sum_down(n);
}

// ---- recursion that waits ----

// A tree sum of the whole block: every level is a call with barriers in it.
__device__ __noinline__ int tree(int *s, int width)
{
    if (width == 0)
        return s[0];
    if (threadIdx.x < width)
        s[threadIdx.x] += s[threadIdx.x + width];
    __syncthreads();
    int sum = tree(s, width / 2);
    __syncthreads();
    return sum + width;
}
__global__ void tree_sum(int *out, const int *in)
{
    __shared__ int s[N];
    s[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = tree(s, N / 2);
}

// Threads go to different depths; each waits at the same barrier as often in all, the last ones from different calls.
__device__ __noinline__ int uneven(int *sum, int n, int rounds)
{
    atomicAdd(sum, n);
    asm volatile("barrier.sync 0;" ::: "memory");
    int seen = *(volatile int *)sum;
    asm volatile("barrier.sync 0;" ::: "memory");
    if (rounds == 1)
        return seen;
    return (n > 0 ? uneven(sum, n - 1, rounds - 1) : uneven(sum, 5, rounds - 1)) + seen * 3;
}
__global__ void uneven_depths(int *out, const int *in)
{
    __shared__ int sum;
    if (threadIdx.x == 0)
        sum = 0;
    __syncthreads();
    out[threadIdx.x] = uneven(&sum, in[threadIdx.x] % 4, 6);
}
static void expect_uneven(int *out, const int *in, int threads)
{
    int n[N], sum = 0, seen[6];
    for (int t = 0; t < threads; t++)
        n[t] = in[t] % 4;
    for (int r = 0; r < 6; r++) {
        for (int t = 0; t < threads; t++) {
            sum += n[t];
            n[t] = n[t] > 0 ? n[t] - 1 : 5;
        }
        seen[r] = sum;
    }
    for (int t = 0; t < threads; t++) {
        out[t] = seen[5];
        for (int r = 4; r >= 0; r--)
            out[t] += seen[r] * 3;
    }
}

// A lock taken by recursion, one lane of a warp after the other.
__device__ __noinline__ void locked(int *lock, int *count, int n)
{
    if (n == 0)
        return;
    while (atomicCAS(lock, 0, 1) != 0) {
    }
    *(volatile int *)count = *(volatile int *)count + n;
    __threadfence();
    atomicExch(lock, 0);
    locked(lock, count, n - 1);
}
__global__ void locks(int *lock, int *count)
{
    locked(lock, count, 1 + threadIdx.x % 3);
}

// A thread may end deep inside.
__device__ __noinline__ int ending(int n, int *out)
{
    if (n == 3)
        asm volatile("exit;");
    if (n == 0)
        return 7;
    return ending(n - 1, out) + n;
}
__global__ void ends(int *out, const int *in)
{
    int t = threadIdx.x;
    out[t] = -1;
    if (in[t] % 6 > 1) {
        int r = ending(in[t] % 6, out);
        out[t] = r;
    } else
        out[t] = in[t] % 6;
    __syncthreads();
    out[t] += 100;
}

// ---- pointers and tables ----

typedef int operation(int *s, int x);
__device__ __noinline__ int plus(int *s, int x)
{
    return x + s[0];
}
__device__ __noinline__ int waits(int *s, int x)
{
    atomicAdd(s, x);
    asm volatile("barrier.sync 0;" ::: "memory");
    int r = *(volatile int *)s;
    asm volatile("barrier.sync 0;" ::: "memory");
    return r;
}
__device__ __noinline__ int waits_otherwise(int *s, int x)
{
    atomicAdd(s, 2 * x);
    asm volatile("barrier.sync 0;" ::: "memory");
    int r = -*(volatile int *)s;
    asm volatile("barrier.sync 0;" ::: "memory");
    return r;
}
__device__ __noinline__ int again(int *s, int x);
__device__ operation *const table[] = { plus, waits, waits_otherwise, again };
__device__ __noinline__ int again(int *s, int x)
{
    return x <= 0 ? 1 : 2 + table[x % 2 ? 3 : 0](s, x - 3);
}
static int host_again(int s, int x)
{
    return x <= 0 ? 1 : 2 + (x % 2 ? host_again(s, x - 3) : x - 3 + s);
}
__global__ void pointers(int *out, const int *in)
{
    __shared__ int s[2];
    int t = threadIdx.x;
    if (t == 0)
        s[0] = 100, s[1] = 0;
    __syncthreads();
    int a = table[in[t] % 2 ? 3 : 0](s, in[t] % 20);
    int b = table[1 + in[t] % 2](s + 1, in[t]);
    out[t] = a * 3 + b;
}

struct shape {
    __device__ virtual int area(int *s) const = 0;
    __device__ virtual ~shape() {}
};
struct square : shape {
    int side;
    __device__ square(int a) : side(a) {}
    __device__ int area(int *) const override { return side * side; }
};
struct meeting : shape {
    int mine;
    __device__ meeting(int a) : mine(a) {}
    __device__ int area(int *s) const override
    {
        atomicAdd(s, mine);
        __syncwarp(__activemask());
        return mine + 1;
    }
};
struct pair_of : shape {
    const shape *a, *b;
    __device__ pair_of(const shape *x, const shape *y) : a(x), b(y) {}
    __device__ int area(int *s) const override { return a->area(s) + b->area(s); }
};
__global__ void virtuals(int *out, int *total, const int *in)
{
    int t = threadIdx.x;
    shape *a = in[t] % 3 ? (shape *)new square(in[t]) : (shape *)new meeting(in[t]);
    shape *b = in[t] % 2 ? (shape *)new square(t) : (shape *)new meeting(t);
    shape *both = new pair_of(a, b), *all = in[t] % 5 ? both : new pair_of(both, a);
    out[t] = all->area(total);
    if (all != both)
        delete all;
    delete both;
    delete a;
    delete b;
}

// ---- stack memory taken at run time ----

__device__ __noinline__ int taken(int n)
{
    int *a = (int *)alloca(n * sizeof(int)), sum = 0;
    for (int i = 0; i < n; i++)
        a[i] = i * n;
    if (n > 1)
        sum = taken(n / 2);
    for (int i = 0; i < n; i++)
        sum += a[i] == i * n ? a[i] : 1000000;
    return sum;
}
static int host_taken(int n)
{
    int sum = n > 1 ? host_taken(n / 2) : 0;
    for (int i = 0; i < n; i++)
        sum += i * n;
    return sum;
}
__global__ void stack_memory(int *out, const int *in)
{
    int t = threadIdx.x, n = 1 + in[t] % 13;
    char *mine = (char *)alloca(n);
    memset(mine, t, n);
    int sum = taken(n) + taken(n + 3);
    for (int i = 0; i < n; i++)
        sum += mine[i] == (char)t ? 0 : 5000000;
    out[t] = sum;
}

int main()
{
    int *out, *in, want[N];
    double *dout, dwant[N];
    cudaMallocManaged(&out, N * sizeof *out);
    cudaMallocManaged(&in, N * sizeof *in);
    cudaMallocManaged(&dout, N * sizeof *dout);
    cudaDeviceSetLimit(cudaLimitStackSize, 16384);
    for (int t = 0; t < N; t++)
        in[t] = (t * 37 + 11) % 53;
    bool ok;
#define ALL(expected)             \
    ok = true;                    \
    for (int t = 0; t < N; t++)   \
        ok &= out[t] == (expected);

    RUN(recursions<<<1, N>>>(out, dout, in));
    expect_recursions(want, dwant, in);
    ALL(want[t])
    check("recursion", ok);
    ok = true;
    for (int t = 0; t < N; t++)
        ok &= dout[t] == dwant[t];
    check("recursion, all types", ok);

    RUN(tree_sum<<<1, N>>>(out, in));
    int sum = 0;
    for (int t = 0; t < N; t++)
        sum += in[t];
    ALL(sum + N - 1)
    check("recursion with barriers", ok);

    RUN(uneven_depths<<<1, N>>>(out, in));
    expect_uneven(want, in, N);
    ALL(want[t])
    check("barriers at different depths", ok);

    out[0] = out[1] = 0;
    RUN(locks<<<2, N>>>(out, out + 1));
    sum = 0;
    for (int t = 0; t < N; t++)
        for (int n = 1 + t % 3; n; n--)
            sum += 2 * n;
    check("locks in recursion", out[1] == sum);

    RUN(ends<<<1, N>>>(out, in));
    ALL(in[t] % 6 >= 3 ? -1 : 100 + (in[t] % 6 == 2 ? 7 + 2 + 1 : in[t] % 6))
    check("ends in recursion", ok);

    RUN(pointers<<<1, N>>>(out, in));
    sum = 0;
    for (int t = 0; t < N; t++)
        sum += in[t] % 2 ? 2 * in[t] : in[t];
    ALL(3 * (in[t] % 2 ? host_again(100, in[t] % 20) : in[t] % 20 + 100) + (in[t] % 2 ? -sum : sum))
    check("pointers", ok);

    int *total;
    cudaMallocManaged(&total, sizeof *total);
    *total = 0;
    RUN(virtuals<<<1, N>>>(out, total, in));
    sum = 0;
    for (int t = 0; t < N; t++) {
        int a = in[t] % 3 ? in[t] * in[t] : in[t] + 1, b = in[t] % 2 ? t * t : t + 1;
        sum += (in[t] % 3 ? 0 : in[t]) * (in[t] % 5 ? 1 : 2) + (in[t] % 2 ? 0 : t);
        want[t] = a + b + (in[t] % 5 ? 0 : a);
    }
    ALL(want[t])
    check("virtual functions", ok && *total == sum);

    RUN(stack_memory<<<1, N>>>(out, in));
    ALL(host_taken(1 + in[t] % 13) + host_taken(4 + in[t] % 13))
    check("stack memory", ok);

    cudaDeviceSetLimit(cudaLimitStackSize, 262144);
    RUN(deep<<<1, 64>>>(out, 3000));
    ok = true;
    for (int t = 0; t < 64; t++)
        ok &= out[t] == 3000 + t;
    check("deep", ok);

    cudaDeviceSetLimit(cudaLimitStackSize, 1024);
    RUN(sum_to<<<1, 64>>>(out, 60));
    unsigned down = 0;
    for (unsigned n = 1; n <= 60; n++)
        down = n + down * 3;
    check("as deep as in frames of 16 bytes", (unsigned)out[0] == down);
    deep<<<1, 64>>>(out, 100000);
    check("too deep", cudaDeviceSynchronize() == cudaErrorHardwareStackError);
    printf("calls: %s\n", failures ? "FAILED" : "PASSED");
    return failures != 0;
}
