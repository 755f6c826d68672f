/* SPDX-License-Identifier: Apache-2.0
 * image: containers made by hand, the choice of PTX, messages, and hostile bytes.
 */
#include "hw_image.h"

#include <lz4.h>
#include <setjmp.h>
#include <stdlib.h>
#include <zstd.h>
/* cmocka needs setjmp and the standard headers above it */
#include <cmocka.h>

#define LZ4  0x2000u
#define ZSTD 0x8000u

typedef struct maker {
    uint8_t bytes[1 << 16];
    size_t len;
} maker;

static void put(uint8_t *p, uint64_t v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        p[i] = (uint8_t)(v >> (8 * i));
}

static void begin(maker *m)
{
    memset(m, 0, sizeof *m);
    put(m->bytes, 0xBA55ED50, 4);
    put(m->bytes + 4, 1, 2);
    put(m->bytes + 6, 16, 2);
    m->len = 16;
}

static size_t pack(const char *text, uint32_t method, uint8_t *to, size_t room)
{
    size_t n = strlen(text) + 1;
    if (method & LZ4)
        return (size_t)LZ4_compress_default(text, (char *)to, (int)n, (int)room);
    if (method & ZSTD)
        return ZSTD_compress(to, room, text, n, 3);
    memcpy(to, text, n);
    return n;
}

static void add(maker *m, uint32_t kind, uint32_t arch, uint64_t flags, const char *text)
{
    uint8_t *e = m->bytes + m->len;
    size_t n = pack(text, (uint32_t)flags, e + 64, sizeof m->bytes - m->len - 64);
    size_t padded = (n + 7) & ~(size_t)7;
    put(e, kind, 2);
    put(e + 2, 0x101, 2);
    put(e + 4, 64, 4);
    put(e + 8, padded, 8);
    put(e + 26, 9, 2);
    put(e + 28, arch, 4);
    put(e + 40, flags, 8);
    if (flags & (LZ4 | ZSTD)) {
        put(e + 16, n, 4);
        put(e + 56, strlen(text) + 1, 8);
    }
    m->len += 64 + padded;
    put(m->bytes + 8, m->len - 16, 8);
}

static hw_str first_text(hw_arena *a, const void *bytes, size_t len, uint32_t cc)
{
    hw_image img;
    hw_str *texts;
    size_t n;
    hw_diag *d = hw_diag_new(a);
    if (hw_image_open(a, bytes, len, &img, d) != HW_OK ||
        hw_image_ptx(a, &img, cc, &texts, &n, d) != HW_OK)
        return hw_diag_text(d, a);
    return texts[0];
}

static void every_packing_gives_the_same_text(void **state)
{
    (void)state;
    static const uint32_t methods[] = { 0, LZ4, ZSTD };
    const char *text = "\n.version 9.0\n.target sm_75\n.address_size 64\n.visible .entry "
                       "kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk(){ret;}\n";
    hw_arena *a = hw_arena_new();
    maker *m = malloc(sizeof *m);
    for (size_t i = 0; i < HW_COUNTOF(methods); i++) {
        begin(m);
        add(m, 1, 75, methods[i] | 0x11, text);
        assert_string_equal(first_text(a, m->bytes, m->len, 90).ptr, text);
        assert_string_equal(first_text(a, m->bytes, SIZE_MAX, 90).ptr, text);
        assert_int_equal(first_text(a, m->bytes, m->len, 90).len, strlen(text));
    }
    free(m);
    hw_arena_free(a);
}

static void choice_is_newest_not_above_else_lowest(void **state)
{
    (void)state;
    hw_arena *a = hw_arena_new();
    maker *m = malloc(sizeof *m);
    begin(m);
    add(m, 1, 80, 0, "p80");
    add(m, 1, 90, 0, "p90");
    add(m, 2, 90, 0, "c90");
    add(m, 1, 90, 0x100000, "p90a");
    add(m, 1, 100, 0x200000, "p100f");
    static const struct {
        uint32_t cc;
        const char *text;
    } cases[] = {
        { 10, "p80" },    { 75, "p80" },    { 89, "p80" },  { 90, "p90a" }, { 95, "p90" },
        { 100, "p100f" }, { 103, "p100f" }, { 110, "p90" }, { 121, "p90" }, { 80, "p80" }
    };
    for (size_t i = 0; i < HW_COUNTOF(cases); i++)
        assert_string_equal(first_text(a, m->bytes, m->len, cases[i].cc).ptr, cases[i].text);
    begin(m);
    add(m, 1, 120, 0x100000, "p120a");
    assert_string_equal(first_text(a, m->bytes, m->len, 75).ptr, "p120a");
    free(m);
    hw_arena_free(a);
}

