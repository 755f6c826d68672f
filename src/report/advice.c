/* SPDX-License-Identifier: Apache-2.0
 *
 * Advice: rules with evidence and cost. The unit of work is an issued instruction, a 32-byte sector,
 * a pass of shared memory, a step of an atomic; a rule's cost is its share of the kernel's. */
#include "report.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

enum { CANDIDATES_MOST = 64 };
#define COST_LEAST 0.01 /* below: nothing worth saying */

typedef struct asker {
    hw_arena *a;
    const hw_report_run *run;
    const hw_report_kernel *k;
    const hw_device *dev;
    uint32_t device;
    double work; /* of the whole kernel */
    bool lines, several_files;
    hw_report_site *sites;        /* merged */
    const hw_report_site **first; /* of each: what it began as */
    uint32_t *copies;             /* of each: others at other lines of the PTX */
    size_t n_sites, n;
    hw_advice found[CANDIDATES_MOST];
} asker;

/* ---- work ---- */

static double work_of(const uint64_t f[HW_FIELDS], int traffic)
{
    bool shared = traffic >= HW_TRAFFIC_shared_ld && traffic <= HW_TRAFFIC_shared_at;
    double steps = (double)f[HW_FIELD_serial];
    if (shared)
        return (double)f[HW_FIELD_passes] + steps;
    if (traffic == HW_TRAFFIC_constant_ld)
        return (double)f[HW_FIELD_transactions];
    return (double)f[HW_FIELD_moved] / 32 + steps;
}

static double kernel_work(const asker *x)
{
    double sum = (double)x->k->sums.total[HW_TOTAL_inst];
    for (int t = 0; t < HW_TRAFFICS; t++)
        sum += work_of(x->k->sums.traffic[x->device][t], t);
    return sum;
}

/* ---- saying ---- */

static void say(asker *x, const char *rule, const hw_report_site *site, double cost,
                const char *text)
{
    if (!(cost >= COST_LEAST) || x->n == CANDIDATES_MOST)
        return;
    cost = cost < 1 ? cost : 1;
    x->found[x->n++] = (hw_advice){ rule, text, cost, site };
}

/* A rule about the launch as a whole: its evidence is its cost, no share of the work. */
static void say_launch(asker *x, const char *rule, double weight, const char *text)
{
    size_t before = x->n;
    say(x, rule, NULL, weight, text);
    if (x->n > before)
        x->found[before].whole_launch = true;
}

/* Code of a library's headers is told by the line that took it in, if that is the program's. */
static hw_report_place own_place(const hw_report_site *s)
{
    const hw_report_place *p = &s->place;
    for (uint32_t i = 0; p->file && strstr(p->file, "/include/") && i < s->n_inlined; i++)
        p = &s->inlined[i];
    return p->file && p->line && !strstr(p->file, "/include/") ? *p : s->place;
}

static const char *where(const asker *x, const hw_report_site *s)
{
    bool merged = s >= x->sites && s < x->sites + x->n_sites;
    uint32_t copies = merged ? x->copies[s - x->sites] : 0;
    if (!x->lines || !s->place.file || !s->place.line)
        return copies ? hw_arena_printf(x->a, "PTX line %u and %u like it", s->ptx_line, copies)
                      : hw_arena_printf(x->a, "PTX line %u", s->ptx_line);
    hw_report_place p = own_place(s);
    return x->several_files ? hw_arena_printf(x->a, "%s line %u", hw_base_name(p.file), p.line)
                            : hw_arena_printf(x->a, "line %u", p.line);
}

static double mean(const uint64_t f[HW_FIELDS], unsigned field)
{
    return f[HW_FIELD_accesses] ? (double)f[field] / (double)f[HW_FIELD_accesses] : 0;
}

static const char *amount(const asker *x, double v)
{
    return fabs(v - floor(v + 0.5)) < 0.005 ? hw_grouped(x->a, (uint64_t)(v + 0.5))
                                            : hw_arena_printf(x->a, "%.1f", v);
}

