/* SPDX-License-Identifier: Apache-2.0
 * exec: the device runtime's functions - printf, assert, malloc, free, clock. */
#include "rig.h"

/* ---- printf ---- */

typedef struct print_case {
    const char *format;
    uint8_t args[64]; /* packed as the compiler does */
    const char *want;
    int count;
} print_case;

#define I32(x) \
    (uint8_t)(x), (uint8_t)((x) >> 8), (uint8_t)((x) >> 16), (uint8_t)((uint32_t)(x) >> 24)
#define I64(x) I32((uint32_t)(x)), I32((uint32_t)((uint64_t)(x) >> 32))
#define F1_5   I64(0x3ff8000000000000)
/* clang-format off */
static const print_case cases[] = {
    { "plain\n", { 0 }, "plain\n", 0 },
    { "100%%\n", { 0 }, "100%\n", 0 },
    { "%d %i|%5d|%-5d|%05d|%+d\n", { I32(-1), I32(7), I32(42), I32(42), I32(42), I32(42) }, "-1 7|   42|42   |00042|+42\n", 6 },
    { "%u %x %X %o %#x\n", { I32(0xffffffff), I32(255), I32(255), I32(8), I32(16) }, "4294967295 ff FF 10 0x10\n", 5 },
    { "%d %lld %ld\n", { I32(3), I32(0), I64(-5), I64(0x123456789) }, "3 -5 4886718345\n", 3 },
    { "%llu %llx %zu\n", { I64(0xffffffffffffffff), I64(0xabcdef0123), I64(9) }, "18446744073709551615 abcdef0123 9\n", 3 },
    { "%f %.2f %e %g %8.3f|\n", { F1_5, F1_5, F1_5, F1_5, F1_5 }, "1.500000 1.50 1.500000e+00 1.5    1.500|\n", 5 },
    { "%d %f\n", { I32(1), I32(0), F1_5 }, "1 1.500000\n", 2 },
    { "%c%c|%3c|\n", { I32('o'), I32('k'), I32('x') }, "ok|  x|\n", 3 },
    { "%*d|%-*d|%.*f\n", { I32(5), I32(42), I32(-4), I32(7), I32(1), I32(0), F1_5 }, "   42|7   |1.5\n", 6 },
    { "%hd %hhu %hx\n", { I32(0x12345), I32(7), I32(0xfffff) }, "9029 7 ffff\n", 3 },
    { "%p %p\n", { I64(0x7f00), I64(0) }, "0x7f00 (nil)\n", 2 },
    { "%s\n", { I64(0) }, "(null)\n", 1 },
    { "%a\n", { F1_5 }, "0x1.8p+0\n", 1 },
    { "%k %", { 0 }, "%k %", 0 },
    { "% d\n", { I32(4) }, " 4\n", 1 },
};
/* clang-format on */

/* params: format, args, results[threads]. The first lane of the first warp alone. */
static uint32_t k_print_once(hw_frame *f)
{
    uint64_t fmt[32] = { param(f, 0) }, args[32] = { param(f, 1) };
    int32_t d[32] = { 0 };
    hw_lane_arrays io = { (void *const[]){ d }, (const void *const[]){ fmt, args }, 1, 2 };
    f->call->helpers[HW_H_VPRINTF](f, 1, &io, 0);
    words(param(f, 2))[0] = (uint32_t)d[0];
    return HW_WARP_DONE;
}

typedef struct print_call {
    rig *r;
    hw_warp_fn *fn;
    rig_shape s;
    uint64_t p[4];
    hw_status status;
} print_call;

static void run_call(void *ctx)
{
    print_call *c = ctx;
    c->status = rig_run(c->r, c->fn, c->s, 4, c->p);
}

static void printf_formats_as_c_does(void **state)
{
    (void)state;
    rig *r = rig_new(1, NULL);
    uint64_t fmt = rig_alloc(r, 256), args = rig_alloc(r, 64), out = rig_alloc(r, 4);
    for (size_t i = 0; i < HW_COUNTOF(cases); i++) {
        strcpy((char *)(uintptr_t)fmt, cases[i].format);
        memcpy((void *)(uintptr_t)args, cases[i].args, 64);
        print_call c = { r, k_print_once, { .block = { 1 } }, { fmt, args, out, 0 }, HW_OK };
        char *text = rig_capture(stdout, run_call, &c);
        assert_int_equal(c.status, HW_OK);
        assert_string_equal(text, cases[i].want);
        assert_int_equal((int)words(out)[0], cases[i].count);
        free(text);
    }
    rig_free(r);
}

