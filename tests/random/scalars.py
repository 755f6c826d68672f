# SPDX-License-Identifier: Apache-2.0
"""Random programs of threads that know nothing of each other: integers of all widths, floats, arrays with computed indices, branches, loops,
switches, early returns, calls. What a thread computes, the host computes by the same function."""
from common import HEAD, INTS, Chance

FLOATS = ['float', 'double']
TOOLS = '''#define CALLED static __attribute__((noinline)) BOTH
static BOTH inline uint32_t ones(uint64_t x) { uint32_t n = 0; for (; x; x &= x - 1) n++; return n; }
static BOTH inline uint32_t zeros(uint32_t x) { uint32_t n = 0; for (uint32_t b = 1u << 31; b && !(x & b); b >>= 1) n++; return n; }
static BOTH inline uint32_t high(uint32_t a, uint32_t b) { return (uint32_t)((uint64_t)a * b >> 32); }
static BOTH inline uint32_t bits_of(float f) { uint32_t u; memcpy(&u, &f, 4); return f != f ? 0x7fc00000 : u; }
static BOTH inline uint64_t bits_of(double f) { uint64_t u; memcpy(&u, &f, 8); return f != f ? 0x7ff8000000000000 : u; }
static BOTH inline int32_t whole(double x) { return x > -1e9 && x < 1e9 ? (int32_t)x : 77; }
static BOTH inline double less(double a, double b) { return a < b ? a : b; }
static BOTH inline double root(double x) { return x >= 0 ? sqrt(x) : -x; }
'''


