/* SPDX-License-Identifier: Apache-2.0
 * Allocations whose pages are a file's, so that other processes can have them too. With mem.c's lock held. */
#ifndef HW_MEM_SHARE_H
#define HW_MEM_SHARE_H

#include "table.h"

hw_status hw_share_begin(hw_record *r, hw_mem_file *out);
/* Put the file in the record's place. */
hw_status hw_share_map(hw_record *r, const hw_mem_file *f);
void hw_share_end(hw_record *r);

#endif
