"""The files in `deploy/`: their commands are ours, and the server runs as they run it.

There is no container here. The same command runs as the same user, on a read-only root where this
user may mount one.
"""

import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from brimline.cli.commands import create_parser
from brimline.settings import Settings
from fleet_server import MAX_WAIT_S, SHOWN_LINE, new_token
from postgres_server import new_schema

ROOT = Path(__file__).parent.parent
DEPLOY = ROOT / "deploy"
DOCKERFILE = (DEPLOY / "Dockerfile").read_text()
KUBERNETES = sorted((DEPLOY / "kubernetes").glob("*.yaml"))
USER = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
READ_ONLY = ("unshare", "-m", "sh", "-c", 'mount -o remount,bind,ro / && exec "$@"', "sh")


def instruction(name: str) -> str:
    """The last instruction of a name in the Dockerfile, without its name."""
    joined = DOCKERFILE.replace("\\\n", " ")
    return [line for line in joined.splitlines() if line.lstrip().startswith(name)][-1].split(
        name, 1
    )[1]


def image_command() -> list[str]:
    return [*json.loads(instruction("ENTRYPOINT")), *json.loads(instruction("CMD"))]


def documents(path: Path) -> list[Any]:
    return list(yaml.safe_load_all(path.read_text()))


def server_pod() -> Any:
    [pod] = [each for each in documents(KUBERNETES_SERVER) if each["kind"] == "Deployment"]
    return pod["spec"]["template"]["spec"]


KUBERNETES_SERVER = DEPLOY / "kubernetes/server.yaml"


def commands() -> Iterator[list[str]]:
    """Every `brimline` command in the files, with its arguments."""
    yield image_command()
    compose = documents(DEPLOY / "compose.yaml")[0]["services"]["server"]["command"][0]
    yield shlex.split(compose.partition("exec ")[2])
    yield ["brimline", *server_pod()["containers"][0]["args"]]
    for line in re.findall(r"`(brimline [^`]+)`", (DEPLOY / "README.md").read_text()):
        yield shlex.split(line)


def test_every_command_of_the_files_exists() -> None:
    for words in commands():
        program, *arguments = words
        assert program == "brimline"
        create_parser(arguments).parse_args(arguments)


def test_image_is_built_from_files_that_the_context_has() -> None:
    allowed = {line[1:] for line in (ROOT / ".dockerignore").read_text().split() if line[0] == "!"}
    copied = {
        name
        for line in re.findall(r"^COPY (?!--from)(.*) \S+$", DOCKERFILE, re.MULTILINE)
        for name in line.split()
    }
    assert copied == allowed
    assert all((ROOT / name).exists() for name in copied)
    stages = re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE)
    assert len(set(stages)) == 1  # a virtual environment works with its own Python only


def test_pods_have_no_rights_and_their_probes_ask_the_port_that_the_server_opens() -> None:
    pod = server_pod()
    assert pod["securityContext"]["runAsNonRoot"] is True
    patch = documents(DEPLOY / "kubernetes/oauth2-proxy.patch.yaml")[0]
    for container in [*pod["containers"], *patch["spec"]["template"]["spec"]["containers"]]:
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
    [server] = pod["containers"]
    [port] = server["ports"]
    assert f"0.0.0.0:{port['containerPort']}" in server["args"]
    probes = [server[f"{name}Probe"]["httpGet"] for name in ("startup", "readiness", "liveness")]
    assert [probe["path"] for probe in probes] == ["/healthz", "/readyz", "/healthz"]
    assert {probe["port"] for probe in probes} == {port["name"]}


