/* SPDX-License-Identifier: Apache-2.0
 * Test: streams, events, host functions, default streams, memory operations of streams. */
#include "rig.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

static void making(void **state)
{
    CUstream s, t;
    unsigned flags;
    int priority;
    unsigned long long a, b;
    CUcontext ctx;
    CUdevice dev;
    (void)state;
    OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    OK(cuStreamCreateWithPriority(&t, 0, -100));
    ERR(INVALID_VALUE, cuStreamCreate(&s, 8));
    ERR(INVALID_VALUE, cuStreamCreate(NULL, 0));
    OK(cuStreamGetFlags(s, &flags));
    assert_int_equal(flags, 1);
    OK(cuStreamGetPriority(t, &priority));
    assert_true(priority < 0 && priority > -100); /* clamped */
    OK(cuStreamGetId(s, &a));
    OK(cuStreamGetId(t, &b));
    assert_int_not_equal(a, b);
    OK(cuStreamGetCtx(t, &ctx));
    assert_ptr_equal(ctx, rig_current());
    OK(cuStreamGetDevice(t, &dev));
    assert_int_equal(dev, 0);
    OK(cuStreamQuery(s));
    OK(cuStreamDestroy_v2(s));
    ERR(INVALID_HANDLE, cuStreamDestroy_v2(s));
    ERR(INVALID_HANDLE, cuStreamQuery(s));
    ERR(INVALID_HANDLE, cuStreamDestroy_v2(CU_STREAM_LEGACY));
    ERR(INVALID_HANDLE, cuStreamSynchronize((CUstream)rig_current()));
    OK(cuStreamSynchronize(NULL));
    OK(cuStreamSynchronize(CU_STREAM_LEGACY));
    OK(cuStreamSynchronize(CU_STREAM_PER_THREAD));
}

static void attributes(void **state)
{
    CUstream s, t;
    CUstreamAttrValue v = { .syncPolicy = 2 };
    (void)state;
    OK(cuStreamCreate(&s, 0));
    OK(cuStreamCreate(&t, 0));
    OK(cuStreamSetAttribute(s, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &v));
    OK(cuStreamCopyAttributes(t, s));
    v.syncPolicy = 0;
    OK(cuStreamGetAttribute(t, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &v));
    assert_int_equal(v.syncPolicy, 2);
    ERR(INVALID_VALUE, cuStreamGetAttribute(t, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &v));
}

/* A host function that holds its stream up until it is let go. */
static atomic_int gate, order, first_place, second_place;
static CUresult inside;

static void hold(void *user)
{
    (void)user;
    while (!atomic_load(&gate))
        usleep(100);
    inside = cuStreamQuery(NULL); /* not allowed here */
}

static void note(void *user)
{
    atomic_store((atomic_int *)user, atomic_fetch_add(&order, 1) + 1);
}

static void *let_go(void *unused)
{
    usleep(20000);
    atomic_store(&gate, 1);
    return unused;
}

static void host_functions(void **state)
{
    CUstream s;
    pthread_t t;
    (void)state;
    atomic_store(&gate, 0);
    atomic_store(&order, 0);
    OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    OK(cuLaunchHostFunc(s, hold, NULL));
    OK(cuLaunchHostFunc(s, note, &first_place));
    usleep(2000);
    ERR(NOT_READY, cuStreamQuery(s));
    OK(cuStreamSynchronize(NULL)); /* a non-blocking stream does not hold the legacy one up */
    pthread_create(&t, NULL, let_go, NULL);
    OK(cuStreamSynchronize(s));
    pthread_join(t, NULL);
    assert_int_equal(atomic_load(&first_place), 1);
    assert_int_equal(inside, CUDA_ERROR_NOT_PERMITTED);
    ERR(INVALID_VALUE, cuLaunchHostFunc(s, NULL, NULL));
}

static void on_callback(CUstream s, CUresult status, void *user)
{
    CUstream *seen = user;
    *seen = status == CUDA_SUCCESS ? s : NULL;
}

static void callbacks(void **state)
{
    CUstream s, seen = NULL;
    (void)state;
    OK(cuStreamCreate(&s, 0));
    OK(cuStreamAddCallback(s, on_callback, &seen, 0));
    OK(cuCtxSynchronize());
    assert_ptr_equal(seen, s);
    ERR(INVALID_VALUE, cuStreamAddCallback(s, on_callback, &seen, 1));
}

/* Blocking streams and the legacy stream wait for each other; a memset on the legacy stream is behind the held one. */
static void legacy_order(void **state)
{
    CUstream s;
    pthread_t t;
    (void)state;
    atomic_store(&gate, 0);
    atomic_store(&order, 0);
    OK(cuStreamCreate(&s, 0));
    OK(cuLaunchHostFunc(s, hold, NULL));
    OK(cuLaunchHostFunc(s, note, &first_place));
    OK(cuLaunchHostFunc(NULL, note, &second_place));
    pthread_create(&t, NULL, let_go, NULL);
    OK(cuStreamSynchronize(NULL));
    pthread_join(t, NULL);
    assert_int_equal(atomic_load(&first_place), 1);
    assert_int_equal(atomic_load(&second_place), 2);
}

