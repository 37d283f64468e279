/* The client's side of the spool, which offline.py does in Python; ../spool.py reads it. */

#ifndef BRIMLINE_SPOOL_H
#define BRIMLINE_SPOOL_H

#include <sys/uio.h>

/* Appends one record, given in parts, to the spool at `path`; waits up to `wait_ms` for its lock.
 * A record that cannot be appended is counted in the file `path`.dropped. */
void append_record(const char *path, const struct iovec *parts, int count, int wait_ms);

/* Counts an event in the file `path`.`fate`, by a byte: its size is the number of events. */
void count_event(const char *path, const char *fate);

/* Opens a file of the state folder for this user alone, and creates the folders above it;
 * returns the descriptor, -1 if that is not possible. */
int open_private(const char *path, int flags);

/* Milliseconds of the monotonic clock. */
long long now_ms(void);

#endif
