# SPDX-License-Identifier: Apache-2.0
"""Makes the generated tests of the instruction table: cases.py OUT.c OUT_mods.h.
A case is a row with its types and modifiers: the instruction's text, its registers, and a function
that is the row's lane expression."""
import sys

import ptxdef

FLOATS = {'f16', 'bf16', 'f32', 'f64'}
PART = {'f32x2': 'f32', 'f16x2': 'f16', 'bf16x2': 'bf16', 'u16x2': 'u16', 's16x2': 's16'}
ROUNDS = {'rn': 'SOFT_RN', 'rz': 'SOFT_RZ', 'rm': 'SOFT_RM', 'rp': 'SOFT_RP', 'rna': 'SOFT_RNA',
          'rni': 'SOFT_RN', 'rzi': 'SOFT_RZ', 'rmi': 'SOFT_RM', 'rpi': 'SOFT_RP'}
# sources written as literals: text and bits, by type
LITERALS = {t: [('7', 7), ('-3', 2 ** ptxdef.BITS[t] - 3)]
            for t in ('u16', 'u32', 'u64', 's16', 's32', 's64', 'b16', 'b32', 'b64')}
LITERALS['f32'] = [('0f40490FDB', 0x40490FDB), ('1.5', 0x3FC00000), ('0d4000000000000000', 0x40000000)]
LITERALS['f64'] = [('0d400921FB54442D18', 0x400921FB54442D18), ('0f40400000', 0x4008000000000000)]
LUTS = [0x00, 0x1f, 0x96, 0xca, 0xe8, 0xfe]


def load_in(t, k):
    """C that makes input k a value of type t."""
    if t == 'pred':
        return '(in[%d] & 1) != 0' % k
    if t in ('f16', 'bf16'):
        return 'soft_widen(in[%d] & 0xffff, SOFT_%s)' % (k, t.upper())
    if t == 'f32':
        return 'soft_float((uint32_t)in[%d])' % k
    if t == 'f64':
        return 'soft_double(in[%d])' % k
    return '(%s)in[%d]' % (t, k)


def store_out(t, expression):
    if t in ('f16', 'bf16'):
        return ('double odd;\n    SOFT_ODD(odd, (double)(%s));\n'
                '    uint64_t r = soft_narrow(odd, SOFT_%s, lane_now.round);'
                % (expression, t.upper()))
    if t == 'f32':
        return 'volatile f32 d = (f32)(%s);\n    uint64_t r = soft_bits32(d);' % expression
    if t == 'f64':
        return 'volatile f64 d = (f64)(%s);\n    uint64_t r = soft_bits64(d);' % expression
    if t == 'pred':
        return 'uint64_t r = (%s) ? 1 : 0;' % expression
    return '%s d = (%s)(%s);\n    uint64_t r = (u%d)d;' % (t, t, expression, ptxdef.BITS[t])


