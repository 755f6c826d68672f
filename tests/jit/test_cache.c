/* SPDX-License-Identifier: Apache-2.0
 * jit: the cache of code, in memory and on disk. */
#include "rig.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static const char fill[] = "module shared=0 params=8 reqntid=0,0,0 indirect=0\n"
                           "loc 1 \"k.cu\" 7:1 ptx=9 inlined=0\n"
                           "kernel @k local=0 {\n  reg i32 %t\n  reg i64 %p %o %w\nentry:\n"
                           "  %p = param_addr\n  %o = load.i64.param [%p]\n  %t = sreg.i32 tid_x\n"
                           "  %w = zext.i32.i64 %t\n  %w = shl.i64 %w, 2\n  %o = add.i64 %o, %w\n"
                           "  store.i32.global [%o], %t !1\n  ret\n}\n";

static char dir[] = "/tmp/hw_jit_cache_XXXXXX";

static int make_dir(void **state)
{
    (void)state;
    return mkdtemp(dir) ? 0 : -1;
}

static unsigned files(char *last, size_t room)
{
    unsigned n = 0;
    DIR *d = opendir(dir);
    assert_non_null(d);
    for (struct dirent *e = readdir(d); e; e = readdir(d))
        if (strstr(e->d_name, ".hwo")) {
            if (last)
                snprintf(last, room, "%s/%s", dir, e->d_name);
            n++;
        }
    closedir(d);
    return n;
}

static uint64_t bytes_of_files(void)
{
    uint64_t sum = 0;
    DIR *d = opendir(dir);
    assert_non_null(d);
    for (struct dirent *e = readdir(d); e; e = readdir(d)) {
        struct stat st;
        if (strstr(e->d_name, ".hwo") && fstatat(dirfd(d), e->d_name, &st, 0) == 0)
            sum += (uint64_t)st.st_size;
    }
    closedir(d);
    return sum;
}

static int remove_dir(void **state)
{
    char path[512];
    (void)state;
    while (files(path, sizeof path))
        unlink(path);
    return rmdir(dir);
}

static rig *with_cache(const char *path)
{
    rig *r = rig_new(fill);
    hw_jit_free(r->jit);
    r->jit = hw_jit_new(path);
    return r;
}

static void runs(rig *r)
{
    assert_int_equal(rig_compile(r), HW_OK);
    r->params[0] = (uint64_t)(uintptr_t)r->memory;
    memset(r->memory, 0xff, 128);
    assert_true(rig_run(r));
    for (uint32_t i = 0; i < 32; i++) {
        uint32_t x;
        memcpy(&x, r->memory + 4 * i, 4);
        assert_int_equal(x, i);
    }
    assert_int_equal(r->code->n_locs, 2);
    assert_string_equal(r->code->locs[1].file, "k.cu");
    assert_int_equal(r->code->locs[1].line, 7);
}

static hw_jit_stats stats_of_run(const char *path)
{
    rig *r = with_cache(path);
    runs(r);
    runs(r);
    hw_jit_stats s = hw_jit_get_stats(r->jit);
    assert_null(hw_jit_notice(r->jit));
    rig_free(r);
    return s;
}

static void code_is_compiled_once_and_then_found(void **state)
{
    (void)state;
    hw_jit_stats s = stats_of_run(dir);
    assert_int_equal(s.compiled, 1);
    assert_int_equal(s.memory_hits, 1);
    assert_int_equal(files(NULL, 0), 1);
    s = stats_of_run(dir);
    assert_int_equal(s.compiled, 0);
    assert_int_equal(s.disk_hits, 1);
}

/* Any byte of an entry wrong: the kernel is compiled again, silently. */
static void damaged_entries_are_replaced(void **state)
{
    char path[512];
    struct stat st;
    (void)state;
    stats_of_run(dir);
    assert_int_equal(files(path, sizeof path), 1);
    assert_int_equal(stat(path, &st), 0);
    for (off_t at = 0; at < st.st_size; at += st.st_size / 9) {
        int fd = open(path, O_RDWR);
        uint8_t b;
        assert_int_equal(pread(fd, &b, 1, at), 1);
        b ^= 0x55;
        assert_int_equal(pwrite(fd, &b, 1, at), 1);
        close(fd);
        hw_jit_stats s = stats_of_run(dir);
        assert_int_equal(s.compiled, 1);
        assert_int_equal(s.disk_errors, 1);
    }
    assert_int_equal(truncate(path, st.st_size / 2), 0);
    assert_int_equal(stats_of_run(dir).compiled, 1);
    assert_int_equal(truncate(path, 10), 0);
    assert_int_equal(stats_of_run(dir).compiled, 1);
    assert_int_equal(stats_of_run(dir).disk_hits, 1);
}

