/* SPDX-License-Identifier: Apache-2.0
 *
 * Loads and stores of a warp, by the shape of the address: one scalar access, a few masked vector
 * accesses with shuffles, or gather and scatter.
 */
#include "access.h"
#include "ops.h"

enum { MOST_RUNS = 8 };

/* Consecutive lanes in the same row whose addresses step by the access's size, or not at all. */
typedef struct run {
    unsigned first, n;
    bool same;
} run;

static int64_t at(const int64_t *x, unsigned l)
{
    return x ? x[l] : 0;
}

/* Cut the lanes into runs; 0 if there are too many. */
static unsigned find_runs(const hw_access *a, run *r)
{
    unsigned n = 0;
    for (unsigned l = 0; l < GEN_LANES; n++) {
        if (n == MOST_RUNS)
            return 0;
        int64_t step = l + 1 < GEN_LANES ? at(a->addr.c, l + 1) - at(a->addr.c, l) : 0;
        unsigned e = l + 1;
        bool fits = step == 0 || step == (int64_t)a->bytes;
        while (fits && e < GEN_LANES && at(a->addr.d, e) == at(a->addr.d, l) &&
               at(a->addr.c, e) - at(a->addr.c, e - 1) == step)
            e++;
        r[n] = (run){ l, e - l, e - l == 1 || step == 0 };
        l = e;
    }
    return n;
}

/* The scalar address of a lane. */
static hw_lv lane_address(hw_gen *g, const hw_access *a, unsigned l)
{
    hw_lv x = a->addr.s;
    if (at(a->addr.d, l)) {
        hw_lv d = hwg_k(g->i64, (uint64_t)at(a->addr.d, l));
        x = b_add(g, x, b_mul(g, a->addr.r, d));
    }
    return x;
}

static hw_lv lane_pointer(hw_gen *g, const hw_access *a, unsigned l, int64_t bytes)
{
    return hwg_pointer(g, a, lane_address(g, a, l), at(a->addr.c, l) + bytes);
}

static bool all_step(const run *r, unsigned n, unsigned most)
{
    for (unsigned i = 0; i < n; i++)
        if (r[i].same && r[i].n > most)
            return false;
    return n > 0;
}

/* ---- masks ---- */

static hw_lv exec_bits(hw_gen *g, unsigned first, unsigned n, unsigned each)
{
    int idx[256];
    for (unsigned i = 0; i < n * each; i++)
        idx[i] = (int)(first + i / each);
    hw_lv v = hwg_mask_vec(g, g->exec);
    if (n == GEN_LANES && each == 1)
        return v;
    return hwg_shuffle(g, v, NULL, idx, n * each);
}

static hw_lv masked_load(hw_gen *g, hw_lv p, hw_lt t, hw_lv mask)
{
    hw_lt types[] = { t, g->ptr };
    unsigned align = LLVMGetIntTypeWidth(LLVMGetElementType(t)) / 8;
    hw_lv a[] = { p, hwg_k(g->i32, align), mask, LLVMGetPoison(t) };
    return hwg_intr(g, "llvm.masked.load", 2, types, 4, a);
}

static void masked_store(hw_gen *g, hw_lv x, hw_lv p, hw_lv mask)
{
    hw_lt types[] = { LLVMTypeOf(x), g->ptr };
    unsigned align = LLVMGetIntTypeWidth(hwg_elem(x)) / 8;
    hwg_intr(g, "llvm.masked.store", 2, types, 4, (hw_lv[]){ x, p, hwg_k(g->i32, align), mask });
}

/* n lanes of `each` units from p on, under the lanes' mask. */
static hw_lv load_run(hw_gen *g, const hw_access *a, hw_lv p, unsigned first, unsigned n,
                      unsigned each)
{
    hw_lt t = LLVMVectorType(a->elem, n * each);
    if (hwg_all_execute(g))
        return hwg_load(g, t, p, a->unit);
    return masked_load(g, p, t, exec_bits(g, first, n, each));
}

