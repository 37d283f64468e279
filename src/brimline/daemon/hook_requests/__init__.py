"""The hook socket: requests of the hook client, and their replies."""
