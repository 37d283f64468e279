"""One frozen Settings: argument > environment > project file > user file > default."""

import re
import unicodedata
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, TypeAlias

import msgspec

from brimline.context.inbox import MAX_CONTEXT_CHARS
from brimline.context.policy.levels import LAST_ROTATION_PERCENT
from brimline.context.window import Overrides
from brimline.errors import InvalidSettings
from brimline.files.loopback import is_loopback
from brimline.files.regular_file import read_regular_file
from brimline.files.setting_variables import LOOP_WINDOWS, PREFIX, read_variables
from brimline.terminal import colours

PROJECT_FILE = ".brimline.toml"
# What a project's file must not set, as another person may have written it, and what it does.
USER_FIELDS = {
    "agents": "enable packages",
    "pins": "pin from prompts",
    "handoff.rotate_at": "have sessions cleared",
    "handoff.rotate_at_by": "have sessions cleared",
}
DATABASE_SCHEMES = ("postgresql://", "postgres://")
MAX_BAR_COLUMNS, MAX_SEPARATOR_CHARS = 60, 20
MIN_INJECTED_CHARS = 2_000  # less than half of it would be the draft

Colour: TypeAlias = Literal["auto", "always", "never"]
LevelsOf: TypeAlias = Literal["earlier", "window", "limit", "tokens"]
Tone: TypeAlias = Literal["helpful", "neutral"]
ProjectNames: TypeAlias = Literal["name", "hash"]
Receive: TypeAlias = Literal["off", "handoffs", "all"]
SettingProblem: TypeAlias = tuple[str, str]  # the field, such as `uplink.url`, and what is wrong
LinePart: TypeAlias = Literal[
    "context", "left", "next", "quota", "cache", "calls", "cost", "handoff"
]
NoticeKind: TypeAlias = Literal[
    "level", "any level", "compacting", "compacted", "thrash", "no data", "no window", "disagree"
]
Text: TypeAlias = Literal[
    "warning",
    "critical",
    "subagent_warning",
    "subagent",
    "parent",
    "compacted",
    "thrash",
    "ended",
]


class LineSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How the status line looks: its parts in their order, what is between them, its colours.

    `bar` is how many columns the bar has; 0 is none. A colour is a name such as green or
    bright_red, a number of the 256, or `#rrggbb`.
    """

    parts: tuple[LinePart, ...] = ("context", "left", "quota", "calls", "cost", "handoff")
    separator: str = " | "
    bar: int = 10
    calm: str = "green"
    warm: str = "yellow"
    hot: str = "red"


class DaemonSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Whether a new session starts the daemon, and how long the daemon keeps sessions.

    `database` is the URL of a PostgreSQL database that it uses instead of a file.
    `context_usage_without_secret` opens `POST /hooks/context-usage` and `GET /sessions/ID` to every
    user and program of this machine: they can then read a session's usage and report any figures.
    """

    autostart: bool = True
    keep: str = "90d"
    database: str | None = None
    context_usage_without_secret: bool = False


class HandoffSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How long injected drafts are, and when sessions in tmux are handed over and cleared.

    `draft_chars` is the most characters of a draft, with the lines around it: 2000 to 9000.
    `rotate_at` is a percent of the limit, below 92; `rotate_at_by` has others by folder, 0 is off.
    """

    draft_chars: int = MAX_CONTEXT_CHARS
    rotate_at: float | None = None
    rotate_at_by: dict[str, float] = msgspec.field(default_factory=dict[str, float])


class PinSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Whether a line `PIN: ...` of a prompt is pinned for its session.

    Only the user's own settings can have it: a project's file would let a repository decide.
    """

    from_prompts: bool = False


class StopSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What may keep an agent's turn from ending: by default only messages sent to do so.

    `last_level` lets the message of the last level do it too, in interactive sessions. `headless`
    lets messages do it in headless runs such as `claude -p`: the run takes another turn, and its
    result is the answer to the message. `from_servers` lets messages of a fleet's server do it.
    """

    last_level: bool = False
    headless: bool = False
    from_servers: bool = False


class Notify(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Of which kinds of signals the user is notified, and how.

    `level` is the last level, `any level` every one. `webhook` receives the notice as JSON by POST,
    `command` reads it on standard input; `bell` and `osc9` go to the agent's terminal.
    """

    of: tuple[NoticeKind, ...] = ("level", "thrash", "no data", "no window", "disagree")
    bell: bool = False
    osc9: bool = False
    desktop: bool = False
    webhook: str | None = None
    command: tuple[str, ...] = ()


class UplinkSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The fleet's server that the daemon reports to, and what it reports.

    `token` is of scope enrol or ingest, or `token_file` a file with it. `user` is by default the
    name of the account, and not sent if empty. A project is sent as the last part of its path or,
    with `projects = "hash"`, as a hash of the path, as are its branches; the titles of a session
    and its subagents only with `titles`. Sessions that were seen within `history` are reported.
    `receive` is what the server may send to agents here: nothing, handoffs, or messages too.
    """

    url: str | None = None
    token: str | None = None
    token_file: str | None = None
    team: str | None = None
    user: str | None = None
    projects: ProjectNames = "name"
    titles: bool = False
    history: str = "30d"
    receive: Receive = "off"


class TelemetrySettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """OpenTelemetry collectors that get our readings and signals, and what clients send here.

    `export` and `forward` are their addresses, such as http://localhost:4318, without `/v1/logs`.
    `headers` are sent to `export`, `forward_headers` to `forward`, for example credentials.
    """

    export: str | None = None
    headers: dict[str, str] = msgspec.field(default_factory=dict[str, str])
    forward: str | None = None
    forward_headers: dict[str, str] = msgspec.field(default_factory=dict[str, str])


class FleetSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A fleet's server: users that a proxy has signed in, and the limits of each token.

    A request from one of `trusted_proxies`, addresses or networks, is that of the user whom
    `proxy_user_header` names. These users belong to `proxy_organisation` and have `proxy_scopes`.
    The limits of requests and bytes a minute hold for each token or user, on each replica.
    `keep_sums` is how long the sums of days are kept, which outlive their sessions.
    """

    proxy_user_header: str | None = None
    trusted_proxies: tuple[str, ...] = ()
    proxy_organisation: str = "default"
    proxy_scopes: tuple[Literal["read", "act"], ...] = ("read", "act")
    requests_per_minute: int = 12_000
    bytes_per_minute: int = 256 << 20
    keep_sums: str = "400d"


_UNITS = {"m": 60, "h": 3_600, "d": 86_400, "w": 604_800}


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a user can set. `windows` and `limits` are by model, agent, `agent/model` or `*`.

    `context_window_tokens = 128000` in a file is another way to say `windows = {"*" = 128000}`.
    An agent gets a message at each of the `levels`, in percent of the window unless `levels_of` is
    set, and at the default ones also in time before the limit; `levels_by` has others for a model,
    an agent, `agent/model` or a session. It gets one too when the calls left fall to one of
    `levels_calls`. `levels_early`: it gets the message with the result or the prompt by which the
    next call will reach the level. `texts` are templates of the messages. `parent` is the session
    that is notified of this project's sessions. `budget` is what a session may cost, in dollars.
    """

    windows: dict[str, int] = msgspec.field(default_factory=dict[str, int])
    limits: dict[str, int] = msgspec.field(default_factory=dict[str, int])
    default_window: int | None = None
    since: str = "24h"
    colour: Colour = "auto"
    cache_dir: str | None = None
    levels: tuple[float, ...] = (50.0, 65.0)
    levels_of: LevelsOf | None = None
    levels_by: dict[str, tuple[float, ...]] = msgspec.field(
        default_factory=dict[str, tuple[float, ...]]
    )
    levels_early: bool = True
    levels_calls: tuple[float, ...] = ()
    tone: Tone = "helpful"
    texts: dict[Text, str] = msgspec.field(default_factory=dict[Text, str])
    parent: str | None = None
    budget: float | None = None
    agents: tuple[str, ...] = ()
    line: LineSettings = LineSettings()
    notify: Notify = Notify()
    handoff: HandoffSettings = HandoffSettings()
    pins: PinSettings = PinSettings()
    stop: StopSettings = StopSettings()
    daemon: DaemonSettings = DaemonSettings()
    uplink: UplinkSettings = UplinkSettings()
    telemetry: TelemetrySettings = TelemetrySettings()
    fleet: FleetSettings = FleetSettings()

    @property
    def overrides(self) -> Overrides:
        return Overrides(self.windows, self.limits, self.default_window)


def seconds(
    text: str,
    field: str = "since",
    place: str = "argument",
    expected: str = "a span such as 90m, 24h, 7d, 2w",
) -> float:
    """Convert a span such as 90m, 24h, 7d or 2w; raises InvalidSettings."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([mhdw])", text.strip())
    if not match:
        raise InvalidSettings(place, field, f"expected {expected}: got {text!r}")
    return float(match[1]) * _UNITS[match[2]]


