/* SPDX-License-Identifier: Apache-2.0
 * exec with code of two tiers: the first runs until the second is made in the background; what they
 * do is the same, whenever it comes. */
#include "rig.h"

#include <dirent.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Each thread: v = index; n times v = v * 1664525 + 1013904223 through shared memory, with a barrier;
 * then it is stored. Where the index is `bad`, it is stored at address 16. */
static const char busy[] = "module shared=4096 params=64 reqntid=0,0,0 indirect=0\n"
                           "loc 1 \"busy.cu\" 7:1 ptx=10 inlined=0\n"
                           "loc 2 \"busy.cu\" 9:1 ptx=20 inlined=0\n"
                           "kernel @k local=0 {\n"
                           "  reg i64 %par %p %a %o %n64 %b64\n"
                           "  reg i32 %t %c %d %i %n %b %v %w\n"
                           "  reg i1 %f\n"
                           "start:\n"
                           "  %par = param_addr\n"
                           "  %p = load.i64.param [%par]\n"
                           "  %n64 = load.i64.param [%par + 8]\n"
                           "  %b64 = load.i64.param [%par + 16]\n"
                           "  %n = trunc.i64.i32 %n64\n"
                           "  %b = trunc.i64.i32 %b64\n"
                           "  %t = sreg.i32 tid_x\n"
                           "  %c = sreg.i32 ctaid_x\n"
                           "  %d = sreg.i32 ntid_x\n"
                           "  %v = mul.i32 %c, %d\n"
                           "  %v = add.i32 %v, %t\n"
                           "  %o = zext.i32.i64 %v\n"
                           "  %o = shl.i64 %o, 2\n"
                           "  %a = add.i64 %p, %o\n"
                           "  %f = icmp.i32.eq %v, %b\n"
                           "  %a = select.i64 %f, 16, %a\n"
                           "  %w = shl.i32 %t, 2\n"
                           "  %i = mov.i32 0\n"
                           "  br loop\n"
                           "loop:\n"
                           "  %v = mul.i32 %v, 1664525\n"
                           "  %v = add.i32 %v, 1013904223\n"
                           "  store.i32.shared [%w], %v\n"
                           "  barrier 0, _\n"
                           "  %v = load.i32.shared [%w]\n"
                           "  %i = add.i32 %i, 1\n"
                           "  %f = icmp.i32.lt_u %i, %n\n"
                           "  cbr %f, loop, end\n"
                           "end:\n"
                           "  store.i32.global [%a], %v !2\n"
                           "  ret\n"
                           "}\n";

enum { THREADS = 96 };

static uint32_t expected(uint32_t v, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        v = v * 1664525u + 1013904223u;
    return v;
}

static void launch(rig *r, uint32_t blocks, uint32_t n)
{
    uint64_t a = rig_alloc(r, (uint64_t)blocks * THREADS * 4);
    rig_shape s = { .grid = { blocks }, .block = { THREADS } };
    assert_int_equal(RUN_TEXT(r, busy, s, a, n, UINT32_MAX), HW_OK);
    for (uint32_t i = 0; i < blocks * THREADS; i += 37)
        assert_int_equal(words(a)[i], expected(i, n));
    hw_mem_free(r->mem, a);
}

static uint64_t improved(const rig *r)
{
    return hw_jit_get_stats(r->jit).improved;
}

/* Launches until better code has been made; false: it did not come in a minute. */
static bool launch_until_improved(rig *r)
{
    time_t start = time(NULL);
    while (improved(r) == 0 && time(NULL) - start < 60)
        launch(r, 200, 50);
    return improved(r) == 1;
}

static void a_kernel_that_hardly_runs_stays_in_the_first_tier(void **state)
{
    (void)state;
    rig *r = rig_new_generated("h100", 2, NULL);
    launch(r, 1, 1);
    usleep(100 * 1000);
    hw_jit_stats s = hw_jit_get_stats(r->jit);
    assert_int_equal(s.compiled, 1);
    assert_int_equal(s.improved, 0);
    rig_free(r);
}

static void later_launches_run_the_second_tier(void **state)
{
    (void)state;
    rig *r = rig_new_generated("h100", 2, NULL);
    assert_true(launch_until_improved(r));
    for (int i = 0; i < 5; i++)
        launch(r, 100, 20 + (uint32_t)i);
    hw_jit_stats s = hw_jit_get_stats(r->jit);
    assert_int_equal(s.compiled, 2);
    rig_free(r);
}

/* One launch, so long that the second tier comes in the middle. */
static void blocks_that_start_later_run_the_second_tier(void **state)
{
    (void)state;
    for (unsigned workers = 1; workers <= 4; workers *= 4) {
        rig *r = rig_new_generated("h100", workers, NULL);
        for (uint32_t blocks = 2000; improved(r) == 0 && blocks < 4000000; blocks *= 2)
            launch(r, blocks, 100);
        assert_int_equal(improved(r), 1);
        launch(r, 1000, 100);
        rig_free(r);
    }
}

