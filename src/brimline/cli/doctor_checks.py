"""What doctor looks at, one thing after the other."""

import os
import re
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from brimline._version import __version__
from brimline.agents import capabilities_of, get_agent
from brimline.agents.hook_command import Program
from brimline.agents.transcripts.lines import open_transcript
from brimline.agents.transcripts.source import Transcript
from brimline.cli.context import CommandContext
from brimline.cli.daemon_requests import describe_losses
from brimline.cli.windows import describe_bound, find_limit_drifts
from brimline.context.tracker import main_thread, read
from brimline.context.window import Limit
from brimline.install.installed import InstalledHooks, LineState
from brimline.install.launcher import is_current, is_gone, read_launcher
from brimline.install.setting_check import check_settings
from brimline.sessions.files import SessionFiles, load_session
from brimline.sessions.ledger.explain import tokens_left
from brimline.sessions.ledger.waste import judge_countdown
from brimline.sessions.status import SessionStatus, survey_sessions
from brimline.settings import UplinkSettings, describe_receive, seconds, user_file
from brimline.store.problems import open_problems
from brimline.terminal.text import count_of, format_age

# An event that is further in the future than this shows a wrong clock.
MAX_CLOCK_SKEW_S = 60.0

HOOK_GRACE_S = 60.0  # a transcript may be ahead of the hooks by this much

TAIL_BYTES = 256 << 10  # of a transcript, in which a countdown is looked for

MIN_FREE_BYTES = 16 << 20  # a disk with fewer bytes left is full before anybody looks again

START = "`brimline serve --background` starts it. With autostart on, a hook starts it."
RESTART = "Restart it: `brimline serve --stop`, then `brimline serve --background`."
COUNTDOWN_HINT = "`brimline explain` shows its cost; `brimline here` says what is left."
OLD_COMMANDS = "commands of an earlier version, which fail if Brimline is moved or removed,"
ELSEWHERE = "set BRIMLINE_STATE_DIR to another folder."
ROOM = "Free some disk space: events cannot be stored."
FULL = "The spool was full while the daemon was off: `brimline setup --service` keeps it running."
KEPT = "Nothing is lost: the daemon sends it when the server takes it."

# Problems of a status line.
LINE_PROBLEMS: dict[LineState, str] = {
    "old": "outdated",
    "gone": "no longer Brimline's",
}


class Check(msgspec.Struct, frozen=True):
    """A check: its name, whether it is well, the finding, and what to do if it is not.

    `optional`: it is not set up, and need not be; `hint` says how to.
    """

    name: str = msgspec.field(name="about")  # in JSON
    well: bool
    finding: str = msgspec.field(name="told")
    hint: str | None = None
    optional: bool = False


def agent_packages() -> Iterator[Check]:
    """Check the packages that the user enabled; call it when their agents were read."""
    from brimline.agents.packages import enabled_packages  # few users have such packages: 10 ms

    for package in enabled_packages():
        added = ", ".join(package.agents) or "no agent"
        version = f", version {package.version}" if package.version else ""
        finding = "; ".join(package.problems) or f"adds {added}{version}"
        hint = f"Update {package.name}, or remove it from `agents` in your settings."
        yield Check(package.name, not package.problems, finding, hint)


def not_set_up(name: str, finding: str, hint: str) -> Check:
    return Check(name, True, finding, hint, optional=True)


class DaemonReport(msgspec.Struct, frozen=True):
    """What the daemon says of itself and of the sessions.

    `reason` is why it says nothing, and `hint` what to do about that; `is_stopped` if it does not
    run.
    """

    status: dict[str, Any] = {}
    sessions: list[dict[str, Any]] = []
    reason: str | None = None
    hint: str = START
    is_stopped: bool = False

    @property
    def runs(self) -> bool:
        return self.reason is None

    def sessions_of(self, agent: str) -> list[dict[str, Any]]:
        """The sessions of an agent, the last seen first."""
        sessions = [one for one in self.sessions if one["agent"] == agent]
        return sorted(sessions, key=lambda one: one["seen_at"], reverse=True)

    def version_of(self, agent: str) -> str | None:
        """The version of an agent's client that was reported last."""
        return next((one["version"] for one in self.sessions_of(agent) if one["version"]), None)


