"""`brimline token`, and the arguments of a fleet's server."""

import asyncio
import csv
import json
import os
import re
import resource
import time
from collections.abc import Awaitable, Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from msgspec.structs import replace

from brimline.cli import main
from brimline.daemon.uplink.token_text import TEXT_PATTERN
from brimline.server.fleet.authentication import create_token
from brimline.server.fleet.server import ListenAddress
from brimline.store.fleet import MachineReport
from brimline.store.postgres import open_database
from brimline.store.postgres.database import PostgresDatabase
from postgres_server import execute


class Ran(NamedTuple):
    code: int
    out: str
    err: str


class Shell:
    """Runs commands in this process."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def run(self, *words: str) -> Ran:
        code = main(words)
        out, err = self._capsys.readouterr()
        return Ran(code, out, err)


@pytest.fixture(scope="module")
def database_url(postgres: str) -> Iterator[str]:
    from postgres_server import new_schema

    with new_schema(postgres) as url:
        yield url


@pytest.fixture
def shell(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Shell:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "100")
    for name in ("BRIMLINE_DATABASE", "BRIMLINE_CONFIG", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    return Shell(capsys)


def test_token_is_created_listed_and_revoked(
    shell: Shell, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BRIMLINE_DATABASE", database_url)
    assert shell.run("token", "list").out == "no tokens of default\n"
    words = ("--name", "laptops", "--scope", "ingest", "--scope", "read")
    created = shell.run("token", "create", *words, "--expires", "7d")
    assert TEXT_PATTERN.fullmatch(created.out.strip())
    about = re.fullmatch(r"id (\w+), scopes ingest, read, expires in 7d\. .*\n", created.err)
    assert about is not None
    listed = shell.run("token", "list").out
    assert re.search(rf"{about[1]}\s+laptops\s+ingest, read\s+7d left\s+\d+s\s+never", listed)
    assert created.out.strip() not in listed
    assert shell.run("token", "list", "--organisation", "acme").out == "no tokens of acme\n"
    other = shell.run("token", "revoke", about[1], "--organisation", "acme")
    assert (other.code, "no valid token" in other.err) == (2, True)
    assert shell.run("token", "revoke", about[1]).code == 0
    assert "revoked" in shell.run("token", "list").out
    assert shell.run("token", "revoke", about[1]).code == 2


def test_json_has_the_token_once(shell: Shell, database_url: str) -> None:
    where = ("--database", database_url, "--organisation", "json", "--json")
    words = ("--name", "ci", "--scope", "act", "--expires", "never")
    created = json.loads(shell.run("token", "create", *words, *where).out)
    assert TEXT_PATTERN.fullmatch(created["token"])
    assert (created["scopes"], created["expires_at"]) == (["act"], None)
    (listed,) = json.loads(shell.run("token", "list", *where).out)
    assert listed == created | {"token": None}
    assert abs(time.time() - listed["created_at"]) < 60
    revoke = ("token", "revoke", listed["id"], *where)
    planned = json.loads(shell.run(*revoke, "--dry-run").out)
    assert planned == {"dry_run": True, "revoked": [listed], "shared": []}
    done = json.loads(shell.run(*revoke).out)
    [revoked] = done["revoked"]
    assert (done["dry_run"], revoked["id"]) == (False, listed["id"])
    assert abs(time.time() - revoked["revoked_at"]) < 60


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("create", "--scope", "read"), "argument --name: missing"),
        (("create", "--name", "a\x07", "--scope", "read"), "argument --name: expected printable"),
        (("create", "--name", "a"), "argument --scope: missing: one or more of enrol, ingest, "),
        (("create", "--name", "a", "--scope", "admin"), "invalid choice: 'admin'"),
        (
            ("create", "--name", "a", "--scope", "read", "--expires", "soon"),
            "--expires: expected a",
        ),
        (("create", "--name", "a", "--scope", "read"), "argument --database: missing"),
        (("list",), "argument --database: missing"),
        (("create", "x"), "argument ID: not allowed here"),
        (("revoke", "x", "--user", "ada"), "argument ID: pass only one of ID, --user and"),
        (("create", "--name", "a", "--scope", "enrol"), "argument --machines: missing: how many"),
        (("create", "--name", "a", "--scope", "enrol", "--machines", "0"), "a number from 1 to"),
        (
            ("create", "--name", "a", "--scope", "enrol", "--scope", "read", "--machines", "2"),
            "argument --scope: enrol goes with no other",
        ),
        (
            ("create", "--name", "a", "--scope", "read", "--machines", "2"),
            "argument --machines: only with the scope enrol",
        ),
        (
            ("create", "--name", "a", "--scope", "read", "--dry-run"),
            "argument --dry-run: only with",
        ),
        (("create", "--from", "no.csv"), "argument --from: cannot be read: "),
        (("create", "--from", "no.csv", "--name", "a"), "argument --name: not allowed with --from"),
        (("revoke",), "argument ID: missing"),
        (("burn",), "invalid choice: 'burn'"),
    ],
)
def test_wrong_use_says_what_to_do(shell: Shell, words: tuple[str, ...], problem: str) -> None:
    ran = shell.run("token", *words)
    assert (ran.code, ran.out) == (2, "")
    assert problem in ran.err


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("--listen", "8420"), "expected HOST:PORT: got '8420'"),
        (("--listen", "::1:x"), "expected HOST:PORT"),
        (("--listen", "127.0.0.1:65536"), "expected HOST:PORT"),
        (("--listen", "127.0.0.1:1"), "argument --database: missing: "),
        (("--listen", "127.0.0.1:1", "--demo"), "argument --demo: not allowed with --listen"),
        (("--listen", "127.0.0.1:1", "--port", "1"), "argument --port: not allowed with --listen"),
        (("--behind-proxy",), "argument --listen: missing"),
        (("--tls-cert", "c.pem"), "argument --listen: missing"),
    ],
)
def test_wrong_arguments_of_a_server_are_named(
    shell: Shell, words: tuple[str, ...], problem: str
) -> None:
    ran = shell.run("serve", *words)
    assert (ran.code, ran.out) == (2, "")
    assert problem in ran.err


@pytest.mark.parametrize(
    ("listen", "options", "problem"),
    [
        ("0.0.0.0:0", (), "--listen: 0.0.0.0 is reachable by others, who could read tokens: pass"),
        ("[::]:0", (), "--listen: :: is reachable by others"),
        ("example.org:0", (), "--listen: example.org is reachable by others"),
        ("127.0.0.1:0", ("--tls-cert", "c.pem"), "--tls-key: pass both"),
        ("127.0.0.1:0", ("--tls-key", "k.pem"), "--tls-cert: pass both"),
        ("127.0.0.1:0", ("--tls-cert", "c.pem", "--tls-key", "k.pem"), "cannot load c.pem with"),
        ("192.0.2.1:1", ("--behind-proxy",), "cannot listen on 192.0.2.1:1: "),
    ],
)
def test_server_refuses_an_address_or_certificate_that_it_cannot_use(
    shell: Shell, listen: str, options: tuple[str, ...], problem: str
) -> None:
    ran = shell.run("serve", "--database", "postgresql:///x", "--listen", listen, *options)
    assert (ran.code, ran.out) == (2, "")
    assert problem in ran.err


def test_address_of_a_server_is_shown_as_a_url() -> None:
    assert ListenAddress("::1", 8420).url == "http://[::1]:8420"
    assert ListenAddress("0.0.0.0", 443, "c", "k").url == "https://0.0.0.0:443"


def test_failed_create_leaves_no_file(shell: Shell, tmp_path: Path) -> None:
    """A second try creates it; a file that is there already is kept."""
    path = tmp_path / "a.token"
    asked = ("token", "create", "--name", "a", "--scope", "read", "--output", str(path))
    failed = shell.run(*asked, "--database", "postgresql://127.0.0.1:1/none")
    assert failed.code == 2
    assert not path.exists()
    path.write_text("mine")
    assert "File exists" in shell.run(*asked, "--database", "postgresql://127.0.0.1:1/none").err
    assert path.read_text() == "mine"


@contextmanager
def limited(kind: int, to: int) -> Generator[None, None, None]:
    """Limit a resource of this process."""
    before = resource.getrlimit(kind)
    resource.setrlimit(kind, (to, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(kind, before)


@pytest.mark.parametrize("asked", [("--name", "a"), ("--from", "people.csv")])
def test_token_whose_text_cannot_be_written_is_not_stored(
    shell: Shell, database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    asked: tuple[str, str],
) -> None:  # fmt: skip
    """The disk is full: a second run would leave out what exists, and the text is lost."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "people.csv").write_text("name\nAda\nBen\n")
    where = ("--organisation", "full disk", "--database", database_url)
    with limited(resource.RLIMIT_FSIZE, 20):
        ran = shell.run("token", "create", *asked, "--scope", "read", "--output", "new", *where)
    assert (ran.code, ran.out) == (2, "")
    assert "argument --output: cannot be written: " in ran.err
    assert not (tmp_path / "new").exists()
    assert shell.run("token", "list", *where).out == "no tokens of full disk\n"


