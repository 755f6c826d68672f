/* SPDX-License-Identifier: Apache-2.0
 * The words that the lane column of ptx.def uses: what one lane computes, in plain C.
 *
 * Each row's expression stands in a function of its own (cases.py makes them) in which T, U, V name
 * the form's types and a, b, c, e are the sources. 16-bit floats are held as double. Modifiers are
 * in lane_now; rounding of f32 and f64 is the processor's rounding mode, set by the caller. */
#ifndef HW_TEST_LANE_H
#define HW_TEST_LANE_H

#include "soft.h"

#include "lane_mods.h" /* generated: enum LANE_<modifier> */

typedef uint8_t u8, b8;
typedef uint16_t u16, b16;
typedef uint32_t u32, b32, tf32;
typedef uint64_t u64, b64;
typedef int8_t s8;
typedef int16_t s16;
typedef int32_t s32;
typedef int64_t s64;
typedef float f32;
typedef double f64, f16, bf16;
typedef bool pred;
typedef __int128 i128;

typedef struct lane_state {
    bool has[LANE_COUNT];
    int round;             /* SOFT_R* */
    int cmp, boolop, mode; /* LANE_* of the comparison, and/or/xor, prmt's mode; -1 none */
    bool inexact;          /* the result may differ: */
    double ulps, absolute; /* by this many units in the last place, or by this much */
    bool any;              /* the manual leaves the result open */
} lane_state;
extern lane_state lane_now;

#define HAS(m) (lane_now.has[LANE_##m])
#define MODE   (lane_now.mode)
#define SIGNED ((T) - 1 < (T)0)
#define NBITS  (8 * (unsigned)sizeof(T))

/* ---- integers ---- */
#define SAT_S32(x)        lane_clamp((x), INT32_MIN, INT32_MAX)
#define MULHI(x, y)       ((T)(((i128)(x) * (i128)(y)) >> NBITS))
#define MUL24(x, y)       lane_mul24((uint32_t)(x), (uint32_t)(y), SIGNED)
#define DIV(x, y)         ((y) == 0 ? (T) ~(T)0 : SIGNED && (y) == (T) - 1 ? (T)(0 - (x)) : (T)((x) / (y)))
#define REM(x, y)         ((y) == 0 ? (x) : SIGNED && (y) == (T) - 1 ? (T)0 : (T)((x) % (y)))
#define POSITIVE(x)       ((x) > 0 ? (x) : 0)
#define POPC(x)           ((u32)__builtin_popcountll((u64)(x)))
#define CLZ(x)            ((x) ? (u32)__builtin_clzll((u64)(x)) - (64 - NBITS) : NBITS)
#define BFIND(x)          lane_bfind((u64)(x), NBITS, SIGNED)
#define BFIND_SHIFT(x)    (BFIND(x) == ~0u ? ~0u : NBITS - 1 - BFIND(x))
#define FNS(x, y, z)      lane_fns((x), (y), (z))
#define BREV(x)           ((T)lane_brev((u64)(x), NBITS))
#define BFE(x, y, z)      ((T)lane_bfe((u64)(x), (y), (z), NBITS, SIGNED))
#define BFI(x, y, z, w)   ((T)lane_bfi((u64)(x), (u64)(y), (z), (w), NBITS))
#define SZEXT(x, y, wrap) ((T)lane_szext((u32)(x), (y), SIGNED, (wrap)))
#define BMSK(x, y, wrap)  lane_bmsk((x), (y), (wrap))
#define DP4A(x, y, z)     lane_dp((u32)(x), (u32)(y), (z), 8, 0, (T) - 1 < (T)0, (U) - 1 < (U)0)
#define DP2A(x, y, z, first) \
    lane_dp((u32)(x), (u32)(y), (z), 16, (first), (T) - 1 < (T)0, (U) - 1 < (U)0)
#define LOP3(x, y, z, lut) lane_lop3((x), (y), (z), (u32)(lut))
#define SHL(x, n)          ((n) >= NBITS ? (T)0 : (T)((u64)(x) << (n)))
#define SHR(x, n)          ((T)((n) >= NBITS ? ((x) >> (NBITS - 1)) >> (SIGNED ? 0 : 1) : (x) >> (n)))
/* funnel shifts by n <= 32 of the 64-bit value hi:lo */
#define SHF_L(lo, hi, n)    ((u32)((((u64)(hi) << 32 | (lo)) << (n)) >> 32))
#define SHF_R(lo, hi, n)    ((u32)((((u64)(hi) << 32 | (lo))) >> (n)))
#define PRMT(x, y, z, mode) lane_prmt((x), (y), (z), (mode))

