/* SPDX-License-Identifier: Apache-2.0
 * Matrix instructions (PTX ISA 9.7.14): ldmatrix, stmatrix, movmatrix, mma and wmma.
 *
 * Products are a helper's (MMA). wmma's fragments are opaque in PTX; here they are those of mma (helper
 * MMA says how), as in the machine code of devices since 7.5, and so their accesses to memory are
 * theirs: a register of each lane at a time, pairs of accumulators at once. Where elements that share
 * a register are not neighbours in memory, 8 x 8 matrices are read as they stand and transposed
 * between the lanes. To shared memory a whole fragment is one access, as ldmatrix's matrices are. */
#include "lower.h"

static hw_wir_val i32(lw *l, hw_wir_op op, hw_wir_val a, uint64_t b)
{
    return hw_wir_op2(&l->b, op, HW_T_I32, a, hw_wir_imm(b));
}

static hw_wir_val add(lw *l, hw_wir_type t, hw_wir_val a, hw_wir_val b)
{
    return hw_wir_op2(&l->b, HW_W_ADD, t, a, b);
}

/* ---- 8 x 8 matrices of 16 bits: lanes exchange row addresses ---- */

typedef struct row_address {
    hw_wir_val base; /* I32 offset in shared memory, or I64 */
    hw_wir_type type;
    hw_wir_space space;
} row_address;

static hw_wir_val shuffle(lw *l, hw_wir_val v, hw_wir_val lane)
{
    hw_wir_val d[2] = { lw_temp(l, HW_T_I32), HW_WIR_NONE };
    hw_wir_insn *i = hw_wir_emit(&l->b, HW_W_SHFL, HW_T_I32, 2, d, 4,
                                 (hw_wir_val[]){ v, lane, hw_wir_imm(31), hw_wir_imm(UINT32_MAX) });
    i->imm = HW_SHFL_IDX;
    lw_effect(l, i);
    return d[0];
}

static hw_wir_val shuffle_address(lw *l, const row_address *a, hw_wir_val lane)
{
    if (a->type == HW_T_I32)
        return shuffle(l, a->base, lane);
    hw_wir_val low = shuffle(l, lw_part(l, a->base, HW_T_I64, 0, HW_T_I32), lane);
    hw_wir_val high = shuffle(l, lw_part(l, a->base, HW_T_I64, 32, HW_T_I32), lane);
    high = hw_wir_op2(&l->b, HW_W_SHL, HW_T_I64, lw_fit(l, high, HW_T_I32, HW_T_I64, false),
                      hw_wir_imm(32));
    return hw_wir_op2(&l->b, HW_W_OR, HW_T_I64, high, lw_fit(l, low, HW_T_I32, HW_T_I64, false));
}

static row_address row_of(lw *l, const ptx_operand *o)
{
    lw_address a = lw_find_address(l, o, l->x->space);
    row_address r = { a.base, HW_T_I64, a.space };
    if (a.space == HW_SPACE_SHARED) {
        r.type = HW_T_I32;
        r.base = a.base.kind == HW_V_REG && lw_reg_type(l, a.base.reg) == HW_T_I64
                     ? lw_fit(l, a.base, HW_T_I64, HW_T_I32, false)
                     : a.base;
    }
    if (a.offset)
        r.base = add(l, r.type, r.base, lw_const(r.type, a.offset));
    return r;
}

static hw_wir_insn *access(lw *l, hw_wir_op op, hw_wir_type t, const row_address *r, hw_wir_val at,
                           uint32_t n, const hw_wir_val *v)
{
    hw_wir_val with[3] = { at, v[0], n > 1 ? v[1] : HW_WIR_NONE };
    hw_wir_insn *i = op == HW_W_LOAD ? hw_wir_emit(&l->b, op, t, n, v, 1, &at)
                                     : hw_wir_emit(&l->b, op, t, 0, NULL, n + 1, with);
    i->space = (uint8_t)r->space;
    i->count = (uint8_t)n;
    lw_effect(l, i);
    return i;
}

