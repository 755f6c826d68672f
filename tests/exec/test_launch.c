/* SPDX-License-Identifier: Apache-2.0
 * exec: grids, block shapes, barriers, blocks that wait for each other. */
#include "rig.h"

#include <pthread.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif

static const unsigned worker_counts[] = { 1, 2, 8 };

/* ---- every thread once ---- */

/* params: counts[blocks * threads], threads */
static uint32_t k_count(hw_frame *f)
{
    uint64_t base = block_index(f) * param(f, 1);
    FOR_LANES(l, f->lanes)
    {
        uint32_t x = f->tid[l], y = f->tid[32 + l], z = f->tid[64 + l];
        uint64_t t = x + (uint64_t)f->ntid[0] * (y + (uint64_t)f->ntid[1] * z);
        __atomic_fetch_add(&words(param(f, 0))[base + t], 1, __ATOMIC_RELAXED);
    }
    return HW_WARP_DONE;
}

static void every_thread_runs_once(void **state)
{
    (void)state;
    static const rig_shape shapes[] = {
        { .grid = { 1, 1, 1 }, .block = { 1, 1, 1 } },
        { .grid = { 3, 2, 2 }, .block = { 33, 1, 1 } },
        { .grid = { 7, 5, 3 }, .block = { 5, 7, 3 } },
        { .grid = { 100, 1, 1 }, .block = { 1024, 1, 1 } },
        { .grid = { 1, 700, 2 }, .block = { 8, 8, 2 } },
        { .grid = { 3000, 1, 1 }, .block = { 48, 2, 1 } },
    };
    for (size_t w = 0; w < HW_COUNTOF(worker_counts); w++) {
        rig *r = rig_new(worker_counts[w], NULL);
        for (size_t i = 0; i < HW_COUNTOF(shapes); i++) {
            rig_shape s = shapes[i];
            uint64_t blocks = (uint64_t)s.grid[0] * s.grid[1] * s.grid[2];
            uint64_t threads = (uint64_t)s.block[0] * s.block[1] * s.block[2];
            uint64_t out = rig_alloc(r, blocks * threads * 4);
            for (uint32_t round = 1; round <= 2; round++) {
                s.suspends = round == 2;
                assert_int_equal(RUN(r, k_count, s, out, threads), HW_OK);
                for (uint64_t t = 0; t < blocks * threads; t++)
                    assert_int_equal(words(out)[t], round);
            }
            assert_int_equal(r->asked.block[0], s.block[0]);
            assert_true(r->asked.small_grid);
        }
        rig_free(r);
    }
}

/* params: sum, number of blocks seen */
static uint32_t k_sum_blocks(hw_frame *f)
{
    uint64_t *out = (uint64_t *)(uintptr_t)param(f, 0);
    __atomic_fetch_add(out, block_index(f), __ATOMIC_RELAXED);
    __atomic_fetch_add(out + 1, 1, __ATOMIC_RELAXED);
    return HW_WARP_DONE;
}

static void large_grids_are_covered(void **state)
{
    (void)state;
    rig *r = rig_new(2, NULL);
    uint64_t out = rig_alloc(r, 16), n = UINT64_C(3) * 65535 * 4;
    assert_int_equal(
        RUN(r, k_sum_blocks, ((rig_shape){ .grid = { 3, 65535, 4 }, .block = { 32 } }), out),
        HW_OK);
    assert_int_equal(((uint64_t *)(uintptr_t)out)[1], n);
    assert_int_equal(((uint64_t *)(uintptr_t)out)[0], n * (n - 1) / 2);
    rig_free(r);
}

static uint32_t k_look(hw_frame *f)
{
    uint64_t *out = (uint64_t *)(uintptr_t)param(f, 0);
    if (f->warp == 0) {
        out[0] = f->symbols[0];
        out[1] = f->symbols[1];
        out[2] = f->dynamic_shared;
        out[3] = f->total_shared;
        out[4] = f->nwarps;
        out[5] = f->nsmid;
        out[6] = (uint64_t)f->envreg[0] << 32 | f->envreg[1];
        out[7] = (uint64_t)(uintptr_t)f->save % 64;
        out[8] = f->local_stride;
#ifdef __x86_64__
        out[9] = _mm_getcsr() & 0xffc0;
#endif
    }
    memset(f->save, 1, 128);
    memset(f->shared, 1, f->total_shared);
    memset(f->local, 1, 32 * f->local_stride);
    return HW_WARP_DONE;
}

