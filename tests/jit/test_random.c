/* SPDX-License-Identifier: Apache-2.0
 * jit: random kernels, as generated code and in the plain interpreter of tests/isa; what they leave
 * in memory must be the same. Lanes write only what is their own, so that any order will do. Graphs
 * of blocks are arbitrary; fuel makes every lane end. Warps that fall back to the slow variant go on
 * in it.
 *
 *   test_random [SEED [TRIALS [TIER [CPU]]]] */
#include "hw_jit.h"
#include "interp.h"
#include "random.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

typedef struct world {
    uint8_t *memory; /* in, out, line, shared, local */
    size_t bytes;
    uint64_t params[3];
    hw_variant v;
    uint32_t threads;
    bool one_local; /* code that runs whole blocks has one local memory for all warps */
} world;

static jmp_buf out;

static void bad_address(hw_frame *f, uint64_t addr, uint32_t bytes, uint32_t loc)
{
    (void)f, (void)loc;
    printf("bad address %llx of %u bytes\n", (unsigned long long)addr, bytes);
    longjmp(out, 1);
}

static void fault(hw_frame *f, uint32_t status, uint32_t loc)
{
    (void)f, (void)loc;
    printf("fault %s\n", hw_status_name((hw_status)status));
    longjmp(out, 1);
}

/* ---- counting: what code counts, and the interpreter, by place ---- */

enum { PLACES = 4096 };
typedef struct counts {
    uint64_t active[PLACES], acting[PLACES], low[PLACES], moved[PLACES]; /* moved: lanes of sites */
} counts;
static counts ours, theirs;
static uint16_t op_at[PLACES];
static const hw_code *running;

static int64_t or_0(const int64_t *x, unsigned l)
{
    return x ? x[l] : 0;
}

static void tell(const hw_site *s, uint32_t lanes, const uint64_t *addresses, uint64_t times)
{
    for (uint32_t l = 0; l < 32; l++)
        if (lanes >> l & 1) {
            ours.low[s->place] += times * (uint8_t)(addresses[l] + (uint64_t)s->add);
            ours.moved[s->place] += times;
        }
}

/* As exec does: the first pattern that is told is counted from then on. */
static void remember(const hw_site *s, uint64_t *first, const uint64_t *a)
{
    uint64_t *flag = first - (s->known == HW_SITE_STRIDE ? 2 : 33);
    bool empty = true;
    for (uint32_t c = 0; c < 256u >> s->shift; c++)
        empty &= first[c] == 0;
    if (*flag || !empty)
        return;
    *flag = 1;
    for (int l = 0; l < 32; l++) {
        int64_t scale = or_0(s->scale, (unsigned)l), d = (int64_t)(a[l] - a[0]);
        if (s->known == HW_SITE_SEEN)
            first[l - 32] = (uint64_t)d;
        else if (scale)
            first[-1] = (uint64_t)((d - or_0(s->offset, (unsigned)l)) / scale);
    }
}

static void listen_one(uint64_t *counters, const hw_tape_entry *e, const uint64_t *addresses)
{
    const hw_site *all = running->count->sites, *s = &all[e->site];
    if (s->first != HW_NO_INDEX && s->known != HW_SITE_FIXED && e->lanes == UINT32_MAX)
        remember(s, counters + s->first, addresses);
    for (uint32_t i = e->site; i != HW_NO_INDEX; i = all[i].next)
        tell(&all[i], e->lanes, addresses, 1);
}

static void listen(hw_frame *f)
{
    hw_tape *t = (hw_tape *)(void *)f->counters - 1;
    for (uint32_t i = 0; i < t->n; i++)
        if (t->entry[i].lanes) /* else it is counted as well */
            listen_one(f->counters, &t->entry[i], t->address[i]);
    t->n = 0;
}

static uint64_t *new_counters(const hw_code *code)
{
    hw_tape *t = aligned_alloc(64, sizeof *t + (code->count->n_counters + 8u) / 8 * 64);
    memset(t, 0, sizeof *t + (code->count->n_counters + 8u) / 8 * 64);
    return (uint64_t *)(void *)(t + 1);
}

