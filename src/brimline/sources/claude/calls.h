/* The calls of lines that were picked, and where their texts stand. */

#ifndef BRIMLINE_CALLS_H
#define BRIMLINE_CALLS_H

#include "../../transcripts/line_filter.h"

/* Where a text stands in the data; empty where there is none. */
typedef struct {
    uint32_t from, to;
} span;

/* What is told of a run: whether its call is known, and its call's id and usage. */
typedef struct {
    uint64_t known, id, id_end, input, cache_read, cache_write, output;
} row;

/* What of a call is mostly as in the call before. */
typedef struct {
    span version, model, asked, agent;
} setting;

enum { UNKNOWN, ALIKE, NEW };

void brimline_calls(const char *data, const picked *runs, size_t count, uint32_t key, row *out,
                    setting *in, double *at);

#endif
