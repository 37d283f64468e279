"""The UI's types accept the API's answers, and as much as possible of malformed ones."""

import json
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from brimline.api.app import ENDPOINTS
from brimline.api.openapi import build_document
from brimline.errors import MalformedJson
from brimline.tui.api_types import (
    WatchedSession,
    WatchedTimeline,
    decode_timeline,
    decode_view,
    decode_views,
)

from .daemon import message
from .sample_views import Json, calls, scene
from .sample_views import timeline as sample_timeline
from .sample_views import view as sample_view


def encode(data_sent: object) -> bytes:
    return json.dumps(data_sent).encode()


def options(schema: Json, schemas: Json) -> list[Json]:
    """The alternatives of a schema, with references resolved."""
    if "$ref" in schema:
        return options(schemas[schema["$ref"].rpartition("/")[2]], schemas)
    if "anyOf" in schema:
        return [
            option for alternative in schema["anyOf"] for option in options(alternative, schemas)
        ]
    return [schema]


def type_of(schema: Json) -> str:
    """The JSON type of a schema without alternatives; an integer is a number."""
    name = schema.get("type", "string" if "enum" in schema else "any")
    return "number" if name == "integer" else name


def mismatches(
    ours: Json, our_schemas: Json, served: Json, served_schemas: Json, place: str
) -> Iterator[str]:
    """Each place where a served value does not fit our type, or a field is missing."""
    accepted = {type_of(option): option for option in options(ours, our_schemas)}
    for option in options(served, served_schemas):
        if type_of(option) not in accepted:
            yield f"{place}: {type_of(option)} is served, {sorted(accepted)} expected"
            continue
        mine = accepted[type_of(option)]
        if "items" in option:
            pairs = [(mine["items"], option["items"], f"{place}[]")]
        else:
            properties = option.get("properties", {})
            wanted = mine.get("properties", {})
            yield from (
                f"{place}.{name} is not served" for name in wanted if name not in properties
            )
            pairs = [(wanted[n], properties[n], f"{place}.{n}") for n in wanted if n in properties]
        for inner, served_inner, inner_place in pairs:
            yield from mismatches(inner, our_schemas, served_inner, served_schemas, inner_place)


@pytest.mark.parametrize(
    ("kind", "name"), [(WatchedSession, "SessionView"), (WatchedTimeline, "Timeline")]
)
def test_fields_match_the_openapi_document(kind: type[Any], name: str) -> None:
    schemas, ours = msgspec.json.schema_components([kind], ref_template="#/{name}")
    served = build_document(ENDPOINTS)["components"]["schemas"]
    for local in ("unreadable",) if kind is WatchedTimeline else ():
        del ours[kind.__name__]["properties"][local]
    assert not list(mismatches(schemas[0], ours, served[name], served, name))


def test_mismatches_with_the_api_are_reported() -> None:
    schemas, ours = msgspec.json.schema_components([WatchedSession], ref_template="#/{name}")
    served = build_document(ENDPOINTS)["components"]["schemas"]
    del served["SessionView"]["properties"]["unread"]
    served["ThreadView"]["properties"]["thread"] = {"type": "integer"}
    served["SessionRow"]["properties"]["id"] = {"anyOf": [{"type": "string"}, {"type": "null"}]}
    reported = list(mismatches(schemas[0], ours, served["SessionView"], served, "view"))
    assert reported == [
        "view.unread is not served",
        "view.session.id: null is served, ['string'] expected",
        "view.threads[].thread: number is served, ['string'] expected",
    ]


def test_all_sessions_of_the_api_are_decoded() -> None:
    decoded = decode_views(encode(scene()))
    assert [row.session.id for row in decoded] == [
        data_sent["session"]["id"] for data_sent in scene()
    ]
    shop = next(row for row in decoded if row.session.id == "shop-backend")
    assert shop.main is not None
    assert (shop.main.percent, shop.main.limit, shop.unread, shop.levels) == (
        76.0, 167_000, 2, (50.0, 65.0)
    )  # fmt: skip
    assert [thread.thread for thread in shop.subagents] == ["explore-tests", "plan"]


def test_missing_fields_are_none() -> None:
    session = {"id": "s", "agent": "claude", "seen_at": 1.0}
    thread = {"thread": "main", "state": "measured", "source": "hook"}
    decoded = decode_view(encode({"session": session, "threads": [thread]}))
    assert decoded is not None
    assert (decoded.unread, decoded.handoff, decoded.calls_left, decoded.limit_at) == (None,) * 4
    assert decoded.main is not None
    assert (decoded.main.sent, decoded.main.calls, decoded.main.cycle) == (None, None, None)


def test_unknown_fields_are_ignored() -> None:
    data_sent = sample_view("s", 1_000, main={"mood": "good"}, colour="blue")
    assert decode_view(encode(data_sent)) == decode_view(encode(sample_view("s", 1_000)))


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b'{"session": 1}', b"null", b"\xff"])
def test_undecodable_session_is_none(data: bytes) -> None:
    assert decode_view(data) is None


def test_undecodable_session_does_not_hide_others() -> None:
    data_sent: list[object] = [sample_view("a", 1), {"session": "x"}, 5, sample_view("b", 2)]
    assert [row.session.id for row in decode_views(encode(data_sent))] == ["a", "b"]


def test_data_that_is_not_a_list_raises() -> None:
    """Such an answer is not from a Brimline daemon."""
    with pytest.raises(MalformedJson):
        decode_views(b'{"error": "no"}')


def test_timeline_counts_undecodable_items() -> None:
    data_sent: Json = sample_timeline("s") | {"calls": [*calls("s", 900), {"call": 1}], "new": [1]}
    decoded = decode_timeline(encode(data_sent), encode([message("s", "hello"), "no message"]))
    assert (len(decoded.calls), len(decoded.compactions), len(decoded.signals)) == (1, 1, 3)
    assert decoded.messages is not None
    assert [sent_message.text for sent_message in decoded.messages] == ["hello"]
    assert decoded.unreadable == 2


def test_timeline_without_some_lists_is_decoded() -> None:
    decoded = decode_timeline(encode({"calls": calls("s", 900, 1_200), "signals": []}), b"[]")
    assert (len(decoded.calls), decoded.compactions, decoded.handoffs, decoded.unreadable) == (
        2,
        (),
        (),
        0,
    )
