/* cuSPARSELt: matrices in which two of four values are kept. Its descriptors are the caller's memory, 512 bytes or
 * more in every version, of which only the first few are used here. */
#include "nullgpu.h"

#include <string.h>

enum { CUSPARSE_OK = 0, CUSPARSE_NOT_SUPPORTED = 10 };

struct sparselt_matrix {
    int64_t rows, columns;
    int value_type;
};

/* Bytes of one value, by cudaDataType; 0: unknown. */
static size_t value_bytes(int type)
{
    switch (type) {
    case 0: /* float */
    case 10: /* int32 */
        return 4;
    case 2: /* half */
    case 14: /* bfloat16 */
        return 2;
    case 3: /* int8 */
    case 28: /* e4m3 */
    case 29: /* e5m2 */
        return 1;
    default:
        return 0;
    }
}

NULLGPU_API int cusparseLtInit(void **handle)
{
    *handle = nullgpu_new_handle();
    return CUSPARSE_OK;
}

NULLGPU_API int cusparseLtGetVersion(void *handle, int *version)
{
    (void)handle;
    *version = nullgpu_versions()->cusparselt;
    return CUSPARSE_OK;
}

NULLGPU_API int cusparseLtDenseDescriptorInit(void *handle, struct sparselt_matrix *matrix, int64_t rows,
                                              int64_t columns, int64_t leading, uint32_t alignment, int value_type,
                                              int order)
{
    (void)handle, (void)leading, (void)alignment, (void)order;
    *matrix = (struct sparselt_matrix){.rows = rows, .columns = columns, .value_type = value_type};
    return CUSPARSE_OK;
}

NULLGPU_API int cusparseLtStructuredDescriptorInit(void *handle, struct sparselt_matrix *matrix, int64_t rows,
                                                   int64_t columns, int64_t leading, uint32_t alignment,
                                                   int value_type, int order, int sparsity)
{
    (void)sparsity;
    return cusparseLtDenseDescriptorInit(handle, matrix, rows, columns, leading, alignment, value_type, order);
}

/* Half of the values, and where they were: two bits for each that is kept. torch computes with the same shares of the
 * dense size: 9/16 for 16-bit values, 10/16 for 8-bit ones. 32-bit values are kept one of two, with four bits each.
 * The buffer that compressing needs for a moment is unknown, 0. */
NULLGPU_API int cusparseLtSpMMACompressedSize2(void *handle, const struct sparselt_matrix *matrix,
                                               size_t *compressed, size_t *buffer)
{
    size_t bytes = value_bytes(matrix->value_type);
    size_t kept = (size_t)matrix->rows * (size_t)matrix->columns / 2;

    (void)handle;
    if (!bytes)
        return nullgpu_fail("cusparseLtSpMMACompressedSize2 of this data type", CUSPARSE_NOT_SUPPORTED);
    *compressed = kept * bytes + kept * (bytes == 4 ? 4 : 2) / 8;
    if (buffer)
        *buffer = 0;
    return CUSPARSE_OK;
}

/* Unknown, 0. */
NULLGPU_API int cusparseLtMatmulGetWorkspace(void *handle, void *plan, size_t *bytes)
{
    (void)handle, (void)plan;
    *bytes = 0;
    return CUSPARSE_OK;
}

enum algorithm_attribute { CONFIG_ID, CONFIG_MAX_ID, SEARCH_ITERATIONS, SPLIT_K, SPLIT_K_MODE };

/* There is one algorithm, number 0; the highest number is exclusive. */
NULLGPU_API int cusparseLtMatmulAlgGetAttribute(void *handle, void *selection, int attribute, void *value,
                                                size_t bytes)
{
    int answer = attribute == CONFIG_MAX_ID || attribute == SEARCH_ITERATIONS || attribute == SPLIT_K;

    (void)handle, (void)selection;
    if (bytes < sizeof answer)
        return CUSPARSE_NOT_SUPPORTED;
    memset(value, 0, bytes);
    memcpy(value, &answer, sizeof answer);
    return CUSPARSE_OK;
}
