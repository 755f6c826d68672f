/* SPDX-License-Identifier: Apache-2.0
 *
 * Each device's rules on one access: transactions, passes, constant requests, same-address steps.
 */
#include "model.h"

static void add(slot *s, unsigned field, uint64_t value, uint64_t times)
{
    s->field[field] += value * times;
}

static uint32_t next_lane(uint64_t *mask)
{
    uint32_t lane = (uint32_t)__builtin_ctzll(*mask);
    *mask &= *mask - 1;
    return lane;
}

/* Lanes on the address that most lanes have. */
static uint32_t most_on_one(const hw_access *a)
{
    uint32_t worst = 0;
    uint64_t left = a->mask;
    while (left) {
        uint64_t at = a->address[__builtin_ctzll(left)];
        uint32_t n = 0;
        for (uint64_t scan = left; scan;) {
            uint32_t lane = next_lane(&scan);
            if (a->address[lane] != at)
                continue;
            left &= ~(UINT64_C(1) << lane);
            n++;
        }
        worst = n > worst ? n : worst;
    }
    return worst;
}

/* ---- shared memory ---- */

/* Adds the distinct words that are asked of each bank; returns whether lanes share a word. */
static bool count_banks(const hw_device *d, const hw_access *a, slot *s, uint64_t times)
{
    uint64_t seen[HW_LANES_MAX * (WIDTH_MOST / 4 + 1)];
    uint32_t n = 0;
    bool shared = false;
    for (uint64_t mask = a->mask; mask;) {
        uint64_t at = a->address[next_lane(&mask)];
        uint32_t words = (uint32_t)((at & 3) + a->width + 3) / 4;
        for (uint32_t w = 0; w < words; w++) {
            uint64_t word = at / 4 + w;
            uint32_t i = n;
            while (i > 0 && seen[i - 1] != word)
                i--;
            shared |= i > 0;
            if (i > 0)
                continue;
            seen[n++] = word;
            s->bank[hw_bank_of(d, a, word * 4) % HW_LANES_MAX] += times;
        }
    }
    return shared;
}

/* How the banks serve a warp's accesses of 4 bytes, all lanes in one pass; MANY_RULES: in another way. */
static unsigned bank_rule(const hw_device *d, hw_access_kind kind, uint32_t bank_width)
{
    hw_conflict conflict = kind == HW_LOAD ? d->banks.read_conflicts : d->banks.write_conflicts;
    bool plain = d->banks.rule == HW_BANKS32_WARP || d->banks.rule == HW_GCN_BANKS32_HALFWAVE;
    bool dual = d->banks.rule == HW_BANKS32_DUAL_MODE && bank_width != 8;
    if (d->banks.banks != HW_WARP_LANES || d->banks.bank_width != 4 ||
        d->banks.lanes_per_pass != HW_WARP_LANES || !(plain || dual))
        return MANY_RULES;
    if (conflict == HW_CONFLICT_WORDS)
        return dual ? MANY_DUAL : MANY_WORDS;
    return plain && kind != HW_LOAD ? MANY_THREADS : MANY_RULES;
}

static void shared_access(const hw_device *d, const hw_access *a, slot *s, uint64_t times)
{
    hw_bank_result r;
    hw_bank_access(d, a, &r);
    add(s, HW_FIELD_requests, r.parts, times);
    add(s, HW_FIELD_passes, r.passes, times);
    add(s, HW_FIELD_ideal, r.ideal_passes, times);
    add(s, HW_FIELD_conflicted, r.conflicts ? 1 : 0, times);
    bool broadcast = count_banks(d, a, s, times) && a->kind == HW_LOAD && r.conflicts == 0;
    add(s, HW_FIELD_broadcasts, broadcast, times);
}

/* ---- global and local memory ---- */

enum { PARTITIONS_MOST = 64 };

/* Lanes that go to one partition of memory wait for one another there; what lies together in one piece
 * cannot be spread. Of made-up addresses the distances and the low 8 bits are right, so this is, too:
 * pieces are no smaller. */