class Maker:
    def __init__(self):
        self.functions, self.cases, self.mods, self.skipped = [], [], {}, []

    def mod(self, m):
        return self.mods.setdefault(m, 'LANE_' + m.replace('::', '_').replace('.', '_'))

    def function(self, row, env, types, dest):
        """The lane function of a row for these types; packed types as their part."""
        part = lambda t: PART.get(t, t)
        order = [part(env.get(n, n)) for n in row.type_order()]
        name = 'lane_%s_%s' % (row.id, '_'.join(order) or 'x')
        body = ['static uint64_t %s(const uint64_t *in)\n{' % name]
        for k, letter in enumerate('TUV'):
            if k < len(order):
                body.append('    typedef %s %s;' % (order[k], letter))
        if 'W' in row.operands:
            wide = {'u16': 'u32', 's16': 's32', 'u32': 'u64', 's32': 's64'}[order[0]]
            body.append('    typedef %s W;' % wide)
        body.append('    enum { IS_FLOAT_T = %d, IS_F64_U = %d };'
                    % (bool(order) and order[0] in FLOATS, len(order) > 1 and order[1] == 'f64'))
        for k, (letter, t) in enumerate(zip('abce', types)):
            body.append('    %s %s = %s;' % (part(t), letter, load_in(part(t), k)))
            if part(t) in FLOATS and 'ftz' in row.form and (letter == 'c' or row.opcode != 'slct'):
                body.append('    FLUSH_%s(%s);' % (part(t), letter))
        body.append('    ' + store_out(part(dest), row.lane))
        body.append('    return r;\n}\n')
        text = '\n'.join(body)
        if text not in self.functions:
            self.functions.append(text)
        return name

    def row(self, row):
        if not row.lane or row.any_form or row.before:
            return
        for env in row.variants():
            for mods in row.mod_choices(40):
                self.case(row, env, [m for m in mods])

    def case(self, row, env, mods):
        specs = [s for s in row.specs if not s.optional]
        if row.operands == 'mov':
            if any(m for m in mods):
                return
            t = row.first_type(env)
            types, dest = [t], t
            if t == 'b128':
                return
        else:
            types = [row.spec_type(s, env) for s in specs if not s.dest]
            dest = row.spec_type(specs[0], env)
        name = self.function(row, env, types, dest)
        given = [m for m in mods if m]
        literals = [('%d' % v, v) for v in LUTS] if any(s.immediate for s in specs) else [None]
        if literals == [None] and not any(m for m in mods[1:]) and row.operands != 'mov':
            literals = [None] + LITERALS.get(types[-1], [])
            if specs[-1].range: # what ptxas refuses is not tried
                literals = [x for x in literals if x is None or x[1] <= int(specs[-1].range[1].split('-')[1])]
        for literal in literals:
            self.add_case(row.spelled(env, mods), name, types, dest, given, literal,
                          row.opcode not in ('slct', 'set'))

    def add_case(self, spelled, name, types, dest, given, literal, flushes):
        """literal: text and bits of the last source, or None."""
        regs = ['%s%d' % (ptxdef.REG_OF[t], k + 2) for k, t in enumerate(types)]
        if literal:
            regs[-1] = literal[0]
        dreg = ptxdef.REG_OF[dest] + '1'
        insn = '%s %s;' % (spelled, ', '.join([dreg] + regs))
        packed = any(t in PART for t in types)
        self.cases.append((insn, name, types, dest, regs, dreg, given, packed,
                           literal and literal[1], flushes))

    def write(self, out, mods_out):
        for m in ('ftz sat NaN xorsign abs relu satfinite f4e b4e rc8 ecl ecr rc16 and or xor eq ne '
                  'lt le gt ge lo ls hi hs equ neu ltu leu gtu geu num nan finite infinite number '
                  'notanumber normal subnormal wrap shiftamt').split():
            self.mod(m)
        for c in self.cases:
            for m in c[6]:
                self.mod(m)
        with open(mods_out, 'w') as f:
            f.write('/* SPDX-License-Identifier: Apache-2.0\n * Generated from ptx.def. */\nenum {\n')
            for e in self.mods.values():
                f.write('    %s,\n' % e)
            f.write('    LANE_COUNT\n};\n')
        with open(out, 'w') as f:
            f.write('/* SPDX-License-Identifier: Apache-2.0\n * Generated from ptx.def. */\n'
                    '#include "lane_cases.h"\n\n')
            for text in self.functions:
                f.write(text + '\n')
            f.write('const lane_case lane_cases[] = {\n')
            for insn, name, types, dest, regs, dreg, given, packed, imm, flushes in self.cases:
                mods = ', '.join([self.mods[m] + ' + 1' for m in given] + ['0'])
                rounds = [ROUNDS[m] for m in given if m in ROUNDS]
                f.write('    { "%s", %s, %d, { %s }, { %s }, "%s", "%s", { %s }, %s, %d, %d, %#x, %d },\n' % (
                    insn, name, len(types), ', '.join('"%s"' % t for t in types),
                    ', '.join('"%s"' % r for r in regs), dest, dreg, mods,
                    rounds[0] if rounds else 'SOFT_RN', packed,
                    imm is not None, imm or 0, flushes))
            f.write('};\nconst unsigned lane_ncases = sizeof lane_cases / sizeof lane_cases[0];\n')
            f.write('const char lane_decls[] =\n')
            for line in ptxdef.DECLS.split('\n'):
                f.write('    "%s\\n"\n' % line)
            f.write('    ;\n')


def main():
    maker = Maker()
    for row in ptxdef.load_rows():
        maker.row(row)
    maker.write(sys.argv[1], sys.argv[2])


main()
