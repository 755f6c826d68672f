/* SPDX-License-Identifier: Apache-2.0
 * bench: eleven kernels on Halfwarp, pocl and native C, interleaved in one run.
 *
 *   halfwarp run bench [--dir bench] [--rounds N] [--kernel NAME] [--write docs/performance.md]
 *   halfwarp run bench --counting yes [the same]: what counting costs (counting.c)
 *
 * For each kernel every engine runs once from the same inputs and the results are compared; then
 * `rounds` rounds run each engine once in turn, and the least processor time (all threads) of each
 * counts. The table and the closing lines give ratios: above 1, Halfwarp is faster. Between the
 * marks of the --write file the table is replaced. */
#include "engine.h"
#include "native.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    ENGINES = 3,
    STREAM = 1 << 22,
    MATRIX = 512,
    IMAGE = 1024,
    BODIES = 4096,
    ROWS = 1 << 18,
    ROW_ENTRIES = 16,
    WIDE = 2048,
    LIMIT = 256,
    SUMS = 256
};

static const engine *const engines[ENGINES] = { &engine_halfwarp, &engine_pocl, &engine_native };

/* ---- inputs ---- */
static unsigned seed = 1;

static float unit(void)
{
    seed = seed * 1664525u + 1013904223u;
    return (float)(seed >> 8) / 16777216.0f;
}

static void *space(size_t bytes)
{
    void *p = calloc(1, bytes);
    if (!p) {
        fprintf(stderr, "bench: no memory\n");
        exit(1);
    }
    return p;
}

static float *floats(size_t n)
{
    float *p = space(n * sizeof *p);
    for (size_t i = 0; i < n; i++)
        p[i] = unit();
    return p;
}

static int *ints(size_t n, unsigned below)
{
    int *p = space(n * sizeof *p);
    for (size_t i = 0; i < n; i++)
        p[i] = (int)(unit() * (float)below);
    return p;
}

static int *row_starts(void)
{
    int *p = space((ROWS + 1) * sizeof *p);
    for (int i = 0; i <= ROWS; i++)
        p[i] = i * ROW_ENTRIES;
    return p;
}

/* ---- the work ---- */
#define IN(p, n)  { .kind = ARG_BUFFER, .host = (p), .bytes = (size_t)(n) * 4 }
#define OUT(p, n) { .kind = ARG_BUFFER, .host = (p), .bytes = (size_t)(n) * 4, .written = true }
#define INT(v)    { .kind = ARG_INT, .i = (v) }
#define FLOAT(v)  { .kind = ARG_FLOAT, .f = (v) }

/* clang-format off */
static unsigned make_work(work *w)
{
    float *x = floats(STREAM), *a = floats(MATRIX * MATRIX), *b = floats(MATRIX * MATRIX), *m = floats(WIDE * WIDE);
    float *zero = space(STREAM * 4 + 64);
    const work all[] = {
        { "saxpy", native_saxpy, { STREAM / 256, 1 }, { 256, 1 }, { FLOAT(2.5f), IN(x, STREAM), OUT(floats(STREAM), STREAM), INT(STREAM) }, 4, 1e-6, false },
        { "sgemm_16x16", native_sgemm_tiled, { MATRIX / 16, MATRIX / 16 }, { 16, 16 }, { IN(a, MATRIX * MATRIX), IN(b, MATRIX * MATRIX), OUT(zero, MATRIX * MATRIX), INT(MATRIX) }, 4, 1e-5, false },
        { "sgemm_32x32", native_sgemm_tiled, { MATRIX / 32, MATRIX / 32 }, { 32, 32 }, { IN(a, MATRIX * MATRIX), IN(b, MATRIX * MATRIX), OUT(zero, MATRIX * MATRIX), INT(MATRIX) }, 4, 1e-5, false },
        { "sgemm_naive", native_sgemm_naive, { MATRIX / 16, MATRIX / 16 }, { 16, 16 }, { IN(a, MATRIX * MATRIX), IN(b, MATRIX * MATRIX), OUT(zero, MATRIX * MATRIX), INT(MATRIX) }, 4, 1e-5, false },
        { "mandelbrot", native_mandelbrot, { IMAGE / 32, IMAGE / 8 }, { 32, 8 }, { OUT(zero, IMAGE * IMAGE), INT(IMAGE), INT(LIMIT) }, 3, 0, true },
        { "reduction", native_reduction, { SUMS, 1 }, { 256, 1 }, { IN(x, STREAM), OUT(zero, SUMS), INT(STREAM) }, 3, 1e-4, true },
        { "histogram", native_histogram, { 64, 1 }, { 256, 1 }, { IN(ints(STREAM, 256), STREAM), OUT(zero, 256), INT(STREAM) }, 3, 0, false },
        { "transpose", native_transpose, { WIDE / 32, WIDE / 32 }, { 32, 8 }, { IN(m, WIDE * WIDE), OUT(zero, WIDE * WIDE), INT(WIDE) }, 3, 0, false },
        { "transpose_padded", native_transpose, { WIDE / 32, WIDE / 32 }, { 32, 8 }, { IN(m, WIDE * WIDE), OUT(zero, WIDE * WIDE), INT(WIDE) }, 3, 0, false },
        { "nbody", native_nbody, { BODIES / 256, 1 }, { 256, 1 }, { IN(floats(BODIES * 4), BODIES * 4), OUT(zero, BODIES * 4), INT(BODIES) }, 3, 1e-4, false },
        { "spmv", native_spmv, { ROWS / 256, 1 }, { 256, 1 }, { IN(row_starts(), ROWS + 1), IN(ints((size_t)ROWS * ROW_ENTRIES, ROWS), ROWS * ROW_ENTRIES), IN(floats((size_t)ROWS * ROW_ENTRIES), ROWS * ROW_ENTRIES), IN(floats(ROWS), ROWS), OUT(zero, ROWS), INT(ROWS) }, 6, 1e-5, false },
    };
    memcpy(w, all, sizeof all);
    return sizeof all / sizeof *all;
}
/* clang-format on */

