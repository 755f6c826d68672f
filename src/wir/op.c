/* SPDX-License-Identifier: Apache-2.0
 * The tables of the warp IR: operations, types, operand types, and the words of the text form. */
#include "inside.h"

const hw_wir_op_info hw_wir_ops[HW_W_COUNT] = {
#define HW_WIR(name, nd, ns, flags, text) [HW_W_##name] = { #name, text, nd, ns, HW_WF_##flags },
#include "wir.def"
#undef HW_WIR
};

typedef struct type_info {
    const char *name;
    uint8_t bits, reg_type;
} type_info;

/* clang-format off */
static const type_info types[HW_T_COUNT] = {
    [HW_T_NONE]   = { "none",   0,   HW_T_NONE },
    [HW_T_I1]     = { "i1",     1,   HW_T_I1 },
    [HW_T_I8]     = { "i8",     8,   HW_T_I8 },
    [HW_T_I16]    = { "i16",    16,  HW_T_I16 },
    [HW_T_I32]    = { "i32",    32,  HW_T_I32 },
    [HW_T_I64]    = { "i64",    64,  HW_T_I64 },
    [HW_T_I128]   = { "i128",   128, HW_T_I128 },
    [HW_T_F16]    = { "f16",    16,  HW_T_I16 },
    [HW_T_BF16]   = { "bf16",   16,  HW_T_I16 },
    [HW_T_F32]    = { "f32",    32,  HW_T_I32 },
    [HW_T_F64]    = { "f64",    64,  HW_T_I64 },
    [HW_T_V2F16]  = { "v2f16",  32,  HW_T_I32 },
    [HW_T_V2BF16] = { "v2bf16", 32,  HW_T_I32 },
    [HW_T_V2I16]  = { "v2i16",  32,  HW_T_I32 },
    [HW_T_V4I8]   = { "v4i8",   32,  HW_T_I32 },
};

