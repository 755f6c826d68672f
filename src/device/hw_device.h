/* SPDX-License-Identifier: Apache-2.0
 *
 * device: what a GPU is, as data; and the arithmetic on it.
 *
 * Nouns
 *   device     one device file made a struct. Its members are the rows of device.def:
 * dev->occupancy.max_warps_per_sm is the key "max_warps_per_sm" of the group "occupancy". Every
 * number's unit is in its row. A key that is null in the file (does not apply, not published) is 0
 * here. preset     a named set of latencies; a device has one and may have alternatives. occupancy,
 * banks, coalescing   see halfwarp/device.h, the part of this header that is installed.
 *
 * Rules: a device is immutable after loading and may be read by any number of threads. hw_occupancy
 * and the access rules allocate nothing and cannot fail except as said. Nothing here knows a
 * device's name.
 */
#ifndef HW_DEVICE_H
#define HW_DEVICE_H

#include "hw_base.h"
#include "halfwarp/device.h"

#define HW_DEVICE_DEFAULT     "h100" /* the model taken when none is asked for */
#define HW_DEVICE_LIST_MAX    16
#define HW_DEVICE_PRESETS_MAX 6
#define HW_RATE_SEVERAL       (-1.0) /* a throughput: done in several instructions */

/* ---- the words of enumerated keys: X(constant, word in the file) ---- */
/* clang-format off */
#define HW_DEVICE_ENUM_vendor(X) X(HW_VENDOR_NVIDIA, "NVIDIA") X(HW_VENDOR_AMD, "AMD")
#define HW_DEVICE_ENUM_scope(X) X(HW_ALLOC_BLOCK, "block") X(HW_ALLOC_WARP, "warp")
#define HW_DEVICE_ENUM_config(X) \
    X(HW_CONFIG_FIXED, "fixed") X(HW_CONFIG_CACHE, "cache-preference") X(HW_CONFIG_CARVEOUT, "carveout")
#define HW_DEVICE_ENUM_bank_rule(X)                                             \
    X(HW_BANKS16_HALFWARP, "banks16_halfwarp") X(HW_BANKS32_WARP, "banks32_warp") \
    X(HW_BANKS32_DUAL_MODE, "banks32_dual_mode") X(HW_GCN_BANKS32_HALFWAVE, "gcn_banks32_halfwave")
#define HW_DEVICE_ENUM_conflict(X) X(HW_CONFLICT_WORDS, "distinct_dwords") X(HW_CONFLICT_THREADS, "threads")
#define HW_DEVICE_ENUM_global_rule(X)                                                                   \
    X(HW_STRICT_HALFWARP, "strict_halfwarp") X(HW_SEGMENT_SHRINK_HALFWARP, "segment_shrink_halfwarp")     \
    X(HW_LINES128_OR_SECTORS32, "lines128_or_sectors32") X(HW_SECTORS32_SPLIT8, "sectors32_split8")       \
    X(HW_SECTORS32_WARP, "sectors32_warp") X(HW_GCN_QUADS_64B, "gcn_quads_64B")
#define HW_DEVICE_ENUM_constant_rule(X) \
    X(HW_CONSTANT_WARP, "warp_distinct") X(HW_CONSTANT_HALFWARP, "halfwarp_distinct") X(HW_CONSTANT_SCALAR, "scalar_cache")
#define HW_DEVICE_ENUM_profile(X) X(HW_NUM_CC1X, "cc1x") X(HW_NUM_CC2PLUS, "cc2plus") X(HW_NUM_GCN, "gcn")
/* clang-format on */
#define HW_ENUM_CONSTANT(constant, word) constant,
typedef enum { HW_DEVICE_ENUM_vendor(HW_ENUM_CONSTANT) } hw_vendor;
typedef enum { HW_DEVICE_ENUM_scope(HW_ENUM_CONSTANT) } hw_scope;
typedef enum { HW_DEVICE_ENUM_config(HW_ENUM_CONSTANT) } hw_config;
typedef enum { HW_DEVICE_ENUM_bank_rule(HW_ENUM_CONSTANT) } hw_bank_rule;
typedef enum { HW_DEVICE_ENUM_conflict(HW_ENUM_CONSTANT) } hw_conflict;
typedef enum { HW_DEVICE_ENUM_global_rule(HW_ENUM_CONSTANT) } hw_global_rule;
typedef enum { HW_DEVICE_ENUM_constant_rule(HW_ENUM_CONSTANT) } hw_constant_rule;
typedef enum { HW_DEVICE_ENUM_profile(HW_ENUM_CONSTANT) } hw_profile;

/* ---- the device ---- */
typedef struct hw_list {
    uint32_t len, v[HW_DEVICE_LIST_MAX];
} hw_list;

