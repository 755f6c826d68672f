/* SPDX-License-Identifier: Apache-2.0
 * Test: textures and surfaces, against the formulas of the CUDA C++ Programming Guide ("Texture Fetching") computed
 * here in double precision: addressing, filtering, formats, layers, levels, cubes, and what is refused. */
#include "rig.h"

#include <math.h>

enum { W = 8, H = 6 };

static CUmodule module;
static CUdeviceptr at, out;

static int setup(void **state)
{
    if (rig_context(state))
        return 1;
    char *text = rig_text("textures.ptx");
    OK(cuModuleLoadData(&module, text));
    free(text);
    at = rig_alloc(64 * 16);
    out = rig_alloc(64 * 16);
    return 0;
}

/* One thread for each of n places; results in `got`. */
static CUresult run(const char *kernel, unsigned long long object, const void *places, unsigned n,
                    void *got)
{
    CUfunction f;
    OK(cuModuleGetFunction(&f, module, kernel));
    OK(cuMemcpyHtoD_v2(at, places, 16 * n));
    OK(rig_launch(f, 1, n, NULL, &object, &at, &out, NULL));
    return cuMemcpyDtoH_v2(got, out, 16 * n);
}

static float value(int x, int y)
{
    return (float)(x * x + 10 * y);
}

static CUarray make_array(size_t w, size_t h, size_t d, unsigned flags, CUarray_format format,
                          unsigned channels)
{
    CUarray a;
    const CUDA_ARRAY3D_DESCRIPTOR desc = { w, h, d, format, channels, flags };
    OK(cuArray3DCreate_v2(&a, &desc));
    return a;
}

static void fill(CUarray a, const void *texels, size_t row, size_t h, size_t d)
{
    const CUDA_MEMCPY3D c = { .srcMemoryType = CU_MEMORYTYPE_HOST,
                              .srcHost = texels,
                              .srcPitch = row,
                              .srcHeight = h,
                              .dstMemoryType = CU_MEMORYTYPE_ARRAY,
                              .dstArray = a,
                              .WidthInBytes = row,
                              .Height = h,
                              .Depth = d };
    OK(cuMemcpy3D_v2(&c));
}

static CUtexObject texture(CUarray a, int mode, int filter, unsigned flags)
{
    CUtexObject t;
    const CUDA_RESOURCE_DESC r = { .resType = 0, .res.array.hArray = a };
    const CUDA_TEXTURE_DESC d = { .addressMode = { mode, mode, mode },
                                  .filterMode = filter,
                                  .flags = flags,
                                  .borderColor = { 0.5f } };
    OK(cuTexObjectCreate(&t, &r, &d, NULL));
    return t;
}

static CUarray plane(void)
{
    float texels[H][W];
    for (int y = 0; y < H; y++) {
        for (int x = 0; x < W; x++) {
            texels[y][x] = value(x, y);
        }
    }
    CUarray a = make_array(W, H, 0, 0, CU_AD_FORMAT_FLOAT, 1);
    fill(a, texels, sizeof texels[0], H, 1);
    return a;
}

enum { WRAP, CLAMP, MIRROR, BORDER };

/* The guide's rules for one index. -1: the border. */
static int bring_inside(int i, int n, int mode)
{
    if (mode == CLAMP)
        return i < 0 ? 0 : i >= n ? n - 1 : i;
    if (mode == BORDER)
        return i < 0 || i >= n ? -1 : i;
    int period = mode == MIRROR ? 2 * n : n, k = ((i % period) + period) % period;
    return k < n ? k : period - 1 - k;
}

static double texel(int x, int y, int mode)
{
    x = bring_inside(x, W, mode);
    y = bring_inside(y, H, mode);
    return x < 0 || y < 0 ? 0.5 : value(x, y);
}

static double filtered(double x, double y, int mode, int filter)
{
    if (!filter)
        return texel((int)floor(x), (int)floor(y), mode);
    double bx = x - 0.5, by = y - 0.5;
    int i = (int)floor(bx), j = (int)floor(by);
    double a = floor((bx - i) * 256 + 0.5) / 256, b = floor((by - j) * 256 + 0.5) / 256;
    return (1 - a) * (1 - b) * texel(i, j, mode) + a * (1 - b) * texel(i + 1, j, mode) +
           (1 - a) * b * texel(i, j + 1, mode) + a * b * texel(i + 1, j + 1, mode);
}

