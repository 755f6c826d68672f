# SPDX-License-Identifier: Apache-2.0
"""Accesses of matrix instructions (matrix.cu) against counts by hand. matrix.py HALFWARP NVCC

A fragment is read a register of each lane at a time: 8 rows (columns) of 16 bytes, or 4 of 32. `requests, sectors`:
  f16, 16x16  A, B  4 registers of 8 x 16 bytes, rows of 32 bytes                       4, 32
              C     pairs of floats: 4 times 8 x 32 bytes; by columns 8 times 4 x 32    4, 32 or 8, 32
  tf32, 16x8  A     by rows of 32 bytes 4 times 8 x 16; by columns 4 times 4 x 32       4, 32 or 4, 16
  8x16        B     the other way round
  s8, 16x16   A     by rows of 16 bytes 2 times 128 bytes; by columns 8 times 4 x 8     2, 8 or 8, 32
  f64, 8x4    A     by rows of 32 bytes 8 x 32; by columns 4 x 64                       1, 8
  8x8         C     by rows pairs: 8 x 64; by columns 2 times 4 x 64                    1, 16 or 2, 16
Matrices in shared memory are one request and as many passes as lanes of 8 rows of 16 bytes need: 1 each, 2 if the rows are 32 bytes
apart, whichever way they are turned."""
import csv
import io
import os
import subprocess
import sys
import tempfile

HALFWARP, NVCC = sys.argv[1:3]
A16, A32, C, CC = (4, 32), (4, 16), (4, 32), (8, 32)
BYTES, SPREAD, DOUBLE, D, DD = (2, 8), (8, 32), (1, 8), (1, 16), (2, 16)
# first launch: A, B and C of four launches: A by rows and B by rows, by columns; then A by columns, B by rows, by columns.
LOADS = {
    0: ((A16, A16, C), (A16, A16, C), (A16, A16, CC), (A16, A16, CC)),  # f16
    12: ((A16, A16, C), (A16, A16, C), (A16, A16, CC), (A16, A16, CC)),  # bf16
    16: ((A16, A32, C), (A16, A16, C), (A32, A32, CC), (A32, A16, CC)),  # tf32
    20: ((BYTES, SPREAD, C), (BYTES, BYTES, C), (SPREAD, SPREAD, CC), (SPREAD, BYTES, CC)),  # s8
    32: ((DOUBLE, DOUBLE, D), (DOUBLE, DOUBLE, D), (DOUBLE, DOUBLE, DD), (DOUBLE, DOUBLE, DD)),  # f64
}
# launch: requests and passes of loads from shared memory, and of ldmatrix. 36: two fragments of 16 x 16 halves, and 8 loads beside them.
SHARED = {36: (8 + 2, 8 + 2 * 8, 0, 0), 37: (0, 0, 1, 8), 38: (0, 0, 1, 4), 39: (0, 0, 1, 8), 40: (0, 0, 1, 4)}
METRICS = ['global_load_requests', 'l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum', 'global_store_requests', 'shared_load_requests',
           'shared_load_transactions', 'smsp__inst_executed_op_ldsm.sum',
           'smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_ldsm.sum']


def main():
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.join(folder, 'matrix')
        source = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'matrix.cu')
        subprocess.run([NVCC, '-std=c++17', '-arch=compute_80', '-o', program, source], check=True)
        out = subprocess.run([HALFWARP, 'profile', '-d', 'a100', '--csv', '--metrics', ','.join(METRICS), program], stdout=subprocess.PIPE,
                             text=True, check=False)
    text = out.stdout
    if out.returncode or '0 differ\n' not in text:
        print(text[:2000])
        return 1
    rows = list(csv.DictReader(io.StringIO(text[text.index('"ID"'):])))
    got = [[float(r['Metric Value']) for r in rows[i:i + len(METRICS)]] for i in range(0, len(rows), len(METRICS))]
    for first, launches in LOADS.items():
        for i, parts in enumerate(launches):
            requests, sectors = sum(p[0] for p in parts), sum(p[1] for p in parts)
            want = [requests, sectors, parts[2][0], 0, 0, 0, 0]
            if got[first + i] != want:
                bad += 1
                print('launch %d: %r, not %r' % (first + i, got[first + i], want))
    for launch, want in SHARED.items():
        if tuple(got[launch][3:]) != want:
            bad += 1
            print('launch %d: %r, not %r' % (launch, got[launch][3:], want))
    print('%d differ' % bad)
    return bad != 0


if __name__ == '__main__':
    sys.exit(main())
