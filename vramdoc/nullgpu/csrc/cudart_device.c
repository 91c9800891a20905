/* libcudart: devices, their properties and attributes, versions. */
#include <stdio.h>
#include <string.h>

#include "internal.h"

/* cudaDeviceProp as CUDA 12 lays it out (cudaGetDeviceProperties_v2). */
struct properties_12 {
    char name[256], uuid[16], luid[8];
    unsigned luid_mask;
    size_t total_bytes, shared_per_block;
    int registers_per_block, warp_size;
    size_t memory_pitch;
    int threads_per_block, threads_dim[3], grid_size[3], clock_khz;
    size_t constant_bytes;
    int major, minor;
    size_t texture_alignment, texture_pitch_alignment;
    int device_overlap, multiprocessors, execution_timeout, integrated, maps_host_memory, compute_mode;
    int textures[27], surfaces[13];
    size_t surface_alignment;
    int concurrent_kernels, ecc, pci_bus, pci_device, pci_domain, tcc, async_engines, unified_addressing;
    int memory_clock_khz, memory_bus_bits, l2_bytes, persisting_l2_bytes, threads_per_multiprocessor;
    int stream_priorities, global_l1, local_l1;
    size_t shared_per_multiprocessor;
    int registers_per_multiprocessor, managed_memory, multi_gpu_board, multi_gpu_board_group, host_native_atomics;
    int single_to_double_ratio, pageable_access, concurrent_managed_access, preemption, host_pointer_registered;
    int cooperative_launch, cooperative_multi_device_launch;
    size_t shared_per_block_optin;
    int pageable_by_host_tables, direct_managed_access, blocks_per_multiprocessor, access_policy_window;
    size_t reserved_shared_per_block;
    int host_register, sparse_arrays, host_register_read_only, timeline_semaphores, memory_pools, rdma;
    unsigned rdma_flush;
    int rdma_ordering;
    unsigned pool_handles;
    int deferred_arrays, ipc_events, cluster_launch, unified_functions, reserved[63];
};

/* The same as CUDA 13 lays it out. */
struct properties_13 {
    char name[256], uuid[16], luid[8];
    unsigned luid_mask;
    size_t total_bytes, shared_per_block;
    int registers_per_block, warp_size;
    size_t memory_pitch;
    int threads_per_block, threads_dim[3], grid_size[3];
    size_t constant_bytes;
    int major, minor;
    size_t texture_alignment, texture_pitch_alignment;
    int multiprocessors, integrated, maps_host_memory;
    int textures[26], surfaces[13];
    size_t surface_alignment;
    int concurrent_kernels, ecc, pci_bus, pci_device, pci_domain, tcc, async_engines, unified_addressing;
    int memory_bus_bits, l2_bytes, persisting_l2_bytes, threads_per_multiprocessor;
    int stream_priorities, global_l1, local_l1;
    size_t shared_per_multiprocessor;
    int registers_per_multiprocessor, managed_memory, multi_gpu_board, multi_gpu_board_group, host_native_atomics;
    int pageable_access, concurrent_managed_access, preemption, host_pointer_registered, cooperative_launch;
    size_t shared_per_block_optin;
    int pageable_by_host_tables, direct_managed_access, blocks_per_multiprocessor, access_policy_window;
    size_t reserved_shared_per_block;
    int host_register, sparse_arrays, host_register_read_only, timeline_semaphores, memory_pools, rdma;
    unsigned rdma_flush;
    int rdma_ordering;
    unsigned pool_handles;
    int deferred_arrays, ipc_events, cluster_launch, unified_functions, numa_config, numa_id, mps, host_numa_id;
    unsigned pci_ids[2];
    int numa_multinode, reserved[56];
};

_Static_assert(sizeof(struct properties_12) == 1032, "cudaDeviceProp of CUDA 12 has 1032 bytes");
_Static_assert(sizeof(struct properties_13) == 1008, "cudaDeviceProp of CUDA 13 has 1008 bytes");
_Static_assert(offsetof(struct properties_12, concurrent_kernels) == 576, "cudaDeviceProp of CUDA 12");
_Static_assert(offsetof(struct properties_13, concurrent_kernels) == 560, "cudaDeviceProp of CUDA 13");
_Static_assert(offsetof(struct properties_12, shared_per_block_optin) == 696, "cudaDeviceProp of CUDA 12");
_Static_assert(offsetof(struct properties_13, shared_per_block_optin) == 672, "cudaDeviceProp of CUDA 13");

enum {
    WARP = 32,
    THREADS_PER_BLOCK = 1024,
    SHARED_PER_BLOCK = 48 << 10, /* without opting in for more */
    RESERVED_SHARED = 1 << 10,   /* the driver's own in each block, from 8.0 on */
    REGISTERS = 64 << 10,
    CONSTANT_BYTES = 64 << 10,
    GRID_X = 2147483647,
    GRID_YZ = 65535,
};

