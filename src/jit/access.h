/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory accesses inside the code generator: where the lanes go, and that it is allowed.
 */
#ifndef HW_JIT_ACCESS_H
#define HW_JIT_ACCESS_H

#include "gen.h"

/* How an instruction's values lie in memory. A register's value may be part of a unit (bytes of a
 * packed vector) or made of two (128 bits). */
typedef struct hw_access {
    const hw_wir_insn *in;
    hw_lanes addr;      /* 64 bits wide; offsets into shared memory if base is not NULL */
    hw_lv base;         /* the shared memory's pointer, or NULL */
    hw_lv narrow;       /* varying offsets into shared memory as 32-bit values, or NULL */
    int64_t offset;     /* added to every address */
    unsigned bytes;     /* of the whole access of a lane */
    unsigned unit;      /* bytes of a unit: 1, 2, 4, 8 */
    unsigned units;     /* of a lane's access */
    bool whole;         /* a lane's 16 bytes are read and written as one, never in parts */
    hw_lt elem;         /* unit's integer type */
    hw_gen_index index; /* of a varying address: base + 32-bit index * scale, if known */
    bool indexed;
} hw_access;

/* Read the address operand (source 0) and check it. */
hw_access hwg_access(hw_gen *g, const hw_wir_insn *in, unsigned reg_bytes, unsigned count);
/* The pointer for a 64-bit address (or shared offset) plus bytes. */
hw_lv hwg_pointer(hw_gen *g, const hw_access *a, hw_lv addr, int64_t bytes);
hw_lv hwg_pointers(hw_gen *g, const hw_access *a, int64_t bytes); /* <32 x ptr> */
bool hwg_all_execute(hw_gen *g); /* is exec the constant of all lanes */
/* Lane addresses as 64-bit vector, offset not included. */
hw_lv hwg_address_vector(hw_gen *g, const hw_access *a);
/* bundle.c: every lane's four words from its address on; those so many bytes ahead will be wanted */
void hwg_load_quads(hw_gen *g, const hw_access *a, int64_t ahead, hw_lv *words);
/* whole.c: 16 bytes of one lane, or of each that executes, as two units of 8 */
void hwg_load_whole(hw_gen *g, const hw_access *a, hw_lv *units);
void hwg_store_whole(hw_gen *g, const hw_access *a, const hw_lv *units);
/* Into the second-level cache. */
void hwg_prefetch(hw_gen *g, hw_lv p);
/* ahead.c: a load of bytes from address + offset on; what it will want some turns of the loop on */
void hwg_fetch_ahead(hw_gen *g, const hw_access *a, hw_lv address, int64_t offset, unsigned bytes);
/* bound.c: every lane's offset into shared memory surely is inside and a multiple of align */
bool hwg_surely_inside(hw_gen *g, hw_wir_val address, int64_t hi, unsigned align);
bool hwg_is_read(hw_gen *g, uint32_t reg); /* by some instruction */

#endif
