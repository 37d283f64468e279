"""`brimline setup`: output, files and exit codes."""

import argparse
import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from brimline.agents import capabilities_of
from brimline.agents.transcripts.source import Places
from brimline.cli import setup
from brimline.cli.context import CommandContext
from brimline.daemon.secret import derive_token, load_or_create_secret
from brimline.daemon.sockets import write_port
from brimline.errors import InvalidSettings, UnknownAgent
from brimline.files.socket_path import socket_path
from brimline.install.launcher import read_launcher, write_launcher
from brimline.settings import DaemonSettings, Settings

DEFAULTS: dict[str, Any] = {
    "agents": [],
    "dry_run": False,
    "remove": False,
    "mcp": False,
    "scope": "user",
    "transport": None,
    "status_line": None,
    "autostart": None,
    "service": False,
    "parent": None,
    "json": False,
}


class User:
    """Someone who runs `brimline setup`."""

    def __init__(self, home: Path, capture: "pytest.CaptureFixture[str]") -> None:
        self.home, self._capture = home, capture
        self.env: dict[str, str] = {"PATH": "/nowhere"}
        self.settings = home / ".claude" / "settings.json"

    def run(
        self, colour: bool = False, autostart_off: bool = False, **options: Any
    ) -> tuple[int, str]:
        """Run the command; returns its exit code and output."""
        context = self.context(colour, autostart_off)
        code = setup.run(context, argparse.Namespace(**{**DEFAULTS, **options}))
        return code, self._capture.readouterr().out

    def context(self, colour: bool = False, autostart_off: bool = False) -> CommandContext:
        return CommandContext(
            Places(self.home, self.env),
            Settings(daemon=DaemonSettings(autostart=not autostart_off)),
            width=100,
            colour=colour,
            now=0,
        )

    def json(self, **options: Any) -> tuple[int, list[dict[str, Any]]]:
        """Run the command with --json."""
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


def test_each_agent_is_listed_with_its_file_change_and_result(user: User) -> None:
    user.settings.write_text('{\n  "model": "opus"\n}\n')
    code, out = user.run()
    lines = out.splitlines()
    assert code == 0
    assert lines[0] == "Claude Code  ~/.claude/settings.json"
    assert '-  "model": "opus"' in lines
    assert '+  "model": "opus",' in lines
    assert "10 hooks and the status line." in lines
    assert "Backup: ~/.claude/settings.json.brimline-backup" in lines
    extension = lines[lines.index("Pi  ~/.pi/agent/extensions/brimline.js") :]
    assert "Brimline's extension." in extension
    assert lines[-1] == "Start an agent, then check with `brimline serve --status`."
    assert not any("Codex" in line for line in lines)


def test_what_the_uplink_receives_is_shown_by_the_users_own_settings(user: User) -> None:
    assert "The uplink" not in user.run()[1]
    config = user.home / ".config/brimline/config.toml"
    config.parent.mkdir(parents=True)
    config.write_text('[uplink]\nurl = "https://fleet.example.com"\n')
    Path(".brimline.toml").write_text('[uplink]\nreceive = "all"\n')
    for options in ({}, {"dry_run": True}):
        assert 'The uplink receives nothing (uplink.receive = "off").' in user.run(**options)[1]
    assert "The uplink" not in user.run(remove=True)[1]


def test_tested_versions_are_named_and_a_newer_client_is_warned_about_once(
    user: User, capsys: pytest.CaptureFixture[str]
) -> None:
    command = user.home / "lib/node_modules/@anthropic-ai/claude-code/bin/claude"
    command.parent.mkdir(parents=True)
    command.write_text("#!/bin/sh")
    command.chmod(0o755)
    (command.parents[1] / "package.json").write_text('{"version": "2.2.0"}')
    user.env["PATH"] = str(command.parent)

    def run(**options: Any) -> tuple[str, str]:
        setup.run(user.context(), argparse.Namespace(**{**DEFAULTS, **options}))
        return capsys.readouterr()

    tested = capabilities_of("claude").tested_version
    out, error = run(dry_run=True)
    assert ("Tested up to" in out, error) == (False, "")
    out, error = run()
    pi = capabilities_of("pi").tested_version
    assert f"Tested up to Claude Code {tested}, Pi {pi}." in out.splitlines()
    assert error == (
        f"brimline: Claude Code 2.2.0 is newer than {tested}, the newest version that Brimline was "
        "tested with. If figures are missing or wrong, update Brimline.\n"
    )
    user.settings.unlink()
    out, error = run()
    assert (f"Tested up to Claude Code {tested}." in out, error) == (True, "")


