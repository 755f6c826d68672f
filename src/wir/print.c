/* SPDX-License-Identifier: Apache-2.0
 * Warp IR as text, one line an instruction. parse.c reads it back; text -> IR -> text is stable.
 *
 *   module shared=64 params=16 reqntid=0,0,0 indirect=0
 *   symbol @table 3                                  // name, external id
 *   loc 1 "k.cu" 12:3 ptx=40 inlined=0 fn="f"
 *   kernel @k local=0 {                              // or: func @f; "undefined" for a missing body
 *     reg i32 %a %b %.2                              // in order of index; %.N has no (unique) name
 *     params %a
 *     results %b
 *   entry:
 *     %b = add.i32 %a, 5 !1                          // !N: loc
 *     @!%p store.i32.global [%ptr + 16], %b          // guard
 *     cbr %p, entry, .1                              // labels; .N is block N
 *   }
 */
#include "inside.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct printer {
    hw_arena *arena;
    const hw_wir_module *m;
    const char **functions; /* by index: "name" or "#3" */
    const char **symbols;
    const char **regs; /* of the function being printed */
    const char **blocks;
    HW_VEC(char) out;
} printer;

static HW_PRINTF(2, 3) void put(printer *p, const char *fmt, ...)
{
    for (size_t room = 128;; room *= 2) {
        if (p->out.cap - p->out.len < room)
            p->out.ptr =
                hw_vec_grow(p->arena, p->out.ptr, p->out.len, &p->out.cap, 1, p->out.len + room);
        va_list ap;
        va_start(ap, fmt);
        int n = vsnprintf(p->out.ptr + p->out.len, room, fmt, ap);
        va_end(ap);
        HW_CHECK(n >= 0);
        if ((size_t)n < room) {
            p->out.len += (size_t)n;
            return;
        }
    }
}

static bool is_name(const char *s)
{
    if (!s || !(isalpha((unsigned char)*s) || *s == '_' || *s == '$'))
        return false;
    for (; *s; s++)
        if (!(isalnum((unsigned char)*s) || *s == '_' || *s == '$'))
            return false;
    return true;
}

/* The printed names of n things: their own where well formed and not used before, else mark +
 * index. */
static const char **unique_names(hw_arena *a, size_t n, const char *const *own, char mark)
{
    const char **names = HW_NEW_N(a, const char *, n + 1);
    hw_intern *used = hw_intern_new(a);
    for (size_t i = 0; i < n; i++) {
        const char *s = own[i] && own[i][0] == '%' ? own[i] + 1 : own[i];
        bool good = is_name(s) && !hw_intern_find(used, hw_str_of(s));
        if (good)
            hw_intern_id(used, hw_str_of(s));
        names[i] = good ? s : hw_arena_printf(a, "%c%zu", mark, i);
    }
    return names;
}

static void put_value(printer *p, hw_wir_val v)
{
    if (v.kind == HW_V_NONE)
        put(p, "_");
    else if (v.kind == HW_V_REG)
        put(p, "%%%s", p->regs[v.reg]);
    else
        put(p, v.imm < 4096 ? "%llu" : "0x%llx", (unsigned long long)v.imm);
}

static void put_word(printer *p, hw_wir_field field, uint32_t value)
{
    for (size_t i = 0; i < hw_wir_nwords; i++)
        if (hw_wir_words[i].field == field && hw_wir_words[i].value == value)
            put(p, ".%s", hw_wir_words[i].name);
}

static void put_lower(printer *p, const char *s)
{
    for (; *s; s++)
        put(p, "%c", tolower((unsigned char)*s));
}

static bool shows_space(const hw_wir_insn *i)
{
    return hw_wir_has_offset(i->op) || i->op == HW_W_ISSPACE || i->space;
}

static bool shows_atom(const hw_wir_insn *i)
{
    return i->op == HW_W_ATOM || i->op == HW_W_RED || i->op == HW_W_REDUX || i->atom;
}

