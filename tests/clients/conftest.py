"""The recorded scenes, each run once per test run, also with several workers."""

from __future__ import annotations

import fcntl
import os
import pickle
from collections.abc import Callable
from pathlib import Path

import pytest

from .scenes import Recording, play

Recorder = Callable[[str, str], Recording]


@pytest.fixture(scope="session")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Recorder:
    """Returns the recording of a client's scene; the first request runs it."""
    root = tmp_path_factory.getbasetemp()
    shared = (root.parent if "PYTEST_XDIST_WORKER" in os.environ else root) / "scenes"

    def get(client: str, scene: str) -> Recording:
        return _once(client, scene, shared / f"{client}-{scene}")

    return get


def _once(client: str, scene: str, folder: Path) -> Recording:
    folder.mkdir(parents=True, exist_ok=True)
    kept = folder / "recording.pickle"
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not kept.exists():
            kept.write_bytes(pickle.dumps(play(client, scene, folder / "place")))
        made: Recording = pickle.loads(kept.read_bytes())
        return made