static int reserved_shared(const struct nullgpu_device *device) { return device->major >= 8 ? RESERVED_SHARED : 0; }

/* What both layouts have, under the same names; so a macro rather than a function. */
#define FILL_COMMON(out, device)                                                                                \
    do {                                                                                                        \
        memset((out), 0, sizeof *(out));                                                                        \
        strcpy((out)->name, (device)->name);                                                                    \
        (out)->uuid[15] = (char)((device)->index + 1);                                                          \
        (out)->total_bytes = (device)->total_bytes;                                                             \
        (out)->shared_per_block = SHARED_PER_BLOCK;                                                             \
        (out)->registers_per_block = (out)->registers_per_multiprocessor = REGISTERS;                           \
        (out)->warp_size = WARP;                                                                                \
        (out)->memory_pitch = GRID_X;                                                                           \
        (out)->threads_per_block = (out)->threads_dim[0] = (out)->threads_dim[1] = THREADS_PER_BLOCK;           \
        (out)->threads_dim[2] = 64;                                                                             \
        (out)->grid_size[0] = GRID_X;                                                                           \
        (out)->grid_size[1] = (out)->grid_size[2] = GRID_YZ;                                                    \
        (out)->constant_bytes = CONSTANT_BYTES;                                                                 \
        (out)->major = (device)->major;                                                                         \
        (out)->minor = (device)->minor;                                                                         \
        (out)->texture_alignment = (out)->surface_alignment = 512;                                              \
        (out)->texture_pitch_alignment = WARP;                                                                  \
        (out)->multiprocessors = (device)->multiprocessors;                                                     \
        (out)->maps_host_memory = (out)->concurrent_kernels = (out)->unified_addressing = 1;                    \
        (out)->pci_bus = (device)->index + 1;                                                                   \
        (out)->async_engines = 3;                                                                               \
        (out)->l2_bytes = (int)(device)->l2_bytes;                                                              \
        (out)->threads_per_multiprocessor = (device)->threads_per_multiprocessor;                               \
        (out)->blocks_per_multiprocessor = (device)->blocks_per_multiprocessor;                                 \
        (out)->stream_priorities = (out)->global_l1 = (out)->local_l1 = (out)->managed_memory = 1;              \
        (out)->shared_per_multiprocessor = (device)->shared_per_multiprocessor;                                 \
        (out)->shared_per_block_optin = (device)->shared_per_block;                                             \
        (out)->reserved_shared_per_block = (size_t)reserved_shared(device);                                     \
        (out)->concurrent_managed_access = (out)->preemption = (out)->host_pointer_registered = 1;              \
        (out)->cooperative_launch = (out)->host_register = (out)->memory_pools = 1;                             \
        (out)->ipc_events = (out)->unified_functions = 1;                                                       \
        (out)->cluster_launch = (device)->major >= 9;                                                           \
    } while (0)

NULLGPU_API int cudaGetDeviceProperties_v2(struct properties_12 *out, int ordinal)
{
    const struct nullgpu_device *device = nullgpu_device(ordinal);
    if (!device)
        return nullgpu_result(NULLGPU_INVALID_DEVICE);
    FILL_COMMON(out, device);
    out->device_overlap = 1;
    return NULLGPU_SUCCESS;
}

NULLGPU_API int nullgpu_v13_cudaGetDeviceProperties(struct properties_13 *out, int ordinal)
{
    const struct nullgpu_device *device = nullgpu_device(ordinal);
    if (!device)
        return nullgpu_result(NULLGPU_INVALID_DEVICE);
    FILL_COMMON(out, device);
    return NULLGPU_SUCCESS;
}
NULLGPU_CUDA13(cudaGetDeviceProperties);

/* The name without _v2 in CUDA 12 is CUDA 11's structure: no program of today asks for it. */
NULLGPU_API int nullgpu_v12_cudaGetDeviceProperties(void *out, int ordinal)
{
    (void)out, (void)ordinal;
    return nullgpu_fail("cudaGetDeviceProperties of CUDA 11", NULLGPU_NOT_SUPPORTED);
}
NULLGPU_CUDA12(cudaGetDeviceProperties);

/* cudaDeviceAttr and CUdevice_attribute have the same numbers. An attribute that is not here is one that the device
 * lacks: 0, as the driver says for features. */
