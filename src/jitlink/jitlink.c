/* SPDX-License-Identifier: Apache-2.0
 * nvJitLink's functions: inputs made PTX units, linked once so that errors appear where nvJitLink
 * reports them, and handed out as a linked image.
 */
#include "jitlink.h"

#include <stdlib.h>

/* takeover leaves alone what has it. */
__attribute__((section(".halfwarp_jitlink"), used)) static const char mark[] = HW_VERSION;

nvJitLinkResult nvJitLinkCreate(nvJitLinkHandle *handle, uint32_t n, const char **options)
{
    if (!handle || (n && !options))
        return NVJITLINK_ERROR_NULL_INPUT;
    *handle = NULL;
    nvJitLinkHandle l = calloc(1, sizeof *l);
    if (!l)
        return NVJITLINK_ERROR_INTERNAL;
    l->arena = hw_arena_new();
    l->errors = hw_diag_new(l->arena);
    nvJitLinkResult r = jitlink_options(l, n, options);
    *handle = l;
    if (r != NVJITLINK_SUCCESS)
        nvJitLinkDestroy(handle);
    return r;
}

nvJitLinkResult nvJitLinkDestroy(nvJitLinkHandle *handle)
{
    if (!handle || !*handle)
        return NVJITLINK_ERROR_NULL_INPUT;
    nvJitLinkHandle l = *handle;
    jitlink_real_end(l);
    free(l->image);
    hw_arena_free(l->arena);
    free(l);
    *handle = NULL;
    return NVJITLINK_SUCCESS;
}

static nvJitLinkResult result_of(hw_status s)
{
    static const struct {
        hw_status status;
        nvJitLinkResult result;
    } rows[] = {
        { HW_OK, NVJITLINK_SUCCESS },
        { HW_E_SYNTAX, NVJITLINK_ERROR_PTX_COMPILE },
        { HW_E_VERSION, NVJITLINK_ERROR_PTX_COMPILE },
        { HW_E_LINK, NVJITLINK_ERROR_FINALIZE },
        { HW_E_NO_PTX, NVJITLINK_ERROR_INVALID_INPUT },
        { HW_E_CORRUPT, NVJITLINK_ERROR_INVALID_INPUT },
        { HW_E_INVALID, NVJITLINK_ERROR_UNRECOGNIZED_INPUT },
    };
    for (size_t i = 0; i < HW_COUNTOF(rows); i++)
        if (rows[i].status == s)
            return rows[i].result;
    return NVJITLINK_ERROR_INTERNAL;
}

static nvJitLinkResult add_text(nvJitLinkHandle l, hw_str text, const char *name)
{
    hw_ptx_unit *unit;
    hw_str kept = hw_arena_dup(l->arena, text);
    hw_status s =
        hw_ptx_parse(l->arena, kept, hw_arena_cstr(l->arena, hw_str_of(name)), &unit, l->errors);
    if (s != HW_OK)
        return result_of(s);
    hw_vec_push(l->arena, &l->texts, kept);
    hw_vec_push(l->arena, &l->units, unit);
    return NVJITLINK_SUCCESS;
}

/* The LTO-IR of an image that holds no PTX; what is already PTX needs no compiler of NVIDIA's. */
static nvJitLinkResult add_lto_entries(nvJitLinkHandle l, const hw_image *img, const char *name,
                                       bool *found)
{
    for (size_t i = 0; i < img->entries.len; i++) {
        const hw_image_entry *e = &img->entries.ptr[i];
        if (e->kind != HW_ENTRY_LTO)
            continue;
        *found = true;
        return jitlink_real_add(l, e->payload.ptr, e->stored_size, name);
    }
    return NVJITLINK_SUCCESS;
}

static nvJitLinkResult add_image(nvJitLinkHandle l, const void *data, size_t size, const char *name)
{
    hw_image *img = HW_NEW(l->arena, hw_image);
    hw_str *texts;
    size_t n = 0;
    const void *kept = hw_arena_dup(l->arena, (hw_str){ data, size }).ptr;
    hw_status s = hw_image_open(l->arena, kept, size, img, l->errors);
    if (s != HW_OK)
        return result_of(s);
    hw_diag *without = hw_diag_new(l->arena);
    s = hw_image_ptx(l->arena, img, l->arch, &texts, &n, without);
    if (s == HW_E_NO_PTX && l->lto) {
        bool found = false;
        nvJitLinkResult r = add_lto_entries(l, img, name, &found);
        if (found)
            return r;
    }
    if (s != HW_OK) {
        hw_fail(l->errors, s, "%s: %.*s", name, HW_STR_ARG(hw_diag_text(without, l->arena)));
        return result_of(s);
    }
    nvJitLinkResult r = NVJITLINK_SUCCESS;
    for (size_t i = 0; i < n && r == NVJITLINK_SUCCESS; i++)
        r = add_text(l, texts[i], name);
    return r;
}

/* The device runtime's own library has nothing in it that is not supplied by our driver. */
static bool is_device_runtime(const char *name)
{
    const char *base = strrchr(name, '/');
    return strstr(base ? base : name, "cudadevrt") != NULL;
}

static nvJitLinkResult refuse(nvJitLinkHandle l, const char *name, const char *what)
{
    hw_fail(l->errors, HW_E_UNSUPPORTED, "%s: linking %s is not supported; link PTX", name, what);
    return NVJITLINK_ERROR_INVALID_INPUT;
}

static nvJitLinkResult add_library(nvJitLinkHandle l, const char *name)
{
    return is_device_runtime(name) ? NVJITLINK_SUCCESS : refuse(l, name, "libraries");
}