def hooks(
    context: CommandContext, agent: str, installed: Sequence[InstalledHooks], report: DaemonReport
) -> Check:
    """Check that the hooks are installed as by setup now, and that events arrive."""
    name = f"{agent} hooks"
    broken = next((one.reason for one in installed if one.reason), None)
    if broken:
        return Check(name, False, broken, "Fix the file, then run `brimline setup`.")
    active = [one for one in installed if one.events]
    plugin = next((one.plugin for one in installed if one.plugin), None)
    if plugin and not active:
        check = Check(name, True, f"by the plugin {plugin}")
        return _with_last_event(context, agent, check, report)
    if not active:
        return not_set_up(name, "none installed", f"`brimline setup {agent}` installs them.")
    for one in active:
        if wrong := _hook_problem(name, one, report):
            return wrong
    finding = f"{count_of(len(active[0].events), 'hook')} installed"
    finding += ", sent over HTTP" if active[0].addresses else ""
    finding += f"; those of the plugin {plugin} stay silent" if plugin else ""
    return _with_last_event(context, agent, Check(name, True, finding), report)


def _hook_problem(name: str, installed: InstalledHooks, report: DaemonReport) -> Check | None:
    """Return what keeps the hooks of one file from being run, or from reaching the daemon."""
    off, address = installed.disabled_by, report.status.get("address")
    if off:
        finding, hint = f"{off.setting} in {off.path}", f"Remove `{off.setting}` from {off.path}."
        return Check(name, False, f"disabled by {finding}", hint)
    if installed.missing:
        finding, effect = f"no hook for {', '.join(installed.missing)}", "installs"
    elif installed.names_installation:
        finding, effect = OLD_COMMANDS, "replaces"
    elif installed.outdated:
        finding, effect = f"outdated for {', '.join(installed.outdated)}", "updates"
    elif report.runs and any(one != address for one in installed.addresses):
        return _wrong_address(name, installed, str(address))
    else:
        return None
    hint = f"`{_setup_command(installed)}` {effect} them."
    return Check(name, False, f"{finding} in {installed.path}", hint)


def _wrong_address(name: str, installed: InstalledHooks, address: str) -> Check:
    place = next(one for one in installed.addresses if one != address)
    finding = f"sent to {place}, but the daemon is at {address}"
    port = place.rpartition(":")[2]
    back = f"`brimline serve --stop`, then `brimline serve --background --port {port}`"
    hint = f"{back}; or `{_setup_command(installed)} --transport command`."
    return Check(name, False, finding, hint)


def _setup_command(installed: InstalledHooks) -> str:
    scope = " --scope project" if installed.scope == "project" else ""
    return f"brimline setup {installed.agent}{scope}"


def _with_last_event(
    context: CommandContext, agent: str, check: Check, report: DaemonReport
) -> Check:
    """Add the last event's time; fails if a transcript was written after it."""
    times: dict[str, float] | None = report.status.get("hooks")
    if not report.runs or times is None:
        return check
    last, since = times.get(agent), report.status["since"]
    written, due = _last_write(context, agent), since if last is None else last + HOOK_GRACE_S
    if written is None or written <= due:
        events = (
            "no events yet" if last is None else f"last event {format_age(context.now - last)} ago"
        )
        return Check(check.name, True, f"{check.finding}, {events}")
    events = "no event since a transcript was written"
    if last is None:
        begun = format_age(context.now - since)
        events = f"no event since the daemon started {begun} ago, but a transcript was written"
    return Check(
        check.name, False, f"{check.finding}, {events}", get_agent(agent).install_spec.next_step
    )


