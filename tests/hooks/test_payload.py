"""The reduced event that is spooled without a daemon has only the fields that the daemon reads."""

import json
import os
import re
import struct
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias, get_args

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from brimline.agents import hook_adapter
from brimline.agents.gemini.hooks import GeminiInput
from brimline.agents.hook_adapter import ExtensionInput
from brimline.hooks.client import payload
from brimline.hooks.client.payload import (
    FIELDS,
    MAX_REDUCED_BYTES,
    MAX_VALUE_BYTES,
    reduce_body,
)
from hypothesis_examples import examples

from .agent import Agent
from .short_status import short_status

SECRET = "canary-7f3a"
# Fields that clients add, also below and as names of expected fields.
FREE_TEXT = {
    "prompt": SECRET,
    "message": SECRET,
    "custom_instructions": SECRET,
    "last_assistant_message": SECRET,
    "reason": SECRET,
    "tool_input": {"command": SECRET, "model": SECRET, "cwd": SECRET},
    "tool_response": {"stdout": SECRET, "id": SECRET},
    "tool_calls": [{"id": SECRET, "tool_input": {"cwd": SECRET}}],
    "llm_request": {"model": SECRET, "messages": [{"content": SECRET}]},
    "llm_response": {"candidates": [{"content": SECRET}]},
    "env": {"version": SECRET},
    "cwd": [SECRET],
    SECRET: SECRET,
}

NEEDED = {
    "session_id": "s",
    "hook_event_name": "PostToolUse",
    "transcript_path": "/home/someone/caf\u00e9.jsonl",
    "cwd": "/project",
    "tool_name": "Bash",
    "stop_hook_active": True,
}
# Read but not spooled: the conversation, text that no code uses, and what the next status line
# reports again.
NOT_SPOOLED = {
    "rate_limits",
    "prompt_cache",
    "added_bytes",
    "llm_request",
    "llm_response",
    "prompt",
    "reason",
    "tool_calls",
    "tool_response",
}

Reduce: TypeAlias = Callable[[bytes], tuple[bytes, bytes]]


@pytest.mark.parametrize("kind", ["hook", "statusline"])
def test_no_free_text_is_spooled(agent: Agent, kind: str) -> None:
    body = json.dumps({**FREE_TEXT, **NEEDED, **{f"x_{key}": SECRET for key in NEEDED}})
    agent.run(body.encode(), kind)
    assert SECRET.encode() not in (agent.folder / "spool").read_bytes()
    (event,) = agent.take_spooled()
    assert json.loads(event.body) == NEEDED


@pytest.mark.parametrize(
    "body",
    [
        SECRET.encode(),
        b'"%b"' % SECRET.encode(),
        b'{"session_id":"s","prompt":"%b' % SECRET.encode(),
    ],
    ids=["text", "a string", "cut off"],
)
def test_body_that_is_no_object_is_spooled_empty(agent: Agent, body: bytes) -> None:
    """The daemon counts it as malformed."""
    agent.run(body)
    (event,) = agent.take_spooled()
    assert (event.kind, event.body) == ("hook", b"")


def test_value_longer_than_a_path_is_left_out(agent: Agent) -> None:
    body = {"session_id": "s", "cwd": "x" * MAX_VALUE_BYTES, "model": "m" * (MAX_VALUE_BYTES - 2)}
    agent.run(json.dumps(body).encode())
    (event,) = agent.take_spooled()
    assert json.loads(event.body) == {"session_id": "s", "model": body["model"]}


def field_names(kind: Any) -> Iterator[str]:
    """Yield the names of all fields of a type, at any depth."""
    for each in (kind, *get_args(kind)):
        if isinstance(each, type) and issubclass(each, msgspec.Struct):
            for field in msgspec.structs.fields(each):
                yield field.encode_name
                if field.encode_name not in NOT_SPOOLED:
                    yield from field_names(field.type)


def test_spooled_fields_are_exactly_those_the_daemon_reads() -> None:
    kinds = (
        hook_adapter.HookInput,
        GeminiInput,
        ExtensionInput,
        hook_adapter.StatusInput,
    )
    read = {name for kind in kinds for name in field_names(kind)}
    assert read - NOT_SPOOLED == set(FIELDS)


def test_both_clients_have_the_same_fields() -> None:
    source = Path(payload.__file__).with_name("tables.h").read_text()
    table = source.partition("FIELDS[] = {")[2].partition("};")[0]
    assert set(re.findall(r'"(\w+)"', table)) == set(FIELDS)


# The scanner in C.


@pytest.fixture(scope="module")
def in_c(tmp_path_factory: pytest.TempPathFactory, compiled: Path) -> Iterator[Reduce]:
    """The C functions, under the sanitizers if the compiler has them."""
    assert compiled
    program = tmp_path_factory.mktemp("payload") / "driver"
    here, source = Path(__file__).parent, Path(payload.__file__).with_suffix(".c")
    command = [*os.environ.get("CC", "cc").split(), "-std=c11", "-g", "-O1", "-I"]
    command += [str(source.parent), "-o", str(program), str(source), str(here / "payload_driver.c")]
    checked = [*command, "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    if subprocess.run(checked, capture_output=True, check=False).returncode:
        subprocess.run(command, check=True)
    env = {"ASAN_OPTIONS": "detect_leaks=0"}  # looking for leaks takes it many seconds to end
    process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env)
    assert process.stdin
    assert process.stdout
    into, out = process.stdin, process.stdout

    def part() -> bytes:
        return out.read(struct.unpack("=I", out.read(4))[0])

    def reduce(body: bytes) -> tuple[bytes, bytes]:
        into.write(struct.pack("=I", len(body)) + body)
        into.flush()
        return part(), part()

    yield reduce
    into.close()
    assert process.wait(30) == 0
    out.close()


