// SPDX-License-Identifier: Apache-2.0
// Calls that make no sense, and the codes that the CUDA Runtime API documents for them.
#include "expect.h"

#include <cstdint>
#include <cstdlib>

#define BAD(call, code) EXPECT(call, cudaError##code)

__global__ void plain(int *p) { *p = 1; }
__global__ void __launch_bounds__(64) bounded(int *p) { *p = 1; }
__device__ int variable[4];
static int host_variable;

static void memory()
{
    void *p = (void *)8, *q;
    size_t pitch;
    int local;
    cudaPointerAttributes a;
    BAD(cudaMalloc(nullptr, 4), InvalidValue);
    OK(cudaMalloc(&p, 0));
    EXPECT((uintptr_t)p, 0);
    BAD(cudaMalloc(&p, (size_t)1 << 50), MemoryAllocation);
    BAD(cudaFree(&local), InvalidValue);
    OK(cudaFree(nullptr));
    OK(cudaMalloc(&p, 64));
    BAD(cudaFree((char *)p + 4), InvalidValue);
    OK(cudaFree(p));
    BAD(cudaFree(p), InvalidValue);
    BAD(cudaMallocHost((void **)nullptr, 4), InvalidValue);
    BAD(cudaHostAlloc(&p, 4, 64), InvalidValue);
    BAD(cudaFreeHost(&local), InvalidValue);
    OK(cudaMalloc(&q, 64));
    BAD(cudaFreeHost(q), InvalidValue);
    OK(cudaMallocHost(&p, 64));
    BAD(cudaFree((char *)p + 1), InvalidValue);
    OK(cudaFreeHost(p));
    BAD(cudaFreeHost(p), InvalidValue);
    BAD(cudaMallocManaged(&p, 0), InvalidValue);
    BAD(cudaMallocManaged(&p, 4, 8), InvalidValue);
    BAD(cudaMallocManaged((void **)nullptr, 4), InvalidValue);
    BAD(cudaMallocPitch(nullptr, &pitch, 4, 4), InvalidValue);
    BAD(cudaMallocPitch(&p, nullptr, 4, 4), InvalidValue);
    BAD(cudaPointerGetAttributes(nullptr, q), InvalidValue);
    OK(cudaPointerGetAttributes(&a, &local));
    EXPECT(a.type, cudaMemoryTypeUnregistered);
    void *mine = aligned_alloc(4096, 8192);
    BAD(cudaHostRegister(nullptr, 4, 0), InvalidValue);
    BAD(cudaHostRegister(mine, 0, 0), InvalidValue);
    BAD(cudaHostRegister(mine, 4096, 0x100), InvalidValue);
    OK(cudaHostRegister(mine, 8192, 0));
    BAD(cudaHostRegister(mine, 8192, 0), HostMemoryAlreadyRegistered);
    BAD(cudaHostGetDevicePointer(&p, mine, 1), InvalidValue);
    BAD(cudaHostUnregister((char *)mine + 8), HostMemoryNotRegistered);
    OK(cudaHostUnregister(mine));
    BAD(cudaHostUnregister(mine), HostMemoryNotRegistered);
    BAD(cudaHostGetDevicePointer(&p, mine, 0), InvalidValue);
    BAD(cudaHostUnregister(nullptr), InvalidValue);
    free(mine);
    OK(cudaFree(q));
}