static void add_partitions(const hw_device *d, const hw_transaction *list, uint32_t n, slot *s,
                           uint64_t times)
{
    uint64_t piece[HW_TRANSACTIONS_MAX];
    uint32_t on[PARTITIONS_MOST] = { 0 }, most = 0, pieces = 0, parts = d->memory.partitions;
    for (uint32_t i = 0; i < n; i++) {
        uint64_t at = list[i].address / d->memory.partition_bytes;
        uint32_t seen = pieces;
        while (seen > 0 && piece[seen - 1] != at)
            seen--;
        if (seen)
            continue;
        piece[pieces++] = at;
        most = ++on[at % parts] > most ? on[at % parts] : most;
    }
    add(s, HW_FIELD_camped, most, times);
    add(s, HW_FIELD_spread, (pieces + parts - 1) / parts, times);
}

static bool has_partitions(const hw_device *d)
{
    return d->memory.partitions && d->memory.partitions <= PARTITIONS_MOST &&
           d->memory.partition_bytes >= HW_ACCESS_PERIOD;
}

static void global_access(const hw_device *d, const hw_access *a, slot *s, uint64_t times)
{
    hw_coalesce_result r;
    hw_transaction list[HW_TRANSACTIONS_MAX];
    bool parts = has_partitions(d);
    hw_coalesce_access(d, a, &r, parts ? list : NULL);
    if (parts && r.transactions <= HW_TRANSACTIONS_MAX)
        add_partitions(d, list, r.transactions, s, times);
    add(s, HW_FIELD_requests, r.requests, times);
    add(s, HW_FIELD_transactions, r.transactions, times);
    add(s, HW_FIELD_sectors, r.sectors, times);
    add(s, HW_FIELD_lines, r.lines, times);
    add(s, HW_FIELD_moved, r.bytes_moved, times);
    add(s, HW_FIELD_least, (r.bytes_used + 31) / 32 * 32, times);
}

static void constant_access(const hw_device *d, const hw_access *a, slot *s, uint64_t times)
{
    uint32_t requests[2];
    uint32_t words = hw_constant_access(d, a, requests);
    add(s, HW_FIELD_requests, (requests[0] ? 1u : 0u) + (requests[1] ? 1u : 0u), times);
    add(s, HW_FIELD_transactions, words, times);
}

/* ---- strides ---- */

/* Whether the active lanes lie on a line; one lane alone lies on any. */
static bool on_line(const hw_access *a, int64_t *stride)
{
    uint64_t mask = a->mask;
    uint32_t first = next_lane(&mask);
    if (!mask)
        return false;
    uint32_t second = (uint32_t)__builtin_ctzll(mask);
    int64_t apart = (int64_t)(a->address[second] - a->address[first]);
    *stride = apart / (int64_t)(second - first);
    bool line = apart % (int64_t)(second - first) == 0;
    while (mask && line) {
        uint32_t lane = next_lane(&mask);
        line =
            a->address[lane] - a->address[first] == (uint64_t)(*stride * (int64_t)(lane - first));
    }
    return line;
}

void hw_model_see_stride(const hw_access_told *t, slot *s)
{
    const hw_access a = { .address = t->address, .mask = t->lanes, .lanes = HW_WARP_LANES };
    int64_t stride = 0;
    if (s->strided == STRIDE_MIXED || !(a.mask & (a.mask - 1)))
        return;
    bool line = on_line(&a, &stride);
    if (s->strided == STRIDE_NONE && line)
        s->stride = stride;
    s->strided = line && s->stride == stride ? STRIDE_ONE : STRIDE_MIXED;
}

/* ---- all devices ---- */

typedef void rule(const hw_device *d, const hw_access *a, slot *s, uint64_t times);

static rule *const rules[HW_SITE_SPACES] = {
#define PART(space, function, sentence) [HW_SITE_##space] = function,
#include "parts.def"
};

static const hw_access_kind kinds[] = {
    [HW_SITE_LOAD] = HW_LOAD,
    [HW_SITE_STORE] = HW_STORE,
    [HW_SITE_ATOMIC] = HW_ATOMIC,
    [HW_SITE_REDUCTION] = HW_ATOMIC,
};

static void one(const hw_model *m, const hw_access_told *t, const hw_access *a, slot *slots,
                bool first)
{
    uint32_t serial = a->kind == HW_ATOMIC ? most_on_one(a) : 0;
    uint32_t lanes = (uint32_t)__builtin_popcountll(a->mask);
    for (uint32_t d = 0; d < m->n; d++) {
        slot *s = &slots[d];
        add(s, HW_FIELD_accesses, first, t->times);
        add(s, HW_FIELD_lanes, first ? lanes : 0, t->times);
        add(s, HW_FIELD_bytes, (uint64_t)lanes * a->width, t->times);
        add(s, HW_FIELD_serial, serial, t->times);
        rules[t->space](m->devices[d], a, s, t->times);
    }
}

