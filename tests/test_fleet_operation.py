"""The guide to operating a fleet's server: its database, PgBouncer, nginx, backup, restore."""

import http.client
import json
import re
import ssl
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack
from getpass import getuser
from pathlib import Path
from urllib.parse import urlsplit

import msgspec
import pytest

from brimline.daemon.uplink.protocol import PATH
from doc_examples import BLOCK, commands_of, pattern_of
from fleet_server import FleetProcess
from pgbouncer import pgbouncer
from postgres_server import LocalServer, local_server, programs
from reserved_port import ReservedPort
from system_programs import require_program, require_unpacked
from test_fleet_guide import GUIDE_URL, Host, copy_sessions, wait_for

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent
GUIDE = (ROOT / "docs/guides/fleet/operate.md").read_text("utf-8")
# Large bodies are written into the test's folder, which only its own user can read.
NGINX = """
user {user};
worker_processes 1;
pid nginx.pid;
error_log stderr;
events {{}}
http {{
    access_log off;
    client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi;
    uwsgi_temp_path uwsgi; scgi_temp_path scgi;
    {server}
}}
"""


def blocks(heading: str, kind: str = "console") -> list[str]:
    section = re.search(rf"^## {heading}$(.*?)(?=^## |\Z)", GUIDE, re.MULTILINE | re.DOTALL)
    assert section is not None
    return [block[2] for block in BLOCK.finditer(section[1]) if block[1] == kind]


class Operator:
    """Whoever runs PostgreSQL and the server, in a scratch home."""

    def __init__(self, postgres: LocalServer, home: Path) -> None:
        self.home = home
        self._shell = Host(home, {})
        self._shell.set({"PGHOST": str(postgres.folder), "PGUSER": "postgres"})
        self._shell.prepend_path(programs())

    def set_database(self, url: str) -> None:
        self._shell.set({"BRIMLINE_DATABASE": url})

    def follow(self, block: str) -> None:
        """Type the commands of a block, each of which must print what the guide says."""
        for command, output in commands_of(block):
            printed = self._shell.run(command)
            assert pattern_of(output).fullmatch(printed), f"{command} printed:\n{printed}"

    def run(self, command: str) -> str:
        return self._shell.run(command)


class Proxy:
    """nginx with the guide's server, TLS and two replicas behind it."""

    def __init__(self, folder: Path, replicas: list[str]) -> None:
        self.certificate, key = folder / "cert.pem", folder / "key.pem"
        create = [
            require_program("openssl"), "req", "-x509", "-nodes", "-days", "2", "-newkey", "ec",
            "-pkeyopt", "ec_paramgen_curve:prime256v1", "-subj", "/CN=localhost",
            "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1",
            "-keyout", str(key), "-out", str(self.certificate),
        ]  # fmt: skip
        subprocess.run(create, check=True, capture_output=True)
        self._port = ReservedPort()
        number = self._port.number
        [server] = blocks("nginx", "nginx")
        for name, value in {
            "listen 443 ssl;": f"listen 127.0.0.1:{number} ssl;",
            "127.0.0.1:8420": replicas[0],
            "127.0.0.1:8421": replicas[1],
            "/etc/ssl/fleet.example.com.pem": str(self.certificate),
            "/etc/ssl/fleet.example.com.key": str(key),
            "fleet.example.com": "localhost",
        }.items():
            assert name in server, name
            server = server.replace(name, value)
        (folder / "nginx.conf").write_text(NGINX.format(server=server, user=getuser()))
        nginx = require_unpacked("nginx", "nginx", "usr/sbin") / "nginx"
        words = [str(nginx), "-p", str(folder), "-c", "nginx.conf", "-g", "daemon off;"]
        self._process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
        self.url = f"https://localhost:{number}"
        self._context = ssl.create_default_context(cafile=str(self.certificate))
        wait_for(lambda: self._is_open(), bool)

    def connect(self) -> http.client.HTTPSConnection:
        address = urlsplit(self.url).netloc
        return http.client.HTTPSConnection(address, timeout=20, context=self._context)

    def get(self, path: str, token: str) -> object:
        status, body = self._ask(path, token)
        assert status == 200, (path, status)
        return json.loads(body)

    def wait_for_replicas(self) -> None:
        """Wait until it passes requests on: replicas that did not answer are left out for 10 s."""
        wait_for(lambda: self._ask("/readyz", "")[0], lambda status: status == 200)

    def _ask(self, path: str, token: str) -> tuple[int, bytes]:
        connection = self.connect()
        try:
            connection.request("GET", path, headers={"authorization": f"Bearer {token}"})
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()

    def _is_open(self) -> bool:
        assert self._process.poll() is None, self._process.communicate()[1]
        try:
            connection = self.connect()
            connection.connect()
            connection.close()
        except OSError:
            return False
        return True

    def close(self) -> None:
        self._process.terminate()
        self._process.communicate(timeout=20)


