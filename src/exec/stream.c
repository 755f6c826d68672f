/* SPDX-License-Identifier: Apache-2.0
 *
 * Streams and events.
 *
 *   set     the streams of one exec and its sticky fault.
 *   stream  a queue of tasks, numbered from 1; `done` is the number of the last that ended.
 *   task    work, a host function, a mark to set or a mark to wait for; `after` are places in other
 *           streams it must wait for (the legacy stream and the blocking ones).
 *   mark    one recording of an event.
 *
 * Tasks of a stream are run by whoever comes first: its own thread, or a caller that waits for the
 * stream (which saves a change of threads); `running` says that somebody does. One lock covers all
 * streams and events of the process. It is never held while a task runs.
 */
#include "exec.h"

#include <signal.h>
#include <stdlib.h>
#include <time.h>

typedef struct mark {
    uint32_t refs;
    bool reached;
    uint64_t ns;
    hw_stream *stream; /* until reached: where, so that waiting callers can help */
    uint64_t seq;
} mark;

typedef struct place {
    hw_stream *stream; /* counted */
    uint64_t seq;
} place;

typedef struct task {
    struct task *next;
    uint64_t seq;
    hw_task_fn *run;
    void (*drop)(void *ctx);
    void (*host)(void *user);
    void *ctx;
    mark *sets, *waits; /* counted */
    place *after;
    size_t nafter;
} task;

struct hw_stream {
    hw_stream *next; /* in the set */
    struct hw_stream_set *set;
    uint32_t refs, flags;
    int priority;
    task *head, **tail;
    uint64_t submitted, done;
    bool running, destroyed, has_thread, asleep;
    pthread_cond_t wake; /* of its thread */
};

struct hw_stream_set {
    hw_stream *first; /* the legacy stream */
    hw_fault fault;   /* sticky */
    unsigned threads;
    bool closing;
};

