"""`brimline setup`: our hooks and status line in the agents' settings, or out of them again."""

import argparse
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

from brimline.agents import (
    agent_names,
    agents_present,
    agents_with_hooks,
    display_name,
    get_agent,
)
from brimline.agents.hook_command import HttpTarget
from brimline.cli.arguments import add_flag, add_json, parse_agent
from brimline.cli.background import require_daemon
from brimline.cli.client_versions import find_version, find_versions_for_hooks, take_warnings
from brimline.cli.context import CommandContext, emit_json, print_problems
from brimline.cli.session_choice import expand_id
from brimline.cli.setup_changes import (
    SetupShown,
    apply_change,
    change_lines,
    change_service,
    describe_change,
    local_service,
)
from brimline.daemon.secret import derive_token, read_secret
from brimline.daemon.sockets import HOST, read_port
from brimline.errors import InvalidRequest, InvalidSettings
from brimline.install.client_setting import load_records, restore_setting
from brimline.install.install import SetupOptions
from brimline.install.installed import find_installed, remove_unused_launcher
from brimline.install.launcher import find_cache, local_program, write_launcher
from brimline.install.mcp_entry import add_entry, remove_entry, wanted_entry
from brimline.install.plan import Change, plan, plan_setup_file
from brimline.install.setup_file import check_session_id, parent_file
from brimline.settings import PROJECT_FILE, describe_receive, load, user_file

NONE = "brimline: no agent found\nhint: name the agent to set up: `brimline setup claude`"
CACHED = """\
brimline: cannot set up agents from {cache}: a cache is cleared, and hooks would stop working
hint: run `uv tool install brimline` or `pipx install brimline`, then `brimline setup`"""
GONE = "Brimline is not installed here."
RESTORED_ELSEWHERE = "another point of its compaction is set there now: it stays"
DRY = "Dry run: nothing was changed."
NEXT = "Start an agent, then check with `brimline serve --status`."
BY_HAND = "Autostart is off: start the daemon with `brimline serve --background`."
LEFT = "The service is still installed: `brimline setup --service --remove` removes it."


USAGE = "brimline setup [OPTIONS] [AGENT ...]"


def add_arguments(to: argparse.ArgumentParser) -> None:
    to.usage = USAGE
    help_text = "agents to set up (default: all installed)"
    to.add_argument("agents", type=parse_agent, nargs="*", metavar="AGENT", help=help_text)
    add_flag(to, "--dry-run", "show the changes without writing them")
    add_flag(to, "--remove", "remove Brimline's entries")
    help_text = "settings to change: the user's (default) or the current project's"
    to.add_argument("--scope", choices=("user", "project"), default="user", help=help_text)
    help_text = "how Claude Code's hooks reach the daemon (default: unchanged, else command)"
    to.add_argument("--transport", choices=("command", "http"), help=help_text)
    help_text = "how to combine with your own status line (default: unchanged, else append)"
    to.add_argument("--status-line", choices=("prepend", "append", "replace"), help=help_text)
    help_text = "let hooks start the daemon if none runs (default: from the settings, else yes)"
    to.add_argument("--autostart", action=argparse.BooleanOptionalAction, help=help_text)
    add_flag(to, "--mcp", "add the MCP server, too; with --remove: remove it alone")
    add_flag(to, "--service", "run the daemon as a systemd or launchd service")
    help_text = "session to notify about all sessions, or this project's (--scope project)"
    to.add_argument("--parent", nargs="?", const="", metavar="SESSION", help=help_text)
    add_json(to, "diffs")


def run(context: CommandContext, options: argparse.Namespace) -> int:
    """Show what changes in each file, and write it."""
    if not options.remove:
        require_daemon()  # hooks would start none
    agents = _agents(context, options)
    if refusal := _refusal(options, agents):
        print(refusal, file=sys.stderr)
        if options.json:
            emit_json([])
        return 1
    changes = list(_changes(context, options, agents))
    if options.json:
        emit_json(changes)
    else:
        _print(context, options, changes)
    return 1 if any(one.problem for one in changes) else 0


def _refusal(options: argparse.Namespace, agents: list[str]) -> str | None:
    """Return why nothing can be set up."""
    if options.remove:
        return None
    if not (agents or _is_other_change(options)):
        return NONE
    cache = find_cache(Path(sys.executable))
    return CACHED.format(cache=cache) if cache and (agents or options.service) else None


def _agents(context: CommandContext, options: argparse.Namespace) -> list[str]:
    """Return the named agents; else all installed ones, unless only something else is changed."""
    named = [get_agent(agent).name for agent in options.agents]
    if without := next((agent for agent in named if not get_agent(agent).has_hooks), None):
        name, hint = display_name(without), "Its sessions are read without a setup."
        raise InvalidRequest(f"Brimline has no hooks for {name}", hint)
    if named or _is_other_change(options):
        return named
    present = agents_with_hooks(agents_present(context.places))
    return [*present, *_leftover_agents(context, options, present)] if options.remove else present


def _leftover_agents(
    context: CommandContext, options: argparse.Namespace, present: list[str]
) -> Iterator[str]:
    """Yield agents that are no longer installed but still have files or entries of ours."""
    setup = setup_options(context, options)
    # A removal that was killed between a file and its manifest entry has left the entry.
    for agent in agent_names():
        changes = plan([agent], context.places, setup)
        if agent not in present and any(change.pending for change in changes):
            yield agent


def _is_other_change(options: argparse.Namespace) -> bool:
    return options.service or options.parent is not None


