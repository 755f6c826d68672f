#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""run.py HALFWARP NVCC PROGRAM.cu [arch...]: builds the program for each architecture that its "// arch:" comment names (or for
those given), runs each on the device of its "// device:" comment, and requires exit status 0 and "PASSED"; and the metrics of its
"// profile:" comment."""
import pathlib
import re
import subprocess
import sys
import tempfile

halfwarp, nvcc, source, *archs = sys.argv[1:]
name, text = pathlib.Path(source).stem, pathlib.Path(source).read_text()


def said(key, otherwise):
    found = re.search(rf"^// {key}: (.*)$", text, re.M)
    return found.group(1).split() if found else otherwise


failed = []
with tempfile.TemporaryDirectory() as folder:
    for arch in archs or said("arch", ["sm_90"]):
        program = f"{folder}/{name}_{arch}"
        virtual = arch.replace("sm_", "compute_")
        target = f"-gencode=arch={virtual},code={virtual}" if arch.endswith("a") else f"-arch={arch}"
        built = subprocess.run([nvcc, "-std=c++17", target, "-o", program, source, *said("options", [])],
                               capture_output=True, text=True, check=False)
        if built.returncode:
            failed.append(f"{arch}: {built.stdout}{built.stderr}")
            continue
        for device in said("device", ["h100"]):
            run = subprocess.run([halfwarp, "run", "--device", device, program], capture_output=True, text=True, timeout=120, check=False)
            if run.returncode or f"{name}: PASSED" not in run.stdout:
                failed.append(f"{arch} on {device}: exit status {run.returncode}\n{run.stdout}{run.stderr}")
            metrics = dict(m.split("=") for m in said("profile", []))
            if not metrics:
                continue
            told = subprocess.run([halfwarp, "profile", "--device", device, "--metrics", ",".join(metrics), program], capture_output=True,
                                  text=True, timeout=120, check=False).stdout
            for metric, value in metrics.items():
                if not re.search(rf"^ *{re.escape(metric)} +\S+ +{value}$", told, re.M):
                    failed.append(f"{arch} on {device}: {metric} is not {value}\n{told}")
print("\n".join(failed) or f"{name}: passed")
sys.exit(bool(failed))
