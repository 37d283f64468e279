"""Run the newest versions of the clients that the registry has: `make newest`, or with CLIENT.

Each client is measured: where it compacts, whether it records what was billed, what its next prompt
keeps. The table goes to docs/guides/client-versions.md. Of a version that is newer than the pinned
one, all that differs is printed, and the client's tests are run with it (not with `--no-tests`).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]

from brimline.agents import display_name  # noqa: E402
from clients.install import (  # noqa: E402
    OTHER_VERSIONS,
    CannotInstall,
    install_client,
    node,
    pins,
)
from clients.measurement import CASES, Measurement, measure  # noqa: E402

PAGE = ROOT / "docs" / "guides" / "client-versions.md"
BEGIN, END = "<!-- scripts/newest.py writes this table -->\n", "<!-- end of the table -->\n"
HEAD = (
    "| client | model or setting | expected | compacted | as billed | the next prompt keeps |\n"
    "|---|---|---|---|---|---|\n"
)
NPM = "npm error notarget "
REGISTRY_TIMEOUT_S = 60


def main() -> int:
    asked = argparse.ArgumentParser(description="Run the newest versions of the clients.")
    clients = sorted({case.client for case in CASES})
    asked.add_argument("clients", nargs="*", help="the table is written only without any")
    asked.add_argument("--no-tests", action="store_true", help="measure only")
    options = asked.parse_args()
    pinned = {client: pin.version for client, pin in pins().items()}
    rows: list[str] = []
    failed = False
    for client in options.clients or clients:
        newest = newest_version(pins()[client].package) or pinned[client]
        print(f"{client}: pinned {pinned[client]}, newest {newest}", flush=True)
        before = measure_all(client, pinned[client])
        reason = None
        if newest != pinned[client]:
            try:
                after = measure_all(client, newest)
            except CannotInstall as error:
                reason = (str(error).partition("failed: ")[2] or str(error)).removeprefix(NPM)
                print(f"  {error}", flush=True)
            else:
                print_differences(before, after)
                failed |= not options.no_tests and not run_tests(client, newest)
                rows += table_rows(client, newest, after)
        rows += table_rows(client, pinned[client], before)
        if reason:
            name = f"{display_name(client)} {newest}"
            rows.append(f"| {name} | does not install: {reason} | | | | |\n")
    if not options.clients:
        write_table(rows)
    return int(failed)


def newest_version(package: str) -> str | None:
    """Return the newest version in the registry; None if it does not answer."""
    tool = node()
    command = [tool.binary, tool.npm, "view", package, "version", "--loglevel=error"]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=REGISTRY_TIMEOUT_S, check=True
        )
    except (subprocess.SubprocessError, OSError):
        return None
    return done.stdout.strip() or None


def measure_all(client: str, version: str) -> dict[str, Measurement]:
    """Measure a version of a client, by model or setting; raises CannotInstall."""
    os.environ[OTHER_VERSIONS] = json.dumps({client: version})
    try:
        install_client(client)
        measured: dict[str, Measurement] = {}
        for case in CASES:
            if case.client == client:
                with tempfile.TemporaryDirectory(prefix="brimline-") as folder:
                    measured[case.model] = measure(case, Path(folder).resolve())
        return measured
    finally:
        del os.environ[OTHER_VERSIONS]


def print_differences(before: dict[str, Measurement], after: dict[str, Measurement]) -> None:
    """Print the figures and the fields of records that differ between two versions."""
    lines: list[str] = []
    for model, then in before.items():
        now = after[model]
        lines += [f"- {name}" for name in sorted(then.shape - now.shape)]
        lines += [f"+ {name}" for name in sorted(now.shape - then.shape)]
        for name in ("limit", "compacted_after", "calls", "recorded", "kept", "unread"):
            if getattr(then, name) != getattr(now, name):
                lines.append(f"{model}, {name}: {getattr(then, name)} -> {getattr(now, name)}")
    print("".join(f"  {line}\n" for line in dict.fromkeys(lines)) or "  nothing differs\n", end="")


def run_tests(client: str, version: str) -> bool:
    """Run the client's tests with a version; returns whether all passed."""
    command = [sys.executable, "-m", "pytest", "-q", "tests/clients", "-k", client]
    env = {**os.environ, OTHER_VERSIONS: json.dumps({client: version})}
    return subprocess.run(command, cwd=ROOT, env=env, check=False).returncode == 0


def table_rows(client: str, version: str, measured: dict[str, Measurement]) -> Iterator[str]:
    name = f"{display_name(client)} {version}"
    for model, one in measured.items():
        compacted = f"not up to {_tokens(one.highest_without)}"
        kept = ""
        if one.compacted_after is not None:
            compacted = f"after {_tokens(one.compacted_after)}, not {_tokens(one.highest_without)}"
            kept = ", ".join(("the summary", *one.kept))
        billed = f"{one.recorded} of {one.calls} calls"
        yield f"| {name} | {model} | {_tokens(one.limit)} | {compacted} | {billed} | {kept} |\n"


def _tokens(count: int | None) -> str:
    return "unknown" if count is None else f"{count:,}"


def write_table(rows: list[str]) -> None:
    text = PAGE.read_text(encoding="utf-8")
    head, _, rest = text.partition(BEGIN)
    _, _, tail = rest.partition(END)
    day = datetime.now(UTC).strftime("%Y-%m")
    table = f"{BEGIN}\nMeasured in {day}.\n\n{HEAD}{''.join(rows)}\n{END}"
    PAGE.write_text(head + table + tail, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
