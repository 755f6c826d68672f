/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernels of a program or file, with what occupancy needs of them. Register counts come from
 * machine code's metadata where there is any; of PTX alone they are estimated by liveness, or asked
 * from ptxas. */
#include "occupancy.h"
#include "ptxas.h"

#include "hw_gcn.h"
#include "hw_image.h"
#include "hw_ptx.h"
#include "hw_wir.h"

#include <inttypes.h>
#include <stdlib.h>

typedef HW_VEC(occupancy_case) case_vec;

typedef struct finder {
    cli *c;
    const char *path;
    const occupancy_case *base;
    case_vec found;
    uint32_t cc;         /* of the device: 75, 90 ... */
    uint32_t best_arch;  /* of the machine code taken */
    const char *trouble; /* why PTX gave no registers */
} finder;

/* ---- what the command line overrides ---- */

static uint32_t threads_of(const finder *f, uint32_t exact, uint32_t most)
{
    const hw_device *d = f->base->device;
    if (f->c->given[OPT_threads])
        return f->base->query.threads;
    uint32_t threads = exact                                   ? exact
                       : most && most < f->base->query.threads ? most
                                                               : f->base->query.threads;
    return threads < d->compute.max_threads_per_block || exact ? threads
                                                               : d->compute.max_threads_per_block;
}

/* A kernel's name is asked for exactly, or by a part of it. */
static bool asked_for(const finder *f, const char *name)
{
    const char *wanted = cli_text(f->c, OPT_kernel, NULL);
    return !wanted || strstr(name, wanted);
}

static occupancy_case *add(finder *f, const char *name)
{
    for (size_t i = 0; i < f->found.len; i++)
        if (strcmp(f->found.ptr[i].kernel, name) == 0)
            return &f->found.ptr[i];
    hw_vec_push(f->c->arena, &f->found, *f->base);
    occupancy_case *k = &f->found.ptr[f->found.len - 1];
    k->kernel = name;
    k->regs_from = NULL;
    return k;
}

/* What a linked image says of a kernel stands; the parts it was linked from say less. */
static bool known(const finder *f, const char *name)
{
    for (size_t i = 0; i < f->found.len; i++)
        if (strcmp(f->found.ptr[i].kernel, name) == 0 && f->found.ptr[i].query.registers)
            return true;
    return false;
}

static void fill(finder *f, occupancy_case *k, uint32_t registers, const char *from,
                 uint32_t shared, uint32_t barriers)
{
    hw_occupancy_query *q = &k->query;
    if (!f->c->given[OPT_regs]) {
        q->registers = registers;
        k->regs_from = from;
    }
    if (!f->c->given[OPT_shared])
        q->shared_static = shared;
    if (!f->c->given[OPT_barriers] && barriers)
        q->barriers = barriers;
}

/* ---- machine code ---- */

/* Better code for the device: its own, else the newest older, else the oldest. */
static bool better_arch(const finder *f, uint32_t arch)
{
    if (f->best_arch == 0)
        return true;
    bool runs = arch <= f->cc, best_runs = f->best_arch <= f->cc;
    if (runs != best_runs)
        return runs;
    return runs ? arch > f->best_arch : arch < f->best_arch;
}

static hw_status from_cubin(finder *f, const hw_image_entry *e)
{
    hw_arena *a = f->c->arena;
    hw_str bytes;
    hw_cubin_kernel *kernels;
    size_t n;
    HW_TRY(hw_image_unpack(a, e, &bytes, f->c->diag));
    HW_TRY(hw_cubin_kernels(a, (hw_span){ (const uint8_t *)bytes.ptr, bytes.len }, &kernels, &n,
                            f->c->diag));
    const char *from = hw_arena_printf(a, "from sm_%" PRIu32 " machine code", e->arch);
    for (size_t i = 0; i < n; i++) {
        if (!asked_for(f, kernels[i].name) || known(f, kernels[i].name))
            continue;
        occupancy_case *k = add(f, kernels[i].name);
        k->query.threads = threads_of(f, 0, kernels[i].max_threads);
        fill(f, k, kernels[i].registers, from, kernels[i].static_shared_bytes, kernels[i].barriers);
    }
    return HW_OK;
}

