"""Create the virtual environment and install the project: `python3 scripts/setup.py .venv`."""

import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).parent.parent
# The wheel contains 350 MB of Claude Code; the tests install the pinned version themselves.
FROM_SOURCE = ("--no-binary", "claude-agent-sdk")


def main(folder: str) -> int:
    """Create or update the environment; needs only Python 3.11 or newer."""
    if sys.version_info < (3, 11):  # noqa: UP036 - runs on any python3
        print(
            f"Brimline needs Python 3.11 or newer, but this is {sys.version.split()[0]}",
            file=sys.stderr,
        )
        return 1
    python = Path(folder, "bin", "python")
    if not python.exists():
        print(f"creating the virtual environment {folder} ...", flush=True)
        venv.create(folder, with_pip=True)
    import tomllib

    groups = tomllib.loads((ROOT / "pyproject.toml").read_text())["dependency-groups"]
    print("installing Brimline and its test dependencies ...", flush=True)
    command = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    command += ["--constraint", ROOT / "constraints.txt", *FROM_SOURCE]
    command += ["--editable", ROOT, *groups["dev"]]
    return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
