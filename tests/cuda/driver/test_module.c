/* SPDX-License-Identifier: Apache-2.0
 * Test: modules, libraries, linking, their errors; variables; attributes of functions; occupancy. */
#include "rig.h"

#include <unistd.h>

static void variables(void **state)
{
    CUdeviceptr p, q, self;
    size_t size;
    uint32_t words[4];
    (void)state;
    CUmodule m = rig_module();
    OK(cuModuleGetGlobal_v2(&p, &size, m, "counter"));
    assert_int_equal(size, 4);
    assert_int_equal(rig_word(p, 0), 7);
    OK(cuModuleGetGlobal_v2(&q, NULL, m, "table"));
    OK(cuMemcpyDtoH_v2(words, q, sizeof words));
    assert_int_equal(words[3], 40);
    OK(cuMemcpyHtoD_v2(q, words, sizeof words)); /* as cudaMemcpyToSymbol does */
    OK(cuModuleGetGlobal_v2(&q, NULL, m, "self"));
    OK(cuMemcpyDtoH_v2(&self, q, 8));
    assert_int_equal(self, p); /* the relocation */
    OK(cuModuleGetGlobal_v2(&q, &size, m, "big"));
    assert_int_equal(size, 1 << 20);
    assert_int_equal(rig_word(q, 262143), 0);
    OK(cuModuleGetGlobal_v2(&q, NULL, m, "shared_word"));
    assert_int_equal(*(uint32_t *)(uintptr_t)q, 5); /* managed: the host reads it */
    ERR(NOT_FOUND, cuModuleGetGlobal_v2(&q, NULL, m, "nothing"));
    ERR(INVALID_VALUE, cuModuleGetGlobal_v2(&q, NULL, m, NULL));
    ERR(INVALID_VALUE, cuMemFree_v2(p));
    OK(cuModuleUnload(m));
    ERR(INVALID_HANDLE, cuModuleUnload(m));
    ERR(INVALID_HANDLE, cuModuleGetGlobal_v2(&q, NULL, m, "counter"));
}

/* A second load has variables of its own, and fresh ones, although memory is reused. */
static void fresh_variables(void **state)
{
    CUdeviceptr p, q;
    (void)state;
    CUmodule a = rig_module(), b = rig_module();
    OK(cuModuleGetGlobal_v2(&p, NULL, a, "big"));
    OK(cuModuleGetGlobal_v2(&q, NULL, b, "big"));
    assert_int_not_equal(p, q);
    OK(cuMemsetD8_v2(p, 0xEE, 1 << 20));
    OK(cuModuleUnload(a));
    a = rig_module();
    OK(cuModuleGetGlobal_v2(&p, NULL, a, "big"));
    assert_int_equal(rig_word(p, 1000), 0);
}

static void functions(void **state)
{
    CUfunction f, g;
    CUmodule m = rig_module(), back;
    const char *name;
    unsigned n;
    size_t offset, size;
    (void)state;
    OK(cuModuleGetFunction(&f, m, "mixed"));
    OK(cuModuleGetFunction(&g, m, "mixed"));
    assert_ptr_equal(f, g);
    ERR(NOT_FOUND, cuModuleGetFunction(&g, m, "nothing"));
    ERR(INVALID_HANDLE, cuModuleGetFunction(&g, (CUmodule)f, "mixed"));
    OK(cuFuncGetName(&name, f));
    assert_string_equal(name, "mixed");
    OK(cuFuncGetModule(&back, f));
    assert_ptr_equal(back, m);
    OK(cuModuleGetFunctionCount(&n, m));
    assert_int_equal(n, 10);
    OK(cuFuncGetParamInfo(f, 3, &offset, &size));
    assert_int_equal(offset, 16);
    assert_int_equal(size, 16);
    OK(cuFuncGetParamInfo(f, 4, &offset, NULL));
    assert_int_equal(offset, 32);
    ERR(INVALID_VALUE, cuFuncGetParamInfo(f, 5, &offset, &size));
    OK(cuModuleUnload(m));
    ERR(INVALID_HANDLE, cuFuncGetName(&name, f));
}

