"""The daemon's side of the spool: in order, once, and whatever a crash left of it."""

import fcntl
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brimline.agents.hook_adapter import HookRequest
from brimline.hooks.client import offline
from brimline.hooks.protocol import encode_request
from brimline.hooks.spool import Batch, take, take_dropped

bodies = st.binary() | st.sampled_from(
    [b"BRIMLINE 1 ", b"BRIMLINE 1 5 5\n", b"\nBRIMLINE 1 1 0\nx"]
)
garbage = st.binary(min_size=1).filter(lambda data: b"BRIMLINE 1 " not in data)


def event(number: int, body: bytes = b"{}") -> HookRequest:
    """An event by its number."""
    return HookRequest("hook", "claude", f"{10**18 + number}-{number}", number, {"TERM": "x"}, body)


def written(folder: Path, *parts: HookRequest | bytes) -> None:
    """Append to the spool, events as clients do and other things as they are."""
    for part in parts:
        data = part if isinstance(part, bytes) else encode_request(part)
        with (folder / "spool").open("ab") as file:
            file.write(data)


def read(data: bytes, folder: Path) -> tuple[list[HookRequest], int]:
    """What is found in a spool, and how many places were passed over."""
    (folder / "data").write_bytes(data)
    batch = Batch(folder / "data")
    return list(batch), batch.skipped


def test_nothing(tmp_path: Path) -> None:
    """Where nothing was spooled there is nothing to take, nor where there is no folder."""
    assert take(tmp_path) is None
    assert take(tmp_path / "not there") is None
    assert take_dropped(tmp_path) == 0


def test_once(tmp_path: Path) -> None:
    """What was taken and finished is gone."""
    written(tmp_path, event(1), event(2))
    batch = take(tmp_path)
    assert batch is not None
    assert list(batch) == [event(1), event(2)]
    batch.finish()
    batch.finish()
    assert take(tmp_path) is None
    assert list(tmp_path.iterdir()) == []


def test_crash_between(tmp_path: Path) -> None:
    """What was taken and not finished is taken again, before what came meanwhile."""
    written(tmp_path, event(1), event(2))
    crashed = take(tmp_path)
    assert crashed is not None
    assert next(iter(crashed)) == event(1)
    written(tmp_path, event(3))
    found: list[HookRequest] = []
    while batch := take(tmp_path):
        found += batch
        batch.finish()
    assert found == [event(1), event(2), event(3)]


def test_while_a_client_writes(tmp_path: Path) -> None:
    """A spool that a client holds stays where it is, until the next time."""
    written(tmp_path, event(1))
    with (tmp_path / "spool").open("ab") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert take(tmp_path) is None
        assert (tmp_path / "spool").exists()
    batch = take(tmp_path)
    assert batch is not None
    assert list(batch) == [event(1)]


def test_clients_go_on(tmp_path: Path) -> None:
    """What a client appends after the spool was taken goes into a new one."""
    path = str(tmp_path / "spool")
    for number in (1, 2):
        assert offline.append_to_spool(path, encode_request(event(number)))
        batch = take(tmp_path)
        assert batch is not None
        assert list(batch) == [event(number)]
        batch.finish()


def test_empty(tmp_path: Path) -> None:
    """A spool that a client made and could not write to holds nothing."""
    (tmp_path / "spool").touch()
    batch = take(tmp_path)
    assert batch is not None
    assert list(batch) == []
    batch.finish()
    assert take(tmp_path) is None


def as_link(path: Path) -> None:
    """A link to a file with an event, which is somebody else's."""
    other = path.with_name("other")
    other.write_bytes(encode_request(event(9)))
    path.symlink_to(other)


def as_folder(path: Path) -> None:
    """A folder that is not empty."""
    path.mkdir()
    (path / "something").touch()


ODD: list[Callable[[Path], None]] = [as_link, as_folder, os.mkfifo]


