"""`brimline recall`: which sessions are searched, and what is printed."""

import json
import os
import resource
from pathlib import Path

import pytest

from .terminal import Json, User, cells, without_colour


def prompt(user: User, text: str, age: float = 60, **fields: object) -> Json:
    return user.record("user", age, message={"role": "user", "content": text}, **fields)


@pytest.fixture
def compacted(user: User) -> User:
    """A user with a session that was compacted, and another one of another project."""
    user.session(
        "s1",
        prompt(user, "The port is 5432.\nNever touch the README\nand use --as-json.", 300),
        user.call("m1", 20_000, 290),
        *user.compaction(200),
        prompt(user, "Now the port is 5433.", 100),
    )
    user.session("s2", prompt(user, "a port in a storm", sessionId="s2", cwd="/elsewhere"))
    return user


def test_hit_has_no_place(compacted: User) -> None:
    completed = compacted.run("recall", "never touch", "--session", "s1")
    assert (completed.code, completed.err) == (0, "")
    head, *lines = completed.lines
    assert head.startswith("user  20")
    assert head.endswith("s1.jsonl:1") or lines.pop(0).endswith("s1.jsonl:1")
    assert lines == [
        "    The port is 5432.",
        "  > Never touch the README",
        "    and use --as-json.",
    ]


def test_json_marks_other_places(compacted: User) -> None:
    completed = compacted.run("recall", "port", "--session", "s1", "--json")
    hits = completed.json["hits"]
    assert [(hit["line"], hit["call"], hit["role"]) for hit in hits] == [
        (5, 1, "user"),
        (1, 0, "user"),
    ]
    (line,) = hits[0]["lines"]
    assert [line["text"][start:end] for start, end in line["marks"]] == ["port"]


def test_search_before_the_compaction_finds_what_is_in_the_context(compacted: User) -> None:
    words = ("recall", "port", "--session", "s1", "--before-compaction", "--json")
    assert [hit["line"] for hit in compacted.run(*words).json["hits"]] == [1]


def test_nothing_found_is_a_success(compacted: User) -> None:
    completed = compacted.run("recall", "gannet", "--session", "s1")
    assert (completed.code, completed.out) == (1, "nothing found (1 session searched)\n")


def test_phrase_without_a_hit_hides_its_words(compacted: User) -> None:
    completed = compacted.run("recall", "README touch", "--session", "s1")
    assert completed.lines[0] == "No passage has this phrase; these have all of its words:"
    assert "  > Never touch the README" in completed.lines


def test_session_that_the_command_runs_in_is_not_searched(compacted: User) -> None:
    compacted.env["CLAUDE_CODE_SESSION_ID"] = "s2"
    completed = compacted.run("recall", "port", "--json")
    assert [hit["session"] for hit in completed.json["hits"]] == ["s2"]


def test_sessions_of_other_projects_are_searched(compacted: User) -> None:
    project = compacted.home / "project"
    (project / ".git").mkdir(parents=True)
    (project / "src").mkdir()
    compacted.cwd = project / "src"
    completed = compacted.run("recall", "port", "--json")
    assert {hit["session"] for hit in completed.json["hits"]} == {"s1"}


def test_project_without_sessions_is_no_clear_answer(compacted: User) -> None:
    completed = compacted.run("recall", "port")
    assert completed.code == 1
    assert completed.err == f"brimline: no sessions of {compacted.cwd}\n"
    assert completed.out == "nothing found: there is no transcript to search\n"


def test_no_words_are_a_crash(compacted: User) -> None:
    completed = compacted.run("recall", " ", "--session", "s1")
    assert completed.code == 2
    assert completed.err.startswith("brimline: nothing to search for\nhint: For example: ")


def test_terminal_is_controlled_by_a_transcript(user: User) -> None:
    """Escape sequences, a bidi override and a bell of a transcript are not printed."""
    text = "\x1b]0;title\x07a \x1b[31mred\x1b[0m gannet \u202egnirts\u009b2J"
    user.session("s1", prompt(user, text))
    for options in ((), ("--json",)):
        out = user.run("recall", "red gannet", "--session", "s1", *options).out
        assert not [c for c in out if not c.isprintable() and c != "\n"]


