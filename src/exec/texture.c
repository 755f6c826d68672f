/* SPDX-License-Identifier: Apache-2.0
 *
 * What generated code calls for textures and surfaces: the lanes' operands collected, room mem asked.
 * Sources: handle (i64), layer (i32) if the geometry has layers, coordinates (f32 or s32), level or derivatives if aux
 * says so; for stores the values. Results: four 32-bit words; for surface loads as many elements as aux says.
 */
#include "count.h"

#define FOR_LANES(l, lanes)                                                               \
    for (uint32_t rest_ = (lanes), l = rest_ ? (uint32_t)__builtin_ctz(rest_) : 0; rest_; \
         rest_ &= rest_ - 1, l = rest_ ? (uint32_t)__builtin_ctz(rest_) : 0)

/* How the sources of one call are laid out. */
typedef struct layout {
    unsigned dims;
    bool layered;
    uint32_t first, behind; /* the first coordinate; the first source after the coordinates */
} layout;

static layout layout_of(uint64_t aux)
{
    hw_geometry g = (hw_geometry)(aux & HW_TEX_GEOMETRY);
    layout o = { hw_tex_dims(g), hw_tex_layered(g), 1, 0 };
    o.first += o.layered;
    o.behind = o.first + o.dims;
    return o;
}

static void take(const hw_lane_arrays *io, uint32_t n, uint32_t lane, void *out)
{
    memcpy(out, (const uint8_t *)io->src[n] + 4 * lane, 4);
}

static void place_of(const hw_lane_arrays *io, const layout *o, uint32_t lane, hw_tex_place *p)
{
    if (o->layered)
        take(io, 1, lane, &p->layer);
    for (unsigned d = 0; d < o->dims; d++)
        take(io, o->first + d, lane, &p->i[d]);
}

/* A level of detail, or what one is computed from. */
static void detail_of(const hw_lane_arrays *io, const layout *o, uint64_t aux, uint32_t lane,
                      hw_tex_place *p)
{
    if (aux & HW_TEX_LEVEL)
        take(io, o->behind, lane, &p->lod);
    for (unsigned d = 0; (aux & HW_TEX_GRAD) && d < o->dims; d++) {
        take(io, o->behind + d, lane, &p->dx[d]);
        take(io, o->behind + o->dims + d, lane, &p->dy[d]);
    }
}

typedef struct looked_up { /* lanes mostly have one object */
    uint64_t handle;
    const hw_texture *t;
} looked_up;

static const hw_texture *texture_of(hw_frame *f, const hw_lane_arrays *io, uint32_t lane,
                                    looked_up *last)
{
    uint64_t handle;
    memcpy(&handle, (const uint8_t *)io->src[0] + 8 * lane, sizeof handle);
    if (last->t && last->handle == handle)
        return last->t;
    *last = (looked_up){ handle, hw_texture_get(handle) };
    if (!last->t)
        hw_raise(f, HW_F_ILLEGAL_ADDRESS, f->fault_loc, "0x%llx is no texture or surface object",
                 (unsigned long long)handle);
    return last->t;
}

/* Lanes with the first one's texture, done at once if it is of a common kind. */
static uint32_t fetch_together(const hw_texture *t, uint32_t lanes, const hw_lane_arrays *io,
                               uint64_t aux, const layout *o)
{
    uint32_t *out[4];
    uint64_t first, other;
    if (o->layered || o->dims > 2)
        return 0;
    memcpy(&first, (const uint8_t *)io->src[0] + 8 * (uint32_t)__builtin_ctz(lanes), 8);
    FOR_LANES(l, lanes)
    {
        memcpy(&other, (const uint8_t *)io->src[0] + 8 * l, 8);
        if (other != first)
            return 0;
    }
    uint32_t n = io->ndst < 4 ? io->ndst : 4;
    for (uint32_t c = 0; c < n; c++)
        out[c] = io->dst[c];
    return hw_texture_fetch_lanes(t, aux, lanes, io->src[o->first],
                                  o->dims > 1 ? io->src[o->first + 1] : NULL, out, n);
}

