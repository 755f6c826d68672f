/* SPDX-License-Identifier: Apache-2.0
 * What generated code calls: faults, address checks, and the device runtime's functions. */
#include "count.h"
#include "tmem.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define FOR_LANES(l, lanes)                                                               \
    for (uint32_t rest_ = (lanes), l = rest_ ? (uint32_t)__builtin_ctz(rest_) : 0; rest_; \
         rest_ &= rest_ - 1, l = rest_ ? (uint32_t)__builtin_ctz(rest_) : 0)

static hw_block *block_of(const hw_frame *f)
{
    return f->owner;
}

uint64_t hw_now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* ---- callbacks ---- */

static void bad_address(hw_frame *f, uint64_t addr, uint32_t bytes, uint32_t loc)
{
    f->fault_loc = loc;
    if (bytes && addr % bytes)
        hw_raise_address(f, HW_F_MISALIGNED_ADDRESS, loc, addr);
    if (!hw_mem_is_registered(addr, bytes))
        hw_raise_address(f, HW_F_ILLEGAL_ADDRESS, loc, addr);
}

/* Lanes that have left the spin loop wait for the others at its end; one of them has the lock. */
_Noreturn static void livelock(hw_frame *f, uint32_t loc)
{
    uint32_t spin = f->spin_mask & f->lanes, wait = f->lanes & ~f->spin_mask;
    int spinning = __builtin_popcount(spin), waiting = __builtin_popcount(wait);
    if (waiting == 0)
        hw_raise(f, HW_F_LIVELOCK, loc, "SIMT livelock: %d lanes spin and none can leave the loop",
                 spinning);
    if (waiting == 1)
        hw_raise(f, HW_F_LIVELOCK, loc,
                 "SIMT livelock: %d lanes spin while lane %d waits for them to leave the loop; it "
                 "probably holds the lock",
                 spinning, __builtin_ctz(wait));
    hw_raise(f, HW_F_LIVELOCK, loc,
             "SIMT livelock: %d lanes spin while %d others, the first of them lane %d, wait for "
             "them to leave the loop; one of those probably holds the lock",
             spinning, waiting, __builtin_ctz(wait));
}

static void fault(hw_frame *f, uint32_t status, uint32_t loc)
{
    if (status == HW_F_LIVELOCK)
        livelock(f, loc);
    if (status == HW_F_TIMEOUT) /* the code has seen the stop word */
        hw_raise(f, HW_F_TIMEOUT, loc, "the launch did not end within %llu ms and was stopped",
                 (unsigned long long)block_of(f)->x->o.timeout_ms);
    if (status == HW_F_STACK_OVERFLOW)
        hw_raise(f, HW_F_STACK_OVERFLOW, loc,
                 "stack overflow: calls take more than the %llu bytes of a thread's stack "
                 "(cudaLimitStackSize)",
                 (unsigned long long)hw_exec_get_limit(block_of(f)->x, HW_EXEC_STACK));
    hw_status s = status > HW_OK && status < HW_STATUS_COUNT ? (hw_status)status : HW_F_TRAP;
    hw_raise(f, s, loc, "%s", "");
}

/* Not cycles of the device: host time at the device's clock rate. */
static uint64_t clock_now(hw_frame *f, uint32_t which)
{
    uint64_t ns = hw_now_ns();
    if (which == 1)
        return ns;
    double mhz = block_of(f)->x->dev->compute.clock_mhz;
    return (uint64_t)((double)ns * (mhz / 1000.0));
}

/* ---- device runtime ---- */

static uint64_t u64_of(const hw_lane_arrays *io, uint32_t i, uint32_t lane)
{
    return ((const uint64_t *)io->src[i])[lane];
}

static void h_vprintf(hw_frame *f, uint32_t lanes, const hw_lane_arrays *io, uint64_t aux)
{
    (void)aux;
    hw_block *b = block_of(f);
    uint64_t index = atomic_load_explicit(&b->index, memory_order_relaxed);
    FOR_LANES(l, lanes)
    {
        f->fault_lanes = 1u << l;
        int n = hw_print_call(&b->worker->prints, f, index, u64_of(io, 0, l), u64_of(io, 1, l));
        if (io->ndst && io->dst[0])
            ((int32_t *)io->dst[0])[l] = n;
    }
    f->fault_lanes = 0;
}