static void modes(void **state)
{
    float places[64][4], got[64][4];
    (void)state;
    CUarray a = plane();
    for (int i = 0; i < 64; i++) {
        places[i][0] = (float)(i % 8) * 0.37f - 0.6f;
        places[i][1] = (float)(i / 8) * 0.31f - 0.4f;
    }
    for (int k = 0; k < 16; k++) {
        int mode = k & 3, filter = k >> 2 & 1, normalized = k >> 3;
        if (!normalized && (mode == WRAP || mode == MIRROR))
            continue;
        CUtexObject t = texture(a, mode, filter, normalized ? 2 : 0);
        OK(run("tex2d", t, places, 64, got));
        for (int i = 0; i < 64; i++) {
            double x = places[i][0], y = places[i][1];
            double want =
                normalized ? filtered(x * W, y * H, mode, filter) : filtered(x, y, mode, filter);
            assert_true(fabs(got[i][0] - want) < 1e-3 * (1 + fabs(want)));
        }
        OK(cuTexObjectDestroy(t));
    }
}

static void linear_memory(void **state)
{
    uint8_t bytes[16];
    int32_t places[18][4] = { { 0 } };
    float got[18][4];
    CUtexObject t;
    (void)state;
    for (int i = 0; i < 16; i++) {
        bytes[i] = (uint8_t)(i * 17);
    }
    CUdeviceptr p = rig_alloc(16);
    OK(cuMemcpyHtoD_v2(p, bytes, 16));
    CUDA_RESOURCE_DESC r = { .resType = 2, .res.linear = { p, CU_AD_FORMAT_UNSIGNED_INT8, 1, 16 } };
    CUDA_TEXTURE_DESC d = { .flags = 0 };
    OK(cuTexObjectCreate(&t, &r, &d, NULL));
    for (int i = 0; i < 18; i++) {
        places[i][0] = i - 1;
    }
    OK(run("fetch1d", t, places, 18, got));
    assert_true(got[0][0] == 0 && got[17][0] == 0); /* outside */
    for (int i = 0; i < 16; i++) {
        assert_true(fabs(got[i + 1][0] - i * 17 / 255.0) < 1e-6); /* normalised */
    }
    r.res.linear.sizeInBytes = 1 << 20;
    ERR(INVALID_VALUE, cuTexObjectCreate(&t, &r, &d, NULL)); /* more than is allocated */
}

static void formats(void **state)
{
    uint8_t texels[2][2][4] = { { { 0, 128, 255, 51 }, { 1, 2, 3, 4 } },
                                { { 5, 6, 7, 8 }, { 9, 10, 11, 12 } } };
    float places[2][4] = { { 0.5f, 0.5f }, { 1.5f, 1.5f } }, got[2][4];
    uint32_t whole[2][4];
    (void)state;
    CUarray a = make_array(2, 2, 0, 0, CU_AD_FORMAT_UNSIGNED_INT8, 4);
    fill(a, texels, 8, 2, 1);
    OK(run("tex2d", texture(a, CLAMP, 0, 0), places, 2, got));
    assert_true(fabs(got[0][1] - 128 / 255.0) < 1e-6 && got[0][2] == 1);
    OK(run("tex2d_int", texture(a, CLAMP, 0, 1), places, 2, whole));
    assert_int_equal(whole[0][3], 51);
    assert_int_equal(whole[1][0], 9);
    a = make_array(2, 2, 0, 0, CU_AD_FORMAT_SIGNED_INT8, 4);
    fill(a, texels, 8, 2, 1);
    OK(run("tex2d", texture(a, CLAMP, 0, 0), places, 2, got));
    assert_true(got[0][1] == -1); /* -128 is as far as -127 */
    OK(run("tex2d_int", texture(a, CLAMP, 0, 1), places, 2, whole));
    assert_int_equal((int32_t)whole[0][1], -128);
    const uint16_t halves[4] = { 0x3C00, 0xC000, 0x7BFF, 0x0001 }; /* 1, -2, 65504, 2^-24 */
    a = make_array(4, 0, 0, 0, CU_AD_FORMAT_HALF, 1);
    fill(a, halves, 8, 1, 1);
    float line[4][4] = { { 0.5f }, { 1.5f }, { 2.5f }, { 3.5f } }, h[4][4];
    OK(run("tex1d", texture(a, CLAMP, 0, 0), line, 4, h));
    assert_true(h[0][0] == 1 && h[1][0] == -2 && h[2][0] == 65504 && h[3][0] == ldexpf(1, -24));
}

