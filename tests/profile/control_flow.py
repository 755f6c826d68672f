# SPDX-License-Identifier: Apache-2.0
"""PTX kernels of every shape of control flow, and what warps that run them execute, worked out lane by lane.

A kernel is a list of instructions and labels. The model inlines functions into it, orders its blocks so that loops lie
together and everything else stands before what it leads to, and always lets the first block with lanes run; lanes that
go back to the head of a loop wait for those that are still in it. So lanes meet where paths join, which is all that the
counts depend on."""
import random

MASK = 0xffffffff
# name in the totals of a profile, by the first words of an instruction; the longest match counts
GROUPS = {
    'mov': 'integer', 'add.u32': 'integer', 'xor': 'integer', 'and': 'integer', 'mul.lo': 'integer', 'setp': 'integer', 'selp': 'integer',
    'shr': 'integer', 'popc': 'integer', 'add.f32': 'fp32', 'mul.f32': 'fp32', 'fma.rn.f32': 'fp32', 'add.f64': 'fp64', 'fma.rn.f64': 'fp64',
    'add.f16x2': 'fp16', 'mul.f16': 'fp16', 'cvt': 'convert', 'sin': 'special', 'rcp': 'special', 'ld': 'memory', 'st': 'memory',
    'red': 'atomic', 'atom': 'atomic', 'vote': 'exchange', 'bar': 'barrier', 'membar': 'barrier', 'bra': 'control', 'brx': 'control', 'ret': 'control',
    'exit': 'control', 'call': 'control', 'cp.async': 'integer',
}
FLOPS = {'add.f32': ('fadd', 1), 'mul.f32': ('fmul', 1), 'fma.rn.f32': ('ffma', 1), 'add.f64': ('dadd', 1), 'fma.rn.f64': ('dfma', 1),
         'add.f16x2': ('hadd', 2), 'mul.f16': ('hmul', 1)}


class Ins:
    """kind: alu (run changes a lane's registers), bra, brx, ret, exit, call. labels: where it may go."""

    def __init__(self, text, kind='alu', guard=None, run=None, labels=(), index=None, callee=None):
        self.text, self.kind, self.guard, self.run = text, kind, guard, run
        self.labels, self.index, self.callee = list(labels), index, callee
        self.line = None

    def copy(self, prefix, after):
        c = Ins(self.text, self.kind, self.guard, self.run, [prefix + name for name in self.labels], self.index, self.callee)
        c.line = self.line
        if c.kind == 'ret':
            c.kind, c.labels = 'return', [after]
        return c


def word_of(text, table):
    return max((k for k in table if text.startswith(k)), key=len, default=None)


# ---- making kernels ----


