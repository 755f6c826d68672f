/* SPDX-License-Identifier: Apache-2.0
 * The facts of abi.def as this project declares them. */
#include "abi.h"

#include "cuda_abi.h"

#include <stddef.h>

const abi_fact abi_ours[] = {
#include "abi_rows.h"
};
const size_t abi_ours_count = sizeof abi_ours / sizeof abi_ours[0];
