#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads every file of features/: it must be accepted and hold the kernels its comment names, and
ptxas, where it is given, must accept it too. A file marked parse-only shows operands of instructions
that need not be implemented: only the instruction itself may be refused.
Usage: features.py PTX_READ FOLDER [PTXAS]"""
import re
import subprocess
import sys
from pathlib import Path


def mark(text, key):
    m = re.search(rf"//.*?\b{key}: *(\S+)", text)
    return m.group(1) if m else None


def check(tool, ptxas, path):
    text = path.read_text()
    done = subprocess.run([tool, str(path)], capture_output=True, text=True, errors="replace", timeout=60)
    refused = [l for l in done.stderr.splitlines() if ": error: " in l]
    if "// parse-only" in text and done.returncode == 1:
        if all(re.search(r"not supported|unknown (instruction|modifier)|unsupported", l) for l in refused):
            return None
    if done.returncode:
        return f"{path.name}: {done.stderr}"
    if f"kernel {mark(text, 'kernels')}:" not in done.stdout:
        return f"{path.name}: kernel {mark(text, 'kernels')} is not there"
    if not ptxas or ".version 1." in text:
        return None
    arch = mark(text, "arch") or "sm_75"
    done = subprocess.run([ptxas, f"-arch={arch}", str(path), "-o", "/dev/null"], capture_output=True, text=True)
    return f"{path.name}: ptxas: {done.stdout}{done.stderr}" if done.returncode else None


def main():
    tool, folder, *rest = sys.argv[1:]
    files = sorted(Path(folder).glob("*.ptx"))
    failures = [f for p in files if (f := check(tool, rest[0] if rest else None, p))]
    print("\n".join(failures))
    print(f"{len(files) - len(failures)} passed, {len(failures)} failed")
    return 1 if failures or not files else 0


if __name__ == "__main__":
    sys.exit(main())
