/* SPDX-License-Identifier: Apache-2.0
 *
 * Pages with drawings: one HTML file that needs nothing else, light or dark as the reader's system
 * is. */
#ifndef HW_CLI_SVG_H
#define HW_CLI_SVG_H

#include "cli.h"

typedef struct page page;

/* NULL with a complaint if the file cannot be written. title is escaped. */
page *cli_page_open(cli *c, const char *path, const char *title);
/* 0, or a status to exit with if writing failed. */
int cli_page_close(page *p);
/* Markup as it is. */
void cli_page_raw(page *p, const char *fmt, ...) HW_PRINTF(2, 3);
/* A paragraph, a heading of level 2, a preformatted text: escaped. */
void cli_page_paragraph(page *p, const char *text);
void cli_page_heading(page *p, const char *text);
/* Text with & < > " escaped, in the command's arena. */
const char *cli_escape(cli *c, const char *text);

/* A step curve: count points, x ascending; most: the top of the y axis; mark: an x to point at. */
typedef struct graph {
    const char *title, *x_name, *y_name;
    uint32_t count, most;
    const uint64_t *x;
    const uint32_t *y;
    uint64_t mark;
} graph;
void cli_page_graph(page *p, const graph *g);
/* A colour for a number, readable on light and dark. */
const char *cli_page_colour(unsigned n);

#endif
