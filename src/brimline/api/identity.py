"""Who sent a request to a fleet's server, and what they may do there.

Apart from `access.py`, which the command line imports without Starlette.
"""

from typing import Literal, TypeAlias

import msgspec
from starlette.types import Scope

from brimline.store.fleet import TokenOwner

# `ingest`: report sessions; `read`: see them; `act`: send messages and handoffs to agents; `enrol`:
# have a machine make its own token.
AccessScope: TypeAlias = Literal["ingest", "read", "act", "enrol"]


class Identity(msgspec.Struct, frozen=True):
    """A token or a user of an organisation; `actor` names it in messages and in the audit log.

    `key` is what limits are counted by: the token's id, or the user's name. `has_cookie` if it is a
    browser that has signed in here, and so can sign out. `owner` is None without a token.
    """

    organisation: str
    actor: str
    scopes: frozenset[AccessScope]
    key: str
    has_cookie: bool = False
    owner: TokenOwner | None = None


def set_identity(scope: Scope, identity: Identity) -> None:
    scope.setdefault("state", {})["identity"] = identity


def find_identity(scope: Scope) -> Identity | None:
    """Return who sent a request; None on a daemon, whose requests are all its user's own."""
    return scope.get("state", {}).get("identity")


def find_team(scope: Scope) -> str | None:
    """Return the team of what a request reports, whatever its body says; None if it has none."""
    identity = find_identity(scope)
    return identity.owner.team if identity and identity.owner else None
