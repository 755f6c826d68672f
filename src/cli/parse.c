/* SPDX-License-Identifier: Apache-2.0
 *
 * The command line made a struct cli, by options.def. */
#include "cli.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

const char *cli_text(const cli *c, cli_option_id id, const char *otherwise)
{
    const cli_texts *t = &c->text[id];
    return t->len ? t->ptr[t->len - 1] : otherwise;
}

int64_t cli_number(const cli *c, cli_option_id id, int64_t otherwise)
{
    return c->given[id] ? c->number[id] : otherwise;
}

int cli_choose(cli *c, cli_option_id id, const char *const *words, int *out)
{
    const char *word = cli_text(c, id, words[0]);
    const char *all = "";
    for (int i = 0; words[i]; i++) {
        if (strcmp(words[i], word) == 0) {
            *out = i;
            return 0;
        }
        all = hw_arena_printf(c->arena, "%s%s%s", all, i ? ", " : "", words[i]);
    }
    return cli_fail(c, "--%s: '%s' is not one of %s", cli_options[id].name, word, all);
}

/* ---- values ---- */

/* What a size's suffix multiplies by; 0 for no such suffix. */
static int64_t scale_of(const char *suffix)
{
    static const char letters[] = "KMG";
    if (*suffix == 0 || strcmp(suffix, "B") == 0)
        return 1;
    char letter = (char)(*suffix >= 'a' ? *suffix - 32 : *suffix);
    const char *at = strchr(letters, letter);
    bool good =
        at && (suffix[1] == 0 || strcmp(suffix + 1, "B") == 0 || strcmp(suffix + 1, "iB") == 0);
    return good ? INT64_C(1) << (10 * (at - letters + 1)) : 0;
}

static int bad_range(cli *c, const cli_option *o, const char *text)
{
    return cli_fail(c, "--%s: %s is out of range; allowed: %" PRId64 " to %" PRId64 "%s", o->name,
                    text, o->lowest, o->highest, o->type == TYPE_SIZE ? " bytes" : "");
}

static int read_number(cli *c, const cli_option *o, const char *text)
{
    char *end;
    errno = 0;
    bool fraction = o->type == TYPE_SIZE && strchr(text, '.');
    double real = fraction ? strtod(text, &end) : 0;
    long long whole = fraction ? 0 : strtoll(text, &end, 0);
    int64_t scale = o->type == TYPE_SIZE ? scale_of(end) : *end == 0;
    if (end == text || scale == 0)
        return cli_fail(c, "--%s: '%s' is not %s", o->name, text,
                        o->type == TYPE_SIZE ? "a size (like 48K or 49152)" : "a whole number");
    real = fraction ? real * (double)scale : (double)whole * (double)scale;
    if (errno == ERANGE || real < (double)o->lowest || real > (double)o->highest)
        return bad_range(c, o, text);
    if (fraction && real != (double)(int64_t)real)
        return cli_fail(c, "--%s: '%s' is not a whole number of bytes", o->name, text);
    c->number[o - cli_options] = fraction ? (int64_t)real : whole * scale;
    return 0;
}

/* More than none, to the millisecond. */
static int read_seconds(cli *c, const cli_option *o, const char *text)
{
    const double least = 0.001;
    char *end;
    double seconds = strtod(text, &end);
    if (!*text || text[strspn(text, "0123456789.")] || *end)
        return cli_fail(c, "--%s: '%s' is not a number of seconds (like 2 or 0.5)", o->name, text);
    if (seconds < least || seconds > (double)o->highest)
        return cli_fail(c, "--%s: %s is out of range; allowed: %g to %" PRId64 " seconds", o->name,
                        text, least, o->highest);
    return 0;
}

static int take(cli *c, const cli_option *o, const char *value)
{
    size_t id = (size_t)(o - cli_options);
    c->given[id] = true;
    if (o->type == TYPE_FLAG)
        return value ? cli_fail(c, "--%s takes no value", o->name) : 0;
    hw_vec_push(c->arena, &c->text[id], value);
    if (o->type == TYPE_SECONDS)
        return read_seconds(c, o, value);
    return o->type == TYPE_TEXT ? 0 : read_number(c, o, value);
}

