// SPDX-License-Identifier: Apache-2.0
// The driver API: a module from PTX text, a kernel by name, arguments by address. Link with -lcuda.
#include <cstdio>
#include <cstdlib>
#include <cuda.h>
#include <vector>

#define CHECK(call)                                                                                \
    do {                                                                                           \
        CUresult result_ = (call);                                                                 \
        if (result_ != CUDA_SUCCESS) {                                                             \
            const char *text_ = "?";                                                               \
            cuGetErrorString(result_, &text_);                                                     \
            std::fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, text_);             \
            std::exit(1);                                                                          \
        }                                                                                          \
    } while (0)

static const char ptx[] = R"(
.version 7.0
.target sm_52
.address_size 64
.visible .entry scale(.param .u64 data, .param .f32 factor, .param .u32 n)
{
    .reg .pred %p;
    .reg .b32 %i, %n, %t, %b;
    .reg .f32 %x, %f;
    .reg .b64 %a, %o;
    ld.param.u64 %a, [data];
    ld.param.f32 %f, [factor];
    ld.param.u32 %n, [n];
    mov.u32 %t, %tid.x;
    mov.u32 %b, %ctaid.x;
    mov.u32 %i, %ntid.x;
    mad.lo.u32 %i, %b, %i, %t;
    setp.ge.u32 %p, %i, %n;
    @%p bra done;
    cvta.to.global.u64 %a, %a;
    mul.wide.u32 %o, %i, 4;
    add.u64 %a, %a, %o;
    ld.global.f32 %x, [%a];
    mul.f32 %x, %x, %f;
    st.global.f32 [%a], %x;
done:
    ret;
}
)";

int main()
{
    CHECK(cuInit(0));
    CUdevice device;
    CUcontext context;
    char name[100];
    CHECK(cuDeviceGet(&device, 0));
    CHECK(cuDeviceGetName(name, sizeof name, device));
    std::printf("device: %s\n", name);
    CHECK(cuDevicePrimaryCtxRetain(&context, device));
    CHECK(cuCtxSetCurrent(context));

    CUmodule module;
    CUfunction scale;
    CHECK(cuModuleLoadData(&module, ptx));
    CHECK(cuModuleGetFunction(&scale, module, "scale"));

    unsigned n = 1000;
    float factor = 1.5f;
    std::vector<float> host(n), got(n);
    for (unsigned i = 0; i < n; i++)
        host[i] = (float)i;
    CUdeviceptr data;
    CHECK(cuMemAlloc(&data, n * sizeof(float)));
    CHECK(cuMemcpyHtoD(data, host.data(), n * sizeof(float)));
    void *arguments[] = { &data, &factor, &n };
    CHECK(cuLaunchKernel(scale, (n + 127) / 128, 1, 1, 128, 1, 1, 0, nullptr, arguments, nullptr));
    CHECK(cuCtxSynchronize());
    CHECK(cuMemcpyDtoH(got.data(), data, n * sizeof(float)));

    bool good = true;
    for (unsigned i = 0; i < n; i++)
        good &= got[i] == host[i] * factor;
    CHECK(cuMemFree(data));
    CHECK(cuModuleUnload(module));
    CHECK(cuDevicePrimaryCtxRelease(device));
    std::printf("driver_api: %s\n", good ? "PASSED" : "FAILED");
    return good ? 0 : 1;
}
