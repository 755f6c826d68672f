/* SPDX-License-Identifier: Apache-2.0
 * Products of a warpgroup: what the instruction asks of its warps and descriptors (PTX ISA 9.7.15) before room jit multiplies. */
#include "exec.h"

static void need_descriptor(hw_frame *f, const uint64_t *lanes)
{
    uint64_t d = lanes[0];
    for (unsigned l = 1; l < HW_WARP_LANES; l++)
        if (lanes[l] != d)
            hw_raise(f, HW_F_ILLEGAL_INSTRUCTION, f->fault_loc,
                     "wgmma: the matrix descriptors of a warp's lanes differ");
}

void hw_h_wgmma(hw_frame *f, uint32_t lanes, const hw_lane_arrays *io, uint64_t aux)
{
    hw_wgmma x;
    memcpy(&x, &aux, sizeof x);
    uint32_t first = f->warp / HW_WARPGROUP * HW_WARPGROUP;
    if (lanes != UINT32_MAX || f->nwarps < first + HW_WARPGROUP)
        hw_raise(f, HW_F_ILLEGAL_INSTRUCTION, f->fault_loc,
                 "wgmma: not all threads of a warpgroup, four warps in order, take part");
    need_descriptor(f, io->src[1]);
    if (!(x.flags & HW_WGMMA_A_REGISTERS))
        need_descriptor(f, io->src[2]);
    hw_jit_helpers[HW_H_WGMMA](f, lanes, io, aux);
}
