/* Sorted tables of address ranges. Programs hold thousands of allocations and ask about one at every copy, so a
 * lookup is a binary search; most new ranges lie above all others, so an insertion is mostly an append. */
#include <stdlib.h>
#include <string.h>

#include "internal.h"

size_t nullgpu_ranges_lower(const struct nullgpu_ranges *ranges, uintptr_t address)
{
    size_t low = 0, high = ranges->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (ranges->items[middle].start + ranges->items[middle].bytes <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct nullgpu_range *nullgpu_ranges_find(struct nullgpu_ranges *ranges, uintptr_t address)
{
    size_t index = nullgpu_ranges_lower(ranges, address);
    if (index < ranges->count && ranges->items[index].start <= address)
        return &ranges->items[index];
    return NULL;
}

bool nullgpu_ranges_insert(struct nullgpu_ranges *ranges, struct nullgpu_range range)
{
    if (ranges->count == ranges->capacity) {
        size_t capacity = ranges->capacity ? 2 * ranges->capacity : 256;
        void *grown = realloc(ranges->items, capacity * sizeof *ranges->items);
        if (!grown)
            return false;
        ranges->items = grown;
        ranges->capacity = capacity;
    }
    size_t index = nullgpu_ranges_lower(ranges, range.start);
    memmove(&ranges->items[index + 1], &ranges->items[index], (ranges->count - index) * sizeof range);
    ranges->items[index] = range;
    ranges->count++;
    return true;
}

void nullgpu_ranges_remove(struct nullgpu_ranges *ranges, size_t index)
{
    ranges->count--;
    memmove(&ranges->items[index], &ranges->items[index + 1], (ranges->count - index) * sizeof *ranges->items);
}