static void frames_say_what_the_launch_is(void **state)
{
    (void)state;
    static const uint32_t ids[] = { 5, 9 };
    rig *r = rig_new(1, NULL);
    r->code = (hw_code){ .save_bytes = 128,
                         .local_bytes = 40,
                         .static_shared_bytes = 100,
                         .n_symbols = 2,
                         .symbols = ids,
                         .flush_all = true };
    uint64_t out = rig_alloc(r, 100), *o = (uint64_t *)(uintptr_t)out;
    rig_shape s = { .grid = { 4 }, .block = { 100 }, .shared = 1000 };
    assert_int_equal(RUN(r, k_look, s, out), HW_OK);
    assert_int_equal(o[0], 0x1005);
    assert_int_equal(o[1], 0x1009);
    assert_int_equal(o[2], 1000);
    assert_int_equal(o[3], 1112);
    assert_int_equal(o[4], 4);
    assert_int_equal(o[5], r->dev->compute.sm_count);
    assert_int_equal(o[6], 0);
    assert_int_equal(o[7], 0);
    assert_int_equal(o[8], 48);
#ifdef __x86_64__
    assert_int_equal(o[9], 0x9fc0); /* flush to zero, denormals are zero, nothing trapped */
    assert_int_equal(_mm_getcsr() & 0x8040, 0);
#endif
    r->code.flush_all = false;
    s.cooperative = true;
    assert_int_equal(RUN(r, k_look, s, out), HW_OK);
    assert_true(o[6] != 0);
    assert_int_equal(words(o[6])[1], 0);
    rig_free(r);
}

/* ---- barriers ---- */

/* Each warp writes its number, waits, reads its neighbour's; again and again. params: out */
static uint32_t k_neighbours(hw_frame *f)
{
    uint32_t *shared = (uint32_t *)(void *)f->shared, *sum = (uint32_t *)(void *)f->save;
    uint32_t round = f->resume / 2;
    if (f->resume == 0)
        *sum = 0;
    if (f->resume % 2) { /* between two barriers: read */
        *sum += shared[(f->warp + 1) % f->nwarps];
        return wait_at(f, f->resume + 1, 1, 0);
    }
    if (round < 10) {
        shared[f->warp] = round * 100 + f->warp;
        return wait_at(f, f->resume + 1, 0, 0);
    }
    words(param(f, 0))[block_index(f) * f->nwarps + f->warp] = *sum;
    return HW_WARP_DONE;
}

static void barriers_separate_phases(void **state)
{
    (void)state;
    for (uint32_t warps = 1; warps <= 32; warps *= 2) {
        rig *r = rig_new(2, NULL);
        r->code = (hw_code){ .save_bytes = 64, .static_shared_bytes = 128 };
        uint64_t out = rig_alloc(r, 50 * warps * 4);
        rig_shape s = { .grid = { 50 }, .block = { 32 * warps }, .suspends = true };
        assert_int_equal(RUN(r, k_neighbours, s, out), HW_OK);
        for (uint32_t i = 0; i < 50 * warps; i++)
            assert_int_equal(words(out)[i], 4500 + 10 * ((i % warps + 1) % warps));
        rig_free(r);
    }
}

/* What programs leave to luck: all read a shared word, and the first warp goes on to write the next
 * value with no barrier between; round after round. params: out */
static uint32_t k_late_readers(hw_frame *f)
{
    uint32_t *shared = (uint32_t *)(void *)f->shared, *sum = (uint32_t *)(void *)f->save;
    if (f->resume == 0)
        *sum = 0;
    else
        *sum += shared[0];
    if (f->resume < 10) {
        if (f->warp == 0)
            shared[0] = f->resume;
        return wait_at(f, f->resume + 1, 0, 0);
    }
    words(param(f, 0))[f->warp] = *sum;
    return HW_WARP_DONE;
}

