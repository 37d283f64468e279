"""What Brimline reads is what was billed, call by call, for every client and scene."""

from __future__ import annotations

from itertools import groupby

import pytest

from brimline.agents import source
from brimline.events import MAIN, Call
from brimline.tracker import Session, fold

from .conftest import Recorder
from .opencode import EXPORT
from .reading import billed_usage, main, streams, threads, tokens, total, transcripts
from .run import ClientRun
from .scenes import CODEX, GEMINI, OPENCODE, PI, SCENES, Recording

pytestmark = pytest.mark.clients

NAMES = [(client, scene) for client, scenes in SCENES.items() for scene in scenes]
OWN_IDS = ("gemini", "opencode")
"""Clients that give their messages ids of their own; the others keep the provider's."""
COMPACTION_IS_A_MAIN_CALL = ("codex",)
"""Clients whose transcript has the summary's call among the others."""


def _of_main(made: Recording) -> list[str]:
    return ["main", "compaction"] if made.client in COMPACTION_IS_A_MAIN_CALL else ["main"]


def _calls(made: Recording, *, of_main: bool) -> list[Call]:
    """The calls of the transcripts, each once, also where a fork copied it."""
    found: dict[str, Call] = {}
    for thread in threads(transcripts(made)):
        if (thread.name == MAIN) == of_main and thread.name != "compaction":
            found |= thread.calls
    return list(found.values())


@pytest.mark.parametrize(("client", "scene"), NAMES)
def test_main_calls_of_the_transcript(recording: Recorder, client: str, scene: str) -> None:
    """Every main call is there once, in order, with the tokens that were billed."""
    made = recording(client, scene)
    billed = [one for one in made.billed if one.thread in _of_main(made)]
    calls = _calls(made, of_main=True)
    assert [tokens(call.usage) for call in calls] == [tokens(billed_usage(one)) for one in billed]
    if client not in OWN_IDS:
        assert [call.id for call in calls] == [one.id for one in billed]


@pytest.mark.parametrize(("client", "scene"), NAMES)
def test_subagent_calls_of_the_transcript(recording: Recorder, client: str, scene: str) -> None:
    """A subagent's calls are there in its own thread, and in no other."""
    made = recording(client, scene)
    billed = [tokens(billed_usage(one)) for one in made.billed if one.thread == "subagent"]
    assert [tokens(call.usage) for call in _calls(made, of_main=False)] == billed


@pytest.mark.parametrize(("client", "scene"), NAMES)
def test_reasoning_is_told_right_or_not_at_all(
    recording: Recorder, client: str, scene: str
) -> None:
    """Where a client tells reasoning tokens, they are those billed."""
    made = recording(client, scene)
    billed = [one.usage.reasoning for one in made.billed if one.thread in _of_main(made)]
    for call, reasoning in zip(_calls(made, of_main=True), billed, strict=True):
        assert call.usage.reasoning in (None, reasoning)


@pytest.mark.parametrize(("client", "scene"), NAMES)
def test_compactions_of_the_transcript(recording: Recorder, client: str, scene: str) -> None:
    """A compaction is told once, by the client's own record, however many calls it took."""
    made = recording(client, scene)
    billed = [kind for kind, _ in groupby(made.threads()) if kind == "compaction"]
    told = [one for thread in main(transcripts(made)) for one in thread.compactions]
    assert len(told) == len(billed)
    assert not [one for one in told if one.inferred]


@pytest.mark.parametrize(("client", "scene"), NAMES)
def test_occupancy_at_the_end(recording: Recorder, client: str, scene: str) -> None:
    """The last reading of the main thread is the prompt that was billed last."""
    made = recording(client, scene)
    last = [billed_usage(one) for one in made.billed if one.thread == "main"][-1]
    holding = main(transcripts(made))[-1].current_call
    assert holding is not None
    assert (holding.usage.sent, holding.usage.held) == (last.sent, last.held)


TOTALS = [(client, scene) for client, scene in NAMES if client in ("codex", "pi", "opencode")]


