/* libcudart: memory pools. Each device has one, whose figures are the device's; what is freed is given back at once. */
#include "internal.h"

int cudaMalloc(void **out, size_t bytes);
int cudaFree(void *pointer);

enum {
    POOL_RESERVED_CURRENT = 5,
    POOL_RESERVED_HIGH,
    POOL_USED_CURRENT,
    POOL_USED_HIGH,
    POOL_THRESHOLD = 4,
};

#define POOL_BASE ((uintptr_t)0x101) /* a pool's handle is this and its device */

static uint64_t pool_threshold[NULLGPU_MAX_DEVICES];

static int pool_ordinal(void *pool)
{
    uintptr_t ordinal = (uintptr_t)pool - POOL_BASE;
    return ordinal < (uintptr_t)nullgpu_device_count() ? (int)ordinal : -1;
}

NULLGPU_API int cudaMallocAsync(void **out, size_t bytes, void *stream)
{
    (void)stream;
    return cudaMalloc(out, bytes);
}

NULLGPU_API int cudaMallocFromPoolAsync(void **out, size_t bytes, void *pool, void *stream)
{
    (void)stream;
    int ordinal = pool_ordinal(pool);
    return nullgpu_result(nullgpu_allocate(out, bytes, ordinal < 0 ? nullgpu_current_ordinal() : ordinal));
}

NULLGPU_API int cudaFreeAsync(void *pointer, void *stream)
{
    (void)stream;
    return cudaFree(pointer);
}

NULLGPU_API int cudaDeviceGetDefaultMemPool(void **out, int ordinal)
{
    if (!nullgpu_device(ordinal))
        return nullgpu_result(NULLGPU_INVALID_DEVICE);
    *out = (void *)(POOL_BASE + (uintptr_t)ordinal);
    return NULLGPU_SUCCESS;
}

NULLGPU_API int cudaDeviceGetMemPool(void **out, int ordinal) { return cudaDeviceGetDefaultMemPool(out, ordinal); }

NULLGPU_API int cudaMemPoolCreate(void **out, const void *properties)
{
    (void)properties;
    return cudaDeviceGetDefaultMemPool(out, nullgpu_current_ordinal());
}

NULLGPU_API int cudaMemPoolGetAttribute(void *pool, int attribute, void *value)
{
    int ordinal = pool_ordinal(pool);
    if (ordinal < 0)
        return nullgpu_result(NULLGPU_INVALID_VALUE);
    struct nullgpu_memory_info info = nullgpu_memory_info(ordinal);
    switch (attribute) {
    case POOL_THRESHOLD:
        *(uint64_t *)value = pool_threshold[ordinal];
        break;
    case POOL_RESERVED_CURRENT:
    case POOL_USED_CURRENT:
        *(uint64_t *)value = info.used;
        break;
    case POOL_RESERVED_HIGH:
    case POOL_USED_HIGH:
        *(uint64_t *)value = info.used_high;
        break;
    default:
        *(int *)value = 1; /* the three ways to reuse memory, all on */
    }
    return NULLGPU_SUCCESS;
}

NULLGPU_API int cudaMemPoolSetAttribute(void *pool, int attribute, const void *value)
{
    int ordinal = pool_ordinal(pool);
    if (ordinal < 0)
        return nullgpu_result(NULLGPU_INVALID_VALUE);
    if (attribute == POOL_THRESHOLD)
        pool_threshold[ordinal] = *(const uint64_t *)value;
    else if (attribute == POOL_RESERVED_HIGH || attribute == POOL_USED_HIGH)
        nullgpu_reset_used_high(ordinal);
    return NULLGPU_SUCCESS;
}
