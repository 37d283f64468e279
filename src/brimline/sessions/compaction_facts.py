"""What was stated and done in a session, and how much of it is named after a compaction."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import PurePath

import msgspec

from brimline.agents.content import Piece, ToolCall, ToolResult, UserText
from brimline.files.bounded_dict import BoundedDict

MAX_FACTS = 1_000  # of a kind; of more, the latest
LONG_MESSAGE_CHARS = 1_500  # of a longer message the first and the last paragraph count
MIN_STATEMENT_WORDS = 3  # of four or more letters
NAMED_SHARE = 0.8  # of the words of a statement, in one paragraph or list item

_WORD = re.compile(r"[^\W\d_]{4,}")
_NUMBER = re.compile(r"(?<![\w.:#/-])\d{2,}(?:[.,]\d+)?(?![\w:/-])")
_BLANK_LINE = re.compile(r"\n\s*\n")
_ITEM = re.compile(r"\n[ \t>]*\n|\n(?=[ \t]*(?:[-*]|\d+\.) )")


class FactCount(msgspec.Struct, frozen=True):
    """How many facts of a kind there were before a compaction, and how many are kept after it."""

    kept: int
    total: int


class CompactionFacts(msgspec.Struct, frozen=True):
    """Facts from a session's beginning or clear on, by kind.

    `statements` are messages of the user with three words of four letters, `numbers` those in them
    of two digits or more, `files` those that the agent's tools changed.
    """

    statements: FactCount
    files: FactCount
    numbers: FactCount


def add_facts(facts: Iterable[CompactionFacts]) -> CompactionFacts:
    """Return the sums by kind."""
    every = list(facts)

    def add(counts: Iterable[FactCount]) -> FactCount:
        summed = list(counts)
        return FactCount(sum(each.kept for each in summed), sum(each.total for each in summed))

    return CompactionFacts(
        add(each.statements for each in every),
        add(each.files for each in every),
        add(each.numbers for each in every),
    )


class FactRegister:
    """Collects the facts of a session, each with the number of the record that has it last."""

    def __init__(self) -> None:
        self._statements = BoundedDict[str, int](MAX_FACTS)
        self._words = BoundedDict[str, frozenset[str]](MAX_FACTS)  # of each statement
        self._numbers = BoundedDict[str, int](MAX_FACTS)
        self._files = BoundedDict[str, int](MAX_FACTS)
        self._edits = BoundedDict[str, tuple[str, ...]](MAX_FACTS)  # by call

    def copy(self) -> "FactRegister":
        """Return a register to which later facts are not added."""
        other = FactRegister()
        for facts, own in (
            (other._statements, self._statements),
            (other._numbers, self._numbers),
            (other._files, self._files),
        ):
            facts.update(own)
        other._words.update(self._words)
        return other

    def add(self, piece: Piece, record: int) -> None:
        match piece:
            case UserText(text):
                for statement, words in _find_statements(text):
                    self._statements[statement] = record
                    self._words[statement] = words
                    for number in _NUMBER.findall(statement):
                        self._numbers[number] = record
            case ToolCall() if edits_files(piece):
                self._edits[piece.call_id] = piece.files
            case ToolResult(ok=True | None, state="done"):
                for file in self._edits.pop(piece.call_id, ()):
                    self._files[file] = record
            case _:
                pass

    def count(self, texts: Iterable[str], kept_from: int | None = None) -> CompactionFacts:
        """Count the facts, and those that the texts name or a record from `kept_from` on has."""
        text = "\n\n".join(texts)
        paragraphs = [set(_WORD.findall(each)) for each in _ITEM.split(text.lower())]
        whole = " ".join(text.split())
        names = Counter(PurePath(file).name for file in self._files)

        def states(statement: str) -> bool:
            words = self._words[statement]
            least = NAMED_SHARE * len(words)
            return statement in whole or any(len(words & each) >= least for each in paragraphs)

        def names_file(file: str) -> bool:
            path = PurePath(file)
            is_unique = names[path.name] == 1
            return _has_word(text, path.name if is_unique else f"{path.parent.name}/{path.name}")

        def count(facts: dict[str, int], is_named: Callable[[str], bool]) -> FactCount:
            kept = sum(
                (kept_from is not None and record >= kept_from) or is_named(fact)
                for fact, record in facts.items()
            )
            return FactCount(kept, len(facts))

        return CompactionFacts(
            count(self._statements, states),
            count(self._files, names_file),
            count(self._numbers, lambda number: _has_word(text, number)),
        )


def edits_files(call: ToolCall) -> bool:
    """Return whether a call changes files: by an editing tool, or a command with a patch."""
    return call.kind in ("edit", "command") and bool(call.files)


def _find_statements(message: str) -> Iterator[tuple[str, frozenset[str]]]:
    """Yield a message as one line, or its first and last paragraph, with its words if enough."""
    message = message.strip()
    paragraphs = _BLANK_LINE.split(message)
    parts = [message] if len(message) <= LONG_MESSAGE_CHARS else [paragraphs[0], paragraphs[-1]]
    for part in parts:
        words = frozenset(_WORD.findall(part.lower()))
        if len(part) <= LONG_MESSAGE_CHARS and len(words) >= MIN_STATEMENT_WORDS:
            yield " ".join(part.split()), words


def _has_word(text: str, word: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text) is not None
