/* SPDX-License-Identifier: Apache-2.0
 *
 * base: what every room stands on.
 *
 * Nouns
 *   status  what a call returns; HW_OK or the kind of failure. Words go to a diag.
 *   str     a borrowed run of bytes with its length; not NUL-terminated unless said.
 *   arena   memory with one lifetime; freed as a whole. Allocation never returns NULL:
 *           when memory is exhausted the arena aborts through hw_oom() (a broken invariant of
 *           the host, not of the program's input; inputs have their sizes checked before).
 *   vec     a growable array in an arena: HW_VEC(type) and the hw_vec_* macros.
 *   intern  a set of names; equal names get the same 32-bit id, ids count from 1 in order of
 * arrival. diag    a list of messages with place (file, line, column) and severity. pool    worker
 * threads that run an indexed job.
 *
 * Rules: nothing here prints, exits or reads the environment. Nothing is locked unless said.
 */
#ifndef HW_BASE_H
#define HW_BASE_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define HW_PUBLIC       __attribute__((visibility("default")))
#define HW_PRINTF(f, a) __attribute__((format(printf, f, a)))
#define HW_COUNTOF(a)   (sizeof(a) / sizeof((a)[0]))

/* ---- status ---- */
typedef enum hw_status {
#define HW_STATUS(name, text) HW_##name,
#include "status.def"
#undef HW_STATUS
    HW_STATUS_COUNT
} hw_status;

/* The status's name ("HW_E_NOMEM") and its sentence; never NULL, static storage. */
const char *hw_status_name(hw_status s);
const char *hw_status_text(hw_status s);

/* Return early with a failing status. */
#define HW_TRY(expr)                \
    do {                            \
        hw_status hw_try_ = (expr); \
        if (hw_try_ != HW_OK)       \
            return hw_try_;         \
    } while (0)

/* ---- strings and bytes ---- */
typedef struct hw_str {
    const char *ptr;
    size_t len;
} hw_str;

typedef struct hw_span {
    const uint8_t *ptr;
    size_t len;
} hw_span;

#define HW_STR(literal) ((hw_str){ (literal), sizeof(literal) - 1 })
#define HW_STR_ARG(s)   (int)(s).len, (s).ptr /* for "%.*s" */

static inline hw_str hw_str_of(const char *c)
{
    return (hw_str){ c, c ? strlen(c) : 0 };
}

