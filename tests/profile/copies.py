# SPDX-License-Identifier: Apache-2.0
"""Asynchronous, bulk and tensor copies and matrix loads, counted against counts by hand. copies.py HALFWARP; with --app it is the
program."""
import csv
import ctypes
import io
import os
import subprocess
import sys

HEAD = b'''.version 8.0
.target sm_90a
.address_size 64
'''
# Each kernel: its name, threads, body, and what it counts. Lane's number in %r1, data in %x1 (256 bytes aligned), tile in %r2.
KERNEL = '''.visible .entry %s(.param .u64 data, .param .align 64 .b8 map[128])
{
    .reg .pred %%p<4>; .reg .b32 %%r<16>; .reg .b64 %%x<9>;
    .shared .align 128 .b8 tile[32768];
    .shared .align 8 .b64 bar;
    ld.param.u64 %%x1, [data];
    cvta.to.global.u64 %%x1, %%x1;
    mov.u32 %%r1, %%tid.x;
    mov.u32 %%r2, tile;
    mov.u32 %%r3, bar;
    mov.u64 %%x3, map;
    setp.eq.u32 %%p1, %%r1, 0;
    @%%p1 mbarrier.init.shared.b64 [%%r3], 1;
    %s
    ret;
}
'''
LDGSTS = ['smsp__inst_executed_op_ldgsts.sum', 'l1tex__t_sectors_pipe_lsu_mem_global_op_ldgsts.sum',
          'l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ldgsts.sum', 'smsp__sass_l1tex_data_bank_conflicts_pipe_lsu_mem_shared_op_ldgsts.sum',
          'l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum']
LDSM = ['smsp__inst_executed_op_ldsm.sum', 'smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_ldsm.sum',
        'smsp__sass_l1tex_data_bank_conflicts_pipe_lsu_mem_shared_op_ldsm.sum', 'smsp__inst_executed_op_shared_ld.sum']
STSM = ['hw__shared_matrix_st_requests', 'smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_stsm.sum',
        'smsp__sass_l1tex_data_bank_conflicts_pipe_lsu_mem_shared_op_stsm.sum', 'smsp__inst_executed_op_shared_st.sum']
LOAD = ['hw__bulk_ld_copies', 'hw__bulk_ld_sectors', 'hw__bulk_ld_bytes_requested', 'hw__bulk_st_copies']
STORE = ['hw__bulk_st_copies', 'hw__bulk_st_sectors', 'hw__bulk_st_bytes_requested', 'hw__bulk_ld_copies']
REDUCE = ['hw__bulk_red_copies', 'hw__bulk_red_sectors', 'hw__bulk_st_copies', 'hw__bulk_ld_copies']
AT = 'mul.wide.u32 %%x2, %%r1, %d; add.u64 %%x2, %%x1, %%x2; mul.lo.u32 %%r4, %%r1, %d; add.u32 %%r4, %%r4, %%r2;\n    '
BULK = '@%%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%%r2], [%%x1+%d], %d, [%%r3];'
TILE = '@%%p1 cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%%r2], [%%x3, {%%r5, %%r6}], [%%r3];'
WHERE = 'mov.u32 %%r5, %d; mov.u32 %%r6, %d;\n    '
CASES = [
    # 16 bytes a lane side by side: 512 bytes are 16 sectors, and four passes of 8 lanes.
    ('linear', 32, AT % (16, 16) + 'cp.async.cg.shared.global [%r4], [%x2], 16;', LDGSTS, (1, 16, 4, 0, 0)),
    # 4 bytes a lane: 4 sectors, one pass. From half a sector on: 5.
    ('words', 32, AT % (4, 4) + 'cp.async.ca.shared.global [%r4], [%x2], 4;', LDGSTS, (1, 4, 1, 0, 0)),
    ('shifted', 32, AT % (4, 4) + 'cp.async.ca.shared.global [%r4], [%x2+16], 4;', LDGSTS, (1, 5, 1, 0, 0)),
    # To rows of 128 bytes: the 8 lanes of a pass all want the same four banks.
    ('column', 32, AT % (16, 128) + 'cp.async.cg.shared.global [%r4], [%x2], 16;', LDGSTS, (1, 16, 32, 28, 0)),
    # Lanes from 8 on fill with zeros: 128 bytes are read, all is written.
    ('zeros', 32, AT % (16, 16) + 'setp.lt.u32 %p2, %r1, 8; selp.u32 %r5, 16, 0, %p2; cp.async.cg.shared.global [%r4], [%x2], 16, %r5;',
     LDGSTS, (1, 4, 4, 0, 0)),
    ('nothing', 32, AT % (16, 16) + 'mov.u32 %r5, 0; cp.async.cg.shared.global [%r4], [%x2], 16, %r5;', LDGSTS, (1, 0, 4, 0, 0)),
    # Four matrices of 8 rows of 16 bytes; rows 128 bytes apart share four banks, 144 apart none.
    ('rows128', 32, 'mul.lo.u32 %r4, %r1, 128; add.u32 %r4, %r4, %r2; ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r5,%r6,%r7,%r8}, [%r4];',
     LDSM, (1, 32, 28, 0)),
    ('rows144', 32, 'mul.lo.u32 %r4, %r1, 144; add.u32 %r4, %r4, %r2; ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r5,%r6,%r7,%r8}, [%r4];',
     LDSM, (1, 4, 0, 0)),
    ('rows16', 32, 'mul.lo.u32 %r4, %r1, 16; add.u32 %r4, %r4, %r2; ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%r5,%r6}, [%r4];',
     LDSM, (1, 2, 0, 0)),
    ('stored', 32, 'mul.lo.u32 %r4, %r1, 32; add.u32 %r4, %r4, %r2; stmatrix.sync.aligned.m8n8.x4.shared.b16 [%r4], {%r5,%r6,%r7,%r8};',
     STSM, (1, 8, 4, 0)),
    # 256 bytes from half a sector on touch 9 sectors. One thread's copy.
    ('bulk', 64, BULK % (16, 256), LOAD, (1, 9, 256, 0)),
    ('bulk_aligned', 64, BULK % (64, 256), LOAD, (1, 8, 256, 0)),
    # Each of 32 lanes copies 16 bytes, to 32 apart.
    ('bulk_lanes', 32, AT % (32, 16) + 'cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r4], [%x2], 16, [%r3];',
     LOAD, (32, 32, 512, 0)),
    ('bulk_store', 64, '@%p1 cp.async.bulk.global.shared::cta.bulk_group [%x1+32], [%r2], 96;', STORE, (1, 3, 96, 0)),
    ('bulk_reduce', 64, '@%p1 cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%x1+16], [%r2], 128;', REDUCE, (1, 5, 0, 0)),
    # A box of 8 x 4 floats of a tensor of 20 x 10 in rows of 80 bytes. From (0, 0): bytes 0-31, 80-111, 160-191, 240-271: sectors
    # 0; 2, 3; 5; 7, 8. From (16, 8) 4 x 2 of it lie inside: bytes 704-719 and 784-799: sectors 22 and 24. Off the tensor: nothing.
    ('tile', 64, WHERE % (0, 0) + TILE.replace('%%', '%'), LOAD, (1, 6, 128, 0)),
    ('corner', 64, WHERE % (16, 8) + TILE.replace('%%', '%'), LOAD, (1, 2, 32, 0)),
    ('outside', 64, WHERE % (20, 10) + TILE.replace('%%', '%'), LOAD, (1, 0, 0, 0)),
    ('tile_store', 64, WHERE % (0, 1) + '@%p1 cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%x3, {%r5, %r6}], [%r2];',
     STORE, (1, 6, 128, 0)),  # bytes 80-111, 160-191, 240-271, 320-351
    ('tile_reduce', 64, WHERE % (0, 0) + '@%p1 cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [%x3, {%r5, %r6}], [%r2];',
     REDUCE, (1, 6, 0, 0)),
]


