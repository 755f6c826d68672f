/* SPDX-License-Identifier: Apache-2.0
 *
 * One warp's access to shared memory (LDS), the constant cache or global memory, by the device's
 * own rule. Called once per access by profilers: nothing is allocated, and the work is a few
 * operations a lane. */
#include "hw_device.h"

#define HALF 16

/* Widths, lines and numbers of banks are powers of two (device.def says so): division is a shift. */
static uint32_t shift_of(uint32_t power_of_two)
{
    return (uint32_t)__builtin_ctz(power_of_two);
}

static uint32_t width_of(const hw_access *a)
{
    return a->width < 16 ? a->width : 16;
}

static uint32_t lanes_of(const hw_access *a)
{
    return a->lanes < HW_LANES_MAX ? a->lanes : HW_LANES_MAX;
}

/* Bits first .. first + count - 1 of the mask. */
static uint64_t part_mask(const hw_access *a, uint32_t first, uint32_t count)
{
    uint64_t ones = count >= 64 ? UINT64_MAX : (UINT64_C(1) << count) - 1;
    return a->mask & ones << first;
}

static uint32_t next_lane(uint64_t *mask)
{
    uint32_t lane = (uint32_t)__builtin_ctzll(*mask);
    *mask &= *mask - 1;
    return lane;
}

/* ---- sets of a few addresses ---- */

#define SET_MAX 512 /* 64 lanes times at most 5 words */

/* Keys in order of arrival. Lanes mostly come in ascending order, and then nothing is searched. */
typedef struct set {
    uint32_t count;
    uint64_t most; /* the largest key */
    uint64_t key[SET_MAX];
} set;

static void set_init(set *s)
{
    s->count = 0;
}

/* The index of key, which is added if it is new: then the index is the old count. */
static uint32_t set_add(set *s, uint64_t key)
{
    uint32_t i = s->count;
    if (i == 0 || key > s->most) {
        s->most = key;
    } else {
        while (i > 0 && s->key[i - 1] != key)
            i--;
        if (i > 0)
            return i - 1;
        i = s->count;
    }
    s->key[i] = key;
    s->count++;
    return i;
}

/* ---- banks ---- */

#define BANKS_MAX 64
#define ROWS_MAX  64 /* rows of a bank that are told apart: more than any access of 32 banks has */

static uint32_t bank_width(const hw_device *d, const hw_access *a)
{
    bool both = d->banks.rule == HW_BANKS32_DUAL_MODE;
    return both && a->bank_width == 8 ? 8 : d->banks.bank_width;
}

/* Where an address lies: bank = address >> bank_shift & bank_mask, row = address >> row_shift. Lanes on one bank share an
 * access of it if their rows are equal: the bank's word, or on devices with two modes, in the 32-bit mode, the aligned
 * segment of twice as many words as there are banks. */
typedef struct geometry {
    uint32_t bank_shift, bank_mask, row_shift;
} geometry;

static geometry geometry_of(const hw_device *d, const hw_access *a)
{
    uint32_t width = bank_width(d, a), shift = shift_of(width);
    bool segments = d->banks.rule == HW_BANKS32_DUAL_MODE && width == 4;
    return (geometry){ .bank_shift = shift,
                       .bank_mask = d->banks.banks - 1,
                       .row_shift = segments ? 3 + shift_of(d->banks.banks) : shift };
}

uint32_t hw_bank_of(const hw_device *d, const hw_access *a, uint64_t address)
{
    geometry g = geometry_of(d, a);
    return (uint32_t)(address >> g.bank_shift) & g.bank_mask;
}

uint64_t hw_bank_row_of(const hw_device *d, const hw_access *a, uint64_t address)
{
    return address >> geometry_of(d, a).row_shift;
}

static bool counts_threads(const hw_device *d, const hw_access *a)
{
    if (a->kind != HW_LOAD)
        return d->banks.write_conflicts == HW_CONFLICT_THREADS;
    return a->read_conflicts ? a->read_conflicts > 0
                             : d->banks.read_conflicts == HW_CONFLICT_THREADS;
}

typedef struct bank_load {
    uint16_t words[BANKS_MAX];   /* distinct words of each bank */
    uint16_t threads[BANKS_MAX]; /* lanes on each bank */
    uint64_t row[BANKS_MAX][ROWS_MAX];
} bank_load;

static inline void load_word(bank_load *load, geometry g, uint64_t address)
{
    uint32_t bank = (uint32_t)(address >> g.bank_shift) & g.bank_mask, n = load->words[bank];
    uint64_t row = address >> g.row_shift;
    load->threads[bank]++;
    for (uint32_t i = n < ROWS_MAX ? n : ROWS_MAX; i > 0; i--)
        if (load->row[bank][i - 1] == row)
            return;
    if (n < ROWS_MAX)
        load->row[bank][n] = row;
    load->words[bank]++;
}

