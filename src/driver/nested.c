/* SPDX-License-Identifier: Apache-2.0
 *
 * What kernels launch from within (CUDA C++ Programming Guide, "CUDA Dynamic Parallelism").
 *
 *   work    a launch, copy or set that a thread asked for. All of a grid's work begins when the grid
 *           has ended: block by block in order, each block's as it came; then the tail launches.
 *           That satisfies every stream and event of the device, since a thread cannot wait for what
 *           it launched. A grid has ended when its work and the work of that has.
 *   nest    one grid's calls: the work so far, parameter buffers, threads' last errors.
 */
#include "launch.h"
#include "profile.h"

#include <pthread.h>
#include <stdlib.h>

enum { DEEPEST = 24, CHUNK_BYTES = 1 << 20, ALIGN = 64 };
/* cudaError_t, where it is not the driver's number. */
enum { INVALID_CONFIGURATION = 9, INVALID_FUNCTION = 98, TOO_DEEP = 65, INVALID_HANDLE = 400 };
enum { STREAM_TAIL = 3, STREAM_FIRE = 4, FIRST_HANDLE = 0x100 };

typedef struct work {
    uint64_t block, order;
    uint32_t depth;
    bool tail;
    hw_cu_launch *launch; /* owned; NULL: rows of bytes copied or set */
    bool copies;
    uint64_t to, from, to_pitch, from_pitch, width, rows;
    uint8_t value;
} work;

typedef struct work_list {
    work *at;
    size_t n, cap;
} work_list;

typedef struct chunk { /* device memory that lasts as long as the grid */
    struct chunk *next;
    uint64_t address, used, bytes;
} chunk;

typedef struct error {
    uint64_t block;
    uint32_t thread, code;
} error;

typedef struct nest {
    hw_cu_context *ctx;
    hw_cu_module *module;
    hw_mem *mem;
    uint32_t depth;
    pthread_mutex_t lock; /* all below */
    work_list list;
    chunk *chunks;
    uint32_t expected; /* lanes that will take as much, this one included */
    error *errors;
    size_t nerrors, errors_cap;
    uint8_t *handles; /* kinds of those given out, from FIRST_HANDLE on; 0: destroyed */
    size_t nhandles;
} nest;

/* In front of each parameter buffer. */
typedef struct header {
    uint64_t self; /* the buffer's address, so that others are found out */
    uint32_t kernel;
    uint32_t grid[3], block[3], dynamic;
} header;
_Static_assert(sizeof(header) <= ALIGN, "a buffer starts ALIGN bytes behind its header");

/* ---- errors of threads ---- */

static uint32_t fail(nest *n, const hw_device_call *c, uint32_t code)
{
    if (n->nerrors == n->errors_cap) {
        size_t cap = n->errors_cap ? 2 * n->errors_cap : 16;
        error *e = realloc(n->errors, cap * sizeof *e);
        if (!e)
            return code;
        n->errors = e;
        n->errors_cap = cap;
    }
    n->errors[n->nerrors++] = (error){ c->block, c->thread, code };
    return code;
}

static uint32_t last_error(nest *n, const hw_device_call *c, bool forget)
{
    uint32_t code = 0;
    for (size_t i = n->nerrors; i-- > 0;) {
        error *e = &n->errors[i];
        if (e->block != c->block || e->thread != c->thread)
            continue;
        code = code ? code : e->code;
        if (!forget)
            return code;
        *e = n->errors[--n->nerrors];
    }
    return code;
}

/* ---- device memory of the grid ---- */

static uint64_t take(nest *n, uint64_t bytes)
{
    if (bytes > UINT64_MAX - ALIGN)
        return 0;
    bytes = (bytes + ALIGN - 1) & ~(uint64_t)(ALIGN - 1);
    chunk *k = n->chunks;
    const uint64_t all = bytes > CHUNK_BYTES ? bytes : bytes * n->expected;
    n->expected = 1;
    if (!k || k->bytes - k->used < all) {
        uint64_t size = all > CHUNK_BYTES ? all : CHUNK_BYTES;
        k = malloc(sizeof *k);
        if (!k || hw_mem_alloc(n->mem, size, 0, HW_MEM_DEVICE, 0, &k->address) != HW_OK) {
            free(k);
            return 0;
        }
        *k = (chunk){ n->chunks, k->address, 0, size };
        n->chunks = k;
    }
    k->used += bytes;
    return k->address + k->used - bytes;
}

