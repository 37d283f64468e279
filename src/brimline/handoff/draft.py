"""A handoff from a transcript, without a model: what was said and done, put in order."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate
from typing import TypeVar

import msgspec

from brimline.agents.content import MAX_ENTRIES, Todo
from brimline.handoff.digest import (
    GAP,
    CommandRun,
    Failure,
    TranscriptDigest,
    digest_transcript,
    strip_noise,
)
from brimline.handoff.redact import redact
from brimline.handoff.truncate import UTF8
from brimline.usage import BYTES_PER_TOKEN

TOKENS = 2_000
"""A draft is estimated to be below this."""

ROOM = int((TOKENS - 1) * BYTES_PER_TOKEN)

TITLE = (
    "# Draft handoff\n\nMade by Brimline from the transcript, without a model. It lists what was "
    "said and done; nobody has judged it. What looked like a credential is `***`.\n"
)
LINE = 240
"""So many bytes of a command or a to-do are shown."""

PATH = 400
"""And so many of a path."""

LAST_LINES, LAST_BYTES = 6, 300
"""So much of the end of an output is shown."""

SEEN = 8_192
"""So many characters of each end of a long text are looked at for what is shown of it: all that
notes keep, so that no credential is cut through before it is redacted."""

Body = Callable[[int], str]
T = TypeVar("T")


class Section(msgspec.Struct, frozen=True):
    """A part of the draft: `share` bytes are kept for it, and more where others need less."""

    title: str
    share: int
    body: Body

    def within(self, room: int) -> str:
        """Title and body in at most so many bytes; nothing where there is nothing to say."""
        head = f"\n## {self.title}\n"
        body = self.body(room - UTF8.size(head) - 1)
        return f"{head}{body}\n" if body else ""


def draft(
    records: Iterable[bytes], agent: str, *, where: str = "", session: str | None = None
) -> str:
    """A document from an agent's records, estimated at less than TOKENS.

    Empty where they tell nothing. `where` is the transcript's place. Raises UnknownAgent, and what
    `records` raises.
    """
    notes = digest_transcript(records, agent)
    if not (notes.first_prompt or notes.last_reply or notes.command_runs or notes.changed_files):
        return ""
    return _fitted(TITLE, list(_sections(notes, agent, where, session)))


def files_changed_since(records: Iterable[bytes], agent: str, at: float) -> tuple[str, ...]:
    """The files that an agent's tools changed after a time; what its commands changed is unknown.

    A change whose time is not told counts: rather a note too many.
    """
    files = digest_transcript(records, agent).changed_files.items()
    return tuple(file for file, changed in files if changed is None or changed > at)


def _sections(
    notes: TranscriptDigest, agent: str, where: str, session: str | None
) -> Iterator[Section]:
    runs, files, troubles = _runs(notes), _files(notes), [*reversed(notes.failures.values())]
    places = _places(notes, agent, where, session)
    yield Section("The task, in the user's first words", 800, _quoted(notes.first_prompt))
    yield Section("The user's latest words", 800, _quoted(notes.latest_prompt))
    yield Section("Open to-dos", 600, _listed(_todos(notes), _todo))
    yield Section("The last plan", 500, _quoted(notes.plan))
    yield Section("The agent's last words", 900, _quoted(notes.last_reply))
    yield Section("Errors that no later success took back", 800, _listed(troubles, _trouble, 5))
    yield Section("Tests and other commands, with their last result", 900, _listed(runs, _run, 12))
    yield Section("Files changed, the last one first", 600, _listed(files, _line))
    yield Section("Where to look", 800, _listed(places, _place))


def _fitted(title: str, sections: list[Section]) -> str:
    """Every section in its share first; then of what is left over each in turn may take half."""
    texts = [section.within(section.share) for section in sections]
    spare = ROOM - UTF8.size(title) - sum(map(UTF8.size, texts))
    for place, section in enumerate(sections):
        had = UTF8.size(texts[place])
        if had and spare > 0:
            texts[place] = section.within(had + spare // 2)
            spare -= UTF8.size(texts[place]) - had
    return title + "".join(texts)


def _quoted(text: str) -> Body:
    """A text as a quotation; its middle is left out where it is too long."""
    words = redact(text).strip()

    def body(room: int) -> str:
        breaks = UTF8.without_middle(words, room, GAP).count("\n") + GAP.count("\n")
        cut = UTF8.without_middle(words, room - 2 * (breaks + 1), GAP).strip()
        return "\n".join(f"> {line}" for line in cut.split("\n")) if cut else ""

    return body


def _listed(found: Sequence[T], shown: Callable[[T], str], most: int = MAX_ENTRIES) -> Body:
    """Items one below the other, as many as there is room for, and how many there are besides."""
    items = [f"- {shown(one)}" for one in found[:most]]

    def body(room: int) -> str:
        lines = _fitting(items, room)
        if len(lines) < len(found):
            lines = _fitting(items, room - UTF8.size(_more(len(found))) - 1)
            lines.append(_more(len(found) - len(lines)))
        return "\n".join(lines)

    return body


def _fitting(items: list[str], room: int) -> list[str]:
    """As many of the first as fit, a line break after each."""
    ends = accumulate(UTF8.size(item) + 1 for item in items)
    return items[: sum(end <= room + 1 for end in ends)]


def _more(count: int) -> str:
    return f"- and {count} more"


def _line(text: str, most: int = LINE) -> str:
    """Redacted, in one line, and not too long."""
    ends = text if len(text) <= 2 * SEEN else f"{text[:SEEN]}\n{text[-SEEN:]}"
    return UTF8.without_middle(" ".join(redact(ends).split()), most, " [...] ")


def _todos(notes: TranscriptDigest) -> list[Todo]:
    """What is left to do, what was begun first."""
    left = [todo for todo in notes.todos.values() if not todo.is_done and todo.text]
    return sorted(left, key=lambda todo: not todo.is_started)


def _todo(todo: Todo) -> str:
    return f"[begun] {_line(todo.text)}" if todo.is_started else _line(todo.text)


def _files(notes: TranscriptDigest) -> list[str]:
    return list(dict.fromkeys(_below(file, notes.folder) for file in reversed(notes.changed_files)))


def _below(file: str, folder: str) -> str:
    """A file's path from the folder where the agent is at work, if it lies there."""
    rest = file.removeprefix(folder)
    return rest[1:] if folder and rest != file and rest.startswith(("/", "\\")) else file


