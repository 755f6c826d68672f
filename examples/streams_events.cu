// SPDX-License-Identifier: Apache-2.0
// Work in streams: chunks copied in, computed and copied out side by side; events order and time them.
#include "example.h"
#include <vector>

__global__ void square(float *x, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        x[i] *= x[i];
}

static void CUDART_CB count_chunk(void *user)
{
    ++*static_cast<int *>(user);
}

int main()
{
    const int streams = 4, chunk = 50000, n = streams * chunk;
    float *host, *device;
    CHECK(cudaMallocHost(&host, n * sizeof(float)));
    CHECK(cudaMalloc(&device, n * sizeof(float)));
    for (int i = 0; i < n; i++)
        host[i] = (float)(i % 1000);

    cudaStream_t stream[streams];
    cudaEvent_t start, stop, done[streams];
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&stop));
    std::vector<int> finished(streams);
    CHECK(cudaEventRecord(start));
    for (int s = 0; s < streams; s++) {
        CHECK(cudaStreamCreate(&stream[s]));
        CHECK(cudaEventCreateWithFlags(&done[s], cudaEventDisableTiming));
        float *h = host + s * chunk, *d = device + s * chunk;
        CHECK(cudaMemcpyAsync(d, h, chunk * sizeof(float), cudaMemcpyHostToDevice, stream[s]));
        square<<<(chunk + 255) / 256, 256, 0, stream[s]>>>(d, chunk);
        CHECK(cudaMemcpyAsync(h, d, chunk * sizeof(float), cudaMemcpyDeviceToHost, stream[s]));
        CHECK(cudaLaunchHostFunc(stream[s], count_chunk, &finished[s]));
        CHECK(cudaEventRecord(done[s], stream[s]));
    }
    // The last stream waits for all others; then one more event marks the end of everything.
    for (int s = 0; s < streams; s++)
        CHECK(cudaStreamWaitEvent(stream[streams - 1], done[s], 0));
    CHECK(cudaEventRecord(stop, stream[streams - 1]));
    CHECK(cudaEventSynchronize(stop));
    float ms = -1;
    CHECK(cudaEventElapsedTime(&ms, start, stop));
    std::printf("%d chunks in %.3f ms\n", streams, ms);

    bool good = ms >= 0;
    for (int s = 0; s < streams; s++)
        good &= finished[s] == 1 && cudaStreamQuery(stream[s]) == cudaSuccess;
    for (int i = 0; i < n; i++)
        good &= host[i] == (float)(i % 1000) * (float)(i % 1000);
    for (int s = 0; s < streams; s++) {
        CHECK(cudaStreamDestroy(stream[s]));
        CHECK(cudaEventDestroy(done[s]));
    }
    CHECK(cudaEventDestroy(start));
    CHECK(cudaEventDestroy(stop));
    CHECK(cudaFree(device));
    CHECK(cudaFreeHost(host));
    return verdict("streams_events", good);
}
