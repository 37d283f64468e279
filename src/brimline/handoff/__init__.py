"""Handoff documents: read, drafted from a transcript, and rendered for a new context.

When one is saved, drafted or injected is decided in `monitor/`.
"""

from brimline.handoff.document import MAX_DOCUMENT_BYTES, Document, read_document
from brimline.handoff.draft import (
    MAX_DRAFT_CHARS,
    draft_handoff,
    files_changed_since,
    read_changed_files,
)
from brimline.handoff.growing_digest import GrowingDigest
from brimline.handoff.records import iter_records
from brimline.handoff.render import (
    MAX_FRAME_CHARS,
    MAX_FRESH_CALLS,
    MAX_FRESH_FILES,
    Freshness,
    compute_freshness,
    render_handoff,
)

__all__ = [
    "MAX_DOCUMENT_BYTES",
    "MAX_DRAFT_CHARS",
    "MAX_FRAME_CHARS",
    "MAX_FRESH_CALLS",
    "MAX_FRESH_FILES",
    "Document",
    "Freshness",
    "GrowingDigest",
    "compute_freshness",
    "draft_handoff",
    "files_changed_since",
    "iter_records",
    "read_changed_files",
    "read_document",
    "render_handoff",
]
