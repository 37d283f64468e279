/* What an agent runs at each hook and status line: client.py, compiled.
 *
 *     brimline-hook PYTHON CLIENT_PY KIND AGENT SOCKET SPOOL
 *
 * client.py describes what is asked and answered, and does the same in Python; the same tests are
 * run on both. Without an answer the event is appended to the spool, and a status line is what stdin
 * alone can tell; Python is run only to start the daemon, and nobody waits for that. It exits with 0
 * whatever happens, and never holds the agent up for longer than ALL milliseconds.
 */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "launch.h"
#include "payload.h"
#include "spool.h"
#include "tables.h"

/* Milliseconds since the start: until then stdin is read, an answer is waited for, its receipt is
 * confirmed, the spool's lock is waited for, all is done. */
enum { STDIN = 80, ANSWER = 120, CONFIRMED = 190, SPOOLED = 230, ALL = 240 };

/* The spool's lock is waited for so many milliseconds, however late it is for want of CPU time. */
enum { MIN_PATIENCE_MS = 50 };

/* Bytes at most: the first line, all before the body, the body, an answer; an entry's two parts. */
enum { LINE = 64, HEAD = 28 << 10, BODY = 4 << 20, REPLY = 1 << 20, KEY = 64, VALUE = 1000 };

enum { PYTHON = 1, CLIENT, KIND, AGENT, SOCKET, SPOOL, ARGUMENTS };

static const char PREFIX[] = "BRIMLINE 1 ", DONE[] = "\x06";


/* What is lost if this process ends now, and so goes to the spool first: nothing, what the agent
 * told us, or the receipt of an answer that was printed and that the daemon has not confirmed. */
enum { NOTHING, EVENT, RECEIPT };

static char **arguments;
static struct timespec begun;
static char id[64];
static char request[HEAD + BODY], reply[LINE + 2 * REPLY];
static char *const body = request + HEAD;
static volatile size_t body_size;
static volatile sig_atomic_t is_body_read;
static struct iovec receipt;
static volatile sig_atomic_t unsaved = EVENT;
static volatile sig_atomic_t is_daemon_off;

/* The milliseconds that are left until a moment; 0 if it has passed. */
static int left(int until) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    const long gone = (now.tv_sec - begun.tv_sec) * 1000 + (now.tv_nsec - begun.tv_nsec) / 1000000;
    return gone < until ? until - (int)gone : 0;
}

static void alarm_in(int milliseconds) {
    const struct itimerval once = {.it_value = {.tv_usec = milliseconds * 1000}};
    setitimer(ITIMER_REAL, &once, NULL);
}

static void hold_alarm(int how) {
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGALRM);
    sigprocmask(how, &signals, NULL);
}

/* Read more of stdin into the body, or into a place where it is forgotten; 0 at its end. The alarm
 * cannot come between the read and the note of its size. */
static int read_more(void) {
    const int is_kept = body_size < BODY;
    hold_alarm(SIG_BLOCK);
    const ssize_t got = is_kept ? read(STDIN_FILENO, body + body_size, BODY - body_size)
                                : read(STDIN_FILENO, reply, sizeof reply);
    if (got > 0 && is_kept)
        body_size += (size_t)got;
    hold_alarm(SIG_UNBLOCK);
    return got > 0;
}

/* Read stdin to its end, as far as it comes in time; what is there is read however late it is. What
 * is too much is read too, and forgotten: an agent may not bear it when nobody reads. */
static void read_body(void) {
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    while (!is_body_read && (body_size < BODY || left(STDIN)) && poll(&input, 1, left(STDIN)) > 0)
        if (!read_more())
            is_body_read = 1;
    is_body_read = 1;
}

/* The header. */

static int is_start(void) { return strcmp(arguments[KIND], "start") == 0; }

/* The kind that the daemon is told: to it the start of a session is a hook like any other. */
static const char *kind(void) { return is_start() ? "hook" : arguments[KIND]; }

static size_t entry(char *into, const char *group, const char *key, const char *value) {
    return (size_t)snprintf(into, KEY + VALUE, "%s%s=%.*s", group, key, VALUE, value) + 1;
}

/* Writes the entries that every request and every record has. */
static size_t put_origin(char *into, const char *what) {
    char pid[24];
    snprintf(pid, sizeof pid, "%ld", (long)getppid());
    size_t size = entry(into, "", "kind", what);
    size += entry(into + size, "", "agent", arguments[AGENT]);
    size += entry(into + size, "", "id", id);
    return size + entry(into + size, "", "pid", pid);
}

