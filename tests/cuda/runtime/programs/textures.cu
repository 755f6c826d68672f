// SPDX-License-Identifier: Apache-2.0
// Texture and surface objects as the runtime makes them; values against plain arithmetic.
#include "expect.h"
#include <cmath>
#include <vector>

__global__ void fetch(cudaTextureObject_t t, float *out, int n)
{
    int i = threadIdx.x;
    if (i < n)
        out[i] = tex1Dfetch<float>(t, i);
}
__global__ void sample(cudaTextureObject_t t, float *out, float x, float y, float dx)
{
    out[threadIdx.x] = tex2D<float>(t, x + dx * threadIdx.x, y);
}
__global__ void bytes(cudaTextureObject_t t, float *out) { out[threadIdx.x] = tex2D<float>(t, threadIdx.x + 0.5f, 0.5f); }
__global__ void integers(cudaTextureObject_t t, int *out)
{
    int2 v = tex2D<int2>(t, threadIdx.x + 0.5f, 1.5f);
    out[threadIdx.x] = v.x * 1000 + v.y;
}
__global__ void negate(cudaSurfaceObject_t s, int w, int h)
{
    int x = threadIdx.x, y = blockIdx.x;
    if (x < w && y < h) {
        float v;
        surf2Dread(&v, s, x * 4, y);
        surf2Dwrite(-v, s, x * 4, y);
    }
}

static const int W = 8, H = 4;

static cudaTextureDesc plain()
{
    cudaTextureDesc d = {};
    d.addressMode[0] = d.addressMode[1] = cudaAddressModeClamp;
    d.filterMode = cudaFilterModePoint;
    d.readMode = cudaReadModeElementType;
    return d;
}

static void near(float got, float want, const char *what)
{
    if (!(std::fabs(got - want) <= 0.01f * (1 + std::fabs(want)))) {
        expect_failed++;
        printf("%s is %g, not %g\n", what, got, want);
    }
}

