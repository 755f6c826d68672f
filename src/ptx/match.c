/* SPDX-License-Identifier: Apache-2.0
 * Finds the row of ptx.def that a written opcode is, or says why there is none. */
#include "isa.h"

/* ---- one match a spelling: a table in the unit ---- */

typedef struct known_spelling {
    hw_str opcode;
    const hw_str *mods; /* shared by instructions of one spelling (ast.h) */
    const ptx_match *match;
} known_spelling;

struct ptx_matches {
    known_spelling *slots;
    size_t mask, used;
};

static size_t spelling_hash(const ptx_insn *i)
{
    uintptr_t mods = i->nmods ? (uintptr_t)i->mods : 0;
    return (size_t)hw_hash64(i->opcode.ptr, i->opcode.len, (uint64_t)mods);
}

static known_spelling *spelling_slot(struct ptx_matches *t, const ptx_insn *i)
{
    const hw_str *mods = i->nmods ? i->mods : NULL;
    for (size_t s = spelling_hash(i);; s++) {
        known_spelling *k = &t->slots[s & t->mask];
        if (!k->match || (k->mods == mods && hw_str_eq(k->opcode, i->opcode)))
            return k;
    }
}

static void grow(struct hw_ptx_unit *u)
{
    struct ptx_matches *old = u->matches;
    struct ptx_matches *t = HW_NEW(u->arena, struct ptx_matches);
    size_t n = old ? 2 * (old->mask + 1) : 256;
    t->mask = n - 1;
    t->slots = HW_NEW_N(u->arena, known_spelling, n);
    t->used = old ? old->used : 0;
    for (size_t s = 0; old && s <= old->mask; s++) {
        const known_spelling *k = &old->slots[s];
        if (!k->match)
            continue;
        ptx_insn probe = { .opcode = k->opcode,
                           .mods = (hw_str *)(uintptr_t)k->mods,
                           .nmods = k->mods != NULL };
        *spelling_slot(t, &probe) = *k;
    }
    u->matches = t;
}

/* ---- one row against one spelling ---- */

typedef enum why {
    FITS,
    UNKNOWN_WORD,
    BAD_MOD,
    TWICE,
    MISSING_MOD,
    BAD_TYPE,
    MISSING_TYPE,
    SIZES,
    AGE
} why;

typedef struct attempt {
    const ptx_row *row;
    ptx_match m;
    why why;
    uint32_t at;    /* modifier's index, or slot's, or type's */
    uint32_t score; /* how far it fitted */
} attempt;

static bool fail(attempt *t, why w, uint32_t at, uint32_t score)
{
    t->why = w;
    t->at = at;
    t->score = score;
    return false;
}

static bool take_mod(attempt *t, const ptx_row *r, ptx_mod mod, uint32_t *used)
{
    for (uint32_t s = 0; s < r->nslots; s++) {
        if ((*used >> s) & 1 || r->slots[s].head || !ptx_bag_has(&r->slots[s].any, mod))
            continue;
        *used |= UINT32_C(1) << s;
        ptx_bag_add(&t->m.mods, mod);
        return true;
    }
    return false;
}

static bool take_heads(attempt *t, const ptx_row *r, const ptx_insn *i, uint32_t *used)
{
    uint32_t k = 0;
    for (uint32_t s = 0; s < r->nslots; s++) {
        if (!r->slots[s].head)
            continue;
        ptx_mod mod = k < i->nmods ? hw_ptx_mod(i->mods[k]) : PTX_M_NONE;
        if (!ptx_bag_has(&r->slots[s].any, mod))
            return fail(t, MISSING_MOD, s, 0);
        ptx_bag_add(&t->m.mods, mod);
        *used |= UINT32_C(1) << s;
        k++;
    }
    return true;
}

