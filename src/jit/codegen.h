/* SPDX-License-Identifier: Apache-2.0
 *
 * What the two halves of the jit room say to each other: the cache (no LLVM) and the code generator
 * (a shared library of its own, opened at the first miss).
 */
#ifndef HW_JIT_CODEGEN_H
#define HW_JIT_CODEGEN_H

#include "hw_jit.h"

enum { HW_CODEGEN_ABI = 4 };

typedef struct hw_codegen_options {
    const char *cpu; /* LLVM's name of a processor; NULL: this host with its features */
    bool keep_ir;    /* also return the IR text, for tests and bug reports */
} hw_codegen_options;

typedef struct hw_codegen_out {
    hw_span object; /* a relocatable ELF file */
    hw_code info;   /* all but `run` */
    const char *ir; /* if asked for */
} hw_codegen_out;

/* The name of the warp function in the object. */
#define HW_CODEGEN_ENTRY "hw_kernel"

/* Everything of the result lives in a. The module is changed (prepared, simplified). */
typedef hw_status hw_codegen_fn(hw_arena *a, hw_wir_module *m, const hw_variant *v,
                                const hw_codegen_options *o, hw_codegen_out *out, hw_diag *d);

/* The one symbol of libhalfwarp-codegen.so. */
typedef struct hw_codegen_api {
    uint32_t abi;
    hw_codegen_fn *compile;
    const void *llvm; /* an address in LLVM's code */
    /* Called at the end of the process before LLVM's destructors, which are already registered. */
    void (*at_exit)(void (*fn)(void));
} hw_codegen_api;
extern const hw_codegen_api hw_codegen;

/* C functions that generated code reaches by name; cold paths only (symbols.c). */
typedef struct hw_jit_piece {
    int64_t offset; /* from the lane's address */
    uint32_t bytes, loc;
} hw_jit_piece;
typedef void hw_jit_check_fn(hw_frame *f, const uint64_t *addr, uint32_t lanes,
                             const hw_jit_piece *pieces, uint32_t n);
hw_jit_check_fn hw_jit_check_range, hw_jit_check_shared;
/* The same for addresses s + c[lane] + d[lane] * r; c and d stand one after the other, the pieces
 * end with one of no bytes. */
typedef void hw_jit_check_affine_fn(hw_frame *f, uint64_t s, uint64_t r, const int64_t *c_and_d,
                                    uint32_t lanes, const hw_jit_piece *pieces);
hw_jit_check_affine_fn hw_jit_check_affine, hw_jit_check_affine_shared;
/* Arithmetic in a rounding mode, for hosts without AVX-512: operands at mem, mem + 256, mem + 512;
 * results replace the first. */
void hw_jit_rounded(uint8_t *mem, uint32_t op, uint32_t round, uint32_t f64, uint32_t bytes);
/* The address of an external symbol of generated code, or NULL. */
void *hw_jit_symbol(hw_str name);

/* loader.c: make an object file runnable. */
typedef struct hw_loaded {
    void *base;
    size_t size;
    void *entry;
    uint8_t *lines; /* the line table, for lines.c; NULL: none. Owned */
    size_t lines_bytes;
} hw_loaded;
hw_status hw_load_object(hw_span object, const char *entry, hw_loaded *out, hw_diag *d);
void hw_unload(hw_loaded *l);

/* lines.c: the line of the instruction at pc, 0 if unknown. */
uint32_t hw_lines_find(hw_span table, uint64_t pc);

#endif
