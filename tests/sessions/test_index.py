"""The index of transcripts: nothing is read twice, nothing is counted twice."""

import os
import signal
import threading
from collections.abc import Callable, Sequence
from itertools import permutations
from pathlib import Path

import psutil
import pytest

from brimline.agents import agent_names
from brimline.agents.transcripts.source import Transcript
from brimline.api.history import read_history
from brimline.context.events import MAIN
from brimline.context.tracker import Thread
from brimline.context.window import NO_OVERRIDES
from brimline.errors import WorkerFailed
from brimline.sessions import index
from brimline.sessions.files import find_session, load_session
from brimline.sessions.index import (
    MAX_WORKERS,
    ONE_PROCESS_MAX_BYTES,
    TAILS_ABOVE_BYTES,
    ReadJob,
    ReadResult,
    TranscriptIndex,
    delay_interrupt,
    map_in_processes,
    read_transcript,
    usable_cores,
)
from brimline.sessions.session_cost import find_copied_calls
from brimline.sessions.state_file import FILE_NAME
from brimline.sessions.status import survey_sessions

from .machine import (
    NOON,
    Machine,
    call,
    clock,
    compaction,
    overwrite_head,
    packed,
    subagent_fields,
    user_record,
)

pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")

LATER = NOON + 60


def update_index(machine: Machine, tails: bool = False) -> TranscriptIndex:
    """Load the index, update it, and save it."""
    transcript_index = TranscriptIndex.load(machine.cache)
    transcripts = machine.transcripts()
    transcript_index.update(transcripts, tails)
    transcript_index.dedupe_calls(transcripts, agent_names())
    transcript_index.save()
    return transcript_index


def main(transcript_index: TranscriptIndex, transcript: Transcript) -> Thread:
    """The main thread of a transcript."""
    session = transcript_index.session(transcript)
    assert session is not None
    return session.threads[MAIN]


def ids(machine: Machine, number: int = 0) -> list[str]:
    """The call ids of a transcript after one more run."""
    return list(main(update_index(machine), machine.transcripts()[number]).calls)


def counted(machine: Machine) -> list[int]:
    """The number of calls of each transcript after one more run, by path."""
    transcript_index = update_index(machine)
    summaries = [transcript_index.summary(transcript) for transcript in machine.transcripts()]
    return [sum(row.calls for row in summary.rows) for summary in summaries if summary]


def append(path: Path, data: bytes) -> None:
    """Append to a file, a minute later."""
    with path.open("ab") as file:
        file.write(data)
    os.utime(path, (LATER, LATER))


# What is read.


def test_unchanged_file_is_not_read_again(machine: Machine) -> None:
    path = machine.session("s1", call("m1"), *[user_record("x" * 100)] * 3)
    assert ids(machine) == ["m1"]
    overwrite_head(path, b'"id":"m1"', b'"id":"zz"')
    assert ids(machine) == ["m1"]


def test_unchanged_index_is_not_saved_again(machine: Machine) -> None:
    machine.session("s1", call("m1"))
    update_index(machine)
    before = (machine.cache / FILE_NAME).stat().st_ino
    update_index(machine)
    assert (machine.cache / FILE_NAME).stat().st_ino == before


def test_only_the_appended_part_is_read(machine: Machine) -> None:
    path = machine.session("s1", call("m1"), *[user_record("x" * 100)] * 3)
    update_index(machine)
    overwrite_head(path, b'"id":"m1"', b'"id":"zz"')
    append(path, call("m2", 30_000, second=60))
    assert ids(machine) == ["m1", "m2"]
    append(path, compaction(70) + call("m3", 25_000, second=80))
    thread = main(update_index(machine), machine.transcripts()[0])
    assert (list(thread.calls), thread.cycle) == (["m1", "m2", "m3"], 1)


