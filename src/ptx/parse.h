/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside the parser of room ptx: tokens, the scanner, names and scopes, and the parser's state.
 *
 *   token    a word of the text; the scanner holds exactly one ahead (p->t).
 *   name     one spelling, kept for the whole unit; what it means now is on its stack of bindings.
 *   binding  a meaning of a name in a scope: register, label, symbol, or poison (already reported).
 *   range    .reg .b32 %r<N>: gives meaning to %r0 .. %rN-1. Registers come to be when first named,
 *            so a huge N costs nothing.
 *   scope    0 the module, 1 parameters, 2 the body's braces, 3 and up nested braces.
 * Every parse function returns false after it has reported an error; the caller then skips.
 */
#ifndef HW_PTX_PARSE_H
#define HW_PTX_PARSE_H

#include "ast.h"

enum {
    PTX_MAX_ERRORS = 20,
    PTX_MAX_SCOPES = 256,
    PTX_MAX_NESTING = 48, /* of expressions and operands */
    PTX_MAX_DIMS = 16
};
#define PTX_MAX_SIZE       (UINT64_C(1) << 40) /* bytes of one variable */
#define PTX_MAX_INIT_BYTES (UINT64_C(1) << 28) /* reach of an initialiser */

typedef enum ptx_token_kind {
    PTX_T_END,
    PTX_T_NAME,   /* text */
    PTX_T_DOT,    /* .word: text without the dot */
    PTX_T_INT,    /* bits, is_unsigned */
    PTX_T_FLOAT,  /* value, bits, is_single */
    PTX_T_STRING, /* text without the quotes */
    PTX_T_PUNCT,  /* punct: the character, or PTX_P_* */
    PTX_T_BAD     /* reported when it is scanned */
} ptx_token_kind;

enum { PTX_P_SHL = 128, PTX_P_SHR, PTX_P_LE, PTX_P_GE, PTX_P_EQ, PTX_P_NE, PTX_P_AND, PTX_P_OR };

typedef struct ptx_token {
    uint8_t kind, punct;
    bool is_unsigned, is_single;
    bool first_on_line;
    uint32_t line, offset;
    hw_str text; /* as written; see kind */
    uint64_t bits;
    double value;
} ptx_token;

typedef struct ptx_binding {
    enum { PTX_B_REG, PTX_B_LABEL, PTX_B_SYMBOL, PTX_B_POISON } kind;
    uint32_t index; /* register or label */
    uint32_t depth;
    ptx_symbol *symbol;
    struct ptx_name *name;
    struct ptx_binding *outer, *next; /* under it on the name's stack; in the scope's list */
} ptx_binding;

typedef struct ptx_range {
    ptx_type type;
    uint8_t vector;
    uint32_t depth;
    uint64_t count;
    struct ptx_name *name;
    struct ptx_range *outer, *next;
} ptx_range;

typedef struct ptx_name {
    hw_str text;
    uint64_t hash;
    ptx_binding *top;
    ptx_range *range;        /* this name is a range's prefix */
    struct ptx_name *prefix; /* the name without its trailing digits; NULL: it has none */
    uint64_t number;         /* those digits */
} ptx_name;

/* One spelling of an instruction: "ld.global.f32" taken apart, once a unit. */
typedef struct ptx_form {
    hw_str spelled, opcode;
    hw_str *mods;
    uint32_t nmods;
    uint64_t hash;
    bool is_call, is_branch, is_move, is_video;
} ptx_form;

typedef struct ptx_pending {
    uint32_t insn;        /* of the function; UINT32_MAX: targets waits */
    ptx_operand *operand; /* of kind NAME */
    uint32_t *label;      /* of a .branchtargets list */
} ptx_pending;

typedef struct ptx_scope {
    ptx_binding *bindings;
    ptx_range *ranges;
    uint32_t nbindings;
    HW_VEC(ptx_pending) pending; /* names that may turn out to be labels further on */
} ptx_scope;

typedef struct ptx_debug_name {
    hw_str label;
    uint64_t at;
} ptx_debug_name;

