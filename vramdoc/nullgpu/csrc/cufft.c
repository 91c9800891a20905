/* cuFFT: plans and their work area.
 *
 * The work area is an estimate. NVIDIA's documentation says that a plan takes between one and eight times the
 * transformed data, counted as complex elements, and often the least; that least is what is stated here. Real plans of
 * one short dimension may need none. */
#include "nullgpu.h"

enum { CUFFT_OK = 0, CUFFT_INVALID_TYPE = 3 };

/* cudaDataType of complex elements */
enum { COMPLEX_16 = 6, COMPLEX_32 = 4, COMPLEX_64 = 5 };

NULLGPU_API int cufftCreate(int *plan)
{
    static int last;

    *plan = __atomic_add_fetch(&last, 1, __ATOMIC_RELAXED);
    return CUFFT_OK;
}

static size_t complex_bytes(int type)
{
    return type == COMPLEX_64 ? 16 : type == COMPLEX_32 ? 8 : type == COMPLEX_16 ? 4 : 0;
}

/* A transform from or to real data has complex elements for half of its last dimension only. */
static size_t complex_elements(int rank, const long long *size, bool real_on_one_side)
{
    size_t product = 1;

    for (int i = 0; i < rank - 1; i++)
        product *= (size_t)size[i];
    return product * (size_t)(real_on_one_side ? size[rank - 1] / 2 + 1 : size[rank - 1]);
}

NULLGPU_API int cufftXtMakePlanMany(int plan, int rank, const long long *size, const long long *input_embed,
                                    long long input_stride, long long input_distance, int input_type,
                                    const long long *output_embed, long long output_stride,
                                    long long output_distance, int output_type, long long batch, size_t *work_bytes,
                                    int execution_type)
{
    bool real = !complex_bytes(input_type) || !complex_bytes(output_type);
    size_t element = complex_bytes(execution_type);

    (void)plan, (void)input_embed, (void)input_stride, (void)input_distance, (void)output_embed;
    (void)output_stride, (void)output_distance;
    if (!element || rank < 1)
        return CUFFT_INVALID_TYPE;
    *work_bytes = (size_t)batch * complex_elements(rank, size, real) * element;
    return CUFFT_OK;
}
