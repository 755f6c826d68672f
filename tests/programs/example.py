#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""example.py HALFWARP NVCC SOURCE.cu [nvcc options...] [-- expected text...]: build one program with the stock nvcc, run it
with `halfwarp run`, and require exit status 0, "NAME: PASSED" and each expected text in its output."""
import os
import pathlib
import subprocess
import sys
import tempfile

halfwarp, nvcc, source, *rest = sys.argv[1:]
options, expected = (rest[:rest.index("--")], rest[rest.index("--") + 1:]) if "--" in rest else (rest, [])
name = pathlib.Path(source).stem
with tempfile.TemporaryDirectory() as folder:
    program = os.path.join(folder, name)
    subprocess.run([nvcc, "-o", program, source, *options], check=True)
    run = subprocess.run([halfwarp, "run", program], capture_output=True, text=True, timeout=100, check=False)
sys.stdout.write(run.stdout)
sys.stderr.write(run.stderr)
missing = [text for text in [f"{name}: PASSED", *expected] if text not in run.stdout]
if run.returncode or missing:
    sys.exit(f"exit status {run.returncode}, missing {missing}")
