"""Settings: argument > environment > project file > user file > default."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from brimline.errors import InvalidSettings
from brimline.regular_file import MAX_SETTINGS_BYTES
from brimline.settings import (
    PROJECT_FILE,
    Settings,
    cache_dir,
    load,
    project_file,
    seconds,
    socket_path,
    state_dir,
    user_file,
)
from brimline.windows import Overrides


class Desk:
    """A home and a project of their own."""

    def __init__(self, root: Path) -> None:
        self.home, self.cwd = root / "home", root / "work" / "project" / "deep"
        self.home.mkdir(parents=True)
        self.cwd.mkdir(parents=True)

    def user(self, text: str) -> Path:
        """Write the user's file."""
        path = self.home / ".config" / "brimline" / "config.toml"
        path.parent.mkdir(parents=True)
        path.write_text(text, "utf-8")
        return path

    def project(self, text: str) -> Path:
        """Write the project's file, two folders above."""
        path = self.cwd.parent / PROJECT_FILE
        path.write_text(text, "utf-8")
        return path

    def load(
        self, env: Mapping[str, str] | None = None, arguments: Mapping[str, Any] | None = None
    ) -> Settings:
        """The settings as they are here."""
        return load(env or {}, self.home, self.cwd, arguments)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    """An empty desk."""
    return Desk(tmp_path)


def test_default(desk: Desk) -> None:
    """With nothing said the defaults hold, and no window is assumed."""
    assert desk.load() == Settings()
    assert Settings().default_window is None
    assert Settings().since == "24h"


def test_layers(desk: Desk) -> None:
    """Each layer lies over the one below it."""
    desk.user('since = "1h"\ncolour = "never"\ndefault_window = 1\ncache_dir = "user"')
    assert desk.load().since == "1h"
    desk.project('since = "2h"\ncolour = "always"\ndefault_window = 2')
    assert desk.load().since == "2h"
    env = {"BRIMLINE_SINCE": "3h", "BRIMLINE_COLOUR": "auto"}
    assert desk.load(env).since == "3h"
    loaded = desk.load(env, {"since": "4h", "colour": None})
    assert loaded == Settings(since="4h", colour="auto", default_window=2, cache_dir="user")


def test_tables_are_merged(desk: Desk) -> None:
    """Windows and limits of several layers are laid together, key by key."""
    desk.user("[windows]\na = 1\nb = 2\n[limits]\na = 9")
    desk.project("[windows]\nb = 3\nc = 4")
    env = {"BRIMLINE_WINDOWS": "c=5, d=1_000", "BRIMLINE_LIMITS": "claude/x=7,"}
    loaded = desk.load(env, {"windows": {"d": 6}})
    assert loaded.windows == {"a": 1, "b": 3, "c": 5, "d": 6}
    assert loaded.limits == {"a": 9, "claude/x": 7}
    assert loaded.overrides == Overrides(loaded.windows, loaded.limits, None)


def test_nothing_is_an_empty_variable(desk: Desk) -> None:
    """An empty variable says nothing."""
    assert desk.load({"BRIMLINE_SINCE": "", "BRIMLINE_DEFAULT_WINDOW": ""}) == Settings()


def test_user_file(tmp_path: Path) -> None:
    """BRIMLINE_CONFIG names it, else it lies below XDG_CONFIG_HOME or ~/.config."""
    usual = tmp_path / ".config" / "brimline" / "config.toml"
    assert user_file({}, tmp_path) == usual
    assert user_file({"XDG_CONFIG_HOME": ""}, tmp_path) == usual
    assert user_file({"XDG_CONFIG_HOME": "/x"}, tmp_path) == Path("/x/brimline/config.toml")
    assert user_file({"BRIMLINE_CONFIG": "/y.toml", "XDG_CONFIG_HOME": "/x"}, tmp_path) == (
        Path("/y.toml")
    )


def test_named_user_file(desk: Desk, tmp_path: Path) -> None:
    """The file that BRIMLINE_CONFIG names is read, not the usual one."""
    desk.user('since = "1h"')
    named = tmp_path / "own.toml"
    named.write_text('since = "5h"', "utf-8")
    assert desk.load({"BRIMLINE_CONFIG": str(named)}).since == "5h"


def test_project_file_is_the_nearest(desk: Desk) -> None:
    """From here upwards the first project file counts; a folder of that name is none."""
    assert project_file(desk.cwd) is None
    above = desk.project("")
    assert project_file(desk.cwd) == above
    (desk.cwd / PROJECT_FILE).mkdir()
    assert project_file(desk.cwd) == above


