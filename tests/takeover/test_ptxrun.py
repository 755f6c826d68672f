#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""halfwarp run FILE.ptx: arguments, results, NumPy files, messages. Argument: halfwarp."""
import ast
import os
import struct
import subprocess
import sys
import tempfile

HALFWARP = sys.argv[1]
PTX = """.version 7.0
.target sm_70
.address_size 64
.visible .entry scale(.param .u64 p, .param .f32 f, .param .u32 n)
{
    .reg .pred %q; .reg .b32 %r<5>; .reg .b64 %d<4>; .reg .f32 %f<3>;
    ld.param.u64 %d1, [p]; ld.param.f32 %f1, [f]; ld.param.u32 %r1, [n];
    mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x;
    mad.lo.u32 %r2, %r2, %r3, %r4;
    setp.ge.u32 %q, %r2, %r1;
    @%q bra done;
    mul.wide.u32 %d2, %r2, 4; add.u64 %d1, %d1, %d2;
    ld.global.f32 %f2, [%d1]; mul.f32 %f2, %f2, %f1; st.global.f32 [%d1], %f2;
done:
    ret;
}
.visible .entry widths(.param .u64 a, .param .u64 b, .param .s16 s, .param .f64 d)
{
    .reg .b64 %d<4>; .reg .b16 %h; .reg .f64 %f;
    ld.param.u64 %d1, [a]; ld.param.u64 %d2, [b]; ld.param.s16 %h, [s]; ld.param.f64 %f, [d];
    st.global.u16 [%d1], %h; st.global.f64 [%d2], %f;
    ret;
}
"""
# Lane 0 sets what the others of its warp wait for; %r0 and %r1 live only in blocks that lanes reach later.
WAITING = """.version 8.0
.target sm_75
.address_size 64
.visible .entry wait(.param .u64 flag, .param .u64 out)
{
    .reg .pred %p<4>;
    .reg .b32 %r<20>;
    .reg .b64 %rd<8>;
    ld.param.u64 %rd1, [flag];
    ld.param.u64 %rd2, [out];
    mov.u32 %r10, %tid.x;
    mul.wide.u32 %rd3, %r10, 4;
    add.u64 %rd4, %rd2, %rd3;
    mul.lo.u32 %r11, %r10, %r10;
    setp.eq.u32 %p1, %r10, 0;
    @%p1 bra SET;
WAIT:
    atom.acquire.gpu.global.add.u32 %r12, [%rd1], 0;
    setp.eq.u32 %p2, %r12, 0;
    @%p2 bra WAIT;
    add.u32 %r13, %r11, %r12;
    st.u32 [%rd4], %r13;
    ret;
SET:
    ld.u32 %r0, [%rd4+4];
    ld.u32 %r1, [%rd4+8];
    add.u32 %r14, %r10, 100;
    setp.ne.u32 %p3, %r0, 1;
    @%p3 bra LAST;
    add.u32 %r14, %r0, %r1;
    bra LAST;
LAST:
    add.u32 %r14, %r14, %r1;
    st.u32 [%rd4], %r14;
    st.release.gpu.u32 [%rd1], 1000;
    ret;
}
"""
passed = failed = 0


def check(name, condition, detail=""):
    global passed, failed
    passed += bool(condition)
    failed += not condition
    if not condition:
        print(f"FAIL {name}: {detail}")


def npy(path, dtype, fmt, values):
    header = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': ({len(values)},), }}".encode()
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    with open(path, "wb") as f:
        f.write(b"\x93NUMPY\1\0" + struct.pack("<H", len(header)) + header)
        f.write(struct.pack(f"<{len(values)}{fmt}", *values))


def read_npy(path):
    data = open(path, "rb").read()
    n = struct.unpack_from("<H", data, 8)[0]
    header = ast.literal_eval(data[10:10 + n].decode())
    fmt = {"<f4": "f", "<f8": "d", "<u4": "I", "|u1": "B", "<i2": "h"}[header["descr"]]
    return header, list(struct.unpack_from(f"<{header['shape'][0]}{fmt}", data, 10 + n)), (10 + n) % 64


