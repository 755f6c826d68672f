// SPDX-License-Identifier: Apache-2.0
// Graphs: captured, built by hand, changed, launched again.
#include "expect.h"
#include <cstring>

__device__ int variable[8];
__global__ void add(int *p, int v) { p[threadIdx.x] += v; }
__global__ void twice(int *p) { p[threadIdx.x] *= 2; }

static void CUDART_CB count(void *data) { ++*(int *)data; }

static void captured()
{
    int *p, back[32], calls = 0;
    cudaStream_t s, side;
    cudaEvent_t fork, join;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    OK(cudaStreamCreate(&s));
    OK(cudaStreamCreate(&side));
    OK(cudaEventCreate(&fork));
    OK(cudaEventCreate(&join));
    OK(cudaMalloc(&p, 256));
    OK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
    OK(cudaMemsetAsync(p, 0, 256, s));
    OK(cudaEventRecord(fork, s));
    OK(cudaStreamWaitEvent(side, fork, 0));
    add<<<1, 32, 0, s>>>(p, 5);
    add<<<1, 32, 0, side>>>(p + 32, 1);
    OK(cudaEventRecord(join, side));
    OK(cudaStreamWaitEvent(s, join, 0));
    twice<<<1, 32, 0, s>>>(p);
    OK(cudaLaunchHostFunc(s, count, &calls));
    OK(cudaMemcpyAsync(back, p, sizeof back, cudaMemcpyDeviceToHost, s));
    cudaStreamCaptureStatus status;
    OK(cudaStreamIsCapturing(s, &status));
    EXPECT(status, cudaStreamCaptureStatusActive);
    OK(cudaStreamEndCapture(s, &graph));
    size_t n = 0;
    OK(cudaGraphGetNodes(graph, nullptr, &n));
    EXPECT(n, 6);
    EXPECT(calls, 0);
    OK(cudaGraphInstantiate(&exec, graph, 0));
    for (int i = 0; i < 3; i++)
        OK(cudaGraphLaunch(exec, s));
    OK(cudaStreamSynchronize(s));
    EXPECT(calls, 3);
    EXPECT(back[31], 10);
    OK(cudaGraphExecDestroy(exec));
    OK(cudaGraphDestroy(graph));
    OK(cudaFree(p));
}

static void by_hand()
{
    int *p, v = 3, back[8], source[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    cudaGraphNode_t set, kernel, up, down, from;
    OK(cudaMalloc(&p, 64));
    OK(cudaGraphCreate(&graph, 0));
    cudaMemsetParams m = {};
    m.dst = p;
    m.elementSize = 4;
    m.value = 7;
    m.width = 8;
    m.height = 1;
    OK(cudaGraphAddMemsetNode(&set, graph, nullptr, 0, &m));
    void *args[] = { &p, &v };
    cudaKernelNodeParams k = {};
    k.func = (void *)add;
    k.gridDim = dim3(1);
    k.blockDim = dim3(8);
    k.kernelParams = args;
    OK(cudaGraphAddKernelNode(&kernel, graph, &set, 1, &k));
    OK(cudaGraphAddMemcpyNode1D(&down, graph, &kernel, 1, back, p, 32, cudaMemcpyDeviceToHost));
    OK(cudaGraphAddMemcpyNodeToSymbol(&up, graph, nullptr, 0, variable, source, 32, 0,
                                      cudaMemcpyHostToDevice));
    int other[8] = { 0 };
    OK(cudaGraphAddMemcpyNodeFromSymbol(&from, graph, &up, 1, other, variable, 16, 8,
                                        cudaMemcpyDeviceToHost));
    cudaGraphNodeType type;
    OK(cudaGraphNodeGetType(kernel, &type));
    EXPECT(type, cudaGraphNodeTypeKernel);
    OK(cudaGraphInstantiate(&exec, graph, 0));
    OK(cudaGraphLaunch(exec, 0));
    OK(cudaDeviceSynchronize());
    EXPECT(back[7], 10);
    EXPECT(other[3], 6);
    v = 100;
    OK(cudaGraphExecKernelNodeSetParams(exec, kernel, &k));
    OK(cudaGraphLaunch(exec, 0));
    OK(cudaDeviceSynchronize());
    EXPECT(back[7], 107);
    cudaKernelNodeParams had;
    OK(cudaGraphKernelNodeGetParams(kernel, &had));
    EXPECT(had.blockDim.x, 8);
    EXPECT(*(int *)had.kernelParams[1], 3);
    had.blockDim.x = 4;
    OK(cudaGraphKernelNodeSetParams(kernel, &had));
    cudaGraphExecUpdateResultInfo result;
    OK(cudaGraphExecUpdate(exec, graph, &result));
    OK(cudaGraphLaunch(exec, 0));
    OK(cudaDeviceSynchronize());
    EXPECT(back[3], 10);
    EXPECT(back[4], 7);
    cudaGraphNode_t dependency;
    size_t n = 1;
    OK(cudaGraphNodeGetDependencies(kernel, &dependency, nullptr, &n));
    EXPECT(n == 1 && dependency == set, 1);
    cudaGraphNodeParams any = {};
    any.type = cudaGraphNodeTypeKernel;
    any.kernel.func = (void *)twice;
    any.kernel.gridDim = dim3(1);
    any.kernel.blockDim = dim3(8);
    any.kernel.kernelParams = args;
    cudaGraphNode_t last;
    OK(cudaGraphAddNode(&last, graph, &kernel, nullptr, 1, &any));
    cudaGraph_t clone;
    OK(cudaGraphClone(&clone, graph));
    OK(cudaGraphExecDestroy(exec));
    OK(cudaGraphInstantiate(&exec, clone, 0));
    OK(cudaGraphLaunch(exec, 0));
    OK(cudaMemcpy(back, p, 32, cudaMemcpyDeviceToHost));
    EXPECT(back[0], 20);
    OK(cudaGraphExecDestroy(exec));
    OK(cudaGraphDestroy(clone));
    OK(cudaGraphDestroy(graph));
    OK(cudaFree(p));
}

int main()
{
    captured();
    by_hand();
    return expect_status();
}
