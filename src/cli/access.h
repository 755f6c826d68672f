/* SPDX-License-Identifier: Apache-2.0
 *
 * One warp's access, from the options that `banks` and `coalesce` share. */
#ifndef HW_CLI_ACCESS_H
#define HW_CLI_ACCESS_H

#include "cli.h"
#include "hw_device.h"

typedef struct cli_access {
    const hw_device *device;
    hw_access access; /* its addresses are those below */
    uint64_t address[HW_LANES_MAX];
    bool strided; /* from --stride */
    int64_t stride, offset;
    const char *words; /* the access in words, for headings */
} cli_access;

/* 0, or a status to exit with after a complaint. */
int cli_read_access(cli *c, cli_access *out);
/* The lanes as JSON: [{"lane": 0, "address": 0}, ...]. */
json_t *cli_lanes_json(const cli_access *a);
/* "0-31", "0 2 4-7". */
const char *cli_lanes_text(cli *c, uint64_t mask);

/* The value of an integer expression in `lane` (C's operators, checked for overflow); false with a
 * complaint. */
bool cli_expression(cli *c, const char *text, int64_t lane, int64_t *value);

#endif
