"""Every client is billed the sequence of calls that its scene scripts, and leaves its files."""

from __future__ import annotations

import msgspec
import pytest

from .conftest import Recorder, scene_params
from .opencode import EXPORT
from .scenes import SCENES

pytestmark = pytest.mark.clients

M, S, C, R = "main", "subagent", "compaction", "router"

# What each scene is billed, thread by thread; a set is an order that the client is free to choose.
EXPECTED: dict[str, dict[str, list[str]]] = {
    "claude": {
        "tool-loop": [M, M, M],
        "partial": [M, M, M],
        "subagent-background": [M, M, M, S, S, S],
        "subagent-sync": [M, S, S, S, M],
        "subagent-sync-partial": [M, S, S, S, M],
        "auto-compact": [M, M, M, M, C, M, M, M],
        "auto-compact-partial": [M, M, M, M, C, M, M, M],
        "too-long": [M, M, M, M, C, M, M],
        "errors": [M, M, M],
        "resume": [M, M, M, M, M],
        "fork": [M, M, M, M, M],
        "1m": [M, M, M],
    },
    "codex": {
        "tool-loop": [M, M, M],
        "one-call": [M],
        "cache-writes": [M, M, M],
        "subagent": [M, M, S, S, M],
        "auto-compact": [M, M, M, M, C, M, M],
        "token-budget": [M, M, M, M, M, M],
        "resume": [M, M, M],
        "resume-compact": [M, M, C, M],
        "errors": [M, M, M],
        "too-long": [M],
    },
    "pi": {
        "tool-loop": [M, M, M],
        "rpc": [M, M, M],
        "responses": [M, M, M],
        "chat": [M, M, M],
        "auto-compact": [M, M, M, M, C, M, M, M],
        "continue": [M, M, M, M, M, C, C, M, M, M],
        "errors": [M, M, M],
        "too-long": [M, M, M, C, M],
    },
    "gemini": {
        "tool-loop": [R, M, M, M],
        "subagent": [R, M, R, S, S, M],
        "resume-compact": [R, M, M, R, M, C, C, M],
        "errors": [R, M, M, M],
    },
    "goose": {
        "tool-loop": [M, M, M],
        "subagent": [M, S, S, M],
        "resume-compact": [M, M, C, M, M],
        "resume-errors": [M, M, M, M, M],
    },
    "opencode": {
        "tool-loop": [M, M, M],
        "responses": [M, M, M],
        "chat": [M, M, M],
        "subagent": [M, S, S, M],
        "auto-compact": [M, M, M, M, C, M, M],
        "continue-errors": [M, M, M, M, M],
    },
    "kilo": {
        "tool-loop": [M, M, M],
        "subagent": [M, S, S, M],
        "auto-compact": [M, M, M, M, C, M, M],
        "continue-errors": [M, M, M, M, M],
    },
    "kimi": {
        "tool-loop": [M, M, M],
        "subagent": [M, S, S, M],
        "auto-compact": [M, M, M, M, M, C, M],
        "continue": [M, M, M, M, M],
        "errors": [M, M, M],
    },
    "qwen": {
        "tool-loop": [M, M, M],
        "subagent": [M, M, S, S, S, M],
        "auto-compact": [M, M, M, M, C, M, M],
        "compact-twice": [M, M, M, M, C, C, M, M],
        "continue": [M, M, M, M, M],
        "errors": [M, M, M],
        "too-long": [M, C, M, M],
    },
    "cline": {
        "tool-loop": [M, M, M],
        "subagent": [M, S, S, M],
        "auto-compact": [M, M, M, C, M, M, M],
        "errors": [M, M, M],
    },
    "copilot": {
        "tool-loop": [M, M, M],
        "responses": [M, M, M],
        "chat": [M, M, M],
        "subagent": [M, S, S, M],
        "auto-compact": [M, M, M, M, M, M, C, M, M, M],
        "continue-errors": [M, M, M, M, M],
    },
}
REFUSED: dict[tuple[str, str], list[int]] = {
    ("claude", "too-long"): [400],
    ("claude", "errors"): [529, 500, 429],
    ("codex", "errors"): [529, 500],
    ("codex", "too-long"): [400],
    ("pi", "errors"): [529],
    ("pi", "too-long"): [400],
    ("gemini", "errors"): [500],
    ("goose", "resume-errors"): [529, 500],
    ("kilo", "continue-errors"): [529],
    ("opencode", "continue-errors"): [529],
    ("cline", "errors"): [529, 500],
    ("kimi", "errors"): [529, 500],
    ("qwen", "errors"): [529, 500],
    ("qwen", "too-long"): [400],
    ("copilot", "continue-errors"): [529, 500],
}
IN_PARALLEL = {
    ("claude", "subagent-background"),
    ("codex", "subagent"),
    ("qwen", "subagent"),
    ("copilot", "auto-compact"),
}
FAILING = {("codex", "too-long")}


def test_every_scene_has_its_expected_sequence() -> None:
    """A scene without an expectation would be a run that nobody looks at."""
    assert {client: [*scenes] for client, scenes in EXPECTED.items()} == {
        client: [*scenes] for client, scenes in SCENES.items()
    }


@pytest.mark.parametrize(("client", "scene"), scene_params())
def test_billed_sequence(recording: Recorder, client: str, scene: str) -> None:
    """The client makes the scripted calls, no more and no fewer."""
    recorded = recording(client, scene)
    threads, expected = recorded.threads(), EXPECTED[client][scene]
    if (client, scene) in IN_PARALLEL:
        threads, expected = sorted(threads), sorted(expected)
    assert threads == expected
    assert [call.status for call in recorded.refused] == REFUSED.get((client, scene), [])


@pytest.mark.parametrize(("client", "scene"), scene_params())
def test_leaves_stream_and_transcript(recording: Recorder, client: str, scene: str) -> None:
    """Each run ends well, writes a stream of JSON lines, and has a transcript at home."""
    recorded = recording(client, scene)
    assert {run.exit_code for run in recorded.runs} == {int((client, scene) in FAILING)}
    for run in recorded.runs:
        if run.client == EXPORT:
            assert msgspec.json.decode(run.stdout, type=dict[str, object])["messages"]
            continue
        lines = run.stream.read_bytes().splitlines()
        # Kimi Code names the role of a message alone.
        fields = [msgspec.json.decode(line, type=dict[str, object]) for line in lines]
        assert all({"type", "role"} & each.keys() for each in fields)
        assert lines
    assert recorded.last.transcripts
    assert all(path.stat().st_size for path in recorded.last.transcripts)


@pytest.mark.parametrize(("client", "scene"), scene_params())
def test_ids_are_unique(recording: Recorder, client: str, scene: str) -> None:
    """No two calls of a scene have one id, also over several runs."""
    ids = [call.id for call in recording(client, scene).billed]
    assert len(set(ids)) == len(ids)
