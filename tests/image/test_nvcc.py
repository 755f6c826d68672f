#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Binaries made by nvcc: what image finds in them against nvcc's own -ptx and ptxas -v."""
import os
import re
import subprocess
import sys
import tempfile

DUMP, NVCC = sys.argv[1:3]
SOURCE = """
__global__ void __launch_bounds__(128) tile(float *a, int n)
{
    __shared__ float s[256];
    s[threadIdx.x] = a[threadIdx.x];
    __syncthreads();
    a[threadIdx.x] = s[255 - threadIdx.x] * n;
}
__global__ void stack(float *a, int n)
{
    float l[100];
    for (int i = 0; i < 100; i++)
        l[(i * n) % 100] = a[i];
    a[n] = l[n * 7 % 100];
}
#ifdef MAIN
int main() { tile<<<1, 1>>>(0, 1); return 0; }
#endif
"""
passed = failed = 0


def check(name, condition, detail=""):
    global passed, failed
    if condition:
        passed += 1
    else:
        failed += 1
        print(f"FAIL {name}: {detail}")


def run(*command, code=0):
    r = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    if code is not None and r.returncode != code:
        raise SystemExit(f"{command}: exit {r.returncode}\n{r.stdout}{r.stderr}")
    return r.stdout if code == 0 else r.stdout + r.stderr


def nvcc(*options):
    return run(NVCC, *options)


def plain(ptx):
    """A PTX text without comments, indentation and empty lines, as fatbinary stores it."""
    ptx = re.sub(r"//[^\n]*", "", ptx)
    return [line for line in (re.sub(r"\s+", "", x) for x in ptx.split("\n")) if line]


def compression(dir, source):
    nvcc("-ptx", "-arch=compute_75", source, "-o", f"{dir}/ref.ptx")
    want = plain(open(f"{dir}/ref.ptx").read())
    modes = [f"--compress-mode={m}" for m in ("default", "size", "speed", "balance", "none")]
    for mode in modes + ["-no-compress", "-Xfatbin=-compress-all"]:
        nvcc(mode, "-fatbin", source, "-o", f"{dir}/m.fatbin")
        check(f"text, {mode}", plain(run(DUMP, "ptx", f"{dir}/m.fatbin", 90)) == want)
    nvcc("-DMAIN", source, "-o", f"{dir}/app")
    nvcc("-DMAIN", "-ptx", "-arch=compute_75", source, "-o", f"{dir}/ref.ptx")
    check("host program", plain(run(DUMP, "ptx", f"{dir}/app", 90)) ==
          plain(open(f"{dir}/ref.ptx").read()))


def selection(dir, source):
    def target(cc):
        return re.search(r"\.target (\w+)", run(DUMP, "ptx", f"{dir}/s.fatbin", cc)).group(1)
    gens = [f"-gencode=arch=compute_{x},code=compute_{x}" for x in ("80", "90", "90a", "100f")]
    nvcc(*gens, "-fatbin", source, "-o", f"{dir}/s.fatbin")
    for cc, want in ((75, "sm_80"), (80, "sm_80"), (89, "sm_80"), (90, "sm_90a"), (100, "sm_100f"),
                     (103, "sm_100f"), (120, "sm_90")):
        check(f"choice for {cc}", target(cc) == want, target(cc))
    nvcc("-gencode=arch=compute_90,code=sm_90", "-fatbin", source, "-o", f"{dir}/r.fatbin")
    said = run(DUMP, "ptx", f"{dir}/r.fatbin", 90, code=1)
    check("no PTX", "only sm_90 machine code, no PTX; add -gencode arch=compute_90,code=compute_90"
          in said, said)
    nvcc("-gencode=arch=compute_90,code=lto_90", "-dc", "-fatbin", source, "-o", f"{dir}/l.fatbin")
    said = run(DUMP, "ptx", f"{dir}/l.fatbin", 90, code=1)
    check("only LTO", "only lto_90 LTO code, no PTX" in said, said)


def flags(dir, source):
    nvcc("-G", "-fatbin", source, "-o", f"{dir}/g.fatbin")
    listed = run(DUMP, "list", f"{dir}/g.fatbin")
    check("-G", "ptx 75 9.0 compressed debug" in listed, listed)
    open(f"{dir}/b1.cu", "w").write("extern __device__ int f(int);\n"
                                    "__global__ void k(int *a) { *a = f(*a); }\n")
    open(f"{dir}/b2.cu", "w").write("__device__ int f(int x) { return x * 3; }\nint main() {}\n")
    for arch in ("sm_75", "compute_75"):
        nvcc("-rdc=true", f"-arch={arch}", f"{dir}/b1.cu", f"{dir}/b2.cu", "-o", f"{dir}/rdc")
        listed = run(DUMP, "list", f"{dir}/rdc")
        check(f"-rdc {arch}", listed.count("ptx 75 9.0 compressed relocatable") == 2, listed)
    said = run(DUMP, "ptx", f"{dir}/rdc", 75)
    check("device runtime left out", ".func" in said and "cnpGetParameterBuffer" not in said)


def resources(dir, source):
    pattern = (r"Compiling entry function '(\w+)'.*?\n.*\n *(\d+) bytes stack.*\n.*?Used (\d+) "
               r"registers, used (\d+) barriers(?:, \d+ bytes cumulative stack size)?"
               r"(?:, (\d+) bytes smem)?")
    for arch in (75, 80, 86, 90, 100, 120):
        said = subprocess.run([NVCC, f"-arch=sm_{arch}", "-cubin", source, "-Xptxas", "-v", "-o",
                               f"{dir}/x.cubin"], capture_output=True, text=True).stderr
        want = {m[0]: (int(m[2]), int(m[4] or 0), int(m[1]), int(m[3]))
                for m in re.findall(pattern, said)}
        lines = [x.split() for x in run(DUMP, "kernels", f"{dir}/x.cubin").splitlines()]
        got = {x[1]: tuple(int(v) for v in x[2:6]) for x in lines}
        check(f"resources sm_{arch}", len(want) == 2 and got == want, f"{got} != {want}")
        check(f"arch of cubin {arch}", all(x[0] == str(arch) for x in lines), lines)
        check(f"parameters {arch}", all(x[6] == "12" for x in lines), lines)
        check(f"bounds {arch}", [x[7] for x in lines if "tile" in x[1]] == ["128"], lines)


def main():
    with tempfile.TemporaryDirectory() as dir:
        source = f"{dir}/k.cu"
        open(source, "w").write(SOURCE)
        for part in (compression, selection, flags, resources):
            part(dir, source)
    print(f"{passed} passed, {failed} failed")
    return failed != 0


sys.exit(main())
