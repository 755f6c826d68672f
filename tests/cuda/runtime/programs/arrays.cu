// SPDX-License-Identifier: Apache-2.0
// CUDA arrays: made, asked about, copied in all directions.
#include "expect.h"
#include <vector>

int main()
{
    std::vector<float> h(16 * 8 * 4), back(16 * 8 * 4, -1);
    for (size_t i = 0; i < h.size(); i++)
        h[i] = (float)i;
    cudaChannelFormatDesc desc = cudaCreateChannelDesc<float>(), had;
    cudaArray_t a, b, cube;
    cudaExtent e;
    unsigned flags = 9;
    OK(cudaMallocArray(&a, &desc, 16, 8));
    OK(cudaMallocArray(&b, &desc, 16, 8));
    OK(cudaArrayGetInfo(&had, &e, &flags, a));
    EXPECT(had.x == 32 && had.y == 0 && had.f == cudaChannelFormatKindFloat, 1);
    EXPECT(e.width == 16 && e.height == 8, 1);
    OK(cudaMemcpy2DToArray(a, 0, 0, h.data(), 64, 64, 8, cudaMemcpyHostToDevice));
    OK(cudaMemcpy2DToArray(a, 8, 1, h.data(), 64, 8, 2, cudaMemcpyHostToDevice));
    OK(cudaMemcpy2DArrayToArray(b, 0, 0, a, 0, 0, 64, 8, cudaMemcpyDeviceToDevice));
    OK(cudaMemcpy2DFromArray(back.data(), 64, b, 0, 0, 64, 8, cudaMemcpyDeviceToHost));
    EXPECT(back[0], 0);
    EXPECT(back[16 + 2], 0);
    EXPECT(back[16 + 3], 1);
    EXPECT(back[32 + 3], 17);
    EXPECT(back[127], 127);
    OK(cudaMemcpyToArray(a, 0, 0, h.data() + 7, 4 * 40, cudaMemcpyHostToDevice));
    OK(cudaMemcpyFromArray(back.data(), a, 0, 0, 4 * 40, cudaMemcpyDeviceToHost));
    EXPECT(back[39], 46);
    EXPECT(cudaMemcpy2DToArray(a, 0, 0, h.data(), 64, 80, 8, cudaMemcpyHostToDevice),
           cudaErrorInvalidValue);
    OK(cudaMalloc3DArray(&cube, &desc, make_cudaExtent(16, 8, 4)));
    cudaMemcpy3DParms c = {};
    c.srcPtr = make_cudaPitchedPtr(h.data(), 64, 16, 8);
    c.dstArray = cube;
    c.extent = make_cudaExtent(16, 8, 4);
    c.kind = cudaMemcpyHostToDevice;
    OK(cudaMemcpy3D(&c));
    cudaMemcpy3DParms d = {};
    d.srcArray = cube;
    d.srcPos = make_cudaPos(4, 2, 1);
    d.dstPtr = make_cudaPitchedPtr(back.data(), 8 * 4, 8, 3);
    d.extent = make_cudaExtent(8, 3, 2);
    d.kind = cudaMemcpyDeviceToHost;
    OK(cudaMemcpy3D(&d));
    EXPECT(back[0], 128 + 32 + 4);
    EXPECT(back[23], 128 + 64 + 11);
    EXPECT(back[47], 256 + 64 + 11);
    cudaChannelFormatDesc bad = cudaCreateChannelDesc(32, 32, 32, 0, cudaChannelFormatKindFloat);
    EXPECT(cudaMallocArray(&a, &bad, 16, 8) != cudaSuccess, 1);
    OK(cudaFreeArray(b));
    OK(cudaFreeArray(cube));
    return expect_status();
}
