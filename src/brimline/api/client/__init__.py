"""HTTP client of the daemon: requests of commands, the event stream, sessions of programs."""
