/* The devices, and where they come from: the variable VRAMDOC_NULLGPU, or a call of vramdoc_nullgpu_configure in a
 * process that has loaded the engine but not used it (a child forked from one that imported torch).
 *
 * The text is a list of fields, each ended by ';' or the end:
 *   limited=1                      0: an allocation is never refused
 *   cuda=13000 cudnn=92400 nccl=23007 cusparselt=801 nvshmem=30405
 *   archs=75,80,90                 architectures torch has kernels for
 *   ptx=90                         architectures it has code for that newer devices compile further
 *   device=MAJOR,MINOR,MULTIPROCESSORS,TOTAL,CONTEXT,SHARED_PER_BLOCK,SHARED_PER_MULTIPROCESSOR,L2,NAME
 * with one device field for each device. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

static struct nullgpu_device machine[NULLGPU_MAX_DEVICES]; /* all there are: NVML shows these */
static int machine_count;
static struct nullgpu_device devices[NULLGPU_MAX_DEVICES]; /* those CUDA_VISIBLE_DEVICES leaves, in its order */
static int device_count;
static bool settled; /* whether devices have been chosen: at the first use, as in life */
static pthread_mutex_t settle_lock = PTHREAD_MUTEX_INITIALIZER;
static bool limited = true;
static struct nullgpu_versions versions;
static struct architectures {
    int items[64];
    int count;
} archs, ptx;

static __thread int current;
static __thread bool thread_used;

/* The device that an item of CUDA_VISIBLE_DEVICES names, by index or by the UUID that NVML gives it; -1: none. */
static int named_device(const char *item, size_t length)
{
    char text[64], *end;
    if (length == 0 || length >= sizeof text)
        return -1;
    memcpy(text, item, length);
    text[length] = '\0';
    const char *last = strrchr(text, '-');
    bool uuid = !strncmp(text, "GPU-", 4);
    long index = uuid ? strtol(last + 1, &end, 16) - 1 : strtol(text, &end, 10);
    return *end == '\0' && index >= 0 && index < machine_count ? (int)index : -1;
}

static void settle(void)
{
    pthread_mutex_lock(&settle_lock);
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    if (!settled && !visible) {
        memcpy(devices, machine, sizeof devices);
        device_count = machine_count;
    } else if (!settled) {
        device_count = 0;
        for (const char *end; *visible && device_count < machine_count; visible = *end ? end + 1 : end) {
            end = visible + strcspn(visible, ",");
            int index = named_device(visible, (size_t)(end - visible));
            if (index < 0)
                break; /* the driver stops at the first name that it does not know */
            devices[device_count++] = machine[index];
        }
    }
    __atomic_store_n(&settled, true, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&settle_lock);
}

int nullgpu_device_count(void)
{
    if (!__atomic_load_n(&settled, __ATOMIC_ACQUIRE))
        settle();
    return device_count;
}

const struct nullgpu_device *nullgpu_device(int ordinal)
{
    return ordinal >= 0 && ordinal < nullgpu_device_count() ? &devices[ordinal] : NULL;
}

const struct nullgpu_device *nullgpu_current_device(void)
{
    nullgpu_device_count();
    return &devices[current];
}

int nullgpu_machine_count(void) { return machine_count; }

const struct nullgpu_device *nullgpu_machine_device(int index)
{
    return index >= 0 && index < machine_count ? &machine[index] : NULL;
}

bool nullgpu_limited(void) { return limited; }
const struct nullgpu_versions *nullgpu_versions(void) { return &versions; }
int nullgpu_current_ordinal(void) { return current; }
void nullgpu_used(void) { thread_used = true; }
bool nullgpu_thread_used(void) { return thread_used; }

int nullgpu_set_device(int ordinal)
{
    if (!nullgpu_device(ordinal))
        return NULLGPU_INVALID_DEVICE;
    current = ordinal;
    thread_used = true;
    return NULLGPU_SUCCESS;
}

/* Threads and blocks that fit one multiprocessor: CUDA C++ Programming Guide, "Technical Specifications per Compute
 * Capability". An architecture above the table is taken as the last row of its major version or the one before. */
static const struct {
    int arch, threads, blocks;
} occupancy[] = {
    {50, 2048, 32}, {60, 2048, 32}, {61, 2048, 32}, {62, 2048, 32}, {70, 2048, 32},  {75, 1024, 16},
    {80, 2048, 32}, {86, 1536, 16}, {89, 1536, 24}, {90, 2048, 32}, {100, 2048, 32}, {110, 1536, 24}, {120, 1536, 24},
};

