/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of entry points: cuda.def made functions that are not implemented, twins for per-thread
 * default streams, elder versions, and what cuGetProcAddress answers from.
 */
#include "driver.h"

#include <dlfcn.h>

/* ---- not implemented: named once, then the error ---- */

static CUresult unsupported(const char *name)
{
    hw_cu_notice("%s is not supported yet (docs/coverage-driver.md)", name);
    return CUDA_ERROR_NOT_SUPPORTED;
}

#define STUB(name, symbol)             \
    HW_CUDA_API CUresult symbol(void); \
    HW_CUDA_API CUresult symbol(void)  \
    {                                  \
        return unsupported(#name);     \
    }
#define CU(name, version, symbol, chapter, params)
#define CU_PT(name, version, symbol, pt_version, pt_symbol, chapter, params, args)
#define CU_AS(name, version, symbol, newer, chapter, params, args)
#define CU_AS_PT(name, version, symbol, newer, pt_version, pt_symbol, chapter, params, args)
#define NO(name, version, symbol, chapter)    STUB(name, symbol)
#define NO_PT(name, version, symbol, chapter) STUB(name, symbol)
#include "cuda.def"
#undef CU_PT
#undef CU_AS
#undef CU_AS_PT
#undef NO
#undef NO_PT

/* ---- twins and elders ---- */

#define TWIN(symbol, target, params, args) \
    CUresult symbol params                 \
    {                                      \
        hw_cu_per_thread(true);            \
        CUresult r = target args;          \
        hw_cu_per_thread(false);           \
        return r;                          \
    }
#define ELDER(symbol, target, params, args) \
    CUresult symbol params                  \
    {                                       \
        return target args;                 \
    }
#define CU_PT(name, version, symbol, pt_version, pt_symbol, chapter, params, args) \
    TWIN(pt_symbol, symbol, params, args)
#define CU_AS(name, version, symbol, newer, chapter, params, args) \
    ELDER(symbol, newer, params, args)
#define CU_AS_PT(name, version, symbol, newer, pt_version, pt_symbol, chapter, params, args) \
    ELDER(symbol, newer, params, args)                                                       \
    TWIN(pt_symbol, newer, params, args)
#define NO(name, version, symbol, chapter)
#define NO_PT(name, version, symbol, chapter)
#include "cuda.def"
#undef CU
#undef CU_PT
#undef CU_AS
#undef CU_AS_PT
#undef NO
#undef NO_PT

/* ---- the table ---- */

typedef void any_fn(void);

typedef struct entry {
    const char *name;
    int version;
    bool per_thread;
    any_fn *fn;
} entry;

#define FN(symbol) ((any_fn *)symbol)
static const entry entries[] = {
#define CU(name, version, symbol, chapter, params) { #name, version, false, FN(symbol) },
#define CU_PT(name, version, symbol, pt_version, pt_symbol, chapter, params, args) \
    { #name, version, false, FN(symbol) }, { #name, pt_version, true, FN(pt_symbol) },
#define CU_AS(name, version, symbol, newer, chapter, params, args) \
    { #name, version, false, FN(symbol) },
#define CU_AS_PT(name, version, symbol, newer, pt_version, pt_symbol, chapter, params, args) \
    { #name, version, false, FN(symbol) }, { #name, pt_version, true, FN(pt_symbol) },
#define NO(name, version, symbol, chapter)    { #name, version, false, FN(symbol) },
#define NO_PT(name, version, symbol, chapter) { #name, version, true, FN(symbol) },
#include "cuda.def"
#undef CU
#undef CU_PT
#undef CU_AS
#undef CU_AS_PT
#undef NO
#undef NO_PT
};

/* The first row of a name: rows are sorted by name. HW_COUNTOF(entries) if there is none. */
static size_t first_row(const char *name)
{
    size_t lo = 0, hi = HW_COUNTOF(entries);
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (strcmp(entries[mid].name, name) < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < HW_COUNTOF(entries) && strcmp(entries[lo].name, name) == 0 ? lo
                                                                           : HW_COUNTOF(entries);
}

/* The newest row not above version; with per_thread, a twin if there is one. */
static const entry *best_row(size_t first, int version, bool per_thread)
{
    const entry *best = NULL;
    for (size_t i = first;
         i < HW_COUNTOF(entries) && strcmp(entries[i].name, entries[first].name) == 0; i++) {
        const entry *e = &entries[i];
        if (e->version > version || (e->per_thread && !per_thread))
            continue;
        bool twin_wins = best && e->per_thread != best->per_thread;
        if (!best || (twin_wins ? e->per_thread : e->version >= best->version))
            best = e;
    }
    return best;
}

enum { LEGACY_STREAM = 1, PER_THREAD_STREAM = 2 };

CUresult cuGetProcAddress_v2(const char *symbol, void **pfn, int version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult *status)
{
    CU_NEED(symbol && pfn && flags <= PER_THREAD_STREAM, INVALID_VALUE);
    *pfn = NULL;
    size_t first = first_row(symbol);
    const entry *e =
        first < HW_COUNTOF(entries) ? best_row(first, version, flags == PER_THREAD_STREAM) : NULL;
    if (status) {
        *status = e                              ? CU_GET_PROC_ADDRESS_SUCCESS
                  : first == HW_COUNTOF(entries) ? CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND
                                                 : CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
    }
    CU_NEED(e, NOT_FOUND);
    memcpy(pfn, &e->fn, sizeof *pfn);
    return CUDA_SUCCESS;
}

CUresult cuGetProcAddress(const char *symbol, void **pfn, int version, cuuint64_t flags)
{
    return cuGetProcAddress_v2(symbol, pfn, version, flags, NULL);
}

/* The takeover library knows which objects hold a runtime of NVIDIA's that it could not replace. */
static bool is_closed(const void *address)
{
    union {
        void *object;
        bool (*call)(const void *);
    } known = { dlsym(RTLD_DEFAULT, "halfwarp_is_closed") };
    return known.object && known.call(address);
}

/* NVIDIA's private tables are not part of the API, and none is here. */
CUresult cuGetExportTable(const void **table, const CUuuid *id)
{
    CU_NEED(table && id, INVALID_VALUE);
    *table = NULL;
    const void *caller = __builtin_return_address(0);
    Dl_info info;
    if (is_closed(caller) && dladdr(caller, &info) && info.dli_fname)
        hw_cu_notice("%s has a static CUDA runtime but no symbol table to find it by: kernels of "
                     "its own cannot run",
                     info.dli_fname);
    return CUDA_ERROR_NOT_FOUND;
}
