/* SPDX-License-Identifier: Apache-2.0
 *
 * commands.def and options.def made arrays. */
#include "cli.h"

#define COMMAND(name_, operands_, least_, most_, rest_, sentence_) \
    [CMD_##name_] = { .name = #name_,                              \
                      .operands = (operands_),                     \
                      .sentence = (sentence_),                     \
                      .least = (least_),                           \
                      .most = (most_),                             \
                      .rest = (rest_),                             \
                      .run = cmd_##name_ },
const cli_command cli_commands[CMD_COUNT] = {
#include "commands.def"
};

#define ANY   UINT64_MAX
#define IN(c) (UINT64_C(1) << CMD_##c)
#define OPTION(id, commands_, name_, letter_, argument_, type_, lowest_, highest_, sentence_) \
    [OPT_##id] = { .name = (name_),                                                           \
                   .argument = (argument_),                                                   \
                   .sentence = (sentence_),                                                   \
                   .letter = (letter_),                                                       \
                   .type = (type_),                                                           \
                   .commands = (commands_),                                                   \
                   .lowest = (lowest_),                                                       \
                   .highest = (highest_) },
const cli_option cli_options[OPT_COUNT] = {
#include "options.def"
};

_Static_assert(CMD_COUNT <= 64, "commands are bits of a 64-bit mask");

const cli_command *cli_find_command(const char *name)
{
    for (int i = 0; i < CMD_COUNT; i++)
        if (strcmp(cli_commands[i].name, name) == 0)
            return &cli_commands[i];
    return NULL;
}

bool cli_takes(const cli_command *command, const cli_option *option)
{
    return option->commands >> (command - cli_commands) & 1;
}
