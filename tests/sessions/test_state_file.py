"""The state file only saves time: if it is lost or damaged, the results are the same."""

import os
import resource
import subprocess
import sys
import zlib
from pathlib import Path

import msgspec
import pytest

from brimline.agents.transcripts.source import Transcript
from brimline.sessions.index import ReadJob, read_transcript
from brimline.sessions.state_file import (
    FILE_NAME,
    TAIL_BYTES,
    VERSION,
    State,
    StateEntry,
    empty,
    file_mark,
    load,
    save,
    still_matches,
)

from .machine import NOON, Machine, call, user_record


def entry_of(transcript: Transcript) -> StateEntry:
    """The index entry of a transcript that was read."""
    entry = read_transcript(ReadJob(transcript, None)).entry
    assert entry is not None
    return entry


@pytest.fixture
def transcript(machine: Machine) -> Transcript:
    machine.session("s1", user_record("x" * 100), call("m1"), call("m2", 30_000))
    return machine.transcripts()[0]


@pytest.fixture
def saved(transcript: Transcript, machine: Machine) -> State:
    """A saved state with one transcript."""
    state = empty()
    state.entries[transcript.path] = entry_of(transcript)
    save(state, machine.cache)
    return state


def test_loaded_state_equals_the_saved_one(saved: State, machine: Machine) -> None:
    loaded = load(machine.cache)
    assert loaded == saved
    entry = next(iter(loaded.entries.values()))
    assert list(entry.load().session.threads["main"].calls) == ["m1", "m2"]
    assert entry.summary.end_sent == 30_000


def test_missing_state_is_empty(tmp_path: Path) -> None:
    assert load(tmp_path / "none") == empty()
    assert load(tmp_path) == empty()


@pytest.mark.parametrize("size", [0, 1, 3, 4, 5, 100, -1])
def test_truncated_state_is_ignored(saved: State, machine: Machine, size: int) -> None:
    path = machine.cache / FILE_NAME
    path.write_bytes(path.read_bytes()[:size])
    assert load(machine.cache) == empty()


