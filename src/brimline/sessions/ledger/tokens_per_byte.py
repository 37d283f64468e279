"""How many tokens a byte of each category takes, learned from the calls of a thread."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import pairwise

from brimline.context.usage import IMAGE_TOKENS
from brimline.sessions.ledger.call_growth import Step
from brimline.sessions.ledger.context_parts import Category, ContextPart

# Tokens per byte before anything is learned: the median of 1,097 results, prompts and attachments
# of Claude Code is one token for 2.17 characters.
TOKENS_PER_BYTE = 0.4
# Fewer bytes than this say little: what the client puts around a part weighs too much.
MIN_LEARNED_BYTES = 400
# A growth outside of these rates has another cause than the one part that came in.
MIN_TOKENS_PER_BYTE, MAX_TOKENS_PER_BYTE = 0.1, 1.2
# What a client and a provider may put around a part: its role, its id, a hint.
MAX_EXTRA_TOKENS = 200
# Without a rate of their own these have that of the agent's words: results are rather code.
PROSE: tuple[Category, ...] = (
    "memory files",
    "user words",
    "injected context",
    "compaction summary",
)


class Rates:
    """Estimates the tokens of a part by its category's rate."""

    def __init__(self, steps: Sequence[Step]) -> None:
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
        self.overall = self._by_category.get(None, TOKENS_PER_BYTE)
        if (prose := self._by_category.get("agent's words")) is not None:
            self._by_category = dict.fromkeys(PROSE, prose) | self._by_category

    def estimate(self, part: ContextPart) -> float:
        """Return the tokens that a part probably takes."""
        rate = self._by_category.get(part.category, self.overall)
        return rate * part.size + IMAGE_TOKENS * part.images

    def most(self, part: ContextPart) -> float:
        """Return the most tokens that a part can plausibly take."""
        return MAX_TOKENS_PER_BYTE * part.size + MAX_EXTRA_TOKENS + 2 * IMAGE_TOKENS * part.images


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
