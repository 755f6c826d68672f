/* SPDX-License-Identifier: Apache-2.0
 * exec: the order streams and events promise, sticky faults, destruction while busy. */
#include "rig.h"

#include <pthread.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void nap_ms(long ms)
{
    nanosleep(&(struct timespec){ .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 }, NULL);
}

/* ---- one stream ---- */

typedef struct counter {
    uint32_t value, errors, dropped;
} counter;

typedef struct step {
    counter *c;
    uint32_t expect;
    hw_status result;
    long nap;
} step;

static hw_status take_step(void *ctx, hw_fault *fault)
{
    step *s = ctx;
    if (s->nap)
        nap_ms(s->nap);
    if (s->c->value++ != s->expect)
        s->c->errors++;
    fault->address = s->expect;
    return s->result;
}

static void drop_step(void *ctx)
{
    step *s = ctx;
    __atomic_fetch_add(&s->c->dropped, 1, __ATOMIC_RELAXED);
    free(s);
}

static void submit_step(hw_stream *s, counter *c, uint32_t expect, long nap, hw_status result)
{
    step *t = calloc(1, sizeof *t);
    *t = (step){ c, expect, result, nap };
    assert_int_equal(hw_stream_submit(s, take_step, drop_step, t), HW_OK);
}

static void a_stream_keeps_its_order(void **state)
{
    (void)state;
    rig *r = rig_new(1, NULL);
    hw_stream *s = hw_stream_new(r->x, 0, -2);
    counter c = { 0 };
    assert_int_equal(hw_stream_priority(s), -2);
    assert_true(hw_stream_idle(s));
    for (uint32_t i = 0; i < 1000; i++)
        submit_step(s, &c, i, i == 500 ? 5 : 0, HW_OK);
    assert_int_equal(hw_stream_wait(s), HW_OK);
    assert_true(hw_stream_idle(s));
    assert_int_equal(c.value, 1000);
    assert_int_equal(c.errors, 0);
    assert_int_equal(c.dropped, 1000);
    hw_stream_destroy(s);
    rig_free(r);
}

/* ---- the legacy stream ---- */

typedef struct mark_at {
    _Atomic uint32_t *clock;
    uint32_t at;
    long nap;
} mark_at;

static hw_status note(void *ctx, hw_fault *fault)
{
    (void)fault;
    mark_at *m = ctx;
    nap_ms(m->nap);
    m->at = atomic_fetch_add(m->clock, 1) + 1;
    return HW_OK;
}

static void the_legacy_stream_and_blocking_streams_wait_for_each_other(void **state)
{
    (void)state;
    rig *r = rig_new(1, NULL);
    hw_stream *a = hw_stream_new(r->x, 0, 0), *b = hw_stream_new(r->x, 0, 0);
    hw_stream *free_one = hw_stream_new(r->x, HW_STREAM_NONBLOCKING, 0);
    hw_stream *legacy = hw_stream_legacy(r->x);
    _Atomic uint32_t clock = 0;
    mark_at first_a = { &clock, 0, 30 }, first_b = { &clock, 0, 20 }, middle = { &clock, 0, 20 };
    mark_at last_a = { &clock, 0, 0 }, last_b = { &clock, 0, 0 }, own = { &clock, 0, 0 };
    hw_stream_submit(a, note, NULL, &first_a);
    hw_stream_submit(b, note, NULL, &first_b);
    hw_stream_submit(legacy, note, NULL, &middle);
    hw_stream_submit(a, note, NULL, &last_a);
    hw_stream_submit(b, note, NULL, &last_b);
    hw_stream_submit(free_one, note, NULL, &own);
    assert_false(hw_stream_idle(legacy));
    assert_int_equal(hw_stream_wait(free_one), HW_OK);
    assert_int_equal(own.at, 1);
    assert_int_equal(hw_stream_wait(legacy), HW_OK);
    assert_true(hw_stream_idle(a) && hw_stream_idle(b));
    assert_int_equal(middle.at, 4);
    assert_true(first_a.at < 4 && first_b.at < 4 && last_a.at > 4 && last_b.at > 4);
    hw_stream_destroy(a);
    hw_stream_destroy(b);
    hw_stream_destroy(free_one);
    rig_free(r);
}

/* ---- events ---- */

