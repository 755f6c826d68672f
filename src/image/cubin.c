/* SPDX-License-Identifier: Apache-2.0
 * Cubins: what machine code's metadata says of its kernels (registers, shared and local memory).
 *
 * Section .nv.info has records about any function, .nv.info.NAME about one kernel. A record is
 * { u8 format; u8 attribute; u16 value or length; bytes }, bytes only in the sized format.
 */
#include "elf_view.h"
#include "fatbin.h"

enum { EM_NVIDIA = 190, EM_AMD = 224 };
enum { FORMAT_SIZED = 4 };
enum {
    ATTR_MAX_THREADS = 0x05,
    ATTR_REQUIRED_THREADS = 0x10,
    ATTR_FRAME_SIZE = 0x11,
    ATTR_MIN_STACK_SIZE = 0x12,
    ATTR_PARAM_SIZE = 0x19,
    ATTR_REGISTERS = 0x2f,
    ATTR_BARRIERS = 0x4c
};
/* A file with this section, or linked of parts that had it, counts the block's reserved bytes in its shared sections. */
#define RESERVED_SECTION ".nv.shared.reserved.0"
#define RESERVED_SYMBOL  ".nv.reservedSmem.offset0"
enum { RESERVED_BYTES = 1024, ABI_WITH_WIDE_ARCH = 8 };

typedef struct record {
    uint8_t attribute;
    uint32_t value; /* the 16-bit value, or 0 */
    hw_span bytes;
} record;

static bool next_record(hw_span *rest, record *out)
{
    if (rest->len < 4)
        return false;
    *out = (record){ .attribute = rest->ptr[1], .value = read_u16(rest->ptr + 2) };
    size_t taken = 4;
    if (rest->ptr[0] == FORMAT_SIZED) {
        if (out->value > rest->len - 4)
            return false;
        out->bytes = (hw_span){ rest->ptr + 4, out->value };
        taken += out->value;
    }
    rest->ptr += taken;
    rest->len -= taken;
    return true;
}

static uint32_t product_of_three(hw_span b)
{
    if (b.len < 12)
        return 0;
    uint64_t n = (uint64_t)read_u32(b.ptr) * read_u32(b.ptr + 4);
    n = n > UINT32_MAX ? UINT32_MAX : n * read_u32(b.ptr + 8);
    return n > UINT32_MAX ? UINT32_MAX : (uint32_t)n;
}

static void read_kernel_records(hw_span info, hw_cubin_kernel *k)
{
    record r;
    while (next_record(&info, &r)) {
        if (r.attribute == ATTR_PARAM_SIZE)
            k->param_bytes = r.value;
        else if (r.attribute == ATTR_BARRIERS)
            k->barriers = r.value & 0xff;
        else if (r.attribute == ATTR_MAX_THREADS || r.attribute == ATTR_REQUIRED_THREADS)
            k->max_threads = product_of_three(r.bytes);
    }
}

typedef HW_VEC(hw_cubin_kernel) kernel_list;

static hw_cubin_kernel *kernel_named(kernel_list *list, hw_str name)
{
    for (size_t i = 0; i < list->len; i++)
        if (hw_str_is(name, list->ptr[i].name))
            return &list->ptr[i];
    return NULL;
}

/* Registers and stack are per symbol, in the file's own .nv.info. */
static void read_file_records(const elf_view *elf, const elf_section *info, kernel_list *list)
{
    elf_section symtab;
    if (elf_get_section(elf, info->header.sh_link, &symtab) != HW_OK)
        return;
    hw_span rest = info->bytes;
    record r;
    while (next_record(&rest, &r)) {
        elf_symbol s;
        if (r.bytes.len < 8 || elf_get_symbol(elf, &symtab, read_u32(r.bytes.ptr), &s) != HW_OK)
            continue;
        hw_cubin_kernel *k = kernel_named(list, s.name);
        if (!k)
            continue;
        uint32_t value = read_u32(r.bytes.ptr + 4);
        if (r.attribute == ATTR_REGISTERS)
            k->registers = value;
        else if (r.attribute == ATTR_FRAME_SIZE || r.attribute == ATTR_MIN_STACK_SIZE)
            k->local_bytes = value > k->local_bytes ? value : k->local_bytes;
    }
}

