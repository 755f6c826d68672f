/* SPDX-License-Identifier: Apache-2.0
 * Tensor maps: sizes, places, swizzles. */
#include "hw_mem.h"

static const struct {
    uint8_t bytes;
    bool is_float;
    uint64_t nan;
    uint8_t unit, packed; /* not 0: elements of a unit, its bytes in global memory */
} types[HW_TENSOR_TYPES] = {
    [HW_TENSOR_U8] = { 1, false, 0 },
    [HW_TENSOR_U16] = { 2, false, 0 },
    [HW_TENSOR_U32] = { 4, false, 0 },
    [HW_TENSOR_S32] = { 4, false, 0 },
    [HW_TENSOR_U64] = { 8, false, 0 },
    [HW_TENSOR_S64] = { 8, false, 0 },
    [HW_TENSOR_F16] = { 2, true,
                        0x7eff }, /* halves as fma.oob takes them, which knows them from results */
    [HW_TENSOR_F32] = { 4, true, 0x7fffffff },
    [HW_TENSOR_F64] = { 8, true, UINT64_C(0x7fffffffffffffff) },
    [HW_TENSOR_BF16] = { 2, true, 0x7fdf },
    [HW_TENSOR_F32_FTZ] = { 4, true, 0x7fffffff },
    [HW_TENSOR_TF32] = { 4, true, 0x7fffffff },
    [HW_TENSOR_TF32_FTZ] = { 4, true, 0x7fffffff },
    [HW_TENSOR_U4] = { 1, false, 0, 2, 1 },
    [HW_TENSOR_U4_APART] = { 16, false, 0, 16, 8 },
    [HW_TENSOR_U6_APART] = { 16, false, 0, 16, 12 },
};

/* Which bits of an address are exchanged with which (log2 of the piece, of the line, how many). */
static const struct {
    uint8_t to, from, bits;
    uint16_t line; /* bytes a row of the box may have at most */
} swizzles[HW_SWIZZLES] = {
    [HW_SWIZZLE_NONE] = { 0, 0, 0, 0 },          [HW_SWIZZLE_32] = { 4, 7, 1, 32 },
    [HW_SWIZZLE_64] = { 4, 7, 2, 64 },           [HW_SWIZZLE_128] = { 4, 7, 3, 128 },
    [HW_SWIZZLE_128_ATOM_32] = { 5, 7, 2, 128 }, [HW_SWIZZLE_128_ATOM_32_FLIP] = { 5, 7, 2, 128 },
    [HW_SWIZZLE_128_ATOM_64] = { 6, 7, 1, 128 },
};

unsigned hw_tensor_element_bytes(unsigned type)
{
    return type < HW_TENSOR_TYPES ? types[type].bytes : 0;
}

unsigned hw_tensor_packed_bytes(unsigned type)
{
    unsigned bytes = hw_tensor_element_bytes(type);
    return bytes && types[type].unit ? types[type].packed : bytes;
}

unsigned hw_tensor_unit(unsigned type)
{
    return type < HW_TENSOR_TYPES && types[type].unit ? types[type].unit : 1;
}

void hw_tensor_in_units(hw_tensor_map *m)
{
    unsigned unit = hw_tensor_unit(m->type);
    m->box[0] = (uint16_t)(m->box[0] / unit);
    m->last[0] = (uint32_t)((m->last[0] + UINT64_C(1)) / unit - 1);
}

uint32_t hw_tensor_box(const hw_tensor_map *m, unsigned d)
{
    uint32_t step = d ? m->step[d] : 1;
    return (m->box[d] + step - 1) / step;
}

uint64_t hw_tensor_box_bytes(const hw_tensor_map *m)
{
    uint64_t n = hw_tensor_element_bytes(m->type);
    if (m->im2col)
        return n * m->box[0] * m->pixels;
    for (unsigned d = 0; d < m->rank; d++)
        n *= hw_tensor_box(m, d);
    return n;
}

