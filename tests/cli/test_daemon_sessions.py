"""What commands take from the daemon, also if it answers with nonsense or not at all."""

import json
import os
import socket
import threading
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import msgspec
import pytest

from brimline.cli.daemon_sessions import (
    DaemonSessions,
    KnownSession,
    KnownStatus,
    KnownThread,
    merge_survey,
)
from brimline.context.tracker import Compared, Reading
from brimline.context.window import Limit, Window
from brimline.files.socket_path import socket_path
from brimline.sessions.status import SessionStatus, StatusSurvey, ThreadStatus
from brimline.settings import state_dir
from brimline.store.rows import SessionRow

from .terminal import User

Json = dict[str, Any]
MODEL = "claude-sonnet-4-5"
ALONE = "brimline: figures are from files alone: "


def reading(sent: int, at: float | None, window: int = 1_000_000) -> Reading:
    """A reading by a file."""
    return Reading(
        sent=sent, held=sent + 100, effective=None, window=Window(window, "catalogue", "known"),
        limit=Limit(window - 33_000, "known", "rule"), percent=None, percent_raw=None,
        percent_of_limit=None, client_shows=None, source="transcript", at=at, state="measured",
        cycle=0, compared=Compared(sent + 100, {"held": sent + 100}),
    )  # fmt: skip


def known_thread(thread: str = "main", at: float | None = 10.0, **fields: Any) -> KnownThread:
    """A thread of the daemon, which knows a shorter window."""
    values: Json = {
        "session": "s1", "thread": thread, "cycle": 1, "seq": 1, "source": "status line",
        "state": "measured", "at": at, "sent": 100_000, "held": 100_000, "window": 200_000,
        "window_why": "set", "limit": 150_000, "limit_why": "set", "percent": 50.0,
        "percent_raw": 50.0, "percent_of_limit": 66.7, "model": MODEL, "fullness": "medium",
    }  # fmt: skip
    return KnownThread(**(values | fields))


def known(*threads: KnownThread, id: str = "s1", **fields: Any) -> DaemonSessions:
    session = KnownSession(SessionRow(id, "claude", 20.0, **fields), threads)
    return DaemonSessions("daemon", {("claude", id): session})


def survey(*rows: ThreadStatus) -> StatusSurvey:
    main, *others = rows
    files = SessionStatus("claude", "s1", "s1", "/project", "Title", 15.0, main, tuple(others))
    return StatusSurvey([files], frozenset({"s1"}), [])


def row(thread: str, sent: int, at: float | None, model: str = MODEL) -> ThreadStatus:
    return ThreadStatus(thread, model, None, reading(sent, at))


def test_thread_is_shown_as_the_daemon_has_it() -> None:
    (merged,) = merge_survey(survey(row("main", 120_000, 10.0)), known(known_thread()))
    main = merged.main
    assert isinstance(main, KnownStatus)
    assert (main.reading.sent, main.reading.source, main.cycle) == (100_000, "status line", 1)
    assert (main.reading.window, main.fullness) == (Window(200_000, "client", "set"), "medium")
    assert (merged.project, merged.title, merged.modified) == ("/project", "Title", 20.0)


def test_file_that_is_ahead_of_the_daemon_is_shown_with_the_daemons_window() -> None:
    (merged,) = merge_survey(survey(row("main", 120_000, 11.0)), known(known_thread()))
    main = merged.main
    assert not isinstance(main, KnownStatus)
    assert (main.reading.sent, main.reading.percent) == (120_000, 60.0)
    assert main.reading.percent_of_limit == 80.1
    assert main.reading.limit == Limit(150_000, "known", "set")


def test_parts_that_only_a_file_has_are_of_the_same_call() -> None:
    """The daemon does not report the earlier reasoning that Codex compares with its limit."""
    parts = {"held": 100_000, "earlier reasoning": 7_000}
    files = msgspec.structs.replace(reading(100_000, 10.0), compared=Compared(107_000, parts))
    same = known_thread(pending=500).merge(files, MODEL, "codex").compared
    assert str(same) == "107,500 = held 100,000 + pending 500 + earlier reasoning 7,000"
    other = known_thread(sent=90_000).merge(files, MODEL, "codex").compared
    assert str(other) == "100,000 = held 100,000"


def test_file_that_is_ahead_with_another_model_has_its_own_window() -> None:
    ahead = row("main", 120_000, 11.0, model="claude-opus-5")
    (merged,) = merge_survey(survey(ahead), known(known_thread()))
    assert merged.main == ahead


def test_file_that_is_ahead_of_unknown_sizes_has_no_percentages() -> None:
    unknown = known_thread(at=None, window=None, limit=None)
    (merged,) = merge_survey(survey(row("main", 120_000, 11.0)), known(unknown))
    assert (merged.main.reading.percent, merged.main.reading.percent_of_limit) == (None, None)


def test_threads_of_both_are_shown_once_the_newest_first() -> None:
    files = survey(row("main", 1, 1.0), row("a1", 2, 5.0), row("a2", 3, 30.0))
    daemon = known(known_thread(), known_thread("a1", at=6.0), known_thread("a3", at=8.0))
    (merged,) = merge_survey(files, daemon)
    assert [each.thread for each in merged.threads] == ["main", "a2", "a3", "a1"]
    assert isinstance(merged.subagents[2], KnownStatus)


