/* SPDX-License-Identifier: Apache-2.0
 * Initial values of variables: numbers, nested braces, addresses (PTX ISA, "Initializers"). */
#include "parse.h"

typedef struct init {
    ptx_symbol *s;
    uint32_t ndims; /* a vector is an innermost dimension more */
    uint64_t dims[PTX_MAX_DIMS + 1];
    uint64_t stride[PTX_MAX_DIMS + 1]; /* bytes of one element of that dimension */
    uint32_t width;                    /* bytes of a scalar */
    HW_VEC(uint8_t) bytes;
    HW_VEC(ptx_init_reloc) relocs;
    bool nonzero;
} init;

static bool put_bytes(ptx_parser *p, init *in, uint64_t at, uint64_t bits)
{
    uint64_t end = at + in->width;
    if (end > PTX_MAX_INIT_BYTES)
        return ptx_error(p, in->s->place, HW_E_SYNTAX, "initial value is too large");
    if (end > in->bytes.cap) {
        /* A fresh array is zero beyond what was copied; grow by halves at least. */
        in->bytes.ptr =
            hw_vec_grow(p->scratch, in->bytes.ptr, in->bytes.len, &in->bytes.cap, 1, (size_t)end);
    }
    if (end > in->bytes.len)
        in->bytes.len = (size_t)end;
    memcpy(in->bytes.ptr + at, &bits, in->width < 8 ? in->width : 8);
    in->nonzero |= bits != 0;
    return true;
}

/* sym, sym+4, generic(sym), generic(sym)+4, generic(sym+4) */
static bool parse_symbol(ptx_parser *p, ptx_init_reloc *r)
{
    hw_str name = p->t.text;
    ptx_place at = ptx_here(p);
    if (p->t.kind != PTX_T_NAME)
        return ptx_fail(p, "expected a symbol, found %s", ptx_token_text(p));
    ptx_next(p);
    if (hw_str_is(name, "generic") && !r->generic && ptx_accept(p, '(')) {
        r->generic = true;
        if (!parse_symbol(p, r) || !ptx_expect(p, ')', "after generic's symbol"))
            return false;
    } else {
        const ptx_binding *b = ptx_lookup(p, name);
        if (!b)
            return ptx_undeclared(p, name, at);
        if (b->kind != PTX_B_SYMBOL ||
            (b->symbol->kind != PTX_SYM_VARIABLE && b->symbol->kind != PTX_SYM_FUNCTION))
            return ptx_error(p, at, HW_E_SYNTAX, "'%.*s' is not a variable or function",
                             HW_STR_ARG(name));
        r->symbol = b->symbol;
        r->name = name;
    }
    if (ptx_is(p, '+') || ptx_is(p, '-')) {
        ptx_const c;
        if (!ptx_parse_const(p, &c))
            return false;
        r->addend += (int64_t)c.bits;
    }
    return true;
}

static bool check_symbol(ptx_parser *p, const ptx_init_reloc *r, ptx_place at)
{
    ptx_symbol *s = r->symbol;
    bool is_function = s->kind == PTX_SYM_FUNCTION;
    if (!is_function && s->space != PTX_SPACE_GLOBAL && s->space != PTX_SPACE_CONST)
        return ptx_error(
            p, at, HW_E_SYNTAX,
            "only addresses of .global and .const variables are known before a launch");
    if (is_function && r->addend)
        return ptx_error(p, at, HW_E_SYNTAX, "a function's address takes no offset");
    s->address_taken = true;
    return true;
}

/* The byte (or bytes) that a mask like 0xff00 picks of an address. */
static bool apply_mask(ptx_parser *p, init *in, ptx_init_reloc *r, uint64_t mask, ptx_place at)
{
    unsigned shift = mask ? (unsigned)__builtin_ctzll(mask) : 0;
    if (in->width != 1 || shift % 8 || mask >> shift != 0xff)
        return ptx_error(p, at, HW_E_SYNTAX,
                         "the mask must pick one byte of the address, for an "
                         "8-bit element");
    r->shift = (uint8_t)shift;
    r->width = 1;
    return true;
}

static bool parse_address(ptx_parser *p, init *in, uint64_t at_byte, bool masked, uint64_t mask)
{
    ptx_place at = ptx_here(p);
    ptx_init_reloc r = { .offset = at_byte, .width = (uint8_t)in->width };
    if (!parse_symbol(p, &r) || !check_symbol(p, &r, at))
        return false;
    if (masked ? !apply_mask(p, in, &r, mask, at) : in->width != 8 && in->width != 4)
        return masked ? false
                      : ptx_error(p, at, HW_E_SYNTAX, "an address needs a 32- or 64-bit element");
    if (!put_bytes(p, in, at_byte, 0))
        return false;
    hw_vec_push(p->arena, &in->relocs, r);
    return true;
}

