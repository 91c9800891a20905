/* libcudart: memory, copies, pointers, sharing between processes. */
#include <string.h>

#include "internal.h"

NULLGPU_API int cudaMalloc(void **out, size_t bytes)
{
    return nullgpu_result(nullgpu_allocate(out, bytes, nullgpu_current_ordinal()));
}

NULLGPU_API int cudaFree(void *pointer)
{
    if (pointer && !nullgpu_is_device(pointer))
        return nullgpu_result(nullgpu_host_free(pointer, NULLGPU_MANAGED));
    nullgpu_used();
    return nullgpu_result(nullgpu_release(pointer));
}

NULLGPU_API int cudaMallocManaged(void **out, size_t bytes, unsigned flags)
{
    (void)flags;
    return nullgpu_result(nullgpu_host_allocate(out, bytes, NULLGPU_MANAGED));
}

NULLGPU_API int cudaMemGetInfo(size_t *free_bytes, size_t *total)
{
    struct nullgpu_memory_info info = nullgpu_memory_info(nullgpu_current_ordinal());
    NULLGPU_SET(free_bytes, info.free);
    NULLGPU_SET(total, info.total);
    return nullgpu_device_count() ? NULLGPU_SUCCESS : nullgpu_result(NULLGPU_NO_DEVICE);
}

/* ---- host memory ---- */

NULLGPU_API int cudaHostAlloc(void **out, size_t bytes, unsigned flags)
{
    (void)flags;
    return nullgpu_result(nullgpu_host_allocate(out, bytes, NULLGPU_PINNED));
}

NULLGPU_API int cudaMallocHost(void **out, size_t bytes) { return cudaHostAlloc(out, bytes, 0); }

NULLGPU_API int cudaFreeHost(void *pointer) { return nullgpu_result(nullgpu_host_free(pointer, NULLGPU_PINNED)); }

NULLGPU_API int cudaHostRegister(void *pointer, size_t bytes, unsigned flags)
{
    (void)flags;
    return nullgpu_result(nullgpu_host_register(pointer, bytes));
}

NULLGPU_API int cudaHostUnregister(void *pointer) { return nullgpu_result(nullgpu_host_unregister(pointer)); }

NULLGPU_API int cudaHostGetDevicePointer(void **out, void *pointer, unsigned flags)
{
    (void)flags;
    struct nullgpu_range found;
    bool known = nullgpu_host_range(pointer, &found);
    *out = known ? pointer : NULL;
    return nullgpu_result(known ? NULLGPU_SUCCESS : NULLGPU_INVALID_VALUE);
}

/* ---- copies ---- */

NULLGPU_API int cudaMemcpy(void *destination, const void *source, size_t bytes, int kind)
{
    (void)kind; /* addresses say it */
    nullgpu_carry(destination, source, bytes);
    return NULLGPU_SUCCESS;
}

NULLGPU_API int cudaMemcpyAsync(void *destination, const void *source, size_t bytes, int kind, void *stream)
{
    (void)stream;
    return cudaMemcpy(destination, source, bytes, kind);
}

NULLGPU_API int cudaMemcpy2D(void *destination, size_t destination_pitch, const void *source, size_t source_pitch,
                             size_t width, size_t height, int kind)
{
    (void)kind;
    for (size_t row = 0; row < height; row++)
        nullgpu_carry((char *)destination + row * destination_pitch, (const char *)source + row * source_pitch, width);
    return NULLGPU_SUCCESS;
}

NULLGPU_API int cudaMemcpy2DAsync(void *destination, size_t destination_pitch, const void *source,
                                  size_t source_pitch, size_t width, size_t height, int kind, void *stream)
{
    (void)stream;
    return cudaMemcpy2D(destination, destination_pitch, source, source_pitch, width, height, kind);
}

NULLGPU_API int cudaMemcpyPeerAsync(void *destination, int to, const void *source, int from, size_t bytes,
                                    void *stream)
{
    (void)to, (void)from, (void)stream;
    nullgpu_carry(destination, source, bytes);
    return NULLGPU_SUCCESS;
}

