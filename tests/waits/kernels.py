#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kernels whose lanes wait for each other or cannot go on, as PTX: what they give, or what is said of them, on devices
with and without independent thread scheduling. Argument: halfwarp."""
import os
import subprocess
import sys
import tempfile

HALFWARP = sys.argv[1]
LATE, EARLY = "v100", "p100"  # with independent thread scheduling, and without
HEAD = ".version 8.0\n.target sm_75\n.address_size 64\n"
REGS = """    .reg .pred %p<9>; .reg .b32 %r<40>; .reg .b64 %d<20>;
    ld.param.u64 %d1, [out]; mov.u32 %r1, %tid.x; mul.wide.u32 %d2, %r1, 4; add.u64 %d1, %d1, %d2;
    and.b32 %r2, %r1, 1; setp.eq.u32 %p1, %r2, 1;
"""
passed = failed = 0


def run(body, device, args, before="", entry="k", params=".param .u64 out", timeout="10"):
    with tempfile.TemporaryDirectory() as dir:
        with open(f"{dir}/k.ptx", "w") as f:
            f.write(f"{HEAD}{before}\n.visible .entry {entry}({params})\n{{\n{REGS}{body}\n}}\n")
        env = os.environ | {"HALFWARP_DEVICE": device, "HALFWARP_TIMEOUT": timeout, "HALFWARP_CACHE": "off"}
        return subprocess.run([HALFWARP, "run", f"{dir}/k.ptx", "--entry", entry, *args], capture_output=True,
                              text=True, timeout=60, env=env)


def check(name, good, r):
    global passed, failed
    passed += good
    failed += not good
    if not good:
        print(f"FAIL {name}: exit {r.returncode}\n{r.stdout}{r.stderr}")


def gives(name, body, values, *, device=LATE, block=32, **more):
    n = str(len(values))
    r = run(body, device, ["--block", str(block), "--print", n, f"u32[{n}]=0"], **more)
    check(name, r.returncode == 0 and r.stdout == f"0: u32[{n}] = {' '.join(map(str, values))}\n", r)


def says(name, body, *words, device=LATE, block=32, **more):
    r = run(body, device, ["--block", str(block), "u32[64]=0"], **more)
    check(name, r.returncode not in (0, 124) and all(w in r.stderr for w in words), r)


def barriers():
    # Odd lanes' stores are before one barrier, even lanes' loads behind another.
    apart = """
    @%p1 bra ODD;
    barrier.sync 0;
    ld.global.u32 %r3, [%d1+4]; st.global.u32 [%d1], %r3; ret;
ODD:
    st.global.u32 [%d1], 7; barrier.sync 0; ret;"""
    gives("apart", apart, [7] * 32)
    gives("apart, all of a warp arrive with the first", apart, [0, 7] * 16, device=EARLY)
    gives("guarded", """
    @%p1 st.global.u32 [%d1], 7;
    @%p1 barrier.sync 0;
    @!%p1 bar.sync 0;
    @!%p1 ld.global.u32 %r3, [%d1+4];
    @!%p1 st.global.u32 [%d1], %r3;
    ret;""", [7] * 32)
    gives("partial warps", apart, [7] * 20 + [0] * 2, block=20)
    two = """
    add.u32 %r3, %r2, 1;
    barrier.sync %r3;
    st.global.u32 [%d1], 1; ret;"""
    says("lanes at two barriers", two, "barrier deadlock", "barrier 1, where 0 of 32", "barrier 2",
         "16 threads of 1 warps whose others are elsewhere")
    says("a lane does not come", """
    setp.eq.u32 %p2, %r1, 3;
    @%p2 bra OTHER;
    barrier.sync 0; ret;
OTHER:
    barrier.sync 1; ret;""", "barrier deadlock", "31 threads", "1 threads")
    says("too few", """
    setp.lt.u32 %p2, %r1, 32;
    @%p2 bra SOME;
    barrier.sync 1, 96; ret;
SOME:
    barrier.sync 1, 96; ret;""", "barrier deadlock", "64 of 96 threads", block=64)
    says("no such barrier", "    mov.u32 %r3, 16; add.u32 %r3, %r3, %r2; @%p1 bra A; barrier.sync %r3; A: ret;",
         "there is no barrier 16", block=64)
    # Lanes end while others wait, at a counted barrier too; the count is of whole warps.
    gives("ends", """
    @%p1 bra END;
    barrier.sync 1, 64;
    st.global.u32 [%d1], 5; ret;
END:
    exit;""", [5, 0] * 32, block=64)
    gives("reduction in two places", """
    setp.lt.u32 %p2, %r1, 10;
    @%p1 bra ODD;
    barrier.red.popc.u32 %r3, 0, %p2; bra DONE;
ODD:
    barrier.red.popc.u32 %r3, 0, %p1;
DONE:
    st.global.u32 [%d1], %r3; ret;""", [5 + 16] * 32)


def warp_barriers():
    apart = """
    @%p1 bra ODD;
    bar.warp.sync 0xffffffff;
    ld.volatile.global.u32 %r3, [%d1+4]; st.global.u32 [%d1], %r3; ret;
