/* SPDX-License-Identifier: Apache-2.0
 *
 * The environment that puts Halfwarp's libraries in front of a program's. Private to cli.
 */
#ifndef HW_CLI_ENVIRONMENT_H
#define HW_CLI_ENVIRONMENT_H

#include "cli.h"

typedef struct cli_setting {
    const char *name, *value;
    bool joined; /* put before what the variable holds already, with a colon */
} cli_setting;

enum { CLI_SETTING_MAX = 16 };

typedef struct cli_environment {
    cli_setting settings[CLI_SETTING_MAX];
    size_t n;
    const char *ptxrun; /* the program that runs PTX files */
} cli_environment;

/* From the place of this executable and the options given; complains and returns a status to exit
 * with when the libraries are not there or an option is wrong. */
int cli_environment_make(cli *c, cli_environment *out);

/* Set the variables in this process, for a program it becomes or starts. */
void cli_environment_apply(cli *c, const cli_environment *e);

/* ---- program.c ---- */
/* What to execute for the operands: the program itself, or what runs PTX files. */
int cli_program_make(cli *c, const cli_environment *e, char ***argv);
/* Complain that it could not be executed, and why (errno); a status to exit with. */
int cli_program_missing(cli *c, int why);

#endif
