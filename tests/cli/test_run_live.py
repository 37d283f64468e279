"""`brimline run` on a terminal: the progress bar."""

import re

import pytest

from .children import Running, agent, call, init, stepping
from .screen import Terminal, screen
from .terminal import User, without_colour

pytestmark = pytest.mark.slow

BAR = "Context  "
SUMMARY = re.compile(r"Duration: \d+ms")


def final_screen(terminal: Terminal) -> list[str]:
    """The final screen without the summary's duration."""
    return [SUMMARY.sub("Duration: 1ms", line) for line in screen(terminal.text)]


def test_bar_moves_and_is_erased_at_the_end(user: User) -> None:
    steps = ['call("m1", 90_000)', 'wait("one")', 'call("m2", 180_000)', 'wait("two")']
    terminal = Terminal(user, "--", stepping(user, *steps))
    terminal.wait_for("45.0%  90K/200K  1 call")
    (user.cwd / "one").touch()
    terminal.wait_for("90.0%  180K/200K  2 calls")
    assert screen(terminal.text)[-1].startswith("Context  █████")
    (user.cwd / "two").touch()
    assert terminal.end() == 0
    assert final_screen(terminal) == [
        "Hm.",
        "Hm.",
        "Duration: 1ms | Est. cost: $0.0811 | Turns: 2 | Context: 90% (180K/200K)",
        "",
    ]


def test_bar_stays_below_an_incomplete_line(user: User) -> None:
    steps = ['call("m1", 90_000)', 'os.write(1, b"half a ")', 'wait("go")', 'os.write(1, b"line")']
    terminal = Terminal(user, "--", stepping(user, *steps))
    terminal.wait_for("45.0%")
    terminal.wait_for("half a ")
    (user.cwd / "go").touch()
    assert terminal.end() == 0
    assert final_screen(terminal)[:2] == ["Hm.", "half a line"]
    assert final_screen(terminal)[2].startswith("Duration: 1ms")


def test_child_writing_to_the_terminal_gets_a_free_line(user: User) -> None:
    steps = ['call("m1", 90_000)', 'wait("go")', 'os.write(2, b"oops\\n")', 'call("m2", 90_000)']
    terminal = Terminal(user, "--", stepping(user, *steps))
    terminal.wait_for("45.0%")
    (user.cwd / "go").touch()
    assert terminal.end() == 0
    assert final_screen(terminal)[:3] == ["Hm.", "oops", "Hm."]


def test_plain_rendering_is_unchanged_on_a_terminal(user: User) -> None:
    terminal = Terminal(user, "--render", "plain", "--", agent(user, init(), call("m1", 90_000)))
    assert terminal.end() == 0
    text = without_colour(terminal.text.replace("\r\n", "\n"))
    assert (init() + call("m1", 90_000)).splitlines()[1] in text


@pytest.mark.parametrize("columns", [20, 30, 40, 60, 200])
def test_bar_fits_any_width_and_keeps_the_percentage(user: User, columns: int) -> None:
    steps = ['call("m1", 90_000)', 'wait("go")']
    terminal = Terminal(user, "--render", "pretty", "--", stepping(user, *steps), columns=columns)
    terminal.wait_for("45.0%")
    (user.cwd / "go").touch()
    terminal.end()
    bars = re.findall(r"\r(Context[^\x1b]*(?:\x1b\[[0-9]*m[^\x1b]*)*)\x1b8", terminal.text)
    assert bars
    assert max(len(without_colour(line)) for line in bars) < columns


def test_bar_is_coloured_unless_no_color_is_set(user: User) -> None:
    steps = ['call("m1", 180_000)', 'wait("go")']
    cases: list[tuple[dict[str, str], bool]] = [({}, True), ({"NO_COLOR": "1"}, False)]
    for env, coloured in cases:
        (user.cwd / "go").unlink(missing_ok=True)
        terminal = Terminal(user, "--", stepping(user, *steps), env=env)
        terminal.wait_for("90.0%")
        (user.cwd / "go").touch()
        terminal.end()
        assert ("\x1b[1;31m" in terminal.text) == coloured


@pytest.mark.parametrize(("options", "colour"), [((), 32), (("--warn", "30"), 31)])
def test_colour_of_the_bar_follows_the_levels_of_the_run(
    user: User, options: tuple[str, ...], colour: int
) -> None:
    steps = ['call("m1", 80_000)', 'wait("go")']
    terminal = Terminal(user, *options, "--", stepping(user, *steps))
    terminal.wait_for("40.0%")
    (user.cwd / "go").touch()
    terminal.end()
    assert f"\x1b[{colour}m█" in terminal.text


@pytest.mark.parametrize(
    ("arguments", "env"),
    [(["--render", "none"], {}), (["--render", "json"], {}), ([], {"TERM": "dumb"})],
    ids=str,
)
def test_no_bar_without_output_or_on_a_dumb_terminal(
    user: User, arguments: list[str], env: dict[str, str]
) -> None:
    command = agent(user, init(), call("m1", 90_000), then="time.sleep(0.5)")
    terminal = Terminal(user, *arguments, "--", command, env=env)
    assert terminal.end() == 0
    assert BAR not in terminal.text
    assert "\x1b[J" not in terminal.text
    assert "Context: 45% (90K/200K)" in terminal.text


def test_no_bar_if_standard_error_is_a_pipe(user: User) -> None:
    command = agent(user, init(), call("m1", 90_000), then="time.sleep(0.5)")
    _, out, err = Running(user, "--", command).end()
    assert b"\x1b" not in out
    assert "\x1b" not in err


def test_no_bar_for_a_command_that_is_no_agent(user: User) -> None:
    terminal = Terminal(user, "--", "sh", "-c", "sleep 0.5; echo hello")
    assert terminal.end() == 0
    assert BAR not in terminal.text
    assert final_screen(terminal) == ["hello", "Duration: 1ms", ""]
