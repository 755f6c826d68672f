/* SPDX-License-Identifier: Apache-2.0
 *
 * Modules and libraries: a program placed in a context, its variables given addresses, initial
 * bytes and relocations; look-up of kernels and variables by name. (CUDA Driver API, "Module
 * Management", "Library Management".)
 *
 * A module's variables lie in one allocation, in the order of the program; managed ones in one
 * each. A library's managed variables belong to no context: they are placed once, before the first
 * context if need be, and stay until it is unloaded.
 */
#include "driver.h"

#include <stdlib.h>

/* ---- variables ---- */

enum { PAGE_BYTES = 4096, MIN_ALIGN = 256 };

static void write_initial(const hw_ptx_variable *v, uint64_t address, const uint64_t *addresses)
{
    uint8_t *p = (uint8_t *)(uintptr_t)address;
    if (v->init)
        memcpy(p, v->init, v->init_bytes);
    for (uint32_t i = 0; i < v->nrelocs; i++) {
        const hw_ptx_reloc *r = &v->relocs[i];
        uint64_t value = (r->is_function ? r->target : addresses[r->target]) + (uint64_t)r->addend;
        value >>= r->shift;
        memcpy(p + r->offset, &value, r->width);
    }
}

/* Offsets of the variables that are not managed; the size of all of them. */
static uint64_t lay_out(const hw_ptx_module *ptx, uint64_t *offsets)
{
    uint64_t size = 0;
    for (uint32_t i = 0; i < ptx->nvariables; i++) {
        const hw_ptx_variable *v = &ptx->variables[i];
        if (v->managed)
            continue;
        uint64_t align = v->align > MIN_ALIGN ? v->align : MIN_ALIGN;
        size = (size + align - 1) / align * align;
        offsets[i] = size;
        size += v->size ? v->size : 1;
    }
    return size;
}

static CUresult place_managed(hw_cu_context *ctx, const hw_ptx_variable *v, uint64_t *address)
{
    CUdeviceptr p;
    hw_mem_info info;
    CU_TRY(hw_cu_alloc(ctx, v->size ? v->size : 1, v->align, HW_MEM_MANAGED, 1, &p));
    hw_cu_zero(p, v->size);
    hw_cu_find_block(p, &info)->fixed = true;
    *address = p;
    return CUDA_SUCCESS;
}

/* A library's managed variables, placed on the first device. l->lock is held. */
static CUresult library_managed(hw_cu_library *l)
{
    const hw_ptx_module *ptx = l->program->ptx;
    hw_mem_info info;
    for (uint32_t i = 0; i < ptx->nvariables; i++) {
        if (!ptx->variables[i].managed || l->managed[i])
            continue;
        hw_cu_context *ctx = hw_cu_primary(&hw_cu.gpus[0]);
        CU_NEED(ctx, OUT_OF_MEMORY);
        CU_TRY(place_managed(ctx, &ptx->variables[i], &l->managed[i]));
        hw_cu_block *b = hw_cu_find_block(l->managed[i], &info);
        pthread_mutex_lock(&ctx->lock);
        hw_cu_list_remove(&b->link); /* outlives the context's contents */
        pthread_mutex_unlock(&ctx->lock);
        if (ptx->variables[i].init)
            memcpy((void *)(uintptr_t)l->managed[i], ptx->variables[i].init,
                   ptx->variables[i].init_bytes);
    }
    return CUDA_SUCCESS;
}

static CUresult place_variables(hw_cu_module *m)
{
    const hw_ptx_module *ptx = m->program->ptx;
    hw_mem_info info;
    m->addresses = calloc(ptx->nvariables ? ptx->nvariables : 1, sizeof *m->addresses);
    CU_NEED(m->addresses, OUT_OF_MEMORY);
    uint64_t size = lay_out(ptx, m->addresses);
    if (size) {
        CUdeviceptr p;
        CU_TRY(hw_cu_alloc(m->ctx, size, PAGE_BYTES, HW_MEM_DEVICE, 0, &p));
        m->storage = p;
        hw_cu_zero(p, size);
        hw_cu_find_block(p, &info)->fixed = true;
    }
    for (uint32_t i = 0; i < ptx->nvariables; i++) {
        if (!ptx->variables[i].managed)
            m->addresses[i] += m->storage;
        else if (m->library)
            m->addresses[i] = m->library->managed[i];
        else
            CU_TRY(place_managed(m->ctx, &ptx->variables[i], &m->addresses[i]));
    }
    for (uint32_t i = 0; i < ptx->nvariables; i++) {
        if (!(ptx->variables[i].managed && m->library))
            write_initial(&ptx->variables[i], m->addresses[i], m->addresses);
    }
    return CUDA_SUCCESS;
}

