/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions of NVIDIA's device runtime that are best said in PTX: those of grid groups, which Numba calls
 * (cuda_device_runtime_api.h, cudaCG*). A handle is the address of a cooperative launch's workspace, whose second word
 * counts arrivals: the first block adds what makes the top bit change when all the others have added one.
 */
#include "driver.h"

static const char text[] =
    ".version 6.0\n.target sm_52\n.address_size 64\n"
    ".weak .func (.param .b64 handle) cudaCGGetIntrinsicHandle(.param .b32 scope)\n{\n"
    "  .reg .b32 %s, %hi, %lo;\n  .reg .b64 %h;\n  .reg .pred %p;\n"
    "  ld.param.u32 %s, [scope];\n  mov.u32 %hi, %envreg1;\n  mov.u32 %lo, %envreg2;\n"
    "  mov.b64 %h, {%lo, %hi};\n  setp.ne.u32 %p, %s, 1;\n  @%p mov.u64 %h, 0;\n"
    "  st.param.b64 [handle], %h;\n  ret;\n}\n"
    ".weak .func (.param .b32 error) cudaCGSynchronizeGrid(.param .b64 handle, .param .b32 "
    "flags)\n{\n"
    "  .reg .b32 %r<12>;\n  .reg .b64 %h, %a;\n  .reg .pred %p, %q;\n"
    "  ld.param.u64 %h, [handle];\n  mov.u32 %r0, 1;\n  setp.eq.u64 %p, %h, 0;\n  @%p bra end;\n"
    "  bar.sync 0;\n"
    "  mov.u32 %r1, %tid.x;\n  mov.u32 %r2, %tid.y;\n  mov.u32 %r3, %tid.z;\n"
    "  or.b32 %r1, %r1, %r2;\n  or.b32 %r1, %r1, %r3;\n"
    "  setp.ne.u32 %p, %r1, 0;\n  @%p bra meet;\n"
    "  mov.u32 %r1, %nctaid.x;\n  mov.u32 %r2, %nctaid.y;\n  mov.u32 %r3, %nctaid.z;\n"
    "  mul.lo.u32 %r1, %r1, %r2;\n  mul.lo.u32 %r1, %r1, %r3;\n"
    "  mov.u32 %r4, %ctaid.x;\n  mov.u32 %r5, %ctaid.y;\n  mov.u32 %r6, %ctaid.z;\n"
    "  or.b32 %r4, %r4, %r5;\n  or.b32 %r4, %r4, %r6;\n"
    "  sub.u32 %r5, 0x80000001, %r1;\n  setp.eq.u32 %q, %r4, 0;\n  selp.u32 %r6, %r5, 1, %q;\n"
    "  add.u64 %a, %h, 4;\n  membar.gl;\n  atom.global.add.u32 %r7, [%a], %r6;\n"
    "again:\n"
    "  ld.volatile.global.u32 %r8, [%a];\n  xor.b32 %r8, %r8, %r7;\n"
    "  setp.ge.s32 %q, %r8, 0;\n  @%q bra again;\n  membar.gl;\n"
    "meet:\n  bar.sync 0;\n  mov.u32 %r0, 0;\n"
    "end:\n  st.param.b32 [error], %r0;\n  ret;\n}\n"
    ".weak .func (.param .b32 error) cudaCGSynchronize(.param .b64 handle, .param .b32 flags)\n{\n"
    "  .reg .b32 %f;\n  .reg .b64 %h;\n  ld.param.u64 %h, [handle];\n  ld.param.u32 %f, [flags];\n"
    "  {\n  .param .b64 a;\n  .param .b32 b;\n  .param .b32 r;\n"
    "  st.param.b64 [a], %h;\n  st.param.b32 [b], %f;\n"
    "  call.uni (r), cudaCGSynchronizeGrid, (a, b);\n  ld.param.b32 %f, [r];\n  }\n"
    "  st.param.b32 [error], %f;\n  ret;\n}\n"
    ".weak .func (.param .b32 error) cudaCGGetSize(.param .b64 threads, .param .b64 grids, .param "
    ".b64 handle)\n{\n"
    "  .reg .b32 %r<4>;\n  .reg .b64 %t, %g, %h;\n  .reg .pred %p;\n"
    "  ld.param.u64 %t, [threads];\n  ld.param.u64 %g, [grids];\n  ld.param.u64 %h, [handle];\n"
    "  mov.u32 %r0, 1;\n  setp.eq.u64 %p, %h, 0;\n  @%p bra end;\n"
    "  mov.u32 %r1, %nctaid.x;\n  mov.u32 %r2, %nctaid.y;\n  mul.lo.u32 %r1, %r1, %r2;\n"
    "  mov.u32 %r2, %nctaid.z;\n  mul.lo.u32 %r1, %r1, %r2;\n  mov.u32 %r2, %ntid.x;\n"
    "  mul.lo.u32 %r1, %r1, %r2;\n  mov.u32 %r2, %ntid.y;\n  mul.lo.u32 %r1, %r1, %r2;\n"
    "  mov.u32 %r2, %ntid.z;\n  mul.lo.u32 %r1, %r1, %r2;\n"
    "  setp.eq.u64 %p, %t, 0;\n  @!%p st.u32 [%t], %r1;\n"
    "  setp.eq.u64 %p, %g, 0;\n  @!%p st.u32 [%g], 1;\n  mov.u32 %r0, 0;\n"
    "end:\n  st.param.b32 [error], %r0;\n  ret;\n}\n"
    ".weak .func (.param .b32 error) cudaCGGetRank(.param .b64 thread, .param .b64 grid, .param "
    ".b64 handle)\n{\n"
    "  .reg .b32 %r<8>;\n  .reg .b64 %t, %g, %h;\n  .reg .pred %p;\n"
    "  ld.param.u64 %t, [thread];\n  ld.param.u64 %g, [grid];\n  ld.param.u64 %h, [handle];\n"
    "  mov.u32 %r0, 1;\n  setp.eq.u64 %p, %h, 0;\n  @%p bra end;\n"
    "  mov.u32 %r1, %ctaid.z;\n  mov.u32 %r2, %nctaid.y;\n  mov.u32 %r3, %ctaid.y;\n"
    "  mad.lo.u32 %r1, %r1, %r2, %r3;\n  mov.u32 %r2, %nctaid.x;\n  mov.u32 %r3, %ctaid.x;\n"
    "  mad.lo.u32 %r1, %r1, %r2, %r3;\n  mov.u32 %r2, %ntid.z;\n  mov.u32 %r3, %tid.z;\n"
    "  mad.lo.u32 %r1, %r1, %r2, %r3;\n  mov.u32 %r2, %ntid.y;\n  mov.u32 %r3, %tid.y;\n"
    "  mad.lo.u32 %r1, %r1, %r2, %r3;\n  mov.u32 %r2, %ntid.x;\n  mov.u32 %r3, %tid.x;\n"
    "  mad.lo.u32 %r1, %r1, %r2, %r3;\n"
    "  setp.eq.u64 %p, %t, 0;\n  @!%p st.u32 [%t], %r1;\n"
    "  setp.eq.u64 %p, %g, 0;\n  @!%p st.u32 [%g], 0;\n  mov.u32 %r0, 0;\n"
    "end:\n  st.param.b32 [error], %r0;\n  ret;\n}\n";

bool hw_cu_needs_library(hw_str ptx)
{
    static const char prefix[] = "cudaCG";
    return memmem(ptx.ptr, ptx.len, prefix, sizeof prefix - 1) != NULL;
}

hw_str hw_cu_device_library(void)
{
    return (hw_str){ text, sizeof text - 1 };
}
