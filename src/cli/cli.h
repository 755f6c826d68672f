/* SPDX-License-Identifier: Apache-2.0
 *
 * cli: the `halfwarp` program. A subcommand is a file cmd_<name>.c with one function, a row of
 * commands.def, and rows of options.def for its options; help, completion and the man page follow
 * from the rows.
 *
 * Rules: results go to c->out, complaints to c->err, only through the calls below. A subcommand
 * returns its exit status: 0, 1 for "the answer is no", CLI_BAD_INPUT (2) for input that makes no
 * sense. Nothing here links the driver.
 */
#ifndef HW_CLI_CLI_H
#define HW_CLI_CLI_H

#include "hw_base.h"

#include <jansson.h>
#include <stdio.h>

#define CLI_BAD_INPUT 2

/* ---- commands and options, from their tables ---- */
typedef enum {
#define COMMAND(name, operands, least, most, rest, sentence) CMD_##name,
#include "commands.def"
    CMD_COUNT
} cli_command_id;

typedef enum {
#define OPTION(id, commands, name, letter, argument, type, lowest, highest, sentence) OPT_##id,
#include "options.def"
    OPT_COUNT
} cli_option_id;

typedef enum {
    TYPE_FLAG,
    TYPE_TEXT,    /* any text; may be given more than once if it says so */
    TYPE_NUMBER,  /* a whole number, decimal or 0x */
    TYPE_SECONDS, /* a decimal number, checked; its text is what counts */
    TYPE_SIZE,    /* bytes; K, M, G and KiB, MiB, GiB multiply by 1024 */
} cli_type;

typedef struct cli cli;
typedef int cli_run(cli *c);

typedef struct cli_command {
    const char *name, *operands, *sentence;
    int least, most; /* operands; most -1: any number */
    bool rest;       /* options end at the first operand: what follows belongs to a program */
    cli_run *run;
} cli_command;

typedef struct cli_option {
    const char *name, *argument, *sentence;
    char letter; /* 0: none */
    cli_type type;
    uint64_t commands; /* bits 1 << cli_command_id */
    int64_t lowest, highest;
} cli_option;

extern const cli_command cli_commands[CMD_COUNT];
extern const cli_option cli_options[OPT_COUNT];

typedef HW_VEC(const char *) cli_texts;

struct cli {
    hw_arena *arena; /* freed when the program ends */
    hw_diag *diag;
    FILE *out, *err;
    bool colour; /* c->out shows colours */
    const cli_command *command;
    bool given[OPT_COUNT];
    cli_texts text[OPT_COUNT]; /* each time the option was given */
    int64_t number[OPT_COUNT]; /* TYPE_NUMBER, TYPE_SIZE */
    int operand_count;
    char **operands; /* NULL-terminated */
};

/* The last text given for an option, or otherwise. */
const char *cli_text(const cli *c, cli_option_id id, const char *otherwise);
/* The number given for an option, or otherwise. */
int64_t cli_number(const cli *c, cli_option_id id, int64_t otherwise);
/* Which of words (the first if the option was not given; ends with NULL) its text is; complains of others. */
int cli_choose(cli *c, cli_option_id id, const char *const *words, int *out);

/* ---- failure: one line on c->err; returns CLI_BAD_INPUT ---- */
int cli_fail(cli *c, const char *fmt, ...) HW_PRINTF(2, 3);
int cli_fail_diag(cli *c); /* the messages of c->diag */
void cli_warn(cli *c, const char *fmt, ...) HW_PRINTF(2, 3);

/* ---- text ---- */
void cli_print(cli *c, const char *fmt, ...) HW_PRINTF(2, 3);

typedef enum { STYLE_PLAIN, STYLE_BOLD, STYLE_DIM, STYLE_GOOD, STYLE_WARN, STYLE_BAD } cli_style;
/* The escape sequence, or "" where colours are off. */
const char *cli_style_of(const cli *c, cli_style s);

/* A table: cells of UTF-8 text, columns as wide as their widest cell; a column whose heading starts
 * with '>' is aligned right. */
typedef struct cli_table {
    hw_arena *arena;
    unsigned columns;
    cli_texts cells; /* headings first */
} cli_table;
cli_table cli_table_new(cli *c, unsigned columns, const char *const *headings);
void cli_cell(cli_table *t, const char *fmt, ...) HW_PRINTF(2, 3);
void cli_table_print(cli *c, const cli_table *t);

/* ---- JSON: prints with a newline, and takes the reference. Returns 0. ---- */
int cli_json(cli *c, json_t *value);

/* ---- for main and help ---- */
int cli_parse(cli *c, int argc, char **argv); /* 0, or a status to exit with */
int cli_help(cli *c, const cli_command *about);
const cli_command *cli_find_command(const char *name);
bool cli_takes(const cli_command *command, const cli_option *option);

#define COMMAND(name, operands, least, most, rest, sentence) cli_run cmd_##name;
#include "commands.def"

#endif
