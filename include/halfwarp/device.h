/* SPDX-License-Identifier: Apache-2.0
 *
 * halfwarp/device.h: device models of GPUs, and exact arithmetic on them: occupancy, shared-memory
 * banks, coalescing.
 *
 * Nouns
 *   device      a GPU model, from a device file. Immutable; any number of threads may use one at
 * once. occupancy   how many blocks (groups) one multiprocessor (compute unit) holds at once, and
 * what stops one more. access      what the lanes of one warp (wave) do in one memory instruction:
 * a mask of active lanes, their byte addresses and the width of each lane's access. banks       the
 * passes that serve one access to shared memory (LDS). coalescing  the transactions that one access
 * to global memory becomes.
 *
 * Rules: sizes are bytes. Except for hw_device_open nothing allocates or fails; impossible queries
 * give zero blocks and a refusal that says why. NVIDIA's words are used; on AMD devices read block
 * as group, warp as wave, SM as CU.
 */
#ifndef HALFWARP_DEVICE_H
#define HALFWARP_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HW_DEVICE_API __attribute__((visibility("default")))

typedef struct hw_device hw_device;

/* ---- devices ---- */

/* A device by name ("h100", "xbox-one"), alias, or path of a device file. NULL on failure, with a
 * sentence (several lines for a mistake in a file) in message, which may be NULL. */
HW_DEVICE_API const hw_device *hw_device_open(const char *name_or_path, char *message,
                                              size_t message_size);
HW_DEVICE_API void hw_device_close(const hw_device *dev); /* NULL is fine */
HW_DEVICE_API const char *hw_device_name(const hw_device *dev);
HW_DEVICE_API const char *hw_device_title(const hw_device *dev);
HW_DEVICE_API bool hw_device_is_amd(const hw_device *dev);
HW_DEVICE_API uint32_t hw_device_warp_size(const hw_device *dev);
HW_DEVICE_API uint32_t hw_device_sm_count(const hw_device *dev);
/* Any number of a device file as "group.key" ("occupancy.registers_per_sm"); false if there is no
 * such number. */
HW_DEVICE_API bool hw_device_number(const hw_device *dev, const char *group_key, double *value);
/* The i-th name of the devices that are built in or in $HALFWARP_DEVICE_PATH, sorted; 0 when i is
 * past the end, else the length of the name, which is cut to fit. */
HW_DEVICE_API size_t hw_device_name_at(size_t i, char *name, size_t name_size);

/* ---- occupancy ---- */

typedef enum { HW_CACHE_NONE, HW_CACHE_SHARED, HW_CACHE_L1, HW_CACHE_EQUAL } hw_cache_preference;
typedef enum { HW_PARTITIONED_OFF, HW_PARTITIONED_ON, HW_PARTITIONED_STRICT } hw_partitioned;
typedef enum {
    HW_OCCUPANCY_HEADER,      /* as NVIDIA's cuda_occupancy.h; on AMD: exact, whole groups */
    HW_OCCUPANCY_SPREADSHEET, /* as NVIDIA's spreadsheet (warp limit of 1.x without rounding) */
    HW_OCCUPANCY_LLVM,        /* AMD: as the remark of the LLVM compiler */
} hw_occupancy_policy;

#define HW_CARVEOUT_DEFAULT (-1)

/* What a launch asks for. Start from HW_OCCUPANCY_QUERY_INIT, or hw_occupancy_query_new(). */
typedef struct hw_occupancy_query {
    uint32_t threads;            /* of a block */
    uint32_t registers;          /* NVIDIA: per thread; 0: none */
    uint64_t shared_static;      /* NVIDIA: declared in the kernel */
    uint64_t shared_dynamic;     /* NVIDIA: asked for at the launch */
    uint64_t shared_dynamic_max; /* NVIDIA, with shared_optin: most the kernel has opted in to */
    bool shared_optin;           /* NVIDIA: the kernel opted in to the large limit per block */
    uint32_t barriers;           /* NVIDIA: named barriers of a block; 0: none */
    uint32_t virtual_resources;  /* NVIDIA: 0: none */
    int carveout; /* NVIDIA: per cent of shared memory wanted, or HW_CARVEOUT_DEFAULT */
    hw_cache_preference cache;  /* NVIDIA */
    hw_partitioned partitioned; /* NVIDIA: partitioned global caching */
    hw_occupancy_policy policy;
    uint32_t vgprs, sgprs; /* AMD: per wave; 0: none */
    uint64_t lds;          /* AMD: of a group */
    bool trap_handler;     /* AMD: reserve the scalar registers of a trap handler */
} hw_occupancy_query;
#define HW_OCCUPANCY_QUERY_INIT { .barriers = 1, .carveout = HW_CARVEOUT_DEFAULT }

static inline hw_occupancy_query hw_occupancy_query_new(void)
{
    hw_occupancy_query query;
    memset(&query, 0, sizeof query);
    query.barriers = 1;
    query.carveout = HW_CARVEOUT_DEFAULT;
    return query;
}

