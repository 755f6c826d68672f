#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""objects.py GCN_DUMP CLANG LLVM_MC READOBJ KERNELS.cl: code objects made by clang, read by us, compared with LLVM's tools.

The code of each object, as our text, must assemble to the very same bytes; kernel facts must equal those that llvm-readobj
prints of the metadata. Then every object is truncated and damaged: the reader must answer with an error or facts, never die."""
import pathlib
import random
import re
import subprocess
import sys
import tempfile

DUMP, CLANG, MC, READOBJ, SOURCE = sys.argv[1:6]
TARGETS = [("gfx600", 5), ("gfx704", 5), ("gfx704", 4), ("gfx803", 5), ("gfx900", 4), ("gfx90a", 5)]
KEYS = {"lds": ".group_segment_fixed_size", "scratch": ".private_segment_fixed_size", "kernarg": ".kernarg_segment_size",
        "vgprs": ".vgpr_count", "sgprs": ".sgpr_count", "max": ".max_flat_workgroup_size"}
failures = []


def run(*args, **more):
    return subprocess.run([str(a) for a in args], capture_output=True, text=True, errors="replace", check=False, **more)


def metadata(path):
    """Kernel name -> numbers, from llvm-readobj's YAML-like notes."""
    kernels, current = {}, {}
    for line in run(READOBJ, "--notes", path).stdout.splitlines():
        if re.match(r"\s*- \.a", line) or re.match(r"\s{2,4}- \.\w+:", line) and ".address_space" not in line and ".offset" not in line:
            current = {}
        m = re.match(r"\s*(?:- )?(\.\w+):\s+(\S+)$", line)
        if m and m.group(1) == ".name" and "symbol" not in current:
            current["name"] = m.group(2)
        if m and m.group(2).isdigit():
            current[m.group(1)] = int(m.group(2))
        if m and m.group(1) == ".symbol":
            kernels[m.group(2).removesuffix(".kd")] = current
    return kernels


def check(target, version, folder):
    path = pathlib.Path(folder) / f"{target}-{version}.hsaco"
    made = run(CLANG, "-x", "cl", "-cl-std=CL2.0", "-target", "amdgcn-amd-amdhsa", f"-mcpu={target}", "-nogpulib",
               f"-mcode-object-version={version}", "-O2", SOURCE, "-o", path)
    if made.returncode:
        failures.append(f"{target}: clang: {made.stderr[:400]}")
        return None
    out = run(DUMP, path)
    lines = out.stdout.splitlines()
    if out.returncode or lines[0] != f"target {target} version {version}":
        failures.append(f"{target} v{version}: {lines[:1]} {out.stderr[:200]}")
        return path
    ours = {l.split()[1]: dict(zip(l.split()[2::2], l.split()[3::2])) for l in lines if l.startswith("kernel ")}
    theirs = metadata(path)
    if set(ours) != set(theirs) or len(ours) != 5:
        failures.append(f"{target}: kernels {sorted(ours)} against {sorted(theirs)}")
    for name in set(ours) & set(theirs):
        for key, yaml in KEYS.items():
            if yaml in theirs[name] and int(ours[name][key]) != theirs[name][yaml]:
                failures.append(f"{target} {name}: {key} {ours[name][key]} against {theirs[name][yaml]}")
    text = "\n".join(l[5:] for l in lines if l.startswith("insn ")) + "\n"
    if text.strip():
        check_code(target, path, text, folder)
    return path


def check_code(target, path, text, folder):
    again, code, wanted = (pathlib.Path(folder) / n for n in ("again.o", "code", "wanted"))
    made = run(MC, "-arch=amdgcn", f"-mcpu={target}", "-filetype=obj", "-o", again, input=text)
    objcopy = MC.replace("llvm-mc", "llvm-objcopy")
    run(objcopy, "-O", "binary", "--only-section=.text", again, code)
    run(objcopy, "-O", "binary", "--only-section=.text", path, wanted)
    if made.returncode or code.read_bytes()[:wanted.stat().st_size] != wanted.read_bytes():
        failures.append(f"{target}: the code does not assemble to the same bytes: {made.stderr[:300]}")
    else:
        print(f"{target}: {text.count(chr(10))} instructions assemble to the same {wanted.stat().st_size} bytes")


def damage(path, rng):
    whole = bytearray(path.read_bytes())
    bad = path.with_suffix(".bad")
    for round_number in range(150):
        data = bytearray(whole)
        if round_number % 3 == 0:
            data = data[:rng.randrange(len(data))]
        for _ in range(rng.randrange(1, 8)):
            if data:
                data[rng.randrange(min(len(data), 6000))] = rng.randrange(256)
        bad.write_bytes(data)
        if run(DUMP, bad).returncode not in (0, 2):
            failures.append(f"{path.name}: damaged object kills the reader (round {round_number})")
            return


with tempfile.TemporaryDirectory() as folder:
    random_source = random.Random(1)
    for t, v in TARGETS:
        p = check(t, v, folder)
        if p and t == "gfx704":
            damage(p, random_source)
for f in failures:
    print("FAILED:", f)
sys.exit(1 if failures else 0)
