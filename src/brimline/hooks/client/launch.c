#define _GNU_SOURCE
#include "launch.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "spool.h"

/* The descriptor on which a daemon inherits the start lock; autostart.py has the same. */
enum { START_LOCK_FD = 3 };

enum { RESTART_INTERVAL_S = 60 };

static const char START_LOCK[] = "start.lock", STOPPED_MARK[] = "stopped";

/* Writes the path of a file in the folder of the spool; returns 0 if it is too long. */
static int put_path(char path[PATH_MAX], const char *spool, const char *name) {
    const char *slash = strrchr(spool, '/');
    const int size = slash ? (int)(slash - spool) : 0;
    return snprintf(path, PATH_MAX, "%.*s/%s", size, spool, name) < PATH_MAX;
}

/* Takes the lock of whoever starts the daemon; -1 if that fails, and `is_taken` is set if another
 * process has it. The daemon inherits it and holds it until it ends, so one daemon is started however
 * many hooks run at once. */
static int take_start_lock(const char *spool, int *is_taken) {
    char path[PATH_MAX];
    *is_taken = 0;
    if (!put_path(path, spool, START_LOCK))
        return -1;
    const int file = open_private(path, O_RDWR);
    if (file >= 0 && flock(file, LOCK_EX | LOCK_NB) == 0)
        return file;
    *is_taken = file >= 0 && errno == EWOULDBLOCK;
    close(file);
    return -1;
}

/* Whether a restart is due; notes it as tried: the lock file has a byte since the first restart, and
 * the time of the last as its own. */
static int take_restart(const char *spool, int lock) {
    char path[PATH_MAX];
    struct stat file;
    if (!put_path(path, spool, STOPPED_MARK) || access(path, F_OK) == 0 || fstat(lock, &file) < 0)
        return 0;
    const time_t age = time(NULL) - file.st_mtime; /* negative if the clock was set back */
    if (file.st_size && age >= 0 && age < RESTART_INTERVAL_S)
        return 0;
    return pwrite(lock, ".", 1, 0) == 1;
}

/* Becomes the daemon, by way of autostart.py: it knows what the daemon may inherit. */
static void become_daemon(char *python, char *client, char *spool, int lock) {
    char *const command[] = {python, "-I", "-S", client, "--start", spool, NULL};
    const int null = open("/dev/null", O_RDWR);
    for (int stream = STDIN_FILENO; stream <= STDERR_FILENO; stream++)
        dup2(null, stream);
    if (lock == START_LOCK_FD)
        fcntl(lock, F_SETFD, 0);
    else
        dup2(lock, START_LOCK_FD);
    execv(python, command);
}

int launch_daemon(char *python, char *client, char *spool, int is_restart) {
    const char *const setting = getenv("BRIMLINE_AUTOSTART");
    int is_starting;
    if (setting && !strcmp(setting, "0"))
        return 0;
    const int lock = take_start_lock(spool, &is_starting);
    if (lock < 0)
        return is_starting;
    if (is_restart && !take_restart(spool, lock)) {
        close(lock);
        return 0;
    }
    const pid_t child = fork();
    if (child == 0) {
        setsid();
        if (fork() == 0)
            become_daemon(python, client, spool, lock);
        _exit(0);
    }
    if (child > 0)
        waitpid(child, NULL, 0);
    close(lock);
    return child > 0;
}
