/* SPDX-License-Identifier: Apache-2.0
 * exec: faults - what they are, where, how fast they end a launch, and that nothing breaks. */
#include "rig.h"

#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* The exec works after a fault as before. */
static uint32_t k_nothing(hw_frame *f)
{
    (void)f;
    return HW_WARP_DONE;
}

static void still_works(rig *r)
{
    assert_int_equal(RUN(r, k_nothing, ((rig_shape){ .grid = { 10 }, .block = { 64 } }), 0), HW_OK);
    assert_int_equal(r->fault.status, HW_OK);
}

/* params: address to store to */
static uint32_t k_store(hw_frame *f)
{
    if (f->warp == 1 && f->ctaid[0] == 0 && f->ctaid[1] == 2)
        *(volatile uint32_t *)(uintptr_t)param(f, 0) = 1;
    return HW_WARP_DONE;
}

static void an_access_past_an_allocation_is_told(void **state)
{
    (void)state;
    rig *r = rig_new(2, NULL);
    uint64_t a = rig_alloc(r, 400);
    rig_shape s = { .grid = { 2, 5 }, .block = { 16, 4 } };
    assert_int_equal(RUN(r, k_store, s, a + 396), HW_OK);
    assert_int_equal(RUN(r, k_store, s, a + 512), HW_F_ILLEGAL_ADDRESS);
    assert_int_equal(r->fault.status, HW_F_ILLEGAL_ADDRESS);
    assert_int_equal(r->fault.address, a + 512);
    assert_int_equal(r->fault.block[0], 0);
    assert_int_equal(r->fault.block[1], 2);
    assert_int_equal(r->fault.thread[1], 2);
    assert_string_equal(r->fault.kernel, "kernel");
    assert_non_null(strstr(r->fault.text, "112 bytes past the end of a 400-byte allocation"));
    assert_non_null(strstr(r->fault.text, "block (0,2,0), among threads (0,2,0) to (15,3,0)"));
    still_works(r);
    assert_int_equal(hw_mem_free(r->mem, a), HW_OK);
    assert_int_equal(RUN(r, k_store, s, a + 4), HW_F_ILLEGAL_ADDRESS);
    assert_non_null(strstr(r->fault.text, "byte 4 of a 400-byte allocation that has been freed"));
    still_works(r);
    assert_int_equal(hw_mem_alloc(r->mem, 4096, 0, HW_MEM_RESERVED, 0, &a), HW_OK);
    assert_int_equal(hw_mem_close(r->mem, a, 4096, true), HW_OK);
    assert_int_equal(RUN(r, k_store, s, a), HW_F_ILLEGAL_ADDRESS);
    assert_non_null(
        strstr(r->fault.text, "inside a 4096-byte address reservation (nothing mapped"));
    assert_int_equal(hw_mem_free(r->mem, a), HW_OK);
    rig_free(r);
}

/* params: address, bytes: what generated code does when its quick check fails */
static uint32_t k_checked(hw_frame *f)
{
    uint64_t addr = param(f, 0);
    if (f->ctaid[0] == 1)
        return HW_WARP_DONE;
    f->call->bad_address(f, addr, (uint32_t)param(f, 1), 1);
    *(volatile uint32_t *)(uintptr_t)addr = 77;
    return HW_WARP_DONE;
}

static void addresses_outside_the_range_are_judged(void **state)
{
    (void)state;
    static const hw_wir_loc locs[] = { { 0 }, { .file = "a.cu", .line = 12 } };
    rig *r = rig_new(2, NULL);
    r->code.locs = locs;
    r->code.n_locs = 2;
    uint32_t *host = calloc(100, sizeof *host);
    uint64_t h = (uintptr_t)host;
    rig_shape s = { .grid = { 2 }, .block = { 32 } };
    assert_int_equal(RUN(r, k_checked, s, h, 4), HW_F_ILLEGAL_ADDRESS);
    assert_non_null(strstr(r->fault.text, "at a.cu:12"));
    assert_non_null(strstr(r->fault.text, "in no allocation"));
    assert_int_equal(r->fault.loc.line, 12);
    assert_int_equal(RUN(r, k_checked, s, 0, 4), HW_F_ILLEGAL_ADDRESS);
    assert_non_null(strstr(r->fault.text, "null pointer"));
    assert_int_equal(RUN(r, k_checked, s, h + 2, 4), HW_F_MISALIGNED_ADDRESS);
    assert_int_equal(host[0], 0);
    assert_int_equal(hw_mem_register(r->mem, host, 400, 0), HW_OK);
    assert_int_equal(RUN(r, k_checked, s, h, 4), HW_OK);
    assert_int_equal(host[0], 77);
    assert_int_equal(RUN(r, k_checked, s, h + 400, 4), HW_F_ILLEGAL_ADDRESS);
    hw_mem_unregister(r->mem, host);
    free(host);
    rig_free(r);
}

