/* SPDX-License-Identifier: Apache-2.0
 *
 * report: counters made metrics, metrics made text, CSV, JSON and HTML.
 *
 * Nouns
 *   run      a profile file that was read: devices, kernels, what they counted.
 *   kernel   all launches of one kernel with one shape, summed; and its groups of equal launches.
 *   sums     what a launch, a group of launches or a kernel counted.
 *   site     a place in the program: an instruction with its PTX and source line.
 *   metric   a row of metrics.def, evaluated for sums on a device. NAN: does not apply.
 *   advice   a sentence about a kernel on a device, with its evidence and what it costs.
 *   out      where text goes: growing bytes in an arena.
 *
 * Rules: nothing here prints; a run is immutable after loading and lives in the arena it was loaded
 * into. Output depends on the run and the options only.
 */
#ifndef HW_REPORT_H
#define HW_REPORT_H

#include "hw_device.h"
#include "hw_model.h"

/* ---- a run ---- */
typedef struct hw_report_sums {
    uint64_t total[HW_TOTALS];
    uint64_t (*traffic)[HW_TRAFFICS][HW_FIELDS]; /* by device */
    uint64_t (*cache)[HW_CACHES];                /* by device; NULL: not simulated */
} hw_report_sums;

typedef struct hw_report_place {
    const char *file, *function; /* NULL: unknown */
    uint32_t line;
} hw_report_place;

typedef struct hw_report_site {
    const char *op, *text; /* "ld.global.f32"; the PTX line, NULL if unknown */
    uint32_t ptx_line;
    hw_report_place place;
    uint32_t n_inlined; /* where place was inlined, innermost first */
    hw_report_place *inlined;
    int traffic; /* HW_TRAFFIC_*; -1: no memory access */
    uint32_t width;
    bool strided; /* lane i accesses first + i * stride in every access */
    int64_t stride;
    uint64_t executed, threads, on, branches, divergent;
    uint64_t (*field)[HW_FIELDS];    /* by device; NULL without traffic */
    uint64_t (*banks)[HW_LANES_MAX]; /* by device, words of each bank; NULL: not shared memory */
} hw_report_site;

typedef struct hw_report_group { /* launches that counted the same */
    uint64_t launches;
    uint32_t context, stream;
    uint32_t n_ranges;
    uint64_t (*ranges)[3]; /* first id, count, step */
    hw_report_sums sums;   /* of one of them */
} hw_report_group;

typedef struct hw_report_registers { /* of a thread, on one device */
    uint32_t count, spill_bytes;
    uint32_t arch; /* of the machine code that says so */
    hw_model_source source;
} hw_report_registers;

typedef struct hw_report_kernel {
    uint32_t index;                /* in the file */
    const char *name, *short_name; /* as in the PTX; without parameters and mangling */
    const char *process;           /* of several: the program that launched it; else NULL */
    uint32_t grid[3], block[3];
    bool mixed; /* shapes beyond the limit, taken together: grid and block are the first's */
    uint64_t launches, failed, first_id;
    const char *failure; /* status of the failed ones, or NULL */
    uint64_t shared_dynamic, shared_static, local_bytes;
    hw_report_registers *registers; /* by device */
    hw_report_sums sums;            /* of all launches */
    uint32_t n_sites, n_groups;
    hw_report_site *sites;
    hw_report_group *groups;
    uint64_t launches_ungrouped; /* launches beyond the limit, in sums only */
} hw_report_kernel;

typedef struct hw_report_run {
    const char *path, *program, *version, *level;
    bool complete;
    const char *under_way;            /* the kernel that ran when the program ended, or NULL */
    uint64_t blocks_here, blocks_all; /* of it: ended, all */
    bool torn; /* the program was lost while a launch was being added: it may be counted in part */
    uint32_t n_devices;
    const hw_device *devices[HW_MODEL_DEVICES_MAX];
    uint32_t n_kernels;
    hw_report_kernel *kernels;
} hw_report_run;

