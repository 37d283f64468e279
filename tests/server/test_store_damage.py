"""A daemon reports a damaged, deleted or replaced store and continues."""

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

from brimline.store.base import QueueMessage
from brimline.store.sqlite import SqliteStore
from brimline.store.sqlite.store import StoreWatch
from brimline.testing.store.suite import message

from .running import MAX_WAIT_S, Running
from .test_daemon import SESSION, hook_input, status_input, stop_and_read_log

pytestmark = pytest.mark.slow

MESSAGES = f"/v1/sessions/{SESSION}/messages"


def database_path(daemon: Running) -> Path:
    return daemon.state / "brimline.db"


def wait_for(daemon: Running, path: str, fits: Callable[[Any], object]) -> Any:
    """Poll the API until the reply fits; the daemon may be away meanwhile."""
    end = time.monotonic() + 3 * MAX_WAIT_S
    while True:
        try:
            if fits(answer := daemon.get(path)):
                return answer
        except (urllib.error.URLError, ConnectionError, TimeoutError) as error:
            answer = error
        assert time.monotonic() < end, answer
        time.sleep(0.05)


def reported_problem(daemon: Running) -> dict[str, Any]:
    (problem,) = wait_for(daemon, "/v1/daemon", lambda status: status["problems"])["problems"]
    return problem


def queue_messages(daemon: Running, number: int) -> None:
    for one in range(number):
        assert daemon.post(MESSAGES, {"text": f"message {one}"})["id"]


def test_empty_store_is_reported_in_log_status_and_commands(daemon: Running) -> None:
    queue_messages(daemon, 3)
    daemon.stop()
    os.truncate(database_path(daemon), 0)
    daemon.start()
    problem = reported_problem(daemon)
    assert Path(problem["kept"]).exists()
    assert problem["what"] in daemon.boot_log
    assert daemon.get("/v1/sessions") == []


def test_database_of_another_program_is_not_written(daemon: Running) -> None:
    daemon.stop()
    database_path(daemon).unlink()
    with closing(sqlite3.connect(database_path(daemon))) as connection:
        connection.execute("CREATE TABLE theirs (a)")
    before = database_path(daemon).read_bytes()
    daemon.start()
    assert Path(reported_problem(daemon)["kept"]).read_bytes() == before


def test_acknowledged_data_survives_a_deleted_store(daemon: Running) -> None:
    queue_messages(daemon, 3)
    for file in daemon.state.glob("brimline.db*"):
        file.unlink()
    queue_messages(daemon, 2)
    problem = reported_problem(daemon)
    assert problem["kept"] is None
    messages_after = wait_for(daemon, MESSAGES, lambda messages: len(messages) == 5)
    queue_messages(daemon, 1)
    daemon.kill()
    daemon.start()
    assert len(daemon.get(MESSAGES)) == len(messages_after) + 1


def test_link_works_once_after_the_store_was_replaced(daemon: Running) -> None:
    database_path(daemon).unlink()
    reported_problem(daemon)
    opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
    with opener.open(daemon.link, timeout=MAX_WAIT_S) as answer:
        assert answer.status == 200


def test_overwritten_store_is_replaced_and_hooks_are_accepted(
    daemon: Running, tmp_path: Path
) -> None:
    queue_messages(daemon, 3)
    other = tmp_path / "other.db"
    with closing(sqlite3.connect(other)) as connection:
        connection.execute("CREATE TABLE theirs (a)")
    shutil.copyfile(other, database_path(daemon))
    assert "overwritten" in reported_problem(daemon)["what"]
    wait_for(daemon, "/v1/sessions", lambda sessions: sessions == [])
    daemon.hook(status_input(90_000), "statusline")
    assert len(daemon.get("/v1/sessions")) == 1
    log = stop_and_read_log(daemon)
    assert log.count("; restarting") == 1
    assert "Traceback" not in log


def test_daemon_without_its_state_folder_exits_and_does_not_recreate_it(daemon: Running) -> None:
    queue_messages(daemon, 1)
    shutil.rmtree(daemon.state)
    assert daemon.wait_for_exit() == 1
    assert not daemon.state.exists()


