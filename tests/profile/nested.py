# SPDX-License-Identifier: Apache-2.0
"""Launches from kernels (nested.cu) are profiled as launches of their own, in order, for any number of workers. nested.py HALFWARP NVCC"""
import csv
import io
import os
import subprocess
import sys
import tempfile

HALFWARP, NVCC = sys.argv[1:3]
# As they begin: each branch, then what it launched; the tails last. Two warps run each leaf's atomic.
WANT = [('root', 0)] + [('branch', 0), ('leaf', 2)] * 6 + [('leaf', 2)] * 2 + [('clustered', 0)]
bad = 0


def same(what, got, want):
    global bad
    if got != want:
        bad += 1
        print('%s: %r, not %r' % (what, got, want))


def profile(program, *options):
    r = subprocess.run([HALFWARP, 'profile', *options, program], stdout=subprocess.PIPE, text=True, check=False)
    same('status', r.returncode, 0)
    return r.stdout


def launches(program, *options, metric='smsp__inst_executed_op_global_red_atom.sum'):
    out = profile(program, '--csv', '--metrics', metric, *options)
    rows = csv.DictReader(io.StringIO(out[out.index('"ID"'):]))
    return [(r['Kernel Name'].split('(')[0], float(r['Metric Value'])) for r in rows]


def main():
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.join(folder, 'nested')
        source = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'nested.cu')
        subprocess.run([NVCC, '-rdc=true', '-arch=sm_90', '-o', program, source], check=True)
        for workers in ('1', '2', '7'):
            same('launches, %s workers' % workers, launches(program, '-j', workers), WANT)
        same('chosen', launches(program, '-k', 'leaf', '--launch-skip', '6', '--launch-count', '3'), WANT[-3:-1])
        for metric, want in (('smsp__inst_executed_op_shared_st.sum', 0), ('l1tex__t_requests_pipe_lsu_mem_global_op_st.sum', 8)):
            same(metric, launches(program, '-k', 'clustered', metric=metric), [('clustered', want)])
        same('equal reports', profile(program, '--json', '-j', '1').replace('"workers": 1', ''),
             profile(program, '--json', '-j', '7').replace('"workers": 7', ''))
    return bad


sys.exit(main() > 0)
