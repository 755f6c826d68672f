/* SPDX-License-Identifier: Apache-2.0
 * Device printf: C's conversions over arguments that lie packed in device memory, each aligned to
 * its size (CUDA C++ Programming Guide, "Formatted Output"). */
#include "print.h"
#include "exec.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    FORMAT_MOST = 8192,    /* characters of a format */
    FIELD_MOST = 65535,    /* width and precision */
    STRING_MOST = 1 << 20, /* characters of a %s */
    RECORD_HEADER = 16,    /* what a call costs in the ring buffer beside its arguments */
};

typedef struct spec {
    char flags[8];
    int width, precision; /* -1: none */
    char length;          /* 0, 'h', 'l' (also ll, j, z, t) */
    char conversion;
} spec;

typedef struct call {
    hw_prints *p;
    hw_frame *f;
    uint64_t args, at; /* at: bytes of arguments read */
    int count;
} call;

/* ---- reading device memory ---- */

void hw_device_readable(hw_frame *f, uint64_t addr, uint64_t size)
{
    uint64_t off = addr - f->range_lo;
    bool inside = off < f->range_size && size <= f->range_size - off;
    if (!inside && !hw_mem_is_registered(addr, size))
        hw_raise_address(f, HW_F_ILLEGAL_ADDRESS, f->fault_loc, addr);
}

static char device_char(hw_frame *f, uint64_t addr)
{
    if (addr - f->range_lo >= f->range_size)
        hw_device_readable(f, addr, 1);
    return *(const volatile char *)(uintptr_t)addr;
}

size_t hw_device_string(hw_frame *f, uint64_t addr, char *out, size_t cap)
{
    size_t n = 0;
    for (char c; n + 1 < cap && (c = device_char(f, addr + n)) != 0; n++)
        out[n] = c;
    out[n] = 0;
    return n;
}

static uint64_t next_argument(call *c, uint32_t size)
{
    uint64_t value = 0;
    c->at = (c->at + size - 1) / size * size;
    hw_device_readable(c->f, c->args + c->at, size);
    memcpy(&value, (const void *)(uintptr_t)(c->args + c->at), size);
    c->at += size;
    c->count++;
    return value;
}

/* ---- the text ---- */

static char *room(hw_prints *p, size_t n)
{
    if (!p->text || p->text_cap - p->text_len < n) {
        size_t cap = (p->text_cap + n + 128) * 2;
        char *text = realloc(p->text, cap);
        if (!text)
            hw_oom(cap);
        p->text = text;
        p->text_cap = cap;
    }
    return p->text + p->text_len;
}

static void put(hw_prints *p, const char *s, size_t n)
{
    memcpy(room(p, n), s, n);
    p->text_len += n;
}

static void pad(hw_prints *p, int n)
{
    for (; n > 0; n--)
        put(p, " ", 1);
}

/* ---- one conversion ---- */

static const char *parse_number(call *c, const char *s, int *out)
{
    if (*s == '*') {
        *out = (int)next_argument(c, 4);
        s++;
    } else {
        for (*out = 0; *s >= '0' && *s <= '9'; s++)
            *out = *out > FIELD_MOST ? *out : *out * 10 + (*s - '0');
    }
    if (*out > FIELD_MOST)
        *out = FIELD_MOST;
    return s;
}

static const char *parse_flags(const char *s, char flags[8])
{
    size_t n = 0;
    for (; *s && strchr("-+ #0", *s); s++)
        if (n < 6 && !strchr(flags, *s))
            flags[n++] = *s;
    return s;
}

/* A negative '*' means left-justified. */
static void negative_width(spec *o)
{
    if (!strchr(o->flags, '-'))
        o->flags[strlen(o->flags)] = '-';
    o->width = o->width < -FIELD_MOST ? FIELD_MOST : -o->width;
}

/* s stands behind the '%'. Returns the place behind the conversion. */
static const char *parse_spec(call *c, const char *s, spec *o)
{
    *o = (spec){ .width = -1, .precision = -1 };
    s = parse_flags(s, o->flags);
    if (*s == '*' || (*s >= '0' && *s <= '9')) {
        s = parse_number(c, s, &o->width);
        if (o->width < 0)
            negative_width(o);
    }
    if (*s == '.') {
        s = parse_number(c, s + 1, &o->precision);
        if (o->precision < 0)
            o->precision = -1;
    }
    for (; *s && strchr("hlLqjzt", *s); s++)
        o->length = *s == 'h' ? 'h' : 'l';
    o->conversion = *s;
    return *s ? s + 1 : s;
}

