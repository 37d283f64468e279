"""What fills a session's contexts, and drafts of handoffs, read from its transcripts on request."""

import asyncio
import json
import os
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, closing, suppress
from http.client import HTTPConnection
from pathlib import Path
from select import select
from typing import Any

import msgspec
import pytest
from starlette.requests import Request

from brimline.agents.fresh_session import FreshPart
from brimline.agents.fresh_session.answers import ClientAnswer
from brimline.agents.fresh_session.measure import cache_path, save_answer
from brimline.agents.transcripts.source import Places
from brimline.api.responses import RequestRefused
from brimline.api.transcripts import TranscriptRoutes, find_session_files
from brimline.monitor.monitor import Monitor
from brimline.sessions.files import SessionFiles
from brimline.sessions.ledger.session_ledger import NO_TRANSCRIPT
from brimline.store.rows import SessionRow
from brimline.store.sqlite import MemoryStore
from sessions.machine import call, subagent_fields

from .filled_session import MODEL, write_filled_session
from .running import Running
from .test_api import call_event
from .test_daemon import SESSION, hook_input

Json = dict[str, Any]
FindFiles = Callable[[Places, SessionRow], SessionFiles | None]

ROW = SessionRow("filled", "claude", 0.0)


def start_session(daemon: Running, session: str, calls: int = 6) -> Path:
    """Write a session and wait until the daemon has read it."""
    path = write_filled_session(daemon.home, session, calls)
    daemon.until(
        "/v1/sessions", lambda views: any(view["session"]["id"] == session for view in views)
    )
    return path


def explained(daemon: Running, session: str, query: str = "") -> Json:
    return daemon.get(f"/v1/sessions/{session}/explanation{query}")


def total(thread: Json) -> int:
    return sum(each["tokens"] for each in thread["categories"]) + thread["unexplained"]


@pytest.mark.slow
def test_explanation_adds_up_to_what_was_sent(shared_daemon: Running) -> None:
    start_session(shared_daemon, "sums")
    answer = explained(shared_daemon, "sums")
    (main,) = answer["threads"]
    view = shared_daemon.get("/v1/sessions/sums")
    assert main["sent"] == total(main) == view["threads"][0]["sent"]
    assert (answer["agent"], answer["session_id"], answer["problem"]) == ("claude", "sums", None)
    names = [each["name"] for each in main["categories"]]
    assert names == [name for name in answer["category_names"] if name in names]
    assert {each["kind"] for each in main["waste"]} >= {"read again unchanged"}
    assert [miss["call"] for miss in main["misses"]] == ["m4"]
    assert main["pending"] > 0
    assert "series" not in main


@pytest.mark.slow
def test_series_has_each_call_with_its_tools(shared_daemon: Running) -> None:
    start_session(shared_daemon, "series")
    (main,) = explained(shared_daemon, "series", "?series=1")["threads"]
    assert [each["call"] for each in main["series"]] == [f"m{number}" for number in range(6)]
    assert {tuple(each["tools"]) for each in main["series"]} == {("Read",)}
    for each in main["series"]:
        assert sum(each["categories"]) + each["unexplained"] == each["sent"]


@pytest.mark.slow
def test_transcript_of_a_hook_outside_of_the_client_folders_is_explained(
    shared_daemon: Running,
) -> None:
    written = write_filled_session(shared_daemon.folder / "elsewhere", SESSION)
    shared_daemon.hook(hook_input("UserPromptSubmit", transcript_path=str(written)))
    (main,) = explained(shared_daemon, SESSION)["threads"]
    assert main["sent"] == total(main) > 0


@pytest.mark.slow
def test_explanation_follows_the_transcript(shared_daemon: Running) -> None:
    start_session(shared_daemon, "follows", calls=3)
    (before,) = explained(shared_daemon, "follows")["threads"]
    assert explained(shared_daemon, "follows")["threads"] == [before]
    start_session(shared_daemon, "follows", calls=5)
    (after,) = explained(shared_daemon, "follows")["threads"]
    assert after["sent"] > before["sent"]


