/* SPDX-License-Identifier: Apache-2.0
 *
 * Sums: of launches, and of a launch from its counters. */
#include "model.h"

const hw_count_name hw_total_names[HW_TOTALS] = {
#define TOTAL(name, unit, sentence) { #name, unit, sentence },
#include "counts.def"
};
const hw_count_name hw_traffic_names[HW_TRAFFICS] = {
#define TRAFFIC(name, word, sentence) { #name, word, sentence },
#include "counts.def"
};
const hw_count_name hw_field_names[HW_FIELDS] = {
#define FIELD(name, unit, sentence) { #name, unit, sentence },
#include "counts.def"
};
const hw_count_name hw_cache_names[HW_CACHES] = {
#define CACHE(name, unit, sentence) { #name, unit, sentence },
#include "counts.def"
};

sums hw_model_sums_new(hw_arena *a, const hw_model *m)
{
    sums s = { .traffic = hw_arena_alloc_array(a, m->n, sizeof *s.traffic) };
    if (m->level == HW_MODEL_CACHES)
        s.cache = hw_arena_alloc_array(a, m->n, sizeof *s.cache);
    return s;
}

void hw_model_sums_add(const hw_model *m, sums *into, const sums *from)
{
    for (int i = 0; i < HW_TOTALS; i++)
        into->total[i] += from->total[i];
    for (uint32_t d = 0; d < m->n; d++) {
        for (int t = 0; t < HW_TRAFFICS; t++)
            for (int f = 0; f < HW_FIELDS; f++)
                into->traffic[d][t][f] += from->traffic[d][t][f];
        for (int i = 0; into->cache && from->cache && i < HW_CACHES; i++)
            into->cache[d][i] += from->cache[d][i];
    }
}

bool hw_model_sums_equal(const hw_model *m, const sums *a, const sums *b)
{
    bool caches =
        !a->cache || !b->cache || memcmp(a->cache, b->cache, m->n * sizeof *a->cache) == 0;
    return caches && memcmp(a->total, b->total, sizeof a->total) == 0 &&
           memcmp(a->traffic, b->traffic, m->n * sizeof *a->traffic) == 0;
}

/* ---- from counters ---- */

