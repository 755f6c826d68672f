/* SPDX-License-Identifier: Apache-2.0
 * GCN instructions as assembler text: one printer a format, operands by the row's sizes. */
#include "gcn.h"

#include <stdarg.h>
#include <stdio.h>

typedef struct writer {
    char *out;
    size_t size, len;
    bool first; /* no operand written yet */
} writer;

static void put(writer *w, const char *fmt, ...) HW_PRINTF(2, 3);

static void put(writer *w, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    char *at = w->len < w->size ? w->out + w->len : NULL;
    int n = vsnprintf(at, at ? w->size - w->len : 0, fmt, ap);
    va_end(ap);
    w->len += n > 0 ? (size_t)n : 0;
}

static void comma(writer *w)
{
    put(w, w->first ? " " : ", ");
    w->first = false;
}

static void range(writer *w, char kind, unsigned base, unsigned width)
{
    if (width <= 1)
        put(w, "%c%u", kind, base);
    else
        put(w, "%c[%u:%u]", kind, base, base + width - 1);
}

/* Register pairs with names of their own: number of the low half, name. */
static const struct {
    uint16_t number;
    const char *name;
} pairs[] = {
    { 104, "flat_scratch" }, { 106, "vcc" }, { 108, "tba" }, { 110, "tma" }, { 126, "exec" }
};

static const struct {
    uint16_t number;
    const char *name;
} singles[] = {
    { 124, "m0" },       { 128, "0" },
    { 240, "0.5" },      { 241, "-0.5" },
    { 242, "1.0" },      { 243, "-1.0" },
    { 244, "2.0" },      { 245, "-2.0" },
    { 246, "4.0" },      { 247, "-4.0" },
    { 251, "src_vccz" }, { 252, "src_execz" },
    { 253, "src_scc" },  { 254, "src_lds_direct" },
};

static bool put_pair(writer *w, unsigned n, unsigned width)
{
    for (size_t p = 0; p < HW_COUNTOF(pairs); p++) {
        if (n != pairs[p].number && n != pairs[p].number + 1u)
            continue;
        const char *half = width > 1 ? "" : n == pairs[p].number ? "_lo" : "_hi";
        put(w, "%s%s", pairs[p].name, half);
        return true;
    }
    return false;
}

static bool put_single(writer *w, unsigned n)
{
    for (size_t s = 0; s < HW_COUNTOF(singles); s++)
        if (singles[s].number == n) {
            put(w, "%s", singles[s].name);
            return true;
        }
    return false;
}

/* Any operand by its number in the encoding. */
static void value(writer *w, const hw_gcn_insn *i, unsigned n, unsigned width)
{
    if (n >= 256)
        range(w, 'v', n - 256, width);
    else if (n == 255)
        put(w, "0x%x", i->literal);
    else if (put_pair(w, n, width) || put_single(w, n))
        return;
    else if (n < 104)
        range(w, 's', n, width);
    else if (n >= 112 && n < 124)
        width > 1 ? put(w, "ttmp[%u:%u]", n - 112, n - 112 + width - 1) : put(w, "ttmp%u", n - 112);
    else if (n > 128 && n <= 192)
        put(w, "%u", n - 128);
    else if (n > 192 && n <= 208)
        put(w, "-%u", n - 192);
    else
        put(w, "<%u>", n);
}

static void operand(writer *w, const hw_gcn_insn *i, unsigned n, unsigned width)
{
    comma(w);
    value(w, i, n, width);
}

/* A minus before an integer constant would make another constant of it: neg() says what is meant.
 */
static void source(writer *w, const hw_gcn_insn *i, unsigned s)
{
    unsigned n = i->src[s];
    bool neg = i->neg >> s & 1, abs = i->abs >> s & 1, constant = n >= 128 && n < 248;
    comma(w);
    put(w, "%s%s", !neg ? "" : constant && !abs ? "neg(" : "-", abs ? "|" : "");
    value(w, i, n, i->row->src[s]);
    put(w, "%s%s", abs ? "|" : "", neg && constant && !abs ? ")" : "");
}

static void dst_and_sources(writer *w, const hw_gcn_insn *i)
{
    if (i->row->dst)
        operand(w, i, i->dst, i->row->dst);
    for (unsigned s = 0; s < 4 && i->row->src[s]; s++)
        source(w, i, s);
}

static void print_sopk(writer *w, const hw_gcn_insn *i)
{
    if (i->row->dst)
        operand(w, i, i->dst, i->row->dst);
    if (i->row->flags & G_HWREG) {
        unsigned field = (uint16_t)i->imm;
        comma(w);
        put(w, "hwreg(%u, %u, %u)", field & 63, field >> 6 & 31, (field >> 11) + 1);
        if (i->row->flags & G_LITERAL) {
            comma(w);
            put(w, "0x%x", i->literal);
        }
    }
    if (i->row->src[0])
        operand(w, i, i->src[0], i->row->src[0]);
    if (!(i->row->flags & G_HWREG)) {
        comma(w);
        put(w, "0x%x", (unsigned)(uint16_t)i->imm);
    }
}

static void print_waitcnt(writer *w, unsigned field)
{
    put(w, " vmcnt(%u) expcnt(%u) lgkmcnt(%u)", field & 15, field >> 4 & 7, field >> 8 & 15);
}

/* SOPP opcodes without an immediate; s_waitcnt in words when its field has no other bits. */
static void print_sopp(writer *w, const hw_gcn_insn *i)
{
    static const uint8_t bare[] = { 1, 10, 19, 22 }; /* endpgm, barrier, icache_inv, ttracedata */
    enum { WAITCNT = 12, WAITCNT_BITS = 0xf7f };
    unsigned field = (uint16_t)i->imm;
    for (size_t b = 0; b < sizeof bare; b++)
        if (i->row->opcode == bare[b] && field == 0)
            return;
    if (i->row->opcode == WAITCNT && !(field & ~(unsigned)WAITCNT_BITS))
        print_waitcnt(w, field);
    else
        put(w, " %u", field);
}

