/* SPDX-License-Identifier: Apache-2.0
 *
 * mem: a device's memory.
 *
 * All device memory of the process lies in one reserved range of host addresses [lo, lo + size), so
 * a device address is a host address and generic pointers need no translation. Memory is committed
 * lazily by the kernel of the host. Addresses in the range that belong to no allocation are not
 * mapped: touching them raises SIGSEGV, which exec makes an illegal-address fault. Host memory
 * registered with the device lies outside the range and is kept in a table.
 *
 * Thread-safe. Sizes in bytes. Allocations are aligned to 512 and readable past their end only up
 * to the next 512-byte multiple; an unmapped gap of at least 64 KiB follows. hw_mem_set_page makes
 * device and managed allocations readable and writable up to the next multiple of the device's page
 * instead, as they are on a device, where overruns that short go unnoticed. Only when there are more than about 16,000 allocations (the host limits mappings) do further ones lie side by side.
 * Addresses are the same from run to run if the host grants the wished range.
 */
#ifndef HW_MEM_H
#define HW_MEM_H

#include "hw_base.h"

typedef struct hw_mem hw_mem; /* one device's memory */

typedef enum hw_mem_kind {
    HW_MEM_DEVICE,     /* cudaMalloc, module variables */
    HW_MEM_MANAGED,    /* cudaMallocManaged */
    HW_MEM_HOST,       /* cudaMallocHost / cudaHostAlloc: pinned, in the range too */
    HW_MEM_REGISTERED, /* cudaHostRegister: the program's own memory */
    HW_MEM_RESERVED, /* cuMemAddressReserve: addresses, with memory only where something is mapped */
    HW_MEM_INTERNAL, /* exec's own: shared and local arenas, parameters, device heap */
} hw_mem_kind;

typedef struct hw_mem_info {
    uint64_t base, size; /* as asked for */
    hw_mem_kind kind;
    uint32_t flags; /* the caller's, kept */
    hw_mem *owner;
    void *tag;   /* the caller's */
    uint64_t id; /* unique in the process, from 1 */
    bool shared; /* its pages are a file's: hw_mem_share, hw_mem_import */
} hw_mem_info;

/* The process-wide range; reserved by the first call. HW_E_NOMEM if the host's address space is
 * limited. */
hw_status hw_mem_range(uint64_t *lo, uint64_t *size, hw_diag *d);
/* For DEVICE and MANAGED allocations of all devices from now on. 0, the start: none. A power of two.
 */
void hw_mem_set_page(uint64_t bytes);
bool hw_mem_has_page(void);
/* capacity: what HW_MEM_DEVICE and MANAGED allocations may sum to. */
hw_status hw_mem_new(uint64_t capacity, hw_mem **out, hw_diag *d);
void hw_mem_free_all(hw_mem *m); /* frees every allocation and m */
/* Zero-size gives HW_E_INVALID; beyond capacity or host memory HW_E_NOMEM. align: power of two, 0 =
 * 512. Contents are zero at first use (lazily committed), undefined in reused memory. */
hw_status hw_mem_alloc(hw_mem *m, uint64_t size, uint64_t align, hw_mem_kind kind, uint32_t flags,
                       uint64_t *addr);
/* addr must be an allocation's base: else HW_E_INVALID (double free, inner pointer). */
hw_status hw_mem_free(hw_mem *m, uint64_t addr);
hw_status hw_mem_set_tag(hw_mem *m, uint64_t addr, void *tag);
/* The allocation (of any device) or registration that contains addr. */
bool hw_mem_find(uint64_t addr, hw_mem_info *out);
/* The allocations just below (or around) and above addr, of any device; size 0: none. */
void hw_mem_near(uint64_t addr, hw_mem_info *below, hw_mem_info *above);
/* The latest freed allocation that contained addr, if it is among the last few: for messages. */
bool hw_mem_find_freed(uint64_t addr, hw_mem_info *out);
/* Whole of [addr, addr+size) inside one allocation or registration? */
bool hw_mem_contains(uint64_t addr, uint64_t size);
/* Make whole pages inside an allocation inaccessible (guards within an arena), or accessible again.
 * addr and size: multiples of 4096. */
hw_status hw_mem_close(hw_mem *m, uint64_t addr, uint64_t size, bool closed);
/* ---- memory that several processes have: pages of a file ---- */
typedef struct hw_mem_file {
    int fd;
    uint64_t bytes, offset; /* of the file; of the allocation in it */
} hw_mem_file;
/* Make the pages of an allocation those of a file; asked again, the same one. What reads and writes them meanwhile
 * waits. fd is open until the allocation is freed. HW_E_RANGE: it has no pages of its own. */
hw_status hw_mem_share(hw_mem *m, uint64_t addr, hw_mem_file *out);
/* An allocation of size bytes with the pages of such a file; takes over fd if it succeeds. */
hw_status hw_mem_import(hw_mem *m, const hw_mem_file *f, uint64_t size, uint64_t *addr);
/* For handlers of SIGSEGV: was it a write that hw_mem_share kept waiting? Then it can be done now. */
bool hw_mem_was_moving(uint64_t addr);

hw_status hw_mem_register(hw_mem *m, void *host, uint64_t size, uint32_t flags);
hw_status hw_mem_unregister(hw_mem *m, void *host);
bool hw_mem_is_registered(uint64_t addr, uint64_t size);
/* Free and total bytes as cuMemGetInfo reports them. */
void hw_mem_usage(const hw_mem *m, uint64_t *free_bytes, uint64_t *total_bytes);

#include "hw_texture.h"
#include "hw_tensor_map.h"

#endif
