/* SPDX-License-Identifier: Apache-2.0
 *
 * The program that `run` and `profile` start. */
#include "environment.h"

#include <errno.h>
#include <stdlib.h>

enum { NOT_FOUND = 127, NOT_RUN = 126 }; /* as shells and env(1) have it */

void cli_environment_apply(cli *c, const cli_environment *e)
{
    for (size_t i = 0; i < e->n; i++) {
        const cli_setting *s = &e->settings[i];
        const char *before = s->joined ? getenv(s->name) : NULL;
        const char *value = s->value;
        if (before && *before)
            value = hw_arena_printf(c->arena, "%s:%s", value, before);
        setenv(s->name, value, 1);
    }
}

static bool is_kind(const char *path, const char *suffix)
{
    return hw_str_ends(hw_str_of(path), hw_str_of(suffix));
}

int cli_program_missing(cli *c, int why)
{
    const char *app = c->operands[0];
    if (why == EACCES && is_kind(app, ".cu"))
        cli_fail(c, "%s is source code: compile it first (nvcc %s) and run the program", app, app);
    else
        cli_fail(c, "cannot run %s: %s", app, strerror(why));
    return why == ENOENT ? NOT_FOUND : NOT_RUN;
}

int cli_program_make(cli *c, const cli_environment *e, char ***out)
{
    bool ptx = is_kind(c->operands[0], ".ptx");
    if (ptx && !e->ptxrun)
        return cli_fail(c, "halfwarp-ptxrun, which runs PTX files, is not installed");
    char **argv = HW_NEW_N(c->arena, char *, (size_t)c->operand_count + 2);
    argv[0] = ptx ? (char *)e->ptxrun : c->operands[0];
    for (int i = ptx ? 0 : 1; i < c->operand_count; i++)
        argv[i + ptx] = c->operands[i];
    *out = argv;
    return 0;
}
