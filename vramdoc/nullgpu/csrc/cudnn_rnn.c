/* cuDNN recurrent layers: RNN, LSTM (with projection) and GRU.
 *
 * Known: the weight space holds the parameters and nothing else, the matrices before the biases; pytorch/pytorch#57632
 * prints where a real GPU puts those of an LSTM. torch lays its parameters into it.
 * Published: reserve space of LSTM and GRU, see reserve_elements().
 * Estimates: all else; each says so. */
#include "cudnn_types.h"

#include <stdlib.h>

enum rnn_cell { RNN_RELU, RNN_TANH, RNN_LSTM, RNN_GRU };
enum rnn_bias { BIAS_NONE, BIAS_INPUT, BIAS_DOUBLE, BIAS_RECURRENT };
enum { FORWARD_INFERENCE = 0, FORWARD_TRAINING = 1 };

struct cudnn_rnn {
    int cell;
    int bias;
    int bidirectional;
    int data_type;
    int64_t input;
    int64_t hidden;
    int64_t projection; /* length of a layer's output: hidden, or less with a projection */
    int layers;
};

struct cudnn_rnn_data {
    int data_type;
    int64_t steps;
    int64_t batch;
};

/* ---- objects ---- */

NULLGPU_API int cudnnCreateRNNDescriptor(struct cudnn_rnn **rnn)
{
    *rnn = calloc(1, sizeof **rnn);
    return *rnn ? CUDNN_OK : CUDNN_ALLOC_FAILED;
}

NULLGPU_API int cudnnDestroyRNNDescriptor(struct cudnn_rnn *rnn)
{
    free(rnn);
    return CUDNN_OK;
}

NULLGPU_API int cudnnSetRNNDescriptor_v8(struct cudnn_rnn *rnn, int algorithm, int cell, int bias, int direction,
                                         int input_mode, int data_type, int math_precision, int math_type,
                                         int input, int hidden, int projection, int layers, void *dropout,
                                         unsigned flags)
{
    (void)algorithm, (void)input_mode, (void)math_precision, (void)math_type, (void)dropout, (void)flags;
    *rnn = (struct cudnn_rnn){
        .cell = cell,
        .bias = bias,
        .bidirectional = direction != 0,
        .data_type = data_type,
        .input = input,
        .hidden = hidden,
        .projection = projection ? projection : hidden,
        .layers = layers,
    };
    return CUDNN_OK;
}

NULLGPU_API int cudnnCreateRNNDataDescriptor(struct cudnn_rnn_data **data)
{
    *data = calloc(1, sizeof **data);
    return *data ? CUDNN_OK : CUDNN_ALLOC_FAILED;
}

NULLGPU_API int cudnnDestroyRNNDataDescriptor(struct cudnn_rnn_data *data)
{
    free(data);
    return CUDNN_OK;
}

NULLGPU_API int cudnnSetRNNDataDescriptor(struct cudnn_rnn_data *data, int data_type, int layout, int max_steps,
                                          int batch, int vector, const int *lengths, void *padding)
{
    (void)layout, (void)vector, (void)lengths, (void)padding;
    *data = (struct cudnn_rnn_data){.data_type = data_type, .steps = max_steps, .batch = batch};
    return CUDNN_OK;
}

/* ---- shapes ---- */

static int gates(const struct cudnn_rnn *rnn)
{
    return rnn->cell == RNN_LSTM ? 4 : rnn->cell == RNN_GRU ? 3 : 1;
}

static int directions(const struct cudnn_rnn *rnn)
{
    return rnn->bidirectional ? 2 : 1;
}

/* A bidirectional layer is two pseudo layers, forward first. */
static int pseudo_layers(const struct cudnn_rnn *rnn)
{
    return rnn->layers * directions(rnn);
}

static bool projects(const struct cudnn_rnn *rnn)
{
    return rnn->projection < rnn->hidden;
}

