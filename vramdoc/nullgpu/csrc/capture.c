/* Captures under way. A capture is kept for each stream: it spreads to a stream that waits for an event recorded in
 * it, as in life, and ends for all of them at once. */
#include <pthread.h>
#include <stdlib.h>

#include "streams.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void lock_streams(void) { pthread_mutex_lock(&lock); }
static void unlock_streams(void) { pthread_mutex_unlock(&lock); }

__attribute__((constructor)) static void survive_forks(void)
{
    pthread_atfork(lock_streams, unlock_streams, unlock_streams);
}

struct nullgpu_capture {
    unsigned long long id;
    void *graph;
    void *streams[256]; /* those it has spread to; the first began it */
    int stream_count;
    struct nullgpu_capture *next;
};

static struct nullgpu_capture *captures; /* under way */

static struct nullgpu_capture *capture_of_locked(void *stream)
{
    for (struct nullgpu_capture *capture = captures; capture; capture = capture->next)
        for (int i = 0; i < capture->stream_count; i++)
            if (capture->streams[i] == stream)
                return capture;
    return NULL;
}

struct nullgpu_capture *nullgpu_capture_of(void *stream)
{
    if (!__atomic_load_n(&captures, __ATOMIC_ACQUIRE))
        return NULL;
    lock_streams();
    struct nullgpu_capture *capture = capture_of_locked(stream);
    unlock_streams();
    return capture;
}

unsigned long long nullgpu_capture_id(const struct nullgpu_capture *capture) { return capture->id; }
void *nullgpu_capture_graph(const struct nullgpu_capture *capture) { return capture->graph; }

int nullgpu_capture_begin(void *stream, void *graph)
{
    static unsigned long long last_id;
    struct nullgpu_capture *capture = calloc(1, sizeof *capture);
    if (!capture)
        return NULLGPU_OUT_OF_MEMORY;
    lock_streams();
    bool nested = capture_of_locked(stream) != NULL;
    if (!nested) {
        capture->id = ++last_id;
        capture->graph = graph;
        capture->streams[capture->stream_count++] = stream;
        capture->next = captures;
        __atomic_store_n(&captures, capture, __ATOMIC_RELEASE);
    }
    unlock_streams();
    if (nested)
        free(capture);
    return nested ? NULLGPU_INVALID_VALUE : NULLGPU_SUCCESS;
}

/* The graph of the capture that stream began, NULL where it began none. */
void *nullgpu_capture_end(void *stream)
{
    void *graph = NULL;
    lock_streams();
    for (struct nullgpu_capture **link = &captures; *link; link = &(*link)->next) {
        struct nullgpu_capture *capture = *link;
        if (capture->streams[0] != stream)
            continue;
        graph = capture->graph;
        __atomic_store_n(link, capture->next, __ATOMIC_RELEASE);
        free(capture);
        break;
    }
    unlock_streams();
    return graph;
}

void nullgpu_capture_spread(unsigned long long id, void *stream)
{
    lock_streams();
    for (struct nullgpu_capture *capture = captures; capture; capture = capture->next) {
        int limit = sizeof capture->streams / sizeof *capture->streams;
        if (capture->id == id && !capture_of_locked(stream) && capture->stream_count < limit)
            capture->streams[capture->stream_count++] = stream;
    }
    unlock_streams();
}
