"""What a draft needs of a transcript, in bounded memory."""

import re
from collections.abc import Iterable

import msgspec

from brimline.agents import get_agent
from brimline.agents.content import (
    MAX_ENTRIES,
    ContextCleared,
    ErrorText,
    Location,
    Piece,
    PlanText,
    ReplyText,
    Todo,
    TodoChange,
    TodoList,
    ToolCall,
    ToolResult,
    UserText,
    read_content,
)
from brimline.files.bounded_dict import BoundedDict
from brimline.handoff.commands import ShellCommand
from brimline.handoff.truncate import UTF8

MAX_TEXT_BYTES = 16_384
MAX_WORD_CHARS = 1_000  # a longer word is no credential, and may be cut
GAP = "\n[...]\n"  # replaces what was cut out of a text

# More of an output's end than is shown, so that a credential in it is not cut before redaction.
MAX_OUTPUT_BYTES = 8_192

API = "the API"  # the name of the failure when a call of the model failed

# What is not output: colours, and what a client writes if there is none.
_NOISE = re.compile(
    r"\x1b\[[0-9;?]*[A-Za-z]|^(?:Exit code \d+|Command exited with code \d+"
    r"|\(no output\)|\(Bash completed with no output\))$",
    re.MULTILINE,
)
_SPACE = re.compile(r"\s")


class ToolUse(msgspec.Struct, frozen=True):
    """A tool call worth noting: a command, an edit, or a tool that may fail."""

    tool: str
    command: ShellCommand | None = None
    files: tuple[str, ...] = ()

    @classmethod
    def of(cls, call: ToolCall) -> "ToolUse | None":
        """None if the call reads only, keeps to-dos, or has no arguments."""
        if call.kind in ("read", "todo", "wait"):
            return None
        if call.kind not in ("other", "subagent") and not (call.command or call.files):
            return None
        text = shorten(call.command.strip())
        files = tuple(map(shorten, call.files[:MAX_ENTRIES]))
        return cls(call.tool, ShellCommand.parse(text) if text else None, files)

    @property
    def key(self) -> str:
        """Equal for a later use that repeats this one."""
        return self.command.core if self.command else "\n".join(self.files) or self.tool

    @property
    def label(self) -> str:
        return self.command.text if self.command else " ".join([self.tool, *self.files])


class CommandRun(msgspec.Struct, frozen=True):
    """A command and its last result; `ok` is None if that is unknown."""

    command: str
    is_check: bool = False
    ended: bool = False
    ok: bool | None = None
    output: str = ""


class Failure(msgspec.Struct, frozen=True):
    """What failed, and the end of its output; `check` names the tests or linter that it ran."""

    label: str
    output: str
    check: str = ""


