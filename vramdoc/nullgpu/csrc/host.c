/* Host memory that the driver knows: pinned, registered, managed. It is real memory. */
#define _GNU_SOURCE
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

#include "internal.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct nullgpu_ranges known;

static void lock_host(void) { pthread_mutex_lock(&lock); }
static void unlock_host(void) { pthread_mutex_unlock(&lock); }

__attribute__((constructor)) static void survive_forks(void)
{
    pthread_atfork(lock_host, unlock_host, unlock_host);
}

static bool remember(void *pointer, size_t bytes, int kind)
{
    lock_host();
    bool done = nullgpu_ranges_insert(&known, (struct nullgpu_range){(uintptr_t)pointer, bytes, -1, kind, NULL});
    unlock_host();
    return done;
}

/* Forgets the range that starts at pointer and is of this kind; its size, 0 where there is none. */
static size_t forget(void *pointer, int kind)
{
    size_t bytes = 0;
    lock_host();
    struct nullgpu_range *range = nullgpu_ranges_find(&known, (uintptr_t)pointer);
    if (range && range->start == (uintptr_t)pointer && range->kind == kind) {
        bytes = range->bytes;
        nullgpu_ranges_remove(&known, (size_t)(range - known.items));
    }
    unlock_host();
    return bytes;
}

int nullgpu_host_allocate(void **out, size_t bytes, enum nullgpu_host_kind kind)
{
    *out = NULL;
    if (bytes == 0)
        return NULLGPU_SUCCESS;
    /* Mapped, not malloc'ed: pages that nobody writes take no memory. */
    void *mapped = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED)
        return NULLGPU_OUT_OF_MEMORY;
    if (!remember(mapped, bytes, kind)) {
        munmap(mapped, bytes);
        return NULLGPU_OUT_OF_MEMORY;
    }
    *out = mapped;
    return NULLGPU_SUCCESS;
}

int nullgpu_host_free(void *pointer, enum nullgpu_host_kind kind)
{
    if (!pointer)
        return NULLGPU_SUCCESS;
    size_t bytes = forget(pointer, kind);
    if (bytes == 0)
        return NULLGPU_INVALID_VALUE;
    munmap(pointer, bytes);
    return NULLGPU_SUCCESS;
}

int nullgpu_host_register(void *pointer, size_t bytes)
{
    enum { ALREADY_REGISTERED = 712 };
    struct nullgpu_range found;
    if (!pointer || bytes == 0)
        return NULLGPU_INVALID_VALUE;
    if (nullgpu_host_range(pointer, &found))
        return ALREADY_REGISTERED;
    return remember(pointer, bytes, NULLGPU_REGISTERED) ? NULLGPU_SUCCESS : NULLGPU_OUT_OF_MEMORY;
}

int nullgpu_host_unregister(void *pointer)
{
    enum { NOT_REGISTERED = 713 };
    return forget(pointer, NULLGPU_REGISTERED) ? NULLGPU_SUCCESS : NOT_REGISTERED;
}

void nullgpu_host_zero(void *pointer, size_t bytes)
{
    enum { PAGE = 4096 };
    struct nullgpu_range range;
    uintptr_t start = ((uintptr_t)pointer + PAGE - 1) & ~(uintptr_t)(PAGE - 1);
    uintptr_t end = ((uintptr_t)pointer + bytes) & ~(uintptr_t)(PAGE - 1);
    /* Activations that a program moves to the host may be larger than this machine's memory. */
    bool ours = end > start && nullgpu_host_range(pointer, &range) && range.kind == NULLGPU_PINNED &&
                (uintptr_t)pointer + bytes <= range.start + range.bytes;
    if (!ours || madvise((void *)start, end - start, MADV_DONTNEED) != 0) {
        memset(pointer, 0, bytes);
        return;
    }
    memset(pointer, 0, start - (uintptr_t)pointer);
    memset((void *)end, 0, (uintptr_t)pointer + bytes - end);
}

bool nullgpu_host_range(const void *pointer, struct nullgpu_range *found)
{
    lock_host();
    struct nullgpu_range *range = nullgpu_ranges_find(&known, (uintptr_t)pointer);
    if (range)
        *found = *range;
    unlock_host();
    return range != NULL;
}
