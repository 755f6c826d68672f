# SPDX-License-Identifier: Apache-2.0
"""Programs with bytes changed or cut off: `halfwarp occupancy FILE` answers or says what is wrong, and never crashes.
broken_files.py HALFWARP [RUNS [SEED]]

The files are what compilers that are installed make of small kernels, and the PTX of the benchmark."""
import os
import random
import shutil
import subprocess
import sys
import tempfile

KERNEL_CU = '''__global__ void tile(float *o) { __shared__ float t[32][33]; t[threadIdx.y][threadIdx.x] = o[threadIdx.x];
__syncthreads(); o[threadIdx.x] = t[threadIdx.x][threadIdx.y]; }
int main() { tile<<<1, dim3(32, 8)>>>(0); return 0; }'''
KERNEL_CL = '''__kernel __attribute__((reqd_work_group_size(256, 1, 1))) void k(__global float *o)
{ __local float t[256]; int i = __builtin_amdgcn_workitem_id_x(); t[i] = o[i]; o[i] = t[255 - i]; }'''


def make(folder, name, source, suffix, command):
    """The bytes of what a compiler makes; None if it is not there or cannot."""
    if not shutil.which(command[0]):
        return None
    path, out = os.path.join(folder, name + suffix), os.path.join(folder, name)
    with open(path, 'w') as f:
        f.write(source)
    if subprocess.run(command + [path, '-o', out], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode:
        return None
    with open(out, 'rb') as f:
        return f.read()


def bases(folder):
    here = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(here, '..', '..', 'bench', 'kernels.ptx'), 'rb') as f:
        yield 'ptx', f.read()
    nvcc = ['nvcc', '-arch=sm_90']
    amd = ['-target', 'amdgcn-amd-amdhsa', '-nogpulib', '-O2', '-c']
    for name, data in [('cubin', make(folder, 'cubin', KERNEL_CU, '.cu', nvcc + ['-cubin'])),
                       ('object', make(folder, 'object', KERNEL_CU, '.cu', nvcc + ['-c'])),
                       ('gfx704', make(folder, 'gfx704', KERNEL_CL, '.cl', ['clang-19', '-mcpu=gfx704'] + amd)),
                       ('gfx900', make(folder, 'gfx900', KERNEL_CL, '.cl', ['clang-19', '-mcpu=gfx900'] + amd))]:
        if data:
            yield name, data


def broken(data, rng):
    data = bytearray(data)
    for _ in range(rng.choice([1, 1, 2, 8])):
        at = rng.randrange(min(len(data), rng.choice([64, 512, len(data)])))
        data[at] = rng.choice([0, 1, 0x7f, 0x80, 0xff, rng.randrange(256)])
    if rng.random() < 0.25:
        del data[rng.randrange(len(data)):]
    return bytes(data)


def main():
    runs = int(sys.argv[2]) if len(sys.argv) > 2 else 150
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else 704
    rng = random.Random(seed)
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        all_bases = list(bases(folder))
        path = os.path.join(folder, 'broken')
        for i in range(runs):
            name, data = all_bases[i % len(all_bases)]
            data = data if i < len(all_bases) else broken(data, rng)
            with open(path, 'wb') as f:
                f.write(data)
            p = subprocess.run([sys.argv[1], 'occupancy', path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)
            whole = i < len(all_bases)
            if p.returncode not in ((0,) if whole else (0, 2)) or (p.returncode == 2 and not p.stderr.startswith(b'halfwarp: ')):
                bad += 1
                keep = os.path.join(tempfile.gettempdir(), 'halfwarp-broken-%s-%d-%d' % (name, seed, i))
                shutil.copy(path, keep)
                print('%s: exit status %d: %s' % (keep, p.returncode, p.stderr[-400:].decode(errors='replace')))
    print('%d runs over %s, seed %d: %d wrong' % (runs, ' '.join(n for n, _ in all_bases), seed, bad))
    return bad > 0


sys.exit(main())
