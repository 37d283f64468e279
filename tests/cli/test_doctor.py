"""`brimline doctor`: its checks and hints."""

import argparse
import fcntl
import json
import os
import shutil
import sys
import tomllib
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest

from brimline._version import __version__
from brimline.agents import all_agents
from brimline.agents.transcripts.source import Places
from brimline.cli import doctor, setup
from brimline.cli.context import CommandContext
from brimline.cli.doctor_checks import (
    FULL,
    OLD_COMMANDS,
    ROOM,
    START,
    Check,
    DaemonReport,
    daemon,
    events,
    hooks,
    spool,
    store,
    version,
)
from brimline.daemon.secret import load_or_create_secret
from brimline.daemon.sockets import write_port
from brimline.install.install import DisablingSetting
from brimline.install.installed import InstalledHooks
from brimline.install.launcher import read_launcher, write_launcher
from brimline.settings import Settings
from brimline.store.problems import StoreProblem, report_problem
from drifted_homes import RECORDED, write_home

LINUX = pytest.mark.skipif(sys.platform == "darwin", reason="its service manager is launchd")
NOW = 1_800_000_000.0
ROOT = Path(__file__).parents[1]

SETUP: dict[str, Any] = {
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
    "json": True,
}


class User:
    """Someone who runs `brimline doctor`."""

    def __init__(self, home: Path, capture: "pytest.CaptureFixture[str]") -> None:
        places = Places(home, {"PATH": "/nowhere"})
        self._capture = capture
        self.home = home
        self.context = CommandContext(places, Settings(), width=100, colour=False, now=NOW)

    def doctor(self) -> tuple[int, dict[str, Any]]:
        """The exit code, and the checks by subject."""
        self._capture.readouterr()
        code = doctor.run(self.context, argparse.Namespace(json=True))
        output = json.loads(self._capture.readouterr().out)
        return code, {check["about"]: check for check in output}

    def set_up(self, **options: Any) -> None:
        assert setup.run(self.context, argparse.Namespace(**{**SETUP, **options})) == 0


@pytest.fixture
def user(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> User:
    """A user with Claude Code and no daemon."""
    for folder in ("home/.claude", "project"):
        (tmp_path / folder).mkdir(parents=True)
    state = tmp_path / "home/.local/state/brimline"
    state.mkdir(parents=True, mode=0o700)
    load_or_create_secret(state)
    write_port(state, 8_420)
    monkeypatch.chdir(tmp_path / "project")
    return User(tmp_path / "home", capsys)


def test_what_is_not_set_up_is_optional_and_the_exit_code_is_0(user: User) -> None:
    code, checks = user.doctor()
    assert (code, all(check["well"] for check in checks.values())) == (0, True)
    assert {about: check["hint"] for about, check in checks.items() if check["optional"]} == {
        "claude hooks": "`brimline setup claude` installs them.",
        "daemon": START,
        "service": "`brimline setup --service` installs one.",
        "autostart": "`brimline setup --autostart` turns it on.",
    }
    (user.home / ".claude").rmdir()
    code, checks = user.doctor()
    assert (code, checks["agents"]["optional"]) == (0, True)


@pytest.mark.parametrize(("autostart", "is_broken"), [(True, False), (False, True)])
def test_stopped_daemon_is_a_problem_if_no_hook_starts_it(
    user: User, autostart: bool, is_broken: bool
) -> None:
    user.set_up(autostart=autostart)
    (user.home / ".local/state/brimline/spool").write_bytes(b"x")
    code, checks = user.doctor()
    assert {about for about, check in checks.items() if not check["well"]} == (
        {"daemon"} if is_broken else set()
    )
    assert code == is_broken
    assert checks["daemon"]["optional"] is not is_broken
    assert checks["spool"]["optional"], "the next daemon reads it"


@LINUX
def test_stopped_daemon_is_a_problem_if_there_is_a_service(user: User) -> None:
    unit = user.home / ".config/systemd/user/brimline.service"
    unit.parent.mkdir(parents=True)
    unit.touch()
    code, checks = user.doctor()
    assert (code, checks["daemon"]["well"], checks["service"]["well"]) == (1, False, False)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"transport": "http"},
        {"status_line": "prepend"},
        {"autostart": False},
        {"scope": "project"},
    ],
    ids=["default", "http", "prepend", "no autostart", "project"],
)
def test_hooks_installed_with_any_setup_option_are_ok(user: User, options: dict[str, Any]) -> None:
    user.set_up(**options)
    _, checks = user.doctor()
    assert checks["claude hooks"]["well"]
    assert checks["claude hooks"]["told"].startswith("10 hooks installed")
    assert checks["status line"]["well"]
    assert checks["autostart"]["optional"] is (options == {"autostart": False})