def test_touched_file_is_not_read_again(machine: Machine) -> None:
    path = machine.session("s1", call("m1"), *[user_record("x" * 100)] * 3)
    update_index(machine)
    overwrite_head(path, b'"id":"m1"', b'"id":"zz"')
    os.utime(path, (LATER, LATER))
    assert ids(machine) == ["m1"]


def test_incomplete_line_is_read_when_it_is_complete(machine: Machine) -> None:
    line = call("m2", 30_000)
    path = machine.session("s1", call("m1"), line[:100])
    assert ids(machine) == ["m1"]
    append(path, line[100:-1])
    assert ids(machine) == ["m1", "m2"]
    append(path, b"\n" + call("m3", 31_000))
    assert ids(machine) == ["m1", "m2", "m3"]


def test_truncated_file_is_read_from_its_beginning(machine: Machine) -> None:
    path = machine.session("s1", call("m1"), call("m2"))
    update_index(machine)
    os.truncate(path, len(call("m1")))
    assert ids(machine) == ["m1"]


def test_truncated_file_that_grew_is_read_from_its_beginning(machine: Machine) -> None:
    path = machine.session("s1", call("m1"), call("m2"))
    update_index(machine)
    path.write_bytes(call("m5") + call("m6") + call("m7"))
    assert ids(machine) == ["m5", "m6", "m7"]


def test_other_file_at_the_same_path_is_read_from_its_beginning(machine: Machine) -> None:
    path = machine.session("s1", call("m1"), call("m2"))
    update_index(machine)
    path.rename(path.with_suffix(".old"))
    machine.session("s1", call("m1"), call("m3"))
    assert ids(machine) == ["m1", "m3"]


def test_other_content_of_the_same_size_is_read(machine: Machine) -> None:
    path = machine.session("s1", call("m1"), call("m2"))
    update_index(machine)
    size = path.stat().st_size
    path.write_bytes(call("m3") + call("m4"))
    assert path.stat().st_size == size
    assert ids(machine) == ["m3", "m4"]


def test_deleted_file_is_forgotten(machine: Machine) -> None:
    path = machine.session("s1", call("m1"))
    machine.session("s2", call("m2"))
    update_index(machine)
    before = machine.transcripts()[0]
    path.unlink()
    assert update_index(machine).session(before) is None
    assert counted(machine) == [1]


def test_everything_is_read_again_without_the_state_file(machine: Machine) -> None:
    machine.session("s1", call("m1"), call("m2"))
    update_index(machine)
    (machine.cache / FILE_NAME).unlink()
    assert ids(machine) == ["m1", "m2"]


def test_file_deleted_before_it_is_read_is_reported(machine: Machine) -> None:
    machine.session("s1", call("m1"))
    deleted = machine.session("s2", call("m2"))
    transcripts = machine.transcripts()
    deleted.unlink()
    transcript_index = TranscriptIndex.load(machine.cache)
    transcript_index.update(transcripts)
    assert list(main(transcript_index, transcripts[0]).calls) == ["m1"]
    assert transcript_index.session(transcripts[1]) is None
    assert transcript_index.summary(transcripts[1]) is None
    assert [str(deleted) in problem for problem in transcript_index.problems] == [True]


def test_empty_file_is_a_session_without_calls(machine: Machine) -> None:
    machine.session("s1")
    transcript_index = update_index(machine)
    transcript = machine.transcripts()[0]
    session = transcript_index.session(transcript)
    assert session is not None
    assert session.threads == {}
    summary = transcript_index.summary(transcript)
    assert summary is not None
    assert summary.rows == ()
    assert transcript_index.problems == []


def test_progress_is_reported_up_to_the_end(machine: Machine) -> None:
    for number in range(5):
        machine.session(f"s{number}", *[call(f"m{number}-{i}") for i in range(20)])
    told_of: list[tuple[int, int]] = []
    transcripts = machine.transcripts()

    def tell(done_bytes: int, whole: int) -> None:
        told_of.append((done_bytes, whole))

    TranscriptIndex.load(machine.cache).update(transcripts, progress=tell)
    whole = sum(transcript.size for transcript in transcripts)
    assert told_of
    assert told_of == sorted(told_of)
    assert told_of[-1] == (whole, whole)


