"""Measures one client: where it compacts, whether it records what was billed, what it keeps."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple, cast

import msgspec

from brimline.agents.transcripts.source import Places
from brimline.context.usage import Usage
from brimline.sessions.files import LoadedSession
from brimline.sessions.target import load_target
from brimline.testing.fake_model import Billed, Ramp, Reply, Scenario
from brimline.testing.fake_model.billed import Usage as BilledUsage

from . import claude, cline, codex, copilot, gemini, kimi, opencode, pi, qwen
from .run import SOURCES, ClientRun
from .scenes import CLINE_WORDS, DONE, SNAPSHOT

STEP = 4_000
CALLS_BEFORE, CALLS_AFTER = 4, 8
PROMPT = "Sort the violet basket."
OUTPUT = "kept-{}"  # of each command, which is written in two parts and so does not contain it


class Case(NamedTuple):
    """How a client is run, with which model or setting: one turn in a folder, and a shell tool."""

    client: str
    model: str
    run: Callable[[Scenario, Path], ClientRun]
    tool: Callable[[str], Reply]
    resume: Callable[[Scenario, Path], ClientRun] | None = None  # it compacts only in later prompts
    environment: Mapping[str, str] = {}  # of the client, which moves its limit
    counts_reply: bool = True  # when it compares a call with its limit


def _run_claude(environment: Mapping[str, str]) -> Callable[[Scenario, Path], ClientRun]:
    return lambda scenario, folder: claude.run_claude(
        scenario, folder, PROMPT, model="claude-sonnet-4-5", environment=environment
    )


def _run_codex(scenario: Scenario, folder: Path) -> ClientRun:
    return codex.run_codex(scenario, folder, PROMPT)


def _run_pi(scenario: Scenario, folder: Path) -> ClientRun:
    return pi.run_pi(scenario, folder, PROMPT)


def _long_bash(command: str) -> Reply:
    """Pi compacts only if the conversation is long enough."""
    return pi.bash(f"{command}; seq 1 200")


def _run_opencode(
    agent: str, run: Callable[..., ClientRun]
) -> Callable[[Scenario, Path], ClientRun]:
    """Run it with the window in the user's configuration, where Brimline finds it too."""

    def run_configured(scenario: Scenario, folder: Path) -> ClientRun:
        file = folder / f"home/.config/{agent}/{agent}.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        model = {opencode.MODEL: {"limit": {"context": 200_000, "output": 8_192}}}
        file.write_text(json.dumps({"provider": {"fake": {"models": model}}}))
        return run(scenario, folder, PROMPT, window=None)

    return run_configured


def _run_copilot(scenario: Scenario, folder: Path) -> ClientRun:
    return copilot.run_copilot(scenario, folder, PROMPT)


def _run_qwen(scenario: Scenario, folder: Path) -> ClientRun:
    return qwen.run_qwen(scenario, folder, PROMPT)


def _run_kimi(scenario: Scenario, folder: Path) -> ClientRun:
    return _with_transcripts(kimi.run_kimi(scenario, folder, PROMPT), "wire.jsonl")


def _run_cline(scenario: Scenario, folder: Path) -> ClientRun:
    return _with_transcripts(cline.run_cline(scenario, folder, PROMPT), "*.messages.json")


def _with_transcripts(run: ClientRun, pattern: str) -> ClientRun:
    """Keep those of a run's files that are transcripts."""
    return replace(run, transcripts=tuple(path for path in run.transcripts if path.match(pattern)))


def _cline_commands(command: str) -> Reply:
    """Cline compacts only if its replies are long."""
    return cline.run_commands(command, CLINE_WORDS)


def _run_gemini(*resume: str) -> Callable[[Scenario, Path], ClientRun]:
    return lambda scenario, folder: gemini.run_gemini(scenario, folder, PROMPT, *resume)


OPENCODE_SETTING = "window of 200,000, replies of 8,192"
COMPACT_WINDOW = {"CLAUDE_CODE_AUTO_COMPACT_WINDOW": "150000"}
CASES = (
    Case("claude", "claude-sonnet-4-5", _run_claude({}), claude.bash),
    Case(
        "claude",
        "claude-sonnet-4-5, auto-compact window of 150,000",
        _run_claude(COMPACT_WINDOW),
        claude.bash,
        environment=COMPACT_WINDOW,
    ),
    Case("codex", codex.MODEL, _run_codex, codex.shell),
    Case("gemini", "auto", _run_gemini(), gemini.shell, _run_gemini("--resume", "latest")),
    Case(
        "opencode",
        OPENCODE_SETTING,
        _run_opencode("opencode", opencode.run_opencode),
        opencode.bash,
    ),
    Case("kilo", OPENCODE_SETTING, _run_opencode("kilo", opencode.run_kilo), opencode.bash),
    Case("copilot", copilot.MODEL, _run_copilot, copilot.bash),
    Case("qwen", qwen.MODEL, _run_qwen, qwen.shell),
    Case("kimi", kimi.MODEL, _run_kimi, kimi.bash, environment=kimi.ENVIRONMENT),
    Case("cline", "gpt-4o", _run_cline, _cline_commands, counts_reply=False),
    Case("pi", "window of 200,000", _run_pi, _long_bash),
)


