/* SPDX-License-Identifier: Apache-2.0
 * Arenas: chunked bump allocation with one lifetime. */
#include "hw_base.h"

#include <stdio.h>
#include <stdlib.h>

enum { FIRST_CHUNK = 4096, LARGEST_CHUNK = 1 << 20, DEFAULT_ALIGN = 16 };

typedef struct chunk {
    struct chunk *next;
    size_t used, size;
    _Alignas(16) uint8_t bytes[];
} chunk;

struct hw_arena {
    chunk *head;
    size_t next_size, used;
    uint8_t *given, *given_end; /* what is left of memory that the arena was given */
    bool beyond;                /* that was not enough */
};

_Noreturn void hw_oom(size_t size)
{
    fprintf(stderr, "halfwarp: the host has no memory left (%zu bytes asked)\n", size);
    abort();
}

_Noreturn void hw_bug(const char *file, int line, const char *what)
{
    fprintf(stderr, "halfwarp: internal error at %s:%d: %s\n", file, line, what);
    abort();
}

hw_arena *hw_arena_new(void)
{
    hw_arena *a = calloc(1, sizeof *a);
    if (!a)
        hw_oom(sizeof *a);
    a->next_size = FIRST_CHUNK;
    return a;
}

hw_arena *hw_arena_new_in(void *memory, size_t bytes)
{
    hw_arena *a = memory;
    if (bytes < sizeof *a)
        hw_oom(sizeof *a);
    a->next_size = FIRST_CHUNK;
    a->given = (uint8_t *)memory + (sizeof *a + DEFAULT_ALIGN - 1) / DEFAULT_ALIGN * DEFAULT_ALIGN;
    a->given_end = (uint8_t *)memory + bytes;
    return a;
}

bool hw_arena_is_beyond(const hw_arena *a)
{
    return a->beyond;
}

void hw_arena_free(hw_arena *a)
{
    if (!a || a->given)
        return;
    for (chunk *c = a->head, *next; c; c = next) {
        next = c->next;
        free(c);
    }
    free(a);
}

static chunk *chunk_given(hw_arena *a, size_t bytes)
{
    size_t whole = (bytes + DEFAULT_ALIGN - 1) / DEFAULT_ALIGN * DEFAULT_ALIGN;
    if (!a->given || whole > (size_t)(a->given_end - a->given)) {
        a->beyond = a->given != NULL;
        return NULL;
    }
    void *c = a->given;
    a->given += whole;
    return c;
}

static chunk *add_chunk(hw_arena *a, size_t need)
{
    size_t size = need > a->next_size ? need : a->next_size;
    chunk *c = chunk_given(a, sizeof *c + size);
    if (!c)
        c = calloc(1, sizeof *c + size);
    if (!c)
        hw_oom(size);
    c->size = size;
    /* An oversized chunk goes behind the head, so that the head's free tail stays in use. */
    if (need > a->next_size && a->head) {
        c->next = a->head->next;
        a->head->next = c;
    } else {
        c->next = a->head;
        a->head = c;
        if (a->next_size < LARGEST_CHUNK)
            a->next_size *= 2;
    }
    return c;
}

static void *take(chunk *c, size_t size, size_t align)
{
    uintptr_t at = (uintptr_t)c->bytes + c->used;
    size_t pad = (size_t)(-at & (align - 1));
    if (pad > c->size - c->used || size > c->size - c->used - pad)
        return NULL;
    c->used += pad + size;
    return (uint8_t *)at + pad;
}

void *hw_arena_alloc_aligned(hw_arena *a, size_t size, size_t align)
{
    if (size > SIZE_MAX / 2)
        hw_oom(size);
    a->used += size;
    void *p = a->head ? take(a->head, size, align) : NULL;
    return p ? p : take(add_chunk(a, size + align), size, align);
}

void *hw_arena_alloc(hw_arena *a, size_t size)
{
    return hw_arena_alloc_aligned(a, size, DEFAULT_ALIGN);
}

void *hw_arena_alloc_array(hw_arena *a, size_t n, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(n, size, &bytes))
        hw_oom(SIZE_MAX);
    return hw_arena_alloc(a, bytes);
}

size_t hw_arena_used(const hw_arena *a)
{
    return a->used;
}

hw_str hw_arena_dup(hw_arena *a, hw_str s)
{
    return (hw_str){ hw_arena_cstr(a, s), s.len };
}

char *hw_arena_cstr(hw_arena *a, hw_str s)
{
    char *p = hw_arena_alloc_aligned(a, s.len + 1, 1);
    if (s.len)
        memcpy(p, s.ptr, s.len);
    return p;
}

char *hw_arena_vprintf(hw_arena *a, const char *fmt, va_list ap)
{
    HW_CHECK(fmt);
    va_list again;
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    HW_CHECK(n >= 0);
    char *p = hw_arena_alloc_aligned(a, (size_t)n + 1, 1);
    vsnprintf(p, (size_t)n + 1, fmt, again);
    va_end(again);
    return p;
}

char *hw_arena_printf(hw_arena *a, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    char *p = hw_arena_vprintf(a, fmt, ap);
    va_end(ap);
    return p;
}

void *hw_vec_grow(hw_arena *a, void *ptr, size_t len, size_t *cap, size_t elem, size_t need)
{
    size_t c = *cap ? *cap * 2 : 8;
    while (c < need)
        c *= 2;
    void *p = hw_arena_alloc_array(a, c, elem);
    if (len)
        memcpy(p, ptr, len * elem);
    *cap = c;
    return p;
}
