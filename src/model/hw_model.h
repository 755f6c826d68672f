/* SPDX-License-Identifier: Apache-2.0
 *
 * model: what chosen devices would have done with the launches of a run, and the profile file that
 * says so.
 *
 * Nouns
 *   model    a listener and its sums: for each kernel and shape of launch what was executed, and for
 * each device what its rules make of the accesses. launch   one launch that ended, well or not.
 * level    how much is listened to. Counting costs least; caches listens to every address.
 * profile file   one JSON value, docs/profile.md; room report makes metrics of it.
 *
 * Rules: devices are borrowed and outlive the model. hw_model_launch_done and hw_model_write may be
 * called by any thread (one lock). The file is written to a temporary beside it and renamed, so a
 * reader never sees half of one; write as often as wished. The sums do not depend on the number of
 * workers or the order in which they finish.
 */
#ifndef HW_MODEL_H
#define HW_MODEL_H

#include "hw_base.h"
#include "hw_device.h"
#include "hw_event.h"

typedef struct hw_model hw_model;

#define HW_MODEL_DEVICES_MAX 8
#define HW_MODEL_SCHEMA      2 /* version of the profile file */

/* ---- what is counted: the rows of counts.def ---- */
enum {
#define TOTAL(name, unit, sentence) HW_TOTAL_##name,
#include "counts.def"
    HW_TOTALS
};
enum {
#define TRAFFIC(name, word, sentence) HW_TRAFFIC_##name,
#include "counts.def"
    HW_TRAFFICS
};
enum {
#define FIELD(name, unit, sentence) HW_FIELD_##name,
#include "counts.def"
    HW_FIELDS
};
enum {
#define CACHE(name, unit, sentence) HW_CACHE_##name,
#include "counts.def"
    HW_CACHES
};
typedef struct hw_count_name {
    const char *name, *unit, *sentence; /* of a traffic the unit is its word: "global load" */
} hw_count_name;
extern const hw_count_name hw_total_names[HW_TOTALS], hw_traffic_names[HW_TRAFFICS],
    hw_field_names[HW_FIELDS], hw_cache_names[HW_CACHES];

/* ---- the listener ---- */

typedef enum hw_model_level {
    HW_MODEL_COUNT,  /* counters; addresses only where no pattern is known */
    HW_MODEL_LINES,  /* the same by line */
    HW_MODEL_CACHES, /* every access, through simulated caches */
} hw_model_level;

/* n <= HW_MODEL_DEVICES_MAX devices whose rules are evaluated; the first is the one to report on
 * where only one fits. program: how it was started, for the heading; may be NULL. */
/* share: a file of hw_model_share_make that the model is kept in, or NULL. */
hw_model *hw_model_new(const hw_device *const *devices, uint32_t n, hw_model_level level,
                       const char *program, const char *share);
void hw_model_free(hw_model *m);
/* What exec is given for a launch; valid until the model is freed. */
const hw_listener *hw_model_listener(hw_model *m);

/* Launches that begin from now run with banks of so many bytes, where a device has both 4 and 8; 0:
 * the device's default. */
void hw_model_bank_width(hw_model *m, uint32_t bytes);

/* What machine code for a device, or the nearest there is, says of a kernel. */
typedef struct hw_model_machine {
    uint32_t arch;      /* sm_ number of the code; 0: there is none */
    uint32_t registers; /* of a thread */
    uint32_t local_bytes;
} hw_model_machine;

/* Where a kernel's number of registers on a device comes from. */
typedef enum hw_model_source {
    HW_MODEL_ESTIMATE, /* 32-bit values of the PTX that live at once */
    HW_MODEL_BOUND,    /* the estimate, held down by .maxnreg, launch bounds or the device */
    HW_MODEL_IMAGE,    /* machine code in the program */
} hw_model_source;
extern const char *const hw_model_source_names[]; /* in the profile file */

/* In the id of a launch by a kernel: this bit, the number of the host's launch it comes from shifted by
 * HW_MODEL_ROOT, and its own number there. */
#define HW_MODEL_NESTED (UINT64_C(1) << 63)
enum { HW_MODEL_ROOT = 32 };

typedef struct hw_model_launch {
    uint64_t id; /* its number, in the order in which the program asked for launches; or nested */
    const char *kernel; /* as in the PTX (mangled) */
    uint32_t grid[3], block[3];
    uint32_t dynamic_shared_bytes, static_shared_bytes;
    uint32_t local_bytes;                           /* of a thread */
    hw_model_machine machine[HW_MODEL_DEVICES_MAX]; /* for each of the model's devices */
    uint32_t maxnreg, max_threads, min_blocks;      /* the kernel's bounds; 0: none */
    uint32_t context, stream;
    hw_str ptx;       /* the text that hw_wir_loc.ptx_line counts in; may be empty */
    hw_status status; /* HW_OK, or how it ended */
} hw_model_launch;

/* Add a launch that ended: what the listener heard of it belongs to it. On the thread that carried
 * it out (hw_exec_launch), right after; also for launches that never began. Everything is copied.
 */
void hw_model_launch_done(hw_model *m, const hw_model_launch *l);
/* "transpose<32>" of "_Z9transposeILi32EEvPfS0_"; in a. */
const char *hw_model_short_name(hw_arena *a, const char *mangled);
/* Write the profile file. complete: the program ended by itself. */
hw_status hw_model_write(hw_model *m, const char *path, bool complete, hw_diag *d);

/* ---- a model that outlives its program (share.c) ---- */

/* What the model heard is safe without writing it, however the program ends. */
bool hw_model_is_kept(const hw_model *m);
/* The program has written the file itself, for good. */
void hw_model_written(hw_model *m);

typedef struct hw_model_share hw_model_share;
typedef struct hw_model_progress {
    uint64_t launches, blocks;        /* that ended */
    char kernel[64];                  /* under way, "": none */
    uint64_t blocks_here, blocks_all; /* of what is under way: ended, all */
    double seconds_left;              /* an estimate; 0: none */
} hw_model_progress;
/* Who starts a program makes a file in memory; its name is that of the descriptor in /proc. -1: it
 * cannot be had. */
int hw_model_share_make(void);
const hw_model_share *hw_model_share_watch(int fd); /* NULL: no memory */
hw_model_progress hw_model_share_progress(const hw_model_share *s);
/* Write the profile of a program that ended and has not written it. The file may be broken in any
 * way: do it in a process that can be lost. */
hw_status hw_model_share_write(int fd, const char *path, bool complete, hw_diag *d);

#endif
