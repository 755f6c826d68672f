/* SPDX-License-Identifier: Apache-2.0
 *
 * Types, constants and small pieces of LLVM IR that the whole code generator uses.
 */
#include "gen.h"

/* ---- types ---- */
unsigned hwg_lanes(hw_lv v)
{
    hw_lt t = LLVMTypeOf(v);
    return LLVMGetTypeKind(t) == LLVMVectorTypeKind ? LLVMGetVectorSize(t) : 1;
}

hw_lt hwg_elem(hw_lv v)
{
    hw_lt t = LLVMTypeOf(v);
    return LLVMGetTypeKind(t) == LLVMVectorTypeKind ? LLVMGetElementType(t) : t;
}

hw_lt hwg_vec_of(hw_lt elem, unsigned lanes)
{
    return lanes == 1 ? elem : LLVMVectorType(elem, lanes);
}

hw_lt hwg_like(hw_lv v, hw_lt elem)
{
    return hwg_vec_of(elem, hwg_lanes(v));
}

hw_lt hwg_int(hw_gen *g, unsigned bits)
{
    return LLVMIntTypeInContext(g->cx, bits);
}

hw_lt hwg_reg_type(hw_gen *g, unsigned type)
{
    return hwg_int(g, hw_wir_bits((hw_wir_type)type));
}

/* ---- constants ---- */
static hw_lv splat_const(hw_lt t, hw_lv k)
{
    if (LLVMGetTypeKind(t) != LLVMVectorTypeKind)
        return k;
    unsigned n = LLVMGetVectorSize(t);
    hw_lv x[256];
    HW_CHECK(n <= HW_COUNTOF(x));
    for (unsigned i = 0; i < n; i++)
        x[i] = k;
    return LLVMConstVector(x, n);
}

static hw_lt elem_of(hw_lt t)
{
    return LLVMGetTypeKind(t) == LLVMVectorTypeKind ? LLVMGetElementType(t) : t;
}

hw_lv hwg_k(hw_lt t, uint64_t bits)
{
    return splat_const(t, LLVMConstInt(elem_of(t), bits, false));
}

hw_lv hwg_kf(hw_lt t, double x)
{
    return splat_const(t, LLVMConstReal(elem_of(t), x));
}

hw_lv hwg_klike(hw_lv v, uint64_t bits)
{
    return hwg_k(LLVMTypeOf(v), bits);
}

hw_lv hwg_kvec(hw_gen *g, hw_lt elem, const int64_t *x, unsigned n)
{
    (void)g;
    hw_lv k[256];
    HW_CHECK(n <= HW_COUNTOF(k));
    for (unsigned i = 0; i < n; i++)
        k[i] = LLVMConstInt(elem, (uint64_t)(x ? x[i] : 0), true);
    return LLVMConstVector(k, n);
}

/* ---- vectors ---- */
hw_lv hwg_splat(hw_gen *g, hw_lv scalar, unsigned lanes)
{
    if (lanes == 1)
        return scalar;
    hw_lt t = hwg_vec_of(LLVMTypeOf(scalar), lanes);
    if (LLVMIsConstant(scalar))
        return splat_const(t, scalar);
    hw_lv one =
        LLVMBuildInsertElement(g->b, LLVMGetPoison(t), scalar, LLVMConstInt(g->i32, 0, false), "");
    return LLVMBuildShuffleVector(g->b, one, LLVMGetPoison(t),
                                  LLVMConstNull(LLVMVectorType(g->i32, lanes)), "");
}

hw_lv hwg_mask_vec(hw_gen *g, hw_lv mask)
{
    return b_bitcast(g, mask, LLVMVectorType(g->i1, GEN_LANES));
}

hw_lv hwg_vec_mask(hw_gen *g, hw_lv bits)
{
    return b_bitcast(g, bits, g->i32);
}

hw_lv hwg_shuffle(hw_gen *g, hw_lv a, hw_lv b, const int *idx, unsigned n)
{
    hw_lv k[256];
    HW_CHECK(n <= HW_COUNTOF(k));
    for (unsigned i = 0; i < n; i++)
        k[i] = idx[i] < 0 ? LLVMGetPoison(g->i32)
                          : LLVMConstInt(g->i32, (unsigned long long)idx[i], false);
    return LLVMBuildShuffleVector(g->b, a, b ? b : LLVMGetPoison(LLVMTypeOf(a)),
                                  LLVMConstVector(k, n), "");
}

/* ---- intrinsics ---- */
hw_lv hwg_intr(hw_gen *g, const char *name, unsigned ntypes, hw_lt *types, unsigned n, hw_lv *a)
{
    unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
    HW_CHECK(id != 0);
    hw_lv f = LLVMGetIntrinsicDeclaration(g->mod, id, types, ntypes);
    return LLVMBuildCall2(g->b, LLVMIntrinsicGetType(g->cx, id, types, ntypes), f, a, n, "");
}

hw_lv hwg_intr1(hw_gen *g, const char *name, hw_lv a)
{
    hw_lt t = LLVMTypeOf(a);
    return hwg_intr(g, name, 1, &t, 1, &a);
}

hw_lv hwg_intr2(hw_gen *g, const char *name, hw_lv a, hw_lv b)
{
    hw_lt t = LLVMTypeOf(a);
    return hwg_intr(g, name, 1, &t, 2, (hw_lv[]){ a, b });
}

hw_lv hwg_intr3(hw_gen *g, const char *name, hw_lv a, hw_lv b, hw_lv c)
{
    hw_lt t = LLVMTypeOf(a);
    return hwg_intr(g, name, 1, &t, 3, (hw_lv[]){ a, b, c });
}

