/* SPDX-License-Identifier: Apache-2.0
 * Fatbins: the container that nvcc puts PTX and machine code in, and the wrapper around it.
 */
#include "fatbin.h"

enum { HEADER = 16, ENTRY_MIN = 64, UNIT_LIMIT = 1 << 16, OPTION_LIMIT = 1 << 16 };
#define SIZE_LIMIT ((uint64_t)1 << 31) /* of a fatbin whose length nobody gave */

static hw_image_kind kind_of(uint32_t kind)
{
    switch (kind) {
    case FATBIN_PTX:
        return HW_ENTRY_PTX;
    case FATBIN_ELF:
        return HW_ENTRY_CUBIN;
    case FATBIN_LTO:
        return HW_ENTRY_LTO;
    default:
        return HW_ENTRY_OTHER;
    }
}

/* A string of the entry's header, copied; "" when it lies outside of it. */
static const char *header_string(hw_arena *a, const uint8_t *entry, uint32_t header_size,
                                 uint32_t offset, uint32_t length)
{
    if (!offset || length > OPTION_LIMIT || offset > header_size || length > header_size - offset)
        return "";
    const char *s = (const char *)entry + offset;
    return hw_arena_cstr(a, (hw_str){ s, strnlen(s, length) });
}

static const char *entry_options(hw_arena *a, const uint8_t *entry, uint32_t header_size)
{
    uint32_t record = read_u32(entry + 20);
    if (record < ENTRY_MIN || record > header_size || header_size - record < 8)
        return "";
    return header_string(a, entry, header_size, read_u32(entry + record),
                         read_u32(entry + record + 4));
}

static hw_status read_entry(hw_arena *a, hw_span rest, hw_image_entry *e, size_t *size, hw_diag *d)
{
    if (rest.len < ENTRY_MIN)
        return hw_fail(d, HW_E_CORRUPT, "fatbin ends inside of an entry's header");
    const uint8_t *p = rest.ptr;
    uint32_t header_size = read_u32(p + 4), packed = read_u32(p + 16);
    uint64_t payload = read_u64(p + 8), full = read_u64(p + 56);
    if (header_size < ENTRY_MIN || header_size > rest.len || payload > rest.len - header_size)
        return hw_fail(d, HW_E_CORRUPT,
                       "fatbin entry of %u + %llu bytes does not fit in the %zu left", header_size,
                       (unsigned long long)payload, rest.len);
    if (packed > payload)
        return hw_fail(d, HW_E_CORRUPT, "fatbin entry's compressed size is beyond its payload");
    *e = (hw_image_entry){ .kind = kind_of(read_u16(p)), .flags = read_u64(p + 40) };
    e->version_minor = read_u16(p + 24);
    e->version_major = read_u16(p + 26);
    e->arch = read_u32(p + 28);
    e->arch_specific = (e->flags & FATBIN_SPECIFIC) != 0;
    e->family = (e->flags & FATBIN_FAMILY) != 0;
    e->debug = (e->flags & FATBIN_DEBUG) != 0;
    e->compressed = packed != 0;
    e->stored_size = packed ? packed : (uint32_t)payload;
    if (payload > UINT32_MAX || full > UINT32_MAX)
        return hw_fail(d, HW_E_CORRUPT, "fatbin entry is too large");
    e->full_size = e->compressed ? (uint32_t)full : e->stored_size;
    e->payload = (hw_span){ p + header_size, e->stored_size };
    e->options = entry_options(a, p, header_size);
    e->relocatable = strstr(e->options, "--compile-only") != NULL;
    const char *name = header_string(a, p, header_size, read_u32(p + 32), read_u32(p + 36));
    e->source_name = *name ? name : NULL;
    *size = header_size + (size_t)payload;
    return HW_OK;
}

hw_status fatbin_open(hw_arena *a, hw_span bytes, hw_image *out, size_t *size, hw_diag *d)
{
    if (bytes.len < HEADER || read_u32(bytes.ptr) != FATBIN_MAGIC)
        return hw_fail(d, HW_E_CORRUPT, "no fatbin header");
    uint32_t header_size = read_u16(bytes.ptr + 6);
    uint64_t total = read_u64(bytes.ptr + 8);
    if (header_size < HEADER || header_size > bytes.len)
        return hw_fail(d, HW_E_CORRUPT, "fatbin header of %u bytes", header_size);
    uint64_t room = bytes.len == SIZE_MAX ? SIZE_LIMIT : bytes.len - header_size;
    if (total > room)
        return hw_fail(d, HW_E_CORRUPT, "fatbin of %llu bytes is truncated to %llu",
                       (unsigned long long)total, (unsigned long long)room);
    hw_span rest = { bytes.ptr + header_size, (size_t)total };
    while (rest.len) {
        hw_image_entry e;
        size_t taken = 0;
        HW_TRY(read_entry(a, rest, &e, &taken, d));
        hw_vec_push(a, &out->entries, e);
        rest.ptr += taken;
        rest.len -= taken;
    }
    *size = header_size + (size_t)total;
    return HW_OK;
}

hw_status wrapper_open(hw_arena *a, const uint8_t *wrapper, hw_image *out, hw_diag *d)
{
    uint32_t version = read_u32(wrapper + 4);
    const uint8_t *fatbin, *const *units;
    memcpy(&fatbin, wrapper + 8, sizeof fatbin);
    memcpy(&units, wrapper + 16, sizeof units);
    if (version != 1 && version != 2)
        return hw_fail(d, HW_E_VERSION, "fatbin wrapper of unknown version %u", version);
    size_t taken = 0;
    if (fatbin)
        HW_TRY(fatbin_open(a, (hw_span){ fatbin, SIZE_MAX }, out, &taken, d));
    if (version == 1)
        return HW_OK;
    out->is_device_linked = true;
    while (units && units[out->n_units] && out->n_units < UNIT_LIMIT)
        out->n_units++;
    out->units = HW_NEW_N(a, hw_image, out->n_units);
    for (size_t i = 0; i < out->n_units; i++)
        HW_TRY(fatbin_open(a, (hw_span){ units[i], SIZE_MAX }, &out->units[i], &taken, d));
    return HW_OK;
}

hw_status fatbin_scan(hw_arena *a, hw_span section, hw_image **images, size_t *n, hw_diag *d)
{
    HW_VEC(hw_image) found = { 0 };
    while (section.len >= HEADER) {
        size_t taken = 8; /* fatbins are aligned to 8; what lies between them is padding */
        if (read_u32(section.ptr) == FATBIN_MAGIC) {
            hw_image one = { 0 };
            HW_TRY(fatbin_open(a, section, &one, &taken, d));
            if (one.entries.len)
                hw_vec_push(a, &found, one);
            taken = (taken + 7) & ~(size_t)7;
        }
        taken = taken < section.len ? taken : section.len;
        section.ptr += taken;
        section.len -= taken;
    }
    *images = found.ptr;
    *n = found.len;
    return HW_OK;
}
