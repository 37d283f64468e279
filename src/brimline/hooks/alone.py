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
TOTALS = ("total_input_tokens", "total_output_tokens")
SIZES = (200_000, 1_000_000)
"""The windows of Claude Code, as data/clients.json has them."""

NO_COUNT, APART = 10**8, 2
"""As statusline/told.py has them: more tokens than any window holds, and how far a percentage may
be from its own tokens."""


def go_on(event: "Event") -> None:
    """Say what can be said, and spool the event; one that is lost is counted, if that can be."""
    if event.kind == "statusline":
        event.say(status(event.body, posix.environ.get(b"COLUMNS", b"")))
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
        make(path.rpartition("/")[0])
        return posix.open(path, posix.O_RDWR | FLAGS, 0o600)


def make(folder: str) -> None:
    """A folder for the user alone, and those above it; another may make them at the same time."""
    try:
        posix.mkdir(folder, 0o700)
    except FileExistsError:
        return
    except FileNotFoundError:
        above = folder.rpartition("/")[0]
        if not above:
            raise
        make(above)
        make(folder)


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


# The status line. It follows the rules of statusline/ as far as stdin alone can tell: no limit, no
# forecast, and so no colour.


def status(body: bytes, columns: bytes = b"") -> bytes:
    """What stdin alone can tell, as a line that fits; empty where it tells nothing."""
    try:
        told = decoded(body)
        context = told["context_window"]
        usage, window = context["current_usage"], context["context_window_size"]
    except (ValueError, KeyError, TypeError):
        return b""
    sent = None if usage is None else sent_of(usage)
    wrong = mistake(usage, sent, window, context.get("used_percentage"))
    dollars = dollars_of(told.get("cost"))
    why = reason(usage, sent, [dollars, *(context.get(name) for name in TOTALS)])
    ways = figures(why, sent, window if is_size(window) else None, bool(wrong))
    rest = [cost(dollars), f"* {wrong}" if wrong else ""]
    return f"ctx {fitted(ways, [part for part in rest if part], columns)}\n".encode()


def fitted(ways: list[str], rest: list[str], columns: bytes) -> str:
    """The figure and what there is room for after it; it becomes narrower where it has none."""
    width = int(columns) if columns.isdigit() and len(columns) <= 5 else 0
    room = width - len("ctx ")
    whole = " | ".join([ways[0], *rest])
    if not width or len(whole) <= room:
        return whole
    if rest:
        return fitted(ways, rest[:-1], columns)
    return next((way for way in ways if len(way) <= room), ways[-1])


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


def is_size(number: "Any") -> bool:
    """Whether it is the size of a window."""
    return is_count(number) and number > 0


def is_count(number: "Any") -> bool:
    """Whether it is a count of tokens."""
    return type(number) is int and 0 <= number < NO_COUNT


def sent_of(usage: "Any") -> int | None:
    """What the last call sent; None where that is no count."""
    try:
        counts = [usage[name] for name in SENT]
    except (KeyError, TypeError):
        return None
    return sum(counts) if all(is_count(number) for number in counts) else None


def mistake(usage: "Any", sent: int | None, window: "Any", percent: "Any") -> str | None:
    """What the client got wrong, in words."""
    if usage is not None and sent is None:
        return "client's usage is no count"
    if window is not None and not is_size(window):
        return "client's window is no size"
    if percent is not None and type(percent) not in (int, float):
        return "client's percentage is no number"
    if percent is not None and not 0 <= percent <= 100:
        return f"client says {str(percent)[:16]}%"
    if not sent or window is None:
        return None
    true = min(100, 100 * sent / window)
    if percent is not None and (abs(percent - true) > APART or (not percent and true >= 1)):
        return f"client says {percent:g}%"
    return f"client says {shorten(window)} window" if sent > window else None


def reason(usage: "Any", sent: int | None, totals: "list[Any]") -> str:
    """Why there is no figure. All counts are 0 after a compaction; before a call so is the rest."""
    if usage is not None and sent is None:
        return "unknown"
    called = any(type(total) in (int, float) and total > 0 for total in totals)
    return "no call yet" if usage is None and not called else "unknown until the next reply"


def figures(why: str, sent: int | None, window: int | None, wrong: bool) -> list[str]:
    """The figure in its ways, from wide to narrow; where there is none, why.

    A window that holds more than it can is the next larger.
    """
    if not sent:
        return [f"{why}, {shorten(window)} window" if window else why, why]
    size = window if not window or window >= sent else next((n for n in SIZES if n >= sent), None)
    if not size:
        return [f"{shorten(sent)} of an unknown window"]
    percent = f"{(200 * sent + size) // (2 * size) or '<1'}%{'*' if wrong else ''}"
    return [f"{percent} {shorten(sent)}/{shorten(size)} window", f"{percent} of window"]


def dollars_of(told: "Any") -> float | None:
    """What the session has cost; None where that is no price."""
    try:
        dollars = told["total_cost_usd"]
    except (KeyError, TypeError):
        return None
    return dollars if type(dollars) in (int, float) and 0 <= dollars < 1e9 else None


def cost(dollars: float | None) -> str:
    """What the session has cost, once it is a cent."""
    return "" if dollars is None or dollars < 0.005 else f"${dollars:,.2f}"


def shorten(tokens: int) -> str:
    """A token count for people, as `usage.shorten` has it."""
    if tokens < 1_000:
        return str(tokens)
    if tokens < 9_950:
        return f"{tokens / 1_000:.1f}".removesuffix(".0") + "K"
    if tokens < 999_500:
        return f"{tokens / 1_000:.0f}K"
    return f"{tokens / 1_000_000:.2f}".rstrip("0").rstrip(".") + "M"
