/* SPDX-License-Identifier: Apache-2.0
 * Bulk copies of boxes of tensors, and fields of tensor maps replaced (PTX ISA 9.7.9.27, 9.7.9.28). */
#include "count.h"
#include "mbarrier.h"

enum { PIECE = 16, BOX_ALIGN = 128, MAP_ALIGN = 64, GATHERED = 4, FIRST_COORDINATE = 4 };

typedef struct copy {
    hw_frame *f;
    hw_tensor_map map;
    uint64_t aux, shared, barrier;
    uint32_t mask, ncoords;
    int32_t c[5];        /* as given */
    int32_t offset[3];   /* im2col: of the elements from the filter's base */
    hw_touched *touched; /* not NULL: only look where global memory is touched */
} copy;

static hw_tensor_mode mode_of(const copy *t)
{
    return (hw_tensor_mode)(t->aux >> HW_TENSOR_MODE & 15);
}

/* ---- one element ---- */

typedef struct
    line { /* of elements side by side in memory, within shared memory in pieces of 16 bytes */
    uint64_t global; /* 0: outside */
    uint64_t shared; /* offset in the box */
    uint32_t bytes;
} line;

static uint8_t *place(const copy *t, uint64_t box, uint64_t offset)
{
    uint64_t base = (uint64_t)(uintptr_t)t->f->shared, at = box - base + offset;
    return (uint8_t *)(uintptr_t)(base + hw_tensor_swizzled(t->map.swizzle, at));
}

/* Is a unit packed in global memory and has a gap, or gaps, in shared memory? */
static bool apart(const copy *t)
{
    return hw_tensor_packed_bytes(t->map.type) != hw_tensor_element_bytes(t->map.type);
}

static void fill(const copy *t, uint8_t *to, uint32_t bytes)
{
    uint64_t v = hw_tensor_outside(&t->map);
    unsigned size = hw_tensor_element_bytes(t->map.type);
    if (apart(t)) {
        memset(to, 0, hw_tensor_packed_bytes(t->map.type));
        return;
    }
    for (uint32_t i = 0; i < bytes; i += size)
        memcpy(to + i, &v, size);
}

static const struct {
    uint8_t type, fadd;
} reduced_types[HW_TENSOR_TYPES] = {
    [HW_TENSOR_U32] = { HW_T_I32 },        [HW_TENSOR_S32] = { HW_T_I32 },
    [HW_TENSOR_U64] = { HW_T_I64 },        [HW_TENSOR_S64] = { HW_T_I64 },
    [HW_TENSOR_F16] = { HW_T_F16, 1 },     [HW_TENSOR_F32] = { HW_T_F32, 1 },
    [HW_TENSOR_F64] = { HW_T_F64, 1 },     [HW_TENSOR_BF16] = { HW_T_BF16, 1 },
    [HW_TENSOR_F32_FTZ] = { HW_T_F32, 1 },
};

/* The operation as said, unsigned, for the map's type. */
static hw_wir_atom operation(const copy *t)
{
    hw_wir_atom op = (hw_wir_atom)(t->aux >> HW_BULK_OPERATION & 255);
    bool is_signed = t->map.type == HW_TENSOR_S32 || t->map.type == HW_TENSOR_S64;
    switch (op) {
    case HW_ATOM_MIN_U:
        return reduced_types[t->map.type].fadd ? HW_ATOM_FMIN : is_signed ? HW_ATOM_MIN_S : op;
    case HW_ATOM_MAX_U:
        return reduced_types[t->map.type].fadd ? HW_ATOM_FMAX : is_signed ? HW_ATOM_MAX_S : op;
    case HW_ATOM_ADD:
        return reduced_types[t->map.type].fadd ? HW_ATOM_FADD : op;
    default:
        return op;
    }
}