@pytest.mark.parametrize(
    ("text", "windows"),
    [
        ("context_window_tokens = 128000", {"*": 128_000}),
        ("[context_window_tokens]\nclaude = 1\n'pi/x' = 2", {"claude": 1, "pi/x": 2}),
        ("context_window_tokens = 5\nwindows = {'*' = 6, a = 7}", {"*": 6, "a": 7}),
        ("context_window_tokens = {a = 5, b = 8}\nwindows = {a = 6}", {"a": 6, "b": 8}),
    ],
)
def test_windows_as_loops_call_them(desk: Desk, text: str, windows: dict[str, int]) -> None:
    """`context_window_tokens` is a size for everything or a table, under what `windows` says."""
    desk.project(text)
    assert desk.load() == Settings(windows=windows)


def test_windows_as_loops_call_them_in_layers(desk: Desk) -> None:
    """They are laid together like `windows` itself, from the environment too."""
    desk.user("context_window_tokens = 1\nwindows = {a = 2}")
    desk.project("context_window_tokens = {b = 3}")
    assert desk.load().windows == {"*": 1, "a": 2, "b": 3}
    variable = "BRIMLINE_CONTEXT_WINDOW_TOKENS"
    assert desk.load({variable: "4"}).windows == {"*": 4, "a": 2, "b": 3}
    assert desk.load({variable: "b=5"}).windows == {"*": 1, "a": 2, "b": 5}
    assert desk.load({variable: "4", "BRIMLINE_WINDOWS": "*=6"}).windows["*"] == 6


@pytest.mark.parametrize(
    ("text", "field", "problem"),
    [
        ("colour = 7", "colour", "Expected `str`"),
        ('colour = "pink"', "colour", "Invalid enum value 'pink'"),
        ('windows = {a = "x"}', "windows[...]", "Expected `int`, got `str`"),
        ("windows = {a = 0}", "windows.a", "expected more than 0: got 0"),
        ("limits = {a = -5}", "limits.a", "expected more than 0: got -5"),
        ("default_window = 0", "default_window", "expected more than 0: got 0"),
        ("default_window = -1", "default_window", "expected more than 0: got -1"),
        ('since = "soon"', "since", "expected a span such as 90m, 24h, 7d, 2w: got 'soon'"),
        ("colur = 1", "settings", "Object contains unknown field `colur`"),
        ("windows = {a = 1.5}", "windows[...]", "Expected `int`, got `float`"),
        ("= 5", "file", "Invalid"),
        ("a = " + 100_000 * "[", "file", "recursion"),
        ("#".ljust(MAX_SETTINGS_BYTES + 1), "file", "cannot be read: larger than 1,048,576 bytes"),
        ("context_window_tokens = 0", "context_window_tokens", "expected more than 0: got 0"),
        ("context_window_tokens = 'x'", "context_window_tokens", "Expected `int`, got `str`"),
        ("context_window_tokens = {a = 1.5}", "context_window_tokens", "Expected `int`"),
        ("context_window_tokens = 1\nwindows = 5", "windows", "Expected `object`, got `int`"),
    ],
)
def test_file_that_cannot_be_used(desk: Desk, text: str, field: str, problem: str) -> None:
    """A wrong file names its path, the field and what was expected."""
    path = desk.project(text)
    with pytest.raises(InvalidSettings) as caught:
        desk.load()
    assert caught.value.place == str(path)
    assert caught.value.field == field
    assert problem in caught.value.problem


def test_fifo_in_place_of_a_file_is_passed_over(desk: Desk) -> None:
    """What is no file is no settings file, and is not waited for."""
    path = desk.project("")
    path.unlink()
    os.mkfifo(path)
    assert desk.load() == Settings()


def test_file_that_is_no_text(desk: Desk) -> None:
    """A file that is no UTF-8 is an error with its path."""
    path = desk.project("")
    path.write_bytes(b'since = "\xff"')
    with pytest.raises(InvalidSettings) as caught:
        desk.load()
    assert caught.value.place == str(path)


def test_a_wrong_layer_is_not_hidden(desk: Desk) -> None:
    """A wrong value is an error also where a higher layer says it right."""
    path = desk.user('since = "soon"')
    with pytest.raises(InvalidSettings) as caught:
        desk.load({"BRIMLINE_SINCE": "1h"})
    assert caught.value.place == str(path)


@pytest.mark.parametrize(
    ("variable", "text"),
    [
        ("BRIMLINE_DEFAULT_WINDOW", "many"),
        ("BRIMLINE_WINDOWS", "claude"),
        ("BRIMLINE_LIMITS", "claude=x"),
        ("BRIMLINE_CONTEXT_WINDOW_TOKENS", "many"),
    ],
)
def test_variable_that_is_no_number(desk: Desk, variable: str, text: str) -> None:
    """A wrong variable is named."""
    with pytest.raises(InvalidSettings) as caught:
        desk.load({variable: text})
    assert caught.value.place == variable
    assert caught.value.field == variable.removeprefix("BRIMLINE_").lower()


