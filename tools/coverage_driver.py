#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write docs/coverage-driver.md from src/driver/cuda.def and docs/environment.md from src/driver/env.def.

With --check: say whether the pages are up to date, and change nothing."""
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DEF = ROOT / "src/driver/cuda.def"
ENV = ROOT / "src/driver/env.def"

# Why a chapter is not there, where that is a decision and not a matter of time.
REASONS = {
    "interop": "needs a graphics or media API of a real device",
    "green": "partitions of a real device's multiprocessors",
    "multicast": "needs several real devices on a switch",
    "checkpoint": "process checkpoints of NVIDIA's driver",
    "coredump": "core dumps of NVIDIA's debugger",
}


def rows():
    for line in DEF.read_text().splitlines():
        m = re.match(r"(CU|CU_PT|CU_AS|CU_AS_PT|NO|NO_PT)\((.*)\)$", line)
        if not m:
            continue
        kind, fields = m[1], [f.strip() for f in m[2].split(",")]
        chapter = {"CU": 3, "CU_PT": 5, "CU_AS": 4, "CU_AS_PT": 6, "NO": 3, "NO_PT": 3}[kind]
        symbols = [fields[2]]
        if kind == "CU_PT":
            symbols.append(fields[4])
        if kind == "CU_AS_PT":
            symbols.append(fields[5])
        yield kind, fields[0], int(fields[1]), symbols, fields[chapter]


def coverage():
    chapters, done_symbols, symbols = {}, 0, 0
    for kind, name, version, syms, chapter in rows():
        done = not kind.startswith("NO")
        symbols += len(syms)
        done_symbols += len(syms) * done
        versions = chapters.setdefault(chapter, {}).setdefault(name, {})
        versions[version] = versions.get(version, True) and done
    out = ["# Driver API coverage", "",
           "Made by `tools/coverage_driver.py` from `src/driver/cuda.def`; do not edit.", "",
           f"`libcuda.so.1` exports {symbols} symbols; {done_symbols} are implemented. The rest return "
           "`CUDA_ERROR_NOT_SUPPORTED` (801)", "and name themselves once on stderr. Versions are of CUDA, "
           "1000 * major + 10 * minor.", ""]
    for chapter in sorted(chapters):
        names = chapters[chapter]
        n = sum(any(v.values()) for v in names.values())
        out += [f"## {chapter}: {n} of {len(names)}", ""]
        if chapter in REASONS and n == 0:
            out += [f"Not supported: {REASONS[chapter]}.", ""]
        out += ["| call | implemented | not supported |", "|---|---|---|"]
        for name in sorted(names):
            yes = " ".join(str(v) for v, d in sorted(names[name].items()) if d) or "-"
            no = " ".join(str(v) for v, d in sorted(names[name].items()) if not d) or "-"
            out.append(f"| {name} | {yes} | {no} |")
        out.append("")
    return "\n".join(out)


def environment():
    out = ["# Environment variables", "",
           "Made by `tools/coverage_driver.py` from `src/driver/env.def`; do not edit. Read once, in `cuInit`.",
           "A value that makes no sense is said once and then not used.", "",
           "| variable | default | meaning |", "|---|---|---|"]
    for m in re.finditer(r'^ENV\(\w+,\s*"(\w+)",\s*"(\w*)",\s*"(.*)"\)$', ENV.read_text(), re.M):
        out.append(f"| `{m[1]}` | {m[2] or '-'} | {m[3]} |")
    out += ["", "Besides: `HALFWARP_DEVICE_PATH`, folders of device files, for the library and for every command "
            "([devices.md](devices.md));", "`NO_COLOR`, for commands. Those that `halfwarp run` sets for the dynamic linker "
            "are in [loading.md](loading.md)."]
    return "\n".join(out) + "\n"


def main():
    stale = []
    for path, text in ((ROOT / "docs/coverage-driver.md", coverage()), (ROOT / "docs/environment.md", environment())):
        if path.exists() and path.read_text() == text:
            continue
        stale.append(path.name)
        if "--check" not in sys.argv:
            path.write_text(text)
    if "--check" in sys.argv and stale:
        sys.exit(f"out of date: {', '.join(stale)}; run tools/coverage_driver.py")


if __name__ == "__main__":
    main()
