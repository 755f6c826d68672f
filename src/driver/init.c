/* SPDX-License-Identifier: Apache-2.0
 *
 * cuInit and the end: which devices there are (HALFWARP_DEVICE, CUDA_VISIBLE_DEVICES), and what is
 * put away when the process ends.
 */
#include "profile.h"

#include <stdlib.h>

hw_cu_process hw_cu = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* ---- which devices ---- */

typedef struct wanted {
    const hw_device *model;
    uint32_t number; /* among all wanted devices: what CUDA_VISIBLE_DEVICES counts */
} wanted;

/* Splits "NAME:N" (a path may hold ':' too, so only a number after the last one counts). */
static uint32_t split_count(hw_str *item)
{
    size_t i = item->len;
    uint32_t n = 0, scale = 1;
    while (i > 0 && item->ptr[i - 1] >= '0' && item->ptr[i - 1] <= '9' && scale <= 100) {
        n += (uint32_t)(item->ptr[--i] - '0') * scale;
        scale *= 10;
    }
    if (i == 0 || i == item->len || item->ptr[i - 1] != ':')
        return 1;
    item->len = i - 1;
    return n;
}

/* The next item of a comma-separated list, without blanks around it; false at the end. */
static bool next_item(const char **list, hw_str *item)
{
    const char *p = *list;
    if (!*p)
        return false;
    size_t len = strcspn(p, ",");
    *list = p + len + (p[len] == ',');
    while (len && *p == ' ')
        p++, len--;
    while (len && p[len - 1] == ' ')
        len--;
    *item = (hw_str){ p, len };
    return true;
}

static hw_status wanted_devices(hw_arena *a, const char *list, wanted *out, uint32_t *n, hw_diag *d)
{
    hw_str item;
    while (next_item(&list, &item)) {
        uint32_t count = split_count(&item);
        const hw_device *model;
        HW_TRY(hw_device_load(a, hw_arena_cstr(a, item), &model, d));
        if (model->vendor != HW_VENDOR_NVIDIA)
            return hw_fail(d, HW_E_INVALID, "%s is not a device that runs CUDA programs",
                           model->name);
        for (; count && *n < HW_CU_GPUS; count--) {
            out[*n] = (wanted){ model, *n };
            (*n)++;
        }
    }
    return HW_OK;
}

static CUuuid uuid_of(const hw_device *model, uint32_t number)
{
    CUuuid u;
    uint64_t half[2] = { hw_hash64(model->name, strlen(model->name), number),
                         hw_hash64(model->name, strlen(model->name), number + 1000) };
    memcpy(u.bytes, half, sizeof u.bytes);
    return u;
}

static void uuid_text(CUuuid u, char out[41])
{
    static const char digits[] = "0123456789abcdef";
    char *p = out;
    memcpy(p, "GPU-", 4);
    p += 4;
    for (int i = 0; i < 16; i++) {
        unsigned char c = (unsigned char)u.bytes[i];
        if (i == 4 || i == 6 || i == 8 || i == 10)
            *p++ = '-';
        *p++ = digits[c >> 4];
        *p++ = digits[c & 15];
    }
    *p = '\0';
}

/* Which of n devices an item of CUDA_VISIBLE_DEVICES names; n if none. */
static uint32_t visible_index(hw_str item, const wanted *all, uint32_t n)
{
    if (item.len && item.ptr[0] >= '0' && item.ptr[0] <= '9') {
        char *end;
        unsigned long v = strtoul(item.ptr, &end, 10);
        return end == item.ptr + item.len && v < n ? (uint32_t)v : n;
    }
    if (!hw_str_starts(item, HW_STR("GPU-")))
        return n;
    for (uint32_t i = 0; i < n; i++) {
        char text[41];
        uuid_text(uuid_of(all[i].model, all[i].number), text);
        if (hw_str_starts(hw_str_of(text), item))
            return i;
    }
    return n;
}

static void add_gpu(const wanted *w)
{
    hw_cu_gpu *g = &hw_cu.gpus[hw_cu.ngpus];
    *g = (hw_cu_gpu){ .ordinal = hw_cu.ngpus,
                      .model = w->model,
                      .uuid = uuid_of(w->model, w->number) };
    hw_cu.ngpus++;
}

static void choose_visible(const wanted *all, uint32_t n)
{
    const char *list = hw_cu.env.visible;
    if (!getenv("CUDA_VISIBLE_DEVICES")) {
        for (uint32_t i = 0; i < n; i++) {
            add_gpu(&all[i]);
        }
        return;
    }
    bool seen[HW_CU_GPUS] = { false };
    hw_str item;
    while (next_item(&list, &item)) {
        uint32_t i = visible_index(item, all, n);
        if (i == n || seen[i])
            break;
        seen[i] = true;
        add_gpu(&all[i]);
    }
}

