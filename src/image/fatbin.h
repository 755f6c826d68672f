/* SPDX-License-Identifier: Apache-2.0
 *
 * The fatbin container: what image's files share about it. Layout: docs/loading.md.
 * Private to image.
 */
#ifndef HW_IMAGE_FATBIN_H
#define HW_IMAGE_FATBIN_H

#include "hw_image.h"

#define FATBIN_MAGIC  0xBA55ED50u
#define WRAPPER_MAGIC 0x466243B1u

enum { FATBIN_PTX = 1, FATBIN_ELF = 2, FATBIN_LTO = 8 };

#define FATBIN_DEBUG    ((uint64_t)0x2)
#define FATBIN_LZ4      ((uint64_t)0x2000)
#define FATBIN_ZSTD     ((uint64_t)0x8000)
#define FATBIN_SPECIFIC ((uint64_t)0x100000)
#define FATBIN_FAMILY   ((uint64_t)0x200000)

static inline uint32_t read_u16(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8;
}

static inline uint32_t read_u32(const uint8_t *p)
{
    uint32_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

static inline uint64_t read_u64(const uint8_t *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

/* One fatbin at the start of bytes: its entries are added to out, *size is how much it took. */
hw_status fatbin_open(hw_arena *a, hw_span bytes, hw_image *out, size_t *size, hw_diag *d);
/* The 24-byte wrapper in this process's memory that registration hands over. */
hw_status wrapper_open(hw_arena *a, const uint8_t *wrapper, hw_image *out, hw_diag *d);
/* Every fatbin in a section where they follow each other. */
hw_status fatbin_scan(hw_arena *a, hw_span section, hw_image **images, size_t *n, hw_diag *d);
/* A PTX text as an image of one entry; it ends at its first NUL. */
hw_status text_open(hw_arena *a, hw_span bytes, hw_image *out, hw_diag *d);
/* What hw_image_linked_make made, recognised and read: a unit a text. */
#define LINKED_MAX ((uint64_t)1 << 32)
bool linked_is(hw_span bytes);
hw_status linked_open(hw_arena *a, hw_span bytes, hw_image *out, hw_diag *d);
/* A cubin of its own as an entry. */
hw_status cubin_entry(hw_span bytes, hw_image_entry *out, hw_diag *d);

#endif