def test_session_that_only_the_daemon_has_is_added_with_a_short_id() -> None:
    daemon = known(known_thread("a1"), id="s1-of-the-daemon", title="Of a program")
    merged = merge_survey(survey(row("main", 1, 1.0)), daemon)
    assert {(each.short_id, each.title) for each in merged} == {
        ("s1", "Title"),
        ("s1-of-th", "Of a program"),
    }


def test_message_that_nothing_delivers_is_a_need_without_a_guess_of_its_own(user: User) -> None:
    why = "Brimline has no hooks for my-agent."
    row = SessionRow("bbb", "my-agent", user.now)
    known = KnownSession(row, (known_thread(at=user.now),), unread=1, undeliverable=why)
    with answering(user, response(msgspec.json.encode([known]))):
        (shown,) = user.run("status", "--json").json
    assert shown["need"]["text"] == f"1 message waits, and nothing will deliver it: {why}"


def test_age_is_counted_from_the_last_call_else_from_when_the_session_was_active() -> None:
    files = survey(row("main", 1, None), row("a1", 2, 5.0)).sessions[0]
    assert [files.last_call_at(each) for each in files.threads] == [15.0, 5.0]


@contextmanager
def answering(user: User, answer: bytes) -> Generator[None]:
    """A daemon's socket that gives one answer to each request."""
    path = socket_path(state_dir(user.env, user.home), os.getuid(), "http")
    path.parent.mkdir(parents=True, mode=0o700, exist_ok=True)

    def serve(listening: socket.socket) -> None:
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            with connection:
                connection.recv(65_536)
                connection.sendall(answer)

    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
        listening.listen()
        thread = threading.Thread(target=serve, args=(listening,))
        thread.start()
        try:
            yield
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            thread.join()
            path.unlink()


def response(body: bytes, status: str = "200 OK") -> bytes:
    return b"HTTP/1.1 %s\r\nContent-Length: %d\r\n\r\n%s" % (status.encode(), len(body), body)


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (response(b"{}"), "Expected `array`, got `object`"),
        (response(b"\xff"), ""),
        (response(b'{"error": "the store fails"}', "503 Unavailable"), "the store fails"),
        (response(b"{}", "500 Wrong"), "HTTP 500"),
        (response(b"oops", "500 Wrong"), "the daemon answered GET /v1/sessions?since=24h with 500"),
    ],
)
def test_answer_that_is_no_list_of_sessions_is_reported(
    user: User, answer: bytes, problem: str
) -> None:
    user.session("aaa", user.call("m1", 50_000))
    with answering(user, answer):
        result = user.run("status", "--json")
    assert result.code == 0
    assert result.err.startswith(ALONE + problem)
    assert [each["answered_by"] for each in result.json] == ["files"]


@pytest.mark.parametrize("answer", [b"SSH-2.0\r\n", b"", response(b"[]")[:-1]])
def test_socket_of_something_else_is_no_daemon(user: User, answer: bytes) -> None:
    user.session("aaa", user.call("m1", 50_000))
    with answering(user, answer):
        result = user.run("status", "--json")
    assert (result.code, result.err, len(result.json)) == (0, "", 1)


def test_sessions_that_cannot_be_decoded_do_not_hide_others(user: User) -> None:
    good = KnownSession(SessionRow("bbb", "my-agent", user.now), (known_thread(at=user.now),))
    items: list[Any] = [
        {"session": 1},
        None,
        [],
        msgspec.to_builtins(good),
        {"session": {}, "threads": "x"},
    ]
    with answering(user, response(json.dumps(items).encode())):
        result = user.run("status", "--json")
    assert (result.code, result.err) == (0, "")
    assert [(each["session_id"], each["answered_by"]) for each in result.json] == [
        ("bbb", "daemon")
    ]


def test_completion_lists_the_sessions_and_titles_of_the_daemon(user: User) -> None:
    user.session("aaa", user.call("m1", 50_000), age=60)
    titles = {"aaa": "Fix: the parser", "bbb": "Of a\tprogram"}
    sessions = [
        KnownSession(SessionRow(id, "claude", user.now - 90, title=title), (known_thread(),))
        for id, title in titles.items()
    ]
    with answering(user, response(msgspec.json.encode(sessions))):
        result = user.run("completion", "sessions")
    assert result == (0, "aaa\tFix: the parser\nbbb\tOf a\ufffdprogram\n", "")
    assert user.run("completion", "sessions").out == "aaa\tclaude\n"


def test_completion_has_no_id_that_a_shell_would_run(user: User) -> None:
    user.session("$(touch ran)", user.call("m1", 9_000, sessionId="$(touch ran)"))
    user.session("plain", user.call("m2", 9_000, sessionId="plain"))
    assert user.run("completion", "sessions").out == "plain\tclaude\n"


def test_without_a_daemon_nothing_is_said_of_it(user: User) -> None:
    user.session("aaa", user.call("m1", 50_000))
    result = user.run("status", "--json")
    assert (result.code, result.err) == (0, "")
    assert [each["answered_by"] for each in result.json] == ["files"]
    assert user.run("report", "--json").json["source"] == "files"


@pytest.mark.parametrize("body", [b"{}", b"[1]", b'[{"agent": "claude"}]'])
def test_limits_of_another_version_of_the_daemon_are_read_from_files(
    user: User, body: bytes
) -> None:
    with answering(user, response(body)):
        result = user.run("windows", "--json")
    assert (result.code, result.json["drifts"]) == (0, [])
