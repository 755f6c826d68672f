/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts of the page. Private to report. */
#ifndef HW_REPORT_HTML_H
#define HW_REPORT_HTML_H

#include "report.h"

typedef struct hw_page { /* what is drawn: a kernel on a device */
    hw_out *o;
    const hw_report_run *run;
    const hw_report_kernel *k;
    uint32_t device;
} hw_page;

const char *hw_html(hw_arena *a, const char *text);   /* & < > " escaped */
const char *hw_bytes_text(hw_arena *a, double bytes); /* "1.5 MB" */

/* ---- charts.c: each draws an inline SVG, or nothing without data ---- */
void hw_chart_occupancy(const hw_page *p);
void hw_chart_memory(const hw_page *p);
void hw_chart_banks(const hw_page *p);
void hw_chart_divergence(const hw_page *p);
void hw_chart_roofline(const hw_page *p);

#endif
