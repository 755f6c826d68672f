#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""inspect.py HALFWARP SOURCE_ROOT [CLANG]: `halfwarp inspect` on PTX, on an AMD code object made by clang, and on bad input."""
import pathlib
import subprocess
import sys
import tempfile

HALFWARP, ROOT = sys.argv[1], pathlib.Path(sys.argv[2])
CLANG = sys.argv[3] if len(sys.argv) > 3 else None
failures = []


def run(*args):
    return subprocess.run([HALFWARP, "inspect", *map(str, args)], capture_output=True, text=True, check=False)


def expect(what, done, status, *texts):
    everything = done.stdout + done.stderr
    missing = [t for t in texts if t not in everything]
    if done.returncode != status or missing:
        failures.append(f"{what}: status {done.returncode}, missing {missing}:\n{everything[:600]}")


kernels = ROOT / "bench/kernels.ptx"
expect("PTX", run(kernels), 0, "compute_75", "saxpy", "sgemm_16x16", "2048")
expect("warp IR", run(kernels, "--wir", "--kernel", "saxpy"), 0, "kernel @saxpy", "ffma.f32")
expect("unknown kernel", run(kernels, "--kernel", "saxp"), 2, "did you mean saxpy?")
expect("no such file", run("/nowhere/at/all"), 2, "/nowhere/at/all")
expect("not a GPU file", run("/bin/true"), 2, "no device code")
with tempfile.TemporaryDirectory() as folder:
    bad = pathlib.Path(folder) / "bad.ptx"
    bad.write_text(".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry k() {\n  .reg .b32 %r;\n  frob.u32 %r, %r;\n}\n")
    expect("bad PTX", run(bad), 2, "bad.ptx:6:3: error")
    if CLANG:
        obj = pathlib.Path(folder) / "k.hsaco"
        subprocess.run([CLANG, "-x", "cl", "-cl-std=CL2.0", "-target", "amdgcn-amd-amdhsa", "-mcpu=gfx704", "-nogpulib", "-O2",
                        str(ROOT / "tests/gcn/kernels.cl"), "-o", str(obj)], check=True)
        expect("code object", run(obj), 0, "gfx704", "tile", "group size must be 16 x 16 x 1", "LDS 1088 B")
        expect("disassembly", run(obj, "-D", "--kernel", "add"), 0, "v_add_f32_e32", "s_endpgm")
        expect("code object as JSON", run(obj, "--json"), 0, '"format": "amdgpu"', '"lds_bytes": 1088')
        obj.write_bytes(obj.read_bytes()[:700])
        expect("truncated code object", run(obj), 2, "code object")
for f in failures:
    print("FAILED:", f)
sys.exit(1 if failures else 0)
