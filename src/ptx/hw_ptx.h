/* SPDX-License-Identifier: Apache-2.0
 *
 * ptx: PTX text made a checked module, lowered to the warp IR. ptx.def is the ISA.
 *
 *   unit    one PTX text parsed and checked (every instruction matched against ptx.def).
 *   module  units linked: kernels, functions, variables with one index each; externs resolved.
 * Lifetimes: unit and module live in the arena they were made in; the text must outlive them
 * (borrowed), and so must the messages' texts: they quote it.
 * Threads: parsing shares nothing. Linking writes into its units (which definition a name means), so
 * a unit belongs to one module; after that the module is only read.
 */
#ifndef HW_PTX_H
#define HW_PTX_H

#include "hw_base.h"
#include "hw_wir.h"

typedef struct hw_ptx_unit hw_ptx_unit;

typedef struct hw_ptx_param {
    const char *name;
    uint32_t offset, size, align; /* in parameter space */
} hw_ptx_param;

typedef struct hw_ptx_kernel {
    const char *name;
    const hw_ptx_param *params;
    uint32_t nparams, param_bytes;
    uint32_t maxntid[3], reqntid[3]; /* 0: not said */
    uint32_t max_threads;            /* product of maxntid, or 0 */
    uint32_t min_blocks_per_sm, maxnreg, cluster[3];
    uint32_t static_shared_bytes; /* of the kernel and all it can call */
    bool uses_dynamic_shared;
    uint32_t local_bytes; /* declared local memory of a thread, callees included */
    bool recursive;       /* a call cycle is reachable: local_bytes counts it once */
    uint32_t registers;   /* estimate by liveness in 32-bit registers; 0 until lowered once */
    uint32_t ptx_version, target; /* 90 = 9.0; 75 = sm_75 */
    const char *file;             /* first .file name or NULL */
} hw_ptx_kernel;

typedef enum { HW_PTX_GLOBAL, HW_PTX_CONST } hw_ptx_variable_space;

typedef struct hw_ptx_reloc { /* the device address of a variable (or the value of a function) to be
                                 written into initial bytes */
    uint32_t offset;
    uint8_t width; /* bytes: 4 or 8 (mask() operators: part of the address) */
    uint8_t shift; /* bits the address is shifted right first */
    bool is_function;
    uint32_t target; /* variable index, or function value as FUNC_ADDR gives it */
    int64_t addend;
} hw_ptx_reloc;

typedef struct hw_ptx_variable {
    const char *name;
    hw_ptx_variable_space space;
    uint64_t size;
    uint32_t align;
    bool visible, managed;
    const uint8_t *init; /* init_bytes of it, the rest zero; NULL: all zero */
    uint64_t init_bytes;
    const hw_ptx_reloc *relocs;
    uint32_t nrelocs;
    bool is_texture, is_sampler,
        is_surface; /* .texref, .samplerref, .surfref: opaque handles of 8 bytes */
} hw_ptx_variable;

typedef struct hw_ptx_module {
    const hw_ptx_kernel *kernels;
    uint32_t nkernels;
    const hw_ptx_variable *variables;
    uint32_t nvariables;
    uint8_t key[32]; /* hash of all texts in order, for hw_jit_source */
    struct hw_ptx_link *priv;
} hw_ptx_module;

/* What a kernel's address is to kernels that launch it: this, and its index in the module. */
enum { HW_PTX_KERNEL_HANDLE = 0x4b000000, HW_PTX_KERNEL_INDEX = 0xffffff };

/* Parse and check. Errors: HW_E_SYNTAX (218) with line, column, caret, and only the real errors;
 * HW_E_VERSION (222) for a PTX version newer than known. origin names the text in messages (e.g.
 * "kernel.ptx"). Target needs above the device's are no error. */
hw_status hw_ptx_parse(hw_arena *a, hw_str text, const char *origin, hw_ptx_unit **out, hw_diag *d);
/* Link units: extern functions and variables to visible definitions, weak and common merged,
 * unit-local names apart. HW_E_LINK names what is missing (except the device runtime's own:
 * vprintf, malloc, free, __assertfail ...). */
hw_status hw_ptx_link(hw_arena *a, hw_ptx_unit *const *units, size_t n, hw_ptx_module **out,
                      hw_diag *d);
/* Warp IR of one kernel and everything it reaches. Its symbols' external_id index variables. */
hw_status hw_ptx_lower(hw_arena *a, const hw_ptx_module *m, uint32_t kernel, hw_wir_module **out,
                       hw_diag *d);
/* The text that hw_wir_loc.ptx_line counts in; empty if the module is linked of several. Borrowed. */
hw_str hw_ptx_text(const hw_ptx_module *m);
/* Index of a kernel or variable by name; UINT32_MAX if absent. */
uint32_t hw_ptx_find_kernel(const hw_ptx_module *m, const char *name);
uint32_t hw_ptx_find_variable(const hw_ptx_module *m, const char *name);

/* The instruction forms of ptx.def: form i, from 0; false behind the last. In the table's notation. */
typedef struct hw_ptx_form {
    const char *form, *operands, *types;
    uint32_t since, target; /* 90: PTX 9.0; 75: sm_75; 0: all */
} hw_ptx_form;
bool hw_ptx_get_form(uint32_t i, hw_ptx_form *out);

#endif
