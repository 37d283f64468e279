"""The estimate of tokens: beside tokenizers, and of what messages consist of."""

import base64
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from brimline.context.token_estimate import PDF_PAGE_TOKENS, estimate, estimate_messages
from brimline.context.usage import IMAGE_TOKENS

LEAST, MOST = 0.95, 1.5
# Repeated by bench/estimate.py, which writes the counts.
PROSE_AND_CODE = frozenset(
    {
        *("prose", "licence", "Markdown", "German", "French", "Russian", "Chinese", "Japanese"),
        *("Korean", "Spanish", "Italian", "Polish", "Finnish", "Turkish", "Vietnamese", "Danish"),
        *("Indonesian", "Swahili", "Ukrainian", "Greek", "Hebrew", "Urdu", "Bengali", "Tamil"),
        *("Thai", "Georgian", "Amharic", "traditional Chinese", "numbered lines"),
        *("Python", "TypeScript", "C", "CSS", "SQL", "YAML", "HTML"),
    }
)


class Counted(msgspec.Struct):
    text: str
    tokens: dict[str, int]


COUNTS = msgspec.json.decode(
    Path(__file__).with_name("token_counts.json").read_bytes(),
    type=dict[str, Counted],
)


@pytest.mark.parametrize("kind", COUNTS)
def test_estimate_is_never_below_what_tokenizers_count(kind: str) -> None:
    """The real counts are those of the tokenizers of GPT-4, GPT-4o and Claude 2."""
    counted = COUNTS[kind]
    ratio = estimate(counted.text) / max(counted.tokens.values())
    assert ratio >= LEAST
    assert kind not in PROSE_AND_CODE or ratio <= MOST


def test_number_of_kinds() -> None:
    assert len(COUNTS) >= 70
    assert COUNTS.keys() >= PROSE_AND_CODE


@given(st.text(), st.text())
def test_estimate_of_two_texts_is_about_that_of_both(one: str, other: str) -> None:
    assert estimate(f"{one}\n\n{other}") <= estimate(one) + estimate(other) + 2
    assert estimate("") == 0


def test_keys_and_numbers_of_the_input_of_a_tool_count() -> None:
    numbers = {"values": list(range(7_000))}
    call = {"type": "tool_use", "id": "t1", "name": "plot", "input": numbers}
    assert estimate_messages([call]) > 7_000 * 2
    assert estimate_messages({"input": {"a_long_key_name": None}}) > 4


def test_number_outside_of_json_counts() -> None:
    assert estimate_messages({"content": 123_456}) == estimate("123456")
    assert estimate_messages({"content": True, "other": None}) == 0


@dataclass(slots=True)
class SlotsMessage:
    role: str
    content: str


class StructMessage(msgspec.Struct):
    role: str
    content: str


class PlainSlots:
    __slots__ = ("_client", "content")

    def __init__(self, content: str) -> None:
        self.content = content
        self._client = content


WORDS = "word " * 90


@pytest.mark.parametrize(
    "message", [SlotsMessage("", WORDS), StructMessage("", WORDS), PlainSlots(WORDS)]
)
def test_objects_without_a_dict_count(message: object) -> None:
    assert estimate_messages([message]) == estimate("word " * 90)
    assert estimate_messages({"input": {"rows": [message]}}) > estimate("word " * 90)


def pdf(pages: int) -> bytes:
    kids = b"".join(b"<< /Type /Page /Parent 2 0 R >>\n" for _ in range(pages))
    return b"%PDF-1.7\n<< /Type /Pages /Kids [] >>\n" + kids


@pytest.mark.parametrize("pages", [1, 40])
def test_pdf_counts_by_its_pages(pages: int) -> None:
    text = base64.b64encode(pdf(pages)).decode()
    source = {"type": "base64", "media_type": "application/pdf", "data": text}
    forms: list[Any] = [
        {"type": "document", "source": source},
        {"type": "file", "file": {"file_data": f"data:application/pdf;base64,{text}"}},
        {"inline_data": {"mime_type": "application/pdf", "data": pdf(pages)}},
        {"data": pdf(pages)},
    ]
    for form in forms:
        tokens = estimate_messages([form])
        assert pages * PDF_PAGE_TOKENS <= tokens <= pages * PDF_PAGE_TOKENS + 20


def test_pdf_that_hides_its_pages_counts_by_its_size() -> None:
    data = base64.b64encode(b"%PDF-1.7\n" + bytes(400_000)).decode()
    source = {"type": "base64", "media_type": "application/pdf", "data": data}
    assert estimate_messages(source) == 9 * PDF_PAGE_TOKENS
    assert estimate_messages({**source, "data": "no base64"}) == PDF_PAGE_TOKENS


def test_images_and_encrypted_reasoning_do_not_count_as_text() -> None:
    images: list[Any] = [
        {"type": "base64", "media_type": "image/png", "data": "A" * 400_000},
        {"inline_data": {"mime_type": "image/png", "data": b"x"}},
        {"type": "base64", "url": "x"},
    ]
    assert [estimate_messages(image) for image in images] == [IMAGE_TOKENS] * 3
    assert estimate_messages({"signature": "Ab1" * 700}) == 630


def test_plain_text_in_a_document_counts_as_text() -> None:
    source = {"media_type": "text/plain", "data": "word " * 90}
    assert estimate_messages(source) > estimate("word " * 90)