static void the_first_warp_does_not_overtake_readers(void **state)
{
    (void)state;
    rig *r = rig_new(1, NULL);
    r->code = (hw_code){ .save_bytes = 64, .static_shared_bytes = 128 };
    uint64_t out = rig_alloc(r, 32 * 4);
    rig_shape s = { .grid = { 3 }, .block = { 1024 }, .suspends = true };
    assert_int_equal(RUN(r, k_late_readers, s, out), HW_OK);
    for (uint32_t w = 0; w < 32; w++)
        assert_int_equal(words(out)[w], 45);
    rig_free(r);
}

/* In which order the warps come: a count, then their numbers. params: out */
static uint32_t k_order(hw_frame *f)
{
    uint32_t *out = words(param(f, 0));
    out[++out[0]] = f->warp;
    return f->resume < 2 ? wait_at(f, f->resume + 1, 0, 0) : HW_WARP_DONE;
}

/* Upwards, as memory is gone through, the first warp last once all have met. */
static void warps_come_upwards(void **state)
{
    (void)state;
    rig *r = rig_new(1, NULL);
    uint64_t out = rig_alloc(r, 64 * 4);
    memset(words(out), 0, 64 * 4);
    rig_shape s = { .grid = { 1 }, .block = { 256 }, .suspends = true };
    assert_int_equal(RUN(r, k_order, s, out), HW_OK);
    assert_int_equal(words(out)[0], 24);
    for (uint32_t i = 0; i < 24; i++)
        assert_int_equal(words(out)[i + 1], i < 8 ? i : (i + 1) % 8);
    rig_free(r);
}

/* The same, handing on turns as generated code does. Warp 3 ends when it comes the second time; the first turn of
 * warp 5 ends without handing on. out: a count, then 100 times the turn plus the warp; calls at out[63]. */
static uint32_t k_hands_on(hw_frame *f)
{
    uint32_t *out = words(param(f, 0));
    for (out[63]++;; f = f->next) {
        out[++out[0]] = f->resume * 100 + f->warp;
        if (f->warp == 5 && f->resume == 0)
            return yield_at(f, 1);
        bool done = f->resume == 3 || (f->warp == 3 && f->resume == 2);
        f->resume += f->resume == 0 ? 2 : 1;
        if (done)
            f->lanes = 0;
        if (!f->next)
            return done ? HW_WARP_DONE : HW_WARP_MET;
        if (done)
            f->turns->over |= UINT64_C(1) << f->warp;
        f->turns->running = f->next;
    }
}

static void turns_are_handed_on(void **state)
{
    (void)state;
    static const uint32_t expected[] = {
        0,   1,   2,   3,   4,   5,   6,   7,   105, 201, 202, 203,
        204, 205, 206, 207, 200, 301, 302, 304, 305, 306, 307, 300
    };
    rig *r = rig_new(1, NULL);
    r->code = (hw_code){ .relays = true };
    uint64_t out = rig_alloc(r, 64 * 4);
    rig_shape s = { .grid = { 2 }, .block = { 256 }, .suspends = true };
    for (uint32_t blocks = 1; blocks <= 2; blocks++) { /* frames are linked anew for each */
        s.grid[0] = blocks;
        memset(words(out), 0, 64 * 4);
        assert_int_equal(RUN(r, k_hands_on, s, out), HW_OK);
        assert_int_equal(words(out)[0], blocks * HW_COUNTOF(expected));
        for (uint32_t i = 0; i < words(out)[0]; i++)
            assert_int_equal(words(out)[i + 1], expected[i % HW_COUNTOF(expected)]);
        assert_int_equal(words(out)[63], blocks * 5);
    }
    rig_free(r);
}

