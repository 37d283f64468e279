/* Starting the daemon from a hook; autostart.py does the same for the client in Python. */

#ifndef BRIMLINE_LAUNCH_H
#define BRIMLINE_LAUNCH_H

/* Starts a daemon for the state folder of this spool unless one is starting or running, or
 * BRIMLINE_AUTOSTART is 0. A restart, within a session, is tried once a minute at most, and not
 * after `brimline serve --stop`. Does not wait for the daemon. Returns whether one is starting. */
int launch_daemon(char *python, char *client, char *spool, int is_restart);

#endif
