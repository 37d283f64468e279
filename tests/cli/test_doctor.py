"""`brimline doctor`: what it says of what is there, and what of what is not."""

import argparse
import fcntl
import json
import os
from pathlib import Path
from typing import Any

import pytest

from brimline._version import __version__
from brimline.cli import doctor, setup
from brimline.cli.context import Context
from brimline.cli.doctor_checks import (
    FULL,
    ROOM,
    START,
    Check,
    Heard,
    daemon,
    heard_from,
    hooks,
    spool,
    store,
    version,
)
from brimline.server.port_file import write_port
from brimline.server.secret import load_or_create_secret
from brimline.settings import Settings
from brimline.setup.disabled_hooks import DisablingSetting
from brimline.setup.installed import InstalledHooks
from brimline.store.problems import StoreProblem, report_problem
from brimline.transcripts.source import Places

NOW = 1_800_000_000.0
SETUP: dict[str, Any] = {
    "agents": [],
    "dry_run": False,
    "remove": False,
    "scope": "user",
    "transport": None,
    "status_line": None,
    "autostart": None,
    "service": False,
    "parent": None,
    "json": True,
}


class User:
    """Somebody who types `brimline doctor`."""

    def __init__(self, home: Path, capture: "pytest.CaptureFixture[str]") -> None:
        places = Places(home, {"PATH": "/nowhere"})
        self._capture = capture
        self.home = home
        self.context = Context(places, Settings(), width=100, colour=False, now=NOW)

    def doctor(self) -> tuple[int, dict[str, Any]]:
        """The exit code, and the checks by what they are about."""
        self._capture.readouterr()
        code = doctor.run(self.context, argparse.Namespace(json=True))
        told = json.loads(self._capture.readouterr().out)
        return code, {check["about"]: check for check in told}

    def set_up(self, **options: Any) -> None:
        """Set up in some way."""
        assert setup.run(self.context, argparse.Namespace(**{**SETUP, **options})) == 0