typedef struct ptx_inlined { /* a .loc whose names and parent are found when the text has ended */
    uint32_t loc;
    hw_str label;
    uint64_t offset;
    ptx_place place;
} ptx_inlined;

typedef struct ptx_slot {
    uint64_t hash; /* kept beside the entry: most misses end here, and growing hashes nothing */
    void *entry;   /* NULL: free */
} ptx_slot;

typedef struct ptx_table { /* open addressing */
    ptx_slot *slots;
    size_t mask, used;
} ptx_table;

typedef struct ptx_parser {
    hw_arena *arena;   /* of the unit */
    hw_arena *scratch; /* of this parse */
    struct hw_ptx_unit *u;
    hw_diag *d;
    /* scanner */
    const char *at, *end, *start;
    uint32_t line;
    bool fresh_line; /* nothing but blanks since the line began */
    ptx_token t;
    uint32_t last_end, last_line; /* where the token before t ends */
    /* errors */
    uint32_t errors, first_error;
    hw_status status;
    bool quiet;      /* skipping: nothing is reported */
    bool stop;       /* too many, or no use going on */
    bool lost_names; /* a declaration failed: undeclared names may be its */
    bool lost_regs;  /* the same in this function */
    /* names */
    ptx_table names, forms;
    ptx_scope scopes[PTX_MAX_SCOPES];
    uint32_t depth;
    ptx_binding *free_bindings;
    ptx_range *free_ranges;
    /* the function being parsed */
    ptx_function *f;
    uint32_t mark; /* its mark for symbols already in refs */
    HW_VEC(ptx_insn) insns;
    HW_VEC(ptx_operand) stack; /* operands of the lists being read */
    HW_VEC(uint32_t) words;    /* numbers and labels of lists being read */
    HW_VEC(hw_str) strings;
    uint32_t nesting;
    bool saw_name;        /* an operand of the current instruction is a NAME */
    const ptx_form *form; /* of the current instruction */
    uint32_t loc, nfunctions;
    /* debug information */
    HW_VEC(uint32_t) loc_files; /* file number of each loc */
    HW_VEC(ptx_inlined) inlined;
    HW_VEC(ptx_debug_name) debug_names;
    HW_VEC(char) debug_text;
} ptx_parser;

/* ---- lex.c ---- */
void ptx_lex_start(ptx_parser *p, hw_str text);
void ptx_next(ptx_parser *p);
bool ptx_is(const ptx_parser *p, int punct);
bool ptx_is_dot(const ptx_parser *p, const char *word);
bool ptx_accept(ptx_parser *p, int punct);
bool ptx_expect(ptx_parser *p, int punct, const char *where);
bool ptx_follows_colon(const ptx_parser *p); /* a ':' (not '::') stands after t */
/* The current name and the .modifiers that follow it, as written in one run; moves past them. */
hw_str ptx_lex_opcode(ptx_parser *p);
bool ptx_skip_braces(ptx_parser *p); /* t is '{': to after its '}'; false: there is none */
ptx_place ptx_here(const ptx_parser *p);

/* ---- names.c ---- */
bool ptx_error(ptx_parser *p, ptx_place at, hw_status s, const char *fmt, ...) HW_PRINTF(4, 5);
#define ptx_fail(p, ...) ptx_error((p), ptx_here(p), HW_E_SYNTAX, __VA_ARGS__)
const char *ptx_token_text(ptx_parser *p); /* the current token for a message */
/* Every entry begins with its key, an hw_str; hash is hw_hash64(key, 0). */
void *ptx_table_find(const ptx_table *t, hw_str key, uint64_t hash);
void ptx_table_add(hw_arena *a, ptx_table *t, void *entry, uint64_t hash);
ptx_name *ptx_name_of(ptx_parser *p, hw_str text);
ptx_binding *ptx_lookup(ptx_parser *p, hw_str text); /* NULL: means nothing */
ptx_binding *ptx_bind(ptx_parser *p, hw_str text, ptx_place at, int kind, uint32_t depth);
bool ptx_bind_range(ptx_parser *p, hw_str prefix, ptx_place at, const ptx_range *r);
uint32_t ptx_add_reg(ptx_parser *p, hw_str name, ptx_type type, uint8_t vector);
void ptx_scope_open(ptx_parser *p);
void ptx_scope_close(ptx_parser *p); /* resolves or hands out what is pending */
bool ptx_undeclared(ptx_parser *p, hw_str name, ptx_place at); /* reports once a function */
/* Make op (a NAME) what b says; false: it is poisoned, or no operand. */
bool ptx_resolve_name(ptx_parser *p, ptx_operand *op, const ptx_binding *b);
void ptx_wait_for(ptx_parser *p, ptx_pending w);
void ptx_ref(ptx_parser *p, ptx_symbol *s);

