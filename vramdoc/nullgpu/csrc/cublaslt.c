/* cuBLASLt: descriptors that read back what was set, and one algorithm for every product.
 *
 * The one algorithm needs no workspace. That costs no accuracy: torch allocates the workspace it offers before it
 * asks (its size follows from the device and the environment, not from the answer), so the real library's choice
 * does not show in the memory either. */
#include "nullgpu.h"

#include <stdlib.h>
#include <string.h>

enum { CUBLAS_OK = 0, CUBLAS_ALLOC_FAILED = 3, CUBLAS_INVALID_VALUE = 7 };

int nullgpu_cublas_version(void);

/* ---- objects with numbered attributes: matmul descriptors, matrix layouts, preferences ---- */

#define LT_ATTRIBUTES 64 /* cuBLAS 13 numbers them up to 38 */
#define LT_ATTRIBUTE_BYTES 16

struct lt_object {
    uint8_t value[LT_ATTRIBUTES][LT_ATTRIBUTE_BYTES];
    uint8_t bytes[LT_ATTRIBUTES]; /* how many were set; 0: never, reads as zero */
};

static int lt_create(struct lt_object **out)
{
    *out = calloc(1, sizeof **out);
    return *out ? CUBLAS_OK : CUBLAS_ALLOC_FAILED;
}

static int lt_set(struct lt_object *object, int attribute, const void *value, size_t bytes)
{
    if (!object || !value || attribute < 0 || attribute >= LT_ATTRIBUTES || bytes > LT_ATTRIBUTE_BYTES)
        return CUBLAS_INVALID_VALUE;
    memcpy(object->value[attribute], value, bytes);
    object->bytes[attribute] = (uint8_t)bytes;
    return CUBLAS_OK;
}

/* With no room given, the call only asks how much is needed. */
static int lt_get(const struct lt_object *object, int attribute, void *value, size_t bytes, size_t *written)
{
    if (!object || attribute < 0 || attribute >= LT_ATTRIBUTES || bytes > LT_ATTRIBUTE_BYTES)
        return CUBLAS_INVALID_VALUE;
    if (written)
        *written = object->bytes[attribute] ? object->bytes[attribute] : bytes;
    if (value)
        memcpy(value, object->value[attribute], bytes);
    return CUBLAS_OK;
}

#define LT_OBJECT(name)                                                                                        \
    NULLGPU_API int cublasLt##name##Destroy(struct lt_object *object)                                          \
    {                                                                                                          \
        free(object);                                                                                          \
        return CUBLAS_OK;                                                                                      \
    }                                                                                                          \
    NULLGPU_API int cublasLt##name##SetAttribute(struct lt_object *object, int attribute, const void *value,   \
                                                 size_t bytes)                                                 \
    {                                                                                                          \
        return lt_set(object, attribute, value, bytes);                                                        \
    }                                                                                                          \
    NULLGPU_API int cublasLt##name##GetAttribute(const struct lt_object *object, int attribute, void *value,   \
                                                 size_t bytes, size_t *written)                                \
    {                                                                                                          \
        return lt_get(object, attribute, value, bytes, written);                                               \
    }

LT_OBJECT(MatmulDesc)
LT_OBJECT(MatrixLayout)
LT_OBJECT(MatmulPreference)
LT_OBJECT(MatrixTransformDesc)

enum { DESC_COMPUTE_TYPE = 0, DESC_SCALE_TYPE = 1 };
enum { LAYOUT_TYPE = 0, LAYOUT_ROWS = 2, LAYOUT_COLUMNS = 3, LAYOUT_LEADING = 4, LAYOUT_BATCHES = 5 };

NULLGPU_API int cublasLtMatmulDescCreate(struct lt_object **out, int compute_type, int scale_type)
{
    int status = lt_create(out);

    if (status == CUBLAS_OK) {
        lt_set(*out, DESC_COMPUTE_TYPE, &compute_type, sizeof compute_type);
        lt_set(*out, DESC_SCALE_TYPE, &scale_type, sizeof scale_type);
    }
    return status;
}

NULLGPU_API int cublasLtMatrixLayoutCreate(struct lt_object **out, int type, uint64_t rows, uint64_t columns,
                                           int64_t leading)
{
    int status = lt_create(out);
    int32_t one_batch = 1;

    if (status == CUBLAS_OK) {
        lt_set(*out, LAYOUT_TYPE, &type, sizeof type);
        lt_set(*out, LAYOUT_ROWS, &rows, sizeof rows);
        lt_set(*out, LAYOUT_COLUMNS, &columns, sizeof columns);
        lt_set(*out, LAYOUT_LEADING, &leading, sizeof leading);
        lt_set(*out, LAYOUT_BATCHES, &one_batch, sizeof one_batch);
    }
    return status;
}

