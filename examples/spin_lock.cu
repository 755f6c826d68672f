// SPDX-License-Identifier: Apache-2.0
// One lock, taken by every thread. On devices with independent thread scheduling (compute capability
// 7.0 and later) lanes of one warp may wait for each other; on older ones this program hangs, and
// Halfwarp says so instead of hanging: try HALFWARP_DEVICE=geforce-8800-gtx.
#include "example.h"

__device__ int taken;

__global__ void count_up(int *counter)
{
    while (atomicCAS(&taken, 0, 1) != 0)
        ;
    *(volatile int *)counter += 1; // not atomic: the lock makes it safe
    __threadfence();
    atomicExch(&taken, 0);
}

int main()
{
    int *counter, got;
    CHECK(cudaMalloc(&counter, sizeof(int)));
    CHECK(cudaMemset(counter, 0, sizeof(int)));
    count_up<<<8, 64>>>(counter);
    CHECK_LAUNCH();
    CHECK(cudaMemcpy(&got, counter, sizeof got, cudaMemcpyDeviceToHost));
    std::printf("%d of 512 increments\n", got);
    CHECK(cudaFree(counter));
    return verdict("spin_lock", got == 512);
}
