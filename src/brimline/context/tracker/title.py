"""How titles of sessions are written."""

from brimline.redaction import redact, truncate_words

MAX_TITLE_CHARS = 80
MAX_READ_CHARS = 4_000  # of a text that becomes a title: a prompt may be a whole file


def shorten_title(text: str) -> str | None:
    """Return a text as one short line, redacted and without control characters; None if empty."""
    redacted = redact(truncate_words(text, MAX_READ_CHARS))
    shown = "".join(c if c.isprintable() else " " for c in redacted)
    line = " ".join(shown.split())
    if len(line) > MAX_TITLE_CHARS:
        cut = line[: MAX_TITLE_CHARS - 1]
        words = line[:MAX_TITLE_CHARS].rpartition(" ")[0]
        line = (words if len(words) > MAX_TITLE_CHARS // 2 else cut).rstrip() + "…"
    return line or None
