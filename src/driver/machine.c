/* SPDX-License-Identifier: Apache-2.0
 *
 * Machine code beside the PTX of an image: nothing of it runs, but it says how many registers and
 * how much local memory a compiler gave each kernel. Unpacked when first asked for. */
#include "driver.h"

/* The image may be gone when its cubins are asked for. */
static hw_image_entry keep(hw_arena *a, const hw_image_entry *e)
{
    hw_image_entry copy = *e;
    hw_str bytes = hw_arena_dup(a, (hw_str){ (const char *)e->payload.ptr, e->stored_size });
    copy.payload = (hw_span){ (const uint8_t *)bytes.ptr, bytes.len };
    return copy;
}

/* How well code for arch stands for a device: its own generation, else the nearest below, else
 * above. 0: not at all. */
static uint32_t rank(uint32_t arch, uint32_t cc)
{
    enum { SAME = 1000000, BELOW = 10000 };
    if (arch == cc)
        return SAME;
    return arch < cc ? BELOW + arch : arch < BELOW ? BELOW - arch : 1;
}

static const hw_image_entry *best_for(const hw_image *img, uint32_t cc)
{
    const hw_image_entry *best = NULL;
    for (size_t i = 0; i < img->entries.len; i++) {
        const hw_image_entry *e = &img->entries.ptr[i];
        if (e->kind == HW_ENTRY_CUBIN && !e->relocatable &&
            (!best || rank(e->arch, cc) > rank(best->arch, cc)))
            best = e;
    }
    return best;
}

void hw_cu_machine_keep(hw_cu_program *p, const hw_image *img, bool all)
{
    const hw_image_entry *best = best_for(img, p->cc);
    if (!best)
        return;
    p->cubins = HW_NEW_N(p->arena, hw_cu_cubin, img->entries.len);
    for (size_t i = 0; i < img->entries.len; i++) {
        const hw_image_entry *e = &img->entries.ptr[i];
        if (e == best || (all && e->kind == HW_ENTRY_CUBIN && !e->relocatable))
            p->cubins[p->ncubins++] = (hw_cu_cubin){ .entry = keep(p->arena, e) };
    }
}

static void open_cubin(hw_arena *a, hw_cu_cubin *c)
{
    hw_str bytes;
    if (c->opened)
        return;
    c->opened = true;
    if (hw_image_unpack(a, &c->entry, &bytes, NULL) != HW_OK)
        return;
    const hw_span elf = { (const uint8_t *)bytes.ptr, bytes.len };
    if (hw_cubin_kernels(a, elf, &c->kernels, &c->nkernels, NULL) != HW_OK)
        c->nkernels = 0;
}

static const hw_cubin_kernel *kernel_in(hw_arena *a, hw_cu_cubin *c, const char *name)
{
    open_cubin(a, c);
    for (size_t i = 0; i < c->nkernels; i++)
        if (strcmp(c->kernels[i].name, name) == 0 && c->kernels[i].registers)
            return &c->kernels[i];
    return NULL;
}

bool hw_cu_machine_find(hw_cu_program *p, uint32_t kernel, uint32_t cc, hw_cu_machine *out)
{
    const char *name = p->ptx->kernels[kernel].name;
    *out = (hw_cu_machine){ 0 };
    for (size_t i = 0; i < p->ncubins; i++) {
        uint32_t arch = p->cubins[i].entry.arch;
        if (out->registers && rank(arch, cc) <= rank(out->arch, cc))
            continue;
        const hw_cubin_kernel *k = kernel_in(p->arena, &p->cubins[i], name);
        if (k)
            *out = (hw_cu_machine){ arch, k->registers, k->local_bytes };
    }
    return out->registers != 0;
}