def load(
    env: Mapping[str, str], home: Path, cwd: Path, arguments: Mapping[str, Any] | None = None
) -> Settings:
    """Merge the settings of all layers; InvalidSettings names the place and the field."""
    merged: dict[str, Any] = {}
    user = user_file(env, home)
    for path in (user, project_file(cwd)):
        if path is not None and path.is_file():
            layer = _toml(path)
            for field, purpose in USER_FIELDS.items():
                if path != user and _has_field(layer, field):
                    reason = f"only your own settings can {purpose}: {user}"
                    raise InvalidSettings(str(path), field, reason)
            _merge(merged, layer, str(path))
    _merge(merged, read_variables(env), "environment")
    given = {name: value for name, value in (arguments or {}).items() if value is not None}
    _merge(merged, given, "argument")
    return _convert(merged, "settings")


def _has_field(layer: Mapping[str, Any], field: str) -> bool:
    table, _, name = field.partition(".")
    return table in layer and (
        not name or (isinstance(layer[table], dict) and name in layer[table])
    )


def agent_packages(env: Mapping[str, str], home: Path) -> tuple[str, ...]:
    """Return the packages that the user enabled; none if the file cannot be used: `load` raises."""
    path = user_file(env, home)
    try:
        layer = _toml(path) if path.is_file() else {}
        return _convert({"agents": layer.get("agents", ())}, str(path)).agents
    except InvalidSettings:
        return ()


def user_file(env: Mapping[str, str], home: Path) -> Path:
    """Return BRIMLINE_CONFIG, else config.toml below XDG_CONFIG_HOME or ~/.config."""
    if named := env.get(f"{PREFIX}CONFIG"):
        return Path(named)
    return Path(env.get("XDG_CONFIG_HOME") or home / ".config") / "brimline" / "config.toml"


def project_file(cwd: Path) -> Path | None:
    """Return the nearest project file, from `cwd` upwards."""
    paths = (folder / PROJECT_FILE for folder in (cwd, *cwd.parents))
    return next((path for path in paths if path.is_file()), None)


def cache_dir(settings: Settings, env: Mapping[str, str], home: Path) -> Path:
    """Return the folder of what can be computed again."""
    if settings.cache_dir:
        return Path(settings.cache_dir).expanduser()
    return Path(env.get("XDG_CACHE_HOME") or home / ".cache") / "brimline"


def state_dir(env: Mapping[str, str], home: Path) -> Path:
    """Return the folder of the daemon's store, sockets and spool."""
    if named := env.get(f"{PREFIX}STATE_DIR"):
        return Path(named)
    return Path(env.get("XDG_STATE_HOME") or home / ".local" / "state") / "brimline"


