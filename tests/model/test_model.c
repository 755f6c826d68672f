/* SPDX-License-Identifier: Apache-2.0
 *
 * The model on made-up launches with answers in closed form: rules of several devices at once,
 * workers, groups of launches, limits; and the report made of its file. */
#include "hw_report.h"

#include <math.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

/* One block of four instructions: a load, an add, a store to shared memory, a branch. */
static const hw_count_place places[] = {
    { .ptx_line = 0 },
    { .file = "kernel.cu", .line = 12, .ptx_line = 30 },
    { .file = "kernel.cu", .line = 13, .ptx_line = 31 },
    { .file = "kernel.cu", .line = 14, .ptx_line = 32 },
    { .file = "kernel.cu", .line = 15, .ptx_line = 33 },
};
#define NONE HW_NO_INDEX
static const hw_count_inst insts[] = {
    { .place = 1, .guard = NONE, .site = 0, .branch = NONE, .cls = HW_INST_LD_GLOBAL, .pairs = 1 },
    { .place = 2, .guard = 0, .site = NONE, .branch = NONE, .cls = HW_INST_FFMA, .pairs = 1 },
    { .place = 3, .guard = NONE, .site = 1, .branch = NONE, .cls = HW_INST_ST_SHARED, .pairs = 1 },
    { .place = 4, .guard = NONE, .site = NONE, .branch = 0, .cls = HW_INST_BRANCH, .pairs = 1 },
};
static const hw_site sites[] = {
    { .place = 1,
      .inst = 0,
      .kind = HW_SITE_LOAD,
      .space = HW_SITE_GLOBAL,
      .bytes = 4,
      .elements = 1,
      .first = NONE },
    { .place = 3,
      .inst = 2,
      .kind = HW_SITE_STORE,
      .space = HW_SITE_SHARED,
      .bytes = 4,
      .elements = 1,
      .first = NONE },
};
static const hw_count_branch branches[] = { { .place = 4, .inst = 3, .targets = 2 } };
static const hw_count_block blocks[] = { { .count = 4 } };
static const hw_count_table table = {
    .n_blocks = 1,
    .n_insts = 4,
    .n_sites = 2,
    .n_branches = 1,
    .n_guards = 1,
    .n_places = 5,
    .blocks = blocks,
    .insts = insts,
    .sites = sites,
    .branches = branches,
    .places = places,
};

typedef struct rig {
    hw_arena *arena;
    hw_diag *diag;
    hw_model *model;
    const hw_device *devices[HW_MODEL_DEVICES_MAX];
    uint32_t n;
    uint64_t launches;
    char path[64];
} rig;

static void rig_up(rig *r, const char *const *names)
{
    memset(r, 0, sizeof *r);
    r->arena = hw_arena_new();
    r->diag = hw_diag_new(r->arena);
    for (; names[r->n]; r->n++)
        assert_int_equal(hw_device_load(r->arena, names[r->n], &r->devices[r->n], r->diag), HW_OK);
    r->model = hw_model_new(r->devices, r->n, HW_MODEL_COUNT, "test", NULL);
    snprintf(r->path, sizeof r->path, "/tmp/hw-model-XXXXXX");
    int fd = mkstemp(r->path);
    assert_true(fd >= 0);
    close(fd);
}

static hw_report_run *rig_read(rig *r)
{
    hw_report_run *run = NULL;
    assert_int_equal(hw_model_write(r->model, r->path, true, r->diag), HW_OK);
    assert_int_equal(hw_report_load(r->arena, r->path, &run, r->diag), HW_OK);
    return run;
}

static void rig_down(rig *r)
{
    unlink(r->path);
    hw_model_free(r->model);
    hw_arena_free(r->arena);
}

/* A launch of `warps` warps on `workers` workers: stride (in words) of the store, base of the load. */
typedef struct made {
    uint32_t warps, workers, stride, grid, base, more; /* more: lanes predicated on */
    hw_status status;
    const hw_count_table *table; /* NULL: the one above */
} made;

