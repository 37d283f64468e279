"""`brimline setup`: what it shows, what it writes, and how it ends."""

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from brimline.cli import setup
from brimline.cli.context import Context
from brimline.errors import InvalidSettings, UnknownAgent
from brimline.server.port_file import write_port
from brimline.server.secret import derive_token, load_or_create_secret
from brimline.settings import Daemon, Settings, socket_path
from brimline.transcripts.source import Places

DEFAULTS: dict[str, Any] = {
    "agents": [],
    "dry_run": False,
    "remove": False,
    "scope": "user",
    "transport": None,
    "status_line": None,
    "autostart": None,
    "service": False,
    "parent": None,
    "json": False,
}


class User:
    """Somebody who types `brimline setup`."""

    def __init__(self, home: Path, capture: "pytest.CaptureFixture[str]") -> None:
        self.home, self._capture = home, capture
        self.env: dict[str, str] = {"PATH": "/nowhere"}
        self.settings = home / ".claude" / "settings.json"

    def run(
        self, colour: bool = False, autostart_off: bool = False, **options: Any
    ) -> tuple[int, str]:
        """Run the command; its exit code and what it printed."""
        places = Places(self.home, self.env)
        context = Context(
            places,
            Settings(daemon=Daemon(autostart=not autostart_off)),
            width=100,
            colour=colour,
            now=0,
        )
        code = setup.run(context, argparse.Namespace(**{**DEFAULTS, **options}))
        return code, self._capture.readouterr().out

    def json(self, **options: Any) -> tuple[int, list[dict[str, Any]]]:
        """Run the command for its JSON."""
        code, out = self.run(json=True, **options)
        return code, json.loads(out)


@pytest.fixture
def user(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> User:
    """A user with Claude Code and Pi."""
    for folder in ("home/.claude", "home/.pi", "project"):
        (tmp_path / folder).mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "project")
    return User(tmp_path / "home", capsys)


def test_shows_and_writes(user: User) -> None:
    """Each agent that is there is told of: its file, the change, and what was done."""
    user.settings.write_text('{\n  "model": "opus"\n}\n')
    code, out = user.run()
    lines = out.splitlines()
    assert code == 0
    assert lines[0] == "Claude Code  ~/.claude/settings.json"
    assert '-  "model": "opus"' in lines
    assert '+  "model": "opus",' in lines
    assert "9 hooks and the status line." in lines
    assert "Backup: ~/.claude/settings.json.brimline-backup" in lines
    extension = lines[lines.index("Pi  ~/.pi/agent/extensions/brimline.js") :]
    assert "Brimline's extension." in extension
    assert lines[-1] == "Start an agent, then check with `brimline serve --status`."
    assert not any("Codex" in line for line in lines)


def test_installs_this_brimline(user: User) -> None:
    """The command is this interpreter's, by absolute paths, with the user's socket and spool."""
    user.run(agents=["claude"])
    hook = json.loads(user.settings.read_text())["hooks"]["Stop"][0]["hooks"][0]
    words = [hook["command"], *hook["args"]]
    state = user.home / ".local/state/brimline"
    socket = socket_path(state, os.getuid())
    assert words[-4:] == ["hook", "claude", str(socket), str(state / "spool")]
    assert sys.executable in words
    assert any(word.endswith("/brimline/hooks/client/client.py") for word in words)


def test_dry_run_writes_nothing(user: User) -> None:
    """The same change is shown, and nothing is done."""
    before = sorted(user.home.rglob("*"))
    code, out = user.run(dry_run=True)
    assert (code, sorted(user.home.rglob("*"))) == (0, before)
    assert '"SessionStart"' in out
    assert out.endswith("Dry run: nothing was changed.\n")


def test_second_time(user: User) -> None:
    """There is nothing to show any more."""
    user.run()
    code, out = user.run()
    assert code == 0
    assert out.splitlines()[1] == "Already set up."
    assert "@@" not in out


def test_remove(user: User) -> None:
    """What was put in is shown as it goes."""
    user.settings.write_text("{}")
    user.run()
    code, out = user.run(remove=True)
    assert (code, user.settings.read_text()) == (0, "{}")
    assert "Brimline's entries are removed." in out
    assert "Start an agent" not in out


def test_remove_from_agents_that_are_not_here(user: User) -> None:
    """What was put in by name goes with the rest, also where the agent itself is not found."""
    user.run(agents=["opencode", "codex", "pi"])
    plugin = user.home / ".config/opencode/plugins/brimline.js"
    hooks = user.home / ".codex/hooks.json"
    assert plugin.exists()
    assert hooks.exists()
    code, told = user.json(remove=True)
    assert code == 0
    assert {"pi", "opencode", "codex"} <= {one["agent"] for one in told if one["written"]}
    assert not plugin.exists()
    assert not hooks.exists()
    _, again = user.json(remove=True)
    assert not any(one["written"] for one in again)


