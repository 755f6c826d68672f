/* SPDX-License-Identifier: Apache-2.0
 * Slots: each leads to a function of our libraries, found when it is first called.
 */
#include "takeover.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define HIDDEN __attribute__((visibility("hidden")))

enum { INSTANCE_MAX = 128 };

/* One object's way into one of our libraries. */
struct hw_instance {
    int library;
    bool is_private;        /* a copy of the library is opened for it */
    uint64_t device, inode; /* of the object's file */
    void *handle;
    void *slots[HW_TAKEN_MAX];
};

static hw_instance *instances[INSTANCE_MAX];
static size_t n_instances;
static void *originals[HW_TAKEN_MAX];
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

/* cudaErrorInitializationError, and nvJitLink's invalid input, whatever the function. */
static int no_library(void)
{
    return 3;
}

static bool copy_file(int from, int to)
{
    char part[65536];
    for (;;) {
        ssize_t n = read(from, part, sizeof part);
        if (n <= 0)
            return n == 0;
        for (ssize_t done = 0, k; done < n; done += k)
            if ((k = write(to, part + done, (size_t)(n - done))) <= 0)
                return false;
    }
}

/* The library once more, with variables of its own: the dynamic linker takes a file of another
 * number for another library. The descriptor stays open, lest its name be used again. */
static void *open_copy(const char *path)
{
    char name[64];
    void *handle = NULL;
    int from = open(path, O_RDONLY | O_CLOEXEC);
    int to = from < 0 ? -1 : memfd_create("halfwarp-cudart", MFD_CLOEXEC);
    if (to >= 0 && copy_file(from, to)) {
        snprintf(name, sizeof name, "/proc/self/fd/%d", to);
        handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    }
    if (from >= 0)
        close(from);
    if (to >= 0 && !handle)
        close(to);
    return handle;
}

/* Our library beside this one, else wherever the dynamic linker finds it. */
static void *open_library(const char *name, bool is_private)
{
    char path[4096];
    Dl_info self;
    if (dladdr((void *)originals, &self) && self.dli_fname) {
        const char *slash = strrchr(self.dli_fname, '/');
        size_t dir = slash ? (size_t)(slash - self.dli_fname) + 1 : 0, len = strlen(name) + 1;
        if (slash && dir + len <= sizeof path) {
            memcpy(path, self.dli_fname, dir);
            memcpy(path + dir, name, len);
            void *handle = is_private ? open_copy(path) : NULL;
            if (!handle)
                handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
            if (handle)
                return handle;
        }
    }
    void *handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!handle || !is_private)
        return handle;
    struct link_map *map = NULL;
    void *copy = dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 ? open_copy(map->l_name) : NULL;
    return copy ? copy : handle;
}

static hw_instance *instance_of(void **slot)
{
    for (size_t i = 0; i < n_instances; i++)
        if (slot >= instances[i]->slots && slot < instances[i]->slots + HW_TAKEN_MAX)
            return instances[i];
    return NULL;
}

void *hw_taken_resolve(void **slot)
{
    static const char *const names[] = { "libcudart.so.12", "libcudart.so.13",
                                         "libhalfwarp-jitlink.so" };
    pthread_mutex_lock(&lock);
    hw_instance *in = instance_of(slot);
    if (in && !in->handle) {
        in->handle = open_library(names[in->library], in->is_private);
        if (!in->handle)
            dprintf(STDERR_FILENO, "halfwarp: cannot open %s: %s\n", names[in->library], dlerror());
    }
    void *fn = in && in->handle ? dlsym(in->handle, hw_taken_names[slot - in->slots]) : NULL;
    if (!fn)
        fn = (void *)no_library;
    __atomic_store_n(slot, fn, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&lock);
    return fn;
}

hw_instance *hw_taken_instance(int library, bool is_private, uint64_t device, uint64_t inode)
{
    for (size_t i = 0; i < n_instances; i++) {
        hw_instance *in = instances[i];
        bool same_file = in->device == device && in->inode == inode;
        if (in->library == library && in->is_private == is_private && (!is_private || same_file))
            return in;
    }
    hw_instance *in =
        mmap(NULL, sizeof *in, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (in == MAP_FAILED || n_instances == INSTANCE_MAX)
        return NULL;
    in->library = library;
    in->is_private = is_private;
    in->device = device;
    in->inode = inode;
    for (size_t i = 0; i < HW_TAKEN_MAX; i++)
        in->slots[i] = (void *)hw_taken_bind;
    instances[n_instances] = in;
    __atomic_store_n(&n_instances, n_instances + 1, __ATOMIC_RELEASE);
    return in;
}

void **hw_taken_slot(hw_instance *in, int index)
{
    return &in->slots[index];
}

void hw_taken_keep(int index, void *original)
{
    __atomic_store_n(&originals[index], original, __ATOMIC_RELEASE);
}

__attribute__((visibility("default"))) void *halfwarp_original(const char *name)
{
    int index = hw_taken_index(name);
    return index < 0 ? NULL : __atomic_load_n(&originals[index], __ATOMIC_ACQUIRE);
}
