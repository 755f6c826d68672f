/* SPDX-License-Identifier: Apache-2.0
 * Allocations and registrations of all devices: one table, one lock. */
#include "hw_mem.h"
#include "range.h"
#include "share.h"
#include "table.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>

struct hw_mem {
    uint64_t capacity, used; /* bytes of DEVICE and MANAGED allocations */
};

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static hw_table allocations, registrations;
static uint64_t last_id;
static uint64_t device_page = HW_MEM_PAGE;
static hw_mem_info freed[256]; /* a ring; `frees` counts all */
static uint64_t frees;
/* Grows with each change of the registrations, so that threads can remember the last one they hit.
 */
static _Atomic uint64_t registered_version = 1;

hw_status hw_mem_range(uint64_t *lo, uint64_t *size, hw_diag *d)
{
    pthread_rwlock_wrlock(&lock);
    hw_status s = hw_range_reserve(d);
    *lo = hw_range_lo();
    *size = hw_range_size();
    pthread_rwlock_unlock(&lock);
    return s;
}

void hw_mem_set_page(uint64_t bytes)
{
    pthread_rwlock_wrlock(&lock);
    device_page = bytes > HW_MEM_PAGE ? bytes : HW_MEM_PAGE;
    pthread_rwlock_unlock(&lock);
}

bool hw_mem_has_page(void)
{
    pthread_rwlock_rdlock(&lock);
    bool has = device_page > HW_MEM_PAGE;
    pthread_rwlock_unlock(&lock);
    return has;
}

hw_status hw_mem_new(uint64_t capacity, hw_mem **out, hw_diag *d)
{
    uint64_t lo, size;
    HW_TRY(hw_mem_range(&lo, &size, d));
    hw_mem *m = calloc(1, sizeof *m);
    if (!m)
        return hw_fail(d, HW_E_NOMEM, "out of host memory");
    m->capacity = capacity;
    *out = m;
    return HW_OK;
}

static bool is_counted(hw_mem_kind kind)
{
    return kind == HW_MEM_DEVICE || kind == HW_MEM_MANAGED;
}

static uint64_t rounded(uint64_t size)
{
    return (size + HW_MEM_GRAIN - 1) & ~(uint64_t)(HW_MEM_GRAIN - 1);
}

/* With the lock held. */
static void drop(hw_table *t, hw_record *r)
{
    hw_table_remove(t, r);
    if (r->info.shared)
        hw_share_end(r);
    if (r->info.kind == HW_MEM_REGISTERED)
        atomic_fetch_add(&registered_version, 1);
    else
        hw_range_release(&r->place);
    if (r->info.kind != HW_MEM_INTERNAL) /* the program never had it */
        freed[frees++ % HW_COUNTOF(freed)] = r->info;
    if (is_counted(r->info.kind))
        r->info.owner->used -= rounded(r->info.size);
    free(r);
}

static void drop_all_of(hw_table *t, const hw_mem *m)
{
    for (size_t i = t->len; i-- > 0;)
        if (t->ptr[i]->info.owner == m)
            drop(t, t->ptr[i]);
}

void hw_mem_free_all(hw_mem *m)
{
    if (!m)
        return;
    pthread_rwlock_wrlock(&lock);
    drop_all_of(&allocations, m);
    drop_all_of(&registrations, m);
    pthread_rwlock_unlock(&lock);
    free(m);
}

hw_status hw_mem_alloc(hw_mem *m, uint64_t size, uint64_t align, hw_mem_kind kind, uint32_t flags,
                       uint64_t *addr)
{
    if (size == 0 || (align & (align - 1)) || kind == HW_MEM_REGISTERED)
        return HW_E_INVALID;
    hw_record *r = calloc(1, sizeof *r);
    if (!r)
        return HW_E_NOMEM;
    r->info = (hw_mem_info){ .size = size, .kind = kind, .flags = flags, .owner = m };
    hw_status s = HW_OK;
    pthread_rwlock_wrlock(&lock);
    if (is_counted(kind) && (size > m->capacity || rounded(size) > m->capacity - m->used))
        s = HW_E_NOMEM;
    else
        s = hw_range_place(size, align, is_counted(kind) ? device_page : HW_MEM_PAGE, &r->place);
    if (s == HW_OK) {
        r->info.base = r->place.base;
        r->info.id = ++last_id;
        *addr = r->info.base;
        hw_table_insert(&allocations, r);
        if (is_counted(kind))
            m->used += rounded(size);
    } else {
        free(r);
    }
    pthread_rwlock_unlock(&lock);
    return s;
}

