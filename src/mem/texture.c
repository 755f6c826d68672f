/* SPDX-License-Identifier: Apache-2.0
 *
 * Textures read: addressing, filtering, formats, levels. (CUDA C++ Programming Guide, "Texture Fetching".)
 */
#include "hw_texture.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

/* ---- the table ---- */

enum { SLOTS = 1 << 16 };

typedef struct slot {
    _Atomic(hw_texture *) t;
    _Atomic uint32_t generation;
} slot;

static slot slots[SLOTS];
static uint32_t next_slot;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

uint64_t hw_texture_add(const hw_texture *t)
{
    hw_texture *copy = malloc(sizeof *copy);
    uint64_t handle = 0;
    if (!copy)
        return 0;
    *copy = *t;
    pthread_mutex_lock(&lock);
    for (uint32_t n = 0; n < SLOTS && !handle; n++) {
        uint32_t i = next_slot++ % SLOTS;
        if (atomic_load(&slots[i].t))
            continue;
        uint32_t generation = atomic_fetch_add(&slots[i].generation, 1) + 1;
        atomic_store(&slots[i].t, copy);
        handle = (uint64_t)generation << 32 | (i + 1);
    }
    pthread_mutex_unlock(&lock);
    if (!handle)
        free(copy);
    return handle;
}

const hw_texture *hw_texture_get(uint64_t handle)
{
    uint64_t i = (handle & UINT32_MAX) - 1;
    if (i >= SLOTS || atomic_load(&slots[i].generation) != handle >> 32)
        return NULL;
    return atomic_load(&slots[i].t);
}

void hw_texture_remove(uint64_t handle)
{
    if (!hw_texture_get(handle))
        return;
    free(atomic_exchange(&slots[(handle & UINT32_MAX) - 1].t, NULL));
}

/* ---- geometry ---- */

unsigned hw_tex_dims(hw_geometry g)
{
    static const uint8_t dims[] = { 1, 2, 3, 1, 2, 3, 3 };
    return (unsigned)g < HW_COUNTOF(dims) ? dims[g] : 0;
}

bool hw_tex_layered(hw_geometry g)
{
    return g == HW_TEX_A1D || g == HW_TEX_A2D || g == HW_TEX_ACUBE;
}

/* ---- texels ---- */

static const struct {
    uint8_t bytes;
    bool is_float, is_signed;
    float scale; /* what a normalised integer is divided by; 0: never normalised */
} formats[] = {
    [HW_TEXEL_U8] = { 1, false, false, 255 },   [HW_TEXEL_U16] = { 2, false, false, 65535 },
    [HW_TEXEL_U32] = { 4, false, false, 0 },    [HW_TEXEL_S8] = { 1, false, true, 127 },
    [HW_TEXEL_S16] = { 2, false, true, 32767 }, [HW_TEXEL_S32] = { 4, false, true, 0 },
    [HW_TEXEL_F16] = { 2, true, true, 0 },      [HW_TEXEL_F32] = { 4, true, true, 0 },
};

static bool gives_floats(const hw_texture *t)
{
    return formats[t->format].is_float || (formats[t->format].scale != 0 && !t->as_integer);
}

static float half_to_float(uint16_t h)
{
    _Float16 f;
    memcpy(&f, &h, sizeof f);
    return (float)f;
}

static int64_t integer_at(const uint8_t *p, unsigned bytes, bool is_signed)
{
    uint32_t v = 0;
    memcpy(&v, p, bytes);
    unsigned up = 32 - 8 * bytes;
    return is_signed ? (int32_t)(v << up) >> up : (int64_t)v;
}

typedef struct texel {
    float f[4]; /* if the texture gives floats */
    uint32_t i[4];
} texel;

static float from_srgb(float v)
{
    return v <= 0.04045f ? v / 12.92f : powf((v + 0.055f) / 1.055f, 2.4f);
}

