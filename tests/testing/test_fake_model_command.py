"""The fake model as a command that runs a client."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from brimline.testing.fake_model import Refused, Reply, Scenario, read_billed, read_records, save
from brimline.testing.fake_model.__main__ import main

COMMAND = [sys.executable, "-m", "brimline.testing.fake_model"]
CLIENT = """
import json, os, sys, urllib.request
body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "x"}]}).encode()
request = urllib.request.Request(sys.argv[1] + "/v1/messages", body)
print(json.load(urllib.request.urlopen(request))["content"][0]["text"])
print(os.environ["ADDRESS"] == sys.argv[1])
sys.exit(3)
"""


def test_runs_a_client_and_gives_its_exit_code(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The address goes into arguments and environment; the calls are in the log."""
    save(Scenario(main=(Reply(text="hello"),)), tmp_path / "s.json")
    files = ["--scenario", f"{tmp_path}/s.json", "--log", f"{tmp_path}/log.jsonl"]
    client = ["env", "ADDRESS={base_url}", sys.executable, "-c", CLIENT, "{base_url}"]
    assert main([*files, "--", *client]) == 3
    assert capfd.readouterr().out.split() == ["hello", "True"]
    assert len(read_billed(tmp_path / "log.jsonl")) == 1


def test_fills_templates_and_keeps_requests(tmp_path: Path) -> None:
    """A client that reads its address from a file gets a file with the address."""
    (tmp_path / "in.json").write_text('{"url": "{base_url}/v1"}')
    fill = ["--fill", f"{tmp_path}/in.json", f"{tmp_path}/out.json"]
    notes = ["--requests", f"{tmp_path}/requests.jsonl"]
    fetch = "import sys, urllib.request; urllib.request.urlopen(sys.argv[1] + '/v1/models')"
    client = [sys.executable, "-c", fetch, "{base_url}"]
    assert main([*fill, *notes, "--", *client]) == 0
    assert json.loads((tmp_path / "out.json").read_text())["url"].startswith("http://127.0.0.1:")
    assert json.loads((tmp_path / "requests.jsonl").read_text())["path"] == "/v1/models"


def test_serves_until_it_is_stopped() -> None:
    """Without a client it prints its address and waits."""
    with subprocess.Popen(COMMAND, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("http://127.0.0.1:")
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0


def test_log_of_a_missing_file_is_empty(tmp_path: Path) -> None:
    """A run that made no call has no log, and that is no error."""
    assert read_records(tmp_path / "none.jsonl") == ()


def test_refused_calls_are_in_the_log(tmp_path: Path) -> None:
    """Errors are records of their own kind."""
    (tmp_path / "log.jsonl").write_text(
        '{"record":"refused","after":0,"api":"gemini","status":500,"thread":"main"}\n'
    )
    assert read_records(tmp_path / "log.jsonl") == (Refused(after=0, api="gemini", status=500),)
    assert read_billed(tmp_path / "log.jsonl") == ()
