#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Test: what nvcc makes loads and runs, in every container and compression; what holds no PTX gives 209 and the remedy;
broken files give an error, one line, and no crash."""
import os
import random
import subprocess
import sys
import tempfile

nvcc, loader = sys.argv[1:3]
SOURCE = """
__device__ int offset = 3; __constant__ int table[4] = { 10, 20, 30, 40 }; __managed__ int extra = 100;
extern "C" __global__ void k(int *p, int n)
{ int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) p[i] = offset + table[i & 3] + extra; }
"""
GOOD = "load 0\nrun 0, words 113 123 143\n"
problems = []


def load(path):
    r = subprocess.run([loader, path], capture_output=True, text=True, timeout=60)
    if r.returncode:
        problems.append(f"{path}: ended with {r.returncode}: {r.stderr}")
    return r.stdout, r.stderr


def build(name, *flags):
    path = os.path.join(work, name)
    subprocess.run([nvcc, *flags, "-o", path, source], check=True, capture_output=True)
    return path


def want(what, got, expected):
    if got != expected:
        problems.append(f"{what}: {got!r} instead of {expected!r}")


with tempfile.TemporaryDirectory() as work:
    source = os.path.join(work, "k.cu")
    open(source, "w").write(SOURCE)
    good = build("good.fatbin", "-fatbin")
    for name, flags in {"ptx": ["-ptx"], "sm90.ptx": ["-ptx", "-arch=sm_90"], "sm120.ptx": ["-ptx", "-arch=sm_120"],
                        "all.fatbin": ["-fatbin", "-Xfatbin", "-compress-all"],
                        "speed.fatbin": ["-fatbin", "--compress-mode=speed"],
                        "none.fatbin": ["-fatbin", "--compress-mode=none"]}.items():
        want(name, load(build(name, *flags))[0], GOOD)
    want("fatbin", load(good)[0], GOOD)
    out, err = load(build("sass.fatbin", "-fatbin", "-gencode", "arch=compute_90,code=sm_90"))
    want("machine code only", out, "load 209\n")
    if "sm_90" not in err or "compute_90" not in err or err.count("\n") != 1:
        problems.append(f"machine code only says {err!r}")
    want("cubin", load(build("k.cubin", "-cubin", "-arch=sm_90"))[0], "load 209\n")
    data = open(good, "rb").read()
    rng = random.Random(7)
    broken = os.path.join(work, "broken.fatbin")
    for i in range(40):
        b = bytearray(data)
        if i % 4 == 0:
            b = b[:rng.randrange(len(b))]
        else:
            for _ in range(rng.randrange(1, 6)):
                b[rng.randrange(200 if i % 2 else len(b))] = rng.randrange(256)
        open(broken, "wb").write(b)
        out, err = load(broken)
        if not out.startswith("load ") or (not out.startswith("load 0") and err.count("\n") != 1):
            problems.append(f"broken image {i}: {out!r} {err!r}")
print("\n".join(problems) or "all images as expected")
sys.exit(bool(problems))
