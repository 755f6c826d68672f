/* SPDX-License-Identifier: Apache-2.0
 *
 * The errors of PTX's approximate functions against MPFR: each within the bound that the PTX ISA
 * states (sections 9.7.3 and 9.7.4, "max error"). All values of 16-bit types; of f32 and f64 each
 * exponent's edges and random fractions. `--every` goes through all 2^32 values of f32: what the C
 * library in double precision finds near the bound is judged by MPFR.
 */
#include "execute.h"
#include "hw_ptx.h"

#include <math.h>
#include <mpfr.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PRECISION = 120, CHUNK = 1 << 20 };

/* ---- number formats ---- */

typedef struct format {
    const char *name, *move; /* suffixes of the instruction, and of loads and stores */
    unsigned bytes, digits;  /* of the significand, the hidden one too */
    int least;               /* exponent of the smallest normal number */
} format;

static const format F64 = { "f64", "b64", 8, 53, -1022 }, F32 = { "f32", "b32", 4, 24, -126 },
                    F16 = { "f16", "b16", 2, 11, -14 }, BF16 = { "bf16", "b16", 2, 8, -126 };

static double decode(const format *f, uint64_t bits)
{
    unsigned fraction = f->digits - 1, width = f->bytes * 8;
    uint64_t m = bits & ((UINT64_C(1) << fraction) - 1);
    int top = (1 << (width - 1 - fraction)) - 1;
    int e = (int)(bits >> fraction) & top;
    double sign = bits >> (width - 1) & 1 ? -1 : 1;
    if (e == top)
        return m ? NAN : sign * INFINITY;
    if (e == 0)
        return sign * ldexp((double)m, f->least - (int)fraction);
    return sign * ldexp((double)(m | UINT64_C(1) << fraction), f->least + e - 1 - (int)fraction);
}

static uint64_t load(const format *f, const uint8_t *from, size_t k)
{
    uint64_t bits = 0;
    memcpy(&bits, from + k * f->bytes, f->bytes);
    return bits;
}

/* ---- what is tested ---- */

typedef int function1(mpfr_t out, const mpfr_t x, mpfr_rnd_t rnd);
typedef enum measure { ULP, RELATIVE, ABSOLUTE, EITHER } measure; /* EITHER: absolute or relative */

typedef struct bound {
    measure by;
    double most;
    double up_to; /* |input| that it holds for; 0: any. Beyond, results lie in [-1, 1]. */
} bound;

typedef struct row {
    const char *op;
    const format *f;
    function1 *exact; /* NULL: the quotient of two operands */
    double (*near)(double);
    bound first, then; /* then: beyond first.up_to */
    bool ftz, upper_half;
} row;

static int reciprocal(mpfr_t out, const mpfr_t x, mpfr_rnd_t rnd)
{
    return mpfr_ui_div(out, 1, x, rnd);
}

static int reciprocal_root(mpfr_t out, const mpfr_t x, mpfr_rnd_t rnd)
{
    return mpfr_zero_p(x) ? mpfr_ui_div(out, 1, x, rnd) : mpfr_rec_sqrt(out, x, rnd);
}

static double near_rcp(double x)
{
    return 1 / x;
}

static double near_rsqrt(double x)
{
    return 1 / sqrt(x);
}