/* Where the lane's pair of elements of matrix k stands: row and bytes within it. */
static hw_wir_val pair_address(lw *l, const row_address *r, uint32_t k)
{
    hw_wir_val lane = lw_nullary(l, HW_W_SREG, HW_T_I32, HW_SR_LANEID);
    hw_wir_val row = i32(l, HW_W_ADD, i32(l, HW_W_SHR_U, lane, 2), 8 * k);
    hw_wir_val at = i32(l, HW_W_SHL, i32(l, HW_W_AND, lane, 3), 2);
    return add(l, r->type, shuffle_address(l, r, row), lw_fit(l, at, HW_T_I32, r->type, false));
}

static hw_wir_val pair(lw *l, hw_wir_val low, hw_wir_val high)
{
    high = i32(l, HW_W_SHL, lw_fit(l, high, HW_T_I16, HW_T_I32, false), 16);
    return hw_wir_op2(&l->b, HW_W_OR, HW_T_I32, lw_fit(l, low, HW_T_I16, HW_T_I32, false), high);
}

static uint32_t matrices(const lw *l)
{
    return lw_has(l, PTX_M_x4) ? 4 : lw_has(l, PTX_M_x2) ? 2 : 1;
}

/* An 8 x 8 matrix of pairs, one a lane, transposed. */
static hw_wir_val transpose(lw *l, hw_wir_val v)
{
    hw_wir_val lane = lw_nullary(l, HW_W_SREG, HW_T_I32, HW_SR_LANEID), half[2];
    hw_wir_val group = i32(l, HW_W_SHR_U, lane, 2), in_group = i32(l, HW_W_AND, lane, 3);
    hw_wir_val from = i32(l, HW_W_SHL, in_group, 3);
    from = add(l, HW_T_I32, from, i32(l, HW_W_SHR_U, group, 1));
    hw_wir_val which = i32(l, HW_W_SHL, i32(l, HW_W_AND, group, 1), 4);
    for (unsigned e = 0; e < 2; e++) {
        half[e] = shuffle(l, v, e ? i32(l, HW_W_ADD, from, 4) : from);
        half[e] = hw_wir_op2(&l->b, HW_W_SHR_U, HW_T_I32, half[e], which);
        half[e] = lw_fit(l, half[e], HW_T_I32, HW_T_I16, false);
    }
    return pair(l, half[0], half[1]);
}

void w_movmatrix(lw *l)
{
    lw_result(l, transpose(l, lw_source(l, 0)));
}

void w_ldmatrix(lw *l)
{
    l->b.marks |= HW_I_MATRIX;
    bool trans = lw_has(l, PTX_M_trans);
    if (!lw_operands_are(l, 2, 2) || !lw_are_results(l, &l->i->ops[0], matrices(l), 32))
        return;
    row_address r = row_of(l, &l->i->ops[1]);
    hw_wir_val v[4];
    for (uint32_t k = 0; k < matrices(l); k++) {
        v[k] = lw_temp(l, HW_T_I32);
        access(l, HW_W_LOAD, HW_T_I32, &r, pair_address(l, &r, k), 1, &v[k])->flags |=
            k ? HW_I_PART : 0;
    }
    for (uint32_t k = 0; k < matrices(l); k++) /* after all: the address may be a result */
        lw_set(l, lw_fragment_part(&l->i->ops[0], k), PTX_B32, trans ? transpose(l, v[k]) : v[k]);
}

void w_stmatrix(lw *l)
{
    l->b.marks |= HW_I_MATRIX;
    bool trans = lw_has(l, PTX_M_trans);
    if (!lw_operands_are(l, 2, 2) || !lw_are_sources(l, &l->i->ops[1], matrices(l), 32))
        return;
    row_address r = row_of(l, &l->i->ops[0]);
    for (uint32_t k = 0; k < matrices(l); k++) {
        hw_wir_val v = lw_source_part(l, &l->i->ops[1], k, 32);
        v = trans ? transpose(l, v) : v;
        access(l, HW_W_STORE, HW_T_I32, &r, pair_address(l, &r, k), 1, &v)->flags |=
            k ? HW_I_PART : 0;
    }
}

