/* SPDX-License-Identifier: Apache-2.0
 * A plain interpreter of warp IR for tests: one warp, lane by lane, the slow and obvious way.
 * Lanes that stand at the same place run together; the lowest block goes first. */
#ifndef HW_TEST_INTERP_H
#define HW_TEST_INTERP_H

#include "hw_wir.h"

typedef unsigned __int128 u128;

typedef struct interp {
    const hw_wir_module *m;
    const uint8_t *params;
    uint8_t *shared;
    uint8_t *local; /* of lane 0; local_stride apart */
    uint64_t local_stride;
    uint64_t symbols[64]; /* address of symbol i */
    uint32_t lanes;       /* that exist */
    uint32_t ctaid[3], nctaid[3], ntid[3], warp;
    const char *failed; /* what it could not do, or NULL */
    /* Counts by place, or NULL: active lanes, those that act, low bytes of their addresses. */
    uint64_t *active_at, *acting_at, *low_at;
} interp;

/* Run the kernel to its end. False: see failed. */
bool interp_run(interp *x);

/* ---- interp_pure.c ---- */
u128 interp_mask(unsigned bits);                                /* low ones */
__int128 interp_sign(u128 v, unsigned bits);                    /* sign-extended */
bool interp_pure(const hw_wir_insn *i, const u128 *s, u128 *d); /* false: not pure or unknown */

#endif