class Maker:
    """Statements at random. Registers %r0 to %r7 hold what decides; loop counters are apart, so that everything ends."""

    def __init__(self, rng, name, functions=(), exits=True):
        self.rng, self.name, self.functions, self.exits = rng, name, functions, exits
        self.items, self.labels, self.counters = [], 0, 0
        self.loops, self.preds = [], 0
        self.end = None  # label that early exits branch to

    def label(self):
        self.labels += 1
        return 'L%d' % self.labels

    def put(self, text, **more):
        self.items.append(Ins(text, **more))

    def at(self, label):
        self.items.append(label)

    def maybe_guard(self):
        if self.rng.random() < 0.8:
            return None
        return ('%p' + str(self.rng.randrange(4)), self.rng.random() < 0.5)

    def work(self):
        r = self.rng
        d, a, b = (r.randrange(8) for _ in range(3))
        k = r.randrange(1, 1 << 20)
        def binary(f):
            return lambda x: x.__setitem__('%%r%d' % d, f(x['%%r%d' % a], x['%%r%d' % b]) & MASK)
        choices = [
            lambda g: self.put('add.u32 %%r%d, %%r%d, %%r%d;' % (d, a, b), run=binary(lambda x, y: x + y), guard=g),
            lambda g: self.put('xor.b32 %%r%d, %%r%d, %%r%d;' % (d, a, b), run=binary(lambda x, y: x ^ y), guard=g),
            lambda g: self.put('mul.lo.u32 %%r%d, %%r%d, %%r%d;' % (d, a, b), run=binary(lambda x, y: x * y), guard=g),
            lambda g: self.put('add.u32 %%r%d, %%r%d, %d;' % (d, a, k), run=binary(lambda x, y: x + k), guard=g),
            lambda g: self.put('popc.b32 %%r%d, %%r%d;' % (d, a), run=binary(lambda x, y: bin(x).count('1')), guard=g),
            lambda g: self.put('mov.u32 %%r%d, %%r%d;' % (d, a), run=binary(lambda x, y: x), guard=g),
            lambda g: self.test(g),
        ]
        plain = ['add.f32 %f0, %f1, %f2;', 'mul.f32 %f1, %f2, %f0;', 'fma.rn.f32 %f2, %f0, %f1, %f2;', 'add.f64 %d0, %d1, %d0;',
                 'fma.rn.f64 %d1, %d0, %d1, %d1;', 'add.f16x2 %h2, %h2, %h3;', 'mul.f16 %h0, %h1, %h0;', 'cvt.rn.f32.u32 %f0, %r1;',
                 'sin.approx.f32 %f1, %f0;', 'rcp.approx.f32 %f2, %f1;', 'st.global.u32 [%x0], %r1;', 'red.global.add.u32 [%x0], 1;', 'membar.cta;',
                 'ld.global.u32 %r8, [%x0];', 'st.shared.u32 [tile], %r0;', 'cp.async.commit_group;']
        g = self.maybe_guard()
        if r.random() < 0.3:
            self.put(r.choice(plain), guard=g)
        else:
            r.choice(choices)(g)

    def test(self, guard=None):
        r = self.rng
        p, a, bit = '%p' + str(r.randrange(4)), '%r' + str(r.randrange(8)), r.randrange(8)
        self.put('and.b32 %%r9, %s, %d;' % (a, 1 << bit), run=lambda x: x.__setitem__('%r9', x[a] & 1 << bit))
        self.put('setp.ne.u32 %s, %%r9, 0;' % p, run=lambda x: x.__setitem__(p, x['%r9'] != 0), guard=guard)
        return p

    def uniform_test(self):
        """Of the number of the warp: all lanes agree, and the compiler may not know it."""
        self.put('setp.ne.u32 %p4, %w, 0;', run=lambda x: x.__setitem__('%p4', x['%w'] != 0))
        return '%p4'

    def condition(self):
        p = self.uniform_test() if self.rng.random() < 0.15 else self.test()
        return p, self.rng.random() < 0.5

    def branch(self, to, guard=None):
        self.put('bra %s;' % to, kind='bra', guard=guard, labels=[to])

    # each of these is a statement

    def if_(self, depth):
        p, negated = self.condition()
        after = self.label()
        self.branch(after, (p, negated))
        self.block(depth - 1)
        if self.rng.random() < 0.5:
            other, after = after, self.label()
            self.branch(after)
            self.at(other)
            self.block(depth - 1)
        self.at(after)

    def short_circuit(self, depth):
        yes, after = self.label(), self.label()
        for _ in range(2):
            p, negated = self.condition()
            self.branch(yes, (p, negated))
        self.block(depth - 1)
        self.branch(after)
        self.at(yes)
        self.block(depth - 1)
        self.at(after)

    def loop(self, depth):
        c = '%%c%d' % self.counters
        self.counters += 1
        turns = self.rng.choice([3, 7])
        a = '%r' + str(self.rng.randrange(8))
        self.put('and.b32 %s, %s, %d;' % (c, a, turns), run=lambda x: x.__setitem__(c, x[a] & turns))
        head, latch, after = self.label(), self.label(), self.label()
        tested_first = self.rng.random() < 0.5
        self.at(head)
        if tested_first:
            self.put('setp.eq.u32 %%p5, %s, 0;' % c, run=lambda x: x.__setitem__('%p5', x[c] == 0))
            self.branch(after, ('%p5', False))
        self.loops.append((after, latch, c, head))
        self.block(depth - 1)
        self.loops.pop()
        self.at(latch)
        if tested_first:
            self.put('add.u32 %s, %s, -1;' % (c, c), run=lambda x: x.__setitem__(c, x[c] - 1 & MASK))
            self.branch(head)
        else:
            self.put('setp.ne.u32 %%p5, %s, 0;' % c, run=lambda x: x.__setitem__('%p5', x[c] != 0))
            self.put('add.u32 %s, %s, -1;' % (c, c), run=lambda x: x.__setitem__(c, x[c] - 1 & MASK))
            self.branch(head, ('%p5', False))
        self.at(after)

    def leave_loop(self, _):
        if not self.loops:
            return self.work()
        after, latch, c, head = self.rng.choice(self.loops)
        p, negated = self.condition()
        way = self.rng.randrange(3)
        if way == 2:  # back to the head by a way of its own
            on = self.label()
            self.branch(on, (p, negated))
            self.put('setp.eq.u32 %%p5, %s, 0;' % c, run=lambda x: x.__setitem__('%p5', x[c] == 0))
            self.put('add.u32 %s, %s, -1;' % (c, c), run=lambda x: x.__setitem__(c, x[c] - 1 & MASK))
            self.branch(after, ('%p5', False))
            self.branch(head)
            self.at(on)
        elif way == 1 and self.rng.random() < 0.5:  # with something on the way
            on = self.label()
            self.branch(on, (p, negated))
            self.work()
            self.branch(after)
            self.at(on)
        else:
            self.branch(latch if way == 0 else after, (p, negated))

    def switch(self, depth):
        n = self.rng.randrange(2, 5)
        a = '%r' + str(self.rng.randrange(8))
        self.put('and.b32 %%r9, %s, %d;' % (a, 3), run=lambda x: x.__setitem__('%r9', min(x[a] & 3, n - 1)))
        self.put('setp.gt.u32 %%p6, %%r9, %d;' % (n - 1), run=lambda x: x.__setitem__('%p6', False))
        self.put('selp.u32 %%r9, %d, %%r9, %%p6;' % (n - 1), run=lambda x: None)
        cases, after = [self.label() for _ in range(n)], self.label()
        table = [self.rng.choice(cases) for _ in range(n)]
        name = self.label() + 'T'
        self.items.append(('targets', name, table))
        guard = ('%p' + str(self.rng.randrange(4)), self.rng.random() < 0.5) if self.rng.random() < 0.3 else None
        self.put('brx.idx %%r9, %s;' % name, kind='brx', guard=guard, labels=table, index='%r9')
        if guard and self.rng.random() < 0.5:
            self.work()
        for case in cases:
            self.at(case)
            self.block(depth - 1)
            if self.rng.random() < 0.7:
                self.branch(after)
        self.at(after)

    def leave(self, _):
        """Early ends in all ways."""
        if not self.exits:
            return self.work()
        guard = self.condition()
        way = self.rng.randrange(5)
        if way == 0:
            self.put('ret;', kind='ret', guard=guard)
        elif way == 1:
            self.put('exit;', kind='exit', guard=guard)
        elif way == 2:
            self.branch(self.end, guard)
        else:
            on = self.label()
            self.branch(on, guard)
            if way == 3:
                self.work()
            if self.rng.random() < 0.5:
                kind = self.rng.choice(['ret', 'exit'])
                self.put(kind + ';', kind=kind)
            else:
                self.branch(self.end)
            self.at(on)

    def trivial(self, _):
        """Branches to what comes next, to branches and round in a line."""
        a, b, c = self.label(), self.label(), self.label()
        way = self.rng.randrange(3)
        if way == 0:
            self.branch(a, self.condition() if self.rng.random() < 0.5 else None)
            self.at(a)
        elif way == 1:
            self.branch(a, self.condition())
            self.branch(b)
            self.at(a)
            self.branch(c)
            self.at(b)
            self.branch(c)
            self.at(c)
        else:
            self.branch(a, self.condition())
            self.work()
            self.at(a)
            self.branch(b)
            self.at(b)
            self.at(c)

    def call(self, _):
        if not self.functions:
            return self.work()
        f = self.rng.choice(self.functions)
        guard = self.condition() if self.rng.random() < 0.3 else None
        self.items.append(('text', '{ .param .b32 p0; .param .b32 p1; .param .b32 result;'))
        self.put('st.param.b32 [p0], %r0;')
        self.put('st.param.b32 [p1], %r1;')
        self.put('call (result), %s, (p0, p1);' % f.name, kind='call', guard=guard, callee=f)
        self.put('ld.param.b32 %r8, [result];', run=lambda x: x.__setitem__('%r8', x['result']))
        self.items.append(('text', '}'))

    def barrier(self, _):
        self.put('bar.sync 0;')

    def block(self, depth):
        nested = [self.if_, self.if_, self.loop, self.switch, self.short_circuit]
        flat = [self.leave_loop, self.leave, self.trivial, self.call]
        for _ in range(self.rng.randrange(0, 4)):
            if depth > 0 and self.rng.random() < 0.45:
                self.rng.choice(nested)(depth)
            elif self.rng.random() < 0.4:
                self.rng.choice(flat)(depth)
            else:
                self.work()

    def body(self, depth, barriers):
        """Where lanes branch over a barrier to the end, those at the barrier wait until the others have ended: then the end is
        reached twice, unless it is no more than an end."""
        self.end = 'END'
        for _ in range(self.rng.randrange(2, 5)):
            self.block(depth)
            if barriers and self.rng.random() < 0.3:
                self.barrier(depth)
        self.at(self.end)
        if self.rng.random() < 0.3 and not barriers:
            self.work()
        self.put('ret;', kind='ret')
        return self.items


