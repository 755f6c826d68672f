/* SPDX-License-Identifier: Apache-2.0
 *
 * One launch's occupancy as JSON. */
#include "occupancy.h"

static json_t *number(uint64_t n)
{
    return json_integer((json_int_t)n);
}

static json_t *limit_or_null(uint32_t n)
{
    return n == HW_UNLIMITED ? json_null() : number(n);
}

static bool amd(const occupancy_case *k)
{
    return k->device->vendor == HW_VENDOR_AMD;
}

static const char *limit_key(bool is_amd, hw_limit limit)
{
    if (is_amd && limit == HW_LIMIT_WARPS)
        return "waves";
    return is_amd && limit == HW_LIMIT_BLOCKS ? "groups" : hw_limit_name(limit);
}

static bool concerns(bool is_amd, hw_limit limit)
{
    bool gcn = limit == HW_LIMIT_VGPR || limit == HW_LIMIT_SGPR || limit == HW_LIMIT_LDS;
    bool both = limit == HW_LIMIT_WARPS || limit == HW_LIMIT_BLOCKS || limit == HW_LIMIT_THREADS;
    return both || gcn == is_amd;
}

static json_t *limits_json(const occupancy_case *k, const hw_occupancy_result *r)
{
    json_t *o = json_object();
    for (unsigned i = 0; i < HW_LIMIT_COUNT; i++)
        if (concerns(amd(k), (hw_limit)i))
            json_object_set_new(o, limit_key(amd(k), (hw_limit)i), limit_or_null(r->limits[i]));
    return o;
}

static json_t *limiters_json(const occupancy_case *k, const hw_occupancy_result *r)
{
    json_t *a = json_array();
    for (unsigned i = 0; i < HW_LIMIT_COUNT; i++)
        if (r->limiters >> i & 1)
            json_array_append_new(a, json_string(limit_key(amd(k), (hw_limit)i)));
    return a;
}

static json_t *steps_json(cli *c, const occupancy_case *k, const hw_occupancy_report *rep)
{
    json_t *a = json_array();
    for (uint32_t i = 0; i < rep->step_count; i++) {
        const hw_occupancy_step *s = &rep->steps[i];
        json_array_append_new(a, json_pack("{s:s, s:o, s:o, s:o, s:o, s:s}", "resource",
                                           limit_key(amd(k), s->resource), "from", number(s->now),
                                           "to", number(s->then), amd(k) ? "groups" : "blocks",
                                           number(s->blocks), amd(k) ? "waves" : "warps",
                                           number(s->warps), "text",
                                           cli_occupancy_step_text(c, k->device, s)));
    }
    return a;
}

static json_t *sizes_json(const hw_occupancy_report *rep)
{
    json_t *a = json_array();
    for (uint32_t i = 0; i < rep->best_count; i++)
        json_array_append_new(a, number(rep->best_sizes[i]));
    return a;
}

static json_t *query_json(const occupancy_case *k)
{
    const hw_occupancy_query *q = &k->query;
    if (amd(k))
        return json_pack("{s:o, s:o, s:o, s:o, s:b, s:s}", "threads", number(q->threads), "vgprs",
                         number(q->vgprs), "sgprs", number(q->sgprs), "lds", number(q->lds),
                         "trap_handler", q->trap_handler, "mode",
                         q->policy == HW_OCCUPANCY_LLVM ? "llvm" : "exact");
    return json_pack("{s:o, s:o, s:s, s:o, s:o, s:b, s:o, s:o}", "threads", number(q->threads),
                     "registers", number(q->registers), "registers_from",
                     k->regs_from ? k->regs_from : "command line", "shared_static",
                     number(q->shared_static), "shared_dynamic", number(q->shared_dynamic),
                     "shared_optin", q->shared_optin, "barriers", number(q->barriers), "carveout",
                     q->carveout == HW_CARVEOUT_DEFAULT ? json_null() : json_integer(q->carveout));
}