static void printf_reads_strings_of_the_device(void **state)
{
    (void)state;
    rig *r = rig_new(1, NULL);
    uint64_t fmt = rig_alloc(r, 256), args = rig_alloc(r, 64), out = rig_alloc(r, 4);
    strcpy((char *)(uintptr_t)fmt, "[%s|%8s|%-8s|%.2s]");
    char *s = (char *)(uintptr_t)fmt + 100;
    strcpy(s, "hello");
    for (int i = 0; i < 4; i++)
        ((uint64_t *)(uintptr_t)args)[i] = (uintptr_t)s;
    print_call c = { r, k_print_once, { .block = { 1 } }, { fmt, args, out, 0 }, HW_OK };
    char *text = rig_capture(stdout, run_call, &c);
    assert_string_equal(text, "[hello|   hello|hello   |he]");
    free(text);
    /* a string that is not the device's faults; nothing is printed */
    ((uint64_t *)(uintptr_t)args)[1] = (uintptr_t)"host";
    text = rig_capture(stdout, run_call, &c);
    assert_int_equal(c.status, HW_F_ILLEGAL_ADDRESS);
    assert_string_equal(text, "");
    free(text);
    c.p[0] = 0;
    text = rig_capture(stdout, run_call, &c);
    assert_int_equal(c.status, HW_OK);
    assert_int_equal((int)words(out)[0], -1);
    free(text);
    rig_free(r);
}

/* Every lane prints block, warp, lane, phase; a barrier between the phases. params: format, args of
 * all threads (16 bytes each) */
static uint32_t k_print_phases(hw_frame *f)
{
    uint64_t fmt[32], args[32];
    uint32_t *a = words(param(f, 1)) + block_index(f) * f->nwarps * 32 * 4;
    FOR_LANES(l, f->lanes)
    {
        uint32_t t = f->warp * 32 + l;
        uint32_t mine[4] = { f->ctaid[0], f->warp, l, f->resume };
        memcpy(a + 4 * (size_t)t, mine, sizeof mine);
        fmt[l] = param(f, 0);
        args[l] = (uintptr_t)(a + 4 * (size_t)t);
    }
    hw_lane_arrays io = { NULL, (const void *const[]){ fmt, args }, 0, 2 };
    f->call->helpers[HW_H_VPRINTF](f, f->lanes, &io, 0);
    return f->resume ? (uint32_t)HW_WARP_DONE : wait_at(f, 1, 0, 0);
}

static char *print_phases(unsigned workers, uint64_t fifo, uint32_t blocks)
{
    rig *r = rig_new(workers, &(hw_exec_options){ .printf_bytes = fifo });
    uint64_t fmt = rig_alloc(r, 64), args = rig_alloc(r, blocks * 64 * 16);
    strcpy((char *)(uintptr_t)fmt, "%u %u %u %u\n");
    print_call c = { r,
                     k_print_phases,
                     { .grid = { blocks }, .block = { 40 }, .suspends = true },
                     { fmt, args, 0, 0 },
                     HW_OK };
    char *text = rig_capture(stdout, run_call, &c);
    assert_int_equal(c.status, HW_OK);
    rig_free(r);
    return text;
}

static void printf_comes_in_order_of_blocks(void **state)
{
    (void)state;
    char *want = calloc(1, 1 << 20), *at = want;
    for (uint32_t b = 0; b < 100; b++)
        for (uint32_t phase = 0; phase < 2; phase++)
            for (uint32_t i = 0; i < 40; i++) {
                /* after the barrier the last warp, of 8 threads, goes first */
                uint32_t t = phase == 0 ? i : (i + 32) % 40;
                at += sprintf(at, "%u %u %u %u\n", b, t / 32, t % 32, phase);
            }
    for (unsigned w = 1; w <= 8; w *= 2) {
        char *text = print_phases(w, 0, 100);
        assert_string_equal(text, want);
        free(text);
    }
    free(want);
}

static void printf_keeps_the_last_that_fit(void **state)
{
    (void)state;
    /* a call costs 16 bytes and 16 of arguments: 8192 bytes hold 256 */
    char *want = print_phases(1, 8192, 300);
    size_t lines = 0;
    for (const char *p = want; *p; p++)
        lines += *p == '\n';
    assert_int_equal(lines, 256);
    assert_non_null(strstr(want, "299 0 31 1\n"));
    for (unsigned w = 2; w <= 8; w *= 2) {
        char *text = print_phases(w, 8192, 300);
        assert_string_equal(text, want);
        free(text);
    }
    free(want);
}

/* ---- assert ---- */