static float as_float(const hw_texture *t, const uint8_t *p, unsigned channel)
{
    if (t->format == HW_TEXEL_F32) {
        float f;
        memcpy(&f, p, sizeof f);
        return f;
    }
    if (t->format == HW_TEXEL_F16) {
        uint16_t h;
        memcpy(&h, p, sizeof h);
        return half_to_float(h);
    }
    float v = (float)integer_at(p, formats[t->format].bytes, formats[t->format].is_signed) /
              formats[t->format].scale;
    if (t->srgb && channel < 3)
        return from_srgb(v);
    return v < -1 ? -1 : v;
}

static texel border_of(const hw_texture *t)
{
    texel r;
    for (int c = 0; c < 4; c++) {
        r.f[c] = t->border[c];
        memcpy(&r.i[c], &t->border[c],
               sizeof r.i[c]); /* for integers the border's bits are meant */
    }
    return r;
}

/* One format's texels made four floats. */
typedef void read_fn(const hw_texture *t, const uint8_t *p, float out[4]);

static void read_f32(const hw_texture *t, const uint8_t *p, float out[4])
{
    for (unsigned c = 0; c < t->channels; c++)
        memcpy(&out[c], p + 4 * c, 4);
}

static void read_u8(const hw_texture *t, const uint8_t *p, float out[4])
{
    for (unsigned c = 0; c < t->channels; c++)
        out[c] = (float)p[c] / 255;
}

static void read_any(const hw_texture *t, const uint8_t *p, float out[4])
{
    for (unsigned c = 0; c < t->channels; c++)
        out[c] = as_float(t, p + c * formats[t->format].bytes, c);
}

static read_fn *reader_of(const hw_texture *t)
{
    return t->format == HW_TEXEL_F32              ? read_f32
           : t->format == HW_TEXEL_U8 && !t->srgb ? read_u8
                                                  : read_any;
}

/* A texel by number; the numbers are inside. */
static inline texel texel_at(const hw_texture *t, const hw_texels *m, const int64_t n[3])
{
    texel r = { { 0, 0, 0, 1 }, { 0, 0, 0, 1 } };
    unsigned bytes = formats[t->format].bytes;
    const uint8_t *p = (const uint8_t *)(uintptr_t)(m->address + (uint64_t)n[2] * m->slice +
                                                    (uint64_t)n[1] * m->pitch) +
                       (uint64_t)n[0] * bytes * t->channels;
    if (gives_floats(t)) {
        reader_of(t)(t, p, r.f);
        return r;
    }
    for (unsigned c = 0; c < t->channels; c++)
        r.i[c] = (uint32_t)integer_at(p + c * bytes, bytes, formats[t->format].is_signed);
    return r;
}

/* ---- addressing ---- */

/* A texel's number brought inside; -1: the border. Wrap and mirror need normalised coordinates. */
static int64_t inside(const hw_texture *t, unsigned dim, int64_t n, uint32_t size)
{
    hw_addressing a = t->addressing[dim];
    if (!t->normalized && (a == HW_WRAP || a == HW_MIRROR))
        a = HW_CLAMP;
    if (n >= 0 && n < size)
        return n;
    int64_t period = a == HW_MIRROR ? 2 * (int64_t)size : size;
    int64_t k = (n % period + period) % period;
    switch (a) {
    case HW_WRAP:
        return k;
    case HW_MIRROR:
        return k < size ? k : period - 1 - k;
    case HW_CLAMP:
        return n < 0 ? 0 : (int64_t)size - 1;
    default:
        return -1;
    }
}

static texel fetch_number(const hw_texture *t, const hw_texels *m, const int64_t n[3],
                          unsigned dims)
{
    const uint32_t size[3] = { m->width, m->height, m->depth };
    int64_t k[3] = { n[0], n[1], n[2] };
    for (unsigned d = 0; d < dims; d++) {
        k[d] = inside(t, d, n[d], size[d]);
        if (k[d] < 0)
            return border_of(t);
    }
    return texel_at(t, m, k);
}

/* ---- filtering ---- */

static int64_t whole(float x)
{
    if (!(x > -1e9f && x < 1e9f))
        return x > 0 ? 1000000000 : -1000000000; /* NaN: far outside */
    int64_t n = (int64_t)x;
    return n - ((float)n > x); /* down, and no call of floorf */
}

