/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts of a launch, shared by the files of this room.
 *
 *   run     one launch under way: code, grid, what all its frames have in common, its outcome.
 *   worker  one thread's part in a run. It takes block indices in ascending order from run.next.
 *   block   room for one resident block: frames, save areas, stacks, local and shared memory,
 *           barriers. A worker uses one again and again; it opens more only when blocks wait for
 *           each other. Kept in hw_exec.spare between launches.
 *
 * A fault leaves generated code and helpers by siglongjmp to the worker (hw_raise), so helpers hold
 * no lock and own no memory while they touch device memory.
 */
#ifndef HW_EXEC_PRIVATE_H
#define HW_EXEC_PRIVATE_H

#include "hw_exec.h"
#include "heap.h"
#include "print.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>

enum {
    HW_WARPS_MOST = 64,
    HW_BARRIERS = 16,
    HW_WARPGROUP = 4, /* warps of one */
    HW_BARRIERS_ALL = HW_BARRIERS + HW_WARPS_MOST / HW_WARPGROUP,
    HW_PARAMS_MOST = 32768
};
/* blocks of a cluster; of a block's shared memory in it */
enum { HW_CLUSTER_MOST = 32, HW_WINDOW_BITS = 24 };

typedef struct hw_run hw_run;
typedef struct hw_worker hw_worker;
typedef struct hw_block hw_block;
typedef struct hw_cluster hw_cluster;
typedef struct hw_tmem hw_tmem; /* tmem.h */

/* Where a launch's parameters lie, and behind them its cooperative workspace. */
typedef struct hw_room {
    struct hw_room *next;
    uint64_t addr;
} hw_room;

typedef struct hw_barrier {
    uint64_t waiting; /* warps that wait as a whole */
    uint64_t parted;  /* warps some of whose lanes wait or came by: hw_block.parked, came_by */
    uint32_t arrived; /* threads that came by without waiting */
    uint32_t count;   /* threads expected; 0: all that live */
    uint32_t value;   /* the reduction so far */
    uint32_t kind;    /* HW_BAR_* */
} hw_barrier;

/* A block at its cluster's barrier: lanes that came in this phase, warps and lanes that wait. */
typedef struct hw_meeting {
    bool used;
    uint64_t waiting;
    uint32_t came[HW_WARPS_MOST], parked[HW_WARPS_MOST];
} hw_meeting;

struct hw_cluster {
    hw_cluster *next; /* of a worker, or in hw_exec.spare_clusters */
    uint32_t nblocks;
    uint64_t memory; /* device address of the windows */
    hw_block *block[HW_CLUSTER_MOST];
};

struct hw_block {
    hw_block *next;      /* in hw_exec.spare */
    hw_cluster *cluster; /* NULL: alone */
    uint32_t rank;
    hw_meeting at_cluster;
    hw_exec *x;
    hw_run *run;
    hw_worker *worker;
    _Atomic uint64_t index; /* linear block index, valid while busy */
    uint32_t stop;          /* every frame's stop word; accessed atomically */
    bool busy;              /* a block is started and not ended */
    bool met;               /* each warp has had a turn */
    bool mixed;             /* some warps run the slow variant */
    bool quiet;             /* what its code never sets in frames is as at the start */
    bool linked_met;        /* met, when frames were linked */
    uint64_t linked;        /* warps whose frames are linked in the order of turns */
    uint32_t nwarps;
    uint32_t starved;                 /* how often in a row it was seen to wait for nobody */
    uint64_t live, runnable, awaited; /* awaited: bits of barriers somebody waits at */
    hw_barrier bar[HW_BARRIERS_ALL];
    /* Lanes of warps in bar[].parted; zero otherwise. */
    uint32_t parked[HW_BARRIERS_ALL][HW_WARPS_MOST], came_by[HW_BARRIERS_ALL][HW_WARPS_MOST];
    const hw_code *began; /* the code its warps began with */
    hw_warp_fn *code[HW_WARPS_MOST];
    hw_frame *frames;
    uint32_t frames_cap;
    uint8_t *save, *stack;
    size_t save_cap, save_stride, stack_cap, stack_stride;
    uint64_t local, local_cap; /* device address */
    uint64_t slot;             /* device address of the shared arena's slot */
    hw_tmem *tmem;             /* NULL: no warp has asked for any */
};

typedef struct hw_raised { /* what a fault left behind before the jump */
    hw_status status;
    uint32_t loc;
    uint64_t pc; /* of the machine instruction, if a signal told; else 0 */
    bool has_address;
    uint64_t address;
    char text[400]; /* instead of the status's words, may be empty */
} hw_raised;

