/* SPDX-License-Identifier: Apache-2.0
 * exec with generated code: barriers, waiting blocks, locks, faults. Kernels are warp IR texts. */
#include "rig.h"

#include <time.h>

static const unsigned worker_counts[] = { 1, 2, 8 };

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

#define MODULE(shared) "module shared=" #shared " params=64 reqntid=0,0,0 indirect=0\n"
#define LOCS           "loc 1 \"lock.cu\" 3:1 ptx=10 inlined=0\n"
#define KERNEL                         \
    "kernel @k local=0 {\n"            \
    "  reg i64 %par %p %q %a %b %o\n"  \
    "  reg i32 %t %c %n %v %w %x %y\n" \
    "  reg i1 %f %g\n"                 \
    "start:\n"                         \
    "  %par = param_addr\n"            \
    "  %p = load.i64.param [%par]\n"   \
    "  %t = sreg.i32 tid_x\n"          \
    "  %c = sreg.i32 ctaid_x\n"        \
    "  %n = sreg.i32 ntid_x\n"
#define GLOBAL_INDEX           \
    "  %x = mul.i32 %c, %n\n"  \
    "  %x = add.i32 %x, %t\n"  \
    "  %o = zext.i32.i64 %x\n" \
    "  %o = shl.i64 %o, 2\n"   \
    "  %a = add.i64 %p, %o\n"

/* Reverse each block's part of an array through shared memory. */
static const char reverse[] = MODULE(2048) KERNEL GLOBAL_INDEX "  %v = load.i32.global [%a]\n"
                                                               "  %w = shl.i32 %t, 2\n"
                                                               "  store.i32.shared [%w], %v\n"
                                                               "  barrier 0, _\n"
                                                               "  %y = sub.i32 %n, 1\n"
                                                               "  %y = sub.i32 %y, %t\n"
                                                               "  %y = shl.i32 %y, 2\n"
                                                               "  %v = load.i32.shared [%y]\n"
                                                               "  store.i32.global [%a], %v\n"
                                                               "  ret\n"
                                                               "}\n";

static void blocks_reverse_through_shared_memory(void **state)
{
    (void)state;
    for (size_t w = 0; w < HW_COUNTOF(worker_counts); w++) {
        rig *r = rig_new_generated("h100", worker_counts[w], NULL);
        for (uint32_t threads = 30; threads <= 512; threads += 241) {
            uint64_t a = rig_alloc(r, 300 * 512 * 4);
            for (uint32_t i = 0; i < 300 * threads; i++)
                words(a)[i] = i;
            rig_shape s = { .grid = { 300 }, .block = { threads } };
            assert_int_equal(RUN_TEXT(r, reverse, s, a), HW_OK);
            for (uint32_t i = 0; i < 300 * threads; i++)
                assert_int_equal(words(a)[i], i / threads * threads + threads - 1 - i % threads);
        }
        rig_free(r);
    }
}

/* Decoupled look-back: thread 0 of block i waits for flag i - 1, then sets flag i to i + 1. */
static const char look_back[] =
    MODULE(0) KERNEL "  %f = icmp.i32.ne %t, 0\n"
                     "  cbr %f, join, one\n"
                     "one:\n"
                     "  %o = zext.i32.i64 %c\n"
                     "  %o = shl.i64 %o, 2\n"
                     "  %a = add.i64 %p, %o\n"
                     "  %v = mov.i32 0\n"
                     "  %f = icmp.i32.eq %c, 0\n"
                     "  cbr %f, set, spin\n"
                     "spin:\n"
                     "  %v = load.i32.global.volatile.acquire [%a - 4]\n"
                     "  %f = icmp.i32.eq %v, 0\n"
                     "  cbr %f, spin, set\n"
                     "set:\n"
                     "  %v = add.i32 %v, 1\n"
                     "  store.i32.global.volatile.release [%a], %v\n"
                     "  br join\n"
                     "join:\n"
                     "  barrier 0, _\n"
                     "  ret\n"
                     "}\n";

static void look_back_over_thousands_of_blocks(void **state)
{
    (void)state;
    enum { N = 5000 };
    for (size_t w = 0; w < HW_COUNTOF(worker_counts); w++) {
        rig *r = rig_new_generated("h100", worker_counts[w], NULL);
        for (uint32_t threads = 32; threads <= 256; threads *= 8) {
            uint64_t flags = rig_alloc(r, N * 4);
            rig_shape s = { .grid = { N }, .block = { threads } };
            assert_int_equal(RUN_TEXT(r, look_back, s, flags), HW_OK);
            assert_int_equal(words(flags)[N - 1], N);
        }
        rig_free(r);
    }
}

/* Four grid-wide barriers as cooperative groups make them. That only thread 0 of a block spins can be
 * seen in one form of the kernel and not in the other. params: counters[4], errors */
