# SPDX-License-Identifier: Apache-2.0
"""The JSON of occupancy, banks, coalesce and devices: keys and known values. json_output.py HALFWARP"""
import json as js
import subprocess
import sys
import os
import tempfile

HALFWARP = sys.argv[1]
bad = 0


def ask(line):
    env = {k: v for k, v in os.environ.items() if not k.startswith('HALFWARP_')}
    p = subprocess.run([HALFWARP] + line.split() + ['--json'], stdout=subprocess.PIPE, env=env, timeout=60)
    return js.loads(p.stdout)


def expect(line, **want):
    """Each keyword is a key, with __ for a level: limits__registers=6."""
    global bad
    got = ask(line)
    for key, value in want.items():
        at = got
        for part in key.split('__'):
            at = at[part]
        if at != value and not (isinstance(value, float) and abs(at - value) < 1e-4):
            print('halfwarp %s: %s is %r, not %r' % (line, key, at, value))
            bad += 1


# NVIDIA's cuda_occupancy.h (13.0; 7.0 for 1.x and 2.x)
O = 'occupancy --device '
expect(O + 'h100 --threads 256 --regs 40 --shared 16K', blocks_per_sm=6, warps_per_sm=48, occupancy=0.75,
       limiter='registers', limits__registers=6, limits__shared_memory=13, allocated__registers=10240,
       allocated__shared_memory=17408)
expect(O + 'cc-3.5 --threads 128 --regs 50', blocks_per_sm=9, warps_per_sm=36, occupancy=0.5625, allocated__registers=7168)
expect(O + 'cc-5.2 --threads 128 --regs 85', blocks_per_sm=5)
expect(O + 'cc-5.2 --threads 128 --regs 85 --partitioned on', blocks_per_sm=4)
expect(O + 'cc-8.0 --threads 224 --regs 92', blocks_per_sm=2, warps_per_sm=14)
expect(O + 'cc-8.6 --threads 256 --regs 32 --shared 32K', blocks_per_sm=3, allocated__shared_memory=33792)
expect(O + 'cc-8.6 --threads 256 --regs 32 --shared 99K --optin', blocks_per_sm=1)
expect(O + 'cc-8.6 --threads 256 --regs 32 --shared 100K --optin', blocks_per_sm=0, limiter='cannot launch')
expect(O + 'cc-8.6 --threads 256 --regs 32 --shared 99K', blocks_per_sm=0, can_launch=False)
expect(O + 'cc-9.0 --threads 384 --regs 168 --dynamic 227K --optin', blocks_per_sm=1, occupancy=0.1875)
expect(O + 'cc-9.0 --threads 32 --regs 16 --barriers 4', blocks_per_sm=16, limits__barriers=16, limiter='barriers')
expect(O + 'cc-8.0 --threads 256 --regs 32 --shared 16K --carveout 50', limits__shared_memory=5)
expect(O + 'cc-2.0 --threads 224 --regs 48', blocks_per_sm=2, warps_per_sm=14, occupancy=14 / 48)
expect(O + 'g80 --threads 256 --regs 11', blocks_per_sm=2, warps_per_sm=16)
expect(O + 'g80 --threads 96 --regs 8', blocks_per_sm=6)
expect(O + 'g80 --threads 96 --regs 8 --mode spreadsheet', blocks_per_sm=8)
# the Xbox One quick reference, and LLVM's remark
expect(O + 'xbox-one --threads 256 --vgprs 40 --sgprs 48 --lds 8K', groups_per_cu=6, waves_per_simd=6, waves_per_cu=24,
       limiter='vgpr', limits__lds=8)
expect(O + 'xbox-one --threads 64 --lds 32K', groups_per_cu=2, waves_per_cu=2, simds_used=2)
expect(O + 'gfx704 --threads 192 --mode llvm --lds 4864', waves_per_simd=10)
expect(O + 'gfx704 --threads 64 --vgprs 16 --sgprs 100 --mode llvm', waves_per_simd=5)
expect(O + 'gfx704 --threads 64 --vgprs 16 --sgprs 100', waves_per_simd=4)
# banks
B = 'banks --device '
expect(B + 'h100 --stride 32', passes=32, ideal_passes=1, conflicts=31, degree=32)
expect(B + 'h100 --stride 33', passes=1, conflicts=0, degree=1)
expect(B + 'h100 --width 16', passes=4, ideal_passes=4, conflicts=0)
expect(B + 'h100 --width 16 --stride 8', passes=32, conflicts=28)
expect(B + 'h100 --width 8', passes=2, conflicts=0)
expect(B + 'h100 --stride 0', passes=1, conflicts=0)
expect(B + 'h100 --pattern lane%2*32', passes=2, degree=2)
expect(B + 'g80 --stride 2', passes=4, ideal_passes=2, degree=2)
expect(B + 'g80 --width 8', passes=8, degree=2)
expect(B + 'cc-2.0 --width 16', passes=8, degree=2)
expect(B + 'cc-3.5 --width 8', passes=1)
expect(B + 'cc-3.5 --width 16 --bank-width 8', passes=2)
expect(B + 'xbox-one --stride 32 --store', passes=64, degree=32, ideal_passes=2)
expect(B + 'xbox-one --stride 2 --store', passes=4, degree=2)
# coalescing
C = 'coalesce --device '
expect(C + 'h100', requests=1, transactions=4, sectors=4, bytes_requested=128, bytes_moved=128, efficiency=1.0)
expect(C + 'h100 --offset 1', sectors=5, bytes_moved=160, efficiency=0.8)
expect(C + 'h100 --stride 2', sectors=8, efficiency=0.5)
expect(C + 'h100 --stride 8', sectors=32, efficiency=0.125)
expect(C + 'h100 --width 16', sectors=16)
expect(C + 'h100 --mask 0', sectors=0, transactions=0, bytes_moved=0)
expect(C + 'g80 --mask 0xffff', transactions=1, bytes_moved=64)
expect(C + 'g80 --mask 0xffff --offset 1', transactions=16, bytes_moved=512)
expect(C + 'gtx-280 --offset 1', transactions=3, bytes_moved=224)
expect(C + 'cc-2.0 --stride 0', bytes_moved=128, bytes_used=4)
expect(C + 'cc-2.0 --offset 1 --cg', transactions=5)
expect(C + 'g80 --constant', requests=32, parts=[16, 16])
expect(C + 'h100 --constant --stride 0', requests=1)

# devices: what is printed can be loaded again, and is the same
everything = ask('devices')
assert len(everything) >= 50 and all(d['name'] and d['sm_count'] > 0 for d in everything)
with tempfile.TemporaryDirectory() as folder:
    for d in everything:
        one = ask('devices ' + d['name'])
        path = os.path.join(folder, d['name'] + '.json')
        with open(path, 'w') as f:
            js.dump(one, f)
        if ask('devices ' + path) != one:
            print('%s is not the same after printing and loading' % d['name'])
            bad += 1
        groups = [g for g in one.values() if isinstance(g, dict)]
        assert groups and all(g['source'] for g in groups), d['name']
table = ask('occupancy --all-devices --threads 128 --regs 32')
assert len(table) >= 40 and all('blocks_per_sm' in row for row in table)
curves = ask('occupancy --threads 128 --regs 32 --curves')['curves']
assert len(curves) == 3 and all(c['points'] for c in curves)
rows = ask('occupancy --device xbox-one --lds-table')['rows']
assert len(rows) == 160 and {'threads': 192, 'waves_per_simd': 8, 'tipping_point': 6144, 'whole_groups': 5888} in rows
sys.exit(bad > 0)
