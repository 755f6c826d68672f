/* SPDX-License-Identifier: Apache-2.0
 *
 * Counting distinct addresses of a warp with AVX-512: of each lane, how many lanes before it have
 * the same key. Keys are distances to a lane that takes part; lanes that do not get keys of their
 * own.
 */
#include "quick.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define NEEDS __attribute__((target("avx512f,avx512bw,avx512cd,avx512vl,avx512dq,avx512vpopcntdq")))

enum { SECTOR_SHIFT = 5, LINE_SHIFT = 7, FAR = 1 << 30, NOBODY = (int)0x90000000 };

typedef struct pair {
    __m512i lo, hi; /* 32-bit numbers of lanes 0 .. 15, 16 .. 31 */
} pair;

NEEDS static inline pair earlier(pair k)
{
    pair n = { _mm512_popcnt_epi32(_mm512_conflict_epi32(k.lo)),
               _mm512_popcnt_epi32(_mm512_conflict_epi32(k.hi)) };
    const __m512i one = _mm512_set1_epi32(1);
    __m512i turned[4] = { k.lo, _mm512_alignr_epi32(k.lo, k.lo, 1),
                          _mm512_alignr_epi32(k.lo, k.lo, 2), _mm512_alignr_epi32(k.lo, k.lo, 3) };
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++)
#pragma GCC unroll 4
        for (int j = 0; j < 4; j++) { /* four chains, not one */
            n.hi = _mm512_mask_add_epi32(n.hi, _mm512_cmpeq_epi32_mask(k.hi, turned[j]), n.hi, one);
            turned[j] = _mm512_alignr_epi32(turned[j], turned[j], 4);
        }
    return n;
}

NEEDS static inline uint32_t zeros(pair n)
{
    return _mm512_testn_epi32_mask(n.lo, n.lo) | (uint32_t)_mm512_testn_epi32_mask(n.hi, n.hi)
                                                     << 16;
}

NEEDS static inline pair keys(pair distance, unsigned shift, uint32_t mask)
{
    const __m512i lane = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m512i nobody = _mm512_add_epi32(lane, _mm512_set1_epi32(NOBODY));
    const __m128i by = _mm_cvtsi32_si128((int)shift);
    return (pair){ _mm512_mask_srl_epi32(nobody, (__mmask16)mask, distance.lo, by),
                   _mm512_mask_srl_epi32(_mm512_add_epi32(nobody, _mm512_set1_epi32(16)),
                                         (__mmask16)(mask >> 16), distance.hi, by) };
}

/* Lanes of the mask in each of 32 banks of 4 bytes: the lanes whose bank has bit k, for each k,
 * then the banks side by side. */
NEEDS static inline pair in_banks(pair distance, uint32_t mask)
{
    const __m512i lane = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    __m512i lo = _mm512_set1_epi32((int)mask), hi = lo;
#pragma GCC unroll 5
    for (int k = 0; k < 5; k++) {
        __m512i bit = _mm512_set1_epi32(4 << k), of_bank = _mm512_set1_epi32(1 << k);
        uint32_t set = _mm512_test_epi32_mask(distance.lo, bit) |
                       (uint32_t)_mm512_test_epi32_mask(distance.hi, bit) << 16;
        __m512i with = _mm512_set1_epi32((int)set), without = _mm512_set1_epi32((int)~set);
        __mmask16 banks = _mm512_test_epi32_mask(lane, of_bank); /* bit 4: only those of hi */
        lo = _mm512_and_si512(lo, k < 4 ? _mm512_mask_blend_epi32(banks, without, with) : without);
        hi = _mm512_and_si512(hi, k < 4 ? _mm512_mask_blend_epi32(banks, without, with) : with);
    }
    return (pair){ _mm512_popcnt_epi32(lo), _mm512_popcnt_epi32(hi) };
}

NEEDS static inline uint32_t most(pair n)
{
    return _mm512_reduce_max_epu32(_mm512_max_epu32(n.lo, n.hi));
}

/* Distances of 8 lanes; *bad collects those that are too far or not aligned. */
NEEDS static inline __m256i eight(const uint64_t *address, __m512i base, __m512i align,
                                  __mmask8 *bad)
{
    __m512i at = _mm512_loadu_si512(address), d = _mm512_sub_epi64(at, base);
    __m512i up = _mm512_add_epi64(d, _mm512_set1_epi64(FAR));
    *bad = (__mmask8)(_mm512_cmpge_epu64_mask(up, _mm512_set1_epi64(2 * (int64_t)FAR)) |
                      _mm512_test_epi64_mask(at, align));
    return _mm512_cvtepi64_epi32(d);
}

NEEDS static bool distances(const hw_access *a, uint32_t mask, pair *out)
{
    uint64_t first = a->address[__builtin_ctz(mask)] & ~UINT64_C(0xfff);
    __m512i base = _mm512_set1_epi64((int64_t)first);
    __m512i align = _mm512_set1_epi64((int64_t)a->width - 1);
    __mmask8 bad[4];
    __m256i q[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++)
        q[i] = eight(a->address + 8 * i, base, align, &bad[i]);
    uint32_t all = bad[0] | (uint32_t)bad[1] << 8 | (uint32_t)bad[2] << 16 | (uint32_t)bad[3] << 24;
    *out = (pair){ _mm512_inserti64x4(_mm512_castsi256_si512(q[0]), q[1], 1),
                   _mm512_inserti64x4(_mm512_castsi256_si512(q[2]), q[3], 1) };
    return (all & mask) == 0;
}

NEEDS static bool with_vectors(const hw_access *a, bool banks, quick *out)
{
    uint32_t mask = (uint32_t)a->mask;
    pair d;
    if (!mask || !distances(a, mask, &d))
        return false;
    pair all = keys(d, 0, mask);
    out->lanes = (uint32_t)__builtin_popcount(mask);
    pair n = earlier(all);
    out->alike = most(n) + 1;
    out->first = zeros(n) & mask;
    out->units = (uint32_t)__builtin_popcount(out->first);
    if (banks) {
        pair n_in = in_banks(d, out->first);
        out->crowd = most(n_in);
        _mm512_storeu_si512(out->bank, n_in.lo);
        _mm512_storeu_si512(out->bank + 16, n_in.hi);
        return true;
    }
    out->sectors = (uint32_t)__builtin_popcount(zeros(earlier(keys(d, SECTOR_SHIFT, mask))) & mask);
    out->lines = (uint32_t)__builtin_popcount(zeros(earlier(keys(d, LINE_SHIFT, mask))) & mask);
    return true;
}

bool hw_model_quick(const hw_access *a, bool banks, quick *out)
{
    static int able = -1;
    if (able < 0)
        able = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
               __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512vl") &&
               __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vpopcntdq");
    bool power = (a->width & (a->width - 1)) == 0;
    return able && a->lanes == 32 && power && with_vectors(a, banks, out);
}

#else
bool hw_model_quick(const hw_access *a, bool banks, quick *out)
{
    (void)a, (void)banks, (void)out;
    return false;
}
#endif
