/* SPDX-License-Identifier: Apache-2.0
 *
 * What the commonest rules need to know of an access, found with vector instructions where the
 * processor has them: how many distinct units, sectors and lines its lanes touch.
 */
#ifndef HW_MODEL_QUICK_H
#define HW_MODEL_QUICK_H

#include "hw_device.h"

typedef struct quick {
    uint32_t lanes;    /* that take part */
    uint32_t units;    /* distinct addresses */
    uint32_t sectors;  /* distinct 32-byte sectors */
    uint32_t lines;    /* distinct 128-byte lines */
    uint32_t alike;    /* lanes on the address that most lanes have */
    uint32_t first;    /* mask of the lanes that are the first on their address */
    uint32_t bank[32]; /* those in each of 32 banks of 4 bytes */
    uint32_t crowd;    /* the most of them */
} quick;

/* banks: they are found; else sectors and lines. False: not known this way (another processor, lanes far apart or not aligned to their width). */
bool hw_model_quick(const hw_access *a, bool banks, quick *out);

#endif