# What is counted.


def test_call_of_a_fork_counts_in_the_first_file_only(machine: Machine) -> None:
    machine.session("b-old", call("m1", second=0), call("m2", second=1))
    machine.session("a-new", call("m1", second=10), call("m2", second=11), call("m3", second=12))
    assert counted(machine) == [1, 2]
    assert counted(machine) == [1, 2]


def test_call_of_a_fork_counts_once_in_any_order_of_discovery(machine: Machine) -> None:
    machine.session("a-new", call("m1", second=10), call("m3", second=12))
    assert counted(machine) == [2]
    path = machine.session("b-old", call("m1", second=0))
    assert counted(machine) == [1, 1]
    append(path, call("m3", second=12) + call("m4", second=13))
    assert counted(machine) == [0, 3]


def show_status(machine: Machine) -> None:
    survey_sessions(machine.places, agent_names(), None, NO_OVERRIDES, machine.cache)


def count_in_report(machine: Machine) -> list[int]:
    return counted(machine)


def count_in_history(machine: Machine) -> list[int]:
    items = sorted(read_history(machine.places, machine.cache), key=lambda each: each.session)
    return [sum(row.calls for row in item.summary.rows) for item in items]


@pytest.mark.parametrize(
    "order",
    list(permutations([show_status, count_in_report, count_in_history])),
    ids=lambda order: "-".join(command.__name__ for command in order),
)
def test_call_of_a_fork_counts_once_in_any_order_of_commands(
    machine: Machine, order: Sequence[Callable[[Machine], list[int] | None]]
) -> None:
    """A second run reads nothing, and a file that grew is read on: neither changes the owner."""
    machine.session("a-old", call("m1", second=0), call("m2", second=1))
    fork = machine.session("b-new", call("m1", second=10), call("m2", second=11))
    for new_calls in range(3):
        for _ in range(2):
            counts = [command(machine) for command in order]
            assert [each for each in counts if each is not None] == [[2, new_calls]] * 2
        append(fork, call(f"m{new_calls + 3}", second=20 + new_calls))


def test_report_of_one_agent_leaves_the_forks_of_another_to_be_counted(machine: Machine) -> None:
    machine.session("a-old", call("m1", second=0))
    machine.session("b-new", call("m1", second=10), call("m2", second=11))
    show_status(machine)
    transcript_index = TranscriptIndex.load(machine.cache)
    transcript_index.dedupe_calls([], ["codex"])
    transcript_index.save()
    assert counted(machine) == [1, 1]


def test_calls_in_two_files_of_one_session_are_no_copies(machine: Machine) -> None:
    """A fork whose file was copied, too: its own call is its own, that of its original is not."""
    queued = packed({"type": "queue-operation", "timestamp": clock(9)})
    machine.session("b-old", call("m1", second=0))
    forked = [queued, call("m1", second=0), call("m2", second=10)]
    for folder in ("-one", "-two"):
        machine.session("a-new", *forked, folder=folder)
    loaded = load_session(find_session(machine.places, "a-new"))
    assert find_copied_calls(loaded, machine.places, machine.cache) == {"m1"}


def test_call_counts_in_the_fork_when_the_original_is_deleted(machine: Machine) -> None:
    old = machine.session("b-old", call("m1", second=0))
    machine.session("a-new", call("m1", second=10), call("m3", second=12))
    assert counted(machine) == [1, 1]
    old.unlink()
    assert counted(machine) == [2]


