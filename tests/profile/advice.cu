// SPDX-License-Identifier: Apache-2.0
// Kernels that do one thing badly, and some that do all well: what a report advises (advice.py).

struct particle {
    float x, y, z, w, a, b, c, d;
};

__global__ void structures(const particle *p, float *out)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = p[i].x;
}

__global__ void shifted(const float *in, float *out)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = in[i + 1];
}

__global__ void columns(const float *in, float *out, int n)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0;
    for (int k = 0; k < n; k++)
        sum += in[row * n + k];
    out[row] = sum;
}

__global__ void doubles(double *data)
{
    __shared__ double tile[32][32];
    int x = threadIdx.x, y = threadIdx.y;
    tile[y][x] = data[y * 32 + x];
    __syncthreads();
    data[y * 32 + x] = tile[x][y];
}

__global__ void parity(float *out)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float v = (float)i;
    if (i & 1)
        for (int k = 0; k < 50; k++)
            v = v * 1.1f + (float)k;
    else
        for (int k = 0; k < 50; k++)
            v = v * 0.9f - (float)k;
    out[i] = v;
}

__global__ void large_tile(float *data)
{
    __shared__ float tile[12000];
    tile[threadIdx.x] = data[threadIdx.x];
    __syncthreads();
    data[blockIdx.x * 64 + threadIdx.x] = tile[63 - threadIdx.x];
}

__global__ void one_counter(int *sum, const int *in)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (in[i] >= 0)
        atomicAdd(sum, 1 + in[i]);
}

__global__ void local_array(float *data, int k)
{
    float t[64];
    for (int i = 0; i < 64; i++)
        t[i] = data[i * 256 + threadIdx.x];
    for (int i = 0; i < 64; i++)
        data[i * 256 + threadIdx.x] = t[(i * k) & 63];
}

__global__ void few_blocks(float *out)
{
    out[blockIdx.x * blockDim.x + threadIdx.x] = 1;
}

__global__ void short_wave(float *out)
{
    out[blockIdx.x * blockDim.x + threadIdx.x] = 2;
}

// Well done.

__global__ void padded_transpose(const float *in, float *out, int n)
{
    __shared__ float tile[32][33];
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8)
        tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * n + x];
    __syncthreads();
    x = blockIdx.y * 32 + threadIdx.x;
    y = blockIdx.x * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8)
        out[(y + j) * n + x] = tile[threadIdx.x][threadIdx.y + j];
}

__global__ void tiled_product(const float *a, const float *b, float *c, int n)
{
    __shared__ float s[32][32], t[32][32];
    int x = threadIdx.x, y = threadIdx.y;
    float v = 0;
    for (int k = 0; k < n; k += 32) {
        s[y][x] = a[(blockIdx.y * 32 + y) * n + k + x];
        t[y][x] = b[(k + y) * n + blockIdx.x * 32 + x];
        __syncthreads();
        for (int j = 0; j < 32; j++)
            v += s[y][j] * t[j][x];
        __syncthreads();
    }
    c[(blockIdx.y * 32 + y) * n + blockIdx.x * 32 + x] = v;
}

__global__ void copy(const float4 *in, float4 *out)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = in[i];
}

int main()
{
    float *f;
    cudaMalloc(&f, 64 << 20);
    cudaMemset(f, 0, 64 << 20);
    structures<<<1056, 256>>>((particle *)f, f);
    shifted<<<1056, 256>>>(f, f + (1 << 20));
    columns<<<1056, 256>>>(f, f, 32);
    doubles<<<528, dim3(32, 32)>>>((double *)f);
    parity<<<1056, 256>>>(f);
    large_tile<<<1056, 64>>>(f);
    one_counter<<<1056, 256>>>((int *)f, (int *)f + (12 << 20));
    local_array<<<1056, 256>>>(f, 3);
    few_blocks<<<4, 64>>>(f);
    short_wave<<<1100, 256>>>(f);
    padded_transpose<<<dim3(32, 33), dim3(32, 8)>>>(f, f + (1 << 21), 1056);
    tiled_product<<<dim3(16, 33), dim3(32, 32)>>>(f, f + (1 << 21), f + (1 << 22), 512);
    copy<<<1056, 256>>>((float4 *)f, (float4 *)f + (1 << 20));
    return cudaDeviceSynchronize() != cudaSuccess;
}