static void free_counters(uint64_t *counters)
{
    if (counters)
        free((hw_tape *)(void *)counters - 1);
}

static void add_site(const hw_site *s, const uint64_t *x)
{
    uint64_t address[32];
    const uint64_t *first = x + s->first;
    for (uint32_t c = 0; s->first != HW_NO_INDEX && c < 256u >> s->shift; c++) {
        for (int l = 0; l < 32; l++) {
            uint64_t r = s->known == HW_SITE_STRIDE ? first[-1] : 0;
            address[l] = (uint64_t)c << s->shift;
            address[l] += s->known == HW_SITE_SEEN ? first[l - 32]
                                                   : (uint64_t)or_0(s->offset, (unsigned)l) +
                                                         (uint64_t)or_0(s->scale, (unsigned)l) * r;
        }
        if (first[c])
            tell(s, UINT32_MAX, address, first[c]);
    }
}

static void add_counts(const hw_code *c, const uint64_t *x)
{
    const hw_count_table *t = c->count;
    for (uint32_t i = 0; i < t->n_insts; i++) {
        const hw_count_inst *in = &t->insts[i];
        uint64_t lanes = x[t->full + in->block] * 32 + x[t->part + 2 * in->block + 1];
        ours.active[in->place] += lanes;
        ours.acting[in->place] += in->guard == HW_NO_INDEX ? lanes : x[t->guards + in->guard];
    }
    for (uint32_t i = 0; i < t->n_sites; i++)
        add_site(&t->sites[i], x);
}

static uint64_t seen_lanes, seen_moved;
static bool same_counts(void)
{
    for (uint32_t p = 1; p < PLACES; p++) {
        seen_lanes += ours.active[p];
        seen_moved += ours.moved[p];
    }
    for (uint32_t p = 1; p < PLACES; p++) {
        bool ends = hw_wir_ops[op_at[p]].flags & HW_WF_T;
        bool same = ours.active[p] == theirs.active[p];
        same &= ends || ours.acting[p] == theirs.acting[p];
        same &= ours.low[p] == theirs.low[p];
        same &= !ours.moved[p] || ours.moved[p] == theirs.acting[p];
        if (same)
            continue;
        printf("place %u, %s: active %llu acting %llu low %llu, reference %llu %llu %llu\n", p,
               hw_wir_ops[op_at[p]].name, (unsigned long long)ours.active[p],
               (unsigned long long)ours.acting[p], (unsigned long long)ours.low[p],
               (unsigned long long)theirs.active[p], (unsigned long long)theirs.acting[p],
               (unsigned long long)theirs.low[p]);
        return false;
    }
    return true;
}

static const hw_callbacks callbacks = {
    .bad_address = bad_address, .fault = fault, .helpers = hw_jit_helpers, .listen = listen
};

static uint8_t *out_at(world *w)
{
    return w->memory + IN_BYTES;
}
static uint8_t *line_at(world *w)
{
    return out_at(w) + OUT_BYTES;
}
static uint8_t *shared_at(world *w)
{
    return line_at(w) + LINE_BYTES;
}
static uint8_t *local_at(world *w, uint32_t warp)
{
    return shared_at(w) + SHARED_BYTES + (size_t)warp * 32 * LOCAL_STRIDE;
}

static void choose_shape(world *w)
{
    static const uint32_t shapes[][3] = { { 256, 1, 1 }, { 64, 1, 1 }, { 16, 16, 1 }, { 8, 8, 2 },
                                          { 32, 4, 1 },  { 10, 9, 1 }, { 100, 1, 1 }, { 4, 4, 4 },
                                          { 32, 1, 1 },  { 8, 4, 1 } };
    memcpy(w->v.block, shapes[below(HW_COUNTOF(shapes))], sizeof w->v.block);
    w->v.small_grid = true;
    w->threads = w->v.block[0] * w->v.block[1] * w->v.block[2];
}

