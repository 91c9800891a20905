/* libnvidia-ml: the same devices as the monitoring library sees them. A handle says its device. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

enum { NVML_INVALID_ARGUMENT = 2, NVML_NOT_SUPPORTED = 3, NVML_NOT_FOUND = 6, NVML_INSUFFICIENT_SIZE = 7 };

#define HANDLE_BASE ((uintptr_t)0x41)

static int ordinal_of(const void *handle) { return (int)(((uintptr_t)handle - HANDLE_BASE) / 16); }

static int give_handle(void **out, int ordinal)
{
    if (!nullgpu_device(ordinal))
        return NVML_NOT_FOUND;
    *out = (void *)(HANDLE_BASE + 16 * (uintptr_t)ordinal);
    return 0;
}

NULLGPU_API int nvmlInit_v2(void) { return 0; }
NULLGPU_API int nvmlInitWithFlags(void) { return 0; }
NULLGPU_API int nvmlShutdown(void) { return 0; }

NULLGPU_API int nvmlDeviceGetCount_v2(unsigned *out)
{
    *out = (unsigned)nullgpu_device_count();
    return 0;
}

NULLGPU_API int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **out) { return give_handle(out, (int)index); }

NULLGPU_API int nvmlDeviceGetHandleByPciBusId_v2(const char *id, void **out)
{
    unsigned domain, bus;
    if (sscanf(id, "%x:%x", &domain, &bus) != 2)
        return NVML_INVALID_ARGUMENT;
    return give_handle(out, (int)bus - 1); /* as cudaDeviceGetPCIBusId numbers them */
}

NULLGPU_API int nvmlDeviceGetUUID(const void *handle, char *out, unsigned length)
{
    if (length < 41)
        return NVML_INSUFFICIENT_SIZE;
    snprintf(out, length, "GPU-00000000-0000-0000-0000-%012x", (unsigned)ordinal_of(handle) + 1);
    return 0;
}

NULLGPU_API int nvmlDeviceGetHandleByUUID(const char *uuid, void **out)
{
    const char *last = strrchr(uuid, '-');
    return last ? give_handle(out, (int)strtoul(last + 1, NULL, 16) - 1) : NVML_INVALID_ARGUMENT;
}

NULLGPU_API int nvmlDeviceGetName(const void *handle, char *out, unsigned length)
{
    const struct nullgpu_device *device = nullgpu_device(ordinal_of(handle));
    if (!device)
        return NVML_INVALID_ARGUMENT;
    snprintf(out, length, "%s", device->name);
    return 0;
}

NULLGPU_API int nvmlDeviceGetIndex(const void *handle, unsigned *out)
{
    *out = (unsigned)ordinal_of(handle);
    return 0;
}

NULLGPU_API int nvmlDeviceGetCudaComputeCapability(const void *handle, int *major, int *minor)
{
    const struct nullgpu_device *device = nullgpu_device(ordinal_of(handle));
    if (!device)
        return NVML_INVALID_ARGUMENT;
    *major = device->major;
    *minor = device->minor;
    return 0;
}

struct memory {
    unsigned long long total, free, used;
};

NULLGPU_API int nvmlDeviceGetMemoryInfo(const void *handle, struct memory *out)
{
    struct nullgpu_memory_info info = nullgpu_memory_info(ordinal_of(handle));
    *out = (struct memory){info.total, info.free, info.total - info.free};
    return info.total ? 0 : NVML_INVALID_ARGUMENT;
}

struct memory_v2 {
    unsigned version;
    unsigned long long total, reserved, free, used;
};

NULLGPU_API int nvmlDeviceGetMemoryInfo_v2(const void *handle, struct memory_v2 *out)
{
    struct nullgpu_memory_info info = nullgpu_memory_info(ordinal_of(handle));
    *out = (struct memory_v2){out->version, info.total, 0, info.free, info.total - info.free};
    return info.total ? 0 : NVML_INVALID_ARGUMENT;
}

NULLGPU_API int nvmlDeviceGetP2PStatus(const void *handle, const void *peer, int capability, int *status)
{
    (void)handle, (void)peer, (void)capability;
    *status = 0; /* fine */
    return 0;
}

NULLGPU_API int nvmlDeviceGetComputeRunningProcesses(const void *handle, unsigned *count, void *out)
{
    (void)handle, (void)out;
    *count = 0;
    return 0;
}

NULLGPU_API int nvmlSystemGetCudaDriverVersion_v2(int *out)
{
    *out = nullgpu_versions()->cuda;
    return 0;
}

NULLGPU_API int nvmlSystemGetCudaDriverVersion(int *out) { return nvmlSystemGetCudaDriverVersion_v2(out); }

/* There is no link and no fabric: what a machine without NVLink answers. */
NULLGPU_API int nvmlDeviceGetGpuFabricInfoV(void) { return NVML_NOT_SUPPORTED; }
NULLGPU_API int nvmlDeviceGetNvLinkState(void) { return NVML_NOT_SUPPORTED; }
NULLGPU_API int nvmlDeviceGetNvLinkRemoteDeviceType(void) { return NVML_NOT_SUPPORTED; }
NULLGPU_API int nvmlDeviceGetNvLinkRemotePciInfo_v2(void) { return NVML_NOT_SUPPORTED; }

NULLGPU_API const char *nvmlErrorString(int status)
{
    switch (status) {
    case 0:
        return "Success";
    case NVML_INVALID_ARGUMENT:
        return "Invalid Argument";
    case NVML_NOT_SUPPORTED:
        return "Not Supported";
    case NVML_NOT_FOUND:
        return "Not Found";
    case NVML_INSUFFICIENT_SIZE:
        return "Insufficient Size";
    default:
        return "Unknown Error";
    }
}
