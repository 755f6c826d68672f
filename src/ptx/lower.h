/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside the lowering of PTX to warp IR (private).
 *
 *   lw      the lowering of one function: where its registers, labels and variables went.
 *   value   an operand read in the type its row says; temporaries are fresh and unguarded.
 *   result  written with lw_set: the instruction that made a temporary writes the PTX register
 *           itself, under the guard; a value given to lw_set must not be used afterwards.
 * Instructions with effects (memory, barriers, lanes) get the guard themselves: lw_effect.
 * Failures are noted in l->status (the first counts) so that rows stay expressions.
 */
#ifndef HW_PTX_LOWER_H
#define HW_PTX_LOWER_H

#include "isa.h"

/* Where a .param variable of a call frame lives: scalars in a register; structures in local memory
 * of the caller, passed by address; scalars whose address is taken in local memory of their own. */
typedef enum lw_place_kind { LW_REG, LW_POINTER, LW_FRAME } lw_place_kind;
typedef struct lw_place {
    const ptx_symbol *symbol;
    lw_place_kind kind;
    uint32_t reg;    /* its value, or its address */
    uint32_t offset; /* LW_FRAME: in this function's local memory */
    uint8_t type;    /* hw_wir_type of the value */
} lw_place;

typedef struct lw_module { /* of one kernel */
    hw_arena *arena;
    hw_diag *d;
    const struct hw_ptx_link *link;
    const ptx_layout *layout;
    hw_wir_module *m;
    const struct hw_ptx_unit *unit; /* whose locs these are */
    uint32_t *locs;                 /* unit's loc -> module's loc, 0 not made yet */
    uint32_t last_loc, last_line, last_made;
} lw_module;

typedef struct lw {
    lw_module *lm;
    hw_arena *arena;
    const ptx_function *f;
    hw_wir_builder b;
    const ptx_insn *i;
    const ptx_match *x;
    hw_wir_type t[PTX_MAX_TYPES]; /* of the match's types */
    uint32_t *blocks;             /* label -> block */
    uint32_t last;                /* the block a device function returns from */
    uint32_t first_temp;          /* registers below are PTX's (same index) and hidden ones */
    uint32_t carry;               /* I1: CC.CF */
    lw_place *places;             /* hash table by symbol; size place_mask + 1 */
    uint32_t place_mask;
    uint32_t frame_bytes; /* of .local variables and call-frame areas */
    hw_wir_val guard;     /* of the current instruction */
    bool guard_negated;
    hw_status status;
} lw;

/* ---- lower_value.c: operands ---- */
hw_status lw_fail(lw *l, const char *fmt, ...) HW_PRINTF(2, 3); /* unsupported, at l->i */
hw_wir_val lw_read(lw *l, const ptx_operand *o, ptx_type t);
hw_wir_val lw_source(lw *l, unsigned n); /* n-th source of the row, by its spec */
void lw_set(lw *l, const ptx_operand *o, ptx_type t, hw_wir_val v);
void lw_result(lw *l, hw_wir_val v);   /* to the row's first result */
void lw_effect(lw *l, hw_wir_insn *i); /* give it the guard */
hw_wir_val lw_temp(lw *l, hw_wir_type t);
hw_wir_val lw_fit(lw *l, hw_wir_val v, hw_wir_type from, hw_wir_type to, bool is_signed);
hw_wir_val lw_part(lw *l, hw_wir_val v, hw_wir_type from, unsigned bit, hw_wir_type to);
hw_wir_val lw_const(hw_wir_type t, uint64_t bits); /* masked to t */
hw_wir_val lw_symbol_address(lw *l, const ptx_symbol *s, int64_t offset);
hw_wir_val lw_nullary(lw *l, hw_wir_op op, hw_wir_type t, uint64_t imm);
hw_wir_val lw_cvt(lw *l, hw_wir_op op, hw_wir_type from, hw_wir_type to, hw_wir_val v);
/* A float operation with the instruction's rounding, .ftz, .sat and the like. */
hw_wir_val lw_float(lw *l, hw_wir_op op, hw_wir_type t, unsigned n, hw_wir_val a, hw_wir_val b,
                    hw_wir_val c);
hw_wir_insn *lw_last(lw *l); /* the instruction emitted last */
hw_wir_type lw_reg_type(const lw *l, uint32_t reg);
static inline bool lw_has(const lw *l, ptx_mod m)
{
    return ptx_bag_has(&l->x->mods, m);
}
static inline bool lw_signed(const lw *l, unsigned type)
{
    return hw_ptx_class(l->x->type[type]) == PTX_CL_SIGNED || l->x->type[type] == PTX_S16X2;
}
/* A destination register's value to give to an instruction that writes it directly, or a fresh one
 * of type t; *direct says which. */
hw_wir_val lw_target(lw *l, const ptx_operand *o, hw_wir_type t, bool *direct);

