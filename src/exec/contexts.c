/* SPDX-License-Identifier: Apache-2.0
 * Room for resident blocks: made once, used again by later blocks and launches. */
#include "count.h"
#include "tmem.h"

#include <stdlib.h>
#include <sys/mman.h>

enum {
    PAGE = 4096,
    SHARED_ALIGN_LARGE =
        1024,           /* if there is as much: what tensors' swizzled boxes are laid out by */
    SHARED_ALIGN = 256, /* of a block's shared memory; its end lies at a closed page */
    SLOT_GAP = 65536,
};
/* Shared addresses are 32-bit offsets: behind all slots as much stays closed, so that a negative
 * offset faults and does not reach somebody's memory. */
static const uint64_t SHARED_TAIL = UINT64_C(4) << 30;
static const uint64_t LOCAL_KEPT = UINT64_C(16) << 20; /* larger arenas go back after a launch */

static uint64_t round_up(uint64_t x, uint64_t to)
{
    return (x + to - 1) / to * to;
}

/* ---- shared memory slots ---- */

/* With x->lock held. As many slots as blocks can be resident on the device. */
static hw_status slots_reserve(hw_exec *x)
{
    const hw_device *d = x->dev;
    uint64_t most = d->occupancy.shared_per_sm;
    uint64_t blocks = (uint64_t)d->compute.sm_count * d->occupancy.max_blocks_per_sm;
    if (blocks < 4096)
        blocks = 4096;
    x->slot_bytes = round_up(most < 65536 ? 65536 : most, PAGE);
    x->slot_stride = x->slot_bytes + SLOT_GAP;
    /* A small address space: fewer slots, no tail. */
    for (uint64_t tail = SHARED_TAIL; blocks >= 64; blocks /= 2, tail = 0) {
        uint64_t size = blocks * x->slot_stride;
        if (hw_mem_alloc(x->mem, size + tail, PAGE, HW_MEM_INTERNAL, 0, &x->slots_base) != HW_OK)
            continue;
        x->slots_next = x->slots_base;
        x->slots_end = x->slots_base + size;
        return hw_mem_close(x->mem, x->slots_base, size + tail, true);
    }
    return HW_E_NOMEM;
}

hw_status hw_slots_ready(hw_exec *x)
{
    pthread_mutex_lock(&x->lock);
    hw_status s = x->slots_base ? HW_OK : slots_reserve(x);
    pthread_mutex_unlock(&x->lock);
    return s;
}

static hw_status slot_take(hw_exec *x, uint64_t *slot)
{
    HW_TRY(hw_slots_ready(x));
    hw_status s = HW_OK;
    pthread_mutex_lock(&x->lock);
    if (s == HW_OK && x->slots_next == x->slots_end)
        s = HW_E_NOMEM;
    if (s == HW_OK)
        s = hw_mem_close(x->mem, x->slots_next, x->slot_bytes, false);
    if (s == HW_OK) {
        *slot = x->slots_next;
        x->slots_next += x->slot_stride;
    }
    pthread_mutex_unlock(&x->lock);
    return s;
}

/* ---- what a run needs of a context ---- */

