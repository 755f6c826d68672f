// SPDX-License-Identifier: Apache-2.0
// Kernels that objects.py compiles for GCN: LDS, divergence, doubles, atomics, scratch, calls to nothing but built-ins.
#define GROUP __builtin_amdgcn_workgroup_id_x()
#define ITEM  __builtin_amdgcn_workitem_id_x()

kernel void add(global const float *a, global const float *b, global float *sum, int n)
{
    int i = GROUP * 256 + ITEM;
    if (i < n)
        sum[i] = a[i] + b[i];
}

kernel void __attribute__((reqd_work_group_size(16, 16, 1)))
tile(global const float *in, global float *out, int n)
{
    local float t[16][17];
    int x = ITEM, y = __builtin_amdgcn_workitem_id_y();
    t[y][x] = in[y * n + x];
    __builtin_amdgcn_s_barrier();
    out[x * n + y] = t[x][y];
}

kernel void doubles(global double *x, double f)
{
    int i = ITEM;
    double v = x[i];
    while (v < f)
        v = v * 1.5 + __builtin_sqrt(v) / f;
    x[i] = v;
}

kernel void integers(global unsigned *x, global ulong *y, unsigned d)
{
    int i = ITEM;
    unsigned v = x[i];
    __opencl_atomic_fetch_add((global atomic_uint *)&x[v & 63], v, __ATOMIC_RELAXED, memory_scope_device);
    y[i] = y[i] * v + (v / d) + __builtin_popcount(v) + (__builtin_bitreverse32(v) >> (v & 7)) + __builtin_clz(v | 1);
}

kernel void scratch(global int *x, int n)
{
    int table[40];
    for (int i = 0; i < 40; i++)
        table[i] = x[i * n];
    int at = ITEM;
    for (int k = 0; k < n; k++)
        at = table[at & 31] + k;
    x[ITEM] = at;
}
