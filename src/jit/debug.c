/* SPDX-License-Identifier: Apache-2.0
 *
 * Which instruction of the warp IR a machine instruction comes from: the object's line table, whose
 * line numbers are indices of hw_wir_module.locs. Only faults ask (lines.c).
 */
#include "gen.h"

void hwg_debug_begin(hw_gen *g)
{
    static const char name[] = "kernel", us[] = "halfwarp";
    g->di = LLVMCreateDIBuilder(g->mod);
    g->di_file = LLVMDIBuilderCreateFile(g->di, name, sizeof name - 1, "", 0);
    LLVMDIBuilderCreateCompileUnit(g->di, LLVMDWARFSourceLanguageC, g->di_file, us, sizeof us - 1,
                                   0, "", 0, 0, "", 0, LLVMDWARFEmissionLineTablesOnly, 0, 0, 0, "",
                                   0, "", 0);
    hw_lv dwarf = hwg_k(g->i32, 4), format = hwg_k(g->i32, LLVMDebugMetadataVersion());
    LLVMAddModuleFlag(g->mod, LLVMModuleFlagBehaviorWarning, "Dwarf Version", 13,
                      LLVMValueAsMetadata(dwarf));
    LLVMAddModuleFlag(g->mod, LLVMModuleFlagBehaviorWarning, "Debug Info Version", 18,
                      LLVMValueAsMetadata(format));
}

void hwg_debug_function(hw_gen *g)
{
    LLVMMetadataRef none = NULL;
    LLVMMetadataRef type =
        LLVMDIBuilderCreateSubroutineType(g->di, g->di_file, &none, 0, LLVMDIFlagZero);
    size_t n = 0;
    const char *name = LLVMGetValueName2(g->fn, &n);
    g->di_scope = LLVMDIBuilderCreateFunction(g->di, g->di_file, name, n, "", 0, g->di_file, 0,
                                              type, true, true, 0, LLVMDIFlagZero, true);
    LLVMSetSubprogram(g->fn, g->di_scope);
    LLVMSetCurrentDebugLocation2(g->b, NULL);
}

static void at(hw_gen *g, uint32_t loc)
{
    LLVMSetCurrentDebugLocation2(
        g->b, LLVMDIBuilderCreateDebugLocation(g->cx, loc, 0, g->di_scope, NULL));
}

/* Only what touches memory can fault, and only calls must say where they are: the rest costs
 * compile time for nothing. */
void hwg_debug_at(hw_gen *g, const hw_wir_insn *in)
{
    if (hw_wir_ops[in->op].flags & (HW_WF_M | HW_WF_E))
        at(g, in->loc);
    else
        LLVMSetCurrentDebugLocation2(g->b, NULL);
}

void hwg_debug_end(hw_gen *g)
{
    LLVMDIBuilderFinalize(g->di);
    LLVMDisposeDIBuilder(g->di);
    g->di = NULL;
}
