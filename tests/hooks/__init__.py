"""The hook client and the daemon's side of it, with real processes and sockets."""