typedef struct corner { /* of a linear filter: the lower texels and how far on, in 1/256 */
    int64_t n[3];
    float part[3];
} corner;

static corner corner_of(const float x[3], unsigned dims, int64_t layer)
{
    corner c = { { 0, 0, layer }, { 0 } };
    for (unsigned d = 0; d < dims; d++) {
        float b = x[d] - 0.5f;
        c.n[d] = whole(b);
        c.part[d] = (float)(int)((b - (float)c.n[d]) * 256.0f + 0.5f) / 256.0f;
    }
    return c;
}

/* The commonest: two dimensions, all four texels inside. */
static bool linear_2d(const hw_texture *t, const hw_texels *m, const corner *c, texel *out)
{
    if (c->n[0] < 0 || c->n[1] < 0 || c->n[0] + 1 >= m->width || c->n[1] + 1 >= m->height)
        return false;
    unsigned bytes = formats[t->format].bytes * t->channels;
    const uint8_t *p =
        (const uint8_t *)(uintptr_t)(m->address + (uint64_t)c->n[2] * m->slice +
                                     (uint64_t)c->n[1] * m->pitch + (uint64_t)c->n[0] * bytes);
    float a = c->part[0], b = c->part[1];
    const float w[4] = { (1 - a) * (1 - b), a * (1 - b), (1 - a) * b, a * b };
    if (t->format == HW_TEXEL_F32 && t->channels == 1) {
        float v[4];
        memcpy(&v[0], p, 8);
        memcpy(&v[2], p + m->pitch, 8);
        *out = (texel){ { 0, 0, 0, 1 }, { 0 } };
        for (int k = 0; k < 4; k++) /* texels of no weight do not count, be they infinite */
            out->f[0] += w[k] != 0 ? w[k] * v[k] : 0;
        return true;
    }
    read_fn *read = reader_of(t);
    float v[4][4] = { { 0, 0, 0, 1 }, { 0, 0, 0, 1 }, { 0, 0, 0, 1 }, { 0, 0, 0, 1 } };
    read(t, p, v[0]);
    read(t, p + bytes, v[1]);
    read(t, p + m->pitch, v[2]);
    read(t, p + m->pitch + bytes, v[3]);
    for (int i = 0; i < 4; i++) {
        out->f[i] = 0;
        for (int k = 0; k < 4; k++)
            out->f[i] += w[k] != 0 ? w[k] * v[k][i] : 0;
    }
    return true;
}

static texel fetch_linear(const hw_texture *t, const hw_texels *m, const float x[3], unsigned dims,
                          int64_t layer)
{
    corner c = corner_of(x, dims, layer);
    texel sum = { { 0 }, { 0 } };
    if (dims == 2 && linear_2d(t, m, &c, &sum))
        return sum;
    for (unsigned k = 0; k < 1u << dims; k++) {
        int64_t n[3] = { c.n[0], c.n[1], c.n[2] };
        float weight = 1;
        for (unsigned d = 0; d < dims; d++) {
            unsigned up = k >> d & 1;
            n[d] += up;
            weight *= up ? c.part[d] : 1 - c.part[d];
        }
        if (weight == 0)
            continue;
        texel v = fetch_number(t, m, n, dims);
        for (int i = 0; i < 4; i++) {
            sum.f[i] += weight * v.f[i];
        }
    }
    return sum;
}

static texel fetch_level(const hw_texture *t, const hw_texels *m, const float at[3], unsigned dims,
                         int64_t layer)
{
    const uint32_t size[3] = { m->width, m->height, m->depth };
    float x[3] = { 0 };
    for (unsigned d = 0; d < dims; d++) {
        x[d] = t->normalized ? at[d] * (float)size[d] : at[d];
    }
    if (t->linear && gives_floats(t))
        return fetch_linear(t, m, x, dims, layer);
    int64_t n[3] = { 0, 0, layer };
    for (unsigned d = 0; d < dims; d++) {
        n[d] = whole(x[d]);
    }
    return fetch_number(t, m, n, dims);
}

/* ---- cubes: the face a direction meets, and where ---- */

