#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""nvJitLink's functions as the header describes them: options, inputs, errors and their log, and a linked image that the
driver runs. Arguments: our libhalfwarp-jitlink.so, our libcuda.so.1."""
import ctypes
import struct
import sys
import tempfile

lib, cuda = ctypes.CDLL(sys.argv[1]), ctypes.CDLL(sys.argv[2])
(SUCCESS, UNRECOGNIZED_OPTION, MISSING_ARCH, INVALID_INPUT, PTX_COMPILE) = range(5)
UNRECOGNIZED_INPUT, FINALIZE, NULL_INPUT, INCOMPATIBLE, UNRECOGNIZED_ARCH, LTO_NOT_ENABLED = 8, 9, 10, 11, 16, 18
CUBIN, PTX, LTOIR, FATBIN, OBJECT, LIBRARY, ANY = 1, 2, 3, 4, 5, 6, 10
HEAD = b".version 8.0\n.target sm_80\n.address_size 64\n"
MAIN = HEAD + b""".extern .func (.param .u32 r) twice(.param .u32 x);
.visible .entry k(.param .u64 p) {
  .reg .u64 %a; .reg .u32 %v;
  ld.param.u64 %a, [p]; ld.global.u32 %v, [%a];
  { .param .u32 i; .param .u32 o; st.param.u32 [i], %v; call (o), twice, (i); ld.param.u32 %v, [o]; }
  st.global.u32 [%a], %v; ret; }
"""
TWICE = HEAD + b""".visible .func (.param .u32 r) twice(.param .u32 x) {
  .reg .u32 %v; ld.param.u32 %v, [x]; add.u32 %v, %v, %v; st.param.u32 [r], %v; ret; }
