#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What libcudart.so.13 and .12 export against cudart.def and, where it is installed, NVIDIA's own
library; error names and texts against the latter.
Arguments: our .13, our .12, cudart.def, NVIDIA's libcudart.so.13 or nothing."""
import ctypes
import re
import subprocess
import sys

OURS13, OURS12, TABLE = sys.argv[1:4]
THEIRS = sys.argv[4] if len(sys.argv) > 4 else None
failed = 0


def check(name, condition, detail=""):
    global failed
    if not condition:
        failed += 1
        print(f"FAIL {name}: {detail}")


def exports(path):
    """Names with their version; the version node itself is there too, as an absolute symbol."""
    out = subprocess.run(["nm", "-D", "--defined-only", path], capture_output=True, text=True,
                         check=True).stdout
    return {line.split()[-1].replace("@@", "@") for line in out.splitlines()}


rows = re.findall(r"^CUDART\((\w+), *(\w+), *(\w+), *\"([^\"]+)\"\)$", open(TABLE).read(), re.M)
want = {f"{name}@libcudart.so.13" for name, *_ in rows} | {"libcudart.so.13@libcudart.so.13"}
got = {n if "@" in n else f"{n}@{n}" for n in exports(OURS13)}
check("names of .13", got == want, f"missing {want - got}, too many {got - want}")
got12 = {n.split("@")[0] for n in exports(OURS12)}
check("names of .12", {name for name, *_ in rows} <= got12, "")
for name in ("cudaGetDeviceProperties_v2", "cudaThreadSynchronize", "cudaMemAdvise_v2"):
    check("older name in .12", name in got12, name)
if THEIRS:
    theirs = {n if "@" in n else f"{n}@{n}" for n in exports(THEIRS)}
    check("names of NVIDIA's", got == theirs, f"{got ^ theirs}")
    a, b = ctypes.CDLL(OURS13), ctypes.CDLL(THEIRS)
    for lib in (a, b):
        for f in (lib.cudaGetErrorName, lib.cudaGetErrorString):
            f.restype = ctypes.c_char_p
            f.argtypes = [ctypes.c_int]
    for code in list(range(-3, 1100)) + [10000, 2**31 - 1]:
        check(f"name of {code}", a.cudaGetErrorName(code) == b.cudaGetErrorName(code))
        check(f"text of {code}", a.cudaGetErrorString(code) == b.cudaGetErrorString(code))
print(f"{'FAILED' if failed else 'ok'}: {len(rows)} functions")
sys.exit(failed != 0)
