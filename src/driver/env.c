/* SPDX-License-Identifier: Apache-2.0
 * The environment of libcuda.so.1: the variables of env.def, read once. */
#include "driver.h"

#include <stdio.h>
#include <locale.h>
#include <stdlib.h>

static const char *value_of(const char *variable, const char *fallback)
{
    const char *v = getenv(variable);
    return v ? v : fallback;
}

void hw_cu_env_read(hw_cu_env *e)
{
#define ENV(member, variable, fallback, text) e->member = value_of(variable, fallback);
#include "env.def"
#undef ENV
    if (!e->device[0])
        e->device = HW_DEVICE_DEFAULT;
}

bool hw_cu_env_true(const char *value)
{
    return value[0] && strcmp(value, "0") != 0;
}

unsigned hw_cu_env_choice(const char *variable, const char *value, const char *const *words)
{
    char all[128] = "";
    for (unsigned i = 0; words[i]; i++) {
        if (strcmp(value, words[i]) == 0)
            return i;
        size_t n = strlen(all);
        snprintf(all + n, sizeof all - n, "%s%s", i ? ", " : "", words[i]);
    }
    if (value[0])
        hw_cu_notice("%s: '%s' is not one of %s", variable, value, all);
    return 0;
}

uint64_t hw_cu_env_number(const char *variable, const char *value, double scale)
{
    char *end = NULL;
    locale_t plain = newlocale(LC_ALL_MASK, "C", NULL); /* the program's may want a comma */
    double v = plain ? strtod_l(value, &end, plain) : 0;
    if (plain)
        freelocale(plain);
    if (end && *value && !*end && v >= 0 && v < 1e9)
        return v > 0 && v * scale < 1 ? 1 : (uint64_t)(v * scale + 0.5);
    if (*value)
        hw_cu_notice("%s: '%s' is not a number from 0 on", variable, value);
    return 0;
}

const char *hw_cu_cache_dir(hw_arena *a, const hw_cu_env *e)
{
    if (strcmp(e->cache, "off") == 0)
        return NULL;
    if (e->cache[0])
        return e->cache;
    const char *base = value_of("XDG_CACHE_HOME", "");
    if (base[0] == '/')
        return hw_arena_printf(a, "%s/halfwarp", base);
    const char *home = value_of("HOME", "");
    return home[0] == '/' ? hw_arena_printf(a, "%s/.cache/halfwarp", home) : NULL;
}
