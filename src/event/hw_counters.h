/* SPDX-License-Identifier: Apache-2.0
 *
 * What a launch counts, and who is told. Part of hw_event.h, which includes it.
 *
 * Nouns
 *   table     what is known of a kernel's code before it runs: blocks, instructions, memory sites,
 *             branches. One a compiled variant, only if somebody listens.
 *   block     a basic block. Its warps and lanes are counted when it runs; each of its instructions
 *             then ran that often. The end of threads that stands alone is one too: lanes end where they
 *             branch to it, but it counts as run once a warp, by all lanes that came to it.
 *   inst      one PTX instruction in one block. Instructions of inlined functions stand in every
 *             block they were copied to. What was made to carry out calls is none.
 *   site      one access to memory of one instruction (a copy from global to shared memory has two).
 *   access    what the lanes of a warp do at a site, told with 32 addresses and a mask. Where the
 *             pattern of the lanes is known while compiling, the code counts accesses by the base
 *             address's place within 256 bytes; they are told at the launch's end, all equal ones
 *             at once (`times`), with addresses made up to have the same distances and the same low
 *             8 bits. Everything that a device's rules say of them is the same.
 *   listener  hears the accesses of launches and gets the counters at their ends.
 *
 * Rules: all is independent of devices and of the number of workers; only the order of accesses
 * that are told is not. A warp has 32 lanes. A spin loop runs as often as it runs.
 */
#ifndef HW_EVENT_COUNTERS_H
#define HW_EVENT_COUNTERS_H

#include "hw_base.h"

#define HW_NO_INDEX UINT32_MAX

enum { HW_ACCESS_PERIOD = 256 }; /* bytes: made-up addresses are right modulo this */

typedef enum hw_inst_group {
    HW_INST_GROUP_FP32,
    HW_INST_GROUP_FP64,
    HW_INST_GROUP_FP16,
    HW_INST_GROUP_SFU,
    HW_INST_GROUP_TENSOR,
    HW_INST_GROUP_INT,
    HW_INST_GROUP_CONVERT,
    HW_INST_GROUP_MOVE,
    HW_INST_GROUP_PREDICATE,
    HW_INST_GROUP_LANES,
    HW_INST_GROUP_CONTROL,
    HW_INST_GROUP_BARRIER,
    HW_INST_GROUP_FENCE,
    HW_INST_GROUP_LOAD,
    HW_INST_GROUP_PARAM,
    HW_INST_GROUP_STORE,
    HW_INST_GROUP_ATOMIC,
    HW_INST_GROUP_TEXTURE,
    HW_INST_GROUP_MISC,
    HW_INST_GROUP_COUNT
} hw_inst_group;

typedef enum hw_inst_class {
#define HW_INST(name, group, text) HW_INST_##name,
#include "inst.def"
#undef HW_INST
    HW_INST_COUNT
} hw_inst_class;

typedef struct hw_inst_class_info {
    const char *name, *text;
    hw_inst_group group;
} hw_inst_class_info;
static inline const hw_inst_class_info *hw_inst_class_of(unsigned c)
{
    static const hw_inst_class_info table[HW_INST_COUNT] = {
#define HW_INST(name, group, text) { #name, text, HW_INST_GROUP_##group },
#include "inst.def"
#undef HW_INST
    };
    return &table[c < HW_INST_COUNT ? c : HW_INST_MISC];
}

/* ---- the table ---- */

typedef struct hw_count_place { /* where an instruction comes from */
    const char *file;           /* source file, NULL: no line information */
    uint32_t line, column;
    uint32_t ptx_line;    /* line in the PTX text; 0: unknown */
    uint32_t inlined_at;  /* index of the place it was inlined into; 0: none */
    const char *function; /* inlined function's name or NULL */
} hw_count_place;

typedef struct hw_count_inst {
    uint32_t place;  /* index of table.places; 0: none */
    uint32_t block;  /* of the table's blocks */
    uint32_t guard;  /* index of counters.guard_lanes if it is predicated, else HW_NO_INDEX */
    uint32_t site;   /* its first memory site, HW_NO_INDEX: none. A COPY's second is site + 1 */
    uint32_t taken;  /* else the block whose lanes are those that it acts in (a branch's target that
                        nothing else leads to); HW_NO_INDEX: all lanes, or `guard` */
    uint32_t branch; /* index of table.branches, HW_NO_INDEX: no conditional branch. (A conditional
                        end of threads is one.) */
    uint16_t cls;    /* hw_inst_class */
    uint8_t pairs;   /* arithmetic on pairs in one register: 2; else 1 */
    bool part; /* no execution of its own: holds accesses of an instruction that began elsewhere */
} hw_count_inst;

