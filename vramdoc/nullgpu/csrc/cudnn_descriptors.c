/* cuDNN descriptors of the calls that are not the graph API. Those that a program reads back, or that a size
 * depends on, are kept; of the others only the object is needed. */
#include "cudnn_types.h"

#include <stdlib.h>
#include <string.h>

#define OBJECT(name, type)                                     \
    NULLGPU_API int cudnnCreate##name##Descriptor(type **out)  \
    {                                                          \
        *out = calloc(1, sizeof **out);                        \
        return *out ? CUDNN_OK : CUDNN_ALLOC_FAILED;           \
    }                                                          \
    NULLGPU_API int cudnnDestroy##name##Descriptor(type *old)  \
    {                                                          \
        free(old);                                             \
        return CUDNN_OK;                                       \
    }

struct cudnn_unread {
    int unused;
};

OBJECT(Tensor, struct cudnn_tensor)
OBJECT(Filter, struct cudnn_tensor)
OBJECT(CTCLoss, struct cudnn_ctc)
OBJECT(Activation, struct cudnn_unread)
OBJECT(Convolution, struct cudnn_unread)
OBJECT(Dropout, struct cudnn_unread)
OBJECT(OpTensor, struct cudnn_unread)
OBJECT(Pooling, struct cudnn_unread)
OBJECT(ReduceTensor, struct cudnn_unread)
OBJECT(SpatialTransformer, struct cudnn_unread)

/* ---- tensors and filters ---- */

NULLGPU_API int cudnnSetTensorNdDescriptor(struct cudnn_tensor *tensor, int data_type, int dimensions,
                                           const int *size, const int *stride)
{
    if (dimensions < 1 || dimensions > CUDNN_MAX_DIMENSIONS)
        return CUDNN_BAD_PARAM;
    tensor->data_type = data_type;
    tensor->dimensions = dimensions;
    memcpy(tensor->size, size, (size_t)dimensions * sizeof *size);
    memcpy(tensor->stride, stride, (size_t)dimensions * sizeof *stride);
    return CUDNN_OK;
}

NULLGPU_API int cudnnGetTensorNdDescriptor(const struct cudnn_tensor *tensor, int requested, int *data_type,
                                           int *dimensions, int *size, int *stride)
{
    int copied = requested < tensor->dimensions ? requested : tensor->dimensions;

    *data_type = tensor->data_type;
    *dimensions = tensor->dimensions;
    memcpy(size, tensor->size, (size_t)copied * sizeof *size);
    memcpy(stride, tensor->stride, (size_t)copied * sizeof *stride);
    return CUDNN_OK;
}

NULLGPU_API int cudnnSetFilterNdDescriptor(struct cudnn_tensor *filter, int data_type, int format, int dimensions,
                                           const int *size)
{
    if (dimensions < 1 || dimensions > CUDNN_MAX_DIMENSIONS)
        return CUDNN_BAD_PARAM;
    filter->data_type = data_type;
    filter->format = format;
    filter->dimensions = dimensions;
    memcpy(filter->size, size, (size_t)dimensions * sizeof *size);
    return CUDNN_OK;
}

NULLGPU_API int cudnnGetFilterNdDescriptor(const struct cudnn_tensor *filter, int requested, int *data_type,
                                           int *format, int *dimensions, int *size)
{
    int copied = requested < filter->dimensions ? requested : filter->dimensions;

    *data_type = filter->data_type;
    *format = filter->format;
    *dimensions = filter->dimensions;
    memcpy(size, filter->size, (size_t)copied * sizeof *size);
    return CUDNN_OK;
}

/* ---- connectionist temporal classification: its workspace depends on the longest label ---- */

NULLGPU_API int cudnnSetCTCLossDescriptor(struct cudnn_ctc *ctc, int data_type)
{
    *ctc = (struct cudnn_ctc){.data_type = data_type};
    return CUDNN_OK;
}

NULLGPU_API int cudnnSetCTCLossDescriptorEx(struct cudnn_ctc *ctc, int data_type, int normalization,
                                            int gradient_mode)
{
    *ctc = (struct cudnn_ctc){
        .data_type = data_type, .normalization = normalization, .gradient_mode = gradient_mode};
    return CUDNN_OK;
}

NULLGPU_API int cudnnSetCTCLossDescriptor_v8(struct cudnn_ctc *ctc, int data_type, int normalization,
                                             int gradient_mode, int max_label_length)
{
    cudnnSetCTCLossDescriptorEx(ctc, data_type, normalization, gradient_mode);
    ctc->max_label_length = max_label_length;
    return CUDNN_OK;
}

NULLGPU_API int cudnnSetCTCLossDescriptor_v9(struct cudnn_ctc *ctc, int data_type, int normalization,
                                             int gradient_mode, int max_label_length)
{
    return cudnnSetCTCLossDescriptor_v8(ctc, data_type, normalization, gradient_mode, max_label_length);
}
