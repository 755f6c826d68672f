/* SPDX-License-Identifier: Apache-2.0
 *
 * Atomic operations. Shared memory belongs to a block and a block to one worker, so there they are
 * plain reads and writes, lane after lane. Global ones are the processor's own atomic instructions;
 * many lanes on one address are combined first where the operation allows.
 */
#include "access.h"
#include "float.h"
#include "ops.h"

typedef struct atomic {
    const hw_access *a;
    bool plain;                           /* nobody else can be at this memory */
    hw_lv addresses, value, compare, old; /* memory: 32 each */
    hw_lv same;                           /* instead of value: all lanes' */
} atomic;

static unsigned bits_of(const hw_wir_insn *in)
{
    return hw_wir_bits((hw_wir_type)in->type);
}

/* ---- one lane's new value from the old one ---- */

static hw_lv float_op(hw_gen *g, const hw_wir_insn *in, hw_lv old, hw_lv x)
{
    static const uint16_t ops[HW_ATOM_COUNT] = {
        [HW_ATOM_FADD] = HW_W_FADD, [HW_ATOM_FMIN] = HW_W_FMIN, [HW_ATOM_FMAX] = HW_W_FMAX
    };
    hw_wir_insn op = *in;
    op.op = ops[in->atom];
    op.round = HW_ROUND_N;
    op.flags = in->flags & (HW_I_FTZ | HW_I_NAN);
    return hw_gen_ops[op.op].lane(g, &op, (hw_lv[]){ old, x });
}

static hw_lv inc(hw_gen *g, hw_lv old, hw_lv x)
{
    hw_lv wrap = b_icmp(g, LLVMIntUGE, old, x);
    return b_select(g, wrap, hwg_klike(old, 0), b_add(g, old, hwg_klike(old, 1)));
}

static hw_lv dec(hw_gen *g, hw_lv old, hw_lv x)
{
    hw_lv zero = b_icmp(g, LLVMIntEQ, old, hwg_klike(old, 0));
    hw_lv wrap = b_or(g, zero, b_icmp(g, LLVMIntUGT, old, x));
    return b_select(g, wrap, x, b_sub(g, old, hwg_klike(old, 1)));
}

static hw_lv apply(hw_gen *g, const hw_wir_insn *in, hw_lv old, hw_lv x, hw_lv compare)
{
    switch (in->atom) {
    case HW_ATOM_ADD:
        return b_add(g, old, x);
    case HW_ATOM_MIN_S:
        return hwg_intr2(g, "llvm.smin", old, x);
    case HW_ATOM_MIN_U:
        return hwg_intr2(g, "llvm.umin", old, x);
    case HW_ATOM_MAX_S:
        return hwg_intr2(g, "llvm.smax", old, x);
    case HW_ATOM_MAX_U:
        return hwg_intr2(g, "llvm.umax", old, x);
    case HW_ATOM_AND:
        return b_and(g, old, x);
    case HW_ATOM_OR:
        return b_or(g, old, x);
    case HW_ATOM_XOR:
        return b_xor(g, old, x);
    case HW_ATOM_EXCH:
        return x;
    case HW_ATOM_CAS:
        return b_select(g, b_icmp(g, LLVMIntEQ, old, compare), x, old);
    case HW_ATOM_INC:
        return inc(g, old, x);
    case HW_ATOM_DEC:
        return dec(g, old, x);
    default:
        return float_op(g, in, old, x);
    }
}

/* ---- one lane's access ---- */

static int rmw_op(unsigned atom)
{
    static const int ops[HW_ATOM_COUNT] = {
        [HW_ATOM_ADD] = LLVMAtomicRMWBinOpAdd + 1,    [HW_ATOM_MIN_S] = LLVMAtomicRMWBinOpMin + 1,
        [HW_ATOM_MIN_U] = LLVMAtomicRMWBinOpUMin + 1, [HW_ATOM_MAX_S] = LLVMAtomicRMWBinOpMax + 1,
        [HW_ATOM_MAX_U] = LLVMAtomicRMWBinOpUMax + 1, [HW_ATOM_AND] = LLVMAtomicRMWBinOpAnd + 1,
        [HW_ATOM_OR] = LLVMAtomicRMWBinOpOr + 1,      [HW_ATOM_XOR] = LLVMAtomicRMWBinOpXor + 1,
        [HW_ATOM_EXCH] = LLVMAtomicRMWBinOpXchg + 1,
    };
    return ops[atom] - 1;
}

