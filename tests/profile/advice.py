# SPDX-License-Identifier: Apache-2.0
"""What is advised for kernels that do one thing badly, and for those that do all well: nothing (advice.cu). advice.py HALFWARP NVCC"""
import json
import os
import re
import subprocess
import sys
import tempfile

HALFWARP, NVCC = sys.argv[1:3]
# Kernel: what its first advice says; None: nothing is advised. 1056 blocks of 256 threads are one wave of the H100.
WANT = {
    'structures': r'stride-8 load from global memory moves 1,024 bytes a warp in 32 transactions where 128 bytes would do',
    'shifted': r'load from global memory moves 160 bytes a warp in 5 transactions .* start each warp',
    'columns': r'stride-32 load from global memory .* 32 transactions',
    'doubles': r'16-way conflict, 30 of 32 passes avoidable; pad the row to 33 elements of 8 bytes',
    'parity': r'branch whose lanes part in 8,448 of 8,448 executions',
    'large_tile': r'limited by shared memory',
    'one_counter': r'atomic on global memory, on average 32 lanes of a warp meet at one address',
    'local_array': r'bytes go through local memory \(256 bytes a thread',
    'few_blocks': r'4 blocks leave 128 of 132 multiprocessors without work',
    'short_wave': r'1,100 blocks are 1.04 waves of 1,056: the last one leaves 96 % of its places empty, 48 % of all',
    'padded_transpose': None,
    'tiled_product': None,
    'copy': None,
}


def main():
    bad = 0
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'advice.cu')
    with tempfile.TemporaryDirectory() as folder:
        program, out = os.path.join(folder, 'advice'), os.path.join(folder, 'out.json')
        subprocess.run([NVCC, '-lineinfo', '-arch=sm_90', '-o', program, source], check=True)
        subprocess.run([HALFWARP, 'profile', '-d', 'h100', '-o', out, program], check=True, stdout=subprocess.DEVNULL)
        with open(out, encoding='utf-8') as f:
            kernels = json.load(f)['kernels']
    with open(source, encoding='utf-8') as f:
        lines = f.read().split('\n')
    for k in kernels:
        name = next(n for n in WANT if n in k['name'])
        advice = k['results'][0].get('advice') or []
        first = advice[0] if advice else None
        if WANT[name] is None and first or WANT[name] and not (first and re.search(WANT[name], first['text'])):
            bad += 1
            print('%s: %r' % (name, [a['text'] for a in advice]))
        said = re.match(r'(?:\S+ )?line (\d+):', first['text']) if first else None
        if said and name == 'one_counter' and 'atomicAdd' not in lines[int(said.group(1)) - 1]:
            bad += 1
            print('%s: line %s' % (name, said.group(1)))
    if len(kernels) != len(WANT):
        bad += 1
        print('%d kernels' % len(kernels))
    print('%d differ' % bad)
    return bad != 0


sys.exit(main())