static void nvidia_keys(json_t *o, const occupancy_case *k, const hw_occupancy_report *rep)
{
    const hw_occupancy_result *r = &rep->result;
    const hw_device *d = k->device;
    json_object_set_new(o, "blocks_per_sm", number(r->blocks));
    json_object_set_new(o, "warps_per_sm", number(r->warps));
    json_object_set_new(o, "max_warps_per_sm", number(r->max_warps));
    json_object_set_new(o, "allocated",
                        json_pack("{s:o, s:o, s:o, s:o}", "registers",
                                  number(r->registers_allocated), "shared_memory",
                                  number(r->shared_allocated), "shared_memory_config",
                                  number(r->shared_config), "warps", number(r->warps_per_block)));
    json_object_set_new(o, "carveout",
                        json_pack("{s:o, s:o}", "bytes", number(rep->config_enough), "percent",
                                  number(rep->config_enough * 100 / d->occupancy.shared_per_sm)));
}

static json_t *tipping_json(const occupancy_case *k)
{
    json_t *a = json_array();
    for (uint32_t waves = k->device->gcn.max_waves_per_simd; waves > 0; waves--) {
        uint32_t tipping, whole;
        hw_lds_tipping_point(k->device, k->query.threads, waves, &tipping, &whole);
        json_array_append_new(a, json_pack("{s:o, s:o, s:o}", "waves_per_simd", number(waves),
                                           "tipping_point", number(tipping), "whole_groups",
                                           number(whole)));
    }
    return a;
}

static void amd_keys(json_t *o, const occupancy_case *k, const hw_occupancy_report *rep)
{
    const hw_occupancy_result *r = &rep->result;
    const char *per_simd = "waves_per_simd", *max = "max_waves_per_cu";
    json_object_set_new(o, "groups_per_cu", number(r->blocks));
    json_object_set_new(o, per_simd, number(r->waves_per_simd));
    json_object_set_new(o, "waves_per_simd_ceil", number(r->waves_per_simd_ceil));
    json_object_set_new(o, "waves_per_cu", number(r->warps));
    json_object_set_new(o, max, number(r->max_warps));
    json_object_set_new(o, "simds_used", number(r->simds_used));
    json_object_set_new(o, "allocated",
                        json_pack("{s:o, s:o, s:o, s:o}", "vgprs", number(r->registers_allocated),
                                  "sgprs", number(r->sgprs_allocated), "lds",
                                  number(r->shared_allocated), "waves",
                                  number(r->warps_per_block)));
    if (k->device->gcn.tipping_points)
        json_object_set_new(o, "lds_tipping_points", tipping_json(k));
}

json_t *cli_occupancy_json(cli *c, const occupancy_case *k, const hw_occupancy_report *rep)
{
    const hw_occupancy_result *r = &rep->result;
    json_t *o = json_pack("{s:s}", "device", k->device->name);
    if (k->kernel)
        json_object_set_new(o, "kernel", json_string(k->kernel));
    json_object_set_new(o, "query", query_json(k));
    json_object_set_new(o, "can_launch", json_boolean(r->blocks > 0));
    if (amd(k))
        amd_keys(o, k, rep);
    else
        nvidia_keys(o, k, rep);
    json_object_set_new(o, "occupancy", json_real(r->occupancy));
    json_object_set_new(o, "limiter",
                        json_string(r->blocks ? limit_key(amd(k), r->limiter) : "cannot launch"));
    json_object_set_new(o, "limiters", limiters_json(k, r));
    json_object_set_new(o, "limits", limits_json(k, r));
    if (r->blocks == 0)
        json_object_set_new(o, "reason", json_string(cli_occupancy_refusal_text(c, k, r->refusal)));
    json_object_set_new(o, "next_steps", steps_json(c, k, rep));
    json_object_set_new(o, "best_block_sizes", sizes_json(rep));
    json_object_set_new(o, "room",
                        json_pack("{s:o, s:o}", amd(k) ? "vgprs" : "registers",
                                  number(rep->registers_free), amd(k) ? "lds" : "shared_memory",
                                  number(rep->shared_free)));
    return o;
}
