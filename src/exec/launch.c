/* SPDX-License-Identifier: Apache-2.0
 * A launch from its description to its outcome. */
#include "count.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum { WORKSPACE_BYTES = 64, LOCAL_ALIGN = 16 };
/* A frame keeps values as PTX types them and where to return to; a device's assembler packs the same
 * into about half (16 bytes for a recursive sum where this takes 28). Whatever fits there must fit here. */
enum { FRAME_ROOM = 2 };
/* Blocks of a kernel that never waits for other blocks are handed out in chunks when there are many. */
static const double WORTH_WAKING_NS = 10000;
enum { CHUNKS_A_WORKER = 32, CHUNK_MOST = 64 };

static uint64_t round_up(uint64_t x, uint64_t to)
{
    return (x + to - 1) / to * to;
}

/* ---- set-up ---- */

static hw_variant choose_variant(const hw_exec *x, const hw_launch *l)
{
    hw_variant v = { .listeners = l->listener ? l->listener->wants : 0,
                     .lockstep_first = x->dev->capability.independent_thread_scheduling,
                     .small_grid = true,
                     .cooperative = l->cooperative,
                     .whole_blocks = true,
                     .tier = x->o.tiers != HW_EXEC_FIRST_TIER };
    for (int i = 0; i < 3; i++) {
        v.block[i] = l->block[i];
        v.small_grid &= (uint64_t)l->grid[i] * l->block[i] < UINT64_C(1) << 31;
    }
    return v;
}

static uint32_t blocks_of_cluster(const hw_launch *l)
{
    uint32_t n = 1;
    for (int i = 0; i < 3; i++)
        n *= l->cluster[i] ? l->cluster[i] : 1;
    return n;
}

static hw_status check_cluster(const hw_launch *l, hw_diag *d)
{
    uint64_t n = 1;
    for (int i = 0; i < 3; i++) {
        uint32_t size = l->cluster[i] ? l->cluster[i] : 1;
        n *= size <= HW_CLUSTER_MOST ? size : HW_CLUSTER_MOST + 1;
        if (l->grid[i] % size)
            return hw_fail(d, HW_E_RANGE, "a grid that is no multiple of its clusters");
    }
    if (n > HW_CLUSTER_MOST)
        return hw_fail(d, HW_E_RANGE, "a cluster of more than %d blocks", HW_CLUSTER_MOST);
    return HW_OK;
}

static hw_status check(const hw_launch *l, hw_diag *d)
{
    uint64_t threads = (uint64_t)l->block[0] * l->block[1] * l->block[2];
    if (threads == 0 || threads > HW_WARPS_MOST * HW_WARP_LANES || l->block[0] > 4096 ||
        l->block[1] > 4096 || l->block[2] > 4096)
        return hw_fail(d, HW_E_RANGE, "a block of %u x %u x %u threads", l->block[0], l->block[1],
                       l->block[2]);
    if (!l->grid[0] || !l->grid[1] || !l->grid[2])
        return hw_fail(d, HW_E_RANGE, "an empty grid");
    if (l->param_bytes > HW_PARAMS_MOST)
        return hw_fail(d, HW_E_RANGE, "%u bytes of parameters", l->param_bytes);
    return check_cluster(l, d);
}

static hw_status take_room(hw_exec *x, hw_room **out)
{
    pthread_mutex_lock(&x->lock);
    hw_room *r = x->rooms;
    if (r)
        x->rooms = r->next;
    pthread_mutex_unlock(&x->lock);
    if (!r) {
        r = calloc(1, sizeof *r);
        if (!r)
            return HW_E_NOMEM;
        hw_status s =
            hw_mem_alloc(x->mem, HW_PARAMS_MOST + WORKSPACE_BYTES, 0, HW_MEM_INTERNAL, 0, &r->addr);
        if (s != HW_OK) {
            free(r);
            return s;
        }
    }
    *out = r;
    return HW_OK;
}

static void give_room(hw_exec *x, hw_room *r)
{
    if (!r)
        return;
    pthread_mutex_lock(&x->lock);
    r->next = x->rooms;
    x->rooms = r;
    pthread_mutex_unlock(&x->lock);
}

