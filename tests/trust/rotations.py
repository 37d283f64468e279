"""Leads real clients through many context windows, and counts what went wrong."""

import json
from pathlib import Path

from brimline.handoff.user_messages import CONTINUED_TEXT
from clients.install import CannotInstall, install_client
from clients.rotated_client import RotatedClient, document, is_first, replies_of

from .row import RowResult

AGENTS = ("claude", "codex")


def rotate_clients(folder: Path, windows: int) -> RowResult:
    """Run each client through so many windows."""
    figures = {"clients": 0, "windows": 0, "calls": 0, "rotations without the agent's document": 0}
    figures |= {"compactions": 0, "starts without the document": 0}
    problems: list[str] = []
    for agent in AGENTS:
        try:
            install_client(agent)
        except CannotInstall as error:
            return RowResult(skipped=f"{agent}: {error}")
        found = _rotate(RotatedClient(agent, folder / agent), windows)
        figures = {name: figures[name] + found[name] for name in figures}
        problems += [f"{agent}: {name} {found[name]}" for name in found]
    figures["missing windows"] = windows * len(AGENTS) - figures["windows"]
    return RowResult(figures, dict.fromkeys(list(figures)[3:], 0), problems)


def _rotate(client: RotatedClient, windows: int) -> dict[str, int]:
    try:
        run = client.run(replies_of(client, windows), "--rotate-at", "75", "--json")
        results = json.loads(run.stdout)["windows"]
        starts = [body for body in client.requests(run) if is_first(body)]
    finally:
        client.daemon.close()
    return {
        "clients": 1,
        "windows": len(results),
        "calls": sum(each["calls"] for each in results),
        "rotations without the agent's document": sum(
            each["handoff"] != "agent" for each in results[:-1]
        ),
        "compactions": len(run.of("compaction")),
        "starts without the document": sum(
            CONTINUED_TEXT not in body or document(number) not in body
            for number, body in enumerate(starts[1:], 1)
        ),
    }