def _merge(merged: dict[str, Any], layer: Mapping[str, Any], place: str) -> None:
    """Check a layer by itself, so that an error names its place, and lay it over the others."""
    named = _with_windows(layer, place)
    checked = _convert(named, place)
    for name in named:
        value = getattr(checked, name)
        table = named[name] if isinstance(value, msgspec.Struct) else value
        merged[name] = {**merged.get(name, {}), **table} if isinstance(table, dict) else table


def _with_windows(layer: Mapping[str, Any], place: str) -> dict[str, Any]:
    """Move `context_window_tokens` of a layer into its `windows`; those that are there win."""
    named = dict(layer)
    if LOOP_WINDOWS not in named:
        return named
    value: Any = named.pop(LOOP_WINDOWS)
    try:
        loop = _convert({"windows": value if isinstance(value, dict) else {"*": value}}, place)
    except InvalidSettings as error:
        raise InvalidSettings(place, LOOP_WINDOWS, error.problem) from error
    own: Any = named.get("windows", {})
    return {**named, "windows": {**loop.windows, **own} if isinstance(own, dict) else own}


def _convert(values: dict[str, Any], place: str) -> Settings:
    try:
        settings = msgspec.convert(values, Settings)
    except msgspec.ValidationError as error:
        reason, _, where = str(error).partition(" - at ")
        raise InvalidSettings(place, where.strip("`$.") or "settings", reason) from error
    for table in ("windows", "limits"):
        for key, tokens in getattr(settings, table).items():
            if tokens <= 0:
                reason = f"expected more than 0: got {tokens}"
                raise InvalidSettings(place, f"{table}.{key}", reason)
    for field in ("default_window", "budget"):
        if (value := getattr(settings, field)) is not None and not value > 0:
            raise InvalidSettings(place, field, f"expected more than 0: got {value}")
    seconds(settings.since, place=place)
    seconds(settings.daemon.keep, "daemon.keep", place)
    seconds(settings.uplink.history, "uplink.history", place)
    seconds(settings.fleet.keep_sums, "fleet.keep_sums", place)
    database = settings.daemon.database
    if database is not None and not database.startswith(DATABASE_SCHEMES):
        # Without what came: it may have a password.
        raise InvalidSettings(place, "daemon.database", "expected postgresql://USER@HOST/DATABASE")
    for field, reason in (
        *line_problems(settings.line),
        *handoff_problems(settings.handoff),
        *uplink_problems(settings.uplink),
        *telemetry_problems(settings.telemetry),
        *fleet_problems(settings.fleet),
    ):
        raise InvalidSettings(place, field, reason)
    return settings


def handoff_problems(handoff: HandoffSettings) -> Iterator[SettingProblem]:
    """Yield why a draft cannot have this size, or a session be rotated at this level."""
    if not MIN_INJECTED_CHARS <= handoff.draft_chars <= MAX_CONTEXT_CHARS:
        expected = f"expected {MIN_INJECTED_CHARS} to {MAX_CONTEXT_CHARS}"
        yield "handoff.draft_chars", f"{expected}: got {handoff.draft_chars}"
    levels = {f"rotate_at_by.{folder}": level for folder, level in handoff.rotate_at_by.items()}
    for field, level in {"rotate_at": handoff.rotate_at, **levels}.items():
        if level is not None and not 0 <= level < LAST_ROTATION_PERCENT:
            expected = f"expected a percent of the limit, 0 (off) to {LAST_ROTATION_PERCENT - 1:g}"
            yield f"handoff.{field}", f"{expected}: got {level:g}"


def line_problems(line: LineSettings) -> Iterator[SettingProblem]:
    """Yield the fields that a status line cannot be rendered with, and why."""
    if not line.parts or len(set(line.parts)) < len(line.parts):
        parts = ", ".join(line.parts) or "none"
        yield "line.parts", f"expected one part or more, each once: got {parts}"
    has_control = any(unicodedata.category(char) == "Cc" for char in line.separator)
    if len(line.separator) > MAX_SEPARATOR_CHARS or has_control:
        expected = f"at most {MAX_SEPARATOR_CHARS} characters without control characters"
        yield "line.separator", f"expected {expected}: got {line.separator!r}"
    if not 0 <= line.bar <= MAX_BAR_COLUMNS:
        yield "line.bar", f"expected 0 to {MAX_BAR_COLUMNS} columns: got {line.bar}"
    for field in ("calm", "warm", "hot"):
        if colours.code(colour := getattr(line, field)) is None:
            yield f"line.{field}", f"expected {colours.ALLOWED}: got {colour!r}"


