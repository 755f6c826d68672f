/* SPDX-License-Identifier: Apache-2.0
 *
 * The cache of code: memory first, then disk, then the code generator, which is opened at the first
 * miss. One thread compiles a variant; others that ask for it wait.
 */
#include "entry.h"

#include "count.h"
#include "ending.h"
#include "later.h"

#include <cpuid.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

#define CODEGEN_LIBRARY "libhalfwarp-codegen.so"

/* MISSING: neither in memory nor on disk, and nobody has asked that it be made. */
typedef enum { WORKING, READY, FAILED, MISSING } state;

typedef struct variant {
    struct variant *next;
    hw_entry_key key;
    state state;
    bool later; /* WORKING in the background: not to be waited for unless it is needed */
    const hw_code *_Atomic better;
    _Atomic uint64_t ran_ns;
    _Atomic bool asked; /* for better code */
    hw_code code;
    hw_loaded loaded;
    hw_arena *arena;
} variant;

/* The code of one source. It goes when those that held the source have let go; if nobody ever did, with the jit. */
typedef struct source {
    struct source *next; /* in its bucket */
    uint8_t key[32];
    uint32_t holders;
    variant *variants;
} source;

enum { BUCKETS = 1024 };

struct hw_jit {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    source *sources[BUCKETS];
    hw_later *background;
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
    NULL,             /* beside us, as installed */
    HW_BUILD_LIBRARY, /* programs of the build tree */
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

static uint64_t with_file(const struct stat *st, uint64_t h)
{
    int64_t id[] = { st->st_size, st->st_mtim.tv_sec, st->st_mtim.tv_nsec };
    return hw_hash64(id, sizeof id, h);
}

/* What made the code: this library, where PTX becomes warp IR, and the code generator. */
static uint64_t build_id(const char *cpu)
{
    char path[4096];
    struct stat st = { 0 };
    Dl_info info;
    uint64_t h = hw_hash64(HW_VERSION " " HW_LLVM_VERSION, sizeof HW_VERSION " " HW_LLVM_VERSION,
                           processor_id());
    if (dladdr((void *)(uintptr_t)build_id, &info) && info.dli_fname &&
        stat(info.dli_fname, &st) == 0)
        h = with_file(&st, h);
    if (find_library(path, sizeof path, &st))
        h = with_file(&st, h);
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
        bool there = find_library(path, sizeof path, &st);
        const void *codes[2] = { NULL, NULL };
        hw_opening_begin();
        void *lib = there ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
        const hw_codegen_api *found = lib ? dlsym(lib, "hw_codegen") : NULL;
        if (found && found->abi == HW_CODEGEN_ABI) {
            codes[0] = (const void *)found->compile;
            codes[1] = found->llvm;
            api = found;
        } else {
            s = hw_fail(d, HW_E_INTERNAL, "cannot open the code generator " CODEGEN_LIBRARY ": %s",
                        !there ? "it is not installed"
                        : lib  ? "it belongs to another version"
                               : dlerror());
        }
        hw_opening_end(codes, 2, api ? api->at_exit : NULL);
    }
    *out = api;
    pthread_mutex_unlock(&opening);
    return s;
}

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t now_ns(void)
{
    return clock_ns(CLOCK_MONOTONIC);
}

