/* libcuda: memory. The virtual memory calls give addresses and memory apart; an allocation of physical memory
 * counts from its creation until it has been released and is mapped nowhere. */
#include <stdlib.h>
#include <string.h>

#include "memory.h"

int cuDevicePrimaryCtxRetain(void **out, int ordinal);

/* ---- plain ---- */

NULLGPU_API int cuMemAlloc_v2(void **out, size_t bytes)
{
    return nullgpu_allocate(out, bytes, nullgpu_current_ordinal());
}

NULLGPU_API int cuMemFree_v2(void *pointer) { return nullgpu_release(pointer); }
NULLGPU_API int cuMemAllocHost_v2(void **out, size_t bytes) { return nullgpu_host_allocate(out, bytes, NULLGPU_PINNED); }
NULLGPU_API int cuMemFreeHost(void *pointer) { return nullgpu_host_free(pointer, NULLGPU_PINNED); }

NULLGPU_API int cuMemHostAlloc(void **out, size_t bytes, unsigned flags)
{
    (void)flags;
    return nullgpu_host_allocate(out, bytes, NULLGPU_PINNED);
}

NULLGPU_API int cuMemGetInfo_v2(size_t *free_bytes, size_t *total)
{
    struct nullgpu_memory_info info = nullgpu_memory_info(nullgpu_current_ordinal());
    NULLGPU_SET(free_bytes, info.free);
    NULLGPU_SET(total, info.total);
    return NULLGPU_SUCCESS;
}

NULLGPU_API int cuMemGetAddressRange_v2(uintptr_t *start, size_t *bytes, const void *pointer)
{
    struct nullgpu_range range;
    if (!nullgpu_address_range(pointer, &range))
        return NULLGPU_INVALID_VALUE;
    NULLGPU_SET(start, range.start);
    NULLGPU_SET(bytes, range.bytes);
    return NULLGPU_SUCCESS;
}

NULLGPU_API int cuMemGetAddressRange(uintptr_t *start, size_t *bytes, const void *pointer)
{
    return cuMemGetAddressRange_v2(start, bytes, pointer);
}

/* ---- copies and fills ---- */

static int copy(void *destination, const void *source, size_t bytes)
{
    nullgpu_carry(destination, source, bytes);
    return NULLGPU_SUCCESS;
}

NULLGPU_API int cuMemcpy(void *to, const void *from, size_t bytes) { return copy(to, from, bytes); }
NULLGPU_API int cuMemcpyAsync(void *to, const void *from, size_t bytes) { return copy(to, from, bytes); }
NULLGPU_API int cuMemcpyHtoD_v2(void *to, const void *from, size_t bytes) { return copy(to, from, bytes); }
NULLGPU_API int cuMemcpyHtoDAsync_v2(void *to, const void *from, size_t bytes) { return copy(to, from, bytes); }
NULLGPU_API int cuMemcpyDtoH_v2(void *to, const void *from, size_t bytes) { return copy(to, from, bytes); }
NULLGPU_API int cuMemcpyDtoHAsync_v2(void *to, const void *from, size_t bytes) { return copy(to, from, bytes); }
NULLGPU_API int cuMemcpyDtoD_v2(void *to, const void *from, size_t bytes) { return copy(to, from, bytes); }
NULLGPU_API int cuMemcpyDtoDAsync_v2(void *to, const void *from, size_t bytes) { return copy(to, from, bytes); }

NULLGPU_API int cuMemsetD8_v2(void *pointer, unsigned char byte, size_t count)
{
    nullgpu_fill(pointer, byte, count);
    return NULLGPU_SUCCESS;
}

NULLGPU_API int cuMemsetD8Async(void *pointer, unsigned char byte, size_t count) { return cuMemsetD8_v2(pointer, byte, count); }

/* A pattern of four bytes is kept only where they are equal; any other content is unknown from here on, as after a
 * kernel. */
NULLGPU_API int cuMemsetD32_v2(void *pointer, unsigned word, size_t count)
{
    unsigned byte = word & 0xff;
    if (word == byte * 0x01010101u)
        nullgpu_fill(pointer, (int)byte, 4 * count);
    else
        nullgpu_launched();
    return NULLGPU_SUCCESS;
}

NULLGPU_API int cuMemsetD32Async(void *pointer, unsigned word, size_t count) { return cuMemsetD32_v2(pointer, word, count); }

/* ---- addresses and physical memory apart ---- */

struct physical {
    size_t bytes;
    int ordinal;
    int references; /* one for the handle, one for each mapping */
};

/* CUmemAllocationProp, as far as it is read. */
struct allocation_properties {
    int type, handle_types;
    int location_type, location_ordinal;
    void *win32;
    unsigned char flags[8];
};

static void drop_reference(struct physical *physical)
{
    if (__atomic_sub_fetch(&physical->references, 1, __ATOMIC_ACQ_REL) == 0) {
        nullgpu_discharge(physical->ordinal, physical->bytes);
        free(physical);
    }
}

NULLGPU_API int cuMemAddressReserve(uintptr_t *out, size_t bytes, size_t alignment, uintptr_t wish,
                                    unsigned long long flags)
{
    (void)alignment, (void)wish, (void)flags;
    return nullgpu_reserve(out, bytes);
}