static bool is_ours(const nest *n, uint64_t address)
{
    for (const chunk *k = n->chunks; k; k = k->next)
        if (address - k->address < k->used)
            return true;
    return false;
}

/* Global memory, all of it there: what may be read and written once the kernel has ended. */
static bool is_global(const nest *n, uint64_t address, uint64_t bytes)
{
    return hw_cu_accessible(address, bytes) || hw_exec_heap_holds(n->ctx->exec, address, bytes) ||
           (is_ours(n, address) && hw_mem_contains(address, bytes));
}

/* A name or text of a cudaError_t, where the kernel can read it. */
static uint64_t give_text(nest *n, uint32_t code, bool name)
{
    static const struct {
        uint32_t code;
        const char *name, *text;
    } errors[] = {
#define ERROR(code, name, text) { code, "cuda" #name, text },
#include "cudart_errors.def"
#undef ERROR
    };
    const char *s = "unrecognized error code";
    for (size_t i = 0; i < HW_COUNTOF(errors); i++)
        if (errors[i].code == code)
            s = name ? errors[i].name : errors[i].text;
    size_t bytes = strlen(s) + 1;
    uint64_t at = take(n, bytes);
    if (at)
        memcpy((void *)(uintptr_t)at, s, bytes);
    return at;
}

/* ---- work ---- */

static uint32_t add(nest *n, const hw_device_call *c, const work *w)
{
    if (n->list.n == n->list.cap) {
        size_t cap = n->list.cap ? 2 * n->list.cap : 16;
        work *at = realloc(n->list.at, cap * sizeof *at);
        if (!at)
            return fail(n, c, CUDA_ERROR_OUT_OF_MEMORY);
        n->list.at = at;
        n->list.cap = cap;
    }
    work *to = &n->list.at[n->list.n++];
    *to = *w;
    to->block = c->block;
    to->order = n->list.n;
    to->depth = n->depth + !w->tail;
    return 0;
}

static hw_cu_function *kernel_of(const nest *n, uint64_t handle)
{
    uint64_t index = handle & HW_PTX_KERNEL_INDEX;
    bool good = (handle & ~(uint64_t)HW_PTX_KERNEL_INDEX) == HW_PTX_KERNEL_HANDLE &&
                index < n->module->program->ptx->nkernels;
    return good ? &n->module->functions[index] : NULL;
}

static uint32_t check(const nest *n, uint64_t kernel, const hw_cu_shape *s)
{
    const hw_cu_function *f = kernel_of(n, kernel);
    if (!f)
        return INVALID_FUNCTION;
    if (n->depth + 1 > DEEPEST)
        return TOO_DEEP;
    CUresult r = hw_cu_check_shape(f, n->ctx->gpu, s);
    return r == CUDA_ERROR_INVALID_VALUE ? INVALID_CONFIGURATION : r;
}

static hw_cu_shape shape_of(const hw_device_call *c, uint64_t dynamic)
{
    hw_cu_shape s = { .dynamic = (uint32_t)dynamic };
    memcpy(s.grid, c->dims[0], sizeof s.grid);
    memcpy(s.block, c->dims[1], sizeof s.block);
    return s;
}

static uint64_t buffer_v2(nest *n, const hw_device_call *c)
{
    hw_cu_shape s = shape_of(c, c->args[3]);
    uint32_t wrong = check(n, c->args[0], &s);
    if (wrong) {
        fail(n, c, wrong);
        return 0;
    }
    const hw_cu_function *f = kernel_of(n, c->args[0]);
    uint64_t at = take(n, ALIGN + f->program->ptx->kernels[f->index].param_bytes);
    if (!at) {
        fail(n, c, CUDA_ERROR_OUT_OF_MEMORY);
        return 0;
    }
    header h = { .self = at + ALIGN, .kernel = (uint32_t)c->args[0], .dynamic = s.dynamic };
    memcpy(h.grid, s.grid, sizeof h.grid);
    memcpy(h.block, s.block, sizeof h.block);
    memcpy((void *)(uintptr_t)at, &h, sizeof h);
    return h.self;
}

