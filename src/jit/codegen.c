/* SPDX-License-Identifier: Apache-2.0
 *
 * The code generator's entry: a warp-IR module and a variant in, an object file out.
 */
#include "gen.h"

#include <llvm-c/Analysis.h>
#include <llvm-c/Error.h>
#include <llvm-c/Support.h>
#include <llvm-c/Target.h>
#include <llvm-c/Transforms/PassBuilder.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

/* Passes by tier (measured: docs/architecture.md, "Generated code"). */
static const char *const passes[] = {
    "function(mem2reg,early-cse)",
    "function(sroa,early-cse<memssa>,instcombine<no-verify-fixpoint>,simplifycfg,"
    "loop-mssa(licm),gvn,dce)",
};

static void init_llvm(void)
{
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    /* That pass moves masks between register files and takes quadratic time in code full of them. */
    static const char *const options[] = { "halfwarp", "-disable-x86-domain-reassignment" };
    LLVMParseCommandLineOptions(2, options, NULL);
}

/* ---- the processor ---- */
/* Is the feature in LLVM's list "+a,-b,..."? */
static bool has(const char *features, const char *name)
{
    size_t n = strlen(name);
    for (const char *p = strstr(features, name); p; p = strstr(p + 1, name))
        if (p > features && p[-1] == '+' && (p[n] == ',' || p[n] == 0))
            return true;
    return false;
}

/* Target machines of this host that are not in use: making one takes most of a millisecond. */
enum { SPARE_TARGETS = 4 };
static pthread_mutex_t spare_lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    LLVMTargetMachineRef tm;
    bool avx512, vnni, best;
} spare[SPARE_TARGETS];

static bool take_spare(hw_gen *g)
{
    g->tm = NULL;
    pthread_mutex_lock(&spare_lock);
    for (unsigned i = 0; i < SPARE_TARGETS && !g->tm; i++)
        if (spare[i].tm && spare[i].best == (g->v->tier != 0)) {
            g->tm = spare[i].tm;
            g->avx512 = spare[i].avx512;
            g->vnni = spare[i].vnni;
            spare[i].tm = NULL;
        }
    pthread_mutex_unlock(&spare_lock);
    return g->tm != NULL;
}

static void give_target(hw_gen *g, const hw_codegen_options *o)
{
    pthread_mutex_lock(&spare_lock);
    for (unsigned i = 0; i < SPARE_TARGETS && g->tm && !o->cpu; i++)
        if (!spare[i].tm) {
            spare[i].tm = g->tm;
            spare[i].avx512 = g->avx512;
            spare[i].vnni = g->vnni;
            spare[i].best = g->v->tier != 0;
            g->tm = NULL;
        }
    pthread_mutex_unlock(&spare_lock);
    if (g->tm)
        LLVMDisposeTargetMachine(g->tm);
}

static hw_status take_target(hw_gen *g, const hw_codegen_options *o)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, init_llvm);
    if (!o->cpu && take_spare(g))
        return HW_OK;
    char *error = NULL, *cpu = o->cpu ? LLVMCreateMessage(o->cpu) : LLVMGetHostCPUName();
    char *features = o->cpu ? LLVMCreateMessage("") : LLVMGetHostCPUFeatures();
    const char *triple = "x86_64-unknown-linux-gnu";
    LLVMTargetRef target = NULL;
    hw_status s = HW_OK;
    if (LLVMGetTargetFromTriple(triple, &target, &error)) {
        s = hw_fail(g->d, HW_E_INTERNAL, "LLVM has no x86-64 target: %s", error);
        LLVMDisposeMessage(error);
    } else {
        g->avx512 = has(features, "avx512f") && has(features, "avx512bw") &&
                    has(features, "avx512dq") && has(features, "avx512vl");
        g->vnni = g->avx512 && has(features, "avx512vnni");
        g->avx512 |= o->cpu && strcmp(o->cpu, "x86-64-v4") == 0;
        g->tm = LLVMCreateTargetMachine(target, triple, cpu, features,
                                        g->v->tier ? LLVMCodeGenLevelLess : LLVMCodeGenLevelNone,
                                        LLVMRelocPIC, LLVMCodeModelSmall);
    }
    LLVMDisposeMessage(cpu);
    LLVMDisposeMessage(features);
    return s;
}

