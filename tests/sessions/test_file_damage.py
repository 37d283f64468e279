"""Every command reads the same of a file that is damaged, or that another program wrote again."""

import io
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from brimline.agents import agent_names, source
from brimline.agents.transcripts.source import START, Places, Transcript
from brimline.context.events import MAIN
from brimline.context.tracker import Session, fold
from brimline.context.window import NO_OVERRIDES
from brimline.errors import UnreadableTranscript
from brimline.sessions.files import HEAD_BYTES, find_transcripts
from brimline.sessions.index import TranscriptIndex
from brimline.sessions.ledger.session_ledger import read_ledgers
from brimline.sessions.report import ReportFilter, build_report, summaries
from brimline.sessions.status import survey_sessions
from brimline.sessions.target import files_of_target, load_target
from clients.fixture import FIXTURES

from .machine import user_record

Json = dict[str, Any]
Damage = Callable[[bytes], bytes]

MARK = b"\xef\xbb\xbf"


def decode(data: bytes) -> list[Json]:
    """The values of lines, or of one document."""
    try:
        return [json.loads(data)]
    except ValueError:
        return [json.loads(line) for line in data.splitlines()]


def rewrite(data: bytes, separators: tuple[str, str], sort_keys: bool = False) -> bytes:
    """Write lines, or one document, with other blanks or in another order."""
    values = decode(data)
    texts = (json.dumps(each, separators=separators, sort_keys=sort_keys) for each in values)
    return "".join(f"{text}\n" for text in texts).encode()


def lengthen(data: bytes) -> bytes:
    """Make the first line longer than the part of a file that is searched for marks."""
    first, *others = decode(data)
    lines = [first | {"padding": "x" * 2 * HEAD_BYTES}, *others]
    return b"".join(json.dumps(each).encode() + b"\n" for each in lines)


DAMAGES: dict[str, Damage] = {
    "byte order mark": lambda data: MARK + data,
    "blanks": lambda data: rewrite(data, (", ", ": ")),
    "blanks and mark": lambda data: MARK + rewrite(data, (" , ", " : ")),
    "windows lines": lambda data: data.replace(b"\n", b"\r\n"),
    "blank lines": lambda data: b"\n\n" + data.replace(b"\n", b"\n\n"),
    "nuls at the end": lambda data: data + b"\0" * 500,
    "nuls at the start": lambda data: b"\0" * 10 + data,
    "long first line": lengthen,
    "no last newline": lambda data: data.removesuffix(b"\n"),
    "sorted keys": lambda data: rewrite(data, (",", ":"), sort_keys=True),
}


class Figures(NamedTuple):
    """The calls of all threads, and what the main thread's last call sent.

    `explain` leaves out calls that only write a summary.
    """

    calls: int
    sent: int | None


def figures_of(session: Session) -> Figures:
    main = session.threads.get(MAIN)
    calls = sum(len(thread.calls) for thread in session.threads.values())
    return Figures(calls, main.current_call.usage.sent if main and main.current_call else None)


def inspect(target: str, places: Places, stdin: bytes = b"") -> Figures:
    loaded = load_target(target, places, io.BytesIO(stdin))
    assert (loaded.tally.unknown, loaded.tally.malformed, loaded.problems) == (0, 0, ())
    return figures_of(loaded.session)


def explain(target: str, places: Places, stdin: bytes = b"") -> Figures:
    files, file = files_of_target(target, places, io.BytesIO(stdin))
    ledgers = read_ledgers(files, places, file)
    threads = {each.thread: each for ledger in ledgers for each in ledger.threads}
    return Figures(sum(len(each.steps) for each in threads.values()), threads[MAIN].sent)


def report(places: Places, cache: Path, is_whole: bool = True) -> int:
    index = TranscriptIndex.load(cache)
    transcripts = find_transcripts(places)
    index.update(transcripts)
    assert not is_whole or index.problems == []
    return build_report(summaries(index, transcripts), "session", ReportFilter()).total.calls


def status(places: Places, cache: Path, is_whole: bool = True) -> int | None:
    survey = survey_sessions(places, agent_names(), None, NO_OVERRIDES, cache)
    assert not is_whole or survey.problems == []
    (session,) = survey.sessions
    return session.main.reading.sent


def lines_of(agent: str, scene: str, home: Path) -> Path:
    """Copy the home folder of a recorded scene; return its main transcript."""
    shutil.copytree(FIXTURES / agent / scene / "home", home)
    return min(home.rglob("*.jsonl"), key=lambda path: len(path.parts))


def older_chat(home: Path) -> Path:
    """Make one document of a chat of Gemini CLI, as its older versions wrote it."""
    path = lines_of("gemini", "tool-loop", home)
    header, *records = map(json.loads, path.read_bytes().splitlines())
    messages = {each["id"]: each for each in records if "id" in each}
    path.unlink()
    path = path.with_suffix(".json")
    path.write_text(json.dumps(header | {"messages": list(messages.values())}, indent=2) + "\n")
    return path


def export() -> Json:
    return json.loads((FIXTURES / "opencode/auto-compact/export.json").read_bytes())


