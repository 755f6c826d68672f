/* SPDX-License-Identifier: Apache-2.0
 *
 * The types of the CUDA runtime's binary interface, declared from its documentation.
 * Private to runtime. A test compares sizes, offsets and values with the toolkit's headers where
 * they are installed. Names are CUDA's with the prefix hw_, so that both can be included at once.
 */
#ifndef HW_CUDART_ABI_H
#define HW_CUDART_ABI_H

#include <stddef.h>
#include <stdint.h>

typedef void *hw_cudaStream_t, *hw_cudaEvent_t, *hw_cudaArray_t, *hw_cudaKernel_t, *hw_cudaGraph_t;
typedef void *hw_cudaLibrary_t, *hw_cudaMemPool_t, *hw_cudaGraphNode_t, *hw_cudaGraphExec_t;

/* cudaIpcMemHandle_t and cudaIpcEventHandle_t. */
typedef struct hw_cudaIpcHandle {
    char reserved[64];
} hw_cudaIpcHandle;

/* Streams that are not objects. */
#define HW_STREAM_PER_THREAD ((hw_cudaStream_t)2)

enum {
    hw_cudaSuccess = 0,
    hw_cudaErrorInvalidValue = 1,
    hw_cudaErrorMemoryAllocation = 2,
    hw_cudaErrorInitializationError = 3,
    hw_cudaErrorInvalidConfiguration = 9,
    hw_cudaErrorInvalidPitchValue = 12,
    hw_cudaErrorInvalidSymbol = 13,
    hw_cudaErrorInvalidMemcpyDirection = 21,
    hw_cudaErrorInsufficientDriver = 35,
    hw_cudaErrorCallRequiresNewerDriver = 36,
    hw_cudaErrorDevicesUnavailable = 46,
    hw_cudaErrorMissingConfiguration = 52,
    hw_cudaErrorInvalidDeviceFunction = 98,
    hw_cudaErrorNoDevice = 100,
    hw_cudaErrorInvalidDevice = 101,
    hw_cudaErrorInvalidResourceHandle = 400,
    hw_cudaErrorSymbolNotFound = 500,
    hw_cudaErrorNotSupported = 801
};

typedef enum hw_cudaMemcpyKind {
    hw_cudaMemcpyHostToHost = 0,
    hw_cudaMemcpyHostToDevice = 1,
    hw_cudaMemcpyDeviceToHost = 2,
    hw_cudaMemcpyDeviceToDevice = 3,
    hw_cudaMemcpyDefault = 4
} hw_cudaMemcpyKind;

enum { hw_cudaMemAttachGlobal = 1, hw_cudaMemAttachHost = 2 };
enum { hw_cudaDeviceMask = 0xff, hw_cudaInitDeviceFlagsAreValid = 1 };
enum { hw_cudaCpuDeviceId = -1 };
enum { hw_cudaMemLocationTypeDevice = 1, hw_cudaMemLocationTypeHost = 2 };

typedef struct hw_dim3 {
    unsigned x, y, z;
} hw_dim3;

typedef struct hw_cudaPitchedPtr {
    void *ptr;
    size_t pitch, xsize, ysize;
} hw_cudaPitchedPtr;

typedef struct hw_cudaExtent {
    size_t width, height, depth;
} hw_cudaExtent;

typedef struct hw_cudaPos {
    size_t x, y, z;
} hw_cudaPos;

typedef struct hw_cudaMemcpy3DParms {
    hw_cudaArray_t srcArray;
    hw_cudaPos srcPos;
    hw_cudaPitchedPtr srcPtr;
    hw_cudaArray_t dstArray;
    hw_cudaPos dstPos;
    hw_cudaPitchedPtr dstPtr;
    hw_cudaExtent extent;
    int kind;
} hw_cudaMemcpy3DParms;

typedef struct hw_cudaMemcpy3DPeerParms {
    hw_cudaArray_t srcArray;
    hw_cudaPos srcPos;
    hw_cudaPitchedPtr srcPtr;
    int srcDevice;
    hw_cudaArray_t dstArray;
    hw_cudaPos dstPos;
    hw_cudaPitchedPtr dstPtr;
    int dstDevice;
    hw_cudaExtent extent;
} hw_cudaMemcpy3DPeerParms;

typedef struct hw_cudaPointerAttributes {
    int type;
    int device;
    void *devicePointer;
    void *hostPointer;
    long reserved[8]; /* absent before 13 */
} hw_cudaPointerAttributes;

