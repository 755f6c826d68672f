/* SPDX-License-Identifier: Apache-2.0
 *
 * Counting in generated code: one addition a block, one for all accesses of a block through one
 * address register whose lanes' pattern is known, and a call where it is not.
 *
 * A pattern counts only with all 32 lanes: then the accesses of equal class (address modulo 256 of
 * lane 0) are equal to every rule of a device. With fewer lanes the addresses are told. A pattern
 * that is known at run time only counts while it is the one first seen.
 *
 * Nothing of this file runs for code that nobody listens to.
 */
#include "count.h"
#include "gen.h"

/* The tables go by numbers that simplification leaves, and need no flags any more but of branches. */
static void number_insns(hw_wir_module *m)
{
    for (size_t f = 0; f < m->functions.len; f++) {
        uint32_t n = 0;
        for (size_t b = 0; b < m->functions.ptr[f].blocks.len; b++) {
            const hw_wir_block *w = &m->functions.ptr[f].blocks.ptr[b];
            for (size_t i = 0; i < w->insns.len; i++) {
                w->insns.ptr[i].number = ++n;
                w->insns.ptr[i].flags &=
                    ~(uint32_t)(HW_I_HEAD | HW_I_MADE | HW_I_CALLS | HW_I_MOVE_PARAM | HW_I_MATRIX);
            }
        }
    }
}

void hwg_count_begin(hw_gen *g)
{
    if (!g->v->listeners)
        return;
    g->count = hw_count_tabulate(g->arena, g->m);
    number_insns(g->m);
}

void hwg_count_end(hw_gen *g)
{
    if (g->count)
        g->info->count = hw_count_finish(g->count);
}

/* ---- counters ---- */

static hw_lv counter(hw_gen *g, uint32_t index)
{
    hw_lv base = hwg_frame_once(g, offsetof(hw_frame, counters), g->ptr);
    return hwg_gep_k(g, base, (int64_t)index * 8);
}

static void add_at(hw_gen *g, hw_lv p, hw_lv by)
{
    hwg_store(g, b_add(g, hwg_load(g, g->i64, p, 8), by), p, 8);
}

static void add(hw_gen *g, uint32_t index, hw_lv by)
{
    add_at(g, counter(g, index), by);
}

static hw_lv lanes_in(hw_gen *g, hw_lv mask)
{
    return b_zext(g, hwg_intr1(g, "llvm.ctpop", mask), g->i64);
}

static hw_count_map *map_of(hw_gen *g)
{
    return &g->count->map[g->findex];
}

static uint32_t number(hw_gen *g)
{
    return g->in->number - 1;
}

/* ---- which sites are counted together ---- */

/* The address operand of an instruction's k-th site. */
static unsigned operand(const hw_wir_insn *in, unsigned k)
{
    return in->op == HW_W_COPY ? 1 - k : 0;
}

static uint8_t class_shift(const hw_site *s)
{
    return (uint8_t)__builtin_ctzll((uint64_t)s->add | s->bytes);
}

typedef struct gathering {
    hw_gen *g;
    hw_count_map *map;
    const hw_wir_block *w;
    uint32_t *leader; /* per register: the first site through it, or HW_NO_INDEX */
    uint32_t *epoch_of, epoch;
} gathering;

static hw_site *site_at(hw_gen *g, uint32_t i)
{
    return &g->count->sites.ptr[i];
}

/* Whether somebody wants the site's addresses in order. */
static bool is_followed(const hw_gen *g, const hw_site *s)
{
    return (g->v->listeners & HW_LISTEN_ACCESS) && s->space != HW_SITE_SHARED;
}

/* Local memory is interleaved: where lanes are does not follow from where lane 0 is. */
static bool can_have_pattern(const hw_gen *g, const hw_site *s)
{
    return s->space != HW_SITE_GENERIC && (s->space != HW_SITE_LOCAL || !is_followed(g, s));
}

/* Joins the site to those through the same unchanged register, if there are some. */
static void join(gathering *t, const hw_wir_insn *in, uint32_t site)
{
    hw_site *s = site_at(t->g, site);
    s->shift = class_shift(s);
    t->g->count->leads[site] = true;
    if (in->op == HW_W_COPY || in->op == HW_W_HELPER || in->guard.kind == HW_V_REG ||
        in->src[0].kind != HW_V_REG || is_followed(t->g, s))
        return;
    uint32_t reg = in->src[0].reg, first = t->leader[reg];
    if (t->epoch_of[reg] != t->epoch || site_at(t->g, first)->space != s->space) {
        t->leader[reg] = site;
        t->epoch_of[reg] = t->epoch;
        return;
    }
    hw_site *l = site_at(t->g, first);
    s->next = l->next; /* the leader's list is in reverse order; nobody minds */
    l->next = site;
    l->shift = s->shift < l->shift ? s->shift : l->shift;
    t->g->count->leads[site] = false;
}