@pytest.mark.slow
def test_subagents_are_threads_of_their_own(shared_daemon: Running) -> None:
    own = start_session(shared_daemon, "subagents")
    other = own.with_suffix("") / "subagents" / "agent-a1.jsonl"
    other.parent.mkdir(parents=True)
    other.write_bytes(call("s1", 9_000, sessionId="subagents", **subagent_fields("a1")))
    threads = explained(shared_daemon, "subagents")["threads"]
    assert [(each["thread"], each["sent"]) for each in threads][1:] == [("a1", 9_000)]


@pytest.mark.slow
def test_session_of_a_program_has_no_explanation_and_no_draft(shared_daemon: Running) -> None:
    shared_daemon.post("/v1/events", {"events": [call_event(1)]})
    answer = explained(shared_daemon, "sdk-1")
    assert (answer["threads"], answer["problem"]) == ([], NO_TRANSCRIPT)
    status, problem = shared_daemon.refused("/v1/sessions/sdk-1/handoff/draft", b"")
    assert (status, problem["error"]) == (422, NO_TRANSCRIPT)


@pytest.mark.slow
def test_draft_is_saved_as_the_session_has_no_document(shared_daemon: Running) -> None:
    path = start_session(shared_daemon, "drafted")
    draft = shared_daemon.post("/v1/sessions/drafted/handoff/draft", None)
    assert (draft["path"], draft["author"], draft["draft"]) == (str(path), "brimline", True)
    assert "Please look at the sources" in draft["text"]
    assert draft["calls"] == 6
    assert shared_daemon.get("/v1/sessions/drafted/handoff")["handoffs"] == [draft]
    assert shared_daemon.get("/v1/sessions/drafted")["handoff"]["state"] == "draft"


@pytest.mark.slow
def test_draft_does_not_replace_the_document_of_the_agent(shared_daemon: Running) -> None:
    start_session(shared_daemon, "written")
    document = shared_daemon.folder / "handoff.md"
    document.write_text("Go on with the parser.")
    shared_daemon.hand_over("written", document)
    draft = shared_daemon.post("/v1/sessions/written/handoff/draft", None)
    assert "Please look at the sources" in draft["text"]
    (kept,) = shared_daemon.get("/v1/sessions/written/handoff")["handoffs"]
    assert kept["text"] == "Go on with the parser."


@pytest.mark.slow
def test_page_may_draft_and_strangers_may_not(shared_daemon: Running) -> None:
    start_session(shared_daemon, "asked")
    path = "/v1/sessions/asked/handoff/draft"
    assert shared_daemon.refused(path, b"", {"Authorization": "Bearer wrong"})[0] == 401
    assert shared_daemon.refused(path, b"", {"Origin": "http://127.0.0.1:1"})[0] == 403
    assert shared_daemon.over_unix("POST", path)[0] == 201


@pytest.mark.slow
def test_other_requests_are_answered_while_a_large_transcript_is_read(
    shared_daemon: Running,
) -> None:
    path = start_session(shared_daemon, "large", calls=700)
    assert path.stat().st_size > 6 << 20
    with ExitStack() as stack:
        connections = [HTTPConnection("127.0.0.1", shared_daemon.port) for _ in range(3)]
        for each in connections:
            stack.enter_context(closing(each))
            explanation = "/v1/sessions/large/explanation?series=1"
            each.request("GET", explanation, headers=shared_daemon.authorization)
        answered_meanwhile = 0
        while not select([each.sock for each in connections], [], [], 0)[0]:
            shared_daemon.get("/healthz")
            answered_meanwhile += 1
        answers = [json.load(each.getresponse()) for each in connections]
    assert {len(each["threads"][0]["series"]) for each in answers} == {700}
    assert answered_meanwhile > 5  # of a daemon that is blocked: 2


def answer_of(routes: TranscriptRoutes, query: str = "") -> Any:
    request = Request({"type": "http", "query_string": query.encode(), "headers": []})
    return routes.explanation(request, ROW)


