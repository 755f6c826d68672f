/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensor memory and its products (PTX ISA 9.7.16): helpers that act at once, so that fences and waits have nothing to do and a commit arrives
 * at its barrier. Only an allocation may have to wait: behind its helper stands a barrier of exec's own.
 */
#include "lower.h"

enum { REGISTERS_MOST = 128, MASKS_MOST = 8, SOURCES_MOST = 8 + MASKS_MOST };

/* ---- operands ---- */

static void call(lw *l, hw_wir_helper helper, const void *aux, uint32_t nd, const hw_wir_val *dst,
                 uint32_t ns, const hw_wir_val *src)
{
    if (l->status != HW_OK)
        return;
    hw_wir_insn *i = hw_wir_emit(&l->b, HW_W_HELPER, HW_T_NONE, nd, dst, ns, src);
    i->imm = helper;
    memcpy(&i->aux, aux, sizeof i->aux);
    lw_effect(l, i);
}

static hw_wir_val i32(lw *l, hw_wir_val v)
{
    return lw_in_register(l, HW_T_I32, v);
}

static hw_wir_val i64(lw *l, hw_wir_val v)
{
    return lw_in_register(l, HW_T_I64, v);
}

static bool is_register(const lw *l, const ptx_operand *o, unsigned bits)
{
    return o->kind == PTX_O_REG && ptx_types[l->f->regs.ptr[o->reg].type].bits == bits;
}

/* [register + offset] or [number], of 32 bits. */
static hw_wir_val cell(lw *l, const ptx_operand *o)
{
    const ptx_operand *base = o->kind == PTX_O_ADDRESS && o->nitems == 1 ? o->items : NULL;
    if (base && base->kind == PTX_O_INT)
        return i32(l, lw_const(HW_T_I32, base->bits));
    if (!base || !is_register(l, base, 32)) {
        lw_fail(l, "an address of tensor memory is expected");
        return hw_wir_imm(0);
    }
    hw_wir_val v = hw_wir_reg(base->reg);
    if (base->offset)
        v = hw_wir_op2(&l->b, HW_W_ADD, HW_T_I32, v, lw_const(HW_T_I32, (uint64_t)base->offset));
    return v;
}

static hw_wir_val descriptor(lw *l, const ptx_operand *o)
{
    if (o->kind != PTX_O_INT && !is_register(l, o, 64)) {
        lw_fail(l, "a matrix descriptor of 64 bits is expected");
        return hw_wir_imm(0);
    }
    return i64(l, lw_read(l, o, PTX_B64));
}

static uint8_t group(const lw *l)
{
    return lw_has(l, PTX_M_cta_group_2) ? 2 : 1;
}

static uint8_t first_of(const lw *l, const uint16_t *mods, uint8_t n)
{
    for (uint8_t k = 0; k < n; k++)
        if (lw_has(l, (ptx_mod)mods[k]))
            return k;
    return n;
}

static bool has_operands(lw *l, uint32_t n)
{
    if (l->i->nops != n)
        lw_fail(l, "%u operands where %u are expected", l->i->nops, n);
    return l->i->nops == n;
}

/* ---- allocation (9.7.16.7) ---- */

static void manage(lw *l, hw_tmem_what what, hw_wir_val where, hw_wir_val columns)
{
    uint64_t aux = what | (uint64_t)group(l) << HW_TMEM_GROUP;
    call(l, HW_H_TMEM, &aux, 0, NULL, 2, (hw_wir_val[]){ i64(l, where), i32(l, columns) });
}

void w_tmem_alloc(lw *l)
{
    hw_wir_val to = lw_generic_address(l, &l->i->ops[0], l->x->space, false);
    manage(l, HW_TMEM_ALLOC, to, lw_read(l, &l->i->ops[1], PTX_U32));
    hw_wir_val src[2] = { hw_wir_imm(HW_BARRIER_TMEM), hw_wir_imm(32) };
    lw_effect(l, hw_wir_emit(&l->b, HW_W_BARRIER, HW_T_NONE, 0, NULL, 2, src));
}

void w_tmem_free(lw *l)
{
    hw_wir_val from = lw_fit(l, lw_read(l, &l->i->ops[0], PTX_U32), HW_T_I32, HW_T_I64, false);
    manage(l, HW_TMEM_FREE, from, lw_read(l, &l->i->ops[1], PTX_U32));
}

void w_tmem_relinquish(lw *l)
{
    manage(l, HW_TMEM_RELINQUISH, hw_wir_imm(0), hw_wir_imm(0));
}

/* ---- registers (9.7.16.8) ---- */