static void read_shared(const elf_section *s, bool has_reserved, hw_cubin_kernel *k)
{
    uint64_t size = s->header.sh_size;
    if (has_reserved && size >= RESERVED_BYTES)
        size -= RESERVED_BYTES;
    k->static_shared_bytes = size > UINT32_MAX ? UINT32_MAX : (uint32_t)size;
}

static bool counts_reserved(const elf_view *elf)
{
    elf_section s;
    elf_symbol symbol;
    if (elf_find_section(elf, RESERVED_SECTION, &s))
        return true;
    if (!elf_find_section(elf, ".symtab", &s))
        return false;
    for (uint32_t i = 1; elf_get_symbol(elf, &s, i, &symbol) == HW_OK; i++)
        if (hw_str_is(symbol.name, RESERVED_SYMBOL))
            return true;
    return false;
}

hw_status hw_cubin_kernels(hw_arena *a, hw_span bytes, hw_cubin_kernel **out, size_t *n, hw_diag *d)
{
    static const char per_kernel[] = ".nv.info.", shared[] = ".nv.shared.";
    elf_view elf;
    elf_section s;
    kernel_list list = { 0 };
    HW_TRY(elf_open(bytes, &elf, d));
    if (elf.header.e_machine != EM_NVIDIA)
        return hw_fail(d, HW_E_INVALID, "not a cubin (ELF machine %u)", elf.header.e_machine);
    for (uint32_t i = 1; i < elf.n_sections; i++) {
        if (elf_get_section(&elf, i, &s) != HW_OK || !hw_str_starts(s.name, HW_STR(per_kernel)))
            continue;
        size_t skip = sizeof per_kernel - 1;
        hw_cubin_kernel k = { 0 };
        k.name = hw_arena_cstr(a, (hw_str){ s.name.ptr + skip, s.name.len - skip });
        read_kernel_records(s.bytes, &k);
        hw_vec_push(a, &list, k);
    }
    bool has_reserved = counts_reserved(&elf);
    for (uint32_t i = 1; i < elf.n_sections; i++) {
        if (elf_get_section(&elf, i, &s) != HW_OK || !hw_str_starts(s.name, HW_STR(shared)))
            continue;
        size_t skip = sizeof shared - 1;
        hw_cubin_kernel *k = kernel_named(&list, (hw_str){ s.name.ptr + skip, s.name.len - skip });
        if (k)
            read_shared(&s, has_reserved, k);
    }
    if (elf_find_section(&elf, ".nv.info", &s))
        read_file_records(&elf, &s, &list);
    *out = list.ptr;
    *n = list.len;
    return HW_OK;
}

hw_status cubin_entry(hw_span bytes, hw_image_entry *out, hw_diag *d)
{
    elf_view elf;
    HW_TRY(elf_open(bytes, &elf, d));
    *out = (hw_image_entry){ .payload = elf.bytes, .options = "" };
    out->stored_size = out->full_size =
        elf.bytes.len > UINT32_MAX ? UINT32_MAX : (uint32_t)elf.bytes.len;
    if (elf.header.e_machine != EM_NVIDIA) {
        out->kind = HW_ENTRY_OTHER;
        return elf.header.e_machine == EM_AMD
                   ? HW_OK
                   : hw_fail(d, HW_E_UNSUPPORTED, "ELF file for machine %u holds no device code",
                             elf.header.e_machine);
    }
    out->kind = HW_ENTRY_CUBIN;
    uint32_t flags = elf.header.e_flags;
    bool wide = elf.header.e_ident[EI_ABIVERSION] >= ABI_WITH_WIDE_ARCH;
    out->arch = wide ? (flags >> 8) & 0xfff : flags & 0xff;
    out->relocatable = elf.header.e_type == ET_REL;
    return HW_OK;
}