/* ---- what a listener hears: distinct sectors ---- */

enum { SECTOR = 32 };

typedef struct sectors {
    uint64_t at[HW_WARP_LANES * HW_TOUCH_MOST];
    uint32_t n, bytes; /* of a lane's texel */
    uint64_t texels[HW_TOUCH_MOST];
} sectors;

static bool anybody_listens(const hw_frame *f)
{
    const hw_block *b = f->owner;
    return b->worker->tally != NULL;
}

/* From the newest back: neighbours share sectors. */
static void add_sector(sectors *s, uint64_t address)
{
    uint64_t at = address & ~(uint64_t)(SECTOR - 1);
    for (uint32_t i = s->n; i > 0; i--)
        if (s->at[i - 1] == at)
            return;
    s->at[s->n++] = at;
}

static void add_texels(sectors *s, const hw_texture *t, uint64_t aux, const hw_tex_place *p)
{
    unsigned n = hw_texture_touch(t, aux, p, s->texels);
    s->bytes = hw_texel_bytes(t);
    for (unsigned i = 0; i < n; i++)
        add_sector(s, s->texels[i]);
}

static void tell_tex(hw_frame *f, uint32_t lanes, const hw_lane_arrays *io, uint64_t aux)
{
    const layout o = layout_of(aux);
    looked_up last = { 0, NULL };
    hw_tex_place p = { .lod = 0 };
    sectors s;
    s.n = 0;
    FOR_LANES(l, lanes)
    {
        const hw_texture *t = texture_of(f, io, l, &last);
        place_of(io, &o, l, &p);
        detail_of(io, &o, aux, l, &p);
        add_texels(&s, t, aux, &p);
    }
    if (lanes)
        hw_count_sectors(f, lanes, s.bytes, s.at, s.n);
}

/* Elements outside the surface touch nothing. */
static void tell_surf(hw_frame *f, uint32_t lanes, const hw_lane_arrays *io, uint64_t aux)
{
    uint32_t bytes =
        (uint32_t)((aux >> HW_SURF_BYTES_SHIFT & 15) * (aux >> HW_SURF_COUNT_SHIFT & 7));
    const layout o = layout_of(aux);
    looked_up last = { 0, NULL };
    hw_tex_place p = { .lod = 0 };
    sectors s;
    s.n = 0;
    FOR_LANES(l, lanes)
    {
        uint64_t address;
        const hw_texture *t = texture_of(f, io, l, &last);
        place_of(io, &o, l, &p);
        if (hw_surface_address(t, aux, &p, &address) && address)
            add_sector(&s, hw_surface_touch(t, address));
    }
    if (lanes)
        hw_count_sectors(f, lanes, bytes, s.at, s.n);
}

/* ---- what generated code calls ---- */

void hw_h_tex(hw_frame *f, uint32_t lanes, const hw_lane_arrays *io, uint64_t aux)
{
    const layout o = layout_of(aux);
    looked_up last = { 0, NULL };
    hw_tex_place p = { .lod = 0 };
    if (anybody_listens(f))
        tell_tex(f, lanes, io, aux);
    if (lanes)
        lanes &= ~fetch_together(texture_of(f, io, (uint32_t)__builtin_ctz(lanes), &last), lanes,
                                 io, aux, &o);
    FOR_LANES(l, lanes)
    {
        uint32_t out[4];
        const hw_texture *t = texture_of(f, io, l, &last);
        place_of(io, &o, l, &p);
        if (aux & (HW_TEX_LEVEL | HW_TEX_GRAD))
            detail_of(io, &o, aux, l, &p);
        hw_texture_fetch(t, aux, &p, out);
        for (uint32_t c = 0; c < io->ndst && c < 4; c++)
            memcpy((uint8_t *)io->dst[c] + 4 * l, &out[c], sizeof out[c]);
    }
}

