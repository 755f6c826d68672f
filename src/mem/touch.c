/* SPDX-License-Identifier: Apache-2.0
 *
 * Which texels a fetch reads, and where they would lie on a device. Texture units read all texels of
 * a filter, whatever their weights. Devices keep arrays in blocks of 64 bytes by 8 rows; within one,
 * 16 bytes of two rows make a sector of 32. (Linux, include/uapi/drm/drm_fourcc.h, NVIDIA's 16Bx2
 * block-linear layout, Fermi and later.) */
#include "hw_texture.h"

#include <math.h>

enum { BLOCK_WIDTH = 64, BLOCK_ROWS = 8, BLOCK_BYTES = 512 };
#define ARRAYS (UINT64_C(1) << 62) /* where blocks are said to lie, with room for each array */

uint32_t hw_texel_bytes(const hw_texture *t)
{
    static const uint8_t bytes[] = {
        [HW_TEXEL_U8] = 1,  [HW_TEXEL_U16] = 2, [HW_TEXEL_U32] = 4, [HW_TEXEL_S8] = 1,
        [HW_TEXEL_S16] = 2, [HW_TEXEL_S32] = 4, [HW_TEXEL_F16] = 2, [HW_TEXEL_F32] = 4
    };
    return (uint32_t)bytes[t->format] * t->channels;
}

/* x in bytes */
static uint64_t place_of(const hw_texels *m, uint64_t row_bytes, uint64_t x, uint64_t y, uint64_t z)
{
    if (!m->is_array || m->height == 1)
        return m->address + z * m->slice + y * m->pitch + x;
    uint64_t across = (row_bytes + BLOCK_WIDTH - 1) / BLOCK_WIDTH;
    uint64_t down = (m->height + BLOCK_ROWS - 1) / BLOCK_ROWS;
    uint64_t block = (z * down + y / BLOCK_ROWS) * across + x / BLOCK_WIDTH;
    uint64_t in_block =
        (x % 64 / 32 << 8) + (y % 8 / 2 << 6) + (x % 32 / 16 << 5) + (y % 2 << 4) + x % 16;
    return ARRAYS + (m->address << 4) + block * BLOCK_BYTES + in_block;
}

uint64_t hw_surface_touch(const hw_texture *t, uint64_t address)
{
    const hw_texels *m = &t->level[0];
    uint64_t at = address - m->address, slice = m->slice ? m->slice : 1;
    uint64_t in_slice = at % slice, pitch = m->pitch ? m->pitch : 1;
    return place_of(m, (uint64_t)m->width * hw_texel_bytes(t), in_slice % pitch, in_slice / pitch,
                    at / slice);
}

typedef struct touching {
    const hw_texture *t;
    unsigned dims, n;
    uint64_t *out;
} touching;

/* A number brought inside, -1: the border. */
static int64_t bring(const hw_texture *t, unsigned dim, int64_t n, int64_t size)
{
    hw_addressing a = t->addressing[dim];
    if (n >= 0 && n < size)
        return n;
    if (a == HW_BORDER)
        return -1;
    if (a == HW_CLAMP || !t->normalized)
        return n < 0 ? 0 : size - 1;
    int64_t period = a == HW_MIRROR ? 2 * size : size, k = (n % period + period) % period;
    return k < size ? k : period - 1 - k;
}

static void add(touching *x, const hw_texels *m, const int64_t n[3])
{
    const int64_t size[3] = { m->width, m->height, m->depth };
    uint64_t bytes = hw_texel_bytes(x->t), at;
    int64_t k[3] = { n[0], n[1], n[2] };
    for (unsigned d = 0; d < x->dims; d++) {
        k[d] = bring(x->t, d, n[d], size[d]);
        if (k[d] < 0)
            return;
    }
    at = place_of(m, m->width * bytes, (uint64_t)k[0] * bytes, (uint64_t)k[1], (uint64_t)k[2]);
    if (x->n < HW_TOUCH_MOST)
        x->out[x->n++] = at;
}

/* Far outside for what is no number; addresses are brought inside later. */
static int64_t down(float x)
{
    const float most = 1e9f;
    return !(x > -most && x < most) ? (x > 0 ? 1000000000 : -1000000000) : (int64_t)floorf(x);
}

/* The texels around a place, or the one it is in. */
static void add_around(touching *x, const hw_texels *m, const float at[3], int64_t layer,
                       bool linear)
{
    const uint32_t size[3] = { m->width, m->height, m->depth };
    int64_t first[3] = { 0, 0, layer };
    for (unsigned d = 0; d < x->dims; d++) {
        float c = x->t->normalized ? at[d] * (float)size[d] : at[d];
        first[d] = down(linear ? c - 0.5f : c);
    }
    for (unsigned k = 0; k < (linear ? 1u << x->dims : 1u); k++) {
        int64_t n[3];
        for (unsigned d = 0; d < 3; d++)
            n[d] = first[d] + (d < x->dims && k >> d & 1);
        add(x, m, n);
    }
}

