/* SPDX-License-Identifier: Apache-2.0
 *
 * The end of the process while threads are in the middle of LLVM. See ending.h.
 */
#include "ending.h"
#include "hw_jit.h"

#include <elf.h>
#include <link.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

/* How often threads are asked to stop, and how long in all: on a busy machine one may wait long for its turn. */
static const long ASK_EACH_NS = 500 * 1000;
enum { ASK_SECONDS = 60 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static hw_use *uses; /* lock */
static _Atomic bool ending, resting;
static _Atomic unsigned openings;
static _Atomic pid_t process; /* that has the threads; a forked child has none of them */
static _Thread_local hw_use *mine;

/* ---- the libraries' code: where a thread may be stopped ---- */

typedef struct range {
    uintptr_t from, to;
} range;

enum { MOST_RANGES = 4 };
static range codes[MOST_RANGES];
static unsigned ncodes;

static bool in_codes(uintptr_t pc)
{
    for (unsigned i = 0; i < ncodes; i++)
        if (pc >= codes[i].from && pc < codes[i].to)
            return true;
    return false;
}

/* ---- what a library registers for the end of the process ---- */

static int registers_nothing(void (*destroy)(void *), void *object, void *library)
{
    (void)destroy, (void)object, (void)library;
    return 0;
}

typedef struct dynamic {
    const ElfW(Rela) * tables[2];
    size_t bytes[2], relative; /* entries that name nothing stand first in the second */
    const ElfW(Sym) * symbols;
    const char *names;
    range read_only; /* after relocation */
} dynamic;

static dynamic read_dynamic(const ElfW(Dyn) * d)
{
    dynamic r = { 0 };
    for (; d->d_tag != DT_NULL; d++) {
        switch (d->d_tag) {
        case DT_JMPREL:
            r.tables[0] = (const void *)d->d_un.d_ptr;
            break;
        case DT_PLTRELSZ:
            r.bytes[0] = d->d_un.d_val;
            break;
        case DT_RELA:
            r.tables[1] = (const void *)d->d_un.d_ptr;
            break;
        case DT_RELASZ:
            r.bytes[1] = d->d_un.d_val;
            break;
        case DT_RELACOUNT:
            r.relative = d->d_un.d_val;
            break;
        case DT_SYMTAB:
            r.symbols = (const void *)d->d_un.d_ptr;
            break;
        case DT_STRTAB:
            r.names = (const void *)d->d_un.d_ptr;
            break;
        default:
            break;
        }
    }
    return r;
}

static void put_pointer(uintptr_t at, void *value, range read_only)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), from = at & ~(page - 1);
    bool closed = from >= read_only.from && from + page <= read_only.to;
    if (closed && mprotect((void *)from, page, PROT_READ | PROT_WRITE) != 0)
        return;
    memcpy((void *)at, &value, sizeof value);
    if (closed)
        mprotect((void *)from, page, PROT_READ);
}

/* The library has registered what its constructors made; of what it makes later nothing is ever destroyed. */
static void register_no_more(uintptr_t base, const dynamic *d)
{
    for (unsigned t = 0; t < 2 && d->symbols && d->names; t++) {
        for (size_t i = t ? d->relative : 0; d->tables[t] && i < d->bytes[t] / sizeof(ElfW(Rela));
             i++) {
            const ElfW(Rela) *r = &d->tables[t][i];
            const unsigned type = (unsigned)ELF64_R_TYPE(r->r_info);
            if (type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT)
                continue;
            const char *name = d->names + d->symbols[ELF64_R_SYM(r->r_info)].st_name;
            if (strcmp(name, "__cxa_atexit") == 0)
                put_pointer(base + r->r_offset, (void *)(uintptr_t)registers_nothing, d->read_only);
        }
    }
}

static bool holds(const struct dl_phdr_info *info, uintptr_t p, range *code)
{
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *h = &info->dlpi_phdr[i];
        uintptr_t from = info->dlpi_addr + h->p_vaddr;
        if (h->p_type != PT_LOAD || !(h->p_flags & PF_X) || p < from || p >= from + h->p_memsz)
            continue;
        *code = (range){ from, from + h->p_memsz };
        return true;
    }
    return false;
}