/* Memory of at least n bytes whose last page is closed. */
static hw_status widen(uint8_t **p, size_t *cap, size_t n)
{
    if (*cap >= n && *p)
        return HW_OK;
    size_t size = round_up(n, PAGE);
    uint8_t *q = mmap(NULL, size + PAGE, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (q == MAP_FAILED)
        return HW_E_NOMEM;
    mprotect(q + size, PAGE, PROT_NONE);
    if (*p)
        munmap(*p, *cap + PAGE);
    *p = q;
    *cap = size;
    return HW_OK;
}

/* An odd number of cache lines, so that the same slot of neighbouring warps differs in its set. */
static size_t stride_of(size_t bytes)
{
    return (round_up(bytes, 64) / 64 | 1) * 64;
}

static hw_status fit_local(hw_block *b, uint64_t bytes)
{
    if (b->local_cap >= bytes)
        return HW_OK;
    if (b->local)
        hw_mem_free(b->x->mem, b->local);
    b->local = b->local_cap = 0;
    HW_TRY(hw_mem_alloc(b->x->mem, bytes, 64, HW_MEM_INTERNAL, 0, &b->local));
    b->local_cap = bytes;
    return HW_OK;
}

static hw_status fit_frames(hw_block *b, uint32_t n)
{
    if (b->frames_cap >= n)
        return HW_OK;
    free(b->frames);
    b->frames_cap = 0;
    b->frames = aligned_alloc(64, round_up(n * sizeof *b->frames, 64));
    if (!b->frames)
        return HW_E_NOMEM;
    b->frames_cap = n;
    return HW_OK;
}

static void place_save(hw_block *b, size_t stride)
{
    b->save_stride = stride;
    for (uint32_t w = 0; w < b->nwarps; w++)
        b->frames[w].save = b->save + w * stride;
}

static void fill_frames(hw_block *b)
{
    const hw_run *r = b->run;
    uint32_t align = r->shared_room < SHARED_ALIGN_LARGE ? SHARED_ALIGN : SHARED_ALIGN_LARGE;
    uint64_t slot = b->cluster ? b->cluster->memory : b->slot;
    uint64_t shared = slot + b->x->slot_bytes - round_up(r->shared_room, align), base = shared;
    shared += (uint64_t)b->rank << HW_WINDOW_BITS;
    for (uint32_t w = 0; w < b->nwarps; w++) {
        hw_frame *f = &b->frames[w];
        *f = r->proto;
        f->shared = (uint8_t *)(uintptr_t)shared;
        f->cluster_base = base;
        f->local = (uint8_t *)(uintptr_t)(b->local + w * HW_WARP_LANES * r->local_stride);
        f->stack = b->stack + w * b->stack_stride;
        f->tid = r->tids + w * 3 * HW_WARP_LANES;
        f->warp = w;
        f->stop = &b->stop;
        f->turns = &b->worker->turns;
        f->owner = b;
    }
    b->linked = 0;
    b->quiet = false;
    place_save(b, b->save_stride);
}

static hw_status prepare(hw_block *b)
{
    const hw_run *r = b->run;
    b->nwarps = r->nwarps;
    b->save_stride = stride_of(r->code->save_bytes);
    b->stack_stride = stride_of(r->stack_bytes);
    HW_TRY(fit_frames(b, r->nwarps));
    HW_TRY(widen(&b->save, &b->save_cap, r->nwarps * b->save_stride));
    HW_TRY(widen(&b->stack, &b->stack_cap, r->nwarps * b->stack_stride));
    HW_TRY(fit_local(b, (uint64_t)r->nwarps * HW_WARP_LANES * r->local_stride));
    if (!b->slot && !b->cluster)
        HW_TRY(slot_take(b->x, &b->slot));
    fill_frames(b);
    return HW_OK;
}

hw_status hw_block_widen(hw_block *b, uint32_t save_bytes)
{
    size_t stride = stride_of(save_bytes), old = b->save_stride;
    if (stride <= old)
        return HW_OK;
    uint8_t *before = b->save;
    size_t before_cap = b->save_cap;
    b->save = NULL;
    b->save_cap = 0;
    hw_status s = widen(&b->save, &b->save_cap, b->nwarps * stride);
    if (s != HW_OK) {
        b->save = before;
        b->save_cap = before_cap;
        return s;
    }
    for (uint32_t w = 0; w < b->nwarps; w++)
        memcpy(b->save + w * stride, before + w * old, old);
    munmap(before, before_cap + PAGE);
    place_save(b, stride);
    return HW_OK;
}

/* ---- opening, giving back ---- */

static void block_free(hw_block *b)
{
    free(b->frames);
    if (b->save)
        munmap(b->save, b->save_cap + PAGE);
    if (b->stack)
        munmap(b->stack, b->stack_cap + PAGE);
    if (b->local)
        hw_mem_free(b->x->mem, b->local);
    free(b->tmem);
    free(b);
}

static hw_block *spare_or_new(hw_exec *x)
{
    pthread_mutex_lock(&x->lock);
    hw_block *b = x->spare;
    if (b)
        x->spare = b->next;
    pthread_mutex_unlock(&x->lock);
    if (b)
        return b;
    b = aligned_alloc(64, round_up(sizeof *b, 64));
    if (b) {
        memset(b, 0, sizeof *b);
        b->x = x;
    }
    return b;
}

hw_status hw_block_open(hw_run *r, hw_worker *k, hw_cluster *c, uint32_t rank, hw_block **out)
{
    hw_block *b = spare_or_new(r->x);
    if (!b)
        return HW_E_NOMEM;
    b->run = r;
    b->worker = k;
    b->cluster = c;
    b->rank = rank;
    b->busy = false;
    b->stop = 0;
    atomic_store(&b->index, 0);
    hw_status s = prepare(b);
    if (s != HW_OK) {
        hw_block_give_back(b);
        *out = NULL;
        return s;
    }
    *out = b;
    return HW_OK;
}

void hw_block_give_back(hw_block *b)
{
    hw_exec *x = b->x;
    if (b->local_cap > LOCAL_KEPT) {
        hw_mem_free(x->mem, b->local);
        b->local = b->local_cap = 0;
    }
    b->run = NULL;
    b->worker = NULL;
    pthread_mutex_lock(&x->lock);
    b->next = x->spare;
    x->spare = b;
    pthread_mutex_unlock(&x->lock);
}

void hw_blocks_free(hw_exec *x)
{
    while (x->spare) {
        hw_block *b = x->spare;
        x->spare = b->next;
        block_free(b);
    }
    hw_clusters_free(x);
    if (x->slots_base)
        hw_mem_free(x->mem, x->slots_base);
}

/* ---- starting ---- */

/* The best code there is by now, with room for what it saves. */
static const hw_code *choose_code(hw_block *b)
{
    const hw_code *c = atomic_load_explicit(&b->run->next_code, memory_order_acquire);
    return hw_block_widen(b, c->save_bytes) == HW_OK ? c : b->run->code;
}

/* Code whose warps only ever meet and end leaves most of a frame alone. */
static bool is_quiet(const hw_block *b)
{
    return b->began->relays && !b->began->spins && !b->worker->tally;
}

static void clear_frames(hw_block *b, uint32_t n)
{
    for (uint32_t w = 0; w < n; w++) {
        hw_frame *f = &b->frames[w];
        f->give_up = 0;
        f->awaited = f->ended = f->at_once = NULL;
        f->counters = b->worker->tally ? b->worker->tally->counters : NULL;
        f->local_used = 0;
        f->ends = 0;
        f->spins = f->spin_mask = 0;
        f->blocked = f->sync_lanes = 0;
    }
}

void hw_block_start(hw_block *b, uint64_t index)
{
    const hw_run *r = b->run;
    const uint32_t *grid = r->l->grid;
    uint32_t ctaid[3] = { (uint32_t)index, 0, 0 };
    if (b->cluster) {
        hw_cluster_place(r, index, ctaid);
    } else if (index >= grid[0]) { /* divisions are slow beside a small block */
        uint64_t plane = index / grid[0];
        ctaid[0] = (uint32_t)(index % grid[0]);
        ctaid[1] = (uint32_t)(plane % grid[1]);
        ctaid[2] = (uint32_t)(plane / grid[1]);
    }
    uint32_t last = r->nthreads % HW_WARP_LANES;
    uint32_t smid = (uint32_t)(index % r->proto.nsmid);
    atomic_store_explicit(&b->index, index, memory_order_relaxed);
    b->busy = true;
    b->met = b->mixed = false;
    b->live = b->runnable = b->nwarps == 64 ? UINT64_MAX : (UINT64_C(1) << b->nwarps) - 1;
    if (b->awaited)
        hw_block_clear_barriers(b);
    b->awaited = 0;
    b->began = choose_code(b);
    if (b->at_cluster.used)
        memset(&b->at_cluster, 0, sizeof b->at_cluster);
    if (b->tmem)
        hw_tmem_start(b);
    /* one frame serves all warps of code that runs them in one call, and counts them up */
    uint32_t frames = b->began->whole_block ? 1 : b->nwarps;
    b->frames[0].warp = 0;
    b->frames[0].tid = r->tids;
    if (!b->quiet || !is_quiet(b))
        clear_frames(b, frames);
    b->quiet = is_quiet(b);
    for (uint32_t w = 0; w < frames; w++) {
        hw_frame *f = &b->frames[w];
        b->code[w] = b->began->run;
        f->resume = 0;
        f->lanes = UINT32_MAX;
        memcpy(f->ctaid, ctaid, sizeof ctaid);
        f->smid = smid;
        f->fault_loc = f->fault_lanes = 0;
    }
    if (last && frames == b->nwarps)
        b->frames[b->nwarps - 1].lanes = (1u << last) - 1;
}
