"""The way of an event to the daemon and of its answer to the agent: a part of client.py.

protocol.py tells what goes over the socket. client.c has the same in C.
"""

import posix
import select
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal
    from _socket import socket
else:
    import _signal

STDIN, ANSWER, CONFIRMED, SPOOLED, ALL = 0.080, 0.120, 0.190, 0.230, 0.240
"""Seconds since the start: until then stdin is read, an answer is waited for, its receipt is
confirmed, the spool's lock is waited for, all is done."""

AT_LEAST = 0.100
"""How long there is for what is left to do, however late it is by now."""

LINE_LONGEST, BODY_LONGEST, REPLY_LONGEST, VALUE_LONGEST = 64, 4 << 20, 1 << 20, 1000
"""Bytes: of the first line, of the body, of an answer, of a value in the header."""

PIECE = 1 << 16
PAUSE = 0.002
PREFIX = b"BRIMLINE 1 "
DONE = b"\x06"
"""What is sent when the agent has the answer: only now is a message delivered. The daemon sends it
back when it has stored that."""

RECEIPT = b"receipt=1\0"
"""The header entry that asks for a receipt: daemons of earlier versions pass it over."""

GOES_BY = (
    b"CLAUDE_CODE_AUTO_COMPACT_WINDOW",
    b"CLAUDE_AUTOCOMPACT_PCT_OVERRIDE",
    b"DISABLE_AUTO_COMPACT",
    b"DISABLE_COMPACT",
    b"CLAUDE_CODE_DISABLE_1M_CONTEXT",
    b"CLAUDE_CONFIG_DIR",
    b"CODEX_HOME",
    b"GEMINI_CLI_HOME",
    b"OPENCODE_CONFIG",
    b"OPENCODE_CONFIG_DIR",
    b"OPENCODE_DISABLE_AUTOCOMPACT",
    b"PI_CODING_AGENT_DIR",
)
"""What tells where an agent's client compacts, or where its settings are."""

NAMES = (
    b"COLUMNS",
    b"NO_COLOR",
    b"TERM",
    b"TMUX",
    b"TMUX_PANE",
    b"BRIMLINE_PARENT",
    b"BRIMLINE_SESSION",
    b"BRIMLINE_STATUS_LINE",
    b"CLAUDE_PROJECT_DIR",
    b"CLAUDE_CODE_SESSION_ID",
    *GOES_BY,
)
"""The variables that the daemon is told."""


class TimeUp(BaseException):
    """The time is over: this process was not run for a while, or a stream holds it up."""


class Event:
    """What the agent tells, where to, and how much time there is for it.

    `starts`: a session starts. `nobody`: there is no daemon, not even one that is slow. `answered`:
    the daemon's answer is here. `receipt`: what was printed, until the daemon has confirmed it.
    """

    def __init__(self, arguments: list[str]) -> None:
        self.handed = arguments[0] == "--no-daemon"
        self.id = arguments[1] if self.handed else f"{time.time_ns()}-{posix.getpid()}"
        self.kind, self.agent, self.socket, self.spool = arguments[2 if self.handed else 0 :]
        self.starts = self.kind == "start"
        self.kind = "hook" if self.starts else self.kind
        self.nobody = self.handed
        self.pieces: list[bytes] = []
        self.is_read = False
        self.answered = False
        self.receipt = b""
        self._begun = time.monotonic() - self._gone()

    def _gone(self) -> float:
        """The seconds before now that it took to get here, as far as can be known."""
        if not self.handed:
            return time.process_time()
        since = time.time_ns() - int(self.id.partition("-")[0])
        return min(max(since / 1e9, 0.0), ALL - AT_LEAST)

    def left(self, until: float) -> float:
        """The seconds that are left until a moment; 0 where it has passed."""
        return max(0.0, self._begun + until - time.monotonic())

    @property
    def body(self) -> bytes:
        """What was read of stdin."""
        return b"".join(self.pieces)[:BODY_LONGEST]

    @property
    def spool_patience(self) -> float:
        """How long to wait for the spool's lock. A process that is late for want of CPU time waits
        longer than it should: whoever has the lock wants for it too."""
        left = self.left(SPOOLED)
        return left if left >= AT_LEAST else SPOOLED

    @property
    def request(self) -> bytes:
        """The event as it goes to the daemon."""
        return self.record(self.kind, self.body)

    def record(self, kind: str, body: bytes) -> bytes:
        """A frame about this event, for the daemon or the spool."""
        origin = ("kind", kind), ("agent", self.agent), ("id", self.id)
        entries = [f"{key}={value[:VALUE_LONGEST]}\0" for key, value in origin]
        entries.append(f"pid={posix.getppid()}\0")
        header = "".join(entries).encode("utf-8", "surrogateescape")
        if kind == self.kind:
            header += RECEIPT + variables()
        return b"%b%d %d\n%b%b" % (PREFIX, len(header), len(body), header, body)

    def say(self, text: bytes) -> bool:
        """Tell the agent; whether it took it all. A pipe that is ready takes so much at once."""
        rest = memoryview(text)
        try:
            while rest and select.select([], [1], [], self.left(ALL))[1]:
                rest = rest[posix.write(1, rest[: select.PIPE_BUF]) :]
        except OSError:
            return False
        return not rest


def ask(arguments: list[str]) -> Event:
    """Ask the daemon and print its answer; the event says what came of it."""
    event = Event(arguments)
    try:
        prepare(event)
        connection = None if event.handed else reach(event)
        read_body(event)
        if connection:
            converse(connection, event)
    except TimeUp:
        pass
    # The rest has time limits of its own; the alarm must not interrupt who has the spool's lock.
    try:  # noqa: SIM105 - contextlib is not in C
        _signal.setitimer(_signal.ITIMER_REAL, 0)
    except TimeUp:
        pass
    read_body(event)
    return event


