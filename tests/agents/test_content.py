"""The content readers: pieces of content from stream lines and transcript records."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brimline.agents import agent_names, get_agent, source
from brimline.agents.content import (
    ErrorText,
    Piece,
    ReplyText,
    RunOutcome,
    ToolCall,
    ToolResult,
    UserText,
    read_content,
    read_stream_line,
)
from brimline.context.usage import Usage
from run.lines import FIXTURES, call, init, packed, recorded, result

STREAMS = sorted(FIXTURES.glob("*/*/stream-*.jsonl"))


def line_pieces(agent: str, *lines: bytes) -> list[Piece]:
    """The pieces of some stream lines."""
    reader = get_agent(agent).content_reader()
    return [piece for line in lines for piece in reader.read_line(line)]


def outcomes(agent: str, *lines: bytes) -> list[RunOutcome]:
    """The outcomes that some stream lines report."""
    return [piece for piece in line_pieces(agent, *lines) if isinstance(piece, RunOutcome)]


def shown(agent: str, stream: bytes) -> list[tuple[str, str, str]]:
    """What a stream shows to people, in order."""
    rows: list[tuple[str, str, str]] = []
    for piece in line_pieces(agent, *stream.splitlines()):
        match piece:
            case ReplyText(text):
                rows.append(("text", text, ""))
            case ToolCall():
                rows.append(("tool", piece.tool, piece.summary))
            case ErrorText(text):
                rows.append(("error", text, ""))
            case _:
                pass
    return rows


TOOLS = {
    "claude": "Bash",
    "copilot": "bash",
    "gemini": "run_shell_command",
    "goose": "shell",
    "kilo": "bash",
    "opencode": "bash",
    "pi": "bash",
}


@pytest.mark.parametrize("agent", list(TOOLS))
def test_stream_yields_each_reply_and_tool_call_once(agent: str) -> None:
    """Each reply and each tool call, with its arguments, appears once."""
    tool = TOOLS[agent]
    assert shown(agent, recorded(agent)) == [
        ("text", "I run echo one.", ""),
        ("tool", tool, "echo one"),
        ("text", "Two more.", ""),
        ("tool", tool, "echo one"),
        ("tool", tool, "echo two"),
        ("text", "All done.", ""),
    ]


def test_codex_stream_yields_replies_and_commands() -> None:
    """Codex shows a command as it is run, with its shell."""
    assert shown("codex", recorded("codex")) == [
        ("text", "I run echo one.", ""),
        ("tool", "shell", "/bin/bash -lc 'echo one'"),
        ("text", "Two more.", ""),
        ("tool", "shell", "/bin/bash -lc 'echo one'"),
        ("tool", "shell", "/bin/bash -lc 'echo two'"),
        ("text", "All done.", ""),
    ]


def test_partial_messages_do_not_repeat_content() -> None:
    """Partial messages repeat whole lines, and are skipped."""
    assert shown("claude", recorded("claude", "partial")) == shown("claude", recorded("claude"))


def test_cost_excludes_earlier_runs() -> None:
    """A resumed session's total includes what came before; the cost of a run does not."""
    runs = [recorded("claude", "resume", n).splitlines() for n in (1, 2)]
    first, second = (outcomes("claude", *lines)[-1] for lines in runs)
    assert (first.cost, second.cost) == (0.1227628, 0.1269558)
    assert second.billed == Usage(8, 23_744, 24_315, 30)
    assert (first.turns, second.turns) == (4, 2)


def test_cost_of_older_version_is_growth_of_total() -> None:
    """Versions that report the total alone: the cost is its growth since the last result."""
    lines = [result(total_cost_usd=cost) for cost in (0.5, 0.75, 0.75, None)]
    assert [outcome.cost for outcome in outcomes("claude", *lines)] == [0.5, 0.25, 0.0, None]


def test_result_without_messages_is_the_reply() -> None:
    """`--output-format json` prints the result alone: it is then the reply."""
    assert shown("claude", result(result="All is well.")) == [("text", "All is well.", "")]
    stream = init() + call("m1", 100, "All is well.") + result(result="All is well.")
    assert shown("claude", stream) == [("text", "All is well.", "")]


