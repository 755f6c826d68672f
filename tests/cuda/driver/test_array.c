/* SPDX-License-Identifier: Apache-2.0
 * Test: arrays of one to three dimensions, layers and mipmap levels; copies to and from them. */
#include "rig.h"

static CUarray make(size_t w, size_t h, size_t d, CUarray_format format, unsigned channels,
                    unsigned flags)
{
    CUarray a;
    const CUDA_ARRAY3D_DESCRIPTOR desc = { w, h, d, format, channels, flags };
    OK(cuArray3DCreate_v2(&a, &desc));
    return a;
}

static void one_row(void **state)
{
    uint32_t in[64], out[64] = { 0 };
    (void)state;
    for (uint32_t i = 0; i < 64; i++) {
        in[i] = i * 7;
    }
    CUarray a = make(64, 0, 0, CU_AD_FORMAT_UNSIGNED_INT32, 1, 0),
            b = make(64, 0, 0, CU_AD_FORMAT_FLOAT, 1, 0);
    CUdeviceptr p = rig_alloc(256);
    OK(cuMemcpyHtoA_v2(a, 0, in, 256));
    OK(cuMemcpyAtoA_v2(b, 0, a, 0, 256));
    OK(cuMemcpyAtoD_v2(p, b, 128, 128));
    OK(cuMemcpyDtoA_v2(a, 0, p, 128));
    OK(cuMemcpyAtoH_v2(out, a, 0, 256));
    assert_int_equal(out[0], in[32]);
    assert_int_equal(out[31], in[63]);
    assert_int_equal(out[32], in[32]);
    ERR(INVALID_VALUE, cuMemcpyHtoA_v2(a, 4, in, 256));
    OK(cuArrayDestroy(a));
    ERR(INVALID_HANDLE, cuArrayDestroy(a));
    ERR(INVALID_HANDLE, cuMemcpyHtoA_v2(a, 0, in, 4));
}

static void box(void **state)
{
    static uint16_t in[4][6][10], out[4][6][10];
    (void)state;
    for (int i = 0; i < 240; i++) {
        in[i / 60][i / 10 % 6][i % 10] = (uint16_t)(i * 3);
    }
    CUarray a = make(5, 6, 4, CU_AD_FORMAT_HALF, 2, 0);
    CUDA_MEMCPY3D c = { .srcMemoryType = CU_MEMORYTYPE_HOST,
                        .srcHost = in,
                        .srcPitch = 20,
                        .srcHeight = 6,
                        .dstMemoryType = CU_MEMORYTYPE_ARRAY,
                        .dstArray = a,
                        .WidthInBytes = 20,
                        .Height = 6,
                        .Depth = 4 };
    OK(cuMemcpy3D_v2(&c));
    CUDA_MEMCPY3D back = { .srcMemoryType = CU_MEMORYTYPE_ARRAY,
                           .srcArray = a,
                           .srcXInBytes = 4,
                           .srcY = 1,
                           .srcZ = 2,
                           .dstMemoryType = CU_MEMORYTYPE_HOST,
                           .dstHost = out,
                           .dstPitch = 20,
                           .dstHeight = 6,
                           .WidthInBytes = 16,
                           .Height = 5,
                           .Depth = 2 };
    OK(cuMemcpy3D_v2(&back));
    assert_int_equal(out[0][0][0], in[2][1][2]);
    assert_int_equal(out[1][4][7], in[3][5][9]);
    back.Depth = 3;
    ERR(INVALID_VALUE, cuMemcpy3D_v2(&back));
    CUDA_ARRAY3D_DESCRIPTOR d;
    OK(cuArray3DGetDescriptor_v2(&d, a));
    assert_int_equal(d.Depth, 4);
    assert_int_equal(d.NumChannels, 2);
}

static void refused(void **state)
{
    CUarray a;
    CUDA_ARRAY3D_DESCRIPTOR d = { 8, 8, 0, CU_AD_FORMAT_FLOAT, 3, 0 };
    (void)state;
    ERR(INVALID_VALUE, cuArray3DCreate_v2(&a, &d));
    d = (CUDA_ARRAY3D_DESCRIPTOR){ 0, 8, 0, CU_AD_FORMAT_FLOAT, 1, 0 };
    ERR(INVALID_VALUE, cuArray3DCreate_v2(&a, &d));
    d = (CUDA_ARRAY3D_DESCRIPTOR){ 8, 0, 8, CU_AD_FORMAT_FLOAT, 1, 0 };
    ERR(INVALID_VALUE, cuArray3DCreate_v2(&a, &d));
    d = (CUDA_ARRAY3D_DESCRIPTOR){
        8, 4, 6, CU_AD_FORMAT_FLOAT, 1, 4
    }; /* a cube's faces are square */
    ERR(INVALID_VALUE, cuArray3DCreate_v2(&a, &d));
    d = (CUDA_ARRAY3D_DESCRIPTOR){ 1 << 20, 8, 0, CU_AD_FORMAT_FLOAT, 1, 0 };
    ERR(INVALID_VALUE, cuArray3DCreate_v2(&a, &d));
    ERR(INVALID_VALUE, cuArray3DCreate_v2(&a, NULL));
}

static void mipmaps(void **state)
{
    CUmipmappedArray m;
    CUarray level;
    CUDA_ARRAY_DESCRIPTOR got;
    const CUDA_ARRAY3D_DESCRIPTOR d = { 20, 8, 0, CU_AD_FORMAT_UNSIGNED_INT8, 4, 0 };
    (void)state;
    OK(cuMipmappedArrayCreate(&m, &d, 99));
    OK(cuMipmappedArrayGetLevel(&level, m, 4));
    OK(cuArrayGetDescriptor_v2(&got, level));
    assert_int_equal(got.Width, 1);
    assert_int_equal(got.Height, 1);
    ERR(INVALID_VALUE, cuMipmappedArrayGetLevel(&level, m, 5));
    ERR(INVALID_HANDLE, cuArrayDestroy(level));
    OK(cuMipmappedArrayDestroy(m));
    ERR(INVALID_HANDLE, cuMipmappedArrayGetLevel(&level, m, 0));
    OK(cuMipmappedArrayCreate(&m, &d, 2)); /* left to the context's end */
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, rig_context, rig_end)
    const struct CMUnitTest tests[] = { T(one_row), T(box), T(refused), T(mipmaps) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
