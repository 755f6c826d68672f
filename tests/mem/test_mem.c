/* SPDX-License-Identifier: Apache-2.0
 * mem: places, guards, lookup, capacity, registration, return of memory to the host. */
#include "hw_mem.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
/* cmocka needs the four headers above it */
#include <cmocka.h>

static const uint64_t GIB = UINT64_C(1) << 30;

static hw_mem *new_mem(uint64_t capacity)
{
    hw_mem *m = NULL;
    assert_int_equal(hw_mem_new(capacity, &m, NULL), HW_OK);
    return m;
}

static uint64_t take(hw_mem *m, uint64_t size)
{
    uint64_t a = 0;
    assert_int_equal(hw_mem_alloc(m, size, 0, HW_MEM_DEVICE, 0, &a), HW_OK);
    return a;
}

/* Does reading or writing this byte raise SIGSEGV? */
static sigjmp_buf escape;
static void on_fault(int sig)
{
    (void)sig;
    siglongjmp(escape, 1);
}

static bool faults(uint64_t addr)
{
    struct sigaction act = { .sa_handler = on_fault }, old_segv, old_bus;
    sigaction(SIGSEGV, &act, &old_segv);
    sigaction(SIGBUS, &act, &old_bus);
    bool faulted = true;
    if (sigsetjmp(escape, 1) == 0) {
        volatile uint8_t *p = (volatile uint8_t *)(uintptr_t)addr;
        *p = (uint8_t)(*p + 1);
        faulted = false;
    }
    sigaction(SIGSEGV, &old_segv, NULL);
    sigaction(SIGBUS, &old_bus, NULL);
    return faulted;
}

static void allocations_lie_in_the_range_aligned_and_zeroed(void **state)
{
    (void)state;
    uint64_t lo, size;
    assert_int_equal(hw_mem_range(&lo, &size, NULL), HW_OK);
    hw_mem *m = new_mem(4 * GIB);
    for (uint64_t n = 1; n < 50 * 1000 * 1000; n = n * 3 + 1) {
        uint64_t a = take(m, n);
        assert_true(a >= lo && a + n <= lo + size);
        assert_int_equal(a % 512, 0);
        assert_int_equal(*(uint8_t *)(uintptr_t)a, 0);
        assert_int_equal(*(uint8_t *)(uintptr_t)(a + n - 1), 0);
        memset((void *)(uintptr_t)a, 0xff, n);
    }
    for (uint64_t align = 1; align <= 1 << 22; align *= 4) {
        uint64_t a = 0;
        assert_int_equal(hw_mem_alloc(m, 100, align, HW_MEM_HOST, 0, &a), HW_OK);
        assert_int_equal(a % align, 0);
    }
    hw_mem_free_all(m);
}

static void accesses_past_the_end_fault(void **state)
{
    (void)state;
    hw_mem *m = new_mem(4 * GIB);
    const uint64_t sizes[] = { 1, 400, 512, 4096, 5000, 400000, 4 << 20, (5 << 20) + 100 };
    for (size_t i = 0; i < HW_COUNTOF(sizes); i++) {
        uint64_t a = take(m, sizes[i]), end = a + (sizes[i] + 511) / 512 * 512;
        assert_false(faults(a));
        assert_false(faults(a + sizes[i] - 1));
        assert_true(faults(end));
        assert_true(faults(end + 65535));
        assert_int_equal(hw_mem_free(m, a), HW_OK);
        assert_true(faults(a));
    }
    hw_mem_free_all(m);
}

