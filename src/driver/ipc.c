/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory and events that several processes have. (CUDA Driver API, cuIpc*.)
 *
 *   file    where such memory, and the state of such an event, lie: an anonymous file of the process that made them.
 *   handle  64 bytes that lead another process of the same user to it: process, descriptor, the file's inode, so that
 *           a descriptor used again for something else is found out.
 *   event   counts how often it was recorded, and up to which of these it was reached.
 *
 * A process that ends takes its handles with it; who has opened them keeps the memory. Who waits for an event of a
 * process that is gone waits no longer.
 */
#include "driver.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

typedef enum { MEMORY = 1, EVENT } what;

typedef struct handle {
    char magic[8];
    uint32_t kind;
    int32_t process, fd;
    uint32_t zero;
    uint64_t inode, bytes, offset, size;
    uint64_t pool;
} handle;
_Static_assert(sizeof(handle) == sizeof(CUipcMemHandle) &&
                   sizeof(handle) == sizeof(CUipcEventHandle) &&
                   sizeof(handle) == sizeof(CUmemPoolPtrExportData),
               "a handle is what the API says");
static const char MAGIC[8] = "halfwarp";

/* ---- handles ---- */

static CUresult name_file(what kind, int fd, uint64_t bytes, handle *out)
{
    struct stat st;
    CU_NEED(fstat(fd, &st) == 0, MAP_FAILED);
    *out =
        (handle){ .kind = kind, .process = getpid(), .fd = fd, .inode = st.st_ino, .bytes = bytes };
    memcpy(out->magic, MAGIC, sizeof MAGIC);
    return CUDA_SUCCESS;
}

/* The file that a handle of another process names, opened here. */
static CUresult open_file(what kind, const handle *h, int *fd)
{
    char path[64];
    struct stat st;
    CU_NEED(memcmp(h->magic, MAGIC, sizeof MAGIC) == 0 && h->kind == (uint32_t)kind,
            INVALID_HANDLE);
    CU_NEED(h->process != getpid(), INVALID_CONTEXT); /* as a device does: use what you have */
    snprintf(path, sizeof path, "/proc/%d/fd/%d", h->process, h->fd);
    *fd = open(path, O_RDWR | O_CLOEXEC);
    CU_NEED(*fd >= 0, MAP_FAILED);
    if (fstat(*fd, &st) == 0 && st.st_ino == h->inode && (uint64_t)st.st_size >= h->bytes)
        return CUDA_SUCCESS;
    close(*fd);
    return CUDA_ERROR_MAP_FAILED;
}

/* ---- memory ---- */

typedef struct hw_cu_import_info { /* of a block */
    uint64_t inode, offset;
    unsigned opened; /* how often */
} hw_cu_import_info;

CUresult hw_cu_export(hw_cu_block *b, uint64_t pool, void *out)
{
    hw_mem_file f;
    handle h;
    hw_status s = hw_mem_share(b->ctx->gpu->mem, b->address, &f);
    CU_NEED(s != HW_E_RANGE, MAP_FAILED);
    CU_TRY(hw_cu_result(s));
    CU_TRY(name_file(MEMORY, f.fd, f.bytes, &h));
    h.offset = f.offset;
    h.size = b->size;
    h.pool = pool;
    memcpy(out, &h, sizeof h);
    return CUDA_SUCCESS;
}

void hw_cu_import_end(hw_cu_block *b)
{
    free(b->import);
    b->import = NULL;
}

CUresult cuIpcGetMemHandle(CUipcMemHandle *out, CUdeviceptr address)
{
    hw_cu_context *ctx;
    hw_mem_info info;
    CU_TRY(hw_cu_current(&ctx));
    CU_NEED(out, INVALID_VALUE);
    hw_cu_block *b = hw_cu_find_block(address, &info);
    CU_NEED(b && info.kind == HW_MEM_DEVICE && !b->pool && !b->fixed && !b->of_graph && !b->import,
            INVALID_VALUE);
    return hw_cu_export(b, 0, out);
}

/* The block as it was opened before; ctx->lock is held. */
static hw_cu_block *opened_before(hw_cu_context *ctx, const handle *h)
{
    for (hw_cu_link *l = ctx->blocks.next; l != &ctx->blocks; l = l->next) {
        hw_cu_block *b = HW_CU_ITEM(l, hw_cu_block, link);
        if (b->import && !b->pool && b->import->inode == h->inode && b->import->offset == h->offset)
            return b;
    }
    return NULL;
}

