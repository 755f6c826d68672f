/* SPDX-License-Identifier: Apache-2.0
 * Prints what image finds in a file, for test_nvcc.py: `image_dump list|ptx|kernels FILE [CC]`.
 */
#include "hw_image.h"

#include <stdio.h>
#include <stdlib.h>

static int fail(hw_arena *a, const hw_diag *d)
{
    fprintf(stderr, "%s\n", hw_diag_text(d, a).ptr);
    return 1;
}

static void list(const hw_image *img, const char *indent)
{
    static const char *const kinds[] = { "ptx", "cubin", "lto", "other" };
    for (size_t i = 0; i < img->entries.len; i++) {
        const hw_image_entry *e = &img->entries.ptr[i];
        printf("%s%s %u%s %u.%u%s%s%s\n", indent, kinds[e->kind], e->arch,
               e->arch_specific ? "a"
               : e->family      ? "f"
                                : "",
               e->version_major, e->version_minor, e->compressed ? " compressed" : "",
               e->debug ? " debug" : "", e->relocatable ? " relocatable" : "");
    }
    for (size_t i = 0; i < img->n_units; i++) {
        printf("%sunit\n", indent);
        list(&img->units[i], "  ");
    }
}

static int print_ptx(hw_arena *a, const hw_image *img, uint32_t cc, hw_diag *d)
{
    hw_str *texts;
    size_t n;
    if (hw_image_ptx(a, img, cc, &texts, &n, d) != HW_OK)
        return fail(a, d);
    for (size_t i = 0; i < n; i++)
        printf("%.*s\n", HW_STR_ARG(texts[i]));
    return 0;
}

static int print_kernels(hw_arena *a, const hw_image *img, hw_diag *d)
{
    for (size_t i = 0; i < img->entries.len; i++) {
        hw_str elf;
        hw_cubin_kernel *k;
        size_t n;
        if (img->entries.ptr[i].kind != HW_ENTRY_CUBIN)
            continue;
        if (hw_image_unpack(a, &img->entries.ptr[i], &elf, d) != HW_OK ||
            hw_cubin_kernels(a, (hw_span){ (const uint8_t *)elf.ptr, elf.len }, &k, &n, d) != HW_OK)
            return fail(a, d);
        for (size_t j = 0; j < n; j++)
            printf("%u %s %u %u %u %u %u %u\n", img->entries.ptr[i].arch, k[j].name, k[j].registers,
                   k[j].static_shared_bytes, k[j].local_bytes, k[j].barriers, k[j].param_bytes,
                   k[j].max_threads);
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    hw_arena *a = hw_arena_new();
    hw_diag *d = hw_diag_new(a);
    hw_image *images;
    size_t n;
    if (hw_image_open_file(a, argv[2], &images, &n, d) != HW_OK)
        return fail(a, d);
    int bad = 0, served = 0;
    for (size_t i = 0; i < n; i++) {
        if (strcmp(argv[1], "list") == 0)
            list(&images[i], "");
        else if (strcmp(argv[1], "ptx") == 0)
            bad = print_ptx(a, &images[i], argc > 3 ? (uint32_t)strtoul(argv[3], NULL, 10) : 90, d);
        else
            bad = print_kernels(a, &images[i], d);
        served += !bad; /* a host program's device-link image may well be empty */
    }
    hw_arena_free(a);
    return !served;
}
