/* SPDX-License-Identifier: Apache-2.0
 *
 * Sixteen accesses side by side: keys are turned so that a register holds one lane of all accesses,
 * and sorted; then equal ones are neighbours.
 */
#include "many.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define NEEDS \
    __attribute__((target("avx512f,avx512bw,avx512cd,avx512vl,avx512dq,avx512vpopcntdq,bmi2")))
#define INLINE NEEDS __attribute__((always_inline)) static inline

typedef __m512i vec;

enum { SECTOR_SHIFT = 5, HALF_SHIFT = 6, LINE_SHIFT = 7, PAGE = 4096 };
enum { KEY_BITS = 31 }; /* no line holds a key and NOBODY */
static const uint32_t NOBODY = UINT32_MAX;

bool hw_model_many_able(void)
{
    static int able = -1;
    if (able < 0)
        able = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
               __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512vl") &&
               __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vpopcntdq") &&
               __builtin_cpu_supports("bmi2");
    return able;
}

/* ---- keys ---- */

/* Distances of 8 lanes to the origin; 0 for those that take no part. */
INLINE vec eight(const uint64_t *address, uint32_t lanes, vec origin)
{
    return _mm512_maskz_sub_epi64((__mmask8)lanes, _mm512_loadu_si512(address), origin);
}

INLINE vec sixteen(vec a, vec b, __m128i shift, uint32_t lanes)
{
    const vec none = _mm512_set1_epi32((int)NOBODY);
    __m256i x = _mm512_cvtepi64_epi32(_mm512_srl_epi64(a, shift));
    __m256i y = _mm512_cvtepi64_epi32(_mm512_srl_epi64(b, shift));
    vec both = _mm512_inserti64x4(_mm512_castsi256_si512(x), y, 1);
    return _mm512_mask_mov_epi32(none, (__mmask16)lanes, both);
}

NEEDS bool hw_model_many_set(many_keys *k, uint32_t i, const hw_access_told *t, uint32_t width)
{
    unsigned log = (unsigned)__builtin_ctz(width);
    uint32_t lanes = t->lanes;
    const uint64_t *at = t->address;
    uint64_t first = at[__builtin_ctz(lanes)] / PAGE * PAGE;
    uint64_t bias = (UINT64_C(1) << (KEY_BITS - 1)) << log;
    vec origin = _mm512_set1_epi64((int64_t)(first - bias - (uint64_t)t->add % PAGE));
    vec wrong = _mm512_set1_epi64((int64_t)(~(UINT64_C(0x7fffffff) << log)));
    vec a = eight(at, lanes, origin), b = eight(at + 8, lanes >> 8, origin);
    vec c = eight(at + 16, lanes >> 16, origin), d = eight(at + 24, lanes >> 24, origin);
    vec any = _mm512_or_si512(_mm512_ternarylogic_epi64(a, b, c, 0xfe), d);
    __m128i shift = _mm_cvtsi32_si128((int)log);
    _mm512_store_si512(k->key[i], sixteen(a, b, shift, lanes));
    _mm512_store_si512(k->key[i] + 16, sixteen(c, d, shift, lanes >> 16));
    k->shift[i] = log;
    k->lanes[i] = (uint32_t)__builtin_popcount(lanes);
    return _mm512_test_epi64_mask(any, wrong) == 0;
}

/* ---- a register a lane ---- */

#define FOUR(F, i)  F((i)) F((i) + 1) F((i) + 2) F((i) + 3)
#define EIGHT(F, i) FOUR(F, i) FOUR(F, (i) + 4)

