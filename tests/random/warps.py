# SPDX-License-Identifier: Apache-2.0
"""Random programs of warps: lanes that part and meet in branches and loops, shuffles, votes, matches and reductions among those that are
together, shared memory, barriers, atomics. Each statement is said twice: for a thread of the device, and as loops over the threads that are
there on the host, so the host's program is a model of SIMT written down independently."""
import re

from common import HEAD, Chance

MODEL = '''struct Act {
    bool a[NT];
};
#define FOR for (int t = 0; t < NT; t++) if (act.a[t])
static bool some(const Act &x) { for (int t = 0; t < NT; t++) if (x.a[t]) return true; return false; }
static uint32_t lanes(const Act &x, int t)
{
    uint32_t m = 0;
    for (int l = 0; l < 32 && (t & ~31) + l < NT; l++)
        m |= (uint32_t)x.a[(t & ~31) + l] << l;
    return m;
}
static uint32_t h_ballot(const Act &x, const uint32_t *c, int t)
{
    uint32_t m = 0, on = lanes(x, t);
    for (int l = 0; l < 32; l++)
        if (on >> l & 1 && c[(t & ~31) + l])
            m |= 1u << l;
    return m;
}
static uint32_t h_any(const Act &x, const uint32_t *c, int t) { return h_ballot(x, c, t) != 0; }
static uint32_t h_all(const Act &x, const uint32_t *c, int t) { return h_ballot(x, c, t) == lanes(x, t); }
static uint32_t h_match(const Act &x, const uint32_t *c, int t)
{
    uint32_t m = 0, on = lanes(x, t);
    for (int l = 0; l < 32; l++)
        if (on >> l & 1 && c[(t & ~31) + l] == c[t])
            m |= 1u << l;
    return m;
}
#define REDUCTION(name, e) static uint32_t h_##name(const Act &x, const uint32_t *c, int t) { \\
    bool first = true; uint32_t a = 0; \\
    for (int l = 0; l < 32; l++) if (lanes(x, t) >> l & 1) { uint32_t b = c[(t & ~31) + l]; a = first ? b : (e); first = false; } \\
    return a; }
REDUCTION(add, a + b) REDUCTION(min, a < b ? a : b) REDUCTION(max, a > b ? a : b)
REDUCTION(and, a & b) REDUCTION(or, a | b) REDUCTION(xor, a ^ b)
static uint32_t h_idx(const uint32_t *v, int t, uint32_t a, int w) { return v[(t & ~(w - 1)) + (a & (w - 1))]; }
static uint32_t h_bfly(const uint32_t *v, int t, uint32_t a, int w)
{
    int l = t & 31, s = l ^ (int)a;
    return s > (l | (w - 1)) ? v[t] : v[(t & ~31) + s];
}
static uint32_t h_up(const uint32_t *v, int t, uint32_t a, int w) { return (t & (w - 1)) < (int)a ? v[t] : v[t - (int)a]; }
static uint32_t h_down(const uint32_t *v, int t, uint32_t a, int w) { return (t & (w - 1)) + (int)a >= w ? v[t] : v[t + (int)a]; }
#define ATOMIC(name, e) static void h_atomic##name(uint32_t *p, uint32_t b) { uint32_t a = *p; *p = (e); }
ATOMIC(Add, a + b) ATOMIC(Xor, a ^ b) ATOMIC(Max, a > b ? a : b) ATOMIC(Or, a | b)
'''

NTH = '''/* The lane of the k-th set bit, round and round. */
BOTH inline uint32_t nth(uint32_t m, uint32_t k)
{
    uint32_t n = 0, i = 0;
    for (uint32_t b = m; b; b &= b - 1)
        n++;
    for (k %= n; k; k--)
        m &= m - 1;
    while (!(m >> i & 1))
        i++;
    return i;
}
'''


class Place:
    """Where a statement stands: the device's variable for the lanes that are together, whether these are whole warps, whether the whole
    block comes here, and how deep in branches and loops it is."""

    def __init__(self, mask, whole, block, depth, loops, indent):
        self.mask, self.whole, self.block, self.depth, self.loops, self.indent = mask, whole, block, depth, loops, indent

    def inner(self, mask=None, loops=0):
        alike = mask is None
        return Place(mask or self.mask, self.whole and alike, self.block and alike, self.depth + 1, self.loops + loops, self.indent + ' ')


