/* SPDX-License-Identifier: Apache-2.0
 * ELF files read with every offset checked.
 */
#include "elf_view.h"

enum { SECTION_LIMIT = 1 << 20 };
#define EXTENT_LIMIT ((uint64_t)1 << 31) /* of a file whose length nobody gave */

static bool inside(hw_span all, uint64_t offset, uint64_t size)
{
    return offset <= all.len && size <= all.len - offset;
}

bool elf_is(hw_span bytes)
{
    return bytes.len >= SELFMAG && memcmp(bytes.ptr, ELFMAG, SELFMAG) == 0;
}

static hw_status read_header(hw_span bytes, Elf64_Ehdr *h, hw_diag *d)
{
    if (bytes.len < sizeof *h)
        return hw_fail(d, HW_E_CORRUPT, "ELF file of %zu bytes is shorter than its header",
                       bytes.len);
    memcpy(h, bytes.ptr, sizeof *h);
    if (h->e_ident[EI_CLASS] != ELFCLASS64 || h->e_ident[EI_DATA] != ELFDATA2LSB)
        return hw_fail(d, HW_E_UNSUPPORTED, "ELF file is not 64-bit little-endian");
    if (h->e_shnum && h->e_shentsize != sizeof(Elf64_Shdr))
        return hw_fail(d, HW_E_CORRUPT, "ELF section headers of %u bytes", h->e_shentsize);
    if (h->e_phnum && h->e_phentsize != sizeof(Elf64_Phdr))
        return hw_fail(d, HW_E_CORRUPT, "ELF program headers of %u bytes", h->e_phentsize);
    return HW_OK;
}

static bool stretch(uint64_t *end, uint64_t offset, uint64_t size)
{
    if (offset > EXTENT_LIMIT || size > EXTENT_LIMIT)
        return false;
    if (offset + size > *end)
        *end = offset + size;
    return true;
}

/* How far the file reaches according to its headers. */
static hw_status extent(const uint8_t *p, const Elf64_Ehdr *h, size_t *out, hw_diag *d)
{
    uint64_t end = sizeof *h;
    bool ok = stretch(&end, h->e_shoff, (uint64_t)h->e_shnum * sizeof(Elf64_Shdr)) &&
              stretch(&end, h->e_phoff, (uint64_t)h->e_phnum * sizeof(Elf64_Phdr));
    for (uint32_t i = 0; ok && i < h->e_shnum; i++) {
        Elf64_Shdr s;
        memcpy(&s, p + h->e_shoff + i * sizeof s, sizeof s);
        ok = s.sh_type == SHT_NULL || s.sh_type == SHT_NOBITS ||
             stretch(&end, s.sh_offset, s.sh_size);
    }
    for (uint32_t i = 0; ok && i < h->e_phnum; i++) {
        Elf64_Phdr s;
        memcpy(&s, p + h->e_phoff + i * sizeof s, sizeof s);
        ok = stretch(&end, s.p_offset, s.p_filesz);
    }
    if (!ok)
        return hw_fail(d, HW_E_CORRUPT, "ELF headers give an impossible length");
    *out = (size_t)end;
    return HW_OK;
}

hw_status elf_open(hw_span bytes, elf_view *out, hw_diag *d)
{
    *out = (elf_view){ .bytes = bytes };
    Elf64_Ehdr *h = &out->header;
    HW_TRY(read_header(bytes, h, d));
    if (bytes.len == SIZE_MAX)
        HW_TRY(extent(bytes.ptr, h, &out->bytes.len, d));
    bytes = out->bytes;
    uint64_t n = h->e_shnum;
    if (n == 0 && h->e_shoff && inside(bytes, h->e_shoff, sizeof(Elf64_Shdr))) {
        Elf64_Shdr first; /* too many sections for the header's field: the count is here */
        memcpy(&first, bytes.ptr + h->e_shoff, sizeof first);
        n = first.sh_size;
    }
    if (n > SECTION_LIMIT || !inside(bytes, h->e_shoff, n * sizeof(Elf64_Shdr)))
        return hw_fail(d, HW_E_CORRUPT, "ELF section headers lie outside of the file");
    out->sections = bytes.ptr + h->e_shoff;
    out->n_sections = (uint32_t)n;
    elf_section names;
    if (h->e_shstrndx < n && elf_get_section(out, h->e_shstrndx, &names) == HW_OK)
        out->names = names.bytes;
    return HW_OK;
}

hw_str elf_string(hw_span table, size_t offset)
{
    if (offset >= table.len)
        return (hw_str){ "", 0 };
    const char *s = (const char *)table.ptr + offset;
    const char *end = memchr(s, 0, table.len - offset);
    return end ? (hw_str){ s, (size_t)(end - s) } : (hw_str){ "", 0 };
}

hw_status elf_get_section(const elf_view *e, uint32_t index, elf_section *out)
{
    if (index >= e->n_sections)
        return HW_E_RANGE;
    *out = (elf_section){ .index = index };
    memcpy(&out->header, e->sections + (size_t)index * sizeof(Elf64_Shdr), sizeof(Elf64_Shdr));
    out->name = elf_string(e->names, out->header.sh_name);
    if (out->header.sh_type == SHT_NOBITS || out->header.sh_type == SHT_NULL)
        return HW_OK;
    if (!inside(e->bytes, out->header.sh_offset, out->header.sh_size))
        return HW_E_CORRUPT;
    out->bytes = (hw_span){ e->bytes.ptr + out->header.sh_offset, (size_t)out->header.sh_size };
    return HW_OK;
}

bool elf_find_section(const elf_view *e, const char *name, elf_section *out)
{
    for (uint32_t i = 1; i < e->n_sections; i++)
        if (elf_get_section(e, i, out) == HW_OK && hw_str_is(out->name, name))
            return true;
    return false;
}

hw_status elf_get_symbol(const elf_view *e, const elf_section *symtab, uint32_t i, elf_symbol *out)
{
    if (i >= symtab->bytes.len / sizeof(Elf64_Sym))
        return HW_E_RANGE;
    elf_section strings;
    HW_TRY(elf_get_section(e, symtab->header.sh_link, &strings));
    memcpy(&out->sym, symtab->bytes.ptr + (size_t)i * sizeof(Elf64_Sym), sizeof(Elf64_Sym));
    out->name = elf_string(strings.bytes, out->sym.st_name);
    return HW_OK;
}
