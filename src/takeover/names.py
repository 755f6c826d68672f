#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write the sorted list of functions to redirect: names.py cudart.def jitlink.def out.inc"""
import re
import sys

# Only in runtimes before 13; called by host code or programs made for them.
OLDER = """cudaGetDeviceProperties_v2 cudaThreadSynchronize cudaThreadExit cudaThreadGetLimit
cudaThreadSetLimit cudaThreadGetCacheConfig cudaThreadSetCacheConfig cudaMemAdvise_v2
cudaMemPrefetchAsync_v2 cudaMemPrefetchAsync_v2_ptsz""".split()
# Three bytes long and called by nothing that nvcc emits.
LEFT = {"__cudaGetProcAddress"}

rows = re.findall(r"^CUDART\((\w+),", open(sys.argv[1]).read(), re.M)
linker = re.findall(r"^FN\((\w+),", open(sys.argv[2]).read(), re.M)
names = sorted((set(rows) | set(OLDER) | set(linker)) - LEFT)
with open(sys.argv[3], "w") as out:
    out.write("".join(f'"{name}",\n' for name in names))
