"""What the agents say in their streams."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brimline.run.said import Said, Told, ear
from brimline.run.stream_reader import heard
from brimline.sources import AGENTS, source
from brimline.usage import Usage

from .lines import FIXTURES, call, init, packed, recorded, result

STREAMS = sorted(FIXTURES.glob("*/*/stream-*.jsonl"))


def told(agent: str, stream: bytes) -> list[Told]:
    """What each line tells."""
    by = ear(agent)
    return [by.hear(line) for line in stream.splitlines()]


def said(agent: str, stream: bytes) -> list[tuple[str, str, str]]:
    """Everything that is said, in order."""
    return [(s.kind, s.text, s.detail) for one in told(agent, stream) for s in one.said]


TOOLS = {"claude": "Bash", "pi": "bash", "gemini": "run_shell_command", "opencode": "bash"}


@pytest.mark.parametrize("agent", list(TOOLS))
def test_words_and_tools(agent: str) -> None:
    """The agent's words and the tools that it uses, with what they are given, each once."""
    tool = TOOLS[agent]
    assert said(agent, recorded(agent)) == [
        ("text", "I run echo one.", ""),
        ("tool", tool, "echo one"),
        ("text", "Two more.", ""),
        ("tool", tool, "echo one"),
        ("tool", tool, "echo two"),
        ("text", "All done.", ""),
    ]


def test_words_and_tools_of_codex() -> None:
    """Codex names a command as it runs it."""
    assert said("codex", recorded("codex")) == [
        ("text", "I run echo one.", ""),
        ("tool", "shell", "/bin/bash -lc 'echo one'"),
        ("text", "Two more.", ""),
        ("tool", "shell", "/bin/bash -lc 'echo one'"),
        ("tool", "shell", "/bin/bash -lc 'echo two'"),
        ("text", "All done.", ""),
    ]


def test_partial_messages_say_nothing_twice() -> None:
    """Raw events repeat what the whole lines say."""
    assert said("claude", recorded("claude", "partial")) == said("claude", recorded("claude"))


def test_cost_is_the_runs_own() -> None:
    """A resumed session's total has what was before; what a run cost is told apart."""
    first, second = (told("claude", recorded("claude", "resume", n))[-1] for n in (1, 2))
    assert (first.cost, second.cost) == (0.1227628, 0.1269558)
    assert second.billed == Usage(8, 23_744, 24_315, 30)
    assert (first.turns, second.turns) == (4, 2)


def test_cost_of_an_older_version() -> None:
    """Versions that tell the total alone: what it grew by since the result before."""
    by = ear("claude")
    costs = [by.hear(result(total_cost_usd=cost)).cost for cost in (0.5, 0.75, 0.75)]
    assert costs == [0.5, 0.25, 0.0]
    assert by.hear(result(total_cost_usd=None)).cost is None


def test_result_alone() -> None:
    """`--output-format json` prints the result alone: then it is what the agent said."""
    assert said("claude", result(result="All is well.")) == [("text", "All is well.", "")]
    stream = init() + call("m1", 100, "All is well.") + result(result="All is well.")
    assert said("claude", stream) == [("text", "All is well.", "")]


def test_a_subagents_words_are_not_the_agents() -> None:
    """What a subagent says is not the agent's own word."""
    assert said("claude", call("m1", 100, "DONE", parent="toolu_1")) == []


@pytest.mark.parametrize(
    ("agent", "line", "failed", "words"),
    [
        ("claude", {"type": "result", "is_error": True, "result": "No."}, True, "No."),
        ("codex", {"type": "turn.failed", "error": {"message": "No."}}, True, "No."),
        ("codex", {"type": "turn.completed", "usage": {}}, False, None),
        ("codex", {"type": "error", "message": "Reconnecting 1/5"}, None, None),
        (
            "codex",
            {"type": "item.completed", "item": {"type": "error", "message": "Hm."}},
            None,
            "Hm.",
        ),
        ("gemini", {"type": "result", "status": "success", "stats": {}}, False, None),
        (
            "gemini",
            {"type": "result", "status": "error", "error": {"type": "E", "message": "No."}},
            True,
            "No.",
        ),
        ("gemini", {"type": "error", "severity": "warning", "message": "Hm."}, None, "Hm."),
        (
            "pi",
            {"type": "message_end", "message": {"role": "assistant", "stopReason": "error",
                                                "errorMessage": "No.", "content": []}},
            True,
            "No.",
        ),
        (
            "opencode",
            {"type": "error", "error": {"name": "APIError", "data": {"message": "No."}}},
            True,
            "No.",
        ),
        ("opencode", {"type": "error", "error": {"name": "APIError"}}, True, "APIError"),
        ("opencode", {"type": "step_finish", "part": {"cost": 0.1}}, False, None),
    ],
)  # fmt: skip
def test_how_it_came_out(
    agent: str, line: dict[str, Any], failed: bool | None, words: str | None
) -> None:
    """The client's own word on whether it failed, and why."""
    heard = ear(agent).hear(packed(line))
    assert heard.failed is failed
    assert [one.text for one in heard.said if one.kind == "error"] == ([words] if words else [])


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        ({"type": "file_change", "changes": []}, ("tool", "patch", "")),
        ({"type": "mcp_tool_call", "server": "s", "tool": "t"}, ("tool", "s.t", "")),
        ({"type": "web_search", "query": "q"}, ("tool", "web_search", "q")),
    ],
)
def test_other_items_of_codex(item: dict[str, Any], expected: tuple[str, str, str]) -> None:
    """What Codex does besides running commands."""
    assert said("codex", packed({"type": "item.completed", "item": item})) == [expected]


