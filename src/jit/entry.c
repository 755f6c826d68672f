/* SPDX-License-Identifier: Apache-2.0
 *
 * Cache entries on disk. A file is: header (magic, format, checksum, lengths, key), the code's
 * description, symbols, places with their texts, the object. It is read only by the build and
 * processor that wrote it; anything unexpected is a miss.
 */
#include "entry.h"

#include "count.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FORMAT = 4 };
static const char MAGIC[8] = "HWJITOBJ";

typedef struct header {
    char magic[8];
    uint32_t format, n_symbols, n_locs, text_bytes;
    uint64_t object_bytes, checksum; /* of all that follows the header */
    hw_entry_key key;
    uint32_t save_bytes, stack_bytes, local_bytes, static_shared_bytes, registers, count_bytes;
    uint8_t recursive, suspends, spins, flush_all;
    uint32_t made_us;
    uint8_t best, whole_block, relays, zero;
} header;

typedef struct place {
    uint32_t file, function; /* offsets into the texts; 0: none */
    uint32_t line, column, ptx_line, inlined_at;
} place;

hw_entry_key hw_entry_key_of(const hw_jit_source *s, const hw_variant *v, uint64_t build)
{
    hw_entry_key k;
    memset(&k, 0, sizeof k);
    memcpy(k.source, s->key, sizeof k.source);
    memcpy(k.block, v->block, sizeof k.block);
    k.listeners = v->listeners;
    k.independent = v->independent;
    k.small_grid = v->small_grid;
    k.lockstep_first = v->lockstep_first;
    k.no_shapes = v->no_shapes;
    k.cooperative = v->cooperative;
    k.whole_blocks = v->whole_blocks;
    k.tier = v->tier;
    k.build = build;
    return k;
}

/* ---- packing ---- */

typedef struct texts {
    hw_arena *a;
    hw_intern *names;
    uint32_t *offset; /* by intern id */
    HW_VEC(char) bytes;
} texts;

static uint32_t text(texts *t, const char *s, size_t most)
{
    if (!s)
        return 0;
    if (!t->names) {
        t->names = hw_intern_new(t->a);
        t->offset = HW_NEW_N(t->a, uint32_t, most + 1);
        hw_vec_push(t->a, &t->bytes, 0);
    }
    uint32_t id = hw_intern_id(t->names, hw_str_of(s));
    if (!t->offset[id]) {
        t->offset[id] = (uint32_t)t->bytes.len;
        for (const char *c = s;; c++) {
            hw_vec_push(t->a, &t->bytes, *c);
            if (!*c)
                break;
        }
    }
    return t->offset[id];
}

static header describe(const hw_entry_key *k, const hw_code *info)
{
    header h;
    memset(&h, 0, sizeof h);
    memcpy(h.magic, MAGIC, sizeof h.magic);
    h.format = FORMAT;
    h.key = *k;
    h.n_symbols = info->n_symbols;
    h.n_locs = info->n_locs;
    h.save_bytes = info->save_bytes;
    h.stack_bytes = info->stack_bytes;
    h.local_bytes = info->local_bytes;
    h.static_shared_bytes = info->static_shared_bytes;
    h.registers = info->registers;
    h.recursive = info->recursive;
    h.suspends = info->suspends;
    h.spins = info->spins;
    h.flush_all = info->flush_all;
    h.made_us = info->made_us;
    h.best = info->best;
    h.whole_block = info->whole_block;
    h.relays = info->relays;
    return h;
}

/* Where the object begins. */
static size_t padded_bytes(const header *h)
{
    size_t n = sizeof *h + (size_t)h->n_symbols * 4 + sizeof(place) * h->n_locs + h->text_bytes +
               h->count_bytes;
    return (n + 15) / 16 * 16;
}