@pytest.fixture
def user(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> User:
    """A user with Claude Code, and no daemon."""
    for folder in ("home/.claude", "project"):
        (tmp_path / folder).mkdir(parents=True)
    state = tmp_path / "home/.local/state/brimline"
    state.mkdir(parents=True, mode=0o700)
    load_or_create_secret(state)
    write_port(state, 8_420)
    monkeypatch.chdir(tmp_path / "project")
    return User(tmp_path / "home", capsys)


def test_nothing_is_set_up(user: User) -> None:
    """Each thing that is not well says what to do; the exit code is 1."""
    code, told = user.doctor()
    assert code == 1
    wrong = {about: check["hint"] for about, check in told.items() if not check["well"]}
    assert wrong == {
        "claude hooks": "`brimline setup claude` installs them.",
        "daemon": START,
        "autostart": "`brimline setup --autostart` turns it on.",
    }


@pytest.mark.parametrize(
    "way",
    [
        {},
        {"transport": "http"},
        {"status_line": "prepend"},
        {"autostart": False},
        {"scope": "project"},
    ],
    ids=["default", "http", "prepend", "no autostart", "project"],
)
def test_however_it_was_set_up(user: User, way: dict[str, Any]) -> None:
    """Hooks that were set up in another way than by default are as well as any."""
    user.set_up(**way)
    _, told = user.doctor()
    assert told["claude hooks"]["well"]
    assert told["claude hooks"]["told"].startswith("9 hooks installed")
    assert told["status line"]["well"]
    assert told["autostart"]["well"] is (way != {"autostart": False})


def test_text(user: User, capsys: pytest.CaptureFixture[str]) -> None:
    """For people there is a line for each, and the hint below what is not well."""
    assert doctor.run(user.context, argparse.Namespace(json=False)) == 1
    lines = capsys.readouterr().out.splitlines()
    assert "!!  claude hooks   none installed" in lines
    hint = lines[lines.index("!!  claude hooks   none installed") + 1]
    assert hint.strip() == "`brimline setup claude` installs them."


@pytest.mark.parametrize("scope", ["user", "project"])
def test_status_line_that_is_gone(user: User, scope: str) -> None:
    """A status line that setup put in and somebody took out is told of; with ours out, none is."""
    user.set_up(scope=scope, agents=["claude"])
    base = user.home if scope == "user" else Path.cwd()
    path = base / ".claude/settings.json"
    settings = json.loads(path.read_text())
    settings["statusLine"]["command"] = "mine"
    path.write_text(json.dumps(settings))
    line = user.doctor()[1]["status line"]
    assert (line["well"], line["told"]) == (False, f"no longer Brimline's in {path}")
    more = " --scope project" if scope == "project" else ""
    assert line["hint"] == f"`brimline setup claude{more}` restores it."
    user.set_up(scope=scope, agents=["claude"], remove=True)
    assert "status line" not in user.doctor()[1]


def test_switched_off_in_the_project(user: User) -> None:
    """What switches the user's hooks off where they work is named, and what to do."""
    user.set_up()
    path = Path.cwd() / ".claude/settings.local.json"
    path.parent.mkdir()
    path.write_text('{"disableAllHooks": true}')
    told = user.doctor()[1]["claude hooks"]
    assert told["told"] == f"disabled by disableAllHooks in {path}"
    assert told["hint"] == f"Remove `disableAllHooks` from {path}."


def test_daemon_that_does_not_answer(user: User) -> None:
    """One that is there and says nothing is not said to be gone: what ends it is named."""
    lock = user.home / ".local/state/brimline/lock"
    lock.parent.mkdir(parents=True, exist_ok=True)
    lock.write_text("4711\n")
    with lock.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        told = user.doctor()[1]["daemon"]
    assert (told["well"], "4711" in told["told"]) == (False, True)
    assert "`kill " in told["hint"]
    assert "4711`" in told["hint"]
    assert user.doctor()[1]["daemon"]["hint"] == START


# What a daemon tells.


def heard(*sessions: dict[str, Any], **more: Any) -> Heard:
    """A daemon that tells of these sessions."""
    told = {
        "version": __version__,
        "since": NOW - 600,
        "address": "http://127.0.0.1:8420",
        "malformed": 0,
        "dropped": 0,
    }
    return Heard({**told, **more}, list(sessions))


def session(ago: float, agent: str = "claude", version: str | None = "2.1.325") -> dict[str, Any]:
    """A session that was seen so many seconds ago."""
    return {"agent": agent, "seen_at": NOW - ago, "version": version}


INSTALLED = InstalledHooks("claude", Path("/s"), events=("Stop",), autostart=True)


def test_heard_of_late(user: User) -> None:
    """An agent that was not used for long is as well as one that was."""
    told = hooks(user.context, "claude", [INSTALLED], heard(hooks={"claude": NOW - 90_000}))
    assert (told.well, told.told) == (True, "1 hook installed, last event 1d ago")
    told = hooks(user.context, "claude", [INSTALLED], heard(session(5), hooks={"codex": NOW}))
    assert (told.well, told.told) == (True, "1 hook installed, no events yet")


def test_daemon_that_does_not_tell_what_it_heard(user: User) -> None:
    """Of a daemon of another version nothing is said that it did not say."""
    written(user, NOW)
    told = hooks(user.context, "claude", [INSTALLED], heard(session(5)))
    assert (told.well, told.told) == (True, "1 hook installed")


def written(user: User, at: float) -> None:
    """A transcript was written at a moment."""
    transcript = user.home / ".claude/projects/p/11111111-1111-4111-8111-111111111111.jsonl"
    transcript.parent.mkdir(parents=True)
    transcript.write_text("{}\n")
    os.utime(transcript, (at, at))


@pytest.mark.parametrize(
    ("times", "at", "said"),
    [
        ({}, NOW - 5, "since the daemon started 10m ago, but a transcript was written"),
        ({"claude": NOW - 300}, NOW - 5, "since a transcript was written"),
        ({"claude": NOW - 30}, NOW - 5, None),
        ({}, NOW - 700, None),
    ],
    ids=["never", "not any more", "of late", "nothing was written"],
)
def test_hooks_that_are_not_run(
    user: User, times: dict[str, float], at: float, said: str | None
) -> None:
    """Where a transcript was written and no hook was heard, something keeps hooks from running.

    That the transcript was followed is no sign of a hook.
    """
    written(user, at)
    told = hooks(user.context, "claude", [INSTALLED], heard(session(1), hooks=times))
    assert told.well is (said is None)
    if said is not None:
        assert told.told == f"1 hook installed, no event {said}"
        assert told.hint


def test_posted_to_another_port(user: User) -> None:
    """Hooks that are posted to where the daemon is not are told of; where none runs, nothing is."""
    found = InstalledHooks("claude", Path("/s"), ("Stop",), addresses=("http://127.0.0.1:8420",))
    told = hooks(user.context, "claude", [found], heard(address="http://127.0.0.1:9"))
    assert not told.well
    assert told.told == "sent to http://127.0.0.1:8420, but the daemon is at http://127.0.0.1:9"
    assert "`brimline serve --background --port 8420`" in str(told.hint)
    assert "`brimline setup claude --transport command`" in str(told.hint)
    for other in (heard(), Heard(problem="none")):
        told = hooks(user.context, "claude", [found], other)
        assert (told.well, told.told) == (True, "1 hook installed, sent over HTTP")


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (InstalledHooks("claude", Path("/s"), problem="/s: line 1"), "/s: line 1"),
        (
            InstalledHooks("claude", Path("/s"), ("Stop",), missing=("PreCompact",)),
            "no hook for PreCompact",
        ),
        (
            InstalledHooks("claude", Path("/s"), ("Stop",), outdated=("Stop",)),
            "from another installation",
        ),
        (
            InstalledHooks(
                "claude", Path("/s"), ("Stop",), disabled_by=DisablingSetting("x", Path("/t"))
            ),
            "disabled by x in /t",
        ),
    ],
    ids=["broken", "missing", "old", "off"],
)
def test_hooks_that_are_not_well(user: User, found: InstalledHooks, said: str) -> None:
    """What is wrong with them is said, and what to do."""
    told = hooks(user.context, "claude", [found], heard())
    assert not told.well
    assert told.told.startswith(said)
    assert told.hint


