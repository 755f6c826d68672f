/* SPDX-License-Identifier: Apache-2.0
 *
 * The inside of room driver (private): its objects and what its chapters share.
 *
 * Nouns (CUDA's)
 *   handle    what a program holds: never a pointer, but a number that names a slot of the handle
 * table, the slot's generation and the object's kind. A handle of a destroyed object is found out,
 * not followed. gpu       a device a program sees: a device model, its memory, its primary context.
 *   context   what launches and allocations belong to; owns an exec (streams, workers, sticky
 * fault), made at first use. program   PTX parsed and linked, of no context; shared by the modules
 * that are its instances. module    a program in a context: its variables have addresses. library
 * a program whose modules are made in each context at first use. Its kernels are of no context.
 *   function  a kernel of a module (CUfunction) or of a library (CUkernel); every call takes
 * either.
 *
 * Rules: entry points check in this order: initialised, arguments that need no context, the
 * context, its sticky fault. The lock of a context guards its lists; hw_cu.lock guards gpus and the
 * making of contexts. Neither is held while a program's callback or a kernel runs. Nothing here
 * prints but hw_cu_notice (one line, never twice the same).
 */
#ifndef HW_DRIVER_PRIVATE_H
#define HW_DRIVER_PRIVATE_H

#include "hw_driver.h"

#include "hw_base.h"
#include "hw_device.h"
#include "hw_exec.h"
#include "hw_image.h"
#include "hw_jit.h"
#include "hw_mem.h"
#include "hw_ptx.h"

#include <pthread.h>
#include <stdatomic.h>

#define CU_TRY(expr)                 \
    do {                             \
        CUresult cu_try_ = (expr);   \
        if (cu_try_ != CUDA_SUCCESS) \
            return cu_try_;          \
    } while (0)
/* Return an error unless a condition holds: CU_NEED(out, INVALID_VALUE). */
#define CU_NEED(cond, code)           \
    do {                              \
        if (!(cond))                  \
            return CUDA_ERROR_##code; \
    } while (0)

/* ---- handle.c ---- */
typedef enum hw_cu_kind {
    HW_CU_NOTHING,
    HW_CU_CONTEXT,
    HW_CU_STREAM,
    HW_CU_EVENT,
    HW_CU_MODULE,
    HW_CU_FUNCTION,
    HW_CU_KERNEL,
    HW_CU_LIBRARY,
    HW_CU_LINK,
    HW_CU_POOL,
    HW_CU_PHYSICAL,
    HW_CU_ARRAY,
    HW_CU_MIPMAP,
    HW_CU_TEXTURE,
    HW_CU_SURFACE,
    HW_CU_GRAPH,
    HW_CU_NODE,
    HW_CU_GRAPH_EXEC,
    HW_CU_USER_OBJECT,
    HW_CU_CONDITION,
} hw_cu_kind;
/* A new handle for an object; NULL if there are too many. */
void *hw_cu_handle_new(hw_cu_kind kind, void *object);
/* The object, or NULL if the handle is none, another kind, or of a destroyed object. */
void *hw_cu_handle_get(const void *handle, hw_cu_kind kind);
void hw_cu_handle_drop(const void *handle);

#define HW_CU_PAGE (2ull << 20) /* in which a device maps its memory */

/* ---- env.c ---- */
typedef struct hw_cu_env {
#define ENV(member, variable, fallback, text) const char *member;
#include "env.def"
#undef ENV
} hw_cu_env;
void hw_cu_env_read(hw_cu_env *e);      /* unset: the default, "" if there is none */
bool hw_cu_env_true(const char *value); /* set and not 0 */
/* Which of words (they end with NULL) a variable's value is. Another one is said, and is the first word. */
unsigned hw_cu_env_choice(const char *variable, const char *value, const char *const *words);
/* A variable's value times scale, rounded, but to 1 at least if it is not 0; 0 if it is empty. What is no such number is said, and is 0. */
uint64_t hw_cu_env_number(const char *variable, const char *value, double scale);
const char *hw_cu_cache_dir(hw_arena *a, const hw_cu_env *e); /* NULL: no cache */

/* ---- error.c ---- */
void hw_cu_notice(const char *fmt, ...)
    HW_PRINTF(1, 2); /* one line on stderr, the same text once a process */
void hw_cu_verbose(const char *fmt, ...) HW_PRINTF(1, 2);
CUresult hw_cu_result(hw_status s);
/* The first error of d as one line on stderr. */
void hw_cu_notice_diag(const char *what, const hw_diag *d);

/* ---- lists ---- */
typedef struct hw_cu_link {
    struct hw_cu_link *prev, *next;
} hw_cu_link;
void hw_cu_list_init(hw_cu_link *head);
void hw_cu_list_add(hw_cu_link *head, hw_cu_link *item);
void hw_cu_list_remove(hw_cu_link *item);
#define HW_CU_ITEM(link, type, member) ((type *)(void *)((char *)(link) - offsetof(type, member)))

