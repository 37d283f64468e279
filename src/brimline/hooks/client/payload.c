/* A strict scanner for JSON objects: copies their needed fields, and makes a short status line.
 *
 * payload.py copies the same fields in Python, and a test compares the two on generated bodies. Bytes
 * outside ASCII are copied, not checked: the daemon rejects a text that is not UTF-8.
 */

#define _GNU_SOURCE
#include "payload.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tables.h"

enum { MAX_DEPTH = 900, MAX_KEPT_DEPTH = 3, MAX_TOKENS = 100000000 };

typedef struct {
    const char *at, *end;
} Text;

static size_t length(Text text) { return (size_t)(text.end - text.at); }

static int take(Text *text, char wanted) {
    if (text->at == text->end || *text->at != wanted)
        return 0;
    text->at++;
    return 1;
}

static void skip_space(Text *text) {
    while (text->at < text->end && memchr(" \t\n\r", *text->at, 4))
        text->at++;
}

static int skip_word(Text *text, const char *word) {
    const size_t size = strlen(word);
    if (length(*text) < size || memcmp(text->at, word, size))
        return 0;
    text->at += size;
    return 1;
}

static int is_hex(char byte) {
    return (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'f') ||
           (byte >= 'A' && byte <= 'F');
}

static int skip_escape(Text *text) {
    if (text->at == text->end)
        return 0;
    const char kind = *text->at++;
    if (kind != 'u')
        return kind && strchr("\"\\/bfnrt", kind) != NULL;
    for (int digits = 0; digits < 4; digits++)
        if (text->at == text->end || !is_hex(*text->at++))
            return 0;
    return 1;
}

static int skip_string(Text *text) {
    if (!take(text, '"'))
        return 0;
    while (text->at < text->end) {
        const unsigned char byte = (unsigned char)*text->at++;
        if (byte == '"')
            return 1;
        if (byte < ' ' || (byte == '\\' && !skip_escape(text)))
            return 0;
    }
    return 0;
}

static int skip_digits(Text *text) {
    const char *const begin = text->at;
    while (text->at < text->end && *text->at >= '0' && *text->at <= '9')
        text->at++;
    return text->at > begin;
}

/* An incomplete fraction or exponent is not skipped: the caller then finds no valid JSON. */
static int skip_number(Text *text) {
    Text rest = *text;
    take(&rest, '-');
    if (!take(&rest, '0') && !skip_digits(&rest))
        return 0;
    *text = rest;
    if (take(&rest, '.') && skip_digits(&rest))
        *text = rest;
    rest = *text;
    if (take(&rest, 'e') || take(&rest, 'E')) {
        if (!take(&rest, '+'))
            take(&rest, '-');
        if (skip_digits(&rest))
            *text = rest;
    }
    return 1;
}

static int skip_value(Text *text, int depth);

/* Reads the next member of an object whose brace was taken; 0 at its end, -1 if it is malformed. */
static int next_member(Text *text, int is_first, Text *key, Text *value, int depth) {
    skip_space(text);
    if (take(text, '}'))
        return 0;
    if (!is_first && !take(text, ','))
        return -1;
    skip_space(text);
    key->at = text->at + 1;
    if (!skip_string(text))
        return -1;
    key->end = text->at - 1;
    skip_space(text);
    if (!take(text, ':'))
        return -1;
    skip_space(text);
    value->at = text->at;
    if (!skip_value(text, depth + 1))
        return -1;
    value->end = text->at;
    return 1;
}

static int skip_object(Text *text, int depth) {
    Text key, value;
    int state = 1;
    for (int is_first = 1; state > 0; is_first = 0)
        state = next_member(text, is_first, &key, &value, depth);
    return state == 0;
}

static int skip_array(Text *text, int depth) {
    skip_space(text);
    if (take(text, ']'))
        return 1;
    do {
        skip_space(text);
        if (!skip_value(text, depth + 1))
            return 0;
        skip_space(text);
    } while (take(text, ','));
    return take(text, ']');
}

/* NaN and the infinities are accepted, as by Python: some clients write them. */
static int skip_value(Text *text, int depth) {
    if (text->at == text->end || depth > MAX_DEPTH)
        return 0;
    switch (*text->at) {
    case '"':
        return skip_string(text);
    case '{':
        text->at++;
        return skip_object(text, depth);
    case '[':
        text->at++;
        return skip_array(text, depth);
    case 't':
        return skip_word(text, "true");
    case 'f':
        return skip_word(text, "false");
    case 'n':
        return skip_word(text, "null");
    case 'N':
        return skip_word(text, "NaN");
    case 'I':
        return skip_word(text, "Infinity");
    default:
        return skip_word(text, "-Infinity") || skip_number(text);
    }
}

static int is_needed(Text key) {
    for (size_t i = 0; i < sizeof FIELDS / sizeof *FIELDS; i++)
        if (length(key) == strlen(FIELDS[i]) && !memcmp(key.at, FIELDS[i], length(key)))
            return 1;
    return 0;
}

