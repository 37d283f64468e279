"""A daemon whose store is damaged, deleted or replaced reports it, and goes on."""

import asyncio
import os
import random
import shutil
import sqlite3
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from brimline.server.store_watch import StoreWatch
from brimline.store.base import QueueMessage
from brimline.store.sqlite import SqliteStore
from brimline.testing.store.suite import message

from .running import PATIENCE, Running
from .test_daemon import SESSION, hook_input, said, status_input

pytestmark = pytest.mark.slow

MESSAGES = f"/v1/sessions/{SESSION}/messages"


def database(daemon: Running) -> Path:
    """Return the path of the store."""
    return daemon.state / "brimline.db"


def wait_for(daemon: Running, path: str, fits: Callable[[Any], object]) -> Any:
    """Return what the API answers once it fits; the daemon may be away meanwhile."""
    end = time.monotonic() + 3 * PATIENCE
    while True:
        try:
            if fits(answer := daemon.get(path)):
                return answer
        except (urllib.error.URLError, ConnectionError, TimeoutError) as error:
            answer = error
        assert time.monotonic() < end, answer
        time.sleep(0.05)


def reported(daemon: Running) -> dict[str, Any]:
    """Return the one problem that the daemon reports."""
    (problem,) = wait_for(daemon, "/v1/daemon", lambda status: status["problems"])["problems"]
    return problem


def queue_messages(daemon: Running, number: int) -> None:
    """Queue messages, each acknowledged."""
    for one in range(number):
        assert daemon.post(MESSAGES, {"text": f"message {one}"})["id"]


def test_empty_store_at_start(daemon: Running) -> None:
    """A daemon that finds an empty file says so, in its log, its status and to every command."""
    queue_messages(daemon, 3)
    daemon.stop()
    os.truncate(database(daemon), 0)
    daemon.start()
    problem = reported(daemon)
    assert Path(problem["kept"]).exists()
    assert problem["what"] in daemon.boot_log
    assert daemon.get("/v1/sessions") == []


def test_database_of_another_program_at_start(daemon: Running) -> None:
    """It is not written to, and the daemon starts."""
    daemon.stop()
    database(daemon).unlink()
    with closing(sqlite3.connect(database(daemon))) as connection:
        connection.execute("CREATE TABLE theirs (a)")
    before = database(daemon).read_bytes()
    daemon.start()
    assert Path(reported(daemon)["kept"]).read_bytes() == before


def test_store_deleted_while_the_daemon_runs(daemon: Running) -> None:
    """What was acknowledged before, and until it was noticed, is there afterwards."""
    queue_messages(daemon, 3)
    for file in daemon.state.glob("brimline.db*"):
        file.unlink()
    queue_messages(daemon, 2)
    problem = reported(daemon)
    assert problem["kept"] is None
    told = wait_for(daemon, MESSAGES, lambda messages: len(messages) == 5)
    queue_messages(daemon, 1)
    daemon.kill()
    daemon.start()
    assert len(daemon.get(MESSAGES)) == len(told) + 1


def test_page_link_outlives_a_new_store(daemon: Running) -> None:
    """A link that was printed before the store was written back still opens the page, once."""
    database(daemon).unlink()
    reported(daemon)
    opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
    with opener.open(daemon.link, timeout=PATIENCE) as answer:
        assert answer.status == 200


def test_store_overwritten_while_the_daemon_runs(daemon: Running, tmp_path: Path) -> None:
    """The daemon goes on with a new store, and takes hooks again."""
    queue_messages(daemon, 3)
    other = tmp_path / "other.db"
    with closing(sqlite3.connect(other)) as connection:
        connection.execute("CREATE TABLE theirs (a)")
    shutil.copyfile(other, database(daemon))
    assert "overwritten" in reported(daemon)["what"]
    wait_for(daemon, "/v1/sessions", lambda sessions: sessions == [])
    daemon.hook(status_input(90_000), "statusline")
    assert len(daemon.get("/v1/sessions")) == 1
    log = said(daemon)
    assert log.count("; restarting") == 1
    assert "Traceback" not in log


def test_state_folder_deleted_while_the_daemon_runs(daemon: Running) -> None:
    """Nobody can find that daemon any more: it ends, and does not create the folder again."""
    queue_messages(daemon, 1)
    shutil.rmtree(daemon.state)
    assert daemon.ended() == 1
    assert not daemon.state.exists()