# ---- text ----

def text_of(items, lines, prefix=''):
    """Appends to lines, and tells each instruction its line."""
    for item in items:
        if isinstance(item, str):
            lines.append(item + ':')
        elif isinstance(item, tuple):
            lines.append(item[1] if item[0] == 'text' else '%s: .branchtargets %s;' % (item[1], ', '.join(item[2])))
        else:
            guard = '@%s%s ' % ('!' if item.guard[1] else '', item.guard[0]) if item.guard else ''
            lines.append('  ' + guard + item.text)
            item.line = len(lines)


def alu(text, register, value):
    return Ins(text, run=lambda x: x.__setitem__(register, value(x)))


def setup(is_kernel):
    """What bodies begin with: numbers that differ from lane to lane. A function has two, and its result is ready early."""
    items = [alu('mov.u32 %r2, %tid.x;', '%r2', lambda x: x['tid']), alu('shr.u32 %w, %r2, 5;', '%w', lambda x: x['tid'] >> 5)]
    if is_kernel:
        items += [alu('mul.lo.u32 %r0, %r2, 2654435769;', '%r0', lambda x: x['tid'] * 2654435769 & MASK),
                  alu('shr.u32 %r1, %r0, 11;', '%r1', lambda x: x['%r0'] >> 11), Ins('ld.param.u64 %x0, [data];')]
    else:
        items += [Ins('ld.param.u32 %r0, [a];'), Ins('ld.param.u32 %r1, [b];'), Ins('mov.u64 %x0, where;')]
    for k in range(3, 9):
        items.append(alu('mul.lo.u32 %%r%d, %%r%d, %d;' % (k, k - 2, 40503 + 2 * k), '%%r%d' % k,
                         lambda x, k=k: x['%%r%d' % (k - 2)] * (40503 + 2 * k) & MASK))
    for k in range(7):
        items.append(alu('setp.gt.u32 %%p%d, %%r%d, 2000000000;' % (k, k), '%%p%d' % k, lambda x, k=k: x['%%r%d' % k] > 2000000000))
    if not is_kernel:
        items += [alu('xor.b32 %r9, %r0, %r1;', '%r9', lambda x: x['%r0'] ^ x['%r1']),
                  alu('st.param.b32 [result], %r9;', 'result', lambda x: x['%r9'])]
    return items


