"""Settings of connections to other machines: the uplink, collectors, a fleet's server."""

import re
from collections.abc import Iterator
from typing import Literal, TypeAlias

import msgspec

from brimline.files.loopback import is_loopback

ProjectNames: TypeAlias = Literal["name", "hash"]
Receive: TypeAlias = Literal["off", "handoffs", "all"]
SettingProblem: TypeAlias = tuple[str, str]  # the field, such as `uplink.url`, and what is wrong


class UplinkSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The fleet's server that the daemon reports to, and what it reports.

    `token` is its token of scope ingest, or `token_file` a file with it. `user` is by default the
    name of the account, and not sent if empty. A project is sent as the last part of its path or,
    with `projects = "hash"`, as a hash of the path, as are its branches; a session's title only
    with `titles`.
    `receive` is what the server may send to agents here: nothing, handoffs, or messages too.
    """

    url: str | None = None
    token: str | None = None
    token_file: str | None = None
    team: str | None = None
    user: str | None = None
    projects: ProjectNames = "name"
    titles: bool = False
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
    """

    proxy_user_header: str | None = None
    trusted_proxies: tuple[str, ...] = ()
    proxy_organisation: str = "default"
    proxy_scopes: tuple[Literal["read", "act"], ...] = ("read", "act")
    requests_per_minute: int = 12_000
    bytes_per_minute: int = 256 << 20


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