/* A warp may leave the code, or come into it, before instruction i: what is counted ahead must have
 * happened. */
static bool passes_through(const gathering *t, uint32_t i)
{
    const hw_gen *g = t->g;
    uint32_t at = g->an->first_insn[g->block] + i;
    return !g->an->wrap_guard[at] && !(g->deopts_to && g->deopts_to[at]);
}

static const hw_shape *shape_of(const hw_gen *g, hw_wir_val v)
{
    static const hw_shape constant = { .kind = HW_SHAPE_UNIFORM };
    return v.kind == HW_V_REG ? &g->an->shape[v.reg] : &constant;
}

/* Counters for the leader's pattern, if it has one; shared by all that are counted with it. */
static void give_counters(hw_gen *g, const hw_wir_insn *in, uint32_t site, unsigned k)
{
    hw_site *l = site_at(g, site);
    const hw_shape *shape = shape_of(g, in->src[operand(in, k)]);
    uint8_t known = shape->kind == HW_SHAPE_VARYING ? HW_SITE_SEEN
                    : shape->d                      ? HW_SITE_STRIDE
                                                    : HW_SITE_FIXED;
    uint32_t first = HW_NO_INDEX;
    if (can_have_pattern(g, l)) {
        static const uint8_t before[] = { 0, 2, GEN_LANES + 1 };
        g->count->t.n_counters += before[known];
        first = g->count->t.n_counters;
        g->count->t.n_counters += (uint32_t)HW_ACCESS_PERIOD >> l->shift;
    }
    uint8_t shift = l->shift;
    for (uint32_t i = site; i != HW_NO_INDEX; i = site_at(g, i)->next) {
        hw_site *s = site_at(g, i);
        s->first = first;
        s->shift = shift;
        s->known = known;
        s->offset = shape->kind == HW_SHAPE_AFFINE ? shape->c : NULL;
        s->scale = shape->kind == HW_SHAPE_AFFINE ? shape->d : NULL;
    }
}

static void join_all(gathering *t)
{
    for (uint32_t i = 0; i < t->w->insns.len; i++) {
        const hw_wir_insn *in = &t->w->insns.ptr[i];
        uint32_t site = t->map->site[in->number - 1];
        if (!passes_through(t, i) || hw_wir_ops[in->op].flags & (HW_WF_S | HW_WF_E))
            t->epoch++;
        if (site != HW_NO_INDEX) {
            join(t, in, site);
            if (in->op == HW_W_COPY)
                join(t, in, site + 1);
        }
        for (uint32_t k = 0; k < in->ndst; k++)
            if (in->dst[k].kind == HW_V_REG)
                t->epoch_of[in->dst[k].reg] = 0;
    }
}

/* Once a block: FULL and MASKED code count alike. */
static void gather(hw_gen *g)
{
    hw_count_map *map = map_of(g);
    if (map->grouped[g->block])
        return;
    map->grouped[g->block] = true;
    if (!map->leader) {
        map->leader = HW_NEW_N(g->arena, uint32_t, g->f->regs.len + 1);
        map->epoch_of = HW_NEW_N(g->arena, uint32_t, g->f->regs.len + 1);
    }
    gathering t = {
        g, map, &g->f->blocks.ptr[g->block], map->leader, map->epoch_of, map->epoch + 1
    };
    join_all(&t);
    map->epoch = t.epoch;
    for (uint32_t i = 0; i < t.w->insns.len; i++) {
        const hw_wir_insn *in = &t.w->insns.ptr[i];
        uint32_t site = map->site[in->number - 1];
        if (site == HW_NO_INDEX || in->op == HW_W_HELPER)
            continue;
        for (unsigned k = 0; g->count->leads[site] && k < (in->op == HW_W_COPY ? 2 : 1); k++)
            give_counters(g, in, site + k, k);
    }
}

/* ---- blocks, guards, branches ---- */