static inline bool hw_str_eq(hw_str a, hw_str b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

static inline bool hw_str_is(hw_str a, const char *c)
{
    return hw_str_eq(a, hw_str_of(c));
}

bool hw_str_starts(hw_str s, hw_str prefix);
bool hw_str_ends(hw_str s, hw_str suffix);
/* The name among n that is nearest to want by edit distance, or NULL if none is near (for "did you
 * mean"). */
const char *hw_nearest(const char *want, const char *const *names, size_t n);

/* ---- arena ---- */
typedef struct hw_arena hw_arena;
hw_arena *hw_arena_new(void);
/* In memory that the caller gives: zeroed, and its owner's to free. All is there, the arena itself
 * included, until it does not suffice; hw_arena_is_beyond then says so. */
hw_arena *hw_arena_new_in(void *memory, size_t bytes);
bool hw_arena_is_beyond(const hw_arena *a);
void hw_arena_free(hw_arena *a); /* NULL is fine */
/* Zeroed memory, aligned to 16 (hw_arena_alloc) or to align, a power of two. */
void *hw_arena_alloc(hw_arena *a, size_t size);
void *hw_arena_alloc_aligned(hw_arena *a, size_t size, size_t align);
size_t hw_arena_used(const hw_arena *a); /* bytes handed out so far */
#define HW_NEW(a, type)      ((type *)hw_arena_alloc((a), sizeof(type)))
#define HW_NEW_N(a, type, n) ((type *)hw_arena_alloc_array((a), (n), sizeof(type)))
void *hw_arena_alloc_array(hw_arena *a, size_t n, size_t size);
/* Copies, NUL-terminated. */
hw_str hw_arena_dup(hw_arena *a, hw_str s);
char *hw_arena_cstr(hw_arena *a, hw_str s);
char *hw_arena_printf(hw_arena *a, const char *fmt, ...) HW_PRINTF(2, 3);
char *hw_arena_vprintf(hw_arena *a, const char *fmt, va_list ap) HW_PRINTF(2, 0);
_Noreturn void hw_oom(size_t size);
/* A broken invariant of our own: prints one line and aborts. Never for a program's input. */
_Noreturn void hw_bug(const char *file, int line, const char *what);
#define HW_BUG(what)   hw_bug(__FILE__, __LINE__, (what))
#define HW_CHECK(cond) ((cond) ? (void)0 : hw_bug(__FILE__, __LINE__, #cond))

/* ---- vec: HW_VEC(int) v = {0}; hw_vec_push(a, &v, 3); v.ptr[i], v.len ---- */
#define HW_VEC(type)     \
    struct {             \
        type *ptr;       \
        size_t len, cap; \
    }
void *hw_vec_grow(hw_arena *a, void *ptr, size_t len, size_t *cap, size_t elem, size_t need);
#define hw_vec_push(a, v, ...)                                                                \
    ((void)((v)->len < (v)->cap ? 0                                                           \
                                : ((v)->ptr = hw_vec_grow((a), (v)->ptr, (v)->len, &(v)->cap, \
                                                          sizeof *(v)->ptr, (v)->len + 1),    \
                                   0)),                                                       \
     (v)->ptr[(v)->len++] = (__VA_ARGS__))

/* ---- intern ---- */
typedef struct hw_intern hw_intern;
hw_intern *hw_intern_new(hw_arena *a);                    /* lives in a */
uint32_t hw_intern_id(hw_intern *t, hw_str name);         /* adds if new; the name is copied */
uint32_t hw_intern_find(const hw_intern *t, hw_str name); /* 0 if absent */
hw_str hw_intern_name(const hw_intern *t, uint32_t id);   /* NUL-terminated */

uint64_t hw_hash64(const void *bytes, size_t n,
                   uint64_t seed); /* not cryptographic, stable across runs */

/* ---- diag ---- */
typedef enum { HW_SEV_NOTE, HW_SEV_WARNING, HW_SEV_ERROR } hw_severity;

typedef struct hw_place {
    const char *file;      /* may be NULL; kept, so it must outlive the diag's arena */
    uint32_t line, column; /* from 1; 0: unknown */
    hw_str text;           /* the source line, borrowed; .ptr NULL if unknown */
} hw_place;

typedef struct hw_message {
    struct hw_message *next;
    hw_severity severity;
    hw_status status;
    hw_place place;
    const char *text; /* one sentence, no newline at the end */
} hw_message;

typedef struct hw_diag {
    hw_arena *arena; /* owns the messages */
    hw_message *first, *last;
    uint32_t errors, warnings;
} hw_diag;

hw_diag *hw_diag_new(hw_arena *a);
/* Add an error and return status, for `return hw_fail(d, HW_E_..., "...")`. d may be NULL. */
hw_status hw_fail(hw_diag *d, hw_status status, const char *fmt, ...) HW_PRINTF(3, 4);
hw_status hw_fail_at(hw_diag *d, hw_status status, hw_place at, const char *fmt, ...)
    HW_PRINTF(4, 5);
void hw_note_at(hw_diag *d, hw_place at, const char *fmt, ...) HW_PRINTF(3, 4);
/* All messages as text "file:line:col: error: text" with the source line and a caret; in the arena.
 */
hw_str hw_diag_text(const hw_diag *d, hw_arena *a);

/* ---- files ---- */
/* Read a whole file; HW_E_IO with a diag message naming the path and errno's text. */
hw_status hw_read_file(hw_arena *a, const char *path, hw_str *out, hw_diag *d);

/* ---- pool ---- */
typedef struct hw_pool hw_pool;
typedef void hw_pool_fn(void *ctx, unsigned worker);
/* workers >= 1 threads, started lazily. Several host threads may run jobs on one pool at once. */
hw_pool *hw_pool_new(unsigned workers);
void hw_pool_free(hw_pool *p);
unsigned hw_pool_workers(const hw_pool *p);
/* Run fn(ctx, w) once on each of n <= workers threads (w = 0..n-1; the caller may serve as one of
 * them); returns when all did. */
void hw_pool_run(hw_pool *p, unsigned n, hw_pool_fn *fn, void *ctx);
unsigned hw_cpu_count(void); /* processors this process may run on (affinity respected) */

#endif
