/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies: cuMemcpy in all its forms. (CUDA Driver API, "Memory Management"; "API synchronization
 * behavior".)
 *
 * Every form becomes one hw_cu_copy: rows of slices between two sides. Device sides must lie in
 * memory that is allocated; host sides may be anything, and their first and last bytes are tried
 * before a copy, so that a wild host pointer is an error and no crash. An asynchronous copy whose
 * host side is pageable returns when that side is done with, as CUDA does: small sources are
 * staged, everything else is waited for.
 */
#include "copy.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <unistd.h>

#define STAGED_BYTES 65536

/* ---- carrying out ---- */

void hw_cu_copy_now(const hw_cu_copy *c)
{
    for (size_t z = 0; z < c->depth; z++) {
        uint8_t *d = (uint8_t *)(uintptr_t)c->dst.address + z * c->dst.slice;
        const uint8_t *s = (const uint8_t *)(uintptr_t)c->src.address + z * c->src.slice;
        for (size_t y = 0; y < c->height; y++) {
            memmove(d + y * c->dst.pitch, s + y * c->src.pitch, c->width);
        }
    }
}

typedef struct copy_task {
    hw_cu_copy copy;
    uint8_t staged[];
} copy_task;

static hw_status copy_run(void *p, hw_fault *fault)
{
    (void)fault;
    hw_cu_copy_now(&((copy_task *)p)->copy);
    return HW_OK;
}

/* ---- checking ---- */

/* The first and last byte of a host range can be read (or written: then nothing changes but for
 * what the copy will overwrite). */
static bool host_bytes_exist(uint64_t address, size_t size, bool write)
{
    uint8_t sink[2];
    struct iovec remote[2] = { { (void *)(uintptr_t)address, 1 },
                               { (void *)(uintptr_t)(address + size - 1), 1 } };
    struct iovec local[2] = { { write ? remote[0].iov_base : &sink[0], 1 },
                              { write ? remote[1].iov_base : &sink[1], 1 } };
    ssize_t n = process_vm_readv(getpid(), local, 2, remote, 2, 0);
    return n == 2 || (n < 0 && errno != EFAULT); /* not permitted to look: trust the program */
}

typedef enum { SIDE_DEVICE, SIDE_HOST, SIDE_ANY } side_kind;

static CUresult check_side(hw_cu_side *s, side_kind kind, const hw_cu_copy *c, bool write)
{
    size_t span;
    CU_NEED(s->address, INVALID_VALUE);
    CU_NEED(!__builtin_mul_overflow(s->slice, c->depth - 1, &span), INVALID_VALUE);
    CU_NEED(!__builtin_add_overflow(span, s->pitch * (c->height - 1) + c->width, &span),
            INVALID_VALUE);
    CU_NEED(s->address + span >= s->address, INVALID_VALUE);
    hw_mem_info info;
    if (hw_cu_accessible(s->address, span))
        return CUDA_SUCCESS;
    CU_NEED(kind != SIDE_DEVICE, INVALID_VALUE);
    CU_NEED(!hw_mem_find(s->address, &info) || info.kind == HW_MEM_REGISTERED, INVALID_VALUE);
    CU_NEED(host_bytes_exist(s->address, span, write), INVALID_VALUE);
    s->pageable = true;
    return CUDA_SUCCESS;
}

static bool nothing(const hw_cu_copy *c)
{
    return !c->width || !c->height || !c->depth;
}

static CUresult check(hw_cu_copy *c, side_kind dst, side_kind src)
{
    if (nothing(c))
        return CUDA_SUCCESS;
    CU_TRY(check_side(&c->dst, dst, c, true));
    return check_side(&c->src, src, c, false);
}

/* ---- submitting ---- */

static CUresult copy_sync(const hw_cu_copy *c, hw_cu_stream *s)
{
    copy_task t = { .copy = *c };
    CU_NEED(!s->capture, STREAM_CAPTURE_UNSUPPORTED);
    if (nothing(c))
        return CUDA_SUCCESS;
    return hw_cu_run(s, copy_run, NULL, &t); /* waits, so the task may lie on this stack */
}

static CUresult copy_async(const hw_cu_copy *c, hw_cu_stream *s)
{
    bool captured;
    CU_TRY(hw_cu_capture_copy(s, c, &captured));
    if (captured || nothing(c))
        return CUDA_SUCCESS;
    bool flat = c->height == 1 && c->depth == 1;
    bool stage = c->src.pageable && !c->dst.pageable && flat && c->width <= STAGED_BYTES;
    if ((c->src.pageable && !stage) || c->dst.pageable)
        return copy_sync(c, s);
    copy_task *t = malloc(sizeof *t + (stage ? c->width : 0));
    CU_NEED(t, OUT_OF_MEMORY);
    t->copy = *c;
    if (stage) {
        memcpy(t->staged, (const void *)(uintptr_t)c->src.address, c->width);
        t->copy.src.address = (uintptr_t)t->staged;
    }
    return hw_cu_submit(s, copy_run, free, t);
}

static CUresult flat_copy(uint64_t dst, side_kind dk, uint64_t src, side_kind sk, size_t bytes,
                          CUstream handle, bool async)
{
    hw_cu_stream *s;
    hw_cu_copy c = { .dst = { .address = dst },
                     .src = { .address = src },
                     .width = bytes,
                     .height = 1,
                     .depth = 1 };
    CU_TRY(hw_cu_find_stream(handle, &s));
    CU_TRY(check(&c, dk, sk));
    return async ? copy_async(&c, s) : copy_sync(&c, s);
}

CUresult cuMemcpyHtoD_v2(CUdeviceptr dst, const void *src, size_t bytes)
{
    return flat_copy(dst, SIDE_DEVICE, (uintptr_t)src, SIDE_HOST, bytes, NULL, false);
}

CUresult cuMemcpyDtoH_v2(void *dst, CUdeviceptr src, size_t bytes)
{
    return flat_copy((uintptr_t)dst, SIDE_HOST, src, SIDE_DEVICE, bytes, NULL, false);
}

CUresult cuMemcpyDtoD_v2(CUdeviceptr dst, CUdeviceptr src, size_t bytes)
{
    return flat_copy(dst, SIDE_DEVICE, src, SIDE_DEVICE, bytes, NULL, false);
}

CUresult cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t bytes)
{
    return flat_copy(dst, SIDE_ANY, src, SIDE_ANY, bytes, NULL, false);
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr dst, const void *src, size_t bytes, CUstream stream)
{
    return flat_copy(dst, SIDE_DEVICE, (uintptr_t)src, SIDE_HOST, bytes, stream, true);
}

