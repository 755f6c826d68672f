/* SPDX-License-Identifier: Apache-2.0
 *
 * Textures read by a whole warp at once: the commonest kinds (one or two dimensions, one level, floats
 * or bytes), by vectors of eight lanes, with the same bits as texture.c gives lane by lane. Products
 * and sums must not be fused for that: this room is compiled so.
 */
#include "hw_texture.h"

enum { LANES = 32, EIGHT = 8, CORNERS = 4 };

typedef float floats __attribute__((vector_size(32), aligned(4), may_alias));
typedef int32_t ints __attribute__((vector_size(32), aligned(4), may_alias));

/* Compiled for several processors; what it calls must be inlined. */
/* (A thread sanitizer cannot stand behind the choice, which is made before it is there.) */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_THREAD__)
#define CLONED __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define CLONED
#endif
#define INLINED static inline __attribute__((always_inline))

/* Along one dimension: the texels below and above, brought inside, how far on in 1/256; and for which
 * lanes that is right. */
typedef struct axis {
    int32_t low[LANES], high[LANES], right[LANES]; /* right: 0 or -1 */
    float part[LANES];
} axis;

typedef struct reading {
    const hw_texture *t;
    bool linear, integer, bytes; /* filter; coordinates are numbers; format U8 */
    axis x, y;
    uint32_t raw[CORNERS][LANES];
    float weight[CORNERS][LANES];
} reading;

#define AT(type, array, i) (*(type *)((array) + (i)))

INLINED void bring_inside(const ints *n, int32_t size, int32_t *out)
{
    ints positive = *n > 0, below = *n < size - 1;
    AT(ints, out, 0) = (*n & positive & below) | (~below & (size - 1));
}

INLINED void find_numbers(axis *o, const void *coordinates, int32_t size)
{
    for (unsigned i = 0; i < LANES; i += EIGHT) {
        ints n = AT(const ints, (const int32_t *)coordinates, i);
        bring_inside(&n, size, o->low + i);
        AT(ints, o->right, i) = (n >= 0) & (n < size);
    }
}

INLINED void find_nearest(axis *o, const float *coordinates, float scale, int32_t size, bool clamp)
{
    for (unsigned i = 0; i < LANES; i += EIGHT) {
        floats v = AT(const floats, coordinates, i) * scale;
        ints inside = (v >= 0) & (v < (float)size), positive = v > 0, below = v < (float)(size - 1);
        floats kept = (floats)((ints)v & positive & below);
        ints n = __builtin_convertvector(kept, ints);
        AT(ints, o->low, i) = n | (positive & ~below & (size - 1));
        AT(ints, o->right, i) = inside | (clamp ? -1 : 0);
    }
}

INLINED void find_pairs(axis *o, const float *coordinates, float scale, int32_t size, bool clamp)
{
    const float far = 0x1p22f;
    for (unsigned i = 0; i < LANES; i += EIGHT) {
        floats b = AT(const floats, coordinates, i) * scale - 0.5f;
        ints near = (b > -far) & (b < far);
        b = (floats)((ints)b & near);
        ints n = __builtin_convertvector(b, ints);
        n += __builtin_convertvector(n, floats) > b; /* down */
        floats part = (b - __builtin_convertvector(n, floats)) * 256.0f + 0.5f;
        part = __builtin_convertvector(__builtin_convertvector(part, ints), floats) / 256.0f;
        AT(floats, o->part, i) = part;
        bring_inside(&n, size, o->low + i);
        ints next = n + 1, inside = (n >= 0) & (next < size);
        bring_inside(&next, size, o->high + i);
        AT(ints, o->right, i) = near & (inside | (clamp ? -1 : 0));
    }
}

/* Wrapping and mirroring need normalised coordinates; else they clamp. */
static bool clamps(const hw_texture *t, unsigned dim)
{
    hw_addressing a = t->addressing[dim];
    return a == HW_CLAMP || (!t->normalized && a != HW_BORDER);
}

INLINED void find(const reading *r, axis *o, const void *coordinates, unsigned dim, uint32_t size)
{
    float scale = r->t->normalized ? (float)size : 1;
    if (r->integer)
        find_numbers(o, coordinates, (int32_t)size);
    else if (r->linear)
        find_pairs(o, coordinates, scale, (int32_t)size, clamps(r->t, dim));
    else
        find_nearest(o, coordinates, scale, (int32_t)size, clamps(r->t, dim));
}

/* `size` bytes of each lane's texels, from byte `skip` on. */
INLINED void load(reading *r, const uint8_t *base, uint32_t texel, unsigned size)
{
    const uint64_t pitch = r->t->level[0].pitch;
    for (unsigned l = 0; l < LANES; l++) {
        const uint8_t *row = base + (uint64_t)r->y.low[l] * pitch;
        uint64_t x = (uint64_t)r->x.low[l] * texel;
        memcpy(&r->raw[0][l], row + x, size);
        if (r->linear) {
            const uint8_t *next = base + (uint64_t)r->y.high[l] * pitch;
            uint64_t x1 = (uint64_t)r->x.high[l] * texel;
            memcpy(&r->raw[1][l], row + x1, size);
            memcpy(&r->raw[2][l], next + x, size);
            memcpy(&r->raw[3][l], next + x1, size);
        }
    }
}

