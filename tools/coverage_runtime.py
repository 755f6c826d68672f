#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write docs/coverage-runtime.md from src/runtime/cudart.def.

With --check: say whether the page is up to date, and change nothing."""
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DEF = ROOT / "src/runtime/cudart.def"
PAGE = ROOT / "docs/coverage-runtime.md"

# Why a chapter is not there, where that is a decision and not a matter of time.
REASONS = {
    "EGL": "needs a graphics API of a real device",
    "OpenGL": "needs a graphics API of a real device",
    "VDPAU": "needs a media API of a real device",
    "Graphics": "needs a graphics API of a real device",
    "External resources": "memory and semaphores of other APIs of a real device",
}
# The driver's call on which a chapter stands or falls.
NEEDS = {
    "Arrays": "cuArray3DCreate",
    "Textures and surfaces": "cuTexObjectCreate",
    "Graphs": "cuGraphLaunch",
    "Stream-ordered memory": "cuMemAllocAsync",
}


def page():
    chapters, count, done_count = {}, 0, 0
    for name, kind, status, chapter in re.findall(
            r'^CUDART\((\w+), *(\w+), *(\w+), *"([^"]+)"\)$', DEF.read_text(), re.M):
        base = re.sub("_pt[sd][sz]$", "", name)
        chapters.setdefault(chapter, {}).setdefault(base, []).append((name, status == "done"))
        count += 1
        done_count += status == "done"
    out = ["# Runtime API coverage", "",
           "Made by `tools/coverage_runtime.py` from `src/runtime/cudart.def`; do not edit.", "",
           f"`libcudart.so.13` exports {count} functions; {done_count} are implemented, over the driver's "
           "([coverage-driver.md](coverage-driver.md)).", "The rest return `cudaErrorNotSupported` (801) and name "
           "themselves once on stderr. `libcudart.so.12` has the same", "and the older names that programs made by "
           "CUDA 12 use. The `_ptsz` and `_ptds` variants serve `--default-stream per-thread`.", ""]
    for chapter in sorted(chapters):
        names = chapters[chapter]
        whole = sum(all(done for _, done in variants) for variants in names.values())
        out += [f"## {chapter}: {whole} of {len(names)}", ""]
        if chapter in REASONS and not whole:
            out += [f"Not supported: {REASONS[chapter]}.", ""]
        if chapter in NEEDS:
            out += [f"As far as the driver has `{NEEDS[chapter]}`: see its page.", ""]
        for title, want in (("Implemented", True), ("Not supported", False)):
            listed = sorted(n for n, v in names.items() if all(done for _, done in v) == want)
            if listed:
                out += [f"{title}: " + ", ".join(f"`{n}`" for n in listed) + ".", ""]
    return "\n".join(out)


def main():
    text = page()
    if PAGE.exists() and PAGE.read_text() == text:
        return
    if "--check" in sys.argv:
        sys.exit(f"out of date: {PAGE.name}; run tools/coverage_runtime.py")
    PAGE.write_text(text)


if __name__ == "__main__":
    main()
