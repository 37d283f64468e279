"""What Brimline reads is what was billed, call by call, for every client and scene."""

from __future__ import annotations

from itertools import groupby

import pytest

from brimline.agents import source
from brimline.context.events import MAIN, Call, compaction_thread
from brimline.context.tracker import Session, fold

from .conftest import Recorder, scene_params
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
from .scenes import CODEX, PI, SCENES, Recording

pytestmark = pytest.mark.clients

# Clients with message ids of their own; the others keep the provider's.
OWN_IDS = ("cline", "gemini", "goose", "kilo", "kimi", "opencode")
# Clients whose transcript has the call of the summary among the others.
COMPACTION_IS_A_MAIN_CALL = ("codex",)


def _main_thread_names(recorded: Recording) -> list[str]:
    return ["main", "compaction"] if recorded.client in COMPACTION_IS_A_MAIN_CALL else ["main"]


def _calls(recorded: Recording, *, of_main: bool) -> list[Call]:
    """The calls of the transcripts, each once, even if a fork copied it."""
    calls: dict[str, Call] = {}
    for thread in threads(transcript_sessions(recorded)):
        if (thread.name == MAIN) == of_main and thread.name != "compaction":
            calls |= thread.calls
    return list(calls.values())


@pytest.mark.parametrize(("client", "scene"), scene_params())
def test_main_calls_of_the_transcript(recording: Recorder, client: str, scene: str) -> None:
    """Every main call is there once, in order, with the tokens that were billed."""
    recorded = recording(client, scene)
    billed = [call for call in recorded.billed if call.thread in _main_thread_names(recorded)]
    calls = _calls(recorded, of_main=True)
    assert [token_counts(call.usage) for call in calls] == [
        token_counts(billed_usage(call)) for call in billed
    ]
    if client not in OWN_IDS:
        assert [call.id for call in calls] == [call.id for call in billed]


@pytest.mark.parametrize(("client", "scene"), scene_params())
def test_subagent_calls_of_the_transcript(recording: Recorder, client: str, scene: str) -> None:
    """A subagent's calls are there in its own thread, and in no other."""
    recorded = recording(client, scene)
    billed = [
        token_counts(billed_usage(call)) for call in recorded.billed if call.thread == "subagent"
    ]
    assert [token_counts(call.usage) for call in _calls(recorded, of_main=False)] == billed


@pytest.mark.parametrize(("client", "scene"), scene_params())
def test_reasoning_is_right_or_unknown(recording: Recorder, client: str, scene: str) -> None:
    """If a client reports reasoning tokens, they are those billed."""
    recorded = recording(client, scene)
    billed = [
        call.usage.reasoning
        for call in recorded.billed
        if call.thread in _main_thread_names(recorded)
    ]
    for call, reasoning in zip(_calls(recorded, of_main=True), billed, strict=True):
        assert call.usage.reasoning in (None, reasoning)


WITHOUT_A_CALL = {("codex", "token-budget"): 2}  # compactions that drop the conversation


@pytest.mark.parametrize(("client", "scene"), scene_params())
def test_compactions_of_the_transcript(recording: Recorder, client: str, scene: str) -> None:
    """A compaction is recorded once by the client, however many calls it took."""
    recorded = recording(client, scene)
    billed = [kind for kind, _ in groupby(recorded.threads()) if kind == "compaction"]
    main = main_threads(transcript_sessions(recorded))
    compactions = [compaction for thread in main for compaction in thread.compactions]
    assert len(compactions) == len(billed) + WITHOUT_A_CALL.get((client, scene), 0)
    assert not any(compaction.inferred for compaction in compactions)


@pytest.mark.parametrize(("client", "scene"), scene_params())
def test_occupancy_at_the_end(recording: Recorder, client: str, scene: str) -> None:
    """The last reading of the main thread is the prompt that was billed last."""
    recorded = recording(client, scene)
    last = [billed_usage(call) for call in recorded.billed if call.thread == "main"][-1]
    holding = main_threads(transcript_sessions(recorded))[-1].current_call
    assert holding is not None
    assert (holding.usage.sent, holding.usage.held) == (last.sent, last.held)


@pytest.mark.parametrize(
    ("client", "scene"),
    scene_params("codex", "goose", "kilo", "pi", "opencode", "kimi", "qwen", "copilot"),
)
def test_totals_of_the_transcript(recording: Recorder, client: str, scene: str) -> None:
    """If the client records the usage of compactions, the total is the bill."""
    recorded = recording(client, scene)
    billed = (billed_usage(call) for call in recorded.billed if call.thread != "title")
    totals = (thread.total for thread in threads(transcript_sessions(recorded)))
    assert total_counts(totals) == total_counts(billed)


@pytest.mark.parametrize("scene", list(SCENES["claude"]))
def test_claude_stream(recording: Recorder, scene: str) -> None:
    """Prompts are exact call by call; outputs too with partial messages, else in their sum."""
    recorded = recording("claude", scene)
    for run in recorded.runs:
        streamed = stream_session([run], "claude").threads[MAIN]
        billed = [billed_usage(call) for call in run.of("main")]
        assert [call.usage.sent for call in streamed.calls.values()] == [
            usage.sent for usage in billed
        ]
        assert total_counts([streamed.total]) == total_counts(billed)
        if scene.endswith("partial"):
            assert [token_counts(call.usage) for call in streamed.calls.values()] == [
                *map(token_counts, billed)
            ]


