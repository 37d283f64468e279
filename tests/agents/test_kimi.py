"""Kimi Code: the records of its threads, its stream, places and settings."""

import json
import os
from pathlib import Path

import pytest

from brimline.agents import get_agent
from brimline.agents.content import SystemPrompt, TodoList, read_content
from brimline.agents.hook_adapter import HookRequest
from brimline.agents.kimi.paths import settings
from brimline.agents.kimi.transcript import WireParser
from brimline.agents.kimi.transcript_source import SOURCE
from brimline.agents.observations import Observation
from brimline.agents.tools import listed_skill
from brimline.agents.transcripts.source import Places
from brimline.context.events import (
    MAIN,
    AnyEvent,
    Call,
    Cleared,
    Compacted,
    Compacting,
    SessionSeen,
    Spent,
    Trigger,
)
from brimline.context.usage import Usage
from brimline.context.window import ResolveContext, Window, limit_of

TIME, AT = 1795052651717, 1795052651.717
COUNTS = {"inputOther": 10, "inputCacheRead": 20, "inputCacheCreation": 30, "output": 4}

Json = dict[str, object]


def line(record: Json) -> bytes:
    return json.dumps(record, separators=(",", ":")).encode()


def record(name: str, **more: object) -> Json:
    return {"type": name, "agentId": "main", "time": TIME, **more}


def usage(scope: str = "turn") -> Json:
    return record("usage.record", model="alias", usage=COUNTS, usageScope=scope)


def step(uuid: str) -> Json:
    return record("context.append_loop_event", event={"type": "step.begin", "uuid": uuid})


REQUEST = record("llm.request", kind="loop", model="kimi-k3", maxTokens=131_072)


def feed(*records: Json, parser: WireParser | None = None) -> list[AnyEvent]:
    parser = parser or WireParser()
    return [event for one in records for event in parser.feed(line(one)) or ()]


def test_call_counts_once() -> None:
    """The end of the step and the message repeat its usage; the model is that of the request."""
    ended = {"type": "step.end", "uuid": "u1", "usage": COUNTS, "messageId": "chatcmpl-1"}
    message = {"meta": {"usage": COUNTS, "messageId": "chatcmpl-1"}}
    events = feed(
        step("u1"),
        REQUEST,
        usage(),
        record("context.append_loop_event", event=ended),
        record("agent.message.appended", message=message),
        record("subagent.completed", usage=COUNTS),
    )
    assert events == [Call(at=AT, id="u1", usage=Usage(10, 20, 30, 4), model="kimi-k3")]


def test_second_call_of_a_step_is_another_one() -> None:
    events = feed(step("u1"), REQUEST, usage(), usage())
    assert [event.id for event in events if isinstance(event, Call)] == ["u1", "u1.2"]


def test_state_between_two_reads_names_the_step_and_the_model() -> None:
    first = WireParser()
    feed(step("u1"), REQUEST, parser=first)
    [call] = feed(usage(), parser=WireParser(first.carry()))
    assert isinstance(call, Call)
    assert (call.id, call.model) == ("u1", "kimi-k3")


@pytest.mark.parametrize("source", ["auto", "manual"])
def test_compaction_is_billed_and_holds_nothing(source: Trigger) -> None:
    """Its own counts of tokens are estimates, and are not taken."""
    begun = record("full_compaction.begin", source=source)
    applied = record("context.apply_compaction", tokensBefore=9, tokensAfter=7)
    beginning, spent, compacted = feed(begun, REQUEST, usage("session"), applied)
    assert beginning == Compacting(at=AT, trigger=source)
    assert isinstance(spent, Spent)
    assert (spent.usage, spent.model) == (Usage(10, 20, 30, 4), "kimi-k3")
    assert compacted == Compacted(at=AT, trigger=source)


def test_compaction_in_the_background_holds_what_was_there_when_it_began() -> None:
    begun = record("full_compaction.begin", source="auto")
    applied = record("context.apply_compaction")
    [first, _, _, compacted] = feed(usage("turn"), begun, usage("turn"), applied)
    assert isinstance(first, Call)
    assert compacted == Compacted(at=AT, trigger="auto", before=first.usage.held)


def test_clear_and_unknown_kinds() -> None:
    assert feed(record("context.clear")) == [Cleared(at=AT)]
    parser = WireParser()
    assert parser.feed(line(record("token_counting.rebased"))) == ()
    assert parser.feed(line(record("telepathy.begin"))) is None