static void make_types(hw_gen *g)
{
    g->i1 = hwg_int(g, 1);
    g->i8 = hwg_int(g, 8);
    g->i16 = hwg_int(g, 16);
    g->i32 = hwg_int(g, 32);
    g->i64 = hwg_int(g, 64);
    g->i128 = hwg_int(g, 128);
    g->f16 = LLVMHalfTypeInContext(g->cx);
    g->f32 = LLVMFloatTypeInContext(g->cx);
    g->f64 = LLVMDoubleTypeInContext(g->cx);
    g->ptr = LLVMPointerTypeInContext(g->cx, 0);
    g->voidt = LLVMVoidTypeInContext(g->cx);
}

/* Above this, optimising takes longer than it saves: half a second and more. */
enum { MOST_INSNS_TO_OPTIMISE = 1500 };

static size_t instructions(const hw_wir_module *m)
{
    size_t n = 0;
    for (size_t f = 0; f < m->functions.len; f++)
        for (size_t b = 0; b < m->functions.ptr[f].blocks.len; b++)
            n += m->functions.ptr[f].blocks.ptr[b].insns.len;
    return n;
}

/* ---- denormals ---- */

/* Would setting FTZ and DAZ for all of the code change a result of this instruction? */
static bool minds_flushing(const hw_wir_insn *in)
{
    /* halves and bf16 are computed in f32, where their small values are denormal or nearly so */
    static const bool always[HW_T_COUNT] = { [HW_T_F16] = true,
                                             [HW_T_V2F16] = true,
                                             [HW_T_BF16] = true,
                                             [HW_T_V2BF16] = true,
                                             [HW_T_F64] = true };
    static const bool bits_only[HW_W_COUNT] = {
        [HW_W_FNEG] = true, [HW_W_FABS] = true, [HW_W_FCOPYSIGN] = true, [HW_W_FCLASS] = true
    };
    bool arithmetic = in->op >= HW_W_FCVT && in->op <= HW_W_TANH_APPROX && !bits_only[in->op];
    bool f32 = in->type == HW_T_F32 || in->type2 == HW_T_F32;
    return arithmetic &&
           (always[in->type] || always[in->type2] || (f32 && !(in->flags & HW_I_FTZ)));
}

static bool all_flush(const hw_wir_module *m)
{
    bool any = false;
    for (size_t f = 0; f < m->functions.len; f++)
        for (size_t b = 0; b < m->functions.ptr[f].blocks.len; b++) {
            const hw_wir_block *w = &m->functions.ptr[f].blocks.ptr[b];
            for (size_t i = 0; i < w->insns.len; i++) {
                if (minds_flushing(&w->insns.ptr[i]))
                    return false;
                any |= (w->insns.ptr[i].flags & HW_I_FTZ) != 0;
            }
        }
    return any;
}

/* ---- from IR to object ---- */

static hw_status verify(hw_gen *g)
{
    char *text = NULL;
    hw_status s = HW_OK;
    if (LLVMVerifyModule(g->mod, LLVMReturnStatusAction, &text))
        s = hw_fail(g->d, HW_E_INTERNAL, "%s: generated code is malformed: %.400s",
                    g->m->functions.ptr[0].name, text);
    LLVMDisposeMessage(text);
    return s;
}

static hw_status optimise(hw_gen *g)
{
    LLVMPassBuilderOptionsRef o = LLVMCreatePassBuilderOptions();
    LLVMErrorRef e = LLVMRunPasses(g->mod, passes[g->v->tier ? 1 : 0], g->tm, o);
    LLVMDisposePassBuilderOptions(o);
    if (!e)
        return HW_OK;
    char *text = LLVMGetErrorMessage(e);
    hw_status s = hw_fail(g->d, HW_E_INTERNAL, "LLVM passes: %s", text);
    LLVMDisposeErrorMessage(text);
    return s;
}

static hw_status emit(hw_gen *g, hw_codegen_out *out)
{
    char *error = NULL;
    LLVMMemoryBufferRef buffer = NULL;
    if (LLVMTargetMachineEmitToMemoryBuffer(g->tm, g->mod, LLVMObjectFile, &error, &buffer)) {
        hw_status s = hw_fail(g->d, HW_E_INTERNAL, "LLVM: %s", error);
        LLVMDisposeMessage(error);
        return s;
    }
    size_t n = LLVMGetBufferSize(buffer);
    uint8_t *bytes = hw_arena_alloc(g->arena, n);
    memcpy(bytes, LLVMGetBufferStart(buffer), n);
    out->object = (hw_span){ bytes, n };
    LLVMDisposeMemoryBuffer(buffer);
    return HW_OK;
}

