"""Write what the commands of the README print: `python scripts/examples.py`; `--check` compares.

They run in a home with the sample sessions of tests/sample_home.py. A line `...` of an example
stays, and stands for the lines that are left out.
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.append(str(ROOT / "tests"))

from doc_examples import BLOCK, commands_of, pattern_of  # noqa: E402
from sample_home import status_input, write_sample_home  # noqa: E402
from server.running import Running  # noqa: E402

README = ROOT / "README.md"
STATUS_LINE = re.compile(
    r"(<!-- the status line of the sample session -->\n```text\n).*?(?=```)", re.DOTALL
)


def write_examples(text: str, home: Path) -> str:
    """Return the README with the output of its commands, where it is another one."""
    text = STATUS_LINE.sub(lambda found: f"{found[1]}{render_status_line(home)}", text)
    return BLOCK.sub(lambda found: _write_block(found, home), text)


def render_status_line(home: Path) -> str:
    """Return what a daemon answers to Claude Code for the sample session."""
    daemon = Running(home.parent)
    daemon.start()
    try:
        return daemon.hook(status_input(home), "statusline", NO_COLOR="1").strip() + "\n"
    finally:
        daemon.close()


def _write_block(block: "re.Match[str]", home: Path) -> str:
    if block[1] != "console":
        return block[0]
    examples = [f"$ {command}\n{_output(command, shown, home)}"
                for command, shown in commands_of(block[2])]  # fmt: skip
    return f"```console\n{''.join(examples)}```"


def _output(command: str, shown: str, home: Path) -> str:
    """Return what a command prints, up to the first line that the example leaves out."""
    environment = {"HOME": str(home), "COLUMNS": "100", "LANG": "C.UTF-8", "TZ": "UTC"}
    environment["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    printed = subprocess.run(
        ["sh", "-c", command], env=environment, capture_output=True, text=True, check=True
    ).stdout
    if pattern_of(shown).fullmatch(printed):
        return shown
    is_cut = shown.endswith("...\n")
    count = len(shown.splitlines()) - is_cut if is_cut else None
    lines = printed.splitlines(keepends=True)[:count]
    return "".join([*lines, "...\n"] if is_cut else lines)


def main(arguments: list[str]) -> int:
    """Write the README, or check it."""
    text = README.read_text("utf-8")
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        write_sample_home(home)
        written = write_examples(text, home)
    if "--check" not in arguments:
        README.write_text(written, "utf-8")
    elif written != text:
        print("stale: README.md; run `python scripts/examples.py`", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
