"""What the API offers, as OpenAPI says it, from the same table that the routes are made from."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from brimline._version import __version__
from brimline.server.api.schemas import Problem


class Endpoint(msgspec.Struct, frozen=True):
    """One route: its path and method, its handler's name, what it takes and what it answers.

    With `found` its handler is given the session, which must be known; with `missing` it finds out
    itself whether there is what it is asked for. What is `unix_only` reads a file of the user's,
    types into a terminal or ends the daemon, and is answered over the Unix socket alone. `events`
    are the types of a stream's events by name.
    """

    method: str
    path: str
    handler: str
    summary: str
    response: Any
    body: Any = None
    status: int = 200
    needs_session: bool = False
    may_be_missing: bool = False
    unix_only: bool = False
    media: str = "application/json"
    query: tuple[str, ...] = ()
    events: Mapping[str, Any] = {}


SECURITY_SCHEMES = {
    "secret": {
        "type": "http",
        "scheme": "bearer",
        "description": "The text of the file `secret` in the state folder. "
        "Requests over the Unix socket need none.",
    },
    "cookie": {
        "type": "apiKey",
        "in": "cookie",
        "name": "brimline-PORT",
        "description": "Set by the link of `brimline open`; PORT is the daemon's.",
    },
}


def build_document(endpoints: Sequence[Endpoint]) -> dict[str, Any]:
    """The OpenAPI document of these endpoints."""
    types = [
        each
        for endpoint in endpoints
        for each in (endpoint.response, endpoint.body, *endpoint.events.values())
        if each is not None
    ]
    schemas, components = msgspec.json.schema_components(
        [*types, Problem], ref_template="#/components/schemas/{name}"
    )
    named = dict(zip(map(repr, [*types, Problem]), schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in endpoints:
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = _operation(endpoint, named)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Brimline", "version": __version__},
        "paths": paths,
        "components": {"schemas": components, "securitySchemes": SECURITY_SCHEMES},
        "security": [{name: []} for name in SECURITY_SCHEMES],
    }


def _operation(endpoint: Endpoint, named: dict[str, Any]) -> dict[str, Any]:
    answers = {str(endpoint.status): _content("OK", endpoint.media, named[repr(endpoint.response)])}
    problem = _content("Error", "application/json", named[repr(Problem)])
    answers |= {"401": problem, "403": problem, "503": problem}
    if endpoint.needs_session or endpoint.may_be_missing:
        answers["404"] = problem
    if endpoint.query:
        answers["422"] = problem
    made: dict[str, Any] = {"summary": endpoint.summary, "responses": answers}
    if endpoint.events:
        made["x-events"] = {name: named[repr(kind)] for name, kind in endpoint.events.items()}
    if endpoint.unix_only:
        made["x-unix-socket-only"] = True
    if parameters := _parameters(endpoint):
        made["parameters"] = parameters
    if endpoint.body is not None:
        answers |= {"413": problem, "422": problem}
        schema = named[repr(endpoint.body)]
        made["requestBody"] = {
            "required": True,
            "content": {"application/json": {"schema": schema}},
        }
    return made


def _parameters(endpoint: Endpoint) -> list[dict[str, Any]]:
    """What stands in the path, which must be there, and in the query, which may be."""
    text = {"type": "string"}
    named = re.findall(r"{(\w+)}", endpoint.path)
    in_path = [{"name": n, "in": "path", "required": True, "schema": text} for n in named]
    return in_path + [{"name": n, "in": "query", "schema": text} for n in endpoint.query]


def _content(about: str, media: str, schema: Any) -> dict[str, Any]:
    return {"description": about, "content": {media: {"schema": schema}}}