static const char *verb(int traffic)
{
    static const char *const verbs[HW_TRAFFICS] = {
        [HW_TRAFFIC_global_ld] = "load from global memory",
        [HW_TRAFFIC_global_st] = "store to global memory",
        [HW_TRAFFIC_global_at] = "atomic on global memory",
        [HW_TRAFFIC_copy_ld] = "asynchronous copy from global memory",
        [HW_TRAFFIC_bulk_ld] = "bulk copy from global memory",
        [HW_TRAFFIC_bulk_st] = "bulk copy to global memory",
        [HW_TRAFFIC_bulk_at] = "bulk reduction in global memory",
        [HW_TRAFFIC_local_ld] = "load from local memory",
        [HW_TRAFFIC_local_st] = "store to local memory",
        [HW_TRAFFIC_shared_ld] = "load from shared memory",
        [HW_TRAFFIC_shared_st] = "store to shared memory",
        [HW_TRAFFIC_matrix_ld] = "matrix load from shared memory",
        [HW_TRAFFIC_matrix_st] = "matrix store to shared memory",
        [HW_TRAFFIC_copy_st] = "asynchronous copy to shared memory",
        [HW_TRAFFIC_shared_at] = "atomic on shared memory",
        [HW_TRAFFIC_constant_ld] = "load from constant memory",
        [HW_TRAFFIC_texture_ld] = "texture fetch",
        [HW_TRAFFIC_surface_ld] = "load from a surface",
        [HW_TRAFFIC_surface_st] = "store to a surface",
    };
    return verbs[traffic];
}

/* "stride-32 " in words of the access, "" if there is no one stride. */
static const char *stride_of(const asker *x, const hw_report_site *s)
{
    bool words = s->strided && s->width && s->stride % (int64_t)s->width == 0;
    if (!s->strided || s->stride == 0)
        return "";
    return words ? hw_arena_printf(x->a, "stride-%" PRId64 " ", s->stride / (int64_t)s->width)
                 : hw_arena_printf(x->a, "stride-%" PRId64 "-byte ", s->stride);
}

/* ---- shared memory ---- */

static uint32_t passes_at(const asker *x, const hw_report_site *s, uint64_t stride, uint32_t *ideal)
{
    uint64_t address[HW_WARP_LANES];
    for (uint64_t lane = 0; lane < HW_WARP_LANES; lane++)
        address[lane] = lane * stride;
    hw_access a = { .address = address,
                    .mask = UINT32_MAX,
                    .lanes = HW_WARP_LANES,
                    .width = s->width,
                    .kind = s->traffic == HW_TRAFFIC_shared_ld ? HW_LOAD : HW_STORE };
    hw_bank_result r;
    hw_bank_access(x->dev, &a, &r);
    *ideal = r.ideal_passes;
    return r.passes;
}

/* The least padding of a row of `stride` bytes, in words, that frees it of conflicts. */
static const char *padding(const asker *x, const hw_report_site *s)
{
    uint32_t ideal, step = s->width > 4 ? s->width : 4;
    uint64_t stride = s->strided && s->stride > 0 ? (uint64_t)s->stride : 0;
    if (stride % 4 || stride < 2 * step)
        return "spread the lanes over the banks";
    for (uint64_t more = step; more <= (uint64_t)x->dev->banks.banks * 4; more += step)
        if (passes_at(x, s, stride + more, &ideal) == ideal)
            return s->width > 4 && (stride + more) % s->width == 0
                       ? hw_arena_printf(x->a, "pad the row to %" PRIu64 " elements of %u bytes",
                                         (stride + more) / s->width, s->width)
                       : hw_arena_printf(x->a, "pad the row to %" PRIu64 " words",
                                         (stride + more) / 4);
    return "spread the lanes over the banks";
}

static void advise_bank_conflict(asker *x, const hw_report_site *s)
{
    const uint64_t *f = s->field[x->device];
    bool shared = s->traffic >= HW_TRAFFIC_shared_ld && s->traffic <= HW_TRAFFIC_shared_at;
    if (!shared || f[HW_FIELD_passes] <= f[HW_FIELD_ideal])
        return;
    double excess = (double)(f[HW_FIELD_passes] - f[HW_FIELD_ideal]);
    double ways = (double)f[HW_FIELD_passes] / (double)f[HW_FIELD_ideal];
    say(x, "bank_conflict", s, excess / x->work,
        hw_arena_printf(x->a, "%s: %s%s, %s-way conflict, %s of %s passes avoidable; %s",
                        where(x, s), stride_of(x, s), verb(s->traffic), amount(x, ways),
                        amount(x, mean(f, HW_FIELD_passes) - mean(f, HW_FIELD_ideal)),
                        amount(x, mean(f, HW_FIELD_passes)), padding(x, s)));
}