#define TWO_PI (2 * M_PI)
/* clang-format off */
static const row rows[] = {
    /* instruction        type   exact            in double   bound */
    { "rcp.approx",       &F32,  reciprocal,      near_rcp,   { ULP, 1, 0 }, { 0 }, false, false },
    { "rcp.approx.ftz",   &F32,  reciprocal,      near_rcp,   { ULP, 1, 0 }, { 0 }, true,  false },
    { "rcp.approx.ftz",   &F64,  reciprocal,      near_rcp,   { RELATIVE, 0x1p-20, 0 }, { 0 }, true, true },
    { "sqrt.approx",      &F32,  mpfr_sqrt,       sqrt,       { RELATIVE, 0x1p-23, 0 }, { 0 }, false, false },
    { "sqrt.approx.ftz",  &F32,  mpfr_sqrt,       sqrt,       { RELATIVE, 0x1p-23, 0 }, { 0 }, true, false },
    { "rsqrt.approx",     &F32,  reciprocal_root, near_rsqrt, { RELATIVE, 0x1.125fbep-23 /* 2^-22.9 */, 0 }, { 0 }, false, false },
    { "rsqrt.approx.ftz", &F32,  reciprocal_root, near_rsqrt, { RELATIVE, 0x1.125fbep-23, 0 }, { 0 }, true, false },
    { "rsqrt.approx.ftz", &F64,  reciprocal_root, near_rsqrt, { RELATIVE, 0x1p-20, 0 }, { 0 }, true, true },
    { "sin.approx",       &F32,  mpfr_sin,        sin,        { ABSOLUTE, 0x1.6a09e6p-21 /* 2^-20.5 */, TWO_PI }, { ABSOLUTE, 0x1.3b2c47p-15 /* 2^-14.7 */, 100 * M_PI }, false, false },
    { "sin.approx.ftz",   &F32,  mpfr_sin,        sin,        { ABSOLUTE, 0x1.6a09e6p-21, TWO_PI }, { ABSOLUTE, 0x1.3b2c47p-15, 100 * M_PI }, true, false },
    { "cos.approx",       &F32,  mpfr_cos,        cos,        { ABSOLUTE, 0x1.6a09e6p-21, TWO_PI }, { ABSOLUTE, 0x1.3b2c47p-15, 100 * M_PI }, false, false },
    { "cos.approx.ftz",   &F32,  mpfr_cos,        cos,        { ABSOLUTE, 0x1.6a09e6p-21, TWO_PI }, { ABSOLUTE, 0x1.3b2c47p-15, 100 * M_PI }, true, false },
    { "lg2.approx",       &F32,  mpfr_log2,       log2,       { EITHER, 0x1p-22, 0 }, { 0 }, false, false },
    { "lg2.approx.ftz",   &F32,  mpfr_log2,       log2,       { EITHER, 0x1p-22, 0 }, { 0 }, true, false },
    { "ex2.approx",       &F32,  mpfr_exp2,       exp2,       { ULP, 2, 0 }, { 0 }, false, false },
    { "ex2.approx.ftz",   &F32,  mpfr_exp2,       exp2,       { ULP, 2, 0 }, { 0 }, true, false },
    { "tanh.approx",      &F32,  mpfr_tanh,       tanh,       { RELATIVE, 0x1p-11, 0 }, { 0 }, false, false },
    { "tanh.approx",      &F16,  mpfr_tanh,       tanh,       { ABSOLUTE, 0x1.025135p-11 /* 2^-10.987 */, 0 }, { 0 }, false, false },
    { "tanh.approx",      &BF16, mpfr_tanh,       tanh,       { ABSOLUTE, 0x1p-8, 0 }, { 0 }, false, false },
    { "ex2.approx",       &F16,  mpfr_exp2,       exp2,       { RELATIVE, 0x1.125fbep-10 /* 2^-9.9 */, 0 }, { 0 }, false, false },
    { "ex2.approx.ftz",   &BF16, mpfr_exp2,       exp2,       { RELATIVE, 0x1p-7, 0 }, { 0 }, true, false },
    { "div.approx",       &F32,  NULL,            NULL,       { ULP, 2, 0 }, { 0 }, false, false },
    { "div.approx.ftz",   &F32,  NULL,            NULL,       { ULP, 2, 0 }, { 0 }, true, false },
    { "div.full",         &F32,  NULL,            NULL,       { ULP, 2, 0 }, { 0 }, false, false },
    { "div.full.ftz",     &F32,  NULL,            NULL,       { ULP, 2, 0 }, { 0 }, true, false },
};
/* clang-format on */

/* ---- carrying it out ---- */

typedef struct kernel {
    hw_arena *arena;
    hw_wir_module *w;
    uint8_t *in[2], *out;
} kernel;

static const char text[] =
    ".version 8.6\n.target sm_90\n.address_size 64\n"
    ".visible .entry k(.param .u64 x, .param .u64 y, .param .u64 out)\n{\n"
    "  .reg .b64 p, q, o, n;\n  .reg .b32 i, j;\n  .reg .%1$s a, b, c;\n"
    "  ld.param.u64 p, [x];\n  ld.param.u64 q, [y];\n  ld.param.u64 o, [out];\n"
    "  mov.u32 i, %%ctaid.x;\n  mov.u32 j, %%tid.x;\n"
    "  mad.lo.s32 i, i, 32, j;\n  mul.wide.u32 n, i, %2$u;\n"
    "  add.s64 p, p, n;\n  add.s64 q, q, n;\n  add.s64 o, o, n;\n"
    "  ld.global.%1$s a, [p];\n  ld.global.%1$s b, [q];\n"
    "  %3$s.%4$s c, a%5$s;\n  st.global.%1$s [o], c;\n  ret;\n}\n";

