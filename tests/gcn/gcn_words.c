/* SPDX-License-Identifier: Apache-2.0
 * gcn_words FAMILY SEED COUNT: decode one encoding of every row and COUNT random ones; print "WORD
 * WORD SIZE TEXT" each. gcn_words FAMILY < bytes in hex, one instruction a line: print its text.
 * Used by roundtrip.py. */
#include "hw_gcn.h"

#include <stdio.h>
#include <stdlib.h>

static uint32_t state;

static uint32_t next(void)
{
    state ^= state << 13;
    state ^= state >> 17;
    return state ^= state << 5;
}

static void show(hw_gcn_family family, const uint32_t w[2])
{
    hw_gcn_insn i;
    char text[256];
    if (hw_gcn_decode(family, (hw_span){ (const uint8_t *)w, 8 }, 0, &i) != HW_OK)
        return;
    hw_gcn_print(&i, text, sizeof text);
    printf("%08x %08x %d %s\n", w[0], w[1], i.size, text);
}

/* First words of each format: fixed bits, where the opcode stands. Operands are small VGPRs or
 * aligned SGPRs. */
static const struct {
    uint32_t fixed, operands, second;
    unsigned opcode_lo;
} shapes[HW_GCN_FORMATS] = {
    [HW_GCN_SOP2] = { 0x80000000, 0x00100804, 0, 23 },
    [HW_GCN_SOPK] = { 0xb0000000, 0x00100123, 0x12345678, 23 },
    [HW_GCN_SOP1] = { 0xbe800000, 0x00100004, 0, 8 },
    [HW_GCN_SOPC] = { 0xbf000000, 0x00000804, 0, 16 },
    [HW_GCN_SOPP] = { 0xbf800000, 0, 0, 16 },
    [HW_GCN_SMRD] = { 0xc0000000, 0x00100904, 0, 22 },
    [HW_GCN_VOP2] = { 0x00000000, 0x00060904, 0x3f9d70a4, 25 },
    [HW_GCN_VOP1] = { 0x7e000000, 0x00060104, 0, 9 },
    [HW_GCN_VOPC] = { 0x7c000000, 0x00000904, 0, 17 },
    [HW_GCN_VOP3] = { 0xd0000000, 0x00001008, 0x0422090c, 17 },
    [HW_GCN_DS] = { 0xd8000000, 0x00000310, 0x10080604, 18 },
    [HW_GCN_FLAT] = { 0xdc000000, 0x00000000, 0x10000604, 18 },
    [HW_GCN_MUBUF] = { 0xe0000000, 0x00001010, 0x08020604, 18 },
    [HW_GCN_MTBUF] = { 0xe8000000, 0x01101010, 0x08020604, 16 },
};

static void show_rows(hw_gcn_family family)
{
    size_t n;
    const hw_gcn_row *rows = hw_gcn_rows(&n);
    for (size_t r = 0; r < n; r++) {
        unsigned f = rows[r].format;
        uint32_t w[2] = { shapes[f].fixed | shapes[f].operands |
                              (uint32_t)rows[r].opcode << shapes[f].opcode_lo,
                          shapes[f].second };
        show(family, w);
    }
}

static void show_input(hw_gcn_family family)
{
    uint32_t w[2];
    char line[64];
    while (fgets(line, sizeof line, stdin)) {
        w[0] = w[1] = 0;
        if (sscanf(line, "%x %x", &w[0], &w[1]) >= 1)
            show(family, w);
    }
}

int main(int argc, char **argv)
{
    if (argc != 2 && argc != 4) {
        fprintf(stderr, "usage: gcn_words FAMILY [SEED COUNT]\n");
        return 2;
    }
    hw_gcn_family family = (hw_gcn_family)strtoul(argv[1], NULL, 10);
    if (argc == 2) {
        show_input(family);
        return 0;
    }
    state = (uint32_t)strtoul(argv[2], NULL, 10) * 2654435761u + 1;
    show_rows(family);
    for (unsigned long left = strtoul(argv[3], NULL, 10); left; left--)
        show(family, (const uint32_t[2]){ next(), next() });
    return 0;
}
