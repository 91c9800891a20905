/* cuBLAS: the handle and what is kept with it. The arithmetic itself is in the table (../abi). */
#include "nullgpu.h"

#include <stdlib.h>

enum { CUBLAS_OK = 0, CUBLAS_ALLOC_FAILED = 3, CUBLAS_INVALID_VALUE = 7 };

/* torch keys its cuBLAS workspace on (handle, stream): each thread that multiplies matrices, the autograd thread
 * too, gets a workspace of its own only because every handle is a different address. */
struct cublas_handle {
    void *stream;
    void *workspace;
    size_t workspace_bytes;
    int math_mode;
    int pointer_mode;
    int atomics_mode;
    int sm_count_target;
};

NULLGPU_API int cublasCreate_v2(struct cublas_handle **handle)
{
    *handle = calloc(1, sizeof **handle);
    return *handle ? CUBLAS_OK : CUBLAS_ALLOC_FAILED;
}

NULLGPU_API int cublasDestroy_v2(struct cublas_handle *handle)
{
    free(handle);
    return CUBLAS_OK;
}

NULLGPU_API int cublasSetStream_v2(struct cublas_handle *handle, void *stream)
{
    handle->stream = stream;
    return CUBLAS_OK;
}

NULLGPU_API int cublasGetStream_v2(struct cublas_handle *handle, void **stream)
{
    *stream = handle->stream;
    return CUBLAS_OK;
}

NULLGPU_API int cublasSetWorkspace_v2(struct cublas_handle *handle, void *workspace, size_t bytes)
{
    handle->workspace = workspace;
    handle->workspace_bytes = bytes;
    return CUBLAS_OK;
}

/* The whole-number settings of a handle: cublasSetNAME and cublasGetNAME, which read back what was set. */
#define HANDLE_SETTING(setter, getter, field)                               \
    NULLGPU_API int setter(struct cublas_handle *handle, int value)         \
    {                                                                       \
        handle->field = value;                                              \
        return CUBLAS_OK;                                                   \
    }                                                                       \
    NULLGPU_API int getter(struct cublas_handle *handle, int *value)        \
    {                                                                       \
        *value = handle->field;                                             \
        return CUBLAS_OK;                                                   \
    }

HANDLE_SETTING(cublasSetMathMode, cublasGetMathMode, math_mode)
HANDLE_SETTING(cublasSetPointerMode_v2, cublasGetPointerMode_v2, pointer_mode)
HANDLE_SETTING(cublasSetAtomicsMode, cublasGetAtomicsMode, atomics_mode)
HANDLE_SETTING(cublasSetSmCountTarget, cublasGetSmCountTarget, sm_count_target)

/* ---- copies: matrices by columns, each with its own distance between columns ---- */

static int copy_matrix(int rows, int columns, int element, const char *from, int from_leading, char *to,
                       int to_leading)
{
    for (int column = 0; column < columns; column++)
        nullgpu_carry(to + (size_t)column * (size_t)to_leading * (size_t)element,
                      from + (size_t)column * (size_t)from_leading * (size_t)element,
                      (size_t)rows * (size_t)element);
    return CUBLAS_OK;
}

NULLGPU_API int cublasSetMatrixAsync(int rows, int columns, int element, const char *host, int host_leading,
                                     char *device, int device_leading, void *stream)
{
    (void)stream;
    return copy_matrix(rows, columns, element, host, host_leading, device, device_leading);
}

NULLGPU_API int cublasGetMatrixAsync(int rows, int columns, int element, const char *device, int device_leading,
                                     char *host, int host_leading, void *stream)
{
    (void)stream;
    return copy_matrix(rows, columns, element, device, device_leading, host, host_leading);
}

/* A vector is a matrix of one row, its step the distance between columns. */
NULLGPU_API int cublasSetVectorAsync(int length, int element, const char *host, int host_step, char *device,
                                     int device_step, void *stream)
{
    return cublasSetMatrixAsync(1, length, element, host, host_step, device, device_step, stream);
}

NULLGPU_API int cublasGetVectorAsync(int length, int element, const char *device, int device_step, char *host,
                                     int host_step, void *stream)
{
    return cublasGetMatrixAsync(1, length, element, device, device_step, host, host_step, stream);
}

/* ---- version and errors ----
 * cuBLAS numbers itself major * 10000 + minor * 100 + patch. CUDA 12.x brings 12.x; CUDA 13.0 brings 13.1 (torch
 * 2.14.1 for CUDA 13.0 requires nvidia-cublas 13.1.1), and later ones are taken to stay one ahead. */
int nullgpu_cublas_version(void)
{
    int cuda = nullgpu_versions()->cuda;
    int major = cuda / 1000;
    int minor = cuda % 1000 / 10 + (major >= 13);

    return major * 10000 + minor * 100;
}

NULLGPU_API int cublasGetVersion_v2(struct cublas_handle *handle, int *version)
{
    (void)handle;
    *version = nullgpu_cublas_version();
    return CUBLAS_OK;
}

NULLGPU_API int cublasGetProperty(int property, int *value)
{
    int version = nullgpu_cublas_version();

    switch (property) {
    case 0:
        *value = version / 10000;
        return CUBLAS_OK;
    case 1:
        *value = version / 100 % 100;
        return CUBLAS_OK;
    case 2:
        *value = version % 100;
        return CUBLAS_OK;
    default:
        return CUBLAS_INVALID_VALUE;
    }
}

NULLGPU_API const char *cublasGetStatusName(int status)
{
    return status == CUBLAS_OK              ? "CUBLAS_STATUS_SUCCESS"
           : status == CUBLAS_ALLOC_FAILED  ? "CUBLAS_STATUS_ALLOC_FAILED"
           : status == CUBLAS_INVALID_VALUE ? "CUBLAS_STATUS_INVALID_VALUE"
                                            : "CUBLAS_STATUS_INTERNAL_ERROR";
}

NULLGPU_API const char *cublasGetStatusString(int status)
{
    return cublasGetStatusName(status);
}