def test_installed_command_is_short_and_the_launcher_has_the_paths(user: User) -> None:
    user.run(agents=["claude"])
    hook = json.loads(user.settings.read_text())["hooks"]["Stop"][0]["hooks"][0]
    state = user.home / ".local/state/brimline"
    launcher = state / "brimline-hook"
    assert [hook["command"], *hook["args"]] == [str(launcher), "claude", "hook-restart"]
    assert launcher.stat().st_mode & 0o777 == 0o700
    program = read_launcher(state)
    assert program is not None
    assert (program.python, program.spool) == (sys.executable, str(state / "spool"))
    assert program.socket == str(socket_path(state, os.getuid()))
    assert program.script.endswith("/brimline/hooks/client/client.py")


def test_launcher_is_written_again_and_removed_with_the_last_agent(user: User) -> None:
    launcher = user.home / ".local/state/brimline/brimline-hook"
    user.run()
    launcher.unlink()
    assert "Already set up." in user.run()[1]
    assert launcher.exists()
    user.run(agents=["claude"], remove=True)
    assert launcher.exists()
    user.run(agents=["pi"], remove=True)
    assert not launcher.exists()


def test_launcher_of_another_installation_is_changed_and_shown(user: User) -> None:
    user.run(agents=["claude"])
    state = user.home / ".local/state/brimline"
    current = read_launcher(state)
    assert current is not None
    write_launcher(msgspec.structs.replace(current, python="/gone/python"))
    lines = user.run(agents=["claude"])[1].splitlines()
    assert lines[:2] == [
        "The launcher  ~/.local/state/brimline/brimline-hook",
        "It runs this installation now.",
    ]
    assert "Already set up." in lines
    assert read_launcher(state) == current
    assert [change["agent"] for change in user.json(agents=["claude"])[1]] == ["claude"]


def test_hooks_of_an_earlier_version_are_shortened_with_their_options(user: User) -> None:
    """They had the paths of the installation; those without autostart stay so."""
    paths = ["/venv/bin/python", "/venv/lib/brimline/hooks/client/client.py"]
    for first in ("start", "hook"):
        words = [*paths, first, "claude", "/state/hook.sock", "/state/spool"]
        hook = {"type": "command", "command": "/venv/lib/brimline-hook", "args": words}
        user.settings.write_text(json.dumps({"hooks": {"SessionStart": [{"hooks": [hook]}]}}))
        user.run(agents=["claude"])
        assert kinds(user)["SessionStart"] == first
        assert "client.py" not in user.settings.read_text()
        user.run(agents=["claude"], remove=True)
        assert "brimline" not in user.settings.read_text()


@pytest.mark.parametrize("options", [{}, {"service": True}, {"dry_run": True}])
def test_setup_from_a_cache_is_refused_and_says_what_to_install(
    user: User,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    options: dict[str, Any],
) -> None:
    user.run()
    monkeypatch.setattr(sys, "executable", str(tmp_path / "uv/archive-v0/a1/bin/python"))
    (tmp_path / "uv").mkdir()
    (tmp_path / "uv/CACHEDIR.TAG").touch()
    before = user.settings.read_bytes()
    capsys.readouterr()
    context = CommandContext(
        Places(user.home, user.env), Settings(), width=100, colour=False, now=0
    )
    code = setup.run(context, argparse.Namespace(**{**DEFAULTS, **options}))
    printed = capsys.readouterr()
    assert (code, printed.out, user.settings.read_bytes()) == (1, "", before)
    assert f"from {tmp_path / 'uv'}: " in printed.err
    assert "`uv tool install brimline`" in printed.err
    assert user.run(remove=True)[0] == 0


def test_dry_run_shows_the_change_and_writes_nothing(user: User) -> None:
    before = sorted(user.home.rglob("*"))
    code, out = user.run(dry_run=True)
    assert (code, sorted(user.home.rglob("*"))) == (0, before)
    assert '"SessionStart"' in out
    assert out.endswith("Dry run: nothing was changed.\n")


def test_second_run_shows_no_change(user: User) -> None:
    user.run()
    code, out = user.run()
    assert code == 0
    assert out.splitlines()[1] == "Already set up."
    assert "@@" not in out


