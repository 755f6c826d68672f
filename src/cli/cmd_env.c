/* SPDX-License-Identifier: Apache-2.0
 *
 * halfwarp env: what `halfwarp run` would set, as shell commands for eval. */
#include "environment.h"

/* The text in single quotes, for a shell. */
static const char *quoted(cli *c, const char *text)
{
    const char *all = "'";
    for (const char *p = text; *p; p++)
        all = *p == '\'' ? hw_arena_printf(c->arena, "%s'\\''", all)
                         : hw_arena_printf(c->arena, "%s%c", all, *p);
    return hw_arena_printf(c->arena, "%s'", all);
}

/* Each line ends with a semicolon, so that eval $(halfwarp env) works without quotes too. */
int cmd_env(cli *c)
{
    cli_environment e;
    int status = cli_environment_make(c, &e);
    if (status)
        return status;
    for (size_t i = 0; i < e.n; i++) {
        const cli_setting *s = &e.settings[i];
        cli_print(c, "export %s=%s", s->name, quoted(c, s->value));
        if (s->joined)
            cli_print(c, "\"${%s:+:$%s}\"", s->name, s->name);
        cli_print(c, ";\n");
    }
    return 0;
}