static void attributes(void **state)
{
    int v;
    (void)state;
    CUfunction f = rig_kernel("shared_size"), l = rig_kernel("limited");
    OK(cuFuncGetAttribute(&v, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, f));
    assert_int_equal(v, 1024);
    OK(cuFuncGetAttribute(&v, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, l));
    assert_int_equal(v, 64);
    OK(cuFuncGetAttribute(&v, CU_FUNC_ATTRIBUTE_NUM_REGS, f));
    assert_true(v > 0 && v < 64);
    OK(cuFuncGetAttribute(&v, CU_FUNC_ATTRIBUTE_PTX_VERSION, f));
    assert_int_equal(v, 52);
    OK(cuFuncGetAttribute(&v, CU_FUNC_ATTRIBUTE_BINARY_VERSION, f));
    assert_int_equal(v, 90);
    OK(cuFuncGetAttribute(&v, CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES, f));
    assert_int_equal(v, 16);
    OK(cuFuncGetAttribute(&v, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, f));
    assert_int_equal(v, 49152);
    OK(cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 100000));
    OK(cuFuncGetAttribute(&v, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, f));
    assert_int_equal(v, 100000);
    ERR(INVALID_VALUE,
        cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 232449));
    ERR(INVALID_VALUE, cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_NUM_REGS, 3));
    ERR(INVALID_VALUE, cuFuncGetAttribute(&v, (CUfunction_attribute)77, f));
    OK(cuFuncSetCacheConfig(f, (CUfunc_cache)1));
    ERR(INVALID_HANDLE, cuFuncGetAttribute(&v, CU_FUNC_ATTRIBUTE_NUM_REGS, NULL));
}

static void occupancy(void **state)
{
    int blocks, grid, block;
    size_t bytes;
    (void)state;
    CUfunction f = rig_kernel("add");
    OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, f, 256, 0));
    assert_int_equal(blocks, 8); /* 2048 threads an SM */
    OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, f, 256, 40000));
    assert_int_equal(blocks, 5); /* shared memory: 228 KB an SM */
    ERR(INVALID_VALUE, cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, f, 0, 0));
    OK(cuOccupancyMaxPotentialBlockSize(&grid, &block, f, NULL, 0, 0));
    assert_int_equal(block, 1024);
    assert_int_equal(grid, 2 * 132);
    OK(cuOccupancyMaxPotentialBlockSize(&grid, &block, f, NULL, 0, 128));
    assert_int_equal(block, 128);
    OK(cuOccupancyAvailableDynamicSMemPerBlock(&bytes, f, 2, 128));
    assert_true(bytes > 40000);
}

static CUresult load_text(const char *text, char *log, size_t size)
{
    CUmodule m;
    CUjit_option options[] = { CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES };
    void *values[] = { log, (void *)size };
    log[0] = '\0';
    return cuModuleLoadDataEx(&m, text, 2, options, values);
}

#define HEAD ".version 7.0\n.target sm_52\n.address_size 64\n"

static void bad_images(void **state)
{
    char log[1000];
    CUmodule m;
    (void)state;
    ERR(INVALID_PTX,
        load_text(HEAD ".visible .entry k()\n{\n    .reg .b32 %r;\n    add.u32 %r, %r 1;\n}\n", log,
                  1000));
    assert_non_null(strstr(log, ":7:"));
    assert_non_null(strchr(log, '^'));
    ERR(INVALID_PTX,
        load_text(HEAD ".visible .entry k()\n{\n    .reg .b32 %r;\n    frob.u32 %r, %r;\n}\n", log,
                  1000));
    assert_non_null(strstr(log, "frob"));
    ERR(INVALID_PTX,
        load_text(HEAD ".extern .func f();\n.visible .entry k()\n{\n    call f;\n    ret;\n}\n",
                  log, 1000));
    assert_non_null(strstr(log, "f"));
    ERR(INVALID_PTX, load_text(HEAD ".visible .entry k()\n{\n    frob.u32 %r, %r;\n}\n", log, 20));
    assert_true(strlen(log) < 20);
    ERR(UNSUPPORTED_PTX_VERSION,
        load_text(".version 42.0\n.target sm_52\n.address_size 64\n", log, 1000));
    static const char not_elf[256] = "\x7f"
                                     "ELF but not really";
    ERR(INVALID_IMAGE, load_text(not_elf, log, 1000));
    ERR(INVALID_VALUE, cuModuleLoadData(&m, NULL));
    ERR(INVALID_VALUE, cuModuleLoadData(NULL, HEAD));
    ERR(FILE_NOT_FOUND, cuModuleLoad(&m, "/nonexistent/module.ptx"));
}

