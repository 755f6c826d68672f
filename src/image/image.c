/* SPDX-License-Identifier: Apache-2.0
 * What the bytes are, and the reader for it.
 */
#include "elf_view.h"
#include "fatbin.h"

enum { TEXT_HEAD = 4096 };
#define TEXT_LIMIT ((size_t)1 << 30) /* of a PTX text whose length nobody gave */

/* The number after a directive, in the head of a PTX text ("." matches the version's dot). */
static const char *after_directive(hw_str head, const char *directive)
{
    const char *p = memmem(head.ptr, head.len, directive, strlen(directive));
    const char *end = head.ptr + head.len;
    p = p ? p + strlen(directive) : end;
    while (p < end && (*p == ' ' || *p == '\t'))
        p++;
    return p;
}

static uint32_t number_at(const char **p, const char *end)
{
    uint32_t v = 0;
    while (*p < end && **p >= '0' && **p <= '9' && v < 100000)
        v = v * 10 + (uint32_t)(*(*p)++ - '0');
    return v;
}

/* Enough of a PTX text's first directives to choose by; parsing it is ptx's work. */
static void read_ptx_head(hw_str text, hw_image_entry *e)
{
    hw_str head = { text.ptr, text.len < TEXT_HEAD ? text.len : TEXT_HEAD };
    const char *end = head.ptr + head.len, *p = after_directive(head, ".version");
    e->version_major = number_at(&p, end);
    if (p < end && *p == '.')
        p++;
    e->version_minor = number_at(&p, end);
    p = after_directive(head, ".target");
    if (end - p > 3 && (memcmp(p, "sm_", 3) == 0)) {
        p += 3;
        e->arch = number_at(&p, end);
        e->arch_specific = p < end && *p == 'a';
        e->family = p < end && *p == 'f';
    }
}

/* Text begins with printable bytes or blanks and ends at the first NUL. */
static bool looks_like_text(hw_span b)
{
    size_t n = b.len == SIZE_MAX ? strnlen((const char *)b.ptr, 16) : b.len;
    for (size_t i = 0; i < n && i < 16 && b.ptr[i]; i++) {
        bool blank = b.ptr[i] == '\n' || b.ptr[i] == '\r' || b.ptr[i] == '\t';
        if (!blank && (b.ptr[i] < ' ' || b.ptr[i] > '~'))
            return false;
    }
    return n > 0 && b.ptr[0] != 0;
}

hw_status text_open(hw_arena *a, hw_span b, hw_image *out, hw_diag *d)
{
    size_t limit = b.len == SIZE_MAX ? TEXT_LIMIT : b.len;
    size_t n = strnlen((const char *)b.ptr, limit);
    if (n >= TEXT_LIMIT)
        return hw_fail(d, HW_E_CORRUPT, "PTX text without an end");
    hw_str text = { (const char *)b.ptr, n };
    if (!memmem(text.ptr, text.len, ".version", 8))
        return hw_fail(d, HW_E_INVALID,
                       "image is neither a fatbin, an ELF file nor PTX text (no .version in it)");
    hw_image_entry e = { .kind = HW_ENTRY_PTX, .options = "" };
    e.payload = (hw_span){ b.ptr, n };
    e.stored_size = e.full_size = (uint32_t)n;
    read_ptx_head(text, &e);
    hw_vec_push(a, &out->entries, e);
    return HW_OK;
}

/* The fatbins of a host program or object: plain ones each an image, relocatable ones the units of
 * one. */
static hw_status open_host_elf(hw_arena *a, const elf_view *elf, hw_image **images, size_t *n,
                               hw_diag *d)
{
    static const char *const plain[] = { ".nv_fatbin", ".hip_fatbin" };
    HW_VEC(hw_image) found = { 0 };
    elf_section s;
    for (size_t i = 0; i < HW_COUNTOF(plain); i++) {
        hw_image *some;
        size_t count;
        if (!elf_find_section(elf, plain[i], &s))
            continue;
        HW_TRY(fatbin_scan(a, s.bytes, &some, &count, d));
        for (size_t k = 0; k < count; k++)
            hw_vec_push(a, &found, some[k]);
    }
    if (elf_find_section(elf, "__nv_relfatbin", &s)) {
        hw_image linked = { .is_device_linked = true };
        HW_TRY(fatbin_scan(a, s.bytes, &linked.units, &linked.n_units, d));
        hw_vec_push(a, &found, linked);
    }
    *images = found.ptr;
    *n = found.len;
    return HW_OK;
}

static bool is_host_elf(const elf_view *elf)
{
    elf_section s;
    return elf_find_section(elf, ".nv_fatbin", &s) || elf_find_section(elf, "__nv_relfatbin", &s);
}

static hw_status open_elf(hw_arena *a, hw_span b, hw_image *out, hw_diag *d)
{
    elf_view elf;
    HW_TRY(elf_open(b, &elf, d));
    if (!is_host_elf(&elf)) {
        hw_image_entry e;
        HW_TRY(cubin_entry(elf.bytes, &e, d));
        hw_vec_push(a, &out->entries, e);
        return HW_OK;
    }
    hw_image *images;
    size_t n;
    HW_TRY(open_host_elf(a, &elf, &images, &n, d));
    if (n == 1) {
        *out = images[0];
    } else {
        out->units = images;
        out->n_units = n;
    }
    return HW_OK;
}

hw_status hw_image_open(hw_arena *a, const void *bytes, size_t len, hw_image *out, hw_diag *d)
{
    *out = (hw_image){ 0 };
    hw_span b = { bytes, len };
    if (!bytes || len == 0 || !b.ptr[0]) /* no format begins with a zero */
        return hw_fail(d, HW_E_INVALID, "empty image");
    if (looks_like_text(b))
        return text_open(a, b, out, d);
    if (elf_is(b))
        return open_elf(a, b, out, d);
    if (linked_is(b))
        return linked_open(a, b, out, d);
    if (len < 4)
        return hw_fail(d, HW_E_CORRUPT, "image of %zu bytes", len);
    size_t taken = 0;
    uint32_t magic = read_u32(b.ptr);
    if (magic == FATBIN_MAGIC)
        return fatbin_open(a, b, out, &taken, d);
    /* A wrapper's pointers mean something only in the memory that it was made for. */
    if (magic == WRAPPER_MAGIC && len == SIZE_MAX)
        return wrapper_open(a, b.ptr, out, d);
    return hw_fail(d, HW_E_INVALID, "image is neither a fatbin, an ELF file nor PTX text");
}

hw_status hw_image_open_file(hw_arena *a, const char *path, hw_image **out, size_t *n, hw_diag *d)
{
    hw_str file;
    elf_view elf;
    HW_TRY(hw_read_file(a, path, &file, d));
    hw_span b = { (const uint8_t *)file.ptr, file.len };
    if (elf_is(b)) {
        HW_TRY(elf_open(b, &elf, d));
        if (is_host_elf(&elf))
            return open_host_elf(a, &elf, out, n, d);
    }
    *out = HW_NEW(a, hw_image);
    *n = 1;
    return hw_image_open(a, b.ptr, b.len, *out, d);
}
