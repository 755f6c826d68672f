#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""halfwarp-ptxas: checks PTX, leaves it as it is, and is named to programs. Arguments: halfwarp-ptxas, halfwarp."""
import os
import subprocess
import sys
import tempfile

ASSEMBLER, HALFWARP = sys.argv[1:3]
HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"
GOOD = HEAD + ".visible .entry k() { ret; }\n"
BAD = HEAD + ".visible .entry k() {\n  .reg .u32 %r;\n  add.u99 %r, %r, 1;\n  ret; }\n"
OPEN = HEAD + ".extern .func f();\n.visible .entry k() { call f; ret; }\n"
passed = failed = 0


def check(name, condition, detail=""):
    global passed, failed
    passed += bool(condition)
    failed += not condition
    if not condition:
        print(f"FAIL {name}: {detail}")


def run(*command, **environment):
    env = {k: v for k, v in os.environ.items() if not k.startswith("TRITON_")}
    return subprocess.run(command, capture_output=True, text=True, env={**env, **environment}, timeout=60)


with tempfile.TemporaryDirectory() as dir:
    for name, text in (("good", GOOD), ("bad", BAD), ("open", OPEN)):
        open(f"{dir}/{name}.ptx", "w").write(text)
    out = f"{dir}/out"
    for given in (["-lineinfo", "--fmad=false", "-v", "--opt-level", "0", "--regAllocOptLevel=2", "--gpu-name=sm_90", f"{dir}/good.ptx", "-o", out],
                  ["-arch", "sm_80", "-O", "3", "-maxrregcount", "32", f"--output-file={out}", f"{dir}/good.ptx"]):
        r = run(ASSEMBLER, *given)
        check(f"good {given[0]}", r.returncode == 0 and open(out).read() == GOOD + "\0", f"{r.returncode} {r.stderr}")
        check(f"verbose {given[0]}", ("entry function 'k'" in r.stderr) == ("-v" in given), r.stderr)
        os.remove(out)
    r = run(ASSEMBLER, f"{dir}/bad.ptx", "-o", out)
    check("bad", r.returncode == 255 and "bad.ptx:6:" in r.stderr and not os.path.exists(out), f"{r.returncode} {r.stderr}")
    r = run(ASSEMBLER, f"{dir}/open.ptx", "-o", out)
    check("open", r.returncode == 255 and not os.path.exists(out), f"{r.returncode} {r.stderr}")
    r = run(ASSEMBLER, "-c", f"{dir}/open.ptx", "-o", out)
    check("relocatable", r.returncode == 0 and open(out).read() == OPEN + "\0", f"{r.returncode} {r.stderr}")
    check("no input", run(ASSEMBLER, "-v").returncode == 1)
    check("no such file", run(ASSEMBLER, f"{dir}/absent.ptx", "-o", out).returncode == 255)
    check("no place", run(ASSEMBLER, f"{dir}/good.ptx", "-o", f"{dir}/no/place").returncode == 1)
    check("version", "release 13.0" in run(ASSEMBLER, "--version").stdout)
    show = ["sh", "-c", "echo $TRITON_PTXAS_PATH; echo $TRITON_PTXAS_BLACKWELL_PATH"]
    r = run(HALFWARP, "run", *show)
    check("named to programs", [os.path.realpath(p) for p in r.stdout.splitlines()] == [os.path.realpath(ASSEMBLER)] * 2, r.stdout + r.stderr)
    r = run(HALFWARP, "run", *show, TRITON_PTXAS_PATH="/mine")
    check("what is set stays", r.stdout.splitlines()[0] == "/mine", r.stdout + r.stderr)
print(f"{passed} passed, {failed} failed")
sys.exit(failed > 0)
