"""`brimline fleet snippet`: files that the clients' own parsers read, with server and token."""

import json
import shlex
import tomllib
from typing import Any

import pytest

from brimline.cli.commands import create_parser

from .terminal import User

URL = "https://fleet.example.com:8443/brimline"
HEADER = "Bearer TOKEN"


def snippets(user: User) -> dict[str, Any]:
    return {one["client"]: one for one in user.run("fleet", "snippet", "--url", URL, "--json").json}


def test_every_file_has_a_place_and_is_printed_as_it_is(user: User) -> None:
    printed = user.run("fleet", "snippet", "--url", f"{URL}/").out
    for snippet in snippets(user).values():
        _, heading, rest = printed.partition(f"== {snippet['name']}\n")
        assert heading
        assert " ".join(rest.split()).startswith(snippet["note"])
        for file in snippet["files"]:
            assert file["linux"].startswith(("/etc/", "~/"))
            assert {file["linux"], file["macos"]} <= set(printed.replace(": ", "\n").splitlines())
            assert f"\n{file['text']}" in printed


def test_files_name_the_server_and_send_no_prompts(user: User) -> None:
    """tests/clients/test_telemetry.py runs the real clients with the same texts."""
    texts = {name: [file["text"] for file in one["files"]] for name, one in snippets(user).items()}
    assert texts.keys() == {"claude", "codex", "copilot", "gemini"}
    claude = json.loads(texts["claude"][0])["env"]
    assert claude["OTEL_EXPORTER_OTLP_ENDPOINT"] == URL
    assert claude["OTEL_EXPORTER_OTLP_HEADERS"] == f"Authorization={HEADER}"
    codex = tomllib.loads(texts["codex"][0])["otel"]
    assert codex.pop("exporter")["otlp-http"] == {
        "endpoint": f"{URL}/v1/logs",
        "protocol": "json",
        "headers": {"Authorization": HEADER},
    }
    assert codex == {"log_user_prompt": False}
    gemini = json.loads(texts["gemini"][0])["telemetry"]
    assert (gemini["otlpEndpoint"], gemini["logPrompts"]) == (URL, False)
    assert shlex.split(texts["gemini"][1]) == [f"OTEL_EXPORTER_OTLP_HEADERS=Authorization={HEADER}"]
    variables = [word for word in shlex.split(texts["copilot"][0]) if word != "export"]
    copilot = dict(word.split("=", 1) for word in variables)
    assert copilot["OTEL_EXPORTER_OTLP_ENDPOINT"] == URL
    assert copilot["OTEL_EXPORTER_OTLP_HEADERS"] == f"Authorization={HEADER}"


def test_one_client_is_named_as_elsewhere(user: User) -> None:
    printed = user.run("fleet", "snippet", "Claude-Code").out
    assert "https://fleet.example.com" in printed
    assert [line for line in printed.splitlines() if line.startswith("==")] == ["== Claude Code"]


def test_command_for_a_token_is_complete(user: User) -> None:
    line = next(line for line in user.run("fleet", "snippet").lines if "token create" in line)
    words = shlex.split(line)[1:]
    options = create_parser(words).parse_args(words)
    assert (options.action, options.name, options.scope) == ("create", "TEAM", ["ingest"])


def test_unknown_client_is_refused_with_the_known_ones(user: User) -> None:
    refused = user.run("fleet", "snippet", "cursor")
    assert refused.code == 2
    assert "Known agents: claude, codex, copilot, gemini." in refused.err


@pytest.mark.parametrize(
    "url", ["example.com", "ftp://a", "https://", 'https://a/"', "http://a/$b"]
)
def test_address_that_no_client_could_use_is_refused(url: str, user: User) -> None:
    refused = user.run("fleet", "snippet", "--url", url)
    assert refused.code == 2
    assert "expected an address such as https://" in refused.err