def test_subagent_reply_is_skipped() -> None:
    """A subagent's reply is not the agent's."""
    assert shown("claude", call("m1", 100, "DONE", parent="toolu_1")) == []


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
def test_line_reports_failure_and_error(
    agent: str, line: dict[str, Any], failed: bool | None, words: str | None
) -> None:
    """The client reports whether the run failed, and why."""
    pieces = line_pieces(agent, packed(line))
    assert [one.failed for one in pieces if isinstance(one, RunOutcome)] == (
        [] if failed is None else [failed]
    )
    assert [one.text for one in pieces if isinstance(one, ErrorText)] == ([words] if words else [])


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        ({"type": "file_change", "changes": []}, ("tool", "patch", "")),
        ({"type": "mcp_tool_call", "server": "s", "tool": "t"}, ("tool", "s.t", "")),
        ({"type": "web_search", "query": "q"}, ("tool", "web_search", "q")),
    ],
)
def test_codex_item_is_a_tool_call(item: dict[str, Any], expected: tuple[str, str, str]) -> None:
    """Codex has other items than commands."""
    assert shown("codex", packed({"type": "item.completed", "item": item})) == [expected]


def test_parts_of_reply_are_continuations() -> None:
    """Gemini CLI splits replies: a part continues the last one unless another line came between."""
    part = {"type": "message", "role": "assistant", "content": "a", "delta": True}
    tool = {"type": "tool_use", "tool_name": "t"}
    pieces = line_pieces("gemini", *map(packed, (part, part, tool, part)))
    replies = [piece for piece in pieces if isinstance(piece, ReplyText)]
    assert [reply.is_continuation for reply in replies] == [False, True, False]


def test_pi_compaction_reports_cost() -> None:
    """Pi reports what a compaction cost as well."""
    line = {"type": "compaction_end", "result": {"usage": {"cost": {"total": 0.25}}}}
    assert outcomes("pi", packed(line)) == [RunOutcome(cost=0.25)]
    assert outcomes("pi", packed({"type": "compaction_end", "result": None})) == []


def test_string_content_is_a_reply() -> None:
    """A message's content may be a string."""
    message = {"role": "assistant", "content": "Hello.", "stopReason": "stop"}
    assert shown("pi", packed({"type": "message_end", "message": message})) == [
        ("text", "Hello.", "")
    ]
    line = {"type": "assistant", "message": {"content": "Hello."}}
    assert shown("claude", packed(line)) == [("text", "Hello.", "")]


@pytest.mark.parametrize(
    ("arguments", "summary"),
    [
        ({"n": 1, "command": "a\n  b"}, "a\n  b"),
        ({"apiKey": "opensesame", "user": "me"}, "me"),
        ({"n": 1}, ""),
        ("text", ""),
        (None, ""),
    ],
)
def test_tool_call_summary_is_first_text(arguments: object, summary: str) -> None:
    """A call is summed up by its first text argument whose name is not that of a secret."""
    line = {"type": "tool_use", "tool_name": "t", "parameters": arguments}
    assert shown("gemini", packed(line)) == [("tool", "t", summary)]


@pytest.mark.parametrize("path", STREAMS, ids=lambda p: f"{p.parts[-3]}-{p.parts[-2]}-{p.stem}")
def test_recorded_line_is_read_and_outcome_is_marked(path: Any) -> None:
    """Every line of a real client can be read, and every outcome has its mark."""
    reader = get_agent(path.parts[-3]).content_reader()
    for line in path.read_bytes().splitlines():
        if any(isinstance(piece, RunOutcome) for piece in reader.read_line(line)):
            assert any(mark in line for mark in reader.outcome_marks)


