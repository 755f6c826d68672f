/* SPDX-License-Identifier: Apache-2.0
 *
 * The PTX instruction set as data, inside room ptx (private): ptx.def's rows made patterns.
 *
 *   row    one line of ptx.def: a form in the manual's notation, its operands, its types.
 *   match  what one written opcode ("add.sat.s32") is: its row, its types, its modifiers. Equal
 *          opcodes of a unit share one match.
 *   spec   what a row says of one operand.
 * ptxas takes modifiers in any order and types in order; so do we. Only the words that are part of
 * an opcode's name (mul.lo, bar.red, cvta.to) must come first.
 */
#ifndef HW_PTX_ISA_H
#define HW_PTX_ISA_H

#include "ast.h"

typedef enum ptx_mod {
    PTX_M_NONE,
#define PTX_MOD(name, text) PTX_M_##name,
#include "mods.def"
#undef PTX_MOD
    PTX_M_COUNT
} ptx_mod;

enum {
    PTX_BAG_WORDS = (PTX_M_COUNT + 63) / 64,
    PTX_MAX_TYPES = 5,
    PTX_MAX_SLOTS = 14,
    PTX_MAX_SPECS = 8
};

typedef struct ptx_bag { /* a set of modifiers */
    uint64_t w[PTX_BAG_WORDS];
} ptx_bag;

static inline bool ptx_bag_has(const ptx_bag *b, ptx_mod m)
{
    return (b->w[m / 64] >> (m % 64)) & 1;
}
static inline void ptx_bag_add(ptx_bag *b, ptx_mod m)
{
    b->w[m / 64] |= UINT64_C(1) << (m % 64);
}

/* What goes with what: B with every class of its size; U and S with each other; else only a class
 * with itself. V: packed or storage-only types, which go only with B and with themselves. */
typedef enum ptx_type_class {
    PTX_CL_NONE,
    PTX_CL_PRED,
    PTX_CL_BITS,
    PTX_CL_UNSIGNED,
    PTX_CL_SIGNED,
    PTX_CL_FLOAT,
    PTX_CL_PACKED,
    PTX_CL_OPAQUE
} ptx_type_class;
typedef struct ptx_type_info {
    const char *text;
    uint8_t bits, wir;
} ptx_type_info;
extern const ptx_type_info ptx_types[PTX_TYPE_COUNT];
typedef uint64_t ptx_type_set; /* bit ptx_type */
_Static_assert(PTX_TYPE_COUNT <= 64, "a set of types is one word");

typedef enum ptx_unit_kind {
#define PTX_UNIT(name, text) PTX_UNIT_##name,
#include "units.def"
#undef PTX_UNIT
    PTX_UNIT_COUNT
} ptx_unit_kind;

typedef enum ptx_row_id {
#define ROW(id, form, operands, types, since, target, unit, lane, warp) PTX_ROW_##id,
#include "ptx.def"
#undef ROW
    PTX_ROW_COUNT
} ptx_row_id;

/* How an operand's type is found: a literal type, one of the match's types, or one derived. */
typedef enum ptx_spec_type {
    PTX_ST_LITERAL,
    PTX_ST_TYPE, /* match type[index] */
    PTX_ST_WIDE, /* type[0] in double width */
    PTX_ST_BITS, /* type[0]'s size, untyped */
} ptx_spec_type;

typedef enum ptx_spec_kind {
    PTX_SK_VALUE,   /* register, literal, or whatever else has a value */
    PTX_SK_ADDRESS, /* [a] */
    PTX_SK_LABEL,
    PTX_SK_REST,           /* anything, any number: call, tex */
    PTX_SK_MOV,            /* mov's operands: rules of their own */
    PTX_SK_SIZE_OR_IGNORE, /* cp.async's third: source size (u32) or ignore-src (predicate) */
} ptx_spec_kind;

enum { PTX_POWERS = 0xffff };

typedef struct ptx_spec {
    uint8_t kind;    /* ptx_spec_kind */
    uint8_t how;     /* ptx_spec_type */
    uint8_t index;   /* of the match's types */
    uint8_t literal; /* ptx_type */
    bool dest;       /* written */
    bool optional;   /* may be left out (with all after it) */
    bool wider;      /* the register may be wider than the type (ld, st, cvt) */
    bool vector;     /* as many parts as .v2/.v4/.v8 says; one without it */
    bool immediate;  /* a literal, no register */
    bool sreg;       /* a special register is allowed */
    bool symbol;     /* a symbol's address is allowed */
    bool minus;      /* -r is allowed */
    uint16_t
        step; /* of a literal: 0 any value; else from least to most, multiples or, PTX_POWERS, powers of two */
    uint32_t least, most;
    uint8_t pair;      /* 0 no; 1: d|p allowed; 2: d|p required */
    uint8_t pair_type; /* ptx_type of p */
} ptx_spec;