/* ---- global memory ---- */

static const char *coalescing_remedy(const hw_report_site *s)
{
    if (s->strided && s->stride == (int64_t)s->width)
        return "start each warp's row at a multiple of its transaction size";
    if (s->strided && s->stride == 0)
        return "read it once and pass it on, or use constant memory";
    return "let neighbouring threads access neighbouring words (swap the indices, stage a tile in "
           "shared memory, or use arrays of members instead of structures)";
}

static void advise_uncoalesced(asker *x, const hw_report_site *s)
{
    const uint64_t *f = s->field[x->device];
    bool moves = s->traffic == HW_TRAFFIC_global_ld || s->traffic == HW_TRAFFIC_global_st;
    if (!moves && s->traffic != HW_TRAFFIC_copy_ld)
        return;
    if (f[HW_FIELD_moved] <= f[HW_FIELD_least] || !f[HW_FIELD_transactions] ||
        f[HW_FIELD_bytes] >= f[HW_FIELD_moved]) /* lanes that share words: nothing is lost */
        return;
    double excess = (double)(f[HW_FIELD_moved] - f[HW_FIELD_least]);
    say(x, "uncoalesced", s, excess / 32 / x->work,
        hw_arena_printf(
            x->a,
            "%s: %s%s moves %s bytes a warp in %s transactions where %s bytes would do (%.1f %% of "
            "what is moved was asked for); %s",
            where(x, s), stride_of(x, s), verb(s->traffic), amount(x, mean(f, HW_FIELD_moved)),
            amount(x, mean(f, HW_FIELD_transactions)), amount(x, mean(f, HW_FIELD_least)),
            100 * (double)f[HW_FIELD_bytes] / (double)f[HW_FIELD_moved], coalescing_remedy(s)));
}

static void advise_camping(asker *x, const hw_report_site *s)
{
    const uint64_t *f = s->field[x->device];
    uint64_t camped = f[HW_FIELD_camped], spread = f[HW_FIELD_spread];
    int64_t width = x->dev->memory.partition_bytes;
    bool rows = s->strided && (s->stride >= width || s->stride <= -width);
    if (camped <= spread || s->traffic > HW_TRAFFIC_global_at || !rows)
        return;
    say(x, "camping", s, (double)(camped - spread) / x->work,
        hw_arena_printf(x->a,
                        "%s: %s%s, %s rows that a warp touches meet in one of %u memory "
                        "partitions where %s would, spread evenly; lengthen the rows by %u bytes",
                        where(x, s), stride_of(x, s), verb(s->traffic),
                        amount(x, mean(f, HW_FIELD_camped)), x->dev->memory.partitions,
                        amount(x, mean(f, HW_FIELD_spread)), x->dev->memory.partition_bytes));
}

static void advise_same_address(asker *x, const hw_report_site *s)
{
    const uint64_t *f = s->field[x->device];
    if (s->traffic != HW_TRAFFIC_global_at && s->traffic != HW_TRAFFIC_shared_at)
        return;
    double steps = mean(f, HW_FIELD_serial);
    if (steps < 2)
        return;
    say(x, "same_address", s, (double)(f[HW_FIELD_serial] - f[HW_FIELD_accesses]) / x->work,
        hw_arena_printf(x->a,
                        "%s: %s, on average %s lanes of a warp meet at one address and go one "
                        "after the other; combine them within the warp first (shuffles, "
                        "__reduce_add_sync), then do one atomic",
                        where(x, s), verb(s->traffic), amount(x, steps)));
}

