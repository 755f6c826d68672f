/* SPDX-License-Identifier: Apache-2.0
 * Memory, events and pools of two processes: this program starts itself again as the other one. (CUDA Driver API,
 * cuIpc*, cuMemPoolExport*, cuMemExportToShareableHandle.) */
#include "rig.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { WORDS = 1 << 20, FAR = WORDS - 7 };

typedef struct message {
    CUipcMemHandle memory, gone;
    CUipcEventHandle event;
    CUmemPoolPtrExportData pooled;
    int pool, physical;
} message;

/* ---- the other process: 0, or the line of what was not so ---- */

#define NEED(cond)           \
    do {                     \
        if (!(cond))         \
            return __LINE__; \
    } while (0)
#define IS(code, call) NEED((call) == CUDA_ERROR_##code)
#define FINE(call)     NEED((call) == CUDA_SUCCESS)

static int words(CUdeviceptr p, size_t index, uint32_t want)
{
    uint32_t v = ~want;
    FINE(cuMemcpyDtoH_v2(&v, p + 4 * index, 4));
    NEED(v == want);
    return 0;
}

static int other_memory(message *m, CUdeviceptr *p)
{
    CUdeviceptr q;
    CUipcMemHandle bad = m->memory;
    bad.reserved[0] ^= 1;
    IS(INVALID_VALUE, cuIpcOpenMemHandle_v2(&q, m->memory, 0));
    IS(INVALID_VALUE, cuIpcOpenMemHandle_v2(NULL, m->memory, 1));
    IS(INVALID_HANDLE, cuIpcOpenMemHandle_v2(&q, bad, 1));
    IS(MAP_FAILED, cuIpcOpenMemHandle_v2(&q, m->gone, 1));
    FINE(cuIpcOpenMemHandle_v2(p, m->memory, 1));
    FINE(cuIpcOpenMemHandle_v2(&q, m->memory, 1));
    NEED(*p == q);
    NEED(words(q, 3, 33) == 0 && words(q, FAR, 44) == 0 && words(q, 1000, 0) == 0);
    IS(INVALID_VALUE, cuMemFree_v2(q));
    IS(INVALID_VALUE, cuIpcGetMemHandle(&bad, q));
    FINE(cuIpcCloseMemHandle(q)); /* once of two times */
    IS(INVALID_VALUE, cuIpcCloseMemHandle(q + 4));
    return words(*p, 3, 33);
}

static int other_event(message *m, CUdeviceptr p)
{
    CUevent e;
    CUstream s;
    CUipcEventHandle bad = m->event;
    memset(&bad, 0, sizeof bad);
    IS(INVALID_HANDLE, cuIpcOpenEventHandle(&e, bad));
    FINE(cuIpcOpenEventHandle(&e, m->event));
    FINE(cuStreamCreate(&s, 1));
    IS(NOT_READY, cuEventQuery(e));
    /* The copy comes after what the first process does before its event. */
    uint32_t v = 0;
    FINE(cuStreamWaitEvent(s, e, 0));
    FINE(cuMemcpyDtoHAsync_v2(&v, p + 4 * 5, 4, s));
    FINE(cuStreamSynchronize(s));
    NEED(v == 55);
    FINE(cuEventSynchronize(e));
    FINE(cuEventQuery(e));
    /* And this process tells the first one. */
    FINE(cuMemsetD32Async(p + 4 * 6, 66, 1, s));
    FINE(cuEventRecord(e, s));
    FINE(cuStreamSynchronize(s));
    FINE(cuEventDestroy_v2(e));
    return 0;
}

static int other_pool(message *m)
{
    CUmemoryPool pool, wrong;
    CUdeviceptr p;
    FINE(cuMemPoolImportFromShareableHandle(&pool, (void *)(uintptr_t)m->pool, 1, 0));
    IS(INVALID_VALUE,
       cuMemPoolImportFromShareableHandle(&wrong, (void *)(uintptr_t)m->physical, 1, 0));
    FINE(cuMemPoolImportPointer(&p, pool, &m->pooled));
    NEED(words(p, 1, 77) == 0);
    FINE(cuMemsetD32_v2(p, 78, 2));
    IS(INVALID_VALUE, cuMemAllocFromPoolAsync(&p, 64, pool, NULL));
    IS(INVALID_VALUE, cuDeviceSetMemPool(0, pool));
    FINE(cuMemFreeAsync(p, NULL));
    FINE(cuMemPoolDestroy(pool));
    return 0;
}

