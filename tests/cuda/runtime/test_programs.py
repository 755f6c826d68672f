#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Self-checking CUDA programs, built by nvcc in each way, through `halfwarp run`.
Arguments: nvcc, halfwarp, then names of programs or builds to run (default: all)."""
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time

NVCC, HALFWARP = sys.argv[1:3]
WANTED = sys.argv[3:]
HERE = os.path.dirname(os.path.abspath(__file__)) + "/programs"
passed = failed = 0


def check(name, options, sources, *, run=(), want="ok"):
    global passed, failed
    if WANTED and not any(w in name for w in WANTED):
        return
    with tempfile.TemporaryDirectory() as dir:
        r = subprocess.run([NVCC, *options, *(f"{HERE}/{s}" for s in sources), "-o", f"{dir}/app"],
                           capture_output=True, text=True)
        start = time.time()
        if r.returncode == 0:
            try:
                r = subprocess.run([HALFWARP, "run", *run, f"{dir}/app"], capture_output=True, text=True,
                                   timeout=120)
            except subprocess.TimeoutExpired:
                r = subprocess.CompletedProcess([], -1, "", "no end after 120 s")
        good = r.returncode == 0 and r.stdout.splitlines()[-1:] == [want]
    passed += good
    failed += not good
    if not good or WANTED:
        print(f"{'ok' if good else 'FAIL'} {name} ({time.time() - start:.1f} s): exit {r.returncode}\n"
              f"{r.stdout}{r.stderr}")


def told(name, options, source, words, printed, run=()):
    """The program's own words, and one line on stderr that says what is wrong."""
    global passed, failed
    if WANTED and not any(w in name for w in WANTED):
        return
    with tempfile.TemporaryDirectory() as dir:
        open(f"{dir}/x.cu", "w").write(source)
        subprocess.run([NVCC, *options, f"{dir}/x.cu", "-o", f"{dir}/app"], check=True)
        if "strip" in name:
            subprocess.run(["strip", f"{dir}/app"], check=True)
        r = subprocess.run([HALFWARP, "run", *run, f"{dir}/app"], capture_output=True, text=True,
                           timeout=60)
    lines = [x for x in r.stderr.splitlines() if x.startswith("halfwarp: ")]
    good = r.stdout == printed and len(lines) == 1 and words in lines[0]
    passed += good
    failed += not good
    if not good or WANTED:
        print(f"{'ok' if good else 'FAIL'} {name}: exit {r.returncode}\n{r.stdout}{r.stderr}")


LAUNCH = """#include <cstdio>
__global__ void k(volatile int *p) { while (p && *p == 0); }
int main()
{
    int *p = nullptr;
    if (LOOP)
        cudaMalloc(&p, 4), cudaMemset(p, 0, 4);
    for (int i = 0; i < 2; i++)
        k<<<1, 1>>>(p), printf("%d ", (int)cudaGetLastError());
    printf("%d\\n", (int)cudaDeviceSynchronize());
}
"""


SPIN = """#include <cstdio>
__device__ int lock, count;
__global__ void k()
{
    while (atomicCAS(&lock, 0, 1) != 0);
    count++;
    __threadfence();
    atomicExch(&lock, 0);
}
int main()
{
    k<<<1, 32>>>();
    printf("%d\\n", (int)cudaDeviceSynchronize());
}
"""

STORE = """#include <cstdio>
__global__ void k(int *p) { p[threadIdx.x] = 3 * threadIdx.x; }
int main()
{
    int *p, last = 0;
    cudaMalloc(&p, 256);
    k<<<1, 64>>>(p);
    cudaMemcpy(&last, p + 63, 4, cudaMemcpyDefault);
    printf("%d\\n", last);
}
"""


def finish(name, good, detail):
    global passed, failed
    passed += good
    failed += not good
    if not good:
        print(f"FAIL {name}: {detail}")


def interrupted():
    """A kernel that never ends does not keep the process from dying of SIGINT."""
    with tempfile.TemporaryDirectory() as dir:
        open(f"{dir}/x.cu", "w").write(LAUNCH)
        subprocess.run([NVCC, "-DLOOP=1", f"{dir}/x.cu", "-o", f"{dir}/app"], check=True)
        p = subprocess.Popen([HALFWARP, "run", f"{dir}/app"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler))
        time.sleep(2)
        p.send_signal(signal.SIGINT)
        try:
            p.communicate(timeout=10)
        except subprocess.TimeoutExpired:
            p.kill()
            p.communicate()
        finish("interrupted", p.returncode == -signal.SIGINT, p.returncode)


