/* What stands behind a place of a transcript: for ahead.py, which tells what is expected there.
 *
 * It is asked while an agent waits for its hook. So it reads the file by itself, and says one of three
 * things. There is one buffer, which Python's lock keeps: it is called with that held.
 */

#define _POSIX_C_SOURCE 200809L

#include "calls.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NOTHING, CALLS, UNSURE };

enum { LONGEST = 256 << 10, MOST = 64 };

/* A place and what is expected behind it: ahead.py's _Place. It moves on with what was as expected. */
typedef struct {
    const char *path;
    uint64_t file, offset;
    text version, model, asked;
    uint64_t sent, most;
} place;

/* How much was written behind a place and is in `data`; -1 where that is not known, or is too much. */
static ssize_t written(const place *at, char *data) {
    struct stat status;
    ssize_t size = -1;
    const int file = open(at->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0)
        return -1;
    if (fstat(file, &status) == 0 && S_ISREG(status.st_mode) && (uint64_t)status.st_ino == at->file &&
        (uint64_t)status.st_size >= at->offset)
        size = pread(file, data, LONGEST, (off_t)at->offset);
    close(file);
    return size < LONGEST ? size : -1;
}

static int is(const char *data, span found, text with) {
    return found.to - found.from == with.size && memcmp(data + found.from, with.bytes, with.size) == 0;
}

/* Whether a call of the main thread is of the version and the model that are expected. One that was
 * asked for by the model's own name was asked for by no other. */
static int fits(const place *at, const char *data, const setting *in) {
    const int same = is(data, in->asked, at->asked) || (!at->asked.size && is(data, in->asked, at->model));
    return !in->agent.to && is(data, in->version, at->version) && is(data, in->model, at->model) && same;
}

/* Whether there is nothing behind a place that matters, or calls that are as expected, each no smaller
 * than the one before. */
int brimline_ahead(place *at, const text *needles, size_t count, const text *key) {
    static char data[LONGEST];
    static picked runs[MOST];
    static row calls[MOST];
    static setting in[MOST];
    static double times[MOST];
    const ssize_t size = written(at, data);
    if (size <= 0)
        return size ? UNSURE : NOTHING;
    if (data[size - 1] != '\n')
        return UNSURE;
    const size_t found = brimline_pick(data, 0, (size_t)size, needles, count, key, runs, MOST);
    if (found == MOST)
        return UNSURE;
    brimline_calls(data, runs, found, (uint32_t)key->size, calls, in, times);
    uint64_t sent = at->sent;
    for (size_t i = 0; i < found; i++) {
        const uint64_t next = calls[i].input + calls[i].cache_read + calls[i].cache_write;
        if (calls[i].known == UNKNOWN || !fits(at, data, &in[i]) || next < sent ||
            next + calls[i].output > at->most)
            return UNSURE;
        sent = next;
    }
    at->sent = sent;
    at->offset += (uint64_t)size;
    return found ? CALLS : NOTHING;
}
