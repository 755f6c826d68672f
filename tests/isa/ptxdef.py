# SPDX-License-Identifier: Apache-2.0
"""Reads src/ptx/ptx.def and its companions: rows, type sets, modifier classes, and PTX text for them."""
import itertools
import os
import re

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', 'src', 'ptx')
BITS = {'pred': 1, 'b128': 128, 'f16': 16, 'bf16': 16, 'f32': 32, 'tf32': 32, 'f64': 64,
        'f16x2': 32, 'f32x2': 64, 'bf16x2': 32, 'u16x2': 32, 's16x2': 32, 'e4m3x2': 16, 'e5m2x2': 16,
        'e4m3': 8, 'e5m2': 8, 's4': 4, 'u4': 4, 's2': 2, 'u2': 2, 'b1': 1, 'e2m3x2': 16, 'e3m2x2': 16, 'e2m1x2': 8, 'ue8m0x2': 16,
        'e4m3x4': 32, 'e5m2x4': 32, 'e2m3x4': 32, 'e3m2x4': 32, 'e2m1x4': 16, 'e3m2': 8, 'e2m3': 8, 'e2m1': 4, 'ue8m0': 8, 'ue4m3': 8}
for _n in (8, 16, 32, 64):
    for _c in 'bus':
        BITS[_c + str(_n)] = _n


def split_macro(text, name):
    """The argument lists of every NAME(...) in text, split at top-level commas."""
    out = []
    for m in re.finditer(r'^' + name + r'\(', text, re.M):
        args, depth, start, k, quoted = [], 0, m.end(), m.end(), False
        while True:
            c = text[k]
            if c == '"':
                quoted = not quoted
            elif not quoted and c in '([{':
                depth += 1
            elif not quoted and c in ')]}' and depth:
                depth -= 1
            elif not quoted and c == ')':
                args.append(text[start:k].strip())
                break
            elif not quoted and c == ',' and depth == 0:
                args.append(text[start:k].strip())
                start = k + 1
            k += 1
        out.append([a[1:-1] if a.startswith('"') else a for a in args])
    return out


def read(name):
    with open(os.path.join(ROOT, name)) as f:
        return f.read()


def load_sets():
    text = read('sets.def')
    return ({a: b.split() for a, b in split_macro(text, 'PTX_SET')},
            {a: b.split() for a, b in split_macro(text, 'PTX_CLASS')})


SETS, CLASSES = load_sets()


class Slot:
    def __init__(self, words, optional, head):
        self.words, self.optional, self.head = words, optional, head


class Spec:
    """One operand; see ptx.def's head for the notation."""

    def __init__(self, text, dest):
        self.dest = dest
        self.kind = {'[]': 'address', 'label': 'label', '...': 'rest', 'mov': 'mov',
                     'cpasync?': 'cpasync'}.get(text, 'value')
        self.optional = text == 'cpasync?'
        self.pair = None
        self.wider = self.vector = self.immediate = False
        self.range = None
        if self.kind != 'value':
            return
        self.range = re.search(r'<(.*)>', text)
        m = re.match(r'([A-Za-z0-9]+)([-+*#@&?]*)(\|\|?\w+)?$', re.sub('<.*>', '', text))
        self.base, marks, pair = m.groups()
        self.wider, self.vector, self.immediate = '+' in marks, '*' in marks, '#' in marks
        self.optional = '?' in marks
        if pair:
            self.pair = pair.lstrip('|')
            self.pair_required = pair.startswith('||')