static void copies()
{
    char host[64];
    void *p;
    OK(cudaMalloc(&p, 64));
    BAD(cudaMemcpy(p, host, 4, (cudaMemcpyKind)9), InvalidMemcpyDirection);
    BAD(cudaMemcpy(nullptr, host, 4, cudaMemcpyHostToDevice), InvalidValue);
    BAD(cudaMemcpy(p, nullptr, 4, cudaMemcpyHostToDevice), InvalidValue);
    OK(cudaMemcpy(nullptr, nullptr, 0, cudaMemcpyHostToDevice));
    BAD(cudaMemcpy(p, host, (size_t)1 << 40, cudaMemcpyHostToDevice), InvalidValue);
    BAD(cudaMemcpyAsync(p, host, 4, (cudaMemcpyKind)9, 0), InvalidMemcpyDirection);
    BAD(cudaMemcpyAsync(p, host, 4, cudaMemcpyHostToDevice, (cudaStream_t)0x123450), InvalidResourceHandle);
    BAD(cudaMemcpy2D(p, 8, host, 8, 16, 2, cudaMemcpyHostToDevice), InvalidPitchValue);
    BAD(cudaMemcpy2D(p, 8, host, 8, 8, 2, (cudaMemcpyKind)9), InvalidMemcpyDirection);
    BAD(cudaMemset(nullptr, 0, 4), InvalidValue);
    BAD(cudaMemset(p, 0, (size_t)1 << 40), InvalidValue);
    BAD(cudaMemset2D(p, 4, 0, 8, 2), InvalidValue);
    BAD(cudaMemsetAsync(p, 0, 4, (cudaStream_t)0x123450), InvalidResourceHandle);
    BAD(cudaMemcpyToSymbol(host_variable, host, 4), InvalidSymbol);
    BAD(cudaMemcpyToSymbol(variable, host, 20), InvalidValue);
    BAD(cudaMemcpyToSymbol(variable, host, 4, 16), InvalidValue);
    BAD(cudaMemcpyToSymbol(variable, host, 4, 0, cudaMemcpyDeviceToHost), InvalidMemcpyDirection);
    BAD(cudaMemcpyFromSymbol(host, variable, 4, 0, cudaMemcpyHostToDevice), InvalidMemcpyDirection);
    BAD(cudaGetSymbolAddress(nullptr, variable), InvalidValue);
    BAD(cudaGetSymbolAddress(&p, host_variable), InvalidSymbol);
    size_t n;
    BAD(cudaGetSymbolSize(&n, host_variable), InvalidSymbol);
    BAD(cudaMemcpyPeer(p, 0, p, 99, 4), InvalidDevice);
}

static void streams()
{
    cudaStream_t s;
    cudaEvent_t e, f;
    float ms;
    int priority;
    BAD(cudaStreamCreate(nullptr), InvalidValue);
    BAD(cudaStreamCreateWithFlags(&s, 77), InvalidValue);
    BAD(cudaStreamDestroy(0), InvalidResourceHandle);
    BAD(cudaStreamDestroy(cudaStreamLegacy), InvalidResourceHandle);
    BAD(cudaStreamSynchronize((cudaStream_t)0x123450), InvalidResourceHandle);
    OK(cudaStreamCreate(&s));
    BAD(cudaStreamGetPriority(s, nullptr), InvalidValue);
    BAD(cudaStreamGetFlags(s, nullptr), InvalidValue);
    BAD(cudaLaunchHostFunc(s, nullptr, nullptr), InvalidValue);
    BAD(cudaStreamAddCallback(s, nullptr, nullptr, 0), InvalidValue);
    OK(cudaStreamDestroy(s));
    BAD(cudaStreamDestroy(s), InvalidResourceHandle);
    BAD(cudaStreamQuery(s), InvalidResourceHandle);
    BAD(cudaStreamGetPriority(s, &priority), InvalidResourceHandle);
    BAD(cudaEventCreate(nullptr), InvalidValue);
    BAD(cudaEventCreateWithFlags(&e, 99), InvalidValue);
    BAD(cudaEventCreateWithFlags(&e, cudaEventInterprocess), InvalidValue);
    BAD(cudaEventDestroy(nullptr), InvalidResourceHandle);
    BAD(cudaEventRecord(nullptr), InvalidResourceHandle);
    BAD(cudaEventQuery(nullptr), InvalidResourceHandle);
    BAD(cudaEventSynchronize(nullptr), InvalidResourceHandle);
    OK(cudaEventCreate(&e));
    OK(cudaEventCreateWithFlags(&f, cudaEventDisableTiming));
    BAD(cudaEventElapsedTime(&ms, e, e), InvalidResourceHandle); // not recorded
    OK(cudaEventRecord(e));
    OK(cudaEventRecord(f));
    OK(cudaDeviceSynchronize());
    BAD(cudaEventElapsedTime(nullptr, e, e), InvalidValue);
    BAD(cudaEventElapsedTime(&ms, e, f), InvalidResourceHandle); // without timing
    BAD(cudaEventRecordWithFlags(e, 0, 8), InvalidValue);
    BAD(cudaStreamWaitEvent(0, nullptr, 0), InvalidResourceHandle);
    BAD(cudaStreamWaitEvent(0, e, 8), InvalidValue);
    OK(cudaEventDestroy(e));
    BAD(cudaEventDestroy(e), InvalidResourceHandle);
    BAD(cudaEventRecord(e), InvalidResourceHandle);
}

