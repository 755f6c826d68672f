/* SPDX-License-Identifier: Apache-2.0
 * Makes ptx.def's rows into patterns, once a process, and finds rows, modifiers, types and special
 * registers by their text. */
#include "isa.h"

#include <pthread.h>

/* clang-format off */
const ptx_type_info ptx_types[PTX_TYPE_COUNT] = {
#define PTX_T(name, text, bits, wir, declarable) [PTX_##name] = { text, bits, HW_T_##wir },
#include "types.def"
#undef PTX_T
};

static const uint8_t classes[PTX_TYPE_COUNT] = {
    [PTX_NONE] = PTX_CL_NONE, [PTX_PRED] = PTX_CL_PRED,
    [PTX_B8] = PTX_CL_BITS, [PTX_B16] = PTX_CL_BITS, [PTX_B32] = PTX_CL_BITS, [PTX_B64] = PTX_CL_BITS,
    [PTX_B128] = PTX_CL_BITS,
    [PTX_U8] = PTX_CL_UNSIGNED, [PTX_U16] = PTX_CL_UNSIGNED, [PTX_U32] = PTX_CL_UNSIGNED, [PTX_U64] = PTX_CL_UNSIGNED,
    [PTX_S8] = PTX_CL_SIGNED, [PTX_S16] = PTX_CL_SIGNED, [PTX_S32] = PTX_CL_SIGNED, [PTX_S64] = PTX_CL_SIGNED,
    [PTX_F16] = PTX_CL_FLOAT, [PTX_F32] = PTX_CL_FLOAT, [PTX_F64] = PTX_CL_FLOAT,
    [PTX_F32X2] = PTX_CL_PACKED, [PTX_F16X2] = PTX_CL_PACKED, [PTX_BF16] = PTX_CL_PACKED, [PTX_BF16X2] = PTX_CL_PACKED, [PTX_TF32] = PTX_CL_PACKED,
    [PTX_E4M3X2] = PTX_CL_PACKED, [PTX_E5M2X2] = PTX_CL_PACKED,
    [PTX_E4M3] = PTX_CL_PACKED, [PTX_E5M2] = PTX_CL_PACKED, [PTX_S4] = PTX_CL_PACKED, [PTX_U4] = PTX_CL_PACKED, [PTX_B1] = PTX_CL_PACKED,
    [PTX_E2M3X2] = PTX_CL_PACKED, [PTX_E3M2X2] = PTX_CL_PACKED, [PTX_E2M1X2] = PTX_CL_PACKED, [PTX_UE8M0X2] = PTX_CL_PACKED,
    [PTX_U16X2] = PTX_CL_PACKED, [PTX_S16X2] = PTX_CL_PACKED,
    [PTX_TEXREF] = PTX_CL_OPAQUE, [PTX_SAMPLERREF] = PTX_CL_OPAQUE, [PTX_SURFREF] = PTX_CL_OPAQUE,
};

static const char *const mod_texts[PTX_M_COUNT] = {
    [PTX_M_NONE] = "",
#define PTX_MOD(name, text) [PTX_M_##name] = text,
#include "mods.def"
#undef PTX_MOD
};

typedef struct named_set {
    const char *name, *members;
} named_set;
static const named_set type_sets[] = {
#define PTX_SET(name, members) { #name, members },
#define PTX_CLASS(name, members)
#include "sets.def"
#undef PTX_SET
#undef PTX_CLASS
};
static const named_set mod_classes[] = {
#define PTX_SET(name, members)
#define PTX_CLASS(name, members) { #name, members },
#include "sets.def"
#undef PTX_SET
#undef PTX_CLASS
};

const ptx_sreg ptx_sregs[] = {
#define PTX_SREG(name, bits, components, how, value) { name, bits, components, PTX_SR_##how, value },
#include "sregs.def"
#undef PTX_SREG
};

