// SPDX-License-Identifier: Apache-2.0
// Tensor memory: products of every kind and layout, loads and stores of every shape, copies, shifts, barriers told, in one block and in pairs. After each
// kernel all cells are compared with a model of tensor memory on the host.
// arch: sm_100a
// device: b200
// options: -O2
#include "check.h"
#include "gmma.h"
#include "lists.h"
#include "matrices.h"

enum { LANES = 128, COLUMNS = 512, CELLS = LANES * COLUMNS };

// ---- a kernel: cells in, something done by one thread, cells out ----

struct Job {
    const uint32_t *in; // [block][column][lane]
    uint32_t *out;
    const uint8_t *image; // of each block's shared memory
    uint32_t bytes, steps, step_a, step_b, idesc, d, a_cell, issuer;
    uint64_t desc_a, desc_b;
    int add;
    uint32_t keep[8];
    uint32_t scale_a, scale_b, indices, cells_a; // columns; the last of A, a step
    uint64_t zeros;
};

static __device__ void cells_in(uint32_t address, const uint32_t *in)
{
    for (uint32_t c = 0; c < COLUMNS; c += 4) {
        const uint32_t *v = in + c * LANES + threadIdx.x;
        asm volatile("tcgen05.st.sync.aligned.32x32b.x4.b32 [%0], {%1,%2,%3,%4};" ::"r"(address + c), "r"(v[0]), "r"(v[LANES]), "r"(v[2 * LANES]), "r"(v[3 * LANES]) : "memory");
    }
    asm volatile("tcgen05.wait::st.sync.aligned;" ::: "memory");
}

static __device__ void cells_out(uint32_t address, uint32_t *out)
{
    for (uint32_t c = 0; c < COLUMNS; c += 4) {
        uint32_t *v = out + c * LANES + threadIdx.x, r[4];
        asm volatile("tcgen05.ld.sync.aligned.32x32b.x4.b32 {%0,%1,%2,%3}, [%4];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(address + c) : "memory");
        asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory");
        for (int i = 0; i < 4; i++)
            v[i * LANES] = r[i];
    }
}

static __device__ uint32_t rank_in_cluster()
{
    uint32_t r;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(r));
    return r;
}

#define TCGEN_ALLOC(group, to, n) asm volatile("tcgen05.alloc.cta_group::" group ".sync.aligned.shared::cta.b32 [%0], %1;" ::"r"(at(to)), "r"(n) : "memory")
#define TCGEN_FREE(group, address, n) asm volatile("tcgen05.dealloc.cta_group::" group ".sync.aligned.b32 %0, %1;" ::"r"(address), "r"(n) : "memory")
#define TCGEN_DONE(group) asm volatile("tcgen05.relinquish_alloc_permit.cta_group::" group ".sync.aligned;" ::: "memory")

// BODY runs in thread 0 of one block: `address`, `tile` and the job j are there, at its end comes the commit.
#define AROUND(group, BODY)                                                                                                                        \
    extern __shared__ __align__(1024) uint8_t tile[];                                                                                             \
    __shared__ uint32_t address_at;                                                                                                              \
    __shared__ uint64_t done;                                                                                                                    \
    const bool pair = group[0] == '2';                                                                                                          \
    uint32_t rank = pair ? rank_in_cluster() : 0;                                                                                               \
    for (uint32_t i = threadIdx.x; i < j.bytes; i += blockDim.x)                                                                                  \
        tile[i] = j.image[rank * j.bytes + i];                                                                                                   \
    if (threadIdx.x == 0)                                                                                                                        \
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(at(&done)) : "memory");                                                        \
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");                                                                                  \
    if (threadIdx.x < 32) {                                                                                                                      \
        TCGEN_ALLOC(group, &address_at, COLUMNS);                                                                                                \
        TCGEN_DONE(group);                                                                                                                       \
    }                                                                                                                                            \
    __syncthreads();                                                                                                                             \
    uint32_t address = address_at, own = address + (threadIdx.x / 32 << 21);                                                                      \
    cells_in(own, j.in + rank * CELLS);                                                                                                          \
    asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");                                                                              \
    __syncthreads();                                                                                                                             \
    if (pair)                                                                                                                                    \
        asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");                                                \
    asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");                                                                               \
    if (threadIdx.x == 0 && rank == j.issuer) {                                                                                                   \
        BODY if (pair) asm volatile("tcgen05.commit.cta_group::" group ".mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%0], %1;" ::"r"(at(&done)), \
                                    "h"((unsigned short)3)                                                                                        \
                                    : "memory");                                                                                                  \
        else asm volatile("tcgen05.commit.cta_group::" group ".mbarrier::arrive::one.b64 [%0];" ::"l"(&done) : "memory");                           \
    }                                                                                                                                            \
    asm volatile("{.reg .pred p; W: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0; @!p bra W;}" ::"r"(at(&done)) : "memory");                 \
    asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");                                                                               \
    cells_out(own, j.out + rank * CELLS);                                                                                                        \
    __syncthreads();                                                                                                                             \
    if (pair)                                                                                                                                    \
        asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");                                                \
    if (threadIdx.x < 32)                                                                                                                        \
        TCGEN_FREE(group, address, COLUMNS);

// ---- products ----

struct Form {
    void (*run)(Job);
    char kind;  // h of 16 bits, t tf32, 8 floats of 8 bits and less, i integers; with scales m of 8 bits and less, 4 and n of 4 bits, u of 96 of them
    int group;
    bool cells, ws; // A in tensor memory; weight stationary
    int scale_d;   // or elements of k that have a scale
    int more;      // KEEPS and the like
    const char *name;
};
enum { KEEPS = 1, SHIFTS_A = 2, ZEROS = 4, SPARSE = 8 };
static std::vector<Form> forms;

#define MULTIPLY(text, A, B, rest)                                                                                                                  \
    for (uint32_t s = 0; s < j.steps; s++) {                                                                                                      \
        uint32_t indices = address + j.indices + s * 2;                                                                                           \
        uint64_t da = j.desc_a + ((at(tile) + s * j.step_a) >> 4), db = j.desc_b + ((at(tile) + s * j.step_b) >> 4);                                \
        uint32_t ca = address + j.a_cell + s * j.cells_a;                                                                                                 \
        asm volatile("{.reg .pred p; setp.ne.b32 p,%0,0; " text " [%1], " A ", " B ", %5, " rest "}" ::"r"((int)(s || j.add)), "r"(address + j.d), "l"(da),   \
                     "r"(ca), "l"(db), "r"(j.idesc), "r"(j.keep[0]), "r"(j.keep[1]), "r"(j.keep[2]), "r"(j.keep[3]), "r"(j.keep[4]), "r"(j.keep[5]),   \
                     "r"(j.keep[6]), "r"(j.keep[7]), "r"(address + j.scale_a), "r"(address + j.scale_b), "l"(j.zeros), "r"(indices)    \
                     : "memory");                                                                                                                 \
    }
