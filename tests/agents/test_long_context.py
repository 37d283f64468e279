"""Evidence of a window of 1M tokens in Claude Code's transcripts and settings."""

import json
from pathlib import Path
from typing import Any

import pytest

from brimline.agents.claude.fast_reader import FastReader, read_every_record
from brimline.agents.claude.transcript_source import SOURCE
from brimline.agents.transcripts.source import Places
from brimline.context.events import MAIN, WindowReported
from brimline.context.tracker import Session, fold, read

MODEL = "claude-opus-4-6"
TRAILER = "Co-Authored-By: Claude Opus 4.6 (1M context) <noreply@anthropic.com>"


def record(kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": kind, "sessionId": "s1", "cwd": "/p", "version": "2.1.300", **fields}


def call(id: str, sent: int, text: str = "so", model: str = MODEL) -> dict[str, Any]:
    usage = {"input_tokens": sent, "output_tokens": 10}
    content = [{"type": "text", "text": text}]
    return record(
        "assistant", message={"id": id, "model": model, "content": content, "usage": usage}
    )


def user(content: str, **fields: Any) -> dict[str, Any]:
    return record("user", message={"role": "user", "content": content}, **fields)


RESOLVED = user("done", toolUseResult={"agentId": "a1", "resolvedModel": f"{MODEL}[1m]"})
OF_ANOTHER = user("done", toolUseResult={"resolvedModel": "claude-opus-4-8[1m]"})
SHORT = user("done", toolUseResult={"resolvedModel": MODEL})
QUOTED = user(json.dumps({"resolvedModel": f"{MODEL}[1m]"}))
KEPT = user("<local-command-stdout>Kept model as Opus 4.6 (1M context)</local-command-stdout>")
SET = record(
    "system",
    subtype="local_command",
    content="<local-command-stdout>Set model to \x1b[1mOpus 4.6 (1M context)\x1b[22m for this "
    "session</local-command-stdout>",
)
SAID = user("I read: Kept model as Opus 4.6 (1M context)")


def write(path: Path, *records: dict[str, Any]) -> str:
    lines = [json.dumps(each, separators=(",", ":")) for each in records]
    path.write_text("".join(f"{line}\n" for line in lines))
    return str(path)


@pytest.mark.parametrize(
    ("records", "window"),
    [
        pytest.param((RESOLVED, call("a", 9_000)), 1_000_000, id="a resolved model"),
        pytest.param((call("a", 9_000), RESOLVED), 1_000_000, id="a resolved model, later"),
        pytest.param((KEPT, call("a", 9_000)), 1_000_000, id="the client's own words"),
        pytest.param((SET, call("a", 9_000)), 1_000_000, id="the client's words in bold"),
        pytest.param((OF_ANOTHER, call("a", 9_000)), 200_000, id="of another model"),
        pytest.param((SHORT, call("a", 9_000)), 200_000, id="the short window"),
        pytest.param((QUOTED, call("a", 9_000)), 200_000, id="a text that quotes a record"),
        pytest.param((SAID, call("a", 9_000)), 200_000, id="a text that quotes the client"),
        pytest.param((call("a", 9_000, TRAILER),), 200_000, id="a commit trailer alone"),
        pytest.param(
            (call("a", 9_000, TRAILER), call("a", 9_000), call("b", 170_000)),
            1_000_000,
            id="a commit trailer and a call above the limit",
        ),
        pytest.param(
            (call("a", 9_000, TRAILER), call("b", 170_000, model="claude-sonnet-4-5")),
            200_000,
            id="a commit trailer and a call of another model",
        ),
    ],
)
def test_window_is_long_if_the_file_proves_it(
    tmp_path: Path, records: tuple[dict[str, Any], ...], window: int
) -> None:
    path = write(tmp_path / "s1.jsonl", *records)
    session = fold(Session(agent="claude"), read_every_record(path))
    assert fold(Session(agent="claude"), FastReader(path)) == session
    reading = read(session, session.threads[MAIN], "transcript")
    assert reading.window is not None
    origin = "observed" if window == 1_000_000 else "client"
    assert (reading.window.tokens, reading.window.origin) == (window, origin)


@pytest.mark.parametrize(("version", "limit"), [("2.1.20", 155_000), ("2.1.300", 167_000)])
def test_commit_trailer_counts_above_the_limit_of_the_clients_version(
    tmp_path: Path, version: str, limit: int
) -> None:
    for sent, window in ((limit, 200_000), (limit + 1, 1_000_000)):
        later = {**call("b", sent), "version": version}
        path = write(tmp_path / f"{sent}.jsonl", call("a", 9_000, TRAILER), later)
        session = fold(Session(agent="claude"), FastReader(path))
        reading = read(session, session.threads[MAIN], "transcript")
        assert reading.window is not None
        assert reading.window.tokens == window


def test_evidence_is_reported_once_also_after_a_pause(tmp_path: Path) -> None:
    path = write(tmp_path / "s1.jsonl", RESOLVED, call("a", 9_000), RESOLVED)
    first = FastReader(path)
    assert [e for e in first if isinstance(e, WindowReported)] == [
        WindowReported(model=MODEL, tokens=1_000_000, is_evidence=True)
    ]
    with Path(path).open("a") as file:
        file.write(json.dumps(RESOLVED, separators=(",", ":")) + "\n")
    assert list(FastReader(path, first.cursor)) == []


@pytest.mark.parametrize(
    ("settings", "variables", "windows"),
    [
        ({"model": "opus[1m]"}, {}, {"claude-opus*": 1_000_000}),
        ({"model": f"{MODEL}[1m]"}, {}, {MODEL: 1_000_000}),
        ({"model": "opus"}, {}, {}),
        ({"model": "opus"}, {"ANTHROPIC_MODEL": "sonnet[1m]"}, {"claude-sonnet*": 1_000_000}),
        ({"model": "opus[1m]"}, {"CLAUDE_CODE_DISABLE_1M_CONTEXT": "1"}, {"*": 200_000}),
    ],
)
def test_model_of_the_settings_has_the_window_of_its_suffix(
    tmp_path: Path, settings: Any, variables: dict[str, str], windows: dict[str, int]
) -> None:
    file = tmp_path / ".claude" / "settings.json"
    file.parent.mkdir()
    file.write_text(json.dumps(settings))
    assert SOURCE.settings(Places(home=tmp_path, env=variables)).windows == windows