const char *const hw_wir_signature[HW_W_COUNT] = {
    [HW_W_MOV] = "t=t",        [HW_W_SELECT] = "t=1tt",
    [HW_W_ADD] = "t=tt",       [HW_W_SUB] = "t=tt",       [HW_W_MUL] = "t=tt",
    [HW_W_MULHI_U] = "t=tt",   [HW_W_MULHI_S] = "t=tt",
    [HW_W_DIV_U] = "t=tt",     [HW_W_DIV_S] = "t=tt",     [HW_W_REM_U] = "t=tt", [HW_W_REM_S] = "t=tt",
    [HW_W_MIN_U] = "t=tt",     [HW_W_MIN_S] = "t=tt",     [HW_W_MAX_U] = "t=tt", [HW_W_MAX_S] = "t=tt",
    [HW_W_ADD_SAT_S] = "t=tt", [HW_W_SUB_SAT_S] = "t=tt", [HW_W_ABS] = "t=t",
    [HW_W_AND] = "t=tt",       [HW_W_OR] = "t=tt",        [HW_W_XOR] = "t=tt",   [HW_W_NOT] = "t=t",
    [HW_W_SHL] = "t=t3",       [HW_W_SHR_U] = "t=t3",     [HW_W_SHR_S] = "t=t3",
    [HW_W_FSHL] = "t=tt3",     [HW_W_FSHR] = "t=tt3",
    [HW_W_POPC] = "3=t",       [HW_W_CLZ] = "3=t",        [HW_W_BREV] = "t=t",
    [HW_W_PRMT] = "t=ttt",     [HW_W_LOP3] = "t=ttt", [HW_W_DOT4] = "t=ttt",
    [HW_W_BFE_U] = "t=t33",    [HW_W_BFE_S] = "t=t33",    [HW_W_BFI] = "t=tt33",
    [HW_W_ICMP] = "1=tt",
    [HW_W_ZEXT] = "u=t",       [HW_W_SEXT] = "u=t",       [HW_W_TRUNC] = "u=t",  [HW_W_BITCAST] = "u=t",
    [HW_W_FCVT] = "u=t",       [HW_W_F2I_S] = "u=t",      [HW_W_F2I_U] = "u=t",
    [HW_W_I2F_S] = "u=t",      [HW_W_I2F_U] = "u=t",
    [HW_W_FADD] = "t=tt",      [HW_W_FSUB] = "t=tt",      [HW_W_FMUL] = "t=tt",  [HW_W_FDIV] = "t=tt",
    [HW_W_FFMA] = "t=ttt",     [HW_W_FSQRT] = "t=t",      [HW_W_FMIN] = "t=tt",  [HW_W_FMAX] = "t=tt",
    [HW_W_FNEG] = "t=t",       [HW_W_FABS] = "t=t",       [HW_W_FRINT] = "t=t",  [HW_W_FCOPYSIGN] = "t=tt",
    [HW_W_FCMP] = "1=tt",      [HW_W_FCLASS] = "1=t",
    [HW_W_RCP_APPROX] = "t=t", [HW_W_RSQRT_APPROX] = "t=t", [HW_W_SQRT_APPROX] = "t=t",
    [HW_W_DIV_APPROX] = "t=tt", [HW_W_DIV_FULL] = "t=tt",
    [HW_W_SIN_APPROX] = "t=t", [HW_W_COS_APPROX] = "t=t", [HW_W_EX2_APPROX] = "t=t",
    [HW_W_LG2_APPROX] = "t=t", [HW_W_TANH_APPROX] = "t=t",
    [HW_W_SREG] = "t=",        [HW_W_CLOCK] = "t=",
    [HW_W_PARAM_ADDR] = "6=",  [HW_W_SYMBOL] = "6=",      [HW_W_FUNC_ADDR] = "6=",
    [HW_W_ALLOCA] = "6=6",     [HW_W_STACKSAVE] = "6=",   [HW_W_STACKRESTORE] = "=6",
    [HW_W_LOCAL_ADDR] = "6=",  [HW_W_SHARED_BASE] = "6=", [HW_W_ISSPACE] = "1=6",
    [HW_W_LOAD] = "t*=a",      [HW_W_STORE] = "=at*",     [HW_W_ATOM] = "t=at*", [HW_W_RED] = "=at*",
    [HW_W_FENCE] = "=",        [HW_W_PREFETCH] = "=a",    [HW_W_COPY] = "=aa3",
    [HW_W_BALLOT] = "3=13",    [HW_W_ACTIVEMASK] = "3=",
    [HW_W_VOTE_ALL] = "1=13",  [HW_W_VOTE_ANY] = "1=13",  [HW_W_VOTE_UNI] = "1=13",
    [HW_W_SHFL] = "t1=t333",   [HW_W_MATCH_ANY] = "3=t3", [HW_W_MATCH_ALL] = "31=t3",
    [HW_W_REDUX] = "t=t3",     [HW_W_ELECT] = "31=3",     [HW_W_WARPSYNC] = "=3",
    [HW_W_BARRIER] = "=33",    [HW_W_BARRIER_ARRIVE] = "=33", [HW_W_BARRIER_RED] = "r=331", [HW_W_NOP] = "=",
    [HW_W_YIELD] = "=",
    [HW_W_BR] = "=",           [HW_W_CBR] = "=1",         [HW_W_BRX] = "=3",
    [HW_W_RET] = "=",          [HW_W_EXIT] = "=",         [HW_W_TRAP] = "=",
    [HW_W_CALL] = "?",         [HW_W_CALLI] = "?",        [HW_W_HELPER] = "?",
};

