# SPDX-License-Identifier: Apache-2.0
"""Kernels as PTX text: what they give, and what is said of those that are wrong. The first argument of the program is halfwarp."""
import os
import subprocess
import sys
import tempfile

HALFWARP = sys.argv[1]
passed = failed = 0


def run(text, *, device="h100", grid=1, block=32, words=64, workers=None):
    with tempfile.TemporaryDirectory() as folder:
        with open(f"{folder}/k.ptx", "w") as f:
            f.write(text + "\n ret;\n}\n")
        env = os.environ | {"HALFWARP_DEVICE": device, "HALFWARP_TIMEOUT": "10", "HALFWARP_CACHE": "off"}
        if workers:
            env["HALFWARP_WORKERS"] = workers
        return subprocess.run([HALFWARP, "run", f"{folder}/k.ptx", "--entry", "k", "--grid", str(grid), "--block", str(block),
                               "--print", str(words), f"u32[{words}]=0"], capture_output=True, text=True, timeout=60, env=env)


def check(name, good, r):
    global passed, failed
    passed += good
    failed += not good
    if not good:
        print(f"FAIL {name}: exit {r.returncode}\n{r.stdout}{r.stderr}")


def gives(name, text, values, **more):
    r = run(text, words=len(values), **more)
    check(name, r.returncode == 0 and r.stdout == f"0: u32[{len(values)}] = {' '.join(map(str, values))}\n", r)


def says(name, text, *words, **more):
    r = run(text, **more)
    check(name, r.returncode not in (0, 124) and all(w in r.stderr for w in words), r)


def finish():
    print(f"{passed} passed, {failed} failed")
    sys.exit(failed != 0)
