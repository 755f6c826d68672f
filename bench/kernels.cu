// SPDX-License-Identifier: Apache-2.0
// The eleven benchmark kernels. kernels.ptx is this file through `nvcc -ptx -arch=compute_75`; kernels.cl is the same in OpenCL C.
#define T extern "C" __global__ void

T saxpy(float a, const float *x, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = a * x[i] + y[i];
}

template <int TILE> __device__ void sgemm_tiled(const float *a, const float *b, float *c, int n)
{
    __shared__ float ta[TILE][TILE], tb[TILE][TILE];
    int tx = threadIdx.x, ty = threadIdx.y;
    int row = blockIdx.y * TILE + ty, col = blockIdx.x * TILE + tx;
    float sum = 0;
    for (int k = 0; k < n; k += TILE) {
        ta[ty][tx] = a[row * n + k + tx];
        tb[ty][tx] = b[(k + ty) * n + col];
        __syncthreads();
        for (int i = 0; i < TILE; i++)
            sum += ta[ty][i] * tb[i][tx];
        __syncthreads();
    }
    c[row * n + col] = sum;
}

T sgemm_16x16(const float *a, const float *b, float *c, int n) { sgemm_tiled<16>(a, b, c, n); }
T sgemm_32x32(const float *a, const float *b, float *c, int n) { sgemm_tiled<32>(a, b, c, n); }

T sgemm_naive(const float *a, const float *b, float *c, int n)
{
    int row = blockIdx.y * blockDim.y + threadIdx.y, col = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= n || col >= n)
        return;
    float sum = 0;
    for (int k = 0; k < n; k++)
        sum += a[row * n + k] * b[k * n + col];
    c[row * n + col] = sum;
}

T mandelbrot(int *out, int n, int limit)
{
    int px = blockIdx.x * blockDim.x + threadIdx.x, py = blockIdx.y * blockDim.y + threadIdx.y;
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

T reduction(const float *in, float *out, int n)
{
    __shared__ float sums[32];
    float sum = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        sum += in[i];
    for (int d = 16; d > 0; d /= 2)
        sum += __shfl_down_sync(0xffffffff, sum, d);
    if (threadIdx.x % 32 == 0)
        sums[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x < 32) {
        sum = threadIdx.x < blockDim.x / 32 ? sums[threadIdx.x] : 0;
        for (int d = 16; d > 0; d /= 2)
            sum += __shfl_down_sync(0xffffffff, sum, d);
        if (threadIdx.x == 0)
            out[blockIdx.x] = sum;
    }
}

T histogram(const int *key, unsigned *bins, int n)
{
    __shared__ unsigned mine[256];
    for (int b = threadIdx.x; b < 256; b += blockDim.x)
        mine[b] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&mine[key[i] & 255], 1u);
    __syncthreads();
    for (int b = threadIdx.x; b < 256; b += blockDim.x)
        atomicAdd(&bins[b], mine[b]);
}

template <int PAD> __device__ void transpose_tiled(const float *in, float *out, int n)
{
    __shared__ float tile[32][32 + PAD];
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8)
        tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * n + x];
    __syncthreads();
    x = blockIdx.y * 32 + threadIdx.x;
    y = blockIdx.x * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8)
        out[(y + j) * n + x] = tile[threadIdx.x][threadIdx.y + j];
}

T transpose(const float *in, float *out, int n) { transpose_tiled<0>(in, out, n); }
T transpose_padded(const float *in, float *out, int n) { transpose_tiled<1>(in, out, n); }

T nbody(const float4 *body, float4 *acc, int n)
{
    __shared__ float4 tile[256];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float4 me = body[i];
    float ax = 0, ay = 0, az = 0;
    for (int start = 0; start < n; start += 256) {
        tile[threadIdx.x] = body[start + threadIdx.x];
        __syncthreads();
        for (int k = 0; k < 256; k++) {
            float dx = tile[k].x - me.x, dy = tile[k].y - me.y, dz = tile[k].z - me.z;
            float inv = rsqrtf(dx * dx + dy * dy + dz * dz + 0.01f);
            float pull = tile[k].w * inv * inv * inv;
            ax += dx * pull;
            ay += dy * pull;
            az += dz * pull;
        }
        __syncthreads();
    }
    acc[i] = make_float4(ax, ay, az, 0);
}

T spmv(const int *start, const int *column, const float *value, const float *x, float *y, int rows)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows)
        return;
    float sum = 0;
    for (int i = start[row]; i < start[row + 1]; i++)
        sum += value[i] * x[column[i]];
    y[row] = sum;
}