static void keep_ir(hw_gen *g, hw_codegen_out *out)
{
    char *text = LLVMPrintModuleToString(g->mod);
    out->ir = hw_arena_cstr(g->arena, hw_str_of(text));
    LLVMDisposeMessage(text);
}

static void describe(hw_gen *g, hw_code *info)
{
    uint32_t *ids = HW_NEW_N(g->arena, uint32_t, g->m->symbols.len + 1);
    for (size_t i = 0; i < g->m->symbols.len; i++)
        ids[i] = g->m->symbols.ptr[i].external_id;
    info->symbols = ids;
    info->n_symbols = (uint32_t)g->m->symbols.len;
    info->locs = g->m->locs.ptr;
    info->n_locs = (uint32_t)g->m->locs.len;
    info->static_shared_bytes = g->m->static_shared_bytes;
    info->flush_all = g->flush_all;
}

static hw_status generate(hw_gen *g, const hw_codegen_options *o, hw_codegen_out *out)
{
    hwg_debug_begin(g);
    hw_status s = hwg_module(g);
    hwg_count_end(g);
    hwg_debug_end(g);
    HW_TRY(s);
    describe(g, &out->info);
    if (o->keep_ir)
        keep_ir(g, out);
#ifndef NDEBUG
    HW_TRY(verify(g));
#endif
    HW_TRY(optimise(g));
    if (o->keep_ir)
        keep_ir(g, out);
    return emit(g, out);
}

static hw_status compile(hw_arena *a, hw_wir_module *m, const hw_variant *v,
                         const hw_codegen_options *o, hw_codegen_out *out, hw_diag *d)
{
    hw_gen *g = HW_NEW(a, hw_gen);
    g->arena = a;
    g->d = d;
    g->m = m;
    g->v = v;
    memset(out, 0, sizeof *out);
    g->info = &out->info;
    m->counted = v->listeners != 0;
    HW_TRY(hw_wir_prepare(m, d));
    hwg_count_begin(g); /* instructions are counted as they were written */
    for (uint32_t f = 0; f < m->functions.len; f++)
        hw_wir_simplify(m, f);
    hw_variant quick = *v;
    if (instructions(m) > MOST_INSNS_TO_OPTIMISE) {
        quick.tier = 0;
        out->info.best = true;
    }
    out->info.best |= quick.tier != 0;
    g->v = &quick;
    g->lean = quick.tier == 0;
    HW_TRY(take_target(g, o));
    g->cx = LLVMContextCreate();
    g->mod = LLVMModuleCreateWithNameInContext("halfwarp", g->cx);
    g->b = LLVMCreateBuilderInContext(g->cx);
    LLVMTargetDataRef layout = LLVMCreateTargetDataLayout(g->tm);
    LLVMSetModuleDataLayout(g->mod, layout);
    LLVMDisposeTargetData(layout);
    LLVMSetTarget(g->mod, "x86_64-unknown-linux-gnu");
    make_types(g);
    g->flush_all = all_flush(m);
    hw_status s = generate(g, o, out);
    LLVMDisposeBuilder(g->b);
    LLVMDisposeModule(g->mod);
    LLVMContextDispose(g->cx);
    give_target(g, o);
    return s;
}

/* ---- the end of the process ---- */

static void (*_Atomic at_exit_fn)(void);

static void set_at_exit(void (*fn)(void))
{
    atomic_store(&at_exit_fn, fn);
}

/* The process may end as soon as this library is open: whoever opens it is about to say what is to be done. */
static void at_exit(void)
{
    enum { TIMES = 2000, PAUSE_NS = 500 * 1000 };
    void (*fn)(void) = NULL;
    for (int i = 0; i < TIMES && !(fn = atomic_load(&at_exit_fn)); i++)
        nanosleep(&(struct timespec){ .tv_nsec = PAUSE_NS }, NULL);
    if (fn)
        fn();
}

/* LLVM's constructors have run, so this comes before what they registered. */
__attribute__((constructor)) static void opened(void)
{
    atexit(at_exit);
}

HW_PUBLIC const hw_codegen_api hw_codegen = { HW_CODEGEN_ABI, compile, (const void *)LLVMRunPasses,
                                              set_at_exit };