/* params: message, file, function */
static uint32_t k_assert(hw_frame *f)
{
    uint64_t message[32], file[32], function[32], size[32] = { 0 };
    uint32_t line[32];
    for (int l = 0; l < 32; l++) {
        message[l] = param(f, 0);
        file[l] = param(f, 1);
        function[l] = param(f, 2);
        line[l] = 19;
    }
    hw_lane_arrays io = { NULL, (const void *const[]){ message, file, line, function, size }, 0,
                          5 };
    if (f->ctaid[1] == 1 && f->warp == 1)
        f->call->helpers[HW_H_ASSERTFAIL](f, 0x50, &io, 0);
    return HW_WARP_DONE;
}

static void assert_says_what_cuda_says(void **state)
{
    (void)state;
    rig *r = rig_new(2, NULL);
    uint64_t s = rig_alloc(r, 300);
    strcpy((char *)(uintptr_t)s, "i < n");
    strcpy((char *)(uintptr_t)s + 100, "test.cu");
    strcpy((char *)(uintptr_t)s + 200, "void testAssert(int)");
    print_call c = {
        r, k_assert, { .grid = { 2, 3 }, .block = { 10, 8 } }, { s, s + 100, s + 200, 0 }, HW_OK
    };
    char *text = rig_capture(stderr, run_call, &c);
    assert_int_equal(c.status, HW_F_ASSERT);
    assert_string_equal(text, "test.cu:19: void testAssert(int): block: [0,1,0], thread: [6,3,0] "
                              "Assertion `i < n` failed.\n"
                              "test.cu:19: void testAssert(int): block: [0,1,0], thread: [8,3,0] "
                              "Assertion `i < n` failed.\n");
    assert_int_equal(r->fault.thread[0], 6);
    assert_int_equal(r->fault.thread[1], 3);
    free(text);
    rig_free(r);
}

/* ---- malloc and free ---- */

static void call_malloc(hw_frame *f, uint64_t bytes, uint64_t *p)
{
    uint64_t size[32];
    for (int l = 0; l < 32; l++)
        size[l] = bytes;
    hw_lane_arrays io = { (void *const[]){ p }, (const void *const[]){ size }, 1, 1 };
    f->call->helpers[HW_H_MALLOC](f, f->lanes, &io, 0);
}

static void call_free(hw_frame *f, const uint64_t *p)
{
    hw_lane_arrays io = { NULL, (const void *const[]){ p }, 0, 1 };
    f->call->helpers[HW_H_FREE](f, f->lanes, &io, 0);
}

/* Every lane allocates, writes, checks, frees, many times. params: errors, full */
static uint32_t k_heap(hw_frame *f)
{
    uint64_t p[32] = { 0 };
    for (uint32_t round = 1; round < 40; round++) {
        uint64_t bytes = round * 37 % 300 + 1;
        call_malloc(f, bytes, p);
        FOR_LANES(l, f->lanes)
        {
            if (p[l] == 0)
                __atomic_fetch_add(words(param(f, 1)), 1, __ATOMIC_RELAXED);
            else if (p[l] % 16)
                __atomic_fetch_add(words(param(f, 0)), 1, __ATOMIC_RELAXED);
            else
                memset((void *)(uintptr_t)p[l], (int)(f->warp * 32 + l), bytes);
        }
        FOR_LANES(l, f->lanes)
        for (uint64_t i = 0; p[l] && i < bytes; i++)
            if (((uint8_t *)(uintptr_t)p[l])[i] != (uint8_t)(f->warp * 32 + l))
                __atomic_fetch_add(words(param(f, 0)), 1, __ATOMIC_RELAXED);
        call_free(f, p);
    }
    return HW_WARP_DONE;
}

static void the_heap_serves_all_threads(void **state)
{
    (void)state;
    rig *r = rig_new(4, NULL);
    uint64_t out = rig_alloc(r, 1024);
    rig_shape s = { .grid = { 40 }, .block = { 128 } };
    assert_int_equal(RUN(r, k_heap, s, out, out + 512), HW_OK);
    assert_int_equal(words(out)[0], 0);
    assert_int_equal(words(out + 512)[0], 0);
    rig_free(r);
}

/* params: bytes, results */
static uint32_t k_malloc_only(hw_frame *f)
{
    uint64_t p[32] = { 0 };
    call_malloc(f, param(f, 0), p);
    FOR_LANES(l, f->lanes)
    ((uint64_t *)(uintptr_t)param(f, 1))[f->ctaid[0] * 32 + l] = p[l];
    return HW_WARP_DONE;
}

