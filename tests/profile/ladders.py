# SPDX-License-Identifier: Apache-2.0
"""The ladders of examples/ (transpose, reduction), built by nvcc and profiled: counters in closed form, and the commands of
docs/profile.md. ladders.py HALFWARP NVCC ROOT"""
import csv
import io
import os
import subprocess
import sys
import tempfile

HALFWARP, NVCC, ROOT = sys.argv[1:4]
LD, ST, SHARED = 'hw__global_ld_transactions', 'hw__global_st_transactions', 'l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_'
DIVERGENT, BARRIERS, PASSES = 'smsp__sass_branch_targets_threads_divergent.sum', 'hw__barriers', 'l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum'
METRICS = [LD, ST, SHARED + 'ld.sum', SHARED + 'st.sum', DIVERGENT, BARRIERS, PASSES]
bad = 0


def build(folder, name):
    program = os.path.join(folder, name)
    subprocess.run([NVCC, '-lineinfo', '-o', program, os.path.join(ROOT, 'examples', name + '.cu')], check=True)
    return program


def profile(program, device):
    out = subprocess.run([HALFWARP, 'profile', '-d', device, '--csv', '--metrics', ','.join(METRICS), program],
                         stdout=subprocess.PIPE, text=True, check=True).stdout
    out = out[out.index('"ID"'):]  # what the program says comes before
    return {(r['Kernel Name'], r['Metric Name']): int(r['Metric Value']) for r in csv.DictReader(io.StringIO(out))}


def same(found, kernel, wanted):
    global bad
    for metric, want in wanted.items():
        if found[kernel, metric] != want:
            bad += 1
            print('%s: %s is %d, not %d' % (kernel, metric, found[kernel, metric], want))


def sectors(first, count):
    """32-byte sectors under `count` floats from byte `first`."""
    return (first + 4 * count + 31) // 32 - first // 32


def rows_of(height, width):
    """Sectors of all rows of a matrix, read by warps of 32 columns."""
    return sum(sectors(4 * (y * width + x), min(32, width - x)) for y in range(height) for x in range(0, width, 32))


def transpose(found):
    width, height = 500, 300
    loads, stores = rows_of(height, width), rows_of(width, height)
    columns = [min(32, height - y) for y in range(0, height, 32)]  # lanes of a warp that reads a tile's column
    same(found, 'naive', {LD: loads, ST: width * height, PASSES: 0})  # each lane stores to a sector of its own
    same(found, 'tiled<0>', {LD: loads, ST: stores, PASSES: width * sum(columns), SHARED + 'ld.sum': width * (sum(columns) - len(columns))})
    same(found, 'tiled<1>', {LD: loads, ST: stores, PASSES: width * len(columns), SHARED + 'ld.sum': 0, SHARED + 'st.sum': 0})


def parting(steps):
    """Warps of a block of 256 whose lanes part, over the conditions of a loop's steps, and at the final `t == 0`."""
    warps = [range(w, w + 32) for w in range(0, 256, 32)]
    return sum(len({bool(step(t)) for t in w}) == 2 for step in steps + [lambda t: t == 0] for w in warps)


def conflicts(strides):
    """Passes beyond the ideal of one access a step: threads t < 256 / stride at word stride * t."""
    extra = 0
    for stride in strides:
        words = list(range(0, 256, stride))
        for w in range(0, len(words), 32):
            banks = [word % 32 for word in words[w:w + 32]]
            extra += max(banks.count(b) for b in banks) - 1
    return extra


def reduction(found):
    doubling, halving = [1 << i for i in range(8)], [128 >> i for i in range(8)]
    blocks = 256
    same(found, 'interleaved', {DIVERGENT: blocks * parting([lambda t, s=s: t % (2 * s) == 0 for s in doubling]), SHARED + 'ld.sum': 0,
                                BARRIERS: blocks * 8 * 9})
    extra = conflicts([2 * s for s in doubling])
    same(found, 'strided', {DIVERGENT: blocks * parting([lambda t, s=s: 2 * s * t < 256 for s in doubling]),
                            SHARED + 'ld.sum': blocks * 2 * extra, SHARED + 'st.sum': blocks * extra})
    tree = parting([lambda t, s=s: t < s for s in halving])
    same(found, 'sequential', {DIVERGENT: blocks * tree, SHARED + 'ld.sum': 0, SHARED + 'st.sum': 0, BARRIERS: blocks * 8 * 9})
    same(found, 'first_add', {DIVERGENT: blocks // 2 * tree, BARRIERS: blocks // 2 * 8 * 9})
    same(found, 'last_warp', {DIVERGENT: blocks // 2 * parting([]), BARRIERS: blocks // 2 * 8 * 4})


def beyond(program):
    """What a device lacks is said, and runs all the same."""
    global bad
    out = subprocess.run([HALFWARP, 'profile', '-d', 'geforce-8800-gtx', '-k', 'last_warp', program], stdout=subprocess.PIPE, text=True, check=True).stdout
    if 'beyond this device: operations between lanes' not in out:
        bad += 1
        print('shuffles on a GeForce 8800: %s' % out)


def main():
    with tempfile.TemporaryDirectory() as folder:
        transpose(profile(build(folder, 'transpose'), 'v100'))
        reduction(profile(build(folder, 'reduction_ladder'), 'v100'))
        beyond(os.path.join(folder, 'reduction_ladder'))
        docs = subprocess.run([sys.executable, os.path.join(ROOT, 'tests/cli/console.py'), HALFWARP, os.path.join(ROOT, 'docs/profile.md')],
                              env=dict(os.environ, CONSOLE_PATH=folder), check=False)
    print('%d counters differ' % bad)
    return bad != 0 or docs.returncode


if __name__ == '__main__':
    sys.exit(main())
