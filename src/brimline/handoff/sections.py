"""Fit scored parts of a document into a number of characters: the least valuable are left out."""

from collections.abc import Iterator, Sequence

import msgspec

from brimline.handoff.truncate import UTF16

PART_CHARS = 240  # lines are grouped up to this
MAX_LINE_CHARS = 1_000  # a longer line is wrapped between words


class Part(msgspec.Struct, frozen=True):
    """Whole lines that are kept or left out together; the lowest scores are left out first.

    One that `is_remark` continues the line of the part before, and is left out without a note.
    """

    text: str
    score: float
    is_remark: bool = False


class Item(msgspec.Struct, frozen=True):
    """Parts in their order; `first` begins the first line, `rest` the others.

    `has_notes`: a note stands for lines that are left out.
    """

    parts: tuple[Part, ...]
    first: str = "- "
    rest: str = "  "
    has_notes: bool = False

    def render(self, lowest: float) -> str:
        """Return the parts of at least this score; empty without any."""
        if all(part.score < lowest for part in self.parts):
            return ""
        lines: list[str] = []
        gap = 0
        for part in self.parts:
            if part.score < lowest or (part.is_remark and not lines):
                gap += 0 if part.is_remark else 1 + part.text.count("\n")
                continue
            if part.is_remark:
                lines[-1] += part.text
                continue
            lines += [*self._note(gap), *part.text.split("\n")]
            gap = 0
        lines += self._note(gap)
        return self.first + f"\n{self.rest}".join(lines)

    def _note(self, lines: int) -> list[str]:
        noun = "line" if lines == 1 else "lines"
        return [f"[{lines} {noun} left out]"] if lines and self.has_notes else []


class Section(msgspec.Struct, frozen=True):
    """A title and its items; if `has_count`, a last line counts those that are left out."""

    title: str
    items: Sequence[Item]
    has_count: bool = False

    def render(self, lowest: float) -> str:
        """Return the section with the parts of at least this score; empty without any."""
        texts = [text for item in self.items if (text := item.render(lowest))]
        if not texts:
            return ""
        left_out = len(self.items) - len(texts)
        texts += [f"- [{left_out} more left out]"] if left_out and self.has_count else []
        return "\n".join([f"\n## {self.title}", *texts, ""])


def fit_sections(head: str, sections: Sequence[Section], most_chars: int) -> str:
    """Return a document of at most this many characters, as the clients count them.

    Parts without a positive score are always left out.
    """
    parts = (part for section in sections for item in section.items for part in item.parts)
    scores = sorted({part.score for part in parts if part.score > 0})
    low, high = 0, len(scores)
    while low < high:
        middle = (low + high) // 2
        if UTF16.size(_render(head, sections, scores[middle])) <= most_chars:
            high = middle
        else:
            low = middle + 1
    return _render(head, sections, scores[low]) if low < len(scores) else head


def _render(head: str, sections: Sequence[Section], lowest: float) -> str:
    return head + "".join(section.render(lowest) for section in sections)


def split_lines(text: str) -> Iterator[str]:
    """Yield the lines of a text in groups, without empty ones; very long ones are wrapped."""
    group = ""
    for line in _wrapped_lines(text):
        if group and len(group) + len(line) >= PART_CHARS:
            yield group
            group = line
        else:
            group = f"{group}\n{line}" if group else line
    if group:
        yield group


def _wrapped_lines(text: str) -> Iterator[str]:
    for line in text.splitlines():
        line = line.rstrip()
        while len(line) > MAX_LINE_CHARS:
            space = line.rfind(" ", 0, PART_CHARS)
            end = space if space > 0 else PART_CHARS
            yield line[:end]
            line = line[end:].lstrip()
        if line:
            yield line