def test_removal_shows_what_is_removed(user: User) -> None:
    user.settings.write_text("{}")
    user.run()
    code, out = user.run(remove=True)
    assert (code, user.settings.read_text()) == (0, "{}")
    assert "Brimline's entries are removed." in out
    assert "Start an agent" not in out


def test_removal_includes_agents_that_are_not_installed(user: User) -> None:
    user.run(agents=["opencode", "codex", "pi"])
    plugin = user.home / ".config/opencode/plugins/brimline.js"
    hooks = user.home / ".codex/hooks.json"
    assert plugin.exists()
    assert hooks.exists()
    code, changes = user.json(remove=True)
    assert code == 0
    assert {"pi", "opencode", "codex"} <= {
        change["agent"] for change in changes if change["written"]
    }
    assert not plugin.exists()
    assert not hooks.exists()
    _, again = user.json(remove=True)
    assert not any(change["written"] for change in again)


def test_second_removal_finishes_one_that_was_killed(user: User) -> None:
    """The agent's file and folder were gone already, its entry in the manifest was not."""
    user.run(agents=["codex"])
    shutil.rmtree(user.home / ".codex")
    code, out = user.run(remove=True)
    assert code == 0
    assert "Codex" in out
    assert list((user.home / ".local/state/brimline").iterdir()) == []
    assert not (user.home / ".codex").exists()
    assert "Codex" not in user.run(remove=True)[1]


def test_removal_without_agents_succeeds(user: User) -> None:
    for folder in (".claude", ".pi"):
        (user.home / folder).rmdir()
    assert user.run(remove=True) == (0, "Brimline is not installed here.\n")
    assert user.json(remove=True) == (0, [])
    assert user.run()[0] == 1
    assert user.json() == (1, [])


@pytest.mark.usefixtures("without_privileges")
def test_incomplete_removal_does_not_claim_the_file_is_restored(user: User) -> None:
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


def test_broken_file_is_reported_and_other_agents_are_set_up(user: User) -> None:
    user.settings.write_text("{\n  oops\n}")
    (user.home / ".codex").mkdir()
    code, out = user.run()
    assert code == 1
    assert f"{user.settings}: line 2, column 3: expected a key" in out
    assert "The file was not changed." in out
    assert (user.home / ".codex/hooks.json").exists()
    assert user.settings.read_text() == "{\n  oops\n}"


@pytest.mark.usefixtures("without_privileges")
def test_read_only_folder_is_reported_and_the_exit_code_fails(user: User) -> None:
    user.settings.write_text("{}")
    user.settings.parent.chmod(0o500)
    code, out = user.run(agents=["claude"])
    user.settings.parent.chmod(0o700)
    assert code == 1
    assert "cannot be written: Permission denied" in out
    assert user.settings.read_text() == "{}"


def test_json_has_file_change_notes_and_written(user: User) -> None:
    code, [claude, pi] = user.json()
    assert (code, claude["agent"], claude["written"]) == (0, "claude", True)
    assert (claude["path"], claude["backup"]) == (str(user.settings), None)
    assert claude["diff"].startswith(f"--- {user.settings}\n+++ {user.settings}\n@@")
    assert (pi["agent"], pi["written"], pi["backup"]) == ("pi", True, None)
    _, [claude, _] = user.json()
    assert (claude["written"], claude["diff"]) == (False, "")


def test_added_lines_are_green_and_removed_lines_red(user: User) -> None:
    user.settings.write_text('{\n  "model": "opus"\n}\n')
    _, out = user.run(colour=True)
    assert '\x1b[31m-  "model": "opus"\x1b[0m' in out
    assert '\x1b[32m+  "model": "opus",\x1b[0m' in out


def test_escapes_in_settings_do_not_reach_the_terminal(user: User) -> None:
    user.settings.write_text('{\n\t"a": "\x7f\u202e\u2028",\r\n\t"model": "opus"\r\n}', newline="")
    _, out = user.run(colour=False)
    assert all(line.isprintable() for line in out.split("\n"))
    assert any(line.lstrip(" ").startswith('"a": ') for line in out.split("\n"))


def test_project_scope_changes_the_working_folder(user: User) -> None:
    code, _ = user.run(agents=["claude"], scope="project")
    assert code == 0
    assert Path(".claude/settings.local.json").exists()
    assert not Path(".claude/settings.json").exists()
    assert not user.settings.exists()