/* ---- memory ---- */
hw_lv hwg_gep(hw_gen *g, hw_lv base, hw_lv bytes)
{
    return LLVMBuildGEP2(g->b, g->i8, base, &bytes, 1, "");
}

hw_lv hwg_gep_k(hw_gen *g, hw_lv base, int64_t bytes)
{
    return bytes ? hwg_gep(g, base, LLVMConstInt(g->i64, (uint64_t)bytes, true)) : base;
}

hw_lv hwg_load(hw_gen *g, hw_lt t, hw_lv p, unsigned align)
{
    hw_lv x = LLVMBuildLoad2(g->b, t, p, "");
    LLVMSetAlignment(x, align);
    return x;
}

hw_lv hwg_store(hw_gen *g, hw_lv x, hw_lv p, unsigned align)
{
    hw_lv s = LLVMBuildStore(g->b, x, p);
    LLVMSetAlignment(s, align);
    return s;
}

static LLVMBasicBlockRef enter_entry(hw_gen *g)
{
    hw_lb here = LLVMGetInsertBlock(g->b);
    LLVMPositionBuilderAtEnd(g->b, g->entry);
    return here;
}

hw_lv hwg_alloca_raw(hw_gen *g, hw_lt t, unsigned align, const char *name)
{
    hw_lb here = enter_entry(g);
    hw_lv a = LLVMBuildAlloca(g->b, t, name);
    if (align)
        LLVMSetAlignment(a, align);
    LLVMPositionBuilderAtEnd(g->b, here);
    return a;
}

hw_lv hwg_alloca(hw_gen *g, hw_lt t, const char *name)
{
    hw_lv a = hwg_alloca_raw(g, t, 0, name);
    hw_lb here = LLVMGetInsertBlock(g->b);
    hwg_at(g, g->each);
    LLVMBuildStore(g->b, LLVMConstNull(t), a);
    LLVMPositionBuilderAtEnd(g->b, here);
    return a;
}

hw_lv hwg_frame_addr(hw_gen *g, size_t offset)
{
    return hwg_gep_k(g, g->frame, (int64_t)offset);
}

hw_lv hwg_frame(hw_gen *g, size_t offset, hw_lt t)
{
    return LLVMBuildLoad2(g->b, t, hwg_frame_addr(g, offset), "");
}

/* What the warps of a block differ in. */
static bool differs(size_t offset)
{
    static const size_t fields[] = { offsetof(hw_frame, warp), offsetof(hw_frame, tid),
                                     offsetof(hw_frame, local), offsetof(hw_frame, save),
                                     offsetof(hw_frame, stack) };
    for (size_t i = 0; i < HW_COUNTOF(fields); i++)
        if (fields[i] == offset)
            return true;
    return false;
}

static hw_lv frame_of_warp(hw_gen *g, size_t offset, hw_lt t)
{
    hw_lb here = LLVMGetInsertBlock(g->b);
    hwg_at(g, g->each);
    hw_lv x = offset == offsetof(hw_frame, warp) && g->warp
                  ? LLVMBuildLoad2(g->b, g->i32, g->warp, "")
                  : hwg_frame(g, offset, t);
    hwg_at(g, here);
    return x;
}

hw_lv hwg_frame_once(hw_gen *g, size_t offset, hw_lt t)
{
    /* a pointer's second half is free: there the same field is kept as a pointer */
    hw_lv *slot = &g->once[offset / 4 + (t == g->ptr)];
    if (!*slot && differs(offset))
        *slot = frame_of_warp(g, offset, t);
    if (!*slot) {
        hw_lb here = enter_entry(g);
        *slot = LLVMBuildLoad2(g->b, t, hwg_gep_k(g, g->own, (int64_t)offset), "");
        LLVMPositionBuilderAtEnd(g->b, here);
    }
    return *slot;
}

/* ---- blocks ---- */
hw_lb hwg_block(hw_gen *g, const char *name)
{
    return LLVMAppendBasicBlockInContext(g->cx, g->fn, name);
}

void hwg_at(hw_gen *g, hw_lb b)
{
    LLVMPositionBuilderAtEnd(g->b, b);
}

static void branch_weights(hw_gen *g, hw_lv br, uint32_t yes, uint32_t no)
{
    LLVMMetadataRef w[3] = {
        LLVMMDStringInContext2(g->cx, "branch_weights", 14),
        LLVMValueAsMetadata(LLVMConstInt(g->i32, yes, false)),
        LLVMValueAsMetadata(LLVMConstInt(g->i32, no, false)),
    };
    unsigned kind = LLVMGetMDKindIDInContext(g->cx, "prof", 4);
    LLVMSetMetadata(br, kind, LLVMMetadataAsValue(g->cx, LLVMMDNodeInContext2(g->cx, w, 3)));
}

void hwg_likely(hw_gen *g, hw_lv cond, hw_lb yes, hw_lb no)
{
    branch_weights(g, LLVMBuildCondBr(g->b, cond, yes, no), 4000, 1);
}

void hwg_unlikely(hw_gen *g, hw_lv cond, hw_lb yes, hw_lb no)
{
    branch_weights(g, LLVMBuildCondBr(g->b, cond, yes, no), 1, 4000);
}

hw_lv hwg_extern(hw_gen *g, const char *name, hw_lt type)
{
    hw_lv f = LLVMGetNamedFunction(g->mod, name);
    return f ? f : LLVMAddFunction(g->mod, name, type);
}

void hwg_fail(hw_gen *g, hw_status s, const char *fmt, ...)
{
    if (g->failed != HW_OK)
        return;
    va_list ap;
    va_start(ap, fmt);
    const char *text = hw_arena_vprintf(g->arena, fmt, ap);
    va_end(ap);
    g->failed = hw_fail(g->d, s, "%s: %s", g->f ? g->f->name : "kernel", text);
}
