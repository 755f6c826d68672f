/* SPDX-License-Identifier: Apache-2.0
 *
 * The syntax tree of PTX inside room ptx (private). parse.c makes it, check.c matches its
 * instructions against ptx.def, link.c joins units, lower.c makes warp IR of it.
 *
 * Names are resolved while parsing: a register operand is an index into its function's registers
 * (nested { } scopes flattened, inner names shadow), a label operand an index into its function's
 * labels, any other name a symbol.
 */
#ifndef HW_PTX_AST_H
#define HW_PTX_AST_H

#include "hw_ptx.h"

/* PTX's fundamental types as written in the text. Order: see types.def users; b1 = .pred */
typedef enum ptx_type {
    PTX_NONE,
    PTX_PRED,
    PTX_B8,
    PTX_B16,
    PTX_B32,
    PTX_B64,
    PTX_B128,
    PTX_U8,
    PTX_U16,
    PTX_U32,
    PTX_U64,
    PTX_S8,
    PTX_S16,
    PTX_S32,
    PTX_S64,
    PTX_F16,
    PTX_F16X2,
    PTX_BF16,
    PTX_BF16X2,
    PTX_TF32,
    PTX_F32,
    PTX_F64,
    PTX_E4M3X2,
    PTX_E5M2X2,
    PTX_U16X2,
    PTX_S16X2,
    PTX_TEXREF,
    PTX_SAMPLERREF,
    PTX_SURFREF,
    PTX_TYPE_COUNT
} ptx_type;

typedef enum ptx_space {
    PTX_SPACE_NONE,
    PTX_SPACE_REG,
    PTX_SPACE_PARAM,
    PTX_SPACE_LOCAL,
    PTX_SPACE_SHARED,
    PTX_SPACE_GLOBAL,
    PTX_SPACE_CONST,
    PTX_SPACE_TEX
} ptx_space;

typedef struct ptx_place {
    uint32_t line, column;
    uint32_t offset; /* of the token in the text */
} ptx_place;

struct ptx_function;
struct ptx_symbol;

typedef enum ptx_operand_kind {
    PTX_O_REG,     /* reg; negated: !p */
    PTX_O_INT,     /* bits (64-bit two's complement), `is_unsigned` if written with U */
    PTX_O_FLOAT,   /* f64 value; 0f/0d forms exactly: is_single says the literal was 0f (bits holds
                      the pattern) */
    PTX_O_SREG,    /* %tid.x ...: name (without %) and component in text; sreg id filled by check */
    PTX_O_SYMBOL,  /* a variable, parameter or function used as an address or callee: symbol, offset
                    */
    PTX_O_LABEL,   /* label index */
    PTX_O_ADDRESS, /* [base + offset]: base = items[0] (REG, SYMBOL or INT), offset; further items
                      for tex/tma forms [a, {b, c}] */
    PTX_O_VECTOR,  /* {a, b, c, d}: items */
    PTX_O_PAIR,    /* d|p : items[0], items[1] */
    PTX_O_LIST,    /* (a, b): call's lists: items */
    PTX_O_SINK,    /* _ */
    PTX_O_NAME,    /* an identifier that is nothing known: extern names in call prototypes etc. */
} ptx_operand_kind;

typedef struct ptx_operand {
    ptx_operand_kind kind;
    bool negated; /* !p or -x */
    bool is_unsigned, is_single;
    uint32_t reg, label;
    uint64_t bits;
    double value;
    int64_t offset;
    struct ptx_symbol *symbol;
    hw_str name;
    struct ptx_operand *items;
    uint32_t nitems;
    int8_t component; /* .x .y .z .w of a vector register or special register: 0..3, -1 none */
    ptx_place place;
} ptx_operand;

typedef struct ptx_insn {
    hw_str opcode; /* "ld" */
    hw_str *mods;  /* "global", "v2", "f32": without dots; "::" kept inside ("L1::no_allocate") */
    uint32_t nmods;
    ptx_operand *ops;
    uint32_t nops;
    int32_t guard; /* register or -1 */
    bool guard_negated;
    const struct ptx_row *row; /* filled by check */
    void *match;               /* filled by check: types and modifiers found */
    uint32_t loc;              /* index into unit->locs */
    ptx_place place;
} ptx_insn;

typedef struct ptx_reg {
    hw_str name;
    ptx_type type;
    uint8_t vector; /* 1, 2 or 4; a .v2/.v4 register's parts follow it */
} ptx_reg;

/* One statement of a body: an instruction or a label. */
typedef struct ptx_label {
    hw_str name;
    uint32_t insn; /* index of the instruction it stands before */
} ptx_label;