/* Reductions of every kind over warps. params: out[3] */
static uint32_t k_reduce(hw_frame *f)
{
    static const uint32_t kinds[] = { HW_BAR_POPC, HW_BAR_AND, HW_BAR_OR };
    uint32_t *out = words(param(f, 0));
    uint32_t step = f->resume;
    if (step > 0 && f->bar_value != out[3 + step - 1])
        out[step - 1] = f->bar_value + 1000;
    if (step == 3)
        return HW_WARP_DONE;
    wait_at(f, step + 1, 2, 0);
    f->bar_kind = kinds[step];
    f->bar_value = step == 0 ? f->warp : step == 1 ? f->warp != 2 : f->warp == 2;
    return HW_WARP_BARRIER;
}

static void barriers_reduce(void **state)
{
    (void)state;
    rig *r = rig_new(1, NULL);
    uint64_t out = rig_alloc(r, 24);
    words(out)[3] = 0 + 1 + 2 + 3;
    words(out)[4] = 0;
    words(out)[5] = 1;
    rig_shape s = { .grid = { 9 }, .block = { 128 }, .suspends = true };
    assert_int_equal(RUN(r, k_reduce, s, out), HW_OK);
    for (int i = 0; i < 3; i++)
        assert_int_equal(words(out)[i], 0);
    rig_free(r);
}

/* Warps 0 and 1 produce for warps 2 and 3 through named barriers with counts; warps 4.. end at
 * once. Producers arrive and go on. params: out */
static uint32_t k_produce(hw_frame *f)
{
    uint32_t *shared = (uint32_t *)(void *)f->shared;
    if (f->warp >= 4)
        return HW_WARP_DONE;
    uint32_t pair = f->warp % 2, n = f->resume;
    if (f->warp < 2) {
        shared[pair] = 7 + pair;
        f->call->arrive(f, 1 + pair, 64, f->lanes);
        return HW_WARP_DONE;
    }
    if (n == 0)
        return wait_at(f, 1, 1 + pair, 64);
    words(param(f, 0))[pair] = shared[pair];
    return HW_WARP_DONE;
}

static void counted_barriers_join_producers_and_consumers(void **state)
{
    (void)state;
    rig *r = rig_new(1, NULL);
    r->code = (hw_code){ .static_shared_bytes = 64 };
    uint64_t out = rig_alloc(r, 8);
    rig_shape s = { .grid = { 1 }, .block = { 256 }, .suspends = true };
    assert_int_equal(RUN(r, k_produce, s, out), HW_OK);
    assert_int_equal(words(out)[0], 7);
    assert_int_equal(words(out)[1], 8);
    rig_free(r);
}

/* Every second warp ends before the barrier, one after the others wait. params: out */
static uint32_t k_exit_early(hw_frame *f)
{
    if (f->resume == 0 && f->warp % 2)
        return yield_at(f, 1);
    if (f->warp % 2)
        return HW_WARP_DONE;
    if (f->resume == 0)
        return wait_at(f, 2, 0, 0);
    __atomic_fetch_add(words(param(f, 0)), 1, __ATOMIC_RELAXED);
    return HW_WARP_DONE;
}

static void ended_warps_do_not_hold_a_barrier(void **state)
{
    (void)state;
    rig *r = rig_new(2, NULL);
    uint64_t out = rig_alloc(r, 4);
    rig_shape s = { .grid = { 10 }, .block = { 320 }, .suspends = true };
    assert_int_equal(RUN(r, k_exit_early, s, out), HW_OK);
    assert_int_equal(words(out)[0], 50);
    rig_free(r);
}

static uint32_t k_deadlock(hw_frame *f)
{
    if (f->resume == 0)
        return wait_at(f, 1, f->warp == 1 ? 3 : 0, f->warp == 1 ? 96 : 64);
    return HW_WARP_DONE;
}

