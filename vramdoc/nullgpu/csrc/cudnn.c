/* cuDNN: the handle, the version, errors. The version is the one torch was built with, since torch compares. */
#include "cudnn_types.h"

#include <stdlib.h>

struct cudnn_handle {
    void *stream;
};

NULLGPU_API int cudnnCreate(struct cudnn_handle **handle)
{
    *handle = calloc(1, sizeof **handle);
    return *handle ? CUDNN_OK : CUDNN_ALLOC_FAILED;
}

NULLGPU_API int cudnnDestroy(struct cudnn_handle *handle)
{
    free(handle);
    return CUDNN_OK;
}

NULLGPU_API int cudnnSetStream(struct cudnn_handle *handle, void *stream)
{
    handle->stream = stream;
    return CUDNN_OK;
}

NULLGPU_API int cudnnGetStream(struct cudnn_handle *handle, void **stream)
{
    *stream = handle->stream;
    return CUDNN_OK;
}

NULLGPU_API size_t cudnnGetVersion(void)
{
    return (size_t)nullgpu_versions()->cudnn;
}

NULLGPU_API size_t cudnnGetCudartVersion(void)
{
    return (size_t)nullgpu_versions()->cuda;
}

/* cuDNN 9 numbers itself major * 10000 + minor * 100 + patch. */
NULLGPU_API int cudnnGetProperty(int property, int *value)
{
    int version = nullgpu_versions()->cudnn;

    switch (property) {
    case 0:
        *value = version / 10000;
        return CUDNN_OK;
    case 1:
        *value = version / 100 % 100;
        return CUDNN_OK;
    case 2:
        *value = version % 100;
        return CUDNN_OK;
    default:
        return CUDNN_BAD_PARAM;
    }
}

NULLGPU_API const char *cudnnGetErrorString(int status)
{
    switch (status) {
    case CUDNN_OK:
        return "CUDNN_STATUS_SUCCESS";
    case CUDNN_BAD_PARAM:
        return "CUDNN_STATUS_BAD_PARAM";
    case CUDNN_NOT_SUPPORTED:
        return "CUDNN_STATUS_NOT_SUPPORTED";
    case CUDNN_ALLOC_FAILED:
        return "CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED";
    default:
        return "CUDNN_STATUS_INTERNAL_ERROR";
    }
}

NULLGPU_API void cudnnGetLastErrorString(char *message, size_t room)
{
    if (message && room)
        message[0] = '\0';
}

size_t nullgpu_cudnn_element_bytes(int data_type)
{
    switch (data_type) {
    case CUDNN_DOUBLE:
    case CUDNN_INT64:
        return 8;
    case CUDNN_FLOAT:
    case CUDNN_INT32:
        return 4;
    case CUDNN_HALF:
    case CUDNN_BFLOAT16:
        return 2;
    case CUDNN_INT8:
    case CUDNN_UINT8:
    case CUDNN_BOOLEAN:
        return 1;
    default:
        return 0;
    }
}