static void put_modifiers(printer *p, const hw_wir_insn *i)
{
    if (i->count != 1)
        put_word(p, HW_FIELD_COUNT, i->count);
    if (i->round)
        put_word(p, HW_FIELD_ROUND, i->round);
    for (uint32_t bit = 1; bit && bit <= i->flags; bit <<= 1)
        if (i->flags & bit)
            put_word(p, HW_FIELD_FLAG, bit);
}

static void put_words(printer *p, const hw_wir_insn *i)
{
    if (i->type || i->type2)
        put_word(p, HW_FIELD_TYPE, i->type);
    if (i->type2)
        put_word(p, HW_FIELD_TYPE, i->type2);
    if (i->op == HW_W_ICMP || i->op == HW_W_FCMP || i->cond)
        put_word(p, HW_FIELD_COND, i->cond);
    if (shows_space(i))
        put_word(p, HW_FIELD_SPACE, i->space);
    if (shows_atom(i))
        put_word(p, HW_FIELD_ATOM, i->atom);
    if (i->op == HW_W_FENCE || i->scope)
        put_word(p, HW_FIELD_SCOPE, i->scope);
    put_modifiers(p, i);
}

/* What imm names, for the operations where it is an index; true if written. */
static bool put_named(printer *p, const hw_wir_insn *i)
{
    if (i->op == HW_W_SREG && i->imm < HW_SR_COUNT) {
        put(p, " ");
        put_lower(p, hw_wir_sreg_names[i->imm]);
    } else if (i->op == HW_W_HELPER && i->imm < HW_H_COUNT) {
        put(p, " ");
        put_lower(p, hw_wir_helper_names[i->imm]);
    } else if ((i->op == HW_W_CALL || i->op == HW_W_FUNC_ADDR) && i->imm < p->m->functions.len) {
        put(p, " @%s", p->functions[i->imm]);
    } else if (i->op == HW_W_SYMBOL && i->imm < p->m->symbols.len) {
        put(p, " @%s", p->symbols[i->imm]);
    } else {
        return false;
    }
    return true;
}

static void put_sources(printer *p, const hw_wir_insn *i, bool named)
{
    for (uint32_t k = 0; k < i->nsrc; k++) {
        put(p, k || named ? ", " : " ");
        bool address = k == 0 && hw_wir_has_offset(i->op);
        if (address)
            put(p, "[");
        put_value(p, i->src[k]);
        if (address && i->imm)
            put(p, (int64_t)i->imm < 0 ? " - %lld" : " + %lld", llabs((long long)(int64_t)i->imm));
        if (address)
            put(p, "]");
    }
}

static void put_insn(printer *p, const hw_wir_insn *i, const hw_wir_block *b)
{
    put(p, "  ");
    if (i->guard.kind == HW_V_REG)
        put(p, "@%s%%%s ", i->flags & HW_I_NEG_GUARD ? "!" : "", p->regs[i->guard.reg]);
    for (uint32_t k = 0; k < i->ndst; k++) {
        put_value(p, i->dst[k]);
        put(p, k + 1 < i->ndst ? ", " : " = ");
    }
    put_lower(p, hw_wir_ops[i->op].name);
    put_words(p, i);
    bool named = put_named(p, i);
    put_sources(p, i, named);
    if (hw_wir_is(i, HW_WF_T))
        for (uint32_t k = 0; k < b->ntargets; k++)
            put(p, "%s%s", k || i->nsrc ? ", " : " ", p->blocks[b->targets[k]]);
    if (i->imm && !named && !hw_wir_has_offset(i->op))
        put(p, " imm=0x%llx", (unsigned long long)i->imm);
    if (i->aux)
        put(p, " aux=0x%llx", (unsigned long long)i->aux);
    if (i->loc)
        put(p, " !%u", i->loc);
    put(p, "\n");
}

