/* SPDX-License-Identifier: Apache-2.0
 * An ELF file's symbols, read from the file: .symtab is not mapped at run time.
 */
#include "takeover.h"

#include <elf.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* nvcc's link step leaves one wrapper of its own, also where nothing else is there. */
enum { WRAPPER_SIZE = 24 };

typedef struct file {
    const char *bytes;
    size_t size;
    const Elf64_Ehdr *header;
    const Elf64_Shdr *sections;
    const char *names;
    size_t names_size;
} file;

static bool inside(const file *f, uint64_t offset, uint64_t size)
{
    return offset <= f->size && size <= f->size - offset;
}

static bool check(file *f)
{
    const Elf64_Ehdr *h = f->header = (const Elf64_Ehdr *)f->bytes;
    if (f->size < sizeof *h || memcmp(h->e_ident, ELFMAG, SELFMAG) != 0 ||
        h->e_ident[EI_CLASS] != ELFCLASS64 || h->e_shentsize != sizeof(Elf64_Shdr) ||
        h->e_shoff % 8 || !inside(f, h->e_shoff, (uint64_t)h->e_shnum * sizeof(Elf64_Shdr)) ||
        h->e_shstrndx >= h->e_shnum)
        return false;
    f->sections = (const Elf64_Shdr *)(f->bytes + h->e_shoff);
    const Elf64_Shdr *names = &f->sections[h->e_shstrndx];
    if (!inside(f, names->sh_offset, names->sh_size) || !names->sh_size)
        return false;
    f->names = f->bytes + names->sh_offset;
    f->names_size = names->sh_size;
    return f->names[f->names_size - 1] == 0;
}

typedef struct table {
    const Elf64_Sym *symbols;
    size_t n;
    const char *strings;
    size_t strings_size;
} table;

static bool open_table(const file *f, const Elf64_Shdr *s, table *out)
{
    if (s->sh_link >= f->header->e_shnum || s->sh_offset % 8 ||
        !inside(f, s->sh_offset, s->sh_size))
        return false;
    const Elf64_Shdr *strings = &f->sections[s->sh_link];
    if (!inside(f, strings->sh_offset, strings->sh_size) || !strings->sh_size ||
        f->bytes[strings->sh_offset + strings->sh_size - 1])
        return false;
    *out = (table){ (const Elf64_Sym *)(f->bytes + s->sh_offset), s->sh_size / sizeof(Elf64_Sym),
                    f->bytes + strings->sh_offset, strings->sh_size };
    return true;
}

static const char *name_of(const table *t, const Elf64_Sym *s)
{
    return s->st_name < t->strings_size ? t->strings + s->st_name : "";
}

static bool is_runtime_name(const char *name)
{
    return strncmp(name, "cuda", 4) == 0 || strncmp(name, "__cuda", 6) == 0;
}

/* nvJitLinkCreate, or __nvJitLinkCreate_12_9 without its version. */
static bool is_linker_name(const char *name, char *plain, size_t room)
{
    static const char head[] = "nvJitLink";
    bool versioned = name[0] == '_' && name[1] == '_';
    name += versioned ? 2 : 0;
    size_t len = strlen(name);
    if (strncmp(name, head, sizeof head - 1) != 0 || len >= room)
        return false;
    memcpy(plain, name, len + 1);
    for (int parts = versioned ? 2 : 0; parts; parts--) {
        char *last = strrchr(plain, '_');
        if (!last)
            return false;
        *last = 0;
    }
    return true;
}

static bool is_hidden(const Elf64_Sym *s)
{
    return ELF64_ST_BIND(s->st_info) == STB_LOCAL || ELF64_ST_VISIBILITY(s->st_other) == STV_HIDDEN;
}

static void note_reroute(const char *name, const Elf64_Sym *s, hw_object *o)
{
    for (size_t i = 0; i < HW_REROUTES; i++) {
        if (strcmp(name, hw_reroutes[i].from) == 0)
            o->from[i] = s->st_value;
        else if (strcmp(name, hw_reroutes[i].to) == 0)
            o->to[i] = s->st_value;
    }
}

/* A static runtime's functions are hidden or local; those of the compilers may be exported. */
static void collect(const table *t, hw_object *o)
{
    char plain[64];
    for (size_t i = 0; i < t->n && o->n_symbols < HW_SYMBOL_MAX; i++) {
        const Elf64_Sym *s = &t->symbols[i];
        const char *name = name_of(t, s);
        if (s->st_shndx == SHN_UNDEF || ELF64_ST_TYPE(s->st_info) != STT_FUNC)
            continue;
        note_reroute(name, s, o);
        bool is_linker = is_linker_name(name, plain, sizeof plain);
        int index = -1;
        if (is_linker)
            index = hw_taken_index(plain);
        else if (is_runtime_name(name) && is_hidden(s))
            index = hw_taken_index(name);
        if (index < 0)
            continue;
        o->symbols[o->n_symbols++] = (hw_taken_symbol){ index, is_linker, s->st_value, s->st_size };
        if (strcmp(name, "cudaThreadSynchronize") == 0)
            o->runtime = HW_RUNTIME_12;
    }
}