static unsigned face_of(const float v[3], float st[3])
{
    float ax = fabsf(v[0]), ay = fabsf(v[1]), az = fabsf(v[2]), m, s, r;
    unsigned face;
    if (ax >= ay && ax >= az) {
        face = v[0] < 0;
        m = ax, s = v[0] < 0 ? v[2] : -v[2], r = -v[1];
    } else if (ay >= az) {
        face = 2 + (v[1] < 0);
        m = ay, s = v[0], r = v[1] < 0 ? -v[2] : v[2];
    } else {
        face = 4 + (v[2] < 0);
        m = az, s = v[2] < 0 ? -v[0] : v[0], r = -v[1];
    }
    st[0] = m > 0 ? (s / m + 1) / 2 : 0.5f;
    st[1] = m > 0 ? (r / m + 1) / 2 : 0.5f;
    st[2] = 0;
    return face;
}

/* ---- the fetch ---- */

static float lod_of(const hw_texture *t, uint64_t aux, const hw_tex_place *p, unsigned dims)
{
    if (t->levels == 1)
        return 0;
    float lod = p->lod;
    if (aux & HW_TEX_GRAD) {
        const uint32_t size[3] = { t->level[0].width, t->level[0].height, t->level[0].depth };
        float a = 0, b = 0;
        for (unsigned d = 0; d < dims; d++) {
            float n = t->normalized ? (float)size[d] : 1;
            a += p->dx[d] * n * p->dx[d] * n;
            b += p->dy[d] * n * p->dy[d] * n;
        }
        float most = a > b ? a : b;
        lod = most > 0 ? 0.5f * log2f(most) : 0;
    }
    lod += t->lod_bias;
    lod = lod < t->lod_min ? t->lod_min : lod > t->lod_max ? t->lod_max : lod;
    float top = (float)(t->levels - 1);
    return !(lod > 0) ? 0 : lod > top ? top : lod;
}

static texel fetch_lod(const hw_texture *t, float lod, const float x[3], unsigned dims,
                       int64_t layer)
{
    if (t->levels == 1)
        return fetch_level(t, &t->level[0], x, dims, layer);
    uint32_t low = (uint32_t)(t->mip_linear ? floorf(lod) : floorf(lod + 0.5f));
    if (low >= t->levels)
        low = t->levels - 1;
    texel a = fetch_level(t, &t->level[low], x, dims, layer);
    float part = floorf((lod - (float)low) * 256.0f + 0.5f) / 256.0f;
    if (!t->mip_linear || part <= 0 || low + 1 >= t->levels)
        return a;
    texel b = fetch_level(t, &t->level[low + 1], x, dims, layer);
    for (int i = 0; i < 4; i++) {
        a.f[i] += part * (b.f[i] - a.f[i]);
    }
    return a;
}

/* The four texels of a 2D filter, in the order of tld4: (0,1) (1,1) (1,0) (0,0). */
static texel gather(const hw_texture *t, uint64_t aux, const hw_tex_place *p, int64_t layer)
{
    static const uint8_t order[4][2] = { { 0, 1 }, { 1, 1 }, { 1, 0 }, { 0, 0 } };
    const hw_texels *m = &t->level[0];
    float x[3] = { p->x[0], p->x[1], 0 };
    if (t->normalized)
        x[0] *= (float)m->width, x[1] *= (float)m->height;
    corner c = corner_of(x, 2, layer);
    unsigned channel = (unsigned)(aux >> HW_TEX_CHANNEL_SHIFT) & 3;
    texel r = { { 0 }, { 0 } };
    for (int k = 0; k < 4; k++) {
        const int64_t n[3] = { c.n[0] + order[k][0], c.n[1] + order[k][1], layer };
        texel v = fetch_number(t, m, n, 2);
        r.f[k] = v.f[channel];
        r.i[k] = v.i[channel];
    }
    return r;
}

static int64_t layer_of(const hw_texture *t, uint32_t layer, uint32_t faces)
{
    uint32_t n = t->level[0].depth / faces;
    return layer < n ? layer : n ? n - 1 : 0;
}

