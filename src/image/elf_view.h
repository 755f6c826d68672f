/* SPDX-License-Identifier: Apache-2.0
 *
 * A read-only look at a 64-bit little-endian ELF file whose bytes nobody has vouched for.
 * Private to image.
 */
#ifndef HW_IMAGE_ELF_VIEW_H
#define HW_IMAGE_ELF_VIEW_H

#include "hw_base.h"

#include <elf.h>

typedef struct elf_view {
    hw_span bytes; /* the whole file; its length is computed when the caller knows none */
    Elf64_Ehdr header;
    const uint8_t *sections; /* section headers inside bytes, maybe unaligned */
    uint32_t n_sections;
    hw_span names; /* section names */
} elf_view;

typedef struct elf_section {
    uint32_t index;
    hw_str name;
    Elf64_Shdr header;
    hw_span bytes; /* empty for SHT_NOBITS */
} elf_section;

typedef struct elf_symbol {
    hw_str name;
    Elf64_Sym sym;
} elf_symbol;

bool elf_is(hw_span bytes);
/* bytes.len SIZE_MAX: the extent is taken from the headers, within a sanity limit. */
hw_status elf_open(hw_span bytes, elf_view *out, hw_diag *d);
/* HW_E_RANGE past the last, HW_E_CORRUPT when the section lies outside of the file. */
hw_status elf_get_section(const elf_view *e, uint32_t index, elf_section *out);
bool elf_find_section(const elf_view *e, const char *name, elf_section *out);
/* Entry i of a symbol table section. */
hw_status elf_get_symbol(const elf_view *e, const elf_section *symtab, uint32_t i, elf_symbol *out);
/* The string at offset of a string table; empty when it does not end inside of it. */
hw_str elf_string(hw_span table, size_t offset);

#endif