static void new_world(world *w, uint64_t seed)
{
    uint64_t keep = rng;
    rng = seed * 977 + 3;
    for (size_t i = 0; i < w->bytes; i += 8) {
        uint64_t x = rnd();
        if (below(2)) /* small numbers make comparisons go both ways */
            x &= UINT64_C(0x0000003f0000003f);
        memcpy(w->memory + i, &x, 8);
    }
    for (uint32_t i = 0; i < 64; i += 7) {
        uint32_t x = i & 1 ? UINT32_MAX - below(100) : INT32_MAX - below(100);
        memcpy(w->memory + 4 * i, &x, 4);
    }
    rng = keep;
    w->params[0] = (uint64_t)(uintptr_t)w->memory;
    w->params[1] = (uint64_t)(uintptr_t)out_at(w);
    w->params[2] = (uint64_t)(uintptr_t)line_at(w);
}

static uint32_t tids[MOST_THREADS / 32][3][32];

static void fill_tids(const world *w)
{
    for (uint32_t t = 0; t < MOST_THREADS; t++) {
        uint32_t(*tid)[32] = tids[t / 32];
        tid[0][t % 32] = t % w->v.block[0];
        tid[1][t % 32] = t / w->v.block[0] % w->v.block[1];
        tid[2][t % 32] = t / w->v.block[0] / w->v.block[1];
    }
}

static void fill(world *w, hw_frame *f, uint32_t warp)
{
    static uint32_t stop;
    uint32_t left = w->threads - warp * 32;
    f->lanes = left >= 32 ? UINT32_MAX : (1u << left) - 1;
    f->params = (uint8_t *)w->params;
    f->shared = shared_at(w);
    f->total_shared = SHARED_BYTES;
    f->local = local_at(w, warp);
    f->local_stride = LOCAL_STRIDE;
    f->call = &callbacks;
    f->range_lo = (uint64_t)(uintptr_t)w->memory;
    f->range_size = w->bytes;
    f->nctaid[0] = f->nctaid[1] = f->nctaid[2] = 1;
    memcpy(f->ntid, w->v.block, sizeof f->ntid);
    f->warp = warp;
    f->nwarps = (w->threads + 31) / 32;
    f->stop = &stop;
    f->tid = &tids[warp][0][0];
}

enum { ONE_LARGE_IN = 10 };

typedef struct subject {
    uint64_t seed;
    bool flat, whole, large, counted;
} subject;

/* A place of its own for each instruction. */
static void give_places(hw_wir_module *m)
{
    hw_wir_function *f = &m->functions.ptr[0];
    while (m->locs.len < 1)
        hw_vec_push(m->arena, &m->locs, (hw_wir_loc){ .line = 0 });
    for (size_t b = 0; b < f->blocks.len; b++)
        for (size_t i = 0; i < f->blocks.ptr[b].insns.len; i++) {
            uint32_t at = (uint32_t)m->locs.len;
            HW_CHECK(at < PLACES);
            hw_vec_push(m->arena, &m->locs, (hw_wir_loc){ .ptx_line = at });
            f->blocks.ptr[b].insns.ptr[i].loc = at;
            f->blocks.ptr[b].insns.ptr[i].flags |= HW_I_HEAD;
            op_at[at] = f->blocks.ptr[b].insns.ptr[i].op;
        }
}

static hw_status build(void *ctx, hw_arena *a, hw_wir_module **m, hw_diag *d)
{
    const subject *s = ctx;
    uint64_t keep = rng;
    rng = s->seed;
    *m = make(a, s->flat, s->whole, s->large);
    rng = keep;
    if (s->counted)
        give_places(*m);
    return hw_wir_verify(*m, d);
}

static const hw_code *compile(hw_jit *j, subject *s, const hw_variant *v)
{
    hw_jit_source source = { .name = "k", .build = build, .ctx = s };
    memcpy(source.key, s, sizeof *s);
    hw_arena *a = hw_arena_new();
    hw_diag *d = hw_diag_new(a);
    const hw_code *code = NULL;
    if (hw_jit_get(j, &source, v, &code, d) != HW_OK)
        printf("%s", hw_diag_text(d, a).ptr);
    hw_arena_free(a);
    return code;
}

