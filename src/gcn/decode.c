/* SPDX-License-Identifier: Apache-2.0
 * Decoding GCN machine code: the format from the first bits, the row from its opcode, the fields by
 * format. Layouts: AMD Sea Islands ISA manual (2013), chapter "Microcode formats". */
#include "gcn.h"

#define ALL (HW_GCN_SI | HW_GCN_CI)
#define SI  HW_GCN_SI
#define CI  HW_GCN_CI

enum { LITERAL = 255, VGPR0 = 256, VCC = 106, OPCODES = 512 };

/* A digit of the src column: '1'..'4', '8', 'g' = 16. Past the end of the text: 0. */
#define WIDTH(text, i) \
    (uint8_t)(sizeof(text) > (i) + 1 ? ((text)[i] == 'g' ? 16 : (text)[i] - '0') : 0)

static const hw_gcn_row rows[] = {
#define GCN(format, opcode, name, dst, src, flags, families)          \
    { #name,                                                          \
      HW_GCN_##format,                                                \
      opcode,                                                         \
      dst,                                                            \
      { WIDTH(src, 0), WIDTH(src, 1), WIDTH(src, 2), WIDTH(src, 3) }, \
      flags,                                                          \
      families },
#include "gcn.def"
#undef GCN
};

const hw_gcn_row *hw_gcn_rows(size_t *n)
{
    *n = HW_COUNTOF(rows);
    return rows;
}

static unsigned row_key(const hw_gcn_row *r)
{
    return r->format * (unsigned)OPCODES + r->opcode;
}

/* The row of an encoding. Rows of a format stand together, in order of opcode: bisect. */
static const hw_gcn_row *find(unsigned format, unsigned opcode, unsigned family)
{
    size_t lo = 0, hi = HW_COUNTOF(rows);
    unsigned key = format * (unsigned)OPCODES + opcode;
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        if (row_key(&rows[mid]) < key)
            lo = mid + 1;
        else
            hi = mid;
    }
    for (; lo < HW_COUNTOF(rows) && row_key(&rows[lo]) == key; lo++)
        if (rows[lo].families & family)
            return &rows[lo];
    return NULL;
}

static unsigned bits(uint64_t word, unsigned lo, unsigned n)
{
    return (unsigned)(word >> lo) & ((1u << n) - 1);
}

typedef struct form {
    uint32_t mask, value; /* which first words have this format */
    uint8_t format, opcode_lo, opcode_bits, size;
    void (*fields)(hw_gcn_insn *, uint64_t);
} form;

static void sop2(hw_gcn_insn *i, uint64_t w)
{
    i->src[0] = (uint16_t)bits(w, 0, 8);
    i->src[1] = (uint16_t)bits(w, 8, 8);
    i->dst = (uint16_t)bits(w, 16, 7);
}

static void sopk(hw_gcn_insn *i, uint64_t w)
{
    i->imm = (int16_t)bits(w, 0, 16);
    i->dst = i->src[0] = (uint16_t)bits(w, 16, 7);
}

static void sop1(hw_gcn_insn *i, uint64_t w)
{
    i->src[0] = (uint16_t)bits(w, 0, 8);
    i->dst = (uint16_t)bits(w, 16, 7);
}

static void sopp(hw_gcn_insn *i, uint64_t w)
{
    i->imm = (int16_t)bits(w, 0, 16);
}

static void smrd(hw_gcn_insn *i, uint64_t w)
{
    i->imm = (int32_t)bits(w, 0, 8);
    i->imm_flag = bits(w, 8, 1);
    i->src[0] = (uint16_t)(bits(w, 9, 6) * 2);
    i->dst = (uint16_t)bits(w, 15, 7);
}

static void vop2(hw_gcn_insn *i, uint64_t w)
{
    i->src[0] = (uint16_t)bits(w, 0, 9);
    i->src[1] = (uint16_t)(bits(w, 9, 8) + (i->row->flags & G_LANE ? 0 : VGPR0));
    i->dst = (uint16_t)(bits(w, 17, 8) + (i->row->flags & G_SDST ? 0 : VGPR0));
    i->sdst = VCC;
    i->src[2] = VCC;
}

static void vop1(hw_gcn_insn *i, uint64_t w)
{
    i->src[0] = (uint16_t)bits(w, 0, 9);
    i->dst = (uint16_t)(bits(w, 17, 8) + (i->row->flags & G_SDST ? 0 : VGPR0));
}

static void vopc(hw_gcn_insn *i, uint64_t w)
{
    i->src[0] = (uint16_t)bits(w, 0, 9);
    i->src[1] = (uint16_t)(bits(w, 9, 8) + VGPR0);
    i->sdst = VCC;
}