KERNEL = '.visible .entry %s(.param .u64 data)\n{'
FUNCTION = '.func (.param .b32 result) %s(.param .b32 a, .param .b32 b)\n{'
REGISTERS = ('.reg .pred %p<8>; .reg .b16 %h<2>; .reg .b32 %r<10>; .reg .b32 %c<64>; .reg .b32 %w; .reg .f32 %f<3>;',
             '.reg .f64 %d<2>; .reg .b64 %x<2>; .reg .b32 %h2, %h3;')
HEAD = ['.version 7.8', '.target sm_80', '.address_size 64', '.global .align 16 .b8 where[64];']


def append(lines, head, items):
    lines += (head + '\n' + '\n'.join(REGISTERS) + '\n.shared .align 16 .b8 tile[64];').split('\n')
    text_of(items, lines)
    lines.append('}')


class Function:
    """stays: no lane ends in it, so that it can be called."""

    def __init__(self, name, items, stays):
        self.name, self.items, self.stays = name, items, stays


def recursive(rng, name):
    """A function that calls itself up to three deep, once or twice; what else it does is at random."""
    m = Maker(rng, name)
    m.items = setup(False)
    itself = Function(name, m.items, False)
    m.items.append(alu('and.b32 %c63, %r1, 3;', '%c63', lambda x: x['%r1'] & 3))
    m.end = 'END'
    for _ in range(rng.randrange(1, 3)):
        m.block(1)
        if rng.random() < 0.5:
            m.put('ret;', kind='ret', guard=(m.test(), False))
        m.items.append(alu('setp.eq.u32 %p5, %c63, 0;', '%p5', lambda x: x['%c63'] == 0))
        m.branch(m.end, ('%p5', False))
        m.items.append(alu('add.u32 %r1, %c63, -1;', '%r1', lambda x: x['%c63'] - 1 & MASK))
        m.functions = [itself]
        m.call(0)
        m.functions = []
    m.at(m.end)
    m.put('ret;', kind='ret')
    return itself


