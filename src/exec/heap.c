/* SPDX-License-Identifier: Apache-2.0
 * The device heap: boundary tags and bins by size, kept in arrays beside the memory. */
#include "heap.h"

#include <sys/mman.h>

enum { GRANULE = 16 };

void hw_heap_init(hw_heap *h, hw_mem *mem, uint64_t size)
{
    *h = (hw_heap){ .mem = mem, .size = size };
    pthread_mutex_init(&h->lock, NULL);
}

static size_t table_bytes(const hw_heap *h)
{
    return (size_t)h->granules * sizeof(uint32_t);
}

static void unmap(hw_heap *h, uint32_t *table)
{
    if (table)
        munmap(table, table_bytes(h));
}

void hw_heap_free_all(hw_heap *h)
{
    unmap(h, h->tag);
    unmap(h, h->next);
    unmap(h, h->prev);
    if (h->base)
        hw_mem_free(h->mem, h->base);
    pthread_mutex_destroy(&h->lock);
}

hw_status hw_heap_resize(hw_heap *h, uint64_t size)
{
    pthread_mutex_lock(&h->lock);
    hw_status s = h->base ? HW_E_INVALID : HW_OK;
    if (s == HW_OK)
        h->size = size;
    pthread_mutex_unlock(&h->lock);
    return s;
}

static unsigned bin_of(uint32_t granules)
{
    return 31 - (unsigned)__builtin_clz(granules);
}

static void set_tags(hw_heap *h, uint32_t at, uint32_t n, uint32_t used)
{
    h->tag[at] = h->tag[at + n - 1] = n << 1 | used;
}

static void link_free(hw_heap *h, uint32_t at, uint32_t n)
{
    uint32_t *first = &h->bin[bin_of(n)];
    set_tags(h, at, n, 0);
    h->next[at] = *first;
    h->prev[at] = 0;
    if (*first)
        h->prev[*first - 1] = at + 1;
    *first = at + 1;
}

static void unlink_free(hw_heap *h, uint32_t at)
{
    uint32_t next = h->next[at], prev = h->prev[at];
    if (prev)
        h->next[prev - 1] = next;
    else
        h->bin[bin_of(h->tag[at] >> 1)] = next;
    if (next)
        h->prev[next - 1] = prev;
}

/* Tables are mapped lazily: only boundaries of blocks are ever touched. */
static uint32_t *table_new(hw_heap *h)
{
    void *p = mmap(NULL, table_bytes(h), PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

static bool start(hw_heap *h)
{
    uint64_t granules = h->size / GRANULE;
    if (granules == 0 || granules >= UINT32_MAX / 2)
        return false;
    h->granules = (uint32_t)granules;
    h->tag = table_new(h);
    h->next = table_new(h);
    h->prev = table_new(h);
    if (h->tag && h->next && h->prev &&
        hw_mem_alloc(h->mem, h->size, 0, HW_MEM_INTERNAL, 0, &h->base) == HW_OK) {
        link_free(h, 0, h->granules);
        return true;
    }
    unmap(h, h->tag);
    unmap(h, h->next);
    unmap(h, h->prev);
    h->tag = h->next = h->prev = NULL;
    h->base = 0;
    return false;
}

/* The first of a bin's blocks that has n granules, looking at no more than `most`. */
static bool find_in_bin(const hw_heap *h, unsigned bin, uint32_t n, uint32_t most, uint32_t *at)
{
    for (uint32_t i = h->bin[bin]; i && most--; i = h->next[i - 1])
        if (h->tag[i - 1] >> 1 >= n) {
            *at = i - 1;
            return true;
        }
    return false;
}

/* A free block of at least n granules: a quick look in n's own bin, any block of a higher bin, then
 * the whole of n's own. */
static bool find(const hw_heap *h, uint32_t n, uint32_t *at)
{
    if (find_in_bin(h, bin_of(n), n, 16, at))
        return true;
    for (unsigned b = bin_of(n) + 1; b < HW_HEAP_BINS; b++)
        if (find_in_bin(h, b, n, 1, at))
            return true;
    return find_in_bin(h, bin_of(n), n, UINT32_MAX, at);
}

static uint64_t take(hw_heap *h, uint32_t n)
{
    uint32_t at = 0;
    if ((!h->base && !start(h)) || !find(h, n, &at))
        return 0;
    uint32_t rest = (h->tag[at] >> 1) - n;
    unlink_free(h, at);
    if (rest)
        link_free(h, at + n, rest);
    set_tags(h, at, n, 1);
    h->next[at] = UINT32_MAX; /* marks the first granule of a block in use */
    return h->base + (uint64_t)at * GRANULE;
}

uint64_t hw_heap_take(hw_heap *h, uint64_t bytes)
{
    if (bytes == 0 || bytes > h->size)
        return 0;
    pthread_mutex_lock(&h->lock);
    uint64_t addr = take(h, (uint32_t)((bytes + GRANULE - 1) / GRANULE));
    pthread_mutex_unlock(&h->lock);
    return addr;
}

static void give(hw_heap *h, uint32_t at)
{
    uint32_t n = h->tag[at] >> 1, lo = at;
    h->next[at] = 0;
    if (at + n < h->granules && !(h->tag[at + n] & 1)) {
        uint32_t right = at + n;
        unlink_free(h, right);
        n += h->tag[right] >> 1;
    }
    if (at > 0 && !(h->tag[at - 1] & 1)) {
        lo = at - (h->tag[at - 1] >> 1);
        unlink_free(h, lo);
        n += at - lo;
    }
    link_free(h, lo, n);
}

bool hw_heap_give(hw_heap *h, uint64_t addr)
{
    pthread_mutex_lock(&h->lock);
    uint64_t off = addr - h->base;
    bool ours = h->base && off % GRANULE == 0 && off / GRANULE < h->granules;
    uint32_t at = (uint32_t)(off / GRANULE);
    ours = ours && h->next[at] == UINT32_MAX && (h->tag[at] & 1);
    if (ours)
        give(h, at);
    pthread_mutex_unlock(&h->lock);
    return ours;
}
