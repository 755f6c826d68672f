/* SPDX-License-Identifier: Apache-2.0
 *
 * halfwarp occupancy: how many blocks a multiprocessor holds, what limits them and what to change.
 */
#include "occupancy.h"

#include <stdlib.h>

#define DEFAULT_THREADS 256

/* ---- the query from the options ---- */

static int read_query(cli *c, hw_occupancy_query *q)
{
    static const char *const caches[] = { "none", "shared", "l1", "equal", NULL };
    static const char *const partitioned[] = { "off", "on", "strict", NULL };
    static const char *const modes[] = { "exact", "spreadsheet", "llvm", NULL };
    int cache, part, mode;
    if (cli_choose(c, OPT_cache, caches, &cache) ||
        cli_choose(c, OPT_partitioned, partitioned, &part) || cli_choose(c, OPT_mode, modes, &mode))
        return CLI_BAD_INPUT;
    *q = (hw_occupancy_query)HW_OCCUPANCY_QUERY_INIT;
    q->threads = (uint32_t)cli_number(c, OPT_threads, DEFAULT_THREADS);
    q->registers = (uint32_t)cli_number(c, OPT_regs, 0);
    q->shared_static = (uint64_t)cli_number(c, OPT_shared, 0);
    q->shared_dynamic = (uint64_t)cli_number(c, OPT_dynamic, 0);
    q->shared_optin = c->given[OPT_optin];
    q->shared_dynamic_max = q->shared_optin ? q->shared_dynamic : 0;
    q->barriers = (uint32_t)cli_number(c, OPT_barriers, 1);
    q->virtual_resources = (uint32_t)cli_number(c, OPT_virtual, 0);
    q->carveout = (int)cli_number(c, OPT_carveout, HW_CARVEOUT_DEFAULT);
    q->cache = (hw_cache_preference)cache;
    q->partitioned = (hw_partitioned)part;
    q->policy = (hw_occupancy_policy)mode;
    q->vgprs = (uint32_t)cli_number(c, OPT_vgprs, 0);
    q->sgprs = (uint32_t)cli_number(c, OPT_sgprs, 0);
    q->lds = (uint64_t)cli_number(c, OPT_lds, 0);
    q->trap_handler = c->given[OPT_trap];
    return 0;
}

/* Options that mean nothing on a vendor's devices, and what to say instead. */
static int check_vendor(cli *c, const hw_device *d)
{
    static const struct {
        cli_option_id id;
        hw_vendor vendor;
        const char *instead;
    } only[] = {
        { OPT_regs, HW_VENDOR_NVIDIA, "; use --vgprs and --sgprs" },
        { OPT_shared, HW_VENDOR_NVIDIA, "; use --lds" },
        { OPT_dynamic, HW_VENDOR_NVIDIA, "; use --lds" },
        { OPT_optin, HW_VENDOR_NVIDIA, "" },
        { OPT_barriers, HW_VENDOR_NVIDIA, "" },
        { OPT_virtual, HW_VENDOR_NVIDIA, "" },
        { OPT_carveout, HW_VENDOR_NVIDIA, "" },
        { OPT_cache, HW_VENDOR_NVIDIA, "" },
        { OPT_partitioned, HW_VENDOR_NVIDIA, "" },
        { OPT_vgprs, HW_VENDOR_AMD, "; use --regs" },
        { OPT_sgprs, HW_VENDOR_AMD, "" },
        { OPT_lds, HW_VENDOR_AMD, "; use --shared" },
        { OPT_trap, HW_VENDOR_AMD, "" },
        { OPT_lds_table, HW_VENDOR_AMD, "" },
    };
    for (size_t i = 0; i < HW_COUNTOF(only); i++)
        if (c->given[only[i].id] && only[i].vendor != d->vendor)
            return cli_fail(c, "--%s does not apply to %s, a device of %s%s",
                            cli_options[only[i].id].name, d->name, hw_vendor_word(d->vendor),
                            only[i].instead);
    if (strcmp(cli_text(c, OPT_mode, "exact"), "llvm") == 0 && d->vendor != HW_VENDOR_AMD)
        return cli_fail(c, "--mode llvm applies to AMD devices; %s is of %s", d->name,
                        hw_vendor_word(d->vendor));
    return 0;
}

/* ---- the answer ---- */

/* Numbers that no program on the device can have, as against a combination that does not fit. */
static bool impossible(const occupancy_case *k, hw_refusal why)
{
    const hw_occupancy_query *q = &k->query;
    switch (why) {
    case HW_REFUSED_NO_THREADS:
    case HW_REFUSED_THREADS:
    case HW_REFUSED_REGISTERS_THREAD:
    case HW_REFUSED_VGPRS:
    case HW_REFUSED_SGPRS:
        return true;
    case HW_REFUSED_SHARED_BLOCK:
        return k->device->vendor == HW_VENDOR_AMD ||
               q->shared_static > k->device->occupancy.shared_per_sm ||
               q->shared_dynamic > k->device->occupancy.shared_per_sm;
    default:
        return false;
    }
}