class TranscriptDigest:
    """What the user asked, and what the agent did and replied; later pieces replace earlier ones.

    Entries of `changed_files`, `command_runs` and `failures` are in order, the latest last.
    """

    def __init__(self) -> None:
        self.first_prompt = ""
        self.latest_prompt = ""
        self.last_reply = ""
        self.plan = ""
        self.folder = ""
        self.branch = ""
        self.todos: dict[str, Todo] = {}
        self.changed_files = BoundedDict[str, float | None](MAX_ENTRIES)  # and when, if known
        self.command_runs = BoundedDict[str, CommandRun](MAX_ENTRIES)
        self.failures = BoundedDict[str, Failure](MAX_ENTRIES)  # without those that worked later
        self._pending = BoundedDict[str, ToolUse](MAX_ENTRIES)  # by call id
        self._running = BoundedDict[str, ToolUse](MAX_ENTRIES)  # by job

    def add(self, piece: Piece) -> None:
        match piece:
            case UserText(text):
                self._add_prompt(shorten(text.strip()))
            case ReplyText(text):
                self._add_reply(shorten(text.strip()))
            case ToolCall():
                self._start_tool(piece)
            case ToolResult():
                self._end_tool(piece)
            case TodoList(todos):
                last = enumerate(todos[-MAX_ENTRIES:])
                self.todos = {str(n): Todo(shorten(todo.text), todo.state) for n, todo in last}
            case TodoChange():
                self._change_todo(piece)
            case PlanText(text):
                self.plan = shorten(text.strip()) or self.plan
            case Location(folder, branch):
                self.folder = folder or self.folder
                self.branch = branch or self.branch
            case ErrorText(text):
                self._add_failure(API, Failure(API, strip_noise(text)))
            case _:
                pass

    def _add_prompt(self, text: str) -> None:
        if text and self.first_prompt:
            self.latest_prompt = text
        elif text:
            self.first_prompt = text

    def _add_reply(self, text: str) -> None:
        if text:
            self.failures.pop(API, None)
            self.last_reply = text

    def _change_todo(self, change: TodoChange) -> None:
        before = self.todos.get(change.key, Todo(""))
        todo = Todo(shorten(change.text or before.text), change.state or before.state)
        if change.key not in self.todos and len(self.todos) >= MAX_ENTRIES:
            del self.todos[next(iter(self.todos))]
        self.todos[change.key] = todo  # one that changed stays in its place

    def _start_tool(self, call: ToolCall) -> None:
        use = self._running.get(call.job) if call.kind == "wait" else ToolUse.of(call)
        if use is None:
            return
        self.failures.pop(API, None)
        if use.command and not use.command.is_read_only:
            run = CommandRun(use.command.text, bool(use.command.check))
            self.command_runs[use.key] = run
        self._pending[call.call_id] = use

    def _end_tool(self, result: ToolResult) -> None:
        use = self._pending.pop(result.call_id, None)
        if use is None:
            return
        if result.state == "cancelled":
            self.command_runs.pop(use.key, None)
        elif result.state == "running":
            self._running[result.job] = use
        else:
            self._finish_tool(use, result)

    def _finish_tool(self, use: ToolUse, result: ToolResult) -> None:
        ok = result.ok
        if ok and use.command and not use.command.has_own_exit_code:
            ok = None
        if run := self.command_runs.get(use.key):
            output = UTF8.last(result.output, MAX_OUTPUT_BYTES)
            ended = CommandRun(run.command, run.is_check, True, ok, output)
            self.command_runs[use.key] = ended
        if ok is False:
            # A command that only reads fails when it finds nothing: that is no failure.
            if not (use.command and use.command.is_read_only):
                check = use.command.check if use.command else ""
                failure = Failure(use.label, strip_noise(result.output), check)
                self._add_failure(use.key, failure)
            return
        if ok:
            self._resolve_failures(use)
        for file in use.files:
            self.changed_files[file] = result.at

    def _add_failure(self, key: str, failure: Failure) -> None:
        """Note a failure; one without output may just have found nothing."""
        if failure.output:
            self.failures[key] = failure

    def _resolve_failures(self, use: ToolUse) -> None:
        """Forget that it failed before; a check of everything also resolves narrower ones."""
        self.failures.pop(use.key, None)
        if use.command and use.command.checks_all:
            check = use.command.check
            for key in [key for key, one in self.failures.items() if one.check == check]:
                del self.failures[key]


def digest_transcript(records: Iterable[bytes], agent: str) -> TranscriptDigest:
    """Fold an agent's records into a digest. Raises UnknownAgent, and what `records` raises."""
    digest = TranscriptDigest()
    for piece in read_content(records, get_agent(agent).content_reader()):
        if isinstance(piece, ContextCleared):
            digest = TranscriptDigest()
        digest.add(piece)
    return digest


def strip_noise(output: str) -> str:
    """Return the end of an output, without colours and the client's own lines.

    It begins at a word, because half a credential would not be recognised.
    """
    end = UTF8.last(output, MAX_OUTPUT_BYTES)
    return _NOISE.sub("", end if end == output else _from_word(end)).strip()


def shorten(text: str) -> str:
    """Cut the middle out of a text of more than MAX_TEXT_BYTES, between words."""
    if len(text) <= MAX_TEXT_BYTES and UTF8.size(text) <= MAX_TEXT_BYTES:
        return text
    half = (MAX_TEXT_BYTES - len(GAP)) // 2
    beginning = _from_word(UTF8.first(text, half)[::-1])[::-1]
    return beginning + GAP + _from_word(UTF8.last(text, half))


def _from_word(text: str) -> str:
    """Return the text from the first space on, if there is one soon."""
    space = _SPACE.search(text, 0, MAX_WORD_CHARS)
    return text[space.start() :] if space else text
