"""The lines of what fills a thread: a bar by category, the largest pieces, waste."""

from collections.abc import Iterator

import msgspec

from brimline.context.usage import format_percent, format_tokens, percent_raw
from brimline.sessions.ledger.explain import ExplainedCategory, ExplainedThread, Explanation
from brimline.terminal.stacked_bar import (
    BLOCK,
    UNEXPLAINED,
    Segment,
    category_segment,
    count_cells,
)
from brimline.terminal.text import strip_control, truncate
from brimline.tui.styled_text import Line, StyledText, wrap_text

MAX_PIECES, MAX_FINDINGS = 10, 5
MAX_BAR_COLUMNS = 100
NAME_COLUMNS = 20  # of the longest category and a blank
TOKENS_COLUMNS = 6  # of a rounded figure

BLANK_LINE: Line = []


class FillingLines(msgspec.Struct, frozen=True):
    """Paths in the project are relative to it."""

    width: int
    project: str | None
    colour: bool = True

    def lines(self, explanation: Explanation | None, thread: str) -> Iterator[Line]:
        """Yield the lines of one thread; None is an explanation that is being read."""
        if explanation is None:
            yield [StyledText("Reading the transcript ...", "dim")]
            return
        filled = next((each for each in explanation.threads if each.thread == thread), None)
        if filled is None:
            problem = explanation.problem or "this thread has no call yet"
            yield from self._wrapped(f"What fills it is unknown: {strip_control(problem)}.")
        else:
            yield from self._thread_lines(filled)

    def _thread_lines(self, thread: ExplainedThread) -> Iterator[Line]:
        if thread.sent is None:
            yield from self._wrapped("What fills it is unknown until the next reply.")
        else:
            yield [
                StyledText("What fills it", "bold"),
                StyledText(f"  {thread.sent:,} tokens sent", "dim"),
            ]
            yield from self._category_lines(thread, thread.sent)
        if thread.pending:
            more = f"About {format_tokens(thread.pending)} tokens more came in since the last call."
            yield from self._wrapped(more)
        yield from self._piece_lines(thread)
        yield from self._waste_lines(thread)

    def _category_lines(self, thread: ExplainedThread, sent: int) -> Iterator[Line]:
        categories = [each for each in thread.categories if each.tokens or not each.note]
        if thread.unexplained:
            categories.append(ExplainedCategory(UNEXPLAINED, thread.unexplained, []))
        segments = [category_segment(each.name, each.tokens) for each in categories]
        cells = count_cells(segments, sent, min(self.width, MAX_BAR_COLUMNS))
        yield [self._paint(*pair) for pair in zip(segments, cells, strict=True)]
        for category, segment in zip(categories, segments, strict=True):
            name = truncate(strip_control(category.name), NAME_COLUMNS)
            share = format_percent(percent_raw(category.tokens, sent) or 0.0)
            figures = f" {name:<{NAME_COLUMNS}}{category.tokens:>9,}{share:>7}"
            yield [self._paint(segment, 1), StyledText(figures)]
        for category in thread.categories:
            if category.note:
                yield from self._wrapped(strip_control(f"{category.name}: {category.note}"))

    def _paint(self, segment: Segment, cells: int) -> StyledText:
        """A part of the bar: its colour, or its letter on a terminal without colours."""
        if not self.colour:
            return StyledText(segment.letter * cells)
        return StyledText(BLOCK * cells, colour=int(segment.colour))

    def _piece_lines(self, thread: ExplainedThread) -> Iterator[Line]:
        pieces = [(piece, each) for each in thread.categories for piece in each.pieces]
        pieces.sort(key=lambda pair: pair[0].tokens, reverse=True)
        if pieces:
            yield from (BLANK_LINE, [StyledText("largest pieces", "dim")])
        for piece, category in pieces[:MAX_PIECES]:
            mark = self._paint(category_segment(category.name, 1), 1)
            figure = f" {format_tokens(piece.tokens):>{TOKENS_COLUMNS}}  "
            name = truncate(self._clean(piece.what or category.name), self.width - 1 - len(figure))
            yield [mark, StyledText(figure), StyledText(name)]

    def _waste_lines(self, thread: ExplainedThread) -> Iterator[Line]:
        if thread.waste:
            yield from (BLANK_LINE, [StyledText("waste", "dim")])
        for finding in thread.waste[:MAX_FINDINGS]:
            cost = "" if finding.cost is None else f" ${finding.cost:,.2f} so far."
            yield from self._wrapped(self._clean(finding.advice) + cost)
        if len(thread.waste) > MAX_FINDINGS:
            yield [StyledText(f"and {len(thread.waste) - MAX_FINDINGS} more", "dim")]

    def _clean(self, text: str) -> str:
        return strip_control(text.replace(f"{self.project}/", "") if self.project else text)

    def _wrapped(self, text: str) -> Iterator[Line]:
        return ([StyledText(part)] for part in wrap_text(text, self.width))