CUresult cuMemcpyDtoHAsync_v2(void *dst, CUdeviceptr src, size_t bytes, CUstream stream)
{
    return flat_copy((uintptr_t)dst, SIDE_HOST, src, SIDE_DEVICE, bytes, stream, true);
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream)
{
    return flat_copy(dst, SIDE_DEVICE, src, SIDE_DEVICE, bytes, stream, true);
}

CUresult cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream)
{
    return flat_copy(dst, SIDE_ANY, src, SIDE_ANY, bytes, stream, true);
}

static CUresult peers_exist(CUcontext a, CUcontext b)
{
    hw_cu_context *ctx;
    CU_TRY(hw_cu_find_context(a, &ctx));
    return hw_cu_find_context(b, &ctx);
}

CUresult cuMemcpyPeer(CUdeviceptr dst, CUcontext dst_ctx, CUdeviceptr src, CUcontext src_ctx,
                      size_t bytes)
{
    CU_TRY(peers_exist(dst_ctx, src_ctx));
    return cuMemcpyDtoD_v2(dst, src, bytes);
}

CUresult cuMemcpyPeerAsync(CUdeviceptr dst, CUcontext dst_ctx, CUdeviceptr src, CUcontext src_ctx,
                           size_t bytes, CUstream stream)
{
    CU_TRY(peers_exist(dst_ctx, src_ctx));
    return cuMemcpyDtoDAsync_v2(dst, src, bytes, stream);
}

/* ---- two and three dimensions ---- */

typedef struct half { /* one side of CUDA_MEMCPY3D */
    size_t x, y, z;
    CUmemorytype type;
    uint64_t host, device;
    CUarray array;
    size_t pitch, height;
} half;

