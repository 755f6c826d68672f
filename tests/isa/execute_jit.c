/* SPDX-License-Identifier: Apache-2.0
 * Executes the cases as generated machine code, of the tier in HW_TEST_TIER. */
#include "execute.h"
#include "hw_jit.h"

#include <immintrin.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

const char *const execute_name = "machine code";

enum { ARENA = 1 << 26 };
static uint8_t *memory;
static size_t used;
static jmp_buf out;
static hw_jit *jit;
static unsigned number;

void *execute_memory(size_t bytes)
{
    if (!memory)
        memory = mmap(NULL, ARENA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    void *p = memory + used;
    used += (bytes + 63) & ~(size_t)63;
    return memory != MAP_FAILED && used <= ARENA ? p : NULL;
}

static void bad_address(hw_frame *f, uint64_t address, uint32_t bytes, uint32_t loc)
{
    (void)f, (void)loc;
    printf("bad address %llx, %u bytes\n", (unsigned long long)address, bytes);
    longjmp(out, 1);
}

static void fault(hw_frame *f, uint32_t status, uint32_t loc)
{
    (void)f, (void)loc;
    printf("fault: %s\n", hw_status_name((hw_status)status));
    longjmp(out, 1);
}

static const hw_callbacks callbacks = { .bad_address = bad_address,
                                        .fault = fault,
                                        .helpers = hw_jit_helpers };

static hw_status build(void *ctx, hw_arena *a, hw_wir_module **m, hw_diag *d)
{
    (void)a, (void)d;
    *m = ctx;
    return HW_OK;
}

static const hw_code *compile(hw_wir_module *w, unsigned lanes)
{
    const char *tier = getenv("HW_TEST_TIER");
    hw_variant variant = { .block = { lanes, 1, 1 },
                           .tier = tier ? (uint8_t)atoi(tier) : 1,
                           .small_grid = true };
    hw_jit_source s = { .name = "case", .build = build, .ctx = w };
    number++;
    memcpy(s.key, &number, sizeof number);
    if (!jit) {
        jit = hw_jit_new(NULL);
        hw_jit_set_cpu(jit, getenv("HALFWARP_CPU"));
    }
    hw_diag *d = hw_diag_new(w->arena);
    const hw_code *code = NULL;
    if (hw_jit_get(jit, &s, &variant, &code, d) == HW_OK)
        return code;
    hw_str text = hw_diag_text(d, w->arena);
    printf("%.*s\n", HW_STR_ARG(text));
    return NULL;
}

/* One warp under the mode of floats that its code expects. */
static bool run_warp(const hw_code *code, hw_frame *f)
{
    unsigned old = _mm_getcsr();
    if (setjmp(out)) {
        _mm_setcsr(old);
        return false;
    }
    if (code->flush_all)
        _mm_setcsr(old | 0x8040);
    uint32_t end;
    do
        end = code->run(f);
    while (end == HW_WARP_YIELD || end == HW_WARP_BARRIER); /* the only warp waits for nobody */
    _mm_setcsr(old);
    if (end != HW_WARP_DONE)
        printf("the warp did not end\n");
    return end == HW_WARP_DONE;
}

enum { SHARED = 1 << 16, LOCAL = 1 << 14 };

bool execute(const execute_job *j)
{
    static uint32_t stop, tid[3][32];
    static _Alignas(64) uint8_t save[1 << 16], stack[1 << 16];
    static uint8_t *shared, *local;
    const hw_code *code = compile(j->w, j->lanes);
    if (!code)
        return false;
    if (!shared) {
        shared = execute_memory(SHARED);
        local = execute_memory(32 * LOCAL);
    }
    for (uint32_t l = 0; l < 32; l++)
        tid[0][l] = l;
    hw_frame f = { .params = (uint8_t *)(uintptr_t)j->params,
                   .shared = shared,
                   .local = local,
                   .local_stride = LOCAL,
                   .symbols = j->symbols,
                   .save = save,
                   .stack = stack,
                   .call = &callbacks,
                   .range_lo = (uint64_t)(uintptr_t)memory,
                   .range_size = ARENA,
                   .nctaid = { j->blocks, 1, 1 },
                   .ntid = { j->lanes, 1, 1 },
                   .nwarps = 1,
                   .dynamic_shared = SHARED / 2,
                   .total_shared = SHARED,
                   .tid = tid[0],
                   .stop = &stop };
    for (unsigned k = 0; k < j->blocks; k++) {
        f.ctaid[0] = k;
        f.lanes = j->lanes >= 32 ? UINT32_MAX : (UINT32_C(1) << j->lanes) - 1;
        f.resume = 0;
        if (!run_warp(code, &f))
            return false;
    }
    return true;
}
