/* SPDX-License-Identifier: Apache-2.0
 *
 * The thread that compiles in the background. See later.h.
 */
#include "later.h"

#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

enum { NICENESS = 10 };
/* At the end of the process: how often, and how long in all, the thread is asked to stop. */
static const long ASK_EACH_NS = 200 * 1000;
enum { ASKS = 5000 };

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
    _Atomic bool ended, stopped;
    hw_later *next; /* of all */
};

/* ---- where a thread may be stopped: in code that holds no lock of the C library ---- */

typedef struct range {
    uintptr_t from, to;
} range;

enum { MOST_RANGES = 4 };
static range codes[MOST_RANGES];
static unsigned ncodes;

static int find_segment(struct dl_phdr_info *info, size_t size, void *at)
{
    (void)size;
    uintptr_t p = (uintptr_t)at;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *h = &info->dlpi_phdr[i];
        uintptr_t from = info->dlpi_addr + h->p_vaddr;
        if (h->p_type != PT_LOAD || !(h->p_flags & PF_X) || p < from || p >= from + h->p_memsz)
            continue;
        codes[ncodes++] = (range){ from, from + h->p_memsz };
        return 1;
    }
    return 0;
}

static bool in_codes(uintptr_t pc)
{
    for (unsigned i = 0; i < ncodes; i++)
        if (pc >= codes[i].from && pc < codes[i].to)
            return true;
    return false;
}

/* ---- the end of the process ---- */

static pthread_mutex_t all_lock = PTHREAD_MUTEX_INITIALIZER;
static hw_later *all;
static _Thread_local hw_later *mine;

static int stop_signal(void)
{
    return SIGRTMAX - 5;
}

static void on_stop(int sig, siginfo_t *info, void *context)
{
    (void)sig, (void)info;
    const ucontext_t *u = context;
    hw_later *l = mine;
    if (!l || !in_codes((uintptr_t)u->uc_mcontext.gregs[REG_RIP]))
        return;
    atomic_store(&l->stopped, true);
    for (;;)
        pause();
}

/* True: its thread will touch nothing any more. */
static bool has_stopped(hw_later *l)
{
    return atomic_load(&l->ended) || atomic_load(&l->stopped);
}

static void stop(hw_later *l)
{
    if (atomic_load(&l->process) != getpid())
        return; /* no thread, or a forked child, where the lock may be held for ever */
    pthread_mutex_lock(&l->lock);
    l->closing = true;
    pthread_cond_signal(&l->more);
    pthread_mutex_unlock(&l->lock);
    for (unsigned i = 0; i < ASKS && !has_stopped(l); i++) {
        if (i) /* at rest it ends by itself */
            pthread_kill(l->thread, stop_signal());
        nanosleep(&(struct timespec){ .tv_nsec = ASK_EACH_NS }, NULL);
    }
    if (atomic_load(&l->ended)) {
        pthread_join(l->thread, NULL);
        atomic_store(&l->process, 0);
    }
}

static void stop_all(void)
{
    struct sigaction a = { .sa_sigaction = on_stop, .sa_flags = SA_SIGINFO };
    sigfillset(&a.sa_mask);
    sigaction(stop_signal(), &a, NULL);
    if (pthread_mutex_trylock(&all_lock) != 0)
        return;
    for (hw_later *l = all; l; l = l->next)
        stop(l);
    pthread_mutex_unlock(&all_lock);
}

void hw_later_prepare(const void *const *at, unsigned n)
{
    for (unsigned i = 0; i < n && ncodes < MOST_RANGES; i++)
        if (at[i])
            dl_iterate_phdr(find_segment, (void *)(uintptr_t)at[i]);
    hw_later_watch();
}

/* exit() runs the thread-local destructors of its caller before anything else: before those of
 * libraries opened since, and of their objects made since. Nearly always that is the main thread. */
extern int __cxa_thread_atexit_impl(void (*destroy)(void *), void *object, void *dso);
extern void *__dso_handle __attribute__((visibility("hidden")));

static void thread_ends(void *unused)
{
    (void)unused;
    stop_all();
}

void hw_later_watch(void)
{
    static _Thread_local bool watched;
    if (!watched && gettid() == getpid())
        __cxa_thread_atexit_impl(thread_ends, NULL, &__dso_handle);
    watched = true;
}

/* Another thread may call exit too: handlers registered later run earlier. */
void hw_later_renew(void)
{
    enum { OFTEN = 64 };
    static atomic_uint times;
    if (atomic_fetch_add(&times, 1) < OFTEN)
        atexit(stop_all);
}

/* ---- the thread ---- */

static void *work(void *arg)
{
    hw_later *l = arg;
    mine = l;
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
    atomic_store(&l->ended, true);
    return NULL;
}

/* The program's handlers do not run on this thread. */
static bool start(hw_later *l)
{
    sigset_t every, before;
    sigfillset(&every);
    sigdelset(&every, stop_signal());
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
    pthread_mutex_lock(&all_lock);
    l->next = all;
    all = l;
    pthread_mutex_unlock(&all_lock);
    return l;
}

void hw_later_free(hw_later *l)
{
    if (!l)
        return;
    pthread_mutex_lock(&all_lock);
    for (hw_later **p = &all; *p; p = &(*p)->next)
        if (*p == l) {
            *p = l->next;
            break;
        }
    pthread_mutex_unlock(&all_lock);
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
