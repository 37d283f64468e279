"""Without a daemon: the same sessions out of the agents' files."""

from pathlib import Path

import pytest

from brimline.errors import UnknownSession
from brimline.settings import Settings
from brimline.survey.status import survey_sessions
from brimline.tui.files import TranscriptFiles
from brimline.windows import NO_OVERRIDES
from survey.machine import NOON, Machine, call, compaction, subagent_fields

from .app_driver import Seen, files_in, look_at, watch


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """A machine with a session that was compacted, its subagent, and another session."""
    made = Machine(tmp_path)
    made.session("s1", call("m1", 120_000), compaction(5), call("m2", 54_000, second=9))
    made.subagent("s1", "a1", call("m3", 20_000, second=7, **subagent_fields("a1")))
    made.session("s2", call("n1", 150_000, sessionId="s2", cwd="/srv/other"))
    return made


def files(machine: Machine, settings: Settings | None = None) -> TranscriptFiles:
    """Its files."""
    return TranscriptFiles(
        machine.places, settings or Settings(), machine.cache, ("claude",), include_old=True
    )


def test_figures_equal_those_of_status(machine: Machine) -> None:
    """The figures equal those of `brimline status`."""
    found = survey_sessions(machine.places, ["claude"], None, NO_OVERRIDES, machine.cache).sessions
    views = files(machine).read_views(NOON)
    assert len(views) == len(found) == 2
    for view, glance in zip(views, found, strict=True):
        assert (view.session.id, view.session.project) == (glance.session, glance.project)
        for thread, row in zip(view.threads, glance.threads, strict=True):
            reading = row.reading
            assert (thread.thread, thread.sent, thread.held) == (
                row.thread, reading.sent, reading.held
            )  # fmt: skip
            assert (thread.percent, thread.percent_of_limit, thread.cycle) == (
                reading.percent, reading.percent_of_limit, row.cycle
            )  # fmt: skip
        assert (view.unread, view.handoff) == (None, None)


def test_levels_of_the_settings_apply(machine: Machine) -> None:
    """Levels are in percent of the window, whatever the settings measure them by."""
    for settings, levels in (
        (Settings(), (50.0, 65.0)),
        (Settings(levels=(40_000.0,), levels_of="tokens"), (20.0,)),
        (Settings(levels_by={"claude": (30.0,)}), (30.0,)),
    ):
        assert [view.levels for view in files(machine, settings).read_views(NOON)] == [levels] * 2


def test_detail_has_calls_and_compactions(machine: Machine) -> None:
    """A session read whole: every call in its cycle, the compaction, and what a glance misses."""
    made = files(machine)
    view = next(one for one in made.read_views(NOON) if one.session.id == "s1")
    detail = made.read_detail(view)
    own = [call for call in detail.timeline.calls if call.thread == "main"]
    assert [(call.cycle, call.call) for call in own] == [(0, "m1"), (1, "m2")]
    assert [(made.cycle, made.trigger, made.before) for made in detail.timeline.compactions] == [
        (0, "auto", 167_000)
    ]
    assert detail.timeline.messages is None
    main = detail.view.main
    assert main is not None
    assert (main.calls, main.cycle, main.peak_sent) == (2, 1, 120_000)


def test_deleted_session_raises(machine: Machine) -> None:
    """A session whose transcript was deleted is reported."""
    made = files(machine)
    view = next(one for one in made.read_views(NOON) if one.session.id == "s2")
    (machine.projects / "-project" / "s2.jsonl").unlink()
    with pytest.raises(UnknownSession):
        made.read_detail(view)


def test_screen_shows_transcripts_without_a_daemon(
    machine: Machine, tmp_path: Path, nobody: Path
) -> None:
    """Without a daemon the screen follows the transcripts and refuses to send messages."""

    async def test(seen: Seen) -> None:
        await seen.shows("◌ no daemon, reading transcripts")
        await seen.shows("75.0% medium")
        path = machine.projects / "-project" / "s2.jsonl"
        with path.open("ab") as file:
            file.write(call("n2", 190_000, second=30, sessionId="s2", cwd="/srv/other"))
        await seen.shows("95.0% at limit")
        await seen.press("enter")
        await seen.shows("messages: unknown without the daemon")
        await seen.shows("2 calls")
        await seen.press("m", "x", "enter")
        await seen.shows("not sent: the daemon is not running")

    look_at(watch(nobody, tmp_path), test, (100, 40))


def test_empty_screen_says_what_to_do(tmp_path: Path) -> None:
    """No daemon, no files: what to do next."""

    async def test(seen: Seen) -> None:
        await seen.shows("`brimline setup` installs Brimline's hooks")
        await seen.press("j", "enter", "q")

    assert files_in(tmp_path).read_views(NOON) == []
    look_at(watch(None, tmp_path), test)
