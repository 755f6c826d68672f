/* SPDX-License-Identifier: Apache-2.0
 * PTX's types and special registers by name. */
#include "parse.h"

static const struct {
    const char *text;
    uint8_t bits, wir;
    bool declarable;
} types[PTX_TYPE_COUNT] = {
#define PTX_T(name, text, bits, wir, declarable) { text, bits, HW_T_##wir, declarable },
#include "types.def"
#undef PTX_T
};

unsigned ptx_type_bits(ptx_type t)
{
    return types[t].bits;
}

hw_wir_type ptx_wir_type(ptx_type t)
{
    return (hw_wir_type)types[t].wir;
}

bool ptx_type_of(hw_str word, ptx_type *out)
{
    for (int t = PTX_NONE + 1; t < PTX_TYPE_COUNT; t++) {
        if (types[t].declarable && hw_str_is(word, types[t].text)) {
            *out = (ptx_type)t;
            return true;
        }
    }
    return false;
}

/* PTX ISA, "Special Registers". Numbered families (%pm0 ...) by their stem. */
static const struct {
    const char *name;
    bool vector, numbered;
} specials[] = {
    { "tid", true },
    { "ntid", true },
    { "ctaid", true },
    { "nctaid", true },
    { "clusterid", true },
    { "nclusterid", true },
    { "cluster_ctaid", true },
    { "cluster_nctaid", true },
    { "cluster_ctarank" },
    { "cluster_nctarank" },
    { "is_explicit_cluster" },
    { "laneid" },
    { "warpid" },
    { "nwarpid" },
    { "smid" },
    { "nsmid" },
    { "gridid" },
    { "lanemask_eq" },
    { "lanemask_le" },
    { "lanemask_lt" },
    { "lanemask_ge" },
    { "lanemask_gt" },
    { "clock" },
    { "clock_hi" },
    { "clock64" },
    { "globaltimer" },
    { "globaltimer_lo" },
    { "globaltimer_hi" },
    { "total_smem_size" },
    { "aggr_smem_size" },
    { "dynamic_smem_size" },
    { "current_graph_exec" },
    { "reserved_smem_offset_begin" },
    { "reserved_smem_offset_end" },
    { "reserved_smem_offset_cap" },
    { "reserved_smem_offset_", false, true },
    { "pm", false, true },
    { "envreg", false, true },
};

static bool is_special(hw_str name, size_t i)
{
    hw_str want = hw_str_of(specials[i].name);
    if (!specials[i].numbered)
        return hw_str_eq(name, want);
    if (!hw_str_starts(name, want) || name.len == want.len)
        return false;
    char digit = name.ptr[want.len];
    return digit >= '0' && digit <= '9';
}

bool ptx_is_special(hw_str name)
{
    for (size_t i = 0; i < HW_COUNTOF(specials); i++)
        if (is_special(name, i))
            return true;
    return false;
}

bool ptx_is_special_vector(hw_str name)
{
    for (size_t i = 0; i < HW_COUNTOF(specials); i++)
        if (specials[i].vector && is_special(name, i))
            return true;
    return false;
}