def test_call_counts_in_the_fork_when_only_one_agent_is_read(machine: Machine) -> None:
    old = machine.session("b-old", call("m1", second=0))
    machine.session("a-new", call("m1", second=10), call("m3", second=12))
    update_index(machine)
    old.unlink()
    transcript_index = TranscriptIndex.load(machine.cache)
    transcripts = machine.transcripts()
    transcript_index.update(transcripts)
    transcript_index.dedupe_calls(transcripts, ["claude"])
    summary = transcript_index.summary(transcripts[0])
    assert summary is not None
    assert sum(row.calls for row in summary.rows) == 2


def test_reading_one_agent_keeps_the_entries_of_others(machine: Machine) -> None:
    machine.session("s1", call("m1"))
    path = machine.session("s2", call("m2"), *[user_record("x" * 100)] * 3)
    update_index(machine)
    transcript_index = TranscriptIndex.load(machine.cache)
    transcript_index.dedupe_calls([], ["codex"])
    transcript_index.save()
    overwrite_head(path, b'"id":"m2"', b'"id":"zz"')
    assert ids(machine, 1) == ["m2"]


def test_calls_of_a_subagent_count_in_its_own_file(machine: Machine) -> None:
    machine.session("s1", call("m1"))
    machine.subagent(
        "s1", "a1", call("m2", **subagent_fields("a1")), call("m3", **subagent_fields("a1"))
    )
    assert sorted(counted(machine)) == [1, 2]


# Large files.


def with_hole(machine: Machine, name: str, size: int, *lines: bytes) -> Path:
    """A transcript with this many NUL bytes, which take no disk space, before these lines."""
    path = machine.session(name, call(f"{name}-first"))
    with path.open("r+b") as file:
        file.seek(0, os.SEEK_END)
        file.truncate(file.tell() + size)
        file.seek(0, os.SEEK_END)
        file.write(b"\n" + b"".join(lines))
    os.utime(path, (NOON, NOON))
    return path


def test_several_processes_read_the_same_as_one(machine: Machine) -> None:
    part = ONE_PROCESS_MAX_BYTES // 4
    for number in range(5):
        with_hole(machine, f"s{number}", part, call(f"m{number}"))
    assert sum(t.size for t in machine.transcripts()) > ONE_PROCESS_MAX_BYTES
    transcript_index = update_index(machine)
    calls = [list(main(transcript_index, transcript).calls) for transcript in machine.transcripts()]
    assert calls == [[f"s{number}-first", f"m{number}"] for number in range(5)]
    assert transcript_index.problems == []


READ_HERE: list[str] = []


def read_here(job: ReadJob) -> ReadResult:
    """Read a transcript, and note it: only in this process, not in a worker."""
    READ_HERE.append(Path(job.transcript.path).stem)
    return read_transcript(job)


@pytest.mark.parametrize(("more_bytes", "here"), [(0, ["s1", "s2"]), (1, [])])
def test_processes_are_started_only_for_much(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, more_bytes: int, here: list[str]
) -> None:
    for name in ("s1", "s2"):
        machine.session(name, call(name))
    total = sum(transcript.size for transcript in machine.transcripts())
    monkeypatch.setattr(index, "ONE_PROCESS_MAX_BYTES", total - more_bytes)
    monkeypatch.setattr(index, "usable_cores", lambda: 2)
    monkeypatch.setattr(index, "read_transcript", read_here)
    READ_HERE.clear()
    assert update_index(machine).problems == []
    assert sorted(READ_HERE) == here


def jobs(machine: Machine, count: int) -> list[ReadJob]:
    """Jobs for sessions of one call each, one of which cannot be read."""
    for number in range(count):
        machine.session(f"s{number:02}", call(f"m{number}"))
    transcripts = machine.transcripts()
    Path(transcripts[1].path).unlink()
    return [ReadJob(transcript, None) for transcript in transcripts]