/* Shape and repeat to what a thread has; two halves have a distance. */
static bool movement(lw *l, hw_tmem_move *m)
{
    static const uint16_t shapes[] = { PTX_M_tm32x32, PTX_M_tm16x64, PTX_M_tm16x128, PTX_M_tm16x256,
                                       PTX_M_tm16x32x2 };
    static const uint16_t times[] = { PTX_M_x1,  PTX_M_x2,  PTX_M_x4,  PTX_M_x8,
                                      PTX_M_x16, PTX_M_x32, PTX_M_x64, PTX_M_x128 };
    static const uint8_t registers[] = { 1, 1, 2, 4, 1 };
    m->shape = first_of(l, shapes, HW_COUNTOF(shapes));
    unsigned n = (unsigned)registers[m->shape] << first_of(l, times, HW_COUNTOF(times));
    m->registers = (uint16_t)n;
    if (n > REGISTERS_MOST)
        lw_fail(l, "this shape is not repeated so often");
    return n <= REGISTERS_MOST;
}

static bool second_half(lw *l, const ptx_operand *o, hw_tmem_move *m)
{
    m->second = (int32_t)o->bits;
    if (o->kind != PTX_O_INT)
        lw_fail(l, "a literal is expected, the distance of the second half");
    return o->kind == PTX_O_INT;
}

static uint8_t reduction(const lw *l)
{
    if (!lw_has(l, PTX_M_red))
        return 0;
    unsigned type = l->x->type[0] == PTX_F32   ? HW_TMEM_FLOAT
                    : l->x->type[0] == PTX_S32 ? HW_TMEM_SIGNED
                                               : 0;
    return (uint8_t)(HW_TMEM_REDUCED | type | (lw_has(l, PTX_M_max) ? HW_TMEM_MAX : 0) |
                     (lw_has(l, PTX_M_abs) ? HW_TMEM_ABS : 0) |
                     (lw_has(l, PTX_M_NaN) ? HW_TMEM_NAN : 0));
}

/* registers {, reduction}, [address] {, distance} */
void w_tmem_load(lw *l)
{
    const ptx_operand *o = l->i->ops;
    hw_tmem_move m = { .flags = reduction(l) };
    m.flags |= lw_has(l, PTX_M_pack_16b) ? HW_TMEM_PACKED : 0;
    if (!movement(l, &m))
        return;
    uint32_t reduced = m.flags & HW_TMEM_REDUCED ? 1 : 0, halves = m.shape == HW_TMEM_16X32X2;
    if (!has_operands(l, 2 + reduced + halves) || !lw_is_fragment(l, &o[0], m.registers, 32) ||
        (reduced && !lw_is_fragment(l, &o[1], 1, 32)) ||
        (halves && !second_half(l, &o[2 + reduced], &m)))
        return;
    hw_wir_val src = cell(l, &o[1 + reduced]), dst[REGISTERS_MOST + 1];
    uint32_t n = 0;
    if (o[0].kind == PTX_O_VECTOR)
        for (; n < m.registers; n++)
            dst[n] = hw_wir_reg(o[0].items[n].reg);
    else
        dst[n++] = hw_wir_reg(o[0].reg);
    if (reduced)
        dst[n++] = hw_wir_reg(o[1].reg);
    call(l, HW_H_TMEM_LOAD, &m, n, dst, 1, &src);
}

/* [address] {, distance}, registers */
void w_tmem_store(lw *l)
{
    const ptx_operand *o = l->i->ops;
    hw_tmem_move m = { .flags = lw_has(l, PTX_M_unpack_16b) ? HW_TMEM_PACKED : 0 };
    if (!movement(l, &m))
        return;
    uint32_t halves = m.shape == HW_TMEM_16X32X2;
    if (!has_operands(l, 2 + halves) || (halves && !second_half(l, &o[1], &m)))
        return;
    const ptx_operand *list = &o[1 + halves];
    uint32_t n = list->kind == PTX_O_VECTOR ? list->nitems : 1;
    if (n != m.registers) {
        lw_fail(l, "a list of %u registers is expected", m.registers);
        return;
    }
    hw_wir_val src[1 + REGISTERS_MOST] = { cell(l, &o[0]) };
    for (uint32_t k = 0; k < n; k++)
        src[1 + k] =
            i32(l, lw_read(l, list->kind == PTX_O_VECTOR ? &list->items[k] : list, PTX_B32));
    call(l, HW_H_TMEM_STORE, &m, 0, NULL, 1 + n, src);
}

/* ---- inside tensor memory (9.7.16.9) ---- */