static CUresult side_of(const half *h, const size_t extent[3], hw_cu_side *out, side_kind *kind)
{
    size_t row, offset;
    *kind = h->type == CU_MEMORYTYPE_HOST     ? SIDE_HOST
            : h->type == CU_MEMORYTYPE_DEVICE ? SIDE_DEVICE
                                              : SIDE_ANY;
    if (h->type == CU_MEMORYTYPE_ARRAY)
        return hw_cu_array_side(h->array, (const size_t[]){ h->x, h->y, h->z }, extent, out);
    CU_NEED(h->type >= CU_MEMORYTYPE_HOST && h->type <= CU_MEMORYTYPE_UNIFIED, INVALID_VALUE);
    bool one_row = extent[1] <= 1 && extent[2] <= 1;
    size_t pitch = h->pitch ? h->pitch : extent[0] + h->x;
    CU_NEED(one_row || pitch >= extent[0] + h->x, INVALID_VALUE);
    CU_NEED(extent[2] <= 1 || h->height >= extent[1], INVALID_VALUE);
    CU_NEED(!__builtin_mul_overflow(pitch, h->height ? h->height : extent[1], &out->slice),
            INVALID_VALUE);
    CU_NEED(!__builtin_mul_overflow(pitch, h->y, &row), INVALID_VALUE);
    CU_NEED(!__builtin_mul_overflow(out->slice, h->z, &offset), INVALID_VALUE);
    out->pitch = pitch;
    uint64_t base = h->type == CU_MEMORYTYPE_HOST ? h->host : h->device;
    CU_NEED(base, INVALID_VALUE);
    out->address = base + offset + row + h->x;
    return CUDA_SUCCESS;
}

CUresult hw_cu_copy_of_3d(const CUDA_MEMCPY3D *p, hw_cu_copy *out)
{
    CU_NEED(p, INVALID_VALUE);
    const half dst = { p->dstXInBytes,        p->dstY,      p->dstZ,     p->dstMemoryType,
                       (uintptr_t)p->dstHost, p->dstDevice, p->dstArray, p->dstPitch,
                       p->dstHeight };
    const half src = { p->srcXInBytes,        p->srcY,      p->srcZ,     p->srcMemoryType,
                       (uintptr_t)p->srcHost, p->srcDevice, p->srcArray, p->srcPitch,
                       p->srcHeight };
    const size_t extent[3] = { p->WidthInBytes, p->Height, p->Depth };
    side_kind dk = SIDE_ANY, sk = SIDE_ANY;
    *out = (hw_cu_copy){ .width = extent[0], .height = extent[1], .depth = extent[2] };
    CU_NEED(p->srcLOD == 0 && p->dstLOD == 0, INVALID_VALUE);
    if (nothing(out))
        return CUDA_SUCCESS;
    CU_TRY(side_of(&dst, extent, &out->dst, &dk));
    CU_TRY(side_of(&src, extent, &out->src, &sk));
    return check(out, dk, sk);
}

static CUresult copy_3d(const CUDA_MEMCPY3D *p, CUstream handle, bool async)
{
    hw_cu_stream *s;
    hw_cu_copy c;
    CU_TRY(hw_cu_find_stream(handle, &s));
    CU_TRY(hw_cu_copy_of_3d(p, &c));
    return async ? copy_async(&c, s) : copy_sync(&c, s);
}

static CUDA_MEMCPY3D from_2d(const CUDA_MEMCPY2D *p)
{
    return (CUDA_MEMCPY3D){
        .srcXInBytes = p->srcXInBytes,
        .srcY = p->srcY,
        .srcMemoryType = p->srcMemoryType,
        .srcHost = p->srcHost,
        .srcDevice = p->srcDevice,
        .srcArray = p->srcArray,
        .srcPitch = p->srcPitch,
        .dstXInBytes = p->dstXInBytes,
        .dstY = p->dstY,
        .dstMemoryType = p->dstMemoryType,
        .dstHost = p->dstHost,
        .dstDevice = p->dstDevice,
        .dstArray = p->dstArray,
        .dstPitch = p->dstPitch,
        .WidthInBytes = p->WidthInBytes,
        .Height = p->Height,
        .Depth = 1,
    };
}

static CUresult copy_2d(const CUDA_MEMCPY2D *p, CUstream handle, bool async)
{
    CU_NEED(p, INVALID_VALUE);
    CUDA_MEMCPY3D d = from_2d(p);
    return copy_3d(&d, handle, async);
}

CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D *p)
{
    return copy_2d(p, NULL, false);
}

CUresult cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D *p)
{
    return copy_2d(p, NULL, false);
}

CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *p, CUstream stream)
{
    return copy_2d(p, stream, true);
}

CUresult cuMemcpy3D_v2(const CUDA_MEMCPY3D *p)
{
    return copy_3d(p, NULL, false);
}

CUresult cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D *p, CUstream stream)
{
    return copy_3d(p, stream, true);
}