typedef struct hw_count_block {
    uint32_t function;     /* of the module; 0: the kernel */
    uint32_t first, count; /* its instructions in table.insts */
} hw_count_block;

typedef enum hw_site_kind {
    HW_SITE_LOAD,
    HW_SITE_STORE,
    HW_SITE_ATOMIC,    /* with a result */
    HW_SITE_REDUCTION, /* without */
} hw_site_kind;

typedef enum hw_site_space {
    HW_SITE_GENERIC, /* in a site only: an access is told with the space it went to */
    HW_SITE_GLOBAL,
    HW_SITE_SHARED, /* addresses are offsets in the block's shared memory */
    HW_SITE_LOCAL,  /* addresses are those of lanes' interleaved local memory: see hw_access_told */
    HW_SITE_CONST,
    HW_SITE_TEXTURE, /* addresses are sectors: see hw_access_told */
    HW_SITE_SURFACE, /* the same */
    HW_SITE_BULK,    /* global memory touched by bulk and tensor copies: sectors as well */
    HW_SITE_SPACES
} hw_site_space;

typedef enum hw_site_via { /* of what a device tells apart among loads and stores */
                           HW_VIA_PLAIN,
                           HW_VIA_COPY,   /* cp.async */
                           HW_VIA_MATRIX, /* ldmatrix, stmatrix */
} hw_site_via;

typedef enum hw_site_pattern {                /* how far lanes are from lane 0: */
                               HW_SITE_FIXED, /* said by offset */
                               HW_SITE_STRIDE, /* by offset, scale, and R, the counter at first - 1; at first - 2 a flag */
                               HW_SITE_SEEN, /* by 32 counters from first - 32; at first - 33 a flag */
} hw_site_pattern;

typedef struct hw_site {
    uint32_t place, block, inst;
    uint8_t kind, space; /* hw_site_kind, hw_site_space */
    uint8_t via;         /* hw_site_via */
    uint8_t bytes;       /* of one lane's access: 1, 2, 4, 8, 16, 32 */
    uint8_t elements;    /* of a vector access; bytes / elements each */
    uint8_t atom;        /* hw_wir_atom of atomics */
    bool readonly;       /* ld.global.nc and ldu: may go through a read-only cache */
    bool part;           /* in shared memory: more of an access that another site of the instruction
                            began, so no access of its own (matrices) */
    bool bypass_l1;      /* volatile, relaxed and stronger, atomics: served by L2 */
    /* How the code counts, for exec, which tells accesses at the end. Sites of a block with the same
     * address register are counted and told together; each of them adds its own displacement. */
    int64_t add;    /* to the address that is counted or told */
    uint32_t next;  /* the next site told together with this one; HW_NO_INDEX: none */
    uint32_t first; /* counter of class 0; HW_NO_INDEX: every access is told when it is made */
    uint8_t shift;  /* a lane 0 address's class: (address & 255) >> shift */
    uint8_t known;  /* hw_site_pattern */
    const int64_t *offset; /* 32: distance to lane 0 = offset + scale * R; NULL: all 0 */
    const int64_t *scale;  /* 32, or NULL */
} hw_site;

typedef struct hw_count_branch {
    uint32_t place, block, inst;
    uint32_t targets;
    bool uniform; /* lanes are known to go one way */
} hw_count_branch;

typedef struct hw_count_table {
    uint32_t n_blocks, n_insts, n_sites, n_branches, n_guards, n_places;
    const hw_count_block *blocks;
    const hw_count_inst *insts; /* in order of blocks */
    const hw_site *sites;
    const hw_count_branch *branches;
    const hw_count_place *places; /* [0]: none */
    /* Layout of a worker's counters. */
    uint32_t n_counters; /* of 64 bits */
    uint32_t full;       /* n_blocks: warps that ran a block with all 32 lanes, in code made so */
    uint32_t part;       /* n_blocks * 2: warps that ran it in other code, and their lanes */
    uint32_t guards;     /* n_guards: lanes in which the guard held */
    uint32_t divergent;  /* n_branches: warps whose lanes parted */
} hw_count_table;

/* ---- what generated code tells ---- */

/* Accesses that are told wait on a tape until it is full, or their block ends. */
enum { HW_TAPE_SITE_BITS = 26 };
typedef struct hw_tape_entry {
    struct hw_frame *frame; /* of the warp, and by now perhaps of the block's next one */
    uint32_t site : HW_TAPE_SITE_BITS,
                    warp : 32 - HW_TAPE_SITE_BITS; /* of the table; of the block */
    uint32_t lanes; /* who takes part. 0: all, a known pattern: address[0] is lane 0's, and the
                       access is counted as well */
} hw_tape_entry;

