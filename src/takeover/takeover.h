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
 *
 * Compilers that make machine code at run time are met in the same way, static or shared:
 *   nvrtcGetCUBIN --jump--> nvrtcGetPTX of the same object: the PTX is there whatever was asked for
 *   nvJitLink...  --jump--> stub --slot--> the function of our libhalfwarp-jitlink.so
 */
#ifndef HW_TAKEOVER_H
#define HW_TAKEOVER_H

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- names.c: the functions of ours that are led to, sorted by name ---- */
enum { HW_TAKEN_MAX = 512 };
extern const char *const hw_taken_names[];
extern const unsigned hw_taken_count;
int hw_taken_index(const char *name); /* -1: not one of them */

/* Functions that another one of the same object answers for. */
typedef struct hw_reroute {
    const char *from, *to;
} hw_reroute;
enum { HW_REROUTES = 2 };
extern const hw_reroute hw_reroutes[HW_REROUTES];

/* ---- bind.c: where the jumps lead ---- */
enum { HW_RUNTIME_12, HW_RUNTIME_13, HW_JITLINK, HW_LIBRARY_COUNT };
/* One object's way into one of our libraries. A static runtime has variables of its own (the last
 * error, what is registered with it), so each object but the program gets a private copy of ours. */
typedef struct hw_instance hw_instance;
/* The same again for the same file; NULL: there are too many. Under the dynamic linker's lock. */
hw_instance *hw_taken_instance(int library, bool is_private, uint64_t device, uint64_t inode);
/* The slot that holds the address of function index. */
void **hw_taken_slot(hw_instance *in, int index);
/* What function index of NVIDIA's library did before: where its first instruction, a jump, led. */
void hw_taken_keep(int index, void *original);
/* For libhalfwarp-jitlink.so, which finds it by name. NULL: not known. */
void *halfwarp_original(const char *name);

/* For our driver: whether the address lies in an object whose static runtime could not be found. */
bool halfwarp_is_closed(const void *address);

/* ---- object.c: what an ELF file says ---- */
typedef struct hw_taken_symbol {
    int index;
    bool is_linker;       /* nvJitLink's, not the runtime's */
    uint64_t value, size; /* value as in the file: add the load address */
} hw_taken_symbol;

enum { HW_SYMBOL_MAX = 1024 }; /* nvJitLink has a name for each version */

typedef struct hw_object {
    hw_taken_symbol symbols[HW_SYMBOL_MAX];
    size_t n_symbols;
    uint64_t from[HW_REROUTES], to[HW_REROUTES]; /* values; both or nothing */
    uint64_t device, inode;                      /* of the file */
    int runtime;                                 /* which of ours it needs */
    bool registers_code;                         /* holds what host code registers with a runtime */
    bool has_symbols;                            /* not stripped */
    bool is_ours;    /* one of our libraries, or linked with our libcudart_static.a */
    bool is_dynamic; /* refers to a shared runtime, or is one */
} hw_object;

/* Read path; false when it is no ELF file that we understand. */
bool hw_object_read(const char *path, hw_object *out);

/* ---- patch.c: jumps written into running code ---- */
/* Redirect what the object defines; base is its load address, end the first address past it. The
 * runtime's functions go to a private copy or to the one that all share. */
bool hw_patch_object(const hw_object *o, uintptr_t base, uintptr_t start, uintptr_t end,
                     bool is_private);
/* Lead functions of the object to others of it. */
bool hw_patch_reroutes(const hw_object *o, uintptr_t base);
/* Make the empty function at address call ours. */
bool hw_patch_hook(void *address, void (*fn)(void));

#endif
