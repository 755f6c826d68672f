/* SPDX-License-Identifier: Apache-2.0
 *
 * Accesses of 16 bytes a lane that no other processor may see in parts: one aligned vector access,
 * which x86 processors with AVX carry out as one, for the warp's one address or for lane after lane.
 */
#include "access.h"

enum { PAIR = 16 };

typedef struct lane_pair {
    const hw_access *a;
    hw_lv low, high, addresses; /* memory: 32 of each */
    bool store;
} lane_pair;

static hw_lt pair_type(hw_gen *g)
{
    return LLVMVectorType(g->i64, 2);
}

/* Volatile, or LLVM may take it apart. */
static hw_lv load_pair(hw_gen *g, hw_lv p)
{
    hw_lv x = hwg_load(g, pair_type(g), p, PAIR);
    LLVMSetVolatile(x, true);
    return x;
}

static void store_pair(hw_gen *g, hw_lv low, hw_lv high, hw_lv p)
{
    hw_lv x = LLVMGetPoison(pair_type(g));
    x = LLVMBuildInsertElement(g->b, x, low, hwg_k(g->i32, 0), "");
    x = LLVMBuildInsertElement(g->b, x, high, hwg_k(g->i32, 1), "");
    LLVMSetVolatile(hwg_store(g, x, p, PAIR), true);
}

static void move_lane(hw_gen *g, hw_lv lane, void *ctx)
{
    const lane_pair *s = ctx;
    hw_lv at = b_shl(g, b_zext(g, lane, g->i64), hwg_k(g->i64, 3));
    hw_lv low = hwg_gep(g, s->low, at), high = hwg_gep(g, s->high, at);
    hw_lv to = hwg_load(g, g->i64, hwg_gep(g, s->addresses, at), 8);
    hw_lv p = hwg_pointer(g, s->a, to, 0);
    if (s->store) {
        store_pair(g, hwg_load(g, g->i64, low, 8), hwg_load(g, g->i64, high, 8), p);
        return;
    }
    hw_lv x = load_pair(g, p);
    hwg_store(g, LLVMBuildExtractElement(g->b, x, hwg_k(g->i32, 0), ""), low, 8);
    hwg_store(g, LLVMBuildExtractElement(g->b, x, hwg_k(g->i32, 1), ""), high, 8);
}

static lane_pair lanes_of(hw_gen *g, const hw_access *a, bool store)
{
    hw_lv addresses = hwg_scratch(g);
    hwg_store(g, hwg_address_vector(g, a), addresses, 64);
    return (lane_pair){ a, hwg_gep_k(g, addresses, 8 * GEN_LANES),
                        hwg_gep_k(g, addresses, 16 * GEN_LANES), addresses, store };
}

void hwg_load_whole(hw_gen *g, const hw_access *a, hw_lv *units)
{
    if (a->addr.kind == HW_SHAPE_UNIFORM) {
        hw_lv x = load_pair(g, hwg_pointer(g, a, a->addr.s, 0));
        for (unsigned k = 0; k < 2; k++)
            units[k] = LLVMBuildExtractElement(g->b, x, hwg_k(g->i32, k), "");
        return;
    }
    lane_pair s = lanes_of(g, a, false);
    hw_lt t = LLVMVectorType(g->i64, GEN_LANES);
    hwg_lane_loop(g, g->exec, move_lane, &s);
    units[0] = hwg_load(g, t, s.low, 64);
    units[1] = hwg_load(g, t, s.high, 64);
}

void hwg_store_whole(hw_gen *g, const hw_access *a, const hw_lv *units)
{
    if (a->addr.kind == HW_SHAPE_UNIFORM) {
        store_pair(g, units[0], units[1], hwg_pointer(g, a, a->addr.s, 0));
        return;
    }
    lane_pair s = lanes_of(g, a, true);
    hwg_store(g, units[0], s.low, 64);
    hwg_store(g, units[1], s.high, 64);
    hwg_lane_loop(g, g->exec, move_lane, &s);
}