def test_remove_where_nothing_is(user: User) -> None:
    """On a machine without agents there is nothing to take out, and nothing wrong with that."""
    for folder in (".claude", ".pi"):
        (user.home / folder).rmdir()
    assert user.run(remove=True) == (0, "Brimline is not installed here.\n")
    assert user.json(remove=True) == (0, [])
    assert user.run()[0] == 1
    assert user.json() == (1, [])


@pytest.mark.usefixtures("ordinary")
def test_remove_that_is_not_forgotten(user: User) -> None:
    """A file that was changed is not said to be as it was, whatever else could not be done."""
    user.settings.write_text("{}")
    user.run(agents=["claude"])
    state = user.home / ".local/state/brimline"
    state.chmod(0o555)
    code, out = user.run(agents=["claude"], remove=True)
    state.chmod(0o700)
    assert (code, user.settings.read_text()) == (1, "{}")
    assert "setup.json: file: cannot be written: Permission denied" in out
    assert (
        "Brimline's entries are removed, but with the problem above. Fix it and run setup again."
        in out
    )
    assert "The file was not changed." not in out
    assert user.run(agents=["claude"], remove=True)[0] == 0


def test_broken_file(user: User) -> None:
    """It is told where it is broken; the other agents are set up all the same."""
    user.settings.write_text("{\n  oops\n}")
    (user.home / ".codex").mkdir()
    code, out = user.run()
    assert code == 1
    assert f"{user.settings}: line 2, column 3: expected a key" in out
    assert "The file was not changed." in out
    assert (user.home / ".codex/hooks.json").exists()
    assert user.settings.read_text() == "{\n  oops\n}"


@pytest.mark.usefixtures("ordinary")
def test_file_that_cannot_be_written(user: User) -> None:
    """A folder that is read-only is told, and the exit code says that it failed."""
    user.settings.write_text("{}")
    user.settings.parent.chmod(0o500)
    code, out = user.run(agents=["claude"])
    user.settings.parent.chmod(0o700)
    assert code == 1
    assert "cannot be written: Permission denied" in out
    assert user.settings.read_text() == "{}"


def test_json(user: User) -> None:
    """Scripts get the same: file, change, notes, and whether it was written."""
    code, [claude, pi] = user.json()
    assert (code, claude["agent"], claude["written"]) == (0, "claude", True)
    assert (claude["path"], claude["backup"]) == (str(user.settings), None)
    assert claude["diff"].startswith(f"--- {user.settings}\n+++ {user.settings}\n@@")
    assert (pi["agent"], pi["written"], pi["backup"]) == ("pi", True, None)
    _, [claude, _] = user.json()
    assert (claude["written"], claude["diff"]) == (False, "")


def test_colours(user: User) -> None:
    """Lines that come are green, lines that go are red."""
    user.settings.write_text('{\n  "model": "opus"\n}\n')
    _, out = user.run(colour=True)
    assert '\x1b[31m-  "model": "opus"\x1b[0m' in out
    assert '\x1b[32m+  "model": "opus",\x1b[0m' in out


def test_settings_cannot_drive_the_terminal(user: User) -> None:
    """Nothing in a file is obeyed by the terminal that shows it, nor breaks a line of it."""
    user.settings.write_text('{\n\t"a": "\x7f\u202e\u2028",\r\n\t"model": "opus"\r\n}', newline="")
    _, out = user.run(colour=False)
    assert all(line.isprintable() for line in out.split("\n"))
    assert any(line.lstrip(" ").startswith('"a": ') for line in out.split("\n"))


def test_project(user: User) -> None:
    """The settings of the working folder are changed."""
    code, _ = user.run(agents=["claude"], scope="project")
    assert code == 0
    assert Path(".claude/settings.json").exists()
    assert not user.settings.exists()


def test_http(user: User) -> None:
    """Hooks post to where this user's daemon was last, with the token of hooks."""
    state = user.home / ".local" / "state" / "brimline"
    state.mkdir(parents=True)
    write_port(state, 8_432)
    secret = load_or_create_secret(state)
    _, out = user.run(agents=["claude"], transport="http")
    text = user.settings.read_text()
    assert "Bearer ***" in out
    assert derive_token(secret, "hooks") not in out
    assert '"http://127.0.0.1:8432/hooks/claude?by=brimline"' in text
    assert derive_token(secret, "hooks") in text
    assert secret not in text


def test_agent_that_is_not_there_yet(user: User) -> None:
    """One that is named is set up before it first runs."""
    code, _ = user.run(agents=["gemini"])
    assert code == 0
    assert (user.home / ".gemini/settings.json").exists()


def test_unknown_agent(user: User) -> None:
    """A wrong name is refused."""
    with pytest.raises(UnknownAgent):
        user.run(agents=["emacs"])


