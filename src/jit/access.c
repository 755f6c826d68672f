/* SPDX-License-Identifier: Apache-2.0
 *
 * Addresses: what is known of them, and the check that an access is inside the device's range (or
 * the block's shared memory) and aligned: one subtraction, one rotation, one comparison. What fails
 * it is looked at lane by lane in C, where only executing lanes count.
 *
 * Accesses of a block through the same unchanged register are checked together at the first.
 */
#include "access.h"

enum {
    SPAN_MOST =
        1 << 20, /* of a group and of the lanes' constants; the range's end keeps this free */
};
/* Any 32-bit index times 8 stays within this of its base; both ends of the range keep it free. */
static const uint64_t FAR_SLACK = UINT64_C(1) << 35;

bool hwg_all_execute(hw_gen *g)
{
    return LLVMIsAConstantInt(g->exec) && LLVMConstIntGetZExtValue(g->exec) == UINT32_MAX;
}

static bool in_shared(const hw_wir_insn *in)
{
    return in->space == HW_SPACE_SHARED;
}

static bool unchecked(const hw_wir_insn *in)
{
    return in->space == HW_SPACE_PARAM;
}

static unsigned access_bytes(const hw_wir_insn *in)
{
    unsigned bits = hw_wir_bits((hw_wir_type)in->type);
    return (bits < 8 ? 1 : bits / 8) * in->count;
}

/* ---- groups ---- */

static bool can_join(const hw_gen_group *q, int64_t lo, int64_t hi)
{
    int64_t a = lo < q->lo ? lo : q->lo, b = hi > q->hi ? hi : q->hi;
    return b - a <= SPAN_MOST / 2 && q->n < HW_COUNTOF(q->member);
}

static void join(hw_gen_group *q, const hw_wir_insn *in, int64_t lo, int64_t hi, unsigned align)
{
    q->lo = q->n == 0 || lo < q->lo ? lo : q->lo;
    q->hi = q->n == 0 || hi > q->hi ? hi : q->hi;
    q->align = align > q->align ? align : q->align;
    q->member[q->n++] = in;
}

static bool groupable(const hw_wir_insn *in)
{
    bool moves =
        in->op == HW_W_LOAD || in->op == HW_W_STORE || in->op == HW_W_ATOM || in->op == HW_W_RED;
    return moves && in->guard.kind != HW_V_REG && in->src[0].kind == HW_V_REG && !unchecked(in) &&
           in->imm % access_bytes(in) == 0;
}

void hwg_groups(hw_gen *g, uint32_t block)
{
    const hw_wir_block *w = &g->f->blocks.ptr[block];
    g->group_of = HW_NEW_N(g->arena, hw_gen_group *, w->insns.len);
    if (!g->open)
        g->open = HW_NEW_N(g->arena, hw_gen_open, g->f->regs.len);
    g->epoch++;
    for (size_t i = 0; i < w->insns.len; i++) {
        const hw_wir_insn *in = &w->insns.ptr[i];
        if (hw_wir_ops[in->op].flags & (HW_WF_S | HW_WF_E))
            g->epoch++;
        if (groupable(in)) {
            hw_gen_open *o = &g->open[in->src[0].reg];
            int64_t lo = (int64_t)in->imm, hi = lo + access_bytes(in);
            if (o->epoch != g->epoch || o->shared != in_shared(in) || !can_join(o->group, lo, hi)) {
                o->group = HW_NEW(g->arena, hw_gen_group);
                o->epoch = g->epoch;
                o->shared = in_shared(in);
            }
            join(o->group, in, lo, hi, access_bytes(in));
            g->group_of[i] = o->group;
        }
        for (uint32_t k = 0; k < in->ndst; k++)
            if (in->dst[k].kind == HW_V_REG)
                g->open[in->dst[k].reg].epoch = 0;
    }
}

static hw_gen_group *group_for(hw_gen *g, const hw_wir_insn *in)
{
    hw_gen_group *q = g->group_of[g->index];
    if (q)
        return q;
    q = HW_NEW(g->arena, hw_gen_group);
    join(q, in, (int64_t)in->imm, (int64_t)in->imm + access_bytes(in), access_bytes(in));
    return q;
}

