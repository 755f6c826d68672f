/* SPDX-License-Identifier: Apache-2.0
 * What a launch counts, for kernels whose counts can be said in closed form, with 1, 2 and 8
 * workers. Kernels are warp IR texts, one place an instruction. */
#include "rig.h"

static const unsigned worker_counts[] = { 1, 2, 8 };

/* ---- a listener that sums what the device's rules say ---- */

enum { SITES = 64, BLOCKS = 64 };

typedef struct site_sum {
    uint64_t requests, lanes, sectors, passes, alone; /* alone: accesses times the lanes that share
                                                         one address, the most of them */
    uint64_t told;                                    /* calls, whatever their times */
} site_sum;

typedef struct heard {
    const hw_device *dev;
    hw_listener listener;
    hw_count_table table;
    hw_site site[SITES];
    hw_count_inst inst[256];
    hw_count_branch branch[SITES];
    site_sum sum[HW_SITE_SPACES][SITES];
    hw_block_count block[BLOCKS];
    uint64_t guard[SITES], divergent[SITES];
    uint64_t blocks_done, warps;
    unsigned launches;
} heard;

typedef struct worker {
    heard *h;
    site_sum sum[HW_SITE_SPACES][SITES];
} worker;

typedef struct listened {
    heard *h;
    uint32_t n;
    worker *w;
} listened;

static void *begin(void *ctx, const hw_counters *c, uint32_t workers)
{
    (void)c;
    listened *l = calloc(1, sizeof *l);
    *l = (listened){ ctx, workers, calloc(workers, sizeof(worker)) };
    return l;
}

static void *one_worker(void *launch, uint32_t i)
{
    listened *l = launch;
    l->w[i].h = l->h;
    return &l->w[i];
}

static uint64_t most_alike(const hw_access_told *a)
{
    uint64_t most = 0;
    for (uint32_t i = 0; i < 32; i++) {
        uint64_t n = 0;
        for (uint32_t k = 0; k < 32; k++)
            n += (a->lanes >> i & 1) && (a->lanes >> k & 1) && a->address[i] == a->address[k];
        most = n > most ? n : most;
    }
    return most;
}

static void one_told(worker *w, const hw_access_told *a)
{
    const hw_site *s = &w->h->site[a->site];
    site_sum *sum = &w->sum[a->space][a->site];
    uint64_t address[32];
    for (int i = 0; i < 32; i++)
        address[i] = a->address[i] + (uint64_t)a->add;
    uint8_t bytes = s->bytes ? s->bytes : 4;
    hw_access x = { .address = address, .mask = a->lanes, .lanes = 32, .width = bytes };
    x.kind = s->kind == HW_SITE_LOAD ? HW_LOAD : HW_STORE;
    hw_coalesce_result c;
    hw_bank_result b;
    hw_coalesce_access(w->h->dev, &x, &c, NULL);
    hw_bank_access(w->h->dev, &x, &b);
    sum->requests += a->times;
    sum->lanes += a->times * (uint64_t)__builtin_popcount(a->lanes);
    sum->sectors += a->times * c.sectors;
    sum->passes += a->times * b.passes;
    sum->alone += a->times * most_alike(a);
    sum->told++;
}

static void access_told(void *state, const hw_access_told *a, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (a[i].address) /* else it is counted as well */
            one_told(state, &a[i]);
}

static void keep(heard *h, const hw_counters *c)
{
    const hw_count_table *t = c->table;
    assert_true(t->n_sites <= SITES && t->n_blocks <= BLOCKS && t->n_insts <= 256);
    h->table = *t;
    memset(h->block, 0, sizeof h->block);
    memcpy(h->inst, t->insts, t->n_insts * sizeof *t->insts);
    memcpy(h->branch, t->branches, t->n_branches * sizeof *t->branches);
    memcpy(h->block, c->blocks, t->n_blocks * sizeof *c->blocks);
    memcpy(h->guard, c->guard_lanes, t->n_guards * sizeof *c->guard_lanes);
    memcpy(h->divergent, c->divergent, t->n_branches * sizeof *c->divergent);
    h->blocks_done = c->blocks_done;
    h->warps = c->warps_launched;
    h->launches++;
}

