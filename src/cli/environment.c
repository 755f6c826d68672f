/* SPDX-License-Identifier: Apache-2.0
 *
 * Where the libraries are, and the variables that make a program use them. */
#include "environment.h"

#include "hw_device.h"

#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

/* The folders of one layout, relative to the executable's; only the first need not exist to tell
 * the layouts apart: the driver decides. */
typedef struct layout {
    const char *folders[6]; /* of libraries, the driver's first; ends with NULL */
    const char *takeover, *ptxrun, *assembler;
} layout;

static const layout layouts[] = {
    { { "../lib/halfwarp" },
      "../lib/halfwarp/libhalfwarp-takeover.so",
      "../lib/halfwarp/halfwarp-ptxrun",
      "../lib/halfwarp/halfwarp-ptxas" },
    { { "../driver", "../runtime/so13", "../runtime/so12", "../jitlink", "../takeover" },
      "../takeover/libhalfwarp-takeover.so",
      "ptxrun/halfwarp-ptxrun",
      "assembler/halfwarp-ptxas" },
};

static const char *own_folder(cli *c)
{
    char path[4096];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    if (n <= 0)
        return NULL;
    path[n] = 0;
    char *slash = strrchr(path, '/');
    return slash ? hw_arena_cstr(c->arena, (hw_str){ path, (size_t)(slash - path) }) : NULL;
}

/* own/relative without "..", so that it reads well in messages and /proc. */
static const char *place(cli *c, const char *own, const char *relative)
{
    char *real = realpath(hw_arena_printf(c->arena, "%s/%s", own, relative), NULL);
    const char *kept = real ? hw_arena_cstr(c->arena, hw_str_of(real)) : NULL;
    free(real);
    return kept;
}

static void set(cli_environment *e, const char *name, const char *value, bool joined)
{
    HW_CHECK(e->n < CLI_SETTING_MAX);
    e->settings[e->n++] = (cli_setting){ name, value, joined };
}

/* Triton runs ptxas and reads these; what the user has set stays. */
static void set_assembler(cli_environment *e, const char *path)
{
    static const char *const names[] = { "TRITON_PTXAS_PATH", "TRITON_PTXAS_BLACKWELL_PATH" };
    for (size_t i = 0; path && i < HW_COUNTOF(names); i++)
        if (!getenv(names[i]))
            set(e, names[i], path, false);
}

/* One device of a list, NAME or NAME:N, with a path made absolute: the program may run elsewhere. */
static const char *one_device(cli *c, hw_str item)
{
    size_t name = item.len;
    while (name && item.ptr[name - 1] >= '0' && item.ptr[name - 1] <= '9')
        name--;
    name = name && name < item.len && item.ptr[name - 1] == ':' ? name - 1 : item.len;
    const char *device = hw_arena_cstr(c->arena, (hw_str){ item.ptr, name });
    const char *times = hw_arena_cstr(c->arena, (hw_str){ item.ptr + name, item.len - name });
    const hw_device *model;
    enum { MOST = 64 };
    if (!*device) {
        cli_fail(c, "--device: a name is missing");
        return NULL;
    }
    if (*times && strtoul(times + 1, NULL, 10) > MOST) {
        cli_fail(c, "--device: %s%s is too many; at most %d", device, times, MOST);
        return NULL;
    }
    if (hw_device_load(c->arena, device, &model, c->diag) != HW_OK) {
        cli_fail_diag(c);
        return NULL;
    }
    if (model->vendor != HW_VENDOR_NVIDIA) {
        cli_fail(c, "%s is not a device that runs CUDA programs", model->name);
        return NULL;
    }
    bool path = strchr(device, '/') || hw_str_ends(hw_str_of(device), HW_STR(".json"));
    char *real = path ? realpath(device, NULL) : NULL;
    const char *whole = hw_arena_printf(c->arena, "%s%s", real ? real : device, times);
    free(real);
    return whole;
}

/* A comma-separated list, as the driver reads it: each device checked before the program starts. */
static int set_devices(cli *c, cli_environment *e, const char *list)
{
    const char *all = "";
    if (!*list)
        return cli_fail(c, "--device: a name is missing");
    for (const char *p = list, *end; *p; p = end + (*end == ',')) {
        end = p + strcspn(p, ",");
        hw_str item = { p, (size_t)(end - p) };
        while (item.len && item.ptr[0] == ' ')
            item.ptr++, item.len--;
        while (item.len && item.ptr[item.len - 1] == ' ')
            item.len--;
        const char *one = one_device(c, item);
        if (!one)
            return CLI_BAD_INPUT;
        all = hw_arena_printf(c->arena, "%s%s%s", all, *all ? "," : "", one);
    }
    set(e, "HALFWARP_DEVICE", all, false);
    return 0;
}

static int set_options(cli *c, cli_environment *e)
{
    static const char *const bounds[] = { "device", "exact", NULL };
    int which;
    if (cli_choose(c, OPT_bounds, bounds, &which))
        return CLI_BAD_INPUT;
    const char *devices = cli_text(c, OPT_device, NULL);
    if (devices && set_devices(c, e, devices))
        return CLI_BAD_INPUT;
    if (c->given[OPT_workers])
        set(e, "HALFWARP_WORKERS",
            hw_arena_printf(c->arena, "%" PRId64, cli_number(c, OPT_workers, 0)), false);
    if (c->given[OPT_timeout])
        set(e, "HALFWARP_TIMEOUT", cli_text(c, OPT_timeout, NULL), false);
    if (c->given[OPT_bounds])
        set(e, "HALFWARP_BOUNDS", bounds[which], false);
    return 0;
}

int cli_environment_make(cli *c, cli_environment *e)
{
    *e = (cli_environment){ 0 };
    const char *own = own_folder(c);
    for (size_t i = 0; own && i < HW_COUNTOF(layouts); i++) {
        const layout *l = &layouts[i];
        const char *driver =
            place(c, own, hw_arena_printf(c->arena, "%s/libcuda.so.1", l->folders[0]));
        if (!driver)
            continue;
        const char *folders = place(c, own, l->folders[0]);
        for (size_t k = 1; l->folders[k]; k++) {
            const char *more = place(c, own, l->folders[k]);
            if (more)
                folders = hw_arena_printf(c->arena, "%s:%s", folders, more);
        }
        set(e, "LD_LIBRARY_PATH", folders, true);
        const char *takeover = place(c, own, l->takeover);
        if (takeover) {
            /* LD_PRELOAD separates by blanks too: such a path is found by its name. */
            set(e, "LD_PRELOAD", strchr(takeover, ' ') ? strrchr(takeover, '/') + 1 : takeover,
                true);
            /* A program's address sanitizer would refuse to come second. */
            set(e, "ASAN_OPTIONS", "verify_asan_link_order=0", true);
        }
        set_assembler(e, place(c, own, l->assembler));
        e->ptxrun = place(c, own, l->ptxrun);
        return set_options(c, e);
    }
    return cli_fail(c,
                    "libcuda.so.1 is neither in %s/../lib/halfwarp nor in a build tree around %s",
                    own ? own : "?", own ? own : "?");
}