/* Print one number with the host's printf; `format` gets the flags and "*.*" in front of tail. */
static void put_number(hw_prints *p, const spec *o, const char *tail, bool is_float, uint64_t bits)
{
    char format[32];
    snprintf(format, sizeof format, "%%%s%s%s%s", o->flags, o->width >= 0 ? "*" : "",
             o->precision >= 0 ? ".*" : "", tail);
    size_t most =
        512 + (size_t)(o->width > 0 ? o->width : 0) + (size_t)(o->precision > 0 ? o->precision : 0);
    char *to = room(p, most);
    double d;
    memcpy(&d, &bits, sizeof d);
    unsigned long long u = bits;
    int n;
#define PRINT(value)                                                       \
    (o->width >= 0 && o->precision >= 0                                    \
         ? snprintf(to, most, format, o->width, o->precision, value)       \
     : o->width >= 0     ? snprintf(to, most, format, o->width, value)     \
     : o->precision >= 0 ? snprintf(to, most, format, o->precision, value) \
                         : snprintf(to, most, format, value))
    n = is_float ? PRINT(d) : PRINT(u);
#undef PRINT
    p->text_len += n < 0 ? 0 : (size_t)n < most ? (size_t)n : most - 1;
}

static void put_integer(call *c, const spec *o)
{
    bool is_signed = o->conversion == 'd' || o->conversion == 'i';
    uint64_t v = next_argument(c, o->length == 'l' ? 8 : 4);
    if (o->length == 'h')
        v = is_signed ? (uint64_t)(int16_t)v : (uint16_t)v;
    else if (o->length != 'l')
        v = is_signed ? (uint64_t)(int32_t)v : (uint32_t)v;
    const char tail[] = { 'l', 'l', o->conversion, 0 };
    put_number(c->p, o, tail, false, v);
}

static void put_float(call *c, const spec *o)
{
    const char tail[] = { o->conversion, 0 };
    put_number(c->p, o, tail, true, next_argument(c, 8));
}

static void put_justified(call *c, const spec *o, size_t n, uint64_t addr, const char *host)
{
    int fill = o->width - (int)n;
    bool left = strchr(o->flags, '-') != NULL;
    if (!left)
        pad(c->p, fill);
    if (host)
        put(c->p, host, n);
    else
        for (size_t i = 0; i < n; i++) {
            char ch = device_char(c->f, addr + i);
            put(c->p, &ch, 1);
        }
    if (left)
        pad(c->p, fill);
}

static void put_char(call *c, const spec *o)
{
    char ch = (char)next_argument(c, 4);
    put_justified(c, o, 1, 0, &ch);
}

static void put_string(call *c, const spec *o)
{
    uint64_t addr = next_argument(c, 8);
    size_t most = o->precision >= 0 ? (size_t)o->precision : STRING_MOST, n = 0;
    if (!addr) {
        put_justified(c, o, most < 6 ? 0 : 6, 0, "(null)");
        return;
    }
    while (n < most && device_char(c->f, addr + n))
        n++;
    put_justified(c, o, n, addr, NULL);
}

static void put_pointer(call *c, const spec *o)
{
    uint64_t v = next_argument(c, 8);
    char text[24];
    int n = v ? snprintf(text, sizeof text, "0x%llx", (unsigned long long)v)
              : snprintf(text, sizeof text, "(nil)");
    put_justified(c, o, (size_t)n, 0, text);
}

/* clang-format off */
static const struct { const char *conversions; void (*put)(call *, const spec *); } conversions[] = {
    { "diouxX",   put_integer },
    { "eEfFgGaA", put_float },
    { "c",        put_char },
    { "s",        put_string },
    { "p",        put_pointer },
};
/* clang-format on */

/* s stands at a '%'. What is no conversion is printed as it stands. */
static const char *convert(call *c, const char *s)
{
    if (s[1] == '%') {
        put(c->p, "%", 1);
        return s + 2;
    }
    spec o;
    const char *end = parse_spec(c, s + 1, &o);
    for (size_t i = 0; o.conversion && i < HW_COUNTOF(conversions); i++)
        if (strchr(conversions[i].conversions, o.conversion)) {
            conversions[i].put(c, &o);
            return end;
        }
    put(c->p, s, (size_t)(end - s));
    return end;
}

