/* The parts of a hook's or status line's input that the daemon reads; payload.py has them too. */

#ifndef BRIMLINE_PAYLOAD_H
#define BRIMLINE_PAYLOAD_H

#include <stddef.h>

enum {
    MAX_VALUE_BYTES = 4096,
    MAX_REDUCED_BYTES = 64 << 10,
    MAX_STATUS_BYTES = 128,
};

/* Copies the fields that the daemon reads from a JSON object into a buffer of MAX_REDUCED_BYTES.
 * Returns the bytes written; 0 if the body is not one JSON object, or the result does not fit. */
size_t reduce_body(const char *body, size_t size, char *into);

/* Writes a status line with what a reduced body contains into a buffer of MAX_STATUS_BYTES.
 * Returns the bytes written; 0 if the body says nothing about the context. */
size_t short_status(const char *reduced, size_t size, const char *daemon_state, char *into);

#endif