/* As on a device: mapped to the end of the page, belonging to nobody, not counted. */
static void overruns_within_a_device_page_go_unnoticed(void **state)
{
    (void)state;
    const uint64_t page = 2 << 20;
    hw_mem_set_page(page);
    hw_mem *m = new_mem(16 << 20);
    const uint64_t sizes[] = { 1, 512, 1024, 49152, (2 << 20) - 512, 2 << 20, (5 << 20) + 100 };
    uint64_t a[HW_COUNTOF(sizes)], free_bytes, total, sum = 0;
    for (size_t i = 0; i < HW_COUNTOF(sizes); i++) {
        a[i] = take(m, sizes[i]);
        sum += (sizes[i] + 511) / 512 * 512;
    }
    hw_mem_usage(m, &free_bytes, &total);
    assert_int_equal(free_bytes, total - sum);
    for (size_t i = 0; i < HW_COUNTOF(sizes); i++) {
        uint64_t end = (a[i] + sizes[i] + page - 1) & ~(page - 1);
        hw_mem_info info;
        for (uint64_t at = a[i] + sizes[i]; at < end; at += 4096) {
            assert_false(hw_mem_find(at, &info));
            assert_false(faults(at));
        }
        assert_false(faults(end - 1));
        assert_true(faults(end));
        assert_true(faults(end + 65535));
        assert_true(faults(a[i] - 1));
        assert_int_equal(hw_mem_free(m, a[i]), HW_OK);
        assert_true(faults(a[i]));
        assert_true(faults(end - 1));
    }
    uint64_t host = 0, exact = 0;
    assert_int_equal(hw_mem_alloc(m, 4096, 0, HW_MEM_HOST, 0, &host), HW_OK);
    assert_true(faults(host + 4096));
    hw_mem_set_page(0);
    exact = take(m, 4096);
    assert_true(faults(exact + 4096));
    hw_mem_free_all(m);
}

static void find_knows_every_address_inside(void **state)
{
    (void)state;
    hw_mem *m = new_mem(4 * GIB);
    uint64_t a[100];
    int tag;
    for (uint32_t i = 0; i < 100; i++)
        assert_int_equal(hw_mem_alloc(m, 1000 + i, 0, HW_MEM_MANAGED, i, &a[i]), HW_OK);
    assert_int_equal(hw_mem_set_tag(m, a[7], &tag), HW_OK);
    assert_int_equal(hw_mem_set_tag(m, a[7] + 1, &tag), HW_E_INVALID);
    for (uint32_t i = 0; i < 100; i++) {
        hw_mem_info info;
        assert_true(hw_mem_find(a[i] + 999 + i, &info));
        assert_int_equal(info.base, a[i]);
        assert_int_equal(info.size, 1000 + i);
        assert_int_equal(info.flags, i);
        assert_int_equal(info.kind, HW_MEM_MANAGED);
        assert_ptr_equal(info.tag, i == 7 ? &tag : NULL);
        assert_ptr_equal(info.owner, m);
        assert_false(hw_mem_find(a[i] + 1000 + i, &info));
        assert_true(hw_mem_contains(a[i] + 10, 990 + i));
        assert_false(hw_mem_contains(a[i] + 10, 991 + i));
        hw_mem_info below, above;
        hw_mem_near(a[i] + 1000 + i + 12, &below, &above);
        assert_int_equal(below.base, a[i]);
    }
    hw_mem_free_all(m);
    hw_mem_info info;
    assert_false(hw_mem_find(a[0], &info));
}

static void free_wants_a_base_once(void **state)
{
    (void)state;
    hw_mem *m = new_mem(GIB), *other = new_mem(GIB);
    uint64_t a = take(m, 4096);
    assert_int_equal(hw_mem_free(m, a + 8), HW_E_INVALID);
    assert_int_equal(hw_mem_free(other, a), HW_E_INVALID);
    assert_int_equal(hw_mem_free(m, 0), HW_E_INVALID);
    hw_mem_info info;
    assert_int_equal(hw_mem_free(m, a), HW_OK);
    assert_int_equal(hw_mem_free(m, a), HW_E_INVALID);
    assert_true(hw_mem_find_freed(a + 4095, &info));
    assert_int_equal(info.base, a);
    assert_int_equal(info.size, 4096);
    hw_mem_free_all(m);
    hw_mem_free_all(other);
}