static void events_join_streams(void **state)
{
    (void)state;
    rig *r = rig_new(1, NULL);
    hw_stream *a = hw_stream_new(r->x, HW_STREAM_NONBLOCKING, 0);
    hw_stream *b = hw_stream_new(r->x, HW_STREAM_NONBLOCKING, 0);
    hw_timeline *e = hw_timeline_new(true, false), *begin = hw_timeline_new(true, true);
    _Atomic uint32_t clock = 0;
    mark_at slow = { &clock, 0, 30 }, after = { &clock, 0, 0 };
    assert_false(hw_timeline_recorded(e));
    assert_true(hw_timeline_reached(e)); /* never recorded */
    hw_timeline_wait(e);
    hw_timeline_block(b, e);
    hw_timeline_record(begin, a);
    assert_true(hw_timeline_reached(begin)); /* nothing before it */
    hw_stream_submit(a, note, NULL, &slow);
    hw_timeline_record(e, a);
    assert_true(hw_timeline_recorded(e));
    assert_false(hw_timeline_reached(e));
    hw_timeline_block(b, e);
    hw_stream_submit(b, note, NULL, &after);
    assert_int_equal(hw_stream_wait(b), HW_OK);
    assert_int_equal(slow.at, 1);
    assert_int_equal(after.at, 2);
    assert_true(hw_timeline_reached(e));
    uint64_t ns = hw_timeline_ns(e) - hw_timeline_ns(begin);
    assert_true(ns > 29000000 && ns < UINT64_C(5000000000));
    /* destroyed while a stream refers to it */
    slow.nap = 10;
    hw_stream_submit(a, note, NULL, &slow);
    hw_timeline_record(e, a);
    hw_timeline_block(b, e);
    hw_timeline_destroy(e);
    hw_stream_submit(b, note, NULL, &after);
    assert_int_equal(hw_exec_wait(r->x), HW_OK);
    assert_int_equal(after.at, 4);
    hw_stream_submit(a, note, NULL, &slow);
    hw_timeline_record(begin, a);
    hw_timeline_wait(begin);
    assert_int_equal(slow.at, 5);
    hw_timeline_destroy(begin);
    hw_stream_destroy(a);
    hw_stream_destroy(b);
    rig_free(r);
}

/* ---- faults ---- */

static void count_call(void *user)
{
    __atomic_fetch_add((uint32_t *)user, 1, __ATOMIC_RELAXED);
}

static void a_fault_is_sticky_until_reset(void **state)
{
    (void)state;
    rig *r = rig_new(1, NULL);
    hw_stream *a = hw_stream_new(r->x, HW_STREAM_NONBLOCKING, 0), *b = hw_stream_new(r->x, 0, 0);
    hw_timeline *e = hw_timeline_new(true, false);
    counter c = { 0 };
    uint32_t calls = 0;
    hw_fault fault;
    assert_int_equal(hw_stream_submit_host(a, count_call, &calls), HW_OK);
    submit_step(a, &c, 0, 0, HW_OK);
    submit_step(a, &c, 1, 0, HW_F_TRAP);
    submit_step(a, &c, 2, 0, HW_F_ASSERT);
    hw_timeline_record(e, a);
    assert_int_equal(hw_stream_wait(a), HW_F_TRAP);
    assert_int_equal(calls, 1);
    assert_int_equal(c.value, 2); /* the third was skipped */
    assert_int_equal(c.dropped, 3);
    assert_true(hw_timeline_reached(e));
    submit_step(b, &c, 2, 0, HW_OK);
    assert_int_equal(hw_stream_wait(b), HW_F_TRAP);
    assert_int_equal(hw_exec_sticky(r->x, &fault), HW_F_TRAP);
    assert_int_equal(fault.address, 1);
    assert_int_equal(c.value, 2);
    hw_exec_reset(r->x);
    assert_int_equal(hw_exec_sticky(r->x, NULL), HW_OK);
    submit_step(b, &c, 2, 0, HW_OK);
    assert_int_equal(hw_exec_wait(r->x), HW_OK);
    assert_int_equal(c.value, 3);
    hw_timeline_destroy(e);
    hw_stream_destroy(a);
    hw_stream_destroy(b);
    rig_free(r);
}

/* ---- life and death ---- */

