/* SPDX-License-Identifier: Apache-2.0
 * Faults: signals in generated code made jumps to the worker, and the sentence that says what
 * happened where. */
#include "exec.h"
#include "sentence.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>

/* ---- signals ---- */

static const int signals[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL };
static struct sigaction previous[HW_COUNTOF(signals)]; /* whose turn it is for anything not ours */
static pthread_mutex_t install_lock = PTHREAD_MUTEX_INITIALIZER;
/* Initial-exec: the handler must be able to read it without allocating. */
static _Thread_local hw_worker *this_worker __attribute__((tls_model("initial-exec")));

void hw_fault_set_worker(hw_worker *k)
{
    this_worker = k;
}

static uint64_t stack_pointer(const void *context)
{
#ifdef __x86_64__
    return (uint64_t)((const ucontext_t *)context)->uc_mcontext.gregs[REG_RSP];
#else
    (void)context;
    return 0;
#endif
}

static uint64_t program_counter(const void *context)
{
#ifdef __x86_64__
    return (uint64_t)((const ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
#else
    (void)context;
    return 0;
#endif
}

enum { STACK_SLACK = 1 << 20 };

/* A fault near the stack pointer: recursion ran into the guard of the host thread's stack. */
static bool is_stack_overflow(uint64_t addr, uint64_t sp)
{
    return sp && addr - (sp - STACK_SLACK) < 2 * STACK_SLACK;
}

static void chain(int sig, siginfo_t *info, void *context)
{
    size_t i = 0;
    while (i + 1 < HW_COUNTOF(signals) && signals[i] != sig)
        i++;
    const struct sigaction *old = &previous[i];
    if (old->sa_flags & SA_SIGINFO) {
        old->sa_sigaction(sig, info, context);
    } else if (old->sa_handler != SIG_DFL && old->sa_handler != SIG_IGN) {
        old->sa_handler(sig);
    } else {
        signal(sig, SIG_DFL); /* the instruction faults again and ends the process as it should */
        if (info->si_code <= 0)
            raise(sig);
    }
}

static void on_signal(int sig, siginfo_t *info, void *context)
{
    hw_worker *k = this_worker;
    if (sig == SIGSEGV && info->si_code == SEGV_ACCERR &&
        hw_mem_was_moving((uintptr_t)info->si_addr))
        return; /* tried again */
    /* si_code > 0: raised by an instruction, not sent by somebody. */
    if (!k || !k->in_code || info->si_code <= 0) {
        chain(sig, info, context);
        return;
    }
    uint64_t addr = (uint64_t)(uintptr_t)info->si_addr;
    bool memory = sig == SIGSEGV || sig == SIGBUS;
    k->raised = (hw_raised){
        .status = memory ? HW_F_ILLEGAL_ADDRESS : HW_F_ILLEGAL_INSTRUCTION,
        .has_address = memory,
        .address = addr,
        .loc = k->turns.running ? k->turns.running->fault_loc : 0,
        .pc = program_counter(context),
    };
    if (memory && is_stack_overflow(addr, stack_pointer(context)))
        k->raised.status = HW_F_STACK_OVERFLOW;
    /* The jump does not restore the mask, and what runs handlers (a sanitizer) may have set one. */
    pthread_sigmask(SIG_SETMASK, &((const ucontext_t *)context)->uc_sigmask, NULL);
    siglongjmp(k->escape, 1);
}

static bool is_ours(const struct sigaction *a)
{
    return (a->sa_flags & SA_SIGINFO) && a->sa_sigaction == on_signal;
}

void hw_fault_install(void)
{
    struct sigaction segv;
    if (sigaction(SIGSEGV, NULL, &segv) == 0 && is_ours(&segv))
        return; /* asked before each launch, so kept to one system call */
    pthread_mutex_lock(&install_lock);
    for (size_t i = 0; i < HW_COUNTOF(signals); i++) {
        struct sigaction now;
        if (sigaction(signals[i], NULL, &now) != 0 || is_ours(&now))
            continue;
        struct sigaction ours = { .sa_sigaction = on_signal,
                                  .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER };
        sigemptyset(&ours.sa_mask);
        previous[i] = now;
        sigaction(signals[i], &ours, NULL);
    }
    pthread_mutex_unlock(&install_lock);
}

/* ---- alternate stacks: one a thread, for faults on an exhausted stack ---- */

enum { ALT_BYTES = 65536 };
static pthread_key_t alt_key;
static pthread_once_t alt_once = PTHREAD_ONCE_INIT;

static void alt_free(void *stack)
{
    stack_t off = { .ss_flags = SS_DISABLE };
    sigaltstack(&off, NULL);
    munmap(stack, ALT_BYTES);
}

static void alt_key_new(void)
{
    if (pthread_key_create(&alt_key, alt_free) != 0)
        HW_BUG("no thread keys left");
}

void hw_fault_thread_begin(void)
{
    static _Thread_local bool begun;
    if (begun)
        return;
    begun = true;
    pthread_once(&alt_once, alt_key_new);
    stack_t now;
    if (sigaltstack(NULL, &now) != 0 || !(now.ss_flags & SS_DISABLE))
        return; /* the program's own will do */
    void *stack = mmap(NULL, ALT_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (stack == MAP_FAILED)
        return; /* an overflow of the host stack then ends the process; all else works */
    stack_t alt = { .ss_sp = stack, .ss_size = ALT_BYTES };
    sigaltstack(&alt, NULL);
    pthread_setspecific(alt_key, stack);
}

/* ---- raising ---- */

static hw_worker *worker_of(const hw_frame *f)
{
    return ((hw_block *)f->owner)->worker;
}

_Noreturn void hw_raise(hw_frame *f, hw_status s, uint32_t loc, const char *fmt, ...)
{
    hw_worker *k = worker_of(f);
    k->turns.running = f;
    k->raised = (hw_raised){ .status = s, .loc = loc };
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(k->raised.text, sizeof k->raised.text, fmt, ap);
    va_end(ap);
    siglongjmp(k->escape, 1);
}

_Noreturn void hw_raise_address(hw_frame *f, hw_status s, uint32_t loc, uint64_t addr)
{
    hw_worker *k = worker_of(f);
    k->turns.running = f;
    k->raised = (hw_raised){ .status = s, .loc = loc, .has_address = true, .address = addr };
    siglongjmp(k->escape, 1);
}

/* ---- the sentence ---- */

void hw_text_add(hw_text *t, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(t->at, (size_t)(t->end - t->at), fmt, ap);
    va_end(ap);
    if (n > 0)
        t->at += n < t->end - t->at ? n : t->end - t->at - 1;
}

typedef unsigned long long ull;

static const char *kind_words(hw_mem_kind k)
{
    /* clang-format off */
    static const char *const words[] = {
        [HW_MEM_DEVICE] = "allocation", [HW_MEM_MANAGED] = "managed allocation",
        [HW_MEM_HOST] = "host allocation", [HW_MEM_REGISTERED] = "registration",
        [HW_MEM_RESERVED] = "address reservation (nothing mapped here)", [HW_MEM_INTERNAL] = "internal buffer",
    };
    /* clang-format on */
    return words[k];
}

/* Addresses that mean something to a block: its shared and local windows. */
static bool add_window(hw_text *t, const hw_run *r, const hw_frame *f, uint64_t addr)
{
    uint64_t half = UINT64_C(1) << (HW_WINDOW_BITS - 1);
    uint64_t rank = (addr - f->cluster_base + half) >> HW_WINDOW_BITS;
    if (r->cluster_blocks > 1 && rank < r->cluster_blocks) {
        int64_t at = (int64_t)(addr - f->cluster_base - (rank << HW_WINDOW_BITS));
        hw_text_add(t, " (offset %lld of %u bytes of shared memory of block %llu of the cluster)",
                    (long long)at, r->shared_bytes, (ull)rank);
        return true;
    }
    uint64_t shared = (uint64_t)(uintptr_t)f->shared, local = (uint64_t)(uintptr_t)f->local;
    uint64_t local_bytes = r->local_stride * HW_WARP_LANES;
    /* A negative offset may also have become a large one: shared addresses have 32 bits. A kernel
     * without shared memory does not go far into it: that is some other address. */
    const uint64_t below = r->shared_bytes ? UINT64_C(1) << 31 : 0;
    const uint64_t above = r->shared_bytes ? UINT64_C(1) << 32 : UINT64_C(1) << 20;
    if (addr - shared + below < below + above && addr - r->x->slots_base < UINT64_C(1) << 33)
        hw_text_add(t, " (offset %lld of %u bytes of shared memory)",
                    (long long)(int32_t)(uint32_t)(addr - shared), r->shared_bytes);
    else if (local && addr - local < local_bytes + 65536)
        hw_text_add(t, " (%llu bytes past a thread's %llu bytes of local memory)",
                    (ull)((addr - local) % r->local_stride), (ull)r->local_stride);
    else
        return false;
    return true;
}

static void add_near(hw_text *t, const hw_exec *x, uint64_t addr)
{
    /* An overrun is noticed where the device's page ends, which is where the next gap begins. */
    const uint64_t near = UINT64_C(4) << 20, just_before = 32768;
    hw_mem_info below, above, freed;
    hw_mem_near(addr, &below, &above);
    uint64_t past = below.size ? addr - (below.base + below.size) : UINT64_MAX;
    uint64_t before = above.size ? above.base - addr : UINT64_MAX;
    if (below.size && below.base == x->slots_base) /* a window for addresses, nobody's memory */
        hw_text_add(t, " (in no allocation)");
    else if (below.size && addr - below.base < below.size)
        hw_text_add(t, " (inside a %llu-byte %s at 0x%llx)", (ull)below.size,
                    kind_words(below.kind), (ull)below.base);
    else if (hw_mem_find_freed(addr, &freed))
        hw_text_add(t, " (byte %llu of a %llu-byte %s that has been freed)",
                    (ull)(addr - freed.base), (ull)freed.size, kind_words(freed.kind));
    else if (past < near && (past <= before || before > just_before))
        hw_text_add(t, " (%llu bytes past the end of a %llu-byte %s at 0x%llx)", (ull)past,
                    (ull)below.size, kind_words(below.kind), (ull)below.base);
    else if (before < near)
        hw_text_add(t, " (%llu bytes before a %llu-byte %s at 0x%llx)", (ull)before,
                    (ull)above.size, kind_words(above.kind), (ull)above.base);
    else if (addr < 65536)
        hw_text_add(t, " (a null pointer)");
    else
        hw_text_add(t, " (in no allocation)");
}

static void thread_at(const hw_run *r, uint32_t linear, uint32_t out[3])
{
    const uint32_t *n = r->l->block;
    out[0] = linear % n[0];
    out[1] = linear / n[0] % n[1];
    out[2] = linear / n[0] / n[1];
}

/* The machine instruction knows best; helpers fault with the loc their call has left behind. */
static hw_wir_loc find_loc(const hw_run *r, const hw_raised *e)
{
    const hw_code *all[] = { r->code, atomic_load(&r->next_code), atomic_load(&r->slow) };
    const hw_code *c = r->code;
    uint32_t loc = e->loc;
    for (unsigned i = 0; i < HW_COUNTOF(all) && e->pc && r->x->get_code == hw_code_from_jit; i++) {
        uint32_t at = all[i] ? hw_jit_loc(all[i], e->pc) : 0;
        if (at) {
            loc = at;
            c = all[i];
            break;
        }
    }
    return loc && loc < c->n_locs ? c->locs[loc] : (hw_wir_loc){ 0 };
}

static void add_place(hw_text *t, const hw_wir_loc *l)
{
    if (l->file && l->line)
        hw_text_add(t, " at %s:%u", l->file, l->line);
    else if (l->ptx_line)
        hw_text_add(t, " at line %u of its PTX", l->ptx_line);
}

/* Names of templates are longer than what there is to say. */
static void add_kernel(hw_text *t, const char *name)
{
    enum { MOST = 120 };
    hw_text_add(t, strlen(name) > MOST ? "%.*s..." : "%.*s", MOST, name);
}

static void describe(hw_fault *out, const hw_run *r, const hw_raised *e, const hw_frame *f,
                     uint32_t linear, uint32_t lanes)
{
    hw_text t = { out->text, out->text + sizeof out->text };
    if (e->text[0])
        hw_text_add(&t, "%s", e->text);
    else
        hw_text_add(&t, "%s", hw_status_text(e->status));
    if (e->has_address) {
        hw_text_add(&t, ": address 0x%llx", (ull)e->address);
        if (!add_window(&t, r, f, e->address))
            add_near(&t, r->x, e->address);
    }
    hw_text_add(&t, "; kernel ");
    add_kernel(&t, out->kernel);
    add_place(&t, &out->loc);
    hw_text_add(&t, ", block (%u,%u,%u)", out->block[0], out->block[1], out->block[2]);
    if (__builtin_popcount(lanes) > 1) {
        uint32_t last[3];
        thread_at(r, linear - (uint32_t)__builtin_ctz(lanes) + 31 - (uint32_t)__builtin_clz(lanes),
                  last);
        hw_text_add(&t, ", among threads (%u,%u,%u) to (%u,%u,%u)", out->thread[0], out->thread[1],
                    out->thread[2], last[0], last[1], last[2]);
    } else {
        hw_text_add(&t, ", thread (%u,%u,%u)", out->thread[0], out->thread[1], out->thread[2]);
    }
}

/* A copy that lives as long as the exec: the kernel's module may be unloaded before anyone asks. */
static const char *keep_name(hw_exec *x, const char *name)
{
    pthread_mutex_lock(&x->lock);
    const char *kept = hw_arena_cstr(x->names, hw_str_of(name ? name : "?"));
    pthread_mutex_unlock(&x->lock);
    return kept;
}

static void fill(hw_fault *out, hw_worker *k)
{
    hw_run *r = k->run;
    const hw_raised *e = &k->raised;
    const hw_frame *f = k->turns.running;
    uint32_t lanes = f->fault_lanes ? f->fault_lanes : f->lanes;
    *out = (hw_fault){ .status = e->status,
                       .kernel = keep_name(r->x, r->l->source->name),
                       .loc = find_loc(r, e),
                       .address = e->has_address ? e->address : 0 };
    uint32_t linear = f->warp * HW_WARP_LANES + (lanes ? (uint32_t)__builtin_ctz(lanes) : 0);
    memcpy(out->block, f->ctaid, sizeof out->block);
    thread_at(r, linear, out->thread);
    describe(out, r, e, f, linear, lanes);
}

/* ---- stopping ---- */

void hw_run_stop(hw_run *r, uint64_t from_block)
{
    pthread_mutex_lock(&r->lock);
    if (from_block < atomic_load(&r->stop_from))
        atomic_store(&r->stop_from, from_block);
    for (unsigned i = 0; i < r->nworkers; i++) {
        hw_worker *k = &r->workers[i];
        for (uint32_t j = 0; j < k->nblocks; j++)
            if (atomic_load(&k->blocks[j]->index) >= from_block)
                __atomic_store_n(&k->blocks[j]->stop, 1, __ATOMIC_RELAXED);
    }
    pthread_mutex_unlock(&r->lock);
}

/* Is this fault the one to report? The lowest block's is, but one that was merely stopped gives way.
 */
static bool is_better(const hw_run *r, const hw_raised *e, uint64_t index)
{
    if (r->fault.status == HW_OK)
        return true;
    if (e->status == HW_F_TIMEOUT || r->fault.status == HW_F_TIMEOUT)
        return r->fault.status == HW_F_TIMEOUT &&
               (e->status != HW_F_TIMEOUT || index < r->fault_block);
    return index < r->fault_block;
}

void hw_fault_keep(hw_worker *k)
{
    hw_run *r = k->run;
    uint64_t index = atomic_load(&k->current->index);
    if (k->raised.status == HW_F_TIMEOUT && !atomic_load(&r->timed_out))
        return; /* stopped because of a fault elsewhere */
    hw_fault fault;
    fill(&fault, k);
    pthread_mutex_lock(&r->lock);
    if (is_better(r, &k->raised, index)) {
        r->fault = fault;
        r->fault_block = index;
        free(r->assert_text);
        r->assert_text = k->assert_text;
        k->assert_text = NULL;
    }
    if (!atomic_load(&r->fault_ns))
        atomic_store(&r->fault_ns, hw_now_ns());
    pthread_mutex_unlock(&r->lock);
    hw_run_stop(r, index);
}

void hw_fault_timeout(hw_run *r)
{
    hw_fault *f = &r->fault;
    *f = (hw_fault){ .status = HW_F_TIMEOUT, .kernel = keep_name(r->x, r->l->source->name) };
    hw_text t = { f->text, f->text + sizeof f->text };
    hw_text_add(&t, "%s: kernel ", hw_status_text(f->status));
    add_kernel(&t, f->kernel);
    hw_text_add(&t, " did not end within %llu ms", (ull)r->x->o.timeout_ms);
}
