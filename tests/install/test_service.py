"""The daemon as a service: unit files and commands of the service manager."""

import os
import plistlib
import shlex
import shutil
import stat
import subprocess
from pathlib import Path

import pytest

from brimline.agents.transcripts.source import Places
from brimline.errors import InvalidSettings
from brimline.install.plan import apply, plan_setup_file
from brimline.install.service import (
    LABEL,
    UNIT_NAME,
    Service,
    find_service,
    run_commands,
    service_file,
)

ODD = '/opt/100% "odd" $HOME \\py'  # every character with a special meaning in a unit file


def service_of(home: Path, platform: str = "linux", python: str = "/py", **env: str) -> Service:
    return find_service(platform, Places(home, env), home / "state", python)


def test_unit_runs_the_daemon_by_absolute_paths_with_the_users_variables(tmp_path: Path) -> None:
    service = service_of(
        tmp_path, PATH="/bin", CLAUDE_CONFIG_DIR="/c", TMUX="x", ANTHROPIC_API_KEY="y"
    )
    assert service.path == tmp_path / ".config/systemd/user" / UNIT_NAME
    lines = service.text.decode().splitlines()
    assert 'ExecStart="/py" -P -m brimline serve' in lines
    variables = [
        line.removeprefix("Environment=") for line in lines if line.startswith("Environment")
    ]
    state = f'"BRIMLINE_STATE_DIR={tmp_path}/state"'
    assert variables == ['"PATH=/bin"', '"CLAUDE_CONFIG_DIR=/c"', state]


def test_unit_follows_xdg_config_home(tmp_path: Path) -> None:
    place = str(tmp_path / "config")
    service = service_of(tmp_path, XDG_CONFIG_HOME=place)
    assert service.path == Path(place, "systemd/user", UNIT_NAME)


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd here")
def test_systemd_accepts_the_unit_with_any_path(tmp_path: Path) -> None:
    program = tmp_path / "100% py"
    program.symlink_to(shutil.which("true") or "")
    service = service_of(tmp_path, python=str(program), PATH=f"/bin:{ODD}", LANG="C")
    service.path.parent.mkdir(parents=True)
    service.path.write_bytes(service.text)
    words = ["systemd-analyze", "--user", "verify", str(service.path)]
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path)}
    completed = subprocess.run(words, env=env, capture_output=True, text=True, check=False)
    assert (completed.returncode, completed.stdout, completed.stderr) == (0, "", "")


def test_launchd_agent_logs_and_restarts_unless_it_succeeded(tmp_path: Path) -> None:
    service = service_of(tmp_path, "darwin", python=f"{ODD} <&>", PATH="/bin")
    assert service.path == tmp_path / "Library/LaunchAgents" / f"{LABEL}.plist"
    properties = plistlib.loads(service.text)
    assert properties["ProgramArguments"] == [f"{ODD} <&>", "-P", "-m", "brimline", "serve"]
    state = str(tmp_path / "state")
    assert properties["EnvironmentVariables"] == {"PATH": "/bin", "BRIMLINE_STATE_DIR": state}
    assert properties["StandardErrorPath"] == f"{state}/serve.log"
    assert (properties["Label"], properties["RunAtLoad"]) == (LABEL, True)
    assert properties["KeepAlive"] == {"SuccessfulExit": False}


@pytest.mark.parametrize("platform", ["linux", "darwin"])
def test_path_that_the_unit_cannot_hold_is_refused(tmp_path: Path, platform: str) -> None:
    with pytest.raises(InvalidSettings, match="service"):
        service_of(tmp_path, platform, python="/a\x1bb")
    if platform == "linux":
        with pytest.raises(InvalidSettings, match="no quotes or backslashes"):
            service_of(tmp_path, platform, python=ODD)
    assert b"LANG" not in service_of(tmp_path, platform, LANG="a\nb").text


def test_removal_restores_the_unit_that_was_there(tmp_path: Path) -> None:
    service, state = service_of(tmp_path), tmp_path / "state"
    service.path.parent.mkdir(parents=True)
    service.path.write_text("[Unit]\nDescription=mine\n")
    change = apply(plan_setup_file(service_file(service, state, remove=False), "a service"))
    assert (change.after, service.path.read_bytes()) == (service.text, service.text)
    again = plan_setup_file(service_file(service, state, remove=False), "a service")
    assert (again.pending, again.what) == (False, "already set up")
    apply(plan_setup_file(service_file(service, state, remove=True), "gone"))
    assert service.path.read_text() == "[Unit]\nDescription=mine\n"
    assert [path.name for path in service.path.parent.iterdir()] == [UNIT_NAME]


def test_removal_deletes_a_new_unit_even_if_it_was_edited(tmp_path: Path) -> None:
    service, state = service_of(tmp_path), tmp_path / "state"
    apply(plan_setup_file(service_file(service, state, remove=False), "a service"))
    service.path.write_bytes(service.text + b"\n[Service]\nNice=5\n")
    apply(plan_setup_file(service_file(service, state, remove=True), "gone"))
    assert not service.path.parent.exists()
    assert plan_setup_file(service_file(service, state, remove=True), "gone").pending is False


def program(folder: Path, name: str, text: str) -> dict[str, str]:
    """An environment whose only program is this one."""
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return {"PATH": str(folder)}


def test_manager_commands_run_in_the_users_environment(tmp_path: Path) -> None:
    env = program(tmp_path / "bin", "systemctl", f'echo "$@" >> {shlex.quote(str(tmp_path))}/calls')
    service = service_of(tmp_path)
    ran = run_commands([*service.enable, service.start], env)
    assert [command.reason for command in ran] == [None] * 3
    calls = (tmp_path / "calls").read_text().splitlines()
    assert calls == [
        "--user enable brimline.service",
        "--user daemon-reload",
        "--user restart brimline.service",
    ]


def test_failed_command_gives_its_output_or_exit_code_as_the_reason(tmp_path: Path) -> None:
    env = program(tmp_path / "bin", "systemctl", "echo 'Failed to connect to bus' >&2; exit 1")
    words = ("systemctl", "--user", "daemon-reload")
    assert run_commands([words], env)[0].reason == "Failed to connect to bus"
    program(tmp_path / "bin", "systemctl", "exit 4")
    assert run_commands([words], env)[0].reason == "exit code 4"
    assert run_commands([("launchctl", "print")], env)[0].reason == "launchctl is not installed"
