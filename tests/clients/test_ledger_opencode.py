"""The ledger of the real opencode beside the blocks that the fake model was sent."""

from __future__ import annotations

import re
from collections import Counter

import msgspec
import pytest

from brimline.agents.transcripts.source import Places, Transcript
from brimline.sessions.ledger.session_ledger import ThreadLedger, read_ledger
from brimline.testing.fake_model import Billed, Reply, Scenario, ToolCall
from brimline.testing.fake_model.block_kinds import BlockKind, kind_of
from brimline.testing.fake_model.prompt import CHARACTERS_PER_TOKEN

from . import opencode
from .ledger_truth import assert_totals, find_errors, noise_png, words
from .run import ClientRun, Place

pytestmark = pytest.mark.clients

WINDOW = 36_500  # opencode compacts 8,192 below it, the most that a reply may have
OF_KIND: dict[BlockKind, str] = {
    "system": "system and tools",
    "tools": "system and tools",
    "user": "user words",
    "reply": "agent's words",
    "reasoning": "reasoning",
    "tool call": "tool calls",
    "tool result": "tool results",
}
OF_MARK = {
    '"image"': "images",
    "report0 ": "subagent results",
    "sum0 ": "compaction summary",
    "attached0 ": "injected context",
    "Called the Read tool": "injected context",
    "Continue if you have next steps": "injected context",
}
MEMORY = re.compile(r"Instructions from: .*?rule799", re.DOTALL)


def use(tool: str, text: str | None = None, reasoning: str | None = None, **given: str) -> Reply:
    return Reply(text=text, reasoning=reasoning, tools=(ToolCall(tool, dict(given)),))


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[ClientRun]:
    """A turn with every kind of content, and one with a compaction in it."""
    place = Place(tmp_path_factory.mktemp("ledger"))
    place.make()
    opencode.write_plugin_lock(place)
    project = place.project
    (project / "AGENTS.md").write_text(words(800, "rule"))
    (project / "notes.txt").write_text(words(2_000, "note"))
    (project / "attached.txt").write_text(words(700, "attached"))
    (project / "dots.png").write_bytes(noise_png(40))
    first = (
        use("read", words(400, "reply"), filePath=str(project / "notes.txt")),
        use("bash", None, words(500, "thought"), command="seq -s ' ' 3000", description="Count"),
        use("write", filePath=str(project / "new.txt"), content=words(1_200, "line")),
        use("read", filePath=str(project / "dots.png")),
        opencode.task("Look around."),
        Reply(text=words(900, "done")),
    )
    more = (
        use("bash", command="seq -s ' ' 900", description="Count"),
        use("bash", command="seq -s ' ' 2000", description="Count"),
        use("bash", command="seq -s ' ' 800", description="Count"),
        use("bash", command="seq -s ' ' 700", description="Count"),
        Reply(text=words(400, "good")),
    )
    subagent = (Reply(text=words(700, "report")),)
    one = Scenario(main=first, subagent=subagent, list_blocks=True)
    two = Scenario(main=more, summary=words(800, "sum"), list_blocks=True)
    prompts = ("Please look. " + words(500, "ask"), "Please go on. " + words(600, "more"))
    attached = ("--file", str(project / "attached.txt"), "--")
    return [
        opencode.run_opencode(one, place.root, prompts[0], *attached),
        opencode.run_opencode(two, place.root, prompts[1], "-c", window=WINDOW),
    ]


@pytest.fixture(scope="module")
def billed(runs: list[ClientRun]) -> list[Billed]:
    return [call for run in runs for call in run.of("main")]


@pytest.fixture(scope="module")
def ledger(runs: list[ClientRun]) -> ThreadLedger:
    run = runs[-1]
    (database,) = run.transcripts
    session = run.billed[-1].session_id
    transcript = Transcript("opencode", str(database), 0, 0, session)
    (thread,) = read_ledger(transcript, Places(run.home, {})).threads
    return thread


def truth(call: Billed) -> Counter[str]:
    """The tokens of a prompt by category."""
    tokens = Counter[str]()
    for block in call.blocks:
        text = msgspec.json.encode(block.content).decode()
        memory = sum(map(len, MEMORY.findall(text))) // CHARACTERS_PER_TOKEN
        marked = (name for mark, name in OF_MARK.items() if mark in text)
        category = next(marked, OF_KIND.get(kind_of(block.content), ""))
        tokens["memory files"] += memory
        tokens[category] += block.tokens - memory
    return tokens


def test_every_call_adds_up_to_the_bill(
    runs: list[ClientRun], billed: list[Billed], ledger: ThreadLedger
) -> None:
    threads = [call.thread for call in runs[-1].billed if call.thread != "title"]
    assert threads == ["main", "main", "main", "compaction", "main", "main"]
    assert_totals(billed, ledger)


def test_every_category_is_what_was_sent(billed: list[Billed], ledger: ThreadLedger) -> None:
    assert find_errors(billed, ledger, truth) == []
    assert sum(balance.unexplained for balance in ledger.balances) == 0