def test_claude_stream_has_background_subagents(recording: Recorder) -> None:
    """Every prompt of a background subagent is in the stream, under its tool call."""
    recorded = recording("claude", "subagent-background")
    streamed = [
        thread
        for thread in stream_session(recorded.runs, "claude").threads.values()
        if thread.name != MAIN
    ]
    sent = [call.usage.sent for thread in streamed for call in thread.calls.values()]
    assert sent == [billed_usage(call).sent for call in recorded.last.of("subagent")]


def test_claude_stream_lacks_the_end_of_synchronous_subagents(recording: Recorder) -> None:
    """The client does not print a synchronous subagent's last answer: that call is missing."""
    recorded = recording("claude", "subagent-sync")
    streamed = [
        thread
        for thread in stream_session(recorded.runs, "claude").threads.values()
        if thread.name != MAIN
    ]
    sent = [call.usage.sent for thread in streamed for call in thread.calls.values()]
    assert sent == [billed_usage(call).sent for call in recorded.last.of("subagent")][:-1]


@pytest.mark.parametrize("scene", [scene for scene in CODEX if scene != "too-long"])
def test_codex_stream(recording: Recorder, scene: str) -> None:
    """A thread's running total is the bill of its calls and compactions, subagents apart."""
    recorded = recording("codex", scene)
    billed = [
        billed_usage(call) for call in recorded.billed if call.thread in ("main", "compaction")
    ]
    streamed = stream_session(recorded.runs, "codex").threads[MAIN]
    assert total_counts([streamed.total]) == total_counts(billed)


@pytest.mark.parametrize("scene", list(PI))
def test_pi_stream(recording: Recorder, scene: str) -> None:
    """The stream has every call of the transcript, and the usage of compactions."""
    recorded = recording("pi", scene)
    streamed = stream_session(recorded.runs, "pi").threads[MAIN]
    billed = [call for call in recorded.billed if call.thread == "main"]
    assert [call.id for call in streamed.calls.values()] == [call.id for call in billed]
    assert [*map(token_counts, (call.usage for call in streamed.calls.values()))] == [
        token_counts(billed_usage(call)) for call in billed
    ]
    assert total_counts([streamed.total]) == total_counts(map(billed_usage, recorded.billed))


@pytest.mark.parametrize(("client", "scene"), scene_params("gemini"))
def test_gemini_stream(recording: Recorder, client: str, scene: str) -> None:
    """A run's sums are its bill: router, subagents and compactions with the rest."""
    for run in recording(client, scene).runs:
        streamed = stream_session([run], "gemini").threads[MAIN].total
        assert total_counts([streamed]) == total_counts(map(billed_usage, run.billed))


@pytest.mark.parametrize(("client", "scene"), scene_params("qwen"))
def test_qwen_stream(recording: Recorder, client: str, scene: str) -> None:
    """The stream has the calls of the main thread alone, without the provider's ids."""
    for run in recording(client, scene).runs:
        (streamed,) = stream_session([run], client).threads.values()
        assert [token_counts(call.usage) for call in streamed.calls.values()] == [
            token_counts(billed_usage(call)) for call in run.of("main")
        ]


@pytest.mark.parametrize(("client", "scene"), scene_params("opencode"))
def test_opencode_stream(recording: Recorder, client: str, scene: str) -> None:
    """The stream has the session's own calls; the one of a summary is in a thread of its own."""
    check_stream(recording(client, scene))


@pytest.mark.parametrize(("client", "scene"), scene_params("kilo"))
def test_kilo_stream(recording: Recorder, client: str, scene: str) -> None:
    """The stream has what that of opencode has."""
    check_stream(recording(client, scene))


def check_stream(recorded: Recording) -> None:
    """Compare the calls of a stream of opencode, or of its fork, with the bill."""
    runs = [run for run in recorded.runs if run.client != EXPORT]
    threads = stream_session(runs, recorded.client).threads
    for name in (MAIN, compaction_thread()):
        billed = [billed_usage(call) for call in recorded.billed if call.thread == name]
        calls = threads[name].calls.values() if name in threads else ()
        assert [token_counts(call.usage) for call in calls] == [*map(token_counts, billed)]


@pytest.mark.parametrize(("client", "scene"), scene_params("copilot"))
def test_copilot_stream(recording: Recorder, client: str, scene: str) -> None:
    """It has no usage: every line is known, and the last one names the session to be measured."""
    recorded = recording(client, scene)
    streamed, (measured,) = stream_session(recorded.runs, client), transcript_sessions(recorded)
    assert streamed.threads == {}
    assert (streamed.id, streamed.agent) == (measured.id, "copilot")


def test_opencode_export(recording: Recorder) -> None:
    """An export says what the database says."""
    recorded = recording("opencode", "auto-compact")
    (export,) = [run for run in recorded.runs if run.client == EXPORT]
    assert _exported(export) == transcript_sessions(recorded)[0].threads


def _exported(run: ClientRun) -> object:
    with run.stream.open("rb") as file:
        return fold(Session(), source("opencode").parse(file)).threads
