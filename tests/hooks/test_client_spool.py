"""The spool as clients leave it, whatever it or its disk is like."""

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
from brimline.hooks.protocol import encode_request

from .agent import TOO_LONG, Agent, Done

WEEK = 7 * 24 * 3600
BODY = b'{"hook_event_name":"Stop","cwd":"%b"}' % (b"x" * 2000)


def check(done: Done) -> None:
    """That the agent was neither held up nor told anything."""
    assert (done.code, done.out, done.told) == (0, b"", b"")
    assert done.seconds < TOO_LONG


def kept_at(at: float, number: int = 1) -> HookRequest:
    """An event that was spooled at a time."""
    return HookRequest("hook", "claude", f"{int(at * 1e9)}-{number}", number, {}, b"{}")


def test_order(agent: Agent) -> None:
    """Events stand in the spool in the order in which they were, for nobody else to read."""
    bodies = [b'{"session_id":"%d"}' % number for number in range(5)]
    for body in bodies:
        check(agent.run(body))
    mode = stat.S_IMODE((agent.folder / "spool").stat().st_mode)
    kept = agent.spooled()
    assert (mode, [one.body for one in kept]) == (0o600, bodies)
    assert [one.id for one in kept] == sorted(one.id for one in kept)


def test_many_at_once(agent: Agent) -> None:
    """Clients that run at the same time do not tear each other's events."""
    bodies = [b'{"cwd":"%b"}' % (b"%d" % number * 4_000) for number in range(6)]
    with ThreadPoolExecutor(len(bodies)) as several:
        for done in several.map(agent.run, bodies):
            assert (done.code, done.out) == (0, b"")
    kept = [one.body for one in agent.spooled()]
    assert kept
    assert set(kept) <= set(bodies)
    assert len(set(kept)) == len(kept)


def test_no_folder(agent: Agent) -> None:
    """A state folder that is not there is made, for the user alone."""
    fresh = replace(agent, folder=agent.folder / "brimline")
    check(fresh.run(BODY))
    assert stat.S_IMODE(fresh.folder.stat().st_mode) == 0o700
    assert [one.body for one in fresh.spooled()] == [BODY]


def test_no_folders(agent: Agent) -> None:
    """The folders above it are made too, for the user alone."""
    fresh = replace(agent, folder=agent.folder / "local" / "state" / "brimline")
    check(fresh.run(BODY))
    made = [fresh.folder, *fresh.folder.parents[:2]]
    assert {stat.S_IMODE(folder.stat().st_mode) for folder in made} == {0o700}
    assert [one.body for one in fresh.spooled()] == [BODY]


def test_folders_that_another_makes(folder: Path) -> None:
    """Who finds that another was faster is content; a path that leads nowhere is an error."""
    offline.make_folder(str(folder / "one" / "two"))
    offline.make_folder(str(folder / "one" / "two"))
    assert (folder / "one" / "two").is_dir()
    with pytest.raises(FileNotFoundError):
        offline.make_folder("")


def test_nowhere(agent: Agent) -> None:
    """Where there is no place at all, the event is lost and the agent goes on."""
    (agent.folder / "file").touch()
    check(replace(agent, folder=agent.folder / "file" / "there").run(BODY))


def test_read_only_folder(agent: Agent, made_ordinary: Callable[[], None] | None) -> None:
    """Where nothing may be written, the event is lost and the agent goes on."""
    agent.folder.chmod(0o500)
    check(replace(agent, before=made_ordinary).run(BODY))
    agent.folder.chmod(0o700)
    assert list(agent.folder.iterdir()) == []


def test_full_disk(agent: Agent) -> None:
    """An event that fits in part is taken back and counted; what was there before stays."""
    before = kept_at(time.time())
    (agent.folder / "spool").write_bytes(encode_request(before))

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))

    check(replace(agent, before=limit).run(BODY))
    assert agent.dropped() == 1
    assert agent.spooled() == [before]


@pytest.mark.parametrize("kind", ["folder", "link"])
def test_no_file(agent: Agent, kind: str) -> None:
    """A spool that is no file of its own is not written to, and the event is counted as lost."""
    spool, other = agent.folder / "spool", agent.folder / "other"
    other.write_text("somebody's")
    if kind == "folder":
        spool.mkdir()
    else:
        spool.symlink_to(other)
    check(agent.run(BODY))
    assert agent.dropped() == 1
    assert other.read_text() == "somebody's"


def test_locked(agent: Agent) -> None:
    """A lock that is not given up is not waited for; the event is counted as lost."""
    with (agent.folder / "spool").open("wb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        check(agent.run(BODY))
    assert agent.dropped() == 1
    assert agent.spooled() == []


@pytest.mark.parametrize(("more", "kept"), [(0, True), (1, False)], ids=["just", "too large"])
def test_large(agent: Agent, more: int, kept: bool) -> None:
    """A spool of more than 50 MB takes nothing in; what is lost is counted."""
    spool = agent.folder / "spool"
    spool.touch()
    os.truncate(spool, offline.MAX_SPOOL_BYTES + more)
    check(agent.run(BODY))
    assert (spool.stat().st_size > offline.MAX_SPOOL_BYTES + more) == kept
    assert agent.dropped() == (not kept)


@pytest.mark.parametrize(("days", "kept"), [(6, True), (8, False)])
def test_old(agent: Agent, days: int, kept: bool) -> None:
    """A spool whose first event is older than a week takes nothing in; what is lost is counted."""
    first = kept_at(time.time() - days * 24 * 3600)
    (agent.folder / "spool").write_bytes(encode_request(first))
    check(agent.run(BODY))
    assert agent.dropped() == (not kept)
    assert [one.body for one in agent.spooled()] == [b"{}", *[BODY][:kept]]


def test_garbage_is_not_old(agent: Agent) -> None:
    """A spool that begins with garbage is of no age, and takes events in."""
    (agent.folder / "spool").write_bytes(b"garbage\0id=x-1\n")
    check(agent.run(BODY))
    assert (agent.folder / "spool").read_bytes().endswith(BODY)


def test_taken_away(folder: Path) -> None:
    """A client that waits for the lock of a spool that is taken away appends to a new one."""
    path = folder / "spool"
    old = offline.open_spool(str(path))
    path.rename(folder / "spool.taking")
    assert not offline.is_at(old, str(path))
    new = offline.open_locked(str(path))
    assert offline.is_at(new, str(path))
    os.close(old)
    os.close(new)


def test_nothing_in_the_environment(agent: Agent) -> None:
    """No HOME and no PATH are needed."""
    assert agent.env == {}
    check(agent.run(BODY))
    (kept,) = agent.spooled()
    assert (kept.env, kept.body) == ({}, BODY)