/* One unit; what is in gaps of shared memory stays. */
static void move_apart(const copy *t, uint8_t *memory, uint8_t *shared)
{
    unsigned packed = hw_tensor_packed_bytes(t->map.type);
    if (!(t->aux & HW_BULK_STORE)) {
        memcpy(shared, memory, packed);
        return;
    }
    if ((t->aux & HW_BULK_REDUCE) || t->map.type != HW_TENSOR_U6_APART)
        hw_raise(t->f, HW_F_ILLEGAL_INSTRUCTION, t->f->fault_loc,
                 "this copy is not defined for the tensor's elements");
    for (unsigned i = 0; i < PIECE; i += 4) { /* four values of 6 bits: 3 bytes */
        uint32_t four = 0;
        for (unsigned k = 0; k < 4; k++)
            four |= (shared[i + k] & UINT32_C(63)) << 6 * k;
        memcpy(memory + i / 4 * 3, &four, 3);
    }
}

static void move_piece(const copy *t, uint64_t global, uint8_t *shared, uint32_t bytes)
{
    uint8_t *memory = (uint8_t *)(uintptr_t)global;
    if (apart(t)) {
        move_apart(t, memory, shared);
    } else if (!(t->aux & HW_BULK_STORE)) {
        memcpy(shared, memory, bytes);
    } else if (!(t->aux & HW_BULK_REDUCE)) {
        memcpy(memory, shared, bytes);
    } else if (!hw_reduce(operation(t), (hw_wir_type)reduced_types[t->map.type].type, memory,
                          shared, bytes)) {
        hw_raise(t->f, HW_F_ILLEGAL_INSTRUCTION, t->f->fault_loc,
                 "this reduction is not defined for the tensor's elements");
    }
}

/* ---- rows: what is inside the tensor is one run of elements ---- */

typedef struct run { /* elements of a row, those inside; from == to: none */
    int64_t from, to;
    uint64_t global; /* address of `from` */
} run;

static run run_of(const copy *t, const int64_t *c)
{
    unsigned size = hw_tensor_packed_bytes(t->map.type);
    int64_t n = t->map.box[0], to = (int64_t)t->map.last[0] + 1 - c[0];
    run r = { c[0] < 0 ? -c[0] : 0, to < n ? to : n, 0 };
    if (r.from >= r.to)
        return (run){ n, n, 0 };
    int64_t first[HW_TENSOR_DIMS];
    memcpy(first, c, sizeof first);
    first[0] += r.from;
    r.global = hw_tensor_element(&t->map, first);
    hw_need_memory(t->f, r.global, (uint64_t)(r.to - r.from) * size, size & -size);
    return r;
}

/* Where a piece that begins with element i ends: at 16 bytes, and where inside and outside meet. */
static int64_t piece_end(const copy *t, const run *r, int64_t i)
{
    int64_t size = hw_tensor_element_bytes(t->map.type), n = t->map.box[0];
    int64_t end = (i * size / PIECE + 1) * PIECE / size;
    if (i < r->from && end > r->from)
        end = r->from;
    else if (i < r->to && end > r->to)
        end = r->to;
    return end < n ? end : n;
}

/* c: of the row's first element. */
static void move_row(const copy *t, uint64_t box, uint64_t offset, const int64_t *c, bool inside)
{
    unsigned size = hw_tensor_element_bytes(t->map.type),
             packed = hw_tensor_packed_bytes(t->map.type);
    int64_t n = t->map.box[0];
    run r = inside ? run_of(t, c) : (run){ n, n, 0 };
    if (t->touched) {
        hw_count_run(t->touched, r.global, (uint64_t)(r.to - r.from) * packed);
        return;
    }
    for (int64_t i = 0, end; i < n; i = end) {
        end = piece_end(t, &r, i);
        uint8_t *at = place(t, box, offset + (uint64_t)i * size);
        uint32_t bytes = (uint32_t)(end - i) * size;
        if (i >= r.from && i < r.to)
            move_piece(t, r.global + (uint64_t)(i - r.from) * packed, at, bytes);
        else if (!(t->aux & HW_BULK_STORE))
            fill(t, at, bytes);
    }
}

static bool row_inside(const hw_tensor_map *m, const int64_t *c)
{
    for (unsigned d = 1; d < m->rank; d++)
        if (c[d] < 0 || c[d] > m->last[d])
            return false;
    return true;
}

