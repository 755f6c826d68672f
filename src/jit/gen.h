/* SPDX-License-Identifier: Apache-2.0
 *
 * The code generator's own nouns (only files of the code generator see this).
 *
 *   gen    the state of one function being generated.
 *   lanes  what is known of a value in the 32 lanes: a shape and the LLVM values that carry it.
 *          UNIFORM s; AFFINE s + c[lane] + d[lane] * r; VARYING v, a vector of 32.
 *          Predicates are i1 and <32 x i1>; masks are i32, bit l for lane l.
 *   block versions  MASKED code runs under `mask`; FULL copies assume all 32 lanes.
 *
 * Registers are allocas until LLVM's SROA makes values of them: one scalar (UNIFORM), scalars S and
 * R (AFFINE), a vector (VARYING), an i32 mask (varying predicate).
 *
 * LLVM types do not say signedness or what a float is: operations take hw_wir_insn for that, and
 * see integers of the register's width. The functions below infer from a value's own LLVM type
 * whether it is one value or a vector, so that one emitter serves uniform and varying operands.
 */
#ifndef HW_JIT_GEN_H
#define HW_JIT_GEN_H

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
    hw_lv slot, slot_r; /* allocas */
} hw_gen_reg;

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
    bool fulls;     /* make FULL copies */
    bool flush_all; /* MXCSR flushes: no explicit flushes needed */
    hw_lt i1, i8, i16, i32, i64, i128, f16, f32, f64, ptr, voidt;

    /* the function */
    const hw_wir_function *f;
    uint32_t findex;
    const hw_wir_analysis *an;
    hw_lv fn, frame;
    hw_lb entry; /* allocas and loads of the frame's constants */
    hw_lb done;  /* returns HW_WARP_DONE */
    hw_gen_reg *regs;
    hw_lv live, mask_slot; /* i32 allocas: lanes that have not ended; lanes of the running block */
    hw_lv *pend;           /* per block: i32 alloca of waiting lanes, if any may wait */
    hw_lb *body[GEN_VERSIONS];
    hw_lb *check; /* per position in the order, and one for the end */
    hw_lb *take;  /* per block: let the lanes waiting there run; NULL until needed */
    hw_lv once[sizeof(hw_frame) / 4]; /* frame fields that never change, loaded at entry */
    hw_lv scratch;                    /* alloca of 32 x 64 bit, for cold calls */
    hw_lv io;                         /* a called function's arguments and results */
    HW_VEC(uint32_t) called;          /* functions to be generated */
    hw_lv local_used; /* i64: local memory of a lane used by callers; NULL: the frame's */
    HW_VEC(hw_gen_point *) points;
    hw_gen_point **point_of;     /* per instruction */
    const hw_wir_analysis *fast; /* in a no_shapes variant: of the variant it takes over from */
    const bool *deopts_to; /* per instruction, in a no_shapes variant: warps may arrive here */
    bool *may_wait;        /* per block: some lanes may have to wait at it */
    uint32_t norder;       /* blocks in the order */
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
    HW_VEC(hw_gen_table) tables;
    uint32_t epoch;
    hw_lv limit[2][8];         /* range limits by far, log2 of alignment; at entry */
    hw_status failed;          /* first error */
    struct hw_counting *count; /* NULL: nobody listens */
} hw_gen;

/* ---- an emitter of a lane-wise operation: a[i] are all single values or all vectors ---- */
typedef hw_lv hw_gen_lane_fn(hw_gen *g, const hw_wir_insn *in, const hw_lv *a);
/* ---- an emitter that reads and writes registers itself ---- */
typedef void hw_gen_fn(hw_gen *g, const hw_wir_insn *in);

typedef struct hw_gen_op {
    hw_gen_lane_fn *lane;
    hw_gen_fn *whole;
} hw_gen_op;
extern const hw_gen_op hw_gen_ops[HW_W_COUNT];

