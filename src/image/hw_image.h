/* SPDX-License-Identifier: Apache-2.0
 *
 * image: whatever a program hands over made PTX text (or GCN bytes), with what is found beside it.
 * Formats: fatbin wrapper, bare fatbin, ELF with fatbin sections (host programs and objects), cubin
 * ELF, PTX text, linked images (hw_image_linked_make), AMD code objects. See docs/loading.md.
 *
 * Sources may come without a length (cuModuleLoadData): the headers are walked and each length
 * checked against sanity limits; with a length every read is checked against it. All results live
 * in the arena; texts are NUL-terminated.
 */
#ifndef HW_IMAGE_H
#define HW_IMAGE_H

#include "hw_base.h"

typedef enum hw_image_kind {
    HW_ENTRY_PTX,
    HW_ENTRY_CUBIN,
    HW_ENTRY_LTO,
    HW_ENTRY_OTHER
} hw_image_kind;

typedef struct hw_image_entry {
    hw_image_kind kind;
    uint32_t arch;                         /* 75, 90, ... */
    uint32_t version_major, version_minor; /* PTX ISA or cubin version */
    bool arch_specific, family;            /* sm_90a, compute_100f */
    bool debug, relocatable;               /* relocatable: made with -rdc (option --compile-only) */
    bool compressed;
    hw_span payload;                 /* as stored (borrowed) */
    uint32_t stored_size, full_size; /* bytes; equal if not compressed */
    uint64_t flags;
    const char *source_name; /* or NULL */
    const char *options;     /* ptxas options or "" */
} hw_image_entry;

typedef struct hw_image {
    HW_VEC(hw_image_entry) entries; /* of the main fatbin */
    struct hw_image *units; /* device-linked programs (wrapper version 2): one image a unit */
    size_t n_units;
    bool is_device_linked;
    uint32_t max_registers; /* of a linked image: what it was linked for; 0: not said */
} hw_image;

/* List what bytes hold without unpacking. len = SIZE_MAX: unknown, walk the headers. A bare PTX
 * text gives one entry. */
hw_status hw_image_open(hw_arena *a, const void *bytes, size_t len, hw_image *out, hw_diag *d);
/* The fatbins of a host program, shared object, object file or cubin on disk: all images in it. */
hw_status hw_image_open_file(hw_arena *a, const char *path, hw_image **out, size_t *n, hw_diag *d);
/* Unpack one entry: PTX text or cubin bytes. */
hw_status hw_image_unpack(hw_arena *a, const hw_image_entry *e, hw_str *out, hw_diag *d);
/* The PTX to run on a device of compute capability cc (major*10+minor): the newest entry not above
 * cc, else the lowest; arch-specific ones only for that very cc. Device-linked: one text a unit
 * (libcudadevrt's left out unless needed). HW_E_NO_PTX with one line that names what was found and
 * the remedy ("contains only sm_90 machine code; add -gencode arch=compute_90,code=compute_90"). */
hw_status hw_image_ptx(hw_arena *a, const hw_image *img, uint32_t cc, hw_str **texts, size_t *n,
                       hw_diag *d);

/* PTX texts that belong together made one image: what our linkers answer in place of machine code. It
 * can be opened like any other. max_registers bounds each kernel's
 * registers, 0 does not. Freed by the caller with free; NULL: out of memory. */
void *hw_image_linked_make(const hw_str *texts, size_t n, uint32_t max_registers, size_t *size);

/* What a cubin says of its kernels. */
typedef struct hw_cubin_kernel {
    const char *name;
    uint32_t registers, static_shared_bytes, local_bytes, param_bytes, max_threads, barriers;
} hw_cubin_kernel;
hw_status hw_cubin_kernels(hw_arena *a, hw_span elf, hw_cubin_kernel **out, size_t *n, hw_diag *d);

#endif