class Measurement(msgspec.Struct, frozen=True):
    """What one version of a client did: `limit` is what Brimline expects of it.

    It went on after `highest_without` tokens, and compacted after `compacted_after`. Of `calls`
    billed calls, `recorded` are in its transcript with the same tokens. `kept` names what the first
    prompt after the compaction contains besides the summary. `unread` counts records that Brimline
    does not know, `shape` has the names of all fields.
    """

    limit: int | None
    highest_without: int | None
    compacted_after: int | None
    calls: int
    recorded: int
    kept: tuple[str, ...]
    unread: int
    shape: frozenset[str]


def measure(case: Case, folder: Path) -> Measurement:
    """Run a client up to its expected limit and beyond."""
    compared = _held if case.counts_reply else _sent
    probe = case.run(Scenario(main=(DONE,)), folder / "probe")
    limit = _limit(probe, case.environment)
    base = compared(probe.of("main")[-1].usage)
    tools = (case.tool(f"printf kept%s -{number}") for number in range(CALLS_BEFORE + CALLS_AFTER))
    ramp = Ramp(start=max(0, (limit or 0) - base - CALLS_BEFORE * STEP), step=STEP)
    scenario = Scenario(main=(*tools, DONE), ramp=ramp, list_blocks=True)
    if case.resume is None:
        return _describe(case.run(scenario, folder / "run"), limit, compared)
    scenario = msgspec.structs.replace(scenario, summary=SNAPSHOT)
    return _describe(case.resume(scenario, folder / "probe"), limit, compared)


def _describe(
    run: ClientRun, limit: int | None, compared: Callable[[BilledUsage], int]
) -> Measurement:
    calls = run.of("main", "compaction")
    at = next((n for n, call in enumerate(calls) if call.thread == "compaction"), len(calls))
    before = [compared(call.usage) for call in calls[:at]]
    after = next((call for call in calls[at:] if call.thread == "main"), None)
    billed = [call.usage for call in run.of("main")]
    loaded = _load(run)
    main = loaded.session.threads["main"]
    recorded = [call.usage for call in main.calls_from(0)]
    equal = sum(_totals(usage) in map(_totals, recorded) for usage in billed)
    has_compacted = at < len(calls)
    return Measurement(
        limit=limit,
        highest_without=max(before[:-1] if has_compacted else before, default=None),
        compacted_after=before[-1] if has_compacted else None,
        calls=len(billed),
        recorded=equal,
        kept=tuple(_kept(after, at - 1)) if after else (),
        unread=loaded.tally.unknown + loaded.tally.malformed,
        shape=frozenset(_shape(run)),
    )


def _held(usage: BilledUsage) -> int:
    return _sent(usage) + usage.output


def _sent(usage: Usage | BilledUsage) -> int:
    return usage.input + usage.cache_read + usage.cache_write


def _totals(usage: Usage | BilledUsage) -> tuple[int, int]:
    return _sent(usage), usage.output


def _load(run: ClientRun) -> LoadedSession:
    return load_target(str(run.transcripts[-1]), Places(run.home, {}), BytesIO())


def _limit(run: ClientRun, environment: Mapping[str, str]) -> int | None:
    words = [sys.executable, "-m", "brimline", "inspect", run.transcripts[-1], "--json"]
    env = {"HOME": str(run.home), "PYTHONPATH": str(SOURCES), **environment}
    shown = json.loads(subprocess.run(words, env=env, capture_output=True, check=True).stdout)
    limit = shown["threads"][0]["limit"]
    return limit and limit["tokens"]


def _kept(after: Billed, last: int) -> Iterator[str]:
    """Yield what a prompt still has of the conversation, whose last command has this number."""
    prompt = json.dumps([block.content for block in after.blocks])
    parts = {
        "the user's prompt": PROMPT,
        "the first output": OUTPUT.format(0),
        "the last output": OUTPUT.format(last),
    }
    yield from (name for name, text in parts.items() if text in prompt)


def _shape(run: ClientRun) -> Iterator[str]:
    """Yield the fields of all records of the stream and of transcripts that are lines of JSON."""
    files = [run.stream, *(path for path in run.transcripts if path.suffix == ".jsonl")]
    for line in (line for path in files for line in path.read_bytes().splitlines()):
        if line.startswith(b"{"):
            record = msgspec.json.decode(line, type=dict[str, Any])
            yield from _fields(record, str(record.get("type", "")))


def _fields(value: Any, name: str, depth: int = 3) -> Iterator[str]:
    yield name
    if isinstance(value, dict) and depth:
        fields = cast("dict[str, Any]", value)
        kind = f"({fields['type']})" if isinstance(fields.get("type"), str) else ""
        for key, inner in fields.items():
            yield from _fields(inner, f"{name}{kind}.{key}", depth - 1)
