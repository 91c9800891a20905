/* Shared by the files of the engine's core only; libraries use nullgpu.h. */
#ifndef NULLGPU_INTERNAL_H
#define NULLGPU_INTERNAL_H

#include "nullgpu.h"

/* ---- ranges.c: address ranges that do not overlap, sorted, found by binary search ---- */

struct nullgpu_range {
    uintptr_t start;
    size_t bytes;
    int ordinal;   /* device it belongs to, -1: host */
    int kind;      /* meaning is the table's own */
    void *payload; /* likewise */
};

struct nullgpu_ranges {
    struct nullgpu_range *items;
    size_t count, capacity;
};

/* The range that holds address, or NULL. The pointer is good until the table changes. */
struct nullgpu_range *nullgpu_ranges_find(struct nullgpu_ranges *ranges, uintptr_t address);
/* Index of the first range that ends after address. */
size_t nullgpu_ranges_lower(const struct nullgpu_ranges *ranges, uintptr_t address);
bool nullgpu_ranges_insert(struct nullgpu_ranges *ranges, struct nullgpu_range range); /* false: no host memory */
void nullgpu_ranges_remove(struct nullgpu_ranges *ranges, size_t index);

/* ---- device.c ---- */

int nullgpu_set_device(int ordinal);
int nullgpu_machine_count(void); /* devices, CUDA_VISIBLE_DEVICES or not */
const struct nullgpu_device *nullgpu_machine_device(int index);
void nullgpu_used(void); /* the calling thread has used a device: see exit.c */
bool nullgpu_thread_used(void);

/* ---- memory.c ---- */

struct nullgpu_memory_info {
    size_t total, free, used, used_high; /* used: what the process allocated, without the context */
};

struct nullgpu_memory_info nullgpu_memory_info(int ordinal);
void nullgpu_reset_used_high(int ordinal);
/* The allocation or mapping that holds pointer: false where there is none. */
bool nullgpu_address_range(const void *pointer, struct nullgpu_range *found);
bool nullgpu_asked_for_memory(void);
uint64_t nullgpu_refused(void); /* allocations refused so far */
int nullgpu_import(void **out, size_t bytes, int ordinal); /* of another process; nullgpu_release gives it back */
/* Memory that belongs to the engine: what a symbol of device code resolves to. */
void *nullgpu_symbol_address(void);

/* ---- host.c ---- */

enum nullgpu_host_kind { NULLGPU_PINNED = 1, NULLGPU_REGISTERED, NULLGPU_MANAGED };

int nullgpu_host_allocate(void **out, size_t bytes, enum nullgpu_host_kind kind);
int nullgpu_host_free(void *pointer, enum nullgpu_host_kind kind);
int nullgpu_host_register(void *pointer, size_t bytes);
int nullgpu_host_unregister(void *pointer);
void nullgpu_host_zero(void *pointer, size_t bytes); /* any host memory; pinned pages go back to the system */
bool nullgpu_host_range(const void *pointer, struct nullgpu_range *found);

/* ---- uploads.c ---- */

uint64_t nullgpu_unknown_reads(void);
uint64_t nullgpu_launches(void);

/* ---- capture.c ---- */

struct nullgpu_capture; /* a capture under way */
struct nullgpu_capture *nullgpu_capture_of(void *stream);

/* ---- cudart_errors.c ---- */

int nullgpu_result(int status); /* remembers a failure for cudaGetLastError, returns it */

/* ---- cudart_kernels.c ---- */

int nullgpu_launch(void);                                  /* a status */
int nullgpu_occupancy(int threads, size_t dynamic_shared); /* blocks on one multiprocessor */

/* ---- lookup.c: driver functions by name ---- */

struct nullgpu_named_function {
    const char *name;
    void *function;
};

extern const struct nullgpu_named_function nullgpu_driver_functions[]; /* generated, sorted by name */
extern const size_t nullgpu_driver_function_count;
/* Never NULL: an unknown name gets a function that fails loudly. *known tells them apart. */
void *nullgpu_driver_function(const char *name, int cuda_version, bool *known);

#endif
