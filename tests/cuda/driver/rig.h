/* SPDX-License-Identifier: Apache-2.0
 *
 * What the driver API's tests share: a context, a module of small kernels (kernels.ptx), launches
 * in one line. Tests call the library as any C program would; hw_driver.h stands in for the
 * toolkit's cuda.h.
 */
#ifndef DRIVER_RIG_H
#define DRIVER_RIG_H

#include "hw_driver.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define OK(call)        assert_int_equal((call), CUDA_SUCCESS)
#define ERR(code, call) assert_int_equal((call), CUDA_ERROR_##code)

/* Setup and teardown of a test that wants a context of its own. */
int rig_context(void **state);
int rig_end(void **state);
CUcontext rig_current(void);

/* The module of kernels.ptx in the current context. */
CUmodule rig_module(void);
CUfunction rig_kernel(const char *name);
/* Text of a file beside the tests; free() it. */
char *rig_text(const char *file);
/* One launch of a kernel with up to 8 argument addresses, NULL-terminated. */
CUresult rig_launch(CUfunction f, unsigned grid, unsigned block, CUstream stream, ...);

CUdeviceptr rig_alloc(size_t bytes); /* zeroed */
uint32_t rig_word(CUdeviceptr p, size_t index);

#endif