/* params: pointers */
static uint32_t k_free_only(hw_frame *f)
{
    uint64_t p[32] = { 0 };
    FOR_LANES(l, f->lanes)
    p[l] = ((uint64_t *)(uintptr_t)param(f, 0))[f->ctaid[0] * 32 + l];
    call_free(f, p);
    return HW_WARP_DONE;
}

static void a_full_heap_gives_null(void **state)
{
    (void)state;
    rig *r = rig_new(1, &(hw_exec_options){ .heap_bytes = 1 << 20 });
    uint64_t out = rig_alloc(r, 32 * 32 * 8), *p = (uint64_t *)(uintptr_t)out;
    rig_shape s = { .grid = { 32 }, .block = { 32 } };
    assert_int_equal(hw_exec_set_limit(r->x, HW_EXEC_HEAP, 2 << 20), HW_OK);
    assert_int_equal(hw_exec_get_limit(r->x, HW_EXEC_HEAP), 2 << 20);
    for (int round = 0; round < 3; round++) {
        assert_int_equal(RUN(r, k_malloc_only, s, 4096, out), HW_OK);
        size_t have = 0;
        for (int i = 0; i < 1024; i++)
            have += p[i] != 0;
        assert_int_equal(have, 512); /* and all come back when freed and merged */
        assert_int_equal(RUN(r, k_free_only, s, out), HW_OK);
    }
    assert_int_equal(hw_exec_set_limit(r->x, HW_EXEC_HEAP, 4 << 20), HW_E_INVALID);
    s.grid[0] = 1;
    s.block[0] = 1;
    assert_int_equal(RUN(r, k_malloc_only, s, 2 << 20, out), HW_OK);
    assert_true(p[0] != 0);
    p[1] = p[0];
    assert_int_equal(RUN(r, k_free_only, s, out), HW_OK);
    assert_int_equal(RUN(r, k_free_only, s, out), HW_F_TRAP);
    assert_non_null(strstr(r->fault.text, "free of 0x"));
    p[0] = p[1] + 16;
    assert_int_equal(RUN(r, k_free_only, s, out), HW_F_TRAP);
    assert_int_equal(RUN(r, k_malloc_only, s, UINT64_MAX, out), HW_OK);
    assert_true(p[0] == 0);
    rig_free(r);
}

/* ---- the rest ---- */

static uint32_t k_clock(hw_frame *f)
{
    uint64_t *out = (uint64_t *)(uintptr_t)param(f, 0);
    for (uint32_t which = 0; which < 2; which++)
        out[which] = f->call->clock(f, which);
    for (volatile int i = 0; i < 100000; i++)
        ;
    for (uint32_t which = 0; which < 2; which++)
        out[which] = f->call->clock(f, which) - out[which];
    return HW_WARP_DONE;
}

static void clocks_go_forward(void **state)
{
    (void)state;
    rig *r = rig_new(1, NULL);
    uint64_t out = rig_alloc(r, 16), *o = (uint64_t *)(uintptr_t)out;
    assert_int_equal(RUN(r, k_clock, ((rig_shape){ .block = { 32 } }), out), HW_OK);
    assert_true(o[1] > 10000 && o[1] < 1000000000);
    double ghz = r->dev->compute.clock_mhz / 1000;
    assert_true((double)o[0] > 0.5 * ghz * (double)o[1] && (double)o[0] < 2 * ghz * (double)o[1]);
    rig_free(r);
}

static uint32_t k_missing(hw_frame *f)
{
    hw_lane_arrays io = { NULL, NULL, 0, 0 };
    f->call->helpers[HW_H_LDMATRIX](f, f->lanes, &io, 0);
    return HW_WARP_DONE;
}

static void what_is_not_supported_names_itself(void **state)
{
    (void)state;
    rig *r = rig_new(1, NULL);
    assert_int_equal(RUN(r, k_missing, ((rig_shape){ .block = { 32 } }), 0),
                     HW_F_ILLEGAL_INSTRUCTION);
    assert_non_null(strstr(r->fault.text, "not supported: device function LDMATRIX"));
    rig_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(printf_formats_as_c_does),
        cmocka_unit_test(printf_reads_strings_of_the_device),
        cmocka_unit_test(printf_comes_in_order_of_blocks),
        cmocka_unit_test(printf_keeps_the_last_that_fit),
        cmocka_unit_test(assert_says_what_cuda_says),
        cmocka_unit_test(the_heap_serves_all_threads),
        cmocka_unit_test(a_full_heap_gives_null),
        cmocka_unit_test(clocks_go_forward),
        cmocka_unit_test(what_is_not_supported_names_itself),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