static void fill_tids(hw_run *r)
{
    const uint32_t *n = r->l->block;
    uint32_t x = 0, y = 0, z = 0;
    for (uint32_t t = 0; t < r->nwarps * HW_WARP_LANES; t++) {
        uint32_t *warp = r->tids + t / HW_WARP_LANES * 3 * HW_WARP_LANES, lane = t % HW_WARP_LANES;
        warp[lane] = x;
        warp[HW_WARP_LANES + lane] = y;
        warp[2 * HW_WARP_LANES + lane] = z;
        if (++x == n[0]) {
            x = 0;
            if (++y == n[1]) {
                y = 0;
                z++;
            }
        }
    }
}

/* %envreg1 and 2: the workspace { u32 size; u32 barrier } that grid synchronisation counts in. */
static void fill_workspace(hw_run *r)
{
    uint64_t at = r->room->addr + HW_PARAMS_MOST;
    const uint32_t words[2] = { WORKSPACE_BYTES, 0 };
    memcpy((void *)(uintptr_t)at, words, sizeof words);
    r->proto.envreg[0] = (uint32_t)(at >> 32);
    r->proto.envreg[1] = (uint32_t)at;
}

static void fill_proto(hw_run *r, uint64_t gridid)
{
    const hw_launch *l = r->l;
    hw_frame *f = &r->proto;
    uint64_t lo, size;
    if (hw_mem_range(&lo, &size, NULL) != HW_OK)
        HW_BUG("the range was reserved when mem was made");
    memcpy((void *)(uintptr_t)r->room->addr, l->params, l->param_bytes);
    f->params = (uint8_t *)(uintptr_t)r->room->addr;
    f->local_stride = r->local_stride;
    f->symbols = r->symbols;
    f->call = hw_exec_callbacks();
    f->range_lo = lo;
    f->range_size = size;
    memcpy(f->nctaid, l->grid, sizeof f->nctaid);
    memcpy(f->ntid, l->block, sizeof f->ntid);
    f->nwarps = r->nwarps;
    for (int i = 0; i < 3; i++)
        f->cluster[i] = l->cluster[i] ? l->cluster[i] : 1;
    f->explicit_cluster = l->cluster[0] != 0;
    f->nsmid = r->x->dev->compute.sm_count;
    f->gridid = gridid;
    f->dynamic_shared = l->dynamic_shared_bytes;
    f->total_shared = r->shared_room;
    if (l->cooperative)
        fill_workspace(r);
}

/* ---- how long a block takes, by experience ---- */

static hw_estimate *estimate_of(hw_exec *x, const hw_code *c)
{
    return &x->estimates[(uintptr_t)c / 64 % HW_COUNTOF(x->estimates)];
}

/* One worker, the caller, when waking others would take longer than the whole launch. */
static unsigned choose_workers(const hw_run *r)
{
    hw_exec *x = r->x;
    unsigned n = hw_pool_workers(x->pool);
    pthread_mutex_lock(&x->lock);
    const hw_estimate *e = estimate_of(x, r->code);
    if (e->code == r->code && e->block_ns * (double)r->nblocks < WORTH_WAKING_NS)
        n = 1;
    pthread_mutex_unlock(&x->lock);
    uint64_t clusters = r->nblocks / r->cluster_blocks;
    return n < clusters ? n : (unsigned)clusters;
}

static void learn(hw_run *r, uint64_t ns)
{
    hw_exec *x = r->x;
    pthread_mutex_lock(&x->lock);
    *estimate_of(x, r->code) =
        (hw_estimate){ .code = r->code, .block_ns = (double)ns * r->nworkers / (double)r->nblocks };
    pthread_mutex_unlock(&x->lock);
}

