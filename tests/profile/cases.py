# SPDX-License-Identifier: Apache-2.0
"""Cases with known right values through `halfwarp profile`: published counter readings and what follows from rules.
cases.py HALFWARP"""
import csv
import io
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
HALFWARP = sys.argv[1]
WIDE = [16 * lane for lane in range(32)]
bad = 0


def strided(words, size=4, base=0):
    return [base + 4 * words * lane for lane in range(32)]


def pattern(space, addresses, size=4, **more):
    return dict({'space': space, 'op': 'plain' if space == 'global' else 'load', 'size': size, 'address': addresses}, **more)


# name, pattern, devices, {metric: value}
PER_REQUEST_LD = 'hw__shared_ld_wavefronts_per_request'
CONFLICTS = 'l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum'
SECTORS = 'l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_ld.ratio'
CAMPING = 'hw__partition_camping'
TRANSACTIONS, MOVED = 'hw__global_ld_transactions', 'hw__global_ld_bytes_moved'
NEW = ['gtx-980', 'v100', 'h100']
CASES = [
    # out[idx] = shm[idx * 4], grid 2, block 32: Nsight Compute's reading (NVIDIA-developer-blog/code-samples #48).
    ('stride of 4 words', pattern('shared', strided(4), grid=2), ['v100', 'h100'], {PER_REQUEST_LD: 4, CONFLICTS: 6}),
    # Compute capability 5 and later. NVIDIA forum 359822 for the second; triton-lang/triton #8200 for one address.
    ('float4, linear', pattern('shared', WIDE, 16), NEW, {PER_REQUEST_LD: 4, CONFLICTS: 0}),
    ('float4, 128 bytes apart', pattern('shared', [128 * lane for lane in range(32)], 16), NEW, {PER_REQUEST_LD: 32, CONFLICTS: 28}),
    ('float2, linear', pattern('shared', [8 * lane for lane in range(32)], 8), NEW, {PER_REQUEST_LD: 2, CONFLICTS: 0}),
    ('one address', pattern('shared', [0] * 32), NEW, {PER_REQUEST_LD: 1, CONFLICTS: 0}),
    ('column of a 32x33 tile', pattern('shared', strided(33)), NEW, {CONFLICTS: 0}),
    ('column of a 32x32 tile', pattern('shared', strided(32)), NEW, {CONFLICTS: 31}),
    # Banks of eight bytes on Kepler (gpumembench #1).
    ('Kepler, float2, linear', pattern('shared', [8 * lane for lane in range(32)], 8, banks=8), ['k40'], {PER_REQUEST_LD: 1}),
    ('Kepler, float4, linear', pattern('shared', WIDE, 16, banks=8), ['k40'], {PER_REQUEST_LD: 2}),
    # 16 banks a half-warp: two half-warps, each 2-way and 16-way.
    ('G80, stride of 2 words', pattern('shared', strided(2)), ['geforce-8800-gtx'], {PER_REQUEST_LD: 4}),
    ('G80, stride of 16 words', pattern('shared', strided(16)), ['geforce-8800-gtx'], {PER_REQUEST_LD: 32}),
    # Coalescing of 32-bit loads: Nsight Compute's definitions; CUDA 4.2's profiler documentation for 1.x.
    ('linear', pattern('global', strided(1)), ['v100', 'h100'], {SECTORS: 4}),
    ('shifted by a float', pattern('global', strided(1, base=4)), ['v100', 'h100'], {SECTORS: 5}),
    ('stride of 2 floats', pattern('global', strided(2)), ['v100', 'h100'], {SECTORS: 8}),
    ('stride of 8 floats', pattern('global', strided(8)), ['v100', 'h100'], {SECTORS: 32}),
    ('stride of 100 floats', pattern('global', strided(100)), ['v100', 'h100'], {SECTORS: 32}),
    ('1.0, linear', pattern('global', strided(1)), ['geforce-8800-gtx'], {TRANSACTIONS: 2, MOVED: 128}),
    ('1.0, shifted by a word', pattern('global', strided(1, base=4)), ['geforce-8800-gtx'], {TRANSACTIONS: 32, MOVED: 1024}),
    # 8 partitions of 256 bytes: rows of 2048 bytes all start in one (NVIDIA, "Optimizing Matrix Transpose in CUDA"), rows of 256 more
    # go round them; 6 of the 8800.
    ('partitions, rows of 2048 bytes', pattern('global', strided(512)), ['gtx-280'], {TRANSACTIONS: 32, CAMPING: 8}),
    ('partitions, rows of 2304 bytes', pattern('global', strided(576)), ['gtx-280'], {TRANSACTIONS: 32, CAMPING: 1}),
    ('6 partitions, rows of 1536 bytes', pattern('global', strided(384)), ['geforce-8800-gtx'], {TRANSACTIONS: 32, CAMPING: 5.33}),  # 32 / 6
    ('6 partitions, rows of 1792 bytes', pattern('global', strided(448)), ['geforce-8800-gtx'], {TRANSACTIONS: 32, CAMPING: 1}),
    # The first half-warp lies inside a segment of 128 bytes, the second crosses into the next: 64 + 32.
    ('1.3, shifted by a word', pattern('global', strided(1, base=4)), ['gtx-280'], {TRANSACTIONS: 3, MOVED: 128 + 64 + 32}),
]
DEVICES = ['k40', 'geforce-8800-gtx', 'gtx-280', 'gtx-980', 'v100', 'h100']  # the first runs it


