#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles CUDA sources to PTX in many ways and reads all of it: every text must be accepted, and the
parameter bytes and the static shared memory of every kernel must be those ptxas -v reports.
Usage: corpus.py PTX_READ NVCC PTXAS [--full] SOURCE_OR_FOLDER..."""
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

WAYS = [
    ["-arch=compute_75"],
    ["-arch=compute_100"],
    ["-arch=compute_75", "-G"],
    ["-arch=compute_90", "-lineinfo"],
    ["-arch=compute_120", "-rdc=true"],
    ["-arch=compute_90", "-use_fast_math", "-rdc=true"],
    ["-arch=compute_120", "-G", "-lineinfo"],
    ["-arch=compute_80", "-ftz=true", "--default-stream", "per-thread"],
]
PARAMS_AT = {"75": 352, "80": 352, "90": 528}  # where ptxas puts parameters in bank 0


def run(command):
    return subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=600)


def ours(text):
    """kernel -> (parameter bytes, shared bytes) of what ptx_read prints"""
    found = {}
    for m in re.finditer(r"^kernel (\S+): \d+ params, (\d+) bytes; shared (\d+)", text, re.M):
        found[m.group(1)] = (int(m.group(2)), int(m.group(3)))
    return found


def theirs(text, base):
    found, name = {}, None
    for line in text.splitlines():
        if m := re.search(r"Compiling entry function '(\S+)'", line):
            name = m.group(1)
        elif "Used " in line and name:
            shared = re.search(r"(\d+) bytes smem", line)
            bank = re.search(r"(\d+) bytes cmem\[0\]", line)
            found[name] = (int(bank.group(1)) - base if bank and base else None,
                           int(shared.group(1)) if shared else 0)
            name = None
    return found


def compare(mine, ptxas, path, arch):
    done = run([ptxas, "-v", "-O0", f"-arch=sm_{arch}", str(path), "-o", "/dev/null"])
    if done.returncode:
        return []  # a whole program is missing, or debug information in the way
    wrong = []
    for name, (params, shared) in theirs(done.stdout + done.stderr, PARAMS_AT.get(arch)).items():
        got = mine.get(name)
        if not got or got[1] != shared or (params is not None and got[0] != params):
            wrong.append(f"{path.name}: {name}: {got}, ptxas has {(params, shared)}")
    return wrong


def one(job):
    tool, nvcc, ptxas, source, way, folder = job
    arch = way[0].split("_")[1]
    path = Path(folder) / f"{source.stem}{'_'.join(way)}.ptx".replace("=", "_")
    made = run([nvcc, "-std=c++17", *way, f"-I{source.parent}", "-ptx", str(source), "-o", str(path)])
    if made.returncode:
        return [], 0
    read = run([tool, str(path)])
    if "-rdc=true" in way and "HW_E_LINK" in read.stderr:
        read = run([tool, "-q", str(path)])  # the rest of the program is elsewhere
    if read.returncode:
        return [f"{source.name} {' '.join(way)}: {read.stderr[:2000]}"], 1
    return compare(ours(read.stdout), ptxas, path, arch) if "-rdc=true" not in way else [], 1


def linked(tool, nvcc, folder, pair):
    """-rdc=true: two units that need each other"""
    paths = []
    for source in pair:
        paths.append(str(Path(folder) / f"{source.stem}.rdc.ptx"))
        run([nvcc, "-arch=compute_75", "-rdc=true", "-ptx", str(source), "-o", paths[-1]])
    both = run([tool, "-l", *paths])
    if both.returncode or "kernel _Z5firstPi: 1 params, 8 bytes; shared 128" not in both.stdout:
        return [f"linking: {both.stdout}{both.stderr}"]
    alone = run([tool, paths[0]])
    for name in ("_Z5twicei", "table", "sums", "chosen"):
        if f"'{name}', needed by '_Z5firstPi'" not in alone.stderr:
            return [f"linking: {name} is not missed: {alone.stderr}"]
    return []


def sources_of(arguments):
    for a in map(Path, arguments):
        yield from sorted(a.glob("*.cu")) if a.is_dir() else [a]


def main():
    tool, nvcc, ptxas, *rest = sys.argv[1:]
    sources = list(sources_of([a for a in rest if a != "--full"]))
    wrong, read = [], 0
    with tempfile.TemporaryDirectory() as folder:
        jobs = []
        for i, source in enumerate(s for s in sources if not s.stem.startswith("linked_")):
            ways = WAYS if "--full" in rest or source.stem == "language" else [WAYS[i % len(WAYS)]]
            jobs += [(tool, nvcc, ptxas, source, way, folder) for way in ways]
        with ThreadPoolExecutor(2) as pool:
            for bad, n in pool.map(one, jobs):
                wrong += bad
                read += n
        pair = [s for s in sources if s.stem in ("linked_a", "linked_b")]
        if len(pair) == 2:
            wrong += linked(tool, nvcc, folder, pair)
    print("\n".join(wrong))
    print(f"{read} texts read, {len(wrong)} failed")
    return 1 if wrong or not read else 0


if __name__ == "__main__":
    sys.exit(main())