def write_home(home: Path) -> Path:
    """Write a session with a subagent, and the registry of workspaces; returns the root."""
    root = home / ".kimi-code"
    for thread in ("main", "agent-0"):
        file = root / f"sessions/wd_p_1/session_s1/agents/{thread}/wire.jsonl"
        file.parent.mkdir(parents=True)
        file.write_bytes(line({"type": "metadata", "protocol_version": "1.5"}) + b"\n")
    (root / "sessions/wd_p_1/session_s1/wire.jsonl").write_text("")
    (root / "workspaces.json").write_text(
        json.dumps({"workspaces": {"wd_p_1": {"root": "/home/dev/project"}}})
    )
    return root


def test_threads_are_found_with_their_project(tmp_path: Path) -> None:
    root = write_home(tmp_path / "home")
    for places in (Places(tmp_path / "home", {}), Places(tmp_path, {"KIMI_CODE_HOME": str(root)})):
        found = sorted(SOURCE.transcripts(places), key=lambda each: each.thread)
        assert [(each.session, each.thread) for each in found] == [
            ("session_s1", "agent-0"),
            ("session_s1", MAIN),
        ]
        assert {each.project for each in found} == {"/home/dev/project"}
        [seen] = SOURCE.read(found[1])
        assert isinstance(seen, SessionSeen)
        assert (seen.session, seen.project) == ("session_s1", "/home/dev/project")


@pytest.mark.parametrize(
    ("loop_control", "limit", "origin"),
    [
        ("", 81_072, "known"),
        ("reserved_context_size = 20000", 111_072, "configured"),
        ("reserved_context_size = 5000", 111_411, "configured"),
        ("reserved_context_size = 400000", 111_411, "configured"),
        ("compaction_trigger_ratio = 0.5", 65_536, "configured"),
        ("compaction_trigger_ratio = 0.9", 81_072, "configured"),
    ],
)
def test_limit_is_the_smaller_of_a_share_and_a_reserve(
    loop_control: str, limit: int, origin: str, tmp_path: Path
) -> None:
    root = tmp_path / ".kimi-code"
    root.mkdir()
    model = '[models.mine]\nmodel = "kimi-k3"\nmax_context_size = 131072\n'
    (root / "config.toml").write_text(f"{model}[loop_control]\n{loop_control}\n")
    own = settings(Places(tmp_path, {}))
    assert own.windows == {"mine": 131_072, "kimi-k3": 131_072}
    known = ResolveContext(agent="kimi", model="kimi-k3", settings=own)
    resolved = limit_of(known, Window(131_072, "client", ""))
    assert resolved is not None
    assert (resolved.tokens, resolved.origin) == (limit, origin)


def test_window_of_the_environment_is_that_of_its_model(tmp_path: Path) -> None:
    env = {"KIMI_MODEL_NAME": "kimi-k3", "KIMI_MODEL_MAX_CONTEXT_SIZE": "200000"}
    assert settings(Places(tmp_path, env)).windows == {"kimi-k3": 200_000}
    (tmp_path / ".kimi-code").mkdir()
    (tmp_path / ".kimi-code/config.toml").write_text("no toml")
    assert settings(Places(tmp_path, {"KIMI_MODEL_NAME": "kimi-k3"})).windows == {}


def test_stream_names_the_session_at_its_end() -> None:
    parser = SOURCE.stream()
    assert parser.feed(b'{"role":"assistant","content":"Done."}') == ()
    end = b'{"role":"meta","type":"session.resume_hint","session_id":"session_s1"}'
    assert parser.feed(end) == (SessionSeen(session="session_s1", agent="kimi"),)
    assert parser.feed(b'{"type":"new-kind"}') is None


@pytest.mark.parametrize(
    ("first", "form"),
    [
        ({"type": "metadata", "protocol_version": "1.5"}, "transcript"),
        ({"role": "meta", "type": "system.version", "version": "2.1.0"}, "stream"),
        ({"type": "metadata"}, None),
        ({"role": "assistant", "content": "Done."}, None),
    ],
)
def test_only_marks_of_its_own_are_recognised(first: Json, form: str | None) -> None:
    assert SOURCE.recognise(line(first) + b"\n") == form


def hook_of(home: Path, event: str, session: str = "session_1") -> Observation | None:
    """What a hook reports, of a client whose folder the environment names."""
    body: Json = {"hook_event_name": event, "session_id": session, "cwd": "/project"}
    env = {"KIMI_CODE_HOME": str(home)}
    request = HookRequest("hook", "kimi", "1000-1", 1, env, line(body))
    return get_agent("kimi").hooks.observe(request, AT)