static void boxes_and_layers(void **state)
{
    float texels[3][4][5], places[8][4], got[8][4];
    (void)state;
    for (int i = 0; i < 60; i++) {
        texels[i / 20][i / 5 % 4][i % 5] = (float)i;
    }
    CUarray a = make_array(5, 4, 3, 0, CU_AD_FORMAT_FLOAT, 1),
            l = make_array(5, 4, 3, 1, CU_AD_FORMAT_FLOAT, 1);
    fill(a, texels, 20, 4, 3);
    fill(l, texels, 20, 4, 3);
    for (int i = 0; i < 8; i++) {
        places[i][0] = (float)(i % 2) + 1.0f;
        places[i][1] = (float)(i / 2 % 2) + 1.25f;
        places[i][2] = (float)(i / 4) + 1.0f;
    }
    OK(run("tex3d", texture(a, CLAMP, 1, 0), places, 8, got));
    for (int i = 0; i < 8;
         i++) { /* the values are linear in the coordinates, and so is the filter */
        double want = places[i][0] - 0.5 + 5 * (places[i][1] - 0.5) + 20 * (places[i][2] - 0.5);
        assert_true(fabs(got[i][0] - want) < 1e-3);
    }
    const int32_t layer[4] = { 2, 0, 1, 99 };
    for (int i = 0; i < 4; i++) {
        memcpy(&places[i][0], &layer[i], 4);
        places[i][1] = 3.5f;
        places[i][2] = 2.5f;
    }
    OK(run("layered", texture(l, CLAMP, 1, 0), places, 4, got));
    assert_true(got[0][0] == 20 * 2 + 13 && got[1][0] == 13 && got[2][0] == 33 && got[3][0] == 53);
}

static void levels(void **state)
{
    CUmipmappedArray m;
    CUarray level;
    CUtexObject t;
    float texels[16], places[6][4] = { { 0 } }, got[6][4];
    const CUDA_ARRAY3D_DESCRIPTOR desc = { 4, 4, 0, CU_AD_FORMAT_FLOAT, 1, 0 };
    (void)state;
    OK(cuMipmappedArrayCreate(&m, &desc, 3));
    for (unsigned i = 0; i < 3; i++) {
        for (int k = 0; k < 16; k++) {
            texels[k] = (float)(i + 1);
        }
        OK(cuMipmappedArrayGetLevel(&level, m, i));
        fill(level, texels, 16 >> i, 4 >> i, 1);
    }
    const CUDA_RESOURCE_DESC r = { .resType = 1, .res.mipmap.hMipmappedArray = m };
    CUDA_TEXTURE_DESC d = {
        .flags = 2, .filterMode = 1, .mipmapFilterMode = 1, .maxMipmapLevelClamp = 10
    };
    OK(cuTexObjectCreate(&t, &r, &d, NULL));
    const float lods[6] = { -1, 0, 0.5f, 1, 1.75f, 7 }, want[6] = { 1, 1, 1.5f, 2, 2.75f, 3 };
    for (int i = 0; i < 6; i++) {
        places[i][0] = places[i][1] = 0.5f;
        places[i][2] = lods[i];
    }
    OK(run("level", t, places, 6, got));
    for (int i = 0; i < 6; i++) {
        assert_true(fabsf(got[i][0] - want[i]) < 0.01f);
    }
    for (int i = 0; i < 3; i++) { /* a step of 2^i texels is level i */
        places[i][2] = ldexpf(0.25f, i);
        places[i][3] = 0;
    }
    OK(run("grad", t, places, 3, got));
    assert_true(got[0][0] == 1 && got[1][0] == 2 && got[2][0] == 3);
}

static void cube_and_gather(void **state)
{
    float faces[6][2][2], got[6][4];
    const float directions[6][4] = { { 1, 0, 0 },  { -1, 0, 0 }, { 0, 1, 0 },
                                     { 0, -1, 0 }, { 0, 0, 1 },  { 0, 0, -1 } };
    (void)state;
    for (int i = 0; i < 24; i++) {
        faces[i / 4][i / 2 % 2][i % 2] = (float)(i / 4);
    }
    CUarray c = make_array(2, 2, 6, 4, CU_AD_FORMAT_FLOAT, 1);
    fill(c, faces, 8, 2, 6);
    OK(run("cube", texture(c, CLAMP, 0, 2), directions, 6, got));
    for (int i = 0; i < 6; i++) {
        assert_true(got[i][0] == (float)i);
    }
    const float place[1][4] = { { 3, 2 } };
    OK(run("gather", texture(plane(), CLAMP, 1, 0), place, 1, got));
    assert_true(got[0][0] == value(2, 2) && got[0][1] == value(3, 2) && got[0][2] == value(3, 1) &&
                got[0][3] == value(2, 1));
}