class ShownThread(msgspec.Struct):
    calls: int


class ShownFacts(msgspec.Struct):
    agent: str


class ShownSession(msgspec.Struct):
    session: ShownFacts
    threads: list[ShownThread]


class Site:
    """The operator's database behind PgBouncer, with two replicas behind nginx."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.postgres = stack.enter_context(local_server())
        self.operator = Operator(self.postgres, folder / "operator")
        self.operator.follow(blocks("The database")[0])
        self.database = stack.enter_context(pgbouncer(self.postgres, "brimline", "brimline"))
        self.operator.set_database(self.database)
        self._folder, self._replicas = folder, list[FleetProcess]()
        self._addresses = ["127.0.0.1:0", "127.0.0.1:0"]
        self.start()
        self._addresses = [urlsplit(each.url).netloc for each in self._replicas]
        stack.callback(self.stop)
        self.proxy = Proxy(folder, self._addresses)
        stack.callback(self.proxy.close)

    def start(self) -> None:
        options = (self.database, self._folder, "--behind-proxy")
        self._replicas = [FleetProcess(*options, listen=each) for each in self._addresses]

    def stop(self) -> None:
        for replica in self._replicas:
            assert replica.stop() == 0

    def crash(self) -> None:
        """Kill all processes of the replicas and of PostgreSQL, and start them again."""
        for replica in self._replicas:
            replica.close()
        self.postgres.crash()
        self.postgres.start()
        self.start()
        self.proxy.wait_for_replicas()

    def connect(self, token: str) -> dict[str, str]:
        """Return the variables of a machine whose daemon reports to this site."""
        return {
            "SSL_CERT_FILE": str(self.proxy.certificate),
            "BRIMLINE_UPLINK_URL": self.proxy.url,
            "BRIMLINE_UPLINK_TOKEN": token,
        }

    def calls(self, token: str) -> dict[str, int]:
        """How many calls each session has, by its agent."""
        views = msgspec.convert(self.proxy.get("/v1/sessions?since=24h", token), list[ShownSession])
        return {each.session.agent: sum(row.calls for row in each.threads) for each in views}


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with ExitStack() as stack:
        yield Site(tmp_path, stack)


def test_guide_leads_through_pgbouncer_nginx_backup_and_restore(site: Site, tmp_path: Path) -> None:
    """What a machine sent after the backup is there again after the restore."""
    operator, proxy = site.operator, site.proxy
    operator.follow(blocks("Token files")[0])
    token_file = operator.home / "core.token"
    assert token_file.stat().st_mode & 0o777 == 0o600
    reading = operator.run("brimline token create --name ada --scope read 2>/dev/null").strip()
    check_stream(proxy, reading)
    ada = Host(tmp_path / "ada", {GUIDE_URL: proxy.url})
    ada.set(site.connect(token_file.read_text().strip()))
    copy_sessions("claude/auto-compact", ada.home)
    ada.run("brimline serve --background")
    try:
        before = wait_for(lambda: site.calls(reading), lambda calls: "claude" in calls)
        [dump, restore] = blocks("Back up and restore")
        operator.follow(dump)
        copy_sessions("codex/tool-loop", ada.home)
        after = wait_for(lambda: site.calls(reading), lambda calls: "codex" in calls)
        assert after.keys() - before.keys() == {"codex"}
        site.stop()
        operator.follow(restore)
        site.start()
        wait_for(lambda: site.calls(reading), lambda calls: calls == after)
    finally:
        ada.run("brimline serve --stop")


def check_stream(proxy: Proxy, token: str) -> None:
    """The stream's first event comes at once, and an event that follows is not buffered."""
    connection = proxy.connect()
    connection.request("GET", "/v1/stream", headers={"authorization": f"Bearer {token}"})
    response = connection.getresponse()
    assert response.status == 200
    began = time.monotonic()
    assert response.fp is not None
    assert response.read1(1)
    assert time.monotonic() - began < 10, "nginx held the stream back"
    connection.close()
    refused = proxy.connect()
    refused.request("POST", PATH, b"{}", {"authorization": f"Bearer {token}"})
    assert refused.getresponse().status == 403  # a token to read cannot report
    refused.close()
