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

/* PTX's fundamental types as written in the text: types.def. */
typedef enum ptx_type {
#define PTX_T(name, text, bits, wir, declarable) PTX_##name,
#include "types.def"
#undef PTX_T
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

/* Where a token stands. The column is computed from offset when a message needs it. */
typedef struct ptx_place {
    uint32_t line;
    uint32_t offset; /* of the token in the text */
} ptx_place;

struct ptx_function;
struct ptx_symbol;

typedef enum ptx_operand_kind {
    PTX_O_REG, /* reg; negated: !p, minus: -r. A component %v.x is the part's own register; a whole vector
                      register is a VECTOR of its parts. Video instructions: bits holds a selector's
                      characters (%r.h10: 'h' | '1' << 8 | '0' << 16), 0 none */
    PTX_O_INT,     /* bits (64-bit two's complement), `is_unsigned` if written with U */
    PTX_O_FLOAT,   /* value; bits is the pattern: 32 bits if is_single (0f), else 64 (0d, 1.0) */
    PTX_O_SREG,    /* %tid.x ...: name (without %), component; check puts the sreg's id in reg */
    PTX_O_SYMBOL,  /* a variable, parameter, function, prototype or target list: symbol, offset */
    PTX_O_LABEL,   /* label: index into the function's labels */
    PTX_O_ADDRESS, /* [base + offset]: items[0] = base (REG, SYMBOL or INT), whose own offset field
                      is the offset (REG, SYMBOL; an INT base has it added). Further items are the
                      rest of [a, {b, c}], [a, b, {c, d}] as written */
    PTX_O_VECTOR,  /* {a, b, c, d}: items */
    PTX_O_PAIR,    /* d|p : items[0], items[1] */
    PTX_O_LIST,    /* (a, b): call's lists: items */
    PTX_O_SINK,    /* _ */
    PTX_O_NAME     /* inside the parser only: a name not resolved yet */
} ptx_operand_kind;

/* Operands dominate the memory of a large file, so fields that no kind needs together share their
 * room: read only what the kind's line above names. */
typedef struct ptx_operand {
    uint8_t kind; /* ptx_operand_kind */
    bool negated : 1, minus : 1, is_unsigned : 1, is_single : 1;
    int8_t component; /* SREG: .x .y .z .w are 0..3; -1 none */
    union {
        uint32_t reg, label, nitems;
    };
    union {
        struct {
            union {
                uint64_t bits;
                int64_t offset;
            };
            union {
                double value;
                struct ptx_symbol *symbol;
                struct ptx_operand *items;
            };
        };
        hw_str name;
    };
    ptx_place place;
} ptx_operand;

typedef struct ptx_insn {
    hw_str opcode; /* "ld" */
    hw_str *mods;  /* "global", "v2", "f32": without dots; "::" kept inside ("L1::no_allocate").
                      Instructions of one spelling share the array within a unit */
    uint32_t nmods;
    uint32_t nops;
    ptx_operand *ops; /* in the order written; call: [LIST results], callee (SYMBOL or REG),
                         [LIST arguments], [SYMBOL prototype or targets] */
    int32_t guard;    /* register or -1 */
    bool guard_negated;
    uint32_t loc;              /* index into unit->locs; 0: none */
    const struct ptx_row *row; /* filled by check */
    void *match;               /* filled by check: types and modifiers found */
    ptx_place place;
} ptx_insn;

typedef struct ptx_reg {
    hw_str name;
    ptx_type type;
    uint8_t
        vector; /* 1; 2 or 4: a .v2/.v4 register, never an operand itself: its parts follow it */
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
    uint64_t offset;               /* param: in parameter space; local: in the function's frame */
    bool address_taken;            /* function: named other than as a direct call's callee */
    bool is_alias;                 /* .alias: the parser has set definition */
    uint32_t mark;                 /* scratch of the pass that runs (names once in refs, layout) */
    ptx_place place;
} ptx_symbol;

typedef struct ptx_function {
    ptx_symbol *symbol;
    struct hw_ptx_unit *unit;
    bool is_kernel, has_body, noreturn;
    bool calls_indirectly; /* some call's callee is a register */
    bool has_reg_params;   /* parameters or results in .reg space */
    ptx_param *results, *params;
    uint32_t nresults, nparams;
    uint32_t param_bytes;
    HW_VEC(ptx_reg) regs;
    HW_VEC(ptx_insn) insns;
    HW_VEC(ptx_label) labels;
    HW_VEC(ptx_symbol *) locals; /* .local .shared .param .const variables declared in the body */
    HW_VEC(ptx_symbol *)
    refs; /* every module-scope symbol the body names, once: for reachability and shared layout */
    uint32_t local_bytes; /* frame of the .local variables; their symbol's offset is in it */
    uint32_t maxntid[3], reqntid[3], min_blocks, maxnreg, cluster[3];
    uint32_t end_line; /* of the closing brace */
    uint32_t order;    /* scratch of the layout */
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
    HW_VEC(hw_wir_loc) locs; /* [0] none; one for each .loc (ptx_line: of the directive itself) */
    HW_VEC(const char *) files;                      /* by .file number */
    bool debug, map_f64_to_f32, texmode_independent; /* options of .target */
    struct ptx_matches *matches;                     /* match.c: one match a spelling */
    hw_diag *diag;
};

/* parse.c -> check.c: match one instruction against ptx.def; fills row and match; an error in d
 * with the operand's place. */
hw_status hw_ptx_check(struct hw_ptx_unit *u, ptx_function *f, ptx_insn *i, hw_diag *d);
/* place -> hw_place with the source line, for messages */
hw_place hw_ptx_place(const struct hw_ptx_unit *u, ptx_place p);
/* layout.c: what one kernel reaches, and where its variables stand. Offsets of shared variables
 * belong to a kernel, not to the symbol, because a variable may stand elsewhere in another one. */
typedef struct ptx_shared {
    const ptx_symbol *symbol; /* resolved */
    uint32_t offset;
} ptx_shared;

typedef struct ptx_layout {
    ptx_function **functions; /* with bodies; [0] is the kernel; then, if it calls indirectly or
                                 reaches a function whose address is taken, all of those in the
                                 module's order, so that a function value (index in wir + 1 = index
                                 in link->functions + 2) is the same in every kernel; then others */
    uint32_t nfunctions;
    ptx_shared *shared; /* sorted by symbol's address */
    uint32_t nshared;
    uint32_t static_bytes; /* of shared memory, padded to where dynamic shared memory begins */
    bool uses_dynamic;     /* all unsized .extern .shared variables stand at static_bytes */
    bool calls_indirectly; /* then every function whose address is taken is among functions */
    bool recursive;        /* local_bytes counts each function on a cycle once */
    uint32_t local_bytes;  /* deepest sum of frames */
} ptx_layout;
/* Offset of a shared variable (any symbol that resolves to it) in this kernel; UINT32_MAX: none. */
uint32_t hw_ptx_shared_offset(const ptx_layout *l, const ptx_symbol *s);

/* link.c -> lower.c */
struct hw_ptx_link {
    hw_arena *arena;
    hw_ptx_unit *const *units;
    size_t nunits;
    HW_VEC(ptx_symbol *) variables; /* by module variable index */
    HW_VEC(ptx_function *) kernels; /* by kernel index */
    HW_VEC(ptx_function *)
    functions;              /* every .func with a body, by ptx_symbol.index; those whose
                            address is taken first */
    uint32_t naddressed;    /* how many those are */
    ptx_layout *layouts;    /* by kernel index */
    uint32_t mark;          /* last one used */
    uint32_t dynamic_align; /* of the unsized .extern .shared variables, at least 16; 0: none */
    hw_ptx_module *module;
};
/* A function that the loader supplies (builtin.def): vprintf, malloc ... helper: hw_wir_helper, HW_H_COUNT if none serves it yet. */
bool hw_ptx_find_builtin(hw_str name, uint32_t *helper, uint32_t *aux);
/* The symbol a use means after linking (follows .definition). */
const ptx_symbol *hw_ptx_resolve(const ptx_symbol *s);
unsigned ptx_type_bits(ptx_type t);
hw_wir_type ptx_wir_type(ptx_type t); /* I32 for b32/u32/s32, F32 for f32, V2F16 ... */

#endif
