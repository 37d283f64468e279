/* Reading the calls out of the lines that were picked: for calls.py, which tells what is read.
 *
 * A record is read if it is as Claude Code writes it: all of it sound JSON, without a space between its
 * parts, and what is kept of it in plain ASCII. Of any other it is said that it is not known, and then
 * Python reads it. None is ever read in another way than Python reads it: a test holds the two against
 * each other. Nothing here allocates, keeps anything, or reads outside of the lines that it is given.
 */

#include "calls.h"

#include <string.h>

typedef struct {
    const char *data, *at, *stop;
} cursor;

#define TEXT(literal) ((text){literal, sizeof literal - 1})

enum { DEEPEST = 64, DIGITS = 15 };

static int is(const cursor *c, span found, text with) {
    return found.to - found.from == with.size && c->data[found.from] == *with.bytes &&
           memcmp(c->data + found.from, with.bytes, with.size) == 0;
}

static int take(cursor *c, char byte) {
    if (c->at < c->stop && *c->at == byte) {
        c->at++;
        return 1;
    }
    return 0;
}

static int take_text(cursor *c, text word) {
    if ((size_t)(c->stop - c->at) < word.size || memcmp(c->at, word.bytes, word.size) != 0)
        return 0;
    c->at += word.size;
    return 1;
}

/* The first byte from here on, looked at eight at a time, that ends a string, begins an escape or may
 * not stand in one, or with `ascii` is none; at most seven bytes before the stop it looks no further. */
static const char *plain(const char *at, const char *stop, int ascii) {
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    const uint64_t ones = 0x0101010101010101u, tops = 0x8080808080808080u;
    for (; stop - at >= 8; at += 8) {
        uint64_t bytes;
        memcpy(&bytes, at, sizeof bytes);
        const uint64_t quote = bytes ^ ones * '"', slash = bytes ^ ones * '\\';
        const uint64_t odd =
            ((quote - ones) & ~quote) | ((slash - ones) & ~slash) | ((bytes - ones * ' ') & ~bytes);
        const uint64_t found = (ascii ? odd | bytes : odd) & tops;
        if (found)
            return at + (__builtin_ctzll(found) >> 3);
    }
#else
    (void)stop, (void)ascii;
#endif
    return at;
}

static int hex(char byte) {
    return (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'f') || (byte >= 'A' && byte <= 'F');
}

/* Behind a backslash. A surrogate is one of two, and left to Python. */
static int skip_escape(cursor *c) {
    if (c->at == c->stop)
        return 0;
    const char kind = *c->at++;
    if (kind != 'u')
        return kind && strchr("\"\\/bfnrt", kind) != NULL;
    for (int digits = 0; digits < 4; digits++)
        if (c->at + digits == c->stop || !hex(c->at[digits]))
            return 0;
    if ((c->at[0] == 'd' || c->at[0] == 'D') && c->at[1] > '7')
        return 0;
    c->at += 4;
    return 1;
}

static int skip_string(cursor *c) {
    if (!take(c, '"'))
        return 0;
    for (;;) {
        c->at = plain(c->at, c->stop, 0);
        if (c->at == c->stop)
            return 0;
        const unsigned char byte = (unsigned char)*c->at++;
        if (byte == '"')
            return 1;
        if (byte < ' ' || (byte == '\\' && !skip_escape(c)))
            return 0;
    }
}

static int skip_digits(cursor *c) {
    const char *from = c->at;
    while (c->at < c->stop && *c->at >= '0' && *c->at <= '9')
        c->at++;
    return c->at > from;
}

static int skip_number(cursor *c) {
    take(c, '-');
    if (!take(c, '0') && !skip_digits(c))
        return 0;
    if (take(c, '.') && !skip_digits(c))
        return 0;
    if (take(c, 'e') || take(c, 'E')) {
        if (!take(c, '-'))
            take(c, '+');
        return skip_digits(c);
    }
    return 1;
}

static int skip_scalar(cursor *c) {
    if (c->at == c->stop)
        return 0;
    switch (*c->at) {
    case '"':
        return skip_string(c);
    case 't':
        return take_text(c, TEXT("true"));
    case 'f':
        return take_text(c, TEXT("false"));
    case 'n':
        return take_text(c, TEXT("null"));
    default:
        return skip_number(c);
    }
}

/* A value of any kind; one that is nested too deeply is left to Python. */
static int skip(cursor *c) {
    char closing[DEEPEST];
    int depth = 0;
    for (;;) {
        int opened = 0;
        if (take(c, '{') || take(c, '[')) {
            if (depth == DEEPEST)
                return 0;
            closing[depth++] = c->at[-1] == '{' ? '}' : ']';
            opened = 1;
        } else if (!skip_scalar(c)) {
            return 0;
        }
        while (depth && take(c, closing[depth - 1])) {
            depth--;
            opened = 0;
        }
        if (!depth)
            return 1;
        if (!opened && !take(c, ','))
            return 0;
        if (closing[depth - 1] == '}' && !(skip_string(c) && take(c, ':')))
            return 0;
    }
}