/* ---- the quick check ---- */

static unsigned log2_of(unsigned x)
{
    unsigned k = 0;
    while (x > 1u << k)
        k++;
    return k;
}

static hw_lv rotate(hw_gen *g, hw_lv x, unsigned k)
{
    return k ? hwg_intr3(g, "llvm.fshr", x, x, hwg_klike(x, k)) : x;
}

static hw_lb enter_entry(hw_gen *g)
{
    hw_lb here = LLVMGetInsertBlock(g->b);
    LLVMPositionBuilderAtEnd(g->b, g->entry);
    return here;
}

/* (range_size - slack) >> k, computed once at entry. */
static hw_lv range_limit(hw_gen *g, unsigned k, bool far)
{
    hw_lv *slot = &g->limit[far][k];
    if (!*slot) {
        hw_lv size = hwg_frame_once(g, offsetof(hw_frame, range_size), g->i64);
        hw_lb here = enter_entry(g);
        uint64_t slack = far ? 2 * FAR_SLACK : (uint64_t)SPAN_MOST;
        hw_lv room = hwg_intr2(g, "llvm.usub.sat", size, hwg_k(g->i64, slack));
        *slot = b_lshr(g, room, hwg_k(g->i64, k));
        hwg_at(g, here);
    }
    return *slot;
}

/* Number of aligned places in shared memory where `span` bytes fit. */
static hw_lv shared_limit(hw_gen *g, unsigned k, uint64_t span)
{
    hw_lv total = hwg_frame_once(g, offsetof(hw_frame, total_shared), g->i32);
    hw_lb here = enter_entry(g);
    hw_lv n = b_sub(g, b_zext(g, total, g->i64), hwg_k(g->i64, span - (UINT64_C(1) << k)));
    n = hwg_intr2(g, "llvm.smax", n, hwg_k(g->i64, 0));
    n = b_lshr(g, n, hwg_k(g->i64, k));
    hwg_at(g, here);
    return n;
}

/* x (scalar or vector address of the first byte) is allowed and aligned for `span` bytes. */
static hw_lv allowed(hw_gen *g, const hw_access *a, hw_lv x, unsigned k, uint64_t span)
{
    hw_lv limit;
    unsigned n = hwg_lanes(x);
    if (a->base) {
        limit = shared_limit(g, k, span);
        if (hwg_elem(x) == g->i32)
            limit = b_trunc(g, limit, g->i32);
    } else {
        hw_lv lo = hwg_frame_once(g, offsetof(hw_frame, range_lo), g->i64);
        x = b_sub(g, x, hwg_splat(g, lo, n));
        limit = range_limit(g, k, false);
    }
    return b_icmp(g, LLVMIntULT, rotate(g, x, k), hwg_splat(g, limit, n));
}

static hw_lv none_bad(hw_gen *g, hw_lv ok)
{
    hw_lv bad = b_and(g, b_not(g, hwg_vec_mask(g, ok)), g->exec);
    return b_icmp(g, LLVMIntEQ, bad, hwg_k(g->i32, 0));
}

/* The body of lanes_allowed: addresses, start of the range, limit, lanes. */
static hw_lv lanes_test(hw_gen *g, const hw_lv *a, void *ctx)
{
    const unsigned *k = ctx;
    hw_lv x = rotate(g, b_sub(g, a[0], hwg_splat(g, a[1], GEN_LANES)), *k);
    return none_bad(g, b_icmp(g, LLVMIntULT, x, hwg_splat(g, a[2], GEN_LANES)));
}

static bool multiples(const int64_t *x, unsigned of)
{
    for (unsigned l = 0; x && l < GEN_LANES; l++)
        if (x[l] % (int64_t)of != 0)
            return false;
    return true;
}

static hw_lv plus(hw_gen *g, hw_lv x, int64_t k)
{
    return k ? b_add(g, x, hwg_klike(x, (uint64_t)k)) : x;
}

