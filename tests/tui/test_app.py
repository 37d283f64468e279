"""The application: its screens, keys and updates."""

from pathlib import Path

import pytest

from .app_driver import Seen, look_at, watch
from .daemon import FakeDaemon
from .sample_views import NOW, Json, thread, view

pytestmark = pytest.mark.slow

FULLEST_FIRST = [
    "~/crawler", "~/importer", "~/shop-backend", "~/billing", "~/ledger", "~/docs-site",
    "~/mobile-app",
]  # fmt: skip


def is_selected(lines: list[str], project: str) -> bool:
    """Whether this project's session is selected."""
    return any("▸" in line and project in line for line in lines)


def test_fullest_session_is_first(daemon: FakeDaemon, tmp_path: Path) -> None:
    """The fullest session is on top, unknown ones are last, ended ones are hidden."""

    async def test(seen: Seen) -> None:
        await seen.shows("● live")
        await seen.until(lambda _: seen.projects() == FULLEST_FIRST)
        assert "7 of 8 sessions" in seen.lines[0]

    look_at(watch(daemon.socket, tmp_path), test)


def test_subagents_are_below_their_session(daemon: FakeDaemon, tmp_path: Path) -> None:
    """A session's subagents follow its own lines."""

    async def test(seen: Seen) -> None:
        lines = await seen.until(lambda lines: any("└ plan" in line for line in lines))
        at = next(number for number, line in enumerate(lines) if "~/shop-backend" in line)
        assert "76.0% medium" in lines[at + 1]
        assert "└ explore-tests" in lines[at + 2]
        assert "32.0% low" in lines[at + 2]
        assert "└ plan" in lines[at + 3]

    look_at(watch(daemon.socket, tmp_path), test)


def test_keys_move_the_selection(daemon: FakeDaemon, tmp_path: Path) -> None:
    """j, k, G and g move the selection; Enter opens, Esc goes back."""

    async def test(seen: Seen) -> None:
        async def at(project: str) -> None:
            await seen.until(lambda lines: is_selected(lines, project))

        await at("~/crawler")
        await seen.press("j")
        await at("~/importer")
        await seen.press("j", "k", "k")
        await at("~/crawler")
        await seen.press("G")
        await at("~/mobile-app")
        await seen.press("enter")
        await seen.shows("session mobile-app")
        await seen.press("escape")
        await at("~/mobile-app")
        await seen.press("g")
        await at("~/crawler")

    look_at(watch(daemon.socket, tmp_path), test)


def test_selected_session_stays_selected_when_the_order_changes(
    daemon: FakeDaemon, tmp_path: Path
) -> None:
    """A session that rises to the top takes the choice with it."""

    async def test(seen: Seen) -> None:
        await seen.shows("~/docs-site")
        await seen.press("j", "j")
        await seen.until(lambda lines: is_selected(lines, "~/shop-backend"))
        daemon.put(view("shop-backend", 300_000))
        await seen.until(lambda _: seen.projects()[0] == "~/shop-backend")
        assert "▸" in seen.line("~/shop-backend")

    look_at(watch(daemon.socket, tmp_path), test)


def test_filter_shows_only_matching_sessions(daemon: FakeDaemon, tmp_path: Path) -> None:
    """What is written after / narrows at once, by all words; Enter keeps it, Esc drops it."""

    async def test(seen: Seen) -> None:
        await seen.shows("~/docs-site")
        await seen.press("slash")
        await seen.write("GPT docs")
        await seen.until(lambda _: seen.projects() == ["~/docs-site"])
        await seen.press("enter", "j")
        assert "filter: GPT docs" in seen.lines[0]
        await seen.press("escape")
        await seen.until(lambda _: seen.projects() == FULLEST_FIRST)
        await seen.press("slash")
        await seen.write("qqq")
        await seen.shows("No session matches the filter")

    look_at(watch(daemon.socket, tmp_path), test)


def test_sort_key_cycles_through_the_orders(daemon: FakeDaemon, tmp_path: Path) -> None:
    """s goes through the orders and comes back to the fullest."""

    async def test(seen: Seen) -> None:
        await seen.shows("~/docs-site")
        await seen.press("s")
        await seen.until(lambda _: seen.projects()[-1] == "~/billing")
        assert "by latest" in seen.lines[0]
        await seen.press("s")
        await seen.until(lambda _: seen.projects() == sorted(FULLEST_FIRST))
        await seen.press("s", "s")
        await seen.until(lambda _: seen.projects() == FULLEST_FIRST)

    look_at(watch(daemon.socket, tmp_path), test)


def test_a_toggles_old_sessions(daemon: FakeDaemon, tmp_path: Path) -> None:
    """a shows also what ended, and hides it again."""

    async def test(seen: Seen) -> None:
        await seen.shows("~/docs-site")
        await seen.press("a")
        assert "ended" in await seen.shows("~/yesterday")
        await seen.press("a")
        await seen.until(lambda _: "~/yesterday" not in seen.projects())

    look_at(watch(daemon.socket, tmp_path), test)


