"""The ledger of the real Codex beside the blocks that the fake model was sent."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest

from brimline.sessions.ledger.part_tokens import split
from brimline.sessions.ledger.session_ledger import ThreadLedger
from brimline.testing.fake_model import Billed, Reply, Scenario, ToolCall

from . import codex
from .ledger_truth import assert_totals, find_errors, noise_png, read_main_ledger, words
from .run import ClientRun, Place

pytestmark = pytest.mark.clients

LIMIT = "model_auto_compact_token_limit=22000"
HOOK = "The branch is protected. " + words(600, "hook")
OF_START = {
    "# AGENTS.md instructions": "memory files",
    "<skills_instructions>": "system and tools",
    "<tools>": "system and tools",
    "You are Codex": "system and tools",
    "You are performing a CONTEXT CHECKPOINT": "system and tools",
    "<subagent_notification>": "subagent results",
    "Another language model": "compaction summary",
    "Please": "user words",
}
OF_TYPE = {
    "message": "agent's words",
    "reasoning": "reasoning",
    "function_call": "tool calls",
    "function_call_output": "tool results",
}
OF_MARK = {'"input_image"': "images", "agent_id": "subagent results", "report0": "subagent results"}


def use(command: str, text: str | None = None, reasoning: str | None = None) -> Reply:
    return Reply(text=text, reasoning=reasoning, tools=codex.shell(command).tools)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[ClientRun]:
    """A turn with every kind of content, and one that begins with a compaction."""
    place = Place(tmp_path_factory.mktemp("ledger"))
    place.make()
    (place.project / "AGENTS.md").write_text(words(800, "rule"))
    (place.project / "notes.txt").write_text(words(2_000, "note"))
    (place.project / "dots.png").write_bytes(noise_png(40))
    added = {"hookEventName": "UserPromptSubmit", "additionalContext": HOOK}
    (place.root / "hook.json").write_bytes(msgspec.json.encode({"hookSpecificOutput": added}))
    hook = {"hooks": [{"type": "command", "command": f"cat {place.root / 'hook.json'}"}]}
    (place.home / ".codex").mkdir()
    (place.home / ".codex" / "hooks.json").write_bytes(
        msgspec.json.encode({"hooks": {"UserPromptSubmit": [hook]}})
    )
    picture = ToolCall("view_image", {"path": str(place.project / "dots.png")})
    first = (
        use("cat notes.txt", words(400, "reply")),
        use("seq -s ' ' 3000", reasoning=words(500, "thought")),
        use(f"echo {words(2_000, 'line')} > new.txt"),
        Reply(tools=(picture,)),
        codex.spawn("Look around."),
        codex.wait(),
        Reply(text=words(900, "done")),
    )
    report = Scenario(main=first, subagent=(Reply(text=words(700, "report")),), list_blocks=True)
    more = (use("seq -s ' ' 900"), Reply(text=words(400, "good")))
    second = Scenario(main=more, summary=words(800, "sum"), list_blocks=True)
    prompts = ("Please look. " + words(500, "ask"), "Please go on. " + words(600, "more"))
    return [
        codex.run_codex(report, place.root, prompts[0], hooks=True),
        codex.run_codex(second, place.root, prompts[1], LIMIT, resume=True, hooks=True),
    ]


@pytest.fixture(scope="module")
def billed(runs: list[ClientRun]) -> list[Billed]:
    return [call for run in runs for call in run.of("main", "compaction")]


@pytest.fixture(scope="module")
def ledger(runs: list[ClientRun]) -> ThreadLedger:
    return read_main_ledger("codex", first_transcript(runs[-1]))


def first_transcript(run: ClientRun) -> Path:
    """The session's own: that of its subagent, which may be written last, began later."""
    return min(run.transcripts, key=lambda path: path.name)


def truth(call: Billed) -> Counter[str]:
    """The tokens of a prompt by category; those of a message by the lengths of its blocks."""
    tokens = Counter[str]()
    for block in call.blocks:
        item: dict[str, Any] = block.content
        if item["type"] == "message" and item["role"] != "assistant":
            texts: list[str] = [part["text"] for part in item["content"]]
            for text, share in zip(texts, split(block.tokens, [*map(len, texts)]), strict=True):
                starts = (name for start, name in OF_START.items() if text.startswith(start))
                tokens[next(starts, "injected context")] += share
            continue
        category = OF_TYPE.get(item["type"], "system and tools")
        if category == "tool results":
            output = msgspec.json.encode(item["output"]).decode()
            marked = (name for mark, name in OF_MARK.items() if mark in output)
            category = next(marked, category)
        tokens[category] += block.tokens
    return tokens


def test_every_call_adds_up_to_the_bill(billed: list[Billed], ledger: ThreadLedger) -> None:
    assert [call.thread for call in billed] == 7 * ["main"] + ["compaction"] + 2 * ["main"]
    assert_totals(billed, ledger)


def test_every_category_is_what_was_sent(billed: list[Billed], ledger: ThreadLedger) -> None:
    """Also for the call that writes the summary: Codex 0.166 sends no tools with it."""
    assert find_errors(billed, ledger, truth) == []
    assert sum(balance.unexplained for balance in ledger.balances) == 0


def test_fork_has_the_categories_of_what_it_continues(runs: list[ClientRun]) -> None:
    """Codex 0.166 does not copy the history into the fork's file."""
    folder, thread = runs[0].project.parent, first_transcript(runs[0]).stem[-36:]
    scenario = Scenario(main=(use("seq -s ' ' 900"), Reply(text="Good.")), list_blocks=True)
    run = codex.run_codex(scenario, folder, "Please fork. " + words(600, "fork"), fork=thread)
    ledger = read_main_ledger("codex", max(run.transcripts, key=lambda path: path.name))
    assert_totals(run.of("main"), ledger)
    assert find_errors(run.of("main"), ledger, truth) == []