#include "objects.h"

/* ---- device.c ---- */
CUresult hw_cu_ready(void); /* initialised? */
CUresult hw_cu_find_gpu(CUdevice dev, hw_cu_gpu **out);
int hw_cu_attribute(const hw_cu_gpu *g, CUdevice_attribute which); /* 0 if there is none */
CUresult hw_cu_gpu_mem(hw_cu_gpu *g, hw_mem **out);

/* ---- context.c ---- */
/* The calling thread's context, with its exec running and no sticky fault. */
CUresult hw_cu_current(hw_cu_context **out);
CUresult hw_cu_current_any(hw_cu_context **out); /* the same, faulted or not, exec or not */
CUresult hw_cu_find_context(CUcontext handle, hw_cu_context **out);
CUresult hw_cu_activate(hw_cu_context *ctx); /* make its exec */
size_t hw_cu_limit(hw_cu_context *ctx, CUlimit limit);
hw_cu_context *hw_cu_primary(hw_cu_gpu *g); /* the object, active or not; NULL: no memory */
CUresult hw_cu_sticky(hw_cu_context *ctx);
/* The same after waiting; else, once, the error of a kernel that could not be started. */
CUresult hw_cu_waited(hw_cu_context *ctx);
CUresult hw_cu_synchronize(hw_cu_context *ctx);
bool hw_cu_in_callback(void);
void hw_cu_callback_enter(void);
void hw_cu_callback_leave(void);
void hw_cu_contexts_end(void);  /* the process ends */
void hw_cu_contexts_wait(void); /* for the work of all */

/* ---- stream.c ---- */
/* What a stream handle means for the calling thread; no sticky fault. */
CUresult hw_cu_find_stream(CUstream handle, hw_cu_stream **out);
CUresult hw_cu_find_stream_any(CUstream handle, hw_cu_stream **out); /* faulted or not */
void hw_cu_per_thread(bool enter); /* entry.c's twins: stream 0 means the thread's own */
CUresult hw_cu_submit_host(hw_cu_stream *s, CUhostFn fn, void *user);
void hw_cu_streams_end(hw_cu_context *ctx);
void hw_cu_events_end(hw_cu_context *ctx);
CUresult hw_cu_submit(hw_cu_stream *s, hw_task_fn *run, void (*drop)(void *), void *task);
/* Run a task on s and wait for it; at once on this thread if the stream is idle. drop is called. */
CUresult hw_cu_run(hw_cu_stream *s, hw_task_fn *run, void (*drop)(void *), void *task);

/* ---- memory.c ---- */
CUresult hw_cu_alloc(hw_cu_context *ctx, uint64_t size, uint64_t align, hw_mem_kind kind,
                     unsigned flags, CUdeviceptr *out);
CUresult hw_cu_free_block(hw_cu_block *b);
hw_cu_block *hw_cu_find_block(uint64_t address,
                              hw_mem_info *info); /* NULL: none of ours; info is filled if found */
bool hw_cu_accessible(uint64_t address,
                      uint64_t size); /* whole of it allocated, registered or mapped */
void hw_cu_blocks_end(hw_cu_context *ctx);
void hw_cu_zero(uint64_t address, uint64_t size); /* large ranges without touching their pages */

/* ---- capture.c ---- */
/* A call that may be unsafe while work is captured: refused, and the captures spoilt, where they forbid it. */
CUresult hw_cu_capture_unsafe(void);

/* ---- conditional.c ---- */
/* What a kernel in ctx does by cudaGraphSetConditional; false: no such handle there. */
bool hw_cu_condition_set(hw_cu_context *ctx, uint64_t handle, uint32_t value);

/* ---- array.c ---- */
void hw_cu_arrays_end(hw_cu_context *ctx);

/* ---- virtual.c ---- */
bool hw_cu_mapped(const hw_cu_block *b, uint64_t address, uint64_t size);
void hw_cu_reservation_end(hw_cu_block *b);
/* Is fd one of our files of that name? */
bool hw_cu_is_file(int fd, const char *name, uint64_t *bytes);
CUmemAllocationHandleType hw_cu_mapped_types(const hw_cu_block *b, uint64_t address);

/* ---- event.c ---- */
void hw_cu_event_record(hw_cu_event *e, hw_cu_stream *s);
void hw_cu_event_block(hw_cu_stream *s, hw_cu_event *e); /* s waits for e */