ODD:
    st.volatile.global.u32 [%d1], 7; bar.warp.sync 0xffffffff; ret;"""
    gives("warp barrier apart", apart, [7] * 32)
    says("warp barrier that nobody comes to", """
    @%p1 bra ODD;
    bar.warp.sync 0xffffffff; ret;
ODD:
    barrier.sync 0; ret;""", "barrier deadlock", "16 threads of 1 warps", "lane 0 of warp 0 waits at a warp barrier for lanes 0xffffffff")
    gives("warp barrier, the others end", """
    @%p1 bra ODD;
    bar.warp.sync 0xffffffff;
    st.global.u32 [%d1], 3;
ODD:
    ret;""", [3, 0] * 16)
    spin = """
    setp.eq.u32 %p2, %r1, 0; @%p2 bra FIRST;
    st.volatile.global.u32 [%d1], 9; ret;
FIRST:
    ld.volatile.global.u32 %r3, [%d1+4]; setp.ne.u32 %p3, %r3, 9; @%p3 bra FIRST;
    st.volatile.global.u32 [%d1], 8; ret;"""
    gives("a lane spins for its neighbour", spin, [8] + [9] * 31)
    lock = """
    ld.param.u64 %d3, [out];
AGAIN:
    atom.global.cas.b32 %r3, [%d3+256], 0, 1; setp.ne.u32 %p2, %r3, 0; @%p2 bra AGAIN;
    ld.volatile.global.u32 %r4, [%d3+260]; add.u32 %r4, %r4, 1; st.volatile.global.u32 [%d3+260], %r4;
    membar.gl; atom.global.exch.b32 %r3, [%d3+256], 0;
    st.global.u32 [%d1], 1; ret;"""
    gives("a lock", lock, [1] * 32 + [0] * 33 + [32])
    says("a lock in lock-step", lock, "SIMT livelock", device=EARLY, timeout="50")  # slow beside other work


# Where lanes leave the code that bets on lock-step, registers go from one variant's to the other's. What differs
# between the two: the second does not know that all lanes take one way at `bra B` (a sum of 64 bits that does not
# wrap), so there lanes may wait at B while others spin, and B wants registers that nothing else does. Both must
# write the same registers in the same places.
LAYOUT = """
    ld.param.u32 %r3, [n]; mov.u32 %r4, %ntid.x;
    ld.global.u32 %r30, [%d1]; ld.global.u32 %r31, [%d1+128]; add.u32 %r32, %r30, %r31; mul.lo.u32 %r33, %r32, 3;
    add.u32 %r5, %r1, %r3; cvt.u64.u32 %d4, %r5; cvt.u64.u32 %d5, %r1; sub.u64 %d6, %d4, %d5;
    mul.lo.u32 %r20, %r1, %r1; add.u32 %r21, %r20, 5; setp.gt.u32 %p4, %r21, 40; mul.wide.u32 %d10, %r21, 11;
    setp.gt.u64 %p2, %d6, 100; @%p2 bra B;
    ld.param.u64 %d3, [out];
    @%p1 bra ODD;
WAIT:
    ld.volatile.global.u32 %r6, [%d3+4]; setp.ne.u32 %p3, %r6, 9; @%p3 bra WAIT;
    selp.u32 %r7, 1, 2, %p4; cvt.u32.u64 %r8, %d10; mad.lo.u32 %r8, %r7, 100000, %r8; add.u32 %r8, %r8, %r20;
    st.global.u32 [%d1], %r8; ret;
ODD:
    st.volatile.global.u32 [%d1], 9; ret;
B:
    add.u32 %r9, %r30, %r31; add.u32 %r9, %r9, %r32; mad.lo.u32 %r9, %r33, %r4, %r9;
    st.global.u32 [%d1], %r9; ret;"""


def meetings():
    # Lane 0 waits for a flag that lane 1 sets; shuffles and votes wait for it.
    wait = """
    ld.param.u64 %d3, [out];
    setp.ne.u32 %p2, %r1, 0;
    @%p2 bra OTHERS;
WAIT:
    ld.volatile.global.u32 %r5, [%d3+128]; setp.eq.u32 %p3, %r5, 0; @%p3 bra WAIT;
    bra JOIN;
OTHERS:
    setp.ne.u32 %p4, %r1, 1; @%p4 bra JOIN;
    st.volatile.global.u32 [%d3+128], 1;
JOIN:
    add.u32 %r6, %r1, 100; setp.ge.u32 %p5, %r1, 0;
"""
    for name, code, value in [("shuffle", "shfl.sync.idx.b32 %r7|%p6, %r6, 0, 31, -1;", 100),
                              ("ballot", "vote.sync.ballot.b32 %r7, %p5, -1;", 2 ** 32 - 1),
                              ("match", "match.any.sync.b32 %r7, 3, -1;", 2 ** 32 - 1),
                              ("vote", "setp.eq.u32 %p5, %r1, 0; vote.sync.any.pred %p6, %p5, -1; "
                               "selp.u32 %r7, 1, 0, %p6;", 1)]:
        gives(f"a {name} waits for a lane that spins", f"{wait} {code} st.global.u32 [%d1], %r7; ret;",
              [value] * 32 + [1])


def undefined():
    # A register that each lane sets in a turn of its own, and that nothing set before.
    gives("set by one lane at a time", """
    mov.u32 %r10, 0;
