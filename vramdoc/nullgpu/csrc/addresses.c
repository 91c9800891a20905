/* Addresses of device memory: one span, and the parts of it that are free again. memory.c's lock is held by the
 * callers of all but nullgpu_is_device. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "memory.h"

/* Smaller sizes than the largest are for a process whose address space is limited. */
#define SMALLEST_SPAN ((size_t)1 << 36)

static uintptr_t span_start, span_next;
static size_t span; /* its size */

/* Freed address ranges, sorted by size, then address: an allocation takes the lowest of its own size. */
static struct hole {
    size_t bytes;
    uintptr_t start;
} *holes;
static size_t hole_count, hole_capacity;

bool nullgpu_is_device(const void *pointer)
{
    return (uintptr_t)pointer - span_start < span; /* an empty span before the first use */
}

static size_t hole_lower(size_t bytes, uintptr_t start)
{
    size_t low = 0, high = hole_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (holes[middle].bytes < bytes || (holes[middle].bytes == bytes && holes[middle].start < start))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void nullgpu_give_addresses(uintptr_t start, size_t bytes)
{
    if (hole_count == hole_capacity) {
        size_t capacity = hole_capacity ? 2 * hole_capacity : 256;
        void *grown = realloc(holes, capacity * sizeof *holes);
        if (!grown)
            return; /* the addresses are lost until the span is swept */
        holes = grown;
        hole_capacity = capacity;
    }
    size_t index = hole_lower(bytes, start);
    for (size_t i = hole_count++; i > index; i--)
        holes[i] = holes[i - 1];
    holes[index] = (struct hole){bytes, start};
}

static uintptr_t take_hole(size_t index, size_t bytes)
{
    struct hole hole = holes[index];
    hole_count--;
    for (size_t i = index; i < hole_count; i++)
        holes[i] = holes[i + 1];
    if (hole.bytes > bytes)
        nullgpu_give_addresses(hole.start + bytes, hole.bytes - bytes);
    return hole.start;
}

/* The span has run out: make the free addresses between live ranges into holes as large as they can be. */
static void sweep_span(const struct nullgpu_ranges *live)
{
    hole_count = 0;
    uintptr_t start = span_start;
    for (size_t i = 0; i < live->count; i++) {
        if (live->items[i].start > start)
            nullgpu_give_addresses(start, live->items[i].start - start);
        start = live->items[i].start + live->items[i].bytes;
    }
    span_next = start;
}

bool nullgpu_open_span(struct nullgpu_ranges *live)
{
    if (span)
        return true;
    for (size_t size = NULLGPU_LARGEST_SPAN; size >= SMALLEST_SPAN; size /= 2) {
        void *mapped = mmap(NULL, size + NULLGPU_GRANULARITY, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                            -1, 0);
        if (mapped == MAP_FAILED)
            continue;
        span_start = ((uintptr_t)mapped + NULLGPU_GRANULARITY - 1) & ~(uintptr_t)(NULLGPU_GRANULARITY - 1);
        span_next = span_start + NULLGPU_GRANULARITY; /* the first unit is nullgpu_symbol_address */
        span = size;
        struct nullgpu_range symbols = {span_start, NULLGPU_GRANULARITY, 0, NULLGPU_SYMBOLS, NULL};
        return nullgpu_ranges_insert(live, symbols);
    }
    static bool said;
    if (!said)
        fprintf(stderr, "vramdoc: the null GPU found no %zu GiB of address space: raise ulimit -v\n", SMALLEST_SPAN >> 30);
    said = true;
    return false;
}

uintptr_t nullgpu_take_addresses(size_t bytes, struct nullgpu_ranges *live)
{
    if (!nullgpu_open_span(live))
        return 0;
    if (bytes > span)
        return 0;
    size_t index = hole_lower(bytes, 0);
    if (index < hole_count && holes[index].bytes == bytes)
        return take_hole(index, bytes);
    if (span_start + span - span_next < bytes) {
        sweep_span(live);
        index = hole_lower(bytes, 0);
        if (index < hole_count)
            return take_hole(index, bytes);
        if (span_start + span - span_next < bytes)
            return 0;
    }
    uintptr_t start = span_next;
    span_next += bytes;
    return start;
}

uintptr_t nullgpu_span_start(void) { return span_start; }