static void variants_have_entries_of_their_own(void **state)
{
    (void)state;
    rig *r = with_cache(dir);
    runs(r);
    r->variant.block[0] = 64;
    assert_int_equal(rig_compile(r), HW_OK);
    r->variant.tier = 0;
    assert_int_equal(rig_compile(r), HW_OK);
    assert_int_equal(files(NULL, 0), 3);
    rig_free(r);
}

/* The object in an entry; before it stands, among other things, how long it took to make. */
static size_t object_in(const char *path, uint8_t *out, size_t room)
{
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    size_t n = fread(out, 1, room, f), at = 0;
    fclose(f);
    while (at + 4 <= n && memcmp(out + at, "\177ELF", 4) != 0)
        at++;
    assert_true(at + 4 < n);
    memmove(out, out + at, n - at);
    return n - at;
}

/* Whether anybody listens to other launches or not, a launch without a listener gets the same code, byte for byte. */
static void code_without_a_listener_knows_nothing_of_counting(void **state)
{
    enum { ROOM = 1 << 16 };
    static uint8_t before[ROOM], after[ROOM];
    char path[512];
    (void)state;
    while (files(path, sizeof path))
        unlink(path);
    stats_of_run(dir);
    assert_int_equal(files(path, sizeof path), 1);
    size_t n = object_in(path, before, ROOM);
    unlink(path);
    rig *r = with_cache(dir);
    static const uint32_t listeners[] = { HW_LISTEN_COUNT, HW_LISTEN_COUNT | HW_LISTEN_ACCESS, 0 };
    for (size_t i = 0; i < HW_COUNTOF(listeners); i++) {
        r->variant.listeners = listeners[i];
        assert_int_equal(rig_compile(r), HW_OK);
        assert_int_equal(r->code->count != NULL, listeners[i] != 0);
        assert_int_equal(access(path, R_OK) == 0, listeners[i] == 0); /* by its key */
    }
    rig_free(r);
    assert_int_equal(object_in(path, after, ROOM), n);
    assert_memory_equal(before, after, n);
}

static void a_directory_that_cannot_be_used_is_told_once(void **state)
{
    (void)state;
    rig *r = with_cache("/proc/self/nowhere/cache");
    runs(r);
    assert_non_null(strstr(hw_jit_notice(r->jit), "/proc/self/nowhere/cache"));
    assert_null(hw_jit_notice(r->jit));
    rig_free(r);
}

static void the_oldest_entries_go_when_there_are_too_many(void **state)
{
    char path[512];
    struct stat st;
    (void)state;
    while (files(path, sizeof path)) /* of other variants, of other sizes */
        unlink(path);
    stats_of_run(dir);
    files(path, sizeof path);
    assert_int_equal(stat(path, &st), 0);
    rig *r = with_cache(dir);
    uint64_t limit = (uint64_t)st.st_size * 4; /* entries differ in size */
    hw_jit_set_limit(r->jit, limit);
    for (uint32_t b = 1; b <= 12; b++) {
        r->variant.block[0] = 32 * b;
        assert_int_equal(rig_compile(r), HW_OK);
    }
    assert_true(files(NULL, 0) < 12);
    assert_true(bytes_of_files() <= limit);
    rig_free(r);
}

static void errors_of_the_source_reach_the_caller(void **state)
{
    (void)state;
    rig *r = rig_new("kernel @k {\n nonsense\n}\n");
    const hw_code *code = NULL;
    assert_int_equal(rig_compile(r), HW_E_SYNTAX);
    code = r->code;
    assert_null(code);
    assert_non_null(strstr(hw_diag_text(r->diag, r->arena).ptr, "nonsense"));
    rig_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(code_is_compiled_once_and_then_found),
        cmocka_unit_test(damaged_entries_are_replaced),
        cmocka_unit_test(variants_have_entries_of_their_own),
        cmocka_unit_test(code_without_a_listener_knows_nothing_of_counting),
        cmocka_unit_test(a_directory_that_cannot_be_used_is_told_once),
        cmocka_unit_test(the_oldest_entries_go_when_there_are_too_many),
        cmocka_unit_test(errors_of_the_source_reach_the_caller),
    };
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