static bool is_filtered(const hw_texture *t)
{
    bool is_float = t->format == HW_TEXEL_F16 || t->format == HW_TEXEL_F32;
    bool is_wide = t->format == HW_TEXEL_U32 || t->format == HW_TEXEL_S32;
    return t->linear && (is_float || (!is_wide && !t->as_integer));
}

/* The face of a cube and the place on it: the largest component says which. */
static unsigned face(const float v[3], float at[3])
{
    float a[3] = { fabsf(v[0]), fabsf(v[1]), fabsf(v[2]) };
    unsigned axis = a[0] >= a[1] && a[0] >= a[2] ? 0 : a[1] >= a[2] ? 1 : 2;
    float sign = v[axis] < 0 ? -1.0f : 1.0f;
    float s = axis == 0 ? -sign * v[2] : axis == 1 ? v[0] : sign * v[0];
    float r = axis == 1 ? sign * v[2] : -v[1];
    at[0] = a[axis] > 0 ? (s / a[axis] + 1) / 2 : 0.5f;
    at[1] = a[axis] > 0 ? (r / a[axis] + 1) / 2 : 0.5f;
    at[2] = 0;
    return 2 * axis + (sign < 0);
}

static float level_of(const hw_texture *t, uint64_t aux, const hw_tex_place *p, unsigned dims)
{
    const uint32_t size[3] = { t->level[0].width, t->level[0].height, t->level[0].depth };
    float lod = p->lod, along[2] = { 0, 0 }, top = (float)(t->levels - 1);
    for (unsigned d = 0; (aux & HW_TEX_GRAD) && d < dims; d++) {
        float n = t->normalized ? (float)size[d] : 1;
        along[0] += p->dx[d] * n * p->dx[d] * n;
        along[1] += p->dy[d] * n * p->dy[d] * n;
    }
    if (aux & HW_TEX_GRAD) {
        float most = fmaxf(along[0], along[1]);
        lod = most > 0 ? 0.5f * log2f(most) : 0;
    }
    lod = fminf(fmaxf(lod + t->lod_bias, t->lod_min), t->lod_max);
    return lod > 0 ? fminf(lod, top) : 0;
}

static void add_levels(touching *x, uint64_t aux, const hw_tex_place *p, const float at[3],
                       int64_t layer)
{
    const hw_texture *t = x->t;
    bool linear = is_filtered(t);
    float lod = t->levels > 1 ? level_of(t, aux, p, x->dims) : 0;
    uint32_t low = (uint32_t)(t->mip_linear ? floorf(lod) : floorf(lod + 0.5f));
    low = low < t->levels ? low : t->levels - 1;
    add_around(x, &t->level[low], at, layer, linear);
    if (t->mip_linear && floorf((lod - (float)low) * 256 + 0.5f) > 0 && low + 1 < t->levels)
        add_around(x, &t->level[low + 1], at, layer, linear);
}

/* A texel by its number; outside there is none. */
static void add_number(touching *x, const hw_tex_place *p, int64_t layer)
{
    const hw_texels *m = &x->t->level[0];
    const int64_t size[3] = { m->width, m->height, m->depth };
    int64_t n[3] = { 0, 0, layer };
    for (unsigned d = 0; d < x->dims; d++) {
        n[d] = p->i[d];
        if (n[d] < 0 || n[d] >= size[d])
            return;
    }
    add(x, m, n);
}

unsigned hw_texture_touch(const hw_texture *t, uint64_t aux, const hw_tex_place *p,
                          uint64_t out[HW_TOUCH_MOST])
{
    hw_geometry g = (hw_geometry)(aux & HW_TEX_GEOMETRY);
    bool cube = g == HW_TEX_CUBE || g == HW_TEX_ACUBE;
    uint32_t faces = cube ? 6 : 1, layers = t->level[0].depth / faces;
    uint32_t layer = !hw_tex_layered(g) ? 0 : p->layer < layers ? p->layer : layers - 1;
    touching x = { t, hw_tex_dims(g), 0, out };
    float at[3] = { p->x[0], p->x[1], p->x[2] };
    layer *= faces;
    if (aux & HW_TEX_INTEGER) {
        add_number(&x, p, layer);
        return x.n;
    }
    if (cube) {
        layer += face(p->x, at);
        x.dims = 2;
    }
    if (aux & HW_TEX_GATHER)
        add_around(&x, &t->level[0], at, layer, true);
    else
        add_levels(&x, aux, p, at, layer);
    return x.n;
}
