/* What the NCCL files share. */
#ifndef NULLGPU_NCCL_H
#define NULLGPU_NCCL_H

#include "nullgpu.h"

enum nccl_status {
    NCCL_OK = 0,
    NCCL_UNHANDLED_CUDA_ERROR = 1,
    NCCL_SYSTEM_ERROR = 2,
    NCCL_INVALID_ARGUMENT = 4,
    NCCL_INVALID_USAGE = 5,
};

struct nccl_communicator {
    int size;
    int rank;
    int device;
};

int nullgpu_nccl_create(struct nccl_communicator **out, int size, int rank);

#endif