static void advise_constant_spread(asker *x, const hw_report_site *s)
{
    const uint64_t *f = s->field[x->device];
    if (s->traffic != HW_TRAFFIC_constant_ld || f[HW_FIELD_transactions] <= f[HW_FIELD_requests])
        return;
    say(x, "constant_spread", s,
        (double)(f[HW_FIELD_transactions] - f[HW_FIELD_requests]) / x->work,
        hw_arena_printf(x->a,
                        "%s: load from constant memory at %s different words a warp, one after "
                        "the other; constant memory is for one word a warp: put this table in "
                        "shared or global memory",
                        where(x, s), amount(x, mean(f, HW_FIELD_transactions))));
}

/* ---- the kernel ---- */

static const hw_report_site *worst_branch(const asker *x)
{
    const hw_report_site *worst = NULL;
    for (uint32_t i = 0; i < x->k->n_sites; i++)
        if (x->k->sites[i].divergent > (worst ? worst->divergent : 0))
            worst = &x->k->sites[i];
    return worst;
}

static void advise_divergence(asker *x, const hw_report_site *none)
{
    (void)none;
    const uint64_t *t = x->k->sums.total;
    const hw_report_site *s = worst_branch(x);
    double active = t[HW_TOTAL_inst] ? (double)t[HW_TOTAL_thread_inst] / (double)t[HW_TOTAL_inst]
                                     : HW_WARP_LANES;
    if (!s || active > 0.9 * HW_WARP_LANES)
        return;
    say(x, "divergence", s, (double)t[HW_TOTAL_inst] * (1 - active / HW_WARP_LANES) / x->work,
        hw_arena_printf(x->a,
                        "%s: branch whose lanes part in %s of %s executions; the kernel's "
                        "instructions run with %.1f of 32 lanes. Make whole warps decide alike "
                        "(by thread index, or by sorting the work)",
                        where(x, s), hw_grouped(x->a, s->divergent), hw_grouped(x->a, s->branches),
                        active));
}

static void advise_partial_warps(asker *x, const hw_report_site *none)
{
    (void)none;
    uint32_t threads = x->k->block[0] * x->k->block[1] * x->k->block[2];
    uint32_t warp = x->dev->compute.warp_size, over = threads % warp;
    if (!over)
        return;
    uint32_t slots = (threads + warp - 1) / warp * warp;
    say_launch(
        x, "partial_warps", 1 - (double)threads / slots,
        hw_arena_printf(x->a,
                        "blocks of %u threads leave %u of %u lanes of the last %s idle; use a "
                        "multiple of %u threads",
                        threads, warp - over, warp,
                        x->dev->vendor == HW_VENDOR_AMD ? "wave" : "warp", warp));
}

static void advise_local_memory(asker *x, const hw_report_site *none)
{
    (void)none;
    const uint64_t(*t)[HW_FIELDS] = (const uint64_t(*)[HW_FIELDS])x->k->sums.traffic[x->device];
    double moved = (double)t[HW_TRAFFIC_local_ld][HW_FIELD_moved] +
                   (double)t[HW_TRAFFIC_local_st][HW_FIELD_moved];
    say(x, "local_memory", NULL, moved / 32 / x->work,
        hw_arena_printf(x->a,
                        "%s bytes go through local memory (%" PRIu64
                        " bytes a thread: spilled registers, arrays indexed by variables); allow "
                        "more registers, or index arrays by constants after unrolling",
                        amount(x, moved), x->k->local_bytes));
}

static void advise_small_grid(asker *x, const hw_report_site *none)
{
    (void)none;
    double blocks = (double)x->k->grid[0] * x->k->grid[1] * x->k->grid[2];
    uint32_t sms = x->dev->compute.sm_count;
    if (blocks >= sms)
        return;
    say_launch(x, "small_grid", 0.5 * (1 - blocks / sms),
               hw_arena_printf(x->a,
                               "%s %s %s of %u multiprocessors without work; use smaller "
                               "blocks or let each thread do less",
                               amount(x, blocks), blocks == 1 ? "block leaves" : "blocks leave",
                               amount(x, sms - blocks), sms));
}

enum { WAVES_FEW = 8 };
#define IDLE_MUCH 0.2 /* of the waves' places */