/* ---- names ---- */

static const cli_option *find_long(const cli *c, hw_str name)
{
    for (int i = 0; i < OPT_COUNT; i++)
        if (cli_takes(c->command, &cli_options[i]) && hw_str_is(name, cli_options[i].name))
            return &cli_options[i];
    return NULL;
}

static const cli_option *find_letter(const cli *c, char letter)
{
    for (int i = 0; i < OPT_COUNT; i++)
        if (cli_takes(c->command, &cli_options[i]) && cli_options[i].letter == letter)
            return &cli_options[i];
    return NULL;
}

static int unknown_option(cli *c, hw_str name)
{
    const char *names[OPT_COUNT];
    size_t n = 0;
    for (int i = 0; i < OPT_COUNT; i++)
        if (cli_takes(c->command, &cli_options[i]))
            names[n++] = cli_options[i].name;
    const char *near = hw_nearest(hw_arena_cstr(c->arena, name), names, n);
    return cli_fail(c, "'%s' has no option '--%.*s'%s%s%s", c->command->name, HW_STR_ARG(name),
                    near ? "; did you mean '--" : "", near ? near : "", near ? "'?" : "");
}

static int unknown_command(cli *c, const char *name)
{
    const char *names[CMD_COUNT];
    for (int i = 0; i < CMD_COUNT; i++)
        names[i] = cli_commands[i].name;
    const char *near = hw_nearest(name, names, CMD_COUNT);
    return cli_fail(c, "unknown command '%s'%s%s%s (see 'halfwarp help')", name,
                    near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
}

/* ---- words ---- */

/* Takes the option at argv[*i], and its value. */
static int one_option(cli *c, char **argv, int *i)
{
    const char *word = argv[*i];
    const cli_option *o;
    const char *value = NULL;
    if (word[1] == '-') {
        const char *equals = strchr(word, '=');
        hw_str name = { word + 2, equals ? (size_t)(equals - word - 2) : strlen(word + 2) };
        o = find_long(c, name);
        value = equals ? equals + 1 : NULL;
        if (!o)
            return unknown_option(c, name);
    } else {
        o = find_letter(c, word[1]);
        if (!o || (o->type == TYPE_FLAG && word[2]))
            return unknown_option(c, hw_str_of(word + 1));
        value = word[2] ? word + 2 : NULL;
    }
    if (o->type != TYPE_FLAG && !value)
        value = argv[++*i];
    if (o->type != TYPE_FLAG && !value)
        return cli_fail(c, "--%s needs a value: %s", o->name, o->argument);
    return take(c, o, value);
}

static int check_operands(cli *c)
{
    const cli_command *cmd = c->command;
    if (c->given[OPT_help])
        return 0;
    if (c->operand_count < cmd->least)
        return cli_fail(c, "usage: halfwarp %s [options] %s", cmd->name, cmd->operands);
    if (cmd->most >= 0 && c->operand_count > cmd->most)
        return cli_fail(c, "'%s' is one operand too many; usage: halfwarp %s [options] %s",
                        c->operands[cmd->most], cmd->name, cmd->operands);
    return 0;
}

static int choose_command(cli *c, const char *word)
{
    if (!word || strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)
        c->command = &cli_commands[CMD_help];
    else if (strcmp(word, "--version") == 0)
        c->command = &cli_commands[CMD_version];
    else
        c->command = cli_find_command(word);
    return c->command ? 0 : unknown_command(c, word);
}

int cli_parse(cli *c, int argc, char **argv)
{
    int status = choose_command(c, argv[1]);
    bool options = true;
    c->operands = HW_NEW_N(c->arena, char *, (size_t)argc + 1);
    for (int i = 2; status == 0 && i < argc; i++) {
        if (options && strcmp(argv[i], "--") == 0) {
            options = false;
        } else if (options && argv[i][0] == '-' && argv[i][1]) {
            status = one_option(c, argv, &i);
        } else {
            c->operands[c->operand_count++] = argv[i];
            options = options && !c->command->rest;
        }
    }
    return status ? status : check_operands(c);
}
