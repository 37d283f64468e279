"""The one redaction of what leaves a transcript's content: recognisable credentials are masked."""


def redact(text: str) -> str:
    """Replace every credential that is recognised by `***`; others stay."""
    # Compiling the patterns takes 15 ms: programs start without them.
    from brimline.redaction.search import mask_secrets

    return mask_secrets(text)
