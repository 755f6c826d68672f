/* SPDX-License-Identifier: Apache-2.0
 *
 * What NVIDIA's assembler, where it is installed, says of the kernels in a PTX text. */
#ifndef HW_CLI_PTXAS_H
#define HW_CLI_PTXAS_H

#include "cli.h"

typedef struct ptxas_kernel {
    const char *name;
    uint32_t registers, barriers;
} ptxas_kernel;

/* Runs `ptxas -v`. A failure is complained about. */
hw_status cli_ptxas(cli *c, hw_str ptx, uint32_t arch, bool arch_specific, const ptxas_kernel **out,
                    size_t *n);
const ptxas_kernel *cli_ptxas_find(const ptxas_kernel *all, size_t n, const char *name);

#endif
