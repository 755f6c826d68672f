/* SPDX-License-Identifier: Apache-2.0
 * AMD code objects: ELF sections and symbols, kernel descriptors, metadata.
 * Source: LLVM AMDGPUUsage, "Code Object", "Kernel Descriptor", "Code Object Metadata". */
#include "gcn.h"
#include "msgpack.h"

#include <elf.h>

enum {
    MACHINE_AMDGPU = 224,
    OSABI_HSA = 64,
    NOTE_METADATA = 32,
    DESCRIPTOR_BYTES = 64,
    MOST_KERNELS = 1 << 16,
};

static const struct {
    uint8_t machine;
    uint8_t families;
    const char *name;
} targets[] = {
    { 0x20, HW_GCN_SI, "gfx600" }, { 0x21, HW_GCN_SI, "gfx601" }, { 0x22, HW_GCN_CI, "gfx700" },
    { 0x23, HW_GCN_CI, "gfx701" }, { 0x24, HW_GCN_CI, "gfx702" }, { 0x25, HW_GCN_CI, "gfx703" },
    { 0x26, HW_GCN_CI, "gfx704" }, { 0x28, 0, "gfx801" },         { 0x29, 0, "gfx802" },
    { 0x2a, 0, "gfx803" },         { 0x2b, 0, "gfx810" },         { 0x2c, 0, "gfx900" },
    { 0x2d, 0, "gfx902" },         { 0x2e, 0, "gfx904" },         { 0x2f, 0, "gfx906" },
    { 0x30, 0, "gfx908" },         { 0x31, 0, "gfx909" },         { 0x32, 0, "gfx90c" },
    { 0x3a, HW_GCN_SI, "gfx602" }, { 0x3b, HW_GCN_CI, "gfx705" }, { 0x3c, 0, "gfx805" },
    { 0x3f, 0, "gfx90a" },
};

typedef struct reader {
    hw_arena *arena;
    hw_span elf;
    const Elf64_Shdr *sections; /* copied, aligned */
    uint32_t nsections;
    hw_gcn_object *out;
    HW_VEC(hw_gcn_kernel) kernels;
    hw_diag *diag;
} reader;

bool hw_gcn_is_object(hw_span elf)
{
    Elf64_Ehdr h;
    if (elf.len < sizeof h)
        return false;
    memcpy(&h, elf.ptr, sizeof h);
    return memcmp(h.e_ident, ELFMAG, SELFMAG) == 0 && h.e_ident[EI_CLASS] == ELFCLASS64 &&
           h.e_machine == MACHINE_AMDGPU;
}

/* [offset, offset + size) of the file, or an empty span if it is not inside. */
static hw_span inside(const reader *r, uint64_t offset, uint64_t size)
{
    if (offset > r->elf.len || size > r->elf.len - offset)
        return (hw_span){ NULL, 0 };
    return (hw_span){ r->elf.ptr + offset, (size_t)size };
}

static hw_span contents(const reader *r, const Elf64_Shdr *s)
{
    return s->sh_type == SHT_NOBITS ? (hw_span){ NULL, 0 } : inside(r, s->sh_offset, s->sh_size);
}

static hw_str string_at(hw_span table, uint64_t offset)
{
    if (offset >= table.len)
        return (hw_str){ "", 0 };
    const char *p = (const char *)table.ptr + offset;
    return (hw_str){ p, strnlen(p, table.len - (size_t)offset) };
}