static void move_tile(const copy *t, uint64_t box)
{
    const hw_tensor_map *m = &t->map;
    uint64_t row = (uint64_t)m->box[0] * hw_tensor_element_bytes(m->type), rows = 1;
    for (unsigned d = 1; d < m->rank; d++)
        rows *= hw_tensor_box(m, d);
    for (uint64_t r = 0; r < rows; r++) {
        int64_t c[HW_TENSOR_DIMS] = { t->c[0] };
        uint64_t rest = r;
        for (unsigned d = 1; d < m->rank; d++) {
            c[d] = t->c[d] + (int64_t)(rest % hw_tensor_box(m, d)) * m->step[d];
            rest /= hw_tensor_box(m, d);
        }
        move_row(t, box, r * row, c, row_inside(m, c));
    }
}

/* Four rows, each by its own number. */
static void move_rows(const copy *t, uint64_t box)
{
    uint64_t row = (uint64_t)t->map.box[0] * hw_tensor_element_bytes(t->map.type);
    for (unsigned r = 0; r < GATHERED; r++) {
        int64_t c[HW_TENSOR_DIMS] = { t->c[0], t->c[1 + r] };
        move_row(t, box, r * row, c, row_inside(&t->map, c));
    }
}

/* Pixels, the filter's base going along the width, the height, the depth between the corners, then to the next image. */
static void move_pixels(const copy *t, uint64_t box)
{
    const hw_tensor_map *m = &t->map;
    uint64_t row = (uint64_t)m->box[0] * hw_tensor_element_bytes(m->type);
    unsigned image = m->rank - 1u;
    int64_t base[HW_TENSOR_DIMS];
    for (unsigned d = 0; d < m->rank; d++)
        base[d] = t->c[d];
    for (unsigned p = 0; p < m->pixels; p++) {
        int64_t c[HW_TENSOR_DIMS];
        for (unsigned d = 0; d < m->rank; d++)
            c[d] = base[d] + (d > 0 && d < image ? t->offset[d - 1] : 0);
        move_row(t, box, p * row, c, row_inside(m, c));
        unsigned d = 1;
        for (; d < image; d++) {
            base[d] += m->step[d];
            if (base[d] <= (int64_t)m->last[d] + m->upper[d - 1])
                break;
            base[d] = m->lower[d - 1];
        }
        if (d == image)
            base[d]++;
    }
}

static uint64_t bytes_of(const copy *t)
{
    bool gathers = mode_of(t) == HW_TENSOR_GATHER;
    uint64_t row = (uint64_t)t->map.box[0] * hw_tensor_element_bytes(t->map.type);
    return gathers ? row * GATHERED : hw_tensor_box_bytes(&t->map);
}

static void move_all(const copy *t, uint64_t box)
{
    if (mode_of(t) == HW_TENSOR_GATHER)
        move_rows(t, box);
    else if (t->map.im2col)
        move_pixels(t, box);
    else
        move_tile(t, box);
}

static void move_box(const copy *t, uint64_t box)
{
    hw_need_memory(t->f, box, bytes_of(t), BOX_ALIGN);
    move_all(t, box);
}

/* Elements outside the tensor are not read; a multicast reads once. */
static void count(copy *t, uint32_t lane)
{
    hw_touched touched = { 0 };
    t->touched = &touched;
    move_all(t, t->shared);
    hw_count_bulk(t->f, lane, t->aux & HW_BULK_STORE, &touched);
}

/* ---- a copy ---- */

static void take_map(copy *t, uint64_t at)
{
    hw_need_memory(t->f, at, sizeof t->map, MAP_ALIGN);
    memcpy(&t->map, (const void *)(uintptr_t)at, sizeof t->map);
    bool gathers = mode_of(t) == HW_TENSOR_GATHER;
    if (!hw_tensor_map_valid(&t->map))
        hw_raise(t->f, HW_F_ILLEGAL_INSTRUCTION, t->f->fault_loc, "0x%llx is no valid tensor map",
                 (unsigned long long)at);
    if (t->map.rank != (gathers ? 2 : t->ncoords))
        hw_raise(t->f, HW_F_ILLEGAL_INSTRUCTION, t->f->fault_loc,
                 "a copy with %u coordinates of a tensor of %u dimensions", t->ncoords,
                 t->map.rank);
}

