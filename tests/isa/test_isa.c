/* SPDX-License-Identifier: Apache-2.0
 * Runs every case of the instruction table: the instruction, parsed, checked, lowered and executed
 * for many lanes, against the row's lane expression in plain C.
 * test_isa [-m] [-1] [-n LANES] [PREFIX]: only instructions that begin with PREFIX; -m: .ftz and others
 * in one kernel; -1: a kernel for each. */
#include "execute.h"
#include "hw_ptx.h"
#include "lane_cases.h"

#include <stdio.h>
#include <stdlib.h>

lane_state lane_now;

enum { IN_BYTES = 32, OUT_BYTES = 8 };

typedef struct options {
    const char *prefix;
    unsigned lanes, group;
    bool mixed;
} options;

/* ---- inputs: edges of the type first, then random patterns ---- */

static uint64_t next_random(uint64_t *s)
{
    *s ^= *s << 13;
    *s ^= *s >> 7;
    *s ^= *s << 17;
    return *s * UINT64_C(0x2545f4914f6cdd1d);
}

/* clang-format off */
static const uint64_t ints[] = {
    0, 1, 2, 3, 4, 7, 8, 15, 16, 17, 24, 31, 32, 33, 40, 63, 64, 65, 127, 128, 129, 255, 256, 0x7fff, 0x8000, 0x8001,
    0xffff, 0x10000, 0x7fffff, 0x800000, 0xffffff, 0x12345678, 0x7fffffff, 0x80000000, 0x80000001, 0xfffffffe, 0xffffffff,
    0x100000000, 0x7fffffffffffffff, 0x8000000000000000, 0x8000000000000001, 0xfffffffffffffffe, 0xffffffffffffffff,
    0xffffffffffff8000, 0xffffffff80000000, 0xffffffffffffff80, 0xf0f0f0f0f0f0f0f0, 0x0123456789abcdef,
};
static const double reals[] = {
    0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, -1.5, 2.0, 2.5, -2.5, 3.0, 0.1, -0.1, 1.0 / 3, 10.0, 100.25, -255.5, 255.5, 256.0,
    65504.0, 65519.0, 65520.0, 1e5, 8388607.5, 8388608.0, 16777217.0, 2147483647.0, 2147483648.0, -2147483648.0, 4294967295.0,
    4294967296.0, 9.2e18, -9.3e18, 1.8e19, 2e19, 3.4e38, -3.4e38, 1e39, 1e-5, 0x1p-14, 0x1p-15, 0x1p-24, 0x1p-25, 0x1.8p-24,
    0x1p-126, 0x1p-127, -0x1p-130, 0x1p-149, 0x1p-150, 0x1.fffffep127, 0x1p126, 0x1p127, 1e300, 1e-300, 0x1p-1022, 0x1p-1060,
    (double)INFINITY, -(double)INFINITY, (double)NAN,
};
/* clang-format on */

static bool is_type(const char *t, const char *name)
{
    return strcmp(t, name) == 0;
}

static const char *part_type(const char *t)
{
    static const char *const parts[][2] = { { "f32x2", "f32" },
                                            { "f16x2", "f16" },
                                            { "bf16x2", "bf16" },
                                            { "u16x2", "u16" },
                                            { "s16x2", "s16" } };
    for (size_t k = 0; k < HW_COUNTOF(parts); k++)
        if (is_type(t, parts[k][0]))
            return parts[k][1];
    return t;
}

static unsigned type_bits(const char *t)
{
    if (is_type(t, "pred"))
        return 1;
    if (strchr(t, 'x'))
        return is_type(t, "f32x2") ? 64 : 32;
    return (unsigned)strtoul(t + strcspn(t, "0123456789"), NULL, 10);
}

static bool is_float(const char *t)
{
    return (t[0] == 'f' || t[0] == 'b') && strchr(t, 'f') != NULL;
}

static uint64_t encode(const char *t, double v)
{
    if (is_type(t, "f64"))
        return soft_bits64(v);
    if (is_type(t, "f32"))
        return soft_narrow(v, SOFT_F32, SOFT_RN);
    return soft_narrow(v, t[0] == 'b' ? SOFT_BF16 : SOFT_F16, SOFT_RN);
}

/* A real of moderate size, where approximations have their bounds. */
static double moderate(uint64_t r)
{
    double m = 1.0 + (double)(r & 0xfffffffffffff) * 0x1p-52;
    return ldexp(r >> 63 ? -m : m, (int)((r >> 52) & 31) - 16);
}

static uint64_t edge(const char *t, unsigned k)
{
    if (is_float(t) && strchr(t, 'x')) {
        const char *half = part_type(t);
        return encode(half, reals[k % HW_COUNTOF(reals)]) |
               encode(half, reals[(k * 7 + 3) % HW_COUNTOF(reals)]) << type_bits(half);
    }
    return is_float(t) ? encode(t, reals[k % HW_COUNTOF(reals)]) : ints[k % HW_COUNTOF(ints)];
}

