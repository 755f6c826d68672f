/* SPDX-License-Identifier: Apache-2.0
 * One launch of one kernel of a PTX file through the driver API.
 */
#include "ptxrun.h"

#include <dlfcn.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { BAD_INPUT = 2, LOG_SIZE = 65536, PRINTED = 16, ARGUMENTS_MAX = 256 };
enum { JIT_ERROR_LOG = 5, JIT_ERROR_LOG_SIZE = 6, FUNCTION_DYNAMIC_SHARED = 8 };

static const char usage[] =
    "usage: halfwarp run FILE.ptx --entry NAME --grid X,Y,Z --block X,Y,Z [--shared BYTES]\n"
    "                    [--out I=FILE.npy]... [--print N] [ARG...]\n"
    "ARG is TYPE=VALUE or TYPE[N]=FILL, in the order of the kernel's parameters.\n"
    "TYPE: u8 to u64, s8 to s64, f16, f32, f64. FILL: iota, ramp, zero, ones, random,\n"
    "random(SEED), a number, or @FILE.npy (TYPE[] takes its length from the file). Arrays are "
    "printed\n"
    "afterwards; --out writes array I (counted from 0 among the arguments) to a NumPy file "
    "instead.";

/* ---- the driver's functions ---- */

static struct {
    int (*cuInit)(unsigned);
    int (*cuDeviceGet)(int *, int);
    int (*cuDevicePrimaryCtxRetain)(void **, int);
    int (*cuCtxSetCurrent)(void *);
    int (*cuModuleLoadDataEx)(void **, const void *, unsigned, int *, void **);
    int (*cuModuleGetFunction)(void **, void *, const char *);
    int (*cuFuncGetParamInfo)(void *, size_t, size_t *, size_t *);
    int (*cuFuncSetAttribute)(void *, int, int);
    int (*cuMemAlloc_v2)(uint64_t *, size_t);
    int (*cuMemcpyHtoD_v2)(uint64_t, const void *, size_t);
    int (*cuMemcpyDtoH_v2)(void *, uint64_t, size_t);
    int (*cuLaunchKernel)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                          unsigned, void *, void **, void **);
    int (*cuCtxSynchronize)(void);
    int (*cuGetErrorString)(int, const char **);
} cu;

static const char *const symbols[] = {
    "cuInit",
    "cuDeviceGet",
    "cuDevicePrimaryCtxRetain",
    "cuCtxSetCurrent",
    "cuModuleLoadDataEx",
    "cuModuleGetFunction",
    "cuFuncGetParamInfo",
    "cuFuncSetAttribute",
    "cuMemAlloc_v2",
    "cuMemcpyHtoD_v2",
    "cuMemcpyDtoH_v2",
    "cuLaunchKernel",
    "cuCtxSynchronize",
    "cuGetErrorString",
};
_Static_assert(sizeof cu == sizeof symbols, "a pointer a symbol");

static hw_status open_driver(hw_diag *d)
{
    void *handle = dlopen("libcuda.so.1", RTLD_NOW);
    if (!handle)
        return hw_fail(d, HW_E_NOT_FOUND, "%s", dlerror());
    for (size_t i = 0; i < HW_COUNTOF(symbols); i++) {
        void *fn = dlsym(handle, symbols[i]);
        if (!fn)
            return hw_fail(d, HW_E_NOT_FOUND, "%s", dlerror());
        memcpy((char *)&cu + i * sizeof fn, &fn, sizeof fn);
    }
    return HW_OK;
}

static hw_status checked(int error, const char *what, hw_diag *d)
{
    const char *text = "unknown error";
    if (!error)
        return HW_OK;
    cu.cuGetErrorString(error, &text);
    return hw_fail(d, HW_E_INVALID, "%s: %s (%d)", what, text, error);
}

/* ---- the command line ---- */

typedef struct request {
    const char *file, *entry;
    unsigned grid[3], block[3], shared;
    size_t printed;
    const char *out[ARGUMENTS_MAX];
    argument arguments[ARGUMENTS_MAX];
    size_t n_arguments;
} request;

static bool read_dimensions(const char *text, unsigned d[3])
{
    d[0] = d[1] = d[2] = 1;
    for (int i = 0; i < 3; i++) {
        char *end;
        unsigned long v = strtoul(text, &end, 0);
        if (end == text || v > UINT32_MAX)
            return false;
        d[i] = (unsigned)v;
        if (*end == 0)
            return true;
        if (*end != ',' && *end != 'x')
            return false;
        text = end + 1;
    }
    return false;
}