INLINED void load_texels(reading *r, unsigned channel)
{
    const hw_texels *m = &r->t->level[0];
    const uint8_t *base = (const uint8_t *)(uintptr_t)m->address;
    unsigned channels = r->t->channels;
    if (!r->bytes)
        load(r, base + 4 * channel, 4 * channels, 4);
    else if (channel)
        return; /* all are there */
    else if (channels == 4)
        load(r, base, 4, 4);
    else if (channels == 2)
        load(r, base, 2, 2);
    else
        load(r, base, 1, 1);
}

INLINED void value_of(const reading *r, unsigned corner, unsigned channel, unsigned i, floats *out)
{
    ints x = AT(const ints, (const int32_t *)r->raw[corner], i);
    if (r->bytes)
        *out = __builtin_convertvector((x >> (int)(8 * channel)) & 255, floats) / 255.0f;
    else
        *out = (floats)x;
}

INLINED void weigh(reading *r)
{
    for (unsigned i = 0; i < LANES; i += EIGHT) {
        floats a = AT(floats, r->x.part, i), b = AT(floats, r->y.part, i);
        AT(floats, r->weight[0], i) = (1 - a) * (1 - b);
        AT(floats, r->weight[1], i) = a * (1 - b);
        AT(floats, r->weight[2], i) = (1 - a) * b;
        AT(floats, r->weight[3], i) = a * b;
    }
}

INLINED void filter(const reading *r, unsigned channel, float *out)
{
    for (unsigned i = 0; i < LANES; i += EIGHT) {
        floats sum = { 0 };
        for (unsigned k = 0; k < CORNERS; k++) { /* texels of no weight do not count */
            floats w = AT(const floats, r->weight[k], i), v;
            value_of(r, k, channel, i, &v);
            sum += (floats)((ints)(w * v) & (w != 0));
        }
        AT(floats, out, i) = sum;
    }
}

INLINED void copy(const reading *r, unsigned channel, uint32_t *out)
{
    for (unsigned i = 0; i < LANES; i += EIGHT)
        if (r->t->as_integer && r->bytes)
            AT(ints, out, i) =
                (AT(const ints, (const int32_t *)r->raw[0], i) >> (int)(8 * channel)) & 255;
        else
            value_of(r, 0, channel, i, &AT(floats, out, i));
}

CLONED static void read_channels(reading *r, const void *x, const void *y, uint32_t *const *out,
                                 unsigned n)
{
    const hw_texels *m = &r->t->level[0];
    uint32_t fallback[LANES];
    memset(r->raw, 0, sizeof r->raw);
    find(r, &r->x, x, 0, m->width);
    if (y)
        find(r, &r->y, y, 1, m->height);
    if (r->linear)
        weigh(r);
    for (unsigned c = 0; c < r->t->channels; c++) {
        load_texels(r, c);
        uint32_t *to = c < n ? out[c] : fallback;
        if (r->linear)
            filter(r, c, (float *)to);
        else
            copy(r, c, to);
    }
}

static bool is_common(const hw_texture *t, uint64_t aux)
{
    hw_geometry g = (hw_geometry)(aux & HW_TEX_GEOMETRY);
    bool format = t->format == HW_TEXEL_F32 || (t->format == HW_TEXEL_U8 && !t->srgb);
    const hw_texels *m = &t->level[0];
    uint32_t most = aux & HW_TEX_INTEGER ? 1u << 31 : 1u << 24; /* floats are exact */
    return (g == HW_TEX_1D || g == HW_TEX_2D) && !(aux & HW_TEX_GATHER) && t->levels == 1 &&
           format && m->width < most && m->height < most && t->channels != 3;
}

uint32_t hw_texture_fetch_lanes(const hw_texture *t, uint64_t aux, uint32_t lanes, const void *x,
                                const void *y, uint32_t *const *out, uint32_t n)
{
    static const uint32_t one_float = 0x3f800000;
    if (!is_common(t, aux))
        return 0;
    reading r;
    r.t = t;
    r.integer = aux & HW_TEX_INTEGER;
    r.bytes = t->format == HW_TEXEL_U8;
    r.linear = t->linear && !r.integer && !(r.bytes && t->as_integer);
    if (hw_tex_dims((hw_geometry)(aux & HW_TEX_GEOMETRY)) == 1) {
        y = NULL;
        memset(&r.y, 0, sizeof r.y);
        memset(r.y.right, 0xff, sizeof r.y.right);
    }
    read_channels(&r, x, y, out, n);
    for (uint32_t c = t->channels; c < n; c++)
        for (unsigned l = 0; l < LANES; l++)
            out[c][l] = c < 3 ? 0 : r.bytes && t->as_integer ? 1 : one_float;
    uint32_t right = 0;
    for (unsigned l = 0; l < LANES; l++)
        right |= ((uint32_t)(r.x.right[l] & r.y.right[l]) & 1u) << l;
    return right & lanes;
}
