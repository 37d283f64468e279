"""Answers that are kept."""

import os
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import msgspec
import pytest

from brimline.agents.fresh_session.answers import Category, ClientAnswer
from brimline.agents.fresh_session.measure import (
    KEPT_S,
    MAX_AGE_S,
    CachedAnswer,
    cache_path,
    find_answer,
    load_answer,
    read_answers,
    save_answer,
)

NOW = time.time()
FOLDER, CLIENT = "/p", "2.1.325"
save = partial(save_answer, client=CLIENT, folder=FOLDER)
ANSWER = ClientAnswer("get_context_usage", "m", (Category("System prompt", 5),), window=10)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where an answer is kept."""
    return cache_path(tmp_path / "cache", "claude", "2.1.325", "", "/p", "hash")


def test_place_is_its_own(tmp_path: Path) -> None:
    """Every part of the key makes another file, and parts do not run into each other."""
    keys = [("a", "b", "c"), ("a", "b", ""), ("ab", "", "c"), ("a", "bc", "")]
    assert len({cache_path(tmp_path, *key) for key in keys}) == 4
    assert cache_path(tmp_path, "a", "b") == cache_path(tmp_path, "a", "b")


def test_round_trip(path: Path) -> None:
    """What was kept is found again, with the time at which it was said."""
    save(path, ANSWER, NOW)
    found = load_answer(path, NOW + 60)
    assert found is not None
    assert (found.answer, found.at) == (ANSWER, NOW)
    assert path.stat().st_mode & 0o077 == 0


def test_none_yet(path: Path) -> None:
    """Where nothing was kept, nothing is found."""
    assert load_answer(path, NOW) is None


@pytest.mark.parametrize("age", [MAX_AGE_S, MAX_AGE_S * 9, -MAX_AGE_S])
def test_age(path: Path, age: float) -> None:
    """A day later, or by a clock that went wrong, it is not believed."""
    save(path, ANSWER, NOW)
    assert load_answer(path, NOW + age) is None


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"\xff\xfe", b'{"version":"0"}', b"null"])
def test_broken_is_none(path: Path, data: bytes) -> None:
    """A broken file is as good as none, and the next answer mends it."""
    path.parent.mkdir(parents=True)
    path.write_bytes(data)
    assert load_answer(path, NOW) is None
    save(path, ANSWER, NOW)
    assert load_answer(path, NOW) is not None


def test_every_cut_is_none(path: Path) -> None:
    """A file that was cut anywhere is as good as none."""
    save(path, ANSWER, NOW)
    whole = path.read_bytes()
    for end in range(len(whole)):
        path.write_bytes(whole[:end])
        assert load_answer(path, NOW) is None


def test_other_version_of_ours(path: Path) -> None:
    """What another Brimline kept is not believed: it may have read it otherwise."""
    kept = save(path, ANSWER, NOW)
    path.write_bytes(msgspec.json.encode(msgspec.structs.replace(kept, version="0.0.0")))
    assert load_answer(path, NOW) is None


def test_memory_files(path: Path, tmp_path: Path) -> None:
    """A memory file that changed, wherever it is, makes the answer an old one."""
    memory = tmp_path / "imported.md"
    memory.write_text("one")
    save(path, msgspec.structs.replace(ANSWER, memory_files=(str(memory),)), NOW)
    assert load_answer(path, NOW) is not None
    memory.write_text("two")
    assert load_answer(path, NOW) is None
    memory.unlink()
    assert load_answer(path, NOW) is None


@pytest.mark.parametrize("doubt", [{"estimated": True}, {"without": ("db",)}])
def test_doubtful_is_not_kept(path: Path, doubt: dict[str, object]) -> None:
    """A guess, and an answer in which something is missing, is given once and not kept."""
    answer = msgspec.structs.replace(ANSWER, **doubt)
    assert save(path, answer, NOW).answer == answer
    assert not path.exists()


def test_full_disk_is_no_error(path: Path, without_privileges: None) -> None:
    """A folder that cannot be written only makes the next time slower."""
    path.parent.mkdir(parents=True)
    path.parent.chmod(0o555)
    try:
        assert save(path, ANSWER, NOW).answer == ANSWER
    finally:
        path.parent.chmod(0o755)
    assert list(path.parent.iterdir()) == []


def test_file_in_the_way(tmp_path: Path) -> None:
    """So does a file where the folder would be."""
    (tmp_path / "cache").write_text("")
    where = cache_path(tmp_path / "cache", "x")
    assert save(where, ANSWER, NOW).answer == ANSWER
    assert load_answer(where, NOW) is None


def test_old_files_are_removed(path: Path) -> None:
    """What can no longer be believed does not pile up."""
    path.parent.mkdir(parents=True)
    old, new = path.with_name("old.json"), path.with_name(".new-x")
    for file, at in ((old, NOW - KEPT_S - 1), (new, NOW)):
        file.write_text("")
        os.utime(file, (at, at))
    save(path, ANSWER, NOW)
    assert {file.name for file in path.parent.iterdir()} == {".new-x", path.name}


def test_answer_of_another_folder_or_client_is_not_found(tmp_path: Path) -> None:
    """An answer is found by folder and version, the nearest in time, also when it is old."""
    for number, at in enumerate((NOW - 9 * MAX_AGE_S, NOW)):
        place = cache_path(tmp_path, str(number))
        save(place, msgspec.structs.replace(ANSWER, window=number), at)
    save_answer(cache_path(tmp_path, "other"), ANSWER, NOW, client=CLIENT, folder="/other")
    answers = read_answers(tmp_path)
    old = find_answer(answers, "claude", FOLDER, CLIENT, NOW - 8 * MAX_AGE_S)
    new = find_answer(answers, "claude", FOLDER, None, NOW)
    assert old is not None
    assert new is not None
    assert (old.answer.window, new.answer.window) == (0, 1)
    assert find_answer(answers, "claude", FOLDER, CLIENT, None) == new
    assert find_answer(answers, "claude", FOLDER, "2.1.326", NOW) is None
    assert find_answer(answers, "codex", FOLDER, CLIENT, NOW) is None
    assert read_answers(tmp_path / "nothing") == []


WRITER = """
import sys, time
import time
from pathlib import Path
from brimline.agents.fresh_session.answers import ClientAnswer, Category
from brimline.agents.fresh_session.measure import save_answer
path, tokens = Path(sys.argv[1]), int(sys.argv[2])
answer = ClientAnswer("/context", "m" * 20_000, (Category("System prompt", tokens),))
for _ in range(200):
    save_answer(path, answer, time.time(), client="", folder="")
"""


def test_two_processes_at_once(path: Path) -> None:
    """While two processes write, every read finds one whole answer; afterwards one file is left."""
    save(path, ANSWER, NOW)
    command = [sys.executable, "-c", WRITER, str(path)]
    writers = [subprocess.Popen([*command, str(n)]) for n in (1, 2)]
    found: list[CachedAnswer | None] = []
    while any(writer.poll() is None for writer in writers):
        found.append(load_answer(path, time.time()))
    assert [writer.wait() for writer in writers] == [0, 0]
    assert {kept and kept.answer.tokens for kept in found} <= {1, 2, 5}
    assert [file.name for file in path.parent.iterdir()] == [path.name]