/* ---- lower_rows.c: the warp column ---- */
typedef void lw_row_fn(lw *l);
extern lw_row_fn *const lw_rows[PTX_ROW_COUNT];

/* ---- lower_int.c ---- */
hw_wir_val w_addc(lw *l, hw_wir_val a, hw_wir_val b, bool in, bool out);
hw_wir_val w_subc(lw *l, hw_wir_val a, hw_wir_val b, bool in, bool out);
hw_wir_val w_mulwide(lw *l, hw_wir_val a, hw_wir_val b);
hw_wir_val w_mul24(lw *l, hw_wir_val a, hw_wir_val b, bool high);
hw_wir_val w_absdiff(lw *l, hw_wir_val a, hw_wir_val b);
hw_wir_val w_bfind(lw *l, hw_wir_val a, bool shiftamt);
void w_fns(lw *l);
hw_wir_val w_bfi(lw *l, hw_wir_val a, hw_wir_val b, hw_wir_val c, hw_wir_val d);
hw_wir_val w_szext(lw *l, hw_wir_val a, hw_wir_val n, bool wrap);
hw_wir_val w_bmsk(lw *l, hw_wir_val a, hw_wir_val n, bool wrap);
hw_wir_val w_dp(lw *l, hw_wir_val a, hw_wir_val b, hw_wir_val c, unsigned part, unsigned first);
hw_wir_val w_bool(lw *l, hw_wir_val p, uint64_t yes, uint64_t no);
hw_wir_val w_lop3(lw *l);
void w_lop3_bool(lw *l);
hw_wir_val w_shf(lw *l, hw_wir_val a, hw_wir_val b, hw_wir_val c, bool left);
hw_wir_val w_prmt(lw *l, hw_wir_val a, hw_wir_val b, hw_wir_val c);

/* ---- lower_video.c ---- */
void w_video(lw *l);
void w_vmad(lw *l);
void w_video_simd(lw *l, unsigned lanes);

/* ---- lower_float.c ---- */
hw_wir_val w_mad_1x(lw *l, hw_wir_val a, hw_wir_val b, hw_wir_val c);
hw_wir_val w_approx64(lw *l, hw_wir_op op, hw_wir_val a);
hw_wir_val w_fma_oob(lw *l, hw_wir_val a, hw_wir_val b, hw_wir_val c);
hw_wir_val w_two(lw *l, hw_wir_op op, unsigned nsrc);
hw_wir_val w_testp(lw *l, hw_wir_val a);
hw_wir_val w_half_via_f32(lw *l, hw_wir_op op, hw_wir_val a);
hw_wir_val w_to_f32(lw *l, hw_wir_val a);
hw_wir_val w_set(lw *l);
void w_setp(lw *l);
hw_wir_val w_slct(lw *l, hw_wir_val a, hw_wir_val b, hw_wir_val c);

/* ---- lower_cvt.c ---- */
void w_mov(lw *l);
hw_wir_val w_cvt_ii(lw *l, hw_wir_val a);
hw_wir_val w_cvt_if(lw *l, hw_wir_val a);
hw_wir_val w_cvt_fi(lw *l, hw_wir_val a);
hw_wir_val w_cvt_same(lw *l, hw_wir_val a);
hw_wir_val w_cvt_ff(lw *l, hw_wir_val a);
hw_wir_val w_cvt_round(lw *l, hw_wir_val a);
hw_wir_val w_cvt_pack_half(lw *l, hw_wir_val a, hw_wir_val b);
hw_wir_val w_cvt_tf32(lw *l, hw_wir_val a);
hw_wir_val w_narrow_singles(lw *l, hw_wir_val a, hw_wir_val b);
hw_wir_val w_narrow_pair(lw *l, hw_wir_val a);
hw_wir_val w_widen(lw *l, hw_wir_val a);
void w_narrow_random(lw *l);
hw_wir_val w_cvt_pack(lw *l, hw_wir_val a, hw_wir_val b, hw_wir_val c);
hw_wir_val w_cvta(lw *l, hw_wir_val a, bool to);
hw_wir_val w_isspacep(lw *l);

/* ---- lower_mem.c ---- */
typedef struct lw_address {
    hw_wir_val base; /* I64; in shared memory I32 or I64 */
    uint64_t offset;
    hw_wir_space space;
} lw_address;
lw_address lw_find_address(lw *l, const ptx_operand *o, ptx_space space);
void w_ld(lw *l);
void w_st(lw *l);
void w_atom(lw *l);
void w_fence(lw *l);
void w_prefetch(lw *l);
void w_alloca(lw *l);
void w_stacksave(lw *l);
void w_stackrestore(lw *l);
void w_cp_async(lw *l);

hw_wir_atom lw_atom_of(const lw *l); /* of add, min ... and the first type */

