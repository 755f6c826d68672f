#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Run-time compilers and static runtimes in shared objects, all of them stand-ins made here: NVRTC answers PTX for
machine code, nvJitLink's calls reach ours, LTO-IR goes back to theirs, and each object has a last error of its own.
Arguments: a C compiler, folder of the fake libcuda.so.1, our libcudart.so.13, the takeover library, our
libhalfwarp-jitlink.so."""
import ctypes
import os
import subprocess
import sys
import tempfile

CC, FAKE, CUDART, TAKEOVER, JITLINK = sys.argv[1:6]
passed = failed = 0

# NVRTC's functions, in an object that exports them or holds them.
NVRTC = r"""
#include <string.h>
#define FN __attribute__((noipa)) int
FN nvrtcGetPTXSize(void *p, size_t *n) { *n = 5; return p != 0; }
FN nvrtcGetPTX(void *p, char *to) { memcpy(to, ".ptx", 5); return p != 0; }
FN nvrtcGetCUBINSize(void *p, size_t *n) { *n = 6; return p != 0; }
FN nvrtcGetCUBIN(void *p, char *to) { memcpy(to, "\177ELF?", 6); return p != 0; }
"""
# As in NVIDIA's library, every entry is one jump to what does the work.
LINKER = r"""
#include <stdio.h>
#include <string.h>
static const char ptx[] = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry from_lto() { ret; }\n";
int real_create(void **h, unsigned n, const char **o)
{
    for (unsigned i = 0; i < n; i++) printf("real option %s\n", o[i]);
    *h = (void *)0x1234;
    return 0;
}
int real_destroy(void **h) { printf("real destroy\n"); *h = 0; return 0; }
int real_add(void *h, int type, const void *d, size_t n, const char *name) { printf("real add %d %zu %s\n", type, n, name); return 0; }
int real_complete(void *h) { return 0; }
int real_size(void *h, size_t *n) { *n = sizeof ptx; return 0; }
int real_ptx(void *h, char *to) { memcpy(to, ptx, sizeof ptx); return 0; }
#define ENTRY(name, to) __asm__(".globl " #name "\n.type " #name ", @function\n.p2align 4\n" #name ":\n.byte 0xe9\n.long " #to " - . - 4\n.size " #name ", . - " #name "\n");
#define BOTH(name, to) ENTRY(name, to) ENTRY(__##name##_12_9, to)
BOTH(nvJitLinkCreate, real_create) BOTH(nvJitLinkDestroy, real_destroy) BOTH(nvJitLinkAddData, real_add)
BOTH(nvJitLinkComplete, real_complete) BOTH(nvJitLinkGetLinkedPtxSize, real_size) BOTH(nvJitLinkGetLinkedPtx, real_ptx)
BOTH(nvJitLinkGetLinkedCubinSize, real_size) BOTH(nvJitLinkGetLinkedCubin, real_ptx)
"""
# A static runtime: hidden functions that must never run.
RUNTIME = r"""
#define FN __attribute__((visibility("hidden"), noipa)) int
#define BODY { __asm__ volatile("ud2"); return -1; }
FN cudaSetDevice(int d) BODY
FN cudaGetLastError(void) BODY
FN cudaPeekAtLastError(void) BODY
int plug_fail(void) { return cudaSetDevice(99); }
int plug_last(void) { return cudaGetLastError(); }
int plug_peek(void) { return cudaPeekAtLastError(); }
"""
HOST = r"""
#include <stdio.h>
#include <string.h>
#ifdef LOADED
#include <dlfcn.h>
static int (*nvrtcGetPTX)(void *, char *), (*nvrtcGetCUBIN)(void *, char *);
static int (*nvrtcGetPTXSize)(void *, size_t *), (*nvrtcGetCUBINSize)(void *, size_t *);
#else
int nvrtcGetPTX(void *, char *), nvrtcGetCUBIN(void *, char *), nvrtcGetPTXSize(void *, size_t *), nvrtcGetCUBINSize(void *, size_t *);
#endif
int main(int argc, char **argv)
{
    char text[16] = "";
    size_t n = 0;
#ifdef LOADED
    void *h = dlopen(argv[1], RTLD_NOW);
    nvrtcGetPTX = dlsym(h, "nvrtcGetPTX"); nvrtcGetCUBIN = dlsym(h, "nvrtcGetCUBIN");
    nvrtcGetPTXSize = dlsym(h, "nvrtcGetPTXSize"); nvrtcGetCUBINSize = dlsym(h, "nvrtcGetCUBINSize");
#endif
    int a = nvrtcGetCUBINSize(0, &n), b = nvrtcGetCUBIN(0, text);
    printf("%d %d %zu %s\n", a, b, n, text);
    return nvrtcGetPTX(0, text) + nvrtcGetPTXSize(0, &n);
}
"""
UNIT = b".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry here() { ret; }\n"


def check(name, condition, detail=""):
    global passed, failed
    passed += bool(condition)
    failed += not condition
    if not condition:
        print(f"FAIL {name}: {detail}")


def build(dir, name, source, *options):
    open(f"{dir}/{name}.c", "w").write(source)
    r = subprocess.run([CC, "-w", f"{dir}/{name}.c", "-o", f"{dir}/{name}", "-ldl", *options], capture_output=True, text=True)
    if r.returncode:
        raise SystemExit(r.stdout + r.stderr)
    return f"{dir}/{name}"


def run(*command):
    folders = ":".join(os.path.dirname(x) for x in (CUDART, JITLINK))
    env = dict(os.environ, LD_PRELOAD=TAKEOVER, LD_LIBRARY_PATH=f"{folders}:{FAKE}")
    return subprocess.run(command, capture_output=True, text=True, env=env, timeout=60)


def nvrtc(dir):
    shared = build(dir, "libnvrtc.so.12", NVRTC, "-shared", "-fPIC", "-O2")
    programs = {"loaded later": [build(dir, "loaded", HOST, "-DLOADED"), shared],
                "linked": [build(dir, "linked", HOST, shared, f"-Wl,-rpath,{dir}")],
                "static": [build(dir, "static", NVRTC + HOST.replace("int nvrtcGetPTX(void *, char *),", "int x,").split("#else")[0] +
                                 "#endif\n" + HOST.split("#endif\n", 1)[1], "-O2")]}
    for how, command in programs.items():
        r = run(*command)
        check(f"nvrtc {how}", r.stdout == "0 0 5 .ptx\n" and r.returncode == 0 and not r.stderr, f"{r.returncode} {r.stdout} {r.stderr}")
    subprocess.run(["strip", shared], check=True)
    r = run(*programs["loaded later"])
    check("nvrtc stripped", r.stdout == "0 0 5 .ptx\n", r.stdout + r.stderr)


LINK = """
import ctypes, sys
path, name, lto = sys.argv[1], sys.argv[2], sys.argv[3] == "lto"
lib = ctypes.CDLL(path)
f = lambda call: lib[name.format(call)]
h, n = ctypes.c_void_p(), ctypes.c_size_t()
options = (ctypes.c_char_p * 2)(b"-arch=sm_80", b"-lto")
unit = %r
print("create", f("Create")(ctypes.byref(h), 2 if lto else 1, options), flush=True)
print("ptx", f("AddData")(h, 2, unit, ctypes.c_size_t(len(unit)), b"unit"), flush=True)
print("lto", f("AddData")(h, 3, b"bitcode", ctypes.c_size_t(7), b"ir"), flush=True)
print("complete", f("Complete")(h), flush=True)
print("size", f("GetLinkedCubinSize")(h, ctypes.byref(n)), flush=True)
image = ctypes.create_string_buffer(n.value)
print("cubin", f("GetLinkedCubin")(h, image), image.raw[:7], b"entry here" in image.raw, b"from_lto" in image.raw, flush=True)
print("destroy", f("Destroy")(ctypes.byref(h)), h.value, flush=True)
""" % UNIT


def linker(dir):
    shared = build(dir, "libnvJitLink.so.12", LINKER, "-shared", "-fPIC", "-O2")
    for name in ("nvJitLink{}", "__nvJitLink{}_12_9"):
        r = run(sys.executable, "-c", LINK, shared, name, "no")
        check(f"linker {name}", r.stdout.splitlines() == ["create 0", "ptx 0", "lto 18", "complete 0", "size 0",
              "cubin 0 b'\\x7fHWLINK' True False", "destroy 0 None"], r.stdout + r.stderr)
    r = run(sys.executable, "-c", LINK, shared, "nvJitLink{}", "lto")
    lines = r.stdout.splitlines()
    check("lto", "cubin 0 b'\\x7fHWLINK' True True" in lines, r.stdout + r.stderr)
    for line in ("real option -lto", "real option -ptx", "real add 3 7 ir", "real destroy"):
        check(f"lto: {line}", line in lines, r.stdout + r.stderr)


ERRORS = """
import ctypes, sys
a, b = (ctypes.CDLL(p) for p in sys.argv[1:3])
print(a.plug_peek(), b.plug_peek(), a.plug_fail(), b.plug_last(), a.plug_peek(), a.plug_last(), a.plug_last(), b.plug_fail(), a.plug_peek(), b.plug_last())
"""


def errors(dir):
    one = build(dir, "one.so", RUNTIME, "-shared", "-fPIC", "-O2")
    two = build(dir, "two.so", RUNTIME, "-shared", "-fPIC", "-O2")
    r = run(sys.executable, "-c", ERRORS, one, two)
    check("last errors", r.stdout.split() == "0 0 101 0 101 101 0 101 0 101".split(), r.stdout + r.stderr)


def main():
    with tempfile.TemporaryDirectory() as dir:
        nvrtc(dir)
        linker(dir)
        errors(dir)
    print(f"{passed} passed, {failed} failed")
    sys.exit(failed > 0)


main()