def test_variable_that_is_out_of_range(desk: Desk) -> None:
    """A number that cannot be used names the environment and the field."""
    with pytest.raises(InvalidSettings, match=r"environment: limits\.claude"):
        desk.load({"BRIMLINE_LIMITS": "claude=0"})


def test_argument_that_is_wrong(desk: Desk) -> None:
    """A wrong argument is called an argument."""
    with pytest.raises(InvalidSettings, match="argument: since"):
        desk.load(arguments={"since": "never"})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("90m", 5_400.0),
        ("24h", 86_400.0),
        ("7d", 604_800.0),
        (" 2w ", 1_209_600.0),
        ("1.5h", 5_400),
    ],
)
def test_span(text: str, expected: float) -> None:
    """A span of time is a number and a unit."""
    assert seconds(text) == expected


@pytest.mark.parametrize("text", ["", "5", "h", "-5h", "1h30m", "1 h", "1y", "1e3h", ".5h"])
def test_no_span(text: str) -> None:
    """Anything else is an error that names what was given and where."""
    with pytest.raises(InvalidSettings, match="expected a span") as caught:
        seconds(text, "since", "user file")
    assert (caught.value.place, caught.value.field) == ("user file", "since")


def test_cache_dir(tmp_path: Path) -> None:
    """The cache is where it is set to be, else below XDG_CACHE_HOME or ~/.cache."""
    assert cache_dir(Settings(), {}, tmp_path) == tmp_path / ".cache" / "brimline"
    assert cache_dir(Settings(), {"XDG_CACHE_HOME": "/c"}, tmp_path) == Path("/c/brimline")
    assert cache_dir(Settings(cache_dir="/own"), {"XDG_CACHE_HOME": "/c"}, tmp_path) == Path("/own")


def test_is_frozen_and_small() -> None:
    """One frozen value of about a dozen fields at most."""
    fields = msgspec.structs.fields(Settings)
    assert len(fields) <= 15
    with pytest.raises(AttributeError):
        Settings().since = "1h"  # pyright: ignore[reportAttributeAccessIssue]


def test_levels(desk: Desk) -> None:
    """Levels, what they are of and the tone of what is said, from a file or the environment."""
    desk.user('levels = [40, 60]\nlevels_of = "limit"\n[levels_by]\nclaude = [30]\n')
    settings = desk.load({"BRIMLINE_LEVELS": "20, 45.5", "BRIMLINE_TONE": "neutral"})
    assert (settings.levels, settings.levels_of) == ((20.0, 45.5), "limit")
    assert (settings.levels_by, settings.tone) == ({"claude": (30.0,)}, "neutral")
    with pytest.raises(InvalidSettings, match="BRIMLINE_LEVELS"):
        desk.load({"BRIMLINE_LEVELS": "half"})


def test_state_dir(tmp_path: Path) -> None:
    """What must not be lost has a folder of its own: named, or where the system wants it."""
    assert state_dir({"BRIMLINE_STATE_DIR": "/here"}, tmp_path) == Path("/here")
    assert state_dir({"XDG_STATE_HOME": "/state"}, tmp_path) == Path("/state/brimline")
    assert state_dir({}, tmp_path) == tmp_path / ".local/state/brimline"


def test_socket_path() -> None:
    """A path that no system takes as a socket's is replaced by a short one, always the same."""
    assert socket_path(Path("/state"), 7) == Path("/state/hook.sock")
    long = Path("/state") / ("x" * 100)
    short = socket_path(long, 7, "http")
    assert short == socket_path(long, 7, "http")
    assert (short.parent, len(str(short)) < 100) == (Path("/tmp/brimline-7"), True)
    assert short != socket_path(long / "y", 7, "http")


def test_tables_are_laid_over_each_other(tmp_path: Path) -> None:
    """A project that sets one field of a table keeps the user's others."""
    there = Desk(tmp_path)
    there.user('[line]\nbar = 5\ncalm = "blue"\n[daemon]\nkeep = "7d"\n')
    there.project("[line]\nbar = 7\n")
    made = there.load(env={"BRIMLINE_AUTOSTART": "0"})
    assert (made.line.bar, made.line.calm) == (7, "blue")
    assert (made.daemon.keep, made.daemon.autostart) == ("7d", False)


@pytest.mark.parametrize("text", ["yes", "2", "true"])
def test_switch_that_is_none(tmp_path: Path, text: str) -> None:
    """A switch in the environment is 0 or 1."""
    with pytest.raises(InvalidSettings, match="expected 0 or 1"):
        Desk(tmp_path).load(env={"BRIMLINE_AUTOSTART": text})


def test_span_to_keep(tmp_path: Path) -> None:
    """How long sessions are kept is a span."""
    there = Desk(tmp_path)
    there.user('daemon = {keep = "long"}')
    with pytest.raises(InvalidSettings, match=r"daemon\.keep"):
        there.load()
