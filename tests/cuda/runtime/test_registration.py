#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs built by nvcc in many ways over our runtime and a fake driver; static runtimes through
the takeover. Arguments: nvcc, folder of the fake libcuda.so.1, our libcudart.so.13, the takeover
library or "-"."""
import fnmatch
import os
import subprocess
import sys
import tempfile

NVCC, FAKE, CUDART, TAKEOVER = sys.argv[1:5]
HERE = os.path.dirname(os.path.abspath(__file__))
passed = failed = 0


def check(name, condition, detail=""):
    global passed, failed
    passed += bool(condition)
    failed += not condition
    if not condition:
        print(f"FAIL {name}: {detail}")


def run(program, preload=True, **environment):
    env = dict(os.environ, **environment)
    env["LD_LIBRARY_PATH"] = f"{os.path.dirname(CUDART)}:{FAKE}"
    if preload and TAKEOVER != "-":
        env["LD_PRELOAD"] = TAKEOVER
    return subprocess.run([program], capture_output=True, text=True, env=env, timeout=60)


def nvcc(*options):
    r = subprocess.run([NVCC, *options], capture_output=True, text=True)
    if r.returncode:
        raise SystemExit(r.stdout + r.stderr)


def compare(name, got, want):
    got, want = got.splitlines(), want.splitlines()
    for i, (g, w) in enumerate(zip(got + [""] * 99, want)):
        if g != w and not fnmatch.fnmatchcase(g, w.replace("(", "[(]").replace("[", "[")):
            return check(name, False, f"line {i + 1}: {g!r}, not {w!r}")
    check(name, len(got) == len(want), f"{len(got)} lines, not {len(want)}: {got[len(want):]}")


def builds():
    shared = ["-cudart", "shared"]
    yield "shared", shared
    yield "shared per-thread", shared + ["--default-stream", "per-thread"]
    yield "shared rdc", shared + ["-rdc=true"]
    yield "none", ["-cudart", "none", "-Xlinker", CUDART]
    if TAKEOVER != "-":
        yield "static", []
        yield "static no-pie", ["-Xcompiler", "-no-pie,-fno-pie"]
        yield "static rdc", ["-rdc=true"]
        yield "static per-thread", ["--default-stream", "per-thread"]
        yield "static sections", ["-Xcompiler", "-O3,-ffunction-sections", "-Xlinker", "--gc-sections"]
        yield "static debug", ["-G", "-g"]


def main():
    want = open(f"{HERE}/registration.expect").read()
    with tempfile.TemporaryDirectory() as dir:
        for name, options in builds():
            nvcc(*options, f"{HERE}/registration.cu", "-o", f"{dir}/app")
            r = run(f"{dir}/app")
            if "per-thread" in name:
                check(name, "launch _Z5firstPi <<<(1,1,1), (32,1,1), 0, 0x2>>>" in r.stdout, r.stdout)
            else:
                compare(name, r.stdout, want)
            check(f"{name}: notice", r.stderr ==
                  "halfwarp: cudaGraphicsUnregisterResource is not supported yet (docs/coverage-runtime.md)\n", r.stderr)
        nvcc("-cudart", "shared", "-DMANAGED", f"{HERE}/registration.cu", "-o", f"{dir}/managed")
        r = run(f"{dir}/managed")
        check("managed", "\n7\nunsupported" in r.stdout, r.stdout)
        trace = run(f"{dir}/managed", FAKE_CUDA_TRACE="1").stdout.splitlines()
        check("managed module is early", trace.index("cuLibraryLoadData") <
              trace.index("count: 0"), trace[:20])
        nvcc("-cudart", "shared", f"{HERE}/registration.cu", "-o", f"{dir}/lazy")
        trace = run(f"{dir}/lazy", FAKE_CUDA_TRACE="1").stdout.splitlines()
        check("others are late", trace.index("cuLibraryLoadData") >
              trace.index("malloc: 0"), trace[:20])
        trace = run(f"{dir}/lazy", FAKE_CUDA_TRACE="1", FAKE_CUDA_EAGER="1").stdout.splitlines()
        check("eager", trace.index("cuLibraryLoadData") < trace.index("count: 0"), trace[:20])
        r = run(f"{dir}/lazy", FAKE_CUDA_FAIL="cuLibraryLoadData=209")
        check("no binary", "malloc: 0\nlaunches: 209\n" in r.stdout, r.stdout)
        r = run(f"{dir}/lazy", FAKE_CUDA_FAIL="cuInit=100")
        check("no device", "count: 100\n" in r.stdout and "malloc: 100" in r.stdout, r.stdout)
    print(f"{passed} passed, {failed} failed")
    return failed != 0


sys.exit(main())
