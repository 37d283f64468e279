"""The daemon takes events from the spool: in order, once, also after a crash."""

import fcntl
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brimline.agents.hook_adapter import HookRequest
from brimline.hooks.client import offline
from brimline.hooks.spool import Batch, take, take_dropped, take_late
from brimline.testing.hook_frames import encode_request

bodies = st.binary() | st.sampled_from(
    [b"BRIMLINE 1 ", b"BRIMLINE 1 5 5\n", b"\nBRIMLINE 1 1 0\nx"]
)
garbage = st.binary(min_size=1).filter(lambda data: b"BRIMLINE 1 " not in data)


def event(number: int, body: bytes = b"{}") -> HookRequest:
    return HookRequest("hook", "claude", f"{10**18 + number}-{number}", number, {"TERM": "x"}, body)


def append_to_spool(folder: Path, *parts: HookRequest | bytes) -> None:
    """Append events as clients do, and bytes unchanged."""
    for part in parts:
        data = part if isinstance(part, bytes) else encode_request(part)
        with (folder / "spool").open("ab") as file:
            file.write(data)


def read_batch(data: bytes, folder: Path) -> tuple[list[HookRequest], int]:
    """Return the events of a spool and the number of skipped places."""
    (folder / "data").write_bytes(data)
    batch = Batch(folder / "data")
    return list(batch), batch.skipped


def test_missing_spool_has_nothing_to_take(tmp_path: Path) -> None:
    assert take(tmp_path) is None
    assert take(tmp_path / "not there") is None
    assert take_dropped(tmp_path) == 0


def test_finished_batch_is_not_taken_again(tmp_path: Path) -> None:
    append_to_spool(tmp_path, event(1), event(2))
    batch = take(tmp_path)
    assert batch is not None
    assert list(batch) == [event(1), event(2)]
    batch.finish()
    batch.finish()
    assert take(tmp_path) is None
    assert list(tmp_path.iterdir()) == []


def test_unfinished_batch_is_taken_again_before_newer_events(tmp_path: Path) -> None:
    append_to_spool(tmp_path, event(1), event(2))
    crashed = take(tmp_path)
    assert crashed is not None
    assert next(iter(crashed)) == event(1)
    append_to_spool(tmp_path, event(3))
    events: list[HookRequest] = []
    while batch := take(tmp_path):
        events += batch
        batch.finish()
    assert events == [event(1), event(2), event(3)]


def test_spool_locked_by_a_client_is_taken_later(tmp_path: Path) -> None:
    append_to_spool(tmp_path, event(1))
    with (tmp_path / "spool").open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert take(tmp_path) is None
        assert (tmp_path / "spool").exists()
    batch = take(tmp_path)
    assert batch is not None
    assert list(batch) == [event(1)]


def test_client_appends_to_a_new_spool_after_the_old_one_is_taken(tmp_path: Path) -> None:
    path = str(tmp_path / "spool")
    for number in (1, 2):
        assert offline.append_to_spool(path, encode_request(event(number)))
        batch = take(tmp_path)
        assert batch is not None
        assert list(batch) == [event(number)]
        batch.finish()


def test_empty_spool_has_no_events(tmp_path: Path) -> None:
    (tmp_path / "spool").touch()
    batch = take(tmp_path)
    assert batch is not None
    assert list(batch) == []
    batch.finish()
    assert take(tmp_path) is None


def make_link(path: Path) -> None:
    """Link to a file of someone else that contains an event."""
    other = path.with_name("other")
    other.write_bytes(encode_request(event(9)))
    path.symlink_to(other)


def make_folder(path: Path) -> None:
    path.mkdir()
    (path / "something").touch()


MAKE_ODD_FILE: list[Callable[[Path], None]] = [make_link, make_folder, os.mkfifo]


@pytest.mark.parametrize("make", MAKE_ODD_FILE)
def test_batch_replaced_after_it_was_taken_is_not_read(
    tmp_path: Path, make: Callable[[Path], None]
) -> None:
    append_to_spool(tmp_path, event(1))
    batch = take(tmp_path)
    assert batch is not None
    batch.finish()
    make(tmp_path / "spool.taking")
    with pytest.raises(OSError):
        list(batch)


@pytest.mark.parametrize("name", ["spool", "spool.taking"])
@pytest.mark.parametrize("make", MAKE_ODD_FILE)
def test_spool_that_is_no_regular_file_is_moved_aside_and_logged(
    tmp_path: Path, make: Callable[[Path], None], name: str, caplog: pytest.LogCaptureFixture
) -> None:
    make(tmp_path / name)
    if name == "spool.taking":
        append_to_spool(tmp_path, event(1))
    events: list[HookRequest] = []
    while batch := take(tmp_path):
        events += batch
        batch.finish()
    assert events == ([event(1)] if name == "spool.taking" else [])
    (aside,) = tmp_path.glob(f"{name}.aside-*")
    assert str(aside) in caplog.text
    append_to_spool(tmp_path, event(2))
    batch = take(tmp_path)
    assert batch is not None
    assert list(batch) == [event(2)]


