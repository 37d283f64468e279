"""The application: its screens, keys and updates."""

from pathlib import Path

import pytest

from .app_driver import AppDriver, drive, watch
from .daemon import FakeDaemon
from .sample_views import NOW, Json, thread, view

pytestmark = pytest.mark.slow

MOST_URGENT_FIRST = [
    "~/ledger", "~/crawler", "~/importer", "~/shop-backend", "~/docs-site", "~/mobile-app",
    "~/billing",
]  # fmt: skip

ALL_BUT_TITLED = [each for each in MOST_URGENT_FIRST if each != "~/shop-backend"]


def is_selected(lines: list[str], project: str) -> bool:
    return any("▸" in line and project in line for line in lines)


def test_most_urgent_session_is_first_idle_last_and_ended_hidden(
    daemon: FakeDaemon, tmp_path: Path
) -> None:
    async def test(app: AppDriver) -> None:
        await app.shows("● live")
        await app.until(lambda _: app.projects() == MOST_URGENT_FIRST)
        assert "7 of 8 sessions" in app.lines[0]

    drive(watch(daemon.socket, tmp_path), test)


def test_subagents_are_below_their_session(daemon: FakeDaemon, tmp_path: Path) -> None:
    async def test(app: AppDriver) -> None:
        lines = await app.until(lambda lines: any("└ Plan the release" in line for line in lines))
        at = next(number for number, line in enumerate(lines) if "~/shop-backend" in line)
        assert "76.0% high" in lines[at + 1]
        assert "2 messages wait for its next prompt." in lines[at + 2]
        assert "└ explore-tests" in lines[at + 3]
        assert "32.0% low" in lines[at + 3]
        assert "└ Plan the release" in lines[at + 4]

    drive(watch(daemon.socket, tmp_path), test)


def test_keys_move_the_selection(daemon: FakeDaemon, tmp_path: Path) -> None:
    """j, k, G and g move it; Enter opens, Esc goes back."""

    async def test(app: AppDriver) -> None:
        async def at(project: str) -> None:
            await app.until(lambda lines: is_selected(lines, project))

        await at("~/ledger")
        await app.press("j")
        await at("~/crawler")
        await app.press("j", "k", "k")
        await at("~/ledger")
        await app.press("G")
        await at("~/billing")
        await app.press("enter")
        await app.shows("session billing")
        await app.press("escape")
        await at("~/billing")
        await app.press("g")
        await at("~/ledger")

    drive(watch(daemon.socket, tmp_path), test)


def test_selected_session_stays_selected_when_the_order_changes(
    daemon: FakeDaemon, tmp_path: Path
) -> None:
    async def test(app: AppDriver) -> None:
        await app.shows("~/docs-site")
        await app.press("j", "j", "j")
        await app.until(lambda lines: is_selected(lines, "~/shop-backend"))
        daemon.put(view("shop-backend", 300_000))
        await app.until(lambda _: app.projects()[1] == "~/shop-backend")
        assert "▸" in app.line("~/shop-backend")

    drive(watch(daemon.socket, tmp_path), test)


def test_filter_shows_only_matching_sessions(daemon: FakeDaemon, tmp_path: Path) -> None:
    """The filter applies while typing; Enter keeps it, Esc drops it."""

    async def test(app: AppDriver) -> None:
        await app.shows("~/docs-site")
        await app.press("slash")
        await app.write("GPT docs")
        await app.until(lambda _: app.projects() == ["~/docs-site"])
        await app.press("enter", "j")
        assert "filter: GPT docs" in app.lines[0]
        await app.press("escape")
        await app.until(lambda _: app.projects() == MOST_URGENT_FIRST)
        await app.press("slash")
        await app.write("qqq")
        await app.shows("No session matches the filter")

    drive(watch(daemon.socket, tmp_path), test)


def test_sort_key_cycles_through_the_orders(daemon: FakeDaemon, tmp_path: Path) -> None:
    async def test(app: AppDriver) -> None:
        await app.shows("~/docs-site")
        await app.press("s")
        await app.until(lambda _: app.projects()[0] == "~/crawler")
        assert "by limit" in app.lines[0]
        await app.press("s")
        await app.until(lambda _: "by cost" in app.lines[0])
        await app.press("s")
        await app.until(lambda _: app.projects()[-1] == "~/billing")
        assert "by latest" in app.lines[0]
        await app.press("s")
        await app.until(lambda _: app.projects()[0] == "~/shop-backend")
        assert "by title" in app.lines[0]
        await app.press("s")
        await app.until(lambda _: app.projects() == sorted(MOST_URGENT_FIRST))
        await app.press("s", "s")
        await app.until(lambda _: app.projects() == MOST_URGENT_FIRST)

    drive(watch(daemon.socket, tmp_path), test)


