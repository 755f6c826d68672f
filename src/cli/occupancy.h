/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of `halfwarp occupancy` share. */
#ifndef HW_CLI_OCCUPANCY_H
#define HW_CLI_OCCUPANCY_H

#include "cli.h"
#include "hw_device.h"

/* A launch to be judged, and where its numbers come from. */
typedef struct occupancy_case {
    const hw_device *device;
    hw_occupancy_query query;
    const char *kernel;    /* or NULL */
    const char *regs_from; /* where the register count comes from, or NULL: the command line */
} occupancy_case;

/* ---- occupancy_text.c, occupancy_json.c ---- */
void cli_occupancy_text(cli *c, const occupancy_case *k, const hw_occupancy_report *rep);
json_t *cli_occupancy_json(cli *c, const occupancy_case *k, const hw_occupancy_report *rep);
/* The launch in a line: "256 threads, 40 registers, 16384 bytes of shared memory". */
const char *cli_occupancy_query_text(cli *c, const occupancy_case *k);
/* Why a launch is refused, with the device's number. */
const char *cli_occupancy_refusal_text(cli *c, const occupancy_case *k, hw_refusal why);
/* One step as a sentence: "4 registers fewer (36) gives 5 blocks". */
const char *cli_occupancy_step_text(cli *c, const hw_device *d, const hw_occupancy_step *s);

/* ---- occupancy_curves.c ---- */
#define CURVE_MAX 513
typedef struct occupancy_curve {
    const char *title, *unit;
    uint32_t count, most;       /* points; highest value the device could have */
    uint64_t x[CURVE_MAX], now; /* now: of the launch */
    uint32_t warps[CURVE_MAX];
} occupancy_curve;
#define CURVES 3
void cli_occupancy_curves(const occupancy_case *k, occupancy_curve curves[CURVES]);
void cli_occupancy_plot(cli *c, const occupancy_curve *curve);
json_t *cli_occupancy_curve_json(const occupancy_curve *curve);

/* ---- occupancy_html.c ---- */
int cli_occupancy_html(cli *c, const char *path, const occupancy_case *k,
                       const hw_occupancy_report *rep, size_t n);

/* ---- occupancy_tables.c ---- */
/* One launch on all devices it makes sense on (k->device, if set, says of which vendor): as rows, or printed if rows is
 * NULL. */
int cli_occupancy_all_devices(cli *c, const occupancy_case *k, json_t **rows);
int cli_occupancy_lds_table(cli *c, const hw_device *d);

/* ---- occupancy_file.c: the kernels of a program; each is base with what the file says ---- */
int cli_occupancy_file(cli *c, const char *path, const occupancy_case *base, occupancy_case **out,
                       size_t *n);

#endif