static void vop3(hw_gcn_insn *i, uint64_t w)
{
    bool compare = i->row->format == HW_GCN_VOPC;
    i->dst = (uint16_t)(bits(w, 0, 8) + (i->row->flags & G_SDST ? 0 : VGPR0));
    if (compare)
        i->sdst = (uint16_t)bits(w, 0, 8);
    if (i->row->flags &
        G_CO) { /* VOP3b: a scalar destination where the others have abs and clamp */
        i->sdst = (uint16_t)bits(w, 8, 7);
    } else {
        i->abs = (uint8_t)bits(w, 8, 3);
        i->clamp = bits(w, 11, 1);
    }
    for (unsigned s = 0; s < 3; s++)
        i->src[s] = (uint16_t)bits(w, 32 + 9 * s, 9);
    i->omod = (uint8_t)bits(w, 59, 2);
    i->neg = (uint8_t)bits(w, 61, 3);
}

static void ds(hw_gcn_insn *i, uint64_t w)
{
    i->imm = (int32_t)(i->row->flags & G_OFF2 ? bits(w, 0, 8) : bits(w, 0, 16));
    i->imm2 = (uint8_t)bits(w, 8, 8);
    i->gds = bits(w, 17, 1);
    for (unsigned s = 0; s < 3; s++)
        i->src[s] = (uint16_t)(bits(w, 32 + 8 * s, 8) + VGPR0);
    i->dst = (uint16_t)(bits(w, 56, 8) + VGPR0);
}

static void flat(hw_gcn_insn *i, uint64_t w)
{
    i->glc = bits(w, 16, 1);
    i->slc = bits(w, 17, 1);
    i->src[0] = (uint16_t)(bits(w, 32, 8) + VGPR0);
    i->src[1] = (uint16_t)(bits(w, 40, 8) + VGPR0);
    i->tfe = bits(w, 55, 1);
    i->dst = (uint16_t)(bits(w, 56, 8) + VGPR0);
}

/* MUBUF and MTBUF: src 0 = data (a VGPR), 1 = address VGPR, 2 = resource, 3 = scalar offset. */
static void buffer(hw_gcn_insn *i, uint64_t w)
{
    i->imm = (int32_t)bits(w, 0, 12);
    i->offen = bits(w, 12, 1);
    i->idxen = bits(w, 13, 1);
    i->glc = bits(w, 14, 1);
    i->addr64 = bits(w, 15, 1);
    i->src[1] = (uint16_t)(bits(w, 32, 8) + VGPR0);
    i->src[0] = (uint16_t)(bits(w, 40, 8) + VGPR0);
    i->dst = i->src[0];
    i->src[2] = (uint16_t)(bits(w, 48, 5) * 4);
    i->slc = bits(w, 54, 1);
    i->tfe = bits(w, 55, 1);
    i->src[3] = (uint16_t)bits(w, 56, 8);
}

static void mubuf(hw_gcn_insn *i, uint64_t w)
{
    buffer(i, w);
    i->lds = bits(w, 16, 1);
}

static void mtbuf(hw_gcn_insn *i, uint64_t w)
{
    buffer(i, w);
    i->dfmt = (uint8_t)bits(w, 19, 4);
    i->nfmt = (uint8_t)bits(w, 23, 3);
}

/* In order of need: narrower prefixes first where one contains another. */
/* clang-format off */
static const form forms[] = {
    { 0xff800000, 0xbe800000, HW_GCN_SOP1,   8, 8, 4, sop1 },
    { 0xff800000, 0xbf000000, HW_GCN_SOPC,  16, 7, 4, sop2 },
    { 0xff800000, 0xbf800000, HW_GCN_SOPP,  16, 7, 4, sopp },
    { 0xf0000000, 0xb0000000, HW_GCN_SOPK,  23, 5, 4, sopk },
    { 0xc0000000, 0x80000000, HW_GCN_SOP2,  23, 7, 4, sop2 },
    { 0xf8000000, 0xc0000000, HW_GCN_SMRD,  22, 5, 4, smrd },
    { 0xfe000000, 0x7e000000, HW_GCN_VOP1,   9, 8, 4, vop1 },
    { 0xfe000000, 0x7c000000, HW_GCN_VOPC,  17, 8, 4, vopc },
    { 0x80000000, 0x00000000, HW_GCN_VOP2,  25, 6, 4, vop2 },
    { 0xfc000000, 0xd0000000, HW_GCN_VOP3,  17, 9, 8, vop3 },
    { 0xfc000000, 0xd8000000, HW_GCN_DS,    18, 8, 8, ds },
    { 0xfc000000, 0xdc000000, HW_GCN_FLAT,  18, 7, 8, flat },
    { 0xfc000000, 0xe0000000, HW_GCN_MUBUF, 18, 7, 8, mubuf },
    { 0xfc000000, 0xe8000000, HW_GCN_MTBUF, 16, 3, 8, mtbuf },
};
/* clang-format on */

static const form *form_of(uint32_t word)
{
    for (size_t f = 0; f < HW_COUNTOF(forms); f++)
        if ((word & forms[f].mask) == forms[f].value)
            return &forms[f];
    return NULL;
}

