"""Make the virtual environment, with the project in it: `python3 scripts/setup.py .venv`."""

import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).parent.parent
FROM_SOURCE = ("--no-binary", "claude-agent-sdk")
"""Its wheel brings 350 MB of Claude Code; the tests install the pinned one themselves."""


def main(folder: str) -> int:
    """Make it, or bring it up to date; nothing but Python 3.11 or newer is needed."""
    if sys.version_info < (3, 11):  # noqa: UP036 - this one runs on whatever python3 is
        print(
            f"Brimline needs Python 3.11 or newer: this is {sys.version.split()[0]}",
            file=sys.stderr,
        )
        return 1
    python = Path(folder, "bin", "python")
    if not python.exists():
        print(f"making the virtual environment {folder} ...", flush=True)
        venv.create(folder, with_pip=True)
    import tomllib

    groups = tomllib.loads((ROOT / "pyproject.toml").read_text())["dependency-groups"]
    print("installing Brimline and what its tests need ...", flush=True)
    command = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    command += ["--constraint", ROOT / "constraints.txt", *FROM_SOURCE]
    command += ["--editable", ROOT, *groups["dev"]]
    return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
