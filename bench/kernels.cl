// SPDX-License-Identifier: Apache-2.0
// The benchmark kernels of kernels.cu in OpenCL C, for pocl.
#define GX get_group_id(0)
#define GY get_group_id(1)
#define LX ((int)get_local_id(0))
#define LY ((int)get_local_id(1))

kernel void saxpy(float a, global const float *x, global float *y, int n)
{
    int i = get_global_id(0);
    if (i < n)
        y[i] = a * x[i] + y[i];
}

#define SGEMM(TILE)                                                                                \
    kernel void sgemm_##TILE##x##TILE(global const float *a, global const float *b,                \
                                      global float *c, int n)                                      \
    {                                                                                              \
        local float ta[TILE][TILE], tb[TILE][TILE];                                                \
        int row = GY * TILE + LY, col = GX * TILE + LX;                                            \
        float sum = 0;                                                                             \
        for (int k = 0; k < n; k += TILE) {                                                        \
            ta[LY][LX] = a[row * n + k + LX];                                                      \
            tb[LY][LX] = b[(k + LY) * n + col];                                                    \
            barrier(CLK_LOCAL_MEM_FENCE);                                                          \
            for (int i = 0; i < TILE; i++)                                                         \
                sum += ta[LY][i] * tb[i][LX];                                                      \
            barrier(CLK_LOCAL_MEM_FENCE);                                                          \
        }                                                                                          \
        c[row * n + col] = sum;                                                                    \
    }
SGEMM(16)
SGEMM(32)

kernel void sgemm_naive(global const float *a, global const float *b, global float *c, int n)
{
    int row = get_global_id(1), col = get_global_id(0);
    if (row >= n || col >= n)
        return;
    float sum = 0;
    for (int k = 0; k < n; k++)
        sum += a[row * n + k] * b[k * n + col];
    c[row * n + col] = sum;
}

kernel void mandelbrot(global int *out, int n, int limit)
{
    int px = get_global_id(0), py = get_global_id(1);
    if (px >= n || py >= n)
        return;
    float cx = -2.0f + 3.0f * px / n, cy = -1.5f + 3.0f * py / n, x = 0, y = 0;
    int i = 0;
    while (i < limit && x * x + y * y < 4.0f) {
        float t = x * x - y * y + cx;
        y = 2 * x * y + cy;
        x = t;
        i++;
    }
    out[py * n + px] = i;
}

// OpenCL 1.2 has no shuffles: a tree in local memory.
kernel void reduction(global const float *in, global float *out, int n)
{
    local float sums[256];
    float sum = 0;
    for (int i = get_global_id(0); i < n; i += get_global_size(0))
        sum += in[i];
    sums[LX] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int half_size = get_local_size(0) / 2; half_size > 0; half_size /= 2) {
        if (LX < half_size)
            sums[LX] += sums[LX + half_size];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (LX == 0)
        out[GX] = sums[0];
}

kernel void histogram(global const int *key, global unsigned *bins, int n)
{
    local unsigned mine[256];
    for (int b = LX; b < 256; b += get_local_size(0))
        mine[b] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = get_global_id(0); i < n; i += get_global_size(0))
        atomic_inc(&mine[key[i] & 255]);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int b = LX; b < 256; b += get_local_size(0))
        atomic_add(&bins[b], mine[b]);
}

#define TRANSPOSE(NAME, PAD)                                                                       \
    kernel void NAME(global const float *in, global float *out, int n)                             \
    {                                                                                              \
        local float tile[32][32 + PAD];                                                            \
        int x = GX * 32 + LX, y = GY * 32 + LY;                                                    \
        for (int j = 0; j < 32; j += 8)                                                            \
            tile[LY + j][LX] = in[(y + j) * n + x];                                                \
        barrier(CLK_LOCAL_MEM_FENCE);                                                              \
        x = GY * 32 + LX;                                                                          \
        y = GX * 32 + LY;                                                                          \
        for (int j = 0; j < 32; j += 8)                                                            \
            out[(y + j) * n + x] = tile[LX][LY + j];                                               \
    }
TRANSPOSE(transpose, 0)
TRANSPOSE(transpose_padded, 1)

kernel void nbody(global const float4 *body, global float4 *acc, int n)
{
    local float4 tile[256];
    int i = get_global_id(0);
    float4 me = body[i];
    float ax = 0, ay = 0, az = 0;
    for (int start = 0; start < n; start += 256) {
        tile[LX] = body[start + LX];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int k = 0; k < 256; k++) {
            float dx = tile[k].x - me.x, dy = tile[k].y - me.y, dz = tile[k].z - me.z;
            float inv = rsqrt(dx * dx + dy * dy + dz * dz + 0.01f);
            float pull = tile[k].w * inv * inv * inv;
            ax += dx * pull;
            ay += dy * pull;
            az += dz * pull;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    acc[i] = (float4)(ax, ay, az, 0);
}

kernel void spmv(global const int *start, global const int *column, global const float *value,
                 global const float *x, global float *y, int rows)
{
    int row = get_global_id(0);
    if (row >= rows)
        return;
    float sum = 0;
    for (int i = start[row]; i < start[row + 1]; i++)
        sum += value[i] * x[column[i]];
    y[row] = sum;
}
