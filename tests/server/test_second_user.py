"""What another user of the machine can do through a running daemon: nothing."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from brimline.daemon.tmux.pane import check_own_socket
from brimline.errors import CommandFailed
from second_user import PREAMBLE, UID, open_folder, require_second_user, run_as_second_user

from .running import Running
from .test_daemon import SESSION, hook_input, status_input

__all__ = ["open_folder"]

pytestmark = [pytest.mark.slow]

TRY_ROUTES = """
outcomes = []
for method, path, body in given["requests"]:
    for headers in given["headers"]:
        connection = http.client.HTTPConnection("127.0.0.1", given["port"], timeout=20)
        try:
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            outcomes.append([method, path, answer.status, answer.read().decode()])
        except (ConnectionError, http.client.HTTPException):
            outcomes.append([method, path, 0, ""])
        finally:
            connection.close()
print(json.dumps(outcomes))
"""

TRY_FILES = """
def attempt(work):
    try:
        work()
    except OSError as error:
        return error.__class__.__name__
    return "done"

def connect(path):
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)

state = given["state"]
names = ["secret", "port", "lock", "brimline.db", "spool"]
outcomes = {name: attempt(lambda: open(f"{state}/{name}").read()) for name in names}
for name in ("hook.sock", "http.sock"):
    outcomes[name] = attempt(lambda: connect(f"{state}/{name}"))
outcomes["list"] = attempt(lambda: os.listdir(state))
outcomes["write"] = attempt(lambda: open(f"{state}/x", "w"))
print(json.dumps(outcomes))
"""

IDLE = """
idle = []
for _ in range(given["connections"]):
    connection = socket.socket()
    connection.settimeout(5)
    try:
        connection.connect(("127.0.0.1", given["port"]))
    except OSError:
        pass
    idle.append(connection)
print(json.dumps(len(idle)), flush=True)
sys.stdin.readline()
"""


@pytest.fixture
def daemon(open_folder: Path) -> Iterator[Running]:
    """A daemon whose state folder every user can reach."""
    running = Running(open_folder)
    running.start()
    yield running
    running.close()


def all_requests(daemon: Running) -> list[tuple[str, str, str | None]]:
    """Return a request for every operation of the OpenAPI document, and for the page."""
    bodies: dict[str, Any] = {
        "messages": {"text": "PWNED", "urgent": True},
        "handoff": {"path": "/etc/hostname"},
        "clear": {"path": "/etc/hostname", "pane": {"socket": "/tmp/evil", "id": "%0"}},
        "events": {"events": []},
    }
    requests: list[tuple[str, str, str | None]] = [
        ("GET", "/", None),
        ("GET", "/openapi.json", None),
    ]
    for path, operations in daemon.get("/openapi.json")["paths"].items():
        place = path.replace("{id}", SESSION).replace("{agent}", "claude").replace("{message}", "m")
        body = json.dumps(bodies.get(path.rpartition("/")[2], {}))
        requests += [
            (method.upper(), place, None if method == "get" else body) for method in operations
        ]
    return requests


def headers_to_try(daemon: Running) -> list[dict[str, str]]:
    """No header, names that a page could use, a wrong secret, and the stolen right one."""
    return [
        {},
        {"Host": "brimline"},
        {"Host": f"localhost:{daemon.port}", "Authorization": "Bearer " + "0" * 64},
        {"Cookie": f"brimline-{daemon.port}=" + "0" * 64},
        {"Authorization": f"Bearer {daemon.secret}"},
    ]


def test_no_route_answers_another_user(daemon: Running) -> None:
    daemon.hook(status_input(90_000), "statusline")
    requests = all_requests(daemon)
    outcomes = run_as_second_user(
        TRY_ROUTES, port=daemon.port, requests=requests, headers=headers_to_try(daemon)
    )
    assert len(outcomes) == len(requests) * len(headers_to_try(daemon))
    for method, path, status, body in outcomes:
        assert status in (0, 401, 403), (method, path, status, body)
        assert SESSION not in body
    assert daemon.get("/v1/messages") == []
    assert daemon.get(f"/v1/sessions/{SESSION}/handoff") == {"handoffs": []}


def test_state_files_and_sockets_are_closed_to_another_user(daemon: Running) -> None:
    outcomes = run_as_second_user(TRY_FILES, state=str(daemon.state))
    assert set(outcomes.values()) == {"PermissionError"}


def test_idle_connections_of_another_user_block_neither_hooks_nor_our_user(daemon: Running) -> None:
    text = PREAMBLE.format(uid=UID) + IDLE
    parameters = json.dumps({"port": daemon.port, "connections": 1_000})
    with subprocess.Popen(
        [sys.executable, "-c", text, parameters],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as other:
        assert other.stdin is not None
        assert other.stdout is not None
        assert other.stdout.readline().strip() == "1000"
        for _ in range(20):
            daemon.hook(hook_input("UserPromptSubmit"))
        assert daemon.get("/healthz") == {"status": "ok"}
        assert count_descriptors(daemon) < 100
        other.stdin.write("\n")
        other.stdin.flush()
    assert daemon.command("serve", "--status").returncode == 0


def count_descriptors(daemon: Running) -> int:
    assert daemon.process is not None
    return len(list(Path(f"/proc/{daemon.process.pid}/fd").iterdir()))


def test_tmux_socket_of_another_user_is_refused(open_folder: Path) -> None:
    """tmux would run commands of that server."""
    path = open_folder / "tmux"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        check_own_socket(str(path))
        chown(path, UID)
        with pytest.raises(CommandFailed, match="not a socket of this user"):
            check_own_socket(str(path))


def test_tmux_socket_that_others_can_replace_is_refused(open_folder: Path) -> None:
    """It could become another user's after the check."""
    folder = open_folder / "theirs"
    folder.mkdir()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(folder / "tmux"))
        check_own_socket(str(folder / "tmux"))
        folder.chmod(0o777)
        with pytest.raises(CommandFailed, match="replace"):
            check_own_socket(str(folder / "tmux"))
        folder.chmod(0o755)
        chown(folder, UID)
        with pytest.raises(CommandFailed, match="replace"):
            check_own_socket(str(folder / "tmux"))


def test_file_in_place_of_a_tmux_socket_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for name in ("file", "nothing"):
        with pytest.raises(CommandFailed):
            check_own_socket(str(tmp_path / name))


def test_daemon_and_hooks_use_another_port_when_another_user_has_it(open_folder: Path) -> None:
    require_second_user()
    running = Running(open_folder)
    with socket.create_server(("127.0.0.1", 0)) as other_server:
        (running.state).mkdir(mode=0o700)
        (running.state / "port").write_text(str(other_server.getsockname()[1]))
        (running.home / ".claude").mkdir()
        try:
            assert running.command("serve", "--background").returncode == 0
            status: Any = json.loads(running.command("serve", "--status", "--json").stdout)
            assert running.command("setup", "claude", "--transport", "http").returncode == 0
            text = (running.home / ".claude" / "settings.json").read_text()
            assert status["address"] in text
            assert f":{other_server.getsockname()[1]}/" not in text
        finally:
            running.command("serve", "--stop")


def chown(path: Path, uid: int) -> None:
    os.chown(path, uid, -1)
