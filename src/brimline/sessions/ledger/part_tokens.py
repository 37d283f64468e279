"""The tokens of every part of a context, so that they add up to what each call sent.

How many tokens a byte of each category takes is learned from the calls of a thread.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise

import msgspec

from brimline.context.usage import IMAGE_TOKENS
from brimline.sessions.ledger.call_growth import Step
from brimline.sessions.ledger.context_parts import CATEGORIES, Category, ContextPart

RESULTS: tuple[Category, ...] = ("tool results", "subagent results", "images")
SYSTEM = ContextPart("system and tools", "system prompt and tools", 0, kind="system and tools")
HIDDEN_REASONING = ContextPart("reasoning", "reasoning", 0)
# A recorded output below this share of what its text must take is not the final one: Claude Code
# before 2.1.91 often recorded the first tokens of a reply only.
MIN_OUTPUT_SHARE = 0.5
# If inputs seem to take less than this share of their estimate, reasoning was dropped.
MIN_INPUT_SHARE = 0.5
# If less than this share of the provider's own results seems to be gone, something else is.
MIN_DROPPED_SHARE = 0.5

# Tokens per byte before anything is learned: the median of 1,097 results, prompts and attachments
# of Claude Code is one token for 2.17 characters. With OpenAI's models it is 0.27 to 0.37, by the
# results of 7 sessions of Codex; the median is 0.3.
TOKENS_PER_BYTE, GPT_TOKENS_PER_BYTE = 0.4, 0.3
# A byte of prose takes 0.77 to 0.82 of that with four agents, by 100 replies and reports.
# Instructions are prose; what users write and hooks add is often a log, or JSON.
INSTRUCTION_SHARE = 0.78
INSTRUCTIONS: tuple[Category, ...] = ("system and tools", "memory files")
# Fewer bytes than this say little: what the client puts around a part weighs too much.
MIN_LEARNED_BYTES = 400
# A growth outside of these rates has another cause than the one part that came in.
MIN_TOKENS_PER_BYTE, MAX_TOKENS_PER_BYTE = 0.1, 1.2
# What a client and a provider may put around a part: its role, its id, a hint.
MAX_EXTRA_TOKENS = 200
# Without a rate of their own these have that of the agent's words, else that of a first prompt of
# which every part is recorded.
PROSE: tuple[Category, ...] = (
    *INSTRUCTIONS,
    "user words",
    "injected context",
    "compaction summary",
)


class Rates:
    """Estimates the tokens of a part by its category's rate."""

    def __init__(self, steps: Sequence[Step], system: Sequence[ContextPart] = ()) -> None:
        tokens = defaultdict[Category | None, int](int)
        sizes = defaultdict[Category | None, int](int)
        for part, growth in _single_growths(steps):
            for key in (part.category, None):
                tokens[key] += growth
                sizes[key] += part.size
        for part, output in _single_outputs(steps):
            tokens[part.category] += output
            sizes[part.category] += part.size
        self._by_category = {key: tokens[key] / sizes[key] for key in tokens}
        is_gpt = bool(steps) and (steps[0].call.model or "").startswith("gpt-")
        default = GPT_TOKENS_PER_BYTE if is_gpt else TOKENS_PER_BYTE
        self.overall = self._by_category.get(None, default)
        prose = self._by_category.get("agent's words") or _first_prompt_rate(steps, system)
        if prose is not None:
            self._by_category = dict.fromkeys(PROSE, prose) | self._by_category
        elif None not in self._by_category:
            rates = dict.fromkeys(INSTRUCTIONS, INSTRUCTION_SHARE * default)
            self._by_category = rates | self._by_category

    def estimate(self, part: ContextPart) -> float:
        """Return the tokens that a part probably takes."""
        rate = self._by_category.get(part.category, self.overall)
        return rate * part.size + IMAGE_TOKENS * part.images

    def most(self, part: ContextPart) -> float:
        """Return the most tokens that a part can plausibly take."""
        return MAX_TOKENS_PER_BYTE * part.size + MAX_EXTRA_TOKENS + 2 * IMAGE_TOKENS * part.images


def _first_prompt_rate(steps: Sequence[Step], system: Sequence[ContextPart]) -> float | None:
    """Return the tokens per byte of the first prompt; None if not all of it is recorded."""
    if steps and len(system) > 1 and steps[0].start == "continued":
        parts = [*system, *steps[0].inputs]
        size = sum(part.size for part in parts)
        if size and all(part.is_recorded and not part.images for part in parts):
            rate = steps[0].call.usage.sent / size
            if MIN_TOKENS_PER_BYTE < rate < MAX_TOKENS_PER_BYTE:
                return rate
    return None