@pytest.mark.parametrize("make", MAKE_ODD_FILE)
def test_loss_counter_that_is_no_regular_file_is_moved_aside(
    tmp_path: Path, make: Callable[[Path], None]
) -> None:
    make(tmp_path / "spool.dropped")
    assert take_dropped(tmp_path) == 0
    assert len(list(tmp_path.glob("spool.dropped.aside-*"))) == 1
    assert offline.count_event(str(tmp_path / "spool.dropped"))
    assert take_dropped(tmp_path) == 1


@pytest.mark.parametrize("name", ["spool", "spool.taking", "spool.dropped"])
def test_inaccessible_file_stays_and_is_logged_once(
    tmp_path: Path, without_privileges: None, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / name).write_bytes(encode_request(event(1)))
    (tmp_path / name).chmod(0)
    tmp_path.chmod(0o500)
    for _ in range(3):
        assert take(tmp_path) is None
        assert take_dropped(tmp_path) == 0
    assert len(caplog.records) == 1
    tmp_path.chmod(0o700)
    assert (tmp_path / name).exists()


def test_batch_that_cannot_be_finished_is_not_taken(
    tmp_path: Path, without_privileges: None
) -> None:
    (tmp_path / "spool.taking").write_bytes(encode_request(event(1)))
    tmp_path.chmod(0o500)
    assert take(tmp_path) is None
    tmp_path.chmod(0o700)
    assert take(tmp_path) is not None


def test_lost_events_are_counted_since_the_last_time_and_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for count in (3, 1):
        for _ in range(count):
            assert offline.count_event(str(tmp_path / "spool.dropped"))
        assert take_dropped(tmp_path) == count
        assert f"{count} hook events were lost" in caplog.text
    assert take_dropped(tmp_path) == 0
    assert os.listdir(tmp_path) == []


def test_late_input_is_counted_since_the_last_time(tmp_path: Path) -> None:
    for count in (2, 1):
        for _ in range(count):
            assert offline.count_event(str(tmp_path / "spool.late"))
        assert take_late(tmp_path) == count
    assert (take_late(tmp_path), take_dropped(tmp_path)) == (0, 0)


# What a crash leaves.


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that examples may share."""
    return tmp_path_factory.mktemp("scratch")


@given(st.lists(bodies, max_size=5))
def test_event_may_contain_what_looks_like_an_event(scratch: Path, many: list[bytes]) -> None:
    events = [event(number, body) for number, body in enumerate(many)]
    assert read_batch(b"".join(map(encode_request, events)), scratch) == (events, 0)


@given(st.lists(bodies, min_size=1, max_size=4), st.data())
def test_truncated_last_event_is_skipped(
    scratch: Path, many: list[bytes], data: st.DataObject
) -> None:
    events = [event(number, body) for number, body in enumerate(many)]
    *whole, last = map(encode_request, events)
    cut = data.draw(st.integers(1, len(last) - 1))
    read_events, skipped = read_batch(b"".join(whole) + last[:cut], scratch)
    assert read_events == events[:-1]
    assert skipped >= 1


@given(st.lists(garbage, min_size=3, max_size=3))
def test_each_garbage_between_events_is_skipped_and_counted(
    scratch: Path, noise: list[bytes]
) -> None:
    first, second = encode_request(event(1)), encode_request(event(2))
    data = noise[0] + first + noise[1] + second + noise[2]
    assert read_batch(data, scratch) == ([event(1), event(2)], 3)


@given(st.binary(max_size=300), st.data())
def test_truncated_event_does_not_hide_later_ones(
    scratch: Path, body: bytes, data: st.DataObject
) -> None:
    torn = encode_request(event(1, body + b"x" * 20))
    cut = data.draw(st.integers(1, len(torn) - 1))
    rest = b"".join(encode_request(event(number)) for number in (2, 3, 4))
    read_events, skipped = read_batch(torn[:cut] + rest, scratch)
    assert read_events == [event(2), event(3), event(4)]
    assert skipped >= 1


@given(st.binary())
def test_spool_of_garbage_has_no_events(scratch: Path, data: bytes) -> None:
    read_events, skipped = read_batch(data, scratch)
    assert read_events == []
    assert skipped == bool(data)
