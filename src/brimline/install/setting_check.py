"""Whether the clients heed the settings that `compact-at` wrote, by their sessions since then."""

from pathlib import Path

import msgspec

from brimline.agents.transcripts.source import Places
from brimline.errors import InvalidSettings
from brimline.install.client_setting import SettingRecord, load_records
from brimline.sessions.compaction_check import (
    CompactionCheck,
    CompactionVerdict,
    check_compactions,
    read_sessions,
)


class CheckedSetting(msgspec.Struct, frozen=True):
    """A client's setting that moves its compaction to `limit`, and what its sessions show of it."""

    agent: str
    model: str
    limit: int
    window: int
    at: float
    verdict: CompactionVerdict
    text: str


class SettingChecks(msgspec.Struct, frozen=True):
    """The settings that `compact-at` wrote; `problem` is why these cannot be read."""

    settings: list[CheckedSetting] = []
    problem: str | None = None


def check_setting(record: SettingRecord, places: Places, cache: Path) -> CompactionCheck:
    """Return whether the client heeds a value, by its sessions since then."""
    sessions = read_sessions(places, record.agent, record.at, cache)
    return check_compactions(sessions, record.model, record.limit, record.window, record.at)


def check_settings(state: Path, places: Places, cache: Path) -> SettingChecks:
    """Check every setting that is recorded in the state folder."""
    try:
        records = load_records(state)
    except InvalidSettings as error:
        return SettingChecks(problem=str(error))
    return SettingChecks([_checked(each, check_setting(each, places, cache)) for each in records])


def _checked(record: SettingRecord, check: CompactionCheck) -> CheckedSetting:
    return CheckedSetting(
        agent=record.agent,
        model=record.model,
        limit=record.limit,
        window=record.window,
        at=record.at,
        verdict=check.verdict,
        text=check.text,
    )