/* Rows r[0 .. 15] of 16 become columns. Which column a lane comes to does not matter, which place an access has in it does. */
INLINE void turn(const uint32_t (*row)[HW_WARP_LANES], unsigned first, vec *v)
{
    vec a[16], b[16];
#define LOAD(i) a[i] = _mm512_load_si512(row[i] + first);
    EIGHT(LOAD, 0)
    EIGHT(LOAD, 8)
#undef LOAD
#define PAIRS(i)                                                    \
    b[2 * (i)] = _mm512_unpacklo_epi32(a[2 * (i)], a[2 * (i) + 1]); \
    b[2 * (i) + 1] = _mm512_unpackhi_epi32(a[2 * (i)], a[2 * (i) + 1]);
    EIGHT(PAIRS, 0)
#undef PAIRS
#define FOURS(i)                                                            \
    a[4 * (i)] = _mm512_unpacklo_epi64(b[4 * (i)], b[4 * (i) + 2]);         \
    a[4 * (i) + 1] = _mm512_unpackhi_epi64(b[4 * (i)], b[4 * (i) + 2]);     \
    a[4 * (i) + 2] = _mm512_unpacklo_epi64(b[4 * (i) + 1], b[4 * (i) + 3]); \
    a[4 * (i) + 3] = _mm512_unpackhi_epi64(b[4 * (i) + 1], b[4 * (i) + 3]);
    FOUR(FOURS, 0)
#undef FOURS
    /* a[4 q + c]: of accesses 4 q .. 4 q + 3, lanes c, c + 4, c + 8, c + 12. */
#define QUARTERS(c)                                                   \
    b[(c)] = _mm512_shuffle_i32x4(a[(c)], a[4 + (c)], 0x88);          \
    b[4 + (c)] = _mm512_shuffle_i32x4(a[(c)], a[4 + (c)], 0xdd);      \
    b[8 + (c)] = _mm512_shuffle_i32x4(a[8 + (c)], a[12 + (c)], 0x88); \
    b[12 + (c)] = _mm512_shuffle_i32x4(a[8 + (c)], a[12 + (c)], 0xdd);
    FOUR(QUARTERS, 0)
#undef QUARTERS
    /* b[c]: lanes c, c + 8 of accesses 0 .. 7; b[4 + c]: lanes c + 4, c + 12; b[8 ..]: of accesses 8 .. 15. */
#define HALVES(c)                                                     \
    v[(c)] = _mm512_shuffle_i32x4(b[(c)], b[8 + (c)], 0x88);          \
    v[8 + (c)] = _mm512_shuffle_i32x4(b[(c)], b[8 + (c)], 0xdd);      \
    v[4 + (c)] = _mm512_shuffle_i32x4(b[4 + (c)], b[12 + (c)], 0x88); \
    v[12 + (c)] = _mm512_shuffle_i32x4(b[4 + (c)], b[12 + (c)], 0xdd);
    FOUR(HALVES, 0)
#undef HALVES
}

INLINE void exchange(vec *a, vec *b)
{
    vec least = _mm512_min_epu32(*a, *b);
    *b = _mm512_max_epu32(*a, *b);
    *a = least;
}

INLINE void sort(vec *v)
{
#define P(a, b) exchange(&v[a], &v[b]);
#include "sort32.def"
}

/* ---- what neighbours say ---- */

INLINE vec inc(vec x, __mmask16 where)
{
    return _mm512_mask_sub_epi32(x, where, x, _mm512_set1_epi32(-1));
}

/* Steps from one value to another among v[0 .. 31] >> shift. */
INLINE vec steps(const vec *v, vec shift)
{
    vec n = _mm512_setzero_si512(), before = _mm512_srlv_epi32(v[0], shift);
#pragma GCC unroll 31
    for (int l = 1; l < HW_WARP_LANES; l++) {
        vec now = _mm512_srlv_epi32(v[l], shift);
        n = inc(n, _mm512_cmpneq_epi32_mask(now, before));
        before = now;
    }
    return n;
}

/* The longest run of a key. */
INLINE vec longest(const vec *v)
{
    const vec one = _mm512_set1_epi32(1), nobody = _mm512_set1_epi32((int)NOBODY);
    vec run = one, most = one;
#pragma GCC unroll 31
    for (int l = 1; l < HW_WARP_LANES; l++) {
        run = inc(_mm512_mask_mov_epi32(_mm512_setzero_si512(),
                                        _mm512_cmpeq_epi32_mask(v[l], v[l - 1]), run),
                  0xffff);
        most = _mm512_mask_max_epu32(most, _mm512_cmpneq_epi32_mask(v[l], nobody), most, run);
    }
    return most;
}

/* ---- parts of a warp ---- */