static bool take_words(attempt *t, const ptx_row *r, const ptx_insn *i, uint32_t *used)
{
    for (uint32_t k = r->nheads; k < i->nmods; k++) {
        ptx_type type = hw_ptx_type(i->mods[k]);
        if (type != PTX_NONE) {
            if (t->m.ntypes == PTX_MAX_TYPES && r->any_form)
                continue;
            if (t->m.ntypes == PTX_MAX_TYPES)
                return fail(t, BAD_TYPE, k, 1 + k);
            t->m.type[t->m.ntypes++] = (uint8_t)type;
            continue;
        }
        ptx_mod mod = hw_ptx_mod(i->mods[k]);
        if ((mod == PTX_M_NONE || !take_mod(t, r, mod, used)) && !r->any_form) {
            bool twice = mod != PTX_M_NONE && ptx_bag_has(&t->m.mods, mod);
            return fail(t, mod == PTX_M_NONE ? UNKNOWN_WORD : twice ? TWICE : BAD_MOD, k, 1 + k);
        }
    }
    for (uint32_t s = 0; s < r->nslots; s++)
        if (!((*used >> s) & 1) && !r->slots[s].optional)
            return fail(t, MISSING_MOD, s, 50);
    return true;
}

static bool sizes_fit(const ptx_row *r, const ptx_match *m)
{
    unsigned a = ptx_types[m->type[0]].bits, b = ptx_types[m->type[1]].bits;
    switch ((ptx_size_rule)r->size_rule) {
    case PTX_EQ:
        return m->type[0] == m->type[1];
    case PTX_GT:
        return a > b;
    case PTX_LT:
        return a < b;
    case PTX_NE:
        return m->type[0] != m->type[1];
    default:
        return true;
    }
}

static bool types_fit(attempt *t, const ptx_row *r)
{
    uint32_t given = t->m.ntypes, k = 0;
    for (uint32_t n = 0; n < r->ntypes; n++) {
        bool here = k < given && ((r->type_set[n] >> t->m.type[k]) & 1);
        if (!here && r->type_optional[n])
            continue;
        if (!here)
            return fail(t, k < given ? BAD_TYPE : MISSING_TYPE, n, 60 + n);
        k++;
    }
    if (k < given)
        return fail(t, BAD_TYPE, k, 60 + k);
    return sizes_fit(r, &t->m) ? true : fail(t, SIZES, 0, 80);
}

static bool try_row(attempt *t, const struct hw_ptx_unit *u, const ptx_row *r, const ptx_insn *i)
{
    uint32_t used = 0;
    *t = (attempt){ .row = r };
    if (!take_heads(t, r, i, &used) || !take_words(t, r, i, &used))
        return false;
    if (r->any_form)
        return true;
    if (!types_fit(t, r))
        return false;
    if ((r->before_version && u->version >= r->before_version) ||
        (r->before_target && u->target >= r->before_target))
        return fail(t, AGE, 0, 90);
    return true;
}

/* ---- decoded fields ---- */

typedef struct decoding {
    uint8_t mod, value;
} decoding;

static uint8_t decode(const ptx_bag *mods, const decoding *table, size_t n, uint8_t otherwise)
{
    for (size_t k = 0; k < n; k++)
        if (ptx_bag_has(mods, table[k].mod))
            return table[k].value;
    return otherwise;
}
#define DECODE(mods, table, otherwise) decode((mods), (table), HW_COUNTOF(table), (otherwise))

