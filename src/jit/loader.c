/* SPDX-License-Identifier: Apache-2.0
 *
 * A small loader of the relocatable ELF objects that LLVM writes for position-independent x86-64
 * code: lays out the sections, applies relocations, makes the result executable. Bounds are
 * checked throughout: cache files may be damaged.
 */
#include "codegen.h"

#include <elf.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { STUB_BYTES = 16, MOST_STUBS = 64 };

typedef struct object {
    hw_span file;
    const Elf64_Ehdr *h;
    const Elf64_Shdr *sections;
    uint64_t *offset; /* per section: where it lies in the image; UINT64_MAX: not loaded */
    uint64_t size, stubs_at;
    uint32_t nstubs;
    uint8_t *image;
    hw_arena *scratch;
    hw_diag *d;
} object;

static hw_status damaged(object *o, const char *what)
{
    return hw_fail(o->d, HW_E_CORRUPT, "object file: %s", what);
}

static bool inside(const object *o, uint64_t at, uint64_t n)
{
    return at <= o->file.len && n <= o->file.len - at;
}

static hw_status read_header(object *o)
{
    o->h = (const void *)o->file.ptr;
    if (o->file.len < sizeof *o->h || memcmp(o->h->e_ident, ELFMAG, SELFMAG) != 0)
        return damaged(o, "not ELF");
    if (o->h->e_machine != EM_X86_64 || o->h->e_type != ET_REL ||
        o->h->e_shentsize != sizeof(Elf64_Shdr))
        return damaged(o, "not a relocatable x86-64 object");
    if (!inside(o, o->h->e_shoff, (uint64_t)o->h->e_shnum * sizeof(Elf64_Shdr)) ||
        o->h->e_shoff % 8 != 0)
        return damaged(o, "section table outside the file");
    o->sections = (const void *)(o->file.ptr + o->h->e_shoff);
    for (unsigned i = 0; i < o->h->e_shnum; i++) {
        const Elf64_Shdr *s = &o->sections[i];
        if (s->sh_type != SHT_NOBITS && s->sh_type != SHT_NULL &&
            !inside(o, s->sh_offset, s->sh_size))
            return damaged(o, "section outside the file");
    }
    return HW_OK;
}

static bool wanted(const Elf64_Shdr *s)
{
    return (s->sh_flags & SHF_ALLOC) && s->sh_type != SHT_X86_64_UNWIND;
}

static hw_status lay_out(object *o)
{
    o->offset = HW_NEW_N(o->scratch, uint64_t, o->h->e_shnum);
    for (unsigned i = 0; i < o->h->e_shnum; i++) {
        const Elf64_Shdr *s = &o->sections[i];
        o->offset[i] = UINT64_MAX;
        if (!wanted(s))
            continue;
        uint64_t align = s->sh_addralign ? s->sh_addralign : 1;
        if ((align & (align - 1)) || align > 4096 || s->sh_size > (uint64_t)1 << 30)
            return damaged(o, "section alignment or size");
        o->size = (o->size + align - 1) & ~(align - 1);
        o->offset[i] = o->size;
        o->size += s->sh_size;
    }
    o->stubs_at = (o->size + 63) & ~UINT64_C(63);
    o->size = o->stubs_at + MOST_STUBS * STUB_BYTES;
    return HW_OK;
}