def test_no_agent(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Where no agent is, it is said what to do."""
    code, out = User(tmp_path, capsys).run()
    assert (code, out) == (1, "")


# The daemon's start.


def kinds(user: User) -> dict[str, str]:
    """What the hook of each event is run for."""
    told = json.loads(user.settings.read_text())["hooks"]
    return {event: group["hooks"][0]["args"][-4] for event, [group] in told.items()}


def test_a_session_starts_the_daemon(user: User) -> None:
    """The hook of a session's start starts it, and no other."""
    user.run(agents=["claude"])
    found = kinds(user)
    assert found.pop("SessionStart") == "start"
    assert set(found.values()) == {"hook"}


@pytest.mark.parametrize("way", [{"autostart": False}, {"autostart_off": True}])
def test_no_session_starts_the_daemon(user: User, way: dict[str, bool]) -> None:
    """Switched off by an argument or in the settings, it is said how to start it."""
    _, out = user.run(agents=["claude"], **way)
    assert set(kinds(user).values()) == {"hook"}
    assert "start the daemon with `brimline serve --background`" in out
    assert "Already set up." in user.run(agents=["claude"])[1]
    assert set(kinds(user).values()) == {"hook"}
    user.run(agents=["claude"], autostart=True)
    assert kinds(user)["SessionStart"] == "start"


# The service.


# Logs its arguments; a unit is active once it was started.
SYSTEMCTL = """#!/bin/sh
case "$2" in
is-active) /bin/grep -q restart "$TOLD" ;;
*) echo "$2" >> "$TOLD"; test ! -e "$TOLD.dead" || { echo no bus >&2; exit 1; } ;;
esac
"""

LINUX = pytest.mark.skipif(sys.platform == "darwin", reason="its service manager is launchd")


@pytest.fixture
def manager(user: User, tmp_path: Path) -> Path:
    """A service manager; gives the file in which it keeps what it is told."""
    program = tmp_path / "bin" / "systemctl"
    program.parent.mkdir()
    program.write_text(SYSTEMCTL)
    program.chmod(0o755)
    told = tmp_path / "told"
    told.touch()
    user.env.update(PATH=str(program.parent), TOLD=str(told))
    return told


@LINUX
def test_service(user: User, manager: Path) -> None:
    """The unit is shown, written, enabled and started; a second time there is nothing to do."""
    unit = user.home / ".config/systemd/user/brimline.service"
    code, out = user.run(service=True)
    assert (code, out.splitlines()[0]) == (0, f"The service  ~/{unit.relative_to(user.home)}")
    assert f'+ExecStart="{sys.executable}" -P -m brimline serve' in out.splitlines()
    assert "It is running, and starts when you log in." in out
    assert manager.read_text().split() == ["enable", "daemon-reload", "restart"]
    assert not user.settings.exists()
    _, out = user.run(service=True)
    assert out.splitlines()[1:] == ["Already set up.", ""]
    assert manager.read_text().split() == ["enable", "daemon-reload", "restart"]
    code, out = user.run(service=True, remove=True)
    assert (code, unit.exists()) == (0, False)
    assert manager.read_text().split()[3:] == ["stop", "disable", "daemon-reload"]


@LINUX
def test_service_that_is_only_shown(user: User, manager: Path) -> None:
    """A dry run tells what would be run, and runs nothing."""
    before = sorted(user.home.rglob("*"))
    _, out = user.run(service=True, dry_run=True)
    assert "systemctl --user enable brimline.service && systemctl --user daemon-reload" in out
    assert (sorted(user.home.rglob("*")), manager.read_text()) == (before, "")


@LINUX
def test_service_manager_that_does_not_answer(user: User, manager: Path) -> None:
    """The unit is written all the same, and what is left to be run is told."""
    manager.with_name("told.dead").touch()
    code, [told] = user.json(service=True)
    assert (code, told["agent"], told["written"]) == (0, "service", True)
    problem, left = told["notes"]
    assert problem == "systemd failed: no bus."
    assert left.startswith("Run this yourself: systemctl --user enable brimline.service")
    assert left.endswith("&& systemctl --user restart brimline.service")


@LINUX
def test_service_that_is_left(user: User, manager: Path) -> None:
    """Taking the hooks out tells of the service that stays."""
    user.run(service=True, agents=["claude"])
    assert user.settings.exists()
    _, out = user.run(remove=True)
    assert out.endswith("`brimline setup --service --remove` removes it.\n")
    assert "stop" not in manager.read_text()


# The parent.


def test_parent(user: User) -> None:
    """It is written into the project's own settings, or the user's; nothing else is set up."""
    _, out = user.run(parent="0f-1", scope="project")
    assert "Session 0f-1 is notified of this project's sessions." in out
    assert Path(".brimline.toml").read_text() == 'parent = "0f-1"\n'
    user.run(parent="0f-2")
    assert (user.home / ".config/brimline/config.toml").read_text() == 'parent = "0f-2"\n'
    assert not user.settings.exists()
    code, out = user.run(parent="", scope="project", remove=True)
    assert (code, Path(".brimline.toml").exists()) == (0, False)
    assert "No parent session." in out


def test_parent_that_is_none(user: User) -> None:
    """Without a session it is said what was expected."""
    with pytest.raises(InvalidSettings, match="expected a session's id"):
        user.run(parent="")
