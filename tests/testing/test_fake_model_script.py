"""Scenarios: which reply comes, in which thread, at which added usage."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from brimline.testing.fake_model import CAPTURED, Ramp, Reply, Scenario, ToolCall, load, save
from brimline.testing.fake_model.apis import anthropic, gemini, responses
from brimline.testing.fake_model.billed import BillingLog, read_billed
from brimline.testing.fake_model.model import Answered, Failed, ScriptedModel

ONE = Reply(text="one")
TWO = Reply(text="two")


def ask(model: ScriptedModel, text: str, **headers: str) -> str | None:
    """The text that the model answers to a message."""
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    body = {"model": "m", "messages": [{"role": "user", "content": text}]}
    answer = model.ask(anthropic.WIRE, msgspec.json.encode(body), "", names)
    assert isinstance(answer, Answered)
    return answer.turn.reply.text


def test_replies_come_in_order_then_otherwise() -> None:
    """After the last reply of a thread comes the one for everything else."""
    model = ScriptedModel(Scenario(main=(ONE, TWO), otherwise=Reply(text="more")), BillingLog())
    assert [ask(model, "x") for _ in range(4)] == ["one", "two", "more", "more"]


def test_conditional_reply_waits_for_its_text() -> None:
    """A reply with a condition is passed over until a request meets it."""
    model = ScriptedModel(
        Scenario(main=(Reply(text="sun", when="weather"), ONE, TWO)), BillingLog()
    )
    assert [ask(model, text) for text in ("a", "the weather?", "b")] == ["one", "sun", "two"]


def test_each_subagent_has_its_own_replies() -> None:
    """Two subagents start the subagent's replies afresh, and the main thread keeps its own."""
    log = BillingLog()
    model = ScriptedModel(Scenario(main=(ONE,), subagent=(TWO,)), log)
    first, second = {"x_claude_code_agent_id": "a"}, {"x_claude_code_agent_id": "b"}
    replies = [ask(model, "x", **first), ask(model, "x"), ask(model, "x", **second)]
    assert replies == ["two", "one", "two"]
    assert [(one.thread, one.agent_id) for one in log.billed] == [
        ("subagent", "a"),
        ("main", None),
        ("subagent", "b"),
    ]


def test_ramp_falls_at_a_compaction() -> None:
    """Usage climbs call by call, and starts low again with the first compacted prompt.

    A client that compacts in the background makes calls of the old conversation meanwhile.
    """
    log = BillingLog()
    model = ScriptedModel(Scenario(ramp=Ramp(start=1000, step=500, after_compaction=100)), log)
    for text in ("x", "x", "CRITICAL: Respond with TEXT ONLY", "x", "y", "y"):
        ask(model, text)
    billed = [one.usage.input for one in log.billed if one.thread == "main"]
    low = billed[0] - 1000
    assert [tokens - low for tokens in billed] == [1000, 1500, 2000, 100, 600]
    assert [one.thread for one in log.billed][2] == "compaction"


def test_reply_sets_its_own_usage() -> None:
    """A reply's own figures win over ramp and estimate."""
    log = BillingLog()
    model = ScriptedModel(
        Scenario(main=(Reply(text="x", added=7000, output=42),), ramp=Ramp(start=9)), log
    )
    ask(model, "x")
    ask(model, "x")
    first, second = log.billed
    assert first.usage.output == 42
    assert first.usage.input - second.usage.input == 7000 - 9


def test_captured_text_goes_into_the_tool_call() -> None:
    """A reply can hand back an id that the client sent."""
    tool = ToolCall("wait", {"targets": [CAPTURED]})
    model = ScriptedModel(Scenario(main=(Reply(tools=(tool,), capture=r"id=(\w+)"),)), BillingLog())
    body = {"model": "m", "messages": [{"role": "user", "content": "id=abc"}]}
    answer = model.ask(anthropic.WIRE, msgspec.json.encode(body), "", {})
    assert isinstance(answer, Answered)
    assert answer.turn.reply.tools[0].input == {"targets": ["abc"]}


