"""`brimline fleet status` and `fleet audit` against a running server."""

import asyncio
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest

from brimline.api.uplink import INVALID_ID
from brimline.cli.fleet import NO_ENTRIES, NO_MACHINES
from brimline.daemon.uplink.protocol import PATH, UplinkBatch, UplinkSession
from fleet_server import FleetProcess, new_token
from postgres_server import new_schema
from web.fleet_story import ORGANISATION, write_fleet

from .terminal import User


class Server(NamedTuple):
    """A server, and files with a token that may read and act, and one that may not."""

    process: FleetProcess
    readable: Path
    other: Path


@pytest.fixture(scope="module")
def server(postgres: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("fleet")
    with new_schema(postgres) as url:
        readable, other = folder / "read", folder / "ingest"
        readable.write_text(asyncio.run(write_fleet(url, 30, machines=0)))
        other.write_text(new_token(url, ORGANISATION, "ingest"))
        process = FleetProcess(url, folder)
        yield Server(process, readable, other)
        process.close()


def test_status_shows_groups_and_who_needs_a_handoff(server: Server, user: User) -> None:
    url, readable = server.process.url, server.readable
    asked = ("fleet", "status", "--url", url, "--token-file", str(readable))
    shown = user.run(*asked, "--by", "version")
    assert [line.split()[:3] for line in shown.lines[1:3]] == [
        ["claude", "2.1.5", "15"], ["codex", "2.0.9", "15"],
    ]  # fmt: skip
    assert shown.lines[3].split()[:3] == ["all", "30", "100.0%"]
    assert shown.lines[4].startswith("27 sessions without a fresh handoff")
    by_branch = user.run(*asked, "--by", "branch").lines
    assert by_branch[1].split()[:3] == ["no", "branch", "10"]
    assert any(line.startswith("checkout: main ") for line in by_branch)
    # A script gets all of it, whatever the width; a person what fits.
    whole = user.run(*asked, "--by", "branch", COLUMNS="40").out
    assert "…" not in whole
    assert " misses\n" in whole
    assert "misses" not in user.on_terminal(*asked, columns=40).out
    answer = user.run(*asked, "--json").json
    assert (answer["by"], answer["total"]["sessions"]) == ("team", 30)
    # The settings of the machine's uplink are the default.
    user.env |= {"BRIMLINE_UPLINK_URL": url, "BRIMLINE_UPLINK_TOKEN": readable.read_text()}
    assert user.run("fleet", "status", "--since", "24h").lines[-2].split()[:2] == ["all", "30"]


def test_status_says_why_there_is_none(server: Server, user: User) -> None:
    url, other = server.process.url, server.other
    asked = ("fleet", "status", "--token-file", str(other))
    for options, problem in (
        (("--url", url), "lacks the scope 'read'"),
        (("--url", f"{url}/elsewhere"), "Not Found"),
        (("--url", "http://127.0.0.1:9"), "the server does not answer: Connection refused"),
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


def test_usage_shows_what_groups_used(server: Server, user: User) -> None:
    """Of a span or of days, in all or by period; as CSV with all groups."""
    asked = ("fleet", "usage", "--url", server.process.url, "--token-file", str(server.readable))
    total = user.run(*asked, "--since", "7d", "--by", "agent").lines
    assert total[0].endswith(", in UTC")
    assert [line.split()[:3] for line in total[2:]] == [
        ["claude", "15", "15"], ["codex", "15", "15"], ["all", "30", "30"],
    ]  # fmt: skip
    assert [line.split()[-2:] for line in total[2:]] == [
        ["$6.00", "$1.05"], ["$6.00", "$1.05"], ["$12.00", "$2.10"],
    ]  # fmt: skip
    by_week = user.run(*asked, "--since", "7d", "--by", "agent", "--per", "week").lines
    assert "-W" in by_week[2].split()[0]
    table = user.run(*asked, "--since", "7d", "--by", "agent", "--csv").lines
    assert table[0].startswith("month,agent,sessions,calls,input,")
    assert len(table) >= 3
    answer = user.run(*asked, "--from", "2020-01-01", "--to", "2020-01-31", "--json").json
    assert (answer["total"]["calls"], len(answer["periods"])) == (0, 1)
    assert "expected a day such as" in user.run(*asked, "--from", "monday").err
    assert "the first one first" in user.run(*asked, "--from", "2999-01-01").err


def test_machines_lists_who_reports_and_what_is_refused(server: Server, user: User) -> None:
    asked = ("fleet", "machines", "--url", server.process.url)
    readable = (*asked, "--token-file", str(server.readable))
    assert user.run(*readable).out == f"{NO_MACHINES}\n"
    batches = [
        UplinkBatch("a" * 32, "laptop", "1.0", "ada", "web", [UplinkSession("n1", "claude", 1.0)]),
        UplinkBatch("b" * 32, "desk\x1b[31m", "1.1", receive="messages", behind=7),
        UplinkBatch("c" * 32, "old", "0.9", sessions=[UplinkSession("", "claude", 1.0)]),
    ]
    for batch in batches:
        body = msgspec.json.encode(batch)
        reply = server.process.request("POST", PATH, server.other.read_text(), body)
        assert reply.status == 200, reply
    lines = user.run(*readable).lines
    assert lines[0].split() == ["id", "host", "user", "team", "last", "report", "brimline",
                                "clients", "accepts", "token", "behind", "refused"]  # fmt: skip
    shown = {line.split()[1]: line for line in lines[1:]}
    assert shown.keys() == {"laptop", "desk�[31m", "old"}
    assert shown["laptop"].split()[0] == "a" * 8
    assert shown["laptop"].split()[2:4] == ["ada", "web"]
    assert shown["desk�[31m"].split()[-2:] == ["messages", "7"]
    assert shown["old"].endswith(f"1: {INVALID_ID}")
    listed = user.run(*readable, "--json").json
    assert {each["host"]: each["refused"] for each in listed}["old"] == 1
    assert "no machine has been silent for 1d" in user.run(*readable, "--silent", "1d").out
    assert "expected" in user.run(*readable, "--silent", "soon").err
    metrics = server.process.request("GET", "/metrics", server.readable.read_text()).body.decode()
    assert "brimline_machines 3" in metrics
    assert "brimline_machines_silent 0" in metrics
    assert "brimline_tokens_ending 0" in metrics


def test_audit_lists_who_sent_what_the_last_first(server: Server, user: User) -> None:
    asked = ("fleet", "audit", "--url", server.process.url, "--token-file", str(server.readable))
    assert user.run(*asked).out == f"{NO_ENTRIES}\n"
    token = server.readable.read_text()
    sent = [
        server.process.request("POST", f"/v1/sessions/{session}/messages", token, {"text": "Hi."})
        for session in ("s0", "s4")
    ]
    assert [each.status for each in sent] == [201, 201], sent
    shown = user.run(*asked, COLUMNS="120")
    times, rows = zip(*((line[:19], line[19:].split()) for line in shown.lines[1:]), strict=True)
    assert list(rows) == [
        ["Ada", "message", "s4", sent[1].json["id"]],
        ["Ada", "message", "s0", sent[0].json["id"]],
    ]
    assert all(datetime.fromisoformat(time) for time in times)
    assert len(user.run(*asked, "--limit", "1").lines) == 2
    assert [entry["session"] for entry in user.run(*asked, "--json").json] == ["s4", "s0"]


def test_audit_says_why_there_is_none(server: Server, user: User) -> None:
    asked = ("fleet", "audit", "--url", server.process.url, "--token-file", str(server.other))
    assert "lacks the scope 'read'" in user.run(*asked).err
    assert "not allowed with audit" in user.run("fleet", "audit", "codex", *asked[2:]).err
    for limit in ("0", "1001", "all"):
        assert "expected a number from 1 to 1,000" in user.run(*asked, "--limit", limit).err