static void capacity_is_kept(void **state)
{
    (void)state;
    hw_mem *m = new_mem(GIB);
    uint64_t a = take(m, GIB / 2), b, free_bytes, total;
    hw_mem_usage(m, &free_bytes, &total);
    assert_int_equal(free_bytes, GIB / 2);
    assert_int_equal(total, GIB);
    assert_int_equal(hw_mem_alloc(m, GIB / 2 + 1, 0, HW_MEM_DEVICE, 0, &b), HW_E_NOMEM);
    assert_int_equal(hw_mem_alloc(m, UINT64_MAX, 0, HW_MEM_DEVICE, 0, &b), HW_E_NOMEM);
    assert_int_equal(hw_mem_alloc(m, UINT64_MAX, 0, HW_MEM_HOST, 0, &b), HW_E_NOMEM);
    assert_int_equal(hw_mem_alloc(m, UINT64_MAX - 5, 0, HW_MEM_MANAGED, 0, &b), HW_E_NOMEM);
    assert_int_equal(hw_mem_alloc(m, 0, 0, HW_MEM_DEVICE, 0, &b), HW_E_INVALID);
    assert_int_equal(hw_mem_alloc(m, 8, 3, HW_MEM_DEVICE, 0, &b), HW_E_INVALID);
    b = take(m, GIB / 2);
    assert_int_equal(hw_mem_free(m, a), HW_OK);
    assert_int_equal(hw_mem_free(m, b), HW_OK);
    hw_mem_usage(m, &free_bytes, &total);
    assert_int_equal(free_bytes, GIB);
    hw_mem_free_all(m);
}

static size_t mappings(void)
{
    FILE *f = fopen("/proc/self/maps", "r");
    size_t lines = 0;
    for (int c; (c = fgetc(f)) != EOF;)
        lines += c == '\n';
    fclose(f);
    return lines;
}

static void many_allocations_do_not_exhaust_mappings(void **state)
{
    (void)state;
    enum { N = 1 << 16 };
    hw_mem *m = new_mem(64 * GIB);
    uint64_t *a = calloc(N, sizeof *a);
    for (uint32_t i = 0; i < N; i++) {
        a[i] = take(m, i % 3 ? 100 + i % 1000 : 70000);
        *(uint32_t *)(uintptr_t)a[i] = i;
    }
    assert_true(mappings() < 40000);
    for (uint32_t i = 0; i < N; i++)
        assert_int_equal(*(uint32_t *)(uintptr_t)a[i], i);
    for (uint32_t i = 0; i < N; i += 2)
        assert_int_equal(hw_mem_free(m, a[i]), HW_OK);
    for (uint32_t i = 0; i < N; i += 2)
        a[i] = take(m, 300);
    for (uint32_t i = 1; i < N; i += 2)
        assert_int_equal(*(uint32_t *)(uintptr_t)a[i], i);
    hw_mem_free_all(m);
    assert_true(mappings() < 1000);
    free(a);
}

static uint64_t resident_bytes(void)
{
    FILE *f = fopen("/proc/self/statm", "r");
    unsigned long all = 0, resident = 0;
    assert_int_equal(fscanf(f, "%lu %lu", &all, &resident), 2);
    fclose(f);
    return (uint64_t)resident * 4096;
}

static void memory_is_lazy_and_goes_back(void **state)
{
    (void)state;
    hw_mem *m = new_mem(200 * GIB);
    uint64_t before = resident_bytes();
    uint64_t huge = take(m, 100 * GIB), a = take(m, 64 << 20);
    assert_true(resident_bytes() < before + (16 << 20));
    memset((void *)(uintptr_t)a, 1, 64 << 20);
    assert_true(resident_bytes() > before + (60 << 20));
    assert_int_equal(hw_mem_free(m, a), HW_OK);
    assert_int_equal(hw_mem_free(m, huge), HW_OK);
    assert_true(resident_bytes() < before + (16 << 20));
    hw_mem_free_all(m);
}

static void registered_host_memory_is_known(void **state)
{
    (void)state;
    hw_mem *m = new_mem(GIB);
    static uint8_t host[10000];
    uint64_t h = (uintptr_t)host;
    hw_mem_info info;
    assert_false(hw_mem_is_registered(h, 1));
    assert_int_equal(hw_mem_register(m, host, 8000, 3), HW_OK);
    assert_int_equal(hw_mem_register(m, host + 4000, 8000, 0), HW_E_INVALID);
    assert_int_equal(hw_mem_register(m, NULL, 8000, 0), HW_E_INVALID);
    assert_int_equal(hw_mem_register(m, host + 8000, 2000, 0), HW_OK);
    assert_true(hw_mem_is_registered(h + 7992, 8));
    assert_false(hw_mem_is_registered(h + 7996, 8));
    assert_true(hw_mem_find(h + 5, &info));
    assert_int_equal(info.kind, HW_MEM_REGISTERED);
    assert_int_equal(info.flags, 3);
    assert_int_equal(hw_mem_unregister(m, host + 1), HW_E_INVALID);
    assert_int_equal(hw_mem_unregister(m, host), HW_OK);
    assert_int_equal(hw_mem_unregister(m, host), HW_E_INVALID);
    assert_false(hw_mem_is_registered(h + 100, 8));
    hw_mem_free_all(m);
    assert_false(hw_mem_is_registered(h + 8000, 8));
}

