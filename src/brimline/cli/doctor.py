"""`brimline doctor`: checks hooks, daemon and store, and suggests fixes."""

import argparse
import sys
from collections.abc import Iterator

from brimline._version import __version__
from brimline.agents import agents_present, display_name
from brimline.cli import background, service
from brimline.cli.arguments import add_json
from brimline.cli.context import Context, emit_json
from brimline.cli.daemon_requests import request
from brimline.cli.doctor_checks import (
    RESTART,
    START,
    Check,
    DaemonReport,
    daemon,
    events,
    hooks,
    launcher,
    limits,
    spool,
    status_line,
    store,
    store_problems,
    transcript_format,
    version,
)
from brimline.cli.setup import setup_options
from brimline.errors import BrimlineError, InvalidSettings, NotRunning
from brimline.setup.install import SetupOptions
from brimline.setup.installed import InstalledHooks, find_installed
from brimline.terminal.text import Shade, colourize, strip_control

SHADES: dict[bool, Shade] = {True: "low", False: "high"}


def add_arguments(to: argparse.ArgumentParser) -> None:
    add_json(to)


def run(context: Context, options: argparse.Namespace) -> int:
    """Check everything; the exit code is 1 if a check fails."""
    checks = list(_checks(context))
    if options.json:
        emit_json(checks)
    else:
        for check in checks:
            print("\n".join(_lines(context, check)))
    return 0 if all(check.well for check in checks) else 1


def _lines(context: Context, check: Check) -> Iterator[str]:
    mark = colourize("ok" if check.well else "!!", SHADES[check.well], context.colour)
    yield f"{mark}  {check.about:<14} {strip_control(check.told)}"
    if check.hint and not check.well:
        yield f"    {'':<14} {check.hint}"


def _checks(context: Context) -> Iterator[Check]:
    setup = setup_options(context)
    agents = agents_present(context.places)
    report = _ask_daemon(context)
    yield _brimline(setup)
    names = ", ".join(display_name(agent) for agent in agents)
    yield Check("agents", bool(agents), names or "none found", "Start one, or `brimline demo`.")
    installed = {agent: _installed_hooks(context, agent, setup) for agent in agents}
    for agent, places in installed.items():
        yield hooks(context, agent, places, report)
        yield from status_line(places)
        yield from version(agent, report)
        yield from transcript_format(context, agent)
    everywhere = [one for places in installed.values() for one in places]
    yield from launcher(setup.program, everywhere)
    yield from limits(context, agents)
    yield from daemon(report, context.now)
    yield from events(report, context.now)
    service = _service(context, setup, report)
    yield service
    yield _autostart(context, everywhere, report)
    yield store(setup.state)
    yield from store_problems(setup.state, context.now)
    yield spool(setup.state)


def _brimline(setup: SetupOptions) -> Check:
    client = "the compiled hook client" if setup.program.compiled else "no compiled client"
    return Check("brimline", True, f"{__version__}, Python {sys.version.split()[0]}, {client}")


def _installed_hooks(context: Context, agent: str, setup: SetupOptions) -> list[InstalledHooks]:
    return [find_installed(agent, context.places, setup, scope) for scope in ("user", "project")]


def _ask_daemon(context: Context) -> DaemonReport:
    try:
        status = request(context, "GET", background.DAEMON_PATH)
        views = request(context, "GET", "/v1/sessions")
    except BrimlineError as error:
        hint = START if type(error) is NotRunning else error.hint
        return DaemonReport(problem=str(error.args[0]), hint=hint or RESTART)
    return DaemonReport(status, [view["session"] for view in views])


def _service(context: Context, setup: SetupOptions, report: DaemonReport) -> Check:
    try:
        local = service.local_service(context, setup.state)
    except InvalidSettings as error:
        return Check("service", True, f"not supported: {error}")
    if not local.path.exists():
        return Check("service", True, "none; `brimline setup --service` installs one")
    if service.is_active(context, local):
        return Check("service", True, f"{local.manager} runs it")
    finding = f"installed, but {local.manager} does not run it"
    return Check("service", report.runs, finding, "`brimline setup --service` starts it.")


def _autostart(context: Context, installed: list[InstalledHooks], report: DaemonReport) -> Check:
    if not context.settings.daemon.autostart:
        return Check("autostart", True, "disabled in the settings")
    if any(one.autostart for one in installed):
        return Check("autostart", True, "on: hooks start the daemon if none runs")
    finding = "off: no installed hook starts the daemon"
    return Check("autostart", report.runs, finding, "`brimline setup --autostart` turns it on.")
