/* SPDX-License-Identifier: Apache-2.0
 *
 * wir: the warp IR - what one warp does, for any ISA - and its analyses.
 *
 * Nouns
 *   module    functions and the symbols they name. Built by ptx or gcn, read by jit. Lives in one arena.
 *   function  registers, blocks, parameters. A kernel is a function without results whose arguments
 *             live in parameter space (PARAM_ADDR).
 *   register  a mutable variable of one type (I1, I8, I16, I32, I64, I128): floats are held in integer
 *             registers of their width; the operation's type says how to read them. NOT SSA: any
 *             number of definitions. One value a lane (SIMT form).
 *   block     instructions, the last of which is a terminator (flag T).
 *   insn      op, type, operands, guard. A guarded instruction acts in the lanes where the guard
 *             holds; elsewhere its destinations keep their values. Terminators carry no guard except
 *             EXIT/RET/TRAP (a guarded one falls through to target[0] in the other lanes).
 *
 * Form: SIMT. Branches test a lane's own predicate; jit makes masks of them.
 * hw_wir_verify (verify.c) states every rule in words; jit may assume a verified module.
 * What is known of a function beyond its instructions: hw_wir_analysis.h, included at the end.
 */
#ifndef HW_WIR_H
#define HW_WIR_H

#include "hw_base.h"
#include "hw_wir_helper.h"
#include "hw_wir_tensor.h"

typedef enum hw_wir_type {
    HW_T_NONE,
    HW_T_I1, /* predicate */
    HW_T_I8,
    HW_T_I16,
    HW_T_I32,
    HW_T_I64,
    HW_T_I128,
    HW_T_F16,
    HW_T_BF16,
    HW_T_F32,
    HW_T_F64,
    HW_T_V2F16, /* in a 32-bit register */
    HW_T_V2BF16,
    HW_T_V2I16,
    HW_T_V4I8,
    HW_T_COUNT
} hw_wir_type;

unsigned hw_wir_bits(hw_wir_type t);        /* of a register that holds it; 1 for I1 */
hw_wir_type hw_wir_reg_type(hw_wir_type t); /* the register type: I1, I8, I16, I32, I64, I128 */
const char *hw_wir_type_name(hw_wir_type t);

typedef enum hw_wir_op {
#define HW_WIR(name, nd, ns, flags, text) HW_W_##name,
#include "wir.def"
#undef HW_WIR
    HW_W_COUNT
} hw_wir_op;

enum { HW_WF_P = 1, HW_WF_M = 2, HW_WF_X = 4, HW_WF_T = 8, HW_WF_S = 16, HW_WF_E = 32 };

typedef struct hw_wir_op_info {
    const char *name, *text;
    int8_t ndst, nsrc; /* -1: any */
    uint8_t flags;
} hw_wir_op_info;
extern const hw_wir_op_info hw_wir_ops[HW_W_COUNT];

typedef enum hw_wir_sreg {
#define HW_SREG(name, type, shape) HW_SR_##name,
#include "sreg.def"
#undef HW_SREG
    HW_SR_COUNT
} hw_wir_sreg;

/* clang-format off */
typedef enum hw_wir_cond { /* floats: EQ..GE ordered, EQU..GEU unordered, NUM, NAN */
    HW_C_EQ, HW_C_NE, HW_C_LT_S, HW_C_LE_S, HW_C_GT_S, HW_C_GE_S,
    HW_C_LT_U, HW_C_LE_U, HW_C_GT_U, HW_C_GE_U,
    HW_C_FEQ, HW_C_FNE, HW_C_FLT, HW_C_FLE, HW_C_FGT, HW_C_FGE,
    HW_C_FEQU, HW_C_FNEU, HW_C_FLTU, HW_C_FLEU, HW_C_FGTU, HW_C_FGEU,
    HW_C_FNUM, HW_C_FNAN, HW_C_COUNT
} hw_wir_cond;

typedef enum { HW_ROUND_N, HW_ROUND_Z, HW_ROUND_M, HW_ROUND_P, HW_ROUND_NA /* ties away */ } hw_wir_round;
typedef enum { HW_SHFL_UP, HW_SHFL_DOWN, HW_SHFL_BFLY, HW_SHFL_IDX } hw_wir_shfl;
typedef enum hw_wir_class {
    HW_CLASS_FINITE = 1, HW_CLASS_INFINITE = 2, HW_CLASS_NUMBER = 4, HW_CLASS_NAN = 8,
    HW_CLASS_NORMAL = 16, HW_CLASS_SUBNORMAL = 32
} hw_wir_class;