/* __assertfail(message, file, line, function, char_size): a line for each lane, as on a device. */
static void h_assertfail(hw_frame *f, uint32_t lanes, const hw_lane_arrays *io, uint64_t aux)
{
    (void)aux;
    enum { PART = 1024, LINE = 4096 };
    hw_worker *k = block_of(f)->worker;
    const uint32_t *n = f->ntid;
    char message[PART], file[PART], function[PART], line[LINE];
    FOR_LANES(l, lanes)
    {
        uint32_t t = f->warp * HW_WARP_LANES + l;
        hw_device_string(f, u64_of(io, 0, l), message, sizeof message);
        hw_device_string(f, u64_of(io, 1, l), file, sizeof file);
        hw_device_string(f, u64_of(io, 3, l), function, sizeof function);
        int len =
            snprintf(line, sizeof line,
                     "%s:%u: %s: block: [%u,%u,%u], thread: [%u,%u,%u] Assertion `%s` "
                     "failed.\n",
                     file, ((const uint32_t *)io->src[2])[l], function, f->ctaid[0], f->ctaid[1],
                     f->ctaid[2], t % n[0], t / n[0] % n[1], t / n[0] / n[1], message);
        size_t have = k->assert_text ? strlen(k->assert_text) : 0;
        char *text = len > 0 ? realloc(k->assert_text, have + (size_t)len + 1) : NULL;
        if (text) {
            k->assert_text = text;
            memcpy(text + have, line, (size_t)len + 1);
        }
    }
    uint32_t first = lanes ? (uint32_t)__builtin_ctz(lanes) : 0;
    f->fault_lanes = 1u << first;
    hw_raise(f, HW_F_ASSERT, f->fault_loc,
             "device-side assert: %.120s:%u: Assertion `%.120s` failed", file,
             ((const uint32_t *)io->src[2])[first], message);
}

static void h_malloc(hw_frame *f, uint32_t lanes, const hw_lane_arrays *io, uint64_t aux)
{
    (void)aux;
    FOR_LANES(l, lanes)
    {
        uint64_t p = hw_heap_take(&block_of(f)->x->heap, u64_of(io, 0, l));
        if (io->ndst && io->dst[0])
            ((uint64_t *)io->dst[0])[l] = p;
    }
}

static void h_free(hw_frame *f, uint32_t lanes, const hw_lane_arrays *io, uint64_t aux)
{
    (void)aux;
    FOR_LANES(l, lanes)
    {
        uint64_t p = u64_of(io, 0, l);
        f->fault_lanes = 1u << l;
        if (p && !hw_heap_give(&block_of(f)->x->heap, p))
            hw_raise(
                f, HW_F_TRAP, f->fault_loc,
                "free of 0x%llx, which device malloc has not returned or which was freed before",
                (unsigned long long)p);
    }
    f->fault_lanes = 0;
}

/* ---- the table ---- */

/* clang-format off */
static hw_helper_fn *const own[HW_H_COUNT] = {
    [HW_H_VPRINTF] = h_vprintf, [HW_H_ASSERTFAIL] = h_assertfail,
    [HW_H_MALLOC] = h_malloc,   [HW_H_FREE] = h_free,
    [HW_H_TEX] = hw_h_tex,      [HW_H_SURF] = hw_h_surf,
    [HW_H_TEX_QUERY] = hw_h_tex_query,
    [HW_H_DEVICE_CALL] = hw_h_device_call,
    [HW_H_MBARRIER] = hw_h_mbarrier, [HW_H_MBARRIER_WAIT] = hw_h_mbarrier_wait,
    [HW_H_BULK] = hw_h_bulk,    [HW_H_TENSOR] = hw_h_tensor, [HW_H_TENSORMAP] = hw_h_tensormap,
    [HW_H_WGMMA] = hw_h_wgmma,
    [HW_H_TMEM] = hw_h_tmem,    [HW_H_TMEM_LOAD] = hw_h_tmem_load, [HW_H_TMEM_STORE] = hw_h_tmem_store,
    [HW_H_TMEM_COPY] = hw_h_tmem_copy, [HW_H_TMEM_SHIFT] = hw_h_tmem_shift, [HW_H_TMEM_MMA] = hw_h_tmem_mma,
    [HW_H_TMEM_COMMIT] = hw_h_tmem_commit,
};
#define MISSING(name)                                                                          \
    static void missing_##name(hw_frame *f, uint32_t lanes, const hw_lane_arrays *io, uint64_t aux) \
    {                                                                                          \
        (void)lanes, (void)io, (void)aux;                                                      \
        hw_raise(f, HW_F_ILLEGAL_INSTRUCTION, f->fault_loc, "not supported: device function %s", #name); \
    }
#define HW_HELPER(name, text) MISSING(name)
#include "helper.def"
#undef HW_HELPER
static hw_helper_fn *const missing[HW_H_COUNT] = {
#define HW_HELPER(name, text) missing_##name,
#include "helper.def"
#undef HW_HELPER
};
/* clang-format on */

static hw_helper_fn *helpers[HW_H_COUNT];
static const hw_callbacks callbacks = {
    .bad_address = bad_address,
    .fault = fault,
    .helpers = helpers,
    .listen = hw_count_listen,
    .clock = clock_now,
    .arrive = hw_block_arrive,
    .park = hw_block_park,
    .sync = hw_block_sync,
};

static void fill_helpers(void)
{
    for (unsigned i = 0; i < HW_H_COUNT; i++) {
        helpers[i] = own[i] ? own[i] : hw_jit_helper(i);
        if (!helpers[i])
            helpers[i] = missing[i];
    }
}

const hw_callbacks *hw_exec_callbacks(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, fill_helpers);
    return &callbacks;
}