#define SHARED_A "%2"
#define CELLS_A "[%3]"
#define INDICES "%4, [%17]"
#define B_OF_0 "%4"
#define B_OF_KEEPS "%4"
#define B_OF_SHIFTS_A "%4"
#define B_OF_ZEROS "%4"
#define B_OF_SPARSE INDICES
#define FORM(id, text, kind, group, A, rest, cells, ws, scale, more)                                                                              \
    static __global__ void id(const __grid_constant__ Job j)                                                                                      \
    {                                                                                                                                            \
        AROUND(#group, MULTIPLY(text, A, B_OF_##more, rest))                                                                                                  \
    }                                                                                                                                            \
    static const bool known_##id = (forms.push_back({ (void (*)(Job))id, kind, group, cells, ws, scale, more, #id }), true);

FORM(half_shared, "tcgen05.mma.cta_group::1.kind::f16", 'h', 1, SHARED_A, "p;", false, false, 0, 0)
FORM(half_cells, "tcgen05.mma.cta_group::1.kind::f16", 'h', 1, CELLS_A, "p;", true, false, 0, 0)
FORM(half_scaled, "tcgen05.mma.cta_group::1.kind::f16.collector::a::fill", 'h', 1, SHARED_A, "p, 3;", false, false, 3, 0)
FORM(half_kept, "tcgen05.mma.cta_group::1.kind::f16", 'h', 1, SHARED_A, "{%6,%7,%8,%9}, p, 1;", false, false, 1, KEEPS)
FORM(tf_shared, "tcgen05.mma.cta_group::1.kind::tf32.collector::a::lastuse", 't', 1, SHARED_A, "p;", false, false, 0, 0)
FORM(tf_cells, "tcgen05.mma.cta_group::1.kind::tf32", 't', 1, CELLS_A, "p;", true, false, 0, 0)
FORM(narrow_shared, "tcgen05.mma.cta_group::1.kind::f8f6f4", '8', 1, SHARED_A, "p;", false, false, 0, 0)
FORM(narrow_cells, "tcgen05.mma.cta_group::1.kind::f8f6f4", '8', 1, CELLS_A, "{%6,%7,%8,%9}, p;", true, false, 0, KEEPS)
FORM(int_shared, "tcgen05.mma.cta_group::1.kind::i8", 'i', 1, SHARED_A, "p;", false, false, 0, 0)
FORM(int_cells, "tcgen05.mma.cta_group::1.kind::i8", 'i', 1, CELLS_A, "p;", true, false, 0, 0)
FORM(half_ws, "tcgen05.mma.ws.cta_group::1.kind::f16.collector::b1::fill", 'h', 1, SHARED_A, "p;", false, true, 0, 0)
FORM(half_ws_cells, "tcgen05.mma.ws.cta_group::1.kind::f16", 'h', 1, CELLS_A, "p;", true, true, 0, 0)
FORM(tf_ws, "tcgen05.mma.ws.cta_group::1.kind::tf32", 't', 1, SHARED_A, "p;", false, true, 0, 0)
FORM(narrow_ws, "tcgen05.mma.ws.cta_group::1.kind::f8f6f4", '8', 1, SHARED_A, "p;", false, true, 0, 0)
FORM(int_ws_cells, "tcgen05.mma.ws.cta_group::1.kind::i8", 'i', 1, CELLS_A, "p;", true, true, 0, 0)
FORM(half_pair, "tcgen05.mma.cta_group::2.kind::f16", 'h', 2, SHARED_A, "p;", false, false, 0, 0)
FORM(half_pair_cells, "tcgen05.mma.cta_group::2.kind::f16", 'h', 2, CELLS_A, "{%6,%7,%8,%9,%10,%11,%12,%13}, p;", true, false, 0, KEEPS)
FORM(tf_pair, "tcgen05.mma.cta_group::2.kind::tf32", 't', 2, SHARED_A, "p;", false, false, 0, 0)
FORM(narrow_pair, "tcgen05.mma.cta_group::2.kind::f8f6f4", '8', 2, SHARED_A, "p;", false, false, 0, 0)
FORM(int_pair, "tcgen05.mma.cta_group::2.kind::i8", 'i', 2, SHARED_A, "p;", false, false, 0, 0)

FORM(half_ashift, "tcgen05.mma.cta_group::1.kind::f16.ashift", 'h', 1, CELLS_A, "p;", true, false, 0, SHIFTS_A)
FORM(narrow_pair_ashift, "tcgen05.mma.cta_group::2.kind::f8f6f4.ashift.collector::a::lastuse", '8', 2, CELLS_A, "p;", true, false, 0, SHIFTS_A)
FORM(half_zeros, "tcgen05.mma.ws.cta_group::1.kind::f16", 'h', 1, SHARED_A, "p, %16;", false, true, 0, ZEROS)
FORM(int_zeros, "tcgen05.mma.ws.cta_group::1.kind::i8", 'i', 1, CELLS_A, "p, %16;", true, true, 0, ZEROS)
#define SCALES "[%14], [%15], p;"
FORM(mx8, "tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale", 'm', 1, SHARED_A, SCALES, false, false, 32, 0)
FORM(mx8_cells, "tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale.scale_vec::1X", 'm', 1, CELLS_A, SCALES, true, false, 32, 0)
FORM(mx8_pair, "tcgen05.mma.cta_group::2.kind::mxf8f6f4.block_scale.block32", 'm', 2, SHARED_A, SCALES, false, false, 32, 0)
FORM(mx4, "tcgen05.mma.cta_group::1.kind::mxf4.block_scale", '4', 1, SHARED_A, SCALES, false, false, 32, 0)
FORM(mx4_pair, "tcgen05.mma.cta_group::2.kind::mxf4.block_scale.scale_vec::2X", '4', 2, SHARED_A, SCALES, false, false, 32, 0)
FORM(nv4, "tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.block16", 'n', 1, SHARED_A, SCALES, false, false, 16, 0)
FORM(nv4_cells, "tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.scale_vec::4X", 'n', 1, CELLS_A, SCALES, true, false, 16, 0)
FORM(nv4_pair, "tcgen05.mma.cta_group::2.kind::mxf4nvf4.block_scale.scale_vec::4X", 'n', 2, CELLS_A, SCALES, true, false, 16, 0)
FORM(nv4_of_32, "tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.scale_vec::2X", 'n', 1, SHARED_A, SCALES, false, false, 32, 0)
FORM(nv4_96, "tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.block16", 'u', 1, SHARED_A, SCALES, false, false, 16, 0)
FORM(nv4_96_of_32, "tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.block32", 'u', 1, CELLS_A, SCALES, true, false, 32, 0)
FORM(mx4_96_pair, "tcgen05.mma.cta_group::2.kind::mxf4.block_scale.block32", 'u', 2, SHARED_A, SCALES, false, false, 32, 0)
FORM(half_sparse, "tcgen05.mma.sp.cta_group::1.kind::f16", 'h', 1, SHARED_A, "p;", false, false, 0, SPARSE)
FORM(half_sparse_cells, "tcgen05.mma.sp.cta_group::1.kind::f16.collector::a::fill", 'h', 1, CELLS_A, "p, 2;", true, false, 2, SPARSE)
FORM(half_sparse_pair, "tcgen05.mma.sp.cta_group::2.kind::f16", 'h', 2, SHARED_A, "p;", false, false, 0, SPARSE)
FORM(half_sparse_ws, "tcgen05.mma.ws.sp.cta_group::1.kind::f16", 'h', 1, SHARED_A, "p;", false, true, 0, SPARSE)
FORM(tf_sparse, "tcgen05.mma.sp.cta_group::1.kind::tf32", 't', 1, SHARED_A, "p;", false, false, 0, SPARSE)
FORM(tf_sparse_ws, "tcgen05.mma.ws.sp.cta_group::1.kind::tf32", 't', 1, CELLS_A, "p;", true, true, 0, SPARSE)
FORM(narrow_sparse, "tcgen05.mma.sp.cta_group::1.kind::f8f6f4", '8', 1, SHARED_A, "p;", false, false, 0, SPARSE)
FORM(int_sparse_pair, "tcgen05.mma.sp.cta_group::2.kind::i8", 'i', 2, SHARED_A, "p;", false, false, 0, SPARSE)
FORM(mx8_sparse, "tcgen05.mma.sp.cta_group::1.kind::mxf8f6f4.block_scale", 'm', 1, SHARED_A, SCALES, false, false, 32, SPARSE)
FORM(nv4_sparse_pair, "tcgen05.mma.sp.cta_group::2.kind::mxf4nvf4.block_scale.scale_vec::4X", 'n', 2, CELLS_A, SCALES, true, false, 16, SPARSE)

// ---- the host's side ----

struct Case {
    unsigned m, n, steps;
    char a, b, d;
    int mode_a, mode_b;
    bool mn_a, mn_b, negate_a, negate_b, saturate, add;
    bool ue4m3; // scales
    unsigned id_a, id_b, selector;
    bool infinite; // where A has nothing
};

static bool scaled(const Form &f) { return strchr("m4nu", f.kind) != NULL; }
static unsigned container(char type) { return type != 'p' && bits_of(type) < 8 ? 8 : bits_of(type); } // bits that an element takes in its place
static unsigned k_of(const Form &f) { return f.kind == 'h' ? 16 : f.kind == 't' ? 8 : f.kind == '4' || f.kind == 'n' ? 64 : f.kind == 'u' ? 96 : 32; }

// Strides of a matrix, dense but for gaps where there may be some, and the bytes to the next step.
static gmma_layout layout_of(char type, int mode, bool mn, unsigned rows, unsigned k, unsigned steps, uint32_t *step, uint32_t *bytes)
{
    unsigned pieces = k * container(type) / 128; // of 16 bytes, a step

    gmma_layout g = { container(type), mode, mn, 16, 0 };
    unsigned wide = gmma_width(&g), atom = mn && mode ? wide * 16 * gmma_deep(&g) : 128 * wide, T = 128 / g.bits;
    if (!mn && mode) {
        g.stride = atom;
        *step = 16 * pieces;
        *bytes = atom * rows / 8;
    } else if (!mn) {
        g.stride = 128 + 16;
        g.leading = g.stride * rows / 8;
        *step = (uint32_t)(pieces * g.leading);
        *bytes = *step * steps;
    } else if (mode) {
        g.stride = atom;
        g.leading = (size_t)atom * (k / gmma_deep(&g)) * steps + (rows > T * wide ? 1024 : 0);
        *step = atom * (k / gmma_deep(&g));
        *bytes = (uint32_t)(g.leading * ((rows + T * wide - 1) / (T * wide)));
    } else {
        g.stride = 128;
        g.leading = 128 * rows / T + 32;
        *step = (uint32_t)(k / 8 * g.leading);
        *bytes = *step * steps;
    }
    *bytes = (*bytes + 1023) / 1024 * 1024;
    return g;
}

// Rows from `first` on, as many as the layout is for.
static void fill(uint8_t *image, const gmma_layout &g, char type, const Matrix &m, unsigned first, unsigned rows, uint32_t bytes)
{
    unsigned run = type == 'p' ? 32 : bits_of(type) < 8 ? 16 : 1; // narrow floats stand together at the start of 16 bytes
    for (unsigned r = 0; r < rows; r++)
        for (unsigned k = 0; k < m.k; k++) {
            size_t place = gmma_place(&g, r, k / run * run);
            if (place >= bytes)
                exit(4);
            put(image + place, type, k % run, m(first + r, k));
        }
}

// The cells of an element of D, or the lanes that need a row of A (PTX ISA 9.7.16.10.5): in which block, lane and column.
struct Place {
    unsigned block, lane, column;
};
static std::vector<Place> places(const Form &f, unsigned m, unsigned n, unsigned align, unsigned row, int col)
{
    unsigned each = m / f.group, parts = 1, block = row / each, r = row % each;
    if (f.ws)
        parts = 128 / m;
    else if (f.group == 2 && m == 128 && !(f.more & SPARSE))
        parts = 2;
    else if (each == 64)
        return { { block, r % 16 + r / 16 * 32 + align, col < 0 ? 0 : (unsigned)col } };
    std::vector<Place> all;
    for (unsigned p = 0; p < parts; p++)
        if (col < 0 || (unsigned)col / (n / parts) == p)
            all.push_back({ block, r + p * (128 / parts), col < 0 ? 0 : col % (n / parts) });
    return all;
}

static uint32_t descriptor_of(const Form &f, const Case &c)
{
    auto code = [&](char t) -> uint32_t {
        if (f.kind == 'h') return t == 'b';
        if (f.kind == 't') return 2;
        if (f.kind == 'i') return t == 's';
        if (t == 'p') return 1;
        return (uint32_t)(strchr("45 xyz", t) - "45 xyz");
    };
    if (scaled(f))
        return (f.kind == 'u' ? 1u << 31 : 0) | (f.more & SPARSE ? 4 : 0) | c.id_b << 4 | code(c.a) << 7 | code(c.b) << 10 | (uint32_t)c.negate_a << 13 | (uint32_t)c.negate_b << 14 | (uint32_t)c.mn_a << 15 | (uint32_t)c.mn_b << 16 |
               c.n >> 3 << 17 | (uint32_t)!c.ue4m3 << 23 | c.m >> 7 << 27 | c.id_a << 29;
    uint32_t d = c.d == 'f' ? 1 : c.d == 'i' ? 2 : 0;
    return (uint32_t)c.saturate << 3 | (f.more & SPARSE ? 4 | c.selector : 0) | d << 4 | code(c.a) << 7 | code(c.b) << 10 | (uint32_t)c.negate_a << 13 | (uint32_t)c.negate_b << 14 | (uint32_t)c.mn_a << 15 |
           (uint32_t)c.mn_b << 16 | c.n >> 3 << 17 | c.m >> 4 << 24;
}

typedef std::vector<uint32_t> Cells; // [block][column][lane]

static uint32_t random_word() { return random_below(65536) | random_below(65536) << 16; }
static uint32_t &cell(Cells &c, const Place &p, unsigned column) { return c[(p.block * COLUMNS + column + p.column) * LANES + p.lane]; }

static void compare(const Cells &want, const uint32_t *got, const char *name)
{
    for (size_t i = 0; i < want.size(); i++)
        if (want[i] != got[i]) {
            if (failures++ < 10)
                printf("%s: block %zu, column %zu, lane %zu: %08x, should be %08x\n", name, i / CELLS, i / LANES % COLUMNS, i % LANES, got[i], want[i]);
            return;
        }
}

struct Move {
    uint32_t *registers; // [thread][REGISTERS]
    const uint32_t *in;  // cells
    uint32_t *out;
    uint32_t column, lane; // the latter in the warp's quarter
    bool loads, packed;
};

static unsigned bytes_of(const Job &j) { return j.bytes; }
static unsigned bytes_of(const Move &) { return 0; }

template <typename J> static void launch(void (*kernel)(J), const J &j, int group, const char *name)
{
    cudaFuncSetAttribute((const void *)kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, 220 * 1024);
    cudaLaunchConfig_t config = {};
    cudaLaunchAttribute attribute;
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim.x = (unsigned)group, attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
    config.gridDim = (unsigned)group, config.blockDim = 128, config.dynamicSmemBytes = bytes_of(j);
    config.attrs = &attribute, config.numAttrs = group > 1;
    expect(cudaLaunchKernelEx(&config, kernel, j), cudaSuccess, name);
    finish(name);
}

// As D's type holds it.
static double kept(const Case &c, double sum)
{
    if (c.d != 'i')
        return decoded(c.d, encoded(c.d, sum));
    return c.saturate && sum > INT32_MAX ? INT32_MAX : (double)(int32_t)(uint32_t)(int64_t)sum;
}

// Scales of rows of A or columns of B: [row][chunk of k], and where they stand (9.7.16.10.7.2, .3): each row's in one cell, from byte `id` on, thirty-two rows to
// a column, the same for each quarter of the lanes, or for each half, where these have columns of their own.
struct Scales {
    unsigned chunks;
    std::vector<double> v;
    std::vector<uint8_t> bytes;
    Scales(unsigned rows, unsigned chunks, bool ue4m3) : chunks(chunks), v(rows * chunks), bytes(rows * chunks)
    {
        for (size_t i = 0; i < v.size(); i++) {
            v[i] = ue4m3 ? (1 + random_below(15)) / 8.0 : ldexp(1, (int)random_below(7) - 3);
            bytes[i] = ue4m3 ? (uint8_t)encoded('4', v[i]) : (uint8_t)(127 + ilogb(v[i]));
        }
    }
    void put(Cells &cells, unsigned block, unsigned column, unsigned id, unsigned first, unsigned rows, unsigned parts) const
    {
        unsigned each = rows / parts;
        for (unsigned row = 0; row < rows; row++)
            for (unsigned quarter = 0; quarter < 4; quarter++)
                for (unsigned c = 0; c < chunks && quarter * parts / 4 == row / each; c++) {
                    unsigned far = (id + c) / 4 * ((each + 127) / 128 * 4), bit = (id + c) % 4 * 8; // beyond a cell: behind the columns of all rows
                    uint32_t &x = cell(cells, { block, quarter * 32 + row % each % 32, row % each / 32 }, column + far);
                    x = (x & ~(0xffu << bit)) | (uint32_t)bytes[(first + row) * chunks + c] << bit;
                }
    }
};

// What a zero-column mask says of n columns, as the manual's examples write it (9.7.16.4.3), `parts` of them apart.
static std::vector<bool> zero_columns(uint64_t d, unsigned n, unsigned parts)
{
    std::vector<bool> all;
    for (unsigned part = 0; part < parts; part++) {
        std::vector<bool> one;
        bool zero = d >> (32 + part) & 1;
        while (one.size() < n + 256) {
            one.insert(one.end(), (d >> (zero ? 40 : 48) & 255) + 1, zero);
            zero = !zero;
        }
        size_t skip = d >> 8 * part & 255;
        for (unsigned i = 0; i < n / parts; i++)
            all.push_back((d >> 39 & 1) && one[skip + i]);
    }
    return all;
}

// A sparse A: its elements that are stored, and which of the whole matrix they are: two of four, one of two of tf32, two pairs of eight of 4 bits.
struct Sparse {
    Matrix whole, stored;
    std::vector<unsigned> indices; // [row][chunk], four bits
    unsigned chunks;
    Sparse(const Matrix &m, char type, bool first) : whole(m), stored(m.rows, m.k / 2, type), indices(), chunks(m.k / (type == 't' ? 2 : type == 'p' ? 8 : 4))
    {
        static const unsigned pairs[] = { 4, 8, 12, 9, 13, 14 }; // of places in ascending order
        unsigned run = type == 'p' ? 2 : 1;
        for (double &x : whole.v)
            x = 0;
        for (unsigned row = 0; row < m.rows; row++)
            for (unsigned c = 0; c < chunks; c++) {
                unsigned which = type == 't' ? (first || random_below(2) ? 4 : 14) : pairs[first ? 0 : random_below(6)];
                indices.push_back(which);
                if (type == 't') {
                    stored.v[row * stored.k + c] = whole.v[row * m.k + c * 2 + (which == 14)] = m(row, c * 2 + (which == 14));
                    continue;
                }
                for (unsigned i = 0; i < 2 * run; i++) {
                    unsigned k = c * 4 * run + (which >> i / run * 2 & 3) * run + i % run;
                    stored.v[row * stored.k + c * 2 * run + i] = whole.v[row * m.k + k] = m(row, k);
                }
            }
    }
    // The cells of the indices of rows of one step (as CUTLASS lays them out: bits of a cell, of wide elements of rows m and m + 8 in one lane, of further k
    // in the lane eight below).
    void put(Cells &cells, const Form &f, const Case &c, unsigned align, unsigned column, unsigned step, unsigned each) const
    {
        bool wide = f.kind == 'h' || f.kind == 't';
        for (unsigned row = 0; row < whole.rows; row++)
            for (const Place &p : places(f, c.m, c.n, align, row, -1))
                for (unsigned i = 0; i < each; i++) {
                    unsigned x = indices[row * chunks + step * each + i], bit = wide ? row / 8 % 2 * 16 + i % 4 * 4 : i * 4;
                    unsigned lane = wide ? p.lane / 16 * 16 + row % 8 + i / 4 * 8 : p.lane;
                    uint32_t &to = cell(cells, { p.block, lane, bit / 32 + (wide ? c.selector : 0) }, column + step * 2);
                    to = (to & ~(15u << bit % 32)) | x << bit % 32;
                }
    }
};

static void check_form(const Form &f, const Case &c)
{
    char name[200];
    snprintf(name, sizeof name, "%s %ux%u %c%c%c modes %d%s %d%s%s", f.name, c.m, c.n, c.a, c.b, c.d, c.mode_a, c.mn_a ? "t" : "", c.mode_b, c.mn_b ? "t" : "", c.add ? " added" : "");
    bool sparse = f.more & SPARSE;
    unsigned each = k_of(f) << sparse, k = each * c.steps, rows = c.m / f.group, columns = c.n / f.group;
    unsigned align = rows == 64 && (f.group == 1 || f.more & SPARSE) && !f.ws && random_below(2) ? 16 : 0;
    unsigned more = f.more & ZEROS ? 32 : 0, parts = f.ws ? 128 / c.m : f.group == 2 && c.m == 128 && !(f.more & SPARSE) ? 2 : 1; // columns of B behind the last
    Matrix a(c.m, k, c.a), b(c.n + more, k, c.b), d(c.m, c.n, c.d == 'i' ? 's' : 'f');
    Sparse sp(a, c.a, c.infinite);
    if (sparse)
        a = sp.whole;
    for (unsigned i = 0; i < b.v.size() && c.infinite; i++)
        if (i % b.k % (c.a == 't' ? 2 : 4) >= (c.a == 't' ? 1 : 2))
            b.v[i] = INFINITY;
    const Matrix &stored = sparse ? sp.stored : a;
    unsigned chunk = scaled(f) ? (unsigned)f.scale_d << sparse : each, chunks = each / chunk;
    Scales sa(c.m, chunks, c.ue4m3), sb(c.n, chunks, c.ue4m3);
    uint64_t zeros = random_word() | (uint64_t)random_below(16) << 32 | (uint64_t)(random_below(4) != 0) << 39 | (uint64_t)random_below(20) << 40 | (uint64_t)random_below(20) << 48 |
                     (uint64_t)random_below(17) << 56;
    std::vector<bool> zero = zero_columns(f.more & ZEROS ? zeros : 0, c.n, parts);
    unsigned shift = f.more & ZEROS ? (unsigned)(zeros >> 56) : 0;
    if (c.saturate)
        for (double &x : d.v)
            x += INT32_MAX - 100000;
    Job j = {};
    uint32_t bytes_a = 0, bytes_b;
    gmma_layout ga = layout_of(c.a, c.mode_a, c.mn_a, rows, k_of(f), c.steps, &j.step_a, &bytes_a), gb = layout_of(c.b, c.mode_b, c.mn_b, columns + more, each, c.steps, &j.step_b, &bytes_b);
    if (f.cells)
        bytes_a = 0;
    j.bytes = bytes_a + bytes_b, j.steps = c.steps, j.add = c.add, j.issuer = random_below((unsigned)f.group), j.idesc = descriptor_of(f, c);
    j.d = 8 * random_below(4) | align << 16, j.a_cell = (320 + 8 * random_below(4)) | align << 16;
    j.scale_a = 464 + random_below(8), j.scale_b = 480 + random_below(8), j.zeros = zeros;
    j.desc_a = tcgen_descriptor(&ga, 0), j.desc_b = tcgen_descriptor(&gb, bytes_a);
    for (uint32_t &w : j.keep)
        w = f.more & KEEPS ? random_word() : 0;
    uint8_t *image = allocate<uint8_t>(j.bytes * f.group);
    Cells cells(CELLS * f.group);
    for (uint32_t &x : cells)
        x = random_word();
    for (int g = 0; g < f.group; g++) {
        if (!f.cells)
            fill(image + g * j.bytes, ga, c.a, stored, g * rows, rows, bytes_a);
        fill(image + g * j.bytes + bytes_a, gb, c.b, b, g * columns, columns + more, bytes_b);
    }
    for (unsigned row = 0; row < c.m; row++) {
        unsigned bits = container(c.a);
        for (const Place &p : places(f, c.m, c.n, align, row, -1))
            for (unsigned i = 0; f.cells && i < stored.k; i++) {
                uint32_t x = (encoded(c.a, stored(row, i)) & (uint32_t)((UINT64_C(1) << bits) - 1)) << (c.a == 'z' ? 2 : 0), &to = cell(cells, p, (j.a_cell & 0xffff) + i * bits / 32);
                to = i * bits % 32 ? to | x << i * bits % 32 : x;
            }
        for (unsigned col = 0; col < c.n; col++)
            cell(cells, places(f, c.m, c.n, align, row, (int)col)[0], j.d & 0xffff) = encoded(c.d, d(row, col)) | (c.d == 'h' ? 0xabcd0000 : 0);
    }
    j.cells_a = stored.k / c.steps * container(c.a) / 32;
    j.indices = (440 + 2 * random_below(4)) | align << 16;
    for (unsigned s = 0; sparse && s < c.steps; s++)
        sp.put(cells, f, c, align, j.indices & 0xffff, s, sp.chunks / c.steps);
    for (unsigned g = 0; scaled(f) && g < (unsigned)f.group; g++) {
        sa.put(cells, g, j.scale_a, c.id_a, g * rows, rows, 1);
        sb.put(cells, g, j.scale_b, c.id_b, 0, c.n, parts);
    }
    uint32_t *in = allocate<uint32_t>(cells.size()), *out = allocate<uint32_t>(cells.size());
    memcpy(in, cells.data(), cells.size() * 4);
    j.in = in, j.out = out, j.image = image;
    for (unsigned row = 0; row < c.m; row++)
        for (unsigned col = 0; col < c.n; col++) {
            double sum = c.add ? d(row, col) : 0;
            for (unsigned s = 0; s < c.steps; s++) { // each step scales what it adds to
                double part = 0;
                unsigned from = f.more & SHIFTS_A && row % rows < rows - 1 ? row + 1 : row;
                for (unsigned i = 0; i < each && !zero[col]; i++)
                    if (a(from, s * each + i) != 0)
                        part += a(from, s * each + i) * b(col + shift, s * each + i) * (scaled(f) ? sa.v[row * chunks + i / chunk] * sb.v[col * chunks + i / chunk] : 1);
                sum = kept(c, ldexp(sum, scaled(f) ? 0 : -f.scale_d) + (c.negate_a != c.negate_b ? -part : part));
            }
            Place p = places(f, c.m, c.n, align, row, (int)col)[0];
            if (!(j.keep[p.block * 4 + p.lane / 32] >> p.lane % 32 & 1))
                cell(cells, p, j.d & 0xffff) = encoded(c.d, sum);
        }
    launch(f.run, j, f.group, name);
    compare(cells, out, name);
    cudaFree(image), cudaFree(in), cudaFree(out);
}

static const char *factor_types(char kind) { return kind == 'h' ? "hb" : kind == 't' ? "t" : kind == 'i' ? "us" : kind == '4' || kind == 'n' || kind == 'u' ? "p" : "45xyz"; }

// A transposed factor has whole bytes, and of 32 bits the swizzle with atoms of 32 bytes, which only those have.
static int fit_mode(char type, int mode, bool *mn)
{
    *mn = *mn && bits_of(type) >= 8;
    if (*mn && type == 't')
        return 4;
    return *mn && mode == 4 ? 1 : mode;
}

static void check_forms()
{
    for (const Form &f : forms)
        for (unsigned round = 0; round < 12; round++) {
            static const unsigned ws_n[] = { 64, 128, 256 };
            const char *types = factor_types(f.kind);
            unsigned kinds = (unsigned)strlen(types);
            Case c = {};
            c.m = f.ws ? 32u << round % 3 : (scaled(f) && (f.group == 1 || f.more & SPARSE || f.kind == 'u')) || f.more & SHIFTS_A ? 128 * f.group : (64u << round % 2) * f.group;
            unsigned step = f.kind == 'i' ? (f.group == 2 ? 32 : 16) : 8 * f.group;
            c.n = f.ws ? ws_n[random_below(f.more & SPARSE ? 2 : 3)] : step * (1 + random_below(256 / step));
            c.a = types[random_below(kinds)];
            c.b = strchr("8im", f.kind) ? types[random_below(kinds)] : c.a;
            c.d = f.kind == 'i' ? 'i' : f.kind != 't' && !scaled(f) && random_below(2) ? 'h' : 'f';
            if (c.a == 'b')
                c.d = 'f';
            c.mn_a = !f.cells && round / 2 % 2, c.mn_b = round / 4 % 2;
            c.mode_a = fit_mode(c.a, (int)random_below(5), &c.mn_a), c.mode_b = fit_mode(c.b, (int)random_below(5), &c.mn_b);
            if (c.mn_b && container(c.b) == 8 && c.n % (16 * f.group))
                c.n = 16 * f.group;
            if (c.mn_b && c.mode_b) // whole atoms of columns
                while (c.n / f.group * bits_of(c.b) / 8 % 16)
                    c.n += step;
            if (f.more & SPARSE) { // B has 64 bytes of k, for which an atom of 32 has no room
                c.selector = f.kind == 'h' || f.kind == 't' ? random_below(2) : 0;
                c.mode_b = c.mode_b == 3 && !c.mn_b ? 1 : c.mode_b;
                c.infinite = strchr("hbt5", c.b) && random_below(2);
            }
            // K-major atoms have room for so many steps of 32 bytes
            gmma_layout a = { 8, c.mode_a, 0, 0, 0 }, b = { 8, c.mode_b, 0, 0, 0 };
            c.steps = 1 + random_below(4);
            unsigned pieces_a = f.kind == 'u' ? 3 : 2;
            if (f.kind == 'u' && c.mode_a == 3)
                c.mode_a = 2;
            a.mode = c.mode_a;
            if (!f.cells && !c.mn_a && c.mode_a && gmma_width(&a) / pieces_a < c.steps)
                c.steps = gmma_width(&a) / pieces_a;
            unsigned pieces_b = f.more & SPARSE ? 4 : pieces_a;
            if (f.kind == 'u' && c.mode_b == 3)
                c.mode_b = 0;
            b.mode = c.mode_b;
            if (!c.mn_b && c.mode_b && gmma_width(&b) / pieces_b < c.steps)
                c.steps = gmma_width(&b) / pieces_b;
            c.ue4m3 = (f.kind == 'n' || f.kind == 'u') && f.scale_d == 16 && random_below(2);
            unsigned count = scaled(f) ? k_of(f) / (unsigned)f.scale_d : 4;
            if (f.kind == 'u')
                count = f.scale_d == 16 ? 2 : 1;
            c.id_a = random_below(4) / count * count, c.id_b = random_below(4) / count * count;
            c.add = random_below(2), c.saturate = f.kind == 'i' && random_below(2);
            c.negate_a = f.kind != 'i' && random_below(2), c.negate_b = f.kind != 'i' && random_below(2);
            check_form(f, c);
        }
}

// ---- registers to cells and back ----

enum { REGISTERS = 128 };

struct Shape {
    void (*run)(Move);
    char kind; // a 32x32b, b 16x64b, c 16x128b, d 16x256b, e 16x32bx2
    unsigned registers, distance;
    const char *name;
};
static std::vector<Shape> shapes;

#define LOADED(text, n, distance) "tcgen05.ld.sync.aligned." text ".b32 {" TO_##n(FIRST, MORE) "}, [%1]" distance "; tcgen05.wait::ld.sync.aligned;" TO_##n(PUT, PUT)
#define STORED(text, n, distance) TO_##n(GET, GET) "tcgen05.st.sync.aligned." text ".b32 [%1]" distance ", {" TO_##n(FIRST, MORE) "}; tcgen05.wait::st.sync.aligned;"
#define SHAPE(id, kind, text, n, distance, wide)                                                                                                    \
    static __global__ void id(Move j)                                                                                                             \
    {                                                                                                                                            \
        __shared__ uint32_t address_at;                                                                                                          \
        if (threadIdx.x < 32)                                                                                                                    \
            TCGEN_ALLOC("1", &address_at, COLUMNS);                                                                                              \
        __syncthreads();                                                                                                                         \
        uint32_t own = address_at + (threadIdx.x / 32 << 21), where = own + j.column + (j.lane << 16), *registers = j.registers + threadIdx.x * REGISTERS; \
        cells_in(own, j.in);                                                                                                                     \
        if (j.loads && j.packed)                                                                                                                 \
            asm volatile("{.reg .b32 d<128>; " LOADED(text ".pack::16b", n, wide) "}" ::"l"(registers), "r"(where) : "memory");                     \
        else if (j.loads)                                                                                                                        \
            asm volatile("{.reg .b32 d<128>; " LOADED(text, n, distance) "}" ::"l"(registers), "r"(where) : "memory");                              \
        else if (j.packed)                                                                                                                       \
            asm volatile("{.reg .b32 d<128>; " STORED(text ".unpack::16b", n, wide) "}" ::"l"(registers), "r"(where) : "memory");                    \
        else                                                                                                                                     \
            asm volatile("{.reg .b32 d<128>; " STORED(text, n, distance) "}" ::"l"(registers), "r"(where) : "memory");                              \
        cells_out(own, j.out);                                                                                                                   \
        __syncthreads();                                                                                                                         \
        if (threadIdx.x < 32)                                                                                                                    \
            TCGEN_FREE("1", address_at, COLUMNS);                                                                                                \
    }                                                                                                                                            \
    static const bool known_##id = (shapes.push_back({ id, kind, n, (unsigned)atoi(distance "   " + 1), #id }), true);

SHAPE(rows_1, 'a', "32x32b.x1", 1, "", "")
SHAPE(rows_8, 'a', "32x32b.x8", 8, "", "")
SHAPE(rows_128, 'a', "32x32b.x128", 128, "", "")
SHAPE(b_1, 'b', "16x64b.x1", 1, "", "")
SHAPE(b_4, 'b', "16x64b.x4", 4, "", "")
SHAPE(b_32, 'b', "16x64b.x32", 32, "", "")
SHAPE(b_128, 'b', "16x64b.x128", 128, "", "")
SHAPE(c_1, 'c', "16x128b.x1", 2, "", "")
SHAPE(c_8, 'c', "16x128b.x8", 16, "", "")
SHAPE(c_64, 'c', "16x128b.x64", 128, "", "")
SHAPE(d_1, 'd', "16x256b.x1", 4, "", "")
SHAPE(d_2, 'd', "16x256b.x2", 8, "", "")
SHAPE(d_32, 'd', "16x256b.x32", 128, "", "")
SHAPE(halves_1, 'e', "16x32bx2.x1", 1, ", 1", ", 2")
SHAPE(halves_2, 'e', "16x32bx2.x2", 2, ", 17", ", 34")
SHAPE(halves_64, 'e', "16x32bx2.x64", 64, ", 64", ", 128")

// Where register r of thread t of a warp goes, in lanes and columns (figures of 9.7.16.2.3.1), as what each bit of their numbers adds.
static Place place_of(const Shape &s, unsigned t, unsigned r)
{
    const struct {
        unsigned lane[5], column[5], row[2], word[2], rest; // of the thread's bits; of the register's lower two, which some shapes have; of the others
    } bits[] = {
        { { 1, 2, 4, 8, 16 }, { 0, 0, 0, 0, 0 }, { 0, 0 }, { 0, 0 }, 1 },  { { 8, 0, 1, 2, 4 }, { 0, 1, 0, 0, 0 }, { 0, 0 }, { 0, 0 }, 2 },
        { { 0, 0, 1, 2, 4 }, { 1, 2, 0, 0, 0 }, { 8, 0 }, { 0, 0 }, 4 },  { { 0, 0, 1, 2, 4 }, { 2, 4, 0, 0, 0 }, { 0, 8 }, { 1, 0 }, 8 },
        { { 1, 2, 4, 8, 0 }, { 0, 0, 0, 0, s.distance }, { 0, 0 }, { 0, 0 }, 1 },
    };
    static const unsigned own_bits[] = { 0, 0, 1, 2, 0 };
    const auto &b = bits[s.kind - 'a'];
    Place p = { 0, 0, 0 };
    for (unsigned i = 0; i < 5; i++)
        if (t >> i & 1)
            p.lane += b.lane[i], p.column += b.column[i];
    for (unsigned i = 0; i < own_bits[s.kind - 'a']; i++)
        if (r >> i & 1)
            p.lane += b.row[i], p.column += b.word[i];
    p.column += (r >> own_bits[s.kind - 'a']) * b.rest;
    return p;
}

static void check_shapes()
{
    uint32_t *registers = allocate<uint32_t>(128 * REGISTERS), *in = allocate<uint32_t>(CELLS), *out = allocate<uint32_t>(CELLS);
    for (const Shape &s : shapes)
        for (int way = 0; way < 4; way++) {
            Move j = { registers, in, out, 0, 0, (way & 1) != 0, (way & 2) != 0 };
            unsigned wide = j.packed ? 2 : 1, columns = wide * (s.distance + s.registers * (s.kind == 'a' || s.kind == 'e' ? 1 : 2));
            if (columns > COLUMNS)
                continue;
            j.column = random_below(COLUMNS - columns + 1), j.lane = s.kind == 'a' ? 0 : random_below(2) * 16;
            Cells cells(CELLS);
            for (uint32_t &x : cells)
                x = random_word();
            memcpy(in, cells.data(), CELLS * 4);
            for (unsigned i = 0; i < 128 * REGISTERS; i++)
                registers[i] = random_word();
            std::vector<uint32_t> before(registers, registers + 128 * REGISTERS);
            launch(s.run, j, 1, s.name);
            for (unsigned t = 0; t < 128; t++)
                for (unsigned r = 0; r < s.registers; r++) {
                    Place p = place_of(s, t % 32, r);
                    p.lane += t / 32 * 32 + j.lane, p.column *= wide;
                    uint32_t x = before[t * REGISTERS + r], &low = cell(cells, p, j.column), &high = cell(cells, p, j.column + wide - 1);
                    if (j.loads)
                        expect(registers[t * REGISTERS + r], j.packed ? (low & 0xffff) | high << 16 : low, s.name);
                    else if (j.packed)
                        low = x & 0xffff, high = x >> 16;
                    else
                        low = x;
                }
            compare(cells, out, s.name);
        }
    cudaFree(registers), cudaFree(in), cudaFree(out);
}

// ---- copies and shifts ----

struct Copy {
    void (*run)(Job);
    int group;
    unsigned rows, pieces; // of 16 bytes, a row
    unsigned bits;         // of an element: 6, 4; else 0
    char lanes;            // where rows go: = the same, 2 also 64 on, 1 32 on (from row 32 on 64 further), 4 all quarters, s 32 apart
    const char *name;
};
static std::vector<Copy> copies;

#define COPY(id, text, group, rows, pieces, bits, lanes)                                                                                           \
    static __global__ void id(const __grid_constant__ Job j)                                                                                      \
    {                                                                                                                                            \
        AROUND(#group, asm volatile("tcgen05.cp.cta_group::" #group "." text " [%0], %1;" ::"r"(address + j.d), "l"(j.desc_a + (at(tile) >> 4)) : "memory");) \
    }                                                                                                                                            \
    static const bool known_##id = (copies.push_back({ (void (*)(Job))id, group, rows, pieces, bits, lanes, #id }), true);

COPY(cp_128x256, "128x256b", 1, 128, 2, 0, '=')
COPY(cp_128x128, "128x128b", 1, 128, 1, 0, '=')
COPY(cp_128x128_6, "128x128b.b8x16.b6x16_p32", 1, 128, 1, 6, '=')
COPY(cp_128x256_4, "128x256b.b8x16.b4x16_p64", 1, 128, 2, 4, '=')
COPY(cp_4x256, "4x256b", 1, 4, 2, 0, 's')
COPY(cp_64_02, "64x128b.warpx2::02_13", 1, 64, 1, 0, '2')
COPY(cp_64_01, "64x128b.warpx2::01_23", 1, 64, 1, 0, '1')
COPY(cp_32, "32x128b.warpx4", 1, 32, 1, 0, '4')
COPY(cp_32_4, "32x128b.warpx4.b8x16.b4x16_p64", 1, 32, 1, 4, '4')
COPY(cp_pair, "128x256b", 2, 128, 2, 0, '=')
COPY(cp_pair_32, "32x128b.warpx4", 2, 32, 1, 0, '4')

static void check_copies()
{
    for (const Copy &c : copies)
        for (int mode = 0; mode < 5; mode++) {
            Job j = {};
            uint32_t step;
            gmma_layout g = layout_of('u', mode, false, c.rows < 8 ? 8 : c.rows, 32, 1, &step, &j.bytes);
            j.desc_a = tcgen_descriptor(&g, 0), j.issuer = random_below((unsigned)c.group);
            unsigned lane = c.lanes == 's' ? random_below(32) : 0;
            j.d = 4 * random_below(100) | lane << 16;
            uint8_t *image = allocate<uint8_t>(j.bytes * c.group);
            for (size_t i = 0; i < (size_t)j.bytes * c.group; i++)
                image[i] = (uint8_t)random_below(256);
            Cells cells(CELLS * c.group);
            for (uint32_t &x : cells)
                x = random_word();
            uint32_t *in = allocate<uint32_t>(cells.size()), *out = allocate<uint32_t>(cells.size());
            memcpy(in, cells.data(), cells.size() * 4);
            for (unsigned b = 0; b < (unsigned)c.group; b++)
                for (unsigned row = 0; row < c.rows; row++)
                    for (unsigned i = 0; i < c.pieces * 16; i++) {
                        const uint8_t *piece = image + b * j.bytes + gmma_place(&g, row, i / 16 * 16);
                        uint32_t byte = piece[i % 16];
                        if (c.bits) { // elements stand together at the start of the piece; 4 bits come to the byte's middle
                            byte = 0;
                            for (unsigned e = 0; e < c.bits; e++)
                                byte |= (uint32_t)(piece[(i % 16 * c.bits + e) / 8] >> (i % 16 * c.bits + e) % 8 & 1) << (e + (c.bits == 4 ? 2 : 0));
                        }
                        std::vector<unsigned> lanes;
                        switch (c.lanes) {
                        case 's': lanes = { lane + 32 * row }; break;
                        case '2': lanes = { row, row + 64 }; break;
                        case '1': lanes = { row % 32 + row / 32 * 64, row % 32 + row / 32 * 64 + 32 }; break;
                        case '4': lanes = { row, row + 32, row + 64, row + 96 }; break;
                        default: lanes = { row };
                        }
                        for (unsigned l : lanes) {
                            uint32_t &x = cell(cells, { b, l, i / 4 }, j.d & 0xffff);
                            x = (x & ~(0xffu << i % 4 * 8)) | byte << i % 4 * 8;
                        }
                    }
            j.in = in, j.out = out, j.image = image;
            launch(c.run, j, c.group, c.name);
            compare(cells, out, c.name);
            cudaFree(image), cudaFree(in), cudaFree(out);
        }
}

static __global__ void shifted(const __grid_constant__ Job j)
{
    AROUND("1", asm volatile("tcgen05.shift.cta_group::1.down [%0];" ::"r"(address + j.d) : "memory");)
}
static __global__ void shifted_pair(const __grid_constant__ Job j)
{
    AROUND("2", asm volatile("tcgen05.shift.cta_group::2.down [%0];" ::"r"(address + j.d) : "memory");)
}

static void check_shifts()
{
    for (int group = 1; group <= 2; group++) {
        Job j = {};
        j.d = 40 | 64 << 16;
        uint32_t *in = allocate<uint32_t>(CELLS * group), *out = allocate<uint32_t>(CELLS * group);
        Cells cells(CELLS * group);
        for (uint32_t &x : cells)
            x = random_word();
        memcpy(in, cells.data(), cells.size() * 4);
        for (unsigned b = 0; b < (unsigned)group; b++)
            for (unsigned lane = 64; lane < 64 + 31; lane++) // each of 31 rows becomes the next one's
                for (unsigned c = 0; c < 8; c++)
                    cell(cells, { b, lane, c }, 40) = in[b * CELLS + (40 + c) * LANES + lane + 1];
        j.in = in, j.out = out, j.image = (const uint8_t *)in;
        launch(group == 1 ? shifted : shifted_pair, j, group, "shift");
        compare(cells, out, "shift");
        cudaFree(in), cudaFree(out);
    }
}

int main()
{
    check_shapes();
    check_copies();
    check_shifts();
    check_forms();
    return report("tcgen");
}
