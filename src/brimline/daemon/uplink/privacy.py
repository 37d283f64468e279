"""What leaves a machine: figures and names, without paths, prompts and texts.

Each field that is sent is named here or in `protocol.py`, so that a new column of the store stays
on the machine until it is added. Only compactions, which hold figures, ids and names of models,
are sent as their rows, and calls but for the name of their branch.
"""

import os
from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from brimline.daemon.uplink.protocol import UplinkHandoff, UplinkSession, UplinkSignal
from brimline.settings import ProjectNames, UplinkSettings
from brimline.store.rows import CallRow, HandoffRow, SessionRow, SignalRow, ThreadRow

HASH_CHARS = 16


def project_name(path: str | None, names: ProjectNames) -> str | None:
    """Return the last part of a project's path, or a hash of the path."""
    if not path:
        return None
    return _hash(path) if names == "hash" else os.path.basename(path.rstrip("/")) or None


def _hash(text: str) -> str:
    return sha256(os.fsencode(text)).hexdigest()[:HASH_CHARS]


def describe_session(row: SessionRow, settings: UplinkSettings) -> UplinkSession:
    """Return a session without its rows; `problem` stays here too, because it names files."""
    return UplinkSession(
        id=row.id,
        agent=row.agent,
        seen_at=row.seen_at,
        project=project_name(row.project, settings.projects),
        model=row.model,
        version=row.version,
        title=row.title if settings.titles else None,
        parent=row.parent,
        ended_at=row.ended_at,
        became=row.became,
        became_at=row.became_at,
        manager_id=row.manager_id,
        is_fork=row.is_fork,
    )


def describe_threads(
    rows: Iterable[ThreadRow], session: SessionRow, settings: UplinkSettings
) -> list[ThreadRow]:
    """Return threads without the reasons of window and limit, which name settings files."""
    hidden = ["window_why", "window_origin", "limit_why", "limit_origin"]
    if not settings.titles:
        hidden.append("title")
    return [
        replace(row, branch=_branch_name(row.branch, session, settings), **dict.fromkeys(hidden))
        for row in rows
    ]


def describe_calls(
    rows: Sequence[CallRow], session: SessionRow, settings: UplinkSettings
) -> Sequence[CallRow]:
    """Return calls with their branches by name, or as hashes if projects are sent as hashes."""
    if settings.projects == "name":
        return rows
    return [replace(row, branch=_branch_name(row.branch, session, settings)) for row in rows]


def _branch_name(branch: str | None, session: SessionRow, settings: UplinkSettings) -> str | None:
    if not branch or settings.projects == "name":
        return branch
    # With the path in the hash: that of `main` alone could be guessed.
    return _hash(f"{session.project}:{branch}")


def describe_signal(row: SignalRow) -> UplinkSignal:
    return UplinkSignal(**_fields_of(UplinkSignal, row))


def describe_handoff(row: HandoffRow, id: str) -> UplinkHandoff:
    return replace(UplinkHandoff(**_fields_of(UplinkHandoff, row)), id=id)


def _fields_of(kind: type[Struct], row: Struct) -> dict[str, Any]:
    """Return the fields of a row that a type of the protocol names."""
    return {name: getattr(row, name) for name in kind.__struct_fields__}