def test_many_tokens_are_written_with_few_open_files(
    shell: Shell, database_url: str, tmp_path: Path
) -> None:
    names = [f"p{number}" for number in range(60)]
    people, folder = tmp_path / "people.csv", tmp_path / "tokens"
    people.write_text("\n".join(["name", *names]))
    folder.mkdir()
    where = ("--organisation", "many", "--database", database_url)
    asked = ("--from", str(people), "--scope", "read", "--output", str(folder))
    open_files = len(os.listdir("/dev/fd"))
    with limited(resource.RLIMIT_NOFILE, open_files + 40):
        ran = shell.run("token", "create", *asked, *where)
    assert ran.err == f"60 tokens created in {folder}\n"
    assert {each.stem for each in folder.iterdir()} == set(names)


PEOPLE = """\
Name,Team,scopes,expires,machines
Ada,core,read act,30d,

Ben,web,,,
core,core,enrol,,50
"""


def test_file_of_people_makes_a_token_for_each_line(
    shell: Shell, database_url: str, tmp_path: Path
) -> None:
    """Twice is the same as once; what is added to the file is made by the next run."""
    people, tokens = tmp_path / "people.csv", tmp_path / "tokens.csv"
    people.write_text(PEOPLE)
    asked = ("token", "create", "--from", str(people), "--scope", "read",
             "--organisation", "people", "--database", database_url)  # fmt: skip
    planned = shell.run(*asked, "--dry-run", "--output", str(tokens))
    assert planned.out.splitlines() == [
        "would create Ada: scopes act, read, team core, expires in 30d",
        "would create Ben: scopes read, team web, expires in 90d",
        "would create core: scopes enrol, team core, for 50 machines, expires in 90d",
    ]
    assert not tokens.exists()
    [_, ben, core] = json.loads(shell.run(*asked, "--dry-run", "--json").out)
    assert abs(time.time() + 90 * 86_400 - ben.pop("expires_at")) < 60
    assert ben == {
        "dry_run": True, "name": "Ben", "organisation": "people", "scopes": ["read"],
        "team": "web", "max_machines": None,
    }  # fmt: skip
    assert core["max_machines"] == 50
    done = shell.run(*asked, "--output", str(tokens))
    assert (done.out, done.err) == ("", f"3 tokens created in {tokens}\n")
    assert tokens.stat().st_mode & 0o777 == 0o600
    with tokens.open() as file:
        rows = list(csv.DictReader(file))
    assert [(row["name"], row["team"], row["scopes"]) for row in rows] == [
        ("Ada", "core", "act read"), ("Ben", "web", "read"), ("core", "core", "enrol"),
    ]  # fmt: skip
    assert all(TEXT_PATTERN.fullmatch(row["token"]) for row in rows)
    again = shell.run(*asked, "--output", str(tokens))
    assert again.err.splitlines() == [
        "3 tokens of that name and scope exist already", "0 tokens created",
    ]  # fmt: skip
    people.write_text(PEOPLE + "Cyd,web,,,\n")
    folder = tmp_path / "tokens"
    folder.mkdir()
    assert "1 token created" in shell.run(*asked, "--output", str(folder)).err
    [file] = folder.iterdir()
    assert (file.name, file.stat().st_mode & 0o777) == ("Cyd.token", 0o600)
    assert TEXT_PATTERN.fullmatch(file.read_text().strip())
    listed = json.loads(shell.run("token", "list", *asked[6:], "--json").out)
    assert sorted(each["name"] for each in listed) == ["Ada", "Ben", "Cyd", "core"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "line 1: expected the columns name and any of scopes, expires, team, machines"),
        ("name;team\n", "line 1: expected the columns name"),
        ("name,mail\n", "line 1: expected the columns name"),
        ("name\n", "line 2: missing: a line for each token"),
        ("name,team\nAda\n", "line 2: expected 2 values: got 1"),
        ("name\nAda\n\nAda\n", "line 4: name: 'Ada' is in line 2 too"),
        ("name,scopes\nAda,admin\n", "line 2: scopes: expected enrol, ingest, read, act: got"),
        ("name,expires\nAda,soon\n", "line 2: expires: expected a span such as"),
        ("name,scopes,machines\nAda,enrol,many\n", "line 2: machines: expected a number from 1"),
        ('name\n"Ada\n', "CSV: unexpected end of data"),
        ("name\n../Ada\n", "line 2: name: '../Ada' cannot be the name of a file"),
    ],
)
def test_line_that_cannot_be_used_is_named_and_nothing_is_created(
    shell: Shell, database_url: str, tmp_path: Path, text: str, problem: str
) -> None:
    (tmp_path / "people.csv").write_text(text)
    where = ("--organisation", "wrong", "--database", database_url)
    asked = ("--from", str(tmp_path / "people.csv"), "--scope", "read", "--output", str(tmp_path))
    ran = shell.run("token", "create", *asked, *where)
    assert (ran.code, ran.out) == (2, "")
    assert problem in ran.err
    assert shell.run("token", "list", *where).out == "no tokens of wrong\n"
    assert [each.name for each in tmp_path.iterdir()] == ["people.csv"]


