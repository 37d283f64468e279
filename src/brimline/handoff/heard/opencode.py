"""opencode: messages with their parts, as in an export."""

import msgspec

from brimline.handoff.digest import API, TranscriptDigest
from brimline.handoff.heard.base import ABSENT, Tools, arguments_of

TOOLS = Tools(
    commands=frozenset({"bash"}),
    changes=frozenset({"edit", "multiedit", "write"}),
    lists=frozenset({"todowrite"}),
    looks=frozenset({"glob", "grep", "list", "read", "todoread", "webfetch", "websearch"}),
)


class _Metadata(msgspec.Struct, frozen=True):
    exit: int | None = None


class _Times(msgspec.Struct, frozen=True):
    end: float | None = None


class _State(msgspec.Struct, frozen=True):
    status: str = ""
    input: msgspec.Raw = ABSENT
    output: str | None = None
    error: str | None = None
    metadata: _Metadata | None = None
    time: _Times | None = None

    @property
    def ok(self) -> bool | None:
        """How it came out: a command that was completed may have failed."""
        if self.metadata is not None and self.metadata.exit is not None:
            return self.metadata.exit == 0
        return {"completed": True, "error": False}.get(self.status)

    @property
    def at(self) -> float | None:
        """When it was done."""
        return self.time.end / 1_000 if self.time and self.time.end is not None else None


class _Part(msgspec.Struct, frozen=True):
    type: str = ""
    text: str = ""
    synthetic: bool | None = None
    tool: str = ""
    call: str = msgspec.field(default="", name="callID")
    state: _State = _State()


class _Data(msgspec.Struct, frozen=True):
    message: str = ""


class _Error(msgspec.Struct, frozen=True):
    name: str = ""
    data: _Data = _Data()


class _Path(msgspec.Struct, frozen=True):
    cwd: str | None = None


class _Info(msgspec.Struct, frozen=True):
    role: str = ""
    path: _Path = _Path()
    error: _Error | None = None


class _Entry(msgspec.Struct, frozen=True):
    info: _Info
    parts: list[_Part] = []


_entry = msgspec.json.Decoder(_Entry)


class OpencodeListener:
    """Listens to a session's messages, each with one or more of its parts."""

    def __init__(self) -> None:
        self.notes = TranscriptDigest()

    def hear(self, record: bytes) -> None:
        """Take in one message."""
        entry = _entry.decode(record)
        self.notes.stands(entry.info.path.cwd)
        for part in entry.parts:
            if part.type == "tool":
                self._used(part)
            elif part.type == "text" and not part.synthetic:
                tell = self.notes.asked if entry.info.role == "user" else self.notes.spoke
                tell(part.text)
        if error := entry.info.error:
            self.notes.fails(API, error.data.message or error.name)

    def _used(self, part: _Part) -> None:
        state = part.state
        arguments = arguments_of(state.input if TOOLS.told(part.tool) else ABSENT)
        if part.tool in TOOLS.lists:
            self.notes.listed([item.todo() for item in arguments.todos])
        if deed := TOOLS.deed(part.tool, arguments):
            self.notes.begins(part.call, deed)
            self.notes.ends(part.call, state.ok, state.output or state.error or "", state.at)


LISTENER = OpencodeListener
