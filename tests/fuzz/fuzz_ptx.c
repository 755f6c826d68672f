/* SPDX-License-Identifier: Apache-2.0
 * Damaged PTX must be refused with words, never crash, hang or eat the memory.
 *   fuzz_ptx ROUNDS SEED_FILE...   mutates the seeds (a table of snippets is many), always the same
 *                                  way; a text that takes over two seconds, or a refusal without a
 *                                  message, is a failure.
 * Built with -fsanitize=fuzzer -DHW_LIBFUZZER it is a libFuzzer target. */
#include "hw_ptx.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static int accepted;

/* False: something is wrong with how the text was taken. */
static bool take(const char *text, size_t n)
{
    hw_arena *a = hw_arena_new();
    hw_diag *d = hw_diag_new(a);
    hw_ptx_unit *u;
    hw_ptx_module *m;
    hw_wir_module *w;
    hw_status s = hw_ptx_parse(a, (hw_str){ text, n }, "fuzz.ptx", &u, d);
    if (s == HW_OK)
        s = hw_ptx_link(a, &u, 1, &m, d);
    for (uint32_t k = 0; s == HW_OK && k < m->nkernels && k < 4; k++)
        if (hw_ptx_lower(a, m, k, &w, d) == HW_E_INTERNAL)
            s = HW_E_INTERNAL;
    accepted += s == HW_OK;
    bool ok = s == HW_OK || (d->errors && s != HW_E_INTERNAL);
    if (!ok)
        fprintf(stderr, "%s with %u messages: %s\n", hw_status_name(s), d->errors,
                hw_diag_text(d, a).ptr);
    hw_arena_free(a);
    return ok;
}

#ifdef HW_LIBFUZZER

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (!take((const char *)data, n))
        abort();
    return 0;
}

#else

typedef struct dice {
    uint64_t s;
} dice;