#define GRID_SYNC(HOISTED, TEST)                                \
    MODULE(0)                                                   \
    KERNEL "  %x = sreg.i32 envreg1\n"                          \
           "  %y = sreg.i32 envreg2\n"                          \
           "  %b = zext.i32.i64 %x\n"                           \
           "  %b = shl.i64 %b, 32\n"                            \
           "  %o = zext.i32.i64 %y\n"                           \
           "  %b = or.i64 %b, %o\n"                             \
           "  %w = sreg.i32 nctaid_x\n"                         \
           "  %a = mov.i64 %p\n"                                \
           "  %x = mov.i32 0\n" HOISTED "  br round\n"          \
           "round:\n"                                           \
           "  red.i32.global.add.device [%a], 1\n"              \
           "  barrier 0, _\n" TEST "one:\n"                     \
           "  %f = icmp.i32.eq %c, 0\n"                         \
           "  %v = sub.i32 0x80000001, %w\n"                    \
           "  %v = select.i32 %f, %v, 1\n"                      \
           "  %v = atom.i32.global.add.device [%b + 4], %v\n"   \
           "  br spin\n"                                        \
           "spin:\n"                                            \
           "  %y = load.i32.global.volatile.acquire [%b + 4]\n" \
           "  %y = xor.i32 %y, %v\n"                            \
           "  %f = icmp.i32.ge_s %y, 0\n"                       \
           "  cbr %f, spin, join\n"                             \
           "join:\n"                                            \
           "  barrier 0, _\n"                                   \
           "  %v = load.i32.global.volatile [%a]\n"             \
           "  %y = mul.i32 %w, %n\n"                            \
           "  %f = icmp.i32.ne %v, %y\n"                        \
           "  @%f red.i32.global.add.device [%p + 16], 1\n"     \
           "  %a = add.i64 %a, 4\n"                             \
           "  %x = add.i32 %x, 1\n"                             \
           "  %f = icmp.i32.lt_u %x, 4\n"                       \
           "  cbr %f, round, end\n"                             \
           "end:\n"                                             \
           "  ret\n"                                            \
           "}\n"
static const char grid_sync_one_lane[] =
    GRID_SYNC("  %g = icmp.i32.ne %t, 0\n", "  cbr %g, join, one\n");
static const char grid_sync_any_lane[] = GRID_SYNC("", "  %f = icmp.i32.ne %t, 0\n"
                                                       "  cbr %f, join, one\n");

static void cooperative_grids_synchronise(void **state)
{
    (void)state;
    const char *const texts[] = { grid_sync_one_lane, grid_sync_any_lane };
    for (size_t w = 0; w < 2 * HW_COUNTOF(worker_counts); w++) {
        rig *r = rig_new_generated("h100", worker_counts[w / 2], NULL);
        uint64_t out = rig_alloc(r, 20);
        rig_shape s = { .grid = { 264 }, .block = { 256 }, .cooperative = true };
        assert_int_equal(RUN_TEXT(r, texts[w % 2], s, out), HW_OK);
        for (int i = 0; i < 4; i++)
            assert_int_equal(words(out)[i], 264 * 256);
        assert_int_equal(words(out)[4], 0);
        rig_free(r);
    }
}

/* Case C16: a lock that every thread takes. params: lock, count at + 4 */
static const char lock[] = MODULE(0) LOCS KERNEL "  br spin\n"
                                                 "spin:\n"
                                                 "  %v = atom.i32.global.cas.device [%p], 0, 1 !1\n"
                                                 "  %f = icmp.i32.ne %v, 0\n"
                                                 "  cbr %f, spin, in !1\n"
                                                 "in:\n"
                                                 "  %w = load.i32.global.volatile [%p + 4]\n"
                                                 "  %w = add.i32 %w, 1\n"
                                                 "  store.i32.global.volatile [%p + 4], %w\n"
                                                 "  fence.device\n"
                                                 "  %v = atom.i32.global.exch.device [%p], 0\n"
                                                 "  ret\n"
                                                 "}\n";

static void a_lock_in_a_warp_is_diagnosed_where_lanes_go_in_step(void **state)
{
    (void)state;
    rig *r = rig_new_generated("gtx-1080", 2, NULL);
    uint64_t a = rig_alloc(r, 8);
    rig_shape s = { .grid = { 1 }, .block = { 32 } };
    assert_int_equal(RUN_TEXT(r, lock, s, a), HW_F_LIVELOCK);
    assert_non_null(strstr(r->fault.text, "SIMT livelock: 31 lanes spin while lane"));
    assert_non_null(strstr(r->fault.text, "at lock.cu:3"));
    rig_free(r);
}