/* params: offset into shared memory */
static uint32_t k_shared(hw_frame *f)
{
    ((volatile uint8_t *)f->shared)[(uint32_t)param(f, 0)] = 1;
    return HW_WARP_DONE;
}

/* params: distance from the block's shared memory */
static uint32_t k_far(hw_frame *f)
{
    *(volatile uint8_t *)((uint8_t *)f->shared + param(f, 0)) = 1;
    return HW_WARP_DONE;
}

/* A kernel without shared memory that goes astray has not asked for it. */
static void far_addresses_are_not_shared_memory(void **state)
{
    (void)state;
    rig *r = rig_new(2, NULL);
    rig_shape s = { .grid = { 3 }, .block = { 32 } };
    assert_int_equal(RUN(r, k_far, s, UINT64_C(1) << 30), HW_F_ILLEGAL_ADDRESS);
    assert_null(strstr(r->fault.text, "shared memory"));
    assert_non_null(strstr(r->fault.text, "in no allocation"));
    assert_int_equal(RUN(r, k_far, s, 4096), HW_F_ILLEGAL_ADDRESS);
    assert_non_null(strstr(r->fault.text, "offset 4096 of 0 bytes of shared memory"));
    s.shared = 1000;
    assert_int_equal(RUN(r, k_far, s, UINT64_C(1) << 30), HW_F_ILLEGAL_ADDRESS);
    assert_non_null(strstr(r->fault.text, "offset 1073741824 of 1000 bytes of shared memory"));
    still_works(r);
    rig_free(r);
}

static void shared_memory_has_guards(void **state)
{
    (void)state;
    rig *r = rig_new(2, NULL);
    rig_shape s = { .grid = { 3 }, .block = { 32 }, .shared = 1000 };
    assert_int_equal(RUN(r, k_shared, s, 999), HW_OK);
    assert_int_equal(RUN(r, k_shared, s, 1024), HW_F_ILLEGAL_ADDRESS);
    assert_non_null(strstr(r->fault.text, "offset 1024 of 1000 bytes of shared memory"));
    assert_int_equal(RUN(r, k_shared, s, 50000), HW_F_ILLEGAL_ADDRESS);
    assert_int_equal(RUN(r, k_shared, s, (uint32_t)-4), HW_F_ILLEGAL_ADDRESS);
    assert_non_null(strstr(r->fault.text, "offset -4 of"));
    still_works(r);
    rig_free(r);
}

/* Case C17: one warp faults, the others wait at a barrier. params: kind, address */
static uint32_t k_fault_before_barrier(hw_frame *f)
{
    if (f->warp == 0 && param(f, 0) == 0)
        f->call->fault(f, HW_F_TRAP, 0);
    if (f->warp == 0 && f->resume == 0)
        *(volatile uint32_t *)(uintptr_t)param(f, 1) = 1;
    return f->resume == 0 ? wait_at(f, 1, 0, 0) : (uint32_t)HW_WARP_DONE;
}

static void a_fault_before_a_barrier_ends_the_launch(void **state)
{
    (void)state;
    rig *r = rig_new(2, NULL);
    uint64_t a = rig_alloc(r, 4096);
    rig_shape s = { .grid = { 1 }, .block = { 64 }, .suspends = true };
    double start = seconds();
    assert_int_equal(RUN(r, k_fault_before_barrier, s, 0, a), HW_F_TRAP);
    assert_int_equal(RUN(r, k_fault_before_barrier, s, 1, a + 4096), HW_F_ILLEGAL_ADDRESS);
    s.grid[0] = 5000;
    assert_int_equal(RUN(r, k_fault_before_barrier, s, 0, a), HW_F_TRAP);
    assert_int_equal(r->fault.block[0], 0);
    assert_true(seconds() - start < 1.0);
    still_works(r);
    rig_free(r);
}

/* Block 3 faults; all others spin for ever. */
static uint32_t k_spin_or_fault(hw_frame *f)
{
    if (f->ctaid[0] == 3)
        f->call->fault(f, HW_F_TRAP, 0);
    if (stop_asked(f))
        return HW_WARP_DONE;
    return yield_at(f, 0);
}

