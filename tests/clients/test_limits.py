"""Limits that a real client ignores, or cannot act on yet: what `inspect` says of its files."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from brimline.context.tracker.reading import DELAYED
from brimline.testing.fake_model import Ramp, Scenario
from preloaded import run_brimline

from . import claude, cline, copilot, gemini, goose, kimi, qwen
from .run import ClientRun
from .scenes import CLINE_WORDS, DONE, SNAPSHOT, steps

pytestmark = [pytest.mark.clients, pytest.mark.slow]

HALF = {"CLAUDE_AUTOCOMPACT_PCT_OVERRIDE": "50"}


def inspect(run: ClientRun, **env: str) -> Any:
    """The main thread of the newest transcript, as `inspect` shows it to the same user."""
    words = ("inspect", str(run.transcripts[-1]), "--json")
    done = run_brimline(words, env={"HOME": str(run.home), **env}, timeout=60)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["threads"][0]


@pytest.mark.parametrize(("calls", "origin"), [(1, "configured"), (3, "known")])
def test_override_that_claude_code_ignores_is_disproved(
    calls: int, origin: str, tmp_path: Path
) -> None:
    """Of Sonnet 4.5 the client ignores the percentage: it goes on beyond half of the window."""
    scene = steps(claude.bash, calls, Ramp(start=60_000, step=20_000))
    run = claude.run_claude(scene, tmp_path, "Go.", model="claude-sonnet-4-5", environment=HALF)
    assert [each.thread for each in run.of("main", "compaction")] == ["main"] * (calls + 1)
    thread = inspect(run, **HALF)
    assert (thread["limit"]["origin"], thread["limit"]["tokens"] > 160_000) == (
        origin,
        origin == "known",
    )


def test_first_turn_of_gemini_cli_disproves_no_limit(tmp_path: Path) -> None:
    """It cuts its history only before a prompt other than the first, and says so until then."""
    beyond = steps(gemini.shell, 3, Ramp(start=530_000, step=5_000))
    first = gemini.run_gemini(beyond, tmp_path, "Go.")
    assert not first.of("compaction")
    limit = inspect(first)["limit"]
    assert (limit["origin"], limit["tokens"], limit["warning"]) == ("known", 524_288, DELAYED)
    ramp = Ramp(start=550_000, step=5_000, after_compaction=20_000)
    more = msgspec.structs.replace(steps(gemini.shell, 1, ramp), summary=SNAPSHOT)
    second = gemini.run_gemini(more, tmp_path, "Go on.", "--resume", "latest")
    assert second.of("compaction")
    limit = inspect(second)["limit"]
    assert (limit["origin"], limit["tokens"]) == ("known", 524_288)


@pytest.mark.parametrize(
    ("window", "share", "tokens"),
    [
        pytest.param(131_072, None, 98_072, marks=pytest.mark.long),
        (131_072, 0.5, 65_536),
        pytest.param(262_144, None, 222_822, marks=pytest.mark.long),
    ],
)
def test_qwen_code_compresses_at_the_smaller_of_a_share_and_a_reserve(
    window: int, share: float | None, tokens: int, tmp_path: Path
) -> None:
    """Before the first call that would begin with the limit or more, and not before."""
    settings = {"model": {"generationConfig": {"contextWindowSize": window}}}
    settings |= {} if share is None else {"context": {"autoCompactThreshold": share}}
    begin = tokens - 20_000 - 1_100  # its own prompt has about 20,000 tokens
    ramp = Ramp(start=begin, step=300, after_compaction=2_000)
    scene = msgspec.structs.replace(steps(qwen.shell, 9, ramp), summary=SNAPSHOT)
    run = qwen.run_qwen(scene, tmp_path, "Go.", settings=settings)
    order = [each.thread for each in run.billed]
    place = order.index("compaction")
    held = [each.usage.input + each.usage.cache_read + each.usage.output for each in run.billed]
    assert place >= 2
    # A tool's result is about 40 tokens by the client's estimate.
    assert held[place - 2] < tokens - 40
    assert tokens - 60 <= held[place - 1] < tokens + 500
    chat = next(path for path in run.transcripts if path.suffix == ".jsonl")
    words = ("inspect", str(chat), "--json")
    done = run_brimline(words, env={"HOME": str(run.home)}, timeout=60)
    limit = json.loads(done.stdout)["threads"][0]["limit"]
    assert (limit["tokens"], limit["warning"]) == (tokens, None)


@pytest.mark.parametrize(("share", "compacts"), [(0.78, False), (0.82, True)])
def test_copilot_compacts_at_80_percent_of_its_window(
    share: float, compacts: bool, tmp_path: Path
) -> None:
    """Also of a window that the user has set."""
    window = {"COPILOT_PROVIDER_MAX_PROMPT_TOKENS": "100000"}
    added = round(share * 100_000) - 12_100  # its own prompt
    scene = steps(copilot.bash, 4, Ramp(start=added, step=10, after_compaction=1_000))
    run = copilot.run_copilot(scene, tmp_path, "Go.", environment=window)
    assert bool(run.of("compaction")) == compacts
    shown = inspect(run)
    assert (shown["window"]["tokens"], shown["window"]["origin"]) == (100_000, "reported")
    assert (shown["limit"]["tokens"], shown["limit"]["origin"]) == (80_000, "known")


def test_kimi_code_compacts_at_the_smaller_of_a_share_and_a_reserve(tmp_path: Path) -> None:
    """50,000 below a window of 131,072; its own prompt has about 22,000 tokens."""
    tokens = kimi.WINDOW - 50_000
    ramp = Ramp(start=tokens - 23_500, step=400, after_compaction=2_000)
    run = kimi.run_kimi(steps(kimi.bash, 9, ramp), tmp_path, "Go.")
    order = [each.thread for each in run.billed]
    place = order.index("compaction")
    held = [each.usage.input + each.usage.cache_read + each.usage.output for each in run.billed]
    assert place >= 2
    assert held[place - 2] < tokens
    assert tokens - 60 <= held[place - 1] < tokens + 500
    wire = next(path for path in run.transcripts if path.name == "wire.jsonl")
    env = {"HOME": str(run.home), **kimi.ENVIRONMENT}
    done = run_brimline(("inspect", str(wire), "--json"), env=env, timeout=60)
    limit = json.loads(done.stdout)["threads"][0]["limit"]
    assert (limit["tokens"], limit["warning"]) == (tokens, None)


@pytest.mark.long
def test_cline_compacts_when_a_call_has_sent_90_percent(tmp_path: Path) -> None:
    """115,200 of 128,000; the reply of 10,000 tokens does not count."""
    ramp = Ramp(start=85_600, step=2_000)
    scene = steps(lambda command: cline.run_commands(command, CLINE_WORDS), 4, ramp)
    run = cline.run_cline(scene, tmp_path, "Go.")
    assert [each.thread for each in run.billed] == [*["main"] * 4, "compaction", "main"]
    sent = [each.usage.input + each.usage.cache_read for each in run.billed]
    assert 114_900 < sent[2] < 115_200 < sent[3] < 128_000
    threads = tuple(run.home.rglob("*.messages.json"))
    limit = inspect(replace(run, transcripts=threads))["limit"]
    assert (limit["tokens"], limit["origin"]) == (115_200, "known")


@pytest.mark.long
def test_goose_compacts_before_a_prompt_at_a_share_of_its_window(tmp_path: Path) -> None:
    """At 80 % of what the last call held; the prompt itself is not counted."""
    limit = round(0.8 * goose.WINDOW)

    def run(folder: str, start: int, *arguments: str) -> ClientRun:
        scenario = Scenario(main=(DONE,), ramp=Ramp(start=start, after_compaction=1_000))
        return goose.run_goose(scenario, tmp_path / folder, "Go.", *arguments)

    own = run("0", 1_000).billed[0].usage
    own_tokens = own.input + own.cache_write + own.output - 1_000
    for folder, missing, threads in (("1", 50, ["main"]), ("2", -50, ["compaction", "main"])):
        start = limit - own_tokens - missing
        run(folder, start)
        assert [call.thread for call in run(folder, start, "--resume").billed] == threads