def caches():
    """A cache that cannot be written, whose files are damaged, or that four processes share, changes no result."""
    with tempfile.TemporaryDirectory() as dir:
        open(f"{dir}/x.cu", "w").write(STORE)
        subprocess.run([NVCC, f"{dir}/x.cu", "-o", f"{dir}/app"], check=True)

        def start(cache, **more):
            return subprocess.Popen([HALFWARP, "run", f"{dir}/app"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                    text=True, env=dict(os.environ, HALFWARP_CACHE=cache), **more)

        def full():
            """As on a full disk: files can be made, but nothing can be written to them."""
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))

        def want(name, process, lines):
            out, err = process.communicate(timeout=60)
            finish(name, out == "189\n" and err.count("\n") == lines, out + err)

        want("unwritable cache", start("/dev/null/x"), 1)
        process = start(f"{dir}/full", preexec_fn=full)
        out, err = process.communicate(timeout=60)
        finish("full cache", out == "189\n" and err.count("\n") <= 1, out + err)
        for process in [start(f"{dir}/shared") for _ in range(4)]:
            want("shared cache", process, 0)
        for damage in (lambda b: b[:100], lambda b: bytes(x ^ 0x55 for x in b), lambda b: b""):
            for name in os.listdir(f"{dir}/shared"):
                path = f"{dir}/shared/{name}"
                data = open(path, "rb").read()
                open(path, "wb").write(damage(data))
            want("damaged cache", start(f"{dir}/shared"), 0)


def main():
    if not WANTED:
        interrupted()
        caches()
    told("livelock", [], SPIN, "SIMT livelock", "719\n", run=["--device", "gtx-1080"])
    told("strip", [], STORE, "no symbol table", "0\n")
    told("no PTX", ["-DLOOP=0", "-gencode", "arch=compute_90,code=sm_90"], LAUNCH,
         "only sm_90 machine code, no PTX; add -gencode arch=compute_90,code=compute_90", "209 209 0\n")
    told("endless", ["-DLOOP=1"], LAUNCH, "did not end within 1000 ms", "0 0 702\n", run=["--timeout", "1"])
    told("endless fraction", ["-DLOOP=1"], LAUNCH, "did not end within 250 ms", "0 0 702\n", run=["--timeout", "0.25"])
    for name in ("errors", "memory", "streams", "functions", "graphs", "arrays", "textures", "logs", "bad_calls"):
        check(name, [], [f"{name}.cu"])
        check(f"{name} shared", ["-cudart", "shared"], [f"{name}.cu"])
    check("devices", [], ["devices.cu"], run=["--device", "h100,v100"])
    check("devices twice", [], ["devices.cu"], run=["--device", "h100:2"])
    parts = ["part_a.cu", "part_b.cu"]
    check("units", [], parts)
    check("units rdc", ["-rdc=true", "-DRDC"], parts)
    check("units rdc shared", ["-rdc=true", "-DRDC", "-cudart", "shared"], parts)
    check("units rdc compute", ["-rdc=true", "-DRDC", "-arch=compute_90"], parts)
    for options in (["-G"], ["-lineinfo"], ["--default-stream", "per-thread"], ["-O0"], ["-Xcompiler", "-no-pie,-fno-pie"],
                    *(["--compress-mode=" + m] for m in ("default", "size", "speed", "balance", "none")),
                    *(["-arch=" + a] for a in ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_90a",
                                               "sm_100", "sm_120", "sm_121", "compute_100f", "all-major"))):
        check("units " + " ".join(options), options, parts)
    check("nested", ["-rdc=true"], ["nested.cu"])
    check("small types", ["-arch=sm_80"], ["small_types.cu"])
    check("narrow", ["-arch=sm_100a"], ["narrow.cu"], run=["--device", "b200"])
    check("streams per-thread", ["--default-stream", "per-thread"], ["streams.cu"])
    check("memory per-thread", ["--default-stream", "per-thread"], ["memory.cu"])
    print(f"{passed} passed, {failed} failed")
    return failed != 0


sys.exit(main())
