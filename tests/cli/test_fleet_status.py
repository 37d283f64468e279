"""`brimline fleet status` against a running server."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from fleet_server import FleetProcess, new_token
from postgres_server import new_schema
from web.fleet_story import ORGANISATION, write_fleet

from .terminal import User


@pytest.fixture(scope="module")
def server(
    postgres: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, Path, Path]]:
    """A server's address, and files with a token that may read, and one that may not."""
    folder = tmp_path_factory.mktemp("fleet")
    with new_schema(postgres) as url:
        readable, other = folder / "read", folder / "ingest"
        readable.write_text(asyncio.run(write_fleet(url, 30)))
        other.write_text(new_token(url, ORGANISATION, "ingest"))
        process = FleetProcess(url, folder)
        yield process.url, readable, other
        process.close()


def test_status_shows_groups_and_who_needs_a_handoff(
    server: tuple[str, Path, Path], user: User
) -> None:
    url, readable, _ = server
    asked = ("fleet", "status", "--url", url, "--token-file", str(readable))
    shown = user.run(*asked, "--by", "version")
    assert [line.split()[:3] for line in shown.lines[1:3]] == [
        ["claude", "2.1.5", "15"], ["codex", "2.0.9", "15"],
    ]  # fmt: skip
    assert shown.lines[3].split()[:3] == ["all", "30", "100.0%"]
    assert shown.lines[4].startswith("27 sessions without a fresh handoff")
    answer = user.run(*asked, "--json").json
    assert (answer["by"], answer["total"]["sessions"]) == ("team", 30)
    # The settings of the machine's uplink are the default.
    user.env |= {"BRIMLINE_UPLINK_URL": url, "BRIMLINE_UPLINK_TOKEN": readable.read_text()}
    assert user.run("fleet", "status", "--since", "24h").lines[-2].split()[:2] == ["all", "30"]


def test_status_says_why_there_is_none(server: tuple[str, Path, Path], user: User) -> None:
    url, _, other = server
    asked = ("fleet", "status", "--token-file", str(other))
    for options, problem in (
        (("--url", url), "lacks the scope 'read'"),
        (("--url", f"{url}/elsewhere"), "Not Found"),
        (("--url", "http://127.0.0.1:9"), "the server does not answer"),
        (("--url", "http://fleet.example.com"), "expected https"),
        ((), "missing: pass it, or set uplink.url"),
    ):
        refused = user.run(*asked, *options)
        assert (refused.code, refused.out) == (2, "")
        assert problem in refused.err
    no_token = user.run("fleet", "status", "--url", url)
    assert "--token-file: missing" in no_token.err
    # A project that the user has cloned must not get the token of their uplink.
    user.env |= {"BRIMLINE_UPLINK_TOKEN": "brim_x"}
    (user.cwd / ".brimline.toml").write_text(f'[uplink]\nurl = "{url}"\n')
    assert "missing: pass it, or set uplink.url" in user.run("fleet", "status").err
    assert "not allowed with status" in user.run("fleet", "status", "codex").err
