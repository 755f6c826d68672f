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

static rig *make(const char *device, hw_jit *jit, unsigned workers, const hw_exec_options *more)
{
    rig *r = calloc(1, sizeof *r);
    hw_exec_options o = more ? *more : (hw_exec_options){ 0 };
    o.workers = r->workers = workers;
    r->arena = hw_arena_new();
    r->jit = jit;
    if (jit)
        hw_jit_set_cpu(jit, getenv("HALFWARP_CPU")); /* as the library does */
    assert_int_equal(hw_device_load(r->arena, device, &r->dev, NULL), HW_OK);
    assert_int_equal(hw_mem_new(UINT64_C(4) << 30, &r->mem, NULL), HW_OK);
    r->x = hw_exec_new(r->dev, r->mem, jit, &o);
    return r;
}

rig *rig_new(unsigned workers, const hw_exec_options *more)
{
    rig *r = make("h100", NULL, workers, more);
    hw_exec_code_from(r->x, give_code, r);
    return r;
}

rig *rig_new_generated(const char *device, unsigned workers, const hw_exec_options *more)
{
    hw_exec_options o = more ? *more : (hw_exec_options){ 0 };
    if (!o.timeout_ms)
        o.timeout_ms = 120000; /* a failure is to be told, not waited for */
    return make(device, hw_jit_new(NULL), workers, &o);
}

rig *rig_new_cached(const char *device, unsigned workers, const char *cache_dir)
{
    return make(device, hw_jit_new(cache_dir), workers, NULL);
}

void rig_free(rig *r)
{
    hw_exec_free(r->x);
    if (r->jit)
        hw_jit_free(r->jit);
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

static hw_status launch(rig *r, const hw_jit_source *source, rig_shape s, unsigned nparams,
                        const uint64_t *params, hw_diag *d)
{
    hw_launch l = { .source = source,
                    .dynamic_shared_bytes = s.shared,
                    .params = params,
                    .param_bytes = nparams * (uint32_t)sizeof *params,
                    .symbol_address = address_of_symbol,
                    .cooperative = s.cooperative,
                    .listener = r->listener };
    for (int i = 0; i < 3; i++) {
        l.grid[i] = s.grid[i] ? s.grid[i] : 1;
        l.block[i] = s.block[i] ? s.block[i] : 1;
    }
    return hw_exec_launch(r->x, &l, &r->fault, d);
}

hw_status rig_run(rig *r, hw_warp_fn *fn, rig_shape s, unsigned nparams, const uint64_t *params)
{
    hw_jit_source source = { .name = r->name ? r->name : "kernel" };
    r->code.run = fn;
    r->code.suspends = r->code.spins = s.suspends;
    return launch(r, &source, s, nparams, params, NULL);
}

static hw_status build(void *ctx, hw_arena *a, hw_wir_module **m, hw_diag *d)
{
    HW_TRY(hw_wir_parse(a, hw_str_of(ctx), "test", m, d));
    return hw_wir_verify(*m, d);
}

static void *keep_text(void *ctx)
{
    return strdup(ctx);
}

hw_status rig_run_text(rig *r, const char *text, rig_shape s, unsigned nparams,
                       const uint64_t *params)
{
    hw_arena *a = hw_arena_new();
    hw_diag *d = hw_diag_new(a);
    hw_jit_source source = { .name = "kernel",
                             .build = build,
                             .ctx = hw_arena_cstr(a, hw_str_of(text)),
                             .keep = keep_text,
                             .drop = free };
    uint64_t hash = hw_hash64(text, strlen(text), 1);
    memcpy(source.key, &hash, sizeof hash);
    hw_status status = launch(r, &source, s, nparams, params, d);
    if (status != HW_OK && r->fault.status == HW_OK)
        print_error("%s\n", hw_diag_text(d, a).ptr);
    hw_arena_free(a);
    return status;
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
