/* SPDX-License-Identifier: Apache-2.0
 *
 * What `profile` and `report` share: options, and where the report goes. Private to cli. */
#ifndef HW_CLI_PROFILE_H
#define HW_CLI_PROFILE_H

#include "cli.h"
#include "hw_report.h"

/* 0, or a status to exit with after a complaint. */
int cli_profile_options(cli *c, hw_report_options *out);
/* The pattern of --kernel or --kernel-name, NULL without one. An error: it is none. */
hw_status cli_profile_kernel(cli *c, const char **out);
/* Print or write the report of a run; of two, their comparison (after may be NULL). */
int cli_profile_show(cli *c, hw_report_run *run, hw_report_run *after);

#endif
