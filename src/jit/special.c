/* SPDX-License-Identifier: Apache-2.0
 *
 * What a lane knows without reading memory: special registers, addresses of parameters, symbols,
 * local and shared memory; and calls of C functions through frame.call.
 */
#include "ops.h"

hw_lv hwg_callback(hw_gen *g, size_t offset, hw_lt type, hw_lv *a, unsigned n)
{
    hw_lv table = hwg_frame_once(g, offsetof(hw_frame, call), g->ptr);
    hw_lv fn = LLVMBuildLoad2(g->b, g->ptr, hwg_gep_k(g, table, (int64_t)offset), "");
    return LLVMBuildCall2(g->b, type, fn, a, n, "");
}

void hwg_fault(hw_gen *g, unsigned status, uint32_t loc)
{
    hw_lt args[] = { g->ptr, g->i32, g->i32 };
    hw_lv a[] = { g->frame, hwg_k(g->i32, status), hwg_k(g->i32, loc) };
    hwg_callback(g, offsetof(hw_callbacks, fault), LLVMFunctionType(g->voidt, args, 3, false), a,
                 3);
    LLVMBuildUnreachable(g->b);
}

/* ---- special registers ---- */

typedef hw_lv sreg_fn(hw_gen *g); /* the value, or lane 0's */

static hw_lv frame32(hw_gen *g, size_t offset)
{
    return hwg_frame_once(g, offset, g->i32);
}

/* Lane 0's thread number in the block. */
static hw_lv first_thread(hw_gen *g)
{
    return b_shl(g, frame32(g, offsetof(hw_frame, warp)), hwg_k(g->i32, 5));
}

static hw_lv tid_x(hw_gen *g)
{
    return b_urem(g, first_thread(g), hwg_k(g->i32, g->v->block[0]));
}

static hw_lv tid_y(hw_gen *g)
{
    hw_lv row = b_udiv(g, first_thread(g), hwg_k(g->i32, g->v->block[0]));
    return b_urem(g, row, hwg_k(g->i32, g->v->block[1]));
}

static hw_lv tid_z(hw_gen *g)
{
    return b_udiv(g, first_thread(g), hwg_k(g->i32, g->v->block[0] * g->v->block[1]));
}

#define NTID(name, i)                         \
    static hw_lv name(hw_gen *g)              \
    {                                         \
        return hwg_k(g->i32, g->v->block[i]); \
    }
NTID(ntid_x, 0)
NTID(ntid_y, 1)
NTID(ntid_z, 2)

#define FIELD(name, field)                            \
    static hw_lv name(hw_gen *g)                      \
    {                                                 \
        return frame32(g, offsetof(hw_frame, field)); \
    }
FIELD(ctaid_x, ctaid[0])
FIELD(ctaid_y, ctaid[1])
FIELD(ctaid_z, ctaid[2])
FIELD(nctaid_x, nctaid[0])
FIELD(nctaid_y, nctaid[1])
FIELD(nctaid_z, nctaid[2])
FIELD(warpid, warp)
FIELD(nwarpid, nwarps)
FIELD(smid, smid)
FIELD(nsmid, nsmid)
FIELD(dynamic_smem, dynamic_shared)
FIELD(total_smem, total_shared)
FIELD(cluster_x, cluster[0])
FIELD(cluster_y, cluster[1])
FIELD(cluster_z, cluster[2])
FIELD(cluster_explicit, explicit_cluster)
FIELD(envreg1, envreg[0])
FIELD(envreg2, envreg[1])

static hw_lv gridid(hw_gen *g)
{
    return hwg_frame_once(g, offsetof(hw_frame, gridid), g->i64);
}

static hw_lv local_bytes(hw_gen *g)
{
    return hwg_frame_once(g, offsetof(hw_frame, local_stride), g->i64);
}

static hw_lv zero(hw_gen *g)
{
    return hwg_k(g->i32, 0);
}

static hw_lv cluster_base(hw_gen *g)
{
    return hwg_frame_once(g, offsetof(hw_frame, cluster_base), g->i64);
}

