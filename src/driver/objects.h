/* SPDX-License-Identifier: Apache-2.0
 *
 * The objects of room driver (private): what handles name, and the process they live in. driver.h
 * says what they are and which lock guards them; this header is included there.
 */
#ifndef HW_DRIVER_OBJECTS_H
#define HW_DRIVER_OBJECTS_H

/* ---- objects ---- */
typedef struct hw_cu_context hw_cu_context;
typedef struct hw_cu_stream hw_cu_stream;
typedef struct hw_cu_module hw_cu_module;
typedef struct hw_cu_library hw_cu_library;
typedef struct hw_cu_pool hw_cu_pool;
typedef struct hw_cu_capture hw_cu_capture;

typedef struct hw_cu_tips { /* capture.c: the nodes the next one depends on */
    CUgraphNode *nodes;
    size_t n;
} hw_cu_tips;

typedef struct hw_cu_gpu {
    int ordinal;
    const hw_device *model;
    CUuuid uuid;
    hw_mem *_Atomic mem;            /* made at first use */
    hw_cu_context *_Atomic primary; /* made at first use, then kept; its exec comes and goes */
    unsigned primary_refs;
    _Atomic unsigned primary_flags;
    hw_cu_pool *_Atomic default_pool, *_Atomic pool;
    _Atomic uint64_t graph_bytes, graph_high; /* of allocation nodes */
    _Atomic uint64_t physical_bytes;          /* of cuMemCreate */
} hw_cu_gpu;

struct hw_cu_stream {
    CUstream handle;
    hw_cu_context *ctx;
    hw_stream *s;
    unsigned flags;
    int priority;
    uint64_t id;
    uint32_t number; /* as profilers show it: 7 is the context's default stream, others from 13 */
    hw_cu_capture *capture; /* NULL: not capturing */
    hw_cu_tips tips;
    CUlaunchAttributeValue attributes[16];
    hw_cu_link link;
};

typedef struct hw_cu_event {
    CUevent handle;
    hw_cu_context *ctx;
    hw_timeline *t;
    struct hw_cu_ipc_event *ipc; /* other processes may have it too; then t is not used */
    unsigned flags;
    _Atomic uint64_t capture_id; /* last recorded in this capture; 0: in none */
    hw_cu_tips tips;
    hw_cu_link link;
} hw_cu_event;

struct hw_cu_context {
    CUcontext handle;
    hw_cu_gpu *gpu;
    bool is_primary;
    _Atomic unsigned flags, attached;
    unsigned api_version;
    uint64_t id;
    uint32_t number;       /* from 1, as profilers show it */
    hw_exec *_Atomic exec; /* NULL: not used yet, or reset */
    uint64_t epoch;        /* of exec: per-thread streams of an older one are gone */
    hw_cu_stream legacy;
    pthread_mutex_t lock;
    hw_cu_link streams, events, modules, blocks, arrays, mipmaps;
    _Atomic int cache_config, shared_config;
    _Atomic uint64_t limits[8]; /* by CUlimit, for those exec does not keep */
    _Atomic unsigned captures;  /* that keep the legacy stream from being used */
    _Atomic bool fault_told;
    _Atomic hw_status launch_error; /* of a kernel that could not be started; told once */
    _Atomic uint64_t peers;         /* bit set of gpus */
    hw_cu_link link;
};

typedef struct hw_cu_block { /* tag of an allocation in hw_mem */
    hw_cu_context *ctx;
    uint64_t address, size;
    hw_cu_pool *pool;  /* NULL: not from a pool */
    void *reservation; /* virtual.c: not NULL for an address reservation */
    bool fixed;        /* a module's variables: not for cuMemFree */
    bool of_graph;     /* an allocation node's: freeing it is up to its graphs */
    _Atomic bool sync_memops, read_mostly;
    struct hw_cu_import_info *import; /* ipc.c: another process's memory; NULL: our own */
    _Atomic bool freed;               /* pool.c: its free is queued or done */
    CUmemLocation preferred, accessed_by, prefetched;
    hw_cu_link link;
} hw_cu_block;

typedef struct hw_cu_kernel_info { /* what must be lowered to be known */
    bool known;
    hw_status status;
    uint32_t registers, local_bytes;
} hw_cu_kernel_info;

typedef struct hw_cu_cubin { /* machine code of the image */
    hw_image_entry entry;    /* its bytes are the program's */
    bool opened;
    hw_cubin_kernel *kernels;
    size_t nkernels;
} hw_cu_cubin;

typedef struct hw_cu_machine { /* what a compiler gave a kernel */
    uint32_t arch, registers, local_bytes;
} hw_cu_machine;

typedef struct hw_cu_program {
    hw_arena *arena;
    hw_ptx_module *ptx;
    uint32_t refs;
    uint32_t binary_version;
    uint32_t cc;            /* of the device it was loaded for */
    uint32_t max_registers; /* what the options allow a kernel; 0: not said */
    pthread_mutex_t lock;
    hw_cu_cubin *cubins;
    size_t ncubins;
    hw_cu_kernel_info *info; /* by kernel */
    _Atomic bool *runs;      /* by kernel: its code is held */
} hw_cu_program;

typedef struct hw_cu_settings { /* function attributes a program may set */
    int max_dynamic_shared;     /* -1: as the device says */
    int carveout, cache_config, non_portable_cluster, cluster_policy, cluster[3];
} hw_cu_settings;

typedef struct hw_cu_function {
    void *handle;
    hw_cu_kind kind; /* HW_CU_FUNCTION: module is set. HW_CU_KERNEL: library is set */
    hw_cu_program *program;
    uint32_t index; /* of the kernel in program->ptx */
    hw_cu_module *module;
    hw_cu_library *library;
    hw_cu_settings own, *settings; /* of a library's functions: the kernel's, one for each gpu */
    hw_jit_source source;
    uint32_t block[3], shared_bytes; /* cuFuncSetBlockShape and its kin */
    uint8_t *params;
    uint32_t param_bytes;
} hw_cu_function;

struct hw_cu_module {
    CUmodule handle;
    hw_cu_context *ctx;
    hw_cu_program *program;
    hw_cu_library *library; /* NULL: loaded by itself */
    uint64_t *addresses;    /* of variables */
    uint64_t storage;       /* the block most of them are in; 0: none */
    hw_cu_function *functions;
    hw_cu_link link, sibling; /* in the context, in the library */
};

struct hw_cu_library {
    CUlibrary handle;
    hw_cu_program *program;
    hw_cu_function *kernels;
    hw_cu_settings *settings; /* kernel * gpus + gpu */
    uint64_t *managed;        /* addresses by variable; 0: not managed or not placed yet */
    pthread_mutex_t lock;
    hw_cu_link modules;
};

/* ---- the process ---- */
#define HW_CU_VERSION          13000
#define HW_CU_GPUS             64
#define HW_CU_HIGHEST_PRIORITY (-5)
typedef enum {
    HW_CU_UNUSED,
    HW_CU_READY,
    HW_CU_NO_DEVICE,
    HW_CU_FORKED,
    HW_CU_CLOSING,
    HW_CU_ENDED
} hw_cu_state;
typedef struct hw_cu_process {
    _Atomic int state; /* hw_cu_state */
    pthread_mutex_t lock;
    hw_arena *arena; /* devices and environment */
    hw_cu_env env;
    hw_cu_gpu gpus[HW_CU_GPUS];
    int ngpus;
    hw_jit *jit;
    _Atomic uint64_t next_id;
} hw_cu_process;
extern hw_cu_process hw_cu;

#endif