static void store_run(hw_gen *g, const hw_access *a, hw_lv x, hw_lv p, unsigned first, unsigned n,
                      unsigned each)
{
    if (hwg_all_execute(g))
        hwg_store(g, x, p, a->unit);
    else
        masked_store(g, x, p, exec_bits(g, first, n, each));
}

/* A scalar load that must not fault when no lane of the run executes. */
static hw_lv load_same(hw_gen *g, const hw_access *a, hw_lv p, run r)
{
    if (!hwg_all_execute(g) && r.n < GEN_LANES) {
        uint32_t lanes = ((r.n < 32 ? 1u << r.n : 0) - 1) << r.first;
        hw_lv any = b_icmp(g, LLVMIntNE, b_and(g, g->exec, hwg_k(g->i32, lanes)), hwg_k(g->i32, 0));
        p = b_select(g, any, p, hwg_scratch(g));
    }
    return hwg_load(g, a->elem, p, a->unit);
}

/* ---- loads ---- */

/* What a load gives: for each unit, one value (uniform) or 32. */
typedef struct units {
    hw_lv u[16];
} units;

static void ordered(hw_gen *g, const hw_wir_insn *in, unsigned flag)
{
    if (in->flags & flag)
        LLVMBuildFence(g->b, LLVMAtomicOrderingSequentiallyConsistent, true, "");
}

static void load_uniform(hw_gen *g, const hw_access *a, units *out)
{
    if (a->whole) {
        hwg_load_whole(g, a, out->u);
        return;
    }
    for (unsigned k = 0; k < a->units; k++) {
        hw_lv p = hwg_pointer(g, a, a->addr.s, (int64_t)k * a->unit);
        out->u[k] = hwg_load(g, a->elem, p, a->unit);
        if (a->in->flags & HW_I_VOLATILE)
            LLVMSetVolatile(out->u[k], true);
        else if (a->in->flags & HW_I_READONLY || a->in->space == HW_SPACE_PARAM)
            LLVMSetMetadata(out->u[k], LLVMGetMDKindIDInContext(g->cx, "invariant.load", 14),
                            LLVMMetadataAsValue(g->cx, LLVMMDNodeInContext2(g->cx, NULL, 0)));
    }
}

/* Put n lanes of x at lane `first` of acc (NULL: nothing there yet). */
static hw_lv place(hw_gen *g, hw_lv acc, hw_lv x, unsigned first, unsigned n)
{
    int idx[GEN_LANES];
    for (unsigned l = 0; l < GEN_LANES; l++)
        idx[l] = l >= first && l < first + n ? (int)(l - first) : -1;
    hw_lv w = hwg_shuffle(g, x, NULL, idx, GEN_LANES);
    if (!acc)
        return w;
    for (unsigned l = 0; l < GEN_LANES; l++)
        idx[l] = l >= first && l < first + n ? (int)(GEN_LANES + l) : (int)l;
    return hwg_shuffle(g, acc, w, idx, GEN_LANES);
}

/* Every `each`-th element from k on. */
static hw_lv deinterleave(hw_gen *g, hw_lv x, unsigned k, unsigned each, unsigned n)
{
    int idx[GEN_LANES];
    for (unsigned i = 0; i < n; i++)
        idx[i] = (int)(i * each + k);
    return each == 1 ? x : hwg_shuffle(g, x, NULL, idx, n);
}

