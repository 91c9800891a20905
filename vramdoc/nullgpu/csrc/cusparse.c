/* cuSPARSE: the sizes of results that depend on where the values are. Everything else is in the table (../abi);
 * workspace sizes are unknown and 0 there, but for the product of two sparse matrices.
 *
 * Where the values are is not known here, so the number of entries of a result follows a rule: see each. */
#include "nullgpu.h"

#include <stdlib.h>

enum { CUSPARSE_OK = 0, CUSPARSE_ALLOC_FAILED = 2 };

struct sparse_matrix {
    int64_t rows, columns, entries;
    size_t entry_bytes; /* value and column index */
};

static size_t value_bytes(int type)
{
    switch (type) {
    case 5: /* complex of double */
        return 16;
    case 1: /* double */
    case 4: /* complex of float */
        return 8;
    case 2:  /* half */
    case 14: /* bfloat16 */
        return 2;
    default:
        return 4;
    }
}

/* cusparseIndexType_t: 16, 32 and 64 bits are 1, 2 and 3. */
static size_t index_bytes(int type)
{
    return type == 3 ? 8 : type == 1 ? 2 : 4;
}

static int create(struct sparse_matrix **out, int64_t rows, int64_t columns, int64_t entries, int index_type,
                  int value_type)
{
    *out = malloc(sizeof **out);
    if (!*out)
        return CUSPARSE_ALLOC_FAILED;
    **out = (struct sparse_matrix){rows, columns, entries, value_bytes(value_type) + index_bytes(index_type)};
    return CUSPARSE_OK;
}

NULLGPU_API int cusparseCreateCsr(struct sparse_matrix **out, int64_t rows, int64_t columns, int64_t entries,
                                  void *offsets, void *indices, void *values, int offset_type, int index_type,
                                  int base, int value_type)
{
    (void)offsets, (void)indices, (void)values, (void)offset_type, (void)base;
    return create(out, rows, columns, entries, index_type, value_type);
}

NULLGPU_API int cusparseCreateCoo(struct sparse_matrix **out, int64_t rows, int64_t columns, int64_t entries,
                                  void *row_indices, void *column_indices, void *values, int index_type, int base,
                                  int value_type)
{
    (void)row_indices, (void)column_indices, (void)values, (void)base;
    return create(out, rows, columns, entries, index_type, value_type);
}

NULLGPU_API int cusparseDestroySpMat(struct sparse_matrix *matrix)
{
    free(matrix);
    return CUSPARSE_OK;
}

NULLGPU_API int cusparseSpMatGetSize(const struct sparse_matrix *matrix, int64_t *rows, int64_t *columns,
                                     int64_t *entries)
{
    *rows = matrix->rows;
    *columns = matrix->columns;
    *entries = matrix->entries;
    return CUSPARSE_OK;
}

NULLGPU_API const char *cusparseGetErrorName(int status)
{
    return status == CUSPARSE_OK             ? "CUSPARSE_STATUS_SUCCESS"
           : status == CUSPARSE_ALLOC_FAILED ? "CUSPARSE_STATUS_ALLOC_FAILED"
                                             : "CUSPARSE_STATUS_NOT_SUPPORTED";
}

NULLGPU_API const char *cusparseGetErrorString(int status)
{
    return cusparseGetErrorName(status);
}

/* ---- sum of two sparse matrices ----
 * Rule: their entries do not coincide, which is the most there can be. */

NULLGPU_API int cusparseXcsrgeam2Nnz(void *handle, int rows, int columns, void *a, int a_entries, void *a_offsets,
                                     void *a_indices, void *b, int b_entries, void *b_offsets, void *b_indices,
                                     void *c, int *c_offsets, int *total, void *workspace)
{
    int64_t sum = (int64_t)a_entries + b_entries;
    int64_t places = (int64_t)rows * columns;

    (void)handle, (void)a, (void)a_offsets, (void)a_indices, (void)b, (void)b_offsets, (void)b_indices;
    (void)c, (void)c_offsets, (void)workspace;
    NULLGPU_SET(total, (int)(sum < places ? sum : places));
    return CUSPARSE_OK;
}

/* ---- product of two sparse matrices ----
 * Rule: entries are spread evenly, so every entry of the first matrix meets entries(b) / rows(b) of the second, and
 * each of these products falls anywhere in the result. The workspace that holds the products before those of one
 * place are summed is an estimate; the documentation says that it grows with their number. */

static double products(const struct sparse_matrix *a, const struct sparse_matrix *b)
{
    return b->rows ? (double)a->entries * (double)b->entries / (double)b->rows : 0.0;
}

/* 1 - exp(-x) from arithmetic alone: the engine links no libm. exp(x) is (1 + x/256)^256 within 0.2 % for x up to 1. */
static double share_hit(double x)
{
    double power = 1.0 + x / 256.0;

    if (x < 1e-6)
        return x;
    for (int i = 0; i < 8; i++)
        power *= power;
    return 1.0 - 1.0 / power;
}

static int64_t expected_entries(const struct sparse_matrix *a, const struct sparse_matrix *b)
{
    double places = (double)a->rows * (double)b->columns;

    return places > 0 ? (int64_t)(places * share_hit(products(a, b) / places) + 0.5) : 0;
}

NULLGPU_API int cusparseSpGEMM_workEstimation(void *handle, int op_a, int op_b, const void *alpha,
                                              const struct sparse_matrix *a, const struct sparse_matrix *b,
                                              const void *beta, struct sparse_matrix *c, int compute, int algorithm,
                                              void *descriptor, size_t *bytes, void *buffer)
{
    (void)handle, (void)op_a, (void)op_b, (void)alpha, (void)b, (void)beta, (void)c, (void)compute;
    (void)algorithm, (void)descriptor, (void)buffer;
    *bytes = (size_t)(a->rows + 1) * sizeof(int64_t);
    return CUSPARSE_OK;
}

/* Called twice: without a buffer for its size, then with it; only then is the result's size decided. */
NULLGPU_API int cusparseSpGEMM_compute(void *handle, int op_a, int op_b, const void *alpha,
                                       const struct sparse_matrix *a, const struct sparse_matrix *b,
                                       const void *beta, struct sparse_matrix *c, int compute, int algorithm,
                                       void *descriptor, size_t *bytes, void *buffer)
{
    (void)handle, (void)op_a, (void)op_b, (void)alpha, (void)beta, (void)compute, (void)algorithm;
    (void)descriptor;
    if (buffer) {
        c->entries = expected_entries(a, b);
        nullgpu_launched();
    } else {
        *bytes = (size_t)products(a, b) * a->entry_bytes;
    }
    return CUSPARSE_OK;
}
