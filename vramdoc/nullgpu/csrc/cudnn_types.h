/* What the cuDNN files share: statuses, data types, and the descriptors that more than one of them reads. */
#ifndef NULLGPU_CUDNN_TYPES_H
#define NULLGPU_CUDNN_TYPES_H

#include "nullgpu.h"

enum cudnn_status {
    CUDNN_OK = 0,
    CUDNN_BAD_PARAM = 2000,
    CUDNN_NOT_SUPPORTED = 3000,
    CUDNN_ALLOC_FAILED = 4003,
};

enum cudnn_data_type {
    CUDNN_FLOAT = 0,
    CUDNN_DOUBLE = 1,
    CUDNN_HALF = 2,
    CUDNN_INT8 = 3,
    CUDNN_INT32 = 4,
    CUDNN_UINT8 = 6,
    CUDNN_BFLOAT16 = 9,
    CUDNN_INT64 = 10,
    CUDNN_BOOLEAN = 11,
};

#define CUDNN_MAX_DIMENSIONS 8

/* A tensor or a filter; a filter has a format in place of strides. */
struct cudnn_tensor {
    int data_type;
    int format;
    int dimensions;
    int size[CUDNN_MAX_DIMENSIONS];
    int stride[CUDNN_MAX_DIMENSIONS];
};

struct cudnn_ctc {
    int data_type;
    int normalization;
    int gradient_mode;
    int max_label_length; /* 0 where the older setters were used: then the labels are in host memory */
};

/* Bytes of one element; 0 for a type that no descriptor here takes. */
size_t nullgpu_cudnn_element_bytes(int data_type);

#endif