def test_session_screen_shows_figures_chart_and_messages(
    daemon: FakeDaemon, tmp_path: Path
) -> None:
    """Figures with their source, the chart with its marks, and the messages."""

    async def test(seen: Seen) -> None:
        await seen.shows("~/shop-backend")
        await seen.press("j", "j", "enter")
        await seen.shows("And run the tests.")
        text = "\n".join(seen.lines)
        for part in (
            "sent     152,000  held 152,900; status line, measured, 12s ago",
            "window   200,000  reported by the client",
            "limit    167,000  91.6% of the limit held; known of Claude Code 2.1",
            "about 6 left before the limit",
            "handoff    fresh  ~/shop/HANDOFF.md; 5m ago; 3 calls since",
            "62 calls   ▲ compaction (1)   ╌ limit",
            "▲ after call 37",
            "compaction 167K -> 31K (auto)",
            "level 65 reached at 66.0%",
            "handoff HANDOFF.md",
            "queued urgent, from user, 1m ago",
        ):
            assert part in text

    look_at(watch(daemon.socket, tmp_path), test, (100, 50))


def test_t_shows_the_next_thread(daemon: FakeDaemon, tmp_path: Path) -> None:
    """t shows the next thread, and at last the first again."""

    async def test(seen: Seen) -> None:
        await seen.shows("~/shop-backend")
        await seen.press("j", "j", "enter")
        await seen.shows("[main] explore-tests plan")
        await seen.press("t")
        await seen.shows("main [explore-tests] plan")
        await seen.shows("sent      64,000")
        await seen.press("t", "t")
        await seen.shows("[main] explore-tests plan")

    look_at(watch(daemon.socket, tmp_path), test)


@pytest.mark.parametrize(("key", "urgency"), [("m", "sequential"), ("u", "urgent")])
def test_message_is_sent_with_its_urgency(
    daemon: FakeDaemon, tmp_path: Path, key: str, urgency: str
) -> None:
    """A message is written, sent, and among the session's messages then."""

    async def test(seen: Seen) -> None:
        await seen.shows("~/shop-backend")
        await seen.press("j", "j", "enter")
        await seen.shows("And run the tests.")
        await seen.press(key)
        await seen.write("quit now jk")
        await seen.press("enter")
        await seen.shows("message queued")
        await seen.shows("quit now jk")
        assert daemon.messages["shop-backend"][-1]["urgency"] == urgency

    look_at(watch(daemon.socket, tmp_path), test, (100, 50))


def test_refused_message_shows_the_reason(daemon: FakeDaemon, tmp_path: Path) -> None:
    """What the daemon says against a message is shown; Esc sends nothing."""

    async def test(seen: Seen) -> None:
        await seen.shows("~/crawler")
        await seen.press("enter", "m", "x", "escape")
        daemon.refuses = {"error": "the text is\x1b[31m too long"}
        await seen.press("m", "y", "enter")
        await seen.shows("not sent: the text is�[31m too long")
        assert [one for one in daemon.asked if one.startswith("POST")] == [
            "POST /v1/sessions/crawler/messages"
        ]

    look_at(watch(daemon.socket, tmp_path), test)


def test_changes_are_drawn(daemon: FakeDaemon, tmp_path: Path) -> None:
    """A change from the stream is drawn in the overview and on the session screen."""

    async def test(seen: Seen) -> None:
        await seen.shows("12.0% low")
        daemon.put(view("docs-site", 198_000))
        await seen.shows("99.0% at limit")
        assert seen.projects()[1] == "~/docs-site"
        await seen.press("enter")
        await seen.shows("130%! over")
        daemon.put(view("crawler", None, main={"cycle": 1, "state": "compacting"}))
        await seen.shows("compacting")
        daemon.put(view("new-one", 1_000))
        await seen.press("escape")
        await seen.shows("~/new-one")

    look_at(watch(daemon.socket, tmp_path), test)


def test_session_that_changes_faster_than_it_loads_is_drawn(
    daemon: FakeDaemon, tmp_path: Path
) -> None:
    """Its chart comes all the same: one question is waited for before the next is asked."""
    daemon.slow = 1.0

    async def test(seen: Seen) -> None:
        await seen.shows("~/shop-backend")
        await seen.press("j", "j", "enter")
        for unread in range(1_000):
            daemon.put(view("shop-backend", 152_000, unread=unread))
            await seen.pause(0.05)
            if any("200K ┤" in line for line in seen.lines):
                return
        raise AssertionError("\n".join(seen.lines))

    look_at(watch(daemon.socket, tmp_path), test)


def test_restarted_daemon_is_used_again(daemon: FakeDaemon, tmp_path: Path) -> None:
    """A lost daemon is reported; after its return the latest sessions are shown."""

    async def test(seen: Seen) -> None:
        await seen.shows("● live")
        daemon.stop()
        await seen.until(lambda lines: "● live" not in lines[0])
        daemon.views.clear()
        daemon.put(view("reborn", 50_000))
        daemon.start()
        await seen.shows("● live")
        await seen.until(lambda _: seen.projects() == ["~/reborn"])

    look_at(watch(daemon.socket, tmp_path), test)