nvJitLinkResult nvJitLinkAddData(nvJitLinkHandle l, nvJitLinkInputType type, const void *data,
                                 size_t size, const char *name)
{
    if (!l || !data || !size)
        return NVJITLINK_ERROR_NULL_INPUT;
    if (!name || !*name)
        name = "nvJitLinkAddData";
    if (type == NVJITLINK_INPUT_PTX)
        return add_text(l, (hw_str){ data, strnlen(data, size) }, name);
    if (type == NVJITLINK_INPUT_LTOIR)
        return l->lto ? jitlink_real_add(l, data, size, name) : NVJITLINK_ERROR_LTO_NOT_ENABLED;
    if (type == NVJITLINK_INPUT_LIBRARY)
        return add_library(l, name);
    if (type == NVJITLINK_INPUT_INDEX)
        return refuse(l, name, "index files");
    if (type < NVJITLINK_INPUT_CUBIN || type > NVJITLINK_INPUT_ANY)
        return NVJITLINK_ERROR_UNRECOGNIZED_INPUT;
    return add_image(l, data, size, name);
}

nvJitLinkResult nvJitLinkAddFile(nvJitLinkHandle l, nvJitLinkInputType type, const char *path)
{
    hw_str bytes;
    if (!l || !path)
        return NVJITLINK_ERROR_NULL_INPUT;
    if (hw_read_file(l->arena, path, &bytes, l->errors) != HW_OK)
        return NVJITLINK_ERROR_INVALID_INPUT;
    return nvJitLinkAddData(l, type, bytes.ptr, bytes.len, path);
}

nvJitLinkResult nvJitLinkComplete(nvJitLinkHandle l)
{
    hw_ptx_module *linked;
    if (!l)
        return NVJITLINK_ERROR_NULL_INPUT;
    if (l->completed)
        return NVJITLINK_ERROR_INVALID_INPUT;
    if (l->real) {
        hw_str text;
        nvJitLinkResult r = jitlink_real_ptx(l, &text);
        if (r == NVJITLINK_SUCCESS)
            r = add_text(l, text, "LTO");
        if (r != NVJITLINK_SUCCESS)
            return r;
    }
    hw_status s = hw_ptx_link(l->arena, l->units.ptr, l->units.len, &linked, l->errors);
    if (s != HW_OK)
        return result_of(s);
    l->image = hw_image_linked_make(l->texts.ptr, l->texts.len, l->max_registers, &l->image_bytes);
    l->completed = l->image != NULL;
    return l->completed ? NVJITLINK_SUCCESS : NVJITLINK_ERROR_INTERNAL;
}

nvJitLinkResult nvJitLinkGetLinkedCubinSize(nvJitLinkHandle l, size_t *size)
{
    if (!l || !size)
        return NVJITLINK_ERROR_NULL_INPUT;
    *size = l->wants_ptx ? 0 : l->image_bytes;
    return l->completed && !l->wants_ptx ? NVJITLINK_SUCCESS : NVJITLINK_ERROR_INVALID_INPUT;
}

nvJitLinkResult nvJitLinkGetLinkedCubin(nvJitLinkHandle l, void *cubin)
{
    if (!l || !cubin)
        return NVJITLINK_ERROR_NULL_INPUT;
    if (!l->completed || l->wants_ptx)
        return NVJITLINK_ERROR_INVALID_INPUT;
    memcpy(cubin, l->image, l->image_bytes);
    return NVJITLINK_SUCCESS;
}

/* -ptx goes with -lto, whose result is one text. */
nvJitLinkResult nvJitLinkGetLinkedPtxSize(nvJitLinkHandle l, size_t *size)
{
    if (!l || !size)
        return NVJITLINK_ERROR_NULL_INPUT;
    bool has = l->completed && l->wants_ptx && l->texts.len == 1;
    *size = has ? l->texts.ptr[0].len + 1 : 0;
    return has ? NVJITLINK_SUCCESS : NVJITLINK_ERROR_INVALID_INPUT;
}

nvJitLinkResult nvJitLinkGetLinkedPtx(nvJitLinkHandle l, char *ptx)
{
    size_t size;
    if (!l || !ptx)
        return NVJITLINK_ERROR_NULL_INPUT;
    nvJitLinkResult r = nvJitLinkGetLinkedPtxSize(l, &size);
    if (r == NVJITLINK_SUCCESS)
        memcpy(ptx, l->texts.ptr[0].ptr, size);
    return r;
}

static hw_str error_log(nvJitLinkHandle l)
{
    return l->errors->errors ? hw_diag_text(l->errors, l->arena) : (hw_str){ "", 0 };
}

nvJitLinkResult nvJitLinkGetErrorLogSize(nvJitLinkHandle l, size_t *size)
{
    if (!l || !size)
        return NVJITLINK_ERROR_NULL_INPUT;
    l->log = error_log(l);
    *size = l->log.len ? l->log.len + 1 : 0;
    return NVJITLINK_SUCCESS;
}

nvJitLinkResult nvJitLinkGetErrorLog(nvJitLinkHandle l, char *log)
{
    if (!l || !log)
        return NVJITLINK_ERROR_NULL_INPUT;
    hw_str text = l->log.len ? l->log : error_log(l);
    if (text.len) {
        memcpy(log, text.ptr, text.len);
        log[text.len] = 0;
    }
    return NVJITLINK_SUCCESS;
}

nvJitLinkResult nvJitLinkGetInfoLogSize(nvJitLinkHandle l, size_t *size)
{
    if (!l || !size)
        return NVJITLINK_ERROR_NULL_INPUT;
    *size = 0;
    return NVJITLINK_SUCCESS;
}

nvJitLinkResult nvJitLinkGetInfoLog(nvJitLinkHandle l, char *log)
{
    return l && log ? NVJITLINK_SUCCESS : NVJITLINK_ERROR_NULL_INPUT;
}
