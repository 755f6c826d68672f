/* SPDX-License-Identifier: Apache-2.0
 *
 * halfwarp-ptxas: stands in for ptxas where a program runs an assembler of its own and lets one say
 * which. It checks the PTX and writes it out as it is, in place of machine code.
 */
#include "hw_base.h"
#include "hw_ptx.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* What ptxas exits with when the PTX is wrong. */
enum { BAD_PTX = 255 };

/* Options whose value is the next word, unless it is joined by "="; the others stand alone. */
static const char *const valued[] = {
    "-o",
    "--output-file",
    "-arch",
    "--gpu-name",
    "-opt-level",
    "--opt-level",
    "-O",
    "-maxrregcount",
    "--maxrregcount",
    "-m",
    "--machine",
    "-e",
    "--entry",
    "-ofc",
    "--Ofast-compile",
    "-fmad",
    "--fmad",
    "-dlcm",
    "--def-load-cache",
    "-dscm",
    "--def-store-cache",
    "-optf",
    "--options-file",
    "-split-compile",
    "--split-compile",
    "-sw",
    "--host",
};

typedef struct options {
    const char *input, *output;
    bool verbose, version, relocatable;
} options;

static bool takes_value(const char *word)
{
    for (size_t i = 0; i < HW_COUNTOF(valued); i++)
        if (strcmp(word, valued[i]) == 0)
            return true;
    return false;
}

static options read_options(int argc, char **argv)
{
    options o = { .output = "elf.o" };
    for (int i = 1; i < argc; i++) {
        const char *word = argv[i];
        bool is_output = strcmp(word, "-o") == 0 || strcmp(word, "--output-file") == 0;
        if (is_output && i + 1 < argc)
            o.output = argv[++i];
        else if (strncmp(word, "--output-file=", 14) == 0)
            o.output = word + 14;
        else if (takes_value(word))
            i++;
        else if (strcmp(word, "-V") == 0 || strcmp(word, "--version") == 0)
            o.version = true;
        else if (strcmp(word, "-v") == 0 || strcmp(word, "--verbose") == 0)
            o.verbose = true;
        else if (strcmp(word, "-c") == 0 || strcmp(word, "--compile-only") == 0)
            o.relocatable = true;
        else if (word[0] != '-' || !word[1])
            o.input = word;
    }
    return o;
}

/* Programs read the release, to know which PTX they may write. */
static int print_version(void)
{
    printf("halfwarp-ptxas: checks PTX and leaves it as it is, in place of ptxas\n"
           "Halfwarp " HW_VERSION ", PTX as of Cuda compilation tools, release 13.0, V13.0.0\n");
    return 0;
}

/* Without -c all that is called must be there. */
static hw_status check(hw_arena *a, const options *o, hw_str text, hw_diag *d)
{
    hw_ptx_unit *unit;
    hw_ptx_module *module;
    HW_TRY(hw_ptx_parse(a, text, o->input, &unit, d));
    if (o->relocatable)
        return HW_OK;
    HW_TRY(hw_ptx_link(a, &unit, 1, &module, d));
    for (uint32_t i = 0; o->verbose && i < module->nkernels; i++)
        fprintf(stderr, "ptxas info    : Compiling entry function '%s'\n", module->kernels[i].name);
    return HW_OK;
}

static bool write_text(const char *path, hw_str text)
{
    FILE *f = fopen(path, "wb");
    bool ok = f && fwrite(text.ptr, 1, text.len, f) == text.len && fputc(0, f) == 0;
    return f ? fclose(f) == 0 && ok : false;
}

int main(int argc, char **argv)
{
    options o = read_options(argc, argv);
    if (o.version)
        return print_version();
    if (!o.input) {
        fprintf(stderr, "halfwarp-ptxas: no input file\n");
        return 1;
    }
    hw_arena *a = hw_arena_new();
    hw_diag *d = hw_diag_new(a);
    hw_str text;
    int status = 0;
    if (hw_read_file(a, o.input, &text, d) != HW_OK || check(a, &o, text, d) != HW_OK) {
        fprintf(stderr, "%.*s", HW_STR_ARG(hw_diag_text(d, a)));
        status = BAD_PTX;
    } else if (!write_text(o.output, (hw_str){ text.ptr, strnlen(text.ptr, text.len) })) {
        fprintf(stderr, "halfwarp-ptxas: cannot write %s: %s\n", o.output, strerror(errno));
        status = 1;
    }
    hw_arena_free(a);
    return status;
}
