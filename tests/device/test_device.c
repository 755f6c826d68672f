/* SPDX-License-Identifier: Apache-2.0
 *
 * device: every device file loads, mistakes in one are named, attributes answer. */
#include "hw_device.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
/* cmocka needs the headers above it */
#include <cmocka.h>

static const hw_device *load(hw_arena *a, const char *name)
{
    const hw_device *dev = NULL;
    hw_diag *d = hw_diag_new(a);
    if (hw_device_load(a, name, &dev, d) != HW_OK)
        fail_msg("%s", hw_diag_text(d, a).ptr);
    return dev;
}

static void every_device_loads_under_its_own_name(void **state)
{
    (void)state;
    hw_arena *a = hw_arena_new();
    const char *const *names;
    size_t n = hw_device_list(a, &names);
    assert_true(n >= 50);
    for (size_t i = 0; i < n; i++)
        assert_string_equal(load(a, names[i])->name, names[i]);
    hw_arena_free(a);
}

static void every_compute_capability_has_a_device(void **state)
{
    (void)state;
    static const char *const all[] = { "1.0",  "1.1",  "1.2",  "1.3",  "2.0", "2.1", "3.0", "3.2",
                                       "3.5",  "3.7",  "5.0",  "5.2",  "5.3", "6.0", "6.1", "6.2",
                                       "7.0",  "7.2",  "7.5",  "8.0",  "8.6", "8.7", "8.9", "9.0",
                                       "10.0", "10.3", "11.0", "12.0", "12.1" };
    hw_arena *a = hw_arena_new();
    for (size_t i = 0; i < HW_COUNTOF(all); i++) {
        const hw_device *dev = load(a, hw_arena_printf(a, "cc-%s", all[i]));
        assert_string_equal(
            hw_arena_printf(a, "%u.%u", dev->capability.major, dev->capability.minor), all[i]);
        assert_int_equal(dev->capability.independent_thread_scheduling, dev->capability.major >= 7);
        assert_int_equal(dev->compute.max_threads_per_sm,
                         dev->occupancy.max_warps_per_sm * dev->compute.warp_size);
    }
    hw_arena_free(a);
}

static void the_default_is_a_device(void **state)
{
    (void)state;
    hw_arena *a = hw_arena_new();
    assert_string_equal(load(a, NULL)->name, HW_DEVICE_DEFAULT);
    assert_string_equal(load(a, "")->name, HW_DEVICE_DEFAULT);
    hw_arena_free(a);
}

static void an_unknown_device_names_the_nearest(void **state)
{
    (void)state;
    hw_arena *a = hw_arena_new();
    hw_diag *d = hw_diag_new(a);
    const hw_device *dev;
    assert_int_equal(hw_device_load(a, "hh100", &dev, d), HW_E_NOT_FOUND);
    assert_non_null(strstr(hw_diag_text(d, a).ptr, "did you mean 'h100'?"));
    hw_arena_free(a);
}

/* ---- mistakes in a file ---- */

typedef struct mistake {
    const char *from, *to; /* replaced in h100's text */
    hw_status status;
    const char *said; /* part of the message */
} mistake;

