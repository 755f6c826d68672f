/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of the code generator do for one another (its nouns: state.h).
 *
 * LLVM types do not say signedness or what a float is: operations take hw_wir_insn for that, and
 * see integers of the register's width. The functions below infer from a value's own LLVM type
 * whether it is one value or a vector, so that one emitter serves uniform and varying operands.
 */
#ifndef HW_JIT_GEN_H
#define HW_JIT_GEN_H

#include "state.h"

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
hw_lv hwg_masks_home(hw_gen *g);
uint32_t hwg_carried_init(hw_gen *g);     /* suspend.c: the end of what canonical points keep */
bool hwg_masks_together(const hw_gen *g); /* flow.c: pending masks in one piece of memory */
unsigned hwg_src_type(const hw_gen *g, const hw_wir_insn *in, unsigned i); /* register type */
hw_lanes hwg_read(hw_gen *g, hw_wir_val v, unsigned type);
hw_lv hwg_vector(hw_gen *g, hw_lanes x, unsigned type); /* as 32 lanes */
hw_lanes hwg_uniform(hw_lv s);
hw_lanes hwg_varying(hw_lv v);
void hwg_write(hw_gen *g, hw_wir_val dst, hw_lanes x);     /* under the instruction's mask */
void hwg_write_raw(hw_gen *g, uint32_t reg, hw_lanes x);   /* in all lanes */
void hwg_write_lanes(hw_gen *g, uint32_t reg, hw_lanes x); /* in those that execute */
hw_lv hwg_load_home(hw_gen *g, hw_lt t, hw_lv p);          /* an i1 is a byte in memory */
void hwg_store_home(hw_gen *g, hw_lv x, hw_lv p);
uint32_t hwg_bytes_of(hw_lt t);                /* in frame.save */
hw_gen_reg hwg_slots(hw_gen *g, uint32_t reg); /* its allocas */
hw_lv hwg_src_vec(hw_gen *g, const hw_wir_insn *in, unsigned i);
hw_lanes hwg_src(hw_gen *g, const hw_wir_insn *in, unsigned i);
const hw_wir_insn *hwg_only_definition(hw_gen *g,
                                       uint32_t reg); /* bound.c; NULL: none, or several */
bool hwg_wanted(hw_wir_val dst);
unsigned hwg_dst_type(const hw_gen *g, hw_wir_val dst);
bool hwg_affine(hw_gen *g, const hw_wir_insn *in); /* affine.c: true if done */
void hwg_extremes(const int64_t *x, int64_t *lo, int64_t *hi);
hw_lv hwg_first_lane(hw_gen *g, hw_lv mask); /* i32 index of the lowest set bit */
hw_lv hwg_last_lane(hw_gen *g, hw_lv mask);
void hwg_fail(hw_gen *g, hw_status s, const char *fmt, ...) HW_PRINTF(3, 4);

/* ---- instructions (ops.c) ---- */
void hwg_insn(hw_gen *g, const hw_wir_insn *in);
/* A function of the module whose body is made by `body` from its parameters, of the types of args;
 * the last is the lanes that execute. */
typedef hw_lv hw_gen_body_fn(hw_gen *g, const hw_lv *params, void *ctx);
hw_lv hwg_outline(hw_gen *g, const char *name, hw_lt result, const hw_lv *args, unsigned n,
                  hw_gen_body_fn *body, void *ctx);
hw_lv hwg_call_outlined(hw_gen *g, hw_lv fn, const hw_lv *args, unsigned n);
/* Is its vector form a function of its own in this code (outline.c)? The call of it. */
bool hwg_outlines(const hw_gen *g, const hw_wir_insn *in);
hw_lv hwg_outlined(hw_gen *g, const hw_wir_insn *in, hw_gen_lane_fn *emit, const hw_lv *a,
                   hw_lt result);
hw_lv hwg_executing(hw_gen *g, const hw_wir_insn *in); /* lanes of the block and guard */

/* ---- control (flow.c), suspension (suspend.c), functions (function.c) ---- */
void hwg_terminator(hw_gen *g, const hw_wir_insn *in);
void hwg_spin(hw_gen *g, const hw_wir_insn *in); /* before a terminator that goes back */
void hwg_blocks(hw_gen *g);                      /* all blocks of the function, and checks */
void hwg_set_mask(hw_gen *g);                    /* g->mask of the current block and version */
bool hwg_parts_lanes(const hw_gen *g, uint32_t block);
/* The set of registers kept while the warp waits before an instruction. */
uint64_t *hwg_live_before(hw_gen *g, uint32_t block, uint32_t index);
void hwg_plan_places(hw_gen *g);
bool hwg_is_held(const hw_gen *g, const hw_gen_point *p, uint32_t reg);
hw_lv hwg_place(hw_gen *g, uint32_t reg, unsigned which);
bool hwg_may_relay(const hw_gen *g);               /* may warps hand on their turn? (function.c) */
bool hwg_is_exit(const hw_gen *g, uint32_t block); /* nothing but an end of its lanes */
void hwg_points_finish(hw_gen *g, hw_lb start);    /* the entry's switch, saves and restores */
hw_status hwg_module(hw_gen *g);
void hwg_attributes(hw_gen *g, hw_lv fn);
void hwg_fault(hw_gen *g, unsigned status, uint32_t loc); /* emits a call and unreachable */
void hwg_deopt(hw_gen *g, hw_lv ok);                      /* go on if ok, else deoptimise */
/* ---- lanes that wait without the others of their warp (park.c) ---- */
bool hwg_parks(const hw_gen *g, const hw_wir_insn *in); /* its lanes are parked here */
bool hwg_parks_after(const hw_gen *g, uint32_t block);  /* lanes may be parked at its end */
bool hwg_may_park(const hw_gen *g);                     /* somewhere in the slow variant */
void hwg_park(hw_gen *g, const hw_wir_insn *in);
void hwg_unpark(hw_gen *g);
void hwg_bet(hw_gen *g, const hw_wir_insn *in); /* that lanes come together; else deoptimise */
bool hwg_bet_lost_here(const hw_gen *g, const hw_wir_insn *in);
hw_lv hwg_ready(hw_gen *g, uint32_t b); /* lanes that wait at a block and may go on */
hw_lb hwg_all_parked(hw_gen *g);        /* where the warp is suspended until some may */

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
int64_t hwg_bundle_ahead(const hw_gen *g, const hw_gen_bundle *b);
void hwg_lane_loop(hw_gen *g, hw_lv lanes, void (*body)(hw_gen *g, hw_lv lane, void *ctx),
                   void *ctx);

/* ---- counters (count.c); nothing if nobody listens ---- */
void hwg_count_begin(hw_gen *g);
void hwg_count_taken(hw_gen *g, hw_lv p); /* a CBR: I1 of all lanes, or a mask */
void hwg_count_end_here(hw_gen *g);       /* at EXIT and RET */
void hwg_count_end_at(hw_gen *g, uint32_t block, hw_lv lanes); /* lanes end that go to it */
void hwg_count_end(hw_gen *g);
void hwg_count_block(hw_gen *g);                         /* at its start */
void hwg_count_guard(hw_gen *g);                         /* lanes that execute */
void hwg_count_access(hw_gen *g, const hw_wir_insn *in); /* with some lanes */
void hwg_count_uniform(hw_gen *g);                       /* a branch all lanes take alike */
void hwg_count_parting(hw_gen *g, hw_lv some);           /* or these lanes of the mask */
void hwg_count_ways(hw_gen *g, hw_lv v);                 /* or by this index of each lane */

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
