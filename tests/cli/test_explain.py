"""`brimline explain`: what fills a context, as JSON and as text."""

import json
from pathlib import Path
from typing import Any

import pytest

from .terminal import Json, User, cells, without_colour

NOTES = "The parser reads one record after the other.\n" * 200


def tool_use(user: User, id: str, age: float, sent: int, tool: str, **arguments: str) -> Json:
    """A call whose reply uses a tool; the tool's id is that of the call."""
    record = user.call(id, sent, age, output=60)
    block = {"type": "tool_use", "id": f"t-{id}", "name": tool, "input": arguments}
    record["message"]["content"] = [block]
    return record


def tool_result(user: User, id: str, age: float, text: str) -> Json:
    block = {"type": "tool_result", "tool_use_id": f"t-{id}", "content": text}
    return user.record("user", age, message={"role": "user", "content": [block]})


@pytest.fixture
def explained(user: User) -> User:
    """A user whose agent read one file twice, and changed it afterwards."""
    file = str(user.home / "project" / "notes.txt")
    user.session(
        "s1",
        user.record("user", 300, message={"role": "user", "content": "Look at the notes. " * 50}),
        tool_use(user, "m1", 290, 20_000, "Read", file_path=file),
        tool_result(user, "m1", 280, NOTES),
        tool_use(user, "m2", 270, 24_560, "Read", file_path=file),
        tool_result(user, "m2", 260, NOTES),
        tool_use(user, "m3", 250, 29_120, "Edit", file_path=file, old_string="a", new_string="b"),
        tool_result(user, "m3", 240, "Done."),
        user.call("m4", 29_200, 230),
        tool_result(user, "m4", 220, NOTES),
    )
    user.subagent("s1", "a1", user.call("x1", 20_000, 250))
    return user


def test_json_adds_up(explained: User) -> None:
    completed = explained.run("explain", "s1", "--json")
    assert (completed.code, completed.err) == (0, "")
    output: Json = completed.json
    assert (output["agent"], output["session_id"]) == ("claude", "s1")
    main, subagent = output["threads"]
    tokens = {each["name"]: each["tokens"] for each in main["categories"]}
    assert sum(tokens.values()) + main["unexplained"] == main["sent"] == 29_200
    assert tokens["tool results"] == pytest.approx(9_000, rel=0.01)
    for category in main["categories"]:
        assert sum(piece["tokens"] for piece in category["pieces"]) == category["tokens"]
    largest = main["categories"][-1]["pieces"][0]
    assert set(largest) == {"what", "call", "tokens", "record"}
    assert (largest["call"], largest["record"]) == ("m2", 3)
    assert main["pending"] == pytest.approx(4_500, rel=0.01)
    assert (subagent["thread"], subagent["sent"]) == ("a1", 20_000)
    assert "series" not in main


def test_waste_names_the_file_that_was_read_twice(explained: User) -> None:
    (waste, *_) = explained.run("explain", "s1", "--json").json["threads"][0]["waste"]
    assert (waste["kind"], waste["times"]) == ("read again unchanged", 2)
    assert waste["tokens"] == pytest.approx(4_500, rel=0.01)
    assert waste["cost"] > 0
    assert "notes.txt" in waste["what"]


def test_series_has_every_call_with_its_tools(explained: User) -> None:
    thread: Any = explained.run("explain", "s1", "--json", "--series").json["threads"][0]
    assert [call["call"] for call in thread["series"]] == ["m1", "m2", "m3", "m4"]
    assert [call["tools"] for call in thread["series"]] == [["Read"], ["Read"], ["Edit"], []]
    for call in thread["series"]:
        assert sum(call["categories"]) + call["unexplained"] == call["sent"]


@pytest.mark.parametrize("width", [40, 60, 80, 120, 200])
def test_text_fits_the_terminal(explained: User, width: int) -> None:
    explained.env["COLUMNS"] = str(width)
    completed = explained.run("explain", "s1")
    assert completed.code == 0
    lines = completed.lines
    assert [line for line in lines if cells(without_colour(line)) > width] == []
    text = " ".join(" ".join(completed.lines).split())
    assert "Read notes.txt: the same result 2 times, 4.5K tokens too many." in text
    assert "tokens more came in since the last call" in text


def test_text_begins_with_total_waste_and_what_to_do(explained: User) -> None:
    lines = explained.run("explain", "s1").lines
    start = lines.index("") + 1
    total, waste, remedy, below = lines[start : start + 4]
    assert total == ("main  claude-sonnet-4-5  Context: 14.6% (29K/200K)  of limit 17.5% (167K)")
    assert waste.startswith("Waste: 4.5K tokens (15.")
    assert waste.endswith("%): read again unchanged 4.5K")
    assert remedy == "Tell the agent not to read a file again that has not changed."
    assert below == ""


