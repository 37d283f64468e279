"""Sending an event to the daemon, and printing its answer: a part of client.py.

../protocol.py describes the protocol. client.c does the same in C.
"""

import posix
import select
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal
    from _socket import socket
    from collections.abc import Callable
else:
    import _signal

# Since the start of this process.
END_DEADLINE_S = 0.080  # of stdin's end; after that a whole JSON object is enough
STDIN_DEADLINE_S = 0.190
ANSWER_DEADLINE_S = 0.200
CONFIRM_DEADLINE_S = 0.210
SPOOL_DEADLINE_S = 0.230
EXIT_DEADLINE_S = 0.240
MIN_TIME_S = 0.100  # for the remaining steps, however late it is
MIN_LOCK_WAIT_S = 0.050

MAX_LINE_BYTES, MAX_EVENT_BYTES, MAX_REPLY_BYTES, MAX_VALUE_BYTES = 64, 4 << 20, 1 << 20, 1000

RESTART = "-restart"  # ends the kind of a hook or status line that may start the daemon again

CHUNK_BYTES = 1 << 16
POLL_S = 0.002
PREFIX = b"BRIMLINE 1 "
# Sent when the answer is printed: only then is a message delivered. The daemon sends it back when
# it has stored that.
ACK = b"\x06"
WANTS_RECEIPT = b"receipt=1\0"  # a header entry; older daemons ignore it

# They decide where a client compacts, or where its settings are.
SETTINGS_VARIABLES = (
    b"CLAUDE_CODE_AUTO_COMPACT_WINDOW", b"CLAUDE_AUTOCOMPACT_PCT_OVERRIDE", b"DISABLE_AUTO_COMPACT",
    b"DISABLE_COMPACT", b"CLAUDE_CODE_DISABLE_1M_CONTEXT", b"ANTHROPIC_MODEL", b"CLAUDE_CONFIG_DIR",
    b"CODEX_HOME", b"GEMINI_CLI_HOME", b"OPENCODE_CONFIG", b"OPENCODE_CONFIG_DIR",
    b"OPENCODE_DISABLE_AUTOCOMPACT", b"PI_CODING_AGENT_DIR",
)  # fmt: skip
PASSED_VARIABLES = (  # to the daemon, in the header
    b"COLUMNS", b"NO_COLOR", b"TERM", b"TMUX", b"TMUX_PANE", b"BRIMLINE_PARENT",
    b"BRIMLINE_SESSION", b"BRIMLINE_STATUS_LINE", b"CLAUDE_PROJECT_DIR", b"CLAUDE_CODE_SESSION_ID",
    b"CLAUDE_CODE_ENTRYPOINT", b"CLAUDE_SESSION_MANAGER_ID", *SETTINGS_VARIABLES,
)  # fmt: skip


class TimeUp(BaseException):
    """The time is over: this process got no CPU time, or a stream blocks."""


