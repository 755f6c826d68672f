/* SPDX-License-Identifier: Apache-2.0
 *
 * Registers: where each lives, how an operand is read in the shape the analysis gave it, and how a
 * result is written under the instruction's mask.
 */
#include "gen.h"

enum { WAITS_FOR_HOMES = 2, HOME_ALIGN = 64 };

static bool is_pred(const hw_gen *g, uint32_t reg)
{
    return g->f->regs.ptr[reg].type == HW_T_I1;
}

static hw_lt type_of(hw_gen *g, uint32_t reg)
{
    hw_lt t = hwg_reg_type(g, g->f->regs.ptr[reg].type);
    if (g->an->shape[reg].kind != HW_SHAPE_VARYING)
        return t;
    return is_pred(g, reg) ? g->i32 : LLVMVectorType(t, GEN_LANES);
}

/* Lean code of kernels that wait keeps the registers that live from block to block where they are
 * to be saved: in memory they would be anyway, and there is nothing to save and restore. */
static bool waits(const hw_gen *g)
{
    unsigned n = 0;
    for (uint32_t b = 0; b < g->an->nblocks; b++) {
        const hw_wir_block *w = &g->f->blocks.ptr[b];
        for (size_t i = 0; i < w->insns.len; i++)
            n += w->insns.ptr[i].op == HW_W_BARRIER || w->insns.ptr[i].op == HW_W_BARRIER_RED;
        n += g->an->spin_loop[b];
    }
    return n >= WAITS_FOR_HOMES;
}

static void choose_homes(hw_gen *g)
{
    g->crosses = HW_NEW_N(g->arena, bool, g->f->regs.len + 1);
    for (uint32_t i = 0; i < g->an->nlive; i++)
        g->crosses[g->an->live_reg[i]] = true;
    g->homes = g->lean && g->f->is_kernel && waits(g) ? g->crosses : NULL;
    g->masks_stay = g->homes && hwg_masks_together(g);
    g->homes_base = g->homes_bytes = g->homes_limit = 0;
    if (g->f->is_kernel)
        g->homes_base = g->homes_bytes = hwg_carried_init(g);
    if (!g->homes)
        return;
    if (g->masks_stay)
        g->homes_bytes += g->an->nblocks * (uint32_t)sizeof(uint32_t);
    g->homes_limit = (g->homes_bytes + HOME_ALIGN - 1) / HOME_ALIGN * HOME_ALIGN;
    for (uint32_t i = 0; i < g->an->nlive; i++) {
        uint32_t reg = g->an->live_reg[i];
        const hw_shape *s = &g->an->shape[reg];
        uint32_t bytes = hwg_bytes_of(type_of(g, reg));
        bytes = (bytes + HOME_ALIGN - 1) / HOME_ALIGN * HOME_ALIGN;
        g->homes_limit += s->kind == HW_SHAPE_AFFINE && s->d ? 2 * bytes : bytes;
    }
    if (g->homes_limit > g->info->save_bytes)
        g->info->save_bytes = g->homes_limit;
}

void hwg_regs_init(hw_gen *g)
{
    uint32_t n = (uint32_t)g->f->regs.len;
    choose_homes(g);
    g->regs = HW_NEW_N(g->arena, hw_gen_reg, n);
    g->index_of = HW_NEW_N(g->arena, hw_gen_index, n);
}

/* Something that lies at a place of frame.save. */
static hw_lv saved_at(hw_gen *g, uint32_t at)
{
    hw_lv base = hwg_frame_once(g, offsetof(hw_frame, save), g->ptr);
    hw_lb here = LLVMGetInsertBlock(g->b);
    hwg_at(g, g->each);
    hw_lv p = hwg_gep_k(g, base, at);
    hwg_at(g, here);
    return p;
}

hw_lv hwg_masks_home(hw_gen *g)
{
    return saved_at(g, g->homes_base);
}

static hw_lv home(hw_gen *g, hw_lt t)
{
    uint32_t bytes = hwg_bytes_of(t), align = bytes < HOME_ALIGN ? bytes : HOME_ALIGN;
    uint32_t at = (g->homes_bytes + align - 1) / align * align;
    g->homes_bytes = at + bytes;
    return saved_at(g, at);
}

/* Registers that live from block to block start as zero. Others are written before they are read: a first value would
 * only make the promotion of their slots walk the whole function for each. */
static hw_lv new_slot(hw_gen *g, uint32_t reg, hw_lt t, const char *name)
{
    if (g->homes && g->homes[reg])
        return home(g, t);
    return g->crosses[reg] ? hwg_alloca(g, t, name) : hwg_alloca_raw(g, t, 0, name);
}

