/* SPDX-License-Identifier: Apache-2.0
 * The tiers of a launch's code. It starts with what there is or is soon made; when better code comes,
 * blocks that start from then on run it. A block stays with the code it began with. */
#include "exec.h"

#include <time.h>

enum { SLOW_TIMES = 8 };

static bool both_tiers(const hw_exec *x)
{
    return x->o.tiers == HW_EXEC_BOTH_TIERS && x->get_code == hw_code_from_jit;
}

hw_status hw_tier_code(hw_run *r, const hw_variant *v, const hw_code **out, hw_diag *d)
{
    hw_exec *x = r->x;
    if (both_tiers(x))
        return hw_jit_get_now(x->jit, r->l->source, v, out, d);
    return x->get_code(x->get_code_ctx, r->l->source, v, out, d);
}

/* Is all that was set up for the one right for the other? Room for saved registers is made when a
 * block starts. */
static bool fits(const hw_code *now, const hw_code *next)
{
    return now->flush_all == next->flush_all && now->suspends == next->suspends &&
           now->recursive == next->recursive && next->stack_bytes <= now->stack_bytes &&
           now->local_bytes == next->local_bytes &&
           now->static_shared_bytes == next->static_shared_bytes &&
           now->n_symbols == next->n_symbols &&
           memcmp(now->symbols, next->symbols, sizeof *now->symbols * now->n_symbols) == 0;
}

hw_variant hw_tier_slow_variant(const hw_run *r)
{
    hw_variant v = r->variant;
    v.no_shapes = true;
    v.independent = v.lockstep_first;
    v.lockstep_first = false;
    return v;
}

void hw_tier_begin(hw_run *r)
{
    atomic_store(&r->next_code, r->code);
    r->improves = both_tiers(r->x) && !r->code->best;
}

static uint64_t used_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Does this worker still run code that may become better? */
static bool improves(const hw_run *r)
{
    return r->improves && atomic_load_explicit(&r->next_code, memory_order_relaxed) == r->code;
}

void hw_tier_enter(hw_worker *k)
{
    if (improves(k->run))
        k->told_ns = used_ns();
}

static void tell_slow(const hw_run *r, uint64_t ns)
{
    const hw_code *slow = atomic_load(&r->slow);
    const hw_variant v = hw_tier_slow_variant(r);
    if (slow && !slow->best && both_tiers(r->x))
        hw_jit_ran(r->x->jit, r->l->source, &v, slow, ns);
}

/* Tell how much processor time the code has taken on this worker since it was told last. */
static bool tell(hw_worker *k)
{
    const hw_run *r = k->run;
    uint64_t now = used_ns(), ns = now - k->told_ns;
    k->told_ns = now;
    tell_slow(r, ns); /* which of the two ran is not known: it counts for both */
    return hw_jit_ran(r->x->jit, r->l->source, &r->variant, r->code, ns);
}

void hw_tier_look(hw_worker *k)
{
    hw_run *r = k->run;
    if (!improves(r))
        return;
    /* A listener's counters are those of one code. */
    const hw_code *better = tell(k) && !r->l->listener ? hw_jit_better(r->code) : NULL;
    if (better && fits(r->code, better))
        atomic_store(&r->next_code, better);
}

void hw_tier_leave(hw_worker *k)
{
    const hw_run *r = k->run;
    const hw_code *slow = atomic_load(&r->slow);
    if (improves(r))
        tell(k);
    else if (slow) /* for how long is not measured: it is worth better code after some launches */
        tell_slow(r, slow->made_us * UINT64_C(1000) / SLOW_TIMES);
}
