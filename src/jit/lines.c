/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads the line table of a loaded object (DWARF 4, section 6.2) up to one address. Bounds are
 * checked throughout: cache files may be damaged.
 */
#include "codegen.h"

typedef struct reader {
    const uint8_t *at, *end;
    bool bad;
} reader;

static uint64_t bytes(reader *r, unsigned n)
{
    uint64_t v = 0;
    if ((size_t)(r->end - r->at) < n) {
        r->bad = true;
        r->at = r->end;
        return 0;
    }
    memcpy(&v, r->at, n);
    r->at += n;
    return v;
}

static uint64_t leb(reader *r, bool is_signed)
{
    uint64_t v = 0;
    unsigned shift = 0;
    uint8_t b;
    do {
        b = (uint8_t)bytes(r, 1);
        if (shift < 64)
            v |= (uint64_t)(b & 0x7f) << shift;
        shift += 7;
    } while ((b & 0x80) && !r->bad);
    if (is_signed && shift < 64 && (b & 0x40))
        v |= ~UINT64_C(0) << shift;
    return v;
}

static void skip(reader *r, uint64_t n)
{
    if ((uint64_t)(r->end - r->at) < n) {
        r->bad = true;
        r->at = r->end;
    } else {
        r->at += n;
    }
}

typedef struct header {
    uint8_t least, range, opcodes;
    int8_t base;
    const uint8_t *lengths; /* of standard opcodes, from opcode 1 */
} header;

/* Leaves r at the program. */
static bool read_header(reader *r, header *h)
{
    uint64_t version = bytes(r, 2), rest = bytes(r, 4);
    reader program = *r;
    skip(&program, rest);
    h->least = (uint8_t)bytes(r, 1);
    bytes(r, 1); /* operations an instruction */
    bytes(r, 1); /* is a line a statement */
    h->base = (int8_t)bytes(r, 1);
    h->range = (uint8_t)bytes(r, 1);
    h->opcodes = (uint8_t)bytes(r, 1);
    h->lengths = r->at - 1;
    skip(r, h->opcodes ? h->opcodes - 1u : 0);
    bool good = !r->bad && !program.bad && version == 4 && h->range && h->opcodes >= 10;
    *r = program;
    return good;
}

typedef struct search {
    uint64_t pc, address, last_address;
    uint32_t line, last_line, found;
    bool in_sequence, hit;
} search;

/* A row begins at an address; the one before ends there. */
static void row(search *s)
{
    if (s->in_sequence && s->pc >= s->last_address && s->pc < s->address) {
        s->found = s->last_line;
        s->hit = true;
    }
    s->last_address = s->address;
    s->last_line = s->line;
    s->in_sequence = true;
}

static void extended(reader *r, search *s)
{
    enum { END_SEQUENCE = 1, SET_ADDRESS = 2 };
    uint64_t n = leb(r, false);
    reader after = *r;
    skip(&after, n);
    uint64_t op = bytes(r, 1);
    if (op == END_SEQUENCE) {
        row(s);
        s->address = 0;
        s->line = 1;
        s->in_sequence = false;
    } else if (op == SET_ADDRESS) {
        s->address = bytes(r, 8);
    }
    *r = after;
}

static void standard(reader *r, const header *h, search *s, uint8_t op)
{
    enum { COPY = 1, ADVANCE_PC, ADVANCE_LINE, CONST_ADD_PC = 8, FIXED_ADVANCE_PC };
    switch (op) {
    case COPY:
        row(s);
        break;
    case ADVANCE_PC:
        s->address += leb(r, false) * h->least;
        break;
    case ADVANCE_LINE:
        s->line += (uint32_t)leb(r, true);
        break;
    case CONST_ADD_PC:
        s->address += (uint64_t)((255 - h->opcodes) / h->range) * h->least;
        break;
    case FIXED_ADVANCE_PC:
        s->address += bytes(r, 2);
        break;
    default:
        for (uint8_t i = 0; i < h->lengths[op]; i++)
            leb(r, false);
    }
}

static void special(const header *h, search *s, uint8_t op)
{
    unsigned adjusted = op - h->opcodes;
    s->address += (uint64_t)(adjusted / h->range) * h->least;
    s->line += (uint32_t)(h->base + (int)(adjusted % h->range));
    row(s);
}

uint32_t hw_lines_find(hw_span table, uint64_t pc)
{
    reader all = { table.ptr, table.ptr + table.len, false };
    search s = { .pc = pc, .line = 1 };
    while (all.at < all.end && !all.bad && !s.hit) {
        uint64_t n = bytes(&all, 4);
        reader r = all;
        skip(&all, n);
        r.end = all.at;
        header h;
        if (all.bad || !read_header(&r, &h))
            return 0;
        while (r.at < r.end && !r.bad && !s.hit) {
            uint8_t op = (uint8_t)bytes(&r, 1);
            if (op >= h.opcodes)
                special(&h, &s, op);
            else if (op)
                standard(&r, &h, &s, op);
            else
                extended(&r, &s);
        }
    }
    return s.found;
}
