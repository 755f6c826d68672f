#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tensor memory as PTX, with no compiler: who gets columns and when, reductions of loads, and what is said of kernels that are wrong. Argument: halfwarp."""
import struct

from kernel import finish, gives as gives_of, says as says_of

HEAD = """.version 9.0
.target sm_103a
.address_size 64
.shared .align 1024 .b8 tile[16384];
.shared .align 8 .b64 bar;
.shared .align 8 .b32 at;
.shared .align 8 .b32 at2;
.shared .align 8 .b32 count;
.visible .entry k(.param .u64 out) %s
{
    .reg .pred %%p<9>; .reg .b32 %%r<40>; .reg .b32 %%v<16>; .reg .b64 %%d<20>;
    ld.param.u64 %%d1, [out];
    mov.u32 %%r1, %%tid.x; mov.u32 %%r2, %%ctaid.x; mov.u32 %%r3, %%ntid.x; mad.lo.u32 %%r4, %%r2, %%r3, %%r1;
    mul.wide.u32 %%d2, %%r4, 4; add.u64 %%d2, %%d2, %%d1;
    setp.eq.u32 %%p1, %%r1, 0; setp.lt.u32 %%p2, %%r1, 32; shr.u32 %%r5, %%r1, 5;
    shl.b32 %%r6, %%r5, 21; mov.u32 %%r9, tile;
"""


def gives(name, body, values, *, cluster="", **more):
    gives_of(name, HEAD % cluster + body, values, device="b200", **more)


def says(name, body, *words, cluster="", **more):
    says_of(name, HEAD % cluster + body, *words, device="b200", **more)


def alloc(columns, to="at", group=1, when="@%p2 "):
    return f"{when}tcgen05.alloc.cta_group::{group}.sync.aligned.shared::cta.b32 [{to}], {columns};\n"


def free(address, columns, group=1, when="@%p2 "):
    return f"{when}tcgen05.dealloc.cta_group::{group}.sync.aligned.b32 {address}, {columns};\n"


START = alloc(64) + "bar.sync 0; ld.shared.u32 %r10, [at]; add.u32 %r11, %r10, %r6;\n"
END = "bar.sync 0;\n" + free("%r10", 64)


def allocation():
    # the lowest free columns; what is given back is given out again
    lowest = alloc(64) + alloc(32, "at2") + """
    bar.sync 0; ld.shared.u32 %r10, [at]; ld.shared.u32 %r11, [at2]; bar.sync 0;
    """ + free("%r10", 64) + alloc(32) + """
    bar.sync 0; ld.shared.u32 %r12, [at]; bar.sync 0;
    shl.b32 %r13, %r11, 8; or.b32 %r13, %r13, %r10; shl.b32 %r14, %r12, 16; or.b32 %r13, %r13, %r14; st.global.u32 [%d2], %r13;
    """ + free("%r11", 32) + free("%r12", 32) + "@%p2 tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;"
    gives("the lowest", lowest, [64 << 8] * 32)
    # each of four warps wants all there is: each waits for the one before
    turns = """
    @%p1 st.shared.u32 [count], 0; bar.sync 0;
    """ + alloc(512, when="") + """
    ld.shared.u32 %r10, [at]; ld.shared.u32 %r11, [count]; bar.warp.sync -1; add.u32 %r11, %r11, 1; st.shared.u32 [count], %r11; bar.warp.sync -1;
    """ + free("%r10", 512, when="") + "add.u32 %r11, %r11, %r10; st.global.u32 [%d2], %r11;"
    gives("in turn", turns, [t for t in (2, 1, 3, 4) for _ in range(32)], block=128)  # after a barrier the second warp goes first; then the lowest
    # a pair: both get the same
    pair = ".reqnctapercluster 2"
    both = alloc(128, group=2) + alloc(64, "at2", group=2) + """
    bar.sync 0; ld.shared.u32 %r10, [at]; ld.shared.u32 %r11, [at2]; add.u32 %r12, %r10, %r11; st.global.u32 [%d2], %r12; bar.sync 0;
    """ + free("%r10", 128, group=2) + free("%r11", 64, group=2) + "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;"
    for workers in ("1", "2", "8"):
        gives("a pair", both, [128] * 128, grid=4, cluster=pair, workers=workers)
    says("nobody gives back", alloc(512) + alloc(32), "deadlock: warp 0 waits for tensor memory")
    alone = "mov.u32 %r7, %cluster_ctarank; setp.eq.u32 %p3, %r7, 0;\n" + alloc(64, group=2, when="@%p3 ") + """
    barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
    """
    says("half of a pair", alone, "deadlock: warp 0 waits for tensor memory", grid=2, cluster=pair)
    says("no pair", alloc(64, group=2), "none of a pair")
    for columns in (0, 16, 48, 1024):
        says(f"{columns} columns", alloc(columns), f"tcgen05.alloc of {columns} columns", "715")
    says("given up", "@%p2 tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;" + alloc(64), "alloc after tcgen05.relinquish_alloc_permit")
    says("no allocation", START + "add.u32 %r12, %r10, 32;" + free("%r12", 32), "tcgen05.dealloc of 32 columns at 0x20, which is no allocation")
    says("half of one", START + free("%r10", 32), "tcgen05.dealloc of 32 columns at 0x0")
    says("both groups", START + "@%p2 tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned;" + END, ".cta_group::2 after .cta_group::1")
    says("a leak", alloc(64), "721", "ended with 64 columns of its tensor memory not deallocated, from column 0 on")
    says("lanes apart", "setp.lt.u32 %p4, %r1, 7;\n" + alloc(64, when="@%p4 "), "not all threads of the warp")


