/* SPDX-License-Identifier: Apache-2.0
 *
 * halfwarp devices: the device models, one of them with its sources, or the difference of two. */
#include "cli.h"
#include "fields.h"

#include <inttypes.h>

static const hw_device *load(cli *c, const char *name)
{
    const hw_device *dev;
    return hw_device_load(c->arena, name, &dev, c->diag) == HW_OK ? dev : NULL;
}

static const char *capability(cli *c, const hw_device *dev)
{
    bool nvidia = dev->vendor == HW_VENDOR_NVIDIA;
    return nvidia ? hw_arena_printf(c->arena, "%" PRIu32 ".%" PRIu32, dev->capability.major,
                                    dev->capability.minor)
                  : "-";
}

/* ---- all ---- */

static int list_names(cli *c, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        cli_print(c, "%s\n", names[i]);
    return 0;
}

static json_t *summary(cli *c, const hw_device *dev)
{
    return json_pack("{s:s, s:s, s:s, s:s, s:s*, s:i, s:f, s:f}", "name", dev->name, "title",
                     dev->title, "vendor", hw_vendor_word(dev->vendor), "architecture",
                     dev->architecture, "compute_capability",
                     dev->vendor == HW_VENDOR_NVIDIA ? capability(c, dev) : NULL, "sm_count",
                     (int)dev->compute.sm_count, "clock_mhz", dev->compute.clock_mhz,
                     "bandwidth_gbs", dev->memory.bandwidth_gbs);
}

static void print_list(cli *c, const hw_device *const *devices, size_t n)
{
    static const char *const headings[] = { "name", "CC",    "architecture", ">SMs",
                                            ">MHz", ">GB/s", "product" };
    cli_table t = cli_table_new(c, HW_COUNTOF(headings), headings);
    for (size_t i = 0; i < n; i++) {
        const hw_device *d = devices[i];
        cli_cell(&t, "%s", d->name);
        cli_cell(&t, "%s", capability(c, d));
        cli_cell(&t, "%s", d->architecture);
        cli_cell(&t, "%" PRIu32, d->compute.sm_count);
        cli_cell(&t, "%.0f", d->compute.clock_mhz);
        cli_cell(&t, "%.10g", d->memory.bandwidth_gbs);
        cli_cell(&t, "%s", d->title);
    }
    cli_table_print(c, &t);
}

static int list_all(cli *c)
{
    const char *const *names;
    size_t n = hw_device_list(c->arena, &names);
    if (c->given[OPT_names])
        return list_names(c, names, n);
    const hw_device **devices = HW_NEW_N(c->arena, const hw_device *, n + 1);
    for (size_t i = 0; i < n; i++) {
        const hw_device *dev = load(c, names[i]);
        if (!dev)
            return cli_fail_diag(c);
        size_t k = i;
        for (; k > 0 && cli_device_before(dev, devices[k - 1]); k--)
            devices[k] = devices[k - 1];
        devices[k] = dev;
    }
    if (!c->given[OPT_json]) {
        print_list(c, devices, n);
        return 0;
    }
    json_t *all = json_array();
    for (size_t i = 0; i < n; i++)
        json_array_append_new(all, summary(c, devices[i]));
    return cli_json(c, all);
}

/* ---- one ---- */

static void print_presets(cli *c, const hw_device *dev)
{
    for (uint32_t i = 0; i < dev->preset_count; i++)
        cli_print(c, "    preset %s: global %" PRIu32 " to %" PRIu32 " cycles (%s)\n",
                  dev->presets[i].preset, dev->presets[i].global.v[0],
                  dev->presets[i].global.v[dev->presets[i].global.len - 1], dev->presets[i].source);
}

static void print_group(cli *c, const hw_device *dev, const hw_field_group *g)
{
    size_t n;
    const hw_field *f = hw_device_fields(&n) + g->first;
    const char *source = *(const char *const *)((const char *)dev + g->source_offset);
    const char *note = *(const char *const *)((const char *)dev + g->note_offset);
    cli_print(c, "\n%s%s%s: %s\n", cli_style_of(c, STYLE_BOLD), g->name,
              cli_style_of(c, STYLE_PLAIN), g->sentence);
    for (uint32_t i = 0; i < g->count; i++) {
        const char *text = hw_device_field_text(c->arena, dev, &f[i]);
        cli_print(c, "    %-30s %s%s%s\n", f[i].key, text ? text : "-",
                  text && *f[i].unit ? " " : "", text ? f[i].unit : "");
    }
    cli_print(c, "    %ssource: %s%s\n", cli_style_of(c, STYLE_DIM), source,
              cli_style_of(c, STYLE_PLAIN));
    if (note)
        cli_print(c, "    note: %s\n", note);
}