def test_text_has_a_line_per_check_and_hints_below_all_but_ok(
    user: User, capsys: pytest.CaptureFixture[str]
) -> None:
    (user.home / ".local/state/brimline/spool.dropped").write_bytes(b".")
    assert doctor.run(user.context, argparse.Namespace(json=False)) == 1
    lines = capsys.readouterr().out.splitlines()
    hints = {line: hint.strip() for line, hint in pairwise(lines)}
    missing = "--  claude hooks   none installed"
    assert hints[missing] == "`brimline setup claude` installs them."
    assert hints["!!  spool          empty, 1 event lost"].startswith("`brimline serve")
    assert any(line.startswith("ok  brimline ") for line in lines)


@pytest.mark.parametrize("scope", ["user", "project"])
def test_removed_status_line_is_reported_unless_setup_left_it_out(user: User, scope: str) -> None:
    user.set_up(scope=scope, agents=["claude"])
    local = Path.cwd() / ".claude/settings.local.json"
    path = user.home / ".claude/settings.json" if scope == "user" else local
    settings = json.loads(path.read_text())
    settings["statusLine"]["command"] = "mine"
    path.write_text(json.dumps(settings))
    line = user.doctor()[1]["status line"]
    assert (line["well"], line["told"]) == (False, f"no longer Brimline's in {path}")
    more = " --scope project" if scope == "project" else ""
    assert line["hint"] == f"`brimline setup claude{more}` restores it."
    user.set_up(scope=scope, agents=["claude"], remove=True)
    assert "status line" not in user.doctor()[1]


def test_project_setting_that_disables_hooks_is_named(user: User) -> None:
    user.set_up()
    path = Path.cwd() / ".claude/settings.local.json"
    path.parent.mkdir()
    path.write_text('{"disableAllHooks": true}')
    check = user.doctor()[1]["claude hooks"]
    assert check["told"] == f"disabled by disableAllHooks in {path}"
    assert check["hint"] == f"Remove `disableAllHooks` from {path}."


def test_launcher_is_checked_once_hooks_run_it(user: User) -> None:
    assert "launcher" not in user.doctor()[1]
    user.set_up()
    assert user.doctor()[1]["launcher"]["told"] == "runs this installation"
    launcher = user.home / ".local/state/brimline/brimline-hook"
    launcher.chmod(0o600)
    assert not user.doctor()[1]["launcher"]["well"]
    launcher.unlink()
    check = user.doctor()[1]["launcher"]
    assert (check["well"], check["told"]) == (False, f"missing or not executable: {launcher}")
    assert check["hint"] == "`brimline setup claude` writes it; without it, every hook fails."
    user.set_up()
    assert user.doctor()[1]["launcher"]["well"]
    user.set_up(remove=True)
    user.set_up(scope="project", agents=["claude"])
    launcher.unlink()
    hint = user.doctor()[1]["launcher"]["hint"]
    assert hint.startswith("`brimline setup claude --scope project` ")


def test_launcher_of_a_gone_outdated_or_other_installation_is_named(
    user: User, tmp_path: Path
) -> None:
    user.set_up()
    state = user.home / ".local/state/brimline"
    current = read_launcher(state)
    assert current is not None
    script = "/venv/python3.12/client.py"
    write_launcher(msgspec.structs.replace(current, script=script))
    check = user.doctor()[1]["launcher"]
    place = f"{state}/brimline-hook"
    assert check["told"] == f"the installation that {place} runs is gone: {script}"
    assert check["hint"] == "`brimline setup claude` lets it run this installation."
    python = tmp_path / "python"
    python.symlink_to(current.python)
    write_launcher(msgspec.structs.replace(current, python=str(python)))
    check = user.doctor()[1]["launcher"]
    assert (check["well"], check["told"]) == (True, f"runs another installation: {python}")
    write_launcher(msgspec.structs.replace(current, socket="/other.sock"))
    check = user.doctor()[1]["launcher"]
    assert (check["well"], check["hint"]) == (
        False,
        "It is outdated: `brimline setup claude` updates it.",
    )