def test_pieces_of_a_text() -> None:
    """Gemini CLI's words come in pieces: they go on until something else stands between."""
    by = ear("gemini")
    piece = {"type": "message", "role": "assistant", "content": "a", "delta": True}
    tool = {"type": "tool_use", "tool_name": "t"}
    heard = [by.hear(packed(line)) for line in (piece, piece, tool, piece)]
    assert [one.said[0].goes_on for one in heard] == [False, True, False, False]


def test_cost_of_a_compaction() -> None:
    """Pi tells what a compaction cost as well."""
    line = {"type": "compaction_end", "result": {"usage": {"cost": {"total": 0.25}}}}
    assert ear("pi").hear(packed(line)).cost == 0.25
    assert ear("pi").hear(packed({"type": "compaction_end", "result": None})).cost is None


def test_content_that_is_a_text() -> None:
    """A message's content may be one text."""
    message = {"role": "assistant", "content": "Hello.", "stopReason": "stop"}
    assert said("pi", packed({"type": "message_end", "message": message})) == [
        ("text", "Hello.", "")
    ]
    line = {"type": "assistant", "message": {"content": "Hello."}}
    assert said("claude", packed(line)) == [("text", "Hello.", "")]


def test_arguments_in_a_few_words() -> None:
    """A tool's first text, on one line; nothing where there is none."""
    for given_, shown in (
        ({"n": 1, "command": "a\n  b"}, "a b"),
        ({"n": 1}, ""),
        ("text", ""),
        (None, ""),
    ):
        line = {"type": "tool_use", "tool_name": "t", "parameters": given_}
        assert ear("gemini").hear(packed(line)).said == (Said("tool", "t", shown),)


@pytest.mark.parametrize("path", STREAMS, ids=lambda p: f"{p.parts[-3]}-{p.parts[-2]}-{p.stem}")
def test_every_recorded_line_is_understood(path: Any) -> None:
    """No line of a real client is misunderstood, and every run's outcome has its sign."""
    agent = path.parts[-3]
    by = ear(agent)
    for line in path.read_bytes().splitlines():
        heard = by.hear(line)
        if heard.cost is not None or heard.failed is not None or heard.billed is not None:
            assert any(sign in line for sign in by.signs)


@pytest.mark.parametrize("path", STREAMS, ids=lambda p: f"{p.parts[-3]}-{p.parts[-2]}-{p.stem}")
def test_idle_lines_tell_nothing(path: Any) -> None:
    """What need not be decoded has neither words nor usage."""
    agent = path.parts[-3]
    by, parser = ear(agent), source(agent).stream()
    for line in path.read_bytes().splitlines():
        events = parser.feed(line)
        if line.startswith(by.idle):
            assert not events
            assert by.hear(line) == Told()


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=3,
)


@st.composite
def damaged(draw: st.DrawFn, agent: str) -> bytes:
    """Bytes, or a recorded line in which something was replaced: a value, or some bytes."""
    line = draw(st.sampled_from(recorded(agent).splitlines()))
    if draw(st.booleans()):
        record = json.loads(line)
        record[draw(st.sampled_from(sorted(record)))] = draw(VALUES)
        return json.dumps(record).encode()
    first, last = sorted(draw(st.tuples(*[st.integers(0, len(line))] * 2)))
    return draw(st.binary() | st.just(line[:first] + draw(st.binary(max_size=4)) + line[last:]))


@pytest.mark.parametrize("agent", list(AGENTS))
@given(data=st.data())
def test_garbage_says_nothing(agent: str, data: st.DataObject) -> None:
    """Whatever a line looks like, hearing it never ends a run."""
    by = ear(agent)
    for line in data.draw(st.lists(damaged(agent), max_size=5)):
        assert isinstance(heard(by, line), Told)