/* In each group of g lanes, sorted: those that are new and somebody's. *parts: groups with any. */
INLINE vec fresh(const vec *s, int g, vec nobody, vec *parts)
{
    vec n = _mm512_setzero_si512(), some = n;
#pragma GCC unroll 32
    for (int l = 0; l < HW_WARP_LANES; l++) {
        __mmask16 there = _mm512_cmpneq_epi32_mask(s[l], nobody);
        if (l % g)
            there = _mm512_mask_cmpneq_epi32_mask(there, s[l], s[l - 1]);
        else
            some = inc(some, there);
        n = inc(n, there);
    }
    *parts = some;
    return n;
}

INLINE void put(many *out, __mmask16 where, vec sectors, vec parts)
{
    _mm512_mask_store_epi32(out->part_sectors, where, sectors);
    _mm512_mask_store_epi32(out->parts, where, parts);
}

/* Pairs, fours and eights of lanes sorted by their sectors, one from the other (Batcher's merge). */
INLINE void split(const many_keys *k, vec *s, many *out)
{
    vec log = _mm512_load_si512(k->shift), parts, n;
    vec sector = _mm512_sub_epi32(_mm512_set1_epi32(SECTOR_SHIFT), log);
    vec nobody = _mm512_srlv_epi32(_mm512_set1_epi32((int)NOBODY), sector);
    turn(k->key, 0, s);
    turn(k->key, 16, s + 16);
#pragma GCC unroll 32
    for (int l = 0; l < HW_WARP_LANES; l++)
        s[l] = _mm512_srlv_epi32(s[l], sector);
    for (int l = 0; l < HW_WARP_LANES; l += 2)
        exchange(&s[l], &s[l + 1]);
    n = fresh(s, 2, nobody, &parts);
    put(out, _mm512_cmpeq_epi32_mask(log, _mm512_set1_epi32(4)), n, parts);
    for (int l = 0; l < HW_WARP_LANES; l += 4) {
        exchange(&s[l], &s[l + 2]);
        exchange(&s[l + 1], &s[l + 3]);
        exchange(&s[l + 1], &s[l + 2]);
    }
    n = fresh(s, 4, nobody, &parts);
    put(out, _mm512_cmpeq_epi32_mask(log, _mm512_set1_epi32(3)), n, parts);
    for (int l = 0; l < HW_WARP_LANES; l += 8) {
        for (int i = 0; i < 4; i++)
            exchange(&s[l + i], &s[l + i + 4]);
        exchange(&s[l + 2], &s[l + 4]);
        exchange(&s[l + 3], &s[l + 5]);
        exchange(&s[l + 1], &s[l + 2]);
        exchange(&s[l + 3], &s[l + 4]);
        exchange(&s[l + 5], &s[l + 6]);
    }
    n = fresh(s, 8, nobody, &parts);
    put(out, _mm512_cmple_epu32_mask(log, _mm512_set1_epi32(2)), n, parts);
}

/* ---- banks ---- */

/* a + b + *c: the sum, and the carry in *c. */
INLINE vec add3(vec a, vec b, vec *c)
{
    vec sum = _mm512_ternarylogic_epi32(a, b, *c, 0x96);
    *c = _mm512_ternarylogic_epi32(a, b, *c, 0xe8);
    return sum;
}

typedef struct planes {
    vec p[MANY_PLANES];
} planes;

/* The bank of lane l's key as a bit, where it is the first of its unit, or of any that takes part. */
INLINE vec bank_bit(const vec *v, int l, bool any)
{
    const vec one = _mm512_set1_epi32(1), nobody = _mm512_set1_epi32((int)NOBODY);
    __mmask16 first = _mm512_cmpneq_epi32_mask(v[l], l && !any ? v[l - 1] : nobody);
    if (l && !any)
        first = _mm512_mask_cmpneq_epi32_mask(first, v[l], nobody);
    return _mm512_maskz_rolv_epi32(first, one, v[l]);
}