/* ---- matrices of bytes: words as above, then bytes between the lanes ----
 * A lane's word of a matrix of 8 rows of 16 bytes is four bytes of its row; lane is 4 * row + word. */

typedef struct lanes { /* this lane's number, and parts of it */
    hw_wir_val lane, group, in_group;
} lanes;

static lanes own_lane(lw *l)
{
    hw_wir_val lane = lw_nullary(l, HW_W_SREG, HW_T_I32, HW_SR_LANEID);
    return (lanes){ lane, i32(l, HW_W_SHR_U, lane, 2), i32(l, HW_W_AND, lane, 3) };
}

static hw_wir_val op32(lw *l, hw_wir_op op, hw_wir_val a, hw_wir_val b)
{
    return hw_wir_op2(&l->b, op, HW_T_I32, a, b);
}

/* The lowest four runs of `bits` bits of a word, a byte each. */
static hw_wir_val spread(lw *l, hw_wir_val v, unsigned bits)
{
    hw_wir_val r = hw_wir_imm(0);
    for (unsigned k = 0; k < 4; k++) {
        hw_wir_val e = i32(l, HW_W_AND, i32(l, HW_W_SHR_U, v, k * bits), (1u << bits) - 1);
        r = op32(l, HW_W_OR, r, i32(l, HW_W_SHL, e, 8 * k));
    }
    return r;
}

/* Rows of sixteen elements of 6 or 4 bits, packed and padded, as rows of bytes: b6x16_p32, b4x16_p64. */
static hw_wir_val unpack(lw *l, hw_wir_val packed)
{
    unsigned bits = lw_has(l, PTX_M_b6x16_p32) ? 6 : lw_has(l, PTX_M_b4x16_p64) ? 4 : 8;
    if (bits == 8)
        return packed;
    lanes me = own_lane(l);
    hw_wir_val first = i32(l, HW_W_MUL, me.in_group, 4 * bits), words[2];
    hw_wir_val row = i32(l, HW_W_AND, me.lane, 28), word = i32(l, HW_W_SHR_U, first, 5);
    words[0] = shuffle(l, packed, add(l, HW_T_I32, row, word));
    word = i32(l, HW_W_AND, i32(l, HW_W_ADD, word, 1), 3);
    words[1] = shuffle(l, packed, add(l, HW_T_I32, row, word));
    for (unsigned k = 0; k < 2; k++)
        words[k] = lw_fit(l, words[k], HW_T_I32, HW_T_I64, false);
    hw_wir_val both = hw_wir_op2(&l->b, HW_W_SHL, HW_T_I64, words[1], hw_wir_imm(32));
    both = hw_wir_op2(&l->b, HW_W_OR, HW_T_I64, both, words[0]);
    both = hw_wir_op2(&l->b, HW_W_SHR_U, HW_T_I64, both, i32(l, HW_W_AND, first, 31));
    return spread(l, lw_fit(l, both, HW_T_I64, HW_T_I32, false), bits);
}

/* 16 rows of 16 bytes, transposed: of column group + 8 * half the bytes of rows 4 * in_group on. */
static hw_wir_val transposed_bytes(lw *l, const hw_wir_val rows[2], unsigned half)
{
    lanes me = own_lane(l);
    hw_wir_val word = i32(l, HW_W_ADD, i32(l, HW_W_SHR_U, me.group, 2), 2 * half);
    hw_wir_val shift = i32(l, HW_W_SHL, i32(l, HW_W_AND, me.group, 3), 3);
    hw_wir_val from = op32(l, HW_W_OR, word, i32(l, HW_W_SHL, i32(l, HW_W_AND, me.lane, 1), 4));
    hw_wir_val lower =
        hw_wir_cmp(&l->b, HW_W_ICMP, HW_C_LT_U, HW_T_I32, me.in_group, hw_wir_imm(2));
    hw_wir_val r = hw_wir_imm(0);
    for (unsigned k = 0; k < 4; k++) {
        hw_wir_val lane = i32(l, HW_W_ADD, from, 4 * k);
        hw_wir_val a = shuffle(l, rows[0], lane), b = shuffle(l, rows[1], lane);
        a = hw_wir_op3(&l->b, HW_W_SELECT, HW_T_I32, lower, a, b);
        a = i32(l, HW_W_AND, op32(l, HW_W_SHR_U, a, shift), 0xff);
        r = op32(l, HW_W_OR, r, i32(l, HW_W_SHL, a, 8 * k));
    }
    return r;
}

