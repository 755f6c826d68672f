/* SPDX-License-Identifier: Apache-2.0
 *
 * A device as JSON, in the shape of its file, so that the output can be edited and loaded again. */
#include "fields.h"

static json_t *rate_json(double v)
{
    if (v < 0)
        return json_string("m");
    return v == 0 ? json_null() : json_real(v);
}

static json_t *list_json(const hw_list *list)
{
    if (list->len == 0)
        return json_null();
    json_t *a = json_array();
    for (uint32_t i = 0; i < list->len; i++)
        json_array_append_new(a, json_integer(list->v[i]));
    return a;
}

static json_t *whole_json(uint64_t v, bool nullable)
{
    return v == 0 && nullable ? json_null() : json_integer((json_int_t)v);
}

static json_t *value_json(const void *at, const hw_field *f)
{
    switch (f->kind) {
    case HW_FIELD_U32:
        return whole_json(*(const uint32_t *)at, f->nullable);
    case HW_FIELD_U64:
        return whole_json(*(const uint64_t *)at, f->nullable);
    case HW_FIELD_REAL:
        return *(const double *)at == 0 && f->nullable ? json_null()
                                                       : json_real(*(const double *)at);
    case HW_FIELD_RATE:
        return rate_json(*(const double *)at);
    case HW_FIELD_BOOL:
        return json_boolean(*(const bool *)at);
    case HW_FIELD_TEXT:
        return *(const char *const *)at ? json_string(*(const char *const *)at) : json_null();
    case HW_FIELD_ENUM:
        return json_string(f->words[*(const unsigned *)at]);
    case HW_FIELD_LIST:
        return list_json(at);
    }
    return json_null();
}

json_t *cli_field_json(const hw_device *dev, const hw_field *f)
{
    return value_json((const char *)dev + f->offset, f);
}

static void add_text(json_t *object, const char *key, const char *text)
{
    if (text)
        json_object_set_new(object, key, json_string(text));
}

/* base: the address of the group's struct. */
static json_t *group_json(const char *base, const hw_field_group *g)
{
    size_t n;
    const hw_field *f = hw_device_fields(&n) + g->first;
    json_t *o = json_object();
    for (uint32_t i = 0; i < g->count; i++)
        json_object_set_new(o, f[i].key, value_json(base + (f[i].offset - g->offset), &f[i]));
    add_text(o, "source", *(const char *const *)(base + (g->source_offset - g->offset)));
    add_text(o, "note", *(const char *const *)(base + (g->note_offset - g->offset)));
    return o;
}

json_t *cli_device_json(const hw_device *dev)
{
    size_t n;
    const hw_field_group *g = hw_device_groups(&n);
    json_t *o =
        json_pack("{s:i, s:s, s:s, s:s, s:s}", "schema", 1, "name", dev->name, "title", dev->title,
                  "vendor", hw_vendor_word(dev->vendor), "architecture", dev->architecture);
    json_t *aliases = json_array();
    for (uint32_t i = 0; i < dev->alias_count; i++)
        json_array_append_new(aliases, json_string(dev->aliases[i]));
    json_object_set_new(o, "aliases", aliases);
    add_text(o, "note", dev->note);
    for (size_t i = 0; i < n; i++) {
        if (!(g[i].vendors >> dev->vendor & 1))
            continue;
        json_object_set_new(o, g[i].name, group_json((const char *)dev + g[i].offset, &g[i]));
        if (strcmp(g[i].name, "latency") != 0 || dev->preset_count == 0)
            continue;
        json_t *presets = json_array();
        for (uint32_t k = 0; k < dev->preset_count; k++)
            json_array_append_new(presets, group_json((const char *)&dev->presets[k], &g[i]));
        json_object_set_new(o, "latency_presets", presets);
    }
    return o;
}

bool cli_device_before(const hw_device *x, const hw_device *y)
{
    if (x->vendor != y->vendor)
        return x->vendor < y->vendor;
    if (x->capability.major != y->capability.major)
        return x->capability.major < y->capability.major;
    if (x->capability.minor != y->capability.minor)
        return x->capability.minor < y->capability.minor;
    return strcmp(x->name, y->name) < 0;
}
