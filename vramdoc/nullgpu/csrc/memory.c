/* Device memory: an account for each device, and what lies at which address. No byte of it exists.
 *
 * Every kind of allocation takes its addresses from one span (addresses.c), so that "is this a device pointer" is one
 * comparison. Sizes are counted in units of 2 MiB, as the driver maps them. The total is what the driver reports
 * for the device; the context's share of it is gone before the first allocation. */
#include <pthread.h>

#include "memory.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct nullgpu_ranges live;     /* allocations, reservations */
static struct nullgpu_ranges mappings; /* physical memory within reservations */
static size_t used[NULLGPU_MAX_DEVICES], used_high[NULLGPU_MAX_DEVICES];
static uint64_t refused;

static void lock_memory(void) { pthread_mutex_lock(&lock); }
static void unlock_memory(void) { pthread_mutex_unlock(&lock); }

/* A child may be forked while another thread allocates. */
__attribute__((constructor)) static void survive_forks(void)
{
    pthread_atfork(lock_memory, unlock_memory, unlock_memory);
}

size_t nullgpu_round_up(size_t bytes)
{
    size_t units = bytes / NULLGPU_GRANULARITY + (bytes % NULLGPU_GRANULARITY != 0);
    return (units ? units : 1) * NULLGPU_GRANULARITY;
}

/* Whether the device can give bytes; counts them if so. The lock is held. */
static bool charge(int ordinal, size_t bytes)
{
    const struct nullgpu_device *device = nullgpu_device(ordinal);
    size_t taken = device->context_bytes + used[ordinal];
    bool full = taken > device->total_bytes || bytes > device->total_bytes - taken;
    if (full && nullgpu_limited()) {
        refused++;
        nullgpu_log("refused %zu bytes on device %d with %zu in use", bytes, ordinal, used[ordinal]);
        return false;
    }
    used[ordinal] += bytes;
    if (used[ordinal] > used_high[ordinal])
        used_high[ordinal] = used[ordinal];
    return true;
}

static int allocate_locked(void **out, size_t bytes, int ordinal)
{
    if (!charge(ordinal, bytes))
        return NULLGPU_OUT_OF_MEMORY;
    uintptr_t start = nullgpu_take_addresses(bytes, &live);
    struct nullgpu_range range = {start, bytes, ordinal, NULLGPU_ALLOCATION, NULL};
    if (!start || !nullgpu_ranges_insert(&live, range)) {
        used[ordinal] -= bytes;
        return NULLGPU_OUT_OF_MEMORY;
    }
    *out = (void *)start;
    return NULLGPU_SUCCESS;
}

int nullgpu_allocate(void **out, size_t bytes, int ordinal)
{
    if (!nullgpu_device(ordinal))
        return NULLGPU_INVALID_DEVICE;
    *out = NULL;
    if (bytes == 0)
        return NULLGPU_SUCCESS;
    if (bytes > NULLGPU_LARGEST_SPAN)
        return NULLGPU_OUT_OF_MEMORY;
    nullgpu_used();
    lock_memory();
    int status = allocate_locked(out, nullgpu_round_up(bytes), ordinal);
    unlock_memory();
    nullgpu_log("allocate %zu bytes on device %d: %p", bytes, ordinal, *out);
    return status;
}

/* Memory that another process holds and pays for: an address here. */
int nullgpu_import(void **out, size_t bytes, int ordinal)
{
    *out = NULL;
    if (!nullgpu_device(ordinal) || bytes == 0 || bytes > NULLGPU_LARGEST_SPAN)
        return NULLGPU_INVALID_VALUE;
    lock_memory();
    struct nullgpu_range range = {nullgpu_take_addresses(nullgpu_round_up(bytes), &live), nullgpu_round_up(bytes), ordinal,
                                  NULLGPU_IMPORT, NULL};
    bool done = range.start && nullgpu_ranges_insert(&live, range);
    unlock_memory();
    *out = done ? (void *)range.start : NULL;
    return done ? NULLGPU_SUCCESS : NULLGPU_OUT_OF_MEMORY;
}

int nullgpu_release(void *pointer)
{
    if (!pointer)
        return NULLGPU_SUCCESS;
    lock_memory();
    struct nullgpu_range *range = nullgpu_ranges_find(&live, (uintptr_t)pointer);
    bool known = range && range->start == (uintptr_t)pointer &&
                 (range->kind == NULLGPU_ALLOCATION || range->kind == NULLGPU_IMPORT);
    if (known) {
        if (range->kind == NULLGPU_ALLOCATION)
            used[range->ordinal] -= range->bytes;
        nullgpu_give_addresses(range->start, range->bytes);
        nullgpu_ranges_remove(&live, (size_t)(range - live.items));
    }
    unlock_memory();
    nullgpu_log("free %p%s", pointer, known ? "" : ": unknown");
    return known ? NULLGPU_SUCCESS : NULLGPU_INVALID_VALUE;
}