def loads():
    def bits(x):
        return struct.unpack("I", struct.pack("f", x))[0]

    # each thread stores 2^t, -3 and a NaN (or what the type makes of them) and gets the least or most of them
    def reduced(op, kind, values):
        put = "".join(f"mov.b32 %v{i}, 0x{v:x};" for i, v in enumerate(values))
        return START + put + """
        tcgen05.st.sync.aligned.32x32b.x4.b32 [%r11], {%v0, %v1, %v2, %v3}; tcgen05.wait::st.sync.aligned;
        """ + f"tcgen05.ld.red.sync.aligned.32x32b.x4.{op}.{kind} {{%v4, %v5, %v6, %v7}}, %v8, [%r11]; tcgen05.wait::ld.sync.aligned;" + """
        xor.b32 %v4, %v4, %v0; or.b32 %v8, %v8, %v4; st.global.u32 [%d2], %v8;
        """ + END

    numbers, nan = [bits(1.5), bits(-3.0), bits(-0.0), bits(0.0)], 0x7fc00000
    for op, kind, values, want in (
            ("min", "u32", [7, 3, 0x80000000, 9], 3), ("max", "u32", [7, 3, 0x80000000, 9], 0x80000000),
            ("min", "s32", [7, 3, 0x80000000, 9], 0x80000000), ("max", "s32", [7, 3, 0x80000000, 9], 9),
            ("min", "f32", numbers, bits(-3.0)), ("max", "f32", numbers, bits(1.5)), ("max.abs", "f32", numbers, bits(3.0)), ("min.abs", "f32", numbers, 0),
            ("min", "f32", [nan, bits(2.0), nan, bits(5.0)], bits(2.0)), ("min.NaN", "f32", [nan, bits(2.0), nan, bits(5.0)], 0x7fffffff),
            ("min", "f32", [bits(0.0), bits(-0.0), bits(0.0), bits(0.0)], 0x80000000), ("max", "f32", [nan] * 4, 0x7fffffff)):
        gives(f"ld.red {op} {kind}", reduced(op, kind, values), [want] * 32)
    # two halves of a lane, each thread its own
    halves = START + "cvt.u32.u32 %v0, %r1; shl.b32 %v1, %r1, 8; xor.b32 %v2, %r1, 31; mov.b32 %v3, 5;" + """
    tcgen05.st.sync.aligned.32x32b.x4.b32 [%r11], {%v0, %v1, %v2, %v3}; tcgen05.wait::st.sync.aligned;
    tcgen05.ld.red.sync.aligned.16x32bx2.x2.max.u32 {%v4, %v5}, %v8, [%r11], 2; tcgen05.wait::ld.sync.aligned; st.global.u32 [%d2], %v8;
    """ + END
    gives("ld.red 16x32bx2", halves, [t << 8 for t in range(16)] + [31 - t for t in range(16)])
    say = "tcgen05.ld.sync.aligned.32x32b.x1.b32 {{%v0}}, [{0}];"
    says("another warp's lanes", START + say.format("%r10") + END, "lanes 0 to 31 of tensor memory, but warp 1 reaches those from 32 to 63", block=64)
    says("across quarters", START + "add.u32 %r12, %r11, 0x180000; tcgen05.ld.sync.aligned.16x64b.x1.b32 {%v0}, [%r12];" + END, "lanes 24 to 39")
    says("not allocated", START + say.format("%r11+64") + END, "columns 64 to 64 of tensor memory, of which those from 64 on are not allocated")
    says("partly allocated", START + "tcgen05.st.sync.aligned.32x32b.x4.b32 [%r11+62], {%r1, %r1, %r1, %r1};" + END, "columns 62 to 65", "from 64 on")
    says("the second half", START + "tcgen05.ld.sync.aligned.16x32bx2.x1.b32 {%v0}, [%r11], 70;" + END, "columns 70 to 70")
    says("beyond the last", START + say.format("%r11+511") + END, "columns 511 to 511")
    says("beyond all", START + say.format("%r11+512") + END, "columns 512 to 512 of tensor memory, which has 512")
    says("nothing allocated", say.format("%r6"), "columns 0 to 0 of tensor memory, of which those from 0 on are not allocated")
    says("addresses apart", START + "add.u32 %r12, %r11, %r1;" + say.format("%r12") + END, "the tensor addresses of a warp's lanes differ")
    says("half a warp", START + "setp.lt.u32 %p4, %r1, 7; @%p4 " + say.format("%r11") + END, "not all threads of the warp")