static void run_launch(rig *r, made m)
{
    const hw_listener *l = hw_model_listener(r->model);
    hw_block_count count = { m.warps, (uint64_t)m.warps * 32 };
    uint64_t guard = (uint64_t)m.warps * 24 + m.more, divergent = m.warps / 2;
    hw_counters c = { .table = m.table ? m.table : &table,
                      .blocks = &count,
                      .guard_lanes = &guard,
                      .divergent = &divergent,
                      .kernel = "_Z6kernelILi4EEvPf",
                      .grid = { m.grid, 1, 1 },
                      .block = { 32, 1, 1 },
                      .blocks_done = m.warps,
                      .warps_launched = m.warps,
                      .static_shared_bytes = 4096,
                      .registers = 40,
                      .status = m.status };
    void *launch = l->begin(l->ctx, &c, m.workers);
    void **workers = calloc(m.workers, sizeof *workers);
    for (uint32_t i = 0; i < m.workers; i++)
        workers[i] = l->worker(launch, i);
    for (uint32_t w = 0; w < m.warps; w++) {
        uint64_t load[32], store[32];
        for (uint32_t lane = 0; lane < 32; lane++) {
            load[lane] = 4096 + m.base + 4 * lane;
            store[lane] = 4 * m.stride * lane;
        }
        hw_access_told a = {
            .site = 0, .space = HW_SITE_GLOBAL, .lanes = UINT32_MAX, .times = 1, .address = load
        };
        hw_access_told b = {
            .site = 1, .space = HW_SITE_SHARED, .lanes = UINT32_MAX, .times = 1, .address = store
        };
        l->access(workers[w % m.workers], &a, 1);
        l->access(workers[(w + 1) % m.workers], &b, 1);
    }
    l->end(launch, &c);
    free(workers);
    const hw_model_launch done = { .id = r->launches++,
                                   .kernel = c.kernel,
                                   .grid = { m.grid, 1, 1 },
                                   .block = { 32, 1, 1 },
                                   .status = m.status };
    hw_model_launch_done(r->model, &done);
}

static double value(const hw_report_run *run, const char *metric, uint32_t device)
{
    size_t m = hw_metric_find(metric);
    assert_int_not_equal(m, SIZE_MAX);
    return hw_metric_value(m, &run->kernels[0], &run->kernels[0].sums, run, device);
}

static void test_names(void **state)
{
    (void)state;
    static const char *const names[][2] = {
        { "_Z9transposeILi32EEvPfS0_", "transpose<32>" },
        { "_Z1fI6__halfLb1EPKfEvT_", "f<__half, true, float const*>" },
        { "_ZL4kernPi", "kern" },
        { "_ZN2ns5outer5innerIdNS_3fooEEEvv", "inner<double, foo>" },
        { "_Z1gILi16E6__halfS0_N6nvcuda4wmma9row_majorES3_Lb0EEvv",
          "g<16, __half, _, row_major, _, false>" },
        { "_Z1xISt6vectorIiSaIiEELb0EEvv", "x<vector<int, _<int>>, false>" },
        { "plain", "plain" },
        { "_Z", "_Z" },
        { "_Z5", "_Z5" },
        { "_Z99999999999999999999abc", "_Z99999999999999999999abc" },
        { "_Z3abcI", "abc<>" },
        { "_Z3abcIPPP", "abc<...>" },
        { "_Z3abcILi", "abc<...>" },
    };
    hw_arena *a = hw_arena_new();
    for (size_t i = 0; i < HW_COUNTOF(names); i++)
        assert_string_equal(hw_model_short_name(a, names[i][0]), names[i][1]);
    hw_arena_free(a);
}

static const char *const h100[] = { "h100", NULL };

static void test_counts(void **state)
{
    (void)state;
    rig r;
    rig_up(&r, h100);
    run_launch(&r, (made){ .warps = 10, .workers = 2, .stride = 32, .grid = 10 });
    hw_report_run *run = rig_read(&r);
    assert_int_equal(run->n_kernels, 1);
    assert_string_equal(run->kernels[0].short_name, "kernel<4>");
    assert_float_equal(value(run, "inst_executed", 0), 40, 0);
    assert_float_equal(value(run, "smsp__thread_inst_executed.sum", 0), 40 * 32, 0);
    assert_float_equal(value(run, "hw__predicated_off_lanes", 0), 10 * 8, 0);
    assert_float_equal(value(run, "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum", 0), 240,
                       0);
    assert_float_equal(value(run, "flop_count_sp", 0), 480, 0);
    assert_float_equal(value(run, "branch_efficiency", 0), 50, 0);
    assert_float_equal(value(run, "gld_transactions", 0), 40, 0);
    assert_float_equal(value(run, "gld_efficiency", 0), 100, 0);
    assert_float_equal(value(run, "shared_store_transactions", 0), 320, 0);
    assert_float_equal(value(run, "shared_st_bank_conflict", 0), 310, 0);
    assert_true(isnan(value(run, "lts__t_sector_hit_rate.pct", 0)));
    rig_down(&r);
}