static void derive_occupancy(struct nullgpu_device *device)
{
    int arch = 10 * device->major + device->minor;
    for (size_t i = 0; i < sizeof occupancy / sizeof *occupancy; i++) {
        if (occupancy[i].arch > arch)
            break;
        device->threads_per_multiprocessor = occupancy[i].threads;
        device->blocks_per_multiprocessor = occupancy[i].blocks;
    }
}

/* Compiled kernels run on their own major version from their own minor version on, PTX on every newer device: CUDA
 * C++ Programming Guide, "Binary Compatibility" and "PTX Compatibility". */
static void derive_kernel_arch(struct nullgpu_device *device)
{
    int arch = 10 * device->major + device->minor;
    device->kernel_arch = archs.count + ptx.count ? 0 : arch;
    for (int i = 0; i < archs.count; i++)
        if (archs.items[i] / 10 == device->major && archs.items[i] <= arch && archs.items[i] > device->kernel_arch)
            device->kernel_arch = archs.items[i];
    for (int i = 0; i < ptx.count; i++)
        if (ptx.items[i] <= arch && ptx.items[i] > device->kernel_arch)
            device->kernel_arch = ptx.items[i];
}

static bool parse_device(const char *text, size_t length)
{
    if (machine_count == NULLGPU_MAX_DEVICES)
        return false;
    struct nullgpu_device *device = &machine[machine_count];
    *device = (struct nullgpu_device){.index = machine_count};
    int offset = 0;
    char field[512];
    if (length >= sizeof field)
        return false;
    memcpy(field, text, length);
    field[length] = '\0';
    int found = sscanf(field, "%d,%d,%d,%zu,%zu,%zu,%zu,%zu,%n", &device->major, &device->minor,
                       &device->multiprocessors, &device->total_bytes, &device->context_bytes,
                       &device->shared_per_block, &device->shared_per_multiprocessor, &device->l2_bytes, &offset);
    if (found != 8 || offset == 0 || strlen(field + offset) >= sizeof device->name)
        return false;
    strcpy(device->name, field + offset);
    machine_count++;
    return true;
}

static bool parse_archs(struct architectures *out, const char *text, size_t length)
{
    const char *end = text + length;
    while (text < end && out->count < (int)(sizeof out->items / sizeof *out->items)) {
        char *after;
        long arch = strtol(text, &after, 10);
        if (after == text || arch <= 0)
            return false;
        out->items[out->count++] = (int)arch;
        text = after + (*after == ',');
    }
    return true;
}

static bool parse_field(const char *field, size_t length)
{
    static const struct {
        const char *key;
        int *value;
    } numbers[] = {
        {"cuda=", &versions.cuda},     {"cudnn=", &versions.cudnn},           {"nccl=", &versions.nccl},
        {"nvshmem=", &versions.nvshmem}, {"cusparselt=", &versions.cusparselt},
    };
    if (length > 7 && !strncmp(field, "device=", 7))
        return parse_device(field + 7, length - 7);
    if (length > 6 && !strncmp(field, "archs=", 6))
        return parse_archs(&archs, field + 6, length - 6);
    if (length > 4 && !strncmp(field, "ptx=", 4))
        return parse_archs(&ptx, field + 4, length - 4);
    if (length == 9 && !strncmp(field, "limited=", 8)) {
        limited = field[8] != '0';
        return true;
    }
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        size_t key = strlen(numbers[i].key);
        if (length > key && !strncmp(field, numbers[i].key, key)) {
            *numbers[i].value = atoi(field + key);
            return true;
        }
    }
    return false;
}

static bool parse(const char *text)
{
    settled = false;
    machine_count = archs.count = ptx.count = 0;
    versions = (struct nullgpu_versions){0};
    limited = true;
    for (const char *end; *text; text = *end ? end + 1 : end) {
        end = strchr(text, ';');
        if (!end)
            end = text + strlen(text);
        if (end > text && !parse_field(text, (size_t)(end - text))) {
            fprintf(stderr, "vramdoc: the null GPU does not understand this part of its configuration: %.*s\n",
                    (int)(end - text), text);
            machine_count = 0;
            return false;
        }
    }
    for (int i = 0; i < machine_count; i++) {
        derive_kernel_arch(&machine[i]);
        derive_occupancy(&machine[i]);
    }
    return true;
}

/* 0: done. 1: the text is wrong. 2: too late, the process has asked for device memory. */
NULLGPU_API int vramdoc_nullgpu_configure(const char *text)
{
    if (nullgpu_asked_for_memory())
        return 2;
    return parse(text) ? 0 : 1;
}

__attribute__((constructor)) static void configure_from_environment(void)
{
    const char *text = getenv("VRAMDOC_NULLGPU");
    if (text)
        parse(text);
}
