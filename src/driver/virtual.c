/* SPDX-License-Identifier: Apache-2.0
 *
 * Virtual memory management: address reservations, physical memory, mappings. (CUDA Driver API,
 * "Virtual Memory Management".)
 *
 * A reservation is an allocation of room mem whose pages are closed; physical memory is an
 * anonymous file, so that it can be mapped in several places, and counts against the device's
 * capacity. A mapping replaces the reservation's pages; access opens them.
 */
#include "driver.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define GRANULARITY HW_CU_PAGE
#define FILE_NAME   "halfwarp-physical"

typedef struct physical { /* what a CUmemGenericAllocationHandle names */
    void *handle;
    hw_cu_gpu *gpu;
    CUmemAllocationProp prop;
    uint64_t size;
    int fd;
    bool imported;     /* another process counts it */
    unsigned refs;     /* the handle, each retaining of it, each mapping */
    unsigned retained; /* releases after which the handle still lives */
} physical;

typedef struct mapping {
    hw_cu_link link;
    uint64_t address, size;
    CUmemAccess_flags access;
    physical *of;
} mapping;

typedef struct reservation {
    hw_cu_link mappings;
} reservation;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* lock is held. */
static void physical_release(physical *p)
{
    if (--p->refs)
        return;
    if (!p->imported)
        p->gpu->physical_bytes -= p->size;
    close(p->fd);
    free(p);
}

/* ---- physical memory ---- */

static CUresult check_prop(const CUmemAllocationProp *prop, hw_cu_gpu **g)
{
    CU_TRY(hw_cu_ready());
    CU_NEED(prop && prop->type == CU_MEM_ALLOCATION_TYPE_PINNED, INVALID_VALUE);
    CU_NEED(prop->location.type == CU_MEM_LOCATION_TYPE_DEVICE &&
                prop->requestedHandleTypes <= CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
            NOT_SUPPORTED);
    return hw_cu_find_gpu(prop->location.id, g);
}

CUresult cuMemGetAllocationGranularity(size_t *out, const CUmemAllocationProp *prop,
                                       CUmemAllocationGranularity_flags which)
{
    hw_cu_gpu *g;
    CU_NEED(out && (unsigned)which <= CU_MEM_ALLOC_GRANULARITY_RECOMMENDED, INVALID_VALUE);
    CU_TRY(check_prop(prop, &g));
    *out = GRANULARITY;
    return CUDA_SUCCESS;
}