uint64_t hw_cu_symbol_address(void *module, uint32_t variable)
{
    hw_cu_module *m = module;
    return variable < m->program->ptx->nvariables ? m->addresses[variable] : 0;
}

/* ---- modules ---- */

static void free_at(uint64_t address)
{
    hw_mem_info info;
    hw_cu_block *b = address ? hw_cu_find_block(address, &info) : NULL;
    if (b)
        hw_cu_free_block(b);
}

static void module_end(hw_cu_module *m)
{
    const hw_ptx_module *ptx = m->program->ptx;
    for (uint32_t i = 0; m->functions && i < ptx->nkernels; i++) {
        if (m->functions[i].handle)
            hw_cu_handle_drop(m->functions[i].handle);
        free(m->functions[i].params);
    }
    free_at(m->storage);
    for (uint32_t i = 0; m->addresses && !m->library && i < ptx->nvariables; i++) {
        if (ptx->variables[i].managed)
            free_at(m->addresses[i]);
    }
    if (m->handle)
        hw_cu_handle_drop(m->handle);
    pthread_mutex_lock(&m->ctx->lock);
    hw_cu_list_remove(&m->link);
    pthread_mutex_unlock(&m->ctx->lock);
    if (m->library) {
        pthread_mutex_lock(&m->library->lock);
        hw_cu_list_remove(&m->sibling);
        pthread_mutex_unlock(&m->library->lock);
    }
    hw_cu_program_release(m->program);
    free(m->addresses);
    free(m->functions);
    free(m);
}

void hw_cu_modules_end(hw_cu_context *ctx)
{
    while (ctx->modules.next != &ctx->modules)
        module_end(HW_CU_ITEM(ctx->modules.next, hw_cu_module, link));
}

/* Takes over one reference to p, also when it fails. */
static CUresult module_new(hw_cu_context *ctx, hw_cu_program *p, hw_cu_library *l,
                           hw_cu_module **out)
{
    hw_cu_module *m = calloc(1, sizeof *m);
    CU_NEED(m, OUT_OF_MEMORY);
    m->ctx = ctx;
    m->program = p;
    m->library = l;
    uint32_t n = p->ptx->nkernels;
    m->functions = calloc(n ? n : 1, sizeof *m->functions);
    m->handle = hw_cu_handle_new(HW_CU_MODULE, m);
    CUresult r = m->functions && m->handle ? place_variables(m) : CUDA_ERROR_OUT_OF_MEMORY;
    if (r != CUDA_SUCCESS) {
        m->library = NULL; /* not in its list yet */
        module_end(m);
        return r;
    }
    for (uint32_t i = 0; i < n; i++) {
        hw_cu_function *f = &m->functions[i];
        hw_cu_function_init(f, p, i);
        f->kind = HW_CU_FUNCTION;
        f->module = m;
        f->settings =
            l ? &l->settings[i * (uint32_t)hw_cu.ngpus + (uint32_t)ctx->gpu->ordinal] : &f->own;
    }
    pthread_mutex_lock(&ctx->lock);
    hw_cu_list_add(&ctx->modules, &m->link);
    pthread_mutex_unlock(&ctx->lock);
    *out = m;
    return CUDA_SUCCESS;
}

static uint32_t capability(const hw_cu_gpu *g)
{
    return g->model->capability.major * 10 + g->model->capability.minor;
}

static CUresult load_module(CUmodule *out, const void *image, size_t len, const char *origin,
                            const hw_cu_jit_options *o)
{
    hw_cu_context *ctx;
    hw_cu_program *p;
    hw_cu_module *m;
    CU_TRY(hw_cu_current(&ctx));
    CU_NEED(out && image, INVALID_VALUE);
    CU_TRY(hw_cu_program_new(image, len, capability(ctx->gpu), origin, o, &p));
    CU_TRY(module_new(ctx, p, NULL, &m));
    *out = m->handle;
    return CUDA_SUCCESS;
}

