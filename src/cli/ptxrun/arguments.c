/* SPDX-License-Identifier: Apache-2.0
 * Arguments: TYPE=VALUE and TYPE[N]=FILL made bytes.
 */
#include "ptxrun.h"

#include <inttypes.h>
#include <stdlib.h>

#define BYTES_MAX ((size_t)1 << 36)

static const number_type types[] = {
    { "u8", CLASS_UNSIGNED, 1 },  { "u16", CLASS_UNSIGNED, 2 }, { "u32", CLASS_UNSIGNED, 4 },
    { "u64", CLASS_UNSIGNED, 8 }, { "s8", CLASS_SIGNED, 1 },    { "s16", CLASS_SIGNED, 2 },
    { "s32", CLASS_SIGNED, 4 },   { "s64", CLASS_SIGNED, 8 },   { "b8", CLASS_UNSIGNED, 1 },
    { "b16", CLASS_UNSIGNED, 2 }, { "b32", CLASS_UNSIGNED, 4 }, { "b64", CLASS_UNSIGNED, 8 },
    { "f16", CLASS_FLOAT, 2 },    { "f32", CLASS_FLOAT, 4 },    { "f64", CLASS_FLOAT, 8 },
};

const number_type *number_type_named(hw_str name)
{
    for (size_t i = 0; i < HW_COUNTOF(types); i++)
        if (hw_str_is(name, types[i].name))
            return &types[i];
    return NULL;
}

const number_type *number_type_of(number_class class, unsigned size)
{
    for (size_t i = 0; i < HW_COUNTOF(types); i++)
        if (types[i].class == class && types[i].size == size)
            return &types[i];
    return NULL;
}

static void put(const number_type *t, uint8_t *at, double real, int64_t whole)
{
    float single = (float)real;
    _Float16 half = (_Float16)real;
    if (t->class != CLASS_FLOAT)
        memcpy(at, &whole, t->size);
    else if (t->size == 8)
        memcpy(at, &real, 8);
    else if (t->size == 4)
        memcpy(at, &single, 4);
    else
        memcpy(at, &half, 2);
}

static bool put_number(const number_type *t, uint8_t *at, const char *text)
{
    char *end;
    if (t->class == CLASS_FLOAT) {
        double v = strtod(text, &end);
        put(t, at, v, 0);
    } else {
        int64_t v = t->class == CLASS_SIGNED || *text == '-' ? strtoll(text, &end, 0)
                                                             : (int64_t)strtoull(text, &end, 0);
        put(t, at, 0, v);
    }
    return end != text && *end == 0;
}

/* ---- fills: element i of n ---- */

static uint64_t mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

typedef void fill_fn(const number_type *t, uint8_t *at, size_t i, size_t n, uint64_t seed);

static void fill_iota(const number_type *t, uint8_t *at, size_t i, size_t n, uint64_t seed)
{
    (void)n, (void)seed;
    put(t, at, (double)i, (int64_t)i);
}

/* From 0 towards 1; integers from 0 towards their type's largest value. */
static void fill_ramp(const number_type *t, uint8_t *at, size_t i, size_t n, uint64_t seed)
{
    (void)seed;
    unsigned bits = t->size * 8 - (t->class == CLASS_SIGNED);
    double part = (double)i / (double)n,
           largest = (double)((UINT64_C(1) << (bits - 1)) - 1) * 2 + 1;
    put(t, at, part, (int64_t)(uint64_t)(part * largest));
}

static void fill_zero(const number_type *t, uint8_t *at, size_t i, size_t n, uint64_t seed)
{
    (void)i, (void)n, (void)seed;
    put(t, at, 0, 0);
}

static void fill_ones(const number_type *t, uint8_t *at, size_t i, size_t n, uint64_t seed)
{
    (void)i, (void)n, (void)seed;
    put(t, at, 1, 1);
}

/* Floats in [0, 1), integers over their whole range. */
static void fill_random(const number_type *t, uint8_t *at, size_t i, size_t n, uint64_t seed)
{
    (void)n;
    uint64_t x = mix(mix(seed) + i);
    put(t, at, (double)(x >> 40) * 0x1p-24, (int64_t)x);
}

static const struct fill {
    const char *name;
    fill_fn *fn;
} fills[] = {
    { "iota", fill_iota }, { "ramp", fill_ramp },     { "zero", fill_zero },
    { "ones", fill_ones }, { "random", fill_random },
};

/* "random(7)": the name and its number. */
static const struct fill *find_fill(hw_str text, uint64_t *seed)
{
    for (size_t i = 0; i < HW_COUNTOF(fills); i++) {
        hw_str name = hw_str_of(fills[i].name);
        if (!hw_str_starts(text, name))
            continue;
        const char *rest = text.ptr + name.len;
        char *end = NULL;
        if (*rest == 0)
            return &fills[i];
        *seed = *rest == '(' ? strtoull(rest + 1, &end, 0) : 0;
        if (end && end != rest + 1 && end[0] == ')' && end[1] == 0)
            return &fills[i];
    }
    return NULL;
}