struct hw_worker {
    hw_run *run;
    hw_turns turns; /* running: the warp that runs */
    hw_block *current;
    hw_block **blocks; /* open contexts, busy or idle */
    uint32_t nblocks, blocks_cap, turn;
    hw_cluster *clusters; /* of those blocks */
    uint64_t chunk_next, chunk_end;
    uint32_t stalls;
    uint64_t stalled_since_ns;
    bool progress;    /* something has changed that a warp may wait for */
    uint64_t told_ns; /* of its processor time; up to there the code's running is accounted for */
    volatile sig_atomic_t in_code; /* a SIGSEGV now is the kernel's */
    sigjmp_buf escape;
    hw_raised raised;
    hw_prints prints;
    struct hw_tally *tally; /* count.c; NULL: nobody listens */
    char *assert_text;      /* for stderr */
    size_t assert_len;
};

struct hw_run {
    _Alignas(64) _Atomic uint64_t next; /* block; on a cache line of its own */
    _Alignas(64) hw_exec *x;
    const hw_launch *l;
    const hw_code *code;              /* the first blocks run; what the launch is set up for */
    const hw_code *_Atomic next_code; /* blocks that start now run (tier.c) */
    const hw_code *_Atomic slow;      /* the no_shapes variant, once needed */
    bool improves;                    /* better code than `code` may come */
    hw_variant variant;
    uint64_t nblocks, chunk;
    uint32_t cluster_blocks; /* 1: no clusters */
    uint32_t nthreads, nwarps;
    uint32_t shared_bytes;
    uint32_t shared_room; /* as a device gives it out; where bounds are exact, the same */
    uint64_t local_stride;
    size_t stack_bytes; /* a warp */
    hw_frame proto;     /* what all frames have in common */
    uint64_t *symbols;
    uint32_t *tids; /* [warp][3][lane] */
    hw_room *room;
    hw_worker *workers;
    unsigned nworkers;
    _Atomic unsigned active; /* workers in their loop */
    pthread_mutex_t lock;    /* workers' lists of blocks; the fault */
    /* Blocks from here on are abandoned. Lower ones go on, so that the fault of the lowest block is
     * the one reported for any number of workers. */
    _Atomic uint64_t stop_from;
    _Atomic uint64_t fault_ns; /* when the first was raised; 0: none */
    _Atomic bool timed_out;
    _Atomic hw_status no_room; /* a worker could not open a single block */
    hw_fault fault;
    uint64_t fault_block; /* its block */
    char *assert_text;
    struct hw_tally *tallies; /* one a worker; NULL: nobody listens */
    void *listening;          /* the listener's state of this launch */
    bool counting;            /* the listener expects an end */
};

struct hw_stream_set;

typedef struct hw_estimate {
    const hw_code *code;
    double block_ns;
} hw_estimate;

struct hw_exec {
    const hw_device *dev;
    hw_mem *mem;
    hw_jit *jit;
    hw_exec_options o;
    hw_pool *pool;
    hw_code_fn *get_code;
    void *get_code_ctx;
    pthread_mutex_t lock; /* all below */
    hw_arena *names;      /* kernel names that faults mention */
    hw_block *spare;
    hw_cluster *spare_clusters;
    struct hw_room *rooms;                      /* spare parameter buffers */
    uint64_t slots_base, slots_end, slots_next; /* shared memory */
    uint64_t slot_bytes, slot_stride;
    uint64_t last_gridid;
    hw_estimate estimates[256]; /* by a hash of the code's address */
    hw_heap heap;
    struct hw_stream_set *streams;
};

/* ---- contexts.c ---- */
hw_status hw_block_open(hw_run *r, hw_worker *k, hw_cluster *c, uint32_t rank, hw_block **out);
hw_status hw_slots_ready(hw_exec *x);
void hw_block_give_back(hw_block *b);
void hw_blocks_free(hw_exec *x);
void hw_block_start(hw_block *b, uint64_t index);
/* Make room for a variant that saves more, keeping what is saved. */
hw_status hw_block_widen(hw_block *b, uint32_t save_bytes);

/* ---- block.c ---- */
typedef enum { HW_BLOCK_ENDED, HW_BLOCK_STALLED, HW_BLOCK_ABANDONED } hw_outcome;
void hw_block_give_up(hw_block *b, bool single); /* single: even where only one lane spins */
hw_outcome hw_block_run(hw_block *b);
void hw_block_arrive(hw_frame *f, uint32_t id, uint32_t count, uint32_t lanes);
/* Or a fault. *id, what the instruction says, becomes the number in bar[]. */
hw_barrier *hw_block_barrier(hw_frame *f, uint32_t *id);
void hw_block_check(hw_block *b, uint32_t id); /* let the barrier's warps go if all came */

