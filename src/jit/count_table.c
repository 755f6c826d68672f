/* SPDX-License-Identifier: Apache-2.0
 *
 * The static side of counting: which PTX instructions a block holds, of which classes, and where
 * they touch memory or branch.
 *
 * A PTX instruction may have become several operations. One of them, the head, counts it; those behind
 * that have the same place say more of it, and the dearest gives its class. What inlining and flattening
 * calls have made counts nothing.
 *
 * An end of threads that stands alone in its block is counted apart (hw_count_end): lanes end where they
 * branch to it, in several places perhaps, but it is one instruction, executed once a warp.
 */
#include "count.h"

/* ---- classes ---- */

/* Classes of operations on 32-bit floats; other floats have the same row of their own. */
enum { ADD_OF, MUL_OF, FMA_OF, OTHER_OF };

typedef struct op_class {
    uint8_t cls;
    bool is_float; /* cls is one of ADD_OF ... */
} op_class;

#define C(name)      { HW_INST_##name, false }
#define FLOAT(which) { which, true }
/* clang-format off */
static const op_class op_classes[HW_W_COUNT] = {
    [HW_W_MOV] = C(MOVE), [HW_W_SELECT] = C(MOVE), [HW_W_BITCAST] = C(MOVE), [HW_W_SREG] = C(MOVE),
    [HW_W_PARAM_ADDR] = C(MOVE), [HW_W_SYMBOL] = C(MOVE), [HW_W_FUNC_ADDR] = C(MOVE),
    [HW_W_LOCAL_ADDR] = C(MOVE), [HW_W_SHARED_BASE] = C(MOVE), [HW_W_ISSPACE] = C(INT),
    [HW_W_ADD] = C(INT), [HW_W_SUB] = C(INT), [HW_W_DIV_U] = C(INT), [HW_W_DIV_S] = C(INT),
    [HW_W_REM_U] = C(INT), [HW_W_REM_S] = C(INT), [HW_W_MIN_U] = C(INT), [HW_W_MIN_S] = C(INT),
    [HW_W_MAX_U] = C(INT), [HW_W_MAX_S] = C(INT), [HW_W_ADD_SAT_S] = C(INT), [HW_W_SUB_SAT_S] = C(INT),
    [HW_W_ABS] = C(INT), [HW_W_POPC] = C(INT), [HW_W_CLZ] = C(INT), [HW_W_BREV] = C(INT),
    [HW_W_BFE_U] = C(INT), [HW_W_BFE_S] = C(INT), [HW_W_BFI] = C(INT), [HW_W_ICMP] = C(INT),
    [HW_W_MUL] = C(IMUL), [HW_W_DOT4] = C(IMUL), [HW_W_MULHI_U] = C(IMUL), [HW_W_MULHI_S] = C(IMUL),
    [HW_W_AND] = C(LOGIC), [HW_W_OR] = C(LOGIC), [HW_W_XOR] = C(LOGIC), [HW_W_NOT] = C(LOGIC),
    [HW_W_SHL] = C(LOGIC), [HW_W_SHR_U] = C(LOGIC), [HW_W_SHR_S] = C(LOGIC), [HW_W_FSHL] = C(LOGIC),
    [HW_W_FSHR] = C(LOGIC), [HW_W_PRMT] = C(LOGIC), [HW_W_LOP3] = C(LOGIC),
    [HW_W_ZEXT] = C(CONVERT), [HW_W_SEXT] = C(CONVERT), [HW_W_TRUNC] = C(CONVERT), [HW_W_FCVT] = C(CONVERT),
    [HW_W_F2I_S] = C(CONVERT), [HW_W_F2I_U] = C(CONVERT), [HW_W_I2F_S] = C(CONVERT), [HW_W_I2F_U] = C(CONVERT),
    [HW_W_FRINT] = C(CONVERT),
    [HW_W_FADD] = FLOAT(ADD_OF), [HW_W_FSUB] = FLOAT(ADD_OF), [HW_W_FMUL] = FLOAT(MUL_OF), [HW_W_FFMA] = FLOAT(FMA_OF),
    [HW_W_FDIV] = FLOAT(OTHER_OF), [HW_W_FSQRT] = FLOAT(OTHER_OF), [HW_W_FMIN] = FLOAT(OTHER_OF),
    [HW_W_FMAX] = FLOAT(OTHER_OF), [HW_W_FNEG] = FLOAT(OTHER_OF), [HW_W_FABS] = FLOAT(OTHER_OF),
    [HW_W_FCOPYSIGN] = FLOAT(OTHER_OF), [HW_W_FCMP] = FLOAT(OTHER_OF), [HW_W_FCLASS] = FLOAT(OTHER_OF),
    [HW_W_RCP_APPROX] = C(SFU), [HW_W_RSQRT_APPROX] = C(SFU), [HW_W_SQRT_APPROX] = C(SFU),
    [HW_W_DIV_APPROX] = C(SFU), [HW_W_DIV_FULL] = C(SFU), [HW_W_SIN_APPROX] = C(SFU), [HW_W_COS_APPROX] = C(SFU),
    [HW_W_EX2_APPROX] = C(SFU), [HW_W_LG2_APPROX] = C(SFU), [HW_W_TANH_APPROX] = C(SFU),
    [HW_W_FENCE] = C(FENCE), [HW_W_PREFETCH] = C(MISC), [HW_W_NOP] = C(MISC), [HW_W_CLOCK] = C(MISC), [HW_W_COPY] = C(COPY),
    [HW_W_BALLOT] = C(LANES), [HW_W_ACTIVEMASK] = C(LANES), [HW_W_VOTE_ALL] = C(LANES), [HW_W_VOTE_ANY] = C(LANES),
    [HW_W_VOTE_UNI] = C(LANES), [HW_W_SHFL] = C(LANES), [HW_W_MATCH_ANY] = C(LANES), [HW_W_MATCH_ALL] = C(LANES),
    [HW_W_REDUX] = C(LANES), [HW_W_ELECT] = C(LANES), [HW_W_WARPSYNC] = C(LANES),
    [HW_W_BARRIER] = C(BARRIER), [HW_W_BARRIER_ARRIVE] = C(BARRIER), [HW_W_BARRIER_RED] = C(BARRIER),
    [HW_W_YIELD] = C(MISC), [HW_W_BR] = C(BRANCH), [HW_W_CBR] = C(BRANCH), [HW_W_BRX] = C(BRANCH),
    [HW_W_RET] = C(CALL), [HW_W_EXIT] = C(EXIT), [HW_W_TRAP] = C(EXIT), [HW_W_CALL] = C(CALL), [HW_W_CALLI] = C(CALL),
};
static const uint8_t helper_classes[HW_H_COUNT] = {
    [HW_H_VPRINTF] = HW_INST_MISC, [HW_H_ASSERTFAIL] = HW_INST_MISC, [HW_H_MALLOC] = HW_INST_MISC,
    [HW_H_FREE] = HW_INST_MISC, [HW_H_FNS] = HW_INST_INT, [HW_H_VIDEO] = HW_INST_INT, [HW_H_MMA] = HW_INST_TENSOR,
    [HW_H_LDMATRIX] = HW_INST_LD_SHARED, [HW_H_WMMA_LOAD] = HW_INST_LD_GENERIC, [HW_H_NARROW] = HW_INST_CONVERT,
    [HW_H_TEX] = HW_INST_TEXTURE, [HW_H_TEX_QUERY] = HW_INST_TEXTURE, [HW_H_SURF] = HW_INST_SURFACE, [HW_H_MBARRIER] = HW_INST_BARRIER,
    [HW_H_MBARRIER_WAIT] = HW_INST_BARRIER, [HW_H_BULK] = HW_INST_COPY, [HW_H_TENSOR] = HW_INST_COPY,
    [HW_H_WGMMA] = HW_INST_TENSOR, [HW_H_MMA_MORE] = HW_INST_TENSOR,
    [HW_H_TMEM] = HW_INST_MISC, [HW_H_TMEM_LOAD] = HW_INST_COPY, [HW_H_TMEM_STORE] = HW_INST_COPY,
    [HW_H_TMEM_COPY] = HW_INST_COPY, [HW_H_TMEM_SHIFT] = HW_INST_COPY, [HW_H_TMEM_MMA] = HW_INST_TENSOR, [HW_H_TMEM_COMMIT] = HW_INST_BARRIER,
};
static const uint8_t load_classes[HW_SPACE_COUNT] = {
    [HW_SPACE_GENERIC] = HW_INST_LD_GENERIC, [HW_SPACE_GLOBAL] = HW_INST_LD_GLOBAL, [HW_SPACE_SHARED] = HW_INST_LD_SHARED,
    [HW_SPACE_LOCAL] = HW_INST_LD_LOCAL, [HW_SPACE_CONST] = HW_INST_LD_CONST, [HW_SPACE_PARAM] = HW_INST_LD_PARAM,
};
static const uint8_t store_classes[HW_SPACE_COUNT] = {
    [HW_SPACE_GENERIC] = HW_INST_ST_GENERIC, [HW_SPACE_GLOBAL] = HW_INST_ST_GLOBAL, [HW_SPACE_SHARED] = HW_INST_ST_SHARED,
    [HW_SPACE_LOCAL] = HW_INST_ST_LOCAL, [HW_SPACE_CONST] = HW_INST_ST_GENERIC, [HW_SPACE_PARAM] = HW_INST_ST_GENERIC,
};
/* The dearer operation names the instruction; ties go to the first. */
static const uint8_t group_rank[HW_INST_GROUP_COUNT] = {
    [HW_INST_GROUP_MOVE] = 1, [HW_INST_GROUP_PREDICATE] = 2, [HW_INST_GROUP_INT] = 3, [HW_INST_GROUP_CONVERT] = 5,
    [HW_INST_GROUP_FP32] = 6, [HW_INST_GROUP_FP64] = 6, [HW_INST_GROUP_FP16] = 6, [HW_INST_GROUP_SFU] = 10,
    [HW_INST_GROUP_LANES] = 11, [HW_INST_GROUP_TENSOR] = 12, [HW_INST_GROUP_CONTROL] = 13, [HW_INST_GROUP_FENCE] = 14,
    [HW_INST_GROUP_MISC] = 14, [HW_INST_GROUP_PARAM] = 15, [HW_INST_GROUP_LOAD] = 15, [HW_INST_GROUP_STORE] = 15,
    [HW_INST_GROUP_ATOMIC] = 16, [HW_INST_GROUP_TEXTURE] = 16, [HW_INST_GROUP_BARRIER] = 16,
};
static const uint8_t float_classes[3][4] = {
    { HW_INST_FADD, HW_INST_FMUL, HW_INST_FFMA, HW_INST_FP32 },
    { HW_INST_DADD, HW_INST_DMUL, HW_INST_DFMA, HW_INST_FP64 },
    { HW_INST_HADD, HW_INST_HMUL, HW_INST_HFMA, HW_INST_FP16 },
};
/* clang-format on */
#undef C
#undef FLOAT

