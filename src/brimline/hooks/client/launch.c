#define _GNU_SOURCE
#include "launch.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include "spool.h"

/* The descriptor on which a daemon inherits the start lock; autostart.py has the same. */
enum { START_LOCK_FD = 3 };

static const char START_LOCK[] = "start.lock";

/* Takes the lock of whoever starts the daemon; -1 if another process has it. The daemon inherits
 * it and holds it until it ends, so one daemon is started however many hooks run at once. */
static int take_start_lock(const char *spool) {
    char path[PATH_MAX];
    const char *slash = strrchr(spool, '/');
    const int size = slash ? (int)(slash - spool) : 0;
    if (snprintf(path, sizeof path, "%.*s/%s", size, spool, START_LOCK) >= (int)sizeof path)
        return -1;
    const int file = open_private(path, O_RDWR);
    if (file >= 0 && flock(file, LOCK_EX | LOCK_NB) == 0)
        return file;
    close(file);
    return -1;
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

void launch_daemon(char *python, char *client, char *spool) {
    const char *const setting = getenv("BRIMLINE_AUTOSTART");
    if (setting && !strcmp(setting, "0"))
        return;
    const int lock = take_start_lock(spool);
    if (lock < 0)
        return;
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
}