/* What can stop one more block. */
typedef enum {
    HW_LIMIT_THREADS,
    HW_LIMIT_WARPS, /* AMD: waves */
    HW_LIMIT_BLOCKS,
    HW_LIMIT_REGISTERS,
    HW_LIMIT_SHARED,
    HW_LIMIT_BARRIERS,
    HW_LIMIT_VIRTUAL,
    HW_LIMIT_VGPR,
    HW_LIMIT_SGPR,
    HW_LIMIT_LDS,
    HW_LIMIT_COUNT
} hw_limit;
#define HW_UNLIMITED UINT32_MAX

/* Why a launch cannot be made at all. */
typedef enum {
    HW_FITS,
    HW_REFUSED_NO_THREADS,       /* a block of no threads */
    HW_REFUSED_THREADS,          /* more threads than a block may have */
    HW_REFUSED_REGISTERS_THREAD, /* more registers than a thread may have */
    HW_REFUSED_REGISTERS_BLOCK,  /* more registers than a block may have */
    HW_REFUSED_REGISTERS_SM,     /* more than the register file holds */
    HW_REFUSED_SHARED_BLOCK,     /* more shared memory (LDS) than a block may have */
    HW_REFUSED_SHARED_OPTIN,     /* the same, but opting in would allow it */
    HW_REFUSED_SHARED_DYNAMIC,   /* more dynamic shared memory than opted in to */
    HW_REFUSED_SHARED_CONFIG,    /* no configuration is large enough, or carve-out outside 0..100 */
    HW_REFUSED_BARRIERS,         /* more barriers than there are */
    HW_REFUSED_VIRTUAL,          /* more virtual resources than there are */
    HW_REFUSED_VGPRS,            /* more VGPRs than a wave may have */
    HW_REFUSED_SGPRS,            /* more SGPRs than a wave may have */
    HW_REFUSED_COUNT
} hw_refusal;

typedef struct hw_occupancy_result {
    hw_refusal refusal;
    uint32_t blocks, warps, threads; /* resident on one multiprocessor */
    uint32_t max_warps;              /* that it could hold */
    double occupancy;                /* warps / max_warps */
    uint32_t limits[HW_LIMIT_COUNT]; /* blocks each resource would allow; HW_UNLIMITED */
    uint32_t limiters;               /* bits 1 << hw_limit of those that allow the fewest */
    hw_limit limiter; /* the one to name: a limit no launch can change before those it can */
    uint32_t warps_per_block;
    uint32_t registers_allocated; /* NVIDIA: per block. AMD: VGPRs per wave */
    uint32_t sgprs_allocated;     /* AMD: per wave */
    uint64_t shared_allocated;    /* per block, reserve included */
    uint64_t shared_config;       /* NVIDIA: size that shared memory is configured to */
    hw_partitioned partitioned;   /* NVIDIA: whether partitioned caching stays on */
    uint32_t waves_per_simd;      /* AMD: rounded down (LLVM policy: as the remark) */
    uint32_t waves_per_simd_ceil; /* AMD: rounded up */
    uint32_t simds_used;          /* AMD: SIMDs with at least one wave */
} hw_occupancy_result;

/* Fills result; true if at least one block fits. */
HW_DEVICE_API bool hw_occupancy(const hw_device *dev, const hw_occupancy_query *query,
                                hw_occupancy_result *result);
/* "registers", "shared_memory" ...; a sentence for a refusal. */
HW_DEVICE_API const char *hw_limit_name(hw_limit limit);
HW_DEVICE_API const char *hw_refusal_text(hw_refusal refusal);

/* The nearest change of one resource that makes more warps resident. */
typedef struct hw_occupancy_step {
    hw_limit resource;  /* registers, shared memory, barriers, VGPRs, SGPRs, LDS; threads: another
                           block size */
    uint64_t now, then; /* amount of the query; amount that gives more */
    uint32_t blocks, warps; /* then resident */
} hw_occupancy_step;

/* Everything about one launch. */
#define HW_STEPS_MAX 8
typedef struct hw_occupancy_report {
    hw_occupancy_result result;
    uint32_t step_count;
    hw_occupancy_step steps[HW_STEPS_MAX];
    uint32_t registers_free; /* registers (VGPRs) more that leave the blocks as they are */
    uint64_t shared_free; /* bytes of shared memory (LDS) more that leave the blocks as they are */
    uint32_t best_count;  /* block sizes with the most resident warps, ascending */
    uint32_t best_sizes[64];
    uint32_t best_warps;
    uint64_t config_enough; /* NVIDIA: smallest shared memory configuration that keeps the blocks */
} hw_occupancy_report;
HW_DEVICE_API bool hw_occupancy_explain(const hw_device *dev, const hw_occupancy_query *query,
                                        hw_occupancy_report *report);