/* As above, but the spin never leaves generated code; it only looks at the stop word. */
static uint32_t k_spin_inside(hw_frame *f)
{
    if (f->ctaid[0] == 3)
        f->call->fault(f, HW_F_TRAP, 0);
    while (!stop_asked(f))
        ;
    f->call->fault(f, HW_F_TIMEOUT, 1); /* as generated loops do */
    return HW_WARP_DONE;
}

static void a_fault_stops_spinning_blocks(void **state)
{
    (void)state;
    for (unsigned w = 1; w <= 8; w *= 2) {
        rig *r = rig_new(w, NULL);
        double start = seconds();
        rig_shape s = { .grid = { 5 }, .block = { 64 }, .suspends = true };
        assert_int_equal(RUN(r, k_spin_or_fault, s, 0), HW_F_TRAP);
        assert_int_equal(r->fault.block[0], 3);
        s.cooperative = true;
        assert_int_equal(RUN(r, k_spin_or_fault, s, 0), HW_F_TRAP);
        s.cooperative = s.suspends = false;
        if (w == 8)
            assert_int_equal(RUN(r, k_spin_inside, s, 0), HW_F_TRAP);
        assert_true(seconds() - start < 2.0);
        still_works(r);
        rig_free(r);
    }
}

/* Many blocks fault, higher ones sooner. params: first that does */
static uint32_t k_many_faults(hw_frame *f)
{
    if (f->ctaid[0] < param(f, 0))
        return HW_WARP_DONE;
    for (volatile uint32_t i = 0; i < 20000 / (1 + f->ctaid[0] - param(f, 0)); i++)
        ;
    f->call->fault(f, HW_F_TRAP, 0);
    return HW_WARP_DONE;
}

static void the_lowest_block_is_the_one_reported(void **state)
{
    (void)state;
    for (unsigned w = 1; w <= 8; w *= 2) {
        rig *r = rig_new(w, NULL);
        for (uint32_t first = 0; first < 100; first += 9) {
            rig_shape s = { .grid = { 100 }, .block = { 32 } };
            assert_int_equal(RUN(r, k_many_faults, s, first), HW_F_TRAP);
            assert_int_equal(r->fault.block[0], first);
        }
        rig_free(r);
    }
}

/* What generated code does when lanes of a warp wait for each other on a device whose lanes cannot
 * make progress on their own: lane 4 has the lock and waits for the others to leave the loop. */
static uint32_t k_livelock(hw_frame *f)
{
    f->spin_mask = f->lanes & ~16u;
    f->call->fault(f, HW_F_LIVELOCK, 1);
    return HW_WARP_DONE;
}

static void a_livelock_says_who_spins(void **state)
{
    (void)state;
    static const hw_wir_loc locs[] = { { 0 }, { .file = "lock.cu", .line = 3 } };
    rig *r = rig_new(2, NULL);
    r->code.locs = locs;
    r->code.n_locs = 2;
    assert_int_equal(RUN(r, k_livelock, ((rig_shape){ .block = { 32 } }), 0), HW_F_LIVELOCK);
    assert_non_null(strstr(r->fault.text, "SIMT livelock: 31 lanes spin while lane 4 waits for "
                                          "them"));
    assert_non_null(strstr(r->fault.text, "at lock.cu:3"));
    rig_free(r);
}

/* ---- the host's stack ---- */

static uint32_t deep(uint64_t left)
{
    volatile uint8_t frame[4096];
    frame[0] = (uint8_t)left;
    return left ? deep(left - 1) + frame[0] : 0;
}

static uint32_t k_recurse(hw_frame *f)
{
    return f->ctaid[0] == 7 ? deep(UINT64_MAX) : (uint32_t)HW_WARP_DONE;
}

static void endless_recursion_is_a_stack_overflow(void **state)
{
    (void)state;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    skip(); /* they check the stack themselves */
#endif
    rig *r = rig_new(2, NULL);
    for (int i = 0; i < 3; i++) {
        rig_shape s = { .grid = { 8 }, .block = { 32 } };
        assert_int_equal(RUN(r, k_recurse, s, 0), HW_F_STACK_OVERFLOW);
        assert_int_equal(r->fault.block[0], 7);
        still_works(r);
    }
    rig_free(r);
}

static void a_long_name_leaves_room_for_the_place(void **state)
{
    (void)state;
    char name[2000] = "";
    memset(name, 'n', sizeof name - 1);
    rig *r = rig_new(1, NULL);
    r->name = name;
    assert_int_equal(RUN(r, k_store, ((rig_shape){ .grid = { 2, 5 }, .block = { 16, 4 } }), 64),
                     HW_F_ILLEGAL_ADDRESS);
    assert_string_equal(r->fault.kernel, name);
    assert_non_null(strstr(r->fault.text, "kernel nnn"));
    assert_non_null(strstr(r->fault.text, "..., block (0,2,0)"));
    rig_free(r);
}

