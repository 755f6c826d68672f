/* SPDX-License-Identifier: Apache-2.0
 * What room gcn's files share (private): flags of gcn.def's rows. */
#ifndef HW_GCN_PRIVATE_H
#define HW_GCN_PRIVATE_H

#include "hw_gcn.h"

enum {
    G_SDST = 1,      /* VOP1/VOP2 that write an SGPR: readlane, readfirstlane */
    G_CO = 2,        /* writes a carry (VCC, or an SGPR pair in VOP3) */
    G_CIN = 4,       /* reads a carry or mask (VCC, or an SGPR pair in VOP3) */
    G_K1 = 8,        /* the literal is the second of three sources: v_madmk */
    G_K2 = 16,       /* the literal is the third: v_madak */
    G_OFF2 = 32,     /* DS with two 8-bit offsets */
    G_ATOM = 64,     /* memory atomic: returns the old value only with glc */
    G_HWREG = 128,   /* SIMM16 names a hardware register */
    G_LITERAL = 256, /* a literal dword always follows */
    G_LANE = 512,    /* VOP2 whose second source is a scalar lane number: readlane, writelane */
};

#endif
