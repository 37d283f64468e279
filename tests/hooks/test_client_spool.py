"""Hook clients write the spool, whatever its state or that of the disk."""

import fcntl
import os
import resource
import stat
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from brimline.agents.hook_adapter import HookRequest
from brimline.hooks.client import offline
from brimline.testing.hook_frames import encode_request

from .agent import MAX_RUN_S, Agent, ClientResult

BODY = b'{"hook_event_name":"Stop","cwd":"%b"}' % (b"x" * 2000)


def check_silent_exit(result: ClientResult) -> None:
    """The agent was neither blocked nor given any output."""
    assert (result.code, result.stdout, result.stderr) == (0, b"", b"")
    assert result.seconds < MAX_RUN_S


def event_at(at: float, number: int = 1) -> HookRequest:
    return HookRequest("hook", "claude", f"{int(at * 1e9)}-{number}", number, {}, b"{}")


def test_events_are_spooled_in_order_and_private(agent: Agent) -> None:
    bodies = [b'{"session_id":"%d"}' % number for number in range(5)]
    for body in bodies:
        check_silent_exit(agent.run(body))
    mode = stat.S_IMODE((agent.folder / "spool").stat().st_mode)
    events = agent.take_spooled()
    assert (mode, [one.body for one in events]) == (0o600, bodies)
    assert [one.id for one in events] == sorted(one.id for one in events)


def test_concurrent_clients_do_not_mix_events(agent: Agent) -> None:
    bodies = [b'{"cwd":"%b"}' % (b"%d" % number * 4_000) for number in range(6)]
    with ThreadPoolExecutor(len(bodies)) as several:
        for result in several.map(agent.run, bodies):
            assert (result.code, result.stdout) == (0, b"")
    spooled = [one.body for one in agent.take_spooled()]
    assert spooled
    assert set(spooled) <= set(bodies)
    assert len(set(spooled)) == len(spooled)


def test_missing_state_folder_is_created_private(agent: Agent) -> None:
    fresh = replace(agent, folder=agent.folder / "brimline")
    check_silent_exit(fresh.run(BODY))
    assert stat.S_IMODE(fresh.folder.stat().st_mode) == 0o700
    assert [one.body for one in fresh.take_spooled()] == [BODY]


def test_missing_parent_folders_are_created_private(agent: Agent) -> None:
    fresh = replace(agent, folder=agent.folder / "local" / "state" / "brimline")
    check_silent_exit(fresh.run(BODY))
    folders = [fresh.folder, *fresh.folder.parents[:2]]
    assert {stat.S_IMODE(folder.stat().st_mode) for folder in folders} == {0o700}
    assert [one.body for one in fresh.take_spooled()] == [BODY]


def test_folder_created_by_another_process_is_accepted(folder: Path) -> None:
    offline.make_folder(str(folder / "one" / "two"))
    offline.make_folder(str(folder / "one" / "two"))
    assert (folder / "one" / "two").is_dir()
    with pytest.raises(FileNotFoundError):
        offline.make_folder("")


def test_impossible_folder_loses_the_event_silently(agent: Agent) -> None:
    (agent.folder / "file").touch()
    check_silent_exit(replace(agent, folder=agent.folder / "file" / "there").run(BODY))


def test_read_only_folder_loses_the_event_silently(
    agent: Agent, drop_privileges: Callable[[], None] | None
) -> None:
    agent.folder.chmod(0o500)
    check_silent_exit(replace(agent, before=drop_privileges).run(BODY))
    agent.folder.chmod(0o700)
    assert list(agent.folder.iterdir()) == []


def test_full_disk_removes_the_partial_event_and_counts_it(agent: Agent) -> None:
    before = event_at(time.time())
    (agent.folder / "spool").write_bytes(encode_request(before))

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))

    check_silent_exit(replace(agent, before=limit).run(BODY))
    assert agent.take_dropped() == 1
    assert agent.take_spooled() == [before]


@pytest.mark.parametrize("kind", ["folder", "link"])
def test_spool_that_is_no_regular_file_is_not_written(agent: Agent, kind: str) -> None:
    spool, other = agent.folder / "spool", agent.folder / "other"
    other.write_text("not ours")
    if kind == "folder":
        spool.mkdir()
    else:
        spool.symlink_to(other)
    check_silent_exit(agent.run(BODY))
    assert agent.take_dropped() == 1
    assert other.read_text() == "not ours"


def test_locked_spool_is_not_waited_for(agent: Agent) -> None:
    with (agent.folder / "spool").open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        check_silent_exit(agent.run(BODY))
    assert agent.take_dropped() == 1
    assert agent.take_spooled() == []


@pytest.mark.parametrize(("more", "is_spooled"), [(0, True), (1, False)], ids=["just", "too large"])
def test_spool_at_its_size_limit_drops_events(agent: Agent, more: int, is_spooled: bool) -> None:
    spool = agent.folder / "spool"
    spool.touch()
    os.truncate(spool, offline.MAX_SPOOL_BYTES + more)
    check_silent_exit(agent.run(BODY))
    assert (spool.stat().st_size > offline.MAX_SPOOL_BYTES + more) == is_spooled
    assert agent.take_dropped() == (not is_spooled)


@pytest.mark.parametrize(("days", "is_spooled"), [(6, True), (8, False)])
def test_spool_older_than_a_week_drops_events(agent: Agent, days: int, is_spooled: bool) -> None:
    first = event_at(time.time() - days * 24 * 3600)
    (agent.folder / "spool").write_bytes(encode_request(first))
    check_silent_exit(agent.run(BODY))
    assert agent.take_dropped() == (not is_spooled)
    assert [one.body for one in agent.take_spooled()] == [b"{}", *[BODY][:is_spooled]]


def test_spool_that_begins_with_garbage_accepts_events(agent: Agent) -> None:
    (agent.folder / "spool").write_bytes(b"garbage\0id=x-1\n")
    check_silent_exit(agent.run(BODY))
    assert (agent.folder / "spool").read_bytes().endswith(BODY)


def test_client_appends_to_a_new_spool_when_the_old_one_was_taken(folder: Path) -> None:
    path = folder / "spool"
    old = offline.open_spool(str(path))
    path.rename(folder / "spool.taking")
    assert not offline.is_at(old, str(path))
    new = offline.open_locked(str(path))
    assert offline.is_at(new, str(path))
    os.close(old)
    os.close(new)


def test_client_needs_no_environment(agent: Agent) -> None:
    assert agent.env == {}
    check_silent_exit(agent.run(BODY))
    (event,) = agent.take_spooled()
    assert (event.env, event.body) == ({}, BODY)