/* ---- PTX ---- */

/* Registers by liveness: those live at once in the warp IR, in 32-bit units, under the kernel's own limit. 0 if the
 * kernel cannot be lowered, with the reason kept. */
static uint32_t estimate(finder *f, const hw_ptx_module *m, uint32_t kernel, uint32_t threads)
{
    hw_wir_module *wir = NULL;
    hw_arena *scratch = hw_arena_new();
    hw_diag *d = hw_diag_new(f->c->arena);
    uint32_t n = 0, most = m->kernels[kernel].maxnreg;
    if (hw_ptx_lower(scratch, m, kernel, &wir, d) == HW_OK) {
        const hw_variant v = { .block = { threads, 1, 1 }, .small_grid = true, .tier = 1 };
        n = hw_wir_analyse(scratch, wir, 0, &v)->max_live;
        n = n ? n : 1;
    } else if (d->first) {
        f->trouble = d->first->text;
    }
    hw_arena_free(scratch);
    return most && n > most ? most : n;
}

static hw_status from_ptx(finder *f, const hw_image_entry *e)
{
    hw_arena *a = f->c->arena;
    hw_str text;
    hw_ptx_unit *unit;
    hw_ptx_module *m;
    HW_TRY(hw_image_unpack(a, e, &text, f->c->diag));
    HW_TRY(hw_ptx_parse(a, text, f->path, &unit, f->c->diag));
    HW_TRY(hw_ptx_link(a, &unit, 1, &m, f->c->diag));
    const ptxas_kernel *asked = NULL;
    size_t asked_count = 0;
    if (f->c->given[OPT_ptxas])
        HW_TRY(cli_ptxas(f->c, text, e->arch_specific || e->arch > f->cc ? e->arch : f->cc,
                         e->arch_specific, &asked, &asked_count));
    for (uint32_t i = 0; i < m->nkernels; i++) {
        const hw_ptx_kernel *p = &m->kernels[i];
        if (!asked_for(f, p->name) || known(f, p->name))
            continue;
        occupancy_case *k = add(f, p->name);
        uint32_t exact = p->reqntid[0] * (p->reqntid[1] ? p->reqntid[1] : 1) *
                         (p->reqntid[2] ? p->reqntid[2] : 1);
        k->query.threads = threads_of(f, exact, p->max_threads);
        const ptxas_kernel *x = cli_ptxas_find(asked, asked_count, p->name);
        uint32_t registers = x                       ? x->registers
                             : f->c->given[OPT_regs] ? 0
                                                     : estimate(f, m, i, k->query.threads);
        fill(f, k, registers, x ? "from ptxas" : "estimated by liveness", p->static_shared_bytes,
             x ? x->barriers : 0);
    }
    return HW_OK;
}

/* ---- a whole file ---- */

static const hw_image_entry *choose(finder *f, const hw_image *img, hw_image_kind kind)
{
    const hw_image_entry *best = NULL;
    f->best_arch = 0;
    for (size_t i = 0; i < img->entries.len; i++) {
        const hw_image_entry *e = &img->entries.ptr[i];
        if (e->kind != kind || !better_arch(f, e->arch))
            continue;
        best = e;
        f->best_arch = e->arch;
    }
    return best;
}

static hw_status from_image(finder *f, const hw_image *img)
{
    const hw_image_entry *code = choose(f, img, HW_ENTRY_CUBIN),
                         *ptx = choose(f, img, HW_ENTRY_PTX);
    bool prefer_ptx = ptx && (!code || f->c->given[OPT_ptxas]);
    if (prefer_ptx)
        HW_TRY(from_ptx(f, ptx));
    else if (code)
        HW_TRY(from_cubin(f, code));
    for (size_t i = 0; i < img->n_units && !(code && !prefer_ptx); i++)
        HW_TRY(from_image(f, &img->units[i]));
    return HW_OK;
}