static CUresult import_file(hw_cu_context *ctx, const handle *h, int fd, hw_cu_block **out)
{
    const hw_mem_file f = { fd, h->bytes, h->offset };
    hw_mem *mem;
    uint64_t address;
    CU_TRY(hw_cu_gpu_mem(ctx->gpu, &mem));
    hw_cu_block *b = calloc(1, sizeof *b);
    hw_cu_import_info *i = calloc(1, sizeof *i);
    hw_status s = b && i ? hw_mem_import(mem, &f, h->size, &address) : HW_E_NOMEM;
    if (s != HW_OK) {
        free(b);
        free(i);
        return s == HW_E_INVALID ? CUDA_ERROR_INVALID_HANDLE : CUDA_ERROR_MAP_FAILED;
    }
    *i = (hw_cu_import_info){ h->inode, h->offset, 1 };
    *b = (hw_cu_block){ .ctx = ctx, .address = address, .size = h->size, .import = i };
    b->preferred.id = b->accessed_by.id = b->prefetched.id = -2; /* CU_DEVICE_INVALID */
    hw_mem_set_tag(mem, address, b);
    pthread_mutex_lock(&ctx->lock);
    hw_cu_list_add(&ctx->blocks, &b->link);
    pthread_mutex_unlock(&ctx->lock);
    *out = b;
    return CUDA_SUCCESS;
}

CUresult hw_cu_import(hw_cu_context *ctx, const void *bytes, uint64_t pool, hw_cu_block **out)
{
    handle h;
    int fd;
    memcpy(&h, bytes, sizeof h);
    CU_NEED(h.pool == pool, INVALID_HANDLE);
    CU_TRY(open_file(MEMORY, &h, &fd));
    CUresult r = import_file(ctx, &h, fd, out);
    if (r != CUDA_SUCCESS)
        close(fd);
    return r;
}

CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *out, CUipcMemHandle bytes, unsigned int flags)
{
    enum { LAZY_ENABLE_PEER_ACCESS = 1 };
    hw_cu_context *ctx;
    handle h;
    CU_TRY(hw_cu_current(&ctx));
    CU_NEED(out && flags == LAZY_ENABLE_PEER_ACCESS, INVALID_VALUE);
    memcpy(&h, &bytes, sizeof h);
    pthread_mutex_lock(&ctx->lock);
    hw_cu_block *b = opened_before(ctx, &h);
    if (b)
        b->import->opened++;
    pthread_mutex_unlock(&ctx->lock);
    if (!b)
        CU_TRY(hw_cu_import(ctx, &bytes, 0, &b));
    *out = b->address;
    return CUDA_SUCCESS;
}

CUresult cuIpcCloseMemHandle(CUdeviceptr address)
{
    hw_cu_context *ctx;
    hw_mem_info info;
    CU_TRY(hw_cu_current(&ctx));
    hw_cu_block *b = hw_cu_find_block(address, &info);
    CU_NEED(b && info.base == address && b->import && !b->pool, INVALID_VALUE);
    pthread_mutex_lock(&b->ctx->lock);
    bool last = --b->import->opened == 0;
    pthread_mutex_unlock(&b->ctx->lock);
    if (!last)
        return CUDA_SUCCESS;
    CU_TRY(hw_cu_synchronize(b->ctx));
    return hw_cu_free_block(b);
}

/* ---- events ---- */

typedef struct state { /* what the processes share */
    _Atomic uint32_t recorded, reached;
    _Atomic int32_t recorder; /* the process that recorded it last */
} state;

struct hw_cu_ipc_event {
    _Atomic uint32_t refs;
    int fd;
    state *s;
};

static hw_cu_ipc_event *event_of(int fd)
{
    hw_cu_ipc_event *e = calloc(1, sizeof *e);
    void *p = e ? mmap(NULL, sizeof(state), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
    if (p == MAP_FAILED) {
        free(e);
        close(fd);
        return NULL;
    }
    *e = (hw_cu_ipc_event){ 1, fd, p };
    return e;
}

hw_cu_ipc_event *hw_cu_ipc_event_new(void)
{
    int fd = memfd_create("halfwarp-event", MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, sizeof(state)) != 0) {
        if (fd >= 0)
            close(fd);
        return NULL;
    }
    return event_of(fd);
}

void hw_cu_ipc_event_release(hw_cu_ipc_event *e)
{
    if (!e || atomic_fetch_sub(&e->refs, 1) != 1)
        return;
    munmap(e->s, sizeof(state));
    close(e->fd);
    free(e);
}