static hw_lv exchange(hw_gen *g, hw_lv p, hw_lv expected, hw_lv new, hw_lv *ok)
{
    hw_lv pair =
        LLVMBuildAtomicCmpXchg(g->b, p, expected, new, LLVMAtomicOrderingSequentiallyConsistent,
                               LLVMAtomicOrderingSequentiallyConsistent, false);
    *ok = LLVMBuildExtractValue(g->b, pair, 1, "");
    return LLVMBuildExtractValue(g->b, pair, 0, "");
}

/* Compare and exchange until nobody came between. */
static hw_lv retry(hw_gen *g, const hw_wir_insn *in, hw_lv p, hw_lv x, unsigned align)
{
    hw_lv first = hwg_load(g, LLVMTypeOf(x), p, align), ok;
    LLVMSetVolatile(first, true);
    hw_lb here = LLVMGetInsertBlock(g->b), again = hwg_block(g, "again"), end = hwg_block(g, "did");
    LLVMBuildBr(g->b, again);
    hwg_at(g, again);
    hw_lv old = LLVMBuildPhi(g->b, LLVMTypeOf(x), "");
    hw_lv seen = exchange(g, p, old, apply(g, in, old, x, NULL), &ok);
    hw_lb last = LLVMGetInsertBlock(g->b);
    LLVMBuildCondBr(g->b, ok, end, again);
    LLVMAddIncoming(old, (hw_lv[]){ first, seen }, (hw_lb[]){ here, last }, 2);
    hwg_at(g, end);
    return seen;
}

static hw_lv access_one(hw_gen *g, const atomic *m, hw_lv p, hw_lv x, hw_lv compare)
{
    const hw_wir_insn *in = m->a->in;
    unsigned align = bits_of(in) / 8;
    hw_lv ok;
    if (m->plain) {
        hw_lv old = hwg_load(g, LLVMTypeOf(x), p, align);
        hwg_store(g, apply(g, in, old, x, compare), p, align);
        return old;
    }
    if (in->atom == HW_ATOM_CAS)
        return exchange(g, p, compare, x, &ok);
    if (rmw_op(in->atom) >= 0)
        return LLVMBuildAtomicRMW(g->b, (LLVMAtomicRMWBinOp)rmw_op(in->atom), p, x,
                                  LLVMAtomicOrderingSequentiallyConsistent, false);
    return retry(g, in, p, x, align);
}

/* nvcc writes `atom` with a register that nothing reads where C has no use for the result. */
static bool result_used(hw_gen *g, const hw_wir_insn *in)
{
    return in->op == HW_W_ATOM && hwg_wanted(in->dst[0]) && hwg_is_read(g, in->dst[0].reg);
}

/* ---- lane after lane ---- */

static hw_lv element(hw_gen *g, hw_lv array, hw_lv lane, unsigned bytes)
{
    return hwg_gep(g, array, b_mul(g, b_zext(g, lane, g->i64), hwg_k(g->i64, bytes)));
}

static void one_lane_at(hw_gen *g, const atomic *m, hw_lv lane, hw_lv addr)
{
    unsigned bytes = bits_of(m->a->in) / 8;
    hw_lt t = hwg_int(g, bytes * 8);
    hw_lv x = m->same;
    if (!x)
        x = hwg_load(g, t, element(g, m->value, lane, bytes), bytes);
    hw_lv c = m->compare ? hwg_load(g, t, element(g, m->compare, lane, bytes), bytes) : NULL;
    hw_lv old = access_one(g, m, hwg_pointer(g, m->a, addr, 0), x, c);
    if (m->old)
        hwg_store(g, old, element(g, m->old, lane, bytes), bytes);
}

static void one_lane(hw_gen *g, hw_lv lane, void *ctx)
{
    const atomic *m = ctx;
    one_lane_at(g, m, lane, hwg_load(g, g->i64, element(g, m->addresses, lane, 8), 8));
}

/* All lanes in a row, for offsets into shared memory, which fit 32 bits: two at a time. */
static void all_lanes(hw_gen *g, const atomic *m, hw_lv offsets)
{
    hw_lv pairs = b_bitcast(g, offsets, LLVMVectorType(g->i64, GEN_LANES / 2));
    for (unsigned l = 0; l < GEN_LANES; l += 2) {
        hw_lv two = LLVMBuildExtractElement(g->b, pairs, hwg_k(g->i32, l / 2), "");
        hw_lv low = b_and(g, two, hwg_k(g->i64, UINT32_MAX));
        one_lane_at(g, m, hwg_k(g->i32, l), low);
        one_lane_at(g, m, hwg_k(g->i32, l + 1), b_lshr(g, two, hwg_k(g->i64, 32)));
    }
}

