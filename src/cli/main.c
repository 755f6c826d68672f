/* SPDX-License-Identifier: Apache-2.0
 *
 * halfwarp: the command line. */
#include "cli.h"

#include <stdlib.h>
#include <unistd.h>

/* Whether results are coloured: --color, else a terminal that NO_COLOR does not silence. */
static int choose_colour(cli *c)
{
    const char *when = cli_text(c, OPT_color, "auto");
    const char *no = getenv("NO_COLOR");
    bool terminal = isatty(STDOUT_FILENO) && !(no && *no);
    if (strcmp(when, "auto") != 0 && strcmp(when, "always") != 0 && strcmp(when, "never") != 0)
        return cli_fail(c, "--color: '%s' is not auto, always or never", when);
    c->colour = strcmp(when, "always") == 0 || (strcmp(when, "auto") == 0 && terminal);
    return 0;
}

int main(int argc, char **argv)
{
    hw_arena *a = hw_arena_new();
    cli *c = HW_NEW(a, cli);
    c->arena = a;
    c->diag = hw_diag_new(a);
    c->out = stdout;
    c->err = stderr;
    int status = cli_parse(c, argc, argv);
    if (status == 0)
        status = choose_colour(c);
    if (status == 0)
        status = c->given[OPT_help] ? cli_help(c, c->command) : c->command->run(c);
    if (fflush(c->out) != 0 && status == 0)
        status = cli_fail(c, "cannot write the results");
    hw_arena_free(a);
    return status;
}
