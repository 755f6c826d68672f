/* SPDX-License-Identifier: Apache-2.0
 *
 * cuLink*: PTX of several sources linked into one image. (CUDA Driver API, "Module Management".)
 *
 * Units are parsed and linked once here, so that errors appear where CUDA reports them; the image
 * handed out holds their texts, for nothing else is needed to load them.
 */
#include "driver.h"

#include <stdlib.h>

typedef struct hw_cu_linker {
    CUlinkState handle;
    hw_arena *arena;
    hw_cu_jit_options options;
    HW_VEC(hw_str) texts;
    HW_VEC(const char *) origins;
    void *image;
} hw_cu_linker;

static CUresult find_linker(CUlinkState handle, hw_cu_linker **out)
{
    CU_TRY(hw_cu_ready());
    *out = hw_cu_handle_get(handle, HW_CU_LINK);
    return *out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuLinkCreate_v2(unsigned int n, CUjit_option *options, void **values, CUlinkState *out)
{
    hw_cu_context *ctx;
    hw_cu_jit_options o;
    CU_TRY(hw_cu_current_any(&ctx));
    CU_NEED(out, INVALID_VALUE);
    CU_TRY(hw_cu_jit_read(n, options, values, &o));
    hw_cu_linker *l = calloc(1, sizeof *l);
    CU_NEED(l, OUT_OF_MEMORY);
    l->arena = hw_arena_new();
    l->options = o;
    *out = l->handle = hw_cu_handle_new(HW_CU_LINK, l);
    return CUDA_SUCCESS;
}

static CUresult add_image(hw_cu_linker *l, const void *data, size_t size, uint32_t cc,
                          const char *name)
{
    hw_diag *d = hw_diag_new(l->arena);
    hw_image img = { 0 };
    hw_str *texts = NULL;
    size_t n = 0;
    hw_status s = hw_image_open(l->arena, data, size, &img, d);
    if (s == HW_OK)
        s = hw_image_ptx(l->arena, &img, cc, &texts, &n, d);
    if (s != HW_OK) {
        hw_cu_jit_log(&l->options, d);
        hw_cu_notice_diag(name, d);
        return hw_cu_result(s);
    }
    for (size_t i = 0; i < n; i++) {
        hw_vec_push(l->arena, &l->texts, hw_arena_dup(l->arena, texts[i]));
        hw_vec_push(l->arena, &l->origins, hw_arena_cstr(l->arena, hw_str_of(name)));
    }
    return CUDA_SUCCESS;
}

CUresult cuLinkAddData_v2(CUlinkState state, CUjitInputType type, void *data, size_t size,
                          const char *name, unsigned int n, CUjit_option *options, void **values)
{
    hw_cu_linker *l;
    hw_cu_context *ctx;
    hw_cu_jit_options o;
    CU_TRY(find_linker(state, &l));
    CU_TRY(hw_cu_current_any(&ctx));
    CU_NEED(data && size && (unsigned)type < CU_JIT_NUM_INPUT_TYPES && !l->image, INVALID_VALUE);
    CU_TRY(hw_cu_jit_read(n, options, values, &o));
    if (!name)
        name = "cuLinkAddData";
    if (type == CU_JIT_INPUT_PTX) {
        hw_str text = { data, strnlen(data, size) };
        hw_vec_push(l->arena, &l->texts, hw_arena_dup(l->arena, text));
        hw_vec_push(l->arena, &l->origins, hw_arena_cstr(l->arena, hw_str_of(name)));
        return CUDA_SUCCESS;
    }
    if (type == CU_JIT_INPUT_NVVM || type == CU_JIT_INPUT_LIBRARY) {
        hw_cu_notice("%s: linking this kind of input is not supported; link PTX", name);
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    uint32_t cc = ctx->gpu->model->capability.major * 10 + ctx->gpu->model->capability.minor;
    return add_image(l, data, size, cc, name);
}

/* The device runtime's own library has nothing in it that is not supplied here. */
static bool is_device_runtime(const char *path)
{
    const char *base = strrchr(path, '/');
    return strstr(base ? base : path, "cudadevrt") != NULL;
}

CUresult cuLinkAddFile_v2(CUlinkState state, CUjitInputType type, const char *path, unsigned int n,
                          CUjit_option *options, void **values)
{
    hw_cu_linker *l;
    hw_str bytes;
    CU_TRY(find_linker(state, &l));
    CU_NEED(path, INVALID_VALUE);
    CU_TRY(hw_cu_load_file(l->arena, path, &bytes));
    if (is_device_runtime(path))
        return CUDA_SUCCESS;
    return cuLinkAddData_v2(state, type, (void *)(uintptr_t)bytes.ptr, bytes.len, path, n, options,
                            values);
}

CUresult cuLinkComplete(CUlinkState state, void **image, size_t *size)
{
    hw_cu_linker *l;
    hw_cu_program *p;
    size_t bytes = 0;
    CU_TRY(find_linker(state, &l));
    CU_NEED(image, INVALID_VALUE);
    CU_TRY(hw_cu_program_link(hw_arena_new(), l->texts.ptr, l->origins.ptr, l->texts.len,
                              &l->options, &p));
    hw_cu_program_release(p);
    free(l->image);
    l->image = hw_image_linked_make(l->texts.ptr, l->texts.len, l->options.max_registers, &bytes);
    CU_NEED(l->image, OUT_OF_MEMORY);
    *image = l->image;
    if (size)
        *size = bytes;
    return CUDA_SUCCESS;
}

CUresult cuLinkDestroy(CUlinkState state)
{
    hw_cu_linker *l;
    CU_TRY(find_linker(state, &l));
    hw_cu_handle_drop(state);
    free(l->image);
    hw_arena_free(l->arena);
    free(l);
    return CUDA_SUCCESS;
}
