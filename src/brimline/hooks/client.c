/* What an agent runs at each hook and status line: client.py's way to the daemon, compiled.
 *
 *     brimline-hook PYTHON CLIENT_PY KIND AGENT SOCKET SPOOL
 *
 * client.py tells what is asked and answered, and has the same in Python; the same tests are run on
 * both. Where no answer comes in time this process becomes client.py, which does the rest; it is told
 * KIND `start` only where there is nobody to be reached. It exits with 0 whatever happens, and never
 * holds the agent up for longer than ALL milliseconds.
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
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

/* Milliseconds since the start: until then stdin is read, an answer is waited for, all is done. */
enum { STDIN = 80, ANSWER = 120, ALL = 240 };

/* Bytes at most: the first line, all before the body, the body, an answer; an entry's two parts. */
enum { LINE = 64, HEAD = 28 << 10, BODY = 4 << 20, REPLY = 1 << 20, KEY = 64, VALUE = 1000 };

enum { PYTHON = 1, CLIENT, KIND, AGENT, SOCKET, SPOOL, ARGUMENTS };

static const char PREFIX[] = "BRIMLINE 1 ", DONE[] = "\x06";
static char hook[] = "hook", start[] = "start";
static const char *const NAMES[] = {
    "COLUMNS",
    "NO_COLOR",
    "TERM",
    "TMUX",
    "TMUX_PANE",
    "BRIMLINE_PARENT",
    "BRIMLINE_SESSION",
    "BRIMLINE_STATUS_LINE",
    "CLAUDE_PROJECT_DIR",
    "CLAUDE_CODE_SESSION_ID",
    "CLAUDE_CODE_AUTO_COMPACT_WINDOW",
    "CLAUDE_AUTOCOMPACT_PCT_OVERRIDE",
    "DISABLE_AUTO_COMPACT",
    "DISABLE_COMPACT",
    "CLAUDE_CODE_DISABLE_1M_CONTEXT",
    "CLAUDE_CONFIG_DIR",
    "CODEX_HOME",
    "GEMINI_CLI_HOME",
    "PI_CODING_AGENT_DIR",
    "OPENCODE_CONFIG",
    "OPENCODE_CONFIG_DIR",
    "OPENCODE_DISABLE_AUTOCOMPACT",
};

static struct timespec begun;
static char request[HEAD + BODY], reply[LINE + REPLY];
static char *const body = request + HEAD;

/* The milliseconds that are left until a moment; 0 where it has passed. */
static int left(int until) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    const long gone = (now.tv_sec - begun.tv_sec) * 1000 + (now.tv_nsec - begun.tv_nsec) / 1000000;
    return gone < until ? until - (int)gone : 0;
}

static void give_up(int number) {
    (void)number;
    _exit(0);
}

static void alarm_in(int milliseconds) {
    const struct itimerval once = {.it_value = {.tv_usec = milliseconds * 1000}};
    setitimer(ITIMER_REAL, &once, NULL);
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

/* Read stdin to its end, as far as it comes in time. What is too much is read too, and forgotten:
 * an agent may not bear it when nobody reads. */
static size_t read_body(void) {
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    size_t size = 0;
    while ((size < BODY || left(STDIN)) && poll(&input, 1, left(STDIN)) > 0) {
        char *const into = size < BODY ? body + size : reply;
        const ssize_t got = read(input.fd, into, size < BODY ? BODY - size : sizeof reply);
        if (got <= 0)
            break;
        size += size < BODY ? (size_t)got : 0;
    }
    return size;
}

static size_t entry(char *into, const char *group, const char *key, const char *value) {
    return (size_t)snprintf(into, KEY + VALUE, "%s%s=%.*s", group, key, VALUE, value) + 1;
}

static size_t header(char *into, char **told, const char *id) {
    char pid[24];
    snprintf(pid, sizeof pid, "%ld", (long)getppid());
    size_t size = entry(into, "", "kind", told[KIND]);
    size += entry(into + size, "", "agent", told[AGENT]);
    size += entry(into + size, "", "id", id);
    size += entry(into + size, "", "pid", pid);
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) {
        const char *value = getenv(NAMES[i]);
        if (value && strlen(value) <= VALUE)
            size += entry(into + size, "env.", NAMES[i], value);
    }
    return size;
}

