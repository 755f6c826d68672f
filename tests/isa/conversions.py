# SPDX-License-Identifier: Apache-2.0
"""Conversions to narrow floats, those that round at random and fma.oob, computed here in exact arithmetic:
conversions.py RUN_PTX [--some] [--ptxas], see blocks.py."""
import math
import random
import struct
from fractions import Fraction

import blocks
from blocks import Form

LANES = range(32)
RANDOM = random.Random(20240818)


class Float:
    """A format: bits of exponent and fraction, the largest finite value's bits, NaN's, infinity's (None: none)."""

    def __init__(self, exponent, fraction, most, nan, infinity):
        self.exponent, self.fraction, self.most, self.nan, self.infinity = exponent, fraction, most, nan, infinity
        self.bias, self.width = (1 << (exponent - 1)) - 1, 1 + exponent + fraction

    def value(self, x):
        """A Fraction, or a float that is infinite or NaN."""
        magnitude = x & ((1 << (self.width - 1)) - 1)
        if self.infinity is not None and magnitude >= self.infinity:
            return math.nan if magnitude > self.infinity else -math.inf if x >> (self.width - 1) else math.inf
        m, e = magnitude & ((1 << self.fraction) - 1), magnitude >> self.fraction
        v = Fraction(m + (1 << self.fraction if e else 0)) * Fraction(2) ** (max(e, 1) - self.bias - self.fraction)
        return -v if x >> (self.width - 1) else v

    def encode(self, v, negative, finite, bits=None):
        """v >= 0 exact or infinite; bits: (random bits, how many), else to nearest even."""
        sign = 1 << (self.width - 1) if negative else 0
        if v == math.inf:
            return sign | (self.most if finite else self.infinity)
        e = 1
        while e < (1 << self.exponent) and v >= Fraction(2) ** (e + 1 - self.bias):
            e += 1
        units = v / Fraction(2) ** (e - self.bias - self.fraction)
        whole = units.numerator // units.denominator
        rest = units - whole
        if bits:
            up = rest + Fraction(bits[0], 1 << bits[1]) >= 1
        else:
            up = rest > Fraction(1, 2) or (rest == Fraction(1, 2) and whole & 1)
        whole += up
        magnitude = whole + ((e - 1) << self.fraction)  # the implicit one carries into the exponent
        if magnitude > self.most:
            magnitude = self.most if finite else self.infinity
        return sign | magnitude


F32 = Float(8, 23, 0x7f7fffff, 0x7fffffff, 0x7f800000)
F16 = Float(5, 10, 0x7bff, 0x7fff, 0x7c00)
BF16 = Float(8, 7, 0x7f7f, 0x7fff, 0x7f80)
NARROW = {'e4m3': Float(4, 3, 0x7e, 0x7f, None), 'e5m2': Float(5, 2, 0x7b, 0x7f, 0x7c),
          'e2m3': Float(2, 3, 0x1f, 0x1f, None), 'e3m2': Float(3, 2, 0x1f, 0x1f, None),
          'e2m1': Float(2, 1, 7, 7, None), 'f16': F16, 'bf16': BF16}


def convert(to, v, negative, relu, finite, bits=None):
    if isinstance(v, float) and math.isnan(v):
        return to.nan
    if relu and negative:
        return 0
    return to.encode(abs(v), negative, finite, bits)


def single():
    """Bits of a float: of any size, near the narrow ones', with few digits (ties), special."""
    kind = RANDOM.randrange(8)
    if kind == 0:
        return RANDOM.getrandbits(32)
    if kind == 1:
        return RANDOM.choice((0, 1 << 31, 0x7f800000, 0xff800000, 0x7fc00000, 0x7f7fffff, 1))
    exponent = RANDOM.randrange(127 - 26, 127 + 18)
    fraction = RANDOM.getrandbits(23) if kind < 5 else RANDOM.getrandbits(8) << 15
    return RANDOM.getrandbits(1) << 31 | exponent << 23 | fraction


def at_random(name, n, words):
    """cvt.rs of n floats. Which random bits an element has: PTX ISA, cvt, "rbits"."""
    to, relu, finite = NARROW[name], '.relu' in words, '.satfinite' in words
    regs = [[single() for _ in LANES] for _ in range(n)] + [[RANDOM.getrandbits(32) for _ in LANES]]
    width = 4 if name == 'e2m1' else 32 // n
    out = []
    for l in LANES:
        r, word = regs[n][l], 0
        for k in range(n):
            if name == 'e2m1':
                shift = 8 if k < 2 else 0
                bits = (r >> 16 >> shift & 255) << 8 | (r >> shift & 255), 16
            else:
                bits = (r >> 16 if 2 * k < n else r & 0xffff), 16
            if name == 'f16':
                bits = bits[0] & 0x1fff, 13
            x = regs[k][l]
            word |= convert(to, F32.value(x), x >> 31, relu, finite, bits) << (width * (n - 1 - k))
        out.append(word)
    floats = ''.join('.reg .f32 %%x%d; mov.b32 %%x%d, %%r%d;\n' % (k, k, k) for k in range(n))
    if n == 2:
        text = floats + 'cvt.rs%s.%sx2.f32 %%d0, %%x0, %%x1, %%r2' % (words, name)
    elif name == 'e2m1':
        text = floats + 'cvt.rs%s.e2m1x4.f32 %%h0, {%%x0, %%x1, %%x2, %%x3}, %%r4;\nmov.b32 %%d0, {%%h0, %%zero}' % words
        text = '.reg .b16 %zero; mov.b16 %zero, 0;\n' + text
    else:
        text = floats + 'cvt.rs%s.%sx4.f32 %%d0, {%%x0, %%x1, %%x2, %%x3}, %%r4' % (words, name)
    return Form(text, regs, [out], 'sm_100a')


