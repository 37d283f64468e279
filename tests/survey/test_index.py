"""What is known of transcripts: nothing is read twice, nothing is counted twice."""

import os
import signal
from pathlib import Path

import pytest

from brimline.agents import agent_names
from brimline.errors import WorkerFailed
from brimline.events import MAIN
from brimline.survey import index
from brimline.survey.index import (
    MAX_WORKERS,
    ONE_PROCESS_MAX_BYTES,
    TAILS_ABOVE_BYTES,
    ReadJob,
    ReadResult,
    TranscriptIndex,
    read_all,
    read_transcript,
    usable_cores,
)
from brimline.survey.state_file import FILE_NAME
from brimline.tracker import Thread
from brimline.transcripts.source import Transcript

from .machine import NOON, Machine, call, compaction, of_agent, overwrite_head, told

pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")

LATER = NOON + 60


def learned(machine: Machine, tails: bool = False) -> TranscriptIndex:
    """What is known after one run: the state is loaded, brought up to date, and saved."""
    transcript_index = TranscriptIndex.load(machine.cache)
    found = machine.found()
    transcript_index.update(found, tails)
    transcript_index.dedupe_calls(found, agent_names())
    transcript_index.save()
    return transcript_index


def main(transcript_index: TranscriptIndex, transcript: Transcript) -> Thread:
    """The main thread of a transcript."""
    session = transcript_index.session(transcript)
    assert session is not None
    return session.threads[MAIN]


def ids(machine: Machine, number: int = 0) -> list[str]:
    """The calls of a transcript after one more run."""
    return list(main(learned(machine), machine.found()[number]).calls)


def counted(machine: Machine) -> list[int]:
    """How many calls each transcript counts after one more run, in the order of their paths."""
    transcript_index = learned(machine)
    summaries = [transcript_index.summary(transcript) for transcript in machine.found()]
    return [sum(row.calls for row in summary.rows) for summary in summaries if summary]


def append(path: Path, data: bytes) -> None:
    """Let a file grow, a minute later."""
    with path.open("ab") as file:
        file.write(data)
    os.utime(path, (LATER, LATER))


# What is read.


def test_unchanged_is_not_read(machine: Machine) -> None:
    """A file that did not change is not read again: what was changed under it is not seen."""
    path = machine.session("s1", call("m1"), *[told("x" * 100)] * 3)
    assert ids(machine) == ["m1"]
    overwrite_head(path, b'"id":"m1"', b'"id":"zz"')
    assert ids(machine) == ["m1"]


def test_nothing_new_is_not_saved(machine: Machine) -> None:
    """Where nothing was learned, the state is not written again."""
    machine.session("s1", call("m1"))
    learned(machine)
    before = (machine.cache / FILE_NAME).stat().st_ino
    learned(machine)
    assert (machine.cache / FILE_NAME).stat().st_ino == before


def test_only_the_new_part_is_read(machine: Machine) -> None:
    """Of a file that grew only what is new is read."""
    path = machine.session("s1", call("m1"), *[told("x" * 100)] * 3)
    learned(machine)
    overwrite_head(path, b'"id":"m1"', b'"id":"zz"')
    append(path, call("m2", 30_000, second=60))
    assert ids(machine) == ["m1", "m2"]
    append(path, compaction(70) + call("m3", 25_000, second=80))
    thread = main(learned(machine), machine.found()[0])
    assert (list(thread.calls), thread.cycle) == (["m1", "m2", "m3"], 1)


def test_touched_is_not_read(machine: Machine) -> None:
    """A file with a new time and nothing new in it is not read again."""
    path = machine.session("s1", call("m1"), *[told("x" * 100)] * 3)
    learned(machine)
    overwrite_head(path, b'"id":"m1"', b'"id":"zz"')
    os.utime(path, (LATER, LATER))
    assert ids(machine) == ["m1"]


def test_last_line_still_being_written(machine: Machine) -> None:
    """A line that is not complete is read when it is."""
    line = call("m2", 30_000)
    path = machine.session("s1", call("m1"), line[:100])
    assert ids(machine) == ["m1"]
    append(path, line[100:-1])
    assert ids(machine) == ["m1", "m2"]
    append(path, b"\n" + call("m3", 31_000))
    assert ids(machine) == ["m1", "m2", "m3"]


def test_truncated(machine: Machine) -> None:
    """A file that was cut is read from its beginning."""
    path = machine.session("s1", call("m1"), call("m2"))
    learned(machine)
    os.truncate(path, len(call("m1")))
    assert ids(machine) == ["m1"]


def test_cut_and_grown(machine: Machine) -> None:
    """Also when it is longer again than it was."""
    path = machine.session("s1", call("m1"), call("m2"))
    learned(machine)
    path.write_bytes(call("m5") + call("m6") + call("m7"))
    assert ids(machine) == ["m5", "m6", "m7"]


def test_rotated(machine: Machine) -> None:
    """Another file at the same path is read from its beginning."""
    path = machine.session("s1", call("m1"), call("m2"))
    learned(machine)
    path.rename(path.with_suffix(".old"))
    machine.session("s1", call("m1"), call("m3"))
    assert ids(machine) == ["m1", "m3"]