def in_python(body: bytes) -> tuple[bytes, bytes]:
    reduced = reduce_body(body)
    return reduced, short_status(reduced, "daemon off")


names = st.sampled_from([*sorted(FIELDS), "prompt", "tool_input", 'a"b', "caf\u00e9", ""])
scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(names, inner, max_size=6),
    max_leaves=25,
)


@st.composite
def bodies(draw: st.DrawFn) -> bytes:
    """A body as clients may write it, mostly an object."""
    value = draw(values | st.dictionaries(names, values, max_size=8))
    indent = draw(st.sampled_from([None, 0, 2]))
    text = json.dumps(value, ensure_ascii=draw(st.booleans()), indent=indent)
    return text.encode("utf-8", "surrogatepass")


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """A body that is cut off or has a few bytes replaced."""
    body = bytearray(draw(bodies()))
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(body)))
        body[at : at + draw(st.integers(0, 2))] = draw(
            st.sampled_from(
                [
                    b"",
                    b'"',
                    b"\\",
                    b"{",
                    b"}",
                    b"]",
                    b",",
                    b":",
                    b"\xff",
                    b"\0",
                    b"1",
                    b"e",
                    b"-",
                    b".",
                ]
            )
        )
    return bytes(body)


FUZZ = settings(
    examples(400),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@FUZZ
@given(body=bodies() | damaged() | st.binary(max_size=200))
def test_c_and_python_agree(in_c: Reduce, body: bytes) -> None:
    """The sanitizers catch reads beyond the body."""
    assert in_c(body) == in_python(body)


@given(st.dictionaries(names, values, max_size=8))
def test_reduced_fields_keep_their_values(value: dict[str, Any]) -> None:
    reduced = json.loads(reduce_body(json.dumps(value).encode()))
    scalar = {key: each for key, each in value.items() if not isinstance(each, list | dict)}
    expected = {key: each for key, each in scalar.items() if key in FIELDS}
    assert json.dumps({key: reduced[key] for key in expected}) == json.dumps(expected)
    assert set(reduced) <= FIELDS


CORNERS: dict[str, bytes] = {
    "duplicates": b'{"cwd":1,"cwd":2}',
    "an escaped key": b'{"cw\\u0064":1}',
    "a comma too many": b'{"cwd":1,}',
    "no comma": b'{"cwd":1 "id":2}',
    "more behind it": b"{}{}",
    "space behind it": b"{} \n\t\r",
    "a leading zero": b'{"cwd":01}',
    "half a fraction": b'{"cwd":1.}',
    "half an exponent": b'{"cwd":1e}',
    "an exponent": b'{"cwd":-1.5E+10}',
    "a plus": b'{"cwd":+1}',
    "constants": b'{"cwd":NaN,"id":-Infinity,"model":Infinity}',
    "a control character": b'{"cwd":"\n"}',
    "half an escape": b'{"cwd":"\\u12"}',
    "an unknown escape": b'{"cwd":"\\x"}',
    "half a surrogate": b'{"cwd":"\\ud800"}',
    "no UTF-8": b'{"cwd":"\xff\xfe"}',
    "NUL": b'{"cwd":"\0"}',
    "as long as allowed": b'{"cwd":"%b"}' % (b"x" * (MAX_VALUE_BYTES - 2)),
    "too long": b'{"cwd":"%b"}' % (b"x" * (MAX_VALUE_BYTES - 1)),
    "as much as allowed": b"{%b}" % b",".join([b'"cwd":"%b"' % (b"x" * 1015)] * 64)[:-1],
    "too much": b"{%b}" % b",".join([b'"cwd":"%b"' % (b"x" * 4_000)] * 20),
    "deep": b'{"cwd":%b}' % (b"[" * 100_000),
    "deep and closed": b'{"id":1,"x":%b%b}' % (b"[" * 100_000, b"]" * 100_000),
    "less deep": b'{"id":1,"x":%b%b}' % (b"[" * 300, b"]" * 300),
    "deep in a kept field": b'{"cost":' * 6 + b"1" + b"}" * 6,
    "nothing": b"",
    "only space": b"  ",
    "half": b"{",
}


@pytest.mark.parametrize("body", CORNERS.values(), ids=CORNERS)
def test_c_and_python_agree_on_corner_cases(in_c: Reduce, body: bytes) -> None:
    reduced = in_c(body)
    assert reduced == in_python(body)
    assert len(reduced[0]) <= MAX_REDUCED_BYTES


def test_example_body_is_reduced_to_its_fields() -> None:
    body = b'{"session_id": "s", "model": {"id": "m", "x": 1}, "prompt": "hello", "cwd": "/a"}'
    assert reduce_body(body) == b'{"session_id":"s","model":{"id":"m"},"cwd":"/a"}'
