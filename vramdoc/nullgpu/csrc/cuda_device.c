/* libcuda: devices and contexts. A context's handle says its device. */
#include <stdio.h>
#include <string.h>

#include "internal.h"

int cudaDeviceGetAttribute(int *value, int attribute, int ordinal);
int cudaDeviceCanAccessPeer(int *can, int ordinal, int peer);
int cudaDeviceGetPCIBusId(char *out, int length, int ordinal);
int cudaDeviceGetStreamPriorityRange(int *least, int *greatest);

#define CONTEXT_BASE ((uintptr_t)0x11)

static void *context_of(int ordinal) { return (void *)(CONTEXT_BASE + 16 * (uintptr_t)ordinal); }
static int ordinal_of(const void *context) { return (int)(((uintptr_t)context - CONTEXT_BASE) / 16); }

NULLGPU_API int cuInit(unsigned flags)
{
    (void)flags;
    return nullgpu_device_count() ? NULLGPU_SUCCESS : NULLGPU_NO_DEVICE;
}

NULLGPU_API int cuDriverGetVersion(int *out)
{
    *out = nullgpu_versions()->cuda;
    return NULLGPU_SUCCESS;
}

NULLGPU_API int cuDeviceGetCount(int *out)
{
    *out = nullgpu_device_count();
    return NULLGPU_SUCCESS;
}

NULLGPU_API int cuDeviceGet(int *out, int ordinal)
{
    *out = ordinal;
    return nullgpu_device(ordinal) ? NULLGPU_SUCCESS : NULLGPU_INVALID_DEVICE;
}

NULLGPU_API int cuDeviceGetName(char *out, int length, int ordinal)
{
    const struct nullgpu_device *device = nullgpu_device(ordinal);
    if (!device || length <= 0)
        return NULLGPU_INVALID_DEVICE;
    snprintf(out, (size_t)length, "%s", device->name);
    return NULLGPU_SUCCESS;
}

NULLGPU_API int cuDeviceTotalMem_v2(size_t *out, int ordinal)
{
    const struct nullgpu_device *device = nullgpu_device(ordinal);
    *out = device ? device->total_bytes : 0;
    return device ? NULLGPU_SUCCESS : NULLGPU_INVALID_DEVICE;
}

NULLGPU_API int cuDeviceComputeCapability(int *major, int *minor, int ordinal)
{
    const struct nullgpu_device *device = nullgpu_device(ordinal);
    if (!device)
        return NULLGPU_INVALID_DEVICE;
    *major = device->major;
    *minor = device->minor;
    return NULLGPU_SUCCESS;
}

NULLGPU_API int cuDeviceGetUuid_v2(char *out, int ordinal)
{
    const struct nullgpu_device *device = nullgpu_device(ordinal);
    memset(out, 0, 16);
    out[15] = (char)(device ? device->index + 1 : 0);
    return device ? NULLGPU_SUCCESS : NULLGPU_INVALID_DEVICE;
}

NULLGPU_API int cuDeviceGetUuid(char *out, int ordinal) { return cuDeviceGetUuid_v2(out, ordinal); }

NULLGPU_API int cuDeviceGetAttribute(int *out, int attribute, int ordinal)
{
    return cudaDeviceGetAttribute(out, attribute, ordinal);
}

NULLGPU_API int cuDeviceCanAccessPeer(int *out, int ordinal, int peer)
{
    return cudaDeviceCanAccessPeer(out, ordinal, peer);
}

NULLGPU_API int cuDeviceGetPCIBusId(char *out, int length, int ordinal)
{
    return cudaDeviceGetPCIBusId(out, length, ordinal);
}

/* ---- contexts ---- */

NULLGPU_API int cuCtxGetCurrent(void **out)
{
    *out = context_of(nullgpu_current_ordinal());
    return NULLGPU_SUCCESS;
}

NULLGPU_API int cuCtxSetCurrent(void *context)
{
    return context ? nullgpu_set_device(ordinal_of(context)) : NULLGPU_SUCCESS;
}

NULLGPU_API int cuCtxGetDevice(int *out)
{
    *out = nullgpu_current_ordinal();
    return NULLGPU_SUCCESS;
}

static __thread int pushed[64];
static __thread int pushed_count;

NULLGPU_API int cuCtxPushCurrent_v2(void *context)
{
    if (pushed_count == sizeof pushed / sizeof *pushed)
        return NULLGPU_INVALID_VALUE;
    pushed[pushed_count++] = nullgpu_current_ordinal();
    return cuCtxSetCurrent(context);
}

NULLGPU_API int cuCtxPopCurrent_v2(void **out)
{
    if (pushed_count == 0)
        return NULLGPU_INVALID_VALUE;
    NULLGPU_SET(out, context_of(nullgpu_current_ordinal()));
    return nullgpu_set_device(pushed[--pushed_count]);
}

NULLGPU_API int cuCtxPushCurrent(void *context) { return cuCtxPushCurrent_v2(context); }
NULLGPU_API int cuCtxPopCurrent(void **out) { return cuCtxPopCurrent_v2(out); }

NULLGPU_API int cuCtxGetApiVersion(void *context, unsigned *out)
{
    (void)context;
    *out = 3020; /* as the driver has answered since CUDA 3.2 */
    return NULLGPU_SUCCESS;
}

NULLGPU_API int cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
    return cudaDeviceGetStreamPriorityRange(least, greatest);
}

NULLGPU_API int cuStreamGetCtx(void *stream, void **out)
{
    (void)stream;
    return cuCtxGetCurrent(out);
}

NULLGPU_API int cuDevicePrimaryCtxRetain(void **out, int ordinal)
{
    *out = nullgpu_device(ordinal) ? context_of(ordinal) : NULL;
    return *out ? NULLGPU_SUCCESS : NULLGPU_INVALID_DEVICE;
}

NULLGPU_API int cuDevicePrimaryCtxGetState(int ordinal, unsigned *flags, int *active)
{
    NULLGPU_SET(flags, 0);
    NULLGPU_SET(active, 1);
    return nullgpu_device(ordinal) ? NULLGPU_SUCCESS : NULLGPU_INVALID_DEVICE;
}

/* ---- green contexts: parts of a device, which share its memory ---- */

NULLGPU_API int cuDeviceGetDevResource(int ordinal, void *out, int type)
{
    enum { RESOURCE_BYTES = 144, MULTIPROCESSORS = 1 };
    const struct nullgpu_device *device = nullgpu_device(ordinal);
    memset(out, 0, RESOURCE_BYTES);
    if (!device || type != MULTIPROCESSORS)
        return NULLGPU_INVALID_VALUE;
    *(int *)out = type;
    ((unsigned *)out)[24] = (unsigned)device->multiprocessors; /* behind 92 bytes of the driver's own and padding */
    return NULLGPU_SUCCESS;
}

NULLGPU_API int cuCtxFromGreenCtx(void **out, void *green)
{
    (void)green;
    return cuCtxGetCurrent(out);
}

/* cuGetExportTable leads to undocumented functions: libraries that find none do without. */
NULLGPU_API int cuGetExportTable(const void **out, const void *id)
{
    (void)id;
    *out = NULL;
    return NULLGPU_NOT_FOUND;
}
