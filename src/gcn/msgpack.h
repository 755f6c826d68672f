/* SPDX-License-Identifier: Apache-2.0
 * The part of MessagePack that code object metadata uses (private): maps, arrays, strings,
 * integers, booleans, read in place with every length checked. Source: the MessagePack
 * specification, "Formats". */
#ifndef HW_GCN_MSGPACK_H
#define HW_GCN_MSGPACK_H

#include "hw_base.h"

typedef struct pack_reader {
    const uint8_t *at, *end;
    bool bad; /* truncated or of an unknown form: everything read after is empty */
} pack_reader;

typedef struct pack_value {
    enum { PACK_NIL, PACK_BOOL, PACK_INT, PACK_STR, PACK_ARRAY, PACK_MAP, PACK_OTHER } kind;
    uint64_t number; /* integer (two's complement), boolean, or count of an array or map */
    hw_str text;
} pack_value;

/* The next value's head: for arrays and maps the elements follow. */
pack_value pack_next(pack_reader *r);
/* Skip a whole value with all it contains. */
void pack_skip(pack_reader *r);

#endif