hw_span hw_entry_pack(hw_arena *a, const hw_entry_key *k, hw_span object, const hw_code *info)
{
    header h = describe(k, info);
    texts t = { .a = a };
    place *places = HW_NEW_N(a, place, info->n_locs + 1);
    for (uint32_t i = 0; i < info->n_locs; i++) {
        const hw_wir_loc *l = &info->locs[i];
        size_t most = (size_t)info->n_locs * 2;
        places[i] = (place){ text(&t, l->file, most),
                             text(&t, l->function, most),
                             l->line,
                             l->column,
                             l->ptx_line,
                             l->inlined_at };
    }
    h.text_bytes = (uint32_t)t.bytes.len;
    h.object_bytes = object.len;
    hw_span count = info->count ? hw_count_pack(a, info->count) : (hw_span){ 0 };
    h.count_bytes = (uint32_t)count.len;
    size_t at = sizeof h, symbols = (size_t)h.n_symbols * 4, locs = sizeof(place) * h.n_locs;
    size_t texts_end = at + symbols + locs + h.text_bytes, padded = padded_bytes(&h);
    uint8_t *out = hw_arena_alloc(a, padded + object.len);
    if (symbols)
        memcpy(out + at, info->symbols, symbols);
    if (locs)
        memcpy(out + at + symbols, places, locs);
    if (h.text_bytes)
        memcpy(out + at + symbols + locs, t.bytes.ptr, h.text_bytes);
    if (count.len)
        memcpy(out + texts_end, count.ptr, count.len);
    memcpy(out + padded, object.ptr, object.len);
    h.checksum = hw_hash64(out + at, padded + object.len - at, 1);
    memcpy(out, &h, sizeof h);
    return (hw_span){ out, padded + object.len };
}

/* ---- unpacking ---- */

static const char *text_at(const char *texts_at, uint32_t n, uint32_t offset)
{
    return offset && offset < n ? texts_at + offset : NULL;
}

static bool valid(hw_span file, const header *h, const hw_entry_key *k)
{
    if (memcmp(h->magic, MAGIC, sizeof MAGIC) != 0 || h->format != FORMAT ||
        memcmp(&h->key, k, sizeof *k) != 0)
        return false;
    if (h->n_symbols > file.len || h->n_locs > file.len || h->text_bytes > file.len ||
        h->count_bytes > file.len || h->object_bytes > file.len)
        return false;
    return hw_hash64(file.ptr + sizeof *h, file.len - sizeof *h, 1) == h->checksum;
}

bool hw_entry_unpack(hw_arena *a, hw_span file, const hw_entry_key *k, hw_span *object,
                     hw_code *info)
{
    header h;
    if (file.len < sizeof h)
        return false;
    memcpy(&h, file.ptr, sizeof h);
    if (!valid(file, &h, k))
        return false;
    size_t at = sizeof h, symbols = (size_t)h.n_symbols * 4, locs = sizeof(place) * h.n_locs;
    size_t padded = padded_bytes(&h);
    if (file.len != padded + h.object_bytes)
        return false;
    const char *words = (const char *)file.ptr + at + symbols + locs;
    if (h.text_bytes && words[h.text_bytes - 1] != 0)
        return false;
    hw_wir_loc *l = HW_NEW_N(a, hw_wir_loc, h.n_locs + 1);
    for (uint32_t i = 0; i < h.n_locs; i++) {
        place p;
        memcpy(&p, file.ptr + at + symbols + i * sizeof p, sizeof p);
        l[i] = (hw_wir_loc){
            text_at(words, h.text_bytes, p.file),    p.line, p.column, p.ptx_line, p.inlined_at,
            text_at(words, h.text_bytes, p.function)
        };
    }
    const hw_count_table *count = NULL;
    hw_span packed = { (const uint8_t *)words + h.text_bytes, h.count_bytes };
    if (packed.len && !(count = hw_count_unpack(a, packed, l, h.n_locs)))
        return false;
    *info = (hw_code){ .save_bytes = h.save_bytes,
                       .stack_bytes = h.stack_bytes,
                       .recursive = h.recursive,
                       .local_bytes = h.local_bytes,
                       .static_shared_bytes = h.static_shared_bytes,
                       .registers = h.registers,
                       .n_symbols = h.n_symbols,
                       .symbols = (const uint32_t *)(const void *)(file.ptr + at),
                       .suspends = h.suspends,
                       .whole_block = h.whole_block,
                       .relays = h.relays,
                       .spins = h.spins,
                       .flush_all = h.flush_all,
                       .n_locs = h.n_locs,
                       .locs = l,
                       .count = count,
                       .best = h.best,
                       .made_us = h.made_us };
    *object = (hw_span){ file.ptr + padded, h.object_bytes };
    return true;
}

/* ---- the directory ---- */