void w_ldmatrix_bytes(lw *l)
{
    l->b.marks |= HW_I_MATRIX;
    uint32_t n = matrices(l) * (lw_has(l, PTX_M_m16n16) ? 2 : 1);
    if (!lw_operands_are(l, 2, 2) || !lw_are_results(l, &l->i->ops[0], n, 32))
        return;
    row_address r = row_of(l, &l->i->ops[1]);
    hw_wir_val v[4];
    for (uint32_t k = 0; k < n; k++) {
        v[k] = lw_temp(l, HW_T_I32);
        access(l, HW_W_LOAD, HW_T_I32, &r, pair_address(l, &r, k), 1, &v[k])->flags |=
            k ? HW_I_PART : 0;
    }
    for (uint32_t k = 0; k < n; k++)
        v[k] = unpack(l, v[k]);
    for (uint32_t k = 0; k < n; k++)
        lw_set(l, lw_fragment_part(&l->i->ops[0], k), PTX_B32,
               lw_has(l, PTX_M_trans) ? transposed_bytes(l, &v[k & ~1u], k & 1) : v[k]);
}

/* Sixteen rows of eight bytes, of which a lane has two of row group and two of row group + 8, as eight rows of sixteen. */
static hw_wir_val turned_bytes(lw *l, hw_wir_val v)
{
    lanes me = own_lane(l);
    hw_wir_val from = i32(l, HW_W_SHL, i32(l, HW_W_AND, me.lane, 1), 4), r = hw_wir_imm(0);
    from = op32(l, HW_W_OR, from, i32(l, HW_W_SHR_U, me.group, 1));
    hw_wir_val byte =
        op32(l, HW_W_OR, i32(l, HW_W_AND, me.group, 1), i32(l, HW_W_AND, me.in_group, 2));
    byte = i32(l, HW_W_SHL, byte, 3);
    for (unsigned k = 0; k < 4; k++) {
        hw_wir_val a = shuffle(l, v, i32(l, HW_W_ADD, from, 4 * k));
        a = i32(l, HW_W_AND, op32(l, HW_W_SHR_U, a, byte), 0xff);
        r = op32(l, HW_W_OR, r, i32(l, HW_W_SHL, a, 8 * k));
    }
    return r;
}

void w_stmatrix_bytes(lw *l)
{
    if (!lw_operands_are(l, 2, 2) || !lw_are_sources(l, &l->i->ops[1], matrices(l), 32))
        return;
    row_address r = row_of(l, &l->i->ops[0]);
    for (uint32_t k = 0; k < matrices(l); k++) {
        hw_wir_val v = turned_bytes(l, lw_source_part(l, &l->i->ops[1], k, 32));
        access(l, HW_W_STORE, HW_T_I32, &r, pair_address(l, &r, k), 1, &v)->flags |=
            k ? HW_I_PART : 0;
    }
}

/* ---- wmma.load and wmma.store ---- */

typedef struct tile {
    uint32_t rows, cols, registers; /* registers that hold the matrix once */
    unsigned bits, in_register;
    char which;        /* 'a', 'b', 'c' (also d) */
    bool by_rows;      /* .row: in memory too */
    bool turned;       /* read as it stands in memory, then transposed in 8 x 8 */
    row_address at;    /* of the lane's first element */
    hw_wir_val stride; /* bytes between rows (by_rows) or columns */
} tile;

static bool is_tile(lw *l, const ptx_operand *fragment, uint32_t n, unsigned bits)
{
    bool loads = lw_has(l, PTX_M_load);
    return loads ? lw_are_results(l, fragment, n, bits) : lw_are_sources(l, fragment, n, bits);
}

