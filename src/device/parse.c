/* SPDX-License-Identifier: Apache-2.0
 *
 * A device file made a device: strict, every mistake named with its key, line and allowed range. */
#include "hw_device.h"
#include "place.h"

#include <inttypes.h>
#include <jansson.h>

typedef struct parser {
    hw_arena *arena;
    hw_diag *diag;
    hw_str text;
    const char *path;
    hw_device *dev;
    hw_status status; /* the first failure; parsing goes on to report the rest */
} parser;

static void complain(parser *p, hw_status status, const char *group, const char *key,
                     const char *fmt, ...) HW_PRINTF(5, 6);
static void complain(parser *p, hw_status status, const char *group, const char *key,
                     const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    const char *text = hw_arena_vprintf(p->arena, fmt, ap);
    va_end(ap);
    hw_fail_at(p->diag, status, hw_json_place(p->text, p->path, group, key), "%s", text);
    if (p->status == HW_OK)
        p->status = status;
}

static const char *dup_text(parser *p, const json_t *v)
{
    return hw_arena_cstr(p->arena, (hw_str){ json_string_value(v), json_string_length(v) });
}

/* ---- one field ---- */

static const char *range_text(parser *p, const hw_field *f)
{
    return hw_arena_printf(p->arena, "%.15g to %.15g%s%s%s", f->lowest, f->highest,
                           *f->unit ? " " : "", f->unit, f->power_of_two ? ", a power of two" : "");
}

static void wrong_type(parser *p, const hw_field *f, const char *wanted)
{
    complain(p, HW_E_CORRUPT, f->group, f->key, "key '%s.%s' must be %s%s", f->group, f->key,
             wanted, f->nullable ? " or null" : "");
}

static void out_of_range(parser *p, const hw_field *f, double value)
{
    complain(p, HW_E_RANGE, f->group, f->key, "key '%s.%s' is %.15g; allowed: %s", f->group, f->key,
             value, range_text(p, f));
}

static bool in_range(const hw_field *f, double v)
{
    return v >= f->lowest && v <= f->highest;
}

static void read_whole(parser *p, const hw_field *f, const json_t *v, void *at)
{
    if (!json_is_integer(v)) {
        wrong_type(p, f, hw_arena_printf(p->arena, "a whole number, %s", range_text(p, f)));
        return;
    }
    json_int_t n = json_integer_value(v);
    if (!in_range(f, (double)n) || (f->power_of_two && (n & (n - 1)))) {
        out_of_range(p, f, (double)n);
        return;
    }
    if (f->kind == HW_FIELD_U32)
        *(uint32_t *)at = (uint32_t)n;
    else
        *(uint64_t *)at = (uint64_t)n;
}

static void read_real(parser *p, const hw_field *f, const json_t *v, void *at)
{
    if (f->kind == HW_FIELD_RATE && json_is_string(v) && strcmp(json_string_value(v), "m") == 0) {
        *(double *)at = HW_RATE_SEVERAL;
        return;
    }
    if (!json_is_number(v)) {
        wrong_type(p, f,
                   hw_arena_printf(p->arena, "a number, %s%s", range_text(p, f),
                                   f->kind == HW_FIELD_RATE ? ", or \"m\"" : ""));
        return;
    }
    double n = json_number_value(v);
    if (!in_range(f, n))
        out_of_range(p, f, n);
    *(double *)at = n;
}

static void read_word(parser *p, const hw_field *f, const json_t *v, void *at)
{
    const char *all = "";
    for (unsigned i = 0; f->words[i]; i++) {
        if (json_is_string(v) && strcmp(json_string_value(v), f->words[i]) == 0) {
            *(unsigned *)at = i;
            return;
        }
        all = hw_arena_printf(p->arena, "%s%s\"%s\"", all, i ? ", " : "", f->words[i]);
    }
    wrong_type(p, f, hw_arena_printf(p->arena, "one of %s", all));
}

static void read_list(parser *p, const hw_field *f, const json_t *v, void *at)
{
    hw_list *list = at;
    size_t n = json_array_size(v);
    if (!json_is_array(v) || n == 0 || n > f->longest) {
        wrong_type(p, f,
                   hw_arena_printf(p->arena, "a list of 1 to %" PRIu32 " whole numbers, each %s",
                                   f->longest, range_text(p, f)));
        return;
    }
    for (size_t i = 0; i < n; i++) {
        const json_t *e = json_array_get(v, i);
        if (!json_is_integer(e)) {
            wrong_type(p, f, "a list of whole numbers");
            return;
        }
        double value = (double)json_integer_value(e);
        if (!in_range(f, value)) {
            out_of_range(p, f, value);
            return;
        }
        list->v[i] = (uint32_t)json_integer_value(e);
    }
    list->len = (uint32_t)n;
}