static void from_file(void **state)
{
    char path[1024];
    CUmodule m;
    CUfunction f;
    (void)state;
    snprintf(path, sizeof path, "%s/kernels.ptx", getenv("TEST_DIR"));
    OK(cuModuleLoad(&m, path));
    OK(cuModuleGetFunction(&f, m, "add"));
}

/* Two units, one calling a function of the other. */
static void linking(void **state)
{
    static char a[] =
        HEAD ".extern .func (.reg .b32 r) twice(.reg .b32 x);\n"
             ".visible .entry k(.param .u64 p)\n{\n    .reg .b32 %r;\n    .reg .b64 %d;\n"
             "    ld.param.u64 %d, [p];\n    mov.u32 %r, 21;\n    call (%r), twice, (%r);\n"
             "    st.global.u32 [%d], %r;\n    ret;\n}\n";
    static char b[] = HEAD
        ".visible .func (.reg .b32 r) twice(.reg .b32 x)\n{\n    add.u32 r, x, x;\n    ret;\n}\n";
    CUlinkState l;
    CUmodule m;
    CUfunction f;
    void *image;
    size_t size;
    (void)state;
    OK(cuLinkCreate_v2(0, NULL, NULL, &l));
    OK(cuLinkAddData_v2(l, CU_JIT_INPUT_PTX, a, sizeof a, "a.ptx", 0, NULL, NULL));
    ERR(INVALID_PTX, cuLinkComplete(l, &image, &size)); /* twice is missing */
    OK(cuLinkAddData_v2(l, CU_JIT_INPUT_PTX, b, sizeof b, "b.ptx", 0, NULL, NULL));
    OK(cuLinkComplete(l, &image, &size));
    assert_true(size > sizeof a + sizeof b - 2);
    OK(cuModuleLoadData(&m, image));
    OK(cuModuleGetFunction(&f, m, "k"));
    OK(cuLinkDestroy(l));
    ERR(INVALID_HANDLE, cuLinkDestroy(l));
    OK(cuModuleGetFunction(&f, m, "k")); /* the image is not needed any more */
}

/* A bound on registers, given to the compiler or the linker, holds for the kernel's attribute. */
static void register_bound(void **state)
{
    char text[8192];
    int at = snprintf(text, sizeof text, "%s",
                      HEAD ".visible .entry k(.param .u64 p)\n{\n"
                           ".reg .b64 %d; .reg .u32 %r<64>;\nld.param.u64 %d, [p];\n");
    for (int i = 0; i < 64; i++)
        at += snprintf(text + at, sizeof text - (size_t)at,
                       "ld.volatile.global.u32 %%r%d, [%%d+%d];\n", i, 4 * i);
    for (int i = 0; i < 64; i++)
        at += snprintf(text + at, sizeof text - (size_t)at, "st.global.u32 [%%d+%d], %%r%d;\n",
                       4 * (63 - i), i);
    snprintf(text + at, sizeof text - (size_t)at, "ret;\n}\n");
    CUjit_option option = CU_JIT_MAX_REGISTERS;
    void *value = (void *)(uintptr_t)32, *image;
    CUmodule m;
    CUfunction f;
    CUlinkState l;
    int v;
    (void)state;
    OK(cuModuleLoadData(&m, text));
    OK(cuModuleGetFunction(&f, m, "k"));
    OK(cuFuncGetAttribute(&v, CU_FUNC_ATTRIBUTE_NUM_REGS, f));
    assert_true(v > 64);
    OK(cuModuleLoadDataEx(&m, text, 1, &option, &value));
    OK(cuModuleGetFunction(&f, m, "k"));
    OK(cuFuncGetAttribute(&v, CU_FUNC_ATTRIBUTE_NUM_REGS, f));
    assert_int_equal(v, 32);
    OK(cuLinkCreate_v2(1, &option, &value, &l));
    OK(cuLinkAddData_v2(l, CU_JIT_INPUT_PTX, text, strlen(text) + 1, "k", 0, NULL, NULL));
    OK(cuLinkComplete(l, &image, NULL));
    OK(cuModuleLoadData(&m, image));
    OK(cuModuleGetFunction(&f, m, "k"));
    OK(cuFuncGetAttribute(&v, CU_FUNC_ATTRIBUTE_NUM_REGS, f));
    assert_int_equal(v, 32);
    OK(cuLinkDestroy(l));
}