NULLGPU_API int cublasLtMatmulPreferenceCreate(struct lt_object **out)
{
    return lt_create(out);
}

NULLGPU_API int cublasLtMatrixTransformDescCreate(struct lt_object **out, int scale_type)
{
    int status = lt_create(out);

    if (status == CUBLAS_OK)
        lt_set(*out, 0, &scale_type, sizeof scale_type);
    return status;
}

/* ---- algorithms ---- */

#define ALGO_SETTINGS 16

/* The caller's memory, 64 bytes that it treats as opaque: one word for each configuration attribute. */
struct lt_algo {
    uint32_t setting[ALGO_SETTINGS];
};

struct lt_heuristic {
    struct lt_algo algo;
    size_t workspace_bytes;
    int state;
    float waves;
    int reserved[4];
};

_Static_assert(sizeof(struct lt_algo) == 64, "cublasLtMatmulAlgo_t");
_Static_assert(sizeof(struct lt_heuristic) == 96, "cublasLtMatmulHeuristicResult_t");

static const struct lt_heuristic only_answer = {.state = CUBLAS_OK, .waves = 1.0f};

NULLGPU_API int cublasLtMatmulAlgoGetHeuristic(void *handle, void *operation, void *a, void *b, void *c, void *d,
                                               void *preference, int requested, struct lt_heuristic *results,
                                               int *returned)
{
    (void)handle, (void)operation, (void)a, (void)b, (void)c, (void)d, (void)preference;
    if (requested < 1)
        return CUBLAS_INVALID_VALUE;
    results[0] = only_answer;
    *returned = 1;
    return CUBLAS_OK;
}

NULLGPU_API int cublasLtMatmulAlgoCheck(void *handle, void *operation, void *a, void *b, void *c, void *d,
                                        const struct lt_algo *algo, struct lt_heuristic *result)
{
    (void)handle, (void)operation, (void)a, (void)b, (void)c, (void)d;
    *result = only_answer;
    if (algo)
        result->algo = *algo;
    return CUBLAS_OK;
}

NULLGPU_API int cublasLtMatmulAlgoInit(void *handle, int compute, int scale, int a, int b, int c, int d, int id,
                                       struct lt_algo *algo)
{
    (void)handle, (void)compute, (void)scale, (void)a, (void)b, (void)c, (void)d;
    *algo = (struct lt_algo){.setting = {(uint32_t)id}};
    return CUBLAS_OK;
}

NULLGPU_API int cublasLtMatmulAlgoGetIds(void *handle, int compute, int scale, int a, int b, int c, int d,
                                         int requested, int *ids, int *returned)
{
    (void)handle, (void)compute, (void)scale, (void)a, (void)b, (void)c, (void)d;
    if (requested < 1)
        return CUBLAS_INVALID_VALUE;
    ids[0] = 0;
    *returned = 1;
    return CUBLAS_OK;
}

NULLGPU_API int cublasLtMatmulAlgoConfigSetAttribute(struct lt_algo *algo, int attribute, const void *value,
                                                     size_t bytes)
{
    if (attribute < 0 || attribute >= ALGO_SETTINGS || bytes > sizeof algo->setting[0])
        return CUBLAS_INVALID_VALUE;
    memcpy(&algo->setting[attribute], value, bytes);
    return CUBLAS_OK;
}

NULLGPU_API int cublasLtMatmulAlgoConfigGetAttribute(const struct lt_algo *algo, int attribute, void *value,
                                                     size_t bytes, size_t *written)
{
    size_t word = sizeof algo->setting[0];

    if (attribute < 0 || attribute >= ALGO_SETTINGS)
        return CUBLAS_INVALID_VALUE;
    if (value)
        memcpy(value, &algo->setting[attribute], bytes < word ? bytes : word);
    if (written)
        *written = word;
    return CUBLAS_OK;
}

/* ---- library ---- */

NULLGPU_API int cublasLtCreate(void **handle)
{
    *handle = nullgpu_new_handle();
    return CUBLAS_OK;
}

NULLGPU_API size_t cublasLtGetVersion(void)
{
    return (size_t)nullgpu_cublas_version();
}

NULLGPU_API size_t cublasLtGetCudartVersion(void)
{
    return (size_t)nullgpu_versions()->cuda;
}
