/* SPDX-License-Identifier: Apache-2.0
 *
 * halfwarp inspect: what a file holds. AMD code objects: kernels, arguments, registers, code. CUDA
 * programs, fatbins and PTX: the embedded images, the kernels of the PTX, and on request the PTX
 * text or the warp IR made of it. */
#include "cli.h"
#include "hw_gcn.h"
#include "hw_image.h"
#include "hw_ptx.h"

#include <inttypes.h>

static bool wanted(const cli *c, const char *kernel)
{
    const char *only = cli_text(c, OPT_kernel, NULL);
    return !only || strcmp(only, kernel) == 0;
}

static int no_such_kernel(cli *c, const char *path, const char *const *names, size_t n)
{
    const char *only = cli_text(c, OPT_kernel, ""), *near = hw_nearest(only, names, n);
    return near ? cli_fail(c, "%s: no kernel %s; did you mean %s?", path, only, near)
                : cli_fail(c, "%s: no kernel %s", path, only);
}

/* ---- AMD code objects ---- */
static json_t *gcn_args_json(const hw_gcn_kernel *k)
{
    json_t *args = json_array();
    for (uint32_t i = 0; i < k->nargs; i++) {
        const hw_gcn_arg *a = &k->args[i];
        json_array_append_new(args, json_pack("{s:s*, s:s*, s:s*, s:i, s:i}", "name", a->name,
                                              "kind", a->kind, "type", a->type, "offset",
                                              (int)a->offset, "size", (int)a->size));
    }
    return args;
}

static int gcn_json(cli *c, const hw_gcn_object *o)
{
    json_t *kernels = json_array();
    for (uint32_t i = 0; i < o->nkernels; i++) {
        const hw_gcn_kernel *k = &o->kernels[i];
        if (wanted(c, k->name))
            json_array_append_new(
                kernels,
                json_pack("{s:s, s:i, s:i, s:b, s:I, s:I, s:I, s:I, s:I, s:o}", "name", k->name,
                          "vgprs", (int)k->vgprs, "sgprs", (int)k->sgprs, "exact_registers",
                          k->exact_registers, "lds_bytes", (json_int_t)k->lds_bytes,
                          "scratch_bytes", (json_int_t)k->scratch_bytes, "kernarg_bytes",
                          (json_int_t)k->kernarg_bytes, "code_offset", (json_int_t)k->code_offset,
                          "code_size", (json_int_t)k->code_size, "args", gcn_args_json(k)));
    }
    return cli_json(c, json_pack("{s:s, s:s*, s:i, s:I, s:o}", "format", "amdgpu", "target",
                                 o->target, "code_object_version", (int)o->version, "code_bytes",
                                 (json_int_t)o->code.len, "kernels", kernels));
}

static void gcn_arguments(cli *c, const hw_gcn_kernel *k)
{
    static const char *const headings[] = { ">offset", ">size", "kind", "name" };
    cli_table t = cli_table_new(c, HW_COUNTOF(headings), headings);
    for (uint32_t i = 0; i < k->nargs; i++) {
        cli_cell(&t, "%" PRIu32, k->args[i].offset);
        cli_cell(&t, "%" PRIu32, k->args[i].size);
        cli_cell(&t, "%s", k->args[i].kind ? k->args[i].kind : "-");
        cli_cell(&t, "%s", k->args[i].name ? k->args[i].name : "-");
    }
    if (k->nargs)
        cli_table_print(c, &t);
}

static uint32_t word_at(hw_span code, size_t at)
{
    uint32_t word = 0;
    memcpy(&word, code.ptr + at, code.len - at < sizeof word ? code.len - at : sizeof word);
    return word;
}

/* The word after the code may belong to the next kernel's padding: a stretch that does not decode
 * is shown as data. */
static void gcn_code(cli *c, const hw_gcn_object *o, const hw_gcn_kernel *k)
{
    if (!o->families) {
        cli_warn(c, "code of %s is not decoded (gfx6 and gfx7 are); llvm-objdump shows it",
                 o->target ? o->target : "this target");
        return;
    }
    uint64_t left = o->code.len - k->code_offset,
             size = k->code_size && k->code_size < left ? k->code_size : left;
    hw_span code = { o->code.ptr + k->code_offset, (size_t)size };
    char text[256];
    hw_gcn_insn i;
    for (size_t at = 0; at < code.len; at += i.size) {
        if (hw_gcn_decode((hw_gcn_family)o->families, code, at, &i) == HW_OK)
            hw_gcn_print(&i, text, sizeof text);
        else
            snprintf(text, sizeof text, ".long 0x%08" PRIx32, word_at(code, at));
        cli_print(c, "  %s%6zx%s  %s\n", cli_style_of(c, STYLE_DIM), at,
                  cli_style_of(c, STYLE_PLAIN), text);
    }
}