static void a_lock_in_a_warp_works_where_lanes_are_independent(void **state)
{
    (void)state;
    for (size_t w = 0; w < HW_COUNTOF(worker_counts); w++) {
        rig *r = rig_new_generated("h100", worker_counts[w], NULL);
        uint64_t a = rig_alloc(r, 8);
        rig_shape s = { .grid = { 10 }, .block = { 96 } };
        assert_int_equal(RUN_TEXT(r, lock, s, a), HW_OK);
        assert_int_equal(words(a)[1], 960);
        rig_free(r);
    }
}

/* Case C17: thread 5 of block 2 stores out of bounds (or traps) while the others wait. params:
 * address, trap */
static const char fault_before_barrier[] =
    MODULE(0) LOCS KERNEL "  %q = load.i64.param [%par + 8]\n"
                          "  %f = icmp.i64.ne %q, 0\n"
                          "  %g = icmp.i32.ne %c, 2\n"
                          "  cbr %g, join, which\n"
                          "which:\n"
                          "  %g = icmp.i32.ne %t, 5\n"
                          "  cbr %g, join, bad\n"
                          "bad:\n"
                          "  @%f trap join !1\n"
                          "join:\n"
                          "  @!%g store.i32.global [%p], 1 !1\n"
                          "  barrier 0, _\n"
                          "  ret\n"
                          "}\n";

static void a_fault_before_a_barrier_ends_the_launch(void **state)
{
    (void)state;
    rig *r = rig_new_generated("h100", 2, NULL);
    uint64_t a = rig_alloc(r, 4096);
    double start = seconds();
    rig_shape s = { .grid = { 1000 }, .block = { 64 } };
    assert_int_equal(RUN_TEXT(r, fault_before_barrier, s, a + 4092, 0), HW_OK);
    start = seconds();
    assert_int_equal(RUN_TEXT(r, fault_before_barrier, s, a + 4096, 0), HW_F_ILLEGAL_ADDRESS);
    assert_int_equal(r->fault.block[0], 2);
    assert_int_equal(r->fault.address, a + 4096);
    assert_int_equal(r->fault.loc.line, 3); /* told by the machine instruction */
    assert_int_equal(RUN_TEXT(r, fault_before_barrier, s, 1000, 0), HW_F_ILLEGAL_ADDRESS);
    assert_int_equal(r->fault.thread[0], 5);
    assert_int_equal(RUN_TEXT(r, fault_before_barrier, s, a + 2, 0), HW_F_MISALIGNED_ADDRESS);
    assert_int_equal(r->fault.thread[0], 5);
    assert_int_equal(r->fault.loc.line, 3);
    assert_int_equal(RUN_TEXT(r, fault_before_barrier, s, a, 1), HW_F_TRAP);
    assert_int_equal(r->fault.loc.line, 3);
    assert_true(seconds() - start < 1.0);
    rig_free(r);
}

/* params: offset */
static const char shared_overrun[] = MODULE(512) LOCS KERNEL "  %v = load.i32.param [%par]\n"
                                                             "  %w = shl.i32 %t, 2\n"
                                                             "  %v = add.i32 %v, %w\n"
                                                             "  store.i32.shared [%v], 1 !1\n"
                                                             "  ret\n"
                                                             "}\n";

static void an_access_outside_shared_memory_is_told(void **state)
{
    (void)state;
    rig *r = rig_new_generated("h100", 2, NULL);
    rig_shape s = { .grid = { 4 }, .block = { 128 } };
    assert_int_equal(RUN_TEXT(r, shared_overrun, s, 0), HW_OK);
    assert_int_equal(RUN_TEXT(r, shared_overrun, s, 12), HW_F_ILLEGAL_ADDRESS);
    assert_non_null(strstr(r->fault.text, "offset 512 of 512 bytes of shared memory"));
    assert_int_equal(r->fault.thread[0], 125);
    assert_int_equal(r->fault.loc.line, 3);
    assert_int_equal(RUN_TEXT(r, shared_overrun, s, (uint32_t)-4), HW_F_ILLEGAL_ADDRESS);
    assert_non_null(strstr(r->fault.text, "offset -4 of 512 bytes of shared memory"));
    assert_int_equal(r->fault.thread[0], 0);
    rig_free(r);
}

/* params: none */
static const char for_ever[] = MODULE(0) LOCS KERNEL "  br l\n"
                                                     "l:\n"
                                                     "  %v = add.i32 %v, 1 !1\n"
                                                     "  br l !1\n"
                                                     "}\n";

