/* SPDX-License-Identifier: Apache-2.0
 * Making and ending things again and again takes no more memory: programs that compile while they run load many
 * thousand modules. Each test warms up, then does the same more often and looks at the heap and at the process's mappings.
 * With an argument, that many times as often, and the figures are told. */
#include "rig.h"

#include <malloc.h>
#include <unistd.h>

static int often = 1;

static long heap_bytes(void)
{
    struct mallinfo2 m = mallinfo2(); /* zeros where a sanitizer keeps the heap */
    return (long)(m.uordblks + m.hblkhd);
}

static long mappings(void)
{
    long n = 0;
    FILE *f = fopen("/proc/self/maps", "r");
    assert_non_null(f);
    for (int c; (c = fgetc(f)) != EOF;)
        n += c == '\n';
    fclose(f);
    return n;
}

/* Threads of streams that were destroyed take a moment to end. */
static long mappings_above(long before, long allowed)
{
    long more = mappings() - before;
    for (int i = 0; i < 400 && more > allowed; i++) {
        usleep(20000);
        more = mappings() - before;
    }
    return more;
}

/* each: bytes a time that may be more; the C library keeps some chunks at hand, and so does LLVM. */
static void repeat(const char *what, int times, long each, void (*once)(int))
{
    enum { SLACK_BYTES = 64 << 10, SLACK_MAPPINGS = 12 };
    const int warm = times / 4 + 1;
    times *= often;
    for (int i = 0; i < warm; i++)
        once(i);
    long heap = heap_bytes(), maps = mappings();
    for (int i = 0; i < times; i++)
        once(warm + i);
    long more = mappings_above(maps, SLACK_MAPPINGS), grown = heap_bytes() - heap;
    if (often > 1)
        printf("%s: %d times, %ld bytes more, %ld mappings more\n", what, times, grown, more);
    if (more > SLACK_MAPPINGS)
        fail_msg("%s: %ld mappings more after %d times", what, more, times);
    if (grown > SLACK_BYTES + times * each)
        fail_msg("%s: %ld bytes more after %d times", what, grown, times);
}

static void module_once(int i)
{
    static CUdeviceptr out;
    CUmodule m;
    CUfunction f;
    char text[1024];
    unsigned want = 1000u + (unsigned)i;
    if (!out)
        out = rig_alloc(4);
    snprintf(text, sizeof text,
             ".version 7.0\n.target sm_52\n.address_size 64\n.visible .global .u32 word = %u;\n"
             ".visible .entry k(.param .u64 out)\n{\n.reg .b64 %%d;\n.reg .b32 %%r;\n"
             "ld.param.u64 %%d, [out];\nld.global.u32 %%r, [word];\nadd.u32 %%r, %%r, %u;\n"
             "st.global.u32 [%%d], %%r;\nret;\n}\n",
             want, i);
    OK(cuModuleLoadData(&m, text));
    OK(cuModuleGetFunction(&f, m, "k"));
    OK(rig_launch(f, 1, 1, NULL, &out, NULL));
    assert_int_equal(rig_word(out, 0), want + (unsigned)i);
    OK(cuModuleUnload(m));
}

static void library_once(int i)
{
    CUlibrary l;
    CUkernel k;
    (void)i;
    static char *text;
    if (!text)
        text = rig_text("kernels.ptx");
    OK(cuLibraryLoadData(&l, text, NULL, NULL, 0, NULL, NULL, 0));
    OK(cuLibraryGetKernel(&k, l, "count"));
    OK(rig_launch((CUfunction)k, 1, 32, NULL, NULL));
    OK(cuCtxSynchronize());
    OK(cuLibraryUnload(l));
}

static void memory_once(int i)
{
    CUdeviceptr p, q, r, a;
    void *host;
    size_t pitch;
    OK(cuMemAlloc_v2(&p, 1000 + (size_t)i % 100000));
    OK(cuMemAllocPitch_v2(&q, &pitch, 100, 20, 4));
    OK(cuMemAllocManaged(&r, 5000, 1));
    OK(cuMemAllocHost_v2(&host, 3000));
    OK(cuMemAllocAsync(&a, 4096, NULL));
    OK(cuMemsetD8_v2(p, 1, 1000));
    OK(cuMemFreeAsync(a, NULL));
    OK(cuMemFree_v2(p));
    OK(cuMemFree_v2(q));
    OK(cuMemFree_v2(r));
    OK(cuMemFreeHost(host));
}

static void stream_once(int i)
{
    CUstream s;
    CUevent e;
    (void)i;
    static CUdeviceptr p;
    if (!p)
        p = rig_alloc(64);
    OK(cuStreamCreate(&s, 1));
    OK(cuEventCreate(&e, 0));
    OK(cuMemsetD8Async(p, 1, 64, s));
    OK(cuEventRecord(e, s));
    OK(cuStreamWaitEvent(NULL, e, 0));
    OK(cuStreamSynchronize(s));
    OK(cuEventDestroy_v2(e));
    OK(cuStreamDestroy_v2(s));
}

