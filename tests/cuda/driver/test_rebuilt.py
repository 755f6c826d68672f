#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Test: compiled code on disk is used again by the same build, and not by a rebuilt libcuda (its lowering may have
changed) or a rebuilt code generator. Arguments: libcuda.so.1, libhalfwarp-codegen.so."""
import os
import re
import shutil
import subprocess
import sys
import tempfile

CALLER = r"""
import ctypes, sys
cu = ctypes.CDLL(sys.argv[1])
def ok(r):
    assert r == 0, r
ok(cu.cuInit(0))
context, module, kernel = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
ok(cu.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
ok(cu.cuCtxSetCurrent(context))
ok(cu.cuModuleLoadData(ctypes.byref(module), b'''.version 8.0
.target sm_70
.address_size 64
.visible .entry k() { ret; }
'''))
ok(cu.cuModuleGetFunction(ctypes.byref(kernel), module, b'k'))
ok(cu.cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, None, None, None))
ok(cu.cuCtxSynchronize())
"""
problems = []


def code(work):
    """How many kernels were compiled and how many came from disk."""
    env = dict(os.environ, HALFWARP_CACHE=f"{work}/cache", HALFWARP_VERBOSE="1", LD_LIBRARY_PATH=work, HALFWARP_TIER="second",
               LD_PRELOAD=os.environ.get("LD_PRELOAD", ""))
    r = subprocess.run([sys.executable, "-c", CALLER, f"{work}/libcuda.so.1"], env=env, capture_output=True, text=True, timeout=120)
    found = re.search(r"code: (\d+) compiled in .* (\d+) from disk", r.stderr)
    if r.returncode or not found:
        problems.append(f"ended with {r.returncode}: {r.stderr}")
        return None
    return int(found[1]), int(found[2])


def want(what, got, expected):
    if got != expected:
        problems.append(f"{what}: {got} compiled and from disk instead of {expected}")


with tempfile.TemporaryDirectory() as work:
    libraries = [shutil.copy(os.path.realpath(a), f"{work}/{n}") for a, n in
                 zip(sys.argv[1:], ("libcuda.so.1", "libhalfwarp-codegen.so"))]
    want("first run", code(work), (1, 0))
    want("same build", code(work), (0, 1))
    for library in libraries:
        os.utime(library, ns=(0, os.stat(library).st_mtime_ns + 1))
        want(os.path.basename(library) + " rebuilt", code(work), (1, 0))
        want("same build again", code(work), (0, 1))
print("\n".join(problems) or "ok")
sys.exit(bool(problems))