void hw_model_rules(const hw_model *m, uint32_t bank_width, const hw_access_told *t,
                    const hw_site *s, slot *slots)
{
    uint64_t moved[HW_WARP_LANES];
    if (t->space >= HW_SITE_SPACES || !rules[t->space] || t->lanes == 0)
        return;
    hw_access a = { .address = t->address,
                    .mask = t->lanes,
                    .lanes = HW_WARP_LANES,
                    .width = s->bytes < WIDTH_MOST ? s->bytes : WIDTH_MOST,
                    .kind = kinds[s->kind & 3],
                    .bypass_l1 = s->bypass_l1,
                    .bank_width = bank_width };
    one(m, t, &a, slots, !(s->part && t->space == HW_SITE_SHARED));
    for (uint32_t done = WIDTH_MOST; done < s->bytes; done += WIDTH_MOST) {
        for (int lane = 0; lane < HW_WARP_LANES; lane++)
            moved[lane] = t->address[lane] + done;
        a.address = moved;
        one(m, t, &a, slots, false);
    }
}

void hw_model_texels(const hw_model *m, const hw_access_told *t, slot *slots)
{
    uint64_t asked = (uint32_t)__builtin_popcount(t->asked_lanes);
    uint64_t sectors = (uint32_t)__builtin_popcount(t->lanes);
    for (uint32_t d = 0; d < m->n; d++) {
        slot *s = &slots[d];
        add(s, HW_FIELD_accesses, asked != 0, 1);
        add(s, HW_FIELD_requests, asked != 0, 1);
        add(s, HW_FIELD_lanes, asked, 1);
        add(s, HW_FIELD_bytes, asked, t->asked_bytes);
        add(s, HW_FIELD_transactions, sectors, 1);
        add(s, HW_FIELD_sectors, sectors, 1);
        add(s, HW_FIELD_moved, sectors, 32);
        /* how near texels are is up to the picture */
        add(s, HW_FIELD_least,
            t->space == HW_SITE_BULK ? (asked ? (t->asked_bytes + 31) / 32 : 0) : sectors, 32);
    }
}

/* ---- gists ---- */

/* A request a warp, and distinct sectors or lines for transactions. */
static bool plain_global(const hw_device *d, const hw_site *s)
{
    uint32_t sector = d->global.sector, line = d->global.line;
    switch (d->global.rule) {
    case HW_SECTORS32_WARP:
        return sector == 32 && line == 128;
    case HW_SECTORS32_SPLIT8:
        return sector == 32 && line == 128;
    case HW_LINES128_OR_SECTORS32: /* wider ones are split */
        return sector == 32 && line == 128 && s->bytes <= 4;
    case HW_GCN_QUADS_64B:
        return sector == line && (line == 64 || line == 128);
    default:
        return false;
    }
}

/* The bits that a device wants of a site's accesses; false: it wants more than there is. */
static bool device_wants(const hw_device *d, hw_site_space space, const hw_site *s,
                         uint32_t bank_width, unsigned *wants)
{
    if (space == HW_SITE_SHARED) {
        unsigned way = bank_rule(d, kinds[s->kind & 3], bank_width);
        *wants |= way == MANY_RULES || way == MANY_WORDS ? 0 : (unsigned)MANY_RULE << way;
        return way != MANY_RULES;
    }
    *wants |= d->global.line == 64 ? MANY_HALVES : 0;
    *wants |= d->global.rule == HW_SECTORS32_SPLIT8 ? MANY_SPLIT : 0;
    return plain_global(d, s) && !has_partitions(d);
}

bool hw_model_gist_does(const hw_model *m, uint32_t bank_width, hw_site_space space,
                        const hw_site *s, unsigned *wants)
{
    bool does = hw_model_many_able() && s->bytes && (s->bytes & (s->bytes - 1)) == 0 &&
                s->bytes <= WIDTH_MOST;
    *wants = kinds[s->kind & 3] == HW_ATOMIC ? MANY_ALIKE : 0;
    if (space == HW_SITE_SHARED)
        does = does && s->bytes == 4;
    else
        does = does && (space == HW_SITE_GLOBAL || space == HW_SITE_LOCAL);
    for (uint32_t d = 0; does && d < m->n; d++)
        does = device_wants(m->devices[d], space, s, bank_width, wants);
    *wants |= space == HW_SITE_SHARED ? MANY_BANKS : 0;
    return does;
}

