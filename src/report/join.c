/* SPDX-License-Identifier: Apache-2.0
 *
 * The profiles of several processes of one run made one: the first with the kernels of the others. */
#include "report.h"

#include <errno.h>
#include <jansson.h>

static json_int_t number(const json_t *o, const char *key)
{
    return json_integer_value(json_object_get(o, key));
}

static void set(json_t *o, const char *key, json_int_t value)
{
    json_object_set_new(o, key, json_integer(value));
}

/* Ids of a range: first, count, step. *last: the largest seen. */
static void move_ids(json_t *ids, json_int_t by, json_int_t *last)
{
    for (size_t i = 0; i + 2 < json_array_size(ids); i += 3) {
        json_int_t first = json_integer_value(json_array_get(ids, i)) + by;
        json_int_t count = json_integer_value(json_array_get(ids, i + 1));
        json_int_t step = json_integer_value(json_array_get(ids, i + 2));
        json_array_set_new(ids, i, json_integer(first));
        *last = first + (count - 1) * step > *last ? first + (count - 1) * step : *last;
    }
}

/* Appends a profile's kernels; *next: the first id that is free. */
static void take(json_t *into, json_t *from, json_int_t *next)
{
    json_t *kernels = json_object_get(into, "kernels"), *run = json_object_get(into, "run"), *k;
    const json_t *other = json_object_get(from, "run");
    json_int_t by = *next, last = *next - 1;
    size_t i, g;
    json_array_foreach(json_object_get(from, "kernels"), i, k)
    {
        json_t *group;
        set(k, "first_id", number(k, "first_id") + by);
        json_array_foreach(json_object_get(k, "groups"), g, group)
            move_ids(json_object_get(group, "ids"), by, &last);
        last = number(k, "first_id") > last ? number(k, "first_id") : last;
        json_object_set(k, "process", json_object_get(other, "program"));
        if (into != from)
            json_array_append(kernels, k);
    }
    *next = last + 1;
    if (into == from)
        return;
    set(run, "launches", number(run, "launches") + number(other, "launches"));
    if (!json_is_true(json_object_get(other, "complete")))
        json_object_set_new(run, "complete", json_false());
    json_t *lost = json_object_get(other, "under_way");
    if (lost && !json_object_get(run, "under_way"))
        json_object_set(run, "under_way", lost);
}

hw_status hw_report_join(const char *const *paths, size_t n, const char *out, hw_diag *d)
{
    json_t *all = NULL;
    json_int_t next = 0;
    hw_status s = HW_OK;
    for (size_t i = 0; i < n && s == HW_OK; i++) {
        json_error_t e;
        json_t *o = json_load_file(paths[i], JSON_REJECT_DUPLICATES, &e);
        if (!json_is_object(o))
            s = hw_fail(d, HW_E_CORRUPT, "%s:%d: %s", paths[i], e.line, e.text);
        else
            take(all ? all : o, o, &next);
        if (all)
            json_decref(o);
        else
            all = o;
    }
    if (s == HW_OK && json_dump_file(all, out, JSON_COMPACT) != 0)
        s = hw_fail(d, HW_E_IO, "cannot write '%s': %s", out, strerror(errno));
    json_decref(all);
    return s;
}
