/* SPDX-License-Identifier: Apache-2.0
 * wir: C helpers that generated code calls for a warp (helper.def), and what their aux says. */
#ifndef HW_WIR_HELPER_H
#define HW_WIR_HELPER_H

#include <stdint.h>

typedef enum hw_wir_helper {
#define HW_HELPER(name, text) HW_H_##name,
#include "helper.def"
#undef HW_HELPER
    HW_H_COUNT
} hw_wir_helper;

/* aux of helper DEVICE_CALL. */
typedef enum hw_device_function {
#define HW_DEVICE_CALL(id, name, operands, result) HW_DC_##id,
#include "device_call.def"
#undef HW_DEVICE_CALL
    HW_DC_COUNT
} hw_device_function;

/* clang-format off */
/* aux of helper NARROW: what becomes what, and how. Two values a register, the first in the upper part. WIDEN gives
 * halves, of UE8M0 (a scale, an exponent alone) bf16. */
enum {
    HW_NARROW_FROM_SINGLES, HW_NARROW_FROM_HALVES, HW_NARROW_FROM_BF16, HW_NARROW_WIDEN,
    HW_NARROW_RANDOM /* two or four singles, then random bits */, HW_NARROW_HOW = 15,
    HW_NARROW_TYPE_SHIFT = 4, HW_NARROW_E4M3 = 0, HW_NARROW_E5M2, HW_NARROW_E2M3, HW_NARROW_E3M2, HW_NARROW_E2M1,
    HW_NARROW_UE8M0, HW_NARROW_F16, HW_NARROW_BF16, HW_NARROW_RELU = 0x100, HW_NARROW_UP = 0x200 /* of scales */, HW_NARROW_FINITE = 0x400
};
/* aux of helper MMA, D = A * B + C of an m x k and a k x n matrix: dsts D's registers, srcs A's, B's, C's. Registers hold
 * 32 bits (f64: 64) of elements as mma.sync lays them out (PTX ISA 9.7.14.5), wider and higher matrices as several of those
 * side by side. WMMA: factors of halves have 8 registers, which hold the matrix several times if it is small. */
typedef enum hw_mma_type {
    HW_MMA_F16, HW_MMA_BF16, HW_MMA_TF32, HW_MMA_F32, HW_MMA_F64, HW_MMA_S8, HW_MMA_U8, HW_MMA_S32,
    HW_MMA_E4M3, HW_MMA_E5M2, HW_MMA_S4, HW_MMA_U4, HW_MMA_B1,
    HW_MMA_E3M2, HW_MMA_E2M3, HW_MMA_E2M1 /* in bits 2 to 5 of a byte */, HW_MMA_E2M1_PAIRS /* two a byte */
} hw_mma_type;
enum { HW_MMA_WMMA = 1, HW_MMA_SATURATE = 2, HW_MMA_AND = 4 /* of B1: bits in common, else those that differ */,
       HW_MMA_ROUND_SHIFT = 6 /* of F64: hw_wir_round */ };
typedef struct hw_mma { /* a b c d: hw_mma_type; flags: HW_MMA_* */
    uint8_t m, n, k /* 0: 256 */, a, b, c, d, flags;
} hw_mma;
/* aux of helper MMA_MORE: as MMA, m x n is 16 x 8, but QUADS: four products of 8 x 4 and 4 x 8, each by eight lanes (PTX ISA
 * 9.7.14.5.1). SPARSE: A has half its elements, C is followed by the register of their indices (9.7.14.6), which lanes
 * `selector` names. With scales: of A then of B a register of scales, one of which byte and one of which lane (9.7.14.3);
 * `scales` of them stand side by side along k. */
enum { HW_MMA_QUADS = 8, HW_MMA_COL_A = 16, HW_MMA_ROW_B = 32, HW_MMA_SPARSE = 64, HW_MMA_UE4M3 = 128 /* scales */ };
typedef struct hw_mma_more { /* a b c d: hw_mma_type; flags: these and HW_MMA_SATURATE */
    uint8_t k, scales, selector, a, b, c, d, flags;
} hw_mma_more;
/* aux of helper WGMMA, D = A * B (+ D) of a 64 x k and a k x n matrix, 32 bytes of k: this warp's 16 rows, those of its place
 * in the warpgroup. dsts D's registers; srcs: add D (i1), B's descriptor (i64), A's descriptor or, with A_REGISTERS, four
 * registers as MMA's, D's registers: those of MMA's 16 x 8 matrices side by side. MN_*: k is not what runs fastest there.
 * SPARSE: A has half its elements, B 64 bytes of k, and the register of indices comes last; selector as MMA_MORE's. */
enum { HW_WGMMA_A_REGISTERS = 1, HW_WGMMA_MN_A = 2, HW_WGMMA_MN_B = 4, HW_WGMMA_NEGATE = 8, HW_WGMMA_SATURATE = 16,
       HW_WGMMA_SPARSE = 32 };
typedef struct hw_wgmma { /* a b d: hw_mma_type; flags: HW_WGMMA_* */
    uint16_t n;
    uint8_t a, b, d, flags, selector, unused;
} hw_wgmma;
/* clang-format on */

#endif