static unsigned rank(unsigned cls)
{
    static const uint8_t own[HW_INST_COUNT] = {
        [HW_INST_INT] = 4,  [HW_INST_IMUL] = 7, [HW_INST_FADD] = 8, [HW_INST_FMUL] = 8,
        [HW_INST_FFMA] = 9, [HW_INST_DADD] = 8, [HW_INST_DMUL] = 8, [HW_INST_DFMA] = 9,
        [HW_INST_HADD] = 8, [HW_INST_HMUL] = 8, [HW_INST_HFMA] = 9,
    };
    return own[cls] ? own[cls] : group_rank[hw_inst_class_of(cls)->group];
}

static unsigned float_class(const hw_wir_insn *in, unsigned which)
{
    unsigned row = in->type == HW_T_F32 ? 0 : in->type == HW_T_F64 ? 1 : 2;
    return float_classes[row][which];
}

static unsigned atomic_class(const hw_wir_insn *in)
{
    bool shared = in->space == HW_SPACE_SHARED;
    if (in->op == HW_W_ATOM)
        return shared ? HW_INST_ATOM_SHARED : HW_INST_ATOM;
    return shared ? HW_INST_RED_SHARED : HW_INST_RED;
}

static bool ends_lanes(const hw_wir_insn *in)
{
    return in->op == HW_W_EXIT || in->op == HW_W_RET;
}