static void load_banks(const hw_device *d, const hw_access *a, uint64_t mask, bank_load *load)
{
    geometry g = geometry_of(d, a);
    uint32_t width = width_of(a);
    memset(load->words, 0, sizeof load->words);
    memset(load->threads, 0, sizeof load->threads);
    while (mask) {
        uint64_t at = a->address[next_lane(&mask)];
        uint32_t words = (uint32_t)((at & 3) + width + 3) / 4; /* a count: at + width may wrap */
        for (uint32_t w = 0; w < words; w++)
            load_word(load, g, at + w * UINT64_C(4));
    }
}

/* Passes of lanes that are served together: the worst bank's. */
static uint32_t together(const hw_device *d, const hw_access *a, uint64_t mask)
{
    bank_load load;
    load_banks(d, a, mask, &load);
    bool threads = counts_threads(d, a), broadcast = a->kind == HW_LOAD;
    uint32_t worst = 0;
    for (uint32_t b = 0; b < d->banks.banks && b < BANKS_MAX; b++) {
        bool one_word = broadcast && load.words[b] == 1;
        uint32_t passes = threads && !one_word ? load.threads[b] : load.words[b];
        worst = passes > worst ? passes : worst;
    }
    return worst;
}

static void add_part(hw_bank_result *r, uint32_t passes, uint32_t ideal)
{
    if (passes == 0 || r->parts == HW_PARTS_MAX)
        return;
    r->part_passes[r->parts++] = passes;
    r->passes += passes;
    r->ideal_passes += ideal;
    r->degree = passes > r->degree ? passes : r->degree;
}

/* 16 banks: each step broadcasts one word, that of the lowest lane left, and serves one lane of
 * every other bank. */
static uint32_t steps16(const hw_device *d, const hw_access *a, uint64_t mask,
                        uint32_t word_of_access)
{
    uint32_t steps = 0;
    while (mask) {
        uint64_t served = 0, scan = mask;
        uint64_t busy = 0;
        uint64_t word = a->address[__builtin_ctzll(mask)] / 4 + word_of_access;
        while (scan) {
            uint32_t lane = next_lane(&scan);
            uint64_t w = a->address[lane] / 4 + word_of_access;
            uint64_t bit = UINT64_C(1) << (w & (d->banks.banks - 1));
            if (w == word || (!(busy & bit) && ((w ^ word) & (d->banks.banks - 1)))) {
                served |= UINT64_C(1) << lane;
                busy |= bit;
            }
        }
        mask &= ~served;
        steps++;
    }
    return steps;
}

static void banks16(const hw_device *d, const hw_access *a, hw_bank_result *r)
{
    uint32_t words = width_of(a) > 4 ? (width_of(a) + 3) / 4 : 1;
    for (uint32_t first = 0; first < lanes_of(a); first += HALF)
        for (uint32_t w = 0; w < words; w++)
            add_part(r, steps16(d, a, part_mask(a, first, HALF), w), 1);
}

uint32_t hw_bank_lanes(const hw_device *d, uint32_t width)
{
    return width <= 4   ? d->banks.lanes_per_pass
           : width <= 8 ? d->banks.lanes_per_pass_64
                        : d->banks.lanes_per_pass_128;
}

void hw_bank_access(const hw_device *d, const hw_access *a, hw_bank_result *r)
{
    *r = (hw_bank_result){ .parts = 0 };
    if (d->banks.rule == HW_BANKS16_HALFWARP) {
        banks16(d, a, r);
    } else {
        uint32_t count = hw_bank_lanes(d, width_of(a));
        uint32_t extra = width_of(a) > 8 ? d->banks.extra_passes_128 : 0;
        for (uint32_t first = 0; first < lanes_of(a); first += count) {
            uint64_t mask = part_mask(a, first, count);
            add_part(r, mask ? together(d, a, mask) + extra : 0, 1);
        }
    }
    r->conflicts = r->passes - r->ideal_passes;
}

/* ---- constant cache ---- */

static uint32_t distinct_words(const hw_access *a, uint64_t mask)
{
    set words;
    set_init(&words);
    while (mask)
        set_add(&words, a->address[next_lane(&mask)] / 4);
    return words.count;
}

uint32_t hw_constant_access(const hw_device *d, const hw_access *a, uint32_t requests[2])
{
    requests[1] = 0;
    if (d->global.constant_rule == HW_CONSTANT_HALFWARP) {
        requests[0] = distinct_words(a, part_mask(a, 0, HALF));
        requests[1] = distinct_words(a, part_mask(a, HALF, HALF));
    } else {
        requests[0] = distinct_words(a, a->mask & part_mask(a, 0, lanes_of(a)));
    }
    return requests[0] + requests[1];
}

