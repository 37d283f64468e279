"""Cache misses, compared with the blocks that a fake model with a real prefix cache billed again.

The truth of a call: the tokens of the blocks that the call before had left in the cache and that
are in the prompt again, less those that were read.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from brimline import Tracker
from brimline.context.cache_misses import CacheMiss, find_misses
from brimline.context.events import MAIN
from brimline.testing.fake_model import Billed, FakeModel, Reply, Scenario
from brimline.testing.fake_model.cache import OPENAI_GRAIN

from .connect import CLAUDE, GPT, anthropic, openai

pytestmark = pytest.mark.slow

TEXT = "The parser reads one record after the other, and counts those that it does not know. "
SYSTEM, QUESTION = TEXT * 200, TEXT * 40
CACHED = {"type": "ephemeral"}
CALLS = 9
COLD, NEW_MODEL, NEW_TOOLS = 3, 5, 7  # the calls that miss, from 0 on

OTHER = {CLAUDE: "claude-sonnet-5", GPT: "gpt-5.4"}


def ask_anthropic(sdk: Any, model: str, tool: str, questions: list[str]) -> Any:
    last = {"type": "text", "text": questions[-1], "cache_control": CACHED}
    earlier = [{"role": "user", "content": [{"type": "text", "text": q}]} for q in questions[:-1]]
    return sdk.messages.create(
        model=model,
        max_tokens=1_000,
        system=[{"type": "text", "text": SYSTEM, "cache_control": CACHED}],
        tools=[{"name": tool, "description": "", "input_schema": {"type": "object"}}],
        messages=[*earlier, {"role": "user", "content": [last]}],
    )


def ask_openai(sdk: Any, model: str, tool: str, questions: list[str]) -> Any:
    return sdk.responses.create(
        model=model,
        instructions=SYSTEM,
        tools=[{"type": "function", "name": tool, "parameters": {"type": "object"}}],
        input=[{"role": "user", "content": question} for question in questions],
    )


Ask = Callable[[Any, str, str, list[str]], Any]


def run(connect: Callable[[FakeModel], Any], ask: Ask, model: str) -> tuple[Any, list[CacheMiss]]:
    """Ask a growing conversation, with changes at the calls that miss."""
    replies = tuple(Reply(text="Yes.", cold=place == COLD) for place in range(CALLS))
    tracker = Tracker()
    with FakeModel(Scenario(main=replies, list_blocks=True)) as fake, connect(fake) as sdk:
        questions: list[str] = []
        for place in range(CALLS):
            questions.append(f"{place}. {QUESTION}")
            model_now = OTHER[model] if place >= NEW_MODEL else model
            tool = "find" if place < NEW_TOOLS else "search"
            tracker.observe(ask(sdk, model_now, tool, questions))
        return fake.billed, find_misses(tracker.session.threads[MAIN])


def blocks_of(billed: Billed) -> dict[str, int]:
    """The tokens of each block by its content, without the breakpoint in it."""
    return {_content(each.content): each.tokens for each in billed.blocks}


def _content(block: Any) -> str:
    return json.dumps(block).replace(f', "cache_control": {json.dumps(CACHED)}', "")


def paid_again(before: Billed, now: Billed) -> int:
    known = blocks_of(before)
    again = sum(tokens for key, tokens in blocks_of(now).items() if key in known)
    return again - now.usage.cache_read


@pytest.mark.parametrize(
    ("connect", "ask", "model"),
    [(anthropic, ask_anthropic, CLAUDE), (openai, ask_openai, GPT)],
    ids=["anthropic", "openai"],
)
def test_misses_are_those_of_the_bill(
    connect: Callable[[FakeModel], Any], ask: Ask, model: str
) -> None:
    """Answers of an SDK have no time: a cache that expired and new tools look the same."""
    billed, misses = run(connect, ask, model)
    assert [(miss.number - 1, miss.cause) for miss in misses] == [
        (COLD, "unknown"),
        (NEW_MODEL, "model switch"),
        (NEW_TOOLS, "unknown"),
    ]
    for miss in misses:
        before, now = billed[miss.number - 2], billed[miss.number - 1]
        assert miss.call == now.id
        assert miss.tokens == pytest.approx(paid_again(before, now), abs=OPENAI_GRAIN)
    missed = {miss.number - 1 for miss in misses}
    for place in set(range(1, CALLS)) - missed:
        assert paid_again(billed[place - 1], billed[place]) <= OPENAI_GRAIN
