// SPDX-License-Identifier: Apache-2.0
// NVRTC: CUDA source compiled to PTX while the program runs. Link with -lnvrtc -lcuda.
#include <cstdio>
#include <cstdlib>
#include <cuda.h>
#include <nvrtc.h>
#include <string>
#include <vector>

#define CHECK(call, good)                                                                          \
    do {                                                                                           \
        auto result_ = (call);                                                                     \
        if (result_ != (good)) {                                                                   \
            std::fprintf(stderr, "%s:%d: %s gave %d\n", __FILE__, __LINE__, #call, (int)result_);  \
            std::exit(1);                                                                          \
        }                                                                                          \
    } while (0)
#define CUDA(call) CHECK(call, CUDA_SUCCESS)
#define NVRTC(call) CHECK(call, NVRTC_SUCCESS)

// The exponent is known only now, so it becomes a constant of the kernel.
static std::string source(int exponent)
{
    return "extern \"C\" __global__ void power(int *x, int n) {\n"
           "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
           "  if (i >= n) return;\n"
           "  int result = 1;\n"
           "  for (int k = 0; k < " +
           std::to_string(exponent) +
           "; k++) result *= x[i];\n"
           "  x[i] = result;\n"
           "}\n";
}

int main()
{
    const int exponent = 5, n = 500;
    nvrtcProgram program;
    NVRTC(nvrtcCreateProgram(&program, source(exponent).c_str(), "power.cu", 0, nullptr, nullptr));
    const char *options[] = { "--gpu-architecture=compute_75" };
    NVRTC(nvrtcCompileProgram(program, 1, options));
    size_t size;
    NVRTC(nvrtcGetPTXSize(program, &size));
    std::vector<char> ptx(size);
    NVRTC(nvrtcGetPTX(program, ptx.data()));
    NVRTC(nvrtcDestroyProgram(&program));

    CUdevice device;
    CUcontext context;
    CUmodule module;
    CUfunction power;
    CUDA(cuInit(0));
    CUDA(cuDeviceGet(&device, 0));
    CUDA(cuDevicePrimaryCtxRetain(&context, device));
    CUDA(cuCtxSetCurrent(context));
    CUDA(cuModuleLoadData(&module, ptx.data()));
    CUDA(cuModuleGetFunction(&power, module, "power"));

    std::vector<int> x(n);
    for (int i = 0; i < n; i++)
        x[i] = i % 50;
    CUdeviceptr dx;
    CUDA(cuMemAlloc(&dx, n * sizeof(int)));
    CUDA(cuMemcpyHtoD(dx, x.data(), n * sizeof(int)));
    int count = n;
    void *arguments[] = { &dx, &count };
    CUDA(cuLaunchKernel(power, (n + 63) / 64, 1, 1, 64, 1, 1, 0, nullptr, arguments, nullptr));
    CUDA(cuMemcpyDtoH(x.data(), dx, n * sizeof(int)));

    bool good = true;
    for (int i = 0; i < n; i++) {
        int v = i % 50;
        good &= x[i] == v * v * v * v * v;
    }
    CUDA(cuMemFree(dx));
    CUDA(cuModuleUnload(module));
    CUDA(cuDevicePrimaryCtxRelease(device));
    std::printf("nvrtc_compile: %s\n", good ? "PASSED" : "FAILED");
    return good ? 0 : 1;
}
