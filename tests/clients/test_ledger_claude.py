"""The ledger of the real Claude Code beside the blocks that the fake model was sent."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import msgspec
import pytest

from brimline.agents.transcripts.source import Places
from brimline.sessions.ledger.context_parts import CATEGORIES
from brimline.sessions.ledger.explain import explain
from brimline.sessions.ledger.session_ledger import SessionLedger, ThreadLedger, read_ledgers
from brimline.sessions.target import files_of_path
from brimline.testing.fake_model import Billed, Reply, Scenario, ToolCall
from brimline.testing.fake_model.billed import BilledBlock
from brimline.testing.fake_model.block_kinds import BlockKind, kind_of
from brimline.testing.fake_model.prompt import CHARACTERS_PER_TOKEN

from . import claude
from .ledger_truth import noise_png, words
from .run import ClientRun, Place
from .scenes import SESSION

pytestmark = pytest.mark.clients

MAX_ERROR_SHARE = 0.05
AROUND_TOKENS = 200  # what the client adds without a record: tags, ids, a line about commits
OF_KIND: dict[BlockKind, str] = {
    "system": "system and tools",
    "tools": "system and tools",
    "reply": "agent's words",
    "reasoning": "reasoning",
    "tool call": "tool calls",
    "image": "images",
}
OF_MARK = {
    "Codebase and user instructions": "memory files",
    "<system-reminder>\\nContents of ": "memory files",
    "This session is being continued": "compaction summary",
    "report0 ": "subagent results",
    '"image"': "images",
    " ask0 ": "user words",
    " more0 ": "user words",
    " then0 ": "user words",
}


HOOK = "The branch is protected. " + words(600, "hook")


def use(tool: str, text: str, reasoning: str | None = None, **arguments: str) -> Reply:
    return Reply(text=text, reasoning=reasoning, tools=(ToolCall(tool, dict(arguments)),))


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[ClientRun]:
    """Two turns with every kind of content, a compaction, and a turn after it."""
    folder = tmp_path_factory.mktemp("ledger")
    project = Place(folder).project
    (project / ".claude").mkdir(parents=True)
    (project / "CLAUDE.md").write_text(words(1_500, "rule"))
    (project / "notes.txt").write_text(words(2_000, "note"))
    (project / "dots.png").write_bytes(noise_png(40))
    (project / "hook.txt").write_text(HOOK)
    hook = {"hooks": [{"type": "command", "command": f"cat {project / 'hook.txt'}"}]}
    settings = {"hooks": {"UserPromptSubmit": [hook]}}
    (project / ".claude" / "settings.json").write_bytes(msgspec.json.encode(settings))
    notes, dots = str(project / "notes.txt"), str(project / "dots.png")
    first = (
        use("Read", words(400, "reply"), file_path=notes),
        use(
            "Bash",
            "I count.",
            words(500, "thought"),
            command="seq -s ' ' 3000",
            description="Count",
        ),
        use("Write", "I write.", file_path=str(project / "new.txt"), content=words(900, "line")),
        use("Read", "I look.", file_path=dots),
        use("Read", "Again.", file_path=notes),
        claude.agent("Look around."),
        Reply(text=words(300, "done")),
    )
    report = Scenario(main=first, subagent=(Reply(text=words(700, "report")),), list_blocks=True)
    second = Scenario(main=(use("Bash", "More.", command="seq -s ' ' 900"), Reply(text="Good.")))
    second = msgspec.structs.replace(second, list_blocks=True)
    third = Scenario(main=(Reply(text="Fine."),), summary=words(800, "sum"), list_blocks=True)
    synchronous = {"CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1"}

    def turn(scenario: Scenario, prompt: str, *arguments: str) -> ClientRun:
        tools = ("--allowedTools", "Bash,Read,Write,Agent", *arguments)
        return claude.run_claude(scenario, folder, prompt, *tools, environment=synchronous)

    resume = ("--resume", SESSION)
    return [
        turn(report, "Please look. " + words(500, "ask"), "--session-id", SESSION),
        turn(second, "Please go on. " + words(600, "more"), *resume),
        turn(second, "/context", *resume),
        turn(third, "/compact", *resume),
        turn(third, "And now? " + words(300, "then"), *resume),
    ]


@pytest.fixture(scope="module")
def ledger(runs: list[ClientRun]) -> ThreadLedger:
    return main_ledger(runs[-1])


def main_ledger(run: ClientRun) -> ThreadLedger:
    return next(one for each in ledgers_of(run) for one in each.threads if one.thread == "main")


def ledgers_of(run: ClientRun) -> list[SessionLedger]:
    (path,) = [path for path in run.transcripts if "subagents" not in path.parts]
    places = Places(home=run.home, env={})
    return read_ledgers(files_of_path(str(path), places), places)


def truth(call: Billed) -> Counter[str]:
    """The tokens of a prompt by category: what the fake model was sent."""
    tokens = Counter[str]()
    for block in call.blocks:
        text = msgspec.json.encode(block.content)
        hook = text.count(HOOK.encode()) * (len(HOOK) // CHARACTERS_PER_TOKEN)
        tokens["injected context"] += hook
        tokens[_category(block, text)] += block.tokens - hook
    return tokens


def _category(block: BilledBlock, text: bytes) -> str:
    kind = kind_of(block.content)
    if kind in OF_KIND:
        return OF_KIND[kind]
    found = next((name for mark, name in OF_MARK.items() if mark.encode() in text), None)
    return found or ("tool results" if kind == "tool result" else "injected context")


def test_every_call_adds_up_to_the_bill(runs: list[ClientRun], ledger: ThreadLedger) -> None:
    billed = [call for run in runs for call in run.billed if call.thread == "main"]
    sent = [each.usage.input + each.usage.cache_read + each.usage.cache_write for each in billed]
    assert [balance.sent for balance in ledger.balances] == sent
    for balance in ledger.balances:
        assert sum(balance.categories) + balance.unexplained == balance.sent


def test_every_category_is_what_was_sent(runs: list[ClientRun], ledger: ThreadLedger) -> None:
    billed = [call for run in runs for call in run.billed if call.thread == "main"]
    for number, (call, balance) in enumerate(zip(billed, ledger.balances, strict=True), 1):
        ours = dict(zip(CATEGORIES, balance.categories, strict=True))
        sent = truth(call)
        for name in CATEGORIES:
            allowed = max(MAX_ERROR_SHARE * sent[name], AROUND_TOKENS)
            assert abs(ours[name] - sent[name]) <= allowed, (number, name, ours, sent)
        assert balance.unexplained <= MAX_ERROR_SHARE * balance.sent


class _Row(msgspec.Struct):
    name: str
    tokens: int
    kind: str = ""


class _ContextUsage(msgspec.Struct):
    total_tokens: int
    categories: list[_Row]


class _Line(msgspec.Struct):
    context_usage: _ContextUsage | None = None


def test_total_and_memory_are_those_of_the_client_itself(
    runs: list[ClientRun], ledger: ThreadLedger
) -> None:
    """The client's own `/context` shows fewer tools than it sends, and the rest as messages.

    Version 2.1.325 shows 5,318 of 7,425 tokens of tools: the test above has what was sent.
    """
    lines = runs[2].stream.read_bytes().splitlines()
    shown = [msgspec.json.decode(line, type=_Line).context_usage for line in lines]
    (usage,) = [each for each in shown if each is not None]
    place = sum(call.thread == "main" for run in runs[:2] for call in run.billed) - 1
    last = ledger.balances[place]
    assert usage.total_tokens == last.sent
    theirs = {row.name: row.tokens for row in usage.categories}
    ours = dict(zip(CATEGORIES, last.categories, strict=True))
    assert abs(ours["memory files"] - theirs["Memory files"]) <= 0.1 * theirs["Memory files"]


def rules(word: str, count: int) -> str:
    return "".join(f"- Never {word} the part {number} of a file.\n" for number in range(count))


def comment(word: str) -> str:
    """A comment, which the client does not send."""
    return f"<!--\n{rules(word, 60)}-->\n\n"


CODE_RULES = '---\npaths: "**/*.py"\n---\n' + rules("run", 14)


def memory_files(place: Place) -> dict[Path, str]:
    """Memory files of every kind, each with something that is not sent, or at another time."""
    project, user = place.project, place.home / ".claude"
    return {
        user / "CLAUDE.md": comment("omit") + rules("hide", 12),
        project / "CLAUDE.md": f"{comment('drop')}See @docs/style.md first.\n\n{rules('move', 20)}",
        project / "CLAUDE.local.md": rules("rename", 8),
        project / "docs" / "style.md": rules("format", 16),
        project / ".claude" / "rules" / "always.md": rules("delete", 10),
        project / ".claude" / "rules" / "code.md": '---\npaths: "**/*.py"\n---\n'
        + rules("run", 14),
        project / "part" / "CLAUDE.md": comment("skip") + rules("copy", 18),
        project / "part" / "main.py": "print(1)\n",
    }


def test_memory_files_of_a_fresh_project_are_what_was_sent(tmp_path: Path) -> None:
    """Before anything is learned from a growth: imports, comments, rules and nested files too."""
    place = Place(tmp_path)
    place.make()
    for file, text in memory_files(place).items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    look = use("Read", "I look.", file_path=str(place.project / "part" / "main.py"))
    scenario = Scenario(main=(look, Reply(text="Good.")), list_blocks=True)
    prompt = "Please look. " + words(100, "ask")
    run = claude.run_claude(scenario, tmp_path, prompt, "--session-id", SESSION)
    first, second = main_ledger(run).balances
    for call, balance in zip(run.billed, (first, second), strict=True):
        sent, ours = truth(call), dict(zip(CATEGORIES, balance.categories, strict=True))
        assert abs(ours["memory files"] - sent["memory files"]) <= 0.05 * sent["memory files"]
        for name in CATEGORIES:
            assert abs(ours[name] - sent[name]) <= max(MAX_ERROR_SHARE * sent[name], 150)


@pytest.mark.parametrize(
    ("mode", "verdict"), [("padded-countdown", "in fact "), ("countdown", "that is right")]
)
def test_countdown_in_the_system_prompt_alone_is_named_with_what_is_left(
    tmp_path: Path, mode: str, verdict: str
) -> None:
    """Without a reminder after the prompt, and without a tool, only the system prompt has one."""
    variables = {
        "CLAUDE_CODE_TOTAL_TOKENS_REMINDER": mode,
        "CLAUDE_CODE_TOTAL_TOKENS_REMINDER_AFTER_USER_TURN": "0",
    }
    run = claude.run_claude(
        Scenario(main=(Reply(text="Fine."),)), tmp_path, "Hello.", environment=variables
    )
    requests = run.requests.read_text()
    (sent,) = {int(left) for left in re.findall(r"<total_tokens>(\d+) tokens", requests)}
    assert '"type":"total_tokens_reminder"' not in run.transcripts[0].read_text()
    (waste,) = [
        waste
        for thread in explain(ledgers_of(run)).threads
        for waste in thread.waste
        if waste.kind == "client's countdown"
    ]
    assert waste.what == f"{sent:,} tokens left"
    assert verdict in waste.advice
