/* The hook client, compiled: an agent runs it at each hook and status line.
 *
 *     brimline-hook PYTHON CLIENT_PY KIND AGENT SOCKET SPOOL
 *
 * KIND is described in client.py, the fallback if there is no compiler; the same tests are run on
 * both. Without an answer the event is appended to the spool, and the status line shows what stdin
 * contains. Python is run only to start the daemon, in the background. The exit code is always 0,
 * within EXIT_MS.
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

/* Deadlines since the start: of stdin's end, after which a whole JSON object is enough; of that; of
 * the answer, its confirmation, the spool's lock, the exit. */
enum { END_MS = 80, STDIN_MS = 190, ANSWER_MS = 200 };
enum { CONFIRM_MS = 210, SPOOL_MS = 230, EXIT_MS = 240 };

/* The shortest wait for the spool's lock, even if this process got too little CPU time. */
enum { MIN_LOCK_WAIT_MS = 50 };

/* Bytes at most: the first line, all before the body, the body, an answer; an entry's two parts. */
enum { LINE = 64, HEAD = 28 << 10, BODY = 4 << 20, REPLY = 1 << 20, KEY = 64, VALUE = 1000 };

enum { PYTHON = 1, CLIENT, KIND, AGENT, SOCKET, SPOOL, ARGUMENTS };

static const char PREFIX[] = "BRIMLINE 1 ", ACK[] = "\x06";

/* What has to be spooled before this process exits: nothing, the event, or the receipt of an answer
 * that was printed and that the daemon has not confirmed. */
enum { NOTHING, EVENT, RECEIPT };

static char **arguments;
static struct timespec started;
static char id[64];
static char request[HEAD + BODY], reply[LINE + 2 * REPLY];
static char *const body = request + HEAD;
static char reduced[MAX_REDUCED_BYTES];
static volatile size_t body_size;
static volatile sig_atomic_t is_body_read, is_late;
static struct iovec receipt;
static volatile sig_atomic_t unsaved = EVENT;
static volatile sig_atomic_t is_daemon_off;

/* The milliseconds until a deadline; 0 if it has passed. */
static int ms_left(int until) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    const long elapsed =
        (now.tv_sec - started.tv_sec) * 1000 + (now.tv_nsec - started.tv_nsec) / 1000000;
    return elapsed < until ? until - (int)elapsed : 0;
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

/* Reads more of stdin into the body, or drops it; 0 at its end. The alarm is blocked between the
 * read and the note of its size. */
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

/* Whether what came is a whole JSON object. Only what ends with a brace is parsed: a long input may
 * come in many pieces. */
static int is_object(void) {
    size_t end = body_size;
    while (end && memchr(" \t\n\r", body[end - 1], 4))
        end--;
    return end && body[end - 1] == '}' && reduce_body(body, body_size, reduced);
}

/* Reads stdin to its end, or to a whole object, the limit or the deadline; data that is ready is
 * read even then. Data beyond the limit is read and dropped until END_MS: an agent may fail if its
 * pipe is not read. */
static void read_body(void) {
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    int has_ended = 0;
    if (is_body_read)
        return;
    while (!has_ended && (body_size < BODY || ms_left(END_MS)) &&
           (poll(&input, 1, ms_left(END_MS)) > 0 ||
            (!is_object() && poll(&input, 1, ms_left(STDIN_MS)) > 0)))
        has_ended = !read_more();
    is_late = !has_ended && body_size < BODY && !is_object();
    is_body_read = 1;
}

/* The header. */

static int is_kind(const char *name) { return strcmp(arguments[KIND], name) == 0; }

static int is_restart(void) { return is_kind("hook-restart") || is_kind("statusline-restart"); }

