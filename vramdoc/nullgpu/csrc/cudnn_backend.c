/* cuDNN's graph API: descriptors with attributes, through which torch runs convolutions and (by cudnn-frontend)
 * attention.
 *
 * Every operation graph has one engine with one configuration that needs no workspace. What a real plan needs is
 * unknown: NVIDIA publishes neither its choice nor its sizes. What cudnn-frontend itself adds (the softmax statistics
 * and the query gradient's accumulator of attention) is computed in torch's own code and is therefore exact.
 *
 * A descriptor is a box with contents. cuDNN lets a program put a finalized descriptor into another one and then
 * destroy it, and read one back into a box of its own; so contents are counted and shared, never copied. */
#include "cudnn_types.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum descriptor_kind { ENGINE = 2, ENGINE_CONFIG = 3, ENGINE_HEURISTIC = 4 };

/* cudnnBackendAttributeName_t, as far as something is decided by it. */
enum attribute_name {
    HEURISTIC_OPERATION_GRAPH = 201,
    HEURISTIC_RESULTS = 202,
    CONFIG_ENGINE = 300,
    CONFIG_INTERMEDIATES = 301,
    CONFIG_KNOBS = 302,
    CONFIG_WORKSPACE = 303,
    CONFIG_SHARED_MEMORY = 304,
    PLAN_WORKSPACE = 402,
    PLAN_INTERMEDIATES = 403,
    PLAN_INTERMEDIATES_ONLY = 404,
    PLAN_JSON = 405,
    GRAPH_ENGINE_COUNT = 802,
    ENGINE_OPERATION_GRAPH = 1300,
    ENGINE_INDEX = 1301,
    ENGINE_KNOBS = 1302,
    ENGINE_NUMERICAL_NOTES = 1303,
    ENGINE_LAYOUTS = 1304,
    ENGINE_BEHAVIOR_NOTES = 1305,
    KERNEL_CACHE_HOLDS = 2401,
    KERNEL_CACHE_JSON = 2402,
    DEVICE_JSON = 2702,
};

enum attribute_type { TYPE_INT64 = 3, TYPE_DESCRIPTOR = 15 };

/* Bytes of one element, by cudnnBackendAttributeType_t; 4 (an enumeration) beyond the end. */
static const uint8_t type_bytes[] = {
    8 /* handle */,   4 /* data type */, 1 /* boolean */, 8 /* int64 */, 4 /* float */, 8 /* double */, 8 /* pointer */,
    4, 4, 4, 4, 4, 4, 4, 4, 8 /* descriptor */, 4, 4, 4, 4, 4, 4, 4, 4 /* int32 */, 1 /* char */, 4,
    16 /* fraction */,
};

static size_t element_bytes(int type)
{
    return type >= 0 && (size_t)type < sizeof type_bytes ? type_bytes[type] : 4;
}

/* ---- contents ---- */

struct attribute {
    int name, type;
    int64_t count;
    void *data; /* for descriptors: contents, each counted once more */
};

struct contents {
    int references, kind;
    size_t attributes;
    struct attribute *attribute;
};

struct descriptor {
    struct contents *contents;
};

static struct contents *new_contents(int kind)
{
    struct contents *contents = calloc(1, sizeof *contents);

    if (contents) {
        contents->references = 1;
        contents->kind = kind;
    }
    return contents;
}

static struct contents *retain(struct contents *contents)
{
    __atomic_add_fetch(&contents->references, 1, __ATOMIC_RELAXED);
    return contents;
}

static void release(struct contents *contents);

static void clear(struct attribute *attribute)
{
    struct contents **inner = attribute->data;

    if (attribute->type == TYPE_DESCRIPTOR)
        for (int64_t i = 0; i < attribute->count; i++)
            release(inner[i]);
    free(attribute->data);
}

