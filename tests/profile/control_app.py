# SPDX-License-Identifier: Apache-2.0
"""A program for the profiler: launches kernels of a PTX file. control_app.py FILE NAME THREADS..."""
import ctypes
import sys

cu = ctypes.CDLL('libcuda.so.1')


def call(name, *arguments):
    status = getattr(cu, name)(*arguments)
    if status:
        sys.exit('%s: error %d' % (name, status))


context, module, data, kernel = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_uint64(), ctypes.c_void_p()
call('cuInit', 0)
call('cuDevicePrimaryCtxRetain', ctypes.byref(context), 0)
call('cuCtxSetCurrent', context)
call('cuCtxSetLimit', 0, ctypes.c_size_t(32768))
with open(sys.argv[1], 'rb') as f:
    call('cuModuleLoadData', ctypes.byref(module), f.read() + b'\0')
call('cuMemAlloc_v2', ctypes.byref(data), ctypes.c_size_t(4096))
arguments = (ctypes.c_void_p * 1)(ctypes.cast(ctypes.pointer(data), ctypes.c_void_p))
for i in range(2, len(sys.argv), 2):
    call('cuModuleGetFunction', ctypes.byref(kernel), module, sys.argv[i].encode())
    call('cuLaunchKernel', kernel, 1, 1, 1, int(sys.argv[i + 1]), 1, 1, 0, None, arguments, None)
    call('cuCtxSynchronize')