def _changes(
    context: CommandContext, options: argparse.Namespace, agents: list[str]
) -> Iterator[SetupShown]:
    setup = setup_options(context, options)
    write = describe_change if options.dry_run else apply_change
    if options.mcp and options.remove:
        yield from _removed_servers(context, setup, agents, options.dry_run)
        return
    if options.parent is not None:
        yield write(_parent(context, options, setup))
    if options.service:
        yield change_service(context, setup.state, options.remove, options.dry_run)
    if options.remove:  # first: it is in a file that has hooks, too
        yield from _removed_servers(context, setup, agents, options.dry_run)
    if options.dry_run or not agents:
        yield from map(write, plan(agents, context.places, setup))
        yield from _added_servers(context, options, setup, agents)
        return
    if not options.remove and write_launcher(setup.program):
        yield _launcher_row(setup)
    yield from map(write, plan(agents, context.places, setup))
    yield from _added_servers(context, options, setup, agents)
    if options.remove:
        yield from _restored_settings(context, agents)
        with suppress(InvalidSettings):  # a launcher that is left does no harm
            remove_unused_launcher(context.places, setup)
    else:
        write_launcher(setup.program)  # another process may have removed it as unused


def _added_servers(
    context: CommandContext, options: argparse.Namespace, setup: SetupOptions, agents: list[str]
) -> Iterator[SetupShown]:
    """Add the MCP server to the clients that take one, if it is asked for."""
    for agent in agents if options.mcp and not options.remove else ():
        if entry := wanted_entry(agent, context.places, setup, context.now):
            change = add_entry(entry, setup.state, options.dry_run)
            yield describe_change(change, written=change.pending and not options.dry_run)
        else:
            note = f"{display_name(agent)} has no list of MCP servers that setup can change"
            yield SetupShown(agent, None, note, False, None, None, (), "")


def _removed_servers(
    context: CommandContext, setup: SetupOptions, agents: list[str], dry_run: bool
) -> Iterator[SetupShown]:
    for agent in agents:
        entry = wanted_entry(agent, context.places, setup, context.now)
        if entry and (change := remove_entry(entry, setup.state, dry_run)):
            yield describe_change(change, written=change.pending and not dry_run)


def _restored_settings(context: CommandContext, agents: Iterable[str]) -> Iterator[SetupShown]:
    """Restore what `compact-at` wrote into these agents' settings."""
    for record in load_records(_state(context)):
        if record.agent in agents:
            restored = restore_setting(_state(context), record)
            what = "the point of its compaction is restored" if restored else RESTORED_ELSEWHERE
            yield SetupShown(record.agent, record.path, what, restored, None, None, (), "")


def _launcher_row(setup: SetupOptions) -> SetupShown:
    what = "it runs this installation now"
    return SetupShown("launcher", setup.program.launcher, what, True, None, None, (), "")


def _parent(context: CommandContext, options: argparse.Namespace, setup: SetupOptions) -> Change:
    session = None if options.remove else expand_id(context, check_session_id(options.parent))
    whose = "all your sessions" if options.scope == "user" else "this project's sessions"
    what = "no parent session" if session is None else f"session {session} is notified of {whose}"
    user = user_file(context.places.env, context.places.home)
    place = user if options.scope == "user" else setup.cwd / PROJECT_FILE
    path = Path(os.path.abspath(place))
    return plan_setup_file(parent_file(path, setup.state, session), what)


def _print(context: CommandContext, options: argparse.Namespace, changes: list[SetupShown]) -> None:
    for one in changes:
        print("\n".join(change_lines(context, one)), end="\n\n")
    if not changes:
        print(GONE)
    # Those of the daemon: a project's file does not apply to it.
    uplink = load(context.places.env, context.places.home, Path("/")).uplink
    if uplink.url is not None and not options.remove:
        print(f"The uplink {describe_receive(uplink.receive)}.")
    if options.dry_run:
        print(DRY)
    elif options.remove:
        if not _is_other_change(options) and local_service(context, _state(context)).path.exists():
            print(LEFT)
    elif written := [one.agent for one in changes if one.written and one.agent in agent_names()]:
        if tested := _tested_versions(written):
            print(f"Tested up to {', '.join(tested)}.")
        print(NEXT if _starts_daemon(context, options, written) else f"{BY_HAND}\n{NEXT}")
        used = {agent: find_version(agent, context.places) for agent in written}
        print_problems(take_warnings(_state(context), used).values())


def _tested_versions(agents: Iterable[str]) -> list[str]:
    """Return the newest tested version of each client, with its name."""
    return [
        f"{display_name(agent)} {tested}"
        for agent in agents
        if (tested := get_agent(agent).capabilities.tested_version)
    ]


def _starts_daemon(context: CommandContext, options: argparse.Namespace, agents: list[str]) -> bool:
    setup = setup_options(context, options)
    installed = (find_installed(agent, context.places, setup, options.scope) for agent in agents)
    return context.settings.daemon.autostart and any(one.autostart for one in installed)


def _state(context: CommandContext) -> Path:
    return Path(os.path.abspath(context.state))


def setup_options(
    context: CommandContext, options: argparse.Namespace | None = None
) -> SetupOptions:
    """Return the options of setup; without arguments, those of a check."""
    state = _state(context)
    known = SetupOptions(
        program=local_program(state),
        state=state,
        cwd=Path.cwd(),
        versions=find_versions_for_hooks(context.places),
    )
    if options is None:
        return known
    return msgspec.structs.replace(
        known,
        remove=options.remove,
        scope=options.scope,
        mode=options.status_line,
        transport=options.transport,
        http_target=_http_target(state),
        autostart=options.autostart,
        default_autostart=context.settings.daemon.autostart,
    )


def _http_target(state: Path) -> HttpTarget | None:
    """Return where HTTP hooks go: where the daemon is, or was last; None if there was none."""
    secret, port = read_secret(state), read_port(state)
    if secret is None or port is None:
        return None
    return HttpTarget(f"http://{HOST}:{port}", derive_token(secret, "hooks"))
