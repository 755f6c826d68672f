/* SPDX-License-Identifier: Apache-2.0
 *
 * The page: one HTML file that needs nothing else, readable on a phone and on paper. */
#include "html.h"

#include <math.h>

static const char style[] =
    ":root{color-scheme:light dark;--ink:#1b1b1f;--paper:#fff;--line:#c4c7cf;--curve:#2563eb;"
    "--mark:#dc2626;--soft:#f1f5fb;--dim:#5f6470;--good:#15803d}"
    "@media(prefers-color-scheme:dark){:root{--ink:#e7e7ea;--paper:#141417;--line:#4a4d55;"
    "--curve:#7aa2ff;--mark:#ff7a7a;--soft:#1d2330;--dim:#a0a4ae;--good:#6fd28f}}"
    "*{box-sizing:border-box}body{font:15px/1.5 system-ui,sans-serif;color:var(--ink);"
    "background:var(--paper);max-width:62rem;margin:1rem auto;padding:0 .8rem}"
    "h1{font-size:1.3rem}h2{font-size:1.1rem;margin:2.2rem 0 .3rem;border-top:2px solid "
    "var(--line);"
    "padding-top:.8rem;overflow-wrap:anywhere}h3{font-size:1rem;margin:1.2rem 0 .2rem}"
    "p{margin:.4rem 0}.dim{color:var(--dim);font-size:.88rem}.wide{overflow-x:auto}"
    "table{border-collapse:collapse;font-size:.88rem;margin:.4rem 0}"
    "td,th{padding:.12rem .5rem;border-bottom:1px solid var(--line);text-align:right;"
    "white-space:nowrap}td:first-child,th:first-child{text-align:left}"
    "td.code{text-align:left;font-family:ui-monospace,monospace;white-space:pre}"
    "th.code{text-align:left}.hot{background:linear-gradient(90deg,color-mix(in srgb,var(--mark) "
    "35%,transparent) var(--w),transparent var(--w))}"
    ".advice{border-left:4px solid var(--mark);background:var(--soft);padding:.4rem .7rem;"
    "margin:.4rem 0}.charts{display:flex;flex-wrap:wrap;gap:.5rem}.charts figure{flex:1 1 17rem}"
    "figure{margin:.5rem 0;break-inside:avoid}figcaption{font-size:.88rem;font-weight:600}"
    "svg{width:100%;max-width:46rem;height:auto}svg text{fill:var(--ink);font-size:11px}"
    ".axis{stroke:var(--line);fill:none}.curve{stroke:var(--curve);fill:none;stroke-width:1.6}"
    ".mark{stroke:var(--mark);stroke-dasharray:4 3;fill:none}.dot{fill:var(--mark)}"
    ".box{fill:var(--soft);stroke:var(--line)}.flow{stroke:var(--curve);stroke-width:1.6;fill:none}"
    ".tip{fill:var(--curve)}.idle{stroke:var(--line);fill:none}.idletip{fill:var(--line)}"
    ".heat{fill:var(--mark)}.rail{fill:var(--soft)}.bar{fill:var(--curve)}"
    "@media(max-width:40rem){svg.large{min-width:36rem}}"
    ".contents{width:100%;table-layout:fixed}.contents a{color:inherit}.contents td,.contents th{"
    "text-align:left;overflow:hidden;text-overflow:ellipsis}.contents "
    "th:nth-child(2){width:5.8rem}.contents th:first-child{width:36%}"
    "details summary{cursor:pointer;font-weight:600;margin:.6rem 0}"
    "@media print{body{max-width:none;margin:0}details{display:block}h2{break-before:page}"
    "h2:first-of-type{break-before:auto}}";

const char *hw_html(hw_arena *a, const char *text)
{
    static const struct {
        char c;
        const char *as;
    } marks[] = { { '&', "&amp;" }, { '<', "&lt;" }, { '>', "&gt;" }, { '"', "&quot;" } };
    HW_VEC(char) out = { 0 };
    for (; *text; text++) {
        const char *as = NULL;
        for (size_t i = 0; i < HW_COUNTOF(marks); i++)
            if (marks[i].c == *text)
                as = marks[i].as;
        if (!as)
            hw_vec_push(a, &out, *text);
        for (; as && *as; as++)
            hw_vec_push(a, &out, *as);
    }
    hw_vec_push(a, &out, '\0');
    return out.ptr;
}