/* clang-format off */
static const decoding rounds[] = {
    { PTX_M_rz, HW_ROUND_Z }, { PTX_M_rm, HW_ROUND_M }, { PTX_M_rp, HW_ROUND_P }, { PTX_M_rna, HW_ROUND_NA },
    { PTX_M_rzi, HW_ROUND_Z }, { PTX_M_rmi, HW_ROUND_M }, { PTX_M_rpi, HW_ROUND_P },
};
static const decoding vectors[] = { { PTX_M_v2, 2 }, { PTX_M_v4, 4 }, { PTX_M_v8, 8 } };
static const decoding spaces[] = {
    { PTX_M_global, PTX_SPACE_GLOBAL }, { PTX_M_shared, PTX_SPACE_SHARED }, { PTX_M_shared_cta, PTX_SPACE_SHARED },
    { PTX_M_shared_cluster, PTX_SPACE_SHARED }, { PTX_M_local, PTX_SPACE_LOCAL }, { PTX_M_const, PTX_SPACE_CONST },
    { PTX_M_param, PTX_SPACE_PARAM }, { PTX_M_param_entry, PTX_SPACE_PARAM }, { PTX_M_param_func, PTX_SPACE_PARAM },
};
static const decoding scopes[] = {
    { PTX_M_cta, HW_SCOPE_BLOCK }, { PTX_M_cluster, HW_SCOPE_CLUSTER }, { PTX_M_gpu, HW_SCOPE_DEVICE },
    { PTX_M_gl, HW_SCOPE_DEVICE }, { PTX_M_sys, HW_SCOPE_SYSTEM },
};
static const uint8_t comparisons[] = {
    PTX_M_eq, PTX_M_ne, PTX_M_lt, PTX_M_le, PTX_M_gt, PTX_M_ge, PTX_M_lo, PTX_M_ls, PTX_M_hi, PTX_M_hs, PTX_M_equ,
    PTX_M_neu, PTX_M_ltu, PTX_M_leu, PTX_M_gtu, PTX_M_geu, PTX_M_num, PTX_M_nan,
};
static const uint8_t operations[] = {
    PTX_M_add, PTX_M_min, PTX_M_max, PTX_M_inc, PTX_M_dec, PTX_M_and, PTX_M_or, PTX_M_xor, PTX_M_cas, PTX_M_exch,
    PTX_M_popc,
};
/* clang-format on */

static uint8_t first_of(const ptx_bag *mods, const uint8_t *list, size_t n)
{
    for (size_t k = 0; k < n; k++)
        if (ptx_bag_has(mods, list[k]))
            return list[k];
    return PTX_M_NONE;
}

static void decode_all(ptx_match *m)
{
    m->round = DECODE(&m->mods, rounds, HW_ROUND_N);
    m->vec = DECODE(&m->mods, vectors, 1);
    m->space = DECODE(&m->mods, spaces, PTX_SPACE_NONE);
    m->scope = DECODE(&m->mods, scopes, HW_SCOPE_DEVICE);
    m->cmp = first_of(&m->mods, comparisons, HW_COUNTOF(comparisons));
    m->boolop = first_of(&m->mods, operations, HW_COUNTOF(operations));
    m->ftz = ptx_bag_has(&m->mods, PTX_M_ftz);
    m->sat = ptx_bag_has(&m->mods, PTX_M_sat);
}

/* ---- messages ---- */

static const char *spelled(hw_arena *a, const ptx_insn *i)
{
    const char *text = hw_arena_cstr(a, i->opcode);
    for (uint32_t k = 0; k < i->nmods; k++)
        text = hw_arena_printf(a, "%s.%.*s", text, HW_STR_ARG(i->mods[k]));
    return text;
}

static const char *list_types(hw_arena *a, ptx_type_set set)
{
    const char *text = "";
    for (unsigned t = 1; t < PTX_TYPE_COUNT; t++)
        if ((set >> t) & 1)
            text = hw_arena_printf(a, "%s%s.%s", text, *text ? " " : "", ptx_types[t].text);
    return text;
}

static const char *list_mods(hw_arena *a, const ptx_bag *bag)
{
    const char *text = "";
    for (unsigned m = 1; m < PTX_M_COUNT; m++)
        if (ptx_bag_has(bag, m))
            text = hw_arena_printf(a, "%s%s.%s", text, *text ? " " : "", hw_ptx_mod_text(m));
    return text;
}