def test_replaced_in_place(machine: Machine) -> None:
    """Other content of the same size in the same file is read."""
    path = machine.session("s1", call("m1"), call("m2"))
    learned(machine)
    size = path.stat().st_size
    path.write_bytes(call("m3") + call("m4"))
    assert path.stat().st_size == size
    assert ids(machine) == ["m3", "m4"]


def test_deleted(machine: Machine) -> None:
    """A file that is gone is forgotten."""
    path = machine.session("s1", call("m1"))
    machine.session("s2", call("m2"))
    learned(machine)
    before = machine.found()[0]
    path.unlink()
    assert learned(machine).session(before) is None
    assert counted(machine) == [1]


def test_deleted_state(machine: Machine) -> None:
    """Without the state everything is read again, and is the same."""
    machine.session("s1", call("m1"), call("m2"))
    learned(machine)
    (machine.cache / FILE_NAME).unlink()
    assert ids(machine) == ["m1", "m2"]


def test_gone_while_looking(machine: Machine) -> None:
    """A file that goes between listing and reading is told, and the others are read."""
    machine.session("s1", call("m1"))
    gone = machine.session("s2", call("m2"))
    found = machine.found()
    gone.unlink()
    transcript_index = TranscriptIndex.load(machine.cache)
    transcript_index.update(found)
    assert list(main(transcript_index, found[0]).calls) == ["m1"]
    assert transcript_index.session(found[1]) is None
    assert transcript_index.summary(found[1]) is None
    assert [str(gone) in problem for problem in transcript_index.problems] == [True]


def test_empty_file(machine: Machine) -> None:
    """A file with nothing in it is a session without a call."""
    machine.session("s1")
    transcript_index = learned(machine)
    transcript = machine.found()[0]
    session = transcript_index.session(transcript)
    assert session is not None
    assert session.threads == {}
    summary = transcript_index.summary(transcript)
    assert summary is not None
    assert summary.rows == ()
    assert transcript_index.problems == []


def test_progress(machine: Machine) -> None:
    """Whoever wants to know is told how far it is, up to the end."""
    for number in range(5):
        machine.session(f"s{number}", *[call(f"m{number}-{i}") for i in range(20)])
    told_of: list[tuple[int, int]] = []
    found = machine.found()

    def tell(done: int, whole: int) -> None:
        told_of.append((done, whole))

    TranscriptIndex.load(machine.cache).update(found, progress=tell)
    whole = sum(transcript.size for transcript in found)
    assert told_of
    assert told_of == sorted(told_of)
    assert told_of[-1] == (whole, whole)


# What is counted.


def test_a_call_in_two_files(machine: Machine) -> None:
    """A forked session's call counts once, in the file that had it first."""
    machine.session("b-old", call("m1", second=0), call("m2", second=1))
    machine.session("a-new", call("m1", second=10), call("m2", second=11), call("m3", second=12))
    assert counted(machine) == [1, 2]
    assert counted(machine) == [1, 2]


def test_a_call_in_two_files_found_one_after_the_other(machine: Machine) -> None:
    """Whichever is found first."""
    machine.session("a-new", call("m1", second=10), call("m3", second=12))
    assert counted(machine) == [2]
    path = machine.session("b-old", call("m1", second=0))
    assert counted(machine) == [1, 1]
    append(path, call("m3", second=12) + call("m4", second=13))
    assert counted(machine) == [0, 3]


def test_owner_deleted(machine: Machine) -> None:
    """When the file that a call was counted in is gone, it counts in the other."""
    old = machine.session("b-old", call("m1", second=0))
    machine.session("a-new", call("m1", second=10), call("m3", second=12))
    assert counted(machine) == [1, 1]
    old.unlink()
    assert counted(machine) == [2]


def test_owner_deleted_and_one_agent_asked_for(machine: Machine) -> None:
    """Also when only one agent's files are looked at."""
    old = machine.session("b-old", call("m1", second=0))
    machine.session("a-new", call("m1", second=10), call("m3", second=12))
    learned(machine)
    old.unlink()
    transcript_index = TranscriptIndex.load(machine.cache)
    found = machine.found()
    transcript_index.update(found)
    transcript_index.dedupe_calls(found, ["claude"])
    summary = transcript_index.summary(found[0])
    assert summary is not None
    assert sum(row.calls for row in summary.rows) == 2


def test_a_part_does_not_forget_the_rest(machine: Machine) -> None:
    """Where one agent was looked at, another's transcripts are not taken for gone."""
    machine.session("s1", call("m1"))
    path = machine.session("s2", call("m2"), *[told("x" * 100)] * 3)
    learned(machine)
    transcript_index = TranscriptIndex.load(machine.cache)
    transcript_index.dedupe_calls([], ["codex"])
    transcript_index.save()
    overwrite_head(path, b'"id":"m2"', b'"id":"zz"')
    assert ids(machine, 1) == ["m2"]