static hw_lv spill(hw_gen *g, hw_lv v, const char *name)
{
    hw_lv p = hwg_alloca_raw(g, LLVMTypeOf(v), 64, name);
    hwg_store(g, v, p, 64);
    return p;
}

static void each_lane(hw_gen *g, const hw_wir_insn *in, const hw_access *a, bool plain)
{
    bool cas = in->atom == HW_ATOM_CAS, wanted = result_used(g, in);
    hw_lanes value = hwg_src(g, in, cas ? 2 : 1);
    hw_lt t = LLVMVectorType(hwg_int(g, bits_of(in)), GEN_LANES);
    atomic m = { .a = a, .plain = plain };
    if (value.kind == HW_SHAPE_UNIFORM)
        m.same = value.s;
    else
        m.value = spill(g, hwg_src_vec(g, in, cas ? 2 : 1), "values");
    if (cas)
        m.compare = spill(g, hwg_src_vec(g, in, 1), "compare");
    if (wanted)
        m.old = hwg_alloca_raw(g, t, 64, "old");
    if (a->narrow && g->v->tier && hwg_all_execute(g)) {
        all_lanes(g, &m, a->narrow);
    } else {
        m.addresses = spill(g, hwg_address_vector(g, a), "addresses");
        hwg_lane_loop(g, g->exec, one_lane, &m);
    }
    if (wanted)
        hwg_write(g, in->dst[0], hwg_varying(hwg_load(g, t, m.old, 64)));
}

/* ---- all lanes on one address ---- */

typedef struct combiner {
    const char *reduce;
    uint8_t shift; /* identity: 0, all ones, signed greatest, signed least */
} combiner;
enum { ID_ZERO, ID_ONES, ID_MOST, ID_LEAST };

static const combiner combiners[HW_ATOM_COUNT] = {
    [HW_ATOM_ADD] = { "llvm.vector.reduce.add", ID_ZERO },
    [HW_ATOM_MIN_S] = { "llvm.vector.reduce.smin", ID_MOST },
    [HW_ATOM_MIN_U] = { "llvm.vector.reduce.umin", ID_ONES },
    [HW_ATOM_MAX_S] = { "llvm.vector.reduce.smax", ID_LEAST },
    [HW_ATOM_MAX_U] = { "llvm.vector.reduce.umax", ID_ZERO },
    [HW_ATOM_AND] = { "llvm.vector.reduce.and", ID_ONES },
    [HW_ATOM_OR] = { "llvm.vector.reduce.or", ID_ZERO },
    [HW_ATOM_XOR] = { "llvm.vector.reduce.xor", ID_ZERO },
};

static uint64_t identity(unsigned which, unsigned bits)
{
    uint64_t ones = bits == 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;
    return which == ID_ZERO   ? 0
           : which == ID_ONES ? ones
           : which == ID_MOST ? ones >> 1
                              : ones - (ones >> 1);
}

/* What a lane sees: the old value combined with those of the lanes before it (five doubling steps
 * of shifted lanes). */
static hw_lv before(hw_gen *g, const hw_wir_insn *in, hw_lv v, hw_lv id)
{
    int idx[GEN_LANES];
    for (int step = 0; step <= 16; step = step ? step * 2 : 1) {
        int by = step ? step : 1; /* first: exclusive, shift by one */
        for (int l = 0; l < GEN_LANES; l++)
            idx[l] = l >= by ? l - by : GEN_LANES;
        hw_lv moved = hwg_shuffle(g, v, id, idx, GEN_LANES);
        v = step ? apply(g, in, moved, v, NULL) : moved;
    }
    return v;
}

static void one_address(hw_gen *g, const hw_wir_insn *in, const hw_access *a, bool plain)
{
    const combiner *k = &combiners[in->atom];
    hw_lv v = hwg_src_vec(g, in, 1), id = hwg_klike(v, identity(k->shift, bits_of(in)));
    v = b_select(g, hwg_mask_vec(g, g->exec), v, id);
    atomic m = { .a = a, .plain = plain };
    hw_lv sum = hwg_intr1(g, k->reduce, v);
    hw_lv old = access_one(g, &m, hwg_pointer(g, a, a->addr.s, 0), sum, NULL);
    if (!result_used(g, in))
        return;
    hw_lv mine = apply(g, in, hwg_splat(g, old, GEN_LANES), before(g, in, v, id), NULL);
    hwg_write(g, in->dst[0], hwg_varying(mine));
}

