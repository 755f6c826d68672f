/* SPDX-License-Identifier: Apache-2.0
 *
 * halfwarp run: start a program with Halfwarp's libraries in front, or a kernel of a PTX file. */
#include "environment.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

enum { NOT_FOUND = 127, NOT_RUN = 126 }; /* as shells and env(1) have it */

static void apply(cli *c, const cli_environment *e)
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

static int cannot_run(cli *c, const char *app, int why)
{
    if (why == EACCES && is_kind(app, ".cu"))
        cli_fail(c, "%s is source code: compile it first (nvcc %s) and run the program", app, app);
    else
        cli_fail(c, "cannot run %s: %s", app, strerror(why));
    return why == ENOENT ? NOT_FOUND : NOT_RUN;
}

int cmd_run(cli *c)
{
    cli_environment e;
    int status = cli_environment_make(c, &e);
    if (status)
        return status;
    const char *app = c->operands[0];
    bool ptx = is_kind(app, ".ptx");
    if (ptx && !e.ptxrun)
        return cli_fail(c, "halfwarp-ptxrun, which runs PTX files, is not installed");
    char **argv = HW_NEW_N(c->arena, char *, (size_t)c->operand_count + 2);
    argv[0] = ptx ? (char *)e.ptxrun : c->operands[0];
    for (int i = ptx ? 0 : 1; i < c->operand_count; i++)
        argv[i + ptx] = c->operands[i];
    apply(c, &e);
    fflush(c->out);
    execvp(argv[0], argv);
    return cannot_run(c, app, errno);
}