def application():
    cu = ctypes.CDLL('libcuda.so.1')

    def call(name, *arguments):
        status = getattr(cu, name)(*arguments)
        if status:
            sys.exit('%s: error %d' % (name, status))

    context, module, data = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_uint64()
    text = HEAD + '\n'.join(KERNEL % (name, body) for name, _, body, _, _ in CASES).encode() + b'\0'
    call('cuInit', 0)
    call('cuDevicePrimaryCtxRetain', ctypes.byref(context), 0)
    call('cuCtxSetCurrent', context)
    call('cuModuleLoadData', ctypes.byref(module), text)
    call('cuMemAlloc_v2', ctypes.byref(data), ctypes.c_size_t(65536))
    call('cuMemsetD8_v2', data, 0, ctypes.c_size_t(65536))
    buffer = ctypes.create_string_buffer(192)
    tensor = (ctypes.c_char * 128).from_buffer(buffer, -ctypes.addressof(buffer) % 64)
    sizes, strides = (ctypes.c_uint64 * 2)(20, 10), (ctypes.c_uint64 * 1)(80)
    box, steps = (ctypes.c_uint32 * 2)(8, 4), (ctypes.c_uint32 * 2)(1, 1)
    call('cuTensorMapEncodeTiled', tensor, 7, 2, data, sizes, strides, box, steps, 0, 0, 0, 0)  # floats
    for name, threads, _, _, _ in CASES:
        f = ctypes.c_void_p()
        call('cuModuleGetFunction', ctypes.byref(f), module, name.encode())
        pointers = (ctypes.c_void_p * 2)(ctypes.cast(ctypes.byref(data), ctypes.c_void_p), ctypes.cast(tensor, ctypes.c_void_p))
        call('cuLaunchKernel', f, 1, 1, 1, threads, 1, 1, 0, None, pointers, None)
        call('cuCtxSynchronize')


def main(halfwarp):
    bad = 0
    metrics = sorted(set(sum((c[3] for c in CASES), [])))
    for level in [], ['--caches']:
        out = subprocess.run([halfwarp, 'profile', '-d', 'h100', *level, '--csv', '--metrics', ','.join(metrics), sys.executable,
                              os.path.abspath(__file__), '--app'], stdout=subprocess.PIPE, text=True, check=True).stdout
        rows = list(csv.DictReader(io.StringIO(out)))
        for i, (name, _, _, wanted, want) in enumerate(CASES):
            values = {r['Metric Name']: float(r['Metric Value']) for r in rows if int(r['ID']) == i}
            got = tuple(values[m] for m in wanted)
            if got != want:
                bad += 1
                print('%s: %r, not %r' % (name, got, want))
    print('%d differ' % bad)
    return bad != 0


if __name__ == '__main__':
    sys.exit(application() if sys.argv[1:] == ['--app'] else main(sys.argv[1]))
