"""Our entry in a client's list of MCP servers: added next to all others, and removed alone."""

import os
from pathlib import Path

import msgspec

from brimline.agents import get_agent
from brimline.agents.transcripts.source import Places
from brimline.errors import InvalidSettings
from brimline.install.client_setting import (
    RecordFile,
    WrittenValue,
    has_value,
    plan_restored,
    plan_value,
    restore_value,
    write_value,
)
from brimline.install.created_files import MCP_RECORDS
from brimline.install.install import SetupOptions
from brimline.install.plan import Change
from brimline.install.shared_file import read_if_exists

ADDED, REMOVED = "the MCP server `brimline`", "the MCP server `brimline` is removed"
CHANGED = "another MCP server `brimline` is there now: it stays"
UNCHANGED = "the MCP server is already set up"


def mcp_records(state: Path) -> RecordFile[WrittenValue]:
    return RecordFile(state / MCP_RECORDS, WrittenValue)


def wanted_entry(
    agent: str, places: Places, options: SetupOptions, now: float
) -> WrittenValue | None:
    """Return our entry in an agent's list; None if its client has none."""
    own = get_agent(agent)
    spec = own.install_spec.mcp if own.has_hooks else None
    place = spec and spec.place(places, options.scope, options.cwd)
    if spec is None or place is None:
        return None
    return WrittenValue(
        agent=agent,
        path=os.path.abspath(place.file),
        key=place.key,
        value=spec.server(options.program.command("mcp", agent)),
        at=now,
        dialect=place.dialect,
    )


def add_entry(wanted: WrittenValue, state: Path, dry_run: bool) -> Change:
    """Return the addition of an entry, which is written unless it is a dry run."""
    path, records = Path(wanted.path), mcp_records(state)
    try:
        before = read_if_exists(path)
        if has_value(wanted, before):
            return Change(wanted.agent, UNCHANGED, path, before, before)
        earlier = records.find(wanted)  # it ran another launcher
        cleared = plan_restored(earlier, before) if earlier else before
        after = plan_value(wanted, cleared)
        if not dry_run:
            if earlier is not None:
                restore_value(records, earlier)
            write_value(records, wanted)
    except InvalidSettings as error:
        return Change(wanted.agent, "not changed", path, reason=str(error))
    return Change(wanted.agent, ADDED, path, before, after, pending=True)


def remove_entry(wanted: WrittenValue, state: Path, dry_run: bool) -> Change | None:
    """Return the removal of an entry, which is written unless it is a dry run; None without one."""
    path, records = Path(wanted.path), mcp_records(state)
    try:
        before, record = read_if_exists(path), records.find(wanted)
        if record is None and not has_value(wanted, before):
            return None
        # Without its record it is ours by its launcher.
        record = record or msgspec.structs.replace(
            wanted, added=len(wanted.key), inserted=None if wanted.dialect else ""
        )
        after = plan_restored(record, before)
        if not dry_run:
            restore_value(records, record)
    except InvalidSettings as error:
        return Change(wanted.agent, "not changed", path, reason=str(error))
    return Change(wanted.agent, REMOVED if after != before else CHANGED, path, before, after,
                  pending=True)  # fmt: skip