/* Dynamic shared memory, for queries in which it depends on the block's size. */
typedef uint64_t hw_block_shared(void *context, uint32_t threads);

/* The block size with the most resident threads (the largest on a tie, as
 * cudaOccupancyMaxPotentialBlockSize), of at most limit threads (0: the device's), and in *grid,
 * which may be NULL, the blocks that fill the device. 0: none. */
HW_DEVICE_API uint32_t hw_occupancy_block_size(const hw_device *dev,
                                               const hw_occupancy_query *query, uint32_t limit,
                                               hw_block_shared *shared, void *context,
                                               uint32_t *grid);
/* Dynamic shared memory a block may use while so many blocks stay resident; false if they do not
 * fit anyway. */
HW_DEVICE_API bool hw_occupancy_shared_available(const hw_device *dev,
                                                 const hw_occupancy_query *query, uint32_t blocks,
                                                 uint64_t *bytes);

/* AMD: bytes of LDS of a group up to which so many waves per SIMD are promised by the quick
 * reference's formula (tipping), and the largest that whole groups really reach (whole; 0: none).
 */
HW_DEVICE_API void hw_lds_tipping_point(const hw_device *dev, uint32_t threads,
                                        uint32_t waves_per_simd, uint32_t *tipping,
                                        uint32_t *whole);

/* ---- accesses ---- */

typedef enum { HW_LOAD, HW_STORE, HW_ATOMIC } hw_access_kind;

#define HW_LANES_MAX 64

typedef struct hw_access {
    const uint64_t *address; /* of lanes lanes */
    uint64_t mask;           /* bit n: lane n takes part */
    uint32_t lanes;          /* 32 or 64: at most HW_LANES_MAX */
    uint32_t width;          /* bytes of a lane: 1, 2, 4, 8, 12 or 16 */
    hw_access_kind kind;
    bool bypass_l1;      /* global: ld.global.cg */
    bool use_l1;         /* global: ld.global.ca where the L1 is off by default */
    uint32_t bank_width; /* banks: 4 or 8 where the device has both; 0: its default */
    int read_conflicts;  /* banks: -1 distinct dwords, 1 threads (GCN); 0: the device's */
} hw_access;

#define HW_PARTS_MAX 64

typedef struct hw_bank_result {
    uint32_t parts;        /* the groups of lanes, or 32-bit requests, the access is split into */
    uint32_t passes;       /* passes (wavefronts) in total */
    uint32_t ideal_passes; /* without conflicts */
    uint32_t conflicts;    /* passes - ideal_passes */
    uint32_t degree;       /* passes of the worst part: 1 is free of conflicts */
    uint32_t part_passes[HW_PARTS_MAX];
} hw_bank_result;

HW_DEVICE_API void hw_bank_access(const hw_device *dev, const hw_access *access,
                                  hw_bank_result *result);
/* The bank a byte address lies in; and what lanes on one bank must have in common to be served by
 * one access of it. */
HW_DEVICE_API uint32_t hw_bank_of(const hw_device *dev, const hw_access *access, uint64_t address);
HW_DEVICE_API uint64_t hw_bank_row_of(const hw_device *dev, const hw_access *access,
                                      uint64_t address);
/* Lanes that are served together for this width. */
HW_DEVICE_API uint32_t hw_bank_lanes(const hw_device *dev, uint32_t width);

typedef struct hw_transaction {
    uint64_t address;
    uint32_t bytes;
    uint32_t part;  /* half-warp or sub-request that caused it */
    uint64_t lanes; /* lanes it serves */
} hw_transaction;

#define HW_TRANSACTIONS_MAX 128

typedef struct hw_coalesce_result {
    uint32_t requests;        /* requests the access is split into (half-warps, sub-requests) */
    uint32_t transactions;    /* transactions of the device's own rule */
    uint32_t sectors;         /* distinct 32-byte sectors touched by the warp */
    uint32_t lines;           /* distinct lines touched by the warp */
    uint32_t address_cycles;  /* AMD, advisory: 16 lanes of one line a clock, else 4; 0 elsewhere */
    uint64_t bytes_requested; /* active lanes times width */
    uint64_t bytes_used;      /* distinct bytes among them */
    uint64_t bytes_moved;     /* by the transactions */
    double efficiency;        /* bytes_requested / bytes_moved; above 1 when lanes share bytes */
} hw_coalesce_result;

/* list, which may be NULL, takes the transactions in order; it has room for HW_TRANSACTIONS_MAX. */
HW_DEVICE_API void hw_coalesce_access(const hw_device *dev, const hw_access *access,
                                      hw_coalesce_result *result, hw_transaction *list);

/* Requests to the constant cache: the distinct 32-bit words of each warp, or half-warp
 * (requests[2]). */
HW_DEVICE_API uint32_t hw_constant_access(const hw_device *dev, const hw_access *access,
                                          uint32_t requests[2]);

#ifdef __cplusplus
}
#endif
#endif
