/* Captures, for the graphs that they become. */
#ifndef NULLGPU_STREAMS_H
#define NULLGPU_STREAMS_H

#include "internal.h"

unsigned long long nullgpu_capture_id(const struct nullgpu_capture *capture);
void *nullgpu_capture_graph(const struct nullgpu_capture *capture);
int nullgpu_capture_begin(void *stream, void *graph); /* a status */
void *nullgpu_capture_end(void *stream);
void nullgpu_capture_spread(unsigned long long id, void *stream); /* stream waits for an event of that capture */

#endif
