/* libcuda: modules of kernels, their launches and attributes. What torch.compile, Triton and NVRTC need. */
#include <string.h>

#include "internal.h"

NULLGPU_API int cuModuleGetGlobal_v2(void **out, size_t *bytes, void *module, const char *name)
{
    (void)module, (void)name;
    NULLGPU_SET(out, nullgpu_symbol_address());
    NULLGPU_SET(bytes, sizeof(void *));
    return NULLGPU_SUCCESS;
}

NULLGPU_API int cuFuncGetAttribute(int *out, int attribute, void *function)
{
    enum { THREADS_PER_BLOCK, SHARED, CONSTANT, LOCAL, REGISTERS, PTX_VERSION, BINARY_VERSION, CACHE, DYNAMIC_SHARED };
    (void)function;
    const struct nullgpu_device *device = nullgpu_current_device();
    const int values[] = {
        [THREADS_PER_BLOCK] = 1024,
        [REGISTERS] = 32,
        [PTX_VERSION] = device->kernel_arch,
        [BINARY_VERSION] = device->kernel_arch,
        [DYNAMIC_SHARED] = (int)device->shared_per_block,
    };
    bool listed = attribute >= 0 && attribute < (int)(sizeof values / sizeof *values);
    *out = listed ? values[attribute] : 0;
    return NULLGPU_SUCCESS;
}

NULLGPU_API int cuKernelGetAttribute(int *out, int attribute, void *kernel, int ordinal)
{
    (void)ordinal;
    return cuFuncGetAttribute(out, attribute, kernel);
}

NULLGPU_API int cuOccupancyMaxActiveBlocksPerMultiprocessor(int *out, void *function, int threads,
                                                            size_t dynamic_shared)
{
    (void)function;
    *out = nullgpu_occupancy(threads, dynamic_shared);
    return NULLGPU_SUCCESS;
}

NULLGPU_API int cuOccupancyMaxActiveClusters(int *out, void *function, const void *configuration)
{
    (void)function, (void)configuration;
    *out = nullgpu_current_device()->multiprocessors / 2;
    return NULLGPU_SUCCESS;
}

/* Code compiled at run time is compiled for the device, whatever torch was built for. */
static int launch(void)
{
    nullgpu_used();
    nullgpu_launched();
    return NULLGPU_SUCCESS;
}

NULLGPU_API int cuLaunchKernel(void) { return launch(); }
NULLGPU_API int cuLaunchKernelEx(void) { return launch(); }
NULLGPU_API int cuLaunchCooperativeKernel(void) { return launch(); }

NULLGPU_API int cuLinkComplete(void *state, void **image, size_t *bytes)
{
    static char empty[8];
    (void)state;
    *image = empty;
    *bytes = 0;
    return NULLGPU_SUCCESS;
}

NULLGPU_API int cuTensorMapEncodeTiled(void *out)
{
    enum { TENSOR_MAP_BYTES = 128 };
    memset(out, 0, TENSOR_MAP_BYTES);
    return NULLGPU_SUCCESS;
}
