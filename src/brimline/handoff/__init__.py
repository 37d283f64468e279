"""Documents with which a session goes on: taken, drafted from a transcript, and brought back."""

from brimline.handoff.document import LARGEST, Document, take
from brimline.handoff.draft import TOKENS, changed_since, draft
from brimline.handoff.freshness import OLD_CALLS, OLD_FILES, Freshness, freshness
from brimline.handoff.records import records
from brimline.handoff.redact import redact
from brimline.handoff.render import rendered

__all__ = [
    "LARGEST",
    "OLD_CALLS",
    "OLD_FILES",
    "TOKENS",
    "Document",
    "Freshness",
    "changed_since",
    "draft",
    "freshness",
    "records",
    "redact",
    "rendered",
    "take",
]
