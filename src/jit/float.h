/* SPDX-License-Identifier: Apache-2.0
 *
 * Floats inside the code generator: registers hold their bits, halves are computed in f32.
 */
#ifndef HW_JIT_FLOAT_H
#define HW_JIT_FLOAT_H

#include "gen.h"

/* The bits of a value of WIR type t as floats to compute with: F64 as double, all others as float.
 * Two-part types give twice as many elements. With FTZ, denormals become zeros. */
hw_lv hwg_to_float(hw_gen *g, const hw_wir_insn *in, unsigned type, hw_lv bits);
/* The reverse: rounds to nearest even; SAT, RELU and FTZ are applied. `like`: the register type. */
hw_lv hwg_from_float(hw_gen *g, const hw_wir_insn *in, unsigned type, hw_lv x);
hw_lv hwg_bits(hw_gen *g, hw_lv x);              /* a float's bits as integers */
hw_lv hwg_as(hw_gen *g, hw_lv bits, hw_lt elem); /* integers as floats */
/* double to float, rounded to odd: a second rounding to a narrower type is then exact. */
hw_lv hwg_odd(hw_gen *g, hw_lv x);
hw_lv hwg_fma(hw_gen *g, hw_lv a, hw_lv b, hw_lv c);
hw_lv hwg_polynomial(hw_gen *g, hw_lv x, const double *c, unsigned n); /* c[0] x^(n-1) + ... */
/* x rounded to type (F16, BF16, F32) in mode: the type's bits */
hw_lv hwg_narrow(hw_gen *g, hw_lv x, unsigned type, unsigned mode);
/* A nearest value's bits corrected, given how it compares with the exact value. */
hw_lv hwg_directed(hw_gen *g, hw_lv bits, hw_lv above, hw_lv below, hw_lv negative, unsigned mode);

#endif
