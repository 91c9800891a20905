/* libcudart: kernels. They are registered, configured and launched, and do nothing. */
#include <string.h>

#include "internal.h"

/* ---- registration, by code that the CUDA compiler generated ---- */

NULLGPU_API void **__cudaRegisterFatBinary(void *image)
{
    static void *handle;
    (void)image;
    return &handle;
}

NULLGPU_API void __cudaRegisterFatBinaryEnd(void **handle) { (void)handle; }
NULLGPU_API void __cudaUnregisterFatBinary(void **handle) { (void)handle; }
NULLGPU_API void __cudaRegisterFunction(void) {}
NULLGPU_API void __cudaRegisterVar(void) {}
NULLGPU_API void __cudaRegisterManagedVar(void) {}

NULLGPU_API char __cudaInitModule(void **handle)
{
    (void)handle;
    return 1;
}

NULLGPU_API int __cudaGetKernel(void **kernel, const void *function)
{
    *kernel = (void *)function;
    return NULLGPU_SUCCESS;
}

/* ---- the configuration between <<< and >>>, kept until the launch stub fetches it ---- */

struct dimensions {
    unsigned x, y, z;
};

static __thread struct configuration {
    struct dimensions grid, block;
    size_t shared_bytes;
    void *stream;
} configurations[16];
static __thread int configuration_count;

NULLGPU_API unsigned __cudaPushCallConfiguration(struct dimensions grid, struct dimensions block, size_t shared_bytes,
                                                 void *stream)
{
    if (configuration_count == sizeof configurations / sizeof *configurations)
        return NULLGPU_INVALID_VALUE;
    configurations[configuration_count++] = (struct configuration){grid, block, shared_bytes, stream};
    return NULLGPU_SUCCESS;
}

NULLGPU_API int __cudaPopCallConfiguration(struct dimensions *grid, struct dimensions *block, size_t *shared_bytes,
                                           void *stream)
{
    if (configuration_count == 0)
        return NULLGPU_INVALID_VALUE;
    struct configuration *top = &configurations[--configuration_count];
    *grid = top->grid;
    *block = top->block;
    *shared_bytes = top->shared_bytes;
    *(void **)stream = top->stream;
    return NULLGPU_SUCCESS;
}

/* ---- launches ---- */

int nullgpu_launch(void)
{
    nullgpu_used();
    if (nullgpu_current_device()->kernel_arch == 0)
        return nullgpu_result(NULLGPU_NO_KERNEL_IMAGE);
    nullgpu_launched();
    return NULLGPU_SUCCESS;
}

NULLGPU_API int cudaLaunchKernel(void) { return nullgpu_launch(); }
NULLGPU_API int __cudaLaunchKernel(void) { return nullgpu_launch(); }
NULLGPU_API int cudaLaunchKernelExC(void) { return nullgpu_launch(); }
NULLGPU_API int cudaLaunchCooperativeKernel(void) { return nullgpu_launch(); }

/* ---- what a kernel is ---- */

enum { REGISTERS_OF_A_KERNEL = 32, THREADS_PER_BLOCK = 1024, WARP = 32 };

struct function_attributes {
    size_t shared_bytes, constant_bytes, local_bytes;
    int threads_per_block, registers, ptx_version, binary_version, cache_mode, dynamic_shared_bytes, carveout;
    int cluster[5], non_portable_cluster, reserved[16];
};

_Static_assert(sizeof(struct function_attributes) == 144, "cudaFuncAttributes has 144 bytes");

/* Libraries choose their algorithms' parameters by the architecture of the code that runs (CUB's sorts fail if it
 * is one that nothing was compiled for). */
NULLGPU_API int cudaFuncGetAttributes(struct function_attributes *out, const void *function)
{
    (void)function;
    const struct nullgpu_device *device = nullgpu_current_device();
    memset(out, 0, sizeof *out);
    if (device->kernel_arch == 0)
        return nullgpu_result(NULLGPU_NO_KERNEL_IMAGE);
    out->threads_per_block = THREADS_PER_BLOCK;
    out->registers = REGISTERS_OF_A_KERNEL;
    out->ptx_version = out->binary_version = device->kernel_arch;
    out->dynamic_shared_bytes = (int)device->shared_per_block;
    return NULLGPU_SUCCESS;
}

int nullgpu_occupancy(int threads, size_t dynamic_shared)
{
    const struct nullgpu_device *device = nullgpu_current_device();
    if (threads <= 0 || threads > THREADS_PER_BLOCK)
        return 0;
    int rounded = (threads + WARP - 1) / WARP * WARP;
    int blocks = device->threads_per_multiprocessor / rounded;
    if (blocks > device->blocks_per_multiprocessor)
        blocks = device->blocks_per_multiprocessor;
    if (dynamic_shared > 0 && (size_t)blocks > device->shared_per_multiprocessor / dynamic_shared)
        blocks = (int)(device->shared_per_multiprocessor / dynamic_shared);
    return blocks;
}

NULLGPU_API int cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *out, const void *function, int threads,
                                                                       size_t dynamic_shared, unsigned flags)
{
    (void)function, (void)flags;
    *out = nullgpu_occupancy(threads, dynamic_shared);
    return NULLGPU_SUCCESS;
}

NULLGPU_API int cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *out, const void *function, int threads,
                                                              size_t dynamic_shared)
{
    return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(out, function, threads, dynamic_shared, 0);
}

NULLGPU_API int cudaOccupancyMaxActiveClusters(int *out, const void *function, const void *configuration)
{
    (void)function, (void)configuration;
    *out = nullgpu_current_device()->multiprocessors / 2;
    return NULLGPU_SUCCESS;
}

/* ---- libraries of kernels, loaded at run time ---- */

NULLGPU_API int cudaLibraryGetKernelCount(unsigned *out, void *library)
{
    (void)library;
    *out = 0;
    return NULLGPU_SUCCESS;
}

NULLGPU_API int cudaLibraryGetGlobal(void **out, size_t *bytes, void *library, const char *name)
{
    (void)library, (void)name;
    NULLGPU_SET(out, nullgpu_symbol_address());
    NULLGPU_SET(bytes, sizeof(void *));
    return NULLGPU_SUCCESS;
}

NULLGPU_API int cudaLibraryGetManaged(void **out, size_t *bytes, void *library, const char *name)
{
    (void)out, (void)bytes, (void)library, (void)name;
    return nullgpu_result(NULLGPU_NOT_FOUND);
}

/* ---- the driver, through the runtime ---- */

NULLGPU_API int cudaGetDriverEntryPointByVersion(const char *name, void **out, unsigned version,
                                                 unsigned long long flags, int *status)
{
    (void)flags;
    bool known;
    *out = nullgpu_driver_function(name, (int)version, &known);
    NULLGPU_SET(status, 0);
    return NULLGPU_SUCCESS;
}

NULLGPU_API int cudaGetDriverEntryPoint(const char *name, void **out, unsigned long long flags, int *status)
{
    return cudaGetDriverEntryPointByVersion(name, out, (unsigned)nullgpu_versions()->cuda, flags, status);
}