/* Elements of 4 and 6 bits: from here on units. Those with gaps begin at whole boxes. */
static void take_units(copy *t)
{
    int32_t whole = apart(t) ? t->map.box[0] : (int32_t)hw_tensor_unit(t->map.type);
    if (hw_tensor_unit(t->map.type) == 1)
        return;
    if (t->c[0] % whole)
        hw_raise(t->f, HW_F_ILLEGAL_INSTRUCTION, t->f->fault_loc,
                 "coordinate %d, which is no multiple of %d, of a tensor of such elements", t->c[0],
                 whole);
    t->c[0] /= (int32_t)hw_tensor_unit(t->map.type);
    hw_tensor_in_units(&t->map);
}

/* After the coordinates, in im2col mode, the offsets of all dimensions but channels and images. */
static void take_offsets(copy *t, const hw_lane_arrays *io, uint32_t lane)
{
    bool im2col = mode_of(t) == HW_TENSOR_IM2COL;
    if (im2col != t->map.im2col)
        hw_raise(t->f, HW_F_ILLEGAL_INSTRUCTION, t->f->fault_loc,
                 "a copy in %s mode with a tensor map of %s mode", im2col ? "im2col" : "tile",
                 t->map.im2col ? "im2col" : "tile");
    for (uint32_t d = 0; im2col && d < t->ncoords - 2; d++)
        t->offset[d] = ((const int32_t *)io->src[FIRST_COORDINATE + t->ncoords + d])[lane];
}

/* Whose barrier hears of what block `rank` is sent (PTX ISA, cp.async.bulk.tensor, .cta_group). */
static uint32_t told_block(const copy *t, uint32_t rank)
{
    uint64_t own = (t->barrier - t->f->cluster_base) >> HW_WINDOW_BITS;
    return t->aux & HW_BULK_PAIRS ? (rank & ~UINT32_C(1)) | (own & 1) : rank;
}

static void carry_out(const copy *t)
{
    uint32_t blocks = t->f->cluster[0] * t->f->cluster[1] * t->f->cluster[2];
    uint32_t bytes = (uint32_t)(bytes_of(t) / hw_tensor_element_bytes(t->map.type) *
                                hw_tensor_packed_bytes(t->map.type)); /* gaps do not count */
    if (!(t->aux & HW_BULK_MULTICAST)) {
        move_box(t, t->shared);
        if (t->aux & HW_BULK_MBARRIER)
            hw_mbarrier_complete_tx(t->f, t->barrier, bytes);
        return;
    }
    for (uint32_t left = t->mask; left; left &= left - 1) {
        uint32_t rank = (uint32_t)__builtin_ctz(left);
        if (rank >= blocks)
            hw_raise(t->f, HW_F_ILLEGAL_ADDRESS, t->f->fault_loc,
                     "a copy to block %u of a cluster of %u blocks", rank, blocks);
        move_box(t, hw_in_block(t->f, t->shared, rank));
        hw_mbarrier_complete_tx(t->f, hw_in_block(t->f, t->barrier, told_block(t, rank)), bytes);
    }
}

void hw_h_tensor(hw_frame *f, uint32_t lanes, const hw_lane_arrays *io, uint64_t aux)
{
    for (uint32_t left = lanes; left; left &= left - 1) {
        uint32_t l = (uint32_t)__builtin_ctz(left);
        f->fault_lanes = 1u << l;
        copy t = { .f = f, .aux = aux, .ncoords = (uint32_t)(aux >> HW_TENSOR_DIMENSIONS & 15) };
        t.shared = ((const uint64_t *)io->src[0])[l];
        t.barrier = ((const uint64_t *)io->src[2])[l];
        t.mask = ((const uint32_t *)io->src[3])[l];
        for (uint32_t d = 0; d < t.ncoords; d++)
            t.c[d] = ((const int32_t *)io->src[FIRST_COORDINATE + d])[l];
        take_map(&t, ((const uint64_t *)io->src[1])[l]);
        take_offsets(&t, io, l);
        take_units(&t);
        carry_out(&t);
        if (f->counters)
            count(&t, l);
    }
    f->fault_lanes = 0;
}

/* ---- fields ---- */