/* ---- global memory ---- */

typedef struct counter {
    const hw_access *access;
    hw_coalesce_result *r;
    hw_transaction *list;
} counter;

static void emit(counter *c, uint64_t address, uint32_t bytes, uint64_t lanes)
{
    if (c->list && c->r->transactions < HW_TRANSACTIONS_MAX)
        c->list[c->r->transactions] = (hw_transaction){
            .address = address, .bytes = bytes, .part = c->r->requests, .lanes = lanes
        };
    c->r->transactions++;
    c->r->bytes_moved += bytes;
}

/* Distinct aligned segments of so many bytes among the lanes, in order of first use. */
static void emit_segments(counter *c, uint64_t mask, uint32_t bytes)
{
    const hw_access *a = c->access;
    set seen;
    uint64_t lanes[SET_MAX];
    uint32_t shift = shift_of(bytes);
    set_init(&seen);
    while (mask) {
        uint32_t lane = next_lane(&mask);
        uint64_t last = (a->address[lane] + width_of(a) - 1) >> shift;
        for (uint64_t s = a->address[lane] >> shift; s <= last; s++) {
            uint32_t before = seen.count, at = set_add(&seen, s);
            lanes[at] = (at == before ? 0 : lanes[at]) | UINT64_C(1) << lane;
        }
    }
    for (uint32_t i = 0; i < seen.count; i++)
        emit(c, seen.key[i] * bytes, bytes, lanes[i]);
}

/* 1.0 and 1.1: lane k of a half-warp must access word k of an aligned segment, or every lane goes
 * alone. */
static void strict_half(counter *c, const hw_device *d, uint32_t first, uint64_t mask)
{
    const hw_access *a = c->access;
    uint32_t size = width_of(a), low = (uint32_t)__builtin_ctzll(mask);
    uint64_t base = a->address[low] - (uint64_t)(low - first) * size;
    bool together = (size == 4 || size == 8 || size == 16) && base % (size == 4 ? 64 : 128) == 0;
    for (uint64_t m = mask; m && together;) {
        uint32_t lane = next_lane(&m);
        together = a->address[lane] == base + (uint64_t)(lane - first) * size;
    }
    if (together && size == 16) {
        emit(c, base, 128, mask & UINT64_C(0xff) << first);
        emit(c, base + 128, 128, mask & UINT64_C(0xff00) << first);
    } else if (together) {
        emit(c, base, size * HALF, mask);
    } else {
        while (mask) {
            uint32_t lane = next_lane(&mask);
            emit(c, a->address[lane] / d->global.sector * d->global.sector, d->global.sector,
                 UINT64_C(1) << lane);
        }
    }
}

/* Halves segment [*at, *at + *bytes) if the bytes used lie in one half of it. */
static void shrink(uint64_t low, uint64_t high, uint64_t *at, uint32_t *bytes)
{
    uint32_t half = *bytes / 2;
    if (high < *at + half) {
        *bytes = half;
    } else if (low >= *at + half) {
        *at += half;
        *bytes = half;
    }
}

/* 1.2 and 1.3: the segment of the lowest lane left serves all lanes in it, shrunk to what is used.
 */
static void shrink_half(counter *c, uint64_t mask)
{
    const hw_access *a = c->access;
    uint32_t size = width_of(a) == 1 ? 32 : width_of(a) == 2 ? 64 : 128;
    while (mask) {
        uint64_t at = a->address[__builtin_ctzll(mask)] / size * size;
        uint64_t served = 0, low = UINT64_MAX, high = 0;
        for (uint64_t scan = mask; scan;) {
            uint32_t lane = next_lane(&scan);
            uint64_t from = a->address[lane], to = from + width_of(a) - 1;
            if (from - at >= size)
                continue;
            served |= UINT64_C(1) << lane;
            low = from < low ? from : low;
            high = to > high ? to : high;
        }
        uint32_t bytes = size;
        while (bytes > 32) {
            uint32_t before = bytes;
            shrink(low, high, &at, &bytes);
            if (bytes == before)
                break;
        }
        emit(c, at, bytes, served);
        mask &= ~served;
    }
}

/* Lanes of one request: the warp is split for wide accesses, or into the L1's sub-requests. */
static uint32_t request_lanes(const hw_device *d, const hw_access *a)
{
    static const uint8_t split8[] = { 8, 4, 2 };
    unsigned wide = width_of(a) <= 4 ? 0 : width_of(a) <= 8 ? 1 : 2;
    switch (d->global.rule) {
    case HW_STRICT_HALFWARP:
    case HW_SEGMENT_SHRINK_HALFWARP:
        return HALF;
    case HW_LINES128_OR_SECTORS32:
        return 32u >> wide;
    case HW_SECTORS32_SPLIT8:
        return split8[wide];
    case HW_SECTORS32_WARP:
    case HW_GCN_QUADS_64B:
        break;
    }
    return lanes_of(a);
}