static uint32_t launch(nest *n, const hw_device_call *c, uint64_t kernel, const hw_cu_shape *s,
                       uint64_t params, uint64_t stream)
{
    uint32_t wrong = check(n, kernel, s);
    if (wrong)
        return fail(n, c, wrong);
    hw_cu_function *f = kernel_of(n, kernel);
    uint64_t bytes = f->program->ptx->kernels[f->index].param_bytes;
    if (bytes && !is_global(n, params, bytes))
        return fail(n, c, CUDA_ERROR_INVALID_VALUE);
    work w = { .tail = stream == STREAM_TAIL };
    CUresult r = hw_cu_launch_packed(f, n->ctx, s, (const void *)(uintptr_t)params, &w.launch);
    if (r != CUDA_SUCCESS)
        return fail(n, c, r);
    uint32_t e = add(n, c, &w);
    if (e)
        free(w.launch);
    return e;
}

static uint32_t launch_v2(nest *n, const hw_device_call *c)
{
    uint64_t at = c->args[0] - ALIGN;
    header h = { 0 };
    if (is_ours(n, at))
        memcpy(&h, (const void *)(uintptr_t)at, sizeof h);
    if (!c->args[0] || h.self != c->args[0])
        return fail(n, c, CUDA_ERROR_INVALID_VALUE);
    hw_cu_shape s = { .dynamic = h.dynamic };
    memcpy(s.grid, h.grid, sizeof s.grid);
    memcpy(s.block, h.block, sizeof s.block);
    return launch(n, c, h.kernel, &s, c->args[0], c->args[1]);
}

static bool rows_are_global(const nest *n, uint64_t at, uint64_t pitch, const work *w)
{
    uint64_t span;
    if (w->rows == 1)
        return is_global(n, at, w->width);
    return pitch >= w->width && !__builtin_mul_overflow(w->rows - 1, pitch, &span) &&
           !__builtin_add_overflow(span, w->width, &span) && is_global(n, at, span);
}

static uint32_t rows(nest *n, const hw_device_call *c, work w)
{
    if (!w.width || !w.rows)
        return 0;
    bool fits = rows_are_global(n, w.to, w.to_pitch, &w) &&
                (!w.copies || rows_are_global(n, w.from, w.from_pitch, &w));
    return fits ? add(n, c, &w) : fail(n, c, CUDA_ERROR_INVALID_VALUE);
}

static uint32_t put(uint64_t to, uint64_t value, size_t size)
{
    if (!to)
        return CUDA_ERROR_INVALID_VALUE;
    memcpy((void *)(uintptr_t)to, &value, size);
    return 0;
}

/* ---- streams and events: names, since their order is kept anyway ---- */

enum { STREAM = 1, EVENT };

static bool is_handle(const nest *n, uint64_t h, uint8_t kind)
{
    return h >= FIRST_HANDLE && h - FIRST_HANDLE < n->nhandles &&
           n->handles[h - FIRST_HANDLE] == kind;
}

/* The last of the streams that need not be made is fire-and-forget. */
static bool is_stream(const nest *n, uint64_t h)
{
    return h <= STREAM_FIRE || is_handle(n, h, STREAM);
}