void hwg_count_block(hw_gen *g)
{
    if (!g->count)
        return;
    gather(g);
    const hw_count_table *t = &g->count->t;
    uint32_t b = map_of(g)->base + g->block;
    if (g->version == GEN_FULL) {
        add(g, t->full + b, hwg_k(g->i64, 1));
        return;
    }
    add(g, t->part + 2 * b, hwg_k(g->i64, 1));
    add(g, t->part + 2 * b + 1, lanes_in(g, g->mask));
}

static uint32_t guard_here(hw_gen *g)
{
    return g->count ? map_of(g)->guard[number(g)] : HW_NO_INDEX;
}

void hwg_count_guard(hw_gen *g)
{
    uint32_t guard = guard_here(g);
    if (guard == HW_NO_INDEX || g->in->op == HW_W_CBR || g->in->op == HW_W_BRX)
        return;
    bool others = g->in->flags & HW_I_ELSE;
    hw_lv on = others ? b_and(g, g->mask, b_not(g, g->exec)) : g->exec;
    add(g, g->count->t.guards + guard, lanes_in(g, on));
}

void hwg_count_taken(hw_gen *g, hw_lv p)
{
    uint32_t guard = guard_here(g);
    if (guard == HW_NO_INDEX)
        return;
    hw_lv none = hwg_k(g->i32, 0);
    hw_lv on = LLVMTypeOf(p) == g->i1 ? b_select(g, p, g->mask, none) : b_and(g, p, g->mask);
    if (g->in->flags & HW_I_ELSE)
        on = b_and(g, g->mask, b_not(g, on));
    add(g, g->count->t.guards + guard, lanes_in(g, on));
}

/* ---- ends of threads ---- */

enum { ENDS_TOLD_APART = 64 }; /* further ones count once each time lanes come to them */

static hw_lv ended_here(hw_gen *g)
{
    if (g->f->is_kernel)
        return hwg_frame_addr(g, offsetof(hw_frame, ends));
    if (!g->ended) {
        hw_lb here = LLVMGetInsertBlock(g->b);
        hwg_at(g, g->entry);
        g->ended = hwg_alloca(g, g->i64, "ended");
        hwg_at(g, g->entry);
        LLVMBuildStore(g->b, hwg_k(g->i64, 0), g->ended);
        hwg_at(g, here);
    }
    return g->ended;
}

static void count_end(hw_gen *g, uint32_t end, hw_lv lanes)
{
    if (end == HW_NO_INDEX)
        return;
    const hw_count_end *e = &g->count->ends.ptr[end];
    uint32_t counters = g->count->t.part + 2 * e->block;
    hw_lv come = b_zext(g, b_icmp(g, LLVMIntNE, lanes, hwg_k(g->i32, 0)), g->i64);
    add(g, counters + 1, lanes_in(g, lanes));
    if (e->number < ENDS_TOLD_APART) {
        hw_lv at = ended_here(g), before = hwg_load(g, g->i64, at, 8);
        hw_lv bit = b_shl(g, come, hwg_k(g->i64, e->number));
        hwg_store(g, b_or(g, before, bit), at, 8);
        bit = b_and(g, bit, b_not(g, before));
        come = b_zext(g, b_icmp(g, LLVMIntNE, bit, hwg_k(g->i64, 0)), g->i64);
    }
    add(g, counters, come);
}

void hwg_count_end_here(hw_gen *g)
{
    if (g->count)
        count_end(g, map_of(g)->end[number(g)], g->exec);
}

void hwg_count_end_at(hw_gen *g, uint32_t block, hw_lv lanes)
{
    if (g->count)
        count_end(g, map_of(g)->end[g->f->blocks.ptr[block].insns.ptr[0].number - 1], lanes);
}

/* ---- branches ---- */

static uint32_t branch_here(hw_gen *g)
{
    return g->count ? map_of(g)->branch[number(g)] : HW_NO_INDEX;
}

void hwg_count_uniform(hw_gen *g)
{
    uint32_t b = branch_here(g);
    if (b != HW_NO_INDEX)
        g->count->branches.ptr[b].uniform = true;
}

void hwg_count_parting(hw_gen *g, hw_lv some)
{
    uint32_t b = branch_here(g);
    if (b == HW_NO_INDEX)
        return;
    hw_lv any = b_icmp(g, LLVMIntNE, some, hwg_k(g->i32, 0));
    hw_lv parted = b_and(g, any, b_icmp(g, LLVMIntNE, some, g->mask));
    add(g, g->count->t.divergent + b, b_zext(g, parted, g->i64));
}