def _single_growths(steps: Sequence[Step]) -> Iterable[tuple[ContextPart, int]]:
    """Yield each part that alone came in between two calls, with the tokens that it took."""
    for before, step in pairwise(steps):
        if step.start != "continued" or len(step.inputs) != 1:
            continue
        (part,) = step.inputs
        growth = step.call.usage.sent - before.call.usage.held
        if _is_plausible(part, growth):
            yield part, growth


def _single_outputs(steps: Sequence[Step]) -> Iterable[tuple[ContextPart, int]]:
    """Yield each part that is all of a reply but its reasoning, which is known exactly."""
    for step in steps:
        usage = step.call.usage
        written = [part for part in step.outputs if part.category != "reasoning"]
        if usage.reasoning is not None and len(written) == 1:
            tokens = usage.output - usage.reasoning
            if _is_plausible(written[0], tokens):
                yield written[0], tokens


def _is_plausible(part: ContextPart, tokens: int) -> bool:
    is_in_range = MIN_TOKENS_PER_BYTE * part.size < tokens < MAX_TOKENS_PER_BYTE * part.size
    return part.size >= MIN_LEARNED_BYTES and not part.images and is_in_range


class Entry(msgspec.Struct, gc=False):
    """A part in the context and its tokens.

    `place` is that of the first call that sent it, `call` the id of that call, or of the call that
    wrote it.
    """

    part: ContextPart
    tokens: int
    place: int
    call: str


class Balance(msgspec.Struct, frozen=True, gc=False):
    """What a call sent: tokens in the order of CATEGORIES, and what no part accounts for."""

    sent: int
    categories: tuple[int, ...]
    unexplained: int