static inline i128 lane_clamp(i128 v, i128 low, i128 high)
{
    return v < low ? low : v > high ? high : v;
}
static inline i128 lane_max(unsigned bits, bool is_signed)
{
    return ((i128)1 << (is_signed ? bits - 1 : bits)) - 1;
}
#define T_MAX lane_max(NBITS, SIGNED)
#define T_MIN (SIGNED ? -T_MAX - 1 : 0)

/* bits 47..0 of the product of the low 24 bits */
static inline s64 lane_mul24(u32 x, u32 y, bool is_signed)
{
    if (!is_signed)
        return (s64)(((u64)(x & 0xffffff) * (u64)(y & 0xffffff)) & 0xffffffffffff);
    return (s64)((s32)(x << 8) >> 8) * (s64)((s32)(y << 8) >> 8);
}

static inline u32 lane_bfind(u64 x, unsigned bits, bool is_signed)
{
    if (is_signed && (x >> (bits - 1)) & 1)
        x = ~x;
    for (unsigned k = bits; k-- > 0;)
        if ((x >> k) & 1)
            return k;
    return ~0u;
}

static inline u32 lane_fns(u32 mask, u32 base, s32 offset)
{
    s32 pos = (s32)base, count = offset < 0 ? -offset - 1 : offset > 0 ? offset - 1 : 0;
    int inc = offset < 0 ? -1 : 1;
    if (base > 31)
        return ~0u;
    if (offset == 0)
        return (mask >> base) & 1 ? base : ~0u;
    for (; pos >= 0 && pos < 32; pos += inc)
        if ((mask >> pos) & 1 && count-- == 0)
            return (u32)pos;
    return ~0u;
}

static inline u64 lane_brev(u64 x, unsigned bits)
{
    u64 r = 0;
    for (unsigned k = 0; k < bits; k++)
        r |= ((x >> k) & 1) << (bits - 1 - k);
    return r;
}

/* The manual's pseudo code for bfe. */
static inline u64 lane_bfe(u64 x, u32 b, u32 c, unsigned bits, bool is_signed)
{
    unsigned pos = b & 0xff, len = c & 0xff, msb = bits - 1;
    u64 sbit = 0, d = 0;
    if (is_signed && len) {
        unsigned at = pos + len - 1 < msb ? pos + len - 1 : msb;
        sbit = (x >> at) & 1;
    }
    for (unsigned i = 0; i <= msb; i++) {
        u64 bit = i < len && pos + i <= msb ? (x >> (pos + i)) & 1 : sbit;
        d |= bit << i;
    }
    return d;
}

static inline u64 lane_bfi(u64 x, u64 y, u32 c, u32 n, unsigned bits)
{
    unsigned pos = c & 0xff, len = n & 0xff;
    for (unsigned i = 0; i < len && pos + i <= bits - 1; i++) {
        y &= ~(UINT64_C(1) << (pos + i));
        y |= ((x >> i) & 1) << (pos + i);
    }
    return y;
}

static inline u32 lane_szext(u32 x, u32 n, bool is_signed, bool wrap)
{
    n = wrap ? n & 31 : n > 32 ? 32 : n;
    if (n == 0)
        return 0;
    if (n == 32)
        return x;
    u32 low = x & ((1u << n) - 1);
    return is_signed && (low >> (n - 1)) & 1 ? low | ~((1u << n) - 1) : low;
}

static inline u32 lane_bmsk(u32 x, u32 n, bool wrap)
{
    u32 r = 0;
    x = wrap ? x & 31 : x > 32 ? 32 : x;
    n = wrap ? n & 31 : n > 32 ? 32 : n;
    for (u32 k = 0; k < 32; k++)
        r |= (u32)(k >= x && k < x + n) << k;
    return r;
}

static inline u32 lane_dp(u32 x, u32 y, u32 z, unsigned part, unsigned first, bool sx, bool sy)
{
    s64 sum = 0;
    for (unsigned k = 0; k < (part == 8 ? 4u : 2u); k++) {
        u32 p = (x >> (k * part)) & ((1u << part) - 1), q = (y >> ((first + k) * 8)) & 0xff;
        s64 a = sx && (p >> (part - 1)) ? (s64)p - (1 << part) : (s64)p;
        s64 b = sy && (q >> 7) ? (s64)q - 256 : (s64)q;
        sum += a * b;
    }
    return (u32)sum + z;
}