CUresult cuModuleLoadDataEx(CUmodule *out, const void *image, unsigned int n, CUjit_option *options,
                            void **values)
{
    hw_cu_jit_options o;
    CU_TRY(hw_cu_ready());
    CU_TRY(hw_cu_jit_read(n, options, values, &o));
    return load_module(out, image, SIZE_MAX, "cuModuleLoadData", &o);
}

CUresult cuModuleLoadData(CUmodule *out, const void *image)
{
    return cuModuleLoadDataEx(out, image, 0, NULL, NULL);
}

CUresult cuModuleLoadFatBinary(CUmodule *out, const void *image)
{
    return cuModuleLoadDataEx(out, image, 0, NULL, NULL);
}

CUresult cuModuleLoad(CUmodule *out, const char *path)
{
    const hw_cu_jit_options o = { 0 };
    hw_str bytes;
    CU_TRY(hw_cu_ready());
    CU_NEED(out && path, INVALID_VALUE);
    hw_arena *a = hw_arena_new();
    CUresult r = hw_cu_load_file(a, path, &bytes);
    if (r == CUDA_SUCCESS)
        r = load_module(out, bytes.ptr, bytes.len, path, &o);
    hw_arena_free(a);
    return r;
}

static CUresult find_module(CUmodule handle, hw_cu_module **out)
{
    CU_TRY(hw_cu_ready());
    *out = hw_cu_handle_get(handle, HW_CU_MODULE);
    return *out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuModuleUnload(CUmodule handle)
{
    hw_cu_module *m;
    CU_TRY(find_module(handle, &m));
    CU_NEED(!m->library, NOT_PERMITTED); /* goes with its library */
    if (m->ctx->exec)
        hw_exec_wait(m->ctx->exec);
    module_end(m);
    return CUDA_SUCCESS;
}

CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode *mode)
{
    CU_TRY(hw_cu_ready());
    CU_NEED(mode, INVALID_VALUE);
    *mode =
        strcmp(hw_cu.env.loading, "EAGER") == 0 ? CU_MODULE_EAGER_LOADING : CU_MODULE_LAZY_LOADING;
    return CUDA_SUCCESS;
}

/* ---- names ---- */