static bool read_out(request *r, const char *text)
{
    char *end;
    unsigned long i = strtoul(text, &end, 10);
    if (end == text || *end != '=' || i >= ARGUMENTS_MAX)
        return false;
    r->out[i] = end + 1;
    return true;
}

static bool read_whole(const char *text, unsigned long *out)
{
    char *end;
    *out = strtoul(text, &end, 0);
    return end != text && *end == 0 && *out <= UINT32_MAX;
}

static bool read_option(request *r, int option, const char *text)
{
    unsigned long n;
    bool good = true;
    if (option == 'e')
        r->entry = text;
    else if (option == 'g')
        good = read_dimensions(text, r->grid);
    else if (option == 'b')
        good = read_dimensions(text, r->block);
    else if (option == 'o')
        good = read_out(r, text);
    else if ((good = read_whole(text, &n)) && option == 's')
        r->shared = (unsigned)n;
    else
        r->printed = n;
    return good;
}

static hw_status parse(hw_arena *a, int argc, char **argv, request *r, hw_diag *d)
{
    static const struct option options[] = {
        { "entry", required_argument, NULL, 'e' },
        { "grid", required_argument, NULL, 'g' },
        { "block", required_argument, NULL, 'b' },
        { "shared", required_argument, NULL, 's' },
        { "out", required_argument, NULL, 'o' },
        { "print", required_argument, NULL, 'p' },
        { NULL, 0, NULL, 0 },
    };
    int option;
    r->printed = PRINTED;
    r->grid[0] = r->grid[1] = r->grid[2] = r->block[0] = r->block[1] = r->block[2] = 1;
    opterr = 0;
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (option == '?')
            return hw_fail(d, HW_E_INVALID, "%s: no such option, or no value for it",
                           argv[optind - 1]);
        if (!read_option(r, option, optarg))
            return hw_fail(d, HW_E_INVALID, "'%s' makes no sense here", optarg);
    }
    if (optind >= argc || !r->entry)
        return hw_fail(d, HW_E_INVALID, "a PTX file and --entry NAME are needed\n%s", usage);
    r->file = argv[optind++];
    for (; optind < argc; optind++) {
        if (r->n_arguments == ARGUMENTS_MAX)
            return hw_fail(d, HW_E_INVALID, "too many arguments");
        HW_TRY(argument_parse(a, argv[optind], &r->arguments[r->n_arguments++], d));
    }
    return HW_OK;
}

/* ---- the launch ---- */

/* The driver knows the text by the call that brought it: say the file's name instead. */
static const char *with_name(hw_arena *a, const char *log, const char *file)
{
    static const char origin[] = "cuModuleLoadData:";
    const char *all = "", *at;
    for (; (at = strstr(log, origin)); log = at + sizeof origin - 1)
        all = hw_arena_printf(a, "%s%.*s%s:", all, (int)(at - log), log, file);
    return hw_arena_printf(a, "%s%s", all, log);
}

static hw_status load(hw_arena *a, const request *r, void **module, hw_diag *d)
{
    hw_str text;
    HW_TRY(hw_read_file(a, r->file, &text, d));
    char *log = hw_arena_alloc(a, LOG_SIZE);
    int options[] = { JIT_ERROR_LOG, JIT_ERROR_LOG_SIZE };
    void *values[] = { log, (void *)(uintptr_t)LOG_SIZE };
    int error = cu.cuModuleLoadDataEx(module, text.ptr, 2, options, values);
    if (error && *log)
        return hw_fail(d, HW_E_SYNTAX, "cannot load it (%d)\n%s", error,
                       with_name(a, log, r->file));
    return checked(error, r->file, d);
}

static bool is_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '$' || c == '%';
}

/* The names after .entry in the file. */
static size_t entries(hw_arena *a, hw_str text, const char **names, size_t most)
{
    static const char word[] = ".entry";
    size_t n = 0;
    for (const char *p = text.ptr; (p = strstr(p, word)) && n < most;) {
        p += sizeof word - 1;
        p += strspn(p, " \t\r\n");
        const char *start = p;
        while (is_name(*p))
            p++;
        names[n++] = hw_arena_cstr(a, (hw_str){ start, (size_t)(p - start) });
    }
    return n;
}

static hw_status find(hw_arena *a, const request *r, void *module, void **function, hw_diag *d)
{
    enum { SHOWN = 64 };
    const char *names[SHOWN], *all = "";
    hw_str text;
    if (cu.cuModuleGetFunction(function, module, r->entry) == 0)
        return HW_OK;
    HW_TRY(hw_read_file(a, r->file, &text, d));
    size_t n = entries(a, text, names, SHOWN);
    const char *near = hw_nearest(r->entry, names, n);
    for (size_t i = 0; i < n; i++)
        all = hw_arena_printf(a, "%s%s%s", all, i ? ", " : "", names[i]);
    return hw_fail(d, HW_E_NOT_FOUND, "%s has no kernel %s%s%s%s; it has: %s", r->file, r->entry,
                   near ? "; did you mean " : "", near ? near : "", near ? "?" : "",
                   n ? all : "none");
}