static void release(struct contents *contents)
{
    if (!contents || __atomic_sub_fetch(&contents->references, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    for (size_t i = 0; i < contents->attributes; i++)
        clear(&contents->attribute[i]);
    free(contents->attribute);
    free(contents);
}

static struct attribute *find(const struct contents *contents, int name)
{
    for (size_t i = 0; i < contents->attributes; i++)
        if (contents->attribute[i].name == name)
            return &contents->attribute[i];
    return NULL;
}

/* Takes over data; a value that was set before is replaced. */
static int put(struct contents *contents, int name, int type, int64_t count, void *data)
{
    struct attribute value = {.name = name, .type = type, .count = count, .data = data};
    struct attribute *old = find(contents, name);
    struct attribute *grown;

    if (old) {
        clear(old);
        *old = value;
        return CUDNN_OK;
    }
    grown = realloc(contents->attribute, (contents->attributes + 1) * sizeof *grown);
    if (!grown) {
        clear(&value);
        return CUDNN_ALLOC_FAILED;
    }
    grown[contents->attributes++] = value;
    contents->attribute = grown;
    return CUDNN_OK;
}

static int put_contents(struct contents *contents, int name, struct contents *inner)
{
    struct contents **data = malloc(sizeof *data);

    if (!data)
        return CUDNN_ALLOC_FAILED;
    *data = retain(inner);
    return put(contents, name, TYPE_DESCRIPTOR, 1, data);
}

/* ---- what the library answers of its own ---- */

/* The configuration that the heuristic proposes for its graph: the graph's only engine. */
static struct contents *only_configuration(const struct contents *heuristic)
{
    const struct attribute *graph = find(heuristic, HEURISTIC_OPERATION_GRAPH);
    struct contents *engine = new_contents(ENGINE);
    struct contents *config = new_contents(ENGINE_CONFIG);
    int status = engine && config ? CUDNN_OK : CUDNN_ALLOC_FAILED;

    if (status == CUDNN_OK && graph && graph->count > 0)
        status = put_contents(engine, ENGINE_OPERATION_GRAPH, *(struct contents **)graph->data);
    if (status == CUDNN_OK)
        status = put_contents(config, CONFIG_ENGINE, engine);
    release(engine);
    if (status != CUDNN_OK) {
        release(config);
        return NULL;
    }
    return config;
}

/* Numbers that only the library knows: name, value. */
static const int64_t own_numbers[][2] = {
    {CONFIG_WORKSPACE, 0}, {CONFIG_SHARED_MEMORY, 0}, {PLAN_WORKSPACE, 0},
    {GRAPH_ENGINE_COUNT, 1}, {ENGINE_INDEX, 0}, {KERNEL_CACHE_HOLDS, 0},
};

/* Lists that are empty: the only engine has nothing to choose and nothing to note. */
static const int own_empty_lists[] = {
    CONFIG_INTERMEDIATES, CONFIG_KNOBS, PLAN_INTERMEDIATES, PLAN_INTERMEDIATES_ONLY, PLAN_JSON,
    ENGINE_KNOBS, ENGINE_NUMERICAL_NOTES, ENGINE_LAYOUTS, ENGINE_BEHAVIOR_NOTES, KERNEL_CACHE_JSON,
    DEVICE_JSON,
};

#define LENGTH(array) (sizeof(array) / sizeof(array)[0])

static bool answer_number(int name, int type, int64_t requested, int64_t *count, void *out)
{
    for (size_t i = 0; i < LENGTH(own_numbers); i++)
        if (own_numbers[i][0] == name) {
            *count = 1;
            if (out && requested > 0)
                memcpy(out, &own_numbers[i][1], element_bytes(type));
            return true;
        }
    return false;
}

static bool answer_empty(int name, int64_t *count)
{
    for (size_t i = 0; i < LENGTH(own_empty_lists); i++)
        if (own_empty_lists[i] == name) {
            *count = 0;
            return true;
        }
    return false;
}

/* Puts contents into the program's boxes, each of which holds what cudnnBackendCreateDescriptor gave it. */
static void fill_boxes(struct contents **from, int64_t count, struct descriptor **boxes)
{
    for (int64_t i = 0; i < count; i++) {
        struct contents *old = boxes[i]->contents;

        boxes[i]->contents = retain(from[i]);
        release(old);
    }
}

static int answer_configuration(const struct contents *heuristic, int64_t requested, int64_t *count, void *out)
{
    struct contents *config;

    *count = 1;
    if (!out || requested < 1)
        return CUDNN_OK;
    config = only_configuration(heuristic);
    if (!config)
        return CUDNN_ALLOC_FAILED;
    fill_boxes(&config, 1, out);
    release(config);
    return CUDNN_OK;
}

/* ---- calls ---- */

NULLGPU_API int cudnnBackendCreateDescriptor(int kind, struct descriptor **out)
{
    struct descriptor *box = malloc(sizeof *box);

    *out = NULL;
    if (!box)
        return CUDNN_ALLOC_FAILED;
    box->contents = new_contents(kind);
    if (!box->contents) {
        free(box);
        return CUDNN_ALLOC_FAILED;
    }
    *out = box;
    return CUDNN_OK;
}

NULLGPU_API int cudnnBackendDestroyDescriptor(struct descriptor *box)
{
    if (box) {
        release(box->contents);
        free(box);
    }
    return CUDNN_OK;
}

NULLGPU_API int cudnnBackendSetAttribute(struct descriptor *box, int name, int type, int64_t count,
                                         const void *values)
{
    size_t bytes = (size_t)count * element_bytes(type);
    void *data = malloc(bytes + 1);

    if (!data)
        return CUDNN_ALLOC_FAILED;
    if (type == TYPE_DESCRIPTOR)
        for (int64_t i = 0; i < count; i++)
            ((struct contents **)data)[i] = retain(((struct descriptor *const *)values)[i]->contents);
    else
        memcpy(data, values, bytes);
    return put(box->contents, name, type, count, data);
}

NULLGPU_API int cudnnBackendGetAttribute(struct descriptor *box, int name, int type, int64_t requested,
                                         int64_t *count, void *out)
{
    const struct attribute *set = find(box->contents, name);
    int64_t ignored;
    char called[64];

    count = count ? count : &ignored;
    if (set) {
        int64_t copied = set->count < requested ? set->count : requested;

        if (set->type != type)
            return CUDNN_BAD_PARAM;
        *count = set->count;
        if (out && copied > 0 && type == TYPE_DESCRIPTOR)
            fill_boxes(set->data, copied, out);
        else if (out && copied > 0)
            memcpy(out, set->data, (size_t)copied * element_bytes(type));
        return CUDNN_OK;
    }
    if (name == HEURISTIC_RESULTS && box->contents->kind == ENGINE_HEURISTIC)
        return answer_configuration(box->contents, requested, count, out);
    if (answer_number(name, type, requested, count, out) || answer_empty(name, count))
        return CUDNN_OK;
    snprintf(called, sizeof called, "cudnnBackendGetAttribute of attribute %d", name);
    return nullgpu_fail(called, CUDNN_NOT_SUPPORTED);
}

NULLGPU_API int cudnnBackendInitialize(struct descriptor *box)
{
    (void)box;
    return CUDNN_OK;
}

NULLGPU_API int cudnnBackendFinalize(struct descriptor *box)
{
    (void)box;
    return CUDNN_OK;
}

NULLGPU_API int cudnnBackendExecute(void *handle, struct descriptor *plan, struct descriptor *variant_pack)
{
    (void)handle, (void)plan, (void)variant_pack;
    nullgpu_launched();
    return CUDNN_OK;
}