/* clang-format off */
static sreg_fn *const scalars[HW_SR_COUNT] = {
    [HW_SR_TID_X] = tid_x,       [HW_SR_TID_Y] = tid_y,       [HW_SR_TID_Z] = tid_z,
    [HW_SR_NTID_X] = ntid_x,     [HW_SR_NTID_Y] = ntid_y,     [HW_SR_NTID_Z] = ntid_z,
    [HW_SR_CTAID_X] = ctaid_x,   [HW_SR_CTAID_Y] = ctaid_y,   [HW_SR_CTAID_Z] = ctaid_z,
    [HW_SR_NCTAID_X] = nctaid_x, [HW_SR_NCTAID_Y] = nctaid_y, [HW_SR_NCTAID_Z] = nctaid_z,
    [HW_SR_LANEID] = zero,       [HW_SR_WARPID] = warpid,     [HW_SR_NWARPID] = nwarpid,
    [HW_SR_SMID] = smid,         [HW_SR_NSMID] = nsmid,       [HW_SR_GRIDID] = gridid,
    [HW_SR_DYNAMIC_SMEM_SIZE] = dynamic_smem, [HW_SR_TOTAL_SMEM_SIZE] = total_smem,
    [HW_SR_LOCAL_BYTES] = local_bytes,
    [HW_SR_ENVREG1] = envreg1,   [HW_SR_ENVREG2] = envreg2,
    [HW_SR_CLUSTER_NCTAID_X] = cluster_x, [HW_SR_CLUSTER_NCTAID_Y] = cluster_y, [HW_SR_CLUSTER_NCTAID_Z] = cluster_z,
    [HW_SR_CLUSTER_EXPLICIT] = cluster_explicit, [HW_SR_CLUSTER_BASE] = cluster_base,
};
/* clang-format on */

/* Known lane vectors of special registers (as 32-bit values). */
static bool lane_vector(uint64_t sreg, int64_t *x)
{
    for (unsigned l = 0; l < GEN_LANES; l++) {
        uint32_t bit = 1u << l;
        int64_t eq = bit, lt = bit - 1;
        switch (sreg) {
        case HW_SR_LANEID:
            x[l] = l;
            break;
        case HW_SR_LANEMASK_EQ:
            x[l] = eq;
            break;
        case HW_SR_LANEMASK_LT:
            x[l] = lt;
            break;
        case HW_SR_LANEMASK_LE:
            x[l] = lt | eq;
            break;
        case HW_SR_LANEMASK_GE:
            x[l] = (uint32_t)~lt;
            break;
        case HW_SR_LANEMASK_GT:
            x[l] = (uint32_t)~(lt | eq);
            break;
        default:
            return false;
        }
    }
    return true;
}

/* tid[dim] of all lanes from the frame: block shapes whose rows do not fit warps. */
static hw_lv tid_vector(hw_gen *g, unsigned dim)
{
    hw_lv tid = hwg_frame_once(g, offsetof(hw_frame, tid), g->ptr);
    hw_lv p = hwg_gep_k(g, tid, (int64_t)dim * GEN_LANES * 4);
    return hwg_load(g, LLVMVectorType(g->i32, GEN_LANES), p, 4);
}

WHOLE(sreg)
{
    if (!hwg_wanted(in->dst[0]))
        return;
    const hw_shape *to = &g->an->shape[in->dst[0].reg];
    int64_t known[GEN_LANES];
    bool wide = hwg_dst_type(g, in->dst[0]) == HW_T_I64;
    hw_lanes x = { .kind = to->kind, .c = to->c, .d = to->d };
    if (to->kind != HW_SHAPE_VARYING) {
        bool constant = lane_vector(in->imm, known);
        HW_CHECK(constant || scalars[in->imm]);
        x.s = constant ? hwg_k(g->i32, (uint64_t)known[0]) : scalars[in->imm](g);
    } else if (lane_vector(in->imm, known)) {
        x.v = hwg_kvec(g, g->i32, known, GEN_LANES);
    } else if (in->imm <= HW_SR_TID_Z) {
        x.v = tid_vector(g, (unsigned)in->imm - HW_SR_TID_X);
    } else {
        x = hwg_uniform(scalars[in->imm](g));
    }
    hw_lv *value = x.kind == HW_SHAPE_VARYING ? &x.v : &x.s;
    if (wide && hwg_elem(*value) == g->i32)
        *value = b_zext(g, *value, g->i64);
    else if (!wide && hwg_elem(*value) == g->i64)
        *value = b_trunc(g, *value, g->i32);
    hwg_write(g, in->dst[0], x);
}

