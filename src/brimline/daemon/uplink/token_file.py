"""A file with the token of a fleet's server, `uplink.token_file` or `--token-file`."""

from brimline.files.regular_file import read_regular_file

MAX_TOKEN_BYTES = 1 << 10


def read_token_file(path: str) -> str:
    """Return the token in a file; raises OSError, or UnicodeDecodeError if it is not ASCII."""
    return read_regular_file(path, MAX_TOKEN_BYTES).decode("ascii").strip()
