/* SPDX-License-Identifier: Apache-2.0
 *
 * Numbers of launches in the file. Launches end in any order, and those of kernels begin in any; what the
 * file says of them is in one: the host's in the order in which it asked, then those of kernels by the
 * host's launch they come from, in the order in which that one's begin.
 */
#include "model.h"

#include <stdlib.h>

enum {
    IDS_MOST = 1 << 22
}; /* of a group that are put in order; more came in order or stay as they came */

static int ascending(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static void put(hw_arena *a, id_list *l, uint64_t id)
{
    hw_vec_push(a, l, id);
}

static void spread(hw_arena *a, const group *g, id_list *out)
{
    for (size_t k = 0; k + 2 < g->ranges.len; k += 3)
        for (uint64_t i = 0; i < g->ranges.ptr[k + 1]; i++)
            put(a, out, g->ranges.ptr[k] + i * g->ranges.ptr[k + 2]);
}

static void see_host(numbering *n, uint64_t id, uint64_t times, uint64_t step)
{
    uint64_t last = id + (times - 1) * step;
    if (!(id & HW_MODEL_NESTED) && last >= n->hosts)
        n->hosts = last + 1;
}

numbering hw_model_numbering(hw_arena *a, const hw_model *m)
{
    numbering n = { 0 };
    for (const entry *e = m->first; e; e = e->next) {
        see_host(&n, e->first_id, 1, 0);
        for (size_t i = 0; i < e->groups.len; i++) {
            const group *g = e->groups.ptr[i];
            if (g->ranges.ptr[0] & HW_MODEL_NESTED)
                spread(a, g, &n.nested);
            for (size_t k = 0; k + 2 < g->ranges.len; k += 3)
                see_host(&n, g->ranges.ptr[k], g->ranges.ptr[k + 1], g->ranges.ptr[k + 2]);
        }
    }
    if (n.nested.len)
        qsort(n.nested.ptr, n.nested.len, sizeof *n.nested.ptr, ascending);
    return n;
}

uint64_t hw_model_number(const numbering *n, uint64_t id)
{
    if (!(id & HW_MODEL_NESTED))
        return id;
    size_t lo = 0, hi = n->nested.len;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (n->nested.ptr[mid] < id)
            lo = mid + 1;
        else
            hi = mid;
    }
    return n->hosts + lo;
}

bool hw_model_ids_extend(hw_arena *a, id_list *ranges, uint64_t id)
{
    uint64_t *last = ranges->len ? &ranges->ptr[ranges->len - 3] : NULL;
    if (last && last[1] == 1 && id > last[0])
        last[2] = id - last[0];
    if (last && id == last[0] + last[1] * last[2]) {
        last[1]++;
        return false;
    }
    put(a, ranges, id);
    put(a, ranges, 1);
    put(a, ranges, 1);
    return true;
}

id_list hw_model_ids(hw_arena *a, const numbering *n, const group *g)
{
    id_list all = { 0 }, ranges = { 0 };
    if (g->launches > IDS_MOST && !(g->ranges.ptr[0] & HW_MODEL_NESTED))
        return g->ranges;
    spread(a, g, &all);
    for (size_t i = 0; i < all.len; i++)
        all.ptr[i] = hw_model_number(n, all.ptr[i]);
    qsort(all.ptr, all.len, sizeof *all.ptr, ascending);
    for (size_t i = 0; i < all.len; i++)
        hw_model_ids_extend(a, &ranges, all.ptr[i]);
    return ranges;
}
