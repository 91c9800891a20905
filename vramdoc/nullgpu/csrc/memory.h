/* Device memory in parts, for the driver's virtual memory calls. */
#ifndef NULLGPU_MEMORY_H
#define NULLGPU_MEMORY_H

#include "internal.h"

#define NULLGPU_GRANULARITY ((size_t)2 << 20)

enum nullgpu_device_kind { NULLGPU_MAPPING, NULLGPU_ALLOCATION, NULLGPU_RESERVATION, NULLGPU_SYMBOLS, NULLGPU_IMPORT };

size_t nullgpu_round_up(size_t bytes);
int nullgpu_reserve(uintptr_t *out, size_t bytes); /* addresses without memory */
int nullgpu_unreserve(uintptr_t start);
int nullgpu_charge(int ordinal, size_t bytes); /* memory without addresses */
void nullgpu_discharge(int ordinal, size_t bytes);
int nullgpu_map(uintptr_t start, size_t bytes, int ordinal, void *handle);
void *nullgpu_unmap(uintptr_t start); /* the handle that was mapped there, or NULL */

#endif
