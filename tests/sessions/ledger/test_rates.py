"""The tokens of a byte are learned from what is known exactly."""

import msgspec
import pytest

from brimline.context.events import Call
from brimline.context.usage import Usage
from brimline.sessions.ledger.call_growth import Step
from brimline.sessions.ledger.context_parts import Category, ContextPart
from brimline.sessions.ledger.part_tokens import (
    GPT_TOKENS_PER_BYTE,
    INSTRUCTION_SHARE,
    TOKENS_PER_BYTE,
    Rates,
)


def part(category: Category, size: int) -> ContextPart:
    return ContextPart(category, "x", size)


def step(sent: int, output: int, reasoning: int | None, *parts: ContextPart) -> Step:
    """A call with what came in before it and what it wrote."""
    call = Call(id=str(sent), usage=Usage(sent, 0, 0, output, reasoning))
    inputs = [each for each in parts if not each.is_output]
    return Step(call, "continued", inputs, [each for each in parts if each.is_output])


def rate(rates: Rates, category: Category) -> float:
    return rates.estimate(part(category, 1_000)) / 1_000


def test_reply_shows_the_rate_of_words_and_of_prose() -> None:
    words = step(1_000, 700, 500, part("reasoning", 0), part("agent's words", 1_000))
    rates = Rates([words, step(2_300, 0, 0, part("tool results", 1_000))])
    assert rate(rates, "agent's words") == 0.2
    assert rate(rates, "memory files") == 0.2
    assert rate(rates, "tool results") == 0.6
    assert rate(rates, "tool calls") == 0.6


def test_own_rate_precedes_that_of_the_agents_words() -> None:
    words = step(1_000, 200, 0, part("agent's words", 1_000))
    rates = Rates([words, step(1_500, 0, 0, part("user words", 1_000))])
    assert rate(rates, "user words") == 0.3


@pytest.mark.parametrize(
    "reply",
    [
        step(1_000, 700, None, part("agent's words", 1_000)),  # with reasoning or without?
        step(1_000, 700, 0, part("agent's words", 1_000), part("tool calls", 1_000)),
        step(1_000, 70, 0, part("agent's words", 100)),
        step(1_000, 7_000, 0, part("agent's words", 1_000)),
    ],
)
def test_reply_that_may_hold_more_shows_nothing(reply: Step) -> None:
    assert rate(Rates([reply]), "agent's words") == TOKENS_PER_BYTE


def test_instructions_have_the_average_rate_once_one_is_learned() -> None:
    results = [step(1_000, 0, 0), step(1_250, 0, 0, part("tool results", 1_000))]
    assert rate(Rates(results), "memory files") == 0.25
    assert rate(Rates(results[:1]), "memory files") == INSTRUCTION_SHARE * TOKENS_PER_BYTE


def test_models_of_openai_have_a_rate_of_their_own() -> None:
    first = step(1_000, 0, 0)
    first.call = msgspec.structs.replace(first.call, model="gpt-5.5")
    assert rate(Rates([first]), "tool results") == pytest.approx(GPT_TOKENS_PER_BYTE)
    instructions = pytest.approx(INSTRUCTION_SHARE * GPT_TOKENS_PER_BYTE)
    assert rate(Rates([first]), "memory files") == instructions


SYSTEM = [part("system and tools", 3_000), part("system and tools", 5_000)]


def test_first_prompt_that_is_recorded_as_a_whole_shows_the_rate_of_prose() -> None:
    rates = Rates([step(2_500, 0, 0, part("memory files", 2_000))], SYSTEM)
    assert rate(rates, "memory files") == rate(rates, "user words") == 0.25
    assert rate(rates, "tool results") == TOKENS_PER_BYTE


HIDDEN = ContextPart("compaction summary", "summary", 0, is_recorded=False)


def without_a_record(call: Step) -> Step:
    return Step(call.call, call.start, [*call.inputs, HIDDEN], [])


FIRST = step(2_500, 0, 0, part("memory files", 2_000))


@pytest.mark.parametrize(
    ("first", "system"),
    [
        (FIRST, []),
        (FIRST, SYSTEM[:1]),  # without its tools
        (FIRST, [*SYSTEM, HIDDEN]),
        (without_a_record(FIRST), SYSTEM),
        (step(25_000, 0, 0, part("memory files", 2_000)), SYSTEM),  # it continues another session
        (Step(FIRST.call, "compacted", FIRST.inputs, []), SYSTEM),
    ],
)
def test_first_prompt_with_more_than_is_recorded_shows_nothing(
    first: Step, system: list[ContextPart]
) -> None:
    rates = Rates([first], system)
    assert rate(rates, "memory files") == INSTRUCTION_SHARE * TOKENS_PER_BYTE
    assert rate(rates, "user words") == TOKENS_PER_BYTE
