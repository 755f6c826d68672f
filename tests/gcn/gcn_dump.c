/* SPDX-License-Identifier: Apache-2.0
 * gcn_dump FILE: what a code object holds, one fact a line, and its code as assembler text. Used by
 * objects.py. */
#include "hw_gcn.h"

#include <stdio.h>

static void show_kernel(const hw_gcn_kernel *k)
{
    printf("kernel %s lds %u scratch %u kernarg %u vgprs %u sgprs %u vgpr_blocks %u sgpr_blocks %u "
           "max %u reqd %u %u %u args %u float %x\n",
           k->name, k->lds_bytes, k->scratch_bytes, k->kernarg_bytes, k->vgprs, k->sgprs,
           k->vgprs_allocated, k->sgprs_allocated, k->max_group_size, k->reqd_group_size[0],
           k->reqd_group_size[1], k->reqd_group_size[2], k->nargs, k->float_mode);
    printf("code %s %llu %llu\n", k->name, (unsigned long long)k->code_offset,
           (unsigned long long)k->code_size);
}

static void show_code(const hw_gcn_object *o)
{
    char text[256];
    hw_gcn_insn i;
    for (size_t at = 0; at < o->code.len; at += i.size) {
        if (hw_gcn_decode((hw_gcn_family)o->families, o->code, at, &i) == HW_OK)
            hw_gcn_print(&i, text, sizeof text);
        else
            snprintf(text, sizeof text, ".long 0x%x",
                     *(const unsigned *)(const void *)(o->code.ptr + at));
        printf("insn %s\n", text);
    }
}

int main(int argc, char **argv)
{
    hw_arena *a = hw_arena_new();
    hw_diag *d = hw_diag_new(a);
    hw_str file;
    hw_gcn_object o;
    int rc = argc != 2;
    if (rc || hw_read_file(a, argv[1], &file, d) ||
        hw_gcn_open(a, (hw_span){ (const uint8_t *)file.ptr, file.len }, &o, d)) {
        fprintf(stderr, "%s\n", hw_diag_text(d, a).ptr);
        rc = 2;
    } else {
        printf("target %s version %u\n", o.target ? o.target : "?", o.version);
        for (uint32_t k = 0; k < o.nkernels; k++)
            show_kernel(&o.kernels[k]);
        if (o.families)
            show_code(&o);
    }
    hw_arena_free(a);
    return rc;
}