/* The mask of lanes whose index leads to the same block as that of the first. */
static hw_lv same_way(hw_gen *g, hw_lv v)
{
    const hw_wir_block *w = &g->f->blocks.ptr[g->block];
    hw_lv first = b_and(g, hwg_first_lane(g, g->mask), hwg_k(g->i32, GEN_LANES - 1));
    hw_lv x = LLVMBuildExtractElement(g->b, v, first, ""), all = hwg_splat(g, x, GEN_LANES);
    hw_lv same = hwg_vec_mask(g, b_icmp(g, LLVMIntEQ, v, all));
    for (uint32_t i = 0; i < w->ntargets; i++)
        for (uint32_t k = 0; k < w->ntargets; k++) {
            if (k == i || w->targets[k] != w->targets[i])
                continue;
            hw_lv from = b_sext(g, b_icmp(g, LLVMIntEQ, x, hwg_k(g->i32, i)), g->i32);
            hw_lv to = hwg_vec_mask(g, b_icmp(g, LLVMIntEQ, v, hwg_klike(v, k)));
            same = b_or(g, same, b_and(g, from, to));
        }
    return b_and(g, same, g->mask);
}

void hwg_count_ways(hw_gen *g, hw_lv v)
{
    if (branch_here(g) != HW_NO_INDEX)
        hwg_count_parting(g, same_way(g, v));
}

/* ---- accesses ---- */

static hw_lv wide(hw_gen *g, hw_lv x)
{
    return x && hwg_elem(x) == g->i32 ? b_sext(g, x, g->i64) : x;
}

static hw_lv on_tape(hw_gen *g, size_t offset)
{
    hw_lv base = hwg_frame_once(g, offsetof(hw_frame, counters), g->ptr);
    return hwg_gep_k(g, base, (int64_t)offset - (int64_t)sizeof(hw_tape));
}

/* Writes an access on the tape, which is gone through when it is full. */
static void write_tape(hw_gen *g, uint32_t site, hw_lv lanes, hw_lv addresses)
{
    hw_lv count = on_tape(g, offsetof(hw_tape, n)), n = hwg_load(g, g->i64, count, 8);
    hw_lv at = b_mul(g, n, hwg_k(g->i64, sizeof(uint64_t[HW_WARP_LANES])));
    hw_lv entry = b_mul(g, n, hwg_k(g->i64, sizeof(hw_tape_entry)));
    hw_lv to = hwg_gep(g, on_tape(g, offsetof(hw_tape, entry)), entry);
    hw_lv next = b_add(g, n, hwg_k(g->i64, 1));
    hw_lv warp = hwg_frame(g, offsetof(hw_frame, warp), g->i32);
    hw_lv which = b_or(g, b_shl(g, warp, hwg_k(g->i32, HW_TAPE_SITE_BITS)), hwg_k(g->i32, site));
    hw_lv both =
        b_or(g, b_shl(g, b_zext(g, lanes, g->i64), hwg_k(g->i64, 32)), b_zext(g, which, g->i64));
    hw_lb full = hwg_block(g, "full"), on = hwg_block(g, "told");
    hwg_store(g, addresses, hwg_gep(g, on_tape(g, offsetof(hw_tape, address)), at),
              hwg_lanes(addresses) == 1 ? 8 : 64);
    hwg_store(g, g->frame, hwg_gep_k(g, to, offsetof(hw_tape_entry, frame)), 8);
    hwg_store(g, both, hwg_gep_k(g, to, offsetof(hw_tape_entry, lanes) - sizeof(uint32_t)), 8);
    hwg_store(g, next, count, 8);
    hwg_unlikely(g, b_icmp(g, LLVMIntEQ, next, hwg_k(g->i64, HW_TAPE_ENTRIES)), full, on);
    hwg_at(g, full);
    hw_lt args[] = { g->ptr };
    hwg_callback(g, offsetof(hw_callbacks, listen), LLVMFunctionType(g->voidt, args, 1, false),
                 &g->frame, 1);
    LLVMBuildBr(g->b, on);
    hwg_at(g, on);
}

static void tell(hw_gen *g, uint32_t site, hw_lanes addr)
{
    write_tape(g, site, g->exec, hwg_vector(g, addr, HW_T_I64));
}

static hw_lv lane0(hw_gen *g, hw_lanes addr)
{
    if (addr.kind != HW_SHAPE_VARYING)
        return addr.s;
    return LLVMBuildExtractElement(g->b, addr.v, hwg_k(g->i32, 0), "");
}