CUresult cuModuleGetFunction(CUfunction *out, CUmodule handle, const char *name)
{
    hw_cu_module *m;
    CU_TRY(find_module(handle, &m));
    CU_NEED(out && name, INVALID_VALUE);
    uint32_t k = hw_ptx_find_kernel(m->program->ptx, name);
    CU_NEED(k != UINT32_MAX, NOT_FOUND);
    *out = hw_cu_function_handle(&m->functions[k]);
    return *out ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuModuleGetFunctionCount(unsigned int *n, CUmodule handle)
{
    hw_cu_module *m;
    CU_TRY(find_module(handle, &m));
    CU_NEED(n, INVALID_VALUE);
    *n = m->program->ptx->nkernels;
    return CUDA_SUCCESS;
}

CUresult cuModuleEnumerateFunctions(CUfunction *out, unsigned int n, CUmodule handle)
{
    hw_cu_module *m;
    CU_TRY(find_module(handle, &m));
    CU_NEED(out || !n, INVALID_VALUE);
    for (uint32_t i = 0; i < n && i < m->program->ptx->nkernels; i++) {
        out[i] = hw_cu_function_handle(&m->functions[i]);
    }
    return CUDA_SUCCESS;
}

static CUresult module_global(hw_cu_module *m, const char *name, CUdeviceptr *address, size_t *size)
{
    CU_NEED(name && (address || size), INVALID_VALUE);
    uint32_t v = hw_ptx_find_variable(m->program->ptx, name);
    CU_NEED(v != UINT32_MAX, NOT_FOUND);
    if (address)
        *address = m->addresses[v];
    if (size)
        *size = m->program->ptx->variables[v].size;
    return CUDA_SUCCESS;
}

CUresult cuModuleGetGlobal_v2(CUdeviceptr *address, size_t *size, CUmodule handle, const char *name)
{
    hw_cu_module *m;
    CU_TRY(find_module(handle, &m));
    return module_global(m, name, address, size);
}

/* ---- libraries ---- */

static CUresult library_new(hw_cu_program *p, hw_cu_library **out)
{
    uint32_t n = p->ptx->nkernels, gpus = (uint32_t)hw_cu.ngpus;
    hw_cu_library *l = calloc(1, sizeof *l);
    CU_NEED(l, OUT_OF_MEMORY);
    l->program = p;
    l->kernels = calloc(n ? n : 1, sizeof *l->kernels);
    l->settings = calloc((size_t)(n ? n : 1) * gpus, sizeof *l->settings);
    l->managed = calloc(p->ptx->nvariables ? p->ptx->nvariables : 1, sizeof *l->managed);
    CU_NEED(l->kernels && l->settings && l->managed, OUT_OF_MEMORY);
    pthread_mutex_init(&l->lock, NULL);
    hw_cu_list_init(&l->modules);
    for (uint32_t i = 0; i < n; i++) {
        hw_cu_function_init(&l->kernels[i], p, i);
        l->kernels[i].kind = HW_CU_KERNEL;
        l->kernels[i].library = l;
        for (uint32_t g = 0; g < gpus; g++) {
            l->settings[i * gpus + g] = l->kernels[i].own;
        }
    }
    l->handle = hw_cu_handle_new(HW_CU_LIBRARY, l);
    *out = l;
    return CUDA_SUCCESS;
}

CUresult hw_cu_library_module(hw_cu_library *l, hw_cu_context *ctx, hw_cu_module **out)
{
    CUresult r = CUDA_SUCCESS;
    *out = NULL;
    pthread_mutex_lock(&l->lock);
    for (hw_cu_link *i = l->modules.next; i != &l->modules && !*out; i = i->next) {
        hw_cu_module *m = HW_CU_ITEM(i, hw_cu_module, sibling);
        if (m->ctx == ctx)
            *out = m;
    }
    if (!*out) {
        r = library_managed(l);
        if (r == CUDA_SUCCESS) {
            __atomic_add_fetch(&l->program->refs, 1, __ATOMIC_RELAXED);
            r = module_new(ctx, l->program, l, out);
        }
        if (r == CUDA_SUCCESS)
            hw_cu_list_add(&l->modules, &(*out)->sibling);
    }
    pthread_mutex_unlock(&l->lock);
    return r;
}

static CUresult load_library(CUlibrary *out, const void *image, size_t len, const char *origin,
                             const hw_cu_jit_options *o)
{
    hw_cu_program *p;
    hw_cu_library *l;
    hw_cu_context *ctx;
    hw_cu_module *m;
    CU_TRY(hw_cu_program_new(image, len, capability(&hw_cu.gpus[0]), origin, o, &p));
    CU_TRY(library_new(p, &l));
    *out = l->handle;
    if (strcmp(hw_cu.env.loading, "EAGER") == 0 && hw_cu_current(&ctx) == CUDA_SUCCESS)
        return hw_cu_library_module(l, ctx, &m);
    return CUDA_SUCCESS;
}

CUresult cuLibraryLoadData(CUlibrary *out, const void *code, CUjit_option *jit, void **jit_values,
                           unsigned int njit, CUlibraryOption *options, void **values,
                           unsigned int n)
{
    hw_cu_jit_options o;
    CU_TRY(hw_cu_ready());
    CU_NEED(out && code && (!n || options), INVALID_VALUE);
    (void)
        values; /* whether the image is preserved does not matter: what is needed of it is copied */
    CU_TRY(hw_cu_jit_read(njit, jit, jit_values, &o));
    return load_library(out, code, SIZE_MAX, "cuLibraryLoadData", &o);
}

CUresult cuLibraryLoadFromFile(CUlibrary *out, const char *path, CUjit_option *jit,
                               void **jit_values, unsigned int njit, CUlibraryOption *options,
                               void **values, unsigned int n)
{
    hw_cu_jit_options o;
    hw_str bytes;
    CU_TRY(hw_cu_ready());
    CU_NEED(out && path && (!n || options), INVALID_VALUE);
    (void)values;
    CU_TRY(hw_cu_jit_read(njit, jit, jit_values, &o));
    hw_arena *a = hw_arena_new();
    CUresult r = hw_cu_load_file(a, path, &bytes);
    if (r == CUDA_SUCCESS)
        r = load_library(out, bytes.ptr, bytes.len, path, &o);
    hw_arena_free(a);
    return r;
}

static CUresult find_library(CUlibrary handle, hw_cu_library **out)
{
    CU_TRY(hw_cu_ready());
    *out = hw_cu_handle_get(handle, HW_CU_LIBRARY);
    return *out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuLibraryUnload(CUlibrary handle)
{
    hw_cu_library *l;
    CU_TRY(find_library(handle, &l));
    hw_cu_handle_drop(handle);
    while (l->modules.next != &l->modules) {
        hw_cu_module *m = HW_CU_ITEM(l->modules.next, hw_cu_module, sibling);
        if (m->ctx->exec)
            hw_exec_wait(m->ctx->exec);
        module_end(m);
    }
    for (uint32_t i = 0; i < l->program->ptx->nkernels; i++) {
        if (l->kernels[i].handle)
            hw_cu_handle_drop(l->kernels[i].handle);
    }
    for (uint32_t i = 0; i < l->program->ptx->nvariables; i++) {
        free_at(l->managed[i]);
    }
    hw_cu_program_release(l->program);
    pthread_mutex_destroy(&l->lock);
    free(l->kernels);
    free(l->settings);
    free(l->managed);
    free(l);
    return CUDA_SUCCESS;
}

CUresult cuLibraryGetKernel(CUkernel *out, CUlibrary handle, const char *name)
{
    hw_cu_library *l;
    CU_TRY(find_library(handle, &l));
    CU_NEED(out && name, INVALID_VALUE);
    uint32_t k = hw_ptx_find_kernel(l->program->ptx, name);
    CU_NEED(k != UINT32_MAX, NOT_FOUND);
    *out = (CUkernel)hw_cu_function_handle(&l->kernels[k]);
    return *out ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuLibraryGetKernelCount(unsigned int *n, CUlibrary handle)
{
    hw_cu_library *l;
    CU_TRY(find_library(handle, &l));
    CU_NEED(n, INVALID_VALUE);
    *n = l->program->ptx->nkernels;
    return CUDA_SUCCESS;
}

CUresult cuLibraryEnumerateKernels(CUkernel *out, unsigned int n, CUlibrary handle)
{
    hw_cu_library *l;
    CU_TRY(find_library(handle, &l));
    CU_NEED(out || !n, INVALID_VALUE);
    for (uint32_t i = 0; i < n && i < l->program->ptx->nkernels; i++) {
        out[i] = (CUkernel)hw_cu_function_handle(&l->kernels[i]);
    }
    return CUDA_SUCCESS;
}

static CUresult current_module(CUlibrary handle, hw_cu_module **out)
{
    hw_cu_library *l;
    hw_cu_context *ctx;
    CU_TRY(find_library(handle, &l));
    CU_TRY(hw_cu_current(&ctx));
    return hw_cu_library_module(l, ctx, out);
}

CUresult cuLibraryGetModule(CUmodule *out, CUlibrary handle)
{
    hw_cu_module *m;
    CU_NEED(out, INVALID_VALUE);
    CU_TRY(current_module(handle, &m));
    *out = m->handle;
    return CUDA_SUCCESS;
}

CUresult cuLibraryGetGlobal(CUdeviceptr *address, size_t *size, CUlibrary handle, const char *name)
{
    hw_cu_module *m;
    CU_TRY(current_module(handle, &m));
    return module_global(m, name, address, size);
}

CUresult cuLibraryGetManaged(CUdeviceptr *address, size_t *size, CUlibrary handle, const char *name)
{
    hw_cu_library *l;
    CU_TRY(find_library(handle, &l));
    CU_NEED(name && (address || size), INVALID_VALUE);
    uint32_t v = hw_ptx_find_variable(l->program->ptx, name);
    CU_NEED(v != UINT32_MAX && l->program->ptx->variables[v].managed, NOT_FOUND);
    pthread_mutex_lock(&l->lock);
    CUresult r = library_managed(l);
    pthread_mutex_unlock(&l->lock);
    CU_TRY(r);
    if (address)
        *address = l->managed[v];
    if (size)
        *size = l->program->ptx->variables[v].size;
    return CUDA_SUCCESS;
}