class Row:
    def __init__(self, args):
        (self.id, self.form, self.operands, self.types, since, target, self.unit, self.lane,
         self.warp) = args
        self.since, self.target = int(since), int(target)
        self.supported = 'w_unsupported' not in self.warp
        self.any_form = self.form.endswith('...')
        self.parse_form()
        self.parse_types()
        dest, self.specs = '=' in self.operands, []
        for w in self.operands.split():
            if w == '=':
                dest = False
            else:
                self.specs.append(Spec(w, dest))

    def parse_form(self):
        m = re.match(r'[a-z0-9]+', self.form)
        self.opcode, rest = m.group(0), self.form[m.end():].replace('...', '')
        self.elements = []  # Slot or ('type', variable or literal, optional)
        optional = False
        for token in re.findall(r'\{|\}|\.\([^)]*\)|\.[^.{}]+', rest):
            if token in '{}':
                optional = token == '{'
                continue
            word = token[1:]
            head = word.endswith('!')
            word = word.rstrip('!')
            if word in BITS or re.fullmatch('[TUV]', word):
                self.elements.append(('type', word, optional))
            elif word.startswith('('):
                self.elements.append(Slot(word[1:-1].split('|'), optional, head))
            else:
                self.elements.append(Slot(CLASSES.get(word, [word]), optional, head))

    def parse_types(self):
        self.vars, self.rule, self.before = {}, None, None
        current = None
        for w in self.types.split():
            if w.startswith('rel:'):
                self.rule = w[4:]
            elif '<' in w:
                self.before = w
            else:
                m = re.match(r'([TUV])=(.*)', w)
                if m:
                    current, w = m.groups()
                self.vars.setdefault(current, []).extend(SETS.get(w, [w]))

    def type_order(self):
        return [e[1] for e in self.elements if isinstance(e, tuple)]

    def variants(self):
        """Every combination of types: dicts variable -> type."""
        names = [n for n in self.type_order() if n in self.vars]
        for combo in itertools.product(*(self.vars[n] for n in names)):
            env = dict(zip(names, combo))
            order = [env.get(n, n) for n in self.type_order()]
            if self.rule and not {
                    'eq': order[0] == order[1], 'ne': order[0] != order[1],
                    'gt': BITS[order[0]] > BITS[order[1]],
                    'lt': BITS[order[0]] < BITS[order[1]]}[self.rule]:
                continue
            yield env

    def mod_choices(self, limit=64):
        """Lists of modifiers: every value of each slot, optional ones also absent; not the product
        where that passes the limit, but each slot varied alone."""
        slots = [e for e in self.elements if isinstance(e, Slot)]
        ranges = [([None] if s.optional else []) + s.words for s in slots]
        count = 1
        for r in ranges:
            count *= len(r)
        if count <= limit:
            return [list(c) for c in itertools.product(*ranges)]
        base = [r[0] for r in ranges]
        out = [base]
        for k, r in enumerate(ranges):
            for v in r[1:]:
                out.append(base[:k] + [v] + base[k + 1:])
        return out

    def spelled(self, env, mods):
        text, mods = self.opcode, iter(mods)
        for e in self.elements:
            w = env.get(e[1], e[1]) if isinstance(e, tuple) else next(mods)
            if w:
                text += '.' + w
        return text

    def first_type(self, env):
        order = self.type_order()
        return env.get(order[0], order[0]) if order else None

    def spec_type(self, spec, env):
        if spec.base in env:
            return env[spec.base]
        t = self.first_type(env)
        if spec.base == 'W':
            return {'u16': 'u32', 's16': 's32', 'u32': 'u64', 's32': 's64'}[t]
        if spec.base == 'X':
            return 'b%d' % BITS[t]
        return spec.base


def load_rows():
    return [Row(a) for a in split_macro(read('ptx.def'), 'ROW')]


def match(rows, text):
    """Rows whose form the opcode text is, with types and modifiers found: (row, env, mods)."""
    words = text.split('.')
    for row in rows:
        if row.opcode != words[0]:
            continue
        got = match_row(row, words[1:])
        if got is not None:
            yield (row,) + got


