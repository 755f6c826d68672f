# SPDX-License-Identifier: Apache-2.0
"""A program for the profiler: one launch for each access pattern of a JSON file, through the driver API.

patterns_app.py FILE. A pattern is {"space", "op", "size", "address": [32 byte addresses, null: the lane is inactive],
"grid": blocks, "block": threads, "repeat": accesses,
"banks": 8 for banks of eight bytes}. Offsets come from another space than the one that is looked at."""
import ctypes
import json
import sys

TYPES = {1: 'u8', 2: 'u16', 4: 'u32', 8: 'u64', 16: 'v4.u32'}
SPACES = ('global', 'shared', 'constant')


def register(size):
    return '{%r1,%r2,%r3,%r4}' if size == 16 else {1: '%h1', 2: '%h1', 4: '%r1', 8: '%x1'}[size]


def kernel(space, op, size):
    """One kernel: lane t accesses its offset, repeatedly; off lanes (offset -1) skip the access."""
    offsets = 'where_c' if space in ('global', 'shared') else 'where_g'
    of_space = 'const' if offsets == 'where_c' else 'global'
    base = {'global': 'ld.param.u64 %x2, [data];', 'shared': 'mov.u64 %x2, tile;', 'constant': 'mov.u64 %x2, table;'}[space]
    where = {'global': 'global', 'shared': 'shared', 'constant': 'const'}[space]
    volatile = 'volatile.' if space != 'constant' and op != 'cg' else ''
    access = {
        'load': f'@%p1 ld.{volatile}{where}.{TYPES[size]} {register(size)}, [%x3];',
        'plain': f'@%p1 ld.{where}.{TYPES[size]} {register(size)}, [%x3];',
        'cg': f'@%p1 ld.{where}.cg.{TYPES[size]} {register(size)}, [%x3];',
        'store': f'@%p1 st.{volatile}{where}.{TYPES[size]} [%x3], {register(size)};',
    }[op]
    keep = {16: 'st.shared.u32 [kept], %r1; st.shared.u32 [kept], %r2; st.shared.u32 [kept], %r3; st.shared.u32 [kept], %r4;'}
    if space == 'shared':
        keep = {16: 'st.global.u32 [%x5], %r1; st.global.u32 [%x5+4], %r2; st.global.u32 [%x5+8], %r3; st.global.u32 [%x5+12], %r4;'}
    one = {1: ('u16', '%h1'), 2: ('u16', '%h1'), 4: ('u32', '%r1'), 8: ('u64', '%x1')}.get(size)
    if one:
        keep[size] = (f'st.global.{one[0]} [%x5], {one[1]};' if space == 'shared' else f'st.shared.{one[0]} [kept], {one[1]};')
    return f'''
.visible .entry {space}_{op}_{size}(.param .u64 data, .param .u64 result, .param .u32 repeat)
{{
    .reg .pred %p<3>; .reg .b16 %h<2>; .reg .b32 %r<9>; .reg .b64 %x<7>;
    .shared .align 16 .b8 kept[64];
    .shared .align 1024 .b8 tile[16384];
    mov.u32 %r1, 0; mov.u32 %r2, 0; mov.u32 %r3, 0; mov.u32 %r4, 0; mov.u16 %h1, 0; mov.u64 %x1, 0;
    mov.u32 %r5, %tid.x; and.b32 %r5, %r5, 31;
    {base}
    mov.u64 %x4, {offsets}; mul.wide.u32 %x5, %r5, 4; add.u64 %x4, %x4, %x5;
    ld.{of_space}.s32 %r6, [%x4];
    setp.ge.s32 %p1, %r6, 0;
    cvt.s64.s32 %x3, %r6; add.u64 %x3, %x3, %x2;
    ld.param.u64 %x5, [result];
    ld.param.u32 %r7, [repeat];
again:
    {access}
    sub.u32 %r7, %r7, 1;
    setp.ne.u32 %p2, %r7, 0;
    @%p2 bra again;
    {keep[size] if op != 'store' else ''}
    ret;
}}'''


def main():
    with open(sys.argv[1], encoding='utf-8') as f:
        patterns = json.load(f)
    cu = ctypes.CDLL('libcuda.so.1')
    names = sorted({(p['space'], p['op'], p['size']) for p in patterns})
    text = '.version 7.0\n.target sm_70\n.address_size 64\n.const .align 1024 .b8 where_c[128];\n' \
        '.global .align 1024 .b8 where_g[128];\n.const .align 1024 .b8 table[8192];\n' + '\n'.join(kernel(*n) for n in names)

    def call(name, *arguments):
        status = getattr(cu, name)(*arguments)
        if status:
            sys.exit('%s: error %d' % (name, status))

    context, module = ctypes.c_void_p(), ctypes.c_void_p()
    data, result, where, size = ctypes.c_uint64(), ctypes.c_uint64(), ctypes.c_uint64(), ctypes.c_size_t()
    call('cuInit', 0)
    call('cuDevicePrimaryCtxRetain', ctypes.byref(context), 0)
    call('cuCtxSetCurrent', context)
    call('cuModuleLoadData', ctypes.byref(module), ctypes.c_char_p(text.encode()))
    call('cuMemAlloc_v2', ctypes.byref(data), ctypes.c_size_t(1 << 20))
    call('cuMemAlloc_v2', ctypes.byref(result), ctypes.c_size_t(64))
    for p in patterns:
        call('cuCtxSynchronize')
        call('cuCtxSetSharedMemConfig', 2 if p.get('banks') == 8 else 1)
        offsets = (ctypes.c_int32 * 32)(*[-1 if a is None else a for a in p['address']])
        symbol = b'where_g' if p['space'] == 'constant' else b'where_c'
        call('cuModuleGetGlobal_v2', ctypes.byref(where), ctypes.byref(size), module, ctypes.c_char_p(symbol))
        call('cuMemcpyHtoD_v2', where, offsets, ctypes.c_size_t(128))
        function = ctypes.c_void_p()
        name = '%s_%s_%d' % (p['space'], p['op'], p['size'])
        call('cuModuleGetFunction', ctypes.byref(function), module, ctypes.c_char_p(name.encode()))
        repeat = ctypes.c_uint32(p.get('repeat', 1))
        arguments = (ctypes.c_void_p * 3)(*[ctypes.cast(ctypes.byref(a), ctypes.c_void_p) for a in (data, result, repeat)])
        call('cuLaunchKernel', function, p.get('grid', 1), 1, 1, p.get('block', 32), 1, 1, 0, None, arguments, None)
    call('cuCtxSynchronize')


if __name__ == '__main__':
    main()