static void interprocess_once(int i)
{
    CUevent e;
    CUipcMemHandle h;
    CUdeviceptr p;
    (void)i;
    OK(cuEventCreate(&e, 6));
    OK(cuEventRecord(e, NULL));
    OK(cuEventSynchronize(e));
    OK(cuEventDestroy_v2(e));
    OK(cuMemAlloc_v2(&p, 4096));
    OK(cuIpcGetMemHandle(&h, p));
    OK(cuMemFree_v2(p));
}

static void graph_once(int i)
{
    static CUdeviceptr p;
    CUgraph g, captured;
    CUgraphNode n, m;
    CUgraphExec x, y;
    CUstream s;
    CUgraphConditionalHandle h;
    (void)i;
    if (!p)
        p = rig_alloc(64);
    const CUDA_MEMSET_NODE_PARAMS set = { p, 0, 7, 4, 16, 1 };
    OK(cuGraphCreate(&g, 0));
    OK(cuGraphAddMemsetNode(&n, g, NULL, 0, &set, rig_current()));
    OK(cuGraphConditionalHandleCreate(&h, g, NULL, 1, 1));
    CUgraphNodeParams c = { .type = CU_GRAPH_NODE_TYPE_CONDITIONAL,
                            .conditional = { .handle = h, .size = 1 } };
    OK(cuGraphAddNode_v2(&m, g, &n, NULL, 1, &c));
    OK(cuGraphAddMemsetNode(&n, c.conditional.phGraph_out[0], NULL, 0, &set, rig_current()));
    OK(cuGraphInstantiateWithFlags(&x, g, 0));
    OK(cuStreamCreate(&s, 1));
    OK(cuGraphLaunch(x, s));
    OK(cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_RELAXED));
    OK(cuMemsetD8Async(p, 1, 64, s));
    OK(cuStreamEndCapture(s, &captured));
    OK(cuGraphInstantiateWithFlags(&y, captured, 0));
    OK(cuGraphLaunch(y, s));
    OK(cuStreamSynchronize(s));
    OK(cuGraphExecDestroy(x));
    OK(cuGraphExecDestroy(y));
    OK(cuGraphDestroy(g));
    OK(cuGraphDestroy(captured));
    OK(cuStreamDestroy_v2(s));
}

static void context_once(int i)
{
    CUcontext ctx;
    CUdeviceptr p;
    CUstream s;
    CUevent e;
    (void)i;
    OK(cuCtxCreate_v2(&ctx, 0, 0));
    OK(cuMemAlloc_v2(&p, 1 << 20));
    OK(cuStreamCreate(&s, 0));
    OK(cuEventCreate(&e, 0));
    OK(cuMemsetD8Async(p, 0, 1 << 20, s));
    OK(cuCtxDestroy_v2(ctx)); /* with all that is in it */
}

static void various_once(int i)
{
    CUmemoryPool pool;
    CUarray a;
    CUtexObject t;
    CUdeviceptr p;
    (void)i;
    const CUmemPoolProps props = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                   .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 } };
    const CUDA_ARRAY3D_DESCRIPTOR desc = {
        .Width = 64, .Height = 64, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1
    };
    OK(cuArray3DCreate_v2(&a, &desc));
    const CUDA_RESOURCE_DESC r = { .res.array.hArray = a };
    const CUDA_TEXTURE_DESC how = { .filterMode = 1 };
    OK(cuTexObjectCreate(&t, &r, &how, NULL));
    OK(cuTexObjectDestroy(t));
    OK(cuArrayDestroy(a));
    OK(cuMemPoolCreate(&pool, &props));
    OK(cuMemAllocFromPoolAsync(&p, 1000, pool, NULL));
    OK(cuMemPoolDestroy(pool)); /* while it is in use */
    OK(cuMemFreeAsync(p, NULL));
    OK(cuStreamSynchronize(NULL));
}

static void modules(void **state)
{
    (void)state;
    repeat("modules", 80, 4096, module_once);
    repeat("libraries", 20, 512, library_once);
}

static void memory(void **state)
{
    (void)state;
    repeat("memory", 300, 16, memory_once);
    repeat("various", 300, 16, various_once);
}

static void streams(void **state)
{
    (void)state;
    repeat("streams and events", 100, 16, stream_once);
    repeat("interprocess", 100, 16, interprocess_once);
}

static void graphs(void **state)
{
    (void)state;
    repeat("graphs", 60, 16, graph_once);
}

static void contexts(void **state)
{
    (void)state;
    repeat("contexts", 8, 16, context_once);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        often = atoi(argv[1]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(modules, rig_context, rig_end),
        cmocka_unit_test_setup_teardown(memory, rig_context, rig_end),
        cmocka_unit_test_setup_teardown(streams, rig_context, rig_end),
        cmocka_unit_test_setup_teardown(graphs, rig_context, rig_end),
        cmocka_unit_test_setup_teardown(contexts, rig_context, rig_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
