/* SPDX-License-Identifier: Apache-2.0
 * The set-up of exec's tests. */
#include "rig.h"

#include <unistd.h>

static hw_status give_code(void *ctx, const hw_jit_source *s, const hw_variant *v,
                           const hw_code **out, hw_diag *d)
{
    (void)s, (void)d;
    rig *r = ctx;
    if (v->no_shapes) {
        *out = &r->slow;
    } else {
        r->asked = *v;
        *out = &r->code;
    }
    return HW_OK;
}

rig *rig_new(unsigned workers, const hw_exec_options *more)
{
    rig *r = calloc(1, sizeof *r);
    hw_exec_options o = more ? *more : (hw_exec_options){ 0 };
    o.workers = r->workers = workers;
    r->arena = hw_arena_new();
    assert_int_equal(hw_device_load(r->arena, "h100", &r->dev, NULL), HW_OK);
    assert_int_equal(hw_mem_new(UINT64_C(4) << 30, &r->mem, NULL), HW_OK);
    r->x = hw_exec_new(r->dev, r->mem, NULL, &o);
    hw_exec_code_from(r->x, give_code, r);
    return r;
}

void rig_free(rig *r)
{
    hw_exec_free(r->x);
    hw_mem_free_all(r->mem);
    hw_arena_free(r->arena);
    free(r);
}

uint64_t rig_alloc(rig *r, uint64_t bytes)
{
    uint64_t a = 0;
    assert_int_equal(hw_mem_alloc(r->mem, bytes, 0, HW_MEM_DEVICE, 0, &a), HW_OK);
    memset((void *)(uintptr_t)a, 0, bytes);
    return a;
}

static uint64_t address_of_symbol(void *ctx, uint32_t id)
{
    (void)ctx;
    return 0x1000u + id;
}

hw_status rig_run(rig *r, hw_warp_fn *fn, rig_shape s, unsigned nparams, const uint64_t *params)
{
    hw_jit_source source = { .name = "kernel" };
    hw_launch l = { .source = &source,
                    .dynamic_shared_bytes = s.shared,
                    .params = params,
                    .param_bytes = nparams * (uint32_t)sizeof *params,
                    .symbol_address = address_of_symbol,
                    .cooperative = s.cooperative };
    for (int i = 0; i < 3; i++) {
        l.grid[i] = s.grid[i] ? s.grid[i] : 1;
        l.block[i] = s.block[i] ? s.block[i] : 1;
    }
    r->code.run = fn;
    r->code.suspends = r->code.spins = s.suspends;
    return hw_exec_launch(r->x, &l, &r->fault, NULL);
}

char *rig_capture(FILE *stream, void (*fn)(void *ctx), void *ctx)
{
    fflush(stream);
    FILE *file = tmpfile();
    int saved = dup(fileno(stream));
    dup2(fileno(file), fileno(stream));
    fn(ctx);
    fflush(stream);
    dup2(saved, fileno(stream));
    close(saved);
    long n = lseek(fileno(file), 0, SEEK_END);
    char *text = calloc(1, (size_t)n + 1);
    assert_int_equal(pread(fileno(file), text, (size_t)n, 0), n);
    fclose(file);
    return text;
}
