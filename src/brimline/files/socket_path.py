"""Where the daemon's sockets are: a path that every system can bind."""

from pathlib import Path

MAX_SOCKET_PATH_BYTES = 100  # a path of this length works on every system


def socket_path(state: Path, user: int, name: str = "hook") -> Path:
    """Return the path of a socket; one that is too long for some systems is replaced."""
    path = state / f"{name}.sock"
    if len(bytes(path)) <= MAX_SOCKET_PATH_BYTES:
        return path
    import hashlib

    place = hashlib.sha256(bytes(state)).hexdigest()[:12]
    return short_socket_folder(user) / f"{place}-{name}.sock"


def short_socket_folder(user: int) -> Path:
    return Path("/tmp") / f"brimline-{user}"
