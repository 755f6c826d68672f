#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Transaction barriers, bulk copies and clusters as PTX, with no compiler: what kernels give, and what is said of those that are wrong.
Argument: halfwarp."""
from kernel import finish, gives as gives_of, says as says_of

HEAD = """.version 8.6
.target sm_90
.address_size 64
.shared .align 16 .b8 tile[1024];
.shared .align 8 .b64 bar;
.shared .align 8 .b64 other;
.visible .entry k(.param .u64 out) %s
{
    .reg .pred %%p<9>; .reg .b32 %%r<40>; .reg .b64 %%d<20>;
    ld.param.u64 %%d1, [out];
    mov.u32 %%r1, %%tid.x; mov.u32 %%r2, %%ctaid.x; mov.u32 %%r3, %%ntid.x; mad.lo.u32 %%r4, %%r2, %%r3, %%r1;
    mul.wide.u32 %%d2, %%r4, 4; add.u64 %%d2, %%d2, %%d1;
    setp.eq.u32 %%p1, %%r1, 0; mov.u32 %%r9, tile;
"""


def gives(name, body, values, *, cluster="", **more):
    gives_of(name, HEAD % cluster + body, values, **more)


def says(name, body, *words, cluster="", **more):
    says_of(name, HEAD % cluster + body, *words, **more)


INIT = "@%p1 mbarrier.init.shared::cta.b64 [bar], {0}; bar.sync 0;\n"
AWAIT = "{0}: mbarrier.try_wait.parity.shared::cta.b64 %p2, [{1}], {2}; @!%p2 bra {0};\n"


def barriers():
    # the second warp hands sixteen numbers over, one at a time; each side waits for the other
    hand_over = """
    @%p1 mbarrier.init.shared::cta.b64 [other], 32;
    """ + INIT.format(32) + """
    mov.u32 %r5, 0; mov.u32 %r6, 0;
    setp.ge.u32 %p3, %r1, 32; @%p3 bra GIVE;
TAKE: and.b32 %r7, %r5, 1;
    """ + AWAIT.format("W", "bar", "%r7") + """
    ld.shared.u32 %r8, [tile]; add.u32 %r6, %r6, %r8;
    mbarrier.arrive.shared::cta.b64 _, [other];
    add.u32 %r5, %r5, 1; setp.lt.u32 %p4, %r5, 16; @%p4 bra TAKE;
    st.global.u32 [%d2], %r6;
    bra DONE;
GIVE: mul.lo.u32 %r8, %r5, %r5; st.shared.u32 [tile], %r8;
    mbarrier.arrive.shared::cta.b64 _, [bar];
    and.b32 %r7, %r5, 1;
    """ + AWAIT.format("V", "other", "%r7") + """
    add.u32 %r5, %r5, 1; setp.lt.u32 %p4, %r5, 16; @%p4 bra GIVE;
DONE:
    """
    gives("hand over", hand_over, [sum(k * k for k in range(16))] * 32, block=64)
    # lane 0 waits for the others of its warp, who come by another way later
    lanes = INIT.format(31) + """
    @!%p1 bra OTHERS;
    """ + AWAIT.format("W", "bar", "0") + """
    ld.shared.u32 %r5, [tile]; st.global.u32 [%d2], %r5; bra DONE;
OTHERS: st.shared.u32 [tile], 77; mbarrier.arrive.shared::cta.b64 %d3, [bar];
DONE:
    """
    gives("a lane for its warp", lanes, [77])
    # the last warp to arrive initialises the barrier for its next use at once: those that wait are told of the first phase's end nevertheless
    anew = INIT.format(128) + """
    mov.u32 %r5, 0;
AGAIN: mbarrier.arrive.shared::cta.b64 %d3, [bar];
W: mbarrier.try_wait.shared::cta.b64 %p2, [bar], %d3; @!%p2 bra W;
    @%p1 mbarrier.init.shared::cta.b64 [bar], 128;
    bar.sync 0;
    add.u32 %r5, %r5, 1; setp.lt.u32 %p4, %r5, 5; @%p4 bra AGAIN;
    st.global.u32 [%d2], %r5;
    """
    gives("initialised anew before others look", anew, [5] * 128, block=128)
    gives("one block of a cluster does so", anew.replace("bar.sync 0;\n    add", "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n    add"),
          [5] * 256, block=128, grid=2, cluster=".reqnctapercluster 2")
    # who has given up waiting asks about the barrier's next use: nobody may tell it of the first one's end
    later = INIT.format(33) + """
    mov.u32 %r5, 0; setp.ge.u32 %p3, %r1, 32; @%p3 bra SECOND;
    mbarrier.arrive.shared::cta.b64 _, [bar];
ASK: mbarrier.try_wait.parity.shared::cta.b64 %p2, [bar], 0;
    @%p2 bra CAME;
    setp.ne.u32 %p5, %r5, 0; @%p5 bra ASK;
    bar.sync 1;
    mov.u32 %r5, 1; bra ASK;
CAME: ld.shared.u32 %r8, [tile]; st.global.u32 [%d2], %r8; bra DONE;
SECOND: setp.ne.u32 %p6, %r1, 32;
    @!%p6 mbarrier.arrive.shared::cta.b64 _, [bar];
    @!%p6 mbarrier.init.shared::cta.b64 [bar], 1;
    bar.sync 1; bar.sync 2, 32;
    @!%p6 st.shared.u32 [tile], 9;
    @!%p6 mbarrier.arrive.shared::cta.b64 _, [bar];
DONE:
    """
    gives("a later use of the barrier", later, [9] * 32 + [0] * 32, block=64)
    says("too many arrivals", INIT.format(8) + "mbarrier.arrive.shared::cta.b64 _, [bar], 3;",
         "arrivals more than a phase of 8 expects")
    says("a count of 0", INIT.format("%r1"), "mbarrier.init with a count of 0")
    says("misaligned", "add.u32 %r5, %r9, 4; mbarrier.arrive.shared::cta.b64 _, [%r5];", "isaligned")


def copies():
    out = """
    mul.lo.u32 %r5, %r1, 4; add.u32 %r6, %r9, %r5; st.shared.u32 [%r6], %r1; bar.sync 0;
    @%p1 cp.async.bulk.global.shared::cta.bulk_group [%d1], [tile], 128;
    @%p1 cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%d1], [tile], 64;
    cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;
    """
    gives("out and on top", out, [2 * i if i < 16 else i for i in range(32)])
    # a lane that copies no bytes reads nothing, wherever its address points; the rest of its 16 bytes is zero
    nothing = """
    mul.lo.u32 %r5, %r1, 16; add.u32 %r6, %r9, %r5; mul.wide.u32 %d3, %r5, 1; add.u64 %d3, %d1, %d3;
    and.b32 %r7, %r1, 1; setp.ne.u32 %p3, %r7, 0; mul.lo.u32 %r8, %r7, 4;
    @%p3 st.global.u32 [%d3], %r1; @!%p3 mov.u64 %d3, {0};
    st.shared.u32 [%r6], 5; st.shared.u32 [%r6+4], 5;
    cp.async.cg.shared.global [%r6], [%d3], 16, %r8; cp.async.wait_all;
    ld.shared.u32 %r5, [%r6]; ld.shared.u32 %r7, [%r6+4]; add.u32 %r5, %r5, %r7; st.global.u32 [%d2], %r5;
    """
    for place in ("0", "0x10", "%d3"):
        gives(f"no bytes from {place}", nothing.format(place), [i if i % 2 else 0 for i in range(32)] + [w // 4 if w % 8 == 4 else 0 for w in range(32, 128)])
    says("bytes from nowhere", nothing.format("0").replace("mul.lo.u32 %r8, %r7, 4", "mov.u32 %r8, 4"), "null pointer")
    masked = """
    mul.lo.u32 %r5, %r1, 4; add.u32 %r6, %r9, %r5; st.shared.u32 [%r6], -1; bar.sync 0;
    .reg .b16 %h; mov.b16 %h, 0x0f05;
    @%p1 cp.async.bulk.global.shared::cta.bulk_group.cp_mask [%d1], [tile], 32, %h;
    """
    gives("bytes of a mask", masked, [0x00ff00ff, 0, 0xffffffff, 0] * 2)
    says("20 bytes", "mov.u32 %r5, 20; @%p1 cp.async.bulk.global.shared::cta.bulk_group [%d1], [tile], %r5;", "no multiple of 16")
    says("past shared memory", "add.u32 %r5, %r9, 1000000; @%p1 cp.async.bulk.global.shared::cta.bulk_group [%d1], [%r5], 16;", "llegal")
    says("a null pointer", "mov.u64 %d3, 0; @%p1 cp.async.bulk.global.shared::cta.bulk_group [%d3], [tile], 16;", "llegal", "null pointer")
    says("no tensor map", "@%p1 cp.async.bulk.tensor.1d.global.shared::cta.bulk_group [%d1, {%r1}], [tile];", "no valid tensor map")


def branches():
    # more places where lanes part than are kept in registers, between barriers and waits at an mbarrier
    body = INIT.format(64) + "mov.u32 %r6, 0; shl.b32 %r7, %r1, 2; add.u32 %r8, %r9, %r7;\n"
    want = [0] * 64
    for i in range(200):
        mask = i % 31 + 1
        body += f"and.b32 %r5, %r1, {mask}; setp.eq.u32 %p3, %r5, 0; @%p3 bra L{i}; add.u32 %r6, %r6, {i}; st.shared.u32 [%r8], %r6; L{i}:\n"
        want = [w + (i if t & mask else 0) for t, w in enumerate(want)]
        if i % 40 == 39:
            body += "bar.sync 0; mbarrier.arrive.shared::cta.b64 _, [bar];\n" + AWAIT.format(f"W{i}", "bar", i // 40 % 2)
    gives("many branches", body + "st.global.u32 [%d2], %r6;", want, block=64)


def maps():
    # a tensor map made of zeros in the kernel: 40 words of which a box has 16, from word 5 on; behind the last come zeros
    fields = [("rank", 0), ("elemtype", 2), ("box_dim", "0, 16"), ("global_dim", "0, 40"), ("element_stride", "0, 1"), ("swizzle_mode", 0), ("fill_mode", 0)]
    make = "".join(f"@%p1 tensormap.replace.tile.{field}.global.b1024.b32 [%d1], {value};\n" for field, value in fields)
    body = INIT.format(1) + "add.u64 %d3, %d1, 256; @%p1 tensormap.replace.tile.global_address.global.b1024.b64 [%d1], %d3;\n" + make + """
    mul.lo.u32 %r5, %r1, 4; cvt.u64.u32 %d4, %r5; add.u64 %d5, %d3, %d4; add.u32 %r6, %r1, 100; st.global.u32 [%d5], %r6; add.u32 %r6, %r1, 132; st.global.u32 [%d5+128], %r6;
    @%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 64; mov.u32 %r7, {start};
    @%p1 cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [tile], [%d1, {{%r7}}], [bar];
    """ + AWAIT.format("W", "bar", "0").replace("{", "{{").replace("}", "}}") + """
    setp.lt.u32 %p4, %r1, 16; add.u32 %r8, %r9, %r5; @%p4 ld.shared.u32 %r10, [%r8]; @!%p4 mov.u32 %r10, 7; bar.sync 0; st.global.u32 [%d2], %r10;
    """
    for start, want in ((5, [105 + i for i in range(16)]), (30, [130 + i if i < 10 else 0 for i in range(16)])):
        gives(f"a map made of zeros, from {start} on", body.format(start=start), want + [7] * 16 + [0] * 32 + [100 + i for i in range(64)])


def clusters():
    two = ".reqnctapercluster 2"
    meet = "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n"
    mine = "mul.lo.u32 %r5, %r1, 4; add.u32 %r6, %r9, %r5; st.shared.u32 [%r6], %r4;\n"
    read = mine + meet + """
    mov.u32 %r7, %cluster_ctarank; xor.b32 %r7, %r7, 1; mapa.shared::cluster.u32 %r8, %r6, %r7;
    ld.shared::cluster.u32 %r8, [%r8]; st.global.u32 [%d2], %r8;
    """ + meet
    for workers in ("1", "2", "8"):
        gives("the other's memory", read, [(i // 32 ^ 1) * 32 + i % 32 for i in range(128)], grid=4, cluster=two, workers=workers)
    ended = """
    mov.u32 %r7, %cluster_ctarank; setp.eq.u32 %p3, %r7, 1; @%p3 exit;
    """ + meet + "st.global.u32 [%d2], 5;"
    gives("blocks that have ended are not waited for", ended, [5] * 32 + [0] * 32, grid=2, cluster=two)
    stuck = """
    mov.u32 %r7, %cluster_ctarank; setp.eq.u32 %p3, %r7, 1; @%p3 bar.sync 1, 64;
    """ + meet
    for workers in ("1", "2", "4"):  # each cluster is stuck: the first is told, with what its other block waits for
        says("nobody can go on", stuck, "deadlock: 1 warps wait at the cluster's barrier; in block 1 of the cluster 1 warps wait at barrier 1, where 32 of 64",
             "block (0,0,0)", grid=64, words=2048, cluster=two, workers=workers)
    far = "mov.u32 %r7, 1; mapa.shared::cluster.u32 %r8, %r9, %r7; ld.shared::cluster.u32 %r8, [%r8+2000000]; st.global.u32 [%d2], %r8;" + meet
    says("beyond the other's memory", far, "llegal", "shared memory of block 1 of the cluster", grid=2, cluster=two)
    nobody = "mov.u32 %r7, 5; mapa.shared::cluster.u32 %r8, %r9, %r7; ld.shared::cluster.u32 %r8, [%r8]; st.global.u32 [%d2], %r8;"
    says("no such block", nobody, "llegal", grid=2, cluster=two)
    says("not divisible", meet, "912", grid=3, cluster=two)
    says("a device without", meet, "801", grid=2, cluster=two, device="v100")
    alone = mine + meet + "mov.u32 %r7, %cluster_nctarank; add.u32 %r7, %r7, %ctaid.x; st.global.u32 [%d2], %r7;"
    gives("a block alone is a cluster", alone.replace("add.u32 %r7, %r7, %ctaid.x", "add.u32 %r7, %r7, %r2"), [1] * 32 + [2] * 32, grid=2)


def forms():
    """Operations go with their types (PTX ISA, tables of cp.reduce.async.bulk and red.async): what ptxas refuses is refused."""
    to_global = "cp.reduce.async.bulk.global.shared::cta.bulk_group.%s [%%d1], [tile], 16;"
    to_shared = "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.%s [tile], [tile], 16, [bar];"
    one = "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.%s [tile], %%r1, [bar];"
    for form, words in ((to_global, "and.f32 inc.s64 add.f16 add.s64 min.f32 and.u32 add.noftz.f32"), (to_shared, "and.u32 max.u64 inc.s32"),
                        (one, "and.u32 inc.s32 add.b32")):
        for word in words.split():
            says(word, form % word, "218", "does not exist")


def launch_control():
    ask = INIT.format(1) + """
    .reg .b128 %q; .reg .pred %c;
    @%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 16;
    @%p1 st.shared.u64 [tile], 99;
    @%p1 clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [tile], [bar];
    """ + AWAIT.format("W", "bar", "0") + """
    ld.shared.b128 %q, [tile];
    clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %c, %q;
    selp.u32 %r5, 1, 2, %c;
    @%c clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {%r5, %r6, %r7, _}, %q;
    @%c clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %r5, %q;
    st.global.u32 [%d2], %r5;
    """
    gives("no block is left to cancel", ask, [2] * 64, grid=2)


barriers()
copies()
branches()
maps()
clusters()
forms()
launch_control()
finish()
