"""Codex: the items of a rollout."""

import re

import msgspec

from brimline.handoff.digest import API, WORDS, ToolUse, TranscriptDigest, renew
from brimline.handoff.heard.base import ABSENT, Item, arguments_of, text_of
from brimline.transcripts.source import parse_time

COMMANDS = frozenset({"exec_command", "local_shell", "shell", "shell_command", "container.exec"})
GOES_ON = frozenset({"wait", "write_stdin"})
"""Tools that wait for a command that was begun before."""

REQUEST = "## My request for Codex:"
"""What stands before the user's own words where an editor added its context."""

FAILED = ("exec_command failed", "apply_patch verification failed", "Script failed")
ABORTED = "aborted by user"

_HARNESS = re.compile(r"\s*<[a-z_]+>\n|\s*# AGENTS\.md instructions")
"""How a message begins that Codex writes in the user's name."""

_FILE = re.compile(
    r"^\*\*\* (?:Add|Update|Delete) File: (.+)$|^\*\*\* Move to: (.+)$", re.MULTILINE
)
_SCRIPTED = re.compile(r'\bcmd"?\s*:\s*("(?:[^"\\]|\\.)*")')
_CODE = re.compile(r"(?:exited with code|Exit code:|\"?exit_code\"?:)\s*(-?\d{1,10})")
_RUNNING = re.compile(r"running with (?:session|cell) ID (\w+)")
_string = msgspec.json.Decoder(str)


class _Action(msgspec.Struct, frozen=True):
    command: list[str] = []


class _Item(msgspec.Struct, frozen=True):
    type: str = ""
    role: str | None = None
    content: msgspec.Raw = ABSENT
    name: str = ""
    call_id: str | None = None
    arguments: str = ""
    input: str = ""
    action: _Action | None = None
    output: msgspec.Raw = ABSENT
    message: str | None = None
    item: msgspec.Raw = ABSENT
    cwd: str | None = None


class _Line(msgspec.Struct, frozen=True):
    type: str | None = None
    timestamp: str | None = None
    payload: msgspec.Raw = ABSENT


class _Plan(msgspec.Struct, frozen=True):
    plan: list[Item] = []
    explanation: str | None = None


class _Packed(msgspec.Struct, frozen=True):
    """How the output of 2025 was wrapped: a text with the exit code beside it."""

    output: str
    metadata: msgspec.Raw = ABSENT


class _Waiting(msgspec.Struct, frozen=True):
    session_id: int | str = ""
    cell_id: int | str = ""


class _Thing(msgspec.Struct, frozen=True):
    type: str = ""
    text: str = ""


_line = msgspec.json.Decoder(_Line)
_item = msgspec.json.Decoder(_Item)
_plan = msgspec.json.Decoder(_Plan)
_packed = msgspec.json.Decoder(_Packed)
_waiting = msgspec.json.Decoder(_Waiting)
_thing = msgspec.json.Decoder(_Thing)


class CodexListener:
    """Listens to what was said and done; the events that repeat it are passed over."""

    def __init__(self) -> None:
        self.notes = TranscriptDigest()
        self._running: dict[str, ToolUse] = {}

    def hear(self, record: bytes) -> None:
        """Take in one record; in 2025 an item stood bare on its line."""
        line = _line.decode(record)
        at = parse_time(line.timestamp)
        match line.type:
            case "response_item":
                self._item(_item.decode(line.payload), at)
            case "event_msg":
                self._event(_item.decode(line.payload))
            case "session_meta" | "turn_context":
                self.notes.stands(_item.decode(line.payload).cwd)
            case _ if not line.payload:
                self._item(_item.decode(record), at)
            case _:
                pass

    def _event(self, event: _Item) -> None:
        match event.type:
            case "error" | "stream_error":
                self.notes.fails(API, event.message or "")
            case "item_completed" if event.item:
                thing = _thing.decode(event.item)
                self.notes.planned(thing.text if thing.type == "Plan" else "")
            case _:
                pass

    def _item(self, item: _Item, at: float | None) -> None:
        match item.type:
            case "message":
                self._message(item)
            case "function_call" | "custom_tool_call" | "local_shell_call":
                self._uses(item)
            case "function_call_output" | "custom_tool_call_output":
                self._result(item.call_id or "", text_of_output(item.output), at)
            case _:
                pass

    def _message(self, item: _Item) -> None:
        text = text_of(item.content)
        if item.role == "assistant":
            self.notes.spoke(text)
        elif item.role == "user" and not _HARNESS.match(text):
            _, _, request = text.partition(REQUEST)
            self.notes.asked(request or text)

    def _uses(self, item: _Item) -> None:
        id = item.call_id or ""
        if item.name == "update_plan":
            plan = _plan.decode(item.arguments)
            self.notes.listed([step.todo() for step in plan.plan])
            self.notes.planned(plan.explanation or "")
        elif item.name in GOES_ON:
            told = _waiting.decode(item.arguments)
            if deed := self._running.get(str(told.session_id or told.cell_id)):
                self.notes.begins(id, deed)
        elif deed := _deed(item):
            self.notes.begins(id, deed)

    def _result(self, id: str, text: str, at: float | None) -> None:
        head, split, body = text.partition("Output:\n")
        if text.startswith(ABORTED):
            self.notes.drops(id)
        elif going := _RUNNING.search(head[-WORDS:]):
            self._goes_on(going[1], id)
        else:
            ok = _came_out(head if split else text[:WORDS])
            self.notes.ends(id, ok, body if split else text, at)

    def _goes_on(self, name: str, id: str) -> None:
        """The command is still at work: what waits for it later tells how it came out."""
        if deed := self.notes.goes_on(id):
            renew(self._running, name, deed)


def _deed(item: _Item) -> ToolUse | None:
    """What a tool was used for; files may be changed in a patch, a script, or a command."""
    if item.name == "apply_patch":
        return ToolUse.of(item.name, files=_files(item.input or item.arguments))
    if item.name == "exec":
        lines = [_string.decode(found) for found in _SCRIPTED.findall(item.input)]
        files = _files(item.input)
        return ToolUse.of(item.name, "; ".join(lines), files) if lines or files else None
    if item.action is not None:
        command = arguments_of(msgspec.json.encode(item.action).decode()).line
    else:
        command = arguments_of(item.arguments).line if item.name in COMMANDS else ""
    return ToolUse.of(item.name or "shell", command, _files(command))


def _files(patch: str) -> tuple[str, ...]:
    """The files that a patch names; in a script or an argument its line breaks are escaped."""
    found = _FILE.findall(patch.replace("\\n", "\n"))
    return tuple(dict.fromkeys((changed or moved).strip() for changed, moved in found))


def _came_out(head: str) -> bool | None:
    if head.startswith(FAILED):
        return False
    codes = _CODE.findall(head)
    return int(codes[-1]) == 0 if codes else None


def text_of_output(output: msgspec.Raw) -> str:
    """A tool's output, which has come as a text, as pieces, and as a text within a text."""
    text = text_of(output)
    if not text.startswith('{"output"'):
        return text
    try:
        told = _packed.decode(text)
    except msgspec.DecodeError:
        return text
    return f"{bytes(told.metadata).decode('utf-8', 'replace')}\nOutput:\n{told.output}"


LISTENER = CodexListener
