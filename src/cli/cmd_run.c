/* SPDX-License-Identifier: Apache-2.0
 *
 * halfwarp run: start a program with Halfwarp's libraries in front, or a kernel of a PTX file. */
#include "environment.h"

#include <errno.h>
#include <unistd.h>

int cmd_run(cli *c)
{
    cli_environment e;
    char **argv;
    int status = cli_environment_make(c, &e);
    if (status == 0)
        status = cli_program_make(c, &e, &argv);
    if (status)
        return status;
    cli_environment_apply(c, &e);
    fflush(c->out);
    execvp(argv[0], argv);
    return cli_program_missing(c, errno);
}