def status_line(installed: Sequence[InstalledHooks]) -> Iterator[Check]:
    """Check that the installed status line is still there, and of this installation."""
    lines = [one for one in installed if one.events and one.status_line]
    if not lines:
        return
    wrong = next((one for one in lines if one.status_line != "current"), None)
    if wrong is None or wrong.status_line is None:
        yield Check("status line", True, "ours")
        return
    finding = f"{LINE_PROBLEMS[wrong.status_line]} in {wrong.path}"
    yield Check("status line", False, finding, f"`{_setup_command(wrong)}` restores it.")


def launcher(program: Program, installed: Sequence[InstalledHooks]) -> Iterator[Check]:
    """Check the launcher, if there are hooks that run it."""
    using = next((one for one in installed if one.events and not one.names_installation), None)
    if using is None:
        return
    setup = f"`{_setup_command(using)}`"
    path = Path(program.launcher)
    current = read_launcher(path.parent)
    if current is None or not os.access(path, os.X_OK):
        hint = f"{setup} writes it; without it, every hook fails."
        yield Check("launcher", False, f"missing or not executable: {path}", hint)
    elif is_gone(current):
        finding = f"the installation that {path} runs is gone: {current.script}"
        yield Check("launcher", False, finding, f"{setup} lets it run this installation.")
    elif current.python != program.python:
        yield Check("launcher", True, f"runs another installation: {current.python}")
    else:
        hint = f"It is outdated: {setup} updates it."
        yield Check("launcher", is_current(program), "runs this installation", hint)


def _last_write(context: CommandContext, agent: str) -> float | None:
    transcripts = get_agent(agent).transcripts(context.places)
    return max((one.modified for one in transcripts), default=None)


def version(
    agent: str, used: str | None, has_hooks: bool = True, warning: str | None = None
) -> Check:
    """Check that the client's version supports our hooks, if it has them, and was tested.

    `warning` is about a version that was not.
    """
    name, tested = f"{agent} version", get_agent(agent).capabilities.tested_version
    finding = used or "unknown"
    if tested is not None:
        finding += f"; tested up to {tested}"
    own = get_agent(agent)
    oldest = own.install_spec.min_version if own.has_hooks else ()
    if used is None or warning is not None:
        return Check(name, True, finding, warning, optional=warning is not None)
    numbers = tuple(int(number) for number in re.findall(r"[0-9]+", used)[: len(oldest)])
    needed = ".".join(map(str, oldest))
    optional = numbers < oldest and not has_hooks
    hint = f"Update it to {needed} or newer to use Brimline's hooks."
    return Check(name, optional or numbers >= oldest, finding, hint, optional)


def limits(context: CommandContext, agents: Sequence[str]) -> Iterator[Check]:
    """Check that the limits of active sessions can be reached, and that the clients keep them."""
    since = context.now - seconds(context.settings.since)
    survey = survey_sessions(
        context.places, agents, since, context.settings.overrides, context.cache
    )
    for session in survey.sessions:
        limit = session.main.reading.limit
        if limit is not None and limit.warning is not None:
            yield _limit_check(context, session, limit)


def _limit_check(context: CommandContext, session: SessionStatus, limit: Limit) -> Check:
    """Report what speaks against a limit.

    It is a problem only if the user set one that no session can keep. Compactions of one session at
    another point may have had their reasons.
    """
    agent, model = session.agent, session.main.model
    name, finding = f"{agent} limit", f"session {session.session[:8]}: {describe_bound(limit)}"
    table = f"`[limits]` in {user_file(context.places.env, context.places.home)}"
    change = {
        "set": f"Raise or remove the limit of this model or agent under {table}.",
        "configured": f"Change {capabilities_of(agent).limit_setting}.",
    }
    known = f'If it is wrong, add `"{agent}/{model}" = TOKENS` under {table}.'
    hint = change.get(limit.origin, known)
    if limit.is_unreachable and limit.origin in change:
        return Check(name, False, finding, hint)
    return not_set_up(name, finding, hint)


