"""What is known of transcripts: nothing is read twice, nothing is counted twice."""

import os
from pathlib import Path

import pytest

from brimline.agents import AGENTS
from brimline.events import MAIN
from brimline.survey.index import ALONE, READ_WHOLE, Knowledge
from brimline.survey.state_file import NAME
from brimline.tracker import Thread
from brimline.transcripts.source import Transcript

from .machine import NOON, Machine, call, compaction, of_agent, overwrite_head, told

pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")

LATER = NOON + 60


def learned(machine: Machine, tails: bool = False) -> Knowledge:
    """What is known after one run: the state is loaded, brought up to date, and saved."""
    knowledge = Knowledge.of(machine.cache)
    found = machine.found()
    knowledge.learn(found, tails)
    knowledge.settle(found, AGENTS)
    knowledge.save()
    return knowledge


def main(knowledge: Knowledge, transcript: Transcript) -> Thread:
    """The main thread of a transcript."""
    session = knowledge.session(transcript)
    assert session is not None
    return session.threads[MAIN]


def ids(machine: Machine, number: int = 0) -> list[str]:
    """The calls of a transcript after one more run."""
    return list(main(learned(machine), machine.found()[number]).calls)


def counted(machine: Machine) -> list[int]:
    """How many calls each transcript counts after one more run, in the order of their paths."""
    knowledge = learned(machine)
    summaries = [knowledge.summary(transcript) for transcript in machine.found()]
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
    before = (machine.cache / NAME).stat().st_ino
    learned(machine)
    assert (machine.cache / NAME).stat().st_ino == before


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
    (machine.cache / NAME).unlink()
    assert ids(machine) == ["m1", "m2"]


def test_gone_while_looking(machine: Machine) -> None:
    """A file that goes between listing and reading is told, and the others are read."""
    machine.session("s1", call("m1"))
    gone = machine.session("s2", call("m2"))
    found = machine.found()
    gone.unlink()
    knowledge = Knowledge.of(machine.cache)
    knowledge.learn(found)
    assert list(main(knowledge, found[0]).calls) == ["m1"]
    assert knowledge.session(found[1]) is None
    assert knowledge.summary(found[1]) is None
    assert [str(gone) in problem for problem in knowledge.problems] == [True]


def test_empty_file(machine: Machine) -> None:
    """A file with nothing in it is a session without a call."""
    machine.session("s1")
    knowledge = learned(machine)
    transcript = machine.found()[0]
    session = knowledge.session(transcript)
    assert session is not None
    assert session.threads == {}
    summary = knowledge.summary(transcript)
    assert summary is not None
    assert summary.rows == ()
    assert knowledge.problems == []


def test_end(machine: Machine) -> None:
    """The last bytes of a file that was read to its end are known, of any other not."""
    lines = call("m1") + call("m2")
    path = machine.session("s1", lines)
    machine.session("s2", call("m1"), call("m2")[:50])
    machine.session("s3", b"\n")
    knowledge = learned(machine)
    whole, broken, short = machine.found()
    assert knowledge.end(whole, 64) == lines[-64:]
    assert knowledge.end(whole, 10) == lines[-10:]
    assert knowledge.end(whole, 65) is None
    assert knowledge.end(broken, 64) is None
    assert knowledge.end(short, 64) == b"\n"
    append(path, call("m3"))
    assert knowledge.end(machine.found()[0], 64) is None


def test_progress(machine: Machine) -> None:
    """Whoever wants to know is told how far it is, up to the end."""
    for number in range(5):
        machine.session(f"s{number}", *[call(f"m{number}-{i}") for i in range(20)])
    told_of: list[tuple[int, int]] = []
    found = machine.found()

    def tell(done: int, whole: int) -> None:
        told_of.append((done, whole))

    Knowledge.of(machine.cache).learn(found, progress=tell)
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
    knowledge = Knowledge.of(machine.cache)
    found = machine.found()
    knowledge.learn(found)
    knowledge.settle(found, ["claude"])
    summary = knowledge.summary(found[0])
    assert summary is not None
    assert sum(row.calls for row in summary.rows) == 2


def test_a_part_does_not_forget_the_rest(machine: Machine) -> None:
    """Where one agent was looked at, another's transcripts are not taken for gone."""
    machine.session("s1", call("m1"))
    path = machine.session("s2", call("m2"), *[told("x" * 100)] * 3)
    learned(machine)
    knowledge = Knowledge.of(machine.cache)
    knowledge.settle([], ["codex"])
    knowledge.save()
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
    part = ALONE // 4
    for number in range(5):
        with_hole(machine, f"s{number}", part, call(f"m{number}"))
    assert sum(t.size for t in machine.found()) > ALONE
    knowledge = learned(machine)
    found = [list(main(knowledge, transcript).calls) for transcript in machine.found()]
    assert found == [[f"s{number}-first", f"m{number}"] for number in range(5)]
    assert knowledge.problems == []


def test_tails(machine: Machine) -> None:
    """With much to read, a glance takes the ends; what was before is not known."""
    with_hole(machine, "s1", READ_WHOLE, call("m1"), compaction(1), call("m2", 30_000))
    machine.session("s2", call("m3"))
    found = machine.found()
    knowledge = learned(machine, tails=True)
    assert [main(knowledge, transcript).current for transcript in found] == ["m2", "m3"]
    assert "s1-first" not in main(knowledge, found[0]).calls
    assert [knowledge.is_whole(transcript) for transcript in found] == [False, False]


def test_tails_of_what_is_known(machine: Machine) -> None:
    """A file that was read before is read on, not glanced at."""
    path = machine.session("s1", call("m1"))
    learned(machine)
    append(path, call("m2", 30_000))
    with_hole(machine, "s2", READ_WHOLE, call("m3"))
    found = machine.found()
    knowledge = learned(machine, tails=True)
    assert list(main(knowledge, found[0]).calls) == ["m1", "m2"]
    assert [knowledge.is_whole(transcript) for transcript in found] == [True, False]


def test_tails_of_what_was_replaced(machine: Machine) -> None:
    """A file that is another now is not taken for the one that was read whole."""
    machine.session("s1", call("m1"), call("m2"))
    learned(machine)
    (machine.projects / "-project" / "s1.jsonl").unlink()
    with_hole(machine, "s1", READ_WHOLE, call("m3"))
    found = machine.found()
    knowledge = learned(machine, tails=True)
    assert main(knowledge, found[0]).current == "m3"
    assert not knowledge.is_whole(found[0])


def test_tails_of_what_is_gone(machine: Machine) -> None:
    """A file that goes before its end is looked at is told."""
    with_hole(machine, "s1", READ_WHOLE, call("m1"))
    found = machine.found()
    Path(found[0].path).unlink()
    knowledge = Knowledge.of(machine.cache)
    knowledge.learn(found, tails=True)
    assert len(knowledge.problems) == 1
    assert knowledge.session(found[0]) is None
