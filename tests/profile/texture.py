# SPDX-License-Identifier: Apache-2.0
"""Accesses of textures and surfaces (texture.cu) against counts by hand. texture.py HALFWARP NVCC

A sector of an array is 16 bytes of two rows, the first of them even; of linear memory 32 bytes. A bilinear filter reads four texels,
of a row of 32 floats 33 in two rows each."""
import csv
import io
import os
import subprocess
import sys
import tempfile

HALFWARP, NVCC = sys.argv[1:3]
# requests and sectors of textures, loads and stores of surfaces
WANT = [
    ('linear memory, 128 bytes', (1, 4, 0, 0, 0, 0)),
    ('pitched memory, 128 bytes of a row', (1, 4, 0, 0, 0, 0)),
    ('32 floats of a row: 8 times 16 bytes', (1, 8, 0, 0, 0, 0)),
    ('8 by 4 floats from an even row: 2 times 2', (1, 4, 0, 0, 0, 0)),
    ('8 by 4 floats from an odd row: 2 times 3', (1, 6, 0, 0, 0, 0)),
    ('bilinear, even row: 33 floats, one pair of rows', (1, 9, 0, 0, 0, 0)),
    ('bilinear, odd row: two pairs of rows', (1, 18, 0, 0, 0, 0)),
    ('clamped to one texel', (1, 1, 0, 0, 0, 0)),
    ('border: no memory', (1, 0, 0, 0, 0, 0)),
    ('4 lanes', (1, 1, 0, 0, 0, 0)),
    ('10 times', (10, 80, 0, 0, 0, 0)),
    ('gather, rows 0 and 1', (1, 9, 0, 0, 0, 0)),
    ('surface, rows', (0, 0, 1, 8, 1, 8)),
    ('surface, 8 by 4', (0, 0, 1, 4, 1, 4)),
    ('4 layers, 8 floats each', (1, 8, 0, 0, 0, 0)),
]
METRICS = ['l1tex__t_requests_pipe_tex_mem_texture.sum', 'hw__texture_sectors', 'surface_load_requests', 'hw__surface_ld_sectors',
           'surface_store_requests', 'hw__surface_st_sectors']
bad = 0


def same(what, got, want):
    global bad
    if got != want:
        bad += 1
        print('%s: %r, not %r' % (what, got, want))


def rows_of(program, metrics, *options):
    out = subprocess.run([HALFWARP, 'profile', '--csv', '--metrics', ','.join(metrics)] + list(options) + [program], stdout=subprocess.PIPE,
                         text=True, check=True).stdout
    rows = list(csv.DictReader(io.StringIO(out[out.index('"ID"'):])))
    return [tuple(float(r['Metric Value'].replace('n/a', 'nan')) for r in rows[i:i + len(metrics)]) for i in range(0, len(rows), len(metrics))]


def main():
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.join(folder, 'texture')
        source = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'texture.cu')
        subprocess.run([NVCC, '-arch=compute_75', '-o', program, source], check=True)
        for (what, want), got in zip(WANT, rows_of(program, METRICS, '-d', 'v100')):
            same(what, got, tuple(float(n) for n in want))
        # Eight sectors fetched, ten times looked up: in the L1 that is the texture cache as well, and in a texture cache of its own.
        cached = rows_of(program, ['hw__texture_hit_rate', 'l2_tex_read_transactions'], '-d', 'v100,gtx-980', '--caches', '-k', 'again')
        same('hit rates', cached, [(90.0, 8.0), (90.0, 8.0)])
        lines = subprocess.run([HALFWARP, 'profile', '-d', 'v100', '-k', 'again|layers', '--source', program], stdout=subprocess.PIPE, text=True,
                               check=True).stdout
        same('the fetch by its line', 'tex.2d.v4' in lines and 'tex.a2d.v4' in lines, True)
    print('%d differ' % bad)
    return bad != 0


if __name__ == '__main__':
    sys.exit(main())