static hw_lv slot(hw_gen *g, uint32_t reg)
{
    hw_gen_reg *r = &g->regs[reg];
    if (r->slot)
        return r->slot;
    const hw_shape *s = &g->an->shape[reg];
    hw_lt t = type_of(g, reg);
    const char *name = g->f->regs.ptr[reg].name ? g->f->regs.ptr[reg].name : "r";
    r->type = t;
    r->home = g->homes && g->homes[reg];
    r->slot = new_slot(g, reg, t, name);
    if (s->kind == HW_SHAPE_AFFINE && s->d)
        r->slot_r = new_slot(g, reg, t, name);
    return r->slot;
}

hw_gen_reg hwg_slots(hw_gen *g, uint32_t reg)
{
    slot(g, reg);
    return g->regs[reg];
}

/* The value of a register: 0 its slot, 1 slot_r. */
static hw_lv load_slot(hw_gen *g, uint32_t reg, unsigned which)
{
    slot(g, reg);
    hw_gen_reg *r = &g->regs[reg];
    hw_lv p = which ? r->slot_r : r->slot;
    if (!r->home)
        return LLVMBuildLoad2(g->b, r->type, p, "");
    hw_lb here = LLVMGetInsertBlock(g->b);
    if (r->cached_in != here)
        r->cached[0] = r->cached[1] = NULL;
    r->cached_in = here;
    if (!r->cached[which])
        r->cached[which] = hwg_load_home(g, r->type, p);
    return r->cached[which];
}

static void store_slot(hw_gen *g, uint32_t reg, unsigned which, hw_lv x)
{
    slot(g, reg);
    hw_gen_reg *r = &g->regs[reg];
    hw_lv p = which ? r->slot_r : r->slot;
    if (g->early && hw_bit(g->early, reg))
        hwg_store_home(g, x, hwg_place(g, reg, which));
    if (!r->home) {
        LLVMBuildStore(g->b, x, p);
        return;
    }
    hw_lb here = LLVMGetInsertBlock(g->b);
    if (r->cached_in != here)
        r->cached[0] = r->cached[1] = NULL;
    r->cached_in = here;
    r->cached[which] = x;
    hwg_store_home(g, x, p);
}

hw_lanes hwg_uniform(hw_lv s)
{
    return (hw_lanes){ .kind = HW_SHAPE_UNIFORM, .s = s };
}

hw_lanes hwg_varying(hw_lv v)
{
    return (hw_lanes){ .kind = HW_SHAPE_VARYING, .v = v };
}

/* An immediate's bits as an LLVM constant. */
static hw_lv immediate(hw_gen *g, uint64_t bits, unsigned type)
{
    return LLVMConstInt(hwg_reg_type(g, type), bits, false);
}

hw_lanes hwg_read(hw_gen *g, hw_wir_val v, unsigned type)
{
    if (v.kind != HW_V_REG)
        return hwg_uniform(immediate(g, v.imm, type));
    const hw_shape *s = &g->an->shape[v.reg];
    hw_lv x = load_slot(g, v.reg, 0);
    if (s->kind == HW_SHAPE_UNIFORM)
        return hwg_uniform(x);
    if (s->kind == HW_SHAPE_VARYING)
        return hwg_varying(is_pred(g, v.reg) ? hwg_mask_vec(g, x) : x);
    hw_lanes out = { .kind = HW_SHAPE_AFFINE, .s = x, .c = s->c, .d = s->d };
    if (s->d)
        out.r = load_slot(g, v.reg, 1);
    return out;
}

hw_lv hwg_vector(hw_gen *g, hw_lanes x, unsigned type)
{
    if (x.kind == HW_SHAPE_VARYING)
        return x.v;
    hw_lv v = hwg_splat(g, x.s, GEN_LANES);
    if (x.kind == HW_SHAPE_UNIFORM)
        return v;
    hw_lt elem = hwg_reg_type(g, type);
    if (x.c)
        v = b_add(g, v, hwg_kvec(g, elem, x.c, GEN_LANES));
    if (x.d) {
        hw_lv r = hwg_splat(g, x.r, GEN_LANES);
        v = b_add(g, v, b_mul(g, r, hwg_kvec(g, elem, x.d, GEN_LANES)));
    }
    return v;
}

unsigned hwg_src_type(const hw_gen *g, const hw_wir_insn *in, unsigned i)
{
    if (in->src[i].kind == HW_V_REG)
        return g->f->regs.ptr[in->src[i].reg].type;
    hw_wir_type t = hw_wir_src_type(in, i);
    return t == HW_T_NONE ? HW_T_I64 : t;
}

