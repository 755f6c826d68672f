/* SPDX-License-Identifier: Apache-2.0
 * The generated cases (cases.py): an instruction and the lane function that says what it does. */
#ifndef HW_TEST_LANE_CASES_H
#define HW_TEST_LANE_CASES_H

#include "lane.h"

typedef uint64_t lane_fn(const uint64_t *in);

typedef struct lane_case {
    const char *insn;
    lane_fn *lane;
    unsigned nsrc;
    const char *types[4], *regs[4]; /* of the sources */
    const char *dest, *dest_reg;
    uint16_t mods[16]; /* LANE_* + 1, 0 ends */
    int round;         /* SOFT_R* */
    int packed;        /* two halves, each as the lane function says */
    int has_literal;   /* the last source is written as a literal of these bits */
    uint64_t literal;
    int flushes; /* .ftz is about the result too */
} lane_case;

extern const lane_case lane_cases[];
extern const unsigned lane_ncases;
extern const char lane_decls[]; /* .reg lines for all names used */

/* .ftz flushes f32 and f16 subnormals that are read; the runner flushes results. */
#define FLUSH_f32(x)                                   \
    do {                                               \
        if (HAS(ftz) && fpclassify(x) == FP_SUBNORMAL) \
            (x) = copysignf(0, (x));                   \
    } while (0)
#define FLUSH_f64(x)                                   \
    do {                                               \
        if (HAS(ftz) && fpclassify(x) == FP_SUBNORMAL) \
            (x) = copysign(0, (x));                    \
    } while (0)
#define FLUSH_f16(x)                                   \
    do {                                               \
        if (HAS(ftz) && (x) != 0 && fabs(x) < 0x1p-14) \
            (x) = copysign(0, (x));                    \
    } while (0)
#define FLUSH_bf16(x)                                   \
    do {                                                \
        if (HAS(ftz) && (x) != 0 && fabs(x) < 0x1p-126) \
            (x) = copysign(0, (x));                     \
    } while (0)

#endif