static int take_library(struct dl_phdr_info *info, size_t size, void *at)
{
    (void)size;
    if (ncodes == MOST_RANGES || !holds(info, (uintptr_t)at, &codes[ncodes]))
        return 0;
    ncodes++;
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    dynamic d = { 0 };
    range closed = { 0, 0 };
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *h = &info->dlpi_phdr[i];
        uintptr_t from = info->dlpi_addr + h->p_vaddr;
        if (h->p_type == PT_DYNAMIC)
            d = read_dynamic((const void *)from);
        if (h->p_type == PT_GNU_RELRO)
            closed = (range){ from & ~(page - 1), (from + h->p_memsz) & ~(page - 1) };
    }
    d.read_only = closed;
    register_no_more(info->dlpi_addr, &d);
    return 1;
}

/* ---- stopping ---- */

static int stop_signal(void)
{
    return SIGRTMAX - 5;
}

static _Noreturn void rest(void)
{
    atomic_store(&resting, true);
    for (;;)
        pause();
}

bool hw_jit_has_stopped(void)
{
    return atomic_load(&resting);
}

static void on_stop(int sig, siginfo_t *info, void *context)
{
    (void)sig, (void)info;
    const ucontext_t *u = context;
    if (!mine || !in_codes((uintptr_t)u->uc_mcontext.gregs[REG_RIP]))
        return;
    atomic_store(&mine->stopped, true);
    rest();
}

/* How many are still to stop; they are asked. */
static unsigned ask(void)
{
    unsigned left = 0;
    pthread_mutex_lock(&lock);
    for (hw_use *u = uses; u; u = u->next) {
        if (u == mine || atomic_load(&u->stopped))
            continue;
        left++;
        pthread_kill(u->thread, stop_signal());
    }
    pthread_mutex_unlock(&lock);
    return left;
}

static void wait_while(bool (*busy)(void))
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    const time_t end = t.tv_sec + ASK_SECONDS;
    while (t.tv_sec < end && busy()) {
        nanosleep(&(struct timespec){ .tv_nsec = ASK_EACH_NS }, NULL);
        clock_gettime(CLOCK_MONOTONIC, &t);
    }
}

static bool is_opening(void)
{
    return atomic_load(&openings) != 0;
}

static bool is_used(void)
{
    return ask() != 0;
}

static void stop_all(void)
{
    if (atomic_load(&process) != getpid())
        return;
    struct sigaction a = { .sa_sigaction = on_stop, .sa_flags = SA_SIGINFO };
    sigfillset(&a.sa_mask);
    sigaction(stop_signal(), &a, NULL);
    pthread_mutex_lock(&lock);
    atomic_store(&ending, true);
    pthread_mutex_unlock(&lock);
    wait_while(is_opening);
    wait_while(is_used);
}

/* ---- uses ---- */

void hw_use_begin(hw_use *u)
{
    sigset_t stop;
    *u = (hw_use){ .thread = pthread_self() };
    sigemptyset(&stop);
    sigaddset(&stop, stop_signal());
    pthread_mutex_lock(&lock);
    if (atomic_load(&ending)) {
        pthread_mutex_unlock(&lock);
        rest();
    }
    u->next = uses;
    uses = u;
    mine = u;
    pthread_mutex_unlock(&lock);
    pthread_sigmask(SIG_UNBLOCK, &stop, &u->mask);
}

void hw_use_end(hw_use *u)
{
    pthread_sigmask(SIG_SETMASK, &u->mask, NULL);
    pthread_mutex_lock(&lock);
    hw_use **at = &uses;
    while (*at != u)
        at = &(*at)->next;
    *at = u->next;
    mine = NULL;
    pthread_mutex_unlock(&lock);
}

void hw_opening_begin(void)
{
    atomic_fetch_add(&openings, 1);
    if (!atomic_load(&ending))
        return;
    atomic_fetch_sub(&openings, 1);
    rest();
}

void hw_opening_end(const void *const *at, unsigned n, void (*at_exit)(void (*fn)(void)))
{
    for (unsigned i = 0; i < n; i++)
        if (at[i])
            dl_iterate_phdr(take_library, (void *)(uintptr_t)at[i]);
    if (at_exit)
        at_exit(stop_all);
    atomic_fetch_sub(&openings, 1);
}

/* ---- the thread that calls exit ---- */

extern int __cxa_thread_atexit_impl(void (*destroy)(void *), void *object, void *dso);
extern void *__dso_handle __attribute__((visibility("hidden")));

/* It may just end, too; then waiting does no harm. */
static void thread_ends(void *unused)
{
    (void)unused;
    if (atomic_load(&process) == getpid())
        wait_while(is_opening);
}

void hw_ending_watch(void)
{
    static _Thread_local bool watched;
    if (watched)
        return;
    watched = true;
    atomic_store(&process, getpid());
    __cxa_thread_atexit_impl(thread_ends, NULL, &__dso_handle);
}
