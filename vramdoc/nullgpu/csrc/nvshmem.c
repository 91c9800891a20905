/* NVSHMEM: symmetric memory of a world of which this process is one element. Teams and memory are there; the signals
 * and messages between elements are not (the table, ../abi, makes them fail by name). */
#include "nullgpu.h"

#include <string.h>

enum { NVSHMEM_OK = 0, NVSHMEM_FAILED = 7 };
enum { STATUS_NOT_INITIALIZED = 0, STATUS_INITIALIZED = 2 };
enum { THREAD_MULTIPLE = 3 };

#define TEAMS 1024
#define WORLD 0

static int status = STATUS_NOT_INITIALIZED;
static int team_size[TEAMS] = {[WORLD] = 1};
static int teams = 1;

/* Opaque to the caller, 128 bytes in every version; never looked into. */
NULLGPU_API int nvshmemx_get_uniqueid(char *id)
{
    memset(id, 1, 128);
    return NVSHMEM_OK;
}

NULLGPU_API int nvshmemx_set_attr_uniqueid_args(int rank, int ranks, const void *id, void *attributes)
{
    (void)rank, (void)id, (void)attributes;
    team_size[WORLD] = ranks;
    return NVSHMEM_OK;
}

NULLGPU_API int nvshmemid_init_status(void)
{
    return status;
}

NULLGPU_API int nvshmemid_hostlib_init_attr(int requested, int *provided, unsigned flags, void *attributes)
{
    (void)requested, (void)flags, (void)attributes;
    if (provided)
        *provided = THREAD_MULTIPLE;
    status = STATUS_INITIALIZED;
    return NVSHMEM_OK;
}

NULLGPU_API void nvshmem_init(void)
{
    status = STATUS_INITIALIZED;
}

NULLGPU_API void nvshmemid_hostlib_finalize(void)
{
    status = STATUS_NOT_INITIALIZED;
}

NULLGPU_API void nvshmem_info_get_version(int *major, int *minor)
{
    *major = nullgpu_versions()->nvshmem / 10000;
    *minor = nullgpu_versions()->nvshmem / 100 % 100;
}

NULLGPU_API int nvshmemx_cumodule_init(void *module)
{
    (void)module;
    return NVSHMEM_OK;
}

/* ---- memory: the heap is part of the device's memory ---- */

NULLGPU_API void *nvshmem_malloc(size_t bytes)
{
    void *pointer = NULL;

    return nullgpu_allocate(&pointer, bytes, nullgpu_current_ordinal()) ? NULL : pointer;
}

NULLGPU_API void nvshmem_free(void *pointer)
{
    nullgpu_release(pointer);
}

/* Another element's memory is an address of the same kind; this one's own stands for it. */
NULLGPU_API void *nvshmem_ptr(void *pointer, int element)
{
    (void)element;
    return pointer;
}

/* NULL says that there is no multicast. */
NULLGPU_API void *nvshmemx_mc_ptr(int team, const void *pointer)
{
    (void)team, (void)pointer;
    return NULL;
}

/* ---- teams ---- */

NULLGPU_API int nvshmem_team_n_pes(int team)
{
    return team >= 0 && team < teams ? team_size[team] : -1;
}

NULLGPU_API int nvshmem_team_split_strided(int parent, int start, int stride, int size, const void *configuration,
                                           long mask, int *team)
{
    int added = __atomic_fetch_add(&teams, 1, __ATOMIC_RELAXED);

    (void)parent, (void)start, (void)stride, (void)configuration, (void)mask;
    if (added >= TEAMS)
        return nullgpu_fail("nvshmem_team_split_strided of so many teams", NVSHMEM_FAILED);
    team_size[added] = size;
    *team = added;
    return NVSHMEM_OK;
}

NULLGPU_API void nvshmem_barrier_all(void)
{
}
