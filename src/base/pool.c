/* SPDX-License-Identifier: Apache-2.0
 * A pool of worker threads. A job is one function run once on each of n threads; the caller is one
 * of them, so a pool of one worker has no thread at all. Threads start with the first job. */
#include "hw_base.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>

typedef struct job {
    struct job *next;
    hw_pool_fn *fn;
    void *ctx;
    unsigned next_index, n, left;
} job;

struct hw_pool {
    pthread_mutex_t lock;
    pthread_cond_t work, done;
    job *queue; /* jobs that still have an index to hand out, oldest first */
    pthread_t *threads;
    unsigned workers, started;
    bool stop;
};

hw_pool *hw_pool_new(unsigned workers)
{
    hw_pool *p = calloc(1, sizeof *p);
    if (!p)
        hw_oom(sizeof *p);
    p->workers = workers ? workers : 1;
    p->threads = calloc(p->workers, sizeof *p->threads);
    if (!p->threads)
        hw_oom(p->workers * sizeof *p->threads);
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->work, NULL);
    pthread_cond_init(&p->done, NULL);
    return p;
}

unsigned hw_pool_workers(const hw_pool *p)
{
    return p->workers;
}

/* Take one index of job j; called with the lock held. */
static unsigned claim(hw_pool *p, job *j)
{
    unsigned index = j->next_index++;
    if (j->next_index == j->n) {
        job **at = &p->queue;
        while (*at != j)
            at = &(*at)->next;
        *at = j->next;
    }
    return index;
}

static void run_one(hw_pool *p, job *j)
{
    unsigned index = claim(p, j);
    pthread_mutex_unlock(&p->lock);
    j->fn(j->ctx, index);
    pthread_mutex_lock(&p->lock);
    if (--j->left == 0)
        pthread_cond_broadcast(&p->done);
}

static void *thread_main(void *arg)
{
    hw_pool *p = arg;
    pthread_mutex_lock(&p->lock);
    while (!p->stop) {
        if (p->queue)
            run_one(p, p->queue);
        else
            pthread_cond_wait(&p->work, &p->lock);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

/* Kernels that recurse need deep stacks, and their frames are large: a wide guard, so that none steps
 * over it. Falls back to the host's default where addresses are scarce. */
static int create(pthread_t *t, hw_pool *p)
{
    enum { STACK_BYTES = 64 << 20, GUARD_BYTES = 1 << 20 };
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, STACK_BYTES);
    pthread_attr_setguardsize(&attr, GUARD_BYTES);
    int rc = pthread_create(t, &attr, thread_main, p);
    pthread_attr_destroy(&attr);
    return rc == 0 ? 0 : pthread_create(t, NULL, thread_main, p);
}

/* Start threads up to the number wanted; signals stay with the program's own threads. */
static void start(hw_pool *p, unsigned want)
{
    sigset_t all, old;
    if (p->started >= want)
        return;
    sigfillset(&all);
    sigdelset(&all, SIGSEGV);
    sigdelset(&all, SIGBUS);
    sigdelset(&all, SIGFPE);
    sigdelset(&all, SIGILL);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    while (p->started < want && create(&p->threads[p->started], p) == 0)
        p->started++;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
}

void hw_pool_run(hw_pool *p, unsigned n, hw_pool_fn *fn, void *ctx)
{
    if (n > p->workers)
        n = p->workers;
    job j = { .fn = fn, .ctx = ctx, .n = n, .left = n };
    pthread_mutex_lock(&p->lock);
    start(p, n - 1);
    job **at = &p->queue;
    while (*at)
        at = &(*at)->next;
    *at = &j;
    if (n > 1)
        pthread_cond_broadcast(&p->work);
    while (j.next_index < j.n)
        run_one(p, &j);
    while (j.left)
        pthread_cond_wait(&p->done, &p->lock);
    pthread_mutex_unlock(&p->lock);
}

void hw_pool_free(hw_pool *p)
{
    if (!p)
        return;
    pthread_mutex_lock(&p->lock);
    p->stop = true;
    pthread_cond_broadcast(&p->work);
    pthread_mutex_unlock(&p->lock);
    for (unsigned i = 0; i < p->started; i++)
        pthread_join(p->threads[i], NULL);
    pthread_cond_destroy(&p->work);
    pthread_cond_destroy(&p->done);
    pthread_mutex_destroy(&p->lock);
    free(p->threads);
    free(p);
}

unsigned hw_cpu_count(void)
{
    cpu_set_t set;
    int n = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    return n > 0 ? (unsigned)n : 1;
}