CUresult cuMemCreate(CUmemGenericAllocationHandle *out, size_t size,
                     const CUmemAllocationProp *prop, unsigned long long flags)
{
    hw_cu_gpu *g;
    hw_mem *mem;
    uint64_t free_bytes, total;
    CU_NEED(out && flags == 0 && size && size % GRANULARITY == 0, INVALID_VALUE);
    CU_TRY(check_prop(prop, &g));
    CU_TRY(hw_cu_gpu_mem(g, &mem));
    hw_mem_usage(mem, &free_bytes, &total);
    CU_NEED(g->physical_bytes + size >= size && g->physical_bytes + size <= free_bytes,
            OUT_OF_MEMORY);
    physical *p = calloc(1, sizeof *p);
    CU_NEED(p, OUT_OF_MEMORY);
    *p = (physical){ .gpu = g, .prop = *prop, .size = size, .refs = 1 };
    p->fd = memfd_create(FILE_NAME, MFD_CLOEXEC);
    if (p->fd < 0 || ftruncate(p->fd, (off_t)size) != 0) {
        if (p->fd >= 0)
            close(p->fd);
        free(p);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    pthread_mutex_lock(&lock);
    g->physical_bytes += size;
    pthread_mutex_unlock(&lock);
    p->handle = hw_cu_handle_new(HW_CU_PHYSICAL, p);
    *out = (uintptr_t)p->handle;
    return CUDA_SUCCESS;
}

static CUresult find_physical(CUmemGenericAllocationHandle handle, physical **out)
{
    CU_TRY(hw_cu_ready());
    *out = hw_cu_handle_get((const void *)(uintptr_t)handle, HW_CU_PHYSICAL);
    return *out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
    physical *p;
    CU_TRY(find_physical(handle, &p));
    pthread_mutex_lock(&lock);
    if (p->retained) {
        p->retained--;
    } else {
        hw_cu_handle_drop(p->handle);
        p->handle = NULL;
    }
    physical_release(p);
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

/* ---- files of physical memory, for other processes ---- */

CUresult cuMemExportToShareableHandle(void *out, CUmemGenericAllocationHandle handle,
                                      CUmemAllocationHandleType type, unsigned long long flags)
{
    physical *p;
    CU_TRY(find_physical(handle, &p));
    CU_NEED(out && flags == 0 && type, INVALID_VALUE);
    CU_NEED(type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, NOT_SUPPORTED);
    CU_NEED(p->prop.requestedHandleTypes & type, INVALID_VALUE);
    int fd = fcntl(p->fd, F_DUPFD_CLOEXEC, 0);
    CU_NEED(fd >= 0, OPERATING_SYSTEM);
    memcpy(out, &fd, sizeof fd);
    return CUDA_SUCCESS;
}

bool hw_cu_is_file(int fd, const char *name, uint64_t *bytes)
{
    char link[64], target[64] = "", want[64];
    struct stat st;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    snprintf(want, sizeof want, "/memfd:%s (deleted)", name);
    if (readlink(link, target, sizeof target - 1) < 0 || strcmp(target, want) != 0 ||
        fstat(fd, &st) != 0)
        return false;
    *bytes = (uint64_t)st.st_size;
    return true;
}

CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *out, void *os_handle,
                                        CUmemAllocationHandleType type)
{
    int fd = (int)(uintptr_t)os_handle;
    uint64_t size;
    CU_TRY(hw_cu_ready());
    CU_NEED(out && type, INVALID_VALUE);
    CU_NEED(type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, NOT_SUPPORTED);
    CU_NEED(hw_cu_is_file(fd, FILE_NAME, &size) && size && size % GRANULARITY == 0, INVALID_VALUE);
    physical *p = calloc(1, sizeof *p);
    CU_NEED(p, OUT_OF_MEMORY);
    *p = (physical){ .gpu = &hw_cu.gpus[0],
                     .prop = { .type = CU_MEM_ALLOCATION_TYPE_PINNED,
                               .requestedHandleTypes = type,
                               .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 } },
                     .size = size,
                     .imported = true,
                     .refs = 1 };
    p->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (p->fd < 0) {
        free(p);
        return CUDA_ERROR_OPERATING_SYSTEM;
    }
    p->handle = hw_cu_handle_new(HW_CU_PHYSICAL, p);
    *out = (uintptr_t)p->handle;
    return CUDA_SUCCESS;
}

CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *out,
                                                CUmemGenericAllocationHandle handle)
{
    physical *p;
    CU_NEED(out, INVALID_VALUE);
    CU_TRY(find_physical(handle, &p));
    *out = p->prop;
    return CUDA_SUCCESS;
}

/* ---- reservations ---- */

CUresult cuMemAddressReserve(CUdeviceptr *out, size_t size, size_t align, CUdeviceptr wish,
                             unsigned long long flags)
{
    hw_mem_info info;
    (void)wish; /* a hint */
    CU_TRY(hw_cu_ready());
    CU_NEED(out && flags == 0 && size && size % GRANULARITY == 0, INVALID_VALUE);
    CU_NEED((align & (align - 1)) == 0, INVALID_VALUE);
    reservation *r = calloc(1, sizeof *r);
    CU_NEED(r, OUT_OF_MEMORY);
    hw_cu_list_init(&r->mappings);
    hw_cu_context *ctx = hw_cu_primary(&hw_cu.gpus[0]);
    CUresult e = !ctx ? CUDA_ERROR_OUT_OF_MEMORY
                      : hw_cu_alloc(ctx, size, align > GRANULARITY ? align : GRANULARITY,
                                    HW_MEM_RESERVED, 0, out);
    if (e == CUDA_SUCCESS)
        e = hw_cu_result(hw_mem_close(ctx->gpu->mem, *out, size, true));
    if (e != CUDA_SUCCESS) {
        free(r);
        return e;
    }
    hw_cu_block *b = hw_cu_find_block(*out, &info);
    b->reservation = r;
    pthread_mutex_lock(&ctx->lock);
    hw_cu_list_remove(&b->link); /* of no context: it outlives this one's contents */
    pthread_mutex_unlock(&ctx->lock);
    return CUDA_SUCCESS;
}

