# SPDX-License-Identifier: Apache-2.0
"""A program for the profiler that ends in some way: endings_app.py HOW [STREAMS]. First it launches `add` 100 times, a block of 64
threads each; `slow` then has 8 blocks, one after the other, of some seconds."""
import ctypes
import os
import signal
import sys
import threading

PTX = b'''.version 7.0
.target sm_70
.address_size 64
.visible .entry add(.param .u64 data)
{
    .reg .b32 %r<3>; .reg .b64 %x<2>;
    ld.param.u64 %x1, [data];
    red.global.add.u32 [%x1], 1;
    ret;
}
.visible .entry slow(.param .u64 data, .param .u32 n)
{
    .reg .pred %p<2>; .reg .b32 %r<4>; .reg .b64 %x<2>;
    ld.param.u64 %x1, [data]; ld.param.u32 %r1, [n];
again:
    atom.global.add.u32 %r2, [%x1], 1;
    sub.u32 %r1, %r1, 1;
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra again;
    ret;
}
'''


class Program:
    def __init__(self):
        self.cu = ctypes.CDLL('libcuda.so.1')
        self.data, self.context, self.module = ctypes.c_uint64(), ctypes.c_void_p(), ctypes.c_void_p()
        self.call('cuInit', 0)
        self.call('cuDevicePrimaryCtxRetain', ctypes.byref(self.context), 0)
        self.call('cuCtxSetCurrent', self.context)
        self.call('cuModuleLoadData', ctypes.byref(self.module), PTX)
        self.call('cuMemAlloc_v2', ctypes.byref(self.data), ctypes.c_size_t(64))

    def call(self, name, *arguments):
        status = getattr(self.cu, name)(*arguments)
        if status:
            sys.exit('%s: error %d' % (name, status))

    def launch(self, name, blocks, threads, stream, *arguments):
        f = ctypes.c_void_p()
        self.call('cuModuleGetFunction', ctypes.byref(f), self.module, name)
        arguments = (self.data,) + arguments
        pointers = (ctypes.c_void_p * len(arguments))(*(ctypes.cast(ctypes.byref(a), ctypes.c_void_p) for a in arguments))
        self.call('cuLaunchKernel', f, blocks, 1, 1, threads, 1, 1, 0, stream, pointers, None)


def leave():
    ctypes.CDLL(None).exit(3)


def main():
    how, streams = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 1
    p = Program()
    handles = [None]
    for _ in range(streams - 1):
        handles.append(ctypes.c_void_p())
        p.call('cuStreamCreate', ctypes.byref(handles[-1]), 1)
    for i in range(100):
        p.launch(b'add', 1, 64, handles[i % streams])
    p.call('cuCtxSynchronize')
    if how.startswith('signal'):
        os.kill(os.getpid(), int(how[6:]))
    elif how == '_exit':
        os._exit(5)
    elif how == 'abort':
        os.abort()
    elif how == 'fault':
        ctypes.string_at(8)
    elif how == 'thread':
        threading.Thread(target=leave).start()
        signal.pause()
    elif how == 'fork':
        if os.fork() == 0:
            os._exit(0)
        os.wait()
    elif how == 'during':
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        p.launch(b'slow', 8, 32, None, ctypes.c_uint32(int(sys.argv[3])))
        print(os.getpid(), flush=True)
        p.call('cuCtxSynchronize')
    return 0


if __name__ == '__main__':
    sys.exit(main())
