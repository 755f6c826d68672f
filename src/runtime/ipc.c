/* SPDX-License-Identifier: Apache-2.0
 * Memory, events and pools of other processes: the driver's calls once there is a context.
 */
#include "state.h"

/* clang-format off */
HW_DRIVER_CALL(cudaIpcGetMemHandle, (void *handle, void *p), ipc_get_memory(handle, (uintptr_t)p))
HW_DRIVER_CALL(cudaIpcOpenMemHandle, (void **p, hw_cudaIpcHandle handle, unsigned flags), ipc_open_memory((uint64_t *)p, handle, flags))
HW_DRIVER_CALL(cudaIpcCloseMemHandle, (void *p), ipc_close_memory((uintptr_t)p))
HW_DRIVER_CALL(cudaIpcGetEventHandle, (void *handle, hw_cudaEvent_t event), ipc_get_event(handle, event))
HW_DRIVER_CALL(cudaIpcOpenEventHandle, (hw_cudaEvent_t *event, hw_cudaIpcHandle handle), ipc_open_event(event, handle))
HW_DRIVER_CALL(cudaMemPoolExportToShareableHandle, (void *handle, hw_cudaMemPool_t pool, int type, unsigned flags), pool_export(handle, pool, type, flags))
HW_DRIVER_CALL(cudaMemPoolImportFromShareableHandle, (hw_cudaMemPool_t *pool, void *handle, int type, unsigned flags), pool_import(pool, handle, type, flags))
HW_DRIVER_CALL(cudaMemPoolExportPointer, (void *data, void *p), pool_export_pointer(data, (uintptr_t)p))
HW_DRIVER_CALL(cudaMemPoolImportPointer, (void **p, hw_cudaMemPool_t pool, void *data), pool_import_pointer((uint64_t *)p, pool, data))
/* clang-format on */