/* The stream and event that a call names exist. Operands are counted from 1; 0: none. */
static bool names_exist(const nest *n, const hw_device_call *c)
{
    static const struct {
        uint8_t stream, event;
    } operands[HW_DC_COUNT] = {
        [HW_DC_LAUNCH] = { 6, 0 },
        [HW_DC_LAUNCH_V2] = { 2, 0 },
        [HW_DC_STREAM_WAIT] = { 1, 2 },
        [HW_DC_EVENT_RECORD] = { 2, 1 },
        [HW_DC_EVENT_RECORD_FLAGS] = { 2, 1 },
        [HW_DC_EVENT_END] = { 0, 1 },
        [HW_DC_COPY] = { 5, 0 },
        [HW_DC_COPY_2D] = { 8, 0 },
        [HW_DC_SET] = { 4, 0 },
        [HW_DC_SET_2D] = { 6, 0 },
    };
    uint8_t stream = operands[c->function].stream, event = operands[c->function].event;
    if (c->function == HW_DC_STREAM_END && !is_handle(n, c->args[0], STREAM))
        return false;
    return (!stream || is_stream(n, c->args[stream - 1])) &&
           (!event || is_handle(n, c->args[event - 1], EVENT));
}

static uint32_t give_handle(nest *n, uint64_t to, uint8_t kind)
{
    uint8_t *more = realloc(n->handles, n->nhandles + 1);
    if (!more)
        return CUDA_ERROR_OUT_OF_MEMORY;
    n->handles = more;
    n->handles[n->nhandles++] = kind;
    return put(to, FIRST_HANDLE + n->nhandles - 1, 8);
}

static uint32_t end_handle(nest *n, uint64_t h)
{
    n->handles[h - FIRST_HANDLE] = 0;
    return 0;
}

/* ---- the calls ---- */

static uint32_t attribute(const hw_device_call *c)
{
    int value = 0;
    CUresult r = cuDeviceGetAttribute(&value, (CUdevice_attribute)(uint32_t)c->args[1],
                                      (CUdevice)(uint32_t)c->args[2]);
    return r ? r : put(c->args[0], (uint32_t)value, 4);
}

static uint32_t occupancy(const nest *n, const hw_device_call *c)
{
    const hw_cu_function *f = kernel_of(n, c->args[1]);
    if (!f)
        return INVALID_FUNCTION;
    hw_occupancy_query q = hw_cu_query(f, n->ctx->gpu, (uint32_t)c->args[2], (uint32_t)c->args[3]);
    hw_occupancy_result r;
    hw_occupancy(n->ctx->gpu->model, &q, &r);
    return put(c->args[0], r.blocks, 4);
}

/* struct cudaFuncAttributes (driver_types.h). */
typedef struct func_attributes {
    uint64_t shared, constant, local;
    int32_t values[13], reserved[16];
} func_attributes;
_Static_assert(sizeof(func_attributes) == HW_DEVICE_FUNC_ATTRIBUTES, "as exec checks it");

static uint32_t func_attributes_of(const nest *n, const hw_device_call *c)
{
    static const uint8_t of[13] = {
        CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK,
        CU_FUNC_ATTRIBUTE_NUM_REGS,
        CU_FUNC_ATTRIBUTE_PTX_VERSION,
        CU_FUNC_ATTRIBUTE_BINARY_VERSION,
        CU_FUNC_ATTRIBUTE_CACHE_MODE_CA,
        CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
        CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
        CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET,
        CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH,
        CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT,
        CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH,
        CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE,
        CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED,
    };
    hw_cu_function *f = kernel_of(n, c->args[1]);
    if (!f)
        return INVALID_FUNCTION;
    if (!c->args[0])
        return CUDA_ERROR_INVALID_VALUE;
    const CUfunction handle = hw_cu_function_handle(f);
    func_attributes a = { 0 };
    int sizes[3] = { 0 };
    for (int i = 0; i < 3; i++) {
        cuFuncGetAttribute(&sizes[i],
                           (CUfunction_attribute)(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES + i), handle);
    }
    for (size_t i = 0; i < HW_COUNTOF(of); i++) {
        cuFuncGetAttribute(&a.values[i], (CUfunction_attribute)of[i], handle);
    }
    a.shared = (uint64_t)sizes[0];
    a.constant = (uint64_t)sizes[1];
    a.local = (uint64_t)sizes[2];
    memcpy((void *)(uintptr_t)c->args[0], &a, sizeof a);
    return 0;
}