typedef enum hw_wir_space {
    HW_SPACE_GENERIC,
    HW_SPACE_GLOBAL,
    HW_SPACE_SHARED,
    HW_SPACE_LOCAL,
    HW_SPACE_CONST,
    HW_SPACE_PARAM,
    HW_SPACE_COUNT
} hw_wir_space;

typedef enum hw_wir_atom {
    HW_ATOM_ADD, HW_ATOM_MIN_S, HW_ATOM_MIN_U, HW_ATOM_MAX_S, HW_ATOM_MAX_U,
    HW_ATOM_AND, HW_ATOM_OR, HW_ATOM_XOR, HW_ATOM_EXCH, HW_ATOM_CAS, HW_ATOM_INC, HW_ATOM_DEC,
    HW_ATOM_FADD, HW_ATOM_FMIN, HW_ATOM_FMAX, HW_ATOM_COUNT
} hw_wir_atom;

typedef enum { HW_SCOPE_LANE, HW_SCOPE_BLOCK, HW_SCOPE_CLUSTER, HW_SCOPE_DEVICE, HW_SCOPE_SYSTEM } hw_wir_scope;
/* clang-format on */

/* insn.flags */
enum {
    HW_I_FTZ = 1 << 0,      /* flush f32 denormals of sources and result, sign kept */
    HW_I_SAT = 1 << 1,      /* floats: clamp to [0, 1], NaN gives 0; F2I is always clamping */
    HW_I_NAN = 1 << 2,      /* FMIN/FMAX: NaN wins (canonical NaN) */
    HW_I_RELU = 1 << 3,     /* negative results become 0 */
    HW_I_VOLATILE = 1 << 4, /* memory: every access happens, in order (volatile, relaxed, acquire,
                               release, mmio) */
    HW_I_ACQUIRE = 1 << 5,
    HW_I_RELEASE = 1 << 6,
    /* ld.global.nc, ldu, ld.const, ld.param: no store of this launch changes the value */
    HW_I_READONLY = 1 << 7,
    HW_I_XORSIGN = 1 << 8, /* FMIN/FMAX .xorsign */
    HW_I_MINMAX_ABS = 1 << 9,
    HW_I_NAN_MIN =
        1 << 10, /* F2I: NaN gives the smallest value, 0x80.., as PTX has 64-bit results */
    HW_I_NEG_GUARD = 1 << 11, /* the guard is negated: @!p */
    HW_I_SPIN = 1 << 12,      /* set by the spin analysis */
    HW_I_NOFTZ_MEM = 1 << 13, /* atomics: FADD keeps denormals */
    HW_I_L2 = 1 << 14,        /* loads: ld.cg, ld.cv; a device's L1 is not asked */
    HW_I_PART =
        1 << 15, /* memory: more of an access to shared memory that another instruction began */
    /* lane operations: the lanes of the mask wait for one another (.sync); WARPSYNC: stands before such
     * a one, set by prepare, and is no instruction of the program's */
    HW_I_MEETS = 1 << 16,
    /* Which of the operations that an instruction of the source became says that it was executed. The
     * others with its place are more of it. Without listeners prepare takes the flag away. */
    HW_I_HEAD = 1 << 17,
    HW_I_MADE =
        1 << 18, /* made to carry out something else (calls): neither it nor its accesses count */
    HW_I_CALLS = 1 << 19, /* part of a call or return; MOVE_PARAM: of a parameter */
    HW_I_MOVE_PARAM = 1 << 20,
    /* CBR: the lanes that take the source's branch are those that go to target[1]; BRX: those that do not
     * go to the last target; EXIT made of a branch: those that stay */
    HW_I_ELSE = 1 << 21,
    HW_I_MATRIX = 1 << 22, /* part of ldmatrix or stmatrix */
};

typedef struct hw_wir_val {
    enum { HW_V_NONE, HW_V_REG, HW_V_IMM } kind;
    uint32_t reg;
    uint64_t imm; /* bits, zero-extended; F32 as its 32 bits, I1 as 0/1 */
} hw_wir_val;