static void read_field(parser *p, const hw_field *f, const json_t *v, void *at)
{
    if (json_is_null(v) && f->nullable)
        return;
    switch (f->kind) {
    case HW_FIELD_U32:
    case HW_FIELD_U64:
        read_whole(p, f, v, at);
        break;
    case HW_FIELD_REAL:
    case HW_FIELD_RATE:
        read_real(p, f, v, at);
        break;
    case HW_FIELD_BOOL:
        if (json_is_boolean(v))
            *(bool *)at = json_is_true(v);
        else
            wrong_type(p, f, "true or false");
        break;
    case HW_FIELD_TEXT:
        if (json_is_string(v))
            *(const char **)at = dup_text(p, v);
        else
            wrong_type(p, f, "a string");
        break;
    case HW_FIELD_ENUM:
        read_word(p, f, v, at);
        break;
    case HW_FIELD_LIST:
        read_list(p, f, v, at);
        break;
    }
}

/* ---- a group ---- */

/* A string, or a list of strings joined by "; ". NULL with a complaint otherwise. */
static const char *read_source(parser *p, const char *group, const json_t *v)
{
    if (json_is_string(v) && json_string_length(v))
        return dup_text(p, v);
    const char *all = NULL;
    for (size_t i = 0; i < json_array_size(v); i++) {
        const json_t *e = json_array_get(v, i);
        if (!json_is_string(e) || !json_string_length(e)) {
            all = NULL;
            break;
        }
        all = all ? hw_arena_printf(p->arena, "%s; %s", all, dup_text(p, e)) : dup_text(p, e);
    }
    if (!all)
        complain(p, HW_E_CORRUPT, group, "source",
                 "group '%s' needs a \"source\": a string or a list of strings that say where its "
                 "numbers come from",
                 group);
    return all;
}

static void unknown_key(parser *p, const char *group, const char *key, const char *const *names,
                        size_t n)
{
    const char *near = hw_nearest(key, names, n);
    complain(p, HW_E_CORRUPT, group, key, "unknown key '%s%s%s'%s%s%s", group ? group : "",
             group ? "." : "", key, near ? "; did you mean '" : "", near ? near : "",
             near ? "'?" : "");
}

static void check_keys(parser *p, const hw_field_group *g, const hw_field *f, const json_t *object)
{
    const char *names[64] = { "source", "note" };
    size_t n = 2;
    for (uint32_t i = 0; i < g->count && n < HW_COUNTOF(names); i++)
        names[n++] = f[i].key;
    for (void *it = json_object_iter((json_t *)object); it;
         it = json_object_iter_next((json_t *)object, it)) {
        const char *key = json_object_iter_key(it);
        size_t i = 0;
        while (i < n && strcmp(names[i], key) != 0)
            i++;
        if (i == n)
            unknown_key(p, g->name, key, names, n);
    }
}

/* Reads the group from object to base, the address of its struct. */
static void read_group(parser *p, const hw_field_group *g, const json_t *object, char *base)
{
    size_t count;
    const hw_field *f = hw_device_fields(&count) + g->first;
    if (!json_is_object(object)) {
        complain(p, HW_E_CORRUPT, g->name, NULL, "'%s' must be an object", g->name);
        return;
    }
    check_keys(p, g, f, object);
    for (uint32_t i = 0; i < g->count; i++) {
        const json_t *v = json_object_get(object, f[i].key);
        if (v)
            read_field(p, &f[i], v, base + (f[i].offset - g->offset));
        else
            complain(p, HW_E_CORRUPT, g->name, f[i].key, "missing key '%s.%s' (%s)", g->name,
                     f[i].key, f[i].sentence);
    }
    *(const char **)(base + (g->source_offset - g->offset)) =
        read_source(p, g->name, json_object_get(object, "source"));
    const json_t *note = json_object_get(object, "note");
    if (json_is_string(note))
        *(const char **)(base + (g->note_offset - g->offset)) = dup_text(p, note);
    else if (note)
        complain(p, HW_E_CORRUPT, g->name, "note", "key '%s.note' must be a string", g->name);
}

/* ---- the whole file ---- */

static const char *const top_keys[] = { "schema",       "name",    "title", "vendor",
                                        "architecture", "aliases", "note",  "latency_presets" };

static const hw_field_group *find_group(const char *name)
{
    size_t n;
    const hw_field_group *g = hw_device_groups(&n);
    for (size_t i = 0; i < n; i++)
        if (strcmp(g[i].name, name) == 0)
            return &g[i];
    return NULL;
}

static bool is_top_key(const char *key)
{
    for (size_t i = 0; i < HW_COUNTOF(top_keys); i++)
        if (strcmp(top_keys[i], key) == 0)
            return true;
    return false;
}

static void check_top(parser *p, json_t *root)
{
    const char *names[HW_COUNTOF(top_keys) + 32];
    size_t n, count = 0;
    const hw_field_group *g = hw_device_groups(&n);
    for (size_t i = 0; i < HW_COUNTOF(top_keys); i++)
        names[count++] = top_keys[i];
    for (size_t i = 0; i < n && count < HW_COUNTOF(names); i++)
        names[count++] = g[i].name;
    for (void *it = json_object_iter(root); it; it = json_object_iter_next(root, it)) {
        const char *key = json_object_iter_key(it);
        if (!is_top_key(key) && !find_group(key))
            unknown_key(p, NULL, key, names, count);
    }
}