@pytest.mark.parametrize("locale", ["C", "C.UTF-8"])
def test_narrow_terminal_or_plain_locale_breaks_it(compacted: User, locale: str) -> None:
    compacted.env |= {"COLUMNS": "40", "LC_ALL": locale}
    completed = compacted.run("recall", "port", "--session", "s1")
    assert completed.code == 0
    assert "  > The port is 5432." in completed.lines


def test_fork_is_searched_without_its_original(user: User) -> None:
    """A fork of Codex 0.166 does not repeat its history: what it continues is another file."""
    folder = user.home / ".codex" / "sessions" / "2026" / "11" / "18"
    folder.mkdir(parents=True)
    first, second = (f"0199a213-81c0-7800-8aa1-bbab2a035a5{n}" for n in (3, 4))
    _write_rollout(folder, first, "the first gannet", None)
    _write_rollout(folder, second, "the second gannet", first)
    found = user.run("recall", "gannet", "--session", second, "--json").json["hits"]
    assert {hit["session"] for hit in found} == {first, second}
    lost = user.run("recall", "gannet", "--session", second, "--before-compaction", "--json")
    assert [hit["session"] for hit in lost.json["hits"]] == [first]


def _write_rollout(folder: Path, id: str, text: str, base: str | None) -> None:
    meta: Json = {"id": id, "timestamp": "2026-11-18T10:00:00.000Z", "cwd": "/p",
                  "originator": "codex_exec", "cli_version": "0.166.0"}  # fmt: skip
    if base is not None:
        meta["forked_from_id"] = base
        meta["history_base"] = {"thread_id": base, "end_ordinal_exclusive": 9}
    message = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}
    event = {"type": "user_message", "message": text}
    rows = [("session_meta", meta), ("response_item", message), ("event_msg", event)]
    path = folder / f"rollout-2026-11-18T10-00-0{id[-1]}-{id}.jsonl"
    at = "2026-11-18T10:00:00.000Z"
    lines = [json.dumps({"timestamp": at, "type": kind, "payload": row}) for kind, row in rows]
    path.write_text("\n".join(lines) + "\n")
    os.utime(path)


def test_marks_are_lost_on_a_terminal(compacted: User) -> None:
    compacted.env["FORCE_COLOR"] = "1"
    completed = compacted.run("recall", "never touch", "--session", "s1")
    (line,) = [each for each in completed.lines if "README" in each]
    assert line == "  > \x1b[31mNever touch\x1b[0m the README"
    assert cells(without_colour(line)) == len("  > Never touch the README")


def test_full_disk_hides_what_is_there(user: User) -> None:
    """The index is then made in memory, and the user reads why it takes so long each time."""
    texts = [prompt(user, f"gannet {n} " + " ".join(map(str, range(500)))) for n in range(100)]
    user.session("s1", *texts)

    def limit_files() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, 60_000))

    completed = user.run("recall", "gannet 7", "--session", "s1", first=limit_files)
    assert completed.code == 0
    assert "cannot write the index in " in completed.err
    assert any(line.startswith("  > gannet 7 0") for line in completed.lines)
    whole = user.run("recall", "gannet 7", "--session", "s1")
    assert (whole.err, whole.out) == ("", completed.out)


def test_interrupted_indexing_leaves_a_wrong_index(user: User) -> None:
    texts = [prompt(user, f"gannet {n} {'word ' * 3_000}") for n in range(800)]
    user.session("s1", *texts)
    interrupted = user.on_terminal("recall", "gannet", "--session", "s1", interrupt="MB")
    assert interrupted.code in (0, 130)
    assert "Traceback" not in interrupted.out
    found = user.run("recall", "gannet 799", "--session", "s1", "--json").json
    assert [hit["line"] for hit in found["hits"]] == [800]