NULLGPU_API int cuMemAddressFree(uintptr_t start, size_t bytes)
{
    (void)bytes;
    return nullgpu_unreserve(start);
}

NULLGPU_API int cuMemGetAllocationGranularity(size_t *out, const void *properties, int option)
{
    (void)properties, (void)option;
    *out = NULLGPU_GRANULARITY;
    return NULLGPU_SUCCESS;
}

NULLGPU_API int cuMemCreate(struct physical **out, size_t bytes, const struct allocation_properties *properties,
                            unsigned long long flags)
{
    (void)flags;
    if (bytes == 0 || bytes % NULLGPU_GRANULARITY)
        return NULLGPU_INVALID_VALUE;
    struct physical *physical = malloc(sizeof *physical);
    if (!physical)
        return NULLGPU_OUT_OF_MEMORY;
    *physical = (struct physical){bytes, properties->location_ordinal, 1};
    int status = nullgpu_charge(physical->ordinal, bytes);
    if (status == NULLGPU_SUCCESS)
        *out = physical;
    else
        free(physical);
    return status;
}

NULLGPU_API int cuMemRelease(struct physical *physical)
{
    drop_reference(physical);
    return NULLGPU_SUCCESS;
}

NULLGPU_API int cuMemMap(uintptr_t start, size_t bytes, size_t offset, struct physical *physical,
                         unsigned long long flags)
{
    (void)offset, (void)flags;
    int status = nullgpu_map(start, bytes, physical->ordinal, physical);
    if (status == NULLGPU_SUCCESS)
        __atomic_add_fetch(&physical->references, 1, __ATOMIC_RELAXED);
    return status;
}

/* One call may undo several mappings that lie side by side. */
NULLGPU_API int cuMemUnmap(uintptr_t start, size_t bytes)
{
    struct nullgpu_range range;
    for (uintptr_t at = start; at < start + bytes; at = range.start + range.bytes) {
        if (!nullgpu_address_range((void *)at, &range) || range.kind != NULLGPU_MAPPING || range.start != at)
            return NULLGPU_INVALID_VALUE;
        struct physical *physical = nullgpu_unmap(at);
        if (physical)
            drop_reference(physical);
    }
    return NULLGPU_SUCCESS;
}

NULLGPU_API int cuMemRetainAllocationHandle(struct physical **out, const void *pointer)
{
    struct nullgpu_range range;
    if (!nullgpu_address_range(pointer, &range) || range.kind != NULLGPU_MAPPING)
        return NULLGPU_INVALID_VALUE;
    *out = range.payload;
    __atomic_add_fetch(&(*out)->references, 1, __ATOMIC_RELAXED);
    return NULLGPU_SUCCESS;
}

NULLGPU_API int cuMemGetAllocationPropertiesFromHandle(struct allocation_properties *out,
                                                       const struct physical *physical)
{
    enum { PINNED = 1, DEVICE = 1 };
    memset(out, 0, sizeof *out);
    out->type = PINNED;
    out->location_type = DEVICE;
    out->location_ordinal = physical->ordinal;
    return NULLGPU_SUCCESS;
}

/* ---- what a pointer is ---- */

NULLGPU_API int cuPointerGetAttribute(void *out, int attribute, const void *pointer)
{
    enum { CONTEXT = 1, MEMORY_TYPE, DEVICE_POINTER, HOST_POINTER, BUFFER_ID = 7, MANAGED, ORDINAL };
    enum { RANGE_START = 11, RANGE_BYTES, MAPPED, HOST = 1, DEVICE = 2 };
    struct nullgpu_range range;
    bool on_device = nullgpu_address_range(pointer, &range);
    if (!on_device && !nullgpu_host_range(pointer, &range))
        return NULLGPU_INVALID_VALUE;
    int ordinal = on_device ? range.ordinal : nullgpu_current_ordinal();
    switch (attribute) {
    case CONTEXT:
        return cuDevicePrimaryCtxRetain(out, ordinal);
    case MEMORY_TYPE:
        *(int *)out = on_device ? DEVICE : HOST;
        return NULLGPU_SUCCESS;
    case DEVICE_POINTER:
        *(const void **)out = pointer;
        return NULLGPU_SUCCESS;
    case HOST_POINTER:
        *(const void **)out = on_device ? NULL : pointer;
        return on_device ? NULLGPU_INVALID_VALUE : NULLGPU_SUCCESS;
    case BUFFER_ID:
        *(unsigned long long *)out = range.start;
        return NULLGPU_SUCCESS;
    case MANAGED:
        *(int *)out = !on_device && range.kind == NULLGPU_MANAGED;
        return NULLGPU_SUCCESS;
    case ORDINAL:
        *(int *)out = ordinal;
        return NULLGPU_SUCCESS;
    case RANGE_START:
        *(uintptr_t *)out = range.start;
        return NULLGPU_SUCCESS;
    case RANGE_BYTES:
        *(size_t *)out = range.bytes;
        return NULLGPU_SUCCESS;
    case MAPPED:
        *(int *)out = 1;
        return NULLGPU_SUCCESS;
    default: /* features that this memory does not have (peer-to-peer tokens, RDMA, pools) */
        *(int *)out = 0;
        return NULLGPU_SUCCESS;
    }
}
