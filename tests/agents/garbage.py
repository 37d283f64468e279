"""Input that no client writes, for every parser to survive."""

import json
from typing import Any

from hypothesis import strategies as st

from brimline.agents.transcripts.source import MALFORMED, Parser, Source

WORDS = st.text('abé"0-:\0', max_size=5)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=4,
)


@st.composite
def garbage(draw: st.DrawFn, records: list[dict[str, Any]]) -> bytes:
    """Bytes, any JSON, or a record with one value replaced."""
    if draw(st.booleans()):
        return draw(st.binary() | VALUES.map(lambda value: json.dumps(value).encode()))
    record = json.loads(json.dumps(draw(st.sampled_from(records))))
    place = record
    while True:
        key = draw(st.sampled_from(sorted(place)))
        if not isinstance(place[key], dict) or not place[key] or draw(st.booleans()):
            place[key] = draw(VALUES)
            return json.dumps(record).encode()
        place = place[key]


def check_survives(parser: Parser, source: Source, inputs: list[bytes]) -> None:
    """Only the declared errors are raised, and then the parser is unchanged."""
    for each in inputs:
        before = parser.carry(), dict(vars(parser))
        try:
            parser.feed(each)
        except MALFORMED:
            assert (parser.carry(), vars(parser)) == before
        source.recognise(each)
