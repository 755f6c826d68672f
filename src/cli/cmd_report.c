/* SPDX-License-Identifier: Apache-2.0
 *
 * halfwarp report: a profile file as text, CSV, JSON or a page; two of them side by side. */
#include "profile.h"

#include <errno.h>
#include <string.h>

typedef enum { AS_TEXT, AS_JSON, AS_CSV, AS_HTML } format;

hw_status cli_profile_kernel(cli *c, const char **out)
{
    static const char regex[] = "regex:";
    *out = cli_text(c, OPT_kernels, cli_text(c, OPT_kernel_name, NULL));
    if (*out && strncmp(*out, regex, sizeof regex - 1) == 0)
        *out += sizeof regex - 1;
    return *out ? hw_report_regex(*out, c->diag) : HW_OK;
}

/* Sections of --sections, every --section and --set. */
static hw_status sections(cli *c, uint32_t *set)
{
    static const char *const sets[][2] = { { "basic", "LaunchStats,Occupancy" },
                                           { "default", "" },
                                           { "detailed", "" },
                                           { "full", "all" } };
    const char *name = cli_text(c, OPT_set, NULL);
    uint32_t more;
    HW_TRY(hw_report_sections(cli_text(c, OPT_sections, NULL), set, c->diag));
    for (size_t i = 0; i < c->text[OPT_section].len; i++) {
        HW_TRY(hw_report_sections(c->text[OPT_section].ptr[i], &more, c->diag));
        *set |= more;
    }
    for (size_t i = 0; name && i < HW_COUNTOF(sets); i++)
        if (strcmp(name, sets[i][0]) == 0) {
            HW_TRY(hw_report_sections(sets[i][1], &more, c->diag));
            *set |= more;
            return HW_OK;
        }
    return name ? hw_fail(c->diag, HW_E_NOT_FOUND, "no set '%s' (there are basic, detailed, full)",
                          name)
                : HW_OK;
}

static hw_status page(cli *c, hw_report_options *out)
{
    const char *name = cli_text(c, OPT_page, "details");
    out->raw = strcmp(name, "raw") == 0;
    out->source |= strcmp(name, "source") == 0;
    if (!out->raw && strcmp(name, "source") != 0 && strcmp(name, "details") != 0)
        return hw_fail(c->diag, HW_E_NOT_FOUND, "no page '%s' (there are details, raw, source)",
                       name);
    return HW_OK;
}

static hw_status metrics(cli *c, hw_report_options *out)
{
    const char *names = cli_text(c, OPT_metrics, out->raw ? "*" : NULL);
    size_t *list;
    if (!names)
        return HW_OK;
    HW_TRY(hw_report_metrics(c->arena, names, &list, &out->n_metrics, c->diag));
    out->metrics = list;
    return HW_OK;
}

int cli_profile_options(cli *c, hw_report_options *out)
{
    *out = (hw_report_options){ .source = c->given[OPT_source] };
    if (c->given[OPT_as_csv] + c->given[OPT_as_json] + c->given[OPT_as_html] > 1)
        return cli_fail(c, "--json, --csv and --html exclude one another");
    if (sections(c, &out->sections) != HW_OK || page(c, out) != HW_OK || metrics(c, out) != HW_OK)
        return cli_fail_diag(c);
    return 0;
}

/* By option, else by the name of the file; a file without a known ending is JSON. */
static format format_of(const cli *c, const char *path)
{
    static const struct {
        cli_option_id option;
        const char *ending;
        format format;
    } formats[] = { { OPT_as_json, ".json", AS_JSON },
                    { OPT_as_csv, ".csv", AS_CSV },
                    { OPT_as_html, ".html", AS_HTML } };
    for (size_t i = 0; i < HW_COUNTOF(formats); i++)
        if (c->given[formats[i].option])
            return formats[i].format;
    for (size_t i = 0; path && i < HW_COUNTOF(formats); i++)
        if (hw_str_ends(hw_str_of(path), hw_str_of(formats[i].ending)))
            return formats[i].format;
    return path && !hw_str_ends(hw_str_of(path), HW_STR(".txt")) ? AS_JSON : AS_TEXT;
}

static int make(cli *c, hw_out *o, format f, hw_report_run *run, hw_report_run *after,
                const hw_report_options *opt)
{
    if (after && f != AS_TEXT)
        return cli_fail(c, "two files are compared as text only");
    if (after)
        hw_report_compare(o, run, after, opt);
    else if (f == AS_CSV)
        hw_report_csv(o, run, opt);
    else if (f == AS_HTML)
        hw_report_html(o, run);
    else if (f == AS_TEXT)
        hw_report_text(o, run, opt);
    else if (hw_report_json(o, run, c->diag) != HW_OK)
        return cli_fail_diag(c);
    return 0;
}

static int put(cli *c, const hw_out *o, const char *path)
{
    FILE *f = path ? fopen(path, "w") : c->out;
    if (!f)
        return cli_fail(c, "cannot write '%s': %s", path, strerror(errno));
    bool bad = fwrite(o->bytes.ptr, 1, o->bytes.len, f) != o->bytes.len;
    bad |= path && fclose(f) != 0;
    return bad ? cli_fail(c, "cannot write '%s'", path ? path : "the results") : 0;
}

int cli_profile_show(cli *c, hw_report_run *run, hw_report_run *after)
{
    hw_report_options opt;
    const char *path = cli_text(c, OPT_output, NULL), *kernel = NULL;
    hw_out o = { .arena = c->arena, .colour = c->colour && !path };
    int status = cli_profile_options(c, &opt);
    if (status == 0 && cli_profile_kernel(c, &kernel) != HW_OK)
        return cli_fail_diag(c);
    if (status == 0 && kernel &&
        (hw_report_keep(run, kernel, c->diag) != HW_OK ||
         (after && hw_report_keep(after, kernel, c->diag) != HW_OK)))
        return cli_fail_diag(c);
    if (status == 0)
        status = make(c, &o, format_of(c, path), run, after, &opt);
    return status ? status : put(c, &o, path);
}

int cmd_report(cli *c)
{
    hw_report_run *runs[2] = { NULL, NULL };
    for (int i = 0; i < c->operand_count; i++)
        if (hw_report_load(c->arena, c->operands[i], &runs[i], c->diag) != HW_OK)
            return cli_fail_diag(c);
    return cli_profile_show(c, runs[0], runs[1]);
}