def test_long_commands_of_an_earlier_version_are_reported(user: User) -> None:
    user.set_up()
    path = user.home / ".claude/settings.json"
    script = "/v/brimline/hooks/client/client.py"
    long = f'"command": "/v/brimline-hook", "args": ["/v/python", "{script}", '
    short = f'"command": "{user.home}/.local/state/brimline/brimline-hook", "args": ['
    path.write_text(path.read_text().replace(short, long))
    checks = user.doctor()[1]
    assert checks["claude hooks"]["told"] == f"{OLD_COMMANDS} in {path}"
    assert checks["claude hooks"]["hint"] == "`brimline setup claude` replaces them."
    assert "launcher" not in checks
    user.set_up()
    assert user.doctor()[1]["claude hooks"]["well"]


def test_unresponsive_daemon_is_reported_with_how_to_end_it(user: User) -> None:
    lock = user.home / ".local/state/brimline/lock"
    lock.parent.mkdir(parents=True, exist_ok=True)
    lock.write_text("4711\n")
    with lock.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        check = user.doctor()[1]["daemon"]
    assert (check["well"], "4711" in check["told"]) == (False, True)
    assert "`kill " in check["hint"]
    assert "4711`" in check["hint"]
    assert user.doctor()[1]["daemon"]["hint"] == START


# Checks of a running daemon.


def status_with(*sessions: dict[str, Any], **more: Any) -> DaemonReport:
    """Status of a daemon with these sessions."""
    status = {
        "version": __version__,
        "since": NOW - 600,
        "address": "http://127.0.0.1:8420",
        "malformed": 0,
        "dropped": 0,
    }
    return DaemonReport({**status, **more}, list(sessions))


def session(ago: float, agent: str = "claude", version: str | None = "2.1.325") -> dict[str, Any]:
    """A session that was last seen `age` seconds ago."""
    return {"agent": agent, "seen_at": NOW - ago, "version": version}


INSTALLED = InstalledHooks("claude", Path("/s"), events=("Stop",), autostart=True)


def test_long_unused_agent_is_ok(user: User) -> None:
    check = hooks(user.context, "claude", [INSTALLED], status_with(hooks={"claude": NOW - 90_000}))
    assert (check.well, check.finding) == (True, "1 hook installed, last event 1d ago")
    check = hooks(
        user.context, "claude", [INSTALLED], status_with(session(5), hooks={"codex": NOW})
    )
    assert (check.well, check.finding) == (True, "1 hook installed, no events yet")


def test_daemon_without_hook_times_gives_no_warning(user: User) -> None:
    written(user, NOW)
    check = hooks(user.context, "claude", [INSTALLED], status_with(session(5)))
    assert (check.well, check.finding) == (True, "1 hook installed")


def written(user: User, at: float) -> None:
    """Write a transcript with this modification time."""
    transcript = user.home / ".claude/projects/p/11111111-1111-4111-8111-111111111111.jsonl"
    transcript.parent.mkdir(parents=True)
    transcript.write_text("{}\n")
    os.utime(transcript, (at, at))


@pytest.mark.parametrize(
    ("times", "at", "message"),
    [
        ({}, NOW - 5, "since the daemon started 10m ago, but a transcript was written"),
        ({"claude": NOW - 300}, NOW - 5, "since a transcript was written"),
        ({"claude": NOW - 30}, NOW - 5, None),
        ({}, NOW - 700, None),
    ],
    ids=["never", "not any more", "of late", "nothing was written"],
)
def test_transcript_growth_without_hooks_is_reported(
    user: User, times: dict[str, float], at: float, message: str | None
) -> None:
    """Reading the transcript does not count as a hook."""
    written(user, at)
    check = hooks(user.context, "claude", [INSTALLED], status_with(session(1), hooks=times))
    assert check.well is (message is None)
    if message is not None:
        assert check.finding == f"1 hook installed, no event {message}"
        assert check.hint