static hw_status fill_file(hw_arena *a, argument *arg, const char *path, hw_diag *d)
{
    const number_type *type;
    uint8_t *bytes;
    size_t count;
    HW_TRY(npy_read(a, path, &type, &bytes, &count, d));
    if (type->size != arg->type->size ||
        (type->class == CLASS_FLOAT) != (arg->type->class == CLASS_FLOAT))
        return hw_fail(d, HW_E_INVALID, "%s holds %s, not %s", path, type->name, arg->type->name);
    if (arg->count == 0) /* TYPE[]=@FILE: as long as the file */
        arg->count = count;
    else if (count != arg->count)
        return hw_fail(d, HW_E_INVALID, "%s holds %zu elements, not %zu", path, count, arg->count);
    arg->bytes = bytes;
    return HW_OK;
}

static hw_status fill(hw_arena *a, argument *arg, const char *text, hw_diag *d)
{
    uint64_t seed = 1;
    if (*text == '@')
        return fill_file(a, arg, text + 1, d);
    if (arg->count == 0)
        return hw_fail(d, HW_E_INVALID, "%s: an array needs a number of elements", arg->text);
    arg->bytes = hw_arena_alloc(a, arg->count * arg->type->size);
    const struct fill *f = find_fill(hw_str_of(text), &seed);
    for (size_t i = 0; i < arg->count; i++) {
        uint8_t *at = arg->bytes + i * arg->type->size;
        if (f)
            f->fn(arg->type, at, i, arg->count, seed);
        else if (!put_number(arg->type, at, text))
            return hw_fail(d, HW_E_SYNTAX,
                           "%s: '%s' is not a number, iota, ramp, zero, ones, random, "
                           "random(SEED) or @FILE.npy",
                           arg->text, text);
    }
    return HW_OK;
}

/* "[N]" or "[NxM]"; "[]" is 0. */
static bool read_count(const char *p, const char *end, size_t *count)
{
    *count = 1;
    if (end - p < 2 || *p != '[' || end[-1] != ']')
        return false;
    if (end - p == 2)
        *count = 0;
    for (p++; p < end - 1;) {
        char *after;
        unsigned long long n = strtoull(p, &after, 0);
        if (after == p || !n || *count > BYTES_MAX / n)
            return false;
        *count *= (size_t)n;
        p = after;
        if (*p == 'x' || *p == ',')
            p++;
        else if (p != end - 1)
            return false;
    }
    return true;
}

hw_status argument_parse(hw_arena *a, const char *text, argument *out, hw_diag *d)
{
    *out = (argument){ .text = text, .count = 1 };
    const char *equals = strchr(text, '='), *bracket = strchr(text, '[');
    if (!equals)
        return hw_fail(d, HW_E_SYNTAX, "'%s' is not TYPE=VALUE or TYPE[N]=FILL", text);
    if (bracket && bracket > equals)
        bracket = NULL;
    hw_str name = { text, (size_t)((bracket ? bracket : equals) - text) };
    out->type = number_type_named(name);
    out->is_array = bracket != NULL;
    if (!out->type)
        return hw_fail(d, HW_E_SYNTAX, "%s: no type '%.*s' (u8 to u64, s8 to s64, f16, f32, f64)",
                       text, HW_STR_ARG(name));
    if (bracket &&
        (!read_count(bracket, equals, &out->count) || out->count > BYTES_MAX / out->type->size))
        return hw_fail(d, HW_E_SYNTAX, "%s: bad number of elements", text);
    return fill(a, out, equals + 1, d);
}

const char *argument_element(hw_arena *a, const argument *arg, size_t i)
{
    const uint8_t *at = arg->bytes + i * arg->type->size;
    unsigned size = arg->type->size;
    float single;
    double real;
    _Float16 half;
    uint64_t whole = 0;
    if (arg->type->class == CLASS_FLOAT) {
        if (size == 8)
            return memcpy(&real, at, 8), hw_arena_printf(a, "%.17g", real);
        if (size == 4)
            return memcpy(&single, at, 4), hw_arena_printf(a, "%.9g", (double)single);
        return memcpy(&half, at, 2), hw_arena_printf(a, "%.5g", (double)(float)half);
    }
    memcpy(&whole, at, size);
    if (arg->type->class == CLASS_UNSIGNED)
        return hw_arena_printf(a, "%" PRIu64, whole);
    unsigned unused = 64 - size * 8;
    return hw_arena_printf(a, "%" PRId64, (int64_t)(whole << unused) >> unused);
}
