/* SPDX-License-Identifier: Apache-2.0
 *
 * What is known of all lanes' values without running: the greatest and the low zero bits of an offset
 * made by masking and shifting, so that tables in shared memory need no checks.
 */
#include "access.h"

enum { MOST_DEPTH = 8 };

/* Unsigned, of the register's width. */
typedef struct bound {
    uint64_t most;
    unsigned zeros; /* low bits that are 0 */
} bound;

static bound anything(unsigned bits)
{
    return (bound){ bits >= 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1, 0 };
}

static unsigned zeros_of(uint64_t x)
{
    return x ? (unsigned)__builtin_ctzll(x) : 63;
}

static unsigned lesser(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

static void note_reads(hw_gen *g, const hw_wir_insn *in)
{
    for (uint32_t k = 0; k < in->nsrc; k++)
        if (in->src[k].kind == HW_V_REG)
            g->is_read[in->src[k].reg] = true;
    if (in->guard.kind == HW_V_REG)
        g->is_read[in->guard.reg] = true;
}

/* The definitions of registers that have one only; which registers are read. */
static void find_definitions(hw_gen *g)
{
    g->is_read = HW_NEW_N(g->arena, bool, g->f->regs.len);
    for (uint32_t i = 0; i < g->f->nresults; i++)
        g->is_read[g->f->results[i]] = true;
    bool *seen = HW_NEW_N(g->arena, bool, g->f->regs.len);
    g->def_of = HW_NEW_N(g->arena, const hw_wir_insn *, g->f->regs.len);
    for (uint32_t i = 0; i < g->f->nparams; i++)
        seen[g->f->params[i]] = true;
    for (size_t b = 0; b < g->f->blocks.len; b++) {
        const hw_wir_block *w = &g->f->blocks.ptr[b];
        for (size_t i = 0; i < w->insns.len; i++) {
            note_reads(g, &w->insns.ptr[i]);
            for (uint32_t k = 0; k < w->insns.ptr[i].ndst; k++) {
                if (w->insns.ptr[i].dst[k].kind != HW_V_REG)
                    continue;
                uint32_t r = w->insns.ptr[i].dst[k].reg;
                g->def_of[r] = seen[r] ? NULL : &w->insns.ptr[i];
                seen[r] = true;
            }
        }
    }
}

static bound of(const hw_gen *g, hw_wir_val v, unsigned bits, unsigned depth);

/* A bound of 2^bits or more: the value may have wrapped. */
static bound fit(bound x, unsigned bits)
{
    bound all = anything(bits);
    all.zeros = lesser(x.zeros, bits);
    return x.most <= all.most ? x : all;
}

static bound sum(bound a, bound b, unsigned bits)
{
    uint64_t most;
    bool over = __builtin_add_overflow(a.most, b.most, &most);
    return fit((bound){ over ? UINT64_MAX : most, lesser(a.zeros, b.zeros) }, bits);
}

static bound product(bound a, bound b, unsigned bits)
{
    uint64_t most;
    bool over = __builtin_mul_overflow(a.most, b.most, &most);
    return fit((bound){ over ? UINT64_MAX : most, lesser(a.zeros + b.zeros, 63) }, bits);
}

static bound either(bound a, bound b)
{
    return (bound){ a.most > b.most ? a.most : b.most, lesser(a.zeros, b.zeros) };
}

/* x | y and x ^ y: below the next power of two. */
static bound joined(bound a, bound b)
{
    uint64_t m = a.most | b.most;
    unsigned top = m ? 64 - (unsigned)__builtin_clzll(m) : 0;
    return (bound){ top >= 64 ? UINT64_MAX : (UINT64_C(1) << top) - 1, lesser(a.zeros, b.zeros) };
}

static bound shifted(const hw_wir_insn *in, bound a, unsigned bits)
{
    uint64_t by = in->src[1].imm;
    if (in->src[1].kind != HW_V_IMM || by >= bits)
        return in->src[1].kind == HW_V_IMM ? (bound){ 0, 63 } : anything(bits);
    if (in->op == HW_W_SHL)
        return product(a, (bound){ UINT64_C(1) << by, (unsigned)by }, bits);
    return (bound){ a.most >> by, a.zeros > by ? a.zeros - (unsigned)by : 0 };
}

static bound field(const hw_wir_insn *in, unsigned bits)
{
    uint64_t n = in->src[2].imm & 255;
    return in->src[2].kind == HW_V_IMM && n < bits ? (bound){ (UINT64_C(1) << n) - 1, 0 }
                                                   : anything(bits);
}

static bound two(const hw_gen *g, const hw_wir_insn *in, unsigned bits, unsigned depth)
{
    bound a = of(g, in->src[0], bits, depth), b = of(g, in->src[1], bits, depth);
    switch (in->op) {
    case HW_W_ADD:
        return sum(a, b, bits);
    case HW_W_MUL:
        return product(a, b, bits);
    case HW_W_AND:
        return (bound){ a.most < b.most ? a.most : b.most, a.zeros > b.zeros ? a.zeros : b.zeros };
    case HW_W_MIN_U:
        return (bound){ a.most < b.most ? a.most : b.most, lesser(a.zeros, b.zeros) };
    default:
        return joined(a, b);
    }
}

static bound thread_number(const hw_gen *g, const hw_wir_insn *in, unsigned bits)
{
    const uint32_t *n = g->v->block;
    switch (in->imm) {
    case HW_SR_TID_X:
        return (bound){ n[0] - 1, 0 };
    case HW_SR_TID_Y:
        return (bound){ n[1] - 1, 0 };
    case HW_SR_TID_Z:
        return (bound){ n[2] - 1, 0 };
    case HW_SR_LANEID:
        return (bound){ GEN_LANES - 1, 0 };
    default:
        return anything(bits);
    }
}

static bound of(const hw_gen *g, hw_wir_val v, unsigned bits, unsigned depth)
{
    if (v.kind == HW_V_IMM)
        return (bound){ v.imm & anything(bits).most, zeros_of(v.imm) };
    const hw_wir_insn *in = v.kind == HW_V_REG ? g->def_of[v.reg] : NULL;
    unsigned from = in ? hw_wir_bits((hw_wir_type)in->type) : 0;
    bool whole = in && in->type >= HW_T_I1 && in->type <= HW_T_I64; /* not parts of a register */
    if (!whole || depth == MOST_DEPTH || in->guard.kind == HW_V_REG)
        return anything(bits);
    depth++;
    switch (in->op) {
    case HW_W_MOV:
        return of(g, in->src[0], bits, depth);
    case HW_W_ZEXT:
    case HW_W_TRUNC:
        return fit(of(g, in->src[0], from, depth), bits);
    case HW_W_SELECT:
        return either(of(g, in->src[1], bits, depth), of(g, in->src[2], bits, depth));
    case HW_W_SHL:
    case HW_W_SHR_U:
        return shifted(in, of(g, in->src[0], bits, depth), bits);
    case HW_W_BFE_U:
        return field(in, bits);
    case HW_W_ADD:
    case HW_W_MUL:
    case HW_W_AND:
    case HW_W_OR:
    case HW_W_XOR:
    case HW_W_MIN_U:
        return two(g, in, bits, depth);
    case HW_W_SREG:
        return thread_number(g, in, bits);
    default:
        return anything(bits);
    }
}

bool hwg_surely_inside(hw_gen *g, hw_wir_val address, int64_t hi, unsigned align)
{
    if (!g->def_of)
        find_definitions(g);
    if (address.kind != HW_V_REG)
        return false;
    bound b = of(g, address, hw_wir_bits((hw_wir_type)g->f->regs.ptr[address.reg].type), 0);
    return align <= UINT64_C(1) << b.zeros && b.most + (uint64_t)hi <= g->m->static_shared_bytes &&
           b.most <= g->m->static_shared_bytes;
}

bool hwg_is_read(hw_gen *g, uint32_t reg)
{
    if (!g->def_of)
        find_definitions(g);
    return g->is_read[reg];
}

const hw_wir_insn *hwg_only_definition(hw_gen *g, uint32_t reg)
{
    if (!g->def_of)
        find_definitions(g);
    return g->def_of[reg];
}