#define HW_WIR_NONE ((hw_wir_val){ HW_V_NONE, 0, 0 })
static inline hw_wir_val hw_wir_reg(uint32_t r)
{
    return (hw_wir_val){ HW_V_REG, r, 0 };
}
static inline hw_wir_val hw_wir_imm(uint64_t bits)
{
    return (hw_wir_val){ HW_V_IMM, 0, bits };
}

typedef struct hw_wir_insn {
    uint16_t op;         /* hw_wir_op */
    uint8_t type, type2; /* hw_wir_type */
    uint32_t flags;      /* HW_I_* */
    uint8_t cond;        /* hw_wir_cond */
    uint8_t round;       /* hw_wir_round */
    uint8_t space;       /* hw_wir_space */
    uint8_t scope;       /* hw_wir_scope */
    uint8_t atom;        /* hw_wir_atom */
    uint8_t count;       /* elements of a memory access: 1, 2, 4, 8 */
    uint8_t ndst, nsrc;
    hw_wir_val *dst;  /* ndst; NONE = result not wanted */
    hw_wir_val *src;  /* nsrc */
    hw_wir_val guard; /* a register of type I1, or NONE */
    uint64_t imm;     /* per op */
    uint64_t aux;     /* per op */
    uint32_t loc;     /* index into hw_wir_module.locs; 0: none */
    uint32_t
        number; /* where code is counted: its number in the function before simplification, + 1 */
} hw_wir_insn;

typedef struct hw_wir_block {
    HW_VEC(hw_wir_insn) insns;
    uint32_t *targets; /* block indices, as the terminator says */
    uint32_t ntargets;
    const char *label; /* may be NULL */
} hw_wir_block;

typedef struct hw_wir_reg_info {
    uint8_t type;     /* register type */
    const char *name; /* as in the source, may be NULL */
} hw_wir_reg_info;

typedef struct hw_wir_function {
    const char *name;
    bool is_kernel;
    bool defined; /* false: body missing (an unresolved extern is a link error before) */
    uint32_t *params, nparams;   /* registers the caller's arguments arrive in */
    uint32_t *results, nresults; /* registers returned */
    HW_VEC(hw_wir_reg_info) regs;
    HW_VEC(hw_wir_block) blocks; /* blocks.ptr[0] is the entry, in source order */
    uint32_t local_bytes;        /* local memory of one lane in one activation, 16-byte multiple */
} hw_wir_function;

typedef struct hw_wir_symbol { /* a module variable in device memory */
    const char *name;
    uint32_t external_id; /* the producer's index (ptx: index of hw_ptx_module.variables) */
} hw_wir_symbol;

typedef struct hw_wir_loc { /* where an instruction comes from */
    const char *file;       /* source file of .loc, or NULL */
    uint32_t line, column;
    uint32_t ptx_line;    /* line in the PTX text; 0 unknown */
    uint32_t inlined_at;  /* index of the loc it was inlined into; 0: none */
    const char *function; /* inlined function's name or NULL */
} hw_wir_loc;

typedef struct hw_wir_module {
    hw_arena *arena;
    HW_VEC(hw_wir_function)
    functions; /* [0] is the kernel; the rest are reachable from it or address-taken */
    HW_VEC(hw_wir_symbol) symbols;
    HW_VEC(hw_wir_loc) locs;      /* [0] is "none" */
    uint32_t static_shared_bytes; /* of the kernel */
    uint32_t param_bytes;
    uint32_t reqntid[3]; /* 0: not said */
    bool uses_indirect_calls;
    bool counted;         /* set before prepare: instructions stay as they were written */
    uint32_t ends;        /* by prepare: numbers given to ends of lanes (EXIT's imm) */
    uint32_t stack_bytes; /* by hw_wir_prepare: a lane's local memory for calls made jumps */
    bool deep_stack;      /* ... and more, as far as there is: they recurse or take stack memory */
} hw_wir_module;

/* The register type that operand k must have; HW_T_NONE where there is no rule (calls, helpers) or
 * two types are allowed (addresses: I32 or I64). */
hw_wir_type hw_wir_dst_type(const hw_wir_insn *i, uint32_t k);
hw_wir_type hw_wir_src_type(const hw_wir_insn *i, uint32_t k);

