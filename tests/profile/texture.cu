// SPDX-License-Identifier: Apache-2.0
// Fetches whose sectors are known; the profiler counts them. One warp each.
#include <cstdio>

constexpr int W = 64, H = 64;

static cudaTextureObject_t texture(const cudaResourceDesc &r, bool linear, cudaTextureAddressMode mode = cudaAddressModeClamp)
{
    cudaTextureDesc d = {};
    d.addressMode[0] = d.addressMode[1] = d.addressMode[2] = mode;
    d.filterMode = linear ? cudaFilterModeLinear : cudaFilterModePoint;
    cudaTextureObject_t t = 0;
    cudaCreateTextureObject(&t, &r, &d, nullptr);
    return t;
}

__global__ void linear_memory(cudaTextureObject_t t, float *out)
{
    out[threadIdx.x] = tex1Dfetch<float>(t, threadIdx.x);
}
// x0 + lane % across, y0 + lane / across
__global__ void plane(cudaTextureObject_t t, float x0, float y0, int across, float *out)
{
    out[threadIdx.x] = tex2D<float>(t, x0 + threadIdx.x % across, y0 + threadIdx.x / across);
}
__global__ void some(cudaTextureObject_t t, float *out)
{
    if (threadIdx.x < 4)
        out[threadIdx.x] = tex2D<float>(t, threadIdx.x + 0.5f, 0.5f);
}
__global__ void again(cudaTextureObject_t t, float step, float *out)
{
    float sum = 0;
    for (int i = 0; i < 10; i++)
        sum += tex2D<float>(t, threadIdx.x + 0.5f, 0.5f + i * step);
    out[threadIdx.x] = sum;
}
__global__ void gather(cudaTextureObject_t t, float *out)
{
    float4 v = tex2Dgather<float4>(t, threadIdx.x + 1.0f, 1.0f);
    out[threadIdx.x] = v.x + v.y + v.z + v.w;
}
__global__ void layers(cudaTextureObject_t t, float *out)
{
    out[threadIdx.x] = tex2DLayered<float>(t, threadIdx.x % 8 + 0.5f, 0.5f, threadIdx.x / 8);
}
__global__ void surface(cudaSurfaceObject_t s)
{
    surf2Dwrite(surf2Dread<float>(s, threadIdx.x * 4, 3), s, threadIdx.x * 4, 5);
}
__global__ void surface_wide(cudaSurfaceObject_t s)
{
    surf2Dwrite(surf2Dread<float>(s, threadIdx.x % 8 * 4, threadIdx.x / 8), s, threadIdx.x % 8 * 4, threadIdx.x / 8);
}

int main()
{
    float *memory, *out;
    size_t pitch;
    cudaMalloc(&out, 4096);
    cudaMallocPitch(&memory, &pitch, W * 4, H);
    cudaMemset(memory, 0, pitch * H);
    cudaArray_t array, layered;
    cudaChannelFormatDesc f = cudaCreateChannelDesc<float>();
    cudaMallocArray(&array, &f, W, H, cudaArraySurfaceLoadStore | cudaArrayTextureGather);
    cudaMalloc3DArray(&layered, &f, make_cudaExtent(W, H, 4), cudaArrayLayered);
    cudaResourceDesc r = {};
    r.resType = cudaResourceTypeLinear;
    r.res.linear.devPtr = memory;
    r.res.linear.desc = f;
    r.res.linear.sizeInBytes = 4096;
    linear_memory<<<1, 32>>>(texture(r, false), out);
    r = {};
    r.resType = cudaResourceTypePitch2D;
    r.res.pitch2D.devPtr = memory;
    r.res.pitch2D.desc = f;
    r.res.pitch2D.width = W;
    r.res.pitch2D.height = H;
    r.res.pitch2D.pitchInBytes = pitch;
    plane<<<1, 32>>>(texture(r, false), 0.5f, 3.5f, 32, out);
    r = {};
    r.resType = cudaResourceTypeArray;
    r.res.array.array = array;
    cudaTextureObject_t point = texture(r, false), linear = texture(r, true), border = texture(r, false, cudaAddressModeBorder);
    plane<<<1, 32>>>(point, 0.5f, 3.5f, 32, out);
    plane<<<1, 32>>>(point, 0.5f, 0.5f, 8, out);
    plane<<<1, 32>>>(point, 0.5f, 1.5f, 8, out);
    plane<<<1, 32>>>(linear, 0.5f, 0.5f, 32, out);
    plane<<<1, 32>>>(linear, 0.5f, 1.5f, 32, out);
    plane<<<1, 32>>>(point, -100.0f, 3.5f, 32, out);
    plane<<<1, 32>>>(border, -100.0f, 3.5f, 32, out);
    some<<<1, 32>>>(point, out);
    again<<<1, 32>>>(point, 0, out);
    gather<<<1, 32>>>(point, out);
    cudaSurfaceObject_t s = 0;
    cudaCreateSurfaceObject(&s, &r);
    surface<<<1, 32>>>(s);
    surface_wide<<<1, 32>>>(s);
    r.res.array.array = layered;
    layers<<<1, 32>>>(texture(r, false), out);
    int status = cudaDeviceSynchronize();
    printf("status %d\n", status);
    return status;
}