static void surfaces(void **state)
{
    CUsurfObject s;
    int32_t places[4][4] = { { 8, 1 }, { -4, 0 }, { 0, 9 }, { 0, 0 } };
    uint32_t got[4][4];
    float back[H][W];
    (void)state;
    CUarray a = plane();
    const CUDA_RESOURCE_DESC r = { .resType = 0, .res.array.hArray = a };
    OK(cuSurfObjectCreate(&s, &r));
    OK(run("load", s, places, 4, got));
    float v = value(2, 1);
    assert_memory_equal(&got[0][0], &v, 4);
    assert_int_equal(got[1][0], 0);
    assert_int_equal(got[2][0], 0);
    OK(run("load_clamp", s, places, 4, got));
    v = value(0, H - 1);
    uint32_t bits = got[2][0] | got[2][1] << 16;
    assert_memory_equal(&bits, &v, 4);
    places[0][2] = 0x41200000; /* 10.0f */
    OK(run("store", s, places, 1, got));
    places[1][2] = places[1][3] = 0xFF;
    OK(run("store_zero", s, places + 1, 1, got)); /* outside: nothing */
    const CUDA_MEMCPY3D c = { .srcMemoryType = CU_MEMORYTYPE_ARRAY,
                              .srcArray = a,
                              .dstMemoryType = CU_MEMORYTYPE_HOST,
                              .dstHost = back,
                              .dstPitch = sizeof back[0],
                              .dstHeight = H,
                              .WidthInBytes = sizeof back[0],
                              .Height = H,
                              .Depth = 1 };
    OK(cuMemcpy3D_v2(&c));
    assert_true(back[1][2] == 10 && back[0][0] == value(0, 0));
    assert_int_equal(run("store", s, places + 1, 1, got), CUDA_ERROR_ILLEGAL_ADDRESS);
}

/* Texels as halves: rounded once from what a fetch of floats gives; they are always resident. */
static void halves(void **state)
{
    (void)state;
    const float places[2][4] = { { 2.5f, 3 }, { 1.25f, 0.5f } };
    uint32_t got[2][4], whole[2][4];
    float floats[2][4];
    memcpy(whole, places, sizeof whole);
    for (int i = 0; i < 2; i++)
        whole[i][2] = (uint32_t)i, whole[i][3] = 4;
    CUtexObject t = texture(plane(), CLAMP, 1, 0);
    OK(run("tex2d", t, whole, 2, floats));
    OK(run("halves", t, whole, 2, got));
    for (int i = 0; i < 2; i++) {
        _Float16 want[4] = { (_Float16)floats[i][0], (_Float16)floats[i][1], (_Float16)floats[i][2],
                             (_Float16)floats[i][3] };
        _Float16 texel = (_Float16)value(i, 4);
        assert_memory_equal(got[i], want, 8);
        assert_memory_equal(&got[i][2], &texel, 2);
        assert_int_equal(got[i][3], 1);
    }
}

static void queries(void **state)
{
    (void)state;
    uint32_t level[3][4] = { { 0 } }, got[12];
    OK(run("ask", texture(plane(), CLAMP, 1, 2), level, 3, got));
    const uint32_t flat[12] = { W, H, 1, 1, 0, 0, 1, 3, 3, W, W, 0 };
    assert_memory_equal(got, flat, sizeof flat);
    CUarray layers = make_array(W, 4, 3, 1, CU_AD_FORMAT_FLOAT, 1);
    OK(run("ask", texture(layers, WRAP, 0, 0), level, 3, got));
    const uint32_t layered[12] = { W, 4, 1, 0, 3, 0, 0, 0, 0, W, W, 0 };
    assert_memory_equal(got, layered, sizeof layered);
    CUarray volume = make_array(W, 4, 3, 0, CU_AD_FORMAT_FLOAT, 1);
    OK(run("ask", texture(volume, BORDER, 0, 0), level, 3, got));
    const uint32_t solid[12] = { W, 4, 3, 0, 0, 0, 0, 4, 4, W, W, 0 };
    assert_memory_equal(got, solid, sizeof solid);
}

static void read_back(CUarray a, void *to, size_t row, size_t rows)
{
    const CUDA_MEMCPY3D c = { .srcMemoryType = CU_MEMORYTYPE_ARRAY,
                              .srcArray = a,
                              .dstMemoryType = CU_MEMORYTYPE_HOST,
                              .dstHost = to,
                              .dstPitch = row,
                              .dstHeight = rows,
                              .WidthInBytes = row,
                              .Height = rows,
                              .Depth = 1 };
    OK(cuMemcpy3D_v2(&c));
}