def test_hook_has_the_file_of_its_session(tmp_path: Path) -> None:
    """Hooks name no file; a session whose file is not there yet has none."""
    before = hook_of(tmp_path, "SessionStart")
    agents = tmp_path / "sessions/wd_project_1/session_1/agents"
    write_thread(agents, "main", AT)
    after = hook_of(tmp_path, "SessionStart")
    assert before is not None
    assert after is not None
    assert (before.transcript, after.transcript) == (None, str(agents / "main/wire.jsonl"))
    assert (after.kind, after.project, after.session) == ("started", "/project", "session_1")


@pytest.mark.parametrize("session", ["s" * 5_000, "a\0b", "*", "[", "/x"])
def test_id_that_is_no_name_of_a_folder_has_no_file(session: str, tmp_path: Path) -> None:
    write_thread(tmp_path / "sessions/wd_project_1/session_1/agents", "main", AT)
    observation = hook_of(tmp_path, "Stop", session)
    assert observation is not None
    assert observation.transcript is None


def test_end_of_a_subagent_is_no_end_of_the_turn(tmp_path: Path) -> None:
    """Whose turn ends is known by the file that was written last."""
    agents = tmp_path / "sessions/wd_project_1/session_1/agents"
    write_thread(agents, "main", AT)
    write_thread(agents, "agent-0", AT + 0.01)
    assert hook_of(tmp_path, "Stop") is None
    assert hook_of(tmp_path, "UserPromptSubmit") is not None
    write_thread(agents, "main", AT + 0.02)
    stopped = hook_of(tmp_path, "Stop")
    assert stopped is not None
    assert stopped.kind == "stopped"


def write_thread(agents: Path, thread: str, at: float) -> None:
    (agents / thread).mkdir(parents=True, exist_ok=True)
    file = agents / thread / "wire.jsonl"
    file.write_text("{}\n")
    os.utime(file, (at, at))


def test_setting_for_its_compaction_is_written_to_a_project(tmp_path: Path) -> None:
    """The client reads no settings of a project."""
    find, places = get_agent("kimi").compaction_setting, Places(tmp_path, {})
    assert find(places, str(tmp_path), ResolveContext()) is None
    setting = find(places, None, ResolveContext())
    assert setting is not None
    assert setting.file == tmp_path / ".kimi-code/config.toml"


def test_system_prompt_has_memory_files_skills_and_tools() -> None:
    listed = "- none: Not a skill.\n  Path: /p/a.md"
    file = f"<!-- From: /p/AGENTS.md -->\nBe brief.\n<!-- From: /p/a/AGENTS.md -->\n{listed}"
    skill = "- knots: Ties.\n  Path: /p/SKILL.md\n"
    prompt = f"You are.\n```````\n{file}\n```````\n### Project\n{skill}"
    names = ("Bash", "mcp__tides__high", 7)
    tools = [{"name": name, "description": "Does."} for name in names]
    bound = record("profile.bind", systemPrompt=prompt)
    records = [line(bound), line(record("llm.tools_snapshot", tools=tools))]
    (system,) = read_content(records, get_agent("kimi").content_reader())
    assert isinstance(system, SystemPrompt)
    own, *files, knots, bash, high, unnamed = system.parts
    assert own.text == "You are.\n```````\n\n\n```````\n### Project\n"
    assert [(each.by, each.name, each.text) for each in files] == [
        ("memory", "/p/AGENTS.md", "Be brief."),
        ("memory", "/p/a/AGENTS.md", listed),
    ]
    assert knots == listed_skill("knots", skill)
    assert (bash.server, high.server, high.names) == ("", "tides", ("mcp__tides__high",))
    assert (unnamed.names, unnamed.text) == ((), '{"name":7,"description":"Does."}')


def test_todos_have_a_title_and_are_done() -> None:
    """Its own words, by its source (2.1.0)."""
    states = {"Find the leak": "done", "Mend it": "in_progress", "Test it": "pending"}
    todos = [{"title": title, "status": status} for title, status in states.items()]
    call = {"type": "tool.call", "toolCallId": "t1", "name": "TodoList", "args": {"todos": todos}}
    written = line(record("context.append_loop_event", event=call))
    listed, _ = read_content([written], get_agent("kimi").content_reader())
    assert isinstance(listed, TodoList)
    assert [(todo.text, todo.is_done, todo.is_started) for todo in listed.todos] == [
        ("Find the leak", True, False),
        ("Mend it", False, True),
        ("Test it", False, False),
    ]
