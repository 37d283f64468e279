"""One module decodes the JSON of other programs, and fails in one way."""

import ast
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from brimline.errors import MalformedJson, UnexpectedJson
from brimline.files.foreign_json import (
    JsonDecoder,
    compact_json,
    decode_json,
    decode_lenient,
    recover_objects,
)

SOURCE = Path(__file__).parents[2] / "src" / "brimline"
DECODES = {
    "msgspec.json.decode", "msgspec.json.Decoder", "msgspec.json.format", "json.loads", "json.load",
    "json.JSONDecoder", "_json.make_scanner",
}  # fmt: skip
# What Brimline wrote itself, by module.
OWN = {
    "agents/codex/transcript.py": "the parser's state between two reads",
    "agents/copilot/transcript.py": "the parser's state between two reads",
    "agents/pi/transcript.py": "the parser's state between two reads",
    "agents/fresh_session/measure.py": "the cache of baselines",
    "cli/context.py": "what was encoded just before",
    "redaction/rules.py": "a file of the package",
    "sdk/tracker.py": "what Tracker.state() returned",
    "context/policy/compaction.py": "what CompactionPolicy.state() returned",
    "api/session_cache.py": "a view that was encoded just before",
    "handoff/pins.py": "the pins",
    "install/client_setting.py": "the records of compact-at",
    "install/created_files.py": "the record of files that setup created",
    "install/manifest.py": "the manifest of setup",
    "monitor/restore.py": "the variables of a client that the monitor stored",
    "store/problems.py": "the list of damaged stores",
    "daemon/tmux/clear_requests.py": "the files of requested clears",
    "context/window/tables.py": "files of the package",
}
# They decode what others wrote, but cannot use the module.
EXCEPTIONS = {
    "files/foreign_json.py": "it is the module",
    "hooks/client/payload.py": "the hook client imports nothing of Brimline",
    "files/jsonc.py": "single numbers and strings, which its grammar has matched",
}


class Point(msgspec.Struct):
    x: int
    name: str = ""
    rest: msgspec.Raw = msgspec.Raw()


def deep(depth: int) -> bytes:
    return b"[" * depth + b"]" * depth


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b'{"x":1', "truncated"),
        (b"\xe9{}", "invalid character"),
        (b'{"x":NaN}', "invalid character"),
        (b'{"x":1,"name":"\xe9"}', "not UTF-8: byte 0xe9"),
        (b'{"x":1,"rest":' + deep(100_000) + b"}", "nested too deeply"),
        (b"", "truncated"),
        (b'{"x":1,"name":"\\ud800"}', "."),
    ],
)
def test_malformed_json_raises_another_error(data: bytes, reason: str) -> None:
    with pytest.raises(MalformedJson, match=reason) as raised:
        JsonDecoder(Point).decode(data)
    assert not isinstance(raised.value, UnexpectedJson)


@pytest.mark.parametrize("data", [b"7", b'{"x":"1"}', b"{}", b'{"x":1e999}'])
def test_another_shape_is_called_malformed(data: bytes) -> None:
    with pytest.raises(UnexpectedJson):
        decode_json(data, Point)


@pytest.mark.parametrize("data", [b"\xe9", b"{", b"1 2", deep(100_000), b"1" * 10_000])
def test_lenient_decoding_raises_another_error(data: bytes) -> None:
    with pytest.raises(MalformedJson):
        decode_lenient(data)
    assert str(decode_lenient(b' {"x":NaN}\n')) == "{'x': nan}"


@pytest.mark.parametrize("data", [b"{", deep(100_000)])
def test_compacting_raises_another_error(data: bytes) -> None:
    with pytest.raises(MalformedJson):
        compact_json(data)
    assert compact_json(b'{ "x": [1,\n 2] }') == b'{"x":[1,2]}'


MARK = b"\xef\xbb\xbf"


def test_byte_order_mark_hides_what_follows_it() -> None:
    """Some editors and shells put it before a text."""
    for data in (MARK + b'{"x":1}', memoryview(MARK + b'{"x":1}')):
        assert JsonDecoder(Point).decode(data) == Point(1)
    assert compact_json(MARK + b'{ "x": 1 }\0\0') == b'{"x":1}'
    assert decode_lenient(MARK + b'{"x": 1}') == {"x": 1}
    assert recover_objects(MARK + b'{"x":1}' + MARK + b'{"x":2}') == [b'{"x":1}', b'{"x":2}']


@pytest.mark.parametrize("data", [MARK, MARK + b"{", b"{\0", b"\0", b'{"x":1}' + MARK])
def test_byte_order_mark_makes_malformed_json_valid(data: bytes) -> None:
    with pytest.raises(MalformedJson):
        decode_json(data, Point)
    with pytest.raises(MalformedJson):
        compact_json(data)


def test_half_a_character_hides_its_record() -> None:
    """JavaScript writes such an escape if it cuts a text between the halves of an emoji."""
    (record,) = recover_objects(b'{"x":1,"name":"caf\xc3\xa9 \\uD83D"}')
    assert decode_json(record, Point).name == "café ?"


def decodes(tree: ast.Module) -> Iterator[str]:
    """Yield the functions of DECODES that a module names, as attributes or by import."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and ast.unparse(node) in DECODES:
            yield ast.unparse(node)
        elif isinstance(node, ast.ImportFrom):
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            yield from sorted(names & (DECODES | {"msgspec.json"}))


def test_the_search_finds_every_way_to_decode() -> None:
    text = "import json\nfrom msgspec import json as j\nfrom json import loads\njson.loads(b'')\n"
    assert sorted(decodes(ast.parse(text))) == ["json.loads", "json.loads", "msgspec.json"]


def test_json_of_others_is_decoded_in_another_module() -> None:
    """A decoder of its own misses one of the ways in which foreign JSON can fail."""
    found = {
        str(path.relative_to(SOURCE))
        for path in SOURCE.rglob("*.py")
        if "testing" not in path.parts and any(decodes(ast.parse(path.read_text("utf-8"))))
    }
    assert found == OWN.keys() | EXCEPTIONS.keys()