static texel fetch(const hw_texture *t, uint64_t aux, const hw_tex_place *p)
{
    hw_geometry g = (hw_geometry)(aux & HW_TEX_GEOMETRY);
    unsigned dims = hw_tex_dims(g);
    bool cube = g == HW_TEX_CUBE || g == HW_TEX_ACUBE;
    int64_t layer = hw_tex_layered(g) ? layer_of(t, p->layer, cube ? 6 : 1) * (cube ? 6 : 1) : 0;
    float x[3] = { p->x[0], p->x[1], p->x[2] };
    if (aux & HW_TEX_INTEGER) { /* texel numbers: no filter, and outside is the border */
        const hw_texels *m = &t->level[0];
        const uint32_t size[3] = { m->width, m->height, m->depth };
        int64_t n[3] = { 0, 0, layer };
        for (unsigned d = 0; d < dims; d++) {
            n[d] = p->i[d];
            if (n[d] < 0 || n[d] >= size[d])
                return border_of(t);
        }
        return texel_at(t, m, n);
    }
    if (cube) {
        layer += face_of(p->x, x);
        dims = 2;
    }
    if (aux & HW_TEX_GATHER)
        return gather(t, aux, p, layer);
    return fetch_lod(t, lod_of(t, aux, p, dims), x, dims, layer);
}

/* Two dimensions, one level, and all texels inside: most of all fetches. */
static bool quick_2d(const hw_texture *t, uint64_t aux, const hw_tex_place *p, uint32_t out[4])
{
    const hw_texels *m = &t->level[0];
    bool layered = (aux & 0xFF) == HW_TEX_A2D;
    if (((aux & 0xFF) != HW_TEX_2D && !layered) || t->levels > 1)
        return false;
    float x = p->x[0], y = p->x[1];
    if (t->normalized)
        x *= (float)m->width, y *= (float)m->height;
    bool linear = t->linear && gives_floats(t);
    if (linear)
        x -= 0.5f, y -= 0.5f;
    if (!(x >= 0 && x < (float)(m->width - linear) && y >= 0 && y < (float)(m->height - linear)))
        return false;
    int32_t i = (int32_t)x, j = (int32_t)y;
    int64_t layer = layered ? layer_of(t, p->layer, 1) : 0;
    texel r;
    if (linear) {
        corner c = { { i, j, layer }, { 0 } };
        c.part[0] = (float)(int32_t)((x - (float)i) * 256.0f + 0.5f) / 256.0f;
        c.part[1] = (float)(int32_t)((y - (float)j) * 256.0f + 0.5f) / 256.0f;
        if (!linear_2d(t, m, &c, &r))
            return false;
    } else {
        r = texel_at(t, m, (const int64_t[]){ i, j, layer });
    }
    memcpy(out, gives_floats(t) ? (const void *)r.f : r.i, 4 * sizeof *out);
    return true;
}

void hw_texture_fetch(const hw_texture *t, uint64_t aux, const hw_tex_place *p, uint32_t out[4])
{
    if (quick_2d(t, aux, p, out))
        return;
    texel r = fetch(t, aux, p);
    memcpy(out, gives_floats(t) ? (const void *)r.f : r.i, 4 * sizeof *out);
}

/* ---- surfaces ---- */

bool hw_surface_address(const hw_texture *t, uint64_t aux, const hw_tex_place *p, uint64_t *address)
{
    const hw_texels *m = &t->level[0];
    hw_geometry g = (hw_geometry)(aux & HW_TEX_GEOMETRY);
    int64_t bytes = (int64_t)((aux >> HW_SURF_BYTES_SHIFT & 15) * (aux >> HW_SURF_COUNT_SHIFT & 7));
    if (aux & HW_SURF_FORMAT)
        bytes = hw_texel_bytes(t);
    int64_t row = (int64_t)m->width * formats[t->format].bytes * t->channels;
    const int64_t size[3] = { row - bytes + 1, m->height, m->depth };
    int64_t n[3] = { p->i[0], 0, hw_tex_layered(g) ? (int64_t)p->layer : 0 };
    unsigned dims = hw_tex_dims(g);
    if (aux & HW_SURF_SAMPLES)
        n[0] *= bytes;
    for (unsigned d = 1; d < dims; d++)
        n[d] = p->i[d];
    for (int d = 0; d < 3; d++) {
        if (n[d] >= 0 && n[d] < size[d])
            continue;
        if (aux & HW_SURF_CLAMP) {
            n[d] = n[d] < 0 ? 0 : size[d] - 1;
            continue;
        }
        *address = 0;
        return (aux & HW_SURF_ZERO) != 0;
    }
    n[0] -= bytes ? n[0] % bytes : 0;
    *address = m->address + (uint64_t)n[2] * m->slice + (uint64_t)n[1] * m->pitch + (uint64_t)n[0];
    return true;
}