static void load_runs(hw_gen *g, const hw_access *a, const run *r, unsigned n, units *out)
{
    for (unsigned i = 0; i < n; i++) {
        hw_lv block = NULL;
        if (!r[i].same && r[i].n == GEN_LANES)
            hwg_fetch_ahead(g, a, lane_address(g, a, r[i].first), at(a->addr.c, r[i].first),
                            r[i].n * a->bytes);
        if (!r[i].same)
            block = load_run(g, a, lane_pointer(g, a, r[i].first, 0), r[i].first, r[i].n, a->units);
        for (unsigned k = 0; k < a->units; k++) {
            hw_lv x;
            if (block) {
                x = deinterleave(g, block, k, a->units, r[i].n);
            } else {
                hw_lv p = lane_pointer(g, a, r[i].first, (int64_t)k * a->unit);
                x = hwg_splat(g, load_same(g, a, p, r[i]), r[i].n == 1 ? 2 : r[i].n);
            }
            out->u[k] = r[i].n == GEN_LANES ? x : place(g, out->u[k], x, r[i].first, r[i].n);
        }
    }
}

/* ---- gathers ---- */

static hw_lv half(hw_gen *g, hw_lv x, unsigned i, unsigned n)
{
    int idx[GEN_LANES];
    for (unsigned l = 0; l < n; l++)
        idx[l] = (int)(i * n + l);
    return hwg_shuffle(g, x, NULL, idx, n);
}

static hw_lv join_two(hw_gen *g, hw_lv a, hw_lv b)
{
    int idx[GEN_LANES];
    unsigned n = 2 * hwg_lanes(a);
    for (unsigned l = 0; l < n; l++)
        idx[l] = (int)l;
    return hwg_shuffle(g, a, b, idx, n);
}

/* AVX-512 gather of 32- or 64-bit units by 32-bit index from a scalar base. */
static hw_lv gather_index(hw_gen *g, hw_lv base, hw_lv index, unsigned scale, unsigned unit)
{
    unsigned n = unit == 4 ? 16 : 8, parts = GEN_LANES / n;
    const char *name =
        unit == 4 ? "llvm.x86.avx512.mask.gather.dpi.512" : "llvm.x86.avx512.mask.gather.dpq.512";
    hw_lt t = LLVMVectorType(hwg_int(g, unit * 8), n);
    hw_lv exec = hwg_mask_vec(g, g->exec), x[4];
    for (unsigned i = 0; i < parts; i++) {
        hw_lv a[] = { LLVMConstNull(t), base, half(g, index, i, n), half(g, exec, i, n),
                      hwg_k(g->i32, scale) };
        x[i] = hwg_intr(g, name, 0, NULL, 5, a);
    }
    hw_lv lo = join_two(g, x[0], x[1]);
    return parts == 2 ? lo : join_two(g, lo, join_two(g, x[2], x[3]));
}

static hw_lv gather_pointers(hw_gen *g, hw_lv p, hw_lt elem, unsigned align)
{
    hw_lt t = LLVMVectorType(elem, GEN_LANES), types[] = { t, LLVMTypeOf(p) };
    hw_lv a[] = { p, hwg_k(g->i32, align), hwg_mask_vec(g, g->exec), LLVMGetPoison(t) };
    return hwg_intr(g, "llvm.masked.gather", 2, types, 4, a);
}

/* Bytes and halfwords: the aligned word around each, which is in the same page. */
static hw_lv gather_small(hw_gen *g, hw_lv p, hw_lt elem)
{
    hw_lv v = LLVMBuildPtrToInt(g->b, p, LLVMVectorType(g->i64, GEN_LANES), "");
    hw_lv word = b_and(g, v, hwg_klike(v, ~UINT64_C(3)));
    hw_lv x = gather_pointers(g, LLVMBuildIntToPtr(g->b, word, LLVMTypeOf(p), ""), g->i32, 4);
    hw_lv low = b_and(g, b_trunc(g, v, g->i32), hwg_klike(x, 3));
    return b_trunc(g, b_lshr(g, x, b_shl(g, low, hwg_klike(x, 3))), elem);
}

static bool fits32(const int64_t *c)
{
    for (unsigned l = 0; c && l < GEN_LANES; l++)
        if (c[l] != (int32_t)c[l])
            return false;
    return true;
}

