/* SPDX-License-Identifier: Apache-2.0
 *
 * The bench: compiles, fills frames as hw_event.h says, runs the warps of a block in turn.
 */
#include "rig.h"

#include <stdlib.h>
#include <sys/mman.h>

static rig *current;
static jmp_buf out;

static void bad_address(hw_frame *f, uint64_t addr, uint32_t bytes, uint32_t loc)
{
    (void)f;
    current->fault = HW_F_ILLEGAL_ADDRESS;
    current->bad_addr = addr;
    current->bad_bytes = bytes;
    current->fault_loc = loc;
    longjmp(out, 1);
}

static void fault(hw_frame *f, uint32_t status, uint32_t loc)
{
    (void)f;
    current->fault = status;
    current->fault_loc = loc;
    longjmp(out, 1);
}

static uint64_t rig_clock(hw_frame *f, uint32_t which)
{
    (void)f;
    return 1000 + which;
}

static void arrive(hw_frame *f, uint32_t id, uint32_t count, uint32_t lanes)
{
    (void)f, (void)id, (void)count, (void)lanes;
}

static const hw_callbacks callbacks = {
    .bad_address = bad_address,
    .fault = fault,
    .helpers = hw_jit_helpers,
    .clock = rig_clock,
    .arrive = arrive,
};

static hw_status build(void *ctx, hw_arena *a, hw_wir_module **m, hw_diag *d)
{
    rig *r = ctx;
    HW_TRY(hw_wir_parse(a, hw_str_of(r->text), "test", m, d));
    return hw_wir_verify(*m, d);
}

static void *pages(size_t n)
{
    void *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(p != MAP_FAILED);
    return p;
}

rig *rig_new(const char *text)
{
    rig *r = calloc(1, sizeof *r);
    assert_non_null(r);
    r->arena = hw_arena_new();
    r->diag = hw_diag_new(r->arena);
    r->jit = hw_jit_new(NULL);
    hw_jit_set_cpu(r->jit, getenv("HALFWARP_CPU"));
    r->text = text;
    r->variant = (hw_variant){ .block = { 32, 1, 1 }, .tier = 1, .small_grid = true };
    r->memory = pages(RIG_MEMORY + RIG_SHARED + (size_t)RIG_WARPS * 32 * RIG_LOCAL);
    r->shared = r->memory + RIG_MEMORY;
    r->local = r->shared + RIG_SHARED;
    r->grid[0] = r->grid[1] = r->grid[2] = 1;
    return r;
}

void rig_free(rig *r)
{
    for (unsigned w = 0; w < RIG_WARPS; w++)
        free(r->frames[w].save);
    hw_jit_free(r->jit);
    hw_arena_free(r->arena);
    munmap(r->memory, RIG_MEMORY + RIG_SHARED + (size_t)RIG_WARPS * 32 * RIG_LOCAL);
    free(r);
}

hw_status rig_compile(rig *r)
{
    hw_jit_source s = { .name = "k", .build = build, .ctx = r };
    uint64_t h = hw_hash64(r->text, strlen(r->text), 7);
    memcpy(s.key, &h, sizeof h);
    return hw_jit_get(r->jit, &s, &r->variant, &r->code, r->diag);
}

uint32_t rig_stop;
static uint32_t tids[RIG_WARPS][3][32];

static void fill(rig *r, unsigned w, uint32_t threads)
{
    hw_frame *f = &r->frames[w];
    const uint32_t *b = r->variant.block;
    uint8_t *save = f->save;
    memset(f, 0, sizeof *f);
    f->save = save ? save : aligned_alloc(64, 1 << 17);
    uint32_t left = threads - w * 32;
    f->lanes = left >= 32 ? UINT32_MAX : (1u << left) - 1;
    f->params = (uint8_t *)r->params;
    f->shared = r->shared;
    f->local = r->local + (size_t)w * 32 * RIG_LOCAL;
    f->local_stride = RIG_LOCAL;
    f->call = &callbacks;
    f->range_lo = (uint64_t)(uintptr_t)r->memory;
    f->range_size = RIG_MEMORY + RIG_SHARED + (size_t)RIG_WARPS * 32 * RIG_LOCAL;
    memcpy(f->ctaid, r->ctaid, sizeof f->ctaid);
    memcpy(f->nctaid, r->grid, sizeof f->nctaid);
    memcpy(f->ntid, b, sizeof f->ntid);
    f->warp = w;
    f->nwarps = (threads + 31) / 32;
    f->total_shared = r->code->static_shared_bytes;
    f->stop = &rig_stop;
    for (uint32_t l = 0; l < 32; l++) {
        uint32_t t = w * 32 + l;
        tids[w][0][l] = t % b[0];
        tids[w][1][l] = t / b[0] % b[1];
        tids[w][2][l] = t / (b[0] * b[1]);
    }
    f->tid = &tids[w][0][0];
}

/* A turn for each warp: until it ends or waits. */
static bool turn(rig *r, unsigned n, bool *done, bool *waits)
{
    bool any = false;
    for (unsigned w = 0; w < n; w++) {
        if (done[w] || waits[w])
            continue;
        any = true;
        r->returned = r->code->run(&r->frames[w]);
        done[w] = r->returned == HW_WARP_DONE;
        waits[w] = r->returned == HW_WARP_BARRIER;
        r->yields += r->returned == HW_WARP_YIELD;
        r->barriers += waits[w];
        if (r->returned == HW_WARP_DEOPT) {
            r->deopts++;
            return false;
        }
    }
    return any;
}

static void reduce(rig *r, unsigned n, bool *waits)
{
    uint32_t sum = 0, all = 1, any = 0;
    for (unsigned w = 0; w < n; w++) {
        if (!waits[w])
            continue;
        sum += r->frames[w].bar_value;
        all &= r->frames[w].bar_value;
        any |= r->frames[w].bar_value;
    }
    for (unsigned w = 0; w < n; w++) {
        hw_frame *f = &r->frames[w];
        f->bar_value = f->bar_kind == HW_BAR_POPC ? sum : f->bar_kind == HW_BAR_AND ? all : any;
        waits[w] = false;
    }
}

bool rig_run(rig *r)
{
    const uint32_t *b = r->variant.block;
    uint32_t threads = b[0] * b[1] * b[2];
    unsigned n = (threads + 31) / 32;
    bool done[RIG_WARPS] = { 0 }, waits[RIG_WARPS] = { 0 };
    current = r;
    r->faulted = false;
    for (unsigned w = 0; w < n; w++)
        fill(r, w, threads);
    if (setjmp(out)) {
        r->faulted = true;
        return false;
    }
    for (bool more = true; more;) {
        while (turn(r, n, done, waits))
            ;
        more = false;
        for (unsigned w = 0; w < n; w++)
            more |= waits[w];
        reduce(r, n, waits);
    }
    return r->deopts == 0;
}