class ThreadAccount:
    """The context of one thread, call by call: entries and `unexplained` add up to what is sent."""

    def __init__(
        self,
        rates: Rates,
        system: Sequence[ContextPart] = (),
        memory: Sequence[ContextPart] = (),
    ) -> None:
        """Start empty.

        `system` is the recorded system prompt with its tools, `memory` the memory files that are in
        every prompt without a record.
        """
        self._rates = rates
        self._system_parts = system or (SYSTEM,)
        self._memory = memory
        self.entries: list[Entry] = []
        self._hosted: list[Entry] = []  # those of them that the provider put in itself
        self.unexplained = 0
        self.balances: list[Balance] = []
        self._totals: dict[Category, int] = dict.fromkeys(CATEGORIES, 0)
        self._base: list[tuple[ContextPart, int]] | None = None

    def add(self, place: int, step: Step, before: Step | None) -> None:
        """Account for the next call; `before` is the one it continues, None for a new cycle."""
        if before is None:
            self._start_cycle(place, step)
        else:
            self._continue(place, step, before)
        sent = step.call.usage.sent
        self.balances.append(Balance(sent, tuple(self._totals.values()), self.unexplained))

    def rewind(self, place: int | None) -> None:
        """Return to what the call at a place sent, or to the empty context."""
        kept = [] if place is None else [each for each in self.entries if each.place <= place]
        self.clear()
        for entry in kept:
            self._enter(entry)
        if place is not None:  # with what was removed from the kept entries since
            self.unexplained = self.balances[place].sent - sum(self._totals.values())

    def clear(self) -> None:
        self.entries, self.unexplained = [], 0
        self._hosted = []
        self._totals = dict.fromkeys(CATEGORIES, 0)

    def _start_cycle(self, place: int, step: Step) -> None:
        """Account for a context that begins: the system prompt, and what came in since."""
        self.clear()
        call, sent = step.call, step.call.usage.sent
        if self._base is None:
            estimates = sum(self._rates.estimate(part) for part in step.inputs)
            self._base = self._split_base(max(0, sent - round(estimates)))
        base = sum(tokens for _, tokens in self._base)
        kept = split(min(base, sent), [tokens for _, tokens in self._base])
        for (part, _), tokens in zip(self._base, kept, strict=True):
            self._enter(Entry(part, tokens, place, call.id))
        self._add_inputs(step.inputs, max(0, sent - base), place, call.id)

    def _split_base(self, base: int) -> list[tuple[ContextPart, int]]:
        """Split what every prompt begins with into memory files, system prompt and tools."""
        parts: list[tuple[ContextPart, int]] = []
        for part in self._memory:
            tokens = min(base, round(self._rates.estimate(part)))
            parts.append((part, tokens))
            base -= tokens
        tokens = split(base, self._estimate(self._system_parts, base))
        return [*parts, *zip(self._system_parts, tokens, strict=True)]

    def _estimate(self, parts: Sequence[ContextPart], tokens: int) -> list[float]:
        """Return what parts probably take; those without a record take what the others do not."""
        estimates = [self._rates.estimate(part) for part in parts]
        if unrecorded := sum(not part.is_recorded for part in parts):
            rest = max(0.0, tokens - sum(estimates)) / unrecorded
            pairs = zip(parts, estimates, strict=True)
            estimates = [each if part.is_recorded else rest for part, each in pairs]
        return estimates

    def _continue(self, place: int, step: Step, before: Step) -> None:
        growth = step.call.usage.sent - before.call.usage.sent
        if self._is_output_final(before):
            growth -= self._add_outputs(before, place)
            inputs = step.inputs
        else:
            inputs = [*before.outputs, *step.inputs]
        expected = round(sum(self._rates.estimate(part) for part in inputs))
        if step.start == "summarised" and growth < expected:
            growth += self._remove(expected - growth, ("system and tools",))
        if step.start == "trimmed" and growth < expected:
            growth += self._remove(expected - growth, RESULTS)
        if growth < 0:
            growth += self._remove_hosted(expected - growth)
        if growth < MIN_INPUT_SHARE * expected:  # the provider dropped reasoning of earlier turns
            growth += self._remove(expected - growth, ("reasoning",))
        if growth < 0:  # something was removed without a record, most probably the oldest results
            growth += self._remove_unexplained(-growth)
            growth += self._remove(-growth, RESULTS)
            growth += self._remove(-growth, CATEGORIES)
        self._add_inputs(inputs, growth, place, step.call.id)

    def _is_output_final(self, step: Step) -> bool:
        written = [part for part in step.outputs if part.category != "reasoning"]
        least = MIN_OUTPUT_SHARE * sum(self._rates.estimate(part) for part in written)
        return step.call.usage.output >= least

    def _add_outputs(self, step: Step, place: int) -> int:
        """Enter the parts of a reply with its output tokens; returns these.

        What the text cannot account for is reasoning, also if the client does not record it.
        """
        usage, call = step.call.usage, step.call.id
        written = [part for part in step.outputs if part.category != "reasoning"]
        reasoned = [part for part in step.outputs if part.category == "reasoning"]
        reasoning = usage.reasoning
        if reasoning is None:
            estimates = round(sum(self._rates.estimate(part) for part in written))
            reasoning = max(0, usage.output - estimates) if reasoned or not written else 0
        left = self._share(written, usage.output - reasoning, place, call)
        sizes = [part.size + 1 for part in reasoned]
        hidden = reasoning + left
        for part, tokens in zip(reasoned, split(hidden, sizes), strict=True):
            self._enter(Entry(part, tokens, place, call))
        if not reasoned:
            self._enter(Entry(HIDDEN_REASONING, hidden, place, call))
        return usage.output

    def _add_inputs(self, parts: Sequence[ContextPart], tokens: int, place: int, call: str) -> None:
        self.unexplained += self._share(parts, tokens, place, call)

    def _share(self, parts: Sequence[ContextPart], tokens: int, place: int, call: str) -> int:
        """Enter parts with their shares of the tokens; returns what they cannot account for."""
        estimates = self._estimate(parts, tokens)
        is_recorded = all(part.is_recorded for part in parts)
        most = sum(self._rates.most(part) for part in parts) if is_recorded else tokens
        shared = tokens if tokens <= most else min(tokens, round(sum(estimates)))
        for part, share in zip(parts, split(shared, estimates), strict=True):
            self._enter(Entry(part, share, place, call))
        return tokens - shared if parts else tokens

    def _enter(self, entry: Entry) -> None:
        if entry.tokens > 0:
            self.entries.append(entry)
            if entry.part.is_hosted:
                self._hosted.append(entry)
            self._totals[entry.part.category] += entry.tokens

    def _remove_unexplained(self, tokens: int) -> int:
        removed = min(tokens, self.unexplained)
        self.unexplained -= removed
        return removed

    def _remove_hosted(self, tokens: int) -> int:
        """Remove results of the provider's own tools, which it drops together after a turn."""
        if tokens < MIN_DROPPED_SHARE * sum(entry.tokens for entry in self._hosted):
            return 0
        return self._remove(tokens, RESULTS, self._hosted)

    def _remove(
        self, tokens: int, categories: Iterable[Category], entries: Sequence[Entry] | None = None
    ) -> int:
        """Take up to so many tokens from the oldest entries of these categories."""
        left = wanted = min(tokens, sum(self._totals[category] for category in categories))
        if wanted <= 0:
            return 0
        for entry in self.entries if entries is None else entries:
            if not left:
                break
            if entry.part.category in categories:
                removed = min(left, entry.tokens)
                entry.tokens -= removed
                left -= removed
                self._totals[entry.part.category] -= removed
        self.entries = [entry for entry in self.entries if entry.tokens]
        return wanted - left


def split(total: int, weights: Sequence[float]) -> list[int]:
    """Split a number by weights into whole numbers that add up to it."""
    whole = sum(weights)
    if whole <= 0:
        weights, whole = [1.0] * len(weights), float(len(weights))
    ends = [round(total * end / whole) for end in accumulate(weights)] if whole else []
    return [end - start for start, end in pairwise((0, *ends))]