class Maker:
    def __init__(self, seed):
        self.c = Chance(seed)
        self.threads = self.c.of(32, 64, 96, 70, 128)
        self.device, self.host, self.vars, self.all_vars, self.count, self.some_left = [], [], [], [], 0, False

    # ---- expressions: V(x) is a variable, tid the thread ----

    def value(self, depth=0):
        c = self.c
        if depth > 2 or c.often(.3):
            return c.of('V(%s)' % c.of(*self.vars) if self.vars else 'tid', 'tid', '(tid & 31u)',
                        'in[(tid * %du + %du) & 255u]' % (c.below(8), c.below(256)),
                        '%du' % c.of(0, 1, 2, 3, 5, 7, 31, 32, 100, c.below(1 << 31)))
        a, b = self.value(depth + 1), self.value(depth + 1)
        return c.weighted([(45, '(%s %s %s)' % (a, c.of('+', '-', '*', '&', '|', '^'), b)), (10, '(%s %s (%s & 31u))' % (a, c.of('<<', '>>'), b)),
                           (15, '(%s ? %s : %s)' % (self.condition(depth + 1), a, b))])

    def condition(self, depth=0):
        c = self.c
        return c.weighted([(4, '(%s %s %s)' % (self.value(depth + 1), c.of('<', '>', '==', '!=', '<='), self.value(depth + 1))),
                           (4, '((%s & %du) %s 0u)' % (self.value(depth + 1), c.of(1, 2, 3, 4, 6, 7), c.of('==', '!='))),
                           (2, '((tid & %du) %s %du)' % (c.of(1, 3, 7, 15, 31), c.of('<', '>=', '=='), c.below(32)))])

    def same_for_all(self):
        return '((in[%d] >> %d) & %du)' % (self.c.below(256), self.c.below(20), self.c.of(1, 3, 7))

    @staticmethod
    def on_device(e):
        return re.sub(r'V\((\w+)\)', r'\1', e)

    @staticmethod
    def on_host(e):
        return re.sub(r'V\((\w+)\)', r'\1[t]', e).replace('tid', '(uint32_t)t')

    # ---- statements ----

    def say(self, place, device, host):
        self.device.append(place.indent + device)
        self.host.append(host)

    def assign(self, place, name, e, new=False):
        self.say(place, '%s%s = %s;' % ('uint32_t ' if new else '', name, self.on_device(e)), 'FOR %s[t] = %s;' % (name, self.on_host(e)))

    def declare(self, place):
        self.count += 1
        name = 'v%d' % self.count
        self.assign(place, name, self.value(), new=True)
        self.vars.append(name)
        self.all_vars.append(name)

    def gathered(self, to, arg, host):
        """Every lane's argument, then the result of all of them together, then the assignment."""
        return 'FOR tmp[t] = %s; FOR old[t] = %s; FOR %s[t] = old[t];' % (self.on_host(arg), host, to)

    def shuffle(self, place, to, of):
        kind, width, a = self.c.of('idx', 'up', 'down', 'bfly'), self.c.of(32, 32, 16, 8, 4, 2), self.value()
        if kind != 'idx':
            a = '(%s & 31u)' % a
        name = {'idx': '__shfl_sync', 'up': '__shfl_up_sync', 'down': '__shfl_down_sync', 'bfly': '__shfl_xor_sync'}[kind]
        self.say(place, '%s = %s(%s, %s, %s, %d);' % (to, name, place.mask, of, self.on_device(a), width),
                 'FOR tmp[t] = %s; FOR old[t] = %s[t]; FOR %s[t] = h_%s(old, t, tmp[t], %d);' % (self.on_host(a), of, to, kind, width))

    def from_another(self, place, to, of):
        """A value of another lane that is there, by a shuffle or through shared memory."""
        a, m = self.value(), place.mask
        lane = 'nth(%s, %s)' % (m, self.on_device(a))
        self.say(place, self.c.of('%s = __shfl_sync(%s, %s, %s);' % (to, m, of, lane),
                                  'sh[tid] = %s; __syncwarp(%s); %s = sh[(tid & ~31u) + %s]; __syncwarp(%s);' % (of, m, to, lane, m)),
                 'FOR tmp[t] = %s; FOR old[t] = %s[t]; FOR %s[t] = old[(t & ~31) + nth(lanes(act, t), tmp[t])];' % (self.on_host(a), of, to))

    def vote(self, place, to, of):
        kind, e = self.c.of('ballot', 'any', 'all'), self.condition()
        self.say(place, '%s = __%s_sync(%s, %s);' % (to, kind, place.mask, self.on_device(e)), self.gathered(to, e, 'h_%s(act, tmp, t)' % kind))

    def match(self, place, to, of):
        e = '(%s & %du)' % (self.value(), self.c.of(1, 3, 7, 0xffffffff))
        self.say(place, '%s = __match_any_sync(%s, %s);' % (to, place.mask, self.on_device(e)), self.gathered(to, e, 'h_match(act, tmp, t)'))

    def reduction(self, place, to, of):
        kind = self.c.of('add', 'min', 'max', 'and', 'or', 'xor')
        self.say(place, '%s = __reduce_%s_sync(%s, %s);' % (to, kind, place.mask, of), self.gathered(to, 'V(%s)' % of, 'h_%s(act, tmp, t)' % kind))

    def atomic(self, place, to, of):
        """Each word has one operation: then their order shows nowhere."""
        kind = self.c.of('Add', 'Xor', 'Max', 'Or')
        where = '%s[%d + (%%s & 1u)]' % (self.c.of('g', 'sg'), {'Add': 0, 'Xor': 2, 'Max': 4, 'Or': 6}[kind])
        a, e = self.value(), self.value()
        self.say(place, 'atomic%s(&%s, %s);' % (kind, where % self.on_device(a), self.on_device(e)),
                 'FOR h_atomic%s(&%s, %s);' % (kind, where % self.on_host(a), self.on_host(e)))

    def exchange(self, place, to, of):
        a = self.value()
        self.say(place, '__syncthreads(); sb[tid] = %s; __syncthreads(); %s = sb[(%s) %% NT]; __syncthreads();' % (of, to, self.on_device(a)),
                 'FOR tmp[t] = %s; FOR sb[t] = %s[t]; FOR %s[t] = sb[tmp[t] %% NT];' % (self.on_host(a), of, to))

    def communicate(self, place):
        ways = [(1, self.from_another), (1, self.vote), (1, self.match), (1, self.reduction), (1, self.atomic)]
        if place.whole and not self.some_left and self.threads % 32 == 0:
            ways.append((1, self.shuffle))
        if place.block:
            ways.append((2, self.exchange))
        self.c.weighted(ways)(place, self.c.of(*self.vars), self.c.of(*self.vars))

    def within(self, place):
        seen = len(self.vars)
        self.statements(place, 1 + self.c.below(4))
        del self.vars[seen:]

    def branch(self, place):
        self.count += 1
        n = self.count
        if self.c.often(.2):
            e = '(%s > 1u)' % self.same_for_all()
            self.say(place, 'if (%s) {' % e, 'if (%s) {' % e)
            self.within(place.inner())
            self.say(place, '}', '}')
            return
        e = self.condition()
        self.say(place, 'bool c%d = %s; uint32_t b%d = __ballot_sync(%s, c%d);' % (n, self.on_device(e), n, place.mask, n), '')
        self.say(place, 'if (c%d) { uint32_t m%d = b%d;' % (n, n, n), '{ Act keep = act; bool c[NT]; FOR c[t] = %s; FOR act.a[t] = c[t];' % self.on_host(e))
        self.within(place.inner('m%d' % n))
        if self.c.often(.6):
            self.say(place, '} else { uint32_t m%d = %s & ~b%d;' % (n, place.mask, n), 'act = keep; FOR act.a[t] = !c[t];')
            self.within(place.inner('m%d' % n))
        self.say(place, '}', 'act = keep; }')
        if self.c.often(.5):
            self.say(place, '__syncwarp(%s);' % place.mask, '')

    def loop(self, place):
        self.count += 1
        n = self.count
        if self.c.often(.3):
            head = 'for (uint32_t i%d = 0; i%d < %s; i%d++) {' % (n, n, self.same_for_all(), n)
            self.say(place, head, head)
            self.within(place.inner(loops=1))
            self.say(place, '}', '}')
            return
        e = self.c.of('(i%d < (%s %% %du))' % (n, self.value(), self.c.of(2, 3, 6, 9)), '(i%d < 6u && %s)' % (n, self.condition()))
        head = 'for (uint32_t i%d = 0; ; i%d++) {' % (n, n)
        self.say(place, 'uint32_t l%d = %s; %s bool c%d = %s; l%d = __ballot_sync(l%d, c%d); if (!c%d) break;' %
                 (n, place.mask, head, n, self.on_device(e), n, n, n, n),
                 '{ Act keep = act; %s bool c[NT]; FOR c[t] = %s; FOR act.a[t] = c[t]; if (!some(act)) break;' % (head, self.on_host(e)))
        self.within(place.inner('l%d' % n, 1))
        self.say(place, '}', '} act = keep; }')

    def statement(self, place):
        if not self.vars:
            return self.declare(place)
        ways = [(20, self.declare), (12, lambda p: self.assign(p, self.c.of(*self.vars), self.value())), (38, self.communicate)]
        if place.depth < 4:
            ways.append((14, self.branch))
        if place.depth < 4 and place.loops < 2:
            ways.append((10, self.loop))
        self.c.weighted(ways)(place)

    def statements(self, place, n):
        for _ in range(n):
            self.statement(place)

    def body(self):
        top = Place('m', True, True, 0, 0, '    ')
        self.statements(top, 6 + self.c.below(11))
        if self.c.often(.4):
            e = self.condition()
            self.say(top, '{ bool q = %s; uint32_t b = __ballot_sync(m, !q); if (q) { o[tid] = 12345u; return; } m = b; }' % self.on_device(e),
                     '{ bool c[NT]; FOR c[t] = %s; FOR if (c[t]) { o[t] = 12345u; act.a[t] = false; } }' % self.on_host(e))
            self.some_left = True
            self.statements(Place('m', True, False, 1, 0, '    '), 1 + self.c.below(4))
        self.say(top, 'uint32_t h = 0; %s o[tid] = h;' % ' '.join('h = h * 31u + %s;' % v for v in self.vars),
                 'FOR { uint32_t h = 0; %s o[t] = h; }' % ' '.join('h = h * 31u + %s[t];' % v for v in self.vars))


