#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""run.py HALFWARP NVCC warps|scalars SEED COUNT [nvcc options...]: so many random programs from a seed on, each built by nvcc and by g++, must
print the same under `halfwarp run`, in both tiers, as on the host. A program that differs is kept, and named with its seed."""
import os
import pathlib
import subprocess
import sys
import tempfile

import scalars
import warps

halfwarp, nvcc, kind, seed, count, *options = sys.argv[1:]
maker = {'warps': warps, 'scalars': scalars}[kind]
# the same arithmetic: nothing contracted, signed integers wrap
HOST = ['g++', '-w', '-O1', '-fwrapv', '-ffp-contract=off']
DEVICE = [nvcc, '-w', '-fmad=false', *(options or ['-arch=sm_80'])]
TIERS = ['first', 'second']


def check(at, n):
    source = at / ('%s-%d.cu' % (kind, n))
    source.write_text(maker.program(n))
    subprocess.run([*HOST, '-x', 'c++', '-o', at / 'host', source], check=True)
    subprocess.run([*DEVICE, '-o', at / 'device', source], check=True)
    try:
        want = subprocess.run([at / 'host'], capture_output=True, timeout=60, check=True).stdout
    except subprocess.CalledProcessError:  # a division that the host traps
        return True
    for tier in TIERS:
        env = dict(os.environ, HALFWARP_TIER=tier, HALFWARP_TIMEOUT='120')
        got = subprocess.run([halfwarp, 'run', at / 'device'], env=env, capture_output=True).stdout
        if got != want:
            kept = pathlib.Path(tempfile.gettempdir()) / source.name
            kept.write_text(source.read_text())
            print('seed %d, tier %s: differs from the host; the program is kept as %s' % (n, tier, kept))
            return False
    return True


with tempfile.TemporaryDirectory() as d:
    wrong = [n for n in range(int(seed), int(seed) + int(count)) if not check(pathlib.Path(d), n)]
print('%s programs of %s, %d differ' % (count, kind, len(wrong)))
sys.exit(bool(wrong))
