"""One transcript or stream: from a path, a session id, or standard input."""

import io
import json
import os
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from brimline.agents import get_agent
from brimline.agents.transcripts.source import Places
from brimline.context.events import MAIN
from brimline.errors import (
    BrimlineError,
    UnknownAgent,
    UnknownSession,
    UnreadableTranscript,
    UnrecognisedFormat,
)
from brimline.sessions.files import HEAD_BYTES, LoadedSession
from brimline.sessions.target import load_target
from run.homes import home_of

from .machine import Machine, call, compaction, subagent_fields, user_record

LINUX = sys.platform == "linux"


def resolve(
    machine: Machine, target: str | Path, stdin: bytes = b"", agent: str | None = None
) -> LoadedSession:
    return load_target(str(target), machine.places, io.BytesIO(stdin), agent)


def calls(folded: LoadedSession) -> dict[str, list[str]]:
    """The call ids of each thread."""
    return {name: list(thread.calls) for name, thread in folded.session.threads.items()}


def stream() -> bytes:
    """Output of `claude -p --output-format stream-json`."""
    usage = {"input_tokens": 3, "cache_read_input_tokens": 20_000, "output_tokens": 1}
    message = {"id": "m1", "model": "claude-sonnet-4-5", "usage": usage}
    lines: list[dict[str, Any]] = [
        {"type": "system", "subtype": "init", "session_id": "s1", "cwd": "/project",
         "model": "claude-sonnet-4-5"},
        {"type": "assistant", "session_id": "s1", "message": message},
        {"type": "result", "session_id": "s1", "usage": usage,
         "modelUsage": {"claude-sonnet-4-5": {"contextWindow": 200_000}}},
    ]  # fmt: skip
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


