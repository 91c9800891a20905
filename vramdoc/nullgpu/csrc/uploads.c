/* What device memory holds, as far as anybody can know: uploads, kept until the next kernel launch.
 *
 * Programs check what they have just sent (DDP compares the shapes of all ranks through an all-gather), so small
 * uploads read back, and copies, fills and collectives carry them on. A launch may change anything, so it makes all
 * of it unknown; it only bumps a number, since launches are what a step consists of. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "internal.h"

/* Contents lie in one arena, which is begun anew after a launch: no allocation, and its pages are touched once. Many
 * small uploads in a row (a model's parameters) must not fill the host, so a full arena forgets them all. */
#define ARENA_BYTES ((size_t)128 << 20)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct nullgpu_ranges kept; /* payload: the bytes, in the arena; NULL: kind is the byte they all have */
static char *arena;
static size_t arena_used;
static uint64_t generation = 1;    /* of device memory: a launch begins a new one */
static uint64_t kept_generation = 1;
static uint64_t launches, unknown_reads;

static void lock_uploads(void) { pthread_mutex_lock(&lock); }
static void unlock_uploads(void) { pthread_mutex_unlock(&lock); }

__attribute__((constructor)) static void survive_forks(void)
{
    pthread_atfork(lock_uploads, unlock_uploads, unlock_uploads);
}

uint64_t nullgpu_launches(void) { return __atomic_load_n(&launches, __ATOMIC_RELAXED); }
uint64_t nullgpu_unknown_reads(void) { return __atomic_load_n(&unknown_reads, __ATOMIC_RELAXED); }

void nullgpu_launched(void)
{
    __atomic_add_fetch(&launches, 1, __ATOMIC_RELAXED);
    __atomic_add_fetch(&generation, 1, __ATOMIC_RELEASE);
}

static void drop_all(void)
{
    kept.count = 0;
    arena_used = 0;
}

/* Forgets everything where a launch has come between. The lock is held. */
static void refresh(void)
{
    uint64_t now = __atomic_load_n(&generation, __ATOMIC_ACQUIRE);
    if (kept_generation != now) {
        drop_all();
        kept_generation = now;
    }
}

static void add(uintptr_t start, size_t bytes, int byte, void *payload)
{
    if (bytes > 0)
        nullgpu_ranges_insert(&kept, (struct nullgpu_range){start, bytes, 0, byte, payload});
}

/* Room for bytes in the arena, NULL where the host has no memory. */
static void *room(size_t bytes)
{
    if (!arena) {
        void *mapped = mmap(NULL, ARENA_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                            -1, 0);
        if (mapped == MAP_FAILED)
            return NULL;
        arena = mapped;
    }
    if (arena_used + bytes > ARENA_BYTES)
        drop_all();
    void *start = arena + arena_used;
    arena_used += bytes;
    return start;
}

/* Makes [start, start + bytes) unknown: what is kept of its neighbours stays. */
static void erase(uintptr_t start, size_t bytes)
{
    uintptr_t end = start + bytes;
    for (;;) {
        size_t index = nullgpu_ranges_lower(&kept, start);
        if (index == kept.count || kept.items[index].start >= end)
            return;
        struct nullgpu_range old = kept.items[index];
        nullgpu_ranges_remove(&kept, index);
        uintptr_t old_end = old.start + old.bytes;
        char *payload = old.payload;
        if (old.start < start)
            add(old.start, start - old.start, old.kind, payload);
        if (old_end > end)
            add(end, old_end - end, old.kind, payload ? payload + (end - old.start) : NULL);
    }
}

/* Writes what is kept of [source, source + bytes), zeros for the rest; true where all of it was kept. */
static bool read_kept(char *destination, uintptr_t source, size_t bytes)
{
    size_t done = 0;
    bool known = true;
    while (done < bytes) {
        uintptr_t at = source + done;
        size_t index = nullgpu_ranges_lower(&kept, at);
        struct nullgpu_range *range = index < kept.count ? &kept.items[index] : NULL;
        size_t part = bytes - done;
        if (!range || range->start > at) {
            if (range && range->start - at < part)
                part = range->start - at;
            nullgpu_host_zero(destination + done, part);
            known = false;
        } else {
            size_t within = at - range->start;
            if (range->bytes - within < part)
                part = range->bytes - within;
            if (range->payload)
                memcpy(destination + done, (char *)range->payload + within, part);
            else
                memset(destination + done, range->kind, part);
        }
        done += part;
    }
    return known;
}

static void download(void *destination, uintptr_t source, size_t bytes)
{
    lock_uploads();
    refresh();
    bool known = read_kept(destination, source, bytes);
    unlock_uploads();
    if (!known && bytes <= NULLGPU_UPLOAD_BYTES) {
        __atomic_add_fetch(&unknown_reads, 1, __ATOMIC_RELAXED);
        nullgpu_log("unknown read of %zu bytes", bytes);
    }
}

static void upload(uintptr_t destination, const void *source, size_t bytes)
{
    lock_uploads();
    refresh();
    erase(destination, bytes);
    void *payload = bytes <= NULLGPU_UPLOAD_BYTES ? room(bytes) : NULL;
    if (payload) {
        memcpy(payload, source, bytes);
        add(destination, bytes, 0, payload);
    }
    unlock_uploads();
}

static void copy_on_device(uintptr_t destination, uintptr_t source, size_t bytes)
{
    lock_uploads();
    refresh();
    void *payload = bytes <= NULLGPU_UPLOAD_BYTES && kept.count ? room(bytes) : NULL;
    bool known = payload && read_kept(payload, source, bytes);
    erase(destination, bytes);
    if (known)
        add(destination, bytes, 0, payload);
    else if (payload)
        arena_used -= bytes;
    unlock_uploads();
}

void nullgpu_carry(void *destination, const void *source, size_t bytes)
{
    if (bytes == 0 || destination == source)
        return;
    bool to_device = nullgpu_is_device(destination), from_device = nullgpu_is_device(source);
    if (to_device && from_device)
        copy_on_device((uintptr_t)destination, (uintptr_t)source, bytes);
    else if (to_device)
        upload((uintptr_t)destination, source, bytes);
    else if (from_device)
        download(destination, (uintptr_t)source, bytes);
    else
        memmove(destination, source, bytes);
}

void nullgpu_fill(void *destination, int byte, size_t bytes)
{
    if (!nullgpu_is_device(destination)) {
        memset(destination, byte, bytes);
        return;
    }
    lock_uploads();
    refresh();
    erase((uintptr_t)destination, bytes);
    add((uintptr_t)destination, bytes, byte & 0xff, NULL);
    unlock_uploads();
}