static uint64_t next(dice *r) /* splitmix64 */
{
    uint64_t z = r->s += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static size_t below(dice *r, size_t n)
{
    return n ? (size_t)(next(r) % n) : 0;
}

static const char *const words[] = {
    "{",
    "}",
    "(",
    ")",
    "[",
    "]",
    ";",
    ",",
    ".",
    ":",
    "@",
    "!",
    "|",
    "+",
    "-",
    "<",
    ">",
    "=",
    "\"",
    "/*",
    "*/",
    "//",
    "\n",
    "%",
    "_",
    "$",
    "%r1",
    "%rd1",
    "%p1",
    "%tid.x",
    "WARP_SZ",
    "0f3F800000",
    "0d3FF0000000000000",
    "0xffffffffffffffff",
    "-1",
    "4294967296",
    "9223372036854775808",
    "1.0",
    "0",
    "<4000000000>",
    ".reg",
    ".b32",
    ".b64",
    ".pred",
    ".f16",
    ".v4",
    ".v2",
    ".param",
    ".shared",
    ".local",
    ".global",
    ".const",
    ".extern",
    ".visible",
    ".weak",
    ".common",
    ".entry",
    ".func",
    ".align 4096",
    ".align 3",
    ".ptr",
    ".maxntid 1,2,3",
    ".loc 1 2 3",
    ".file 1 \"x\"",
    ".section .debug_str {",
    ".branchtargets A, B;",
    ".callprototype _ (.param .b32 _);",
    ".calltargets f;",
    ".alias f, f;",
    ".pragma \"x\";",
    ".texref",
    "[]",
    "[99999999999]",
    "[4][4][4]",
    "= {1,2,3}",
    "= {{1},{2}}",
    "generic(",
    "mask(",
    "0xff(",
    "mov.b32",
    "ld.param.u64",
    "st.shared.v4.f32",
    "bra",
    "call",
    "call.uni",
    "brx.idx",
    "ret;",
    "exit;",
    "setp.eq.u32",
    "cvt.rn.f32.u32",
    "atom.global.add.u32",
    "shfl.sync.idx.b32",
    "bar.sync 0;",
    "mad.lo.s32",
    "A:",
    "{{{{{{{{",
    "((((((((",
    "}}}}}}}}",
    "\0",
    "\x80\xff",
};

typedef struct text {
    char *p;
    size_t n, cap;
} text;

/* Replace `gone` bytes at `at` with these. */
static void splice(text *t, size_t at, size_t gone, const char *with, size_t n)
{
    if (at > t->n)
        at = t->n;
    if (gone > t->n - at)
        gone = t->n - at;
    if (t->n - gone + n > t->cap)
        return;
    char *copy = malloc(n + 1); /* `with` may lie in t itself */
    memcpy(copy, with, n);
    memmove(t->p + at + n, t->p + at + gone, t->n - at - gone);
    memcpy(t->p + at, copy, n);
    t->n = t->n - gone + n;
    free(copy);
}

static bool in_word(char c)
{
    return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || c == '_' ||
           c == '%';
}

/* Mostly behind the header and between words, where damage goes deeper than the first line. */
static size_t somewhere(dice *r, const text *t)
{
    enum { HEADER = 48 };
    size_t at = below(r, t->n + 1);
    if (t->n > HEADER && below(r, 8))
        at = HEADER + below(r, t->n - HEADER);
    while (at < t->n && in_word(t->p[at]) && below(r, 10))
        at++;
    return at;
}

static size_t word_length(const text *t, size_t at)
{
    size_t n = 1;
    while (at + n < t->n && in_word(t->p[at + n]))
        n++;
    return n;
}

static void mutate(dice *r, text *t, const text *other)
{
    size_t at = somewhere(r, t), n = word_length(t, at);
    if (below(r, 3) == 0)
        n = 1 + below(r, 1 + below(r, 60));
    const char *w = words[below(r, HW_COUNTOF(words))];
    switch (below(r, 8)) {
    case 0:
        splice(t, at, n, "", 0);
        break;
    case 1:
        if (t->n)
            t->p[at % t->n] = (char)next(r);
        break;
    case 2:
        splice(t, at, 0, w, strlen(w));
        break;
    case 3:
        splice(t, at, n, w, strlen(w));
        break;
    case 4: /* a piece of the same text elsewhere */
        if (t->n > n)
            splice(t, at, 0, t->p + below(r, t->n - n), n);
        break;
    case 5: /* a piece of another text */
        if (other->n > n)
            splice(t, at, below(r, n), other->p + below(r, other->n - n), n);
        break;
    case 6:
        for (size_t i = below(r, 200); i > 0; i--)
            splice(t, at, 0, w, strlen(w));
        break;
    default:
        if (below(r, 8) == 0)
            t->n = at;
    }
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static bool round_of(dice *r, const text *seeds, size_t nseeds, text *t)
{
    const text *from = &seeds[below(r, nseeds)];
    t->n = from->n;
    memcpy(t->p, from->p, from->n);
    for (size_t i = 1 + below(r, 1 + below(r, 6)); i > 0; i--)
        mutate(r, t, &seeds[below(r, nseeds)]);
    /* An exact copy, so that a sanitizer sees a read behind the end. */
    char *exact = malloc(t->n ? t->n : 1);
    memcpy(exact, t->p, t->n);
    double begin = now();
    bool ok = take(exact, t->n) && now() - begin < 2;
    free(exact);
    return ok;
}

enum { MOST_SEEDS = 1024 };

typedef struct seed_list {
    text t[MOST_SEEDS];
    size_t n;
} seed_list;

static void add_seed(seed_list *l, const char *header, const char *p, size_t n)
{
    if (l->n == MOST_SEEDS)
        return;
    text *t = &l->t[l->n++];
    *t = (text){ .p = malloc(strlen(header) + n + 1), .n = strlen(header) + n };
    memcpy(t->p, header, strlen(header));
    memcpy(t->p + strlen(header), p, n);
}

/* "=== NAME ..." lines, each with a text behind it */
static void add_snippets(seed_list *l, const char *p)
{
    static const char header[] = ".version 9.0\n.target sm_75\n.address_size 64\n";
    while ((p = strstr(p, "\n=== "))) {
        const char *begin = strchr(p + 1, '\n');
        if (!begin)
            return;
        const char *end = strstr(begin, "\n=== ");
        size_t n = end ? (size_t)(end - begin) : strlen(begin);
        add_seed(l, *begin && begin[1] == '.' && begin[2] == 'v' && begin[3] == 'e' ? "" : header,
                 begin + 1, n - 1);
        p = begin;
    }
}

static void load(const char *path, seed_list *l)
{
    hw_arena *a = hw_arena_new();
    hw_str s;
    if (hw_read_file(a, path, &s, NULL) == HW_OK) {
        if (s.len && s.ptr[0] == '#')
            add_snippets(l, s.ptr);
        else
            add_seed(l, "", s.ptr, s.len < (1 << 20) ? s.len : 1 << 20);
    }
    hw_arena_free(a);
}

int main(int argc, char **argv)
{
    static seed_list seeds;
    text t = { .p = malloc(4 << 20), .cap = 4 << 20 };
    for (int i = 2; i < argc; i++)
        load(argv[i], &seeds);
    int rounds = argc > 1 ? atoi(argv[1]) : 0, bad = 0;
    for (int i = 0; i < rounds && seeds.n && bad < 5; i++) {
        dice r = { (uint64_t)i * 7919 + 1 };
        if (round_of(&r, seeds.t, seeds.n, &t))
            continue;
        fprintf(stderr, "round %d fails:\n%.*s\n", i, t.n < 4000 ? (int)t.n : 4000, t.p);
        bad++;
    }
    printf("%d texts from %zu seeds, %d accepted, %d failed\n", rounds, seeds.n, accepted, bad);
    for (size_t i = 0; i < seeds.n; i++)
        free(seeds.t[i].p);
    free(t.p);
    return bad || !accepted;
}

#endif