def test_limit_that_a_fresh_session_has_reached_is_reported(user: User) -> None:
    """A context of 22,000 tokens that may hold 9,000 is compacted at once, again and again."""
    written(user, NOW)
    lines = [
        {"type": "assistant", "sessionId": "s1", "version": "2.1.325", "timestamp": stamp,
         "message": {"id": stamp, "model": "claude-sonnet-4-5",
                     "usage": {"input_tokens": sent, "output_tokens": 5}}}
        for stamp, sent in (("2027-01-15T07:59:00Z", 22_000), ("2027-01-15T07:59:30Z", 23_000))
    ]  # fmt: skip
    transcript = next(user.home.glob(".claude/projects/p/*.jsonl"))
    transcript.write_text("".join(json.dumps(line) + "\n" for line in lines))
    os.utime(transcript, (NOW, NOW))
    assert "claude limit" not in user.doctor()[1]
    (user.home / ".claude/settings.json").write_text(
        json.dumps({"env": {"CLAUDE_CODE_AUTO_COMPACT_WINDOW": "42000"}})
    )
    check = user.doctor()[1]["claude limit"]
    assert not check["well"]
    assert check["told"].startswith("session 11111111: 9,000 (configured): ")
    assert check["told"].endswith("; unreachable: the context began with 22,000 tokens")
    assert check["hint"] == (
        "Change `autoCompactWindow` in Claude Code's settings.json, or "
        "CLAUDE_CODE_AUTO_COMPACT_WINDOW in its environment."
    )
    own = msgspec.structs.replace(user.context.settings, limits={"claude": 8_000})
    user.context = msgspec.structs.replace(user.context, settings=own)
    check = user.doctor()[1]["claude limit"]
    assert (check["well"], check["told"].partition(":")[2][:12]) == (False, " 8,000 (set)")
    assert check["hint"].endswith(f"under `[limits]` in {user.home}/.config/brimline/config.toml.")


def test_limit_that_one_session_learned_is_no_problem(user: User) -> None:
    """Three automatic compactions near 100,000, where the client's rule says 167,000."""
    written(user, NOW)
    base = {"sessionId": "s1", "version": "2.1.325"}
    lines: list[dict[str, Any]] = []
    for number, held in enumerate((100_000, 100_500, 101_000, 20_000)):
        stamp = f"2027-01-15T07:5{number}:00Z"
        usage = {"input_tokens": held, "output_tokens": 5}
        message = {"id": stamp, "model": "claude-sonnet-4-5", "usage": usage}
        lines.append({**base, "type": "assistant", "timestamp": stamp, "message": message})
        compaction = {"trigger": "auto", "preTokens": held}
        lines.append({**base, "type": "system", "subtype": "compact_boundary",
                      "timestamp": stamp, "compactMetadata": compaction})  # fmt: skip
    transcript = next(user.home.glob(".claude/projects/p/*.jsonl"))
    transcript.write_text("".join(json.dumps(line) + "\n" for line in lines[:-1]))
    os.utime(transcript, (NOW, NOW))
    code, checks = user.doctor()
    check = checks["claude limit"]
    assert (code, check["well"], check["optional"]) == (0, True, True)
    assert "(learned): the lower of the last two automatic compactions" in check["told"]
    config = f"{user.home}/.config/brimline/config.toml"
    assert check["hint"] == (
        f'If it is wrong, add `"claude/claude-sonnet-4-5" = TOKENS` under `[limits]` in {config}.'
    )


def test_version_of_a_client_that_compacts_elsewhere_is_reported(user: User) -> None:
    written(user, NOW)
    lines: list[dict[str, Any]] = []
    for number, before in enumerate((146_000, 146_400, 147_000)):
        head = {"sessionId": "s1", "version": "2.1.330"}
        head["timestamp"] = f"2027-01-15T07:5{number}:00Z"
        usage = {"input_tokens": before - 200, "output_tokens": 5}
        message = {"id": f"m{number}", "model": "claude-sonnet-4-5", "usage": usage}
        compacted = {"subtype": "compact_boundary"}
        metadata = {"trigger": "auto", "preTokens": before}
        lines += [
            {**head, "type": "assistant", "message": message},
            {**head, "type": "system", **compacted, "compactMetadata": metadata},
        ]
    transcript = next(user.home.glob(".claude/projects/p/*.jsonl"))
    transcript.write_text("".join(json.dumps(line) + "\n" for line in lines))
    os.utime(transcript, (NOW, NOW))
    check = user.doctor()[1]["claude drift"]
    assert (check["optional"], check["told"]) == (
        True,
        "claude-sonnet-4-5: compacted at 146K three times since 2.1.330, expected 167K",
    )


