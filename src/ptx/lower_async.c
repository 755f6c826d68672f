/* SPDX-License-Identifier: Apache-2.0
 *
 * Transaction barriers and asynchronous copies (PTX ISA 9.7.9.25, 9.7.13.15): helpers that act at once. A copy that is complete when
 * its instruction is done is one that the manual allows, so groups have nothing to wait for and a barrier is told its bytes at the copy.
 */
#include "lower.h"

/* ---- addresses of the cluster's shared memory (lower_cluster.c) as generic ones ---- */

/* The only instruction that writes a register; NULL: none, or several. */
static const ptx_insn *writer_of(const lw *l, uint32_t reg)
{
    const ptx_insn *found = NULL;
    for (size_t k = 0; k < l->f->insns.len; k++) {
        const ptx_insn *i = &l->f->insns.ptr[k];
        if (!i->nops || i->ops[0].kind != PTX_O_REG || i->ops[0].reg != reg)
            continue;
        if (found)
            return NULL;
        found = i;
    }
    return found;
}

/* Has an address had bit 24 taken away? On devices with pairs of blocks that is how programs name the even one's memory: there addresses of
 * a block's own shared memory have its rank in that place. */
static bool names_even_block(const lw *l, const ptx_operand *o)
{
    const uint64_t most = UINT64_C(0xfe000000), lowest = UINT64_C(0x01000000);
    const ptx_operand *base = o->kind == PTX_O_ADDRESS ? &o->items[0] : o;
    for (int depth = 0; depth < 4 && base->kind == PTX_O_REG; depth++) {
        const ptx_insn *i = writer_of(l, base->reg);
        if (!i || i->nops < 2)
            return false;
        bool number = i->nops == 3 && i->ops[2].kind == PTX_O_INT;
        if (number && hw_str_eq(i->opcode, HW_STR("and")))
            return (i->ops[2].bits & (most | lowest)) == most;
        if (!(number && hw_str_eq(i->opcode, HW_STR("add"))) &&
            !hw_str_eq(i->opcode, HW_STR("mov")))
            return false;
        base = &i->ops[1];
    }
    return false;
}

hw_wir_val lw_generic_address(lw *l, const ptx_operand *o, ptx_space space, bool cluster)
{
    lw_address a = lw_find_address(l, o, space);
    hw_wir_val v = a.base;
    if (a.space != HW_SPACE_SHARED) {
        if (a.offset)
            v = hw_wir_op2(&l->b, HW_W_ADD, HW_T_I64, v, hw_wir_imm(a.offset));
        return lw_in_register(l, HW_T_I64, v);
    }
    hw_wir_type t = v.kind == HW_V_REG ? lw_reg_type(l, v.reg) : HW_T_I32;
    if (v.kind == HW_V_IMM)
        v = lw_const(t, v.imm + a.offset);
    else if (a.offset)
        v = hw_wir_op2(&l->b, HW_W_ADD, t, v, lw_const(t, a.offset));
    v = lw_fit(l, v, t, HW_T_I64, false);
    bool even = cluster && v.kind == HW_V_REG && names_even_block(l, o);
    v = lw_cluster_to_generic(l, v, cluster && v.kind == HW_V_REG);
    return even ? lw_in_even_block(l, v) : v;
}

/* ---- calls ---- */

static void call(lw *l, hw_wir_helper helper, uint64_t aux, hw_wir_val dst, uint32_t n,
                 const hw_wir_val *src)
{
    bool some = dst.kind == HW_V_REG;
    hw_wir_insn *i = hw_wir_emit(&l->b, HW_W_HELPER, HW_T_I64, some, &dst, n, src);
    i->imm = helper;
    i->aux = aux;
    lw_effect(l, i);
}

static hw_wir_val u32(lw *l, uint64_t x)
{
    return lw_in_register(l, HW_T_I32, hw_wir_imm(x));
}

static hw_wir_val read32(lw *l, const ptx_operand *o)
{
    return lw_in_register(l, HW_T_I32, lw_read(l, o, PTX_U32));
}

/* ---- mbarrier ---- */

static hw_wir_val barrier_address(lw *l, const ptx_operand *o)
{
    return lw_generic_address(l, o, l->x->space, lw_has(l, PTX_M_shared_cluster));
}

