#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs and plugins with a static CUDA runtime of their own, over a fake driver.
Arguments: nvcc, a C compiler, folder of the fake libcuda.so.1, our libcudart.so.13, the takeover
library, our libcudart_static.a."""
import os
import subprocess
import sys
import tempfile

NVCC, CC, FAKE, CUDART, TAKEOVER, STATIC = sys.argv[1:7]
HERE = os.path.dirname(os.path.abspath(__file__))
passed = failed = 0


def check(name, condition, detail=""):
    global passed, failed
    passed += bool(condition)
    failed += not condition
    if not condition:
        print(f"FAIL {name}: {detail}")


def build(*command):
    r = subprocess.run(command, capture_output=True, text=True)
    if r.returncode:
        raise SystemExit(r.stdout + r.stderr)


def run(*command, **environment):
    env = dict(os.environ, LD_PRELOAD=TAKEOVER, LD_LIBRARY_PATH=f"{os.path.dirname(CUDART)}:{FAKE}")
    env.update(environment)
    return subprocess.run(command, capture_output=True, text=True, env=env, timeout=60)


def launches(r):
    return [line.split("<<<")[0].split()[1] for line in r.stdout.splitlines() if "<<<" in line]


def plugins(dir):
    for n in (3, 4):
        build(NVCC, "-shared", "-Xcompiler", "-fPIC", f"-DVALUE={n}", f"{HERE}/plugin.cu", "-o",
              f"{dir}/plugin{n}.so")
    build(CC, f"{HERE}/host.c", "-o", f"{dir}/host", "-ldl")
    one, two = f"{dir}/plugin3.so", f"{dir}/plugin4.so"
    r = run(f"{dir}/host", one, two)
    check("plugins", r.returncode == 0 and len(launches(r)) == 4 and not r.stderr,
          f"{r.returncode} {r.stdout} {r.stderr}")
    check("order", [x for x in r.stdout.splitlines() if "plugin " in x] ==
          ["plugin 3: 0", "plugin 4: 0"] * 2, r.stdout)
    build(NVCC, f"{HERE}/app.cu", "-o", f"{dir}/app", "-ldl")
    r = run(f"{dir}/app", one, two)
    check("program and plugins", r.returncode == 0 and len(launches(r)) == 4,
          f"{r.returncode} {r.stdout} {r.stderr}")
    build(NVCC, f"{HERE}/app.cu", "-o", f"{dir}/linked", one, "-ldl", "-Xlinker", f"-rpath={dir}")
    r = run(f"{dir}/linked", one)
    check("plugin linked at start", r.returncode == 0 and len(launches(r)) == 3,
          f"{r.returncode} {r.stdout} {r.stderr}")


def stripped(dir):
    build("strip", "-o", f"{dir}/bare", f"{dir}/app")
    r = run(f"{dir}/bare")
    check("stripped: said once", r.stderr.count("\n") == 1 and r.stderr.startswith("halfwarp: "),
          r.stderr)
    for remedy in ("-cudart shared", "NVCC_APPEND_FLAGS", "libcudart_static.a"):
        check(f"stripped: {remedy}", remedy in r.stderr, r.stderr)
    check("stripped: its calls fail", r.returncode not in (0, -11, -6) and "app: 0" not in r.stdout,
          f"{r.returncode} {r.stdout}")
    build(NVCC, "-cudart", "shared", f"{HERE}/app.cu", "-o", f"{dir}/shared", "-ldl")
    build("strip", f"{dir}/shared")
    r = run(f"{dir}/shared")
    check("stripped with shared runtime", r.returncode == 0 and not r.stderr, r.stderr)


def driver_only(dir):
    """A program that nvcc linked but that calls no runtime is told nothing, stripped or not."""
    open(f"{dir}/d.cpp", "w").write("#include <cstdio>\nint main() { puts(\"plain\"); }\n")
    build(NVCC, f"{dir}/d.cpp", "-o", f"{dir}/d")
    for _ in range(2):
        r = run(f"{dir}/d")
        check("no runtime", r.stdout == "plain\n" and not r.stderr, r.stderr)
        build("strip", f"{dir}/d")


def relinked(dir):
    """With our archive the program needs no takeover, and gets no message when stripped."""
    build(NVCC, f"-L{os.path.dirname(STATIC)}", f"{HERE}/app.cu", "-o", f"{dir}/relinked", "-ldl")
    for name in ("relinked", "relinked stripped"):
        for preload in (TAKEOVER, ""):
            r = run(f"{dir}/relinked", LD_PRELOAD=preload)
            check(f"{name}, {preload}", r.returncode == 0 and len(launches(r)) == 2 and not r.stderr,
                  f"{r.returncode} {r.stdout} {r.stderr}")
        build("strip", f"{dir}/relinked")


def others(dir):
    """Programs without CUDA are left alone."""
    for command in (["/bin/sh", "-c", "echo hello; ls / | wc -l"], ["/bin/true"],
                    [sys.executable, "-c", "import ctypes, ssl, json; print('hello')"]):
        with_it, without = run(*command), run(*command, LD_PRELOAD="")
        check(command[0], (with_it.stdout, with_it.stderr, with_it.returncode) ==
              (without.stdout, without.stderr, without.returncode), with_it.stderr)
    maps = run("/bin/cat", "/proc/self/maps").stdout
    check("no runtime loaded", "takeover" in maps and "libcudart" not in maps, maps)


def main():
    with tempfile.TemporaryDirectory() as dir:
        for part in (plugins, stripped, driver_only, relinked, others):
            part(dir)
    print(f"{passed} passed, {failed} failed")
    return failed != 0


sys.exit(main())
