"""Output to a terminal without Unicode: ASCII look-alikes, of the same width."""

import ast
import json
from pathlib import Path

import pytest

import brimline
from brimline.terminal.text import LOOK_ALIKES, cell_width

from .terminal import Json, User

TITLE = "Büro “プロジェクト” → 100 × faster…"
LOCALES: list[Json] = [
    {"LC_ALL": "C"},
    {"LC_ALL": "POSIX"},
    {"LANG": "C"},
    {"LC_ALL": "de_DE.ISO-8859-1"},
    {"PYTHONIOENCODING": "ascii"},
    {"PYTHONIOENCODING": "latin-1"},
]
COMMANDS = [
    "status",
    "status --all",
    "watch --once --all",
    "inspect aaa",
    "inspect aaa --series",
    "inspect aaa --audit",
    "explain aaa",
    "report --by project",
    "report --csv --by session",
    "report --misses",
    "windows",
    "windows claude-opus-5",
    "handoff --draft aaa",
    "setup --dry-run",
    "doctor",
    "demo",
    "fleet snippet",
    "completion fish",
    "help",
    "help handoff",
]


@pytest.fixture
def writer(user: User) -> User:
    """A user whose sessions have letters and marks of several scripts."""
    prompt = user.record("user", message={"role": "user", "content": TITLE})
    calls = [user.call(f"m{i}", 9_000 * i, cwd="/büro/プロジェクト") for i in range(1, 18)]
    user.session("aaa", prompt, *calls, *user.compaction(), user.call("m18", 30_000))
    user.subagent("aaa", "é1", user.call("m19", 20_000))
    return user


@pytest.mark.parametrize("command", COMMANDS)
def test_c_locale_gets_ascii_of_the_same_width(writer: User, command: str) -> None:
    words = command.split()
    full = writer.run(*words, COLUMNS="80")
    plain = writer.run(*words, COLUMNS="80", LC_ALL="C")
    assert (plain.code, full.code) == (0, 0), plain.err
    assert (plain.out + plain.err).isascii()
    assert list(map(len, plain.lines)) == list(map(cell_width, full.lines))


@pytest.mark.parametrize("locale", LOCALES, ids=str)
def test_output_is_ascii_without_a_utf_8_locale_and_encoding(writer: User, locale: Json) -> None:
    shown = writer.run("status", COLUMNS="120", **locale)
    assert shown.out.isascii()
    assert "B?ro '????????????' > 100 x" in shown.out
    wrong = writer.run("inspect", "Größe…", **locale)
    assert wrong.err.startswith("brimline: no file or session named 'Gr??e~'\n")


def test_utf_8_output_is_unchanged(writer: User) -> None:
    locales: list[Json] = [{"LANG": "de_DE.utf8"}, {"LANG": ""}, {"LC_ALL": "C.UTF-8"}]
    for locale in locales:
        assert TITLE in writer.run("status", COLUMNS="160", **locale).out


@pytest.mark.parametrize("command", ["inspect aaa", "report --by project"])
def test_json_in_the_c_locale_has_the_same_values(writer: User, command: str) -> None:
    words = [*command.split(), "--json"]
    plain = writer.run(*words, LC_ALL="C")
    assert plain.out.isascii()
    assert "\\u30d7" in plain.out
    first, second = plain.json, writer.run(*words).json
    for shown in (first, second):
        shown.pop("age_seconds", None)
    assert first == second


def test_run_prints_what_an_agent_writes_in_ascii(writer: User) -> None:
    content: list[Json] = [
        {"type": "text", "text": "Größer → 2 ×"},
        {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls ü"}},
    ]
    reply: Json = {"id": "m1", "model": "m", "role": "assistant", "content": content}
    line = json.dumps({"type": "assistant", "session_id": "s", "message": reply})
    (writer.cwd / "lines").write_text(line + "\n")
    words = ("run", "--render", "pretty", "--agent", "claude", "--", "cat", "lines")
    assert writer.run(*words, LC_ALL="C").out == "Gr??er > 2 x\n> Bash  ls ?\n"


def test_every_mark_that_a_surface_draws_has_a_look_alike() -> None:
    package = Path(brimline.__file__).parent
    files = [file for name in ("cli", "terminal", "tui") for file in (package / name).rglob("*.py")]
    strings = (
        node.value
        for file in files
        for node in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    )
    marks = {mark for text in strings for mark in text if not mark.isascii()}
    assert len(marks) > 20
    assert {mark for mark in marks if mark.encode("ascii", LOOK_ALIKES) == b"?"} <= {"\ufffd"}
