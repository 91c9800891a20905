/* Device memory in parts, for the driver's virtual memory calls. */
#ifndef NULLGPU_MEMORY_H
#define NULLGPU_MEMORY_H

#include "internal.h"

#define NULLGPU_GRANULARITY ((size_t)2 << 20)

enum nullgpu_device_kind { NULLGPU_MAPPING, NULLGPU_ALLOCATION, NULLGPU_RESERVATION, NULLGPU_SYMBOLS, NULLGPU_IMPORT };

/* ---- addresses.c ---- */

#define NULLGPU_LARGEST_SPAN ((size_t)1 << 45) /* of address space, never touched */

bool nullgpu_open_span(struct nullgpu_ranges *live); /* false: the process has no address space to spare */
uintptr_t nullgpu_span_start(void);                  /* 0 before the first use */
/* An address for bytes (a multiple of the unit) outside of the live ranges; 0 where the span has none. */
uintptr_t nullgpu_take_addresses(size_t bytes, struct nullgpu_ranges *live);
void nullgpu_give_addresses(uintptr_t start, size_t bytes);

/* ---- memory.c ---- */

size_t nullgpu_round_up(size_t bytes);
int nullgpu_reserve(uintptr_t *out, size_t bytes); /* addresses without memory */
int nullgpu_unreserve(uintptr_t start);
int nullgpu_charge(int ordinal, size_t bytes); /* memory without addresses */
void nullgpu_discharge(int ordinal, size_t bytes);
int nullgpu_map(uintptr_t start, size_t bytes, int ordinal, void *handle);
void *nullgpu_unmap(uintptr_t start); /* the handle that was mapped there, or NULL */

#endif