static void change(lw *l, hw_mbar kind, hw_wir_val dst, hw_wir_val at, hw_wir_val count,
                   hw_wir_val bytes)
{
    call(l, HW_H_MBARRIER, kind, dst, 3, (hw_wir_val[]){ at, count, bytes });
}

static void complete(lw *l, hw_wir_val at, uint64_t bytes)
{
    change(l, HW_MBAR_COMPLETE, HW_WIR_NONE, at, u32(l, 0), u32(l, bytes));
}

/* init, inval, expect_tx, complete_tx: [address] and perhaps a number. */
void w_mbarrier(lw *l, hw_mbar kind)
{
    hw_wir_val at = barrier_address(l, &l->i->ops[0]);
    hw_wir_val n = l->i->nops > 1 ? read32(l, &l->i->ops[1]) : u32(l, 0);
    change(l, kind, HW_WIR_NONE, at, n, n);
}

/* arrive and arrive_drop: the state before, or '_'. */
void w_mbarrier_arrive(lw *l, hw_mbar kind)
{
    const ptx_operand *o = l->i->ops;
    bool direct = true, expects = lw_has(l, PTX_M_expect_tx);
    hw_wir_val at = barrier_address(l, &o[1]), one = u32(l, 1), none = u32(l, 0);
    hw_wir_val n = l->i->nops > 2 ? read32(l, &o[2]) : one;
    hw_wir_val dst = lw_target(l, &o[0], HW_T_I64, &direct);
    change(l, kind, dst, at, expects ? one : n, expects ? n : none);
    if (!direct)
        lw_set(l, &o[0], PTX_B64, dst);
}

void w_mbarrier_wait(lw *l)
{
    const ptx_operand *o = l->i->ops;
    bool parity = lw_has(l, PTX_M_parity);
    hw_wir_val at = barrier_address(l, &o[1]);
    hw_wir_val phase =
        parity ? read32(l, &o[2]) : lw_in_register(l, HW_T_I64, lw_read(l, &o[2], PTX_B64));
    hw_wir_val dst = o[0].kind == PTX_O_REG ? hw_wir_reg(o[0].reg) : HW_WIR_NONE;
    call(l, HW_H_MBARRIER_WAIT, parity ? HW_MBAR_PARITY : 0, dst, 2, (hw_wir_val[]){ at, phase });
}

/* The state's lowest twenty bits (exec's mbarrier.c has the whole). */
hw_wir_val w_mbarrier_pending(lw *l, hw_wir_val state)
{
    state = hw_wir_op2(&l->b, HW_W_AND, HW_T_I64, state, hw_wir_imm(HW_MBAR_COUNT_MOST));
    return lw_fit(l, state, HW_T_I64, HW_T_I32, false);
}

void w_cp_mbarrier(lw *l)
{
    hw_wir_val at = barrier_address(l, &l->i->ops[0]);
    change(l, lw_has(l, PTX_M_noinc) ? HW_MBAR_ARRIVE : HW_MBAR_TRACK, HW_WIR_NONE, at, u32(l, 1),
           u32(l, 0));
}

/* ---- bulk copies ---- */

/* What follows the operands that all forms have: masks, which have 16 bits, and cache policies, which have 64. */
static hw_wir_val mask_of(lw *l, uint32_t from, uint64_t flag, uint64_t *aux)
{
    static const uint8_t with_mask[] = { PTX_M_multicast_cluster, PTX_M_cp_mask };
    bool some = false;
    for (size_t k = 0; k < HW_COUNTOF(with_mask); k++)
        some |= lw_has(l, with_mask[k]);
    if (!some)
        return u32(l, 0);
    /* the byte mask stands behind the policy, the mask of blocks before it */
    uint32_t at = from + (lw_has(l, PTX_M_cp_mask) && lw_has(l, PTX_M_L2_cache_hint));
    if (at >= l->i->nops) {
        lw_fail(l, "a mask of 16 bits is expected");
        return u32(l, 0);
    }
    *aux |= flag;
    return lw_in_register(
        l, HW_T_I32, lw_fit(l, lw_read(l, &l->i->ops[at], PTX_U16), HW_T_I16, HW_T_I32, false));
}