/* sured: one element combined with what is there. */
static void combine(hw_frame *f, const hw_lane_arrays *io, const hw_texture *t, uint64_t aux,
                    uint32_t source, uint32_t lane, uint64_t address)
{
    hw_wir_atom op = (hw_wir_atom)(aux >> HW_SURF_ATOM_SHIFT & 0xff);
    hw_wir_type type = (hw_wir_type)(aux >> HW_SURF_TYPE_SHIFT & 0xff);
    uint32_t bytes = hw_wir_bits(type) / 8;
    if (aux & HW_SURF_SAMPLES && hw_texture_is_signed(t)) /* what the bits are, the format says */
        op = op == HW_ATOM_MIN_U ? HW_ATOM_MIN_S : op == HW_ATOM_MAX_U ? HW_ATOM_MAX_S : op;
    if (address && !hw_reduce(op, type, (void *)(uintptr_t)address,
                              (const uint8_t *)io->src[source] + bytes * lane, bytes))
        hw_raise(f, HW_F_ILLEGAL_INSTRUCTION, f->fault_loc, "no such reduction of a surface");
}

/* sust.p: channels that become a texel. */
static void store_texel(const hw_lane_arrays *io, const hw_texture *t, uint32_t source,
                        uint32_t lane, uint64_t address)
{
    uint32_t channels[4] = { 0 }, n = io->nsrc - source;
    uint8_t texel[16];
    for (uint32_t c = 0; c < n && c < 4; c++)
        take(io, source + c, lane, &channels[c]);
    hw_surface_encode(t, channels, n, texel);
    if (address)
        memcpy((void *)(uintptr_t)address, texel, hw_texel_bytes(t));
}

void hw_h_tex_query(hw_frame *f, uint32_t lanes, const hw_lane_arrays *io, uint64_t aux)
{
    looked_up last = { 0, NULL };
    FOR_LANES(l, lanes)
    {
        uint32_t level;
        take(io, 1, l, &level);
        uint32_t v = hw_texture_ask(texture_of(f, io, l, &last), (hw_texture_query)aux, level);
        memcpy((uint8_t *)io->dst[0] + 4 * l, &v, sizeof v);
    }
}

/* Elements of 1, 2 and 4 bytes travel in 32-bit registers, of 8 in 64-bit ones. */
void hw_h_surf(hw_frame *f, uint32_t lanes, const hw_lane_arrays *io, uint64_t aux)
{
    uint32_t bytes = (uint32_t)(aux >> HW_SURF_BYTES_SHIFT) & 15,
             count = (uint32_t)(aux >> HW_SURF_COUNT_SHIFT) & 7;
    uint32_t stride = bytes > 4 ? 8 : 4;
    const layout o = layout_of(aux);
    looked_up last = { 0, NULL };
    hw_tex_place p = { .lod = 0 };
    if (anybody_listens(f))
        tell_surf(f, lanes, io, aux);
    FOR_LANES(l, lanes)
    {
        uint64_t address;
        const hw_texture *t = texture_of(f, io, l, &last);
        place_of(io, &o, l, &p);
        if (!hw_surface_address(t, aux, &p, &address))
            hw_raise(f, HW_F_ILLEGAL_ADDRESS, f->fault_loc,
                     "surface access at (%d, %d, %d), outside the surface", p.i[0], p.i[1], p.i[2]);
        if (aux & HW_SURF_REDUCE)
            combine(f, io, t, aux, o.behind, l, address);
        else if (aux & HW_SURF_FORMAT)
            store_texel(io, t, o.behind, l, address);
        for (uint32_t k = 0; k < count && !(aux & (HW_SURF_REDUCE | HW_SURF_FORMAT)); k++) {
            uint8_t *memory = (uint8_t *)(uintptr_t)(address + k * bytes);
            uint64_t v = 0;
            if (aux & HW_SURF_STORE) {
                memcpy(&v, (const uint8_t *)io->src[o.behind + k] + stride * l, stride);
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