/* ---- building ---- */
typedef struct hw_wir_builder {
    hw_wir_module *m;
    uint32_t function, block; /* where the next instruction goes */
    uint32_t loc;
    hw_wir_val guard; /* given to every instruction emitted; NONE by default */
    bool guard_negated;
    uint32_t head, marks; /* flags for the next instruction alone; for every one */
} hw_wir_builder;

hw_wir_module *hw_wir_module_new(hw_arena *a);
uint32_t hw_wir_function_new(hw_wir_module *m, const char *name, bool is_kernel);
uint32_t hw_wir_block_new(hw_wir_builder *b, const char *label);
uint32_t hw_wir_reg_new(hw_wir_builder *b, hw_wir_type t, const char *name);
uint32_t hw_wir_symbol_id(hw_wir_module *m, const char *name, uint32_t external_id); /* adds once */
/* Append an instruction with these operands; returns it for further fields (valid until the next
 * append). The builder's guard and loc are filled in. */
hw_wir_insn *hw_wir_emit(hw_wir_builder *b, hw_wir_op op, hw_wir_type t, uint32_t ndst,
                         const hw_wir_val *dst, uint32_t nsrc, const hw_wir_val *src);
/* One result in a fresh register (unguarded, so that temporaries need no blend), returned as a
 * value. */
hw_wir_val hw_wir_op1(hw_wir_builder *b, hw_wir_op op, hw_wir_type t, hw_wir_val a);
hw_wir_val hw_wir_op2(hw_wir_builder *b, hw_wir_op op, hw_wir_type t, hw_wir_val a, hw_wir_val c);
hw_wir_val hw_wir_op3(hw_wir_builder *b, hw_wir_op op, hw_wir_type t, hw_wir_val a, hw_wir_val c,
                      hw_wir_val e);
hw_wir_val hw_wir_cvt(hw_wir_builder *b, hw_wir_op op, hw_wir_type from, hw_wir_type to,
                      hw_wir_val a);
hw_wir_val hw_wir_cmp(hw_wir_builder *b, hw_wir_op op, hw_wir_cond c, hw_wir_type t, hw_wir_val a,
                      hw_wir_val e);
void hw_wir_mov(hw_wir_builder *b, hw_wir_type t, hw_wir_val dst,
                hw_wir_val src); /* guarded by the builder's guard */
/* Targets of the current block, for terminators emitted by hw_wir_emit: BRX, guarded EXIT/RET/TRAP
 * (one: where the other lanes go on). BR and CBR set their own. */
void hw_wir_set_targets(hw_wir_builder *b, uint32_t n, const uint32_t *targets);
void hw_wir_br(hw_wir_builder *b, uint32_t target);
void hw_wir_cbr(hw_wir_builder *b, hw_wir_val pred, uint32_t yes, uint32_t no);

/* Check every rule; the first violations in d. HW_E_INTERNAL: the producer is wrong. */
hw_status hw_wir_verify(const hw_wir_module *m, hw_diag *d);
/* Text form, one line an instruction; `halfwarp inspect --wir`. And back, for tests. */
hw_str hw_wir_print(const hw_wir_module *m, hw_arena *a);
hw_status hw_wir_parse(hw_arena *a, hw_str text, const char *origin, hw_wir_module **out,
                       hw_diag *d);

/* ---- passes and analyses (see analysis.c, shape.c for the method) ---- */
/* Make a module ready for analysis and code generation: inline every direct, non-recursive call
 * whose callee may suspend (barrier, yield, spin loop), is small or has one caller; end lanes at the
 * branch that leads to an exit; one latch a loop; split critical edges; entry without predecessors;
 * a suspending instruction is followed by BR only. Functions no longer reached become undefined.
 * Calls of functions that recurse, suspend or end threads and could not be inlined become jumps
 * inside the kernel, with a stack a lane (flatten.c). */
hw_status hw_wir_prepare(hw_wir_module *m, hw_diag *d);
/* Cheap clean-up that keeps compile time down: copy propagation, dead code, constant folding of
 * integer ops, common subexpressions within a block. Optional for jit. */
void hw_wir_simplify(hw_wir_module *m, uint32_t function);

#include "hw_wir_analysis.h"

#endif