static int answer_status(cli *c, const occupancy_case *k, const hw_occupancy_report *rep)
{
    if (!impossible(k, rep->result.refusal))
        return 0;
    return cli_fail(c, "%s", cli_occupancy_refusal_text(c, k, rep->result.refusal));
}

static json_t *one_json(cli *c, const occupancy_case *k, const hw_occupancy_report *rep)
{
    json_t *o = cli_occupancy_json(c, k, rep);
    if (!c->given[OPT_curves])
        return o;
    occupancy_curve *curves = HW_NEW_N(c->arena, occupancy_curve, CURVES);
    json_t *all = json_array();
    cli_occupancy_curves(k, curves);
    for (int i = 0; i < CURVES; i++)
        json_array_append_new(all, cli_occupancy_curve_json(&curves[i]));
    json_object_set_new(o, "curves", all);
    return o;
}

static void print_text(cli *c, const occupancy_case *k, const hw_occupancy_report *rep)
{
    cli_occupancy_text(c, k, rep);
    if (!c->given[OPT_curves])
        return;
    occupancy_curve *curves = HW_NEW_N(c->arena, occupancy_curve, CURVES);
    cli_occupancy_curves(k, curves);
    for (int i = 0; i < CURVES; i++)
        cli_occupancy_plot(c, &curves[i]);
}

static int answer(cli *c, const occupancy_case *cases, size_t n, bool many)
{
    hw_occupancy_report *reps = HW_NEW_N(c->arena, hw_occupancy_report, n);
    int status = 0;
    for (size_t i = 0; i < n; i++) {
        hw_occupancy_explain(cases[i].device, &cases[i].query, &reps[i]);
        int bad = answer_status(c, &cases[i], &reps[i]);
        status = bad ? bad : status;
    }
    json_t *all = c->given[OPT_json] ? json_array() : NULL;
    for (size_t i = 0; i < n; i++) {
        if (all)
            json_array_append_new(all, one_json(c, &cases[i], &reps[i]));
        else if (!impossible(&cases[i], reps[i].result.refusal))
            print_text(c, &cases[i], &reps[i]);
    }
    if (all && many)
        cli_json(c, json_pack("{s:s, s:o}", "file", c->operands[0], "kernels", all));
    else if (all)
        cli_json(c, json_incref(json_array_get(all, 0))), json_decref(all);
    const char *page = cli_text(c, OPT_html, NULL);
    if (page && status == 0)
        status = cli_occupancy_html(c, page, cases, reps, n);
    return status;
}

static int all_devices(cli *c, const occupancy_case *k)
{
    json_t *rows = NULL;
    int status = cli_occupancy_all_devices(c, k, c->given[OPT_json] ? &rows : NULL);
    return status || !rows ? status : cli_json(c, rows);
}

/* Each kernel of a file on all devices of its vendor, with the registers that were found for one. */
static int everywhere(cli *c, const occupancy_case *cases, size_t n)
{
    json_t *all = c->given[OPT_json] ? json_array() : NULL;
    for (size_t i = 0; i < n; i++) {
        json_t *rows = NULL;
        int status = cli_occupancy_all_devices(c, &cases[i], all ? &rows : NULL);
        if (status)
            return status;
        if (all)
            json_array_append_new(
                all, json_pack("{s:s, s:o}", "kernel", cases[i].kernel, "devices", rows));
    }
    return all ? cli_json(c, all) : 0;
}

int cmd_occupancy(cli *c)
{
    occupancy_case base = { 0 }, *cases = &base;
    size_t n = 1;
    int status = read_query(c, &base.query);
    if (status)
        return status;
    if (c->given[OPT_all_devices] && c->operand_count == 0)
        return all_devices(c, &base);
    const char *name = cli_text(c, OPT_device, getenv("HALFWARP_DEVICE"));
    if (hw_device_load(c->arena, name, &base.device, c->diag) != HW_OK)
        return cli_fail_diag(c);
    if (c->operand_count && !c->given[OPT_lds_table])
        status = cli_occupancy_file(c, c->operands[0], &base, &cases, &n);
    for (size_t i = 0; i < n && status == 0; i++)
        status = check_vendor(c, cases[i].device);
    if (status)
        return status;
    if (c->given[OPT_lds_table])
        return cli_occupancy_lds_table(c, base.device);
    return c->given[OPT_all_devices] ? everywhere(c, cases, n)
                                     : answer(c, cases, n, c->operand_count && n > 1);
}