def test_a_toggles_old_sessions(daemon: FakeDaemon, tmp_path: Path) -> None:
    async def test(app: AppDriver) -> None:
        await app.shows("~/docs-site")
        await app.press("a")
        assert "ended" in await app.shows("~/yesterday")
        await app.press("a")
        await app.until(lambda _: "~/yesterday" not in app.projects())

    drive(watch(daemon.socket, tmp_path), test, (80, 30))


def test_session_screen_shows_figures_chart_and_messages(
    daemon: FakeDaemon, tmp_path: Path
) -> None:
    async def test(app: AppDriver) -> None:
        await app.shows("~/shop-backend")
        await app.press("j", "j", "j", "enter")
        await app.shows("And run the tests.")
        text = "\n".join(app.lines)
        for part in (
            "sent     152,000  held 152,900; status line, measured, 12s ago",
            "window   200,000  reported by the client",
            "limit    167,000  of limit 91.6%; known of Claude Code 2.1",
            "about 6 calls left (3-12)",
            "handoff    fresh  ~/shop/HANDOFF.md; 5m ago; 3 calls since",
            "62 calls   ▲ compaction (1)   ╌ limit",
            "▲ after call 37",
            "compaction 167K -> 31K (auto)",
            "level 65 reached at 66.0%",
            "handoff HANDOFF.md",
            "queued urgent, from user, 1m ago",
        ):
            assert part in text

    drive(watch(daemon.socket, tmp_path), test, (100, 50))


def test_t_shows_the_next_thread(daemon: FakeDaemon, tmp_path: Path) -> None:
    async def test(app: AppDriver) -> None:
        await app.shows("~/shop-backend")
        await app.press("j", "j", "j", "enter")
        await app.shows("[main] explore-tests plan")
        await app.press("t")
        await app.shows("main [explore-tests] plan")
        await app.shows("sent      64,000")
        await app.press("t", "t")
        await app.shows("[main] explore-tests plan")

    drive(watch(daemon.socket, tmp_path), test)


def test_e_shows_what_fills_each_thread_and_back(daemon: FakeDaemon, tmp_path: Path) -> None:
    async def test(app: AppDriver) -> None:
        await app.shows("~/shop-backend")
        await app.press("j", "j", "j", "enter")
        await app.shows("[main] explore-tests plan")
        await app.press("e")
        await app.shows("What fills it  152,000 tokens sent")
        await app.shows("tool results           71,200  46.8%")
        await app.shows("unexplained             3,000   2.0%")
        await app.shows("plans: not recorded")
        await app.shows("About 2.4K tokens more came in since the last call.")
        await app.press("t")
        await app.shows("What fills it is unknown: this thread has no call yet.")
        await app.press("n")
        await app.shows("What fills it is unknown: this session has no transcript on this machine.")
        await app.press("e")
        await app.until(lambda lines: not any("What fills it" in line for line in lines))
        await app.shows("window")

    drive(watch(daemon.socket, tmp_path), test, (90, 50))


def test_esc_closes_the_explanation_then_the_session(daemon: FakeDaemon, tmp_path: Path) -> None:
    async def test(app: AppDriver) -> None:
        await app.shows("~/shop-backend")
        await app.press("j", "j", "j", "enter", "e")
        await app.shows("What fills it  152,000 tokens sent")
        await app.press("m", "escape")
        await app.shows("What fills it  152,000 tokens sent")
        await app.press("escape")
        await app.shows("sent     152,000")
        await app.press("escape")
        await app.until(lambda lines: is_selected(lines, "~/shop-backend"))

    drive(watch(daemon.socket, tmp_path), test, (90, 50))


def test_explanation_follows_the_session_after_a_pause(daemon: FakeDaemon, tmp_path: Path) -> None:
    async def test(app: AppDriver) -> None:
        await app.shows("~/shop-backend")
        await app.press("j", "j", "j", "enter", "e")
        await app.shows("What fills it  152,000 tokens sent")
        daemon.explanations["shop-backend"]["threads"][0]["sent"] = 160_000
        daemon.put(daemon.views["shop-backend"] | {"unread": 5})
        await app.shows("What fills it  160,000 tokens sent")

    drive(watch(daemon.socket, tmp_path), test, (90, 50))