typedef struct hw_cudaFuncAttributes {
    size_t sharedSizeBytes, constSizeBytes, localSizeBytes;
    int maxThreadsPerBlock, numRegs, ptxVersion, binaryVersion, cacheModeCA;
    int maxDynamicSharedSizeBytes, preferredShmemCarveout, clusterDimMustBeSet;
    int requiredClusterWidth, requiredClusterHeight, requiredClusterDepth;
    int clusterSchedulingPolicyPreference, nonPortableClusterSizeAllowed;
    int reserved[16];
} hw_cudaFuncAttributes;

typedef struct hw_cudaMemLocation {
    int type;
    int id;
} hw_cudaMemLocation;

typedef struct hw_cudaLaunchAttribute {
    int id;
    char pad[4];
    uint64_t val[8];
} hw_cudaLaunchAttribute;

typedef struct hw_cudaLaunchConfig_t {
    hw_dim3 gridDim, blockDim;
    size_t dynamicSmemBytes;
    hw_cudaStream_t stream;
    hw_cudaLaunchAttribute *attrs;
    unsigned numAttrs;
} hw_cudaLaunchConfig_t;

typedef struct hw_cudaChannelFormatDesc {
    int x, y, z, w; /* bits */
    int f;
} hw_cudaChannelFormatDesc;

typedef struct hw_cudaResourceDesc {
    int resType;
    union {
        struct {
            hw_cudaArray_t array; /* or mipmapped array */
        } array;
        struct {
            void *devPtr;
            hw_cudaChannelFormatDesc desc;
            size_t sizeInBytes;
        } linear;
        struct {
            void *devPtr;
            hw_cudaChannelFormatDesc desc;
            size_t width, height, pitchInBytes;
        } pitch2D;
        struct {
            int reserved[32];
        } reserved;
    } res;
    unsigned flags; /* absent before 13 */
} hw_cudaResourceDesc;

enum {
    hw_cudaResourceTypeArray = 0,
    hw_cudaResourceTypeMipmappedArray = 1,
    hw_cudaResourceTypeLinear = 2,
    hw_cudaResourceTypePitch2D = 3
};

typedef struct hw_cudaTextureDesc {
    int addressMode[3];
    int filterMode, readMode, sRGB;
    float borderColor[4];
    int normalizedCoords;
    unsigned maxAnisotropy;
    int mipmapFilterMode;
    float mipmapLevelBias, minMipmapLevelClamp, maxMipmapLevelClamp;
    int disableTrilinearOptimization, seamlessCubemap;
} hw_cudaTextureDesc;

enum { hw_cudaReadModeElementType = 0, hw_cudaReadModeNormalizedFloat = 1 };

typedef struct hw_cudaKernelNodeParams {
    void *func;
    hw_dim3 gridDim, blockDim;
    unsigned sharedMemBytes;
    void **kernelParams, **extra;
} hw_cudaKernelNodeParams;

typedef struct hw_cudaMemsetParams {
    void *dst;
    size_t pitch;
    unsigned value, elementSize;
    size_t width, height;
} hw_cudaMemsetParams;

enum {
    hw_cudaGraphNodeTypeKernel = 0,
    hw_cudaGraphNodeTypeMemcpy = 1,
    hw_cudaGraphNodeTypeMemset = 2
};

/* One for all types of node; the union is read as the type says. */
typedef struct hw_cudaGraphNodeParams {
    int type;
    int reserved0[3];
    union {
        long long reserved1[29];
        hw_cudaKernelNodeParams kernel;
        struct {
            int flags, reserved[3];
            hw_cudaMemcpy3DParms copyParams;
        } memcpy;
        hw_cudaMemsetParams memset;
    };
    long long reserved2;
} hw_cudaGraphNodeParams;

/* cudaDeviceProp of the runtimes up to 12 (hw_cudaDeviceProp12) and from 13 on. */
typedef struct hw_cudaDeviceProp12 {
#define BOTH(type, name, attribute) type name;
#define BOTH_N(type, name, n, ...)  type name[n];
#define OLD(type, name, attribute)  type name;
#define OLD_N(type, name, n, ...)   type name[n];
#define NEW(type, name, attribute)
#define NEW_N(type, name, n, ...)
#include "device_prop.def"
#undef OLD
#undef OLD_N
#undef NEW
#undef NEW_N
} hw_cudaDeviceProp12;

typedef struct hw_cudaDeviceProp {
#define OLD(type, name, attribute)
#define OLD_N(type, name, n, ...)
#define NEW(type, name, attribute) type name;
#define NEW_N(type, name, n, ...)  type name[n];
#include "device_prop.def"
#undef BOTH
#undef BOTH_N
#undef OLD
#undef OLD_N
#undef NEW
#undef NEW_N
} hw_cudaDeviceProp;

#endif
