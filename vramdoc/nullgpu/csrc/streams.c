/* Streams and events, for the runtime and the driver. Work is done when it is queued, so all of it is always
 * finished; an event remembers when it was recorded, by the host's clock. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "streams.h"

/* ---- streams ---- */

struct stream {
    int ordinal, priority;
    unsigned flags;
};

/* NULL, 1 and 2 are the default streams: they belong to whatever device is current. */
static bool is_default(const void *stream) { return (uintptr_t)stream <= 2; }

static int create_stream(struct stream **out, unsigned flags, int priority)
{
    struct stream *stream = malloc(sizeof *stream);
    if (!stream)
        return nullgpu_result(NULLGPU_OUT_OF_MEMORY);
    nullgpu_used();
    *stream = (struct stream){nullgpu_current_ordinal(), priority < -5 ? -5 : priority > 0 ? 0 : priority, flags};
    *out = stream;
    return NULLGPU_SUCCESS;
}

NULLGPU_API int cudaStreamCreate(struct stream **out) { return create_stream(out, 0, 0); }

NULLGPU_API int cudaStreamCreateWithFlags(struct stream **out, unsigned flags)
{
    return create_stream(out, flags, 0);
}

NULLGPU_API int cudaStreamCreateWithPriority(struct stream **out, unsigned flags, int priority)
{
    return create_stream(out, flags, priority);
}

NULLGPU_API int cudaStreamDestroy(struct stream *stream)
{
    if (!is_default(stream))
        free(stream);
    return NULLGPU_SUCCESS;
}

NULLGPU_API int cudaStreamGetPriority(struct stream *stream, int *out)
{
    *out = is_default(stream) ? 0 : stream->priority;
    return NULLGPU_SUCCESS;
}

NULLGPU_API int cudaStreamGetFlags(struct stream *stream, unsigned *out)
{
    *out = is_default(stream) ? 0 : stream->flags;
    return NULLGPU_SUCCESS;
}

NULLGPU_API int cudaStreamGetDevice(struct stream *stream, int *out)
{
    *out = is_default(stream) ? nullgpu_current_ordinal() : stream->ordinal;
    return NULLGPU_SUCCESS;
}

NULLGPU_API int cudaStreamAddCallback(void *stream, void (*callback)(void *, int, void *), void *data, unsigned flags)
{
    (void)flags;
    if (!nullgpu_capture_of(stream))
        callback(stream, NULLGPU_SUCCESS, data);
    return NULLGPU_SUCCESS;
}

/* Within a capture the function belongs to the graph: it runs at each replay, which does nothing here. */
NULLGPU_API int cudaLaunchHostFunc(void *stream, void (*function)(void *), void *data)
{
    if (!nullgpu_capture_of(stream))
        function(data);
    return NULLGPU_SUCCESS;
}

/* ---- events ---- */

struct event {
    struct timespec recorded;
    unsigned long long capture_id; /* recorded within this capture; 0: outside */
};

static int create_event(struct event **out)
{
    *out = calloc(1, sizeof **out);
    return *out ? NULLGPU_SUCCESS : nullgpu_result(NULLGPU_OUT_OF_MEMORY);
}

NULLGPU_API int cudaEventCreate(struct event **out) { return create_event(out); }

NULLGPU_API int cudaEventCreateWithFlags(struct event **out, unsigned flags)
{
    (void)flags;
    return create_event(out);
}

NULLGPU_API int cudaEventDestroy(struct event *event)
{
    free(event);
    return NULLGPU_SUCCESS;
}

NULLGPU_API int cudaEventRecord(struct event *event, void *stream)
{
    struct nullgpu_capture *capture = nullgpu_capture_of(stream);
    event->capture_id = capture ? nullgpu_capture_id(capture) : 0;
    /* The function of this name came to the C library in 2.17 and would keep the engine off older systems. */
    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &event->recorded);
    return NULLGPU_SUCCESS;
}

NULLGPU_API int cudaEventRecordWithFlags(struct event *event, void *stream, unsigned flags)
{
    (void)flags;
    return cudaEventRecord(event, stream);
}