/* ---- types and constants (value.c) ---- */
unsigned hwg_lanes(hw_lv v);                  /* 1 or the number of elements */
hw_lt hwg_elem(hw_lv v);                      /* element type, or the type itself */
hw_lt hwg_vec_of(hw_lt elem, unsigned lanes); /* elem itself if lanes is 1 */
hw_lt hwg_like(hw_lv v, hw_lt elem);          /* elem in as many lanes as v */
hw_lt hwg_int(hw_gen *g, unsigned bits);
hw_lt hwg_reg_type(hw_gen *g, unsigned type); /* LLVM element type of a WIR register type */
hw_lt hwg_float(hw_gen *g, unsigned type);    /* F16 F32 F64 */
hw_lv hwg_k(hw_lt t, uint64_t bits);          /* integer constant, splat for vectors */
hw_lv hwg_kf(hw_lt t, double x);              /* float constant, splat for vectors */
hw_lv hwg_klike(hw_lv v, uint64_t bits);      /* an integer constant of v's type */
hw_lv hwg_kvec(hw_gen *g, hw_lt elem, const int64_t *x, unsigned n);
hw_lv hwg_splat(hw_gen *g, hw_lv scalar, unsigned lanes);
hw_lv hwg_mask_vec(hw_gen *g, hw_lv mask); /* i32 -> <32 x i1> */
hw_lv hwg_vec_mask(hw_gen *g, hw_lv bits); /* <32 x i1> -> i32 */
hw_lv hwg_intr(hw_gen *g, const char *name, unsigned ntypes, hw_lt *types, unsigned n, hw_lv *a);
hw_lv hwg_intr1(hw_gen *g, const char *name, hw_lv a); /* overloaded on a's type */
hw_lv hwg_intr2(hw_gen *g, const char *name, hw_lv a, hw_lv b);
hw_lv hwg_intr3(hw_gen *g, const char *name, hw_lv a, hw_lv b, hw_lv c);
hw_lv hwg_shuffle(hw_gen *g, hw_lv a, hw_lv b, const int *idx, unsigned n);
hw_lv hwg_gep(hw_gen *g, hw_lv base, hw_lv bytes);
hw_lv hwg_gep_k(hw_gen *g, hw_lv base, int64_t bytes);
hw_lv hwg_load(hw_gen *g, hw_lt t, hw_lv p, unsigned align);
hw_lv hwg_store(hw_gen *g, hw_lv x, hw_lv p, unsigned align);
hw_lv hwg_alloca(hw_gen *g, hw_lt t, const char *name); /* in the entry block, set to zero */
hw_lv hwg_alloca_raw(hw_gen *g, hw_lt t, unsigned align, const char *name); /* memory, not zeroed */
hw_lb hwg_block(hw_gen *g, const char *name);
void hwg_at(hw_gen *g, hw_lb b);                             /* go on emitting at the end of b */
void hwg_likely(hw_gen *g, hw_lv cond, hw_lb yes, hw_lb no); /* branch, `no` is cold */
void hwg_unlikely(hw_gen *g, hw_lv cond, hw_lb yes, hw_lb no);
hw_lv hwg_frame(hw_gen *g, size_t offset, hw_lt t);      /* load a field of the frame */
hw_lv hwg_frame_once(hw_gen *g, size_t offset, hw_lt t); /* in the entry block: never changes */
hw_lv hwg_frame_addr(hw_gen *g, size_t offset);
/* Call a function of frame.call. */
hw_lv hwg_callback(hw_gen *g, size_t offset, hw_lt type, hw_lv *a, unsigned n);
hw_lv hwg_extern(hw_gen *g, const char *name, hw_lt type); /* a function of symbols.c */

/* ---- registers (regs.c) ---- */
void hwg_regs_init(hw_gen *g);
unsigned hwg_src_type(const hw_gen *g, const hw_wir_insn *in, unsigned i); /* register type */
hw_lanes hwg_read(hw_gen *g, hw_wir_val v, unsigned type);
hw_lv hwg_vector(hw_gen *g, hw_lanes x, unsigned type); /* as 32 lanes */
hw_lanes hwg_uniform(hw_lv s);
hw_lanes hwg_varying(hw_lv v);
void hwg_write(hw_gen *g, hw_wir_val dst, hw_lanes x);   /* under the instruction's mask */
void hwg_write_raw(hw_gen *g, uint32_t reg, hw_lanes x); /* in all lanes */
hw_gen_reg hwg_slots(hw_gen *g, uint32_t reg);           /* its allocas */
hw_lv hwg_src_vec(hw_gen *g, const hw_wir_insn *in, unsigned i);
hw_lanes hwg_src(hw_gen *g, const hw_wir_insn *in, unsigned i);
bool hwg_wanted(hw_wir_val dst);
unsigned hwg_dst_type(const hw_gen *g, hw_wir_val dst);
bool hwg_affine(hw_gen *g, const hw_wir_insn *in); /* affine.c: true if done */
void hwg_extremes(const int64_t *x, int64_t *lo, int64_t *hi);
hw_lv hwg_first_lane(hw_gen *g, hw_lv mask); /* i32 index of the lowest set bit */
hw_lv hwg_last_lane(hw_gen *g, hw_lv mask);
void hwg_fail(hw_gen *g, hw_status s, const char *fmt, ...) HW_PRINTF(3, 4);

/* ---- instructions (ops.c) ---- */
void hwg_insn(hw_gen *g, const hw_wir_insn *in);
hw_lv hwg_executing(hw_gen *g, const hw_wir_insn *in); /* lanes of the block and guard */

/* ---- control (flow.c), suspension (suspend.c), functions (function.c) ---- */
void hwg_terminator(hw_gen *g, const hw_wir_insn *in);
void hwg_spin(hw_gen *g, const hw_wir_insn *in);   /* before a terminator that goes back */
void hwg_blocks(hw_gen *g);                        /* all blocks of the function, and checks */
void hwg_set_mask(hw_gen *g);                      /* g->mask of the current block and version */
bool hwg_is_exit(const hw_gen *g, uint32_t block); /* nothing but an end of its lanes */
void hwg_points_finish(hw_gen *g, hw_lb start);    /* the entry's switch, saves and restores */
hw_status hwg_module(hw_gen *g);
void hwg_attributes(hw_gen *g, hw_lv fn);
void hwg_fault(hw_gen *g, unsigned status, uint32_t loc); /* emits a call and unreachable */
void hwg_deopt(hw_gen *g, hw_lv ok);                      /* go on if ok, else deoptimise */
void hwg_arrival(hw_gen *g); /* where deoptimised warps come in, before an instruction */