static const mistake mistakes[] = {
    { "\"warp_size\": 32", "\"warp_size\": 33333", HW_E_RANGE,
      "compute.warp_size' is 33333; allowed: 32 to 64 lanes" },
    { "\"warp_size\": 32", "\"warp_size\": -1", HW_E_RANGE, "allowed: 32 to 64" },
    { "\"warp_size\": 32", "\"warp_size\": \"32\"", HW_E_CORRUPT,
      "must be a whole number, 32 to 64" },
    { "\"warp_size\": 32", "\"warp_size\": 32.5", HW_E_CORRUPT, "must be a whole number" },
    { "\"warp_size\": 32,", "", HW_E_CORRUPT, "missing key 'compute.warp_size'" },
    { "\"warp_size\": 32", "\"wrap_size\": 32", HW_E_CORRUPT, "did you mean 'warp_size'?" },
    { "\"warp_size\": 32", "\"warp_size\": null", HW_E_CORRUPT, "must be a whole number" },
    { "\"compute\": {", "\"compte\": {", HW_E_CORRUPT,
      "unknown key 'compte'; did you mean 'compute'?" },
    { "\"register_alloc_scope\": \"warp\"", "\"register_alloc_scope\": \"wrap\"", HW_E_CORRUPT,
      "must be one of \"block\", \"warp\"" },
    { "\"max_grid\": [2147483647", "\"max_grid\": [2147483648", HW_E_RANGE,
      "allowed: 1 to 2147483647 blocks" },
    { "\"max_grid\": [2147483647, ", "\"max_grid\": [1, 1, ", HW_E_CORRUPT, "a list of 1 to 3" },
    { "\"vendor\": \"NVIDIA\"", "\"vendor\": \"ATI\"", HW_E_CORRUPT,
      "must be \"NVIDIA\" or \"AMD\"" },
    { "\"schema\": 1", "\"schema\": 2", HW_E_VERSION, "must be 1" },
    { "\"schema\": 1,", "\"schema\": 1, \"schema\": 1,", HW_E_SYNTAX, "duplicate" },
    { "\"ecc\": true", "\"ecc\": 1", HW_E_CORRUPT, "must be true or false" },
    { "\"imul\": 64", "\"imul\": \"n\"", HW_E_CORRUPT, "or \"m\"" },
    { "\"preset\": \"luo\"", "\"preset\": 3", HW_E_CORRUPT, "must be a string" },
    { "{", "[", HW_E_SYNTAX, "" },
};

static hw_str replaced(hw_arena *a, hw_str text, const mistake *m)
{
    const char *at = strstr(text.ptr, m->from);
    assert_non_null(at);
    return hw_str_of(hw_arena_printf(a, "%.*s%s%s", (int)(at - text.ptr), text.ptr, m->to,
                                     at + strlen(m->from)));
}

static uint32_t line_of(hw_str text, const char *what)
{
    uint32_t line = 1;
    for (const char *p = text.ptr, *end = strstr(text.ptr, what); p < end; p++)
        line += *p == '\n';
    return line;
}

static void a_mistake_names_key_line_and_range(void **state)
{
    (void)state;
    hw_arena *a = hw_arena_new();
    hw_str good;
    assert_int_equal(hw_read_file(a, DEVICE_FOLDER "/h100.json", &good, NULL), HW_OK);
    for (size_t i = 0; i < HW_COUNTOF(mistakes); i++) {
        hw_diag *d = hw_diag_new(a);
        const hw_device *dev;
        hw_str bad = replaced(a, good, &mistakes[i]);
        assert_int_equal(hw_device_parse(a, bad, "bad.json", &dev, d), mistakes[i].status);
        assert_non_null(strstr(d->first->text, mistakes[i].said));
        if (mistakes[i].status == HW_E_RANGE)
            assert_int_equal(d->first->place.line, line_of(bad, mistakes[i].to));
    }
    hw_arena_free(a);
}

static void no_truncated_file_is_taken(void **state)
{
    (void)state;
    hw_arena *a = hw_arena_new();
    hw_str good;
    assert_int_equal(hw_read_file(a, DEVICE_FOLDER "/xbox-one.json", &good, NULL), HW_OK);
    const hw_device *dev;
    size_t brace = good.len - 1;
    while (good.ptr[brace] != '}')
        brace--;
    for (size_t n = 0; n <= brace; n += 7)
        assert_int_not_equal(hw_device_parse(a, (hw_str){ good.ptr, n }, "cut.json", &dev, NULL),
                             HW_OK);
    hw_arena_free(a);
}

