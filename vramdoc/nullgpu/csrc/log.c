/* What the engine says: a trace for those who ask, one loud line for a call that it does not provide. */
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nullgpu.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static FILE *trace;

__attribute__((constructor)) static void open_trace(void)
{
    const char *path = getenv("VRAMDOC_NULLGPU_LOG");
    if (path && *path)
        trace = fopen(path, "ae");
}

void nullgpu_log(const char *format, ...)
{
    if (!trace)
        return;
    va_list arguments;
    va_start(arguments, format);
    pthread_mutex_lock(&lock);
    vfprintf(trace, format, arguments);
    fputc('\n', trace);
    fflush(trace);
    pthread_mutex_unlock(&lock);
    va_end(arguments);
}

static bool first_time(const char *name)
{
    static const char *said[1024];
    static size_t count;
    for (size_t i = 0; i < count; i++)
        if (!strcmp(said[i], name))
            return false;
    char *copy = malloc(strlen(name) + 1);
    if (copy && count < sizeof said / sizeof *said)
        said[count++] = strcpy(copy, name);
    return true;
}

int nullgpu_fail(const char *name, int status)
{
    pthread_mutex_lock(&lock);
    if (first_time(name))
        fprintf(stderr, "vramdoc: the null GPU does not provide %s (status %d)\n", name, status);
    pthread_mutex_unlock(&lock);
    nullgpu_log("not provided: %s", name);
    return status;
}

void *nullgpu_new_handle(void)
{
    /* Odd values cannot be addresses that a program would look into; the step keeps them apart from small integers. */
    static uintptr_t last = 0x1001;
    return (void *)__atomic_add_fetch(&last, 16, __ATOMIC_RELAXED);
}

void nullgpu_zero(void *output, size_t bytes)
{
    if (output && !nullgpu_is_device(output))
        memset(output, 0, bytes);
}
