/* SPDX-License-Identifier: Apache-2.0
 *
 * The code generator's own nouns: the state of a function being generated (for gen.h only).
 *
 *   gen    the state of one function being generated.
 *   lanes  what is known of a value in the 32 lanes: a shape and the LLVM values that carry it.
 *          UNIFORM s; AFFINE s + c[lane] + d[lane] * r; VARYING v, a vector of 32.
 *          Predicates are i1 and <32 x i1>; masks are i32, bit l for lane l.
 *   block versions  MASKED code runs under `mask`; FULL copies assume all 32 lanes.
 *
 * Registers are allocas until LLVM's SROA makes values of them: one scalar (UNIFORM), scalars S and
 * R (AFFINE), a vector (VARYING), an i32 mask (varying predicate).
 */
#ifndef HW_JIT_STATE_H
#define HW_JIT_STATE_H

#include <llvm-c/Core.h>
#include <llvm-c/DebugInfo.h>
#include <llvm-c/TargetMachine.h>

#include "codegen.h"

typedef LLVMValueRef hw_lv;
typedef LLVMTypeRef hw_lt;
typedef LLVMBasicBlockRef hw_lb;

enum { GEN_MASKED, GEN_FULL, GEN_VERSIONS };
enum { GEN_LANES = HW_WARP_LANES };

typedef struct hw_lanes {
    hw_shape_kind kind;
    hw_lv s, r, v;
    const int64_t *c, *d;
} hw_lanes;

typedef struct hw_gen_reg {
    hw_lv slot, slot_r; /* allocas, or places in frame.save: homes */
    hw_lt type;         /* in them */
    bool home;
    hw_lv cached[2]; /* what the homes hold, known in this block of code */
    hw_lb cached_in;
} hw_gen_reg;

typedef struct hw_gen_place { /* offsets in frame.save */
    uint32_t s, r;
} hw_gen_place;

/* An address = base + sext/zext(index) * scale, found while a block is generated. */
typedef struct hw_gen_index {
    hw_lv base, index; /* i64 scalar; <32 x i32> */
    int64_t scale;
    bool is_signed;
    uint32_t stamp; /* valid if equal to gen.stamp */
} hw_gen_index;

/* Accesses of one block through one unchanged address register, checked together at the first. */
typedef struct hw_gen_group {
    int64_t lo, hi; /* least byte offset, greatest end offset */
    uint32_t align, n;
    bool checked;
    const hw_wir_insn *member[64];
} hw_gen_group;

/* Loads of neighbouring words done together at the first of them (bundle.c). */
typedef struct hw_gen_bundle {
    unsigned n;
    int64_t offset; /* of the first word */
    uint32_t first; /* the first of the loads in the block */
    const hw_wir_insn *in;
    hw_lv words[4]; /* NULL: not loaded yet */
} hw_gen_bundle;

typedef struct hw_gen_outlined hw_gen_outlined; /* outline.c */

typedef struct hw_gen_table { /* lane constants in the object's read-only data */
    const int64_t *c, *d;
    hw_lv table;
} hw_gen_table;

typedef struct hw_gen_open { /* per register: the group still growing */
    hw_gen_group *group;
    uint32_t epoch;
    bool shared;
} hw_gen_open;

/* A place where the warp may leave its code and come back: which registers are saved and where. */
typedef struct hw_gen_point {
    uint32_t id;               /* WIR instruction index + 1 */
    uint32_t block, index;     /* the registers live before this instruction are kept */
    hw_wir_val except;         /* but this one (the result of a barrier reduction) */
    bool canonical;            /* whole vectors and S, R: for another variant to read */
    bool parked;               /* not in a block: all lanes wait at the starts of blocks */
    uint32_t status;           /* what leaving returns */
    hw_lb leave;               /* saves and returns; NULL: never left here */
    hw_lb go_on[GEN_VERSIONS]; /* where execution continues; NULL: not there */
} hw_gen_point;

