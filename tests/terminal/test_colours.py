"""Colours and settings of the status line."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brimline.errors import InvalidSettings
from brimline.settings import MAX_BAR_COLUMNS, LineSettings, line_problems, load
from brimline.terminal.colours import NAMES, code


@pytest.mark.parametrize(
    ("colour", "codes"),
    [
        ("green", "32"),
        ("black", "30"),
        ("bright_white", "97"),
        ("0", "38;5;0"),
        ("255", "38;5;255"),
        ("#ff8000", "38;2;255;128;0"),
        ("#FF8000", "38;2;255;128;0"),
        ("none", ""),
    ],
)
def test_colour_is_a_name_a_number_or_rgb(colour: str, codes: str) -> None:
    assert code(colour) == codes


@pytest.mark.parametrize(
    "colour",
    [
        "",
        "256",
        "-1",
        "1000",
        "Green",
        "bright_",
        "bright_none",
        "#fff",
        "#gggggg",
        "٣",
        "red\n",
        "7\n",
        "#123456\n",
    ],
)
def test_invalid_colour_is_refused(colour: str) -> None:
    assert code(colour) is None


ANY_COLOUR = st.one_of(
    st.text(max_size=12),
    st.integers(-1, 999).map(str),
    st.from_regex(r"[0-9\u0663]{1,3}\n?|#[0-9a-fA-F]{5,7}\n?", fullmatch=True),
    st.sampled_from(NAMES).map("bright_{}".format),
)


@given(ANY_COLOUR)
def test_any_colour_gives_only_digits_and_semicolons(colour: str) -> None:
    codes = code(colour)
    if codes is None:
        return
    first, *numbers = [int(number) for number in codes.split(";")]
    assert set(codes) <= set("0123456789;")
    assert (first == 38 and len(numbers) in (2, 4)) or 30 <= first <= 37 or 90 <= first <= 97
    assert all(number <= 255 for number in numbers)


def test_default_settings_and_every_colour_are_valid() -> None:
    lines = [LineSettings(), LineSettings(bar=0, separator="\ue0b0", parts=("cost",))]
    for name in NAMES:
        warm = f"bright_{name}"
        lines.append(LineSettings(calm=name, warm=warm, hot="none", bar=MAX_BAR_COLUMNS))
    assert [list(line_problems(line)) for line in lines] == [[]] * len(lines)


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("bar", -1, "expected 0 to 60 columns: got -1"),
        ("bar", 61, "expected 0 to 60 columns: got 61"),
        ("calm", "greenish", "got 'greenish'"),
        ("warm", "256", "0 to 255, #rrggbb or none: got '256'"),
        ("hot", "#12", "got '#12'"),
        ("parts", (), "each once: got none"),
        ("parts", ("cost", "cost"), "each once: got cost, cost"),
        ("separator", "\x1b[31m", "without control characters: got '\\x1b[31m'"),
        ("separator", "\n", "got '\\n'"),
        ("separator", "\x9b", "got '\\x9b'"),
        ("separator", "-" * 21, "at most 20 characters"),
    ],
)
def test_invalid_setting_is_refused_with_file_field_and_value(
    field: str, value: Any, expected: str
) -> None:
    with pytest.raises(InvalidSettings) as raised:
        load({}, Path("/none"), Path("/none"), {"line": {field: value}})
    assert (raised.value.place, raised.value.field) == ("argument", f"line.{field}")
    assert expected in raised.value.problem