/* Put everything that comes before the body right in front of it; tells where that begins. */
static char *frame(size_t body_size, char **told, const char *id) {
    char entries[HEAD], line[LINE];
    const size_t size = header(entries, told, id);
    const size_t first = (size_t)snprintf(line, LINE, "%s%zu %zu\n", PREFIX, size, body_size);
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

/* How long an answer is that has this first line; -1 where it is none. */
static long announced(const char *line) {
    const char *digits = line + sizeof PREFIX - 1;
    char *end;
    if (memcmp(line, PREFIX, sizeof PREFIX - 1) || *digits < '0' || *digits > '9')
        return -1;
    const long size = strtol(digits, &end, 10);
    return *end == '\n' && size <= REPLY ? size : -1;
}

/* Wait for more of the answer. Who waits in `recv` is woken too when the daemon reads what was
 * sent, which takes both of them longer than a `poll`. */
static ssize_t more(int fd, char *into, size_t size) {
    struct pollfd input = {.fd = fd, .events = POLLIN};
    return poll(&input, 1, left(ANSWER)) > 0 ? recv(fd, into, size, 0) : -1;
}

/* Wait for an answer; tells where it begins and how long it is, NULL where none comes. */
static const char *received(int fd, size_t *size) {
    size_t have = 0;
    while (have < sizeof reply) {
        const ssize_t got = more(fd, reply + have, sizeof reply - have);
        if (got <= 0)
            return NULL;
        have += (size_t)got;
        const char *end = memchr(reply, '\n', have < LINE ? have : LINE);
        const long length = end ? announced(reply) : 0;
        if (length < 0 || (!end && have >= LINE))
            return NULL;
        *size = (size_t)length;
        if (end && have - (size_t)(end + 1 - reply) >= *size)
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

/* Give what was read of stdin to whoever reads it next. */
static int given_back(size_t size) {
#ifdef __linux__
    const int fd = memfd_create("stdin", MFD_CLOEXEC);
#else
    FILE *file = tmpfile();
    const int fd = file ? fileno(file) : -1;
#endif
    return fd >= 0 && written(fd, body, size) && lseek(fd, 0, SEEK_SET) == 0 &&
           dup2(fd, STDIN_FILENO) == STDIN_FILENO;
}

/* Ask the daemon and print what it answers; it is told when that is done. 0 where stdin is still
 * to be dealt with: it did not answer, and may or may not have heard. */
static int answered(int fd, char **told, const char *id) {
    const size_t size = read_body();
    size_t length;
    const char *answer = sent(fd, frame(size, told, id), body + size) ? received(fd, &length) : NULL;
    if (answer && written(STDOUT_FILENO, answer, length))
        send(fd, DONE, 1, 0);
    close(fd);
    return answer || !given_back(size);
}

/* Where a session starts, the wire has a hook like any other; tells whether one does. */
static int starts(char **told) {
    if (strcmp(told[KIND], start))
        return 0;
    told[KIND] = hook;
    return 1;
}

int main(int count, char **told) {
    struct timespec now;
    char id[64];
    clock_gettime(CLOCK_MONOTONIC, &begun);
    clock_gettime(CLOCK_REALTIME, &now);
    if (count != ARGUMENTS)
        return 0;
    prepare();
    snprintf(id, sizeof id, "%lld%09ld-%ld", (long long)now.tv_sec, now.tv_nsec, (long)getpid());
    const int starting = starts(told), fd = reach(told[SOCKET]);
    if (starting && fd < 0 && (errno == ENOENT || errno == ECONNREFUSED))
        told[KIND] = start;
    if (fd >= 0 && answered(fd, told, id))
        return 0;
    alarm_in(0);
    execv(told[PYTHON], (char *[]){told[PYTHON], "-I", "-S", told[CLIENT], "--no-daemon", id,
                                   told[KIND], told[AGENT], told[SOCKET], told[SPOOL], NULL});
    return 0;
}