def _runs(notes: TranscriptDigest) -> list[CommandRun]:
    """Tests and other checks first, then the rest; each the last one first."""
    latest = list(reversed(notes.command_runs.values()))
    return sorted(latest, key=lambda run: not run.is_check)


def _run(run: CommandRun) -> str:
    words = redact(strip_noise(run.output)).rpartition("\n")[2] if run.is_check else ""
    return f"{_came_out(run)}: `{_line(run.command)}`" + (f": {_line(words)}" if words else "")


def _came_out(run: CommandRun) -> str:
    if run.ok is None:
        return "unclear" if run.ended else "no result"
    return "ok" if run.ok else "failed"


def _trouble(trouble: Failure) -> str:
    lines = [_line(line) for line in redact(trouble.output).split("\n")[-LAST_LINES:]]
    shown = _fitting(lines[::-1], LAST_BYTES)[::-1]
    return "\n    ".join([f"`{_line(trouble.label)}`:", *shown])


def _places(
    notes: TranscriptDigest, agent: str, where: str, session: str | None
) -> list[tuple[str, str]]:
    told = [("transcript", where), ("agent", agent), ("session", session or "")]
    told += [("folder", notes.folder), ("branch", notes.branch)]
    return [(name, value) for name, value in told if value]


def _place(place: tuple[str, str]) -> str:
    name, value = place
    return f"{name}: {_line(value, PATH)}"
