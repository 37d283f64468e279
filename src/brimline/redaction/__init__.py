"""Credentials in a transcript's content: how they are found, and masked wherever it is shown.

When a text is masked is decided by the folders that show, store or send it.
"""


def redact(text: str) -> str:
    """Replace every credential that is recognised by `***`; others stay."""
    # Compiling the patterns takes 15 ms: programs start without them.
    from brimline.redaction.search import mask_secrets

    return mask_secrets(text)


def truncate_words(text: str, most_chars: int) -> str:
    """Return the beginning of a text that is to be redacted, without a word that is cut.

    Half a credential would not be recognised.
    """
    if len(text) <= most_chars:
        return text
    words = text[:most_chars].rsplit(maxsplit=1)
    return words[0] if words else ""