static kernel compile(const row *r)
{
    static uint8_t *memory[3];
    kernel k = { .arena = hw_arena_new() };
    hw_diag *d = hw_diag_new(k.arena);
    char source[1500];
    int n = snprintf(source, sizeof source, text, r->f->move, r->f->bytes, r->op, r->f->name,
                     r->exact ? "" : ", b");
    hw_ptx_unit *u = NULL;
    hw_ptx_module *m = NULL;
    if (hw_ptx_parse(k.arena, (hw_str){ source, (size_t)n }, "approx.ptx", &u, d) != HW_OK ||
        hw_ptx_link(k.arena, &u, 1, &m, d) != HW_OK ||
        hw_ptx_lower(k.arena, m, 0, &k.w, d) != HW_OK) {
        hw_str why = hw_diag_text(d, k.arena);
        printf("%.*s\n", HW_STR_ARG(why));
        exit(1);
    }
    for (unsigned i = 0; i < 3; i++)
        if (!memory[i])
            memory[i] = execute_memory((size_t)CHUNK * 8);
    k.in[0] = memory[0], k.in[1] = memory[1], k.out = memory[2];
    return k;
}

static void run(const kernel *k, size_t n)
{
    uint64_t params[3] = { (uintptr_t)k->in[0], (uintptr_t)k->in[1], (uintptr_t)k->out };
    uint64_t *p = execute_memory(sizeof params);
    memcpy(p, params, sizeof params);
    if (!execute(&(execute_job){ k->w, p, (unsigned)((n + 31) / 32), 32, NULL }))
        exit(1);
}

/* ---- judging ---- */

static mpfr_t mx, my, mwant, merror;

static bool is_subnormal(const format *f, double x)
{
    return x != 0 && fabs(x) < ldexp(1, f->least);
}

static const bound *bound_of(const row *r, double x)
{
    if (r->first.up_to == 0 || fabs(x) <= r->first.up_to)
        return &r->first;
    return fabs(x) <= r->then.up_to ? &r->then : NULL;
}

/* The error in units of the bound; merror holds |got - want|. */
static double excess(const row *r, const bound *b)
{
    const format *f = r->f;
    mpfr_exp_t e = mpfr_zero_p(mwant) ? f->least : mpfr_get_exp(mwant) - 1;
    double unit = ldexp(1, (int)(e < f->least ? f->least : e) - (int)f->digits + 1);
    double error = mpfr_get_d(merror, MPFR_RNDU);
    if (b->by == ULP)
        return error / unit / b->most;
    /* no format of fewer digits can be nearer than half a unit below the normal numbers */
    double floor = e < f->least ? unit / 2 : 0,
           relative = b->most * fabs(mpfr_get_d(mwant, MPFR_RNDN));
    double most = b->by == RELATIVE   ? relative
                  : b->by == ABSOLUTE ? b->most
                                      : fmax(b->most, relative);
    return error / fmax(most, floor);
}

/* What the operation gives, in mwant. */
static void exactly(const row *r, double x, double y)
{
    mpfr_set_d(mx, x, MPFR_RNDN);
    mpfr_set_d(my, y, MPFR_RNDN);
    if (r->exact)
        r->exact(mwant, mx, MPFR_RNDN);
    else
        mpfr_div(mwant, mx, my, MPFR_RNDN);
}

static double flushed(const row *r, double v)
{
    return r->ftz && is_subnormal(r->f, v) ? copysign(0, v) : v;
}

/* One of want (rounded to double) and got is infinite: both, or just at the edge of the range. */
static bool overflow_agrees(const format *f, double want, double got)
{
    double top = ldexp(2 - ldexp(1, 1 - (int)f->digits), 1 - f->least);
    return want == got || (fabs(want) >= top * (1 - ldexp(1, 2 - (int)f->digits)) &&
                           signbit(want) == signbit(got));
}

/* The error in units of the bound, infinite where the kind of number is wrong. */
static double judge(const row *r, double x, double y, double got)
{
    x = flushed(r, x);
    const bound *b = bound_of(r, x);
    if (!b) /* something bounded, or no number */
        return (isfinite(x) ? fabs(got) <= 1 : isnan(got)) ? 0 : INFINITY;
    exactly(r, x, flushed(r, y));
    double want = mpfr_get_d(mwant, MPFR_RNDN);
    if (isnan(want) || isnan(got))
        return isnan(got) && isnan(want) ? 0 : INFINITY;
    if (isinf(want) || isinf(got))
        return overflow_agrees(r->f, want, got) ? 0 : INFINITY;
    if (r->ftz && got == 0 && fabs(want) < ldexp(1, r->f->least))
        return 0;
    mpfr_set_d(merror, got, MPFR_RNDN);
    mpfr_sub(merror, merror, mwant, MPFR_RNDA);
    mpfr_abs(merror, merror, MPFR_RNDN);
    return excess(r, b);
}