hw_status hw_mem_share(hw_mem *m, uint64_t addr, hw_mem_file *out)
{
    pthread_rwlock_wrlock(&lock);
    hw_record *r = hw_table_at(&allocations, addr);
    hw_status s = r && r->info.owner == m ? hw_share_begin(r, out) : HW_E_INVALID;
    pthread_rwlock_unlock(&lock);
    return s;
}

hw_status hw_mem_import(hw_mem *m, const hw_mem_file *f, uint64_t size, uint64_t *addr)
{
    if (!size || f->offset > f->bytes || size > f->bytes - f->offset)
        return HW_E_INVALID;
    hw_record *r = calloc(1, sizeof *r);
    if (!r)
        return HW_E_NOMEM;
    r->info = (hw_mem_info){ .size = size, .kind = HW_MEM_DEVICE, .owner = m };
    pthread_rwlock_wrlock(&lock);
    hw_status s = hw_range_place_guarded(f->bytes, HW_MEM_PAGE, device_page, &r->place);
    if (s == HW_OK) {
        s = hw_share_map(r, f);
        if (s != HW_OK)
            hw_range_release(&r->place);
    }
    if (s == HW_OK) {
        r->info.base = r->place.base + f->offset;
        r->info.id = ++last_id;
        *addr = r->info.base;
        hw_table_insert(&allocations, r);
        m->used += rounded(size);
    } else {
        free(r);
    }
    pthread_rwlock_unlock(&lock);
    return s;
}

hw_status hw_mem_free(hw_mem *m, uint64_t addr)
{
    pthread_rwlock_wrlock(&lock);
    hw_record *r = hw_table_at(&allocations, addr);
    bool ours = r && r->info.owner == m;
    if (ours)
        drop(&allocations, r);
    pthread_rwlock_unlock(&lock);
    return ours ? HW_OK : HW_E_INVALID;
}

hw_status hw_mem_set_tag(hw_mem *m, uint64_t addr, void *tag)
{
    pthread_rwlock_wrlock(&lock);
    hw_record *r = hw_table_at(&allocations, addr);
    if (!r)
        r = hw_table_at(&registrations, addr);
    bool ours = r && r->info.owner == m;
    if (ours)
        r->info.tag = tag;
    pthread_rwlock_unlock(&lock);
    return ours ? HW_OK : HW_E_INVALID;
}

static const hw_record *find_any(uint64_t addr)
{
    const hw_record *r = hw_table_find(&allocations, addr);
    return r ? r : hw_table_find(&registrations, addr);
}

bool hw_mem_find(uint64_t addr, hw_mem_info *out)
{
    pthread_rwlock_rdlock(&lock);
    const hw_record *r = find_any(addr);
    if (r)
        *out = r->info;
    pthread_rwlock_unlock(&lock);
    return r != NULL;
}

static bool covers(const hw_record *r, uint64_t addr, uint64_t size)
{
    return r && size <= r->info.size - (addr - r->info.base);
}

bool hw_mem_contains(uint64_t addr, uint64_t size)
{
    pthread_rwlock_rdlock(&lock);
    bool yes = covers(find_any(addr), addr, size);
    pthread_rwlock_unlock(&lock);
    return yes;
}

