/* SPDX-License-Identifier: Apache-2.0
 * Constant expressions: C's operators over 64-bit integers and doubles (PTX ISA, "Constant
 * Expressions"). */
#include "parse.h"

static bool parse_binary(ptx_parser *p, int least, ptx_const *out);

static bool is_cast(const ptx_parser *p)
{
    return p->t.kind == PTX_T_DOT && (hw_str_is(p->t.text, "s64") || hw_str_is(p->t.text, "u64"));
}

bool ptx_starts_const(const ptx_parser *p)
{
    if (p->t.kind == PTX_T_INT || p->t.kind == PTX_T_FLOAT)
        return true;
    if (p->t.kind == PTX_T_PUNCT)
        return strchr("(-+~!", p->t.punct) && p->t.punct;
    return p->t.kind == PTX_T_NAME && hw_str_is(p->t.text, "WARP_SZ");
}

static bool parse_ternary(ptx_parser *p, ptx_const *out)
{
    if (!parse_binary(p, 0, out))
        return false;
    if (!ptx_accept(p, '?'))
        return true;
    ptx_const yes, no;
    bool which = out->is_float ? out->value != 0 : out->bits != 0;
    if (!ptx_parse_const(p, &yes) || !ptx_expect(p, ':', "in the condition") ||
        !ptx_parse_const(p, &no))
        return false;
    *out = which ? yes : no;
    return true;
}

bool ptx_parse_const(ptx_parser *p, ptx_const *out)
{
    if (p->nesting >= PTX_MAX_NESTING)
        return ptx_fail(p, "expression is nested too deeply");
    p->nesting++;
    bool ok = parse_ternary(p, out);
    p->nesting--;
    return ok;
}

static void make_float(ptx_const *c)
{
    if (!c->is_float)
        c->value = c->is_unsigned ? (double)c->bits : (double)(int64_t)c->bits;
    c->is_float = true;
    c->is_single = false;
    memcpy(&c->bits, &c->value, 8);
}

static void make_int(ptx_const *c, uint64_t bits)
{
    *c = (ptx_const){ .bits = bits, .is_unsigned = c->is_unsigned };
}

static bool parse_parenthesis(ptx_parser *p, ptx_const *out)
{
    ptx_next(p);
    if (is_cast(p)) {
        bool is_unsigned = p->t.text.ptr[0] == 'u';
        ptx_next(p);
        if (!ptx_expect(p, ')', "after the cast's type") || !parse_binary(p, 100, out))
            return false;
        if (out->is_float)
            return ptx_fail(p, "a floating-point constant cannot be cast");
        out->is_unsigned = is_unsigned;
        return true;
    }
    return ptx_parse_const(p, out) && ptx_expect(p, ')', "in the expression");
}

static bool apply_unary(ptx_parser *p, int op, ptx_const *c)
{
    if (c->is_float && op == '~')
        return ptx_fail(p, "'~' takes an integer");
    switch (op) {
    case '-':
        if (c->is_float) {
            c->value = -c->value;
            c->bits ^= c->is_single ? UINT64_C(1) << 31 : UINT64_C(1) << 63;
        } else {
            c->bits = 0 - c->bits;
        }
        return true;
    case '~':
        c->bits = ~c->bits;
        return true;
    case '!':
        make_int(c, c->is_float ? c->value == 0 : c->bits == 0);
        return true;
    default:
        return true;
    }
}

static bool parse_primary(ptx_parser *p, ptx_const *out)
{
    const ptx_token *t = &p->t;
    if (t->kind == PTX_T_INT || t->kind == PTX_T_FLOAT) {
        *out = (ptx_const){ .is_float = t->kind == PTX_T_FLOAT,
                            .is_unsigned = t->is_unsigned,
                            .is_single = t->is_single,
                            .bits = t->bits,
                            .value = t->kind == PTX_T_FLOAT ? t->value : 0 };
        ptx_next(p);
        return true;
    }
    if (t->kind == PTX_T_NAME && hw_str_is(t->text, "WARP_SZ")) {
        *out = (ptx_const){ .bits = 32 };
        ptx_next(p);
        return true;
    }
    if (ptx_is(p, '('))
        return parse_parenthesis(p, out);
    return t->kind == PTX_T_BAD ? false
                                : ptx_fail(p, "expected a constant, found %s", ptx_token_text(p));
}

