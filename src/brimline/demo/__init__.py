"""A daemon whose sessions are recorded and made up: nothing of the user's is read or written."""