typedef struct task { /* a place in a stream */
    hw_cu_ipc_event *event;
    hw_cu_context *ctx;
    uint32_t number;
} task;

/* NULL: no memory. */
static task *task_new(hw_cu_ipc_event *e, hw_cu_context *ctx, uint32_t number)
{
    task *t = malloc(sizeof *t);
    if (t) {
        *t = (task){ e, ctx, number };
        atomic_fetch_add(&e->refs, 1);
    }
    return t;
}

static void task_drop(void *p)
{
    task *t = p;
    hw_cu_ipc_event_release(t->event);
    free(t);
}

static bool is_before(uint32_t a, uint32_t b)
{
    return (int32_t)(a - b) < 0;
}

static void publish(state *s, uint32_t number)
{
    uint32_t now = atomic_load(&s->reached);
    while (is_before(now, number) && !atomic_compare_exchange_weak(&s->reached, &now, number))
        continue;
    syscall(SYS_futex, &s->reached, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

static hw_status nothing(void *p, hw_fault *fault)
{
    (void)p;
    (void)fault;
    return HW_OK;
}

/* The task's last rite, which is carried out after a fault too. */
static void publish_drop(void *p)
{
    task *t = p;
    publish(t->event->s, t->number);
    task_drop(p);
}

void hw_cu_ipc_event_record(hw_cu_ipc_event *e, hw_cu_stream *s)
{
    uint32_t number = atomic_fetch_add(&e->s->recorded, 1) + 1;
    atomic_store(&e->s->recorder, getpid());
    task *t = task_new(e, s->ctx, number);
    if (!t || hw_cu_submit(s, nothing, publish_drop, t) != CUDA_SUCCESS)
        publish(e->s, number);
}

bool hw_cu_ipc_event_reached(hw_cu_ipc_event *e)
{
    return !is_before(atomic_load(&e->s->reached), atomic_load(&e->s->recorded));
}

static bool recorder_is_gone(const state *s)
{
    return kill(atomic_load(&s->recorder), 0) != 0 && errno == ESRCH;
}

static void wait_for(state *s, uint32_t number, hw_cu_context *ctx)
{
    const struct timespec a_while = { 0, 20 * 1000 * 1000 };
    uint32_t now;
    while (is_before(now = atomic_load(&s->reached), number)) {
        long r = syscall(SYS_futex, &s->reached, FUTEX_WAIT, now, &a_while, NULL, 0);
        bool slow = r != 0 && errno == ETIMEDOUT;
        if (slow && (recorder_is_gone(s) || hw_cu_sticky(ctx) != CUDA_SUCCESS ||
                     hw_cu_ready() != CUDA_SUCCESS))
            return;
    }
}

void hw_cu_ipc_event_wait(hw_cu_ipc_event *e, hw_cu_context *ctx)
{
    wait_for(e->s, atomic_load(&e->s->recorded), ctx);
}

static hw_status wait_run(void *p, hw_fault *fault)
{
    const task *t = p;
    (void)fault;
    wait_for(t->event->s, t->number, t->ctx);
    return HW_OK;
}

void hw_cu_ipc_event_block(hw_cu_stream *s, hw_cu_ipc_event *e)
{
    if (hw_cu_ipc_event_reached(e))
        return;
    task *t = task_new(e, s->ctx, atomic_load(&e->s->recorded));
    if (t)
        hw_cu_submit(s, wait_run, task_drop, t);
    else
        hw_cu_ipc_event_wait(e, s->ctx);
}

CUresult cuIpcGetEventHandle(CUipcEventHandle *out, CUevent event)
{
    handle h;
    CU_TRY(hw_cu_ready());
    CU_NEED(out, INVALID_VALUE);
    const hw_cu_event *e = hw_cu_handle_get(event, HW_CU_EVENT);
    CU_NEED(e && e->ipc, INVALID_HANDLE);
    CU_TRY(name_file(EVENT, e->ipc->fd, sizeof(state), &h));
    memcpy(out, &h, sizeof h);
    return CUDA_SUCCESS;
}

CUresult cuIpcOpenEventHandle(CUevent *out, CUipcEventHandle bytes)
{
    hw_cu_context *ctx;
    handle h;
    int fd;
    CU_TRY(hw_cu_current(&ctx));
    CU_NEED(out, INVALID_VALUE);
    memcpy(&h, &bytes, sizeof h);
    CU_TRY(open_file(EVENT, &h, &fd));
    hw_cu_ipc_event *e = event_of(fd);
    CU_NEED(e, MAP_FAILED);
    *out = hw_cu_event_of(ctx, e);
    return *out ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}