def main():
    with tempfile.TemporaryDirectory() as dir:
        file = f"{dir}/k.ptx"
        open(file, "w").write(PTX)
        env = dict(os.environ, HALFWARP_CACHE=f"{dir}/cache")
        env.pop("HALFWARP_DEVICE", None)
        env["HALFWARP_TIMEOUT"] = "30"

        def run(*args, path=file):
            return subprocess.run([HALFWARP, "run", path, *args], capture_output=True, text=True,
                                  env=env, timeout=60)

        scale = ["--entry", "scale", "--grid", "2", "--block", "4,1,1"]
        r = run(*scale, "f32[6]=iota", "f32=1.5", "u32=5")
        check("printed", r.stdout == "0: f32[6] = 0 1.5 3 4.5 6 5\n" and r.returncode == 0,
              r.stdout + r.stderr)
        r = run(*scale, "--print", "2", "f32[2x3]=ones", "f32=-2", "u32=6")
        check("shortened", r.stdout == "0: f32[6] = -2 -2 ...\n", r.stdout + r.stderr)
        npy(f"{dir}/in.npy", "<f4", "f", [1, 2, 3, 4, 5])
        r = run(*scale, "--out", f"0={dir}/out.npy", f"f32[]=@{dir}/in.npy", "f32=10", "u32=5")
        check("files", r.returncode == 0 and not r.stdout and
              read_npy(f"{dir}/out.npy") == ({"descr": "<f4", "fortran_order": False, "shape": (5,)},
                                             [10, 20, 30, 40, 50], 0), r.stdout + r.stderr)
        r = run("--entry", "widths", "s16[2]=7", "f64[2]=ramp", "s16=-300", "f64=0.1")
        check("widths", r.stdout == "0: s16[2] = -300 7\n1: f64[2] = 0.10000000000000001 0.5\n",
              r.stdout + r.stderr)
        # The others wait each with an operation of its own, then all with one load of a uniform address.
        for name, how in (("waiting", WAITING),
                          ("waiting on a load", WAITING.replace("atom.acquire.gpu.global.add.u32 %r12, [%rd1], 0", "ld.acquire.gpu.u32 %r12, [%rd1]"))):
            open(f"{dir}/waiting.ptx", "w").write(how)
            r = run("--entry", "wait", "--block", "32", "--print", "32", "u32[1]=0", "u32[32]=iota",
                    path=f"{dir}/waiting.ptx")
            check(name, r.stdout == "0: u32[1] = 1000\n1: u32[32] = " + " ".join(
                [str(1000 + i * i) if i else "5" for i in range(32)]) + "\n", r.stdout + r.stderr)
        open(f"{dir}/nested.ptx", "w").write(""".version 8.0
.target sm_75
.address_size 64
.extern .func (.param .b32 r) __cudaCDP2DeviceSynchronize();
.visible .entry parent(.param .u64 p) { .param .b32 r; call (r), __cudaCDP2DeviceSynchronize; ret; }
""")
        r = run("--entry", "parent", "u64[1]=0", path=f"{dir}/nested.ptx")
        check("nested", r.returncode != 0 and "a call of '__cudaCDP2DeviceSynchronize' is not supported" in
              r.stderr, r.stdout + r.stderr)
        for what, declared, used in (
                ("function", ".extern .func absent();", "call absent;"),
                ("variable", ".extern .global .align 4 .b32 absent;", "ld.global.u32 %r, [absent];")):
            open(f"{dir}/extern.ptx", "w").write(f".version 8.0\n.target sm_75\n.address_size 64\n{declared}\n"
                                                 f".visible .entry k() {{ .reg .b32 %r; {used} ret; }}\n")
            r = run("--entry", "k", path=f"{dir}/extern.ptx")
            check(f"missing extern {what}", r.returncode != 0 and f"unresolved extern {what} 'absent', needed by 'k'" in
                  r.stderr and "(218)" in r.stderr and ":4:" in r.stderr, r.stdout + r.stderr)
        one = run(*scale, "f32[4]=random(3)", "f32=1", "u32=4").stdout
        check("random", one == run(*scale, "f32[4]=random(3)", "f32=1", "u32=4").stdout and
              one != run(*scale, "f32[4]=random(4)", "f32=1", "u32=4").stdout and
              all(0 <= float(x) < 1 for x in one.split("=")[1].split()), one)
        for args, words in (
                (["--entry", "scal"], "did you mean scale?; it has: scale, widths"),
                (["--entry", "scale", "f32[4]=iota", "f32=1"], "takes 3 arguments, not 2"),
                (["--entry", "scale", "f32[4]=iota", "f64=1", "u32=1"], "has 4 bytes, not 8"),
                ([*scale, f"f64[]=@{dir}/in.npy", "f32=1", "u32=1"], "holds f32, not f64"),
                ([*scale, f"f32[4]=@{dir}/in.npy", "f32=1", "u32=1"], "holds 5 elements, not 4"),
                (["--entry", "scale", "--block", "5000", "f32[1]=0", "f32=1", "u32=1"],
                 "launch: invalid argument (1)"),
                ([*scale, "f32[4]=iota", "f32=1", "u32=100000000", "--grid", "9999999"], "(700)")):
            r = run(*args)
            check(words, r.returncode != 0 and words in r.stderr, f"{r.returncode} {r.stderr}")
        open(f"{dir}/bad.ptx", "w").write(PTX.replace("mul.f32", "frob.f32"))
        r = run(*scale, "f32[1]=0", "f32=1", "u32=1", path=f"{dir}/bad.ptx")
        check("syntax", r.returncode == 1 and "bad.ptx:13:" in r.stderr and "frob" in r.stderr and
              r.stderr.count("error: unknown") == 1 and "^" in r.stderr, r.stderr)
        r = run("--entry", "k", path=f"{dir}/none.ptx")
        check("absent", r.returncode == 1 and "none.ptx" in r.stderr, r.stderr)
    print(f"{passed} passed, {failed} failed")
    return failed != 0


sys.exit(main())
