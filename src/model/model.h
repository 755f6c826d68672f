/* SPDX-License-Identifier: Apache-2.0
 *
 * model: its inside. Private to the room.
 *
 *   slot     what one site counted on one device in one space.
 *   launch   a launch under way: a state a worker, merged at its end in order of index.
 *   entry    a kernel with one shape of launch: sums, sites, groups of equal launches.
 */
#ifndef HW_MODEL_INSIDE_H
#define HW_MODEL_INSIDE_H

#include "hw_model.h"
#include "many.h"

#include <pthread.h>

enum {
    SHAPES_MOST = 64,       /* shapes of one kernel told apart */
    SUMS_MOST = 6000,       /* groups of equal launches in a file, times devices */
    SITES_BYTES = 8 << 20,  /* about as many a file may have of instructions of further shapes, */
    INST_BYTES = 200,       /* of which each takes so many, */
    INST_DEVICE_BYTES = 60, /* and so many for each device */
    RANGES_MOST = 20000,    /* runs of ids in a file */
    WIDTH_MOST = 16,        /* bytes of a lane's access that the rules take at once */
};

/* Sums over accesses that were gone through side by side (many.h): all rules that need no more are
 * worked out from them at the launch's end. */
typedef struct gist {
    unsigned wants; /* MANY_* */
    uint64_t accesses, lanes, sectors, lines, halves, alike, filled, parts, part_sectors;
    uint64_t crowd[MANY_RULES], conflicted[MANY_RULES], shared[MANY_RULES];
    uint64_t bank[HW_WARP_LANES]; /* distinct words asked of each */
    many_sums recent;             /* not yet in the numbers above */
} gist;

typedef struct slot {
    gist
        *gist; /* of the site, in the first device's slot; NULL: rules are applied to each access */
    uint64_t field[HW_FIELDS];
    uint64_t bank[HW_LANES_MAX]; /* distinct words asked of each bank */
    enum { STRIDE_NONE, STRIDE_ONE, STRIDE_MIXED } strided;
    int64_t stride; /* STRIDE_ONE: lane i accesses first + i * stride */
} slot;

typedef struct sums {
    uint64_t total[HW_TOTALS];
    uint64_t (*traffic)[HW_TRAFFICS][HW_FIELDS]; /* by device */
    uint64_t (*cache)[HW_CACHES];                /* by device; NULL: not simulated */
} sums;

typedef struct place_count { /* of one instruction of the table */
    uint64_t warps, lanes, on, divergent;
} place_count;

/* Ids, or ranges of them: first, count, step, first ... */
typedef HW_VEC(uint64_t) id_list;

typedef struct group {
    uint64_t launches;
    uint32_t context, stream;
    id_list ranges; /* of ids from the host, or of nested ones, never both */
    sums sums;
} group;

typedef struct registers { /* of a thread, on one device */
    uint32_t count, spill_bytes, arch;
    hw_model_source source;
} registers;

typedef struct entry {
    struct entry *next;
    hw_model_launch info;        /* of the first launch; strings copied */
    const hw_count_table *table; /* a copy */
    const hw_count_table *seen;  /* whose copy it was when it was last heard of */
    bool mixed;
    registers registers[HW_MODEL_DEVICES_MAX]; /* count 0: not known yet */
    uint64_t first_id, launches, failed, ungrouped;
    hw_status failure;
    sums sums;
    place_count *insts; /* table->n_insts */
    slot **cells;       /* as a worker's */
    const char **text;  /* PTX line of each place; NULL without PTX */
    HW_VEC(group *) groups;
} entry;

typedef struct cache_sim cache_sim; /* levels.c */

typedef struct launch launch;
typedef struct worker {
    launch *launch;
    uint32_t index;
    slot **cells; /* [site * HW_SITE_SPACES + space]: a slot a device, NULL until needed */
    hw_arena *arena;
} worker;

struct launch {
    launch *next;
    hw_model *model;
    pthread_t thread; /* that carries it out */
    const hw_count_table *table;
    uint32_t workers;
    worker *worker;
    sums sums;
    place_count *insts;
    slot **cells;
    uint32_t bank_width;
    uint32_t grid[3], block[3], dynamic, fixed, local, registers;
    hw_status status;
    bool ended;
    cache_sim *cache; /* NULL: not simulated */
    hw_arena *arena;
};