/* Scalar check of an affine address; NULL if its constants do not allow one. */
static hw_lv affine_allowed(hw_gen *g, const hw_access *a, const hw_gen_group *q)
{
    int64_t clo, chi, dlo, dhi;
    unsigned k = log2_of(q->align);
    hwg_extremes(a->addr.c, &clo, &chi);
    hwg_extremes(a->addr.d, &dlo, &dhi);
    if (!multiples(a->addr.c, q->align) || !multiples(a->addr.d, q->align) ||
        chi - clo > SPAN_MOST / 2)
        return NULL;
    int64_t lo = clo + q->lo, span = chi - clo + q->hi - q->lo;
    if (!a->addr.d)
        return allowed(g, a, plus(g, a->addr.s, lo), k, (uint64_t)span);
    hw_lv x = b_mul(g, a->addr.r, hwg_k(g->i64, (uint64_t)dlo));
    hw_lv y = b_mul(g, a->addr.r, hwg_k(g->i64, (uint64_t)dhi));
    hw_lv s = plus(g, a->addr.s, lo);
    hw_lv first = b_add(g, s, hwg_intr2(g, "llvm.smin", x, y));
    hw_lv last = b_add(g, s, hwg_intr2(g, "llvm.smax", x, y));
    hw_lv ok = allowed(g, a, first, k, (uint64_t)span);
    return b_and(g, ok, allowed(g, a, last, k, (uint64_t)span));
}

/* base + any 32-bit index is allowed and aligned; or NULL. */
static hw_lv indexed_allowed(hw_gen *g, const hw_access *a, const hw_gen_group *q)
{
    if (!a->indexed || a->base || a->index.scale > 8 || a->index.scale % q->align != 0)
        return NULL;
    unsigned k = log2_of(q->align);
    hw_lv lo = hwg_frame_once(g, offsetof(hw_frame, range_lo), g->i64);
    hw_lv x = plus(g, b_sub(g, a->index.base, lo), q->lo - (int64_t)FAR_SLACK);
    return b_icmp(g, LLVMIntULT, rotate(g, x, k), range_limit(g, k, true));
}

hw_lv hwg_address_vector(hw_gen *g, const hw_access *a)
{
    return hwg_vector(g, a->addr, HW_T_I64);
}

/* In lean code the vector test is a function, generated once for each alignment and space. */
static hw_lv lanes_allowed(hw_gen *g, const hw_access *a, hw_lv x, unsigned k, uint64_t span)
{
    if (!g->lean)
        return none_bad(g, allowed(g, a, x, k, span));
    hw_lv lo = a->base ? hwg_k(g->i64, 0) : hwg_frame_once(g, offsetof(hw_frame, range_lo), g->i64);
    hw_lv limit = a->base ? shared_limit(g, k, span) : range_limit(g, k, false);
    hw_lv args[] = { x, lo, limit, g->exec };
    hw_lv *fn = &g->lanes_allowed[k];
    if (!*fn)
        *fn = hwg_outline(g, "allowed", g->i1, args, 4, lanes_test, &k);
    return hwg_call_outlined(g, *fn, args, 4);
}

/* ---- the slow check ---- */

/* A constant table of the group's accesses for hw_jit_check_*. */
static hw_lv pieces(hw_gen *g, const hw_gen_group *q)
{
    hw_lt t = LLVMStructTypeInContext(g->cx, (hw_lt[]){ g->i64, g->i32, g->i32 }, 3, false);
    hw_lv *k = HW_NEW_N(g->arena, hw_lv, q->n + 1);
    for (uint32_t i = 0; i < q->n; i++) {
        const hw_wir_insn *in = q->member[i];
        hw_lv f[] = { hwg_k(g->i64, in->imm), hwg_k(g->i32, access_bytes(in)),
                      hwg_k(g->i32, in->loc) };
        k[i] = LLVMConstStructInContext(g->cx, f, 3, false);
    }
    k[q->n] = LLVMConstNull(t); /* the end */
    hw_lv table = LLVMAddGlobal(g->mod, LLVMArrayType2(t, q->n + 1), "pieces");
    LLVMSetInitializer(table, LLVMConstArray2(t, k, q->n + 1));
    LLVMSetGlobalConstant(table, true);
    LLVMSetLinkage(table, LLVMPrivateLinkage);
    return table;
}