@pytest.mark.parametrize(("client", "scene"), TOTALS)
def test_totals_of_the_transcript(recording: Recorder, client: str, scene: str) -> None:
    """Where the client records its compactions' usage, the total is the bill."""
    made = recording(client, scene)
    billed = (billed_usage(one) for one in made.billed if one.thread != "title")
    assert total(one.total for one in threads(transcripts(made))) == total(billed)


@pytest.mark.parametrize("scene", list(SCENES["claude"]))
def test_claude_stream(recording: Recorder, scene: str) -> None:
    """Prompts are exact call by call; outputs too with partial messages, else in their sum."""
    made = recording("claude", scene)
    for run in made.runs:
        told = streams([run], "claude").threads[MAIN]
        billed = [billed_usage(one) for one in run.of("main")]
        assert [call.usage.sent for call in told.calls.values()] == [one.sent for one in billed]
        assert total([told.total]) == total(billed)
        if scene.endswith("partial"):
            assert [tokens(call.usage) for call in told.calls.values()] == [*map(tokens, billed)]


def test_claude_stream_has_background_subagents(recording: Recorder) -> None:
    """Every prompt of a background subagent is in the stream, under its tool call."""
    made = recording("claude", "subagent-background")
    told = [one for one in streams(made.runs, "claude").threads.values() if one.name != MAIN]
    sent = [call.usage.sent for thread in told for call in thread.calls.values()]
    assert sent == [billed_usage(one).sent for one in made.last.of("subagent")]


def test_claude_stream_lacks_the_end_of_synchronous_subagents(recording: Recorder) -> None:
    """The client does not print a synchronous subagent's last answer: that call is missing."""
    made = recording("claude", "subagent-sync")
    told = [one for one in streams(made.runs, "claude").threads.values() if one.name != MAIN]
    sent = [call.usage.sent for thread in told for call in thread.calls.values()]
    assert sent == [billed_usage(one).sent for one in made.last.of("subagent")][:-1]


@pytest.mark.parametrize("scene", [scene for scene in CODEX if scene != "too-long"])
def test_codex_stream(recording: Recorder, scene: str) -> None:
    """A thread's running total is the bill of its calls and compactions, subagents apart."""
    made = recording("codex", scene)
    billed = [billed_usage(one) for one in made.billed if one.thread in ("main", "compaction")]
    assert total([streams(made.runs, "codex").threads[MAIN].total]) == total(billed)


@pytest.mark.parametrize("scene", list(PI))
def test_pi_stream(recording: Recorder, scene: str) -> None:
    """The stream tells every call as the transcript does, and what compactions spent."""
    made = recording("pi", scene)
    told = streams(made.runs, "pi").threads[MAIN]
    billed = [one for one in made.billed if one.thread == "main"]
    assert [call.id for call in told.calls.values()] == [one.id for one in billed]
    assert [*map(tokens, (call.usage for call in told.calls.values()))] == [
        tokens(billed_usage(one)) for one in billed
    ]
    assert total([told.total]) == total(map(billed_usage, made.billed))


@pytest.mark.parametrize("scene", list(GEMINI))
def test_gemini_stream(recording: Recorder, scene: str) -> None:
    """A run's sums are its bill: router, subagents and compactions with the rest."""
    for run in recording("gemini", scene).runs:
        told = streams([run], "gemini").threads[MAIN].total
        assert total([told]) == total(map(billed_usage, run.billed))


@pytest.mark.parametrize("scene", list(OPENCODE))
def test_opencode_stream(recording: Recorder, scene: str) -> None:
    """The stream tells the session's own calls, the summary's among them."""
    made = recording("opencode", scene)
    runs = [run for run in made.runs if run.client != EXPORT]
    billed = [one for one in made.billed if one.thread in ("main", "compaction")]
    told = [
        call for one in streams(runs, "opencode").threads.values() for call in one.calls.values()
    ]
    assert [tokens(one.usage) for one in told] == [tokens(billed_usage(one)) for one in billed]


def test_opencode_export(recording: Recorder) -> None:
    """An export says what the database says."""
    made = recording("opencode", "auto-compact")
    (export,) = [run for run in made.runs if run.client == EXPORT]
    assert _exported(export) == transcripts(made)[0].threads


def _exported(run: ClientRun) -> object:
    with run.stream.open("rb") as file:
        return fold(Session(), source("opencode").parse(file)).threads
