"""Daemons on one PostgreSQL database."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from .running import Running

pytestmark = pytest.mark.slow


@pytest.fixture
def database(postgres: str) -> Iterator[str]:
    """The URL of an empty database."""
    from postgres_server import new_schema

    with new_schema(postgres) as url:
        yield url


class RunningOnDatabase(Running):
    """A daemon whose user has set a database."""

    def __init__(self, folder: Path, database: str) -> None:
        super().__init__(folder)
        settings = self.home / ".config" / "brimline" / "config.toml"
        settings.parent.mkdir(parents=True)
        settings.write_text(f'[daemon]\ndatabase = "{database}"\n')


def status_input(sent: int) -> dict[str, Any]:
    usage = {
        "input_tokens": sent,
        "output_tokens": 5,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
    }
    window = {"context_window_size": 200_000, "current_usage": usage}
    return {"session_id": "s", "model": {"id": "claude-sonnet-4-5"}, "context_window": window}


def test_daemons_share_the_sessions_of_a_database(tmp_path: Path, database: str) -> None:
    """What one receives, the other serves, also after both were killed."""
    daemons = [RunningOnDatabase(tmp_path / name, database) for name in ("one", "other")]
    one, other = daemons
    try:
        for daemon in daemons:
            daemon.start()
        one.hook(status_input(110_000), "statusline")
        other.until("/v1/sessions", lambda reply: "110000" in str(reply))
        one.kill()
        other.kill()
        other.start()
        assert "110000" in str(other.get("/v1/sessions"))
        assert not list(tmp_path.glob("*/state/brimline.db"))
    finally:
        for daemon in daemons:
            daemon.close()


def test_daemon_in_the_background_gets_the_database(tmp_path: Path, database: str) -> None:
    """The URL, which may hold a password, is not among the arguments that others can read."""
    user = Running(tmp_path)
    try:
        started = user.command("serve", "--background", "--database", database)
        assert started.returncode == 0, started.stderr
        pid = user.over_unix("GET", "/v1/daemon")[1]["pid"]
        assert "postgresql" not in " ".join(psutil.Process(pid).cmdline())
        assert not (user.state / "brimline.db").exists()
    finally:
        stopped = user.command("serve", "--stop")
    assert stopped.returncode == 0, stopped.stderr


def test_daemon_survives_a_crash_of_the_server(tmp_path: Path) -> None:
    """Hook clients spool their events meanwhile; nothing that was acknowledged is lost."""
    from postgres_server import local_server

    with local_server() as server:
        daemon = RunningOnDatabase(tmp_path, server.url)
        daemon.start()
        try:
            daemon.client(status_input(110_000), "statusline")
            daemon.until("/v1/sessions", lambda reply: "110000" in str(reply))
            server.crash()
            daemon.client({"session_id": "meanwhile", "hook_event_name": "SessionStart"})
            server.start()
            reply = daemon.until("/v1/sessions", lambda reply: "meanwhile" in str(reply))
            assert "110000" in str(reply)
        finally:
            daemon.close()


def test_unreachable_database_is_an_error_with_a_hint(tmp_path: Path) -> None:
    done = Running(tmp_path).command("serve", "--database", "postgresql://u:secret@127.0.0.1:1/db")
    assert done.returncode == 2
    assert done.stderr.startswith("brimline: postgresql://127.0.0.1:1/db: ")
    assert "hint: Make sure that PostgreSQL runs there" in done.stderr
    assert "secret" not in done.stderr