static const char *top_text(parser *p, json_t *root, const char *key, bool required)
{
    const json_t *v = json_object_get(root, key);
    if (json_is_string(v) && json_string_length(v))
        return dup_text(p, v);
    if (v || required)
        complain(p, HW_E_CORRUPT, NULL, key, "key '%s' must be a string%s", key,
                 v ? "" : " and is missing");
    return NULL;
}

static void read_vendor(parser *p, json_t *root)
{
    const char *vendor = top_text(p, root, "vendor", true);
    if (!vendor)
        return;
    for (hw_vendor v = HW_VENDOR_NVIDIA; v <= HW_VENDOR_AMD; v++)
        if (strcmp(vendor, hw_vendor_word(v)) == 0) {
            p->dev->vendor = v;
            return;
        }
    complain(p, HW_E_CORRUPT, NULL, "vendor", "key 'vendor' must be \"NVIDIA\" or \"AMD\"");
}

static void read_aliases(parser *p, json_t *root)
{
    const json_t *v = json_object_get(root, "aliases");
    size_t n = json_array_size(v);
    const char **names = HW_NEW_N(p->arena, const char *, n + 1);
    bool good = !v || json_is_array(v);
    for (size_t i = 0; i < n && good; i++) {
        good = json_is_string(json_array_get(v, i));
        names[i] = good ? dup_text(p, json_array_get(v, i)) : NULL;
    }
    if (!good)
        complain(p, HW_E_CORRUPT, NULL, "aliases", "key 'aliases' must be a list of strings");
    p->dev->aliases = names;
    p->dev->alias_count = good ? (uint32_t)n : 0;
}

static void read_presets(parser *p, json_t *root)
{
    const json_t *v = json_object_get(root, "latency_presets");
    size_t n = json_array_size(v);
    if (v && (!json_is_array(v) || n > HW_DEVICE_PRESETS_MAX)) {
        complain(p, HW_E_CORRUPT, NULL, "latency_presets",
                 "key 'latency_presets' must be a list of at most %d objects like 'latency'",
                 HW_DEVICE_PRESETS_MAX);
        return;
    }
    for (size_t i = 0; i < n; i++)
        read_group(p, find_group("latency"), json_array_get(v, i), (char *)&p->dev->presets[i]);
    p->dev->preset_count = (uint32_t)n;
}

static void read_groups(parser *p, json_t *root)
{
    size_t n;
    const hw_field_group *g = hw_device_groups(&n);
    for (size_t i = 0; i < n; i++) {
        const json_t *v = json_object_get(root, g[i].name);
        bool wanted = g[i].vendors >> p->dev->vendor & 1;
        if (wanted && v)
            read_group(p, &g[i], v, (char *)p->dev + g[i].offset);
        else if (wanted)
            complain(p, HW_E_CORRUPT, NULL, g[i].name, "missing group '%s' (%s)", g[i].name,
                     g[i].sentence);
        else if (v)
            complain(p, HW_E_CORRUPT, NULL, g[i].name, "group '%s' does not apply to %s devices",
                     g[i].name, hw_vendor_word(p->dev->vendor));
    }
}

hw_status hw_device_parse(hw_arena *a, hw_str text, const char *path, const hw_device **out,
                          hw_diag *d)
{
    json_error_t error;
    json_t *root = json_loadb(text.ptr ? text.ptr : "", text.len, JSON_REJECT_DUPLICATES, &error);
    hw_place at = { .file = path,
                    .line = error.line > 0 ? (uint32_t)error.line : 1,
                    .column = error.column > 0 ? (uint32_t)error.column : 1 };
    if (!root)
        return hw_fail_at(d, HW_E_SYNTAX, at, "%s", error.text);
    parser p = { .arena = a, .diag = d, .text = text, .path = path, .dev = HW_NEW(a, hw_device) };
    const json_t *schema = json_object_get(root, "schema");
    if (!json_is_object(root)) {
        complain(&p, HW_E_CORRUPT, NULL, NULL, "a device file is one JSON object");
    } else if (!json_is_integer(schema) || json_integer_value(schema) != 1) {
        complain(&p, HW_E_VERSION, NULL, "schema", "key 'schema' must be 1");
    } else {
        check_top(&p, root);
        p.dev->path = path;
        p.dev->name = top_text(&p, root, "name", true);
        p.dev->title = top_text(&p, root, "title", true);
        p.dev->architecture = top_text(&p, root, "architecture", true);
        p.dev->note = top_text(&p, root, "note", false);
        read_vendor(&p, root);
        read_aliases(&p, root);
        read_groups(&p, root);
        read_presets(&p, root);
    }
    json_decref(root);
    if (p.status == HW_OK)
        *out = p.dev;
    return p.status;
}
