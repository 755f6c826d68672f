/* SPDX-License-Identifier: Apache-2.0
 *
 * The emitters of ops.def, declared for the table (ops.c) and their own files.
 */
#ifndef HW_JIT_OPS_H
#define HW_JIT_OPS_H

#include "gen.h"

#define LANE(name)  hw_lv hwg_lane_##name(hw_gen *g, const hw_wir_insn *in, const hw_lv *a)
#define WHOLE(name) void hwg_whole_##name(hw_gen *g, const hw_wir_insn *in)

#define HW_LANE(op, fn)  LANE(fn);
#define HW_WHOLE(op, fn) WHOLE(fn);
#include "ops.def"
#undef HW_LANE
#undef HW_WHOLE

#endif