def make_recursive(seed, n):
    rng, lines, kernels = random.Random(seed), list(HEAD), []
    for k in range(n):
        f = recursive(rng, 'f%d' % k)
        append(lines, FUNCTION % f.name, f.items)
        m = Maker(rng, 'k%d' % k, [f])
        m.items = setup(True)
        m.call(0)
        m.body(2, False)
        append(lines, KERNEL % m.name, m.items)
        kernels.append((m.name, m.items, rng.choice([32, 50, 33])))
    return '\n'.join(lines) + '\n', kernels


def make(seed, n):
    """n kernels: (text of the module, [(name, items, threads)])."""
    rng, lines, kernels = random.Random(seed), list(HEAD), []
    for k in range(n):
        functions = []
        for f in range(rng.randrange(3)):
            large = rng.random() < 0.2  # too large to be inlined wherever it is called
            known = [f for f in functions if not large or f.stays]
            m = Maker(rng, 'f%d_%d' % (k, f), known, exits=not large and rng.random() < 0.5)
            m.items = setup(False)
            for _ in range(130 if large else 0):
                m.work()
            functions.append(Function(m.name, m.body(rng.randrange(0, 3), False), not m.exits and all(f.stays for f in known)))
            append(lines, FUNCTION % m.name, m.items)
        m = Maker(rng, 'k%d' % k, functions)
        m.items = setup(True)
        m.body(rng.randrange(1, 4), rng.random() < 0.5)
        append(lines, KERNEL % m.name, m.items)
        kernels.append((m.name, m.items, rng.choice([32, 64, 50, 33, 96, 128])))
    return '\n'.join(lines) + '\n', kernels


# ---- the model ----