static void a_users_file_is_found_by_path_and_by_folder(void **state)
{
    (void)state;
    hw_arena *a = hw_arena_new();
    hw_str text;
    char folder[] = "/tmp/halfwarp-device-XXXXXX";
    assert_non_null(mkdtemp(folder));
    assert_int_equal(hw_read_file(a, DEVICE_FOLDER "/t4.json", &text, NULL), HW_OK);
    const mistake rename = { "\"name\": \"t4\"", "\"name\": \"mine\"", HW_OK, "" };
    hw_str mine = replaced(a, text, &rename);
    const char *path = hw_arena_printf(a, "%s/mine.json", folder);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(mine.ptr, 1, mine.len, f), mine.len);
    fclose(f);
    assert_string_equal(load(a, path)->name, "mine");
    setenv("HALFWARP_DEVICE_PATH", hw_arena_printf(a, "/nowhere::%s", folder), 1);
    assert_string_equal(load(a, "mine")->name, "mine");
    unsetenv("HALFWARP_DEVICE_PATH");
    unlink(path);
    rmdir(folder);
    hw_arena_free(a);
}

typedef struct peak {
    const char *device;
    double gflops; /* units x lanes x clock x operations, as published */
    bool coissue;
} peak;

static const peak peaks[] = {
    { "geforce-8800-gtx", 345.6, false },
    { "geforce-8800-gtx", 518.4, true },
    { "gtx-280", 622.1, false },
    { "gtx-280", 933.1, true },
    { "gtx-480", 1345.0, false },
    { "k20x", 3935.2, false },
    { "p100", 10608.6, false },
    { "v100", 15667.2, false },
    { "h100", 66908.2, false },
    { "xbox-one", 1310.2, false },
    { "ps4", 1843.2, false },
};

static void peaks_are_the_published_ones(void **state)
{
    (void)state;
    hw_arena *a = hw_arena_new();
    for (size_t i = 0; i < HW_COUNTOF(peaks); i++) {
        const hw_device *d = load(a, peaks[i].device);
        double each = peaks[i].coissue ? 3 : 2;
        double got =
            d->compute.sm_count * d->compute.fp32_lanes * d->compute.clock_mhz * each / 1000;
        assert_true(got > peaks[i].gflops - 0.1 && got < peaks[i].gflops + 0.1);
        assert_true(!peaks[i].coissue || d->issue.mul_coissue);
    }
    const hw_device *k20x = load(a, "k20x");
    double fp64 =
        k20x->compute.sm_count * k20x->throughput.fp64 * k20x->compute.clock_mhz * 2 / 1000;
    assert_true(fp64 > 1311.6 && fp64 < 1311.8);
    hw_arena_free(a);
}

static void bandwidth_is_clock_times_bus(void **state)
{
    (void)state;
    hw_arena *a = hw_arena_new();
    const char *const *names;
    size_t n = hw_device_list(a, &names);
    for (size_t i = 0; i < n; i++) {
        const hw_device *d = load(a, names[i]);
        double gbs = d->memory.clock_mhz * 2 * d->memory.bus_width_bits / 8 / 1000;
        assert_true(gbs > d->memory.bandwidth_gbs * 0.97 && gbs < d->memory.bandwidth_gbs * 1.03);
    }
    hw_arena_free(a);
}

static void latencies_have_presets(void **state)
{
    (void)state;
    hw_arena *a = hw_arena_new();
    const hw_device *g80 = load(a, "g80");
    assert_int_equal(hw_device_latencies(g80, NULL)->global.v[0], 200);
    assert_int_equal(hw_device_latencies(g80, NULL)->global.v[1], 300);
    assert_int_equal(hw_device_latencies(g80, "guide")->global.v[0], 400);
    assert_int_equal(hw_device_latencies(g80, "guide")->global.v[1], 800);
    assert_null(hw_device_latencies(g80, "none"));
    hw_arena_free(a);
}