class Unseekable(io.RawIOBase):
    """A pipe: a few bytes at a time, no seeking."""

    def __init__(self, data: bytes) -> None:
        self._file = io.BytesIO(data)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Read up to 777 bytes."""
        return self._file.readinto(memoryview(buffer)[:777])


# Paths.


def test_transcript_anywhere_is_read_with_the_session_of_its_records(
    machine: Machine, tmp_path: Path
) -> None:
    path = tmp_path / "copy.txt"
    path.write_bytes(user_record() + call("m1") + compaction(1) + call("m2"))
    folded = resolve(machine, path)
    assert calls(folded) == {MAIN: ["m1", "m2"]}
    assert (folded.session.id, folded.session.agent, folded.session.project) == (
        "s1",
        "claude",
        "/project",
    )
    assert folded.tally.records == 5


def test_file_with_a_stream_is_read_as_a_stream(machine: Machine, tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    path.write_bytes(stream())
    folded = resolve(machine, path)
    assert calls(folded) == {MAIN: ["m1"]}
    assert folded.session.windows["claude-sonnet-4-5"] == 200_000


def test_session_among_the_agents_files_includes_its_subagents(machine: Machine) -> None:
    path = machine.session("s1", call("m1"))
    machine.subagent("s1", "a1", call("m2", **subagent_fields("a1")))
    machine.subagent("s1", "a2", call("m3", **subagent_fields("a2")))
    machine.subagent("s2", "a3", call("m4", **subagent_fields("a3")))
    assert calls(resolve(machine, path)) == {MAIN: ["m1"], "a1": ["m2"], "a2": ["m3"]}


def test_link_to_a_session_includes_its_subagents(machine: Machine, tmp_path: Path) -> None:
    link = tmp_path / "link.jsonl"
    link.symlink_to(machine.session("s1", call("m1")))
    machine.subagent("s1", "a1", call("m2", **subagent_fields("a1")))
    assert set(calls(resolve(machine, link))) == {MAIN, "a1"}


def test_file_in_an_agent_s_folder_is_that_agent_s(machine: Machine, tmp_path: Path) -> None:
    """As in a report, also if its first lines are lost or not enough to recognise it."""
    damaged = (b"x" * 999 + b"\n") * (HEAD_BYTES // 500) + call("m1")
    path = machine.session("s1", damaged)
    assert calls(resolve(machine, path)) == {MAIN: ["m1"]}
    assert calls(resolve(machine, machine.session("s2"))) == {}
    (tmp_path / "x.jsonl").write_bytes(damaged)
    with pytest.raises(UnrecognisedFormat):
        resolve(machine, tmp_path / "x.jsonl")


def test_subagent_file_has_its_own_thread_only(machine: Machine) -> None:
    machine.session("s1", call("m1"))
    path = machine.subagent("s1", "a1", call("m2", **subagent_fields("a1")))
    assert calls(resolve(machine, path)) == {"a1": ["m2"]}


def test_agent_option_decides_when_the_first_lines_do_not(machine: Machine, tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(b"{}\n" * 10 + call("m1"))
    assert calls(resolve(machine, path, agent="claude")) == {MAIN: ["m1"]}
    path.write_bytes(b'{"type":"user"}\n' * (HEAD_BYTES // 10) + call("m1"))
    with pytest.raises(UnrecognisedFormat):
        resolve(machine, path)
    assert calls(resolve(machine, path, agent="claude")) == {MAIN: ["m1"]}


def test_stream_is_recognised_with_the_agent_option(machine: Machine, tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(stream())
    assert calls(resolve(machine, path, agent="claude")) == {MAIN: ["m1"]}


def test_unknown_agent_error_lists_the_known_ones(machine: Machine, tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(call("m1"))
    for target in (str(path), "-", "s1"):
        with pytest.raises(UnknownAgent, match="codex"):
            resolve(machine, target, call("m1"), agent="vim")


@pytest.mark.parametrize("data", [b"", b"\n", b"hello\n", b'{"type":"hello"}\n', b"\xff\xfe\0"])
def test_unknown_format_is_an_error_with_a_hint(
    machine: Machine, tmp_path: Path, data: bytes
) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(data)
    with pytest.raises(UnrecognisedFormat, match="--agent"):
        resolve(machine, path)


def unreadable(machine: Machine, target: str | Path) -> str:
    """The error and the hint for a target that cannot be read."""
    with pytest.raises(UnreadableTranscript) as raised:
        resolve(machine, target)
    assert raised.value.path == str(target)
    return str(raised.value)


def test_directory_error_says_what_to_name_instead(machine: Machine, tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").mkdir()
    error = unreadable(machine, tmp_path / "x.jsonl")
    assert "it is a directory" in error
    assert "Name a transcript file inside it." in error


def test_fifo_is_refused_without_blocking(machine: Machine, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "x.jsonl")
    assert "Pipe it to" in unreadable(machine, tmp_path / "x.jsonl")


def test_device_is_refused(machine: Machine) -> None:
    assert "not a regular file" in unreadable(machine, "/dev/null")


def test_broken_link_is_reported_as_missing(machine: Machine, tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").symlink_to(tmp_path / "none")
    assert "no such file" in unreadable(machine, tmp_path / "x.jsonl")


def test_link_to_itself_is_an_error(machine: Machine, tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").symlink_to(tmp_path / "x.jsonl")
    unreadable(machine, tmp_path / "x.jsonl")


def test_missing_path_is_an_error(machine: Machine, tmp_path: Path) -> None:
    assert "no such file" in unreadable(machine, tmp_path / "none.jsonl")


@pytest.mark.usefixtures("without_privileges")
def test_file_without_permission_is_an_error(machine: Machine, tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(call("m1"))
    path.chmod(0)
    assert "Permission denied" in unreadable(machine, path)


@pytest.mark.skipif(not LINUX, reason="there is no such file")
def test_failing_read_is_an_error(machine: Machine, tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").symlink_to("/proc/self/mem")
    unreadable(machine, tmp_path / "x.jsonl")


# Sessions.


def test_session_id_or_prefix_finds_it_with_its_subagents(machine: Machine) -> None:
    machine.session("abcd-1", call("m1", sessionId="abcd-1"))
    machine.subagent("abcd-1", "a1", call("m2", sessionId="abcd-1", **subagent_fields("a1")))
    for target in ("abcd-1", "abc"):
        folded = resolve(machine, target)
        assert calls(folded) == {MAIN: ["m1"], "a1": ["m2"]}
        assert folded.session.id == "abcd-1"
    assert calls(resolve(machine, "abc", agent="claude")) == {MAIN: ["m1"], "a1": ["m2"]}


def test_unknown_target_is_neither_a_file_nor_a_session(machine: Machine) -> None:
    with pytest.raises(UnknownSession, match="no file or session named 'nope'"):
        resolve(machine, "nope")


def test_session_whose_only_file_is_no_file_is_unknown(machine: Machine) -> None:
    (machine.projects / "-project").mkdir()
    (machine.projects / "-project" / "abc.jsonl").mkdir()
    (machine.projects / "-project" / "abd.jsonl").symlink_to("none")
    with pytest.raises(UnknownSession):
        resolve(machine, "ab")


# Standard input.


def test_transcript_is_read_from_standard_input(machine: Machine) -> None:
    folded = resolve(machine, "-", user_record() + call("m1"))
    assert calls(folded) == {MAIN: ["m1"]}
    assert folded.tally.records == 2


def test_stream_is_read_from_standard_input(machine: Machine) -> None:
    folded = resolve(machine, "-", stream())
    assert calls(folded) == {MAIN: ["m1"]}
    assert folded.session.windows["claude-sonnet-4-5"] == 200_000


def test_long_pipe_in_small_pieces_is_read_whole(machine: Machine) -> None:
    data = b"".join(user_record("x" * 900) + call(f"m{i}") for i in range(100))
    assert len(data) > 2 * HEAD_BYTES
    folded = load_target("-", machine.places, io.BufferedReader(Unseekable(data)))
    assert len(calls(folded)[MAIN]) == 100
    assert folded.tally.records == 200


def test_document_longer_than_the_detected_part_is_read_whole(machine: Machine) -> None:
    time = "2026-11-15T03:25:06.382Z"
    reply = {"timestamp": time, "type": "gemini", "content": "x" * 900, "model": "gemini-2.5-pro"}
    counts = {"input": 1_000, "output": 5, "cached": 0, "thoughts": 0, "tool": 0, "total": 1_005}
    messages = [{"id": f"m{i}", **reply, "tokens": counts} for i in range(200)]
    document = {"sessionId": "s1", "projectHash": "ab", "startTime": time, "messages": messages}
    data = json.dumps(document).encode()
    assert len(data) > 2 * HEAD_BYTES
    for agent in (None, "gemini"):
        assert len(calls(resolve(machine, "-", data, agent))[MAIN]) == 200


def test_empty_standard_input_is_unrecognised(machine: Machine) -> None:
    with pytest.raises(UnrecognisedFormat, match="standard input"):
        resolve(machine, "-")


def test_agent_option_applies_to_standard_input(machine: Machine) -> None:
    assert calls(resolve(machine, "-", b"{}\n" + call("m1"), "claude")) == {MAIN: ["m1"]}
    assert calls(resolve(machine, "-", b"", "claude")) == {}


def test_any_target_raises_only_errors_of_brimline(machine: Machine, tmp_path: Path) -> None:
    long = "x" * 5_000
    for target in ("", ".", "..", "/", "//", long, f"/{long}", "a\nb", "\x1b[31m"):
        with pytest.raises(BrimlineError):
            resolve(machine, target)


def test_stream_of_another_client_is_refused_also_if_its_agent_is_named(machine: Machine) -> None:
    data = stream().replace(b'"cwd"', b'"qwen_code_version": "0.24.4", "cwd"')
    place = machine.home / "stream.jsonl"
    place.write_bytes(data)
    for target, stdin in (("-", data), (place, b"")):
        with pytest.raises(UnreadableTranscript, match="`init` has a `qwen_code_version`"):
            resolve(machine, target, stdin, agent="claude")


def test_changed_format_of_a_stream_is_reported(machine: Machine) -> None:
    new_kinds = b'{"type":"new-kind","session_id":"s1"}\n' * 20
    assert resolve(machine, "-", stream()).problems == ()
    (problem,) = resolve(machine, "-", stream() + new_kinds).problems
    assert "does not understand this version of Claude Code: standard input cannot" in problem


@pytest.mark.parametrize(
    ("agent", "recording"),
    [("goose", "resume-compact"), ("kilo", "tool-loop"), ("opencode", "tool-loop")],
)
def test_database_whose_tables_are_in_its_log_alone_is_of_its_agent(
    agent: str, recording: str, machine: Machine, tmp_path: Path
) -> None:
    """As while a new client runs: the first pages are written when it has 1,000 of them."""
    places = Places(home_of(agent, recording, tmp_path / "home"), {})
    (path,) = {transcript.path for transcript in get_agent(agent).transcripts(places)}
    copy = tmp_path / "copy.db"
    with closing(sqlite3.connect(path)) as recorded, closing(sqlite3.connect(copy)) as opened:
        opened.execute("PRAGMA journal_mode = wal")
        opened.executescript("\n".join(recorded.iterdump()))
        if agent == "kilo":  # the recording has only the tables that are read
            opened.execute("CREATE TABLE `kilo_board` (id text)")
        assert b"CREATE TABLE" not in copy.read_bytes()
        assert resolve(machine, copy).session.agent == agent
