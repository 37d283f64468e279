"""Which signals a reading causes, and when to compact. Pure."""
