"""The terminal's types accept what the API serves, and as much as possible of anything else."""

import json
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from brimline.server.api.app import ENDPOINTS
from brimline.server.api.openapi import build_document
from brimline.tui.api_types import SessionView, Timeline, decode_timeline, decode_view, decode_views

from .daemon import message
from .scene import Json, calls, scene
from .scene import timeline as told_timeline
from .scene import view as told_view


def packed(told: object) -> bytes:
    """As it comes."""
    return json.dumps(told).encode()


def options(schema: Json, schemas: Json) -> list[Json]:
    """The alternatives of a schema, references resolved."""
    if "$ref" in schema:
        return options(schemas[schema["$ref"].rpartition("/")[2]], schemas)
    if "anyOf" in schema:
        return [option for one in schema["anyOf"] for option in options(one, schemas)]
    return [schema]


def type_of(schema: Json) -> str:
    """The JSON type of a schema without alternatives; an integer is a number."""
    name = schema.get("type", "string" if "enum" in schema else "any")
    return "number" if name == "integer" else name


def mismatches(
    ours: Json, our_schemas: Json, served: Json, served_schemas: Json, place: str
) -> Iterator[str]:
    """Each place where a value of the served schema does not fit ours, or a field is missing."""
    accepted = {type_of(option): option for option in options(ours, our_schemas)}
    for option in options(served, served_schemas):
        if type_of(option) not in accepted:
            yield f"{place}: {type_of(option)} is served, {sorted(accepted)} expected"
            continue
        mine = accepted[type_of(option)]
        if "items" in option:
            pairs = [(mine["items"], option["items"], f"{place}[]")]
        else:
            known = option.get("properties", {})
            wanted = mine.get("properties", {})
            yield from (f"{place}.{name} is not served" for name in wanted if name not in known)
            pairs = [(wanted[n], known[n], f"{place}.{n}") for n in wanted if n in known]
        for inner, served_inner, inner_place in pairs:
            yield from mismatches(inner, our_schemas, served_inner, served_schemas, inner_place)


@pytest.mark.parametrize(("kind", "name"), [(SessionView, "SessionView"), (Timeline, "Timeline")])
def test_a_field_differs_from_the_api(kind: type[Any], name: str) -> None:
    """Every field that the terminal reads is in the OpenAPI document, with a type that it takes."""
    schemas, ours = msgspec.json.schema_components([kind], ref_template="#/{name}")
    served = build_document(ENDPOINTS)["components"]["schemas"]
    for local in ("unreadable",) if kind is Timeline else ():
        del ours[kind.__name__]["properties"][local]
    assert not list(mismatches(schemas[0], ours, served[name], served, name))


def test_a_difference_from_the_api_is_noticed() -> None:
    """A missing field, a field of another type and one that may be null are each reported."""
    schemas, ours = msgspec.json.schema_components([SessionView], ref_template="#/{name}")
    served = build_document(ENDPOINTS)["components"]["schemas"]
    del served["SessionView"]["properties"]["unread"]
    served["ThreadRow"]["properties"]["thread"] = {"type": "integer"}
    served["SessionRow"]["properties"]["id"] = {"anyOf": [{"type": "string"}, {"type": "null"}]}
    found = list(mismatches(schemas[0], ours, served["SessionView"], served, "view"))
    assert found == [
        "view.unread is not served",
        "view.session.id: null is served, ['string'] expected",
        "view.threads[].thread: number is served, ['string'] expected",
    ]


def test_every_session_is_taken() -> None:
    """What the API tells now is taken as it is."""
    taken = decode_views(packed(scene()))
    assert [one.session.id for one in taken] == [told["session"]["id"] for told in scene()]
    shop = next(one for one in taken if one.session.id == "shop-backend")
    assert shop.main is not None
    assert (shop.main.percent, shop.main.limit, shop.unread, shop.levels) == (
        76.0, 167_000, 2, (50.0, 65.0)
    )  # fmt: skip
    assert [thread.thread for thread in shop.subagents] == ["explore-tests", "plan"]


def test_what_is_missing_is_unknown() -> None:
    """An older daemon, which tells less: nothing is made up."""
    session = {"id": "s", "agent": "claude", "seen_at": 1.0}
    thread = {"thread": "main", "state": "measured", "source": "hook"}
    taken = decode_view(packed({"session": session, "threads": [thread]}))
    assert taken is not None
    assert (taken.unread, taken.handoff, taken.calls_left, taken.limit_at) == (None,) * 4
    assert taken.main is not None
    assert (taken.main.sent, taken.main.calls, taken.main.cycle) == (None, None, None)


def test_what_is_new_is_left() -> None:
    """A newer daemon, which tells more, also in a thread."""
    told = told_view("s", 1_000, main={"mood": "good"}, colour="blue")
    assert decode_view(packed(told)) == decode_view(packed(told_view("s", 1_000)))


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b'{"session": 1}', b"null", b"\xff"])
def test_a_session_that_cannot_be_read(data: bytes) -> None:
    """It is no session; nothing is raised."""
    assert decode_view(data) is None


def test_one_bad_session_spoils_no_other() -> None:
    """The others are taken."""
    told: list[object] = [told_view("a", 1), {"session": "x"}, 5, told_view("b", 2)]
    assert [one.session.id for one in decode_views(packed(told))] == ["a", "b"]


def test_no_list() -> None:
    """What is no list of sessions comes from no daemon of ours."""
    with pytest.raises(msgspec.DecodeError):
        decode_views(b'{"error": "no"}')


def test_timeline_counts_what_it_cannot_read() -> None:
    """Records that are malformed are counted, the rest is taken."""
    told: Json = told_timeline("s") | {"calls": [*calls("s", 900), {"call": 1}], "new": [1]}
    taken = decode_timeline(packed(told), packed([message("s", "hello"), "no message"]))
    assert (len(taken.calls), len(taken.compactions), len(taken.signals)) == (1, 1, 3)
    assert taken.messages is not None
    assert [one.text for one in taken.messages] == ["hello"]
    assert taken.unreadable == 2


def test_timeline_of_an_older_daemon() -> None:
    """Without compactions and documents, there are none."""
    taken = decode_timeline(packed({"calls": calls("s", 900, 1_200), "signals": []}), b"[]")
    assert (len(taken.calls), taken.compactions, taken.handoffs, taken.unreadable) == (2, (), (), 0)