def products():
    def mma(idesc, *, d="%r10", a="0x4000400000000001", b="0x4000400000000001", form="cta_group::1.kind::f16", rest=""):
        return START + f"mov.b32 %r20, {idesc}; mov.b64 %d5, {a}; mov.b64 %d6, {b}; @%p1 tcgen05.mma.{form} [{d}], %d5, %d6, %r20, %p1{rest};" + END

    half, m128, n16 = 1 << 4, 8 << 24, 2 << 17
    says("rows", mma(half | n16 | 3 << 24), "48 rows and 16 columns")
    says("columns", mma(half | m128 | 33 << 17), "128 rows and 264 columns")
    says("types", mma(half | m128 | n16 | 3 << 7), "names types that this kind does not have")
    says("D's type", mma(3 << 4 | m128 | n16), "names types")
    says("saturation", mma(half | m128 | n16 | 8), "saturation of floats")
    says("negated integers", mma(2 << 4 | m128 | n16 | 1 << 13, form="cta_group::1.kind::i8"), "negates integers")
    says("sparse or not", mma(half | m128 | n16 | 4), "whether A is sparse")
    says("D not allocated", mma(half | m128 | 16 << 17), "matrix D: columns 0 to 127", "from 64 on")
    says("D's lane", mma(half | m128 | n16, d="%r10+0x100000"), "does not begin in lane 16")
    says("wgmma's descriptor", mma(half | m128 | n16, a="0x4000000000000001"), "matrix A: 0x4000000000000001 is no descriptor")
    says("a swizzle that is none", mma(half | m128 | n16, b="0x6000400000000001"), "matrix B: 0x6000400000000001 is no descriptor")
    says("a base offset", mma(half | m128 | n16, a="0x4002400000000001"), "a matrix base offset other than 0 is not supported")
    says("transposed", mma(half | 2 << 7 | 2 << 10 | m128 | n16 | 1 << 15, form="cta_group::1.kind::tf32"), "a transposed matrix of this type and swizzle")
    says("beyond shared memory", mma(half | m128 | n16, a="0x40007fff00003fff"), "llegal memory access")
    says("no pair", mma(half | m128 | n16, form="cta_group::2.kind::f16"), ".cta_group::2 after .cta_group::1")
    says("both kinds of scales", mma(1 << 27 | n16 | 1 << 7 | 1 << 10, form="cta_group::1.kind::mxf4.block_scale.block32").replace("%r20, %p1", "%r20, [%r10+32], [%r10+48], %p1"),
         "scales of E4M3")
    says("scales not allocated", mma(1 << 27 | n16 | 1 << 23, form="cta_group::1.kind::mxf8f6f4.block_scale").replace("%r20, %p1", "%r20, [%r10+62], [%r10+40], %p1"),
         "scales: columns 62 to 65", "from 64 on")
    says("indices in another lane", mma(half | m128 | n16 | 4, form="sp.cta_group::1.kind::f16").replace("%d6, %r20", "%d6, [%r10+0x100030], %r20"), "indices of a sparse A begin in lane 16")
    says("a scale of D", mma(half | m128 | n16, rest=", 16"), "a scale of D is a literal from 0 to 15")