static void put_list(printer *p, const char *word, uint32_t n, const uint32_t *regs)
{
    if (n)
        put(p, "  %s", word);
    for (uint32_t i = 0; i < n; i++)
        put(p, " %%%s", p->regs[regs[i]]);
    if (n)
        put(p, "\n");
}

static void put_regs(printer *p, const hw_wir_function *f)
{
    enum { LINE = 12 };
    size_t on_line = 0;
    for (size_t i = 0; i < f->regs.len; i++, on_line++) {
        if (i == 0 || on_line == LINE || f->regs.ptr[i].type != f->regs.ptr[i - 1].type) {
            put(p, "%s  reg %s", i ? "\n" : "", hw_wir_type_name(f->regs.ptr[i].type));
            on_line = 0;
        }
        put(p, " %%%s", p->regs[i]);
    }
    put(p, f->regs.len ? "\n" : "");
}

static void name_parts(printer *p, const hw_wir_function *f)
{
    size_t n = f->regs.len > f->blocks.len ? f->regs.len : f->blocks.len;
    const char **own = HW_NEW_N(p->arena, const char *, n + 1);
    for (size_t i = 0; i < f->regs.len; i++)
        own[i] = f->regs.ptr[i].name;
    p->regs = unique_names(p->arena, f->regs.len, own, '.');
    for (size_t i = 0; i < f->blocks.len; i++)
        own[i] = f->blocks.ptr[i].label;
    p->blocks = unique_names(p->arena, f->blocks.len, own, '.');
}

static void put_function(printer *p, uint32_t index)
{
    const hw_wir_function *f = &p->m->functions.ptr[index];
    name_parts(p, f);
    put(p, "%s @%s%s local=%u {\n", f->is_kernel ? "kernel" : "func", p->functions[index],
        f->defined ? "" : " undefined", f->local_bytes);
    put_regs(p, f);
    put_list(p, "params", f->nparams, f->params);
    put_list(p, "results", f->nresults, f->results);
    for (size_t b = 0; b < f->blocks.len; b++) {
        put(p, "%s:\n", p->blocks[b]);
        for (size_t i = 0; i < f->blocks.ptr[b].insns.len; i++)
            put_insn(p, &f->blocks.ptr[b].insns.ptr[i], &f->blocks.ptr[b]);
    }
    put(p, "}\n");
}

static void put_locs(printer *p)
{
    for (size_t i = 1; i < p->m->locs.len; i++) {
        const hw_wir_loc *l = &p->m->locs.ptr[i];
        put(p, "loc %zu \"%s\" %u:%u ptx=%u inlined=%u", i, l->file ? l->file : "", l->line,
            l->column, l->ptx_line, l->inlined_at);
        put(p, l->function ? " fn=\"%s\"\n" : "\n", l->function);
    }
}

hw_str hw_wir_print(const hw_wir_module *m, hw_arena *a)
{
    printer p = { .arena = a, .m = m };
    size_t n = m->functions.len > m->symbols.len ? m->functions.len : m->symbols.len;
    const char **own = HW_NEW_N(a, const char *, n + 1);
    for (size_t i = 0; i < m->functions.len; i++)
        own[i] = m->functions.ptr[i].name;
    p.functions = unique_names(a, m->functions.len, own, '#');
    for (size_t i = 0; i < m->symbols.len; i++)
        own[i] = m->symbols.ptr[i].name;
    p.symbols = unique_names(a, m->symbols.len, own, '#');
    put(&p, "module shared=%u params=%u reqntid=%u,%u,%u indirect=%d\n", m->static_shared_bytes,
        m->param_bytes, m->reqntid[0], m->reqntid[1], m->reqntid[2], m->uses_indirect_calls);
    for (size_t i = 0; i < m->symbols.len; i++)
        put(&p, "symbol @%s %u\n", p.symbols[i], m->symbols.ptr[i].external_id);
    put_locs(&p);
    for (uint32_t i = 0; i < m->functions.len; i++)
        put_function(&p, i);
    return (hw_str){ p.out.ptr, p.out.len };
}