/* ---- park.c ---- */
void hw_block_park(hw_frame *f, const uint32_t *id, const uint32_t *count, uint32_t lanes);
void hw_block_sync(hw_frame *f, const uint32_t *mask, uint32_t lanes);
/* Threads that a barrier's parted warps count for: 32 where all lanes that have not ended came. */
uint32_t hw_block_parted_threads(const hw_block *b, uint32_t id);
void hw_block_release_parted(hw_block *b, uint32_t id);
void hw_block_parked(hw_block *b, uint32_t w); /* warp w was suspended with all its lanes parked */
void hw_block_clear_barriers(hw_block *b);
_Noreturn void hw_block_deadlock(hw_block *b);

/* ---- tier.c ---- */
hw_status hw_tier_code(hw_run *r, const hw_variant *v, const hw_code **out, hw_diag *d);
void hw_tier_begin(hw_run *r);
/* A worker begins; takes blocks; ends. */
void hw_tier_enter(hw_worker *k);
void hw_tier_look(hw_worker *k);
void hw_tier_leave(hw_worker *k);
hw_variant hw_tier_slow_variant(const hw_run *r);

/* ---- cluster.c ---- */
hw_status hw_cluster_open(hw_run *r, hw_worker *k, hw_cluster **out);
void hw_cluster_give_back(hw_exec *x, hw_cluster *c); /* its blocks are given back one by one */
void hw_clusters_free(hw_exec *x);
void hw_cluster_place(const hw_run *r, uint64_t index, uint32_t ctaid[3]);
bool hw_cluster_idle(const hw_cluster *c);
void hw_cluster_check(hw_block *b);
void hw_cluster_arrive(hw_frame *f, uint32_t lanes);
void hw_cluster_wait(hw_block *b, uint32_t w);
void hw_cluster_park(hw_frame *f, uint32_t lanes);
bool hw_cluster_may_go_on(hw_block *b);
/* Do all its warps wait at barriers and mbarriers that none of them will complete? */
bool hw_cluster_starves(hw_block *b);
uint32_t hw_cluster_waiting(const hw_block *b); /* warps of b */
/* Blocks of b's cluster that have not ended, from rank *from on, which becomes the next; NULL: no more. */
hw_block *hw_cluster_next_live(hw_block *b, uint32_t *from);

/* ---- worker.c ---- */
void hw_worker_main(void *run, unsigned index);

/* ---- fault.c ---- */
void hw_fault_install(void);      /* signal handlers, in front of the program's */
void hw_fault_thread_begin(void); /* an alternate stack for this thread */
void hw_fault_set_worker(hw_worker *k);
/* device_call.c */
hw_helper_fn hw_h_device_call;
/* texture.c: helpers of textures and surfaces */
hw_helper_fn hw_h_tex, hw_h_surf, hw_h_tex_query;
/* mbarrier.c */
hw_helper_fn hw_h_mbarrier, hw_h_mbarrier_wait;
/* async.c */
hw_helper_fn hw_h_bulk;
/* tensor.c */
hw_helper_fn hw_h_tensor, hw_h_tensormap;
hw_helper_fn hw_h_wgmma; /* wgmma.c */
/* Raises a fault unless bytes at addr are the device's (or registered) and aligned. */
void hw_need_memory(hw_frame *f, uint64_t addr, uint64_t bytes, uint32_t align);
/* The mbarrier or place of another block of the cluster: the same offset in its shared memory. */
uint64_t hw_in_block(const hw_frame *f, uint64_t addr, uint32_t rank);
/* reduce.c: n elements at `to` combined with those at `from`, each atomically (PTX ISA, cp.reduce). */
bool hw_reduce(hw_wir_atom op, hw_wir_type t, void *to, const void *from, uint64_t bytes);
_Noreturn void hw_raise(hw_frame *f, hw_status s, uint32_t loc, const char *fmt, ...)
    HW_PRINTF(4, 5);
_Noreturn void hw_raise_address(hw_frame *f, hw_status s, uint32_t loc, uint64_t addr);
/* After the jump: keep the fault if it is the lowest block's, stop the blocks above. */
void hw_fault_keep(hw_worker *k);
void hw_run_stop(hw_run *r, uint64_t from_block);
void hw_fault_timeout(hw_run *r);

/* ---- jit.c ---- */
hw_status hw_code_from_jit(void *jit, const hw_jit_source *s, const hw_variant *v,
                           const hw_code **out, hw_diag *d);
hw_helper_fn *hw_jit_helper(unsigned i);

/* ---- helpers.c ---- */
const hw_callbacks *hw_exec_callbacks(void);

/* ---- stream.c ---- */
struct hw_stream_set *hw_streams_new(void);
bool hw_streams_free(struct hw_stream_set *s); /* waits; false: in vain, some thread never ends */

uint64_t hw_now_ns(void);

#endif