static int is_plain(char byte) {
    const unsigned char value = (unsigned char)byte;
    return value >= ' ' && value < 0x80 && value != '"' && value != '\\';
}

/* A text in plain ASCII, without escapes, and not empty: the others are left to Python. */
static int read_text(cursor *c, span *found) {
    if (!take(c, '"'))
        return 0;
    const char *from = c->at;
    c->at = plain(c->at, c->stop, 1);
    while (c->at < c->stop && is_plain(*c->at))
        c->at++;
    found->from = (uint32_t)(from - c->data);
    found->to = (uint32_t)(c->at - c->data);
    return c->at > from && take(c, '"');
}

static int read_count(cursor *c, uint64_t *count) {
    const char *from = c->at;
    if (!skip_digits(c) || c->at - from > DIGITS || (*from == '0' && c->at - from > 1))
        return 0;
    for (*count = 0; from < c->at; from++)
        *count = *count * 10 + (uint64_t)(*from - '0');
    return 1;
}

/* What a record, its message, its usage or a pass of it may tell. */
typedef struct {
    span type, timestamp, version, asked, agent, id, model, unread;
    uint64_t input, cache_read, cache_write, output;
    int sidechain, unheeded;
} told;

enum kind { WORD, WORD_OR_NULL, FLAG, COUNT, NOTHING, MESSAGE, USAGE, PASSES };

/* A field that is not kept has to be of its kind all the same, as Python wants it. */
typedef struct {
    text name;
    enum kind kind;
    int required;
    size_t place;
} field;

typedef struct {
    const field *fields;
    size_t count;
} shape;

#define FIELD(name, kind, place) {{name, sizeof name - 1}, kind, 0, offsetof(told, place)}
#define REQUIRED(name, kind, place) {{name, sizeof name - 1}, kind, 1, offsetof(told, place)}
#define SHAPE(fields) ((shape){fields, sizeof fields / sizeof *fields})

static const field RECORD[] = {
    FIELD("parentUuid", WORD_OR_NULL, unread),
    FIELD("isSidechain", FLAG, sidechain),
    REQUIRED("message", MESSAGE, unread),
    FIELD("requestedModel", WORD_OR_NULL, asked),
    REQUIRED("type", WORD, type),
    FIELD("uuid", WORD_OR_NULL, unread),
    REQUIRED("timestamp", WORD, timestamp),
    FIELD("cwd", WORD_OR_NULL, unread),
    FIELD("sessionId", WORD_OR_NULL, unread),
    REQUIRED("version", WORD, version),
    FIELD("agentId", WORD_OR_NULL, agent),
    FIELD("subtype", WORD_OR_NULL, unread),
    FIELD("isCompactSummary", FLAG, unheeded),
    FIELD("compactMetadata", NOTHING, unread),
};

static const field OF_MESSAGE[] = {
    FIELD("model", WORD_OR_NULL, model),
    REQUIRED("id", WORD, id),
    REQUIRED("usage", USAGE, unread),
};

static const field OF_USAGE[] = {
    REQUIRED("input_tokens", COUNT, input),
    FIELD("cache_creation_input_tokens", COUNT, cache_write),
    FIELD("cache_read_input_tokens", COUNT, cache_read),
    REQUIRED("output_tokens", COUNT, output),
    FIELD("iterations", PASSES, unread),
};

static const field OF_PASS[] = {
    REQUIRED("input_tokens", COUNT, input),
    REQUIRED("output_tokens", COUNT, output),
    FIELD("cache_read_input_tokens", COUNT, cache_read),
    FIELD("cache_creation_input_tokens", COUNT, cache_write),
    FIELD("type", WORD_OR_NULL, unread),
};

static int read_object(cursor *c, shape known, told *into);

/* At most one pass: of several the right one is Python's to find. */
static int read_passes(cursor *c) {
    told pass;
    if (take_text(c, TEXT("null")) || take_text(c, TEXT("[]")))
        return 1;
    return take(c, '[') && read_object(c, SHAPE(OF_PASS), &pass) && take(c, ']');
}

static int read_flag(cursor *c, int *flag) {
    *flag = take_text(c, TEXT("true"));
    return *flag || take_text(c, TEXT("false"));
}

static int read_value(cursor *c, const field *wanted, told *into) {
    void *place = (char *)into + wanted->place;
    switch (wanted->kind) {
    case WORD:
        return read_text(c, place);
    case WORD_OR_NULL:
        return take_text(c, TEXT("null")) || read_text(c, place);
    case FLAG:
        return read_flag(c, place);
    case COUNT:
        return read_count(c, place);
    case NOTHING:
        return take_text(c, TEXT("null"));
    case MESSAGE:
        return read_object(c, SHAPE(OF_MESSAGE), into);
    case USAGE:
        return read_object(c, SHAPE(OF_USAGE), into);
    case PASSES:
        return read_passes(c);
    }
    return 0;
}

