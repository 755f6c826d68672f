/* SPDX-License-Identifier: Apache-2.0
 * Reading MessagePack in place. */
#include "msgpack.h"

static uint64_t big_endian(pack_reader *r, unsigned n)
{
    if ((size_t)(r->end - r->at) < n) {
        r->bad = true;
        return 0;
    }
    uint64_t v = 0;
    for (unsigned i = 0; i < n; i++)
        v = v << 8 | *r->at++;
    return v;
}

static pack_value text(pack_reader *r, int kind, uint64_t len)
{
    if (r->bad || len > (uint64_t)(r->end - r->at)) {
        r->bad = true;
        return (pack_value){ PACK_NIL, 0, { NULL, 0 } };
    }
    pack_value v = { kind, len, { (const char *)r->at, (size_t)len } };
    r->at += len;
    return v;
}

/* Types 0xc0 to 0xdf: kind, bytes of the number that follows, and whether it is signed or a length.
 */
enum { AS_NUMBER, AS_SIGNED, AS_TEXT };
static const struct {
    uint8_t kind, bytes, as;
} wide[32] = {
    [0x00] = { PACK_NIL, 0, AS_NUMBER },   [0x02] = { PACK_BOOL, 0, AS_NUMBER },
    [0x03] = { PACK_BOOL, 0, AS_NUMBER },  [0x04] = { PACK_OTHER, 1, AS_TEXT },
    [0x05] = { PACK_OTHER, 2, AS_TEXT },   [0x06] = { PACK_OTHER, 4, AS_TEXT },
    [0x0a] = { PACK_OTHER, 4, AS_NUMBER }, [0x0b] = { PACK_OTHER, 8, AS_NUMBER },
    [0x0c] = { PACK_INT, 1, AS_NUMBER },   [0x0d] = { PACK_INT, 2, AS_NUMBER },
    [0x0e] = { PACK_INT, 4, AS_NUMBER },   [0x0f] = { PACK_INT, 8, AS_NUMBER },
    [0x10] = { PACK_INT, 1, AS_SIGNED },   [0x11] = { PACK_INT, 2, AS_SIGNED },
    [0x12] = { PACK_INT, 4, AS_SIGNED },   [0x13] = { PACK_INT, 8, AS_SIGNED },
    [0x19] = { PACK_STR, 1, AS_TEXT },     [0x1a] = { PACK_STR, 2, AS_TEXT },
    [0x1b] = { PACK_STR, 4, AS_TEXT },     [0x1c] = { PACK_ARRAY, 2, AS_NUMBER },
    [0x1d] = { PACK_ARRAY, 4, AS_NUMBER }, [0x1e] = { PACK_MAP, 2, AS_NUMBER },
    [0x1f] = { PACK_MAP, 4, AS_NUMBER },
};

static pack_value wide_value(pack_reader *r, unsigned byte)
{
    unsigned kind = wide[byte - 0xc0].kind, bytes = wide[byte - 0xc0].bytes;
    if (kind == PACK_NIL && byte != 0xc0)
        r->bad = true; /* extension types are not used by metadata */
    if (kind == PACK_BOOL)
        return (pack_value){ PACK_BOOL, byte == 0xc3, { NULL, 0 } };
    uint64_t number = big_endian(r, bytes);
    if (wide[byte - 0xc0].as == AS_TEXT)
        return text(r, (int)kind, number);
    if (wide[byte - 0xc0].as == AS_SIGNED && bytes < 8 && number >> (8 * bytes - 1))
        number |= UINT64_MAX << (8 * bytes);
    return (pack_value){ (int)kind, number, { NULL, 0 } };
}

pack_value pack_next(pack_reader *r)
{
    unsigned byte = (unsigned)big_endian(r, 1);
    if (r->bad)
        return (pack_value){ PACK_NIL, 0, { NULL, 0 } };
    if (byte < 0x80)
        return (pack_value){ PACK_INT, byte, { NULL, 0 } };
    if (byte < 0x90)
        return (pack_value){ PACK_MAP, byte & 15, { NULL, 0 } };
    if (byte < 0xa0)
        return (pack_value){ PACK_ARRAY, byte & 15, { NULL, 0 } };
    if (byte < 0xc0)
        return text(r, PACK_STR, byte & 31);
    if (byte >= 0xe0)
        return (pack_value){ PACK_INT, (uint64_t)(int64_t)(int8_t)byte, { NULL, 0 } };
    return wide_value(r, byte);
}

void pack_skip(pack_reader *r)
{
    /* Each value read may ask for more; a count beyond the bytes left cannot be true. */
    uint64_t left = 1;
    while (left && !r->bad) {
        pack_value v = pack_next(r);
        uint64_t more = v.kind == PACK_ARRAY ? v.number : v.kind == PACK_MAP ? 2 * v.number : 0;
        if (more > (uint64_t)(r->end - r->at))
            r->bad = true;
        left += more - 1;
    }
}
