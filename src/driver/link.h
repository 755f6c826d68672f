/* SPDX-License-Identifier: Apache-2.0
 * What cuLinkComplete gives: PTX texts behind a small header, an image only this library reads
 * (private). */
#ifndef HW_DRIVER_LINK_H
#define HW_DRIVER_LINK_H

#include "driver.h"

/* The texts if the image is one of ours; borrowed from it. */
bool hw_cu_linked_texts(hw_arena *a, const void *image, size_t len, hw_str **texts, size_t *n);

#endif
