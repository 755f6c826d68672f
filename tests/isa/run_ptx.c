/* SPDX-License-Identifier: Apache-2.0
 * Runs one warp of a PTX kernel with parameters (in, out) or (out), addresses:
 * run_ptx FILE KERNEL LANES IN_HEX OUT_BYTES prints the output buffer as hexadecimal bytes. */
#include "execute.h"
#include "hw_ptx.h"

#include <stdio.h>
#include <stdlib.h>

static int fail(const char *stage, hw_diag *d, hw_arena *a)
{
    hw_str text = hw_diag_text(d, a);
    printf("%s\n%.*s\n", stage, HW_STR_ARG(text));
    return 1;
}

static size_t read_hex(const char *hex, uint8_t *out)
{
    size_t n = strlen(hex) / 2;
    for (size_t k = 0; k < n; k++) {
        char byte[3] = { hex[2 * k], hex[2 * k + 1], 0 };
        out[k] = (uint8_t)strtoul(byte, NULL, 16);
    }
    return n;
}

static void place_variables(const hw_ptx_module *m, uint64_t *addresses)
{
    for (uint32_t k = 0; k < m->nvariables; k++) {
        const hw_ptx_variable *v = &m->variables[k];
        uint8_t *bytes = execute_memory(v->size + 16);
        HW_CHECK(bytes != NULL);
        if (v->init)
            memcpy(bytes, v->init, v->init_bytes);
        addresses[k] = (uint64_t)(uintptr_t)bytes;
    }
    for (uint32_t k = 0; k < m->nvariables; k++)
        for (uint32_t r = 0; r < m->variables[k].nrelocs; r++) {
            const hw_ptx_reloc *x = &m->variables[k].relocs[r];
            uint64_t value = x->is_function ? x->target : addresses[x->target];
            value = (value + (uint64_t)x->addend) >> x->shift;
            memcpy((uint8_t *)(uintptr_t)addresses[k] + x->offset, &value, x->width);
        }
}

static int run(hw_arena *a, const hw_ptx_module *m, hw_wir_module *w, bool has_in, unsigned lanes,
               const char *in_hex, size_t out_bytes)
{
    uint8_t *in = execute_memory(strlen(in_hex) + 4096), *out = execute_memory(out_bytes + 64);
    uint64_t *params = execute_memory(2 * sizeof *params);
    uint64_t *addresses = HW_NEW_N(a, uint64_t, m->nvariables + 1);
    uint64_t *symbols = HW_NEW_N(a, uint64_t, w->symbols.len + 1);
    if (!in || !out || !params)
        return 1;
    read_hex(in_hex, in);
    place_variables(m, addresses);
    params[0] = (uint64_t)(uintptr_t)(has_in ? in : out);
    params[1] = (uint64_t)(uintptr_t)out;
    for (size_t k = 0; k < w->symbols.len; k++)
        symbols[k] = addresses[w->symbols.ptr[k].external_id];
    if (!execute(&(execute_job){ w, params, 1, lanes, symbols }))
        return 1;
    for (size_t k = 0; k < out_bytes; k++)
        printf("%02x", out[k]);
    printf("\n");
    return 0;
}

int main(int argc, char **argv)
{
    hw_arena *a = hw_arena_new();
    hw_diag *d = hw_diag_new(a);
    hw_str text;
    hw_ptx_unit *u = NULL;
    hw_ptx_module *m = NULL;
    hw_wir_module *w = NULL;
    if (argc != 6)
        return 2;
    if (hw_read_file(a, argv[1], &text, d) != HW_OK ||
        hw_ptx_parse(a, text, argv[1], &u, d) != HW_OK || hw_ptx_link(a, &u, 1, &m, d) != HW_OK)
        return fail("rejected", d, a);
    uint32_t k = hw_ptx_find_kernel(m, argv[2]);
    if (k == UINT32_MAX) {
        printf("no kernel %s\n", argv[2]);
        return 1;
    }
    if (hw_ptx_lower(a, m, k, &w, d) != HW_OK || hw_wir_verify(w, d) != HW_OK)
        return fail("not lowered", d, a);
    int r = run(a, m, w, m->kernels[k].nparams > 1, (unsigned)strtoul(argv[3], NULL, 10), argv[4],
                strtoul(argv[5], NULL, 10));
    hw_arena_free(a);
    return r;
}