@pytest.mark.parametrize(("key", "urgency"), [("m", "sequential"), ("u", "urgent")])
def test_message_is_sent_with_its_urgency_and_listed(
    daemon: FakeDaemon, tmp_path: Path, key: str, urgency: str
) -> None:
    async def test(app: AppDriver) -> None:
        await app.shows("~/shop-backend")
        await app.press("j", "j", "j", "enter")
        await app.shows("And run the tests.")
        await app.press(key)
        await app.write("quit now jk")
        await app.press("enter")
        await app.shows("message queued")
        await app.shows("quit now jk")
        assert daemon.messages["shop-backend"][-1]["urgency"] == urgency

    drive(watch(daemon.socket, tmp_path), test, (100, 50))


def test_refused_message_shows_the_reason_and_esc_sends_nothing(
    daemon: FakeDaemon, tmp_path: Path
) -> None:
    async def test(app: AppDriver) -> None:
        await app.shows("~/crawler")
        await app.press("j", "enter", "m", "x", "escape")
        daemon.refuses = {"error": "the text is\x1b[31m too long"}
        await app.press("m", "y", "enter")
        await app.shows("not sent: the text is�[31m too long")
        assert [request for request in daemon.asked if request.startswith("POST")] == [
            "POST /v1/sessions/crawler/messages"
        ]

    drive(watch(daemon.socket, tmp_path), test)


def test_changes_are_drawn(daemon: FakeDaemon, tmp_path: Path) -> None:
    async def test(app: AppDriver) -> None:
        await app.shows("12.0% low")
        daemon.put(view("docs-site", 198_000))
        await app.shows("99.0% at limit")
        assert app.projects()[2] == "~/docs-site"
        await app.press("j", "enter")
        await app.shows("130.0%! over")
        daemon.put(view("crawler", None, main={"cycle": 1, "state": "compacting"}))
        await app.shows("compacting")
        daemon.put(view("new-one", 1_000))
        await app.press("escape")
        await app.shows("~/new-one")

    drive(watch(daemon.socket, tmp_path), test)


def test_session_that_changes_faster_than_it_loads_is_drawn(
    daemon: FakeDaemon, tmp_path: Path
) -> None:
    """A request is awaited before the next one is sent."""
    daemon.slow = 1.0

    async def test(app: AppDriver) -> None:
        await app.shows("~/shop-backend")
        await app.press("j", "j", "j", "enter")
        for unread in range(1_000):
            daemon.put(view("shop-backend", 152_000, unread=unread))
            await app.pause(0.05)
            if any("200K ┤" in line for line in app.lines):
                return
        raise AssertionError("\n".join(app.lines))

    drive(watch(daemon.socket, tmp_path), test)


def test_lost_daemon_is_reported_and_used_again_after_its_restart(
    daemon: FakeDaemon, tmp_path: Path
) -> None:
    async def test(app: AppDriver) -> None:
        await app.shows("● live")
        daemon.stop()
        await app.until(lambda lines: "● live" not in lines[0])
        daemon.views.clear()
        daemon.put(view("reborn", 50_000))
        daemon.start()
        await app.shows("● live")
        await app.until(lambda _: app.projects() == ["~/reborn"])

    drive(watch(daemon.socket, tmp_path), test)


def test_click_selects_and_second_click_opens(daemon: FakeDaemon, tmp_path: Path) -> None:
    async def test(app: AppDriver) -> None:
        lines = await app.until(lambda lines: any("mobile-app" in line for line in lines))
        at = next(number for number, line in enumerate(lines) if "~/importer" in line)
        await app.click(21)
        await app.click(at)
        await app.until(lambda lines: is_selected(lines, "~/importer"))
        await app.click(at + 1)
        await app.shows("session importer")

    drive(watch(daemon.socket, tmp_path), test)


def test_deleted_session_is_reported_with_its_last_figures(
    daemon: FakeDaemon, tmp_path: Path
) -> None:
    daemon.forgotten.add("crawler")

    async def test(app: AppDriver) -> None:
        await app.shows("~/crawler")
        await app.press("j", "enter")
        await app.shows("no session 'crawler'")
        assert "260,000" in app.line("sent")
        del daemon.views["crawler"]
        daemon.stop()
        await app.until(lambda lines: "● live" not in lines[0])
        daemon.start()
        await app.shows("This session no longer exists")

    drive(watch(daemon.socket, tmp_path), test)


def test_help_opens_and_closes(daemon: FakeDaemon, tmp_path: Path) -> None:
    async def test(app: AppDriver) -> None:
        await app.shows("~/crawler")
        await app.press("question_mark")
        await app.shows("q, Ctrl-C")
        await app.press("escape")
        await app.shows("~/crawler")
        await app.press("j", "enter", "question_mark", "question_mark")
        await app.shows("session crawler")

    drive(watch(daemon.socket, tmp_path), test)