hw_lanes hwg_src(hw_gen *g, const hw_wir_insn *in, unsigned i)
{
    return hwg_read(g, in->src[i], hwg_src_type(g, in, i));
}

hw_lv hwg_src_vec(hw_gen *g, const hw_wir_insn *in, unsigned i)
{
    return hwg_vector(g, hwg_src(g, in, i), hwg_src_type(g, in, i));
}

bool hwg_wanted(hw_wir_val dst)
{
    return dst.kind == HW_V_REG;
}

unsigned hwg_dst_type(const hw_gen *g, hw_wir_val dst)
{
    return g->f->regs.ptr[dst.reg].type;
}

hw_lv hwg_first_lane(hw_gen *g, hw_lv mask)
{
    return hwg_intr(g, "llvm.cttz", 1, &g->i32, 2,
                    (hw_lv[]){ mask, LLVMConstInt(g->i1, 0, false) });
}

hw_lv hwg_last_lane(hw_gen *g, hw_lv mask)
{
    hw_lv lz =
        hwg_intr(g, "llvm.ctlz", 1, &g->i32, 2, (hw_lv[]){ mask, LLVMConstInt(g->i1, 0, false) });
    return b_xor(g, lz, hwg_k(g->i32, 31));
}

/* ---- writing ---- */

static void put(hw_gen *g, uint32_t reg, unsigned which, hw_lv x, hw_lv keep_unless)
{
    if (keep_unless)
        x = b_select(g, keep_unless, x, load_slot(g, reg, which));
    store_slot(g, reg, which, x);
}

/* The one value of x, of the lanes that execute. */
static hw_lv one_value(hw_gen *g, hw_lanes x, unsigned type)
{
    if (x.kind == HW_SHAPE_UNIFORM)
        return x.s;
    hw_lv l = b_and(g, hwg_first_lane(g, g->exec), hwg_k(g->i32, 31));
    return LLVMBuildExtractElement(g->b, hwg_vector(g, x, type), l, "");
}

static void write_varying(hw_gen *g, uint32_t reg, hw_lanes x, hw_lv merge)
{
    hw_lv v = hwg_vector(g, x, g->f->regs.ptr[reg].type);
    if (is_pred(g, reg)) {
        hw_lv m = hwg_vec_mask(g, v);
        if (merge)
            m = b_or(g, b_and(g, m, merge), b_and(g, load_slot(g, reg, 0), b_not(g, merge)));
        store_slot(g, reg, 0, m);
        return;
    }
    put(g, reg, 0, v, merge ? hwg_mask_vec(g, merge) : NULL);
}

static void write_affine(hw_gen *g, uint32_t reg, hw_lanes x, hw_lv any)
{
    slot(g, reg);
    if (x.kind == HW_SHAPE_VARYING) {
        hwg_fail(g, HW_E_INTERNAL, "a result does not have the shape of its register");
        return;
    }
    put(g, reg, 0, x.s, any);
    if (g->regs[reg].slot_r)
        put(g, reg, 1, x.r ? x.r : LLVMConstNull(LLVMTypeOf(x.s)), any);
}

static void write_reg(hw_gen *g, uint32_t reg, hw_lanes x, hw_lv merge)
{
    hw_shape_kind kind = g->an->shape[reg].kind;
    g->index_of[reg].stamp = 0;
    if (kind == HW_SHAPE_VARYING) {
        write_varying(g, reg, x, merge);
        return;
    }
    hw_lv any = merge ? b_icmp(g, LLVMIntNE, merge, hwg_k(g->i32, 0)) : NULL;
    if (kind == HW_SHAPE_AFFINE)
        write_affine(g, reg, x, any);
    else
        put(g, reg, 0, one_value(g, x, g->f->regs.ptr[reg].type), any);
}

void hwg_write_raw(hw_gen *g, uint32_t reg, hw_lanes x)
{
    write_reg(g, reg, x, NULL);
}

void hwg_write_lanes(hw_gen *g, uint32_t reg, hw_lanes x)
{
    write_reg(g, reg, x, g->exec);
}

static bool guarded(const hw_gen *g)
{
    return g->in->guard.kind == HW_V_REG;
}

static bool uniform_guard(const hw_gen *g)
{
    return g->an->shape[g->in->guard.reg].kind == HW_SHAPE_UNIFORM;
}

void hwg_write(hw_gen *g, hw_wir_val dst, hw_lanes x)
{
    if (!hwg_wanted(dst))
        return;
    bool blend = g->an->blend[g->an->first_insn[g->block] + g->index] &&
                 (g->version == GEN_MASKED || guarded(g));
    write_reg(g, dst.reg, x, blend || (guarded(g) && uniform_guard(g)) ? g->exec : NULL);
}