def flip_bytes(path: Path, number: int, seed: int) -> None:
    """Change this many bytes after the header."""
    chance, data = random.Random(seed), bytearray(path.read_bytes())
    for _ in range(number):
        data[chance.randrange(100, len(data))] ^= 0xFF
    path.write_bytes(data)


@pytest.mark.parametrize("seed", range(3))
def test_flipped_bytes_cause_errors_only_until_they_are_noticed(daemon: Running, seed: int) -> None:
    daemon.hook(status_input(90_000), "statusline")
    queue_messages(daemon, 200)
    daemon.stop()
    flip_bytes(database_path(daemon), 400, seed)
    daemon.start()
    assert Path(reported_problem(daemon)["kept"]).exists()
    daemon.hook(status_input(90_000), "statusline")
    assert len(daemon.get("/v1/sessions?since=all")) == 1
    assert daemon.get(MESSAGES) == []


def test_damage_found_by_a_request_is_handled_at_once(daemon: Running) -> None:
    queue_messages(daemon, 200)
    daemon.stop()
    daemon.start()
    with database_path(daemon).open("r+b") as file:
        data = file.read()
        for at in range(4_096, len(data), 97):
            file.seek(at)
            file.write(b"\xff")
    status, _ = daemon.refused(MESSAGES)
    assert status == 503
    assert "damaged" in reported_problem(daemon)["what"]
    assert wait_for(daemon, MESSAGES, lambda messages: messages == []) == []
    daemon.client(hook_input("PreCompact", trigger="auto"))
    assert wait_for(daemon, "/v1/sessions", lambda sessions: sessions)


FILL = """WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ?)
INSERT INTO calls (session, thread, call, seq, cycle, input, cache_read, cache_write, output, model,
    at, cache_write_1h)
SELECT 'session', 'main', printf('msg_%08d', n), n, 0, 3, 9, 9, 9, 'm', 1e9, 0
FROM numbers"""


def test_damage_beyond_the_check_at_start_is_found_in_the_background(daemon: Running) -> None:
    daemon.stop()
    with closing(sqlite3.connect(database_path(daemon))) as connection:
        connection.execute(FILL, (800_000,))
        connection.commit()
    data = bytearray(database_path(daemon).read_bytes())
    at = data.index(b"msg_00799999")
    data[at] = 0xFF
    database_path(daemon).write_bytes(data)
    daemon.start()
    assert daemon.get("/v1/daemon")["problems"] == []
    assert Path(reported_problem(daemon)["kept"]).exists()
    daemon.hook(status_input(90_000), "statusline")
    assert len(daemon.get("/v1/sessions")) == 1


def test_background_check_calls_back_with_the_damage(tmp_path: Path) -> None:
    path = tmp_path / "brimline.db"

    async def watched() -> str:
        store = await SqliteStore.open(path)
        await store.write([QueueMessage(message(str(number))) for number in range(10)])
        await store.close()
        path.write_bytes(path.read_bytes().replace(b"text of 3", b"te\xfft of 3"))
        store = await SqliteStore.open(path, check_budget_s=0.0)
        damage: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        watch = StoreWatch(store, damage.set_result, first_check_after_s=0.0)
        works = [asyncio.create_task(work()) for work in (watch.watch_file, watch.check_content)]
        try:
            return await asyncio.wait_for(damage, MAX_WAIT_S)
        finally:
            for work in works:
                work.cancel()
            await store.close()

    assert "damaged" in asyncio.run(watched())


def test_commands_report_the_problem_with_and_without_the_daemon(daemon: Running) -> None:
    daemon.stop()
    os.truncate(database_path(daemon), 0)
    daemon.start()
    problem = reported_problem(daemon)
    for word in ("status", "watch --once", "serve --status"):
        assert problem["what"] in daemon.command(*word.split()).stderr, word
    daemon.stop()
    assert problem["what"] in daemon.answered("status").stderr
    doctor = daemon.command("doctor")
    assert doctor.returncode == 1
    assert problem["what"] in doctor.stdout
    Path(problem["kept"]).unlink()
    assert daemon.answered("status").stderr == ""
    assert problem["what"] not in daemon.command("doctor").stdout
