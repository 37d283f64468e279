"""The ledger of the real Gemini CLI beside the blocks that the fake model was sent."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import msgspec
import pytest

from brimline.sessions.ledger.session_ledger import ThreadLedger
from brimline.testing.fake_model import Billed, Reply, Scenario, ToolCall
from brimline.testing.fake_model.block_kinds import BlockKind, kind_of
from brimline.testing.fake_model.prompt import CHARACTERS_PER_TOKEN

from . import gemini
from .ledger_truth import assert_totals, find_errors, noise_png, read_main_ledger, words
from .run import ClientRun, Place

pytestmark = pytest.mark.clients

HOOK = "The branch is protected. " + words(600, "hook")
OF_KIND: dict[BlockKind, str] = {
    "system": "system and tools",
    "tools": "system and tools",
    "user": "injected context",
    "reply": "agent's words",
    "tool call": "tool calls",
    "tool result": "tool results",
}
OF_MARK = {
    '"inlineData"': "images",
    "report0 ": "subagent results",
    "sum0 ": "compaction summary",
    "Please": "user words",
}
MEMORY = re.compile(r"--- Context from: .*?--- End of Context from: \S* ---", re.DOTALL)


def use(tool: str, text: str | None = None, reasoning: str | None = None, **given: str) -> Reply:
    return Reply(text=text, reasoning=reasoning, tools=(ToolCall(tool, dict(given)),))


def count(last: int) -> Reply:
    return use("run_shell_command", command=f"seq -s ' ' {last}", description="Count")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[ClientRun]:
    """A turn with every kind of content, one that resumes it, and one with a compression."""
    place = Place(tmp_path_factory.mktemp("ledger"))
    place.make()
    project = place.project
    (project / "GEMINI.md").write_text(words(800, "rule"))
    (project / "notes.txt").write_text(words(2_000, "note"))
    (project / "attached.txt").write_text(words(700, "attached"))
    (project / "dots.png").write_bytes(noise_png(40))
    added = {"hookEventName": "BeforeAgent", "additionalContext": HOOK}
    (place.root / "hook.json").write_bytes(msgspec.json.encode({"hookSpecificOutput": added}))
    hook = {"type": "command", "command": f"cat {place.root / 'hook.json'}"}
    settings: dict[str, Any] = {"hooks": {"BeforeAgent": [{"hooks": [hook]}]}}
    first = (
        use("read_file", words(400, "reply"), file_path=str(project / "notes.txt")),
        Reply(reasoning=words(500, "thought"), tools=count(3_000).tools),
        use("write_file", file_path=str(project / "new.txt"), content=words(1_200, "line")),
        use("read_file", file_path=str(project / "dots.png")),
        gemini.invoke("Look around."),
        Reply(text=words(900, "done")),
    )
    subagent = (gemini.complete(words(700, "report")),)
    scenarios = (
        Scenario(main=first, subagent=subagent, list_blocks=True),
        Scenario(main=(count(900), Reply(text=words(400, "good"))), list_blocks=True),
        Scenario(
            main=(count(800), Reply(text=words(300, "end"))),
            summary=words(800, "sum"),
            list_blocks=True,
        ),
    )
    prompts = (
        "Please look at @attached.txt. " + words(500, "ask"),
        "Please go on. " + words(600, "more"),
        "Please end. " + words(600, "again"),
    )
    resume = ("--resume", "latest")
    early = settings | {"model": {"compressionThreshold": 0.03}}
    return [
        gemini.run_gemini(scenarios[0], place.root, prompts[0], settings=settings),
        gemini.run_gemini(scenarios[1], place.root, prompts[1], *resume, settings=settings),
        gemini.run_gemini(scenarios[2], place.root, prompts[2], *resume, settings=early),
    ]


@pytest.fixture(scope="module")
def billed(runs: list[ClientRun]) -> list[Billed]:
    return [call for run in runs for call in run.of("main")]


@pytest.fixture(scope="module")
def ledger(runs: list[ClientRun]) -> ThreadLedger:
    chats = (path for path in runs[-1].transcripts if path.name.startswith("session-"))
    # A resume in another minute than the first run leaves a second file without calls.
    return read_main_ledger("gemini", min(chats))


def truth(call: Billed) -> Counter[str]:
    """The tokens of a prompt by category."""
    tokens = Counter[str]()
    for block in call.blocks:
        text = msgspec.json.encode(block.content).decode()
        memory = sum(map(len, MEMORY.findall(text))) // CHARACTERS_PER_TOKEN
        kind = kind_of(block.content)
        category = OF_KIND[kind]
        if kind in ("user", "tool result"):
            category = next((name for mark, name in OF_MARK.items() if mark in text), category)
        tokens["memory files"] += memory
        tokens[category] += block.tokens - memory
    return tokens


def test_every_call_adds_up_to_the_bill(
    runs: list[ClientRun], billed: list[Billed], ledger: ThreadLedger
) -> None:
    threads = [call.thread for call in runs[-1].billed if call.thread != "router"]
    assert threads == ["compaction", "compaction", "main", "main"]
    assert_totals(billed, ledger)


def test_every_category_is_what_was_sent(billed: list[Billed], ledger: ThreadLedger) -> None:
    """Also after a resume, with which Gemini CLI 0.61.0 sends every result twice."""
    assert find_errors(billed, ledger, truth) == []
    assert sum(balance.unexplained for balance in ledger.balances) == 0