static inline u32 lane_lop3(u32 x, u32 y, u32 z, u32 lut)
{
    u32 r = 0;
    if (lut & 0x01)
        r |= ~x & ~y & ~z;
    if (lut & 0x02)
        r |= ~x & ~y & z;
    if (lut & 0x04)
        r |= ~x & y & ~z;
    if (lut & 0x08)
        r |= ~x & y & z;
    if (lut & 0x10)
        r |= x & ~y & ~z;
    if (lut & 0x20)
        r |= x & ~y & z;
    if (lut & 0x40)
        r |= x & y & ~z;
    if (lut & 0x80)
        r |= x & y & z;
    return r;
}

static inline u32 lane_byte(u32 x, u32 y, unsigned n)
{
    return (u32)(((u64)y << 32 | x) >> (8 * (n & 7))) & 0xff;
}

/* The manual's table of modes, byte 3 first. */
static inline u32 lane_prmt(u32 x, u32 y, u32 z, int mode)
{
    static const u8 f4e[4][4] = { { 3, 2, 1, 0 }, { 4, 3, 2, 1 }, { 5, 4, 3, 2 }, { 6, 5, 4, 3 } };
    static const u8 b4e[4][4] = { { 5, 6, 7, 0 }, { 6, 7, 0, 1 }, { 7, 0, 1, 2 }, { 0, 1, 2, 3 } };
    static const u8 rc8[4][4] = { { 0, 0, 0, 0 }, { 1, 1, 1, 1 }, { 2, 2, 2, 2 }, { 3, 3, 3, 3 } };
    static const u8 ecl[4][4] = { { 3, 2, 1, 0 }, { 3, 2, 1, 1 }, { 3, 2, 2, 2 }, { 3, 3, 3, 3 } };
    static const u8 ecr[4][4] = { { 0, 0, 0, 0 }, { 1, 1, 1, 0 }, { 2, 2, 1, 0 }, { 3, 2, 1, 0 } };
    static const u8 rc16[4][4] = { { 1, 0, 1, 0 }, { 3, 2, 3, 2 }, { 1, 0, 1, 0 }, { 3, 2, 3, 2 } };
    const u8(*t)[4] = mode == LANE_f4e   ? f4e
                      : mode == LANE_b4e ? b4e
                      : mode == LANE_rc8 ? rc8
                      : mode == LANE_ecl ? ecl
                      : mode == LANE_ecr ? ecr
                                         : rc16;
    u32 r = 0;
    for (unsigned k = 0; k < 4; k++) {
        if (mode >= 0) {
            r |= lane_byte(x, y, t[z & 3][3 - k]) << (8 * k);
            continue;
        }
        u32 sel = (z >> (4 * k)) & 15, byte = lane_byte(x, y, sel & 7);
        r |= (sel & 8 ? (byte >> 7 ? 0xffu : 0u) : byte) << (8 * k);
    }
    return r;
}

/* ---- comparison and selection ---- */
#define CMP(x, y)  lane_cmp((x) < (y), (x) == (y), (x) != (x) || (y) != (y))
#define BOOL(x, y) lane_bool((x), (y))
#define SET(x)     ((x) ? (T)(IS_FLOAT_T ? 1 : -1) : (T)0)

static inline bool lane_cmp(bool lt, bool eq, bool nan)
{
    switch (lane_now.cmp) {
    case LANE_eq:
        return eq && !nan;
    case LANE_ne:
        return !eq && !nan;
    case LANE_lt:
    case LANE_lo:
        return lt;
    case LANE_le:
    case LANE_ls:
        return lt || eq;
    case LANE_gt:
    case LANE_hi:
        return !lt && !eq && !nan;
    case LANE_ge:
    case LANE_hs:
        return !lt && !nan;
    case LANE_equ:
        return eq || nan;
    case LANE_neu:
        return !eq;
    case LANE_ltu:
        return lt || nan;
    case LANE_leu:
        return lt || eq || nan;
    case LANE_gtu:
        return (!lt && !eq) || nan;
    case LANE_geu:
        return !lt || nan;
    case LANE_num:
        return !nan;
    default:
        return nan;
    }
}
static inline bool lane_bool(bool x, bool y)
{
    return lane_now.boolop == LANE_and ? x && y : lane_now.boolop == LANE_or ? x || y : x != y;
}

#include "lane_float.h"

#endif