def test_click_selects_and_second_click_opens(daemon: FakeDaemon, tmp_path: Path) -> None:
    """A click chooses a session, another one shows it; below the last there is nothing to click."""

    async def test(seen: Seen) -> None:
        lines = await seen.until(lambda lines: any("mobile-app" in line for line in lines))
        at = next(number for number, line in enumerate(lines) if "~/importer" in line)
        await seen.click(21)
        await seen.click(at)
        await seen.until(lambda lines: is_selected(lines, "~/importer"))
        await seen.click(at + 1)
        await seen.shows("session importer")

    look_at(watch(daemon.socket, tmp_path), test)


def test_deleted_session_is_reported(daemon: FakeDaemon, tmp_path: Path) -> None:
    """A session that the daemon deleted is reported, first with its last figures."""
    daemon.forgotten.add("crawler")

    async def test(seen: Seen) -> None:
        await seen.shows("~/crawler")
        await seen.press("enter")
        await seen.shows("no session 'crawler'")
        assert "260,000" in seen.line("sent")
        del daemon.views["crawler"]
        daemon.stop()
        await seen.until(lambda lines: "● live" not in lines[0])
        daemon.start()
        await seen.shows("This session no longer exists")

    look_at(watch(daemon.socket, tmp_path), test)


def test_help_opens_and_closes(daemon: FakeDaemon, tmp_path: Path) -> None:
    """? shows keys and symbols over any screen; Esc returns to it."""

    async def test(seen: Seen) -> None:
        await seen.shows("~/crawler")
        await seen.press("question_mark")
        await seen.shows("q, Ctrl-C")
        await seen.press("escape")
        await seen.shows("~/crawler")
        await seen.press("enter", "question_mark", "question_mark")
        await seen.shows("session crawler")

    look_at(watch(daemon.socket, tmp_path), test)


def test_small_terminal_shows_a_notice(daemon: FakeDaemon, tmp_path: Path) -> None:
    """A small terminal shows a notice; after enlarging it, keys still work."""

    async def test(seen: Seen) -> None:
        await seen.shows("~/crawler")
        await seen.resize(40, 8)
        assert await seen.shows("needs 60x10")
        await seen.resize(80, 24)
        await seen.press("j")
        await seen.until(lambda lines: is_selected(lines, "~/importer"))

    look_at(watch(daemon.socket, tmp_path), test)


@pytest.mark.parametrize("key", ["q", "ctrl+c"])
def test_quit_keys_quit(daemon: FakeDaemon, tmp_path: Path, key: str) -> None:
    """q and Ctrl-C end it cleanly, Ctrl-C also while something is written."""
    app = watch(daemon.socket, tmp_path)

    async def test(seen: Seen) -> None:
        await seen.shows("~/crawler")
        await seen.press(*([] if key == "q" else ["slash"]), key)

    look_at(app, test)
    assert app.return_code == 0


EVIL = "[bold red]x[/] \x1b[31m\x07 {y} <b>"


def test_markup_and_escapes_are_shown_as_text(daemon: FakeDaemon, tmp_path: Path) -> None:
    """Text of an agent is shown literally: no markup, no escape sequences."""
    fields: Json = dict.fromkeys(("model", "title", "host", "version"), EVIL)
    handoff = {"state": EVIL, "at": NOW, "path": EVIL, "calls_since": 1}
    other = thread("evil", 1_000, EVIL, model=EVIL, window_why=EVIL, source=EVIL, state=EVIL)
    daemon.put(view("evil", 400_000, other, handoff=handoff, project=f"/p/{EVIL}", **fields))
    daemon.timelines["evil"] = {
        "calls": [], "signals": [],
        "handoffs": [{"at": NOW, "path": EVIL, "author": EVIL}],
    }  # fmt: skip
    daemon.messages["evil"] = [
        {"id": "1", "session": "evil", "text": EVIL, "at": NOW, "sender": EVIL}
    ]
    shown = "[bold red]x[/] �[31m� {y} <b>"

    async def test(seen: Seen) -> None:
        await seen.shows("x[/] �[31m� {y} <b>")
        await seen.press("enter")
        await seen.until(lambda lines: sum(shown in line for line in lines) >= 5)
        await seen.press("t")
        await seen.shows(f"[{shown}]")
        assert "\x1b" not in seen.svg

    look_at(watch(daemon.socket, tmp_path), test, (180, 40))


def test_hundreds_of_sessions_stay_responsive(daemon: FakeDaemon, tmp_path: Path) -> None:
    """Hundreds of sessions are all there, and a storm of changes loses none."""
    daemon.put(*(view(f"many-{number}", number * 300) for number in range(500)))

    async def test(seen: Seen) -> None:
        await seen.shows("507 of 508 sessions")
        for round in range(10):
            daemon.put(*(view(f"many-{n}", n * 300 + round) for n in range(0, 500, 5)))
        daemon.put(view("many-0", 199_999))
        await seen.until(lambda _: seen.projects()[1] == "~/many-0")
        await seen.press("G")
        await seen.shows("~/mobile-app")

    look_at(watch(daemon.socket, tmp_path), test)