NULLGPU_API int cudaMemcpyPeer(void *destination, int to, const void *source, int from, size_t bytes)
{
    return cudaMemcpyPeerAsync(destination, to, source, from, bytes, NULL);
}

/* Device code's own variables: nobody reads them back. */
NULLGPU_API int cudaMemcpyToSymbol(const void *symbol, const void *source, size_t bytes, size_t offset, int kind)
{
    (void)symbol, (void)source, (void)bytes, (void)offset, (void)kind;
    return NULLGPU_SUCCESS;
}

NULLGPU_API int cudaMemcpyToSymbolAsync(const void *symbol, const void *source, size_t bytes, size_t offset, int kind,
                                        void *stream)
{
    (void)stream;
    return cudaMemcpyToSymbol(symbol, source, bytes, offset, kind);
}

NULLGPU_API int cudaGetSymbolAddress(void **out, const void *symbol)
{
    (void)symbol;
    *out = nullgpu_symbol_address();
    return NULLGPU_SUCCESS;
}

NULLGPU_API int cudaMemset(void *destination, int byte, size_t bytes)
{
    nullgpu_fill(destination, byte, bytes);
    return NULLGPU_SUCCESS;
}

NULLGPU_API int cudaMemsetAsync(void *destination, int byte, size_t bytes, void *stream)
{
    (void)stream;
    return cudaMemset(destination, byte, bytes);
}

/* ---- what a pointer is ---- */

struct attributes {
    int type, ordinal; /* type 0: unknown to CUDA, 1: host, 2: device, 3: managed */
    void *device_pointer, *host_pointer;
};

static void describe(struct attributes *out, const void *pointer)
{
    struct nullgpu_range range;
    *out = (struct attributes){0, -1, NULL, (void *)pointer};
    if (nullgpu_is_device(pointer)) {
        bool known = nullgpu_address_range(pointer, &range);
        *out = (struct attributes){2, known ? range.ordinal : nullgpu_current_ordinal(), (void *)pointer, NULL};
    } else if (nullgpu_host_range(pointer, &range)) {
        int type = range.kind == NULLGPU_MANAGED ? 3 : 1;
        *out = (struct attributes){type, nullgpu_current_ordinal(), (void *)pointer, (void *)pointer};
    }
}

NULLGPU_API int nullgpu_v12_cudaPointerGetAttributes(struct attributes *out, const void *pointer)
{
    describe(out, pointer);
    return NULLGPU_SUCCESS;
}
NULLGPU_CUDA12(cudaPointerGetAttributes);

/* CUDA 13 has reserved words behind. */
NULLGPU_API int nullgpu_v13_cudaPointerGetAttributes(struct attributes *out, const void *pointer)
{
    memset(out + 1, 0, 64);
    describe(out, pointer);
    return NULLGPU_SUCCESS;
}
NULLGPU_CUDA13(cudaPointerGetAttributes);

/* ---- sharing with another process: its null GPU gives the memory an address of its own, at no charge there ---- */

struct ipc_handle {
    void *pointer; /* the sharer's */
    size_t bytes;
    int ordinal;
    char unused[64 - sizeof(void *) - sizeof(size_t) - sizeof(int)];
} __attribute__((packed));

_Static_assert(sizeof(struct ipc_handle) == 64, "cudaIpcMemHandle_t has 64 bytes");

NULLGPU_API int cudaIpcGetMemHandle(struct ipc_handle *out, void *pointer)
{
    struct nullgpu_range range;
    memset(out, 0, sizeof *out);
    if (!nullgpu_address_range(pointer, &range))
        return nullgpu_result(NULLGPU_INVALID_VALUE);
    out->pointer = (void *)range.start;
    out->bytes = range.bytes;
    out->ordinal = range.ordinal;
    return NULLGPU_SUCCESS;
}

NULLGPU_API int cudaIpcOpenMemHandle(void **out, struct ipc_handle handle, unsigned flags)
{
    (void)flags;
    return nullgpu_result(nullgpu_import(out, handle.bytes, handle.ordinal));
}

NULLGPU_API int cudaIpcCloseMemHandle(void *pointer) { return nullgpu_result(nullgpu_release(pointer)); }
