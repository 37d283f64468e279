"""Why a fleet's server did not take what was sent."""

from brimline.errors import BrimlineError
from brimline.terminal.text import strip_control, truncate

MAX_LINE_CHARS = 300  # of a text for a log or a status


def clean_line(text: str) -> str:
    """Return a text that a server may have written as one line of bounded length."""
    return truncate(strip_control(text[: 2 * MAX_LINE_CHARS]), MAX_LINE_CHARS)


class UplinkFailed(BrimlineError):
    """A batch that the server did not take. `is_refused`: it would not take it again either.

    `is_too_large`: it, or a proxy in front of it, may take a smaller one.
    """

    def __init__(
        self,
        reason: str,
        retry_after_s: float = 0.0,
        is_refused: bool = False,
        is_too_large: bool = False,
    ) -> None:
        super().__init__(clean_line(reason))
        self.retry_after_s = retry_after_s
        self.is_refused, self.is_too_large = is_refused, is_too_large