typedef struct {
    char *at, *end;
    int is_full;
} Output;

static void put(Output *output, const char *from, size_t size) {
    if (output->is_full || (size_t)(output->end - output->at) < size) {
        output->is_full = 1;
        return;
    }
    memcpy(output->at, from, size);
    output->at += size;
}

static void put_key(Output *output, Text key) {
    if (output->at[-1] != '{')
        put(output, ",", 1);
    put(output, "\"", 1);
    put(output, key.at, length(key));
    put(output, "\":", 2);
}

/* Writes the needed members of an object; 0 if it is malformed. */
static int put_object(Output *output, Text *text, int kept_depth) {
    Text key, value;
    int state = 1;
    if (!take(text, '{'))
        return 0;
    put(output, "{", 1);
    for (int is_first = 1; !output->is_full; is_first = 0) {
        state = next_member(text, is_first, &key, &value, kept_depth);
        if (state <= 0)
            break;
        if (!is_needed(key) || *value.at == '[')
            continue;
        if (*value.at == '{' && kept_depth < MAX_KEPT_DEPTH) {
            put_key(output, key);
            put_object(output, &value, kept_depth + 1);
        } else if (*value.at != '{' && length(value) <= MAX_VALUE_BYTES) {
            put_key(output, key);
            put(output, value.at, length(value));
        }
    }
    put(output, "}", 1);
    return state == 0;
}

size_t reduce_body(const char *body, size_t size, char *into) {
    Text text = {body, body + size};
    Output output = {into, into + MAX_REDUCED_BYTES, 0};
    skip_space(&text);
    if (!put_object(&output, &text, 1) || output.is_full)
        return 0;
    skip_space(&text);
    return text.at == text.end ? (size_t)(output.at - into) : 0;
}

/* Finds a member of an object, the last one of that name; empty if there is none. */
static Text find_member(Text object, const char *name) {
    Text key, value, last = {NULL, NULL};
    if (!length(object) || !take(&object, '{'))
        return last;
    for (int is_first = 1; next_member(&object, is_first, &key, &value, 1) > 0; is_first = 0)
        if (length(key) == strlen(name) && !memcmp(key.at, name, length(key)))
            last = value;
    return last;
}

/* Reads a count of tokens; -1 if the value is not one that any window could hold. */
static long read_count(Text value) {
    char digits[16], *end;
    if (!length(value) || length(value) >= sizeof digits || strchr("tfnNI\"{", *value.at))
        return -1;
    memcpy(digits, value.at, length(value));
    digits[length(value)] = '\0';
    const long number = strtol(digits, &end, 10);
    return *end || number < 0 || number >= MAX_TOKENS ? -1 : number;
}

/* Reads what the last call sent; -1 if any part of it is missing or impossible. */
static long read_sent(Text usage) {
    static const char *const PARTS[] = {"input_tokens", "cache_read_input_tokens",
                                        "cache_creation_input_tokens"};
    long sent = 0;
    for (size_t i = 0; i < sizeof PARTS / sizeof *PARTS; i++) {
        const long count = read_count(find_member(usage, PARTS[i]));
        if (count < 0)
            return -1;
        sent += count;
    }
    return sent;
}

/* Writes a token count as `usage.format_tokens` does: 950, 9.5K, 90K, 1.25M. */
static const char *shorten(long tokens, char *into, size_t size) {
    if (tokens < 1000)
        snprintf(into, size, "%ld", tokens);
    else if (tokens >= 9950 && tokens < 999500)
        snprintf(into, size, "%ldK", (tokens + 500) / 1000);
    else {
        const int is_large = tokens >= 999500;
        const long number = is_large ? (tokens + 5000) / 10000 : (tokens + 50) / 100 * 10;
        int end = snprintf(into, size, "%ld.%02ld", number / 100, number % 100);
        while (into[end - 1] == '0')
            end--;
        end -= into[end - 1] == '.';
        snprintf(into + end, size - (size_t)end, "%c", is_large ? 'M' : 'K');
    }
    return into;
}

size_t short_status(const char *reduced, size_t size, const char *daemon_state, char *into) {
    char used[24], whole[24];
    const Text context = find_member((Text){reduced, reduced + size}, "context_window");
    if (!length(context) || *context.at != '{')
        return 0;
    const long sent = read_sent(find_member(context, "current_usage"));
    const long window = read_count(find_member(context, "context_window_size"));
    if (sent <= 0)
        return (size_t)snprintf(into, MAX_STATUS_BYTES, "ctx unknown | %s\n", daemon_state);
    shorten(sent, used, sizeof used);
    if (sent > window)
        return (size_t)snprintf(into, MAX_STATUS_BYTES, "ctx %s of an unknown window | %s\n", used,
                                daemon_state);
    const int tenths = (int)((2000LL * sent + window) / (2LL * window));
    return (size_t)snprintf(into, MAX_STATUS_BYTES, "ctx %d.%d%% %s/%s | %s\n", tenths / 10,
                            tenths % 10, used, shorten(window, whole, sizeof whole), daemon_state);
}