hw_status hw_report_load(hw_arena *a, const char *path, hw_report_run **out, hw_diag *d);
/* HW_OK: a regular expression. */
hw_status hw_report_regex(const char *regex, hw_diag *d);
/* One profile file of those of several processes, in this order: launches are numbered through. */
hw_status hw_report_join(const char *const *paths, size_t n, const char *out, hw_diag *d);
/* Keep the kernels whose name or short name matches a POSIX extended regular expression. */
hw_status hw_report_keep(hw_report_run *run, const char *regex, hw_diag *d);
/* What the kernel asks of a device's multiprocessors. */
hw_occupancy_query hw_report_query(const hw_report_run *run, const hw_report_kernel *k,
                                   uint32_t device);
/* "32 registers a thread, by the program's machine code for sm_75". */
const char *hw_report_registers_text(hw_arena *a, const hw_report_registers *r);

/* ---- metrics ---- */
typedef enum { HW_METRIC_EXACT, HW_METRIC_SIMULATED, HW_METRIC_LAUNCH } hw_metric_kind;
typedef struct hw_metric {
    const char *id, *nvprof, *unit, *section, *label, *sentence;
    hw_metric_kind kind;
} hw_metric;
const hw_metric *hw_metrics(size_t *count);
/* By id or nvprof name; SIZE_MAX: none. "group:" names of sections are not metrics. */
size_t hw_metric_find(const char *name);
double hw_metric_value(size_t metric, const hw_report_kernel *k, const hw_report_sums *s,
                       const hw_report_run *run, uint32_t device);
/* "1,234", "12.50"; "n/a" for NAN. */
const char *hw_metric_text(hw_arena *a, double value, bool grouped);
const char *hw_metric_kind_word(hw_metric_kind kind);

/* ---- sections ---- */
typedef struct hw_section {
    const char *id, *title;
} hw_section;
const hw_section *hw_sections(size_t *count);
/* Set of sections (bits) from "Occupancy,LaunchStats" (id or title, any case), "all" or NULL. */
hw_status hw_report_sections(const char *list, uint32_t *set, hw_diag *d);
/* Metrics from "a,b"; ids of metrics.def, also without what is behind the dot, or nvprof names; patterns with * and ?, and
 * "regex:EXPR", are all that match. Each once. */
hw_status hw_report_metrics(hw_arena *a, const char *list, size_t **metrics, size_t *count,
                            hw_diag *d);

/* ---- advice ---- */
#define HW_ADVICE_MAX 5
typedef struct hw_advice {
    const char *rule, *text; /* name of advice.def; the sentence */
    double cost; /* share of the kernel's memory or issue work that is avoidable, 0..1 */
    const hw_report_site *site; /* or NULL */
    bool whole_launch; /* about grid, block or occupancy: cost is a weight for the order only */
} hw_advice;
/* The most valuable first; returns how many. */
size_t hw_report_advice(hw_arena *a, const hw_report_run *run, const hw_report_kernel *k,
                        uint32_t device, hw_advice out[HW_ADVICE_MAX]);

/* What the kernel uses that the device does not have ("double precision, ..."), or NULL. */
const char *hw_report_beyond(hw_arena *a, const hw_report_run *run, const hw_report_kernel *k,
                             uint32_t device);

/* ---- output ---- */
typedef struct hw_out {
    hw_arena *arena;
    HW_VEC(char) bytes;
    bool colour;
} hw_out;
void hw_out_printf(hw_out *o, const char *fmt, ...) HW_PRINTF(2, 3);

typedef struct hw_report_options {
    uint32_t sections;     /* 0: those that a first look needs */
    const size_t *metrics; /* only these; NULL: by section */
    size_t n_metrics;
    bool source; /* the annotated listing */
    bool raw;    /* CSV: a row a launch, a column a metric */
} hw_report_options;

void hw_report_text(hw_out *o, const hw_report_run *run, const hw_report_options *opt);
void hw_report_source(hw_out *o, const hw_report_run *run, const hw_report_kernel *k,
                      uint32_t device);
void hw_report_csv(hw_out *o, const hw_report_run *run, const hw_report_options *opt);
hw_status hw_report_json(hw_out *o, const hw_report_run *run, hw_diag *d);
void hw_report_html(hw_out *o, const hw_report_run *run);
/* Two runs side by side; kernels are matched by name and order. */
void hw_report_compare(hw_out *o, const hw_report_run *before, const hw_report_run *after,
                       const hw_report_options *opt);
/* What is exact, simulated, not modelled: lines of text, NULL-terminated. */
const char *const *hw_report_fidelity(hw_arena *a, const hw_report_run *run);

#endif