static uint64_t reduction(lw *l)
{
    if (l->x->boolop == PTX_M_NONE)
        return 0;
    hw_wir_type t = ptx_wir_type(l->x->type[0]);
    return HW_BULK_REDUCE | (uint64_t)lw_atom_of(l) << HW_BULK_OPERATION |
           (uint64_t)t << HW_BULK_TYPE;
}

void w_bulk(lw *l)
{
    const ptx_operand *o = l->i->ops;
    bool to_global = lw_has(l, PTX_M_bulk_group), from_shared = to_global;
    bool to_cluster = lw_has(l, PTX_M_shared_cluster);
    from_shared |= to_cluster && lw_has(l, PTX_M_shared_cta);
    uint64_t aux = reduction(l);
    hw_wir_val src[5];
    src[0] =
        lw_generic_address(l, &o[0], to_global ? PTX_SPACE_GLOBAL : PTX_SPACE_SHARED, to_cluster);
    src[1] = lw_generic_address(l, &o[1], from_shared ? PTX_SPACE_SHARED : PTX_SPACE_GLOBAL, false);
    src[2] = read32(l, &o[2]);
    if (to_global) {
        src[3] = src[0];
        src[4] = mask_of(l, 3, HW_BULK_MASK, &aux);
    } else {
        aux |= HW_BULK_MBARRIER;
        src[3] = lw_generic_address(l, &o[3], PTX_SPACE_SHARED, to_cluster);
        src[4] = mask_of(l, 4, HW_BULK_MULTICAST, &aux);
    }
    call(l, HW_H_BULK, aux, HW_WIR_NONE, 5, src);
}

/* st.bulk stores zeros, the only value there is. */
void w_st_bulk(lw *l)
{
    const ptx_operand *o = l->i->ops;
    if (l->i->nops > 2 && o[2].bits) {
        lw_fail(l, "st.bulk stores 0");
        return;
    }
    hw_wir_val to = lw_generic_address(l, &o[0], l->x->space, false);
    hw_wir_val n = lw_fit(l, lw_read(l, &o[1], PTX_U64), HW_T_I64, HW_T_I32, false);
    call(l, HW_H_BULK, HW_BULK_FILL, HW_WIR_NONE, 5,
         (hw_wir_val[]){ to, to, lw_in_register(l, HW_T_I32, n), to, u32(l, 0) });
}

/* A tensor map that is copied: 128 bytes by a whole warp, each lane the same. */
void w_tensormap_copy(lw *l)
{
    const ptx_operand *o = l->i->ops;
    hw_wir_val to = lw_generic_address(l, &o[0], PTX_SPACE_GLOBAL, false);
    hw_wir_val from = lw_generic_address(l, &o[1], PTX_SPACE_SHARED, false);
    call(l, HW_H_BULK, 0, HW_WIR_NONE, 5, (hw_wir_val[]){ to, from, u32(l, 128), to, u32(l, 0) });
}

/* ---- st.async, red.async: a plain access, then the bytes are told ---- */

static void tell_bytes(lw *l, const ptx_operand *barrier)
{
    if (lw_has(l, PTX_M_mbarrier_complete_tx_bytes))
        complete(l, lw_generic_address(l, barrier, l->x->space, true),
                 hw_wir_bits(l->t[0]) / 8 * l->x->vec);
}

static hw_wir_val async_target(lw *l)
{
    return lw_generic_address(l, &l->i->ops[0], l->x->space, true);
}

void w_st_async(lw *l)
{
    const ptx_operand *v = &l->i->ops[1];
    hw_wir_val src[5] = { async_target(l) };
    for (unsigned k = 0; k < l->x->vec; k++)
        src[1 + k] = lw_read(l, v->kind == PTX_O_VECTOR ? &v->items[k] : v, l->x->type[0]);
    hw_wir_insn *i = hw_wir_emit(&l->b, HW_W_STORE, l->t[0], 0, NULL, 1u + l->x->vec, src);
    i->space = HW_SPACE_GENERIC;
    i->count = l->x->vec;
    i->flags |= HW_I_VOLATILE | (lw_has(l, PTX_M_release) ? HW_I_RELEASE : 0u);
    i->scope = l->x->scope;
    lw_effect(l, i);
    tell_bytes(l, &l->i->ops[2]);
}