static hw_status copy(object *o)
{
    void *p = mmap(NULL, o->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return hw_fail(o->d, HW_E_NOMEM, "no memory for %llu bytes of code",
                       (unsigned long long)o->size);
    o->image = p;
    for (unsigned i = 0; i < o->h->e_shnum; i++)
        if (o->offset[i] != UINT64_MAX && o->sections[i].sh_type != SHT_NOBITS)
            memcpy(o->image + o->offset[i], o->file.ptr + o->sections[i].sh_offset,
                   o->sections[i].sh_size);
    return HW_OK;
}

/* ---- symbols ---- */

static hw_status symbol_table(object *o, unsigned index, const Elf64_Sym **syms, uint64_t *n,
                              hw_span *names)
{
    if (index >= o->h->e_shnum || o->sections[index].sh_type != SHT_SYMTAB ||
        o->sections[index].sh_link >= o->h->e_shnum || o->sections[index].sh_offset % 8 != 0)
        return damaged(o, "symbol table");
    const Elf64_Shdr *s = &o->sections[index], *t = &o->sections[s->sh_link];
    *syms = (const void *)(o->file.ptr + s->sh_offset);
    *n = s->sh_size / sizeof(Elf64_Sym);
    *names = (hw_span){ o->file.ptr + t->sh_offset, t->sh_size };
    if (names->len == 0 || names->ptr[names->len - 1] != 0)
        return damaged(o, "string table");
    return HW_OK;
}

/* jmp [rip + 2]; the address: reaches any symbol from a 32-bit call. */
static hw_status stub_for(object *o, uint64_t to, uint64_t *at)
{
    uint8_t *stubs = o->image + o->stubs_at;
    for (uint32_t i = 0; i < o->nstubs; i++)
        if (memcmp(stubs + i * STUB_BYTES + 8, &to, 8) == 0) {
            *at = (uint64_t)(uintptr_t)(stubs + i * STUB_BYTES);
            return HW_OK;
        }
    if (o->nstubs == MOST_STUBS)
        return damaged(o, "too many external symbols");
    uint8_t *s = stubs + o->nstubs++ * STUB_BYTES;
    static const uint8_t jump[8] = { 0xff, 0x25, 0x02, 0, 0, 0, 0xcc, 0xcc };
    memcpy(s, jump, sizeof jump);
    memcpy(s + 8, &to, 8);
    *at = (uint64_t)(uintptr_t)s;
    return HW_OK;
}

static hw_status address_of(object *o, const Elf64_Sym *s, hw_span names, bool *external,
                            uint64_t *out)
{
    *external = s->st_shndx == SHN_UNDEF;
    if (*external) {
        if (s->st_name >= names.len)
            return damaged(o, "symbol name");
        const char *name = (const char *)names.ptr + s->st_name;
        void *p = hw_jit_symbol(hw_str_of(name));
        if (!p)
            return hw_fail(o->d, HW_E_INTERNAL, "generated code asks for '%s', which is not there",
                           name);
        *out = (uint64_t)(uintptr_t)p;
        return HW_OK;
    }
    if (s->st_shndx >= o->h->e_shnum || o->offset[s->st_shndx] == UINT64_MAX)
        return damaged(o, "symbol in a section that is not loaded");
    *out = (uint64_t)(uintptr_t)o->image + o->offset[s->st_shndx] + s->st_value;
    return HW_OK;
}

/* ---- relocations ---- */

static hw_status put32(object *o, uint8_t *at, int64_t v, bool is_signed)
{
    if (is_signed ? v != (int32_t)v : (uint64_t)v != (uint32_t)v)
        return damaged(o, "relocation out of reach");
    uint32_t x = (uint32_t)v;
    memcpy(at, &x, 4);
    return HW_OK;
}

static hw_status relocate(object *o, uint8_t *at, uint64_t room, unsigned type, uint64_t to,
                          bool external, int64_t addend)
{
    uint64_t place = (uint64_t)(uintptr_t)at;
    if (room < 4 || (type == R_X86_64_64 && room < 8))
        return damaged(o, "relocation outside its section");
    switch (type) {
    case R_X86_64_64:
        to += (uint64_t)addend;
        memcpy(at, &to, 8);
        return HW_OK;
    case R_X86_64_PC32:
    case R_X86_64_PLT32:
        if (external)
            HW_TRY(stub_for(o, to, &to));
        return put32(o, at, (int64_t)(to + (uint64_t)addend - place), true);
    case R_X86_64_GOTPCREL:
    case R_X86_64_GOTPCRELX:
    case R_X86_64_REX_GOTPCRELX:
        HW_TRY(stub_for(o, to, &to)); /* a stub's second half is the address: a GOT entry */
        return put32(o, at, (int64_t)(to + 8 + (uint64_t)addend - place), true);
    case R_X86_64_32:
        return put32(o, at, (int64_t)(to + (uint64_t)addend), false);
    case R_X86_64_32S:
        return put32(o, at, (int64_t)(to + (uint64_t)addend), true);
    default:
        return hw_fail(o->d, HW_E_CORRUPT, "object file: relocation type %u", type);
    }
}

static hw_status relocate_section(object *o, const Elf64_Shdr *r)
{
    const Elf64_Sym *syms;
    uint64_t nsyms;
    hw_span names;
    if (r->sh_info >= o->h->e_shnum || r->sh_offset % 8 != 0)
        return damaged(o, "relocation section");
    if (o->offset[r->sh_info] == UINT64_MAX)
        return HW_OK;
    HW_TRY(symbol_table(o, r->sh_link, &syms, &nsyms, &names));
    const Elf64_Rela *a = (const void *)(o->file.ptr + r->sh_offset);
    uint64_t size = o->sections[r->sh_info].sh_size;
    uint8_t *base = o->image + o->offset[r->sh_info];
    for (uint64_t i = 0; i < r->sh_size / sizeof *a; i++) {
        uint64_t to = 0;
        bool external = false;
        if (ELF64_R_SYM(a[i].r_info) >= nsyms || a[i].r_offset > size)
            return damaged(o, "relocation");
        HW_TRY(address_of(o, &syms[ELF64_R_SYM(a[i].r_info)], names, &external, &to));
        HW_TRY(relocate(o, base + a[i].r_offset, size - a[i].r_offset,
                        (unsigned)ELF64_R_TYPE(a[i].r_info), to, external, a[i].r_addend));
    }
    return HW_OK;
}

/* ---- the line table: kept beside the code ---- */

static unsigned find_lines(const object *o)
{
    if (o->h->e_shstrndx >= o->h->e_shnum)
        return 0;
    const Elf64_Shdr *t = &o->sections[o->h->e_shstrndx];
    static const char name[] = ".debug_line";
    for (unsigned i = 1; i < o->h->e_shnum; i++)
        if (o->sections[i].sh_name <= t->sh_size &&
            t->sh_size - o->sections[i].sh_name >= sizeof name && t->sh_type == SHT_STRTAB &&
            memcmp(o->file.ptr + t->sh_offset + o->sections[i].sh_name, name, sizeof name) == 0 &&
            o->sections[i].sh_type == SHT_PROGBITS)
            return i;
    return 0;
}

static hw_status relocate_lines(object *o, const Elf64_Shdr *r, hw_loaded *out)
{
    const Elf64_Sym *syms;
    uint64_t nsyms;
    hw_span names;
    if (r->sh_offset % 8 != 0)
        return damaged(o, "relocation section");
    HW_TRY(symbol_table(o, r->sh_link, &syms, &nsyms, &names));
    const Elf64_Rela *a = (const void *)(o->file.ptr + r->sh_offset);
    for (uint64_t i = 0; i < r->sh_size / sizeof *a; i++) {
        uint64_t to = 0;
        bool external = false;
        if (ELF64_R_SYM(a[i].r_info) >= nsyms || a[i].r_offset > out->lines_bytes)
            return damaged(o, "relocation");
        if (ELF64_R_TYPE(a[i].r_info) != R_X86_64_64)
            continue; /* names of files, which nobody reads */
        HW_TRY(address_of(o, &syms[ELF64_R_SYM(a[i].r_info)], names, &external, &to));
        HW_TRY(relocate(o, out->lines + a[i].r_offset, out->lines_bytes - a[i].r_offset,
                        R_X86_64_64, to, external, a[i].r_addend));
    }
    return HW_OK;
}

static hw_status keep_lines(object *o, hw_loaded *out)
{
    unsigned at = find_lines(o);
    if (at == 0)
        return HW_OK;
    const Elf64_Shdr *s = &o->sections[at];
    out->lines = malloc(s->sh_size + 1);
    if (!out->lines)
        return hw_fail(o->d, HW_E_NOMEM, "out of host memory");
    out->lines_bytes = s->sh_size;
    memcpy(out->lines, o->file.ptr + s->sh_offset, s->sh_size);
    for (unsigned i = 0; i < o->h->e_shnum; i++)
        if (o->sections[i].sh_type == SHT_RELA && o->sections[i].sh_info == at)
            HW_TRY(relocate_lines(o, &o->sections[i], out));
    return HW_OK;
}

static hw_status find_entry(object *o, const char *name, hw_loaded *out)
{
    for (unsigned i = 0; i < o->h->e_shnum; i++) {
        const Elf64_Sym *syms;
        uint64_t n;
        hw_span names;
        if (o->sections[i].sh_type != SHT_SYMTAB)
            continue;
        HW_TRY(symbol_table(o, i, &syms, &n, &names));
        for (uint64_t k = 0; k < n; k++) {
            bool external;
            uint64_t at = 0;
            if (syms[k].st_name >= names.len || syms[k].st_shndx == SHN_UNDEF ||
                strcmp((const char *)names.ptr + syms[k].st_name, name) != 0)
                continue;
            HW_TRY(address_of(o, &syms[k], names, &external, &at));
            out->entry = (void *)(uintptr_t)at;
            return HW_OK;
        }
    }
    return damaged(o, "no entry");
}

static hw_status load(object *o, const char *entry, hw_loaded *out)
{
    HW_TRY(read_header(o));
    HW_TRY(lay_out(o));
    HW_TRY(copy(o));
    for (unsigned i = 0; i < o->h->e_shnum; i++)
        if (o->sections[i].sh_type == SHT_RELA)
            HW_TRY(relocate_section(o, &o->sections[i]));
    HW_TRY(keep_lines(o, out));
    HW_TRY(find_entry(o, entry, out));
    if (mprotect(o->image, o->size, PROT_READ | PROT_EXEC) != 0)
        return hw_fail(o->d, HW_E_NOMEM, "this system does not let memory be made executable");
    out->base = o->image;
    out->size = o->size;
    return HW_OK;
}

hw_status hw_load_object(hw_span file, const char *entry, hw_loaded *out, hw_diag *d)
{
    object o = { .file = file, .d = d, .scratch = hw_arena_new() };
    *out = (hw_loaded){ 0 };
    hw_status s = load(&o, entry, out);
    if (s != HW_OK) {
        if (o.image)
            munmap(o.image, o.size);
        free(out->lines);
        *out = (hw_loaded){ 0 };
    }
    hw_arena_free(o.scratch);
    return s;
}

void hw_unload(hw_loaded *l)
{
    if (l->base)
        munmap(l->base, l->size);
    free(l->lines);
    *l = (hw_loaded){ 0 };
}
