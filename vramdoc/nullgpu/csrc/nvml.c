/* libnvidia-ml: the machine's devices as the monitoring library sees them, whichever of them this process uses. A
 * handle says the device's index. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

enum { NVML_INVALID_ARGUMENT = 2, NVML_NOT_SUPPORTED = 3, NVML_NOT_FOUND = 6, NVML_INSUFFICIENT_SIZE = 7 };

#define HANDLE_BASE ((uintptr_t)0x41)

static int index_of(const void *handle) { return (int)(((uintptr_t)handle - HANDLE_BASE) / 16); }

static int give_handle(void **out, int index)
{
    if (!nullgpu_machine_device(index))
        return NVML_NOT_FOUND;
    *out = (void *)(HANDLE_BASE + 16 * (uintptr_t)index);
    return 0;
}

NULLGPU_API int nvmlInit_v2(void) { return 0; }
NULLGPU_API int nvmlInitWithFlags(void) { return 0; }
NULLGPU_API int nvmlShutdown(void) { return 0; }

NULLGPU_API int nvmlDeviceGetCount_v2(unsigned *out)
{
    *out = (unsigned)nullgpu_machine_count();
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
    snprintf(out, length, "GPU-00000000-0000-0000-0000-%012x", (unsigned)index_of(handle) + 1);
    return 0;
}

NULLGPU_API int nvmlDeviceGetHandleByUUID(const char *uuid, void **out)
{
    const char *last = strrchr(uuid, '-');
    return last ? give_handle(out, (int)strtoul(last + 1, NULL, 16) - 1) : NVML_INVALID_ARGUMENT;
}

NULLGPU_API int nvmlDeviceGetName(const void *handle, char *out, unsigned length)
{
    const struct nullgpu_device *device = nullgpu_machine_device(index_of(handle));
    if (!device)
        return NVML_INVALID_ARGUMENT;
    snprintf(out, length, "%s", device->name);
    return 0;
}

NULLGPU_API int nvmlDeviceGetIndex(const void *handle, unsigned *out)
{
    *out = (unsigned)index_of(handle);
    return 0;
}

NULLGPU_API int nvmlDeviceGetCudaComputeCapability(const void *handle, int *major, int *minor)
{
    const struct nullgpu_device *device = nullgpu_machine_device(index_of(handle));
    if (!device)
        return NVML_INVALID_ARGUMENT;
    *major = device->major;
    *minor = device->minor;
    return 0;
}

/* A device that this process does not use is empty. */
static struct nullgpu_memory_info memory_of(const void *handle)
{
    const struct nullgpu_device *device = nullgpu_machine_device(index_of(handle));
    for (int ordinal = 0; device && ordinal < nullgpu_device_count(); ordinal++)
        if (nullgpu_device(ordinal)->index == device->index)
            return nullgpu_memory_info(ordinal);
    size_t total = device ? device->total_bytes : 0;
    return (struct nullgpu_memory_info){.total = total, .free = total};
}

struct memory {
    unsigned long long total, free, used;
};

NULLGPU_API int nvmlDeviceGetMemoryInfo(const void *handle, struct memory *out)
{
    struct nullgpu_memory_info info = memory_of(handle);
    *out = (struct memory){info.total, info.free, info.total - info.free};
    return info.total ? 0 : NVML_INVALID_ARGUMENT;
}

struct memory_v2 {
    unsigned version;
    unsigned long long total, reserved, free, used;
};

NULLGPU_API int nvmlDeviceGetMemoryInfo_v2(const void *handle, struct memory_v2 *out)
{
    struct nullgpu_memory_info info = memory_of(handle);
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

/* Newer forms of the same, which differ in what they would list. */
NULLGPU_API int nvmlDeviceGetComputeRunningProcesses_v2(const void *handle, unsigned *count, void *out)
{
    return nvmlDeviceGetComputeRunningProcesses(handle, count, out);
}

NULLGPU_API int nvmlDeviceGetComputeRunningProcesses_v3(const void *handle, unsigned *count, void *out)
{
    return nvmlDeviceGetComputeRunningProcesses(handle, count, out);
}

/* Percent of the time that kernels ran, and that memory was read or written: never. */
NULLGPU_API int nvmlDeviceGetUtilizationRates(const void *handle, unsigned out[2])
{
    (void)handle;
    out[0] = out[1] = 0;
    return 0;
}

NULLGPU_API int nvmlSystemGetDriverVersion(char *out, unsigned length)
{
    int cuda = nullgpu_versions()->cuda;
    snprintf(out, length, "%s", cuda >= 13000 ? "580.65.06" : "525.60.13"); /* the first to support the major version */
    return 0;
}

NULLGPU_API int nvmlSystemGetCudaDriverVersion_v2(int *out)
{
    *out = nullgpu_versions()->cuda;
    return 0;
}

NULLGPU_API int nvmlSystemGetCudaDriverVersion(int *out) { return nvmlSystemGetCudaDriverVersion_v2(out); }

/* nvmlGpuFabricInfoV_t, as far as all its versions agree. */
struct fabric {
    unsigned version;
    unsigned char cluster[16];
    int status;
    unsigned clique;
    unsigned char state;
};

NULLGPU_API int nvmlDeviceGetGpuFabricInfoV(const void *handle, struct fabric *out)
{
    (void)handle;
    *out = (struct fabric){.version = out->version}; /* state 0: there is no fabric */
    return 0;
}

/* There is no link either: what a machine without NVLink answers. */
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