def routes_of(
    home: Path, find_files: FindFiles = find_session_files, wait_s: float = 10.0
) -> TranscriptRoutes:
    monitor = Monitor(MemoryStore(), time.time)
    return TranscriptRoutes(monitor, Places(home, {}), wait_s, find_files)


def test_requests_for_one_session_share_one_read(tmp_path: Path) -> None:
    write_filled_session(tmp_path, "filled")
    finds: list[str] = []
    go_on = threading.Event()

    def find_files(places: Places, row: SessionRow) -> SessionFiles | None:
        finds.append(row.id)
        go_on.wait(10)
        return find_session_files(places, row)

    async def ask() -> list[bytes]:
        routes = routes_of(tmp_path, find_files)
        waiting = [asyncio.ensure_future(answer_of(routes)) for _ in range(3)]
        await asyncio.sleep(0.05)
        go_on.set()
        return [(await each).body for each in waiting]

    bodies = asyncio.run(ask())
    assert (finds, len(set(bodies))) == (["filled"], 1)


def test_unchanged_transcript_is_read_once(tmp_path: Path) -> None:
    path = write_filled_session(tmp_path, "filled")

    async def ask() -> tuple[bytes, bytes, bytes]:
        routes = routes_of(tmp_path)
        first = (await answer_of(routes)).body
        status = path.stat()
        path.write_bytes(b" " * status.st_size)  # the same size and time: not read again
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
        second = (await answer_of(routes)).body
        os.utime(path)
        return first, second, (await answer_of(routes)).body

    first, second, third = asyncio.run(ask())
    assert first == second != third
    assert msgspec.json.decode(third)["threads"] == []


def test_new_answer_of_the_client_is_noticed(tmp_path: Path) -> None:
    write_filled_session(tmp_path, "filled")
    parts = (FreshPart("system prompt", "", 3_000), FreshPart("built-in tools", "", 9_000))
    answer = ClientAnswer("get_context_usage", MODEL, (), parts=parts)
    routes = TranscriptRoutes(
        Monitor(MemoryStore(), time.time), Places(tmp_path, {}), cache=tmp_path
    )

    async def ask() -> list[str]:
        (main,) = msgspec.json.decode((await answer_of(routes)).body)["threads"]
        return [part["kind"] for part in main["system_parts"]]

    assert asyncio.run(ask()) == ["system and tools"]
    save_answer(cache_path(tmp_path, "a"), answer, time.time(), client="2.1.325", folder="/project")
    assert asyncio.run(ask()) == ["built-in tools", "system prompt"]


async def test_read_that_takes_too_long_is_refused_and_goes_on(tmp_path: Path) -> None:
    go_on = threading.Event()

    def find_files(places: Places, row: SessionRow) -> None:
        go_on.wait(10)

    routes = routes_of(tmp_path, find_files, 0.05)
    for _ in range(2):
        with pytest.raises(RequestRefused, match=r"not read after 0\.05 s"):
            await answer_of(routes)
    go_on.set()
    answer = None
    while answer is None:
        with suppress(RequestRefused):
            answer = await answer_of(routes)
    assert NO_TRANSCRIPT.encode() in answer.body


def test_other_session_whose_id_begins_the_same_is_not_taken(tmp_path: Path) -> None:
    write_filled_session(tmp_path, "filled-too")
    assert find_session_files(Places(tmp_path, {}), ROW) is None


def test_unreadable_transcript_is_a_problem(tmp_path: Path) -> None:
    path = write_filled_session(tmp_path, "filled")
    places = Places(tmp_path, {})
    files = find_session_files(places, ROW)
    assert files is not None
    path.unlink()

    async def ask() -> bytes:
        return (await answer_of(routes_of(tmp_path, lambda places, row: files))).body

    answer = msgspec.json.decode(asyncio.run(ask()))
    assert answer["threads"] == []
    assert answer["problem"].startswith(f"cannot read {path}: ")
