/* SPDX-License-Identifier: Apache-2.0
 * table: records sorted by address; found by any address inside. Not locked. */
#ifndef HW_MEM_TABLE_H
#define HW_MEM_TABLE_H

#include "hw_mem.h"
#include "range.h"

typedef struct hw_record {
    hw_mem_info info;
    hw_mem_place place; /* not for registrations */
    int fd;             /* of a shared one */
} hw_record;

typedef struct hw_table {
    hw_record **ptr; /* ascending by info.base, disjoint; each owned */
    size_t len, cap;
} hw_table;

/* Index of the first record whose base is above addr. */
size_t hw_table_above(const hw_table *t, uint64_t addr);
hw_record *hw_table_find(const hw_table *t, uint64_t addr); /* that contains addr, or NULL */
hw_record *hw_table_at(const hw_table *t, uint64_t base);   /* that starts at base, or NULL */
bool hw_table_overlaps(const hw_table *t, uint64_t base, uint64_t size);
void hw_table_insert(hw_table *t, hw_record *r);
void hw_table_remove(hw_table *t, const hw_record *r); /* does not free r */

#endif
