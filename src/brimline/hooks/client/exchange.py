"""Sending an event to the daemon, and printing its answer: a part of client.py.

../protocol.py describes the protocol. client.c does the same in C.
"""

import posix
import select
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket
    from collections.abc import Callable

# Since the start of this process.
END_DEADLINE_S = 0.080  # of stdin's end; after that a whole JSON object is enough
# On a busy machine Claude Code writes stdin later than 80 ms after the start.
STDIN_DEADLINE_S = 0.190
# With 120 ms and a slow daemon, the last hook of Codex before a compaction gave up in 3 of 6 runs.
ANSWER_DEADLINE_S = 0.200
CONFIRM_DEADLINE_S = 0.210
SPOOL_DEADLINE_S = 0.230
EXIT_DEADLINE_S = 0.240
MIN_LOCK_WAIT_S = 0.050

MAX_LINE_BYTES, MAX_EVENT_BYTES, MAX_REPLY_BYTES, MAX_VALUE_BYTES = 64, 4 << 20, 1 << 20, 1000

RESTART = "-restart"  # ends the kind of a hook or status line that may start the daemon again

CHUNK_BYTES = 1 << 16
PREFIX = b"BRIMLINE 1 "
# Sent when the answer is printed: only then is a message delivered. The daemon sends it back when
# it has stored that.
ACK = b"\x06"
WANTS_RECEIPT = b"receipt=1\0"  # a header entry; older daemons ignore it

# They decide where a client compacts, or where its settings are.
SETTINGS_VARIABLES = (
    b"CLAUDE_CODE_AUTO_COMPACT_WINDOW", b"CLAUDE_AUTOCOMPACT_PCT_OVERRIDE", b"DISABLE_AUTO_COMPACT",
    b"DISABLE_COMPACT", b"CLAUDE_CODE_DISABLE_1M_CONTEXT", b"ANTHROPIC_MODEL", b"CLAUDE_CONFIG_DIR",
    b"CODEX_HOME", b"COPILOT_HOME", b"GEMINI_CLI_HOME", b"KILO_CONFIG", b"KILO_CONFIG_DIR",
    b"KILO_DISABLE_AUTOCOMPACT", b"KIMI_CODE_HOME", b"KIMI_MODEL_NAME",
    b"KIMI_MODEL_MAX_CONTEXT_SIZE", b"OPENCODE_CONFIG", b"OPENCODE_CONFIG_DIR",
    b"OPENCODE_DISABLE_AUTOCOMPACT", b"PI_CODING_AGENT_DIR", b"QWEN_HOME",
)  # fmt: skip
PASSED_VARIABLES = (  # to the daemon, in the header
    b"COLUMNS", b"NO_COLOR", b"TERM", b"TMUX", b"TMUX_PANE", b"BRIMLINE_PARENT",
    b"BRIMLINE_SESSION", b"BRIMLINE_STATUS_LINE", b"CLAUDE_PROJECT_DIR", b"CLAUDE_CODE_SESSION_ID",
    b"CLAUDE_CODE_ENTRYPOINT", b"CLAUDE_SESSION_MANAGER_ID", b"COPILOT_HOOK_DIR",
    b"COPILOT_PROJECT_DIR", *SETTINGS_VARIABLES,
)  # fmt: skip


class HookEvent:
    """An event of the agent, its destination, and what became of it.

    `starts`: it may start the daemon, a session's start at any time, others as a restart
    (`is_restart`). `no_daemon`: none runs, not even a slow one. `is_late`: its input did not come
    in time. `answered`: the daemon has answered. `receipt`: that of the printed answer, until the
    daemon has confirmed it.
    """

    def __init__(self, arguments: list[str]) -> None:
        self._started = time.monotonic() - time.process_time()
        self.id = f"{time.time_ns()}-{posix.getpid()}"
        self.from_extension = self.no_daemon = arguments[0] == "--no-daemon"
        if self.from_extension:
            self.id, arguments = arguments[1], arguments[2:]
        kind, self.agent, self.socket, self.spool = arguments
        self.is_restart = kind.endswith(RESTART)
        self.starts = self.is_restart or kind == "start"
        self.kind = "hook" if kind == "start" else kind.removesuffix(RESTART)
        self.body = b""
        self.is_late = self.answered = False
        self.receipt = b""

    def seconds_left(self, until: float) -> float:
        """Return the seconds until a deadline; 0 if it has passed."""
        return max(0.0, self._started + until - time.monotonic())

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