const char *hw_bytes_text(hw_arena *a, double bytes)
{
    static const char *const units[] = { "B", "KB", "MB", "GB", "TB" };
    size_t u = 0;
    while (bytes >= 1024 && u + 1 < HW_COUNTOF(units)) {
        bytes /= 1024;
        u++;
    }
    return hw_arena_printf(a, u && bytes < 100 ? "%.1f %s" : "%.0f %s", bytes, units[u]);
}

/* ---- tables ---- */

static void section(const hw_page *p, const hw_section *s)
{
    size_t n;
    const hw_metric *m = hw_metrics(&n);
    hw_arena *a = p->o->arena;
    bool any = false;
    for (size_t i = 0; i < n; i++) {
        double v = hw_metric_value(i, p->k, &p->k->sums, p->run, p->device);
        bool shown = m[i].label && strcmp(m[i].section, s->id) == 0 && !isnan(v) &&
                     (v != 0 || m[i].kind == HW_METRIC_LAUNCH);
        if (!shown)
            continue;
        if (!any)
            hw_out_printf(p->o, "<h3>%s</h3><div class=\"wide\"><table>\n", s->title);
        any = true;
        hw_out_printf(p->o, "<tr title=\"%s: %s\"><td>%s%s</td><td>%s</td><td>%s</td></tr>\n",
                      hw_html(a, m[i].id), hw_html(a, m[i].sentence), hw_html(a, m[i].label),
                      m[i].kind == HW_METRIC_SIMULATED ? " (simulated)" : "",
                      hw_metric_text(a, v, true), m[i].unit);
    }
    if (any)
        hw_out_printf(p->o, "</table></div>\n");
}

static void advice(const hw_page *p)
{
    hw_advice found[HW_ADVICE_MAX];
    size_t n = hw_report_advice(p->o->arena, p->run, p->k, p->device, found);
    for (size_t i = 0; i < n; i++)
        hw_out_printf(p->o, "<p class=\"advice\">%s</p>\n", hw_html(p->o->arena, found[i].text));
}

/* ---- source ---- */

enum { LINES_MOST = 400 };

static void source_row(const hw_page *p, const hw_line *l, const char *text, double most)
{
    hw_arena *a = p->o->arena;
    uint64_t accesses = 0, sectors = 0, conflicts = 0;
    for (int t = HW_TRAFFIC_global_ld; t <= HW_TRAFFIC_local_st; t++) {
        accesses += l->field[t][HW_FIELD_accesses];
        sectors += l->field[t][HW_FIELD_sectors];
    }
    for (int t = HW_TRAFFIC_shared_ld; t <= HW_TRAFFIC_shared_at; t++)
        conflicts += l->field[t][HW_FIELD_passes] - l->field[t][HW_FIELD_ideal];
    hw_out_printf(p->o,
                  "<tr><td>%s%u</td><td>%s</td><td>%.1f</td><td>%s</td><td>%s</td><td>%s</td><td "
                  "class=\"code hot\" style=\"--w:%.0f%%\">%s</td></tr>\n",
                  l->file ? hw_arena_printf(a, "%s:", hw_html(a, hw_base_name(l->file))) : "",
                  l->line, hw_grouped(a, l->executed),
                  l->executed ? (double)l->threads / (double)l->executed : 0.0,
                  l->divergent ? hw_grouped(a, l->divergent) : "",
                  accesses ? hw_arena_printf(a, "%.2f", (double)sectors / (double)accesses) : "",
                  conflicts ? hw_grouped(a, conflicts) : "", most > 0 ? 100 * l->waste / most : 0,
                  hw_html(a, text ? text : ""));
}

static void source(const hw_page *p)
{
    bool by_source = hw_report_has_lines(p->k);
    hw_arena *a = p->o->arena;
    hw_lines all = hw_report_lines(a, p->run, p->k, p->device, by_source);
    hw_sources *files = hw_sources_new(a);
    if (!all.len)
        return;
    hw_out_printf(p->o,
                  "<details open><summary>%s, hot spots first</summary>%s<div "
                  "class=\"wide\"><table><tr><th>Line</th><th>Executed</th><th>Lanes</th>"
                  "<th>Divergent</th><th>Sectors/req</th><th>Conflicts</th><th "
                  "class=\"code\">Source</th></tr>\n",
                  by_source ? "Source" : "PTX",
                  by_source
                      ? ""
                      : "<p class=\"dim\">Compile with -lineinfo to see lines of the program.</p>");
    for (size_t i = 0; i < all.len && i < LINES_MOST; i++) {
        const hw_line *l = &all.ptr[i];
        source_row(p, l, by_source ? hw_source_line(files, l->file, l->line) : l->text,
                   all.ptr[0].waste);
    }
    hw_out_printf(p->o, "</table></div></details>\n");
}

