"""Elements in texts that anyone can write."""

import json
import re
import time
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brimline.agents import get_agent
from brimline.agents.content import read_content
from brimline.agents.tagged_text import Elements

from .test_copilot import event
from .test_kimi import record

NAMES = "(a|b_[a-z]+)"
TAGS = Elements(f"<{NAMES}>", f"</{NAMES}>")
SIZE, MAX_S = 160_000, 0.5

Json = dict[str, Any]


def test_elements_are_those_between_a_tag_and_the_first_that_closes_it() -> None:
    text = "x<a> <b_c></a>\n</b_c>y<a>z<b_c>1<b_d>2</b_d></b_c>"
    outside = "x\n</b_c>y<a>z"
    elements = [("a", "<a> <b_c></a>"), ("b_c", "<b_c>1<b_d>2</b_d></b_c>")]
    assert TAGS.split(text) == (outside, elements)


@given(st.lists(st.sampled_from(["<a>", "</a>", "<b>", "</b>", " ", "\n", "x"])).map("".join))
def test_elements_are_not_those_of_a_regular_expression(text: str) -> None:
    """The expression takes quadratic time."""
    pattern = re.compile(r"<(a|b)>.*?</\1>\s*", re.DOTALL)
    expected = [(match[1], match[0]) for match in pattern.finditer(text)]
    assert Elements("<(a|b)>", r"</(a|b)>\s*").split(text) == (pattern.sub("", text), expected)


def system_message(text: str) -> Json:
    return event("system.message", role="system", content=text)


def reminded(text: str) -> Json:
    return event("user.message", content="", transformedContent=text)


def bound(text: str) -> Json:
    return record("profile.bind", systemPrompt=text, tools=[{"name": "Bash"}])


def asked(text: str) -> Json:
    return {"role": "user", "content": text}


def described(text: str) -> Json:
    return {"id": "1", "type": "user", "content": [{"text": f"This is the Gemini CLI.\n{text}"}]}


@pytest.mark.parametrize(
    ("agent", "record_of", "mark"),
    [
        ("copilot", system_message, "<custom_instruction>"),
        ("copilot", system_message, "<skill>\n  <name>a</name>\n  "),
        ("copilot", reminded, "<reminder>"),
        ("kimi", bound, "<!-- From: "),
        ("kimi", bound, "<!-- From: a -->\n"),
        ("kimi", bound, "- a: \n"),
        ("gemini", described, "--- Context from: "),
        ("gemini", described, "--- Context from: a ---\n"),
        ("cline", asked, "<user_input"),
        ("cline", asked, "<user_input>"),
    ],
)
def test_unclosed_mark_takes_long(agent: str, record_of: Callable[[str], Json], mark: str) -> None:
    """A repository's file or a prompt may hold any text."""
    data = json.dumps(record_of(mark * (SIZE // len(mark)))).encode()
    began = time.process_time()
    pieces = list(read_content([data], get_agent(agent).content_reader()))
    assert time.process_time() - began < MAX_S
    assert pieces
