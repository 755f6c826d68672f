# SPDX-License-Identifier: Apache-2.0
"""What is accepted: every instruction of forms.tsv (opcode forms found in public PTX, with operands)
against the verdict ptxas gave. forms.py CHECK_LINES [--record FORMS]: with --record and ptxas on the
path, FORMS (one opcode form a line) are given operands and verdicts and written to forms.tsv."""
import os
import re
import subprocess
import sys
import tempfile

import ptxdef

HERE = os.path.dirname(os.path.abspath(__file__))
LIST = os.path.join(HERE, 'forms.tsv')
TARGETS = [('sm_120a', '9.0'), ('sm_90a', '9.0'), ('sm_75', '9.0')]


def prologue(target='sm_75', version='9.0'):
    return ('.version %s\n.target %s\n.address_size 64\n.visible .entry k()\n{\n%s'
            % (version, target, ptxdef.DECLS))


def with_operands(rows, form):
    """The form with registers for operands; None where they cannot be made up."""
    found = [m for m in ptxdef.match(rows, form)]
    if not found:
        kind = ptxdef.REG_OF.get(form.split('.')[-1], '%r')
        return '%s %s1, %s2' % (form, kind, kind)
    row, env, mods = found[0]
    if row.id == 'bra':
        return form + ' L'
    if not row.specs:
        return form
    operands = ptxdef.operands_text(row, env, mods)
    return operands and '%s %s' % (form, operands)


def ptxas_rejects(lines, target, version):
    """Indices of the lines that ptxas rejects. Errors of syntax hide others, so it runs until none
    is new."""
    left, bad = list(range(len(lines))), set()
    while True:
        text = prologue(target, version)
        first = text.count('\n') + 2
        with tempfile.NamedTemporaryFile('w', suffix='.ptx') as f:
            f.write(text + '\n' + '\n'.join(lines[i] + ';' for i in left) + '\nL: ret;\n}\n')
            f.flush()
            r = subprocess.run(['ptxas', '-arch=' + target, '-o', '/dev/null', f.name],
                               capture_output=True, text=True)
        new = {left[int(n) - first] for n in re.findall(r'line (\d+); (?:error|fatal)', r.stderr)
               if 0 <= int(n) - first < len(left)}
        if not new:
            return bad
        bad |= new
        left = [i for i in left if i not in bad]


def record(path):
    rows = ptxdef.load_rows()
    with open(path) as f:
        forms = [w for w in (line.split('\t')[0].strip() for line in f)
                 if re.fullmatch(r'[a-z][a-z0-9]*(\.[\w:]+)*', w)]
    lines = [t for t in (with_operands(rows, w) for w in forms) if t]
    rejected = set(range(len(lines)))
    for target, version in TARGETS:
        left = sorted(rejected)
        rejected = {left[k] for k in ptxas_rejects([lines[i] for i in left], target, version)}
    with open(LIST, 'w') as f:
        f.write('# verdict of ptxas (+ accepted for some target, - rejected), instruction; ~ accepted '
                'here though rejected there\n')
        for i, line in enumerate(lines):
            f.write('%s\t%s\n' % ('-' if i in rejected else '+', line))


def main():
    if '--record' in sys.argv:
        record(sys.argv[-1])
    with open(LIST) as f:
        wanted = [line.rstrip('\n').split('\t') for line in f if line[0] != '#']
    with tempfile.NamedTemporaryFile('w') as p, tempfile.NamedTemporaryFile('w') as q:
        p.write(prologue())
        q.write('\n'.join(w[1] for w in wanted) + '\n')
        p.flush()
        q.flush()
        out = subprocess.run([sys.argv[1], p.name, q.name], capture_output=True, text=True,
                             check=True).stdout.splitlines()
    failed = 0
    for (verdict, line), got in zip(wanted, out):
        if (got[0] == '+') != (verdict in '+~'):
            failed += 1
            print('%s: should be %s: %s' % (line, verdict, got))
    print('%d forms, %d failed' % (len(wanted), failed))
    sys.exit(1 if failed or len(out) != len(wanted) else 0)


main()