static int from_gcn(finder *f, hw_span elf)
{
    hw_gcn_object o;
    if (hw_gcn_open(f->c->arena, elf, &o, f->c->diag) != HW_OK)
        return cli_fail_diag(f->c);
    const hw_device *d = f->base->device;
    occupancy_case *base = HW_NEW(f->c->arena, occupancy_case);
    *base = *f->base;
    if (!f->c->given[OPT_device] && d->vendor != HW_VENDOR_AMD && o.target &&
        hw_device_load(f->c->arena, o.target, &base->device, f->c->diag) != HW_OK)
        return cli_fail(f->c, "%s: no device is known for %s; name one with --device", f->path,
                        o.target);
    f->base = base;
    if (base->device->vendor != HW_VENDOR_AMD)
        return cli_fail(f->c, "%s holds AMD code, and %s is a device of %s", f->path,
                        base->device->name, hw_vendor_word(base->device->vendor));
    for (uint32_t i = 0; i < o.nkernels; i++) {
        const hw_gcn_kernel *g = &o.kernels[i];
        if (!asked_for(f, g->name))
            continue;
        occupancy_case *k = add(f, g->name);
        const uint32_t *r = g->reqd_group_size;
        k->query.threads =
            threads_of(f, r[0] * (r[1] ? r[1] : 1) * (r[2] ? r[2] : 1), g->max_group_size);
        k->query.vgprs = f->c->given[OPT_vgprs] ? k->query.vgprs : g->vgprs;
        k->query.sgprs = f->c->given[OPT_sgprs] ? k->query.sgprs : g->sgprs;
        k->query.lds = f->c->given[OPT_lds] ? k->query.lds : g->lds_bytes;
    }
    return 0;
}

static int from_nvidia(finder *f)
{
    hw_image *images;
    size_t n;
    const hw_device *d = f->base->device;
    if (d->vendor != HW_VENDOR_NVIDIA)
        return cli_fail(f->c, "%s holds no AMD code, and %s is a device of AMD", f->path, d->name);
    f->cc = d->capability.major * 10 + d->capability.minor;
    if (hw_image_open_file(f->c->arena, f->path, &images, &n, f->c->diag) != HW_OK)
        return cli_fail_diag(f->c);
    for (size_t i = 0; i < n; i++)
        if (from_image(f, &images[i]) != HW_OK)
            return f->c->diag->first ? cli_fail_diag(f->c) : CLI_BAD_INPUT;
    return 0;
}

/* Every kernel needs a register count: without one the answer would be wrong, so none is given. */
static int check_registers(finder *f)
{
    const char *none = NULL;
    for (size_t i = 0; i < f->found.len && !none; i++)
        if (f->found.ptr[i].device->vendor == HW_VENDOR_NVIDIA &&
            f->found.ptr[i].query.registers == 0 && !f->c->given[OPT_regs])
            none = f->found.ptr[i].kernel;
    if (!none)
        return 0;
    return cli_fail(f->c, "%s: the registers of '%s' are not known%s%s; give --regs N, or --ptxas",
                    f->path, none, f->trouble ? ": " : "", f->trouble ? f->trouble : "");
}

int cli_occupancy_file(cli *c, const char *path, const occupancy_case *base, occupancy_case **out,
                       size_t *n)
{
    hw_str bytes;
    finder f = { .c = c, .path = path, .base = base };
    if (hw_read_file(c->arena, path, &bytes, c->diag) != HW_OK)
        return cli_fail_diag(c);
    hw_span elf = { (const uint8_t *)bytes.ptr, bytes.len };
    int status = hw_gcn_is_object(elf) ? from_gcn(&f, elf) : from_nvidia(&f);
    if (status)
        return status;
    const char *wanted = cli_text(c, OPT_kernel, NULL);
    if (f.found.len == 0)
        return wanted ? cli_fail(c, "%s has no kernel '%s'", path, wanted)
                      : cli_fail(c, "%s has no kernels", path);
    *out = f.found.ptr;
    *n = f.found.len;
    return check_registers(&f);
}