static int bias_vectors(const struct cudnn_rnn *rnn)
{
    return rnn->bias == BIAS_NONE ? 0 : rnn->bias == BIAS_DOUBLE ? 2 : 1;
}

/* Elements of one gate's matrix that multiplies the layer's input. */
static int64_t input_matrix(const struct cudnn_rnn *rnn, int pseudo_layer)
{
    bool first = pseudo_layer < directions(rnn);

    return rnn->hidden * (first ? rnn->input : rnn->projection * directions(rnn));
}

/* Elements of one gate's matrix that multiplies the state. */
static int64_t recurrent_matrix(const struct cudnn_rnn *rnn)
{
    return rnn->hidden * rnn->projection;
}

static int64_t layer_matrices(const struct cudnn_rnn *rnn, int pseudo_layer)
{
    int64_t projection = projects(rnn) ? rnn->projection * rnn->hidden : 0;

    return gates(rnn) * (input_matrix(rnn, pseudo_layer) + recurrent_matrix(rnn)) + projection;
}

/* Elements of all matrices before those of the pseudo layer. */
static int64_t matrices_before(const struct cudnn_rnn *rnn, int pseudo_layer)
{
    int64_t sum = 0;

    for (int layer = 0; layer < pseudo_layer; layer++)
        sum += layer_matrices(rnn, layer);
    return sum;
}

/* ---- weights: the matrices of every pseudo layer, then their biases ---- */

NULLGPU_API int cudnnGetRNNWeightSpaceSize(void *handle, const struct cudnn_rnn *rnn, size_t *bytes)
{
    int layers = pseudo_layers(rnn);
    int64_t biases = (int64_t)layers * bias_vectors(rnn) * gates(rnn) * rnn->hidden;

    (void)handle;
    *bytes = (size_t)(matrices_before(rnn, layers) + biases) * nullgpu_cudnn_element_bytes(rnn->data_type);
    return CUDNN_OK;
}

struct matrix_place {
    int64_t offset, rows, columns;
};

/* Matrices are numbered: those of the gates for the input, those for the state, the projection. */
static struct matrix_place find_matrix(const struct cudnn_rnn *rnn, int pseudo_layer, int number)
{
    int count = gates(rnn);
    int64_t start = matrices_before(rnn, pseudo_layer);
    int64_t of_input = input_matrix(rnn, pseudo_layer);
    int64_t of_state = recurrent_matrix(rnn);

    if (number < count)
        return (struct matrix_place){start + number * of_input, rnn->hidden, of_input / rnn->hidden};
    if (number < 2 * count)
        return (struct matrix_place){start + count * of_input + (number - count) * of_state, rnn->hidden,
                                     rnn->projection};
    return (struct matrix_place){start + count * (of_input + of_state), rnn->projection, rnn->hidden};
}

/* Where a matrix or vector lies and how it is shaped, for a caller that may want only one of the two. */
static void describe(struct cudnn_tensor *tensor, void **address, const struct cudnn_rnn *rnn, char *space,
                     struct matrix_place place)
{
    if (tensor)
        *tensor = (struct cudnn_tensor){
            .data_type = rnn->data_type,
            .dimensions = 3,
            .size = {1, (int)place.rows, (int)place.columns},
            .stride = {(int)(place.rows * place.columns), (int)place.columns, 1},
        };
    if (address)
        *address = space + place.offset * (int64_t)nullgpu_cudnn_element_bytes(rnn->data_type);
}

static void describe_nothing(struct cudnn_tensor *tensor, void **address, const struct cudnn_rnn *rnn)
{
    if (tensor)
        *tensor = (struct cudnn_tensor){.data_type = rnn->data_type};
    if (address)
        *address = NULL;
}

/* Index of the bias vector that goes with a matrix, among those of its pseudo layer; -1 where there is none. */
static int bias_number(const struct cudnn_rnn *rnn, int number)
{
    int count = gates(rnn);
    bool of_state = number >= count;

    if (number >= 2 * count || rnn->bias == BIAS_NONE)
        return -1;
    if (rnn->bias == BIAS_DOUBLE)
        return number;
    if (of_state != (rnn->bias == BIAS_RECURRENT))
        return -1;
    return number % count;
}