bool hw_texture_is_signed(const hw_texture *t)
{
    return formats[t->format].is_signed;
}

static uint16_t half_of(float v)
{
    uint32_t x;
    memcpy(&x, &v, sizeof x);
    uint32_t sign = x >> 16 & 0x8000, m = x & 0x7fffffff;
    if (m > 0x7f800000)
        return 0x7fff;
    if (m >= 0x477ff000) /* rounds beyond the largest */
        return (uint16_t)(sign | 0x7c00);
    if (m < 0x38800000) /* counted in the least */
        return (uint16_t)(sign | (uint32_t)nearbyintf(fabsf(v) * 0x1p24f));
    return (uint16_t)(sign | (((m + 0xfff + (m >> 13 & 1)) >> 13) - (112u << 10)));
}

static uint32_t nearest_integer(const hw_texture *t, uint32_t v)
{
    unsigned bits = 8u * formats[t->format].bytes;
    if (bits == 32)
        return v;
    if (!formats[t->format].is_signed)
        return v >> bits ? (1u << bits) - 1 : v;
    int32_t s = (int32_t)v, most = (1 << (bits - 1)) - 1;
    return (uint32_t)(s > most ? most : s < -most - 1 ? -most - 1 : s);
}

void hw_surface_encode(const hw_texture *t, const uint32_t *channels, unsigned count, uint8_t *out)
{
    unsigned bytes = formats[t->format].bytes;
    for (unsigned c = 0; c < t->channels; c++) {
        uint32_t v = c < count ? channels[c] : 0;
        float f;
        memcpy(&f, &v, sizeof f);
        if (t->format == HW_TEXEL_F16)
            v = half_of(f);
        else if (t->format != HW_TEXEL_F32)
            v = nearest_integer(t, v);
        memcpy(out + c * bytes, &v, bytes);
    }
}

/* ---- what is asked of them ---- */

uint32_t hw_texture_ask(const hw_texture *t, hw_texture_query query, uint32_t level)
{
    /* wrap, mirror, clamp_ogl, clamp_to_edge, clamp_to_border */
    static const uint8_t addressing[] = {
        [HW_WRAP] = 0, [HW_MIRROR] = 1, [HW_CLAMP] = 3, [HW_BORDER] = 4
    };
    const hw_texels *m = &t->level[level < t->levels ? level : t->levels - 1];
    switch (query) {
    case HW_ASK_WIDTH:
        return m->width;
    case HW_ASK_HEIGHT:
        return m->height;
    case HW_ASK_DEPTH:
        return t->layered || t->cube ? 1 : m->depth;
    case HW_ASK_NORMALIZED:
        return t->normalized;
    case HW_ASK_ARRAY_SIZE:
        return !t->layered ? 0 : t->cube ? m->depth / 6 : m->depth;
    case HW_ASK_LEVELS:
        return t->levels > 1 ? t->levels : 0;
    case HW_ASK_FILTER:
        return t->linear;
    case HW_ASK_ADDRESS_0:
    case HW_ASK_ADDRESS_1:
    case HW_ASK_ADDRESS_2:
        return addressing[t->addressing[query - HW_ASK_ADDRESS_0]];
    case HW_ASK_LINEAR_LAYOUT:
        return !m->is_array;
    default:
        return 0; /* samples: there are none of several */
    }
}