/* The last wave of blocks is short, and there are few before it. */
static void advise_tail(asker *x, const hw_report_site *none)
{
    (void)none;
    hw_occupancy_query q = hw_report_query(x->run, x->k, x->device);
    hw_occupancy_result r;
    double blocks = (double)x->k->grid[0] * x->k->grid[1] * x->k->grid[2];
    if (!hw_occupancy(x->dev, &q, &r) || !r.blocks)
        return;
    double wave = (double)r.blocks * x->dev->compute.sm_count, waves = blocks / wave;
    double idle = 1 - waves / ceil(waves);
    if (waves <= 1 || waves > WAVES_FEW || idle < IDLE_MUCH)
        return;
    say_launch(x, "tail", 0.5 * idle,
               hw_arena_printf(x->a,
                               "%s blocks are %.2f waves of %s: the last one leaves %.0f %% of its "
                               "places empty, %.0f %% of all if blocks take equally long; choose a "
                               "grid near a multiple of %s, or let fewer blocks loop over the work",
                               amount(x, blocks), waves, amount(x, wave),
                               100 * (ceil(waves) - waves), 100 * idle, amount(x, wave)));
}

/* Machine code that keeps registers in local memory, which the PTX does not show. */
static void advise_spills(asker *x, const hw_report_site *none)
{
    (void)none;
    const hw_report_registers *r = &x->k->registers[x->device];
    if (r->source != HW_MODEL_IMAGE || !r->spill_bytes)
        return;
    say_launch(x, "spills", 0.1,
               hw_arena_printf(x->a,
                               "the machine code for sm_%u keeps %u bytes a thread in local memory "
                               "beyond the PTX's arrays: spilled registers (%u are used) or frames "
                               "of calls; allow more registers (launch bounds, -maxrregcount), or "
                               "keep fewer values at once",
                               r->arch, r->spill_bytes, r->count));
}

/* "96 threads a block": so much of what limits occupancy. */
static const char *much_of(asker *x, hw_limit resource, uint64_t n)
{
    static const char *const of[HW_LIMIT_COUNT] = {
        [HW_LIMIT_THREADS] = "threads a block",
        [HW_LIMIT_REGISTERS] = "registers a thread",
        [HW_LIMIT_SHARED] = "bytes of shared memory a block",
        [HW_LIMIT_VGPR] = "VGPRs",
        [HW_LIMIT_SGPR] = "SGPRs",
        [HW_LIMIT_LDS] = "bytes of LDS a group",
    };
    const char *word = of[resource] ? of[resource] : hw_limit_name(resource);
    return hw_arena_printf(x->a, "%s %s", hw_grouped(x->a, n), word);
}

static const char *spaced(asker *x, const char *name)
{
    char *text = hw_arena_cstr(x->a, hw_str_of(name));
    for (char *c = text; *c; c++)
        *c = *c == '_' ? ' ' : *c;
    return text;
}

static void advise_occupancy(asker *x, const hw_report_site *none)
{
    (void)none;
    hw_occupancy_query q = hw_report_query(x->run, x->k, x->device);
    hw_occupancy_report r;
    if (!hw_occupancy_explain(x->dev, &q, &r) || r.result.occupancy >= 0.5)
        return;
    const hw_occupancy_step *best = NULL;
    for (uint32_t i = 0; i < r.step_count; i++)
        if (!best || r.steps[i].warps > best->warps)
            best = &r.steps[i];
    if (!best)
        return;
    say_launch(
        x, "occupancy", 0.25 * (1 - r.result.occupancy),
        hw_arena_printf(
            x->a,
            "%u of %u %s are resident (%.1f %% occupancy), limited by %s; %s instead "
            "of %s would make it %u",
            r.result.warps, r.result.max_warps, x->dev->vendor == HW_VENDOR_AMD ? "waves" : "warps",
            r.result.occupancy * 100, spaced(x, hw_limit_name(r.result.limiter)),
            much_of(x, best->resource, best->then), hw_grouped(x->a, best->now), best->warps));
}

/* ---- all rules ---- */