/* Lanes may part here. */
static bool is_branch(const hw_wir_insn *in)
{
    bool parts =
        in->op == HW_W_CBR || in->op == HW_W_BRX || (ends_lanes(in) && in->guard.kind == HW_V_REG);
    return parts && !(in->flags & (HW_I_CALLS | HW_I_MADE));
}

static unsigned class_of(const hw_wir_function *f, const hw_wir_insn *in)
{
    if (in->flags & HW_I_CALLS)
        return HW_INST_CALL;
    if (in->flags & HW_I_MOVE_PARAM)
        return HW_INST_CALL_PARAM;
    switch (in->op) {
    case HW_W_LOAD:
        return load_classes[in->space];
    case HW_W_STORE:
        return store_classes[in->space];
    case HW_W_ATOM:
    case HW_W_RED:
        return atomic_class(in);
    case HW_W_HELPER:
        return in->imm < HW_H_COUNT ? helper_classes[in->imm] : HW_INST_MISC;
    case HW_W_RET:
    case HW_W_EXIT:
        return in->imm ? HW_INST_BRANCH : f->is_kernel ? HW_INST_EXIT : HW_INST_CALL;
    default:
        break;
    }
    const op_class *c = &op_classes[in->op];
    if (c->is_float)
        return float_class(in, c->cls);
    return c->cls == HW_INST_LOGIC && in->type == HW_T_I1 ? HW_INST_PREDICATE : c->cls;
}

