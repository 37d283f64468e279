"""What Brimline reads is what was billed, call by call, for every client and scene."""

from __future__ import annotations

from itertools import groupby

import pytest

from brimline.agents import source
from brimline.events import MAIN, Call, compaction_thread
from brimline.tracker import Session, fold

from .conftest import Recorder
from .opencode import EXPORT
from .recorded_sessions import (
    billed_usage,
    main_threads,
    stream_session,
    threads,
    token_counts,
    total_counts,
    transcript_sessions,
)
from .run import ClientRun
from .scenes import CODEX, GEMINI, OPENCODE, PI, SCENES, Recording

pytestmark = pytest.mark.clients

NAMES = [(client, scene) for client, scenes in SCENES.items() for scene in scenes]
# Clients with message ids of their own; the others keep the provider's.
OWN_IDS = ("gemini", "opencode")
# Clients whose transcript has the call of the summary among the others.
COMPACTION_IS_A_MAIN_CALL = ("codex",)


def _of_main(made: Recording) -> list[str]:
    return ["main", "compaction"] if made.client in COMPACTION_IS_A_MAIN_CALL else ["main"]


def _calls(made: Recording, *, of_main: bool) -> list[Call]:
    """The calls of the transcripts, each once, even if a fork copied it."""
    found: dict[str, Call] = {}
    for thread in threads(transcript_sessions(made)):
        if (thread.name == MAIN) == of_main and thread.name != "compaction":
            found |= thread.calls
    return list(found.values())


@pytest.mark.parametrize(("client", "scene"), NAMES)
def test_main_calls_of_the_transcript(recording: Recorder, client: str, scene: str) -> None:
    """Every main call is there once, in order, with the tokens that were billed."""
    made = recording(client, scene)
    billed = [one for one in made.billed if one.thread in _of_main(made)]
    calls = _calls(made, of_main=True)
    assert [token_counts(call.usage) for call in calls] == [
        token_counts(billed_usage(one)) for one in billed
    ]
    if client not in OWN_IDS:
        assert [call.id for call in calls] == [one.id for one in billed]


@pytest.mark.parametrize(("client", "scene"), NAMES)
def test_subagent_calls_of_the_transcript(recording: Recorder, client: str, scene: str) -> None:
    """A subagent's calls are there in its own thread, and in no other."""
    made = recording(client, scene)
    billed = [token_counts(billed_usage(one)) for one in made.billed if one.thread == "subagent"]
    assert [token_counts(call.usage) for call in _calls(made, of_main=False)] == billed


@pytest.mark.parametrize(("client", "scene"), NAMES)
def test_reasoning_is_right_or_unknown(recording: Recorder, client: str, scene: str) -> None:
    """If a client reports reasoning tokens, they are those billed."""
    made = recording(client, scene)
    billed = [one.usage.reasoning for one in made.billed if one.thread in _of_main(made)]
    for call, reasoning in zip(_calls(made, of_main=True), billed, strict=True):
        assert call.usage.reasoning in (None, reasoning)


@pytest.mark.parametrize(("client", "scene"), NAMES)
def test_compactions_of_the_transcript(recording: Recorder, client: str, scene: str) -> None:
    """A compaction is recorded once by the client, however many calls it took."""
    made = recording(client, scene)
    billed = [kind for kind, _ in groupby(made.threads()) if kind == "compaction"]
    recorded = [
        one for thread in main_threads(transcript_sessions(made)) for one in thread.compactions
    ]
    assert len(recorded) == len(billed)
    assert not [one for one in recorded if one.inferred]


@pytest.mark.parametrize(("client", "scene"), NAMES)
def test_occupancy_at_the_end(recording: Recorder, client: str, scene: str) -> None:
    """The last reading of the main thread is the prompt that was billed last."""
    made = recording(client, scene)
    last = [billed_usage(one) for one in made.billed if one.thread == "main"][-1]
    holding = main_threads(transcript_sessions(made))[-1].current_call
    assert holding is not None
    assert (holding.usage.sent, holding.usage.held) == (last.sent, last.held)


TOTALS = [(client, scene) for client, scene in NAMES if client in ("codex", "pi", "opencode")]


@pytest.mark.parametrize(("client", "scene"), TOTALS)
def test_totals_of_the_transcript(recording: Recorder, client: str, scene: str) -> None:
    """If the client records the usage of compactions, the total is the bill."""
    made = recording(client, scene)
    billed = (billed_usage(one) for one in made.billed if one.thread != "title")
    assert total_counts(one.total for one in threads(transcript_sessions(made))) == total_counts(
        billed
    )


