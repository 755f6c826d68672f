/* SPDX-License-Identifier: Apache-2.0
 *
 * Integer expressions in `lane`, with C's operators and their precedence. */
#include "access.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>

#define DEPTH_MAX 64

typedef struct expr {
    const char *start, *at;
    int64_t lane;
    const char *error; /* the first, or NULL */
    unsigned depth;
} expr;

static int64_t conditional(expr *e);

static int64_t fail(expr *e, const char *why)
{
    if (!e->error)
        e->error = why;
    return 0;
}

static void space(expr *e)
{
    while (isspace((unsigned char)*e->at))
        e->at++;
}

static bool take(expr *e, const char *token)
{
    space(e);
    size_t n = strlen(token);
    if (strncmp(e->at, token, n) != 0)
        return false;
    e->at += n;
    return true;
}

/* ---- operands ---- */

static int64_t number(expr *e)
{
    char *end;
    errno = 0;
    long long v = strtoll(e->at, &end, 0);
    if (errno == ERANGE)
        return fail(e, "a number is too large");
    e->at = end;
    return v;
}

static int64_t name(expr *e)
{
    static const char *const names[] = { "lane", "laneid", "i", "t", "tid", "threadIdx.x" };
    const char *from = e->at;
    while (isalnum((unsigned char)*e->at) || *e->at == '_' || *e->at == '.')
        e->at++;
    hw_str word = { from, (size_t)(e->at - from) };
    for (size_t i = 0; i < HW_COUNTOF(names); i++)
        if (hw_str_is(word, names[i]))
            return e->lane;
    e->at = from;
    return fail(e, "unknown name; the variable is 'lane'");
}

static int64_t operand(expr *e)
{
    space(e);
    if (isdigit((unsigned char)*e->at))
        return number(e);
    if (isalpha((unsigned char)*e->at) || *e->at == '_')
        return name(e);
    if (!take(e, "("))
        return fail(e, *e->at ? "an operand is expected" : "the expression ends too early");
    int64_t v = conditional(e);
    if (!take(e, ")"))
        return fail(e, "')' is missing");
    return v;
}

static int64_t unary(expr *e)
{
    int64_t v, zero = 0;
    if (e->depth >= DEPTH_MAX)
        return fail(e, "the expression is nested too deeply");
    e->depth++;
    if (take(e, "-")) {
        v = unary(e);
        v = __builtin_sub_overflow(zero, v, &v) ? fail(e, "a value overflows") : v;
    } else if (take(e, "~")) {
        v = ~unary(e);
    } else if (take(e, "!")) {
        v = !unary(e);
    } else if (take(e, "+")) {
        v = unary(e);
    } else {
        v = operand(e);
    }
    e->depth--;
    return v;
}

/* ---- binary operators ---- */

static int64_t op_add(expr *e, int64_t x, int64_t y)
{
    int64_t v;
    return __builtin_add_overflow(x, y, &v) ? fail(e, "a sum overflows") : v;
}

static int64_t op_sub(expr *e, int64_t x, int64_t y)
{
    int64_t v;
    return __builtin_sub_overflow(x, y, &v) ? fail(e, "a difference overflows") : v;
}

static int64_t op_mul(expr *e, int64_t x, int64_t y)
{
    int64_t v;
    return __builtin_mul_overflow(x, y, &v) ? fail(e, "a product overflows") : v;
}

static bool no_quotient(expr *e, int64_t x, int64_t y)
{
    if (y == 0)
        fail(e, "division by zero");
    else if (x == INT64_MIN && y == -1)
        fail(e, "a quotient overflows");
    return e->error != NULL;
}

static int64_t op_div(expr *e, int64_t x, int64_t y)
{
    return no_quotient(e, x, y) ? 0 : x / y;
}

static int64_t op_mod(expr *e, int64_t x, int64_t y)
{
    return no_quotient(e, x, y) ? 0 : x % y;
}

static int64_t op_shl(expr *e, int64_t x, int64_t y)
{
    if (y < 0 || y > 62 || x < 0 || x > INT64_MAX >> y)
        return fail(e, "a shift overflows");
    return x << y;
}

static int64_t op_shr(expr *e, int64_t x, int64_t y)
{
    return y < 0 || y > 63 ? fail(e, "a shift count is not 0 to 63") : x >> y;
}

#define OP(name, expression)                                \
    static int64_t op_##name(expr *e, int64_t x, int64_t y) \
    {                                                       \
        (void)e;                                            \
        return expression;                                  \
    }
OP(and, x &y)
OP(xor, x ^ y)
OP(or, x | y)
OP(lt, x < y)
OP(gt, x > y)
OP(le, x <= y)
OP(ge, x >= y)
OP(eq, x == y)
OP(ne, x != y)
OP(land, x &&y)
OP(lor, x || y)

typedef struct operation {
    const char *token;
    char not_before; /* a token that is longer starts with this one */
    int level;       /* the higher, the tighter */
    int64_t (*apply)(expr *e, int64_t x, int64_t y);
} operation;

/* clang-format off */
static const operation operations[] = {
    { "||", 0, 1, op_lor }, { "&&", 0, 2, op_land }, { "|", '|', 3, op_or }, { "^", 0, 4, op_xor }, { "&", '&', 5, op_and },
    { "==", 0, 6, op_eq }, { "!=", 0, 6, op_ne },
    { "<=", 0, 7, op_le }, { ">=", 0, 7, op_ge }, { "<<", 0, 8, op_shl }, { ">>", 0, 8, op_shr },
    { "<", '<', 7, op_lt }, { ">", '>', 7, op_gt },
    { "+", 0, 9, op_add }, { "-", 0, 9, op_sub }, { "*", 0, 10, op_mul }, { "/", 0, 10, op_div }, { "%", 0, 10, op_mod },
};
/* clang-format on */

static const operation *next_operation(expr *e, int least)
{
    space(e);
    for (size_t i = 0; i < HW_COUNTOF(operations); i++) {
        const operation *o = &operations[i];
        size_t n = strlen(o->token);
        if (strncmp(e->at, o->token, n) != 0 || (o->not_before && e->at[n] == o->not_before))
            continue;
        return o->level >= least ? o : NULL;
    }
    return NULL;
}

static int64_t binary(expr *e, int least)
{
    int64_t x = unary(e);
    const operation *o;
    while (!e->error && (o = next_operation(e, least))) {
        e->at += strlen(o->token);
        int64_t y = binary(e, o->level + 1);
        if (!e->error)
            x = o->apply(e, x, y);
    }
    return x;
}

/* Both branches are evaluated. */
static int64_t conditional(expr *e)
{
    if (e->depth >= DEPTH_MAX)
        return fail(e, "the expression is nested too deeply");
    e->depth++;
    int64_t v = binary(e, 1);
    if (!e->error && take(e, "?")) {
        int64_t yes = conditional(e);
        if (!take(e, ":"))
            fail(e, "':' is missing");
        int64_t no = conditional(e);
        v = v ? yes : no;
    }
    e->depth--;
    return v;
}

bool cli_expression(cli *c, const char *text, int64_t lane, int64_t *value)
{
    expr e = { .start = text, .at = text, .lane = lane };
    *value = conditional(&e);
    space(&e);
    if (!e.error && *e.at)
        fail(&e, "an operator is expected");
    if (!e.error)
        return true;
    cli_fail(c, "--pattern, column %d, lane %d: %s\n    %s\n    %*s^", (int)(e.at - e.start) + 1,
             (int)lane, e.error, text, (int)(e.at - e.start), "");
    return false;
}
