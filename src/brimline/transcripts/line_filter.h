/* What is handed from the picking of lines to the reading of them. */

#ifndef BRIMLINE_LINE_FILTER_H
#define BRIMLINE_LINE_FILTER_H

#include <stddef.h>
#include <stdint.h>

typedef struct {
    const char *bytes;
    size_t size;
} text;

/* A run of copies, or a line alone: line_filter.py's Picked. */
typedef struct {
    uint32_t first, line, stop, name, name_end;
} picked;

size_t brimline_pick(const char *data, size_t start, size_t end_at, const text *needles, size_t count,
                     const text *key, picked *out, size_t room);

#endif
