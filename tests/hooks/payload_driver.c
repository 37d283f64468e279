/* Reduces the bodies that come on stdin, each behind its size, and writes what becomes of them:
 * the reduced body and the status line, each behind its size. For tests of payload.c. */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "payload.h"

static void put(const char *data, size_t size) {
    const uint32_t told = (uint32_t)size;
    fwrite(&told, sizeof told, 1, stdout);
    fwrite(data, 1, size, stdout);
}

int main(void) {
    uint32_t size;
    while (fread(&size, sizeof size, 1, stdin) == 1) {
        /* Each in memory of its own size: a sanitizer sees a byte that is read beyond it. */
        char *body = malloc(size ? size : 1), *reduced = malloc(MAX_REDUCED_BYTES), *exact;
        char line[MAX_STATUS_BYTES];
        if (!body || !reduced || fread(body, 1, size, stdin) != size)
            return 1;
        const size_t kept = reduce_body(body, size, reduced);
        exact = malloc(kept ? kept : 1);
        for (size_t i = 0; i < kept; i++)
            exact[i] = reduced[i];
        put(reduced, kept);
        put(line, short_status(exact, kept, "daemon off", line));
        fflush(stdout);
        free(body);
        free(reduced);
        free(exact);
    }
    return 0;
}
