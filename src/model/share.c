/* SPDX-License-Identifier: Apache-2.0
 *
 * A model in memory that outlives its program. Whoever starts the program makes a file in memory
 * (hw_model_share_make) and names it to the program, whose model then lives in it; from there one
 * can see how far it is, and when it ended without writing its profile, write it
 * (hw_model_share_write). Everything the profile file needs lies in the model's arena, at the
 * address the program had it. */
#include "model.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { LAYOUT = 1, HEADER_BYTES = 4096 };
#define SHARE_BYTES ((size_t)1 << 30) /* of which only what is used takes room */
#define WISHED_AT   ((void *)0x5a0000000000)

struct hw_model_share {
    uint32_t layout, sizes; /* of the program that writes */
    char version[32];
    _Atomic(pid_t) owner;      /* 0: nobody, or it ended well */
    struct hw_model_share *at; /* where the owner has it */
    hw_model *model;
    _Atomic bool changing; /* a launch is being added */
    _Atomic uint64_t launches, blocks;
    /* Of the launches under way; of several the name is the newest's. */
    _Atomic uint32_t running;
    _Atomic uint64_t began_ns, blocks_here, blocks_all;
    char kernel[64];
};
_Static_assert(sizeof(hw_model_share) <= HEADER_BYTES, "the header has its room");

static uint32_t sizes(void)
{
    return (uint32_t)(sizeof(hw_model) + 31 * sizeof(entry) + 31 * 31 * sizeof(slot)) + HW_TOTALS +
           HW_FIELDS;
}

static hw_model_share *map(int fd, void *at, int flags)
{
    void *p =
        mmap(at, SHARE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE | flags, fd, 0);
    return p == MAP_FAILED ? NULL : p;
}

/* ---- who starts the program ---- */

int hw_model_share_make(void)
{
    int fd = memfd_create("halfwarp-profile", MFD_CLOEXEC);
    if (fd >= 0 && ftruncate(fd, (off_t)SHARE_BYTES) == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

const hw_model_share *hw_model_share_watch(int fd)
{
    void *p = mmap(NULL, HEADER_BYTES, PROT_READ, MAP_SHARED, fd, 0);
    return p == MAP_FAILED ? NULL : p;
}

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

hw_model_progress hw_model_share_progress(const hw_model_share *s)
{
    hw_model_progress p = { .launches = s->launches, .blocks = s->blocks };
    if (s->running) {
        memcpy(p.kernel, s->kernel, sizeof p.kernel - 1);
        p.blocks_here = s->blocks_here;
        p.blocks_all = s->blocks_all;
        uint64_t spent = now_ns() - s->began_ns;
        if (p.blocks_here && p.blocks_here <= p.blocks_all)
            p.seconds_left = (double)spent * 1e-9 * (double)(p.blocks_all - p.blocks_here) /
                             (double)p.blocks_here;
    }
    return p;
}

hw_status hw_model_share_write(int fd, const char *path, bool complete, hw_diag *d)
{
    const hw_model_share *seen = hw_model_share_watch(fd);
    if (!seen || !seen->owner || !seen->model)
        return hw_fail(d, HW_E_NOT_FOUND, "the program launched nothing");
    if (seen->layout != LAYOUT || seen->sizes != sizes() ||
        strncmp(seen->version, HW_VERSION, sizeof seen->version) != 0)
        return hw_fail(d, HW_E_UNSUPPORTED, "the program used another version of Halfwarp");
    hw_model_share *s = map(fd, seen->at, MAP_FIXED_NOREPLACE);
    if (!s || s != seen->at || hw_arena_is_beyond(s->model->arena))
        return hw_fail(d, HW_E_NOMEM, "what the program left cannot be read");
    s->model->torn = s->changing;
    s->model->lost = hw_model_share_progress(seen);
    pthread_mutex_init(&s->model->lock, NULL); /* whoever held it is gone */
    return hw_model_write(s->model, path, complete, d);
}

/* ---- the program ---- */

/* The file in memory if nobody else has it, its arena's memory behind the header; NULL: none. */
hw_arena *hw_model_share_take(const char *name, hw_model_share **out)
{
    int fd = name ? open(name, O_RDWR | O_CLOEXEC) : -1;
    struct stat st;
    pid_t nobody = 0;
    *out = NULL;
    if (fd < 0)
        return NULL;
    bool whole = fstat(fd, &st) == 0 && (uint64_t)st.st_size == SHARE_BYTES;
    hw_model_share *s = whole ? map(fd, WISHED_AT, 0) : NULL;
    if (s && !atomic_compare_exchange_strong(&s->owner, &nobody, getpid())) {
        munmap(s, SHARE_BYTES);
        s = NULL;
    }
    /* An earlier program's model may have been here. */
    if (s && fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, HEADER_BYTES,
                       (off_t)(SHARE_BYTES - HEADER_BYTES)) != 0) {
        s->owner = 0;
        munmap(s, SHARE_BYTES);
        s = NULL;
    }
    close(fd);
    if (!s)
        return NULL;
    s->model = NULL;
    s->layout = LAYOUT;
    s->sizes = sizes();
    snprintf(s->version, sizeof s->version, "%s", HW_VERSION);
    s->at = s;
    *out = s;
    return hw_arena_new_in((uint8_t *)s + HEADER_BYTES, SHARE_BYTES - HEADER_BYTES);
}

void hw_model_share_ready(hw_model *m)
{
    if (m->share)
        m->share->model = m;
}

void hw_model_share_begin(hw_model *m, const char *kernel, uint64_t blocks)
{
    hw_model_share *s = m->share;
    if (!s)
        return;
    pthread_mutex_lock(&m->lock);
    if (s->running++ == 0) {
        s->blocks_here = s->blocks_all = 0;
        s->began_ns = now_ns();
    }
    s->blocks_all += blocks;
    hw_arena *a = hw_arena_new();
    snprintf(s->kernel, sizeof s->kernel, "%s", hw_model_short_name(a, kernel));
    hw_arena_free(a);
    pthread_mutex_unlock(&m->lock);
}

void hw_model_share_block(hw_model *m)
{
    atomic_fetch_add_explicit(&m->share->blocks_here, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&m->share->blocks, 1, memory_order_relaxed);
}

void hw_model_share_end(hw_model *m)
{
    if (m->share)
        m->share->running--;
}

void hw_model_share_changing(hw_model *m, bool changing)
{
    if (!m->share)
        return;
    m->share->changing = changing;
    if (!changing)
        m->share->launches = m->launches;
}

bool hw_model_is_kept(const hw_model *m)
{
    return m->share && !hw_arena_is_beyond(m->arena);
}

void hw_model_written(hw_model *m)
{
    if (m->share)
        m->share->owner = 0;
}
