/* SPDX-License-Identifier: Apache-2.0
 *
 * Programs: an image (fatbin, wrapper, ELF, PTX text, or what cuLinkComplete gave) made a linked
 * PTX module that any context may use; JIT options and logs.
 */
#include "driver.h"

#include <stdlib.h>
#include <time.h>

/* ---- options and logs ---- */

CUresult hw_cu_jit_read(unsigned n, CUjit_option *options, void **values, hw_cu_jit_options *out)
{
    *out = (hw_cu_jit_options){ 0 };
    CU_NEED(!n || (options && values), INVALID_VALUE);
    for (unsigned i = 0; i < n; i++) {
        CU_NEED((unsigned)options[i] < CU_JIT_NUM_OPTIONS, INVALID_VALUE);
        switch ((int)options[i]) {
        case CU_JIT_ERROR_LOG_BUFFER:
            out->error_log = values[i];
            break;
        case CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES:
            out->error_size = (uint32_t)(uintptr_t)values[i];
            out->error_size_out = &values[i];
            break;
        case CU_JIT_INFO_LOG_BUFFER:
            out->info_log = values[i];
            break;
        case CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES:
            out->info_size = (uint32_t)(uintptr_t)values[i];
            out->info_size_out = &values[i];
            break;
        case CU_JIT_MAX_REGISTERS:
            out->max_registers = (uint32_t)(uintptr_t)values[i];
            break;
        case CU_JIT_WALL_TIME:
            out->wall_time_out = &values[i];
            break;
        default: /* targets, optimisation: nothing here is compiled for a device */
            break;
        }
    }
    return CUDA_SUCCESS;
}

static void fill_log(char *log, size_t size, void **size_out, hw_str text)
{
    size_t len = 0;
    if (log && size) {
        len = text.len < size - 1 ? text.len : size - 1;
        memcpy(log, text.len ? text.ptr : "", len);
        log[len] = '\0';
    }
    if (size_out)
        *size_out = (void *)(log && len ? len + 1 : 0);
}

void hw_cu_jit_log(const hw_cu_jit_options *o, const hw_diag *d)
{
    hw_arena *a = hw_arena_new();
    hw_str text = d->errors ? hw_diag_text(d, a) : (hw_str){ "", 0 };
    fill_log(o->error_log, o->error_size, o->error_size_out, text);
    fill_log(o->info_log, o->info_size, o->info_size_out, (hw_str){ "", 0 });
    hw_arena_free(a);
}

static void fill_wall_time(const hw_cu_jit_options *o, const struct timespec *start)
{
    struct timespec end;
    if (!o->wall_time_out)
        return;
    clock_gettime(CLOCK_MONOTONIC, &end);
    float ms = (float)((double)(end.tv_sec - start->tv_sec) * 1e3 +
                       (double)(end.tv_nsec - start->tv_nsec) * 1e-6);
    uint32_t bits;
    memcpy(&bits, &ms, sizeof bits);
    *o->wall_time_out = (void *)(uintptr_t)bits;
}

/* ---- making ---- */

static hw_status link_texts(hw_cu_program *p, const hw_str *texts, const char *const *origins,
                            size_t n, hw_diag *d)
{
    hw_ptx_unit **units = HW_NEW_N(p->arena, hw_ptx_unit *, n + 1);
    bool more = false;
    for (size_t i = 0; i < n; i++) {
        HW_TRY(hw_ptx_parse(p->arena, hw_arena_dup(p->arena, texts[i]), origins[i], &units[i], d));
        more |= hw_cu_needs_library(texts[i]);
    }
    if (more)
        HW_TRY(hw_ptx_parse(p->arena, hw_arena_dup(p->arena, hw_cu_device_library()),
                            "the device runtime", &units[n++], d));
    HW_TRY(hw_ptx_link(p->arena, units, n, &p->ptx, d));
    p->info = HW_NEW_N(p->arena, hw_cu_kernel_info, p->ptx->nkernels ? p->ptx->nkernels : 1);
    p->runs = HW_NEW_N(p->arena, _Atomic bool, p->ptx->nkernels ? p->ptx->nkernels : 1);
    return HW_OK;
}

static hw_status open_texts(hw_arena *a, const void *image, size_t len, uint32_t cc, hw_image *img,
                            hw_str **texts, size_t *n, hw_diag *d)
{
    HW_TRY(hw_image_open(a, image, len, img, d));
    return hw_image_ptx(a, img, cc, texts, n, d);
}

static const char *const *origins_of(hw_arena *a, const char *origin, size_t n)
{
    const char **names = HW_NEW_N(a, const char *, n ? n : 1);
    for (size_t i = 0; i < n; i++) {
        names[i] = n == 1 ? hw_arena_cstr(a, hw_str_of(origin))
                          : hw_arena_printf(a, "%s#%zu", origin, i + 1);
    }
    return names;
}

static CUresult finish(hw_cu_program *p, hw_status s, const hw_cu_jit_options *o, const hw_diag *d,
                       const struct timespec *start, hw_cu_program **out)
{
    hw_cu_jit_log(o, d);
    fill_wall_time(o, start);
    if (s != HW_OK) {
        if (!o->error_log || !o->error_size) /* else the caller has the whole text */
            hw_cu_notice_diag("", d);
        hw_cu_program_release(p);
        return hw_cu_result(s);
    }
    *out = p;
    return CUDA_SUCCESS;
}

static hw_cu_program *program_alloc(hw_arena *a, uint32_t cc)
{
    hw_cu_program *p = calloc(1, sizeof *p);
    if (!p)
        return NULL;
    p->arena = a;
    p->refs = 1;
    p->cc = cc;
    pthread_mutex_init(&p->lock, NULL);
    return p;
}

