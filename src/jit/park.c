/* SPDX-License-Identifier: Apache-2.0
 *
 * Lanes of a warp that wait at barriers without the others: on devices whose lanes make progress
 * independently (PTX ISA, "bar, barrier" and "bar.warp.sync").
 *
 * The first variant bets that all live lanes of a warp come to a barrier together and leaves for the
 * slow one where they do not. There such lanes are parked: they wait at the block after the barrier
 * like any others, but frame.blocked keeps them from running until exec, or the last lane of a warp
 * barrier, takes them out of it. When all lanes that have not ended are blocked the warp is
 * suspended, to go on at the first check. On devices in lock-step the lanes that come to a barrier
 * arrive for the warp.
 */
#include "ops.h"

/* May lanes that come together wait for different ones? */
static bool leave_apart(const hw_gen *g, const hw_wir_insn *in)
{
    bool apart = false;
    for (unsigned i = 0; i < in->nsrc && i < 2; i++)
        apart |=
            in->src[i].kind == HW_V_REG && g->an->shape[in->src[i].reg].kind != HW_SHAPE_UNIFORM;
    return apart;
}

/* In a FULL copy all lanes are here. */
bool hwg_parks(const hw_gen *g, const hw_wir_insn *in)
{
    return g->rotate && hw_wir_may_part(g->an, g->block, in) &&
           (g->version == GEN_MASKED || leave_apart(g, in));
}

/* May the slow variant be entered before this instruction because lanes did not come together? */
static bool is_bet(const hw_wir_analysis *fast, uint32_t block, const hw_wir_insn *in)
{
    return hw_wir_may_part(fast, block, in) && !(in->flags & HW_I_MEETS);
}

bool hwg_parks_after(const hw_gen *g, uint32_t block)
{
    const hw_wir_block *w = &g->f->blocks.ptr[block];
    const hw_wir_insn *i = w->insns.len > 1 ? &w->insns.ptr[w->insns.len - 2] : NULL;
    return i && (i->op == HW_W_BARRIER || i->op == HW_W_BARRIER_RED || i->op == HW_W_WARPSYNC);
}

/* ---- the bet ---- */

static hw_lv live_lanes(hw_gen *g)
{
    return LLVMBuildLoad2(g->b, g->i32, g->live, "");
}

/* Do the executing lanes have one value of an operand? */
static hw_lv same(hw_gen *g, const hw_wir_insn *in, unsigned i)
{
    if (hwg_src(g, in, i).kind == HW_SHAPE_UNIFORM)
        return hwg_k(g->i1, 1);
    hw_lv v = hwg_src_vec(g, in, i), lane = b_and(g, hwg_first_lane(g, g->exec), hwg_k(g->i32, 31));
    hw_lv first = LLVMBuildExtractElement(g->b, v, lane, "");
    hw_lv equal = b_icmp(g, LLVMIntEQ, v, hwg_splat(g, first, GEN_LANES));
    return b_icmp(g, LLVMIntEQ, b_and(g, b_not(g, hwg_vec_mask(g, equal)), g->exec),
                  hwg_k(g->i32, 0));
}

/* Are all that the executing lanes wait for here? */
static hw_lv together(hw_gen *g, const hw_wir_insn *in)
{
    hw_lv none = hwg_k(g->i32, 0);
    hw_lv away = g->version == GEN_FULL ? none : b_and(g, live_lanes(g), b_not(g, g->exec));
    if (in->op == HW_W_WARPSYNC) {
        hw_lv wanted = b_and(g, hwg_src_vec(g, in, 0), hwg_splat(g, away, GEN_LANES));
        hw_lv missing = hwg_vec_mask(g, b_icmp(g, LLVMIntNE, wanted, hwg_klike(wanted, 0)));
        return b_icmp(g, LLVMIntEQ, b_and(g, missing, g->exec), none);
    }
    hw_lv ok = b_and(g, b_icmp(g, LLVMIntEQ, away, none), same(g, in, 0));
    return in->src[1].kind == HW_V_NONE ? ok : b_and(g, ok, same(g, in, 1));
}

void hwg_bet(hw_gen *g, const hw_wir_insn *in)
{
    if (!g->v->lockstep_first || !g->f->is_kernel || !is_bet(g->an, g->block, in))
        return;
    hw_lv ok = together(g, in);
    if (!LLVMIsConstant(ok)) /* else all 32 lanes are here */
        hwg_deopt(g, ok);
}

