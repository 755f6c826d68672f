/* SPDX-License-Identifier: Apache-2.0
 * Parts of hw_wir_prepare (private to room wir). */
#ifndef HW_WIR_PREPARE_H
#define HW_WIR_PREPARE_H

#include "inside.h"

/* Could a warp have to be suspended in f itself: a barrier, a yield, or (spins_suspend) a loop that
 * may wait for somebody? (analysis.c) */
bool hw_wir_may_suspend(const hw_wir_function *f, bool spins_suspend);

/* Has f loops, and instructions by which they may wait for somebody? (analysis.c) */
bool hw_wir_may_spin(const hw_wir_function *f);

/* meet.c: waits put before lane operations that have them. */
void hw_wir_let_meet(hw_wir_module *m, hw_wir_function *f);

/* graph.c */
void hw_wir_remove_unreachable(hw_wir_function *f);
void hw_wir_tidy_graph(hw_wir_module *m, hw_wir_function *f);

/* flatten.c: calls that inlining leaves, made jumps where they cannot stay calls. */
void hw_wir_flatten_calls(hw_wir_module *m);

#endif
