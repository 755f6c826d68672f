/* SPDX-License-Identifier: Apache-2.0
 *
 * gcn: AMD GCN machine code and code objects.
 *
 *   family   which encodings are valid: SI (gfx600-602), CI (gfx700-705; Xbox One, PS4). Code
 * objects of later parts (gfx8, gfx9) open too, but their instructions are not decoded. insn one
 * decoded instruction: its row of gcn.def and the fields of its encoding, as numbers. object   an
 * ELF code object: kernels with their descriptors and metadata (code object v3 to v5).
 *
 * Sources: AMD Sea Islands ISA manual (2013); LLVM AMDGPUUsage (code objects, kernel descriptors).
 * Everything borrowed from the given bytes unless in the arena. Hostile input gives HW_E_CORRUPT,
 * never more.
 */
#ifndef HW_GCN_H
#define HW_GCN_H

#include "hw_base.h"

typedef enum hw_gcn_family { HW_GCN_SI = 1, HW_GCN_CI = 2 } hw_gcn_family;

typedef enum hw_gcn_format {
    HW_GCN_SOP2,
    HW_GCN_SOPK,
    HW_GCN_SOP1,
    HW_GCN_SOPC,
    HW_GCN_SOPP,
    HW_GCN_SMRD,
    HW_GCN_VOP2,
    HW_GCN_VOP1,
    HW_GCN_VOPC,
    HW_GCN_VOP3,
    HW_GCN_DS,
    HW_GCN_FLAT,
    HW_GCN_MUBUF,
    HW_GCN_MTBUF,
    HW_GCN_FORMATS
} hw_gcn_format;

typedef struct hw_gcn_row {
    const char *name;
    uint8_t format; /* hw_gcn_format: of the row, VOP1/VOP2/VOPC also when encoded as VOP3 */
    uint16_t opcode;
    uint8_t dst;    /* dwords written; 0: none */
    uint8_t src[4]; /* dwords of each source; 0: none */
    uint16_t flags; /* G_* of gcn.h */
    uint8_t families;
} hw_gcn_row;

/* Source and destination numbers are the encoding's: 0-103 SGPRs, 106/107 VCC, 126/127 EXEC,
 * 128-208 and 240-247 inline constants, 255 a literal, 256-511 VGPRs. */
typedef struct hw_gcn_insn {
    const hw_gcn_row *row;
    uint8_t encoding; /* hw_gcn_format actually used: VOP3 for promoted forms */
    uint8_t size;     /* bytes: 4 or 8 */
    bool has_literal;
    uint32_t literal;
    uint16_t dst, sdst;     /* vector/scalar destination; scalar one of carry-outs and compares */
    uint16_t src[4];        /* by operand order of the assembler */
    int32_t imm;            /* SIMM16, SMRD/DS/MUBUF offset */
    uint8_t imm2;           /* second DS offset */
    uint8_t abs, neg, omod; /* VOP3 modifiers: bit i = source i; omod 0..3 */
    bool clamp, glc, slc, tfe, lds, gds, offen, idxen, addr64, imm_flag;
    uint8_t dfmt, nfmt; /* MTBUF */
} hw_gcn_insn;

/* Decode the instruction at offset. HW_E_CORRUPT: past the end; HW_E_UNSUPPORTED: no such encoding
 * (out->size is 4). */
hw_status hw_gcn_decode(hw_gcn_family family, hw_span code, size_t offset, hw_gcn_insn *out);
/* Assembler text, as LLVM's assembler reads it, NUL-terminated; returns the length it would have.
 */
size_t hw_gcn_print(const hw_gcn_insn *i, char *out, size_t size);
/* Rows in table order, for tests and tools. */
const hw_gcn_row *hw_gcn_rows(size_t *n);

/* ---- code objects ---- */
typedef struct hw_gcn_arg {
    const char *name, *kind, *type; /* kind: .value_kind; name and type may be NULL */
    uint32_t offset, size;
} hw_gcn_arg;

typedef struct hw_gcn_kernel {
    const char *name;
    uint64_t code_offset; /* of the first instruction in object.code */
    uint64_t code_size;   /* 0: unknown */
    uint32_t lds_bytes, scratch_bytes, kernarg_bytes;
    uint32_t vgprs, sgprs; /* exact from metadata, else rounded from the descriptor */
    uint32_t vgprs_allocated, sgprs_allocated; /* from the descriptor's blocks */
    bool exact_registers;
    uint32_t max_group_size, reqd_group_size[3]; /* 0: not said */
    uint32_t rsrc1, rsrc2, rsrc3, properties;
    uint32_t float_mode, user_sgprs;
    const hw_gcn_arg *args;
    uint32_t nargs;
} hw_gcn_kernel;

typedef struct hw_gcn_object {
    const char *target; /* "gfx704" or NULL if the number is unknown */
    uint32_t machine;   /* e_flags & 0xff */
    uint32_t version;   /* code object version: 3, 4, 5; 0 unknown */
    uint32_t families;  /* hw_gcn_family that decodes it; 0: none does */
    hw_span code;       /* .text */
    uint64_t code_address;
    const hw_gcn_kernel *kernels;
    uint32_t nkernels;
} hw_gcn_object;

/* Is this an AMD GPU ELF at all (machine 224)? */
bool hw_gcn_is_object(hw_span elf);
hw_status hw_gcn_open(hw_arena *a, hw_span elf, hw_gcn_object *out, hw_diag *d);

#endif