LOOP:
    setp.eq.u32 %p2, %r10, %r1;
    selp.b32 %r20, %r10, %r20, %p2;
    add.u32 %r10, %r10, 1;
    setp.lt.u32 %p3, %r10, 32; @%p3 bra LOOP;
    mul.lo.u32 %r21, %r20, 3;
    st.global.u32 [%d1], %r21; ret;""", [3 * l for l in range(32)])


def layout():
    want = [9 if l & 1 else (1 if l * l + 5 > 40 else 2) * 100000 + (l * l + 5) * 11 + l * l for l in range(32)]
    for n, values in ((7, want), (200, [0] * 32)):
        r = run(LAYOUT, LATE, ["--block", "32", "--print", "32", "u32[64]=0", f"u32={n}"],
                params=".param .u64 out, .param .u32 n")
        text = " ".join(map(str, values))
        check(f"registers of two variants, {n}", r.returncode == 0 and r.stdout.split("\n")[0].startswith(
            f"0: u32[64] = {text}"), r)


CALLS = """
.func (.reg .b32 %r) twice(.reg .b32 %x) { add.u32 %r, %x, %x; ret; }
.func (.reg .b32 %r) waits(.reg .b32 %x) { barrier.sync 0; add.u32 %r, %x, 1; ret; }
.func (.reg .b32 %r) waits_too(.reg .b32 %x) { barrier.sync 0; add.u32 %r, %x, 2; ret; }
.func (.reg .b32 %r) depth(.reg .b32 %x)
{
    .reg .pred %p; .reg .b32 %y;
    setp.eq.u32 %p, %x, 0; mov.u32 %r, 0; @%p ret;
    sub.u32 %y, %x, 1; call (%r), depth, (%y); add.u32 %r, %r, %x; ret;
}
"""


def calls():
    gives("call targets", """
    list: .calltargets twice, waits, waits_too;
    mov.u64 %d3, waits; mov.u64 %d4, waits_too; selp.b64 %d5, %d3, %d4, %p1;
    call (%r3), %d5, (%r1), list;
    mov.u64 %d6, twice; call (%r3), %d6, (%r3), list;
    st.global.u32 [%d1], %r3; ret;""", [2 * (l + (1 if l & 1 else 2)) for l in range(32)], before=CALLS)
    gives("guarded calls", """
    mov.u32 %r3, 50;
    @%p1 call (%r3), depth, (%r1);
    @!%p1 call (%r3), waits_too, (%r1);
    @%p1 barrier.sync 0;
    st.global.u32 [%d1], %r3; ret;""", [l * (l + 1) // 2 if l & 1 else l + 2 for l in range(32)], before=CALLS)
    says("stack overflow", "    mov.u32 %r3, 100000; call (%r3), depth, (%r3); st.global.u32 [%d1], %r3; ret;",
         "stack overflow", "1024 bytes", "cudaLimitStackSize", before=CALLS)
    says("a pointer to no function", """
    list: .calltargets twice;
    mov.u64 %d3, 12345; @%p1 call (%r3), %d3, (%r1), list; ret;""", "invalid program counter", before=CALLS)
    gives("the stack's end", """
    mov.u32 %r9, 0; mov.u32 %r10, 0;
MORE:
    stacksave.u64 %d3;
    add.u32 %r5, %r1, 40; cvt.u64.u32 %d4, %r5;
    alloca.u64 %d5, %d4, 32;
    and.b64 %d6, %d5, 31; cvt.u32.u64 %r6, %d6; add.u32 %r9, %r9, %r6;
    st.local.u32 [%d5], %r1; st.local.u32 [%d5+36], %r10; ld.local.u32 %r7, [%d5]; add.u32 %r9, %r9, %r7;
    stackrestore.u64 %d3;
    add.u32 %r10, %r10, 1; setp.lt.u32 %p2, %r10, 500; @%p2 bra MORE;
    st.global.u32 [%d1], %r9; ret;""", [500 * l for l in range(32)])
    says("alloca of too much", "    alloca.u64 %d3, 100000; st.local.u32 [%d3], %r1; ret;", "stack overflow")


def traps():
    says("a trap", "    setp.eq.u32 %p2, %r1, 5; @%p2 bra T; barrier.sync 0; ret; T: trap;", "(719)")
    says("a breakpoint", "    setp.eq.u32 %p2, %r1, 5; @%p2 bra T; barrier.sync 0; ret; T: brkpt; ret;", "(719)")


barriers()
warp_barriers()
meetings()
undefined()
layout()
calls()
traps()
print(f"{passed} passed, {failed} failed")
sys.exit(failed != 0)