static void streams_may_go_while_busy(void **state)
{
    (void)state;
    rig *r = rig_new(1, NULL);
    counter c[50] = { 0 };
    for (uint32_t i = 0; i < 50; i++) {
        hw_stream *s = hw_stream_new(r->x, i % 2 ? HW_STREAM_NONBLOCKING : 0, 0);
        for (uint32_t j = 0; j < i % 5; j++)
            submit_step(s, &c[i], j, i % 10 == 4 ? 1 : 0, HW_OK);
        hw_stream_destroy(s);
    }
    assert_int_equal(hw_exec_wait(r->x), HW_OK);
    for (uint32_t i = 0; i < 50; i++)
        assert_int_equal(c[i].value, i % 5);
    rig_free(r);
    /* and an exec that goes while streams are busy and not destroyed */
    r = rig_new(1, NULL);
    c[0] = (counter){ 0 };
    hw_stream *s = hw_stream_new(r->x, 0, 0);
    for (uint32_t j = 0; j < 5; j++)
        submit_step(s, &c[0], j, 1, HW_OK);
    rig_free(r);
    assert_int_equal(c[0].value, 5);
}

static void a_program_may_exit_while_work_runs(void **state)
{
    (void)state;
#ifdef __SANITIZE_THREAD__
    skip(); /* does not care for threads started after a fork */
#endif
    pid_t pid = fork();
    if (pid == 0) {
        rig *r = rig_new(2, NULL);
        counter *c = calloc(1, sizeof *c);
        submit_step(hw_stream_new(r->x, 0, 0), c, 0, 100000, HW_OK);
        nap_ms(5);
        alarm(5); /* a hang would end as a signal */
        _exit(3);
    }
    int status = 0;
    waitpid(pid, &status, 0);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 3);
}

/* ---- torture: threads, streams and events with a model of what must hold ---- */

enum { STREAMS = 6, THREADS = 4, OPERATIONS = 400 };

typedef struct lane { /* a stream and how far it has come */
    hw_stream *s;
    pthread_mutex_t submit; /* submission and its number together */
    uint32_t submitted;
    _Atomic uint32_t done;
    hw_timeline *e;
    uint32_t recorded; /* submitted when e was recorded; 0: never */
} lane;

typedef struct torture {
    rig *r;
    lane lanes[STREAMS];
    _Atomic uint32_t errors;
} torture;

typedef struct check {
    torture *t;
    uint32_t lane, number;
    uint32_t after_lane, after; /* that lane must have done this many */
} check;

static hw_status run_check(void *ctx, hw_fault *fault)
{
    (void)fault;
    check *c = ctx;
    lane *own = &c->t->lanes[c->lane];
    if (atomic_load(&own->done) != c->number - 1)
        atomic_fetch_add(&c->t->errors, 1);
    if (c->after && atomic_load(&c->t->lanes[c->after_lane].done) < c->after)
        atomic_fetch_add(&c->t->errors, 1);
    atomic_store(&own->done, c->number);
    return HW_OK;
}

typedef struct actor {
    torture *t;
    uint32_t seed;
} actor;

static uint32_t next_random(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 8;
}

/* One task in lane i, which waits for lane j's event first if join. Lanes 1.. are blocking and
 * lane 0 is the legacy stream, so a task of lane 0 must come after all their earlier ones. */
static void submit_check(torture *t, uint32_t i, bool join, uint32_t j)
{
    lane *l = &t->lanes[i], *o = &t->lanes[j];
    check *c = calloc(1, sizeof *c);
    *c = (check){ .t = t, .lane = i, .after_lane = j };
    if (join) {
        pthread_mutex_lock(&o->submit);
        c->after = o->recorded;
        hw_timeline_block(l->s, o->e);
        pthread_mutex_unlock(&o->submit);
    } else if (i == 0 || j == 0) {
        pthread_mutex_lock(&o->submit);
        c->after = o->submitted;
        pthread_mutex_unlock(&o->submit);
    }
    pthread_mutex_lock(&l->submit);
    c->number = ++l->submitted;
    hw_stream_submit(l->s, run_check, free, c);
    pthread_mutex_unlock(&l->submit);
}