class HookEvent:
    """An event of the agent, its destination, and its deadlines.

    `starts`: it may start the daemon, a session's start at any time, others as a restart
    (`is_restart`). `no_daemon`: none runs, not even a slow one. `is_late`: its input did not come
    in time; None until that was read. `answered`: the daemon has answered. `receipt`: that of the
    printed answer, until the daemon has confirmed it.
    """

    def __init__(self, arguments: list[str], reduce_body: "Callable[[bytes], bytes]") -> None:
        self._reduce_body = reduce_body
        self.from_extension = arguments[0] == "--no-daemon"
        self.id = arguments[1] if self.from_extension else f"{time.time_ns()}-{posix.getpid()}"
        details = arguments[2:] if self.from_extension else arguments
        self.kind, self.agent, self.socket, self.spool = details
        self.is_restart = self.kind.endswith(RESTART)
        self.starts = self.is_restart or self.kind == "start"
        self.kind = "hook" if self.kind == "start" else self.kind.removesuffix(RESTART)
        self.no_daemon = self.from_extension
        self.chunks: list[bytes] = []
        self.has_ended = False
        self.is_late: bool | None = None
        self.answered = False
        self.receipt = b""
        self._started = time.monotonic() - self._elapsed_before()

    def _elapsed_before(self) -> float:
        """Return the seconds that this process has run, as far as known."""
        if not self.from_extension:
            return time.process_time()
        since = time.time_ns() - int(self.id.partition("-")[0])
        return min(max(since / 1e9, 0.0), EXIT_DEADLINE_S - MIN_TIME_S)

    def seconds_left(self, until: float) -> float:
        """Return the seconds until a deadline; 0 if it has passed."""
        return max(0.0, self._started + until - time.monotonic())

    @property
    def body(self) -> bytes:
        return b"".join(self.chunks)[:MAX_EVENT_BYTES]

    def is_object(self) -> bool:
        """Return whether the body is a whole JSON object.

        Only what ends with a brace is parsed: a long input may come in many pieces.
        """
        return self.body.rstrip().endswith(b"}") and bool(self._reduce_body(self.body))

    @property
    def spool_wait_s(self) -> float:
        """How long to wait for the spool's lock.

        A process that got too little CPU time waits longer: the lock's holder got too little too.
        """
        return max(MIN_LOCK_WAIT_S, self.seconds_left(SPOOL_DEADLINE_S))

    def record(self, kind: str, body: bytes) -> bytes:
        """Return a frame about this event, for the daemon or the spool."""
        origin = ("kind", kind), ("agent", self.agent), ("id", self.id)
        entries = [f"{key}={value[:MAX_VALUE_BYTES]}\0" for key, value in origin]
        entries.append(f"pid={posix.getppid()}\0")
        header = "".join(entries).encode("utf-8", "surrogateescape")
        if kind == self.kind:
            header += WANTS_RECEIPT + encode_variables()
        return b"%b%d %d\n%b%b" % (PREFIX, len(header), len(body), header, body)

    def print(self, text: bytes) -> bool:
        """Write to stdout in pieces that a ready pipe takes; return whether all was written."""
        rest = memoryview(text)
        try:
            while rest and select.select([], [1], [], self.seconds_left(EXIT_DEADLINE_S))[1]:
                rest = rest[posix.write(1, rest[: select.PIPE_BUF]) :]
        except OSError:
            return False
        return not rest


def exchange(arguments: list[str], reduce_body: "Callable[[bytes], bytes]") -> HookEvent:
    """Send the event to the daemon, print its answer, and return the event."""
    event = HookEvent(arguments, reduce_body)
    try:
        prepare(event)
        connection = None if event.from_extension else connect(event)
        read_body(event)
        if connection and not event.is_late:
            send_and_print(connection, event)
    except TimeUp:
        pass
    # The rest has limits of its own; the alarm must not interrupt the holder of the spool's lock.
    try:  # noqa: SIM105 - contextlib is not in C
        _signal.setitimer(_signal.ITIMER_REAL, 0)
    except TimeUp:
        pass
    read_body(event)
    return event


def prepare(event: HookEvent) -> None:
    """Set the alarm, and open standard streams that the agent closed.

    Otherwise the socket would get the number of a closed stream.
    """
    _signal.signal(_signal.SIGALRM, raise_time_up)
    _signal.setitimer(_signal.ITIMER_REAL, max(MIN_TIME_S, event.seconds_left(EXIT_DEADLINE_S)))
    while (spare := posix.open("/dev/null", posix.O_RDONLY)) < 3:
        pass
    posix.close(spare)


def raise_time_up(number: int, frame: object) -> None:
    raise TimeUp


def read_body(event: HookEvent) -> None:
    """Read stdin to its end, or to a whole object, the limit or the deadline, unless that is done.

    Data that is ready is read even then. Data beyond the limit is read and dropped until
    END_DEADLINE_S: an agent may fail if its pipe is not read.
    """
    if event.is_late is not None:
        return
    # An extension writes everything and closes stdin, but may do so after this process started.
    until = SPOOL_DEADLINE_S if event.from_extension else STDIN_DEADLINE_S
    ready = select.poll()
    ready.register(0, select.POLLIN)
    size = sum(map(len, event.chunks))
    while not event.has_ended and (size < MAX_EVENT_BYTES or event.seconds_left(END_DEADLINE_S)):
        if not ready.poll(event.seconds_left(END_DEADLINE_S) * 1000) and (
            event.is_object() or not ready.poll(event.seconds_left(until) * 1000)
        ):
            break
        size += read_chunk(event, size < MAX_EVENT_BYTES)
    event.is_late = not (event.has_ended or size >= MAX_EVENT_BYTES or event.is_object())


