/* SPDX-License-Identifier: Apache-2.0
 *
 * The driver as the runtime sees it: libcuda.so.1's public functions in one table, filled at the
 * first CUDA call so that a program that makes none pays nothing. Private to runtime.
 */
#ifndef HW_RUNTIME_DRIVER_API_H
#define HW_RUNTIME_DRIVER_API_H

#include "cudart_abi.h"

enum { HW_MEMORY_HOST = 1, HW_MEMORY_DEVICE = 2, HW_MEMORY_ARRAY = 3, HW_MEMORY_UNIFIED = 4 };

/* CUDA_MEMCPY2D and CUDA_MEMCPY3D of the driver API. */
typedef struct hw_copy2d {
    size_t src_x, src_y;
    int src_type;
    const void *src_host;
    uint64_t src_device;
    void *src_array;
    size_t src_pitch;
    size_t dst_x, dst_y;
    int dst_type;
    void *dst_host;
    uint64_t dst_device;
    void *dst_array;
    size_t dst_pitch;
    size_t width, height;
} hw_copy2d;

typedef struct hw_copy3d {
    size_t src_x, src_y, src_z, src_lod;
    int src_type;
    const void *src_host;
    uint64_t src_device;
    void *src_array;
    void *src_reserved;
    size_t src_pitch, src_height;
    size_t dst_x, dst_y, dst_z, dst_lod;
    int dst_type;
    void *dst_host;
    uint64_t dst_device;
    void *dst_array;
    void *dst_reserved;
    size_t dst_pitch, dst_height;
    size_t width, height, depth;
} hw_copy3d;

/* CUlaunchConfig. */
typedef struct hw_launch_config {
    unsigned grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes;
    void *stream;
    void *attributes;
    unsigned n_attributes;
} hw_launch_config;

/* CUDA_ARRAY3D_DESCRIPTOR. */
typedef struct hw_array_desc {
    size_t width, height, depth;
    int format;
    unsigned channels, flags;
} hw_array_desc;

/* CUDA_RESOURCE_DESC. */
typedef struct hw_resource_desc {
    int type;
    union {
        void *array;
        struct {
            uint64_t address;
            int format;
            unsigned channels;
            size_t size_bytes; /* or width, height and pitch of a pitched one */
            size_t height, pitch_bytes;
        } memory;
        int reserved[32];
    };
    unsigned flags;
} hw_resource_desc;

/* CUDA_TEXTURE_DESC. */
typedef struct hw_texture_desc {
    int address_mode[3], filter_mode;
    unsigned flags, max_anisotropy;
    int mipmap_filter_mode;
    float mipmap_bias, min_mipmap_clamp, max_mipmap_clamp;
    float border[4];
    int reserved[12];
} hw_texture_desc;

enum {
    HW_TEXTURE_AS_INTEGER = 0x01,
    HW_TEXTURE_NORMALIZED = 0x02,
    HW_TEXTURE_SRGB = 0x10,
    HW_TEXTURE_NO_TRILINEAR = 0x20,
    HW_TEXTURE_SEAMLESS = 0x40
};

/* CUDA_KERNEL_NODE_PARAMS_v2. */
typedef struct hw_kernel_node {
    void *func;
    hw_dim3 grid, block;
    unsigned shared_bytes;
    void **args, **extra;
    void *kern, *ctx;
} hw_kernel_node;

typedef struct hw_driver_api {
#define DRIVER(field, symbol, params) int(*field) params;
#include "driver_api.def"
#undef DRIVER
} hw_driver_api;

/* Valid once hw_cudart_init has succeeded. */
extern hw_driver_api hw_cu;

/* Find the driver: 0, or cudaErrorInsufficientDriver. */
int hw_driver_api_load(void);

#endif
