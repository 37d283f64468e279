"""The OpenAPI document, from the same table as the routes."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

import msgspec

from brimline._version import __version__
from brimline.api.identity import AccessScope
from brimline.api.schemas import Problem

NeededScope: TypeAlias = AccessScope | Literal["any"]


class Endpoint(msgspec.Struct, frozen=True):
    """One route.

    With `needs_session` the handler gets the session's row, and an unknown session is a 404; with
    `may_be_missing` the handler decides about the 404. `unix_only` routes read a file of the user,
    type into a terminal or stop the daemon. `events` are the types of a stream's events by name.
    `scope` is what a token needs on a fleet's server: by default `read` for GET, else `act`;
    `any` if every valid token may use it.
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
    scope: NeededScope | None = None

    @property
    def needed_scope(self) -> NeededScope:
        return self.scope or ("read" if self.method == "GET" else "act")


SecuritySchemes: TypeAlias = Mapping[str, Mapping[str, str]]

DAEMON_SECURITY: SecuritySchemes = {
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

FLEET_SECURITY: SecuritySchemes = {
    "token": {
        "type": "http",
        "scheme": "bearer",
        "description": "A token of `brimline token create`; `x-scope` is the scope that it needs, "
        "`any` if each will do.",
    },
    "cookie": {
        "type": "apiKey",
        "in": "cookie",
        "name": "__Host-brimline",
        "description": "Set by signing in; without TLS its name is brimline-PORT.",
    },
}


def build_document(
    endpoints: Sequence[Endpoint], security: SecuritySchemes = DAEMON_SECURITY
) -> dict[str, Any]:
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
        "components": {"schemas": components, "securitySchemes": security},
        "security": [{name: []} for name in security],
    }


def _operation(endpoint: Endpoint, named: dict[str, Any]) -> dict[str, Any]:
    responses = {
        str(endpoint.status): _content("OK", endpoint.media, named[repr(endpoint.response)])
    }
    problem = _content("Error", "application/json", named[repr(Problem)])
    responses |= {"401": problem, "403": problem, "503": problem}
    if endpoint.needs_session or endpoint.may_be_missing:
        responses["404"] = problem
    if endpoint.query:
        responses["422"] = problem
    operation: dict[str, Any] = {
        "summary": endpoint.summary,
        "responses": responses,
        "x-scope": endpoint.needed_scope,
    }
    if endpoint.events:
        operation["x-events"] = {name: named[repr(kind)] for name, kind in endpoint.events.items()}
    if endpoint.unix_only:
        operation["x-unix-socket-only"] = True
    if parameters := _parameters(endpoint):
        operation["parameters"] = parameters
    if endpoint.body is not None:
        responses |= {"413": problem, "422": problem}
        schema = named[repr(endpoint.body)]
        operation["requestBody"] = {
            "required": True,
            "content": {"application/json": {"schema": schema}},
        }
    return operation


def _parameters(endpoint: Endpoint) -> list[dict[str, Any]]:
    """Return the parameters of the path, which are required, and of the query."""
    text = {"type": "string"}
    named = re.findall(r"{(\w+)}", endpoint.path)
    in_path = [{"name": n, "in": "path", "required": True, "schema": text} for n in named]
    return in_path + [{"name": n, "in": "query", "schema": text} for n in endpoint.query]


def _content(description: str, media: str, schema: Any) -> dict[str, Any]:
    return {"description": description, "content": {media: {"schema": schema}}}
