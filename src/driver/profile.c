/* SPDX-License-Identifier: Apache-2.0
 *
 * Profiling: launches are told to a model, which writes the profile file when the program ends. So that
 * a program that crashes leaves what it did, the model lies in memory that `halfwarp profile` has as
 * well; without that, the file is written after launches, as long as it takes a small part of the
 * time. */
#include "profile.h"

#include "hw_model.h"

#include <errno.h>
#include <fcntl.h>
#include <regex.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* Of the processor's time writing takes at most one part in so many: a program may wait for long. */
enum { WRITES_FREE = 16, WRITES_SHARE = 20 };

static struct {
    hw_model *model; /* NULL: nobody asked */
    const hw_device *devices[HW_MODEL_DEVICES_MAX];
    uint32_t n_devices;
    regex_t kernels;
    bool some_kernels;
    uint64_t skip, most;             /* launches; most 0: any number */
    _Atomic uint64_t matched, asked; /* launches of the host: that match, all */
    pthread_mutex_t lock;            /* of the writing */
    uint64_t began_ns, written_ns, writes;
    pid_t process;
    const char *file;
} profile = { .lock = PTHREAD_MUTEX_INITIALIZER };

static uint64_t processor_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static hw_status read_level(const char *text, hw_model_level *level, hw_diag *d)
{
    static const char *const names[] = { "count", "lines", "caches" };
    for (size_t i = 0; i < HW_COUNTOF(names); i++)
        if (strcmp(text, names[i]) == 0) {
            *level = (hw_model_level)i;
            return HW_OK;
        }
    return hw_fail(d, HW_E_INVALID, "HALFWARP_PROFILE_LEVEL: '%s' is not count, lines or caches",
                   text);
}

static hw_status read_number(const char *variable, const char *text, uint64_t *out, hw_diag *d)
{
    char *end;
    *out = strtoull(text, &end, 10);
    if (*end || *text == '-')
        return hw_fail(d, HW_E_INVALID, "%s: '%s' is not a number", variable, text);
    return HW_OK;
}

/* The devices named, or else the ones the program sees, each model once. */
static hw_status read_devices(const hw_device **out, uint32_t *n, hw_diag *d)
{
    const char *list = hw_cu.env.profile_devices;
    for (int i = 0; !*list && i < hw_cu.ngpus && *n < HW_MODEL_DEVICES_MAX; i++)
        if (*n == 0 || out[*n - 1] != hw_cu.gpus[i].model)
            out[(*n)++] = hw_cu.gpus[i].model;
    while (*list) {
        size_t len = strcspn(list, ",");
        if (*n == HW_MODEL_DEVICES_MAX)
            return hw_fail(d, HW_E_RANGE, "HALFWARP_PROFILE_DEVICES: more than %d devices",
                           HW_MODEL_DEVICES_MAX);
        HW_TRY(hw_device_load(hw_cu.arena, hw_arena_cstr(hw_cu.arena, (hw_str){ list, len }),
                              &out[(*n)++], d));
        list += len + (list[len] == ',');
    }
    return HW_OK;
}

static hw_status read_kernels(const char *pattern, hw_diag *d)
{
    if (!*pattern)
        return HW_OK;
    if (regcomp(&profile.kernels, pattern, REG_EXTENDED | REG_NOSUB))
        return hw_fail(d, HW_E_INVALID, "HALFWARP_PROFILE_KERNEL: '%s' is not a regular expression",
                       pattern);
    profile.some_kernels = true;
    return HW_OK;
}

static const char *program_name(void)
{
    hw_str text = { NULL, 0 };
    if (hw_read_file(hw_cu.arena, "/proc/self/cmdline", &text, NULL) != HW_OK || !text.len)
        return NULL;
    char *line = hw_arena_cstr(hw_cu.arena, text);
    for (size_t i = 0; i + 1 < text.len; i++)
        line[i] = line[i] ? line[i] : ' ';
    return line;
}

/* The file of this process: the next that nobody has. */
static const char *own_file(void)
{
    enum { PROCESSES_MOST = 10000 };
    if (strcmp(hw_cu.env.profile_each, "1") != 0)
        return hw_cu.env.profile;
    for (int i = 0; i < PROCESSES_MOST; i++) {
        const char *path = hw_arena_printf(hw_cu.arena, "%s.%d", hw_cu.env.profile, i);
        int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd < 0 && errno == EEXIST)
            continue;
        if (fd >= 0)
            close(fd);
        return path;
    }
    return hw_cu.env.profile;
}

static hw_status start(hw_diag *d)
{
    hw_model_level level = HW_MODEL_COUNT;
    HW_TRY(read_level(hw_cu.env.profile_level, &level, d));
    HW_TRY(read_number("HALFWARP_PROFILE_SKIP", hw_cu.env.profile_skip, &profile.skip, d));
    HW_TRY(read_number("HALFWARP_PROFILE_COUNT", hw_cu.env.profile_count, &profile.most, d));
    HW_TRY(read_kernels(hw_cu.env.profile_kernel, d));
    HW_TRY(read_devices(profile.devices, &profile.n_devices, d));
    profile.model = hw_model_new(profile.devices, profile.n_devices, level, program_name(),
                                 hw_cu.env.profile_shared);
    profile.began_ns = processor_ns();
    profile.process = getpid();
    profile.file = own_file();
    return HW_OK;
}