static void print_smrd(writer *w, const hw_gcn_insn *i)
{
    dst_and_sources(w, i);
    if (!i->row->src[0])
        return;
    comma(w);
    if (i->imm_flag || i->has_literal)
        put(w, "0x%x", i->has_literal ? i->literal : (unsigned)i->imm);
    else
        value(w, i, (unsigned)i->imm, 1);
}

/* What tells the short and the long encoding of a vector operation apart, where it has both. */
static const char *vop_suffix(const hw_gcn_insn *i)
{
    if (i->row->format == HW_GCN_VOP3)
        return "";
    if (i->encoding == HW_GCN_VOP3)
        return "_e64";
    return i->row->flags & (G_K1 | G_K2) ? "" : "_e32";
}

static void print_vop(writer *w, const hw_gcn_insn *i)
{
    put(w, "%s", vop_suffix(i));
    if (i->row->dst)
        operand(w, i, i->dst, i->row->dst);
    if (i->row->flags & G_CO || i->row->format == HW_GCN_VOPC)
        operand(w, i, i->sdst, 2);
    for (unsigned s = 0; s < 3 && i->row->src[s]; s++) {
        if (s == 1 && i->row->flags & G_K1) {
            comma(w);
            put(w, "0x%x", i->literal);
        }
        source(w, i, s);
    }
    if (i->row->flags & G_K2) {
        comma(w);
        put(w, "0x%x", i->literal);
    }
    if (i->row->flags & G_CIN)
        operand(w, i, i->src[2], 2);
    if (i->clamp)
        put(w, " clamp");
    static const char *const omod[] = { "", " mul:2", " mul:4", " div:2" };
    put(w, "%s", omod[i->omod]);
}

static void print_ds(writer *w, const hw_gcn_insn *i)
{
    if (i->row->dst)
        operand(w, i, i->dst, i->row->dst);
    for (unsigned s = 0; s < 3 && i->row->src[s]; s++)
        operand(w, i, i->src[s], i->row->src[s]);
    if (!i->row->dst && !i->row->src[0]) /* ds_nop: the offset means nothing */
        return;
    if (i->row->flags & G_OFF2)
        put(w, " offset0:%u offset1:%u", (unsigned)i->imm, i->imm2);
    else if (i->imm)
        put(w, " offset:%u", (unsigned)i->imm);
    put(w, "%s", i->gds ? " gds" : "");
}

static void print_cache_bits(writer *w, const hw_gcn_insn *i)
{
    put(w, "%s%s%s", i->glc ? " glc" : "", i->slc ? " slc" : "", i->tfe ? " tfe" : "");
}

static void print_flat(writer *w, const hw_gcn_insn *i)
{
    unsigned status = i->tfe && !(i->row->flags & G_ATOM); /* one more dword with tfe */
    bool returns = i->row->dst && (!(i->row->flags & G_ATOM) || i->glc);
    if (returns)
        operand(w, i, i->dst, i->row->dst + status);
    for (unsigned s = 0; s < 2 && i->row->src[s]; s++)
        operand(w, i, i->src[s], i->row->src[s]);
    print_cache_bits(w, i);
}

static void print_buffer(writer *w, const hw_gcn_insn *i)
{
    unsigned data = i->row->dst ? i->row->dst : i->row->src[0];
    if (!data) /* cache control */
        return;
    if (!i->lds)
        operand(w, i, i->src[0], data + i->tfe);
    comma(w);
    if (i->addr64 || (i->offen && i->idxen))
        range(w, 'v', i->src[1] - 256u, 2);
    else if (i->offen || i->idxen)
        range(w, 'v', i->src[1] - 256u, 1);
    else
        put(w, "off");
    operand(w, i, i->src[2], 4);
    operand(w, i, i->src[3], 1);
    if (i->encoding == HW_GCN_MTBUF)
        put(w, " format:%u", i->dfmt | i->nfmt << 4);
    put(w, "%s%s%s", i->idxen ? " idxen" : "", i->offen ? " offen" : "",
        i->addr64 ? " addr64" : "");
    if (i->imm)
        put(w, " offset:%u", (unsigned)i->imm);
    print_cache_bits(w, i);
    put(w, "%s", i->lds ? " lds" : "");
}

static void (*const printers[HW_GCN_FORMATS])(writer *, const hw_gcn_insn *) = {
    [HW_GCN_SOP2] = dst_and_sources, [HW_GCN_SOPK] = print_sopk,    [HW_GCN_SOP1] = dst_and_sources,
    [HW_GCN_SOPC] = dst_and_sources, [HW_GCN_SOPP] = print_sopp,    [HW_GCN_SMRD] = print_smrd,
    [HW_GCN_VOP2] = print_vop,       [HW_GCN_VOP1] = print_vop,     [HW_GCN_VOPC] = print_vop,
    [HW_GCN_VOP3] = print_vop,       [HW_GCN_DS] = print_ds,        [HW_GCN_FLAT] = print_flat,
    [HW_GCN_MUBUF] = print_buffer,   [HW_GCN_MTBUF] = print_buffer,
};

size_t hw_gcn_print(const hw_gcn_insn *i, char *out, size_t size)
{
    writer w = { .out = out, .size = size, .first = true };
    put(&w, "%s", i->row->name);
    printers[i->encoding](&w, i);
    return w.len;
}
