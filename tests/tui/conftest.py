"""A daemon for each test, with every kind of session."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from .daemon import FakeDaemon, message, serving
from .sample_views import NOW, explanation, scene, timeline


@pytest.fixture
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FakeDaemon]:
    """A daemon that serves the scene; its path is short because socket paths are limited."""
    with serving(tmp_path_factory.mktemp("s") / "http.sock") as fake:
        fake.put(*scene())
        fake.timelines["shop-backend"] = timeline("shop-backend")
        fake.explanations["shop-backend"] = explanation()
        fake.messages["shop-backend"] = [
            message("shop-backend", "Write the handoff first.", state="delivered", at=NOW - 3_000,
                    handed_at=NOW - 2_900),
            message("shop-backend", "And run the tests.", at=NOW - 60, urgent=True),
        ]  # fmt: skip
        yield fake


@pytest.fixture
def unused_socket(tmp_path: Path) -> Path:
    """A socket without a listener."""
    return tmp_path / "nobody.sock"