static uint64_t mask_bits(uint64_t v, unsigned bits)
{
    return bits >= 64 ? v : v & ((UINT64_C(1) << bits) - 1);
}

static uint64_t input(const lane_case *c, unsigned lane, unsigned k, uint64_t *seed)
{
    static const unsigned strides[] = { 1, 61, 7, 13 };
    const char *t = c->types[k];
    uint64_t r = next_random(seed), v;
    unsigned n = is_float(t) ? HW_COUNTOF(reals) : HW_COUNTOF(ints);
    if (c->nsrc == 1 && type_bits(t) <= 16 && lane < 65536)
        v = lane * UINT64_C(40503) >> 0; /* odd: all patterns when there are lanes enough */
    else if (c->nsrc == 1 && lane < n)
        v = edge(t, lane);
    else if (lane % 4 < 2 && c->nsrc > 1)
        v = edge(t, k == 0 ? lane / 2 % n : lane / (2 * strides[k]) + (unsigned)(r >> 60));
    else if (is_float(t) && lane % 4 == 2)
        v = strchr(t, 'x') ? encode(part_type(t), moderate(r)) |
                                 encode(part_type(t), moderate(r << 7)) << type_bits(part_type(t))
                           : encode(t, moderate(r));
    else
        v = r >> 7;
    return mask_bits(v, type_bits(t));
}

/* ---- the kernel around some instructions: each case reads its inputs and writes its result ---- */

enum { GROUP = 16, TEXT = 1 << 16 };

typedef struct group {
    const lane_case *cases[GROUP];
    unsigned n, lanes;
    uint64_t (*in)[IN_BYTES / 8]; /* case by case, lanes of each */
    uint64_t *out, *params;
} group;

typedef struct writer {
    char text[TEXT];
    size_t len;
} writer;

static HW_PRINTF(2, 3) void put(writer *w, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(w->text + w->len, TEXT - w->len, fmt, ap);
    va_end(ap);
    w->len += n > 0 && (size_t)n < TEXT - w->len ? (size_t)n : 0;
}

static void put_load(writer *w, const char *t, const char *reg, unsigned at)
{
    if (is_type(t, "pred"))
        put(w,
            "ld.global.u32 %%r15, [%%rd18+%u];\nand.b32 %%r15, %%r15, 1;\n"
            "setp.ne.u32 %s, %%r15, 0;\n",
            at, reg);
    else
        put(w, "ld.global.b%u %s, [%%rd18+%u];\n", type_bits(t), reg, at);
}

static void put_case(writer *w, const lane_case *c, unsigned in, unsigned out)
{
    for (unsigned k = 0; k < c->nsrc; k++)
        if (!c->has_literal || k + 1 < c->nsrc)
            put_load(w, c->types[k], c->regs[k], in + 8 * k);
    put(w, "%s\n", c->insn);
    if (is_type(c->dest, "pred"))
        put(w, "selp.u32 %%r15, 1, 0, %s;\nst.global.u32 [%%rd17+%u], %%r15;\n", c->dest_reg, out);
    else
        put(w, "st.global.b%u [%%rd17+%u], %s;\n", type_bits(c->dest), out, c->dest_reg);
}

static const char *kernel_text(const group *g)
{
    static writer w;
    w.len = 0;
    put(&w,
        ".version 9.0\n.target sm_120\n.address_size 64\n"
        ".visible .entry k(.param .u64 in, .param .u64 out)\n{\n%s"
        "ld.param.u64 %%rd18, [in];\nld.param.u64 %%rd17, [out];\n"
        "mov.u32 %%r19, %%ctaid.x;\nmov.u32 %%r18, %%tid.x;\n"
        "mad.lo.u32 %%r19, %%r19, 32, %%r18;\n"
        "mad.wide.u32 %%rd18, %%r19, %u, %%rd18;\nmad.wide.u32 %%rd17, %%r19, %u, %%rd17;\n",
        lane_decls, IN_BYTES, OUT_BYTES);
    for (unsigned k = 0; k < g->n; k++)
        put_case(&w, g->cases[k], k * g->lanes * IN_BYTES, k * g->lanes * OUT_BYTES);
    put(&w, "ret;\n}\n");
    return w.text;
}

