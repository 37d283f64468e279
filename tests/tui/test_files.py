"""Without a daemon: the same sessions from the agents' files."""

import time
from pathlib import Path

import pytest

from brimline.agents.transcripts.source import Places
from brimline.context.window import NO_OVERRIDES
from brimline.errors import UnknownSession
from brimline.sessions.status import survey_sessions
from brimline.settings import Settings
from brimline.tui.files import TranscriptFiles
from drifted_homes import write_home
from server.filled_session import write_filled_session
from sessions.machine import NOON, Machine, call, compaction, subagent_fields

from .app_driver import AppDriver, drive, files_in, watch


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """A machine with a session that was compacted, its subagent, and another session."""
    filled = Machine(tmp_path)
    filled.session("s1", call("m1", 120_000), compaction(5), call("m2", 54_000, second=9))
    filled.subagent("s1", "a1", call("m3", 20_000, second=7, **subagent_fields("a1")))
    filled.session("s2", call("n1", 150_000, sessionId="s2", cwd="/srv/other"))
    return filled


def files(machine: Machine, settings: Settings | None = None) -> TranscriptFiles:
    return TranscriptFiles(
        machine.places, settings or Settings(), machine.cache, ("claude",), include_old=True
    )


def test_figures_equal_those_of_status(machine: Machine) -> None:
    sessions = survey_sessions(
        machine.places, ["claude"], None, NO_OVERRIDES, machine.cache
    ).sessions
    views = files(machine).read_views(NOON)
    assert len(views) == len(sessions) == 2
    for view, glance in zip(views, sessions, strict=True):
        assert (view.session.id, view.session.project) == (glance.session, glance.project)
        assert view.session.title == glance.title
        for thread, row in zip(view.threads, glance.threads, strict=True):
            reading = row.reading
            assert (thread.thread, thread.sent, thread.held) == (
                row.thread, reading.sent, reading.held
            )  # fmt: skip
            assert (thread.percent, thread.percent_of_limit, thread.cycle) == (
                reading.percent, reading.percent_of_limit, row.cycle
            )  # fmt: skip
        assert (view.unread, view.handoff) == (None, None)


def test_detail_names_a_file_that_is_not_understood(tmp_path: Path) -> None:
    write_home("claude", tmp_path, "kinds unknown")
    places, cache = Places(home=tmp_path, env={}), tmp_path / "cache"
    read = TranscriptFiles(places, Settings(), cache, ("claude",), include_old=True)
    (view,) = read.read_views(NOON)
    problem = read.read_detail(view).view.session.problem
    assert "does not understand this version of Claude Code" in (problem or "")


def test_levels_of_the_settings_are_in_percent_of_the_window(machine: Machine) -> None:
    for settings, levels in (
        (Settings(), (50.0, 65.0)),
        (Settings(limits={"claude": 100_000}), (30.0, 39.0)),
        (Settings(levels=(40_000.0,), levels_of="tokens"), (20.0,)),
        (Settings(levels_by={"claude": (30.0,)}), (30.0,)),
    ):
        assert [view.levels for view in files(machine, settings).read_views(NOON)] == [levels] * 2


def test_detail_has_calls_and_compactions(machine: Machine) -> None:
    provider = files(machine)
    view = next(row for row in provider.read_views(NOON) if row.session.id == "s1")
    detail = provider.read_detail(view)
    own = [call for call in detail.timeline.calls if call.thread == "main"]
    assert [(call.cycle, call.call) for call in own] == [(0, "m1"), (1, "m2")]
    assert [
        (provider.cycle, provider.trigger, provider.before)
        for provider in detail.timeline.compactions
    ] == [(0, "auto", 167_000)]
    assert detail.timeline.messages is None
    main = detail.view.main
    assert main is not None
    assert (main.calls, main.cycle, main.peak_sent) == (2, 1, 120_000)


def test_explanation_adds_up(tmp_path: Path) -> None:
    written = Machine(tmp_path)
    write_filled_session(written.home, "filled")
    provider = files(written)
    (view,) = provider.read_views(time.time())
    (main,) = provider.read_explanation(view).threads
    assert main.sent == sum(each.tokens for each in main.categories) + main.unexplained
    assert main.waste[0].advice.startswith("Read /project/src/module_")


def test_explanation_without_a_daemon_is_read_from_the_files(tmp_path: Path) -> None:
    write_filled_session(tmp_path / "home", "filled")

    async def test(app: AppDriver) -> None:
        await app.shows("/project")
        await app.press("enter", "e")
        await app.shows("system and tools")
        (tmp_path / "home/.claude/projects/-project/filled.jsonl").unlink()
        await app.press("escape")

    drive(watch(None, tmp_path), test)


def test_deleted_session_raises(machine: Machine) -> None:
    provider = files(machine)
    view = next(row for row in provider.read_views(NOON) if row.session.id == "s2")
    (machine.projects / "-project" / "s2.jsonl").unlink()
    with pytest.raises(UnknownSession):
        provider.read_detail(view)


def test_screen_without_a_daemon_follows_transcripts_and_refuses_messages(
    machine: Machine, tmp_path: Path, unused_socket: Path
) -> None:
    async def test(app: AppDriver) -> None:
        await app.shows("◌ no daemon, reading transcripts")
        await app.shows("75.0% high")
        path = machine.projects / "-project" / "s2.jsonl"
        with path.open("ab") as file:
            file.write(call("n2", 190_000, second=30, sessionId="s2", cwd="/srv/other"))
        await app.shows("95.0% at limit")
        await app.press("enter")
        await app.shows("messages: unknown without the daemon")
        await app.shows("2 calls")
        await app.press("m", "x", "enter")
        await app.shows("not sent: the daemon is not running")

    drive(watch(unused_socket, tmp_path), test, (100, 40))


def test_empty_screen_says_what_to_do(tmp_path: Path) -> None:
    async def test(app: AppDriver) -> None:
        await app.shows("`brimline setup` installs Brimline's hooks")
        await app.press("j", "enter", "q")

    assert files_in(tmp_path).read_views(NOON) == []
    drive(watch(None, tmp_path), test)