def test_old_client() -> None:
    """A client that does not know what we write is told of; the last session counts."""
    (told,) = version("claude", heard(session(9, version="2.1.325"), session(5, version="2.1.97")))
    assert (told.well, told.told) == (False, "2.1.97")
    assert told.hint == "Update it to 2.1.139 or newer."
    (told,) = version("claude", heard(session(5), session(9, version="2.1.97")))
    assert told.well
    (told,) = version("codex", heard(session(5, "codex", "0.166.0")))
    assert told.well
    assert list(version("claude", heard(session(5, version=None)))) == []


def test_clock() -> None:
    """A word from the future tells of a clock that is wrong."""
    told = {check.about: check for check in heard_from(heard(session(-600)), NOW)}
    assert (told["clock"].well, told["clock"].told) == (False, "10m behind the events")
    assert all(check.well for check in heard_from(heard(session(5), session(-2)), NOW))


def test_losses_and_versions() -> None:
    """A daemon of another version, and events that were lost, are told of."""
    told = {check.about: check for check in daemon(heard(version="0.0.1", dropped=3), NOW)}
    assert not told["daemon"].well
    assert (told["losses"].well, told["losses"].told) == (False, "0 malformed, 3 dropped")
    assert told["losses"].hint == FULL


def test_store(tmp_path: Path) -> None:
    """A place that cannot be written, or has no room left, is told of with what to do."""
    assert store(tmp_path / "not" / "yet").told == "none yet"
    (tmp_path / "brimline.db").write_bytes(b"x" * 2_000_000)
    assert store(tmp_path) == Check("store", True, f"2.0 MB at {tmp_path}/brimline.db", ROOM)
    full = store(tmp_path, least=1 << 62)
    assert (full.well, full.hint) == (False, ROOM)
    assert full.told.endswith(" free on its disk")
    taken = store(tmp_path / "brimline.db")
    assert (taken.well, taken.told) == (False, f"{tmp_path}/brimline.db is not a folder")
    assert "BRIMLINE_STATE_DIR" in str(taken.hint)


def test_store_problems(user: User) -> None:
    """What happened to the store fails the check, without a daemon too, until it is dealt with."""
    state = user.home / ".local/state/brimline"
    kept = state / "brimline.db.broken"
    kept.touch()
    report_problem(state, StoreProblem(NOW - 3_600, "It broke.", str(kept), "Do this."))
    code, told = user.doctor()
    problem = told["store problem"]
    assert code == 1
    assert (problem["well"], problem["told"], problem["hint"]) == (
        False,
        "1h ago: It broke.",
        "Do this.",
    )
    kept.unlink()
    assert "store problem" not in user.doctor()[1]


def test_spool(tmp_path: Path) -> None:
    """What waits, and what was lost, is counted; a folder that nobody may look into is none."""
    assert spool(tmp_path).well
    assert spool(tmp_path / ("x" * 300)).told == "empty"
    for size, said in ((1, "1 KB"), (3_400, "3 KB"), (100_000, "0.1 MB")):
        (tmp_path / "spool").write_bytes(b"x" * size)
        assert spool(tmp_path).told == f"{said} waiting for the daemon"
    (tmp_path / "spool").write_bytes(b"x" * 2_000_000)
    (tmp_path / "spool.dropped").write_bytes(b"...")
    told = spool(tmp_path)
    assert (told.well, told.told) == (False, "2.0 MB waiting for the daemon, 3 events lost")
