# SPDX-License-Identifier: Apache-2.0
"""`halfwarp occupancy FILE` on what nvcc and clang make: register counts, shared memory and block sizes are those that
ptxas and LLVM say. program_files.py HALFWARP. Exit status 77 where neither is installed."""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

CU = '''#include <cstdio>
extern "C" __global__ void saxpy(int n, float a, const float *x, float *y)
{ int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = a * x[i] + y[i]; }
extern "C" __global__ void __launch_bounds__(128) tile(float *o)
{ __shared__ float t[32][33]; t[threadIdx.y][threadIdx.x] = o[threadIdx.x]; __syncthreads();
  o[threadIdx.x] = t[threadIdx.x][threadIdx.y]; }
extern "C" __global__ void poly(double *o, double x)
{ double s = 0; for (int i = 0; i < 64; i++) s = s * x + o[i] * o[i + threadIdx.x]; o[threadIdx.x] = s; }
int main() { saxpy<<<1, 32>>>(0, 0, 0, 0); tile<<<1, 32>>>(0); poly<<<1, 32>>>(0, 0); return 0; }
'''
CL = '''__kernel __attribute__((reqd_work_group_size(256, 1, 1))) void k(__global float *o)
{ __local float t[256]; int i = __builtin_amdgcn_workitem_id_x(); t[i] = o[i]; o[i] = t[255 - i]; }
'''
bad = 0


def run(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=True).stdout


def occupancy(*arguments):
    got = json.loads(run(sys.argv[1], 'occupancy', *arguments, '--json'))
    return {k['kernel']: k for k in got.get('kernels', [got])}


def same(what, got, want):
    global bad
    if got != want:
        print('%s: %r, not %r' % (what, got, want))
        bad += 1


def by_ptxas(text):
    """What `ptxas -v` says: {kernel: (registers, shared)}."""
    out, name = {}, None
    for line in text.split('\n'):
        entry = re.search(r"entry function '(\w+)'", line)
        used = re.search(r'Used (\d+) registers', line)
        if entry:
            name = entry.group(1)
        if used and name:
            shared = re.search(r'(\d+) bytes smem', line)
            out[name] = (int(used.group(1)), int(shared.group(1)) if shared else 0)
    return out


def nvidia(folder):
    source = os.path.join(folder, 'a.cu')
    with open(source, 'w') as f:
        f.write(CU)
    ways = [('cubin', ['-cubin', '-arch=sm_90'], 'h100'), ('cubin', ['-cubin', '-arch=sm_80'], 'a100'),
            ('program', ['-arch=sm_90'], 'h100'), ('object', ['-c', '-arch=sm_80'], 'a100'),
            ('device-linked', ['-rdc=true', '-arch=sm_90'], 'h100')]
    for name, flags, device in ways:
        path = os.path.join(folder, name)
        said = by_ptxas(run('nvcc', '-Xptxas', '-v', *flags, '-o', path, source))
        got = occupancy(path, '--device', device)
        same(name, sorted(got), sorted(said))
        for k in got:
            if name != 'device-linked':  # linking gives registers anew
                same('%s %s registers' % (name, k), got[k]['query']['registers'], said[k][0])
            same('%s %s machine code' % (name, k), 'machine code' in got[k]['query']['registers_from'], True)
        same(name + ' shared', got['tile']['query']['shared_static'], 32 * 33 * 4)
        same(name + ' threads', got['tile']['query']['threads'], 128)
    ptx = os.path.join(folder, 'a.ptx')
    run('nvcc', '-ptx', '-arch=sm_90', '-o', ptx, source)
    said = by_ptxas(run('ptxas', '-v', '-arch=sm_90', '-o', os.devnull, ptx))
    asked, guessed = occupancy(ptx, '--ptxas'), occupancy(ptx)
    for k in said:
        same('ptxas ' + k, asked[k]['query']['registers'], said[k][0])
        same('estimate of ' + k + ' is said to be one', guessed[k]['query']['registers_from'], 'estimated by liveness')
        same('estimate of %s is near' % k, said[k][0] / 3 <= guessed[k]['query']['registers'] <= said[k][0] * 2, True)
        same('shared of ' + k, guessed[k]['query']['shared_static'], said[k][1])
    same('one kernel', list(occupancy(ptx, '--kernel', 'poly')), ['poly'])
    same('registers given', occupancy(ptx, '--kernel', 'poly', '--regs', '77')['poly']['query']['registers'], 77)


def amd(folder):
    source, path = os.path.join(folder, 'k.cl'), os.path.join(folder, 'k.o')
    with open(source, 'w') as f:
        f.write(CL)
    for target, device in [('gfx704', 'radeon-r7-260x'), ('gfx900', 'radeon-vega-64')]:
        remarks = run('clang-19', '-target', 'amdgcn-amd-amdhsa', '-mcpu=' + target, '-nogpulib', '-O2', '-c', source, '-o', path,
                      '-Rpass-analysis=kernel-resource-usage')
        said = {k: int(v) for k, v in re.findall(r'(VGPRs|SGPRs|TotalSGPRs|Occupancy \[waves/SIMD\]|LDS Size \[bytes/block\]): (\d+)',
                                                 remarks)}
        got = occupancy(path, '--mode', 'llvm')['k']
        same(target + ' device', got['device'], device)
        same(target + ' VGPRs', got['query']['vgprs'], said['VGPRs'])
        same(target + ' SGPRs', got['query']['sgprs'], said.get('TotalSGPRs', said.get('SGPRs')))
        same(target + ' LDS', got['query']['lds'], said['LDS Size [bytes/block]'])
        same(target + ' waves', got['waves_per_simd'], said['Occupancy [waves/SIMD]'])
        same(target + ' threads', got['query']['threads'], 256)


with tempfile.TemporaryDirectory() as scratch:
    done = False
    if shutil.which('nvcc') and shutil.which('ptxas'):
        nvidia(scratch)
        done = True
    if shutil.which('clang-19'):
        amd(scratch)
        done = True
sys.exit(77 if not done else bad > 0)