def describe_receive(receive: Receive) -> str:
    """Return what agents get from the server, in words."""
    accepted = {"off": "nothing", "handoffs": "handoffs", "all": "messages and handoffs"}
    return f'receives {accepted[receive]} (uplink.receive = "{receive}")'


def uplink_problems(uplink: UplinkSettings) -> Iterator[SettingProblem]:
    """Yield why a token cannot be sent to the server: others must not read it on its way."""
    if uplink.url is None:
        return
    try:
        scheme, host = _split_url(uplink.url)
    except ValueError as error:
        yield "uplink.url", str(error)
        return
    is_private = bool(host) if scheme == "https" else is_loopback(host)
    if scheme not in ("http", "https") or not is_private:
        expected = "expected https://HOST[:PORT], or http:// for a server on this machine"
        yield "uplink.url", f"{expected}: got {_without_user(uplink.url)}"


def telemetry_problems(telemetry: TelemetrySettings) -> Iterator[SettingProblem]:
    """Yield the addresses and headers of collectors that cannot be used, and why."""
    for field in ("export", "forward"):
        url: str | None = getattr(telemetry, field)
        if url is None:
            continue
        try:
            scheme, host = _split_url(url)
        except ValueError as error:
            yield f"telemetry.{field}", str(error)
            continue
        if scheme not in ("http", "https") or not host or _without_user(url) != url:
            expected = "expected http://HOST:PORT or https://HOST, credentials in headers"
            yield f"telemetry.{field}", f"{expected}: got {_without_user(url)}"
    for field in ("headers", "forward_headers"):
        headers: dict[str, str] = getattr(telemetry, field)
        for name, value in headers.items():
            if not re.fullmatch(r"[\w!#$%&'*+.^`|~-]+", name, re.ASCII) or not value.isprintable():
                problem = "expected the name of an HTTP header, and a value in one line"
                yield f"telemetry.{field}.{name}", problem


def fleet_problems(fleet: FleetSettings) -> Iterator[SettingProblem]:
    """Yield the fields that a fleet's server cannot use, and why."""
    for address in fleet.trusted_proxies:
        from ipaddress import ip_network  # only a server needs it: it takes 2 ms

        try:
            ip_network(address, strict=False)
        except ValueError:
            yield "fleet.trusted_proxies", f"expected addresses or networks: got {address!r}"
    header = fleet.proxy_user_header
    if header is not None and not re.fullmatch(r"[A-Za-z0-9-]+", header):
        yield "fleet.proxy_user_header", f"expected the name of a header: got {header!r}"
    for field in ("requests_per_minute", "bytes_per_minute"):
        if (limit := getattr(fleet, field)) <= 0:
            yield f"fleet.{field}", f"expected more than 0: got {limit}"


def _split_url(url: str) -> tuple[str, str]:
    """Return the scheme and the host; raises ValueError."""
    from urllib.parse import urlsplit

    parts = urlsplit(url)
    host, _ = parts.hostname or "", parts.port  # which raises if it is no number
    return parts.scheme, host


def _without_user(url: str) -> str:
    """Return what may be shown of a URL: it may have a password."""
    return "a URL with a user" if "@" in url else url


def _toml(path: Path) -> dict[str, Any]:
    import tomllib

    try:
        return tomllib.loads(read_regular_file(path).decode("utf-8"))
    except OSError as error:
        problem = f"cannot be read: {error.strerror or error}"
        raise InvalidSettings(str(path), "file", problem) from error
    except (ValueError, RecursionError) as error:
        raise InvalidSettings(str(path), "file", str(error)) from error
