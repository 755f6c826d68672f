/* SPDX-License-Identifier: Apache-2.0
 * bench_compile: what compiling costs.
 *
 *   bench_compile FILE.ptx [--kernel NAME] [--tier N] [--block X,Y,Z] [--independent 0|1] [--ir FILE]
 *                 [--object FILE]
 *
 * For each kernel of the file: PTX parsed once, then lowered and compiled (no cache), with the processor milliseconds of
 * the code generator, the warp IR's size and the object's. --ir writes the LLVM IR as it goes to the code generator, --object the object
 * file, for a disassembler. */
#include "codegen.h"
#include "hw_ptx.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

typedef struct options {
    const char *file, *kernel, *ir, *object;
    unsigned rounds;
    hw_variant variant;
} options;

static double processor_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

static size_t count_insns(const hw_wir_module *m)
{
    size_t n = 0;
    for (size_t f = 0; f < m->functions.len; f++)
        for (size_t b = 0; b < m->functions.ptr[f].blocks.len; b++)
            n += m->functions.ptr[f].blocks.ptr[b].insns.len;
    return n;
}

static void write_file(const char *path, hw_span bytes)
{
    FILE *f = fopen(path, "wb");
    if (!f)
        return;
    fwrite(bytes.ptr, 1, bytes.len, f);
    fclose(f);
}

typedef struct figures {
    size_t insns, object_bytes;
    double lower_ms, compile_ms;
} figures;

static hw_status compile_once(const options *o, const hw_ptx_module *m, uint32_t k, figures *out,
                              hw_diag *d)
{
    hw_arena *a = hw_arena_new();
    hw_wir_module *wir;
    hw_codegen_out code;
    hw_codegen_options how = { .keep_ir = o->ir != NULL };
    double start = processor_ms();
    hw_status s = hw_ptx_lower(a, m, k, &wir, d);
    double lowered = processor_ms();
    out->insns = s == HW_OK ? count_insns(wir) : 0;
    if (s == HW_OK)
        s = hw_codegen.compile(a, wir, &o->variant, &how, &code, d);
    out->lower_ms = lowered - start;
    out->compile_ms = processor_ms() - lowered;
    out->object_bytes = s == HW_OK ? code.object.len : 0;
    if (s == HW_OK && o->ir)
        write_file(o->ir, (hw_span){ (const uint8_t *)code.ir, strlen(code.ir) });
    if (s == HW_OK && o->object)
        write_file(o->object, code.object);
    hw_arena_free(a);
    return s;
}

static hw_status compile_kernel(const options *o, const hw_ptx_module *m, uint32_t k, hw_diag *d)
{
    figures best = { 0 }, x;
    for (unsigned i = 0; i < o->rounds; i++) {
        HW_TRY(compile_once(o, m, k, &x, d));
        if (i == 0 || x.compile_ms < best.compile_ms)
            best = x;
    }
    printf("%7zu instructions  lower %7.2f ms  compile %9.2f ms  %8zu bytes  %.60s\n", best.insns,
           best.lower_ms, best.compile_ms, best.object_bytes, m->kernels[k].name);
    return HW_OK;
}

static bool parse_options(int argc, char **argv, options *o)
{
    *o = (options){ .rounds = 1,
                    .variant = { .block = { 256, 1, 1 },
                                 .lockstep_first = true,
                                 .small_grid = true,
                                 .whole_blocks = true,
                                 .tier = 1 } };
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        if (argv[i][0] != '-') {
            o->file = argv[i];
            continue;
        }
        i++;
        if (!strcmp(argv[i - 1], "--kernel"))
            o->kernel = value;
        else if (!strcmp(argv[i - 1], "--ir"))
            o->ir = value;
        else if (!strcmp(argv[i - 1], "--object"))
            o->object = value;
        else if (!strcmp(argv[i - 1], "--independent"))
            o->variant.independent = strtoul(value, NULL, 10) != 0;
        else if (!strcmp(argv[i - 1], "--rounds"))
            o->rounds = (unsigned)strtoul(value, NULL, 10);
        else if (!strcmp(argv[i - 1], "--tier"))
            o->variant.tier = (uint8_t)strtoul(value, NULL, 10);
        else if (strcmp(argv[i - 1], "--block") != 0 ||
                 sscanf(value, "%u,%u,%u", &o->variant.block[0], &o->variant.block[1],
                        &o->variant.block[2]) < 1)
            return false;
    }
    return o->file != NULL;
}

static hw_status run(const options *o, hw_arena *a, hw_diag *d)
{
    hw_str text;
    hw_ptx_unit *unit;
    hw_ptx_module *m;
    HW_TRY(hw_read_file(a, o->file, &text, d));
    double start = processor_ms();
    HW_TRY(hw_ptx_parse(a, text, o->file, &unit, d));
    HW_TRY(hw_ptx_link(a, &unit, 1, &m, d));
    double ms = processor_ms() - start;
    printf("parse %.2f ms, %.1f MB/s\n", ms, (double)text.len / 1e3 / ms);
    for (uint32_t k = 0; k < m->nkernels; k++)
        if (!o->kernel || strstr(m->kernels[k].name, o->kernel))
            HW_TRY(compile_kernel(o, m, k, d));
    return HW_OK;
}

int main(int argc, char **argv)
{
    options o;
    if (!parse_options(argc, argv, &o)) {
        fprintf(stderr, "usage: bench_compile FILE.ptx [--kernel NAME] [--tier N] [--block X,Y,Z] "
                        "[--independent 0|1] "
                        "[--ir FILE] [--object FILE]\n");
        return 2;
    }
    hw_arena *a = hw_arena_new();
    hw_diag *d = hw_diag_new(a);
    hw_status s = run(&o, a, d);
    if (s != HW_OK)
        fprintf(stderr, "%s\n", hw_diag_text(d, a).ptr);
    hw_arena_free(a);
    return s == HW_OK ? 0 : 1;
}
