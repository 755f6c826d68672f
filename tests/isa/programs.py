# SPDX-License-Identifier: Apache-2.0
"""Runs the PTX programs of programs/: programs.py RUN_PTX [code]. Each says in its comments what its
kernel k is given and what it must store: "// in:" and "// want:" are a type and a Python list."""
import os
import re
import struct
import subprocess
import sys

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'programs')
FORMATS = {'u8': 'B', 'u16': 'H', 'u32': 'I', 'u64': 'Q', 'f16': 'e', 'f32': 'f', 'f64': 'd'}
# for the matrix program: small integers, exact in every format
NAMES = {'A': [[(i * 3 + k) % 5 - 2 for k in range(16)] for i in range(16)],
         'bits': lambda v: struct.unpack('<I', struct.pack('<f', v))[0]}


def values(text):
    kind, expression = text.split(' ', 1)
    # an expression of this repository's own test files
    return FORMATS[kind], eval(expression, dict(NAMES))


def run(runner, path):
    with open(path) as f:
        head = dict(re.findall(r'^// (lanes|in|want): (.*)$', f.read(), re.M))
    code, given = values(head['in'])
    code_want, want = values(head['want'])
    out = struct.calcsize(code_want) * len(want)
    r = subprocess.run([runner, path, 'k', head['lanes'],
                        struct.pack('<%d%s' % (len(given), code), *given).hex(), str(out)],
                       capture_output=True, text=True)
    try:
        got = list(struct.unpack('<%d%s' % (len(want), code_want), bytes.fromhex(r.stdout.strip())))
    except (ValueError, struct.error):
        return r.stdout + r.stderr
    wrong = [k for k in range(len(want)) if got[k] != want[k]]
    if wrong:
        k = wrong[0]
        return '%d values wrong; value %d is %#x, should be %#x' % (len(wrong), k, got[k], want[k])
    return None


def main():
    failed = 0
    names = sorted(os.listdir(HERE))
    for name in names:
        path = os.path.join(HERE, name)
        with open(path) as f:
            code_only = 'code only' in f.read()
        if code_only and 'code' not in sys.argv[2:]:
            continue
        problem = run(sys.argv[1], path)
        if problem:
            failed += 1
            print('%s: %s' % (name, problem))
    print('%d programs, %d failed' % (len(names), failed))
    sys.exit(failed != 0)


main()
