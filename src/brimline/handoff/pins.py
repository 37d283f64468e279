"""Pins: sentences of the user that come first in what an agent gets after a compaction.

They are in one file of the state folder, which commands write and the daemon reads. What an agent
pins is a proposal, which has no effect until the user accepts it.
"""

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from brimline.context.inbox import SEPARATOR, utf16_length
from brimline.errors import InvalidRequest
from brimline.files.atomic_file import replace_file
from brimline.files.file_lock import locked_file
from brimline.files.private_folder import create_private_folder
from brimline.files.project_folder import is_within
from brimline.files.regular_file import read_regular_file
from brimline.handoff.user_messages import has_continuation

FILE_NAME, LOCK_NAME = "pins.json", "pins.lock"
VERSION = 1
MAX_PINS = 100  # with proposals
MAX_PIN_CHARS = 300
MAX_BLOCK_CHARS = 1_000  # of all that is injected at a time
MAX_FILE_BYTES = 1 << 20
LOCK_WAIT_S = 5.0
MIN_ID_CHARS = 4

PIN_MARK = "PIN:"  # begins a line of a prompt that is to be pinned
MAX_PIN_LINES = 5  # of one prompt
FENCES = ("```", "~~~")

INTRO = "[brimline] The user pinned what follows; it holds until the user removes it:"
LEFT_OUT = "- and {count} more, which do not fit: `brimline pins` lists them"
TOO_LONG_HINT = "Pin the sentence that matters; a handoff document holds more."
FULL_HINT = "Remove some: `brimline pins` lists them, `brimline unpin ID` removes one."
DAMAGED_HINT = "Move it aside, and pin again."

Author: TypeAlias = Literal["user", "agent"]


class Pin(msgspec.Struct, frozen=True):
    """A sentence of a session or of a project's folder; one `by` an agent is a proposal.

    `at` is when the user pinned or accepted it, or the agent proposed it. `agent` is who proposed.
    """

    id: str
    text: str
    at: float
    by: Author
    session: str | None = None
    project: str | None = None
    agent: str | None = None

    def applies_to(self, session: str, project: str | None) -> bool:
        """Whether the user pinned it in a session, or in a folder that the session works in."""
        if self.by != "user":
            return False
        if self.project is None:
            return self.session == session
        return project is not None and is_within(project, self.project)


class _PinsDocument(msgspec.Struct, frozen=True):
    version: int = VERSION
    pins: tuple[Pin, ...] = ()


_document = msgspec.json.Decoder(_PinsDocument)


def clean_pin(text: str) -> str:
    """Return a text as one line without control characters; raises InvalidRequest."""
    words = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    if not words:
        raise InvalidRequest("nothing to pin", 'For example: brimline pin "never touch the README"')
    if utf16_length(words) > MAX_PIN_CHARS:
        reason = f"expected a pin of at most {MAX_PIN_CHARS} characters: got {len(words):,}"
        raise InvalidRequest(reason, TOO_LONG_HINT)
    return words


def find_pin_lines(prompt: str) -> list[str]:
    """Return what the lines `PIN: ...` of a prompt say; a fenced block is quoted, and has none."""
    if has_continuation(prompt):  # Brimline typed it
        return []
    lines: list[str] = []
    is_fenced = False
    for line in prompt.splitlines():
        if line.lstrip().startswith(FENCES):
            is_fenced = not is_fenced
        elif line.startswith(PIN_MARK) and not is_fenced:
            lines.append(line[len(PIN_MARK) :].strip())
    return [line for line in lines if line][:MAX_PIN_LINES]


