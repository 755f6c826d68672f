# SPDX-License-Identifier: Apache-2.0
"""Matrix instructions against the fragment tables of the PTX ISA (9.7.14), computed here in exact
arithmetic: products.py RUN_PTX [--some] [--ptxas], see blocks.py."""
import functools
import random
import struct
from fractions import Fraction

import blocks
from blocks import Form

LANES = range(32)
RANDOM = random.Random(20240817)


# ---- numbers ----

def small_float(exponent, fraction, bias, special):
    def value(x):
        m, e = x & ((1 << fraction) - 1), x >> fraction & ((1 << exponent) - 1)
        v = Fraction(m + (1 << fraction if e else 0)) * Fraction(2) ** (max(e, 1) - bias - fraction)
        return -v if x >> (exponent + fraction) & 1 else v

    value = functools.lru_cache(None)(value)

    def pick():
        while True:
            x = RANDOM.getrandbits(1 + exponent + fraction)
            e = x >> fraction & ((1 << exponent) - 1)
            # near one, so that sums are exact in double
            if not special(x & ((1 << (exponent + fraction)) - 1)) and abs(max(e, 1) - bias) < 9:
                return x
    return value, pick


def never(x):
    return False


def integer(bits, signed):
    def value(x):
        return Fraction(x - (1 << bits) if signed and x >> (bits - 1) else x)
    return value, lambda: RANDOM.getrandbits(bits)


def shifted(pair, left):
    value, pick = pair
    return (lambda x: value(x >> left & 15)), (lambda: pick() << left)


E2M1 = small_float(2, 1, 1, never)
# name: (bits of its place, value of bits, random bits)
TYPES = {
    'f16': (16, *small_float(5, 10, 15, lambda x: x >> 10 == 31)),
    'bf16': (16, *small_float(8, 7, 127, lambda x: x >> 7 == 255)),
    'tf32': (32, lambda x: TYPES['f32'][1](x & ~0x1fff), lambda: TYPES['f32'][2]()),
    'f32': (32, *small_float(8, 23, 127, lambda x: x >> 23 == 255)),
    'e4m3': (8, *small_float(4, 3, 7, lambda x: x == 127)),
    'e5m2': (8, *small_float(5, 2, 15, lambda x: x >> 2 == 31)),
    'e3m2': (8, *small_float(3, 2, 3, never)),
    'e2m3': (8, *small_float(2, 3, 1, never)),
    'e2m1': (8, *shifted(E2M1, 2)),  # in the middle of a byte
    'pairs': (4, *E2M1),             # packed, of mxf4
    's8': (8, *integer(8, True)), 'u8': (8, *integer(8, False)),
    's4': (4, *integer(4, True)), 'u4': (4, *integer(4, False)),
    's32': (32, *integer(32, True)),
    'ue8m0': (8, lambda x: Fraction(2) ** (x - 127), lambda: RANDOM.randrange(117, 138)),
    'ue4m3': (8, lambda x: TYPES['e4m3'][1](x & 127), lambda: RANDOM.randrange(8, 120)),
}


def rounded(name, v, saturate):
    """The bits of an exact value as a result."""
    if name == 's32':
        if saturate:
            v = max(-2**31, min(2**31 - 1, v))
        return int(v) & 0xffffffff
    if name == 'f16':
        try:
            return struct.unpack('<H', struct.pack('<e', float(v)))[0]
        except OverflowError:
            return 0x7c00 if v > 0 else 0xfc00
    return struct.unpack('<I', struct.pack('<f', float(v)))[0]


UNIT = 1 << 60  # factors have no finer digits


# ---- registers: regs[r][lane] ----