/* ---- lower_async.c ---- */
/* An address operand as a generic address in a register; cluster: a register may name another block's memory. */
hw_wir_val lw_generic_address(lw *l, const ptx_operand *o, ptx_space space, bool cluster);
void w_mbarrier(lw *l, hw_mbar kind);
void w_mbarrier_arrive(lw *l, hw_mbar kind);
void w_mbarrier_wait(lw *l);
hw_wir_val w_mbarrier_pending(lw *l, hw_wir_val state);
void w_cp_mbarrier(lw *l);
void w_bulk(lw *l);
void w_st_bulk(lw *l);
void w_tensormap_copy(lw *l);
void w_tensor(lw *l);
void w_tensormap_replace(lw *l);
void w_try_cancel(lw *l);
void w_first_canceled(lw *l);
void w_st_async(lw *l);
void w_red_async(lw *l);

/* ---- lower_cluster.c ---- */
hw_wir_val lw_cluster_to_generic(lw *l, hw_wir_val offset, bool cluster);
hw_wir_val lw_in_even_block(lw *l, hw_wir_val generic);
hw_wir_val lw_cvta_cluster(lw *l, hw_wir_val a, bool to);
hw_wir_val lw_is_in_cluster(lw *l, hw_wir_val generic, hw_wir_val in_own);
hw_wir_val lw_cluster_sreg(lw *l, unsigned which, unsigned component); /* ptx_cluster_sreg */
hw_wir_val w_mapa(lw *l, hw_wir_val a, hw_wir_val rank);
hw_wir_val w_getctarank(lw *l, hw_wir_val a);

/* ---- lower_warp.c ---- */
void w_shfl(lw *l);
void w_vote(lw *l);
void w_match(lw *l);
void w_redux(lw *l);
void w_redux_float(lw *l);
void w_activemask(lw *l);
void w_elect(lw *l);
void w_barwarp(lw *l);
void w_bar(lw *l);
void w_cluster_barrier(lw *l);
void w_yield(lw *l);
void w_unsupported(lw *l);

/* ---- lower_tex.c ---- */
void w_tex(lw *l);
void w_tld4(lw *l);
void w_suld(lw *l);
void w_sust(lw *l);
void w_sured(lw *l);
void w_texture_query(lw *l);

/* ---- lower_matrix.c ---- */
void w_ldmatrix(lw *l);
void w_ldmatrix_bytes(lw *l);
void w_stmatrix(lw *l);
void w_stmatrix_bytes(lw *l);
void w_movmatrix(lw *l);
void w_wmma_load(lw *l);
void w_wmma_store(lw *l);

/* ---- lower_mma.c ---- */
void w_mma(lw *l);
void w_wmma_mma(lw *l);
void w_mma_quads(lw *l);
void w_mma_more(lw *l);
/* A list of n registers of some bits? Else it fails. */
bool lw_is_fragment(lw *l, const ptx_operand *o, uint32_t n, unsigned bits);
bool lw_are_sources(lw *l, const ptx_operand *o, uint32_t n, unsigned bits); /* or literals */
bool lw_are_results(lw *l, const ptx_operand *o, uint32_t n, unsigned bits); /* or '_' */
hw_wir_val lw_source_part(lw *l, const ptx_operand *o, uint32_t k, unsigned bits);
uint32_t lw_fragment_parts(const ptx_operand *o);
const ptx_operand *lw_fragment_part(const ptx_operand *o, uint32_t k);
bool lw_operands_are(lw *l, uint32_t least, uint32_t most); /* else it fails */
hw_mma lw_mma_shape(const lw *l);
uint8_t lw_mma_type(uint8_t t); /* ptx_type -> hw_mma_type */
unsigned lw_element_bits(uint8_t t);
/* Registers of a fragment of `count` elements: see helper MMA. */
uint32_t lw_fragment_size(const lw *l, uint32_t count, uint8_t type, bool is_factor);

/* ---- lower_wgmma.c ---- */
void w_wgmma(lw *l);
void w_wgmma_wait(lw *l);

/* ---- lower_tmem.c ---- */
void w_tmem_alloc(lw *l);
void w_tmem_free(lw *l);
void w_tmem_relinquish(lw *l);
void w_tmem_load(lw *l);
void w_tmem_store(lw *l);
void w_tmem_copy(lw *l);
void w_tmem_shift(lw *l);
void w_tmem_mma(lw *l);
void w_tmem_commit(lw *l);

/* ---- lower_call.c: functions, parameters, calls ---- */
void w_call(lw *l);
/* Registers and areas for the parameters and call-frame variables of l->f, before its body. */
void lw_declare_places(lw *l);
void lw_enter(lw *l);  /* at the beginning of the body: parameters that live in the frame */
void lw_return(lw *l); /* before a return: results that live in the frame */
const lw_place *lw_find_place(const lw *l, const ptx_symbol *s);
/* The warp-IR function of a device function (kernel = 0, the k-th of the link = 1 + k). */
uint32_t lw_function_id(const ptx_symbol *s);
/* v in a register: helpers and indirect calls take no immediates. */
hw_wir_val lw_in_register(lw *l, hw_wir_type t, hw_wir_val v);

#endif
