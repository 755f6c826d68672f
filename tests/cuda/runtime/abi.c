/* SPDX-License-Identifier: Apache-2.0
 * The runtime's binary interface as declared here against the toolkit's own headers, by the
 * compiler: sizes, offsets, values. Built only where the toolkit is installed.
 */
#include <cuda_runtime_api.h>
#include <cuda.h>

#include "driver_api.h"

#define SIZE(ours, theirs) _Static_assert(sizeof(ours) == sizeof(theirs), "size of " #ours)
#define FIELD(ours, theirs, name)                                          \
    _Static_assert(offsetof(ours, name) == offsetof(theirs, name), #name); \
    _Static_assert(sizeof(((ours *)0)->name) == sizeof(((theirs *)0)->name), #name)
#define VALUE(name) _Static_assert((int)hw_##name == (int)name, #name)
/* A driver structure whose fields are named otherwise here. */
#define PLACE(ours, name, theirs, their_name) \
    _Static_assert(offsetof(ours, name) == offsetof(theirs, their_name), #their_name)

SIZE(hw_dim3, dim3);
SIZE(hw_cudaIpcHandle, cudaIpcMemHandle_t);
SIZE(hw_cudaIpcHandle, cudaIpcEventHandle_t);
SIZE(hw_cudaPitchedPtr, struct cudaPitchedPtr);
SIZE(hw_cudaExtent, struct cudaExtent);
SIZE(hw_cudaPos, struct cudaPos);
SIZE(hw_cudaMemcpy3DParms, struct cudaMemcpy3DParms);
SIZE(hw_cudaMemcpy3DPeerParms, struct cudaMemcpy3DPeerParms);
SIZE(hw_cudaPointerAttributes, struct cudaPointerAttributes);
SIZE(hw_cudaFuncAttributes, struct cudaFuncAttributes);
SIZE(hw_cudaMemLocation, struct cudaMemLocation);
SIZE(hw_cudaLaunchAttribute, cudaLaunchAttribute);
SIZE(hw_cudaLaunchConfig_t, cudaLaunchConfig_t);
SIZE(hw_cudaDeviceProp, struct cudaDeviceProp);
SIZE(hw_copy2d, CUDA_MEMCPY2D);
SIZE(hw_copy3d, CUDA_MEMCPY3D);
SIZE(hw_launch_config, CUlaunchConfig);
_Static_assert(sizeof(hw_cudaDeviceProp12) == 1032, "as in runtime 12");

#define BOTH(type, name, attribute) FIELD(hw_cudaDeviceProp, struct cudaDeviceProp, name);
#define BOTH_N(type, name, n, ...)  FIELD(hw_cudaDeviceProp, struct cudaDeviceProp, name);
#define NEW(type, name, attribute)  FIELD(hw_cudaDeviceProp, struct cudaDeviceProp, name);
#define NEW_N(type, name, n, ...)   FIELD(hw_cudaDeviceProp, struct cudaDeviceProp, name);
#define OLD(type, name, attribute)
#define OLD_N(type, name, n, ...)
#include "device_prop.def"

#define COPY(name) FIELD(hw_cudaMemcpy3DParms, struct cudaMemcpy3DParms, name)
COPY(srcArray);
COPY(srcPos);
COPY(srcPtr);
COPY(dstArray);
COPY(dstPos);
COPY(dstPtr);
COPY(extent);
COPY(kind);
#define PEER(name) FIELD(hw_cudaMemcpy3DPeerParms, struct cudaMemcpy3DPeerParms, name)
PEER(srcDevice);
PEER(dstArray);
PEER(dstDevice);
PEER(extent);
FIELD(hw_cudaPitchedPtr, struct cudaPitchedPtr, pitch);
FIELD(hw_cudaPitchedPtr, struct cudaPitchedPtr, xsize);
FIELD(hw_cudaPitchedPtr, struct cudaPitchedPtr, ysize);
FIELD(hw_cudaPointerAttributes, struct cudaPointerAttributes, type);
FIELD(hw_cudaPointerAttributes, struct cudaPointerAttributes, device);
FIELD(hw_cudaPointerAttributes, struct cudaPointerAttributes, devicePointer);
FIELD(hw_cudaPointerAttributes, struct cudaPointerAttributes, hostPointer);
#define FUNC(name) FIELD(hw_cudaFuncAttributes, struct cudaFuncAttributes, name)
FUNC(sharedSizeBytes);
FUNC(constSizeBytes);
FUNC(localSizeBytes);
FUNC(maxThreadsPerBlock);
FUNC(numRegs);
FUNC(ptxVersion);
FUNC(binaryVersion);
FUNC(cacheModeCA);
FUNC(maxDynamicSharedSizeBytes);
FUNC(preferredShmemCarveout);
FUNC(clusterDimMustBeSet);
FUNC(requiredClusterWidth);
FUNC(requiredClusterHeight);
FUNC(requiredClusterDepth);
FUNC(clusterSchedulingPolicyPreference);
FUNC(nonPortableClusterSizeAllowed);
FIELD(hw_cudaLaunchAttribute, cudaLaunchAttribute, val);
FIELD(hw_cudaLaunchConfig_t, cudaLaunchConfig_t, dynamicSmemBytes);
FIELD(hw_cudaLaunchConfig_t, cudaLaunchConfig_t, stream);
FIELD(hw_cudaLaunchConfig_t, cudaLaunchConfig_t, attrs);
FIELD(hw_cudaLaunchConfig_t, cudaLaunchConfig_t, numAttrs);
PLACE(hw_copy2d, src_type, CUDA_MEMCPY2D, srcMemoryType);
PLACE(hw_copy2d, src_pitch, CUDA_MEMCPY2D, srcPitch);
PLACE(hw_copy2d, dst_type, CUDA_MEMCPY2D, dstMemoryType);
PLACE(hw_copy2d, dst_array, CUDA_MEMCPY2D, dstArray);
PLACE(hw_copy2d, width, CUDA_MEMCPY2D, WidthInBytes);
PLACE(hw_copy3d, src_array, CUDA_MEMCPY3D, srcArray);
PLACE(hw_copy3d, src_height, CUDA_MEMCPY3D, srcHeight);
PLACE(hw_copy3d, dst_type, CUDA_MEMCPY3D, dstMemoryType);
PLACE(hw_copy3d, dst_height, CUDA_MEMCPY3D, dstHeight);
PLACE(hw_copy3d, depth, CUDA_MEMCPY3D, Depth);
PLACE(hw_launch_config, stream, CUlaunchConfig, hStream);
PLACE(hw_launch_config, n_attributes, CUlaunchConfig, numAttrs);

SIZE(hw_cudaKernelNodeParams, struct cudaKernelNodeParams);
SIZE(hw_cudaMemsetParams, struct cudaMemsetParams);
SIZE(hw_cudaGraphNodeParams, struct cudaGraphNodeParams);
SIZE(hw_kernel_node, CUDA_KERNEL_NODE_PARAMS);
FIELD(hw_cudaKernelNodeParams, struct cudaKernelNodeParams, sharedMemBytes);
FIELD(hw_cudaKernelNodeParams, struct cudaKernelNodeParams, kernelParams);
FIELD(hw_cudaMemsetParams, struct cudaMemsetParams, elementSize);
FIELD(hw_cudaMemsetParams, struct cudaMemsetParams, height);
FIELD(hw_cudaGraphNodeParams, struct cudaGraphNodeParams, kernel.kernelParams);
FIELD(hw_cudaGraphNodeParams, struct cudaGraphNodeParams, memcpy.copyParams);
FIELD(hw_cudaGraphNodeParams, struct cudaGraphNodeParams, memset.width);
PLACE(hw_kernel_node, grid, CUDA_KERNEL_NODE_PARAMS, gridDimX);
PLACE(hw_kernel_node, args, CUDA_KERNEL_NODE_PARAMS, kernelParams);
PLACE(hw_kernel_node, kern, CUDA_KERNEL_NODE_PARAMS, kern);
_Static_assert(offsetof(CUgraphNodeParams, memcpy.copyParams) == 16 + 16, "in graph.c");
_Static_assert(offsetof(CUgraphNodeParams, memset.ctx) == 16 + 40, "in graph.c");
VALUE(cudaGraphNodeTypeKernel);
VALUE(cudaGraphNodeTypeMemcpy);
VALUE(cudaGraphNodeTypeMemset);

SIZE(hw_cudaChannelFormatDesc, struct cudaChannelFormatDesc);
SIZE(hw_cudaResourceDesc, struct cudaResourceDesc);
SIZE(hw_cudaTextureDesc, struct cudaTextureDesc);
SIZE(hw_array_desc, CUDA_ARRAY3D_DESCRIPTOR);
SIZE(hw_resource_desc, CUDA_RESOURCE_DESC);
SIZE(hw_texture_desc, CUDA_TEXTURE_DESC);
FIELD(hw_cudaResourceDesc, struct cudaResourceDesc, res.linear.sizeInBytes);
FIELD(hw_cudaResourceDesc, struct cudaResourceDesc, res.pitch2D.pitchInBytes);
FIELD(hw_cudaResourceDesc, struct cudaResourceDesc, flags);
FIELD(hw_cudaTextureDesc, struct cudaTextureDesc, borderColor);
FIELD(hw_cudaTextureDesc, struct cudaTextureDesc, readMode);
FIELD(hw_cudaTextureDesc, struct cudaTextureDesc, normalizedCoords);
FIELD(hw_cudaTextureDesc, struct cudaTextureDesc, mipmapFilterMode);
FIELD(hw_cudaTextureDesc, struct cudaTextureDesc, seamlessCubemap);
PLACE(hw_array_desc, format, CUDA_ARRAY3D_DESCRIPTOR, Format);
PLACE(hw_resource_desc, array, CUDA_RESOURCE_DESC, res.array.hArray);
PLACE(hw_resource_desc, memory.size_bytes, CUDA_RESOURCE_DESC, res.linear.sizeInBytes);
PLACE(hw_resource_desc, memory.channels, CUDA_RESOURCE_DESC, res.pitch2D.numChannels);
PLACE(hw_resource_desc, memory.pitch_bytes, CUDA_RESOURCE_DESC, res.pitch2D.pitchInBytes);
PLACE(hw_texture_desc, flags, CUDA_TEXTURE_DESC, flags);
PLACE(hw_texture_desc, max_mipmap_clamp, CUDA_TEXTURE_DESC, maxMipmapLevelClamp);
PLACE(hw_texture_desc, border, CUDA_TEXTURE_DESC, borderColor);
PLACE(hw_copy3d, src_reserved, CUDA_MEMCPY3D_PEER, srcContext);
PLACE(hw_copy3d, dst_reserved, CUDA_MEMCPY3D_PEER, dstContext);
SIZE(hw_copy3d, CUDA_MEMCPY3D_PEER);
SIZE(struct cudaMemcpyAttributes, CUmemcpyAttributes);
SIZE(struct cudaMemcpy3DBatchOp, CUDA_MEMCPY3D_BATCH_OP);
_Static_assert(HW_TEXTURE_AS_INTEGER == CU_TRSF_READ_AS_INTEGER, "");
_Static_assert(HW_TEXTURE_NORMALIZED == CU_TRSF_NORMALIZED_COORDINATES, "");
_Static_assert(HW_TEXTURE_SRGB == CU_TRSF_SRGB, "");
_Static_assert(HW_TEXTURE_NO_TRILINEAR == CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION, "");
_Static_assert(HW_TEXTURE_SEAMLESS == CU_TRSF_SEAMLESS_CUBEMAP, "");
VALUE(cudaResourceTypeArray);
VALUE(cudaResourceTypePitch2D);
VALUE(cudaReadModeNormalizedFloat);

VALUE(cudaErrorInvalidValue);
VALUE(cudaErrorMemoryAllocation);
VALUE(cudaErrorInitializationError);
VALUE(cudaErrorInvalidConfiguration);
VALUE(cudaErrorInvalidPitchValue);
VALUE(cudaErrorInvalidSymbol);
VALUE(cudaErrorInvalidMemcpyDirection);
VALUE(cudaErrorInsufficientDriver);
VALUE(cudaErrorCallRequiresNewerDriver);
VALUE(cudaErrorDevicesUnavailable);
VALUE(cudaErrorMissingConfiguration);
VALUE(cudaErrorInvalidDeviceFunction);
VALUE(cudaErrorNoDevice);
VALUE(cudaErrorInvalidDevice);
VALUE(cudaErrorInvalidResourceHandle);
VALUE(cudaErrorSymbolNotFound);
VALUE(cudaErrorNotSupported);
VALUE(cudaMemcpyHostToHost);
VALUE(cudaMemcpyHostToDevice);
VALUE(cudaMemcpyDeviceToHost);
VALUE(cudaMemcpyDeviceToDevice);
VALUE(cudaMemcpyDefault);
VALUE(cudaMemAttachGlobal);
VALUE(cudaMemAttachHost);
VALUE(cudaDeviceMask);
VALUE(cudaInitDeviceFlagsAreValid);
VALUE(cudaCpuDeviceId);
VALUE(cudaMemLocationTypeDevice);
VALUE(cudaMemLocationTypeHost);
_Static_assert((int)HW_MEMORY_HOST == (int)CU_MEMORYTYPE_HOST, "");
_Static_assert((int)HW_MEMORY_DEVICE == (int)CU_MEMORYTYPE_DEVICE, "");
_Static_assert((int)HW_MEMORY_ARRAY == (int)CU_MEMORYTYPE_ARRAY, "");
_Static_assert((int)HW_MEMORY_UNIFIED == (int)CU_MEMORYTYPE_UNIFIED, "");

/* The attributes that fill a property have the same numbers in both interfaces. */
_Static_assert((int)cudaDevAttrMaxThreadsPerBlock == (int)CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK,
               "");
_Static_assert((int)cudaDevAttrReservedSharedMemoryPerBlock ==
                   CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK,
               "");

int main(void)
{
    return 0;
}