static ptx_row rows[PTX_ROW_COUNT] = {
#define ROW(id, form, operands, types, since, target, unit, lane, warp) \
    [PTX_ROW_##id] = { PTX_ROW_##id, form, operands, types, since, target, PTX_UNIT_##unit },
#include "ptx.def"
#undef ROW
};
/* clang-format on */

enum { TABLE = 2048 }; /* a power of two, well above twice the number of words in any table */
static ptx_row *by_opcode[TABLE];
static uint16_t by_mod[TABLE];  /* ptx_mod */
static uint16_t by_type[TABLE]; /* ptx_type */
static uint16_t by_sreg[TABLE]; /* index + 1 */
static const char *opcodes[PTX_ROW_COUNT];
static size_t nopcodes;
static pthread_once_t once = PTHREAD_ONCE_INIT;

_Static_assert(PTX_M_COUNT < TABLE / 2, "modifier table too small");
_Static_assert(PTX_ROW_COUNT < TABLE / 2, "opcode table too small");

static uint32_t slot_of(hw_str s)
{
    return (uint32_t)hw_hash64(s.ptr, s.len, 0) & (TABLE - 1);
}

/* ---- words ---- */

static bool next_word(const char **at, hw_str *word)
{
    const char *p = *at;
    while (*p == ' ')
        p++;
    const char *start = p;
    while (*p && *p != ' ')
        p++;
    *at = p;
    *word = (hw_str){ start, (size_t)(p - start) };
    return p != start;
}

static uint32_t mod_slot(hw_str text)
{
    uint32_t s = slot_of(text);
    while (by_mod[s] && !hw_str_is(text, mod_texts[by_mod[s]]))
        s = (s + 1) & (TABLE - 1);
    return s;
}

static uint32_t type_slot(hw_str text)
{
    uint32_t s = slot_of(text);
    while (by_type[s] && !hw_str_is(text, ptx_types[by_type[s]].text))
        s = (s + 1) & (TABLE - 1);
    return s;
}

static uint32_t sreg_slot(hw_str text)
{
    uint32_t s = slot_of(text);
    while (by_sreg[s] && !hw_str_is(text, ptx_sregs[by_sreg[s] - 1].name))
        s = (s + 1) & (TABLE - 1);
    return s;
}

static uint32_t opcode_slot(hw_str text)
{
    uint32_t s = slot_of(text);
    while (by_opcode[s] && !hw_str_eq(text, by_opcode[s]->opcode))
        s = (s + 1) & (TABLE - 1);
    return s;
}

static const char *members_of(const named_set *sets, size_t n, hw_str name)
{
    for (size_t i = 0; i < n; i++)
        if (hw_str_is(name, sets[i].name))
            return sets[i].members;
    return NULL;
}

static ptx_type_set types_of(hw_str word)
{
    const char *members = members_of(type_sets, HW_COUNTOF(type_sets), word);
    ptx_type_set set = 0;
    if (!members)
        return UINT64_C(1) << by_type[type_slot(word)];
    for (hw_str w; next_word(&members, &w);)
        set |= UINT64_C(1) << by_type[type_slot(w)];
    return set;
}

/* ---- one row ---- */

static bool is_type_variable(hw_str w)
{
    return w.len == 1 && w.ptr[0] >= 'T' && w.ptr[0] <= 'V';
}

static void add_mod(ptx_slot *s, hw_str w)
{
    ptx_mod m = by_mod[mod_slot(w)];
    if (!m)
        HW_BUG("ptx.def: unknown modifier");
    ptx_bag_add(&s->any, m);
}

/* One element of a form after its dot: a type, a type variable, a class, (a|b) or a word. */
static void add_element(ptx_row *r, hw_str w, bool optional)
{
    bool head = w.ptr[w.len - 1] == '!';
    if (head)
        w.len--;
    if (is_type_variable(w) || by_type[type_slot(w)]) {
        r->type_set[r->ntypes] = is_type_variable(w) ? 0 : types_of(w);
        r->type_optional[r->ntypes++] = optional;
        HW_CHECK(r->ntypes <= PTX_MAX_TYPES);
        return;
    }
    ptx_slot *s = &r->slots[r->nslots++];
    HW_CHECK(r->nslots <= PTX_MAX_SLOTS);
    s->optional = optional;
    s->head = head;
    r->nheads += head;
    const char *members = members_of(mod_classes, HW_COUNTOF(mod_classes), w);
    if (members) {
        for (hw_str m; next_word(&members, &m);)
            add_mod(s, m);
        return;
    }
    if (w.ptr[0] != '(') {
        add_mod(s, w);
        return;
    }
    const char *p = w.ptr + 1, *end = w.ptr + w.len - 1;
    while (p < end) {
        const char *q = p;
        while (q < end && *q != '|')
            q++;
        add_mod(s, (hw_str){ p, (size_t)(q - p) });
        p = q + 1;
    }
}

static void compile_form(ptx_row *r)
{
    const char *p = r->form;
    while (*p && *p != '.' && *p != '{')
        p++;
    r->opcode = (hw_str){ r->form, (size_t)(p - r->form) };
    bool optional = false;
    while (*p) {
        if (strncmp(p, "...", 3) == 0) {
            r->any_form = true;
            p += 3;
        } else if (*p == '{' || *p == '}') {
            optional = *p++ == '{';
        } else {
            const char *q = ++p; /* after the dot */
            int depth = 0;
            while (*q && (depth || (*q != '.' && *q != '{' && *q != '}')))
                depth += (*q == '(') - (*q == ')'), q++;
            add_element(r, (hw_str){ p, (size_t)(q - p) }, optional);
            p = q;
        }
    }
}

static uint8_t number_after(hw_str w, size_t prefix)
{
    uint8_t n = 0;
    for (size_t i = prefix; i < w.len; i++)
        n = (uint8_t)(n * 10 + (w.ptr[i] - '0'));
    return n;
}

/* Which of a form's types the letter names: by position, literals counted. */
static uint8_t type_index(const ptx_row *r, char letter)
{
    uint8_t n = 0;
    for (const char *q = r->form; *q; q++) {
        if (*q != '.' || q[1] == '(')
            continue;
        size_t len = strcspn(q + 1, ".{}!");
        hw_str w = { q + 1, len };
        if (is_type_variable(w)) {
            if (w.ptr[0] == letter)
                return n;
            n++;
        } else if (by_type[type_slot(w)]) {
            n++;
        }
    }
    HW_BUG("ptx.def: an operand names a type that its form lacks");
}

/* "T=u32 s32 U=BITS rel:gt target<20" */
static void compile_types(ptx_row *r)
{
    static const char *const rules[] = { "rel:any", "rel:eq", "rel:gt", "rel:lt", "rel:ne" };
    const char *p = r->types;
    uint8_t index = 0;
    for (hw_str w; next_word(&p, &w);) {
        if (hw_str_starts(w, HW_STR("version<"))) {
            r->before_version = number_after(w, 8);
        } else if (hw_str_starts(w, HW_STR("target<"))) {
            r->before_target = number_after(w, 7);
        } else if (hw_str_starts(w, HW_STR("rel:"))) {
            for (int8_t k = 0; k < (int8_t)HW_COUNTOF(rules); k++)
                if (hw_str_is(w, rules[k]))
                    r->size_rule = k;
        } else if (w.len > 2 && w.ptr[1] == '=') {
            index = type_index(r, w.ptr[0]);
            r->type_set[index] |= types_of((hw_str){ w.ptr + 2, w.len - 2 });
        } else {
            r->type_set[index] |= types_of(w);
        }
    }
}

static void spec_type(const ptx_row *r, ptx_spec *s, hw_str w)
{
    if (is_type_variable(w)) {
        s->how = PTX_ST_TYPE;
        s->index = type_index(r, w.ptr[0]);
    } else if (hw_str_is(w, "W") || hw_str_is(w, "X")) {
        s->how = w.ptr[0] == 'W' ? PTX_ST_WIDE : PTX_ST_BITS;
    } else {
        s->how = PTX_ST_LITERAL;
        s->literal = (uint8_t)by_type[type_slot(w)];
        HW_CHECK(s->literal != PTX_NONE);
    }
}

static uint32_t number_at(hw_str w, size_t *i)
{
    uint32_t n = 0;
    for (; *i < w.len && w.ptr[*i] >= '0' && w.ptr[*i] <= '9'; (*i)++)
        n = n * 10 + (uint32_t)(w.ptr[*i] - '0');
    return n;
}

/* "<24-256/8>", "<1-64/p>", "<128>": i stands behind the '<', then at the '>'. */
static void spec_range(ptx_spec *s, hw_str w, size_t *i)
{
    s->step = 1;
    s->least = s->most = number_at(w, i);
    if (w.ptr[*i] == '-') {
        ++*i;
        s->most = number_at(w, i);
    }
    if (w.ptr[*i] == '/') {
        ++*i;
        s->step = w.ptr[*i] == 'p' ? PTX_POWERS : (uint16_t)number_at(w, i);
        *i += s->step == PTX_POWERS;
    }
    HW_CHECK(w.ptr[*i] == '>');
}

static void spec_marks(ptx_spec *s, hw_str marks)
{
    for (size_t i = 0; i < marks.len && marks.ptr[i] != '|'; i++) {
        if (marks.ptr[i] == '<') {
            i++;
            spec_range(s, marks, &i);
            continue;
        }
        s->wider |= marks.ptr[i] == '+';
        s->vector |= marks.ptr[i] == '*';
        s->immediate |= marks.ptr[i] == '#';
        s->sreg |= marks.ptr[i] == '@';
        s->symbol |= marks.ptr[i] == '&';
        s->minus |= marks.ptr[i] == '-';
        s->optional |= marks.ptr[i] == '?';
    }
}

static void add_spec(ptx_row *r, hw_str w, bool dest)
{
    static const struct {
        const char *text;
        uint8_t kind;
    } kinds[] = { { "[]", PTX_SK_ADDRESS },
                  { "label", PTX_SK_LABEL },
                  { "...", PTX_SK_REST },
                  { "mov", PTX_SK_MOV },
                  { "cpasync?", PTX_SK_SIZE_OR_IGNORE } };
    ptx_spec *s = &r->specs[r->nspecs++];
    HW_CHECK(r->nspecs <= PTX_MAX_SPECS);
    s->dest = dest;
    for (size_t k = 0; k < HW_COUNTOF(kinds); k++)
        if (hw_str_is(w, kinds[k].text)) {
            s->kind = kinds[k].kind;
            s->optional = s->kind == PTX_SK_SIZE_OR_IGNORE || s->kind == PTX_SK_REST;
            if (s->kind == PTX_SK_SIZE_OR_IGNORE) {
                s->step = 1;
                s->most = 16;
            }
            return;
        }
    size_t n = 0;
    while (n < w.len && !strchr("+-*#@&?|<", w.ptr[n]))
        n++;
    spec_type(r, s, (hw_str){ w.ptr, n });
    spec_marks(s, (hw_str){ w.ptr + n, w.len - n });
    const char *bar = memchr(w.ptr, '|', w.len);
    if (bar) {
        s->pair = bar[1] == '|' ? 2 : 1;
        bar += s->pair;
        s->pair_type = (uint8_t)by_type[type_slot((hw_str){ bar, (size_t)(w.ptr + w.len - bar) })];
    }
}

static void compile_operands(ptx_row *r)
{
    const char *p = r->operands;
    bool results = strchr(p, '=') != NULL;
    for (hw_str w; next_word(&p, &w);) {
        if (hw_str_is(w, "=")) {
            results = false;
            r->ndest = r->nspecs;
            continue;
        }
        add_spec(r, w, results);
    }
}

/* ---- all rows ---- */

static void link_row(ptx_row *r)
{
    uint32_t s = opcode_slot(r->opcode);
    if (!by_opcode[s]) {
        by_opcode[s] = r;
        return;
    }
    ptx_row *last = by_opcode[s];
    while (last->next)
        last = last->next;
    last->next = r;
}

static char opcode_text[PTX_ROW_COUNT][24]; /* NUL-terminated, for hw_nearest */

static void compile(void)
{
    for (uint16_t m = 1; m < PTX_M_COUNT; m++)
        by_mod[mod_slot(hw_str_of(mod_texts[m]))] = m;
    for (uint16_t t = 1; t < PTX_TYPE_COUNT; t++)
        by_type[type_slot(hw_str_of(ptx_types[t].text))] = t;
    for (uint16_t s = 0; s < HW_COUNTOF(ptx_sregs); s++)
        by_sreg[sreg_slot(hw_str_of(ptx_sregs[s].name))] = (uint16_t)(s + 1);
    for (unsigned i = 0; i < PTX_ROW_COUNT; i++) {
        ptx_row *r = &rows[i];
        compile_form(r);
        compile_types(r);
        compile_operands(r);
        if (!by_opcode[opcode_slot(r->opcode)]) {
            HW_CHECK(r->opcode.len < sizeof opcode_text[0]);
            memcpy(opcode_text[nopcodes], r->opcode.ptr, r->opcode.len);
            opcodes[nopcodes] = opcode_text[nopcodes];
            nopcodes++;
        }
        link_row(r);
    }
}

static void ready(void)
{
    pthread_once(&once, compile);
}

/* ---- what other files ask ---- */

bool hw_ptx_get_form(uint32_t i, hw_ptx_form *out)
{
    if (i >= PTX_ROW_COUNT)
        return false;
    ready();
    const ptx_row *r = &rows[i];
    *out = (hw_ptx_form){ r->form, r->operands, r->types, r->since, r->target };
    return true;
}

const ptx_row *hw_ptx_opcode(hw_str opcode)
{
    ready();
    return by_opcode[opcode_slot(opcode)];
}

const char *hw_ptx_nearest_opcode(hw_str word)
{
    ready();
    char text[32];
    if (word.len >= sizeof text)
        return NULL;
    memcpy(text, word.ptr, word.len);
    text[word.len] = '\0';
    return hw_nearest(text, opcodes, nopcodes);
}

ptx_mod hw_ptx_mod(hw_str text)
{
    ready();
    return by_mod[mod_slot(text)];
}

const char *hw_ptx_mod_text(ptx_mod m)
{
    return mod_texts[m];
}

ptx_type hw_ptx_type(hw_str text)
{
    ready();
    return by_type[type_slot(text)];
}

ptx_type_class hw_ptx_class(ptx_type t)
{
    return classes[t];
}

static ptx_type wide_type(ptx_type t)
{
    static const uint8_t wide[PTX_TYPE_COUNT] = {
        [PTX_U8] = PTX_U16, [PTX_U16] = PTX_U32, [PTX_U32] = PTX_U64,
        [PTX_S8] = PTX_S16, [PTX_S16] = PTX_S32, [PTX_S32] = PTX_S64
    };
    return wide[t];
}

static ptx_type bits_type(ptx_type t)
{
    switch (ptx_types[t].bits) {
    case 8:
        return PTX_B8;
    case 16:
        return PTX_B16;
    case 32:
        return PTX_B32;
    case 64:
        return PTX_B64;
    default:
        return t;
    }
}

ptx_type hw_ptx_spec_type(const ptx_spec *s, const ptx_match *m)
{
    switch (s->how) {
    case PTX_ST_TYPE:
        return m->type[s->index];
    case PTX_ST_WIDE:
        return wide_type(m->type[0]);
    case PTX_ST_BITS:
        return bits_type(m->type[0]);
    default:
        return s->literal;
    }
}

/* %pm3, %envreg17: families of numbered registers that read 0 unless they have a row. */
static hw_str without_digits(hw_str name)
{
    while (name.len && name.ptr[name.len - 1] >= '0' && name.ptr[name.len - 1] <= '9')
        name.len--;
    return name;
}

int hw_ptx_sreg(hw_str name)
{
    ready();
    uint16_t found = by_sreg[sreg_slot(name)];
    if (found)
        return found - 1;
    hw_str family = without_digits(name);
    if (family.len == name.len)
        return -1;
    if (!hw_str_is(family, "pm") && !hw_str_is(family, "envreg"))
        return -1;
    return by_sreg[sreg_slot(family)] - 1;
}
