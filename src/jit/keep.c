/* SPDX-License-Identifier: Apache-2.0
 *
 * Ways into the slow checks that keep every register, vectors and masks included: generated code
 * calls them from cold places in the middle of its loops (call attribute no_caller_saved_registers)
 * and need not set anything aside for it.
 */
#include "codegen.h"

/* clang-format off */
#define KEEP_GENERAL "push %rbp\n mov %rsp, %rbp\n push %rax\n push %rcx\n push %rdx\n push %rsi\n push %rdi\n" \
                     " push %r8\n push %r9\n push %r10\n push %r11\n push %rbx\n" \
                     " mov %rsp, %rbx\n sub $2176, %rsp\n and $-64, %rsp\n"
#define BACK_GENERAL " mov %rbx, %rsp\n pop %rbx\n pop %r11\n pop %r10\n pop %r9\n pop %r8\n pop %rdi\n pop %rsi\n" \
                     " pop %rdx\n pop %rcx\n pop %rax\n pop %rbp\n ret\n"
#define LOW  "0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15"
#define HIGH ",16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31"

#define WAY_512(name, fn)                                                                  \
    asm(".text\n.p2align 4\n.hidden " name "\n.globl " name "\n.type " name ",@function\n" name ":\n" KEEP_GENERAL \
        ".irp i," LOW HIGH "\n vmovdqa64 %zmm\\i, \\i*64(%rsp)\n.endr\n"                   \
        ".irp i,0,1,2,3,4,5,6,7\n kmovq %k\\i, 2048+\\i*8(%rsp)\n.endr\n"                  \
        " call " fn "\n"                                                                   \
        ".irp i," LOW HIGH "\n vmovdqa64 \\i*64(%rsp), %zmm\\i\n.endr\n"                   \
        ".irp i,0,1,2,3,4,5,6,7\n kmovq 2048+\\i*8(%rsp), %k\\i\n.endr\n"                  \
        BACK_GENERAL ".size " name ", .-" name "\n")
#define WAY_256(name, fn)                                                                  \
    asm(".text\n.p2align 4\n.hidden " name "\n.globl " name "\n.type " name ",@function\n" name ":\n" KEEP_GENERAL \
        ".irp i," LOW "\n vmovdqa %ymm\\i, \\i*32(%rsp)\n.endr\n"                          \
        " call " fn "\n"                                                                   \
        ".irp i," LOW "\n vmovdqa \\i*32(%rsp), %ymm\\i\n.endr\n"                          \
        BACK_GENERAL ".size " name ", .-" name "\n")
/* clang-format on */

WAY_512("hw_jit_keep512_range", "hw_jit_check_range");
WAY_512("hw_jit_keep512_shared", "hw_jit_check_shared");
WAY_512("hw_jit_keep512_affine", "hw_jit_check_affine");
WAY_256("hw_jit_keep256_range", "hw_jit_check_range");
WAY_256("hw_jit_keep256_shared", "hw_jit_check_shared");
WAY_256("hw_jit_keep256_affine", "hw_jit_check_affine");
WAY_512("hw_jit_keep512_affine_shared", "hw_jit_check_affine_shared");
WAY_256("hw_jit_keep256_affine_shared", "hw_jit_check_affine_shared");