def match_row(row, words):
    slots = [e for e in row.elements if isinstance(e, Slot)]
    used, types, heads = {}, [], [s for s in slots if s.head]
    for k, w in enumerate(words):
        if k < len(heads):
            if w not in heads[k].words:
                return None
            used[id(heads[k])] = w
            continue
        if w in BITS:
            types.append(w)
            continue
        free = [s for s in slots if id(s) not in used and not s.head and w in s.words]
        if not free:
            if row.any_form:
                continue
            return None
        used[id(free[0])] = w
    if len(words) < len(heads) or any(not s.optional and id(s) not in used for s in slots):
        return None
    mods = [used.get(id(s)) for s in slots]
    if row.any_form:
        return {}, mods
    order = [e for e in row.elements if isinstance(e, tuple)]
    if len(order) != len(types):
        return None
    env = {}
    for (_, name, _), t in zip(order, types):
        if t not in row.vars.get(name, [name]):
            return None
        env[name] = t
    if not any(v == {n: t for n, t in env.items() if n in row.vars} for v in row.variants()):
        return None
    return {n: t for n, t in env.items() if n in row.vars}, mods


REG_OF = {'pred': '%p', 'b128': '%q', 'f16': '%fh', 'bf16': '%h', 'f16x2': '%fx', 'bf16x2': '%b',
          'u16x2': '%b', 's16x2': '%b', 'e4m3x2': '%h', 'e5m2x2': '%h', 'tf32': '%b', 'f32': '%f',
          'f64': '%fd', 'f32x2': '%bd', 'b8': '%bb', 'u8': '%ub', 's8': '%sb', 'b16': '%h', 'u16': '%rs',
          's16': '%ss', 'b32': '%b', 'u32': '%r', 's32': '%s', 'b64': '%bd', 'u64': '%rd',
          's64': '%sd'}
DECLS = '\n'.join('.reg .%s %s<20>;' % (t, r) for t, r in
                  [('pred', '%p'), ('b128', '%q'), ('f16', '%fh'), ('f16x2', '%fx'), ('f32', '%f'),
                   ('f64', '%fd'), ('b8', '%bb'), ('u8', '%ub'), ('s8', '%sb'), ('b16', '%h'),
                   ('u16', '%rs'), ('s16', '%ss'), ('b32', '%b'), ('u32', '%r'), ('s32', '%s'),
                   ('b64', '%bd'), ('u64', '%rd'), ('s64', '%sd')])


def operand_text(row, spec, env, mods, n):
    """A plausible operand: registers numbered from n."""
    if spec.kind == 'address':
        return '[%rd19]'
    if spec.kind == 'label':
        return 'L'
    if spec.kind == 'cpasync':
        return None
    t = row.spec_type(spec, env)
    if spec.immediate:
        return re.split('[-/]', spec.range[1])[0] if spec.range else '16'
    if spec.pair and (spec.pair_required):
        return '%s%d|%s%d' % (REG_OF[t], n, REG_OF[spec.pair], n + 1)
    vec = {'v2': 2, 'v4': 4, 'v8': 8}
    count = next((vec[m] for m in mods if m in vec), 1)
    if spec.vector and count > 1:
        return '{' + ', '.join('%s%d' % (REG_OF[t], (n * 4 + k) % 19) for k in range(count)) + '}'
    return '%s%d' % (REG_OF[t], n)


def operands_text(row, env, mods):
    if row.operands == 'mov':
        t = row.first_type(env)
        vec = {'v2': 2, 'v4': 4, 'v8': 8}
        count = next((vec[m] for m in mods if m in vec), 1)
        if count > 1:
            side = lambda b: '{' + ', '.join('%s%d' % (REG_OF[t], b + k) for k in range(count)) + '}'
            return side(0) + ', ' + side(9)
        return '%s1, %s2' % (REG_OF[t], REG_OF[t])
    if row.any_form or any(s.kind == 'rest' for s in row.specs):
        return None
    out = []
    policy = 'L2::cache_hint' in mods
    for k, s in enumerate(row.specs):
        if s.optional and not (policy and k == len(row.specs) - 1):
            continue
        out.append(operand_text(row, s, env, mods, k + 1))
    return ', '.join(out)
