"""`brimline run`: the parts, and real small child processes."""