CUresult hw_cu_program_new(const void *image, size_t len, uint32_t cc, const char *origin,
                           const hw_cu_jit_options *o, hw_cu_program **out)
{
    struct timespec start;
    clock_gettime(CLOCK_MONOTONIC, &start);
    hw_cu_program *p = program_alloc(hw_arena_new(), cc);
    CU_NEED(p, OUT_OF_MEMORY);
    hw_diag *d = hw_diag_new(p->arena);
    hw_image img = { 0 };
    p->max_registers = o->max_registers;
    hw_str *texts = NULL;
    size_t n = 0;
    hw_status s = open_texts(p->arena, image, len, cc, &img, &texts, &n, d);
    if (s == HW_OK)
        s = link_texts(p, texts, origins_of(p->arena, origin, n), n, d);
    else if (s == HW_E_INVALID || s == HW_E_RANGE || s == HW_E_UNSUPPORTED)
        s = HW_E_CORRUPT;
    if (img.max_registers)
        p->max_registers = img.max_registers;
    if (s == HW_OK)
        hw_cu_machine_keep(p, &img, *hw_cu.env.profile != 0);
    return finish(p, s, o, d, &start, out);
}

CUresult hw_cu_program_link(hw_arena *a, hw_str *texts, const char *const *origins, size_t n,
                            const hw_cu_jit_options *o, hw_cu_program **out)
{
    struct timespec start;
    clock_gettime(CLOCK_MONOTONIC, &start);
    hw_cu_program *p = program_alloc(a, 0);
    CU_NEED(p, OUT_OF_MEMORY);
    hw_diag *d = hw_diag_new(a);
    return finish(p, link_texts(p, texts, origins, n, d), o, d, &start, out);
}

void hw_cu_program_runs(hw_cu_program *p, uint32_t kernel)
{
    uint8_t key[32];
    if (atomic_load_explicit(&p->runs[kernel], memory_order_relaxed) ||
        atomic_exchange(&p->runs[kernel], true))
        return;
    hw_cu_source_key(p, kernel, key);
    hw_jit_hold(hw_cu.jit, key);
}

/* A profile refers to the code of launches until it is written. */
static void let_go(hw_cu_program *p)
{
    for (uint32_t i = 0; p->runs && i < p->ptx->nkernels && !*hw_cu.env.profile; i++) {
        uint8_t key[32];
        hw_cu_source_key(p, i, key);
        if (p->runs[i])
            hw_jit_let_go(hw_cu.jit, key);
    }
}

void hw_cu_program_release(hw_cu_program *p)
{
    if (__atomic_sub_fetch(&p->refs, 1, __ATOMIC_ACQ_REL))
        return;
    let_go(p);
    pthread_mutex_destroy(&p->lock);
    hw_arena_free(p->arena);
    free(p);
}

/* ---- what must be lowered to be known ---- */

static void lower_once(hw_cu_program *p, uint32_t kernel)
{
    hw_arena *a = hw_arena_new();
    hw_diag *d = hw_diag_new(a);
    hw_cu_kernel_info *info = &p->info[kernel];
    hw_wir_module *w;
    info->status = hw_ptx_lower(a, p->ptx, kernel, &w, d);
    info->local_bytes = p->ptx->kernels[kernel].local_bytes;
    info->registers = p->ptx->kernels[kernel].registers;
    if (info->status == HW_OK && !info->registers) {
        const hw_variant v = { .block = { 32, 1, 1 } };
        info->status = hw_wir_prepare(w, d);
        if (info->status == HW_OK)
            info->registers = hw_wir_analyse(a, w, 0, &v)->max_live;
    }
    if (info->status != HW_OK)
        hw_cu_notice_diag(p->ptx->kernels[kernel].name, d);
    hw_arena_free(a);
    info->known = true;
}

/* Registers as a compiler would count them are an estimate unless the image holds machine code. */
const hw_cu_kernel_info *hw_cu_kernel_known(hw_cu_program *p, uint32_t kernel)
{
    hw_cu_kernel_info *info = &p->info[kernel];
    hw_cu_machine m;
    pthread_mutex_lock(&p->lock);
    if (!info->known && hw_cu_machine_find(p, kernel, p->cc, &m))
        *info = (hw_cu_kernel_info){ true, HW_OK, m.registers, m.local_bytes };
    if (!info->known)
        lower_once(p, kernel);
    pthread_mutex_unlock(&p->lock);
    return info;
}

bool hw_cu_program_machine(hw_cu_program *p, uint32_t kernel, uint32_t cc, hw_cu_machine *out)
{
    pthread_mutex_lock(&p->lock);
    bool found = hw_cu_machine_find(p, kernel, cc, out);
    pthread_mutex_unlock(&p->lock);
    return found;
}

static uint32_t lower_bound(uint32_t a, uint32_t b)
{
    return !a || (b && b < a) ? b : a;
}

uint32_t hw_cu_most_registers(const hw_cu_program *p, uint32_t kernel)
{
    return lower_bound(p->ptx->kernels[kernel].maxnreg, p->max_registers);
}

CUresult hw_cu_load_file(hw_arena *a, const char *path, hw_str *out)
{
    hw_diag *d = hw_diag_new(a);
    CU_NEED(path, INVALID_VALUE);
    return hw_read_file(a, path, out, d) == HW_OK ? CUDA_SUCCESS : CUDA_ERROR_FILE_NOT_FOUND;
}
