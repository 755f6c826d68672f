/* SPDX-License-Identifier: Apache-2.0
 *
 * The rows of device.def as a table, and a field's value as text. */
#include "hw_device.h"

#include <inttypes.h>

/* ---- words of enumerated keys ---- */
#define WORD(constant, word) [constant] = (word),
#define WORDS(table) \
    static const char *const words_##table[] = { HW_DEVICE_ENUM_##table(WORD) NULL }
WORDS(vendor);
WORDS(scope);
WORDS(config);
WORDS(bank_rule);
WORDS(conflict);
WORDS(global_rule);
WORDS(constant_rule);
WORDS(profile);

const char *hw_vendor_word(hw_vendor v)
{
    return words_vendor[v];
}

/* ---- fields ---- */
#define ALL ((1u << HW_VENDOR_NVIDIA) | (1u << HW_VENDOR_AMD))
#define NV  (1u << HW_VENDOR_NVIDIA)
#define AMD (1u << HW_VENDOR_AMD)
#define REQ false
#define NUL true

#define ROW(g, k, knd, null, lo, hi, n, words_, unit_, text) \
    ROW2(g, k, knd, null, false, lo, hi, n, words_, unit_, text)
#define ROW2(g, k, knd, null, power, lo, hi, n, words_, unit_, text) \
    { .group = #g,                                                   \
      .key = #k,                                                     \
      .kind = (knd),                                                 \
      .nullable = (null),                                            \
      .power_of_two = (power),                                       \
      .lowest = (lo),                                                \
      .highest = (hi),                                               \
      .longest = (n),                                                \
      .words = (words_),                                             \
      .unit = (unit_),                                               \
      .sentence = (text),                                            \
      .offset = offsetof(hw_device, g.k) },
#define GROUP(g, vendors, text)
#define END(g)
#define U32(g, k, lo, hi, null, unit, text) \
    ROW(g, k, HW_FIELD_U32, null, lo, hi, 0, NULL, unit, text)
#define U64(g, k, lo, hi, null, unit, text) \
    ROW(g, k, HW_FIELD_U64, null, lo, hi, 0, NULL, unit, text)
#define POW2(g, k, lo, hi, unit, text) \
    ROW2(g, k, HW_FIELD_U32, false, true, lo, hi, 0, NULL, unit, text)
#define REAL(g, k, lo, hi, null, unit, text) \
    ROW(g, k, HW_FIELD_REAL, null, lo, hi, 0, NULL, unit, text)
#define RATE(g, k, text)        ROW(g, k, HW_FIELD_RATE, true, 0.001, 100000, 0, NULL, "per clock", text)
#define BOOL(g, k, text)        ROW(g, k, HW_FIELD_BOOL, false, 0, 1, 0, NULL, "", text)
#define TEXT(g, k, null, text)  ROW(g, k, HW_FIELD_TEXT, null, 0, 0, 0, NULL, "", text)
#define ENUM(g, k, table, text) ROW(g, k, HW_FIELD_ENUM, false, 0, 0, 0, words_##table, "", text)
#define LIST(g, k, n, lo, hi, null, unit, text) \
    ROW(g, k, HW_FIELD_LIST, null, lo, hi, n, NULL, unit, text)
static const hw_field fields[] = {
#include "device.def"
};

/* Members of this struct count the rows above a group: its size is the number of rows. */
#define GROUP(g, vendors, text)                 char first_##g[0];
#define END(g)                                  char past_##g[0];
#define U32(g, k, lo, hi, null, unit, text)     char g##_##k;
#define U64(g, k, lo, hi, null, unit, text)     char g##_##k;
#define POW2(g, k, lo, hi, unit, text)          char g##_##k;
#define REAL(g, k, lo, hi, null, unit, text)    char g##_##k;
#define RATE(g, k, text)                        char g##_##k;
#define BOOL(g, k, text)                        char g##_##k;
#define TEXT(g, k, null, text)                  char g##_##k;
#define ENUM(g, k, table, text)                 char g##_##k;
#define LIST(g, k, n, lo, hi, null, unit, text) char g##_##k;
struct row_index {
#include "device.def"
};

#define GROUP(g, v, text)                                                                    \
    { .name = #g,                                                                            \
      .sentence = (text),                                                                    \
      .vendors = (v),                                                                        \
      .first = offsetof(struct row_index, first_##g),                                        \
      .count = offsetof(struct row_index, past_##g) - offsetof(struct row_index, first_##g), \
      .offset = offsetof(hw_device, g),                                                      \
      .source_offset = offsetof(hw_device, g.source),                                        \
      .note_offset = offsetof(hw_device, g.note) },
#define END(g)
#define U32(g, k, lo, hi, null, unit, text)
#define U64(g, k, lo, hi, null, unit, text)
#define POW2(g, k, lo, hi, unit, text)
#define REAL(g, k, lo, hi, null, unit, text)
#define RATE(g, k, text)
#define BOOL(g, k, text)
#define TEXT(g, k, null, text)
#define ENUM(g, k, table, text)
#define LIST(g, k, n, lo, hi, null, unit, text)
static const hw_field_group groups[] = {
#include "device.def"
};

const hw_field *hw_device_fields(size_t *count)
{
    *count = HW_COUNTOF(fields);
    return fields;
}

const hw_field_group *hw_device_groups(size_t *count)
{
    *count = HW_COUNTOF(groups);
    return groups;
}

const struct hw_device_latency *hw_device_latencies(const hw_device *dev, const char *preset)
{
    if (!preset || strcmp(dev->latency.preset, preset) == 0)
        return &dev->latency;
    for (uint32_t i = 0; i < dev->preset_count; i++)
        if (strcmp(dev->presets[i].preset, preset) == 0)
            return &dev->presets[i];
    return NULL;
}

/* ---- values ---- */
static const char *real_text(hw_arena *a, double v, bool nullable)
{
    return v == 0 && nullable ? NULL : hw_arena_printf(a, "%.10g", v);
}

static const char *rate_text(hw_arena *a, double v)
{
    return v < 0 ? "several instructions" : real_text(a, v, true);
}

static const char *list_text(hw_arena *a, const hw_list *list)
{
    char *text = NULL;
    for (uint32_t i = 0; i < list->len; i++)
        text = text ? hw_arena_printf(a, "%s %" PRIu32, text, list->v[i])
                    : hw_arena_printf(a, "%" PRIu32, list->v[i]);
    return text;
}

const char *hw_device_field_text(hw_arena *a, const hw_device *dev, const hw_field *f)
{
    const void *at = (const char *)dev + f->offset;
    uint64_t whole = f->kind == HW_FIELD_U32   ? *(const uint32_t *)at
                     : f->kind == HW_FIELD_U64 ? *(const uint64_t *)at
                                               : 0;
    switch (f->kind) {
    case HW_FIELD_U32:
    case HW_FIELD_U64:
        return whole == 0 && f->nullable ? NULL : hw_arena_printf(a, "%" PRIu64, whole);
    case HW_FIELD_REAL:
        return real_text(a, *(const double *)at, f->nullable);
    case HW_FIELD_RATE:
        return rate_text(a, *(const double *)at);
    case HW_FIELD_BOOL:
        return *(const bool *)at ? "yes" : "no";
    case HW_FIELD_TEXT:
        return *(const char *const *)at;
    case HW_FIELD_ENUM:
        return f->words[*(const unsigned *)at];
    case HW_FIELD_LIST:
        return list_text(a, at);
    }
    return NULL;
}
