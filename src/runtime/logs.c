/* SPDX-License-Identifier: Apache-2.0
 * The log of what the libraries say on stderr: the driver's. (CUDA Runtime API, "Error Log Management Functions".)
 */
#include "state.h"

HW_CUDA(int, cudaLogsRegisterCallback, void *call, void *data, void **out)
{
    HW_CUDA_TRY(hw_cudart_init());
    return hw_note(hw_cu.logs_register(call, data, out));
}

HW_CUDA(int, cudaLogsUnregisterCallback, void *callback)
{
    HW_CUDA_TRY(hw_cudart_init());
    return hw_note(hw_cu.logs_unregister(callback));
}

HW_CUDA(int, cudaLogsCurrent, unsigned *out, unsigned flags)
{
    HW_CUDA_TRY(hw_cudart_init());
    return hw_note(hw_cu.logs_current(out, flags));
}

HW_CUDA(int, cudaLogsDumpToFile, unsigned *iterator, const char *path, unsigned flags)
{
    HW_CUDA_TRY(hw_cudart_init());
    return hw_note(hw_cu.logs_to_file(iterator, path, flags));
}

HW_CUDA(int, cudaLogsDumpToMemory, unsigned *iterator, char *buffer, size_t *size, unsigned flags)
{
    HW_CUDA_TRY(hw_cudart_init());
    return hw_note(hw_cu.logs_to_memory(iterator, buffer, size, flags));
}
