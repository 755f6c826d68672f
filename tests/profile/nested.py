# SPDX-License-Identifier: Apache-2.0
"""Launches from kernels (nested.cu) are profiled as launches of their own, in order, for any number of workers. nested.py HALFWARP NVCC"""
import csv
import io
import os
import subprocess
import sys
import tempfile

HALFWARP, NVCC = sys.argv[1:3]
# The host's launches, then those of kernels as they begin: each branch, then what it launched; the tails last. Two warps run each
# leaf's atomic.
TREE = [('branch', 0), ('leaf', 2)] * 6 + [('leaf', 2)] * 2
WANT = [('root', 0), ('clustered', 0)] + TREE
AT_ONCE = ([('root', 0)] * 4 + [('leaf', 1)]) * 3 + TREE * 12
bad = 0


def same(what, got, want):
    global bad
    if got != want:
        bad += 1
        print('%s: %r, not %r' % (what, got, want))


def profile(program, *options):
    r = subprocess.run([HALFWARP, 'profile', *options, *program], stdout=subprocess.PIPE, text=True, check=False)
    same('status', r.returncode, 0)
    return r.stdout


def launches(program, *options, metric='smsp__inst_executed_op_global_red_atom.sum'):
    out = profile(program, '--csv', '--metrics', metric, *options)
    rows = list(csv.DictReader(io.StringIO(out[out.index('"ID"'):])))
    same('numbers', [int(r['ID']) for r in rows], list(range(len(rows))))
    return [(r['Kernel Name'].split('(')[0], float(r['Metric Value'])) for r in rows]


def main():
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.join(folder, 'nested')
        source = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'nested.cu')
        subprocess.run([NVCC, '-rdc=true', '-arch=sm_90', '-o', program, source], check=True)
        for workers in ('1', '2', '7'):
            same('launches, %s workers' % workers, launches([program], '-j', workers), WANT)
            same('at once, %s workers' % workers, launches([program, 'at once'], '-j', workers), AT_ONCE)
        # Of trees whose root does not match, by the number in the tree; else the roots are chosen.
        chosen = ['--launch-skip', '6', '--launch-count', '3']
        same('chosen', launches([program], '-k', 'leaf', *chosen), TREE[-2:])
        same('chosen at once', launches([program, 'at once'], '-k', 'leaf', *chosen), TREE[-2:] * 12)
        same('chosen roots', launches([program, 'at once'], '-k', 'root|branch', *chosen), AT_ONCE[:1] * 3 + TREE[:1] * 18)
        for metric, want in (('smsp__inst_executed_op_shared_st.sum', 0), ('l1tex__t_requests_pipe_lsu_mem_global_op_st.sum', 8)):
            same(metric, launches([program], '-k', 'clustered', metric=metric), [('clustered', want)])
        for arguments in [], ['at once']:
            texts = {profile([program] + arguments, '--json', '-j', w).replace('"workers": ' + w, '') for w in ('1', '2', '4', '7') * 2}
            same('reports', len(texts), 1)
    return bad


sys.exit(main() > 0)