/* A dynamic symbol of a registration call, defined or not: the runtime is a shared one. */
static bool names_registration(const table *t)
{
    for (size_t i = 0; i < t->n; i++) {
        if (strcmp(name_of(t, &t->symbols[i]), "__cudaRegisterFatBinary") == 0)
            return true;
    }
    return false;
}

static uint32_t gnu_hash(const char *name)
{
    uint32_t h = 5381;
    for (; *name; name++)
        h = h * 33 + (uint8_t)*name;
    return h;
}

/* Whether a GNU hash section knows the name. Most objects are done with after a few words of it,
 * where going through their symbols would take milliseconds (System V ABI, GNU's extension). */
static bool is_exported(const file *f, const Elf64_Shdr *s, const table *t, const char *name)
{
    enum { HEAD_WORDS = 4 };
    const uint32_t *w = (const uint32_t *)(f->bytes + s->sh_offset);
    uint64_t n = s->sh_size / sizeof *w;
    if (s->sh_offset % 8 || !inside(f, s->sh_offset, s->sh_size) || n < HEAD_WORDS)
        return false;
    uint32_t buckets = w[0], first = w[1], hash = gnu_hash(name);
    uint64_t bucket_at = HEAD_WORDS + (uint64_t)w[2] * 2, chain_at = bucket_at + buckets;
    if (!buckets || chain_at > n)
        return false;
    for (uint64_t i = w[bucket_at + hash % buckets]; i >= first && i < t->n; i++) {
        if (chain_at + (i - first) >= n)
            return false;
        uint32_t link = w[chain_at + (i - first)];
        if ((link | 1) == (hash | 1) && strcmp(name_of(t, &t->symbols[i]), name) == 0)
            return true;
        if (link & 1)
            return false;
    }
    return false;
}

static bool holds_compiler(const file *f, const Elf64_Shdr *hash, const table *t)
{
    static const char *const names[] = { "nvrtcGetCUBIN", "nvJitLinkCreate" };
    if (!hash) /* an older kind of hash, or none */
        return true;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (is_exported(f, hash, t, names[i]))
            return true;
    return false;
}

static void read_sections(const file *f, hw_object *o)
{
    table t, dynamic = { 0 };
    const Elf64_Shdr *hash = NULL;
    for (size_t i = 1; i < f->header->e_shnum; i++) {
        const Elf64_Shdr *s = &f->sections[i];
        const char *name = s->sh_name < f->names_size ? f->names + s->sh_name : "";
        if (strcmp(name, ".nvFatBinSegment") == 0)
            o->registers_code = s->sh_size > WRAPPER_SIZE;
        else if (strncmp(name, ".halfwarp_", 10) == 0)
            o->is_ours = true;
        else if (s->sh_type == SHT_GNU_HASH)
            hash = s;
        else if (s->sh_type == SHT_DYNSYM && open_table(f, s, &t))
            dynamic = t;
        else if (s->sh_type == SHT_SYMTAB && open_table(f, s, &t)) {
            o->has_symbols = true;
            collect(&t, o);
        }
    }
    o->is_dynamic = o->registers_code && names_registration(&dynamic);
    if (!o->has_symbols && holds_compiler(f, hash, &dynamic))
        collect(&dynamic, o);
}

bool hw_object_read(const char *path, hw_object *out)
{
    struct stat st;
    file f = { 0 };
    out->n_symbols = 0;
    out->runtime = HW_RUNTIME_13;
    memset(out->from, 0, sizeof out->from);
    memset(out->to, 0, sizeof out->to);
    out->registers_code = out->has_symbols = out->is_dynamic = out->is_ours = false;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    bool ok = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0;
    if (ok) {
        f.size = (size_t)st.st_size;
        out->device = st.st_dev;
        out->inode = st.st_ino;
        f.bytes = mmap(NULL, f.size, PROT_READ, MAP_PRIVATE, fd, 0);
        ok = f.bytes != MAP_FAILED;
    }
    close(fd);
    if (!ok)
        return false;
    ok = check(&f);
    if (ok)
        read_sections(&f, out);
    munmap((void *)f.bytes, f.size);
    return ok;
}
