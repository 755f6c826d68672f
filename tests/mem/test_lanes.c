/* SPDX-License-Identifier: Apache-2.0
 * Textures read by warps give the bits that lane-by-lane reading gives: all the kinds that are read so,
 * coordinates inside, at the borders, far out and not numbers. */
#include "hw_texture.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>

enum { WIDTH = 37, HEIGHT = 21, LANES = 32, ROUNDS = 60 };

static uint32_t seed = 7;

static uint32_t random_bits(void)
{
    seed = seed * 1664525u + 1013904223u;
    return seed >> 8;
}

static float coordinate(bool normalized, uint32_t size)
{
    static const float odd[] = { -0.0f, NAN, INFINITY, -INFINITY, 3e9f, -3e9f, 1e-40f, 5e6f };
    uint32_t kind = random_bits() % 8;
    float x = (float)(random_bits() % 65536) / 65536.0f * (float)size;
    if (kind == 0)
        return odd[random_bits() % HW_COUNTOF(odd)];
    if (kind == 1)
        x = (float)(random_bits() % (size + 1)); /* a border of texels */
    if (kind == 2)
        x = (x - (float)size / 2) * 3;
    return normalized ? x / (float)size : x;
}

static void fill(uint8_t *p, size_t n, bool floats)
{
    for (size_t i = 0; i < n / 4; i++) {
        float f = (float)random_bits() / 4096.0f - 1000;
        uint32_t bits = random_bits() ^ random_bits() << 16;
        if (floats)
            memcpy(p + 4 * i, &f, 4);
        else
            memcpy(p + 4 * i, &bits, 4);
    }
}

/* Some of the lanes; the others have any coordinates. */
static unsigned compare(const hw_texture *t, uint64_t aux)
{
    union {
        float f[LANES];
        int32_t i[LANES];
    } x, y;
    uint32_t got[4][LANES], *out[4] = { got[0], got[1], got[2], got[3] };
    for (unsigned l = 0; l < LANES; l++) {
        x.f[l] = coordinate(t->normalized, WIDTH);
        y.f[l] = coordinate(t->normalized, t->level[0].height);
        if (aux & HW_TEX_INTEGER) {
            x.i[l] = (int32_t)(random_bits() % (WIDTH + 4)) - 2;
            y.i[l] = (int32_t)(random_bits() % (HEIGHT + 4)) - 2;
        }
    }
    uint32_t lanes = random_bits() ^ random_bits() << 16;
    uint32_t done = hw_texture_fetch_lanes(t, aux, lanes, &x, &y, out, 4);
    assert_int_equal(done & ~lanes, 0);
    for (unsigned l = 0; l < LANES; l++) {
        hw_tex_place p = { .i = { x.i[l], y.i[l] } };
        uint32_t want[4];
        hw_texture_fetch(t, aux, &p, want);
        for (unsigned c = 0; c < 4 && done >> l & 1; c++)
            if (want[c] != got[c][l])
                fail_msg(
                    "format %d, %u channels, linear %d, normalized %d, addressing %d: lane %u at "
                    "(%g, %g), channel %u: 0x%x instead of 0x%x",
                    t->format, t->channels, t->linear, t->normalized, t->addressing[0], l,
                    (double)x.f[l], (double)y.f[l], c, got[c][l], want[c]);
    }
    return (unsigned)__builtin_popcount(done);
}

static void test_lanes(void **state)
{
    (void)state;
    static uint8_t memory[(HEIGHT + 1) * 1024];
    unsigned done = 0;
    for (unsigned kind = 0; kind < 3 * 2 * 2 * 2 * 4; kind++) {
        hw_texture t = { .levels = 1, .border = { 0.5f, 2, 3, 4 } };
        t.format = kind % 2 ? HW_TEXEL_F32 : HW_TEXEL_U8;
        t.channels = (uint8_t)(1u << kind / 2 % 3);
        t.linear = kind / 6 % 2;
        t.normalized = kind / 12 % 2;
        t.addressing[0] = t.addressing[1] = (hw_addressing)(kind / 24 % 4);
        t.as_integer = t.format == HW_TEXEL_U8 && !t.linear && kind / 24 % 2;
        t.level[0] = (hw_texels){ (uintptr_t)memory, 1024, sizeof memory, WIDTH, HEIGHT, 1 };
        fill(memory, sizeof memory, t.format == HW_TEXEL_F32);
        for (unsigned i = 0; i < ROUNDS; i++) {
            done += compare(&t, HW_TEX_2D);
            done += compare(&t, HW_TEX_2D | HW_TEX_INTEGER);
            t.level[0].height = 1;
            done += compare(&t, HW_TEX_1D);
            done += compare(&t, HW_TEX_1D | HW_TEX_INTEGER);
            t.level[0].height = HEIGHT;
        }
    }
    assert_true(done > 96 * ROUNDS * 4 * 6); /* of 16 that execute, mostly */
}

/* What is not of these kinds is left to the caller. */
static void test_left(void **state)
{
    (void)state;
    uint32_t got[LANES], *out[1] = { got };
    float x[LANES] = { 0 };
    hw_texture t = { .levels = 2, .format = HW_TEXEL_F32, .channels = 1 };
    assert_int_equal(hw_texture_fetch_lanes(&t, HW_TEX_2D, 1, x, x, out, 1), 0);
    t.levels = 1;
    assert_int_equal(hw_texture_fetch_lanes(&t, HW_TEX_3D, 1, x, x, out, 1), 0);
    t.format = HW_TEXEL_S16;
    assert_int_equal(hw_texture_fetch_lanes(&t, HW_TEX_2D, 1, x, x, out, 1), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_lanes), cmocka_unit_test(test_left) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
