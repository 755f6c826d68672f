/* SPDX-License-Identifier: Apache-2.0
 *
 * mem: textures and surfaces, as what a kernel reads through a handle.
 *
 *   texels    rows of slices in device memory, in one of eight formats of one, two or four channels.
 *   texture   texels with rules for reading them: addressing, filtering, normalisation, mipmap
 *             levels. A surface is one without rules.
 *   handle    64 bits that a kernel holds. It names a slot of a process-wide table and the slot's
 *             generation, so a wrong one is found out.
 *
 * The rules are those of the CUDA C++ Programming Guide, "Texture Fetching". Thread-safe.
 */
#ifndef HW_TEXTURE_H
#define HW_TEXTURE_H

#include "hw_base.h"

typedef enum hw_texel {
    HW_TEXEL_U8,
    HW_TEXEL_U16,
    HW_TEXEL_U32,
    HW_TEXEL_S8,
    HW_TEXEL_S16,
    HW_TEXEL_S32,
    HW_TEXEL_F16,
    HW_TEXEL_F32,
} hw_texel;

typedef enum hw_addressing { HW_WRAP, HW_CLAMP, HW_MIRROR, HW_BORDER } hw_addressing;

typedef struct hw_texels {
    uint64_t address;
    uint64_t pitch, slice;         /* bytes from row to row, from slice to slice */
    uint32_t width, height, depth; /* texels, rows, slices (layers, faces); at least 1 */
    bool is_array;                 /* a device would keep it in blocks, see hw_texture_touch */
} hw_texels;

enum { HW_MIP_LEVELS = 16 };

typedef struct hw_texture {
    hw_texels level[HW_MIP_LEVELS];
    uint32_t levels; /* at least 1 */
    hw_texel format;
    uint8_t channels;
    hw_addressing addressing[3];
    bool linear, mip_linear; /* filters; otherwise the nearest */
    bool normalized;         /* coordinates from 0 to 1 */
    bool as_integer;         /* 8- and 16-bit integers stay integers */
    bool srgb;
    bool layered; /* slices are textures of an array */
    bool cube;    /* six of them each */
    float border[4];
    float lod_bias, lod_min, lod_max;
} hw_texture;

/* 0: no room. The texture is copied. */
uint64_t hw_texture_add(const hw_texture *t);
/* NULL: no such handle. Valid until it is removed. */
const hw_texture *hw_texture_get(uint64_t handle);
void hw_texture_remove(uint64_t handle);

/* How an instruction names a place. aux of HW_H_TEX and HW_H_SURF is built from these. */
typedef enum hw_geometry {
    HW_TEX_1D,
    HW_TEX_2D,
    HW_TEX_3D,
    HW_TEX_A1D,
    HW_TEX_A2D,
    HW_TEX_CUBE,
    HW_TEX_ACUBE,
} hw_geometry;
enum {
    HW_TEX_GEOMETRY = 7,       /* mask */
    HW_TEX_INTEGER = 1 << 3,   /* coordinates are texel numbers (s32) */
    HW_TEX_LEVEL = 1 << 4,     /* a level of detail follows the coordinates */
    HW_TEX_GRAD = 1 << 5,      /* so do the derivatives along x and along y */
    HW_TEX_GATHER = 1 << 6,    /* one channel of the four texels of a 2D filter (tld4) */
    HW_TEX_CHANNEL_SHIFT = 8,  /* which, with GATHER */
    HW_SURF_BYTES_SHIFT = 16,  /* surfaces: bytes of an element, 1 to 8 */
    HW_SURF_COUNT_SHIFT = 20,  /* elements: 1, 2 or 4 */
    HW_SURF_STORE = 1 << 24,   /* else a load */
    HW_SURF_CLAMP = 1 << 25,   /* outside: the nearest inside */
    HW_SURF_ZERO = 1 << 26,    /* outside: reads 0, writes nothing. Neither: a fault */
    HW_SURF_SAMPLES = 1 << 27, /* x counts elements */
    HW_SURF_REDUCE = 1 << 28,  /* one element combined with memory: hw_wir_atom, hw_wir_type */
    HW_SURF_FORMAT = 1 << 29,  /* stores of 32-bit channels that become a texel (sust.p) */
    HW_SURF_ATOM_SHIFT = 32,
    HW_SURF_TYPE_SHIFT = 40,
};

/* aux of HW_H_TEX_QUERY: what txq and suq ask for. */
typedef enum hw_texture_query {
    HW_ASK_WIDTH,
    HW_ASK_HEIGHT,
    HW_ASK_DEPTH,
    HW_ASK_NORMALIZED,
    HW_ASK_ARRAY_SIZE,
    HW_ASK_LEVELS,
    HW_ASK_SAMPLES,
    HW_ASK_FILTER,
    HW_ASK_ADDRESS_0,
    HW_ASK_ADDRESS_1,
    HW_ASK_ADDRESS_2,
    HW_ASK_LINEAR_LAYOUT,
} hw_texture_query;

typedef struct hw_tex_place {
    union {
        float x[3];
        int32_t i[3]; /* with HW_TEX_INTEGER, and of surfaces */
    };
    uint32_t layer;     /* arrays */
    float lod;          /* with LEVEL */
    float dx[3], dy[3]; /* with GRAD */
} hw_tex_place;

/* Coordinates an instruction gives beside the layer: 1 to 3. */
unsigned hw_tex_dims(hw_geometry g);
bool hw_tex_layered(hw_geometry g);
/* Four 32-bit results: floats, or integers for textures of integers that stay integers. */
void hw_texture_fetch(const hw_texture *t, uint64_t aux, const hw_tex_place *p, uint32_t out[4]);
/* The same for lanes of a warp at once, where the texture and the places are of the commonest kinds:
 * 32 coordinates of each dimension (y: any with one), n arrays of 32 results. Returns the lanes that
 * it did; the others' results are any. */
uint32_t hw_texture_fetch_lanes(const hw_texture *t, uint64_t aux, uint32_t lanes, const void *x,
                                const void *y, uint32_t *const *out, uint32_t n);
/* The texels that a fetch reads, all those of its filter, be their weight 0: where they would lie on a device that keeps arrays
 * in blocks of 64 bytes by 8 rows, in pairs of rows of 16 bytes (of arrays only distances within one mean anything). Returns
 * how many; the border is not in memory. */
enum { HW_TOUCH_MOST = 16 };
unsigned hw_texture_touch(const hw_texture *t, uint64_t aux, const hw_tex_place *p,
                          uint64_t out[HW_TOUCH_MOST]);
uint32_t hw_texel_bytes(const hw_texture *t);
/* The same for the address that hw_surface_address found. */
uint64_t hw_surface_touch(const hw_texture *t, uint64_t address);
/* The address of a surface's element (x in bytes), 0 if it is outside and to be left alone; false if
 * it is outside and that is a fault. */
bool hw_surface_address(const hw_texture *t, uint64_t aux, const hw_tex_place *p,
                        uint64_t *address);
/* A texel of `count` channels of 32 bits, floats or integers as the format's; what does not fit becomes the nearest that does. */
void hw_surface_encode(const hw_texture *t, const uint32_t *channels, unsigned count, uint8_t *out);
bool hw_texture_is_signed(const hw_texture *t);
/* PTX ISA, txq and suq; level: of the dimensions. */
uint32_t hw_texture_ask(const hw_texture *t, hw_texture_query query, uint32_t level);

#endif