hw_lv hwg_scratch(hw_gen *g)
{
    if (!g->scratch)
        g->scratch = hwg_alloca_raw(g, LLVMArrayType2(g->i64, 3 * GEN_LANES), 64, "scratch");
    return g->scratch;
}

static hw_lv int64_table(hw_gen *g, const int64_t *c, const int64_t *d)
{
    hw_lv k[2 * GEN_LANES];
    for (unsigned l = 0; l < GEN_LANES; l++) {
        k[l] = hwg_k(g->i64, (uint64_t)(c ? c[l] : 0));
        k[GEN_LANES + l] = hwg_k(g->i64, (uint64_t)(d ? d[l] : 0));
    }
    hw_lv table = LLVMAddGlobal(g->mod, LLVMArrayType2(g->i64, 2 * GEN_LANES), "lanes");
    LLVMSetInitializer(table, LLVMConstArray2(g->i64, k, 2 * GEN_LANES));
    LLVMSetGlobalConstant(table, true);
    LLVMSetLinkage(table, LLVMPrivateLinkage);
    return table;
}

/* The constants of a shape, once a module (equal vectors are the same pointer). */
static hw_lv lane_table(hw_gen *g, const int64_t *c, const int64_t *d)
{
    for (size_t i = 0; i < g->tables.len; i++)
        if (g->tables.ptr[i].c == c && g->tables.ptr[i].d == d)
            return g->tables.ptr[i].table;
    hw_gen_table t = { c, d, int64_table(g, c, d) };
    hw_vec_push(g->arena, &g->tables, t);
    return t.table;
}

/* Call a function that keeps all registers (keep.c). */
static void call_keeping(hw_gen *g, const char *name, hw_lv *a, unsigned n)
{
    static const char attribute[] = "no_caller_saved_registers";
    hw_lt types[8];
    for (unsigned i = 0; i < n; i++)
        types[i] = LLVMTypeOf(a[i]);
    hw_lt t = LLVMFunctionType(g->voidt, types, n, false);
    hw_lv call = LLVMBuildCall2(g->b, t, hwg_extern(g, name, t), a, n, "");
    LLVMAddCallSiteAttribute(
        call, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
        LLVMCreateStringAttribute(g->cx, attribute, sizeof attribute - 1, "", 0));
}

static void slow_check(hw_gen *g, const hw_access *a, const hw_gen_group *q)
{
    hw_lv table = pieces(g, q);
    if (a->addr.kind != HW_SHAPE_VARYING) {
        hw_lv r = a->addr.d ? a->addr.r : hwg_k(g->i64, 0);
        hw_lv x[] = { g->frame, a->addr.s, r, lane_table(g, a->addr.c, a->addr.d), g->exec, table };
        call_keeping(g, a->base ? "hw_jit_keep_affine_shared" : "hw_jit_keep_affine", x, 6);
        return;
    }
    hw_lv where = hwg_scratch(g);
    hwg_store(g, hwg_address_vector(g, a), where, 64);
    hw_lv x[] = { g->frame, where, g->exec, table, hwg_k(g->i32, q->n) };
    call_keeping(g, a->base ? "hw_jit_keep_shared" : "hw_jit_keep_range", x, 5);
}

static hw_lb cold_check(hw_gen *g, const hw_access *a, const hw_gen_group *q, hw_lb join)
{
    hw_lb here = LLVMGetInsertBlock(g->b), cold = hwg_block(g, "cold");
    hwg_at(g, cold);
    slow_check(g, a, q);
    LLVMBuildBr(g->b, join);
    hwg_at(g, here);
    return cold;
}

