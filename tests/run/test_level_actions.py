"""Actions when a level is reached."""

import os
import signal
import sys
import time
from pathlib import Path

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from brimline.context.tracker import Reading, Session, Thread, read
from brimline.context.window import Limit, Window
from brimline.run.child import ChildProcess
from brimline.run.level_actions import LevelAlarm, LevelCommands, SignalStep, Terminator, level_env


def reading(percent: float | None) -> Reading:
    """A reading of this many percent."""
    empty = read(Session(), Thread("main"), "stream")
    sent = None if percent is None else round(percent * 2_000)
    return msgspec.structs.replace(empty, sent=sent, percent_raw=percent, percent=percent)


def test_level_fires_once_even_if_usage_falls_and_rises() -> None:
    alarm = LevelAlarm((50, 65), None)
    fired = [alarm.fire_level(reading(p)) for p in (None, 10, 50, 60, 20, 55, 70, 99, None)]
    assert fired == [None, None, 50, None, None, None, 65, None, None]


def test_jump_over_levels_fires_the_highest() -> None:
    alarm = LevelAlarm((50, 65), None)
    assert [alarm.fire_level(reading(p)) for p in (10, 80, 55)] == [None, 65, None]


@given(st.lists(st.none() | st.floats(0, 150), max_size=30))
def test_lower_level_does_not_fire_later(percents: list[float | None]) -> None:
    alarm = LevelAlarm((10, 50, 100), None)
    fired = [(alarm.fire_level(reading(percent)), percent) for percent in percents]
    levels = [level for level, _ in fired if level is not None]
    assert levels == sorted(set(levels))
    assert all(percent is not None and percent >= level for level, percent in fired if level)


def test_stop_level_stops_the_child_but_never_for_an_unknown_figure() -> None:
    alarm = LevelAlarm((), 85)
    assert [alarm.should_stop(reading(p)) for p in (None, 84.9, 85, 99)] == [
        False,
        False,
        True,
        True,
    ]
    assert not alarm.should_stop(None)
    assert not LevelAlarm((50,), None).should_stop(reading(99))
    assert LevelAlarm((), None).is_off
    assert not alarm.is_off


STUBBORN = """
import os, signal, time
signal.signal(signal.SIGINT, lambda *_: os.write(1, b"int\\n"))
signal.signal(signal.SIGTERM, lambda *_: os.write(1, b"term\\n"))
os.write(1, b"ready\\n")
while True:
    time.sleep(60)
"""


def test_child_that_ignores_a_signal_gets_the_next() -> None:
    child = ChildProcess([sys.executable, "-c", STUBBORN], os.environ)
    output = os.read(child.out, 100)
    ender = Terminator(child, [SignalStep(0.0, signal.SIGINT)])
    ender.step()
    output += os.read(child.out, 100)
    ender = Terminator(child, [SignalStep(0.0, signal.SIGTERM), SignalStep(0.2, signal.SIGKILL)])
    ender.step()
    output += os.read(child.out, 100)
    assert output == b"ready\nint\nterm\n"
    while child.poll() is None:
        ender.step()
        time.sleep(0.01)
    assert child.code == 128 + signal.SIGKILL
    child.close()


def test_level_command_gets_the_figures_and_is_awaited(tmp_path: Path) -> None:
    figures = tmp_path / "figures"
    commands = LevelCommands(f'sleep 0.1; echo "$BRIMLINE_LEVEL $BRIMLINE_PERCENT" > {figures}')
    commands.start({**os.environ, **level_env(50, reading(52.5))})
    assert not figures.exists()
    commands.finish()
    assert figures.read_text() == "50 52.5\n"


def test_without_command_nothing_runs() -> None:
    commands = LevelCommands(None)
    commands.start({})
    commands.finish()


def test_level_env_leaves_out_unknown_figures() -> None:
    assert level_env(50, reading(None)) == {"BRIMLINE_LEVEL": "50"}
    known_reading = msgspec.structs.replace(
        reading(52.5), held=105_050, window=Window(1_000_000, "set", ""), limit=Limit(9, "set", "")
    )
    assert level_env(50, known_reading) == {
        "BRIMLINE_LEVEL": "50",
        "BRIMLINE_PERCENT": "52.5",
        "BRIMLINE_SENT": "105000",
        "BRIMLINE_HELD": "105050",
        "BRIMLINE_WINDOW": "1000000",
        "BRIMLINE_LIMIT": "9",
    }
