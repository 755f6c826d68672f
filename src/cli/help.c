/* SPDX-License-Identifier: Apache-2.0
 *
 * Help, man page and shell completion, from the tables. */
#include "cli.h"

static const char *usage_of(cli *c, const cli_option *o)
{
    const char *letter = o->letter ? hw_arena_printf(c->arena, "-%c, ", o->letter) : "";
    return hw_arena_printf(c->arena, "%s--%s%s%s", letter, o->name, o->argument ? " " : "",
                           o->argument ? o->argument : "");
}

static int help_all(cli *c)
{
    cli_print(c, "usage: halfwarp COMMAND [options] [operands]\n\nA GPU in software, and what it "
                 "tells about programs."
                 "\n\n");
    for (int i = 0; i < CMD_COUNT; i++)
        cli_print(c, "  %s%-12s%s %s\n", cli_style_of(c, STYLE_BOLD), cli_commands[i].name,
                  cli_style_of(c, STYLE_PLAIN), cli_commands[i].sentence);
    cli_print(c, "\n'halfwarp help COMMAND' says more about one.\n");
    return 0;
}

int cli_help(cli *c, const cli_command *about)
{
    if (!about)
        return help_all(c);
    cli_print(c, "usage: halfwarp %s [options] %s\n\n%s\n\n", about->name, about->operands,
              about->sentence);
    for (int i = 0; i < OPT_COUNT; i++)
        if (cli_takes(about, &cli_options[i]))
            cli_print(c, "  %-24s %s\n", usage_of(c, &cli_options[i]), cli_options[i].sentence);
    return 0;
}

int cmd_help(cli *c)
{
    if (c->operand_count == 0)
        return help_all(c);
    const cli_command *about = cli_find_command(c->operands[0]);
    return about ? cli_help(c, about)
                 : cli_fail(c, "no command '%s' (see 'halfwarp help')", c->operands[0]);
}

int cmd_version(cli *c)
{
    cli_print(c, "halfwarp %s\n", HW_VERSION);
    return 0;
}

/* ---- man page ---- */

static void roff_text(cli *c, const char *text)
{
    if (*text == '.' || *text == '\'')
        cli_print(c, "\\&");
    for (; *text; text++)
        cli_print(c, *text == '\\' ? "\\e" : *text == '-' ? "\\-" : "%c", *text);
}

int cmd_manual(cli *c)
{
    cli_print(c,
              ".TH HALFWARP 1 \"\" \"halfwarp %s\"\n.SH NAME\nhalfwarp \\- a GPU in software\n.SH "
              "SYNOPSIS\n.B "
              "halfwarp\n.I command\n[options] [operands]\n.SH COMMANDS\n",
              HW_VERSION);
    for (int k = 0; k < CMD_COUNT; k++) {
        cli_print(c, ".SS ");
        roff_text(
            c, hw_arena_printf(c->arena, "%s %s", cli_commands[k].name, cli_commands[k].operands));
        cli_print(c, "\n");
        roff_text(c, cli_commands[k].sentence);
        cli_print(c, "\n");
        for (int i = 0; i < OPT_COUNT; i++) {
            if (!cli_takes(&cli_commands[k], &cli_options[i]))
                continue;
            cli_print(c, ".TP\n.B ");
            roff_text(c, usage_of(c, &cli_options[i]));
            cli_print(c, "\n");
            roff_text(c, cli_options[i].sentence);
            cli_print(c, "\n");
        }
    }
    cli_print(c, ".SH EXIT STATUS\n0 success; 1 the answer is no, or a program failed; 2 input "
                 "that makes no sense\n");
    return 0;
}

/* ---- completion ---- */

static void words_of(cli *c, const cli_command *cmd, const char *before)
{
    for (int i = 0; i < OPT_COUNT; i++)
        if (cli_takes(cmd, &cli_options[i]))
            cli_print(c, "%s--%s", before, cli_options[i].name);
}

static int bash_completion(cli *c)
{
    cli_print(c, "_halfwarp() {\n    local words\n    case $COMP_CWORD in\n    1) words='");
    for (int i = 0; i < CMD_COUNT; i++)
        cli_print(c, "%s%s", i ? " " : "", cli_commands[i].name);
    cli_print(c, "' ;;\n    *) case ${COMP_WORDS[1]} in\n");
    for (int i = 0; i < CMD_COUNT; i++) {
        cli_print(c, "        %s) words='", cli_commands[i].name);
        words_of(c, &cli_commands[i], " ");
        cli_print(c, "' ;;\n");
    }
    cli_print(
        c,
        "        esac ;;\n    esac\n    case ${COMP_WORDS[COMP_CWORD-1]} in\n"
        "    --device) words=$(halfwarp devices --names) ;;\n    esac\n"
        "    COMPREPLY=($(compgen -o default -W \"$words\" -- \"${COMP_WORDS[COMP_CWORD]}\"))\n}\n"
        "complete -o default -F _halfwarp halfwarp\n");
    return 0;
}

static int zsh_completion(cli *c)
{
    cli_print(c, "#compdef halfwarp\nautoload -U +X bashcompinit && bashcompinit\n");
    return bash_completion(c);
}

static int fish_completion(cli *c)
{
    for (int k = 0; k < CMD_COUNT; k++) {
        cli_print(c, "complete -c halfwarp -n __fish_use_subcommand -a %s -d '%s'\n",
                  cli_commands[k].name, cli_commands[k].sentence);
        for (int i = 0; i < OPT_COUNT; i++)
            if (cli_takes(&cli_commands[k], &cli_options[i]))
                cli_print(c, "complete -c halfwarp -n '__fish_seen_subcommand_from %s' -l %s%s\n",
                          cli_commands[k].name, cli_options[i].name,
                          cli_options[i].argument ? " -r" : "");
    }
    return 0;
}

int cmd_completion(cli *c)
{
    static const struct {
        const char *shell;
        cli_run *print;
    } shells[] = { { "bash", bash_completion },
                   { "zsh", zsh_completion },
                   { "fish", fish_completion } };
    for (size_t i = 0; i < HW_COUNTOF(shells); i++)
        if (strcmp(shells[i].shell, c->operands[0]) == 0)
            return shells[i].print(c);
    return cli_fail(c, "no completion for '%s'; there is bash, zsh, fish", c->operands[0]);
}
