"""Documents with which a session goes on: taken, drafted from a transcript, and brought back."""

from brimline.handoff.document import LARGEST, Document, read_document
from brimline.handoff.draft import TOKENS, draft, files_changed_since
from brimline.handoff.freshness import OLD_CALLS, OLD_FILES, Freshness, freshness
from brimline.handoff.records import iter_records
from brimline.handoff.redact import redact
from brimline.handoff.render import render

__all__ = [
    "LARGEST",
    "OLD_CALLS",
    "OLD_FILES",
    "TOKENS",
    "Document",
    "Freshness",
    "draft",
    "files_changed_since",
    "freshness",
    "iter_records",
    "read_document",
    "redact",
    "render",
]
