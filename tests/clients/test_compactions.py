"""What two compactions of a real client left: measured live, with a pin that a prompt made."""

from __future__ import annotations

import json
from typing import Any

import pytest

from brimline.handoff.pins import INTRO, PinFile
from brimline.testing.fake_model import Reply, ToolCall

from .monitored import Claude, Codex, MonitoredClient
from .monitored.fixtures import client_fixture, retry_slow_hooks
from .run import ClientRun, Place
from .test_pins_and_recall import run_over_compaction

pytestmark = [pytest.mark.clients, pytest.mark.slow]

agent = client_fixture(Claude, Codex)

NEVER = "Never touch the README."
STATEMENT = "Please move all 4711 shipping costs into the basket."


def edit(agent: MonitoredClient, name: str) -> Reply:
    """A reply that writes a file with the client's own tool."""
    if isinstance(agent, Claude):
        path = str(Place(agent.folder).project / name)
        return Reply(tools=(ToolCall("Write", {"file_path": path, "content": "text\n"}),))
    patch = f"*** Begin Patch\n*** Add File: {name}\n+text\n*** End Patch"
    return agent.shell(f"apply_patch <<'EOF'\n{patch}\nEOF")


def compactions(agent: MonitoredClient, run: ClientRun) -> list[dict[str, Any]]:
    """What the API has, which is what the commands show too."""
    session = agent.session_of(run)
    served = agent.daemon.get(f"/v1/sessions/{session}/compactions")["compactions"]
    home = str(Place(agent.folder).home)
    inspected = agent.daemon.command("inspect", session, "--json", HOME=home)
    shown = json.loads(inspected.stdout)["threads"][0]["compactions"]
    assert [each["effect"] for each in shown] == [each["effect"] for each in served]
    report = agent.daemon.command("report", "--compactions", "--json", HOME=home)
    reported = json.loads(report.stdout)["compactions"]
    assert [each["effect"] for each in reported] == [each["effect"] for each in served]
    return served


@retry_slow_hooks
def test_effects_of_two_compactions_are_wrong(agent: MonitoredClient) -> None:
    """The statement and the file are kept by what is injected: the fake summary names neither."""
    agent.configure("[pins]\nfrom_prompts = true\n")
    arguments = ["--permission-mode", "acceptEdits"] if isinstance(agent, Claude) else []
    agent.prompt = f"{STATEMENT}\nPIN: {NEVER}"
    look, first, second = agent.shell("ls"), edit(agent, "one.md"), edit(agent, "two.md")
    run = run_over_compaction(agent, first, look, *arguments)
    (pin,) = PinFile(agent.daemon.state).load()
    assert (pin.text, pin.by, pin.session) == (NEVER, "user", agent.session_of(run))
    agent.prompt = "Go on."
    run = run_over_compaction(agent, look, second, *arguments)
    before, after = compactions(agent, run)
    last = agent.after_compaction(run)[-1]
    assert (last.count(INTRO), last.count(f"- {NEVER}")) == (1, 1)
    for each in (before, after):
        assert each["before"] > (each["after"] or 0) > 0
        assert each["effect"]["injected_chars"] > len(INTRO) + len(NEVER) + len(STATEMENT)
        assert each["effect"]["facts"] == {
            "statements": {"kept": 1, "total": 1},
            "files": {"kept": 1, "total": 1},
            "numbers": {"kept": 1, "total": 1},
        }
    assert before["effect"]["calls_to_edit"] is None
    # The edit is the last call but one.
    assert after["effect"]["calls_to_edit"] == len(agent.after_compaction(run)) - 1
