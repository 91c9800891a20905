/* NCCL: this process is one rank of a world that does not exist.
 *
 * A communicator knows its size and rank. The peers are taken to hold the same data as this process, which is true of
 * a program whose ranks run the same code on data of the same shape; so what this rank knows of its own buffers (see
 * uploads.c) is what it receives. Sums are not scaled by the number of ranks: the values of a training step are
 * unknown anyway, and those that are known (shapes, counts, flags) are compared far more often than added.
 *
 * ncclConfig_t grows with every version, so it is never looked into and never written. */
#include "nccl.h"

#include <stdlib.h>
#include <string.h>

struct unique_id {
    char bytes[128];
};

/* ---- communicators ---- */

int nullgpu_nccl_create(struct nccl_communicator **out, int size, int rank)
{
    if (size < 1 || rank < 0 || rank >= size)
        return NCCL_INVALID_ARGUMENT;
    *out = calloc(1, sizeof **out);
    if (!*out)
        return NCCL_SYSTEM_ERROR;
    (*out)->size = size;
    (*out)->rank = rank;
    (*out)->device = nullgpu_current_ordinal();
    return NCCL_OK;
}

NULLGPU_API int ncclGetVersion(int *version)
{
    *version = nullgpu_versions()->nccl;
    return NCCL_OK;
}

NULLGPU_API int ncclGetUniqueId(struct unique_id *id)
{
    memset(id, 1, sizeof *id); /* not zero: some programs take that for "not set" */
    return NCCL_OK;
}

NULLGPU_API int ncclCommGetUniqueId(struct nccl_communicator *communicator, struct unique_id *id)
{
    (void)communicator;
    return ncclGetUniqueId(id);
}

NULLGPU_API int ncclCommInitRank(struct nccl_communicator **out, int size, struct unique_id id, int rank)
{
    (void)id;
    return nullgpu_nccl_create(out, size, rank);
}

NULLGPU_API int ncclCommInitRankConfig(struct nccl_communicator **out, int size, struct unique_id id, int rank,
                                       void *config)
{
    (void)config;
    return ncclCommInitRank(out, size, id, rank);
}

NULLGPU_API int ncclCommInitRankScalable(struct nccl_communicator **out, int size, int rank, int ids,
                                         struct unique_id *id, void *config)
{
    (void)ids, (void)id, (void)config;
    return nullgpu_nccl_create(out, size, rank);
}

NULLGPU_API int ncclCommInitAll(struct nccl_communicator **out, int count, const int *devices)
{
    for (int rank = 0; rank < count; rank++) {
        int status = nullgpu_nccl_create(&out[rank], count, rank);

        if (status != NCCL_OK)
            return status;
        out[rank]->device = devices ? devices[rank] : rank;
    }
    return NCCL_OK;
}

/* Without the excluded ranks, of which this rank is none. */
NULLGPU_API int ncclCommShrink(struct nccl_communicator *parent, const int *excluded, int count,
                               struct nccl_communicator **out, void *config, int flags)
{
    int below = 0;

    (void)config, (void)flags;
    for (int i = 0; i < count; i++)
        below += excluded[i] < parent->rank;
    return nullgpu_nccl_create(out, parent->size - count, parent->rank - below);
}

/* A rank that was there keeps its number and passes -1. */
NULLGPU_API int ncclCommGrow(struct nccl_communicator *parent, int size, const struct unique_id *id, int rank,
                             struct nccl_communicator **out, void *config)
{
    (void)id, (void)config;
    return nullgpu_nccl_create(out, size, rank < 0 && parent ? parent->rank : rank);
}

NULLGPU_API int ncclCommDestroy(struct nccl_communicator *communicator)
{
    free(communicator);
    return NCCL_OK;
}

NULLGPU_API int ncclCommAbort(struct nccl_communicator *communicator)
{
    return ncclCommDestroy(communicator);
}

NULLGPU_API int ncclCommCount(const struct nccl_communicator *communicator, int *size)
{
    *size = communicator->size;
    return NCCL_OK;
}

NULLGPU_API int ncclCommUserRank(const struct nccl_communicator *communicator, int *rank)
{
    *rank = communicator->rank;
    return NCCL_OK;
}

NULLGPU_API int ncclCommCuDevice(const struct nccl_communicator *communicator, int *device)
{
    *device = communicator->device;
    return NCCL_OK;
}

NULLGPU_API int ncclCommGetAsyncError(struct nccl_communicator *communicator, int *status)
{
    (void)communicator;
    *status = NCCL_OK;
    return NCCL_OK;
}

/* What NCCL itself allocates lies outside torch's allocator and is unknown. */
NULLGPU_API int ncclCommMemStats(struct nccl_communicator *communicator, int statistic, uint64_t *bytes)
{
    (void)communicator, (void)statistic;
    *bytes = 0;
    return NCCL_OK;
}

NULLGPU_API const char *ncclGetErrorString(int status)
{
    switch (status) {
    case NCCL_OK:
        return "no error";
    case NCCL_SYSTEM_ERROR:
        return "unhandled system error";
    case NCCL_INVALID_ARGUMENT:
        return "invalid argument";
    case NCCL_INVALID_USAGE:
        return "invalid usage";
    default:
        return "internal error";
    }
}

NULLGPU_API const char *ncclGetLastError(struct nccl_communicator *communicator)
{
    (void)communicator;
    return "";
}

/* ---- memory and windows ---- */

NULLGPU_API int ncclMemAlloc(void **out, size_t bytes)
{
    return nullgpu_allocate(out, bytes, nullgpu_current_ordinal()) ? NCCL_UNHANDLED_CUDA_ERROR : NCCL_OK;
}

NULLGPU_API int ncclMemFree(void *pointer)
{
    return nullgpu_release(pointer) ? NCCL_INVALID_ARGUMENT : NCCL_OK;
}

struct nccl_window {
    char *start;
    size_t bytes;
};

NULLGPU_API int ncclCommRegister(struct nccl_communicator *communicator, void *buffer, size_t bytes, void **handle)
{
    (void)communicator, (void)buffer, (void)bytes;
    *handle = nullgpu_new_handle();
    return NCCL_OK;
}

NULLGPU_API int ncclCommWindowRegister(struct nccl_communicator *communicator, void *buffer, size_t bytes,
                                       struct nccl_window **out, int flags)
{
    (void)communicator, (void)flags;
    *out = malloc(sizeof **out);
    if (!*out)
        return NCCL_SYSTEM_ERROR;
    **out = (struct nccl_window){buffer, bytes};
    return NCCL_OK;
}

NULLGPU_API int ncclCommWindowDeregister(struct nccl_communicator *communicator, struct nccl_window *window)
{
    (void)communicator;
    free(window);
    return NCCL_OK;
}

NULLGPU_API int ncclWinGetUserPtr(struct nccl_communicator *communicator, struct nccl_window *window, void **out)
{
    (void)communicator;
    *out = window->start;
    return NCCL_OK;
}

/* A peer's window is an address of the same kind; this rank's own stands for it. */
NULLGPU_API int ncclGetPeerDevicePointer(struct nccl_window *window, size_t offset, int peer, void **out)
{
    (void)peer;
    *out = window->start + offset;
    return NCCL_OK;
}

/* NULL says that the fabric has no multicast, which the real library answers on machines without NVSwitch. */
NULLGPU_API int ncclGetLsaMultimemDevicePointer(struct nccl_window *window, size_t offset, void **out)
{
    (void)window, (void)offset;
    *out = NULL;
    return NCCL_OK;
}