static hw_status read_sections(reader *r)
{
    Elf64_Ehdr h;
    memcpy(&h, r->elf.ptr, sizeof h);
    hw_span table = inside(r, h.e_shoff, (uint64_t)h.e_shnum * sizeof(Elf64_Shdr));
    if (!h.e_shnum || h.e_shentsize != sizeof(Elf64_Shdr) || !table.ptr)
        return hw_fail(r->diag, HW_E_CORRUPT,
                       "code object: the section table (offset %llu, %u entries) is not inside the "
                       "file of %zu bytes",
                       (unsigned long long)h.e_shoff, h.e_shnum, r->elf.len);
    Elf64_Shdr *sections = HW_NEW_N(r->arena, Elf64_Shdr, h.e_shnum);
    memcpy(sections, table.ptr, table.len);
    r->sections = sections;
    r->nsections = h.e_shnum;
    r->out->machine = h.e_flags & 0xff;
    /* ABI version 1 is code object v3, 2 is v4, 3 is v5. */
    if (h.e_ident[EI_OSABI] == OSABI_HSA && h.e_ident[EI_ABIVERSION] >= 1 &&
        h.e_ident[EI_ABIVERSION] <= 3)
        r->out->version = h.e_ident[EI_ABIVERSION] + 2u;
    for (size_t t = 0; t < HW_COUNTOF(targets); t++)
        if (targets[t].machine == r->out->machine) {
            r->out->target = targets[t].name;
            r->out->families = targets[t].families;
        }
    hw_span names =
        h.e_shstrndx < r->nsections ? contents(r, &sections[h.e_shstrndx]) : (hw_span){ NULL, 0 };
    for (uint32_t s = 0; s < r->nsections; s++)
        if (hw_str_is(string_at(names, sections[s].sh_name), ".text")) {
            r->out->code = contents(r, &sections[s]);
            r->out->code_address = sections[s].sh_addr;
        }
    return HW_OK;
}

/* ---- metadata ---- */
static void copy_text(reader *r, const char **to, pack_value v)
{
    if (v.kind == PACK_STR)
        *to = hw_arena_cstr(r->arena, v.text);
}

static void read_arg(reader *r, pack_reader *p, hw_gcn_arg *a)
{
    pack_value map = pack_next(p);
    for (uint64_t k = 0; map.kind == PACK_MAP && k < map.number && !p->bad; k++) {
        hw_str key = pack_next(p).text;
        if (hw_str_is(key, ".name"))
            copy_text(r, &a->name, pack_next(p));
        else if (hw_str_is(key, ".value_kind"))
            copy_text(r, &a->kind, pack_next(p));
        else if (hw_str_is(key, ".type_name"))
            copy_text(r, &a->type, pack_next(p));
        else if (hw_str_is(key, ".offset"))
            a->offset = (uint32_t)pack_next(p).number;
        else if (hw_str_is(key, ".size"))
            a->size = (uint32_t)pack_next(p).number;
        else
            pack_skip(p);
    }
}

static void read_args(reader *r, pack_reader *p, hw_gcn_kernel *k)
{
    pack_value list = pack_next(p);
    if (list.kind != PACK_ARRAY || list.number > (uint64_t)(p->end - p->at)) {
        p->bad = true;
        return;
    }
    hw_gcn_arg *args = HW_NEW_N(r->arena, hw_gcn_arg, (size_t)list.number);
    for (uint64_t i = 0; i < list.number && !p->bad; i++)
        read_arg(r, p, &args[i]);
    k->args = args;
    k->nargs = (uint32_t)list.number;
}

static void read_reqd_size(pack_reader *p, hw_gcn_kernel *k)
{
    pack_value list = pack_next(p);
    for (uint64_t i = 0; list.kind == PACK_ARRAY && i < list.number && !p->bad; i++) {
        pack_value v = pack_next(p);
        if (i < 3)
            k->reqd_group_size[i] = (uint32_t)v.number;
    }
}

/* Numbers of a kernel's map, by key. */
static const struct {
    const char *key;
    size_t field;
} numbers[] = {
    { ".vgpr_count", offsetof(hw_gcn_kernel, vgprs) },
    { ".sgpr_count", offsetof(hw_gcn_kernel, sgprs) },
    { ".group_segment_fixed_size", offsetof(hw_gcn_kernel, lds_bytes) },
    { ".private_segment_fixed_size", offsetof(hw_gcn_kernel, scratch_bytes) },
    { ".kernarg_segment_size", offsetof(hw_gcn_kernel, kernarg_bytes) },
    { ".max_flat_workgroup_size", offsetof(hw_gcn_kernel, max_group_size) },
};

static bool read_number(pack_reader *p, hw_str key, hw_gcn_kernel *k)
{
    for (size_t n = 0; n < HW_COUNTOF(numbers); n++)
        if (hw_str_is(key, numbers[n].key)) {
            uint32_t v = (uint32_t)pack_next(p).number;
            memcpy((uint8_t *)k + numbers[n].field, &v, sizeof v);
            k->exact_registers |= n < 2;
            return true;
        }
    return false;
}

