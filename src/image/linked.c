/* SPDX-License-Identifier: Apache-2.0
 * Linked images: the PTX texts that a device linker was given, behind a small header. What a linker
 * of ours answers where NVIDIA's would answer machine code.
 */
#include "fatbin.h"

#include <inttypes.h>
#include <stdlib.h>

typedef struct linked_header {
    char magic[8];
    uint64_t bytes, n; /* of the whole image; texts */
    uint64_t max_registers;
} linked_header; /* then for each text: its length, its bytes, a NUL */

/* No ELF file, no fatbin, no text begins so. */
static const char linked_magic[8] = "\177HWLINK";

void *hw_image_linked_make(const hw_str *texts, size_t n, uint32_t max_registers, size_t *size)
{
    size_t bytes = sizeof(linked_header);
    for (size_t i = 0; i < n; i++)
        bytes += sizeof(uint64_t) + texts[i].len + 1;
    char *image = calloc(1, bytes), *p = image;
    if (!image)
        return NULL;
    linked_header h = { .bytes = bytes, .n = n, .max_registers = max_registers };
    memcpy(h.magic, linked_magic, sizeof h.magic);
    memcpy(p, &h, sizeof h);
    p += sizeof h;
    for (size_t i = 0; i < n; i++) {
        uint64_t len = texts[i].len;
        memcpy(p, &len, sizeof len);
        memcpy(p + sizeof len, texts[i].ptr, texts[i].len);
        p += sizeof len + texts[i].len + 1;
    }
    *size = bytes;
    return image;
}

/* Byte by byte: an image of unknown length may end before the magic does. */
bool linked_is(hw_span b)
{
    for (size_t i = 0; i < sizeof linked_magic; i++)
        if (i >= b.len || b.ptr[i] != (uint8_t)linked_magic[i])
            return false;
    return true;
}

hw_status linked_open(hw_arena *a, hw_span b, hw_image *out, hw_diag *d)
{
    linked_header h;
    if (b.len < sizeof h)
        return hw_fail(d, HW_E_CORRUPT, "linked image of %zu bytes", b.len);
    memcpy(&h, b.ptr, sizeof h);
    if (h.bytes < sizeof h || h.bytes > LINKED_MAX || (b.len != SIZE_MAX && h.bytes > b.len) ||
        h.n > (h.bytes - sizeof h) / (sizeof(uint64_t) + 1))
        return hw_fail(d, HW_E_CORRUPT, "linked image with a damaged header");
    const uint8_t *p = b.ptr + sizeof h, *end = b.ptr + h.bytes;
    out->is_device_linked = true;
    out->max_registers = (uint32_t)h.max_registers;
    out->n_units = h.n;
    out->units = HW_NEW_N(a, hw_image, h.n ? h.n : 1);
    for (uint64_t i = 0; i < h.n; i++) {
        uint64_t len = (size_t)(end - p) < sizeof len ? UINT64_MAX : read_u64(p);
        if (len >= (uint64_t)(end - p) - sizeof len || p[sizeof len + len])
            return hw_fail(d, HW_E_CORRUPT, "linked image: text %" PRIu64 " is damaged", i + 1);
        p += sizeof len;
        HW_TRY(text_open(a, (hw_span){ p, len + 1 }, &out->units[i], d));
        p += len + 1;
    }
    return HW_OK;
}
