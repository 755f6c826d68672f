/* SPDX-License-Identifier: Apache-2.0
 *
 * The cache of code: memory first, then disk, then the code generator, which is opened at the first
 * miss. One thread compiles a variant; others that ask for it wait.
 */
#include "entry.h"

#include "count.h"

#include <cpuid.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>

#ifndef HW_LIBDIR
#define HW_LIBDIR "/usr/local/lib"
#endif
#define CODEGEN_LIBRARY "libhalfwarp-codegen.so"

typedef enum { WORKING, READY, FAILED } state;

typedef struct variant {
    struct variant *next;
    hw_entry_key key;
    state state;
    hw_code code;
    hw_loaded loaded;
    hw_arena *arena;
} variant;

struct hw_jit {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    variant *variants;
    hw_entry_dir dir;
    uint64_t build;
    const char *cpu; /* NULL: the host */
    hw_jit_stats stats;
    const char *notice;
    bool notice_taken;
    hw_arena *arena;
};

/* ---- what the code depends on ---- */

static uint64_t processor_id(void)
{
    unsigned r[16] = { 0 };
    if (__get_cpuid(1, &r[0], &r[1], &r[2], &r[3]))
        r[1] = 0; /* holds the number of the core */
    __get_cpuid_count(7, 0, &r[4], &r[5], &r[6], &r[7]);
    __get_cpuid_count(7, 1, &r[8], &r[9], &r[10], &r[11]);
    r[2] &= ~(1u << 27); /* a state, not a feature */
    return hw_hash64(r, sizeof r, 5);
}

/* The directory of the library or program that holds this code, and the library in it. */
static bool beside_us(char *out, size_t n)
{
    Dl_info info;
    if (!dladdr((void *)(uintptr_t)beside_us, &info) || !info.dli_fname)
        return false;
    const char *slash = strrchr(info.dli_fname, '/');
    int dir = slash ? (int)(slash - info.dli_fname) : 1;
    const char *from = slash ? info.dli_fname : ".";
    snprintf(out, n, "%.*s/" CODEGEN_LIBRARY, dir, from);
    return true;
}

static const char *const places[] = {
    NULL, /* beside us */
#ifdef HW_BUILD_LIBRARY
    HW_BUILD_LIBRARY, /* tests, in the build tree */
#endif
    HW_LIBDIR "/halfwarp/" CODEGEN_LIBRARY,
    HW_LIBDIR "/" CODEGEN_LIBRARY,
};

static bool find_library(char *out, size_t n, struct stat *st)
{
    for (size_t i = 0; i < HW_COUNTOF(places); i++) {
        if (places[i])
            snprintf(out, n, "%s", places[i]);
        else if (!beside_us(out, n))
            continue;
        if (stat(out, st) == 0)
            return true;
    }
    return false;
}

static uint64_t build_id(const char *cpu)
{
    char path[4096];
    struct stat st = { 0 };
    uint64_t h = hw_hash64(HW_VERSION " " HW_LLVM_VERSION, sizeof HW_VERSION " " HW_LLVM_VERSION,
                           processor_id());
    if (find_library(path, sizeof path, &st)) {
        int64_t id[] = { st.st_size, st.st_mtim.tv_sec, st.st_mtim.tv_nsec };
        h = hw_hash64(id, sizeof id, h);
    }
    return cpu ? hw_hash64(cpu, strlen(cpu), h) : h;
}

/* ---- the code generator ---- */

static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;

static hw_status open_codegen(const hw_codegen_api **out, hw_diag *d)
{
    static const hw_codegen_api *api;
    char path[4096];
    struct stat st;
    hw_status s = HW_OK;
    pthread_mutex_lock(&opening);
    if (!api) {
        void *lib =
            find_library(path, sizeof path, &st) ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
        const hw_codegen_api *found = lib ? dlsym(lib, "hw_codegen") : NULL;
        if (found && found->abi == HW_CODEGEN_ABI)
            api = found;
        else
            s = hw_fail(d, HW_E_INTERNAL, "cannot open the code generator " CODEGEN_LIBRARY ": %s",
                        lib ? "it belongs to another version" : dlerror());
    }
    *out = api;
    pthread_mutex_unlock(&opening);
    return s;
}

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static hw_status generate(hw_jit *j, const hw_jit_source *s, const hw_variant *v, hw_arena *a,
                          hw_codegen_out *out, hw_diag *d)
{
    const hw_codegen_api *api;
    hw_wir_module *m = NULL;
    hw_codegen_options o = { .cpu = j->cpu };
    HW_TRY(open_codegen(&api, d));
    HW_TRY(s->build(s->ctx, a, &m, d));
    return api->compile(a, m, v, &o, out, d);
}