def read_chunk(event: HookEvent, is_kept: bool) -> int:
    """Read a chunk and return its size; the alarm is blocked until the chunk is stored."""
    hold_alarm()
    try:
        chunk = posix.read(0, CHUNK_BYTES)
    except OSError:
        chunk = b""
    if is_kept:
        event.chunks.append(chunk)
    event.has_ended = not chunk
    release_alarm()
    return len(chunk)


def hold_alarm() -> None:
    _signal.pthread_sigmask(_signal.SIG_BLOCK, [_signal.SIGALRM])


def release_alarm() -> None:
    _signal.pthread_sigmask(_signal.SIG_UNBLOCK, [_signal.SIGALRM])


def encode_variables() -> bytes:
    """Return the header entries of the variables that are set."""
    values = ((name, posix.environ.get(name)) for name in PASSED_VARIABLES)
    return b"".join(
        b"env.%b=%b\0" % (name, value)
        for name, value in values
        if value is not None and len(value) <= MAX_VALUE_BYTES
    )


def connect(event: HookEvent) -> "socket | None":
    """Return a connection to the daemon; None if there is none, or if it is another user's."""
    import _socket

    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        connect_in_time(connection, event)
        if sys.platform == "linux":
            peer = connection.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, 12)
        else:
            peer = connection.getsockopt(0, _socket.LOCAL_PEERCRED, 76)
    except (FileNotFoundError, ConnectionRefusedError):
        event.no_daemon = True
        return None
    except OSError:
        return None
    return connection if int.from_bytes(peer[4:8], sys.byteorder) == posix.geteuid() else None


def connect_in_time(connection: "socket", event: HookEvent) -> None:
    while True:
        set_timeout(connection, event)
        try:
            return connection.connect(event.socket)
        except BlockingIOError:  # the daemon's backlog is full
            time.sleep(POLL_S)


def set_timeout(connection: "socket", event: HookEvent) -> None:
    """Limit the next call to the answer's deadline; raises TimeoutError if that has passed."""
    left = event.seconds_left(ANSWER_DEADLINE_S)
    if not left:
        raise TimeoutError
    connection.settimeout(left)


def send_and_print(connection: "socket", event: HookEvent) -> None:
    """Send the event, print the answer, and acknowledge it."""
    try:
        set_timeout(connection, event)
        connection.sendall(event.record(event.kind, event.body))
        answer = read_answer(connection, event)
    except OSError:
        return
    if answer is None:
        return
    event.answered = True
    text, receipt = answer
    hold_alarm()  # until the receipt is noted
    is_printed = event.print(text)
    if is_printed:
        event.receipt = receipt
    release_alarm()
    if is_printed:
        acknowledge(connection, event)


def read_answer(connection: "socket", event: HookEvent) -> tuple[bytes, bytes] | None:
    """Return the text to print and its receipt; None if the answer is invalid."""
    data = b""
    while True:
        set_timeout(connection, event)
        chunk = connection.recv(CHUNK_BYTES)
        data += chunk
        line, ended, rest = data.partition(b"\n")
        if not chunk or len(line) >= MAX_LINE_BYTES:
            return None
        sizes = parse_sizes(line) if ended else (len(data), 0)
        if sizes is None:
            return None
        text, receipt = sizes
        if len(rest) >= text + receipt:
            return rest[:text], rest[text : text + receipt]


def parse_sizes(line: bytes) -> tuple[int, int] | None:
    """Return the sizes of text and receipt from a first line; None if it is invalid."""
    sizes = line[len(PREFIX) :].split(b" ")
    if not line.startswith(PREFIX) or len(sizes) > 2 or not all(map(bytes.isdigit, sizes)):
        return None
    text, receipt = int(sizes[0]), int(sizes[-1]) if len(sizes) > 1 else 0
    return (text, receipt) if max(text, receipt) <= MAX_REPLY_BYTES else None


def acknowledge(connection: "socket", event: HookEvent) -> None:
    """Acknowledge the answer, and forget the receipt if the daemon confirms that."""
    try:
        connection.send(ACK)
        if not event.receipt:
            return
        connection.settimeout(event.seconds_left(CONFIRM_DEADLINE_S) or POLL_S)
        if connection.recv(1) == ACK:
            event.receipt = b""
    except OSError:
        return