def program(seed):
    k = Maker(seed)
    k.body()
    whole = '0xffffffffu' if k.threads % 32 == 0 else '__ballot_sync(__activemask(), true)'
    return HEAD % k.c.below(1 << 31) + '#define NT %du\n' % k.threads + NTH + '''#ifdef __CUDACC__
__global__ void k(const uint32_t *in, uint32_t *o, uint32_t *g)
{
    __shared__ uint32_t sh[NT], sb[NT], sg[8];
    uint32_t tid = threadIdx.x, m = %s;
    if (tid < 8)
        sg[tid] = 0;
    __syncthreads();
    in += blockIdx.x; o += NT * blockIdx.x; g += 8 * blockIdx.x;
%s
}
int main()
{
    uint32_t *in, *o, *g;
    cudaMallocManaged(&in, 2048); cudaMallocManaged(&o, 12 * NT); cudaMallocManaged(&g, 96);
    fill(in); fill(in + 256);
    k<<<3, NT>>>(in, o, g);
    cudaError_t e = cudaDeviceSynchronize();
    if (e)
        printf("%%s\\n", cudaGetErrorString(e));
#else
#undef NT
#define NT %d
%sstatic void block(const uint32_t *in, uint32_t *o, uint32_t *g)
{
    Act act;
    static uint32_t tmp[NT], old[NT], sb[NT], %s;
    uint32_t sg[8] = {};
    for (int t = 0; t < NT; t++)
        act.a[t] = true;
%s
}
int main()
{
    static uint32_t in[512], o[3 * NT], g[24];
    fill(in); fill(in + 256);
    for (int b = 0; b < 3; b++)
        block(in + b, o + b * NT, g + 8 * b);
#endif
    for (int i = 0; i < 3 * (int)NT; i++)
        printf("%%d %%x\\n", i, o[i]);
    for (int i = 0; i < 24; i++)
        printf("g%%d %%x\\n", i, g[i]);
}
''' % (whole, '\n'.join(k.device), k.threads, MODEL, ', '.join('%s[NT]' % v for v in k.all_vars), '\n'.join(k.host))