static void test_advice(void **state)
{
    (void)state;
    rig r;
    hw_advice advice[HW_ADVICE_MAX];
    rig_up(&r, h100);
    run_launch(&r, (made){ .warps = 1000, .workers = 1, .stride = 32, .grid = 1000 });
    hw_report_run *run = rig_read(&r);
    size_t n = hw_report_advice(r.arena, run, &run->kernels[0], 0, advice);
    assert_true(n >= 1 && n <= HW_ADVICE_MAX);
    assert_string_equal(advice[0].rule, "bank_conflict");
    assert_non_null(
        strstr(advice[0].text,
               "line 14: stride-32 store to shared memory, 32-way conflict, 31 of 32 passes "
               "avoidable; pad the row to 33 words"));
    rig_down(&r);
}

static void test_nothing_to_say(void **state)
{
    (void)state;
    rig r;
    hw_advice advice[HW_ADVICE_MAX];
    rig_up(&r, h100);
    run_launch(&r, (made){ .warps = 1000, .workers = 1, .stride = 1, .grid = 1000 });
    hw_report_run *run = rig_read(&r);
    size_t n = hw_report_advice(r.arena, run, &run->kernels[0], 0, advice);
    for (size_t i = 0; i < n; i++) /* blocks of one warp cannot fill the device: that is said */
        assert_string_equal(advice[i].rule, "occupancy");
    rig_down(&r);
}

/* Each device by its own rule: a load shifted by one word, a store with a stride of two. */
static void test_devices(void **state)
{
    (void)state;
    static const char *const names[] = { "geforce-8800-gtx", "gtx-280", "gtx-480", "v100", "h100",
                                         "xbox-one",         NULL };
    static const double transactions[] = { 32, 3, 2, 5, 5, 3 }, passes[] = { 4, 4, 2, 2, 2, 2 };
    rig r;
    rig_up(&r, names);
    run_launch(&r, (made){ .warps = 1, .workers = 1, .stride = 2, .grid = 1, .base = 4 });
    hw_report_run *run = rig_read(&r);
    for (uint32_t d = 0; d < r.n; d++) {
        assert_float_equal(value(run, "gld_transactions", d), transactions[d], 0);
        assert_float_equal(value(run, "shared_store_transactions", d), passes[d], 0);
    }
    rig_down(&r);
}

static char *file_of(rig *r)
{
    hw_str text;
    assert_int_equal(hw_model_write(r->model, r->path, true, r->diag), HW_OK);
    assert_int_equal(hw_read_file(r->arena, r->path, &text, r->diag), HW_OK);
    return hw_arena_cstr(r->arena, text);
}

static void test_workers(void **state)
{
    (void)state;
    char *texts[3];
    rig rigs[3];
    for (uint32_t i = 0; i < 3; i++) {
        static const uint32_t workers[] = { 1, 2, 8 };
        rig_up(&rigs[i], h100);
        run_launch(&rigs[i], (made){ .warps = 37, .workers = workers[i], .stride = 3, .grid = 37 });
        run_launch(&rigs[i], (made){ .warps = 37, .workers = workers[i], .stride = 8, .grid = 37 });
        texts[i] = file_of(&rigs[i]);
    }
    assert_string_equal(texts[0], texts[1]);
    assert_string_equal(texts[0], texts[2]);
    for (int i = 0; i < 3; i++)
        rig_down(&rigs[i]);
}