class PinFile:
    """The pins of a user, in the state folder; each change is one replacement of the file."""

    def __init__(self, state: Path) -> None:
        self.path, self._lock = state / FILE_NAME, state / LOCK_NAME

    def load(self) -> tuple[Pin, ...]:
        """Return all pins and proposals, the oldest first; raises InvalidRequest."""
        try:
            data = read_regular_file(self.path, MAX_FILE_BYTES, follow_links=False)
            document = _document.decode(data)
        except FileNotFoundError:
            return ()
        except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
            reason = f"cannot read the pins in {self.path}: {error}"
            raise InvalidRequest(reason, DAMAGED_HINT) from error
        if document.version != VERSION:
            reason = f"{self.path}: expected version {VERSION}, found version {document.version}"
            raise InvalidRequest(reason, "Update Brimline.")
        return document.pins

    def load_for(self, session: str, project: str | None) -> tuple[Pin, ...]:
        """Return what the user pinned for a session; raises InvalidRequest."""
        return tuple(pin for pin in self.load() if pin.applies_to(session, project))

    def add(self, pin: Pin) -> Pin:
        """Add a pin; one with the same text in the same place stays as it is."""

        def change(pins: tuple[Pin, ...]) -> tuple[Pin, ...]:
            if any(_place(each) == _place(pin) for each in pins):
                return pins
            if len(pins) >= MAX_PINS:
                raise InvalidRequest(f"there are {MAX_PINS} pins and proposals", FULL_HINT)
            if pin.by == "user":
                _check_room([*pins, pin], pin)
            return (*pins, pin)

        pins = self._change(change)
        return next(each for each in pins if _place(each) == _place(pin))

    def accept(self, name: str, at: float) -> Pin:
        """Make a proposal the user's own; raises InvalidRequest."""
        accepted: list[Pin] = []

        def change(pins: tuple[Pin, ...]) -> tuple[Pin, ...]:
            chosen = find_pin(pins, name)
            if chosen.by == "user":
                raise InvalidRequest(f"pin {chosen.id} is the user's own already")
            bound = msgspec.structs.replace(chosen, by="user", at=at)
            changed = tuple(bound if each is chosen else each for each in pins)
            _check_room(changed, bound)
            accepted.append(bound)
            return changed

        self._change(change)
        return accepted[0]

    def remove(self, name: str, may_remove: Callable[[Pin], bool]) -> Pin:
        """Remove a pin by its number or id; raises InvalidRequest, also unless it `may` be."""
        removed: list[Pin] = []

        def change(pins: tuple[Pin, ...]) -> tuple[Pin, ...]:
            chosen = find_pin(pins, name)
            if not may_remove(chosen):
                reason = f"pin {chosen.id} is the user's, and only the user removes it"
                raise InvalidRequest(reason, "Ask the user to run `brimline unpin` in a terminal.")
            removed.append(chosen)
            return tuple(each for each in pins if each is not chosen)

        self._change(change)
        return removed[0]

    def continue_session(self, before: str, after: str) -> None:
        """Have the pins of a session that was cleared count for the one that continues it."""
        if any(each.session == before for each in self.load()):
            self._change(
                lambda pins: tuple(
                    msgspec.structs.replace(each, session=after) if each.session == before else each
                    for each in pins
                )
            )

    def _change(self, change: Callable[[tuple[Pin, ...]], tuple[Pin, ...]]) -> tuple[Pin, ...]:
        try:
            create_private_folder(self.path.parent)
            with locked_file(self._lock, LOCK_WAIT_S):
                pins = self.load()
                changed = change(pins)
                if changed != pins:
                    encoded = msgspec.json.encode(_PinsDocument(pins=changed))
                    replace_file(self.path, encoded, sync=True)
        except OSError as error:
            reason = f"cannot write {self.path}: {error.strerror or error}"
            raise InvalidRequest(reason) from error
        return changed


def make_pin(
    text: str,
    at: float,
    by: Author,
    *,
    session: str | None = None,
    project: str | None = None,
    agent: str | None = None,
) -> Pin:
    """Return a pin with an id made from its content; raises InvalidRequest."""
    words = clean_pin(text)
    key = "\0".join([words, session or "", project or "", repr(at)])
    id = sha256(key.encode("utf-8", "replace")).hexdigest()[:8]
    return Pin(id, words, at, by, session, project, agent)


def find_pin(pins: Sequence[Pin], name: str) -> Pin:
    """Return a pin by its number in the list, from 1, or the beginning of its id."""
    if len(name) < MIN_ID_CHARS and name.isdecimal() and 0 < int(name) <= len(pins):
        return pins[int(name) - 1]
    matches = [each for each in pins if len(name) >= MIN_ID_CHARS and each.id.startswith(name)]
    if len(matches) != 1:
        raise InvalidRequest(f"no pin {name!r}", "`brimline pins` lists numbers and ids.")
    return matches[0]


def _place(pin: Pin) -> tuple[str, str | None, str | None]:
    return pin.text, pin.session, pin.project


def _check_room(pins: Iterable[Pin], new: Pin) -> None:
    """Refuse a pin that does not fit with the others of its session or folder."""
    same_scope = [
        each
        for each in pins
        if each.by == "user" and (each.session, each.project) == (new.session, new.project)
    ]
    if len(_fitting_lines(same_scope)) < len(same_scope):
        reason = f"the pins of this place would take more than {MAX_BLOCK_CHARS:,} characters"
        raise InvalidRequest(reason, FULL_HINT)


def render_pins(pins: Sequence[Pin]) -> str:
    """Return the block to inject, of at most MAX_BLOCK_CHARS; empty without pins."""
    if not pins:
        return ""
    lines = _fitting_lines(pins)
    if len(lines) < len(pins):
        lines.append(LEFT_OUT.format(count=len(pins) - len(lines)))
    return "\n".join([INTRO, *lines])


def room_beside(pins: str, most_chars: int) -> int:
    """Return how many of `most_chars` a block of pins leaves to what follows it."""
    return most_chars - utf16_length(pins + SEPARATOR) if pins else most_chars


def _fitting_lines(pins: Iterable[Pin]) -> list[str]:
    """Return a line for each of the first pins that fit together."""
    lines: list[str] = []
    room = MAX_BLOCK_CHARS - utf16_length(INTRO) - len(LEFT_OUT) - 2
    for pin in pins:
        line = f"- {pin.text} ({_describe_origin(pin)})"
        room -= utf16_length(line) + 1
        if room < 0:
            break
        lines.append(line)
    return lines


def _describe_origin(pin: Pin) -> str:
    try:
        day = datetime.fromtimestamp(pin.at, UTC).strftime("%Y-%m-%d %H:%M UTC")
    except (OverflowError, ValueError, OSError):
        day = "at an unknown time"
    return f"pinned {day}" if pin.project is None else f"pinned {day} for this project"
