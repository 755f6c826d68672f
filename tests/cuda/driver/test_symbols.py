#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Test: libcuda.so.1 exports exactly the symbols of cuda.def, which has its rows sorted by name and each symbol once."""
import re
import subprocess
import sys

library, table = sys.argv[1:3]
wanted, names = [], []
for line in open(table):
    m = re.match(r"(CU|CU_PT|CU_AS|CU_AS_PT|NO|NO_PT)\((.*)\)$", line.strip())
    if m:
        f = [x.strip() for x in m[2].split(",")]
        names.append(f[0])
        wanted.append(f[2])
        if m[1] in ("CU_PT", "CU_AS_PT"):
            wanted.append(f[4] if m[1] == "CU_PT" else f[5])
out = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True).stdout
exported = {line.split()[2] for line in out.splitlines()}
problems = [f"not sorted: {b} after {a}" for a, b in zip(names, names[1:]) if b < a]
problems += [f"twice: {s}" for s in set(wanted) if wanted.count(s) > 1]
problems += [f"missing: {s}" for s in sorted(set(wanted) - exported)]
problems += [f"not in the table: {s}" for s in sorted(exported - set(wanted))]
print("\n".join(problems) or f"{len(wanted)} symbols")
sys.exit(bool(problems))