static void pages_inside_can_be_closed(void **state)
{
    (void)state;
    hw_mem *m = new_mem(GIB);
    uint64_t a = 0;
    assert_int_equal(hw_mem_alloc(m, 65536, 4096, HW_MEM_INTERNAL, 0, &a), HW_OK);
    assert_int_equal(hw_mem_close(m, a + 4096, 4096, true), HW_OK);
    assert_int_equal(hw_mem_close(m, a + 100, 4096, true), HW_E_INVALID);
    assert_int_equal(hw_mem_close(m, a + 61440, 8192, true), HW_E_INVALID);
    assert_false(faults(a));
    assert_true(faults(a + 4096));
    assert_false(faults(a + 8192));
    assert_int_equal(hw_mem_close(m, a + 4096, 4096, false), HW_OK);
    assert_false(faults(a + 4096));
    hw_mem_free_all(m);
}

/* The address that the first allocation of a fresh process gets. */
static uint64_t first_address_of_a_process(void)
{
    int fd[2];
    assert_int_equal(pipe(fd), 0);
    pid_t pid = fork();
    if (pid == 0) {
        close(fd[0]);
        dup2(fd[1], 1);
        execl("/proc/self/exe", "test_mem", "first-address", (char *)NULL);
        _exit(1);
    }
    close(fd[1]);
    uint64_t a = 0;
    assert_int_equal(read(fd[0], &a, sizeof a), sizeof a);
    close(fd[0]);
    int status;
    waitpid(pid, &status, 0);
    return a;
}

static void addresses_repeat_from_run_to_run(void **state)
{
    (void)state;
#ifdef __SANITIZE_THREAD__
    skip(); /* its shadow leaves no room at the wished place */
#endif
    assert_int_equal(first_address_of_a_process(), first_address_of_a_process());
}

static void *churn(void *arg)
{
    hw_mem *m = arg;
    uint64_t a[64] = { 0 };
    for (uint32_t i = 0; i < 5000; i++) {
        uint64_t *slot = &a[i * 7 % 64];
        hw_mem_info info;
        if (*slot) {
            if (!hw_mem_find(*slot + 50, &info) || info.base != *slot ||
                hw_mem_free(m, *slot) != HW_OK)
                return arg;
        }
        if (hw_mem_alloc(m, 100 + i, 0, HW_MEM_DEVICE, 0, slot) != HW_OK)
            return arg;
        *(volatile uint32_t *)(uintptr_t)*slot = i;
    }
    return NULL;
}

static void threads_may_allocate_at_once(void **state)
{
    (void)state;
    hw_mem *m = new_mem(4 * GIB);
    pthread_t t[4];
    for (int i = 0; i < 4; i++)
        pthread_create(&t[i], NULL, churn, m);
    for (int i = 0; i < 4; i++) {
        void *bad = NULL;
        pthread_join(t[i], &bad);
        assert_null(bad);
    }
    hw_mem_free_all(m);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "first-address") == 0) {
        hw_mem *m = new_mem(GIB);
        uint64_t a = take(m, 1000);
        return write(1, &a, sizeof a) == sizeof a ? 0 : 1;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(allocations_lie_in_the_range_aligned_and_zeroed),
        cmocka_unit_test(accesses_past_the_end_fault),
        cmocka_unit_test(overruns_within_a_device_page_go_unnoticed),
        cmocka_unit_test(find_knows_every_address_inside),
        cmocka_unit_test(free_wants_a_base_once),
        cmocka_unit_test(capacity_is_kept),
        cmocka_unit_test(many_allocations_do_not_exhaust_mappings),
        cmocka_unit_test(memory_is_lazy_and_goes_back),
        cmocka_unit_test(registered_host_memory_is_known),
        cmocka_unit_test(pages_inside_can_be_closed),
        cmocka_unit_test(addresses_repeat_from_run_to_run),
        cmocka_unit_test(threads_may_allocate_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