void w_tmem_copy(lw *l)
{
    static const uint16_t shapes[] = { PTX_M_cp128x256,    PTX_M_cp128x128, PTX_M_warpx2_02_13,
                                       PTX_M_warpx2_01_23, PTX_M_warpx4,    PTX_M_cp4x256 };
    static const hw_tmem_copy copies[] = {
        { HW_TMEM_ROWS_128, 2, 0, 0, { 0 } },   { HW_TMEM_ROWS_128, 1, 0, 0, { 0 } },
        { HW_TMEM_ROWS_64_02, 1, 0, 0, { 0 } }, { HW_TMEM_ROWS_64_01, 1, 0, 0, { 0 } },
        { HW_TMEM_ROWS_32, 1, 0, 0, { 0 } },    { HW_TMEM_ROWS_4, 2, 0, 0, { 0 } },
    };
    static const uint16_t formats[] = { PTX_M_b6x16_p32, PTX_M_b4x16_p64 };
    static const uint8_t bits[] = { HW_TMEM_FROM_6_BITS, HW_TMEM_FROM_4_BITS, HW_TMEM_AS_IS };
    if (!has_operands(l, 2))
        return;
    hw_tmem_copy c = copies[first_of(l, shapes, HW_COUNTOF(shapes))];
    c.bits = bits[first_of(l, formats, HW_COUNTOF(formats))];
    c.group = group(l);
    if ((c.bits != HW_TMEM_AS_IS) != lw_has(l, PTX_M_b8x16)) {
        lw_fail(l, ".b8x16 and the format that it is made from go together");
        return;
    }
    hw_wir_val to = cell(l, &l->i->ops[0]), from = descriptor(l, &l->i->ops[1]);
    call(l, HW_H_TMEM_COPY, &c, 0, NULL, 2, (hw_wir_val[]){ to, from });
}

void w_tmem_shift(lw *l)
{
    uint64_t aux = group(l);
    if (!has_operands(l, 1))
        return;
    hw_wir_val at = cell(l, &l->i->ops[0]);
    call(l, HW_H_TMEM_SHIFT, &aux, 0, NULL, 1, &at);
}

/* ---- products (9.7.16.10) ---- */

typedef struct operands { /* those of a product, in turn */
    lw *l;
    uint32_t next, nsrc;
    hw_wir_val src[SOURCES_MOST];
} operands;

static const ptx_operand *peek(const operands *t)
{
    return t->next < t->l->i->nops ? &t->l->i->ops[t->next] : NULL;
}

static const ptx_operand *take(operands *t)
{
    static const ptx_operand none = { .kind = PTX_O_SINK };
    const ptx_operand *o = peek(t);
    if (!o)
        lw_fail(t->l, "an operand is missing");
    t->next++;
    return o ? o : &none;
}

static void put(operands *t, hw_wir_val v)
{
    if (t->nsrc < SOURCES_MOST)
        t->src[t->nsrc++] = v;
}

static void take_a(operands *t, hw_tmem_mma *m)
{
    lw *l = t->l;
    const ptx_operand *o = take(t);
    if (o->kind != PTX_O_ADDRESS) {
        put(t, descriptor(l, o));
        return;
    }
    m->flags |= HW_TMEM_A_CELLS;
    put(t, i64(l, lw_fit(l, cell(l, o), HW_T_I32, HW_T_I64, false)));
}

static void take_u32(operands *t)
{
    const ptx_operand *o = take(t);
    if (o->kind != PTX_O_INT && !is_register(t->l, o, 32))
        lw_fail(t->l, "a number of 32 bits is expected");
    else
        put(t, i32(t->l, lw_read(t->l, o, PTX_U32)));
}

static void take_predicate(operands *t)
{
    lw *l = t->l;
    const ptx_operand *o = take(t);
    if (o->kind == PTX_O_INT || is_register(l, o, 1))
        put(t, lw_in_register(l, HW_T_I1, lw_read(l, o, PTX_PRED)));
    else
        lw_fail(l, "a predicate is expected");
}

/* {masks}, before the predicate: kept back, as it comes last. */
static const ptx_operand *take_disabled(operands *t, hw_tmem_mma *m)
{
    const ptx_operand *o = peek(t);
    if (m->flags & (HW_TMEM_SCALED | HW_TMEM_WS) || !o || o->kind != PTX_O_VECTOR)
        return NULL;
    if (o->nitems != 4u * m->group) {
        lw_fail(t->l, "a mask of lanes of %u words is expected", 4u * m->group);
        return NULL;
    }
    t->next++;
    m->flags |= HW_TMEM_DISABLE;
    return o;
}

