"""Settings: argument > environment > project file > user file > default."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from brimline.context.window import Overrides
from brimline.errors import InvalidSettings
from brimline.files.regular_file import MAX_SETTINGS_BYTES
from brimline.files.socket_path import socket_path
from brimline.settings import (
    PROJECT_FILE,
    Settings,
    agent_packages,
    cache_dir,
    describe_receive,
    load,
    project_file,
    seconds,
    state_dir,
    user_file,
)


class Workspace:
    """A home and a project."""

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
        return load(env or {}, self.home, self.cwd, arguments)


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path)


def test_defaults_assume_no_window(workspace: Workspace) -> None:
    assert workspace.load() == Settings()
    assert Settings().default_window is None
    assert Settings().since == "24h"


def test_each_layer_overrides_the_one_below(workspace: Workspace) -> None:
    workspace.user('since = "1h"\ncolour = "never"\ndefault_window = 1\ncache_dir = "user"')
    assert workspace.load().since == "1h"
    workspace.project('since = "2h"\ncolour = "always"\ndefault_window = 2')
    assert workspace.load().since == "2h"
    env = {"BRIMLINE_SINCE": "3h", "BRIMLINE_COLOUR": "auto"}
    assert workspace.load(env).since == "3h"
    loaded = workspace.load(env, {"since": "4h", "colour": None})
    assert loaded == Settings(since="4h", colour="auto", default_window=2, cache_dir="user")


def test_windows_and_limits_of_all_layers_are_merged_by_key(workspace: Workspace) -> None:
    workspace.user("[windows]\na = 1\nb = 2\n[limits]\na = 9")
    workspace.project("[windows]\nb = 3\nc = 4")
    env = {"BRIMLINE_WINDOWS": "c=5, d=1_000", "BRIMLINE_LIMITS": "claude/x=7,"}
    loaded = workspace.load(env, {"windows": {"d": 6}})
    assert loaded.windows == {"a": 1, "b": 3, "c": 5, "d": 6}
    assert loaded.limits == {"a": 9, "claude/x": 7}
    assert loaded.overrides == Overrides(loaded.windows, loaded.limits, None)


def test_empty_variable_is_ignored(workspace: Workspace) -> None:
    assert workspace.load({"BRIMLINE_SINCE": "", "BRIMLINE_DEFAULT_WINDOW": ""}) == Settings()


def test_user_file_is_found_by_variable_xdg_or_home(tmp_path: Path) -> None:
    usual = tmp_path / ".config" / "brimline" / "config.toml"
    assert user_file({}, tmp_path) == usual
    assert user_file({"XDG_CONFIG_HOME": ""}, tmp_path) == usual
    assert user_file({"XDG_CONFIG_HOME": "/x"}, tmp_path) == Path("/x/brimline/config.toml")
    assert user_file({"BRIMLINE_CONFIG": "/y.toml", "XDG_CONFIG_HOME": "/x"}, tmp_path) == (
        Path("/y.toml")
    )


def test_file_in_brimline_config_replaces_the_usual_one(
    workspace: Workspace, tmp_path: Path
) -> None:
    workspace.user('since = "1h"')
    named = tmp_path / "own.toml"
    named.write_text('since = "5h"', "utf-8")
    assert workspace.load({"BRIMLINE_CONFIG": str(named)}).since == "5h"


def test_nearest_project_file_counts_and_a_folder_does_not(workspace: Workspace) -> None:
    assert project_file(workspace.cwd) is None
    above = workspace.project("")
    assert project_file(workspace.cwd) == above
    (workspace.cwd / PROJECT_FILE).mkdir()
    assert project_file(workspace.cwd) == above


@pytest.mark.parametrize(
    ("text", "windows"),
    [
        ("context_window_tokens = 128000", {"*": 128_000}),
        ("[context_window_tokens]\nclaude = 1\n'pi/x' = 2", {"claude": 1, "pi/x": 2}),
        ("context_window_tokens = 5\nwindows = {'*' = 6, a = 7}", {"*": 6, "a": 7}),
        ("context_window_tokens = {a = 5, b = 8}\nwindows = {a = 6}", {"a": 6, "b": 8}),
    ],
)
def test_context_window_tokens_is_a_size_or_a_table_below_windows(
    workspace: Workspace, text: str, windows: dict[str, int]
) -> None:
    workspace.project(text)
    assert workspace.load() == Settings(windows=windows)


def test_context_window_tokens_is_merged_like_windows(workspace: Workspace) -> None:
    workspace.user("context_window_tokens = 1\nwindows = {a = 2}")
    workspace.project("context_window_tokens = {b = 3}")
    assert workspace.load().windows == {"*": 1, "a": 2, "b": 3}
    variable = "BRIMLINE_CONTEXT_WINDOW_TOKENS"
    assert workspace.load({variable: "4"}).windows == {"*": 4, "a": 2, "b": 3}
    assert workspace.load({variable: "b=5"}).windows == {"*": 1, "a": 2, "b": 5}
    assert workspace.load({variable: "4", "BRIMLINE_WINDOWS": "*=6"}).windows["*"] == 6


@pytest.mark.parametrize(
    ("text", "field", "problem"),
    [
        ("colour = 7", "colour", "Expected `str`"),
        ('colour = "pink"', "colour", "Invalid enum value 'pink'"),
        ('windows = {a = "x"}', "windows[...]", "Expected `int`, got `str`"),
        ("windows = {a = 0}", "windows.a", "expected more than 0: got 0"),
        ("limits = {a = -5}", "limits.a", "expected more than 0: got -5"),
        ("default_window = 0", "default_window", "expected more than 0: got 0"),
        ("budget = 0", "budget", "expected more than 0: got 0.0"),
        ("budget = nan", "budget", "expected more than 0: got nan"),
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
def test_wrong_file_names_path_field_and_expectation(
    workspace: Workspace, text: str, field: str, problem: str
) -> None:
    path = workspace.project(text)
    with pytest.raises(InvalidSettings) as caught:
        workspace.load()
    assert caught.value.place == str(path)
    assert caught.value.field == field
    assert problem in caught.value.problem


def test_fifo_in_place_of_a_file_is_ignored_without_blocking(workspace: Workspace) -> None:
    path = workspace.project("")
    path.unlink()
    os.mkfifo(path)
    assert workspace.load() == Settings()


def test_file_that_is_not_utf_8_is_an_error_with_its_path(workspace: Workspace) -> None:
    path = workspace.project("")
    path.write_bytes(b'since = "\xff"')
    with pytest.raises(InvalidSettings) as caught:
        workspace.load()
    assert caught.value.place == str(path)


def test_wrong_value_is_an_error_even_if_overridden(workspace: Workspace) -> None:
    path = workspace.user('since = "soon"')
    with pytest.raises(InvalidSettings) as caught:
        workspace.load({"BRIMLINE_SINCE": "1h"})
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
def test_variable_that_is_no_number_is_named(
    workspace: Workspace, variable: str, text: str
) -> None:
    with pytest.raises(InvalidSettings) as caught:
        workspace.load({variable: text})
    assert caught.value.place == variable
    assert caught.value.field == variable.removeprefix("BRIMLINE_").lower()


def test_variable_out_of_range_names_environment_and_field(workspace: Workspace) -> None:
    with pytest.raises(InvalidSettings, match=r"environment: limits\.claude"):
        workspace.load({"BRIMLINE_LIMITS": "claude=0"})


def test_wrong_argument_is_called_an_argument(workspace: Workspace) -> None:
    with pytest.raises(InvalidSettings, match="argument since: expected"):
        workspace.load(arguments={"since": "never"})


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
def test_duration_is_a_number_and_a_unit(text: str, expected: float) -> None:
    assert seconds(text) == expected


@pytest.mark.parametrize("text", ["", "5", "h", "-5h", "1h30m", "1 h", "1y", "1e3h", ".5h"])
def test_invalid_duration_names_value_and_place(text: str) -> None:
    with pytest.raises(InvalidSettings, match="expected a span") as caught:
        seconds(text, "since", "user file")
    assert (caught.value.place, caught.value.field) == ("user file", "since")


def test_cache_folder_is_set_or_below_xdg_or_home(tmp_path: Path) -> None:
    assert cache_dir(Settings(), {}, tmp_path) == tmp_path / ".cache" / "brimline"
    assert cache_dir(Settings(), {"XDG_CACHE_HOME": "/c"}, tmp_path) == Path("/c/brimline")
    assert cache_dir(Settings(cache_dir="/own"), {"XDG_CACHE_HOME": "/c"}, tmp_path) == Path("/own")


def test_settings_are_frozen() -> None:
    with pytest.raises(AttributeError):
        Settings().since = "1h"  # pyright: ignore[reportAttributeAccessIssue]


def test_levels_measure_and_tone_come_from_file_or_environment(workspace: Workspace) -> None:
    workspace.user(
        'levels = [40, 60]\nlevels_of = "limit"\nlevels_early = false\n[levels_by]\nclaude = [30]\n'
    )
    settings = workspace.load(
        {
            "BRIMLINE_LEVELS": "20, 45.5",
            "BRIMLINE_LEVELS_CALLS": "30, 10",
            "BRIMLINE_TONE": "neutral",
        }
    )
    assert settings.levels_calls == (30.0, 10.0)
    assert (settings.levels, settings.levels_of) == ((20.0, 45.5), "limit")
    assert not settings.levels_early
    assert (settings.levels_by, settings.tone) == ({"claude": (30.0,)}, "neutral")
    with pytest.raises(InvalidSettings, match="BRIMLINE_LEVELS"):
        workspace.load({"BRIMLINE_LEVELS": "half"})


def test_state_folder_is_set_or_where_the_system_wants_it(tmp_path: Path) -> None:
    assert state_dir({"BRIMLINE_STATE_DIR": "/here"}, tmp_path) == Path("/here")
    assert state_dir({"XDG_STATE_HOME": "/state"}, tmp_path) == Path("/state/brimline")
    assert state_dir({}, tmp_path) == tmp_path / ".local/state/brimline"


def test_too_long_socket_path_is_replaced_by_a_stable_short_one() -> None:
    assert socket_path(Path("/state"), 7) == Path("/state/hook.sock")
    long = Path("/state") / ("x" * 100)
    short = socket_path(long, 7, "http")
    assert short == socket_path(long, 7, "http")
    assert (short.parent, len(str(short)) < 100) == (Path("/tmp/brimline-7"), True)
    assert short != socket_path(long / "y", 7, "http")


def test_project_table_keeps_the_users_other_fields(tmp_path: Path) -> None:
    there = Workspace(tmp_path)
    there.user('[line]\nbar = 5\ncalm = "blue"\n[daemon]\nkeep = "7d"\n')
    there.project("[line]\nbar = 7\n")
    settings = there.load(env={"BRIMLINE_AUTOSTART": "0"})
    assert (settings.line.bar, settings.line.calm) == (7, "blue")
    assert (settings.daemon.keep, settings.daemon.autostart) == ("7d", False)


@pytest.mark.parametrize("chars", [0, 1_999, 9_001])
def test_draft_that_no_reply_can_hold_is_refused(tmp_path: Path, chars: int) -> None:
    there = Workspace(tmp_path)
    there.user(f"[handoff]\ndraft_chars = {chars}\n")
    with pytest.raises(InvalidSettings, match=r"handoff.draft_chars.*expected 2000 to 9000"):
        there.load()


def test_draft_may_be_smaller_in_one_project(tmp_path: Path) -> None:
    there = Workspace(tmp_path)
    there.project("[handoff]\ndraft_chars = 4000\n")
    assert there.load().handoff.draft_chars == 4_000


def test_database_in_the_environment_overrides_the_users_file(tmp_path: Path) -> None:
    there = Workspace(tmp_path)
    assert there.load().daemon.database is None
    there.user('daemon = {database = "postgresql:///one"}')
    assert there.load().daemon.database == "postgresql:///one"
    settings = there.load(env={"BRIMLINE_DATABASE": "postgresql:///other"})
    assert settings.daemon.database == "postgresql:///other"


@pytest.mark.parametrize("text", ["yes", "2", "true"])
def test_switch_in_the_environment_is_0_or_1(tmp_path: Path, text: str) -> None:
    with pytest.raises(InvalidSettings, match="expected 0 or 1"):
        Workspace(tmp_path).load(env={"BRIMLINE_AUTOSTART": text})


def test_retention_is_a_duration(tmp_path: Path) -> None:
    there = Workspace(tmp_path)
    there.user('daemon = {keep = "long"}')
    with pytest.raises(InvalidSettings, match=r"daemon\.keep"):
        there.load()


def test_uplink_is_read_from_the_file_and_the_environment(tmp_path: Path) -> None:
    there = Workspace(tmp_path)
    assert there.load().uplink.url is None
    there.user('[uplink]\nurl = "https://fleet.example:8443"\ntoken = "one"\nteam = "web"\n')
    settings = there.load(env={"BRIMLINE_UPLINK_TOKEN": "other"}).uplink
    assert (settings.url, settings.token) == ("https://fleet.example:8443", "other")
    assert (settings.team, settings.projects, settings.titles) == ("web", "name", False)
    settings = there.load(env={"BRIMLINE_UPLINK_URL": "http://127.0.0.1:9"}).uplink
    assert (settings.url, settings.token) == ("http://127.0.0.1:9", "one")


@pytest.mark.parametrize("url", ["mysql://ada:secret@db/fleet", "db.example", "postgresql:db"])
def test_database_that_is_not_postgresql_is_refused_without_its_password(
    tmp_path: Path, url: str
) -> None:
    with pytest.raises(
        InvalidSettings, match=r"daemon\.database: expected postgresql://"
    ) as raised:
        Workspace(tmp_path).load(env={"BRIMLINE_DATABASE": url})
    assert "secret" not in str(raised.value)


def test_unknown_value_of_uplink_receive_is_refused(tmp_path: Path) -> None:
    there = Workspace(tmp_path)
    there.user('[uplink]\nreceive = "messages"\n')
    with pytest.raises(InvalidSettings, match=r"uplink\.receive"):
        there.load()


@pytest.mark.parametrize("url", ["https://fleet", "http://localhost:9/base", "http://[::1]:9"])
def test_uplink_url_is_encrypted_or_on_this_machine(tmp_path: Path, url: str) -> None:
    assert Workspace(tmp_path).load(env={"BRIMLINE_UPLINK_URL": url}).uplink.url == url


@pytest.mark.parametrize(
    "url", ["http://fleet.example", "http://10.0.0.1", "ftp://localhost", "fleet", "https://"]
)
def test_uplink_url_that_would_send_the_token_in_clear_is_refused(tmp_path: Path, url: str) -> None:
    with pytest.raises(InvalidSettings, match=r"uplink\.url: expected https://HOST") as raised:
        Workspace(tmp_path).load(env={"BRIMLINE_UPLINK_URL": url})
    assert f"got {url}" in str(raised.value)


def test_uplink_url_with_a_bad_port_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidSettings, match=r"uplink\.url: Port"):
        Workspace(tmp_path).load(env={"BRIMLINE_UPLINK_URL": "https://fleet.example:high"})


def test_refused_uplink_url_is_shown_without_its_password(tmp_path: Path) -> None:
    with pytest.raises(InvalidSettings, match="got a URL with a user") as raised:
        Workspace(tmp_path).load(env={"BRIMLINE_UPLINK_URL": "http://user:secret@fleet.example"})
    assert "secret" not in str(raised.value)


def test_collectors_are_read_from_the_file_and_the_environment(tmp_path: Path) -> None:
    there = Workspace(tmp_path)
    there.user(
        '[telemetry]\nexport = "http://collector:4318"\nforward = "https://otel.example/base"\n'
        'headers = {Authorization = "Basic eA=="}\n'
    )
    telemetry = there.load().telemetry
    assert (telemetry.export, telemetry.forward) == (
        "http://collector:4318",
        "https://otel.example/base",
    )
    assert (telemetry.headers, telemetry.forward_headers) == ({"Authorization": "Basic eA=="}, {})
    env = {
        "BRIMLINE_TELEMETRY_EXPORT": "http://[::1]:4318",
        "BRIMLINE_TELEMETRY_HEADERS": "api-key=a=b, x-tenant = one,",
        "BRIMLINE_TELEMETRY_FORWARD": "http://localhost:9",
        "BRIMLINE_TELEMETRY_FORWARD_HEADERS": "api-key=c",
    }
    telemetry = there.load(env=env).telemetry
    assert (telemetry.export, telemetry.forward) == ("http://[::1]:4318", "http://localhost:9")
    assert telemetry.headers == {"api-key": "a=b", "x-tenant": "one"}
    assert telemetry.forward_headers == {"api-key": "c"}


@pytest.mark.parametrize("url", ["collector:4318", "http://", "grpc://collector", "http://c:high"])
@pytest.mark.parametrize("field", ["export", "forward"])
def test_collector_address_must_be_http(tmp_path: Path, field: str, url: str) -> None:
    with pytest.raises(InvalidSettings, match=rf"telemetry\.{field}: (expected http://HOST|Port)"):
        Workspace(tmp_path).load(env={f"BRIMLINE_TELEMETRY_{field.upper()}": url})


def test_collector_address_has_no_password(tmp_path: Path) -> None:
    with pytest.raises(InvalidSettings, match="credentials in headers") as raised:
        Workspace(tmp_path).load(env={"BRIMLINE_TELEMETRY_EXPORT": "http://user:secret@c:4318"})
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize("header", ["a b=secret", "=secret", "key=secret\r\nother: 1"])
def test_header_that_cannot_be_sent_is_refused_without_its_value(
    tmp_path: Path, header: str
) -> None:
    with pytest.raises(InvalidSettings, match=r"telemetry\.headers.*name of an HTTP") as raised:
        Workspace(tmp_path).load(env={"BRIMLINE_TELEMETRY_HEADERS": header})
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('trusted_proxies = ["proxy"]', "fleet.trusted_proxies: expected addresses or networks"),
        ('proxy_user_header = "X User"', "fleet.proxy_user_header: expected the name of a header"),
        ("requests_per_minute = 0", "fleet.requests_per_minute: expected more than 0"),
        ("bytes_per_minute = -1", "fleet.bytes_per_minute: expected more than 0"),
    ],
)
def test_impossible_settings_of_a_fleet_are_refused(
    tmp_path: Path, text: str, problem: str
) -> None:
    there = Workspace(tmp_path)
    there.user(f"[fleet]\n{text}")
    with pytest.raises(InvalidSettings, match=problem):
        there.load()


def test_trusted_proxies_are_addresses_and_networks(tmp_path: Path) -> None:
    there = Workspace(tmp_path)
    there.user('[fleet]\ntrusted_proxies = ["10.1.2.3/8", "::1"]\nproxy_user_header = "X-User"')
    assert there.load().fleet.trusted_proxies == ("10.1.2.3/8", "::1")
    env = {
        "BRIMLINE_FLEET_TRUSTED_PROXIES": "127.0.0.1, fd00::/8",
        "BRIMLINE_FLEET_PROXY_ORGANISATION": "acme",
        "BRIMLINE_FLEET_PROXY_USER_HEADER": "X-Other",
    }
    fleet = there.load(env=env).fleet
    assert fleet.trusted_proxies == ("127.0.0.1", "fd00::/8")
    assert (fleet.proxy_organisation, fleet.proxy_user_header) == ("acme", "X-Other")


def test_project_enables_an_agent_package(workspace: Workspace) -> None:
    """Only the user's own file names packages, whose code runs with the user's rights."""
    workspace.user('agents = ["aider-brimline"]')
    assert workspace.load().agents == ("aider-brimline",)
    assert agent_packages({}, workspace.home) == ("aider-brimline",)
    assert workspace.load({"BRIMLINE_AGENTS": "other"}).agents == ("aider-brimline",)
    path = workspace.project('agents = ["other"]')
    with pytest.raises(InvalidSettings, match="only your own settings") as raised:
        workspace.load()
    assert (raised.value.place, raised.value.field) == (str(path), "agents")


def test_broken_settings_enable_an_agent_package(workspace: Workspace) -> None:
    """A file that `load` refuses enables none."""
    workspace.user('agents = "aider-brimline"')
    assert agent_packages({}, workspace.home) == ()
    with pytest.raises(InvalidSettings):
        workspace.load()


def test_project_lets_prompts_pin(workspace: Workspace) -> None:
    """Another person may have written a project's file."""
    assert not workspace.load().pins.from_prompts
    workspace.user("[pins]\nfrom_prompts = true")
    assert workspace.load().pins.from_prompts
    path = workspace.project("[pins]\nfrom_prompts = true")
    with pytest.raises(InvalidSettings, match="only your own settings can pin") as raised:
        workspace.load()
    assert (raised.value.place, raised.value.field) == (str(path), "pins")