def test_hooks_posted_to_another_port_fail_only_if_a_daemon_runs(user: User) -> None:
    installed = InstalledHooks(
        "claude", Path("/s"), ("Stop",), addresses=("http://127.0.0.1:8420",)
    )
    check = hooks(user.context, "claude", [installed], status_with(address="http://127.0.0.1:9"))
    assert not check.well
    assert check.finding == "sent to http://127.0.0.1:8420, but the daemon is at http://127.0.0.1:9"
    assert "`brimline serve --background --port 8420`" in str(check.hint)
    assert "`brimline setup claude --transport command`" in str(check.hint)
    for status in (status_with(), DaemonReport(reason="none")):
        check = hooks(user.context, "claude", [installed], status)
        assert (check.well, check.finding) == (True, "1 hook installed, sent over HTTP")


@pytest.mark.parametrize(
    ("installed", "message"),
    [
        (InstalledHooks("claude", Path("/s"), reason="/s: line 1"), "/s: line 1"),
        (
            InstalledHooks("claude", Path("/s"), ("Stop",), missing=("PreCompact",)),
            "no hook for PreCompact",
        ),
        (
            InstalledHooks("claude", Path("/s"), ("Stop",), outdated=("Stop",)),
            "outdated for Stop in /s",
        ),
        (
            InstalledHooks(
                "claude", Path("/s"), ("Stop",), outdated=("Stop",), names_installation=True
            ),
            f"{OLD_COMMANDS} in /s",
        ),
        (
            InstalledHooks(
                "claude", Path("/s"), ("Stop",), disabled_by=DisablingSetting("x", Path("/t"))
            ),
            "disabled by x in /t",
        ),
    ],
    ids=["broken", "missing", "outdated", "old", "off"],
)
def test_hook_problem_is_reported_with_a_hint(
    user: User, installed: InstalledHooks, message: str
) -> None:
    check = hooks(user.context, "claude", [installed], status_with())
    assert not check.well
    assert check.finding.startswith(message)
    assert check.hint


def test_last_session_with_a_too_old_client_is_reported() -> None:
    report = status_with(session(9, version="2.1.325"), session(5, version="2.1.97"))
    check = version("claude", report.version_of("claude"))
    assert (check.well, check.finding) == (False, "2.1.97; tested up to 2.1.326")
    assert check.hint == "Update it to 2.1.139 or newer to use Brimline's hooks."
    check = version("claude", "2.1.97", has_hooks=False)
    assert (check.well, check.optional) == (True, True)
    report = status_with(session(5), session(9, version="2.1.97"))
    assert version("claude", report.version_of("claude")).well
    assert version("codex", "0.166.0").well


def test_doctor_names_the_newest_version_that_was_tested() -> None:
    check = version("claude", "3.0.1")
    assert (check.well, check.finding) == (True, "3.0.1; tested up to 2.1.326")
    unknown = status_with(session(5, version=None)).version_of("claude")
    assert version("claude", unknown).finding == "unknown; tested up to 2.1.326"


def test_doctor_warns_once_about_a_newer_client(user: User) -> None:
    path = write_home("codex", user.home, None)
    path.write_text(path.read_text().replace("0.166.0", "0.200.0"))
    _, checks = user.doctor()
    check = checks["codex version"]
    assert (check["well"], check["optional"], check["told"]) == (
        True, True, "0.200.0; tested up to 0.169.0"
    )  # fmt: skip
    assert check["hint"].startswith("Codex 0.200.0 is newer than 0.169.0, the newest version ")
    _, checks = user.doctor()
    check = checks["codex version"]
    assert (check["optional"], check["told"]) == (False, "0.200.0; tested up to 0.169.0")


@pytest.mark.parametrize("agent", RECORDED)
def test_doctor_reports_a_transcript_that_is_not_understood(user: User, agent: str) -> None:
    path = write_home(agent, user.home, None)
    _, checks = user.doctor()
    known = checks[f"{agent} format"]
    assert (known["well"], known["told"]) == (True, "its newest transcript is understood")
    path.unlink()
    write_home(agent, user.home, "usage renamed")
    code, checks = user.doctor()
    changed = checks[f"{agent} format"]
    assert (code, changed["well"]) == (1, False)
    assert str(path) in changed["told"]
    assert changed["told"].endswith("Update Brimline.")


def test_doctor_compares_a_countdown_of_the_client_with_what_is_left(user: User) -> None:
    """By the fixture of a real run, in which Claude Code counts down from 15,000,000."""
    source = ROOT / "fixtures/claude/1m/home/.claude"
    shutil.copytree(source, user.home / ".claude", dirs_exist_ok=True)
    _, checks = user.doctor()
    told = checks["claude countdown"]["told"]
    assert told == 'the client tells the model "14,778,821 tokens left": in fact 736K are left'
    assert checks["claude countdown"]["well"]


