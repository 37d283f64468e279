"""What a draft needs of a transcript, in bounded memory."""

import re
from collections.abc import Iterable
from copy import copy
from itertools import islice

import msgspec

from brimline.agents import get_agent
from brimline.agents.content import (
    MAX_ENTRIES,
    ContentReader,
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
from brimline.agents.file_edits import FileEdit, file_edits
from brimline.files.bounded_dict import BoundedDict
from brimline.handoff.commands import ShellCommand
from brimline.handoff.truncate import UTF8
from brimline.handoff.user_messages import is_continuation, says_something
from brimline.redaction import redact, truncate_words

MAX_TEXT_BYTES = 16_384
MAX_WORD_CHARS = 1_000  # a longer word is no credential, and may be cut
GAP = "\n[...]\n"  # replaces what was cut out of a text

# More of an output's end than is shown, so that a credential in it is not cut before redaction.
MAX_OUTPUT_BYTES = 8_192

API = "the API"  # the name of the failure when a call of the model failed

MIN_QUOTED_CHARS = 80  # an earlier message of this length is left out if a later one quotes it
MAX_MESSAGES = 200  # of the user; of more, the first and the latest
MAX_ACTIONS = 40  # of the last turn
MAX_DECISIONS = 40
MAX_DECISION_CHARS = 320

# How an agent marks that it decided, and what it ruled out.
_DECISION = re.compile(
    r"\b(?:decision:|decided|chose|opted for|going with|rejected|ruled out|root cause|trade-?off"
    r"|instead of|rather than|won't work|doesn't work|does not work|not an option|not viable"
    r"|the (?:problem|bug|issue|reason|cause) (?:is|was)\b|the fix (?:is|was) (?:to|that)\b)",
    re.IGNORECASE,
)
# What an agent tells its client to show: `::git-push{branch="main"}`.
_DIRECTIVE = re.compile(r"^::[a-z-]+\{.*\}\s*$\n?", re.MULTILINE)
_MARKUP = re.compile(r"^[\s>*#-]+|\*\*|^\d+\.\s+")

# What test programs print of a failed test, and of a run without one.
_FAILED_CHECK = re.compile(
    r"^\s*--- FAIL|^FAIL\b|^FAILED\b|\b[1-9]\d* (?:failed|failing|failures?|errors?)\b"
    r"|test result: FAILED|^not ok \d|^\s*[✗✘×✕] ",
    re.MULTILINE,
)
_FAILED_NAME = re.compile(
    r"^\s*--- FAIL: |^FAILED |^not ok \d|^\s*[✗✘×✕●] |^test \S+ \.\.\. FAILED|^FAIL:? \S"
    r"|^error(?:\[\w+\])?: |^E   "
)
_PASSED_CHECK = re.compile(
    r"\b\d+ (?:passed|passing)\b|^ok\s+\S|^PASS\b|test result: ok|^OK \(", re.MULTILINE
)

# What is not output: colours, and what a client writes if there is none.
_NOISE = re.compile(
    r"\x1b\[[0-9;?]*[A-Za-z]|^(?:Exit code \d+|Command exited with code \d+"
    r"|\(no output\)|\(Bash completed with no output\))$",
    re.MULTILINE,
)
_COMPACT = re.compile(r"\s*/(?:compact|compress)\b")  # the command, before what it is to keep
_SPACE = re.compile(r"\s")


class ToolUse(msgspec.Struct, frozen=True):
    """A tool call worth noting: a command, an edit, or a tool that may fail."""

    tool: str
    command: ShellCommand | None = None
    files: tuple[str, ...] = ()
    changes: "tuple[tuple[str, FileChanges], ...]" = ()  # by file

    @classmethod
    def of(cls, call: ToolCall) -> "ToolUse | None":
        """None if the call reads only, keeps to-dos, or has no arguments."""
        if call.kind in ("read", "todo", "wait"):
            return None
        if call.kind not in ("other", "subagent") and not (call.command or call.files):
            return None
        text = shorten(call.command.strip())
        files = tuple(map(shorten, call.files[:MAX_ENTRIES]))
        changes = ((shorten(edit.file), FileChanges.of(edit)) for edit in file_edits(call))
        command = ShellCommand.parse(text) if text else None
        return cls(call.tool, command, files, tuple(islice(changes, MAX_ENTRIES)))

    @property
    def key(self) -> str:
        """Equal for a later use that repeats this one."""
        return self.command.core if self.command else "\n".join(self.files) or self.tool

    @property
    def label(self) -> str:
        return self.command.text if self.command else " ".join([self.tool, *self.files])


class CommandRun(msgspec.Struct, frozen=True):
    """A command and its last result; `ok` is None if that is unknown. `key` as in `failures`."""

    key: str
    command: str
    is_check: bool = False
    ended: bool = False
    ok: bool | None = None
    output: str = ""


class FileChanges(msgspec.Struct, frozen=True):
    """How often the agent edited a file, how many lines that added and removed, and a last line.

    `line` is one that its last edit added or else removed: a definition if there is one.
    """

    edits: int = 0
    added: int = 0
    removed: int = 0
    line: str = ""

    @classmethod
    def of(cls, edit: FileEdit) -> "FileChanges":
        return cls(1, len(edit.added), len(edit.removed), _telling_line(edit))

    def plus(self, later: "FileChanges") -> "FileChanges":
        return FileChanges(
            self.edits + later.edits,
            self.added + later.added,
            self.removed + later.removed,
            later.line or self.line,
        )


class Action(msgspec.Struct, frozen=True):
    """A tool call of the last turn; `ok` is None if its outcome is unknown.

    `files` are what it edited or read, `objects` is the command, or what else it was about.
    """

    verb: str
    objects: str
    files: tuple[str, ...] = ()
    has_ended: bool = False
    ok: bool | None = None


class Failure(msgspec.Struct, frozen=True):
    """What failed, and the end of its output; `check` names the tests or linter that it ran."""

    label: str
    output: str
    check: str = ""


class TranscriptDigest:
    """What the user asked, and what the agent did and replied; later pieces replace earlier ones.

    Entries of `messages`, `changed_files`, `command_runs`, `failures` and `decisions` are in order,
    the latest last. `messages` are the user's that say something, each once; `latest_message` may
    be an acknowledgement, of `answered_reply`. `actions` are those since then, by call.
    """

    def __init__(self) -> None:
        self.messages: dict[str, None] = {}
        self.latest_message = ""
        self.answered_reply = ""
        self.last_reply = ""
        self.decisions = BoundedDict[str, None](MAX_DECISIONS)
        self.actions = BoundedDict[str, Action](MAX_ACTIONS)
        self.changes = BoundedDict[str, FileChanges](MAX_ENTRIES)  # by file
        self.plan = ""
        self.folder = ""
        self.branch = ""
        self.todos: dict[str, Todo] = {}
        self.changed_files = BoundedDict[str, float | None](MAX_ENTRIES)  # and when, if known
        self.command_runs = BoundedDict[str, CommandRun](MAX_ENTRIES)
        self.failures = BoundedDict[str, Failure](MAX_ENTRIES)  # without those that worked later
        self._pending = BoundedDict[str, ToolUse](MAX_ENTRIES)  # by call id
        self._running = BoundedDict[str, ToolUse](MAX_ENTRIES)  # by job

    @property
    def is_empty(self) -> bool:
        return not (
            self.latest_message or self.last_reply or self.command_runs or self.changed_files
        )

    def add(self, piece: Piece) -> None:
        match piece:
            case UserText(text):
                self.add_message(text)
            case ReplyText(text):
                self._add_reply(shorten(_DIRECTIVE.sub("", text).strip()))
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

    def with_message(self, text: str) -> "TranscriptDigest":
        """Return a digest with a message that the transcript may not have yet; this one stays."""
        other = copy(self)
        other.messages = dict(self.messages)
        if redact(shorten(_COMPACT.sub("", text).strip())) not in self.messages:
            other.add_message(text)
        return other

    def add_message(self, text: str) -> None:
        """Add a message of the user, redacted; it begins a turn."""
        text = redact(shorten(_COMPACT.sub("", text).strip()))
        if not text or is_continuation(text):
            return
        if text != self.latest_message:
            self.latest_message, self.answered_reply = text, self.last_reply
            self.actions = BoundedDict[str, Action](MAX_ACTIONS)
        if says_something(text):
            for part in [one for one in self.messages if _repeats(text, one)]:
                del self.messages[part]
            self.messages[text] = None
        if len(self.messages) > MAX_MESSAGES:
            del self.messages[list(islice(self.messages, 2))[1]]

    def _add_reply(self, text: str) -> None:
        if text:
            self.failures.pop(API, None)
            self.last_reply = text
            for line in filter(_is_decision, text.splitlines()):
                self.decisions[_MARKUP.sub("", line)] = None

    def _change_todo(self, change: TodoChange) -> None:
        before = self.todos.get(change.key, Todo(""))
        todo = Todo(shorten(change.text or before.text), change.state or before.state)
        if change.key not in self.todos and len(self.todos) >= MAX_ENTRIES:
            del self.todos[next(iter(self.todos))]
        self.todos[change.key] = todo  # one that changed stays in its place

    def _start_tool(self, call: ToolCall) -> None:
        if call.kind not in ("todo", "wait"):
            files = () if call.command else tuple(map(shorten, call.files[:MAX_ENTRIES]))
            objects = "" if files else shorten(call.summary)
            verb = _VERBS.get(call.kind, call.tool)
            self.actions[call.call_id] = Action(verb, objects, files)
        use = self._running.get(call.job) if call.kind == "wait" else ToolUse.of(call)
        if use is None:
            return
        self.failures.pop(API, None)
        if use.command and not use.command.is_read_only:
            run = CommandRun(use.key, use.command.text, bool(use.command.check))
            self.command_runs[use.key] = run
        self._pending[call.call_id] = use

    def _end_tool(self, result: ToolResult) -> None:
        if action := self.actions.get(result.call_id):
            # In its place: the order is that of the calls.
            has_ended = result.state != "running"
            ended = msgspec.structs.replace(action, has_ended=has_ended, ok=result.ok)
            self.actions.update({result.call_id: ended})
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
        if ok is None and use.command and use.command.check:
            ok = _check_outcome(result.output)
        if run := self.command_runs.get(use.key):
            output = UTF8.last(result.output, MAX_OUTPUT_BYTES)
            ended = CommandRun(run.key, run.command, run.is_check, True, ok, output)
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
        for file, changes in use.changes:
            self.changes[file] = self.changes.get(file, FileChanges()).plus(changes)

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
                self.command_runs.pop(key, None)


def _repeats(text: str, earlier: str) -> bool:
    """Return whether a message was sent again, or with more words."""
    return text.startswith(earlier) or (len(earlier) >= MIN_QUOTED_CHARS and earlier in text)


_VERBS = {"command": "ran", "edit": "edited", "read": "read", "subagent": "asked a subagent"}

_DEFINITION = re.compile(r"\s*(?:(?:export|pub|async|public|private|static) )*(?:def|class|func|fn"
                         r"|function|interface|type|struct|impl|enum|trait|#+) ")  # fmt: skip


def _is_decision(line: str) -> bool:
    """Return whether a line of a reply marks a decision or a cause; no heading, and no table."""
    is_sentence = not line.startswith(("#", "|")) and not line.rstrip(" *").endswith(":")
    return is_sentence and len(line) <= MAX_DECISION_CHARS and bool(_DECISION.search(line))


def _telling_line(edit: FileEdit) -> str:
    """Return a line that an edit adds, or else removes: a definition, else the first."""
    for lines, sign in ((edit.added, "+"), (edit.removed, "-")):
        texts = [line for line in lines if any(c.isalpha() for c in line)]
        chosen = next(filter(_DEFINITION.match, texts), texts[0] if texts else "")
        if chosen:
            return f"{sign} {truncate_words(chosen.strip(), MAX_WORD_CHARS)}"
    return ""


def _check_outcome(output: str) -> bool | None:
    """Return whether a test run passed by what it printed; None if that does not show it."""
    end = output[-MAX_OUTPUT_BYTES:]
    if _FAILED_CHECK.search(end):
        return False
    return True if _PASSED_CHECK.search(end) else None


def find_failed_lines(output: str) -> list[str]:
    """Return the lines of a test run's output that name what failed."""
    return [line for line in output.split("\n") if _FAILED_NAME.search(line)]


def digest_transcript(records: Iterable[bytes], agent: str) -> TranscriptDigest:
    """Fold an agent's records into a digest. Raises UnknownAgent, and what `records` raises."""
    return extend_digest(TranscriptDigest(), records, get_agent(agent).content_reader())


def extend_digest(
    digest: TranscriptDigest, records: Iterable[bytes], reader: ContentReader
) -> TranscriptDigest:
    """Add records to a digest and return it, or a new one if the user cleared the context."""
    for piece in read_content(records, reader):
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