/* div.approx holds its bound for |y| in [2^-126, 2^126]; rounding to zero is allowed beyond. */
static bool is_free(const row *r, double y)
{
    return !r->exact && strncmp(r->op, "div.approx", 10) == 0 &&
           (fabs(y) > 0x1p126 || fabs(y) < 0x1p-126);
}

typedef struct tally {
    uint64_t values;
    double worst;
    double x, y, got;
} tally;

static void count(tally *t, double e, double x, double y, double got)
{
    t->values++;
    if (e > t->worst)
        *t = (tally){ t->values, e, x, y, got };
}

/* Well inside the bound by the C library: needs no closer look. */
static bool is_plain(const row *r, double x, double got)
{
    const bound *b = bound_of(r, x);
    double want = r->near(x), most = b ? b->most : 0;
    if (!b || !isnormal(want) || !isfinite(got))
        return false;
    if (b->by == ULP) /* at least */
        most *= ldexp(1, -(int)r->f->digits);
    return fabs(want - got) <= 0.7 * most * (b->by == ABSOLUTE ? 1 : fabs(want));
}

static void judge_all(const row *r, const kernel *k, size_t n, bool filter, tally *t)
{
    for (size_t i = 0; i < n; i++) {
        double x = decode(r->f, load(r->f, k->in[0], i)), y = decode(r->f, load(r->f, k->in[1], i));
        double got = decode(r->f, load(r->f, k->out, i));
        if (is_free(r, y))
            continue;
        if (filter && is_plain(r, x, got)) {
            t->values++;
            continue;
        }
        count(t, judge(r, x, y, got), x, y, got);
    }
}

/* ---- which values ---- */

static uint64_t state;

static uint64_t next_random(void)
{
    state += UINT64_C(0x9e3779b97f4a7c15);
    uint64_t z = state;
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* Value i of n: exponents and signs in turn, fractions at the edges first, then random. */
static uint64_t sample(const format *f, size_t i)
{
    unsigned fraction = f->digits - 1, width = f->bytes * 8;
    uint64_t heads = UINT64_C(1) << (width - fraction), mask = (UINT64_C(1) << fraction) - 1;
    uint64_t head = i % heads, turn = i / heads, edge[] = { 0, 1, mask, mask / 2 };
    uint64_t m = turn < 4 ? edge[turn] : next_random() & mask;
    return head << fraction | m;
}

static void fill(const format *f, uint8_t *to, size_t n, uint64_t from, bool in_order)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t v = in_order ? from + i : sample(f, i + from);
        memcpy(to + i * f->bytes, &v, f->bytes);
    }
}

static bool test_row(const row *r, bool every)
{
    kernel k = compile(r);
    bool all = r->f->bytes == 2 || (every && r->f->bytes == 4 && r->exact);
    uint64_t total = !all ? 1 << 18 : r->f->bytes == 2 ? 1 << 16 : UINT64_C(1) << 32;
    tally t = { 0 };
    for (uint64_t from = 0; from < total; from += CHUNK) {
        size_t n = total - from < CHUNK ? total - from : CHUNK;
        fill(r->f, k.in[0], n, from, all);
        for (size_t i = 0; i < n; i++) { /* the second operand: near the first, or anything */
            uint64_t x = load(r->f, k.in[0], i), v = next_random();
            v = i & 1 ? v : x ^ (v & 0xffffff);
            memcpy(k.in[1] + i * r->f->bytes, &v, r->f->bytes);
        }
        run(&k, n);
        judge_all(r, &k, n, all && r->f->bytes == 4, &t);
    }
    printf("%-18s %-4s %9llu judged, worst %.3f of the bound at %a", r->op, r->f->name,
           (unsigned long long)t.values, t.worst, t.x);
    if (!r->exact)
        printf(", %a", t.y);
    printf(": %a\n", t.got);
    hw_arena_free(k.arena);
    return t.worst <= 1;
}

int main(int argc, char **argv)
{
    bool every = argc > 1 && strcmp(argv[1], "--every") == 0, good = true;
    mpfr_inits2(PRECISION, mx, my, mwant, merror, (mpfr_ptr)NULL);
    printf("executed by %s; seed %llu\n", execute_name, (unsigned long long)state);
    for (size_t i = 0; i < HW_COUNTOF(rows); i++)
        good = test_row(&rows[i], every) && good;
    mpfr_clears(mx, my, mwant, merror, (mpfr_ptr)NULL);
    mpfr_free_cache();
    return good ? 0 : 1;
}
