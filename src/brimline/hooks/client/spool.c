#define _GNU_SOURCE
#include "spool.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* The limits of offline.py: a spool that is larger, or begins longer ago, takes no more records.
 * The id of its first record stands within its first HEAD_BYTES. */
enum { MAX_SPOOL_BYTES = 50 << 20, MAX_AGE_S = 7 * 24 * 3600, HEAD_BYTES = 128 };

enum { MAX_DIGITS = 19, PAUSE_US = 1000 };

long long now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000LL + now.tv_nsec / 1000000;
}

/* Creates the folders above a path, for this user alone; another process may do so at once. */
static void make_folders(const char *path) {
    char folder[PATH_MAX];
    const size_t size = strlen(path);
    if (size >= sizeof folder)
        return;
    memcpy(folder, path, size + 1);
    for (char *slash = strchr(folder + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(folder, 0700);
        *slash = '/';
    }
}

int open_private(const char *path, int flags) {
    const int all = flags | O_CREAT | O_NOFOLLOW | O_CLOEXEC;
    const int file = open(path, all, 0600);
    if (file >= 0 || errno != ENOENT)
        return file;
    make_folders(path);
    return open(path, all, 0600);
}

/* Whether an open file still has this name: the daemon may have taken it away. */
static int is_at(int file, const char *path) {
    struct stat opened, named;
    return fstat(file, &opened) == 0 && stat(path, &named) == 0 && opened.st_ino == named.st_ino &&
           opened.st_dev == named.st_dev;
}

/* Opens the spool and locks it; -1 if that takes longer than `wait_ms`. */
static int open_locked(const char *path, int wait_ms) {
    const long long until = now_ms() + wait_ms;
    for (;;) {
        const int file = open_private(path, O_RDWR | O_APPEND);
        if (file < 0)
            return -1;
        if (flock(file, LOCK_EX | LOCK_NB) == 0 && is_at(file, path))
            return file;
        close(file);
        if (now_ms() >= until)
            return -1;
        usleep(PAUSE_US);
    }
}

/* Whether the first record of a spool is too old, by the nanoseconds in its id; garbage has no
 * age. */
static int is_old(int file) {
    char head[HEAD_BYTES];
    struct timespec now;
    const ssize_t size = pread(file, head, sizeof head, 0);
    const char *at = size > 0 ? memmem(head, (size_t)size, "\0id=", 4) : NULL;
    if (!at || clock_gettime(CLOCK_REALTIME, &now))
        return 0;
    unsigned long long first = 0;
    int digits = 0;
    for (at += 4; at < head + size && *at >= '0' && *at <= '9' && digits < MAX_DIGITS; at++, digits++)
        first = first * 10 + (unsigned long long)(*at - '0');
    const unsigned long long second = 1000000000ULL;
    const unsigned long long since = (unsigned long long)now.tv_sec * second - first;
    return digits && since <= LLONG_MAX && since > MAX_AGE_S * second;
}

/* Whether a record was written as a whole; a part of it is taken back. */
static int write_record(int file, const struct iovec *parts, int count) {
    struct stat before;
    ssize_t size = 0;
    for (int i = 0; i < count; i++)
        size += (ssize_t)parts[i].iov_len;
    if (fstat(file, &before) || before.st_size > MAX_SPOOL_BYTES || is_old(file))
        return 0;
    if (writev(file, parts, count) == size)
        return 1;
    if (ftruncate(file, before.st_size)) { /* the reader skips a torn record */
    }
    return 0;
}

void count_event(const char *path, const char *fate) {
    char name[PATH_MAX];
    if (snprintf(name, sizeof name, "%s.%s", path, fate) >= (int)sizeof name)
        return;
    const int file = open_private(name, O_WRONLY | O_APPEND);
    if (file >= 0 && write(file, ".", 1) < 0) { /* nothing else can be done */
    }
    close(file);
}

void append_record(const char *path, const struct iovec *parts, int count, int wait_ms) {
    const int file = open_locked(path, wait_ms);
    if (file < 0 || !write_record(file, parts, count))
        count_event(path, "dropped");
    close(file);
}
