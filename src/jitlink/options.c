/* SPDX-License-Identifier: Apache-2.0
 * The options of nvJitLinkCreate.
 */
#include "jitlink.h"

#include <ctype.h>
#include <stdlib.h>

typedef struct option {
    const char *text;
    bool has_value;
} option;

static const option known[] = {
#define FLAG(text)  { text, false },
#define VALUE(text) { text, true },
#include "options.def"
#undef FLAG
#undef VALUE
};

static bool is_known(const char *text)
{
    for (size_t i = 0; i < HW_COUNTOF(known); i++) {
        size_t len = strlen(known[i].text);
        if (strncmp(text, known[i].text, len) == 0 && (known[i].has_value || !text[len]))
            return true;
    }
    return false;
}

/* sm_90, sm_90a, compute_100f, lto_90 */
static bool read_arch(const char *text, uint32_t *arch)
{
    static const char *const prefixes[] = { "sm_", "compute_", "lto_" };
    for (size_t i = 0; i < HW_COUNTOF(prefixes); i++) {
        size_t len = strlen(prefixes[i]);
        if (strncmp(text, prefixes[i], len) != 0 || !isdigit((unsigned char)text[len]))
            continue;
        char *end;
        unsigned long v = strtoul(text + len, &end, 10);
        end += *end == 'a' || *end == 'f';
        *arch = (uint32_t)v;
        return !*end && v < 1000;
    }
    return false;
}

nvJitLinkResult jitlink_options(nvJitLinkHandle l, uint32_t n, const char **options)
{
    l->options = HW_NEW_N(l->arena, const char *, n + 1);
    for (uint32_t i = 0; i < n; i++) {
        const char *text = options[i];
        if (!text || text[0] != '-')
            return NVJITLINK_ERROR_UNRECOGNIZED_OPTION;
        l->options[l->n_options++] = hw_arena_cstr(l->arena, hw_str_of(text));
        text += text[1] == '-' ? 2 : 1;
        if (!is_known(text))
            return NVJITLINK_ERROR_UNRECOGNIZED_OPTION;
        if (strncmp(text, "arch=", 5) == 0 && !read_arch(text + 5, &l->arch))
            return NVJITLINK_ERROR_UNRECOGNIZED_ARCH;
        if (strncmp(text, "maxrregcount=", 13) == 0)
            l->max_registers = (uint32_t)strtoul(text + 13, NULL, 10);
        l->lto |= strcmp(text, "lto") == 0 || strcmp(text, "dlto") == 0;
        l->wants_ptx |= strcmp(text, "ptx") == 0;
    }
    if (!l->arch)
        return NVJITLINK_ERROR_MISSING_ARCH;
    return l->wants_ptx && !l->lto ? NVJITLINK_ERROR_INCOMPATIBLE_OPTIONS : NVJITLINK_SUCCESS;
}