static bool tile_of(lw *l, tile *t, const ptx_operand *fragment, const ptx_operand *stride)
{
    hw_mma x = lw_mma_shape(l);
    bool a = lw_has(l, PTX_M_a), b = lw_has(l, PTX_M_b);
    uint8_t type = l->x->type[0];
    t->rows = b ? x.k : x.m;
    t->cols = a ? x.k : x.n;
    t->which = a ? 'a' : b ? 'b' : 'c';
    t->bits = lw_element_bits(type);
    t->in_register = t->bits == 64 ? 1 : 32 / t->bits;
    t->registers = t->rows * t->cols / 32 / t->in_register;
    t->by_rows = lw_has(l, PTX_M_row);
    t->turned = t->bits == 16 && t->by_rows == b;
    if (t->bits < 8) { /* only .row of A and .col of B: eight runs of words */
        uint32_t per_word = 32 / t->bits, shift = t->bits == 4 ? 1 : 3;
        *t = (tile){ .rows = 8,
                     .cols = x.k / per_word,
                     .registers = 1,
                     .bits = 32,
                     .in_register = 1,
                     .which = 'a',
                     .by_rows = true };
        t->stride = stride ? i32(l, HW_W_SHR_U, lw_read(l, stride, PTX_U32), shift)
                           : hw_wir_imm(x.k / 8 * lw_element_bits(type));
        return is_tile(l, fragment, 1, 32);
    }
    uint32_t n = lw_fragment_size(l, t->rows * t->cols, type, a || b);
    if (!is_tile(l, fragment, n, type == PTX_F64 ? 64 : 32))
        return false;
    t->stride = stride ? lw_read(l, stride, PTX_U32) : hw_wir_imm(t->by_rows ? t->cols : t->rows);
    t->stride = hw_wir_op2(&l->b, HW_W_MUL, HW_T_I32, t->stride, hw_wir_imm(t->bits / 8));
    return true;
}

/* Byte offset of a row and a column in memory. */
static hw_wir_val in_memory(lw *l, const tile *t, hw_wir_val row, hw_wir_val col)
{
    hw_wir_val major = t->by_rows ? row : col, minor = t->by_rows ? col : row;
    hw_wir_val bytes = hw_wir_op2(&l->b, HW_W_MUL, HW_T_I32, major, t->stride);
    return add(l, HW_T_I32, bytes, i32(l, HW_W_MUL, minor, t->bits / 8));
}

/* t->at: the address of the first element that this lane accesses. In groups of four, lanes hold
 * neighbours along the rows of A and C and the columns of B. */
static void start(lw *l, tile *t, const ptx_operand *address)
{
    t->at = row_of(l, address);
    hw_wir_val lane = lw_nullary(l, HW_W_SREG, HW_T_I32, HW_SR_LANEID);
    hw_wir_val group = i32(l, HW_W_SHR_U, lane, 2);
    hw_wir_val four =
        i32(l, HW_W_MUL, i32(l, HW_W_AND, lane, 3), t->which == 'c' ? 2 : t->in_register);
    bool along_rows = (t->which != 'b') != t->turned;
    hw_wir_val bytes = along_rows ? in_memory(l, t, group, four) : in_memory(l, t, four, group);
    t->at.base = add(l, t->at.type, t->at.base, lw_fit(l, bytes, HW_T_I32, t->at.type, true));
}

/* Where lane 0's element e of register r stands in the matrix; as place() of helper MMA. */
static void place(const tile *t, uint32_t r, uint32_t e, uint32_t *row, uint32_t *col)
{
    uint32_t n = t->in_register, in_block;
    switch (t->which) {
    case 'a':
        in_block = t->rows / 8;
        *row = r % in_block * 8;
        *col = r / in_block * 4 * n + e;
        break;
    case 'b':
        in_block = t->rows / (4 * n);
        *row = r % in_block * 4 * n + e;
        *col = r / in_block * 8;
        break;
    default:
        in_block = t->rows / 4;
        *row = (r * n + e) % in_block / 2 * 8;
        *col = (r * n + e) / in_block * 8 + ((r * n + e) & 1);
    }
}