static bool build(hw_arena *a, const group *g, hw_wir_module **w)
{
    hw_diag *d = hw_diag_new(a);
    hw_ptx_unit *u = NULL;
    hw_ptx_module *m = NULL;
    const char *text = kernel_text(g);
    if (hw_ptx_parse(a, hw_str_of(text), "case", &u, d) == HW_OK &&
        hw_ptx_link(a, &u, 1, &m, d) == HW_OK && hw_ptx_lower(a, m, 0, w, d) == HW_OK &&
        hw_wir_verify(*w, d) == HW_OK)
        return true;
    hw_str why = hw_diag_text(d, a);
    printf("%.*s\n", HW_STR_ARG(why));
    return false;
}

/* ---- comparing ---- */

static double decode(const char *t, uint64_t v)
{
    if (is_type(t, "f64"))
        return soft_double(v);
    if (is_type(t, "f32"))
        return (double)soft_float((uint32_t)v);
    return soft_widen(v & 0xffff, t[0] == 'b' ? SOFT_BF16 : SOFT_F16);
}

static double unit_of(const char *t, double v)
{
    int fraction = is_type(t, "f64") ? 52 : is_type(t, "f32") ? 23 : t[0] == 'b' ? 7 : 10;
    int least = is_type(t, "f64") ? -1074 : is_type(t, "f32") ? -149 : t[0] == 'b' ? -133 : -24;
    int e;
    frexp(v, &e);
    return ldexp(1.0, e - 1 - fraction > least ? e - 1 - fraction : least);
}

typedef struct range {
    double least, most; /* smallest normal and largest finite value */
} range;

static range range_of(const char *t)
{
    if (is_type(t, "f64"))
        return (range){ 0x1p-1022, 0x1.fffffffffffffp1023 };
    return is_type(t, "f16") ? (range){ 0x1p-14, 65504 } : (range){ 0x1p-126, 0x1.fffffep127 };
}

static bool close_enough(const char *t, double want, double got)
{
    range r = range_of(t);
    if (want == got || (isnan(want) && isnan(got)))
        return true;
    if (isnan(want) || isnan(got))
        return false;
    if (HAS(ftz) && fabs(want) <= r.least && got == 0)
        return true;
    if (isinf(want) || isinf(got)) /* at the edge of the range */
        return fmin(fabs(want), fabs(got)) >= r.most / 2 && signbit(want) == signbit(got);
    return fabs(want - got) <= fmax(lane_now.ulps * unit_of(t, want), lane_now.absolute);
}

static bool same(const char *t, uint64_t want, uint64_t got)
{
    if (lane_now.any || want == got)
        return true;
    if (!is_float(t))
        return false;
    double w = decode(t, want), g = decode(t, got);
    if (HAS(relu) && w == 0 && g == 0)
        return true; /* the sign of a zero is not said */
    if (lane_now.inexact)
        return close_enough(t, w, g);
    return isnan(w) && isnan(g);
}

static int c_round(int r)
{
    static const int modes[] = { FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD,
                                 FE_TONEAREST };
    return modes[r];
}

/* What every row's result goes through: .sat, .relu and .ftz. */
static uint64_t finish(const lane_case *c, const char *t, uint64_t r)
{
    if (!is_float(t))
        return r;
    double v = decode(t, r);
    if (HAS(sat))
        r = !(v > 0) ? 0 : v > 1 ? encode(t, 1.0) : r;
    if (HAS(relu) && v <= 0)
        r = 0;
    else if (HAS(satfinite) && isinf(v))
        r -= 1;
    double least = is_type(t, "f16") ? 0x1p-14 : 0x1p-126;
    if (HAS(ftz) && c->flushes && !is_type(t, "f64") && v != 0 && fabs(v) < least)
        r &= UINT64_C(1) << (type_bits(t) - 1);
    return r;
}

static uint64_t expected_part(const lane_case *c, const char *t, const uint64_t *in)
{
    fesetround(c_round(lane_now.round));
    uint64_t r = c->lane(in);
    fesetround(FE_TONEAREST);
    return lane_now.inexact ? r : finish(c, t, r);
}

static bool check_lane(const lane_case *c, const uint64_t *in, uint64_t got, uint64_t *want)
{
    bool ok = true;
    *want = 0;
    const char *t = part_type(c->dest);
    unsigned bits = type_bits(t);
    for (unsigned p = 0; p < (c->packed ? 2 : 1); p++) {
        uint64_t part[4];
        for (unsigned k = 0; k < 4; k++)
            part[k] = c->packed ? mask_bits(in[k] >> (bits * p), bits) : in[k];
        lane_now.inexact = lane_now.any = false;
        uint64_t w = expected_part(c, t, part),
                 g = c->packed ? mask_bits(got >> (bits * p), bits) : got;
        ok = ok && same(t, w, g);
        *want |= w << (bits * p);
    }
    return ok;
}

