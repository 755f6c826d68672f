/* SPDX-License-Identifier: Apache-2.0
 *
 * jit: warp IR made machine code for a whole warp. LLVM lives behind this door and nowhere else.
 *
 *   jit     a cache of code: in memory, and on disk as object files keyed by content, variant,
 * processor and version. source  where the warp IR comes from when it is needed: a key that stands
 * for its content, and a function that builds it. A warm disk cache never builds it and never loads
 * LLVM (it is in a library of its own, libhalfwarp-codegen.so, opened at the first miss). code one
 * kernel variant: the function of a warp and what it needs.
 *
 * Code is made in two tiers: the first soon (the code runs slower), the second well. What they compute
 * and count is the same. hw_jit_get makes the tier that the variant names; hw_jit_get_now and
 * hw_jit_ran together give first-tier code at once and second-tier code, made in the background,
 * when it is worth it.
 *
 * Thread-safe: several host threads may ask at once; one compiles, the others wait.
 */
#ifndef HW_JIT_H
#define HW_JIT_H

#include "hw_base.h"
#include "hw_event.h"
#include "hw_jit_tmem.h"
#include "hw_wir.h"

typedef struct hw_jit hw_jit;

typedef struct hw_jit_source {
    uint8_t key[32];  /* any collision-resistant hash of all that decides the warp IR (text of the
                         linked units, kernel name) */
    const char *name; /* kernel, for messages and profilers */
    hw_status (*build)(void *ctx, hw_arena *a, hw_wir_module **out,
                       hw_diag *d); /* called at a miss, on the asking thread */
    void *ctx;
    /* For code made in the background: a ctx (name included) that stays until it is dropped. NULL:
     * none is made. */
    void *(*keep)(void *ctx);
    void (*drop)(void *kept);
} hw_jit_source;

typedef struct hw_code {
    hw_warp_fn *run;
    uint32_t save_bytes;  /* frame.save: multiple of 64 */
    uint32_t stack_bytes; /* frame.stack for non-recursive calls; 0 if none */
    bool recursive; /* more stack is needed than stack_bytes: exec gives its configured limit */
    uint32_t local_bytes; /* local memory a lane, callees included */
    uint32_t static_shared_bytes;
    uint32_t registers; /* estimate: live 32-bit values a lane */
    uint32_t n_symbols; /* frame.symbols: external ids below */
    const uint32_t *symbols;
    bool suspends;    /* can return anything but DONE */
    bool relays;      /* warps hand on their turn (hw_turns), where frame.next says to whom */
    bool whole_block; /* one call, for warp 0, runs all warps of the block in one frame */
    bool spins;       /* has spin loops */
    bool flush_all;   /* MXCSR: FTZ and DAZ set while this code runs */
    uint32_t n_locs;  /* for messages: loc index -> place */
    const hw_wir_loc *locs;
    const hw_count_table *count; /* if the variant has listeners; else NULL */
    bool best;                   /* no better code can be made */
    uint32_t made_us;            /* how long making it took */
} hw_code;

/* cache_dir: NULL = no disk cache. It is made if missing; a directory that cannot be written is
 * reported once through hw_jit_notice and then not used. */
hw_jit *hw_jit_new(const char *cache_dir);
void hw_jit_free(hw_jit *j);
/* Bytes of the disk cache before the oldest entries go; default 1 GiB. */
void hw_jit_set_limit(hw_jit *j, uint64_t bytes);
/* Generate code for this processor (LLVM's name, e.g. "x86-64-v3") instead of the host.
 * Before the first hw_jit_get. NULL: the host. */
void hw_jit_set_cpu(hw_jit *j, const char *cpu);
/* Who holds a source keeps its code. When the last lets go, the code is freed: by then nothing may run it or ask for
 * it. Code of a source that nobody held stays until j is freed. */
void hw_jit_hold(hw_jit *j, const uint8_t key[32]);
void hw_jit_let_go(hw_jit *j, const uint8_t key[32]);
/* The code for a variant; owned by j until it is freed or its source is let go. */
hw_status hw_jit_get(hw_jit *j, const hw_jit_source *s, const hw_variant *v, const hw_code **out,
                     hw_diag *d);
/* Without waiting for the second tier: its code if it is in memory or on disk, else the first's. */
hw_status hw_jit_get_now(hw_jit *j, const hw_jit_source *s, const hw_variant *v,
                         const hw_code **out, hw_diag *d);
/* c, from hw_jit_get_now for s and v, has run for so many nanoseconds of processor time more. Once
 * it has run for as long as making it took, the second tier is made in the background. True: it is
 * being made or has been. */
bool hw_jit_ran(hw_jit *j, const hw_jit_source *s, const hw_variant *v, const hw_code *c,
                uint64_t ns);
/* The second tier's code in place of c, once it is there; NULL: not yet. */
const hw_code *hw_jit_better(const hw_code *c);
/* The place of the machine instruction at pc, an index of c->locs; 0: unknown. c: from hw_jit_get. */
uint32_t hw_jit_loc(const hw_code *c, uint64_t pc);
/* What was done so far, for tests, reports and `HALFWARP_VERBOSE`. */
typedef struct hw_jit_stats {
    uint64_t compiled, disk_hits, memory_hits, compile_ns, load_ns, disk_errors;
    uint64_t improved, improve_ns; /* of those, in the background */
} hw_jit_stats;
hw_jit_stats hw_jit_get_stats(const hw_jit *j);
/* The process is ending, and a thread that was making code was stopped for good: what it was about to do is never done,
 * so nobody should wait for it. */
bool hw_jit_has_stopped(void);
/* A one-line notice to be shown once (an unusable cache directory), or NULL. Static or owned by j.
 */
const char *hw_jit_notice(hw_jit *j);

/* Arithmetic helpers (FNS, VIDEO, MMA, NARROW ...) of this room, by hw_wir_helper; NULL where exec
 * must supply one. */
extern hw_helper_fn *const hw_jit_helpers[HW_H_COUNT];

#endif