static CUsurfObject surface(CUarray a)
{
    CUsurfObject s;
    const CUDA_RESOURCE_DESC r = { .resType = 0, .res.array.hArray = a };
    OK(cuSurfObjectCreate(&s, &r));
    return s;
}

static void reductions(void **state)
{
    (void)state;
    int32_t texels[H][W], got[H][W], ignored[64];
    int32_t places[8][4];
    for (int i = 0; i < H * W; i++)
        texels[i / W][i % W] = i - 20;
    CUarray a = make_array(W, H, 0, 2, CU_AD_FORMAT_SIGNED_INT32, 1);
    fill(a, texels, sizeof texels[0], H, 1);
    for (int i = 0; i < 8; i++) /* two threads for each of four texels; x in bytes */
        memcpy(places[i], (int32_t[]){ i / 2 * 4, 3, 5, i == 7 ? 1000 : -1000 }, 16);
    OK(run("reduce", surface(a), places, 8, ignored));
    read_back(a, got, sizeof got[0], H);
    for (int x = 0; x < W; x++)
        assert_int_equal(got[3][x], x < 3 ? texels[3][x] + 10 : x == 3 ? 1000 : texels[3][x]);
    fill(a, texels, sizeof texels[0], H, 1);
    for (int i = 0; i < 4; i++) /* x in texels, outside the nearest */
        memcpy(places[i], (int32_t[]){ i == 3 ? 99 : i, 0, -18 + i, 0 }, 16);
    OK(run("reduce_samples", surface(a), places, 4, ignored));
    read_back(a, got, sizeof got[0], H);
    for (int x = 0; x < W; x++)
        assert_int_equal(got[0][x], x < 3 || x == 7 ? (texels[0][x] < -18 + (x == 7 ? 3 : x)
                                                           ? texels[0][x]
                                                           : -18 + (x == 7 ? 3 : x))
                                                    : texels[0][x]);
}

/* Channels that become a texel of the surface's format. */
static void formatted(void **state)
{
    (void)state;
    uint8_t bytes[H][W][2] = { { { 0 } } };
    uint16_t words[H][W][2] = { { { 0 } } };
    uint32_t places[4][4] = { { 1, 2, 77, 300 }, { 0, 0, 5, 6 }, { 99, 0, 9, 9 }, { 7, 5, 1, 2 } },
             ignored[64];
    CUarray a = make_array(W, H, 0, 2, CU_AD_FORMAT_UNSIGNED_INT8, 2);
    fill(a, bytes, sizeof bytes[0], H, 1);
    OK(run("format", surface(a), places, 4, ignored));
    read_back(a, bytes, sizeof bytes[0], H);
    assert_true(bytes[2][1][0] == 77 && bytes[2][1][1] == 255 && bytes[0][0][0] == 5 &&
                bytes[0][0][1] == 6);
    assert_true(bytes[5][7][0] == 1 && bytes[5][7][1] == 2 && bytes[0][7][0] == 0);
    const float floats[2][4] = { { 0, 0, 1.0f / 3, -70000 }, { 0, 0, 0x1.8p-24f, 65519.9f } };
    memcpy(places, floats, sizeof floats);
    places[0][0] = 3, places[1][0] = 4;
    CUarray h = make_array(W, H, 0, 2, CU_AD_FORMAT_HALF, 2);
    OK(run("format", surface(h), places, 2, ignored));
    read_back(h, words, sizeof words[0], H);
    for (int i = 0; i < 4; i++) {
        _Float16 want = (_Float16)floats[i / 2][2 + i % 2];
        assert_memory_equal(&words[0][3 + i / 2][i % 2], &want, 2);
    }
}

static void wrong_objects(void **state)
{
    float places[1][4] = { { 0 } }, got[1][4];
    CUDA_RESOURCE_DESC r;
    (void)state;
    CUtexObject t = texture(plane(), CLAMP, 0, 0);
    OK(cuTexObjectGetResourceDesc(&r, t));
    assert_int_equal(r.resType, 0);
    OK(cuTexObjectDestroy(t));
    ERR(INVALID_VALUE, cuTexObjectDestroy(t));
    ERR(INVALID_VALUE, cuTexObjectGetResourceDesc(&r, t));
    ERR(INVALID_VALUE, cuSurfObjectDestroy(12345));
    assert_int_equal(run("tex2d", t, places, 1, got), CUDA_ERROR_ILLEGAL_ADDRESS);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, rig_end)
    const struct CMUnitTest tests[] = {
        T(modes),   T(linear_memory),   T(formats),   T(boxes_and_layers),
        T(levels),  T(cube_and_gather), T(surfaces),  T(halves),
        T(queries), T(reductions),      T(formatted), T(wrong_objects),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