/* The reservation that holds all of a range. */
static hw_cu_block *find_reserved(uint64_t address, uint64_t size)
{
    hw_mem_info info;
    hw_cu_block *b = hw_cu_find_block(address, &info);
    bool inside = b && b->reservation && size <= b->size && address - b->address <= b->size - size;
    return inside ? b : NULL;
}

/* The reservation's own closed pages instead of a mapping. */
static void unmap_pages(uint64_t address, uint64_t size)
{
    mmap((void *)(uintptr_t)address, size, PROT_NONE,
         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

static void mapping_end(mapping *m)
{
    hw_cu_list_remove(&m->link);
    unmap_pages(m->address, m->size);
    physical_release(m->of);
    free(m);
}

void hw_cu_reservation_end(hw_cu_block *b)
{
    reservation *r = b->reservation;
    pthread_mutex_lock(&lock);
    while (r->mappings.next != &r->mappings)
        mapping_end(HW_CU_ITEM(r->mappings.next, mapping, link));
    b->reservation = NULL;
    pthread_mutex_unlock(&lock);
    hw_mem_close(b->ctx->gpu->mem, b->address, b->size, false);
    free(r);
}

CUresult cuMemAddressFree(CUdeviceptr address, size_t size)
{
    CU_TRY(hw_cu_ready());
    hw_cu_block *b = find_reserved(address, size);
    CU_NEED(b && b->address == address && b->size == size, INVALID_VALUE);
    reservation *r = b->reservation;
    CU_NEED(r->mappings.next == &r->mappings, INVALID_VALUE); /* unmap first */
    hw_cu_reservation_end(b);
    return hw_cu_free_block(b);
}

/* ---- mappings ---- */

CUresult cuMemMap(CUdeviceptr address, size_t size, size_t offset,
                  CUmemGenericAllocationHandle handle, unsigned long long flags)
{
    physical *p;
    CU_TRY(find_physical(handle, &p));
    CU_NEED(flags == 0 && size && (address | size | offset) % GRANULARITY == 0, INVALID_VALUE);
    CU_NEED(offset <= p->size && size <= p->size - offset, INVALID_VALUE);
    hw_cu_block *b = find_reserved(address, size);
    CU_NEED(b, INVALID_VALUE);
    reservation *r = b->reservation;
    mapping *m = calloc(1, sizeof *m);
    CU_NEED(m, OUT_OF_MEMORY);
    *m = (mapping){ .address = address, .size = size, .of = p };
    CUresult e = CUDA_SUCCESS;
    pthread_mutex_lock(&lock);
    for (hw_cu_link *l = r->mappings.next; l != &r->mappings; l = l->next) {
        const mapping *o = HW_CU_ITEM(l, mapping, link);
        if (address < o->address + o->size && o->address < address + size)
            e = CUDA_ERROR_INVALID_VALUE;
    }
    if (e == CUDA_SUCCESS && mmap((void *)(uintptr_t)address, size, PROT_NONE,
                                  MAP_SHARED | MAP_FIXED, p->fd, (off_t)offset) == MAP_FAILED)
        e = CUDA_ERROR_OUT_OF_MEMORY;
    if (e == CUDA_SUCCESS) {
        hw_cu_list_add(&r->mappings, &m->link);
        p->refs++;
    } else {
        free(m);
    }
    pthread_mutex_unlock(&lock);
    return e;
}

/* The next mapping of b that starts at or after an address. lock is held. */
static mapping *mapping_from(const hw_cu_block *b, uint64_t address)
{
    reservation *r = b->reservation;
    mapping *best = NULL;
    for (hw_cu_link *l = r->mappings.next; l != &r->mappings; l = l->next) {
        mapping *m = HW_CU_ITEM(l, mapping, link);
        if (m->address >= address && (!best || m->address < best->address))
            best = m;
    }
    return best;
}

/* Is a range made up of whole mappings, side by side? lock is held. */
static bool whole_mappings(const hw_cu_block *b, uint64_t address, uint64_t size)
{
    uint64_t at = address;
    while (at < address + size) {
        mapping *m = mapping_from(b, at);
        if (!m || m->address != at)
            return false;
        at += m->size;
    }
    return at == address + size;
}

CUresult cuMemUnmap(CUdeviceptr address, size_t size)
{
    CU_TRY(hw_cu_ready());
    hw_cu_block *b = find_reserved(address, size);
    CU_NEED(b, INVALID_VALUE);
    hw_cu_contexts_wait();
    pthread_mutex_lock(&lock);
    bool fits = whole_mappings(b, address, size);
    for (uint64_t at = address; fits && at < address + size;) {
        mapping *m = mapping_from(b, at);
        at += m->size;
        mapping_end(m);
    }
    pthread_mutex_unlock(&lock);
    return fits ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static int protection(CUmemAccess_flags f)
{
    return f == CU_MEM_ACCESS_FLAGS_PROT_READWRITE ? PROT_READ | PROT_WRITE
           : f == CU_MEM_ACCESS_FLAGS_PROT_READ    ? PROT_READ
                                                   : PROT_NONE;
}

/* Devices share one address range, so access is the most that any of them is given. */
CUresult cuMemSetAccess(CUdeviceptr address, size_t size, const CUmemAccessDesc *desc, size_t n)
{
    hw_cu_gpu *g;
    CU_TRY(hw_cu_ready());
    CU_NEED(desc && n, INVALID_VALUE);
    CUmemAccess_flags access = CU_MEM_ACCESS_FLAGS_PROT_NONE;
    for (size_t i = 0; i < n; i++) {
        if (desc[i].location.type == CU_MEM_LOCATION_TYPE_DEVICE)
            CU_TRY(hw_cu_find_gpu(desc[i].location.id, &g));
        access |= desc[i].flags;
    }
    hw_cu_block *b = find_reserved(address, size);
    CU_NEED(b, INVALID_VALUE);
    pthread_mutex_lock(&lock);
    bool fits = whole_mappings(b, address, size);
    for (uint64_t at = address; fits && at < address + size;) {
        mapping *m = mapping_from(b, at);
        m->access = access;
        mprotect((void *)(uintptr_t)m->address, m->size, protection(access));
        at += m->size;
    }
    pthread_mutex_unlock(&lock);
    return fits ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* The mapping that holds an address; NULL if there is none. lock is held. */
static mapping *mapping_at(const hw_cu_block *b, uint64_t address)
{
    reservation *r = b->reservation;
    for (hw_cu_link *l = r->mappings.next; l != &r->mappings; l = l->next) {
        mapping *m = HW_CU_ITEM(l, mapping, link);
        if (address - m->address < m->size)
            return m;
    }
    return NULL;
}

CUresult cuMemGetAccess(unsigned long long *flags, const CUmemLocation *location,
                        CUdeviceptr address)
{
    CU_TRY(hw_cu_ready());
    CU_NEED(flags && location, INVALID_VALUE);
    hw_cu_block *b = find_reserved(address, 1);
    CU_NEED(b, INVALID_VALUE);
    pthread_mutex_lock(&lock);
    const mapping *m = mapping_at(b, address);
    *flags = m ? m->access : CU_MEM_ACCESS_FLAGS_PROT_NONE;
    pthread_mutex_unlock(&lock);
    return m ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *out, void *address)
{
    CU_TRY(hw_cu_ready());
    CU_NEED(out, INVALID_VALUE);
    hw_cu_block *b = find_reserved((uintptr_t)address, 1);
    CU_NEED(b, INVALID_VALUE);
    pthread_mutex_lock(&lock);
    mapping *m = mapping_at(b, (uintptr_t)address);
    if (m) {
        physical *p = m->of;
        if (p->handle)
            p->retained++;
        else
            p->handle = hw_cu_handle_new(HW_CU_PHYSICAL, p);
        p->refs++;
        *out = (uintptr_t)p->handle;
    }
    pthread_mutex_unlock(&lock);
    return m ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUmemAllocationHandleType hw_cu_mapped_types(const hw_cu_block *b, uint64_t address)
{
    pthread_mutex_lock(&lock);
    const mapping *m = mapping_at(b, address);
    CUmemAllocationHandleType types =
        m ? m->of->prop.requestedHandleTypes : CU_MEM_HANDLE_TYPE_NONE;
    pthread_mutex_unlock(&lock);
    return types;
}

bool hw_cu_mapped(const hw_cu_block *b, uint64_t address, uint64_t size)
{
    bool all = true;
    pthread_mutex_lock(&lock);
    for (uint64_t at = address; all && at < address + size;) {
        const mapping *m = mapping_at(b, at);
        all = m && (m->access & CU_MEM_ACCESS_FLAGS_PROT_READ);
        at = m ? m->address + m->size : at;
    }
    pthread_mutex_unlock(&lock);
    return all;
}
