"""`brimline token`, and the arguments of a fleet's server."""

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from brimline.cli import main
from brimline.server.fleet.authentication import TEXT_PATTERN
from brimline.server.fleet.server import ListenAddress


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
    revoked = json.loads(shell.run("token", "revoke", listed["id"], *where).out)
    assert revoked == {"revoked": listed["id"]}


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("create", "--scope", "read"), "argument --name: missing"),
        (("create", "--name", "a\x07", "--scope", "read"), "argument --name: expected printable"),
        (("create", "--name", "a"), "argument --scope: missing: one or more of ingest, read, act"),
        (("create", "--name", "a", "--scope", "admin"), "invalid choice: 'admin'"),
        (
            ("create", "--name", "a", "--scope", "read", "--expires", "soon"),
            "--expires: expected a",
        ),
        (("create", "--name", "a", "--scope", "read"), "argument --database: missing"),
        (("list",), "argument --database: missing"),
        (("list", "x"), "argument ID: not allowed here"),
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
