"""The names of secrets, such as `token`, `API_KEY` and `password`."""

# Every name of a secret contains one of these.
NAME_WORDS = ("pass", "pw", "secret", "token", "credential", "key")
