"""The ledger of the real Copilot CLI beside the blocks that the fake model was sent."""

from __future__ import annotations

import re
from collections import Counter

import msgspec
import pytest

from brimline.sessions.ledger.session_ledger import ThreadLedger
from brimline.testing.fake_model import Billed, Reply, Scenario, ToolCall
from brimline.testing.fake_model.block_kinds import BlockKind, kind_of
from brimline.testing.fake_model.prompt import CHARACTERS_PER_TOKEN

from . import copilot
from .ledger_truth import assert_totals, find_errors, noise_png, read_main_ledger, words
from .run import ClientRun, Place

pytestmark = pytest.mark.clients

SMALL_WINDOW = {"COPILOT_PROVIDER_MAX_PROMPT_TOKENS": "44000"}  # it compacts above 35,200
HOOK = "The branch is protected. " + words(600, "hook")
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
}
MEMORY = re.compile(r"<custom_instruction>.*?</custom_instruction>", re.DOTALL)
ADDED = re.compile(r"<(system_reminder|current_datetime)>.*?</\1>", re.DOTALL)
SUMMARY = re.compile(r"Here is a summary of the prior context:.*", re.DOTALL)


def use(tool: str, text: str | None = None, reasoning: str | None = None, **given: str) -> Reply:
    return Reply(text=text, reasoning=reasoning, tools=(ToolCall(tool, dict(given)),))


def count(last: int, words: str | None = None) -> Reply:
    return use("bash", words, command=f"seq -s ' ' {last}", description="Count")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[ClientRun]:
    """A turn with every kind of content, and one that resumes it and compacts."""
    place = Place(tmp_path_factory.mktemp("ledger"))
    place.make()
    project, hooks = place.project, place.home / ".copilot/hooks"
    hooks.mkdir(parents=True)
    (project / "AGENTS.md").write_text(words(800, "rule"))
    (project / "notes.txt").write_text(words(2_000, "note"))
    (project / "dots.png").write_bytes(noise_png(40))
    (place.root / "hook.json").write_bytes(msgspec.json.encode({"additionalContext": HOOK}))
    hook = {"type": "command", "command": f"cat {place.root / 'hook.json'}"}
    added = {"version": 1, "hooks": {"UserPromptSubmit": [{"hooks": [hook]}]}}
    (hooks / "own.json").write_bytes(msgspec.json.encode(added))
    first = (
        use("view", words(400, "reply"), path=str(project / "notes.txt")),
        use("bash", None, words(500, "thought"), command="seq -s ' ' 3000", description="Count"),
        use("create", path=str(project / "new.txt"), file_text=words(1_200, "line")),
        use("view", path=str(project / "dots.png")),
        copilot.task("Look around."),
        Reply(text=words(900, "done")),
    )
    subagent = (Reply(text=words(700, "report")),)
    scenarios = (
        Scenario(main=first, subagent=subagent, list_blocks=True),
        Scenario(
            main=(count(3_000), count(700), count(500), Reply(text=words(400, "good"))),
            summary=words(800, "sum"),
            list_blocks=True,
        ),
    )
    prompts = "Please look. " + words(500, "ask"), "Please go on. " + words(600, "more")
    return [
        copilot.run_copilot(scenarios[0], place.root, prompts[0]),
        copilot.run_copilot(
            scenarios[1], place.root, prompts[1], "--continue", environment=SMALL_WINDOW
        ),
    ]


@pytest.fixture(scope="module")
def billed(runs: list[ClientRun]) -> list[Billed]:
    return [call for run in runs for call in run.of("main")]


@pytest.fixture(scope="module")
def ledger(runs: list[ClientRun]) -> ThreadLedger:
    return read_main_ledger("copilot", runs[-1].transcripts[-1])


def truth(call: Billed) -> Counter[str]:
    """The tokens of a prompt by category."""
    tokens = Counter[str]()
    for block in call.blocks:
        text = msgspec.json.encode(block.content).decode()
        kind = kind_of(block.content)
        parts = {"memory files": MEMORY, "injected context": ADDED, "compaction summary": SUMMARY}
        left = block.tokens
        for name, pattern in parts.items():
            found = sum(len(match[0]) for match in pattern.finditer(text)) // CHARACTERS_PER_TOKEN
            if kind in ("system", "user"):
                tokens[name] += found
                left -= found
        category = OF_KIND[kind]
        if kind in ("user", "tool result"):
            category = next((name for mark, name in OF_MARK.items() if mark in text), category)
        tokens[category] += left
    return tokens


def test_every_call_adds_up_to_the_bill(
    runs: list[ClientRun], billed: list[Billed], ledger: ThreadLedger
) -> None:
    assert "compaction" in {call.thread for call in runs[-1].billed}
    assert_totals(billed, ledger)


def test_every_category_is_what_was_sent(billed: list[Billed], ledger: ThreadLedger) -> None:
    """Also after a compaction in the background, which keeps what came in since it began."""
    assert find_errors(billed, ledger, truth) == []
    assert sum(balance.unexplained for balance in ledger.balances) == 0