static void missing_ptx_is_told_with_the_remedy(void **state)
{
    (void)state;
    hw_arena *a = hw_arena_new();
    maker *m = malloc(sizeof *m);
    begin(m);
    assert_string_equal(first_text(a, m->bytes, m->len, 90).ptr, "error: contains no device code");
    add(m, 2, 80, 0, "x");
    add(m, 2, 90, 0, "x");
    assert_string_equal(first_text(a, m->bytes, m->len, 90).ptr,
                        "error: contains only sm_80, sm_90 machine code, no PTX; add -gencode "
                        "arch=compute_90,code=compute_90 to nvcc's options (CMake: drop -real)");
    free(m);
    hw_arena_free(a);
}

static void wrapper_gives_one_text_a_unit(void **state)
{
    (void)state;
    hw_arena *a = hw_arena_new();
    maker *m = calloc(4, sizeof *m);
    for (int i = 0; i < 4; i++)
        begin(&m[i]);
    add(&m[1], 1, 75, 0, "unit 1");
    add(&m[2], 1, 75, 0, "unit 2");
    add(&m[3], 1, 121, 0, ".extern .func (.param .b64 r) cnpGetParameterBuffer");
    const void *units[] = { m[1].bytes, m[2].bytes, m[3].bytes, NULL };
    struct {
        uint32_t magic, version;
        const void *fatbin, *units;
    } wrapper = { 0x466243B1, 2, m[0].bytes, units };
    hw_image img;
    hw_str *texts;
    size_t n;
    hw_diag *d = hw_diag_new(a);
    assert_int_equal(hw_image_open(a, &wrapper, SIZE_MAX, &img, d), HW_OK);
    assert_true(img.is_device_linked);
    assert_int_equal(img.n_units, 3);
    assert_int_equal(hw_image_ptx(a, &img, 75, &texts, &n, d), HW_OK);
    assert_int_equal(n, 2);
    assert_string_equal(texts[1].ptr, "unit 2");
    assert_int_not_equal(hw_image_open(a, &wrapper, sizeof wrapper, &img, d), HW_OK);
    free(m);
    hw_arena_free(a);
}

static void plain_text_is_an_entry(void **state)
{
    (void)state;
    hw_arena *a = hw_arena_new();
    hw_image img;
    const char *text = "//\n.version 8.3\n.target sm_90a, debug\n";
    assert_int_equal(hw_image_open(a, text, SIZE_MAX, &img, NULL), HW_OK);
    const hw_image_entry *e = img.entries.ptr;
    assert_int_equal(e->arch, 90);
    assert_true(e->arch_specific);
    assert_int_equal(e->version_major * 10 + e->version_minor, 83);
    assert_string_equal(first_text(a, text, SIZE_MAX, 75).ptr, text);
    assert_int_not_equal(hw_image_open(a, "hello", 5, &img, NULL), HW_OK);
    assert_int_not_equal(hw_image_open(a, "", SIZE_MAX, &img, NULL), HW_OK);
    hw_arena_free(a);
}

/* Open, choose, unpack and read cubins, whatever the bytes; only crashes fail. */
static void chew(const uint8_t *bytes, size_t len)
{
    hw_arena *a = hw_arena_new();
    hw_diag *d = hw_diag_new(a);
    hw_image img;
    hw_str *texts, text;
    hw_cubin_kernel *kernels;
    size_t n;
    if (hw_image_open(a, bytes, len, &img, d) == HW_OK) {
        hw_image_ptx(a, &img, 90, &texts, &n, d);
        for (size_t i = 0; i < img.entries.len; i++)
            hw_image_unpack(a, &img.entries.ptr[i], &text, d);
    }
    hw_cubin_kernels(a, (hw_span){ bytes, len }, &kernels, &n, d);
    hw_arena_free(a);
}