/* ---- sites ---- */

static unsigned bytes_of(const hw_wir_insn *in)
{
    unsigned bits = hw_wir_bits((hw_wir_type)in->type);
    return (bits < 8 ? 1 : bits / 8) * in->count;
}

static const uint8_t site_space[HW_SPACE_COUNT] = {
    [HW_SPACE_GENERIC] = HW_SITE_GENERIC, [HW_SPACE_GLOBAL] = HW_SITE_GLOBAL,
    [HW_SPACE_SHARED] = HW_SITE_SHARED,   [HW_SPACE_LOCAL] = HW_SITE_LOCAL,
    [HW_SPACE_CONST] = HW_SITE_CONST,
};

static hw_site site_of(const hw_wir_insn *in, hw_site_kind kind, unsigned space)
{
    bool atomic = kind == HW_SITE_ATOMIC || kind == HW_SITE_REDUCTION;
    return (hw_site){ .place = in->loc,
                      .kind = (uint8_t)kind,
                      .space = site_space[space],
                      .bytes = (uint8_t)bytes_of(in),
                      .elements = in->count,
                      .atom = in->atom,
                      .readonly = kind == HW_SITE_LOAD && in->flags & HW_I_READONLY,
                      .part = in->flags & HW_I_PART,
                      .via = in->flags & HW_I_MATRIX ? HW_VIA_MATRIX : HW_VIA_PLAIN,
                      .bypass_l1 = atomic || in->flags & (HW_I_VOLATILE | HW_I_L2),
                      .add = (int64_t)in->imm,
                      .next = HW_NO_INDEX,
                      .first = HW_NO_INDEX };
}

static void add_site(hw_counting *c, hw_site s)
{
    s.block = (uint32_t)c->blocks.len;
    s.inst = (uint32_t)c->insts.len;
    hw_vec_push(c->arena, &c->sites, s);
}

/* A copy reads global memory and writes shared memory. */
static void add_copy(hw_counting *c, const hw_wir_insn *in)
{
    hw_site from = site_of(in, HW_SITE_LOAD, HW_SPACE_GLOBAL);
    from.via = HW_VIA_COPY;
    from.bytes = (uint8_t)in->imm;
    from.elements = 1;
    from.add = 0;
    hw_site to = from;
    to.kind = HW_SITE_STORE;
    to.space = HW_SITE_SHARED;
    add_site(c, from);
    add_site(c, to);
}