/* A scalar base, 32-bit lane offsets and their scale, if the address can be said so. */
static bool small_index(hw_gen *g, const hw_access *a, hw_lv *base, hw_lv *index, unsigned *scale,
                        int64_t *bias)
{
    *bias = 0;
    if (!g->avx512 || a->unit < 4)
        return false;
    if (a->addr.kind == HW_SHAPE_AFFINE && !a->addr.d && fits32(a->addr.c)) {
        *base = a->addr.s;
        *index = hwg_kvec(g, g->i32, a->addr.c, GEN_LANES);
        *scale = 1;
        return true;
    }
    int64_t s = a->index.scale;
    if (!a->indexed || (s != 1 && s != 2 && s != 4 && s != 8))
        return false;
    *base = a->index.base;
    *index = a->index.index;
    *scale = (unsigned)s;
    if (!a->index.is_signed) { /* the instruction's index is signed: move the base up */
        *index = b_xor(g, *index, hwg_klike(*index, UINT64_C(1) << 31));
        *bias = (int64_t)s << 31;
    }
    return true;
}

/* Lanes with several units each: shuffles of long vectors, which take LLVM milliseconds, or a gather
 * or scatter a unit. */
static bool by_index(hw_gen *g, const hw_access *a)
{
    return g->lean && g->avx512 && a->units > 1 && a->unit >= 4 && !a->addr.d && fits32(a->addr.c);
}

static void gather(hw_gen *g, const hw_access *a, units *out)
{
    if (a->whole) {
        hwg_load_whole(g, a, out->u);
        return;
    }
    if (a->unit == 4 && a->units == 4 && !g->lean) {
        hwg_load_quads(g, a, 0, out->u);
        return;
    }
    hw_lv base = NULL, index = NULL;
    unsigned scale = 0;
    int64_t bias = 0;
    bool small = small_index(g, a, &base, &index, &scale, &bias);
    for (unsigned k = 0; k < a->units; k++) {
        int64_t off = (int64_t)k * a->unit;
        if (small)
            out->u[k] = gather_index(g, hwg_pointer(g, a, base, off + bias), index, scale, a->unit);
        else if (a->unit < 4)
            out->u[k] = gather_small(g, hwg_pointers(g, a, off), a->elem);
        else
            out->u[k] = gather_pointers(g, hwg_pointers(g, a, off), a->elem, a->unit);
    }
}

/* ---- between units and registers ---- */

static hw_lv register_of(hw_gen *g, const hw_access *a, const units *u, unsigned i, hw_lt t)
{
    unsigned bytes = a->bytes / a->in->count;
    if (bytes == 16) {
        hw_lv lo = b_zext(g, u->u[2 * i], g->i128), hi = b_zext(g, u->u[2 * i + 1], g->i128);
        return b_or(g, lo, b_shl(g, hi, hwg_klike(hi, 64)));
    }
    unsigned per = a->unit / bytes;
    hw_lv x = u->u[i / per];
    if (per == 1)
        return x;
    return b_trunc(g, b_lshr(g, x, hwg_klike(x, (i % per) * bytes * 8)), t);
}

static void units_of(hw_gen *g, const hw_access *a, hw_lv *regs, units *out)
{
    unsigned bytes = a->bytes / a->in->count;
    if (bytes == 16) {
        for (unsigned i = 0; i < a->units; i++) {
            hw_lv x = regs[i / 2];
            out->u[i] = b_trunc(g, i % 2 ? b_lshr(g, x, hwg_klike(x, 64)) : x, g->i64);
        }
        return;
    }
    unsigned per = a->unit / bytes;
    for (unsigned i = 0; i < a->units; i++) {
        hw_lv x = regs[i * per];
        for (unsigned j = 0; j < per && per > 1; j++) {
            hw_lv y = b_zext(g, regs[i * per + j], a->elem);
            x = j ? b_or(g, x, b_shl(g, y, hwg_klike(y, j * bytes * 8))) : y;
        }
        out->u[i] = x;
    }
}

