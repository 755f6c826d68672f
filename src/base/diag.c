/* SPDX-License-Identifier: Apache-2.0
 * Statuses and diagnostics: the words of every failure. */
#include "hw_base.h"

#include <errno.h>
#include <stdio.h>

static const char *const names[] = {
#define HW_STATUS(name, text) "HW_" #name,
#include "status.def"
#undef HW_STATUS
};

static const char *const texts[] = {
#define HW_STATUS(name, text) text,
#include "status.def"
#undef HW_STATUS
};

const char *hw_status_name(hw_status s)
{
    return (unsigned)s < HW_STATUS_COUNT ? names[s] : "HW_E_UNKNOWN";
}

const char *hw_status_text(hw_status s)
{
    return (unsigned)s < HW_STATUS_COUNT ? texts[s] : "unknown status";
}

hw_diag *hw_diag_new(hw_arena *a)
{
    hw_diag *d = HW_NEW(a, hw_diag);
    d->arena = a;
    return d;
}

static void add(hw_diag *d, hw_severity sev, hw_status status, hw_place at, const char *fmt,
                va_list ap)
{
    if (!d)
        return;
    hw_message *m = HW_NEW(d->arena, hw_message);
    *m = (hw_message){ .severity = sev, .status = status, .place = at };
    m->text = hw_arena_vprintf(d->arena, fmt, ap);
    *(d->last ? &d->last->next : &d->first) = m;
    d->last = m;
    d->errors += sev == HW_SEV_ERROR;
    d->warnings += sev == HW_SEV_WARNING;
}

hw_status hw_fail(hw_diag *d, hw_status status, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    add(d, HW_SEV_ERROR, status, (hw_place){ 0 }, fmt, ap);
    va_end(ap);
    return status;
}

hw_status hw_fail_at(hw_diag *d, hw_status status, hw_place at, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    add(d, HW_SEV_ERROR, status, at, fmt, ap);
    va_end(ap);
    return status;
}

void hw_note_at(hw_diag *d, hw_place at, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    add(d, HW_SEV_NOTE, HW_OK, at, fmt, ap);
    va_end(ap);
}

static const char *place_text(hw_arena *a, hw_place p)
{
    if (!p.file && !p.line)
        return "";
    const char *file = p.file ? p.file : "<input>";
    if (!p.line)
        return hw_arena_printf(a, "%s: ", file);
    if (!p.column)
        return hw_arena_printf(a, "%s:%u: ", file, p.line);
    return hw_arena_printf(a, "%s:%u:%u: ", file, p.line, p.column);
}

/* The source line with a caret under the column; tabs are kept so that the caret stays in place. */
static const char *caret_text(hw_arena *a, hw_place p)
{
    if (!p.text.ptr || !p.column || p.column > p.text.len + 1)
        return "";
    char *pad = hw_arena_alloc(a, p.column);
    for (uint32_t i = 0; i + 1 < p.column; i++)
        pad[i] = p.text.ptr[i] == '\t' ? '\t' : ' ';
    return hw_arena_printf(a, "\n    %.*s\n    %s^", HW_STR_ARG(p.text), pad);
}

hw_str hw_diag_text(const hw_diag *d, hw_arena *a)
{
    static const char *const severity[] = { "note", "warning", "error" };
    const char *all = "";
    for (const hw_message *m = d->first; m; m = m->next)
        all = hw_arena_printf(a, "%s%s%s%s: %s%s", all, *all ? "\n" : "", place_text(a, m->place),
                              severity[m->severity], m->text, caret_text(a, m->place));
    return hw_str_of(all);
}

hw_status hw_read_file(hw_arena *a, const char *path, hw_str *out, hw_diag *d)
{
    FILE *f = fopen(path, "rbe");
    if (!f)
        return hw_fail(d, HW_E_IO, "cannot open %s: %s", path, strerror(errno));
    HW_VEC(char) v = { 0 };
    for (;;) {
        if (v.cap - v.len < 65536)
            v.ptr = hw_vec_grow(a, v.ptr, v.len, &v.cap, 1, v.len + 65537);
        size_t n = fread(v.ptr + v.len, 1, v.cap - v.len - 1, f);
        v.len += n;
        if (n == 0)
            break;
    }
    bool bad = ferror(f) != 0;
    fclose(f);
    if (bad)
        return hw_fail(d, HW_E_IO, "cannot read %s: %s", path, strerror(errno));
    v.ptr[v.len] = 0;
    *out = (hw_str){ v.ptr, v.len };
    return HW_OK;
}