static unsigned deopts, suspensions, whole_blocks, hand_ons;

typedef struct execution {
    hw_jit *j;
    subject *s;
    const hw_code *code, *fell;
    uint64_t *counters[2];
    hw_variant slow;
    uint32_t n, fallen; /* frames; the one whose last turn was DEOPT */
    bool done[MOST_THREADS / 32];
    hw_frame frames[MOST_THREADS / 32];
    hw_turns turns;
} execution;

static void begin(execution *e, world *w)
{
    e->slow = w->v;
    e->slow.no_shapes = true;
    e->n = e->code->whole_block ? 1 : (w->threads + 31) / 32;
    e->fallen = e->n;
    if (e->s->counted)
        e->counters[0] = new_counters(e->code);
    fill_tids(w);
    w->one_local = e->code->whole_block;
    whole_blocks += e->code->whole_block;
    for (uint32_t i = 0; i < e->n; i++) {
        fill(w, &e->frames[i], i);
        e->frames[i].save = aligned_alloc(64, 1 << 20);
        e->frames[i].counters = e->counters[0];
        e->frames[i].turns = &e->turns;
    }
}

/* Turns of all warps, each handing on to the next, until all are done or one falls back. */
static void run_linked(execution *e)
{
    while (e->fallen == e->n) {
        hw_frame *first = NULL, **to = &first;
        for (uint32_t w = 0; w < e->n; w++)
            if (!e->done[w]) {
                *to = &e->frames[w];
                to = &e->frames[w].next;
            }
        *to = NULL;
        if (!first)
            return;
        e->turns = (hw_turns){ .running = first };
        uint32_t r = e->code->run(first);
        uint32_t last = (uint32_t)(e->turns.running - e->frames);
        hand_ons += e->turns.running != first;
        suspensions++;
        for (uint32_t w = 0; w < e->n; w++)
            e->done[w] |= e->turns.over >> w & 1;
        e->done[last] |= r == HW_WARP_DONE;
        if (r == HW_WARP_DEOPT)
            e->fallen = last;
    }
}

static bool fall_back(execution *e, hw_frame *f)
{
    deopts++;
    e->fell = compile(e->j, e->s, &e->slow);
    if (e->fell && e->s->counted && !e->counters[1])
        e->counters[1] = new_counters(e->fell);
    f->counters = e->counters[1];
    running = e->fell;
    return e->fell != NULL;
}

/* The rest of a warp's turns. */
static bool run_alone(execution *e, uint32_t w)
{
    hw_frame *f = &e->frames[w];
    const hw_code *now = running = e->code;
    f->next = NULL;
    uint32_t r = w == e->fallen ? HW_WARP_DEOPT : now->run(f);
    for (; r != HW_WARP_DONE; r = now->run(f)) {
        if (e->s->counted)
            listen(f);
        suspensions += r != HW_WARP_DEOPT;
        if (r == HW_WARP_DEOPT && !fall_back(e, f))
            return false;
        now = running;
    }
    if (e->s->counted)
        listen(f);
    return true;
}

static bool run_code(hw_jit *j, subject *s, world *w)
{
    static execution e;
    memset(&e, 0, sizeof e);
    e.j = j;
    e.s = s;
    e.code = compile(j, s, &w->v);
    if (!e.code || setjmp(out))
        return false;
    begin(&e, w);
    running = e.code;
    if (e.code->relays)
        run_linked(&e);
    bool ok = true;
    for (uint32_t i = 0; i < e.n && ok; i++)
        ok = e.done[i] || run_alone(&e, i);
    for (uint32_t i = 0; i < e.n; i++)
        free(e.frames[i].save);
    if (ok && s->counted)
        add_counts(e.code, e.counters[0]);
    if (ok && s->counted && e.fell)
        add_counts(e.fell, e.counters[1]);
    free_counters(e.counters[0]);
    free_counters(e.counters[1]);
    return ok;
}

