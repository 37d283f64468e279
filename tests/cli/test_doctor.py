"""`brimline doctor`: what it says of what is there, and what of what is not."""

import argparse
import json
from pathlib import Path
from typing import Any

import pytest

from brimline._version import __version__
from brimline.cli import doctor, setup
from brimline.cli.checks import Heard, daemon, heard_from, hooks, spool, version
from brimline.cli.context import Context
from brimline.settings import Settings
from brimline.setup.found import Found
from brimline.sources.base import Places

NOW = 1_800_000_000.0
SETUP: dict[str, Any] = {
    "agents": [],
    "dry_run": False,
    "remove": False,
    "scope": "user",
    "transport": "command",
    "status_line": "append",
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
    monkeypatch.chdir(tmp_path / "project")
    return User(tmp_path / "home", capsys)


def test_nothing_is_set_up(user: User) -> None:
    """Each thing that is not well says what to do; the exit code is 1."""
    code, told = user.doctor()
    assert code == 1
    wrong = {about: check["hint"] for about, check in told.items() if not check["well"]}
    assert wrong == {
        "claude hooks": "`brimline setup claude` puts them in.",
        "daemon": "`brimline serve` starts it. A session's start does too, where autostart is on.",
        "autostart": "`brimline setup` switches it on.",
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
    assert told["autostart"]["well"] is (way != {"autostart": False})


def test_text(user: User, capsys: pytest.CaptureFixture[str]) -> None:
    """For people there is a line for each, and the hint below what is not well."""
    assert doctor.run(user.context, argparse.Namespace(json=False)) == 1
    lines = capsys.readouterr().out.splitlines()
    assert "!!  claude hooks   none installed" in lines
    hint = lines[lines.index("!!  claude hooks   none installed") + 1]
    assert hint.strip() == "`brimline setup claude` puts them in."


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


INSTALLED = Found("claude", Path("/s"), events=("Stop",), autostart=True)


def test_heard_of_late(user: User) -> None:
    """An agent that was not used for long is as well as one that was."""
    told = hooks(user.context, "claude", [INSTALLED], heard(session(90_000)))
    assert (told.well, told.told) == (True, "1 hook installed, heard 1d ago")
    told = hooks(user.context, "claude", [INSTALLED], heard())
    assert (told.well, told.told) == (True, "1 hook installed, not heard from yet")


def test_hooks_that_are_not_run(user: User) -> None:
    """Where a transcript was written and no hook was heard, something keeps hooks from running."""
    transcript = user.home / ".claude/projects/p/11111111-1111-4111-8111-111111111111.jsonl"
    transcript.parent.mkdir(parents=True)
    transcript.write_text("{}\n")
    told = hooks(user.context, "claude", [INSTALLED], heard(since=0.0))
    assert not told.well
    assert "not heard from since a transcript was written" in told.told
    assert told.hint


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (Found("claude", Path("/s"), problem="/s: line 1"), "/s: line 1"),
        (Found("claude", Path("/s"), ("Stop",), missing=("PreCompact",)), "none for PreCompact"),
        (Found("claude", Path("/s"), ("Stop",), old=("Stop",)), "those of another installation"),
        (Found("claude", Path("/s"), ("Stop",), switched_off=True), "switched off"),
    ],
    ids=["broken", "missing", "old", "off"],
)
def test_hooks_that_are_not_well(user: User, found: Found, said: str) -> None:
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
    assert (told["clock"].well, told["clock"].told) == (False, "10m behind what was heard")
    assert all(check.well for check in heard_from(heard(session(5), session(-2)), NOW))


def test_losses_and_versions() -> None:
    """A daemon of another version, and events that were lost, are told of."""
    told = {check.about: check for check in daemon(heard(version="0.0.1", dropped=3), NOW)}
    assert not told["daemon"].well
    assert (told["losses"].well, told["losses"].told) == (False, "0 not understood, 3 dropped")


def test_spool(tmp_path: Path) -> None:
    """What waits, and what was lost, is counted."""
    assert spool(tmp_path).well
    (tmp_path / "spool").write_bytes(b"x" * 2_000_000)
    (tmp_path / "spool.dropped").write_bytes(b"...")
    told = spool(tmp_path)
    assert (told.well, told.told) == (False, "2.0 MB wait for the daemon, 3 events lost")