void hw_cu_profile_start(void)
{
    hw_diag *d = hw_diag_new(hw_cu.arena);
    if (*hw_cu.env.profile && start(d) != HW_OK)
        hw_cu_notice_diag("nothing is profiled", d);
}

/* By its name in the PTX, or without the mangling. */
static bool wanted(const char *name)
{
    if (!profile.some_kernels || regexec(&profile.kernels, name, 0, NULL, 0) == 0)
        return true;
    hw_arena *a = hw_arena_new();
    bool found = regexec(&profile.kernels, hw_model_short_name(a, name), 0, NULL, 0) == 0;
    hw_arena_free(a);
    return found;
}

static bool listens(void)
{
    return profile.model && getpid() == profile.process;
}

static bool is_chosen(uint64_t n)
{
    return n >= profile.skip && (!profile.most || n - profile.skip < profile.most);
}

void hw_cu_profile_submit(hw_cu_launch *l)
{
    l->profiled = l->matched = false;
    if (!listens())
        return;
    l->root = (uint32_t)atomic_fetch_add(&profile.asked, 1);
    l->matched = wanted(l->f->source.name);
    if (!l->matched)
        return;
    uint64_t n = atomic_fetch_add(&profile.matched, 1);
    l->profiled = is_chosen(n);
    l->profile_id = n - profile.skip;
}

void hw_cu_profile_nested(const hw_cu_launch *root, hw_cu_profile_root *r, hw_cu_launch *l)
{
    l->profiled = false;
    if (!listens() || !wanted(l->f->source.name))
        return;
    l->profiled = root->matched ? root->profiled : is_chosen(r->matched++);
    if (l->profiled)
        l->profile_id = HW_MODEL_NESTED | (uint64_t)root->root << HW_MODEL_ROOT | r->profiled++;
}

const hw_listener *hw_cu_profile_listener(const hw_cu_launch *l)
{
    if (!l->profiled)
        return NULL;
    bool wide = l->f->module->ctx->shared_config == CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE;
    hw_model_bank_width(profile.model, wide ? 8 : 0);
    return hw_model_listener(profile.model);
}

/* A forked child has the parent's model, but not its file. */
static void write_file(bool complete)
{
    hw_arena *a = hw_arena_new();
    hw_diag *d = hw_diag_new(a);
    uint64_t before = processor_ns();
    if (getpid() == profile.process &&
        hw_model_write(profile.model, profile.file, complete, d) != HW_OK)
        hw_cu_notice_diag("HALFWARP_PROFILE", d);
    profile.written_ns += processor_ns() - before;
    profile.writes++;
    hw_arena_free(a);
}

/* For each device of the profile, the machine code that is nearest to it. */
static void find_machine(const hw_cu_launch *l, hw_model_machine *out)
{
    for (uint32_t d = 0; d < profile.n_devices; d++) {
        const hw_device *dev = profile.devices[d];
        hw_cu_machine m;
        if (dev->vendor == HW_VENDOR_NVIDIA &&
            hw_cu_program_machine(l->f->program, l->f->index,
                                  dev->capability.major * 10 + dev->capability.minor, &m))
            out[d] = (hw_model_machine){ m.arch, m.registers, m.local_bytes };
    }
}

void hw_cu_profile_done(const hw_cu_launch *l, const hw_listener *listener, hw_status status)
{
    if (!listener)
        return;
    const hw_ptx_kernel *k = &l->f->program->ptx->kernels[l->f->index];
    hw_model_launch done = {
        .id = l->profile_id,
        .kernel = l->f->source.name,
        .grid = { l->grid[0], l->grid[1], l->grid[2] },
        .block = { l->block[0], l->block[1], l->block[2] },
        .dynamic_shared_bytes = l->dynamic,
        .static_shared_bytes = k->static_shared_bytes,
        .context = l->f->module->ctx->number,
        .stream = l->stream,
        .ptx = hw_ptx_text(l->f->program->ptx),
        .maxnreg = hw_cu_most_registers(l->f->program, l->f->index),
        .max_threads = k->max_threads,
        .min_blocks = k->min_blocks_per_sm,
        .status = status,
    };
    find_machine(l, done.machine);
    hw_model_launch_done(profile.model, &done);
    pthread_mutex_lock(&profile.lock);
    bool kept = hw_model_is_kept(profile.model);
    if (!kept && (profile.writes < WRITES_FREE || status != HW_OK ||
                  profile.written_ns < (processor_ns() - profile.began_ns) / WRITES_SHARE))
        write_file(false);
    pthread_mutex_unlock(&profile.lock);
}

void hw_cu_profile_end(void)
{
    if (!profile.model || getpid() != profile.process)
        return;
    pthread_mutex_lock(&profile.lock);
    write_file(true);
    hw_model_written(profile.model);
    pthread_mutex_unlock(&profile.lock);
}