/* ---- the whole ---- */

static void kernel(const hw_page *p)
{
    size_t n;
    const hw_section *s = hw_sections(&n);
    hw_arena *a = p->o->arena;
    const hw_device *d = p->run->devices[p->device];
    hw_out_printf(
        p->o, "<h2 id=\"k%u-%u\">%s %s</h2>\n<p class=\"dim\">%s. %s launch%s%s%s%s</p>\n",
        p->k->index, p->device, hw_html(a, p->k->short_name), hw_report_shape(a, p->k),
        hw_html(a, d->title), hw_grouped(a, p->k->launches), p->k->launches == 1 ? "" : "es",
        p->k->failed ? ", of which some ended badly" : "", p->k->process ? ". " : "",
        p->k->process ? hw_html(a, p->k->process) : "");
    const char *beyond = hw_report_beyond(a, p->run, p->k, p->device);
    if (beyond)
        hw_out_printf(p->o, "<p>Beyond this device: %s</p>\n", hw_html(a, beyond));
    advice(p);
    hw_chart_memory(p);
    hw_chart_banks(p);
    hw_chart_divergence(p);
    hw_chart_roofline(p);
    hw_chart_occupancy(p);
    source(p);
    hw_out_printf(p->o, "<details><summary>Metrics</summary>\n");
    for (size_t i = 0; i < n; i++)
        section(p, &s[i]);
    hw_out_printf(p->o, "</details>\n");
}

enum { CONTENTS_FROM = 4 };

/* Each kernel and device with what is dearest about it. */
static void contents(hw_out *o, const hw_report_run *run)
{
    hw_arena *a = o->arena;
    if (run->n_kernels * run->n_devices < CONTENTS_FROM)
        return;
    hw_out_printf(o, "<table class=\"contents\"><tr><th>Kernel</th><th>Launches"
                     "</th><th>First advice</th></tr>\n");
    for (uint32_t i = 0; i < run->n_kernels; i++)
        for (uint32_t d = 0; d < run->n_devices; d++) {
            const hw_report_kernel *k = &run->kernels[i];
            hw_advice found[HW_ADVICE_MAX];
            bool any = hw_report_advice(a, run, k, d, found) > 0;
            hw_out_printf(
                o, "<tr><td><a href=\"#k%u-%u\">%s %s</a>%s%s</td><td>%s</td><td>%s</td></tr>\n",
                k->index, d, hw_html(a, k->short_name), hw_report_shape(a, k),
                run->n_devices > 1 ? ", " : "",
                run->n_devices > 1 ? hw_html(a, run->devices[d]->name) : "",
                hw_grouped(a, k->launches), any ? hw_html(a, found[0].text) : "");
        }
    hw_out_printf(o, "</table>\n");
}

void hw_report_html(hw_out *o, const hw_report_run *run)
{
    const char *title = run->program ? run->program : run->path;
    const char *t = hw_html(o->arena, title);
    hw_out_printf(
        o,
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta "
        "name=\"viewport\" content=\"width=device-width,initial-scale=1\"><title>%s</title>"
        "\n<style>",
        t);
    for (const char *c = style; *c; c++)
        hw_vec_push(o->arena, &o->bytes, *c);
    hw_out_printf(o, "</style></head><body>\n<h1>%s</h1>\n", t);
    if (!run->complete)
        hw_out_printf(o, "<p class=\"advice\">The program did not end by itself: these are the "
                         "launches that finished.</p>\n");
    contents(o, run);
    for (uint32_t i = 0; i < run->n_kernels; i++)
        for (uint32_t d = 0; d < run->n_devices; d++) {
            const hw_page p = { o, run, &run->kernels[i], d };
            kernel(&p);
        }
    hw_out_printf(o, "<h2>What is exact</h2>\n");
    for (const char *const *line = hw_report_fidelity(o->arena, run); *line; line++)
        hw_out_printf(o, "<p class=\"dim\">%s</p>\n", hw_html(o->arena, *line));
    hw_out_printf(o, "</body></html>\n");
}
