/* NVRTC: programs that "compile" to nothing. What a program asks of the result are a binary to load, which the
 * engine's modules take whatever it holds, and the compiled names of its kernels. */
#include "nullgpu.h"

#include <stdlib.h>
#include <string.h>

enum { NVRTC_OK = 0, NVRTC_OUT_OF_MEMORY = 1, NVRTC_INVALID_INPUT = 3, NVRTC_NO_SUCH_NAME = 10 };

struct expression {
    struct expression *next;
    char text[];
};

struct program {
    struct expression *expressions;
};

NULLGPU_API int nvrtcVersion(int *major, int *minor)
{
    *major = nullgpu_versions()->cuda / 1000;
    *minor = nullgpu_versions()->cuda % 1000 / 10;
    return NVRTC_OK;
}

NULLGPU_API int nvrtcCreateProgram(struct program **out, const char *source, const char *name, int headers,
                                   const char *const *header, const char *const *include)
{
    (void)source, (void)name, (void)headers, (void)header, (void)include;
    *out = calloc(1, sizeof **out);
    return *out ? NVRTC_OK : NVRTC_OUT_OF_MEMORY;
}

NULLGPU_API int nvrtcDestroyProgram(struct program **program)
{
    if (!program || !*program)
        return NVRTC_INVALID_INPUT;
    while ((*program)->expressions) {
        struct expression *first = (*program)->expressions;

        (*program)->expressions = first->next;
        free(first);
    }
    free(*program);
    *program = NULL;
    return NVRTC_OK;
}

NULLGPU_API int nvrtcAddNameExpression(struct program *program, const char *text)
{
    size_t bytes = strlen(text) + 1;
    struct expression *added = malloc(sizeof *added + bytes);

    if (!added)
        return NVRTC_OUT_OF_MEMORY;
    memcpy(added->text, text, bytes);
    added->next = program->expressions;
    program->expressions = added;
    return NVRTC_OK;
}

/* Nobody looks into a compiled name, so the expression itself serves. */
NULLGPU_API int nvrtcGetLoweredName(struct program *program, const char *text, const char **lowered)
{
    for (struct expression *at = program->expressions; at; at = at->next)
        if (!strcmp(at->text, text)) {
            *lowered = at->text;
            return NVRTC_OK;
        }
    return NVRTC_NO_SUCH_NAME;
}

/* Every output of a compilation is an empty string: its terminator is its only byte. */
#define OUTPUT(name)                                                           \
    NULLGPU_API int nvrtcGet##name##Size(struct program *program, size_t *size) \
    {                                                                          \
        (void)program;                                                         \
        *size = 1;                                                             \
        return NVRTC_OK;                                                       \
    }                                                                          \
    NULLGPU_API int nvrtcGet##name(struct program *program, char *out)         \
    {                                                                          \
        (void)program;                                                         \
        *out = '\0';                                                           \
        return NVRTC_OK;                                                       \
    }

OUTPUT(PTX)
OUTPUT(CUBIN)
OUTPUT(LTOIR)
OUTPUT(ProgramLog)

NULLGPU_API const char *nvrtcGetErrorString(int status)
{
    return status == NVRTC_OK ? "NVRTC_SUCCESS" : "NVRTC_ERROR";
}
