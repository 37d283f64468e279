"""Elements in texts that anyone can write."""

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brimline.agents import get_agent
from brimline.agents.content import ContentReader, SystemPrompt, read_content
from brimline.agents.tagged_text import Elements

from .test_copilot import event
from .test_kimi import line, record

TAGS = Elements("a|b_[a-z]+")
MAX_S = 0.5


def test_elements_are_those_between_a_tag_and_the_first_that_closes_it() -> None:
    text = "x<a> <b_c></a>\n</b_c>y<a>z<b_c>1<b_d>2</b_d></b_c>"
    outside = "x\n</b_c>y<a>z"
    elements = [("a", "<a> <b_c></a>"), ("b_c", "<b_c>1<b_d>2</b_d></b_c>")]
    assert TAGS.split(text) == (outside, elements)
    assert Elements("a", and_space=True).split("1 <a></a> \n2") == ("1 2", [("a", "<a></a> \n")])


@given(st.lists(st.sampled_from(["<a>", "</a>", "<b>", "</b>", " ", "\n", "x"])).map("".join))
def test_elements_are_not_those_of_a_regular_expression(text: str) -> None:
    """The expression takes quadratic time."""
    pattern = re.compile(r"<(a|b)>.*?</\1>\s*", re.DOTALL)
    expected = [(match[1], match[0]) for match in pattern.finditer(text)]
    assert Elements("a|b", and_space=True).split(text) == (pattern.sub("", text), expected)


def reader(agent: str) -> ContentReader:
    return get_agent(agent).content_reader()


@pytest.mark.parametrize("mark", ["<custom_instruction>", "<skill>\n  <name>a</name>\n  "])
def test_unclosed_mark_takes_copilots_reader_long(mark: str) -> None:
    """A repository's file, which is in the system prompt, may hold any text."""
    prompt = event("system.message", role="system", content=mark * (160_000 // len(mark)))
    began = time.process_time()
    (system,) = read_content([line(prompt)], reader("copilot"))
    assert time.process_time() - began < MAX_S
    assert isinstance(system, SystemPrompt)


def test_unclosed_reminder_takes_copilots_reader_long() -> None:
    prompt = event("user.message", content="", transformedContent="<reminder>" * 16_000)
    began = time.process_time()
    list(read_content([line(prompt)], reader("copilot")))
    assert time.process_time() - began < MAX_S


@pytest.mark.parametrize("mark", ["<!-- From: ", "- a:", "- a: \n", "<!-- From: a -->\n"])
def test_marks_take_kimis_reader_long(mark: str) -> None:
    prompt = mark * (160_000 // len(mark))
    bound = record("profile.bind", systemPrompt=prompt, tools=[{"name": "Bash"}])
    began = time.process_time()
    (system,) = read_content([line(bound)], reader("kimi"))
    assert time.process_time() - began < MAX_S
    assert isinstance(system, SystemPrompt)