static void check(hw_gen *g, hw_access *a)
{
    hw_gen_group *q = group_for(g, a->in);
    if (q->checked)
        return;
    q->checked = true;
    if (a->base && q->lo >= 0 && hwg_surely_inside(g, a->in->src[0], q->hi, q->align))
        return;
    hw_lv near = indexed_allowed(g, a, q);
    hw_lb on = hwg_block(g, "ok");
    unsigned k = log2_of(q->align);
    hw_lv ok = near;
    if (!ok && a->addr.kind != HW_SHAPE_VARYING)
        ok = affine_allowed(g, a, q);
    hw_lb cold = cold_check(g, a, q, on);
    if (!ok || near) {
        if (near) { /* the scalar test may fail for good addresses: ask each lane */
            hw_lb each = hwg_block(g, "each");
            hwg_likely(g, near, on, each);
            hwg_at(g, each);
        }
        hw_lv x = a->narrow && !g->lean ? a->narrow : hwg_address_vector(g, a);
        ok = lanes_allowed(g, a, plus(g, x, q->lo), k, (uint64_t)(q->hi - q->lo));
    }
    hwg_likely(g, ok, on, cold);
    hwg_at(g, on);
}

/* ---- accesses ---- */

static hw_lv wide(hw_gen *g, hw_lv x)
{
    return x && hwg_elem(x) == g->i32 ? b_sext(g, x, g->i64) : x;
}

/* Programs pack a flag with a value and count on the pair to travel as one, which devices do for
 * up to 16 aligned bytes: for volatile and ordered accesses, and those past the L1, it is so here. */
static bool is_pair(const hw_wir_insn *in, const hw_access *a)
{
    return (a->bytes == 8 || a->bytes == 16) && (in->op == HW_W_LOAD || in->op == HW_W_STORE) &&
           in->flags & (HW_I_VOLATILE | HW_I_ACQUIRE | HW_I_RELEASE | HW_I_L2);
}

static void layout(hw_gen *g, hw_access *a, unsigned reg_bytes, unsigned count)
{
    a->bytes = reg_bytes * count;
    a->unit = reg_bytes > 8 ? 8 : reg_bytes;
    bool pair = is_pair(a->in, a);
    a->whole = pair && a->bytes == 16;
    if (pair || (reg_bytes < 4 && count > 1) ||
        (reg_bytes == 4 && count == 2 && a->addr.kind == HW_SHAPE_VARYING))
        a->unit = a->bytes < 8 ? a->bytes : 8;
    a->units = a->bytes / a->unit;
    a->elem = hwg_int(g, a->unit * 8);
}

hw_access hwg_access(hw_gen *g, const hw_wir_insn *in, unsigned reg_bytes, unsigned count)
{
    hw_access a = { .in = in, .addr = hwg_src(g, in, 0), .offset = (int64_t)in->imm };
    layout(g, &a, reg_bytes, count);
    if (in_shared(in) && a.addr.v && hwg_elem(a.addr.v) == g->i32)
        a.narrow = a.addr.v;
    a.addr.s = wide(g, a.addr.s);
    a.addr.r = wide(g, a.addr.r);
    a.addr.v = wide(g, a.addr.v);
    if (in_shared(in))
        a.base = hwg_frame_once(g, offsetof(hw_frame, shared), g->ptr);
    else if (in->src[0].kind == HW_V_REG && g->index_of[in->src[0].reg].stamp == g->stamp) {
        a.index = g->index_of[in->src[0].reg];
        a.indexed = a.addr.kind == HW_SHAPE_VARYING;
    }
    if (!unchecked(in))
        check(g, &a);
    return a;
}

hw_lv hwg_pointer(hw_gen *g, const hw_access *a, hw_lv addr, int64_t bytes)
{
    if (a->base)
        return hwg_gep_k(g, hwg_gep(g, a->base, addr), bytes + a->offset);
    return hwg_gep_k(g, LLVMBuildIntToPtr(g->b, addr, g->ptr, ""), bytes + a->offset);
}

hw_lv hwg_pointers(hw_gen *g, const hw_access *a, int64_t bytes)
{
    hw_lv v = plus(g, hwg_address_vector(g, a), bytes + a->offset);
    if (a->base)
        return LLVMBuildGEP2(g->b, g->i8, a->base, &v, 1, "");
    return LLVMBuildIntToPtr(g->b, v, LLVMVectorType(g->ptr, GEN_LANES), "");
}