static hw_status set_sizes(hw_run *r, hw_diag *d)
{
    const hw_launch *l = r->l;
    const hw_code *c = r->code;
    uint64_t shared = round_up(c->static_shared_bytes, 16) + l->dynamic_shared_bytes;
    uint64_t most = r->x->dev->occupancy.shared_per_sm;
    if (shared > (most < 65536 ? 65536 : most))
        return hw_fail(d, HW_E_RANGE, "%llu bytes of shared memory a block, the device has %llu",
                       (unsigned long long)shared, (unsigned long long)most);
    uint64_t stack = FRAME_ROOM * hw_exec_get_limit(r->x, HW_EXEC_STACK);
    r->nthreads = l->block[0] * l->block[1] * l->block[2];
    r->nwarps = (r->nthreads + HW_WARP_LANES - 1) / HW_WARP_LANES;
    r->nblocks = (uint64_t)l->grid[0] * l->grid[1] * l->grid[2];
    r->shared_bytes = (uint32_t)shared;
    r->shared_room = hw_mem_has_page()
                         ? (uint32_t)round_up(shared, r->x->dev->occupancy.shared_alloc_unit)
                         : (uint32_t)shared;
    r->local_stride = round_up(c->local_bytes + (c->recursive ? stack : 0), LOCAL_ALIGN);
    if (r->local_stride == 0)
        r->local_stride = LOCAL_ALIGN;
    r->stack_bytes = c->stack_bytes + (c->recursive ? (size_t)stack * HW_WARP_LANES : 0);
    r->cluster_blocks = blocks_of_cluster(l);
    r->nworkers = choose_workers(r);
    uint64_t chunk = r->nblocks / ((uint64_t)r->nworkers * CHUNKS_A_WORKER);
    bool single = c->spins || l->cooperative || chunk == 0;
    if (r->cluster_blocks > 1)
        r->chunk = r->cluster_blocks;
    else
        r->chunk = single ? 1 : chunk < CHUNK_MOST ? chunk : CHUNK_MOST;
    return HW_OK;
}

static hw_status set_up(hw_run *r, hw_diag *d)
{
    hw_exec *x = r->x;
    const hw_code *c = NULL;
    r->variant = choose_variant(x, r->l);
    HW_TRY(hw_tier_code(r, &r->variant, &c, d));
    r->code = c;
    HW_TRY(set_sizes(r, d));
    r->symbols = calloc(c->n_symbols + 1, sizeof *r->symbols);
    r->tids = calloc((size_t)r->nwarps * 3 * HW_WARP_LANES, sizeof *r->tids);
    r->workers = aligned_alloc(64, round_up(r->nworkers * sizeof *r->workers, 64));
    if (!r->symbols || !r->tids || !r->workers || take_room(x, &r->room) != HW_OK)
        return hw_fail(d, HW_E_NOMEM, "out of host memory for a launch");
    memset(r->workers, 0, r->nworkers * sizeof *r->workers);
    for (unsigned i = 0; i < r->nworkers; i++)
        r->workers[i] = (hw_worker){ .run = r, .prints.limit = x->o.printf_bytes };
    for (uint32_t i = 0; i < c->n_symbols; i++)
        r->symbols[i] = r->l->symbol_address(r->l->symbol_ctx, c->symbols[i]);
    fill_tids(r);
    pthread_mutex_lock(&x->lock);
    uint64_t gridid = ++x->last_gridid;
    pthread_mutex_unlock(&x->lock);
    fill_proto(r, gridid);
    return hw_count_begin(r, d);
}

/* ---- a launch that must end in time ---- */

typedef struct watch {
    hw_run *run;
    pthread_mutex_t lock;
    pthread_cond_t ended;
    bool over;
} watch;

static void *watch_main(void *arg)
{
    watch *w = arg;
    struct timespec at;
    uint64_t ms = w->run->x->o.timeout_ms;
    clock_gettime(CLOCK_MONOTONIC, &at);
    at.tv_sec += (time_t)(ms / 1000);
    at.tv_nsec += (long)(ms % 1000) * 1000000;
    if (at.tv_nsec >= 1000000000) {
        at.tv_sec++;
        at.tv_nsec -= 1000000000;
    }
    pthread_mutex_lock(&w->lock);
    int rc = 0;
    while (!w->over && rc != ETIMEDOUT)
        rc = pthread_cond_timedwait(&w->ended, &w->lock, &at);
    bool over = w->over;
    pthread_mutex_unlock(&w->lock);
    if (!over) {
        atomic_store(&w->run->timed_out, true);
        hw_run_stop(w->run, 0);
    }
    return NULL;
}