def flip_bytes(path: Path, number: int, seed: int) -> None:
    """Change so many bytes behind the header."""
    chance, data = random.Random(seed), bytearray(path.read_bytes())
    for _ in range(number):
        data[chance.randrange(100, len(data))] ^= 0xFF
    path.write_bytes(data)


@pytest.mark.parametrize("seed", range(3))
def test_flipped_bytes(daemon: Running, seed: int) -> None:
    """The daemon answers no request with an error for longer than it takes to notice."""
    daemon.hook(status_input(90_000), "statusline")
    queue_messages(daemon, 200)
    daemon.stop()
    flip_bytes(database(daemon), 400, seed)
    daemon.start()
    assert Path(reported(daemon)["kept"]).exists()
    daemon.hook(status_input(90_000), "statusline")
    assert len(daemon.get("/v1/sessions?since=all")) == 1
    assert daemon.get(MESSAGES) == []


def test_bytes_flipped_while_the_daemon_runs(daemon: Running) -> None:
    """Damage that a request comes upon is acted on at once."""
    queue_messages(daemon, 200)
    daemon.stop()
    daemon.start()
    with database(daemon).open("r+b") as file:
        data = file.read()
        for at in range(4_096, len(data), 97):
            file.seek(at)
            file.write(b"\xff")
    status, _ = daemon.refused(MESSAGES)
    assert status == 503
    assert "damaged" in reported(daemon)["what"]
    assert wait_for(daemon, MESSAGES, lambda messages: messages == []) == []
    daemon.client(hook_input("PreCompact", trigger="auto"))
    assert wait_for(daemon, "/v1/sessions", lambda sessions: sessions)


FILL = """WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ?)
INSERT INTO calls SELECT 'session', 'main', printf('msg_%08d', n), n, 0, 3, 9, 9, 9, 'm', 1e9
FROM numbers"""


def test_damage_that_the_check_at_start_does_not_reach(daemon: Running) -> None:
    """A large store opens at once; the check of the whole file finds the damage within a minute."""
    daemon.stop()
    with closing(sqlite3.connect(database(daemon))) as connection:
        connection.execute(FILL, (800_000,))
        connection.commit()
    data = bytearray(database(daemon).read_bytes())
    at = data.index(b"msg_00799999")
    data[at] = 0xFF
    database(daemon).write_bytes(data)
    daemon.start()
    assert daemon.get("/v1/daemon")["problems"] == []
    assert Path(reported(daemon)["kept"]).exists()
    daemon.hook(status_input(90_000), "statusline")
    assert len(daemon.get("/v1/sessions")) == 1


def test_damage_found_by_the_background_check_is_reacted_to(tmp_path: Path) -> None:
    """The watch calls back with what the check found."""
    path = tmp_path / "brimline.db"

    async def watched() -> str:
        store = await SqliteStore.open(path)
        await store.write([QueueMessage(message(str(number))) for number in range(10)])
        await store.close()
        path.write_bytes(path.read_bytes().replace(b"text of 3", b"te\xfft of 3"))
        store = await SqliteStore.open(path, check_budget_s=0.0)
        found: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        watch = StoreWatch(store, found.set_result, first_check_after_s=0.0)
        works = [asyncio.create_task(work()) for work in (watch.watch_file, watch.check_content)]
        try:
            return await asyncio.wait_for(found, PATIENCE)
        finally:
            for work in works:
                work.cancel()
            await store.close()

    assert "damaged" in asyncio.run(watched())


def test_problem_is_shown_by_the_commands(daemon: Running) -> None:
    """Commands tell of it with the daemon and without; `doctor` fails."""
    daemon.stop()
    os.truncate(database(daemon), 0)
    daemon.start()
    problem = reported(daemon)
    for word in ("status", "watch --once", "serve --status"):
        assert problem["what"] in daemon.command(*word.split()).stderr, word
    daemon.stop()
    assert problem["what"] in daemon.command("status").stderr
    doctor = daemon.command("doctor")
    assert doctor.returncode == 1
    assert problem["what"] in doctor.stdout
    Path(problem["kept"]).unlink()
    assert daemon.command("status").stderr == ""
    assert problem["what"] not in daemon.command("doctor").stdout
