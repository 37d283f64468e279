"""The daemon as a service: what its manager is given, and what it is told."""

import os
import plistlib
import shlex
import shutil
import stat
import subprocess
from pathlib import Path

import pytest

from brimline.errors import InvalidSettings
from brimline.setup.plan import apply, plan_managed_file
from brimline.setup.service import (
    LABEL,
    UNIT_NAME,
    Service,
    find_service,
    run_commands,
    service_file,
)
from brimline.transcripts.source import Places

ODD = '/opt/100% "odd" $HOME \\py'  # every character with a special meaning in a unit file


def made(home: Path, platform: str = "linux", python: str = "/py", **env: str) -> Service:
    """The service of somebody's machine."""
    return find_service(platform, Places(home, env), home / "state", python)


def test_unit(tmp_path: Path) -> None:
    """The unit runs the daemon by absolute paths, with what systemd does not know of the user."""
    found = made(tmp_path, PATH="/bin", CLAUDE_CONFIG_DIR="/c", TMUX="x", ANTHROPIC_API_KEY="y")
    assert found.path == tmp_path / ".config/systemd/user" / UNIT_NAME
    lines = found.text.decode().splitlines()
    assert 'ExecStart="/py" -P -m brimline serve' in lines
    told = [line.removeprefix("Environment=") for line in lines if line.startswith("Environment")]
    state = f'"BRIMLINE_STATE_DIR={tmp_path}/state"'
    assert told == ['"PATH=/bin"', '"CLAUDE_CONFIG_DIR=/c"', state]


def test_unit_where_configuration_is(tmp_path: Path) -> None:
    """It stands where systemd looks for it."""
    place = str(tmp_path / "config")
    found = made(tmp_path, XDG_CONFIG_HOME=place)
    assert found.path == Path(place, "systemd/user", UNIT_NAME)


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd here")
def test_systemd_takes_it(tmp_path: Path) -> None:
    """systemd has nothing to say against it, whatever is in the paths."""
    program = tmp_path / "100% py"
    program.symlink_to(shutil.which("true") or "")
    found = made(tmp_path, python=str(program), PATH=f"/bin:{ODD}", LANG="C")
    found.path.parent.mkdir(parents=True)
    found.path.write_bytes(found.text)
    words = ["systemd-analyze", "--user", "verify", str(found.path)]
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path)}
    done = subprocess.run(words, env=env, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_launchd(tmp_path: Path) -> None:
    """The agent runs the same, writes into the log, and is kept alive unless it ended well."""
    found = made(tmp_path, "darwin", python=f"{ODD} <&>", PATH="/bin")
    assert found.path == tmp_path / "Library/LaunchAgents" / f"{LABEL}.plist"
    told = plistlib.loads(found.text)
    assert told["ProgramArguments"] == [f"{ODD} <&>", "-P", "-m", "brimline", "serve"]
    state = str(tmp_path / "state")
    assert told["EnvironmentVariables"] == {"PATH": "/bin", "BRIMLINE_STATE_DIR": state}
    assert told["StandardErrorPath"] == f"{state}/serve.log"
    assert (told["Label"], told["RunAtLoad"]) == (LABEL, True)
    assert told["KeepAlive"] == {"SuccessfulExit": False}


@pytest.mark.parametrize("platform", ["linux", "darwin"])
def test_path_that_cannot_be_told(tmp_path: Path, platform: str) -> None:
    """A path that no such file can hold is refused; a variable of that kind is left out."""
    with pytest.raises(InvalidSettings, match="service"):
        made(tmp_path, platform, python="/a\x1bb")
    if platform == "linux":
        with pytest.raises(InvalidSettings, match="no quotes or backslashes"):
            made(tmp_path, platform, python=ODD)
    assert b"LANG" not in made(tmp_path, platform, LANG="a\nb").text


def test_in_and_out(tmp_path: Path) -> None:
    """What was there before is there again; a second time changes nothing."""
    found, state = made(tmp_path), tmp_path / "state"
    found.path.parent.mkdir(parents=True)
    found.path.write_text("[Unit]\nDescription=mine\n")
    done = apply(plan_managed_file(service_file(found, state, remove=False), "a service"))
    assert (done.after, found.path.read_bytes()) == (found.text, found.text)
    again = plan_managed_file(service_file(found, state, remove=False), "a service")
    assert (again.pending, again.what) == (False, "already set up")
    apply(plan_managed_file(service_file(found, state, remove=True), "gone"))
    assert found.path.read_text() == "[Unit]\nDescription=mine\n"
    assert [path.name for path in found.path.parent.iterdir()] == [UNIT_NAME]


def test_out_of_nothing(tmp_path: Path) -> None:
    """A file that was not there is not there again, also when somebody changed it meanwhile."""
    found, state = made(tmp_path), tmp_path / "state"
    apply(plan_managed_file(service_file(found, state, remove=False), "a service"))
    found.path.write_bytes(found.text + b"\n[Service]\nNice=5\n")
    apply(plan_managed_file(service_file(found, state, remove=True), "gone"))
    assert not found.path.parent.exists()
    assert plan_managed_file(service_file(found, state, remove=True), "gone").pending is False


def program(folder: Path, name: str, text: str) -> dict[str, str]:
    """An environment whose only program is this one."""
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return {"PATH": str(folder)}


def test_manager_is_told(tmp_path: Path) -> None:
    """Each command is run as it stands, in the user's environment."""
    env = program(tmp_path / "bin", "systemctl", f'echo "$@" >> {shlex.quote(str(tmp_path))}/told')
    found = made(tmp_path)
    ran = run_commands([*found.enable, found.start], env)
    assert [one.problem for one in ran] == [None] * 3
    told = (tmp_path / "told").read_text().splitlines()
    assert told == [
        "--user enable brimline.service",
        "--user daemon-reload",
        "--user restart brimline.service",
    ]


def test_manager_that_refuses(tmp_path: Path) -> None:
    """What it said is the reason; without a word, its exit code."""
    env = program(tmp_path / "bin", "systemctl", "echo 'Failed to connect to bus' >&2; exit 1")
    words = ("systemctl", "--user", "daemon-reload")
    assert run_commands([words], env)[0].problem == "Failed to connect to bus"
    program(tmp_path / "bin", "systemctl", "exit 4")
    assert run_commands([words], env)[0].problem == "exit code 4"
    assert run_commands([("launchctl", "print")], env)[0].problem == "launchctl is not installed"