class Fragment:
    def __init__(self, name, count):
        self.bits, self.value, self.pick = TYPES[name]
        self.each = 32 // self.bits
        self.regs = [[0] * 32 for _ in range(count // self.each)]
        self.count = count

    def put(self, lane, i, x):
        self.regs[i // self.each][lane] |= x << (i % self.each * self.bits)

    def get(self, lane, i):
        x = self.regs[i // self.each][lane] >> (i % self.each * self.bits)
        return self.value(x & ((1 << self.bits) - 1))

    def fill(self):
        for lane in LANES:
            for i in range(self.count):
                self.put(lane, i, self.pick())
        return self


def group(lane):
    return lane >> 2, lane % 4


# The tables, in the manual's names. i: the element's number in the lane's registers.

def place_c(lane, i):
    g, t = group(lane)
    return g + (8 if i >= 2 else 0), t * 2 + (i & 1)


def place_a(bits):
    each = 32 // bits

    def place(lane, i):
        g, t = group(lane)
        register = i // each
        return g + (8 if register in (1, 3) else 0), t * each + i % each + (4 * each if register >= 2 else 0)
    return place


def place_b(bits):
    each = 32 // bits
    return lambda lane, i: (group(lane)[1] * each + i % each + 4 * each * (i // each), group(lane)[0])


# ---- forms ----

def dense_a(kind, a, k, stored, metadata, selector):
    """The matrix A as {(row, column): value}; of a sparse one, as the indices say."""
    out = {}
    bits = 32 // a.each
    for lane in LANES:
        for i in range(a.count):
            row, col = place_a(bits)(lane, i)
            if metadata:
                col = metadata.column(row, col)
            assert (row, col) not in out and col < k, (kind, row, col)
            out[row, col] = a.get(lane, i)
    return out


class Metadata:
    """Indices of a sparse A: random ones, ordered or not."""

    def __init__(self, name, k, selector, ordered):
        self.bits, self.k = TYPES[name][0], k
        self.regs = [[RANDOM.getrandbits(32) for _ in LANES]]  # other lanes' words do not count
        self.index = {}
        per_row = {32: k // 2, 16: k // 4, 8: k // 4, 4: k // 8}[self.bits]
        for row in range(16):
            for chunk in range(per_row):
                choice = [(0, 1), (2, 3)] if self.bits == 32 else [
                    (x, y) for x in range(4) for y in range(4) if (x < y if ordered else x != y)]
                self.index[row, chunk] = RANDOM.choice(choice)
        for row in range(16):
            for chunk in range(per_row):
                x, y = self.index[row, chunk]
                lane, bit = self.place(row, chunk, selector)
                word = self.regs[0][lane] & ~(15 << bit)
                self.regs[0][lane] = word | (x | y << 2) << bit

    def place(self, row, chunk, selector):
        """Figures 119 to 147: the lane and the bits of a chunk's indices."""
        g, lower = row % 8 * 4, row >= 8
        if self.bits in (16, 32):
            if self.k * self.bits == 256:  # one thread of four
                return g + selector, chunk * 4 + 16 * lower
            return g + selector * 2 + chunk // 4, chunk % 4 * 4 + 16 * lower
        all_four = self.k * self.bits == 512
        return g + (chunk // 8 * 2 if all_four else selector * 2) + lower, chunk % 8 * 4

    def column(self, row, stored):
        if self.bits == 32:
            return stored * 2 + self.index[row, stored][0] // 2
        if self.bits == 4:
            pair, e = stored // 2, stored % 2
            return pair // 2 * 8 + self.index[row, pair // 2][pair % 2] * 2 + e
        return stored // 2 * 4 + self.index[row, stored // 2][stored % 2]


def names(prefix, n):
    return '{%s}' % ', '.join('%s%d' % (prefix, k) for k in range(n))


def product(words, m16n8k, d, a, b, c, sparse=None, selector=0, scales=0, scale_type=None,
            packed=False, ids=(0, 0, 0, 0), target='sm_80'):
    k = m16n8k
    a_name, b_name = ('pairs', 'pairs') if packed else (a, b)
    bits = TYPES[a_name][0]
    fa = Fragment(a_name, 16 * k // 32 // (2 if sparse else 1)).fill()
    fb, fc = Fragment(b_name, 8 * k // 32).fill(), Fragment(c, 4).fill()
    if c == 's32' and 'satfinite' in words:
        fc.regs = [[RANDOM.choice((0x7ffffff0, 0x80000010)) for _ in LANES] for _ in fc.regs]
    meta = sparse and Metadata(a_name, k, selector, 'ordered' in sparse)
    va = dense_a(words, fa, k, fa.count, meta, selector)
    vb = {place_b(bits)(lane, i): fb.get(lane, i) for lane in LANES for i in range(fb.count)}
    inputs = fa.regs + fb.regs + fc.regs
    if sparse:
        inputs += meta.regs
    if scales:
        stype = TYPES[scale_type]
        sa, sb = [[[sum(stype[2]() << (8 * e) for e in range(4)) for _ in LANES]] for _ in range(2)]
        inputs += sa + sb
        byte_a, thread_a, byte_b, thread_b = ids
        for row, col in va:
            w = sa[0][row % 8 * 4 + thread_a * 2 + row // 8]
            va[row, col] *= stype[1](w >> 8 * (byte_a + col // (k // scales)) & 255)
        for row, col in vb:
            w = sb[0][col * 4 + thread_b]
            vb[row, col] *= stype[1](w >> 8 * (byte_b + row // (k // scales)) & 255)
    rows = [[] for _ in range(16)]  # of integers, in units: quicker than fractions
    for (row, col), v in va.items():
        rows[row].append((col, int(v * UNIT)))
    vb = {at: int(v * UNIT) for at, v in vb.items()}
    out = Fragment(d, 4)
    for lane in LANES:
        for i in range(4):
            row, col = place_c(lane, i)
            v = fc.get(lane, i) + Fraction(sum(x * vb[e, col] for e, x in rows[row]), UNIT * UNIT)
            out.put(lane, i, rounded(d, v, 'satfinite' in words) if d == 'f16' or d == 'f32'
                    else rounded(d, wrapped(v, 'satfinite' in words), True))
    text = 'mma%s.sync.aligned.m16n8k%d.row.col%s.%s.%s.%s.%s' % (
        '.' + sparse if sparse else '', k, words, d, a, b, c)
    text += '.' + scale_type if scales else ''
    n = [len(out.regs), len(fa.regs), len(fb.regs), len(fc.regs)]
    at = [0, n[1], n[1] + n[2], sum(n[1:])]
    operands = [names('%d', n[0])] + [
        '{%s}' % ', '.join('%%r%d' % (at[m] + e) for e in range(n[m + 1])) for m in range(3)]
    left = at[3]
    if sparse:
        operands += ['%%r%d' % left, str(selector)]
        left += 1
    if scales:
        operands += ['{%%r%d}' % left, '{%d, %d}' % ids[:2], '{%%r%d}' % (left + 1), '{%%h%d, %%h%d}' % ids[2:]]
    return Form('%s %s' % (text, ', '.join(operands)), inputs, out.regs, target)


def wrapped(v, saturate):
    if saturate:
        return v
    v = int(v) & 0xffffffff
    return Fraction(v - (v >> 31 << 32))


def quads(layout_a, layout_b, d, c):
    """9.7.14.5.1: four products of 8 x 4 and 4 x 8."""
    fa, fb, fc = (Fragment(t, n).fill() for t, n in (('f16', 4), ('f16', 4), (c, 8)))
    out = Fragment(d, 8)

    def result(name, lane, i):
        high = 4 if lane >= 16 else 0
        if name == 'f16':
            return lane % 4 + high, i
        return (lane & 1) + (i & 2) + high, (i & 4) + (lane & 2) + (i & 1)

    for quad in range(4):
        mine = [l for l in LANES if l % 16 // 4 == quad]
        va, vb, vc = {}, {}, {}
        for l in mine:
            high = 4 if l >= 16 else 0
            for i in range(4):
                va[(l % 4 + high, i) if layout_a == 'row' else (i + high, l % 4)] = fa.get(l, i)
                vb[(l % 4, i + high) if layout_b == 'row' else (i, l % 4 + high)] = fb.get(l, i)
            for i in range(8):
                vc[result(c, l, i)] = fc.get(l, i)
        assert len(va) == 32 and len(vb) == 32 and len(vc) == 64
        for l in mine:
            for i in range(8):
                row, col = result(d, l, i)
                v = vc[row, col] + sum(va[row, e] * vb[e, col] for e in range(4))
                out.put(l, i, rounded(d, v, False))
    at = len(fa.regs) + len(fb.regs)
    text = 'mma.sync.aligned.m8n8k4.%s.%s.%s.f16.f16.%s %s, {%%r0, %%r1}, {%%r2, %%r3}, {%s}' % (
        layout_a, layout_b, d, c, names('%d', len(out.regs)),
        ', '.join('%%r%d' % (at + k) for k in range(len(fc.regs))))
    return Form(text, fa.regs + fb.regs + fc.regs, out.regs, 'sm_75')


def literal_parts():
    """Literals stand for registers that are read, '_' for one that is not wanted."""
    fa = Fragment('f16', 4).fill()
    fc = [[1.5] * 32, [RANDOM.randrange(-9, 9) for _ in LANES], [-2.0] * 32, [RANDOM.randrange(-9, 9) for _ in LANES]]
    va = {place_a(16)(lane, i): fa.get(lane, i) for lane in LANES for i in range(4)}
    out = [[0] * 32 for _ in range(4)]
    for lane in LANES:
        for i in range(4):
            row, _ = place_c(lane, i)
            v = Fraction(fc[i][lane]) + sum(va[row, e] * (1 if e % 2 else 2) for e in range(8))
            out[i][lane] = rounded('f32', v, False)
    given = [[struct.unpack('<I', struct.pack('<f', x))[0] for x in r] for r in fc]
    text = ('mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%d0, _, %d1, %d2}, {%r0, %r1}, {0x3c004000}, '
            '{1.5, %r2, 0fC0000000, %r3}')
    text = '.reg .f32 %x, %y; mov.b32 %x, %r2; mov.b32 %y, %r3;\n' + text.replace('%r2', '%x').replace('%r3', '%y')
    return Form(text, fa.regs + [given[1], given[3]], [out[0], out[2], out[3]], 'sm_75')


# ---- doubles: fused, in a rounding mode ----

def fused(a, b, c, mode):
    """a * b + c rounded once, of finite doubles; by exact arithmetic."""
    v = Fraction(a) * Fraction(b) + Fraction(c)
    near = float(v)
    low = near if Fraction(near) <= v else previous(near)
    high = near if Fraction(near) >= v else following(near)
    if mode == 'rn':
        return near
    if mode == 'rz':
        return low if v > 0 else high
    return low if mode == 'rm' else high


def step(x, up):
    q = struct.unpack('<q', struct.pack('<d', x))[0]
    assert x != 0
    q += 1 if (x > 0) == up else -1
    return struct.unpack('<d', struct.pack('<q', q))[0]


def previous(x):
    return step(x, False)


def following(x):
    return step(x, True)


def doubles(m, k, mode, least=1):
    """least: the numbers' size; of the smallest, products are denormal."""
    count = [m * k // 32, k * 8 // 32, m * 8 // 32]
    a, b, c = [[[RANDOM.uniform(-2, 2) * size for _ in LANES] for _ in range(n)]
               for n, size in zip(count, (least, 1, least))]
    va, vb = {}, {}
    for lane in LANES:
        g, t = group(lane)
        for i in range(count[0]):
            rows = m // 8
            va[g + i % rows * 8, t + i // rows * 4] = a[i][lane]
        for i in range(count[1]):
            vb[t + i * 4, g] = b[i][lane]
    out = [[0.0] * 32 for _ in range(count[2])]
    for lane in LANES:
        for i in range(count[2]):
            row, col = place_c(lane, i)
            v = c[i][lane]
            for e in range(k):
                v = fused(va[row, e], vb[e, col], v, mode or 'rn')
            out[i][lane] = v

    def halves(regs):
        words = []
        for r in regs:
            q = [struct.unpack('<II', struct.pack('<d', x)) for x in r]
            words += [[x[0] for x in q], [x[1] for x in q]]
        return words
    at, lines = 0, []
    for letter, n in zip('abc', count):
        lines += ['mov.b64 %%%s%d, {%%r%d, %%r%d};' % (letter, i, at + 2 * i, at + 2 * i + 1) for i in range(n)]
        at += 2 * n
    text = '\n'.join(lines) + '\nmma.sync.aligned.m%dn8k%d.row.col%s.f64.f64.f64.f64 %s, %s, %s, %s;\n' % (
        m, k, '.' + mode if mode else '', *[names('%' + p, n) for p, n in (('e', count[2]), ('a', count[0]),
                                                                      ('b', count[1]), ('c', count[2]))])
    text += '\n'.join('mov.b64 {%%d%d, %%d%d}, %%e%d;' % (2 * i, 2 * i + 1, i) for i in range(count[2]))
    return Form(text, halves(a) + halves(b) + halves(c), halves(out), 'sm_90')


# ---- matrices of bytes in shared memory ----

def byte_rows(rows):
    """Random rows of 16 bytes, as words: regs[w][row]."""
    return [[RANDOM.getrandbits(32) for _ in range(rows)] for _ in range(4)]


def row_bytes(words, row, bits):
    """The sixteen elements of a row, packed by `bits`."""
    whole = sum(words[w][row] << (32 * w) for w in range(4))
    return [whole >> (bits * k) & ((1 << bits) - 1) for k in range(16)]


def ldmatrix(shape, num, trans, bits):
    """Lane l's row of shared memory is number (5 * l) % 32; of those the matrices' are given."""
    words = byte_rows(32)
    elements = [row_bytes(words, l, bits) for l in LANES]  # of the row whose address lane l gives
    out = []
    for matrix in range(num):
        if shape == 'm8n16':
            out.append([sum(elements[8 * matrix + group(l)[0]][4 * group(l)[1] + e] << (8 * e)
                            for e in range(4)) for l in LANES])
            continue
        for half in range(2):  # transposed: four columns of row g, and of row g + 8
            out.append([sum(elements[16 * matrix + 4 * group(l)[1] + e][group(l)[0] + 8 * half] << (8 * e)
                            for e in range(4)) for l in LANES])
    kind = {8: 'b8', 6: 'b8x16.b6x16_p32', 4: 'b8x16.b4x16_p64'}[bits]
    text = SHARED + ''.join('st.shared.b32 [%%row+%d], %%r%d;\n' % (4 * w, w) for w in range(4))
    text += 'bar.warp.sync -1;\nldmatrix.sync.aligned.%s.x%d%s.shared.%s %s, [%%row]' % (
        shape, num, '.trans' if trans else '', kind, names('%d', len(out)))
    return Form(text, words, out, 'sm_100a')


SHARED = '''mov.u32 %lane, %laneid;
mul.lo.u32 %row, %lane, 5;
and.b32 %row, %row, 31;
mov.u32 %base, memory;
mad.lo.u32 %row, %row, 16, %base;
'''


def stmatrix(num):
    regs = [[RANDOM.getrandbits(32) for _ in LANES] for _ in range(num)]
    rows = [[0] * 16 for _ in LANES]
    for k in range(num):
        for l in LANES:
            g, t = group(l)
            for e in range(4):  # two of row g, two of row g + 8 of a 16 x 8 matrix, stored by columns
                rows[8 * k + 2 * t + (e & 1)][g + (8 if e >= 2 else 0)] = regs[k][l] >> (8 * e) & 255
    out = [[sum(rows[l][4 * w + e] << (8 * e) for e in range(4)) for l in LANES] for w in range(4)]
    text = SHARED + ''.join('st.shared.b32 [%%row+%d], 0;\n' % (4 * w) for w in range(4))
    text += 'bar.warp.sync -1;\nstmatrix.sync.aligned.m16n8.x%d.trans.shared.b8 [%%row], {%s};\nbar.warp.sync -1;\n' % (
        num, ', '.join('%%r%d' % k for k in range(num)))
    text += '\n'.join('ld.shared.b32 %%d%d, [%%row+%d];' % (w, 4 * w) for w in range(4))
    return Form(text, regs, out, 'sm_100a')


def forms():
    yield literal_parts()
    for la in ('row', 'col'):
        for lb in ('row', 'col'):
            for d, c in (('f16', 'f16'), ('f32', 'f16'), ('f32', 'f32')):
                yield quads(la, lb, d, c)
    for m, k in ((8, 4), (16, 4), (16, 8), (16, 16)):
        for mode in ('', 'rn', 'rz', 'rm', 'rp'):
            yield doubles(m, k, mode)
    yield doubles(8, 4, '', 2.0 ** -1060)
    for shape, nums, trans in (('m16n16', (1, 2), True), ('m8n16', (1, 2, 4), False)):
        for num in nums:
            for bits in (8, 6, 4):
                if bits < 8 or trans:
                    yield ldmatrix(shape, num, trans, bits)
    for num in (1, 2, 4):
        yield stmatrix(num)
    for sparse in ('sp', 'sp::ordered_metadata'):
        for d in ('f16', 'f32'):
            for selector in range(4):
                yield product('', 16, d, 'f16', 'f16', d, sparse, selector)
            for selector in range(2):
                yield product('', 32, d, 'f16', 'f16', d, sparse, selector)
        for selector in range(4):
            yield product('', 16, 'f32', 'bf16', 'bf16', 'f32', sparse, selector)
            yield product('', 8, 'f32', 'tf32', 'tf32', 'f32', sparse, selector)
        for selector in range(2):
            yield product('', 32, 'f32', 'bf16', 'bf16', 'f32', sparse, selector)
            yield product('', 16, 'f32', 'tf32', 'tf32', 'f32', sparse, selector)
        for a in ('e4m3', 'e5m2'):
            for b in ('e4m3', 'e5m2'):
                yield product('', 64, 'f32', a, b, 'f32', sparse, target='sm_89')
        for words in ('', '.satfinite'):
            for a, b in (('s8', 'u8'), ('u8', 's8'), ('s8', 's8')):
                yield product(words, 32, 's32', a, b, 's32', sparse, RANDOM.randrange(2))
                yield product(words, 64, 's32', a, b, 's32', sparse)
            for a, b in (('s4', 'u4'), ('u4', 's4'), ('s4', 's4')):
                yield product(words, 64, 's32', a, b, 's32', sparse, RANDOM.randrange(2))
                yield product(words, 128, 's32', a, b, 's32', sparse)
    eights = ('e4m3', 'e5m2', 'e3m2', 'e2m3', 'e2m1')
    ordered = 'sp::ordered_metadata'
    for a in eights:
        for b in eights:
            d = RANDOM.choice(('f16', 'f32'))
            yield product('.kind::f8f6f4', 32, d, a, b, d, target='sm_120a')
            yield product('.kind::f8f6f4', 64, d, a, b, d, ordered, target='sm_120a')
            for k, sparse in ((32, None), (64, ordered)):
                ids = [RANDOM.randrange(4), RANDOM.randrange(2), RANDOM.randrange(4), RANDOM.randrange(4)]
                yield product('.kind::mxf8f6f4.block_scale' + RANDOM.choice(('', '.scale_vec::1X')), k, 'f32', a,
                              b, 'f32', sparse, 0, 1, 'ue8m0', ids=tuple(ids), target='sm_120a')
    for k, sparse in ((64, None), (128, ordered)):
        for words, scales, stype in (('mxf4.block_scale', 2, 'ue8m0'),
                                     ('mxf4nvf4.block_scale.scale_vec::2X', 2, 'ue8m0'),
                                     ('mxf4nvf4.block_scale.scale_vec::4X', 4, 'ue4m3')):
            for _ in range(2):
                ids = (RANDOM.choice((0, 2)) if scales == 2 else 0, RANDOM.randrange(2),
                       RANDOM.choice((0, 2)) if scales == 2 else 0, RANDOM.randrange(4))
                yield product('.kind::' + words, k, 'f32', 'e2m1', 'e2m1', 'f32', sparse, 0, scales, stype,
                              True, ids, 'sm_120a')


if __name__ == '__main__':
    blocks.main(forms())
