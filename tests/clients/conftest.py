"""The recorded scenes, each run once per test run, also with several workers."""

from __future__ import annotations

import fcntl
import os
import pickle
from collections.abc import Callable
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet

from .scenes import SCENES, Recording, record_scene

Recorder = Callable[[str, str], Recording]

# Like others of these clients, which start slowly.
LONG_SCENES = {
    ("cline", "auto-compact"),
    ("cline", "errors"),
    ("cline", "subagent"),
    ("gemini", "errors"),
    ("goose", "resume-compact"),
    ("goose", "resume-errors"),
    ("goose", "subagent"),
    ("kilo", "auto-compact"),
    ("kilo", "continue-errors"),
    ("kilo", "subagent"),
    ("kimi", "continue"),
    ("kimi", "errors"),
    ("opencode", "chat"),
    ("opencode", "continue-errors"),
    ("opencode", "responses"),
    ("qwen", "compact-twice"),
    ("qwen", "continue"),
    ("qwen", "errors"),
    ("qwen", "too-long"),
}


def scene_params(*clients: str) -> list[ParameterSet]:
    """The client and the name of each scene, of these clients or of all."""
    return [
        pytest.param(client, scene, marks=[pytest.mark.long] * ((client, scene) in LONG_SCENES))
        for client in clients or SCENES
        for scene in SCENES[client]
    ]


@pytest.fixture(scope="session")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Recorder:
    """Returns the recording of a client's scene; the first request runs it."""
    root = tmp_path_factory.getbasetemp()
    shared = (root.parent if "PYTEST_XDIST_WORKER" in os.environ else root) / "scenes"

    def get(client: str, scene: str) -> Recording:
        return _record_once(client, scene, shared / f"{client}-{scene}")

    return get


def _record_once(client: str, scene: str, folder: Path) -> Recording:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "recording.pickle"
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not file.exists():
            file.write_bytes(pickle.dumps(record_scene(client, scene, folder / "place")))
        recorded: Recording = pickle.loads(file.read_bytes())
        return recorded
