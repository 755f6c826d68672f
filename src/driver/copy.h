/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies and fills as values (private): what an entry point was asked for, checked, in one form.
 * copy.c and set.c make them, streams run them, graph nodes keep them.
 */
#ifndef HW_DRIVER_COPY_H
#define HW_DRIVER_COPY_H

#include "driver.h"

typedef struct hw_cu_side { /* where a copy reads or writes: rows of slices */
    uint64_t address;
    size_t pitch, slice;
    bool pageable; /* the program's own memory, unknown to us */
} hw_cu_side;

typedef struct hw_cu_copy {
    hw_cu_side dst, src;
    size_t width, height, depth; /* bytes, rows, slices */
} hw_cu_copy;

typedef struct hw_cu_fill {
    uint64_t address;
    size_t pitch, width, height; /* width: elements */
    uint32_t value, element;     /* bytes of an element: 1, 2 or 4 */
} hw_cu_fill;

void hw_cu_copy_now(const hw_cu_copy *c);
void hw_cu_fill_now(const hw_cu_fill *f);

/* Checked forms of the API's descriptions. */
CUresult hw_cu_copy_of_3d(const CUDA_MEMCPY3D *p, hw_cu_copy *out);
CUresult hw_cu_fill_of(hw_cu_fill f, hw_cu_fill *out);

/* array.c: a side of an array, at an offset (bytes, rows, slices), or an error if the extent does
 * not fit. */
CUresult hw_cu_array_side(CUarray array, const size_t offset[3], const size_t extent[3],
                          hw_cu_side *out);

/* capture.c: if s is capturing, the work becomes a node and *done is set. */
CUresult hw_cu_capture_copy(hw_cu_stream *s, const hw_cu_copy *c, bool *done);
CUresult hw_cu_capture_fill(hw_cu_stream *s, const hw_cu_fill *f, bool *done);

#endif