struct hw_model {
    hw_arena *arena;
    hw_model_share *share;  /* NULL: in this process's own memory */
    bool torn;              /* the process was lost while it added a launch */
    hw_model_progress lost; /* what was then under way */
    pthread_mutex_t lock;
    const hw_device *devices[HW_MODEL_DEVICES_MAX];
    struct {
        const char *name, *load;
    } names[HW_MODEL_DEVICES_MAX]; /* of the devices, in the arena */
    uint32_t n;
    hw_model_level level;
    const char *program;
    hw_listener listener;
    _Atomic uint32_t bank_width; /* of launches that begin now; 0: the device's */
    launch *under_way;           /* begun and not yet given to launch_done */
    entry *first, *last;
    uint64_t launches;
    uint32_t groups, ranges;
    uint64_t insts; /* of all entries */
};

/* ---- sums.c ---- */
sums hw_model_sums_new(hw_arena *a, const hw_model *m);
void hw_model_sums_add(const hw_model *m, sums *into, const sums *from);
bool hw_model_sums_equal(const hw_model *m, const sums *a, const sums *b);
/* What a launch's counters say: totals, and each instruction's. */
void hw_model_count(launch *l, const hw_counters *c);
/* HW_TRAFFIC_* of an access of this kind in this space; -1: none is counted. */
int hw_model_traffic(hw_site_space space, const hw_site *s);

/* ---- ids.c ---- */
typedef struct numbering {
    uint64_t hosts; /* numbers given by the host */
    id_list nested; /* ids of launches by kernels, ascending */
} numbering;
numbering hw_model_numbering(hw_arena *a, const hw_model *m);
uint64_t hw_model_number(const numbering *n, uint64_t id);             /* in the file */
id_list hw_model_ids(hw_arena *a, const numbering *n, const group *g); /* ranges for the file */
bool hw_model_ids_extend(hw_arena *a, id_list *ranges, uint64_t id);   /* true: by a new range */

/* ---- listen.c ---- */
void hw_model_listen(hw_model *m); /* fills m->listener */
void hw_model_cells_add(hw_arena *a, const hw_model *m, const hw_count_table *table, slot **into,
                        slot *const *from);

/* ---- rules.c ---- */
/* An access of `times` equal ones by the rules of all devices, added to slots[0 .. devices - 1]. */
void hw_model_rules(const hw_model *m, uint32_t bank_width, const hw_access_told *t,
                    const hw_site *s, slot *slots);

/* Whether the site's accesses to a space need no more than a gist, on all devices; *wants: MANY_*. */
bool hw_model_gist_does(const hw_model *m, uint32_t bank_width, hw_site_space space,
                        const hw_site *s, unsigned *wants);
/* What the gist says by the rules of all devices, added to slots. */
void hw_model_gist_settle(const hw_model *m, uint32_t bank_width, hw_site_space space,
                          const hw_site *s, slot *slots);
/* Takes in what is recent. */
void hw_model_gist_gather(gist *g);
/* Whether the lanes lie on one line, the same as before. */
void hw_model_see_stride(const hw_access_told *t, slot *s);

/* ---- registers.c ---- */
/* live: 32-bit values of a lane that live at once; local: bytes the PTX asks for. */
registers hw_model_registers(const hw_device *d, const hw_model_launch *i, uint32_t device,
                             uint32_t live, uint32_t local);

/* ---- share.c ---- */
hw_arena *hw_model_share_take(const char *name, hw_model_share **out);
void hw_model_share_ready(hw_model *m);
void hw_model_share_begin(hw_model *m, const char *kernel, uint64_t blocks);
void hw_model_share_block(hw_model *m);
void hw_model_share_end(hw_model *m);
void hw_model_share_changing(hw_model *m, bool changing);

/* Sectors of a texture or surface access: the same for every device. */
void hw_model_texels(const hw_model *m, const hw_access_told *t, slot *slots);

/* ---- levels.c ---- */
cache_sim *hw_model_cache_new(const hw_model *m, const hw_counters *c, uint32_t workers);
void hw_model_cache_access(cache_sim *c, uint32_t worker, const hw_access_told *t,
                           const hw_site *s);
void hw_model_cache_block(cache_sim *c, uint32_t worker, uint64_t block); /* a block ended */
/* The launch ended: add the counts, and free c. */
void hw_model_cache_end(cache_sim *c, sums *into);

#endif
