/* SPDX-License-Identifier: Apache-2.0
 * Allocations whose pages are a file's: made so when somebody asks, by copying what is there. */
#include "share.h"

#include <sched.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

/* The pages that are being copied, or were last; read by handlers of signals. */
static struct {
    _Atomic uint64_t lo, hi;
    _Atomic bool now;
} moving;

bool hw_mem_was_moving(uint64_t addr)
{
    if (addr < atomic_load(&moving.lo) || addr >= atomic_load(&moving.hi))
        return false;
    while (atomic_load(&moving.now))
        sched_yield();
    return true;
}

static uint64_t first_page(const hw_record *r)
{
    return r->place.lo + r->place.gap;
}

static uint64_t pages(const hw_record *r)
{
    return r->place.size - r->place.gap;
}

/* Pages of zeros are not touched in the file, so memory that was never used stays unused. */
static void copy_pages(uint8_t *to, const uint8_t *from, uint64_t bytes)
{
    static const uint8_t zeros[HW_MEM_PAGE];
    for (uint64_t at = 0; at < bytes; at += HW_MEM_PAGE) {
        if (memcmp(from + at, zeros, HW_MEM_PAGE) != 0)
            memcpy(to + at, from + at, HW_MEM_PAGE);
    }
}

static bool move(uint8_t *at, uint64_t bytes, int fd, uint8_t *copy)
{
    atomic_store(&moving.now, true);
    atomic_store(&moving.lo, (uintptr_t)at);
    atomic_store(&moving.hi, (uintptr_t)at + bytes);
    bool ok = mprotect(at, bytes, PROT_READ) == 0;
    if (ok) {
        copy_pages(copy, at, bytes);
        ok = mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) != MAP_FAILED;
        if (!ok)
            mprotect(at, bytes, PROT_READ | PROT_WRITE);
    }
    atomic_store(&moving.now, false);
    return ok;
}

static bool make_file(hw_record *r, int fd)
{
    const uint64_t bytes = pages(r);
    if (ftruncate(fd, (off_t)bytes) != 0)
        return false;
    void *copy = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (copy == MAP_FAILED)
        return false;
    bool ok = move((uint8_t *)(uintptr_t)first_page(r), bytes, fd, copy);
    munmap(copy, bytes);
    return ok;
}

hw_status hw_share_begin(hw_record *r, hw_mem_file *out)
{
    if (r->place.in)
        return HW_E_RANGE; /* other allocations lie in its pages */
    if (!r->info.shared) {
        int fd = memfd_create("halfwarp-memory", MFD_CLOEXEC);
        if (fd < 0)
            return HW_E_NOMEM;
        if (!make_file(r, fd)) {
            close(fd);
            return HW_E_NOMEM;
        }
        r->info.shared = true;
        r->fd = fd;
    }
    *out = (hw_mem_file){ r->fd, pages(r), r->info.base - first_page(r) };
    return HW_OK;
}

hw_status hw_share_map(hw_record *r, const hw_mem_file *f)
{
    void *p = mmap((void *)(uintptr_t)r->place.base, f->bytes, PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_FIXED, f->fd, 0);
    if (p == MAP_FAILED)
        return HW_E_NOMEM;
    r->info.shared = true;
    r->fd = f->fd;
    return HW_OK;
}

void hw_share_end(hw_record *r)
{
    if (atomic_load(&moving.lo) == first_page(r)) {
        atomic_store(&moving.hi, 0);
        atomic_store(&moving.lo, 0);
    }
    close(r->fd);
}
