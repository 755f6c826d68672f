// SPDX-License-Identifier: Apache-2.0
// Tensor memory: products of every kind and layout, loads and stores of every shape, copies, shifts, barriers told, in one block and in pairs. After each
// kernel all cells are compared with a model of tensor memory on the host.
// arch: sm_100a
// device: b200
#include "check.h"
#include "gmma.h"
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
    char kind;  // h of 16 bits, t tf32, 8 floats of 8 bits and less, i integers
    int group;
    bool cells, ws; // A in tensor memory; weight stationary
    int scale_d;
    bool keeps;
    const char *name;
};
static std::vector<Form> forms;

#define MULTIPLY(text, A, rest)                                                                                                                  \
    for (uint32_t s = 0; s < j.steps; s++) {                                                                                                      \
        uint64_t da = j.desc_a + ((at(tile) + s * j.step_a) >> 4), db = j.desc_b + ((at(tile) + s * j.step_b) >> 4);                                \
        uint32_t ca = address + j.a_cell + s * 8;                                                                                                 \
        asm volatile("{.reg .pred p; setp.ne.b32 p,%0,0; " text " [%1], " A ", %4, %5, " rest "}" ::"r"((int)(s || j.add)), "r"(address + j.d), "l"(da),   \
                     "r"(ca), "l"(db), "r"(j.idesc), "r"(j.keep[0]), "r"(j.keep[1]), "r"(j.keep[2]), "r"(j.keep[3]), "r"(j.keep[4]), "r"(j.keep[5]),   \
                     "r"(j.keep[6]), "r"(j.keep[7])                                                                                                \
                     : "memory");                                                                                                                 \
    }