/* ---- one variant ---- */

static void note_unusable(hw_jit *j)
{
    pthread_mutex_lock(&j->lock);
    j->stats.disk_errors++;
    if (!j->notice)
        j->notice = hw_arena_printf(
            j->arena, "the code cache %s cannot be written; kernels are compiled every time",
            j->dir.path);
    pthread_mutex_unlock(&j->lock);
}

static bool from_disk(hw_jit *j, variant *x, hw_arena *a)
{
    hw_span object;
    bool damaged = false;
    uint64_t t0 = now_ns();
    bool ok = j->dir.path && hw_entry_load(a, &j->dir, &x->key, &object, &x->code, &damaged);
    if (ok)
        ok = hw_load_object(object, HW_CODEGEN_ENTRY, &x->loaded, NULL) == HW_OK;
    pthread_mutex_lock(&j->lock);
    j->stats.disk_errors += damaged;
    j->stats.disk_hits += ok;
    j->stats.load_ns += ok ? now_ns() - t0 : 0;
    pthread_mutex_unlock(&j->lock);
    return ok;
}

/* Keep what outlives compilation: copies of the description. */
static hw_code keep(hw_arena *a, const hw_code *c)
{
    hw_code k = *c;
    uint32_t *ids = HW_NEW_N(a, uint32_t, c->n_symbols + 1);
    hw_wir_loc *locs = HW_NEW_N(a, hw_wir_loc, c->n_locs + 1);
    if (c->n_symbols)
        memcpy(ids, c->symbols, sizeof *ids * c->n_symbols);
    hw_intern *names = hw_intern_new(a);
    for (uint32_t i = 0; i < c->n_locs; i++) {
        locs[i] = c->locs[i];
        if (locs[i].file)
            locs[i].file = hw_intern_name(names, hw_intern_id(names, hw_str_of(locs[i].file))).ptr;
        if (locs[i].function)
            locs[i].function =
                hw_intern_name(names, hw_intern_id(names, hw_str_of(locs[i].function))).ptr;
    }
    k.symbols = ids;
    k.locs = locs;
    if (c->count) /* a copy */
        k.count = hw_count_unpack(a, hw_count_pack(a, c->count), locs, c->n_locs);
    return k;
}

static hw_status compile(hw_jit *j, const hw_jit_source *s, const hw_variant *v, variant *x,
                         hw_arena *scratch, hw_diag *d)
{
    uint64_t t0 = now_ns();
    hw_codegen_out out;
    HW_TRY(generate(j, s, v, scratch, &out, d));
    HW_TRY(hw_load_object(out.object, HW_CODEGEN_ENTRY, &x->loaded, d));
    x->code = keep(x->arena, &out.info);
    pthread_mutex_lock(&j->lock);
    j->stats.compiled++;
    j->stats.compile_ns += now_ns() - t0;
    pthread_mutex_unlock(&j->lock);
    if (j->dir.path && !hw_entry_store(scratch, &j->dir, &x->key, out.object, &x->code))
        note_unusable(j);
    return HW_OK;
}

static hw_status obtain(hw_jit *j, const hw_jit_source *s, const hw_variant *v, variant *x,
                        hw_diag *d)
{
    hw_status status = HW_OK;
    x->arena = hw_arena_new();
    if (!from_disk(j, x, x->arena)) {
        hw_arena *scratch = hw_arena_new();
        status = compile(j, s, v, x, scratch, d);
        hw_arena_free(scratch);
    }
    x->code.run = (hw_warp_fn *)(uintptr_t)x->loaded.entry;
    return status;
}