def test_small_terminal_shows_a_notice(daemon: FakeDaemon, tmp_path: Path) -> None:
    async def test(app: AppDriver) -> None:
        await app.shows("~/crawler")
        await app.resize(40, 8)
        assert await app.shows("needs 40x10")
        await app.resize(80, 24)
        await app.press("j")
        await app.until(lambda lines: is_selected(lines, "~/crawler"))

    drive(watch(daemon.socket, tmp_path), test)


@pytest.mark.parametrize("key", ["q", "ctrl+c"])
def test_q_and_ctrl_c_quit_even_while_typing(daemon: FakeDaemon, tmp_path: Path, key: str) -> None:
    application = watch(daemon.socket, tmp_path)

    async def test(app: AppDriver) -> None:
        await app.shows("~/crawler")
        await app.press(*([] if key == "q" else ["slash"]), key)

    drive(application, test)
    assert application.return_code == 0


EVIL = "[bold red]x[/] \x1b[31m\x07 {y} <b>"


def test_markup_and_escapes_are_shown_as_text(daemon: FakeDaemon, tmp_path: Path) -> None:
    fields: Json = dict.fromkeys(("model", "title", "host", "version"), EVIL)
    handoff = {"state": EVIL, "at": NOW, "path": EVIL, "calls_since": 1}
    subagent = thread("evil", 1_000, EVIL, model=EVIL, window_why=EVIL, source=EVIL, state=EVIL)
    daemon.put(view("evil", 400_000, subagent, handoff=handoff, project=f"/p/{EVIL}", **fields))
    daemon.timelines["evil"] = {
        "calls": [], "signals": [],
        "handoffs": [{"at": NOW, "path": EVIL, "author": EVIL}],
    }  # fmt: skip
    daemon.messages["evil"] = [
        {"id": "1", "session": "evil", "text": EVIL, "at": NOW, "sender": EVIL}
    ]
    literal = "[bold red]x[/] �[31m� {y} <b>"

    async def test(app: AppDriver) -> None:
        await app.shows("x[/] �[31m� {y} <b>")
        await app.press("j", "enter")
        await app.until(lambda lines: sum(literal in line for line in lines) >= 5)
        await app.press("t")
        await app.shows(f"[{literal}]")
        assert "\x1b" not in app.svg

    drive(watch(daemon.socket, tmp_path), test, (180, 40))


def test_no_change_of_hundreds_of_sessions_is_lost(daemon: FakeDaemon, tmp_path: Path) -> None:
    daemon.put(*(view(f"many-{number}", number * 300) for number in range(500)))

    async def test(app: AppDriver) -> None:
        await app.shows("507 of 508 sessions")
        for round in range(10):
            daemon.put(*(view(f"many-{n}", n * 300 + round) for n in range(0, 500, 5)))
        daemon.put(view("many-0", 199_999))
        await app.until(lambda _: app.projects()[2] == "~/many-0")
        await app.press("G")
        await app.shows("~/mobile-app")

    drive(watch(daemon.socket, tmp_path), test)


def test_next_and_previous_show_other_sessions_of_the_list(
    daemon: FakeDaemon, tmp_path: Path
) -> None:
    async def test(app: AppDriver) -> None:
        await app.shows("~/crawler")
        await app.press("j", "enter")
        await app.shows("260,000")
        await app.press("n", "n")
        await app.shows("~/shop-backend · Claude Code 2.1.325 · sonnet-4-5")
        await app.shows("152,000")
        await app.press("p")
        await app.shows("~/importer · Claude Code 2.1.325 · sonnet-4-5")

    drive(watch(daemon.socket, tmp_path), test)


def test_list_stays_beside_the_session_on_a_wide_terminal(
    daemon: FakeDaemon, tmp_path: Path
) -> None:
    async def test(app: AppDriver) -> None:
        await app.shows("~/crawler")
        await app.press("j", "j", "enter")
        await app.shows("~/importer · Claude Code")
        text = "\n".join(app.lines)
        assert all(f"{project.removeprefix('~/')} " in text for project in ALL_BUT_TITLED)
        assert "▸ importer " in app.line("▸")
        await app.press("n")
        await app.until(lambda _: "▸ Fix the checkout " in app.line("▸"))
        await app.resize(100, 30)
        await app.until(lambda lines: not any("  ledger " in line for line in lines))

    drive(watch(daemon.socket, tmp_path), test, (120, 40))
