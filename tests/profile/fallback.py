# SPDX-License-Identifier: Apache-2.0
"""What is counted does not depend on the code that runs: warps that leave their first code because a sum of 32 bits wraps, or because
their lanes must not wait for one another, count the same. fallback.py HALFWARP; run with --app it is the program."""
import csv
import ctypes
import io
import os
import subprocess
import sys

PTX = b'''.version 7.0
.target sm_70
.address_size 64
// Three times out[lane] += in[offset + 4 * lane] with a 32-bit sum; the second time it wraps at lane 16.
.visible .entry wrap(.param .u64 in, .param .u64 out, .param .u32 far)
{
    .reg .pred %p<4>; .reg .b32 %r<9>; .reg .b64 %x<9>;
    ld.param.u64 %x1, [in];
    ld.param.u64 %x2, [out];
    ld.param.u32 %r1, [far];
    mov.u32 %r2, %tid.x;
    shl.b32 %r3, %r2, 2;
    mov.u32 %r4, 0;
again:
    setp.eq.u32 %p1, %r4, 1;
    selp.u32 %r5, %r1, 0, %p1;
    add.u32 %r6, %r5, %r3;
    cvt.u64.u32 %x3, %r6;
    add.u64 %x4, %x1, %x3;
    ld.global.u32 %r7, [%x4];
    setp.lt.u32 %p2, %r2, 16;
    @%p2 bra half;
    add.u32 %r7, %r7, 1;
half:
    cvt.u64.u32 %x5, %r3;
    add.u64 %x6, %x2, %x5;
    st.global.u32 [%x6], %r7;
    add.u32 %r4, %r4, 1;
    setp.lt.u32 %p3, %r4, 3;
    @%p3 bra again;
    ret;
}
// A lock of each lane's own turn: only one lane may be inside.
.visible .entry lock(.param .u64 data, .param .u64 count, .param .u32 unused)
{
    .reg .pred %p<3>; .reg .b32 %r<9>; .reg .b64 %x<9>;
    ld.param.u64 %x1, [data];
    ld.param.u64 %x2, [count];
spin:
    atom.global.cas.b32 %r1, [%x1], 0, 1;
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra spin;
    ld.volatile.global.u32 %r2, [%x2];
    add.u32 %r2, %r2, 1;
    st.volatile.global.u32 [%x2], %r2;
    membar.gl;
    atom.global.exch.b32 %r3, [%x1], 0;
    ret;
}
'''
FAR = 0xffffffc0


def application():
    cu = ctypes.CDLL('libcuda.so.1')

    def call(name, *arguments):
        status = getattr(cu, name)(*arguments)
        if status:
            sys.exit('%s: error %d' % (name, status))

    context, module, data, out = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_uint64(), ctypes.c_uint64()
    call('cuInit', 0)
    call('cuDevicePrimaryCtxRetain', ctypes.byref(context), 0)
    call('cuCtxSetCurrent', context)
    call('cuModuleLoadData', ctypes.byref(module), PTX)
    call('cuMemAlloc_v2', ctypes.byref(data), ctypes.c_size_t((1 << 32) + 256))
    call('cuMemAlloc_v2', ctypes.byref(out), ctypes.c_size_t(4096))
    call('cuMemsetD8_v2', out, 0, ctypes.c_size_t(4096))
    call('cuMemsetD8_v2', data, 0, ctypes.c_size_t(4096))
    for name, far, threads in ((b'wrap', 0, 64), (b'wrap', FAR, 64), (b'lock', 0, 64)):
        f = ctypes.c_void_p()
        call('cuModuleGetFunction', ctypes.byref(f), module, name)
        arguments = [data, out, ctypes.c_uint32(far)]
        pointers = (ctypes.c_void_p * 3)(*(ctypes.cast(ctypes.byref(a), ctypes.c_void_p) for a in arguments))
        call('cuLaunchKernel', f, 1, 1, 1, threads, 1, 1, 0, None, pointers, None)
        call('cuCtxSynchronize')
        if name == b'wrap':
            call('cuMemsetD8_v2', out, 0, ctypes.c_size_t(4))
    total = ctypes.c_uint32()
    call('cuMemcpyDtoH_v2', ctypes.byref(total), out, ctypes.c_size_t(4))
    print('counted', total.value)
    return total.value != 64


METRICS = ['inst_executed', 'thread_inst_executed', 'not_predicated_off_thread_inst_executed', 'divergent_branch', 'global_load_requests',
           'l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum', 'l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum', 'hw__global_st_bytes_requested',
           'hw__global_ld_bytes_requested']


def main(halfwarp):
    bad = 0
    for workers, tier in (('1', None), ('2', None), ('1', 'first'), ('1', 'second')):
        environment = dict(os.environ)
        if tier:
            environment['HALFWARP_TIER'] = tier
        out = subprocess.run([halfwarp, 'profile', '-d', 'v100', '-j', workers, '--csv', '--metrics', ','.join(METRICS), sys.executable,
                              os.path.abspath(__file__), '--app'], stdout=subprocess.PIPE, text=True, check=True, env=environment).stdout
        rows = list(csv.DictReader(io.StringIO(out[out.index('"ID"'):])))
        got = [[float(r['Metric Value']) for r in rows[i:i + len(METRICS)]] for i in range(0, len(rows), len(METRICS))]
        # 2 warps. Before the loop 6 instructions, in it 8 to the branch, 1 that half of warp 0's lanes do (warp 1's lanes all do), 6
        # after it, and the end. Lanes that do not take a branch are not on: 16 of warp 0's and warp 1's at the first, all at the last
        # turn's second. Sectors: 128 bytes are 4. The wrapped load of warp 0 has 64 bytes at the end and 64 at the beginning; warp 1's
        # lies in one piece, its lanes beyond the wrap.
        per_warp, loops = 7, 3
        instructions = 2 * (per_warp + loops * (8 + 1 + 6))
        threads = 32 * instructions - loops * 16
        on = threads - loops * (16 + 32) - 64
        want = [instructions, threads, on, loops, 2 * loops, 8 * loops, 8 * loops, 256 * loops, 256 * loops]
        for launch in (0, 1):
            if got[launch] != want:
                bad += 1
                print('wrap %d, %s workers, tier %s: %r, not %r' % (launch, workers, tier, got[launch], want))
        # Each of 64 threads stores and loads once, whoever waits for whom.
        if got[2][7:] != [256, 256]:
            bad += 1
            print('lock: %r' % got[2])
    print('%d differ' % bad)
    return bad != 0


if __name__ == '__main__':
    sys.exit(application() if sys.argv[1:] == ['--app'] else main(sys.argv[1]))
