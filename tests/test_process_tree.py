"""What processes were told; real ones are looked through by those who ask for a session."""

from hypothesis import given
from hypothesis import strategies as st

from brimline.process_tree import Process, parsed

NAMES = ("CLAUDE_CODE_SESSION_ID", "CODEX_SESSION_ID", "PI_SESSION_ID")


def test_as_ps_lists_it() -> None:
    """The lines of macOS' `ps` tell the same; what is no such line is passed over."""
    listed = (
        "    1     0 /sbin/launchd\n"
        "  501     1 -zsh TERM_PROGRAM=Apple SHELL=/bin/zsh HOME=/Users/u\n"
        "  777   501 claude --resume x HOME=/Users/u CLAUDE_CODE_SESSION_ID=outer SHLVL=2\n"
        "  778   777 /bin/sh -c echo a=b MYPI_SESSION_ID=no CODEX_SESSION_ID=0f-1\n"
        "\n"
        "no line\n"
    )
    assert parsed(listed, NAMES) == {
        1: Process(0, {}),
        501: Process(1, {}),
        777: Process(501, {"CLAUDE_CODE_SESSION_ID": "outer"}),
        778: Process(777, {"CODEX_SESSION_ID": "0f-1"}),
    }


@given(st.text())
def test_whatever_ps_says(listed: str) -> None:
    """Nothing that is listed raises."""
    parsed(listed, NAMES)