/* ---- records ---- */

static int by_block(const void *a, const void *b)
{
    const hw_print *x = a, *y = b;
    if (x->block != y->block)
        return x->block < y->block ? -1 : 1;
    return x->seq < y->seq ? -1 : x->seq > y->seq;
}

/* How many of the first records are overwritten when only the last `limit` bytes survive. */
static size_t overwritten(const hw_print *r, size_t n, size_t limit)
{
    size_t cost = 0, i = n;
    while (i > 0 && cost + r[i - 1].cost <= limit)
        cost += r[--i].cost;
    return i;
}

/* Keep memory bounded: what is dropped here could not be among the last in the end either, since
 * enough later records exist already. */
static void prune(hw_prints *p)
{
    qsort(p->ptr, p->len, sizeof *p->ptr, by_block);
    size_t first = overwritten(p->ptr, p->len, p->limit);
    hw_prints kept = { .limit = p->limit, .seq = p->seq };
    kept.cap = p->cap;
    kept.ptr = calloc(kept.cap, sizeof *kept.ptr);
    if (!kept.ptr)
        hw_oom(kept.cap * sizeof *kept.ptr);
    for (size_t i = first; i < p->len; i++) {
        hw_print r = p->ptr[i];
        size_t at = kept.text_len;
        put(&kept, p->text + r.at, r.len);
        r.at = at;
        kept.cost += r.cost;
        kept.ptr[kept.len++] = r;
    }
    free(p->ptr);
    free(p->text);
    *p = kept;
}

static void keep(hw_prints *p, hw_print r)
{
    if (p->len == p->cap) {
        size_t cap = p->cap ? p->cap * 2 : 64;
        hw_print *ptr = realloc(p->ptr, cap * sizeof *ptr);
        if (!ptr)
            hw_oom(cap * sizeof *ptr);
        p->ptr = ptr;
        p->cap = cap;
    }
    p->ptr[p->len++] = r;
    p->cost += r.cost;
}

int hw_print_call(hw_prints *p, hw_frame *f, uint64_t block, uint64_t fmt, uint64_t args)
{
    char format[FORMAT_MOST];
    if (!fmt)
        return -1;
    hw_device_string(f, fmt, format, sizeof format);
    if (p->cost > 2 * p->limit)
        prune(p);
    size_t at = p->text_len;
    call c = { .p = p, .f = f, .args = args };
    for (const char *s = format; *s;) {
        size_t plain = strcspn(s, "%");
        put(p, s, plain);
        s += plain;
        if (*s)
            s = convert(&c, s);
    }
    keep(p, (hw_print){ .block = block,
                        .seq = p->seq++,
                        .at = at,
                        .len = p->text_len - at,
                        .cost = RECORD_HEADER + ((size_t)c.at + 7) / 8 * 8 });
    return c.count;
}

typedef struct source {
    hw_print r;
    const char *text;
} source;

char *hw_prints_join(hw_prints *const *p, size_t n, uint64_t last_block, size_t *len)
{
    size_t count = 0, total = 0, limit = 0;
    for (size_t i = 0; i < n; i++) {
        count += p[i]->len;
        limit = p[i]->limit;
    }
    *len = 0;
    source *all = count ? calloc(count, sizeof *all) : NULL;
    if (!all)
        return NULL;
    size_t have = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < p[i]->len; j++)
            if (p[i]->ptr[j].block <= last_block) {
                total += p[i]->ptr[j].len;
                all[have++] = (source){ p[i]->ptr[j], p[i]->text + p[i]->ptr[j].at };
            }
    /* The record stands first in source, so the same comparison serves. */
    qsort(all, have, sizeof *all, by_block);
    char *out = malloc(total + 1);
    size_t cost = 0, first = have;
    while (first > 0 && cost + all[first - 1].r.cost <= limit)
        cost += all[--first].r.cost;
    for (size_t i = first; out && i < have; i++) {
        memcpy(out + *len, all[i].text, all[i].r.len);
        *len += all[i].r.len;
    }
    free(all);
    return out;
}

void hw_prints_free(hw_prints *p)
{
    free(p->ptr);
    free(p->text);
    *p = (hw_prints){ 0 };
}
