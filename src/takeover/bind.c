/* SPDX-License-Identifier: Apache-2.0
 * Slots: each leads to a function of our runtime, found when it is first called.
 */
#include "takeover.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define HIDDEN __attribute__((visibility("hidden")))

static void *slots[HW_RUNTIME_COUNT][HW_TAKEN_MAX];
static void *runtimes[HW_RUNTIME_COUNT];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

HIDDEN void hw_taken_bind(void);
HIDDEN void *hw_taken_resolve(void **slot);

/* A near stub leaves its slot's address in r11 and jumps through it. Until the slot is filled that
 * is here: keep what the call's arguments are in, find the function, and go there. */
__asm__(".text\n"
        ".type hw_taken_bind, @function\n"
        ".hidden hw_taken_bind\n"
        ".globl hw_taken_bind\n"
        "hw_taken_bind:\n"
        "    push %rbp\n"
        "    mov %rsp, %rbp\n"
        "    push %rdi\n"
        "    push %rsi\n"
        "    push %rdx\n"
        "    push %rcx\n"
        "    push %r8\n"
        "    push %r9\n"
        "    push %rax\n"
        "    push %rax\n"
        "    sub $128, %rsp\n"
        "    movups %xmm0, 0(%rsp)\n"
        "    movups %xmm1, 16(%rsp)\n"
        "    movups %xmm2, 32(%rsp)\n"
        "    movups %xmm3, 48(%rsp)\n"
        "    movups %xmm4, 64(%rsp)\n"
        "    movups %xmm5, 80(%rsp)\n"
        "    movups %xmm6, 96(%rsp)\n"
        "    movups %xmm7, 112(%rsp)\n"
        "    mov %r11, %rdi\n"
        "    call hw_taken_resolve\n"
        "    mov %rax, %r11\n"
        "    movups 0(%rsp), %xmm0\n"
        "    movups 16(%rsp), %xmm1\n"
        "    movups 32(%rsp), %xmm2\n"
        "    movups 48(%rsp), %xmm3\n"
        "    movups 64(%rsp), %xmm4\n"
        "    movups 80(%rsp), %xmm5\n"
        "    movups 96(%rsp), %xmm6\n"
        "    movups 112(%rsp), %xmm7\n"
        "    add $128, %rsp\n"
        "    pop %rax\n"
        "    pop %rax\n"
        "    pop %r9\n"
        "    pop %r8\n"
        "    pop %rcx\n"
        "    pop %rdx\n"
        "    pop %rsi\n"
        "    pop %rdi\n"
        "    pop %rbp\n"
        "    jmp *%r11\n"
        ".size hw_taken_bind, .-hw_taken_bind\n");

/* cudaErrorInitializationError, whatever the function. */
static int no_runtime(void)
{
    return 3;
}

/* Our runtime beside this library, else wherever the dynamic linker finds it. */
static void *open_runtime(const char *name)
{
    char path[4096];
    Dl_info self;
    if (dladdr((void *)slots, &self) && self.dli_fname) {
        const char *slash = strrchr(self.dli_fname, '/');
        size_t dir = slash ? (size_t)(slash - self.dli_fname) + 1 : 0, len = strlen(name) + 1;
        if (slash && dir + len <= sizeof path) {
            memcpy(path, self.dli_fname, dir);
            memcpy(path + dir, name, len);
            void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
            if (handle)
                return handle;
        }
    }
    return dlopen(name, RTLD_NOW | RTLD_LOCAL);
}

void *hw_taken_resolve(void **slot)
{
    static const char *const names[] = { "libcudart.so.12", "libcudart.so.13" };
    size_t at = (size_t)(slot - &slots[0][0]);
    int runtime = (int)(at / HW_TAKEN_MAX);
    pthread_mutex_lock(&lock);
    if (!runtimes[runtime]) {
        runtimes[runtime] = open_runtime(names[runtime]);
        if (!runtimes[runtime])
            dprintf(STDERR_FILENO, "halfwarp: cannot open %s: %s\n", names[runtime], dlerror());
    }
    void *fn =
        runtimes[runtime] ? dlsym(runtimes[runtime], hw_taken_names[at % HW_TAKEN_MAX]) : NULL;
    if (!fn)
        fn = (void *)no_runtime;
    __atomic_store_n(slot, fn, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&lock);
    return fn;
}

void **hw_taken_slot(int runtime, int index)
{
    void **slot = &slots[runtime][index];
    if (!*slot)
        *slot = (void *)hw_taken_bind;
    return slot;
}
