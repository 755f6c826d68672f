// SPDX-License-Identifier: Apache-2.0
// The Mandelbrot set: neighbouring threads leave the loop at different times, so warps diverge.
#include "example.h"
#include <vector>

constexpr int LIMIT = 256;

__host__ __device__ inline int escape_time(float cx, float cy)
{
    float x = 0, y = 0;
    int i = 0;
    while (i < LIMIT && x * x + y * y <= 4.0f) {
        float next = x * x - y * y + cx;
        y = 2 * x * y + cy;
        x = next;
        i++;
    }
    return i;
}

__global__ void render(int *out, int width, int height)
{
    int px = blockIdx.x * blockDim.x + threadIdx.x;
    int py = blockIdx.y * blockDim.y + threadIdx.y;
    if (px < width && py < height)
        out[py * width + px] = escape_time(-2.2f + 3.2f * px / width, -1.2f + 2.4f * py / height);
}

int main()
{
    const int width = 320, height = 240;
    std::vector<int> image(width * height);
    int *dimage;
    CHECK(cudaMalloc(&dimage, image.size() * sizeof(int)));
    dim3 block(32, 8), grid((width + 31) / 32, (height + 7) / 8);
    render<<<grid, block>>>(dimage, width, height);
    CHECK_LAUNCH();
    CHECK(cudaMemcpy(image.data(), dimage, image.size() * sizeof(int), cudaMemcpyDeviceToHost));

    for (int y = 6; y < height; y += 12) {
        for (int x = 2; x < width; x += 5)
            std::putchar(" .:-=+*#%@"[image[y * width + x] * 9 / LIMIT]);
        std::putchar('\n');
    }
    // Device code fuses multiplications and additions, so orbits near the border differ from the
    // host's: all but a few pixels must agree.
    int different = 0;
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++)
            different += image[y * width + x] !=
                         escape_time(-2.2f + 3.2f * x / width, -1.2f + 2.4f * y / height);
    std::printf("%d of %d pixels differ from the host's rounding\n", different, width * height);
    CHECK(cudaFree(dimage));
    return verdict("mandelbrot", different < width * height / 50);
}