bool hw_entry_dir_open(hw_entry_dir *d)
{
    char path[4096];
    size_t n = strlen(d->path);
    if (n == 0 || n >= sizeof path)
        return false;
    memcpy(path, d->path, n + 1);
    for (char *p = path + 1; *p; p++) /* its parents too */
        if (*p == '/') {
            *p = 0;
            mkdir(path, 0777);
            *p = '/';
        }
    if (mkdir(path, 0777) != 0 && errno != EEXIST)
        return false;
    return access(path, W_OK | X_OK) == 0;
}

static const char *file_of(hw_arena *a, const hw_entry_dir *d, const hw_entry_key *k)
{
    return hw_arena_printf(a, "%s/%016llx%016llx.hwo", d->path,
                           (unsigned long long)hw_hash64(k, sizeof *k, 11),
                           (unsigned long long)hw_hash64(k, sizeof *k, 22));
}

bool hw_entry_load(hw_arena *a, const hw_entry_dir *d, const hw_entry_key *k, hw_span *object,
                   hw_code *info, bool *damaged)
{
    hw_str file;
    *damaged = false;
    if (hw_read_file(a, file_of(a, d, k), &file, NULL) != HW_OK)
        return false;
    hw_span bytes = { (const uint8_t *)file.ptr, file.len };
    if (hw_entry_unpack(a, bytes, k, object, info))
        return true;
    *damaged = true;
    return false;
}

typedef struct aged {
    char name[64];
    uint64_t bytes;
    struct timespec used;
} aged;

static int older_first(const void *x, const void *y)
{
    const aged *a = x, *b = y;
    if (a->used.tv_sec != b->used.tv_sec)
        return a->used.tv_sec < b->used.tv_sec ? -1 : 1;
    return a->used.tv_nsec < b->used.tv_nsec ? -1 : a->used.tv_nsec > b->used.tv_nsec;
}

/* Over the limit: remove the oldest until three quarters are left. */
static void evict(hw_arena *a, const hw_entry_dir *d)
{
    HW_VEC(aged) all = { 0 };
    uint64_t sum = 0;
    DIR *dir = opendir(d->path);
    if (!dir)
        return;
    for (struct dirent *e = readdir(dir); e; e = readdir(dir)) {
        struct stat st;
        aged one = { .bytes = 0 };
        size_t n = strlen(e->d_name);
        if (n >= sizeof one.name || n < 5 || strstr(e->d_name, ".hwo") == NULL ||
            fstatat(dirfd(dir), e->d_name, &st, 0) != 0)
            continue;
        memcpy(one.name, e->d_name, n + 1);
        one.bytes = (uint64_t)st.st_size;
        one.used = st.st_mtim;
        sum += one.bytes;
        hw_vec_push(a, &all, one);
    }
    if (sum > d->limit && all.len) {
        qsort(all.ptr, all.len, sizeof *all.ptr, older_first);
        for (size_t i = 0; i < all.len && sum > d->limit / 4 * 3; i++) {
            unlinkat(dirfd(dir), all.ptr[i].name, 0);
            sum -= all.ptr[i].bytes;
        }
    }
    closedir(dir);
}

static bool write_all(int fd, hw_span bytes)
{
    while (bytes.len) {
        ssize_t n = write(fd, bytes.ptr, bytes.len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        bytes.ptr += n;
        bytes.len -= (size_t)n;
    }
    return true;
}

bool hw_entry_store(hw_arena *a, hw_entry_dir *d, const hw_entry_key *k, hw_span object,
                    const hw_code *info)
{
    static atomic_uint serial;
    hw_span bytes = hw_entry_pack(a, k, object, info);
    const char *path = file_of(a, d, k);
    const char *temp = hw_arena_printf(a, "%s.%d.%u", path, (int)getpid(),
                                       atomic_fetch_add_explicit(&serial, 1, memory_order_relaxed));
    int fd = open(temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0)
        return false;
    bool ok = write_all(fd, bytes);
    ok &= close(fd) == 0;
    if (!ok || rename(temp, path) != 0) {
        unlink(temp);
        return false;
    }
    if (d->written == 0 || d->written > d->limit / 16) {
        evict(a, d);
        d->written = 0;
    }
    d->written += bytes.len;
    return true;
}

void hw_entry_remove(hw_arena *a, const hw_entry_dir *d, const hw_entry_key *k)
{
    unlink(file_of(a, d, k));
}