def test_services_and_ingresses_lead_to_ports_that_exist() -> None:
    patch = documents(DEPLOY / "kubernetes/oauth2-proxy.patch.yaml")[0]
    containers = server_pod()["containers"] + patch["spec"]["template"]["spec"]["containers"]
    opened = {port["name"] for container in containers for port in container["ports"]}
    services: dict[str, str] = {}
    backends: dict[str, str] = {}
    for document in (each for path in KUBERNETES for each in documents(path)):
        name = document.get("metadata", {}).get("name")
        if document.get("kind") == "Service":
            [port] = document["spec"]["ports"]
            assert port["targetPort"] in opened
            services[name] = port["name"]
        if document.get("kind") == "Ingress":
            [rule] = document["spec"]["rules"]
            service = rule["http"]["paths"][0]["backend"]["service"]
            backends[service["name"]] = service["port"]["name"]
    assert services == backends


def test_settings_of_the_deployment_are_valid() -> None:
    [config] = [each for each in documents(KUBERNETES_SERVER) if each["kind"] == "ConfigMap"]
    msgspec.toml.decode(config["data"]["config.toml"], type=Settings)
    patch = (DEPLOY / "kubernetes/oauth2-proxy.patch.yaml").read_text()
    commented = re.findall(r"^#   (\[fleet\]|\w+ = .*)$", patch, re.MULTILINE)
    fleet = msgspec.toml.decode("\n".join(commented), type=Settings).fleet
    assert fleet.trusted_proxies == ("127.0.0.1/32",)


@cache
def isolation() -> tuple[str, ...]:
    """The prefix for a read-only root and a user without rights, as far as they are permitted."""
    if os.geteuid() != 0:
        return ()
    for prefix in ((*READ_ONLY, *USER), USER):
        if not subprocess.run([*prefix, sys.executable, "-V"], capture_output=True).returncode:
            return prefix
    return ()


@pytest.fixture(scope="module")
def database(postgres: str) -> Iterator[str]:
    with new_schema(postgres) as url:
        yield url


@pytest.fixture
def server(database: str) -> Iterator["subprocess.Popen[str]"]:
    """The command of the image, on another port."""
    [program, *words] = image_command()
    assert program == "brimline"
    command = [sys.executable, "-m", program, *words]
    command[command.index("--listen") + 1] = "127.0.0.1:0"
    environment = dict(word.split("=", 1) for word in instruction("ENV").split())
    assert environment["HOME"] == "/nonexistent"
    environment |= {"BRIMLINE_DATABASE": database, "PATH": os.environ["PATH"]}
    process = subprocess.Popen(
        [*isolation(), *command],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    yield process
    process.kill()
    process.wait(MAX_WAIT_S)
    assert process.stdout is not None
    process.stdout.close()


def accepts_connections(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), MAX_WAIT_S).close()
    except OSError:
        return False
    return True


@pytest.mark.slow
def test_server_of_the_image_needs_no_rights_and_answers_what_it_began(
    server: "subprocess.Popen[str]", database: str
) -> None:
    """Its health check succeeds, and SIGTERM ends it after the request under way."""
    assert server.stdout is not None
    line = server.stdout.readline()
    assert SHOWN_LINE in line, line
    port = int(line.partition(SHOWN_LINE)[2].split()[0].rpartition(":")[2])
    check = json.loads(instruction("HEALTHCHECK").partition("CMD ")[2])
    check = [word.replace(":8420/", f":{port}/") for word in check]
    assert check[0] == "python"
    assert subprocess.run([sys.executable, *check[1:]]).returncode == 0
    token = new_token(database)
    body = json.dumps({"events": []}).encode()
    head = f"POST /v1/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n"
    head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    with socket.create_connection(("127.0.0.1", port), MAX_WAIT_S) as connection:
        connection.sendall(head.encode() + body[:5])
        server.send_signal(signal.SIGTERM)
        while accepts_connections(port):
            pass
        connection.sendall(body[5:])
        assert connection.recv(1024).startswith(b"HTTP/1.1 200 ")
    assert server.wait(MAX_WAIT_S) == 0
    done = subprocess.run([sys.executable, *check[1:]], capture_output=True)
    assert done.returncode != 0