/* PTX numbers the types and swizzles in its own way (PTX ISA, "tensormap.replace"). */
static const uint8_t type_numbers[] = { HW_TENSOR_U8,       HW_TENSOR_U16,  HW_TENSOR_U32,
                                        HW_TENSOR_S32,      HW_TENSOR_U64,  HW_TENSOR_S64,
                                        HW_TENSOR_F16,      HW_TENSOR_F32,  HW_TENSOR_F32_FTZ,
                                        HW_TENSOR_F64,      HW_TENSOR_BF16, HW_TENSOR_TF32,
                                        HW_TENSOR_TF32_FTZ, HW_TENSOR_U4,   HW_TENSOR_U4_APART,
                                        HW_TENSOR_U6_APART };
static const uint8_t atomicities[] = { HW_SWIZZLE_128, HW_SWIZZLE_128_ATOM_32, HW_SWIZZLES,
                                       HW_SWIZZLE_128_ATOM_64 };

static bool replace_word(hw_tensor_map *m, uint64_t field, uint64_t v)
{
    switch (field) {
    case HW_TENSOR_FIELD_ADDRESS:
        m->address = v;
        return true;
    case HW_TENSOR_FIELD_RANK:
        m->rank = (uint8_t)(v + 1);
        return v < HW_TENSOR_DIMS;
    case HW_TENSOR_FIELD_TYPE:
        m->type = v < HW_COUNTOF(type_numbers) ? type_numbers[v] : 0;
        return v < HW_COUNTOF(type_numbers);
    case HW_TENSOR_FIELD_INTERLEAVE:
        return v == 0;
    case HW_TENSOR_FIELD_SWIZZLE:
        m->swizzle = (uint8_t)v;
        return v <= HW_SWIZZLE_128;
    case HW_TENSOR_FIELD_ATOMICITY:
        if (m->swizzle >= HW_SWIZZLE_128 && v < HW_COUNTOF(atomicities))
            m->swizzle = atomicities[v];
        return v < HW_COUNTOF(atomicities) && m->swizzle < HW_SWIZZLES;
    default:
        m->nan = v != 0;
        return v <= 1;
    }
}

static bool replace_of_dimension(hw_tensor_map *m, uint64_t field, uint32_t d, uint64_t v)
{
    if (d >= HW_TENSOR_DIMS)
        return false;
    switch (field) {
    case HW_TENSOR_FIELD_BOX:
        m->box[d] = (uint16_t)v;
        return v >= 1 && v <= 256;
    case HW_TENSOR_FIELD_SIZE:
        m->last[d] = (uint32_t)v - 1;
        return v >= 1;
    case HW_TENSOR_FIELD_STRIDE:
        if (d < HW_TENSOR_DIMS - 1)
            m->stride[d] = v;
        return d < HW_TENSOR_DIMS - 1;
    default:
        m->step[d] = d ? (uint8_t)v : 1;
        return v >= 1 && v <= 8;
    }
}

void hw_h_tensormap(hw_frame *f, uint32_t lanes, const hw_lane_arrays *io, uint64_t aux)
{
    for (uint32_t left = lanes; left; left &= left - 1) {
        uint32_t l = (uint32_t)__builtin_ctz(left);
        f->fault_lanes = 1u << l;
        uint64_t at = ((const uint64_t *)io->src[0])[l], v = ((const uint64_t *)io->src[2])[l];
        uint32_t d = ((const uint32_t *)io->src[1])[l];
        hw_need_memory(f, at, sizeof(hw_tensor_map), MAP_ALIGN);
        hw_tensor_map *m = (hw_tensor_map *)(uintptr_t)at;
        if (!m->magic) /* a map that a kernel makes begins as zeros */
            m->magic = HW_TENSOR_MAGIC;
        bool ok = aux >= HW_TENSOR_FIELD_BOX ? replace_of_dimension(m, aux, d, v)
                                             : replace_word(m, aux, v);
        if (!ok)
            hw_raise(f, HW_F_ILLEGAL_INSTRUCTION, f->fault_loc,
                     "tensormap.replace with %llu, which is not supported there",
                     (unsigned long long)v);
    }
    f->fault_lanes = 0;
}