"""
passed = failed = 0


def check(name, got, want):
    global passed, failed
    passed += got == want
    failed += got != want
    if got != want:
        print(f"FAIL {name}: {got!r}, not {want!r}")


class Linker:
    def __init__(self, *options):
        self.h = ctypes.c_void_p()
        array = (ctypes.c_char_p * len(options))(*[o.encode() for o in options])
        self.status = lib.nvJitLinkCreate(ctypes.byref(self.h), len(options), array)

    def add(self, kind, data, name=b"input"):
        return lib.nvJitLinkAddData(self.h, kind, data, ctypes.c_size_t(len(data)), name)

    def complete(self):
        return lib.nvJitLinkComplete(self.h)

    def bytes(self, what):
        n = ctypes.c_size_t()
        status = getattr(lib, f"nvJitLinkGet{what}Size")(self.h, ctypes.byref(n))
        buffer = ctypes.create_string_buffer(n.value + 1)
        return (getattr(lib, f"nvJitLinkGet{what}")(self.h, buffer) or status), buffer.raw[:n.value]


def options():
    cases = [(["-arch=sm_90"], SUCCESS), (["-arch=sm_90a", "-O3", "-g", "-lineinfo"], SUCCESS), (["-arch=compute_100f"], SUCCESS),
             (["--arch=sm_75", "-maxrregcount=32", "-ftz=true", "-Xptxas=-v", "-kernels-used=a,b"], SUCCESS), ([], MISSING_ARCH),
             (["-time"], MISSING_ARCH), (["-arch=sm_x"], UNRECOGNIZED_ARCH), (["-arch=sm_90x"], UNRECOGNIZED_ARCH),
             (["-arch=sm_90", "-no-such-thing"], UNRECOGNIZED_OPTION), (["-arch=sm_90", "lto"], UNRECOGNIZED_OPTION),
             (["-arch=sm_90", "-ptx"], INCOMPATIBLE), (["-arch=sm_90", "-lto", "-ptx"], SUCCESS)]
    for given, want in cases:
        check(f"options {given}", Linker(*given).status, want)
    check("no handle", lib.nvJitLinkCreate(None, 0, None), NULL_INPUT)
    check("no handle to destroy", lib.nvJitLinkDestroy(None), NULL_INPUT)


def errors():
    l = Linker("-arch=sm_80")
    check("image before linking", l.bytes("LinkedCubin")[0], INVALID_INPUT)
    check("no log", l.bytes("ErrorLog"), (SUCCESS, b""))
    check("bad PTX", l.add(PTX, HEAD + b".visible .entry k() { add.u33 %r1, %r2, %r3; ret; }", b"bad.ptx"), PTX_COMPILE)
    log = l.bytes("ErrorLog")[1]
    check("bad PTX is told", b"bad.ptx:4:" in log and log.endswith(b"\0"), True)
    check("LTO without -lto", Linker("-arch=sm_80").add(LTOIR, b"bitcode"), LTO_NOT_ENABLED)
    check("rubbish", Linker("-arch=sm_80").add(ANY, b"rubbish"), UNRECOGNIZED_INPUT)
    check("broken fatbin", Linker("-arch=sm_80").add(FATBIN, struct.pack("<IHHQ", 0xBA55ED50, 1, 16, 999)), INVALID_INPUT)
    check("library", Linker("-arch=sm_80").add(LIBRARY, b"!<arch>\n"), INVALID_INPUT)
    check("device runtime", Linker("-arch=sm_80").add(LIBRARY, b"!<arch>\n", b"/x/libcudadevrt.a"), SUCCESS)
    check("nothing", Linker("-arch=sm_80").add(PTX, b""), NULL_INPUT)
    l = Linker("-arch=sm_80", "-lto")
    check("LTO-IR alone", l.add(LTOIR, b"bitcode"), INVALID_INPUT)
    check("LTO-IR is told", b"libnvJitLink" in l.bytes("ErrorLog")[1], True)
    l = Linker("-arch=sm_80")
    check("one of two", (l.add(PTX, MAIN), l.complete()), (SUCCESS, FINALIZE))
    check("what is missing", b"twice" in l.bytes("ErrorLog")[1], True)
    check("a missing file", lib.nvJitLinkAddFile(l.h, PTX, b"/no/such/file"), INVALID_INPUT)


def run(image):
    """What the linked kernel makes of 21."""
    ctx, module, f, p, value = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_uint64(), ctypes.c_uint32(21)
    dev = ctypes.c_int()
    calls = [cuda.cuInit(0), cuda.cuDeviceGet(ctypes.byref(dev), 0), cuda.cuDevicePrimaryCtxRetain(ctypes.byref(ctx), dev),
             cuda.cuCtxSetCurrent(ctx), cuda.cuModuleLoadData(ctypes.byref(module), image),
             cuda.cuModuleGetFunction(ctypes.byref(f), module, b"k"), cuda.cuMemAlloc_v2(ctypes.byref(p), ctypes.c_size_t(4)),
             cuda.cuMemcpyHtoD_v2(p, ctypes.byref(value), ctypes.c_size_t(4))]
    params = (ctypes.c_void_p * 1)(ctypes.cast(ctypes.byref(p), ctypes.c_void_p))
    calls.append(cuda.cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, None, params, None))
    calls.append(cuda.cuMemcpyDtoH_v2(ctypes.byref(value), p, ctypes.c_size_t(4)))
    check("driver calls", calls, [0] * len(calls))
    return value.value


def links():
    l = Linker("-arch=sm_80")
    check("two units", (l.add(PTX, MAIN), l.add(PTX, TWICE + b"\0"), l.complete()), (SUCCESS, SUCCESS, SUCCESS))
    check("once only", l.complete(), INVALID_INPUT)
    status, image = l.bytes("LinkedCubin")
    check("image", status, SUCCESS)
    check("it runs", run(image), 42)
    again = Linker("-arch=sm_80")
    check("an image as input", (again.add(CUBIN, image), again.complete()), (SUCCESS, SUCCESS))
    check("the same", again.bytes("LinkedCubin")[1], image)
    with tempfile.NamedTemporaryFile(suffix=".ptx") as f:
        f.write(TWICE)
        f.flush()
        l = Linker("-arch=sm_80")
        check("a file", (lib.nvJitLinkAddFile(l.h, PTX, f.name.encode()), l.add(ANY, MAIN), l.complete()), (SUCCESS, SUCCESS, SUCCESS))
    check("destroy", (lib.nvJitLinkDestroy(ctypes.byref(l.h)), l.h.value), (SUCCESS, None))


options()
errors()
links()
print(f"{passed} passed, {failed} failed")
sys.exit(failed > 0)