@pytest.mark.parametrize("name", ["spool", "spool.taking"])
@pytest.mark.parametrize("make", ODD)
def test_no_file(
    tmp_path: Path, make: Callable[[Path], None], name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """What is no file is moved aside as it is, with a word in the log; the rest is taken."""
    make(tmp_path / name)
    if name == "spool.taking":
        written(tmp_path, event(1))
    found: list[HookRequest] = []
    while batch := take(tmp_path):
        found += batch
        batch.finish()
    assert found == ([event(1)] if name == "spool.taking" else [])
    (aside,) = tmp_path.glob(f"{name}.aside-*")
    assert str(aside) in caplog.text
    written(tmp_path, event(2))
    batch = take(tmp_path)
    assert batch is not None
    assert list(batch) == [event(2)]


@pytest.mark.parametrize("make", ODD)
def test_no_file_of_losses(tmp_path: Path, make: Callable[[Path], None]) -> None:
    """The same for the count of what was lost: nothing is counted."""
    make(tmp_path / "spool.dropped")
    assert take_dropped(tmp_path) == 0
    assert len(list(tmp_path.glob("spool.dropped.aside-*"))) == 1
    assert offline.count_dropped(str(tmp_path / "spool.dropped"))
    assert take_dropped(tmp_path) == 1


@pytest.mark.parametrize("name", ["spool", "spool.taking", "spool.dropped"])
def test_file_that_may_not_be_used(
    tmp_path: Path, ordinary: None, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """What may not be read or taken away stays, with one word in the log however often it is."""
    (tmp_path / name).write_bytes(encode_request(event(1)))
    (tmp_path / name).chmod(0)
    tmp_path.chmod(0o500)
    for _ in range(3):
        assert take(tmp_path) is None
        assert take_dropped(tmp_path) == 0
    assert len(caplog.records) == 1
    tmp_path.chmod(0o700)
    assert (tmp_path / name).exists()


def test_folder_that_may_not_be_written_to(tmp_path: Path, ordinary: None) -> None:
    """What was taken before is not given out where it could not be finished."""
    (tmp_path / "spool.taking").write_bytes(encode_request(event(1)))
    tmp_path.chmod(0o500)
    assert take(tmp_path) is None
    tmp_path.chmod(0o700)
    assert take(tmp_path) is not None


def test_dropped(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """What was lost is counted from the last time on; the log keeps it."""
    for count in (3, 1):
        for _ in range(count):
            assert offline.count_dropped(str(tmp_path / "spool.dropped"))
        assert take_dropped(tmp_path) == count
        assert f"{count} hook events were lost" in caplog.text
    assert take_dropped(tmp_path) == 0
    assert os.listdir(tmp_path) == []


# What a crash leaves.


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that examples may share."""
    return tmp_path_factory.mktemp("scratch")


@given(st.lists(bodies, max_size=5))
def test_any_body(scratch: Path, many: list[bytes]) -> None:
    """Events are found whatever stands in them, also what looks like another."""
    events = [event(number, body) for number, body in enumerate(many)]
    assert read(b"".join(map(encode_request, events)), scratch) == (events, 0)


@given(st.lists(bodies, min_size=1, max_size=4), st.data())
def test_torn_end(scratch: Path, many: list[bytes], data: st.DataObject) -> None:
    """Of a spool that was cut off somewhere, what is whole is found."""
    events = [event(number, body) for number, body in enumerate(many)]
    *whole, last = map(encode_request, events)
    cut = data.draw(st.integers(1, len(last) - 1))
    found, skipped = read(b"".join(whole) + last[:cut], scratch)
    assert found == events[:-1]
    assert skipped >= 1


@given(st.lists(garbage, min_size=3, max_size=3))
def test_garbage_between(scratch: Path, noise: list[bytes]) -> None:
    """Garbage before, between and behind events is passed over, and each place is counted."""
    first, second = encode_request(event(1)), encode_request(event(2))
    data = noise[0] + first + noise[1] + second + noise[2]
    assert read(data, scratch) == ([event(1), event(2)], 3)


@given(st.binary(max_size=300), st.data())
def test_torn_between(scratch: Path, body: bytes, data: st.DataObject) -> None:
    """An event that was torn does not take the ones behind it along."""
    torn = encode_request(event(1, body + b"x" * 20))
    cut = data.draw(st.integers(1, len(torn) - 1))
    rest = b"".join(encode_request(event(number)) for number in (2, 3, 4))
    found, skipped = read(torn[:cut] + rest, scratch)
    assert found == [event(2), event(3), event(4)]
    assert skipped >= 1


@given(st.binary())
def test_only_garbage(scratch: Path, data: bytes) -> None:
    """Whatever stands there, nothing is raised."""
    found, skipped = read(data, scratch)
    assert found == []
    assert skipped == bool(data)