static hw_status no_row(struct hw_ptx_unit *u, const ptx_insn *i, const attempt *t, hw_diag *d)
{
    hw_arena *a = d ? d->arena : u->arena;
    hw_place at = hw_ptx_place(u, i->place);
    const char *text = spelled(a, i);
    switch (t->why) {
    case UNKNOWN_WORD:
        return hw_fail_at(d, HW_E_SYNTAX, at, "unknown modifier '.%.*s' in '%s'",
                          HW_STR_ARG(i->mods[t->at]), text);
    case TWICE:
        return hw_fail_at(d, HW_E_SYNTAX, at, "'%s' has .%.*s twice", text,
                          HW_STR_ARG(i->mods[t->at]));
    case BAD_MOD:
        return hw_fail_at(d, HW_E_SYNTAX, at, "'%s' does not exist: '%s' takes no .%.*s", text,
                          t->row->form, HW_STR_ARG(i->mods[t->at]));
    case MISSING_MOD:
        return hw_fail_at(d, HW_E_SYNTAX, at, "'%s' is incomplete: it needs %s%s", text,
                          t->row->slots[t->at].any.w[0] ? "one of " : "",
                          list_mods(a, &t->row->slots[t->at].any));
    case MISSING_TYPE:
        return hw_fail_at(d, HW_E_SYNTAX, at, "'%s' is incomplete: it needs a type, one of %s",
                          text, list_types(a, t->row->type_set[t->at]));
    case BAD_TYPE:
        return hw_fail_at(
            d, HW_E_SYNTAX, at, "'%s' does not exist: '%s' takes %s", text, t->row->form,
            t->at < t->row->ntypes ? list_types(a, t->row->type_set[t->at]) : "no more types");
    case AGE:
        return hw_fail_at(
            d, HW_E_SYNTAX, at,
            "'%s' existed only in older versions of PTX: a rounding modifier is needed", text);
    default:
        return hw_fail_at(d, HW_E_SYNTAX, at, "'%s' does not exist with these types", text);
    }
}

static hw_status unknown_opcode(struct hw_ptx_unit *u, const ptx_insn *i, hw_diag *d)
{
    const char *near = hw_ptx_nearest_opcode(i->opcode);
    hw_place at = hw_ptx_place(u, i->place);
    if (near)
        return hw_fail_at(d, HW_E_SYNTAX, at, "unknown instruction '%.*s'; did you mean '%s'?",
                          HW_STR_ARG(i->opcode), near);
    return hw_fail_at(d, HW_E_SYNTAX, at, "unknown instruction '%.*s'", HW_STR_ARG(i->opcode));
}

/* ---- the door ---- */

static hw_status find_row(struct hw_ptx_unit *u, const ptx_insn *i, attempt *best, hw_diag *d)
{
    const ptx_row *r = hw_ptx_opcode(i->opcode);
    if (!r)
        return unknown_opcode(u, i, d);
    bool first = true;
    for (; r; r = r->next) {
        attempt t;
        if (try_row(&t, u, r, i)) {
            *best = t;
            return HW_OK;
        }
        if (first || t.score > best->score)
            *best = t;
        first = false;
    }
    return no_row(u, i, best, d);
}

static ptx_match *keep(struct hw_ptx_unit *u, const attempt *t)
{
    ptx_match *m = HW_NEW(u->arena, ptx_match);
    *m = t->m;
    m->row = t->row;
    decode_all(m);
    return m;
}

hw_status hw_ptx_match(struct hw_ptx_unit *u, const ptx_insn *i, const ptx_match **out, hw_diag *d)
{
    if (!u->matches || 2 * u->matches->used > u->matches->mask)
        grow(u);
    known_spelling *k = spelling_slot(u->matches, i);
    if (!k->match) {
        attempt t = { 0 };
        HW_TRY(find_row(u, i, &t, d));
        ptx_match *m = keep(u, &t);
        *k = (known_spelling){ i->opcode, i->nmods ? i->mods : NULL, m };
        u->matches->used++;
        for (const ptx_row *r = m->row->next; r && !m->row->any_form; r = r->next)
            if (try_row(&t, u, r, i))
                m = m->other = keep(u, &t);
    }
    *out = k->match;
    return HW_OK;
}