def test_http_hooks_post_to_the_last_daemon_with_its_token(user: User) -> None:
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


def test_named_agent_is_set_up_before_its_first_run(user: User) -> None:
    code, _ = user.run(agents=["gemini"])
    assert code == 0
    assert (user.home / ".gemini/settings.json").exists()


def test_unknown_agent_is_refused(user: User) -> None:
    with pytest.raises(UnknownAgent):
        user.run(agents=["emacs"])


def test_machine_without_agents_gets_a_hint(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out = User(tmp_path, capsys).run()
    assert (code, out) == (1, "")


# The daemon's start.


def kinds(user: User) -> dict[str, str]:
    """The kind argument of each event's hook."""
    hooks = json.loads(user.settings.read_text())["hooks"]
    return {event: group["hooks"][0]["args"][-1] for event, [group] in hooks.items()}


def test_every_hook_starts_the_daemon_by_default(user: User) -> None:
    user.run(agents=["claude"])
    kind_by_event = kinds(user)
    assert kind_by_event.pop("SessionStart") == "start"
    assert set(kind_by_event.values()) == {"hook-restart"}


@pytest.mark.parametrize("options", [{"autostart": False}, {"autostart_off": True}])
def test_disabled_autostart_says_how_to_start_the_daemon(
    user: User, options: dict[str, bool]
) -> None:
    _, out = user.run(agents=["claude"], **options)
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
is-active) /bin/grep -q restart "$CALLS" ;;
*) echo "$2" >> "$CALLS"; test ! -e "$CALLS.dead" || { echo no bus >&2; exit 1; } ;;
esac
"""

LINUX = pytest.mark.skipif(sys.platform == "darwin", reason="its service manager is launchd")


@pytest.fixture
def manager(user: User, tmp_path: Path) -> Path:
    """A fake systemctl; returns the file that logs its arguments."""
    program = tmp_path / "bin" / "systemctl"
    program.parent.mkdir()
    program.write_text(SYSTEMCTL)
    program.chmod(0o755)
    log = tmp_path / "calls"
    log.touch()
    user.env.update(PATH=str(program.parent), CALLS=str(log))
    return log


@LINUX
def test_service_is_shown_written_enabled_and_started_once(user: User, manager: Path) -> None:
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
def test_service_dry_run_runs_nothing(user: User, manager: Path) -> None:
    before = sorted(user.home.rglob("*"))
    _, out = user.run(service=True, dry_run=True)
    assert "systemctl --user enable brimline.service && systemctl --user daemon-reload" in out
    assert (sorted(user.home.rglob("*")), manager.read_text()) == (before, "")


@LINUX
def test_failing_service_manager_leaves_the_unit_and_the_commands_to_run(
    user: User, manager: Path
) -> None:
    manager.with_name("calls.dead").touch()
    code, [change] = user.json(service=True)
    assert (code, change["agent"], change["written"]) == (0, "service", True)
    problem, left = change["notes"]
    assert problem == "systemd failed: no bus."
    assert left.startswith("Run this yourself: systemctl --user enable brimline.service")
    assert left.endswith("&& systemctl --user restart brimline.service")


@LINUX
def test_removal_of_hooks_reports_the_remaining_service(user: User, manager: Path) -> None:
    user.run(service=True, agents=["claude"])
    assert user.settings.exists()
    _, out = user.run(remove=True)
    assert out.endswith("`brimline setup --service --remove` removes it.\n")
    assert "stop" not in manager.read_text()


# The parent.


def test_parent_is_written_into_project_or_user_settings_only(user: User) -> None:
    _, out = user.run(parent="0f-1", scope="project")
    assert "Session 0f-1 is notified of this project's sessions." in out
    assert Path(".brimline.toml").read_text() == 'parent = "0f-1"\n'
    user.run(parent="0f-2")
    assert (user.home / ".config/brimline/config.toml").read_text() == 'parent = "0f-2"\n'
    assert not user.settings.exists()
    code, out = user.run(parent="", scope="project", remove=True)
    assert (code, Path(".brimline.toml").exists()) == (0, False)
    assert "No parent session." in out


def test_parent_without_a_session_is_refused(user: User) -> None:
    with pytest.raises(InvalidSettings, match="expected a session's id"):
        user.run(parent="")