static size_t put_header(char *into) {
    size_t size = put_origin(into, kind());
    size += entry(into + size, "", "receipt", "1");
    for (size_t i = 0; i < sizeof VARIABLES / sizeof *VARIABLES; i++) {
        const char *value = getenv(VARIABLES[i]);
        if (value && strlen(value) <= VALUE)
            size += entry(into + size, "env.", VARIABLES[i], value);
    }
    return size;
}

static size_t put_line(char *into, size_t header, size_t content) {
    return (size_t)snprintf(into, LINE, "%s%zu %zu\n", PREFIX, header, content);
}

/* Without an answer. */

static void append(char *header, size_t header_size, const char *content, size_t size) {
    char line[LINE];
    const struct iovec parts[] = {
        {line, put_line(line, header_size, size)},
        {header, header_size},
        {(char *)content, size},
    };
    const int patience = left(SPOOLED);
    append_record(arguments[SPOOL], parts, 3, patience > MIN_PATIENCE_MS ? patience : MIN_PATIENCE_MS);
}

static int written(int fd, const char *from, size_t size);

/* Shows what stdin alone can tell. */
static void show_status(const char *reduced, size_t size) {
    char line[MAX_STATUS_BYTES];
    const char *const state = is_daemon_off ? "daemon off" : "no answer from the daemon";
    written(STDOUT_FILENO, line, short_status(reduced, size, state, line));
}

/* Appends the event to the spool, without the parts that the daemon does not read, as prompts and
 * tool output are; a body that is not a JSON object is left out, and counted by the daemon. */
static void save_event(void) {
    static char header[HEAD], reduced[MAX_REDUCED_BYTES];
    read_body();
    const size_t size = reduce_body(body, body_size, reduced);
    if (strcmp(kind(), "statusline") == 0)
        show_status(reduced, size);
    append(header, put_header(header), reduced, size);
    if (is_start() && is_daemon_off)
        launch_daemon(arguments[PYTHON], arguments[CLIENT], arguments[SPOOL]);
}

/* Appends the receipt to the spool: the daemon then does not hand out again what was printed. */
static void save_receipt(void) {
    static char header[HEAD];
    append(header, put_origin(header, "delivered"), receipt.iov_base, receipt.iov_len);
}

/* Saves what would be lost. The alarm is switched off first: it must not interrupt who has the
 * spool's lock, and a wait for that lock has an end of its own. */
static void finish(void) {
    const int what = unsaved;
    alarm_in(0);
    unsaved = NOTHING;
    if (what == EVENT)
        save_event();
    else if (what == RECEIPT)
        save_receipt();
}

/* The time is over: this process was not run for a while, or a stream holds it up. */
static void give_up(int number) {
    (void)number;
    finish();
    _exit(0);
}

/* A stream that the agent closed is made to be an empty one that cannot be written to: else the
 * socket would get its number. */
static void prepare(void) {
    int fd;
    do
        fd = open("/dev/null", O_RDONLY);
    while (fd >= 0 && fd <= STDERR_FILENO);
    close(fd);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    signal(SIGALRM, give_up);
    alarm_in(ALL);
}

/* Let what is sent next wait no longer than for the answer; 0 where it is too late. */
static int in_time(int fd) {
    const int ms = left(ANSWER);
    const struct timeval time = {.tv_usec = ms * 1000};
    return ms && setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof time) == 0;
}

/* Whether it is this user's own process that listens there. */
static int is_ours(int fd) {
#ifdef SO_PEERCRED
    struct ucred peer;
    socklen_t size = sizeof peer;
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == geteuid();
#else
    uid_t user;
    gid_t group;
    return getpeereid(fd, &user, &group) == 0 && user == geteuid();
#endif
}

/* The way to the daemon; -1 where there is none, with ENOENT or ECONNREFUSED where nobody is. */
static int reach(const char *path) {
    struct sockaddr_un place = {.sun_family = AF_UNIX};
    errno = 0;
    if (strlen(path) >= sizeof place.sun_path)
        return -1;
    strcpy(place.sun_path, path);
    const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    if (fd < 0)
        return -1;
    if (in_time(fd) && connect(fd, (struct sockaddr *)&place, sizeof place) == 0 &&
        is_ours(fd))
        return fd;
    close(fd);
    return -1;
}

/* Put everything that comes before the body right in front of it; returns where that begins. */
static char *frame(void) {
    char entries[HEAD], line[LINE];
    const size_t size = put_header(entries);
    const size_t first = put_line(line, size, body_size);
    memcpy(body - size, entries, size);
    return memcpy(body - size - first, line, first);
}

static int sent(int fd, const char *from, const char *end) {
    while (from < end) {
        const ssize_t gone = in_time(fd) ? send(fd, from, (size_t)(end - from), 0) : -1;
        if (gone <= 0)
            return 0;
        from += gone;
    }
    return 1;
}