static void devices()
{
    int v;
    cudaDeviceProp prop;
    size_t n;
    BAD(cudaSetDevice(99), InvalidDevice);
    BAD(cudaSetDevice(-1), InvalidDevice);
    BAD(cudaGetDevice(nullptr), InvalidValue);
    BAD(cudaGetDeviceCount(nullptr), InvalidValue);
    BAD(cudaGetDeviceProperties(nullptr, 0), InvalidValue);
    BAD(cudaGetDeviceProperties(&prop, 99), InvalidDevice);
    BAD(cudaDeviceGetAttribute(nullptr, cudaDevAttrWarpSize, 0), InvalidValue);
    BAD(cudaDeviceGetAttribute(&v, (cudaDeviceAttr)9999, 0), InvalidValue);
    BAD(cudaDeviceGetAttribute(&v, cudaDevAttrWarpSize, 99), InvalidDevice);
    BAD(cudaDeviceCanAccessPeer(&v, 0, 99), InvalidDevice);
    BAD(cudaDeviceEnablePeerAccess(99, 0), InvalidDevice);
    BAD(cudaDeviceEnablePeerAccess(0, 0), InvalidDevice); // itself
    BAD(cudaDeviceDisablePeerAccess(99), InvalidDevice);
    BAD(cudaDeviceGetLimit(nullptr, cudaLimitStackSize), InvalidValue);
    BAD(cudaDeviceGetLimit(&n, (cudaLimit)99), InvalidValue);
    BAD(cudaDeviceSetLimit((cudaLimit)99, 1), InvalidValue);
    BAD(cudaSetDeviceFlags(0x4000), InvalidValue);
    char id[16];
    BAD(cudaDeviceGetPCIBusId(nullptr, 4, 0), InvalidValue);
    BAD(cudaDeviceGetPCIBusId(id, 16, 99), InvalidDevice);
    BAD(cudaDeviceGetByPCIBusId(&v, "nonsense"), InvalidValue);
    BAD(cudaRuntimeGetVersion(nullptr), InvalidValue);
    BAD(cudaDriverGetVersion(nullptr), InvalidValue);
}

