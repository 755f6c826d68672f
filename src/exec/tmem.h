/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensor memory of a block (PTX ISA 9.7.16.1; private). Cells lie column by column, the lanes of one beside each other: what most
 * instructions move and multiply together. It is there from a block's first allocation on and kept for later blocks.
 */
#ifndef HW_EXEC_TMEM_H
#define HW_EXEC_TMEM_H

#include "exec.h"

enum { HW_TMEM_UNITS = HW_TMEM_COLUMNS / HW_TMEM_UNIT };

typedef struct hw_tmem_request { /* of a warp that waits for columns */
    uint64_t to;                 /* where the address is written */
    uint32_t columns, group;
    uint32_t parked; /* lanes */
    bool asked;
} hw_tmem_request;

struct hw_tmem {
    uint32_t taken;  /* bit: a unit of columns is given out */
    uint32_t starts; /* bit: an allocation begins there */
    uint32_t group;  /* that all instructions name; 0: none yet */
    bool relinquished;
    uint64_t asking, waiting; /* warps with a request; those of them that are held back */
    uint32_t units[HW_TMEM_UNITS];
    hw_tmem_request request[HW_WARPS_MOST];
    uint32_t cells[HW_TMEM_COLUMNS][HW_TMEM_LANES];
};

typedef struct hw_tmem_area { /* columns of one instruction */
    uint32_t column, lane;
} hw_tmem_area;

/* ---- for the block's loop and the table of helpers ---- */
hw_helper_fn hw_h_tmem, hw_h_tmem_load, hw_h_tmem_store, hw_h_tmem_copy, hw_h_tmem_shift,
    hw_h_tmem_mma, hw_h_tmem_commit;
void hw_tmem_start(hw_block *b);                /* of a block that has some from before */
void hw_tmem_end(hw_block *b, hw_frame *last);  /* or a fault */
void hw_tmem_wait(hw_block *b, uint32_t w);     /* at HW_BARRIER_TMEM: the whole warp */
void hw_tmem_park(hw_frame *f, uint32_t lanes); /* lanes */
uint64_t hw_tmem_waiting(const hw_block *b);    /* warps */

/* ---- for these helpers ---- */
/* The block that forms a pair with b; a fault if there is none. */
hw_block *hw_tmem_peer(hw_frame *f, const char *what);
/* One group for all instructions of a block, or a fault. */
void hw_tmem_join(hw_frame *f, uint32_t group);
/* Are these columns of block b given out? Else a fault. */
hw_tmem *hw_tmem_need(hw_frame *f, hw_block *b, const char *what, uint32_t column,
                      uint32_t columns);

/* A descriptor of shared memory that is one of these instructions' (9.7.16.4.1), or a fault. */
void hw_tmem_check_descriptor(hw_frame *f, const char *what, uint64_t descriptor);

static inline hw_tmem_area hw_tmem_at(uint32_t address)
{
    return (hw_tmem_area){ address & 0xffff, address >> 16 };
}

#endif
