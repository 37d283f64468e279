"""The daemon: hooks on a Unix socket, everything else by HTTP on loopback."""