/* Ten thousand launches of a hundred shapes, no two groups alike: the file stays small and its sums whole. */
static void test_many(void **state)
{
    (void)state;
    rig r;
    rig_up(&r, (const char *const[]){ "h100", "v100", NULL });
    for (uint32_t i = 0; i < 10000; i++)
        run_launch(
            &r,
            (made){
                .warps = 1 + i % 50, .workers = 1, .stride = 1, .grid = 1 + i % 100, .more = i });
    hw_report_run *run = rig_read(&r);
    assert_true(strlen(file_of(&r)) < 20u << 20);
    assert_int_equal(run->n_kernels, 64);
    uint64_t launches = 0, warps = 0;
    for (uint32_t i = 0; i < run->n_kernels; i++) {
        launches += run->kernels[i].launches;
        warps += run->kernels[i].sums.total[HW_TOTAL_warps];
    }
    assert_int_equal(launches, 10000);
    assert_int_equal(warps, 200 * 50 * UINT64_C(51) / 2);
    rig_down(&r);
}

static void test_equal_launches(void **state)
{
    (void)state;
    rig r;
    rig_up(&r, h100);
    for (int i = 0; i < 1000; i++)
        run_launch(&r, (made){ .warps = 4, .workers = 1, .stride = 1, .grid = 4 });
    hw_report_run *run = rig_read(&r);
    assert_int_equal(run->kernels[0].n_groups, 1);
    assert_int_equal(run->kernels[0].groups[0].launches, 1000);
    assert_int_equal(run->kernels[0].groups[0].sums.total[HW_TOTAL_inst], 16);
    assert_int_equal(run->kernels[0].sums.total[HW_TOTAL_inst], 16000);
    rig_down(&r);
}

/* A module that is loaded again is the same kernel; other code under its name is another. */
static void test_same_code(void **state)
{
    (void)state;
    rig r;
    hw_count_table again = table, other = table;
    other.n_insts = 3;
    rig_up(&r, h100);
    const hw_count_table *tables[] = { &table, &again, &other };
    for (int i = 0; i < 3; i++)
        run_launch(&r,
                   (made){ .warps = 4, .workers = 1, .stride = 1, .grid = 4, .table = tables[i] });
    hw_report_run *run = rig_read(&r);
    assert_int_equal(run->n_kernels, 2);
    assert_int_equal(run->kernels[0].launches, 2);
    rig_down(&r);
}

static void test_failed(void **state)
{
    (void)state;
    rig r;
    hw_out o = { 0 };
    rig_up(&r, h100);
    run_launch(
        &r,
        (made){ .warps = 3, .workers = 1, .stride = 1, .grid = 9, .status = HW_F_ILLEGAL_ADDRESS });
    hw_report_run *run = rig_read(&r);
    o.arena = r.arena;
    hw_report_text(&o, run, &(hw_report_options){ 0 });
    hw_vec_push(r.arena, &o.bytes, '\0');
    assert_int_equal(run->kernels[0].failed, 1);
    assert_non_null(strstr(o.bytes.ptr, "an illegal memory access was encountered"));
    assert_float_equal(value(run, "inst_executed", 0), 12, 0);
    rig_down(&r);
}

static void write_text(const char *path, const char *text, size_t n)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, n, f), n);
    fclose(f);
}

/* Cut or changed files are errors or reports, never crashes. */
static void test_broken_files(void **state)
{
    (void)state;
    rig r;
    rig_up(&r, h100);
    run_launch(&r, (made){ .warps = 3, .workers = 1, .stride = 5, .grid = 3 });
    char *good = file_of(&r);
    size_t n = strlen(good);
    uint64_t random = 1;
    for (int i = 0; i < 400; i++) {
        char *text = hw_arena_cstr(r.arena, (hw_str){ good, n });
        random = random * 6364136223846793005u + 1442695040888963407u;
        size_t at = (size_t)(random >> 33) % n;
        text[at] = "0-\"{}[],9x"[random % 10];
        write_text(r.path, text, i % 4 ? n : at);
        hw_report_run *run;
        hw_out o = { .arena = hw_arena_new() };
        if (hw_report_load(o.arena, r.path, &run, NULL) == HW_OK) {
            hw_report_text(&o, run, &(hw_report_options){ .source = true });
            hw_report_html(&o, run);
        }
        hw_arena_free(o.arena);
    }
    rig_down(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),        cmocka_unit_test(test_counts),
        cmocka_unit_test(test_advice),       cmocka_unit_test(test_nothing_to_say),
        cmocka_unit_test(test_devices),      cmocka_unit_test(test_workers),
        cmocka_unit_test(test_many),         cmocka_unit_test(test_equal_launches),
        cmocka_unit_test(test_same_code),    cmocka_unit_test(test_failed),
        cmocka_unit_test(test_broken_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
