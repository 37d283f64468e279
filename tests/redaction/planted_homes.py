"""Homes with recorded sessions of every agent in which credentials are planted."""

import json
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, cast

from drifted_homes import FIXTURES, RECORDED
from redaction.canaries import Canary

AGENTS = tuple(RECORDED)
PROMPT, COMMAND, READ = "Go.", "echo one", "echo two"  # what the recorded sessions hold
OUTPUTS = ("one", "two", "Output: one", "Output: two", "Output:\none", "Output:\ntwo")

# The tool that shows a file, and the name of its argument; Codex reads files by commands.
READERS = {
    "claude": ("Read", "file_path"),
    "copilot": ("view", "path"),
    "gemini": ("read_file", "file_path"),
    "opencode": ("read", "filePath"),
    "pi": ("read", "path"),
}


def plant(value: Any, agent: str, text: str, key: str = "") -> Any:
    """Put a text into the prompts, commands, arguments, results and file names of a record."""
    if isinstance(value, list):
        return [plant(each, agent, text, key) for each in cast("list[Any]", value)]
    if isinstance(value, dict):
        members = _reading(cast("dict[str, Any]", value), agent)
        return {name: plant(each, agent, text, name) for name, each in members}
    if not isinstance(value, str):
        return value
    if value.startswith("{") and COMMAND[:4] in value:
        return json.dumps(plant(json.loads(value), agent, text))
    if value == PROMPT:
        return f"Look at this.\n{text}"
    if key in ("command", "cmd") and (COMMAND in value or READ in value):
        return f"{value}\n{text}"
    if key in ("file_path", "filePath", "path") and value == READ:
        return f"/home/dev/{text}"
    is_output = any(value.strip() == each or each in value for each in OUTPUTS[2:])
    return f"{value}\n{text}" if is_output or value.strip() in OUTPUTS else value


def _reading(record: dict[str, Any], agent: str) -> Iterator[tuple[str, Any]]:
    """Yield the members of a record; the second command becomes a read of a file."""
    tool, argument = READERS.get(agent, ("", ""))
    reads = bool(tool) and READ in json.dumps(record)
    is_call = reads and any(name in record for name in ("input", "args", "arguments", "callID"))
    for name, value in record.items():
        if is_call and name in ("name", "tool") and isinstance(value, str):
            yield name, tool
        elif reads and name == "command" and value == READ:
            yield argument, READ
        else:
            yield name, value


def write_session(home: Path, agent: str, number: int, canary: Canary) -> str:
    """Write a recorded session with a planted credential; return its id."""
    recorded = FIXTURES / agent / "tool-loop" / "home"
    (path,) = (each for each in recorded.rglob("*") if each.is_file())
    own = f"{1 + AGENTS.index(agent)}{number:07}"
    place = home / str(path.relative_to(recorded)).replace("00000001", own)
    place.parent.mkdir(parents=True, exist_ok=True)
    text = path.read_text("utf-8")
    if place.suffix == ".sql":
        return _write_rows(place.with_suffix(".db"), text.replace("_00000000", f"_{own}"), canary)
    lines = (json.loads(line) for line in text.replace("00000001", own).splitlines())
    planted = (json.dumps(plant(line, agent, canary.text)) for line in lines)
    place.write_text("".join(f"{line}\n" for line in planted), "utf-8")
    return f"{own}-0000-4000-8000-0000{own}"


def _write_rows(place: Path, script: str, canary: Canary) -> str:
    """Add a session to the database of opencode."""
    if place.exists():
        script = "\n".join(line for line in script.splitlines() if line.startswith("INSERT"))
    session = script.partition("'ses_")[2].partition("'")[0]
    now_ms = int(time.time() * 1_000)
    with closing(sqlite3.connect(place)) as database, database:
        database.executescript(script)
        title, where = f"Look at this. {canary.text}", f"ses_{session}"
        changed = (now_ms, title, where)
        database.execute("UPDATE session SET time_updated = ?, title = ? WHERE id = ?", changed)
        for table in ("message", "part"):
            rows = database.execute(f"SELECT id, data FROM {table} WHERE session_id = ?", (where,))
            for id, data in rows.fetchall():
                planted = json.dumps(plant(json.loads(data), "opencode", canary.text))
                database.execute(f"UPDATE {table} SET data = ? WHERE id = ?", (planted, id))
    return where