static void a_deadlock_is_told(void **state)
{
    (void)state;
    rig *r = rig_new(2, NULL);
    rig_shape s = { .grid = { 20 }, .block = { 64 }, .suspends = true };
    assert_int_equal(RUN(r, k_deadlock, s, 0), HW_F_DEADLOCK);
    assert_int_equal(r->fault.status, HW_F_DEADLOCK);
    assert_int_equal(r->fault.block[0], 0);
    assert_non_null(strstr(r->fault.text, "1 warps wait at barrier 0, where 32 of 64 threads"));
    assert_non_null(strstr(r->fault.text, "1 warps wait at barrier 3, where 32 of 96 threads"));
    /* and the exec is still good */
    uint64_t out = rig_alloc(r, 4);
    s.block[0] = 320;
    assert_int_equal(RUN(r, k_exit_early, s, out), HW_OK);
    rig_free(r);
}

/* ---- shared memory (case C18) ---- */

/* params: out */
static uint32_t k_own_shared(hw_frame *f)
{
    uint32_t *shared = (uint32_t *)(void *)f->shared;
    if (f->resume < 3) {
        if (f->resume == 0)
            FOR_LANES(l, f->lanes) shared[f->warp * 32 + l] = f->ctaid[0];
        return f->resume == 0 ? wait_at(f, 1, 0, 0) : yield_at(f, f->resume + 1);
    }
    FOR_LANES(l, f->lanes)
    words(param(f, 0))[f->ctaid[0] * 64 + f->warp * 32 + l] = shared[f->warp * 32 + l];
    return HW_WARP_DONE;
}

static void blocks_have_shared_memory_of_their_own(void **state)
{
    (void)state;
    for (size_t w = 0; w < HW_COUNTOF(worker_counts); w++) {
        rig *r = rig_new(worker_counts[w], NULL);
        uint64_t out = rig_alloc(r, 200 * 64 * 4);
        rig_shape s = {
            .grid = { 200 }, .block = { 64 }, .shared = 256, .suspends = true, .cooperative = true
        };
        assert_int_equal(RUN(r, k_own_shared, s, out), HW_OK);
        for (uint32_t i = 0; i < 200 * 64; i++)
            assert_int_equal(words(out)[i], i / 64);
        rig_free(r);
    }
}

static uint32_t k_touch_end(hw_frame *f)
{
    memset(f->shared, 1, f->total_shared);
    return HW_WARP_DONE;
}

static void shared_memory_may_have_227_kb(void **state)
{
    (void)state;
    rig *r = rig_new(2, NULL);
    rig_shape s = { .grid = { 20 }, .block = { 64 }, .shared = 227 * 1024 };
    assert_int_equal(RUN(r, k_touch_end, s, 0), HW_OK);
    s.shared = 300 * 1024;
    assert_int_equal(RUN(r, k_touch_end, s, 0), HW_E_RANGE);
    rig_free(r);
}

/* ---- blocks that wait for each other ---- */

/* Decoupled look-back: block i waits for the flag of block i - 1. params: flags */
static uint32_t k_look_back(hw_frame *f)
{
    uint32_t *flags = words(param(f, 0)), i = f->ctaid[0];
    if (f->warp == 0) {
        if (i > 0 && !__atomic_load_n(&flags[i - 1], __ATOMIC_ACQUIRE) && !stop_asked(f))
            return yield_at(f, 0);
        uint32_t before = i > 0 ? flags[i - 1] : 0;
        __atomic_store_n(&flags[i], before + 1, __ATOMIC_RELEASE);
    }
    return f->resume == 0 && f->warp ? wait_at(f, 1, 0, 64)
           : f->warp                 ? HW_WARP_DONE
           : f->resume == 5          ? HW_WARP_DONE
                                     : wait_at(f, 5, 0, 64);
}

/* A warp 0 that resumes behind the barrier must not look again. */
static uint32_t k_look_back_entry(hw_frame *f)
{
    return f->resume == 5 ? (uint32_t)HW_WARP_DONE : k_look_back(f);
}

static void look_back_over_thousands_of_blocks(void **state)
{
    (void)state;
    for (size_t w = 0; w < HW_COUNTOF(worker_counts); w++) {
        rig *r = rig_new(worker_counts[w], NULL);
        enum { N = 5000 };
        uint64_t flags = rig_alloc(r, N * 4);
        rig_shape s = { .grid = { N }, .block = { 64 }, .suspends = true };
        assert_int_equal(RUN(r, k_look_back_entry, s, flags), HW_OK);
        assert_int_equal(words(flags)[N - 1], N);
        rig_free(r);
    }
}

