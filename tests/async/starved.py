#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""mbarriers that nobody completes end the launch with what they lack; those that are only late do not. Argument: halfwarp."""
import os
import subprocess
import sys
import tempfile

HEAD = """.version 8.6
.target sm_90
.address_size 64
.shared .align 8 .b64 bar[2];
.visible .entry k(.param .u64 out) %s
{
    .reg .pred %%p<9>; .reg .b32 %%r<20>; .reg .b64 %%d<20>;
    ld.param.u64 %%d1, [out]; mov.u32 %%r1, %%tid.x; mov.u32 %%r2, %%ctaid.x; setp.eq.u32 %%p1, %%r1, 0;
    @%%p1 mbarrier.init.shared.b64 [bar], 2; @%%p1 mbarrier.init.shared.b64 [bar+8], 1; bar.sync 0;
"""
WAIT = "W: mbarrier.try_wait.parity.shared.b64 %p2, [bar], 0; @!%p2 bra W;\n"
ONE = "@%p1 mbarrier.arrive.shared.b64 _, [bar];\n"
TWO = ".reqnctapercluster 2, 1, 1"
# The body, the cluster, what is said. None: the launch ends well.
CASES = {
    "one arrival lacks": (ONE + WAIT, "", "warp 0 waits at the mbarrier at offset 0 of shared memory (1 of 2 arrivals, 0 bytes to come)"),
    "bytes lack": ("@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [bar], 64;\n" + ONE + WAIT, "", "(0 of 2 arrivals, 64 bytes to come)"),
    "one thread waits, the others for it": ("@!%p1 bra J;\n" + WAIT + "J: bar.sync 0;\n", "", "31 threads"),
    "the cluster": ("setp.eq.u32 %p3, %r2, 1; @!%p3 bra J;\n" + WAIT + "J: barrier.cluster.arrive; barrier.cluster.wait;\n", TWO,
                    "in block 1 of the cluster warp 0 waits at the mbarrier"),
    "late: a clock": (ONE + """@!%p1 bra J; mov.u64 %d3, %globaltimer; add.u64 %d3, %d3, 11000000000;
        L: mov.u64 %d4, %globaltimer; setp.lt.u64 %p4, %d4, %d3; @%p4 bra L; mbarrier.arrive.shared.b64 _, [bar]; J:\n""" + WAIT, "", None),
    "late: a flag of another block": ("""setp.eq.u32 %p3, %r2, 0; @%p3 bra J; @!%p1 bra E; mov.u64 %d3, %globaltimer; add.u64 %d3, %d3, 11000000000;
        L: mov.u64 %d4, %globaltimer; setp.lt.u64 %p4, %d4, %d3; @%p4 bra L; st.volatile.global.u32 [%d1], 1; bra E;
        J: @!%p1 bra K; F: ld.volatile.global.u32 %r5, [%d1]; setp.eq.u32 %p5, %r5, 0; @%p5 bra F;
        mbarrier.arrive.shared.b64 _, [bar]; mbarrier.arrive.shared.b64 _, [bar]; K:\n""" + WAIT + "E:\n", "", None),
}


def main():
    running, failed = [], 0
    with tempfile.TemporaryDirectory() as folder:
        for n, (name, (body, cluster, words)) in enumerate(CASES.items()):
            with open(f"{folder}/{n}.ptx", "w") as f:
                f.write(HEAD % cluster + body + " ret;\n}\n")
            env = os.environ | {"HALFWARP_TIMEOUT": "60", "HALFWARP_CACHE": "off", "HALFWARP_WORKERS": "2"}
            running.append((name, words, subprocess.Popen(
                [sys.argv[1], "run", f"{folder}/{n}.ptx", "--entry", "k", "--grid", "2", "--block", "32", "u32[64]=0"],
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env)))
        for name, words, p in running:
            text = p.communicate()[0]
            good = p.returncode == 0 if words is None else p.returncode == 1 and "barrier deadlock" in text and words in text
            failed += not good
            if not good:
                print(f"FAIL {name}: exit {p.returncode}\n{text}")
    print(f"{len(running) - failed} passed, {failed} failed")
    return failed


sys.exit(main() != 0)
