/* libcudart: what a status means, and the last one of each thread. The driver has the same numbers. */
#include "internal.h"

static __thread int last_error;

int nullgpu_result(int status)
{
    if (status != NULLGPU_SUCCESS && status != NULLGPU_NOT_READY)
        last_error = status;
    return status;
}

/* The texts are those of the documentation ("CUDA Runtime API", error codes); torch prints them. */
static const struct {
    int status;
    const char *runtime_name, *driver_name, *text;
} errors[] = {
    {0, "cudaSuccess", "CUDA_SUCCESS", "no error"},
    {1, "cudaErrorInvalidValue", "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {2, "cudaErrorMemoryAllocation", "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {100, "cudaErrorNoDevice", "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {101, "cudaErrorInvalidDevice", "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {209, "cudaErrorNoKernelImageForDevice", "CUDA_ERROR_NO_BINARY_FOR_GPU",
     "no kernel image is available for execution on the device"},
    {400, "cudaErrorInvalidResourceHandle", "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {500, "cudaErrorSymbolNotFound", "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {600, "cudaErrorNotReady", "CUDA_ERROR_NOT_READY", "device not ready"},
    {704, "cudaErrorPeerAccessAlreadyEnabled", "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED",
     "peer access is already enabled"},
    {712, "cudaErrorHostMemoryAlreadyRegistered", "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED",
     "part or all of the requested memory range is already mapped"},
    {713, "cudaErrorHostMemoryNotRegistered", "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED",
     "pointer does not correspond to a registered memory region"},
    {801, "cudaErrorNotSupported", "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
    {900, "cudaErrorStreamCaptureUnsupported", "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
     "operation not permitted when stream is capturing"},
    {901, "cudaErrorStreamCaptureInvalidated", "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",
     "operation failed due to a previous error during capture"},
    {904, "cudaErrorStreamCaptureUnjoined", "CUDA_ERROR_STREAM_CAPTURE_UNJOINED",
     "capturing stream has unjoined work"},
};

static size_t find(int status)
{
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (errors[i].status == status)
            return i;
    return (size_t)-1;
}

NULLGPU_API const char *cudaGetErrorString(int status)
{
    size_t index = find(status);
    return index == (size_t)-1 ? "unrecognized error code" : errors[index].text;
}

NULLGPU_API const char *cudaGetErrorName(int status)
{
    size_t index = find(status);
    return index == (size_t)-1 ? "unrecognized error code" : errors[index].runtime_name;
}

NULLGPU_API int cuGetErrorString(int status, const char **out)
{
    size_t index = find(status);
    *out = index == (size_t)-1 ? NULL : errors[index].text;
    return *out ? NULLGPU_SUCCESS : NULLGPU_INVALID_VALUE;
}

NULLGPU_API int cuGetErrorName(int status, const char **out)
{
    size_t index = find(status);
    *out = index == (size_t)-1 ? NULL : errors[index].driver_name;
    return *out ? NULLGPU_SUCCESS : NULLGPU_INVALID_VALUE;
}

NULLGPU_API int cudaGetLastError(void)
{
    int status = last_error;
    last_error = NULLGPU_SUCCESS;
    return status;
}

NULLGPU_API int cudaPeekAtLastError(void) { return last_error; }