/* Textures and surfaces; which texels they touch is known when they have been looked up. */
static bool add_texels(hw_counting *c, const hw_wir_insn *in)
{
    if (in->imm != HW_H_TEX && in->imm != HW_H_SURF)
        return false;
    hw_site s = {
        .place = in->loc, .readonly = in->imm == HW_H_TEX, .next = HW_NO_INDEX, .first = HW_NO_INDEX
    };
    s.kind = in->ndst ? HW_SITE_LOAD : HW_SITE_STORE;
    s.space = in->imm == HW_H_TEX ? HW_SITE_TEXTURE : HW_SITE_SURFACE;
    add_site(c, s);
    return true;
}

/* Bulk and tensor copies: one for what they read of global memory, one for what they write there. */
static bool add_bulk(hw_counting *c, const hw_wir_insn *in)
{
    bool bulk = in->imm == HW_H_BULK && !(in->aux & HW_BULK_FILL);
    if (!bulk && in->imm != HW_H_TENSOR)
        return false;
    hw_site s = {
        .place = in->loc, .space = HW_SITE_BULK, .next = HW_NO_INDEX, .first = HW_NO_INDEX
    };
    s.kind = HW_SITE_LOAD;
    add_site(c, s);
    s.kind = in->aux & HW_BULK_REDUCE ? HW_SITE_REDUCTION : HW_SITE_STORE;
    add_site(c, s);
    return true;
}

/* Adds the sites of an operation; false if it has none. */
static bool add_sites(hw_counting *c, const hw_wir_insn *in)
{
    if (in->op == HW_W_HELPER)
        return add_texels(c, in) || add_bulk(c, in);
    if (in->op == HW_W_COPY) {
        add_copy(c, in);
        return true;
    }
    hw_site_kind kind = in->op == HW_W_LOAD    ? HW_SITE_LOAD
                        : in->op == HW_W_STORE ? HW_SITE_STORE
                        : in->op == HW_W_ATOM  ? HW_SITE_ATOMIC
                                               : HW_SITE_REDUCTION;
    bool moves =
        in->op == HW_W_LOAD || in->op == HW_W_STORE || in->op == HW_W_ATOM || in->op == HW_W_RED;
    if (!moves || in->space == HW_SPACE_PARAM)
        return false;
    add_site(c, site_of(in, kind, in->space));
    return true;
}

/* ---- instructions ---- */

typedef struct walk {
    hw_counting *c;
    const hw_wir_module *m;
    const hw_wir_function *f;
    hw_count_map *map;
    uint32_t *entries;  /* per block of the function: ways to it */
    uint32_t *ends;     /* per number of an end: its index + 1 */
    uint32_t n_ends;    /* of the function */
    hw_count_inst inst; /* being gathered */
    bool open;
    uint32_t at; /* number of the operation in the function */
} walk;

static void close(walk *w)
{
    if (w->open)
        hw_vec_push(w->c->arena, &w->c->insts, w->inst);
    w->open = false;
}

static void open(walk *w, const hw_wir_insn *in)
{
    close(w);
    w->inst = (hw_count_inst){ .place = in->loc,
                               .block = (uint32_t)w->c->blocks.len,
                               .guard = HW_NO_INDEX,
                               .taken = HW_NO_INDEX,
                               .site = HW_NO_INDEX,
                               .branch = HW_NO_INDEX,
                               .cls = (uint16_t)class_of(w->f, in),
                               .pairs = 1,
                               .part = !(in->flags & HW_I_HEAD) };
    w->open = true;
}

static bool ends_alone(const hw_wir_block *b)
{
    const hw_wir_insn *in = &b->insns.ptr[0];
    return b->insns.len == 1 && ends_lanes(in) && in->guard.kind != HW_V_REG;
}

