/* SPDX-License-Identifier: Apache-2.0
 * Which objects are looked at, and when.
 */
#include "takeover.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { KNOWN_MAX = 4096, CLOSED_MAX = 64 };

/* Objects already looked at; their dynamic section tells them apart from a reused link map. */
static struct known {
    const struct link_map *map;
    const void *dynamic;
    bool alive;
} known[KNOWN_MAX];
static size_t n_known;
static hw_object object; /* only one is read at a time: under the dynamic linker's lock */

static bool is_known(const struct link_map *m)
{
    for (size_t i = 0; i < n_known; i++)
        if (known[i].map == m && known[i].dynamic == m->l_ld)
            return known[i].alive = true;
    return false;
}

static void remember(const struct link_map *m)
{
    if (n_known < KNOWN_MAX)
        known[n_known++] = (struct known){ m, m->l_ld, true };
}

static void forget_unloaded(void)
{
    size_t kept = 0;
    for (size_t i = 0; i < n_known; i++)
        if (known[i].alive)
            known[kept++] = known[i];
    n_known = kept;
}

/* The object's extent in memory, from its program headers. */
typedef struct extent {
    const struct link_map *map;
    uintptr_t start, end;
} extent;

static int find_extent(struct dl_phdr_info *info, size_t size, void *arg)
{
    extent *e = arg;
    (void)size;
    bool holds = false;
    uintptr_t start = UINTPTR_MAX, end = 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        uintptr_t at = info->dlpi_addr + p->p_vaddr;
        if (p->p_type != PT_LOAD)
            continue;
        start = at < start ? at : start;
        end = at + p->p_memsz > end ? at + p->p_memsz : end;
        holds |= (uintptr_t)e->map->l_ld >= at && (uintptr_t)e->map->l_ld < at + p->p_memsz;
    }
    if (holds) {
        e->start = start;
        e->end = end;
    }
    return holds;
}

/* Objects with a static runtime that their stripped symbol table hides. */
static struct {
    uintptr_t start, end;
} closed[CLOSED_MAX];
static _Atomic size_t n_closed;

static void note_closed(const extent *e)
{
    size_t n = n_closed;
    if (n < CLOSED_MAX) {
        closed[n].start = e->start;
        closed[n].end = e->end;
        n_closed = n + 1;
    }
}

__attribute__((visibility("default"))) bool halfwarp_is_closed(const void *address)
{
    for (size_t i = 0; i < n_closed; i++)
        if ((uintptr_t)address >= closed[i].start && (uintptr_t)address < closed[i].end)
            return true;
    return false;
}

static void say(const char *a, const char *b, const char *c)
{
    char line[2048];
    size_t n = 0;
    const char *const parts[] = { "halfwarp: ", a, b, c, "\n" };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        for (const char *p = parts[i]; *p && n < sizeof line; p++)
            line[n++] = *p;
    (void)!write(STDERR_FILENO, line, n);
}

static void look_at(const struct link_map *m)
{
    bool main_program = !m->l_name || !m->l_name[0];
    const char *path = main_program ? "/proc/self/exe" : m->l_name;
    const char *called = main_program ? "the program" : path;
    extent e = { .map = m };
    if (!hw_object_read(path, &object) || object.is_ours)
        return;
    if (!hw_patch_reroutes(&object, m->l_addr))
        say("cannot make NVRTC answer PTX in ", called, "; compile for compute_XX, not sm_XX");
    if (object.n_symbols) {
        if (!dl_iterate_phdr(find_extent, &e) ||
            !hw_patch_object(&object, m->l_addr, e.start, e.end, !main_program))
            say("cannot redirect the CUDA runtime or linker of ", called,
                "; build it with -cudart shared");
    } else if (object.registers_code && !object.has_symbols && !object.is_dynamic) {
        if (main_program)
            say("the program has a static CUDA runtime but no symbol table to find it by; build it "
                "with -cudart shared, or set NVCC_APPEND_FLAGS=\"-cudart shared\", or relink it "
                "with ",
                "Halfwarp's libcudart_static.a (nvcc -L<its folder>)", "");
        else if (dl_iterate_phdr(find_extent, &e))
            note_closed(&e);
    }
}

static void look_at_all(void)
{
    for (size_t i = 0; i < n_known; i++)
        known[i].alive = false;
    for (const struct link_map *m = _r_debug.r_map; m; m = m->l_next)
        if (!is_known(m)) {
            remember(m);
            look_at(m);
        }
    forget_unloaded();
}

/* The dynamic linker calls this when it begins and ends to change the list of objects. */
static void objects_changed(void)
{
    if (_r_debug.r_state == RT_CONSISTENT)
        look_at_all();
}

__attribute__((constructor)) static void take_over(void)
{
    look_at_all();
    if (!hw_patch_hook((void *)(uintptr_t)_r_debug.r_brk, objects_changed) &&
        getenv("HALFWARP_VERBOSE"))
        say("objects loaded later keep a static CUDA runtime of their own", "", "");
}

/* A program may end on one thread while another opens a library, such as our code generator, whose constructors run:
 * its destructors must come after those. Looking a name up waits for the other thread. */
__attribute__((visibility("default"), noreturn)) void exit(int status)
{
    typedef void exit_fn(int);
    exit_fn *go_on = (exit_fn *)(uintptr_t)dlsym(RTLD_NEXT, "exit");
    if (go_on)
        go_on(status);
    _exit(status);
}