static void *act(void *arg)
{
    actor *a = arg;
    torture *t = a->t;
    for (int n = 0; n < OPERATIONS; n++) {
        uint32_t what = next_random(&a->seed) % 20;
        uint32_t i = next_random(&a->seed) % STREAMS, j = next_random(&a->seed) % STREAMS;
        lane *l = &t->lanes[i];
        if (what < 12 && i != j) {
            submit_check(t, i, what < 4, j);
        } else if (what < 16) {
            pthread_mutex_lock(&l->submit);
            hw_timeline_record(l->e, l->s);
            l->recorded = l->submitted;
            pthread_mutex_unlock(&l->submit);
        } else if (what == 16) {
            pthread_mutex_lock(&l->submit);
            uint32_t upto = l->submitted;
            pthread_mutex_unlock(&l->submit);
            hw_stream_wait(l->s);
            if (atomic_load(&l->done) < upto)
                atomic_fetch_add(&t->errors, 1);
        } else if (what == 17) {
            pthread_mutex_lock(&l->submit);
            uint32_t upto = l->recorded;
            hw_timeline_wait(l->e);
            if (atomic_load(&l->done) < upto)
                atomic_fetch_add(&t->errors, 1);
            pthread_mutex_unlock(&l->submit);
        } else {
            hw_stream_idle(l->s);
            hw_timeline_reached(l->e);
        }
    }
    return NULL;
}

static void order_holds_under_torture(void **state)
{
    (void)state;
    torture t = { .r = rig_new(1, NULL) };
    for (uint32_t i = 0; i < STREAMS; i++) {
        t.lanes[i].s = i ? hw_stream_new(t.r->x, 0, 0) : hw_stream_legacy(t.r->x);
        t.lanes[i].e = hw_timeline_new(true, false);
        pthread_mutex_init(&t.lanes[i].submit, NULL);
    }
    pthread_t threads[THREADS];
    actor actors[THREADS];
    for (uint32_t i = 0; i < THREADS; i++) {
        actors[i] = (actor){ &t, 12345 + i };
        pthread_create(&threads[i], NULL, act, &actors[i]);
    }
    for (uint32_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(hw_exec_wait(t.r->x), HW_OK);
    assert_int_equal(t.errors, 0);
    for (uint32_t i = 0; i < STREAMS; i++) {
        assert_int_equal(t.lanes[i].done, t.lanes[i].submitted);
        hw_timeline_destroy(t.lanes[i].e);
        if (i)
            hw_stream_destroy(t.lanes[i].s);
        pthread_mutex_destroy(&t.lanes[i].submit);
    }
    rig_free(t.r);
}

/* ---- launches in streams ---- */

static uint32_t k_add(hw_frame *f)
{
    FOR_LANES(l, f->lanes)
    words(param(f, 0))[f->ctaid[0] * f->ntid[0] + f->warp * 32 + l] += 1;
    return HW_WARP_DONE;
}

typedef struct launch_task {
    rig *r;
    uint64_t out;
} launch_task;

static hw_status give_add(void *ctx, const hw_jit_source *s, const hw_variant *v,
                          const hw_code **out, hw_diag *d)
{
    (void)ctx, (void)s, (void)v, (void)d;
    static const hw_code code = { .run = k_add };
    *out = &code;
    return HW_OK;
}

static hw_status launch_add(void *ctx, hw_fault *fault)
{
    launch_task *t = ctx;
    hw_jit_source source = { .name = "add" };
    hw_launch l = { .source = &source,
                    .grid = { 50, 1, 1 },
                    .block = { 64, 1, 1 },
                    .params = &t->out,
                    .param_bytes = 8 };
    return hw_exec_launch(t->r->x, &l, fault, NULL);
}

static void streams_launch_at_once(void **state)
{
    (void)state;
    rig *r = rig_new(3, NULL);
    hw_exec_code_from(r->x, give_add, NULL);
    launch_task t[8];
    hw_stream *s[8];
    for (int i = 0; i < 8; i++) {
        t[i] = (launch_task){ r, rig_alloc(r, 50 * 64 * 4) };
        s[i] = hw_stream_new(r->x, HW_STREAM_NONBLOCKING, 0);
    }
    for (int n = 0; n < 20; n++)
        for (int i = 0; i < 8; i++)
            hw_stream_submit(s[i], launch_add, NULL, &t[i]);
    assert_int_equal(hw_exec_wait(r->x), HW_OK);
    for (int i = 0; i < 8; i++) {
        for (uint32_t j = 0; j < 50 * 64; j++)
            assert_int_equal(words(t[i].out)[j], 20);
        hw_stream_destroy(s[i]);
    }
    rig_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stream_keeps_its_order),
        cmocka_unit_test(the_legacy_stream_and_blocking_streams_wait_for_each_other),
        cmocka_unit_test(events_join_streams),
        cmocka_unit_test(a_fault_is_sticky_until_reset),
        cmocka_unit_test(streams_may_go_while_busy),
        cmocka_unit_test(a_program_may_exit_while_work_runs),
        cmocka_unit_test(order_holds_under_torture),
        cmocka_unit_test(streams_launch_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