def test_state_with_any_byte_changed_is_ignored(saved: State, machine: Machine) -> None:
    path = machine.cache / FILE_NAME
    whole = path.read_bytes()
    for place in range(0, len(whole), max(1, len(whole) // 40)):
        data = bytearray(whole)
        data[place] ^= 0x40
        path.write_bytes(data)
        assert load(machine.cache) == empty()


@pytest.mark.parametrize("body", [b"", b"\xc1", b"\x93\xa1x", msgspec.msgpack.encode([1, 2, 3])])
def test_other_data_with_a_valid_checksum_is_ignored(tmp_path: Path, body: bytes) -> None:
    (tmp_path / FILE_NAME).write_bytes(zlib.crc32(body).to_bytes(4, "little") + body)
    assert load(tmp_path) == empty()


@pytest.mark.parametrize("field", ["version", "zone"])
def test_state_of_another_version_or_time_zone_is_ignored(
    saved: State, machine: Machine, field: str
) -> None:
    setattr(saved, field, "another")
    save(saved, machine.cache)
    assert load(machine.cache) == empty()
    assert load(machine.cache).version == VERSION


def test_unusable_folder_is_no_error(saved: State, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    save(saved, tmp_path / "file")
    save(saved, tmp_path / "file" / "below")
    assert load(tmp_path / "file") == empty()


@pytest.mark.usefixtures("without_privileges")
def test_read_only_folder_is_no_error(saved: State, tmp_path: Path) -> None:
    folder = tmp_path / "read-only"
    folder.mkdir(mode=0o500)
    save(saved, folder)
    save(saved, folder / "below")
    assert list(folder.iterdir()) == []


def test_folder_in_place_of_the_state_leaves_no_other_file(saved: State, tmp_path: Path) -> None:
    folder = tmp_path / "other"
    (folder / FILE_NAME / "full").mkdir(parents=True)
    save(saved, folder)
    assert load(folder) == empty()
    assert os.listdir(folder) == [FILE_NAME]


FULL = """
import resource, sys
from pathlib import Path
from brimline.sessions.state_file import State, empty, load, save
from brimline.sessions.index import ReadJob, read_transcript
from brimline.agents.transcripts.source import Places
from brimline.sessions.files import find_transcripts
home, cache = map(Path, sys.argv[1:])
transcripts = find_transcripts(Places(home, {}))
state = load(cache)
for number in range(200):
    entry = read_transcript(ReadJob(transcripts[0], None)).entry
    state.entries[f"{transcripts[0].path}{number}"] = entry
limits = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limits[1]))
save(state, cache)
resource.setrlimit(resource.RLIMIT_FSIZE, limits)
"""


def measured() -> dict[str, str]:
    """The variables that let a child process measure its coverage."""
    return {name: value for name, value in os.environ.items() if name.startswith("COVERAGE_")}


def test_full_disk_keeps_the_old_state_and_no_other_file(saved: State, machine: Machine) -> None:
    assert hasattr(resource, "RLIMIT_FSIZE")
    before = (machine.cache / FILE_NAME).read_bytes()
    completed = subprocess.run(
        [sys.executable, "-c", FULL, str(machine.home), str(machine.cache)],
        capture_output=True,
        text=True,
        timeout=120,
        env={"PATH": os.environ["PATH"], **measured()},
    )
    assert (completed.returncode, completed.stderr) == (0, "")
    assert os.listdir(machine.cache) == [FILE_NAME]
    assert (machine.cache / FILE_NAME).read_bytes() == before


def test_temporary_file_of_a_killed_process_is_ignored(saved: State, machine: Machine) -> None:
    left = machine.cache / f"{FILE_NAME}abcd1234"
    left.write_bytes((machine.cache / FILE_NAME).read_bytes()[:50])
    assert load(machine.cache) == saved
    save(saved, machine.cache)
    assert load(machine.cache) == saved


def test_state_is_readable_by_its_owner_only(saved: State, machine: Machine) -> None:
    assert (machine.cache / FILE_NAME).stat().st_mode & 0o777 == 0o600


SAVING = """
import sys
from pathlib import Path
from brimline.sessions.state_file import load, save
for _ in range(50):
    save(load(Path(sys.argv[1])), Path(sys.argv[1]))
"""


def test_concurrent_saves_leave_one_complete_state(saved: State, machine: Machine) -> None:
    command = [sys.executable, "-c", SAVING, str(machine.cache)]
    started = [subprocess.Popen(command) for _ in range(2)]
    while any(process.poll() is None for process in started):
        assert load(machine.cache) == saved
    assert [process.returncode for process in started] == [0, 0]
    assert os.listdir(machine.cache) == [FILE_NAME]


# What is believed of an entry.


def test_entry_is_valid_while_the_file_is_unchanged(transcript: Transcript) -> None:
    assert still_matches(entry_of(transcript).mark, transcript)


def grown(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)


def again(machine: Machine) -> Transcript:
    return machine.transcripts()[0]


def test_entry_is_valid_when_the_file_grew(transcript: Transcript, machine: Machine) -> None:
    entry = entry_of(transcript)
    grown(Path(transcript.path), call("m3"))
    assert still_matches(entry.mark, again(machine))


def test_entry_is_invalid_when_the_file_is_shorter(
    transcript: Transcript, machine: Machine
) -> None:
    entry = entry_of(transcript)
    os.truncate(transcript.path, transcript.size - 10)
    assert not still_matches(entry.mark, again(machine))


def test_entry_is_invalid_when_the_file_was_truncated_and_grew(
    transcript: Transcript, machine: Machine
) -> None:
    entry = entry_of(transcript)
    os.truncate(transcript.path, 10)
    grown(Path(transcript.path), call("m9") * 9)
    assert not still_matches(entry.mark, again(machine))


def test_entry_is_invalid_for_another_file_with_the_same_bytes(
    transcript: Transcript, machine: Machine
) -> None:
    entry = entry_of(transcript)
    path = Path(transcript.path)
    copy = path.with_suffix(".copy")
    copy.write_bytes(path.read_bytes())
    copy.replace(path)
    os.utime(path, (NOON, NOON))
    assert not still_matches(entry.mark, again(machine))


def test_entry_is_invalid_when_the_file_is_missing(transcript: Transcript) -> None:
    entry = entry_of(transcript)
    Path(transcript.path).unlink()
    assert not still_matches(entry.mark, transcript)


def test_mark_has_the_bytes_before_its_offset(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(bytes(range(200)))
    assert file_mark(str(path), 100).tail == bytes(range(100 - TAIL_BYTES, 100))
    assert file_mark(str(path), 3).tail == b"\0\1\2"
    assert file_mark(str(path), 0).tail == b""
    assert file_mark(str(path), 100) != file_mark(str(path), 101)
    with pytest.raises(OSError):
        file_mark(str(tmp_path / "none"), 0)