/* The kind of the request: the daemon does not need to know who may start it. */
static const char *kind(void) {
    return is_kind("start") || is_kind("hook-restart") ? "hook"
           : is_kind("statusline-restart")             ? "statusline"
                                                       : arguments[KIND];
}

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
    int wait_ms = ms_left(SPOOL_MS);
    if (wait_ms < MIN_LOCK_WAIT_MS)
        wait_ms = MIN_LOCK_WAIT_MS;
    append_record(arguments[SPOOL], parts, 3, wait_ms);
}

/* Writes in pieces that a ready pipe takes; returns whether all was written. */
static int write_all(int fd, const char *from, size_t size) {
    struct pollfd output = {.fd = fd, .events = POLLOUT};
    while (size) {
        const size_t piece = size < PIPE_BUF ? size : PIPE_BUF;
        const ssize_t count = poll(&output, 1, ms_left(EXIT_MS)) > 0 ? write(fd, from, piece) : -1;
        if (count < 0)
            return 0;
        from += count;
        size -= (size_t)count;
    }
    return 1;
}

/* Appends the event to the spool, without the parts that the daemon does not read, such as prompts
 * and tool output; a body that is not a JSON object is left out, and counted by the daemon. An input
 * that did not come in time is only counted. */
static void save_event(void) {
    static char header[HEAD], line[MAX_STATUS_BYTES];
    read_body();
    const size_t size = reduce_body(body, body_size, reduced);
    const char *state = is_daemon_off ? "daemon off" : "no answer from the daemon";
    if (is_daemon_off && (is_kind("start") || is_restart()) &&
        launch_daemon(arguments[PYTHON], arguments[CLIENT], arguments[SPOOL], is_restart()))
        state = "daemon starting";
    if (strcmp(kind(), "statusline") == 0)
        write_all(STDOUT_FILENO, line,
                  is_late ? (size_t)snprintf(line, sizeof line, "ctx unknown\n")
                          : short_status(reduced, size, state, line));
    if (is_late)
        count_event(arguments[SPOOL], "late");
    else
        append(header, put_header(header), reduced, size);
}

/* Appends the receipt to the spool: the daemon then does not hand out again what was printed. */
static void save_receipt(void) {
    static char header[HEAD];
    append(header, put_origin(header, "delivered"), receipt.iov_base, receipt.iov_len);
}

/* Spools what would be lost. The alarm is switched off first: it must not interrupt the holder of
 * the spool's lock, and the wait for that lock has a limit of its own. */
static void finish(void) {
    const int what = unsaved;
    alarm_in(0);
    unsaved = NOTHING;
    if (what == EVENT)
        save_event();
    else if (what == RECEIPT)
        save_receipt();
}

/* The handler of the alarm: this process got no CPU time, or a stream blocks. */
static void give_up(int number) {
    (void)number;
    finish();
    _exit(0);
}

/* Sets the alarm, and opens standard streams that the agent closed: otherwise the socket would get
 * the number of a closed stream. */
static void prepare(void) {
    int fd;
    do
        fd = open("/dev/null", O_RDONLY);
    while (fd >= 0 && fd <= STDERR_FILENO);
    close(fd);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    signal(SIGALRM, give_up);
    alarm_in(EXIT_MS);
}

/* Limits the next send or connect to the answer's deadline; 0 if that has passed. */
static int set_timeout(int fd) {
    const int ms = ms_left(ANSWER_MS);
    const struct timeval time = {.tv_usec = ms * 1000};
    return ms && setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof time) == 0;
}