INLINE planes count_banks(const vec *v, bool any)
{
    planes s;
    for (int k = 0; k < MANY_PLANES; k++)
        s.p[k] = _mm512_setzero_si512();
#pragma GCC unroll 8
    for (int l = 0; l < HW_WARP_LANES; l += 4) {
        vec c0 = bank_bit(v, l + 1, any), c1 = bank_bit(v, l + 3, any);
        vec low = add3(s.p[0], bank_bit(v, l, any), &c0);
        s.p[0] = add3(low, bank_bit(v, l + 2, any), &c1); /* two carries of weight 2 */
        vec carry = c1;
        s.p[1] = add3(s.p[1], c0, &carry);
#pragma GCC unroll 4
        for (int k = 2; k < MANY_PLANES; k++) {
            vec next = _mm512_and_si512(s.p[k], carry);
            s.p[k] = _mm512_xor_si512(s.p[k], carry);
            carry = next;
        }
    }
    return s;
}

/* The largest of the 32 numbers in the planes. */
INLINE vec largest(const planes *s)
{
    vec keep = _mm512_set1_epi32(-1), n = _mm512_setzero_si512();
#pragma GCC unroll 6
    for (int k = MANY_PLANES - 1; k >= 0; k--) {
        vec with = _mm512_and_si512(keep, s->p[k]);
        __mmask16 some = _mm512_test_epi32_mask(with, with);
        keep = _mm512_mask_mov_epi32(keep, some, with);
        n = _mm512_mask_or_epi32(n, some, n, _mm512_set1_epi32(1 << k));
    }
    return n;
}

/* Of rows of 64 words those with words in a bank are one: two sides of a row become one key. */
INLINE vec crowd_of_rows(const vec *v)
{
    const vec low = _mm512_set1_epi32(31), nobody = _mm512_set1_epi32((int)NOBODY);
    vec rows[HW_WARP_LANES];
#pragma GCC unroll 32
    for (int l = 0; l < HW_WARP_LANES; l++) {
        vec high = _mm512_slli_epi32(_mm512_srli_epi32(v[l], 6), 5);
        vec key = _mm512_or_si512(high, _mm512_and_si512(v[l], low));
        rows[l] = _mm512_mask_mov_epi32(key, _mm512_cmpeq_epi32_mask(v[l], nobody), nobody);
    }
    sort(rows);
    planes s = count_banks(rows, false);
    return largest(&s);
}

INLINE void banks(const vec *v, unsigned wants, many *out)
{
    planes s = count_banks(v, false);
    _mm512_store_si512(out->crowd[MANY_WORDS], largest(&s));
    for (int i = 0; i < MANY_PLANES; i++)
        _mm512_store_si512(out->plane[i], s.p[i]);
    if (wants & MANY_RULE << MANY_DUAL)
        _mm512_store_si512(out->crowd[MANY_DUAL], crowd_of_rows(v));
    if (wants & MANY_RULE << MANY_THREADS) {
        s = count_banks(v, true);
        _mm512_store_si512(out->crowd[MANY_THREADS], largest(&s));
    }
}

/* ---- all ---- */

NEEDS void hw_model_many(const many_keys *k, unsigned wants, many *out)
{
    vec v[HW_WARP_LANES];
    turn(k->key, 0, v);
    turn(k->key, 16, v + 16);
    sort(v);
    /* Lanes that take no part are one unit, sector and line, the last. */
    vec lanes = _mm512_load_si512(k->lanes), shift = _mm512_load_si512(k->shift);
    vec one = inc(_mm512_setzero_si512(),
                  _mm512_cmpeq_epi32_mask(lanes, _mm512_set1_epi32(HW_WARP_LANES)));
    const vec none = _mm512_setzero_si512();
    for (int r = 0; r < MANY_RULES; r++)
        _mm512_store_si512(out->crowd[r], none);
    put(out, 0xffff, none, none);
    _mm512_store_si512(out->units, _mm512_add_epi32(steps(v, none), one));
    if (wants & MANY_BANKS) {
        banks(v, wants, out);
    } else {
        vec sector = _mm512_sub_epi32(_mm512_set1_epi32(SECTOR_SHIFT), shift);
        vec half = _mm512_sub_epi32(_mm512_set1_epi32(HALF_SHIFT), shift);
        vec line = _mm512_sub_epi32(_mm512_set1_epi32(LINE_SHIFT), shift);
        vec halves = wants & MANY_HALVES ? _mm512_add_epi32(steps(v, half), one) : none;
        _mm512_store_si512(out->halves, halves);
        _mm512_store_si512(out->sectors, _mm512_add_epi32(steps(v, sector), one));
        _mm512_store_si512(out->lines, _mm512_add_epi32(steps(v, line), one));
    }
    _mm512_store_si512(out->alike, wants & MANY_ALIKE ? longest(v) : none);
    if (wants & MANY_SPLIT)
        split(k, v, out);
}

