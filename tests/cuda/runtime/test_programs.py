#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Self-checking CUDA programs, built by nvcc in each way, through `halfwarp run`.
Arguments: nvcc, halfwarp, then names of programs or builds to run (default: all)."""
import os
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


def main():
    for name in ("errors", "memory", "streams", "functions", "graphs", "arrays", "textures"):
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
    check("streams per-thread", ["--default-stream", "per-thread"], ["streams.cu"])
    check("memory per-thread", ["--default-stream", "per-thread"], ["memory.cu"])
    print(f"{passed} passed, {failed} failed")
    return failed != 0


sys.exit(main())