static hw_status generate(hw_jit *j, const hw_jit_source *s, const hw_variant *v, hw_arena *a,
                          hw_codegen_out *out, hw_diag *d)
{
    const hw_codegen_api *api;
    hw_wir_module *m = NULL;
    hw_codegen_options o = { .cpu = j->cpu };
    HW_TRY(open_codegen(&api, d));
    HW_TRY(s->build(s->ctx, a, &m, d));
    hw_use use;
    hw_use_begin(&use);
    hw_status made = api->compile(a, m, v, &o, out, d);
    hw_use_end(&use);
    return made;
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

static uint32_t in_us(uint64_t ns)
{
    return ns / 1000 < UINT32_MAX ? (uint32_t)(ns / 1000) : UINT32_MAX;
}

static void note_compiled(hw_jit *j, uint64_t ns, bool later)
{
    pthread_mutex_lock(&j->lock);
    j->stats.compiled++;
    j->stats.compile_ns += ns;
    j->stats.improved += later;
    j->stats.improve_ns += later ? ns : 0;
    pthread_mutex_unlock(&j->lock);
}

static hw_status compile(hw_jit *j, const hw_jit_source *s, const hw_variant *v, variant *x,
                         hw_arena *scratch, hw_diag *d)
{
    uint64_t t0 = now_ns(), used = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    hw_codegen_out out;
    HW_TRY(generate(j, s, v, scratch, &out, d));
    HW_TRY(hw_load_object(out.object, HW_CODEGEN_ENTRY, &x->loaded, d));
    x->code = keep(x->arena, &out.info);
    x->code.made_us = in_us(clock_ns(CLOCK_THREAD_CPUTIME_ID) - used);
    note_compiled(j, now_ns() - t0, x->later);
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
    return status;
}

/* ---- sources; with the lock held ---- */

static void *must(void *p)
{
    if (!p)
        hw_oom(sizeof(variant));
    return p;
}

/* Where the source with a key is, or its end of a bucket's list. */
static source **source_at(hw_jit *j, const uint8_t key[32])
{
    uint32_t h;
    memcpy(&h, key, sizeof h); /* of a strong hash */
    source **at = &j->sources[h % BUCKETS];
    while (*at && memcmp((*at)->key, key, sizeof(*at)->key) != 0)
        at = &(*at)->next;
    return at;
}

static source *source_of(hw_jit *j, const uint8_t key[32])
{
    source **at = source_at(j, key);
    if (!*at) {
        *at = must(calloc(1, sizeof **at));
        memcpy((*at)->key, key, sizeof(*at)->key);
    }
    return *at;
}

static void source_end(source **at)
{
    source *c = *at;
    *at = c->next;
    for (variant *x = c->variants, *next; x; x = next) {
        next = x->next;
        hw_unload(&x->loaded);
        hw_arena_free(x->arena);
        free(x);
    }
    free(c);
}

/* ---- the public functions ---- */

void hw_jit_hold(hw_jit *j, const uint8_t key[32])
{
    pthread_mutex_lock(&j->lock);
    source_of(j, key)->holders++;
    pthread_mutex_unlock(&j->lock);
}

void hw_jit_let_go(hw_jit *j, const uint8_t key[32])
{
    pthread_mutex_lock(&j->lock);
    source **at = source_at(j, key);
    if (*at && --(*at)->holders == 0)
        source_end(at);
    pthread_mutex_unlock(&j->lock);
}

hw_jit *hw_jit_new(const char *cache_dir)
{
    hw_arena *a = hw_arena_new();
    hw_jit *j = HW_NEW(a, hw_jit);
    j->arena = a;
    pthread_mutex_init(&j->lock, NULL);
    pthread_cond_init(&j->changed, NULL);
    j->background = hw_later_new();
    hw_ending_watch();
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
    hw_later_free(j->background);
    for (unsigned i = 0; i < BUCKETS; i++)
        while (j->sources[i])
            source_end(&j->sources[i]);
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
    const source *c = *source_at(j, k->source);
    variant *x = c ? c->variants : NULL;
    while (x && memcmp(&x->key, k, sizeof *k) != 0)
        x = x->next;
    return x;
}

static variant *find_or_add(hw_jit *j, const hw_entry_key *k)
{
    variant *x = find(j, k);
    if (x)
        return x;
    source *c = source_of(j, k->source);
    x = must(calloc(1, sizeof *x));
    x->key = *k;
    x->state = MISSING;
    x->next = c->variants;
    c->variants = x;
    return x;
}

/* The variant, made ready by this thread or another. A failed one is tried again by the next. */
static variant *claim(hw_jit *j, const hw_entry_key *k, bool *mine)
{
    variant *x = find_or_add(j, k);
    while (x->state == WORKING)
        pthread_cond_wait(&j->changed, &j->lock);
    *mine = x->state != READY;
    if (*mine)
        x->state = WORKING;
    else
        j->stats.memory_hits++;
    return x;
}

/* The state of x, WORKING, is known now. j->lock is held. */
static void settle(hw_jit *j, variant *x, state to)
{
    x->state = to;
    x->later = false;
    x->code.run = to == READY ? (hw_warp_fn *)(uintptr_t)x->loaded.entry : NULL;
    pthread_cond_broadcast(&j->changed);
}

hw_status hw_jit_get(hw_jit *j, const hw_jit_source *s, const hw_variant *v, const hw_code **out,
                     hw_diag *d)
{
    hw_entry_key k = hw_entry_key_of(s, v, j->build);
    bool mine;
    hw_status status = HW_OK;
    hw_ending_watch();
    pthread_mutex_lock(&j->lock);
    variant *x = claim(j, &k, &mine);
    if (mine) {
        pthread_mutex_unlock(&j->lock);
        hw_arena_free(x->arena);
        status = obtain(j, s, v, x, d);
        pthread_mutex_lock(&j->lock);
        settle(j, x, status == HW_OK ? READY : FAILED);
    }
    pthread_mutex_unlock(&j->lock);
    *out = status == HW_OK ? &x->code : NULL;
    return status;
}

/* ---- two tiers ---- */

static hw_variant of_tier(const hw_variant *v, uint8_t tier)
{
    hw_variant w = *v;
    w.tier = tier;
    return w;
}

/* In memory or on disk. */
static const hw_code *find_made(hw_jit *j, const hw_entry_key *k)
{
    pthread_mutex_lock(&j->lock);
    bool new = !find(j, k);
    variant *x = find_or_add(j, k);
    while (x->state == WORKING && !x->later)
        pthread_cond_wait(&j->changed, &j->lock);
    if (new && j->dir.path) {
        x->state = WORKING;
        pthread_mutex_unlock(&j->lock);
        x->arena = hw_arena_new();
        bool ok = from_disk(j, x, x->arena);
        pthread_mutex_lock(&j->lock);
        settle(j, x, ok ? READY : MISSING);
    }
    bool ready = x->state == READY;
    j->stats.memory_hits += ready && !new;
    pthread_mutex_unlock(&j->lock);
    return ready ? &x->code : NULL;
}

hw_status hw_jit_get_now(hw_jit *j, const hw_jit_source *s, const hw_variant *v,
                         const hw_code **out, hw_diag *d)
{
    hw_variant first = of_tier(v, 0), second = of_tier(v, 1);
    hw_entry_key k = hw_entry_key_of(s, &second, j->build);
    *out = find_made(j, &k);
    return *out ? HW_OK : hw_jit_get(j, s, &first, out, d);
}

static variant *variant_of(const hw_code *c)
{
    return (variant *)((uintptr_t)c - offsetof(variant, code));
}

const hw_code *hw_jit_better(const hw_code *c)
{
    return atomic_load_explicit(&variant_of(c)->better, memory_order_acquire);
}

typedef struct task {
    hw_jit *j;
    hw_jit_source source; /* its ctx is kept */
    hw_variant variant;   /* of the second tier */
    variant *first;
} task;

static void drop_task(void *what)
{
    task *t = what;
    t->source.drop(t->source.ctx);
    free(t);
}

static bool make_better(task *t, variant *x)
{
    hw_arena *scratch = hw_arena_new();
    hw_arena_free(x->arena);
    x->arena = hw_arena_new();
    bool ok = compile(t->j, &t->source, &t->variant, x, scratch, NULL) == HW_OK;
    if (ok && t->j->dir.path)
        hw_entry_remove(scratch, &t->j->dir, &t->first->key);
    hw_arena_free(scratch);
    return ok;
}

static void do_task(void *what)
{
    task *t = what;
    hw_jit *j = t->j;
    hw_entry_key k = hw_entry_key_of(&t->source, &t->variant, j->build);
    pthread_mutex_lock(&j->lock);
    variant *x = find_or_add(j, &k);
    if (x->state == MISSING) {
        x->state = WORKING;
        x->later = true;
        pthread_mutex_unlock(&j->lock);
        bool ok = make_better(t, x);
        pthread_mutex_lock(&j->lock);
        settle(j, x, ok ? READY : FAILED);
    }
    if (x->state == READY)
        atomic_store_explicit(&t->first->better, &x->code, memory_order_release);
    pthread_mutex_unlock(&j->lock);
}

static void ask_for_better(hw_jit *j, const hw_jit_source *s, const hw_variant *v, variant *first)
{
    task *t = calloc(1, sizeof *t);
    void *kept = t ? s->keep(s->ctx) : NULL;
    if (!kept) {
        free(t);
        return;
    }
    *t = (task){ .j = j, .source = *s, .variant = of_tier(v, 1), .first = first };
    t->source.ctx = kept;
    hw_later_add(j->background, do_task, drop_task, t);
}

bool hw_jit_ran(hw_jit *j, const hw_jit_source *s, const hw_variant *v, const hw_code *c,
                uint64_t ns)
{
    variant *x = variant_of(c);
    if (c->best || !s->keep || atomic_load_explicit(&x->asked, memory_order_relaxed))
        return !c->best && s->keep;
    uint64_t sum = atomic_fetch_add_explicit(&x->ran_ns, ns, memory_order_relaxed) + ns;
    if (sum < c->made_us * UINT64_C(1000))
        return false;
    if (!atomic_exchange(&x->asked, true))
        ask_for_better(j, s, v, x);
    return true;
}

uint32_t hw_jit_loc(const hw_code *c, uint64_t pc)
{
    const variant *x = variant_of(c);
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