static void events(void **state)
{
    CUevent a, b, c;
    CUstream s;
    float ms = -1;
    pthread_t t;
    (void)state;
    OK(cuEventCreate(&a, 0));
    OK(cuEventCreate(&b, 0));
    OK(cuEventCreate(&c, 2)); /* no timing */
    ERR(INVALID_VALUE, cuEventCreate(&c, 4));
    ERR(INVALID_VALUE, cuEventCreate(&c, 64));
    OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    OK(cuEventQuery(a)); /* never recorded: nothing to wait for */
    ERR(INVALID_HANDLE, cuEventElapsedTime_v2(&ms, a, b));
    atomic_store(&gate, 0);
    OK(cuEventRecord(a, s));
    OK(cuLaunchHostFunc(s, hold, NULL));
    OK(cuEventRecord(b, s));
    usleep(1000);
    ERR(NOT_READY, cuEventQuery(b));
    ERR(NOT_READY, cuEventElapsedTime_v2(&ms, a, b));
    pthread_create(&t, NULL, let_go, NULL);
    OK(cuEventSynchronize(b));
    pthread_join(t, NULL);
    OK(cuEventQuery(b));
    OK(cuEventElapsedTime(&ms, a, b));
    assert_true(ms >= 15 && ms < 2000);
    OK(cuEventElapsedTime(&ms, a, a));
    assert_true(ms == 0);
    OK(cuEventRecord(c, s));
    ERR(INVALID_HANDLE, cuEventElapsedTime_v2(&ms, a, c));
    OK(cuEventDestroy_v2(c));
    ERR(INVALID_HANDLE, cuEventDestroy_v2(c));
    ERR(INVALID_HANDLE, cuEventRecord(c, s));
    ERR(INVALID_HANDLE, cuEventRecord(a, (CUstream)a));
}

static void wait_event(void **state)
{
    CUstream s, t;
    CUevent e;
    pthread_t helper;
    (void)state;
    OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    OK(cuStreamCreate(&t, CU_STREAM_NON_BLOCKING));
    OK(cuEventCreate(&e, 2));
    atomic_store(&gate, 0);
    atomic_store(&order, 0);
    OK(cuLaunchHostFunc(s, hold, NULL));
    OK(cuLaunchHostFunc(s, note, &first_place));
    OK(cuEventRecord(e, s));
    OK(cuStreamWaitEvent(t, e, 0));
    OK(cuEventDestroy_v2(e)); /* what was recorded stays */
    OK(cuLaunchHostFunc(t, note, &second_place));
    OK(cuStreamDestroy_v2(s)); /* its work is still done */
    pthread_create(&helper, NULL, let_go, NULL);
    OK(cuStreamSynchronize(t));
    pthread_join(helper, NULL);
    assert_int_equal(atomic_load(&first_place), 1);
    assert_int_equal(atomic_load(&second_place), 2);
}

static void *own_stream(void *ctx)
{
    unsigned long long *id = calloc(1, sizeof *id);
    OK(cuCtxSetCurrent(ctx));
    OK(cuStreamGetId(CU_STREAM_PER_THREAD, id));
    OK(cuLaunchHostFunc_ptsz(NULL, note, &first_place));
    OK(cuStreamSynchronize_ptsz(NULL));
    return id;
}

static void per_thread(void **state)
{
    pthread_t t[3];
    unsigned long long mine, again, legacy;
    void *theirs[3];
    (void)state;
    OK(cuStreamGetId(CU_STREAM_PER_THREAD, &mine));
    OK(cuStreamGetId_ptsz(NULL, &again));
    assert_int_equal(mine, again);
    OK(cuStreamGetId(NULL, &legacy));
    assert_int_not_equal(mine, legacy);
    for (int i = 0; i < 3; i++) {
        pthread_create(&t[i], NULL, own_stream, rig_current());
    }
    for (int i = 0; i < 3; i++) {
        pthread_join(t[i], &theirs[i]);
        assert_int_not_equal(*(unsigned long long *)theirs[i], mine);
        free(theirs[i]);
    }
}

static void memory_operations(void **state)
{
    CUstream s, t;
    (void)state;
    OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    OK(cuStreamCreate(&t, CU_STREAM_NON_BLOCKING));
    CUdeviceptr p = rig_alloc(16);
    OK(cuStreamWaitValue32_v2(s, p, 5, 0)); /* at least 5 */
    OK(cuStreamWriteValue32_v2(s, p + 4, 1, 0));
    usleep(2000);
    ERR(NOT_READY, cuStreamQuery(s));
    OK(cuStreamWriteValue32_v2(t, p, 6, 0));
    OK(cuStreamSynchronize(s));
    assert_int_equal(*(uint32_t *)(uintptr_t)(p + 4), 1);
    CUstreamBatchMemOpParams ops[2] = { { .waitValue = { 4, p + 8, .value64 = 0, 1, 0 } },
                                        { .writeValue = { 5, p + 8, .value64 = 1ull << 40, 0,
                                                          0 } } };
    OK(cuStreamBatchMemOp_v2(s, 2, ops, 0));
    OK(cuStreamSynchronize(s));
    assert_int_equal(rig_word(p, 3), 256);
    ERR(INVALID_VALUE, cuStreamWaitValue32_v2(s, p + 2, 5, 0));
    ERR(INVALID_VALUE, cuStreamWriteValue32_v2(s, p + 16, 5, 0));
    ERR(INVALID_VALUE, cuStreamWaitValue32_v2(s, p, 5, 64));
}

/* A forked child cannot use the device, and ends all the same. */
static void forked_child(void **state)
{
    int status;
    (void)state;
    OK(cuCtxSynchronize());
    pid_t child = fork();
    if (child == 0) {
        int n;
        exit(cuDeviceGetCount(&n) == CUDA_ERROR_NOT_INITIALIZED &&
                     cuInit(0) == CUDA_ERROR_NOT_INITIALIZED
                 ? 7
                 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 7);
    OK(cuCtxSynchronize());
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, rig_context, rig_end)
    const struct CMUnitTest tests[] = {
        T(making), T(attributes), T(host_functions), T(callbacks),         T(legacy_order),
        T(events), T(wait_event), T(per_thread),     T(memory_operations), T(forked_child),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
