/* Checks at compile time that constants and layouts of structures are those of the 64-bit binary
 * interface: with the library's declarations, and in agreement.sh with those of cuda.h. */
#include "libcuda/api.h"

#define CONSTANT(name, value) _Static_assert(name == (value), #name);
#include "libcuda/constants.def"

/* Sizes of types and offsets of members, in bytes. */
#define LAYOUT(type, size)          _Static_assert(sizeof(type) == (size), #type);
#define FIELD(type, member, offset) _Static_assert(offsetof(type, member) == (offset), #type);
LAYOUT(CUresult, 4)
LAYOUT(CUdevice_attribute, 4)
LAYOUT(CUlaunchAttributeID, 4)
LAYOUT(CUdeviceptr, 8)
LAYOUT(CUuuid, 16)

LAYOUT(CUdevprop, 56)
FIELD(CUdevprop, maxGridSize, 16)
FIELD(CUdevprop, textureAlign, 52)
LAYOUT(CUmemLocation, 8)
LAYOUT(CUmemAllocationProp, 32)
FIELD(CUmemAllocationProp, location, 8)
FIELD(CUmemAllocationProp, allocFlags, 24)
LAYOUT(CUmemAccessDesc, 12)
LAYOUT(CUmemPoolProps, 88)
FIELD(CUmemPoolProps, location, 8)
FIELD(CUmemPoolProps, maxSize, 24)
LAYOUT(CUctxCreateParams, 24)

LAYOUT(CUlaunchAttribute, 72)
FIELD(CUlaunchAttribute, value, 8)
FIELD(CUlaunchAttributeValue, programmaticEvent.triggerAtBlockStart, 12)
LAYOUT(CUlaunchConfig, 56)
FIELD(CUlaunchConfig, sharedMemBytes, 24)
FIELD(CUlaunchConfig, hStream, 32)
FIELD(CUlaunchConfig, attrs, 40)
FIELD(CUlaunchConfig, numAttrs, 48)

LAYOUT(CUDA_MEMCPY2D, 128)
FIELD(CUDA_MEMCPY2D, srcHost, 24)
FIELD(CUDA_MEMCPY2D, srcPitch, 48)
FIELD(CUDA_MEMCPY2D, dstHost, 80)
FIELD(CUDA_MEMCPY2D, dstPitch, 104)
FIELD(CUDA_MEMCPY2D, Height, 120)

LAYOUT(CUDA_MEMCPY3D, 200)
FIELD(CUDA_MEMCPY3D, srcDevice, 48)
FIELD(CUDA_MEMCPY3D, srcPitch, 72)
FIELD(CUDA_MEMCPY3D, dstXInBytes, 88)
FIELD(CUDA_MEMCPY3D, dstDevice, 136)
FIELD(CUDA_MEMCPY3D, dstPitch, 160)
FIELD(CUDA_MEMCPY3D, WidthInBytes, 176)
FIELD(CUDA_MEMCPY3D, Depth, 192)

LAYOUT(CUDA_KERNEL_NODE_PARAMS_v1, 56)
FIELD(CUDA_KERNEL_NODE_PARAMS_v1, extra, 48)
LAYOUT(CUDA_KERNEL_NODE_PARAMS, 72)
FIELD(CUDA_KERNEL_NODE_PARAMS, extra, 48)
FIELD(CUDA_KERNEL_NODE_PARAMS, sharedMemBytes, 32)
FIELD(CUDA_KERNEL_NODE_PARAMS, kernelParams, 40)
FIELD(CUDA_KERNEL_NODE_PARAMS, kern, 56)

LAYOUT(CUDA_MEMSET_NODE_PARAMS, 40)
FIELD(CUDA_MEMSET_NODE_PARAMS, value, 16)
FIELD(CUDA_MEMSET_NODE_PARAMS, width, 24)

LAYOUT(CUDA_HOST_NODE_PARAMS, 16)
LAYOUT(CUDA_GRAPH_INSTANTIATE_PARAMS, 32)
FIELD(CUDA_GRAPH_INSTANTIATE_PARAMS, result_out, 24)
LAYOUT(CUstreamBatchMemOpParams, 48)
FIELD(CUstreamBatchMemOpParams, waitValue.value64, 16)
FIELD(CUstreamBatchMemOpParams, writeValue.flags, 24)
FIELD(CUstreamBatchMemOpParams, memoryBarrier.flags, 4)
LAYOUT(CUDA_BATCH_MEM_OP_NODE_PARAMS, 32)
FIELD(CUDA_BATCH_MEM_OP_NODE_PARAMS, paramArray, 16)
LAYOUT(CUgraphNodeParams, 256)
FIELD(CUgraphNodeParams, kernel, 16)
FIELD(CUgraphNodeParams, kernel.ctx, 80)
FIELD(CUgraphNodeParams, memcpy.copyParams, 32)
FIELD(CUgraphNodeParams, memset.height, 48)
FIELD(CUgraphNodeParams, graph.ownership, 24)
LAYOUT(CUgraphEdgeData, 8)
LAYOUT(CUgraphExecUpdateResultInfo, 24)
FIELD(CUgraphExecUpdateResultInfo, errorNode, 8)