static void end(void *launch, const hw_counters *c)
{
    listened *l = launch;
    heard *h = l->h;
    memset(h->sum, 0, sizeof h->sum);
    for (uint32_t i = 0; i < l->n; i++)
        for (uint32_t p = 0; p < HW_SITE_SPACES; p++)
            for (uint32_t s = 0; s < SITES; s++) {
                const site_sum *x = &l->w[i].sum[p][s];
                h->sum[p][s].requests += x->requests;
                h->sum[p][s].lanes += x->lanes;
                h->sum[p][s].sectors += x->sectors;
                h->sum[p][s].passes += x->passes;
                h->sum[p][s].alone += x->alone;
                h->sum[p][s].told += x->told;
            }
    keep(h, c);
    free(l->w);
    free(l);
}

/* Sites are known before the first access: the kinds must be there when it is told. */
static void *begin_with_table(void *ctx, const hw_counters *c, uint32_t workers)
{
    heard *h = ctx;
    assert_true(c->table->n_sites <= SITES);
    memcpy(h->site, c->table->sites, c->table->n_sites * sizeof *c->table->sites);
    return begin(ctx, c, workers);
}

static heard *listen(rig *r, uint32_t wants)
{
    heard *h = calloc(1, sizeof *h);
    h->dev = r->dev;
    h->listener = (hw_listener){ h, wants, begin_with_table, one_worker, access_told, end };
    r->listener = &h->listener;
    return h;
}

/* ---- what tests ask ---- */

/* The k-th site of a kind and space. */
static const site_sum *site(const heard *h, hw_site_kind kind, hw_site_space space, unsigned k)
{
    for (uint32_t i = 0; i < h->table.n_sites; i++)
        if (h->site[i].kind == kind && (h->site[i].space == space || h->site[i].space == 0) &&
            k-- == 0)
            return &h->sum[space][i];
    fail_msg("there is no such site");
    return NULL;
}

static uint64_t warp_insts(const heard *h, hw_inst_class cls)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < h->table.n_insts; i++)
        n += h->inst[i].cls == cls ? h->block[h->inst[i].block].warps : 0;
    return n;
}

static uint64_t thread_insts(const heard *h, hw_inst_class cls)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < h->table.n_insts; i++)
        n += h->inst[i].cls == cls ? h->block[h->inst[i].block].lanes : 0;
    return n;
}

static uint64_t divergent(const heard *h)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < h->table.n_branches; i++)
        n += h->divergent[i];
    return n;
}

static uint64_t branches(const heard *h)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < h->table.n_branches; i++)
        n += h->block[h->branch[i].block].warps;
    return n;
}

/* For each number of workers: a rig on a device, a listener, a body. */
static void with_workers(const char *device, uint32_t wants, void (*body)(rig *r, heard *h))
{
    for (size_t w = 0; w < HW_COUNTOF(worker_counts); w++) {
        rig *r = rig_new_generated(device, worker_counts[w], NULL);
        heard *h = listen(r, wants);
        body(r, h);
        rig_free(r);
        free(h);
    }
}