static int other_physical(message *m)
{
    CUmemGenericAllocationHandle h;
    CUdeviceptr p;
    CUmemAccessDesc rw = { { CU_MEM_LOCATION_TYPE_DEVICE, 0 }, CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
    const size_t size = 2 << 20;
    FINE(cuMemImportFromShareableHandle(&h, (void *)(uintptr_t)m->physical, 1));
    FINE(cuMemAddressReserve(&p, size, 0, 0, 0));
    FINE(cuMemMap(p, size, 0, h, 0));
    FINE(cuMemRelease(h));
    FINE(cuMemSetAccess(p, size, &rw, 1));
    NEED(words(p, 0, 88) == 0);
    FINE(cuMemsetD32_v2(p, 89, 1));
    FINE(cuMemUnmap(p, size));
    FINE(cuMemAddressFree(p, size));
    return 0;
}

static int other(void)
{
    message m;
    CUcontext ctx;
    CUdeviceptr p = 0;
    NEED(read(0, &m, sizeof m) == sizeof m);
    FINE(cuInit(0));
    FINE(cuCtxCreate_v2(&ctx, 0, 0));
    int line = other_memory(&m, &p);
    if (!line)
        line = other_event(&m, p);
    if (!line)
        line = other_pool(&m);
    if (!line)
        line = other_physical(&m);
    FINE(cuIpcCloseMemHandle(p));
    IS(INVALID_VALUE, cuIpcCloseMemHandle(p));
    return line;
}

/* ---- this process ---- */

static void put(CUdeviceptr p, size_t index, uint32_t value)
{
    OK(cuMemcpyHtoD_v2(p + 4 * index, &value, 4));
}

static void inherited(int fd)
{
    assert_int_equal(fcntl(fd, F_SETFD, 0), 0);
}

static CUdeviceptr pooled(message *m, CUmemoryPool *pool)
{
    CUdeviceptr p;
    const CUmemPoolProps props = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                   .handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                   .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 } };
    OK(cuMemPoolCreate(pool, &props));
    OK(cuMemAllocFromPoolAsync(&p, 4096, *pool, NULL));
    put(p, 1, 77);
    OK(cuMemPoolExportToShareableHandle(&m->pool, *pool, 1, 0));
    inherited(m->pool);
    OK(cuMemPoolExportPointer(&m->pooled, p));
    ERR(INVALID_VALUE, cuMemPoolExportPointer(&m->pooled, p + 4));
    ERR(INVALID_VALUE, cuMemPoolExportToShareableHandle(&m->pool, *pool, 2, 0));
    CUmemoryPool plain;
    OK(cuDeviceGetDefaultMemPool(&plain, 0));
    ERR(INVALID_VALUE, cuMemPoolExportToShareableHandle(&m->pool, plain, 1, 0));
    return p;
}

static CUdeviceptr physical(message *m)
{
    CUmemGenericAllocationHandle h;
    CUdeviceptr p;
    CUmemAllocationProp prop = { .type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                 .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 } };
    CUmemAccessDesc rw = { prop.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
    const size_t size = 2 << 20;
    OK(cuMemCreate(&h, size, &prop, 0));
    ERR(INVALID_VALUE, cuMemExportToShareableHandle(&m->physical, h, 1, 0)); /* not asked for */
    OK(cuMemRelease(h));
    prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    OK(cuMemCreate(&h, size, &prop, 0));
    OK(cuMemAddressReserve(&p, size, 0, 0, 0));
    OK(cuMemMap(p, size, 0, h, 0));
    OK(cuMemSetAccess(p, size, &rw, 1));
    put(p, 0, 88);
    OK(cuMemExportToShareableHandle(&m->physical, h, 1, 0));
    inherited(m->physical);
    OK(cuMemRelease(h));
    ERR(INVALID_VALUE, cuMemImportFromShareableHandle(&h, (void *)0, 1));
    return p;
}

static void wait_for_parent_work(void *user)
{
    (void)user;
    nanosleep(&(struct timespec){ 0, 300000000 }, NULL);
}