def prepare(event: Event) -> None:
    """Never hang, and never take a stream that the agent closed for one of our own.

    A closed one is made to be an empty one that cannot be written to: else the socket would get
    its number.
    """
    _signal.signal(_signal.SIGALRM, give_up)
    _signal.setitimer(_signal.ITIMER_REAL, max(AT_LEAST, event.left(ALL)))
    while (spare := posix.open("/dev/null", posix.O_RDONLY)) < 3:
        pass
    posix.close(spare)


def give_up(number: int, frame: object) -> None:
    """End whatever is waited for."""
    raise TimeUp


def read_body(event: Event) -> None:
    """Read stdin to its end, as far as it comes in time; what is there is read however late it is.

    What is too much is read too, and forgotten: an agent may not bear it when nobody reads.
    """
    # An extension writes all of it and closes it, but may come to that later than this process.
    until = SPOOLED if event.handed else STDIN
    ready = select.poll()
    ready.register(0, select.POLLIN)
    size = sum(map(len, event.pieces))
    while not event.is_read and (size < BODY_LONGEST or event.left(until)):
        if not ready.poll(event.left(until) * 1000):
            break
        size += read_piece(event, size < BODY_LONGEST)
    event.is_read = True


def read_piece(event: Event, is_kept: bool) -> int:
    """Read what stdin has, and return how much that is; the alarm cannot come before it is kept."""
    hold_alarm()
    try:
        piece = posix.read(0, PIECE)
    except OSError:
        piece = b""
    if is_kept:
        event.pieces.append(piece)
    event.is_read = not piece
    release_alarm()
    return len(piece)


def hold_alarm() -> None:
    """Let the alarm wait."""
    _signal.pthread_sigmask(_signal.SIG_BLOCK, [_signal.SIGALRM])


def release_alarm() -> None:
    """Let the alarm come, which may have waited."""
    _signal.pthread_sigmask(_signal.SIG_UNBLOCK, [_signal.SIGALRM])


def variables() -> bytes:
    """The entries of the variables that are set."""
    known = ((name, posix.environ.get(name)) for name in NAMES)
    return b"".join(
        b"env.%b=%b\0" % (name, value)
        for name, value in known
        if value is not None and len(value) <= VALUE_LONGEST
    )


def reach(event: Event) -> "socket | None":
    """The way to the daemon; None where there is none, or where another user listens."""
    import _socket

    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        while not connected(connection, event):
            time.sleep(PAUSE)
        if sys.platform == "linux":
            peer = connection.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, 12)
        else:
            peer = connection.getsockopt(0, _socket.LOCAL_PEERCRED, 76)
    except (FileNotFoundError, ConnectionRefusedError):
        event.nobody = True
        return None
    except OSError:
        return None
    return connection if int.from_bytes(peer[4:8], sys.byteorder) == posix.geteuid() else None


def connected(connection: "socket", event: Event) -> bool:
    """Whether there was room among those who wait for the daemon."""
    in_time(connection, event)
    try:
        connection.connect(event.socket)
    except BlockingIOError:
        return False
    return True


def in_time(connection: "socket", event: Event) -> None:
    """Let the next call wait no longer than for the answer; raises where it is too late."""
    left = event.left(ANSWER)
    if not left:
        raise TimeoutError
    connection.settimeout(left)


def converse(connection: "socket", event: Event) -> None:
    """Ask the daemon, print its answer, and tell it when that is done."""
    try:
        in_time(connection, event)
        connection.sendall(event.request)
        answer = received(connection, event)
    except OSError:
        return
    if answer is None:
        return
    event.answered = True
    if print_answer(event, *answer):
        acknowledge(connection, event)


def print_answer(event: Event, text: bytes, receipt: bytes) -> bool:
    """Whether the answer was printed; the alarm cannot come between that and the note of it."""
    hold_alarm()
    is_printed = event.say(text)
    if is_printed:
        event.receipt = receipt
    release_alarm()
    return is_printed


def received(connection: "socket", event: Event) -> tuple[bytes, bytes] | None:
    """What is to be printed, and its receipt; None where it is no answer."""
    data = b""
    while True:
        in_time(connection, event)
        piece = connection.recv(PIECE)
        data += piece
        line, ended, rest = data.partition(b"\n")
        if not piece or len(line) >= LINE_LONGEST:
            return None
        sizes = read_sizes(line) if ended else (len(data), 0)
        if sizes is None:
            return None
        text, receipt = sizes
        if len(rest) >= text + receipt:
            return rest[:text], rest[text : text + receipt]


def read_sizes(line: bytes) -> tuple[int, int] | None:
    """How long the text and the receipt are that a first line announces; None if it is none."""
    sizes = line[len(PREFIX) :].split(b" ")
    if not line.startswith(PREFIX) or len(sizes) > 2 or not all(map(bytes.isdigit, sizes)):
        return None
    text, receipt = int(sizes[0]), int(sizes[-1]) if len(sizes) > 1 else 0
    return (text, receipt) if max(text, receipt) <= REPLY_LONGEST else None


def acknowledge(connection: "socket", event: Event) -> None:
    """Say that the answer reached the agent; the receipt is kept until that is confirmed."""
    try:
        connection.send(DONE)
        if not event.receipt:
            return
        connection.settimeout(event.left(CONFIRMED) or PAUSE)
        if connection.recv(1) == DONE:
            event.receipt = b""
    except OSError:
        return
