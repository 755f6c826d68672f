/* SPDX-License-Identifier: Apache-2.0
 *
 * One warp's access from --stride, --pattern or --addresses. */
#include "access.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

/* Word w of the access's width as a byte address. */
static int put_word(cli *c, cli_access *a, uint32_t lane, int64_t word)
{
    int64_t at;
    if (word < 0 || __builtin_mul_overflow(word, (int64_t)a->access.width, &at) ||
        at > INT64_MAX - 64)
        return cli_fail(c, "lane %" PRIu32 ": word %" PRId64 " is not a possible address", lane,
                        word);
    a->address[lane] = (uint64_t)at;
    a->access.mask |= UINT64_C(1) << lane;
    return 0;
}

static int from_stride(cli *c, cli_access *a)
{
    a->strided = true;
    a->stride = cli_number(c, OPT_stride, 1);
    a->offset = cli_number(c, OPT_offset, 0);
    for (uint32_t lane = 0; lane < a->access.lanes; lane++) {
        int64_t word;
        if (__builtin_add_overflow(a->offset, a->stride * (int64_t)lane, &word))
            return cli_fail(c, "lane %" PRIu32 ": the address overflows", lane);
        int status = put_word(c, a, lane, word);
        if (status)
            return status;
    }
    a->words = hw_arena_printf(c->arena, "%" PRId64 " + lane * %" PRId64, a->offset, a->stride);
    return 0;
}

static int from_pattern(cli *c, cli_access *a, const char *text)
{
    for (uint32_t lane = 0; lane < a->access.lanes; lane++) {
        int64_t word, offset = cli_number(c, OPT_offset, 0);
        if (!cli_expression(c, text, lane, &word))
            return CLI_BAD_INPUT;
        if (word < 0)
            continue;
        if (__builtin_add_overflow(word, offset, &word))
            return cli_fail(c, "lane %" PRIu32 ": the address overflows", lane);
        int status = put_word(c, a, lane, word);
        if (status)
            return status;
    }
    a->words = text;
    return 0;
}

/* A lane's address; *active false for '-'. */
static int read_address(cli *c, const char *path, unsigned line, const char *text,
                        uint64_t *address, bool *active)
{
    char *end;
    *active = strcmp(text, "-") != 0;
    if (!*active)
        return 0;
    errno = 0;
    unsigned long long v = strtoull(text, &end, 0);
    if (*end || end == text || *text == '-')
        return cli_fail(c, "%s:%u: '%s' is not an address", path, line, text);
    if (errno == ERANGE || v > INT64_MAX - 64)
        return cli_fail(c, "%s:%u: address %s is too large", path, line, text);
    *address = v;
    return 0;
}

/* The addresses of one line, which belong to the next lanes. */
static int from_line(cli *c, cli_access *a, const char *path, unsigned line, char *text,
                     uint32_t *lane)
{
    char *rest;
    text[strcspn(text, "#")] = 0;
    for (char *word = strtok_r(text, " \t\r\n,", &rest); word;
         word = strtok_r(NULL, " \t\r\n,", &rest)) {
        bool active = false;
        if (*lane == a->access.lanes)
            return cli_fail(c, "%s:%u: more addresses than the %" PRIu32 " lanes of %s", path, line,
                            *lane, a->device->name);
        int status = read_address(c, path, line, word, &a->address[*lane], &active);
        if (status)
            return status;
        a->access.mask |= active ? UINT64_C(1) << *lane : 0;
        (*lane)++;
    }
    return 0;
}

static int from_file(cli *c, cli_access *a, const char *path)
{
    char *text = NULL;
    size_t size = 0;
    uint32_t lane = 0;
    int status = 0;
    FILE *f = strcmp(path, "-") == 0 ? stdin : fopen(path, "r");
    if (!f)
        return cli_fail(c, "cannot read '%s': %s", path, strerror(errno));
    for (unsigned line = 1; status == 0 && getline(&text, &size, f) >= 0; line++)
        status = from_line(c, a, path, line, text, &lane);
    free(text);
    if (f != stdin)
        fclose(f);
    a->words = path;
    return status == 0 && lane == 0 ? cli_fail(c, "%s: no addresses", path) : status;
}