/* A forked child has none of the threads, so nothing works in it, as on a device. */
static void in_child(void)
{
    if (atomic_load(&hw_cu.state) == HW_CU_READY)
        atomic_store(&hw_cu.state, HW_CU_FORKED);
}

/* What the program does in handlers and destructors that were there before the first call comes too late, as on a
 * device. */
static void closing(void)
{
    int ready = HW_CU_READY;
    atomic_compare_exchange_strong(&hw_cu.state, &ready, HW_CU_CLOSING);
}

/* hw_cu.lock is held. */
static hw_cu_state initialise(void)
{
    hw_cu.arena = hw_arena_new();
    hw_cu_env_read(&hw_cu.env);
    hw_diag *d = hw_diag_new(hw_cu.arena);
    wanted all[HW_CU_GPUS];
    uint32_t n = 0;
    if (!__builtin_cpu_supports("x86-64-v3")) { /* which jit's code takes for granted */
        hw_cu_notice("a processor with AVX2 (x86-64-v3) is needed; this one has none");
        return HW_CU_NO_DEVICE;
    }
    if (wanted_devices(hw_cu.arena, hw_cu.env.device, all, &n, d) != HW_OK) {
        hw_cu_notice_diag("HALFWARP_DEVICE", d);
        return HW_CU_NO_DEVICE;
    }
    choose_visible(all, n);
    pthread_atfork(NULL, NULL, in_child);
    atexit(closing);
    hw_cu_profile_start();
    return hw_cu.ngpus ? HW_CU_READY : HW_CU_NO_DEVICE;
}

CUresult cuInit(unsigned int flags)
{
    CU_NEED(flags == 0, INVALID_VALUE);
    if (atomic_load(&hw_cu.state) == HW_CU_UNUSED) {
        pthread_mutex_lock(&hw_cu.lock);
        if (atomic_load(&hw_cu.state) == HW_CU_UNUSED)
            atomic_store(&hw_cu.state, (int)initialise());
        pthread_mutex_unlock(&hw_cu.lock);
    }
    switch (atomic_load(&hw_cu.state)) {
    case HW_CU_READY:
        return CUDA_SUCCESS;
    case HW_CU_NO_DEVICE:
        return CUDA_ERROR_NO_DEVICE;
    case HW_CU_FORKED:
        return CUDA_ERROR_NOT_INITIALIZED;
    default:
        return CUDA_ERROR_DEINITIALIZED;
    }
}

CUresult hw_cu_ready(void)
{
    static const CUresult of[] = {
        [HW_CU_UNUSED] = CUDA_ERROR_NOT_INITIALIZED,    [HW_CU_READY] = CUDA_SUCCESS,
        [HW_CU_NO_DEVICE] = CUDA_ERROR_NOT_INITIALIZED, [HW_CU_FORKED] = CUDA_ERROR_NOT_INITIALIZED,
        [HW_CU_CLOSING] = CUDA_ERROR_DEINITIALIZED,     [HW_CU_ENDED] = CUDA_ERROR_DEINITIALIZED,
    };
    return of[atomic_load_explicit(&hw_cu.state, memory_order_acquire)];
}

CUresult cuDriverGetVersion(int *version)
{
    CU_NEED(version, INVALID_VALUE);
    *version = HW_CU_VERSION;
    return CUDA_SUCCESS;
}

/* After the program's own exit handlers. Idle contexts give their threads back; whatever still runs
 * ends with the process, as on a device, and nothing it may touch is freed under it. */
__attribute__((destructor)) static void end_of_process(void)
{
    const int before = atomic_exchange(&hw_cu.state, HW_CU_ENDED);
    if (before != HW_CU_READY && before != HW_CU_CLOSING)
        return;
    if (hw_cu.jit) {
        hw_jit_stats j = hw_jit_get_stats(hw_cu.jit);
        hw_cu_verbose("code: %llu compiled in %.1f ms, %llu from disk in %.1f ms, %llu reused",
                      (unsigned long long)j.compiled, (double)j.compile_ns * 1e-6,
                      (unsigned long long)j.disk_hits, (double)j.load_ns * 1e-6,
                      (unsigned long long)j.memory_hits);
        if (j.improved)
            hw_cu_verbose("code: %llu of them in the background, in %.1f ms",
                          (unsigned long long)j.improved, (double)j.improve_ns * 1e-6);
    }
    hw_cu_contexts_end();
    hw_cu_profile_end();
}
