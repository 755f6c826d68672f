/* SPDX-License-Identifier: Apache-2.0
 * Stream capture as other chapters see it (private): what a stream is asked to do becomes a node instead. */
#ifndef HW_DRIVER_CAPTURE_H
#define HW_DRIVER_CAPTURE_H

#include "graph.h"

/* s is capturing: a node after its tips. */
CUresult hw_cu_capture_add(hw_cu_stream *s, const CUgraphNodeParams *p, hw_cu_node **out);
CUresult hw_cu_capture_graph(hw_cu_stream *s, const hw_cu_graph *g);
/* *done: it was the capture's business. */
CUresult hw_cu_capture_record(hw_cu_stream *s, hw_cu_event *e, bool external, bool *done);
CUresult hw_cu_capture_wait(hw_cu_stream *s, hw_cu_event *e, bool external, bool *done);
/* Was the event last recorded in a capture that goes on? */
bool hw_cu_captured(const hw_cu_event *e);
void hw_cu_capture_invalidate(hw_cu_stream *s);
/* The context's lock is held. */
void hw_cu_capture_forget(hw_cu_stream *s);
void hw_cu_tips_drop(hw_cu_tips *t);

#endif
