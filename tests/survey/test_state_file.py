"""The state file only saves time: whatever becomes of it, the answer is the same."""

import os
import resource
import subprocess
import sys
import zlib
from pathlib import Path

import msgspec
import pytest

from brimline.survey.index import ReadJob, read_transcript
from brimline.survey.state_file import (
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
from brimline.transcripts.source import Transcript

from .machine import NOON, Machine, call, told


def entry_of(transcript: Transcript) -> StateEntry:
    """What is kept of a transcript that was read."""
    entry = read_transcript(ReadJob(transcript, None)).entry
    assert entry is not None
    return entry


@pytest.fixture
def one(machine: Machine) -> Transcript:
    """A transcript."""
    machine.session("s1", told("x" * 100), call("m1"), call("m2", 30_000))
    return machine.found()[0]


@pytest.fixture
def kept(one: Transcript, machine: Machine) -> State:
    """A state that was saved, with a transcript in it."""
    kept = empty()
    kept.entries[one.path] = entry_of(one)
    save(kept, machine.cache)
    return kept


def test_round_trip(kept: State, machine: Machine) -> None:
    """What was saved is loaded, the packed part too."""
    loaded = load(machine.cache)
    assert loaded == kept
    entry = next(iter(loaded.entries.values()))
    assert list(entry.load().session.threads["main"].calls) == ["m1", "m2"]
    assert entry.summary.end_sent == 30_000


def test_nothing_saved(tmp_path: Path) -> None:
    """No folder, no file: nothing is known."""
    assert load(tmp_path / "none") == empty()
    assert load(tmp_path) == empty()


@pytest.mark.parametrize("size", [0, 1, 3, 4, 5, 100, -1])
def test_truncated(kept: State, machine: Machine, size: int) -> None:
    """A part of a state is none."""
    path = machine.cache / FILE_NAME
    path.write_bytes(path.read_bytes()[:size])
    assert load(machine.cache) == empty()


def test_corrupted(kept: State, machine: Machine) -> None:
    """A state with any byte changed is none."""
    path = machine.cache / FILE_NAME
    whole = path.read_bytes()
    for place in range(0, len(whole), max(1, len(whole) // 40)):
        data = bytearray(whole)
        data[place] ^= 0x40
        path.write_bytes(data)
        assert load(machine.cache) == empty()


@pytest.mark.parametrize("body", [b"", b"\xc1", b"\x93\xa1x", msgspec.msgpack.encode([1, 2, 3])])
def test_another_shape(tmp_path: Path, body: bytes) -> None:
    """Something else, though its sum is right, is no state."""
    (tmp_path / FILE_NAME).write_bytes(zlib.crc32(body).to_bytes(4, "little") + body)
    assert load(tmp_path) == empty()


@pytest.mark.parametrize("field", ["version", "zone"])
def test_of_another_version_or_zone(kept: State, machine: Machine, field: str) -> None:
    """What another version made, or in another time zone, is not believed."""
    setattr(kept, field, "another")
    save(kept, machine.cache)
    assert load(machine.cache) == empty()
    assert load(machine.cache).version == VERSION


def test_folder_is_a_file(kept: State, tmp_path: Path) -> None:
    """Where nothing can be saved, nothing is, and nothing is raised."""
    (tmp_path / "file").write_bytes(b"")
    save(kept, tmp_path / "file")
    save(kept, tmp_path / "file" / "below")
    assert load(tmp_path / "file") == empty()


@pytest.mark.usefixtures("ordinary")
def test_read_only_folder(kept: State, tmp_path: Path) -> None:
    """A folder that may not be written into changes nothing."""
    folder = tmp_path / "read-only"
    folder.mkdir(mode=0o500)
    save(kept, folder)
    save(kept, folder / "below")
    assert list(folder.iterdir()) == []


def test_state_is_a_folder(kept: State, tmp_path: Path) -> None:
    """Where a folder is in the way, nothing is saved and no other file stays."""
    folder = tmp_path / "other"
    (folder / FILE_NAME / "full").mkdir(parents=True)
    save(kept, folder)
    assert load(folder) == empty()
    assert os.listdir(folder) == [FILE_NAME]


FULL = """
import resource, sys
from pathlib import Path
from brimline.survey.state_file import State, empty, load, save
from brimline.survey.index import ReadJob, read_transcript
from brimline.transcripts.source import Places
from brimline.survey.files import find_transcripts
home, cache = map(Path, sys.argv[1:])
found = find_transcripts(Places(home, {}))
state = load(cache)
for number in range(200):
    entry = read_transcript(ReadJob(found[0], None)).entry
    state.entries[f"{found[0].path}{number}"] = entry
limits = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limits[1]))
save(state, cache)
resource.setrlimit(resource.RLIMIT_FSIZE, limits)
"""


def measured() -> dict[str, str]:
    """What tells a child process to measure its coverage too."""
    return {name: value for name, value in os.environ.items() if name.startswith("COVERAGE_")}


def test_full_disk(kept: State, machine: Machine) -> None:
    """A disk that fills up while the state is written leaves the old one, and nothing else."""
    assert hasattr(resource, "RLIMIT_FSIZE")
    before = (machine.cache / FILE_NAME).read_bytes()
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(machine.home), str(machine.cache)],
        capture_output=True,
        text=True,
        timeout=120,
        env={"PATH": os.environ["PATH"], **measured()},
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert os.listdir(machine.cache) == [FILE_NAME]
    assert (machine.cache / FILE_NAME).read_bytes() == before


def test_killed_half_way(kept: State, machine: Machine) -> None:
    """What a killed process left behind is not taken for the state."""
    left = machine.cache / f"{FILE_NAME}abcd1234"
    left.write_bytes((machine.cache / FILE_NAME).read_bytes()[:50])
    assert load(machine.cache) == kept
    save(kept, machine.cache)
    assert load(machine.cache) == kept


def test_private(kept: State, machine: Machine) -> None:
    """What is known of a user's sessions is the user's alone."""
    assert (machine.cache / FILE_NAME).stat().st_mode & 0o777 == 0o600


SAVING = """
import sys
from pathlib import Path
from brimline.survey.state_file import load, save
for _ in range(50):
    save(load(Path(sys.argv[1])), Path(sys.argv[1]))
"""


def test_two_at_once(kept: State, machine: Machine) -> None:
    """Processes that save at the same time leave a whole state, and nothing else."""
    command = [sys.executable, "-c", SAVING, str(machine.cache)]
    started = [subprocess.Popen(command) for _ in range(2)]
    while any(process.poll() is None for process in started):
        assert load(machine.cache) == kept
    assert [process.returncode for process in started] == [0, 0]
    assert os.listdir(machine.cache) == [FILE_NAME]


# What is believed of an entry.


def test_believed(one: Transcript) -> None:
    """An entry is believed while the file is the one that was read."""
    assert still_matches(entry_of(one), one)


def grown(path: Path, data: bytes) -> None:
    """Append to a file."""
    with path.open("ab") as file:
        file.write(data)


def again(machine: Machine) -> Transcript:
    """The transcript as it is now."""
    return machine.found()[0]


def test_believed_when_grown(one: Transcript, machine: Machine) -> None:
    """A file that grew still begins with what was read."""
    entry = entry_of(one)
    grown(Path(one.path), call("m3"))
    assert still_matches(entry, again(machine))


def test_not_believed_when_shorter(one: Transcript, machine: Machine) -> None:
    """A file that is shorter does not."""
    entry = entry_of(one)
    os.truncate(one.path, one.size - 10)
    assert not still_matches(entry, again(machine))


def test_not_believed_when_cut_and_grown(one: Transcript, machine: Machine) -> None:
    """Nor one that was cut and grew beyond where it was."""
    entry = entry_of(one)
    os.truncate(one.path, 10)
    grown(Path(one.path), call("m9") * 9)
    assert not still_matches(entry, again(machine))


def test_not_believed_when_replaced(one: Transcript, machine: Machine) -> None:
    """Nor another file in its place, though it has the same bytes."""
    entry = entry_of(one)
    path = Path(one.path)
    copy = path.with_suffix(".copy")
    copy.write_bytes(path.read_bytes())
    copy.replace(path)
    os.utime(path, (NOON, NOON))
    assert not still_matches(entry, again(machine))


def test_not_believed_when_gone(one: Transcript) -> None:
    """Nor one that is not there."""
    entry = entry_of(one)
    Path(one.path).unlink()
    assert not still_matches(entry, one)


def test_mark(tmp_path: Path) -> None:
    """A mark has the bytes before its offset, however few there are."""
    path = tmp_path / "x"
    path.write_bytes(bytes(range(200)))
    assert file_mark(str(path), 100).tail == bytes(range(100 - TAIL_BYTES, 100))
    assert file_mark(str(path), 3).tail == b"\0\1\2"
    assert file_mark(str(path), 0).tail == b""
    assert file_mark(str(path), 100) != file_mark(str(path), 101)
    with pytest.raises(OSError):
        file_mark(str(tmp_path / "none"), 0)
