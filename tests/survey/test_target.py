"""One transcript or stream: from a path, a session's id, or standard input."""

import io
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from brimline.errors import (
    BrimlineError,
    UnknownAgent,
    UnknownSession,
    UnreadableTranscript,
    UnrecognisedFormat,
)
from brimline.events import MAIN
from brimline.survey.files import HEAD_BYTES, LoadedSession
from brimline.survey.target import load_target

from .machine import Machine, call, compaction, of_agent, told

LINUX = sys.platform == "linux"


def looked_up(
    machine: Machine, target: str | Path, stdin: bytes = b"", agent: str | None = None
) -> LoadedSession:
    """What a target holds."""
    return load_target(str(target), machine.places, io.BytesIO(stdin), agent)


def calls(folded: LoadedSession) -> dict[str, list[str]]:
    """The ids of the calls of each thread."""
    return {name: list(thread.calls) for name, thread in folded.session.threads.items()}


def stream() -> bytes:
    """A run of `claude -p --output-format stream-json`."""
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
    """A pipe: a few bytes at a time, and never back."""

    def __init__(self, data: bytes) -> None:
        self._file = io.BytesIO(data)

    def readable(self) -> bool:
        """It can be read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Up to 777 bytes."""
        return self._file.readinto(memoryview(buffer)[:777])


# Paths.


def test_path(machine: Machine, tmp_path: Path) -> None:
    """A transcript anywhere is read; its records tell its session."""
    path = tmp_path / "kept.txt"
    path.write_bytes(told() + call("m1") + compaction(1) + call("m2"))
    folded = looked_up(machine, path)
    assert calls(folded) == {MAIN: ["m1", "m2"]}
    assert (folded.session.id, folded.session.agent, folded.session.project) == (
        "s1",
        "claude",
        "/project",
    )
    assert folded.tally.records == 5


def test_stream_file(machine: Machine, tmp_path: Path) -> None:
    """A file with a stream in it is read as one."""
    path = tmp_path / "run.jsonl"
    path.write_bytes(stream())
    folded = looked_up(machine, path)
    assert calls(folded) == {MAIN: ["m1"]}
    assert folded.session.windows["claude-sonnet-4-5"] == 200_000


def test_subagents_beside(machine: Machine) -> None:
    """Among the agent's own files, a session has its subagents with it."""
    path = machine.session("s1", call("m1"))
    machine.subagent("s1", "a1", call("m2", **of_agent("a1")))
    machine.subagent("s1", "a2", call("m3", **of_agent("a2")))
    machine.subagent("s2", "a3", call("m4", **of_agent("a3")))
    assert calls(looked_up(machine, path)) == {MAIN: ["m1"], "a1": ["m2"], "a2": ["m3"]}


def test_subagents_beside_a_linked_path(machine: Machine, tmp_path: Path) -> None:
    """Also where the path that was named is a link to it."""
    link = tmp_path / "link.jsonl"
    link.symlink_to(machine.session("s1", call("m1")))
    machine.subagent("s1", "a1", call("m2", **of_agent("a1")))
    assert set(calls(looked_up(machine, link))) == {MAIN, "a1"}


def test_subagent_alone(machine: Machine) -> None:
    """A subagent's own file has its thread alone."""
    machine.session("s1", call("m1"))
    path = machine.subagent("s1", "a1", call("m2", **of_agent("a1")))
    assert calls(looked_up(machine, path)) == {"a1": ["m2"]}


