/* SPDX-License-Identifier: Apache-2.0
 * Jumps written into running code.
 *
 * Every patch is a 5-byte jump to a near stub; stubs lie in a page within reach of the object:
 *   49 BB imm64   movabs $slot, %r11
 *   41 FF 23      jmp *(%r11)
 */
#include "takeover.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { JUMP_SIZE = 5, STUB_SIZE = 16, FUNCTION_ALIGNMENT = 16 };
enum { TRIES = 64, JUMP_OPCODE = 0xE9 };
#define REACH     ((uintptr_t)1 << 30) /* well inside of the jump's 2 GiB */
#define FIRST_GAP ((uintptr_t)1 << 21)

static uintptr_t page_of(uintptr_t address)
{
    return address & ~((uintptr_t)sysconf(_SC_PAGESIZE) - 1);
}

static void *try_at(uintptr_t address, size_t size)
{
    void *p = mmap((void *)page_of(address), size, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (p == MAP_FAILED)
        return NULL;
    if ((uintptr_t)p == page_of(address))
        return p;
    munmap(p, size); /* a kernel that takes the address as a hint */
    return NULL;
}

/* Memory near [start, end): below it first, since a program's heap grows above it. */
static void *near_memory(uintptr_t start, uintptr_t end, size_t size)
{
    uintptr_t step = FIRST_GAP;
    for (int i = 0; i < TRIES && step < REACH; i++, step += step / 4) {
        void *p = start > step + size ? try_at(start - step, size) : NULL;
        if (!p && step >= FIRST_GAP * 64)
            p = try_at(end + step, size);
        if (p)
            return p;
    }
    for (uintptr_t below = start / 2; below > 65536 && start < REACH; below /= 2) {
        void *p = try_at(below, size);
        if (p)
            return p;
    }
    return NULL;
}

static void put_stub(uint8_t *at, void **slot)
{
    static const uint8_t code[STUB_SIZE] = { 0x49, 0xBB, 0,    0,    0,    0,    0,    0,
                                             0,    0,    0x41, 0xFF, 0x23, 0xCC, 0xCC, 0xCC };
    memcpy(at, code, sizeof code);
    memcpy(at + 2, &slot, sizeof slot);
}

/* Code from first to last is writable for a while; its other contents stay as they are. */
static bool set_writable(uintptr_t first, uintptr_t last, bool writable)
{
    uintptr_t page = page_of(first);
    size_t size = page_of(last) - page + (size_t)sysconf(_SC_PAGESIZE);
    return mprotect((void *)page, size, PROT_READ | PROT_EXEC | (writable ? PROT_WRITE : 0)) == 0;
}

static bool put_jump(uintptr_t at, const void *to)
{
    int64_t distance = (int64_t)((uintptr_t)to - (at + JUMP_SIZE));
    if (distance != (int32_t)distance)
        return false;
    int32_t near = (int32_t)distance;
    *(uint8_t *)at = JUMP_OPCODE;
    memcpy((uint8_t *)at + 1, &near, sizeof near);
    return true;
}

/* Room for a jump: the function itself, or the padding up to the next one. */
static bool has_room(const hw_taken_symbol *s, uintptr_t at)
{
    return s->size >= JUMP_SIZE || at % FUNCTION_ALIGNMENT == 0;
}

/* Where the jump at an address leads; NULL if there is none. */
static void *jump_target(uintptr_t at)
{
    int32_t near;
    if (*(const uint8_t *)at != JUMP_OPCODE)
        return NULL;
    memcpy(&near, (const uint8_t *)at + 1, sizeof near);
    return (void *)(at + JUMP_SIZE + (uintptr_t)(intptr_t)near);
}

static bool patch_symbol(const hw_taken_symbol *s, uintptr_t at, const uint8_t *stub)
{
    if (!has_room(s, at))
        return true;
    void *before = s->is_linker ? jump_target(at) : NULL;
    if (before)
        hw_taken_keep(s->index, before);
    return put_jump(at, stub);
}

bool hw_patch_object(const hw_object *o, uintptr_t base, uintptr_t start, uintptr_t end,
                     bool is_private)
{
    size_t size = o->n_symbols * STUB_SIZE;
    uintptr_t first = UINTPTR_MAX, last = 0;
    uint8_t *stubs = near_memory(start, end, size);
    hw_instance *runtime = hw_taken_instance(o->runtime, is_private, o->device, o->inode);
    hw_instance *linker = hw_taken_instance(HW_JITLINK, false, 0, 0);
    if (!stubs || !runtime || !linker)
        return false;
    for (size_t i = 0; i < o->n_symbols; i++) {
        const hw_taken_symbol *s = &o->symbols[i];
        uintptr_t at = base + s->value;
        first = at < first ? at : first;
        last = at + JUMP_SIZE > last ? at + JUMP_SIZE : last;
        put_stub(stubs + i * STUB_SIZE, hw_taken_slot(s->is_linker ? linker : runtime, s->index));
    }
    if (mprotect(stubs, size, PROT_READ | PROT_EXEC) != 0 || !set_writable(first, last, true))
        return false;
    bool ok = true;
    for (size_t i = 0; i < o->n_symbols && ok; i++)
        ok = patch_symbol(&o->symbols[i], base + o->symbols[i].value, stubs + i * STUB_SIZE);
    return set_writable(first, last, false) && ok;
}

bool hw_patch_reroutes(const hw_object *o, uintptr_t base)
{
    bool ok = true;
    for (size_t i = 0; i < HW_REROUTES; i++) {
        uintptr_t at = base + o->from[i];
        if (!o->from[i] || !o->to[i] || !ok)
            continue;
        ok = set_writable(at, at + JUMP_SIZE, true) &&
             put_jump(at, (const void *)(base + o->to[i])) &&
             set_writable(at, at + JUMP_SIZE, false);
    }
    return ok;
}

/* A lone return, with or without a landing pad before it, and padding up to the jump's size. */
static size_t empty_function(const uint8_t *code)
{
    static const uint8_t landing[] = { 0xF3, 0x0F, 0x1E, 0xFA };
    size_t at = memcmp(code, landing, sizeof landing) == 0 ? sizeof landing : 0;
    if (code[at] != 0xC3)
        return 0;
    /* What follows is a no-operation or trap byte of the assembler's padding. */
    uint8_t next = code[at + 1];
    return next == 0x66 || next == 0x0F || next == 0x90 || next == 0xCC ? at + 1 : 0;
}

bool hw_patch_hook(void *address, void (*fn)(void))
{
    static void *target;
    if ((uintptr_t)address % FUNCTION_ALIGNMENT || !empty_function(address))
        return false;
    uint8_t *stub =
        near_memory((uintptr_t)address, (uintptr_t)address + FUNCTION_ALIGNMENT, STUB_SIZE);
    if (!stub)
        return false;
    target = (void *)fn;
    put_stub(stub, &target);
    uintptr_t at = (uintptr_t)address;
    if (mprotect(stub, STUB_SIZE, PROT_READ | PROT_EXEC) != 0 ||
        !set_writable(at, at + JUMP_SIZE, true))
        return false;
    bool ok = put_jump(at, stub);
    return set_writable(at, at + JUMP_SIZE, false) && ok;
}