static void each_tier_can_be_had_alone(void **state)
{
    static const hw_exec_tiers which[] = { HW_EXEC_FIRST_TIER, HW_EXEC_SECOND_TIER };
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        hw_exec_options o = { .tiers = which[i] };
        rig *r = rig_new_generated("h100", 2, &o);
        for (int k = 0; k < 20; k++)
            launch(r, 200, 50);
        hw_jit_stats s = hw_jit_get_stats(r->jit);
        assert_int_equal(s.compiled, 1);
        assert_int_equal(s.improved, 0);
        rig_free(r);
    }
}

static void faults_are_the_same_in_either_tier(void **state)
{
    static const hw_exec_tiers which[] = { HW_EXEC_FIRST_TIER, HW_EXEC_SECOND_TIER,
                                           HW_EXEC_BOTH_TIERS };
    (void)state;
    for (unsigned i = 0; i < HW_COUNTOF(which); i++) {
        hw_exec_options o = { .tiers = which[i] };
        rig *r = rig_new_generated("h100", 2, &o);
        if (which[i] == HW_EXEC_BOTH_TIERS)
            assert_true(launch_until_improved(r));
        uint64_t a = rig_alloc(r, 400 * THREADS * 4);
        rig_shape s = { .grid = { 400 }, .block = { THREADS } };
        assert_int_equal(RUN_TEXT(r, busy, s, a, 10, 333 * THREADS + 40), HW_F_ILLEGAL_ADDRESS);
        assert_int_equal(r->fault.loc.line, 9);
        assert_int_equal(r->fault.block[0], 333);
        assert_int_equal(r->fault.thread[0], 40);
        assert_int_equal(r->fault.address, 16);
        rig_free(r);
    }
}

/* ---- the cache on disk ---- */

static int entries(const char *dir)
{
    int n = 0;
    DIR *d = opendir(dir);
    assert_non_null(d);
    for (struct dirent *e = readdir(d); e; e = readdir(d))
        n += strstr(e->d_name, ".hwo") != NULL;
    closedir(d);
    return n;
}

static void the_second_tier_takes_the_first_ones_place_on_disk(void **state)
{
    char dir[] = "/tmp/halfwarp-tiers-XXXXXX", command[64];
    (void)state;
    assert_non_null(mkdtemp(dir));
    rig *r = rig_new_cached("h100", 2, dir);
    launch(r, 1, 1);
    assert_int_equal(entries(dir), 1);
    rig_free(r);

    r = rig_new_cached("h100", 2, dir); /* starts with the first tier's code, then improves it */
    launch(r, 1, 1);
    assert_int_equal(hw_jit_get_stats(r->jit).compiled, 0);
    assert_int_equal(hw_jit_get_stats(r->jit).disk_hits, 1);
    assert_true(launch_until_improved(r));
    rig_free(r); /* the entry is written by then */
    assert_int_equal(entries(dir), 1);

    r = rig_new_cached("h100", 2, dir);
    for (int i = 0; i < 10; i++)
        launch(r, 200, 50);
    assert_int_equal(hw_jit_get_stats(r->jit).compiled, 0);
    assert_int_equal(hw_jit_get_stats(r->jit).disk_hits, 1);
    rig_free(r);
    snprintf(command, sizeof command, "rm -r %s", dir);
    assert_int_equal(system(command), 0);
}

/* ---- the end of the process ---- */

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* A process that ends in the middle of compiling, so many microseconds after it began. */
static void end_while_compiling(unsigned delay_us, bool from_child, double *ends)
{
    rig *r = rig_new_generated("h100", 2, NULL);
    for (int i = 0; i < 40; i++)
        launch(r, 200, 50);
    usleep(delay_us);
    *ends = seconds();
    if (from_child) { /* which has none of the threads */
        pid_t p = fork();
        if (p == 0)
            exit(0);
        int status = 1;
        waitpid(p, &status, 0);
        exit(status != 0);
    }
    exit(0);
}

static void processes_end_while_compiling(void **state)
{
    double *ends =
        mmap(NULL, sizeof *ends, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    (void)state;
    assert_ptr_not_equal(ends, MAP_FAILED);
    for (unsigned i = 0; i < 6; i++) {
        int status = 1;
        pid_t p = fork();
        if (p == 0) {
            alarm(60);
            end_while_compiling(i * 4000, i % 3 == 2, ends);
        }
        assert_int_equal(waitpid(p, &status, 0), p);
        assert_int_equal(status, 0);
        if (getenv("HW_TEST_VERBOSE"))
            print_message("the end took %.1f ms\n", 1e3 * (seconds() - *ends));
        /* some milliseconds on a machine with time; the process is not to hang, which the alarm is for */
        assert_true(seconds() - *ends < 45);
    }
    munmap(ends, sizeof *ends);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(processes_end_while_compiling), /* first: it forks */
        cmocka_unit_test(a_kernel_that_hardly_runs_stays_in_the_first_tier),
        cmocka_unit_test(later_launches_run_the_second_tier),
        cmocka_unit_test(blocks_that_start_later_run_the_second_tier),
        cmocka_unit_test(each_tier_can_be_had_alone),
        cmocka_unit_test(faults_are_the_same_in_either_tier),
        cmocka_unit_test(the_second_tier_takes_the_first_ones_place_on_disk),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
