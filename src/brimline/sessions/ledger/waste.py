"""What takes room in a context without need, and what it cost to carry it."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Literal, TypeAlias

import msgspec

from brimline.context.events import Call
from brimline.context.prices import MILLION, price_of
from brimline.context.usage import format_tokens
from brimline.redaction import redact
from brimline.sessions.ledger.call_growth import Step
from brimline.sessions.ledger.context_parts import Mask, plain_name
from brimline.sessions.ledger.part_tokens import Entry
from brimline.terminal.text import count_of

WasteKind: TypeAlias = Literal[
    "read again unchanged",
    "same command, same output",
    "stale read",
    "MCP tools never called",
    "large memory file",
    "large result",
    "client's countdown",
]

ADVICE: dict[WasteKind, str] = {
    "read again unchanged": (
        "{what}: the same result {times} times, {tokens} tokens too many. "
        "Tell the agent that it has it."
    ),
    "same command, same output": (
        "{what}: the same output {times} times, {tokens} tokens too many. "
        "Tell the agent that it has it."
    ),
    "stale read": (
        "{what}: changed since, and read again: {tokens} tokens are out of date. "
        "Have the agent read the changed lines alone."
    ),
    "MCP tools never called": (
        "MCP server {what}: no tool of it was called, {tokens} tokens. Disable it for this project."
    ),
    "large memory file": (
        "{what}: {tokens} tokens of every session. Move what is rarely needed to another file."
    ),
    "large result": (
        "{what}: {tokens} tokens. Ask for a part of it: a range of lines, a filter, a limit."
    ),
    "client's countdown": (
        'The client tells the model "{what}", {times} times so far, {tokens} tokens: {verdict}. '
        "Have the agent run `brimline here` instead."
    ),
}
# What to do about all findings of a kind.
REMEDIES: dict[WasteKind, str] = {
    "read again unchanged": "Tell the agent not to read a file again that has not changed.",
    "same command, same output": "Tell the agent not to repeat a command whose output it has.",
    "stale read": "Have the agent read the changed lines of a large file, not all of it again.",
    "MCP tools never called": "Disable the MCP servers that this project does not use.",
    "large memory file": "Move what is rarely needed from memory files to other files.",
    "large result": "Ask for parts of large results: a range of lines, a filter, a limit.",
    "client's countdown": "Have the agent run `brimline here`, which counts what is really left.",
}

MIN_WASTE_TOKENS = 200  # less is not worth a line
MIN_STALE_TOKENS = (
    1_000  # of a read: of 2,960 findings 1,374 were reads before an edit, mostly small
)
# A finding that reaches neither is summed with others in one line.
MIN_SHOWN_WINDOW_PERCENT, MIN_SHOWN_USD = 1.0, 0.05
MIN_LARGE_TOKENS = 5_000
MAX_LARGE_RESULTS = 5
COUNTDOWN_SHARE = 0.1  # of what is left, by which a countdown may be off and still be right


class Waste(msgspec.Struct, frozen=True):
    """One finding; `times` is how often it came in. `cost` is in USD, None if no price is known.

    `advice` is a sentence or two for people.
    """

    kind: WasteKind
    what: str
    tokens: int
    cost: float | None
    times: int
    advice: str

    def is_small(self, window: int) -> bool:
        """Return whether it is not worth a line of its own in a window of this size."""
        is_cheap = self.cost is None or self.cost < MIN_SHOWN_USD
        share = 100 * self.tokens / max(1, window)
        return self.kind != "client's countdown" and is_cheap and share < MIN_SHOWN_WINDOW_PERCENT


class WasteTotal(msgspec.Struct, frozen=True):
    """All findings: their tokens and those of each kind, the largest first.

    `remedy` is what to do about that one. Of the `findings`, `small` are not worth a line of their
    own; they have `small_tokens`.
    """

    findings: int
    tokens: int
    small: int
    small_tokens: int
    by_kind: dict[WasteKind, int]
    remedy: str

    @property
    def small_text(self) -> str | None:
        """Those that are summed, in a line; None if there are none."""
        if not self.small:
            return None
        return f"{count_of(self.small, 'small finding')}: {format_tokens(self.small_tokens)} tokens"


def total_waste(findings: Sequence[Waste], window: int) -> WasteTotal | None:
    """Add up findings in a window of this size; None if there are none."""
    counts: Counter[WasteKind] = Counter()
    for waste in findings:
        counts[waste.kind] += waste.tokens
    by_kind = dict(counts.most_common())
    if not by_kind:
        return None
    small = [waste.tokens for waste in findings if waste.is_small(window)]
    remedy = REMEDIES[next(iter(by_kind))]
    return WasteTotal(len(findings), counts.total(), len(small), sum(small), by_kind, remedy)


def find_waste(
    entries: Sequence[Entry],
    steps: Sequence[Step],
    mask: Mask = redact,
    left: Sequence[int] = (),
) -> list[Waste]:
    """Return what is wasted in a context now, the largest first; no entry counts twice.

    `left` are the tokens until the compaction, and until the window is full; none if unknown.
    """
    costs = _CarryingCosts(steps)
    found: list[Waste] = []
    counted: set[int] = set()

    def add(kind: WasteKind, what: str, group: Sequence[Entry], times: int = 1) -> None:
        fresh = [entry for entry in group if id(entry) not in counted]
        tokens = sum(entry.tokens for entry in fresh)
        if tokens < MIN_WASTE_TOKENS:
            return
        counted.update(map(id, fresh))
        advice = ADVICE[kind].format(what=what, tokens=format_tokens(tokens), times=times)
        found.append(Waste(kind, what, tokens, costs.of(fresh), times, advice))

    for kind, group in _repeats(entries):
        add(kind, group[0].part.name(mask), group[1:], len(group))
    for group in _groups(_stale_reads(entries, steps), lambda entry: entry.part.file).values():
        add("stale read", group[0].part.name(mask), group, len(group))
    called = {part.server for step in steps for part in step.outputs if part.server}
    for server, group in _groups(entries, lambda entry: entry.part.server).items():
        listed = [entry for entry in group if entry.part.category == "system and tools"]
        if server and plain_name(str(server)) not in map(plain_name, called):
            add("MCP tools never called", mask(str(server)), listed)
    for entry in entries:
        if entry.part.category == "memory files" and entry.tokens >= MIN_LARGE_TOKENS:
            add("large memory file", entry.part.name(mask), [entry])
    countdown = [entry for entry in entries if entry.part.tokens_left is not None]
    if countdown:  # named however small it is: the model may believe it
        found.append(_describe_countdown(countdown, costs, left))
    results = (entry for entry in entries if entry.part.category == "tool results")
    large = sorted(results, key=lambda entry: entry.tokens, reverse=True)[:MAX_LARGE_RESULTS]
    for entry in large:
        if entry.tokens >= MIN_LARGE_TOKENS:
            add("large result", entry.part.name(mask), [entry])
    return sorted(found, key=lambda waste: waste.tokens, reverse=True)


def _describe_countdown(
    countdown: Sequence[Entry], costs: "_CarryingCosts", left: Sequence[int]
) -> Waste:
    kind: WasteKind = "client's countdown"
    said = countdown[-1].part.tokens_left or 0
    tokens = sum(entry.tokens for entry in countdown)
    what, times = f"{said:,} tokens left", len(countdown)
    advice = ADVICE[kind].format(
        what=what, tokens=format_tokens(tokens), times=times, verdict=judge_countdown(said, left)
    )
    return Waste(kind, what, tokens, costs.of(countdown), times, advice)


def judge_countdown(said: int, left: Sequence[int]) -> str:
    """Return whether a countdown is right: about what is left until the compaction, or the window.

    `left` are those two; none if unknown.
    """
    if not left:
        return "what is left is unknown"
    if any(abs(said - each) <= COUNTDOWN_SHARE * each for each in left):
        return "that is right"
    return f"in fact {format_tokens(left[0])} are left"


def _repeats(entries: Sequence[Entry]) -> Iterator[tuple[WasteKind, list[Entry]]]:
    """Yield the results that came more than once: of a read, or of a command."""
    results = [entry for entry in entries if entry.part.category == "tool results"]
    for group in _groups(results, _result_key).values():
        kind = group[0].part.tool_kind
        if len(group) > 1 and kind in ("read", "command"):
            is_read = kind == "read"
            yield "read again unchanged" if is_read else "same command, same output", group


def _result_key(entry: Entry) -> Hashable:
    part = entry.part
    return part.tool, part.file, part.command, part.arguments, part.content


def _stale_reads(entries: Sequence[Entry], steps: Sequence[Step]) -> Iterator[Entry]:
    """Yield the large reads of files that the agent changed and read again afterwards.

    Of a file that it has not read again, the edit alone says what changed: nothing is out of date
    that the model does not know.
    """
    changed: dict[str, int] = {}
    for step in steps:
        for part in step.outputs:
            if part.tool_kind == "edit" and part.file:
                changed[part.file] = part.record
    reads = [
        entry
        for entry in entries
        if entry.part.category == "tool results" and entry.part.tool_kind == "read"
    ]
    last = {entry.part.file: entry.part.record for entry in reads}
    for entry in reads:
        edited = changed.get(entry.part.file, 0)
        is_superseded = entry.part.record < edited < last[entry.part.file]
        if is_superseded and entry.tokens >= MIN_STALE_TOKENS:
            yield entry


def _groups(
    entries: Iterable[Entry], key: Callable[[Entry], Hashable]
) -> dict[Hashable, list[Entry]]:
    groups: dict[Hashable, list[Entry]] = {}
    for entry in entries:
        groups.setdefault(key(entry), []).append(entry)
    return groups


class _CarryingCosts:
    """What it costs to send tokens: written by the call they come in with, then read by each call.

    Where no price is known, the cost is None.
    """

    def __init__(self, steps: Sequence[Step]) -> None:
        self._first: list[float] = []
        self._later = [0.0]  # the sum over the calls before
        self._unpriced = [0]
        for step in steps:
            rates = rates_of(step.call)
            first, later = rates or (0.0, 0.0)
            self._first.append(first)
            self._later.append(self._later[-1] + later)
            self._unpriced.append(self._unpriced[-1] + (rates is None))

    def of(self, entries: Iterable[Entry]) -> float | None:
        total = 0.0
        for entry in entries:
            if self._unpriced[-1] > self._unpriced[entry.place]:
                return None
            later = self._later[-1] - self._later[entry.place + 1]
            total += entry.tokens * (self._first[entry.place] + later)
        return total


def rates_of(call: Call) -> tuple[float, float] | None:
    """Return the USD for a token that comes in with a call, and for one that is sent again."""
    usage = call.usage
    price = price_of(call)
    if price is None:
        return None
    first = price.cache_write if usage.cache_write else price.input
    later = price.cached if usage.cache_read else first
    return first / MILLION, later / MILLION