/* An object of a shape. One in which a field is twice, or a required one is not, is left to Python. */
static int read_object(cursor *c, shape known, told *into) {
    uint32_t seen = 0;
    if (!take(c, '{'))
        return 0;
    do {
        span key;
        size_t i = 0;
        if (!read_text(c, &key) || !take(c, ':'))
            return 0;
        while (i < known.count && !is(c, key, known.fields[i].name))
            i++;
        if (i == known.count) {
            if (!skip(c))
                return 0;
        } else if (seen >> i & 1 || !read_value(c, &known.fields[i], into)) {
            return 0;
        } else {
            seen |= 1u << i;
        }
    } while (take(c, ','));
    for (size_t i = 0; i < known.count; i++)
        if (known.fields[i].required && !(seen >> i & 1))
            return 0;
    return take(c, '}');
}

/* The number that so many digits are; -1 where they are none. */
static int digits(const char *at, int count) {
    int number = 0;
    for (; count--; at++) {
        if (*at < '0' || *at > '9')
            return -1;
        number = number * 10 + (*at - '0');
    }
    return number;
}

static int days_in(int year, int month) {
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    const int leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    return days[month - 1] + (month == 2 && leap);
}

/* The days from 1970-01-01 to a day of a later year. */
static int64_t day_number(int year, int month, int day) {
    const int64_t before = year - 1;
    int64_t days = before * 365 + before / 4 - before / 100 + before / 400 - 719162;
    for (int earlier = 1; earlier < month; earlier++)
        days += days_in(year, earlier);
    return days + day - 1;
}

/* The time as the client writes it, 2026-11-15T12:00:00.000Z, in seconds since the epoch. */
static int read_time(const cursor *c, span found, double *at) {
    const char *t = c->data + found.from;
    if (found.to - found.from != 24 || t[4] != '-' || t[7] != '-' || t[10] != 'T' || t[13] != ':' ||
        t[16] != ':' || t[19] != '.' || t[23] != 'Z')
        return 0;
    const int year = digits(t, 4), month = digits(t + 5, 2), day = digits(t + 8, 2);
    const int hour = digits(t + 11, 2), minute = digits(t + 14, 2), second = digits(t + 17, 2);
    const int thousandths = digits(t + 20, 3);
    if (year < 1970 || month < 1 || month > 12 || day < 1 || day > days_in(year, month) || hour < 0 ||
        hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 59 || thousandths < 0)
        return 0;
    const int64_t seconds = day_number(year, month, day) * 86400 + hour * 3600 + minute * 60 + second;
    *at = (double)(seconds * 1000 + thousandths) / 1000;
    return 1;
}

static int same(const char *data, span one, span other) {
    const size_t size = one.to - one.from;
    return other.to - other.from == size && memcmp(data + one.from, data + other.from, size) == 0;
}

static int alike(const char *data, const setting *one, const setting *other) {
    return same(data, one->version, other->version) && same(data, one->model, other->model) &&
           same(data, one->asked, other->asked) && same(data, one->agent, other->agent);
}

/* The call in the last line of a run, whose other lines have to be copies of it. */
static int read_call(const char *data, picked run, uint32_t key, row *out, setting *in, double *at) {
    const span name = {run.name + key, run.name_end - 1}, nobody = {0, 0};
    cursor c = {data, data + run.line, data + run.stop};
    told all = {0};
    if (!read_object(&c, SHAPE(RECORD), &all) || c.at != c.stop)
        return 0;
    if (!is(&c, all.type, TEXT("assistant")) || (all.sidechain && !all.agent.to))
        return 0;
    if (run.line != run.first && !same(data, all.id, name))
        return 0;
    const uint64_t tokens = all.input + all.cache_read + all.cache_write + all.output;
    *out = (row){NEW, all.id.from, all.id.to, all.input, all.cache_read, all.cache_write, all.output};
    *in = (setting){all.version, all.model, all.asked, all.sidechain ? all.agent : nobody};
    return tokens && read_time(&c, all.timestamp, at);
}

/* The calls of runs. `key` is the size of what stands before a run's name. A call is alike if it is in
 * the same setting as the last one before it that is known. */
void brimline_calls(const char *data, const picked *runs, size_t count, uint32_t key, row *out,
                    setting *in, double *at) {
    const setting *last = NULL;
    for (size_t i = 0; i < count; i++) {
        if (!read_call(data, runs[i], key, &out[i], &in[i], &at[i])) {
            out[i].known = UNKNOWN;
            continue;
        }
        if (last && alike(data, &in[i], last))
            out[i].known = ALIKE;
        last = &in[i];
    }
}