def encode_variables() -> bytes:
    """Return the header entries of the variables that are set."""
    values = ((name, posix.environ.get(name)) for name in PASSED_VARIABLES)
    return b"".join(
        b"env.%b=%b\0" % (name, value)
        for name, value in values
        if value is not None and len(value) <= MAX_VALUE_BYTES
    )


def exchange(arguments: list[str], reduce_body: "Callable[[bytes], bytes]") -> HookEvent:
    """Send the event to the daemon, print its answer, and return the event."""
    event = HookEvent(arguments)
    open_closed_streams()
    connection = None if event.from_extension else connect(event)
    if event.kind != "here":  # a question has no input
        event.body, event.is_late = read_stdin(event, reduce_body)
    if connection and not event.is_late:
        try:  # noqa: SIM105 - contextlib is not in C
            send_and_print(connection, event)
        except OSError:  # the event knows how far it got
            pass
    return event


def open_closed_streams() -> None:
    """Open standard streams that the agent closed: the socket would get the number of one."""
    while (spare := posix.open("/dev/null", posix.O_RDONLY)) < 3:
        pass
    posix.close(spare)


def read_stdin(event: HookEvent, reduce_body: "Callable[[bytes], bytes]") -> tuple[bytes, bool]:
    """Read stdin to its end, or to a whole object, the limit or the deadline.

    Returns it, and whether it is late: a part is missing. Data that is ready is read even after the
    deadline. Data beyond the limit is read and dropped until END_DEADLINE_S: an agent may fail if
    its pipe is not read.
    """
    body = bytearray()
    has_ended = False

    def is_object() -> bool:  # only what ends with a brace is parsed: it may come in many pieces
        return body.rstrip().endswith(b"}") and bool(reduce_body(bytes(body)))

    ready = select.poll()
    ready.register(0, select.POLLIN)
    while not has_ended and (len(body) < MAX_EVENT_BYTES or event.seconds_left(END_DEADLINE_S)):
        if not ready.poll(event.seconds_left(END_DEADLINE_S) * 1000) and (
            is_object() or not ready.poll(event.seconds_left(STDIN_DEADLINE_S) * 1000)
        ):
            break
        chunk = read_chunk()
        has_ended = not chunk
        if len(body) < MAX_EVENT_BYTES:
            body += chunk
    is_late = not (has_ended or len(body) >= MAX_EVENT_BYTES or is_object())
    return bytes(body[:MAX_EVENT_BYTES]), is_late


def read_chunk() -> bytes:
    try:
        return posix.read(0, CHUNK_BYTES)
    except OSError:
        return b""


def connect(event: HookEvent) -> "socket | None":
    """Return a connection to the daemon; None if there is none, or if it is another user's."""
    import _socket

    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        connection.settimeout(event.seconds_left(ANSWER_DEADLINE_S))
        connection.connect(event.socket)
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


def send_and_print(connection: "socket", event: HookEvent) -> None:
    """Send the event, print the answer, and acknowledge it; OSError if the connection fails."""
    connection.settimeout(event.seconds_left(ANSWER_DEADLINE_S))
    connection.sendall(event.record(event.kind, event.body))
    answer = read_answer(connection, event)
    if answer is None:
        return
    event.answered = True
    text, receipt = answer
    if not event.print(text):
        return
    event.receipt = receipt
    connection.send(ACK)
    if receipt:
        connection.settimeout(event.seconds_left(CONFIRM_DEADLINE_S))
        if connection.recv(1) == ACK:
            event.receipt = b""


def read_answer(connection: "socket", event: HookEvent) -> tuple[bytes, bytes] | None:
    """Return the text to print and its receipt; None if the answer is invalid."""
    data = b""
    while True:
        connection.settimeout(event.seconds_left(ANSWER_DEADLINE_S))
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