/* ---- calls (call.c) ---- */
hw_lv hwg_callee(hw_gen *g, uint32_t index); /* the LLVM function; it is generated later */
void hwg_receive(hw_gen *g);
void hwg_give_results(hw_gen *g);
void hwg_stack_needs(hw_gen *g);

/* ---- memory (memory.c, atomic.c) ---- */
void hwg_groups(hw_gen *g, uint32_t block);
hw_lv hwg_scratch(hw_gen *g);
void hwg_bundles(hw_gen *g, uint32_t block); /* after hwg_groups */
bool hwg_bundle_ready(const hw_gen *g, const hw_gen_bundle *b);
void hwg_lane_loop(hw_gen *g, hw_lv lanes, void (*body)(hw_gen *g, hw_lv lane, void *ctx),
                   void *ctx);

/* ---- counters (count.c); nothing if nobody listens ---- */
void hwg_count_begin(hw_gen *g);
void hwg_count_end(hw_gen *g);
void hwg_count_block(hw_gen *g);                         /* at its start */
void hwg_count_guard(hw_gen *g);                         /* lanes that execute */
void hwg_count_access(hw_gen *g, const hw_wir_insn *in); /* with some lanes */
void hwg_count_uniform(hw_gen *g);                       /* a branch all lanes take alike */
void hwg_count_parting(hw_gen *g, hw_lv some);           /* or these lanes of the mask */
void hwg_count_parting_by(hw_gen *g, hw_lv v);           /* or by this value of each lane */

/* short names for LLVM's builders */
#define B2(name, fn)                                      \
    static inline hw_lv name(hw_gen *g, hw_lv a, hw_lv b) \
    {                                                     \
        return fn(g->b, a, b, "");                        \
    }
B2(b_add, LLVMBuildAdd)
B2(b_sub, LLVMBuildSub)
B2(b_mul, LLVMBuildMul)
B2(b_udiv, LLVMBuildUDiv)
B2(b_urem, LLVMBuildURem)
B2(b_and, LLVMBuildAnd)
B2(b_or, LLVMBuildOr)
B2(b_xor, LLVMBuildXor)
B2(b_shl, LLVMBuildShl)
B2(b_lshr, LLVMBuildLShr)
B2(b_ashr, LLVMBuildAShr)
B2(b_fadd, LLVMBuildFAdd)
B2(b_fsub, LLVMBuildFSub)
B2(b_fmul, LLVMBuildFMul)
B2(b_fdiv, LLVMBuildFDiv)
#undef B2
static inline hw_lv b_not(hw_gen *g, hw_lv a)
{
    return LLVMBuildNot(g->b, a, "");
}
static inline hw_lv b_select(hw_gen *g, hw_lv c, hw_lv a, hw_lv b)
{
    return LLVMBuildSelect(g->b, c, a, b, "");
}
static inline hw_lv b_icmp(hw_gen *g, LLVMIntPredicate p, hw_lv a, hw_lv b)
{
    return LLVMBuildICmp(g->b, p, a, b, "");
}
static inline hw_lv b_fcmp(hw_gen *g, LLVMRealPredicate p, hw_lv a, hw_lv b)
{
    return LLVMBuildFCmp(g->b, p, a, b, "");
}
static inline hw_lv b_zext(hw_gen *g, hw_lv a, hw_lt elem)
{
    return LLVMBuildZExt(g->b, a, hwg_like(a, elem), "");
}
static inline hw_lv b_sext(hw_gen *g, hw_lv a, hw_lt elem)
{
    return LLVMBuildSExt(g->b, a, hwg_like(a, elem), "");
}
static inline hw_lv b_trunc(hw_gen *g, hw_lv a, hw_lt elem)
{
    return LLVMBuildTrunc(g->b, a, hwg_like(a, elem), "");
}
static inline hw_lv b_bitcast(hw_gen *g, hw_lv a, hw_lt t)
{
    return LLVMBuildBitCast(g->b, a, t, "");
}
static inline hw_lv b_cast_elem(hw_gen *g, hw_lv a, hw_lt elem) /* bits of each lane, other type */
{
    return LLVMBuildBitCast(g->b, a, hwg_like(a, elem), "");
}

/* ---- the line table (debug.c) ---- */
void hwg_debug_begin(hw_gen *g);
void hwg_debug_function(hw_gen *g);                  /* of g->fn */
void hwg_debug_at(hw_gen *g, const hw_wir_insn *in); /* what is built now comes from it */
void hwg_debug_end(hw_gen *g);

#endif