static void read_kernel(reader *r, pack_reader *p)
{
    hw_gcn_kernel k = { 0 };
    pack_value map = pack_next(p);
    for (uint64_t i = 0; map.kind == PACK_MAP && i < map.number && !p->bad; i++) {
        hw_str key = pack_next(p).text;
        if (hw_str_is(key, ".name"))
            copy_text(r, &k.name, pack_next(p));
        else if (hw_str_is(key, ".args"))
            read_args(r, p, &k);
        else if (hw_str_is(key, ".reqd_workgroup_size"))
            read_reqd_size(p, &k);
        else if (!read_number(p, key, &k))
            pack_skip(p);
    }
    if (k.name && !p->bad)
        hw_vec_push(r->arena, &r->kernels, k);
}

static hw_status read_metadata(reader *r, hw_span bytes)
{
    pack_reader p = { bytes.ptr, bytes.ptr + bytes.len, false };
    pack_value map = pack_next(&p);
    for (uint64_t i = 0; map.kind == PACK_MAP && i < map.number && !p.bad; i++) {
        hw_str key = pack_next(&p).text;
        if (!hw_str_is(key, "amdhsa.kernels")) {
            pack_skip(&p);
            continue;
        }
        pack_value list = pack_next(&p);
        if (list.kind != PACK_ARRAY || list.number > MOST_KERNELS)
            p.bad = true;
        for (uint64_t k = 0; k < list.number && !p.bad; k++)
            read_kernel(r, &p);
    }
    return p.bad ? hw_fail(r->diag, HW_E_CORRUPT,
                           "code object: the metadata (MessagePack, %zu bytes) is malformed",
                           bytes.len)
                 : HW_OK;
}

static hw_status read_notes(reader *r, hw_span notes)
{
    size_t at = 0;
    while (notes.len - at >= sizeof(Elf64_Nhdr)) {
        Elf64_Nhdr n;
        memcpy(&n, notes.ptr + at, sizeof n);
        at += sizeof n;
        uint64_t name = ((uint64_t)n.n_namesz + 3) / 4 * 4,
                 desc = ((uint64_t)n.n_descsz + 3) / 4 * 4;
        if (name > notes.len - at || n.n_descsz > notes.len - at - name)
            return hw_fail(r->diag, HW_E_CORRUPT, "code object: a note reaches past its section");
        if (n.n_type == NOTE_METADATA)
            HW_TRY(read_metadata(r, (hw_span){ notes.ptr + at + name, n.n_descsz }));
        at += (size_t)name;
        at += (size_t)(desc < notes.len - at ? desc : notes.len - at);
    }
    return HW_OK;
}

/* ---- descriptors ---- */
static uint32_t word(hw_span s, size_t at)
{
    uint32_t v;
    memcpy(&v, s.ptr + at, sizeof v);
    return v;
}

static hw_gcn_kernel *kernel_named(reader *r, hw_str name)
{
    for (size_t k = 0; k < r->kernels.len; k++)
        if (hw_str_is(name, r->kernels.ptr[k].name))
            return &r->kernels.ptr[k];
    hw_vec_push(r->arena, &r->kernels, (hw_gcn_kernel){ .name = hw_arena_cstr(r->arena, name) });
    return &r->kernels.ptr[r->kernels.len - 1];
}

static void read_descriptor(reader *r, hw_gcn_kernel *k, hw_span d, uint64_t address, bool linked)
{
    if (!k->exact_registers) {
        k->lds_bytes = word(d, 0);
        k->scratch_bytes = word(d, 4);
        k->kernarg_bytes = word(d, 8);
    }
    k->rsrc3 = word(d, 44);
    k->rsrc1 = word(d, 48);
    k->rsrc2 = word(d, 52);
    k->properties = word(d, 56) & 0xffff;
    k->vgprs_allocated = 4 * ((k->rsrc1 & 63) + 1);
    k->sgprs_allocated = 8 * ((k->rsrc1 >> 6 & 15) + 1);
    k->float_mode = k->rsrc1 >> 12 & 255;
    k->user_sgprs = k->rsrc2 >> 1 & 31;
    if (!k->exact_registers) {
        k->vgprs = k->vgprs_allocated;
        k->sgprs = k->sgprs_allocated;
    }
    int64_t entry;
    memcpy(&entry, d.ptr + 16, sizeof entry);
    if (linked)
        k->code_offset = address + (uint64_t)entry - r->out->code_address;
}

