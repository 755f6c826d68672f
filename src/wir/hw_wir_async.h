/* SPDX-License-Identifier: Apache-2.0
 *
 * wir: what the helpers of transaction barriers and asynchronous copies are told in aux, and in
 * what order their sources come. All addresses are generic (i64); lanes act one after the other.
 *
 *   MBARRIER       state(i64, may be none) = address, count(i32), bytes(i32)
 *   MBARRIER_WAIT  done(i1) = address, state(i64), or parity(i32) with HW_MBAR_PARITY
 *   BULK           to, from, bytes(i32), mbarrier, mask(i32: blocks of the cluster, or bytes of 16)
 *   TENSOR         shared address, tensor map, mbarrier, mask(i32), coordinates(i32 each), then what
 *                  the mode adds (i32 each)
 */
#ifndef HW_WIR_ASYNC_H
#define HW_WIR_ASYNC_H

#include <stdint.h>

/* BARRIER and BARRIER_ARRIVE with this number: the cluster's barrier. */
#define HW_BARRIER_CLUSTER UINT32_C(0x80000000)
/* Likewise, of a count of 128: the barrier of the four warps that the warp forms a warpgroup with. */
#define HW_BARRIER_WARPGROUP UINT32_C(0x40000000)

/* clang-format off */
typedef enum hw_mbar {
    HW_MBAR_INIT, HW_MBAR_INVAL, HW_MBAR_ARRIVE, HW_MBAR_DROP, HW_MBAR_EXPECT, HW_MBAR_COMPLETE,
    HW_MBAR_TRACK, /* cp.async.mbarrier.arrive: count arrivals more are expected, and come at once */
    HW_MBAR_KINDS
} hw_mbar;
enum { HW_MBAR_PARITY = 1, HW_MBAR_COUNT_MOST = (1 << 20) - 1 };

/* aux of BULK and TENSOR: flags, an hw_wir_atom from bit 8, an hw_wir_type from bit 16. */
enum {
    HW_BULK_MBARRIER = 1,  /* the barrier of mbarrier gets complete-tx of the bytes */
    HW_BULK_MULTICAST = 2, /* to each block of the mask, and to its barrier */
    HW_BULK_MASK = 4,      /* only bytes of the mask, 16 in turn */
    HW_BULK_REDUCE = 8,    /* combined with what is there */
    HW_BULK_FILL = 16,     /* zeros; from is not looked at */
    HW_BULK_STORE = 32,    /* TENSOR: from shared memory */
    HW_BULK_PAIRS = 64,    /* with MULTICAST: to the barrier of the block of its pair that is even or odd as mbarrier's is */
    HW_BULK_OPERATION = 8, HW_BULK_TYPE = 16,
};
/* TENSOR: dimensions from bit 24, then the mode. */
enum { HW_TENSOR_DIMENSIONS = 24, HW_TENSOR_MODE = 28 };
typedef enum hw_tensor_mode {
    HW_TENSOR_TILE, HW_TENSOR_GATHER, /* gather4 and scatter4 */
    HW_TENSOR_IM2COL, HW_TENSOR_IM2COL_W, HW_TENSOR_IM2COL_W128,
} hw_tensor_mode;
/* TENSORMAP: map, which(i32), value(i64); aux. From BOX on there is one a dimension. */
enum {
    HW_TENSOR_FIELD_ADDRESS, HW_TENSOR_FIELD_RANK, HW_TENSOR_FIELD_TYPE, HW_TENSOR_FIELD_INTERLEAVE, HW_TENSOR_FIELD_SWIZZLE, HW_TENSOR_FIELD_ATOMICITY,
    HW_TENSOR_FIELD_FILL, HW_TENSOR_FIELD_BOX, HW_TENSOR_FIELD_SIZE, HW_TENSOR_FIELD_STRIDE, HW_TENSOR_FIELD_STEP
};
/* clang-format on */

#endif