/* The end of threads that a terminator leads to, or is; it may have been met before. */
static void find_end(walk *w, const hw_wir_block *b, const hw_wir_insn *in)
{
    bool alone = ends_alone(b) && in->flags & HW_I_HEAD;
    uint32_t *known = in->imm && in->imm <= w->m->ends ? &w->ends[in->imm] : NULL;
    if (!alone && !known)
        return;
    if (!known || !*known) {
        hw_count_end e = { .place = known ? (uint32_t)in->aux : in->loc,
                           .function = (uint32_t)(w->f - w->m->functions.ptr),
                           .number = w->n_ends++ };
        hw_vec_push(w->c->arena, &w->c->ends, e);
        if (known)
            *known = (uint32_t)w->c->ends.len;
    }
    w->map->end[w->at] = known ? *known - 1 : (uint32_t)w->c->ends.len - 1;
}

static void count_guard(walk *w)
{
    if (w->inst.guard == HW_NO_INDEX)
        w->map->guard[w->at] = w->inst.guard = w->c->t.n_guards++;
}

/* In which lanes a branch is taken: those of its target, if that says it. */
static void find_taken(walk *w, const hw_wir_block *b, const hw_wir_insn *in)
{
    uint32_t t = b->targets[(in->flags & HW_I_ELSE) != 0];
    if (w->entries[t] == 1 && !ends_alone(&w->f->blocks.ptr[t]))
        w->inst.taken = w->map->base + t;
    else
        count_guard(w);
}

static void add_branch(walk *w, const hw_wir_block *b, const hw_wir_insn *in)
{
    hw_count_branch x = { .place = in->loc,
                          .block = w->inst.block,
                          .inst = (uint32_t)w->c->insts.len,
                          .targets = in->op == HW_W_BRX ? b->ntargets : 2 };
    w->map->branch[w->at] = w->inst.branch = (uint32_t)w->c->branches.len;
    hw_vec_push(w->c->arena, &w->c->branches, x);
}

static void take_in(walk *w, const hw_wir_block *b, const hw_wir_insn *in)
{
    unsigned cls = class_of(w->f, in);
    if (rank(cls) > rank(w->inst.cls))
        w->inst.cls = (uint16_t)cls;
    if (in->type == HW_T_V2F16 || in->type == HW_T_V2BF16)
        w->inst.pairs = 2;
    if (in->guard.kind == HW_V_REG && !(in->flags & HW_I_MADE))
        count_guard(w);
    if (in->op == HW_W_CBR)
        find_taken(w, b, in);
    if (in->op == HW_W_BRX && in->flags & HW_I_ELSE)
        count_guard(w);
    uint32_t site = (uint32_t)w->c->sites.len;
    if (!(in->flags & HW_I_MADE) && add_sites(w->c, in)) {
        w->map->site[w->at] = site;
        w->inst.site = w->inst.site == HW_NO_INDEX ? site : w->inst.site;
    }
    if (is_branch(in))
        add_branch(w, b, in);
}

/* Does an operation say something of the instruction it is more of? A plain branch and what ends lanes
 * at the end of the text are nobody's. */
static bool says_more(const hw_wir_insn *in)
{
    bool nobodys = in->op == HW_W_BR || (ends_lanes(in) && in->guard.kind != HW_V_REG);
    return !(in->flags & HW_I_MADE) && (!nobodys || in->flags & HW_I_CALLS);
}

static bool touches_memory(const hw_wir_insn *in)
{
    return in->op == HW_W_LOAD || in->op == HW_W_STORE || in->op == HW_W_ATOM ||
           in->op == HW_W_RED || in->op == HW_W_COPY || in->op == HW_W_HELPER;
}

static void walk_insn(walk *w, const hw_wir_block *b, const hw_wir_insn *in)
{
    bool head = in->flags & HW_I_HEAD;
    if (ends_lanes(in))
        find_end(w, b, in);
    if (head && ends_alone(b) && w->map->end[w->at] != HW_NO_INDEX)
        return; /* counted apart */
    if (!head && !says_more(in))
        return;
    if (head)
        open(w, in);
    else if (w->open && in->loc != w->inst.place)
        close(w);
    if (!w->open && touches_memory(in))
        open(w, in);
    if (w->open)
        take_in(w, b, in);
}