def inline(items, prefix='', after=None, number=[0]):
    """A list without calls: ('label' or Ins), functions' bodies in their places."""
    out = []
    for item in items:
        if isinstance(item, str):
            out.append(prefix + item)
        elif isinstance(item, Ins):
            i = item.copy(prefix, after) if after else item.copy(prefix, None)
            if not after and item.kind == 'ret':
                i.kind, i.labels = 'ret', []
            out.append(i)
            if i.kind == 'call':
                number[0] += 1
                own = '%sF%d.' % (prefix, number[0])
                i.labels = [own + 'back']  # where lanes go that do not call
                out += inline(item.callee.items, own, own + 'back')
                out.append(own + 'back')
    return out


def blocks_of(items):
    """[(instructions, [targets])] in order of the text; targets of the last instruction first, then the next block."""
    starts, labels, flat = [0], {}, []
    for item in items:
        if isinstance(item, str):
            labels[item] = len(flat)
            starts.append(len(flat))
        else:
            flat.append(item)
            if item.kind != 'alu':
                starts.append(len(flat))
    starts = sorted(set(s for s in starts if s < len(flat)))
    number = {s: k for k, s in enumerate(starts)}
    def block_at(i):
        return number[i]
    blocks = []
    for k, s in enumerate(starts):
        body = flat[s:starts[k + 1] if k + 1 < len(starts) else len(flat)]
        last = body[-1]
        to = [block_at(labels[name]) for name in last.labels]
        falls = last.kind in ('alu', 'call') or last.guard is not None
        blocks.append((body, to, k + 1 if falls else None))
    return blocks


def successors(b):
    return set(b[1]) | ({b[2]} if b[2] is not None else set())


def linear_order(blocks):
    """(position of each block, last position of the loop of each head, depth of it)."""
    n = len(blocks)
    reach, stack = {0}, [0]
    while stack:
        for t in successors(blocks[stack.pop()]):
            if t not in reach:
                reach.add(t)
                stack.append(t)
    nodes = sorted(reach)
    preds = {b: {p for p in nodes if b in successors(blocks[p])} for b in nodes}
    dom = {b: set(nodes) for b in nodes}
    dom[0] = {0}
    changed = True
    while changed:
        changed = False
        for b in nodes[1:]:
            new = set.intersection(*(dom[p] for p in preds[b])) | {b}
            changed |= new != dom[b]
            dom[b] = new
    loops = {}
    for b in nodes:
        for h in successors(blocks[b]):
            if h in dom[b]:
                body, stack = loops.setdefault(h, {h}), [b]
                while stack:
                    x = stack.pop()
                    if x not in body:
                        body.add(x)
                        stack.extend(preds[x])
    order = []

    def place(region, head):
        inner = [h for h in loops if h in region and h != head and not any(
            h in loops[g] and g != h and g != head and g in region for g in loops)]
        owner = {b: b for b in region}
        for h in inner:
            for b in loops[h]:
                owner[b] = h
        edges = {(owner[a], owner[b]) for a in region for b in successors(blocks[a])
                 if b in region and b != head and owner[a] != owner[b]}
        left = set(owner.values())
        while left:
            ready = min(x for x in left if not any(b == x and a in left for a, b in edges))
            left.remove(ready)
            if ready in inner:
                place(loops[ready], ready)
            else:
                order.append(ready)

    place(set(nodes), None)
    position = {b: k for k, b in enumerate(order)}
    last = {h: max(position[b] for b in loops[h]) for h in loops}
    depth = {h: sum(h in loops[g] for g in loops) for h in loops}
    return position, last, depth


class Counts:
    def __init__(self):
        self.warps, self.threads, self.on, self.branches, self.divergent = {}, {}, {}, {}, {}

    def add(self, i, act, on, parted):
        for table, value in ((self.warps, 1), (self.threads, len(act)), (self.on, len(on))):
            table[i.line] = table.get(i.line, 0) + value
        if i.kind in ('bra', 'brx', 'ret', 'exit') and (i.guard or i.kind == 'brx'):
            self.branches[i.line] = self.branches.get(i.line, 0) + 1
            if parted:
                self.divergent[i.line] = self.divergent.get(i.line, 0) + 1


