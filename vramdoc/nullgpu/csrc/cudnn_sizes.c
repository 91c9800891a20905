/* Sizes that cuDNN states for the calls that are not the graph API, other than those of recurrent layers.
 *
 * What a size is on a real GPU depends on the kernel that cuDNN picks, which NVIDIA does not publish. Every figure
 * here is therefore one of: stated by the documentation, measured and published (named there), or an estimate that
 * says so. */
#include "cudnn_types.h"

/* ---- convolutions ----
 * torch comes here only with TORCH_CUDNN_V8_API_DISABLED=1; else its convolutions go through cudnn_backend.c.
 * Workspace: unknown, 0. A real convolution may take a transient workspace, from nothing (implicit GEMM) to hundreds
 * of MiB (Winograd and FFT at large sizes). */

enum { ALGO_IMPLICIT_PRECOMP_GEMM = 1, DEFAULT_MATH = 0 };

struct cudnn_algo_performance {
    int algo;
    int status;
    float milliseconds;
    size_t workspace_bytes;
    int deterministic;
    int math_type;
    int reserved[3];
};

_Static_assert(sizeof(struct cudnn_algo_performance) == 48, "cudnnConvolutionFwdAlgoPerf_t");

/* Algorithm 1 is deterministic and takes every shape in all three directions. */
static int one_algorithm(int requested, int *returned, struct cudnn_algo_performance *results)
{
    if (requested < 1)
        return CUDNN_BAD_PARAM;
    results[0] = (struct cudnn_algo_performance){
        .algo = ALGO_IMPLICIT_PRECOMP_GEMM, .deterministic = 1, .math_type = DEFAULT_MATH};
    *returned = 1;
    return CUDNN_OK;
}

#define CHOOSE(direction)                                                                                       \
    NULLGPU_API int cudnnGetConvolution##direction##Algorithm_v7(                                               \
        void *handle, void *first, void *second, void *convolution, void *third, int requested, int *returned,  \
        struct cudnn_algo_performance *results)                                                                 \
    {                                                                                                           \
        (void)handle, (void)first, (void)second, (void)convolution, (void)third;                                \
        return one_algorithm(requested, returned, results);                                                     \
    }                                                                                                           \
    NULLGPU_API int cudnnFindConvolution##direction##AlgorithmEx(                                               \
        void *handle, void *first, void *first_data, void *second, void *second_data, void *convolution,        \
        void *third, void *third_data, int requested, int *returned, struct cudnn_algo_performance *results)    \
    {                                                                                                           \
        (void)handle, (void)first, (void)first_data, (void)second, (void)second_data, (void)convolution;        \
        (void)third, (void)third_data;                                                                          \
        nullgpu_launched();                                                                                     \
        return one_algorithm(requested, returned, results);                                                     \
    }                                                                                                           \
    NULLGPU_API int cudnnGetConvolution##direction##WorkspaceSize(                                              \
        void *handle, void *first, void *second, void *convolution, void *third, int algo, size_t *bytes)       \
    {                                                                                                           \
        (void)handle, (void)first, (void)second, (void)convolution, (void)third, (void)algo;                    \
        *bytes = 0;                                                                                             \
        return CUDNN_OK;                                                                                        \
    }

CHOOSE(Forward)
CHOOSE(BackwardData)
CHOOSE(BackwardFilter)

/* ---- batch norm ----
 * Unknown, 0. torch normalizes only (no fused activation), for which no mask has to be kept between forward and
 * backward; the real library states a few KiB of workspace for some channels-last kernels. */

NULLGPU_API int cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(
    void *handle, int mode, int operations, void *x, void *z, void *y, void *scale, void *activation, size_t *bytes)
{
    (void)handle, (void)mode, (void)operations, (void)x, (void)z, (void)y, (void)scale, (void)activation;
    *bytes = 0;
    return CUDNN_OK;
}

NULLGPU_API int cudnnGetBatchNormalizationBackwardExWorkspaceSize(
    void *handle, int mode, int operations, void *x, void *y, void *dy, void *dz, void *dx, void *scale,
    void *activation, size_t *bytes)
{
    (void)handle, (void)mode, (void)operations, (void)x, (void)y, (void)dy, (void)dz, (void)dx, (void)scale;
    (void)activation;
    *bytes = 0;
    return CUDNN_OK;
}

NULLGPU_API int cudnnGetBatchNormalizationTrainingExReserveSpaceSize(void *handle, int mode, int operations,
                                                                     void *activation, void *x, size_t *bytes)
{
    (void)handle, (void)mode, (void)operations, (void)activation, (void)x;
    *bytes = 0;
    return CUDNN_OK;
}

/* ---- dropout ----
 * An estimate. The documentation says only that the states are random generators, and the figure differs with the
 * number of multiprocessors; a generator is taken as cuRAND's default one (XORWOW, 48 bytes), and one for each of 256
 * threads on a multiprocessor: 1.3 MiB on an A100. torch keeps one such block for each device. */

enum { DROPOUT_THREADS_PER_MULTIPROCESSOR = 256, DROPOUT_STATE_BYTES = 48 };

NULLGPU_API int cudnnDropoutGetStatesSize(void *handle, size_t *bytes)
{
    (void)handle;
    *bytes = (size_t)nullgpu_current_device()->multiprocessors * DROPOUT_THREADS_PER_MULTIPROCESSOR *
             DROPOUT_STATE_BYTES;
    return CUDNN_OK;
}

/* ---- connectionist temporal classification ----
 * An estimate: the forward variables of the algorithm (one float for each step, sample and position of the label
 * with its blanks), and the normalized probabilities that the gradient is made of. */

static size_t ctc_bytes(const struct cudnn_tensor *probabilities, int longest_label)
{
    size_t steps = (size_t)probabilities->size[0];
    size_t samples = (size_t)probabilities->size[1];
    size_t letters = (size_t)probabilities->size[2];
    size_t positions = 2 * (size_t)longest_label + 1;

    return steps * samples * (positions + letters) * sizeof(float);
}

NULLGPU_API int cudnnGetCTCLossWorkspaceSize(void *handle, const struct cudnn_tensor *probabilities,
                                             void *gradients, const int *labels, const int *label_lengths,
                                             const int *input_lengths, int algo, void *loss, size_t *bytes)
{
    int longest = 0;

    (void)handle, (void)gradients, (void)labels, (void)input_lengths, (void)algo, (void)loss;
    for (int sample = 0; sample < probabilities->size[1]; sample++)
        if (label_lengths[sample] > longest)
            longest = label_lengths[sample];
    *bytes = ctc_bytes(probabilities, longest);
    return CUDNN_OK;
}

NULLGPU_API int cudnnGetCTCLossWorkspaceSize_v8(void *handle, int algo, const struct cudnn_ctc *loss,
                                                const struct cudnn_tensor *probabilities, void *gradients,
                                                size_t *bytes)
{
    (void)handle, (void)algo, (void)gradients;
    *bytes = ctc_bytes(probabilities, loss->max_label_length);
    return CUDNN_OK;
}
