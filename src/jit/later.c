/* SPDX-License-Identifier: Apache-2.0
 *
 * The thread that compiles in the background. See later.h.
 */
#include "later.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

enum { NICENESS = 10 };

typedef struct job {
    struct job *next;
    hw_later_fn *run, *drop;
    void *what;
} job;

struct hw_later {
    pthread_mutex_t lock;
    pthread_cond_t more;
    job *first, **last;
    pthread_t thread;
    _Atomic pid_t process; /* the thread belongs to; 0: no thread */
    bool closing;
};

/* ---- the thread ---- */

static void *work(void *arg)
{
    hw_later *l = arg;
    setpriority(PRIO_PROCESS, (id_t)gettid(), NICENESS);
    pthread_mutex_lock(&l->lock);
    for (;;) {
        while (!l->first && !l->closing)
            pthread_cond_wait(&l->more, &l->lock);
        if (l->closing)
            break;
        job *j = l->first;
        l->first = j->next;
        if (!l->first)
            l->last = &l->first;
        pthread_mutex_unlock(&l->lock);
        j->run(j->what);
        j->drop(j->what);
        free(j);
        pthread_mutex_lock(&l->lock);
    }
    pthread_mutex_unlock(&l->lock);
    return NULL;
}

/* The program's handlers do not run on this thread. */
static bool start(hw_later *l)
{
    sigset_t every, before;
    sigfillset(&every);
    pthread_sigmask(SIG_SETMASK, &every, &before);
    bool ok = pthread_create(&l->thread, NULL, work, l) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    l->process = ok ? getpid() : 0;
    return ok;
}

hw_later *hw_later_new(void)
{
    hw_later *l = calloc(1, sizeof *l);
    if (!l)
        hw_oom(sizeof *l);
    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->more, NULL);
    l->last = &l->first;
    return l;
}

void hw_later_free(hw_later *l)
{
    if (!l)
        return;
    pthread_mutex_lock(&l->lock);
    l->closing = true;
    pthread_cond_signal(&l->more);
    pthread_mutex_unlock(&l->lock);
    if (l->process == getpid())
        pthread_join(l->thread, NULL);
    while (l->first) {
        job *j = l->first;
        l->first = j->next;
        j->drop(j->what);
        free(j);
    }
    pthread_cond_destroy(&l->more);
    pthread_mutex_destroy(&l->lock);
    free(l);
}

void hw_later_add(hw_later *l, hw_later_fn *run, hw_later_fn *drop, void *what)
{
    job *j = calloc(1, sizeof *j);
    pthread_mutex_lock(&l->lock);
    bool ok = j && !l->closing && (l->process == getpid() || (!l->process && start(l)));
    if (ok) {
        *j = (job){ .run = run, .drop = drop, .what = what };
        *l->last = j;
        l->last = &j->next;
        pthread_cond_signal(&l->more);
    }
    pthread_mutex_unlock(&l->lock);
    if (!ok) {
        free(j);
        drop(what);
    }
}
