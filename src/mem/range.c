/* SPDX-License-Identifier: Apache-2.0
 * The reserved range: found once, carved by first fit, given back to the host page by page. */
#include "range.h"
#include "extents.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

/* The range starts here if the host lets it, so that addresses repeat from run to run: far from
 * where Linux puts programs, heaps, libraries and stacks, and from the sanitizers' shadows. */
static const uint64_t WISH = UINT64_C(0x200000000000);
static const uint64_t LARGEST = UINT64_C(1) << 40, SMALLEST = UINT64_C(1) << 30;
/* From here on there are addresses enough to give each allocation a device's page. */
static const uint64_t ROOMY = UINT64_C(64) << 30;
static const uint64_t GAP = UINT64_C(64) << 10;
/* Kept free at both ends of a large range: a 32-bit index times 8 from any allocation stays in the
 * range, so that generated code need look at the base alone. */
static const uint64_t MARGIN = (UINT64_C(1) << 35) + (UINT64_C(2) << 20);
static const uint64_t HUGE_PAGE = UINT64_C(2) << 20;
static const uint64_t CHUNK = UINT64_C(256) << 20;
/* Larger ones are guarded in any case: there cannot be many. */
static const uint64_t CHUNK_LARGEST = UINT64_C(64) << 20;

struct hw_chunk {
    hw_chunk *next;
    uint64_t lo, size, used;
    hw_extents free;
};

static struct {
    uint64_t lo, size;
    hw_extents free;
    hw_chunk *chunks; /* ascending by age */
    uint64_t guarded, guarded_most;
} range;

static uint64_t round_up(uint64_t x, uint64_t to)
{
    return (x + to - 1) & ~(to - 1);
}

