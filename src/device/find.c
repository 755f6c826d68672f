/* SPDX-License-Identifier: Apache-2.0
 *
 * Where device files are found: folders of $HALFWARP_DEVICE_PATH, the built-in table, or a path. */
#include "hw_device.h"
#include "builtin.h"

#include <dirent.h>
#include <stdlib.h>
#include <unistd.h>

typedef HW_VEC(const char *) name_vec;

static bool is_path(const char *name)
{
    return strchr(name, '/') || hw_str_ends(hw_str_of(name), HW_STR(".json"));
}

/* Cuts the next folder off a colon-separated list; false at its end. */
static bool next_folder(hw_str *list, hw_str *folder)
{
    while (list->len) {
        const char *colon = memchr(list->ptr, ':', list->len);
        size_t n = colon ? (size_t)(colon - list->ptr) : list->len;
        *folder = (hw_str){ list->ptr, n };
        size_t skip = colon ? n + 1 : n;
        *list = (hw_str){ list->ptr + skip, list->len - skip };
        if (n)
            return true;
    }
    return false;
}

static hw_str search_path(void)
{
    return hw_str_of(getenv("HALFWARP_DEVICE_PATH"));
}

static const hw_builtin_device *find_builtin(const char *name)
{
    for (size_t i = 0; i < hw_builtin_device_count; i++) {
        const hw_builtin_device *b = &hw_builtin_devices[i];
        if (strcmp(b->name, name) == 0)
            return b;
        for (const char *const *alias = b->aliases; *alias; alias++)
            if (strcmp(*alias, name) == 0)
                return b;
    }
    return NULL;
}

static hw_status load_file(hw_arena *a, const char *path, const hw_device **out, hw_diag *d)
{
    hw_str text;
    HW_TRY(hw_read_file(a, path, &text, d));
    return hw_device_parse(a, text, path, out, d);
}

static void add_names_of_folder(hw_arena *a, name_vec *names, const char *folder)
{
    DIR *dir = opendir(folder);
    if (!dir)
        return;
    for (struct dirent *e = readdir(dir); e; e = readdir(dir)) {
        hw_str file = hw_str_of(e->d_name);
        if (file.len > 5 && hw_str_ends(file, HW_STR(".json")))
            hw_vec_push(a, names, hw_arena_cstr(a, (hw_str){ file.ptr, file.len - 5 }));
    }
    closedir(dir);
}

static int compare_names(const void *x, const void *y)
{
    return strcmp(*(const char *const *)x, *(const char *const *)y);
}

size_t hw_device_list(hw_arena *a, const char *const **out)
{
    name_vec names = { 0 };
    for (size_t i = 0; i < hw_builtin_device_count; i++)
        hw_vec_push(a, &names, hw_builtin_devices[i].name);
    hw_str folder, list = search_path();
    while (next_folder(&list, &folder))
        add_names_of_folder(a, &names, hw_arena_cstr(a, folder));
    qsort(names.ptr, names.len, sizeof *names.ptr, compare_names);
    size_t kept = 0;
    for (size_t i = 0; i < names.len; i++)
        if (kept == 0 || strcmp(names.ptr[kept - 1], names.ptr[i]) != 0)
            names.ptr[kept++] = names.ptr[i];
    *out = names.ptr;
    return kept;
}

static hw_status not_found(hw_arena *a, const char *name, hw_diag *d)
{
    name_vec names = { 0 };
    const char *const *listed;
    size_t n = hw_device_list(a, &listed);
    for (size_t i = 0; i < n; i++)
        hw_vec_push(a, &names, listed[i]);
    for (size_t i = 0; i < hw_builtin_device_count; i++)
        for (const char *const *alias = hw_builtin_devices[i].aliases; *alias; alias++)
            hw_vec_push(a, &names, *alias);
    const char *near = hw_nearest(name, names.ptr, names.len);
    return hw_fail(d, HW_E_NOT_FOUND, "unknown device '%s'%s%s%s (see 'halfwarp devices')", name,
                   near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
}

hw_status hw_device_load(hw_arena *a, const char *name, const hw_device **out, hw_diag *d)
{
    if (!name || !*name)
        name = HW_DEVICE_DEFAULT;
    if (is_path(name))
        return load_file(a, hw_arena_cstr(a, hw_str_of(name)), out, d);
    hw_str folder, list = search_path();
    while (next_folder(&list, &folder)) {
        const char *path = hw_arena_printf(a, "%.*s/%s.json", HW_STR_ARG(folder), name);
        if (access(path, F_OK) == 0)
            return load_file(a, path, out, d);
    }
    const hw_builtin_device *b = find_builtin(name);
    return b ? hw_device_parse(a, b->text, "built in", out, d) : not_found(a, name, d);
}