/* ---- comparing ---- */
static double value(const work *w, const void *data, size_t i)
{
    return w->tolerance > 0 ? (double)((const float *)data)[i] : (double)((const int *)data)[i];
}

/* Mandelbrot's fused and unfused orbits differ at the border: its total may differ by a thousandth.
 */
static bool same(const work *w, const void *a, const void *b, size_t n)
{
    double largest = 0, worst = 0, sum_a = 0, sum_b = 0;
    for (size_t i = 0; i < n; i++) {
        double va = value(w, a, i), vb = value(w, b, i);
        sum_a += va;
        sum_b += vb;
        largest = fmax(largest, fabs(vb));
        worst = fmax(worst, fabs(va - vb));
    }
    if (w->total)
        return fabs(sum_a - sum_b) <= (w->tolerance > 0 ? w->tolerance : 1e-3) * fabs(sum_b);
    return worst <= w->tolerance * largest;
}

static bool check(const work *w, const bool *have)
{
    unsigned out = 0;
    while (!w->args[out].written)
        out++;
    size_t bytes = w->args[out].bytes;
    void *result[ENGINES];
    bool good = true;
    for (unsigned e = 0; e < ENGINES; e++) {
        result[e] = space(bytes);
        if (!have[e])
            continue;
        if (!engines[e]->run() || !engines[e]->fetch(out, result[e])) {
            fprintf(stderr, "bench: %s fails on %s\n", w->name, engines[e]->name);
            good = false;
        }
    }
    for (unsigned e = 0; e + 1 < ENGINES; e++)
        if (have[e] && !same(w, result[e], result[ENGINES - 1], bytes / 4)) {
            fprintf(stderr, "bench: %s on %s differs from native\n", w->name, engines[e]->name);
            good = false;
        }
    for (unsigned e = 0; e < ENGINES; e++)
        free(result[e]);
    return good;
}

/* ---- timing ---- */
double bench_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static bool measure(const work *w, const bool *have, unsigned rounds, double *best)
{
    bool good = true;
    for (unsigned e = 0; e < ENGINES; e++) {
        best[e] = INFINITY;
        good &= !have[e] || engines[e]->prepare(w);
    }
    good = good && check(w, have);
    for (unsigned r = 0; good && r < rounds; r++)
        for (unsigned e = 0; e < ENGINES; e++) {
            if (!have[e])
                continue;
            double start = bench_seconds();
            good &= engines[e]->run();
            best[e] = fmin(best[e], bench_seconds() - start);
        }
    for (unsigned e = 0; e < ENGINES; e++)
        if (have[e])
            engines[e]->finish();
    return good;
}

/* ---- reporting ---- */
bool bench_write(const char *path, const char *mark, const char *table)
{
    static char old[1 << 20];
    char begin_mark[64], end_mark[64];
    snprintf(begin_mark, sizeof begin_mark, "<!-- %s: begin -->\n", mark);
    snprintf(end_mark, sizeof end_mark, "<!-- %s: end -->\n", mark);
    FILE *f = fopen(path, "rb");
    size_t n = f ? fread(old, 1, sizeof old - 1, f) : 0;
    if (f)
        fclose(f);
    old[n] = 0;
    char *begin = strstr(old, begin_mark), *end = strstr(old, end_mark);
    if (!begin || !end || end < begin) {
        fprintf(stderr, "bench: %s has no %s marks\n", path, mark);
        return false;
    }
    f = fopen(path, "wb");
    if (!f)
        return false;
    fwrite(old, 1, (size_t)(begin - old), f);
    fprintf(f, "%s%s%s", begin_mark, table, end);
    return fclose(f) == 0;
}

typedef struct score {
    double log_sum, least;
    const char *least_name;
    unsigned n;
} score;