struct hw_timeline {
    bool timed, blocking_sync;
    mark *last; /* NULL: never recorded */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t progress = PTHREAD_COND_INITIALIZER; /* some task ended */
static unsigned waiters;                                   /* callers that wait for progress */

static void *must(void *p)
{
    if (!p)
        hw_oom(sizeof(task));
    return p;
}

/* ---- references; all with the lock held ---- */

static void stream_unref(hw_stream *s)
{
    if (--s->refs)
        return;
    pthread_cond_destroy(&s->wake);
    free(s);
}

static void mark_unref(mark *m)
{
    if (m && --m->refs == 0)
        free(m);
}

static void unlink_stream(hw_stream *s)
{
    hw_stream **at = &s->set->first;
    while (*at && *at != s)
        at = &(*at)->next;
    if (*at)
        *at = s->next;
    stream_unref(s);
}

/* ---- running; with the lock held ---- */

static bool is_ready(const task *t)
{
    if (t->waits && !t->waits->reached)
        return false;
    for (size_t i = 0; i < t->nafter; i++)
        if (t->after[i].stream->done < t->after[i].seq)
            return false;
    return true;
}

static bool can_run(const hw_stream *s)
{
    return s->head && !s->running && is_ready(s->head);
}

static void wake_thread(hw_stream *s)
{
    if (s->has_thread && s->asleep)
        pthread_cond_signal(&s->wake);
}

/* Something ended: wake callers, and the threads of streams that may now go on. */
static void announce(struct hw_stream_set *set)
{
    if (waiters)
        pthread_cond_broadcast(&progress);
    for (hw_stream *s = set->first; s; s = s->next)
        if (can_run(s) || s->destroyed)
            wake_thread(s);
}

static void set_mark(mark *m)
{
    m->reached = true;
    m->ns = hw_now_ns();
    m->stream = NULL;
}

static void carry_out(hw_stream *s, task *t)
{
    struct hw_stream_set *set = s->set;
    hw_fault fault = { 0 };
    hw_status status = HW_OK;
    bool skip = set->fault.status != HW_OK;
    pthread_mutex_unlock(&lock);
    if (t->run && !skip)
        status = t->run(t->ctx, &fault);
    if (t->host && !skip)
        t->host(t->ctx);
    if (t->drop)
        t->drop(t->ctx);
    pthread_mutex_lock(&lock);
    if (status != HW_OK && set->fault.status == HW_OK) {
        set->fault = fault;
        set->fault.status = status;
    }
}

static void end_task(hw_stream *s, task *t)
{
    s->done = t->seq;
    if (t->sets)
        set_mark(t->sets);
    mark_unref(t->sets);
    mark_unref(t->waits);
    for (size_t i = 0; i < t->nafter; i++)
        stream_unref(t->after[i].stream);
    free(t->after);
    free(t);
}

/* Run the first task of a stream that can_run. */
static void run_first(hw_stream *s)
{
    task *t = s->head;
    s->head = t->next;
    if (!s->head)
        s->tail = &s->head;
    s->running = true;
    if (t->run || t->host || t->drop)
        carry_out(s, t);
    s->running = false;
    end_task(s, t);
    announce(s->set);
}

static void *stream_main(void *arg)
{
    hw_stream *s = arg;
    struct hw_stream_set *set = s->set;
    pthread_mutex_lock(&lock);
    for (;;) {
        if (can_run(s)) {
            run_first(s);
        } else if (!s->head && !s->running && (s->destroyed || set->closing)) {
            break;
        } else {
            s->asleep = true;
            pthread_cond_wait(&s->wake, &lock);
            s->asleep = false;
        }
    }
    unlink_stream(s);
    set->threads--;
    pthread_cond_broadcast(&progress);
    pthread_mutex_unlock(&lock);
    return NULL;
}

/* Program signals stay with the program's threads. */
static bool start_thread(hw_stream *s)
{
    sigset_t all, old;
    pthread_t thread;
    pthread_attr_t attr;
    sigfillset(&all);
    const int ours[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL };
    for (size_t i = 0; i < HW_COUNTOF(ours); i++)
        sigdelset(&all, ours[i]);
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    pthread_attr_setguardsize(&attr, 1 << 20);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    /* As deep as the pool's, or what the host grants. */
    size_t least = 0;
    pthread_attr_getstacksize(&attr, &least);
    pthread_attr_setstacksize(&attr, 64 << 20);
    s->has_thread = pthread_create(&thread, &attr, stream_main, s) == 0;
    if (!s->has_thread) {
        pthread_attr_setstacksize(&attr, least);
        s->has_thread = pthread_create(&thread, &attr, stream_main, s) == 0;
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    pthread_attr_destroy(&attr);
    s->set->threads += s->has_thread;
    return s->has_thread;
}

/* False: there will be none, since the process ends. */
static bool wait_progress(void)
{
    enum { LOOK_EACH_NS = 250 * 1000 * 1000, SECOND_NS = 1000 * 1000 * 1000 };
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    t.tv_nsec += LOOK_EACH_NS;
    t.tv_sec += t.tv_nsec / SECOND_NS;
    t.tv_nsec %= SECOND_NS;
    waiters++;
    pthread_cond_timedwait(&progress, &lock, &t);
    waiters--;
    return !hw_jit_has_stopped();
}

/* Until the stream has come to seq; its tasks are run here if nobody else does. */
static void wait_place(hw_stream *s, uint64_t seq)
{
    while (s->done < seq) {
        if (can_run(s))
            run_first(s);
        else if (!wait_progress())
            return;
    }
}

/* ---- submitting; with the lock held ---- */

static void go_after(task *t, hw_stream *s)
{
    if (s->done >= s->submitted)
        return;
    t->after = must(realloc(t->after, (t->nafter + 1) * sizeof *t->after));
    t->after[t->nafter++] = (place){ s, s->submitted };
    s->refs++;
}

static bool is_blocking(const hw_stream *s)
{
    return !(s->flags & HW_STREAM_NONBLOCKING);
}

/* The legacy stream and the blocking streams wait for each other (CUDA Runtime API, "Stream
 * synchronization behavior"). */
static void order(hw_stream *s, task *t)
{
    hw_stream *legacy = s->set->first;
    if (s != legacy && is_blocking(s))
        go_after(t, legacy);
    if (s == legacy)
        for (hw_stream *o = legacy->next; o; o = o->next)
            if (is_blocking(o))
                go_after(t, o);
}

static void submit(hw_stream *s, task *t)
{
    order(s, t);
    t->seq = ++s->submitted;
    *s->tail = t;
    s->tail = &t->next;
    if (t->sets) {
        t->sets->stream = s;
        t->sets->seq = t->seq;
    }
    bool trivial = !t->run && !t->host && !t->drop;
    if (trivial && s->head == t && can_run(s)) {
        run_first(s); /* nothing before it: no thread is needed */
        return;
    }
    if (s->has_thread)
        wake_thread(s);
    else if (!start_thread(s))
        wait_place(s, t->seq);
}

static task *task_new(void)
{
    return must(calloc(1, sizeof(task)));
}

hw_status hw_stream_submit(hw_stream *s, hw_task_fn *run, void (*drop)(void *ctx), void *ctx)
{
    task *t = task_new();
    t->run = run;
    t->drop = drop;
    t->ctx = ctx;
    pthread_mutex_lock(&lock);
    submit(s, t);
    pthread_mutex_unlock(&lock);
    return HW_OK;
}

hw_status hw_stream_submit_host(hw_stream *s, void (*fn)(void *user), void *user)
{
    task *t = task_new();
    t->host = fn;
    t->ctx = user;
    pthread_mutex_lock(&lock);
    submit(s, t);
    pthread_mutex_unlock(&lock);
    return HW_OK;
}

/* ---- streams ---- */

static hw_stream *add_stream(struct hw_stream_set *set, uint32_t flags, int priority)
{
    hw_stream *s = must(calloc(1, sizeof *s));
    s->set = set;
    s->refs = 1;
    s->flags = flags;
    s->priority = priority;
    s->tail = &s->head;
    pthread_cond_init(&s->wake, NULL);
    pthread_mutex_lock(&lock);
    hw_stream **at = &set->first;
    while (*at)
        at = &(*at)->next;
    *at = s;
    pthread_mutex_unlock(&lock);
    return s;
}

struct hw_stream_set *hw_streams_new(void)
{
    struct hw_stream_set *set = must(calloc(1, sizeof *set));
    add_stream(set, 0, 0);
    return set;
}

hw_stream *hw_stream_legacy(hw_exec *x)
{
    return x->streams->first; /* never changes */
}

hw_stream *hw_stream_new(hw_exec *x, uint32_t flags, int priority)
{
    return add_stream(x->streams, flags, priority);
}

int hw_stream_priority(const hw_stream *s)
{
    return s->priority;
}

void hw_stream_destroy(hw_stream *s)
{
    pthread_mutex_lock(&lock);
    s->destroyed = true;
    if (s->has_thread)
        wake_thread(s);
    else
        unlink_stream(s);
    pthread_mutex_unlock(&lock);
}

/* ---- waiting ---- */

static bool concerns(const hw_stream *s, const hw_stream *only)
{
    hw_stream *legacy = s->set->first;
    return !only || s == only || (only == legacy && is_blocking(s));
}

bool hw_stream_idle(hw_stream *s)
{
    bool idle = true;
    pthread_mutex_lock(&lock);
    for (hw_stream *o = s->set->first; o; o = o->next)
        if (concerns(o, s) && o->done < o->submitted)
            idle = false;
    pthread_mutex_unlock(&lock);
    return idle;
}

/* Until all that was submitted so far is done: in one stream (and those the legacy stream waits
 * for), or in all. With the lock held. */
static void wait_for(struct hw_stream_set *set, const hw_stream *only)
{
    place *at = NULL;
    size_t n = 0;
    for (hw_stream *o = set->first; o; o = o->next)
        if (concerns(o, only) && o->done < o->submitted) {
            at = must(realloc(at, (n + 1) * sizeof *at));
            at[n++] = (place){ o, o->submitted };
            o->refs++;
        }
    /* The last stream first: the legacy stream's tasks wait for the others. */
    for (size_t i = n; i-- > 0;) {
        wait_place(at[i].stream, at[i].seq);
        stream_unref(at[i].stream);
    }
    free(at);
}

hw_status hw_stream_wait(hw_stream *s)
{
    pthread_mutex_lock(&lock);
    struct hw_stream_set *set = s->set;
    wait_for(set, s);
    hw_status status = set->fault.status;
    pthread_mutex_unlock(&lock);
    return status;
}

hw_status hw_exec_wait(hw_exec *x)
{
    pthread_mutex_lock(&lock);
    wait_for(x->streams, NULL);
    hw_status status = x->streams->fault.status;
    pthread_mutex_unlock(&lock);
    return status;
}

hw_status hw_exec_sticky(hw_exec *x, hw_fault *out)
{
    pthread_mutex_lock(&lock);
    hw_status status = x->streams->fault.status;
    if (out)
        *out = x->streams->fault;
    pthread_mutex_unlock(&lock);
    return status;
}

void hw_exec_reset(hw_exec *x)
{
    pthread_mutex_lock(&lock);
    wait_for(x->streams, NULL);
    x->streams->fault = (hw_fault){ 0 };
    pthread_mutex_unlock(&lock);
}

bool hw_streams_free(struct hw_stream_set *set)
{
    pthread_mutex_lock(&lock);
    wait_for(set, NULL);
    set->closing = true;
    for (hw_stream *s = set->first; s; s = s->next)
        wake_thread(s);
    while (set->threads && wait_progress())
        continue;
    bool ended = !set->threads;
    while (ended && set->first)
        unlink_stream(set->first);
    pthread_mutex_unlock(&lock);
    if (ended)
        free(set);
    return ended;
}

/* ---- events ---- */

hw_timeline *hw_timeline_new(bool timed, bool blocking_sync)
{
    hw_timeline *e = must(calloc(1, sizeof *e));
    e->timed = timed;
    e->blocking_sync = blocking_sync;
    return e;
}

void hw_timeline_destroy(hw_timeline *e)
{
    pthread_mutex_lock(&lock);
    mark_unref(e->last);
    pthread_mutex_unlock(&lock);
    free(e);
}

void hw_timeline_record(hw_timeline *e, hw_stream *s)
{
    task *t = task_new();
    mark *m = must(calloc(1, sizeof *m));
    m->refs = 2;
    t->sets = m;
    pthread_mutex_lock(&lock);
    mark_unref(e->last);
    e->last = m;
    submit(s, t);
    pthread_mutex_unlock(&lock);
}

void hw_timeline_block(hw_stream *s, hw_timeline *e)
{
    pthread_mutex_lock(&lock);
    if (e->last && !e->last->reached) {
        task *t = task_new();
        t->waits = e->last;
        t->waits->refs++;
        submit(s, t);
    }
    pthread_mutex_unlock(&lock);
}

bool hw_timeline_reached(hw_timeline *e)
{
    pthread_mutex_lock(&lock);
    bool reached = !e->last || e->last->reached;
    pthread_mutex_unlock(&lock);
    return reached;
}

void hw_timeline_wait(hw_timeline *e)
{
    pthread_mutex_lock(&lock);
    mark *m = e->last;
    if (m) {
        m->refs++;
        while (!m->reached) {
            if (m->stream && can_run(m->stream))
                run_first(m->stream);
            else if (!wait_progress())
                break;
        }
        mark_unref(m);
    }
    pthread_mutex_unlock(&lock);
}

bool hw_timeline_recorded(hw_timeline *e)
{
    pthread_mutex_lock(&lock);
    bool recorded = e->last != NULL;
    pthread_mutex_unlock(&lock);
    return recorded;
}

uint64_t hw_timeline_ns(hw_timeline *e)
{
    pthread_mutex_lock(&lock);
    uint64_t ns = e->last && e->last->reached ? e->last->ns : 0;
    pthread_mutex_unlock(&lock);
    return ns;
}
