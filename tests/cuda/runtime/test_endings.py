#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs that end in every way, with and without compiled code on disk: none crashes, hangs or says anything.
Arguments: nvcc, halfwarp, then modes (default: all)."""
import os
import signal
import subprocess
import sys
import tempfile

NVCC, HALFWARP = sys.argv[1:3]
WANTED = sys.argv[3:]
SOURCE = os.path.dirname(os.path.abspath(__file__)) + "/endings.cu"
# Mode: exit status, standard output, and when to end, in microseconds after the launches.
WHENS = [0, 2000, 7000, 15000, 30000, 50000, 90000]
MODES = {
    "end_of_main": (7, "", WHENS),
    "exit_elsewhere": (7, "", WHENS),
    "exit_in_callback": (7, "", [0]),
    "quick": (7, "", [0, 20000]),
    "at_once": (7, "", [0, 20000]),
    "aborts": (-signal.SIGABRT, "", [0, 20000]),
    "without_main": (7, "", [0]),
    "child_that_execs": (7, "", [0]),
    "child_that_calls": (7, "", [0]),
    "first_call_in_child": (7, "", [0]),
    "interrupted": (-signal.SIGINT, "", [0]),
    "handled": (7, "", [0]),
    "reset": (7, "", [0]),
    # Objects made after the first call end before the runtime does; those made before it come too late (4,
    # cudaErrorCudartUnloading).
    "destructors": (7, "handler 0\nlate 0\nearly 4\n", [0]),
}
passed = failed = 0


def check(app, mode, when, cache):
    global passed, failed
    status, printed, _ = MODES[mode]
    try:
        r = subprocess.run([HALFWARP, "run", app, mode, str(when)], capture_output=True, text=True, timeout=60,
                           env=dict(os.environ, HALFWARP_CACHE=cache),
                           preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
        good = r.returncode == status and r.stdout == printed and r.stderr == ""
        detail = f"exit {r.returncode}\n{r.stdout}{r.stderr}"
    except subprocess.TimeoutExpired:
        good, detail = False, "no end after 60 s"
    passed += good
    failed += not good
    if not good:
        print(f"FAIL {mode} {when} us, cache {cache}: {detail}")


def main():
    with tempfile.TemporaryDirectory() as folder:
        app = folder + "/endings"
        subprocess.run([NVCC, "-arch=sm_90", SOURCE, "-o", app], check=True)
        for cache in ("off", folder + "/cache"):
            for mode, (_, _, whens) in MODES.items():
                if not WANTED or mode in WANTED:
                    for when in whens:
                        check(app, mode, when, cache)
    print(f"{passed} passed, {failed} failed")
    return failed != 0


sys.exit(main())