class Machines:
    """Machines of an organisation, with tokens that they made or that were made for them."""

    def __init__(self, url: str, organisation: str) -> None:
        self._url, self._organisation = url, organisation

    def enrol(self, team: str, *machines: str) -> None:
        """Store the tokens of machines of a team."""
        asyncio.run(self._use(lambda database: self._enrol(database, team, machines)))

    def report(self, machine: str, user: str, token: str | None) -> None:
        """Store a machine's report with a token."""
        report = MachineReport(
            machine, f"{machine}-host", user, None, None, "off", 0, 0, None, time.time(), token
        )
        asyncio.run(
            self._use(lambda database: database.machines(self._organisation).report(report))
        )

    async def _enrol(self, database: PostgresDatabase, team: str, machines: Sequence[str]) -> None:
        now = time.time()
        _, parent = create_token(self._organisation, team, ["enrol"], now, max_machines=9)
        await database.tokens.create([parent], "test")
        for machine in machines:
            _, row = create_token(
                self._organisation, f"{machine}-host", ["ingest"], now, now + 9_000, parent.id
            )
            assert await database.tokens.enrol(replace(row, machine=machine)) is None

    async def _use(self, use: Callable[[PostgresDatabase], Awaitable[None]]) -> None:
        database = await open_database(self._url)
        try:
            await use(database)
        finally:
            await database.close()