WHOLE(clock)
{
    hw_lt args[] = { g->ptr, g->i32 };
    hw_lv a[] = { g->frame, hwg_k(g->i32, in->imm) };
    hw_lv t =
        hwg_callback(g, offsetof(hw_callbacks, clock), LLVMFunctionType(g->i64, args, 2, 0), a, 2);
    if (hwg_wanted(in->dst[0]) && hwg_dst_type(g, in->dst[0]) == HW_T_I32)
        t = b_trunc(g, t, g->i32);
    hwg_write(g, in->dst[0], hwg_uniform(t));
}

/* ---- addresses ---- */

static hw_lv address_field(hw_gen *g, size_t offset, uint64_t add)
{
    return b_add(g, hwg_frame_once(g, offset, g->i64), hwg_k(g->i64, add));
}

WHOLE(param_addr)
{
    hwg_write(g, in->dst[0], hwg_uniform(address_field(g, offsetof(hw_frame, params), in->imm)));
}

WHOLE(symbol)
{
    hw_lv table = hwg_frame_once(g, offsetof(hw_frame, symbols), g->ptr);
    hw_lv x = hwg_load(g, g->i64, hwg_gep_k(g, table, (int64_t)in->imm * 8), 8);
    hwg_write(g, in->dst[0], hwg_uniform(x));
}

WHOLE(func_addr)
{
    hwg_write(g, in->dst[0], hwg_uniform(hwg_k(g->i64, in->imm + 1)));
}

WHOLE(shared_base)
{
    hwg_write(g, in->dst[0], hwg_uniform(address_field(g, offsetof(hw_frame, shared), in->imm)));
}

WHOLE(local_addr)
{
    if (!hwg_wanted(in->dst[0]))
        return;
    const hw_shape *to = &g->an->shape[in->dst[0].reg];
    hw_lv s = address_field(g, offsetof(hw_frame, local), in->imm);
    hw_lv used =
        g->local_used ? g->local_used : hwg_frame_once(g, offsetof(hw_frame, local_used), g->i64);
    s = b_add(g, s, used);
    hw_lanes x = { .kind = HW_SHAPE_AFFINE, .s = s, .c = to->c, .d = to->d };
    x.r = hwg_frame_once(g, offsetof(hw_frame, local_stride), g->i64);
    if (to->kind == HW_SHAPE_VARYING) {
        int64_t *lanes = HW_NEW_N(g->arena, int64_t, GEN_LANES);
        for (unsigned l = 0; l < GEN_LANES; l++)
            lanes[l] = l;
        x.c = NULL;
        x.d = lanes;
    }
    hwg_write(g, in->dst[0], x);
}

/* Is the address in [base, base + size)? */
static hw_lv within(hw_gen *g, hw_lv a, hw_lv base, hw_lv size)
{
    unsigned n = hwg_lanes(a);
    hw_lv off = b_sub(g, a, hwg_splat(g, base, n));
    return b_icmp(g, LLVMIntULT, off, hwg_splat(g, size, n));
}

LANE(isspace)
{
    hw_lv shared = within(g, a[0], hwg_frame_once(g, offsetof(hw_frame, shared), g->i64),
                          b_zext(g, frame32(g, offsetof(hw_frame, total_shared)), g->i64));
    hw_lv stride = hwg_frame_once(g, offsetof(hw_frame, local_stride), g->i64);
    hw_lv local = within(g, a[0], hwg_frame_once(g, offsetof(hw_frame, local), g->i64),
                         b_shl(g, stride, hwg_k(g->i64, 5)));
    if (in->space == HW_SPACE_SHARED)
        return shared;
    if (in->space == HW_SPACE_LOCAL)
        return local;
    if (in->space == HW_SPACE_PARAM)
        return within(g, a[0], hwg_frame_once(g, offsetof(hw_frame, params), g->i64),
                      hwg_k(g->i64, g->m->param_bytes));
    return b_not(g, b_or(g, shared, local));
}