/* ---- the public functions ---- */

hw_jit *hw_jit_new(const char *cache_dir)
{
    hw_arena *a = hw_arena_new();
    hw_jit *j = HW_NEW(a, hw_jit);
    j->arena = a;
    pthread_mutex_init(&j->lock, NULL);
    pthread_cond_init(&j->changed, NULL);
    j->build = build_id(NULL);
    j->dir.limit = UINT64_C(1) << 30;
    if (cache_dir) {
        j->dir.path = hw_arena_cstr(a, hw_str_of(cache_dir));
        if (!hw_entry_dir_open(&j->dir)) {
            note_unusable(j);
            j->dir.path = NULL;
        }
    }
    return j;
}

void hw_jit_free(hw_jit *j)
{
    if (!j)
        return;
    for (variant *x = j->variants; x; x = x->next) {
        hw_unload(&x->loaded);
        hw_arena_free(x->arena);
    }
    pthread_cond_destroy(&j->changed);
    pthread_mutex_destroy(&j->lock);
    hw_arena_free(j->arena);
}

void hw_jit_set_limit(hw_jit *j, uint64_t bytes)
{
    j->dir.limit = bytes;
}

void hw_jit_set_cpu(hw_jit *j, const char *cpu)
{
    j->cpu = cpu ? hw_arena_cstr(j->arena, hw_str_of(cpu)) : NULL;
    j->build = build_id(j->cpu);
}

static variant *find(hw_jit *j, const hw_entry_key *k)
{
    variant *x = j->variants;
    while (x && memcmp(&x->key, k, sizeof *k) != 0)
        x = x->next;
    return x;
}

/* The variant, made ready by this thread or another. A failed one is tried again by the next. */
static variant *claim(hw_jit *j, const hw_entry_key *k, bool *mine)
{
    variant *x = find(j, k);
    while (x && x->state == WORKING) {
        pthread_cond_wait(&j->changed, &j->lock);
        x = find(j, k);
    }
    *mine = !x || x->state == FAILED;
    if (!x) {
        x = HW_NEW(j->arena, variant);
        x->key = *k;
        x->next = j->variants;
        j->variants = x;
    }
    if (*mine)
        x->state = WORKING;
    else
        j->stats.memory_hits++;
    return x;
}

hw_status hw_jit_get(hw_jit *j, const hw_jit_source *s, const hw_variant *v, const hw_code **out,
                     hw_diag *d)
{
    hw_entry_key k = hw_entry_key_of(s, v, j->build);
    bool mine;
    hw_status status = HW_OK;
    pthread_mutex_lock(&j->lock);
    variant *x = claim(j, &k, &mine);
    if (mine) {
        pthread_mutex_unlock(&j->lock);
        hw_arena_free(x->arena);
        status = obtain(j, s, v, x, d);
        pthread_mutex_lock(&j->lock);
        x->state = status == HW_OK ? READY : FAILED;
        pthread_cond_broadcast(&j->changed);
    }
    pthread_mutex_unlock(&j->lock);
    *out = status == HW_OK ? &x->code : NULL;
    return status;
}

uint32_t hw_jit_loc(const hw_code *c, uint64_t pc)
{
    const variant *x = (const void *)((const char *)c - offsetof(variant, code));
    uint32_t loc = hw_lines_find((hw_span){ x->loaded.lines, x->loaded.lines_bytes }, pc);
    return loc < c->n_locs ? loc : 0;
}

hw_jit_stats hw_jit_get_stats(const hw_jit *j)
{
    hw_jit *m = (hw_jit *)(uintptr_t)j;
    pthread_mutex_lock(&m->lock);
    hw_jit_stats s = m->stats;
    pthread_mutex_unlock(&m->lock);
    return s;
}

const char *hw_jit_notice(hw_jit *j)
{
    pthread_mutex_lock(&j->lock);
    const char *text = j->notice_taken ? NULL : j->notice;
    j->notice_taken |= text != NULL;
    pthread_mutex_unlock(&j->lock);
    return text;
}