static void set_mods(const lane_case *c)
{
    lane_now = (lane_state){ .round = c->round, .mode = -1, .cmp = -1, .boolop = -1 };
    for (unsigned k = 0; c->mods[k]; k++) {
        int m = c->mods[k] - 1;
        lane_now.has[m] = true;
        if (m >= LANE_eq && m <= LANE_nan)
            lane_now.cmp = m;
        if (m == LANE_and || m == LANE_or || m == LANE_xor)
            lane_now.boolop = m;
        if (m >= LANE_f4e && m <= LANE_rc16)
            lane_now.mode = m;
    }
}

/* ---- a group of cases ---- */

static unsigned compare(const group *g, unsigned k)
{
    const lane_case *c = g->cases[k];
    unsigned wrong = 0, bits = type_bits(c->dest);
    set_mods(c);
    for (unsigned l = k * g->lanes; l < (k + 1) * g->lanes; l++) {
        uint64_t want, got = mask_bits(g->out[l], bits);
        if (check_lane(c, g->in[l], got, &want))
            continue;
        if (wrong++ < 2)
            printf("%s a=%llx b=%llx c=%llx e=%llx: got %llx, want %llx\n", c->insn,
                   (unsigned long long)g->in[l][0], (unsigned long long)g->in[l][1],
                   (unsigned long long)g->in[l][2], (unsigned long long)g->in[l][3],
                   (unsigned long long)got, (unsigned long long)want);
    }
    if (wrong)
        printf("FAILED %s: %u of %u lanes\n", c->insn, wrong, g->lanes);
    return wrong;
}

static void fill(const group *g, unsigned at)
{
    const lane_case *c = g->cases[at];
    uint64_t seed = UINT64_C(88172645463325252);
    for (unsigned l = 0; l < g->lanes; l++)
        for (unsigned k = 0; k < 4; k++)
            g->in[at * g->lanes + l][k] = k >= c->nsrc ? 0
                                          : c->has_literal && k + 1 == c->nsrc
                                              ? c->literal
                                              : input(c, l, k, &seed);
}

/* Returns how many of its cases fail, and empties the group. */
static unsigned run_group(group *g)
{
    if (!g->n)
        return 0;
    for (unsigned k = 0; k < g->n; k++)
        fill(g, k);
    memset(g->out, 0xee, (size_t)g->n * g->lanes * sizeof *g->out);
    g->params[0] = (uint64_t)(uintptr_t)g->in;
    g->params[1] = (uint64_t)(uintptr_t)g->out;
    hw_arena *a = hw_arena_new();
    hw_wir_module *w = NULL;
    bool ok = build(a, g, &w) && execute(&(execute_job){ w, g->params, g->lanes / 32, 32, NULL });
    hw_arena_free(a);
    unsigned failed = 0;
    for (unsigned k = 0; k < g->n; k++) {
        if (!ok)
            printf("FAILED %s: its group does not run\n", g->cases[k]->insn);
        failed += !ok || compare(g, k) != 0;
    }
    g->n = 0;
    return failed;
}

/* Cases with .ftz and without go to kernels of their own, since code for a kernel of one kind sets the
 * processor's mode; mixed: both in one, which flushes by hand. */
static unsigned run_all(const options *o, group groups[2], unsigned *run)
{
    unsigned failed = 0;
    for (unsigned k = 0; k < lane_ncases; k++) {
        if (strncmp(lane_cases[k].insn, o->prefix, strlen(o->prefix)) != 0)
            continue;
        *run += 1;
        group *g = &groups[!o->mixed && strstr(lane_cases[k].insn, ".ftz") ? 1 : 0];
        g->cases[g->n++] = &lane_cases[k];
        if (g->n == o->group)
            failed += run_group(g);
    }
    return failed + run_group(&groups[0]) + run_group(&groups[1]);
}

int main(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    options o = { .prefix = "", .lanes = 512, .group = GROUP };
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "-m") == 0)
            o.mixed = true;
        else if (strcmp(argv[i], "-1") == 0)
            o.group = 1;
        else if (strcmp(argv[i], "-n") == 0 && i + 1 < argc)
            o.lanes = (unsigned)strtoul(argv[++i], NULL, 10) & ~31u;
        else
            o.prefix = argv[i];
    }
    group groups[2] = { { .lanes = o.lanes }, { .lanes = o.lanes } };
    groups[0].in = groups[1].in = execute_memory((size_t)GROUP * o.lanes * IN_BYTES);
    groups[0].out = groups[1].out = execute_memory((size_t)GROUP * o.lanes * OUT_BYTES);
    groups[0].params = groups[1].params = execute_memory(2 * sizeof(uint64_t));
    if (!groups[0].in || !groups[0].out || !groups[0].params)
        return 2;
    unsigned run = 0, failed = run_all(&o, groups, &run);
    printf("%s: %u cases of %u lanes, %u failed\n", execute_name, run, o.lanes, failed);
    return failed != 0;
}