static void gcn_kernel(cli *c, const hw_gcn_object *o, const hw_gcn_kernel *k)
{
    cli_print(c, "\n%s%s%s\n", cli_style_of(c, STYLE_BOLD), k->name, cli_style_of(c, STYLE_PLAIN));
    cli_print(c,
              "  VGPRs %" PRIu32 " (%" PRIu32 " allocated), SGPRs %" PRIu32 " (%" PRIu32
              " allocated)%s\n",
              k->vgprs, k->vgprs_allocated, k->sgprs, k->sgprs_allocated,
              k->exact_registers ? "" : ", rounded up: the object has no metadata");
    cli_print(c,
              "  LDS %" PRIu32 " B, scratch %" PRIu32 " B a work-item, arguments %" PRIu32
              " B, float mode 0x%02" PRIx32 "\n",
              k->lds_bytes, k->scratch_bytes, k->kernarg_bytes, k->float_mode);
    if (k->reqd_group_size[0])
        cli_print(c, "  group size must be %" PRIu32 " x %" PRIu32 " x %" PRIu32 "\n",
                  k->reqd_group_size[0], k->reqd_group_size[1], k->reqd_group_size[2]);
    else if (k->max_group_size)
        cli_print(c, "  at most %" PRIu32 " work-items a group\n", k->max_group_size);
    gcn_arguments(c, k);
    if (c->given[OPT_disassemble])
        gcn_code(c, o, k);
}

static int inspect_gcn(cli *c, const char *path, hw_span bytes)
{
    hw_gcn_object o;
    if (hw_gcn_open(c->arena, bytes, &o, c->diag) != HW_OK)
        return cli_fail_diag(c);
    const char **names = HW_NEW_N(c->arena, const char *, o.nkernels + 1);
    bool found = !c->given[OPT_kernel];
    for (uint32_t k = 0; k < o.nkernels; k++) {
        names[k] = o.kernels[k].name;
        found |= wanted(c, names[k]);
    }
    if (!found)
        return no_such_kernel(c, path, names, o.nkernels);
    if (c->given[OPT_json])
        return gcn_json(c, &o);
    cli_print(c,
              "AMD code object, %s, version %" PRIu32 ", %zu bytes of code, %" PRIu32 " kernels\n",
              o.target ? o.target : "unknown target", o.version, o.code.len, o.nkernels);
    for (uint32_t k = 0; k < o.nkernels; k++)
        if (wanted(c, o.kernels[k].name))
            gcn_kernel(c, &o, &o.kernels[k]);
    return 0;
}

/* ---- CUDA images ---- */
static const char *const kind_names[] = { "PTX", "machine code", "LTO IR", "other" };

static void list_entries(cli *c, const hw_image *image)
{
    static const char *const headings[] = { "kind",   ">for",      "version",
                                            ">bytes", ">unpacked", "notes" };
    cli_table t = cli_table_new(c, HW_COUNTOF(headings), headings);
    for (size_t i = 0; i < image->entries.len; i++) {
        const hw_image_entry *e = &image->entries.ptr[i];
        cli_cell(&t, "%s", kind_names[e->kind]);
        cli_cell(&t, "%s%" PRIu32 "%s", e->kind == HW_ENTRY_PTX ? "compute_" : "sm_", e->arch,
                 e->arch_specific ? "a"
                 : e->family      ? "f"
                                  : "");
        cli_cell(&t, "%" PRIu32 ".%" PRIu32, e->version_major, e->version_minor);
        cli_cell(&t, "%" PRIu32, e->stored_size);
        cli_cell(&t, "%" PRIu32, e->full_size);
        cli_cell(&t, "%s%s%s", e->debug ? "debug " : "", e->relocatable ? "relocatable " : "",
                 e->source_name ? e->source_name : "");
    }
    cli_table_print(c, &t);
}

static void list_kernels(cli *c, const hw_ptx_module *m)
{
    static const char *const headings[] = { "kernel",         ">parameters", ">bytes",
                                            ">static shared", ">local",      ">max threads" };
    cli_table t = cli_table_new(c, HW_COUNTOF(headings), headings);
    for (uint32_t k = 0; k < m->nkernels; k++) {
        const hw_ptx_kernel *kernel = &m->kernels[k];
        if (!wanted(c, kernel->name))
            continue;
        cli_cell(&t, "%s", kernel->name);
        cli_cell(&t, "%" PRIu32, kernel->nparams);
        cli_cell(&t, "%" PRIu32, kernel->param_bytes);
        cli_cell(&t, "%" PRIu32 "%s", kernel->static_shared_bytes,
                 kernel->uses_dynamic_shared ? " + dynamic" : "");
        cli_cell(&t, "%" PRIu32, kernel->local_bytes);
        cli_cell(&t, "%s",
                 kernel->max_threads ? hw_arena_printf(c->arena, "%" PRIu32, kernel->max_threads)
                                     : "-");
    }
    cli_table_print(c, &t);
}