INLINE void add_planes(uint32_t (*sum)[MANY], const uint32_t (*plane)[MANY], __mmask16 which)
{
    vec carry = _mm512_setzero_si512();
    for (int k = 0; k < MANY_PLANES; k++) {
        vec add = _mm512_maskz_load_epi32(which, plane[k]);
        _mm512_storeu_si512(sum[k], add3(_mm512_loadu_si512(sum[k]), add, &carry));
    }
    for (int k = MANY_PLANES; k < 32 && _mm512_test_epi32_mask(carry, carry); k++) {
        vec old = _mm512_loadu_si512(sum[k]);
        _mm512_storeu_si512(sum[k], _mm512_xor_si512(old, carry));
        carry = _mm512_and_si512(old, carry);
    }
}

INLINE void add_column(uint32_t *sum, __mmask16 which, vec x)
{
    vec old = _mm512_loadu_si512(sum);
    _mm512_storeu_si512(sum, _mm512_mask_add_epi32(old, which, old, x));
}

INLINE void add_units(many_sums *s, __mmask16 which, const many_keys *k, const many *m)
{
    vec bytes = _mm512_sllv_epi32(_mm512_load_si512(m->units), _mm512_load_si512(k->shift));
    vec up = _mm512_add_epi32(bytes, _mm512_set1_epi32(31));
    add_column(s->lanes, which, _mm512_load_si512(k->lanes));
    add_column(s->alike, which, _mm512_load_si512(m->alike));
    add_column(s->filled, which, _mm512_srli_epi32(up, SECTOR_SHIFT));
}

/* How many of the accesses are crowded, and of the others how many have lanes that share. */
INLINE void add_crowd(many_sums *s, int rule, __mmask16 which, const many_keys *k, const many *m)
{
    vec crowd = _mm512_load_si512(m->crowd[rule]);
    __mmask16 alone = _mm512_mask_cmpeq_epu32_mask(which, crowd, _mm512_set1_epi32(1));
    __mmask16 shared = _mm512_mask_cmplt_epu32_mask(alone, _mm512_load_si512(m->units),
                                                    _mm512_load_si512(k->lanes));
    add_column(s->crowd[rule], which, crowd);
    s->conflicted[rule] += (uint32_t)__builtin_popcount((unsigned)(which & ~alone));
    s->shared[rule] += (uint32_t)__builtin_popcount(shared);
}

NEEDS void hw_model_many_add(many_sums *s, uint32_t accesses, const many_keys *k, const many *m,
                             bool banks)
{
    __mmask16 which = (__mmask16)accesses;
    s->accesses += (uint32_t)__builtin_popcount(accesses);
    add_units(s, which, k, m);
    if (!banks) {
        add_column(s->sectors, which, _mm512_load_si512(m->sectors));
        add_column(s->lines, which, _mm512_load_si512(m->lines));
        add_column(s->halves, which, _mm512_load_si512(m->halves));
        add_column(s->parts, which, _mm512_load_si512(m->parts));
        add_column(s->part_sectors, which, _mm512_load_si512(m->part_sectors));
        return;
    }
    for (int r = 0; r < MANY_RULES; r++)
        add_crowd(s, r, which, k, m);
    add_planes(s->plane, m->plane, which);
}

#else
bool hw_model_many_able(void)
{
    return false;
}

bool hw_model_many_set(many_keys *k, uint32_t i, const hw_access_told *t, uint32_t width)
{
    (void)k, (void)i, (void)t, (void)width;
    return false;
}

void hw_model_many(const many_keys *k, unsigned wants, many *out)
{
    (void)k, (void)wants, (void)out;
}

void hw_model_many_add(many_sums *s, uint32_t accesses, const many_keys *k, const many *m,
                       bool banks)
{
    (void)s, (void)accesses, (void)k, (void)m, (void)banks;
}
#endif