def test_codex_names_its_thread_in_a_header() -> None:
    """Codex names thread, session and kind of each request."""
    log = BillingLog()
    model = ScriptedModel(Scenario(), log)
    for thread, kind in (("s", "turn"), ("s", "compaction"), ("t", "turn")):
        turn = {"session_id": "s", "thread_id": thread, "request_kind": kind}
        header = {"x-codex-turn-metadata": msgspec.json.encode(turn).decode()}
        model.ask(responses.WIRE, b'{"model": "m", "input": "x"}', "", header)
    assert [(one.thread, one.agent_id, one.session_id) for one in log.billed] == [
        ("main", None, "s"),
        ("compaction", None, "s"),
        ("subagent", "t", "s"),
    ]


def test_opencode_subagent_is_a_child_session() -> None:
    """A request with a parent session is a subagent's, known by its own session."""
    log = BillingLog()
    ask(ScriptedModel(Scenario(), log), "x", x_session_id="child", x_parent_session_id="parent")
    assert (log.billed[0].thread, log.billed[0].agent_id) == ("subagent", "child")


CHORES = [
    ("You are a specialized Task Routing AI.", "router", "complexity_score"),
    ("You are responsible for distilling chat history into a structured XML x", "compaction", "<"),
]


@pytest.mark.parametrize(("system", "thread", "says"), CHORES)
def test_gemini_chores_are_known_by_their_instructions(system: str, thread: str, says: str) -> None:
    """Router and compression are no part of the conversation and use up none of its replies."""
    log = BillingLog()
    model = ScriptedModel(Scenario(main=(ONE,)), log)
    body: dict[str, Any] = {"contents": [{"parts": [{"text": "x"}]}]}
    chore = body | {"systemInstruction": {"parts": [{"text": system}]}}
    answers = [
        model.ask(gemini.WIRE, msgspec.json.encode(one), "/models/m:generateContent", {})
        for one in (chore, body)
    ]
    texts = [one.turn.reply.text for one in answers if isinstance(one, Answered)]
    assert texts[0] is not None
    assert says in texts[0]
    assert texts[1] == "one"
    assert [one.thread for one in log.billed] == [thread, "main"]


def test_error_keeps_its_place_on_the_ramp() -> None:
    """A refused call does not move the ramp on."""
    log = BillingLog()
    model = ScriptedModel(
        Scenario(main=(Reply(error="server"), ONE, TWO), ramp=Ramp(step=100)), log
    )
    body = {"model": "m", "messages": [{"role": "user", "content": "x"}]}
    refused = model.ask(anthropic.WIRE, msgspec.json.encode(body), "", {})
    assert isinstance(refused, Failed)
    assert [ask(model, "x"), ask(model, "x")] == ["one", "two"]
    first, second = log.billed
    assert second.usage.input - first.usage.input == 100


def test_scenario_goes_through_a_file(tmp_path: Path) -> None:
    """A scenario read from JSON is the one that was written."""
    tool = ToolCall("Bash", {"command": "ls"})
    scenario = Scenario(main=(Reply(text="x", tools=(tool,), when="y"),), ramp=Ramp(step=5))
    save(scenario, tmp_path / "s.json")
    assert load(tmp_path / "s.json") == scenario


def test_misspelt_error_in_a_file_names_its_place(tmp_path: Path) -> None:
    """A scenario that cannot be meant is refused with the path to the mistake."""
    (tmp_path / "s.json").write_text('{"main": [{"error": "oops"}]}')
    with pytest.raises(msgspec.ValidationError, match=r"main\[0\]"):
        load(tmp_path / "s.json")


def test_log_is_appended(tmp_path: Path) -> None:
    """A second model on the same log gives no id twice."""
    path = tmp_path / "billed.jsonl"
    for _ in range(2):
        ask(ScriptedModel(Scenario(), BillingLog(path)), "x")
    assert [one.id for one in read_billed(path)] == ["msg_fake000001", "msg_fake000002"]