typedef struct hw_gen {
    hw_arena *arena;
    hw_diag *d;
    hw_wir_module *m;
    const hw_variant *v;
    hw_code *info;
    LLVMContextRef cx;
    LLVMModuleRef mod;
    LLVMBuilderRef b;
    LLVMTargetMachineRef tm;
    LLVMDIBuilderRef di; /* the line table (debug.c) */
    LLVMMetadataRef di_file, di_scope;
    bool avx512;    /* F, BW, DQ, VL */
    bool vnni;      /* and VNNI: products of bytes added up */
    bool fulls;     /* make FULL copies */
    bool lean;      /* tier 0: the code that is made fastest, not the one that runs fastest */
    bool flush_all; /* MXCSR flushes: no explicit flushes needed */
    hw_lt i1, i8, i16, i32, i64, i128, f16, f32, f64, ptr, voidt;

    /* the function */
    const hw_wir_function *f;
    uint32_t findex;
    const hw_wir_analysis *an;
    hw_lv fn, frame;
    hw_lv own;        /* the frame the function was called with: what all warps have in common */
    hw_lv frame_slot; /* ptr alloca: the frame, where one call may run several warps */
    hw_lb meet;       /* where a warp that waits for its block hands on its turn; NULL: none does */
    hw_lb entry;      /* allocas and loads of the frame's constants */
    hw_lb each; /* where each warp begins: loads of what differs; the entry where there is one */
    hw_lv warp; /* i32 alloca: its number, where one call may run all */
    hw_lb done; /* returns HW_WARP_DONE */
    hw_gen_reg *regs;
    bool *crosses;     /* per register: it lives from block to block */
    const bool *homes; /* per register: it lives in frame.save; NULL: none does */
    uint32_t homes_base, homes_bytes, homes_limit; /* where they begin; end so far; end at most */
    uint32_t *carried_at, carried_limit; /* canonical places, per live bit (suspend.c); their end */
    hw_lb carry, carried, carried_end;   /* the code that carries homes there, and back */
    hw_gen_place
        *place; /* per register: where it is while the warp waits (places.c); NULL: not so */
    uint32_t save_end;
    const uint64_t *early; /* registers that are stored there whenever they are written */
    uint64_t **held; /* per instruction that suspends: registers whose place has their value */
    hw_lv live, mask_slot; /* i32 allocas: lanes that have not ended; lanes of the running block */
    hw_lv *pend;           /* per block: i32 alloca of waiting lanes, if any may wait */
    hw_lv masks;           /* where all of them lie, one a block; NULL: each is an alloca */
    bool masks_stay;       /* in frame.save, before the homes */
    hw_lb *body[GEN_VERSIONS];
    hw_lb *check; /* per position in the order, and one for the end */
    hw_lb *take;  /* per block: let the lanes waiting there run; NULL until needed */
    hw_lv once[sizeof(hw_frame) / 4]; /* frame fields that never change, loaded at entry */
    hw_lv scratch;                    /* alloca of 32 x 64 bit, for cold calls */
    hw_lv io;                         /* a called function's arguments and results */
    HW_VEC(uint32_t) called;          /* functions to be generated */
    HW_VEC(hw_gen_outlined *) outlined;
    hw_lv lanes_allowed[8]; /* functions: range tests of 32 addresses, by log2 of alignment */
    hw_lv local_used;       /* i64: local memory of a lane used by callers; NULL: the frame's */
    HW_VEC(hw_gen_point *) points;
    hw_gen_point **point_of;     /* per instruction */
    hw_gen_point **before_of;    /* the same, for leaving before instructions that suspend */
    const hw_wir_analysis *fast; /* in a no_shapes variant: of the variant it takes over from */
    const bool *deopts_to; /* per instruction, in a no_shapes variant: warps may arrive here */
    bool *may_wait;        /* per block: some lanes may have to wait at it */
    uint32_t norder;       /* blocks in the order */
    hw_lv ended;  /* i64 alloca, in functions: ends of threads that lanes have come to; count.c */
    hw_lv rotate; /* i1 alloca: lanes that spin let others go on; NULL: not in this function */
    bool exits_divergent; /* lanes may end while others wait */

    /* where we are */
    uint32_t block, index; /* WIR block and instruction in it */
    int version;           /* GEN_MASKED or GEN_FULL */
    hw_lv mask;            /* i32: lanes of the block; constant ~0 in FULL */
    hw_lv exec;            /* i32: lanes of the instruction (mask and guard) */
    const hw_wir_insn *in;
    uint32_t stamp;
    hw_gen_index *index_of;          /* per register */
    hw_gen_group **group_of;         /* per instruction of the block: its group, or NULL */
    hw_gen_bundle **bundle_of;       /* per instruction of the block, or NULL */
    HW_VEC(hw_gen_bundle *) bundles; /* of the block */
    hw_gen_open *open;
    const hw_wir_insn **def_of; /* per register: its only definition, or NULL (bound.c) */
    bool *is_read;              /* per register: some instruction reads it (bound.c) */
    HW_VEC(hw_gen_table) tables;
    uint32_t epoch;
    hw_lv limit[2][8];         /* range limits by far, log2 of alignment; at entry */
    hw_status failed;          /* first error */
    struct hw_counting *count; /* NULL: nobody listens */
} hw_gen;

#endif
