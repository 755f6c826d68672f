/* SPDX-License-Identifier: Apache-2.0
 *
 * halfwarp-ptxrun: one launch of one kernel of a PTX file, its arguments from the command line.
 *
 * Nouns
 *   type      a number's kind: u8 ... f64, as in PTX.
 *   argument  TYPE=VALUE, passed by value, or TYPE[N]=FILL, an array in device memory whose address
 *             is passed; fills are iota, ramp, zero, ones, random, random(SEED), a number, @FILE.npy.
 */
#ifndef HW_PTXRUN_H
#define HW_PTXRUN_H

#include "hw_base.h"

typedef enum { CLASS_UNSIGNED, CLASS_SIGNED, CLASS_FLOAT } number_class;

typedef struct number_type {
    const char *name;
    number_class class;
    unsigned size;
} number_type;

typedef struct argument {
    const char *text; /* as given */
    const number_type *type;
    bool is_array;
    size_t count;    /* elements; 1 for a value */
    uint8_t *bytes;  /* the host's copy */
    uint64_t device; /* address of an array */
} argument;

const number_type *number_type_named(hw_str name);
const number_type *number_type_of(number_class class, unsigned size);
hw_status argument_parse(hw_arena *a, const char *text, argument *out, hw_diag *d);
/* Element i as text that reads back. */
const char *argument_element(hw_arena *a, const argument *arg, size_t i);

/* NumPy's file format, version 1 and 2, little-endian, C order. */
hw_status npy_read(hw_arena *a, const char *path, const number_type **type, uint8_t **bytes,
                   size_t *count, hw_diag *d);
hw_status npy_write(const char *path, const argument *arg, hw_diag *d);

#endif