/* The totals an instruction's group is counted in: by warps, by threads. */
static const struct {
    uint8_t warps, threads;
} group_totals[HW_INST_GROUP_COUNT] = {
#define GROUP(group, name) \
    [HW_INST_GROUP_##group] = { HW_TOTAL_inst_##name, HW_TOTAL_thread_##name }
    GROUP(FP32, fp32),       GROUP(FP64, fp64),       GROUP(FP16, fp16),
    GROUP(SFU, special),     GROUP(TENSOR, matrix),   GROUP(INT, integer),
    GROUP(CONVERT, convert), GROUP(MOVE, integer),    GROUP(PREDICATE, integer),
    GROUP(LANES, exchange),  GROUP(CONTROL, control), GROUP(BARRIER, barrier),
    GROUP(FENCE, barrier),   GROUP(LOAD, memory),     GROUP(PARAM, memory),
    GROUP(STORE, memory),    GROUP(ATOMIC, atomic),   GROUP(TEXTURE, texture),
    GROUP(MISC, integer),
#undef GROUP
};

/* Totals of single classes: 0 is none, as no class is counted in the first total. */
static const uint8_t class_total[HW_INST_COUNT] = {
    [HW_INST_FADD] = HW_TOTAL_fadd, [HW_INST_FMUL] = HW_TOTAL_fmul, [HW_INST_FFMA] = HW_TOTAL_ffma,
    [HW_INST_DADD] = HW_TOTAL_dadd, [HW_INST_DMUL] = HW_TOTAL_dmul, [HW_INST_DFMA] = HW_TOTAL_dfma,
    [HW_INST_HADD] = HW_TOTAL_hadd, [HW_INST_HMUL] = HW_TOTAL_hmul, [HW_INST_HFMA] = HW_TOTAL_hfma,
};

static void count_one(launch *l, const hw_counters *c, uint32_t i)
{
    const hw_count_inst *inst = &c->table->insts[i];
    const hw_block_count *b = &c->blocks[inst->block];
    place_count *p = &l->insts[i];
    uint64_t *total = l->sums.total;
    unsigned family = hw_inst_class_of(inst->cls)->group;
    if (inst->part)
        return;
    p->warps = b->warps;
    p->lanes = b->lanes;
    p->on = inst->guard != HW_NO_INDEX   ? c->guard_lanes[inst->guard]
            : inst->taken != HW_NO_INDEX ? c->blocks[inst->taken].lanes
                                         : b->lanes;
    total[HW_TOTAL_inst] += p->warps;
    total[HW_TOTAL_thread_inst] += p->lanes;
    total[HW_TOTAL_thread_inst_on] += p->on;
    total[group_totals[family].warps] += p->warps;
    total[group_totals[family].threads] += p->on;
    if (class_total[inst->cls])
        total[class_total[inst->cls]] += p->on * inst->pairs;
    if (family == HW_INST_GROUP_BARRIER)
        total[HW_TOTAL_barriers] += p->warps;
    if (inst->branch != HW_NO_INDEX) {
        p->divergent = c->divergent[inst->branch];
        total[HW_TOTAL_branches] += p->warps;
        total[HW_TOTAL_branches_divergent] += p->divergent;
    }
}

void hw_model_count(launch *l, const hw_counters *c)
{
    for (uint32_t i = 0; i < c->table->n_insts; i++)
        count_one(l, c, i);
    l->sums.total[HW_TOTAL_blocks] = c->blocks_done;
    l->sums.total[HW_TOTAL_warps] = c->warps_launched;
    l->sums.total[HW_TOTAL_threads] = c->blocks_done * c->block[0] * c->block[1] * c->block[2];
}

int hw_model_traffic(hw_site_space space, const hw_site *s)
{
    static const int8_t special[][2] = {
        [HW_VIA_PLAIN] = { -1, -1 },
        [HW_VIA_COPY] = { HW_TRAFFIC_copy_ld, HW_TRAFFIC_copy_st },
        [HW_VIA_MATRIX] = { HW_TRAFFIC_matrix_ld, HW_TRAFFIC_matrix_st },
    };
    /* by space, and load, store, atomic */
    static const int8_t table[HW_SITE_SPACES][3] = {
        [HW_SITE_GENERIC] = { -1, -1, -1 },
        [HW_SITE_GLOBAL] = { HW_TRAFFIC_global_ld, HW_TRAFFIC_global_st, HW_TRAFFIC_global_at },
        [HW_SITE_SHARED] = { HW_TRAFFIC_shared_ld, HW_TRAFFIC_shared_st, HW_TRAFFIC_shared_at },
        [HW_SITE_LOCAL] = { HW_TRAFFIC_local_ld, HW_TRAFFIC_local_st, HW_TRAFFIC_local_st },
        [HW_SITE_CONST] = { HW_TRAFFIC_constant_ld, -1, -1 },
        [HW_SITE_TEXTURE] = { HW_TRAFFIC_texture_ld, -1, -1 },
        [HW_SITE_SURFACE] = { HW_TRAFFIC_surface_ld, HW_TRAFFIC_surface_st, -1 },
        [HW_SITE_BULK] = { HW_TRAFFIC_bulk_ld, HW_TRAFFIC_bulk_st, HW_TRAFFIC_bulk_at },
    };
    bool moves = s->kind == HW_SITE_LOAD || s->kind == HW_SITE_STORE;
    bool told_apart = s->via == HW_VIA_COPY || (s->via && space == HW_SITE_SHARED);
    if (moves && told_apart)
        return special[s->via][s->kind];
    return table[space][s->kind < HW_SITE_ATOMIC ? s->kind : HW_SITE_ATOMIC];
}
