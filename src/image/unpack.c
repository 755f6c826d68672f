/* SPDX-License-Identifier: Apache-2.0
 * Entries unpacked: plain, LZ4 blocks and Zstandard frames.
 */
#include "fatbin.h"

#include <lz4.h>
#include <zstd.h>

enum { LZ4_RATIO = 256 };              /* more than a block can expand to */
#define FULL_LIMIT ((uint32_t)1 << 28) /* of one unpacked entry */

static hw_status unpack_lz4(const hw_image_entry *e, char *to, hw_diag *d)
{
    int n = LZ4_decompress_safe((const char *)e->payload.ptr, to, (int)e->stored_size,
                                (int)e->full_size);
    if (n < 0 || (uint32_t)n != e->full_size)
        return hw_fail(d, HW_E_CORRUPT, "corrupt LZ4 data in a fatbin entry for %u", e->arch);
    return HW_OK;
}

static hw_status unpack_zstd(const hw_image_entry *e, char *to, hw_diag *d)
{
    size_t n = ZSTD_decompress(to, e->full_size, e->payload.ptr, e->stored_size);
    if (ZSTD_isError(n) || n != e->full_size)
        return hw_fail(d, HW_E_CORRUPT, "corrupt Zstandard data in a fatbin entry for %u: %s",
                       e->arch, ZSTD_isError(n) ? ZSTD_getErrorName(n) : "wrong length");
    return HW_OK;
}

/* The sizes are the file's word: believe them only where the packing could produce them. */
static hw_status check_sizes(const hw_image_entry *e, hw_diag *d)
{
    uint64_t most = FULL_LIMIT;
    if (e->flags & FATBIN_LZ4) {
        most = (uint64_t)e->stored_size * LZ4_RATIO + 64;
    } else if (ZSTD_getFrameContentSize(e->payload.ptr, e->stored_size) != e->full_size) {
        return hw_fail(d, HW_E_CORRUPT, "Zstandard frame's length is not the %u bytes of its entry",
                       e->full_size);
    }
    if (e->full_size > most || e->full_size > FULL_LIMIT || e->stored_size > FULL_LIMIT)
        return hw_fail(d, HW_E_CORRUPT, "fatbin entry claims to unpack to %u bytes", e->full_size);
    return HW_OK;
}

hw_status hw_image_unpack(hw_arena *a, const hw_image_entry *e, hw_str *out, hw_diag *d)
{
    hw_str text = { (const char *)e->payload.ptr, e->stored_size };
    if (e->compressed) {
        if (!(e->flags & (FATBIN_LZ4 | FATBIN_ZSTD)))
            return hw_fail(d, HW_E_UNSUPPORTED,
                           "fatbin entry is compressed by an unknown method (flags 0x%llx)",
                           (unsigned long long)e->flags);
        HW_TRY(check_sizes(e, d));
        char *to = hw_arena_alloc(a, (size_t)e->full_size + 1);
        HW_TRY(e->flags & FATBIN_LZ4 ? unpack_lz4(e, to, d) : unpack_zstd(e, to, d));
        text = (hw_str){ to, e->full_size };
    } else {
        text = hw_arena_dup(a, text);
    }
    while (e->kind == HW_ENTRY_PTX && text.len && !text.ptr[text.len - 1])
        text.len--;
    *out = text;
    return HW_OK;
}