/* Whether the listening process is this user's. */
static int is_own_peer(int fd) {
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

/* Connects to the daemon; -1 if that fails, with ENOENT or ECONNREFUSED if no daemon runs. */
static int connect_daemon(const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    errno = 0;
    if (strlen(path) >= sizeof address.sun_path)
        return -1;
    strcpy(address.sun_path, path);
    const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    if (fd < 0)
        return -1;
    if (set_timeout(fd) && connect(fd, (struct sockaddr *)&address, sizeof address) == 0 &&
        is_own_peer(fd))
        return fd;
    close(fd);
    return -1;
}

/* Writes the first line and the header in front of the body; returns the start of the request. */
static char *frame_request(void) {
    char entries[HEAD], line[LINE];
    const size_t size = put_header(entries);
    const size_t first = put_line(line, size, body_size);
    memcpy(body - size, entries, size);
    return memcpy(body - size - first, line, first);
}

static int send_all(int fd, const char *from, const char *end) {
    while (from < end) {
        const ssize_t count = set_timeout(fd) ? send(fd, from, (size_t)(end - from), 0) : -1;
        if (count <= 0)
            return 0;
        from += count;
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

/* Reads the first line of a reply: the sizes of the text and of the receipt, which follows only if
 * the daemon has to know that the text was printed. Returns 0 if it is no reply. */
static int read_line(const char *line, size_t *text, size_t *receipt_size) {
    const char *at = line + sizeof PREFIX - 1;
    if (memcmp(line, PREFIX, sizeof PREFIX - 1))
        return 0;
    const long first = read_size(&at);
    const long second = first >= 0 && *at == ' ' ? (at++, read_size(&at)) : 0;
    if (first < 0 || second < 0 || *at != '\n')
        return 0;
    *text = (size_t)first;
    *receipt_size = (size_t)second;
    return 1;
}

/* Receives more of the answer. A process that waits in `recv` is also woken when the daemon reads
 * the request, which takes both of them longer than a `poll`. */
static ssize_t receive_more(int fd, char *into, size_t size) {
    struct pollfd input = {.fd = fd, .events = POLLIN};
    return poll(&input, 1, ms_left(ANSWER_MS)) > 0 ? recv(fd, into, size, 0) : -1;
}

/* Receives the answer; returns its text and size, NULL if none comes. */
static const char *receive_answer(int fd, size_t *size) {
    size_t have = 0;
    while (have < sizeof reply) {
        const ssize_t got = receive_more(fd, reply + have, sizeof reply - have);
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

/* Whether the daemon confirms that it has stored the delivery. */
static int is_confirmed(int fd) {
    struct pollfd input = {.fd = fd, .events = POLLIN};
    char byte;
    return poll(&input, 1, ms_left(CONFIRM_MS)) > 0 && recv(fd, &byte, 1, 0) == 1 && byte == *ACK;
}

/* Prints the answer and acknowledges it. The alarm is blocked between the print and the note that
 * the receipt is unsaved; `write_all` has a limit of its own. */
static void deliver(int fd, const char *answer, size_t size) {
    unsaved = NOTHING;
    hold_alarm(SIG_BLOCK);
    const int is_printed = write_all(STDOUT_FILENO, answer, size);
    if (is_printed && receipt.iov_len)
        unsaved = RECEIPT;
    hold_alarm(SIG_UNBLOCK);
    if (is_printed && send(fd, ACK, 1, 0) == 1 && receipt.iov_len && is_confirmed(fd))
        unsaved = NOTHING;
}

int main(int count, char **values) {
    struct timespec now;
    size_t size;
    clock_gettime(CLOCK_MONOTONIC, &started);
    clock_gettime(CLOCK_REALTIME, &now);
    if (count != ARGUMENTS)
        return 0;
    arguments = values;
    snprintf(id, sizeof id, "%lld%09ld-%ld", (long long)now.tv_sec, now.tv_nsec, (long)getpid());
    if (is_kind("here")) { /* a question: it has no input, and is not spooled */
        is_body_read = 1;
        unsaved = NOTHING;
    }
    prepare();
    const int fd = connect_daemon(arguments[SOCKET]);
    is_daemon_off = fd < 0 && (errno == ENOENT || errno == ECONNREFUSED);
    read_body();
    const int is_sent = fd >= 0 && !is_late && send_all(fd, frame_request(), body + body_size);
    const char *const answer = is_sent ? receive_answer(fd, &size) : NULL;
    if (answer)
        deliver(fd, answer, size);
    close(fd);
    finish();
    return 0;
}
