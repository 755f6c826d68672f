/* SPDX-License-Identifier: Apache-2.0
 * NumPy files read and written.
 */
#include "ptxrun.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static const char magic[] = "\x93NUMPY";
enum { MAGIC = 6, HEADER_ALIGNMENT = 64 };

/* The text after 'key': in the header's dictionary. */
static const char *value_of(const char *header, const char *key)
{
    const char *p = strstr(header, key);
    p = p ? strchr(p, ':') : NULL;
    return p ? p + 1 + strspn(p + 1, " ") : NULL;
}

static const number_type *read_type(const char *descr)
{
    if (!descr || (descr[0] != '\'' && descr[0] != '"') || (descr[1] != '<' && descr[1] != '|'))
        return NULL;
    number_class class = descr[2] == 'f'   ? CLASS_FLOAT
                         : descr[2] == 'i' ? CLASS_SIGNED
                                           : CLASS_UNSIGNED;
    if (!strchr("fiub", descr[2]))
        return NULL;
    return number_type_of(class, (unsigned)strtoul(descr + 3, NULL, 10));
}

static bool read_shape(const char *shape, size_t limit, size_t *count)
{
    *count = 1;
    if (!shape || *shape != '(')
        return false;
    for (const char *p = shape + 1; *p && *p != ')'; p++) {
        char *end;
        unsigned long long n = strtoull(p, &end, 10);
        if (end == p)
            continue;
        if (n && *count > limit / n)
            return false;
        *count *= (size_t)n;
        p = *end ? end : end - 1;
        if (*p == ')')
            break;
    }
    return true;
}

static size_t header_place(hw_str file, size_t *length)
{
    const uint8_t *p = (const uint8_t *)file.ptr;
    size_t at = 0;
    if (file.len < 12 || memcmp(p, magic, MAGIC) != 0)
        return 0;
    if (p[6] == 1) {
        at = 10;
        *length = (size_t)(p[8] | p[9] << 8);
    } else if (p[6] == 2 || p[6] == 3) {
        at = 12;
        *length = (size_t)p[8] | (size_t)p[9] << 8 | (size_t)p[10] << 16 | (size_t)p[11] << 24;
    }
    return *length <= file.len - at ? at : 0;
}

hw_status npy_read(hw_arena *a, const char *path, const number_type **type, uint8_t **bytes,
                   size_t *count, hw_diag *d)
{
    hw_str file;
    size_t length = 0;
    HW_TRY(hw_read_file(a, path, &file, d));
    size_t at = header_place(file, &length);
    if (!at)
        return hw_fail(d, HW_E_CORRUPT, "%s: no NumPy file", path);
    const char *header = hw_arena_cstr(a, (hw_str){ file.ptr + at, length });
    const char *order = value_of(header, "fortran_order");
    *type = read_type(value_of(header, "descr"));
    if (!*type || !order || *order != 'F')
        return hw_fail(d, HW_E_UNSUPPORTED, "%s: only little-endian numbers in C order", path);
    size_t room = file.len - at - length;
    if (!read_shape(value_of(header, "shape"), room, count) || *count > room / (*type)->size)
        return hw_fail(d, HW_E_CORRUPT, "%s: shorter than its shape", path);
    *bytes = (uint8_t *)file.ptr + at + length;
    return HW_OK;
}

hw_status npy_write(const char *path, const argument *arg, hw_diag *d)
{
    static const char letters[] = {
        [CLASS_UNSIGNED] = 'u', [CLASS_SIGNED] = 'i', [CLASS_FLOAT] = 'f'
    };
    char header[256];
    int n = snprintf(
        header, sizeof header, "{'descr': '%c%c%u', 'fortran_order': False, 'shape': (%zu,), }",
        arg->type->size == 1 ? '|' : '<', letters[arg->type->class], arg->type->size, arg->count);
    size_t length = (size_t)n;
    while ((10 + length + 1) % HEADER_ALIGNMENT)
        header[length++] = ' ';
    header[length++] = '\n';
    FILE *f = fopen(path, "wbe");
    if (!f)
        return hw_fail(d, HW_E_IO, "cannot write %s: %s", path, strerror(errno));
    const uint8_t lead[4] = { 1, 0, (uint8_t)length, (uint8_t)(length >> 8) };
    bool good = fwrite(magic, 1, MAGIC, f) == MAGIC && fwrite(lead, 1, 4, f) == 4 &&
                fwrite(header, 1, length, f) == length &&
                fwrite(arg->bytes, arg->type->size, arg->count, f) == arg->count;
    good &= fclose(f) == 0;
    return good ? HW_OK : hw_fail(d, HW_E_IO, "cannot write %s: %s", path, strerror(errno));
}