static int apply_mask(cli *c, cli_access *a)
{
    const char *text = cli_text(c, OPT_mask, NULL);
    char *end;
    if (!text)
        return 0;
    errno = 0;
    unsigned long long mask = strtoull(text, &end, 0);
    if (*end || end == text || errno || *text == '-')
        return cli_fail(c, "--mask: '%s' is not a number of 64 bits", text);
    a->access.mask &= mask;
    return 0;
}

static int read_kind(cli *c, cli_access *a)
{
    int64_t width = cli_number(c, OPT_width, 4);
    if (width & (width - 1))
        return cli_fail(c, "--width: %d is not 1, 2, 4, 8 or 16", (int)width);
    a->access.width = (uint32_t)width;
    a->access.kind = c->given[OPT_atomic] ? HW_ATOMIC : c->given[OPT_store] ? HW_STORE : HW_LOAD;
    a->access.bypass_l1 = c->given[OPT_cg];
    a->access.use_l1 = c->given[OPT_ca];
    int64_t bank = cli_number(c, OPT_bank_mode, 0);
    if (bank && a->device->banks.rule != HW_BANKS32_DUAL_MODE &&
        bank != a->device->banks.bank_width)
        return cli_fail(c, "--bank-width: the banks of %s are %" PRIu32 " bytes wide",
                        a->device->name, a->device->banks.bank_width);
    if (bank && bank != 4 && bank != 8)
        return cli_fail(c, "--bank-width: %d is not 4 or 8", (int)bank);
    a->access.bank_width = (uint32_t)bank;
    const char *reads = cli_text(c, OPT_reads, NULL);
    if (reads && strcmp(reads, "words") != 0 && strcmp(reads, "threads") != 0)
        return cli_fail(c, "--read-conflicts: '%s' is not words or threads", reads);
    a->access.read_conflicts = !reads ? 0 : strcmp(reads, "threads") == 0 ? 1 : -1;
    return 0;
}

int cli_read_access(cli *c, cli_access *a)
{
    const char *pattern = cli_text(c, OPT_pattern, NULL), *file = cli_text(c, OPT_addresses, NULL);
    memset(a, 0, sizeof *a);
    if (hw_device_load(c->arena, cli_text(c, OPT_device, getenv("HALFWARP_DEVICE")), &a->device,
                       c->diag) != HW_OK)
        return cli_fail_diag(c);
    if (c->given[OPT_stride] + (pattern != NULL) + (file != NULL) > 1)
        return cli_fail(c, "--stride, --pattern and --addresses exclude one another");
    a->access.address = a->address;
    a->access.lanes = a->device->compute.warp_size;
    int status = read_kind(c, a);
    if (status == 0)
        status = pattern ? from_pattern(c, a, pattern)
                 : file  ? from_file(c, a, file)
                         : from_stride(c, a);
    return status ? status : apply_mask(c, a);
}

json_t *cli_lanes_json(const cli_access *a)
{
    json_t *all = json_array();
    for (uint32_t lane = 0; lane < a->access.lanes; lane++)
        if (a->access.mask >> lane & 1)
            json_array_append_new(all, json_pack("{s:i, s:I}", "lane", (int)lane, "address",
                                                 (json_int_t)a->address[lane]));
    return all;
}

const char *cli_lanes_text(cli *c, uint64_t mask)
{
    const char *text = "";
    for (int lane = 0; lane < 64; lane++) {
        if (!(mask >> lane & 1))
            continue;
        int last = lane;
        while (last < 63 && mask >> (last + 1) & 1)
            last++;
        text = last > lane
                   ? hw_arena_printf(c->arena, "%s%s%d-%d", text, *text ? " " : "", lane, last)
                   : hw_arena_printf(c->arena, "%s%s%d", text, *text ? " " : "", lane);
        lane = last;
    }
    return text;
}
