/* SPDX-License-Identifier: Apache-2.0
 *
 * One launch's occupancy as text for people. */
#include "occupancy.h"

#include <inttypes.h>

static bool amd(const occupancy_case *k)
{
    return k->device->vendor == HW_VENDOR_AMD;
}

/* "1 block", "3 blocks"; groups on AMD. */
static const char *blocks_text(cli *c, const hw_device *d, uint32_t n)
{
    const char *noun = d->vendor == HW_VENDOR_AMD ? "group" : "block";
    return hw_arena_printf(c->arena, "%" PRIu32 " %s%s", n, noun, n == 1 ? "" : "s");
}

const char *cli_occupancy_query_text(cli *c, const occupancy_case *k)
{
    const hw_occupancy_query *q = &k->query;
    if (amd(k))
        return hw_arena_printf(c->arena,
                               "%" PRIu32 " threads, %" PRIu32 " VGPRs, %" PRIu32 " SGPRs, %" PRIu64
                               " bytes of LDS",
                               q->threads, q->vgprs, q->sgprs, q->lds);
    const char *dynamic =
        q->shared_dynamic ? hw_arena_printf(c->arena, " and %" PRIu64 " dynamic", q->shared_dynamic)
                          : "";
    const char *from = k->regs_from ? hw_arena_printf(c->arena, " (%s)", k->regs_from) : "";
    return hw_arena_printf(c->arena,
                           "%" PRIu32 " threads, %" PRIu32 " registers%s, %" PRIu64
                           "%s bytes of shared memory%s",
                           q->threads, q->registers, from, q->shared_static, dynamic,
                           q->shared_optin ? ", opted in" : "");
}

const char *cli_occupancy_refusal_text(cli *c, const occupancy_case *k, hw_refusal why)
{
    const hw_device *d = k->device;
    const hw_occupancy_query *q = &k->query;
    uint64_t shared = amd(k) ? q->lds : q->shared_static + q->shared_dynamic;
    const struct {
        uint64_t asked, most;
        const char *what;
    } numbers[HW_REFUSED_COUNT] = {
        [HW_REFUSED_NO_THREADS] = { q->threads, d->compute.max_threads_per_block, "threads" },
        [HW_REFUSED_THREADS] = { q->threads, d->compute.max_threads_per_block, "threads" },
        [HW_REFUSED_REGISTERS_THREAD] = { q->registers, d->occupancy.max_registers_per_thread,
                                          "registers" },
        [HW_REFUSED_REGISTERS_BLOCK] = { 0, d->occupancy.registers_per_block, "registers a block" },
        [HW_REFUSED_SHARED_BLOCK] = { shared,
                                      amd(k) ? d->gcn.lds_max_per_group
                                      : d->occupancy.shared_per_block_optin
                                          ? d->occupancy.shared_per_block_optin
                                          : d->occupancy.shared_per_block,
                                      amd(k) ? "bytes of LDS a group"
                                             : "bytes of shared memory a block" },
        [HW_REFUSED_SHARED_OPTIN] = { shared, d->occupancy.shared_per_block,
                                      "bytes of shared memory a block" },
        [HW_REFUSED_VGPRS] = { q->vgprs, d->gcn.max_vgprs, "VGPRs" },
        [HW_REFUSED_SGPRS] = { q->sgprs, d->gcn.max_sgprs, "SGPRs" },
    };
    const char *text = hw_refusal_text(why);
    if (!numbers[why].what)
        return hw_arena_printf(c->arena, "%s: %s", d->name, text);
    const char *asked =
        numbers[why].asked || why == HW_REFUSED_NO_THREADS
            ? hw_arena_printf(c->arena, "%" PRIu64 " %s: ", numbers[why].asked, numbers[why].what)
            : "";
    return hw_arena_printf(c->arena, "%s: %s%s (at most %" PRIu64 ")", d->name, asked, text,
                           numbers[why].most);
}

const char *cli_occupancy_step_text(cli *c, const hw_device *d, const hw_occupancy_step *s)
{
    static const char *const nouns[HW_LIMIT_COUNT] = {
        [HW_LIMIT_REGISTERS] = "register", [HW_LIMIT_SHARED] = "byte of shared memory",
        [HW_LIMIT_BARRIERS] = "barrier",   [HW_LIMIT_VGPR] = "VGPR",
        [HW_LIMIT_SGPR] = "SGPR",          [HW_LIMIT_LDS] = "byte of LDS",
    };
    static const char *const plurals[HW_LIMIT_COUNT] = {
        [HW_LIMIT_REGISTERS] = "registers", [HW_LIMIT_SHARED] = "bytes of shared memory",
        [HW_LIMIT_BARRIERS] = "barriers",   [HW_LIMIT_VGPR] = "VGPRs",
        [HW_LIMIT_SGPR] = "SGPRs",          [HW_LIMIT_LDS] = "bytes of LDS",
    };
    const char *gives =
        hw_arena_printf(c->arena, "gives %s, %" PRIu32 " %s", blocks_text(c, d, s->blocks),
                        s->warps, d->vendor == HW_VENDOR_AMD ? "waves" : "warps");
    if (s->resource == HW_LIMIT_THREADS)
        return hw_arena_printf(c->arena, "%" PRIu64 " threads a block %s", s->then, gives);
    uint64_t fewer = s->now - s->then;
    return hw_arena_printf(c->arena, "%" PRIu64 " %s fewer (%" PRIu64 ") %s", fewer,
                           fewer == 1 ? nouns[s->resource] : plurals[s->resource], s->then, gives);
}