def test_person_and_machine_are_revoked_and_it_is_recorded(shell: Shell, database_url: str) -> None:
    """All tokens of a person: those of the name, and of the machines that the person uses."""
    where = ("--organisation", "leavers", "--database", database_url)
    machines = Machines(database_url, "leavers")
    machines.enrol("core", "m1", "m2", "m3")
    machines.report("m1", "ada", None)
    created = shell.run("token", "create", "--name", "ada", "--scope", "read", *where)
    assert created.code == 0
    shared = json.loads(
        shell.run("token", "create", "--name", "hosts", "--scope", "ingest", *where, "--json").out
    )
    machines.report("m4", "ada", shared["id"])
    planned = shell.run("token", "revoke", "--user", "ada", "--dry-run", *where).out
    assert len(re.findall(r"^would revoke \w+, (?:ada|m1-host)$", planned, re.MULTILINE)) == 2
    assert f"machine m4 reports with token {shared['id']}, which others may have too" in planned
    planned = json.loads(
        shell.run("token", "revoke", "--user", "ada", "--dry-run", *where, "--json").out
    )
    assert planned["dry_run"]
    assert {row["name"] for row in planned["revoked"]} == {"ada", "m1-host"}
    assert planned["shared"] == [{"machine": "m4", "token": shared["id"]}]
    done = shell.run("token", "revoke", "--user", "ada", *where).out
    assert done.count("revoked ") == 2
    assert "no valid tokens of ada" in shell.run("token", "revoke", "--user", "ada", *where).out
    assert "m2-host" in shell.run("token", "revoke", "--machine", "m2", *where).out
    rows = json.loads(shell.run("token", "list", *where, "--json").out)
    [core] = [row for row in rows if row["name"] == "core"]
    assert (core["machines"], core["max_machines"]) == (1, 9)
    children = json.loads(shell.run("token", "list", core["id"], *where, "--json").out)
    ended = {row["machine"]: row["revoked_at"] is not None for row in children}
    assert ended == {"m1": True, "m2": True, "m3": False}
    actions = execute(
        database_url, "SELECT action, count(*)::int FROM audit_log WHERE organisation = 'leavers' "
        "GROUP BY action ORDER BY action"
    )  # fmt: skip
    assert actions == [["creation", 3], ["enrolment", 3], ["revocation", 3]]