static bool dimension_valid(const hw_tensor_map *m, unsigned d)
{
    const uint64_t stride_most = UINT64_C(1) << 40;
    bool stride = d == 0 || (m->stride[d - 1] % 16 == 0 && m->stride[d - 1] < stride_most);
    return stride && m->box[d] >= 1 && m->box[d] <= 256 && m->step[d] >= 1 && m->step[d] <= 8;
}

/* A corner has the bits of a word shared by all; between them there is something. */
static bool corners_valid(const hw_tensor_map *m)
{
    static const int32_t most[] = { [3] = 32767, [4] = 127, [5] = 15 };
    if (!m->im2col)
        return true;
    if (m->rank < 3 || m->pixels < 1 || m->pixels > 1024)
        return false;
    for (unsigned d = 1; d < m->rank - 1u; d++) {
        int32_t low = m->lower[d - 1], high = m->upper[d - 1], n = most[m->rank];
        if (low > n || low < -n - 1 || high > n || high < -n - 1 ||
            (int64_t)m->last[d] + high < low)
            return false;
    }
    return true;
}

/* What elements of 4 and 6 bits ask for besides. (CUDA Driver API, cuTensorMapEncodeTiled.) */
static bool units_valid(const hw_tensor_map *m)
{
    const uint32_t apart = 128, align = 32;
    unsigned unit = hw_tensor_unit(m->type);
    uint64_t size = m->last[0] + UINT64_C(1);
    if (hw_tensor_packed_bytes(m->type) == hw_tensor_element_bytes(m->type))
        return size % unit == 0 && m->box[0] % unit == 0;
    for (unsigned d = 1; d < m->rank; d++)
        if (m->stride[d - 1] % align)
            return false;
    bool swizzle = m->swizzle == HW_SWIZZLE_NONE || m->swizzle == HW_SWIZZLE_128 ||
                   m->swizzle == HW_SWIZZLE_128_ATOM_32 ||
                   (m->swizzle == HW_SWIZZLE_128_ATOM_64 && m->type == HW_TENSOR_U6_APART);
    return swizzle && size % apart == 0 && m->box[0] == apart && m->address % align == 0;
}

static bool row_valid(const hw_tensor_map *m)
{
    uint32_t row = m->box[0] / hw_tensor_unit(m->type) * types[m->type].bytes;
    uint32_t line = swizzles[m->swizzle].line;
    return row % 16 == 0 && (!line || row <= line);
}

bool hw_tensor_map_valid(const hw_tensor_map *m)
{
    if (m->magic != HW_TENSOR_MAGIC || m->rank < 1 || m->rank > HW_TENSOR_DIMS ||
        m->type >= HW_TENSOR_TYPES || m->swizzle >= HW_SWIZZLES ||
        m->swizzle == HW_SWIZZLE_128_ATOM_32_FLIP || m->address % 16)
        return false;
    for (unsigned d = 0; d < m->rank; d++)
        if (!dimension_valid(m, d))
            return false;
    return corners_valid(m) && units_valid(m) && row_valid(m) &&
           (!m->nan || types[m->type].is_float);
}

uint64_t hw_tensor_swizzled(unsigned swizzle, uint64_t at)
{
    uint64_t mask = (UINT64_C(1) << swizzles[swizzle].bits) - 1;
    at ^= (at >> swizzles[swizzle].from & mask) << swizzles[swizzle].to;
    return at;
}

uint64_t hw_tensor_element(const hw_tensor_map *m, const int64_t *c)
{
    uint64_t at = m->address;
    for (unsigned d = 0; d < m->rank; d++) {
        if (c[d] < 0 || c[d] > m->last[d])
            return 0;
        at += (uint64_t)c[d] * (d ? m->stride[d - 1] : hw_tensor_packed_bytes(m->type));
    }
    return at;
}

uint64_t hw_tensor_outside(const hw_tensor_map *m)
{
    return m->nan ? types[m->type].nan : 0;
}