/* ---- the limits ---- */

static const char *because(cli *c, const occupancy_case *k, const hw_occupancy_result *r,
                           hw_limit limit)
{
    const hw_device *d = k->device;
    switch (limit) {
    case HW_LIMIT_WARPS:
        return hw_arena_printf(c->arena, "%" PRIu32 " of %" PRIu32 " %s a %s", r->warps_per_block,
                               r->max_warps, amd(k) ? "waves" : "warps",
                               amd(k) ? "group" : "block");
    case HW_LIMIT_REGISTERS:
        return hw_arena_printf(c->arena, "%" PRIu32 " of %" PRIu32 " registers a block",
                               r->registers_allocated, d->occupancy.registers_per_sm);
    case HW_LIMIT_SHARED:
        return hw_arena_printf(c->arena, "%" PRIu64 " of %" PRIu64 " bytes a block%s",
                               r->shared_allocated, r->shared_config,
                               d->occupancy.shared_reserved_per_block
                                   ? hw_arena_printf(c->arena, ", %" PRIu32 " reserved",
                                                     d->occupancy.shared_reserved_per_block)
                                   : "");
    case HW_LIMIT_BARRIERS:
        return hw_arena_printf(c->arena, "%" PRIu32 " of %" PRIu32 " barriers", k->query.barriers,
                               d->occupancy.barriers_per_sm);
    case HW_LIMIT_VIRTUAL:
        return hw_arena_printf(c->arena, "%" PRIu32 " of %" PRIu32, k->query.virtual_resources,
                               d->occupancy.virtual_resources_per_sm);
    case HW_LIMIT_VGPR:
        return hw_arena_printf(c->arena, "%" PRIu32 " of %" PRIu32 " VGPRs a wave",
                               r->registers_allocated, d->gcn.vgprs_per_simd);
    case HW_LIMIT_SGPR:
        return hw_arena_printf(c->arena, "%" PRIu32 " of %" PRIu32 " SGPRs a wave",
                               r->sgprs_allocated, d->gcn.sgprs_per_simd);
    case HW_LIMIT_LDS:
        return hw_arena_printf(c->arena, "%" PRIu64 " of %" PRIu32 " bytes a group",
                               r->shared_allocated, d->gcn.lds_bytes);
    default:
        return "";
    }
}

static void print_limits(cli *c, const occupancy_case *k, const hw_occupancy_result *r)
{
    static const hw_limit order[] = { HW_LIMIT_WARPS,  HW_LIMIT_REGISTERS, HW_LIMIT_VGPR,
                                      HW_LIMIT_SGPR,   HW_LIMIT_SHARED,    HW_LIMIT_LDS,
                                      HW_LIMIT_BLOCKS, HW_LIMIT_BARRIERS,  HW_LIMIT_VIRTUAL,
                                      HW_LIMIT_THREADS };
    cli_print(c, "\n");
    for (size_t i = 0; i < HW_COUNTOF(order); i++) {
        hw_limit limit = order[i];
        bool it = r->limiters >> limit & 1 && limit != HW_LIMIT_THREADS;
        if (r->limits[limit] == HW_UNLIMITED)
            continue;
        const char *name = amd(k) && limit == HW_LIMIT_WARPS    ? "waves"
                           : amd(k) && limit == HW_LIMIT_BLOCKS ? "groups"
                                                                : hw_limit_name(limit);
        cli_print(c, "  %s%-18s %4" PRIu32 "  %s%s%s\n", it ? cli_style_of(c, STYLE_WARN) : "",
                  name, r->limits[limit], it ? "<- limits  " : "", because(c, k, r, limit),
                  it ? cli_style_of(c, STYLE_PLAIN) : "");
    }
}

/* ---- advice ---- */

static void print_steps(cli *c, const occupancy_case *k, const hw_occupancy_report *rep)
{
    if (rep->step_count)
        cli_print(c, "\nnext step up\n");
    for (uint32_t i = 0; i < rep->step_count; i++)
        cli_print(c, "  %s\n", cli_occupancy_step_text(c, k->device, &rep->steps[i]));
    if (rep->result.blocks && (rep->registers_free || rep->shared_free))
        cli_print(c, "\nroom at the same occupancy: %" PRIu32 " %s, %" PRIu64 " bytes of %s\n",
                  rep->registers_free, amd(k) ? "VGPRs" : "registers", rep->shared_free,
                  amd(k) ? "LDS" : "shared memory");
}