enum { HW_TAPE_ENTRIES = 32 };

/* Lies just before a worker's counters, on a cache line. */
typedef struct hw_tape {
    _Alignas(64) uint64_t address[HW_TAPE_ENTRIES][32];
    hw_tape_entry entry[HW_TAPE_ENTRIES];
    uint64_t n; /* below HW_TAPE_ENTRIES when nobody writes */
    uint64_t unused[7];
} hw_tape;

/* How far lanes are from lane 0 at a site whose pattern is known; of a worker's counters. */
static inline void hw_site_distances(const hw_site *s, const uint64_t *counters, uint64_t *out)
{
    const uint64_t *first = counters + s->first;
    uint64_t r = s->known == HW_SITE_STRIDE ? first[-1] : 0;
    for (int i = 0; i < 32; i++)
        out[i] = s->known == HW_SITE_SEEN ? first[i - 32]
                                          : (uint64_t)(s->offset ? s->offset[i] : 0) +
                                                (uint64_t)(s->scale ? s->scale[i] : 0) * r;
}

/* ---- what a launch counted ---- */

typedef struct hw_block_count {
    uint64_t warps, lanes; /* executions; lanes active in them, summed */
} hw_block_count;

typedef struct hw_counters {
    const hw_count_table *table;
    const hw_block_count *blocks; /* table.n_blocks */
    const uint64_t *guard_lanes;  /* table.n_guards: active lanes that were not predicated off */
    const uint64_t *divergent;    /* table.n_branches */
    const char *kernel;
    uint32_t grid[3], block[3];
    uint64_t blocks_done;    /* thread blocks that ended */
    uint64_t warps_launched; /* in them */
    uint32_t static_shared_bytes, dynamic_shared_bytes, local_bytes;
    uint32_t registers; /* estimate: live 32-bit values a lane */
    uint64_t wall_ns;   /* of carrying out, not compiling */
    hw_status status;   /* how the launch ended; counts of what was done until then are valid */
} hw_counters;

/* ---- listening ---- */

typedef struct hw_access_told {
    uint32_t site;
    hw_site_space space; /* never GENERIC */
    uint32_t lanes;      /* bit mask, not 0: lanes that take part */
    bool real;           /* addresses are the real ones; else see above */
    uint64_t times;      /* that many equal accesses */
    int64_t add;         /* to each address below */
    /* address NULL: an access of a known pattern with all lanes, whose rules are told at the end;
     * for those who follow addresses. Lane i is at base + hw_site_distances(site, pattern)[i]. */
    uint64_t base;
    const uint64_t *pattern;
    /* 32; those of lanes not in the mask are any. Local memory, which a device interleaves so that equal offsets of
     * neighbouring lanes are neighbours, comes so: offset / w * 32 * w + lane * w + offset % w, w = the site's bytes
     * or 4 if less. */
    const uint64_t *address;
    /* Textures, surfaces and bulk copies: `address` has the distinct 32-byte sectors that the lanes asked for, `lanes` says which of the
     * 32, and may be 0; more than 32 come in several parts, of which only the first says how many lanes asked and for how
     * many bytes each. Arrays lie in blocks of 64 bytes by 8 rows, in pairs of rows of 16 bytes, as in device memory. */
    uint32_t asked_lanes, asked_bytes;
    uint32_t sm, warp;     /* simulated multiprocessor, warp in its block; 0 if not real */
    uint64_t thread_block; /* linear index; 0 if not real */
} hw_access_told;

/* Several launches may be under way at once. `launch` is what begin returned, `worker` what worker
 * returned; each worker is used by one thread at a time, all from one launch. */
typedef struct hw_listener {
    void *ctx;
    uint32_t wants; /* set of HW_LISTEN_* */
    /* A launch begins: its table; returns the launch's state. counters: shapes and sizes only. */
    void *(*begin)(void *ctx, const hw_counters *c, uint32_t workers);
    void *(*worker)(void *launch, uint32_t index); /* once for each index below workers */
    void (*access)(void *worker, const hw_access_told *a, uint32_t n); /* n of them, in order */
    /* The launch ended, well or not: add the workers' states in order of index and free all. */
    void (*end)(void *launch, const hw_counters *c);
    void (*block)(void *worker, uint64_t index); /* a thread block ended; NULL: not asked for */
} hw_listener;

#endif