/* A block that waits for its successors: not promised to work, but it does on a device that holds
 * them all. params: flags */
static uint32_t k_look_ahead(hw_frame *f)
{
    uint32_t *flags = words(param(f, 0)), i = f->ctaid[0];
    if (i + 1 < f->nctaid[0] && !__atomic_load_n(&flags[i + 1], __ATOMIC_ACQUIRE) && !stop_asked(f))
        return yield_at(f, 0);
    __atomic_store_n(&flags[i], 1, __ATOMIC_RELEASE);
    return HW_WARP_DONE;
}

static void blocks_may_wait_for_later_ones(void **state)
{
    (void)state;
    for (size_t w = 0; w < HW_COUNTOF(worker_counts); w++) {
        rig *r = rig_new(worker_counts[w], NULL);
        uint64_t flags = rig_alloc(r, 100 * 4);
        rig_shape s = { .grid = { 100 }, .block = { 32 }, .suspends = true };
        assert_int_equal(RUN(r, k_look_ahead, s, flags), HW_OK);
        assert_int_equal(words(flags)[0], 1);
        rig_free(r);
    }
}

/* Grid synchronisation as cooperative groups do it: block barrier, atomic add in the workspace by
 * one thread, spin until the top bit flips, block barrier. params: counters[rounds], error count */
static uint32_t k_grid_sync(hw_frame *f)
{
    enum { ROUNDS = 5 };
    uint32_t *barrier = words(((uint64_t)f->envreg[0] << 32 | f->envreg[1]) + 4);
    uint32_t *old = (uint32_t *)(void *)f->save, *counters = words(param(f, 0));
    uint32_t blocks = f->nctaid[0], round = f->resume / 4;
    for (;;) {
        switch (f->resume % 4) {
        case 0:
            if (round > 0 &&
                __atomic_load_n(&counters[round - 1], __ATOMIC_RELAXED) != blocks * f->nwarps)
                __atomic_fetch_add(&counters[ROUNDS], 1, __ATOMIC_RELAXED);
            if (round == ROUNDS)
                return HW_WARP_DONE;
            __atomic_fetch_add(&counters[round], 1, __ATOMIC_RELAXED);
            return wait_at(f, f->resume + 1, 0, 0);
        case 1:
            if (f->warp == 0)
                *old = __atomic_fetch_add(
                    barrier, f->ctaid[0] == 0 ? 0x80000000u - (blocks - 1) : 1, __ATOMIC_ACQ_REL);
            f->resume++;
            break;
        case 2:
            if (f->warp == 0 && !stop_asked(f) &&
                !((*old ^ __atomic_load_n(barrier, __ATOMIC_ACQUIRE)) & 0x80000000u))
                return yield_at(f, f->resume);
            return wait_at(f, f->resume + 1, 0, 0);
        default:
            f->resume++;
            round++;
        }
    }
}

static void cooperative_grids_synchronise(void **state)
{
    (void)state;
    for (size_t w = 0; w < HW_COUNTOF(worker_counts); w++) {
        rig *r = rig_new(worker_counts[w], NULL);
        r->code = (hw_code){ .save_bytes = 64 };
        uint64_t counters = rig_alloc(r, 64);
        rig_shape s = { .grid = { 264 }, .block = { 256 }, .suspends = true, .cooperative = true };
        for (int again = 0; again < 2; again++) {
            memset(words(counters), 0, 64);
            assert_int_equal(RUN(r, k_grid_sync, s, counters), HW_OK);
            for (int i = 0; i < 5; i++)
                assert_int_equal(words(counters)[i], 264 * 8);
            assert_int_equal(words(counters)[5], 0);
            assert_true(r->asked.cooperative);
        }
        rig_free(r);
    }
}

/* ---- leaving a variant ---- */