typedef enum { KERNEL, SITE } rule_per;
static const struct {
    rule_per per;
    void (*advise)(asker *x, const hw_report_site *s);
} rules[] = {
#define ADVICE(name, per, text) { per, advise_##name },
#include "advice.def"
};

static void see_files(asker *x)
{
    const char *file = NULL;
    for (uint32_t i = 0; i < x->k->n_sites; i++) {
        const char *f = own_place(&x->k->sites[i]).file;
        if (file && f && strcmp(f, file) != 0)
            x->several_files = true;
        file = f ? f : file;
    }
}

/* ---- places that are one in the program: copies of a line by unrolling ---- */

/* Without line information, accesses that count the same are taken for copies. */
static bool is_copy(const asker *x, uint32_t at, const hw_report_site *s)
{
    const uint64_t *of = x->first[at]->field[x->device];
    return memcmp(of, s->field[x->device], sizeof *s->field) == 0;
}

static bool same_place(const asker *x, uint32_t at, const hw_report_site *b)
{
    const hw_report_site *a = &x->sites[at];
    if (!x->lines || !a->place.file || !b->place.file)
        return a->ptx_line == b->ptx_line || is_copy(x, at, b);
    return a->place.line == b->place.line && strcmp(a->place.file, b->place.file) == 0;
}

static bool same_access(const asker *x, uint32_t at, const hw_report_site *b)
{
    const hw_report_site *a = &x->sites[at];
    return a->traffic == b->traffic && a->width == b->width && a->strided == b->strided &&
           (!a->strided || a->stride == b->stride) && same_place(x, at, b);
}

/* Sites with equal accesses on one line, summed; only this device's fields. */
static void merge_sites(asker *x)
{
    x->sites = HW_NEW_N(x->a, hw_report_site, x->k->n_sites);
    x->first = HW_NEW_N(x->a, const hw_report_site *, x->k->n_sites);
    x->copies = HW_NEW_N(x->a, uint32_t, x->k->n_sites);
    for (uint32_t i = 0; i < x->k->n_sites; i++) {
        const hw_report_site *s = &x->k->sites[i];
        uint32_t at = 0;
        if (!s->field)
            continue;
        while (at < x->n_sites && !same_access(x, at, s))
            at++;
        if (at == x->n_sites) {
            x->sites[x->n_sites++] = *s;
            x->first[at] = s;
            x->sites[at].field =
                hw_arena_alloc_array(x->a, x->run->n_devices, sizeof *x->sites[at].field);
        }
        x->copies[at] += s->ptx_line != x->sites[at].ptx_line;
        for (int f = 0; f < HW_FIELDS; f++)
            x->sites[at].field[x->device][f] += s->field[x->device][f];
    }
}

static int dearer(const void *a, const void *b)
{
    const hw_advice *x = a, *y = b;
    if (x->cost != y->cost)
        return x->cost < y->cost ? 1 : -1;
    return strcmp(x->text, y->text);
}

size_t hw_report_advice(hw_arena *a, const hw_report_run *run, const hw_report_kernel *k,
                        uint32_t device, hw_advice out[HW_ADVICE_MAX])
{
    asker *x = HW_NEW(a, asker);
    *x = (asker){ .a = a, .run = run, .k = k, .dev = run->devices[device], .device = device };
    x->lines = hw_report_has_lines(k);
    x->work = kernel_work(x);
    see_files(x);
    merge_sites(x);
    if (!k->sums.total[HW_TOTAL_inst])
        return 0;
    for (size_t r = 0; r < HW_COUNTOF(rules); r++) {
        if (rules[r].per == KERNEL)
            rules[r].advise(x, NULL);
        for (size_t i = 0; rules[r].per == SITE && i < x->n_sites; i++)
            rules[r].advise(x, &x->sites[i]);
    }
    qsort(x->found, x->n, sizeof *x->found, dearer);
    size_t n = x->n < HW_ADVICE_MAX ? x->n : HW_ADVICE_MAX;
    for (size_t i = 0; i < n; i++) {
        out[i] = x->found[i];
        if (!out[i].whole_launch)
            out[i].text = hw_arena_printf(a, "%s (%.0f %% of the kernel's work)", out[i].text,
                                          out[i].cost * 100);
    }
    return n;
}
