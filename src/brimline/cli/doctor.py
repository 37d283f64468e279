"""`brimline doctor`: checks hooks, daemon and store, and suggests fixes."""

import argparse
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from brimline._version import __version__
from brimline.agents import agents_present, display_name, get_agent
from brimline.agents.install_spec import Scope
from brimline.cli import background
from brimline.cli.arguments import add_json
from brimline.cli.client_versions import find_version, take_warnings
from brimline.cli.context import CommandContext, emit_json
from brimline.cli.daemon_requests import request
from brimline.cli.doctor_checks import (
    RESTART,
    START,
    Check,
    DaemonReport,
    agent_packages,
    check_uplink,
    compaction_settings,
    daemon,
    events,
    hooks,
    launcher,
    limit_drifts,
    limits,
    not_set_up,
    spool,
    status_line,
    store,
    store_problems,
    transcript_format,
    version,
)
from brimline.cli.setup import setup_options
from brimline.cli.setup_changes import is_active, local_service
from brimline.errors import BrimlineError, InvalidSettings, NotRunning
from brimline.install.install import SetupOptions
from brimline.install.installed import InstalledHooks, find_installed
from brimline.settings import load
from brimline.terminal.text import Shade, colourize, strip_control

MARKS: dict[str, Shade] = {"ok": "low", "!!": "high", "--": "dim"}


def add_arguments(to: argparse.ArgumentParser) -> None:
    add_json(to)


def run(context: CommandContext, options: argparse.Namespace) -> int:
    """Check everything; the exit code is 1 if something that is set up does not work."""
    checks = list(_checks(context))
    if options.json:
        emit_json(checks)
    else:
        width = max(len(check.name) for check in checks)
        for check in checks:
            print("\n".join(_lines(context, check, width)))
    return 0 if all(check.well for check in checks) else 1


def _lines(context: CommandContext, check: Check, width: int) -> Iterator[str]:
    mark = "--" if check.optional else "ok" if check.well else "!!"
    shown = colourize(mark, MARKS[mark], context.colour)
    yield f"{shown}  {check.name:<{width}} {strip_control(check.finding)}"
    if check.hint and mark != "ok":
        yield f"    {'':<{width}} {check.hint}"


def _checks(context: CommandContext) -> Iterator[Check]:
    setup = setup_options(context)
    agents = agents_present(context.places)
    report = _ask_daemon(context)
    yield _brimline(setup)
    names = ", ".join(display_name(agent) for agent in agents)
    yield Check("agents", True, names or "none found", "Start one, or `brimline demo`.", not agents)
    installed = {agent: _installed_hooks(context, agent, setup) for agent in agents}
    used = {
        agent: report.version_of(agent) or find_version(agent, context.places) for agent in agents
    }
    warnings = take_warnings(setup.state, used)
    for agent, places in installed.items():
        if places:
            yield hooks(context, agent, places, report)
        yield from status_line(places)
        has_hooks = any(one.events for one in places)
        yield version(agent, used[agent], has_hooks, warnings.get(agent))
        yield from transcript_format(context, agent)
    everywhere = [one for places in installed.values() for one in places]
    yield from agent_packages()
    yield from launcher(setup.program, everywhere)
    yield from limits(context, agents)
    yield from limit_drifts(context)
    yield from compaction_settings(context)
    yield from daemon(report, context.now, _needs_daemon(context, setup, everywhere))
    yield from events(report, context.now)
    # Those of the daemon: a project's file does not apply to it.
    own_settings = load(context.places.env, context.places.home, Path("/"))
    yield from check_uplink(own_settings.uplink, report)
    yield _service(context, setup, report)
    yield _autostart(context, everywhere)
    yield store(setup.state)
    yield from store_problems(setup.state, context.now)
    yield spool(setup.state, report.runs)


def _brimline(setup: SetupOptions) -> Check:
    client = "the compiled hook client" if setup.program.compiled else "no compiled client"
    return Check("brimline", True, f"{__version__}, Python {sys.version.split()[0]}, {client}")


def _installed_hooks(
    context: CommandContext, agent: str, setup: SetupOptions
) -> list[InstalledHooks]:
    if not get_agent(agent).has_hooks:
        return []
    has_project_file = get_agent(agent).install_spec.project_file is not None
    scopes: tuple[Scope, ...] = ("user", "project") if has_project_file else ("user",)
    return [find_installed(agent, context.places, setup, scope) for scope in scopes]


def _ask_daemon(context: CommandContext) -> DaemonReport:
    try:
        status = request(context, "GET", background.DAEMON_PATH)
        views = request(context, "GET", "/v1/sessions")
    except BrimlineError as error:
        is_stopped = type(error) is NotRunning
        hint = START if is_stopped else error.hint
        return DaemonReport(reason=str(error.args[0]), hint=hint or RESTART, is_stopped=is_stopped)
    return DaemonReport(status, [view["session"] for view in views])


def _service(context: CommandContext, setup: SetupOptions, report: DaemonReport) -> Check:
    try:
        local = local_service(context, setup.state)
    except InvalidSettings as error:
        return Check("service", True, f"not supported: {error}")
    if not local.path.exists():
        return not_set_up("service", "none", "`brimline setup --service` installs one.")
    if is_active(context, local):
        return Check("service", True, f"{local.manager} runs it")
    finding = f"installed, but {local.manager} does not run it"
    return Check("service", report.runs, finding, "`brimline setup --service` starts it.")


def _autostart(context: CommandContext, installed: list[InstalledHooks]) -> Check:
    if not context.settings.daemon.autostart:
        hint = "`[daemon] autostart = true`, or BRIMLINE_AUTOSTART=1, turns it on."
        return not_set_up("autostart", "disabled in the settings", hint)
    if any(one.autostart for one in installed):
        return Check("autostart", True, "on: hooks start the daemon if none runs")
    finding = "off: no installed hook starts the daemon"
    return not_set_up("autostart", finding, "`brimline setup --autostart` turns it on.")


def _needs_daemon(
    context: CommandContext, setup: SetupOptions, installed: list[InstalledHooks]
) -> bool:
    """Return whether a daemon must run: hooks that do not start it, or a service, are installed."""
    starts = context.settings.daemon.autostart and any(one.autostart for one in installed)
    with suppress(InvalidSettings):
        if local_service(context, setup.state).path.exists():
            return True
    return not starts and any(one.events for one in installed)
