/* SPDX-License-Identifier: Apache-2.0
 *
 * Pages with drawings, written by hand: a few kilobytes of HTML and inline SVG. */
#include "svg.h"

#include <errno.h>
#include <inttypes.h>

struct page {
    cli *c;
    FILE *file;
    const char *path;
};

static const char style[] =
    ":root{color-scheme:light "
    "dark;--ink:#1c1c1c;--paper:#fff;--line:#bbb;--curve:#2563eb;--mark:#dc2626;--soft:#eef2ff}"
    "@media(prefers-color-scheme:dark){:root{--ink:#e6e6e6;--paper:#161616;--line:#555;--curve:#"
    "7aa2ff;--mark:#ff7a7a;"
    "--soft:#1f2937}}"
    "body{font:15px/1.45 "
    "system-ui,sans-serif;color:var(--ink);background:var(--paper);max-width:60rem;margin:2rem "
    "auto;"
    "padding:0 1rem}h1{font-size:1.3rem}h2{font-size:1.05rem;margin-top:2rem}"
    "table{border-collapse:collapse;margin:.7rem 0}td,th{padding:.15rem .6rem;border-bottom:1px "
    "solid var(--line);"
    "text-align:right}td:first-child,th:first-child{text-align:left}.it{background:var(--soft);"
    "font-weight:600}"
    "svg{max-width:100%;height:auto;margin:.4rem 0}svg text{fill:var(--ink);font-size:12px}";

page *cli_page_open(cli *c, const char *path, const char *title)
{
    page *p = HW_NEW(c->arena, page);
    p->c = c;
    p->path = path;
    p->file = fopen(path, "w");
    if (!p->file) {
        cli_fail(c, "cannot write '%s': %s", path, strerror(errno));
        return NULL;
    }
    const char *t = cli_escape(c, title);
    fprintf(p->file,
            "<!doctype html>\n<html lang=\"en\"><head><meta "
            "charset=\"utf-8\"><title>%s</title>\n<style>%s</style>"
            "</head><body>\n<h1>%s</h1>\n",
            t, style, t);
    return p;
}

int cli_page_close(page *p)
{
    fprintf(p->file, "</body></html>\n");
    bool failed = ferror(p->file) != 0;
    failed |= fclose(p->file) != 0;
    return failed ? cli_fail(p->c, "cannot write '%s'", p->path) : 0;
}

void cli_page_raw(page *p, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vfprintf(p->file, fmt, ap);
    va_end(ap);
}

const char *cli_escape(cli *c, const char *text)
{
    HW_VEC(char) out = { 0 };
    for (; *text; text++) {
        const char *as = *text == '&'   ? "&amp;"
                         : *text == '<' ? "&lt;"
                         : *text == '>' ? "&gt;"
                         : *text == '"' ? "&quot;"
                                        : NULL;
        for (const char *s = as; s && *s; s++)
            hw_vec_push(c->arena, &out, *s);
        if (!as)
            hw_vec_push(c->arena, &out, *text);
    }
    hw_vec_push(c->arena, &out, '\0');
    return out.ptr;
}

void cli_page_paragraph(page *p, const char *text)
{
    fprintf(p->file, "<p>%s</p>\n", cli_escape(p->c, text));
}

void cli_page_heading(page *p, const char *text)
{
    fprintf(p->file, "<h2>%s</h2>\n", cli_escape(p->c, text));
}

const char *cli_page_colour(unsigned n)
{
    static const char *const colours[] = { "#60a5fa", "#f59e0b", "#34d399", "#f472b6",
                                           "#a78bfa", "#f87171", "#22d3ee", "#bef264" };
    return colours[n % HW_COUNTOF(colours)];
}

/* ---- graphs ---- */

enum { LEFT = 46, TOP = 12, WIDTH = 600, HEIGHT = 200, BOTTOM = 44, RIGHT = 14 };

static double place_x(const graph *g, uint64_t x)
{
    uint64_t from = g->x[0], to = g->x[g->count - 1];
    return LEFT + (to > from ? (double)(x - from) / (double)(to - from) * WIDTH : 0);
}

static double place_y(const graph *g, uint32_t y)
{
    return TOP + HEIGHT - (double)y / g->most * HEIGHT;
}

static void axes(page *p, const graph *g)
{
    for (uint32_t i = 0; i <= 4; i++) {
        uint32_t y = g->most * i / 4;
        fprintf(p->file,
                "<line x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"var(--line)\" "
                "stroke-width=\".5\"/>"
                "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%" PRIu32 "</text>\n",
                LEFT, LEFT + WIDTH, place_y(g, y), place_y(g, y), LEFT - 6, place_y(g, y) + 4, y);
    }
    for (uint32_t i = 0; i <= 8; i++) {
        uint64_t x = g->x[(g->count - 1) * i / 8];
        fprintf(p->file, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%" PRIu64 "</text>\n",
                place_x(g, x), TOP + HEIGHT + 18, x);
    }
    fprintf(p->file, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">%s</text>\n", LEFT + WIDTH / 2,
            TOP + HEIGHT + 36, cli_escape(p->c, g->x_name));
}

static uint32_t value_at(const graph *g, uint64_t x)
{
    uint32_t i = 0;
    while (i + 1 < g->count && g->x[i + 1] <= x)
        i++;
    return g->y[i];
}

void cli_page_graph(page *p, const graph *g)
{
    cli_page_heading(p, g->title);
    fprintf(p->file, "<svg viewBox=\"0 0 %d %d\" width=\"%d\" role=\"img\" aria-label=\"%s\">\n",
            LEFT + WIDTH + RIGHT, TOP + HEIGHT + BOTTOM, LEFT + WIDTH + RIGHT,
            cli_escape(p->c, g->title));
    axes(p, g);
    fprintf(p->file,
            "<polyline fill=\"none\" stroke=\"var(--curve)\" stroke-width=\"2\" points=\"");
    for (uint32_t i = 0; i < g->count; i++)
        fprintf(p->file, "%.1f,%.1f ", place_x(g, g->x[i]), place_y(g, g->y[i]));
    fprintf(p->file, "\"/>\n");
    if (g->mark >= g->x[0] && g->mark <= g->x[g->count - 1])
        fprintf(p->file,
                "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"6\" fill=\"var(--mark)\"><title>%" PRIu64
                ": %" PRIu32 " %s</title></circle>\n",
                place_x(g, g->mark), place_y(g, value_at(g, g->mark)), g->mark,
                value_at(g, g->mark), cli_escape(p->c, g->y_name));
    fprintf(p->file, "</svg>\n");
}
