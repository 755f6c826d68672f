# SPDX-License-Identifier: Apache-2.0
"""Registers and spills come from the program's machine code for the device's generation or the nearest one; without it from bounds
and an estimate. What ptxas says while it compiles is the oracle. machine.py HALFWARP NVCC"""
import json
import os
import re
import subprocess
import sys
import tempfile

HALFWARP, NVCC = sys.argv[1:3]
SOURCE = '''__global__ void plain(float *x) { int i = blockIdx.x * blockDim.x + threadIdx.x; x[i] = x[i] * 2 + 1; }
__global__ void __maxnreg__(16) tight(float *x, int n) {
  float a[24];
  for (int j = 0; j < 24; j++) a[j] = x[j * n + threadIdx.x];
  __syncthreads();
  for (int r = 0; r < n; r++)
    for (int j = 0; j < 24; j++) a[j] = a[j] * a[(j + 5) % 24] + a[(j + 1) % 24];
  for (int j = 0; j < 24; j++) x[j * n + threadIdx.x] = a[j];
}
__global__ void array(int *x, int n) {
  int a[40];
  for (int j = 0; j < n; j++) a[x[j] % 40] = j;
  x[threadIdx.x] = a[n % 40];
}
int main() {
  void *x;
  cudaMalloc(&x, 1 << 20);
  cudaMemset(x, 0, 1 << 20);
  plain<<<4, 64>>>((float *)x);
  tight<<<1, 32>>>((float *)x, 32);
  array<<<1, 32>>>((int *)x, 32);
  return cudaDeviceSynchronize();
}
'''
# Not its own generation but the nearest below, its own, the nearest above.
DEVICES = {'v100': 75, 'rtx-2080-ti': 75, 'a100': 75, 'h100': 90, 'gtx-480': 75}
bad = 0


def same(what, got, want):
    global bad
    if got != want:
        bad += 1
        print('%s: %r, not %r' % (what, got, want))


def build(folder, name, *arguments):
    source, program = os.path.join(folder, 'a.cu'), os.path.join(folder, name)
    with open(source, 'w', encoding='utf-8') as f:
        f.write(SOURCE)
    out = subprocess.run([NVCC, '-Xptxas', '-v', '-o', program, source] + list(arguments), stdout=subprocess.PIPE,
                         stderr=subprocess.STDOUT, text=True, check=True).stdout
    kernels = re.findall(r"entry function '_Z\d+([a-z]+)P[fi]i?' for 'sm_(\d+)'.*?(\d+) bytes stack frame.*?Used (\d+) registers", out, re.S)
    return program, {(k, int(arch)): (int(registers), int(stack)) for k, arch, stack, registers in kernels}


def profile(program, devices):
    out = subprocess.run([HALFWARP, 'profile', '--json', '-d', ','.join(devices), program], stdout=subprocess.PIPE, text=True, check=True)
    return {k['short_name']: k for k in json.loads(out.stdout)['kernels']}


def main():
    with tempfile.TemporaryDirectory() as folder:
        # The -Xcompress default of nvcc 13: machine code is compressed.
        program, said = build(folder, 'both', '-gencode', 'arch=compute_75,code=[compute_75,sm_75]', '-gencode', 'arch=compute_90,code=sm_90')
        same('ptxas was understood', len(said), 6)
        kernels = profile(program, DEVICES)
        for name, k in kernels.items():
            for device, got in zip(DEVICES, k['registers']):
                registers, stack = said[name, DEVICES[device]]
                same('%s on %s' % (name, device), (got.get('arch'), got['source'], got['count'], got.get('spill', 0)),
                     (DEVICES[device], 'image', registers, stack - k.get('local', 0)))
        same('a local array is no spill', (kernels['array']['local'] >= 160, kernels['array']['registers'][0].get('spill', 0)), (True, 0))
        program, _ = build(folder, 'text', '-gencode', 'arch=compute_75,code=compute_75')
        got = {name: k['registers'][0] for name, k in profile(program, ['v100']).items()}
        same('an estimate', (got['plain']['source'], 'arch' in got['plain']), ('estimate', False))
        same('a bound', (got['tight']['source'], got['tight']['count'], got['tight']['spill'] > 0), ('bound', 16, True))
        text = subprocess.run([HALFWARP, 'profile', '-d', 'v100', program], stdout=subprocess.PIPE, text=True, check=True).stdout
        same('said', 'registers a thread, an estimate from the PTX' in text, True)
    print('%d differ' % bad)
    return bad != 0


if __name__ == '__main__':
    sys.exit(main())