int main()
{
    std::vector<float> h(W * H), back(64);
    for (int i = 0; i < W * H; i++)
        h[i] = (float)(i * 3 % 17);
    float *p, *out;
    OK(cudaMalloc(&p, W * H * 4));
    OK(cudaMalloc(&out, 256));
    OK(cudaMemcpy(p, h.data(), W * H * 4, cudaMemcpyHostToDevice));

    cudaResourceDesc r = {};
    cudaTextureObject_t t;
    r.resType = cudaResourceTypeLinear;
    r.res.linear.devPtr = p;
    r.res.linear.desc = cudaCreateChannelDesc<float>();
    r.res.linear.sizeInBytes = W * H * 4;
    cudaTextureDesc d = plain();
    OK(cudaCreateTextureObject(&t, &r, &d, nullptr));
    fetch<<<1, 32>>>(t, out, W * H);
    OK(cudaMemcpy(back.data(), out, W * H * 4, cudaMemcpyDeviceToHost));
    for (int i = 0; i < W * H; i++)
        EXPECT(back[i], h[i]);
    cudaResourceDesc had;
    cudaTextureDesc had_desc;
    OK(cudaGetTextureObjectResourceDesc(&had, t));
    EXPECT(had.resType == cudaResourceTypeLinear && had.res.linear.devPtr == p &&
               had.res.linear.sizeInBytes == W * H * 4 && had.res.linear.desc.x == 32, 1);
    OK(cudaGetTextureObjectTextureDesc(&had_desc, t));
    EXPECT(had_desc.readMode, cudaReadModeElementType);
    OK(cudaDestroyTextureObject(t));

    cudaArray_t a;
    cudaChannelFormatDesc f = cudaCreateChannelDesc<float>();
    OK(cudaMallocArray(&a, &f, W, H, cudaArraySurfaceLoadStore));
    OK(cudaMemcpy2DToArray(a, 0, 0, h.data(), W * 4, W * 4, H, cudaMemcpyHostToDevice));
    r = {};
    r.resType = cudaResourceTypeArray;
    r.res.array.array = a;
    d.filterMode = cudaFilterModeLinear;
    OK(cudaCreateTextureObject(&t, &r, &d, nullptr));
    sample<<<1, 7>>>(t, out, 1.0f, 1.5f, 1.0f); // halfway between two texels of row 1
    OK(cudaMemcpy(back.data(), out, 28, cudaMemcpyDeviceToHost));
    for (int i = 0; i < 7; i++)
        near(back[i], (h[W + i] + h[W + i + 1]) / 2, "linear");
    OK(cudaDestroyTextureObject(t));

    d.normalizedCoords = 1;
    d.addressMode[0] = cudaAddressModeWrap;
    d.addressMode[1] = cudaAddressModeBorder;
    d.filterMode = cudaFilterModePoint;
    d.borderColor[0] = 99;
    OK(cudaCreateTextureObject(&t, &r, &d, nullptr));
    sample<<<1, 16>>>(t, out, 0.5f / W, 2.5f / H, 1.0f / W);
    OK(cudaMemcpy(back.data(), out, 64, cudaMemcpyDeviceToHost));
    for (int i = 0; i < 16; i++)
        EXPECT(back[i], h[2 * W + i % W]);
    sample<<<1, 1>>>(t, out, 0.5f, -0.1f, 0);
    OK(cudaMemcpy(back.data(), out, 4, cudaMemcpyDeviceToHost));
    EXPECT(back[0], 99);
    OK(cudaGetTextureObjectTextureDesc(&had_desc, t));
    EXPECT(had_desc.normalizedCoords == 1 && had_desc.addressMode[1] == cudaAddressModeBorder, 1);
    OK(cudaDestroyTextureObject(t));

    cudaSurfaceObject_t s;
    OK(cudaCreateSurfaceObject(&s, &r));
    negate<<<H, 32>>>(s, W, H);
    OK(cudaMemcpy2DFromArray(back.data(), W * 4, a, 0, 0, W * 4, H, cudaMemcpyDeviceToHost));
    for (int i = 0; i < W * H; i++)
        EXPECT(back[i], -h[i]);
    OK(cudaDestroySurfaceObject(s));
    OK(cudaFreeArray(a));

    // Bytes read as fractions, from pitched memory.
    unsigned char b[8] = { 0, 51, 102, 255, 1, 2, 3, 4 }, *q;
    size_t pitch;
    OK(cudaMallocPitch(&q, &pitch, 8, 2));
    OK(cudaMemcpy2D(q, pitch, b, 8, 8, 1, cudaMemcpyHostToDevice));
    r = {};
    r.resType = cudaResourceTypePitch2D;
    r.res.pitch2D.devPtr = q;
    r.res.pitch2D.desc = cudaCreateChannelDesc<unsigned char>();
    r.res.pitch2D.width = 8;
    r.res.pitch2D.height = 2;
    r.res.pitch2D.pitchInBytes = pitch;
    d = plain();
    d.readMode = cudaReadModeNormalizedFloat;
    OK(cudaCreateTextureObject(&t, &r, &d, nullptr));
    bytes<<<1, 8>>>(t, out);
    OK(cudaMemcpy(back.data(), out, 32, cudaMemcpyDeviceToHost));
    near(back[1], 0.2f, "byte");
    near(back[2], 0.4f, "byte");
    near(back[3], 1.0f, "byte");
    OK(cudaDestroyTextureObject(t));

    // Pairs of integers.
    int2 pairs[8];
    int got[4];
    for (int i = 0; i < 8; i++)
        pairs[i] = make_int2(i - 3, 10 * i);
    cudaChannelFormatDesc f2 = cudaCreateChannelDesc<int2>();
    OK(cudaMallocArray(&a, &f2, 4, 2));
    OK(cudaMemcpy2DToArray(a, 0, 0, pairs, 32, 32, 2, cudaMemcpyHostToDevice));
    r = {};
    r.resType = cudaResourceTypeArray;
    r.res.array.array = a;
    d = plain();
    OK(cudaCreateTextureObject(&t, &r, &d, nullptr));
    integers<<<1, 4>>>(t, (int *)out);
    OK(cudaMemcpy(got, out, sizeof got, cudaMemcpyDeviceToHost));
    for (int i = 0; i < 4; i++)
        EXPECT(got[i], (i + 4 - 3) * 1000 + 10 * (i + 4));
    OK(cudaDestroyTextureObject(t));
    OK(cudaFreeArray(a));
    OK(cudaFree(q));
    OK(cudaFree(p));
    OK(cudaFree(out));
    return expect_status();
}