static bool whole_register(const hw_wir_insn *in)
{
    return in->type != HW_T_V2I16 && in->type != HW_T_V4I8;
}

/* atom.v2/.v4: each element by itself. */
static void elements(hw_gen *g, const hw_wir_insn *in, bool plain)
{
    for (unsigned i = 0; i < in->count; i++) {
        hw_wir_val src[2] = { in->src[0], in->src[1 + i] };
        hw_wir_insn one = *in;
        one.count = 1;
        one.src = src;
        one.nsrc = 2;
        one.imm += (uint64_t)i * (bits_of(in) / 8);
        if (in->op == HW_W_ATOM)
            one.dst = &in->dst[i];
        g->in = &one;
        hw_access a = hwg_access(g, &one, bits_of(in) / 8, 1);
        each_lane(g, &one, &a, plain);
        g->in = in;
    }
}

WHOLE(atom)
{
    bool plain = in->space == HW_SPACE_SHARED || in->space == HW_SPACE_LOCAL;
    if (in->count > 1) {
        elements(g, in, plain);
        return;
    }
    hw_access a = hwg_access(g, in, bits_of(in) / 8, 1);
    bool combine = a.addr.kind == HW_SHAPE_UNIFORM && combiners[in->atom].reduce &&
                   bits_of(in) >= 32 && bits_of(in) <= 64 && whole_register(in);
    if (combine)
        one_address(g, in, &a, plain);
    else
        each_lane(g, in, &a, plain);
}

/* ---- cp.async: done at once ---- */

typedef struct copier {
    const hw_access *to, *from;
    hw_lv to_addresses, from_addresses, sizes; /* memory */
} copier;

static void copy_lane(hw_gen *g, hw_lv lane, void *ctx)
{
    const copier *c = ctx;
    unsigned bytes = (unsigned)c->to->in->imm;
    hw_lv to = hwg_load(g, g->i64, element(g, c->to_addresses, lane, 8), 8);
    hw_lv from = hwg_load(g, g->i64, element(g, c->from_addresses, lane, 8), 8);
    hw_lv n = b_zext(g, hwg_load(g, g->i32, element(g, c->sizes, lane, 4), 4), g->i64);
    hw_lv buffer = hwg_scratch(g), p = hwg_pointer(g, c->to, to, 0);
    hw_lt t = hwg_int(g, bytes * 8);
    n = hwg_intr2(g, "llvm.umin", n, hwg_k(g->i64, bytes));
    hwg_store(g, LLVMConstNull(t), buffer, 16);
    LLVMBuildMemCpy(g->b, buffer, 16, hwg_pointer(g, c->from, from, 0), 1, n);
    hwg_store(g, hwg_load(g, t, buffer, 16), p, 4);
}

/* A lane whose src-size is 0 reads nothing: its address may be anything. */
static hw_access read_access(hw_gen *g, const hw_wir_insn *from, unsigned bytes)
{
    hw_lv all = g->exec;
    if (from->src[1].kind == HW_V_REG) { /* the third operand of the copy */
        hw_lv n = hwg_vector(g, hwg_read(g, from->src[1], HW_T_I32), HW_T_I32);
        g->exec = b_and(g, all, hwg_vec_mask(g, b_icmp(g, LLVMIntNE, n, hwg_klike(n, 0))));
    }
    hw_access a = hwg_access(g, from, bytes, 1);
    g->exec = all;
    return a;
}

WHOLE(copy)
{
    unsigned bytes = (unsigned)in->imm;
    hw_wir_insn to = *in, from = *in;
    to.space = HW_SPACE_SHARED;
    from.space = HW_SPACE_GLOBAL;
    to.src = &in->src[0];
    from.src = &in->src[1];
    to.type = from.type = bytes == 4 ? HW_T_I32 : bytes == 8 ? HW_T_I64 : HW_T_I128;
    to.imm = from.imm = 0;
    to.count = from.count = 1;
    hw_access t = hwg_access(g, &to, bytes, 1), f = read_access(g, &from, bytes);
    to.imm = bytes;
    copier c = { &t, &f };
    c.to_addresses = spill(g, hwg_address_vector(g, &t), "to");
    c.from_addresses = spill(g, hwg_address_vector(g, &f), "from");
    c.sizes = spill(g, hwg_src_vec(g, in, 2), "sizes");
    hwg_lane_loop(g, g->exec, copy_lane, &c);
}
