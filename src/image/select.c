/* SPDX-License-Identifier: Apache-2.0
 * The choice among an image's entries, and what to say when there is none.
 */
#include "fatbin.h"

/* May an entry for an exact architecture or family serve a device of capability cc? */
static bool fits(const hw_image_entry *e, uint32_t cc)
{
    if (e->arch_specific)
        return e->arch == cc;
    if (e->family)
        return e->arch <= cc && e->arch / 10 == cc / 10;
    return e->arch <= cc;
}

/* Specific beats family beats plain where the architecture is the same. */
static uint32_t rank(const hw_image_entry *e)
{
    return e->arch * 4 + (e->arch_specific ? 2u : e->family ? 1u : 0u);
}

/* Lower comes first when nothing fits; entries bound to another architecture come last. */
static uint32_t fallback_rank(const hw_image_entry *e)
{
    return e->arch + (e->arch_specific || e->family ? 1u << 20 : 0u);
}

static const hw_image_entry *choose(const hw_image *img, uint32_t cc)
{
    const hw_image_entry *best = NULL, *lowest = NULL;
    for (size_t i = 0; i < img->entries.len; i++) {
        const hw_image_entry *e = &img->entries.ptr[i];
        if (e->kind != HW_ENTRY_PTX)
            continue;
        if (fits(e, cc) && (!best || rank(e) > rank(best)))
            best = e;
        if (!lowest || fallback_rank(e) < fallback_rank(lowest))
            lowest = e;
    }
    return best ? best : lowest;
}

static const char *suffix(const hw_image_entry *e)
{
    return e->arch_specific ? "a" : e->family ? "f" : "";
}

static const char *list_of(hw_arena *a, const hw_image *img, hw_image_kind kind, const char *prefix)
{
    const char *all = "";
    for (size_t i = 0; i < img->entries.len; i++) {
        const hw_image_entry *e = &img->entries.ptr[i];
        if (e->kind != kind)
            continue;
        const char *one = hw_arena_printf(a, "%s%u%s", prefix, e->arch, suffix(e));
        if (!strstr(all, one))
            all = hw_arena_printf(a, "%s%s%s", all, *all ? ", " : "", one);
    }
    return all;
}

static const hw_image_entry *newest(const hw_image *img, hw_image_kind kind)
{
    const hw_image_entry *best = NULL;
    for (size_t i = 0; i < img->entries.len; i++)
        if (img->entries.ptr[i].kind == kind && (!best || img->entries.ptr[i].arch > best->arch))
            best = &img->entries.ptr[i];
    return best;
}

static hw_status fail_without_ptx(hw_arena *a, const hw_image *img, hw_diag *d)
{
    const hw_image_entry *cubin = newest(img, HW_ENTRY_CUBIN), *lto = newest(img, HW_ENTRY_LTO);
    if (cubin)
        return hw_fail(d, HW_E_NO_PTX,
                       "contains only %s machine code, no PTX; add -gencode "
                       "arch=compute_%u%s,code=compute_%u%s to nvcc's options (CMake: drop -real)",
                       list_of(a, img, HW_ENTRY_CUBIN, "sm_"), cubin->arch, suffix(cubin),
                       cubin->arch, suffix(cubin));
    if (lto)
        return hw_fail(d, HW_E_NO_PTX,
                       "contains only %s LTO code, no PTX; replace code=lto_%u by "
                       "code=compute_%u in nvcc's options and leave out -dlto",
                       list_of(a, img, HW_ENTRY_LTO, "lto_"), lto->arch, lto->arch);
    if (img->entries.len)
        return hw_fail(d, HW_E_NO_PTX, "contains neither PTX nor machine code for NVIDIA devices");
    return hw_fail(d, HW_E_NO_PTX, "contains no device code");
}

typedef HW_VEC(hw_str) text_list;

static hw_status add_text(hw_arena *a, const hw_image *img, uint32_t cc, text_list *texts,
                          hw_diag *d)
{
    const hw_image_entry *e = choose(img, cc);
    if (!e)
        return fail_without_ptx(a, img, d);
    hw_str text;
    HW_TRY(hw_image_unpack(a, e, &text, d));
    hw_vec_push(a, texts, text);
    return HW_OK;
}

/* nvcc's device runtime (launches from device code) is a unit of every program that is linked from
 * PTX alone; it is large and seldom needed. */
static bool is_device_runtime(hw_str text)
{
    return memmem(text.ptr, text.len, ") cnpGetParameterBuffer", 23) != NULL;
}

/* Device code that calls the runtime API declares it: ".extern .func (.param ...) cuda...". */
static bool calls_device_runtime(hw_str text)
{
    return memmem(text.ptr, text.len, ") cuda", 6) != NULL;
}

static void drop_device_runtime(text_list *texts)
{
    size_t kept = 0, at = SIZE_MAX;
    for (size_t i = 0; i < texts->len; i++)
        if (is_device_runtime(texts->ptr[i]))
            at = i;
        else if (calls_device_runtime(texts->ptr[i]))
            return;
    if (at == SIZE_MAX)
        return;
    for (size_t i = 0; i < texts->len; i++)
        if (i != at)
            texts->ptr[kept++] = texts->ptr[i];
    texts->len = kept;
}

hw_status hw_image_ptx(hw_arena *a, const hw_image *img, uint32_t cc, hw_str **texts, size_t *n,
                       hw_diag *d)
{
    text_list all = { 0 };
    if (!img->n_units && !img->is_device_linked)
        HW_TRY(add_text(a, img, cc, &all, d));
    for (size_t i = 0; i < img->n_units; i++)
        HW_TRY(add_text(a, &img->units[i], cc, &all, d));
    drop_device_runtime(&all);
    *texts = all.ptr;
    *n = all.len;
    return HW_OK;
}
