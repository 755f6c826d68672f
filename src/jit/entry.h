/* SPDX-License-Identifier: Apache-2.0
 *
 * Cache entries on disk: what a file holds and how it is read and written.
 */
#ifndef HW_JIT_ENTRY_H
#define HW_JIT_ENTRY_H

#include "codegen.h"

/* What decides the machine code: nothing else may. */
typedef struct hw_entry_key {
    uint8_t source[32];
    uint32_t block[3], listeners;
    uint8_t independent, lockstep_first, small_grid, no_shapes, cooperative, whole_blocks, tier;
    uint8_t zero[1];
    uint64_t build; /* version, code generator, processor */
} hw_entry_key;

hw_entry_key hw_entry_key_of(const hw_jit_source *s, const hw_variant *v, uint64_t build);

/* The bytes of a file, in a. */
hw_span hw_entry_pack(hw_arena *a, const hw_entry_key *k, hw_span object, const hw_code *info);
/* Reads one; false if it is damaged or of another key. Pointers in *info live in a. */
bool hw_entry_unpack(hw_arena *a, hw_span file, const hw_entry_key *k, hw_span *object,
                     hw_code *info);

/* ---- the directory ---- */
typedef struct hw_entry_dir {
    const char *path; /* NULL: none */
    uint64_t limit;   /* bytes of all entries; the oldest go */
    uint64_t written; /* since the last look at the limit */
} hw_entry_dir;

/* Make the directory if missing; false: it cannot be written. */
bool hw_entry_dir_open(hw_entry_dir *d);
bool hw_entry_load(hw_arena *a, const hw_entry_dir *d, const hw_entry_key *k, hw_span *object,
                   hw_code *info, bool *damaged);
/* Written beside and renamed, so that two processes can share the directory. */
bool hw_entry_store(hw_arena *a, hw_entry_dir *d, const hw_entry_key *k, hw_span object,
                    const hw_code *info);
void hw_entry_remove(hw_arena *a, const hw_entry_dir *d, const hw_entry_key *k);

#endif