typedef struct ptx_branch_targets {
    hw_str name;
    uint32_t *labels;
    uint32_t n;
} ptx_branch_targets; /* .branchtargets */

typedef struct ptx_param {
    hw_str name;
    ptx_type type;
    uint32_t align;
    uint64_t count; /* elements; 1 = scalar */
    bool is_array, is_reg;
    uint32_t reg;
    struct ptx_symbol *symbol;
    uint32_t offset, size;
} ptx_param;

typedef struct ptx_prototype {
    hw_str name;
    ptx_param *results, *params;
    uint32_t nresults, nparams;
    bool noreturn;
} ptx_prototype; /* .callprototype, .calltargets */

typedef enum ptx_linkage { PTX_LOCAL, PTX_VISIBLE, PTX_EXTERN, PTX_WEAK, PTX_COMMON } ptx_linkage;

typedef struct ptx_init_reloc {
    uint64_t offset;
    uint8_t width, shift;
    struct ptx_symbol *symbol;
    int64_t addend;
    bool generic;
    hw_str name;
} ptx_init_reloc;

/* A variable (any space), parameter or function. */
typedef struct ptx_symbol {
    hw_str name;
    enum {
        PTX_SYM_VARIABLE,
        PTX_SYM_PARAM,
        PTX_SYM_FUNCTION,
        PTX_SYM_PROTOTYPE,
        PTX_SYM_TARGETS
    } kind;
    ptx_linkage linkage;
    ptx_space space;
    ptx_type type;
    uint8_t vector;
    uint32_t align;
    uint64_t size; /* bytes; 0 for [] */
    bool unsized, managed;
    const uint8_t *init;
    uint64_t init_bytes;
    ptx_init_reloc *relocs;
    uint32_t nrelocs;
    struct ptx_function *function; /* kind FUNCTION; or the function a local symbol belongs to */
    ptx_prototype *prototype;
    ptx_branch_targets *targets;
    struct ptx_symbol *definition; /* link: what an extern (or losing weak) stands for */
    uint32_t index;                /* link: index among module variables / functions */
    uint64_t
        offset; /* param: offset in parameter space; shared/local: set when a kernel is laid out */
    ptx_place place;
} ptx_symbol;

typedef struct ptx_function {
    ptx_symbol *symbol;
    struct hw_ptx_unit *unit;
    bool is_kernel, has_body, noreturn;
    ptx_param *results, *params;
    uint32_t nresults, nparams;
    uint32_t param_bytes;
    HW_VEC(ptx_reg) regs;
    HW_VEC(ptx_insn) insns;
    HW_VEC(ptx_label) labels;
    HW_VEC(ptx_symbol *) locals; /* .local .shared .param .const variables declared in the body */
    HW_VEC(ptx_symbol *)
    refs; /* every module-scope symbol the body names, once: for reachability and shared layout */
    uint32_t maxntid[3], reqntid[3], min_blocks, maxnreg, cluster[3];
} ptx_function;

struct hw_ptx_unit {
    hw_arena *arena;
    hw_str text;
    const char *origin;
    uint32_t version;   /* 90 = 9.0 */
    uint32_t target;    /* 75 */
    hw_str target_text; /* "sm_90a" */
    uint32_t address_size;
    HW_VEC(ptx_symbol *) symbols; /* module scope */
    HW_VEC(ptx_function *) functions;
    HW_VEC(hw_wir_loc) locs;    /* [0] none */
    HW_VEC(const char *) files; /* by .file number */
    hw_diag *diag;
};

/* parse.c -> check.c: match one instruction against ptx.def; fills row and match; an error in d
 * with the operand's place. */
hw_status hw_ptx_check(struct hw_ptx_unit *u, ptx_function *f, ptx_insn *i, hw_diag *d);
/* place -> hw_place with the source line, for messages */
hw_place hw_ptx_place(const struct hw_ptx_unit *u, ptx_place p);
/* link.c -> lower.c */
struct hw_ptx_link {
    hw_arena *arena;
    hw_ptx_unit *const *units;
    size_t nunits;
    HW_VEC(ptx_symbol *) variables; /* by module variable index */
    HW_VEC(ptx_function *) kernels; /* by kernel index */
};
/* The symbol a use means after linking (follows .definition). */
const ptx_symbol *hw_ptx_resolve(const ptx_symbol *s);
unsigned ptx_type_bits(ptx_type t);
hw_wir_type ptx_wir_type(ptx_type t); /* I32 for b32/u32/s32, F32 for f32, V2F16 ... */

#endif