static uint32_t k_deopt(hw_frame *f)
{
    f->save[0] = (uint8_t)(f->warp + 1);
    f->resume = 3;
    return HW_WARP_DEOPT;
}

static uint32_t k_slow(hw_frame *f)
{
    if (f->resume == 3) {
        memset(f->save + 1, 9, 255);
        return wait_at(f, 4, 0, 0);
    }
    __atomic_fetch_add(words(param(f, 0)), f->save[0], __ATOMIC_RELAXED);
    return HW_WARP_DONE;
}

static void a_failed_guard_goes_on_in_the_slow_variant(void **state)
{
    (void)state;
    rig *r = rig_new(2, NULL);
    r->code = (hw_code){ .save_bytes = 64 };
    r->slow = (hw_code){ .run = k_slow, .save_bytes = 256, .suspends = true };
    uint64_t out = rig_alloc(r, 4);
    rig_shape s = { .grid = { 10 }, .block = { 128 }, .suspends = true };
    assert_int_equal(RUN(r, k_deopt, s, out), HW_OK);
    assert_int_equal(words(out)[0], 10 * (1 + 2 + 3 + 4));
    rig_free(r);
}

/* ---- several launches at once ---- */

typedef struct many {
    rig *r;
    hw_code code;
    uint64_t out;
} many;

static hw_status give_neighbours(void *ctx, const hw_jit_source *s, const hw_variant *v,
                                 const hw_code **out, hw_diag *d)
{
    (void)ctx, (void)s, (void)v, (void)d;
    static const hw_code code = {
        .run = k_neighbours, .save_bytes = 64, .static_shared_bytes = 128, .suspends = true
    };
    *out = &code;
    return HW_OK;
}

static void *launch_many(void *arg)
{
    many *m = arg;
    hw_jit_source source = { .name = "many" };
    for (int i = 0; i < 50; i++) {
        hw_launch l = { .source = &source,
                        .grid = { 20, 1, 1 },
                        .block = { 128, 1, 1 },
                        .params = &m->out,
                        .param_bytes = 8 };
        if (hw_exec_launch(m->r->x, &l, NULL, NULL) != HW_OK)
            return m;
    }
    return NULL;
}

static void host_threads_may_launch_at_once(void **state)
{
    (void)state;
    rig *r = rig_new(3, NULL);
    hw_exec_code_from(r->x, give_neighbours, NULL);
    pthread_t t[4];
    many m[4];
    for (int i = 0; i < 4; i++) {
        m[i] = (many){ .r = r, .out = rig_alloc(r, 20 * 4 * 4) };
        pthread_create(&t[i], NULL, launch_many, &m[i]);
    }
    for (int i = 0; i < 4; i++) {
        void *bad = NULL;
        pthread_join(t[i], &bad);
        assert_null(bad);
        for (uint32_t j = 0; j < 80; j++)
            assert_int_equal(words(m[i].out)[j], 4500 + 10 * ((j % 4 + 1) % 4));
    }
    rig_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_thread_runs_once),
        cmocka_unit_test(large_grids_are_covered),
        cmocka_unit_test(frames_say_what_the_launch_is),
        cmocka_unit_test(barriers_separate_phases),
        cmocka_unit_test(the_first_warp_does_not_overtake_readers),
        cmocka_unit_test(turns_are_handed_on),
        cmocka_unit_test(warps_come_upwards),
        cmocka_unit_test(barriers_reduce),
        cmocka_unit_test(counted_barriers_join_producers_and_consumers),
        cmocka_unit_test(ended_warps_do_not_hold_a_barrier),
        cmocka_unit_test(a_deadlock_is_told),
        cmocka_unit_test(blocks_have_shared_memory_of_their_own),
        cmocka_unit_test(shared_memory_may_have_227_kb),
        cmocka_unit_test(look_back_over_thousands_of_blocks),
        cmocka_unit_test(blocks_may_wait_for_later_ones),
        cmocka_unit_test(cooperative_grids_synchronise),
        cmocka_unit_test(a_failed_guard_goes_on_in_the_slow_variant),
        cmocka_unit_test(host_threads_may_launch_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