def test_agent_override(machine: Machine, tmp_path: Path) -> None:
    """Where the first lines tell nothing, `agent` says whose it is."""
    path = tmp_path / "x.jsonl"
    path.write_bytes(b"{}\n" * 10 + call("m1"))
    assert calls(looked_up(machine, path, agent="claude")) == {MAIN: ["m1"]}
    path.write_bytes(b'{"type":"user"}\n' * (HEAD_BYTES // 10) + call("m1"))
    with pytest.raises(UnrecognisedFormat):
        looked_up(machine, path)
    assert calls(looked_up(machine, path, agent="claude")) == {MAIN: ["m1"]}


def test_agent_override_of_a_stream(machine: Machine, tmp_path: Path) -> None:
    """With the agent told, a stream is still told from a transcript."""
    path = tmp_path / "x.jsonl"
    path.write_bytes(stream())
    assert calls(looked_up(machine, path, agent="claude")) == {MAIN: ["m1"]}


def test_unknown_agent(machine: Machine, tmp_path: Path) -> None:
    """An agent that is none is an error that names those that are."""
    path = tmp_path / "x.jsonl"
    path.write_bytes(call("m1"))
    for target in (str(path), "-", "s1"):
        with pytest.raises(UnknownAgent, match="codex"):
            looked_up(machine, target, call("m1"), agent="vim")


@pytest.mark.parametrize("data", [b"", b"\n", b"hello\n", b'{"type":"hello"}\n', b"\xff\xfe\0"])
def test_unrecognised(machine: Machine, tmp_path: Path, data: bytes) -> None:
    """A file that is no agent's says so, and what to do."""
    path = tmp_path / "x.jsonl"
    path.write_bytes(data)
    with pytest.raises(UnrecognisedFormat, match="--agent"):
        looked_up(machine, path)


def unreadable(machine: Machine, target: str | Path) -> str:
    """Why a target cannot be read, with the hint."""
    with pytest.raises(UnreadableTranscript) as raised:
        looked_up(machine, target)
    assert raised.value.path == str(target)
    return str(raised.value)


def test_directory(machine: Machine, tmp_path: Path) -> None:
    """A directory is none, and the error says what to name instead."""
    (tmp_path / "x.jsonl").mkdir()
    said = unreadable(machine, tmp_path / "x.jsonl")
    assert "it is a directory" in said
    assert "Name a transcript file inside it." in said


def test_fifo(machine: Machine, tmp_path: Path) -> None:
    """A pipe in the file system is not waited for."""
    os.mkfifo(tmp_path / "x.jsonl")
    assert "Pipe it to" in unreadable(machine, tmp_path / "x.jsonl")


def test_device(machine: Machine) -> None:
    """A device is no transcript."""
    assert "not a regular file" in unreadable(machine, "/dev/null")


def test_dangling_link(machine: Machine, tmp_path: Path) -> None:
    """A link to nothing says that there is nothing."""
    (tmp_path / "x.jsonl").symlink_to(tmp_path / "none")
    assert "No such file" in unreadable(machine, tmp_path / "x.jsonl")


def test_link_to_itself(machine: Machine, tmp_path: Path) -> None:
    """A link that leads nowhere is an error, not a loop."""
    (tmp_path / "x.jsonl").symlink_to(tmp_path / "x.jsonl")
    unreadable(machine, tmp_path / "x.jsonl")


def test_missing_path(machine: Machine, tmp_path: Path) -> None:
    """A path that does not exist says so."""
    assert "no such file" in unreadable(machine, tmp_path / "none.jsonl")


@pytest.mark.usefixtures("ordinary")
def test_no_permission(machine: Machine, tmp_path: Path) -> None:
    """A file that may not be read says so."""
    path = tmp_path / "x.jsonl"
    path.write_bytes(call("m1"))
    path.chmod(0)
    assert "Permission denied" in unreadable(machine, path)


@pytest.mark.skipif(not LINUX, reason="there is no such file")
def test_read_that_fails(machine: Machine, tmp_path: Path) -> None:
    """A file that can be opened and not read, as on a bad disk, says so."""
    (tmp_path / "x.jsonl").symlink_to("/proc/self/mem")
    unreadable(machine, tmp_path / "x.jsonl")


# Sessions.


def test_session(machine: Machine) -> None:
    """A session's id, or its beginning, finds it with its subagents."""
    machine.session("abcd-1", call("m1", sessionId="abcd-1"))
    machine.subagent("abcd-1", "a1", call("m2", sessionId="abcd-1", **of_agent("a1")))
    for target in ("abcd-1", "abc"):
        folded = looked_up(machine, target)
        assert calls(folded) == {MAIN: ["m1"], "a1": ["m2"]}
        assert folded.session.id == "abcd-1"
    assert calls(looked_up(machine, "abc", agent="claude")) == {MAIN: ["m1"], "a1": ["m2"]}


def test_unknown_session(machine: Machine) -> None:
    """Neither a file nor a session: one error for both."""
    with pytest.raises(UnknownSession, match="no file or session named 'nope'"):
        looked_up(machine, "nope")


def test_session_that_cannot_be_read(machine: Machine) -> None:
    """A session whose only file is no file is not found."""
    (machine.projects / "-project").mkdir()
    (machine.projects / "-project" / "abc.jsonl").mkdir()
    (machine.projects / "-project" / "abd.jsonl").symlink_to("none")
    with pytest.raises(UnknownSession):
        looked_up(machine, "ab")


# Standard input.


def test_stdin_transcript(machine: Machine) -> None:
    """A transcript from standard input."""
    folded = looked_up(machine, "-", told() + call("m1"))
    assert calls(folded) == {MAIN: ["m1"]}
    assert folded.tally.records == 2


def test_stdin_stream(machine: Machine) -> None:
    """A stream from standard input."""
    folded = looked_up(machine, "-", stream())
    assert calls(folded) == {MAIN: ["m1"]}
    assert folded.session.windows["claude-sonnet-4-5"] == 200_000


def test_stdin_is_a_pipe(machine: Machine) -> None:
    """It comes in pieces, cannot be read again, and is longer than what is looked at first."""
    data = b"".join(told("x" * 900) + call(f"m{i}") for i in range(100))
    assert len(data) > 2 * HEAD_BYTES
    folded = load_target("-", machine.places, io.BufferedReader(Unseekable(data)))
    assert len(calls(folded)[MAIN]) == 100
    assert folded.tally.records == 200


def test_stdin_long_document(machine: Machine) -> None:
    """A document of one piece, longer than what is looked at first, is read whole."""
    time = "2026-11-15T03:25:06.382Z"
    reply = {"timestamp": time, "type": "gemini", "content": "x" * 900, "model": "gemini-2.5-pro"}
    counts = {"input": 1_000, "output": 5, "cached": 0, "thoughts": 0, "tool": 0, "total": 1_005}
    messages = [{"id": f"m{i}", **reply, "tokens": counts} for i in range(200)]
    document = {"sessionId": "s1", "projectHash": "ab", "startTime": time, "messages": messages}
    data = json.dumps(document).encode()
    assert len(data) > 2 * HEAD_BYTES
    for agent in (None, "gemini"):
        assert len(calls(looked_up(machine, "-", data, agent))[MAIN]) == 200


def test_stdin_nothing(machine: Machine) -> None:
    """Nothing on standard input is no agent's."""
    with pytest.raises(UnrecognisedFormat, match="standard input"):
        looked_up(machine, "-")


def test_stdin_agent(machine: Machine) -> None:
    """Whose it is can be told here too."""
    assert calls(looked_up(machine, "-", b"{}\n" + call("m1"), "claude")) == {MAIN: ["m1"]}
    assert calls(looked_up(machine, "-", b"", "claude")) == {}


def test_errors_are_ours(machine: Machine, tmp_path: Path) -> None:
    """Whatever is named, an error is one of ours."""
    long = "x" * 5_000
    for target in ("", ".", "..", "/", "//", long, f"/{long}", "a\nb", "\x1b[31m"):
        with pytest.raises(BrimlineError):
            looked_up(machine, target)