static void count_class(hw_gen *g, uint32_t site, hw_lanes addr)
{
    const hw_site *s = site_at(g, site);
    hw_lv address = lane0(g, addr);
    if (is_followed(g, s))
        write_tape(g, site, hwg_k(g->i32, 0), address);
    if (s->space == HW_SITE_LOCAL)
        address = b_sub(g, address, hwg_frame_once(g, offsetof(hw_frame, local), g->i64));
    hw_lv low = b_and(g, address, hwg_k(g->i64, HW_ACCESS_PERIOD - 1));
    hw_lv byte = b_shl(g, b_lshr(g, low, hwg_k(g->i64, s->shift)), hwg_k(g->i64, 3));
    add_at(g, hwg_gep(g, counter(g, s->first), byte), hwg_k(g->i64, 1));
}

/* Whether this access is one of those that only need counting. */
static hw_lv is_plain(hw_gen *g, const hw_site *s, hw_lanes addr)
{
    hw_lv all = b_icmp(g, LLVMIntEQ, g->exec, hwg_k(g->i32, UINT32_MAX));
    if (s->known == HW_SITE_STRIDE) {
        hw_lv r = hwg_load(g, g->i64, counter(g, s->first - 1), 8);
        return b_and(g, all, b_icmp(g, LLVMIntEQ, r, addr.r));
    }
    if (s->known == HW_SITE_SEEN) {
        hw_lt t = LLVMVectorType(g->i64, GEN_LANES);
        hw_lv far = b_sub(g, addr.v, hwg_splat(g, lane0(g, addr), GEN_LANES));
        hw_lv seen = hwg_load(g, t, counter(g, s->first - GEN_LANES), 8);
        hw_lv same = hwg_vec_mask(g, b_icmp(g, LLVMIntEQ, far, seen));
        return b_and(g, all, b_icmp(g, LLVMIntEQ, same, hwg_k(g->i32, UINT32_MAX)));
    }
    return all;
}

static void count_site(hw_gen *g, const hw_wir_insn *in, uint32_t site, unsigned k)
{
    const hw_site *s = site_at(g, site);
    hw_lanes addr = hwg_src(g, in, operand(in, k));
    addr.s = wide(g, addr.s);
    addr.r = wide(g, addr.r);
    addr.v = wide(g, addr.v);
    if (s->first == HW_NO_INDEX) {
        tell(g, site, addr);
        return;
    }
    hw_lv plain = is_plain(g, s, addr);
    if (LLVMIsAConstantInt(plain) && LLVMConstIntGetZExtValue(plain)) {
        count_class(g, site, addr);
        return;
    }
    hw_lb yes = hwg_block(g, "plain"), no = hwg_block(g, "told"), on = hwg_block(g, "counted");
    hwg_likely(g, plain, yes, no);
    hwg_at(g, yes);
    count_class(g, site, addr);
    LLVMBuildBr(g->b, on);
    hwg_at(g, no);
    tell(g, site, addr);
    LLVMBuildBr(g->b, on);
    hwg_at(g, on);
}

/* What a copy reads: lanes that only fill with zeros read nothing. */
static void count_read(hw_gen *g, const hw_wir_insn *in, uint32_t site)
{
    hw_lv all = g->exec;
    if (in->src[2].kind != HW_V_REG) {
        if (in->src[2].imm)
            count_site(g, in, site, 0);
        return;
    }
    hw_lv bytes = hwg_src_vec(g, in, 2);
    hw_lb yes = hwg_block(g, "reads"), on = hwg_block(g, "read");
    g->exec = b_and(g, all, hwg_vec_mask(g, b_icmp(g, LLVMIntNE, bytes, hwg_klike(bytes, 0))));
    LLVMBuildCondBr(g->b, b_icmp(g, LLVMIntNE, g->exec, hwg_k(g->i32, 0)), yes, on);
    hwg_at(g, yes);
    count_site(g, in, site, 0);
    LLVMBuildBr(g->b, on);
    hwg_at(g, on);
    g->exec = all;
}

void hwg_count_access(hw_gen *g, const hw_wir_insn *in)
{
    uint32_t site = g->count ? map_of(g)->site[number(g)] : HW_NO_INDEX;
    if (site == HW_NO_INDEX || !g->count->leads[site])
        return;
    if (in->op == HW_W_HELPER) { /* which tells */
        hwg_store(g, hwg_k(g->i32, site), hwg_frame_addr(g, offsetof(hw_frame, told_site)), 4);
        return;
    }
    if (in->op == HW_W_COPY) {
        count_read(g, in, site);
        site++;
    }
    count_site(g, in, site, in->op == HW_W_COPY);
}