void hw_mem_near(uint64_t addr, hw_mem_info *below, hw_mem_info *above)
{
    pthread_rwlock_rdlock(&lock);
    size_t i = hw_table_above(&allocations, addr);
    *below = i > 0 ? allocations.ptr[i - 1]->info : (hw_mem_info){ 0 };
    *above = i < allocations.len ? allocations.ptr[i]->info : (hw_mem_info){ 0 };
    pthread_rwlock_unlock(&lock);
}

bool hw_mem_find_freed(uint64_t addr, hw_mem_info *out)
{
    bool found = false;
    pthread_rwlock_rdlock(&lock);
    uint64_t oldest = frees > HW_COUNTOF(freed) ? frees - HW_COUNTOF(freed) : 0;
    for (uint64_t i = frees; !found && i-- > oldest;) {
        const hw_mem_info *f = &freed[i % HW_COUNTOF(freed)];
        found = addr - f->base < f->size;
        if (found)
            *out = *f;
    }
    pthread_rwlock_unlock(&lock);
    return found;
}

hw_status hw_mem_close(hw_mem *m, uint64_t addr, uint64_t size, bool closed)
{
    if ((addr | size) % HW_MEM_PAGE)
        return HW_E_INVALID;
    pthread_rwlock_rdlock(&lock);
    const hw_record *r = hw_table_find(&allocations, addr);
    hw_status s = HW_E_INVALID;
    if (covers(r, addr, size) && r->info.owner == m)
        s = mprotect((void *)(uintptr_t)addr, size, closed ? PROT_NONE : PROT_READ | PROT_WRITE)
                ? HW_E_NOMEM
                : HW_OK;
    pthread_rwlock_unlock(&lock);
    return s;
}

hw_status hw_mem_register(hw_mem *m, void *host, uint64_t size, uint32_t flags)
{
    uint64_t base = (uintptr_t)host;
    if (!host || size == 0 || base + size < base)
        return HW_E_INVALID;
    hw_record *r = calloc(1, sizeof *r);
    if (!r)
        return HW_E_NOMEM;
    r->info = (hw_mem_info){
        .base = base, .size = size, .kind = HW_MEM_REGISTERED, .flags = flags, .owner = m
    };
    pthread_rwlock_wrlock(&lock);
    bool fits = !hw_table_overlaps(&registrations, base, size) &&
                !hw_table_overlaps(&allocations, base, size);
    if (fits) {
        r->info.id = ++last_id;
        hw_table_insert(&registrations, r);
        atomic_fetch_add(&registered_version, 1);
    } else {
        free(r);
    }
    pthread_rwlock_unlock(&lock);
    return fits ? HW_OK : HW_E_INVALID;
}

hw_status hw_mem_unregister(hw_mem *m, void *host)
{
    pthread_rwlock_wrlock(&lock);
    hw_record *r = hw_table_at(&registrations, (uintptr_t)host);
    bool ours = r && r->info.owner == m;
    if (ours)
        drop(&registrations, r);
    pthread_rwlock_unlock(&lock);
    return ours ? HW_OK : HW_E_INVALID;
}

/* Called for each access of generated code to registered memory, so the last hit is remembered. */
bool hw_mem_is_registered(uint64_t addr, uint64_t size)
{
    static _Thread_local struct {
        uint64_t version, base, size;
    } last;
    uint64_t version = atomic_load(&registered_version);
    if (last.version == version && addr - last.base < last.size)
        return size <= last.size - (addr - last.base);
    pthread_rwlock_rdlock(&lock);
    const hw_record *r = hw_table_find(&registrations, addr);
    bool yes = covers(r, addr, size);
    if (r) {
        last.version = atomic_load(&registered_version);
        last.base = r->info.base;
        last.size = r->info.size;
    }
    pthread_rwlock_unlock(&lock);
    return yes;
}

void hw_mem_usage(const hw_mem *m, uint64_t *free_bytes, uint64_t *total_bytes)
{
    pthread_rwlock_rdlock(&lock);
    *free_bytes = m->capacity - m->used;
    *total_bytes = m->capacity;
    pthread_rwlock_unlock(&lock);
}