static int print_wir(cli *c, const hw_ptx_module *m)
{
    for (uint32_t k = 0; k < m->nkernels; k++) {
        hw_wir_module *wir;
        if (!wanted(c, m->kernels[k].name))
            continue;
        if (hw_ptx_lower(c->arena, m, k, &wir, c->diag) != HW_OK)
            return cli_fail_diag(c);
        cli_print(c, "%s\n", hw_wir_print(wir, c->arena).ptr);
    }
    return 0;
}

static int inspect_ptx(cli *c, const char *path, const hw_str *texts, size_t n)
{
    hw_ptx_unit **units = HW_NEW_N(c->arena, hw_ptx_unit *, n);
    hw_ptx_module *m;
    for (size_t u = 0; u < n; u++) {
        if (c->given[OPT_ptx])
            cli_print(c, "%.*s\n", HW_STR_ARG(texts[u]));
        if (hw_ptx_parse(c->arena, texts[u], path, &units[u], c->diag) != HW_OK)
            return cli_fail_diag(c);
    }
    if (hw_ptx_link(c->arena, units, n, &m, c->diag) != HW_OK)
        return cli_fail_diag(c);
    if (c->given[OPT_kernel] && hw_ptx_find_kernel(m, cli_text(c, OPT_kernel, "")) == UINT32_MAX) {
        const char **names = HW_NEW_N(c->arena, const char *, m->nkernels + 1);
        for (uint32_t k = 0; k < m->nkernels; k++)
            names[k] = m->kernels[k].name;
        return no_such_kernel(c, path, names, m->nkernels);
    }
    if (c->given[OPT_wir])
        return print_wir(c, m);
    if (!c->given[OPT_ptx])
        list_kernels(c, m);
    return 0;
}

static int inspect_cuda(cli *c, const char *path)
{
    hw_image *images;
    size_t n;
    if (hw_image_open_file(c->arena, path, &images, &n, c->diag) != HW_OK)
        return cli_fail_diag(c);
    bool quiet = c->given[OPT_ptx] || c->given[OPT_wir], runs = false;
    const char *why_not =
        NULL; /* said only if nothing in the file can run: a linker's stub has no PTX either */
    for (size_t i = 0; i < n; i++) {
        hw_str *texts;
        size_t ntexts;
        if (!quiet) {
            cli_print(c, "%simage %zu of %zu%s%s\n", i ? "\n" : "", i + 1, n,
                      images[i].is_device_linked ? ", device-linked" : "",
                      images[i].entries.len ? "" : ", empty");
            list_entries(c, &images[i]);
        }
        enum { NEWEST = UINT16_MAX };
        hw_diag *none = hw_diag_new(c->arena);
        if (hw_image_ptx(c->arena, &images[i], NEWEST, &texts, &ntexts, none) != HW_OK) {
            why_not = none->first ? none->first->text : why_not;
            continue;
        }
        int rc = inspect_ptx(c, path, texts, ntexts);
        if (rc)
            return rc;
        runs = true;
    }
    if (!runs && !quiet && why_not)
        cli_print(c, "%s\n", why_not);
    return 0;
}

static int list_isa(cli *c)
{
    hw_ptx_form f;
    for (uint32_t i = 0; hw_ptx_get_form(i, &f); i++) {
        cli_print(c, "%s%s%s%s%s  PTX %u.%u", f.form, f.operands[0] ? " " : "", f.operands,
                  f.types[0] ? "  " : "", f.types, f.since / 10, f.since % 10);
        if (f.target)
            cli_print(c, ", sm_%u", f.target);
        cli_print(c, "\n");
    }
    return 0;
}

int cmd_inspect(cli *c)
{
    if (c->given[OPT_isa] && !c->operand_count)
        return list_isa(c);
    if (c->given[OPT_isa] || !c->operand_count)
        return cli_fail(c, "inspect takes a FILE, or --isa and none");
    const char *path = c->operands[0];
    hw_str file;
    if (hw_read_file(c->arena, path, &file, c->diag) != HW_OK)
        return cli_fail_diag(c);
    hw_span bytes = { (const uint8_t *)file.ptr, file.len };
    return hw_gcn_is_object(bytes) ? inspect_gcn(c, path, bytes) : inspect_cuda(c, path);
}