NULLGPU_API int cudaDeviceGetAttribute(int *value, int attribute, int ordinal)
{
    const struct nullgpu_device *device = nullgpu_device(ordinal);
    if (!device)
        return nullgpu_result(NULLGPU_INVALID_DEVICE);
    const struct {
        int attribute, value;
    } values[] = {
        {1, THREADS_PER_BLOCK},
        {2, THREADS_PER_BLOCK}, /* of a block's dimensions x, y, z */
        {3, THREADS_PER_BLOCK},
        {4, 64},
        {5, GRID_X},
        {6, GRID_YZ},
        {7, GRID_YZ},
        {8, SHARED_PER_BLOCK},
        {9, CONSTANT_BYTES},
        {10, WARP},
        {11, GRID_X}, /* memory pitch */
        {12, REGISTERS},
        {14, 512}, /* texture alignment */
        {15, 1},   /* copies overlap kernels */
        {16, device->multiprocessors},
        {19, 1}, /* maps host memory */
        {30, 512}, /* surface alignment */
        {31, 1},   /* concurrent kernels */
        {33, device->index + 1}, /* PCI bus */
        {38, (int)device->l2_bytes},
        {39, device->threads_per_multiprocessor},
        {40, 3}, /* copy engines */
        {41, 1}, /* unified addressing */
        {51, WARP}, /* texture pitch alignment */
        {75, device->major},
        {76, device->minor},
        {78, 1}, /* stream priorities */
        {79, 1}, /* global L1 */
        {80, 1}, /* local L1 */
        {81, (int)device->shared_per_multiprocessor},
        {82, REGISTERS},
        {83, 1}, /* managed memory */
        {89, 1}, /* concurrent managed access */
        {90, 1}, /* preemption */
        {91, 1}, /* registered host pointers */
        {95, 1}, /* cooperative launch */
        {97, (int)device->shared_per_block},
        {99, 1},  /* host registration */
        {102, 1}, /* virtual memory management */
        {103, 1}, /* its handles as file descriptors */
        {106, device->blocks_per_multiprocessor},
        {111, reserved_shared(device)},
        {115, 1}, /* memory pools */
        {120, device->major >= 9}, /* cluster launch */
        {124, 1}, /* unified function pointers */
    };
    *value = 0;
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        if (values[i].attribute == attribute)
            *value = values[i].value;
    return NULLGPU_SUCCESS;
}

NULLGPU_API int cudaGetDeviceCount(int *count)
{
    *count = nullgpu_device_count();
    return *count ? NULLGPU_SUCCESS : nullgpu_result(NULLGPU_NO_DEVICE);
}

NULLGPU_API int cudaGetDevice(int *ordinal)
{
    *ordinal = nullgpu_current_ordinal();
    return nullgpu_device_count() ? NULLGPU_SUCCESS : nullgpu_result(NULLGPU_NO_DEVICE);
}

NULLGPU_API int cudaSetDevice(int ordinal) { return nullgpu_result(nullgpu_set_device(ordinal)); }

NULLGPU_API int cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
    NULLGPU_SET(least, 0);
    NULLGPU_SET(greatest, -5);
    return NULLGPU_SUCCESS;
}

NULLGPU_API int cudaDeviceGetPCIBusId(char *out, int length, int ordinal)
{
    const struct nullgpu_device *device = nullgpu_device(ordinal);
    if (!device || length < 13)
        return nullgpu_result(NULLGPU_INVALID_VALUE);
    snprintf(out, (size_t)length, "0000:%02x:00.0", device->index + 1);
    return NULLGPU_SUCCESS;
}

NULLGPU_API int cudaDeviceCanAccessPeer(int *can, int ordinal, int peer)
{
    if (!nullgpu_device(ordinal) || !nullgpu_device(peer))
        return nullgpu_result(NULLGPU_INVALID_DEVICE);
    *can = ordinal != peer;
    return NULLGPU_SUCCESS;
}

NULLGPU_API int cudaDeviceEnablePeerAccess(int peer, unsigned flags)
{
    (void)flags;
    bool possible = nullgpu_device(peer) && peer != nullgpu_current_ordinal();
    return nullgpu_result(possible ? NULLGPU_SUCCESS : NULLGPU_INVALID_DEVICE);
}

/* ---- versions: those torch was built with, so that it finds what it expects ---- */

static int report_version(int *out, int major)
{
    int built_with = nullgpu_versions()->cuda;
    *out = built_with / 1000 == major ? built_with : 1000 * major;
    return NULLGPU_SUCCESS;
}

NULLGPU_API int nullgpu_v12_cudaRuntimeGetVersion(int *out) { return report_version(out, 12); }
NULLGPU_CUDA12(cudaRuntimeGetVersion);
NULLGPU_API int nullgpu_v13_cudaRuntimeGetVersion(int *out) { return report_version(out, 13); }
NULLGPU_CUDA13(cudaRuntimeGetVersion);
NULLGPU_API int nullgpu_v12_cudaDriverGetVersion(int *out) { return report_version(out, 12); }
NULLGPU_CUDA12(cudaDriverGetVersion);
NULLGPU_API int nullgpu_v13_cudaDriverGetVersion(int *out) { return report_version(out, 13); }
NULLGPU_CUDA13(cudaDriverGetVersion);
