"""The OpenAPI document: every route of the API is in it, and what it says is so."""

import json
import urllib.error
import urllib.request
from typing import Any, cast

import pytest

from brimline.server.api.app import ENDPOINTS
from brimline.server.api.openapi import build_document

from .running import Running
from .test_daemon import SESSION, status_input

Json = dict[str, Any]


def fits(value: Any, schema: Json, schemas: Json) -> bool:
    """Whether a value has the shape that a schema says, as far as ours say it."""
    if "$ref" in schema:
        return fits(value, schemas[schema["$ref"].rpartition("/")[2]], schemas)
    if "anyOf" in schema:
        return any(fits(value, one, schemas) for one in schema["anyOf"])
    match schema.get("type"):
        case "object":
            return isinstance(value, dict) and _object(cast("Json", value), schema, schemas)
        case "array":
            items = cast("list[Any]", value) if isinstance(value, list) else [...]
            return all(fits(one, schema.get("items", {}), schemas) for one in items)
        case "null":
            return value is None
        case "string":
            return isinstance(value, str)
        case "integer":
            return isinstance(value, int)
        case "number":
            return isinstance(value, int | float)
        case "boolean":
            return isinstance(value, bool)
        case _:
            return "enum" not in schema or value in schema["enum"]


def _object(value: Json, schema: Json, schemas: Json) -> bool:
    told = set(value)
    if "properties" not in schema:
        each = schema["additionalProperties"]
        return all(fits(value[name], each, schemas) for name in told)
    known = schema["properties"]
    return set(schema.get("required", ())) <= told <= set(known) and all(
        fits(value[name], known[name], schemas) for name in told
    )


def test_every_endpoint_is_in_it() -> None:
    """What is routed is what is documented."""
    made = build_document(ENDPOINTS)
    told = {(method.upper(), path) for path, ops in made["paths"].items() for method in ops}
    assert told == {(endpoint.method, endpoint.path) for endpoint in ENDPOINTS}


def test_answers_are_as_they_are_documented(daemon: Running) -> None:
    """Every GET that answers JSON answers what its schema says."""
    daemon.hook(status_input(150_000), "statusline")
    daemon.post(f"/v1/sessions/{SESSION}/messages", {"text": "hi"})
    served = daemon.get("/openapi.json")
    schemas = served["components"]["schemas"]
    for path, operations in served["paths"].items():
        content = operations.get("get", {}).get("responses", {}).get("200", {}).get("content", {})
        if "application/json" in content:
            answer = daemon.get(path.replace("{id}", SESSION))
            assert fits(answer, content["application/json"]["schema"], schemas), path


def test_what_is_served_is_all_of_it(daemon: Running) -> None:
    """The daemon routes every endpoint, those of the design that this began with among them."""
    assert daemon.get("/openapi.json")["paths"] == build_document(ENDPOINTS)["paths"]
    assert {"/hooks/context-usage", "/sessions/{id}", "/hooks/{agent}"} <= {
        endpoint.path for endpoint in ENDPOINTS
    }


def test_answers_to_what_is_posted(daemon: Running) -> None:
    """A post of the old script is answered as its schema says, whatever becomes of it."""
    daemon.hook(status_input(150_000), "statusline")
    made = build_document(ENDPOINTS)
    posted = made["paths"]["/hooks/context-usage"]["post"]["responses"]["200"]
    schema = posted["content"]["application/json"]["schema"]
    for told in ({"used_percentage": 12.5}, {"event": "context_reset"}, {"event": "?"}):
        answer = daemon.post("/hooks/context-usage", {"session_id": SESSION, **told})
        assert fits(answer, schema, made["components"]["schemas"]), told


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/v1/sessions?since=x", None),
        ("GET", "/v1/sessions/nosuch", None),
        ("GET", "/v1/sessions/nosuch/handoff", None),
        ("POST", "/v1/sessions/nosuch/messages", {"text": ""}),
        ("POST", "/v1/sessions/nosuch/messages", {"text": "x" * 9_001}),
        ("DELETE", "/v1/sessions/nosuch/messages/m1", None),
    ],
)
def test_refusals_are_documented(daemon: Running, method: str, path: str, body: Any) -> None:
    """What is refused is refused with a status that the document has for it."""
    data = None if body is None else json.dumps(body).encode()
    address = f"http://127.0.0.1:{daemon.port}{path}"
    headers = {"Authorization": f"Bearer {daemon.secret}"}
    request = urllib.request.Request(address, data, headers, method=method)
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(request)
    with refused.value as error:
        assert "error" in json.load(error)
    template = path.partition("?")[0].replace("nosuch", "{id}").replace("m1", "{message}")
    told = build_document(ENDPOINTS)["paths"][template][method.lower()]["responses"]
    assert str(refused.value.code) in told