def from_pair(name, source, words):
    """cvt.rn.satfinite of two halves in a register."""
    to, half = NARROW[name], F16 if source == 'f16x2' else BF16
    regs = [[RANDOM.getrandbits(32) for _ in LANES]]
    width = 4 if name == 'e2m1' else 8
    out = []
    for x in regs[0]:
        parts = [convert(to, half.value(x >> s & 0xffff), x >> s >> 15 & 1, '.relu' in words, True) for s in (0, 16)]
        out.append(parts[0] | parts[1] << width)
    if name == 'e2m1':
        text = '.reg .b8 %%byte;\ncvt.rn.satfinite%s.e2m1x2.%s %%byte, %%r0;\ncvt.u32.u8 %%d0, %%byte' % (words, source)
    else:
        text = 'cvt.rn.satfinite%s.%sx2.%s %%h0, %%r0;\ncvt.u32.u16 %%d0, %%h0' % (words, name, source)
    return Form(text, regs, [out], 'sm_100a', '9.1')


OUTSIDE = {'f16': 0x7eff, 'bf16': 0x7fdf}  # Halfwarp's own where the manual says "a special NaN"


def half_fma(kind, a, b, c, relu):
    half = NARROW[kind]
    if OUTSIDE[kind] in (a, b, c):
        return 0
    x, y, z = (half.value(v) for v in (a, b, c))
    if any(isinstance(v, float) for v in (x, y, z)):
        v = float(x) * float(y) + float(z)
        if math.isnan(v):
            return 0x7fff
        if math.isinf(v):
            return 0 if relu and v < 0 else half.encode(math.inf, v < 0, False)
    v = x * y + z
    negative = v < 0 or (v == 0 and z == 0 and c >> 15 and (a ^ b) >> 15)
    if v == 0 and x * y == 0 and z == 0:
        negative = bool(c >> 15) and bool((a ^ b) >> 15)
    if relu and negative:
        return 0
    return half.encode(abs(v), bool(negative), False)


def fma_oob(kind, pair, relu):
    def pick():
        k = RANDOM.randrange(10)
        if k == 0:
            return OUTSIDE[kind]
        if k == 1:
            return RANDOM.choice((0, 0x8000, 0x7fff, NARROW[kind].infinity, NARROW[kind].infinity | 0x8000))
        return RANDOM.getrandbits(1) << 15 | RANDOM.randrange(0x3400, 0x4400)

    regs = [[pick() | (pick() << 16 if pair else 0) for _ in LANES] for _ in range(3)]
    out = []
    for l in LANES:
        halves = [half_fma(kind, *(r[l] >> s & 0xffff for r in regs), relu) for s in ((0, 16) if pair else (0,))]
        out.append(sum(h << (16 * k) for k, h in enumerate(halves)))
    name = kind + ('x2' if pair else '')
    words = 'fma.rn.oob%s.%s' % ('.relu' if relu else '', name)
    if pair:
        return Form(words + ' %d0, %r0, %r1, %r2', regs, [out], 'sm_90')
    text = ''.join('cvt.u16.u32 %%h%d, %%r%d;\n' % (k, k) for k in range(3))
    return Form(text + words + ' %h3, %h0, %h1, %h2;\ncvt.u32.u16 %d0, %h3', regs, [out], 'sm_90')


def pack(name):
    """cvt.pack.sat of two integers; c above them."""
    bits, signed = int(name[1:]), name[0] == 's'
    least, most = (-1 << (bits - 1), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
    regs = [[RANDOM.choice((RANDOM.getrandbits(32), RANDOM.randrange(-300, 300) & 0xffffffff)) for _ in LANES]
            for _ in range(3)]
    out = []
    for l in LANES:
        a, b = ((x ^ 0x80000000) - 0x80000000 for x in (regs[0][l], regs[1][l]))
        a, b = (max(least, min(most, x)) & ((1 << bits) - 1) for x in (a, b))
        out.append((a << bits | b | (regs[2][l] << 2 * bits if bits < 16 else 0)) & 0xffffffff)
    third = ('.b32', ', %r2') if bits < 16 else ('', '')
    return Form('cvt.pack.sat.%s.s32%s %%d0, %%r0, %%r1%s' % (name, *third), regs, [out], 'sm_75')


def forms():
    for name in ('u16', 's16', 'u8', 's8', 'u4', 's4', 'u2', 's2'):
        yield pack(name)
    for _ in range(3):
        for relu in ('', '.relu'):
            for finite in ('', '.satfinite'):
                for name in ('f16', 'bf16'):
                    yield at_random(name, 2, relu + finite)
            for name in ('e4m3', 'e5m2', 'e2m3', 'e3m2', 'e2m1'):
                yield at_random(name, 4, relu + '.satfinite')
                for source in ('f16x2', 'bf16x2'):
                    yield from_pair(name, source, relu)
        for kind in ('f16', 'bf16'):
            for pair in (False, True):
                for relu in (False, True):
                    yield fma_oob(kind, pair, relu)


if __name__ == '__main__':
    blocks.main(forms())
