/* SPDX-License-Identifier: Apache-2.0
 *
 * report: its inside. Private to the room. */
#ifndef HW_REPORT_INSIDE_H
#define HW_REPORT_INSIDE_H

#include "hw_report.h"

/* into: sums of one of n equal launches that make up `of`. */
void hw_report_sums_divide(hw_arena *a, const hw_report_run *run, hw_report_sums *into,
                           const hw_report_sums *of, uint64_t n);
/* "(16, 10, 1)x(32, 8, 1)" */
const char *hw_report_shape(hw_arena *a, const hw_report_kernel *k);

/* ---- a kernel by line ---- */
typedef struct hw_line {     /* what the sites of one source (or PTX) line counted on one device */
    const char *file, *text; /* file NULL: a PTX line */
    uint32_t line;
    uint64_t executed, threads, on, branches, divergent;
    uint64_t field[HW_TRAFFICS][HW_FIELDS];
    double waste; /* work beyond the ideal: sectors, passes, lanes; what hot spots are sorted by */
    bool inlined; /* some of it came through inlined functions */
    uint32_t sites;
} hw_line;
typedef HW_VEC(hw_line) hw_lines;
bool hw_report_has_lines(const hw_report_kernel *k);
/* By source line, or by PTX line; hot spots first. */
hw_lines hw_report_lines(hw_arena *a, const hw_report_run *run, const hw_report_kernel *k,
                         uint32_t device, bool by_source);
/* The text of a line of a source file that is still there, or NULL. */
typedef struct hw_sources hw_sources;
hw_sources *hw_sources_new(hw_arena *a);
const char *hw_source_line(hw_sources *s, const char *file, uint32_t line);
const char *hw_base_name(const char *path);
/* Sectors, passes and serial steps beyond what the accesses need at least. */
double hw_report_excess(const uint64_t field[HW_FIELDS], int traffic);
/* The number as text with thousands separated. */
const char *hw_grouped(hw_arena *a, uint64_t v);

/* ---- a table of text ---- */
typedef struct hw_text_table {
    hw_arena *arena;
    unsigned columns;
    HW_VEC(const char *) cells; /* headings first; '>' in front: aligned right */
} hw_text_table;
hw_text_table hw_table_new(hw_arena *a, unsigned columns, const char *const *headings);
void hw_cell(hw_text_table *t, const char *fmt, ...) HW_PRINTF(2, 3);
void hw_table_print(hw_out *o, const hw_text_table *t, unsigned indent);
/* Escape sequences, "" without colours. */
typedef enum { HW_PLAIN, HW_BOLD, HW_DIM, HW_BAD, HW_GOOD } hw_text_style;
const char *hw_style(const hw_out *o, hw_text_style s);

#endif