static unsigned reg_bytes(const hw_wir_insn *in)
{
    unsigned bits = hw_wir_bits((hw_wir_type)in->type);
    return bits < 8 ? 1 : bits / 8;
}

static void do_bundle(hw_gen *g, hw_gen_bundle *b)
{
    run r[MOST_RUNS];
    units u = { { 0 } };
    uint32_t here = g->index;
    g->index = b->first; /* whose group of accesses is checked */
    hw_access a = hwg_access(g, b->in, 4, 1);
    g->index = here;
    a.units = b->n;
    a.bytes = 4 * b->n;
    a.offset = b->offset;
    unsigned n = a.addr.kind == HW_SHAPE_AFFINE ? find_runs(&a, r) : 0;
    if (n)
        load_runs(g, &a, r, n, &u);
    else
        hwg_load_quads(g, &a, hwg_bundle_ahead(g, b), u.u);
    memcpy(b->words, u.u, sizeof b->words);
}

/* A load whose neighbours are loaded with it: the first does it, the others have it. Other bundles
 * that could start now do: their misses overlap. */
static void load_bundled(hw_gen *g, const hw_wir_insn *in, hw_gen_bundle *b)
{
    if (!b->words[0]) {
        do_bundle(g, b);
        for (size_t k = 0; k < g->bundles.len; k++)
            if (!g->bundles.ptr[k]->words[0] && hwg_bundle_ready(g, g->bundles.ptr[k]))
                do_bundle(g, g->bundles.ptr[k]);
    }
    int64_t i = ((int64_t)in->imm - b->offset) / 4;
    hwg_write(g, in->dst[0], hwg_varying(b->words[i]));
}

WHOLE(load)
{
    run r[MOST_RUNS];
    units u = { { 0 } };
    if (g->bundle_of[g->index]) {
        load_bundled(g, in, g->bundle_of[g->index]);
        return;
    }
    hw_access a = hwg_access(g, in, reg_bytes(in), in->count);
    bool uniform = a.addr.kind == HW_SHAPE_UNIFORM;
    ordered(g, in, HW_I_VOLATILE | HW_I_ACQUIRE);
    unsigned n = a.addr.kind == HW_SHAPE_AFFINE && !by_index(g, &a) ? find_runs(&a, r) : 0;
    if (a.whole && !all_step(r, n, 0))
        n = 0;
    if (uniform)
        load_uniform(g, &a, &u);
    else if (n)
        load_runs(g, &a, r, n, &u);
    else
        gather(g, &a, &u);
    ordered(g, in, HW_I_ACQUIRE);
    for (unsigned i = 0; i < in->count; i++) {
        if (!hwg_wanted(in->dst[i]))
            continue;
        unsigned type = hwg_dst_type(g, in->dst[i]);
        hw_lv x = register_of(g, &a, &u, i, hwg_reg_type(g, type));
        if (type == HW_T_I1)
            x = b_trunc(g, x, g->i1);
        hwg_write(g, in->dst[i], uniform ? hwg_uniform(x) : hwg_varying(x));
    }
}

/* ---- stores ---- */

typedef struct lane_store {
    const hw_access *a;
    hw_lv values, addresses; /* memory: 32 of each */
    unsigned k;
} lane_store;

static void store_lane(hw_gen *g, hw_lv lane, void *ctx)
{
    lane_store *s = ctx;
    hw_lv l = b_zext(g, lane, g->i64);
    hw_lv v = hwg_gep(g, s->values, b_mul(g, l, hwg_k(g->i64, s->a->unit)));
    hw_lv p = hwg_gep(g, s->addresses, b_shl(g, l, hwg_k(g->i64, 3)));
    hw_lv x = hwg_load(g, s->a->elem, v, s->a->unit), to = hwg_load(g, g->i64, p, 8);
    hwg_store(g, x, hwg_pointer(g, s->a, to, (int64_t)s->k * s->a->unit), s->a->unit);
}