def test_subagents_calls_count(machine: Machine) -> None:
    """A subagent's calls are its own file's."""
    machine.session("s1", call("m1"))
    machine.subagent("s1", "a1", call("m2", **of_agent("a1")), call("m3", **of_agent("a1")))
    assert sorted(counted(machine)) == [1, 2]


# Large files.


def with_hole(machine: Machine, name: str, size: int, *lines: bytes) -> Path:
    """A transcript with so many NUL bytes, which need no place on a disk, before these lines."""
    path = machine.session(name, call(f"{name}-first"))
    with path.open("r+b") as file:
        file.seek(0, os.SEEK_END)
        file.truncate(file.tell() + size)
        file.seek(0, os.SEEK_END)
        file.write(b"\n" + b"".join(lines))
    os.utime(path, (NOON, NOON))
    return path


def test_workers(machine: Machine) -> None:
    """What several processes read is what one reads."""
    part = ONE_PROCESS_MAX_BYTES // 4
    for number in range(5):
        with_hole(machine, f"s{number}", part, call(f"m{number}"))
    assert sum(t.size for t in machine.found()) > ONE_PROCESS_MAX_BYTES
    transcript_index = learned(machine)
    found = [list(main(transcript_index, transcript).calls) for transcript in machine.found()]
    assert found == [[f"s{number}-first", f"m{number}"] for number in range(5)]
    assert transcript_index.problems == []


def jobs(machine: Machine, count: int) -> list[ReadJob]:
    """Jobs for as many sessions of a call each, one of which cannot be read."""
    for number in range(count):
        machine.session(f"s{number:02}", call(f"m{number}"))
    found = machine.found()
    Path(found[1].path).unlink()
    return [ReadJob(transcript, None) for transcript in found]


@pytest.mark.parametrize("workers", [2, 3, 4])
def test_number_of_workers_changes_results(machine: Machine, workers: int) -> None:
    """However many processes read, the results are the same, in the order of the jobs."""
    every = jobs(machine, 20)
    alone = list(read_all(every, 1))
    assert [result.path for result in alone] == [job.transcript.path for job in every]
    assert [result.problem is None for result in alone].count(False) == 1
    assert list(read_all(every, workers)) == alone


def test_usable_cores_out_of_range() -> None:
    """There is at least one process, and not too many."""
    assert 1 <= usable_cores() <= MAX_WORKERS


def die(job: ReadJob) -> ReadResult:
    """Be killed in the middle of a job."""
    os.kill(os.getpid(), signal.SIGKILL)
    return read_transcript(job)


def test_killed_worker_is_not_reported(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """A worker that dies is an error that says what to do, and no process is left."""
    every = jobs(machine, 5)
    monkeypatch.setattr(index, "read_transcript", die)
    with pytest.raises(WorkerFailed, match="try again"):
        list(read_all(every, 2))
    assert capfd.readouterr() == ("", "")
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


def test_tails(machine: Machine) -> None:
    """With much to read, a glance takes the ends; what was before is not known."""
    with_hole(machine, "s1", TAILS_ABOVE_BYTES, call("m1"), compaction(1), call("m2", 30_000))
    machine.session("s2", call("m3"))
    found = machine.found()
    transcript_index = learned(machine, tails=True)
    assert [main(transcript_index, transcript).current for transcript in found] == ["m2", "m3"]
    assert "s1-first" not in main(transcript_index, found[0]).calls
    assert [transcript_index.is_fully_read(transcript) for transcript in found] == [False, False]


def test_tails_of_what_is_known(machine: Machine) -> None:
    """A file that was read before is read on, not glanced at."""
    path = machine.session("s1", call("m1"))
    learned(machine)
    append(path, call("m2", 30_000))
    with_hole(machine, "s2", TAILS_ABOVE_BYTES, call("m3"))
    found = machine.found()
    transcript_index = learned(machine, tails=True)
    assert list(main(transcript_index, found[0]).calls) == ["m1", "m2"]
    assert [transcript_index.is_fully_read(transcript) for transcript in found] == [True, False]


def test_tails_of_what_was_replaced(machine: Machine) -> None:
    """A file that is another now is not taken for the one that was read whole."""
    machine.session("s1", call("m1"), call("m2"))
    learned(machine)
    (machine.projects / "-project" / "s1.jsonl").unlink()
    with_hole(machine, "s1", TAILS_ABOVE_BYTES, call("m3"))
    found = machine.found()
    transcript_index = learned(machine, tails=True)
    assert main(transcript_index, found[0]).current == "m3"
    assert not transcript_index.is_fully_read(found[0])


def test_tails_of_what_is_gone(machine: Machine) -> None:
    """A file that goes before its end is looked at is told."""
    with_hole(machine, "s1", TAILS_ABOVE_BYTES, call("m1"))
    found = machine.found()
    Path(found[0].path).unlink()
    transcript_index = TranscriptIndex.load(machine.cache)
    transcript_index.update(found, tails=True)
    assert len(transcript_index.problems) == 1
    assert transcript_index.session(found[0]) is None