#define SHARED_A "%2"
#define CELLS_A "[%3]"
#define FORM(id, text, kind, group, A, rest, cells, ws, scale, keeps)                                                                              \
    static __global__ void id(const __grid_constant__ Job j)                                                                                      \
    {                                                                                                                                            \
        AROUND(#group, MULTIPLY(text, A, rest))                                                                                                  \
    }                                                                                                                                            \
    static const bool known_##id = (forms.push_back({ (void (*)(Job))id, kind, group, cells, ws, scale, keeps, #id }), true);

FORM(half_shared, "tcgen05.mma.cta_group::1.kind::f16", 'h', 1, SHARED_A, "p;", false, false, 0, false)
FORM(half_cells, "tcgen05.mma.cta_group::1.kind::f16", 'h', 1, CELLS_A, "p;", true, false, 0, false)
FORM(half_scaled, "tcgen05.mma.cta_group::1.kind::f16.collector::a::fill", 'h', 1, SHARED_A, "p, 3;", false, false, 3, false)
FORM(half_kept, "tcgen05.mma.cta_group::1.kind::f16", 'h', 1, SHARED_A, "{%6,%7,%8,%9}, p, 1;", false, false, 1, true)
FORM(tf_shared, "tcgen05.mma.cta_group::1.kind::tf32.collector::a::lastuse", 't', 1, SHARED_A, "p;", false, false, 0, false)
FORM(tf_cells, "tcgen05.mma.cta_group::1.kind::tf32", 't', 1, CELLS_A, "p;", true, false, 0, false)
FORM(narrow_shared, "tcgen05.mma.cta_group::1.kind::f8f6f4", '8', 1, SHARED_A, "p;", false, false, 0, false)
FORM(narrow_cells, "tcgen05.mma.cta_group::1.kind::f8f6f4", '8', 1, CELLS_A, "{%6,%7,%8,%9}, p;", true, false, 0, true)
FORM(int_shared, "tcgen05.mma.cta_group::1.kind::i8", 'i', 1, SHARED_A, "p;", false, false, 0, false)
FORM(int_cells, "tcgen05.mma.cta_group::1.kind::i8", 'i', 1, CELLS_A, "p;", true, false, 0, false)
FORM(half_ws, "tcgen05.mma.ws.cta_group::1.kind::f16.collector::b1::fill", 'h', 1, SHARED_A, "p;", false, true, 0, false)
FORM(half_ws_cells, "tcgen05.mma.ws.cta_group::1.kind::f16", 'h', 1, CELLS_A, "p;", true, true, 0, false)
FORM(tf_ws, "tcgen05.mma.ws.cta_group::1.kind::tf32", 't', 1, SHARED_A, "p;", false, true, 0, false)
FORM(narrow_ws, "tcgen05.mma.ws.cta_group::1.kind::f8f6f4", '8', 1, SHARED_A, "p;", false, true, 0, false)
FORM(int_ws_cells, "tcgen05.mma.ws.cta_group::1.kind::i8", 'i', 1, CELLS_A, "p;", true, true, 0, false)
FORM(half_pair, "tcgen05.mma.cta_group::2.kind::f16", 'h', 2, SHARED_A, "p;", false, false, 0, false)
FORM(half_pair_cells, "tcgen05.mma.cta_group::2.kind::f16", 'h', 2, CELLS_A, "{%6,%7,%8,%9,%10,%11,%12,%13}, p;", true, false, 0, true)
FORM(tf_pair, "tcgen05.mma.cta_group::2.kind::tf32", 't', 2, SHARED_A, "p;", false, false, 0, false)
FORM(narrow_pair, "tcgen05.mma.cta_group::2.kind::f8f6f4", '8', 2, SHARED_A, "p;", false, false, 0, false)
FORM(int_pair, "tcgen05.mma.cta_group::2.kind::i8", 'i', 2, SHARED_A, "p;", false, false, 0, false)

// ---- the host's side ----

struct Case {
    unsigned m, n, steps;
    char a, b, d;
    int mode_a, mode_b;
    bool mn_a, mn_b, negate_a, negate_b, saturate, add;
};

static unsigned container(char type) { return bits_of(type) < 8 ? 8 : bits_of(type); } // bits that an element takes in its place
static unsigned k_of(const Form &f) { return f.kind == 'h' ? 16 : f.kind == 't' ? 8 : 32; }

// Strides of a matrix, dense but for gaps where there may be some, and the bytes to the next step.
static gmma_layout layout_of(char type, int mode, bool mn, unsigned rows, unsigned k, unsigned steps, uint32_t *step, uint32_t *bytes)
{
    gmma_layout g = { container(type), mode, mn, 16, 0 };
    unsigned wide = gmma_width(&g), atom = mn && mode ? wide * 16 * gmma_deep(&g) : 128 * wide, T = 128 / g.bits;
    if (!mn && mode) {
        g.stride = atom;
        *step = 32;
        *bytes = atom * rows / 8;
    } else if (!mn) {
        g.stride = 128 + 16;
        g.leading = g.stride * rows / 8;
        *step = (uint32_t)(2 * g.leading);
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
    unsigned run = bits_of(type) < 8 ? 16 : 1; // narrow floats stand together at the start of 16 bytes
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
    else if (f.group == 2 && m == 128)
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
        return (uint32_t)(strchr("45 xyz", t) - "45 xyz");
    };
    uint32_t d = c.d == 'f' ? 1 : c.d == 'i' ? 2 : 0;
    return (uint32_t)c.saturate << 3 | d << 4 | code(c.a) << 7 | code(c.b) << 10 | (uint32_t)c.negate_a << 13 | (uint32_t)c.negate_b << 14 | (uint32_t)c.mn_a << 15 |
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

template <typename K> static void launch(K kernel, const Job &j, int group, const char *name)
{
    cudaFuncSetAttribute((const void *)kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, 220 * 1024);
    cudaLaunchConfig_t config = {};
    cudaLaunchAttribute attribute;
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim.x = (unsigned)group, attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
    config.gridDim = (unsigned)group, config.blockDim = 128, config.dynamicSmemBytes = j.bytes;
    config.attrs = &attribute, config.numAttrs = group > 1;
    expect(cudaLaunchKernelEx(&config, (void (*)(Job))kernel, j), cudaSuccess, name);
    finish(name);
}

// As D's type holds it.
static double kept(const Case &c, double sum)
{
    if (c.d != 'i')
        return decoded(c.d, encoded(c.d, sum));
    return c.saturate && sum > INT32_MAX ? INT32_MAX : (double)(int32_t)(uint32_t)(int64_t)sum;
}

static void check_form(const Form &f, const Case &c)
{
    char name[200];
    snprintf(name, sizeof name, "%s %ux%u %c%c%c modes %d%s %d%s%s", f.name, c.m, c.n, c.a, c.b, c.d, c.mode_a, c.mn_a ? "t" : "", c.mode_b, c.mn_b ? "t" : "", c.add ? " added" : "");
    unsigned each = k_of(f), k = each * c.steps, rows = c.m / f.group, columns = c.n / f.group;
    unsigned align = rows == 64 && f.group == 1 && !f.ws && random_below(2) ? 16 : 0;
    Matrix a(c.m, k, c.a), b(c.n, k, c.b), d(c.m, c.n, c.d == 'i' ? 's' : 'f');
    if (c.saturate)
        for (double &x : d.v)
            x += INT32_MAX - 100000;
    Job j = {};
    uint32_t bytes_a = 0, bytes_b;
    gmma_layout ga = layout_of(c.a, c.mode_a, c.mn_a, rows, each, c.steps, &j.step_a, &bytes_a), gb = layout_of(c.b, c.mode_b, c.mn_b, columns, each, c.steps, &j.step_b, &bytes_b);
    if (f.cells)
        bytes_a = 0;
    j.bytes = bytes_a + bytes_b, j.steps = c.steps, j.add = c.add, j.issuer = random_below((unsigned)f.group), j.idesc = descriptor_of(f, c);
    j.d = 8 * random_below(4) | align << 16, j.a_cell = (320 + 8 * random_below(4)) | align << 16;
    j.desc_a = tcgen_descriptor(&ga, 0), j.desc_b = tcgen_descriptor(&gb, bytes_a);
    for (uint32_t &w : j.keep)
        w = f.keeps ? random_word() : 0;
    uint8_t *image = allocate<uint8_t>(j.bytes * f.group);
    Cells cells(CELLS * f.group);
    for (uint32_t &x : cells)
        x = random_word();
    for (int g = 0; g < f.group; g++) {
        if (!f.cells)
            fill(image + g * j.bytes, ga, c.a, a, g * rows, rows, bytes_a);
        fill(image + g * j.bytes + bytes_a, gb, c.b, b, g * columns, columns, bytes_b);
    }
    for (unsigned row = 0; row < c.m; row++) {
        unsigned bits = container(c.a);
        for (const Place &p : places(f, c.m, c.n, align, row, -1))
            for (unsigned i = 0; f.cells && i < k; i++) {
                uint32_t x = (encoded(c.a, a(row, i)) & (uint32_t)((UINT64_C(1) << bits) - 1)) << (c.a == 'z' ? 2 : 0), &to = cell(cells, p, (j.a_cell & 0xffff) + i * bits / 32);
                to = i * bits % 32 ? to | x << i * bits % 32 : x;
            }
        for (unsigned col = 0; col < c.n; col++)
            cell(cells, places(f, c.m, c.n, align, row, (int)col)[0], j.d & 0xffff) = encoded(c.d, d(row, col)) | (c.d == 'h' ? 0xabcd0000 : 0);
    }
    uint32_t *in = allocate<uint32_t>(cells.size()), *out = allocate<uint32_t>(cells.size());
    memcpy(in, cells.data(), cells.size() * 4);
    j.in = in, j.out = out, j.image = image;
    for (unsigned row = 0; row < c.m; row++)
        for (unsigned col = 0; col < c.n; col++) {
            double sum = c.add ? d(row, col) : 0;
            for (unsigned s = 0; s < c.steps; s++) { // each step scales what it adds to
                double part = 0;
                for (unsigned i = s * each; i < (s + 1) * each; i++)
                    part += a(row, i) * b(col, i);
                sum = kept(c, ldexp(sum, -f.scale_d) + (c.negate_a != c.negate_b ? -part : part));
            }
            Place p = places(f, c.m, c.n, align, row, (int)col)[0];
            if (!(j.keep[p.block * 4 + p.lane / 32] >> p.lane % 32 & 1))
                cell(cells, p, j.d & 0xffff) = encoded(c.d, sum);
        }
    launch(f.run, j, f.group, name);
    compare(cells, out, name);
    cudaFree(image), cudaFree(in), cudaFree(out);
}

static const char *factor_types(char kind) { return kind == 'h' ? "hb" : kind == 't' ? "t" : kind == 'i' ? "us" : "45xyz"; }

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
            c.m = f.ws ? 32u << round % 3 : (64u << round % 2) * f.group;
            unsigned step = f.kind == 'i' ? (f.group == 2 ? 32 : 16) : 8 * f.group;
            c.n = f.ws ? ws_n[random_below(3)] : step * (1 + random_below(256 / step));
            c.a = types[random_below(kinds)];
            c.b = f.kind == '8' || f.kind == 'i' ? types[random_below(kinds)] : c.a;
            c.d = f.kind == 'i' ? 'i' : f.kind != 't' && random_below(2) ? 'h' : 'f';
            if (c.a == 'b')
                c.d = 'f';
            c.mn_a = !f.cells && round / 2 % 2, c.mn_b = round / 4 % 2;
            c.mode_a = fit_mode(c.a, (int)random_below(5), &c.mn_a), c.mode_b = fit_mode(c.b, (int)random_below(5), &c.mn_b);
            if (c.mn_b && container(c.b) == 8 && c.n % (16 * f.group))
                c.n = 16 * f.group;
            if (c.mn_b && c.mode_b) // whole atoms of columns
                while (c.n / f.group * bits_of(c.b) / 8 % 16)
                    c.n += step;
            // K-major atoms have room for so many steps of 32 bytes
            gmma_layout a = { 8, c.mode_a, 0, 0, 0 }, b = { 8, c.mode_b, 0, 0, 0 };
            c.steps = 1 + random_below(4);
            if (!f.cells && !c.mn_a && c.mode_a && gmma_width(&a) / 2 < c.steps)
                c.steps = gmma_width(&a) / 2;
            if (!c.mn_b && c.mode_b && gmma_width(&b) / 2 < c.steps)
                c.steps = gmma_width(&b) / 2;
            c.add = random_below(2), c.saturate = f.kind == 'i' && random_below(2);
            c.negate_a = f.kind != 'i' && random_below(2), c.negate_b = f.kind != 'i' && random_below(2);
            check_form(f, c);
        }
}

int main()
{
    check_forms();
    return report("tcgen");
}