/* ---- types.c ---- */
bool ptx_is_special(hw_str name); /* tid, laneid ...: without % */
bool ptx_is_special_vector(hw_str name);
bool ptx_type_of(hw_str word, ptx_type *out); /* types that may stand in a declaration */

/* ---- parse_expr.c ---- */
typedef struct ptx_const {
    bool is_float, is_unsigned, is_single;
    uint64_t bits;
    double value;
} ptx_const;
bool ptx_starts_const(const ptx_parser *p);
bool ptx_parse_const(ptx_parser *p, ptx_const *out);
bool ptx_parse_int(ptx_parser *p, uint64_t max, const char *what, uint64_t *out);
bool ptx_parse_count(ptx_parser *p, uint64_t max, const char *what, uint64_t *out); /* N> */
uint64_t ptx_const_bits(const ptx_const *c, ptx_type t); /* as the type's pattern */

/* ---- parse_decl.c ---- */
typedef struct ptx_decl {
    ptx_linkage linkage;
    ptx_space space;
    ptx_type type;
    uint8_t vector;
    uint32_t align;
    bool managed, is_pointer;
    ptx_place place;
} ptx_decl;
bool ptx_is_space(const ptx_parser *p);
bool ptx_parse_attribute(ptx_parser *p, bool *managed); /* t is after .attribute */
/* The words of a declaration up to its first name. */
bool ptx_parse_decl_head(ptx_parser *p, ptx_decl *d);
/* name[dims] after the head; dims: element count, unsized if the first is []. */
bool ptx_parse_dims(ptx_parser *p, uint64_t dims[PTX_MAX_DIMS], uint32_t *ndims, bool *unsized);
bool ptx_parse_declaration(ptx_parser *p, ptx_linkage l); /* .reg and variables, with the ';' */
bool ptx_finish_symbol(ptx_parser *p, ptx_symbol *s, const ptx_decl *d, const uint64_t *dims,
                       uint32_t ndims);

/* ---- parse_init.c ---- */
bool ptx_parse_init(ptx_parser *p, ptx_symbol *s, uint64_t *dims, uint32_t ndims);

/* ---- parse_func.c ---- */
bool ptx_parse_function(ptx_parser *p, ptx_linkage l, bool is_kernel);
bool ptx_parse_prototype(ptx_parser *p, hw_str name, ptx_place at);
bool ptx_parse_calltargets(ptx_parser *p, hw_str name, ptx_place at);
bool ptx_parse_pragma(ptx_parser *p);

/* ---- parse_body.c ---- */
void ptx_parse_body(ptx_parser *p);
bool ptx_parse_operand(ptx_parser *p, ptx_operand *out);

/* ---- parse_debug.c ---- */
bool ptx_parse_loc(ptx_parser *p);
bool ptx_parse_file(ptx_parser *p);
bool ptx_parse_section(ptx_parser *p);
void ptx_finish_debug(ptx_parser *p);

/* ---- layout.c ---- */
void ptx_layout_params(ptx_param *params, uint32_t n, uint32_t *bytes);
bool ptx_layout_locals(ptx_function *f); /* false: more than 4 GB */
hw_status ptx_layout_kernel(struct hw_ptx_link *l, ptx_function *kernel, ptx_layout *out,
                            hw_diag *d);

#endif