def test_tested_versions_are_those_of_the_client_tests() -> None:
    pinned = tomllib.loads((Path(__file__).parents[1] / "clients/versions.toml").read_text())
    tested = {one.name: one.capabilities.tested_version for one in all_agents()}
    assert tested == {name: pinned[name]["version"] for name in tested}


def test_observation_from_the_future_reports_a_wrong_clock() -> None:
    checks = {check.name: check for check in events(status_with(session(-600)), NOW)}
    assert (checks["clock"].well, checks["clock"].finding) == (False, "10m behind the events")
    assert all(check.well for check in events(status_with(session(5), session(-2)), NOW))


def test_other_daemon_version_and_lost_events_are_reported() -> None:
    checks = {check.name: check for check in daemon(status_with(version="0.0.1", dropped=3), NOW)}
    assert not checks["daemon"].well
    assert (checks["losses"].well, checks["losses"].hint) == (False, FULL)
    assert checks["losses"].finding == "0 malformed, 3 dropped, 0 came late"


def test_what_agents_receive_is_shown_without_a_daemon_and_by_the_users_own_file(
    user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = user.home / ".config" / "brimline" / "config.toml"
    own.parent.mkdir(parents=True)
    own.write_text('[uplink]\nurl = "https://fleet.example.com"\ntoken = "brim_x"\n')
    project = user.home / "project"
    project.mkdir()
    (project / ".brimline.toml").write_text('[uplink]\nreceive = "all"\n')
    monkeypatch.chdir(project)
    finding = user.doctor()[1]["uplink"]["told"]
    assert finding == 'https://fleet.example.com: receives nothing (uplink.receive = "off")'


def test_late_input_is_reported_with_and_without_a_daemon(tmp_path: Path) -> None:
    checks = {check.name: check for check in daemon(status_with(late=1_200), NOW)}
    assert checks["losses"].well
    assert checks["losses"].finding == "0 malformed, 0 dropped, 1,200 came late"
    (tmp_path / "spool.late").write_bytes(b"..")
    assert (spool(tmp_path).well, spool(tmp_path).finding) == (True, "empty, 2 inputs came late")


def test_unwritable_or_full_store_is_reported_with_a_hint(tmp_path: Path) -> None:
    assert store(tmp_path / "not" / "yet").finding == "none yet"
    (tmp_path / "brimline.db").write_bytes(b"x" * 2_000_000)
    assert store(tmp_path) == Check("store", True, f"2.0 MB at {tmp_path}/brimline.db", ROOM)
    full = store(tmp_path, least=1 << 62)
    assert (full.well, full.hint) == (False, ROOM)
    assert full.finding.endswith(" free on its disk")
    check = store(tmp_path / "brimline.db")
    assert (check.well, check.finding) == (False, f"{tmp_path}/brimline.db is not a folder")
    assert "BRIMLINE_STATE_DIR" in str(check.hint)


def test_store_problem_fails_the_check_until_it_is_resolved(user: User) -> None:
    state = user.home / ".local/state/brimline"
    corrupt_file = state / "brimline.db.broken"
    corrupt_file.touch()
    report_problem(state, StoreProblem(NOW - 3_600, "It broke.", str(corrupt_file), "Do this."))
    code, checks = user.doctor()
    problem = checks["store problem"]
    assert code == 1
    assert (problem["well"], problem["told"], problem["hint"]) == (
        False,
        "1h ago: It broke.",
        "Do this.",
    )
    corrupt_file.unlink()
    assert "store problem" not in user.doctor()[1]


def test_spool_counts_waiting_and_lost_events(tmp_path: Path) -> None:
    assert spool(tmp_path).well
    assert spool(tmp_path / ("x" * 300)).finding == "empty"
    for size, shown_size in ((1, "1 KB"), (3_400, "3 KB"), (100_000, "0.1 MB")):
        (tmp_path / "spool").write_bytes(b"x" * size)
        assert spool(tmp_path).finding == f"{shown_size} waiting for the daemon"
    (tmp_path / "spool").write_bytes(b"x" * 2_000_000)
    (tmp_path / "spool.dropped").write_bytes(b"...")
    check = spool(tmp_path)
    assert (check.well, check.finding) == (False, "2.0 MB waiting for the daemon, 3 events lost")