@pytest.mark.parametrize("scene", list(SCENES["claude"]))
def test_claude_stream(recording: Recorder, scene: str) -> None:
    """Prompts are exact call by call; outputs too with partial messages, else in their sum."""
    made = recording("claude", scene)
    for run in made.runs:
        streamed = stream_session([run], "claude").threads[MAIN]
        billed = [billed_usage(one) for one in run.of("main")]
        assert [call.usage.sent for call in streamed.calls.values()] == [one.sent for one in billed]
        assert total_counts([streamed.total]) == total_counts(billed)
        if scene.endswith("partial"):
            assert [token_counts(call.usage) for call in streamed.calls.values()] == [
                *map(token_counts, billed)
            ]


def test_claude_stream_has_background_subagents(recording: Recorder) -> None:
    """Every prompt of a background subagent is in the stream, under its tool call."""
    made = recording("claude", "subagent-background")
    streamed = [
        one for one in stream_session(made.runs, "claude").threads.values() if one.name != MAIN
    ]
    sent = [call.usage.sent for thread in streamed for call in thread.calls.values()]
    assert sent == [billed_usage(one).sent for one in made.last.of("subagent")]


def test_claude_stream_lacks_the_end_of_synchronous_subagents(recording: Recorder) -> None:
    """The client does not print a synchronous subagent's last answer: that call is missing."""
    made = recording("claude", "subagent-sync")
    streamed = [
        one for one in stream_session(made.runs, "claude").threads.values() if one.name != MAIN
    ]
    sent = [call.usage.sent for thread in streamed for call in thread.calls.values()]
    assert sent == [billed_usage(one).sent for one in made.last.of("subagent")][:-1]


@pytest.mark.parametrize("scene", [scene for scene in CODEX if scene != "too-long"])
def test_codex_stream(recording: Recorder, scene: str) -> None:
    """A thread's running total is the bill of its calls and compactions, subagents apart."""
    made = recording("codex", scene)
    billed = [billed_usage(one) for one in made.billed if one.thread in ("main", "compaction")]
    assert total_counts([stream_session(made.runs, "codex").threads[MAIN].total]) == total_counts(
        billed
    )


@pytest.mark.parametrize("scene", list(PI))
def test_pi_stream(recording: Recorder, scene: str) -> None:
    """The stream has every call of the transcript, and the usage of compactions."""
    made = recording("pi", scene)
    streamed = stream_session(made.runs, "pi").threads[MAIN]
    billed = [one for one in made.billed if one.thread == "main"]
    assert [call.id for call in streamed.calls.values()] == [one.id for one in billed]
    assert [*map(token_counts, (call.usage for call in streamed.calls.values()))] == [
        token_counts(billed_usage(one)) for one in billed
    ]
    assert total_counts([streamed.total]) == total_counts(map(billed_usage, made.billed))


@pytest.mark.parametrize("scene", list(GEMINI))
def test_gemini_stream(recording: Recorder, scene: str) -> None:
    """A run's sums are its bill: router, subagents and compactions with the rest."""
    for run in recording("gemini", scene).runs:
        streamed = stream_session([run], "gemini").threads[MAIN].total
        assert total_counts([streamed]) == total_counts(map(billed_usage, run.billed))


@pytest.mark.parametrize("scene", list(OPENCODE))
def test_opencode_stream(recording: Recorder, scene: str) -> None:
    """The stream has the session's own calls; the one of a summary is in a thread of its own."""
    made = recording("opencode", scene)
    runs = [run for run in made.runs if run.client != EXPORT]
    threads = stream_session(runs, "opencode").threads
    for name in (MAIN, compaction_thread()):
        billed = [billed_usage(one) for one in made.billed if one.thread == name]
        calls = threads[name].calls.values() if name in threads else ()
        assert [token_counts(one.usage) for one in calls] == [*map(token_counts, billed)]


def test_opencode_export(recording: Recorder) -> None:
    """An export says what the database says."""
    made = recording("opencode", "auto-compact")
    (export,) = [run for run in made.runs if run.client == EXPORT]
    assert _exported(export) == transcript_sessions(made)[0].threads


def _exported(run: ClientRun) -> object:
    with run.stream.open("rb") as file:
        return fold(Session(), source("opencode").parse(file)).threads