bool hwg_bet_lost_here(const hw_gen *g, const hw_wir_insn *in)
{
    return g->fast && g->v->independent && is_bet(g->fast, g->block, in);
}

bool hwg_may_park(const hw_gen *g)
{
    const hw_wir_analysis *fast = g->fast ? g->fast : g->an;
    return (g->v->independent || g->v->lockstep_first) &&
           (fast->spins_divergent || fast->waits_apart);
}

/* ---- parking ---- */

static hw_lv lane_array(hw_gen *g, hw_lv v)
{
    hw_lv p = hwg_alloca_raw(g, LLVMArrayType2(g->i32, GEN_LANES), 64, "lanes");
    hwg_store(g, v, p, 64);
    return p;
}

/* What lanes do at a place where they wait, before they go on to the next block. */
void hwg_park(hw_gen *g, const hw_wir_insn *in)
{
    hw_lt args[] = { g->ptr, g->ptr, g->ptr, g->i32 };
    LLVMBuildStore(g->b, live_lanes(g), hwg_frame_addr(g, offsetof(hw_frame, lanes)));
    LLVMBuildStore(g->b, hwg_k(g->i32, in->loc), hwg_frame_addr(g, offsetof(hw_frame, fault_loc)));
    hw_lv first = lane_array(g, hwg_src_vec(g, in, 0));
    if (in->op == HW_W_WARPSYNC) {
        hw_lt three[] = { g->ptr, g->ptr, g->i32 };
        hwg_callback(g, offsetof(hw_callbacks, sync), LLVMFunctionType(g->voidt, three, 3, false),
                     (hw_lv[]){ g->frame, first, g->exec }, 3);
        return;
    }
    bool red = in->op == HW_W_BARRIER_RED, whole = in->src[1].kind == HW_V_NONE;
    hw_lv count = whole ? LLVMConstNull(g->ptr) : lane_array(g, hwg_src_vec(g, in, 1));
    hw_lv holds = red ? hwg_vec_mask(g, hwg_src_vec(g, in, 2)) : hwg_k(g->i32, 0);
    LLVMBuildStore(g->b, hwg_k(g->i32, red ? (unsigned)in->imm + HW_BAR_POPC : HW_BAR_SYNC),
                   hwg_frame_addr(g, offsetof(hw_frame, bar_kind)));
    LLVMBuildStore(g->b, holds, hwg_frame_addr(g, offsetof(hw_frame, bar_lanes)));
    hwg_callback(g, offsetof(hw_callbacks, park), LLVMFunctionType(g->voidt, args, 4, false),
                 (hw_lv[]){ g->frame, first, count, g->exec }, 4);
}

/* At the start of a block: the result of the reduction that its lanes were parked at. */
void hwg_unpark(hw_gen *g)
{
    const hw_wir_analysis *an = g->an;
    if (!g->rotate || g->version != GEN_MASKED || an->npreds[g->block] != 1)
        return;
    uint32_t from = an->preds[g->block][0];
    const hw_wir_block *w = &g->f->blocks.ptr[from];
    const hw_wir_insn *in = w->insns.len > 1 ? &w->insns.ptr[w->insns.len - 2] : NULL;
    if (!in || in->op != HW_W_BARRIER_RED || !hw_wir_may_part(an, from, in) ||
        in->dst[0].kind != HW_V_REG)
        return;
    hw_lv v = hwg_load(g, LLVMVectorType(g->i32, GEN_LANES),
                       hwg_frame_addr(g, offsetof(hw_frame, bar_values)), 4);
    if (in->imm)
        v = b_icmp(g, LLVMIntNE, v, hwg_klike(v, 0));
    g->exec = g->mask;
    hwg_write_lanes(g, in->dst[0].reg, hwg_varying(v));
}

/* Of the lanes that wait at b, those that may go on. */
hw_lv hwg_ready(hw_gen *g, uint32_t b)
{
    hw_lv x = LLVMBuildLoad2(g->b, g->i32, g->pend[b], "");
    if (!g->rotate)
        return x;
    return b_and(g, x, b_not(g, hwg_frame(g, offsetof(hw_frame, blocked), g->i32)));
}

WHOLE(warpsync)
{
    if ((in->flags & HW_I_MEETS) && !hwg_parks(g, in))
        return; /* as long as no lane overtakes another they are together */
    /* lanes that are here run together; memory is ordered for all of them */
    LLVMBuildFence(g->b, LLVMAtomicOrderingSequentiallyConsistent, true, "");
    if (hwg_parks(g, in))
        hwg_park(g, in);
    else
        hwg_bet(g, in);
}