void hwg_lane_loop(hw_gen *g, hw_lv lanes, void (*each)(hw_gen *g, hw_lv lane, void *ctx),
                   void *ctx)
{
    hw_lb here = LLVMGetInsertBlock(g->b), loop = hwg_block(g, "lane"), end = hwg_block(g, "lanes");
    hw_lb last;
    LLVMBuildCondBr(g->b, b_icmp(g, LLVMIntNE, lanes, hwg_k(g->i32, 0)), loop, end);
    hwg_at(g, loop);
    hw_lv m = LLVMBuildPhi(g->b, g->i32, "");
    each(g, hwg_first_lane(g, m), ctx);
    hw_lv rest = b_and(g, m, b_sub(g, m, hwg_k(g->i32, 1)));
    last = LLVMGetInsertBlock(g->b);
    LLVMBuildCondBr(g->b, b_icmp(g, LLVMIntNE, rest, hwg_k(g->i32, 0)), loop, end);
    LLVMAddIncoming(m, (hw_lv[]){ lanes, rest }, (hw_lb[]){ here, last }, 2);
    hwg_at(g, end);
}

/* AVX-512 scatter of 32- or 64-bit units by 32-bit index from a scalar base. */
static void scatter_index(hw_gen *g, hw_lv base, hw_lv index, unsigned scale, hw_lv x,
                          unsigned unit)
{
    unsigned n = unit == 4 ? 16 : 8;
    const char *name =
        unit == 4 ? "llvm.x86.avx512.mask.scatter.dpi.512" : "llvm.x86.avx512.mask.scatter.dpq.512";
    hw_lv exec = hwg_mask_vec(g, g->exec);
    for (unsigned i = 0; i < GEN_LANES / n; i++) {
        hw_lv a[] = { base, half(g, exec, i, n), half(g, index, i, n), half(g, x, i, n),
                      hwg_k(g->i32, scale) };
        hwg_intr(g, name, 0, NULL, 5, a);
    }
}

static void scatter(hw_gen *g, const hw_access *a, const units *u)
{
    if (a->whole) {
        hwg_store_whole(g, a, u->u);
        return;
    }
    hw_lv base = NULL, index = NULL;
    unsigned scale = 0;
    int64_t bias = 0;
    bool small = by_index(g, a) && small_index(g, a, &base, &index, &scale, &bias);
    for (unsigned k = 0; k < a->units; k++) {
        if (small) {
            hw_lv p = hwg_pointer(g, a, base, (int64_t)k * a->unit + bias);
            scatter_index(g, p, index, scale, u->u[k], a->unit);
            continue;
        }
        if (a->unit >= 4 && g->avx512) {
            hw_lv p = hwg_pointers(g, a, (int64_t)k * a->unit);
            hw_lt types[] = { LLVMTypeOf(u->u[k]), LLVMTypeOf(p) };
            hw_lv x[] = { u->u[k], p, hwg_k(g->i32, a->unit), hwg_mask_vec(g, g->exec) };
            hwg_intr(g, "llvm.masked.scatter", 2, types, 4, x);
            continue;
        }
        hw_lv addresses = hwg_scratch(g), values = hwg_gep_k(g, addresses, 8 * GEN_LANES);
        hwg_store(g, hwg_address_vector(g, a), addresses, 64);
        hwg_store(g, u->u[k], values, 64);
        lane_store s = { a, values, addresses, k };
        hwg_lane_loop(g, g->exec, store_lane, &s);
    }
}