/* Reads a size in a reply's first line; -1 if it is none, or more than a reply may have. */
static long read_size(const char **at) {
    char *end;
    if (**at < '0' || **at > '9')
        return -1;
    const long size = strtol(*at, &end, 10);
    *at = end;
    return size <= REPLY ? size : -1;
}

/* Reads the first line of a reply: the size of the text, and that of the receipt behind it, which
 * is there only if the daemon has to know that the text was printed. 0 if it is no reply. */
static int read_line(const char *line, size_t *text, size_t *behind) {
    const char *at = line + sizeof PREFIX - 1;
    if (memcmp(line, PREFIX, sizeof PREFIX - 1))
        return 0;
    const long first = read_size(&at);
    const long second = first >= 0 && *at == ' ' ? (at++, read_size(&at)) : 0;
    if (first < 0 || second < 0 || *at != '\n')
        return 0;
    *text = (size_t)first;
    *behind = (size_t)second;
    return 1;
}

/* Wait for more of the answer. Who waits in `recv` is woken too when the daemon reads what was
 * sent, which takes both of them longer than a `poll`. */
static ssize_t more(int fd, char *into, size_t size) {
    struct pollfd input = {.fd = fd, .events = POLLIN};
    return poll(&input, 1, left(ANSWER)) > 0 ? recv(fd, into, size, 0) : -1;
}

/* Wait for an answer; returns where its text begins and how long that is, NULL if none comes. */
static const char *received(int fd, size_t *size) {
    size_t have = 0;
    while (have < sizeof reply) {
        const ssize_t got = more(fd, reply + have, sizeof reply - have);
        if (got <= 0)
            return NULL;
        have += (size_t)got;
        const char *end = memchr(reply, '\n', have < LINE ? have : LINE);
        if (!end && have >= LINE)
            return NULL;
        if (!end)
            continue;
        if (!read_line(reply, size, &receipt.iov_len))
            return NULL;
        receipt.iov_base = reply + (end + 1 - reply) + *size;
        if (have - (size_t)(end + 1 - reply) >= *size + receipt.iov_len)
            return end + 1;
    }
    return NULL;
}

/* Write it all, as long as it is taken; a pipe that is ready takes PIPE_BUF bytes at once. */
static int written(int fd, const char *from, size_t size) {
    struct pollfd output = {.fd = fd, .events = POLLOUT};
    while (size) {
        const size_t piece = size < PIPE_BUF ? size : PIPE_BUF;
        const ssize_t gone = poll(&output, 1, left(ALL)) > 0 ? write(fd, from, piece) : -1;
        if (gone < 0)
            return 0;
        from += gone;
        size -= (size_t)gone;
    }
    return 1;
}

/* Whether the daemon says that it stored that the answer was printed. */
static int is_confirmed(int fd) {
    struct pollfd input = {.fd = fd, .events = POLLIN};
    char byte;
    return poll(&input, 1, left(CONFIRMED)) > 0 && recv(fd, &byte, 1, 0) == 1 && byte == *DONE;
}

/* Whether the answer was printed. The alarm cannot come between the print and the note that the
 * receipt is unsaved; `written` has an end of its own. */
static int print_answer(const char *answer, size_t size) {
    unsaved = NOTHING;
    hold_alarm(SIG_BLOCK);
    const int is_printed = written(STDOUT_FILENO, answer, size);
    if (is_printed && receipt.iov_len)
        unsaved = RECEIPT;
    hold_alarm(SIG_UNBLOCK);
    return is_printed;
}

/* Print the answer, and tell the daemon when that is done. */
static void pass_on(int fd, const char *answer, size_t size) {
    if (!print_answer(answer, size))
        return;
    if (send(fd, DONE, 1, 0) == 1 && receipt.iov_len && is_confirmed(fd))
        unsaved = NOTHING;
}

int main(int count, char **given) {
    struct timespec now;
    size_t size;
    clock_gettime(CLOCK_MONOTONIC, &begun);
    clock_gettime(CLOCK_REALTIME, &now);
    if (count != ARGUMENTS)
        return 0;
    arguments = given;
    snprintf(id, sizeof id, "%lld%09ld-%ld", (long long)now.tv_sec, now.tv_nsec, (long)getpid());
    prepare();
    const int fd = reach(arguments[SOCKET]);
    is_daemon_off = fd < 0 && (errno == ENOENT || errno == ECONNREFUSED);
    read_body();
    const char *answer = fd >= 0 && sent(fd, frame(), body + body_size) ? received(fd, &size) : NULL;
    if (answer)
        pass_on(fd, answer, size);
    close(fd);
    finish();
    return 0;
}