/* Streams of a kernel do not wait for its block's default stream, and its events have no time (CUDA C++ Programming
 * Guide, "Streams and Events" of dynamic parallelism): no other flags there. */
enum { STREAM_NON_BLOCKING = 1, EVENT_DISABLE_TIMING = 2 };

/* Calls that ask or name something; the work they would order is in order anyway. */
static uint64_t ask(nest *n, const hw_device_call *c)
{
    switch (c->function) {
    case HW_DC_LAST_ERROR:
        return last_error(n, c, true);
    case HW_DC_PEEK_ERROR:
        return last_error(n, c, false);
    case HW_DC_ERROR_STRING:
        return give_text(n, (uint32_t)c->args[0], false);
    case HW_DC_ERROR_NAME:
        return give_text(n, (uint32_t)c->args[0], true);
    case HW_DC_STREAM_NEW:
        return (uint32_t)c->args[1] == STREAM_NON_BLOCKING ? give_handle(n, c->args[0], STREAM)
                                                           : fail(n, c, CUDA_ERROR_INVALID_VALUE);
    case HW_DC_EVENT_NEW:
        return (uint32_t)c->args[1] == EVENT_DISABLE_TIMING ? give_handle(n, c->args[0], EVENT)
                                                            : fail(n, c, CUDA_ERROR_INVALID_VALUE);
    case HW_DC_SHARED_CONFIG:
        return put(c->args[0], 1 /* banks of four bytes */, 4);
    case HW_DC_FUNC_ATTRIBUTES:
        return func_attributes_of(n, c);
    case HW_DC_STREAM_END:
    case HW_DC_EVENT_END:
        return end_handle(n, c->args[0]);
    case HW_DC_DEVICE:
        return put(c->args[0], (uint32_t)n->ctx->gpu->ordinal, 4);
    case HW_DC_DEVICE_COUNT:
        return put(c->args[0], (uint32_t)hw_cu.ngpus, 4);
    case HW_DC_LIMIT:
        return c->args[1] > CU_LIMIT_MALLOC_HEAP_SIZE &&
                       c->args[1] != CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT
                   ? CUDA_ERROR_UNSUPPORTED_LIMIT
                   : put(c->args[0], hw_cu_limit(n->ctx, (CUlimit)(uint32_t)c->args[1]), 8);
    case HW_DC_CACHE_CONFIG:
        return put(c->args[0], (uint32_t)n->ctx->cache_config, 4);
    case HW_DC_VERSION:
        return put(c->args[0], HW_CU_VERSION, 4);
    case HW_DC_ATTRIBUTE:
        return attribute(c);
    case HW_DC_OCCUPANCY:
    case HW_DC_OCCUPANCY_FLAGS:
        return occupancy(n, c);
    case HW_DC_SET_CONDITIONAL:
        if (!hw_cu_condition_set(n->ctx, c->args[0], (uint32_t)c->args[1]))
            hw_cu_notice("cudaGraphSetConditional: no such handle in the kernel's context");
        return 0;
    default: /* events recorded and waited for: nothing to do, since work is in order */
        return 0;
    }
}

static uint64_t act(nest *n, const hw_device_call *c)
{
    const uint64_t *a = c->args;
    hw_cu_shape s;
    switch (c->function) {
    case HW_DC_BUFFER:
        return take(n, a[1]);
    case HW_DC_BUFFER_V2:
        return buffer_v2(n, c);
    case HW_DC_LAUNCH:
        s = shape_of(c, a[4]);
        return launch(n, c, a[0], &s, a[1], a[5]);
    case HW_DC_LAUNCH_V2:
        return launch_v2(n, c);
    case HW_DC_COPY:
        return rows(n, c,
                    (work){ .copies = true, .to = a[0], .from = a[1], .width = a[2], .rows = 1 });
    case HW_DC_COPY_2D:
        return rows(n, c,
                    (work){ .copies = true,
                            .to = a[0],
                            .to_pitch = a[1],
                            .from = a[2],
                            .from_pitch = a[3],
                            .width = a[4],
                            .rows = a[5] });
    case HW_DC_SET:
        return rows(n, c, (work){ .to = a[0], .value = (uint8_t)a[1], .width = a[2], .rows = 1 });
    case HW_DC_SET_2D:
        return rows(n, c,
                    (work){ .to = a[0],
                            .to_pitch = a[1],
                            .value = (uint8_t)a[2],
                            .width = a[3],
                            .rows = a[4] });
    default:
        return ask(n, c);
    }
}

