/* SPDX-License-Identifier: Apache-2.0
 * Test: the table of entry points, error names and texts, and the errors of calls that are not
 * there. */
#include "rig.h"

#include <dlfcn.h>
#include <unistd.h>

static void before_init(void **state)
{
    int n;
    CUcontext c;
    CUdeviceptr p;
    (void)state;
    ERR(NOT_INITIALIZED, cuDeviceGetCount(&n));
    ERR(NOT_INITIALIZED, cuCtxGetCurrent(&c));
    ERR(NOT_INITIALIZED, cuMemAlloc_v2(&p, 4));
    ERR(INVALID_VALUE, cuInit(1));
    OK(cuDriverGetVersion(&n));
    assert_true(n >= 13000);
    OK(cuInit(0));
    OK(cuInit(0));
    ERR(INVALID_CONTEXT, cuMemAlloc_v2(&p, 4));
}

static void proc_address_versions(void **state)
{
    void *p;
    CUdriverProcAddressQueryResult q;
    (void)state;
    OK(cuGetProcAddress_v2("cuMemAlloc", &p, 2000, 0, &q));
    void *exported = dlsym(RTLD_DEFAULT, "cuMemAlloc");
    assert_ptr_equal(p, exported);
    OK(cuGetProcAddress_v2("cuMemAlloc", &p, 3010, 0, &q));
    assert_ptr_equal(p, exported);
    OK(cuGetProcAddress_v2("cuMemAlloc", &p, 13000, 0, &q));
    assert_ptr_equal(p, dlsym(RTLD_DEFAULT, "cuMemAlloc_v2"));
    assert_int_equal(q, CU_GET_PROC_ADDRESS_SUCCESS);
    OK(cuGetProcAddress_v2("cuCtxCreate", &p, 12040, 0, NULL));
    assert_ptr_equal(p, dlsym(RTLD_DEFAULT, "cuCtxCreate_v3"));
    OK(cuGetProcAddress("cuGetProcAddress", &p, 12000, 0));
    assert_ptr_equal(p, dlsym(RTLD_DEFAULT, "cuGetProcAddress_v2"));
}

static void proc_address_per_thread(void **state)
{
    void *p;
    (void)state;
    OK(cuGetProcAddress_v2("cuLaunchKernel", &p, 12000, 2, NULL));
    assert_ptr_equal(p, dlsym(RTLD_DEFAULT, "cuLaunchKernel_ptsz"));
    OK(cuGetProcAddress_v2("cuLaunchKernel", &p, 12000, 1, NULL));
    assert_ptr_equal(p, dlsym(RTLD_DEFAULT, "cuLaunchKernel"));
    OK(cuGetProcAddress_v2("cuMemcpyHtoD", &p, 12000, 2, NULL));
    assert_ptr_equal(p, dlsym(RTLD_DEFAULT, "cuMemcpyHtoD_v2_ptds"));
    OK(cuGetProcAddress_v2("cuMemAlloc", &p, 12000, 2, NULL)); /* has no twin */
    assert_ptr_equal(p, dlsym(RTLD_DEFAULT, "cuMemAlloc_v2"));
    OK(cuGetProcAddress_v2("cuMemcpy2DAsync", &p, 4000, 2, NULL)); /* the twin came later */
    assert_ptr_equal(p, dlsym(RTLD_DEFAULT, "cuMemcpy2DAsync_v2"));
}

static void proc_address_errors(void **state)
{
    void *p = &p;
    CUdriverProcAddressQueryResult q;
    (void)state;
    ERR(NOT_FOUND, cuGetProcAddress_v2("cuNoSuch", &p, 12000, 0, &q));
    assert_null(p);
    assert_int_equal(q, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
    ERR(NOT_FOUND, cuGetProcAddress_v2("", &p, 12000, 0, &q));
    ERR(NOT_FOUND, cuGetProcAddress_v2("zzz", &p, 12000, 0, &q));
    ERR(NOT_FOUND, cuGetProcAddress_v2("cuLaunchKernelEx", &p, 11050, 0, &q));
    assert_int_equal(q, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
    ERR(INVALID_VALUE, cuGetProcAddress_v2(NULL, &p, 12000, 0, &q));
    ERR(INVALID_VALUE, cuGetProcAddress_v2("cuInit", NULL, 12000, 0, &q));
    ERR(INVALID_VALUE, cuGetProcAddress_v2("cuInit", &p, 12000, 8, &q));
}

static void export_tables(void **state)
{
    const CUuuid id = { { 1, 2, 3 } };
    const void *table = &id;
    (void)state;
    ERR(NOT_FOUND, cuGetExportTable(&table, &id));
    assert_null(table);
}

static void error_words(void **state)
{
    static const struct {
        CUresult code;
        const char *name, *text;
    } known[] = {
        { CUDA_SUCCESS, "CUDA_SUCCESS", "no error" },
        { CUDA_ERROR_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument" },
        { CUDA_ERROR_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory" },
        { CUDA_ERROR_ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS",
          "an illegal memory access was encountered" },
        { CUDA_ERROR_UNKNOWN, "CUDA_ERROR_UNKNOWN", "unknown error" },
    };
    const char *s;
    (void)state;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        OK(cuGetErrorName(known[i].code, &s));
        assert_string_equal(s, known[i].name);
        OK(cuGetErrorString(known[i].code, &s));
        assert_string_equal(s, known[i].text);
    }
    ERR(INVALID_VALUE, cuGetErrorName((CUresult)12345, &s));
    assert_null(s);
    ERR(INVALID_VALUE, cuGetErrorString((CUresult)-1, &s));
}

/* A call that is not implemented names itself once on stderr. */
static void unsupported_is_loud_once(void **state)
{
    CUresult (*call)(void);
    char line[4096] = "";
    int ends[2], saved = dup(2);
    (void)state;
    void *p = dlsym(RTLD_DEFAULT, "cuImportExternalMemory");
    assert_non_null(p);
    memcpy(&call, &p, sizeof call);
    assert_int_equal(pipe(ends), 0);
    dup2(ends[1], 2);
    ERR(NOT_SUPPORTED, call());
    ERR(NOT_SUPPORTED, call());
    dup2(saved, 2);
    close(ends[1]);
    assert_true(read(ends[0], line, sizeof line - 1) > 0);
    close(ends[0]);
    assert_non_null(strstr(line, "halfwarp: cuImportExternalMemory is not supported"));
    assert_ptr_equal(strchr(line, '\n'), line + strlen(line) - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(before_init),
        cmocka_unit_test(proc_address_versions),
        cmocka_unit_test(proc_address_per_thread),
        cmocka_unit_test(proc_address_errors),
        cmocka_unit_test(export_tables),
        cmocka_unit_test(error_words),
        cmocka_unit_test(unsupported_is_loud_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