@pytest.mark.parametrize("line", ["rotate_at = 80", 'rotate_at_by = { "/" = 80 }'])
def test_file_of_a_repository_cannot_have_sessions_cleared(tmp_path: Path, line: str) -> None:
    """A clone could otherwise clear sessions; the user's own file may."""
    home, project = tmp_path / "home", tmp_path / "project"
    own = home / ".config/brimline/config.toml"
    for file in (own, project / ".brimline.toml"):
        file.parent.mkdir(parents=True, exist_ok=True)
    own.write_text(f"[handoff]\n{line}\n")
    (project / ".brimline.toml").write_text("[handoff]\ndraft_chars = 5000\n")
    loaded = load({}, home, project).handoff
    assert (loaded.rotate_at or loaded.rotate_at_by["/"], loaded.draft_chars) == (80, 5000)
    (project / ".brimline.toml").write_text(f"[handoff]\n{line}\n")
    with pytest.raises(InvalidSettings, match="only your own settings can have sessions cleared"):
        load({}, home, project)


@pytest.mark.parametrize("level", [92, 150, -1])
def test_rotation_beyond_the_limit_is_refused(tmp_path: Path, level: int) -> None:
    with pytest.raises(InvalidSettings, match="expected a percent of the limit, 0"):
        load({}, tmp_path, tmp_path, {"handoff": {"rotate_at": level}})


def test_what_agents_get_from_the_server_is_said_in_words() -> None:
    assert describe_receive("off") == 'receives nothing (uplink.receive = "off")'