static void add_ratio(score *s, double ratio, const char *name)
{
    s->log_sum += log(ratio);
    if (!s->n++ || ratio < s->least) {
        s->least = ratio;
        s->least_name = name;
    }
}

typedef struct options {
    const char *dir, *kernel, *write, *counting;
    unsigned rounds;
} options;

static bool parse_options(int argc, char **argv, options *o)
{
    *o = (options){ .dir = "bench", .rounds = 9 };
    for (int i = 1; i + 1 < argc; i += 2) {
        if (!strcmp(argv[i], "--dir"))
            o->dir = argv[i + 1];
        else if (!strcmp(argv[i], "--kernel"))
            o->kernel = argv[i + 1];
        else if (!strcmp(argv[i], "--counting"))
            o->counting = argv[i + 1];
        else if (!strcmp(argv[i], "--write"))
            o->write = argv[i + 1];
        else if (!strcmp(argv[i], "--rounds"))
            o->rounds = (unsigned)strtoul(argv[i + 1], NULL, 10);
        else
            return false;
    }
    return argc % 2 == 1 && o->rounds > 0;
}

/* A --kernel that is none measures nothing: said. */
static bool kernel_exists(const options *o, const work *w, unsigned n)
{
    for (unsigned i = 0; o->kernel && i < n; i++)
        if (strcmp(o->kernel, w[i].name) == 0)
            return true;
    if (!o->kernel)
        return true;
    fprintf(stderr, "bench: no kernel '%s'; there are", o->kernel);
    for (unsigned i = 0; i < n; i++)
        fprintf(stderr, " %s", w[i].name);
    fprintf(stderr, "\n");
    return false;
}

static bool run_all(const options *o, const bool *have, char *table, size_t size, score *scores)
{
    work w[16];
    unsigned n = make_work(w);
    bool good = true;
    size_t at = (size_t)snprintf(table, size,
                                 "| kernel | Halfwarp ms | pocl ms | native ms | vs pocl | vs "
                                 "native |\n|---|---|---|---|---|---|\n");
    for (unsigned i = 0; i < n; i++) {
        double best[ENGINES];
        if (o->kernel && strcmp(o->kernel, w[i].name) != 0)
            continue;
        if (!measure(&w[i], have, o->rounds, best)) {
            fprintf(stderr, "bench: %s: no figure\n", w[i].name);
            good = false;
            continue;
        }
        double ratio[2] = { best[1] / best[0], best[2] / best[0] };
        at += (size_t)snprintf(table + at, size - at, "| %s | %.3f | %.3f | %.3f | %.2f | %.2f |\n",
                               w[i].name, 1e3 * best[0], 1e3 * best[1], 1e3 * best[2], ratio[0],
                               ratio[1]);
        printf("%-18s halfwarp %9.3f ms   pocl %9.3f ms (%.2f)   native %9.3f ms (%.2f)\n",
               w[i].name, 1e3 * best[0], 1e3 * best[1], ratio[0], 1e3 * best[2], ratio[1]);
        fflush(stdout);
        for (unsigned k = 0; k < 2; k++)
            if (have[k + 1])
                add_ratio(&scores[k], ratio[k], w[i].name);
    }
    return good;
}

int main(int argc, char **argv)
{
    options o;
    if (!parse_options(argc, argv, &o)) {
        fprintf(stderr, "usage: bench [--dir DIR] [--rounds N] [--kernel NAME] [--write FILE.md] "
                        "[--counting yes]\n");
        return 2;
    }
    work w[16];
    unsigned n = make_work(w);
    if (!kernel_exists(&o, w, n))
        return 2;
    setenv("HALFWARP_TIER", "second", 0); /* compiling is not in the figures */
    if (o.counting)
        return bench_counting(o.dir, w, n, o.kernel, o.rounds, o.write);
    /* OpenMP's threads must sleep between regions: their spinning would count as others' processor
     * time. */
    setenv("KMP_BLOCKTIME", "0", 1);
    setenv("OMP_WAIT_POLICY", "passive", 1);
    bool have[ENGINES];
    for (unsigned e = 0; e < ENGINES; e++) {
        char why[512] = "";
        have[e] = engines[e]->open(o.dir, why, sizeof why);
        if (!have[e])
            fprintf(stderr, "bench: without %s: %s\n", engines[e]->name, why);
    }
    if (!have[0])
        return 1;
    static char table[1 << 16];
    score scores[2] = { { 0 } };
    bool good = run_all(&o, have, table, sizeof table, scores);
    if (o.write)
        good &= bench_write(o.write, "bench", table);
    for (unsigned k = 0; k < 2; k++)
        if (scores[k].n)
            printf("bench: geomean vs %s = %.2f\n", engines[k + 1]->name,
                   exp(scores[k].log_sum / scores[k].n));
    if (scores[0].n)
        printf("bench: least vs pocl = %.2f (%s)\n", scores[0].least, scores[0].least_name);
    return good ? 0 : 1;
}