static void kernels()
{
    int *p, v;
    cudaFuncAttributes a;
    OK(cudaMalloc(&p, 4));
    void *args[] = { &p };
    BAD(cudaFuncGetAttributes(&a, (const void *)nullptr), InvalidDeviceFunction);
    BAD(cudaFuncGetAttributes(&a, (const void *)&host_variable), InvalidDeviceFunction);
    BAD(cudaFuncGetAttributes(nullptr, (const void *)plain), InvalidValue);
    BAD(cudaFuncSetAttribute((const void *)plain, (cudaFuncAttribute)99, 1), InvalidValue);
    BAD(cudaFuncSetAttribute((const void *)plain, cudaFuncAttributeMaxDynamicSharedMemorySize, 1 << 20), InvalidValue);
    BAD(cudaFuncSetAttribute((const void *)&v, cudaFuncAttributeMaxDynamicSharedMemorySize, 1), InvalidDeviceFunction);
    BAD(cudaFuncSetCacheConfig((const void *)&v, cudaFuncCachePreferL1), InvalidDeviceFunction);
    BAD(cudaLaunchKernel((const void *)nullptr, dim3(1), dim3(1), args, 0, 0), InvalidDeviceFunction);
    BAD(cudaLaunchKernel((const void *)&v, dim3(1), dim3(1), args, 0, 0), InvalidDeviceFunction);
    BAD(cudaLaunchKernel((const void *)plain, dim3(0), dim3(1), args, 0, 0), InvalidConfiguration);
    BAD(cudaLaunchKernel((const void *)plain, dim3(1), dim3(0), args, 0, 0), InvalidConfiguration);
    BAD(cudaLaunchKernel((const void *)plain, dim3(1), dim3(1025), args, 0, 0), InvalidConfiguration);
    BAD(cudaLaunchKernel((const void *)plain, dim3(1), dim3(64, 64), args, 0, 0), InvalidConfiguration);
    BAD(cudaLaunchKernel((const void *)plain, dim3(1, 70000), dim3(1), args, 0, 0), InvalidConfiguration);
    BAD(cudaLaunchKernel((const void *)plain, dim3(1), dim3(1), args, 1 << 20, 0), InvalidValue);
    BAD(cudaLaunchKernel((const void *)plain, dim3(1), dim3(1), args, 0, (cudaStream_t)0x123450), InvalidResourceHandle);
    BAD(cudaLaunchKernel((const void *)bounded, dim3(1), dim3(128), args, 0, 0), LaunchOutOfResources);
    BAD(cudaLaunchCooperativeKernel((const void *)plain, dim3(1 << 20), dim3(1), args, 0, 0), CooperativeLaunchTooLarge);
    BAD(cudaOccupancyMaxActiveBlocksPerMultiprocessor(nullptr, plain, 32, 0), InvalidValue);
    BAD(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&v, (const void *)&v, 32, 0), InvalidDeviceFunction);
    BAD(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&v, plain, 0, 0), InvalidValue);
    OK(cudaDeviceSynchronize()); // none of them did harm
    EXPECT(cudaGetLastError(), cudaErrorInvalidValue); // the last of them
    EXPECT(cudaGetLastError(), cudaSuccess);
}

static void captures()
{
    cudaStream_t s, t;
    cudaGraph_t g;
    cudaEvent_t e;
    cudaStreamCaptureStatus status;
    OK(cudaStreamCreate(&s));
    OK(cudaStreamCreate(&t));
    OK(cudaEventCreate(&e));
    BAD(cudaStreamBeginCapture(0, cudaStreamCaptureModeGlobal), StreamCaptureUnsupported);
    BAD(cudaStreamBeginCapture(s, (cudaStreamCaptureMode)9), InvalidValue);
    BAD(cudaStreamEndCapture(s, &g), IllegalState);
    OK(cudaStreamBeginCapture(s, cudaStreamCaptureModeRelaxed));
    BAD(cudaStreamBeginCapture(s, cudaStreamCaptureModeRelaxed), IllegalState);
    BAD(cudaStreamSynchronize(s), StreamCaptureUnsupported);
    OK(cudaStreamIsCapturing(s, &status));
    EXPECT(status, cudaStreamCaptureStatusInvalidated);
    BAD(cudaStreamEndCapture(s, &g), StreamCaptureInvalidated);
    OK(cudaStreamBeginCapture(s, cudaStreamCaptureModeRelaxed));
    OK(cudaEventRecord(e, s));
    BAD(cudaEventQuery(e), CapturedEvent);
    BAD(cudaEventSynchronize(e), CapturedEvent);
    OK(cudaStreamWaitEvent(t, e, 0));
    BAD(cudaStreamEndCapture(t, &g), StreamCaptureUnmatched);
    OK(cudaMemsetAsync(nullptr, 0, 0, t));
    (void)cudaStreamEndCapture(s, &g);
    BAD(cudaGraphInstantiate((cudaGraphExec_t *)nullptr, g, 0), InvalidValue);
    BAD(cudaGraphDestroy((cudaGraph_t)nullptr), InvalidValue);
    BAD(cudaGraphLaunch((cudaGraphExec_t)nullptr, s), InvalidValue);
    BAD(cudaGraphCreate(nullptr, 0), InvalidValue);
    BAD(cudaGraphCreate(&g, 3), InvalidValue);
}

int main()
{
    memory();
    copies();
    streams();
    devices();
    kernels();
    captures();
    return expect_status();
}
