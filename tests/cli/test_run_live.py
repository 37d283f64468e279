"""`brimline run` on a terminal: a bar that moves, and never gets into the way of anything."""

import re

import pytest

from .children import Running, agent, call, init, stepping
from .screen import Terminal, screen
from .terminal import User, without_colour

pytestmark = pytest.mark.slow

BAR = "Context  "
SUMMARY = re.compile(r"Duration: \d+ms")


def shown(terminal: Terminal) -> list[str]:
    """What stands on the screen in the end, without the summary's time."""
    return [SUMMARY.sub("Duration: 1ms", line) for line in screen(terminal.text)]


def test_bar(user: User) -> None:
    """It moves while the child runs; in the end it is gone and the output is all there."""
    steps = ['call("m1", 90_000)', 'wait("one")', 'call("m2", 180_000)', 'wait("two")']
    terminal = Terminal(user, "--", stepping(user, *steps))
    terminal.wait_for("45.0%  90K/200K  1 call")
    (user.cwd / "one").touch()
    terminal.wait_for("90.0%  180K/200K  2 calls")
    assert screen(terminal.text)[-1].startswith("Context  █████")
    (user.cwd / "two").touch()
    assert terminal.end() == 0
    assert shown(terminal) == [
        "Hm.",
        "Hm.",
        "Duration: 1ms | Est. cost: $0.0811 | Turns: 2 | Context: 90% (180K/200K)",
        "",
    ]


def test_output_that_is_not_whole(user: User) -> None:
    """The bar stands below a line that is not whole yet, and leaves it as it is."""
    steps = ['call("m1", 90_000)', 'os.write(1, b"half a ")', 'wait("go")', 'os.write(1, b"line")']
    terminal = Terminal(user, "--", stepping(user, *steps))
    terminal.wait_for("45.0%")
    terminal.wait_for("half a ")
    (user.cwd / "go").touch()
    assert terminal.end() == 0
    assert shown(terminal)[:2] == ["Hm.", "half a line"]
    assert shown(terminal)[2].startswith("Duration: 1ms")


def test_standard_error_of_the_child(user: User) -> None:
    """What the child itself writes to the terminal finds a free line."""
    steps = ['call("m1", 90_000)', 'wait("go")', 'os.write(2, b"oops\\n")', 'call("m2", 90_000)']
    terminal = Terminal(user, "--", stepping(user, *steps))
    terminal.wait_for("45.0%")
    (user.cwd / "go").touch()
    assert terminal.end() == 0
    assert shown(terminal)[:3] == ["Hm.", "oops", "Hm."]


def test_plain_on_a_terminal(user: User) -> None:
    """Byte for byte also on a terminal, if that is asked for."""
    terminal = Terminal(user, "--render", "plain", "--", agent(user, init(), call("m1", 90_000)))
    assert terminal.end() == 0
    written = without_colour(terminal.text.replace("\r\n", "\n"))
    assert (init() + call("m1", 90_000)).splitlines()[1] in written


@pytest.mark.parametrize("columns", [20, 30, 40, 60, 200])
def test_width(user: User, columns: int) -> None:
    """The bar's line fits the terminal, however narrow; the share is the last thing to go."""
    steps = ['call("m1", 90_000)', 'wait("go")']
    terminal = Terminal(user, "--render", "pretty", "--", stepping(user, *steps), columns=columns)
    terminal.wait_for("45.0%")
    (user.cwd / "go").touch()
    terminal.end()
    drawn = re.findall(r"\r(Context[^\x1b]*(?:\x1b\[[0-9]*m[^\x1b]*)*)\x1b8", terminal.text)
    assert drawn
    assert max(len(without_colour(line)) for line in drawn) < columns


def test_colours(user: User) -> None:
    """The bar is coloured as everywhere; NO_COLOR is respected."""
    steps = ['call("m1", 180_000)', 'wait("go")']
    cases: list[tuple[dict[str, str], bool]] = [({}, True), ({"NO_COLOR": "1"}, False)]
    for env, coloured in cases:
        (user.cwd / "go").unlink(missing_ok=True)
        terminal = Terminal(user, "--", stepping(user, *steps), env=env)
        terminal.wait_for("90.0%")
        (user.cwd / "go").touch()
        terminal.end()
        assert ("\x1b[31m" in terminal.text) == coloured


@pytest.mark.parametrize(
    ("arguments", "env"),
    [(["--render", "none"], {}), (["--render", "json"], {}), ([], {"TERM": "dumb"})],
    ids=str,
)
def test_no_bar(user: User, arguments: list[str], env: dict[str, str]) -> None:
    """None where nothing of the child is shown, nor on a terminal that cannot."""
    command = agent(user, init(), call("m1", 90_000), then="time.sleep(0.5)")
    terminal = Terminal(user, *arguments, "--", command, env=env)
    assert terminal.end() == 0
    assert BAR not in terminal.text
    assert "\x1b[J" not in terminal.text
    assert "Context: 45% (90K/200K)" in terminal.text


def test_no_bar_in_a_pipe(user: User) -> None:
    """None where standard error is no terminal."""
    command = agent(user, init(), call("m1", 90_000), then="time.sleep(0.5)")
    _, out, err = Running(user, "--", command).end()
    assert b"\x1b" not in out
    assert "\x1b" not in err


def test_no_bar_for_no_agent(user: User) -> None:
    """A command that is no agent has no context to show."""
    terminal = Terminal(user, "--", "sh", "-c", "sleep 0.5; echo hello")
    assert terminal.end() == 0
    assert BAR not in terminal.text
    assert shown(terminal) == ["hello", "Duration: 1ms", ""]
