/* NCCL collectives: what this rank knows of what it sends is what it receives (see nccl.c). */
#include "nccl.h"

#include <stdlib.h>

/* Bytes of one element, by ncclDataType_t. */
static size_t element_bytes(int type)
{
    static const uint8_t bytes[] = {
        1 /* int8 */,    1 /* uint8 */,   4 /* int32 */,   4 /* uint32 */,  8 /* int64 */,  8 /* uint64 */,
        2 /* float16 */, 4 /* float32 */, 8 /* float64 */, 2 /* bfloat16 */, 1 /* e4m3 */,   1 /* e5m2 */,
    };

    return type >= 0 && (size_t)type < sizeof bytes ? bytes[type] : 0;
}

static void hand_on(char *to, const char *from, size_t bytes)
{
    if (to && from && to != from && bytes)
        nullgpu_carry(to, from, bytes);
}

/* The same part from every rank. */
static void hand_on_to_all_parts(char *to, const char *from, size_t bytes, int ranks)
{
    for (int rank = 0; rank < ranks; rank++)
        hand_on(to + (size_t)rank * bytes, from, bytes);
}

NULLGPU_API int ncclAllGather(const char *send, char *receive, size_t count, int type,
                              struct nccl_communicator *communicator, void *stream)
{
    (void)stream;
    hand_on_to_all_parts(receive, send, count * element_bytes(type), communicator->size);
    return NCCL_OK;
}

NULLGPU_API int ncclGather(const char *send, char *receive, size_t count, int type, int root,
                           struct nccl_communicator *communicator, void *stream)
{
    (void)stream;
    if (communicator->rank == root)
        hand_on_to_all_parts(receive, send, count * element_bytes(type), communicator->size);
    return NCCL_OK;
}

NULLGPU_API int ncclBroadcast(const char *send, char *receive, size_t count, int type, int root,
                              struct nccl_communicator *communicator, void *stream)
{
    (void)root, (void)communicator, (void)stream;
    hand_on(receive, send, count * element_bytes(type));
    return NCCL_OK;
}

NULLGPU_API int ncclBcast(char *buffer, size_t count, int type, int root, struct nccl_communicator *communicator,
                          void *stream)
{
    return ncclBroadcast(buffer, buffer, count, type, root, communicator, stream);
}

NULLGPU_API int ncclAllReduce(const char *send, char *receive, size_t count, int type, int operation,
                              struct nccl_communicator *communicator, void *stream)
{
    (void)operation, (void)communicator, (void)stream;
    hand_on(receive, send, count * element_bytes(type));
    return NCCL_OK;
}

NULLGPU_API int ncclReduce(const char *send, char *receive, size_t count, int type, int operation, int root,
                           struct nccl_communicator *communicator, void *stream)
{
    (void)operation, (void)stream;
    if (communicator->rank == root)
        hand_on(receive, send, count * element_bytes(type));
    return NCCL_OK;
}

NULLGPU_API int ncclReduceScatter(const char *send, char *receive, size_t count, int type, int operation,
                                  struct nccl_communicator *communicator, void *stream)
{
    size_t bytes = count * element_bytes(type);

    (void)operation, (void)stream;
    hand_on(receive, send + (size_t)communicator->rank * bytes, bytes);
    return NCCL_OK;
}

/* Only the root's parts are given, and only to the root. */
NULLGPU_API int ncclScatter(const char *send, char *receive, size_t count, int type, int root,
                            struct nccl_communicator *communicator, void *stream)
{
    size_t bytes = count * element_bytes(type);

    (void)stream;
    if (communicator->rank == root)
        hand_on(receive, send + (size_t)root * bytes, bytes);
    else
        nullgpu_launched();
    return NCCL_OK;
}

/* A peer sends to this rank the part that this rank would send to itself. */
NULLGPU_API int ncclAlltoAll(const char *send, char *receive, size_t count, int type,
                             struct nccl_communicator *communicator, void *stream)
{
    size_t bytes = count * element_bytes(type);

    (void)stream;
    hand_on_to_all_parts(receive, send + (size_t)communicator->rank * bytes, bytes, communicator->size);
    return NCCL_OK;
}

/* ---- messages from rank to rank ----
 * torch builds all-to-all, gather and scatter out of them, within a group. What a peer sends is what this rank sends
 * to itself in the same group; without that, nobody knows. */

struct message {
    bool received;
    char *buffer;
    size_t bytes;
    int peer;
    const struct nccl_communicator *communicator;
};

/* A thread's own, and on the heap: thread-local storage takes room from every thread's stack. */
static __thread int group_depth;
static __thread struct message *messages;
static __thread size_t message_count, message_room;

static const struct message *sent_to_self(const struct message *wanted)
{
    for (size_t i = 0; i < message_count; i++) {
        const struct message *at = &messages[i];

        if (!at->received && at->communicator == wanted->communicator &&
            at->peer == wanted->communicator->rank && at->bytes == wanted->bytes)
            return at;
    }
    return NULL;
}

static void deliver(void)
{
    for (size_t i = 0; i < message_count; i++) {
        const struct message *from = messages[i].received ? sent_to_self(&messages[i]) : NULL;

        if (from)
            hand_on(messages[i].buffer, from->buffer, from->bytes);
        else if (messages[i].received)
            nullgpu_launched();
    }
    free(messages);
    messages = NULL;
    message_count = message_room = 0;
}

static int remember(struct message message)
{
    if (message_count == message_room) {
        size_t room = message_room ? 2 * message_room : 16;
        struct message *grown = realloc(messages, room * sizeof *grown);

        if (!grown)
            return NCCL_SYSTEM_ERROR;
        messages = grown;
        message_room = room;
    }
    messages[message_count++] = message;
    if (group_depth == 0)
        deliver();
    return NCCL_OK;
}

NULLGPU_API int ncclSend(char *buffer, size_t count, int type, int peer, struct nccl_communicator *communicator,
                         void *stream)
{
    (void)stream;
    return remember((struct message){false, buffer, count * element_bytes(type), peer, communicator});
}

NULLGPU_API int ncclRecv(char *buffer, size_t count, int type, int peer, struct nccl_communicator *communicator,
                         void *stream)
{
    (void)stream;
    return remember((struct message){true, buffer, count * element_bytes(type), peer, communicator});
}

NULLGPU_API int ncclGroupStart(void)
{
    group_depth++;
    return NCCL_OK;
}

NULLGPU_API int ncclGroupEnd(void)
{
    if (group_depth == 0)
        return NCCL_INVALID_USAGE;
    if (--group_depth == 0)
        deliver();
    return NCCL_OK;
}

/* ---- reductions of the caller's own ---- */

NULLGPU_API int ncclRedOpCreatePreMulSum(int *operation, void *scalar, int type, int residence,
                                         struct nccl_communicator *communicator)
{
    static int last = 5; /* the built-in ones are 0 to 4 */

    (void)scalar, (void)type, (void)residence, (void)communicator;
    *operation = __atomic_add_fetch(&last, 1, __ATOMIC_RELAXED);
    return NCCL_OK;
}