/* The address of the lane's element e of register r. */
static hw_wir_val element(lw *l, const tile *t, uint32_t r, uint32_t e)
{
    uint32_t row, col;
    place(t, r, e, &row, &col);
    hw_wir_val bytes = in_memory(l, t, hw_wir_imm(row), hw_wir_imm(col));
    return add(l, t->at.type, t->at.base, lw_fit(l, bytes, HW_T_I32, t->at.type, true));
}

static hw_wir_type int_type(unsigned bits)
{
    return bits == 8 ? HW_T_I8 : bits == 16 ? HW_T_I16 : bits == 32 ? HW_T_I32 : HW_T_I64;
}

/* Elements of a register stand together in memory, or are read as if they did. */
static bool is_whole(const tile *t)
{
    return t->in_register == 1 || t->turned || t->by_rows == (t->which != 'b');
}

/* Two registers of a lane stand together in memory. */
static bool are_pairs(const tile *t)
{
    return t->which == 'c' && t->in_register == 1 && t->by_rows;
}

static hw_wir_type register_type(const tile *t)
{
    return t->bits == 64 ? HW_T_I64 : HW_T_I32;
}

/* Register r by its elements. */
static hw_wir_val load_elements(lw *l, const tile *t, uint32_t r)
{
    hw_wir_type small = int_type(t->bits);
    hw_wir_val whole = hw_wir_imm(0);
    for (uint32_t e = 0; e < t->in_register; e++) {
        hw_wir_val v = lw_temp(l, small);
        access(l, HW_W_LOAD, small, &t->at, element(l, t, r, e), 1, &v)->flags |=
            r + e ? HW_I_PART : 0;
        v = i32(l, HW_W_SHL, lw_fit(l, v, small, HW_T_I32, false), e * t->bits);
        whole = hw_wir_op2(&l->b, HW_W_OR, HW_T_I32, whole, v);
    }
    return whole;
}

static void load_registers(lw *l, const tile *t, hw_wir_val *v)
{
    uint32_t step = are_pairs(t) ? 2 : 1;
    for (uint32_t r = 0; r < t->registers; r += step) {
        if (!is_whole(t)) {
            v[r] = load_elements(l, t, r);
            continue;
        }
        for (uint32_t k = 0; k < step; k++)
            v[r + k] = lw_temp(l, register_type(t));
        access(l, HW_W_LOAD, register_type(t), &t->at, element(l, t, r, 0), step, &v[r])->flags |=
            r ? HW_I_PART : 0;
    }
    for (uint32_t r = 0; t->turned && r < t->registers; r++)
        v[r] = transpose(l, v[r]);
}

void w_wmma_load(lw *l)
{
    tile t = { 0 };
    const ptx_operand *o = l->i->ops;
    if (!lw_operands_are(l, 2, 3) || !tile_of(l, &t, &o[0], l->i->nops > 2 ? &o[2] : NULL))
        return;
    start(l, &t, &o[1]);
    hw_wir_val v[8];
    load_registers(l, &t, v);
    for (uint32_t k = 0; k < lw_fragment_parts(&o[0]); k++)
        lw_set(l, lw_fragment_part(&o[0], k), t.bits == 64 ? PTX_B64 : PTX_B32, v[k % t.registers]);
}

void w_wmma_store(lw *l)
{
    tile t = { 0 };
    const ptx_operand *o = l->i->ops;
    if (!lw_operands_are(l, 2, 3) || !tile_of(l, &t, &o[1], l->i->nops > 2 ? &o[2] : NULL))
        return;
    start(l, &t, &o[0]);
    uint32_t step = are_pairs(&t) ? 2 : 1;
    for (uint32_t r = 0; r < t.registers; r += step) {
        hw_wir_val v[2];
        for (uint32_t k = 0; k < step; k++) {
            v[k] = lw_source_part(l, &o[1], r + k, t.bits == 64 ? 64 : 32);
            v[k] = t.turned ? transpose(l, v[k]) : v[k];
        }
        access(l, HW_W_STORE, register_type(&t), &t.at, element(l, &t, r, 0), step, v)->flags |=
            r ? HW_I_PART : 0;
    }
}