/* One warp after another: waiting for others means nothing to it. */
static void without_waits(hw_wir_function *f)
{
    for (size_t b = 0; b < f->blocks.len; b++)
        for (size_t i = 0; i < f->blocks.ptr[b].insns.len; i++) {
            hw_wir_insn *in = &f->blocks.ptr[b].insns.ptr[i];
            if (in->op != HW_W_BARRIER && in->op != HW_W_YIELD)
                continue;
            in->op = HW_W_FENCE;
            in->nsrc = 0;
        }
}

static bool run_reference(subject *s, world *w)
{
    hw_arena *a = hw_arena_new();
    hw_wir_module *m;
    bool ok = build(s, a, &m, NULL) == HW_OK;
    without_waits(&m->functions.ptr[0]);
    for (uint32_t warp = 0; ok && warp * 32 < w->threads; warp++) {
        uint32_t left = w->threads - warp * 32;
        interp x = { .m = m,
                     .params = (const uint8_t *)w->params,
                     .shared = shared_at(w),
                     .local = local_at(w, w->one_local ? 0 : warp),
                     .local_stride = LOCAL_STRIDE,
                     .lanes = left >= 32 ? UINT32_MAX : (1u << left) - 1,
                     .nctaid = { 1, 1, 1 },
                     .warp = warp };
        if (s->counted) {
            x.active_at = theirs.active;
            x.acting_at = theirs.acting;
            x.low_at = theirs.low;
        }
        memcpy(x.ntid, w->v.block, sizeof x.ntid);
        ok = interp_run(&x);
        if (!ok)
            printf("reference: %s\n", x.failed);
    }
    hw_arena_free(a);
    return ok;
}

static bool trial(uint64_t seed, hw_jit *j, world *w, uint8_t tier)
{
    rng = seed;
    for (int i = 0; i < 8; i++)
        rnd();
    uint8_t *left = malloc(w->bytes);
    memset(&ours, 0, sizeof ours);
    memset(&theirs, 0, sizeof theirs);
    memset(op_at, 0, sizeof op_at);
    w->v.tier = tier;
    choose_shape(w);
    new_world(w, seed);
    subject s;
    memset(&s, 0, sizeof s); /* it is hashed */
    s.seed = rnd();
    s.flat = w->v.block[1] * w->v.block[2] == 1;
    s.whole = w->threads % 32 == 0;
    s.large = seed % ONE_LARGE_IN == 2;
    s.counted = seed & 1;
    w->v.listeners = s.counted ? HW_LISTEN_COUNT | (seed & 2 ? HW_LISTEN_ACCESS : 0) : 0;
    w->v.whole_blocks = !s.counted && seed & 2;
    bool ok = run_code(j, &s, w);
    memcpy(left, w->memory, w->bytes);
    new_world(w, seed);
    ok = ok && run_reference(&s, w);
    for (size_t i = 0; ok && i < w->bytes; i++)
        if (left[i] != w->memory[i]) {
            printf("byte %zu: %02x, reference %02x\n", i, left[i], w->memory[i]);
            ok = false;
        }
    free(left);
    ok = ok && (!s.counted || same_counts());
    if (!ok)
        printf("seed %llu failed\n", (unsigned long long)seed);
    return ok;
}

int main(int argc, char **argv)
{
    uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
    unsigned trials = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 0) : 20, failed = 0;
    world w = { .bytes = IN_BYTES + OUT_BYTES + LINE_BYTES + SHARED_BYTES +
                         MOST_THREADS * LOCAL_STRIDE };
    w.memory = mmap(NULL, w.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    hw_jit *j = hw_jit_new(NULL);
    if (argc > 4)
        hw_jit_set_cpu(j, argv[4]);
    alarm(600);
    for (unsigned i = 0; i < trials; i++)
        failed += !trial(seed + i, j, &w, argc > 3 ? (uint8_t)atoi(argv[3]) : 1);
    printf("%u kernels, %u failed; %u suspensions, %u fell back, %u ran blocks at once, %u calls "
           "handed on; %llu lanes and %llu of accesses counted\n",
           trials, failed, suspensions, deopts, whole_blocks, hand_ons,
           (unsigned long long)seen_lanes, (unsigned long long)seen_moved);
    hw_jit_free(j);
    return failed != 0;
}