static void print_best(cli *c, const occupancy_case *k, const hw_occupancy_report *rep)
{
    if (!rep->best_count)
        return;
    cli_print(c, "best block sizes (%" PRIu32 " %s):", rep->best_warps, amd(k) ? "waves" : "warps");
    for (uint32_t i = 0; i < rep->best_count; i++)
        cli_print(c, " %" PRIu32, rep->best_sizes[i]);
    cli_print(c, "\n");
}

static void print_carveout(cli *c, const occupancy_case *k, const hw_occupancy_report *rep)
{
    const hw_device *d = k->device;
    if (amd(k) || d->occupancy.shared_config_kind == HW_CONFIG_FIXED || !rep->result.blocks)
        return;
    uint64_t percent = rep->config_enough * 100 / d->occupancy.shared_per_sm;
    cli_print(c,
              "carve-out: %" PRIu64 " KB of shared memory hold these blocks (%" PRIu64
              " %% of %" PRIu32 " KB); the rest is cache\n",
              rep->config_enough / 1024, percent, d->occupancy.shared_per_sm / 1024);
}

/* Waves of the quick reference's formula beside those that whole groups reach, and its advice. */
static void print_gcn(cli *c, const occupancy_case *k, const hw_occupancy_result *r)
{
    const hw_device *d = k->device;
    if (r->simds_used < d->gcn.simds_per_unit)
        cli_print(c, "%swarning: %" PRIu32 " of %" PRIu32 " SIMDs stay unused%s\n",
                  cli_style_of(c, STYLE_WARN), d->gcn.simds_per_unit - r->simds_used,
                  d->gcn.simds_per_unit, cli_style_of(c, STYLE_PLAIN));
    if (d->gcn.advised_waves_least && r->waves_per_simd < d->gcn.advised_waves_better)
        cli_print(c, "%sadvice: have at least %" PRIu32 " waves per SIMD, better %" PRIu32 "%s\n",
                  cli_style_of(c, STYLE_WARN), d->gcn.advised_waves_least,
                  d->gcn.advised_waves_better, cli_style_of(c, STYLE_PLAIN));
    if (!d->gcn.tipping_points || !k->query.lds)
        return;
    for (uint32_t waves = d->gcn.max_waves_per_simd; waves > 0; waves--) {
        uint32_t tipping, whole;
        hw_lds_tipping_point(d, k->query.threads, waves, &tipping, &whole);
        if (k->query.lds > tipping)
            continue;
        cli_print(c,
                  "LDS tipping point: up to %" PRIu32 " bytes are said to allow %" PRIu32
                  " waves per SIMD; whole groups reach %" PRIu32 " waves of the %s (%s)\n",
                  tipping, waves, r->warps, d->gcn.unit,
                  whole
                      ? hw_arena_printf(c->arena, "they reach %" PRIu32 " up to %" PRIu32 " bytes",
                                        waves, whole)
                      : "no size reaches it");
        return;
    }
}

void cli_occupancy_text(cli *c, const occupancy_case *k, const hw_occupancy_report *rep)
{
    const hw_occupancy_result *r = &rep->result;
    const hw_device *d = k->device;
    if (k->kernel)
        cli_print(c, "%s%s%s\n", cli_style_of(c, STYLE_BOLD), k->kernel,
                  cli_style_of(c, STYLE_PLAIN));
    cli_print(c, "%s: %s\n%s\n\n", d->name, d->title, cli_occupancy_query_text(c, k));
    if (r->blocks == 0) {
        cli_print(c, "  %scannot launch%s: %s\n", cli_style_of(c, STYLE_BAD),
                  cli_style_of(c, STYLE_PLAIN), cli_occupancy_refusal_text(c, k, r->refusal));
    } else {
        cli_print(c, "  %s%s, %" PRIu32 " of %" PRIu32 " %s, %.2f %% occupancy%s\n",
                  cli_style_of(c, STYLE_BOLD), blocks_text(c, d, r->blocks), r->warps, r->max_warps,
                  amd(k) ? "waves" : "warps", r->occupancy * 100, cli_style_of(c, STYLE_PLAIN));
        if (amd(k))
            cli_print(c, "  %" PRIu32 "%s waves per SIMD, %" PRIu32 " waves per %s\n",
                      r->waves_per_simd,
                      r->waves_per_simd_ceil != r->waves_per_simd
                          ? hw_arena_printf(c->arena, " to %" PRIu32, r->waves_per_simd_ceil)
                          : "",
                      r->warps, d->gcn.unit);
    }
    print_limits(c, k, r);
    print_steps(c, k, rep);
    cli_print(c, "\n");
    print_best(c, k, rep);
    print_carveout(c, k, rep);
    if (amd(k) && r->blocks)
        print_gcn(c, k, r);
    const char *note = amd(k) ? d->gcn.note : d->occupancy.note;
    if (note)
        cli_print(c, "%snote: %s%s\n", cli_style_of(c, STYLE_DIM), note,
                  cli_style_of(c, STYLE_PLAIN));
    cli_print(c, "\n");
}