void w_red_async(lw *l)
{
    hw_wir_val src[2] = { async_target(l), lw_read(l, &l->i->ops[1], l->x->type[0]) };
    hw_wir_insn *i = hw_wir_emit(&l->b, HW_W_RED, l->t[0], 0, NULL, 2, src);
    i->space = HW_SPACE_GENERIC;
    i->atom = lw_atom_of(l);
    i->flags |= HW_I_VOLATILE | (lw_has(l, PTX_M_release) ? HW_I_RELEASE : 0u);
    i->scope = l->x->scope;
    lw_effect(l, i);
    tell_bytes(l, &l->i->ops[2]);
}

/* ---- tensors: [map, {coordinates}] (9.7.9.27) ---- */

static unsigned dimensions(const lw *l)
{
    static const uint8_t words[] = { PTX_M_d1, PTX_M_d2, PTX_M_d3, PTX_M_d4, PTX_M_d5 };
    for (unsigned k = 0; k < HW_COUNTOF(words); k++)
        if (lw_has(l, words[k]))
            return k + 1;
    return 1;
}

static hw_tensor_mode mode_of(const lw *l)
{
    bool gathers = lw_has(l, PTX_M_tile_gather4) || lw_has(l, PTX_M_tile_scatter4);
    bool im2col = lw_has(l, PTX_M_im2col) || lw_has(l, PTX_M_im2col_no_offs);
    return gathers ? HW_TENSOR_GATHER : im2col ? HW_TENSOR_IM2COL : HW_TENSOR_TILE;
}

/* {x, y ...} into registers from src[4] on; gather4 has a column and four rows. */
static bool coordinates(lw *l, const ptx_operand *o, unsigned n, hw_wir_val *src)
{
    const ptx_operand *list = o->kind == PTX_O_ADDRESS && o->nitems == 2 ? &o->items[1] : NULL;
    uint32_t parts = !list ? 0 : list->kind == PTX_O_VECTOR ? list->nitems : 1;
    if (parts != n) {
        lw_fail(l, "a tensor and %u coordinates are expected", n);
        return false;
    }
    for (unsigned k = 0; k < n; k++)
        src[k] = read32(l, list->kind == PTX_O_VECTOR ? &list->items[k] : list);
    return l->status == HW_OK;
}

/* {width, height, depth} of im2col, of 16 bits each, from operand `at` on; 0: none is written. */
static bool offsets(lw *l, uint32_t at, uint32_t n, hw_wir_val *src)
{
    const ptx_operand *o = at && at < l->i->nops ? &l->i->ops[at] : NULL;
    if (at && (!o || lw_fragment_parts(o) != n)) {
        lw_fail(l, "%u im2col offsets are expected", n);
        return false;
    }
    for (uint32_t k = 0; k < n; k++) {
        hw_wir_val v = o ? lw_read(l, lw_fragment_part(o, k), PTX_U16) : hw_wir_imm(0);
        src[k] = lw_in_register(l, HW_T_I32, o ? lw_fit(l, v, HW_T_I16, HW_T_I32, false) : v);
    }
    return l->status == HW_OK;
}

void w_tensor(lw *l)
{
    const ptx_operand *o = l->i->ops;
    bool store = lw_has(l, PTX_M_bulk_group), cluster = lw_has(l, PTX_M_shared_cluster);
    unsigned n = mode_of(l) == HW_TENSOR_GATHER ? 5 : dimensions(l);
    uint64_t aux = store ? HW_BULK_STORE : HW_BULK_MBARRIER;
    if (lw_has(l, PTX_M_im2col_w) || lw_has(l, PTX_M_im2col_w_128)) {
        w_unsupported(l);
        return;
    }
    const ptx_operand *map = store ? &o[0] : &o[1];
    hw_wir_val src[12];
    uint32_t noffsets = mode_of(l) == HW_TENSOR_IM2COL ? n - 2 : 0;
    if (!coordinates(l, map, n, src + 4))
        return;
    src[0] = lw_generic_address(l, store ? &o[1] : &o[0], PTX_SPACE_SHARED, cluster);
    src[1] = lw_generic_address(l, map, PTX_SPACE_NONE, false);
    src[2] = store ? src[0] : lw_generic_address(l, &o[2], PTX_SPACE_SHARED, cluster);
    src[3] = mask_of(l, lw_has(l, PTX_M_im2col) ? 4 : 3, HW_BULK_MULTICAST, &aux);
    if (!offsets(l, lw_has(l, PTX_M_im2col) ? 3 : 0, noffsets, src + 4 + n))
        return;
    if (lw_has(l, PTX_M_cta_group_2))
        aux |= HW_BULK_PAIRS;
    if (l->x->boolop != PTX_M_NONE) /* the map has the type */
        aux |= HW_BULK_REDUCE | (uint64_t)lw_atom_of(l) << HW_BULK_OPERATION;
    aux |= (uint64_t)n << HW_TENSOR_DIMENSIONS | (uint64_t)mode_of(l) << HW_TENSOR_MODE;
    call(l, HW_H_TENSOR, aux, HW_WIR_NONE, 4 + n + noffsets, src);
}