/* Changes a few bytes of a good file: it loads or it does not, and nothing else happens. */
static void broken_files_never_crash(void **state)
{
    (void)state;
    hw_arena *keep = hw_arena_new();
    hw_str good;
    uint64_t seed = UINT64_C(0x20070508);
    assert_int_equal(hw_read_file(keep, DEVICE_FOLDER "/geforce-8800-gtx.json", &good, NULL),
                     HW_OK);
    char *bad = hw_arena_alloc(keep, good.len + 1);
    for (int i = 0; i < 2000; i++) {
        hw_arena *a = hw_arena_new();
        hw_diag *d = hw_diag_new(a);
        const hw_device *dev = NULL;
        memcpy(bad, good.ptr, good.len + 1);
        for (int k = 0; k < 1 + i % 4; k++) {
            seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
            bad[(seed >> 33) % good.len] = "0\"{}[],:9e-.x\\\n\0u"[(seed >> 20) % 18];
        }
        hw_status s = hw_device_parse(a, (hw_str){ bad, good.len }, "bad.json", &dev, d);
        assert_true((s == HW_OK) == (dev != NULL));
        assert_true((s == HW_OK) == (d->errors == 0));
        hw_diag_text(d, a);
        hw_arena_free(a);
    }
    hw_arena_free(keep);
}

/* ---- attributes ---- */

static void attributes_answer_or_say_invalid(void **state)
{
    (void)state;
    hw_arena *a = hw_arena_new();
    const hw_device *dev = load(a, "v100"), *amd = load(a, "xbox-one");
    int value;
    for (int i = 1; i < HW_DEVICE_ATTRIBUTE_MAX; i++) {
        assert_int_equal(hw_device_attribute(dev, i, &value), HW_OK);
        assert_non_null(hw_device_attribute_name(i));
        assert_int_equal(hw_device_attribute(amd, i, &value), HW_E_INVALID);
    }
    assert_int_equal(hw_device_attribute(dev, 0, &value), HW_E_INVALID);
    assert_int_equal(hw_device_attribute(dev, -1, &value), HW_E_INVALID);
    assert_int_equal(hw_device_attribute(dev, 148, &value), HW_E_INVALID);
    assert_int_equal(hw_device_attribute(dev, INT32_MAX, &value), HW_E_INVALID);
    hw_arena_free(a);
}

typedef struct known {
    const char *device;
    int attribute, value;
} known;

/* deviceQuery's output as commonly published for these products. */
static const known values[] = {
    { "v100", 1, 1024 },
    { "v100", 10, 32 },
    { "v100", 16, 80 },
    { "v100", 39, 2048 },
    { "v100", 75, 7 },
    { "v100", 76, 0 },
    { "v100", 81, 98304 },
    { "v100", 97, 98304 },
    { "v100", 8, 49152 },
    { "v100", 13, 1530000 },
    { "v100", 38, 6291456 },
    { "v100", 20, 0 },
    { "h100", 111, 1024 },
    { "h100", 97, 232448 },
    { "h100", 120, 1 },
    { "h100", 106, 32 },
    { "t4", 106, 16 },
    { "t4", 87, 32 },
    { "rtx-4090", 16, 128 },
    { "geforce-8800-gtx", 1, 512 },
    { "geforce-8800-gtx", 7, 1 },
    { "geforce-8800-gtx", 37, 384 },
    { "p100", 95, 1 },
    { "k80", 82, 131072 },
};

static void attributes_have_known_values(void **state)
{
    (void)state;
    hw_arena *a = hw_arena_new();
    for (size_t i = 0; i < HW_COUNTOF(values); i++) {
        int value = -1;
        assert_int_equal(
            hw_device_attribute(load(a, values[i].device), values[i].attribute, &value), HW_OK);
        assert_int_equal(value, values[i].value);
    }
    hw_arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_device_loads_under_its_own_name),
        cmocka_unit_test(every_compute_capability_has_a_device),
        cmocka_unit_test(the_default_is_a_device),
        cmocka_unit_test(an_unknown_device_names_the_nearest),
        cmocka_unit_test(a_mistake_names_key_line_and_range),
        cmocka_unit_test(no_truncated_file_is_taken),
        cmocka_unit_test(a_users_file_is_found_by_path_and_by_folder),
        cmocka_unit_test(peaks_are_the_published_ones),
        cmocka_unit_test(bandwidth_is_clock_times_bus),
        cmocka_unit_test(latencies_have_presets),
        cmocka_unit_test(broken_files_never_crash),
        cmocka_unit_test(attributes_answer_or_say_invalid),
        cmocka_unit_test(attributes_have_known_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