const hw_wir_word hw_wir_words[] = {
    { "none", HW_FIELD_TYPE, HW_T_NONE },
    { "i1", HW_FIELD_TYPE, HW_T_I1 },         { "i8", HW_FIELD_TYPE, HW_T_I8 },
    { "i16", HW_FIELD_TYPE, HW_T_I16 },       { "i32", HW_FIELD_TYPE, HW_T_I32 },
    { "i64", HW_FIELD_TYPE, HW_T_I64 },       { "i128", HW_FIELD_TYPE, HW_T_I128 },
    { "f16", HW_FIELD_TYPE, HW_T_F16 },       { "bf16", HW_FIELD_TYPE, HW_T_BF16 },
    { "f32", HW_FIELD_TYPE, HW_T_F32 },       { "f64", HW_FIELD_TYPE, HW_T_F64 },
    { "v2f16", HW_FIELD_TYPE, HW_T_V2F16 },   { "v2bf16", HW_FIELD_TYPE, HW_T_V2BF16 },
    { "v2i16", HW_FIELD_TYPE, HW_T_V2I16 },   { "v4i8", HW_FIELD_TYPE, HW_T_V4I8 },
    { "eq", HW_FIELD_COND, HW_C_EQ },         { "ne", HW_FIELD_COND, HW_C_NE },
    { "lt_s", HW_FIELD_COND, HW_C_LT_S },     { "le_s", HW_FIELD_COND, HW_C_LE_S },
    { "gt_s", HW_FIELD_COND, HW_C_GT_S },     { "ge_s", HW_FIELD_COND, HW_C_GE_S },
    { "lt_u", HW_FIELD_COND, HW_C_LT_U },     { "le_u", HW_FIELD_COND, HW_C_LE_U },
    { "gt_u", HW_FIELD_COND, HW_C_GT_U },     { "ge_u", HW_FIELD_COND, HW_C_GE_U },
    { "feq", HW_FIELD_COND, HW_C_FEQ },       { "fne", HW_FIELD_COND, HW_C_FNE },
    { "flt", HW_FIELD_COND, HW_C_FLT },       { "fle", HW_FIELD_COND, HW_C_FLE },
    { "fgt", HW_FIELD_COND, HW_C_FGT },       { "fge", HW_FIELD_COND, HW_C_FGE },
    { "fequ", HW_FIELD_COND, HW_C_FEQU },     { "fneu", HW_FIELD_COND, HW_C_FNEU },
    { "fltu", HW_FIELD_COND, HW_C_FLTU },     { "fleu", HW_FIELD_COND, HW_C_FLEU },
    { "fgtu", HW_FIELD_COND, HW_C_FGTU },     { "fgeu", HW_FIELD_COND, HW_C_FGEU },
    { "fnum", HW_FIELD_COND, HW_C_FNUM },     { "fnan", HW_FIELD_COND, HW_C_FNAN },
    { "rn", HW_FIELD_ROUND, HW_ROUND_N },     { "rz", HW_FIELD_ROUND, HW_ROUND_Z },
    { "rm", HW_FIELD_ROUND, HW_ROUND_M },     { "rp", HW_FIELD_ROUND, HW_ROUND_P },
    { "rna", HW_FIELD_ROUND, HW_ROUND_NA },
    { "generic", HW_FIELD_SPACE, HW_SPACE_GENERIC }, { "global", HW_FIELD_SPACE, HW_SPACE_GLOBAL },
    { "shared", HW_FIELD_SPACE, HW_SPACE_SHARED },   { "local", HW_FIELD_SPACE, HW_SPACE_LOCAL },
    { "const", HW_FIELD_SPACE, HW_SPACE_CONST },     { "param", HW_FIELD_SPACE, HW_SPACE_PARAM },
    { "lane", HW_FIELD_SCOPE, HW_SCOPE_LANE },       { "block", HW_FIELD_SCOPE, HW_SCOPE_BLOCK },
    { "cluster", HW_FIELD_SCOPE, HW_SCOPE_CLUSTER }, { "device", HW_FIELD_SCOPE, HW_SCOPE_DEVICE },
    { "system", HW_FIELD_SCOPE, HW_SCOPE_SYSTEM },
    { "add", HW_FIELD_ATOM, HW_ATOM_ADD },
    { "min_s", HW_FIELD_ATOM, HW_ATOM_MIN_S }, { "min_u", HW_FIELD_ATOM, HW_ATOM_MIN_U },
    { "max_s", HW_FIELD_ATOM, HW_ATOM_MAX_S }, { "max_u", HW_FIELD_ATOM, HW_ATOM_MAX_U },
    { "and", HW_FIELD_ATOM, HW_ATOM_AND },     { "or", HW_FIELD_ATOM, HW_ATOM_OR },
    { "xor", HW_FIELD_ATOM, HW_ATOM_XOR },     { "exch", HW_FIELD_ATOM, HW_ATOM_EXCH },
    { "cas", HW_FIELD_ATOM, HW_ATOM_CAS },     { "inc", HW_FIELD_ATOM, HW_ATOM_INC },
    { "dec", HW_FIELD_ATOM, HW_ATOM_DEC },     { "fadd", HW_FIELD_ATOM, HW_ATOM_FADD },
    { "fmin", HW_FIELD_ATOM, HW_ATOM_FMIN },   { "fmax", HW_FIELD_ATOM, HW_ATOM_FMAX },
    { "x1", HW_FIELD_COUNT, 1 },               { "x2", HW_FIELD_COUNT, 2 },
    { "x4", HW_FIELD_COUNT, 4 },               { "x8", HW_FIELD_COUNT, 8 },
    { "ftz", HW_FIELD_FLAG, HW_I_FTZ },        { "sat", HW_FIELD_FLAG, HW_I_SAT },
    { "nan", HW_FIELD_FLAG, HW_I_NAN },        { "relu", HW_FIELD_FLAG, HW_I_RELU },
    { "volatile", HW_FIELD_FLAG, HW_I_VOLATILE }, { "acquire", HW_FIELD_FLAG, HW_I_ACQUIRE },
    { "release", HW_FIELD_FLAG, HW_I_RELEASE },   { "readonly", HW_FIELD_FLAG, HW_I_READONLY },
    { "xorsign", HW_FIELD_FLAG, HW_I_XORSIGN },   { "abs", HW_FIELD_FLAG, HW_I_MINMAX_ABS },
    { "nan_min", HW_FIELD_FLAG, HW_I_NAN_MIN },   { "spin", HW_FIELD_FLAG, HW_I_SPIN },
    { "noftz_mem", HW_FIELD_FLAG, HW_I_NOFTZ_MEM },
    { "l2", HW_FIELD_FLAG, HW_I_L2 },
    { "part", HW_FIELD_FLAG, HW_I_PART },
    { "meets", HW_FIELD_FLAG, HW_I_MEETS },
};
/* clang-format on */
const size_t hw_wir_nwords = HW_COUNTOF(hw_wir_words);

