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
        f->call->fault(f, HW_F_ILLEGAL_ADDRESS, p->loc);
    else if (!aligned(off, p->bytes))
        f->call->bad_address(f, at, p->bytes, p->loc);
}

void hw_jit_check_range(hw_frame *f, const uint64_t *addr, uint32_t lanes,
                        const hw_jit_piece *pieces, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t m = lanes; m; m &= m - 1)
            check_lane(f, addr[__builtin_ctz(m)], &pieces[i]);
}

void hw_jit_check_shared(hw_frame *f, const uint64_t *addr, uint32_t lanes,
                         const hw_jit_piece *pieces, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t m = lanes; m; m &= m - 1)
            check_lane_shared(f, addr[__builtin_ctz(m)], &pieces[i]);
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

#define SYMBOL(name) { #name, (void *)(uintptr_t)(name) }
static const struct {
    const char *name;
    void *at;
} table[] = {
    SYMBOL(hw_jit_check_range),
    SYMBOL(hw_jit_check_shared),
    SYMBOL(hw_jit_rounded),
    SYMBOL(memcpy),
    SYMBOL(memset),
    SYMBOL(memmove),
    SYMBOL(memcmp),
    SYMBOL(fmaf),
    SYMBOL(fma),
    SYMBOL(fmodf),
    SYMBOL(fmod),
    SYMBOL(roundf),
    SYMBOL(round),
    SYMBOL(roundevenf),
    SYMBOL(roundeven),
    SYMBOL(__divti3),
    SYMBOL(__modti3),
    SYMBOL(__udivti3),
    SYMBOL(__umodti3),
};

void *hw_jit_symbol(hw_str name)
{
    for (size_t i = 0; i < HW_COUNTOF(table); i++)
        if (hw_str_is(name, table[i].name))
            return table[i].at;
    return NULL;
}