/* The kernel's parameters against the arguments: their number, then each one's size. */
static hw_status check_arguments(const request *r, void *function, hw_diag *d)
{
    size_t n = 0, offset, size;
    while (n < ARGUMENTS_MAX && cu.cuFuncGetParamInfo(function, n, &offset, &size) == 0) {
        const argument *arg = &r->arguments[n];
        size_t given = n >= r->n_arguments ? size : arg->is_array ? 8 : arg->type->size;
        if (given != size)
            return hw_fail(d, HW_E_INVALID, "%s: parameter %zu of %s has %zu bytes, not %zu",
                           arg->text, n, r->entry, size, given);
        n++;
    }
    if (n != r->n_arguments)
        return hw_fail(d, HW_E_INVALID, "%s takes %zu arguments, not %zu", r->entry, n,
                       r->n_arguments);
    return HW_OK;
}

static hw_status upload(request *r, void **values, hw_diag *d)
{
    for (size_t i = 0; i < r->n_arguments; i++) {
        argument *arg = &r->arguments[i];
        size_t size = arg->count * arg->type->size;
        values[i] = arg->bytes;
        if (!arg->is_array)
            continue;
        values[i] = &arg->device;
        HW_TRY(checked(cu.cuMemAlloc_v2(&arg->device, size), arg->text, d));
        HW_TRY(checked(cu.cuMemcpyHtoD_v2(arg->device, arg->bytes, size), arg->text, d));
    }
    return HW_OK;
}

static hw_status launch(hw_arena *a, request *r, hw_diag *d)
{
    void *ctx, *module, *function, *values[ARGUMENTS_MAX];
    int device;
    enum { ALWAYS_ALLOWED = 48 * 1024 };
    HW_TRY(open_driver(d));
    HW_TRY(checked(cu.cuInit(0), "cuInit", d));
    HW_TRY(checked(cu.cuDeviceGet(&device, 0), "cuDeviceGet", d));
    HW_TRY(checked(cu.cuDevicePrimaryCtxRetain(&ctx, device), "context", d));
    HW_TRY(checked(cu.cuCtxSetCurrent(ctx), "context", d));
    HW_TRY(load(a, r, &module, d));
    HW_TRY(find(a, r, module, &function, d));
    HW_TRY(check_arguments(r, function, d));
    HW_TRY(upload(r, values, d));
    if (r->shared > ALWAYS_ALLOWED)
        HW_TRY(checked(cu.cuFuncSetAttribute(function, FUNCTION_DYNAMIC_SHARED, (int)r->shared),
                       "--shared", d));
    HW_TRY(checked(cu.cuLaunchKernel(function, r->grid[0], r->grid[1], r->grid[2], r->block[0],
                                     r->block[1], r->block[2], r->shared, NULL, values, NULL),
                   "launch", d));
    return checked(cu.cuCtxSynchronize(), r->entry, d);
}

/* ---- the results ---- */

static hw_status report(hw_arena *a, request *r, hw_diag *d)
{
    for (size_t i = 0; i < r->n_arguments; i++) {
        argument *arg = &r->arguments[i];
        if (!arg->is_array)
            continue;
        HW_TRY(checked(cu.cuMemcpyDtoH_v2(arg->bytes, arg->device, arg->count * arg->type->size),
                       arg->text, d));
        if (r->out[i]) {
            HW_TRY(npy_write(r->out[i], arg, d));
            continue;
        }
        printf("%zu: %s[%zu] =", i, arg->type->name, arg->count);
        for (size_t k = 0; k < arg->count && k < r->printed; k++)
            printf(" %s", argument_element(a, arg, k));
        printf("%s\n", arg->count > r->printed ? " ..." : "");
    }
    return HW_OK;
}

int main(int argc, char **argv)
{
    static request r;
    hw_arena *a = hw_arena_new();
    hw_diag *d = hw_diag_new(a);
    hw_status s = parse(a, argc, argv, &r, d);
    int bad = s == HW_OK ? 1 : BAD_INPUT;
    if (s == HW_OK)
        s = launch(a, &r, d);
    if (s == HW_OK)
        s = report(a, &r, d);
    if (s != HW_OK)
        fprintf(stderr, "%s\n", hw_diag_text(d, a).ptr);
    hw_arena_free(a);
    return s == HW_OK ? 0 : bad;
}