static CUresult copy_3d_peer(const CUDA_MEMCPY3D_PEER *p, CUstream stream, bool async)
{
    CUDA_MEMCPY3D d; /* the same but for the contexts, which stand in reserved places */
    _Static_assert(sizeof d == sizeof *p, "layouts of the two descriptions agree");
    CU_NEED(p, INVALID_VALUE);
    CU_TRY(peers_exist(p->dstContext, p->srcContext));
    memcpy(&d, p, sizeof d);
    return copy_3d(&d, stream, async);
}

CUresult cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER *p)
{
    return copy_3d_peer(p, NULL, false);
}

CUresult cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER *p, CUstream stream)
{
    return copy_3d_peer(p, stream, true);
}

/* ---- batches ---- */

CUresult cuMemcpyBatchAsync_v2(CUdeviceptr *dst, CUdeviceptr *src, size_t *sizes, size_t n,
                               CUmemcpyAttributes *attrs, size_t *attr_of, size_t nattrs,
                               CUstream stream)
{
    CU_NEED(dst && src && sizes && n && attrs && attr_of && nattrs && nattrs <= n, INVALID_VALUE);
    CU_NEED(stream && stream != CU_STREAM_LEGACY, INVALID_VALUE);
    for (size_t i = 0; i < n; i++) {
        CU_NEED(sizes[i], INVALID_VALUE);
        CU_TRY(cuMemcpyAsync(dst[i], src[i], sizes[i], stream));
    }
    return CUDA_SUCCESS;
}

CUresult cuMemcpyBatchAsync(CUdeviceptr *dst, CUdeviceptr *src, size_t *sizes, size_t n,
                            CUmemcpyAttributes *attrs, size_t *attr_of, size_t nattrs,
                            size_t *failed, CUstream stream)
{
    CUresult r = cuMemcpyBatchAsync_v2(dst, src, sizes, n, attrs, attr_of, nattrs, stream);
    if (r != CUDA_SUCCESS && failed)
        *failed = SIZE_MAX; /* no single copy is to blame for certain */
    return r;
}

static half half_of(const CUmemcpy3DOperand *o, size_t width, size_t height)
{
    if (o->type == 2)
        return (half){ .x = o->op.array.offset.x,
                       .y = o->op.array.offset.y,
                       .z = o->op.array.offset.z,
                       .type = CU_MEMORYTYPE_ARRAY,
                       .array = o->op.array.array };
    return (half){ .type = CU_MEMORYTYPE_UNIFIED,
                   .device = o->op.ptr.ptr,
                   .pitch = o->op.ptr.rowLength ? o->op.ptr.rowLength : width,
                   .height = o->op.ptr.layerHeight ? o->op.ptr.layerHeight : height };
}

static CUresult batch_op(const CUDA_MEMCPY3D_BATCH_OP *op, hw_cu_stream *s)
{
    const size_t extent[3] = { op->extent.width, op->extent.height, op->extent.depth };
    hw_cu_copy c = { .width = extent[0], .height = extent[1], .depth = extent[2] };
    const half dst = half_of(&op->dst, extent[0], extent[1]),
               src = half_of(&op->src, extent[0], extent[1]);
    side_kind dk, sk;
    CU_NEED(!nothing(&c), INVALID_VALUE);
    CU_TRY(side_of(&dst, extent, &c.dst, &dk));
    CU_TRY(side_of(&src, extent, &c.src, &sk));
    CU_TRY(check(&c, dk, sk));
    return copy_async(&c, s);
}

CUresult cuMemcpy3DBatchAsync_v2(size_t n, CUDA_MEMCPY3D_BATCH_OP *ops, unsigned long long flags,
                                 CUstream stream)
{
    hw_cu_stream *s;
    CU_NEED(n && ops && flags == 0, INVALID_VALUE);
    CU_TRY(hw_cu_find_stream(stream, &s));
    for (size_t i = 0; i < n; i++) {
        CU_TRY(batch_op(&ops[i], s));
    }
    return CUDA_SUCCESS;
}

CUresult cuMemcpy3DBatchAsync(size_t n, CUDA_MEMCPY3D_BATCH_OP *ops, size_t *failed,
                              unsigned long long flags, CUstream stream)
{
    CUresult r = cuMemcpy3DBatchAsync_v2(n, ops, flags, stream);
    if (r != CUDA_SUCCESS && failed)
        *failed = SIZE_MAX;
    return r;
}
