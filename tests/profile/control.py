# SPDX-License-Identifier: Apache-2.0
"""Instruction counters of generated kernels, by line and in sum, against the model of control_flow.py.
control.py HALFWARP [SEED [KERNELS]]"""
import json
import os
import subprocess
import sys
import tempfile

import control_flow as cf

HERE = os.path.dirname(os.path.abspath(__file__))
FIELDS = (('executed', 'warps'), ('threads', 'threads'), ('on', 'on'), ('branches', 'branches'), ('divergent', 'divergent'))


def by_line(kernel):
    out = {name: {} for name, _ in FIELDS}
    for site in kernel['sites']:
        line = kernel['places'][site['place']]['ptx_line']
        for name in out:
            if site.get(name):
                out[name][line] = out[name].get(line, 0) + site[name]
    return out


def totals(counts, text):
    t = {'inst': sum(counts.warps.values()), 'thread_inst': sum(counts.threads.values()), 'thread_inst_on': sum(counts.on.values()),
         'branches': sum(counts.branches.values()), 'branches_divergent': sum(counts.divergent.values())}
    for line, warps in counts.warps.items():
        words = text[line - 1].split(None, 1)
        word = words[1] if words[0].startswith('@') else text[line - 1].strip()
        group, flop = cf.GROUPS[cf.word_of(word, cf.GROUPS)], cf.FLOPS.get(cf.word_of(word, cf.FLOPS))
        more = [('inst_' + group, warps), ('thread_' + group, counts.on[line])] + ([(flop[0], flop[1] * counts.on[line])] if flop else [])
        for name, value in more + ([('barriers', warps)] if word.startswith('bar.sync') else []):
            t[name] = t.get(name, 0) + value
    return {k: v for k, v in t.items() if v}


def differences(profile, want, lines, fields):
    got, wrong = by_line(profile), []
    for field, table in fields:
        a, b = got[field], getattr(want, table)
        wrong += ['line %d, %s: %s %d, not %d' % (l, lines[l - 1].strip(), field, a.get(l, 0), b.get(l, 0))
                  for l in sorted(set(a) | set(b)) if a.get(l, 0) != b.get(l, 0)]
    a, b = profile['totals'], totals(want, lines)
    by_thread = fields == FIELDS[1:3]
    wrong += ['%s: %d, not %d' % (k, a.get(k, 0), b.get(k, 0)) for k in sorted(set(a) | set(b))
              if a.get(k, 0) != b.get(k, 0) and k not in ('blocks', 'warps', 'threads') and (k.startswith('thread_') or not by_thread)]
    return wrong


def check(halfwarp, seed, made, model, fields):
    text, kernels = made
    lines, bad = text.split('\n'), 0
    with tempfile.TemporaryDirectory() as folder:
        ptx, out = os.path.join(folder, 'k.ptx'), os.path.join(folder, 'out.json')
        with open(ptx, 'w', encoding='utf-8') as f:
            f.write(text)
        launches = [word for name, _, threads in kernels for word in (name, str(threads))]
        subprocess.run([halfwarp, 'profile', '-d', os.environ.get('CONTROL_DEVICE', 'v100'), '-o', out, sys.executable,
                        os.path.join(HERE, 'control_app.py'), ptx] + launches, check=True, stdout=subprocess.DEVNULL)
        with open(out, encoding='utf-8') as f:
            profile = {k['name']: k for k in json.load(f)['kernels']}
    for name, items, threads in kernels:
        wrong = differences(profile[name], model(items, threads), lines, fields)
        if wrong:
            bad += 1
            print('%s, seed %d, %d threads: %d differences\n  %s' % (name, seed, threads, len(wrong), '\n  '.join(wrong[:8])))
    return bad


def main():
    halfwarp, seed = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 1
    n = int(sys.argv[3]) if len(sys.argv) > 3 else 40
    bad = check(halfwarp, seed, cf.make(seed, n), cf.run_kernel, FIELDS)
    # Lanes at different depths of calls may run together or not: by threads only.
    bad += check(halfwarp, seed, cf.make_recursive(seed, n // 3), cf.run_lanes, FIELDS[1:3])
    print('%d kernels, %d wrong' % (n + n // 3, bad))
    sys.exit(bad != 0)


main()
