/* SPDX-License-Identifier: Apache-2.0
 *
 * wir: what the helpers of tensor memory (PTX ISA 9.7.16) are told in aux, and in what order their sources come. A block's tensor memory
 * is cells of 32 bits, a tensor address is its column and, from bit 16 on, its lane. The group is 1, the block itself, or 2, the
 * pair of blocks that differ in the lowest bit of their rank in the cluster.
 *
 *   TMEM         where(i64: the address that an allocation is written to, or a tensor address), columns(i32); for an allocation a BARRIER
 *                HW_BARRIER_TMEM follows, which holds the warp until it has been made
 *   TMEM_LOAD    registers(i32 each) {, the reduction} = tensor address(i32); aux = hw_tmem_move
 *   TMEM_STORE   tensor address(i32), registers(i32 each); aux = hw_tmem_move
 *   TMEM_COPY    tensor address(i32), descriptor(i64); aux = hw_tmem_copy
 *   TMEM_SHIFT   tensor address(i32); aux = group
 *   TMEM_MMA     D(i32), A (i64: tensor address or descriptor), B's descriptor(i64), instruction descriptor(i32), add D(i1), then what
 *                aux = hw_tmem_mma says
 *   TMEM_COMMIT  mbarrier(i64), mask of blocks(i32); aux = HW_TMEM_MULTICAST, group
 */
#ifndef HW_WIR_TENSOR_H
#define HW_WIR_TENSOR_H

#include <stdint.h>

enum { HW_TMEM_LANES = 128, HW_TMEM_COLUMNS = 512, HW_TMEM_UNIT = 32 /* columns */ };

/* BARRIER with this number, of a count of 32. */
#define HW_BARRIER_TMEM UINT32_C(0x20000000)

/* clang-format off */
/* aux of TMEM: what, the group from bit 8. */
typedef enum hw_tmem_what { HW_TMEM_ALLOC, HW_TMEM_FREE, HW_TMEM_RELINQUISH } hw_tmem_what;
enum { HW_TMEM_GROUP = 8, HW_TMEM_MULTICAST = 1 };

typedef enum hw_tmem_shape { HW_TMEM_32X32, HW_TMEM_16X64, HW_TMEM_16X128, HW_TMEM_16X256, HW_TMEM_16X32X2 } hw_tmem_shape;
/* 16 bits of two cells a register; a reduction: HW_TMEM_MAX else the least, of s32 with SIGNED, f32 with FLOAT, else u32. */
enum { HW_TMEM_PACKED = 1, HW_TMEM_REDUCED = 2, HW_TMEM_MAX = 4, HW_TMEM_SIGNED = 8, HW_TMEM_FLOAT = 16, HW_TMEM_ABS = 32, HW_TMEM_NAN = 64 };
typedef struct hw_tmem_move {
    uint8_t shape, flags;
    uint16_t registers;
    int32_t second; /* 16X32X2: columns from the first half to the second */
} hw_tmem_move;

/* Rows of shared memory to lanes: 128, 64 (to lanes 64 apart, or 32 and then 64), 32 (to all quarters), 4 (32 lanes apart). */
typedef enum hw_tmem_rows { HW_TMEM_ROWS_128, HW_TMEM_ROWS_64_02, HW_TMEM_ROWS_64_01, HW_TMEM_ROWS_32, HW_TMEM_ROWS_4 } hw_tmem_rows;
enum { HW_TMEM_AS_IS, HW_TMEM_FROM_6_BITS, HW_TMEM_FROM_4_BITS };
typedef struct hw_tmem_copy {
    uint8_t rows, pieces /* of 16 bytes, a row */, bits, group, unused[4];
} hw_tmem_copy;

typedef enum hw_tmem_kind {
    HW_TMEM_F16, HW_TMEM_TF32, HW_TMEM_F8F6F4, HW_TMEM_I8, HW_TMEM_MXF8F6F4, HW_TMEM_MXF4, HW_TMEM_MXF4NVF4, HW_TMEM_KINDS
} hw_tmem_kind;
/* Sources follow in this order: metadata of a sparse A (i32); scales of A and B (i32 each); the mask of zero columns (i64); lanes of D that
 * stay as they are (4 * group of i32). */
enum { HW_TMEM_A_CELLS = 1, HW_TMEM_WS = 2, HW_TMEM_SPARSE = 4, HW_TMEM_SCALED = 8, HW_TMEM_ZERO_MASK = 16, HW_TMEM_DISABLE = 32,
       HW_TMEM_A_SHIFTED = 64 };
typedef struct hw_tmem_mma {
    uint8_t kind, flags, group, scale_d /* D * 2^-scale_d */, block /* of one scale: 16, 32 */, unused[3];
} hw_tmem_mma;
/* clang-format on */

#endif