static bool parse_unary(ptx_parser *p, ptx_const *out)
{
    if (p->t.kind != PTX_T_PUNCT || !p->t.punct || !strchr("-+~!", p->t.punct))
        return parse_primary(p, out);
    int op = p->t.punct;
    if (p->nesting >= PTX_MAX_NESTING)
        return ptx_fail(p, "expression is nested too deeply");
    p->nesting++;
    ptx_next(p);
    bool ok = parse_unary(p, out) && apply_unary(p, op, out);
    p->nesting--;
    return ok;
}

/* clang-format off */
static const struct { uint8_t punct, level; bool integers; } operators[] = {
    { PTX_P_OR, 1, 1 }, { PTX_P_AND, 2, 1 }, { '|', 3, 1 }, { '^', 4, 1 }, { '&', 5, 1 },
    { PTX_P_EQ, 6, 0 }, { PTX_P_NE, 6, 0 },
    { '<', 7, 0 }, { '>', 7, 0 }, { PTX_P_LE, 7, 0 }, { PTX_P_GE, 7, 0 },
    { PTX_P_SHL, 8, 1 }, { PTX_P_SHR, 8, 1 },
    { '+', 9, 0 }, { '-', 9, 0 }, { '*', 10, 0 }, { '/', 10, 0 }, { '%', 10, 1 },
};
/* clang-format on */

static uint64_t shift_right(const ptx_const *a, uint64_t n)
{
    if (a->is_unsigned)
        return n < 64 ? a->bits >> n : 0;
    return (uint64_t)((int64_t)a->bits >> (n < 64 ? n : 63));
}

/* Quotient or remainder; b is not 0. The one overflowing case wraps. */
static uint64_t divide(const ptx_const *a, uint64_t b, bool is_unsigned, bool remainder)
{
    if (is_unsigned)
        return remainder ? a->bits % b : a->bits / b;
    if (b == UINT64_MAX)
        return remainder ? 0 : 0 - a->bits;
    int64_t x = (int64_t)a->bits, y = (int64_t)b;
    return (uint64_t)(remainder ? x % y : x / y);
}

static int compare(uint64_t a, uint64_t b, bool is_unsigned)
{
    if (is_unsigned)
        return (a > b) - (a < b);
    return ((int64_t)a > (int64_t)b) - ((int64_t)a < (int64_t)b);
}

static bool test(int op, int order)
{
    switch (op) {
    case '<':
        return order < 0;
    case '>':
        return order > 0;
    case PTX_P_LE:
        return order <= 0;
    case PTX_P_GE:
        return order >= 0;
    case PTX_P_EQ:
        return order == 0;
    default:
        return order != 0;
    }
}

static uint64_t combine(int op, const ptx_const *a, const ptx_const *b)
{
    switch (op) {
    case PTX_P_OR:
        return a->bits || b->bits;
    case PTX_P_AND:
        return a->bits && b->bits;
    case '|':
        return a->bits | b->bits;
    case '^':
        return a->bits ^ b->bits;
    case '&':
        return a->bits & b->bits;
    case PTX_P_SHL:
        return b->bits < 64 ? a->bits << b->bits : 0;
    case PTX_P_SHR:
        return shift_right(a, b->bits);
    case '+':
        return a->bits + b->bits;
    case '-':
        return a->bits - b->bits;
    default:
        return a->bits * b->bits;
    }
}

static void apply_float(int op, ptx_const *a, ptx_const *b)
{
    make_float(a);
    make_float(b);
    if (op == '+')
        a->value += b->value;
    else if (op == '-')
        a->value -= b->value;
    else if (op == '*')
        a->value *= b->value;
    else if (op == '/')
        a->value /= b->value;
    else {
        int order = (a->value > b->value) - (a->value < b->value);
        make_int(a, test(op, order));
        return;
    }
    memcpy(&a->bits, &a->value, 8);
}

