/* Graphs: what a capture leaves behind. A graph has one node, since programs take an empty one for a mistake, and
 * replaying it is one launch. */
#include <stdlib.h>

#include "streams.h"

struct graph {
    int nodes;
};

enum { EMPTY_NODE = 5 };
static int node; /* its address is the handle of every node */

NULLGPU_API int cudaGraphCreate(struct graph **out, unsigned flags)
{
    (void)flags;
    *out = malloc(sizeof **out);
    if (!*out)
        return nullgpu_result(NULLGPU_OUT_OF_MEMORY);
    (*out)->nodes = 1;
    return NULLGPU_SUCCESS;
}

NULLGPU_API int cudaGraphDestroy(struct graph *graph)
{
    free(graph);
    return NULLGPU_SUCCESS;
}

NULLGPU_API int cudaStreamBeginCapture(void *stream, int mode)
{
    (void)mode;
    struct graph *graph;
    int status = cudaGraphCreate(&graph, 0);
    if (status == NULLGPU_SUCCESS)
        status = nullgpu_capture_begin(stream, graph);
    return nullgpu_result(status);
}

NULLGPU_API int cudaStreamBeginCaptureToGraph(void *stream, struct graph *graph)
{
    return nullgpu_result(nullgpu_capture_begin(stream, graph));
}

NULLGPU_API int cudaStreamEndCapture(void *stream, struct graph **out)
{
    struct graph *graph = nullgpu_capture_end(stream);
    NULLGPU_SET(out, graph);
    return nullgpu_result(graph ? NULLGPU_SUCCESS : NULLGPU_INVALID_VALUE);
}

NULLGPU_API int cudaStreamIsCapturing(void *stream, int *out)
{
    *out = nullgpu_capture_of(stream) != NULL;
    return NULLGPU_SUCCESS;
}

/* Each form of the capture information writes the arguments it has. */
static int capture_information(void *stream, int *status, unsigned long long *id, void **graph,
                               const void **dependencies, const void **edges, size_t *dependency_count)
{
    static void *const node_list[] = {&node};
    struct nullgpu_capture *capture = nullgpu_capture_of(stream);
    *status = capture != NULL;
    NULLGPU_SET(id, capture ? nullgpu_capture_id(capture) : 0);
    NULLGPU_SET(graph, capture ? nullgpu_capture_graph(capture) : NULL);
    NULLGPU_SET(dependencies, capture ? node_list : NULL);
    NULLGPU_SET(edges, NULL);
    NULLGPU_SET(dependency_count, capture ? 1 : 0);
    return NULLGPU_SUCCESS;
}

NULLGPU_API int nullgpu_v12_cudaStreamGetCaptureInfo(void *stream, int *status, unsigned long long *id)
{
    return capture_information(stream, status, id, NULL, NULL, NULL, NULL);
}
NULLGPU_CUDA12(cudaStreamGetCaptureInfo);

NULLGPU_API int cudaStreamGetCaptureInfo_v2(void *stream, int *status, unsigned long long *id, void **graph,
                                            const void **dependencies, size_t *dependency_count)
{
    return capture_information(stream, status, id, graph, dependencies, NULL, dependency_count);
}

NULLGPU_API int cudaStreamGetCaptureInfo_v3(void *stream, int *status, unsigned long long *id, void **graph,
                                            const void **dependencies, const void **edges, size_t *dependency_count)
{
    return capture_information(stream, status, id, graph, dependencies, edges, dependency_count);
}

NULLGPU_API int nullgpu_v13_cudaStreamGetCaptureInfo(void *stream, int *status, unsigned long long *id, void **graph,
                                                     const void **dependencies, const void **edges,
                                                     size_t *dependency_count)
{
    return capture_information(stream, status, id, graph, dependencies, edges, dependency_count);
}
NULLGPU_CUDA13(cudaStreamGetCaptureInfo);

NULLGPU_API int cuStreamIsCapturing(void *stream, int *out) { return cudaStreamIsCapturing(stream, out); }

NULLGPU_API int cuStreamGetCaptureInfo_v2(void *stream, int *status, unsigned long long *id, void **graph,
                                          const void **dependencies, size_t *dependency_count)
{
    return capture_information(stream, status, id, graph, dependencies, NULL, dependency_count);
}

NULLGPU_API int cuStreamGetCaptureInfo_v3(void *stream, int *status, unsigned long long *id, void **graph,
                                          const void **dependencies, const void **edges, size_t *dependency_count)
{
    return capture_information(stream, status, id, graph, dependencies, edges, dependency_count);
}

/* ---- nodes ---- */

NULLGPU_API int cudaGraphGetNodes(struct graph *graph, void **nodes, size_t *count)
{
    size_t available = (size_t)graph->nodes;
    if (nodes)
        for (size_t i = 0; i < *count; i++)
            nodes[i] = i < available ? &node : NULL;
    if (!nodes || *count > available)
        *count = available;
    return NULLGPU_SUCCESS;
}

NULLGPU_API int cudaGraphNodeGetType(void *which, int *type)
{
    (void)which;
    *type = EMPTY_NODE;
    return NULLGPU_SUCCESS;
}

NULLGPU_API int cudaGraphAddNode(void **out)
{
    *out = &node;
    return NULLGPU_SUCCESS;
}

NULLGPU_API int cudaGraphAddEmptyNode(void **out) { return cudaGraphAddNode(out); }

NULLGPU_API int nullgpu_v12_cudaGraphNodeGetDependencies(void *which, void **dependencies, size_t *count)
{
    (void)which, (void)dependencies;
    *count = 0;
    return NULLGPU_SUCCESS;
}
NULLGPU_CUDA12(cudaGraphNodeGetDependencies);

NULLGPU_API int nullgpu_v13_cudaGraphNodeGetDependencies(void *which, void **dependencies, void *edges, size_t *count)
{
    (void)which, (void)dependencies, (void)edges;
    *count = 0;
    return NULLGPU_SUCCESS;
}
NULLGPU_CUDA13(cudaGraphNodeGetDependencies);

/* ---- executable graphs ---- */

NULLGPU_API int cudaGraphInstantiate(void **out, void *graph, unsigned long long flags)
{
    (void)graph, (void)flags;
    *out = nullgpu_new_handle();
    return NULLGPU_SUCCESS;
}

NULLGPU_API int cudaGraphInstantiateWithFlags(void **out, void *graph, unsigned long long flags)
{
    return cudaGraphInstantiate(out, graph, flags);
}

NULLGPU_API int cudaGraphLaunch(void *executable, void *stream)
{
    (void)executable, (void)stream;
    return nullgpu_launch();
}

NULLGPU_API int cudaDeviceGetGraphMemAttribute(int ordinal, int attribute, uint64_t *value)
{
    (void)ordinal, (void)attribute;
    *value = 0; /* nothing is allocated within a graph */
    return NULLGPU_SUCCESS;
}