def test_context_without_waste_is_reported(user: User) -> None:
    user.session("s1", user.call("m1", 20_000))
    assert "\nNo waste found.\n" in user.run("explain", "s1").out


def test_letters_in_the_bar_are_those_of_the_table(explained: User) -> None:
    lines = explained.run("explain", "s1").lines
    bar = next(line for line in lines if line.startswith("S"))
    assert set(bar) <= set("SUTC?A·")
    assert any(line.startswith("T  tool results") for line in lines)


def test_path_of_a_transcript(explained: User, tmp_path: Path) -> None:
    (file,) = explained.projects.rglob("s1.jsonl")
    copied = tmp_path / "copied.jsonl"
    copied.write_bytes(file.read_bytes())
    completed = explained.run("explain", str(copied), "--json")
    assert [thread["sent"] for thread in completed.json["threads"]] == [29_200]


@pytest.mark.parametrize(
    "command",
    ["explain s1", "inspect s1", "handoff --draft s1", "status", "report", "tools a", "recall go"],
)
def test_folder_that_is_no_path_ends_a_command(user: User, command: str) -> None:
    """What a transcript names as its folder may be any text."""
    prompt = user.record("user", message={"role": "user", "content": "Go on."}, cwd="/a\0b")
    user.session("s1", prompt, {**user.call("m1", 20_000), "cwd": "/a\0b"})
    completed = user.run(*command.split())
    assert "Traceback" not in completed.err
    assert completed.code == (1 if command.startswith("recall") else 0)


def test_context_after_a_compaction_is_unknown(user: User) -> None:
    user.session("s1", user.call("m1", 160_000, 200), *user.compaction(150))
    thread = user.run("explain", "s1", "--json").json["threads"][0]
    assert (thread["sent"], thread["categories"], thread["unexplained"]) == (None, [], 0)
    assert [cycle["sent"] for cycle in thread["cycles"]] == [160_000]
    assert "unknown until the next reply" in user.run("explain", "s1").out


def test_transcript_on_standard_input_is_explained(explained: User) -> None:
    path = explained.projects / "-p" / "s1.jsonl"
    (main,) = explained.run("explain", "-", "--json", stdin=path.read_bytes()).json["threads"]
    assert main == explained.run("explain", str(path), "--json").json["threads"][0]
    shown = explained.run("explain", "-", stdin=b"\xef\xbb\xbf" + path.read_bytes())
    assert (shown.code, shown.err) == (0, "")
    assert "Largest pieces" in shown.out


def test_standard_input_without_a_call_is_an_error(user: User) -> None:
    record = user.record("user", message={"role": "user", "content": "Hi."})
    completed = user.run("explain", "-", stdin=json.dumps(record).encode())
    assert completed.code == 2
    assert "standard input: no model call in it" in completed.err
    assert "standard input" in user.run("explain", "-").err


def test_stream_is_refused(user: User, tmp_path: Path) -> None:
    line = '{"type":"system","subtype":"init","session_id":"s","claude_code_version":"2.1.325"}\n'
    stream = tmp_path / "stream.jsonl"
    stream.write_text(line)
    for target, stdin in ((str(stream), b""), ("-", line.encode())):
        completed = user.run("explain", target, stdin=stdin)
        assert completed.code == 2
        assert "it is a client's stream: prompts, added texts or the usage of" in completed.err
        assert "`brimline inspect` reads streams." in completed.err


def test_session_without_a_call(user: User, tmp_path: Path) -> None:
    empty = tmp_path / "empty.jsonl"
    record = user.record("user", message={"role": "user", "content": "Hi."})
    empty.write_text(json.dumps(record))
    completed = user.run("explain", str(empty))
    assert (completed.code, "no model call in it" in completed.err) == (2, True)


SECRET = "s3cr3tW0rd"


@pytest.fixture
def with_secret(user: User) -> User:
    """A user whose agent ran a command with a password."""
    user.session(
        "s1",
        user.record("user", 300, message={"role": "user", "content": "Log in."}),
        tool_use(user, "m1", 290, 20_000, "Bash", command=f"login --password {SECRET} now"),
        tool_result(user, "m1", 280, NOTES),
        user.call("m2", 24_560, 270),
    )
    return user


def test_secrets_are_shown_on_a_terminal_if_asked_for(with_secret: User) -> None:
    shown = with_secret.on_terminal("explain", "s1")
    assert SECRET not in shown.out
    assert "login --password *** now" in without_colour(shown.out)
    for options in ((), ("--json",)):
        unmasked = with_secret.on_terminal("explain", "s1", "--show-secrets", *options)
        assert f"login --password {SECRET} now" in without_colour(unmasked.out)


def test_secrets_are_not_written_to_a_pipe(with_secret: User) -> None:
    for options in ((), ("--json",)):
        completed = with_secret.run("explain", "s1", "--show-secrets", *options)
        assert (completed.code, completed.out) == (2, "")
        assert "--show-secrets: the output must be a terminal" in completed.err