/* tensormap.replace: [map] {, which of several}, value. */
void w_tensormap_replace(lw *l)
{
    static const struct {
        uint8_t mod, field;
        bool ordinal;
    } fields[] = {
        { PTX_M_global_address, HW_TENSOR_FIELD_ADDRESS, false },
        { PTX_M_rank, HW_TENSOR_FIELD_RANK, false },
        { PTX_M_box_dim, HW_TENSOR_FIELD_BOX, true },
        { PTX_M_global_dim, HW_TENSOR_FIELD_SIZE, true },
        { PTX_M_global_stride, HW_TENSOR_FIELD_STRIDE, true },
        { PTX_M_element_stride, HW_TENSOR_FIELD_STEP, true },
        { PTX_M_elemtype, HW_TENSOR_FIELD_TYPE, false },
        { PTX_M_interleave_layout, HW_TENSOR_FIELD_INTERLEAVE, false },
        { PTX_M_swizzle_mode, HW_TENSOR_FIELD_SWIZZLE, false },
        { PTX_M_swizzle_atomicity, HW_TENSOR_FIELD_ATOMICITY, false },
        { PTX_M_fill_mode, HW_TENSOR_FIELD_FILL, false },
    };
    const ptx_operand *o = l->i->ops;
    hw_wir_val at = lw_generic_address(l, &o[0], l->x->space, false);
    for (size_t k = 0; k < HW_COUNTOF(fields); k++) {
        if (!lw_has(l, fields[k].mod))
            continue;
        hw_wir_val v = lw_read(l, &o[l->i->nops - 1], l->x->type[l->x->ntypes - 1]);
        v = lw_in_register(l, HW_T_I64, lw_fit(l, v, l->t[l->x->ntypes - 1], HW_T_I64, false));
        hw_wir_val which = fields[k].ordinal ? read32(l, &o[1]) : u32(l, 0);
        call(l, HW_H_TENSORMAP, fields[k].field, HW_WIR_NONE, 3, (hw_wir_val[]){ at, which, v });
        return;
    }
}

/* ---- clusterlaunchcontrol (9.7.13.17): every block is started, so none is ever there to be cancelled ---- */

/* The answer, 16 bytes of zeros, in this block or in each of the cluster. */
void w_try_cancel(lw *l)
{
    const ptx_operand *o = l->i->ops;
    bool all = lw_has(l, PTX_M_multicast_all);
    hw_wir_val to = lw_generic_address(l, &o[0], l->x->space, false);
    hw_wir_val bar = lw_generic_address(l, &o[1], l->x->space, false);
    uint64_t aux = HW_BULK_FILL | HW_BULK_MBARRIER;
    hw_wir_val mask = u32(l, 0);
    if (all) {
        aux |= HW_BULK_MULTICAST;
        hw_wir_val n = lw_cluster_sreg(l, LW_CLUSTER_NRANK, 0);
        mask = hw_wir_op2(&l->b, HW_W_SHL, HW_T_I32, hw_wir_imm(1), n);
        mask = hw_wir_op2(&l->b, HW_W_SUB, HW_T_I32, mask, hw_wir_imm(1));
    }
    call(l, HW_H_BULK, aux, HW_WIR_NONE, 5, (hw_wir_val[]){ to, to, u32(l, 16), bar, mask });
}

/* Undefined unless a launch was cancelled. */
void w_first_canceled(lw *l)
{
    const ptx_operand *d = &l->i->ops[0];
    for (uint32_t k = 0; d->kind == PTX_O_VECTOR && k < d->nitems; k++)
        lw_set(l, &d->items[k], PTX_B32, hw_wir_imm(0));
}