/* What may follow: a literal, or a descriptor of columns. */
static void take_rest(operands *t, hw_tmem_mma *m)
{
    lw *l = t->l;
    const ptx_operand *o = peek(t);
    if (!o)
        return;
    t->next++;
    if (m->flags & HW_TMEM_WS) {
        m->flags |= HW_TMEM_ZERO_MASK;
        put(t, descriptor(l, o));
    } else if (m->kind > HW_TMEM_TF32 || o->kind != PTX_O_INT || o->bits > 15) {
        lw_fail(l, "a scale of D is a literal from 0 to 15, of .kind::f16 and .kind::tf32");
    } else {
        m->scale_d = (uint8_t)o->bits;
    }
    if (peek(t))
        lw_fail(l, "too many operands");
}

/* Elements of k that share a scale. */
static uint8_t block_of(lw *l, hw_tmem_kind kind)
{
    static const uint16_t mods[] = { PTX_M_block16, PTX_M_block32, PTX_M_scale_vec_1,
                                     PTX_M_scale_vec_2, PTX_M_scale_vec_4 };
    static const uint8_t blocks[] = { 16, 32, 32, 32, 16, 32 };
    uint8_t which = first_of(l, mods, HW_COUNTOF(mods)), block = blocks[which];
    bool one = which == 2, two = which == 3, none = which == HW_COUNTOF(mods);
    if ((one && kind != HW_TMEM_MXF8F6F4) || (two && kind == HW_TMEM_MXF8F6F4) ||
        ((block == 16 || none) && kind == HW_TMEM_MXF8F6F4 && !none) ||
        (block == 16 && kind != HW_TMEM_MXF4NVF4) || (none && kind == HW_TMEM_MXF4NVF4))
        lw_fail(l, "this kind does not go with these blocks of scales");
    return block;
}

static uint8_t flags_of(const lw *l)
{
    return (uint8_t)((lw_has(l, PTX_M_ws) ? HW_TMEM_WS : 0) |
                     (lw_has(l, PTX_M_sp) ? HW_TMEM_SPARSE : 0) |
                     (lw_has(l, PTX_M_block_scale) ? HW_TMEM_SCALED : 0) |
                     (lw_has(l, PTX_M_ashift) ? HW_TMEM_A_SHIFTED : 0));
}

void w_tmem_mma(lw *l)
{
    static const uint16_t kinds[] = { PTX_M_kind_f16,     PTX_M_kind_tf32,     PTX_M_kind_f8f6f4,
                                      PTX_M_kind_i8,      PTX_M_kind_mxf8f6f4, PTX_M_kind_mxf4,
                                      PTX_M_kind_mxf4nvf4 };
    hw_tmem_mma m = { .kind = first_of(l, kinds, HW_COUNTOF(kinds)),
                      .flags = flags_of(l),
                      .group = group(l) };
    if (m.flags & HW_TMEM_SCALED)
        m.block = block_of(l, (hw_tmem_kind)m.kind);
    operands t = { .l = l };
    hw_wir_val extra[3];
    uint32_t nextra = 0;
    put(&t, cell(l, take(&t)));
    take_a(&t, &m);
    put(&t, descriptor(l, take(&t)));
    if (m.flags & HW_TMEM_SPARSE)
        extra[nextra++] = cell(l, take(&t));
    take_u32(&t);
    for (int k = 0; k < 2 && m.flags & HW_TMEM_SCALED; k++)
        extra[nextra++] = cell(l, take(&t));
    const ptx_operand *disabled = take_disabled(&t, &m);
    take_predicate(&t);
    for (uint32_t k = 0; k < nextra; k++)
        put(&t, extra[k]);
    take_rest(&t, &m);
    for (uint32_t k = 0; disabled && k < disabled->nitems; k++)
        put(&t, i32(l, lw_read(l, &disabled->items[k], PTX_B32)));
    if (m.flags & HW_TMEM_A_SHIFTED && !(m.flags & HW_TMEM_A_CELLS))
        lw_fail(l, ".ashift is for a matrix A in tensor memory");
    call(l, HW_H_TMEM_MMA, &m, 0, NULL, t.nsrc, t.src);
}

/* [mbarrier] {, mask of blocks} */
void w_tmem_commit(lw *l)
{
    const ptx_operand *o = l->i->ops;
    bool all = lw_has(l, PTX_M_multicast_cluster);
    if (!has_operands(l, all ? 2 : 1))
        return;
    uint64_t aux = (all ? HW_TMEM_MULTICAST : 0) | (uint64_t)group(l) << HW_TMEM_GROUP;
    hw_wir_val at = lw_generic_address(l, &o[0], l->x->space, lw_has(l, PTX_M_shared_cluster));
    hw_wir_val mask =
        all ? lw_fit(l, lw_read(l, &o[1], PTX_U16), HW_T_I16, HW_T_I32, false) : hw_wir_imm(0);
    call(l, HW_H_TMEM_COMMIT, &aux, 0, NULL, 2, (hw_wir_val[]){ at, i32(l, mask) });
}