static uint64_t columns(const uint32_t *x)
{
    uint64_t n = 0;
    for (int i = 0; i < MANY; i++)
        n += x[i];
    return n;
}

void hw_model_gist_gather(gist *g)
{
    many_sums *s = &g->recent;
    g->accesses += s->accesses;
    for (int r = 0; r < MANY_RULES; r++) {
        g->conflicted[r] += s->conflicted[r];
        g->shared[r] += s->shared[r];
        g->crowd[r] += columns(s->crowd[r]);
    }
    g->parts += columns(s->parts);
    g->part_sectors += columns(s->part_sectors);
    g->lanes += columns(s->lanes);
    g->sectors += columns(s->sectors);
    g->lines += columns(s->lines);
    g->halves += columns(s->halves);
    g->alike += columns(s->alike);
    g->filled += columns(s->filled);
    for (int k = 0; k < 32; k++)
        for (int i = 0; i < MANY; i++)
            for (uint32_t left = s->plane[k][i]; left; left &= left - 1)
                g->bank[__builtin_ctz(left)] += UINT64_C(1) << k;
    memset(s, 0, sizeof *s);
}

static void settle_shared(const gist *g, slot *s, unsigned way, bool load)
{
    if (way == MANY_RULES)
        return;
    for (int b = 0; b < HW_WARP_LANES; b++)
        s->bank[b] += g->bank[b];
    add(s, HW_FIELD_requests, g->accesses, 1);
    add(s, HW_FIELD_passes, g->crowd[way], 1);
    add(s, HW_FIELD_ideal, g->accesses, 1);
    add(s, HW_FIELD_conflicted, g->conflicted[way], 1);
    add(s, HW_FIELD_broadcasts, load ? g->shared[way] : 0, 1);
}

static void settle_global(const hw_device *d, const gist *g, slot *s, const hw_site *site)
{
    uint64_t lines = d->global.line == 64 ? g->halves : g->lines;
    bool l1 = site->kind == HW_SITE_LOAD && !site->bypass_l1 && d->caches.l1_caches_global;
    bool whole =
        d->global.rule == HW_GCN_QUADS_64B || (d->global.rule == HW_LINES128_OR_SECTORS32 && l1);
    bool split = d->global.rule == HW_SECTORS32_SPLIT8;
    uint64_t transactions = whole ? lines : split ? g->part_sectors : g->sectors;
    add(s, HW_FIELD_requests, split ? g->parts : g->accesses, 1);
    add(s, HW_FIELD_transactions, transactions, 1);
    add(s, HW_FIELD_sectors, g->sectors, 1);
    add(s, HW_FIELD_lines, lines, 1);
    add(s, HW_FIELD_moved, transactions, whole ? d->global.line : 32);
    add(s, HW_FIELD_least, g->filled, 32);
}

void hw_model_gist_settle(const hw_model *m, uint32_t bank_width, hw_site_space space,
                          const hw_site *s, slot *slots)
{
    gist *g = slots->gist;
    bool load = s->kind == HW_SITE_LOAD, atomic = kinds[s->kind & 3] == HW_ATOMIC;
    bool part = s->part && space == HW_SITE_SHARED;
    if (g)
        hw_model_gist_gather(g);
    for (uint32_t d = 0; g && d < m->n; d++) {
        add(&slots[d], HW_FIELD_accesses, part ? 0 : g->accesses, 1);
        add(&slots[d], HW_FIELD_lanes, part ? 0 : g->lanes, 1);
        add(&slots[d], HW_FIELD_bytes, g->lanes, s->bytes);
        add(&slots[d], HW_FIELD_serial, atomic ? g->alike : 0, 1);
        if (space == HW_SITE_SHARED)
            settle_shared(g, &slots[d], bank_rule(m->devices[d], kinds[s->kind & 3], bank_width),
                          load);
        else
            settle_global(m->devices[d], g, &slots[d], s);
    }
}