static bool apply_binary(ptx_parser *p, size_t which, ptx_const *a, ptx_const *b)
{
    int op = operators[which].punct;
    if (a->is_float || b->is_float) {
        if (operators[which].integers)
            return ptx_fail(p, "the operator before this takes integers");
        apply_float(op, a, b);
        return true;
    }
    bool is_unsigned = a->is_unsigned || b->is_unsigned;
    if ((op == '/' || op == '%') && b->bits == 0)
        return ptx_fail(p, "constant expression divides by zero");
    if (op == '/' || op == '%')
        a->bits = divide(a, b->bits, is_unsigned, op == '%');
    else if (operators[which].level == 6 || operators[which].level == 7)
        a->bits = test(op, compare(a->bits, b->bits, is_unsigned));
    else
        a->bits = combine(op, a, b);
    if (op != PTX_P_SHL && op != PTX_P_SHR)
        a->is_unsigned = is_unsigned;
    return true;
}

static size_t operator_here(const ptx_parser *p, int least)
{
    for (size_t i = 0; i < HW_COUNTOF(operators); i++)
        if (operators[i].level >= least && ptx_is(p, operators[i].punct))
            return i;
    return SIZE_MAX;
}

/* Operators of level least and above; 100 is an operand alone. */
static bool parse_binary(ptx_parser *p, int least, ptx_const *out)
{
    if (!parse_unary(p, out))
        return false;
    if (p->t.kind != PTX_T_PUNCT || ptx_is(p, ';') || ptx_is(p, ','))
        return true;
    for (;;) {
        size_t which = operator_here(p, least);
        if (which == SIZE_MAX)
            return true;
        ptx_next(p);
        ptx_const right;
        if (p->nesting >= PTX_MAX_NESTING)
            return ptx_fail(p, "expression is nested too deeply");
        p->nesting++;
        bool ok = parse_binary(p, operators[which].level + 1, &right);
        p->nesting--;
        if (!ok || !apply_binary(p, which, out, &right))
            return false;
    }
}

static bool whole_number(ptx_parser *p, const ptx_const *c, ptx_place at, uint64_t max,
                         const char *what)
{
    if (!c->is_float && c->bits <= max)
        return true;
    return ptx_error(p, at, HW_E_SYNTAX, "%s must be an integer from 0 to %llu", what,
                     (unsigned long long)max);
}

bool ptx_parse_int(ptx_parser *p, uint64_t max, const char *what, uint64_t *out)
{
    ptx_place at = ptx_here(p);
    ptx_const c;
    if (!ptx_parse_const(p, &c))
        return false;
    *out = c.bits;
    return whole_number(p, &c, at, max, what);
}

bool ptx_parse_count(ptx_parser *p, uint64_t max, const char *what, uint64_t *out)
{
    enum { ABOVE_COMPARISONS = 8 };
    ptx_place at = ptx_here(p);
    ptx_const c;
    if (!parse_binary(p, ABOVE_COMPARISONS, &c))
        return false;
    *out = c.bits;
    return whole_number(p, &c, at, max, what) && ptx_expect(p, '>', "after the count");
}

static uint64_t half_bits(double value)
{
    _Float16 h = (_Float16)value;
    uint16_t bits;
    memcpy(&bits, &h, 2);
    return bits;
}

uint64_t ptx_const_bits(const ptx_const *c, ptx_type t)
{
    bool is_float_type = t == PTX_F32 || t == PTX_F64 || t == PTX_F16;
    if (!c->is_float)
        return c->bits;
    if (!is_float_type)
        return c->bits; /* 0f in a .b32: the pattern */
    if (t == PTX_F16)
        return half_bits(c->value);
    if (t == PTX_F64) {
        uint64_t bits;
        memcpy(&bits, &c->value, 8);
        return bits;
    }
    if (c->is_single)
        return c->bits;
    float f = (float)c->value;
    uint32_t bits;
    memcpy(&bits, &f, 4);
    return bits;
}