static void print_one(cli *c, const hw_device *dev)
{
    size_t n;
    const hw_field_group *g = hw_device_groups(&n);
    cli_print(c, "%s%s%s: %s (%s, %s)\n", cli_style_of(c, STYLE_BOLD), dev->name,
              cli_style_of(c, STYLE_PLAIN), dev->title, hw_vendor_word(dev->vendor),
              dev->architecture);
    for (uint32_t i = 0; i < dev->alias_count; i++)
        cli_print(c, "%s%s%s", i ? ", " : "also: ", dev->aliases[i],
                  i + 1 == dev->alias_count ? "\n" : "");
    if (dev->note)
        cli_print(c, "note: %s\n", dev->note);
    cli_print(c, "file: %s\n", dev->path);
    for (size_t i = 0; i < n; i++)
        if (g[i].vendors >> dev->vendor & 1)
            print_group(c, dev, &g[i]);
    print_presets(c, dev);
}

static int show(cli *c)
{
    json_t *all = c->given[OPT_json] && c->operand_count > 1 ? json_array() : NULL;
    for (int i = 0; i < c->operand_count; i++) {
        const hw_device *dev = load(c, c->operands[i]);
        if (!dev) {
            json_decref(all);
            return cli_fail_diag(c);
        }
        if (all)
            json_array_append_new(all, cli_device_json(dev));
        else if (c->given[OPT_json])
            return cli_json(c, cli_device_json(dev));
        else
            print_one(c, dev);
    }
    return all ? cli_json(c, all) : 0;
}

/* ---- two ---- */

typedef struct difference {
    const hw_field *field;
    const char *a, *b;
} difference;

static bool differs(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) != 0 : a != b;
}

static size_t differences(cli *c, const hw_device *a, const hw_device *b, difference *out)
{
    size_t group_count, n, count = 0;
    const hw_field_group *g = hw_device_groups(&group_count);
    const hw_field *f = hw_device_fields(&n);
    for (size_t k = 0; k < group_count; k++)
        for (uint32_t i = g[k].first; i < g[k].first + g[k].count; i++) {
            bool in_a = g[k].vendors >> a->vendor & 1, in_b = g[k].vendors >> b->vendor & 1;
            const char *x = in_a ? hw_device_field_text(c->arena, a, &f[i]) : NULL;
            const char *y = in_b ? hw_device_field_text(c->arena, b, &f[i]) : NULL;
            if (differs(x, y))
                out[count++] = (difference){ &f[i], x, y };
        }
    return count;
}

static int compare_json(cli *c, const hw_device *a, const hw_device *b, const difference *d,
                        size_t n)
{
    json_t *all = json_object();
    for (size_t i = 0; i < n; i++)
        json_object_set_new(
            all, hw_arena_printf(c->arena, "%s.%s", d[i].field->group, d[i].field->key),
            json_pack("[o, o]", cli_field_json(a, d[i].field), cli_field_json(b, d[i].field)));
    return cli_json(c,
                    json_pack("{s:[s,s], s:o}", "devices", a->name, b->name, "differences", all));
}

static int compare(cli *c)
{
    if (c->operand_count != 2)
        return cli_fail(c, "--compare needs two devices: halfwarp devices --compare A B");
    const hw_device *a = load(c, c->operands[0]), *b = load(c, c->operands[1]);
    if (!a || !b)
        return cli_fail_diag(c);
    size_t field_count;
    hw_device_fields(&field_count);
    difference *d = HW_NEW_N(c->arena, difference, field_count);
    size_t n = differences(c, a, b, d);
    if (c->given[OPT_json])
        return compare_json(c, a, b, d, n);
    const char *headings[] = { "", hw_arena_printf(c->arena, ">%s", a->name),
                               hw_arena_printf(c->arena, ">%s", b->name), "unit" };
    cli_table t = cli_table_new(c, HW_COUNTOF(headings), headings);
    for (size_t i = 0; i < n; i++) {
        cli_cell(&t, "%s.%s", d[i].field->group, d[i].field->key);
        cli_cell(&t, "%s", d[i].a ? d[i].a : "-");
        cli_cell(&t, "%s", d[i].b ? d[i].b : "-");
        cli_cell(&t, "%s", d[i].field->unit);
    }
    cli_table_print(c, &t);
    return 0;
}

int cmd_devices(cli *c)
{
    if (c->given[OPT_compare])
        return compare(c);
    return c->operand_count ? show(c) : list_all(c);
}