static hw_status run_watched(hw_run *r, hw_diag *d)
{
    watch w = { .run = r };
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&w.ended, &monotonic);
    pthread_condattr_destroy(&monotonic);
    pthread_mutex_init(&w.lock, NULL);
    pthread_t thread;
    hw_status s = HW_OK;
    if (pthread_create(&thread, NULL, watch_main, &w) == 0) {
        hw_pool_run(r->x->pool, r->nworkers, hw_worker_main, r);
        pthread_mutex_lock(&w.lock);
        w.over = true;
        pthread_cond_signal(&w.ended);
        pthread_mutex_unlock(&w.lock);
        pthread_join(thread, NULL);
    } else {
        s = hw_fail(d, HW_E_NOMEM, "cannot start a thread to watch the time");
    }
    pthread_cond_destroy(&w.ended);
    pthread_mutex_destroy(&w.lock);
    return s;
}

/* ---- the end ---- */

static void print_all(const hw_run *r)
{
    uint64_t last = r->fault.status == HW_OK ? UINT64_MAX : r->fault_block;
    bool any = false;
    for (unsigned i = 0; i < r->nworkers; i++)
        any |= r->workers[i].prints.len != 0;
    hw_prints **all = any ? calloc(r->nworkers, sizeof(hw_prints *)) : NULL;
    if (!all)
        return;
    for (unsigned i = 0; i < r->nworkers; i++)
        all[i] = &r->workers[i].prints;
    size_t len = 0;
    char *text = hw_prints_join(all, r->nworkers, last, &len);
    if (text)
        fwrite(text, 1, len, stdout);
    free(text);
    free(all);
}

static hw_status outcome(hw_run *r, hw_fault *fault, hw_diag *d)
{
    hw_status s = r->fault.status;
    if (s == HW_OK && atomic_load(&r->timed_out)) {
        hw_fault_timeout(r);
        s = HW_F_TIMEOUT;
    }
    if (s == HW_F_ASSERT && r->assert_text)
        fputs(r->assert_text, stderr);
    *fault = r->fault;
    if (s == HW_OK && (s = atomic_load(&r->no_room)) != HW_OK)
        return hw_fail(d, s, "no memory for the blocks of a launch");
    return s == HW_OK ? s : hw_fail(d, s, "%s", r->fault.text);
}

static void tear_down(hw_run *r)
{
    for (unsigned i = 0; r->workers && i < r->nworkers; i++) {
        hw_worker *k = &r->workers[i];
        for (uint32_t j = 0; j < k->nblocks; j++)
            hw_block_give_back(k->blocks[j]);
        while (k->clusters) {
            hw_cluster *c = k->clusters;
            k->clusters = c->next;
            hw_cluster_give_back(r->x, c);
        }
        free(k->blocks);
        hw_prints_free(&k->prints);
        free(k->assert_text);
    }
    give_room(r->x, r->room);
    free(r->workers);
    free(r->symbols);
    free(r->tids);
    free(r->assert_text);
    pthread_mutex_destroy(&r->lock);
}

hw_status hw_exec_launch(hw_exec *x, const hw_launch *l, hw_fault *fault, hw_diag *d)
{
    hw_fault ignored;
    fault = fault ? fault : &ignored;
    *fault = (hw_fault){ 0 };
    HW_TRY(check(l, d));
    hw_fault_install(); /* the program may have put its own handler in front */
    hw_run r = { .x = x, .l = l, .stop_from = UINT64_MAX };
    pthread_mutex_init(&r.lock, NULL);
    hw_status s = set_up(&r, d);
    uint64_t start = hw_now_ns();
    if (s == HW_OK)
        hw_tier_begin(&r);
    if (s == HW_OK && x->o.timeout_ms)
        s = run_watched(&r, d);
    else if (s == HW_OK)
        hw_pool_run(x->pool, r.nworkers, hw_worker_main, &r);
    uint64_t ns = hw_now_ns() - start;
    if (s == HW_OK) {
        learn(&r, ns);
        print_all(&r);
        s = outcome(&r, fault, d);
    }
    hw_count_end(&r, ns, s);
    tear_down(&r);
    return s;
}