static void an_endless_loop_can_be_timed_out(void **state)
{
    (void)state;
    rig *r = rig_new_generated("h100", 2, &(hw_exec_options){ .timeout_ms = 100 });
    double start = seconds();
    rig_shape s = { .grid = { 3 }, .block = { 64 } };
    assert_int_equal(RUN_TEXT(r, for_ever, s, 0), HW_F_TIMEOUT);
    assert_non_null(strstr(r->fault.text, "at lock.cu:3"));
    assert_true(seconds() - start < 3.0);
    rig_free(r);
}

/* Warp 0 waits at barrier 1 for 96 threads, the other at barrier 0. */
static const char deadlock[] = MODULE(0) LOCS KERNEL "  %f = icmp.i32.lt_u %t, 32\n"
                                                     "  cbr %f, a, b\n"
                                                     "a:\n"
                                                     "  barrier 1, 96\n"
                                                     "  ret\n"
                                                     "b:\n"
                                                     "  barrier 0, _\n"
                                                     "  ret\n"
                                                     "}\n";

static void a_deadlock_is_told(void **state)
{
    (void)state;
    rig *r = rig_new_generated("h100", 1, NULL);
    rig_shape s = { .grid = { 3 }, .block = { 64 } };
    assert_int_equal(RUN_TEXT(r, deadlock, s, 0), HW_F_DEADLOCK);
    assert_non_null(strstr(r->fault.text, "1 warps wait at barrier 1, where 32 of 96 threads"));
    rig_free(r);
}

/* Threads of every odd lane end before the barrier; whole odd warps too. params: count */
static const char early_exit[] = MODULE(0) KERNEL "  %v = shr_u.i32 %t, 5\n"
                                                  "  %v = or.i32 %v, %t\n"
                                                  "  %v = and.i32 %v, 1\n"
                                                  "  %f = icmp.i32.ne %v, 0\n"
                                                  "  @%f exit on\n"
                                                  "on:\n"
                                                  "  barrier 0, _\n"
                                                  "  red.i32.global.add.device [%p], 1\n"
                                                  "  ret\n"
                                                  "}\n";

static void ended_lanes_do_not_hold_a_barrier(void **state)
{
    (void)state;
    rig *r = rig_new_generated("h100", 2, NULL);
    uint64_t a = rig_alloc(r, 4);
    rig_shape s = { .grid = { 20 }, .block = { 256 } };
    assert_int_equal(RUN_TEXT(r, early_exit, s, a), HW_OK);
    assert_int_equal(words(a)[0], 20 * 4 * 16);
    rig_free(r);
}

/* params: format, argument block: block, thread */
static const char say[] = MODULE(0) KERNEL GLOBAL_INDEX "  %q = load.i64.param [%par + 8]\n"
                                                        "  %o = shl.i64 %o, 1\n"
                                                        "  %b = add.i64 %q, %o\n"
                                                        "  store.i32.global.x2 [%b], %c, %t\n"
                                                        "  %v = helper vprintf, %p, %b\n"
                                                        "  ret\n"
                                                        "}\n";

typedef struct saying {
    rig *r;
    uint64_t format, args;
    hw_status status;
} saying;

static void run_say(void *ctx)
{
    saying *s = ctx;
    s->status =
        RUN_TEXT(s->r, say, ((rig_shape){ .grid = { 20 }, .block = { 40 } }), s->format, s->args);
}

static void printf_comes_in_order(void **state)
{
    (void)state;
    char *want = calloc(1, 1 << 16), *at = want;
    for (int i = 0; i < 800; i++)
        at += sprintf(at, "%d:%d\n", i / 40, i % 40);
    for (size_t w = 0; w < HW_COUNTOF(worker_counts); w++) {
        rig *r = rig_new_generated("h100", worker_counts[w], NULL);
        saying s = { r, rig_alloc(r, 16), rig_alloc(r, 800 * 8), HW_OK };
        strcpy((char *)(uintptr_t)s.format, "%d:%d\n");
        char *text = rig_capture(stdout, run_say, &s);
        assert_int_equal(s.status, HW_OK);
        assert_string_equal(text, want);
        free(text);
        rig_free(r);
    }
    free(want);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_reverse_through_shared_memory),
        cmocka_unit_test(look_back_over_thousands_of_blocks),
        cmocka_unit_test(cooperative_grids_synchronise),
        cmocka_unit_test(a_lock_in_a_warp_is_diagnosed_where_lanes_go_in_step),
        cmocka_unit_test(a_lock_in_a_warp_works_where_lanes_are_independent),
        cmocka_unit_test(a_fault_before_a_barrier_ends_the_launch),
        cmocka_unit_test(an_access_outside_shared_memory_is_told),
        cmocka_unit_test(an_endless_loop_can_be_timed_out),
        cmocka_unit_test(a_deadlock_is_told),
        cmocka_unit_test(ended_lanes_do_not_hold_a_barrier),
        cmocka_unit_test(printf_comes_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
