"""The ledger of the real Pi beside the blocks that the fake model was sent."""

from __future__ import annotations

import re
from collections import Counter

import msgspec
import pytest

from brimline.sessions.ledger.session_ledger import ThreadLedger
from brimline.testing.fake_model import Billed, Reply, Scenario, ToolCall
from brimline.testing.fake_model.block_kinds import BlockKind, kind_of
from brimline.testing.fake_model.prompt import CHARACTERS_PER_TOKEN

from . import pi
from .ledger_truth import assert_totals, find_errors, noise_png, read_main_ledger, words
from .run import ClientRun, Place

pytestmark = pytest.mark.clients

WINDOW = 36_000  # Pi compacts 16,384 below it
OF_KIND: dict[BlockKind, str] = {
    "system": "system and tools",
    "tools": "system and tools",
    "user": "user words",
    "reply": "agent's words",
    "reasoning": "reasoning",
    "tool call": "tool calls",
    "tool result": "tool results",
    "image": "images",
}
MEMORY = re.compile(r"<project_instructions .*?</project_instructions>", re.DOTALL)


def use(tool: str, text: str, reasoning: str | None = None, **arguments: str) -> Reply:
    return Reply(text=text, reasoning=reasoning, tools=(ToolCall(tool, dict(arguments)),))


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[ClientRun]:
    """Two turns; a compaction follows the first."""
    place = Place(tmp_path_factory.mktemp("ledger"))
    place.make()
    (place.project / "AGENTS.md").write_text(words(800, "rule"))
    (place.project / "notes.txt").write_text(words(2_000, "note"))
    (place.project / "dots.png").write_bytes(noise_png(40))
    first = (
        use("read", words(400, "reply"), path="notes.txt"),
        use("bash", "I count.", words(500, "thought"), command="seq -s ' ' 3000"),
        use("write", "I write.", path="new.txt", content=words(900, "line")),
        use("read", "I look.", path="dots.png"),
        Reply(text=words(900, "done")),
    )
    more = (use("bash", words(300, "more"), command="seq -s ' ' 900"), Reply(text="Good."))
    summary = words(800, "sum")
    one = Scenario(main=first, summary=summary, list_blocks=True)
    two = Scenario(main=more, summary=summary, list_blocks=True)
    prompts = ("Please look. " + words(500, "ask"), "Please go on. " + words(600, "then"))
    return [
        pi.run_pi(one, place.root, prompts[0], window=WINDOW, images=True),
        pi.run_pi(two, place.root, prompts[1], "-c", window=WINDOW, images=True),
    ]


@pytest.fixture(scope="module")
def billed(runs: list[ClientRun]) -> list[Billed]:
    return [call for run in runs for call in run.of("main")]


@pytest.fixture(scope="module")
def ledger(runs: list[ClientRun]) -> ThreadLedger:
    return read_main_ledger("pi", runs[-1].transcripts[-1])


def truth(call: Billed) -> Counter[str]:
    """The tokens of a prompt by category."""
    tokens = Counter[str]()
    for block in call.blocks:
        text = msgspec.json.encode(block.content).decode()
        memory = sum(map(len, MEMORY.findall(text))) // CHARACTERS_PER_TOKEN
        tokens["memory files"] += memory
        category = OF_KIND[kind_of(block.content)]
        if "sum0 " in text:
            category = "compaction summary"
        elif '"image"' in text:
            category = "images"
        tokens[category] += block.tokens - memory
    return tokens


def test_every_call_adds_up_to_the_bill(billed: list[Billed], ledger: ThreadLedger) -> None:
    assert_totals(billed, ledger)


def test_every_category_is_what_was_sent(billed: list[Billed], ledger: ThreadLedger) -> None:
    assert find_errors(billed, ledger, truth) == []
    assert sum(balance.unexplained for balance in ledger.balances) == 0
