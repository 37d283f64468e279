"""What holds of every run holds of the committed fixtures: the same tests, with no client."""

from __future__ import annotations

import pytest

from .conftest import Recorder
from .fixture import load_fixture
from .scenes import Recording
from .test_equal import *  # noqa: F403

pytestmark = pytest.mark.usefixtures("recording")


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Recorder:
    """Give the committed recording of a scene in place of a new one."""
    known: dict[tuple[str, str], Recording] = {}

    def get(client: str, scene: str) -> Recording:
        if (client, scene) not in known:
            scratch = tmp_path_factory.mktemp(f"{client}-{scene}")
            known[client, scene] = load_fixture(client, scene, scratch)
        return known[client, scene]

    return get
