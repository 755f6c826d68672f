/* SPDX-License-Identifier: Apache-2.0
 * What the benchmark compares: engines that run a kernel by name on device buffers of their own. */
#ifndef BENCH_ENGINE_H
#define BENCH_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MAX_ARGS = 6 };

typedef struct arg {
    enum { ARG_BUFFER, ARG_INT, ARG_FLOAT } kind;
    bool written; /* a buffer the kernel writes: compared between engines */
    void *host;   /* buffer: its initial contents */
    size_t bytes;
    int i;
    float f;
} arg;

typedef struct work {
    const char *name; /* also the kernel's */
    void (*native)(void **args);
    uint32_t grid[2], block[2];
    arg args[MAX_ARGS];
    unsigned nargs;
    double tolerance; /* of a written float, relative to the largest value; 0: integers, equal */
    bool total;       /* compare the sum of the written buffer, not its elements */
} work;

/* An engine prepares a piece of work (compile, allocate, upload), runs it as often as asked and
 * brings buffers back. */
typedef struct engine {
    const char *name;
    bool (*open)(const char *dir, char *why,
                 size_t why_size); /* dir: where the kernel sources are */
    bool (*prepare)(const work *w);
    bool (*run)(void); /* returns when the work is done */
    bool (*fetch)(unsigned index, void *to);
    void (*finish)(void);
} engine;

extern const engine engine_halfwarp, engine_pocl, engine_native;

double bench_seconds(void); /* processor time of all threads of the process */
/* Replaces what stands between the marks <!-- MARK: begin --> and <!-- MARK: end --> of a file. */
bool bench_write(const char *path, const char *mark, const char *table);
/* counting.c: the n kernels, or the one named, with counting and without; the exit status. write: NULL or a file. */
int bench_counting(const char *dir, const work *w, unsigned n, const char *kernel, unsigned rounds,
                   const char *write);

#endif
