/* CompiledLineFilter of line_filter.py: finds the few lines that matter in large files.
 *
 * line_filter.py defines the result and has the same in Python; a test compares the two. This code does
 * not allocate, keeps no state, and reads only the bytes that it is given.
 */

#define _GNU_SOURCE
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct {
    const char *bytes;
    size_t size;
} text;

/* A run of copies, or a line alone: LineRun of line_filter.py. */
typedef struct {
    uint32_t first, line, stop, name, name_end;
} line_run;

#ifdef __APPLE__
static const char *memrchr(const char *from, int byte, size_t size) {
    while (size--)
        if (from[size] == (char)byte)
            return from + size;
    return NULL;
}
#endif

static const char *find(const char *from, const char *end, text needle) {
    return memmem(from, (size_t)(end - from), needle.bytes, needle.size);
}

static const char *byte(const char *from, const char *end, char value) {
    return memchr(from, value, (size_t)(end - from));
}

static int begins(const char *at, const char *end, text with) {
    return (size_t)(end - at) >= with.size && memcmp(at, with.bytes, with.size) == 0;
}

/* What the bytes at a place tell: nothing, where in a needle they stand (counted from 1), or that
 * they stand at several places in needles. */
enum { GRAM = 4, BITS = 14, NOWHERE = 0, ANYWHERE = 255 };

typedef struct {
    unsigned char place[1 << BITS];
    size_t stride;
} grams;

static uint32_t slot(const char *at) {
    uint32_t gram;
    memcpy(&gram, at, GRAM);
    return gram * 0x9E3779B1u >> (32 - BITS);
}

static void learn(grams *known, const text *needles, size_t count) {
    size_t shortest = ANYWHERE;
    for (size_t i = 0; i < count; i++)
        if (needles[i].size < shortest)
            shortest = needles[i].size;
    memset(known->place, NOWHERE, sizeof known->place);
    known->stride = shortest - GRAM + 1;
    for (size_t i = 0; i < count; i++)
        for (size_t at = 0; at < known->stride; at++) {
            unsigned char *place = &known->place[slot(needles[i].bytes + at)];
            *place = *place == NOWHERE || *place == at + 1 ? (unsigned char)(at + 1) : ANYWHERE;
        }
}

static int needle_at(const char *at, const char *end, const text *needles, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (*at == needles[i].bytes[0] && begins(at, end, needles[i]))
            return 1;
    return 0;
}

/* The first place from `at` on, in steps of a stride, whose bytes stand in a needle. Time is spent
 * here: kept apart, all that it needs stays in registers. */
__attribute__((noinline)) static size_t suspect(const grams *known, const char *from, size_t at,
                                                size_t size) {
    const size_t stride = known->stride;
    while (at + GRAM <= size && known->place[slot(from + at)] == NOWHERE)
        at += stride;
    return at;
}

/* Where the next needle begins; NULL where there is none. Each has a gram that is looked at, since
 * the stride is no longer than the shortest needle. */
static const char *next(const grams *known, const char *from, const char *end, const text *needles,
                        size_t count) {
    const size_t stride = known->stride, size = (size_t)(end - from);
    size_t at = suspect(known, from, stride - 1, size);
    for (; at + GRAM <= size; at = suspect(known, from, at + stride, size)) {
        const unsigned char place = known->place[slot(from + at)];
        const size_t least = place == ANYWHERE ? 0 : place - 1u;
        for (size_t back = place == ANYWHERE ? stride : place; back-- > least;)
            if (needle_at(from + at - back, end, needles, count))
                return from + at - back;
    }
    return NULL;
}

/* Whether a line may be more than one record: glued together, or with a crash's NULs between. */
static int several(const char *line, const char *stop) {
    const size_t size = (size_t)(stop - line);
    unsigned char seam = 0;
    for (size_t i = 2; i < size; i++)
        seam |= (line[i - 2] == '}') & (line[i - 1] == '{') & (line[i] == '"');
    return seam || byte(line, stop, 0);
}

/* The name of a line, with its key and its quote; empty if it has none, or if its first needle, which
 * begins at `hit`, does not mark a call. */
static text name_of(const char *line, const char *hit, const char *stop, text counted, text key) {
    const text none = {line, 0};
    const char *name, *name_end;
    if (!begins(hit, stop, counted))
        return none;
    if (!(name = find(line, hit, key)) || !(name_end = byte(name + key.size, hit, '"')))
        return none;
    const text found = {name, (size_t)(name_end + 1 - name)};
    return found;
}

/* Whether a line that begins at `first` is a copy of the last one of a run, which is one record and
 * can be passed over. */
static int copies(const char *data, line_run run, const char *first, text name) {
    const text named = {data + run.name, run.name_end - run.name};
    return name.size && first - data == run.stop + 1 && name.size == named.size &&
           name.bytes - first == run.name - run.first &&
           memcmp(name.bytes, named.bytes, name.size) == 0 && !several(data + run.line, data + run.stop);
}

/* Finds the runs of data[start..end), which is whole lines; needles[0] marks calls. Returns their number:
 * less than `room` means that there are no more. */
size_t brimline_line_runs(const char *data, size_t start, size_t end_at, const text *needles, size_t count,
                     const text *key, line_run *out, size_t room) {
    grams known;
    learn(&known, needles, count);
    const char *from = data + start, *end = data + end_at, *hit;
    size_t n = 0;
    while ((hit = next(&known, from, end, needles, count))) {
        const char *before = memrchr(from, '\n', (size_t)(hit - from));
        const char *first = before ? before + 1 : from, *stop = byte(hit, end, '\n');
        const text name = name_of(first, hit, stop, needles[0], *key);
        if (n && copies(data, out[n - 1], first, name)) {
            out[n - 1].line = (uint32_t)(first - data);
            out[n - 1].stop = (uint32_t)(stop - data);
        } else if (n < room) {
            const uint32_t line = (uint32_t)(first - data), at = (uint32_t)(name.bytes - data);
            const line_run run = {line, line, (uint32_t)(stop - data), at, at + (uint32_t)name.size};
            out[n++] = run;
        } else {
            break;
        }
        from = stop + 1;
    }
    return n;
}