static void truncated_images_fail_cleanly(void **state)
{
    (void)state;
    maker *m = malloc(sizeof *m);
    begin(m);
    add(m, 1, 75, LZ4, ".version 9.0 .target sm_75 aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
    add(m, 1, 90, ZSTD, ".version 9.0 .target sm_90 aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
    for (size_t len = 0; len < m->len; len++) {
        uint8_t *exact = malloc(len ? len : 1); /* so that a sanitizer sees one byte too far */
        memcpy(exact, m->bytes, len);
        hw_arena *a = hw_arena_new();
        hw_image img;
        assert_int_not_equal(hw_image_open(a, exact, len, &img, NULL), HW_OK);
        hw_arena_free(a);
        free(exact);
    }
    free(m);
}

static uint64_t next_random(uint64_t *s)
{
    *s ^= *s << 13;
    *s ^= *s >> 7;
    *s ^= *s << 17;
    return *s;
}

/* A cubin's skeleton: header, five sections, one kernel. */
static size_t make_cubin(uint8_t *to)
{
    static const char names[] = "\0.strtab\0.symtab\0.nv.info\0.nv.info.k\0.nv.shared.k";
    static const uint32_t name_at[] = { 0, 1, 9, 17, 26, 37 };
    static const uint32_t types[] = { 0, 3, 2, 0x70000000, 0x70000000, 8 };
    static const uint32_t links[] = { 0, 0, 1, 2, 2, 0 };
    static const uint8_t info[] = { 4, 0x2f, 8, 0, 1, 0, 0, 0, 40, 0, 0, 0,
                                    4, 0x11, 8, 0, 1, 0, 0, 0, 16, 0, 0, 0 };
    static const uint8_t own[] = { 3, 0x19, 12, 0, 2, 0x4c, 2, 0, 4, 5, 12, 0,
                                   8, 0,    0,  0, 4, 0,    0, 0, 2, 0, 0,  0 };
    static const uint64_t at[] = { 0, 64, 128, 192, 224, 256 };
    static const uint64_t sizes[] = { 0, sizeof names, 48, sizeof info, sizeof own, 512 };
    memset(to, 0, 1024);
    memcpy(to, "\177ELF\2\1\1\x41\x08", 9);
    put(to + 16, 2, 2);
    put(to + 18, 190, 2);
    put(to + 40, 320, 8); /* section headers */
    put(to + 48, 0x06005a04, 4);
    put(to + 52, 64, 2);
    put(to + 58, 64, 2);
    put(to + 60, HW_COUNTOF(at), 2);
    put(to + 62, 1, 2);
    memcpy(to + 64, names, sizeof names);
    put(to + 128 + 24, 35, 4); /* symbol 1's name: the "k" that ends ".nv.info.k" */
    memcpy(to + 192, info, sizeof info);
    memcpy(to + 224, own, sizeof own);
    for (size_t i = 0; i < HW_COUNTOF(at); i++) {
        uint8_t *s = to + 320 + i * 64;
        put(s, name_at[i], 4);
        put(s + 4, types[i], 4);
        put(s + 24, at[i], 8);
        put(s + 32, sizes[i], 8);
        put(s + 40, links[i], 4);
    }
    return 320 + HW_COUNTOF(at) * 64;
}

static void cubin_metadata_is_read(void **state)
{
    (void)state;
    uint8_t bytes[1024];
    size_t n, len = make_cubin(bytes);
    hw_arena *a = hw_arena_new();
    hw_cubin_kernel *k;
    hw_image img;
    assert_int_equal(hw_cubin_kernels(a, (hw_span){ bytes, len }, &k, &n, NULL), HW_OK);
    assert_int_equal(n, 1);
    assert_string_equal(k->name, "k");
    assert_int_equal(k->registers, 40);
    assert_int_equal(k->local_bytes, 16);
    assert_int_equal(k->static_shared_bytes, 512);
    assert_int_equal(k->param_bytes, 12);
    assert_int_equal(k->barriers, 2);
    assert_int_equal(k->max_threads, 64);
    assert_int_equal(hw_image_open(a, bytes, SIZE_MAX, &img, NULL), HW_OK);
    assert_int_equal(img.entries.ptr[0].arch, 90);
    assert_int_equal(img.entries.ptr[0].kind, HW_ENTRY_CUBIN);
    hw_arena_free(a);
}

/* What a linker of ours hands out is an image: its texts come back, damage is found. */
static void linked_images_hold_their_texts(void **state)
{
    (void)state;
    const hw_str texts[] = { HW_STR(".version 9.0 .target sm_90 one"),
                             HW_STR(".version 8.0 .target sm_80 two") };
    size_t size, n;
    uint8_t *image = hw_image_linked_make(texts, 2, 40, &size);
    assert_non_null(image);
    const size_t lengths[] = { size, SIZE_MAX };
    for (size_t k = 0; k < HW_COUNTOF(lengths); k++) {
        hw_arena *a = hw_arena_new();
        hw_image img;
        hw_str *found;
        assert_int_equal(hw_image_open(a, image, lengths[k], &img, NULL), HW_OK);
        assert_int_equal(img.max_registers, 40);
        assert_int_equal(hw_image_ptx(a, &img, 75, &found, &n, NULL), HW_OK);
        assert_int_equal(n, 2);
        for (size_t i = 0; i < n; i++)
            assert_string_equal(found[i].ptr, texts[i].ptr);
        hw_arena_free(a);
    }
    for (size_t len = 1; len < size; len++) {
        hw_arena *a = hw_arena_new();
        hw_image img;
        uint8_t *part = malloc(len);
        memcpy(part, image, len);
        assert_int_not_equal(hw_image_open(a, part, len, &img, hw_diag_new(a)), HW_OK);
        free(part);
        hw_arena_free(a);
    }
    free(image);
    image = hw_image_linked_make(NULL, 0, 0, &size);
    hw_arena *a = hw_arena_new();
    hw_image img;
    hw_str *found;
    assert_int_equal(hw_image_open(a, image, size, &img, NULL), HW_OK);
    assert_int_equal(hw_image_ptx(a, &img, 75, &found, &n, NULL), HW_OK);
    assert_int_equal(n, 0);
    hw_arena_free(a);
    free(image);
}

static void damaged_images_fail_cleanly(void **state)
{
    (void)state;
    const char *rounds_text = getenv("HW_FUZZ_ROUNDS");
    unsigned long rounds = rounds_text ? strtoul(rounds_text, NULL, 10) : 20000;
    uint64_t seed = 0x9e3779b97f4a7c15u;
    maker *m = malloc(sizeof *m);
    uint8_t cubin[1024];
    begin(m);
    add(m, 1, 75, LZ4, ".version 9.0 .target sm_75 aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
    add(m, 1, 90, ZSTD, ".version 9.0 .target sm_90 aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
    add(m, 2, 90, 0, "machine code");
    size_t cubin_len = make_cubin(cubin), linked_len;
    const hw_str texts[] = { HW_STR(".version 9.0 .target sm_90"), HW_STR(".version 9.0") };
    uint8_t *linked = hw_image_linked_make(texts, 2, 0, &linked_len);
    for (unsigned long r = 0; r < rounds; r++) {
        const uint8_t *from = r % 2 ? cubin : m->bytes;
        size_t len = r % 2 ? cubin_len : m->len;
        if (r % 5 == 0) {
            from = linked;
            len = linked_len;
        }
        uint8_t *copy = malloc(len);
        memcpy(copy, from, len);
        for (uint64_t k = next_random(&seed) % 6 + 1; k; k--) {
            uint64_t x = next_random(&seed);
            copy[x % len] = (uint8_t)(x >> 40);
        }
        chew(copy, len - (next_random(&seed) % 4 ? 0 : next_random(&seed) % len));
        free(copy);
    }
    free(linked);
    free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_packing_gives_the_same_text),
        cmocka_unit_test(choice_is_newest_not_above_else_lowest),
        cmocka_unit_test(missing_ptx_is_told_with_the_remedy),
        cmocka_unit_test(wrapper_gives_one_text_a_unit),
        cmocka_unit_test(plain_text_is_an_entry),
        cmocka_unit_test(truncated_images_fail_cleanly),
        cmocka_unit_test(cubin_metadata_is_read),
        cmocka_unit_test(linked_images_hold_their_texts),
        cmocka_unit_test(damaged_images_fail_cleanly),
    };
    return cmocka_run_group_tests_name("image", tests, NULL, NULL);
}