def holds(lane, guard):
    return guard is None or lane.get(guard[0], False) != guard[1]


def step(ins, stack, goes):
    """A lane at an instruction: the way it goes, 'next' or 'end', or the number of a target; its registers are changed."""
    x = stack[-1]
    if ins.kind == 'alu':
        if goes and ins.run:
            ins.run(x)
        return 'next'
    if ins.kind == 'call':
        if not goes:
            x['result'] = 0
            return 0
        stack.append(dict(new_registers(x['tid']), **{'%r0': x['%r0'], '%r1': x['%r1']}))
        return 'next'
    if not goes:
        return 'next'
    if ins.kind == 'return':
        result = stack.pop()['result']
        stack[-1]['result'] = result
        return 0
    if ins.kind == 'brx':
        return x[ins.index]
    return 0 if ins.kind == 'bra' else 'end'


def run_warp(blocks, order, lanes, counts):
    position, last, depth = order
    at = {k: ('at', 0, 0) for k in lanes}

    def key(k):
        what, b, i = at[k]
        return (position[b], 0, i) if what == 'at' else (last[b], 1000 - depth[b], 0)

    for steps in range(1000000):
        if not at:
            return
        first = min(key(k) for k in at)
        act = [k for k in at if key(k) == first]
        what, b, i = at[act[0]]
        if what == 'back':
            for k in act:
                at[k] = ('at', b, 0)
            continue
        body, to, falls = blocks[b]
        on, ways = [k for k in act if holds(lanes[k][-1], body[i].guard)], set()
        for k in act:
            way = step(body[i], lanes[k], k in on)
            if way == 'end':
                del at[k]
            elif way == 'next' and i + 1 < len(body):
                at[k] = ('at', b, i + 1)
            else:
                way = falls if way == 'next' else to[way]
                at[k] = ('back' if way in last and position[way] <= position[b] else 'at', way, 0)
            ways.add(way)
        counts.add(body[i], act, on, len(ways) > 1)
    raise RuntimeError('it does not end')


def run_lanes(items, threads):
    """Each lane by itself, functions called: what warps do together is left out."""
    counts, bodies = Counts(), {}

    def body_of(owner, code):
        if owner not in bodies:
            flat = [i for i in code if not isinstance(i, str) or i]
            plain, labels = [], {}
            for i in flat:
                if isinstance(i, str):
                    labels[i] = len(plain)
                elif isinstance(i, Ins):
                    plain.append(i)
            bodies[owner] = plain, labels
        return bodies[owner]

    for tid in range(threads):
        frames, stack = [(None, items, 0)], [new_registers(tid)]
        while frames:
            owner, code, at = frames.pop()
            plain, labels = body_of(owner, code)
            ins = plain[at]
            goes = holds(stack[-1], ins.guard)
            counts.add(ins, [tid], [tid] if goes else [], False)
            inner = ins.kind == 'ret' and owner is not None
            like = Ins(ins.text, 'return' if inner else ins.kind, ins.guard, ins.run, ins.labels, ins.index)
            way = step(like, stack, goes)
            if way == 'end':
                break
            if goes and inner:
                continue
            frames.append((owner, code, at + 1 if way == 'next' or ins.kind == 'call' else labels[ins.labels[way]]))
            if goes and ins.kind == 'call':
                frames.append((ins.callee.name, ins.callee.items, 0))
    return counts


def run_kernel(items, threads):
    blocks = blocks_of(inline(items))
    order, counts = linear_order(blocks), Counts()
    for w in range(0, threads, 32):
        lanes = {t: [new_registers(t)] for t in range(w, min(w + 32, threads))}
        run_warp(blocks, order, lanes, counts)
    return counts


def new_registers(tid):
    x = {'%%r%d' % k: 0 for k in range(10)}
    x.update({'%%c%d' % k: 0 for k in range(64)})
    x.update({'tid': tid, '%w': 0, 'result': 0})
    return x
