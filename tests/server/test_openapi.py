"""The OpenAPI document has every route, and the replies match it."""

import json
import urllib.error
import urllib.request
from typing import Any, cast

import pytest

from brimline.api.app import ENDPOINTS
from brimline.api.openapi import build_document

from .running import Running
from .test_daemon import SESSION, status_input

Json = dict[str, Any]


def matches_schema(value: Any, schema: Json, schemas: Json) -> bool:
    """Whether a value matches a schema, for the keywords that ours use."""
    if "$ref" in schema:
        return matches_schema(value, schemas[schema["$ref"].rpartition("/")[2]], schemas)
    if "anyOf" in schema:
        return any(matches_schema(value, one, schemas) for one in schema["anyOf"])
    match schema.get("type"):
        case "object":
            return isinstance(value, dict) and _matches_object(cast("Json", value), schema, schemas)
        case "array":
            items = cast("list[Any]", value) if isinstance(value, list) else [...]
            return all(matches_schema(one, schema.get("items", {}), schemas) for one in items)
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


def _matches_object(value: Json, schema: Json, schemas: Json) -> bool:
    names = set(value)
    if "properties" not in schema:
        each = schema["additionalProperties"]
        return all(matches_schema(value[name], each, schemas) for name in names)
    known = schema["properties"]
    return set(schema.get("required", ())) <= names <= set(known) and all(
        matches_schema(value[name], known[name], schemas) for name in names
    )


def test_every_endpoint_is_documented() -> None:
    document = build_document(ENDPOINTS)
    documented = {
        (method.upper(), path) for path, ops in document["paths"].items() for method in ops
    }
    assert documented == {(endpoint.method, endpoint.path) for endpoint in ENDPOINTS}


def test_reply_of_every_get_matches_its_schema(daemon: Running) -> None:
    daemon.hook(status_input(150_000), "statusline")
    daemon.post(f"/v1/sessions/{SESSION}/messages", {"text": "hi"})
    served = daemon.get("/openapi.json")
    schemas = served["components"]["schemas"]
    for path, operations in served["paths"].items():
        content = operations.get("get", {}).get("responses", {}).get("200", {}).get("content", {})
        if "application/json" in content:
            query = "?q=word" if path.endswith("/recall") else ""  # which it cannot do without
            answer = daemon.get(path.replace("{id}", SESSION) + query)
            assert matches_schema(answer, content["application/json"]["schema"], schemas), path


def test_daemon_serves_every_endpoint(daemon: Running) -> None:
    assert daemon.get("/openapi.json")["paths"] == build_document(ENDPOINTS)["paths"]
    assert {"/hooks/context-usage", "/sessions/{id}", "/hooks/{agent}"} <= {
        endpoint.path for endpoint in ENDPOINTS
    }


def test_replies_of_the_old_endpoint_match_their_schema(daemon: Running) -> None:
    daemon.hook(status_input(150_000), "statusline")
    document = build_document(ENDPOINTS)
    posted = document["paths"]["/hooks/context-usage"]["post"]["responses"]["200"]
    schema = posted["content"]["application/json"]["schema"]
    for bodies in ({"used_percentage": 12.5}, {"event": "context_reset"}, {"event": "?"}):
        answer = daemon.post("/hooks/context-usage", {"session_id": SESSION, **bodies})
        assert matches_schema(answer, schema, document["components"]["schemas"]), bodies


def test_a_route_needs_read_to_get_and_act_to_change_unless_it_reports_sessions() -> None:
    scopes = {(each.method, each.path): each.needed_scope for each in ENDPOINTS}
    assert scopes["GET", "/v1/sessions"] == "read"
    assert scopes["POST", "/v1/sessions/{id}/messages"] == "act"
    assert scopes["DELETE", "/v1/sessions/{id}/messages/{message}"] == "act"
    assert scopes["POST", "/v1/events"] == scopes["POST", "/v1/logs"] == "ingest"
    document = build_document(ENDPOINTS)
    assert document["paths"]["/v1/events"]["post"]["x-scope"] == "ingest"


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
def test_error_statuses_are_documented(daemon: Running, method: str, path: str, body: Any) -> None:
    data = None if body is None else json.dumps(body).encode()
    address = f"http://127.0.0.1:{daemon.port}{path}"
    headers = {"Authorization": f"Bearer {daemon.secret}"}
    request = urllib.request.Request(address, data, headers, method=method)
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(request)
    with refused.value as error:
        assert "error" in json.load(error)
    template = path.partition("?")[0].replace("nosuch", "{id}").replace("m1", "{message}")
    responses = build_document(ENDPOINTS)["paths"][template][method.lower()]["responses"]
    assert str(refused.value.code) in responses