/* A VOP3 opcode stands for a VOPC, VOP2, VOP3 or VOP1 row. */
static const hw_gcn_row *row_of(const form *f, unsigned opcode, unsigned family)
{
    if (f->format != HW_GCN_VOP3)
        return find(f->format, opcode, family);
    if (opcode < 256)
        return find(HW_GCN_VOPC, opcode, family);
    if (opcode < 320) {
        const hw_gcn_row *r = find(HW_GCN_VOP2, opcode - 256, family);
        return r && r->flags & (G_K1 | G_K2 | G_LANE) ? NULL
                                                      : r; /* these have the short form only */
    }
    if (opcode < 384)
        return find(HW_GCN_VOP3, opcode, family);
    return find(HW_GCN_VOP1, opcode - 384, family);
}

static unsigned source_count(const hw_gcn_row *r)
{
    unsigned n = 0;
    while (n < 4 && r->src[n])
        n++;
    return n;
}

static bool wants_literal(const hw_gcn_insn *i)
{
    if (i->row->flags & (G_K1 | G_K2 | G_LITERAL))
        return true;
    switch (i->encoding) {
    case HW_GCN_SOP2:
    case HW_GCN_SOPC:
    case HW_GCN_SOP1:
    case HW_GCN_VOP1:
    case HW_GCN_VOP2:
    case HW_GCN_VOPC:
        for (unsigned s = 0; s < source_count(i->row); s++)
            if (i->src[s] == LITERAL)
                return true;
        return false;
    case HW_GCN_SMRD:
        return i->row->src[0] && !i->imm_flag && i->imm == LITERAL;
    default:
        return false;
    }
}

/* Numbers that name nothing: gaps between the constants, 125 (reserved), and before CI
 * FLAT_SCRATCH. */
static bool names_nothing(unsigned n, unsigned family)
{
    enum { FLAT_SCRATCH = 104, RESERVED = 125 };
    bool gap = (n > 208 && n < 240) || (n > 247 && n < 251) || n == 249 || n == 250;
    return gap || n == RESERVED || (n / 2 == FLAT_SCRATCH / 2 && !(family & CI));
}

/* Can a scalar destination (7 bits; 8 in VOP3's compares) be written? */
static bool writable(unsigned n, unsigned family)
{
    return n < 128 && !names_nothing(n, family);
}

static bool destinations_valid(const hw_gcn_insn *i, unsigned family)
{
    bool scalar = i->row->flags & G_SDST || i->encoding <= HW_GCN_SMRD;
    if (scalar && i->row->dst && !writable(i->dst, family))
        return false;
    bool pair = i->row->flags & G_CO || i->row->format == HW_GCN_VOPC;
    return !pair || writable(i->sdst, family);
}

static bool operands_valid(const hw_gcn_insn *i, unsigned family)
{
    bool buffer_access = i->encoding == HW_GCN_MUBUF || i->encoding == HW_GCN_MTBUF;
    bool literal_allowed = !buffer_access && i->encoding != HW_GCN_VOP3;
    unsigned n = buffer_access ? 4 : source_count(i->row);
    for (unsigned s = 0; s < n; s++)
        if (names_nothing(i->src[s], family) || (i->src[s] == LITERAL && !literal_allowed))
            return false;
    if (i->encoding != HW_GCN_SMRD || i->imm_flag || !i->row->src[0])
        return true;
    return i->imm == LITERAL ? family & CI : writable((unsigned)i->imm, family);
}

static uint32_t word_at(hw_span code, size_t offset)
{
    const uint8_t *p = code.ptr + offset;
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

hw_status hw_gcn_decode(hw_gcn_family family, hw_span code, size_t offset, hw_gcn_insn *out)
{
    *out = (hw_gcn_insn){ .size = 4 };
    if (offset > code.len || code.len - offset < 4)
        return HW_E_CORRUPT;
    uint64_t word = word_at(code, offset);
    const form *f = form_of((uint32_t)word);
    const hw_gcn_row *row =
        f ? row_of(f, bits(word, f->opcode_lo, f->opcode_bits), (unsigned)family) : NULL;
    if (!row)
        return HW_E_UNSUPPORTED;
    size_t room = code.len - offset;
    if (f->size > room)
        return HW_E_CORRUPT;
    if (f->size == 8)
        word |= (uint64_t)word_at(code, offset + 4) << 32;
    out->row = row;
    out->encoding = f->format;
    out->size = f->size;
    f->fields(out, word);
    if (!operands_valid(out, (unsigned)family) || !destinations_valid(out, (unsigned)family)) {
        *out = (hw_gcn_insn){ .size = 4 };
        return HW_E_UNSUPPORTED;
    }
    out->has_literal = wants_literal(out);
    if (!out->has_literal)
        return HW_OK;
    if (room < 8)
        return HW_E_CORRUPT;
    out->size = 8;
    out->literal = word_at(code, offset + 4);
    return HW_OK;
}