def older_storage(home: Path) -> Path:
    """Make the files of opencode before 1.2 of an export."""
    root = home / ".local/share/opencode/storage"
    session = export()
    own = root / "session/project" / f"{session['info']['id']}.json"
    files = {own: session["info"]}
    for message in session["messages"]:
        id = message["info"]["id"]
        files[root / "message" / own.stem / f"{id}.json"] = message["info"]
        for part in message["parts"]:
            files[root / "part" / id / f"{part['id']}.json"] = part
    for path, value in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(value, indent=2) + "\n")
    return own


FORMS: dict[str, Callable[[Path], Path]] = {
    "claude": lambda home: lines_of("claude", "auto-compact", home),
    "codex": lambda home: lines_of("codex", "auto-compact", home),
    "copilot": lambda home: lines_of("copilot", "auto-compact", home),
    "gemini": lambda home: lines_of("gemini", "tool-loop", home),
    "gemini document": older_chat,
    "pi": lambda home: lines_of("pi", "auto-compact", home),
    "opencode storage": older_storage,
}


def damage_files(home: Path, damage: Damage) -> None:
    for path in [*home.rglob("*.jsonl"), *home.rglob("*.json")]:
        path.write_bytes(damage(path.read_bytes()))


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("form", FORMS)
def test_commands_disagree_about_a_damaged_transcript(
    form: str, damage: str, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    path, places = FORMS[form](home), Places(home, {})
    expected, explained = inspect(str(path), places), explain(str(path), places)
    assert min(expected.calls, explained.calls) > 2
    assert explained.sent == expected.sent
    damage_files(home, DAMAGES[damage])
    assert inspect(str(path), places) == expected
    assert explain(str(path), places) == explained
    assert report(places, tmp_path / "report") == expected.calls
    assert status(places, tmp_path / "status") == expected.sent
    # The messages of the one are in other files; the marks of the other are behind its messages.
    if form != "opencode storage" and (form, damage) != ("gemini document", "sorted keys"):
        shutil.copy(path, tmp_path / "copy.txt")
        assert inspect(str(tmp_path / "copy.txt"), places) == expected
        assert inspect("-", places, path.read_bytes()) == expected
        assert explain("-", places, path.read_bytes()) == explained


BROKEN: dict[str, Damage] = {
    "text before it": lambda data: b"Loading...\n" + data,
    "json before it": lambda data: b'{"level":"info"}\n' + data,
    "first line lost": lambda data: data.partition(b"\n")[2],
    "half a first line": lambda data: data[20:],
}


@pytest.mark.parametrize("damage", BROKEN)
@pytest.mark.parametrize("agent", ["claude", "codex", "copilot", "gemini", "pi"])
def test_commands_disagree_about_a_broken_first_line(
    agent: str, damage: str, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    path, places = FORMS[agent](home), Places(home, {})
    expected = inspect(str(path), places)
    damage_files(home, BROKEN[damage])
    folded = load_target(str(path), places, io.BytesIO()).session
    assert figures_of(folded) == explain(str(path), places) == expected
    assert report(places, tmp_path / "report", is_whole=False) == expected.calls
    assert status(places, tmp_path / "status", is_whole=False) == expected.sent
    if agent != "gemini" or "before" in damage:  # only the header of its chats has a mark
        folded = load_target("-", places, io.BytesIO(path.read_bytes())).session
        assert figures_of(folded) == explain("-", places, path.read_bytes()) == expected


@pytest.mark.parametrize("damage", DAMAGES)
def test_commands_disagree_about_a_damaged_export(damage: str, tmp_path: Path) -> None:
    path, places = tmp_path / "export.json", Places(tmp_path, {})
    data = json.dumps(export(), indent=2).encode() + b"\n"
    expected, explained = inspect("-", places, data), explain("-", places, data)
    assert min(expected.calls, explained.calls) > 2
    path.write_bytes(DAMAGES[damage](data))
    assert inspect(str(path), places) == inspect("-", places, path.read_bytes()) == expected
    assert explain(str(path), places) == explain("-", places, path.read_bytes()) == explained


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("agent", ["claude", "codex", "copilot", "gemini", "pi"])
def test_growing_file_is_read_on_at_another_place(agent: str, damage: str, tmp_path: Path) -> None:
    """Each read begins where the one before ended, also within the first line."""
    path = FORMS[agent](tmp_path / "home")
    data = DAMAGES[damage](path.read_bytes())
    expected = inspect(str(path), Places(tmp_path / "home", {}))
    transcript = Transcript(agent, str(path), 0, 0)
    session, cursor = Session(agent=agent), START
    for size in (2, 4, 100, *range(1_000, len(data), 7_919), len(data)):
        path.write_bytes(data[:size])
        reader = source(agent).read(transcript, cursor)
        session, cursor = fold(session, reader), reader.cursor
    assert figures_of(session) == expected
    assert cursor.offset == len(data)


def test_transcript_without_a_call_has_no_ledger(tmp_path: Path) -> None:
    path = tmp_path / "empty.jsonl"
    path.write_bytes(user_record("Hello"))
    with pytest.raises(UnreadableTranscript, match="no model call in it"):
        explain(str(path), Places(tmp_path, {}))