typedef struct ptx_slot { /* a modifier's place in a form */
    ptx_bag any;          /* one of these */
    bool optional, head;
} ptx_slot;

typedef enum ptx_size_rule { PTX_ANY_SIZE, PTX_EQ, PTX_GT, PTX_LT, PTX_NE } ptx_size_rule;

typedef struct ptx_row {
    ptx_row_id id;
    const char *form, *operands, *types; /* as in ptx.def */
    uint8_t since, target, unit;
    hw_str opcode;
    ptx_slot slots[PTX_MAX_SLOTS];
    uint8_t nslots, nheads;
    ptx_type_set type_set[PTX_MAX_TYPES];
    bool type_optional[PTX_MAX_TYPES];
    uint8_t ntypes;
    uint8_t before_version; /* 0, or: only in PTX older than this */
    uint8_t before_target;  /* 0, or: only for targets below this */
    bool any_form;          /* whatever follows the opcode is accepted (known, not supported) */
    int8_t size_rule;       /* of type[0] against type[1]: see ptx_size_rule */
    ptx_spec specs[PTX_MAX_SPECS];
    uint8_t nspecs, ndest; /* ndest: specs that are results */
    struct ptx_row *next;  /* of the same opcode */
} ptx_row;

typedef struct ptx_match {
    const ptx_row *row;
    ptx_bag mods;
    uint8_t type[PTX_MAX_TYPES]; /* ptx_type */
    uint8_t ntypes;
    /* decoded once, for lowering */
    uint8_t round;  /* hw_wir_round */
    uint8_t vec;    /* 1, 2, 4, 8 */
    uint8_t space;  /* ptx_space; NONE = generic */
    uint8_t cmp;    /* ptx_mod of the comparison */
    uint8_t boolop; /* ptx_mod: and, or, xor of set/setp; the operation of atom, red, redux */
    uint8_t scope;  /* hw_wir_scope */
    bool ftz, sat;
    struct ptx_match *other; /* another row of this spelling, told apart by its operands */
} ptx_match;

/* First row of an opcode (follow .next) or NULL. */
const ptx_row *hw_ptx_opcode(hw_str opcode);
/* The known opcode nearest to a word, or NULL. */
const char *hw_ptx_nearest_opcode(hw_str word);
ptx_mod hw_ptx_mod(hw_str text);        /* PTX_M_NONE: no such modifier */
const char *hw_ptx_mod_text(ptx_mod m); /* without the dot */
ptx_type hw_ptx_type(hw_str text);      /* PTX_NONE: no such type */
ptx_type_class hw_ptx_class(ptx_type t);
/* The type an operand has by its spec. */
ptx_type hw_ptx_spec_type(const ptx_spec *s, const ptx_match *m);
/* Which special register: index into sregs.def, -1 unknown. */
typedef struct ptx_sreg {
    const char *name;
    uint8_t bits;       /* 32 or 64 */
    uint8_t components; /* 0: scalar, else 4 */
    uint8_t how;        /* ptx_sreg_how */
    uint16_t value;     /* hw_wir_sreg of component x, or a constant */
} ptx_sreg;
typedef enum ptx_sreg_how {
    PTX_SR_SREG,
    PTX_SR_CONST,
    PTX_SR_CLOCK,
    PTX_SR_HIGH,
    PTX_SR_DIM,
    PTX_SR_CLUSTER
} ptx_sreg_how;
/* Values of CLUSTER: of each component up to CTAID, then of the whole. */
enum {
    LW_CLUSTER_ID,
    LW_CLUSTER_COUNT,
    LW_CLUSTER_CTAID,
    LW_CLUSTER_RANK,
    LW_CLUSTER_NRANK,
    LW_CLUSTER_EXPLICIT
};
extern const ptx_sreg ptx_sregs[];
int hw_ptx_sreg(hw_str name);

/* Match an instruction's opcode; shares matches within a unit. */
hw_status hw_ptx_match(struct hw_ptx_unit *u, const ptx_insn *i, const ptx_match **out, hw_diag *d);

#endif