class Maker:
    def __init__(self, chance):
        self.c = chance
        self.lines, self.vars, self.arrays, self.functions, self.count = [], [], [], [], 0

    def of_type(self, types):
        return [name for name, t in self.vars if t in types]

    # ---- expressions ----

    def integer(self, d=0):
        c = self.c
        if d > 3 or c.often(.15):
            own = self.of_type(INTS)
            if own and c.often(.8):
                return c.of(*own)
            return c.of('tid', 'in[tid]', 'in[(tid * 7u + %du) & 255u]' % c.below(256), '%d' % c.of(0, 1, 2, 7, 8, 31, 32, 63, 255, -1, -2, 65535),
                        '%d' % (c.below(2000) - 1000), '%d' % c.below(1 << 31))
        sub = lambda: self.integer(d + 1)
        wide = c.of('uint32_t', 'uint64_t', 'int32_t', 'int64_t')
        right = '>>' if wide[0] == 'i' else c.of('<<', '>>')
        ways = [(35, lambda: '(%s)((uint64_t)(%s) %s (uint64_t)(%s))' % (c.of('uint16_t', 'uint32_t', 'uint64_t'), sub(), c.of(*'+-*&|^'), sub())),
                (8, lambda: '((%s)(%s) %s ((%s) & %d))' % (wide, sub(), right, sub(), 31 if '32' in wide else 63)),
                (4, lambda: '((uint64_t)(%s)(%s) %s (uint32_t)((%s) | 1))' % (c.of('uint8_t', 'uint32_t', 'uint64_t'), sub(), c.of(*'/%'), sub())),
                (4, lambda: '((int64_t)(%s)(%s) %s (int64_t)(int16_t)((%s) | 1))' % (c.of('int16_t', 'int32_t'), sub(), c.of(*'/%'), sub())),
                (8, lambda: '(%s)(%s)' % (c.of(*INTS), sub())),
                (10, lambda: '((%s) ? (%s) : (%s))' % (self.condition(d + 1), sub(), sub())),
                (3, lambda: 'ones(%s)' % sub()), (2, lambda: 'high(%s, %s)' % (sub(), sub())), (2, lambda: 'zeros(%s)' % sub()),
                (2, lambda: 'whole(%s)' % self.real(d + 1))]
        if self.arrays:
            name, _, n = c.of(*self.arrays)
            ways.append((3, lambda: '%s[(uint32_t)(%s) & %du]' % (name, sub(), n - 1)))
        if self.functions:
            ways.append((3, lambda: '%s((uint32_t)(%s), (int32_t)(%s), in)' % (c.of(*self.functions), sub(), sub())))
        return c.weighted(ways)()

    def real(self, d=0):
        c = self.c
        if d > 3 or c.often(.2):
            own = self.of_type(FLOATS)
            if own and c.often(.8):
                return c.of(*own)
            return c.of('1.5f', '0.25', '-3.0f', '1e10', '(float)tid', '(double)(int32_t)in[tid]', '0.1', '1e-20f')
        sub = lambda: self.real(d + 1)
        return c.weighted([
            (40, lambda: '((%s) %s (%s))' % (sub(), c.of(*'+-*'), sub())), (8, lambda: '((%s) / ((%s) + 2.0f))' % (sub(), sub())),
            (7, lambda: '(%s)(%s)' % (c.of(*FLOATS), sub())), (7, lambda: '(%s)(%s)(%s)' % (c.of(*FLOATS), c.of(*INTS), self.integer(d + 1))),
            (5, lambda: '((%s) ? (%s) : (%s))' % (self.condition(d + 1), sub(), sub())), (5, lambda: 'root(%s)' % sub()),
            (2, lambda: 'less(%s, %s)' % (sub(), sub())), (1, lambda: 'fma((double)%s, (double)%s, 0.5)' % (sub(), sub())),
            (1, lambda: 'fmaf((float)%s, (float)%s, 1.5f)' % (sub(), sub())),
            (4, lambda: '%s((double)%s)' % (c.of('floor', 'ceil', 'trunc', 'fabs', 'rint'), sub()))])()

    def condition(self, d=0):
        c, order = self.c, self.c.of('<', '<=', '>', '>=', '==', '!=')
        t = c.of('int32_t', 'uint32_t', 'int64_t', 'uint64_t', 'int16_t', 'uint8_t')
        ways = [(60, lambda: '(%s)(%s) %s (%s)(%s)' % (t, self.integer(d + 1), order, t, self.integer(d + 1))),
                (15, lambda: '((%s) & %d)%s' % (self.integer(d + 1), c.of(1, 2, 3, 4, 7, 8), c.of('', ' == 0', ' == 1'))),
                (10, lambda: '(%s) %s (%s)' % (self.real(d + 1), order, self.real(d + 1)))]
        if d < 3:
            ways.append((15, lambda: '(%s) %s (%s)' % (self.condition(d + 1), c.of('&&', '||'), self.condition(d + 1))))
        return c.weighted(ways)()

    def typed(self, t):
        return '(%s)(%s)' % (t, self.real() if t in FLOATS else self.integer())

    # ---- statements: ind, how they are indented; depth of blocks, loops around ----

    def say(self, ind, text):
        self.lines.append(ind + text)

    def declare(self, ind):
        self.count += 1
        name, t = 'v%d' % self.count, self.c.of(*INTS, *FLOATS)
        self.say(ind, '%s %s = %s;' % (t, name, self.typed(t)))
        self.vars.append((name, t))

    def block(self, ind, depth, loops):
        seen = len(self.vars)
        for _ in range(1 + self.c.below(4)):
            self.statement(ind + ' ', depth + 1, loops)
        del self.vars[seen:]

    def branch(self, ind, depth, loops):
        self.say(ind, 'if (%s) {' % self.condition())
        self.block(ind, depth, loops)
        if self.c.often(.5):
            self.say(ind, '} else {')
            self.block(ind, depth, loops)
        self.say(ind, '}')

    def loop(self, ind, depth, loops):
        self.count += 1
        i, most = 'i%d' % self.count, '(uint32_t)(%s) %% %du' % (self.integer(), self.c.of(1, 2, 3, 5, 9, 17) if loops < 2 else self.c.of(2, 3, 5))
        self.say(ind, self.c.weighted([(5, 'for (uint32_t %s = 0, n%s = %s; %s < n%s; %s++) {' % (i, i, most, i, i, i)),
                                       (3, 'for (uint32_t %s = 0; %s < 12u && (%s); %s++) {' % (i, i, self.condition(), i)),
                                       (2, 'for (uint32_t %s = %s; %s != 0; %s--) {' % (i, most, i, i))]))
        self.block(ind, depth, loops + 1)
        self.say(ind, '}')

    def switch(self, ind, depth, loops):
        self.say(ind, 'switch ((uint32_t)(%s) %% %du) {' % (self.integer(), 2 + self.c.below(7)))
        for k in self.c.r.sample(range(8), 1 + self.c.below(6)):
            self.say(ind, 'case %d: {' % k)
            self.block(ind, depth, loops)
            self.say(ind, '}' + (' break;' if self.c.often(.7) else ''))
        self.say(ind, 'default: break; }')

    def statement(self, ind, depth, loops):
        c = self.c
        if not self.vars or c.often(.2):
            return self.declare(ind)
        ways = [(30, 'set'), (5, 'return')]
        if self.arrays:
            ways.append((8, 'store'))
        if loops:
            ways.append((4, 'leave'))
        if depth < 4:
            ways += [(14, self.branch), (6, self.switch)]
        if depth < 4 and loops < 3:
            ways.append((14, self.loop))
        way = c.weighted(ways)
        if way == 'set':
            name, t = c.of(*self.vars)
            self.say(ind, '%s = %s;' % (name, self.typed(t)))
        elif way == 'store':
            name, t, n = c.of(*self.arrays)
            self.say(ind, '%s[(uint32_t)(%s) & %du] = %s;' % (name, self.integer(), n - 1, self.typed(t)))
        elif way == 'leave':
            self.say(ind, 'if (%s) %s;' % (self.condition(), c.of('break', 'continue')))
        elif way == 'return':
            self.say(ind, 'if (%s) return %s;' % (self.condition(), self.integer()))
        else:
            way(ind, depth, loops)

    def function(self, head, statements):
        self.lines.append(head)
        self.arrays, self.vars = [], []
        for a in range(self.c.below(3)):
            n, t = self.c.of(2, 4, 8, 16), self.c.of(*INTS)
            self.say('    ', '%s a%d[%d]; for (int i = 0; i < %d; i++) a%d[i] = (%s)(in[(tid + i) & 255u] * %du);' % (t, a, n, n, a, t, self.c.below(999)))
            self.arrays.append(('a%d' % a, t, n))
        for _ in range(statements):
            self.statement('    ', 0, 0)
        mix = '    h = (h ^ %s) * 1099511628211u;'
        self.say('    ', 'uint64_t h = 1469598103934665603u;')
        self.lines += [mix % ('bits_of(%s)' % v if t in FLOATS else '(uint64_t)' + v) for v, t in self.vars]
        self.lines += ['    for (int i = 0; i < %d; i++)' % n + mix % ('(uint64_t)%s[i]' % a) for a, _, n in self.arrays]
        self.lines.append('    return h;\n}')