static uint64_t call(void *ctx, const hw_device_call *c)
{
    nest *n = ctx;
    if (c->lanes) { /* nothing comes between the lanes of a warp: what they are given lies alike in every run */
        pthread_mutex_lock(&n->lock);
        n->expected = c->lanes;
    }
    uint64_t r = names_exist(n, c) ? act(n, c) : fail(n, c, INVALID_HANDLE);
    if (c->last)
        pthread_mutex_unlock(&n->lock);
    return r;
}

/* ---- carrying out ---- */

/* Blocks ran on many workers: their work in order of blocks, each block's as it came, tails last. */
static int in_order(const void *a, const void *b)
{
    const work *x = a, *y = b;
    if (x->tail != y->tail)
        return x->tail ? 1 : -1;
    if (x->block != y->block)
        return x->block < y->block ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

/* The last of `todo` is the next to do. */
static bool put_in_front(work_list *todo, work_list *new)
{
    if (!new->n)
        return true;
    qsort(new->at, new->n, sizeof *new->at, in_order);
    size_t n = todo->n + new->n;
    work *at = realloc(todo->at, n * sizeof *at);
    if (!at)
        return false;
    for (size_t i = 0; i < new->n; i++)
        at[n - 1 - i] = new->at[i];
    *todo = (work_list){ at, n, n };
    new->n = 0;
    return true;
}

static void drop(work_list *l)
{
    for (size_t i = 0; i < l->n; i++)
        free(l->at[i].launch);
    free(l->at);
}

static void end(nest *n)
{
    drop(&n->list);
    for (chunk *k = n->chunks, *next; k; k = next) {
        next = k->next;
        hw_mem_free(n->mem, k->address);
        free(k);
    }
    free(n->errors);
    free(n->handles);
    pthread_mutex_destroy(&n->lock);
}

static hw_status grid(const hw_cu_launch *l, uint32_t depth, work_list *todo, hw_fault *fault)
{
    nest n = { .ctx = l->f->module->ctx, .module = l->f->module, .depth = depth };
    CUresult r = hw_cu_gpu_mem(n.ctx->gpu, &n.mem);
    if (r != CUDA_SUCCESS)
        return HW_E_NOMEM;
    pthread_mutex_init(&n.lock, NULL);
    const hw_device_runtime runtime = { call, &n };
    hw_status s = hw_cu_launch_one(l, &runtime, fault);
    if (s == HW_OK && !put_in_front(todo, &n.list))
        s = HW_E_NOMEM;
    end(&n);
    return s;
}

static void move_bytes(const work *w)
{
    for (uint64_t y = 0; y < w->rows; y++) {
        void *to = (void *)(uintptr_t)(w->to + y * w->to_pitch);
        if (w->copies)
            memmove(to, (const void *)(uintptr_t)(w->from + y * w->from_pitch), w->width);
        else
            memset(to, w->value, w->width);
    }
}

hw_status hw_cu_launch_now(const hw_cu_launch *l, hw_fault *fault)
{
    work_list todo = { NULL, 0, 0 };
    hw_cu_profile_root profiled = { 0, 0 };
    hw_status s = grid(l, 0, &todo, fault);
    while (s == HW_OK && todo.n) {
        work w = todo.at[--todo.n];
        if (w.launch) {
            w.launch->stream = l->stream;
            hw_cu_profile_nested(l, &profiled, w.launch);
            s = grid(w.launch, w.depth, &todo, fault);
        } else {
            move_bytes(&w);
        }
        free(w.launch);
    }
    drop(&todo);
    return s;
}