static pid_t start(message *m)
{
    extern char **environ;
    pid_t pid;
    int ends[2];
    char *args[] = { "test_ipc", "other", NULL };
    posix_spawn_file_actions_t actions;
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[0], 0);
    assert_int_equal(posix_spawn(&pid, "/proc/self/exe", &actions, NULL, args, environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    assert_int_equal(write(ends[1], m, sizeof *m), sizeof *m);
    close(ends[0]);
    close(ends[1]);
    return pid;
}

static void two_processes(void **state)
{
    message m = { .pool = -1 };
    CUipcMemHandle again;
    CUevent e, plain;
    CUstream s;
    CUmemoryPool pool;
    int status = -1;
    (void)state;
    CUdeviceptr p = rig_alloc(4 * WORDS), gone = rig_alloc(64), q;
    put(p, 3, 33);
    OK(cuIpcGetMemHandle(&m.memory, p));
    put(p, FAR, 44);
    OK(cuIpcGetMemHandle(&again, p));
    assert_memory_equal(&again, &m.memory, sizeof again);
    OK(cuIpcGetMemHandle(&again, p + 400)); /* of the allocation */
    assert_memory_equal(&again, &m.memory, sizeof again);
    ERR(INVALID_CONTEXT, cuIpcOpenMemHandle_v2(&q, m.memory, 1)); /* one's own */
    OK(cuIpcGetMemHandle(&m.gone, gone));
    OK(cuMemFree_v2(gone));
    CUdeviceptr in_pool = pooled(&m, &pool), mapped = physical(&m);

    OK(cuEventCreate(&plain, 2));
    ERR(INVALID_HANDLE, cuIpcGetEventHandle(&m.event, plain));
    ERR(INVALID_VALUE, cuEventCreate(&e, 4)); /* without CU_EVENT_DISABLE_TIMING */
    OK(cuEventCreate(&e, 4 | 2));
    OK(cuIpcGetEventHandle(&m.event, e));
    OK(cuEventQuery(e)); /* never recorded */
    OK(cuStreamCreate(&s, 1));
    OK(cuLaunchHostFunc(s, wait_for_parent_work, NULL));
    OK(cuMemsetD32Async(p + 4 * 5, 55, 1, s));
    OK(cuEventRecord(e, s));
    ERR(NOT_READY, cuEventQuery(e));
    pid_t pid = start(&m);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    OK(cuEventSynchronize(e));
    assert_int_equal(rig_word(p, 6), 66);
    assert_int_equal(rig_word(in_pool, 1), 78);
    assert_int_equal(rig_word(mapped, 0), 89);
    OK(cuMemFreeAsync(in_pool, NULL));
    OK(cuMemPoolDestroy(pool));
    OK(cuMemFree_v2(p));
}

static void kinds(void **state)
{
    CUipcMemHandle h;
    CUdeviceptr p;
    void *host;
    int capable;
    (void)state;
    ERR(INVALID_VALUE, cuIpcGetMemHandle(NULL, rig_alloc(64)));
    ERR(INVALID_VALUE, cuIpcGetMemHandle(&h, 0));
    ERR(INVALID_VALUE, cuIpcGetMemHandle(&h, (CUdeviceptr)(uintptr_t)&h));
    OK(cuMemAllocManaged(&p, 4096, 1));
    ERR(INVALID_VALUE, cuIpcGetMemHandle(&h, p));
    OK(cuMemAllocHost_v2(&host, 4096));
    ERR(INVALID_VALUE, cuIpcGetMemHandle(&h, (uintptr_t)host));
    OK(cuMemAllocAsync(&p, 4096, NULL));
    ERR(INVALID_VALUE, cuIpcGetMemHandle(&h, p));
    OK(cuPointerGetAttribute(&capable, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, p));
    assert_int_equal(capable, 0);
    OK(cuPointerGetAttribute(&capable, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE,
                             rig_alloc(64)));
    assert_int_equal(capable, 1);
}

/* What kernels write while memory is made a file is not lost, nor is it a fault. Zeros come back where they were. */
static void in_the_middle(void **state)
{
    enum { N = 512 << 10, ROUNDS = 40 };
    CUipcMemHandle h;
    CUfunction f = rig_kernel("add");
    CUdeviceptr a[8], ones = rig_alloc(4 * N);
    unsigned n = N;
    (void)state;
    OK(cuMemsetD32_v2(ones, 1, N));
    for (int i = 0; i < 8; i++) {
        a[i] = rig_alloc(4 * N);
        for (int k = 0; k < ROUNDS; k++)
            OK(rig_launch(f, N / 256, 256, NULL, &a[i], &a[i], &ones, &n, NULL));
        OK(cuIpcGetMemHandle(&h, a[i])); /* does not wait for them */
    }
    OK(cuCtxSynchronize());
    for (int i = 0; i < 8; i++) {
        assert_int_equal(rig_word(a[i], 0), ROUNDS);
        assert_int_equal(rig_word(a[i], N - 1), ROUNDS);
        OK(cuMemsetD8_v2(a[i], 0,
                         4 * N)); /* large enough for a short cut that a file must not take */
        assert_int_equal(rig_word(a[i], N / 2), 0);
    }
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "other") == 0) {
        int line = other();
        if (line)
            fprintf(stderr, "the other process: line %d\n", line);
        return line != 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(two_processes, rig_context, rig_end),
        cmocka_unit_test_setup_teardown(kinds, rig_context, rig_end),
        cmocka_unit_test_setup_teardown(in_the_middle, rig_context, rig_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