static void walk_block(walk *w, uint32_t b)
{
    const hw_wir_block *from = &w->f->blocks.ptr[b];
    hw_count_block block = { .function = (uint32_t)(w->f - w->m->functions.ptr),
                             .first = (uint32_t)w->c->insts.len };
    w->map->first[b] = w->at;
    for (size_t i = 0; i < from->insns.len; i++, w->at++)
        walk_insn(w, from, &from->insns.ptr[i]);
    close(w);
    block.count = (uint32_t)w->c->insts.len - block.first;
    hw_vec_push(w->c->arena, &w->c->blocks, block);
}

/* Blocks for the ends of threads, behind all others. */
static void add_ends(walk *w)
{
    for (size_t i = 0; i < w->c->ends.len; i++) {
        hw_count_end *e = &w->c->ends.ptr[i];
        const hw_wir_insn like = { .op = HW_W_RET, .loc = e->place, .flags = HW_I_HEAD };
        w->f = &w->m->functions.ptr[e->function];
        e->block = (uint32_t)w->c->blocks.len;
        hw_count_block block = { .function = e->function,
                                 .first = (uint32_t)w->c->insts.len,
                                 .count = 1 };
        open(w, &like);
        close(w);
        hw_vec_push(w->c->arena, &w->c->blocks, block);
    }
}

static uint32_t *none(hw_arena *a, uint32_t n)
{
    uint32_t *x = HW_NEW_N(a, uint32_t, n + 1);
    memset(x, 0xff, sizeof *x * (n + 1));
    return x;
}

static void walk_function(walk *w, uint32_t index)
{
    hw_arena *a = w->c->arena;
    uint32_t n = 0;
    w->f = &w->m->functions.ptr[index];
    w->map = &w->c->map[index];
    w->at = 0;
    w->map->base = (uint32_t)w->c->blocks.len;
    if (!w->f->defined)
        return;
    for (size_t b = 0; b < w->f->blocks.len; b++)
        n += (uint32_t)w->f->blocks.ptr[b].insns.len;
    w->map->first = HW_NEW_N(a, uint32_t, w->f->blocks.len + 1);
    w->map->grouped = HW_NEW_N(a, bool, w->f->blocks.len + 1);
    w->map->site = none(a, n);
    w->map->branch = none(a, n);
    w->map->guard = none(a, n);
    w->map->end = none(a, n);
    w->n_ends = 0;
    w->entries = HW_NEW_N(a, uint32_t, w->f->blocks.len + 1);
    for (size_t b = 0; b < w->f->blocks.len; b++)
        for (uint32_t t = 0; t < w->f->blocks.ptr[b].ntargets; t++)
            w->entries[w->f->blocks.ptr[b].targets[t]]++;
    for (uint32_t b = 0; b < w->f->blocks.len; b++)
        walk_block(w, b);
}

hw_counting *hw_count_tabulate(hw_arena *a, const hw_wir_module *m)
{
    hw_counting *c = HW_NEW(a, hw_counting);
    c->arena = a;
    c->map = HW_NEW_N(a, hw_count_map, m->functions.len);
    walk w = { .c = c, .m = m, .ends = HW_NEW_N(a, uint32_t, m->ends + 1) };
    for (uint32_t f = 0; f < m->functions.len; f++)
        walk_function(&w, f);
    add_ends(&w);
    hw_count_table *t = &c->t;
    c->leads = HW_NEW_N(a, bool, c->sites.len + 1);
    t->n_blocks = (uint32_t)c->blocks.len;
    t->n_insts = (uint32_t)c->insts.len;
    t->n_sites = (uint32_t)c->sites.len;
    t->n_branches = (uint32_t)c->branches.len;
    t->full = 0;
    t->part = t->n_blocks;
    t->guards = t->part + 2 * t->n_blocks;
    t->divergent = t->guards + t->n_guards;
    t->n_counters = t->divergent + t->n_branches;
    return c;
}

const hw_count_table *hw_count_finish(hw_counting *c)
{
    c->t.blocks = c->blocks.ptr;
    c->t.insts = c->insts.ptr;
    c->t.sites = c->sites.ptr;
    c->t.branches = c->branches.ptr;
    return &c->t;
}
