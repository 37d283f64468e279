"""HTTP client of the daemon: blocking requests of commands, the event stream of `watch`."""
