/* SPDX-License-Identifier: Apache-2.0
 *
 * The C functions that generated code may call by name: the slow half of address checks, rounding
 * on hosts without AVX-512, and what LLVM's own code generation may ask for.
 */
#include "codegen.h"

#include <fenv.h>
#include <math.h>

/* ---- addresses ---- */

static bool aligned(uint64_t addr, uint32_t bytes)
{
    return (addr & (bytes - 1)) == 0;
}

static void check_lane(hw_frame *f, uint64_t addr, const hw_jit_piece *p)
{
    uint64_t at = addr + (uint64_t)p->offset, off = at - f->range_lo;
    if (off >= f->range_size || f->range_size - off < p->bytes || !aligned(at, p->bytes))
        f->call->bad_address(f, at, p->bytes, p->loc);
}

static void check_lane_shared(hw_frame *f, uint64_t addr, const hw_jit_piece *p)
{
    uint64_t off = addr + (uint64_t)p->offset;
    bool inside = off < f->total_shared && f->total_shared - off >= p->bytes;
    uint64_t at = (uint64_t)(uintptr_t)f->shared + off;
    if (!inside)
        f->call->bad_address(f, at, 1, p->loc);
    else if (!aligned(off, p->bytes))
        f->call->bad_address(f, at, p->bytes, p->loc);
}

void hw_jit_check_range(hw_frame *f, const uint64_t *addr, uint32_t lanes,
                        const hw_jit_piece *pieces, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t m = lanes; m; m &= m - 1) {
            f->fault_lanes = m & -m;
            check_lane(f, addr[__builtin_ctz(m)], &pieces[i]);
        }
    f->fault_lanes = 0;
}

void hw_jit_check_shared(hw_frame *f, const uint64_t *addr, uint32_t lanes,
                         const hw_jit_piece *pieces, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t m = lanes; m; m &= m - 1) {
            f->fault_lanes = m & -m;
            check_lane_shared(f, addr[__builtin_ctz(m)], &pieces[i]);
        }
    f->fault_lanes = 0;
}

static void check_affine(hw_frame *f, uint64_t s, uint64_t r, const int64_t *c_and_d,
                         uint32_t lanes, const hw_jit_piece *pieces, hw_jit_check_fn *check)
{
    uint64_t addr[HW_WARP_LANES];
    uint32_t n = 0;
    while (pieces[n].bytes)
        n++;
    for (unsigned l = 0; l < HW_WARP_LANES; l++)
        addr[l] = s + (uint64_t)c_and_d[l] + (uint64_t)c_and_d[HW_WARP_LANES + l] * r;
    check(f, addr, lanes, pieces, n);
}

void hw_jit_check_affine(hw_frame *f, uint64_t s, uint64_t r, const int64_t *c_and_d,
                         uint32_t lanes, const hw_jit_piece *pieces)
{
    check_affine(f, s, r, c_and_d, lanes, pieces, hw_jit_check_range);
}

void hw_jit_check_affine_shared(hw_frame *f, uint64_t s, uint64_t r, const int64_t *c_and_d,
                                uint32_t lanes, const hw_jit_piece *pieces)
{
    check_affine(f, s, r, c_and_d, lanes, pieces, hw_jit_check_shared);
}

/* ---- rounding modes ---- */

enum { R_ADD, R_SUB, R_MUL, R_DIV, R_SQRT, R_FMA };

static float op_f32(uint32_t op, volatile float a, volatile float b, volatile float c)
{
    switch (op) {
    case R_ADD:
        return a + b;
    case R_SUB:
        return a - b;
    case R_MUL:
        return a * b;
    case R_DIV:
        return a / b;
    case R_SQRT:
        return sqrtf(a);
    default:
        return fmaf(a, b, c);
    }
}

static double op_f64(uint32_t op, volatile double a, volatile double b, volatile double c)
{
    switch (op) {
    case R_ADD:
        return a + b;
    case R_SUB:
        return a - b;
    case R_MUL:
        return a * b;
    case R_DIV:
        return a / b;
    case R_SQRT:
        return sqrt(a);
    default:
        return fma(a, b, c);
    }
}

void hw_jit_rounded(uint8_t *mem, uint32_t op, uint32_t round, uint32_t f64, uint32_t bytes)
{
    static const int modes[] = { [HW_ROUND_N] = FE_TONEAREST,
                                 [HW_ROUND_Z] = FE_TOWARDZERO,
                                 [HW_ROUND_M] = FE_DOWNWARD,
                                 [HW_ROUND_P] = FE_UPWARD };
    int old = fegetround();
    fesetround(modes[round & 3]);
    for (uint32_t at = 0; at < bytes; at += f64 ? 8 : 4) {
        if (f64) {
            double *a = (double *)(void *)(mem + at);
            volatile double r = op_f64(op, a[0], a[32], a[64]);
            a[0] = r;
        } else {
            float *a = (float *)(void *)(mem + at);
            volatile float r = op_f32(op, a[0], a[64], a[128]);
            a[0] = r;
        }
    }
    fesetround(old);
}

/* ---- the table ---- */

__int128 __divti3(__int128 a, __int128 b);
__int128 __modti3(__int128 a, __int128 b);
unsigned __int128 __udivti3(unsigned __int128 a, unsigned __int128 b);
unsigned __int128 __umodti3(unsigned __int128 a, unsigned __int128 b);

/* The ways that keep all registers, by what this processor has. */
typedef void way(void);
way hw_jit_keep512_range, hw_jit_keep512_shared, hw_jit_keep512_affine,
    hw_jit_keep512_affine_shared;
way hw_jit_keep256_range, hw_jit_keep256_shared, hw_jit_keep256_affine,
    hw_jit_keep256_affine_shared;

static const struct {
    const char *name;
    way *with_512, *with_256;
} ways[] = {
    { "hw_jit_keep_range", hw_jit_keep512_range, hw_jit_keep256_range },
    { "hw_jit_keep_shared", hw_jit_keep512_shared, hw_jit_keep256_shared },
    { "hw_jit_keep_affine", hw_jit_keep512_affine, hw_jit_keep256_affine },
    { "hw_jit_keep_affine_shared", hw_jit_keep512_affine_shared, hw_jit_keep256_affine_shared },
};

static void *way_of(hw_str name)
{
    bool wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw");
    for (size_t i = 0; i < HW_COUNTOF(ways); i++)
        if (hw_str_is(name, ways[i].name))
            return (void *)(uintptr_t)(wide ? ways[i].with_512 : ways[i].with_256);
    return NULL;
}

#define SYMBOL(name) { #name, (void *)(uintptr_t)(name) }
static const struct {
    const char *name;
    void *at;
} table[] = {
    SYMBOL(hw_jit_rounded), SYMBOL(memcpy),   SYMBOL(memset),   SYMBOL(memmove),
    SYMBOL(memcmp),         SYMBOL(fmaf),     SYMBOL(fma),      SYMBOL(fmodf),
    SYMBOL(fmod),           SYMBOL(roundf),   SYMBOL(round),    SYMBOL(roundevenf),
    SYMBOL(roundeven),      SYMBOL(__divti3), SYMBOL(__modti3), SYMBOL(__udivti3),
    SYMBOL(__umodti3),
};

void *hw_jit_symbol(hw_str name)
{
    for (size_t i = 0; i < HW_COUNTOF(table); i++)
        if (hw_str_is(name, table[i].name))
            return table[i].at;
    return way_of(name);
}
