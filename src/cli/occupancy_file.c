/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernels of a program or file, with what occupancy needs of them. */
#include "occupancy.h"

int cli_occupancy_file(cli *c, const char *path, const occupancy_case *base, occupancy_case **out,
                       size_t *n)
{
    (void)base;
    (void)out;
    (void)n;
    return cli_fail(c, "%s: reading kernels from files is not built in", path);
}