int nullgpu_reserve(uintptr_t *out, size_t bytes)
{
    lock_memory();
    *out = nullgpu_take_addresses(nullgpu_round_up(bytes), &live);
    struct nullgpu_range range = {*out, nullgpu_round_up(bytes), 0, NULLGPU_RESERVATION, NULL};
    bool done = *out && nullgpu_ranges_insert(&live, range);
    unlock_memory();
    return done ? NULLGPU_SUCCESS : NULLGPU_OUT_OF_MEMORY;
}

int nullgpu_unreserve(uintptr_t start)
{
    lock_memory();
    struct nullgpu_range *range = nullgpu_ranges_find(&live, start);
    bool known = range && range->start == start && range->kind == NULLGPU_RESERVATION;
    if (known) {
        nullgpu_give_addresses(range->start, range->bytes);
        nullgpu_ranges_remove(&live, (size_t)(range - live.items));
    }
    unlock_memory();
    return known ? NULLGPU_SUCCESS : NULLGPU_INVALID_VALUE;
}

int nullgpu_charge(int ordinal, size_t bytes)
{
    if (!nullgpu_device(ordinal))
        return NULLGPU_INVALID_DEVICE;
    nullgpu_used();
    lock_memory();
    bool granted = charge(ordinal, bytes);
    unlock_memory();
    return granted ? NULLGPU_SUCCESS : NULLGPU_OUT_OF_MEMORY;
}

void nullgpu_discharge(int ordinal, size_t bytes)
{
    lock_memory();
    used[ordinal] -= bytes;
    unlock_memory();
}

int nullgpu_map(uintptr_t start, size_t bytes, int ordinal, void *handle)
{
    lock_memory();
    struct nullgpu_range *around = nullgpu_ranges_find(&live, start);
    size_t next = nullgpu_ranges_lower(&mappings, start);
    bool free_here = next == mappings.count || mappings.items[next].start >= start + bytes;
    bool done = around && around->kind == NULLGPU_RESERVATION && free_here &&
                start + bytes <= around->start + around->bytes &&
                nullgpu_ranges_insert(&mappings, (struct nullgpu_range){start, bytes, ordinal, 0, handle});
    unlock_memory();
    return done ? NULLGPU_SUCCESS : NULLGPU_INVALID_VALUE;
}

void *nullgpu_unmap(uintptr_t start)
{
    void *handle = NULL;
    lock_memory();
    struct nullgpu_range *range = nullgpu_ranges_find(&mappings, start);
    if (range && range->start == start) {
        handle = range->payload;
        nullgpu_ranges_remove(&mappings, (size_t)(range - mappings.items));
    }
    unlock_memory();
    return handle;
}

bool nullgpu_address_range(const void *pointer, struct nullgpu_range *found)
{
    lock_memory();
    struct nullgpu_range *range = nullgpu_ranges_find(&mappings, (uintptr_t)pointer);
    if (!range)
        range = nullgpu_ranges_find(&live, (uintptr_t)pointer);
    bool known = range && range->kind != NULLGPU_RESERVATION;
    if (known)
        *found = *range;
    unlock_memory();
    return known;
}

struct nullgpu_memory_info nullgpu_memory_info(int ordinal)
{
    const struct nullgpu_device *device = nullgpu_device(ordinal);
    struct nullgpu_memory_info info = {0};
    if (!device)
        return info;
    lock_memory();
    size_t taken = device->context_bytes + used[ordinal];
    info.total = device->total_bytes;
    info.free = taken < device->total_bytes ? device->total_bytes - taken : 0;
    info.used = used[ordinal];
    info.used_high = used_high[ordinal];
    unlock_memory();
    return info;
}

void nullgpu_reset_used_high(int ordinal)
{
    lock_memory();
    used_high[ordinal] = used[ordinal];
    unlock_memory();
}

bool nullgpu_asked_for_memory(void) { return nullgpu_span_start() != 0 || refused != 0; }
uint64_t nullgpu_refused(void) { return refused; }

void *nullgpu_symbol_address(void)
{
    lock_memory();
    nullgpu_open_span(&live);
    unlock_memory();
    return (void *)nullgpu_span_start();
}