@pytest.mark.parametrize("by", ["id", "user"])
def test_expired_enrolment_token_is_revoked_with_its_machines(
    shell: Shell, database_url: str, by: str
) -> None:
    """The tokens of its machines outlive it, as their use renews them."""
    organisation = f"expired {by}"
    where = ("--organisation", organisation, "--database", database_url)
    Machines(database_url, organisation).enrol("core", "m1", "m2")
    execute(database_url, "UPDATE tokens SET expires_at = 1 "
            f"WHERE organisation = '{organisation}' AND machine IS NULL")  # fmt: skip
    [core] = json.loads(shell.run("token", "list", *where, "--json").out)
    whose = (core["id"],) if by == "id" else ("--user", "core")
    done = shell.run("token", "revoke", *whose, *where)
    assert done.out == f"revoked {core['id']}, core: servers refuse it within seconds\n", done.err
    rows = json.loads(shell.run("token", "list", core["id"], *where, "--json").out)
    assert [row["revoked_at"] is None for row in rows] == [False, False]


def test_machine_is_named_by_the_beginning_of_its_id(shell: Shell, database_url: str) -> None:
    """As `fleet machines` shows it; less could be a mistake."""
    where = ("--organisation", "short ids", "--database", database_url)
    machines = Machines(database_url, "short ids")
    machines.enrol("core", "0123456789ab", "0123456789cd", "fedcba987654")
    machines.report("0123456789ab", "ada", None)
    revoke = ("token", "revoke", *where, "--machine")
    several = shell.run(*revoke, "01234567")
    assert (several.code, several.out) == (2, "")
    assert "'01234567' begins the ids of 2 machines" in several.err
    assert shell.run(*revoke, "fedcba").out == "no valid tokens of fedcba\n"
    assert shell.run(*revoke, "fedcba98").out.endswith(
        ", fedcba987654-host: servers refuse it within seconds\n"
    )
    assert ", 0123456789ab-host" in shell.run(*revoke, "0123456789a").out