const char *const hw_wir_sreg_names[HW_SR_COUNT] = {
#define HW_SREG(name, type, shape) #name,
#include "sreg.def"
#undef HW_SREG
};

const char *const hw_wir_helper_names[HW_H_COUNT] = {
#define HW_HELPER(name, text) #name,
#include "helper.def"
#undef HW_HELPER
};

unsigned hw_wir_bits(hw_wir_type t)
{
    return t < HW_T_COUNT ? types[t].bits : 0;
}

hw_wir_type hw_wir_reg_type(hw_wir_type t)
{
    return t < HW_T_COUNT ? types[t].reg_type : HW_T_NONE;
}

const char *hw_wir_type_name(hw_wir_type t)
{
    return t < HW_T_COUNT ? types[t].name : "?";
}

static hw_wir_type letter_type(const hw_wir_insn *i, char letter)
{
    switch (letter) {
    case 't':
        return hw_wir_reg_type(i->type);
    case 'u':
        return hw_wir_reg_type(i->type2);
    case '1':
        return HW_T_I1;
    case '3':
        return HW_T_I32;
    case '6':
        return HW_T_I64;
    case 'r':
        return i->imm ? HW_T_I1 : HW_T_I32;
    default:
        return HW_T_NONE;
    }
}

static hw_wir_type operand_type(const hw_wir_insn *i, const char *letters, uint32_t k)
{
    for (; k && letters[0] && letters[1] != '*'; k--)
        letters++;
    return letter_type(i, letters[0]);
}

hw_wir_type hw_wir_dst_type(const hw_wir_insn *i, uint32_t k)
{
    return operand_type(i, hw_wir_signature[i->op], k);
}

hw_wir_type hw_wir_src_type(const hw_wir_insn *i, uint32_t k)
{
    const char *equals = strchr(hw_wir_signature[i->op], '=');
    return equals ? operand_type(i, equals + 1, k) : HW_T_NONE;
}