def app(folder):
    path = os.path.join(folder, 'patterns.json')
    with open(path, 'w', encoding='utf-8') as f:
        json.dump([case[1] for case in CASES], f)
    return [sys.executable, os.path.join(HERE, 'patterns_app.py'), path]


def run(arguments, program, check=True):
    return subprocess.run([HALFWARP, 'profile'] + arguments + program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          check=check)


def same(what, got, want):
    global bad
    if got != want:
        bad += 1
        print('%s: %r, not %r' % (what, got, want))


def values(folder):
    metrics = sorted({m for case in CASES for m in case[3]})
    out = run(['--csv', '--metrics', ','.join(metrics), '-d', ','.join(DEVICES)], app(folder)).stdout
    rows = list(csv.DictReader(io.StringIO(out)))
    same('rows', len(rows), len(CASES) * len(DEVICES) * len(metrics))
    found = {(int(r['ID']), r['Device'], r['Metric Name']): r['Metric Value'] for r in rows}
    for number, (name, _, devices, want) in enumerate(CASES):
        for device in devices:
            for metric, value in want.items():
                same('%s on %s: %s' % (name, device, metric), float(found[number, device, metric]), value)


def caches(folder):
    """Ten times the same aligned 128 bytes, after 32 words of constant memory. First-level caches keep them after the first
    access; constant lines of 64 bytes are fetched twice; without caches every transaction goes to device memory."""
    path = os.path.join(folder, 'caches.json')
    with open(path, 'w', encoding='utf-8') as f:
        json.dump([pattern('global', strided(1), repeat=10)], f)
    metrics = ['tex_cache_hit_rate', 'hw__constant_hit_rate', 'l2_tex_read_transactions', 'dram_read_transactions']
    devices = ['h100', 'v100', 'gtx-480', 'geforce-8800-gtx']
    out = run(['--caches', '--csv', '--metrics', ','.join(metrics), '-d', ','.join(devices)], app(folder)[:-1] + [path]).stdout
    values_ = [float(r['Metric Value'].replace('n/a', '-1')) for r in csv.DictReader(io.StringIO(out))]
    constant = 100 * 30 / 32
    want = {'h100': [90, constant, 8, 8], 'v100': [90, constant, 8, 8], 'gtx-480': [90, constant, 8, 8],
            'geforce-8800-gtx': [-1, constant, 0, 44]}
    for i, device in enumerate(devices):
        same('caches of ' + device, values_[4 * i:4 * i + 4], want[device])