#define EACH(body)                                                             \
    static void body(void **state)                                             \
    {                                                                          \
        (void)state;                                                           \
        with_workers("v100", HW_LISTEN_COUNT, body##_with);                    \
    }                                                                          \
    static void body##_told(void **state)                                      \
    {                                                                          \
        (void)state;                                                           \
        with_workers("v100", HW_LISTEN_COUNT | HW_LISTEN_ACCESS, body##_with); \
    }

/* ---- kernels ---- */

#define MODULE(shared) "module shared=" #shared " params=64 reqntid=0,0,0 indirect=0\n"
#define KERNEL                               \
    "kernel @k local=0 {\n"                  \
    "  reg i64 %par %p %q %a %b %o %u\n"     \
    "  reg i32 %t %c %n %v %w %x %y %z %m\n" \
    "  reg i1 %f %g\n"                       \
    "start:\n"                               \
    "  %par = param_addr\n"                  \
    "  %p = load.i64.param [%par]\n"         \
    "  %q = load.i64.param [%par + 8]\n"     \
    "  %m = load.i32.param [%par + 16]\n"    \
    "  %t = sreg.i32 tid_x\n"                \
    "  %c = sreg.i32 ctaid_x\n"              \
    "  %n = sreg.i32 ntid_x\n"               \
    "  %x = mul.i32 %c, %n\n"                \
    "  %x = add.i32 %x, %t\n"
#define AT(dst, base, index)          \
    "  %o = sext.i32.i64 " index "\n" \
    "  %o = shl.i64 %o, 2\n"          \
    "  " dst " = add.i64 " base ", %o\n"

/* y[i] = 2 x[i] + y[i] for i < n; %m = n */
static const char saxpy[] =
    MODULE(0) KERNEL "  %f = icmp.i32.ge_s %x, %m\n"
                     "  cbr %f, end, work\n"
                     "work:\n" AT("%a", "%p", "%x") "  %b = add.i64 %q, %o\n"
                                                    "  %v = load.i32.global [%a]\n"
                                                    "  %w = load.i32.global [%b]\n"
                                                    "  %v = ffma.f32 %v, 0x40000000, %w\n"
                                                    "  store.i32.global [%b], %v\n"
                                                    "  br end\n"
                                                    "end:\n"
                                                    "  ret\n"
                                                    "}\n";

static void saxpy_with_a_partial_last_block_with(rig *r, heard *h)
{
    enum { N = 1000, THREADS = 256 }; /* 1000 = 31 warps and 8 lanes, of 32 warps */
    uint64_t x = rig_alloc(r, 4096), y = rig_alloc(r, 4096);
    rig_shape s = { .grid = { 4 }, .block = { THREADS } };
    assert_int_equal(RUN_TEXT(r, saxpy, s, x, y, N), HW_OK);
    assert_int_equal(h->launches, 1);
    assert_int_equal(h->blocks_done, 4);
    assert_int_equal(h->warps, 32);
    assert_int_equal(branches(h), 32);
    assert_int_equal(divergent(h), 1);
    assert_int_equal(warp_insts(h, HW_INST_FFMA), 32);
    assert_int_equal(thread_insts(h, HW_INST_FFMA), N);
    for (unsigned k = 0; k < 2; k++) {
        const site_sum *ld = site(h, HW_SITE_LOAD, HW_SITE_GLOBAL, k);
        assert_int_equal(ld->requests, 32);
        assert_int_equal(ld->lanes, N);
        assert_int_equal(ld->sectors, 31 * 4 + 1);
    }
    const site_sum *st = site(h, HW_SITE_STORE, HW_SITE_GLOBAL, 0);
    assert_int_equal(st->requests, 32);
    assert_int_equal(st->sectors, 31 * 4 + 1);
}
EACH(saxpy_with_a_partial_last_block)

/* v = p[(i * m) mod 2^16 + q] */
static const char strided[] =
    MODULE(0) KERNEL "  %y = mul.i32 %x, %m\n" AT("%a", "%p", "%y") "  %a = add.i64 %a, %q\n"
                                                                    "  %v = load.i32.global [%a]\n"
                                                                    "  store.i32.global [%p], %v\n"
                                                                    "  ret\n"
                                                                    "}\n";

static void run_strided(rig *r, heard *h, uint32_t stride, uint32_t shift, uint64_t sectors)
{
    uint64_t p = rig_alloc(r, 1 << 16);
    rig_shape s = { .grid = { 8 }, .block = { 64 } };
    assert_int_equal(RUN_TEXT(r, strided, s, p, shift, stride), HW_OK);
    const site_sum *ld = site(h, HW_SITE_LOAD, HW_SITE_GLOBAL, 0);
    assert_int_equal(ld->requests, 16);
    assert_int_equal(ld->lanes, 16 * 32);
    assert_int_equal(ld->sectors, 16 * sectors);
    /* all lanes store to one word */
    const site_sum *st = site(h, HW_SITE_STORE, HW_SITE_GLOBAL, 0);
    assert_int_equal(st->requests, 16);
    assert_int_equal(st->sectors, 16);
    hw_mem_free(r->mem, p);
}

/* Sectors of a request on 7.x: linear 4, shifted by a word 5, every second word 8, every eighth 32 */
static void strided_loads_with(rig *r, heard *h)
{
    run_strided(r, h, 1, 0, 4);
    run_strided(r, h, 1, 4, 5);
    run_strided(r, h, 2, 0, 8);
    run_strided(r, h, 8, 0, 32);
    run_strided(r, h, 0, 0, 1);
}
EACH(strided_loads)

/* A 32x32 tile through shared memory with rows of m words; block 32x8. */
#define TILE(row)                                                                         \
    MODULE(4608)                                                                          \
    KERNEL "  %y = sreg.i32 tid_y\n"                                                      \
           "  %z = mul.i32 %y, 4\n"                                                       \
           "  %w = mul.i32 %y, " row "\n"                                                 \
           "  %w = add.i32 %w, %t\n"                                                      \
           "  %w = shl.i32 %w, 2\n"                                                       \
           "  store.i32.shared [%w], %t\n"                                                \
           "  barrier 0, _\n"                                                             \
           "  %w = mul.i32 %t, " row "\n"                                                 \
           "  %w = add.i32 %w, %y\n"                                                      \
           "  %w = shl.i32 %w, 2\n"                                                       \
           "  %v = load.i32.shared [%w]\n"                                                \
           "  %w = load.i32.shared [%w + 16]\n"                                           \
           "  %v = add.i32 %v, %w\n" AT("%a", "%p", "%t") "  store.i32.global [%a], %v\n" \
                                                          "  ret\n"                       \
                                                          "}\n"
static const char tile[] = TILE("32");
static const char padded[] = TILE("33");

static void run_tile(rig *r, heard *h, const char *text, uint64_t passes)
{
    uint64_t p = rig_alloc(r, 4096);
    rig_shape s = { .grid = { 10 }, .block = { 32, 8 } };
    assert_int_equal(RUN_TEXT(r, text, s, p), HW_OK);
    const site_sum *st = site(h, HW_SITE_STORE, HW_SITE_SHARED, 0);
    assert_int_equal(st->requests, 80);
    assert_int_equal(st->passes, 80);
    for (unsigned k = 0; k < 2; k++) {
        const site_sum *ld = site(h, HW_SITE_LOAD, HW_SITE_SHARED, k);
        assert_int_equal(ld->requests, 80);
        assert_int_equal(ld->passes, 80 * passes);
    }
    assert_int_equal(warp_insts(h, HW_INST_BARRIER), 80);
    assert_int_equal(thread_insts(h, HW_INST_BARRIER), 80 * 32);
    hw_mem_free(r->mem, p);
}

static void transposes_with(rig *r, heard *h)
{
    run_tile(r, h, tile, 32);
    run_tile(r, h, padded, 1);
}
EACH(transposes)

/* Half of the lanes by turns; then whole warps by turns; then a loop of lane trips. */
static const char forks[] =
    MODULE(0) KERNEL "  %y = and.i32 %t, 1\n"
                     "  %f = icmp.i32.eq %y, 0\n"
                     "  cbr %f, even, odd\n"
                     "even:\n"
                     "  %v = fadd.f32 %t, %t\n"
                     "  br second\n"
                     "odd:\n"
                     "  %v = fmul.f32 %t, %t\n"
                     "  br second\n"
                     "second:\n"
                     "  %y = and.i32 %t, 32\n"
                     "  %f = icmp.i32.eq %y, 0\n"
                     "  cbr %f, low, loop\n"
                     "low:\n"
                     "  %v = ffma.f32 %t, %t, %v\n"
                     "  br loop\n"
                     "loop:\n"
                     "  %z = popc.i32 %x\n"
                     "  %w = add.i32 %w, 1\n"
                     "  %y = and.i32 %t, 31\n"
                     "  %f = icmp.i32.lt_u %w, %y\n"
                     "  cbr %f, loop, done\n"
                     "done:\n" AT("%a", "%p", "%x") "  store.i32.global [%a], %v\n"
                                                    "  ret\n"
                                                    "}\n";

static void divergent_branches_with(rig *r, heard *h)
{
    uint64_t p = rig_alloc(r, 4096);
    rig_shape s = { .grid = { 4 }, .block = { 128 } };
    assert_int_equal(RUN_TEXT(r, forks, s, p), HW_OK);
    uint64_t warps = 16;
    assert_int_equal(warp_insts(h, HW_INST_FADD), warps);
    assert_int_equal(thread_insts(h, HW_INST_FADD), warps * 16);
    assert_int_equal(thread_insts(h, HW_INST_FMUL), warps * 16);
    assert_int_equal(warp_insts(h, HW_INST_FFMA), warps / 2);
    assert_int_equal(thread_insts(h, HW_INST_FFMA), warps / 2 * 32);
    /* lane l goes round max(l, 1) times: warps 31 times, lanes 1 + 1 + 2 + ... + 31 */
    uint64_t trips = 0, lanes = 0, popc = 0, threads = 0;
    for (uint32_t b = 0; b < h->table.n_blocks; b++)
        if (h->block[b].warps > trips) {
            trips = h->block[b].warps;
            lanes = h->block[b].lanes;
        }
    (void)popc, (void)threads;
    assert_int_equal(trips, warps * 31);
    assert_int_equal(lanes, warps * (1 + 31 * 32 / 2));
    /* the first branch always, the second never, the loop's 30 times (the last trip is one way) */
    assert_int_equal(branches(h), warps * (1 + 1 + 31));
    assert_int_equal(divergent(h), warps * (1 + 30));
}
EACH(divergent_branches)

/* Everybody adds to one word; to a word each; lanes to four words. A guarded one by even lanes. */
static const char atomics[] = MODULE(64) KERNEL "  red.add.i32.global [%p], 1\n" AT(
    "%a", "%p", "%t") "  %v = atom.add.i32.global [%a + 256], 1\n"
                      "  %y = and.i32 %t, 3\n"
                      "  %y = shl.i32 %y, 2\n"
                      "  red.add.i32.shared [%y], 1\n"
                      "  %y = and.i32 %t, 1\n"
                      "  %f = icmp.i32.eq %y, 0\n"
                      "  @%f red.add.i32.global [%p + 4], 1\n"
                      "  @%f %z = fadd.f32 %t, %t\n"
                      "  ret\n"
                      "}\n";

static void atomics_to_few_addresses_with(rig *r, heard *h)
{
    uint64_t p = rig_alloc(r, 4096);
    rig_shape s = { .grid = { 9 }, .block = { 96 } };
    assert_int_equal(RUN_TEXT(r, atomics, s, p), HW_OK);
    uint64_t warps = 27;
    assert_int_equal(*words(p), warps * 32);
    assert_int_equal(site(h, HW_SITE_REDUCTION, HW_SITE_GLOBAL, 0)->requests, warps);
    assert_int_equal(site(h, HW_SITE_REDUCTION, HW_SITE_GLOBAL, 0)->alone, warps * 32);
    assert_int_equal(site(h, HW_SITE_ATOMIC, HW_SITE_GLOBAL, 0)->alone, warps);
    assert_int_equal(site(h, HW_SITE_REDUCTION, HW_SITE_SHARED, 0)->alone, warps * 8);
    assert_int_equal(site(h, HW_SITE_REDUCTION, HW_SITE_GLOBAL, 1)->lanes, warps * 16);
    assert_int_equal(site(h, HW_SITE_REDUCTION, HW_SITE_GLOBAL, 1)->alone, warps * 16);
    assert_int_equal(h->table.n_guards, 2);
    assert_int_equal(h->guard[0], warps * 16);
    assert_int_equal(h->guard[1], warps * 16);
    assert_int_equal(thread_insts(h, HW_INST_FADD), warps * 32);
}
EACH(atomics_to_few_addresses)

/* Constant memory: one word for all, then a word each of eight. */
static const char constants[] = MODULE(0) KERNEL
    "  %v = load.i32.const [%p + 8]\n"
    "  %y = and.i32 %t, 7\n" AT("%a", "%p", "%y") "  %w = load.i32.const [%a]\n"
                                                  "  %v = add.i32 %v, %w\n" AT(
                                                      "%b", "%q",
                                                      "%x") "  store.i32.global [%b], %v\n"
                                                            "  ret\n"
                                                            "}\n";

static void constant_memory_with(rig *r, heard *h)
{
    uint64_t p = rig_alloc(r, 4096), q = rig_alloc(r, 4096);
    rig_shape s = { .grid = { 5 }, .block = { 64 } };
    assert_int_equal(RUN_TEXT(r, constants, s, p, q), HW_OK);
    assert_int_equal(site(h, HW_SITE_LOAD, HW_SITE_CONST, 0)->alone, 10 * 32);
    assert_int_equal(site(h, HW_SITE_LOAD, HW_SITE_CONST, 1)->alone, 10 * 4);
}
EACH(constant_memory)

/* Local memory: the same offset in all lanes is consecutive words; then an offset each. */
static const char locals[] = MODULE(0) "kernel @k local=256 {\n"
                                       "  reg i64 %a %o %p %par\n"
                                       "  reg i32 %t %v %y\n"
                                       "start:\n"
                                       "  %par = param_addr\n"
                                       "  %p = load.i64.param [%par]\n"
                                       "  %t = sreg.i32 tid_x\n"
                                       "  %a = local_addr\n"
                                       "  store.i32.local [%a + 8], %t\n"
                                       "  store.i64.local [%a + 16], %p\n"
                                       "  %y = and.i32 %t, 31\n"
                                       "  %o = zext.i32.i64 %y\n"
                                       "  %o = shl.i64 %o, 2\n"
                                       "  %o = add.i64 %a, %o\n"
                                       "  %v = load.i32.local [%o]\n"
                                       "  %v = load.i32 [%o]\n"
                                       "  %v = load.i32 [%a + 8]\n"
                                       "  %v = load.i32 [%p]\n"
                                       "  store.i32.global [%p], %v\n"
                                       "  ret\n"
                                       "}\n";

static void local_memory_is_interleaved_with(rig *r, heard *h)
{
    uint64_t p = rig_alloc(r, 4096);
    rig_shape s = { .grid = { 5 }, .block = { 64 } };
    assert_int_equal(RUN_TEXT(r, locals, s, p), HW_OK);
    assert_int_equal(site(h, HW_SITE_STORE, HW_SITE_LOCAL, 0)->sectors, 10 * 4);
    assert_int_equal(site(h, HW_SITE_STORE, HW_SITE_LOCAL, 1)->sectors, 10 * 8);
    assert_int_equal(site(h, HW_SITE_LOAD, HW_SITE_LOCAL, 0)->sectors, 10 * 32);
    /* generic addresses are told with the space they went to */
    assert_int_equal(site(h, HW_SITE_LOAD, HW_SITE_LOCAL, 1)->sectors, 10 * 32);
    assert_int_equal(site(h, HW_SITE_LOAD, HW_SITE_LOCAL, 2)->sectors, 10 * 4);
    assert_int_equal(site(h, HW_SITE_LOAD, HW_SITE_GLOBAL, 2)->sectors, 10);
}
EACH(local_memory_is_interleaved)

/* ---- known patterns are counted, not told ---- */

static void known_patterns_cost_no_calls(void **state)
{
    (void)state;
    rig *r = rig_new_generated("v100", 1, NULL);
    heard *h = listen(r, HW_LISTEN_COUNT);
    uint64_t p = rig_alloc(r, 1 << 20);
    rig_shape s = { .grid = { 1000 }, .block = { 64 } };
    assert_int_equal(RUN_TEXT(r, strided, s, p, 0, 3), HW_OK);
    /* 2000 accesses of at most 64 classes, and the one that found the stride */
    assert_int_equal(site(h, HW_SITE_LOAD, HW_SITE_GLOBAL, 0)->requests, 2000);
    assert_true(site(h, HW_SITE_LOAD, HW_SITE_GLOBAL, 0)->told <= 65);
    assert_int_equal(site(h, HW_SITE_STORE, HW_SITE_GLOBAL, 0)->told, 1);
    rig_free(r);
    free(h);
}

/* ---- variants and the disk cache ---- */

typedef struct source {
    hw_jit *jit;
    const hw_code *last;
} source;

static hw_status from_cache(void *ctx, const hw_jit_source *s, const hw_variant *v,
                            const hw_code **out, hw_diag *d)
{
    source *x = ctx;
    hw_status status = hw_jit_get(x->jit, s, v, out, d);
    x->last = *out;
    return status;
}

static void tables_are_kept_on_disk_and_only_for_listeners(void **state)
{
    (void)state;
    char dir[] = "/tmp/halfwarp-counters-XXXXXX", remove[64];
    assert_non_null(mkdtemp(dir));
    for (unsigned round = 0; round < 2; round++) {
        rig *r = rig_new_generated("v100", 1, NULL);
        source from = { hw_jit_new(dir), NULL };
        hw_exec_code_from(r->x, from_cache, &from);
        heard *h = listen(r, HW_LISTEN_COUNT);
        saxpy_with_a_partial_last_block_with(r, h);
        assert_non_null(from.last->count);
        r->listener = NULL; /* other code: it finds no counters */
        uint64_t x = rig_alloc(r, 4096), y = rig_alloc(r, 4096);
        rig_shape s = { .grid = { 4 }, .block = { 256 } };
        assert_int_equal(RUN_TEXT(r, saxpy, s, x, y, 1000), HW_OK);
        assert_null(from.last->count);
        hw_jit_stats stats = hw_jit_get_stats(from.jit);
        assert_int_equal(stats.compiled, round ? 0 : 2);
        assert_int_equal(stats.disk_hits, round ? 2 : 0);
        rig_free(r);
        hw_jit_free(from.jit);
        free(h);
    }
    snprintf(remove, sizeof remove, "rm -r %s", dir);
    assert_int_equal(system(remove), 0);
}

#define TEST(name) cmocka_unit_test(name), cmocka_unit_test(name##_told)
int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(saxpy_with_a_partial_last_block),
        TEST(strided_loads),
        TEST(transposes),
        TEST(divergent_branches),
        TEST(atomics_to_few_addresses),
        TEST(constant_memory),
        TEST(local_memory_is_interleaved),
        cmocka_unit_test(known_patterns_cost_no_calls),
        cmocka_unit_test(tables_are_kept_on_disk_and_only_for_listeners),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