@pytest.mark.parametrize("path", STREAMS, ids=lambda p: f"{p.parts[-3]}-{p.parts[-2]}-{p.stem}")
def test_silent_line_has_no_content(path: Any) -> None:
    """Lines that are not decoded have neither pieces nor usage."""
    agent = path.parts[-3]
    reader, parser = get_agent(agent).content_reader(), source(agent).stream()
    for line in path.read_bytes().splitlines():
        events = parser.feed(line)
        if line.startswith(reader.silent_prefixes):
            assert not events
            assert list(reader.read_line(line)) == []


def record_pieces(agent: str, scenario: str) -> list[Piece]:
    """The pieces of the first transcript of a recorded session."""
    path = min((FIXTURES / agent / scenario / "home").rglob("*.jsonl"))
    return list(read_content(path.read_bytes().splitlines(), get_agent(agent).content_reader()))


@pytest.mark.parametrize("agent", ["claude", "codex", "copilot", "pi", "gemini"])
def test_transcript_yields_replies_calls_and_results(agent: str) -> None:
    """A transcript holds the replies and commands of its stream, and their results."""
    pieces = record_pieces(agent, "tool-loop")
    replies = [piece.text for piece in pieces if isinstance(piece, ReplyText) and piece.text]
    assert list(dict.fromkeys(replies)) == ["I run echo one.", "Two more.", "All done."]
    calls = [piece for piece in pieces if isinstance(piece, ToolCall)]
    assert {(call.kind, call.command) for call in calls} == {
        ("command", "echo one"),
        ("command", "echo two"),
    }
    assert all(call.arguments for call in calls)
    results = {piece.call_id: piece for piece in pieces if isinstance(piece, ToolResult)}
    assert {results[call.call_id].ok for call in calls} == {True}
    prompts = [piece.text for piece in pieces if isinstance(piece, UserText) and piece.text]
    assert prompts == ["Go."]
    assert all(piece.at is not None for piece in (*calls, *results.values()))


@pytest.mark.parametrize("agent", ["claude", "codex", "pi"])
def test_compaction_summary_is_no_user_text(agent: str) -> None:
    """The summary of a compaction is not the user's text."""
    pieces = record_pieces(agent, "auto-compact")
    assert [piece.text for piece in pieces if isinstance(piece, UserText)] == ["Go."]


def test_client_text_is_no_user_text() -> None:
    """What Claude Code adds to a message is not what the user typed."""
    text = "<system-reminder>a</system-reminder>Hi <ide_x> there<bash-input>ls</bash-input>"
    record = packed({"type": "user", "message": {"content": text}})
    texts = [
        piece
        for piece in read_content([record], get_agent("claude").content_reader())
        if isinstance(piece, UserText)
    ]
    assert texts == [UserText("Hi <ide_x> there")]


def test_outcomes_add_up() -> None:
    """Figures of several results add up; the last word on failure counts; unknown stays None."""
    total = RunOutcome(0.5, None, True).plus(RunOutcome(0.25, 2, False, Usage(1, 2, 3, 4)))
    assert total == RunOutcome(0.75, 2, False, Usage(1, 2, 3, 4))
    assert total.plus(RunOutcome()) == total


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=3,
)


@st.composite
def damaged(draw: st.DrawFn, agent: str) -> bytes:
    """Random bytes, or a recorded line with a value or some bytes replaced."""
    line = draw(st.sampled_from(recorded(agent).splitlines()))
    if draw(st.booleans()):
        record = json.loads(line)
        record[draw(st.sampled_from(sorted(record)))] = draw(VALUES)
        return json.dumps(record).encode()
    first, last = sorted(draw(st.tuples(*[st.integers(0, len(line))] * 2)))
    return draw(st.binary() | st.just(line[:first] + draw(st.binary(max_size=4)) + line[last:]))


@pytest.mark.parametrize("agent", agent_names())
@given(data=st.data())
def test_malformed_line_yields_pieces_or_nothing(agent: str, data: st.DataObject) -> None:
    """No line, whatever it holds, ends a run."""
    reader = get_agent(agent).content_reader()
    for line in data.draw(st.lists(damaged(agent), max_size=5)):
        assert isinstance(read_stream_line(reader, line), list)