static void one_request(counter *c, const hw_device *d, uint32_t first, uint64_t mask)
{
    bool l1 = c->access->kind == HW_LOAD && !c->access->bypass_l1 &&
              (d->caches.l1_caches_global || c->access->use_l1);
    if (d->global.rule == HW_STRICT_HALFWARP)
        strict_half(c, d, first, mask);
    else if (d->global.rule == HW_SEGMENT_SHRINK_HALFWARP)
        shrink_half(c, mask);
    else
        emit_segments(c, mask,
                      d->global.rule == HW_LINES128_OR_SECTORS32 && l1 ? d->global.line
                                                                       : d->global.sector);
}

/* What the whole warp touches, whatever the rule. Lines are counted from the sectors, which are few. */
static void count_touched(const hw_device *d, const hw_access *a, hw_coalesce_result *r)
{
    set sectors, lines;
    uint64_t mask = part_mask(a, 0, lanes_of(a));
    uint32_t line = shift_of(d->global.line / 32);
    set_init(&sectors);
    set_init(&lines);
    r->bytes_requested = (uint64_t)__builtin_popcountll(mask) * width_of(a);
    while (mask) {
        uint64_t from = a->address[next_lane(&mask)], to = from + width_of(a) - 1;
        for (uint64_t s = from / 32; s <= to / 32; s++)
            set_add(&sectors, s);
    }
    for (uint32_t i = 0; i < sectors.count; i++)
        set_add(&lines, sectors.key[i] >> line);
    r->sectors = sectors.count;
    r->lines = lines.count;
}

/* Where a whole warp is one request and nobody asks which transactions, the count of what it touches is the answer. */
static bool counted_already(const hw_device *d, const hw_access *a, hw_coalesce_result *r)
{
    bool whole = d->global.rule == HW_SECTORS32_WARP || d->global.rule == HW_GCN_QUADS_64B;
    bool sectors = d->global.sector == 32;
    if (!whole || !(sectors || d->global.sector == d->global.line))
        return false;
    r->requests = (a->mask & part_mask(a, 0, lanes_of(a))) != 0;
    r->transactions = sectors ? r->sectors : r->lines;
    r->bytes_moved = (uint64_t)r->transactions * d->global.sector;
    return true;
}

/* GCN: 16 lanes whose dwords lie in one line go in a clock, other lanes by quads. */
static uint32_t address_cycles(const hw_device *d, const hw_access *a)
{
    uint32_t cycles = 0;
    for (uint32_t first = 0; first < lanes_of(a); first += 16) {
        uint64_t mask = part_mask(a, first, 16);
        bool one_line = width_of(a) <= 4;
        uint64_t line = mask ? a->address[__builtin_ctzll(mask)] / d->global.line : 0;
        for (uint64_t m = mask; m;)
            one_line = a->address[next_lane(&m)] / d->global.line == line && one_line;
        cycles += mask == 0 ? 0 : one_line ? 1 : 4;
    }
    return cycles;
}

/* Distinct bytes: the lanes sorted by address, each counted from where the one before ended. */
static uint64_t bytes_used(const hw_access *a)
{
    uint64_t first[HW_LANES_MAX], used = 0;
    uint32_t count = 0;
    uint64_t mask = part_mask(a, 0, lanes_of(a));
    while (mask) {
        uint64_t at = a->address[next_lane(&mask)];
        uint32_t i = count++;
        for (; i > 0 && first[i - 1] > at; i--)
            first[i] = first[i - 1];
        first[i] = at;
    }
    uint64_t end = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t from = first[i] > end ? first[i] : end, to = first[i] + width_of(a);
        used += to > from ? to - from : 0;
        end = to > end ? to : end;
    }
    return used;
}

void hw_coalesce_access(const hw_device *d, const hw_access *a, hw_coalesce_result *r,
                        hw_transaction *list)
{
    *r = (hw_coalesce_result){ .requests = 0 };
    counter c = { .access = a, .r = r, .list = list };
    uint32_t count = request_lanes(d, a);
    count_touched(d, a, r);
    bool done = !list && counted_already(d, a, r);
    for (uint32_t first = 0; first < lanes_of(a) && !done; first += count) {
        uint64_t mask = part_mask(a, first, count);
        if (!mask)
            continue;
        one_request(&c, d, first, mask);
        r->requests++;
    }
    if (d->global.rule == HW_GCN_QUADS_64B)
        r->address_cycles = address_cycles(d, a);
    r->bytes_used = bytes_used(a);
    r->efficiency = r->bytes_moved ? (double)r->bytes_requested / (double)r->bytes_moved : 0;
}
