/* SPDX-License-Identifier: Apache-2.0
 *
 * print: device printf. Each worker keeps records; at the end of a launch they are put in order of
 * blocks, within a block in order of execution, so that the output is the same for any number of
 * workers. Like the device's ring buffer, only the last `limit` bytes survive; here "last" is in
 * that order.
 */
#ifndef HW_EXEC_PRINT_H
#define HW_EXEC_PRINT_H

#include "hw_base.h"
#include "hw_event.h"

typedef struct hw_print {
    uint64_t block, seq;
    size_t at, len; /* in text */
    size_t cost;    /* bytes of the device's ring buffer */
} hw_print;

typedef struct hw_prints {
    hw_print *ptr;
    size_t len, cap;
    char *text;
    size_t text_len, text_cap;
    size_t cost, limit;
    uint64_t seq;
} hw_prints;

/* Format one lane's call and keep it. Device memory is read at fmt, args and each %s. Returns what
 * device printf returns: the number of arguments, -1 for no format. */
int hw_print_call(hw_prints *p, hw_frame *f, uint64_t block, uint64_t fmt, uint64_t args);
/* The text of n workers' records of blocks <= last_block in order, to be freed; NULL if none. */
char *hw_prints_join(hw_prints *const *p, size_t n, uint64_t last_block, size_t *len);
void hw_prints_free(hw_prints *p);

/* Copy a device string of at most cap - 1 characters; faults if it is not readable. */
size_t hw_device_string(hw_frame *f, uint64_t addr, char *out, size_t cap);
/* Fault unless generated code may read [addr, addr+size). */
void hw_device_readable(hw_frame *f, uint64_t addr, uint64_t size);

#endif