@pytest.mark.parametrize("workers", [2, 3, 4])
def test_results_are_in_job_order_for_any_number_of_workers(machine: Machine, workers: int) -> None:
    every = jobs(machine, 20)
    alone = list(map_in_processes(read_transcript, every, 1))
    assert [result.path for result in alone] == [job.transcript.path for job in every]
    assert [result.reason is None for result in alone].count(False) == 1
    assert list(map_in_processes(read_transcript, every, workers)) == alone


def test_number_of_workers_is_bounded() -> None:
    assert 1 <= usable_cores() <= MAX_WORKERS


def die(job: ReadJob) -> ReadResult:
    """Kill this worker."""
    os.kill(os.getpid(), signal.SIGKILL)
    return read_transcript(job)


def test_killed_worker_is_an_error_and_leaves_no_process(
    machine: Machine, capfd: pytest.CaptureFixture[str]
) -> None:
    every, before = jobs(machine, 5), psutil.Process().children()
    with pytest.raises(WorkerFailed, match="try again"):
        list(map_in_processes(die, every, 2))
    assert capfd.readouterr() == ("", "")
    assert psutil.Process().children() == before


def test_only_the_ends_of_large_files_are_read(machine: Machine) -> None:
    with_hole(machine, "s1", TAILS_ABOVE_BYTES, call("m1"), compaction(1), call("m2", 30_000))
    machine.session("s2", call("m3"))
    transcripts = machine.transcripts()
    transcript_index = update_index(machine, tails=True)
    assert [main(transcript_index, transcript).current for transcript in transcripts] == [
        "m2",
        "m3",
    ]
    assert "s1-first" not in main(transcript_index, transcripts[0]).calls
    assert [transcript_index.is_fully_read(transcript) for transcript in transcripts] == [
        False,
        False,
    ]


def test_indexed_file_is_read_on_from_its_offset(machine: Machine) -> None:
    path = machine.session("s1", call("m1"))
    update_index(machine)
    append(path, call("m2", 30_000))
    with_hole(machine, "s2", TAILS_ABOVE_BYTES, call("m3"))
    transcripts = machine.transcripts()
    transcript_index = update_index(machine, tails=True)
    assert list(main(transcript_index, transcripts[0]).calls) == ["m1", "m2"]
    assert [transcript_index.is_fully_read(transcript) for transcript in transcripts] == [
        True,
        False,
    ]


def test_replaced_file_is_not_taken_for_the_indexed_one(machine: Machine) -> None:
    machine.session("s1", call("m1"), call("m2"))
    update_index(machine)
    (machine.projects / "-project" / "s1.jsonl").unlink()
    with_hole(machine, "s1", TAILS_ABOVE_BYTES, call("m3"))
    transcripts = machine.transcripts()
    transcript_index = update_index(machine, tails=True)
    assert main(transcript_index, transcripts[0]).current == "m3"
    assert not transcript_index.is_fully_read(transcripts[0])


def test_file_deleted_before_its_end_is_read_is_reported(machine: Machine) -> None:
    with_hole(machine, "s1", TAILS_ABOVE_BYTES, call("m1"))
    transcripts = machine.transcripts()
    Path(transcripts[0].path).unlink()
    transcript_index = TranscriptIndex.load(machine.cache)
    transcript_index.update(transcripts, tails=True)
    assert len(transcript_index.problems) == 1
    assert transcript_index.session(transcripts[0]) is None


def test_interrupt_waits_for_the_pool_to_be_closed() -> None:
    """Python would otherwise close it at exit, and print a traceback."""
    closed: list[bool] = []

    def close() -> None:
        with delay_interrupt():
            os.kill(os.getpid(), signal.SIGINT)
            closed.append(True)

    with pytest.raises(KeyboardInterrupt):
        close()
    assert closed
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_interrupt_is_left_alone_in_other_threads() -> None:
    handlers: list[object] = []

    def read() -> None:
        with delay_interrupt():
            handlers.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=read)
    thread.start()
    thread.join()
    assert handlers == [signal.getsignal(signal.SIGINT)]