def limit_drifts(context: CommandContext) -> Iterator[Check]:
    """Check that each version of a client compacts where it is expected to."""
    for drift in find_limit_drifts(context):
        finding = f"{drift.model or 'unknown model'}: {drift.text}"
        hint = "Each session's limit is then learned; `[limits]` in Brimline's settings sets it."
        yield not_set_up(f"{drift.agent} drift", finding, hint)


def compaction_settings(context: CommandContext) -> Iterator[Check]:
    """Check that clients heed the settings that `compact-at` wrote."""
    checks = check_settings(context.state, context.places, context.cache)
    if checks.problem:
        yield Check("compact-at", False, checks.problem)
    for each in checks.settings:
        if each.verdict in ("ignored", "elsewhere"):
            hint = f"`brimline compact-at --remove {each.agent}` restores the client's settings."
            yield Check(f"{each.agent} compact-at", False, each.text, hint)
        else:
            yield Check(f"{each.agent} compact-at", True, each.text)


def transcript_format(context: CommandContext, agent: str) -> Iterator[Check]:
    """Check that the agent's newest transcript is understood."""
    newest = max(
        get_agent(agent).transcripts(context.places), key=lambda one: one.modified, default=None
    )
    if newest is None:
        return
    loaded = load_session(SessionFiles(agent, "", (newest,)))
    problems = loaded.problems + loaded.damage
    finding = problems[0] if problems else "its newest transcript is understood"
    yield Check(f"{agent} format", not problems, finding)
    said, main = _last_countdown(newest), main_thread(loaded.session)
    if said is not None and main is not None:
        left = tokens_left(read(loaded.session, main, "transcript"))
        verdict = judge_countdown(said, left)
        finding = f'the client tells the model "{said:,} tokens left": {verdict}'
        yield not_set_up(f"{agent} countdown", finding, COUNTDOWN_HINT)


def _last_countdown(transcript: Transcript) -> int | None:
    """Return what a client last told the model is left, by the end of its transcript."""
    pattern = capabilities_of(transcript.agent).countdown.encode()
    with open_transcript(transcript.path, max(0, transcript.size - TAIL_BYTES)) as file:
        found = re.findall(pattern, file.read(TAIL_BYTES))
    return int(found[-1]) if found else None


def daemon(report: DaemonReport, now: float, is_needed: bool = True) -> Iterator[Check]:
    """Check the daemon; one that does not run is a problem if hooks need it and do not start it."""
    if report.reason is not None:
        optional = report.is_stopped and not is_needed
        yield Check("daemon", optional, report.reason, report.hint, optional)
        return
    status = report.status
    hint = f"It is a different version. {RESTART}"
    line = f"{status['version']}, for {format_age(now - status['since'])}, at {status['address']}"
    yield Check("daemon", status["version"] == __version__, line, hint)
    yield Check("losses", not status["dropped"], describe_losses(status), FULL)


def events(report: DaemonReport, now: float) -> Iterator[Check]:
    """Check that events have arrived, and that the clocks agree."""
    if not report.runs:
        return
    seen = [one["seen_at"] for one in report.sessions]
    if not seen:
        yield not_set_up("sessions", "none yet", "Start an agent that has Brimline's hooks.")
        return
    last = now - max(seen)
    finding = f"{count_of(len(seen), 'session')}, the last seen {format_age(max(0.0, last))} ago"
    yield Check("sessions", True, finding)
    right = last > -MAX_CLOCK_SKEW_S
    shown = "agrees with the events" if right else f"{format_age(-last)} behind the events"
    yield Check("clock", right, shown, "Set this machine's clock.")