NULLGPU_API int cudnnGetRNNWeightParams(void *handle, const struct cudnn_rnn *rnn, int pseudo_layer,
                                        size_t space_bytes, char *space, int number,
                                        struct cudnn_tensor *matrix, void **matrix_address,
                                        struct cudnn_tensor *bias, void **bias_address)
{
    int count = gates(rnn);
    int vector = bias_number(rnn, number);

    (void)handle, (void)space_bytes;
    if (number < 2 * count || (number == 2 * count && projects(rnn)))
        describe(matrix, matrix_address, rnn, space, find_matrix(rnn, pseudo_layer, number));
    else
        describe_nothing(matrix, matrix_address, rnn);
    if (vector >= 0) {
        int64_t vectors_before = (int64_t)pseudo_layer * bias_vectors(rnn) * count + vector;
        int64_t offset = matrices_before(rnn, pseudo_layers(rnn)) + vectors_before * rnn->hidden;

        describe(bias, bias_address, rnn, space, (struct matrix_place){offset, rnn->hidden, 1});
    } else {
        describe_nothing(bias, bias_address, rnn);
    }
    return CUDNN_OK;
}

/* ---- temporary and reserve space ---- */

/* Values kept for the backward pass, for each step, sample, hidden unit and pseudo layer.
 *
 * A measurement is public (pytorch/pytorch#2895): 4 layers, input 123, hidden 320, 25,000 steps times samples,
 * float32, keep 736,000,000 bytes as LSTM and 864,000,000 as GRU: 5 values a unit for LSTM (its gates and the cell)
 * and 6 for GRU, and one more for each layer but the last (its output, which the last returns to the caller).
 * Estimates: one value for a plain RNN; the output before a projection; nothing for the mask of dropout. */
static int64_t reserve_elements(const struct cudnn_rnn *rnn, const struct cudnn_rnn_data *data)
{
    int64_t places = data->steps * data->batch * directions(rnn);
    int64_t kept = rnn->cell == RNN_LSTM ? 5 : rnn->cell == RNN_GRU ? 6 : 1;

    if (projects(rnn))
        kept++;
    return places * (rnn->layers * kept * rnn->hidden + (rnn->layers - 1) * rnn->projection);
}

/* The matrices rearranged, and buffers of a single step. With a batch of 100 this gives the 17,730,560 (LSTM) and
 * 13,169,920 bytes (GRU) that the same measurement states; the batch is not stated there, so the term of the single
 * step is an estimate. Inference has no reserve space: its gates and the output between layers are estimated here. */
static int64_t workspace_elements(const struct cudnn_rnn *rnn, const struct cudnn_rnn_data *data, int mode)
{
    int layers = pseudo_layers(rnn);
    int64_t step = (int64_t)layers * data->batch * rnn->hidden * (3 * gates(rnn) - 1);
    int64_t places = data->steps * data->batch * directions(rnn);
    int64_t sum = matrices_before(rnn, layers) + step;

    if (mode == FORWARD_INFERENCE) {
        sum += places * gates(rnn) * rnn->hidden;
        if (rnn->layers > 1)
            sum += places * rnn->projection;
    }
    return sum;
}

NULLGPU_API int cudnnGetRNNTempSpaceSizes(void *handle, const struct cudnn_rnn *rnn, int mode,
                                          const struct cudnn_rnn_data *data, size_t *workspace_bytes,
                                          size_t *reserve_bytes)
{
    size_t element = nullgpu_cudnn_element_bytes(rnn->data_type);

    (void)handle;
    if (workspace_bytes)
        *workspace_bytes = (size_t)workspace_elements(rnn, data, mode) * element;
    if (reserve_bytes)
        *reserve_bytes = mode == FORWARD_TRAINING ? (size_t)reserve_elements(rnn, data) * element : 0;
    return CUDNN_OK;
}