def program(seed):
    c, text = Chance(seed), []
    for k in range(3):
        called = []
        for f in range(c.below(3)):
            m = Maker(c)
            name = 'g%d_%d' % (k, f)
            m.function('%s uint32_t %s(uint32_t tid, int32_t p, const uint32_t *in)\n{\n    tid = (tid ^ p) & 255u;' %
                       (c.of('CALLED', 'static BOTH'), name), 2 + c.below(4))
            text += m.lines
            called.append(name)
        m = Maker(c)
        m.functions = called
        m.function('static BOTH uint64_t f%d(uint32_t tid, const uint32_t *in)\n{' % k, 3 + c.below(6))
        text += m.lines
    return HEAD % c.below(1 << 31) + TOOLS + '\n'.join(text) + '''
#ifdef __CUDACC__
#define KERNEL(n) __global__ void kernel##n(const uint32_t *in, uint64_t *o) { uint32_t t = threadIdx.x + blockIdx.x * blockDim.x; if (t < 250) o[t] = f##n(t, in); }
KERNEL(0) KERNEL(1) KERNEL(2)
#define ALL(n) kernel##n<<<3, 88>>>(in, o)
#else
#define ALL(n) for (uint32_t t = 0; t < 250; t++) o[t] = f##n(t, in)
#endif
int main()
{
#ifdef __CUDACC__
    uint32_t *in; uint64_t *o;
    cudaMallocManaged(&in, 1024); cudaMallocManaged(&o, 2000);
#else
    static uint32_t in[256]; static uint64_t o[250];
    auto cudaDeviceSynchronize = [] { return 0; };
#endif
    fill(in);
#define RUN(n) memset(o, 0, 2000); ALL(n); if (cudaDeviceSynchronize()) puts("failed"); \\
    for (int i = 0; i < 250; i++) printf("%d %d %llx\\n", n, i, (unsigned long long)o[i]);
    RUN(0) RUN(1) RUN(2)
}
'''