def store(state: Path, least: int = MIN_FREE_BYTES) -> Check:
    """Check that the store can be written, and that at least `least` bytes are free."""
    path = state / "brimline.db"
    folder = next(place for place in (state, *state.parents) if os.path.exists(place))
    if not folder.is_dir():
        return Check("store", False, f"{folder} is not a folder", f"Move it away, or {ELSEWHERE}")
    places = [folder, path] if os.access(path, os.F_OK) else [folder]
    finding = f"{_amount(_size(path))} at {path}" if path in places else "none yet"
    if not all(os.access(place, os.W_OK) for place in places):
        hint = f"It is not writable: check its owner, or {ELSEWHERE}"
        return Check("store", False, f"{finding}, in {folder}", hint)
    free = shutil.disk_usage(folder).free
    finding += f", and {_amount(free)} free on its disk" if free < least else ""
    return Check("store", free >= least, finding, ROOM)


def store_problems(state: Path, now: float) -> Iterator[Check]:
    for problem in open_problems(state, now):
        finding = f"{format_age(max(0.0, now - problem.at))} ago: {problem.what}"
        yield Check("store problem", False, finding, problem.advice)


def spool(state: Path, is_read: bool = True) -> Check:
    """Check that no event was lost, and that none is left by a daemon that reads them."""
    size = sum(_size(state / name) for name in ("spool", "spool.taking"))
    lost, late = (_size(state / f"spool.{fate}") for fate in ("dropped", "late"))
    finding = f"{_amount(size)} waiting for the daemon" if size else "empty"
    finding += f", {count_of(lost, 'event')} lost" if lost else ""
    finding += f", {count_of(late, 'input')} came late" if late else ""
    hint = "`brimline serve --background` reads it."
    optional = bool(size) and not lost and not is_read
    return Check("spool", optional or not (size or lost), finding, hint, optional)


def _amount(size: int) -> str:
    return f"{size / 1e6:.1f} MB" if size >= 100_000 else f"{max(1, round(size / 1e3))} KB"


def _size(path: Path) -> int:
    """Return a file's size; 0 if it is missing or not accessible."""
    try:
        return path.stat().st_size if path.is_file() else 0
    except OSError:
        return 0


def describe_uplink(uplink: dict[str, Any]) -> str:
    """Return the state of an uplink in a line, also for `serve --status`, without the address."""
    # A daemon of an earlier version reports nothing about it, and receives all.
    parts = [_describe_reports(uplink), describe_receive(uplink.get("receive", "all"))]
    if uplink.get("refused"):
        parts.append(f"{uplink['refused']:,} refused, the last: {uplink['refusal']}")
    if sessions := uplink.get("refused_sessions"):
        id, reason = next(reversed(sessions.items()))
        refused = count_of(len(sessions), "session")
        parts.append(f"the server refuses {refused}, the last: {id[:8]}: {reason}")
    return "; ".join(parts)


def _describe_reports(uplink: dict[str, Any]) -> str:
    lag = f"{count_of(uplink['behind'], 'session')} behind for {format_age(uplink['lag_s'])}"
    if reason := uplink["problem"]:
        return f"{reason}; {lag}" if uplink["behind"] else reason
    if uplink["last_success_at"] is None:
        return "not connected yet"
    return lag if uplink["behind"] else "up to date"


def check_uplink(settings: UplinkSettings, report: DaemonReport) -> Iterator[Check]:
    """Check that the server takes what the daemon sends, if there is an uplink."""
    uplink = report.status.get("uplink")
    if uplink is not None:
        finding = f"{uplink['url']}: {describe_uplink(uplink)}"
        is_good = uplink["problem"] is None and not uplink.get("refused_sessions")
        yield Check("uplink", is_good, finding, KEPT)
    elif settings.url is not None and report.runs:
        yield Check("uplink", False, "the daemon does not use uplink.url", RESTART)
    elif settings.url is not None:
        yield Check("uplink", True, f"{settings.url}: {describe_receive(settings.receive)}")
