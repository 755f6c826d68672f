#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""halfwarp run and halfwarp env, from an installed layout with a fake driver.
Arguments: halfwarp, halfwarp-ptxrun, fake libcuda.so.1, libcudart.so.13, libcudart.so.12, the
takeover library."""
import os
import shutil
import subprocess
import sys
import tempfile

HALFWARP, PTXRUN, CUDA, CUDART13, CUDART12, TAKEOVER = sys.argv[1:7]
passed = failed = 0


def check(name, condition, detail=""):
    global passed, failed
    passed += bool(condition)
    failed += not condition
    if not condition:
        print(f"FAIL {name}: {detail}")


def run(*command, **environment):
    env = {k: v for k, v in os.environ.items() if not k.startswith("HALFWARP_")}
    env.pop("LD_PRELOAD", None)
    env.update(environment)
    return subprocess.run(command, capture_output=True, text=True, env=env, timeout=60)


def stage(root):
    os.makedirs(f"{root}/bin")
    os.makedirs(f"{root}/lib/halfwarp")
    shutil.copy(HALFWARP, f"{root}/bin/halfwarp")
    for path in (PTXRUN, CUDA, CUDART13, CUDART12, TAKEOVER):
        shutil.copy(path, f"{root}/lib/halfwarp/")
    return f"{root}/bin/halfwarp", os.path.realpath(f"{root}/lib/halfwarp")


def main():
    with tempfile.TemporaryDirectory() as dir:
        hw, lib = stage(f"{dir}/a place 'quoted'")
        show = "import os; print(os.environ.get('{}'))"
        r = run(hw, "run", sys.executable, "-c", show.format("LD_LIBRARY_PATH"),
                LD_LIBRARY_PATH="/before")
        check("library path", r.stdout == f"{lib}:/before\n", r.stdout + r.stderr)
        r = run(hw, "run", "--device", "v100", "--workers", "3", "--timeout", "9", "sh", "-c",
                "echo $HALFWARP_DEVICE $HALFWARP_WORKERS $HALFWARP_TIMEOUT $1; exit 5", "x", "--help")
        check("options", r.stdout == "v100 3 9 --help\n", r.stdout + r.stderr)
        check("status", r.returncode == 5, r.returncode)
        r = run(hw, "run", "sh", "-c", "echo $ASAN_OPTIONS", ASAN_OPTIONS="halt_on_error=0")
        check("sanitizer", r.stdout == "verify_asan_link_order=0:halt_on_error=0\n", r.stdout)
        r = run(hw, "run", "--device", "h10", "true")
        check("unknown device", r.returncode == 2 and "did you mean" in r.stderr, r.stderr)
        r = run(hw, "run", f"{dir}/absent")
        check("absent", r.returncode == 127 and "cannot run" in r.stderr and
              r.stderr.count("\n") == 1, r.stderr)
        open(f"{dir}/x.cu", "w").close()
        r = run(hw, "run", f"{dir}/x.cu")
        check("source", r.returncode == 126 and "nvcc" in r.stderr, r.stderr)
        r = run(hw, "run")
        check("no program", r.returncode == 2, r.stderr)
        for form in ("eval $({} env --device v100)", 'eval "$({} env --device v100)"'):
            script = form.format('"$1"') + "; echo $LD_LIBRARY_PATH; echo $HALFWARP_DEVICE"
            r = run("sh", "-c", script, "sh", hw, LD_LIBRARY_PATH="/before")
            check(form, r.stdout == f"{lib}:/before\nv100\n" and not r.stderr, r.stdout + r.stderr)
        r = run(hw, "env")
        check("env without a device", "HALFWARP_DEVICE" not in r.stdout, r.stdout)
        r = run(hw, "run", "cat", "/proc/self/maps")
        check("preloaded", "libhalfwarp-takeover.so" in r.stdout and "libcudart" not in r.stdout)
        open(f"{dir}/k.ptx", "w").write(".version 9.0\n")
        for args, words in ((["--entry", "k", "f32[4]=odd"], "'odd' is not a number"),
                            (["--entry", "k", "f33[4]=1"], "no type 'f33'"),
                            (["--entry", "k", "f32[0]=1"], "bad number of elements"),
                            (["--entry", "k", f"f32[1]=@{dir}/x.cu"], "no NumPy file"),
                            (["--grid", "0,0,0,0"], "makes no sense"), ([], "--entry NAME")):
            r = run(hw, "run", f"{dir}/k.ptx", *args)
            check(words, r.returncode == 2 and words in r.stderr, f"{r.returncode} {r.stderr}")
        os.remove(f"{lib}/libcuda.so.1")
        r = run(hw, "run", "true")
        check("no driver", r.returncode == 2 and "libcuda.so.1" in r.stderr, r.stderr)
    print(f"{passed} passed, {failed} failed")
    return failed != 0


sys.exit(main())