/* At the wished address if it is free; a hint only, so that nothing is ever replaced. */
static void *reserve(uint64_t size)
{
    return mmap((void *)(uintptr_t)WISH, size, PROT_NONE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

/* A guarded place costs two mappings; half of what the host allows is left to the program. */
static uint64_t guarded_most(void)
{
    unsigned long most = 65530;
    FILE *f = fopen("/proc/sys/vm/max_map_count", "re");
    if (f) {
        if (fscanf(f, "%lu", &most) != 1)
            most = 65530;
        fclose(f);
    }
    return most / 4 < 16384 ? most / 4 : 16384;
}

hw_status hw_range_reserve(hw_diag *d)
{
    if (range.size)
        return HW_OK;
    for (uint64_t size = LARGEST; size >= SMALLEST; size /= 2) {
        void *p = reserve(size);
        if (p == MAP_FAILED)
            continue;
        range.lo = (uintptr_t)p;
        range.size = size;
        range.guarded_most = guarded_most();
        /* The first and last gap stay unused: an access just outside is never somebody else's. */
        uint64_t unused = size / 8 >= MARGIN ? MARGIN : GAP;
        hw_extents_give(&range.free, range.lo + unused, size - 2 * unused);
        return HW_OK;
    }
    return hw_fail(d, HW_E_NOMEM, "cannot reserve %llu MiB of addresses for device memory: %s",
                   (unsigned long long)(SMALLEST >> 20), strerror(errno));
}

uint64_t hw_range_lo(void)
{
    return range.lo;
}

uint64_t hw_range_size(void)
{
    return range.size;
}

static bool open_pages(uint64_t lo, uint64_t size)
{
    return mprotect((void *)(uintptr_t)lo, size, PROT_READ | PROT_WRITE) == 0;
}

/* The pages go back to the host, and the mapping merges with its closed neighbours. */
static void close_pages(uint64_t lo, uint64_t size)
{
    mmap((void *)(uintptr_t)lo, size, PROT_NONE,
         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* The gap lies before the allocation, so that a page of the device's size and its gap fill a
 * multiple of that size, and whatever follows has a gap of its own. */
static hw_status place_guarded(uint64_t size, uint64_t align, uint64_t page, hw_mem_place *out)
{
    uint64_t slack = align > HW_MEM_PAGE || page > HW_MEM_PAGE ? 0 : HW_MEM_PAGE - align;
    bool huge = size >= 2 * HUGE_PAGE;
    uint64_t start_align = larger(round_up(align, HW_MEM_PAGE), huge ? HUGE_PAGE : HW_MEM_PAGE);
    uint64_t gap = larger(GAP, start_align);
    uint64_t taken = round_up(gap + round_up(size, HW_MEM_PAGE), page);
    uint64_t at = 0;
    if (!hw_extents_take(&range.free, taken, larger(start_align, page), &at))
        return HW_E_NOMEM;
    uint64_t lo = at + gap, pages = taken - gap;
    if (!open_pages(lo, pages)) {
        hw_extents_give(&range.free, at, taken);
        return HW_E_NOMEM;
    }
    if (huge)
        madvise((void *)(uintptr_t)lo, pages, MADV_HUGEPAGE); /* advice: failure is fine */
    /* As near to the end as the alignment allows. */
    uint64_t base = slack ? (lo + pages - size) & ~(align - 1) : lo;
    *out = (hw_mem_place){ .base = base, .lo = at, .size = taken, .gap = gap };
    range.guarded++;
    return HW_OK;
}

static hw_status chunk_new(hw_chunk **at)
{
    hw_chunk *c = calloc(1, sizeof *c);
    if (!c)
        return HW_E_NOMEM;
    c->size = CHUNK;
    uint64_t lo = 0;
    if (!hw_extents_take(&range.free, HUGE_PAGE + CHUNK, HUGE_PAGE, &lo))
        goto fail;
    c->lo = lo + HUGE_PAGE; /* after the gap */
    if (!open_pages(c->lo, CHUNK)) {
        hw_extents_give(&range.free, lo, HUGE_PAGE + CHUNK);
        goto fail;
    }
    hw_extents_give(&c->free, c->lo, CHUNK);
    *at = c;
    return HW_OK;
fail:
    free(c);
    return HW_E_NOMEM;
}

static hw_status place_in_chunk(uint64_t size, uint64_t align, hw_mem_place *out)
{
    uint64_t lo = 0;
    hw_chunk **at = &range.chunks;
    while (*at && !hw_extents_take(&(*at)->free, size, align, &lo))
        at = &(*at)->next;
    if (!*at) {
        HW_TRY(chunk_new(at));
        if (!hw_extents_take(&(*at)->free, size, align, &lo))
            return HW_E_NOMEM;
    }
    (*at)->used += size;
    *out = (hw_mem_place){ .base = lo, .lo = lo, .size = size, .in = *at };
    return HW_OK;
}

hw_status hw_range_place(uint64_t size, uint64_t align, uint64_t page, hw_mem_place *out)
{
    if (size > range.size || align > range.size / 2)
        return HW_E_NOMEM;
    size = round_up(size, HW_MEM_GRAIN);
    if (align < HW_MEM_GRAIN)
        align = HW_MEM_GRAIN;
    if (range.guarded >= range.guarded_most && size + align <= CHUNK_LARGEST)
        return place_in_chunk(size, align, out);
    return hw_range_place_guarded(size, align, page, out);
}

hw_status hw_range_place_guarded(uint64_t size, uint64_t align, uint64_t page, hw_mem_place *out)
{
    if (size > range.size || align > range.size / 2)
        return HW_E_NOMEM;
    /* Device pages take addresses and, on some hosts, a share of the memory that may be promised. */
    if (page > HW_MEM_PAGE && range.size >= ROOMY && place_guarded(size, align, page, out) == HW_OK)
        return HW_OK;
    return place_guarded(size, align, HW_MEM_PAGE, out);
}

static void release_from_chunk(const hw_mem_place *p)
{
    hw_chunk *c = p->in;
    c->used -= p->size;
    hw_extents_give(&c->free, p->lo, p->size);
    if (c->used) {
        uint64_t lo = round_up(p->lo, HW_MEM_PAGE);
        uint64_t hi = (p->lo + p->size) & ~(uint64_t)(HW_MEM_PAGE - 1);
        if (hi > lo)
            madvise((void *)(uintptr_t)lo, hi - lo, MADV_DONTNEED);
        return;
    }
    hw_chunk **at = &range.chunks;
    while (*at != c)
        at = &(*at)->next;
    *at = c->next;
    close_pages(c->lo, c->size);
    hw_extents_give(&range.free, c->lo - HUGE_PAGE, HUGE_PAGE + c->size);
    hw_extents_free(&c->free);
    free(c);
}

void hw_range_release(const hw_mem_place *p)
{
    if (p->in) {
        release_from_chunk(p);
        return;
    }
    close_pages(p->lo + p->gap, p->size - p->gap);
    hw_extents_give(&range.free, p->lo, p->size);
    range.guarded--;
}
