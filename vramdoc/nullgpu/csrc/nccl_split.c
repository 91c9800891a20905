/* ncclCommSplit: the size of the new communicator is decided by the colours of all ranks, of which one is here.
 *
 * torch's colour is a hash of the group's ranks, and its key the rank within the group. Groups of parallel training
 * are evenly spaced (0 1 2 3, or 1 9 17 25), so the spacing and size that give this colour are found by trying. */
#include "nccl.h"

enum { NO_COLOR = -1 };

#define HASH_PRIME_1 11400714785074694791ULL
#define HASH_PRIME_2 14029467366897019727ULL
#define HASH_PRIME_5 2870177450012600261ULL

/* CPython's hash of a tuple of small integers (its own hash is the integer), grown by one item. */
static uint64_t hash_item(uint64_t sum, uint64_t item)
{
    sum += item * HASH_PRIME_2;
    sum = (sum << 31) | (sum >> 33);
    return sum * HASH_PRIME_1;
}

static int64_t hash_end(uint64_t sum, uint64_t items)
{
    sum += items ^ (HASH_PRIME_5 ^ 3527539ULL);
    return sum == UINT64_MAX ? 1546275796 : (int64_t)sum;
}

/* torch.distributed: abs(hash(tuple(ranks))) % 2**31 */
static int color_of(int64_t hash)
{
    uint64_t magnitude = hash < 0 ? 0 - (uint64_t)hash : (uint64_t)hash;

    return (int)(magnitude % (1ULL << 31));
}

/* Ranks of the group with this spacing in which this rank is number key; 0 if none has the colour. */
static int size_with_spacing(const struct nccl_communicator *parent, int color, int key, int spacing)
{
    uint64_t sum = HASH_PRIME_5;
    int size = 0;

    for (int rank = parent->rank - key * spacing; rank < parent->size; rank += spacing) {
        sum = hash_item(sum, (uint64_t)rank);
        size++;
        if (size > key && color_of(hash_end(sum, (uint64_t)size)) == color)
            return size;
    }
    return 0;
}

/* The least size that key allows, where the colour is somebody else's. */
static int group_size(const struct nccl_communicator *parent, int color, int key)
{
    for (int spacing = 1; spacing < parent->size || spacing == 1; spacing++) {
        int size = parent->rank >= key * spacing ? size_with_spacing(parent, color, key, spacing) : 0;

        if (size)
            return size;
    }
    return key + 1;
}

NULLGPU_API int ncclCommSplit(struct nccl_communicator *parent, int color, int key,
                              struct nccl_communicator **out, void *config)
{
    (void)config;
    *out = NULL;
    if (color == NO_COLOR)
        return NCCL_OK;
    if (key < 0)
        return NCCL_INVALID_ARGUMENT;
    return nullgpu_nccl_create(out, group_size(parent, color, key), key);
}