/* All lanes to one address: the last of them wins. */
static void store_uniform(hw_gen *g, const hw_access *a, const hw_lanes *values, hw_lv *regs)
{
    units u = { { 0 } };
    hw_lv one[8], last = NULL;
    for (unsigned i = 0; i < a->in->count; i++) {
        if (values[i].kind == HW_SHAPE_UNIFORM) {
            one[i] = values[i].s;
            if (LLVMTypeOf(one[i]) == g->i1)
                one[i] = b_zext(g, one[i], g->i8);
            continue;
        }
        if (!last)
            last = b_and(g, hwg_last_lane(g, g->exec), hwg_k(g->i32, 31));
        one[i] = LLVMBuildExtractElement(g->b, regs[i], last, "");
    }
    units_of(g, a, one, &u);
    for (unsigned k = 0; k < a->units && !a->whole; k++) {
        hw_lv s = hwg_store(g, u.u[k], hwg_pointer(g, a, a->addr.s, (int64_t)k * a->unit), a->unit);
        if (a->in->flags & HW_I_VOLATILE)
            LLVMSetVolatile(s, true);
    }
    if (a->whole)
        hwg_store_whole(g, a, u.u);
}

static hw_lv interleave(hw_gen *g, const units *u, unsigned each, unsigned first, unsigned n)
{
    int idx[256];
    hw_lv x = u->u[0];
    if (each == 1) {
        for (unsigned l = 0; l < n; l++)
            idx[l] = (int)(first + l);
        return n == GEN_LANES ? x : hwg_shuffle(g, x, NULL, idx, n);
    }
    for (unsigned k = 1; k < each; k++) { /* concatenate, then reorder once */
        unsigned len = k * GEN_LANES;
        for (unsigned i = 0; i < (k + 1) * GEN_LANES; i++)
            idx[i] = (int)i;
        hw_lv y = u->u[k];
        if (k > 1) {
            int up[256];
            for (unsigned i = 0; i < len; i++)
                up[i] = i < GEN_LANES ? (int)i : -1;
            y = hwg_shuffle(g, y, NULL, up, len);
        }
        x = hwg_shuffle(g, x, y, idx, (k + 1) * GEN_LANES);
    }
    for (unsigned i = 0; i < n * each; i++)
        idx[i] = (int)(i % each * GEN_LANES + first + i / each);
    return hwg_shuffle(g, x, NULL, idx, n * each);
}

static void store_runs(hw_gen *g, const hw_access *a, const run *r, unsigned n, const units *u)
{
    for (unsigned i = 0; i < n; i++) {
        hw_lv p = lane_pointer(g, a, r[i].first, 0);
        hw_lv x = interleave(g, u, a->units, r[i].first, r[i].n);
        store_run(g, a, x, p, r[i].first, r[i].n, a->units);
    }
}

WHOLE(store)
{
    run r[MOST_RUNS];
    hw_lanes values[8];
    hw_lv regs[8];
    units u = { { 0 } };
    hw_access a = hwg_access(g, in, reg_bytes(in), in->count);
    for (unsigned i = 0; i < in->count; i++) {
        values[i] = hwg_src(g, in, i + 1);
        regs[i] = hwg_vector(g, values[i], hwg_src_type(g, in, i + 1));
        if (in->type == HW_T_I1)
            regs[i] = b_zext(g, regs[i], g->i8);
    }
    ordered(g, in, HW_I_VOLATILE | HW_I_RELEASE);
    if (a.addr.kind == HW_SHAPE_UNIFORM) {
        store_uniform(g, &a, values, regs);
        return;
    }
    units_of(g, &a, regs, &u);
    unsigned n = a.addr.kind == HW_SHAPE_AFFINE && !by_index(g, &a) ? find_runs(&a, r) : 0;
    if (all_step(r, n, 1))
        store_runs(g, &a, r, n, &u);
    else
        scatter(g, &a, &u);
    ordered(g, in, HW_I_VOLATILE);
}

WHOLE(fence)
{
    bool block = in->scope == HW_SCOPE_BLOCK || in->scope == HW_SCOPE_LANE;
    LLVMBuildFence(g->b, LLVMAtomicOrderingSequentiallyConsistent, block, "");
}

WHOLE(prefetch)
{
    (void)g, (void)in; /* a hint; the host's prefetchers see the same addresses */
}
