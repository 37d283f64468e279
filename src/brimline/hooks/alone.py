"""What becomes of an event that the daemon did not answer: a part of client.py.

It is appended to the spool, which the daemon takes in when it is back (spool.py); a status line is
what stdin alone can tell.
"""

import fcntl
import posix
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from brimline.hooks.asking import Event

PATIENCE, PAUSE = 0.050, 0.002
"""Seconds: so long the spool's lock is waited for, and so long between two attempts."""

SPOOL_BYTES, SPOOL_NS = 50 << 20, 7 * 24 * 3600 * 10**9
"""A spool that is larger, or begins longer ago, takes nothing in any more."""

START = 128
"""So many bytes have the id of a spool's first event among them."""

FLAGS = posix.O_APPEND | posix.O_CREAT | posix.O_NOFOLLOW
SENT = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")


def go_on(event: "Event") -> None:
    """Say what can be said, and spool the event; one that is lost is counted, if that can be."""
    if event.kind == "statusline":
        event.say(status(event.body))
    try:
        kept = keep(event.spool, event.request)
    except OSError:
        kept = False
    if not kept:
        count(f"{event.spool}.dropped")


# The spool.


def keep(path: str, request: bytes) -> bool:
    """Whether the spool took a request."""
    file = locked(path)
    try:
        return is_open(file) and appended(file, request)
    finally:
        posix.close(file)


def locked(path: str) -> int:
    """The spool, for us alone; a new one where the daemon took it away while we waited."""
    until = time.monotonic() + PATIENCE
    file = opened(path)
    while not (is_alone(file) and is_at(file, path)):
        posix.close(file)
        if time.monotonic() >= until:
            raise TimeoutError
        time.sleep(PAUSE)
        file = opened(path)
    return file


def opened(path: str) -> int:
    """The spool, made where it is not there; so is its folder."""
    try:
        return posix.open(path, posix.O_RDWR | FLAGS, 0o600)
    except FileNotFoundError:
        posix.mkdir(path.rpartition("/")[0], 0o700)
        return posix.open(path, posix.O_RDWR | FLAGS, 0o600)


def is_alone(file: int) -> bool:
    """Whether nobody else has the lock: then we do."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def is_at(file: int, path: str) -> bool:
    """Whether an open file is still the one of that name."""
    try:
        return posix.fstat(file).st_ino == posix.stat(path).st_ino
    except FileNotFoundError:
        return False


def is_open(file: int) -> bool:
    """Whether a spool takes anything in: it is not too large, and does not begin too long ago."""
    since = posix.pread(file, START, 0).partition(b"\0id=")[2].partition(b"-")[0]
    is_old = since.isdigit() and time.time_ns() - int(since) > SPOOL_NS
    return not is_old and posix.fstat(file).st_size <= SPOOL_BYTES


def appended(file: int, request: bytes) -> bool:
    """Whether there was room; what was written in part is taken back."""
    size = posix.fstat(file).st_size
    if posix.write(file, request) == len(request):
        return True
    posix.ftruncate(file, size)
    return False


def count(path: str) -> bool:
    """Add one to the events that were lost."""
    try:
        return posix.write(posix.open(path, posix.O_WRONLY | FLAGS, 0o600), b".") > 0
    except OSError:
        return False


# The status line.


def status(body: bytes) -> bytes:
    """What stdin alone can tell, as a line; empty where it tells nothing."""
    try:
        context = decoded(body)["context_window"]
        usage, window = context["current_usage"], context["context_window_size"]
    except (ValueError, KeyError, TypeError):
        return b""
    return f"ctx {figure(usage, window)}\n".encode()


class Rules:
    """How JSON is read."""

    strict = False
    array_hook = object_hook = object_pairs_hook = None
    parse_int, parse_float, parse_constant = int, float, float


def decoded(body: bytes) -> "Any":
    """The JSON of a body; raises ValueError where it is none."""
    import _json

    rules: Any = Rules
    try:
        return _json.make_scanner(rules)(body.decode().lstrip(), 0)[0]
    except (StopIteration, SystemError, RecursionError) as error:
        raise ValueError("no JSON") from error


def figure(usage: "Any", window: "Any") -> str:
    """Per cent, sent and window; `-` before the first call, `?` where it cannot be told.

    All is 0 after a compaction. What is more than the window, or no count, is no figure.
    """
    if usage is None:
        return "-"
    try:
        counts = [usage[name] for name in SENT]
    except (KeyError, TypeError):
        return "?"
    if not all(type(number) is int and number >= 0 for number in (*counts, window)):
        return "?"
    sent = sum(counts)
    return shown(sent, window) if 0 < sent <= window else "?"


def shown(sent: int, window: int) -> str:
    """A figure, with what it is of; halves go up, as in the clients' own displays."""
    return f"{(200 * sent + window) // (2 * window)}% {shorten(sent)}/{shorten(window)}"


def shorten(tokens: int) -> str:
    """A token count for people, as `usage.shorten` has it."""
    if tokens < 1_000:
        return str(tokens)
    if tokens < 9_950:
        return f"{tokens / 1_000:.1f}".removesuffix(".0") + "K"
    if tokens < 999_500:
        return f"{tokens / 1_000:.0f}K"
    return f"{tokens / 1_000_000:.2f}".rstrip("0").rstrip(".") + "M"