static void libraries(void **state)
{
    CUlibrary lib;
    CUkernel k, all[16];
    CUfunction f;
    CUmodule m;
    CUdeviceptr p, q;
    size_t size;
    unsigned n;
    int v;
    (void)state;
    char *text = rig_text("kernels.ptx");
    OK(cuLibraryLoadData(&lib, text, NULL, NULL, 0, NULL, NULL, 0));
    free(text);
    OK(cuLibraryGetKernel(&k, lib, "add"));
    ERR(NOT_FOUND, cuLibraryGetKernel(&k, lib, "nothing"));
    OK(cuLibraryGetKernelCount(&n, lib));
    assert_int_equal(n, 10);
    OK(cuLibraryEnumerateKernels(all, 16, lib));
    OK(cuKernelGetFunction(&f, k));
    OK(cuFuncGetModule(&m, f));
    OK(cuLibraryGetGlobal(&p, &size, lib, "counter"));
    OK(cuModuleGetGlobal_v2(&q, NULL, m, "counter"));
    assert_int_equal(p, q);
    assert_int_equal(rig_word(p, 0), 7);
    OK(cuLibraryGetManaged(&q, &size, lib, "shared_word"));
    assert_int_equal(*(uint32_t *)(uintptr_t)q, 5);
    ERR(NOT_FOUND, cuLibraryGetManaged(&q, &size, lib, "counter"));
    OK(cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 60000, k, 0));
    OK(cuFuncGetAttribute(&v, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                          f)); /* the same setting */
    assert_int_equal(v, 60000);
    OK(cuFuncGetAttribute(&v, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, (CUfunction)k));
    assert_int_equal(v, 60000);
    ERR(NOT_PERMITTED, cuModuleUnload(m));
    OK(cuLibraryUnload(lib));
    ERR(INVALID_HANDLE, cuLibraryUnload(lib));
    ERR(INVALID_HANDLE, cuKernelGetFunction(&f, k));
}

/* Managed variables of a library are there before any context is. */
static void managed_before_context(void **state)
{
    CUlibrary lib;
    CUdeviceptr p;
    size_t size;
    CUcontext c;
    (void)state;
    OK(cuCtxGetCurrent(&c));
    OK(cuCtxSetCurrent(NULL));
    char *text = rig_text("kernels.ptx");
    OK(cuLibraryLoadData(&lib, text, NULL, NULL, 0, NULL, NULL, 0));
    free(text);
    OK(cuLibraryGetManaged(&p, &size, lib, "shared_word"));
    assert_int_equal(*(uint32_t *)(uintptr_t)p, 5);
    ERR(INVALID_CONTEXT, cuLibraryGetGlobal(&p, &size, lib, "counter"));
    OK(cuCtxSetCurrent(c));
    OK(cuLibraryUnload(lib));
}

/* One line for an error, none for the same error again, and none where the program takes the log. */
static void told_once(void **state)
{
    char line[4096] = "", log[100];
    int ends[2], saved = dup(2);
    CUmodule m;
    const char *text =
        HEAD ".visible .entry told()\n{\n    .reg .b32 %r;\n    wibble.u32 %r, %r;\n}\n";
    (void)state;
    assert_int_equal(pipe(ends), 0);
    dup2(ends[1], 2);
    CUresult logged = load_text(text, log, sizeof log);
    CUresult a = cuModuleLoadData(&m, text), b = cuModuleLoadData(&m, text);
    dup2(saved, 2);
    close(ends[1]);
    assert_true(read(ends[0], line, sizeof line - 1) > 0);
    close(ends[0]);
    assert_int_equal(logged, CUDA_ERROR_INVALID_PTX);
    assert_int_equal(a, CUDA_ERROR_INVALID_PTX);
    assert_int_equal(b, CUDA_ERROR_INVALID_PTX);
    assert_non_null(strstr(log, "wibble"));
    assert_ptr_equal(strchr(line, '\n'), line + strlen(line) - 1);
    assert_non_null(strstr(line, "wibble"));
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, rig_context, rig_end)
    const struct CMUnitTest tests[] = {
        T(variables),
        T(fresh_variables),
        T(functions),
        T(attributes),
        T(occupancy),
        T(bad_images),
        T(from_file),
        T(linking),
        T(register_bound),
        T(libraries),
        T(managed_before_context),
        T(told_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