/* ---- ipc.c ---- */
typedef struct hw_cu_ipc_event hw_cu_ipc_event;
hw_cu_ipc_event *hw_cu_ipc_event_new(void);
void hw_cu_ipc_event_release(hw_cu_ipc_event *e);
void hw_cu_ipc_event_record(hw_cu_ipc_event *e, hw_cu_stream *s);
void hw_cu_ipc_event_block(hw_cu_stream *s, hw_cu_ipc_event *e);
bool hw_cu_ipc_event_reached(hw_cu_ipc_event *e);
void hw_cu_ipc_event_wait(hw_cu_ipc_event *e, hw_cu_context *ctx);
CUevent hw_cu_event_of(hw_cu_context *ctx, hw_cu_ipc_event *e); /* event.c; NULL: no memory */
/* A block that another process can have, as 64 bytes for it; and there. */
/* pool: a number of the pool it is from, 0: none. */
CUresult hw_cu_export(hw_cu_block *b, uint64_t pool, void *out);
CUresult hw_cu_import(hw_cu_context *ctx, const void *handle, uint64_t pool, hw_cu_block **out);
void hw_cu_import_end(hw_cu_block *b); /* the block goes */

/* ---- pool.c ---- */
CUresult hw_cu_pool_free(hw_cu_block *b);            /* back to its pool */
void hw_cu_pool_forget(hw_cu_block *b);              /* the block is about to go */
CUmemoryPool hw_cu_pool_handle(const hw_cu_pool *p); /* of NULL: NULL */
bool hw_cu_pool_shares(const hw_cu_pool *p);         /* other processes may have its memory */

/* ---- program.c ---- */
typedef struct hw_cu_jit_options {
    char *error_log, *info_log;
    size_t error_size, info_size;
    void **error_size_out, **info_size_out, **wall_time_out;
    uint32_t max_registers; /* 0: not said */
    bool verbose;
} hw_cu_jit_options;
CUresult hw_cu_jit_read(unsigned n, CUjit_option *options, void **values, hw_cu_jit_options *out);
void hw_cu_jit_log(const hw_cu_jit_options *o, const hw_diag *d);
/* A program from any image; len SIZE_MAX: unknown. cc decides which PTX is taken. */
CUresult hw_cu_program_new(const void *image, size_t len, uint32_t cc, const char *origin,
                           const hw_cu_jit_options *o, hw_cu_program **out);
CUresult hw_cu_program_link(hw_arena *a, hw_str *texts, const char *const *origins, size_t n,
                            const hw_cu_jit_options *o, hw_cu_program **out); /* takes a */
void hw_cu_program_release(hw_cu_program *p);
/* A kernel is about to run: its code is kept as long as the program. */
void hw_cu_program_runs(hw_cu_program *p, uint32_t kernel);
void hw_cu_source_key(const hw_cu_program *p, uint32_t kernel, uint8_t key[32]); /* function.c */
const hw_cu_kernel_info *hw_cu_kernel_known(hw_cu_program *p, uint32_t kernel);
/* What machine code for a device of compute capability cc, or the nearest there is, says of a
 * kernel; false: there is none. */
bool hw_cu_program_machine(hw_cu_program *p, uint32_t kernel, uint32_t cc, hw_cu_machine *out);
/* The most registers a kernel was compiled for: by its own bound and by the options; 0: no bound. */
uint32_t hw_cu_most_registers(const hw_cu_program *p, uint32_t kernel);
CUresult hw_cu_load_file(hw_arena *a, const char *path, hw_str *out);

/* ---- device_library.c: a unit that programs are linked with if they name what is in it ---- */
bool hw_cu_needs_library(hw_str ptx);
hw_str hw_cu_device_library(void);

/* ---- logs.c ---- */
void hw_cu_log(const char *line); /* ends with a newline */

/* ---- machine.c ---- */
/* Keeps the image's machine code for the program's device, or for all. */
void hw_cu_machine_keep(hw_cu_program *p, const hw_image *img, bool all);
bool hw_cu_machine_find(hw_cu_program *p, uint32_t kernel, uint32_t cc,
                        hw_cu_machine *out); /* with the lock */

/* ---- module.c ---- */
CUresult hw_cu_library_module(hw_cu_library *l, hw_cu_context *ctx, hw_cu_module **out);
void hw_cu_modules_end(hw_cu_context *ctx);
uint64_t hw_cu_symbol_address(void *module, uint32_t variable);

/* ---- function.c ---- */
CUresult hw_cu_find_function(CUfunction f, hw_cu_function **out); /* of either kind */
CUresult hw_cu_bind(hw_cu_function *f, hw_cu_context *ctx,
                    hw_cu_function **out);           /* in ctx: kind FUNCTION */
CUfunction hw_cu_function_handle(hw_cu_function *f); /* made when first asked for */
void hw_cu_function_init(hw_cu_function *f, hw_cu_program *p, uint32_t index);
uint32_t hw_cu_dynamic_limit(const hw_cu_function *f, const hw_cu_gpu *g);
hw_occupancy_query hw_cu_query(const hw_cu_function *f, const hw_cu_gpu *g, uint32_t threads,
                               uint64_t dynamic);

#endif
