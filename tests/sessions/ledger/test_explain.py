"""What `explain` makes of ledgers: cycles, and tokens by tool, server, file and command."""

from pathlib import Path

from brimline.context.events import Call, Cleared, Compacted
from brimline.context.tracker import Session, Thread, fold, read
from brimline.context.usage import Usage
from brimline.sessions.ledger.call_growth import StepRecorder
from brimline.sessions.ledger.context_parts import ContextPart
from brimline.sessions.ledger.explain import explain, tokens_left
from brimline.sessions.ledger.session_ledger import SessionLedger, settle


def session_ledger(
    *items: Call | Cleared | Compacted | ContextPart, agent: str = "claude"
) -> SessionLedger:
    recorder = StepRecorder()
    session = Session(agent=agent, id="s1", records_compactions=True)
    for item in items:
        if isinstance(item, ContextPart):
            recorder.add_part(item)
        else:
            recorder.add_event(item)
            session = fold(session, [item])
    return SessionLedger(session, [settle("main", recorder, session.threads["main"])])


def call(id: str, sent: int) -> Call:
    return Call(id=id, usage=Usage(sent, 0, 0, 0), model="m")


def test_cycles_end_with_their_last_call() -> None:
    ledger = session_ledger(
        Cleared(),
        call("a", 1_000),
        call("b", 2_000),
        Compacted(at=1.0),
        call("c", 1_500),
    )
    (thread,) = explain([ledger]).threads
    assert [(each.cycle, each.calls, each.sent) for each in thread.cycles] == [
        (1, 2, 2_000),
        (2, 1, 1_500),
    ]


def test_results_by_tool_server_file_and_command() -> None:
    read = ContextPart("tool results", "Read a", 400, tool="Read", file="a.py")
    ask = ContextPart("tool results", "ask", 400, tool="mcp__tides__ask", server="tides")
    run = ContextPart("tool results", "make", 400, tool="Bash", command="make")
    ledger = session_ledger(call("a", 1_000), read, ask, run, call("b", 1_600))
    results = explain([ledger]).threads[0].tool_results
    assert [(each.name, each.tokens) for each in results.by_tool] == [
        ("Read", 200),
        ("mcp__tides__ask", 200),
        ("Bash", 200),
    ]
    assert [each.name for each in results.by_server] == ["tides"]
    assert [each.name for each in results.by_file] == ["a.py"]
    assert [each.name for each in results.by_command] == ["make"]


def test_part_without_a_text_says_so() -> None:
    search = ContextPart("tool results", "web_search", 0, tool="web_search", is_recorded=False)
    ledger = session_ledger(call("a", 1_000), search, call("b", 9_000))
    (results,) = [
        each for each in explain([ledger]).threads[0].categories if each.name == "tool results"
    ]
    assert [(each.what, each.tokens) for each in results.pieces] == [
        ("web_search (not recorded)", 8_000)
    ]


def test_category_that_an_agent_does_not_record_says_so() -> None:
    (thread,) = explain([session_ledger(call("a", 1_000), agent="opencode")]).threads
    system, memory = thread.categories
    assert (system.name, system.note) == ("system and tools", None)
    assert (memory.name, memory.tokens, memory.pieces) == ("memory files", 0, [])
    assert "a part of the system prompt" in (memory.note or "")


def test_answer_of_the_client_is_looked_for_in_the_cache_only(tmp_path: Path) -> None:
    ledger = session_ledger(call("a", 1_000))
    for cache in (None, tmp_path):
        (thread,) = explain([ledger], cache=cache).threads
        assert thread.answered_at is None


def test_nothing_is_known_to_be_left_while_it_is_unknown_what_is_held() -> None:
    assert tokens_left(read(Session(), Thread("main"), "transcript")) == []
