/* SPDX-License-Identifier: Apache-2.0
 * What counting costs: each kernel plain, with counters, with counters by line and with simulated
 * caches.
 *
 * A process a level is started, as the level is chosen when a program begins; they take turns, and
 * the least processor time of a kernel's rounds counts, of launching, running, counting and
 * telling the profile. Ratios are to the plain process: above 1, counting costs. */
#include "engine.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LEVELS = 4, CACHE_LEVEL = 3, CACHE_ROUNDS = 3 };

static const struct {
    const char *name, *level; /* level NULL: nobody listens */
} levels[LEVELS] = {
    { "plain", NULL }, { "counters", "count" }, { "lines", "lines" }, { "caches", "caches" }
};

/* ---- a process that runs kernels when it is told to ---- */

typedef struct server {
    pid_t pid;
    int to, from;
    char file[64]; /* its profile */
} server;

enum { FAILED = -1 };

static bool reads(int fd, void *to, size_t n)
{
    return read(fd, to, n) == (ssize_t)n;
}

static bool writes(int fd, const void *from, size_t n)
{
    return write(fd, from, n) == (ssize_t)n;
}

/* Each number that comes: the kernel to run once. The answer is its processor time, or FAILED. */
static int serve(const char *dir, const work *w, int from, int to)
{
    char why[512] = "";
    int32_t next, now = -1;
    bool good = engine_halfwarp.open(dir, why, sizeof why);
    if (!good)
        fprintf(stderr, "bench: %s\n", why);
    while (reads(from, &next, sizeof next)) {
        if (good && next != now) {
            engine_halfwarp.finish();
            good = engine_halfwarp.prepare(&w[next]) && engine_halfwarp.run();
            now = next;
        }
        double start = bench_seconds(), took = FAILED;
        if (good && engine_halfwarp.run())
            took = bench_seconds() - start;
        if (!writes(to, &took, sizeof took))
            break;
    }
    return good ? 0 : 1;
}

static bool start(server *s, unsigned level, const char *dir, const work *w)
{
    int there[2], back[2];
    snprintf(s->file, sizeof s->file, "/tmp/halfwarp-bench-XXXXXX");
    int fd = mkstemp(s->file);
    if (fd < 0 || close(fd) || pipe(there) || pipe(back))
        return false;
    s->pid = fork();
    if (s->pid == 0) {
        close(there[1]);
        close(back[0]);
        unsetenv("HALFWARP_PROFILE");
        if (levels[level].level) {
            setenv("HALFWARP_PROFILE", s->file, 1);
            setenv("HALFWARP_PROFILE_LEVEL", levels[level].level, 1);
        }
        exit(serve(dir, w, there[0], back[1]));
    }
    close(there[0]);
    close(back[1]);
    s->to = there[1];
    s->from = back[0];
    return s->pid > 0;
}

static bool stop(server *s)
{
    int status = 1;
    close(s->to);
    close(s->from);
    waitpid(s->pid, &status, 0);
    unlink(s->file);
    return status == 0;
}

/* ---- rounds ---- */

static bool measure(const server *s, int32_t kernel, unsigned rounds, double *best)
{
    for (unsigned l = 0; l < LEVELS; l++)
        best[l] = INFINITY;
    for (unsigned r = 0; r < rounds; r++)
        for (unsigned l = 0; l < LEVELS; l++) {
            double took;
            if (l == CACHE_LEVEL && r >= CACHE_ROUNDS)
                continue;
            if (!writes(s[l].to, &kernel, sizeof kernel) || !reads(s[l].from, &took, sizeof took) ||
                took < 0)
                return false;
            best[l] = fmin(best[l], took);
        }
    return true;
}

typedef struct cost {
    double log_sum, most;
    const char *worst;
    unsigned n;
} cost;

static void add(cost *c, double ratio, const char *name)
{
    c->log_sum += log(ratio);
    if (!c->n++ || ratio > c->most) {
        c->most = ratio;
        c->worst = name;
    }
}

static size_t row(char *at, size_t size, const char *name, const double *best)
{
    const char *form = "| %s | %.3f | %.3f | %.3f | %.3f | %.2f | %.2f | %.2f |\n";
    double plain = best[0];
    return (size_t)snprintf(at, size, form, name, 1e3 * plain, 1e3 * best[1], 1e3 * best[2],
                            1e3 * best[3], best[1] / plain, best[2] / plain, best[3] / plain);
}

static bool run_all(const server *s, const work *w, unsigned n, const char *kernel, unsigned rounds,
                    char *table, size_t size, cost *costs)
{
    bool good = true;
    size_t at = (size_t)snprintf(
        table, size,
        "| kernel | plain ms | counters ms | lines ms | caches ms | counters | lines | caches |\n"
        "|---|---|---|---|---|---|---|---|\n");
    for (unsigned i = 0; i < n; i++) {
        double best[LEVELS];
        if (kernel && strcmp(kernel, w[i].name) != 0)
            continue;
        if (!measure(s, (int32_t)i, rounds, best)) {
            fprintf(stderr, "bench: %s: no figure\n", w[i].name);
            good = false;
            continue;
        }
        printf("%-18s plain %9.3f ms   counters %5.2fx   lines %5.2fx   caches %6.2fx\n", w[i].name,
               1e3 * best[0], best[1] / best[0], best[2] / best[0], best[3] / best[0]);
        fflush(stdout);
        at += row(table + at, size - at, w[i].name, best);
        for (unsigned l = 1; l < LEVELS; l++)
            add(&costs[l], best[l] / best[0], w[i].name);
    }
    return good;
}

int bench_counting(const char *dir, const work *w, unsigned n, const char *kernel, unsigned rounds,
                   const char *write)
{
    static char table[1 << 14];
    server s[LEVELS];
    cost costs[LEVELS] = { { 0 } };
    unsigned started = 0;
    while (started < LEVELS && start(&s[started], started, dir, w))
        started++;
    bool good = started == LEVELS && run_all(s, w, n, kernel, rounds, table, sizeof table, costs);
    while (started > 0) /* the last first: it has the others' pipes as well */
        good &= stop(&s[--started]);
    if (write && good)
        good &= bench_write(write, "counting", table);
    for (unsigned l = 1; l < LEVELS; l++)
        if (costs[l].n)
            printf("bench: %s = %.2fx (worst %s %.2f)\n", levels[l].name,
                   exp(costs[l].log_sum / costs[l].n), costs[l].worst, costs[l].most);
    return good ? 0 : 1;
}
