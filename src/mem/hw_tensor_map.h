/* SPDX-License-Identifier: Apache-2.0
 *
 * mem: tensor maps, the 128 opaque bytes that tell a bulk copy how a tensor lies in memory.
 *
 *   box      what one copy moves: so many elements in each dimension, dense in shared memory, the first dimension innermost.
 *   im2col   maps of images (channels, width, height, depth as far as there are, images): what one copy moves are `pixels` of box[0]
 *            channels, the filter's base taken along the image within corners, then on to the next image (PTX ISA 5.5.4).
 *   swizzle  16-byte pieces of shared memory exchanged within a line of 32, 64 or 128 bytes by the number of
 *            the line (CUDA Driver API, "Tensor Map Object Management"; PTX ISA 5.5).
 *   units    elements of 4 and 6 bits move in units of whole bytes: two of 4 bits a byte, or 16 packed in global memory, apart
 *            in 16 bytes of shared memory (PTX ISA 5.5.1.1).
 *   outside  elements beyond the tensor are read as zeros or NaNs and not written.
 *
 * The layout is ours alone: programs copy maps, and change single fields by tensormap.replace.
 */
#ifndef HW_TENSOR_MAP_H
#define HW_TENSOR_MAP_H

#include "hw_base.h"

/* Values of CUtensorMapDataType. */
typedef enum hw_tensor_type {
    HW_TENSOR_U8,
    HW_TENSOR_U16,
    HW_TENSOR_U32,
    HW_TENSOR_S32,
    HW_TENSOR_U64,
    HW_TENSOR_S64,
    HW_TENSOR_F16,
    HW_TENSOR_F32,
    HW_TENSOR_F64,
    HW_TENSOR_BF16,
    HW_TENSOR_F32_FTZ,
    HW_TENSOR_TF32,
    HW_TENSOR_TF32_FTZ,
    HW_TENSOR_U4,
    HW_TENSOR_U4_APART, /* read only; 8 bytes of values, then a gap of 8 */
    HW_TENSOR_U6_APART, /* read: 12 bytes of values, a gap of 4; written: 16 bytes, 6 bits of each */
    HW_TENSOR_TYPES
} hw_tensor_type;

/* Values of CUtensorMapSwizzle. */
typedef enum hw_tensor_swizzle {
    HW_SWIZZLE_NONE,
    HW_SWIZZLE_32,
    HW_SWIZZLE_64,
    HW_SWIZZLE_128,
    HW_SWIZZLE_128_ATOM_32,
    HW_SWIZZLE_128_ATOM_32_FLIP,
    HW_SWIZZLE_128_ATOM_64,
    HW_SWIZZLES
} hw_tensor_swizzle;

enum { HW_TENSOR_DIMS = 5 };

typedef struct hw_tensor_map {
    uint64_t address;
    uint64_t stride[HW_TENSOR_DIMS - 1]; /* bytes, of the second dimension and on */
    uint32_t last[HW_TENSOR_DIMS];       /* elements of each dimension, less 1 */
    uint16_t box[HW_TENSOR_DIMS];
    uint8_t step[HW_TENSOR_DIMS]; /* every so many elements are moved; the first dimension: 1 */
    uint8_t rank, type, swizzle;
    bool nan; /* outside */
    bool im2col;
    int16_t lower[HW_TENSOR_DIMS - 2],
        upper[HW_TENSOR_DIMS - 2]; /* corners, from the first element and from the last */
    uint16_t pixels;
    uint8_t spare[26];
    uint32_t magic;
} hw_tensor_map;
_Static_assert(sizeof(hw_tensor_map) == 128, "a tensor map has 128 bytes");

#define HW_TENSOR_MAGIC UINT32_C(0x68775446)

/* A unit: bytes in shared memory, bytes in global memory, elements. */
unsigned hw_tensor_element_bytes(unsigned type);
unsigned hw_tensor_packed_bytes(unsigned type);
unsigned hw_tensor_unit(unsigned type);
/* Does anything in it contradict the rules? All of a map that encodes passes; one changed field by field may not. */
bool hw_tensor_map_valid(const hw_tensor_map *m);
/* Says a valid map in units instead of elements. From here on elements are units. */
void hw_tensor_in_units(hw_tensor_map *m);
/* Elements that a copy moves in a dimension, and bytes in all. */
uint32_t hw_tensor_box(const hw_tensor_map *m, unsigned dimension);
uint64_t hw_tensor_box_bytes(const hw_tensor_map *m);
/* Where the byte at offset `at` of shared memory lies under the swizzle. */
uint64_t hw_tensor_swizzled(unsigned swizzle, uint64_t at);
/* Global address of an element; 0: outside. */
uint64_t hw_tensor_element(const hw_tensor_map *m, const int64_t *coordinates);
/* The value that elements outside have, one element's bytes. */
uint64_t hw_tensor_outside(const hw_tensor_map *m);

#endif