def commits():
    # one warp has products told to a barrier, four times, and waits itself: the others, which wait too, see each of the four phases
    rounds = "@%p1 mbarrier.init.shared::cta.b64 [bar], 1; bar.sync 0; mov.u32 %r10, 0; mov.u32 %r12, 0;\n" + """
NEXT: @%p1 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [bar];
    and.b32 %r11, %r10, 1;
W: mbarrier.try_wait.parity.shared::cta.b64 %p5, [bar], %r11; @!%p5 bra W;
    add.u32 %r10, %r10, 1; setp.lt.u32 %p6, %r10, 4; @%p6 bra NEXT;
    bar.sync 0; st.global.u32 [%d2], %r10;"""
    gives("each phase", rounds, [4] * 128, block=128)
    wait = "W: mbarrier.try_wait.parity.shared::cta.b64 %p5, [bar], 0; @!%p5 bra W;\n"
    twice = "@%p1 mbarrier.init.shared::cta.b64 [bar], 2; bar.sync 0;\n" + 2 * "@%p1 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [bar];\n" + wait
    gives("two arrivals", twice + "st.global.u32 [%d2], 3;", [3] * 64, block=64)
    # each block is told by both
    pair = ".reqnctapercluster 2"
    meet = "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n"
    told = "@%p1 mbarrier.init.shared::cta.b64 [bar], 2; .reg .b16 %h; mov.b16 %h, 3;\n" + meet + """
    @%p1 tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [bar], %h;
    """ + wait + "st.global.u32 [%d2], 4;\n" + meet
    gives("to both of a pair", told, [4] * 64, grid=2, cluster=pair)
    says("too many", "@%p1 mbarrier.init.shared::cta.b64 [bar], 1; bar.sync 0;" + told.replace("mov.b16 %h, 3", "mov.b16 %h, 9"), "block 3 of a cluster of 2 blocks",
         grid=2, cluster=pair)


def pairs():
    # the odd block of a pair sends a box to both; the even one's barrier, which it names by taking bit 24 away, is told of all bytes
    fields = [("rank", 0), ("elemtype", 2), ("box_dim", "0, 16"), ("global_dim", "0, 16"), ("element_stride", "0, 1"), ("swizzle_mode", 0), ("fill_mode", 0)]
    make = "".join(f"@%p3 tensormap.replace.tile.{field}.global.b1024.b32 [%d1], {value};\n" for field, value in fields)
    body = """
    mov.u32 %r7, %cluster_ctarank; setp.eq.and.u32 %p3, %r7, 0, %p1; setp.eq.and.u32 %p4, %r7, 1, %p1; .reg .b16 %h; mov.b16 %h, 3;
    @%p3 mbarrier.init.shared::cta.b64 [bar], 1; @%p3 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 128;
    add.u64 %d3, %d1, 512; @%p3 tensormap.replace.tile.global_address.global.b1024.b64 [%d1], %d3;
    """ + make + """
    mul.lo.u32 %r5, %r1, 4; cvt.u64.u32 %d4, %r5; add.u64 %d5, %d3, %d4; add.u32 %r6, %r1, 100; st.global.u32 [%d5], %r6;
    barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
    mov.u32 %r10, bar; and.b32 %r11, %r10, 0xfefffff8; mov.u32 %r12, 0;
    @%p4 cp.async.bulk.tensor.1d.cta_group::2.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [tile], [%d1, {%r12}], [%r11], %h;
    setp.ne.u32 %p5, %r7, 0; @%p5 bra TOLD;
W:  mbarrier.try_wait.parity.shared::cta.b64 %p6, [bar], 0; @!%p6 bra W;
TOLD: barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
    add.u32 %r8, %r9, %r5; setp.lt.u32 %p6, %r1, 16; mov.u32 %r13, 7; @%p6 ld.shared.u32 %r13, [%r8]; st.global.u32 [%d2], %r13;
    """
    both = [100 + i for i in range(16)] + [7] * 16
    gives("a copy by the odd block", body, both * 2 + [0] * 64 + [100 + i for i in range(32)], grid=2, cluster=".reqnctapercluster 2")


pairs()
allocation()
loads()
products()
commits()
finish()