/* ---- time ---- */

static uint32_t k_for_ever(hw_frame *f)
{
    return stop_asked(f) ? (uint32_t)HW_WARP_DONE : yield_at(f, 0);
}

static void a_launch_that_never_ends_can_be_timed_out(void **state)
{
    (void)state;
    static const hw_wir_loc locs[] = { { 0 }, { .ptx_line = 40 } };
    rig *r = rig_new(2, &(hw_exec_options){ .timeout_ms = 100 });
    r->code.locs = locs;
    r->code.n_locs = 2;
    rig_shape s = { .grid = { 5 }, .block = { 32 }, .suspends = true };
    double start = seconds();
    assert_int_equal(RUN(r, k_for_ever, s, 0), HW_F_TIMEOUT);
    assert_non_null(strstr(r->fault.text, "did not end within 100 ms"));
    s.suspends = false;
    s.block[0] = 64;
    assert_int_equal(RUN(r, k_spin_inside, ((rig_shape){ .grid = { 3 }, .block = { 32 } }), 0),
                     HW_F_TIMEOUT);
    assert_non_null(strstr(r->fault.text,
                           "did not end within 100 ms and was stopped; kernel kernel "
                           "at line 40 of its PTX, block (0,0,0)"));
    assert_true(seconds() - start < 2.0);
    still_works(r);
    rig_free(r);
}

/* ---- the program's own faults ---- */

static volatile sig_atomic_t seen;
static sigjmp_buf back;
static void programs_handler(int sig)
{
    (void)sig;
    seen++;
    siglongjmp(back, 1);
}

static void the_programs_handler_gets_its_own_faults(void **state)
{
    (void)state;
    struct sigaction act = { .sa_handler = programs_handler, .sa_flags = SA_NODEFER }, old;
    sigaction(SIGSEGV, &act, &old);
    rig *r = rig_new(1, NULL);
    uint64_t a = rig_alloc(r, 4096);
    rig_shape s = { .grid = { 1 }, .block = { 64 } };
    s.grid[1] = 3;
    assert_int_equal(RUN(r, k_store, s, a + 4096), HW_F_ILLEGAL_ADDRESS);
    assert_int_equal(seen, 0);
    if (sigsetjmp(back, 1) == 0)
        *(volatile uint8_t *)(uintptr_t)(a + 4096) = 1;
    assert_int_equal(seen, 1);
    /* set after ours: launches still work, and it still gets its own */
    sigaction(SIGSEGV, &act, NULL);
    assert_int_equal(RUN(r, k_store, s, a + 4096), HW_F_ILLEGAL_ADDRESS);
    if (sigsetjmp(back, 1) == 0)
        *(volatile uint8_t *)(uintptr_t)(a + 4096) = 1;
    assert_int_equal(seen, 2);
    rig_free(r);
    sigaction(SIGSEGV, &old, NULL);
}

static void without_a_handler_the_program_dies_as_usual(void **state)
{
    (void)state;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    skip(); /* they catch it */
#endif
    pid_t pid = fork();
    if (pid == 0) {
        setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
        signal(SIGSEGV, SIG_DFL);
        rig *r = rig_new(1, NULL);
        RUN(r, k_nothing, ((rig_shape){ .grid = { 1 }, .block = { 64 } }), 0);
        *(volatile uint8_t *)(uintptr_t)(rig_alloc(r, 4096) + 4096) = 1;
        _exit(0);
    }
    int status = 0;
    waitpid(pid, &status, 0);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGSEGV);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_long_name_leaves_room_for_the_place),
        cmocka_unit_test(an_access_past_an_allocation_is_told),
        cmocka_unit_test(addresses_outside_the_range_are_judged),
        cmocka_unit_test(far_addresses_are_not_shared_memory),
        cmocka_unit_test(shared_memory_has_guards),
        cmocka_unit_test(a_fault_before_a_barrier_ends_the_launch),
        cmocka_unit_test(a_fault_stops_spinning_blocks),
        cmocka_unit_test(the_lowest_block_is_the_one_reported),
        cmocka_unit_test(a_livelock_says_who_spins),
        cmocka_unit_test(endless_recursion_is_a_stack_overflow),
        cmocka_unit_test(a_launch_that_never_ends_can_be_timed_out),
        cmocka_unit_test(the_programs_handler_gets_its_own_faults),
        cmocka_unit_test(without_a_handler_the_program_dies_as_usual),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