def determinism(folder):
    """The same file for each run and any number of workers, simulated caches included."""
    texts = []
    for workers in '1', '1', '4', '16':
        path = os.path.join(folder, 'out.json')
        run(['--caches', '-o', path, '-j', workers, '-d', 'v100,geforce-8800-gtx'], app(folder))
        with open(path, encoding='utf-8') as f:
            texts.append(f.read())
    for other in texts[1:]:
        same('the same profile', other == texts[0], True)
    return os.path.join(folder, 'out.json')


def reports(path):
    """Each form of the report of a file; what is wrong is said in one line."""
    for form in '--json', '--csv', '--html', '--source':
        out = subprocess.run([HALFWARP, 'report', form, path], stdout=subprocess.PIPE, text=True, check=True).stdout
        same('a report ' + form, len(out) > 1000, True)
        if form == '--json':
            same('schema', json.loads(out)['halfwarp_profile'], 2)
        if form == '--html':
            same('no network', 'http' in out or 'src=' in out, False)
    out = subprocess.run([HALFWARP, 'report', path, path], stdout=subprocess.PIPE, text=True, check=True).stdout
    same('a comparison', 'Change' in out and '%' in out, True)
    for wrong in ['--metrics', 'sm__cycles_active.avg'], ['--sections', 'Nothing'], ['--json', '--csv'], ['-k', '(']:
        got = subprocess.run([HALFWARP, 'report'] + wrong + [path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                             check=False)
        same('refused: %s' % wrong, (got.returncode, got.stderr.count('\n'), got.stdout), (2, 1, ''))


def refused_first(folder):
    """What would fail after the program is said before it runs."""
    ran = os.path.join(folder, 'ran')
    for wrong, word in (['-k', '('], 'regular expression'), (['-o', os.path.join(folder, 'no', 'x.html')], 'cannot write'), \
            (['-o', folder], 'folder'), (['--metrics', 'nothing'], 'no metric'), (['--sections', 'nothing'], 'no section'):
        got = run(wrong, ['/usr/bin/touch', ran], check=False)
        same('refused: %s' % wrong, (got.returncode, got.stderr.count('\n'), word in got.stderr, os.path.exists(ran)), (2, 1, True, False))


CRASH = '''import ctypes, os, sys
sys.argv = ['', sys.argv[1]]
sys.path.insert(0, %r)
import patterns_app
patterns_app.main()
os.kill(os.getpid(), %d) if %d else sys.exit(7)
'''


def endings(folder):
    """A program that crashes or is interrupted still gives its report; its exit status is the profiler's."""
    for signal, want in ((0, 7), (11, 139), (9, 137), (2, 130)):
        program = [sys.executable, '-c', CRASH % (HERE, signal, signal)] + app(folder)[-1:]
        got = run(['-k', 'shared'], program, check=False)
        same('exit status', got.returncode, want)
        same('report after signal %d' % signal, 'Shared Load Wavefronts' in got.stdout, True)
        same('said so', 'did not end by itself' in got.stdout, signal != 0)
    got = run([], ['/bin/false'], check=False)
    same('a program without launches', (got.returncode, got.stdout), (1, ''))
    got = run(['--launch-skip', '2', '--launch-count', '3', '--csv', '--metrics', 'inst_executed'], app(folder))
    same('launches chosen', got.stdout.count('\n'), 4)


def main():
    with tempfile.TemporaryDirectory() as folder:
        values(folder)
        caches(folder)
        reports(determinism(folder))
        endings(folder)
        refused_first(folder)
    print('%d cases, %d differ' % (len(CASES), bad))
    return bad != 0


if __name__ == '__main__':
    sys.exit(main())
