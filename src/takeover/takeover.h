/* SPDX-License-Identifier: Apache-2.0
 *
 * takeover: a preloaded library that lets programs with a static CUDA runtime run on ours.
 *
 * nvcc links the runtime into the program by default; its 422 functions are then hidden or local
 * symbols, which ordinary interposition cannot reach. This library finds them in the file's
 * .symtab and writes a jump over the first bytes of each, so that the static copy never runs:
 *
 *   cudaMalloc in the program --5-byte jump--> near stub --through a slot--> cudaMalloc in ours
 *
 * Slots are filled at the first call, so a program that makes no CUDA call never opens libcudart.
 * Objects there at program start are handled before any constructor (linked with -z initfirst);
 * later ones when the dynamic linker reports its link map consistent, which is after mapping and
 * before constructors: its debugger hook (r_brk of <link.h>) is redirected to us.
 * A program that holds no static runtime is left as it is.
 */
#ifndef HW_TAKEOVER_H
#define HW_TAKEOVER_H

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- names.c: the runtime's functions, sorted by name ---- */
extern const char *const hw_taken_names[];
extern const unsigned hw_taken_count;
int hw_taken_index(const char *name); /* -1: not one of them */

/* ---- bind.c: where the jumps lead ---- */
enum { HW_RUNTIME_12, HW_RUNTIME_13, HW_RUNTIME_COUNT };
/* The slot that holds the address of function index in our runtime of that version. */
void **hw_taken_slot(int runtime, int index);

/* ---- object.c: what an ELF file says ---- */
typedef struct hw_taken_symbol {
    int index;
    uint64_t value, size; /* value as in the file: add the load address */
} hw_taken_symbol;

enum { HW_TAKEN_MAX = 512 };

typedef struct hw_object {
    hw_taken_symbol symbols[HW_TAKEN_MAX];
    size_t n_symbols;
    int runtime;         /* which of ours it needs */
    bool registers_code; /* holds what host code registers with a runtime */
    bool has_symbols;    /* not stripped */
    bool is_ours;        /* linked with our libcudart_static.a: nothing to do */
    bool is_dynamic;     /* refers to a shared runtime, or is one */
} hw_object;

/* Read path; false when it is no ELF file that we understand. */
bool hw_object_read(const char *path, hw_object *out);

/* ---- patch.c: jumps written into running code ---- */
/* Redirect what the object defines; base is its load address, end the first address past it. */
bool hw_patch_object(const hw_object *o, uintptr_t base, uintptr_t start, uintptr_t end);
/* Make the empty function at address call ours. */
bool hw_patch_hook(void *address, void (*fn)(void));

#endif