/* mask(0xff, sym) and 0xff(sym) */
static bool parse_masked(ptx_parser *p, init *in, uint64_t at_byte)
{
    uint64_t mask;
    ptx_next(p);
    return ptx_expect(p, '(', "after mask") && ptx_parse_int(p, UINT64_MAX, "mask", &mask) &&
           ptx_expect(p, ',', "after the mask") && parse_address(p, in, at_byte, true, mask) &&
           ptx_expect(p, ')', "after the mask's symbol");
}

static uint64_t pattern_of(const ptx_const *c, const init *in, bool bit_type)
{
    if (!c->is_float || !bit_type || in->width == 8 || c->is_single)
        return ptx_const_bits(c, in->s->type);
    return ptx_const_bits(c, in->width == 4 ? PTX_F32 : PTX_F16);
}

static bool parse_number(ptx_parser *p, init *in, uint64_t at_byte)
{
    ptx_type t = in->s->type;
    bool float_type = t == PTX_F32 || t == PTX_F64 || t == PTX_F16;
    bool bit_type = t >= PTX_B8 && t <= PTX_B128;
    ptx_place at = ptx_here(p);
    ptx_const c;
    if (!ptx_parse_const(p, &c))
        return false;
    if (!c.is_float && ptx_accept(p, '('))
        return parse_address(p, in, at_byte, true, c.bits) &&
               ptx_expect(p, ')', "after the mask's symbol");
    if (!bit_type && c.is_float != float_type)
        return ptx_error(p, at, HW_E_SYNTAX, "initial value is %s, the variable %s",
                         c.is_float ? "a floating-point number" : "an integer",
                         float_type ? "a floating-point type" : "an integer type");
    return put_bytes(p, in, at_byte, pattern_of(&c, in, bit_type));
}

static bool parse_value(ptx_parser *p, init *in, uint64_t at_byte)
{
    if (p->t.kind == PTX_T_NAME && hw_str_is(p->t.text, "mask") && p->at < p->end && *p->at == '(')
        return parse_masked(p, in, at_byte);
    if (p->t.kind == PTX_T_NAME && !ptx_starts_const(p))
        return parse_address(p, in, at_byte, false, 0);
    return parse_number(p, in, at_byte);
}

/* What stands for one element of dimension level - 1, or the whole variable at level 0. The depth
 * of the recursion is that of the dimensions. */
static bool parse_level(ptx_parser *p, init *in, uint32_t level, uint64_t at_byte)
{
    if (!ptx_is(p, '{')) {
        if (level < in->ndims)
            return ptx_fail(p, "expected '{' for the array's initial value, found %s",
                            ptx_token_text(p));
        return parse_value(p, in, at_byte);
    }
    if (level == in->ndims)
        return ptx_fail(p, "braces are nested deeper than the variable's dimensions");
    ptx_next(p);
    uint64_t n = 0;
    bool open_ended = level == 0 && in->dims[0] == 0;
    if (ptx_accept(p, '}'))
        return true;
    do {
        if (n == in->dims[level] && !open_ended)
            return ptx_fail(p, "more initial values than the array has elements");
        if (!parse_level(p, in, level + 1, at_byte + n * in->stride[level]))
            return false;
        n++;
    } while (ptx_accept(p, ','));
    if (open_ended)
        in->dims[0] = n;
    return ptx_expect(p, '}', "after the initial values");
}

static bool set_strides(ptx_parser *p, init *in)
{
    uint64_t stride = in->width;
    for (uint32_t i = in->ndims; i-- > 0;) {
        in->stride[i] = stride;
        if (i && (__builtin_mul_overflow(stride, in->dims[i], &stride) || stride > PTX_MAX_SIZE))
            return ptx_error(p, in->s->place, HW_E_SYNTAX, "the variable is too large");
    }
    return true;
}

static bool is_opaque(ptx_type t)
{
    return t == PTX_TEXREF || t == PTX_SAMPLERREF || t == PTX_SURFREF;
}

bool ptx_parse_init(ptx_parser *p, ptx_symbol *s, uint64_t *dims, uint32_t ndims)
{
    if (is_opaque(s->type)) { /* { addr_mode_0 = wrap, ... }: the driver sets these */
        if (!ptx_is(p, '{'))
            return ptx_fail(p, "expected '{', found %s", ptx_token_text(p));
        return ptx_skip_braces(p) || ptx_fail(p, "the initial value has no closing brace");
    }
    init in = { .s = s, .width = ptx_type_bits(s->type) / 8, .ndims = ndims };
    memcpy(in.dims, dims, ndims * sizeof *dims);
    if (s->vector > 1)
        in.dims[in.ndims++] = s->vector;
    if (!set_strides(p, &in) || !parse_level(p, &in, 0, 0))
        return false;
    if (ndims)
        dims[0] = in.dims[0];
    if (in.nonzero || in.relocs.len) {
        s->init_bytes = in.bytes.len;
        s->init = (const uint8_t *)hw_arena_cstr(
            p->arena, (hw_str){ (const char *)in.bytes.ptr, in.bytes.len });
    }
    s->relocs = in.relocs.ptr;
    s->nrelocs = (uint32_t)in.relocs.len;
    return true;
}