/* Symbols NAME.kd are descriptors, functions NAME give the code's place and size. */
static void read_symbol(reader *r, const Elf64_Sym *s, hw_str name)
{
    if (s->st_shndx == SHN_UNDEF || s->st_shndx >= r->nsections)
        return;
    const Elf64_Shdr *section = &r->sections[s->st_shndx];
    bool linked = section->sh_addr != 0;
    uint64_t at = linked ? s->st_value - section->sh_addr : s->st_value;
    hw_span bytes = contents(r, section);
    if (!hw_str_ends(name, HW_STR(".kd")) || at > bytes.len || bytes.len - at < DESCRIPTOR_BYTES)
        return;
    hw_gcn_kernel *k = kernel_named(r, (hw_str){ name.ptr, name.len - 3 });
    read_descriptor(r, k, (hw_span){ bytes.ptr + at, DESCRIPTOR_BYTES }, s->st_value, linked);
}

static void place_code(reader *r, const Elf64_Sym *s, hw_str name)
{
    if (ELF64_ST_TYPE(s->st_info) != STT_FUNC)
        return;
    for (size_t k = 0; k < r->kernels.len; k++)
        if (hw_str_is(name, r->kernels.ptr[k].name)) {
            r->kernels.ptr[k].code_offset = s->st_value - r->out->code_address;
            r->kernels.ptr[k].code_size = s->st_size;
        }
}

static void each_symbol(reader *r, const Elf64_Shdr *table,
                        void (*visit)(reader *, const Elf64_Sym *, hw_str))
{
    hw_span symbols = contents(r, table);
    hw_span names = table->sh_link < r->nsections ? contents(r, &r->sections[table->sh_link])
                                                  : (hw_span){ NULL, 0 };
    for (size_t at = 0; symbols.len - at >= sizeof(Elf64_Sym); at += sizeof(Elf64_Sym)) {
        Elf64_Sym s;
        memcpy(&s, symbols.ptr + at, sizeof s);
        visit(r, &s, string_at(names, s.st_name));
    }
}

static const Elf64_Shdr *symbol_table(const reader *r)
{
    const Elf64_Shdr *best = NULL;
    for (uint32_t s = 0; s < r->nsections; s++)
        if (r->sections[s].sh_type == SHT_SYMTAB || (r->sections[s].sh_type == SHT_DYNSYM && !best))
            best = &r->sections[s];
    return best;
}

hw_status hw_gcn_open(hw_arena *a, hw_span elf, hw_gcn_object *out, hw_diag *d)
{
    *out = (hw_gcn_object){ 0 };
    reader r = { .arena = a, .elf = elf, .out = out, .diag = d };
    if (!hw_gcn_is_object(elf))
        return hw_fail(d, HW_E_INVALID,
                       "not an AMD GPU code object (a 64-bit ELF file for machine %d)",
                       MACHINE_AMDGPU);
    HW_TRY(read_sections(&r));
    for (uint32_t s = 0; s < r.nsections; s++)
        if (r.sections[s].sh_type == SHT_NOTE)
            HW_TRY(read_notes(&r, contents(&r, &r.sections[s])));
    const Elf64_Shdr *symbols = symbol_table(&r);
    if (symbols) {
        each_symbol(&r, symbols, read_symbol);
        each_symbol(&r, symbols, place_code);
    }
    for (size_t k = 0; k < r.kernels.len; k++)
        if (r.kernels.ptr[k].code_offset > out->code.len)
            return hw_fail(d, HW_E_CORRUPT, "code object: kernel %s starts outside .text",
                           r.kernels.ptr[k].name);
    out->kernels = r.kernels.ptr;
    out->nkernels = (uint32_t)r.kernels.len;
    return HW_OK;
}
