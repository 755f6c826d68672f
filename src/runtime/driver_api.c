/* SPDX-License-Identifier: Apache-2.0
 * The driver's library found and its functions looked up.
 */
#include "driver_api.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

hw_driver_api hw_cu;

/* What a driver too old to have a function answers. */
static int missing(void)
{
    return hw_cudaErrorCallRequiresNewerDriver;
}

/* The driver beside this library first: the two belong together. */
static void *open_driver(void)
{
    static const char name[] = "libcuda.so.1";
    char path[4096];
    Dl_info self;
    if (dladdr((void *)&hw_cu, &self) && self.dli_fname) {
        const char *slash = strrchr(self.dli_fname, '/');
        size_t dir = slash ? (size_t)(slash - self.dli_fname) + 1 : 0;
        if (dir + sizeof name <= sizeof path) {
            memcpy(path, self.dli_fname, dir);
            memcpy(path + dir, name, sizeof name);
            void *handle = slash ? dlopen(path, RTLD_NOW | RTLD_GLOBAL) : NULL;
            if (handle)
                return handle;
        }
    }
    return dlopen(name, RTLD_NOW | RTLD_GLOBAL);
}

int hw_driver_api_load(void)
{
    static const char *const symbols[] = {
#define DRIVER(field, symbol, params) #symbol,
#include "driver_api.def"
#undef DRIVER
    };
    _Static_assert(sizeof symbols / sizeof *symbols == sizeof hw_cu / sizeof(void *),
                   "one pointer a symbol");
    void *handle = open_driver();
    if (!handle)
        return hw_cudaErrorInsufficientDriver;
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
        void *fn = dlsym(handle, symbols[i]);
        if (!fn)
            fn = (void *)missing;
        memcpy((char *)&hw_cu + i * sizeof fn, &fn, sizeof fn);
    }
    return hw_cudaSuccess;
}
