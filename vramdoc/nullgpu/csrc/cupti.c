/* libcupti: the profiler may be switched on; the device has nothing to record. */
#include <sys/time.h>

#include "nullgpu.h"

enum { CUPTI_MAX_LIMIT_REACHED = 12, CUPTI_QUEUE_EMPTY = 17, CUPTI_API_VERSION = 26 };

NULLGPU_API int cuptiGetVersion(unsigned *out)
{
    *out = CUPTI_API_VERSION;
    return 0;
}

NULLGPU_API int cuptiActivityGetNextRecord(void *buffer, size_t bytes, void **record)
{
    (void)buffer, (void)bytes;
    NULLGPU_SET(record, NULL);
    return CUPTI_MAX_LIMIT_REACHED; /* there is no further record in this buffer */
}

NULLGPU_API int cuptiActivityPopExternalCorrelationId(int kind, uint64_t *last)
{
    (void)kind;
    NULLGPU_SET(last, 0);
    return 0;
}

NULLGPU_API int cuptiGetResultString(int status, const char **out)
{
    *out = status ? "CUPTI_ERROR_UNKNOWN" : "CUPTI_SUCCESS";
    return 0;
}

NULLGPU_API int cuptiGetCallbackName(int domain, unsigned id, const char **out)
{
    (void)domain, (void)id;
    *out = "unknown";
    return 0;
}

NULLGPU_API int cuptiGetTimestamp(uint64_t *out)
{
    struct timeval now;
    gettimeofday(&now, NULL);
    *out = 1000000000ull * (uint64_t)now.tv_sec + 1000ull * (uint64_t)now.tv_usec;
    return 0;
}