/* One struct a group: struct hw_device_occupancy and so on. */
#define GROUP(group, vendors, sentence) struct hw_device_##group {
#define END(group)                       \
    const char *source;                  \
    const char *note; /* NULL if none */ \
    }                                    \
    ;
#define U32(group, key, lowest, highest, null, unit, sentence)           uint32_t key;
#define U64(group, key, lowest, highest, null, unit, sentence)           uint64_t key;
#define POW2(group, key, lowest, highest, unit, sentence)                uint32_t key;
#define REAL(group, key, lowest, highest, null, unit, sentence)          double key;
#define RATE(group, key, sentence)                                       double key;
#define BOOL(group, key, sentence)                                       bool key;
#define TEXT(group, key, null, sentence)                                 const char *key;
#define ENUM(group, key, table, sentence)                                hw_##table key;
#define LIST(group, key, longest, lowest, highest, null, unit, sentence) hw_list key;
#include "device.def"

struct hw_device {
    const char *name, *title, *architecture, *path; /* path: the file, or "built in" */
    const char *note;                               /* NULL if none */
    hw_vendor vendor;
    uint32_t alias_count;
    const char *const *aliases;
#define GROUP(group, vendors, sentence) struct hw_device_##group group;
#define END(group)
#define U32(group, key, lowest, highest, null, unit, sentence)
#define U64(group, key, lowest, highest, null, unit, sentence)
#define POW2(group, key, lowest, highest, unit, sentence)
#define REAL(group, key, lowest, highest, null, unit, sentence)
#define RATE(group, key, sentence)
#define BOOL(group, key, sentence)
#define TEXT(group, key, null, sentence)
#define ENUM(group, key, table, sentence)
#define LIST(group, key, longest, lowest, highest, null, unit, sentence)
#include "device.def"
    uint32_t preset_count; /* further latency presets */
    struct hw_device_latency presets[HW_DEVICE_PRESETS_MAX];
};

/* A device by its name or an alias (folders of $HALFWARP_DEVICE_PATH first, then the devices built
 * in), or by the path of a file (anything with '/' or ending in ".json"). NULL or "" is
 * HW_DEVICE_DEFAULT. A mistake in a file is HW_E_CORRUPT or HW_E_RANGE with key, line and range in
 * d; an unknown name is HW_E_NOT_FOUND with the nearest one. The device lives in a. */
hw_status hw_device_load(hw_arena *a, const char *name_or_path, const hw_device **out, hw_diag *d);
/* The same from text; path is for messages and kept. */
hw_status hw_device_parse(hw_arena *a, hw_str json, const char *path, const hw_device **out,
                          hw_diag *d);
/* Names of all devices that hw_device_load finds, sorted; the array lives in a. */
size_t hw_device_list(hw_arena *a, const char *const **names);

/* A CUdevice_attribute by number. HW_E_INVALID: no such attribute, or the device is not NVIDIA's.
 */
hw_status hw_device_attribute(const hw_device *dev, int attribute, int *value);
/* The enumerator's name without its prefix ("WARP_SIZE"), or NULL. */
const char *hw_device_attribute_name(int attribute);
#define HW_DEVICE_ATTRIBUTE_MAX 148 /* one past the last number known */

/* The latencies of a preset by name (NULL: the device's own); NULL if there is no such preset. */
const struct hw_device_latency *hw_device_latencies(const hw_device *dev, const char *preset);

/* A value of an enumerated key as its word in the file. */
const char *hw_vendor_word(hw_vendor v);

/* ---- fields: the rows of device.def, for whoever shows or compares devices ---- */
typedef enum {
    HW_FIELD_U32,
    HW_FIELD_U64,
    HW_FIELD_REAL,
    HW_FIELD_RATE,
    HW_FIELD_BOOL,
    HW_FIELD_TEXT,
    HW_FIELD_ENUM,
    HW_FIELD_LIST
} hw_field_kind;

typedef struct hw_field {
    const char *group, *key, *unit, *sentence;
    hw_field_kind kind;
    bool nullable, power_of_two;
    double lowest, highest;
    uint32_t longest;         /* LIST */
    const char *const *words; /* ENUM, NULL-terminated */
    size_t offset;            /* in hw_device */
} hw_field;

typedef struct hw_field_group {
    const char *name, *sentence;
    uint32_t vendors;      /* bit 1 << hw_vendor */
    uint32_t first, count; /* of the fields */
    size_t offset, source_offset, note_offset;
} hw_field_group;

const hw_field *hw_device_fields(size_t *count);
const hw_field_group *hw_device_groups(size_t *count);
/* The value as text ("228 KB" is "233472"), NULL for null; in a. */
const char *hw_device_field_text(hw_arena *a, const hw_device *dev, const hw_field *f);

#endif
