/* SPDX-License-Identifier: Apache-2.0
 *
 * What generated code calls for textures and surfaces: the lanes' operands collected, room mem asked.
 * Sources: handle (i64), layer (i32) if the geometry has layers, coordinates (f32 or s32), level or derivatives if aux
 * says so; for stores the values. Results: four 32-bit words; for surface loads as many elements as aux says.
 */
#include "exec.h"

#define FOR_LANES(l, lanes)                                                               \
    for (uint32_t rest_ = (lanes), l = rest_ ? (uint32_t)__builtin_ctz(rest_) : 0; rest_; \
         rest_ &= rest_ - 1, l = rest_ ? (uint32_t)__builtin_ctz(rest_) : 0)

static uint32_t word(const hw_lane_arrays *io, uint32_t n, uint32_t lane)
{
    uint32_t v = 0;
    if (n < io->nsrc)
        memcpy(&v, (const uint8_t *)io->src[n] + 4 * lane, sizeof v);
    return v;
}

static float number(const hw_lane_arrays *io, uint32_t n, uint32_t lane)
{
    uint32_t bits = word(io, n, lane);
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

/* The place a lane names; *next is the first source behind it. */
static hw_tex_place place_of(const hw_lane_arrays *io, uint64_t aux, uint32_t lane, uint32_t *next)
{
    hw_geometry g = (hw_geometry)(aux & HW_TEX_GEOMETRY);
    unsigned dims = hw_tex_dims(g);
    hw_tex_place p = { .lod = 0 };
    uint32_t n = 1;
    if (hw_tex_layered(g))
        p.layer = word(io, n++, lane);
    for (unsigned d = 0; d < dims; d++, n++) {
        p.x[d] = number(io, n, lane);
        p.i[d] = (int32_t)word(io, n, lane);
    }
    if (aux & HW_TEX_LEVEL)
        p.lod = number(io, n++, lane);
    for (unsigned d = 0; (aux & HW_TEX_GRAD) && d < dims; d++) {
        p.dx[d] = number(io, n + d, lane);
        p.dy[d] = number(io, n + dims + d, lane);
    }
    *next = n;
    return p;
}

static const hw_texture *texture_of(hw_frame *f, const hw_lane_arrays *io, uint32_t lane)
{
    uint64_t handle;
    memcpy(&handle, (const uint8_t *)io->src[0] + 8 * lane, sizeof handle);
    const hw_texture *t = hw_texture_get(handle);
    if (!t)
        hw_raise(f, HW_F_ILLEGAL_ADDRESS, f->fault_loc, "0x%llx is no texture or surface object",
                 (unsigned long long)handle);
    return t;
}

void hw_h_tex(hw_frame *f, uint32_t lanes, const hw_lane_arrays *io, uint64_t aux)
{
    FOR_LANES(l, lanes)
    {
        uint32_t next, out[4];
        const hw_texture *t = texture_of(f, io, l);
        const hw_tex_place p = place_of(io, aux, l, &next);
        hw_texture_fetch(t, aux, &p, out);
        for (uint32_t c = 0; c < io->ndst && c < 4; c++)
            memcpy((uint8_t *)io->dst[c] + 4 * l, &out[c], sizeof out[c]);
    }
}

/* Elements of 1, 2 and 4 bytes travel in 32-bit registers, of 8 in 64-bit ones. */
void hw_h_surf(hw_frame *f, uint32_t lanes, const hw_lane_arrays *io, uint64_t aux)
{
    uint32_t bytes = (uint32_t)(aux >> HW_SURF_BYTES_SHIFT) & 15,
             count = (uint32_t)(aux >> HW_SURF_COUNT_SHIFT) & 7;
    uint32_t stride = bytes > 4 ? 8 : 4;
    FOR_LANES(l, lanes)
    {
        uint32_t next;
        uint64_t address;
        const hw_texture *t = texture_of(f, io, l);
        const hw_tex_place p = place_of(io, aux, l, &next);
        if (!hw_surface_address(t, aux, &p, &address))
            hw_raise(f, HW_F_ILLEGAL_ADDRESS, f->fault_loc,
                     "surface access at (%d, %d, %d), outside the surface", p.i[0], p.i[1], p.i[2]);
        for (uint32_t k = 0; k < count; k++) {
            uint8_t *memory = (uint8_t *)(uintptr_t)(address + k * bytes);
            uint64_t v = 0;
            if (aux & HW_SURF_STORE) {
                memcpy(&v, (const uint8_t *)io->src[next + k] + stride * l, stride);
                if (address)
                    memcpy(memory, &v, bytes);
                continue;
            }
            if (address)
                memcpy(&v, memory, bytes);
            memcpy((uint8_t *)io->dst[k] + stride * l, &v, stride);
        }
    }
}