/* A capture spreads to the streams that wait for it. */
NULLGPU_API int cudaStreamWaitEvent(void *stream, struct event *event, unsigned flags)
{
    (void)flags;
    if (event->capture_id)
        nullgpu_capture_spread(event->capture_id, stream);
    return NULLGPU_SUCCESS;
}

/* Never zero: autotuners divide by it. */
NULLGPU_API int cudaEventElapsedTime(float *milliseconds, struct event *from, struct event *to)
{
    if (!from->recorded.tv_sec || !to->recorded.tv_sec)
        return nullgpu_result(NULLGPU_INVALID_HANDLE);
    double elapsed = 1e3 * (double)(to->recorded.tv_sec - from->recorded.tv_sec) +
                     1e-6 * (double)(to->recorded.tv_nsec - from->recorded.tv_nsec);
    *milliseconds = elapsed > 1e-3 ? (float)elapsed : 1e-3f;
    return NULLGPU_SUCCESS;
}

NULLGPU_API int cudaEventElapsedTime_v2(float *milliseconds, struct event *from, struct event *to)
{
    return cudaEventElapsedTime(milliseconds, from, to);
}

struct ipc_event {
    char bytes[64];
};

NULLGPU_API int cudaIpcGetEventHandle(struct ipc_event *out, struct event *event)
{
    memset(out, 0, sizeof *out);
    memcpy(out->bytes, &event->recorded, sizeof event->recorded);
    return NULLGPU_SUCCESS;
}

NULLGPU_API int cudaIpcOpenEventHandle(struct event **out, struct ipc_event handle)
{
    int status = create_event(out);
    if (status == NULLGPU_SUCCESS)
        memcpy(&(*out)->recorded, handle.bytes, sizeof (*out)->recorded);
    return status;
}

/* ---- the driver's names for the same ---- */

NULLGPU_API int cuStreamCreate(struct stream **out, unsigned flags) { return create_stream(out, flags, 0); }
NULLGPU_API int cuStreamCreateWithPriority(struct stream **out, unsigned flags, int priority)
{
    return create_stream(out, flags, priority);
}
NULLGPU_API int cuStreamDestroy_v2(struct stream *stream) { return cudaStreamDestroy(stream); }
NULLGPU_API int cuStreamGetPriority(struct stream *stream, int *out) { return cudaStreamGetPriority(stream, out); }
NULLGPU_API int cuStreamGetFlags(struct stream *stream, unsigned *out) { return cudaStreamGetFlags(stream, out); }
NULLGPU_API int cuStreamWaitEvent(void *stream, struct event *event, unsigned flags)
{
    return cudaStreamWaitEvent(stream, event, flags);
}
NULLGPU_API int cuEventCreate(struct event **out, unsigned flags) { return cudaEventCreateWithFlags(out, flags); }
NULLGPU_API int cuEventDestroy_v2(struct event *event) { return cudaEventDestroy(event); }
NULLGPU_API int cuEventRecord(struct event *event, void *stream) { return cudaEventRecord(event, stream); }
NULLGPU_API int cuEventRecordWithFlags(struct event *event, void *stream, unsigned flags)
{
    return cudaEventRecordWithFlags(event, stream, flags);
}
NULLGPU_API int cuEventElapsedTime(float *milliseconds, struct event *from, struct event *to)
{
    return cudaEventElapsedTime(milliseconds, from, to);
}
NULLGPU_API int cuEventElapsedTime_v2(float *milliseconds, struct event *from, struct event *to)
{
    return cudaEventElapsedTime(milliseconds, from, to);
}
NULLGPU_API int cuLaunchHostFunc(void *stream, void (*function)(void *), void *data)
{
    return cudaLaunchHostFunc(stream, function, data);
}
NULLGPU_API int cuStreamAddCallback(void *stream, void (*callback)(void *, int, void *), void *data, unsigned flags)
{
    return cudaStreamAddCallback(stream, callback, data, flags);
}
