/* Driver functions by name. A program that asks for one that does not exist here gets a function that fails loudly
 * when it is called: asking alone is no use of it (torch up to 2.7 insists that every name of its table resolves). */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

static void *find(const char *name)
{
    size_t low = 0, high = nullgpu_driver_function_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(nullgpu_driver_functions[middle].name, name);
        if (order == 0)
            return nullgpu_driver_functions[middle].function;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

/* A bare name means its newest form that the asked-for version of CUDA has. Most have one form beyond the first. */
static void *find_versioned(const char *name, int cuda_version)
{
    char versioned[128];
    int newest = cuda_version >= 12030 && !strcmp(name, "cuStreamGetCaptureInfo") ? 3 : 2;
    snprintf(versioned, sizeof versioned, "%s_v%d", name, newest);
    void *function = find(versioned);
    return function ? function : find(name);
}

/* ---- stand-ins for unknown names: code is fixed, so each has a number and the names are given as they come ---- */

#define STAND_INS 256
static char *stand_in_names[STAND_INS];
static int stand_in_count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int stand_in_called(int index)
{
    return nullgpu_fail(stand_in_names[index], NULLGPU_NOT_SUPPORTED);
}

#define ONE(n) \
    static int stand_in_##n(void) { return stand_in_called(0x##n); }
#define SIXTEEN(n)                                                                                        \
    ONE(n##0) ONE(n##1) ONE(n##2) ONE(n##3) ONE(n##4) ONE(n##5) ONE(n##6) ONE(n##7) ONE(n##8) ONE(n##9)   \
    ONE(n##a) ONE(n##b) ONE(n##c) ONE(n##d) ONE(n##e) ONE(n##f)
#define ALL                                                                                               \
    SIXTEEN(0) SIXTEEN(1) SIXTEEN(2) SIXTEEN(3) SIXTEEN(4) SIXTEEN(5) SIXTEEN(6) SIXTEEN(7) SIXTEEN(8)    \
    SIXTEEN(9) SIXTEEN(a) SIXTEEN(b) SIXTEEN(c) SIXTEEN(d) SIXTEEN(e) SIXTEEN(f)
ALL
#undef ONE
#define ONE(n) stand_in_##n,
static int (*const stand_ins[STAND_INS])(void) = {ALL};

static void *stand_in(const char *name)
{
    pthread_mutex_lock(&lock);
    int index = 0;
    while (index < stand_in_count && strcmp(stand_in_names[index], name))
        index++;
    if (index == stand_in_count && index < STAND_INS) {
        stand_in_names[index] = strdup(name);
        stand_in_count++;
    }
    pthread_mutex_unlock(&lock);
    nullgpu_log("asked for, not provided: %s", name);
    return index < STAND_INS ? (void *)stand_ins[index] : NULL;
}

void *nullgpu_driver_function(const char *name, int cuda_version, bool *known)
{
    void *function = find_versioned(name, cuda_version);
    *known = function != NULL;
    return function ? function : stand_in(name);
}

NULLGPU_API int cuGetProcAddress_v2(const char *name, void **out, int cuda_version, uint64_t flags, int *status)
{
    (void)flags;
    bool known;
    *out = nullgpu_driver_function(name, cuda_version, &known);
    NULLGPU_SET(status, 0);
    return *out ? NULLGPU_SUCCESS : NULLGPU_NOT_FOUND;
}

NULLGPU_API int cuGetProcAddress(const char *name, void **out, int cuda_version, uint64_t flags)
{
    return cuGetProcAddress_v2(name, out, cuda_version, flags, NULL);
}
